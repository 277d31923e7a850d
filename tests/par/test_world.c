/* Variables that launchers set → the world, or the sentence. */
#include "launch/world.h"
#include "test.h"
#include <string.h>

struct row {
	const char *name;
	const char *env[20]; /* "NAME=value" */
	struct gt_world want;
	const char *error; /* instead of want: a part of the message */
};

static const char *get(void *user, const char *name)
{
	size_t n = strlen(name);
	for (const char *const *e = user; *e; e++)
		if (!strncmp(*e, name, n) && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

#define TORCH(r, w, lr, lw) "RANK=" r, "WORLD_SIZE=" w, "LOCAL_RANK=" lr, "LOCAL_WORLD_SIZE=" lw
#define OMPI(r, w, lr, lw) \
	"OMPI_COMM_WORLD_RANK=" r, "OMPI_COMM_WORLD_SIZE=" w, "OMPI_COMM_WORLD_LOCAL_RANK=" lr, "OMPI_COMM_WORLD_LOCAL_SIZE=" lw
#define MPICH(r, w, lr, lw) "PMI_RANK=" r, "PMI_SIZE=" w, "MPI_LOCALRANKID=" lr, "MPI_LOCALNRANKS=" lw
#define SLURM(r, w, lr) "SLURM_PROCID=" r, "SLURM_NTASKS=" w, "SLURM_LOCALID=" lr

static const struct row rows[] = {
	{"nothing", {NULL}, {"single", 0, 1, 0, 1, 0, 1, "", 0}},
	{"empty values", {"RANK=", "WORLD_SIZE=", "PMI_RANK="}, {"single", 0, 1, 0, 1, 0, 1, "", 0}},
	{"torchrun", {TORCH("3", "4", "3", "4"), "GROUP_RANK=0", "GROUP_WORLD_SIZE=1", "MASTER_ADDR=localhost", "MASTER_PORT=4711",
	 "TORCHELASTIC_RUN_ID=none"}, {"torchrun", 3, 4, 3, 4, 0, 1, "localhost", 4711}},
	{"torchrun, two nodes", {TORCH("5", "8", "1", "4"), "MASTER_ADDR=gpu1"}, {"torchrun", 5, 8, 1, 4, 1, 2, "gpu1", 29500}},
	{"torchrun, uneven nodes", {TORCH("3", "4", "0", "1"), "GROUP_RANK=1", "GROUP_WORLD_SIZE=2", "MASTER_ADDR=gpu1"},
	 {"torchrun", 3, 4, 0, 1, 1, 2, "gpu1", 29500}},
	{"env:// by hand", {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29501"},
	 {"torchrun", 1, 2, 1, 2, 0, 1, "127.0.0.1", 29501}},
	{"torchrun, one rank", {"RANK=0", "WORLD_SIZE=1"}, {"torchrun", 0, 1, 0, 1, 0, 1, "127.0.0.1", 29500}},
	{"torchrun before MPI", {TORCH("0", "2", "0", "2"), "MASTER_ADDR=::1", OMPI("1", "4", "1", "4")},
	 {"torchrun", 0, 2, 0, 2, 0, 1, "::1", 29500}},
	{"Open MPI", {OMPI("1", "2", "1", "2")}, {"Open MPI", 1, 2, 1, 2, 0, 1, "127.0.0.1", 29500}},
	{"Open MPI, hosts in turn", {OMPI("2", "4", "1", "2"), "MASTER_ADDR=a"}, {"Open MPI", 2, 4, 1, 2, -1, -1, "a", 29500}},
	{"MPICH", {MPICH("2", "3", "2", "3")}, {"MPICH", 2, 3, 2, 3, 0, 1, "127.0.0.1", 29500}},
	{"MPICH, one rank", {"PMI_RANK=0", "PMI_SIZE=1"}, {"MPICH", 0, 1, 0, 1, 0, 1, "127.0.0.1", 29500}},
	{"MPI in a Slurm job", {OMPI("0", "2", "0", "2"), SLURM("0", "1", "0"), "SLURM_STEP_NODELIST=n1"},
	 {"Open MPI", 0, 2, 0, 2, 0, 1, "127.0.0.1", 29500}},
	{"Slurm", {SLURM("5", "8", "1"), "SLURM_NODEID=1", "SLURM_NNODES=2", "SLURM_STEP_TASKS_PER_NODE=4(x2)", "SLURM_JOB_ID=1234567",
	 "SLURM_STEP_NODELIST=gpu[003-005,9],login1"}, {"Slurm", 5, 8, 1, 4, 1, 2, "gpu003", 19567}},
	{"Slurm, uneven", {SLURM("6", "7", "0"), "SLURM_NODEID=3", "SLURM_NNODES=4", "SLURM_STEP_TASKS_PER_NODE=2(x3),1", "SLURM_JOB_ID=7",
	 "SLURM_STEP_NODELIST=a[1-2]-ib[0-3]"}, {"Slurm", 6, 7, 0, 1, 3, 4, "a1-ib0", 15007}},
	{"Slurm, one node", {SLURM("1", "2", "1"), "SLURM_STEP_NODELIST=n7", "SLURM_JOB_ID=42"}, {"Slurm", 1, 2, 1, 2, 0, 1, "n7", 15042}},
	{"Slurm with pmi2", {SLURM("1", "2", "1"), "PMI_RANK=1", "PMI_SIZE=2", "SLURM_STEP_NODELIST=n7"},
	 {"Slurm", 1, 2, 1, 2, 0, 1, "n7", 29500}},
	{"a batch script is no step", {SLURM("0", "8", "0"), "SLURM_JOB_ID=42", "SLURM_NODELIST=n[1-2]"}, {"single", 0, 1, 0, 1, 0, 1, "", 0}},
	{"nor is an interactive shell", {SLURM("0", "8", "0"), "SLURM_JOB_NAME=interactive", "SLURM_STEP_NODELIST=n1"},
	 {"single", 0, 1, 0, 1, 0, 1, "", 0}},

	{"half of torchrun", {"RANK=1"}, {0}, "RANK is set in the environment, but WORLD_SIZE is not"},
	{"the other half", {"WORLD_SIZE=2", "MASTER_ADDR=a"}, {0}, "WORLD_SIZE is set in the environment, but RANK is not"},
	{"no address", {TORCH("1", "2", "1", "2")}, {0}, "MASTER_ADDR is not"},
	{"no local rank", {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=gpu1"}, {0}, "LOCAL_RANK is not"},
	{"rank = world", {TORCH("2", "2", "1", "2"), "MASTER_ADDR=a"}, {0}, "RANK=2 and WORLD_SIZE=2"},
	{"rank -1", {TORCH("-1", "2", "1", "2"), "MASTER_ADDR=a"}, {0}, "RANK=-1"},
	{"rank 1x", {TORCH("1x", "2", "1", "2"), "MASTER_ADDR=a"}, {0}, "RANK=1x"},
	{"world 0", {TORCH("0", "0", "0", "1"), "MASTER_ADDR=a"}, {0}, "WORLD_SIZE=0"},
	{"world 2^32+2", {TORCH("0", "4294967298", "0", "1"), "MASTER_ADDR=a"}, {0}, "WORLD_SIZE=4294967298"},
	{"local rank too high", {TORCH("1", "2", "2", "2"), "MASTER_ADDR=a"}, {0}, "LOCAL_RANK=2"},
	{"more here than in all", {TORCH("1", "2", "1", "4"), "MASTER_ADDR=a"}, {0}, "4 ranks on this host"},
	{"local rank above rank", {TORCH("0", "4", "1", "2"), "MASTER_ADDR=a"}, {0}, "RANK=0 and LOCAL_RANK=1"},
	{"no room for the others here", {TORCH("3", "4", "0", "2"), "MASTER_ADDR=a"}, {0}, "RANK=3 and LOCAL_RANK=0"},
	{"node out of range", {TORCH("1", "2", "0", "1"), "GROUP_RANK=2", "GROUP_WORLD_SIZE=2", "MASTER_ADDR=a"}, {0}, "GROUP_RANK=2"},
	{"port 0", {TORCH("1", "2", "1", "2"), "MASTER_ADDR=a", "MASTER_PORT=0"}, {0}, "MASTER_PORT=0"},
	{"port 65536", {TORCH("1", "2", "1", "2"), "MASTER_ADDR=a", "MASTER_PORT=65536"}, {0}, "MASTER_PORT=65536"},
	{"no host name", {TORCH("1", "2", "1", "2"), "MASTER_ADDR=a b"}, {0}, "MASTER_ADDR=a b"},
	{"Open MPI on two hosts", {OMPI("1", "4", "1", "2")}, {0}, "set MASTER_ADDR"},
	{"Open MPI without size", {"OMPI_COMM_WORLD_RANK=0"}, {0}, "OMPI_COMM_WORLD_SIZE is not"},
	{"MPICH without local rank", {"PMI_RANK=0", "PMI_SIZE=2"}, {0}, "MPI_LOCALRANKID is not"},
	{"Slurm without tasks", {"SLURM_PROCID=0", "SLURM_STEP_NODELIST=a"}, {0}, "SLURM_NTASKS is not"},
	{"Slurm, broken hosts", {SLURM("0", "1", "0"), "SLURM_STEP_NODELIST=a[1-2"}, {0}, "SLURM_STEP_NODELIST=a[1-2"},
	{"Slurm, no host", {SLURM("0", "1", "0"), "SLURM_STEP_NODELIST=,a"}, {0}, "SLURM_STEP_NODELIST=,a"},
	{"Slurm, broken tasks", {SLURM("0", "4", "0"), "SLURM_NNODES=2", "SLURM_STEP_TASKS_PER_NODE=2(x", "SLURM_STEP_NODELIST=a"}, {0},
	 "SLURM_STEP_TASKS_PER_NODE=2(x"},
	{"Slurm, tasks of too few nodes", {SLURM("3", "4", "0"), "SLURM_NODEID=2", "SLURM_STEP_TASKS_PER_NODE=2(x2)",
	 "SLURM_STEP_NODELIST=a"}, {0}, "node 2"},
};

TEST(joins)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct row *r = &rows[i];
		struct gt_world w = {0};
		struct gt_err e = {0};
		enum gt_code c = gt_world_from_environment(get, (void *)r->env, &w, &e);
		if (r->error) {
			CHECK_MSG(c == GT_EUSAGE && strstr(e.msg, r->error), "%s: code %d, %s", r->name, c, e.msg);
			continue;
		}
		CHECK_MSG(c == GT_OK, "%s: %s", r->name, e.msg);
		if (c != GT_OK)
			continue;
		CHECK_MSG(!strcmp(w.how, r->want.how), "%s: how %s", r->name, w.how);
		CHECK_MSG(w.rank == r->want.rank && w.world == r->want.world, "%s: rank %d of %d", r->name, w.rank, w.world);
		CHECK_MSG(w.local_rank == r->want.local_rank && w.local_world == r->want.local_world, "%s: local rank %d of %d", r->name,
		          w.local_rank, w.local_world);
		CHECK_MSG(w.node == r->want.node && w.nnodes == r->want.nnodes, "%s: node %d of %d", r->name, w.node, w.nnodes);
		CHECK_MSG(!strcmp(w.addr, r->want.addr) && w.port == r->want.port, "%s: %s port %d", r->name, w.addr, w.port);
	}
	printf("# %zu environments\n", sizeof rows / sizeof *rows);
}

RUN_TESTS()
