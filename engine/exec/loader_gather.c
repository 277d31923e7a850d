#include "exec/loader_parts.h"
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 16

enum gt_code gt_loader_host_alloc(struct gt_loader *l, size_t bytes, void *out, struct gt_err *err)
{
	void *p = NULL;
	if (!l->be->host_memory)
		GT_TRY(l->be->host_alloc(l->dev, bytes, &p, err));
	else if (!(p = malloc(bytes)))
		return gt_fail_memory(err, bytes);
	memcpy(out, &p, sizeof p);
	return GT_OK;
}

void gt_loader_host_free(struct gt_loader *l, void *p)
{
	if (l->be->host_memory)
		free(p);
	else if (p)
		l->be->host_free(l->dev, p);
}

enum gt_code gt_loader_device_alloc(struct gt_loader *l, size_t bytes, void *out, struct gt_err *err)
{
	void *p;
	GT_TRY(l->be->alloc(l->dev, bytes, &p, err));
	memcpy(out, &p, sizeof p);
	return GT_OK;
}

void gt_loader_device_free(struct gt_loader *l, void *p)
{
	if (p)
		l->be->free(l->dev, p);
}

static size_t row_bytes(const struct gt_loader *l)
{
	return gt_tdesc_bytes(&l->spec.x) / (size_t)l->spec.x.dim[0];
}

/* With gt_loader_spec.fill: returns the number of rows of every part of b's micro-batch, which is the size of part 0. */
static int64_t rows_of(const struct gt_loader *l, const struct gt_batch *b)
{
	struct gt_loader_place first = {b->epoch, b->micro, 0};
	return gt_loader_part_at(l, &first).n;
}

static void fill_missing_rows(const struct gt_loader *l, struct gt_batch *b)
{
	int64_t rows = rows_of(l, b), none = rows - b->n;
	if (b->x)
		memset((char *)b->x + (size_t)b->n * row_bytes(l), 0, (size_t)none * row_bytes(l));
	for (int i = 0; i < l->spec.ninputs; i++) {
		const struct gt_loader_column *c = &l->column[l->spec.input_column[i]];
		size_t bytes = gt_dtype_size(c->to) * (size_t)(c->of.start ? b->length : c->of.width ? c->of.width : 1);
		if (l->spec.input_column[i])
			memset((char *)b->input[i] + (size_t)b->n * bytes, 0, (size_t)none * bytes);
	}
	for (; b->n < rows; b->n++)
		((int32_t *)b->target)[b->n] = l->spec.fill_target;
}

/* Sets the addresses of a batch. x: address of its images. */
static void set_buffers(const struct gt_loader *l, int buffer, void *x, struct gt_batch *b)
{
	b->x = b->input[0] = x;
	b->target = l->column[0].out[buffer];
	for (int i = 0; i < l->spec.ninputs; i++)
		b->input[i] = l->spec.input_column[i] ? l->column[l->spec.input_column[i]].out[buffer] : x;
}

enum gt_code gt_loader_gather_batch(struct gt_loader *l, struct gt_batch *b, int buffer, int stream, struct gt_err *err)
{
	struct gt_step_args step_args = {
	    .seed = l->spec.seed, .epoch = (uint64_t)b->epoch, .sample0 = (uint64_t)b->cursor, .stride = (uint64_t)b->stride};
	char *x = l->x ? l->x[buffer] : NULL;
	if (x && l->spec.rows)
		x += (size_t)(rows_of(l, b) * l->spec.slice.part0) * row_bytes(l);
	set_buffers(l, buffer, x, b);
	GT_TRY(gt_loader_make_order(l, b->epoch, err));
	b->length = gt_loader_length_at(l, l->order[b->epoch & 1].host, b->micro);
	if (l->fetch)
		GT_TRY(gt_loader_gather_fetched(l, b, &step_args, buffer, err));
	else if (b->n)
		GT_TRY(gt_loader_gather(l, b->n, b->length, &step_args, NULL, b->x, buffer, stream, err));
	if (l->spec.fill)
		fill_missing_rows(l, b);
	return GT_OK;
}

void gt_loader_stop(struct gt_loader *l)
{
	if (l->fetch && l->fetch->fetcher)
		gt_fetcher_clear(l->fetch->fetcher);
	if (l->thread)
		gt_loader_stop_thread(l);
}

enum gt_code gt_loader_start(struct gt_loader *l, int64_t epoch, int64_t cursor, struct gt_err *err)
{
	gt_loader_stop(l);
	l->next = (struct gt_loader_place){epoch, cursor, l->spec.slice.part0};
	l->buffer = 0;
	if (l->ring)
		GT_TRY(gt_loader_start_ring(l, err));
	GT_TRY(gt_loader_make_order(l, epoch, err));
	if (l->thread)
		return gt_loader_start_thread(l, err);
	if (!l->fetch)
		return GT_OK;
	l->fetch->ahead = l->next;
	return gt_loader_fetch_ahead(l, 0, err);
}

