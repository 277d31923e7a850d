/* Checks templates of blocks, and looks up the values of their parameters. See layers.h. */
#include "conf/layers.h"
#include <stdio.h>
#include <string.h>

static const char *const reserved[] = {"block", "repeat", "first", "in", NULL};

static bool is_reserved(const char *word)
{
	for (int i = 0; reserved[i]; i++)
		if (!strcmp(reserved[i], word))
			return true;
	return gt_row_find(gt_rows_layer, word) != NULL;
}

static bool has_param(const struct gt_cnode *tmpl, const char *name)
{
	const struct gt_cnode *params = gt_cnode_find(tmpl, "params");
	for (int i = 0; params && i < params->nkids; i++)
		if (!strcmp(gt_cnode_string(params->kid[i]), name))
			return true;
	return false;
}

static enum gt_code refuse_unknown_param(const struct gt_cnode *at, const struct gt_cnode *tmpl, const char *path, const char *name,
                                         struct gt_err *err)
{
	const struct gt_cnode *params = gt_cnode_find(tmpl, "params");
	char cut[64];
	struct gt_guess g = gt_guess_open(gt_utf8_truncate(name, cut, sizeof cut));
	for (int i = 0; params && i < params->nkids; i++)
		gt_guess_try(&g, gt_cnode_string(params->kid[i]));
	return gt_conf_fail(err, at->loc, path, "\"%s\" is not a parameter of the block \"%.64s\"%s%s%s", cut, tmpl->name,
	                    g.best ? "; did you mean \"" : "", g.best ? g.best : "", g.best ? "\"?" : "");
}

/* ---- checking the templates ------------------------------------------------------------------------------------------------ */
/* Checks that every "$word" below n is a parameter of the template, and counts the uses of param (NULL: none). */
static enum gt_code check_uses(const struct gt_cnode *tmpl, const struct gt_cnode *n, const char *path, const char *param, int *uses,
                               struct gt_err *err)
{
	const char *s = gt_cnode_string(n);
	for (int i = 0; i < n->nkids; i++)
		GT_TRY(check_uses(tmpl, n->kid[i], path, param, uses, err));
	if (!s || s[0] != '$' || !strcmp(s, "$in"))
		return GT_OK;
	if (!has_param(tmpl, s + 1))
		return refuse_unknown_param(n, tmpl, path, s + 1, err);
	*uses += param && !strcmp(s + 1, param);
	return GT_OK;
}

static enum gt_code check_params(const struct gt_cnode *tmpl, const char *at, struct gt_err *err)
{
	const struct gt_cnode *params = gt_cnode_find(tmpl, "params");
	char path[256];
	snprintf(path, sizeof path, "%s.params", at);
	if (!params)
		return GT_OK;
	if ((params->type != GT_C_ARRAY && params->type != GT_C_LIST) || params->nkids > 64)
		return gt_conf_expect(err, params, path, "an array of at most 64 names");
	for (int i = 0; i < params->nkids; i++) {
		const struct gt_cnode *p = params->kid[i];
		const char *name = gt_cnode_string(p);
		size_t n = name ? strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") : 0;
		if (!n || name[n] || n > 40 || strchr("0123456789_-", name[0]))
			return gt_conf_expect(err, p, path, "a name of letters, digits, _ and -");
		if (is_reserved(name))
			return gt_conf_fail(err, p->loc, path, "expected a name that is not a layer's key, got \"%s\", which is a key of every layer",
			                    name);
		for (int k = 0; k < i; k++)
			if (!strcmp(name, gt_cnode_string(params->kid[k])))
				return gt_conf_fail(err, p->loc, path, "expected each parameter once, got \"%s\" twice", name);
	}
	return GT_OK;
}

static enum gt_code check_template(const struct gt_cnode *tmpl, struct gt_err *err)
{
	const struct gt_cnode *params = gt_cnode_find(tmpl, "params"), *layers = gt_cnode_find(tmpl, "layers");
	const struct gt_cnode *defaults = gt_cnode_find(tmpl, "defaults");
	char at[128], path[256], got[64];
	int uses = 0;
	snprintf(at, sizeof at, "model.blocks.%.64s", tmpl->name);
	if (tmpl->type != GT_C_GROUP)
		return gt_conf_expect(err, tmpl, at, "a group { params; layers }");
	for (int i = 0; i < tmpl->nkids; i++) {
		snprintf(path, sizeof path, "%s.", at);
		if (!gt_row_find(gt_rows_template, tmpl->kid[i]->name))
			return gt_conf_unknown(tmpl->kid[i], path, tmpl->kid[i]->name, gt_rows_template, NULL, err);
	}
	GT_TRY(check_params(tmpl, at, err));
	snprintf(path, sizeof path, "%s.layers", at);
	if (!layers || layers->type != GT_C_LIST || !layers->nkids)
		return gt_conf_fail(err, layers ? layers->loc : tmpl->loc, path, "expected a list ( ) of layers, got %s",
		                    layers ? gt_cnode_text(layers, got, sizeof got) : "nothing");
	GT_TRY(check_uses(tmpl, layers, path, NULL, &uses, err));
	for (int i = 0; params && i < params->nkids; i++) {
		uses = 0;
		GT_TRY(check_uses(tmpl, layers, path, gt_cnode_string(params->kid[i]), &uses, err));
		if (!uses)
			return gt_conf_fail(err, params->kid[i]->loc, at, "no layer of the block uses the parameter \"%s\"; remove it from params",
			                    gt_cnode_string(params->kid[i]));
	}
	snprintf(path, sizeof path, "%s.defaults", at);
	if (defaults && defaults->type != GT_C_GROUP)
		return gt_conf_expect(err, defaults, path, "a group { }");
	for (int i = 0; defaults && i < defaults->nkids; i++)
		if (!has_param(tmpl, defaults->kid[i]->name))
			return refuse_unknown_param(defaults->kid[i], tmpl, path, defaults->kid[i]->name, err);
	return GT_OK;
}

