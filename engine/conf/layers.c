/* Entries of a list of layers. See layers.h. */
#include "conf/layers.h"
#include "conf/synonyms.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---------------------------------------------------------------------------------------------------------------- */
static struct gt_layer_name *slot_of(const struct gt_expand *x, const char *name)
{
	uint32_t h = 2166136261u; /* FNV-1a */
	for (const char *s = name; *s; s++)
		h = (h ^ (unsigned char)*s) * 16777619u;
	while (x->slot[h & x->mask].name && strcmp(x->slot[h & x->mask].name, name))
		h++;
	return &x->slot[h & x->mask];
}

bool gt_layer_name_fits(const char *name)
{
	size_t n = strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-");
	return n && n <= GT_CONF_MAX_NAME && !name[n];
}

enum gt_code gt_layer_declare(struct gt_expand *x, const char *name, const char *layer, struct gt_source_loc at, const char *path,
                              struct gt_err *err)
{
	struct gt_layer_name *s = slot_of(x, name);
	if (s->name)
		return gt_conf_fail(err, at, path, "expected a name of its own, got \"%s\" once more", name);
	*s = (struct gt_layer_name){name, layer};
	if (2 * ++x->nnames <= x->mask)
		return GT_OK;
	struct gt_layer_name *old = x->slot;
	uint32_t n = x->mask + 1;
	GT_NEW(x->slot, x->rd->arena, 2 * n, err);
	x->mask = 2 * n - 1;
	for (uint32_t i = 0; i < n; i++)
		if (old[i].name)
			*slot_of(x, old[i].name) = old[i];
	return GT_OK;
}

enum gt_code gt_layer_fullname(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *entry, const char *path, int index,
                               const char **out, struct gt_err *err)
{
	const struct gt_cnode *n = gt_cnode_find(entry, "name");
	char got[64];
	if (n)
		GT_TRY(gt_scope_value(x, s, n, path, &n, err));
	const char *name = n && n->raw ? n->raw : n && n->type == GT_C_STRING ? n->s : NULL;
	if (n && (!name || !gt_layer_name_fits(name)))
		return gt_conf_fail(err, n->place, path, "expected a name of letters, digits, _ . -, got %s", gt_cnode_text(n, got, sizeof got));
	if (n)
		GT_NEW_STR(*out, gt_arena_printf(x->rd->arena, "%s%s", s ? s->prefix : "", name), err);
	else
		GT_NEW_STR(*out, gt_arena_printf(x->rd->arena, "%s%d", s ? s->prefix : "", index), err);
	if (strlen(*out) > GT_CONF_MAX_NAME)
		return gt_conf_fail(err, n ? n->place : entry->place, path, "expected a name of at most %d bytes with those of its blocks, got %zu",
		                    GT_CONF_MAX_NAME, strlen(*out));
	return GT_OK;
}

enum gt_code gt_layer_resolve(struct gt_expand *x, const struct gt_scope *s, const char *name, struct gt_source_loc at, const char *path,
                              const char **out, struct gt_err *err)
{
	if (s && !strcmp(name, "$in")) {
		*out = s->input;
		return GT_OK;
	}
	char full[2 * GT_CONF_MAX_NAME + 64], cut[64];
	for (const struct gt_scope *k = s; strlen(name) <= GT_CONF_MAX_NAME; k = k->parent) {
		snprintf(full, sizeof full, "%s%s", k ? k->prefix : "", name);
		const struct gt_layer_name *e = slot_of(x, full);
		if (e->name) {
			*out = e->layer;
			return GT_OK;
		}
		if (!k)
			break;
	}
	if (!strcmp(name, "$in"))
		return gt_conf_fail(err, at, path, "\"$in\" stands only inside a block; the model's input is \"input\"");
	struct gt_guess g = gt_guess_open(gt_utf8_truncate(name, cut, sizeof cut));
	size_t skip = s ? strlen(s->prefix) : 0;
	for (uint32_t i = 0; i <= x->mask; i++)
		if (x->slot[i].name && (!s || !strncmp(x->slot[i].name, s->prefix, skip)))
			gt_guess_try(&g, x->slot[i].name + skip);
	return gt_conf_fail(err, at, path, "expected the name of an earlier layer, got \"%s\"%s%s%s", cut, g.best ? "; did you mean \"" : "",
	                    g.best ? g.best : "", g.best ? "\"?" : "");
}

