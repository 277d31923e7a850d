/* Opens a session, part by part in the order of their dependencies, and closes it in reverse order. */
#include "session/batch_partition.h"
#include "session/session_data.h"
#include "session/session_pipe.h"
#include "session/session_plan.h"
#include "session/session_programs.h"
#include "session/session_team.h"
#include <stdlib.h>
#include <string.h>

/* Finds the position of this rank in the world. Rejects settings that are valid but cannot be combined; the error names both. */
static enum gt_code find_position(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	bool there = spec->team && spec->team->comm;
	int rank = there ? spec->team->world.rank : spec->rank;
	int world = there ? spec->team->world.world : spec->world ? spec->world : 1;
	s->team = spec->team;
	s->strategy = gt_strategy_of(c->parallel.mode);
	GT_TRY(gt_strategy_check_nproc(c, 0, err));
	GT_TRY(s->strategy->position(c, rank, world, &s->at, err));
	s->sync_bn = c->parallel.sync_bn && s->at.ndata > 1;
	return GT_OK;
}

/* Returns whether a thread executes the communication stream, in this session or in the run that a dry session plans. Ranks that share
 * memory compute most of their communication themselves: it would not be faster in a second thread. The transfers of a pipeline are not in
 * a stream of their own on a CPU. */
static bool overlaps_communication(const struct gt_session *s, const struct gt_session_spec *spec)
{
	const struct gt_comm *world = s->team ? s->team->comm : NULL;
	bool planned = spec->dry && spec->apart && s->at.world > 1 && strcmp(s->family, "cuda") != 0;
	bool between_hosts = world ? s->device.be->host_memory && !world->api->common : planned;
	return between_hosts && spec->train && !spec->against && s->at.npipe == 1;
}

static enum gt_code open_device(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	const char *word = spec->device ? spec->device : c->device;
	int threads = (int)(c->threads || !spec->team ? c->threads : spec->team->threads);
	/* one thread, because the last bits of a sum also depend on the number of threads */
	if (c->reproducible == GT_REPRO_WORLD && !c->threads)
		threads = 1;
	struct gt_dev_opts opts = {.threads = threads,
	                           .deterministic = c->reproducible != GT_REPRO_NONE,
	                           .winograd = c->winograd,
	                           .autotune = c->autotune,
	                           .cudnn_attention = c->cudnn_attention,
	                           .tf32 = c->precision == GT_PREC_TF32};
	if (!spec->dry)
		GT_TRY(gt_device_check_computes(word, err));
	GT_TRY(gt_device_for(c, spec->paper ? "null" : word, &opts, &s->device, err));
	if (spec->against)
		GT_TRY(gt_session_wrap_device(s, spec->against, &opts, err));
	s->queues = !s->device.be->host_memory && s->device.be->host_alloc;
	bool cuda = spec->paper ? !strncmp(word, "cuda", 4) : !strcmp(word, "null:cuda");
	s->family = cuda ? "cuda" : !spec->paper ? s->device.be->name : !strcmp(word, "cpu") ? "cpu" : "null";
	s->queues |= cuda;
	s->overlaps = overlaps_communication(s, spec);
	return GT_OK;
}

static enum gt_code open_space(struct gt_session *s, struct gt_err *err)
{
	gt_optim_init(&s->optim, &s->conf->train);
	GT_TRY(gt_space_open(s->device.be, s->device.dev, s->optim.nstates, &s->space, err));
	s->space->layout.more_states = s->optim.ema;
	s->space->memory.ranks = s->at.world;
	return GT_OK;
}

static enum gt_code alloc_memory(struct gt_session *s, struct gt_err *err)
{
	enum gt_code code = gt_space_alloc(s->space, err);
	if (err && code == GT_EFAIL) { /* after a failed allocation, the error names a config key that reduces memory use */
		struct gt_err said = *err;
		gt_conf_refuse(s->conf, "data.batch", err, "%s", said.msg);
		err->code = code;
	}
	return code;
}

