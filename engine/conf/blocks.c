/* Expands lists of layers. An entry is a layer or an instance of a block, whose layers are expanded in turn. See layers.h. */
#include "conf/layers.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static enum gt_code expand_list(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *list, const char *path,
                                const struct gt_layer_spec *proto, struct gt_err *err);

/* Reads the keys of an instance that are the defaults of all its layers: frozen, init, lr_mul, weight_decay. */
static enum gt_code read_defaults(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *inst, const char *at,
                                  struct gt_layer_spec *proto, struct gt_err *err)
{
	char path[320];
	for (int i = 0; i < inst->nkids; i++) {
		const struct gt_row *r = gt_row_find(gt_rows_layer, inst->kid[i]->name);
		const struct gt_cnode *v;
		if (!r || r->type == GT_T_OTHER)
			continue;
		snprintf(path, sizeof path, "%s.%s", at, r->path);
		GT_TRY(gt_scope_value(x, s, inst->kid[i], path, &v, err));
		GT_TRY(gt_row_read(r, v, path, proto, err));
	}
	return GT_OK;
}

static enum gt_code find_template(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *inst, const char *at,
                                  const struct gt_cnode **out, struct gt_err *err)
{
	const struct gt_cnode *n = gt_cnode_find(inst, "block");
	char path[320], cut[64], all[512] = "";
	size_t len = 0;
	int depth = 0;
	snprintf(path, sizeof path, "%s.block", at);
	const char *name = gt_cnode_word(n);
	if (!name)
		return gt_conf_expect(err, n, path, "the name of a block");
	*out = x->blocks ? gt_cnode_find(x->blocks, name) : NULL;
	if (!*out) {
		struct gt_guess g = gt_guess_open(gt_utf8_truncate(name, cut, sizeof cut));
		for (int i = 0; x->blocks && i < x->blocks->nkids; i++)
			gt_guess_try(&g, x->blocks->kid[i]->name);
		if (!g.best && (!x->blocks || !x->blocks->nkids))
			return gt_conf_fail(err, n->loc, path,
			                    "expected the name of a block, got \"%s\", but the config defines no blocks; define it in model.blocks, "
			                    "or use type", cut);
		if (!g.best) {
			for (int i = 0; i < x->blocks->nkids && len + 70 < sizeof all; i++)
				len += (size_t)snprintf(all + len, sizeof all - len, "%s%.64s", i ? ", " : "", x->blocks->kid[i]->name);
			return gt_conf_fail(err, n->loc, path, "expected the name of a block, got \"%s\"; the config defines: %s", cut, all);
		}
		return gt_conf_fail(err, n->loc, path, "expected the name of a block, got \"%s\"; did you mean \"%s\"?", cut, g.best);
	}
	for (const struct gt_scope *k = s; k; k = k->parent, depth++)
		if (k->tmpl == *out)
			return gt_conf_fail(err, n->loc, path, "expected a block that does not contain itself, got \"%.64s\"", name);
	if (depth >= GT_CONF_MAX_BLOCK_DEPTH)
		return gt_conf_fail(err, n->loc, path, "expected blocks that are nested at most %d deep, got more", GT_CONF_MAX_BLOCK_DEPTH);
	return GT_OK;
}

/* Expands an entry with the key `block`: finds its template, reads the keys of the instance, and expands the layers of the template once
 * for each repetition. Their names begin with the name of the instance. */
