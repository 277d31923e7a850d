/* gt_check and gt_plan_text: describe a run without training. */
#include "base/memstream.h"
#include "fitted.h"
#include "gtrain.h"
#include "gtrain_report.h"
#include "ir/op.h"
#include "plan/strategy.h"
#include "report/report_ranks.h"
#include "session/lr_schedule.h"
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
	/* a fused operation may also have an activation as such an input, for example the residual that batchnorm adds */
	int param = v < 0 ? -1 : g->values[v].param;
	return param >= 0 && g->params[param].cls != GT_PARAM_BUFFER;
}

/* Totals of a layer of the model, summed over its nodes in the graphs of all pipeline stages. */
struct layer {
	char shape[96]; /* shape of the layer's output for one batch */
	int64_t params; /* number of elements of the layer's parameters */
	double flops;   /* FLOPs of the layer's forward pass over one batch */
};

/* Adds the nodes of a graph to the layers. The output of a layer is the output of its last forward node. Nodes that transfer values and
 * tied weights in a pipeline are not counted. */
static void add_graph(struct gt_report *r, const struct gt_graph *g, struct layer *layer, int nlayers)
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
		if (n->backward || n->layer < 0 || n->layer >= nlayers || n->op->code == GT_OP_COMM || n->op->code == GT_OP_CAST)
			continue;
		struct layer *l = &layer[n->layer];
		gt_tdesc_text(gt_graph_desc(g, gt_node_first_output(n)), l->shape, sizeof l->shape);
		l->flops += flops;
		for (int k = n->ndata; k < n->nin; k++)
			if (is_own_param(g, n->in[k]) && !gt_graph_borrows(g, n, n->in[k]))
				l->params += gt_tdesc_count(&g->params[g->values[n->in[k]].param].desc);
	}
}

static enum gt_code write_layers(struct gt_json *j, struct gt_report *r, const struct gt_world_plan *world_plan, struct gt_err *err)
{
	const struct gt_model_spec *m = &world_plan->rank[0]->conf->model;
	struct layer *layer;
	GT_NEW(layer, r->arena, m->nlayers ? m->nlayers : 1, err);
	for (int i = 0; i < world_plan->stages; i++) {
		const struct gt_graph *g = gt_world_plan_graph(world_plan, i, 0);
		if (!g)
			continue;
		add_graph(r, g, layer, m->nlayers);
		if (g->output >= 0) { /* this graph has the last stage, which computes the output of the model */
			const struct gt_tdesc *d = gt_graph_desc(g, g->output);
			r->outputs = d->dim[0] > 0 ? gt_tdesc_count(d) / d->dim[0] : 0;
		}
	}
	gt_json_array(j, "layers");
	for (int i = 0; i < m->nlayers; i++)
		gt_json_row(j, NULL, GT_STR("name", m->layers[i].name), GT_STR("type", gt_op_name(m->layers[i].op)),
		            GT_STR("shape", layer[i].shape), GT_INT("params", layer[i].params), GT_NUM("flops", layer[i].flops, 15));
	gt_json_end(j);
	return GT_OK;
}

/* Writes the phases of the run (parts with different frozen parameters), with the FLOPs of a sample. Skips phases that the run does not
 * reach. The member "steps" is 0 if the number of steps in an epoch is not known. */
static void write_phases(struct gt_json *j, const struct gt_world_plan *world_plan)
{
	const struct gt_session *s = world_plan->rank[0];
	char when[64];
	gt_json_array(j, "phases");
	for (int k = 0; k < s->optim.nphases; k++) {
		const struct gt_train_phase *p = &s->prog.phase[k];
		int64_t end = p->end < s->batch.steps ? p->end : s->batch.steps;
		double train = 0, forward = 0;
		if (!gt_optim_reaches(&s->optim, 1 + k) || !gt_world_plan_graph(world_plan, 0, 1 + k))
			continue;
		for (int i = 0; i < world_plan->stages; i++) {
			const struct gt_graph *g = gt_world_plan_graph(world_plan, i, 1 + k);
			for (int n = 0; g && n < g->nnodes; n++) {
				double flops = gt_node_flops(g, &g->nodes[n]) / (double)g->batch;
				train += flops;
				forward += g->nodes[n].backward ? 0 : flops;
			}
		}
		gt_json_row(j, NULL, GT_STR("when", gt_optim_phase_text(&s->optim, 1 + k, when, sizeof when)),
		            GT_INT("steps", end > p->begin ? end - p->begin : 0), GT_NUM("flops_forward", forward, 15),
		            GT_NUM("flops_train", train, 15));
	}
	gt_json_end(j);
}

