/* A hash table of the layer names that were read so far, and the search for a name in a scope. See layers.h. */
#include "conf/layers.h"
#include <stdio.h>
#include <string.h>

static struct gt_layer_name *slot_of(const struct gt_expand *x, const char *name)
{
	uint32_t h = 2166136261u; /* the hash function FNV-1a */
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
		return gt_conf_fail(err, at, path, "expected a name that no other layer has, got \"%s\" again", name);
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

bool gt_layer_declared(const struct gt_expand *x, const char *name)
{
	return slot_of(x, name)->name;
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
		return gt_conf_fail(err, at, path, "\"$in\" is the input of a block, and only layers of a block can use it; the model's input is "
		                    "\"input\"");
	struct gt_guess g = gt_guess_open(gt_utf8_truncate(name, cut, sizeof cut));
	size_t skip = s ? strlen(s->prefix) : 0;
	for (uint32_t i = 0; i <= x->mask; i++)
		if (x->slot[i].name && (!s || !strncmp(x->slot[i].name, s->prefix, skip)))
			gt_guess_try(&g, x->slot[i].name + skip);
	return gt_conf_fail(err, at, path, "expected the name of an earlier layer, got \"%s\"%s%s%s", cut, g.best ? "; did you mean \"" : "",
	                    g.best ? g.best : "", g.best ? "\"?" : "");
}
