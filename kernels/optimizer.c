#include "optimizer.h"
#include <string.h>

#define STATE_NONE() {NULL, GT_STATE_NONE}
#define STATE_ALWAYS(text) {text, GT_STATE_ALWAYS}
#define STATE_IF(key, text) {text, GT_STATE_IF_##key}
/* values of gt_update_row.matrix and .whole */
#define NEEDS_PLAIN false, false
#define NEEDS_FIRST_NESTEROV false, false
#define NEEDS_NORMS false, true
#define NEEDS_MATRIX true, true

const struct gt_update_row *gt_update_row(enum gt_opcode code)
{
	static const struct gt_update_row rows[] = {
#define GT_X(NAME, name, s0, s1, s2, loops) \
	{GT_OP_##NAME, NEEDS_##loops, GT_STATES_SLOTS(s0, s1, s2), {STATE_##s0, STATE_##s1, STATE_##s2}},
	    GT_UPDATES(GT_X)
#undef GT_X
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].code == code)
			return &rows[i];
	return NULL;
}

#define SET_NUMBER(attr, key) ((attr)->key != 0)
#define SET_FLAG(attr, key) ((attr)->key)
#define SET_BETAS(attr, key) true

bool gt_update_has(const struct gt_update_row *row, const struct gt_attr_update *attr, int slot)
{
	switch (row->state[slot].when) {
	case GT_STATE_NONE:
		return false;
	case GT_STATE_ALWAYS:
		return true;
#define GT_X(P, A, KIND, key, ...) \
	case GT_STATE_IF_##key: \
		return SET_##KIND(attr, key);
		GT_OPTIMIZER_KEYS(GT_X, , )
#undef GT_X
	}
	return false;
}

const char *gt_update_check(const struct gt_opcall *call)
{
	const struct gt_update_row *row = gt_update_row(call->code);
	const struct gt_attr_update *attr = call->attr;
	int64_t n = gt_tdesc_padded(gt_opcall_operand(call, "p")), at = 0;
	for (int i = 0; i < row->nslots; i++)
		if (!gt_opcall_operand(call, row->state[i].name) != !gt_update_has(row, attr, i))
			return "the number of state tensors does not match the attributes";
	if (!gt_opcall_operand(call, "scalars") && attr->clip_norm > 0)
		return "clipping needs the scalars of the step";
	for (int i = 0; i < attr->nseg; i++) {
		const struct gt_seg *s = &attr->seg[i];
		const struct gt_tdesc *d = row->matrix ? ((const struct gt_attr_muon *)call->attr)->desc[i] : NULL;
		if (s->begin < at || s->end < s->begin || s->end > n)
			return "the segments must be ascending and inside the parameters";
		if (d && (d->rank < 2 || gt_tdesc_padded(d) != s->end - s->begin))
			return "the segments must be matrices";
		at = s->end;
	}
	return NULL;
}

size_t gt_update_slots(enum gt_opcode code, struct gt_operand_slot *slots, size_t n, size_t at)
{
	const struct gt_update_row *row = gt_update_row(code);
	for (int i = 0; i < row->nslots; i++)
		slots[n++] = (struct gt_operand_slot){row->state[i].name, at + (size_t)i * sizeof(void *)};
	return n;
}

const struct gt_optimizer_row gt_optimizer_rows[GT_OPT_COUNT] = {
#define GT_X(NAME, text, UPDATE, is_decoupled, help, ...) \
	[GT_OPT_##NAME] = {.word = text, .update = GT_OP_##UPDATE, .decoupled = is_decoupled, .key = {__VA_ARGS__}},
    GT_OPTIMIZERS(GT_X)
#undef GT_X
};

const struct gt_type_key *gt_type_key_find(const struct gt_type_key *list, const char *key)
{
	for (; list->key; list++)
		if (!strcmp(list->key, key))
			return list;
	return NULL;
}

/* Returns whether a step with the gradient 0 does not change an element, so that only elements with a gradient need a step: sgd without
 * momentum and weight decay. */
static bool keeps_idle_elements(enum gt_opcode code, const struct gt_attr_update *attr)
{
	for (int i = 0; i < attr->nseg; i++)
		if (attr->seg[i].weight_decay != 0)
			return false;
	return code == GT_OP_SGD && attr->momentum == 0;
}

const char *gt_update_refuses_fused(const struct gt_opcall *call)
{
	if (call->code == GT_OP_LINEAR_DW_UPDATE) {
		const struct gt_update_row *row = gt_update_row(((const struct gt_attr_dw_update *)call->attr)->optimizer);
		return row && !row->whole ? NULL : "the optimizer is not an element-wise update";
	}
	if (call->code != GT_OP_EMBEDDING_DW_UPDATE && call->code != GT_OP_EMBEDDING_BAG_DW_UPDATE)
		return NULL;
	const struct gt_attr_embedding_update *attr = call->attr;
	return keeps_idle_elements(attr->optimizer, &attr->update) ? NULL : "the optimizer also changes rows without a gradient";
}
