/* The programs of a session: the optimizer step and the evaluations, with the loaders that feed them. */
#include "session/session_programs.h"
#include "ir/op.h"
#include "plan/mode_pipe.h"
#include "samples.h"
#include "session/batch_partition.h"
#include "session/cache_batch.h"
#include "session/session_data.h"
#include "session/session_pipe.h"
#include "session/session_plan.h"
#include <math.h>
#include <string.h>

/* Builds the program of one optimizer step over n samples of all ranks. */
static enum gt_code build_train_prog(struct gt_session *s, int64_t n, struct gt_prog *out, struct gt_err *err)
{
	struct gt_job job = {.arena = s->arena, .space = s->space, .samples = n, .update = &s->optim.steps[s->prog.building], .at = s->at,
	                     .schedule = (enum gt_pipe_schedule)s->conf->parallel.schedule, .nstages = gt_pipe_stages(s->conf, s->at.npipe),
	                     .queues = s->queues || s->overlaps};
	GT_TRY(gt_batch_train_units(s, n, &job, err));
	if (!s->optim.check.kernel) {
		GT_TRY(gt_optim_check(&s->optim, s->conf, s->space->layout.first, err));
		GT_TRY(gt_optim_prepare(&s->optim, s->space, s->conf->reproducible != GT_REPRO_NONE, err));
	}
	GT_TRY(s->strategy->schedule(&job, out, err));
	struct gt_session_division divided;
	GT_TRY(gt_session_divided(s, s->arena, &divided, err));
	out->transforms = divided.device;
	out->recipes = (struct gt_attr_recipes){
	    .ops = divided.split.ops, .resize = divided.split.resize, .contrasts = divided.split.contrasts};
	return GT_OK;
}

/* Returns the number of batches that a thread assembles before they are needed, from a dataset in memory. */
static int loader_depth(const struct gt_conf *c, int64_t micro, bool augmented)
{
	if (c->data.prefetch >= 0)
		return (int)c->data.prefetch;
	/* No thread for batches up to 1 MiB: waking it costs more than assembling such a batch. */
	int64_t bytes = micro * c->model.input[0] * c->model.input[1] * c->model.input[2] * 4;
	return augmented || bytes > 1 << 20 ? 2 : 0;
}

/* Returns how training samples are mixed. The number of classes is the number of model outputs. If another pipeline stage has the outputs,
 * it is the number of classes of the data; this rank then does not use the targets. */
static struct gt_mixing find_mixing(const struct gt_session *s)
{
	struct gt_mixing m = s->data.mixing;
	for (int i = 0; i < s->prog.nplans && m.classes; i++) {
		const struct gt_graph *g = s->prog.plan[i]->graph;
		const struct gt_tdesc *d = g->target < 0 ? NULL : gt_graph_desc(g, g->target);
		if (d && d->rank == 2)
			m.classes = d->dim[1];
	}
	return m;
}

/* Returns the number of batches whose sequences are sorted together. */
static int64_t count_sort_batches(const struct gt_conf *c)
{
	return c->data.buckets >= 0 ? c->data.buckets : c->data.shuffle && c->data.sampler == GT_SAMPLER_GTRAIN ? 50 : 0;
}

