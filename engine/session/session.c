#include "session/session.h"
#include "base/version.h"
#include "gtrain.h"
#include "ir/op.h"
#include "par/pipe.h"
#include "plan/fuse.h"
#include "plan/recompute.h"
#include "plan/syncbn.h"
#include "session/batch_partition.h"
#include "session/session_data.h"
#include "session/session_pipe.h"
#include "session/session_team.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const gt_split_names[GT_SPLITS] = {"train", "valid", "test"};
const char *const gt_precision_names[] = {"fp32", "tf32", "bf16", "fp16"};

enum gt_code gt_compute_dtype(const struct gt_conf *c, const char *backend, enum gt_dtype *out, struct gt_err *err)
{
	bool cuda = !strcmp(backend, "cuda"), null = !strcmp(backend, "null");
	switch ((enum gt_precision)c->precision) {
	case GT_PREC_FP32:
		*out = GT_F32;
		return GT_OK;
	case GT_PREC_BF16:
		*out = GT_BF16;
		return GT_OK;
	case GT_PREC_TF32:
		*out = GT_F32;
		if (cuda || null)
			return GT_OK;
		return gt_conf_refuse(c, "precision", err, "precision = \"tf32\" and device \"%s\" do not go together: tf32 is a mode of NVIDIA GPUs; use \"fp32\"", backend);
	case GT_PREC_FP16:
		*out = GT_F16;
		if (cuda || null)
			return GT_OK;
		break;
	}
	return gt_conf_refuse(c, "precision", err, "precision = \"fp16\" and device \"%s\" do not go together: it has no f16 arithmetic; use \"bf16\"", backend);
}

enum gt_code gt_device_for(const struct gt_conf *c, const char *word, const struct gt_dev_opts *opts, struct gt_device *out, struct gt_err *err)
{
	enum gt_code code = gt_device_open(word, opts, out, err);
	/* A rank's "cuda:1" is the config's "cuda". */
	if (code != GT_EUNAVAILABLE || !err || strncmp(c->device, "cuda", 4) != 0 || strncmp(word, c->device, strlen(c->device)) != 0)
		return code;
	struct gt_err said = *err;
	gt_conf_refuse(c, "device", err, "expected \"auto\" or \"cpu\" on this machine, got \"%.40s\": %s", c->device, said.msg);
	return err->code = code;
}

/* What the schema allows but this build cannot run is refused here, by both names. */
static enum gt_code check_features(const struct gt_conf *c, struct gt_session *s, int rank, int world, struct gt_err *err)
{
	s->strategy = gt_strategy_of(c->parallel.mode);
	if (c->parallel.nproc > 1 && c->parallel.mode == GT_MODE_SINGLE)
		return gt_conf_refuse(c, "parallel.nproc", err, "parallel.nproc = %lld and parallel.mode = \"single\" do not go together",
		                      (long long)c->parallel.nproc);
	return s->strategy->position(c, rank, world, &s->at, err);
}

/* The same kernels; part of the memory may be another. */
static bool fits(const struct gt_plan_key *a, const struct gt_plan_key *b)
{
	if (a->idle || b->idle)
		return a->idle && b->idle;
	return a->n == b->n && a->train == b->train && a->loss == b->loss && a->accumulate == b->accumulate && a->stage == b->stage;
}

static enum gt_code graph_for(struct gt_session *s, const struct gt_plan_key *w, int views, struct gt_graph **out, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	enum gt_dtype compute;
	struct gt_graph *g;
	GT_TRY(gt_compute_dtype(c, s->family, &compute, err));
	struct gt_model_spec model = c->model;
	model.sync_bn = s->sync_bn;
	GT_TRY(gt_graph_build(s->arena, &model, w->n * views, compute, w->train, &g, err));
	if (views > 1)
		GT_TRY(gt_graph_views(g, views, err));
	if (w->loss)
		GT_TRY(gt_graph_loss(g, &s->loss, err));
	if (w->train)
		GT_TRY(gt_graph_differentiate(g, err));
	GT_TRY(gt_graph_verify(g, err));
	GT_TRY(gt_graph_fuse(g, err));
	if (w->train && s->sync_bn)
		GT_TRY(gt_graph_sync_bn(g, GT_GROUP_DATA, s->at.ndata, w->all, err));
	if (w->idle) {
		*out = g;
		return gt_graph_sync_bn_idle(g, err);
	}
	if (w->train)
		GT_TRY(gt_graph_recompute(g, c->model.layers, c->train.recompute, err));
	s->learned = gt_graph_num_params(g);
	if (gt_session_piped(s))
		GT_TRY(gt_session_pipe_stage(s, w, &g, err));
	*out = g;
	if (c->reproducible != GT_REPRO_WORLD) /* what can be joined depends on how a pipeline is cut, and bits must not */
		GT_TRY(gt_plan_fuse_for_backend(s->space, g, w->accumulate, c->reproducible != GT_REPRO_NONE, err));
	if (w->train && s->space->cut.factors) {
		struct gt_apply apply;
		GT_TRY(gt_optim_apply(&s->optim, g, &apply, err));
		return gt_plan_factors(g, &apply, s->at.ndata, s->at.data, err);
	}
	if (!w->train || s->units > 1 || s->at.world > 1 || gt_session_piped(s) || !gt_optim_fused_update(&s->optim))
		return GT_OK;
	struct gt_apply apply;
	GT_TRY(gt_optim_apply(&s->optim, g, &apply, err));
	return gt_plan_fuse_updates(s->space, g, &apply, err);
}

