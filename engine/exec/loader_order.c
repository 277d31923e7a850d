#include "exec/loader_parts.h"
#include "exec/epoch_order.h"

bool gt_loader_weighs_labels(const struct gt_loader *l)
{
	if (!l->spec.view->data->labels || l->spec.mixing.classes)
		return false;
	return l->spec.class_weights || (l->spec.ignore_index >= 0 && l->spec.ignore_index < l->spec.view->data->classes);
}

/* Returns the number of samples of the micro-batch that begins at position `cursor`. */
static int64_t micro_at(const struct gt_loader *l, int64_t cursor)
{
	int64_t in_batch = l->spec.batch - cursor % l->spec.batch, n = l->spec.micro;
	if (in_batch > l->samples - cursor)
		in_batch = l->samples - cursor;
	/* the last batch of an epoch is divided like a full batch: into full micro-batches and a shorter rest */
	return n < in_batch ? n : in_batch;
}

struct gt_batch gt_loader_part_at(const struct gt_loader *l, const struct gt_loader_place *p)
{
	const struct gt_batch_slice *c = &l->spec.slice;
	struct gt_batch b = {.epoch = p->epoch, .stride = c->strided ? c->parts : 1};
	int64_t n = micro_at(l, p->cursor), first;
	b.micro = p->cursor;
	b.n = gt_part_size(n, c->parts, p->part, &first);
	b.cursor = p->cursor + (c->strided ? p->part : first);
	return b;
}

void gt_loader_advance(const struct gt_loader *l, struct gt_loader_place *p)
{
	const struct gt_batch_slice *c = &l->spec.slice;
	if (++p->part < c->part0 + c->nparts)
		return;
	p->part = c->part0;
	p->cursor += micro_at(l, p->cursor);
	if (p->cursor >= l->samples) {
		p->cursor = 0;
		p->epoch++;
	}
}

struct gt_batch gt_loader_next_part(const struct gt_loader *l, struct gt_loader_place *p)
{
	struct gt_batch b = gt_loader_part_at(l, p);
	for (; b.n == 0 && !l->spec.fill; b = gt_loader_part_at(l, p))
		gt_loader_advance(l, p);
	return b;
}

int64_t gt_epoch_positions(int64_t n, int parts, bool pad, bool drop_last, int64_t batch)
{
	if (pad)
		n = (n + parts - 1) / parts * parts;
	return drop_last ? n - n % batch : n;
}

/* Writes the order of the samples of an epoch, as indices in the dataset. */
static enum gt_code fill_order(const struct gt_loader *l, int64_t epoch, int64_t *row, struct gt_err *err)
{
	const struct gt_view *v = l->spec.view;
	if (l->spec.shuffle)
		GT_TRY(gt_permute((enum gt_sampler)l->spec.sampler, l->spec.seed, (uint64_t)epoch, v->n, row, err));
	else
		for (int64_t i = 0; i < v->n; i++)
			row[i] = i;
	if (v->index)
		for (int64_t i = 0; i < v->n; i++)
			row[i] = v->index[row[i]];
	for (int64_t i = v->n; i < l->row; i++)
		row[i] = row[i - v->n];
	if (!l->sequences || (!l->spec.buckets && !l->spec.sorted))
		return GT_OK;
	struct gt_order_spec how = {.start = l->sequences->start, .longest = l->sequences->width, .n = l->row, .batch = l->spec.batch,
	                            .chunk = l->spec.buckets, .seed = l->spec.seed, .epoch = (uint64_t)epoch};
	return l->spec.sorted ? gt_order_sorted(&how, row, err) : gt_order_buckets(&how, row, err);
}

enum gt_code gt_loader_make_order(struct gt_loader *l, int64_t epoch, struct gt_err *err)
{
	struct gt_order *o = &l->order[epoch & 1];
	if (o->epoch == epoch)
		return GT_OK;
	o->epoch = -1;
	if (o->sent) /* wait: the device may still copy the order of epoch - 2 from this memory */
		GT_TRY(l->be->host_wait(l->dev, l->spec.event + (int)(epoch & 1), err));
	GT_TRY(fill_order(l, epoch, o->host, err));
	if (l->orders_dev != l->orders) {
		const int64_t *from = l->ring ? gt_loader_map_epoch(l, epoch) : o->host;
		GT_TRY(l->be->copy_async(l->dev, l->orders_dev + (epoch & 1) * l->row, from, (size_t)l->row * sizeof *from, GT_COPY_H2D, 0, err));
		GT_TRY(l->be->record(l->dev, l->spec.event + (int)(epoch & 1), 0, err));
		o->sent = true;
	}
	o->epoch = epoch;
	return GT_OK;
}

enum gt_code gt_loader_order(struct gt_loader *l, int64_t epoch, const int64_t **out, struct gt_err *err)
{
	*out = l->counted.host ? l->counted.host : l->order[epoch & 1].host;
	if (!l->counted.host)
		return gt_loader_make_order(l, epoch, err);
	if (l->counted.epoch != epoch)
		GT_TRY(fill_order(l, epoch, l->counted.host, err));
	l->counted.epoch = epoch;
	return GT_OK;
}

int64_t gt_loader_length_at(const struct gt_loader *l, const int64_t *order, int64_t cursor)
{
	const struct gt_lengths *to = &l->spec.lengths;
	int64_t first = cursor - cursor % l->spec.batch, longest = 0;
	if (!l->sequences)
		return 0;
	if (l->longest || first + l->spec.batch > l->samples)
		return to->at[to->n - 1];
	for (int64_t i = first; i < first + l->spec.batch; i++) {
		int64_t n = l->sequences->start[order[i] + 1] - l->sequences->start[order[i]];
		longest = n > longest ? n : longest;
	}
	return to->at[gt_lengths_index(to, longest)];
}

enum gt_code gt_loader_length(struct gt_loader *l, int64_t epoch, int64_t cursor, int64_t most, int *index, int64_t *run,
                              struct gt_err *err)
{
	const int64_t *order;
	int64_t length;
	*index = 0;
	*run = 0;
	if (!l->sequences)
		return GT_OK;
	GT_TRY(gt_loader_order(l, epoch, &order, err));
	length = gt_loader_length_at(l, order, cursor);
	*index = gt_lengths_index(&l->spec.lengths, length);
	do {
		cursor += l->spec.batch;
		++*run;
	} while (*run < most && cursor + l->spec.batch <= l->samples && gt_loader_length_at(l, order, cursor) == length);
	return GT_OK;
}

void gt_loader_use_longest(struct gt_loader *l)
{
	l->longest = true;
}

enum gt_code gt_loader_weight(struct gt_loader *l, int64_t epoch, int64_t cursor, int64_t n, double *out, struct gt_err *err)
{
	const struct gt_dataset *d = l->spec.view->data;
	const double *weights = l->spec.class_weights;
	double sum = (double)n;
	if (gt_loader_weighs_labels(l)) {
		const int64_t *order;
		GT_TRY(gt_loader_order(l, epoch, &order, err));
		sum = 0;
		for (int64_t i = 0; i < n; i++) {
			int32_t label = d->labels[order[cursor + i]];
			sum += label == l->spec.ignore_index ? 0 : weights ? weights[label] : 1;
		}
	}
	*out = sum;
	return GT_OK;
}

int64_t gt_loader_sample(struct gt_loader *l, int64_t cursor)
{
	int64_t epoch = l->next.cursor > cursor ? l->next.epoch : l->next.epoch - (l->next.cursor == 0);
	const struct gt_order *o = &l->order[epoch & 1];
	return o->epoch == epoch && cursor < l->row ? o->host[cursor] : -1;
}