/* ---- one layer ------------------------------------------------------------------------------------------------------------ */
static enum gt_code unknown_type(const struct gt_cnode *n, const char *path, const char *type, struct gt_err *err)
{
	char all[640], cut[64];
	size_t len = 0;
	const struct gt_op *op;
	struct gt_guess g = gt_guess_open(gt_utf8_truncate(type, cut, sizeof cut));
	const struct gt_synonym *syn = gt_synonym_of_layer_type(type);
	if (syn && !syn->meant)
		return gt_conf_fail(err, n->place, path, "expected a layer type, got \"%s\"; %s", cut, syn->reason);
	if (syn)
		return gt_conf_fail(err, n->place, path, "expected a layer type, got \"%s\"; did you mean \"%s\"?", cut, syn->meant);
	all[0] = 0;
	for (int i = 0; (op = gt_op_at(i)); i++) {
		if (!(op->flags & GT_OPF_LAYER))
			continue;
		gt_guess_try(&g, gt_op_name(op));
		if (len + 40 < sizeof all)
			len += (size_t)snprintf(all + len, sizeof all - len, "%s%s", len ? ", " : "", gt_op_name(op));
	}
	if (g.best)
		return gt_conf_fail(err, n->place, path, "expected a layer type, got \"%s\"; did you mean \"%s\"?", cut, g.best);
	return gt_conf_fail(err, n->place, path, "expected a layer type, got \"%s\"; there are: %s", cut, all);
}

static enum gt_code read_in(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *n, const char *path,
                            struct gt_layer_spec *l, struct gt_err *err)
{
	bool many = n->type == GT_C_ARRAY || n->type == GT_C_LIST;
	int len = many ? n->nkids : 1;
	char got[64];
	if (len < 1 || len > GT_MAX_LAYER_IN)
		return gt_conf_fail(err, n->place, path, "expected 1 to %d names, got %d", GT_MAX_LAYER_IN, len);
	for (int i = 0; i < len; i++) {
		const struct gt_cnode *e = many ? n->kid[i] : n;
		const char *name = e->raw ? e->raw : e->type == GT_C_STRING ? e->s : NULL;
		if (!name)
			return gt_conf_fail(err, e->place, path, "expected the name of a layer, got %s", gt_cnode_text(e, got, sizeof got));
		GT_TRY(gt_layer_resolve(x, s, name, e->place, path, &l->in[i], err));
	}
	l->nin = len;
	return GT_OK;
}

static const struct gt_attr_def *attr_of(const struct gt_op *op, const char *key)
{
	for (const struct gt_attr_def *d = op->attrs; d && d->key; d++)
		if (!strcmp(d->key, key))
			return d;
	return NULL;
}

static enum gt_code read_key(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *n, const char *at,
                             struct gt_layer_spec *l, struct gt_err *err)
{
	const struct gt_row *r = gt_row_find(gt_rows_layer, n->name);
	const struct gt_attr_def *d = attr_of(l->op, n->name);
	const struct gt_cnode *v;
	char path[384], def[48];
	snprintf(path, sizeof path, "%s.%.64s", at, n->name);
	if (r && !strcmp(r->path, "in"))
		return read_in(x, s, n, path, l, err);
	if (r && r->type == GT_T_OTHER) /* name and type have been read */
		return GT_OK;
	if (!r && !d) {
		const char *words[64];
		int nwords = 0;
		for (d = l->op->attrs; d && d->key && nwords < 63; d++)
			words[nwords++] = d->key;
		words[nwords] = NULL;
		snprintf(path, sizeof path, "%s.", at);
		return gt_conf_unknown(n, path, n->name, gt_rows_layer, words, err);
	}
	GT_TRY(gt_scope_value(x, s, n, path, &v, err));
	if (r)
		return gt_row_read(x->rd->arena, r, v, path, l, err);
	struct gt_row row = gt_row_of_attr(d, def);
	return gt_row_read(x->rd->arena, &row, v, path, l->attr, err);
}

static enum gt_code grow(struct gt_expand *x, struct gt_source_loc at, const char *path, struct gt_err *err)
{
	if (x->n == GT_CONF_MAX_LAYERS)
		return gt_conf_fail(err, at, path, "more than %d layers", GT_CONF_MAX_LAYERS);
	if (x->n < x->cap)
		return GT_OK;
	int cap = x->cap ? 2 * x->cap : 32;
	struct gt_layer_spec *spec;
	GT_NEW(spec, x->rd->arena, cap, err);
	if (x->n)
		memcpy(spec, x->spec, (size_t)x->n * sizeof *spec);
	x->spec = spec;
	x->cap = cap;
	return GT_OK;
}

