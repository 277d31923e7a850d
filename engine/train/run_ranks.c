#include "train/run_ranks.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "exec/device.h"
#include "launch/launcher_parts.h"
#include "launch/rendezvous.h"
#include "plan/strategy.h"
#include "store/ckpt.h"
#include "team/team.h"
#include "train/run_end.h"
#include "train/trainer.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MASTER_PORT 29500 /* PyTorch's default */
#define NODES 1024        /* maximum number of NUMA nodes */

/* Returns the number of NUMA nodes with a processor that this process may use; 1 if the kernel reports none. */
static int count_numa_nodes(void)
{
	cpu_set_t set;
	char path[96];
	int n = 0;
	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof set, &set))
		return 1;
	for (int node = 0; node < NODES; node++) {
		snprintf(path, sizeof path, "/sys/devices/system/node/node%d", node);
		if (access(path, F_OK))
			continue;
		for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
			snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpu%d", node, cpu);
			if (CPU_ISSET(cpu, &set) && !access(path, F_OK)) {
				n++;
				break;
			}
		}
	}
	return n > 0 ? n : 1;
}

static const char *device_word(const struct gt_conf *c, const struct gt_run_opts *o)
{
	return o->device ? o->device : c->device;
}

/* Checks whether the number of hosts of this run may change. */
static enum gt_code check_elastic(const struct gt_conf *c, const struct gt_run_opts *o, struct gt_err *err)
{
	if (o->nnodes < 2)
		return gt_fail(err, GT_EUSAGE, "--nnodes %d:%d: expected a maximum of at least 2 hosts", o->min_nodes, o->nnodes);
	if (c->data.batch_per_rank > 0)
		return gt_conf_refuse(c, "data.batch_per_rank", err,
		                      "--nnodes %d:%d and data.batch_per_rank cannot be combined, because the batch would change with the number "
		                      "of hosts; set data.batch", o->min_nodes, o->nnodes);
	if (c->data.sampler == GT_SAMPLER_TORCH)
		return gt_conf_refuse(c, "data.sampler", err,
		                      "--nnodes %d:%d and data.sampler = \"torch\" cannot be combined, because the order of the samples would "
		                      "change with the number of hosts", o->min_nodes, o->nnodes);
	return GT_OK;
}

static enum gt_code check_rank_options(const struct gt_conf *c, const struct gt_run_opts *o, const struct gt_world *w, struct gt_err *err)
{
	const struct gt_strategy *s = gt_strategy_of(c->parallel.mode);
	bool processes = s->ranks == GT_RANKS_PROCESSES;
	GT_TRY(gt_strategy_check_nproc(c, o->nproc, err));
	if (!processes && o->nnodes > 1)
		return gt_conf_refuse(c, "parallel.mode", err,
		                      "--nnodes %d and parallel.mode = \"%s\" cannot be combined; add -s parallel.mode=ddp", o->nnodes, s->name);
	if (!processes && w->world > 1)
		return gt_conf_refuse(c, "parallel.mode", err,
		                      "%s started %d ranks, which cannot be combined with parallel.mode = \"%s\"; add -s parallel.mode=ddp",
		                      w->how, w->world, s->name);
	if (o->link)
		return GT_OK;
	if (w->world > 1 && (o->nnodes > 1 || (o->nproc > 0 && o->nproc != w->world && o->nproc != w->local_world)))
		return gt_fail(err, GT_EUSAGE, "%s started %d ranks, %d of them on this host, but %s gives a different number; remove the option",
		               w->how, w->world,
		               w->local_world, o->nnodes > 1 ? "--nnodes" : "--nproc");
	if (w->world > 1 && o->max_restarts)
		return gt_fail(err, GT_EUSAGE, "--max-restarts: expected ranks that gtrain started (--nproc), but %s started the ranks and must "
		               "restart them",
		               w->how);
	if (o->min_nodes)
		GT_TRY(check_elastic(c, o, err));
	if (o->nnodes <= 1 && (o->node_rank || o->master_addr || o->master_port))
		return gt_fail(err, GT_EUSAGE, "%s: expected also --nnodes, because the run has only one host otherwise",
		               o->master_addr   ? "--master-addr"
		               : o->master_port ? "--master-port"
		                                : "--node-rank");
	if (o->nnodes > 1 && !o->master_addr)
		return gt_fail(err, GT_EUSAGE, "--nnodes %d: expected also --master-addr, the address at which the other hosts reach the host of "
		               "node 0", o->nnodes);
	if (o->nnodes > 1 && o->node_rank >= o->nnodes)
		return gt_fail(err, GT_EUSAGE, "--node-rank %d: expected a number below --nnodes %d", o->node_rank, o->nnodes);
	return GT_OK;
}

