/* gt_check and gt_plan_text: describe what a run would do. */
#include "base/memstream.h"
#include "gtrain.h"
#include "gtrain_report.h"
#include "ir/op.h"
#include "fitted.h"
#include "par/strategy.h"
#include "report/report_ranks.h"
#include "session/schedule.h"
#include "session/session_data.h"
#include "text/tokenizer.h"
#include "train/pretrained.h"
#include "train/warnings.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_own_param(const struct gt_graph *g, gt_vid v)
{
	int param = v < 0 ? -1 : g->values[v].param; /* fusion also adds activations as inputs: the residual of a batchnorm */
	return param >= 0 && g->params[param].cls != GT_PARAM_BUFFER;
}

/* Adds one row per layer of the config. The output of a layer is that of its last forward node. Nodes with which a pipeline sends values
 * and tied weights are not counted. */
static void add_graph(struct gt_report *r, const struct gt_graph *g)
{
	r->params += gt_graph_num_params(g);
	for (int i = 0; i < g->nparams; i++)
		if (g->params[i].cls == GT_PARAM_BUFFER && g->params[i].value >= 0)
			r->buffers += gt_tdesc_count(&g->params[i].desc);
	for (int i = 0; i < g->nnodes; i++) {
		const struct gt_node *n = &g->nodes[i];
		double flops = gt_node_flops(g, n);
		r->flops_train += flops / (double)g->batch;
		if (!n->backward)
			r->flops_forward += flops / (double)g->batch;
		if (n->backward || n->layer < 0 || n->layer >= r->nlayers || n->op->code == GT_OP_COMM || n->op->code == GT_OP_CAST)
			continue;
		struct gt_check_layer *l = &r->layers[n->layer];
		gt_tdesc_text(gt_graph_desc(g, n->out[0]), l->shape, sizeof l->shape);
		l->flops += flops;
		for (int k = n->ndata; k < n->nin; k++)
			if (is_own_param(g, n->in[k]) && !gt_graph_borrows(g, n, n->in[k]))
				l->params += gt_tdesc_count(&g->params[g->values[n->in[k]].param].desc);
	}
}

static enum gt_code list_layers(struct gt_report *r, const struct gt_world_plan *world_plan, struct gt_err *err)
{
	const struct gt_conf *c = world_plan->rank[0]->conf;
	r->nlayers = c->model.nlayers;
	GT_NEW(r->layers, r->arena, r->nlayers ? r->nlayers : 1, err);
	for (int i = 0; i < r->nlayers; i++) {
		r->layers[i].name = c->model.layers[i].name;
		r->layers[i].type = gt_op_name(c->model.layers[i].op);
	}
	for (int i = 0; i < world_plan->stages; i++) {
		const struct gt_graph *g = gt_world_plan_graph(world_plan, i, 0);
		if (!g)
			continue;
		add_graph(r, g);
		if (g->output >= 0) { /* this rank has the last stage, and so the last layer */
			const struct gt_tdesc *d = gt_graph_desc(g, g->output);
			r->outputs = d->dim[0] > 0 ? gt_tdesc_count(d) / d->dim[0] : 0;
		}
	}
	return GT_OK;
}