/* Where ranks have parameters in common, they may make the update together instead of adding up gradients first. */
static enum gt_code choose_factors(struct gt_session *s, struct gt_err *err)
{
	struct gt_shard_spec *cut = &s->space->cut;
	struct gt_plan_key like = {.n = gt_part(s->micro, s->slice.parts, 0, NULL), .all = s->micro, .train = true, .loss = true};
	struct gt_graph *g;
	struct gt_apply apply;
	bool pay;
	if (!cut->common || gt_session_piped(s) || s->units > 1 || s->loss.op->code == GT_OP_MSE || s->conf->reproducible == GT_REPRO_WORLD || !gt_optim_fused_update(&s->optim))
		return GT_OK;
	GT_TRY(graph_for(s, &like, 1, &g, err));
	GT_TRY(gt_optim_apply(&s->optim, g, &apply, err));
	GT_TRY(gt_plan_factors_pay(s->space, g, &apply, s->at.ndata, &pay, err));
	if (pay)
		*cut = (struct gt_shard_spec){.bucket_bytes = cut->bucket_bytes, .first_bytes = cut->first_bytes, .common = true, .factors = true};
	return GT_OK;
}

static enum gt_code keep(struct gt_session *s, const struct gt_plan_key *w, struct gt_plan *p, struct gt_err *err)
{
	if (s->nplans == GT_PLANS)
		return gt_fail(err, GT_EINTERNAL, "too many plans");
	s->plan_key[s->nplans] = *w;
	s->plan[s->nplans++] = p;
	return GT_OK;
}

enum gt_code gt_session_plan(struct gt_session *s, const struct gt_plan_key *w, struct gt_plan **out, struct gt_err *err)
{
	int views = w->train ? 1 : gt_session_views(s->conf);
	struct gt_plan *base = NULL;
	for (int i = 0; i < s->nplans; i++) {
		struct gt_plan *p = s->plan[i];
		if (!fits(&s->plan_key[i], w))
			continue;
		if (p->level == w->level && p->copy == w->copy) {
			*out = p;
			return GT_OK;
		}
		base = p->of ? p->of : p;
	}
	if (!base) {
		struct gt_graph *g;
		GT_TRY(graph_for(s, w, views, &g, err));
		GT_TRY(gt_plan_make(s->space, g, w->accumulate, s->conf->reproducible != GT_REPRO_NONE, &base, err));
		GT_TRY(keep(s, w, base, err));
	}
	*out = base;
	if (!w->level && !w->copy)
		return GT_OK;
	GT_TRY(gt_plan_instance(base, 0, w->level, w->copy, out, err));
	return keep(s, w, *out, err);
}

/* The program of one optimizer step over n samples of all ranks. */
static enum gt_code train_prog(struct gt_session *s, int64_t n, struct gt_prog *out, struct gt_err *err)
{
	struct gt_job job = {.arena = s->arena, .space = s->space, .samples = n, .update = &s->optim.steps, .at = s->at,
	                     .schedule = (enum gt_pipe_schedule)s->conf->parallel.schedule, .nstages = gt_pipe_stages(s->conf, s->at.npipe),
	                     .queues = s->queues};
	GT_TRY(gt_batch_train_jobs(s, n, &job, err));
	if (s->conf->parallel.deferred_bn)
		GT_TRY(gt_session_pipe_bn_commit(s, &job, err));
	if (!s->optim.check.kernel)
		GT_TRY(gt_optim_prepare(&s->optim, s->conf->path, s->space, s->conf->reproducible != GT_REPRO_NONE, err));
	return s->strategy->schedule(&job, out, err);
}

