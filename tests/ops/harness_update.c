#include "harness_update.h"
#include <stdlib.h>
#include <string.h>

const struct gt_optimizer_row *update_optimizer(const struct opcase *c)
{
	for (int i = 0; i < GT_OPT_COUNT; i++)
		if (!strcmp(gt_optimizer_rows[i].word, c->type + strlen("update:")))
			return &gt_optimizer_rows[i];
	return NULL;
}

/* The value of a key in the case or, without one, the optimizer's default, which is PyTorch's. */
static double number_of(const struct opcase *c, const struct gt_optimizer_row *row, const char *key, const char *def)
{
	const struct gt_type_key *k = gt_type_key_find(row->key, key);
	return opcase_number(c, key, strtod(k && k->def ? k->def : def, NULL));
}

#define SET_NUMBER(key, def) attr->key = number_of(c, row, #key, def);
#define SET_FLAG(key, def) attr->key = opcase_key(c, #key);
#define SET_BETAS(key, def) attr->beta1 = opcase_number(c, "beta1", 0.9), attr->beta2 = opcase_number(c, "beta2", 0.999);

void update_keys(const struct opcase *c, const struct gt_optimizer_row *row, struct gt_attr_update *attr)
{
	attr->decoupled = row->decoupled;
	attr->clip_norm = opcase_number(c, "clip_norm", 0);
	attr->clip_value = opcase_number(c, "clip_value", 0);
	attr->work_dtype = GT_BF16;
#define GT_X(P, A, KIND, key, def, ...) SET_##KIND(key, def)
	GT_OPTIMIZER_KEYS(GT_X, , )
#undef GT_X
}