/* Lists the phases of the run in which other parameters are frozen, with the FLOPs of a sample. */
static enum gt_code list_phases(struct gt_report *r, const struct gt_world_plan *world_plan, struct gt_err *err)
{
	const struct gt_session *s = world_plan->rank[0];
	char when[64];
	GT_NEW(r->phases, r->arena, s->optim.nphases + 1, err);
	for (int k = 0; k < s->optim.nphases; k++) {
		const struct gt_train_phase *p = &s->prog.phase[k];
		struct gt_check_phase *out = &r->phases[r->nphases];
		int64_t end = p->end < s->batch.steps ? p->end : s->batch.steps;
		if (!gt_optim_reaches(&s->optim, 1 + k) || !gt_world_plan_graph(world_plan, 0, 1 + k))
			continue;
		*out = (struct gt_check_phase){.index = k, .steps = end > p->begin ? end - p->begin : 0};
		GT_NEW_STR(out->when, gt_arena_strdup(r->arena, gt_optim_phase_text(&s->optim, 1 + k, when, sizeof when)), err);
		for (int i = 0; i < world_plan->stages; i++) {
			const struct gt_graph *g = gt_world_plan_graph(world_plan, i, 1 + k);
			for (int n = 0; g && n < g->nnodes; n++) {
				double flops = gt_node_flops(g, &g->nodes[n]) / (double)g->batch;
				out->flops_train += flops;
				out->flops_forward += g->nodes[n].backward ? 0 : flops;
			}
		}
		r->nphases++;
	}
	return GT_OK;
}

/* Fills in the groups, and the momenta of the run. */
static enum gt_code list_groups(struct gt_report *r, const struct gt_session *s, struct gt_err *err)
{
	const struct gt_conf_train *t = &s->conf->train;
	GT_NEW(r->groups, r->arena, t->ngroups + 1, err);
	for (int i = 0; i < t->ngroups; i++) {
		struct gt_check_group *g = &r->groups[r->ngroups++];
		const struct gt_strings *m = &t->group[i].match;
		size_t size = 1, n = 0;
		for (int k = 0; k < m->n; k++)
			size += strlen(m->v[k]) + 2;
		char *text;
		GT_NEW(text, r->arena, size, err);
		for (int k = 0; k < m->n; k++)
			n += (size_t)snprintf(text + n, size - n, "%s%s", k ? ", " : "", m->v[k]);
		g->match = text;
		g->frozen = t->group[i].frozen;
		g->frozen_until = t->group[i].frozen_until;
		g->freeze_after = t->group[i].freeze_after;
		g->frozen_stats = t->group[i].frozen_stats;
	}
	for (int k = 0; k < 5; k++) {
		double lr[GT_MAX_LR], shown[GT_MAX_LR], momentum[GT_MAX_LR];
		int64_t at = s->batch.steps > 0 ? (s->batch.steps - 1) * k / 4 : 0;
		gt_optim_rates(&s->optim, at, s->batch.steps, s->batch.steps_per_epoch, lr);
		gt_optim_momenta(&s->optim, at, s->batch.steps, s->batch.steps_per_epoch, momentum);
		r->momentum[k] = s->batch.steps > 0 && momentum[0] > 0 ? momentum[0] : NAN;
		gt_optim_group_rates(&s->optim, lr, shown);
		for (int i = 0; i < t->ngroups; i++) {
			r->groups[i].lr[k] = s->batch.steps > 0 ? shown[i] : NAN;
			r->groups[i].momentum[k] = s->batch.steps > 0 && momentum[1 + i] > 0 && !t->group[i].frozen ? momentum[1 + i] : NAN;
		}
	}
	return GT_OK;
}

/* Lists the blocks of the model with their factors of the learning rate. */
static enum gt_code list_blocks(struct gt_report *r, const struct gt_session *s, struct gt_err *err)
{
	const struct gt_graph *g = s->space->layout.first;
	double decay = s->conf->train.layer_decay;
	if (decay >= 1)
		return GT_OK;
	GT_NEW(r->blocks, r->arena, g->nparams + 1, err);
	for (int i = 0, last = -1, len; i < g->nparams; i++) {
		int depth = gt_graph_depth(g, i);
		if (depth == last)
			continue;
		const char *name = gt_graph_block(g, i, &len);
		struct gt_check_block *b = &r->blocks[r->nblocks++];
		GT_NEW_STR(b->name, gt_arena_printf(r->arena, "%.*s", len, name), err);
		b->factor = pow(decay, depth);
		last = depth;
	}
	return GT_OK;
}