static int loader_depth(const struct gt_conf *c, int64_t micro, bool augmented)
{
	if (c->data.prefetch >= 0)
		return (int)c->data.prefetch;
	/* Measured on 2 cores: waking a thread for a batch of small images costs more than gathering it. */
	int64_t bytes = micro * c->model.input[0] * c->model.input[1] * c->model.input[2] * 4;
	return augmented || bytes > 1 << 20 ? 2 : 0;
}

static enum gt_code loader_spec(const struct gt_session *s, enum gt_split_id split, int64_t batch, int64_t micro, bool train, struct gt_loader_spec *spec,
                                struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	*spec = (struct gt_loader_spec){.device = &s->device,
	                                .view = &s->view[split],
	                                .x = s->space->first->values[s->space->first->input].desc,
	                                .batch = batch,
	                                .micro = micro,
	                                .slice = train ? s->slice : gt_batch_eval_slice(s),
	                                .shuffle = train && c->data.shuffle,
	                                .drop_last = train && c->data.drop_last,
	                                .pad = train && s->slice.strided,
	                                .fill = train && s->space->cut.factors,
	                                .fill_target = (int32_t)s->loss.attr.ignore_index,
	                                .sampler = c->data.sampler,
	                                .seed = (uint64_t)c->seed,
	                                .ignore_index = s->loss.op->code == GT_OP_MSE ? -1 : s->loss.attr.ignore_index};
	GT_TRY(gt_session_gather(c, train, &spec->attr, err));
	spec->keep = train ? s->keep : 0;
	if (!gt_session_piped(s) || s->reads)
		spec->depth = loader_depth(c, micro / spec->slice.parts, spec->attr.augment);
	spec->event = GT_EVENTS - GT_EVENTS_ENGINE + 2 * (int)split;
	if (spec->fill)
		spec->rows = gt_space_at(s->space, s->rows);
	return GT_OK;
}

static enum gt_code loader_for(const struct gt_session *s, enum gt_split_id split, int64_t batch, int64_t micro, bool train, struct gt_loader **out,
                               struct gt_err *err)
{
	struct gt_loader_spec spec;
	GT_TRY(loader_spec(s, split, batch, micro, train, &spec, err));
	return gt_loader_open(&spec, out, err);
}

/* Where ranks apply weight gradients together, batches lie among the other rows that all read. */
static enum gt_code room_for_batches(struct gt_session *s, struct gt_err *err)
{
	struct gt_loader_spec spec;
	size_t *bytes = &s->space->bytes[GT_A_SHARED_ACT];
	if (!s->space->cut.factors)
		return GT_OK;
	GT_TRY(loader_spec(s, GT_TRAIN, s->batch, s->micro, true, &spec, err));
	s->rows = (struct gt_range){GT_A_SHARED_ACT, *bytes};
	*bytes += (size_t)gt_loader_buffers(&spec) * gt_loader_rows(&spec);
	return GT_OK;
}

/* A batch of an evaluation, of n samples of all ranks. */
static enum gt_code eval_prog(struct gt_session *s, int64_t n, struct gt_prog *out, struct gt_err *err)
{
	struct gt_job job = {.arena = s->arena, .space = s->space, .samples = n, .at = s->at, .nstages = gt_pipe_stages(s->conf, s->at.npipe)};
	GT_TRY(gt_batch_eval_jobs(s, n, &job, err));
	return s->strategy->schedule(&job, out, err);
}

static enum gt_code eval_progs(struct gt_session *s, enum gt_split_id split, struct gt_err *err)
{
	struct gt_eval_prog *e = &s->eval[split];
	int64_t batch = s->conf->data.eval_batch ? s->conf->data.eval_batch : s->batch, n = s->view[split].n;
	if (n <= 0)
		return GT_OK;
	if (batch > n)
		batch = n;
	e->batch = batch;
	e->nfull = n / batch;
	e->ntail = n % batch;
	GT_TRY(eval_prog(s, batch, &e->full, err));
	return e->ntail ? eval_prog(s, e->ntail, &e->tail, err) : GT_OK;
}

/* The layer whose `out` is the number of outputs. */
static int last_with_out(const struct gt_conf *c)
{
	for (int i = c->model.nlayers - 1; i > 0; i--)
		for (const struct gt_attr_def *d = c->model.layers[i].op->attrs; d && d->key; d++)
			if (!strcmp(d->key, "out"))
				return i;
	return 0;
}

/* Every label that counts must be one of the model's outputs: told now, not by the kernel that meets the first one that is not. The
 * readers have checked that labels are below the data's own number of classes. */
