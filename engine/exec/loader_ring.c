#include "exec/loader_parts.h"
#include "base/arena.h"
#include <stdlib.h>

enum gt_code gt_loader_open_ring(struct gt_loader *l, struct gt_err *err)
{
	struct gt_loader_ring *r = l->ring = calloc(1, sizeof *r);
	if (!r)
		return gt_fail_memory(err, sizeof *r);
	r->parts = gt_loader_ring_parts(&l->spec);
	size_t rows = (size_t)r->parts * (size_t)l->most;
	GT_TRY(gt_loader_host_alloc(l, 2 * (size_t)l->row * sizeof *r->map, &r->map, err));
	GT_TRY(gt_loader_device_alloc(l, rows * l->fetch->image, &r->images, err));
	for (int c = 0; c < l->ncolumns; c++)
		if (l->column[c].operand >= 0)
			GT_TRY(gt_loader_device_alloc(l, rows * gt_column_bytes(&l->column[c].of), &r->column[c], err));
	return GT_OK;
}

void gt_loader_close_ring(struct gt_loader *l)
{
	if (!l->ring)
		return;
	gt_loader_host_free(l, l->ring->map);
	gt_loader_device_free(l, l->ring->images);
	for (int c = 0; c < l->ncolumns; c++)
		gt_loader_device_free(l, l->ring->column[c]);
	free(l->ring);
}

enum gt_code gt_loader_start_ring(struct gt_loader *l, struct gt_err *err)
{
	GT_TRY(l->be->sync(l->dev, 0, err));
	GT_TRY(l->be->sync(l->dev, GT_STREAM_FETCH, err));
	l->ring->begin = l->next;
	l->ring->copied = l->ring->copying = 0;
	l->order[0].epoch = l->order[1].epoch = -1; /* invalidate both maps: they depend on the position at which the loader starts */
	return GT_OK;
}

const int64_t *gt_loader_map_epoch(struct gt_loader *l, int64_t epoch)
{
	struct gt_loader_ring *r = l->ring;
	bool first = epoch == r->begin.epoch;
	struct gt_loader_place p = first ? r->begin : (struct gt_loader_place){epoch, 0, l->spec.slice.part0};
	int64_t *map = r->map + (epoch & 1) * l->row, part = first ? 0 : r->end[(epoch + 1) & 1];
	for (; p.epoch == epoch; gt_loader_advance(l, &p)) {
		struct gt_batch b = gt_loader_part_at(l, &p);
		for (int64_t i = 0; i < b.n; i++)
			map[b.cursor + i * b.stride] = part % r->parts * l->most + i;
		part += b.n > 0;
	}
	r->end[epoch & 1] = part;
	return map;
}

enum gt_code gt_loader_copy_part(struct gt_loader *l, const struct gt_batch *b, struct gt_err *err)
{
	struct gt_loader_ring *r = l->ring;
	struct gt_fetched from;
	size_t row = l->fetch->image;
	int64_t at = r->copied++ % r->parts * l->most;
	GT_TRY(gt_loader_fetch_ahead(l, r->copying + 1, err));
	GT_TRY(gt_loader_wait_fetched(l, r->copying, b, &from, err));
	GT_TRY(l->be->copy_async(l->dev, r->images + (size_t)at * row, from.rows, (size_t)b->n * row, GT_COPY_H2D, GT_STREAM_FETCH, err));
	for (int c = 0; c < l->ncolumns; c++) {
		size_t bytes = gt_column_bytes(&l->column[c].of);
		if (r->column[c])
			GT_TRY(l->be->copy_async(l->dev, r->column[c] + (size_t)at * bytes,
			                         l->fetch->column[c] + (size_t)from.first * bytes, (size_t)b->n * bytes, GT_COPY_H2D,
			                         GT_STREAM_FETCH, err));
	}
	r->copying++;
	return GT_OK;
}

enum gt_code gt_loader_end_copies(struct gt_loader *l, struct gt_err *err)
{
	if (l->ring->copying)
		GT_TRY(l->be->host_wait(l->dev, l->spec.event + 2, err));
	for (; l->ring->copying; l->ring->copying--)
		gt_fetcher_drop(l->fetch->fetcher);
	return GT_OK;
}
