/* Gathers a batch from the dataset in memory. Images: selects bytes by index, crops, flips, normalises and converts them; a row of an image
 * is first copied as bytes (shifted or mirrored), then one vector loop applies scale and shift and converts the type. Images with recipes:
 * transforms images pixel by pixel. This is the reference for GPUs; on the host, reader threads transform images faster. Rows of values:
 * copies them; sequences of different lengths get padding at their ends. */
#include "aug.h"
#include "cpu/loops.h"
#include "ew.h"
#include "recipe.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define AHEAD 2      /* number of samples ahead that are prefetched */
#define MAX_ROW 4096 /* maximum bytes of an image row, which is copied to the stack before it is converted */

/* Describes where the samples of a batch are in the dataset. */
struct lookup {
	int64_t n, samples;   /* n: number of rows of the result: the first view of all samples, then the second view of all samples, ... */
	int64_t all;          /* number of samples of the dataset */
	int64_t rows, length; /* shape of the operand index; rows is 0 if index lists the samples of the batch itself */
};

struct gather {
	struct gt_cpu_loop loop; /* loop over the rows of the result */
	const uint8_t *images;
	const int32_t *labels;
	const int64_t *index; /* after find_first_index, points to the entry of the batch's first sample */
	char *x;
	int32_t *target;
	int64_t stride;
	const struct gt_step_args *step_args;
	_Atomic int64_t bad; /* position of an index outside the dataset; -1: none */
	struct gt_attr_gather attr;
	struct lookup look;
	int32_t c, h, w;
	enum gt_dtype t;
	bool move; /* true if an augmentation crops or flips images */
	bool reflect;
	float *scale, *shift; /* one entry for each byte of a row (if move is true) or of an image, which is converted at a time */
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

static void convert_pixels(const struct gather *k, char *x, int64_t at, const uint8_t *u, int64_t n)
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

static struct lookup lookup_of(const struct gt_tdesc *all, const struct gt_tdesc *index, int64_t n, int views)
{
	struct lookup l = {.n = n, .samples = n / (views > 1 ? views : 1), .all = all->dim[0]};
	if (index->rank == 2) {
		l.rows = index->dim[0];
		l.length = index->dim[1];
	}
	return l;
}

/* Advances *index to the entry of the batch's first sample, and sets *stride to the distance between two entries. */
static enum gt_code find_first_index(const struct lookup *l, const struct gt_step_args *a, const int64_t **index, int64_t *stride,
                                     struct gt_err *err)
{
	*stride = 1;
	if (!l->rows)
		return GT_OK;
	uint64_t first = a->sample0, last = first + (uint64_t)(l->samples - 1) * a->stride;
	if (first > last || last >= (uint64_t)l->length)
		return gt_fail(err, GT_EINTERNAL, "gather: positions %llu to %llu are outside of the order of %lld samples",
		               (unsigned long long)first, (unsigned long long)last, (long long)l->length);
	*index += (int64_t)(a->epoch % (uint64_t)l->rows) * l->length + (int64_t)first;
	*stride = (int64_t)a->stride;
	return GT_OK;
}

static enum gt_code fail_outside(int64_t sample, struct gt_err *err)
{
	return gt_fail(err, GT_EINTERNAL, "gather: sample index %lld is outside of the dataset", (long long)sample);
}

static void gather_samples(const void *ctx, int64_t begin, int64_t end)
{
	struct gather *k = (struct gather *)ctx;
	const uint8_t *images = k->images;
	const int64_t *index = k->index;
	char *x = k->x;
	int64_t stride = k->stride, samples = k->look.samples, all = k->look.all;
	int64_t row = (int64_t)k->w * k->c, size = row * k->h;
	uint8_t buf[MAX_ROW];
	for (int64_t n = begin; n < end; n++) {
		int64_t view = n / samples, s = n - view * samples, at = index[s * stride];
		if (at < 0 || at >= all) {
			atomic_store(&k->bad, s);
			return;
		}
		const uint8_t *image = images + at * size;
		if (!view && k->target)
			k->target[s] = k->labels[at];
		if (n + AHEAD < end && s + AHEAD < samples &&
		    /* prefetch: the next samples may be anywhere in memory */
		    (uint64_t)index[(s + AHEAD) * stride] < (uint64_t)all)
			for (int64_t i = 0; i < size && i < 4096; i += 64)
				__builtin_prefetch(images + index[(s + AHEAD) * stride] * size + i);
		if (!k->move) {
			convert_pixels(k, x, n * size, image, size);
			continue;
		}
		struct gt_aug a = gt_aug_of(&k->attr, k->step_args->seed, k->step_args->epoch, (uint64_t)at, (int)view);
		for (int32_t y = 0; y < k->h; y++) {
			move_row(k, a, image, y, buf);
			convert_pixels(k, x, n * size + y * row, buf, row);
		}
	}
}

static enum gt_code gather_launch(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct gather *k = gt_cpu_loop_bind(head, a);
	k->bad = -1;
	k->step_args = a->step_args;
	GT_TRY(find_first_index(&k->look, a->step_args, &k->index, &k->stride, err));
	if (a->stream) /* other streams than 0: the loader's thread works alone while a step uses all other threads */
		gather_samples(k, 0, k->loop.n);
	else
		gt_cpu_for(dev, k->loop.n, k->loop.grain, 1, gather_samples, k);
	return k->bad >= 0 ? fail_outside(k->index[k->bad * k->stride], err) : GT_OK;
}

static void gather_release(struct gt_kernel *head)
{
	struct gather *k = (struct gather *)head;
	free(k->scale);
	free(k);
}

enum gt_code gt_cpu_gather(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static const struct gt_operand_slot slots[] = {GT_SLOTS(gather, images, labels, index, x, target)};
	const struct gt_attr_gather *a = call->attr;
	const struct gt_tdesc *d = gt_opcall_operand(call, "images"), *x = gt_opcall_operand(call, "x");
	struct gather *k;
	int64_t row = d->dim[1] * d->dim[3];
	int pad = a->views > 2 ? 1 : a->views > 1 ? 0 : a->pad;
	(void)dev;
	if (d->dim[1] > GT_MAX_CHANNELS)
		return gt_opcall_refuse(call, err, "images have more than 16 channels");
	GT_LOOP_NEW(k, slots, call, "loops:gather", err);
	k->loop.head.launch = gather_launch;
	k->attr = *a;
	k->look = lookup_of(d, gt_opcall_operand(call, "index"), x->dim[0], a->views);
	k->c = (int32_t)d->dim[1], k->h = (int32_t)d->dim[2], k->w = (int32_t)d->dim[3];
	k->t = x->dtype;
	k->move = !gt_aug_none(a);
	k->reflect = a->views > 1 || a->pad_reflect;
	k->loop.head.release = gather_release;
	int64_t grain = (1 << 18) / (row * k->h); /* a second thread is worthwhile from 256 Ki pixels on */
	gt_cpu_loop_over(&k->loop, gather_samples, k->look.n, grain > 0 ? grain : 1);
	if (!k->move)
		row *= k->h;
	if (!(k->scale = malloc(sizeof(float) * 2 * (size_t)row))) {
		gather_release(&k->loop.head);
		return gt_fail(err, GT_EFAIL, "out of memory");
	}
	k->shift = k->scale + row;
	for (int64_t i = 0; i < row; i++) {
		k->scale[i] = a->scale[i % k->c];
		k->shift[i] = a->shift[i % k->c];
	}
	if (k->move && (row > MAX_ROW || (k->reflect && (pad >= k->h || pad >= k->w)))) {
		gather_release(&k->loop.head);
		return gt_opcall_refuse(call, err, row > MAX_ROW ? "augmentation supports image "
		                     "rows of at most 4096 values" : "the padding is larger than the mirrored image");
	}
	*out = &k->loop.head;
	return GT_OK;
}

/* ---- images with recipes -------------------------------------------------------------------------------------------------------- */
struct gather_recipes {
	struct gt_cpu_loop loop;
	const uint8_t *rows;
	const int32_t *labels;
	const int64_t *index;
	void *x;
	int32_t *target;
	struct gt_attr_recipes attr;
	struct lookup look;
	int64_t row; /* bytes of a row */
	int32_t c, h, w;
	enum gt_dtype t;
};

static void put_pixel(const struct gather_recipes *k, int64_t at, const int32_t *v)
{
	void *x = k->x;
	for (int i = 0; i < k->c; i++) {
		float f = (float)v[i] * k->attr.gather.scale[i] + k->attr.gather.shift[i];
		if (k->t == GT_F32)
			((float *)x)[at + i] = f;
		else if (k->t == GT_BF16)
			((uint16_t *)x)[at + i] = gt_bf16_from_f32(f);
		else
			((double *)x)[at + i] = (double)v[i] * (double)k->attr.gather.scale[i] + (double)k->attr.gather.shift[i];
	}
}

static void recipe_image(const struct gather_recipes *k, const uint8_t *row, int view, int64_t at)
{
	struct gt_recipe r;
	struct gt_recipe_op op[GT_RECIPE_MAX_OPS];
	struct gt_recipe_image im = {.pixels = row + gt_recipe_pixels_at(k->attr.ops), .h = k->h, .w = k->w};
	int32_t taps[GT_RECIPE_SIDES * GT_RECIPE_TAP_INTS];
	int32_t grey[GT_RECIPE_MAX_OPS] = {0}, v[3];
	memcpy(&r, row, sizeof r);
	r.n = r.n < 0 ? 0 : r.n > k->attr.ops ? k->attr.ops : r.n;
	memcpy(op, row + sizeof r, (size_t)r.n * sizeof *op);
	if (k->attr.resize && r.resize) {
		for (int i = 0; i < k->w + k->h; i++)
			gt_recipe_taps(i < k->w ? &r.x : &r.y, r.bicubic, i < k->w ? i : i - k->w, taps + i * GT_RECIPE_TAP_INTS);
		im.taps = taps;
		im.stride = r.stride;
		im.columns = r.resize == GT_RECIPE_COLUMNS_FIRST;
	}
	for (int i = 0; i < r.n; i++) {
		int64_t sum = 0;
		for (int32_t p = 0; op[i].kind == GT_RECIPE_CONTRAST && p < k->h * k->w; p++) {
			gt_recipe_pixel(op, i, grey, &im, k->c, p / k->w, p % k->w, v);
			sum += k->c == 3 ? gt_pixel_luma(v[0], v[1], v[2]) : v[0];
		}
		grey[i] = gt_pixel_mean(sum, (int64_t)k->h * k->w);
	}
	struct gt_aug g = gt_aug_view(k->attr.gather.views > 1 ? view : 0);
	for (int32_t p = 0; p < k->h * k->w; p++) {
		int32_t y = gt_aug_source(p / k->w + g.dy, k->h, 1), x0 = p % k->w,
		        from = gt_aug_source((g.flip ? k->w - 1 - x0 : x0) + g.dx, k->w, 1);
		gt_recipe_pixel(op, r.n, grey, &im, k->c, y, from, v);
		put_pixel(k, at + (int64_t)p * k->c, v);
	}
}

static enum gt_code gather_recipes_launch(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct gather_recipes *k = gt_cpu_loop_bind(head, a);
	const int64_t *index = k->index;
	int64_t stride;
	(void)dev;
	GT_TRY(find_first_index(&k->look, a->step_args, &index, &stride, err));
	for (int64_t n = 0; n < k->look.n; n++) {
		int64_t view = n / k->look.samples, s = n - view * k->look.samples, at = index[s * stride];
		if (at < 0 || at >= k->look.all)
			return fail_outside(at, err);
		recipe_image(k, k->rows + at * k->row, (int)view, n * k->h * k->w * k->c);
		if (!view && k->target)
			k->target[s] = k->labels[at];
	}
	return GT_OK;
}

enum gt_code gt_cpu_gather_recipes(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static const struct gt_operand_slot slots[] = {GT_SLOTS(gather_recipes, rows, labels, index, x, target)};
	const struct gt_attr_recipes *a = call->attr;
	const struct gt_tdesc *d = gt_opcall_operand(call, "rows"), *x = gt_opcall_operand(call, "x");
	struct gather_recipes *k;
	(void)dev;
	const char *why = gt_recipe_refuses(a, d, x);
	if (why)
		return gt_opcall_refuse(call, err, why);
	GT_LOOP_NEW(k, slots, call, "loops:recipes", err);
	k->loop.head.launch = gather_recipes_launch;
	k->attr = *a;
	k->look = lookup_of(d, gt_opcall_operand(call, "index"), x->dim[0], a->gather.views);
	k->row = d->dim[1];
	k->c = (int32_t)x->dim[1], k->h = (int32_t)x->dim[2], k->w = (int32_t)x->dim[3];
	k->t = x->dtype;
	*out = &k->loop.head;
	return GT_OK;
}

/* ---- rows of values ---------------------------------------------------------------------------------------------------------- */
struct gather_rows {
	struct gt_cpu_loop loop;
	const float *rows;
	const int64_t *index;
	char *y;
	struct lookup look;
	int64_t width; /* values in a row */
	enum gt_dtype t;
};

static enum gt_code gather_rows_launch(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct gather_rows *k = gt_cpu_loop_bind(head, a);
	const int64_t *index = k->index;
	int64_t stride;
	size_t to = gt_dtype_size(k->t) * (size_t)k->width;
	(void)dev;
	GT_TRY(find_first_index(&k->look, a->step_args, &index, &stride, err));
	for (int64_t i = 0; i < k->look.n; i++) {
		int64_t at = index[i % k->look.samples * stride];
		if (at < 0 || at >= k->look.all)
			return fail_outside(at, err);
		const float *from = k->rows + at * k->width;
		char *y = k->y + (size_t)i * to;
		if (k->t == GT_F32 || k->t == GT_I32)
			memcpy(y, from, to);
		for (int64_t e = 0; e < k->width && k->t == GT_BF16; e++)
			((uint16_t *)(void *)y)[e] = gt_bf16_from_f32(from[e]);
		for (int64_t e = 0; e < k->width && k->t == GT_F64; e++)
			((double *)(void *)y)[e] = from[e];
	}
	return GT_OK;
}

enum gt_code gt_cpu_gather_rows(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static const struct gt_operand_slot slots[] = {GT_SLOTS(gather_rows, rows, index, y)};
	const struct gt_tdesc *d = gt_opcall_operand(call, "rows"), *y = gt_opcall_operand(call, "y");
	struct gather_rows *k;
	bool fits = d->dtype == GT_I32 ? y->dtype == GT_I32
	                               : d->dtype == GT_F32 && (y->dtype == GT_F32 || y->dtype == GT_BF16 || y->dtype == GT_F64);
	(void)dev;
	if (!fits)
		return gt_opcall_refuse(call, err, "rows of i32 must stay i32, and rows of f32 must become f32, bf16 or f64");
	GT_LOOP_NEW(k, slots, call, "loops:gather", err);
	k->loop.head.launch = gather_rows_launch;
	k->width = gt_tdesc_count(d) / d->dim[0];
	k->look = lookup_of(d, gt_opcall_operand(call, "index"), y->dim[0], ((const struct gt_attr_views *)call->attr)->views);
	k->t = y->dtype;
	*out = &k->loop.head;
	return GT_OK;
}

/* ---- sequences of different lengths ------------------------------------------------------------------------------------------------ */
struct gather_ragged {
	struct gt_cpu_loop loop;
	const int32_t *rows;
	const int64_t *start, *index;
	int32_t *y;
	struct lookup look;
	int64_t total; /* total length of all sequences */
	int64_t width; /* values in a row of the result */
	int32_t pad;
};

static enum gt_code gather_ragged_launch(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct gather_ragged *k = gt_cpu_loop_bind(head, a);
	const int64_t *index = k->index;
	int64_t stride;
	(void)dev;
	GT_TRY(find_first_index(&k->look, a->step_args, &index, &stride, err));
	for (int64_t i = 0; i < k->look.n; i++) {
		int64_t at = index[i % k->look.samples * stride];
		int32_t *y = k->y + i * k->width;
		if (at < 0 || at >= k->look.all)
			return fail_outside(at, err);
		int64_t from = k->start[at], n = k->start[at + 1] - from;
		if (from < 0 || n < 0 || n > k->width || from + n > k->total)
			return gt_fail(err, GT_EINTERNAL, "gather: sample %lld has %lld values, but a row has only %lld", (long long)at, (long long)n,
			               (long long)k->width);
		memcpy(y, k->rows + from, (size_t)n * sizeof *y);
		for (int64_t e = n; e < k->width; e++)
			y[e] = k->pad;
	}
	return GT_OK;
}

enum gt_code gt_cpu_gather_ragged(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static const struct gt_operand_slot slots[] = {GT_SLOTS(gather_ragged, rows, start, index, y)};
	const struct gt_tdesc *y = gt_opcall_operand(call, "y");
	const struct gt_attr_ragged *attr = call->attr;
	struct gather_ragged *k;
	(void)dev;
	GT_LOOP_NEW(k, slots, call, "loops:gather", err);
	k->loop.head.launch = gather_ragged_launch;
	k->look = lookup_of(gt_opcall_operand(call, "start"), gt_opcall_operand(call, "index"), y->dim[0], attr->views);
	k->look.all--; /* the operand start has one more element: the end of the last sequence */
	k->total = gt_opcall_operand(call, "rows")->dim[0];
	k->width = y->dim[1];
	k->pad = attr->pad;
	*out = &k->loop.head;
	return GT_OK;
}