static enum gt_code check_classes(const struct gt_session *s, struct gt_err *err)
{
	const struct gt_graph *g = s->space->first;
	if (g->output < 0) /* another stage has it */
		return GT_OK;
	const struct gt_tdesc *out = gt_graph_desc(g, g->output);
	for (int i = 0; i < 2; i++) {
		int64_t classes = s->data[i].classes;
		if (classes > 0 && s->loss.attr.ignore_index == classes - 1)
			classes--;
		if (out->rank == 2 && classes > out->dim[1]) {
			gt_fail(err, GT_ECONFIG, "expected at least %lld outputs, one a class of %s, got %lld; write out = %lld", (long long)classes,
			        *s->conf->data.name ? s->conf->data.name : "the data", (long long)out->dim[1], (long long)classes);
			return err ? gt_conf_at_layer(s->conf, last_with_out(s->conf), err) : GT_ECONFIG;
		}
	}
	return GT_OK;
}

static enum gt_code build(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	bool there = spec->team && spec->team->comm;
	s->team = spec->team;
	GT_TRY(check_features(c, s, there ? spec->team->world.rank : spec->rank, there ? spec->team->world.world : spec->world ? spec->world : 1, err));
	GT_TRY(gt_conf_loss(c, &s->loss, err));
	int threads = (int)(c->threads || !spec->team ? c->threads : spec->team->threads);
	if (c->reproducible == GT_REPRO_WORLD && !c->threads) /* sums are cut over threads, so these must be as many whatever the number of ranks */
		threads = 1;
	struct gt_dev_opts opts = {.threads = threads, .deterministic = c->reproducible != GT_REPRO_NONE, .winograd = c->winograd, .autotune = c->autotune, .tf32 = c->precision == GT_PREC_TF32};
	const char *word = spec->device ? spec->device : c->device;
	GT_TRY(gt_device_for(c, spec->paper ? "null" : word, &opts, &s->device, err));
	s->queues = !s->device.be->host_memory && s->device.be->host_alloc;
	s->family = !spec->paper ? s->device.be->name : !strncmp(word, "cuda", 4) ? "cuda" : !strcmp(word, "cpu") ? "cpu" : "null";
	s->queues |= spec->paper && !strcmp(s->family, "cuda");
	GT_TRY(gt_session_data(s, spec, err));
	gt_optim_init(&s->optim, &c->train);
	GT_TRY(gt_space_open(s->device.be, s->device.dev, s->optim.nstates, &s->space, err));
	GT_TRY(gt_batch_sizes(s, spec->train, err));
	s->space->ranks = s->at.world;
	s->sync_bn = c->parallel.sync_bn && s->at.ndata > 1;
	if (s->strategy->shard)
		s->strategy->shard(c, &s->at, gt_session_common(spec, c, s->device.be), &s->space->cut);

	if (spec->train)
		GT_TRY(choose_factors(s, err));
	if (spec->train) {
		int64_t known = s->samples > 0 ? s->samples : s->batch;
		if (known >= s->batch)
			GT_TRY(train_prog(s, s->batch, &s->full, err));
		/* A run of train.steps may end before the first short batch. In fp16, skipped steps are made up for with later batches. */
		bool ends_before = c->train.steps > 0 && c->train.steps <= known / s->batch && c->precision != GT_PREC_FP16;
		if (known % s->batch && !ends_before)
			GT_TRY(train_prog(s, known % s->batch, &s->tail, err));
	}
	for (int i = 0; i < GT_SPLITS; i++)
		if (spec->eval[i])
			GT_TRY(eval_progs(s, (enum gt_split_id)i, err));
	if (spec->predict)
		GT_TRY(gt_session_plan(s, &(struct gt_plan_key){.n = spec->predict}, &s->predict, err));
	if (!s->nplans)
		return gt_fail(err, GT_ENOINPUT, "%s: nothing to do: the split has no samples", c->path);
	GT_TRY(check_classes(s, err));
	s->space->slots = s->queues ? GT_WINDOW : 1;
	s->space->micros = (int)s->units;
	GT_TRY(room_for_batches(s, err));
	gt_space_size(s->space);
	if (spec->sized)
		GT_TRY(spec->sized(spec->user, s, err));
	if (spec->dry)
		return GT_OK;

	s->exec.link = s->team ? s->team->link : NULL;
	if (there)
		GT_TRY(gt_session_join(s, err));
	if (gt_space_alloc(s->space, err) != GT_OK) {
		enum gt_code code = err ? err->code : GT_EFAIL;
		if (err && code == GT_EFAIL) {
			struct gt_err said = *err;
			gt_conf_refuse(c, "data.batch", err, "%s", said.msg);
			err->code = code;
		}
		return code;
	}
	for (int i = 0; i < s->nplans; i++)
		gt_plan_bind(s->plan[i]);
	gt_prog_bind(&s->full, s->space);
	gt_prog_bind(&s->tail, s->space);
	for (int i = 0; i < GT_SPLITS; i++) {
		gt_prog_bind(&s->eval[i].full, s->space);
		gt_prog_bind(&s->eval[i].tail, s->space);
	}
	if (spec->train) {
		gt_optim_bind(&s->optim, s->space);
		gt_session_pipe_bind(s);
		GT_TRY(loader_for(s, GT_TRAIN, s->batch, s->micro, true, &s->loader, err));
	}
	for (int i = 0; i < GT_SPLITS; i++)
		if (s->eval[i].nfull) {
			GT_TRY(loader_for(s, (enum gt_split_id)i, s->eval[i].batch, s->eval[i].batch, false, &s->eval[i].loader, err));
		}
	s->exec.be = s->device.be;
	s->exec.dev = s->device.dev;
	s->exec.space = s->space;
	const struct gt_comm *joins = s->exec.group[GT_GROUP_WORLD];
	s->exec.graphs = c->cuda_graphs && (!joins || joins->api->async); /* what goes through the host cannot be recorded */
	s->exec.most = (int)c->window;
	s->exec.lockstep = gt_session_scales(s);
	GT_TRY(gt_exec_open(&s->exec, err));
	return spec->train && gt_session_scales(s) ? gt_session_set_scale(s, c->train.loss_scale.init, 0, err) : GT_OK;
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
		code = build(s, spec, err);
	if (code != GT_OK) {
		gt_session_close(s);
		return code;
	}
	*out = s;
	return GT_OK;
}

