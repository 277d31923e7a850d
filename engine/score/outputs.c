#include "score/outputs.h"
#include "store/convert.h"
#include <stdlib.h>
#include <string.h>

/* The message of a rank with its part of a batch: this header, then n labels or rows of targets, then n rows of outputs. */
struct part {
	int64_t first, n; /* index of the first sample in the batch, and number of samples; n is 0 on a rank without outputs */
};

struct gt_outputs {
	struct gt_session *s;
	enum gt_code (*take)(void *user, const struct gt_output_rows *rows, struct gt_err *err);
	void *user;
	int64_t rows, classes; /* rows: maximum number of samples in a part; classes: number of outputs of a sample */
	bool numbers;          /* targets are f32 [n, classes], not labels */
	size_t bytes;          /* bytes of a part */
	void *raw;             /* the outputs of a batch in the compute dtype */
	char *own, *all;       /* own: the part of this rank; all: the parts of all ranks, on rank 0 */
};

static void *targets_of(char *part)
{
	return part + sizeof(struct part);
}

/* Returns the bytes of the targets of one sample. */
static size_t target_bytes(const struct gt_outputs *o)
{
	return o->numbers ? (size_t)o->classes * sizeof(float) : sizeof(int32_t);
}

static float *rows_of(const struct gt_outputs *o, char *part)
{
	return (float *)(void *)(part + sizeof(struct part) + (size_t)o->rows * target_bytes(o));
}

/* Returns the plan of an evaluation program that computes the model's output; NULL: this rank has no samples, or the last stage of the
 * pipeline is on another rank. */
static const struct gt_plan *find_output_plan(const struct gt_prog *p)
{
	for (int i = 0; i < p->n; i++)
		if (p->step[i].kind == GT_STEP_LAUNCH && p->step[i].plan && p->step[i].plan->graph->output >= 0)
			return p->step[i].plan;
	return NULL;
}

/* Sets the number of outputs of the model and the kind of its targets, which in a pipeline only the ranks of the last stage know. */
static enum gt_code find_classes(const struct gt_session *s, struct gt_outputs *o, struct gt_err *err)
{
	int64_t found[3] = {0, 0, 0}; /* number of dimensions of the output; number of outputs of a sample; 1 if targets are not labels */
	for (int i = 0; i < s->prog.nplans && !found[0]; i++) {
		const struct gt_graph *g = s->prog.plan[i]->graph;
		if (g->output < 0)
			continue;
		const struct gt_tdesc *d = gt_graph_desc(g, g->output);
		found[0] = d->rank;
		found[1] = d->rank == 2 ? d->dim[1] : 0;
		found[2] = g->target >= 0 && gt_graph_desc(g, g->target)->dtype != GT_I32;
	}
	if (s->team)
		GT_TRY(gt_team_max(s->team, found, 3, err));
	o->numbers = found[2];
	o->classes = found[1];
	if (found[0] != 2)
		return gt_fail(err, GT_ECONFIG, "expected a model whose output is [batch, classes], got an output with %lld dimensions",
		               (long long)found[0]);
	return GT_OK;
}

/* Copies the outputs and targets of this rank's samples in the batch from the device to o->own. */
static enum gt_code read_own_rows(struct gt_outputs *o, const struct gt_prog *p, struct gt_err *err)
{
	struct gt_session *s = o->s;
	const struct gt_device *d = &s->device;
	const struct gt_plan *plan = find_output_plan(p);
	struct part *own = (struct part *)(void *)o->own;
	*own = (struct part){0};
	if (!plan)
		return GT_OK;
	const struct gt_tdesc *desc = gt_graph_desc(plan->graph, plan->graph->output);
	own->n = gt_part_size(p->samples, s->at.ndata, s->at.data, &own->first);
	if (desc->dim[0] != own->n || own->n > o->rows)
		return gt_fail(err, GT_EINTERNAL, "expected outputs for %lld samples, got %lld", (long long)own->n, (long long)desc->dim[0]);
	GT_TRY(d->be->copy(d->dev, o->raw, gt_plan_value(plan, plan->graph->output), gt_tdesc_bytes(desc), GT_COPY_D2H, 0, err));
	GT_TRY(
	    d->be->copy(d->dev, targets_of(o->own), s->exec.loaded_batches[0].target, (size_t)own->n * target_bytes(o), GT_COPY_D2H, 0, err));
	GT_TRY(d->be->sync(d->dev, 0, err));
	gt_convert_f32(rows_of(o, o->own), o->raw, desc->dtype, own->n * o->classes);
	return GT_OK;
}