static enum gt_code add_layer(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *entry, const char *at, int index,
                              const struct gt_layer_spec *proto, struct gt_err *err)
{
	struct gt_layer_spec l = *proto;
	const struct gt_cnode *type = gt_cnode_find(entry, "type"), *v, *name = gt_cnode_find(entry, "name");
	char path[320], got[64];
	bool unknown = false;
	snprintf(path, sizeof path, "%s.type", at);
	if (!type)
		return gt_conf_fail(err, entry->place, path, "expected the type of this layer, or block = \"…\", got neither");
	GT_TRY(gt_scope_value(x, s, type, path, &v, err));
	const char *word = v->raw ? v->raw : v->type == GT_C_STRING ? v->s : NULL;
	if (!word)
		return gt_conf_fail(err, v->place, path, "expected a layer type, got %s", gt_cnode_text(v, got, sizeof got));
	if (!(l.op = gt_op_find_layer(word)))
		return unknown_type(v, path, word, err);
	GT_TRY(grow(x, entry->place, at, err));
	l.attr = gt_arena_alloc(x->rd->arena, 1, l.op->attr_size ? l.op->attr_size : 1);
	if (!l.attr)
		return gt_fail_memory(err, l.op->attr_size);
	gt_op_defaults(l.op, l.attr);
	l.file = entry->place.file;
	l.line = entry->place.line;
	for (int i = 0; i < entry->nkids; i++) {
		enum gt_code code = read_key(x, s, entry->kid[i], at, &l, err);
		unknown |= code == GT_ECONFIG;
		GT_COLLECT(x->rd, err, code);
	}
	for (const struct gt_attr_def *d = l.op->attrs; d && d->key && !unknown; d++)
		if (isnan(d->def) && !gt_cnode_find(entry, d->key))
			return gt_conf_fail(err, entry->place, at, "expected \"%s\" (%s), which %s needs, got nothing", d->key, d->help,
			                    gt_op_name(l.op));
	for (int i = 0; i < entry->nkids; i++)
		if (l.init != GT_INIT_WHITENING && (!strcmp(entry->kid[i]->name, "init_eps") || !strcmp(entry->kid[i]->name, "init_samples")))
			{
			char key[400];
			snprintf(key, sizeof key, "%s.%.64s", at, entry->kid[i]->name);
			return gt_conf_fail(err, entry->kid[i]->place, key, "init = \"whitening\" alone uses it");
		}
	snprintf(path, sizeof path, "%s.name", at);
	GT_TRY(gt_layer_fullname(x, s, entry, path, index, &l.name, err));
	GT_TRY(gt_layer_declare(x, l.name, l.name, name ? name->place : entry->place, path, err));
	/* The first of a block takes the block's input, every other the layer before: said only where it is not the one before. */
	if (!l.nin && s && index == 0 && strcmp(s->input, x->last))
		l.in[l.nin++] = s->input;
	else if (l.nin == 1 && !strcmp(l.in[0], x->last))
		l.nin = 0;
	x->spec[x->n++] = l;
	x->last = l.name;
	return GT_OK;
}

/* After an error: later layers may name this one all the same. */
static enum gt_code hold_name(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *entry, const char *at, int index,
                              struct gt_err *err)
{
	struct gt_err ignored; /* a wrong name has been reported, or is not what is wrong here */
	const char *name;
	enum gt_code code = gt_layer_fullname(x, s, entry, at, index, &name, &ignored);
	if (code == GT_OK && !slot_of(x, name)->name)
		code = gt_layer_declare(x, name, name, entry->place, at, &ignored);
	if (code == GT_OK)
		x->last = name;
	return code == GT_OK || code == GT_ECONFIG ? GT_OK : gt_fail(err, code, "%s", ignored.msg);
}

enum gt_code gt_layers_expand(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *list, const char *path,
                              const struct gt_layer_spec *proto, struct gt_err *err)
{
	char at[256], got[64];
	if (list->type != GT_C_LIST || !list->nkids)
		return gt_conf_fail(err, list->place, path, "expected a list ( ) of one or more layers, got %s",
		                    gt_cnode_text(list, got, sizeof got));
	for (int i = 0; i < list->nkids; i++) {
		const struct gt_cnode *e = list->kid[i];
		snprintf(at, sizeof at, "%.200s[%d]", path, i);
		if (e->type != GT_C_GROUP) {
			GT_COLLECT(x->rd, err,
			           gt_conf_fail(err, e->place, at, "expected a layer { type = \"…\"; … }, got %s", gt_cnode_text(e, got, sizeof got)));
			continue;
		}
		enum gt_code code = gt_cnode_find(e, "block") ? gt_block_expand(x, s, e, at, i, proto, err) : add_layer(x, s, e, at, i, proto, err);
		GT_COLLECT(x->rd, err, code);
		if (code == GT_ECONFIG)
			GT_TRY(hold_name(x, s, e, at, i, err));
	}
	return GT_OK;
}

enum gt_code gt_conf_layers(struct gt_reading *rd, struct gt_err *err)
{
	struct gt_model_spec *m = &rd->conf->model;
	struct gt_expand x = {.rd = rd, .mask = 63, .last = "input"};
	struct gt_layer_spec proto = {.lr_mul = 1, .weight_decay = NAN, .init = -1, .init_eps = 5e-4, .init_samples = 5000};
	const struct gt_cnode *layers = gt_conf_given(rd->root, "model.layers");
	if (!layers) /* gt_object_read has reported it */
		return GT_OK;
	GT_NEW(x.slot, rd->arena, x.mask + 1, err);
	x.blocks = gt_conf_given(rd->root, "model.blocks");
	GT_TRY(gt_layer_declare(&x, "input", "input", layers->place, "model.layers", err));
	GT_TRY(gt_blocks_check(&x, err));
	GT_TRY(gt_layers_expand(&x, NULL, layers, "model.layers", &proto, err));
	m->layers = x.spec;
	m->nlayers = x.n;
	return GT_OK;
}
