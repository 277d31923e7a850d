#include "run/session.h"
#include "run/session_data.h"
#include "gtrain.h"
#include "ir/op.h"
#include "plan/fuse.h"
#include "plan/recompute.h"
#include <stdlib.h>
#include <string.h>

const char *const gt_split_names[GT_SPLITS] = {"train", "valid", "test"};
const char *const gt_precision_names[] = {"fp32", "tf32", "bf16", "fp16"};

static enum gt_code compute_dtype(const struct gt_conf *c, const char *backend, enum gt_dtype *out, struct gt_err *err)
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
		return gt_fail(err, GT_ECONFIG, "%s: precision = \"tf32\" and device \"%s\" do not go together: tf32 is a mode of NVIDIA GPUs", c->path, backend);
	case GT_PREC_FP16:
		*out = GT_F16;
		if (cuda || null)
			return GT_OK;
		break;
	}
	return gt_fail(err, GT_ECONFIG, "%s: precision = \"fp16\" and device \"%s\" do not go together: it has no f16 arithmetic; use \"bf16\"", c->path, backend);
}

/* What the schema allows but this build cannot run is refused here, by both names. */
static enum gt_code check_features(const struct gt_conf *c, struct gt_session *s, struct gt_err *err)
{
	static const char *const modes[] = {"single", "dp", "ddp", "zero", "pipe"};
	s->strategy = gt_strategy_find(modes[c->parallel.mode]);
	if (!s->strategy)
		return gt_fail(err, GT_ECONFIG, "%s: parallel.mode = \"%s\": gtrain " GT_VERSION " runs \"single\" only", c->path, modes[c->parallel.mode]);
	if (c->parallel.nproc > 1)
		return gt_fail(err, GT_ECONFIG, "%s: parallel.nproc = %lld and parallel.mode = \"single\" do not go together", c->path, (long long)c->parallel.nproc);
	if (c->reproducible == GT_REPRO_WORLD)
		return gt_fail(err, GT_ECONFIG, "%s: reproducible = \"world\" and parallel.mode = \"single\" do not go together; use \"run\"", c->path);
	return GT_OK;
}

/* The plan for n samples; made once per (n, purpose, accumulation). */
static enum gt_code plan_for(struct gt_session *s, int64_t n, bool train, bool loss, bool accumulate, struct gt_plan **out, struct gt_err *err)
{
	int views = train ? 1 : gt_session_views(s->conf);
	struct gt_conf *c = s->conf;
	enum gt_dtype compute;
	struct gt_graph *g;
	for (int i = 0; i < s->nplans; i++) {
		const struct gt_graph *have = s->plan[i]->graph;
		if (have->batch == n * views && have->views == views && have->train == train && (have->metrics >= 0) == loss && s->plan[i]->accumulate == accumulate) {
			*out = s->plan[i];
			return GT_OK;
		}
	}
	if (s->nplans == (int)(sizeof s->plan / sizeof *s->plan))
		return gt_fail(err, GT_EINTERNAL, "too many plans");
	GT_TRY(compute_dtype(c, s->device.be->name, &compute, err));
	GT_TRY(gt_graph_build(s->arena, &c->model, n * views, compute, train, &g, err));
	if (views > 1)
		GT_TRY(gt_graph_views(g, views, err));
	if (loss)
		GT_TRY(gt_graph_loss(g, &s->loss, err));
	if (train)
		GT_TRY(gt_graph_differentiate(g, err));
	GT_TRY(gt_graph_verify(g, err));
	GT_TRY(gt_graph_fuse(g, err));
	if (train)
		GT_TRY(gt_graph_recompute(g, c->model.layers, c->train.recompute, err));
	if (train && s->accumulate == 1 && gt_optim_early(&s->optim)) {
		struct gt_apply apply;
		GT_TRY(gt_optim_apply(&s->optim, g, &apply, err));
		GT_TRY(gt_plan_early(s->space, g, &apply, err));
	}
	GT_TRY(gt_plan_make(s->space, g, accumulate, c->reproducible != GT_REPRO_NONE, out, err));
	s->plan[s->nplans++] = *out;
	return GT_OK;
}

/* The program of one optimizer step over n samples: full micro-batches, then what is left. */
static enum gt_code train_prog(struct gt_session *s, int64_t n, struct gt_prog *out, struct gt_err *err)
{
	int units = (int)((n + s->micro - 1) / s->micro);
	struct gt_plan **unit;
	GT_NEW(unit, s->arena, units, err);
	for (int i = 0; i < units; i++) {
		int64_t left = n - i * s->micro;
		GT_TRY(plan_for(s, left < s->micro ? left : s->micro, true, true, i > 0, &unit[i], err));
	}
	if (!s->optim.check.kernel)
		GT_TRY(gt_optim_prepare(&s->optim, s->conf->path, s->space, s->conf->reproducible != GT_REPRO_NONE, err));
	return s->strategy->schedule(s->arena, unit, units, &s->optim.steps, 0, 1, out, err);
}