static enum gt_code fill_loader_spec(const struct gt_session *s, enum gt_split split, int64_t batch, int64_t micro, bool train,
                                     struct gt_loader_spec *spec, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	struct gt_loss_spec loss = gt_session_loss(s, train);
	*spec = (struct gt_loader_spec){.device = &s->device,
	                                .view = &s->data.view[split],
	                                .shape = {c->model.input[0], c->model.input[1], c->model.input[2]},
	                                .batch = batch,
	                                .micro = micro,
	                                .slice = train ? s->batch.slice : gt_batch_eval_slice(s),
	                                .shuffle = train && c->data.shuffle,
	                                .drop_last = train && c->data.drop_last,
	                                .pad = train && s->batch.slice.strided,
	                                .fill = train && gt_space_factored(s->space),
	                                .fill_target = (int32_t)s->loss.attr.ignore_index,
	                                .sampler = c->data.sampler,
	                                .seed = (uint64_t)c->seed,
	                                .ignore_index = gt_session_ignored_label(s),
	                                .class_weights = gt_loss_class_weights(&loss)};
	spec->keep = train ? s->batch.keep : 0;
	spec->sorted = !train;
	if (train)
		spec->buckets = count_sort_batches(c);
	gt_session_loader_inputs(s, spec);
	if (train)
		spec->mixing = find_mixing(s);
	GT_TRY(gt_session_fetch_spec(s, split, train, spec, err));
	if (!gt_session_is_pipeline(s) || s->pipe.reads)
		spec->depth = loader_depth(c, micro / spec->slice.parts, spec->attr.augment);
	spec->event = GT_EVENTS - GT_EVENTS_ENGINE + GT_LOADER_EVENTS * (int)(train ? GT_SPLITS : split);
	if (spec->fill)
		spec->rows = gt_space_at(s->space, s->prog.rows);
	spec->one_epoch = !train;
	if (s->queues) {
		spec->window = s->space->memory.slots;
		spec->units = train ? (int)s->batch.units : 1;
	}
	return GT_OK;
}

enum gt_code gt_session_loader_open(const struct gt_session *s, enum gt_split split, int64_t batch, int64_t micro, bool train,
                                    struct gt_loader **out, struct gt_err *err)
{
	struct gt_loader_spec spec;
	GT_TRY(fill_loader_spec(s, split, batch, micro, train, &spec, err));
	GT_TRY(gt_session_fetch_open(s, split, train, &spec, err));
	enum gt_code code = gt_loader_open(&spec, out, err);
	if (code != GT_OK && spec.fetch.close)
		spec.fetch.close(spec.fetch.user);
	return code;
}

/* If ranks share the factors of weight gradients (gt_space_factored), reserves memory for the loader's batches in the arena of activations
 * that all ranks read. */
static enum gt_code reserve_batches(struct gt_session *s, struct gt_err *err)
{
	struct gt_loader_spec spec;
	struct gt_memory *m = &s->space->memory;
	if (!gt_space_factored(s->space))
		return GT_OK;
	GT_TRY(fill_loader_spec(s, GT_TRAIN, s->batch.size, s->batch.micro, true, &spec, err));
	size_t bytes = (size_t)gt_loader_buffers(&spec) * gt_loader_rows(&spec);
	s->prog.rows = (struct gt_range){GT_A_SHARED_ACT, m->bytes[GT_A_SHARED_ACT]};
	m->bytes[GT_A_SHARED_ACT] += bytes;
	m->live[GT_A_SHARED_ACT] += bytes;
	return GT_OK;
}

/* Adds the memory of a loader's fetched batches, and of the threads that read them, to the totals of the session. */
static void count_loader(struct gt_session *s, const struct gt_loader_spec *spec)
{
	size_t bytes = gt_loader_fetched_bytes(spec);
	s->prog.fetched_bytes += bytes;
	s->prog.decoding_bytes += bytes ? (size_t)spec->workers * GT_SAMPLES_KEEP : 0;
}

static enum gt_code count_fetched(struct gt_session *s, bool train, struct gt_err *err)
{
	struct gt_loader_spec spec;
	if (train) {
		GT_TRY(fill_loader_spec(s, GT_TRAIN, s->batch.size, s->batch.micro, true, &spec, err));
		count_loader(s, &spec);
	}
	for (int i = 0; i < GT_SPLITS; i++) {
		const struct gt_eval_prog *e = &s->prog.eval[i];
		if (!e->batch)
			continue;
		GT_TRY(fill_loader_spec(s, (enum gt_split)i, e->batch, e->batch, false, &spec, err));
		count_loader(s, &spec);
	}
	return GT_OK;
}