/* Describes texts, and the lengths of sequences. */
static enum gt_code describe_texts(struct gt_report *r, const struct gt_session *s, struct gt_err *err)
{
	const struct gt_fitted *l = s->data.files->learned;
	const struct gt_text_counts *n = &s->data.set[GT_TRAIN].texts;
	GT_NEW(r->lengths, r->arena, s->data.lengths.n + 1, err);
	for (; r->nlengths < s->data.lengths.n; r->nlengths++)
		r->lengths[r->nlengths] = s->data.lengths.at[r->nlengths];
	if (!l || !l->text.ids || !n->texts)
		return GT_OK;
	double tokens = n->tokens > 0 ? (double)n->tokens : 1;
	r->texts = (struct gt_check_texts){.tokenizer = gt_tokenizer_names[s->conf->data.text.tokenizer], .ids = l->text.ids,
	                                   .vocabulary = l->text.vocab ? l->text.vocab->words.n : 0, .texts = n->texts,
	                                   .max_tokens = s->conf->data.text.max_tokens, .mean = tokens / (double)n->texts,
	                                   .unknown = (double)n->unknown / tokens, .truncated = (double)n->truncated / (double)n->texts};
	return GT_OK;
}

/* Says what the type of a column would be if it was not given. */
static enum gt_code explain_given_type(struct gt_report *r, const struct gt_table_fact *f, const char **out, struct gt_err *err)
{
	char text[200] = "given";
	if (f->inferred == f->type && f->why)
		snprintf(text, sizeof text, "given; %s", f->why);
	else if (f->why)
		snprintf(text, sizeof text, "given; else %s: %s", gt_column_type_names[f->inferred], f->why);
	GT_NEW_STR(*out, gt_arena_strdup(r->arena, text), err);
	return GT_OK;
}

/* Lists the columns of a table. */
static enum gt_code list_columns(struct gt_report *r, const struct gt_session *s, struct gt_err *err)
{
	const struct gt_fitted *l = s->data.files->learned;
	if (!l)
		return GT_OK;
	r->reading = s->data.files->reading;
	GT_NEW(r->columns, r->arena, l->table.ncolumns + 1, err);
	for (int i = 0; i < l->table.ncolumns; i++) {
		const struct gt_table_fact *f = &l->table.column[i];
		bool numbers = f->type == GT_COLUMN_CONTINUOUS || (f->type == GT_COLUMN_TARGET && l->table.task == GT_TASK_NUMBERS);
		bool words = !numbers && (f->type == GT_COLUMN_CATEGORICAL || f->type == GT_COLUMN_TARGET);
		struct gt_check_column *c = &r->columns[r->ncolumns++];
		*c = (struct gt_check_column){.type = gt_column_type_names[f->type], .why = f->why, .missing = f->missing,
		                              .different = words ? f->words.n : -1,
		                              .mean = numbers ? f->mean : NAN, .std = numbers ? f->std : NAN};
		GT_NEW_STR(c->name, gt_arena_strdup(r->arena, f->name), err);
		if (f->given && f->type == GT_COLUMN_TARGET)
			c->why = "given";
		else if (f->given)
			GT_TRY(explain_given_type(r, f, &c->why, err));
	}
	return GT_OK;
}

