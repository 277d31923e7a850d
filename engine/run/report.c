/* gt_check and gt_plan_text: what a run would do, without doing it. */
#include "gtrain.h"
#include "ir/op.h"
#include "run/schedule.h"
#include "run/session.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One row a layer of the config: its output is that of its last forward node. */
static enum gt_code layer_rows(struct gt_report *r, const struct gt_conf *c, const struct gt_graph *g, struct gt_err *err)
{
	r->nlayers = c->model.nlayers;
	GT_NEW(r->layers, r->arena, r->nlayers ? r->nlayers : 1, err);
	for (int i = 0; i < r->nlayers; i++) {
		r->layers[i].name = c->model.layers[i].name;
		r->layers[i].type = gt_op_name(c->model.layers[i].op);
	}
	for (int i = 0; i < g->nnodes; i++) {
		const struct gt_node *n = &g->nodes[i];
		if (n->backward || n->layer < 0 || n->layer >= r->nlayers)
			continue;
		struct gt_check_layer *l = &r->layers[n->layer];
		gt_tdesc_text(gt_graph_desc(g, n->out[0]), l->shape, sizeof l->shape);
		l->flops += gt_node_flops(g, n);
		for (int k = n->ndata; k < n->nin; k++) {
			int param = n->in[k] < 0 ? -1 : g->values[n->in[k]].param; /* fusion adds activations here: the residual of a batchnorm */
			if (param < 0)
				continue;
			const struct gt_param *p = &g->params[param];
			if (p->cls != GT_PARAM_BUFFER)
				l->params += gt_tdesc_count(&p->desc);
		}
	}
	return GT_OK;
}

static enum gt_code memory_rows(struct gt_report *r, const struct gt_session *s, struct gt_err *err)
{
	int64_t batch = s->micro * s->conf->model.input[0] * s->conf->model.input[1] * s->conf->model.input[2];
	GT_NEW(r->memory, r->arena, GT_A_COUNT + 2, err);
	for (int i = 0; i < GT_A_COUNT; i++) {
		size_t bytes = s->space->bytes[i];
		if (bytes)
			r->memory[r->nmemory++] = (struct gt_check_memory){gt_arena_name((enum gt_arena_id)i), bytes};
	}
	r->memory[r->nmemory++] = (struct gt_check_memory){"one batch", (uint64_t)(batch * 4 + s->micro * 4)};
	uint64_t data = 0;
	for (int i = 0; i < 2; i++)
		data += (uint64_t)(s->data[i].n * (s->data[i].c * s->data[i].h * s->data[i].w + 4));
	if (data)
		r->memory[r->nmemory++] = (struct gt_check_memory){"datasets", data};
	return GT_OK;
}

static enum gt_code groups(struct gt_report *r, const struct gt_session *s, struct gt_err *err)
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
	}
	for (int k = 0; k < 5; k++) {
		double lr[GT_MAX_LR], shown[GT_MAX_LR];
		gt_optim_rates(&s->optim, s->steps > 0 ? (s->steps - 1) * k / 4 : 0, s->steps, s->steps_per_epoch, lr);
		gt_optim_group_rates(&s->optim, lr, shown);
		for (int i = 0; i < t->ngroups; i++)
			r->groups[i].lr[k] = s->steps > 0 ? shown[i] : NAN;
	}
	return GT_OK;
}

static enum gt_code fill(struct gt_report *r, const struct gt_session *s, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	const struct gt_graph *g = s->space->first;
	GT_NEW_STR(r->name, gt_arena_strdup(r->arena, c->name), err);
	GT_NEW_STR(r->device, gt_arena_strdup(r->arena, s->device.info.name), err);
	GT_NEW_STR(r->data, gt_arena_strdup(r->arena, s->data_note ? s->data_note : s->data[0].source), err);
	r->mode = s->strategy->name;
	r->precision = gt_precision_names[c->precision];
	GT_TRY(layer_rows(r, c, g, err));
	GT_TRY(memory_rows(r, s, err));
	r->params = gt_graph_learned(g);
	for (int i = 0; i < g->nparams; i++)
		if (g->params[i].cls == GT_PARAM_BUFFER)
			r->buffers += gt_tdesc_count(&g->params[i].desc);
	for (int i = 0; i < g->nnodes; i++) {
		double f = gt_node_flops(g, &g->nodes[i]) / (double)g->batch;
		r->flops_train += f;
		if (!g->nodes[i].backward)
			r->flops_forward += f;
	}
	r->train_samples = s->view[GT_TRAIN].n;
	r->valid_samples = s->view[GT_VALID].n;
	r->test_samples = s->view[GT_TEST].n;
	r->batch = s->batch;
	r->micro_batch = s->micro;
	r->steps_per_epoch = s->steps_per_epoch;
	r->steps = s->steps;
	r->world = 1;
	for (int i = 0; i < 5; i++) {
		r->lr[i] = s->steps > 0 ? gt_schedule_lr(&c->train, (s->steps - 1) * i / 4, s->steps, s->steps_per_epoch) : NAN;
	}
	return groups(r, s, err);
}