/* Builds the program of an evaluation batch of n samples of all ranks. */
static enum gt_code build_eval_prog(struct gt_session *s, int64_t n, struct gt_prog *out, struct gt_err *err)
{
	struct gt_job job = {.arena = s->arena, .space = s->space, .samples = n, .at = s->at, .nstages = gt_pipe_stages(s->conf, s->at.npipe)};
	GT_TRY(gt_batch_eval_units(s, n, &job, err));
	return s->strategy->schedule(&job, out, err);
}

static enum gt_code build_eval_progs(struct gt_session *s, enum gt_split split, struct gt_err *err)
{
	struct gt_eval_prog *e = &s->prog.eval[split];
	int64_t batch = s->conf->data.eval_batch ? s->conf->data.eval_batch : s->batch.size, n = s->data.view[split].n;
	if (n <= 0)
		return GT_OK;
	if (batch > n)
		batch = n;
	s->prog.length = gt_session_longest(s);
	GT_TRY(gt_session_cache_batch(s, &batch, err));
	e->batch = batch;
	e->nfull = n / batch;
	e->ntail = n % batch;
	GT_TRY(build_eval_prog(s, batch, &e->full, err));
	if (e->ntail)
		GT_TRY(build_eval_prog(s, e->ntail, &e->tail, err));
	GT_NEW(e->shorter, s->arena, s->data.lengths.n, err);
	for (int i = 0; i < s->data.lengths.n - 1; i++) {
		s->prog.length = s->data.lengths.at[i];
		GT_TRY(build_eval_prog(s, batch, &e->shorter[i], err));
	}
	return GT_OK;
}

/* Returns the index of the last layer that has a key `out`, which sets the number of model outputs. */
static int last_with_out(const struct gt_conf *c)
{
	for (int i = c->model.nlayers - 1; i > 0; i--)
		for (const struct gt_attr_def *d = c->model.layers[i].op->attrs; d && d->key; d++)
			if (!strcmp(d->key, "out"))
				return i;
	return 0;
}

/* Checks that every label, except ignored ones, is an output of the model, so that a wrong label is an error before the first step. The
 * readers have checked that labels are below the dataset's number of classes. */
static enum gt_code check_classes(const struct gt_session *s, struct gt_err *err)
{
	const struct gt_graph *g = s->space->layout.first;
	const struct gt_tdesc *out = g->output < 0 ? NULL : gt_graph_desc(g, g->output); /* NULL: another pipeline stage computes the output */
	for (int i = 0; i < GT_SPLITS; i++) {
		int64_t classes = s->data.set[i].classes, width = s->data.set[i].target.width;
		if (out && out->rank == 2 && width && width != out->dim[1]) {
			gt_fail(err, GT_ECONFIG, "expected %lld outputs, one for each target of the data, got %lld; write out = %lld", (long long)width,
			        (long long)out->dim[1], (long long)width);
			return err ? gt_conf_at_layer(s->conf, last_with_out(s->conf), err) : GT_ECONFIG;
		}
		if (classes > 0 && s->loss.attr.ignore_index == classes - 1)
			classes--;
		bool given = gt_loss_class_weights(&s->loss) && s->conf->train.class_weights.n != GT_FLOATS_AUTO;
		if (given && classes > s->loss.attr.nweights)
			return gt_conf_refuse(s->conf, "train.class_weights", err, "expected %lld weights, one for each class of the data, got %lld",
			                      (long long)classes, (long long)s->loss.attr.nweights);
		if (out && out->rank == 2 && classes > out->dim[1]) {
			gt_fail(err, GT_ECONFIG, "expected at least %lld outputs, one for each class of %s, got %lld; write out = %lld",
			        (long long)classes, *s->conf->data.name ? s->conf->data.name : "the data", (long long)out->dim[1], (long long)classes);
			return err ? gt_conf_at_layer(s->conf, last_with_out(s->conf), err) : GT_ECONFIG;
		}
	}
	return GT_OK;
}

/* Builds the programs of the optimizer step, for a full batch of each length and for the short last batch of an epoch, in phase
 * s->prog.building. Programs of the longest sequences come first: the first plan decides the layout of the parameters. */