static enum gt_code deliver_rows(const struct gt_outputs *o, char *part, struct gt_err *err)
{
	struct gt_output_rows rows = {.n = ((const struct part *)(const void *)part)->n, .classes = o->classes, .z = rows_of(o, part)};
	if (o->numbers)
		rows.target = targets_of(part);
	else
		rows.label = targets_of(part);
	return rows.n ? o->take(o->user, &rows, err) : GT_OK;
}

/* Calls o->take with the samples of all parts, in the order of the split. */
static enum gt_code deliver_in_order(const struct gt_outputs *o, int64_t samples, struct gt_err *err)
{
	for (int64_t next = 0; next < samples;) {
		char *part = NULL;
		for (int r = 0; r < o->s->at.world; r++) {
			char *p = o->all + (size_t)r * o->bytes;
			const struct part *h = (const struct part *)(const void *)p;
			if (h->n && h->first == next)
				part = p;
		}
		if (!part)
			return gt_fail(err, GT_EINTERNAL, "no rank has the outputs of sample %lld of a batch", (long long)next);
		GT_TRY(deliver_rows(o, part, err));
		next += ((const struct part *)(const void *)part)->n;
	}
	return GT_OK;
}

/* gt_session.after_batch */
static enum gt_code collect_batch(void *user, const struct gt_prog *p, struct gt_err *err)
{
	struct gt_outputs *o = user;
	const struct gt_session *s = o->s;
	GT_TRY(read_own_rows(o, p, err));
	if (s->at.world == 1)
		return deliver_rows(o, o->own, err);
	struct gt_comm *c = s->team->comm;
	struct gt_coll x = {.what = "outputs", .in = o->own, .out = o->all, .count = o->bytes, .dtype = GT_U8};
	gt_rank_set_waiting(s->exec.link, true);
	enum gt_code code = c->api->gather(c, &x, err);
	gt_rank_set_waiting(s->exec.link, false);
	GT_TRY(code);
	return s->at.rank ? GT_OK : deliver_in_order(o, p->samples, err);
}

static enum gt_code alloc_buffers(struct gt_outputs *o, int64_t samples, struct gt_err *err)
{
	const struct gt_session *s = o->s;
	bool gathers = s->at.world > 1 && s->at.rank == 0;
	o->rows = gt_part_size(samples, s->at.ndata, 0, NULL);
	o->bytes = sizeof(struct part) + (size_t)o->rows * (target_bytes(o) + (size_t)o->classes * sizeof(float));
	o->bytes = (o->bytes + sizeof(int64_t) - 1) / sizeof(int64_t) * sizeof(int64_t); /* keeps the headers aligned */
	o->raw = malloc((size_t)o->rows * (size_t)o->classes * sizeof(double));
	o->own = calloc(1, o->bytes);
	o->all = gathers ? malloc(o->bytes * (size_t)s->at.world) : NULL;
	return o->raw && o->own && (o->all || !gathers) ? GT_OK : gt_fail_memory(err, o->bytes * (size_t)(gathers ? s->at.world : 1));
}

enum gt_code gt_outputs_open(struct gt_session *s, enum gt_split split,
                             enum gt_code (*take)(void *user, const struct gt_output_rows *rows, struct gt_err *err), void *user,
                             struct gt_outputs **out, struct gt_err *err)
{
	struct gt_outputs *o = calloc(1, sizeof *o);
	*out = NULL;
	if (!o)
		return gt_fail_memory(err, sizeof *o);
	o->s = s;
	o->take = take;
	o->user = user;
	enum gt_code code = find_classes(s, o, err);
	if (code == GT_OK)
		code = alloc_buffers(o, s->prog.eval[split].batch, err);
	if (code != GT_OK) {
		gt_outputs_close(o);
		return code;
	}
	s->after_batch = collect_batch;
	s->after_batch_user = o;
	*out = o;
	return GT_OK;
}

void gt_outputs_close(struct gt_outputs *o)
{
	if (!o)
		return;
	o->s->after_batch = NULL;
	free(o->raw);
	free(o->own);
	free(o->all);
	free(o);
}
