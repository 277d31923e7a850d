/* lstm.steps, gru.steps and their gradients: prepares the workspace, sorts the samples by length, and starts the loops of rnn_isa.c. */
#include "cpu/rnn.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rnn {
	struct gt_cpu_loop loop;
	struct gt_rnn shape; /* sizes, and the addresses of most operands */
	const int32_t *lengths;
	const struct gt_rnn_isa *isa;
	bool back;
	size_t at_order, at_state; /* byte offsets in the workspace; the packed weights are at its start */
	char text[24];
};

static const struct gt_operand_slot slots[] = {
    GT_SLOT_AS(rnn, "x", shape.x), GT_SLOT_AS(rnn, "lengths", lengths), GT_SLOT_AS(rnn, "w", shape.w), GT_SLOT_AS(rnn, "b", shape.b),
    GT_SLOT_AS(rnn, "y", shape.y), GT_SLOT_AS(rnn, "gates", shape.gate_values), GT_SLOT_AS(rnn, "cells", shape.cells),
    GT_SLOT_AS(rnn, "dy", shape.dy), GT_SLOT_AS(rnn, "dx", shape.dx), GT_SLOT_AS(rnn, "before", shape.before),
    GT_SLOT_AS(rnn, "dh", shape.dh)};

/* Sorts the samples by length, the longest first, equal lengths by index (counting sort). Lengths beyond the tokens count as all tokens.
 * count: t + 2 elements of workspace. */
static void sort_by_length(struct gt_rnn *r, const int32_t *lengths, int32_t *count)
{
	int32_t t = (int32_t)r->t;
	memset(count, 0, (size_t)(t + 2) * sizeof *count);
	for (int pass = 0; pass < 2; pass++) {
		for (int64_t i = 0; i < r->n; i++) {
			int32_t l = !lengths || lengths[i] > t ? t : lengths[i] < 0 ? 0 : lengths[i];
			if (!pass) {
				count[t - l + 1]++;
				continue;
			}
			int32_t at = count[t - l]++;
			r->order[at] = (int32_t)i;
			r->length[at] = l;
		}
		for (int32_t l = 0; !pass && l <= t; l++)
			count[l + 1] += count[l];
	}
}

static enum gt_code launch_rnn(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct rnn *k = gt_cpu_loop_bind(head, a);
	struct gt_rnn *r = &k->shape;
	const struct gt_rnn_isa *isa = k->isa;
	int64_t wide = isa->width * (k->back ? 4 : 1);
	(void)err;
	r->packed = a->scratch;
	r->order = (int32_t *)(void *)((char *)a->scratch + k->at_order);
	r->length = r->order + r->n;
	r->state = (float *)(void *)((char *)a->scratch + k->at_state);
	sort_by_length(r, k->lengths, r->length + r->n);
	if (!r->gate_values || !r->cells)
		r->gate_values = NULL;
	gt_cpu_for(dev, (r->h + wide - 1) / wide, 1, 1, k->back ? isa->pack_backward : isa->pack_forward, r);
	gt_cpu_for(dev, r->groups, 1, 1, k->back ? isa->backward : isa->forward, r);
	return GT_OK;
}

static size_t align_size(size_t bytes)
{
	return (bytes + 63) / 64 * 64;
}

enum gt_code gt_cpu_rnn(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_rnn *attr = call->attr;
	bool lstm = call->code == GT_OP_LSTM_STEPS || call->code == GT_OP_LSTM_STEPS_DX;
	bool back = call->code == GT_OP_LSTM_STEPS_DX || call->code == GT_OP_GRU_STEPS_DX;
	const struct gt_tdesc *y = gt_opcall_operand(call, "y");
	struct gt_tdesc *w = gt_opcall_operand(call, "w");
	struct rnn *k;
	if (w->any)
		*w = gt_tdesc_make(w->dtype, w->rank, w->dim, false);
	if (!gt_tdesc_plain(w))
		return gt_opcall_refuse(call, err, "weights must have the plain layout");
	if (w->dim[0] != w->dim[1] * (lstm ? 4 : 3))
		return gt_opcall_refuse(call, err, "the weights must have rows for all gates");
	if (y->dim[0] > INT32_MAX || y->dim[1] > INT32_MAX - 2)
		return gt_opcall_refuse(call, err, "at most 2^31 samples and tokens are supported");
	GT_LOOP_NEW(k, slots, call, NULL, err);
	k->loop.head.launch = launch_rnn;
	k->isa = gt_rnn_isa(y->dtype == GT_BF16);
	k->back = back;
	struct gt_rnn *r = &k->shape;
	*r = (struct gt_rnn){.n = y->dim[0], .t = y->dim[1], .h = y->dim[2], .gates = lstm ? 4 : 3, .bf16 = y->dtype == GT_BF16,
	                     .reverse = attr->reverse};
	r->hp = (r->h + GT_RNN_PANEL - 1) / GT_RNN_PANEL * GT_RNN_PANEL;
	r->groups = gt_cpu_threads(dev) < r->n ? gt_cpu_threads(dev) : (int)r->n;
	r->state_size = gt_rnn_state_size(r, (r->n + r->groups - 1) / r->groups);
	k->at_order = align_size((size_t)gt_rnn_packed_size(r) * sizeof(float));
	k->at_state = k->at_order + align_size((size_t)(2 * r->n + r->t + 2) * sizeof(int32_t));
	k->loop.head.scratch = k->at_state + (size_t)r->groups * (size_t)r->state_size * sizeof(float);
	snprintf(k->text, sizeof k->text, "rnn:%s", k->isa->name);
	k->loop.head.describe = k->text;
	*out = &k->loop.head;
	return GT_OK;
}
