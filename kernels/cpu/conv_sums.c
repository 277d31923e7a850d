#include "base/arena.h"
#include "cpu/conv_sums.h"
#include <stdlib.h>
#include <string.h>

enum gt_code gt_conv_positions(const struct gt_tdesc *w, int64_t **at, struct gt_err *err)
{
	int64_t n = gt_tdesc_count(w);
	*at = malloc((size_t)n * sizeof **at);
	if (!*at)
		return gt_fail_memory(err, (size_t)n * sizeof **at);
	for (int64_t i = 0, rest = i; i < n; rest = ++i) {
		int64_t index[4];
		for (int d = 3; d >= 0; rest /= w->dim[d--])
			index[d] = rest % w->dim[d];
		(*at)[i] = gt_tdesc_offset(w, index);
	}
	return GT_OK;
}

enum gt_code gt_conv_sums_init(struct gt_conv_sums *s, const struct gt_opcall *call, struct gt_err *err)
{
	const struct gt_attr_conv2d *a = call->attr;
	struct gt_tdesc *dw = gt_opcall_operand(call, "dw");
	gt_cpu_choose_plain(dw);
	s->out = dw->dim[0], s->group_out = s->out / (a->groups > 1 ? a->groups : 1);
	s->in = dw->dim[1], s->taps = dw->dim[2] * dw->dim[3];
	s->padded_bytes = gt_tdesc_padded(dw) > gt_tdesc_count(dw) ? gt_tdesc_bytes(dw) : 0;
	s->add = gt_opcall_adds(call, "dw");
	return gt_tdesc_plain(dw) ? GT_OK : gt_conv_positions(dw, &s->at, err);
}

/* Stores the weights of output channels [begin, end). */
static void store_weights(const void *ctx, int64_t begin, int64_t end)
{
	const struct gt_conv_sums *s = ctx;
	for (int64_t o = begin; o < end; o++) {
		int64_t group = o / s->group_out, channel = o % s->group_out;
		const float *first = s->part + group * s->group_step + channel / s->width * s->panel_step + channel % s->width;
		for (int64_t i = 0; i < s->in; i++)
			for (int64_t t = 0; t < s->taps; t++) {
				const float *part = first + i * s->in_step + t * s->tap_step;
				int64_t w = (o * s->in + i) * s->taps + t;
				float *to = s->dw + (s->at ? s->at[w] : w), sum = part[0];
				for (int64_t j = 1; j < s->parts; j++)
					sum += part[j * s->floats];
				*to = sum + (s->add ? *to : 0);
			}
	}
}

void gt_conv_sums_store(const struct gt_dev *dev, const struct gt_conv_sums *s)
{
	if (s->padded_bytes && !s->add)
		memset(s->dw, 0, s->padded_bytes);
	gt_cpu_for(dev, s->out, 16384 / (s->in * s->taps * s->parts) + 1, 1, store_weights, s);
}