enum gt_code gt_blocks_check(const struct gt_expand *x, struct gt_err *err)
{
	if (x->blocks && x->blocks->type != GT_C_GROUP)
		return gt_conf_expect(err, x->blocks, "model.blocks", "a group { }");
	for (int i = 0; x->blocks && i < x->blocks->nkids; i++) {
		enum gt_code code = check_template(x->blocks->kid[i], err);
		x->blocks->kid[i]->bad = code == GT_ECONFIG;
		GT_COLLECT(x->rd, err, code);
	}
	return GT_OK;
}

/* Copies an array and replaces parameters among its elements. */
static enum gt_code array_value(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *n, const char *path,
                                const struct gt_cnode **out, struct gt_err *err)
{
	struct gt_cnode *copy;
	bool any = false;
	for (int i = 0; i < n->nkids; i++)
		any |= gt_cnode_string(n->kid[i]) && gt_cnode_string(n->kid[i])[0] == '$';
	*out = n;
	if (!any || !s)
		return GT_OK;
	GT_NEW(copy, x->rd->arena, 1, err);
	*copy = *n;
	GT_NEW(copy->kid, x->rd->arena, n->nkids, err);
	for (int i = 0; i < n->nkids; i++) {
		const struct gt_cnode *v = n->kid[i];
		if (gt_cnode_string(v))
			GT_TRY(gt_scope_value(x, s, v, path, &v, err));
		copy->kid[i] = (struct gt_cnode *)v; /* the cast is safe, because no code changes the elements of this copy */
	}
	*out = copy;
	return GT_OK;
}

enum gt_code gt_scope_value(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *n, const char *path,
                            const struct gt_cnode **out, struct gt_err *err)
{
	const char *word;
	char cut[64];
	while ((word = gt_cnode_string(n)) && word[0] == '$') {
		if (!s)
			return gt_conf_fail(err, n->loc, path, "\"%s\" is a parameter of a block, and only layers of a block can use it",
			                    gt_utf8_truncate(word, cut, sizeof cut));
		const struct gt_cnode *v = s->first ? gt_cnode_find(s->first, word + 1) : NULL, *defaults = gt_cnode_find(s->tmpl, "defaults");
		if (!has_param(s->tmpl, word + 1))
			return refuse_unknown_param(n, s->tmpl, path, word + 1, err);
		bool own = false;
		if (!v)
			v = gt_cnode_find(s->inst, word + 1);
		if (!v && defaults) {
			v = gt_cnode_find(defaults, word + 1);
			own = true; /* v is a default of the template, so "$word" in v would name a parameter of the template, not of the outer scope */
		}
		if (!v)
			return gt_conf_fail(err, s->inst->loc, path, "expected a value for \"%s\", which the block \"%.64s\" needs, got nothing",
			                    word + 1, s->tmpl->name);
		if (own && gt_cnode_string(v) && gt_cnode_string(v)[0] == '$')
			return gt_conf_fail(err, v->loc, path, "expected a value as the default, got the name of a parameter");
		n = v;
		if (!own)
			s = s->parent;
	}
	*out = n;
	return n->type == GT_C_ARRAY || n->type == GT_C_LIST ? array_value(x, s, n, path, out, err) : GT_OK;
}

enum gt_code gt_block_check_keys(const struct gt_cnode *inst, const struct gt_cnode *tmpl, const char *at, bool first, struct gt_err *err)
{
	char path[320];
	for (int i = 0; i < inst->nkids; i++) {
		const char *key = inst->kid[i]->name;
		snprintf(path, sizeof path, "%s.%.64s", at, key);
		if (has_param(tmpl, key) || (!first && is_reserved(key) && strcmp(key, "type")))
			continue;
		if (!strcmp(key, "type"))
			return gt_conf_fail(err, inst->kid[i]->loc, path, "expected either type or block, got both keys; remove one key");
		return refuse_unknown_param(inst->kid[i], tmpl, path, key, err);
	}
	return GT_OK;
}