/* The learning rates and the momenta, or beta1, of the run or of an entry of train.groups at 0, 25, 50, 75 and 100 % of the run. NAN: the
 * length of the run is not known, or the schedule does not change the momentum. */
struct rates {
	double lr[5], momentum[5];
};

static enum gt_code list_rates(const struct gt_session *s, struct gt_arena *a, struct rates *run, struct rates **group, struct gt_err *err)
{
	const struct gt_conf_train *t = &s->conf->train;
	bool known = s->batch.steps > 0;
	GT_NEW(*group, a, t->ngroups + 1, err);
	for (int k = 0; k < 5; k++) {
		double lr[GT_MAX_LR], shown[GT_MAX_LR], momentum[GT_MAX_LR];
		int64_t at = known ? (s->batch.steps - 1) * k / 4 : 0;
		gt_optim_rates(&s->optim, at, s->batch.steps, s->batch.steps_per_epoch, lr);
		gt_optim_momenta(&s->optim, at, s->batch.steps, s->batch.steps_per_epoch, momentum);
		run->lr[k] = known ? gt_schedule_lr(t, at, s->batch.steps, s->batch.steps_per_epoch) : NAN;
		run->momentum[k] = known && momentum[0] > 0 ? momentum[0] : NAN;
		gt_optim_group_rates(&s->optim, lr, shown);
		for (int i = 0; i < t->ngroups; i++) {
			(*group)[i].lr[k] = known ? shown[i] : NAN;
			(*group)[i].momentum[k] = known && momentum[1 + i] > 0 && !t->group[i].frozen ? momentum[1 + i] : NAN;
		}
	}
	return GT_OK;
}

static void write_rates(struct gt_json *j, const struct rates *r)
{
	gt_json_numbers(j, "lr", r->lr, 5, 9);
	if (!isnan(r->momentum[0]))
		gt_json_numbers(j, "momentum", r->momentum, 5, 9);
}

static enum gt_code write_groups(struct gt_json *j, const struct gt_session *s, const struct rates *rates, struct gt_arena *a,
                                 struct gt_err *err)
{
	const struct gt_conf_train *t = &s->conf->train;
	if (!t->ngroups)
		return GT_OK;
	gt_json_array(j, "groups");
	for (int i = 0; i < t->ngroups; i++) {
		const struct gt_strings *m = &t->group[i].match;
		const char *match = "";
		for (int k = 0; k < m->n; k++)
			GT_NEW_STR(match, gt_arena_printf(a, "%s%s%s", match, k ? ", " : "", m->v[k]), err);
		gt_json_object(j, NULL);
		gt_json_add(j, GT_STR("match", match), GT_BOOL("frozen", t->group[i].frozen), GT_NUM("frozen_until", t->group[i].frozen_until, 15),
		            GT_NUM("freeze_after", t->group[i].freeze_after, 15), GT_BOOL("frozen_stats", t->group[i].frozen_stats));
		write_rates(j, &rates[i]);
		gt_json_end(j);
	}
	gt_json_end(j);
	return GT_OK;
}

