/* Gathers a batch from the dataset in memory: selects bytes by index, crops, flips, normalises and converts them. A row of an image is
 * first copied as bytes (shifted or mirrored), then one vector loop applies scale, shift and type. */
#include "aug.h"
#include "cpu/loops.h"
#include "ew.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 2      /* number of samples ahead that are prefetched */
#define MAX_ROW 4096 /* maximum bytes of a row that moves through the stack at once */

struct gather {
	struct gt_kernel head;
	struct gt_attr_gather attr;
	int64_t n, samples, images; /* n: number of rows of x, which holds the first view of all samples, then the next view */
	int64_t rows, length; /* shape of the operand index; rows is 0 if index lists the samples of the batch itself */
	int32_t c, h, w;
	enum gt_dtype t;
	bool move; /* true if an augmentation crops or flips images */
	bool reflect;
	float *scale, *shift; /* one entry for each byte that is converted at a time: the bytes of a row if move is true, else of an image */
};

struct job {
	const struct gather *k;
	const uint8_t *images;
	const int32_t *labels;
	const int64_t *index;
	int64_t stride;
	char *x;
	int32_t *target;
	const struct gt_step_args *step_args;
	_Atomic int64_t *bad; /* position of an index outside the dataset; -1: none */
};

GT_CLONES static void row_f32(float *restrict y, const uint8_t *restrict u, const float *restrict scale, const float *restrict shift,
                              int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		y[i] = (float)u[i] * scale[i] + shift[i];
}

GT_CLONES static void row_bf16(uint16_t *restrict y, const uint8_t *restrict u, const float *restrict scale, const float *restrict shift,
                               int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		y[i] = gt_bf16_from_f32((float)u[i] * scale[i] + shift[i]);
}

static void row_f64(double *restrict y, const uint8_t *restrict u, const float *restrict scale, const float *restrict shift, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		y[i] = (double)u[i] * (double)scale[i] + (double)shift[i];
}

static void convert(const struct gather *k, char *x, int64_t at, const uint8_t *u, int64_t n)
{
	if (k->t == GT_F32)
		row_f32((float *)x + at, u, k->scale, k->shift, n);
	else if (k->t == GT_BF16)
		row_bf16((uint16_t *)x + at, u, k->scale, k->shift, n);
	else
		row_f64((double *)x + at, u, k->scale, k->shift, n);
}

/* Copies one row of the cropped image as bytes, mirrored if a.flip is not 0. */
static void move_row(const struct gather *k, struct gt_aug a, const uint8_t *image, int32_t y, uint8_t *row)
{
	int32_t w = k->w, c = k->c, sy = gt_aug_source(y + a.dy, k->h, k->reflect);
	const uint8_t *src = image + (size_t)(sy < 0 ? 0 : sy) * (size_t)w * (size_t)c;
	int32_t from = a.dx < 0 ? -a.dx : 0, to = a.dx > 0 ? w - a.dx : w; /* the range of columns that need no padding */
	if (sy < 0) {
		memset(row, 0, (size_t)w * (size_t)c);
		return;
	}
	if (!a.flip && from < to)
		memcpy(row + from * c, src + (from + a.dx) * c, (size_t)(to - from) * (size_t)c);
	for (int32_t x = 0; x < w; x++) {
		if (!a.flip && x == from && from < to) {
			x = to - 1;
			continue;
		}
		int32_t sx = gt_aug_source((a.flip ? w - 1 - x : x) + a.dx, w, k->reflect);
		for (int32_t i = 0; i < c; i++)
			row[x * c + i] = sx < 0 ? 0 : src[sx * c + i];
	}
}

static void samples(const void *ctx, int64_t begin, int64_t end)
{
	const struct job *j = ctx;
	const struct gather *k = j->k;
	int64_t row = (int64_t)k->w * k->c, size = row * k->h;
	uint8_t buf[MAX_ROW];
	for (int64_t n = begin; n < end; n++) {
		int64_t view = n / k->samples, s = n - view * k->samples, at = j->index[s * j->stride];
		if (at < 0 || at >= k->images) {
			atomic_store(j->bad, s);
			return;
		}
		const uint8_t *image = j->images + at * size;
		if (!view)
			j->target[s] = j->labels[at];
		if (n + AHEAD < end && s + AHEAD < k->samples &&
		    /* the samples that follow may be anywhere in memory, so they are prefetched */
		    (uint64_t)j->index[(s + AHEAD) * j->stride] < (uint64_t)k->images)
			for (int64_t i = 0; i < size && i < 4096; i += 64)
				__builtin_prefetch(j->images + j->index[(s + AHEAD) * j->stride] * size + i);
		if (!k->move) {
			convert(k, j->x, n * size, image, size);
			continue;
		}
		struct gt_aug a = gt_aug_of(&k->attr, j->step_args->seed, j->step_args->epoch, (uint64_t)at, (int)view);
		for (int32_t y = 0; y < k->h; y++) {
			move_row(k, a, image, y, buf);
			convert(k, j->x, n * size + y * row, buf, row);
		}
	}
}

