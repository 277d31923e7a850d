/* Two passes, each a weighted sum of a run of pixels, in fixed point: 22 bits of weight, 8 bits between the passes. The triangle
 * filter is as wide as one output pixel is in the input, at least two input pixels (Pillow, "Concepts: Filters"; Resample.c). */
#include "base/arena.h"
#include "image.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { BITS = 22 };

struct taps {
	int64_t most;   /* maximum number of weights of an output pixel */
	int64_t *first; /* for each output pixel, the index of the input pixel to which its first weight applies */
	int64_t *count;
	int32_t *weight;
};

static void taps_free(struct taps *t)
{
	free(t->first);
	free(t->count);
	free(t->weight);
}

static enum gt_code taps_make(int64_t in, int64_t out, struct taps *t, struct gt_err *err)
{
	double scale = (double)in / (double)out, wide = scale < 1 ? 1 : scale;
	*t = (struct taps){.most = (int64_t)ceil(wide) * 2 + 1};
	double *k = malloc((size_t)t->most * sizeof *k);
	t->first = malloc((size_t)out * sizeof *t->first);
	t->count = malloc((size_t)out * sizeof *t->count);
	t->weight = malloc((size_t)out * (size_t)t->most * sizeof *t->weight);
	if (!k || !t->first || !t->count || !t->weight) {
		free(k);
		taps_free(t);
		return gt_fail_memory(err, (size_t)out * (size_t)t->most * sizeof *t->weight);
	}
	for (int64_t i = 0; i < out; i++) {
		double centre = ((double)i + 0.5) * scale, sum = 0;
		int64_t from = (int64_t)(centre - wide + 0.5), to = (int64_t)(centre + wide + 0.5);
		from = from < 0 ? 0 : from;
		to = to > in ? in : to;
		for (int64_t x = from; x < to; x++) {
			double d = fabs(((double)x - centre + 0.5) / wide);
			k[x - from] = d < 1 ? 1 - d : 0;
			sum += k[x - from];
		}
		for (int64_t x = 0; x < to - from; x++)
			t->weight[i * t->most + x] = (int32_t)(0.5 + k[x] / sum * (1 << BITS));
		t->first[i] = from;
		t->count[i] = to - from;
	}
	free(k);
	return GT_OK;
}

/* Computes out[r][i][ch] = sum over x of weight * in[r][first + x][ch]. Strides are in bytes, so that it works for rows and for columns. */
static void pass(const uint8_t *in, int64_t in_row, int64_t in_step, uint8_t *out, int64_t out_row, int64_t out_step, int64_t rows,
                 int64_t n, int c, const struct taps *t)
{
	for (int64_t r = 0; r < rows; r++) {
		for (int64_t i = 0; i < n; i++) {
			const int32_t *w = t->weight + i * t->most;
			for (int ch = 0; ch < c; ch++) {
				const uint8_t *p = in + r * in_row + t->first[i] * in_step + ch;
				int64_t sum = 1 << (BITS - 1);
				for (int64_t x = 0; x < t->count[i]; x++)
					sum += (int64_t)w[x] * p[x * in_step];
				sum >>= BITS;
				out[r * out_row + i * out_step + ch] = (uint8_t)(sum > 255 ? 255 : sum);
			}
		}
	}
}

enum gt_code gt_image_resize(const uint8_t *in, int64_t h, int64_t w, int c, uint8_t *out, int64_t oh, int64_t ow, struct gt_err *err)
{
	struct taps tx, ty;
	GT_TRY(taps_make(w, ow, &tx, err));
	enum gt_code rc = taps_make(h, oh, &ty, err);
	if (rc != GT_OK) {
		taps_free(&tx);
		return rc;
	}
	/* The rows are scaled first. If the image becomes wider and lower, the columns are scaled first, because that leaves fewer pixels. */
	bool columns = ow > w && oh < h;
	size_t bytes = (size_t)((columns ? oh * w : h * ow) * c);
	uint8_t *mid = malloc(bytes);
	if (!mid) {
		rc = gt_fail_memory(err, bytes);
	} else if (columns) {
		pass(in, c, w * c, mid, c, w * c, w, oh, c, &ty);
		pass(mid, w * c, c, out, ow * c, c, oh, ow, c, &tx);
	} else {
		pass(in, w * c, c, mid, ow * c, c, h, ow, c, &tx);
		pass(mid, c, ow * c, out, c, ow * c, ow, oh, c, &ty);
	}
	free(mid);
	taps_free(&tx);
	taps_free(&ty);
	return rc;
}