static enum gt_code expand_block(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *inst, const char *at, int index,
                                 const struct gt_layer_spec *proto, struct gt_err *err)
{
	struct gt_arena *a = x->rd->arena;
	const struct gt_cnode *tmpl = NULL, *n, *v, *first = gt_cnode_find(inst, "first"), *in = gt_cnode_find(inst, "in");
	struct gt_layer_spec common = *proto;
	const char *name, *input = index == 0 && s ? s->input : x->last;
	char path[320];
	int64_t repeat = 0;
	GT_TRY(find_template(x, s, inst, at, &tmpl, err));
	if (tmpl->bad) { /* the template's error was reported before, so its instances are not expanded */
		x->rd->errors->seen++;
		GT_TRY(gt_layer_fullname(x, s, inst, at, index, &name, err));
		x->last = name;
		return gt_layer_declare(x, name, name, inst->loc, at, err);
	}
	GT_TRY(gt_block_check_keys(inst, tmpl, at, false, err));
	if (first) {
		snprintf(path, sizeof path, "%s.first", at);
		if (first->type != GT_C_GROUP)
			return gt_conf_expect(err, first, path, "a group { }");
		GT_TRY(gt_block_check_keys(first, tmpl, path, true, err));
	}
	if ((n = gt_cnode_find(inst, "repeat"))) {
		snprintf(path, sizeof path, "%s.repeat", at);
		GT_TRY(gt_scope_value(x, s, n, path, &v, err));
		GT_TRY(gt_row_read(gt_row_find(gt_rows_block, "repeat"), v, path, &repeat, err));
	}
	GT_TRY(read_defaults(x, s, inst, at, &common, err));
	snprintf(path, sizeof path, "%s.in", at);
	if (in) {
		if (in->nkids == 1)
			in = in->kid[0];
		const char *word = gt_cnode_word(in);
		if (!word)
			return gt_conf_fail(err, in->loc, path, "expected the name of one layer, because a block has one input");
		GT_TRY(gt_layer_resolve(x, s, word, in->loc, path, &input, err));
	}
	snprintf(path, sizeof path, "%s.name", at);
	GT_TRY(gt_layer_fullname(x, s, inst, path, index, &name, err));
	for (int64_t i = 0; i < (repeat ? repeat : 1); i++) {
		struct gt_scope scope = {.parent = s, .tmpl = tmpl, .inst = inst, .first = i ? NULL : first, .input = i ? x->last : input};
		const char *one = name;
		char inner[256];
		if (repeat)
			GT_NEW_STR(one, gt_arena_printf(a, "%s.%d", name, (int)i), err);
		GT_NEW_STR(scope.prefix, gt_arena_printf(a, "%s.", one), err);
		snprintf(inner, sizeof inner, "model.blocks.%.64s.layers", tmpl->name);
		int errors = x->rd->errors->seen;
		GT_TRY(expand_list(x, &scope, gt_cnode_find(tmpl, "layers"), inner, &common, err));
		if (x->rd->errors->seen > errors) { /* ignore this template from now on: its errors would be repeated */
			gt_cnode_find(x->blocks, tmpl->name)->bad = true;
			break;
		}
		x->spec[x->n - 1].recompute &= proto->recompute; /* a block stores its output, unless it is within a recomputed block */
		if (repeat)
			GT_TRY(gt_layer_declare(x, one, x->last, inst->loc, path, err));
	}
	return gt_layer_declare(x, name, x->last, inst->loc, path, err);
}

static enum gt_code expand_list(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *list, const char *path,
                                const struct gt_layer_spec *proto, struct gt_err *err)
{
	char at[256];
	if (list->type != GT_C_LIST || !list->nkids)
		return gt_conf_expect(err, list, path, "a list ( ) of at least one layer");
	for (int i = 0; i < list->nkids; i++) {
		const struct gt_cnode *e = list->kid[i];
		snprintf(at, sizeof at, "%.200s[%d]", path, i);
		if (e->type != GT_C_GROUP) {
			GT_COLLECT(x->rd, err, gt_conf_expect(err, e, at, "a layer { type = \"…\"; … }"));
			continue;
		}
		enum gt_code code = gt_cnode_find(e, "block") ? expand_block(x, s, e, at, i, proto, err) : gt_layer_add(x, s, e, at, i, proto, err);
		GT_COLLECT(x->rd, err, code);
		if (code == GT_ECONFIG)
			GT_TRY(gt_layer_hold_name(x, s, e, at, i, err));
	}
	return GT_OK;
}

enum gt_code gt_conf_layers(struct gt_reading *rd, struct gt_err *err)
{
	struct gt_model_spec *m = &rd->conf->model;
	struct gt_expand x = {.rd = rd, .mask = 63, .last = m->ninputs ? m->inputs[0].name : "input"};
	struct gt_layer_spec proto = {.lr_mul = 1, .weight_decay = NAN, .init = -1, .init_eps = 5e-4, .init_samples = 5000};
	const struct gt_cnode *layers = gt_conf_given(rd->root, "model.layers");
	if (!layers) /* gt_object_read has reported the missing key */
		return GT_OK;
	GT_NEW(x.slot, rd->arena, x.mask + 1, err);
	x.blocks = gt_conf_given(rd->root, "model.blocks");
	if (!m->ninputs)
		GT_TRY(gt_layer_declare(&x, "input", "input", layers->loc, "model.layers", err));
	for (int i = 0; i < m->ninputs; i++)
		GT_TRY(gt_layer_declare(&x, m->inputs[i].name, m->inputs[i].name, layers->loc, "model.inputs", err));
	GT_TRY(gt_blocks_check(&x, err));
	GT_TRY(expand_list(&x, NULL, layers, "model.layers", &proto, err));
	m->layers = x.spec;
	m->nlayers = x.n;
	return GT_OK;
}
