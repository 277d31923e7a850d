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
/* Returns the position in the epoch of the sample with which that at position `at` is mixed: the one before in the same batch. */
static int64_t mix_partner(const struct gt_loader *l, int64_t at)
{
	int64_t first = at - at % l->spec.batch, after = first + l->spec.batch;
	return at > first ? at - 1 : (after < l->samples ? after : l->samples) - 1;
}

/* Returns whether the sample with which the first one of a part is mixed is the last one of the part. */
static bool is_mixed_within(const struct gt_loader *l, const struct gt_batch *b)
{
	return b->stride == 1 && mix_partner(l, b->cursor) == b->cursor + b->n - 1;
}

/* Fills l->list with the samples to read for part b, and returns their number: its own and, with mixing, partners of them. */
static int64_t list_rows(struct gt_loader *l, const struct gt_batch *b)
{
	const int64_t *order = l->order[b->epoch & 1].host;
	int64_t n = 0;
	for (; n < b->n; n++)
		l->list[n] = order[b->cursor + n * b->stride];
	if (!l->spec.mixing.classes || !b->n || is_mixed_within(l, b))
		return n;
	for (int64_t i = 0; i < (b->stride > 1 ? b->n : 1); i++)
		l->list[n++] = order[mix_partner(l, b->cursor + i * b->stride)];
	return n;
}

enum gt_code gt_loader_fetch_ahead(struct gt_loader *l, int used, struct gt_err *err)
{
	while (gt_fetcher_queued(l->fetcher) < l->spec.ahead + used) {
		struct gt_loader_place at = l->ahead;
		struct gt_batch b = gt_loader_next_part(l, &l->ahead);
		/* the order of a third epoch would overwrite the one that is used now */
		if (b.epoch > l->next.epoch + (l->spec.one_epoch ? 0 : 1)) {
			l->ahead = at;
			return GT_OK;
		}
		GT_TRY(gt_loader_make_order(l, b.epoch, err));
		int64_t rows = list_rows(l, &b);
		int64_t slot = gt_fetcher_add(l->fetcher, (uint64_t)b.epoch, l->list, rows);
		for (int64_t i = 0; i < rows && l->staged_labels; i++)
			l->staged_labels[slot * l->rows + i] = l->spec.view->data->labels[l->list[i]];
		for (int c = 0; c < l->ncolumns; c++) {
			const struct gt_loader_column *col = &l->column[c];
			size_t bytes = gt_column_bytes(&col->of);
			for (int64_t i = 0; i < (c ? b.n : rows) && col->staged && col->of.host; i++)
				memcpy(col->staged + (size_t)(slot * l->rows + i) * bytes, (const char *)col->of.host + (size_t)l->list[i] * bytes, bytes);
		}
		gt_loader_advance(l, &l->ahead);
	}
	return GT_OK;
}

/* Mixes the samples of part b and computes their targets. */
static void mix_part(struct gt_loader *l, const struct gt_batch *b, const struct gt_fetched *from)
{
	const struct gt_loader_spec *s = &l->spec;
	struct gt_mix what;
	int64_t first = from->slot * l->rows, bytes = s->shape[0] * s->shape[1] * s->shape[2], width = l->column[0].of.width;
	struct gt_mix_rows r = {.pixels = l->staged + first * bytes, .label = l->staged_labels ? l->labels : NULL, .n = b->n,
	                        .target = (float *)(void *)l->column[0].staged + first * width, .apart = b->stride > 1, .h = s->shape[1],
	                        .w = s->shape[2], .c = s->shape[0], .classes = width};
	for (int64_t i = 0; i < from->n && r.label; i++) {
		int32_t label = l->staged_labels[first + i];
		l->labels[i] = from->absent[i] || label == s->ignore_index ? -1 : label;
	}
	if (is_mixed_within(l, b)) {
		memcpy(r.pixels + b->n * bytes, r.pixels + (b->n - 1) * bytes, (size_t)bytes);
		if (r.label)
			l->labels[b->n] = l->labels[b->n - 1];
		else
			memcpy(r.target + b->n * width, r.target + (b->n - 1) * width, (size_t)width * sizeof *r.target);
	}
	gt_mix_draw(&s->mixing, s->seed, (uint64_t)b->epoch, (uint64_t)(b->micro / s->batch), r.h, r.w, &what);
	gt_mix_rows(&what, &r);
}

