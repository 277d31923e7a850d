/* lstm.steps, gru.steps and their gradients: prepares the workspace, sorts the samples by length, and starts the loops of rnn_isa.c. */
#include "cpu/rnn.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rnn {
	struct gt_kernel head;
	struct gt_rnn shape;
	const struct gt_rnn_isa *isa;
	bool back, bias, lengths, saves, before, dh;
	size_t at_order, at_state; /* byte offsets in the workspace; the packed weights are at its begin */
	char text[24];
};

/* Sorts the samples by length, the longest first, those of the same length by number (counting sort). Lengths beyond the tokens count as
 * all tokens. count: t + 2 elements of workspace. */
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
	const struct rnn *k = (const struct rnn *)head;
	struct gt_rnn r = k->shape;
	const struct gt_rnn_isa *isa = k->isa;
	int64_t wide = isa->width * (k->back ? 4 : 1);
	(void)err;
	r.packed = a->scratch;
	r.order = (int32_t *)(void *)((char *)a->scratch + k->at_order);
	r.length = r.order + r.n;
	r.state = (float *)(void *)((char *)a->scratch + k->at_state);
	sort_by_length(&r, k->lengths ? a->in[k->back ? 4 : 1] : NULL, r.length + r.n);
	if (k->back) {
		r.dy = a->in[0], r.y = a->in[1], r.gate_values = a->in[2], r.cells = a->in[3], r.w = a->in[5];
		r.dx = a->out[0], r.before = k->before ? a->out[1] : NULL, r.dh = k->dh ? a->out[2] : NULL;
	} else {
		r.x = a->in[0], r.w = a->in[2], r.b = k->bias ? a->in[3] : NULL, r.y = a->out[0];
		if (k->saves)
			r.gate_values = a->out[1], r.cells = a->out[2];
	}
	gt_cpu_for(dev, (r.h + wide - 1) / wide, 1, 1, k->back ? isa->pack_backward : isa->pack_forward, &r);
	gt_cpu_for(dev, r.groups, 1, 1, k->back ? isa->backward : isa->forward, &r);
	return GT_OK;
}

static bool has_operand(struct gt_tdesc *const *d, int n, int i)
{
	return i < n && d[i];
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
	const struct gt_tdesc *y = back ? call->in[1] : call->out[0];
	struct gt_tdesc *w = call->in[back ? 5 : 2];
	struct rnn *k;
	if (w->any)
		*w = gt_tdesc_make(w->dtype, w->rank, w->dim, false);
	if (!gt_tdesc_plain(w))
		return gt_cpu_refuse(call, err, "it supports weights in the plain layout only");
	if (w->dim[0] != w->dim[1] * (lstm ? 4 : 3))
		return gt_cpu_refuse(call, err, "the weights do not have the rows of all gates");
	if (y->dim[0] > INT32_MAX || y->dim[1] > INT32_MAX - 2)
		return gt_cpu_refuse(call, err, "it supports up to 2^31 samples and tokens");
	GT_KERNEL_NEW(k, launch_rnn, NULL, err);
	k->isa = gt_rnn_isa();
	k->back = back;
	k->bias = !back && has_operand(call->in, call->nin, 3);
	k->lengths = has_operand(call->in, call->nin, back ? 4 : 1);
	k->saves = !back && has_operand(call->out, call->nout, 1) && has_operand(call->out, call->nout, 2);
	k->before = back && has_operand(call->out, call->nout, 1);
	k->dh = back && has_operand(call->out, call->nout, 2);
	struct gt_rnn *r = &k->shape;
	*r = (struct gt_rnn){.n = y->dim[0], .t = y->dim[1], .h = y->dim[2], .gates = lstm ? 4 : 3, .bf16 = y->dtype == GT_BF16,
	                     .reverse = attr->reverse};
	r->hp = (r->h + GT_RNN_PANEL - 1) / GT_RNN_PANEL * GT_RNN_PANEL;
	r->groups = gt_cpu_threads(dev) < r->n ? gt_cpu_threads(dev) : (int)r->n;
	r->state_size = gt_rnn_state_size(r, (r->n + r->groups - 1) / r->groups);
	k->at_order = align_size((size_t)gt_rnn_packed_size(r) * sizeof(float));
	k->at_state = k->at_order + align_size((size_t)(2 * r->n + r->t + 2) * sizeof(int32_t));
	k->head.scratch = k->at_state + (size_t)r->groups * (size_t)r->state_size * sizeof(float);
	snprintf(k->text, sizeof k->text, "rnn:%s", k->isa->name);
	k->head.describe = k->text;
	*out = &k->head;
	return GT_OK;
}
