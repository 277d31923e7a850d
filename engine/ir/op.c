/* The table of operations and lookups in it. */
#include "ir/op.h"
#include "opsig.h"
#include <math.h>
#include <string.h>

static const struct gt_op *const families[] = {
#define GT_X(family) gt_ops_##family,
    GT_FAMILIES(GT_X)
#undef GT_X
};
#define NFAMILIES ((int)(sizeof families / sizeof families[0]))

/* Returns the first row for which `wanted` returns true; NULL: no such row. */
static const struct gt_op *find_first(bool (*wanted)(const struct gt_op *op, void *what), void *what)
{
	for (int i = 0; i < NFAMILIES; i++)
		for (const struct gt_op *op = families[i]; op->code != GT_OP_COUNT || op->name; op++)
			if (wanted(op, what))
				return op;
	return NULL;
}

static bool count_down(const struct gt_op *op, void *left)
{
	(void)op;
	return (*(int *)left)-- == 0;
}

const struct gt_op *gt_op_at(int i)
{
	return find_first(count_down, &i);
}

static bool has_opcode(const struct gt_op *op, void *code)
{
	return op->code == *(enum gt_opcode *)code;
}

const struct gt_op *gt_op_get(enum gt_opcode code)
{
	return find_first(has_opcode, &code);
}

const char *gt_op_name(const struct gt_op *op)
{
	return op->name ? op->name : gt_opcode_name(op->code);
}

size_t gt_op_attr_size(const struct gt_op *op)
{
	return op->code == GT_OP_COUNT ? op->attr_size : gt_opcode_attr_size(op->code);
}

struct type {
	const char *name;
	unsigned flag;
};

static bool is_type(const struct gt_op *op, void *type)
{
	const struct type *t = type;
	return op->flags & t->flag && !strcmp(gt_op_name(op), t->name);
}

const struct gt_op *gt_op_find_layer(const char *type)
{
	return find_first(is_type, &(struct type){type, GT_OPF_LAYER});
}

const struct gt_op *gt_op_find_loss(const char *type)
{
	return find_first(is_type, &(struct type){type, GT_OPF_LOSS});
}

static bool has_alias(const struct gt_op *op, void *word)
{
	size_t n;
	for (const char *s = op->also; s && *s; s += n + (s[n] == '|')) {
		n = strcspn(s, "|");
		if (n == strlen(word) && !strncasecmp(s, word, n))
			return true;
	}
	return false;
}

const struct gt_op *gt_op_find_also(const char *word)
{
	return find_first(has_alias, (void *)word);
}

void gt_op_defaults(const struct gt_op *op, void *attr)
{
	memset(attr, 0, gt_op_attr_size(op));
	for (const struct gt_attr_def *d = op->attrs; d && d->key; d++) {
		char *p = (char *)attr + d->offset;
		int64_t v = isnan(d->def) ? 0 : (int64_t)d->def;
		switch (d->type) {
		case GT_ATTR_INT2:
			((int64_t *)(void *)p)[1] = v;
			/* fall through */
		case GT_ATTR_INT:
			((int64_t *)(void *)p)[0] = v;
			break;
		case GT_ATTR_INTS: /* an empty list */
			break;
		case GT_ATTR_FLOAT:
			*(double *)(void *)p = isnan(d->def) ? 0 : d->def;
			break;
		case GT_ATTR_BOOL:
			*(bool *)p = v != 0;
			break;
		case GT_ATTR_ENUM:
			*(int *)(void *)p = (int)v;
			break;
		}
	}
}