enum gt_code gt_loader_next(struct gt_loader *l, struct gt_batch *out, struct gt_err *err)
{
	if (l->thread)
		return gt_loader_take_batch(l, out, err);
	*out = gt_loader_next_part(l, &l->next);
	GT_TRY(gt_loader_gather_batch(l, out, l->buffer, 0, err));
	l->buffer = (l->buffer + 1) % l->nbuf;
	gt_loader_advance(l, &l->next);
	return l->fetch ? gt_loader_fetch_ahead(l, 0, err) : GT_OK;
}

enum gt_code gt_loader_skip_part(struct gt_loader *l, struct gt_batch *out, struct gt_err *err)
{
	if (l->thread)
		return gt_fail(err, GT_EINTERNAL, "loader: a batch cannot be skipped while a thread gathers batches ahead");
	*out = gt_loader_next_part(l, &l->next);
	GT_TRY(gt_loader_make_order(l, out->epoch, err));
	if (l->fetch) { /* drop the skipped part from the fetcher's queue, whose batches are in the order of the parts */
		struct gt_fetched unused;
		GT_TRY(gt_loader_fetch_ahead(l, 1, err));
		GT_TRY(gt_fetcher_wait(l->fetch->fetcher, 0, &unused, err));
		gt_fetcher_drop(l->fetch->fetcher);
	}
	gt_loader_advance(l, &l->next);
	return GT_OK;
}

enum gt_code gt_loader_take_parts(struct gt_loader *l, int nmicro, struct gt_step_args *step_args, struct gt_err *err)
{
	if (l->be->host_memory)
		return GT_OK;
	if (l->ring)
		GT_TRY(gt_loader_end_copies(l, err));
	for (int i = 0; i < nmicro; i++) {
		struct gt_batch b = gt_loader_part_at(l, &l->next);
		GT_TRY(gt_loader_make_order(l, b.epoch, err));
		if (l->ring && b.n)
			GT_TRY(gt_loader_copy_part(l, &b, err));
		step_args[i].epoch = (uint64_t)b.epoch;
		step_args[i].sample0 = (uint64_t)b.cursor;
		step_args[i].stride = (uint64_t)b.stride;
		gt_loader_advance(l, &l->next);
	}
	if (!l->ring || !l->ring->copying)
		return GT_OK;
	GT_TRY(l->be->record(l->dev, l->spec.event + 2, GT_STREAM_FETCH, err));
	GT_TRY(l->be->wait(l->dev, l->spec.event + 2, 0, err)); /* the window, on stream 0, starts after the copies */
	return gt_loader_fetch_ahead(l, l->ring->copying, err);
}

enum gt_code gt_loader_launch(struct gt_loader *l, int64_t n, int64_t length, const struct gt_step_args *step_args, int stream,
                              struct gt_batch *out, struct gt_err *err)
{
	int buffer = l->buffer; /* a captured graph contains this index, and uses the same buffer at each replay */
	l->buffer = (buffer + 1) % l->nbuf;
	*out = (struct gt_batch){.n = n, .length = length, .epoch = -1, .cursor = -1};
	set_buffers(l, buffer, l->x ? l->x[buffer] : NULL, out);
	return gt_loader_gather(l, n, length, step_args, NULL, out->x, buffer, stream, err);
}

enum gt_code gt_loader_order_next_epoch(struct gt_loader *l, struct gt_err *err)
{
	return l->be->host_memory || l->next.cursor == 0 ? GT_OK : gt_loader_make_order(l, l->next.epoch + 1, err);
}

/* Prepares the gather kernels for all sizes of parts of a micro-batch of n samples. */
static enum gt_code prepare_parts(struct gt_loader *l, int64_t n, struct gt_err *err)
{
	const struct gt_batch_slice *c = &l->spec.slice;
	for (int p = c->part0; p < c->part0 + c->nparts; p++)
		GT_TRY(gt_loader_prepare_size(l, gt_part_size(n, c->parts, p, NULL), err));
	return GT_OK;
}

