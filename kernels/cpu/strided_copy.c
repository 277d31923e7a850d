/* permute, select and select.dx: copies of elements of any size, in the order of the output's memory (strided.h). */
#include "cpu/loops.h"
#include "strided.h"
#include <string.h>

struct strided {
	struct gt_cpu_loop loop; /* loop over rows (elements of the output's last dimension) */
	const void *in;
	void *out;
	struct gt_strided s;
};

static const struct gt_operand_slot slots[] = {
    GT_SLOT_AS(strided, "x", in), GT_SLOT_AS(strided, "dy", in), GT_SLOT_AS(strided, "y", out), GT_SLOT_AS(strided, "dx", out)};

#define GT_ROWS(name, type)                                                                                                                \
	GT_CLONES static void name(const void *ctx, int64_t begin, int64_t end)                                                                \
	{                                                                                                                                      \
		const struct strided *c = ctx;                                                                                                     \
		const struct gt_strided *s = &c->s;                                                                                                \
		int64_t n = s->dim[3], step = s->step[3];                                                                                          \
		for (int64_t r = begin; r < end; r++) {                                                                                            \
			int64_t at[3] = {r / (s->dim[1] * s->dim[2]), r / s->dim[2] % s->dim[1], r % s->dim[2]};                                       \
			const type *in = (const type *)c->in + s->first + at[0] * s->step[0] + at[1] * s->step[1] + at[2] * s->step[2];                \
			type *out = (type *)c->out + r * n;                                                                                            \
			if (s->guard >= 0 && (s->guard == 3 || at[s->guard] != s->index)) {                                                            \
				memset(out, 0, (size_t)n * sizeof *out);                                                                                   \
				if (s->guard == 3)                                                                                                         \
					out[s->index] = *in;                                                                                                  \
			} else if (step == 1) {                                                                                                        \
				memcpy(out, in, (size_t)n * sizeof *out);                                                                                  \
			} else {                                                                                                                       \
				for (int64_t i = 0; i < n; i++)                                                                                            \
					out[i] = in[i * step];                                                                                                 \
			}                                                                                                                              \
		}                                                                                                                                  \
	}
GT_ROWS(rows_2, uint16_t)
GT_ROWS(rows_4, uint32_t)
GT_ROWS(rows_8, uint64_t)

enum gt_code gt_cpu_strided(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	struct gt_strided s;
	const char *why = gt_strided_make(call, &s);
	size_t size = gt_dtype_size(gt_opcall_input(call)->dtype);
	struct strided *k;
	(void)dev;
	if (why)
		return gt_opcall_refuse(call, err, why);
	GT_LOOP_NEW(k, slots, call, "copy", err);
	k->s = s;
	gt_cpu_loop_over(&k->loop, size == 2 ? rows_2 : size == 4 ? rows_4 : rows_8, s.dim[0] * s.dim[1] * s.dim[2], 32768 / s.dim[3] + 1);
	k->loop.head.small = gt_cpu_alone(k->loop.n, k->loop.grain);
	*out = &k->loop.head;
	return GT_OK;
}
