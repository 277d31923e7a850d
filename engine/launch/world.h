/* Which rank this process is, of how many, and where rank 0 is: told by whoever started it through the environment.
 * Looked for in this order: gtrain's own launcher (launch/launcher.h), then
 *   torchrun   RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE MASTER_ADDR MASTER_PORT (pytorch.org, torchrun)
 *   Open MPI   OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}
 *   MPICH      PMI_RANK PMI_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS
 *   Slurm      a step of srun: SLURM_PROCID SLURM_NTASKS SLURM_LOCALID SLURM_NODEID SLURM_STEP_NODELIST … (srun(1))
 * MPI tells no address: MASTER_ADDR does, and 127.0.0.1 where all ranks are on one host. A port is the first of GT_RENDEZVOUS_PORTS
 * that rank 0 tries. */
#ifndef GT_LAUNCH_WORLD_H
#define GT_LAUNCH_WORLD_H

#include "base/err.h"

#define GT_WORLD_MAX 65536
#define GT_ADDR_SIZE 256

struct gt_world {
	const char *how; /* "single", "gtrain", "torchrun", "Open MPI", "MPICH", "Slurm" */
	int rank, world;
	int local_rank, local_world; /* on this host */
	int node, nnodes;            /* -1: the starter does not tell, and the ranks are not laid out in blocks */
	char addr[GT_ADDR_SIZE];     /* of rank 0; empty where how is "single" */
	int port;                    /* 0 where how is "single" */
};

/* get: like getenv, so that a test can be an environment; NULL: getenv. A variable that is empty counts as not set. Variables that are
 * missing, no numbers, out of range or at odds with each other are GT_EUSAGE, with their names. None at all: how = "single", world 1. */
enum gt_code gt_world_join(const char *(*get)(void *user, const char *name), void *user, struct gt_world *out, struct gt_err *err);

/* The variable that makes a process a rank of such a start ("PMI_RANK" for "MPICH"); NULL: how is "single" or "gtrain". */
const char *gt_world_variable(const char *how);

#endif