/* Returns the number of ranks on this host if gtrain starts them. */
static int count_local_ranks(const struct gt_conf *c, const struct gt_run_opts *o)
{
	int n = o->nproc ? o->nproc : (int)c->parallel.nproc;
	if (!n)
		n = gt_device_choice(device_word(c, o));
	return n ? n : count_numa_nodes();
}

enum gt_code gt_ranks_of(const struct gt_conf *c, const struct gt_run_opts *o, struct gt_ranks *out, struct gt_err *err)
{
	const char *env = getenv("GTRAIN_TOKEN_FILE");
	*out = (struct gt_ranks){.nproc = 1, .threads = 1, .token_file = o->token_file ? o->token_file : env && *env ? env : NULL};
	GT_TRY(gt_team_world(o->link, &out->world, err));
	GT_TRY(check_rank_options(c, o, &out->world, err));
	enum gt_mode_ranks ranks = gt_strategy_of(c->parallel.mode)->ranks;
	if (ranks == GT_RANKS_THREADS)
		out->threads = count_local_ranks(c, o);
	if (o->link || out->world.world > 1 || !o->argv)
		return GT_OK; /* this process starts no ranks: they have been started, or cannot be (argv) */
	if (ranks == GT_RANKS_PROCESSES)
		out->nproc = count_local_ranks(c, o);
	out->launch = out->nproc > 1 || o->nnodes > 1 || o->max_restarts > 0;
	if (out->launch && o->nnodes > 1 && !out->token_file)
		return gt_fail(err, GT_EUSAGE,
		               "--nnodes %d: expected also --token-file, a file of 64 hexadecimal digits that is the same on every host and that "
		               "no other user can read", o->nnodes);
	return out->launch && o->nnodes > 1 ? gt_team_check_hosts(o->master_addr, err) : GT_OK;
}

void gt_ranks_use_one(struct gt_conf *c)
{
	c->parallel.mode = GT_MODE_SINGLE;
	c->parallel.nproc = 1;
}

/* ---- launch and restart ------------------------------------------------------------------------------------------------------- */
struct launch {
	const struct gt_conf *c;
	const struct gt_run_opts *o;
	const char *dir;
	double began;
	int64_t step, serial; /* step of the checkpoint from which the run resumes, -1: none; serial number of the newest checkpoint */
	char limit[48], from[48], *argv[1024];
};

/* Returns whether the directory has a checkpoint. A new run starts in a directory without checkpoints, so a checkpoint there is its own. */
static bool has_checkpoint(const char *dir)
{
	struct gt_ckpt *c;
	if (!*dir || gt_ckpt_open(dir, "latest", false, NULL, NULL, &c, NULL) != GT_OK)
		return false;
	gt_ckpt_close(c);
	return true;
}

/* Returns whether the next attempt must start from the checkpoint l->step although the directory may have later ones: a run that went back
 * to an earlier checkpoint restarts from that checkpoint until its first commit, because the newest checkpoint belongs to the abandoned
 * line. */
static bool goes_back(const struct launch *l)
{
	int64_t newest;
	return l->step >= 0 && gt_ckpt_newest_serial(l->dir, &newest, NULL) == GT_OK && newest == l->serial;
}

/* Returns the command line of an attempt. step: value of --from; -1: none. NULL: the time limit of the run has passed, or there are too
 * many arguments. */
static char *const *make_attempt_args(struct launch *l, bool resume, int64_t step)
{
	char *const *from = resume ? l->o->resume_argv : l->o->run_argv;
	size_t n = 0;
	for (; from[n]; n++) {
		if (n + 5 >= sizeof l->argv / sizeof *l->argv)
			return NULL;
		l->argv[n] = from[n];
	}
	if (l->o->time_limit_s > 0) { /* the limit applies to the whole run: pass the remaining time */
		double left = l->o->time_limit_s - (gt_clock() - l->began);
		if (left <= 1)
			return NULL;
		snprintf(l->limit, sizeof l->limit, "--time-limit=%.0fs", left);
		l->argv[n++] = l->limit;
	}
	if (step >= 0) {
		snprintf(l->from, sizeof l->from, "--from=%lld", (long long)step);
		l->argv[n++] = l->from;
	}
	l->argv[n++] = "--";
	l->argv[n++] = (char *)(resume ? l->dir : l->c->path);
	l->argv[n] = NULL;
	return l->argv;
}

static char *const *next_attempt_args(void *user, const struct gt_launch_end *last)
{
	struct launch *l = user;
	(void)last;
	return make_attempt_args(l, !l->o->run_argv || has_checkpoint(l->dir), goes_back(l) ? l->step : -1);
}

/* Returns the step of the newest checkpoint, or of the checkpoint with this step if `step` is not -1; -1: there is none. */
static int64_t find_checkpoint(const char *dir, int64_t step)
{
	struct gt_ckpt *c;
	char name[24] = "latest";
	if (step >= 0)
		snprintf(name, sizeof name, "%lld", (long long)step);
	if (gt_ckpt_open(dir, name, false, NULL, NULL, &c, NULL) != GT_OK)
		return -1;
	step = gt_ckpt_meta(c)->step;
	gt_ckpt_close(c);
	return step;
}