static int loader_depth(const struct gt_conf *c, int64_t micro, bool augmented)
{
	if (c->data.prefetch >= 0)
		return (int)c->data.prefetch;
	/* Measured on 2 cores: waking a thread for a batch of small images costs more than gathering it. */
	int64_t bytes = micro * c->model.input[0] * c->model.input[1] * c->model.input[2] * 4;
	return augmented || bytes > 1 << 20 ? 2 : 0;
}

static enum gt_code loader_for(struct gt_session *s, enum gt_split_id split, int64_t batch, int64_t micro, bool train, struct gt_loader **out,
                               struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	struct gt_loader_spec spec = {.device = &s->device,
	                              .view = &s->view[split],
	                              .x = s->space->first->values[s->space->first->input].desc,
	                              .batch = batch,
	                              .micro = micro,
	                              .shuffle = train && c->data.shuffle,
	                              .drop_last = train && c->data.drop_last,
	                              .sampler = c->data.sampler,
	                              .seed = (uint64_t)c->seed,
	                              .ignore_index = s->loss.op->code == GT_OP_MSE ? -1 : s->loss.attr.ignore_index};
	GT_TRY(gt_session_gather(c, train, &spec.attr, err));
	spec.depth = loader_depth(c, micro, spec.attr.augment);
	spec.event = GT_EVENTS - GT_EVENTS_ENGINE + 2 * (int)split;
	return gt_loader_open(&spec, out, err);
}

static enum gt_code eval_progs(struct gt_session *s, enum gt_split_id split, struct gt_err *err)
{
	struct gt_eval_prog *e = &s->eval[split];
	int64_t batch = s->conf->data.eval_batch ? s->conf->data.eval_batch : s->batch, n = s->view[split].n;
	struct gt_plan *p;
	if (n <= 0)
		return GT_OK;
	if (batch > n)
		batch = n;
	e->nfull = n / batch;
	e->ntail = n % batch;
	GT_TRY(plan_for(s, batch, false, true, false, &p, err));
	GT_TRY(s->strategy->schedule(s->arena, &p, 1, NULL, 0, 1, &e->full, err));
	if (e->ntail) {
		GT_TRY(plan_for(s, e->ntail, false, true, false, &p, err));
		GT_TRY(s->strategy->schedule(s->arena, &p, 1, NULL, 0, 1, &e->tail, err));
	}
	return GT_OK;
}

static enum gt_code batch_sizes(struct gt_session *s, bool train, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	int64_t n = s->view[GT_TRAIN].n;
	s->batch = c->data.batch > 0 ? c->data.batch : c->data.batch_per_rank; /* one rank */
	s->accumulate = c->train.accumulate;
	if (s->batch % s->accumulate)
		return gt_fail(err, GT_ECONFIG, "%s: train.accumulate: expected a divisor of data.batch = %lld, got %lld", c->path, (long long)s->batch,
		               (long long)s->accumulate);
	s->micro = s->batch / s->accumulate;
	if (train && n >= 0) { /* an evaluation may read no training data */
		s->samples = c->data.drop_last ? n - n % s->batch : n;
		if (s->samples <= 0)
			return gt_fail(err, GT_ECONFIG, "%s: data.drop_last: expected at least data.batch = %lld training samples, got %lld", c->path,
			               (long long)s->batch, (long long)n);
		s->steps_per_epoch = (s->samples + s->batch - 1) / s->batch;
	}
	s->steps = c->train.steps > 0 ? c->train.steps : c->train.epochs * s->steps_per_epoch;
	return GT_OK;
}

/* Every label that counts must be one of the model's outputs: told now, not by the kernel that meets the first one that is not. The
 * readers have checked that labels are below the data's own number of classes. */
static enum gt_code check_classes(const struct gt_session *s, struct gt_err *err)
{
	const struct gt_graph *g = s->space->first;
	const struct gt_tdesc *out = gt_graph_desc(g, g->output);
	for (int i = 0; i < 2; i++) {
		int64_t classes = s->data[i].classes;
		if (classes > 0 && s->loss.attr.ignore_index == classes - 1)
			classes--;
		if (out->rank == 2 && classes > out->dim[1])
			return gt_fail(err, GT_ECONFIG, "%s: model.layers: expected at least %lld outputs, one a class of %s, got %lld", s->conf->path,
			               (long long)classes, s->conf->data.name, (long long)out->dim[1]);
	}
	return GT_OK;
}

