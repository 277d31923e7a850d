/* Operations that sum rows of [rows, C]: bias.db sums all rows, views.mean the weighted views of each sample. Convolutions call
 * gt_cpu_sum_bias (loops.h). */
#include "aug.h"
#include "cpu/loops.h"
#include "ew.h"
#include <string.h>

#define ROWS 1024    /* number of rows of one partial sum; the last bits of the result depend on it */
#define PIXELS 64    /* number of pixels whose gradients are added in f32 for the bias of a convolution */
#define COLS 1024    /* number of channels that are summed on the stack at once */

struct rowsum {
	struct gt_cpu_loop loop; /* views.mean: over rows of y; bias.db: over pieces of ROWS rows */
	const void *x;
	void *y;
	double *part; /* bias.db: a sum for each piece and channel */
	int64_t rows, cols;
	int views;
	bool f64, add;
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(rowsum, x, y), GT_SLOT_AS(rowsum, "dy", x), GT_SLOT_AS(rowsum, "db", y)};

#define GT_TYPED "cpu/rowsum.inc"
#include "cpu/typed.inc"

/* Computes bias.db. Partial sums are double and are added in a fixed tree. */
static enum gt_code launch_db(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	struct rowsum *k = gt_cpu_loop_bind(kernel, a);
	double *part = k->part = a->scratch;
	(void)err;
	gt_cpu_for(dev, k->loop.n, k->loop.grain, 1, k->loop.fn, k);
	for (int64_t w = 1; w < k->loop.n; w *= 2)
		for (int64_t i = 0; i + w < k->loop.n; i += 2 * w)
			for (int64_t j = 0; j < k->cols; j++)
				part[i * k->cols + j] += part[(i + w) * k->cols + j];
	for (int64_t j = 0; j < k->cols; j++) {
		if (k->f64)
			((double *)k->y)[j] = part[j] + (k->add ? ((double *)k->y)[j] : 0);
		else
			((float *)k->y)[j] = (float)part[j] + (k->add ? ((float *)k->y)[j] : 0);
	}
	return GT_OK;
}

/* Sums channels [begin, end): 16 at a time, first in f32 over PIXELS pixels of an image, then in double. */
GT_CLONES static void sum_bias(const void *ctx, int64_t begin, int64_t end)
{
	const struct gt_cpu_bias *k = ctx;
	for (int64_t first = begin; first < end; first += 16) {
		double sum[16] = {0};
		int n = (int)(end - first < 16 ? end - first : 16);
		for (int64_t j = 0, all = k->images * k->pixels; j < all; j += PIXELS) {
			float part[16] = {0};
			int64_t last = all - j < PIXELS ? all : j + PIXELS;
			for (const float *dy = k->dy + j * k->channels + first; dy < k->dy + last * k->channels; dy += k->channels)
				for (int o = 0; o < n; o++)
					part[o] += dy[o];
			for (int o = 0; o < n; o++)
				sum[o] += (double)part[o];
		}
		for (int o = 0; o < n; o++)
			k->db[first + o] = (float)sum[o] + (k->add ? k->db[first + o] : 0);
	}
}

void gt_cpu_sum_bias(const struct gt_dev *dev, const struct gt_cpu_bias *bias)
{
	gt_cpu_for(dev, bias->channels, 16, 16, sum_bias, bias);
}

enum gt_code gt_cpu_rowsum(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static gt_range_fn *const db[] = GT_TYPES(sum_bias_db), *const mean[] = GT_TYPES(average_views);
	bool views = call->code == GT_OP_VIEWS_MEAN;
	const struct gt_tdesc *x = gt_opcall_operand(call, views ? "x" : "dy");
	int type = gt_cpu_type(x->dtype);
	struct rowsum *k;
	(void)dev;
	GT_LOOP_NEW(k, slots, call, "loop", err);
	k->cols = x->dim[1];
	if (views) {
		k->rows = gt_opcall_operand(call, "y")->dim[0];
		k->views = ((const struct gt_attr_views *)call->attr)->views;
		gt_cpu_loop_over(&k->loop, mean[type], k->rows, k->cols < 16384 ? 16384 / k->cols : 1);
	} else {
		k->rows = gt_tdesc_count(x) / k->cols;
		k->f64 = x->dtype == GT_F64;
		k->add = gt_opcall_adds(call, "db");
		k->loop.head.launch = launch_db;
		gt_cpu_loop_over(&k->loop, db[type], (k->rows + ROWS - 1) / ROWS, 65536 / ROWS + 1);
		k->loop.head.scratch = (size_t)(k->loop.n * k->cols) * sizeof(double);
	}
	*out = &k->loop.head;
	return GT_OK;
}
