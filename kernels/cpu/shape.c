/* Data movement by element size: flatten (between NHWC and PyTorch's element order) and concatenation along dimension 1. */
#include "cpu/loops.h"
#include <stdlib.h>
#include <string.h>

struct shape {
	struct gt_cpu_loop loop; /* loop over samples, or over rows of a concatenation */
	const void *in;
	void *out;
	void *const *parts; /* concatenation: the operands that repeat (the parts) */
	int64_t rows, cols; /* shape of the transposition of one sample: rows x cols becomes cols x rows */
	int nparts;
	bool split;                  /* true: the gradient of a concatenation, which splits dy into the parts */
	size_t part[GT_MAX_IO], row; /* concatenation: bytes of a row of each part, and of a row of the concatenated tensor */
};

static const struct gt_operand_slot slots[] = {
    GT_SLOT_AS(shape, "x", in), GT_SLOT_AS(shape, "dy", in), GT_SLOT_AS(shape, "y", out), GT_SLOT_AS(shape, "dx", out)};

/* Transposes in tiles of 16 x 16, which keep both the strided and the contiguous side in L1. */
#define GT_TRANSPOSE(name, type)                                                                                                           \
	GT_CLONES static void name(const void *ctx, int64_t begin, int64_t end)                                                                \
	{                                                                                                                                      \
		const struct shape *k = ctx;                                                                                                       \
		int64_t rows = k->rows, cols = k->cols;                                                                                            \
		for (int64_t s = begin; s < end; s++) {                                                                                            \
			const type *restrict in = (const type *)k->in + s * rows * cols;                                                               \
			type *restrict out = (type *)k->out + s * rows * cols;                                                                         \
			for (int64_t i0 = 0; i0 < rows; i0 += 16) {                                                                                    \
				int64_t i1 = i0 + 16 < rows ? i0 + 16 : rows;                                                                              \
				for (int64_t j0 = 0; j0 < cols; j0 += 16) {                                                                                \
					int64_t j1 = j0 + 16 < cols ? j0 + 16 : cols;                                                                          \
					for (int64_t j = j0; j < j1; j++)                                                                                      \
						for (int64_t i = i0; i < i1; i++)                                                                                  \
							out[j * rows + i] = in[i * cols + j];                                                                          \
				}                                                                                                                          \
			}                                                                                                                              \
		}                                                                                                                                  \
	}
GT_TRANSPOSE(transpose_2, uint16_t)
GT_TRANSPOSE(transpose_4, uint32_t)
GT_TRANSPOSE(transpose_8, uint64_t)

static void copy_samples(const void *ctx, int64_t begin, int64_t end)
{
	const struct shape *k = ctx;
	memcpy((char *)k->out + (size_t)begin * k->row, (const char *)k->in + (size_t)begin * k->row, (size_t)(end - begin) * k->row);
}

static void concat_rows(const void *ctx, int64_t begin, int64_t end)
{
	const struct shape *k = ctx;
	for (int64_t r = begin; r < end; r++) {
		char *to = (char *)k->out + (size_t)r * k->row;
		for (int i = 0; i < k->nparts; i++) {
			memcpy(to, (const char *)k->parts[i] + (size_t)r * k->part[i], k->part[i]);
			to += k->part[i];
		}
	}
}

static void split_rows(const void *ctx, int64_t begin, int64_t end)
{
	const struct shape *k = ctx;
	for (int64_t r = begin; r < end; r++) {
		const char *from = (const char *)k->in + (size_t)r * k->row;
		for (int i = 0; i < k->nparts; i++) {
			if (k->parts[i]) /* NULL for an input that needs no gradient */
				memcpy((char *)k->parts[i] + (size_t)r * k->part[i], from, k->part[i]);
			from += k->part[i];
		}
	}
}

static enum gt_code launch_concat(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct shape *k = gt_cpu_loop_bind(head, a);
	(void)err;
	k->parts = k->split ? a->out : a->in;
	gt_cpu_for(dev, k->loop.n, k->loop.grain, 1, k->loop.fn, k);
	return GT_OK;
}

static enum gt_code prepare_flatten(const struct gt_opcall *call, struct shape *k, struct gt_err *err)
{
	bool back = call->code == GT_OP_FLATTEN_DX;
	const struct gt_tdesc *x = gt_opcall_operand(call, back ? "dx" : "x"), *y = gt_opcall_operand(call, back ? "dy" : "y");
	size_t size = gt_dtype_size(x->dtype);
	int64_t pixels = 1;
	for (int i = 2; i < x->rank; i++)
		pixels *= x->dim[i];
	if (gt_tdesc_count(x) != gt_tdesc_count(y))
		return gt_opcall_refuse(call, err, "the number of output elements differs");
	k->loop.n = x->dim[0];
	k->rows = back ? x->dim[1] : pixels;
	k->cols = back ? pixels : x->dim[1];
	k->row = (size_t)(k->rows * k->cols) * size;
	bool same = k->rows == 1 || k->cols == 1 || x->rank != 4; /* the orders of input and output are the same */
	k->loop.fn = same ? copy_samples : size == 2 ? transpose_2 : size == 4 ? transpose_4 : transpose_8;
	return GT_OK;
}

static enum gt_code prepare_concat(const struct gt_opcall *call, struct shape *k, struct gt_err *err)
{
	bool back = call->code == GT_OP_CONCAT_DX;
	const struct gt_tdesc *y = gt_opcall_operand(call, back ? "dy" : "y");
	struct gt_tdesc *const *part = back ? call->out : call->in;
	int n = back ? call->nout : call->nin;
	size_t size = gt_dtype_size(y->dtype), sum = 0;
	size *= y->rank == 3 ? (size_t)y->dim[2] : 1; /* tokens of dim[2] features */
	k->row = (size_t)y->dim[1] * size;
	k->loop.n = gt_tdesc_bytes(y) / k->row;
	k->loop.head.launch = launch_concat;
	k->nparts = n;
	k->split = back;
	int unknown = -1;
	for (int i = 0; i < n; i++) {
		if (!part[i]) {
			if (unknown >= 0)
				return gt_opcall_refuse(call, err, "at most one part may be absent");
			unknown = i;
			continue;
		}
		k->part[i] = (size_t)part[i]->dim[1] * size;
		sum += k->part[i];
	}
	if (unknown >= 0 && back && sum < k->row)
		k->part[unknown] = k->row - sum;
	else if (unknown >= 0 || sum != k->row)
		return gt_opcall_refuse(call, err, "the widths of the parts do not add up to the whole width");
	k->loop.fn = back ? split_rows : concat_rows;
	return GT_OK;
}

enum gt_code gt_cpu_shape(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool flatten = call->code == GT_OP_FLATTEN || call->code == GT_OP_FLATTEN_DX;
	struct shape *k;
	(void)dev;
	GT_LOOP_NEW(k, slots, call, "copy", err);
	enum gt_code code = (flatten ? prepare_flatten : prepare_concat)(call, k, err);
	if (code != GT_OK) {
		free(k);
		return code;
	}
	k->loop.grain = (int64_t)(131072 / (k->row ? k->row : 1)) + 1;
	k->loop.head.small = gt_cpu_alone(k->loop.n, k->loop.grain);
	*out = &k->loop.head;
	return GT_OK;
}