static struct gt_launch_from find_start(void *user)
{
	const struct launch *l = user;
	bool exact = goes_back(l);
	return (struct gt_launch_from){exact ? l->step : find_checkpoint(l->dir, -1), exact};
}

static char *const *elastic_args(void *user, const struct gt_launch_from *from, struct gt_err *err)
{
	struct launch *l = user;
	char *const *args = NULL;
	if (from->step < 0 && !l->o->run_argv)
		gt_fail(err, GT_ENOINPUT, "host 0 starts the run from the beginning: start this host with `gtrain run`, too");
	else if (from->step >= 0 && find_checkpoint(l->dir, from->step) < 0)
		gt_fail(err, GT_ENOINPUT, "%s: there is no checkpoint of step %lld, from which host 0 continues: the hosts of a run with --nnodes "
		        "%d:%d must share the directory of the run", l->dir, (long long)from->step, l->o->min_nodes, l->o->nnodes);
	else if (!(args = make_attempt_args(l, from->step >= 0, from->exact ? from->step : -1)))
		gt_fail(err, GT_EPEER, "the time limit of the run has passed between two attempts");
	return args;
}

static void forward_line(void *user, const char *line)
{
	const struct launch *l = user;
	if (l->o->say)
		l->o->say(l->o->user, line);
}

/* Computes a digest of what must be equal on all hosts. */
static void hash_identity(const struct gt_conf *c, unsigned char out[GT_TOKEN_SIZE])
{
	struct gt_sha256 s;
	gt_sha256_start(&s);
	gt_sha256_add(&s, GT_VERSION, sizeof GT_VERSION);
	gt_sha256_add(&s, c->text, strlen(c->text));
	gt_sha256_end(&s, out);
}

enum gt_code gt_ranks_launch(const struct gt_ranks *r, const struct gt_conf *c, const char *dir, const struct gt_ckpt *from,
                             const struct gt_run_opts *o, struct gt_err *err)
{
	unsigned char token[GT_TOKEN_SIZE], identity[GT_TOKEN_SIZE];
	struct gt_launch_end end;
	struct launch l = {.c = c, .o = o, .dir = dir, .began = gt_clock(), .step = from ? gt_ckpt_meta(from)->step : -1};
	struct gt_launch_spec spec = {
		.nproc = r->nproc,
		.node = o->node_rank,
		.node_rank = o->node_rank,
		.nnodes = o->nnodes,
		.min_nodes = o->min_nodes,
		.addr = o->master_addr,
		.port = o->master_port ? o->master_port : MASTER_PORT,
		.argv = o->argv,
		.timeout_s = gt_strategy_of(c->parallel.mode)->ranks == GT_RANKS_PROCESSES ? c->parallel.timeout : 0,
		.max_restarts = o->resume_argv ? o->max_restarts : 0,
		.pin = r->nproc > 1,
		.capture = r->capture,
		.again = next_attempt_args,
		.find_from = find_start,
		.args_from = elastic_args,
		.identity = identity,
		.say = forward_line,
		.user = &l,
	};
	if (o->nnodes > 1) {
		GT_TRY(gt_token_read(r->token_file, token, err));
		spec.token = token;
	}
	if (from)
		GT_TRY(gt_ckpt_newest_serial(dir, &l.serial, err));
	hash_identity(c, identity);
	size_t existed = *dir ? gt_ckpt_dir_existing(dir) : 0;
	ino_t log = gt_run_log_inode(dir);
	enum gt_code code = gt_launch_run(&spec, &end, err);
	if (code != GT_OK && *dir && !o->node_rank)
		gt_run_end_add(dir, log, code, end.why);
	if (code != GT_OK && *dir && !from && !o->node_rank)
		gt_ckpt_dir_clean(dir, existed);
	explicit_bzero(token, sizeof token);
	if (code == GT_OK && o->node_rank)
		forward_line(&l, "the run has ended; its result is on host 0");
	if (code == GT_OK && r->capture && end.asked) /* the signal also ends what the caller would do after this run */
		return gt_fail(err, (enum gt_code)(128 + end.asked), "ended by signal %d (%s)", end.asked, strsignal(end.asked));
	return code;
}

/* ---- a rank ------------------------------------------------------------------------------------------------------------------- */
const char *gt_rank_device(const char *word, const struct gt_world *w, char *buf, size_t size)
{
	if (w->local_world < 2 || (strcmp(word, "cuda") && strcmp(word, "auto")))
		return word;
	int n = gt_device_choice(word);
	if (n < 1)
		return word;
	snprintf(buf, size, "cuda:%d", w->local_rank % n);
	return buf;
}
