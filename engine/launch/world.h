/* Determines which rank this process is, the number of ranks, and the address of rank 0, from the environment that its starter has set.
 * It looks for gtrain's own launcher first (launch/launcher.h), then in this order for
 *   torchrun   RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE MASTER_ADDR MASTER_PORT (pytorch.org, torchrun)
 *   Open MPI   OMPI_COMM_WORLD_{RANK,SIZE,LOCAL_RANK,LOCAL_SIZE}
 *   MPICH      PMI_RANK PMI_SIZE MPI_LOCALRANKID MPI_LOCALNRANKS
 *   Slurm      a step of srun: SLURM_PROCID SLURM_NTASKS SLURM_LOCALID SLURM_NODEID SLURM_STEP_NODELIST ... (srun(1))
 * MPI provides no address: MASTER_ADDR sets it; if all ranks are on one host, 127.0.0.1 is the default. The port is the first of
 * GT_RENDEZVOUS_PORTS ports that rank 0 tries. */
#ifndef GT_LAUNCH_WORLD_H
#define GT_LAUNCH_WORLD_H

#include "base/err.h"

#define GT_WORLD_MAX 65536 /* maximum number of ranks */
#define GT_ADDR_SIZE 256   /* bytes of an address or host name, with its NUL */

struct gt_world {
	const char *how; /* the starter: "single", "gtrain", "torchrun", "Open MPI", "MPICH", "Slurm" */
	int rank, world;             /* number of this rank, from 0, and of all ranks */
	int local_rank, local_world; /* number of this rank among the ranks on this host, from 0, and number of ranks on this host */
	int node, nnodes;            /* number of this host, from 0, and of all hosts; -1: the starter does not provide it and the ranks are not
	                                distributed in blocks */
	char addr[GT_ADDR_SIZE];     /* address of rank 0; empty if how is "single" */
	int port;                    /* port of rank 0's rendezvous; 0 if how is "single" */
};

/* Fills *out from the environment. A test can provide an environment with `get`, which works like getenv; NULL: getenv. An empty variable
 * is treated as not set. GT_EUSAGE: variables are missing, not numbers, out of range or inconsistent; the sentence names them. If no
 * variable is set at all, how = "single" and world = 1. */
enum gt_code gt_world_from_environment(const char *(*get)(void *user, const char *name), void *user, struct gt_world *out,
                                       struct gt_err *err);

/* Returns the environment variable by which a process recognises the starter `how` ("PMI_RANK" for "MPICH"); NULL if how is "single" or
 * "gtrain". */
const char *gt_world_variable(const char *how);

#endif