static enum gt_code build_step_progs(struct gt_session *s, struct gt_prog *full, struct gt_prog *tail, struct gt_prog **shorter,
                                     struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	int64_t known = s->batch.samples > 0 ? s->batch.samples : s->batch.size;
	s->prog.length = gt_session_longest(s);
	if (known >= s->batch.size)
		GT_TRY(build_train_prog(s, s->batch.size, full, err));
	/* A run with train.steps may end before the first short batch. In fp16, skipped steps are repeated with later batches. */
	bool ends_before = c->train.steps > 0 && c->train.steps <= known / s->batch.size && c->precision != GT_PREC_FP16;
	if (known % s->batch.size && !ends_before)
		GT_TRY(build_train_prog(s, known % s->batch.size, tail, err));
	GT_NEW(*shorter, s->arena, s->data.lengths.n, err);
	for (int i = 0; i < s->data.lengths.n - 1 && known >= s->batch.size; i++) {
		s->prog.length = s->data.lengths.at[i];
		GT_TRY(build_train_prog(s, s->batch.size, &(*shorter)[i], err));
	}
	return GT_OK;
}

/* The programs outside of all phases come first: the first plan determines the layout, and only these programs train all parameters. */
static enum gt_code build_train_progs(struct gt_session *s, struct gt_err *err)
{
	const struct gt_optim *o = &s->optim;
	GT_TRY(build_step_progs(s, &s->prog.full, &s->prog.tail, &s->prog.shorter, err));
	GT_NEW(s->prog.phase, s->arena, o->nphases + 1, err);
	for (int i = 0; i < o->nphases; i++) {
		struct gt_train_phase *p = &s->prog.phase[i];
		p->begin = gt_optim_steps(o, o->phase[i].begin);
		p->end = isinf(o->phase[i].end) ? INT64_MAX : gt_optim_steps(o, o->phase[i].end);
		s->prog.building = 1 + i;
		if (gt_optim_reaches(o, 1 + i) || gt_optim_trains(o, s->space->layout.first, 1 + i))
			GT_TRY(build_step_progs(s, &p->full, &p->tail, &p->shorter, err));
	}
	s->prog.building = 0;
	return GT_OK;
}

/* Returns the phase of an optimizer step; NULL: the step is in no phase. *end: the first later step with another result, or INT64_MAX. */
static const struct gt_train_phase *phase_of(const struct gt_session *s, int64_t step, int64_t *end)
{
	for (int i = 0; i < s->optim.nphases; i++) {
		const struct gt_train_phase *p = &s->prog.phase[i];
		if (step >= p->end)
			continue;
		*end = step < p->begin ? p->begin : p->end;
		return step < p->begin ? NULL : p;
	}
	*end = INT64_MAX;
	return NULL;
}

const struct gt_prog *gt_session_step_prog(const struct gt_session *s, int64_t step, bool tail, int64_t *end)
{
	const struct gt_train_phase *p = phase_of(s, step, end);
	if (p)
		return tail ? &p->tail : &p->full;
	return tail ? &s->prog.tail : &s->prog.full;
}

enum gt_code gt_session_next_prog(struct gt_session *s, int64_t step, int64_t epoch, int64_t cursor, int64_t most,
                                  const struct gt_prog **out, int64_t *n, struct gt_err *err)
{
	int64_t end, run;
	const struct gt_train_phase *p = phase_of(s, step, &end);
	int64_t full = (s->batch.samples - cursor) / s->batch.size;
	int at;
	if (p && !p->full.n && !p->tail.n)
		return gt_conf_refuse(s->conf, "train.groups", err, "expected trainable parameters after %lld steps, got none", (long long)step);
	*out = gt_session_step_prog(s, step, !full, &end);
	*n = full ? full : 1;
	*n = *n < most ? *n : most;
	*n = *n < end - step ? *n : end - step;
	if (!full || !s->data.lengths.n)
		return GT_OK;
	GT_TRY(gt_loader_length(s->prog.loader, epoch, cursor, *n, &at, &run, err));
	*n = run;
	if (at < s->data.lengths.n - 1)
		*out = p ? &p->shorter[at] : &s->prog.shorter[at];
	return GT_OK;
}