void gt_session_close(struct gt_session *s)
{
	if (!s)
		return;
	gt_exec_close(&s->exec);
	gt_loader_close(s->loader);
	for (int i = 0; i < GT_SPLITS; i++)
		gt_loader_close(s->eval[i].loader);
	if (s->space)
		gt_optim_close(&s->optim, s->space);
	gt_session_pipe_close(s);
	for (int i = 0; i < s->nplans; i++)
		gt_plan_close(s->plan[i]);
	gt_space_close(s->space);
	gt_session_leave(s);
	gt_session_data_close(s);
	gt_device_close(&s->device);
	gt_arena_close(s->arena);
	free(s);
}

/* The next `times` batches of `all`, one behind the other, without waiting for any; `behind` follow. */
static enum gt_code eval_run(struct gt_session *s, const struct gt_prog *p, struct gt_loader *l, int64_t times, int64_t behind, int64_t all,
                             struct gt_err *err)
{
	while (times > 0) {
		int n = gt_exec_window_size(&s->exec, p, times);
		struct gt_step_args *step_args;
		GT_TRY(gt_exec_numbers(&s->exec, &step_args, err));
		for (int i = 0; i < n; i++) {
			step_args[i] = (struct gt_step_args){.seed = (uint64_t)s->conf->seed, .stride = 1, .inv_weight = 1};
			GT_TRY(gt_loader_claim(l, 1, &step_args[i], err));
		}
		GT_TRY(gt_exec_launch(&s->exec, p, l, n, err));
		times -= n;
		if (s->watch)
			s->watch(s->watch_user, 1 - (double)(times + behind) / (double)all);
	}
	return GT_OK;
}

struct gt_scores gt_session_scores(const struct gt_metrics *m)
{
	double n = m->count > 0 ? (double)m->count : NAN;
	return (struct gt_scores){m->weight > 0 ? m->loss / m->weight : 0, (double)m->correct / n, (double)m->top5 / n, m->count};
}

enum gt_code gt_session_eval(struct gt_session *s, enum gt_split_id split, struct gt_scores *out, struct gt_err *err)
{
	struct gt_eval_prog *e = &s->eval[split];
	struct gt_metrics m;
	int64_t all = e->nfull + (e->ntail ? 1 : 0);
	GT_TRY(gt_session_sync_buffers(s, err));
	GT_TRY(gt_exec_metrics(&s->exec, true, &m, err));
	GT_TRY(gt_loader_start(e->loader, 0, 0, err));
	GT_TRY(eval_run(s, &e->full, e->loader, e->nfull, all - e->nfull, all, err));
	GT_TRY(eval_run(s, &e->tail, e->loader, e->ntail ? 1 : 0, 0, all, err));
	gt_loader_stop(e->loader);
	GT_TRY(gt_exec_metrics(&s->exec, true, &m, err));
	GT_TRY(gt_session_sum(s, &m, err));
	*out = gt_session_scores(&m);
	return GT_OK;
}
