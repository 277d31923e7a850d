#include "launch/world.h"
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TORCH_PORT 29500 /* the default port of torch.distributed */

struct env {
	const char *(*get)(void *user, const char *name);
	void *user;
};

/* Names of the environment variables that one starter of ranks, such as torchrun, sets; NULL: the starter has no such variable. */
struct family {
	const char *how, *rank, *world, *local_rank, *local_world, *node, *nnodes;
};

static const struct family torchrun = {
	"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE"};
static const struct family openmpi = {
	"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL, NULL};
static const struct family mpich = {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", NULL, NULL};
static const struct family slurm = {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", NULL, "SLURM_NODEID", "SLURM_NNODES"};

static const char *get_variable(const struct env *e, const char *name)
{
	const char *v = name ? e->get ? e->get(e->user, name) : getenv(name) : NULL;
	return v && *v ? v : NULL;
}

static enum gt_code parse_number(const char *name, const char *text, long min, long max, int *out, struct gt_err *err)
{
	long v = 0;
	const char *p = text;
	while (*p >= '0' && *p <= '9' && v <= max)
		v = 10 * v + (*p++ - '0');
	if (p == text || *p || v < min || v > max)
		return gt_fail(err, GT_EUSAGE, "%s=%.40s in the environment: expected a number from %ld to %ld", name, text, min, max);
	*out = (int)v;
	return GT_OK;
}

/* Reads a number; if the variable is missing, *out is unchanged. */
static enum gt_code env_int_optional(const struct env *e, const char *name, long min, long max, int *out, struct gt_err *err)
{
	const char *v = get_variable(e, name);
	return v ? parse_number(name, v, min, max, out, err) : GT_OK;
}

static enum gt_code env_int_required(const struct env *e, const struct family *f, const char *name, long min, long max, int *out,
                                     struct gt_err *err)
{
	const char *v = get_variable(e, name), *other = strcmp(name, f->rank) ? f->rank : f->world;
	if (!v)
		return gt_fail(err, GT_EUSAGE, "%s is set in the environment, but %s is not; %s sets both", other, name, f->how);
	return parse_number(name, v, min, max, out, err);
}

/* Reads the address of rank 0 from MASTER_ADDR and MASTER_PORT. w->addr and w->port hold the defaults. */
static enum gt_code read_master_addr(const struct env *e, struct gt_world *w, struct gt_err *err)
{
	const char *addr = get_variable(e, "MASTER_ADDR");
	if (addr) {
		if (strlen(addr) >= sizeof w->addr || strpbrk(addr, " \t\n/"))
			return gt_fail(err, GT_EUSAGE, "MASTER_ADDR=%.40s in the environment: expected a host name or an address", addr);
		strcpy(w->addr, addr);
	}
	return env_int_optional(e, "MASTER_PORT", 1, 65535, &w->port, err);
}

static bool is_loopback(const char *addr)
{
	return !strncmp(addr, "127.", 4) || !strcmp(addr, "localhost") || !strcmp(addr, "::1");
}

/* Checks that ranks and counts are consistent, and derives the node if it was not given. */
static enum gt_code check_consistency(const struct family *f, struct gt_world *w, struct gt_err *err)
{
	if (w->rank >= w->world)
		return gt_fail(err, GT_EUSAGE, "%s=%d and %s=%d in the environment contradict each other: the first rank is 0",
		               f->rank, w->rank, f->world, w->world);
	if (w->local_rank >= w->local_world)
		return gt_fail(err, GT_EUSAGE, "the environment has %s=%d, but there are only %d ranks on this host", f->local_rank, w->local_rank,
		               w->local_world);
	if (w->local_world > w->world)
		return gt_fail(err, GT_EUSAGE, "the environment describes %d ranks on this host, but only %s=%d in total",
		               w->local_world, f->world, w->world);
	if (w->local_rank > w->rank || w->local_world - w->local_rank > w->world - w->rank)
		return gt_fail(err, GT_EUSAGE, "%s=%d and %s=%d in the environment contradict each other (%d ranks on this host, %d in total)",
		               f->rank, w->rank, f->local_rank, w->local_rank, w->local_world, w->world);
	if (w->node < 0 && w->nnodes < 0 && w->world % w->local_world == 0 && (w->rank - w->local_rank) % w->local_world == 0) {
		w->node = w->rank / w->local_world;
		w->nnodes = w->world / w->local_world;
	}
	if (w->node >= 0 && w->nnodes >= 0 && w->node >= w->nnodes)
		return gt_fail(err, GT_EUSAGE, "%s=%d in the environment must be less than %s=%d: the first node is 0",
		               f->node, w->node, f->nnodes, w->nnodes);
	return GT_OK;
}

/* Writes the first host of a Slurm list to out, as `scontrol show hostnames | head -1` prints it: "gpu[003-005,9],login1" → "gpu003";
 * "a[1-2]-ib[0-3]" → "a1-ib0". */
static enum gt_code parse_first_host(const char *name, const char *list, char *out, size_t size, struct gt_err *err)
{
	size_t n = 0;
	const char *p = list;
	for (bool skip = false, inside = false; *p && (inside || *p != ','); p++) {
		if ((*p == '[' && inside) || (*p == ']' && !inside))
			break;
		if (*p == '[' || *p == ']')
			inside = *p == '[', skip = false;
		else if (inside && (*p == ',' || *p == '-'))
			skip = true;
		else if (!skip && n + 1 < size)
			out[n++] = *p;
		if (inside && !p[1])
			break;
	}
	out[n] = 0;
	if (!n || n + 1 >= size || (*p && *p != ',') || strpbrk(out, " \t\n/"))
		return gt_fail(err, GT_EUSAGE, "%s=%.60s in the environment: expected a list of hosts", name, list);
	return GT_OK;
}

/* Reads the number of tasks of a node from a Slurm list: "2(x3),1" and node 3 → 1. */
static enum gt_code parse_task_count(const char *name, const char *list, int node, int *out, struct gt_err *err)
{
	const char *p = list;
	for (long at = 0; *p;) {
		char *end;
		long tasks = strtol(p, &end, 10), times = 1;
		bool good = end != p && tasks > 0 && tasks <= GT_WORLD_MAX;
		p = end;
		if (good && !strncmp(p, "(x", 2)) {
			times = strtol(p + 2, &end, 10);
			good = end != p + 2 && times > 0 && times <= GT_WORLD_MAX && *end == ')';
			p = good ? end + 1 : end;
		}
		if (!good || (*p && *p != ','))
			break;
		if (node < at + times) {
			*out = (int)tasks;
			return GT_OK;
		}
		at += times;
		p += *p == ',';
	}
	return gt_fail(err, GT_EUSAGE, "%s=%.60s in the environment does not give the number of tasks of node %d", name, list, node);
}

static enum gt_code read_torchrun(const struct env *e, struct gt_world *w, struct gt_err *err)
{
	const struct family *f = &torchrun;
	GT_TRY(read_master_addr(e, w, err));
	if (!w->addr[0] && w->world > 1)
		return gt_fail(err, GT_EUSAGE, "%s=%d is set in the environment, but MASTER_ADDR is not", f->world, w->world);
	if (!w->addr[0])
		strcpy(w->addr, "127.0.0.1");
	if (!get_variable(e, f->local_rank) && !get_variable(e, f->local_world) && (is_loopback(w->addr) || w->world == 1)) {
		w->local_rank = w->rank; /* a script for PyTorch's env:// sets only these variables, and all its ranks are on this host */
		w->local_world = w->world;
		return GT_OK;
	}
	GT_TRY(env_int_required(e, f, f->local_rank, 0, GT_WORLD_MAX - 1, &w->local_rank, err));
	return env_int_required(e, f, f->local_world, 1, GT_WORLD_MAX, &w->local_world, err);
}

static enum gt_code read_mpi(const struct env *e, const struct family *f, struct gt_world *w, struct gt_err *err)
{
	if (w->world == 1 && !get_variable(e, f->local_rank) && !get_variable(e, f->local_world)) {
		w->local_rank = 0;
		w->local_world = 1;
	} else {
		GT_TRY(env_int_required(e, f, f->local_rank, 0, GT_WORLD_MAX - 1, &w->local_rank, err));
		GT_TRY(env_int_required(e, f, f->local_world, 1, GT_WORLD_MAX, &w->local_world, err));
	}
	GT_TRY(read_master_addr(e, w, err));
	if (!w->addr[0] && w->local_world < w->world)
		return gt_fail(err, GT_EUSAGE, "%s starts %d ranks, %d of them on this host: set MASTER_ADDR to the host of rank 0", f->how,
		               w->world, w->local_world);
	if (!w->addr[0])
		strcpy(w->addr, "127.0.0.1");
	return GT_OK;
}

static enum gt_code read_slurm(const struct env *e, struct gt_world *w, struct gt_err *err)
{
	static const char *const hosts[] = {"SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"};
	static const char *const tasks[] = {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"};
	const struct family *f = &slurm;
	const char *job = get_variable(e, "SLURM_JOB_ID");
	GT_TRY(env_int_required(e, f, f->local_rank, 0, GT_WORLD_MAX - 1, &w->local_rank, err));
	GT_TRY(env_int_optional(e, f->node, 0, GT_WORLD_MAX - 1, &w->node, err));
	GT_TRY(env_int_optional(e, f->nnodes, 1, GT_WORLD_MAX, &w->nnodes, err));
	GT_TRY(env_int_optional(e, "SLURM_STEP_NUM_NODES", 1, GT_WORLD_MAX, &w->nnodes, err));
	for (int i = 0; i < 2 && !w->local_world; i++)
		if (get_variable(e, tasks[i]))
			GT_TRY(parse_task_count(tasks[i], get_variable(e, tasks[i]), w->node < 0 ? 0 : w->node, &w->local_world, err));
	if (!w->local_world && w->nnodes <= 1)
		w->local_world = w->world;
	if (!w->local_world)
		return gt_fail(err, GT_EUSAGE, "the environment has %s=%d, but SLURM_STEP_TASKS_PER_NODE is not set", f->nnodes, w->nnodes);
	for (int i = 0; i < 3 && !w->addr[0]; i++)
		if (get_variable(e, hosts[i]))
			GT_TRY(parse_first_host(hosts[i], get_variable(e, hosts[i]), w->addr, sizeof w->addr, err));
	if (job) {
		size_t n = strlen(job);
		int last = 0;
		GT_TRY(parse_number("SLURM_JOB_ID", n > 4 ? job + n - 4 : job, 0, 9999, &last, err));
		w->port = 15000 + last;
	}
	GT_TRY(read_master_addr(e, w, err));
	if (!w->addr[0])
		return gt_fail(err, GT_EUSAGE, "%s is set in the environment, but SLURM_STEP_NODELIST is not", f->rank);
	return GT_OK;
}

/* Returns whether this process belongs to a job step of srun. The shells of sbatch and salloc also have SLURM_PROCID=0 but are no ranks. */
static bool is_srun_task(const struct env *e)
{
	const char *name = get_variable(e, "SLURM_JOB_NAME");
	return get_variable(e, "SLURM_PROCID") && get_variable(e, "SLURM_STEP_NODELIST") &&
	       !(name && (!strcmp(name, "bash") || !strcmp(name, "interactive")));
}

enum gt_code gt_world_from_environment(const char *(*get)(void *user, const char *name), void *user, struct gt_world *out,
                                       struct gt_err *err)
{
	const struct env env = {get, user}, *e = &env;
	const struct family *f = get_variable(e, torchrun.rank) || get_variable(e, torchrun.world)  ? &torchrun
	                         : get_variable(e, openmpi.rank) || get_variable(e, openmpi.world) ? &openmpi
	                         : get_variable(e, mpich.rank) || get_variable(e, mpich.world)     ? &mpich
	                                                                             : NULL;
	struct gt_world w = {.how = "single", .world = 1, .local_world = 1, .nnodes = 1};
	/* srun --mpi=pmi2 sets the variables of PMI too, so MPICH is not assumed */
	if (is_srun_task(e) && (!f || (f == &mpich && !get_variable(e, mpich.local_rank))))
		f = &slurm;
	if (!f) {
		*out = w;
		return GT_OK;
	}
	w = (struct gt_world){.how = f->how, .node = -1, .nnodes = -1, .port = TORCH_PORT};
	GT_TRY(env_int_required(e, f, f->world, 1, GT_WORLD_MAX, &w.world, err));
	GT_TRY(env_int_required(e, f, f->rank, 0, GT_WORLD_MAX - 1, &w.rank, err));
	if (f != &slurm) {
		GT_TRY(env_int_optional(e, f->node, 0, GT_WORLD_MAX - 1, &w.node, err));
		GT_TRY(env_int_optional(e, f->nnodes, 1, GT_WORLD_MAX, &w.nnodes, err));
	}
	GT_TRY(f == &torchrun ? read_torchrun(e, &w, err) : f == &slurm ? read_slurm(e, &w, err) : read_mpi(e, f, &w, err));
	GT_TRY(check_consistency(f, &w, err));
	*out = w;
	return GT_OK;
}

const char *gt_world_variable(const char *how)
{
	static const struct family *const all[] = {&torchrun, &openmpi, &mpich, &slurm};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i]->how, how))
			return all[i]->rank;
	return NULL;
}