static struct gt_session_spec dry_spec(struct gt_conf *c, const char *device)
{
	return (struct gt_session_spec){.conf = c, .device = device ? device : "null", .train = true, .eval = {[GT_VALID] = true, [GT_TEST] = true}, .dry = true};
}

static enum gt_code check_world(const struct gt_conf *c, int world, const char *mode, struct gt_err *err)
{
	const char *m = mode ? mode : "single";
	if (mode && !gt_strategy_find(mode))
		return gt_fail(err, GT_ECONFIG, "%s: parallel.mode = \"%s\": gtrain " GT_VERSION " runs \"single\" only", c->path, mode);
	if (world > 1)
		return gt_fail(err, GT_ECONFIG, "%s: --world %d and parallel.mode = \"%s\" do not go together", c->path, world, m);
	return GT_OK;
}

enum gt_code gt_check(struct gt_conf *c, const char *device, int world, const char *mode, struct gt_report **out, struct gt_err *err)
{
	struct gt_session_spec spec = dry_spec(c, device);
	struct gt_session *s;
	struct gt_arena *a;
	*out = NULL;
	GT_TRY(check_world(c, world, mode, err));
	GT_TRY(gt_session_open(&spec, &s, err));
	enum gt_code code = gt_arena_open(&a, err);
	if (code == GT_OK) {
		struct gt_report *r = gt_arena_alloc(a, 1, sizeof *r);
		if (r)
			r->arena = a;
		code = r ? fill(r, s, err) : gt_fail_memory(err, sizeof *r);
		if (code == GT_OK)
			*out = r;
		else
			gt_arena_close(a);
	}
	gt_session_close(s);
	return code;
}

void gt_report_free(struct gt_report *r)
{
	if (r)
		gt_arena_close(r->arena);
}

enum gt_code gt_plan_text(struct gt_conf *c, const char *device, int world, int rank, bool json, char **out, struct gt_err *err)
{
	struct gt_session_spec spec = dry_spec(c, device);
	struct gt_session *s;
	char *part[4] = {NULL};
	size_t len[4] = {0}, total = 0, at = 0;
	*out = NULL;
	GT_TRY(check_world(c, world, NULL, err));
	if (rank != 0)
		return gt_fail(err, GT_EUSAGE, "--rank: expected 0 in a world of 1, got %d", rank);
	GT_TRY(gt_session_open(&spec, &s, err));
	const struct {
		const struct gt_prog *p;
		const char *title;
	} progs[] = {{&s->full, "step"}, {&s->tail, "last step of an epoch"}, {&s->eval[GT_TEST].full, "evaluation"}, {&s->eval[GT_TEST].tail, "last evaluation"}};
	enum gt_code code = GT_OK;
	for (int i = 0; i < 4 && code == GT_OK; i++) {
		if (progs[i].p->n)
			code = gt_prog_text(progs[i].p, progs[i].title, json, &part[i], &len[i], err);
		total += len[i];
	}
	if (code == GT_OK && !(*out = malloc(total + 1)))
		code = gt_fail_memory(err, total + 1);
	for (int i = 0; i < 4; i++) {
		if (*out && len[i])
			memcpy(*out + at, part[i], len[i]);
		at += len[i];
		free(part[i]);
	}
	if (*out)
		(*out)[total] = 0;
	gt_session_close(s);
	return code;
}