/* Writes the blocks of the model, with the learning-rate factor that layer-wise decay gives each block, in the order of the model. */
static enum gt_code write_blocks(struct gt_json *j, const struct gt_session *s, struct gt_arena *a, struct gt_err *err)
{
	const struct gt_graph *g = s->space->layout.first;
	double decay = s->conf->train.layer_decay;
	if (decay >= 1)
		return GT_OK;
	gt_json_array(j, "layer_decay");
	for (int i = 0, last = -1, len; i < g->nparams; i++) {
		int depth = gt_graph_depth(g, i);
		if (depth == last)
			continue;
		const char *name = gt_graph_block(g, i, &len), *block;
		GT_NEW_STR(block, gt_arena_printf(a, "%.*s", len, name), err);
		gt_json_row(j, NULL, GT_STR("block", block), GT_NUM("factor", pow(decay, depth), 15));
		last = depth;
	}
	gt_json_end(j);
	return GT_OK;
}

/* Writes the lengths to which sequences of a batch are padded, and the tokenizer's statistics of the training texts. */
static void write_texts(struct gt_json *j, const struct gt_session *s, uint64_t reading)
{
	const struct gt_fitted *l = s->data.files->learned;
	const struct gt_text_counts *n = &s->data.set[GT_TRAIN].texts;
	if (s->data.lengths.n) {
		gt_json_array(j, "lengths");
		for (int i = 0; i < s->data.lengths.n; i++)
			gt_json_int(j, NULL, s->data.lengths.at[i]);
		gt_json_end(j);
	}
	if (!l || !l->text.ids || !n->texts)
		return;
	double tokens = n->tokens > 0 ? (double)n->tokens : 1;
	/* "tokens": number of different tokens, including n-grams; "unknown": share of all tokens; "truncated": share of all texts */
	gt_json_row(j, "texts", GT_STR("tokenizer", gt_tokenizer_names[s->conf->data.text.tokenizer]),
	            GT_INT("vocabulary", l->text.vocab ? l->text.vocab->words.n : 0), GT_INT("tokens", l->text.ids),
	            GT_INT("max_tokens", s->conf->data.text.max_tokens), GT_NUM("mean_tokens", tokens / (double)n->texts, 6),
	            GT_NUM("unknown", (double)n->unknown / tokens, 6), GT_NUM("truncated", (double)n->truncated / (double)n->texts, 6),
	            GT_UINT("reading_bytes", reading));
}

/* Returns the reason for a column's type and, if the config sets the type, the inferred type. NULL: unknown. */
static const char *explain_type(const struct gt_table_fact *f, char *buf, size_t size)
{
	if (!f->given)
		return f->why;
	snprintf(buf, size, "given");
	if (f->type != GT_COLUMN_TARGET && f->inferred == f->type && f->why)
		snprintf(buf, size, "given; %s", f->why);
	else if (f->type != GT_COLUMN_TARGET && f->why)
		snprintf(buf, size, "given; without the entry, %s: %s", gt_column_type_names[f->inferred], f->why);
	return buf;
}

/* Writes the columns of a table, in the order of its files, with facts learned from the training split. The member "different" is the
 * number of different words or classes; "mean" and "std" are those of numeric columns. */