static enum gt_code refuse_no_samples(const struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err)
{
	if (spec->train)
		return gt_fail(err, GT_ENOINPUT, "%s: the split \"train\" has no samples, so there is nothing to train", s->conf->path);
	int i = 0;
	while (i < GT_SPLITS - 1 && !spec->eval[i])
		i++;
	return gt_fail(err, GT_ENOINPUT, "%s: the split%s \"%s\"%s no samples; choose another split with --split", s->conf->path,
	               spec->or_valid ? "s \"valid\" and" : "", gt_split_names[i], spec->or_valid ? " have" : " has");
}

enum gt_code gt_session_programs_open(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err)
{
	if (spec->train)
		GT_TRY(build_train_progs(s, err));
	for (int i = 0; i < GT_SPLITS; i++)
		if (spec->eval[i] || (i == GT_VALID && spec->or_valid))
			GT_TRY(build_eval_progs(s, (enum gt_split)i, err));
	if (spec->predict) {
		s->prog.predict_batch = spec->predict;
		GT_TRY(gt_session_cache_batch(s, &s->prog.predict_batch, err));
		struct gt_plan_key key = {.n = s->prog.predict_batch, .length = gt_session_longest(s)};
		GT_TRY(gt_session_plan(s, &key, &s->prog.predict, err));
	}
	if (!s->prog.nplans)
		return refuse_no_samples(s, spec, err);
	GT_TRY(check_classes(s, err));
	s->space->memory.slots = !s->queues ? 1 : gt_session_fetches(s) ? gt_session_fetch_window(s) : GT_WINDOW;
	s->space->memory.micros = (int)s->batch.units;
	GT_TRY(reserve_batches(s, err));
	GT_TRY(count_fetched(s, spec->train, err));
	gt_space_size(s->space);
	return GT_OK;
}

static void bind_progs(struct gt_session *s, struct gt_prog *full, struct gt_prog *tail, struct gt_prog *shorter)
{
	gt_prog_bind(full, s->space);
	gt_prog_bind(tail, s->space);
	for (int i = 0; shorter && i < s->data.lengths.n - 1; i++)
		gt_prog_bind(&shorter[i], s->space);
}

static void bind_all(struct gt_session *s)
{
	for (int i = 0; i < s->prog.nplans; i++)
		gt_plan_bind(s->prog.plan[i]);
	bind_progs(s, &s->prog.full, &s->prog.tail, s->prog.shorter);
	for (int i = 0; s->prog.phase && i < s->optim.nphases; i++)
		bind_progs(s, &s->prog.phase[i].full, &s->prog.phase[i].tail, s->prog.phase[i].shorter);
	for (int i = 0; i < GT_SPLITS; i++)
		bind_progs(s, &s->prog.eval[i].full, &s->prog.eval[i].tail, s->prog.eval[i].shorter);
}

enum gt_code gt_session_programs_start(struct gt_session *s, bool train, struct gt_err *err)
{
	bind_all(s);
	if (train) {
		gt_optim_bind(&s->optim, s->space);
		GT_TRY(gt_session_loader_open(s, GT_TRAIN, s->batch.size, s->batch.micro, true, &s->prog.loader, err));
	}
	for (int i = 0; i < GT_SPLITS; i++) {
		struct gt_eval_prog *e = &s->prog.eval[i];
		if (e->nfull)
			GT_TRY(gt_session_loader_open(s, (enum gt_split)i, e->batch, e->batch, false, &e->loader, err));
	}
	return GT_OK;
}

void gt_session_programs_close(struct gt_session *s)
{
	gt_loader_close(s->prog.loader);
	for (int i = 0; i < GT_SPLITS; i++)
		gt_loader_close(s->prog.eval[i].loader);
	for (int i = 0; i < s->prog.nplans; i++)
		gt_plan_close(s->prog.plan[i]);
}