/* Waits for batch i of the fetcher, which must have the rows of part b. Samples that are absent get the target of rows without a sample. */
static enum gt_code wait_for(struct gt_loader *l, int i, const struct gt_batch *b, struct gt_fetched *out, struct gt_err *err)
{
	struct gt_loader_column *target = &l->column[0];
	size_t bytes = gt_column_bytes(&target->of);
	GT_TRY(gt_fetcher_wait(l->fetcher, i, out, err));
	if (out->n < b->n)
		return gt_fail(err, GT_EINTERNAL, "loader: %lld samples were fetched for a batch of %lld", (long long)out->n, (long long)b->n);
	if (l->spec.mixing.classes) {
		if (b->n)
			mix_part(l, b, out);
		return GT_OK;
	}
	for (int64_t k = 0; k < b->n; k++) {
		char *row = target->staged + (size_t)(out->slot * l->rows + k) * bytes;
		if (out->absent[k] && target->of.width)
			memset(row, 0, bytes);
		else if (out->absent[k])
			memcpy(row, &l->spec.fill_target, bytes);
	}
	return GT_OK;
}

enum gt_code gt_loader_gather_fetched(struct gt_loader *l, const struct gt_batch *b, const struct gt_step_args *step_args, int slot,
                                   struct gt_err *err)
{
	struct gt_fetched from;
	GT_TRY(gt_loader_fetch_ahead(l, 1, err));
	GT_TRY(wait_for(l, 0, b, &from, err));
	if (b->n)
		GT_TRY(gt_loader_gather(l, b->n, 0, step_args, &from, b->x, slot, 0, err));
	gt_fetcher_drop(l->fetcher);
	return GT_OK;
}

enum gt_code gt_loader_stage(struct gt_loader *l, const struct gt_batch *b, struct gt_err *err)
{
	struct gt_fetched from;
	size_t row = image_bytes(&l->spec);
	int64_t at = l->staged_parts++ % l->ring_parts * l->most;
	GT_TRY(gt_loader_fetch_ahead(l, l->copying + 1, err));
	GT_TRY(wait_for(l, l->copying, b, &from, err));
	GT_TRY(l->be->copy_async(l->dev, l->ring_rows + (size_t)at * row, from.rows, (size_t)b->n * row, GT_COPY_H2D, GT_STREAM_FETCH, err));
	for (int c = 0; c < l->ncolumns; c++) {
		const struct gt_loader_column *col = &l->column[c];
		size_t bytes = gt_column_bytes(&col->of);
		if (col->ring)
			GT_TRY(l->be->copy_async(l->dev, col->ring + (size_t)at * bytes, col->staged + (size_t)(from.slot * l->rows) * bytes,
			                         (size_t)b->n * bytes, GT_COPY_H2D, GT_STREAM_FETCH, err));
	}
	l->copying++;
	return GT_OK;
}

enum gt_code gt_loader_end_copies(struct gt_loader *l, struct gt_err *err)
{
	if (l->copying)
		GT_TRY(l->be->host_wait(l->dev, l->spec.event + 2, err));
	for (; l->copying; l->copying--)
		gt_fetcher_drop(l->fetcher);
	return GT_OK;
}

/* Returns the maximum number of rows that are read for a part. With mixing, partners that are in other parts need rows too. */
static int64_t rows_of(const struct gt_loader_spec *s)
{
	int64_t most = gt_part_size(s->micro, s->slice.parts ? s->slice.parts : 1, 0, NULL);
	return !s->mixing.classes ? most : s->slice.strided ? 2 * most : most + 1;
}

/* Returns the number of batches in the ring: those that are read ahead, and the one that is used or, on a device with its own memory, those
 * of a step, which are copied together. */
static int slots_of(const struct gt_loader_spec *s)
{
	return s->ahead + (s->units > 1 ? s->units : 1);
}

/* Returns the number of parts in the ring on a device with its own memory: those of two windows; 0: the device uses host memory. */
static int ring_parts(const struct gt_loader_spec *s)
{
	return 2 * s->window * s->units;
}

/* Allocates host memory, which a device with its own memory can copy from. */
static enum gt_code host_memory(struct gt_loader *l, size_t bytes, void *out, struct gt_err *err)
{
	void *p = NULL;
	if (!l->be->host_memory)
		GT_TRY(l->be->host_alloc(l->dev, bytes, &p, err));
	else if (!(p = malloc(bytes)))
		return gt_fail_memory(err, bytes);
	memcpy(out, &p, sizeof p);
	return GT_OK;
}