static void write_columns(struct gt_json *j, const struct gt_fitted *l, uint64_t reading)
{
	if (!l || !l->table.ncolumns)
		return;
	gt_json_array(j, "columns");
	for (int i = 0; i < l->table.ncolumns; i++) {
		const struct gt_table_fact *f = &l->table.column[i];
		bool numbers = f->type == GT_COLUMN_CONTINUOUS || (f->type == GT_COLUMN_TARGET && l->table.task == GT_TASK_NUMBERS);
		bool words = !numbers && (f->type == GT_COLUMN_CATEGORICAL || f->type == GT_COLUMN_TARGET);
		char why[200];
		gt_json_object(j, NULL);
		gt_json_add(j, GT_STR("name", f->name), GT_STR("type", gt_column_type_names[f->type]),
		            GT_STR("why", explain_type(f, why, sizeof why)), GT_INT("missing", f->missing));
		if (words)
			gt_json_int(j, "different", f->words.n);
		if (numbers && !isnan(f->mean)) {
			gt_json_add(j, GT_NUM("mean", f->mean, 17), GT_NUM("std", f->std, 17));
		}
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_uint(j, "reading_bytes", reading);
}

/* Writes the path of the data, the names of the transforms that the reading threads and the GPU execute, the columns or texts, and the
 * number of samples. */
static enum gt_code write_data(struct gt_json *j, const struct gt_report *r, const struct gt_session *s, struct gt_err *err)
{
	const struct { const char *split; int64_t n; } split[] = {
		{"train", r->train_samples}, {"valid", r->valid_samples}, {"test", r->test_samples}};
	struct gt_session_division divided;
	GT_TRY(gt_session_divided(s, r->arena, &divided, err));
	gt_json_string(j, "data", r->data);
	if (divided.device)
		gt_json_row(j, "transforms", GT_STR("threads", divided.threads), GT_STR("gpu", divided.device));
	write_columns(j, s->data.files->learned, r->reading);
	write_texts(j, s, r->reading);
	gt_json_object(j, "samples");
	for (int i = 0; i < 3; i++) {
		if (split[i].n >= 0)
			gt_json_int(j, split[i].split, split[i].n);
		else
			gt_json_null(j, split[i].split);
	}
	gt_json_end(j);
	if (r->pretrained) {
		gt_json_object(j, "pretrained");
		gt_pretrained_json(j, r->pretrained);
		gt_json_end(j);
	}
	return GT_OK;
}

/* Fills in the warnings and all other members that write_layers does not fill in. */
static enum gt_code fill_report(struct gt_report *r, struct gt_conf *c, const struct gt_session *s, struct gt_err *err)
{
	GT_NEW_STR(r->name, gt_arena_strdup(r->arena, c->name), err);
	GT_NEW_STR(r->data, gt_arena_strdup(r->arena, s->data.note ? s->data.note : s->data.set[0].where), err);
	enum gt_code missing = gt_pretrained_check(c, s->space->layout.first, r->arena, &r->pretrained, err);
	if (missing != GT_ENOINPUT) /* a missing file is no error here, because gt_machine_lacks reports it */
		GT_TRY(missing);
	r->mode = s->strategy->name;
	r->precision = gt_precision_names[c->precision];
	r->world = s->at.world;
	r->train_samples = s->data.view[GT_TRAIN].n;
	r->valid_samples = s->data.view[GT_VALID].n;
	r->test_samples = s->data.view[GT_TEST].n;
	r->skips_files = gt_session_skips_files(s);
	r->batch = s->batch.size;
	r->steps_per_epoch = s->batch.steps_per_epoch;
	r->steps = s->batch.steps;
	r->reading = s->data.files->learned ? s->data.files->reading : 0;
	r->warnings.arena = r->skipped.arena = r->arena;
	GT_TRY(gt_warnings(s, c->checkpoint.dir, &r->warnings, err));
	GT_TRY(gt_warn_skipped(s, &r->skipped, err));
	return s->data.note ? GT_OK : gt_session_check_metrics(s, err);
}

static void write_warnings(struct gt_json *j, const struct gt_report *r)
{
	gt_json_array(j, "warnings");
	for (int i = 0; i < r->warnings.n; i++)
		gt_json_string(j, NULL, r->warnings.v[i].text);
	for (int i = 0; i < r->skipped.n; i++)
		gt_json_string(j, NULL, r->skipped.v[i].text);
	gt_json_end(j);
}

/* Writes the whole report. native: the precisions that the device's hardware supports; "": there is no device to ask. */
static enum gt_code write_report(struct gt_json *j, struct gt_report *r, const struct gt_world_plan *world_plan, const char *device,
                                 bool is_auto, const char *native, struct gt_err *err)
{
	const struct gt_session *s = world_plan->rank[0];
	const struct gt_graph *g = s->space->layout.first;
	struct rates run, *group;
	gt_json_object(j, NULL);
	gt_json_string(j, "name", r->name);
	gt_json_string(j, "device", device ? s->device.info.name : NULL); /* if no device is given, none is open, so it has no name */
	gt_json_add(j, GT_STR("mode", r->mode), GT_INT("world", r->world));
	if (is_auto) /* parallel.nproc is "auto": a run may have another number of ranks on its machine */
		gt_json_bool(j, "world_is_auto", true);
	gt_json_string(j, "precision", r->precision);
	if (*native)
		gt_json_string(j, "native", native);
	GT_TRY(write_layers(j, r, world_plan, err));
	GT_TRY(gt_report_ranks(j, world_plan, g->batch / g->views, err));
	gt_json_add(j, GT_INT("params", r->params), GT_INT("buffers", r->buffers), GT_NUM("flops_forward", r->flops_forward, 15),
	            GT_NUM("flops_train", r->flops_train, 15));
	write_phases(j, world_plan);
	GT_TRY(write_data(j, r, s, err));
	gt_json_add(j, GT_INT("batch", r->batch), GT_INT("micro_batch", s->batch.micro), GT_INT("steps_per_epoch", r->steps_per_epoch),
	            GT_INT("steps", r->steps));
	GT_TRY(list_rates(s, r->arena, &run, &group, err));
	write_rates(j, &run);
	GT_TRY(write_blocks(j, s, r->arena, err));
	write_warnings(j, r);
	return write_groups(j, s, group, r->arena, err);
}

static enum gt_code make_report(struct gt_conf *c, const struct gt_world_plan *world_plan, const char *device, bool is_auto, bool machine,
                                struct gt_json *j, struct gt_report *r, struct gt_err *err)
{
	struct gt_devinfo info = {0};
	GT_TRY(fill_report(r, c, world_plan->rank[0], err));
	if (machine)
		GT_TRY(gt_machine_lacks(c, device, r->train_samples < 0 || r->test_samples < 0 ? r->data : NULL, &info, &r->warnings, err));
	r->computes_in_f32 = machine && gt_computes_in_f32(c, &info);
	gt_problems_sort(&r->warnings, c->path);
	return write_report(j, r, world_plan, device, is_auto, info.native, err);
}

int gt_conf_world(const struct gt_conf *c)
{
	return gt_strategy_of(c->parallel.mode)->ranks != GT_RANKS_ONE && c->parallel.nproc > 1 ? (int)c->parallel.nproc : 1;
}

enum gt_code gt_check(struct gt_conf *c, const struct gt_check_opts *o, struct gt_json *j, struct gt_report **out, struct gt_err *err)
{
	struct gt_world_plan *world_plan;
	struct gt_arena *a;
	*out = NULL;
	bool is_auto = !o->world && gt_strategy_of(c->parallel.mode)->ranks != GT_RANKS_ONE && !c->parallel.nproc;
	GT_TRY(gt_world_plan_open(c, o->device, !o->device, o->apart, o->world ? o->world : gt_conf_world(c),
	                          o->classes ? 0 : GT_WORLD_PLAN_EACH, &world_plan, err));
	enum gt_code code = gt_arena_open(&a, err);
	if (code == GT_OK) {
		struct gt_report *r = gt_arena_alloc(a, 1, sizeof *r);
		if (r)
			r->arena = a;
		code = r ? make_report(c, world_plan, o->device, is_auto, o->machine, j, r, err) : gt_fail_memory(err, sizeof *r);
		if (code == GT_OK && o->more)
			code = o->more(o->user, world_plan, j, err);
		if (code == GT_OK) {
			*out = r;
		} else {
			gt_json_reset(j);
			gt_arena_close(a);
		}
	}
	gt_world_plan_close(world_plan);
	return code;
}

void gt_report_free(struct gt_report *r)
{
	if (r)
		gt_arena_close(r->arena);
}

/* ---- plan ------------------------------------------------------------------------------------------------------------------------ */

/* Writes a comment line such as "# rank 3 of 8, ddp, all_reduce" and, with a pipeline, its schedule. */
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