static enum gt_code open_exec(struct gt_session *s, bool train, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	const struct gt_comm *world = s->exec.group[GT_GROUP_WORLD];
	s->exec.be = s->device.be;
	s->exec.dev = s->device.dev;
	s->exec.space = s->space;
	s->exec.overlaps = s->overlaps;
	/* Communication through the host cannot be recorded. Graphs of several GPUs in one process may deadlock: cudaGraphLaunch can block
	 * before all graphs are launched (NCCL user guide, "Using NCCL with CUDA Graphs"). */
	s->exec.graphs = c->cuda_graphs && (!world || (world->api->async && s->strategy->ranks != GT_RANKS_THREADS));
	s->exec.max_window_steps = (int)c->window;
	s->exec.lockstep = gt_session_scales_loss(s);
	GT_TRY(gt_exec_open(&s->exec, err));
	return train && gt_session_scales_loss(s) ? gt_session_set_scale(s, c->train.loss_scale.init, 0, err) : GT_OK;
}

/* Divides the flat arenas among the ranks. */
static enum gt_code shard_arenas(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err)
{
	struct gt_offers offers = {.shared_memory = gt_session_shares_memory(spec, s->conf, s->device.be)};
	if (!s->strategy->shard)
		return GT_OK;
	if (spec->train && offers.shared_memory)
		GT_TRY(gt_session_factors_pay(s, &offers.factors_pay, err));
	s->strategy->shard(s->conf, &s->at, &offers, &s->space->shards.spec);
	return GT_OK;
}

static enum gt_code open_parts(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err)
{
	GT_TRY(find_position(s, spec, err));
	GT_TRY(gt_conf_loss(s->conf, &s->loss, err));
	GT_TRY(open_device(s, spec, err));
	s->data.ckpt = spec->ckpt;
	s->data.dry = spec->dry;
	GT_TRY(gt_session_data_open(s, spec, err));
	GT_TRY(open_space(s, err));
	GT_TRY(gt_batch_partition_open(s, spec->train, err));
	s->optim.per_epoch = s->batch.steps_per_epoch;
	if (spec->samples_only)
		return GT_OK;
	GT_TRY(gt_session_pipe_open(s, spec->train, err));
	GT_TRY(shard_arenas(s, spec, err));
	s->space->constant = spec->inference && !gt_session_is_pipeline(s) && !gt_space_sharded(s->space, GT_A_PARAM) &&
	                     !s->space->shards.spec.shared_params;
	GT_TRY(gt_session_programs_open(s, spec, err));
	if (spec->sized)
		GT_TRY(spec->sized(spec->user, s, err));
	if (spec->dry)
		return GT_OK;
	GT_TRY(gt_session_comm_open(s, err));
	GT_TRY(alloc_memory(s, err));
	GT_TRY(gt_session_programs_start(s, spec->train, err));
	return open_exec(s, spec->train, err);
}

enum gt_code gt_session_open(const struct gt_session_spec *spec, struct gt_session **out, struct gt_err *err)
{
	struct gt_session *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s)
		return gt_fail_memory(err, sizeof *s);
	s->conf = spec->conf;
	enum gt_code code = gt_arena_open(&s->arena, err);
	if (code == GT_OK)
		code = open_parts(s, spec, err);
	if (code != GT_OK) {
		gt_session_close(s);
		return code;
	}
	*out = s;
	return GT_OK;
}

/* It is also called after gt_session_open has failed: members that were not opened are zero. */
void gt_session_close(struct gt_session *s)
{
	if (!s)
		return;
	gt_exec_close(&s->exec);
	gt_session_programs_close(s);
	if (s->space)
		gt_optim_close(&s->optim, s->space);
	gt_space_close(s->space);
	gt_session_comm_close(s); /* closed after the space, because the space uses memory of the communicators */
	gt_session_data_close(s);
	gt_device_close(&s->device);
	gt_arena_close(s->arena);
	free(s);
}
