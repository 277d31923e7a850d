#include "exec/loader_parts.h"
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>

/* Returns the bytes of an image that is read. */
static size_t image_bytes(const struct gt_loader_spec *s)
{
	return (size_t)(s->split.on ? s->split.row : s->shape[0] * s->shape[1] * s->shape[2]);
}

/* ---- rows of a part ------------------------------------------------------------------------------------------------------------- */
/* Returns the position of the sample with which the sample at position `at` is mixed: the preceding sample of the same batch. */
static int64_t mix_partner(const struct gt_loader *l, int64_t at)
{
	int64_t first = at - at % l->spec.batch, after = first + l->spec.batch;
	return at > first ? at - 1 : (after < l->samples ? after : l->samples) - 1;
}

/* Returns whether the mixing partner of the first sample of a part is the last sample of the part. */
static bool is_mixed_within(const struct gt_loader *l, const struct gt_batch *b)
{
	return b->stride == 1 && mix_partner(l, b->cursor) == b->cursor + b->n - 1;
}

/* Fills fetch->list with the samples to read for part b, and returns their number: samples of b and, with mixing, their partners. */
static int64_t list_rows(struct gt_loader *l, const struct gt_batch *b)
{
	const int64_t *order = l->order[b->epoch & 1].host;
	int64_t n = 0, *list = l->fetch->list;
	for (; n < b->n; n++)
		list[n] = order[b->cursor + n * b->stride];
	if (!l->spec.mixing.classes || !b->n || is_mixed_within(l, b))
		return n;
	for (int64_t i = 0; i < (b->stride > 1 ? b->n : 1); i++)
		list[n++] = order[mix_partner(l, b->cursor + i * b->stride)];
	return n;
}

enum gt_code gt_loader_fetch_ahead(struct gt_loader *l, int used, struct gt_err *err)
{
	struct gt_loader_fetch *f = l->fetch;
	while (gt_fetcher_queued(f->fetcher) < l->spec.ahead + used) {
		struct gt_loader_place at = f->ahead;
		struct gt_batch b = gt_loader_next_part(l, &f->ahead);
		/* Do not queue batches of the epoch after the next one: its order would overwrite the order in use. */
		if (b.epoch > l->next.epoch + (l->spec.one_epoch ? 0 : 1)) {
			f->ahead = at;
			return GT_OK;
		}
		GT_TRY(gt_loader_make_order(l, b.epoch, err));
		int64_t rows = list_rows(l, &b), first = gt_fetcher_add(f->fetcher, (uint64_t)b.epoch, f->list, rows);
		for (int64_t i = 0; i < rows && f->labels; i++)
			f->labels[first + i] = l->spec.view->data->labels[f->list[i]];
		for (int c = 0; c < l->ncolumns; c++) {
			const char *host = l->column[c].of.host;
			size_t bytes = gt_column_bytes(&l->column[c].of);
			for (int64_t i = 0; i < (c ? b.n : rows) && f->column[c] && host; i++)
				memcpy(f->column[c] + (size_t)(first + i) * bytes, host + (size_t)f->list[i] * bytes, bytes);
		}
		gt_loader_advance(l, &f->ahead);
	}
	return GT_OK;
}

/* Mixes the samples of part b and computes their targets. */
static void mix_part(struct gt_loader *l, const struct gt_batch *b, const struct gt_fetched *from)
{
	const struct gt_loader_spec *s = &l->spec;
	struct gt_loader_fetch *f = l->fetch;
	struct gt_mix what;
	int64_t first = from->first, bytes = s->shape[0] * s->shape[1] * s->shape[2], width = l->column[0].of.width;
	struct gt_mix_rows r = {.pixels = f->images + first * bytes, .label = f->labels ? f->part_labels : NULL, .n = b->n,
	                        .target = (float *)(void *)f->column[0] + first * width, .apart = b->stride > 1, .h = s->shape[1],
	                        .w = s->shape[2], .c = s->shape[0], .classes = width};
	for (int64_t i = 0; i < from->n && r.label; i++) {
		int32_t label = f->labels[first + i];
		f->part_labels[i] = from->absent[i] || label == s->ignore_index ? -1 : label;
	}
	if (is_mixed_within(l, b)) {
		memcpy(r.pixels + b->n * bytes, r.pixels + (b->n - 1) * bytes, (size_t)bytes);
		if (r.label)
			f->part_labels[b->n] = f->part_labels[b->n - 1];
		else
			memcpy(r.target + b->n * width, r.target + (b->n - 1) * width, (size_t)width * sizeof *r.target);
	}
	gt_mix_draw(&s->mixing, s->seed, (uint64_t)b->epoch, (uint64_t)(b->micro / s->batch), r.h, r.w, &what);
	gt_mix_rows(&what, &r);
}

enum gt_code gt_loader_wait_fetched(struct gt_loader *l, int i, const struct gt_batch *b, struct gt_fetched *out, struct gt_err *err)
{
	const struct gt_column *target = &l->column[0].of;
	size_t bytes = gt_column_bytes(target);
	GT_TRY(gt_fetcher_wait(l->fetch->fetcher, i, out, err));
	if (out->n < b->n)
		return gt_fail(err, GT_EINTERNAL, "loader: %lld samples were fetched for a batch of %lld", (long long)out->n, (long long)b->n);
	if (l->spec.mixing.classes) {
		if (b->n)
			mix_part(l, b, out);
		return GT_OK;
	}
	for (int64_t k = 0; k < b->n; k++) {
		char *row = l->fetch->column[0] + (size_t)(out->first + k) * bytes;
		if (out->absent[k] && target->width)
			memset(row, 0, bytes);
		else if (out->absent[k])
			memcpy(row, &l->spec.fill_target, bytes);
	}
	return GT_OK;
}

