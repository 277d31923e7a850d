/* Reads one layer of a list. See layers.h. */
#include "conf/layers.h"
#include "conf/synonyms.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum gt_code gt_layer_fullname(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *entry, const char *path, int index,
                               const char **out, struct gt_err *err)
{
	const struct gt_cnode *n = gt_cnode_find(entry, "name");
	if (n)
		GT_TRY(gt_scope_value(x, s, n, path, &n, err));
	const char *name = n ? gt_cnode_word(n) : NULL;
	if (n && (!name || !gt_layer_name_fits(name)))
		return gt_conf_expect(err, n, path, "a name of letters, digits, _ . -");
	if (n)
		GT_NEW_STR(*out, gt_arena_printf(x->rd->arena, "%s%s", s ? s->prefix : "", name), err);
	else
		GT_NEW_STR(*out, gt_arena_printf(x->rd->arena, "%s%d", s ? s->prefix : "", index), err);
	if (strlen(*out) > GT_CONF_MAX_NAME)
		return gt_conf_fail(err, n ? n->loc : entry->loc, path, "expected at most %d bytes for this name together with the names of the "
		                    "layer's blocks, got %zu", GT_CONF_MAX_NAME, strlen(*out));
	return GT_OK;
}

static enum gt_code unknown_type(const struct gt_cnode *n, const char *path, const char *type, struct gt_err *err)
{
	char all[640], cut[64];
	size_t len = 0;
	const struct gt_op *op;
	struct gt_guess g = gt_guess_open(gt_utf8_truncate(type, cut, sizeof cut));
	const struct gt_synonym *syn = gt_synonym_find(GT_SYN_LAYER_TYPE, type);
	if (syn)
		return gt_conf_fail(err, n->loc, path, "expected a layer type, got \"%s\"; %s", cut, syn->reason);
	if ((op = gt_op_find_also(type)))
		return gt_conf_fail(err, n->loc, path, "expected a layer type, got \"%s\"; did you mean \"%s\"?", cut, gt_op_name(op));
	all[0] = 0;
	for (int i = 0; (op = gt_op_at(i)); i++) {
		if (!(op->flags & GT_OPF_LAYER))
			continue;
		gt_guess_try(&g, gt_op_name(op));
		if (len + 40 < sizeof all)
			len += (size_t)snprintf(all + len, sizeof all - len, "%s%s", len ? ", " : "", gt_op_name(op));
	}
	if (g.best)
		return gt_conf_fail(err, n->loc, path, "expected a layer type, got \"%s\"; did you mean \"%s\"?", cut, g.best);
	return gt_conf_fail(err, n->loc, path, "expected a layer type, got \"%s\"; the types are: %s", cut, all);
}

static enum gt_code read_in(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *n, const char *path,
                            struct gt_layer_spec *l, struct gt_err *err)
{
	bool many = n->type == GT_C_ARRAY || n->type == GT_C_LIST;
	int len = many ? n->nkids : 1;
	if (len < 1 || len > GT_MAX_LAYER_IN)
		return gt_conf_fail(err, n->loc, path, "expected 1 to %d names, got %d", GT_MAX_LAYER_IN, len);
	for (int i = 0; i < len; i++) {
		const struct gt_cnode *e = many ? n->kid[i] : n;
		const char *name = gt_cnode_word(e);
		if (!name)
			return gt_conf_expect(err, e, path, "the name of a layer");
		GT_TRY(gt_layer_resolve(x, s, name, e->loc, path, &l->in[i], err));
	}
	l->nin = len;
	return GT_OK;
}

static enum gt_code read_tie(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *n, const char *path,
                             struct gt_layer_spec *l, struct gt_err *err)
{
	const struct gt_cnode *v;
	char got[64];
	GT_TRY(gt_scope_value(x, s, n, path, &v, err));
	const char *name = gt_cnode_word(v);
	if (!name)
		return gt_conf_fail(err, n->loc, path, "expected the name of a layer, got %s", gt_cnode_text(v, got, sizeof got));
	return gt_layer_resolve(x, s, name, n->loc, path, &l->tie, err);
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
	if (r && !strcmp(r->path, "tie"))
		return read_tie(x, s, n, path, l, err);
	if (r && r->type == GT_T_OTHER) /* the caller has read the keys name and type */
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
		return gt_row_read(r, v, path, l, err);
	struct gt_row row = gt_row_of_attr(d, def);
	return gt_row_read(&row, v, path, l->attr, err);
}