static enum gt_code open_parts(struct gt_loader *l, struct gt_err *err)
{
	const struct gt_loader_spec *s = &l->spec;
	struct gt_tdesc x = s->x;
	size_t order = (size_t)l->row * sizeof(int64_t);
	int64_t tail = l->samples % s->batch, most = gt_part_size(s->micro, s->slice.parts, 0, NULL);
	x.dim[0] = most * (s->attr.views > 1 ? s->attr.views : 1);
	l->most = most;
	GT_TRY(gt_loader_open_columns(l, err));
	if (s->fetch.sample)
		GT_TRY(gt_loader_open_fetch(l, err));
	GT_TRY(prepare_parts(l, s->micro < l->samples ? s->micro : l->samples, err));
	if (tail >= s->micro)
		GT_TRY(prepare_parts(l, s->micro, err));
	if (tail % s->micro)
		GT_TRY(prepare_parts(l, tail % s->micro, err));
	GT_TRY(gt_loader_host_alloc(l, 2 * order, &l->orders, err));
	if (l->be->host_memory)
		l->orders_dev = l->orders;
	else
		GT_TRY(gt_loader_device_alloc(l, 2 * order, &l->orders_dev, err));
	l->counted.epoch = -1;
	if (l->spec.depth > 0 && (gt_loader_weighs_labels(l) || l->sequences) && !(l->counted.host = malloc(order)))
		return gt_fail_memory(err, order);
	for (int i = 0; i < 2; i++) {
		l->order[i].epoch = -1;
		l->order[i].host = l->orders + i * l->row;
	}
	if (l->spec.depth > 0)
		GT_TRY(gt_loader_open_thread(l, err));
	if (!s->view->data->c)
		return GT_OK;
	if (!(l->x = calloc((size_t)l->nbuf, sizeof *l->x)))
		return gt_fail_memory(err, (size_t)l->nbuf * sizeof *l->x);
	for (int i = 0; i < l->nbuf; i++) {
		if (s->rows)
			l->x[i] = s->rows + (size_t)i * gt_loader_rows(s);
		else
			GT_TRY(l->be->alloc(l->dev, gt_tdesc_bytes(&x), &l->x[i], err));
	}
	return GT_OK;
}

static int depth_of(const struct gt_loader_spec *s)
{
	if (s->fetch.sample || (!s->fill && !s->device->be->host_memory)) /* threads of the fetcher or a GPU kernel gather instead */
		return 0;
	return s->depth < MAX_DEPTH ? s->depth : MAX_DEPTH;
}

int gt_loader_buffers(const struct gt_loader_spec *s)
{
	return depth_of(s) + (s->keep > 1 ? s->keep : 1);
}

size_t gt_loader_rows(const struct gt_loader_spec *s)
{
	struct gt_tdesc x = s->x;
	x.dim[0] = gt_part_size(s->micro, s->slice.parts, 0, NULL) * s->slice.parts;
	return gt_tdesc_bytes(&x);
}

enum gt_code gt_loader_open(const struct gt_loader_spec *spec, struct gt_loader **out, struct gt_err *err)
{
	struct gt_loader *l = calloc(1, sizeof *l);
	*out = NULL;
	if (!l)
		return gt_fail_memory(err, sizeof *l);
	l->spec = *spec;
	l->be = spec->device->be;
	l->dev = spec->device->dev;
	l->spec.depth = depth_of(spec);
	l->nbuf = gt_loader_buffers(spec);
	l->spec.keep = l->nbuf - l->spec.depth;
	if (!l->spec.slice.parts)
		l->spec.slice = (struct gt_batch_slice){.parts = 1, .nparts = 1};
	l->row = gt_epoch_positions(spec->view->n, l->spec.slice.parts, spec->pad, false, spec->batch);
	l->samples = gt_epoch_positions(spec->view->n, l->spec.slice.parts, spec->pad, spec->drop_last, spec->batch);
	enum gt_code code = l->samples > 0 ? open_parts(l, err)
	                                   : gt_fail(err, GT_ECONFIG, "data.drop_last: expected at least data.batch = %lld samples, got %lld",
	                                             (long long)spec->batch, (long long)spec->view->n);
	if (code != GT_OK) {
		l->spec.fetch.close = NULL; /* after a failure, the caller still owns spec->fetch */
		gt_loader_close(l);
		return code;
	}
	*out = l;
	return GT_OK;
}

void gt_loader_close(struct gt_loader *l)
{
	if (!l)
		return;
	gt_loader_stop(l);
	gt_loader_close_thread(l);
	gt_loader_close_fetch(l);
	if (l->spec.fetch.close)
		l->spec.fetch.close(l->spec.fetch.user);
	gt_loader_close_columns(l);
	free(l->counted.host);
	if (!l->be->host_memory) {
		l->be->sync(l->dev, 0, NULL); /* wait: a copy of an order to the device may still be queued */
		gt_loader_device_free(l, l->orders_dev);
	}
	gt_loader_host_free(l, l->orders);
	for (int i = 0; l->x && !l->spec.rows && i < l->nbuf; i++)
		gt_loader_device_free(l, l->x[i]);
	free(l->x);
	free(l);
}