static enum gt_code fill_report(struct gt_report *r, const struct gt_world_plan *world_plan, struct gt_err *err)
{
	const struct gt_session *s = world_plan->rank[0];
	const struct gt_conf *c = s->conf;
	const struct gt_graph *g = s->space->layout.first;
	GT_NEW_STR(r->name, gt_arena_strdup(r->arena, c->name), err);
	GT_NEW_STR(r->device, gt_arena_strdup(r->arena, s->device.info.name), err);
	GT_NEW_STR(r->data, gt_arena_strdup(r->arena, s->data.note ? s->data.note : s->data.set[0].where), err);
	enum gt_code missing = gt_pretrained_check(c, g, r->arena, &r->pretrained, err);
	if (missing != GT_ENOINPUT) /* gt_check_machine reports a missing file */
		GT_TRY(missing);
	r->mode = s->strategy->name;
	r->precision = gt_precision_names[c->precision];
	r->world = world_plan->world;
	GT_TRY(list_layers(r, world_plan, err));
	GT_TRY(gt_report_ranks(r, world_plan, err));
	r->part = g->batch / g->views;
	r->train_samples = s->data.view[GT_TRAIN].n;
	r->valid_samples = s->data.view[GT_VALID].n;
	r->test_samples = s->data.view[GT_TEST].n;
	struct gt_session_division divided;
	GT_TRY(gt_session_divided(s, r->arena, &divided, err));
	r->thread_transforms = divided.threads;
	r->gpu_transforms = divided.device;
	r->batch = s->batch.size;
	r->micro_batch = s->batch.micro;
	r->steps_per_epoch = s->batch.steps_per_epoch;
	r->steps = s->batch.steps;
	for (int i = 0; i < 5; i++)
		r->lr[i] =
		    s->batch.steps > 0 ? gt_schedule_lr(&c->train, (s->batch.steps - 1) * i / 4, s->batch.steps, s->batch.steps_per_epoch) : NAN;
	GT_TRY(list_phases(r, world_plan, err));
	GT_TRY(list_groups(r, s, err));
	GT_TRY(list_blocks(r, s, err));
	GT_TRY(list_columns(r, s, err));
	GT_TRY(describe_texts(r, s, err));
	r->warnings.arena = r->arena;
	GT_TRY(gt_warnings(s, c->checkpoint.dir, &r->warnings, err));
	gt_problems_sort(&r->warnings, c->path);
	r->skipped.arena = r->arena;
	GT_TRY(gt_warn_skipped(s, &r->skipped, err));
	return s->data.note ? GT_OK : gt_session_check_metrics(s, err);
}

int gt_conf_world(const struct gt_conf *c)
{
	return gt_strategy_of(c->parallel.mode)->ranks != GT_RANKS_ONE && c->parallel.nproc > 1 ? (int)c->parallel.nproc : 1;
}

enum gt_code gt_check(struct gt_conf *c, const char *device, int world, struct gt_report **out, struct gt_err *err)
{
	struct gt_world_plan *world_plan;
	struct gt_arena *a;
	*out = NULL;
	bool is_auto = !world && gt_strategy_of(c->parallel.mode)->ranks != GT_RANKS_ONE && !c->parallel.nproc;
	world = world ? world : gt_conf_world(c);
	GT_TRY(gt_world_plan_open(c, device, !device, world, &world_plan, err));
	enum gt_code code = gt_arena_open(&a, err);
	if (code == GT_OK) {
		struct gt_report *r = gt_arena_alloc(a, 1, sizeof *r);
		if (r)
			r->arena = a;
		code = r ? fill_report(r, world_plan, err) : gt_fail_memory(err, sizeof *r);
		if (code == GT_OK)
			r->world_is_auto = is_auto;
		if (code == GT_OK)
			*out = r;
		else
			gt_arena_close(a);
	}
	gt_world_plan_close(world_plan);
	return code;
}

enum gt_code gt_check_machine(struct gt_conf *c, const char *device, struct gt_report *r, struct gt_err *err)
{
	struct gt_devinfo info;
	GT_TRY(gt_machine_lacks(c, device, r->train_samples < 0 || r->test_samples < 0 ? r->data : NULL, &info, &r->warnings, err));
	if (*info.native)
		GT_NEW_STR(r->native, gt_arena_strdup(r->arena, info.native), err);
	r->computes_in_f32 = gt_computes_in_f32(c, &info);
	gt_problems_sort(&r->warnings, c->path);
	return GT_OK;
}

void gt_report_free(struct gt_report *r)
{
	if (r)
		gt_arena_close(r->arena);
}

/* ---- plan ------------------------------------------------------------------------------------------------------------------------ */