enum gt_code gt_layer_add(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *entry, const char *at, int index,
                          const struct gt_layer_spec *proto, struct gt_err *err)
{
	struct gt_layer_spec l = *proto;
	const struct gt_cnode *type = gt_cnode_find(entry, "type"), *v, *name = gt_cnode_find(entry, "name");
	char path[320];
	bool unknown = false;
	snprintf(path, sizeof path, "%s.type", at);
	if (!type)
		return gt_conf_fail(err, entry->loc, path, "expected the type of this layer, or block = \"…\", got neither");
	GT_TRY(gt_scope_value(x, s, type, path, &v, err));
	const char *word = gt_cnode_word(v);
	if (!word)
		return gt_conf_expect(err, v, path, "a layer type");
	if (!(l.op = gt_op_find_layer(word)))
		return unknown_type(v, path, word, err);
	if (x->n == GT_CONF_MAX_LAYERS)
		return gt_conf_fail(err, entry->loc, at, "expected at most %d layers, got more", GT_CONF_MAX_LAYERS);
	GT_TRY(gt_arena_grow(x->rd->arena, &x->spec, x->n, &x->cap, sizeof *x->spec, err));
	size_t size = gt_op_attr_size(l.op);
	l.attr = gt_arena_alloc(x->rd->arena, 1, size ? size : 1);
	if (!l.attr)
		return gt_fail_memory(err, size);
	gt_op_defaults(l.op, l.attr);
	l.file = entry->loc.file;
	l.line = entry->loc.line;
	for (int i = 0; i < entry->nkids; i++) {
		enum gt_code code = read_key(x, s, entry->kid[i], at, &l, err);
		unknown |= code == GT_ECONFIG;
		GT_COLLECT(x->rd, err, code);
	}
	for (const struct gt_attr_def *d = l.op->attrs; d && d->key && !unknown; d++)
		if (isnan(d->def) && !gt_cnode_find(entry, d->key))
			return gt_conf_fail(err, entry->loc, at, "expected \"%s\" (%s), which %s needs, got nothing", d->key, d->help,
			                    gt_op_name(l.op));
	for (int i = 0; i < entry->nkids; i++)
		if (l.init != GT_INIT_WHITENING && (!strcmp(entry->kid[i]->name, "init_eps") || !strcmp(entry->kid[i]->name, "init_samples")))
			{
			char key[400];
			snprintf(key, sizeof key, "%s.%.64s", at, entry->kid[i]->name);
			return gt_conf_fail(err, entry->kid[i]->loc, key, "only init = \"whitening\" uses this key; remove the key");
		}
	snprintf(path, sizeof path, "%s.name", at);
	GT_TRY(gt_layer_fullname(x, s, entry, path, index, &l.name, err));
	GT_TRY(gt_layer_declare(x, l.name, l.name, name ? name->loc : entry->loc, path, err));
	/* By default, the input of the first layer of a block is the input of the block, and the input of any other layer is the previous
	 * layer. l.in is set only if the input is not the previous layer. */
	if (!l.nin && s && index == 0 && strcmp(s->input, x->last))
		l.in[l.nin++] = s->input;
	else if (l.nin == 1 && !strcmp(l.in[0], x->last))
		l.nin = 0;
	x->spec[x->n++] = l;
	x->last = l.name;
	return GT_OK;
}

enum gt_code gt_layer_hold_name(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *entry, const char *at, int index,
                                struct gt_err *err)
{
	struct gt_err ignored; /* an error about the name of this entry is dropped, because the entry's first error was reported */
	const char *name;
	enum gt_code code = gt_layer_fullname(x, s, entry, at, index, &name, &ignored);
	if (code == GT_OK && !gt_layer_declared(x, name))
		code = gt_layer_declare(x, name, name, entry->loc, at, &ignored);
	if (code == GT_OK)
		x->last = name;
	return code == GT_OK || code == GT_ECONFIG ? GT_OK : gt_fail_copy(err, &ignored);
}