static enum gt_code gather_launch(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct gather *k = (const struct gather *)head;
	_Atomic int64_t bad = -1;
	struct job j = {.k = k,
	                .images = a->in[0],
	                .labels = a->in[1],
	                .index = a->in[2],
	                .stride = 1,
	                .x = a->out[0],
	                .target = a->out[1],
	                .step_args = a->step_args,
	                .bad = &bad};
	int64_t size = (int64_t)k->w * k->c * k->h, grain = (1 << 18) / size; /* a second thread is worthwhile from 256 Ki pixels on */
	if (k->rows) {
		uint64_t first = a->step_args->sample0, last = first + (uint64_t)(k->samples - 1) * a->step_args->stride;
		if (first > last || last >= (uint64_t)k->length)
			return gt_fail(err, GT_EINTERNAL, "gather: positions %llu to %llu are outside of the order of %lld samples",
			               (unsigned long long)first,
			               (unsigned long long)last, (long long)k->length);
		j.index += (int64_t)(a->step_args->epoch % (uint64_t)k->rows) * k->length + (int64_t)first;
		j.stride = (int64_t)a->step_args->stride;
	}
	if (a->stream) /* on other streams than 0, the loader's thread runs alone beside a step that uses all other threads */
		samples(&j, 0, k->n);
	else
		gt_cpu_for(dev, k->n, grain > 0 ? grain : 1, 1, samples, &j);
	if (bad >= 0)
		return gt_fail(err, GT_EINTERNAL, "gather: sample index %lld is outside of the dataset", (long long)j.index[bad * j.stride]);
	return GT_OK;
}

static void gather_release(struct gt_kernel *head)
{
	struct gather *k = (struct gather *)head;
	free(k->scale);
	free(k);
}

enum gt_code gt_cpu_gather(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_gather *a = call->attr;
	const struct gt_tdesc *d = call->in[0], *x = call->out[0];
	struct gather *k;
	int64_t row = d->dim[1] * d->dim[3];
	int pad = a->views > 2 ? 1 : a->views > 1 ? 0 : a->pad;
	(void)dev;
	if (d->dim[1] > GT_MAX_CHANNELS)
		return gt_cpu_refuse(call, err, "images have more than 16 channels");
	GT_KERNEL_NEW(k, gather_launch, "loops:gather", err);
	k->attr = *a;
	k->n = x->dim[0], k->images = d->dim[0];
	k->samples = k->n / (a->views > 1 ? a->views : 1);
	if (call->in[2]->rank == 2)
		k->rows = call->in[2]->dim[0], k->length = call->in[2]->dim[1];
	k->c = (int32_t)d->dim[1], k->h = (int32_t)d->dim[2], k->w = (int32_t)d->dim[3];
	k->t = x->dtype;
	k->move = !gt_aug_none(a);
	k->reflect = a->views > 1 || a->pad_reflect;
	k->head.release = gather_release;
	if (!k->move)
		row *= k->h;
	if (!(k->scale = malloc(sizeof(float) * 2 * (size_t)row))) {
		gather_release(&k->head);
		return gt_fail(err, GT_EFAIL, "out of memory");
	}
	k->shift = k->scale + row;
	for (int64_t i = 0; i < row; i++) {
		k->scale[i] = a->scale[i % k->c];
		k->shift[i] = a->shift[i % k->c];
	}
	if (k->move && (row > MAX_ROW || (k->reflect && (pad >= k->h || pad >= k->w)))) {
		gather_release(&k->head);
		return gt_cpu_refuse(call, err, row > MAX_ROW ? "augmentation supports image "
		                     "rows of at most 4096 values" : "the padding reaches past the mirrored image");
	}
	*out = &k->head;
	return GT_OK;
}