/* "# rank 3 of 8, ddp, all_reduce", and the schedule of a pipeline. */
static enum gt_code write_plan_head(const struct gt_session *s, FILE *f, struct gt_err *err)
{
	struct gt_grid *grid;
	char *text = NULL;
	size_t len;
	if (s->at.world == 1)
		return GT_OK;
	fprintf(f, "# rank %d of %d, %s", s->at.rank, s->at.world, s->strategy->name);
	if (s->at.ndata > 1)
		fprintf(f, ", %s", gt_sync_method_name(s->space->shards.spec.sync));
	if (s->at.npipe > 1)
		fprintf(f, ", position %d of %d in a pipeline", s->at.pipe, s->at.npipe);
	if (s->at.npipe > 1 && s->at.ndata > 1)
		fprintf(f, ", copy %d of %d", s->at.data, s->at.ndata);
	fprintf(f, "\n");
	GT_TRY(gt_session_pipe_grid(s, s->arena, &grid, err));
	if (!grid)
		return GT_OK;
	GT_TRY(gt_grid_text(s->arena, grid, 138, &text, &len, err));
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		fprintf(f, "# %s\n", line);
	free(text);
	return GT_OK;
}

static enum gt_code write_prog(const struct gt_prog *p, const char *title, bool json, FILE *f, struct gt_err *err)
{
	char *text = NULL;
	size_t len = 0;
	if (!p->n)
		return GT_OK;
	GT_TRY(gt_prog_text(p, title, json, &text, &len, err));
	fwrite(text, 1, len, f);
	free(text);
	return GT_OK;
}

static enum gt_code write_plan(const struct gt_session *s, bool json, FILE *f, struct gt_err *err)
{
	if (!json)
		GT_TRY(write_plan_head(s, f, err));
	GT_TRY(write_prog(&s->prog.full, "step", json, f, err));
	GT_TRY(write_prog(&s->prog.tail, "last step of an epoch", json, f, err));
	for (int i = 0; i < s->optim.nphases; i++) {
		char when[64], title[128];
		if (!gt_optim_reaches(&s->optim, 1 + i))
			continue;
		gt_optim_phase_text(&s->optim, 1 + i, when, sizeof when);
		snprintf(title, sizeof title, "step %s", when);
		GT_TRY(write_prog(&s->prog.phase[i].full, title, json, f, err));
		snprintf(title, sizeof title, "last step of an epoch %s", when);
		GT_TRY(write_prog(&s->prog.phase[i].tail, title, json, f, err));
	}
	GT_TRY(write_prog(&s->prog.eval[GT_TEST].full, "evaluation", json, f, err));
	return write_prog(&s->prog.eval[GT_TEST].tail, "last evaluation", json, f, err);
}

enum gt_code gt_plan_text(struct gt_conf *c, const char *device, int world, int rank, bool json, char **out, struct gt_err *err)
{
	world = world ? world : gt_conf_world(c);
	struct gt_session_spec spec = gt_world_plan_spec(c, device, !device, rank, world);
	struct gt_session *s;
	struct gt_memstream m;
	*out = NULL;
	if (rank < 0 || rank >= world)
		return gt_fail(err, GT_EUSAGE, world == 1 ? "--rank: expected 0, because there is "
		               "only one rank, got %d" : "--rank %d: expected a rank from 0 to %d", rank,
		               world - 1);
	GT_TRY(gt_session_open(&spec, &s, err));
	FILE *f = gt_memstream_open(&m);
	enum gt_code code = f ? write_plan(s, json, f, err) : gt_fail_memory(err, 0);
	if (f && gt_memstream_close(f, &m, out, NULL, code == GT_OK ? err : NULL) != GT_OK && code == GT_OK)
		code = GT_EFAIL;
	gt_session_close(s);
	if (code != GT_OK) {
		free(*out);
		*out = NULL;
	}
	return code;
}