static void host_memory_free(struct gt_loader *l, void *p)
{
	if (l->be->host_memory)
		free(p);
	else if (p)
		l->be->host_free(l->dev, p);
}

/* Allocates the ring on a device with its own memory. */
static enum gt_code open_ring(struct gt_loader *l, size_t row, struct gt_err *err)
{
	void *p;
	l->ring_parts = ring_parts(&l->spec);
	size_t rows = (size_t)l->ring_parts * (size_t)l->most;
	GT_TRY(host_memory(l, 2 * (size_t)l->row * sizeof *l->map, &l->map, err));
	GT_TRY(l->be->alloc(l->dev, rows * row, &p, err));
	l->ring_rows = p;
	for (int c = 0; c < l->ncolumns; c++) {
		if (l->column[c].operand < 0)
			continue;
		GT_TRY(l->be->alloc(l->dev, rows * gt_column_bytes(&l->column[c].of), &p, err));
		l->column[c].ring = p;
	}
	return GT_OK;
}

enum gt_code gt_loader_open_fetcher(struct gt_loader *l, struct gt_err *err)
{
	const struct gt_loader_spec *s = &l->spec;
	l->rows = rows_of(s);
	struct gt_fetcher_spec f = {.fetch = s->fetch, .threads = s->workers, .slots = slots_of(s), .rows = l->rows,
	                            .bytes = image_bytes(s)};
	size_t slots = (size_t)f.slots, rows = (size_t)l->rows;
	if (s->split.on && s->mixing.classes)
		return gt_fail(err, GT_EINTERNAL, "loader: images with recipes cannot be mixed before they are transformed");
	GT_TRY(host_memory(l, slots * rows * f.bytes, &l->staged, err));
	for (int c = 0; c < l->ncolumns; c++)
		if (l->column[c].operand >= 0)
			GT_TRY(host_memory(l, slots * rows * gt_column_bytes(&l->column[c].of), &l->column[c].staged, err));
	bool labels = s->mixing.classes && !l->column[0].of.host;
	if (labels) {
		l->staged_labels = malloc(slots * rows * sizeof *l->staged_labels);
		l->labels = malloc(rows * sizeof *l->labels);
	}
	l->list = malloc(rows * sizeof *l->list);
	if (!l->list || (labels && (!l->staged_labels || !l->labels)))
		return gt_fail_memory(err, slots * rows * sizeof *l->list);
	if (!l->be->host_memory)
		GT_TRY(open_ring(l, f.bytes, err));
	if (!(l->iota = malloc((size_t)l->most * sizeof *l->iota)))
		return gt_fail_memory(err, (size_t)l->most * sizeof *l->iota);
	for (int64_t i = 0; i < l->most; i++)
		l->iota[i] = i;
	f.memory = l->staged;
	return gt_fetcher_open(&f, &l->fetcher, err);
}

size_t gt_loader_fetched_bytes(const struct gt_loader_spec *s)
{
	size_t most = (size_t)gt_part_size(s->micro, s->slice.parts ? s->slice.parts : 1, 0, NULL), rows = (size_t)rows_of(s), numbers = 0;
	size_t image = image_bytes(s), slots = (size_t)slots_of(s), ring = (size_t)ring_parts(s);
	struct gt_column column[GT_MAX_COLUMNS];
	if (!s->fetch.sample)
		return 0;
	for (int n = gt_columns_of(s->view->data, column), c = 0; c < n; c++)
		numbers += !c && s->mixing.classes && !column[c].width ? (size_t)s->mixing.classes * sizeof(float) : gt_column_bytes(&column[c]);
	return slots * rows * (image + numbers + (s->mixing.classes ? sizeof(int32_t) : 0)) + ring * most * (image + numbers);
}

void gt_loader_close_fetcher(struct gt_loader *l)
{
	gt_fetcher_close(l->fetcher);
	if (l->map) { /* copies may still read the memory below */
		l->be->sync(l->dev, 0, NULL);
		l->be->sync(l->dev, GT_STREAM_FETCH, NULL);
	}
	host_memory_free(l, l->staged);
	for (int c = 0; c < l->ncolumns; c++) {
		host_memory_free(l, l->column[c].staged);
		if (l->column[c].ring)
			l->be->free(l->dev, l->column[c].ring);
	}
	free(l->staged_labels);
	free(l->labels);
	free(l->list);
	host_memory_free(l, l->map);
	if (l->ring_rows)
		l->be->free(l->dev, l->ring_rows);
	free(l->iota);
}