enum gt_code gt_loader_gather_fetched(struct gt_loader *l, const struct gt_batch *b, const struct gt_step_args *step_args, int buffer,
                                      struct gt_err *err)
{
	struct gt_fetched from;
	GT_TRY(gt_loader_fetch_ahead(l, 1, err));
	GT_TRY(gt_loader_wait_fetched(l, 0, b, &from, err));
	if (b->n)
		GT_TRY(gt_loader_gather(l, b->n, 0, step_args, &from, b->x, buffer, 0, err));
	gt_fetcher_drop(l->fetch->fetcher);
	return GT_OK;
}

/* Returns the maximum number of rows that are read for a part. With mixing, these include partners from other parts. */
static int64_t count_rows(const struct gt_loader_spec *s)
{
	int64_t most = gt_part_size(s->micro, s->slice.parts ? s->slice.parts : 1, 0, NULL);
	return !s->mixing.classes ? most : s->slice.strided ? 2 * most : most + 1;
}

/* Returns the number of batches in the fetcher's ring: spec.ahead batches that are read ahead, and the batch in use or, on a device with
 * its own memory, all batches of a step, which are copied together. */
static int count_batches(const struct gt_loader_spec *s)
{
	return s->ahead + (s->units > 1 ? s->units : 1);
}

enum gt_code gt_loader_open_fetch(struct gt_loader *l, struct gt_err *err)
{
	const struct gt_loader_spec *s = &l->spec;
	struct gt_loader_fetch *f = l->fetch = calloc(1, sizeof *f);
	if (!f)
		return gt_fail_memory(err, sizeof *f);
	f->rows = count_rows(s);
	f->image = image_bytes(s);
	size_t rows = (size_t)f->rows, all = (size_t)count_batches(s) * rows;
	if (s->split.on && s->mixing.classes)
		return gt_fail(err, GT_EINTERNAL, "loader: images with recipes cannot be mixed before they are transformed");
	GT_TRY(gt_loader_host_alloc(l, all * f->image, &f->images, err));
	for (int c = 0; c < l->ncolumns; c++)
		if (l->column[c].operand >= 0)
			GT_TRY(gt_loader_host_alloc(l, all * gt_column_bytes(&l->column[c].of), &f->column[c], err));
	bool labels = s->mixing.classes && !l->column[0].of.host;
	if (labels) {
		f->labels = malloc(all * sizeof *f->labels);
		f->part_labels = malloc(rows * sizeof *f->part_labels);
	}
	f->list = malloc(rows * sizeof *f->list);
	f->iota = malloc((size_t)l->most * sizeof *f->iota);
	if (!f->list || !f->iota || (labels && (!f->labels || !f->part_labels)))
		return gt_fail_memory(err, all * sizeof *f->list);
	for (int64_t i = 0; i < l->most; i++)
		f->iota[i] = i;
	if (!l->be->host_memory)
		GT_TRY(gt_loader_open_ring(l, err));
	return gt_fetcher_open(&(struct gt_fetcher_spec){.fetch = s->fetch, .threads = s->workers, .batches = count_batches(s), .rows = f->rows,
	                                                 .bytes = f->image, .memory = f->images}, &f->fetcher, err);
}

size_t gt_loader_fetched_bytes(const struct gt_loader_spec *s)
{
	size_t most = (size_t)gt_part_size(s->micro, s->slice.parts ? s->slice.parts : 1, 0, NULL), rows = (size_t)count_rows(s), numbers = 0;
	size_t image = image_bytes(s), batches = (size_t)count_batches(s), ring = (size_t)gt_loader_ring_parts(s);
	struct gt_column column[GT_MAX_COLUMNS];
	if (!s->fetch.sample)
		return 0;
	for (int n = gt_columns_of(s->view->data, column), c = 0; c < n; c++)
		numbers += !c && s->mixing.classes && !column[c].width ? (size_t)s->mixing.classes * sizeof(float) : gt_column_bytes(&column[c]);
	return batches * rows * (image + numbers + (s->mixing.classes ? sizeof(int32_t) : 0)) + ring * most * (image + numbers);
}

void gt_loader_close_fetch(struct gt_loader *l)
{
	struct gt_loader_fetch *f = l->fetch;
	if (!f)
		return;
	gt_fetcher_close(f->fetcher);
	if (l->ring) { /* wait: copies to the device may still read the memory that is freed below */
		l->be->sync(l->dev, 0, NULL);
		l->be->sync(l->dev, GT_STREAM_FETCH, NULL);
	}
	gt_loader_close_ring(l);
	gt_loader_host_free(l, f->images);
	for (int c = 0; c < l->ncolumns; c++)
		gt_loader_host_free(l, f->column[c]);
	free(f->labels);
	free(f->part_labels);
	free(f->list);
	free(f->iota);
	free(f);
}