static enum gt_code build(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err)
{
	struct gt_conf *c = s->conf;
	GT_TRY(check_features(c, s, err));
	GT_TRY(gt_conf_loss(c, &s->loss, err));
	struct gt_dev_opts opts = {.threads = (int)(c->threads || !spec->team ? c->threads : spec->team->threads), .deterministic = c->reproducible != GT_REPRO_NONE, .winograd = c->winograd, .autotune = c->autotune, .tf32 = c->precision == GT_PREC_TF32};
	GT_TRY(gt_device_open(spec->device ? spec->device : c->device, &opts, &s->device, err));
	GT_TRY(gt_session_data(s, spec, err));
	gt_optim_init(&s->optim, &c->train);
	GT_TRY(gt_space_open(s->device.be, s->device.dev, s->optim.nstates, &s->space, err));
	GT_TRY(batch_sizes(s, spec->train, err));

	if (spec->train) {
		int64_t known = s->samples > 0 ? s->samples : s->batch;
		if (known >= s->batch)
			GT_TRY(train_prog(s, s->batch, &s->full, err));
		if (known % s->batch)
			GT_TRY(train_prog(s, known % s->batch, &s->tail, err));
	}
	for (int i = 0; i < GT_SPLITS; i++)
		if (spec->eval[i])
			GT_TRY(eval_progs(s, (enum gt_split_id)i, err));
	if (spec->predict)
		GT_TRY(plan_for(s, spec->predict, false, false, false, &s->predict, err));
	if (!s->nplans)
		return gt_fail(err, GT_ENOINPUT, "%s: nothing to do: the split has no samples", c->path);
	GT_TRY(check_classes(s, err));
	if (spec->dry)
		return GT_OK;

	s->space->slots = s->device.be->host_memory ? 1 : GT_WINDOW;
	s->space->micros = (int)s->accumulate;
	GT_TRY(gt_space_alloc(s->space, err));
	for (int i = 0; i < s->nplans; i++)
		gt_plan_bind(s->plan[i]);
	if (spec->train) {
		gt_optim_bind(&s->optim, s->space);
		GT_TRY(loader_for(s, GT_TRAIN, s->batch, s->micro, true, &s->loader, err));
	}
	for (int i = 0; i < GT_SPLITS; i++)
		if (s->eval[i].nfull) {
			int64_t batch = s->eval[i].full.samples;
			GT_TRY(loader_for(s, (enum gt_split_id)i, batch, batch, false, &s->eval[i].loader, err));
		}
	s->exec = (struct gt_exec){.be = s->device.be, .dev = s->device.dev, .space = s->space, .graphs = c->cuda_graphs, .most = (int)c->window, .lockstep = gt_session_scales(s)};
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
	for (int i = 0; i < s->nplans; i++)
		gt_plan_close(s->plan[i]);
	gt_space_close(s->space);
	gt_session_data_close(s);
	gt_device_close(&s->device);
	gt_arena_close(s->arena);
	free(s);
}

/* `times` batches, one behind the other, without waiting for any. */
static enum gt_code eval_run(struct gt_session *s, const struct gt_prog *p, struct gt_loader *l, int64_t times, struct gt_err *err)
{
	while (times > 0) {
		int n = gt_exec_fit(&s->exec, p, times);
		struct gt_dyn *dyn;
		GT_TRY(gt_exec_numbers(&s->exec, &dyn, err));
		for (int i = 0; i < n; i++) {
			dyn[i] = (struct gt_dyn){.seed = (uint64_t)s->conf->seed, .stride = 1, .inv_weight = 1};
			GT_TRY(gt_loader_claim(l, 1, &dyn[i], err));
		}
		GT_TRY(gt_exec_launch(&s->exec, p, l, n, err));
		times -= n;
	}
	return GT_OK;
}

enum gt_code gt_session_eval(struct gt_session *s, enum gt_split_id split, struct gt_eval_numbers *out, struct gt_err *err)
{
	struct gt_eval_prog *e = &s->eval[split];
	struct gt_metrics m;
	GT_TRY(gt_exec_metrics(&s->exec, true, &m, err));
	GT_TRY(gt_loader_start(e->loader, 0, 0, err));
	GT_TRY(eval_run(s, &e->full, e->loader, e->nfull, err));
	GT_TRY(eval_run(s, &e->tail, e->loader, e->ntail ? 1 : 0, err));
	gt_loader_stop(e->loader);
	GT_TRY(gt_exec_metrics(&s->exec, true, &m, err));
	double n = m.count > 0 ? (double)m.count : 1;
	*out = (struct gt_eval_numbers){m.weight > 0 ? m.loss / m.weight : 0, (double)m.correct / n, (double)m.top5 / n, m.count};
	return GT_OK;
}
