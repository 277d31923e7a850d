#include "opcost.h"
#include "offers.h"
#include "opsig.h"
#include "optimizer.h"
#include <string.h>

#define COLSUM_ROWS 1024 /* more rows than this need two kernels for the sums of columns (kernels/cuda/colsum.cu) */
#define PIECE 64
#define PIECE_TERMS 256

typedef void cost_fn(const struct gt_opcall *call, struct gt_opcost *c);

/* ---- operands ------------------------------------------------------------------------------------------ */
static const struct gt_tdesc *in_of(const struct gt_opcall *call, int i)
{
	return i < call->nin ? call->in[i] : NULL;
}

static const struct gt_tdesc *out_of(const struct gt_opcall *call, int i)
{
	return i < call->nout ? call->out[i] : NULL;
}

static double bytes(const struct gt_tdesc *d)
{
	return d ? (double)gt_tdesc_bytes(d) : 0;
}

static double count(const struct gt_tdesc *d)
{
	return d ? (double)gt_tdesc_count(d) : 0;
}

static bool half(const struct gt_tdesc *d)
{
	return d->dtype == GT_BF16 || d->dtype == GT_F16;
}

/* One kernel reads every input once and writes every output once. What is updated in place or accumulated is read and written. */
static void once(const struct gt_opcall *call, struct gt_opcost *c)
{
	struct gt_opsig sig;
	gt_opsig_read(call->code, &sig);
	for (int i = 0; i < call->nin; i++) {
		const struct gt_operand *o = gt_opsig_input(&sig, i);
		c->read += bytes(call->in[i]);
		if (o && o->updated)
			c->written += bytes(call->in[i]);
	}
	for (int i = 0; i < call->nout; i++) {
		c->written += bytes(call->out[i]);
		if (call->accumulate & 1u << i)
			c->read += bytes(call->out[i]);
	}
	c->kernels = 1;
}

static double up(double a, double b)
{
	int64_t n = (int64_t)(a / b);
	return (double)n * b < a ? (double)(n + 1) : (double)n;
}

static void product(struct gt_opcost *c, double m, double n, double k, double batch)
{
	c->matrix = true;
	c->pieces += batch * up(m, PIECE) * up(n, PIECE) * up(k, PIECE_TERMS);
}

/* The kernels of colsum.cu read dy once more. */
static void column_sums(const struct gt_tdesc *dy, struct gt_opcost *c)
{
	c->read += bytes(dy);
	c->kernels += count(dy) / (double)dy->dim[1] > COLSUM_ROWS ? 2 : 1;
}

/* ---- families ------------------------------------------------------------------------------------------ */
/* Views and communication run no kernel. */
static void cost_none(const struct gt_opcall *call, struct gt_opcost *c)
{
	(void)call, (void)c;
}

static void cost_linear(const struct gt_opcall *call, struct gt_opcost *c)
{
	const struct gt_tdesc *a = call->in[0], *b = call->in[1], *third = in_of(call, 2);
	double rows = (double)a->dim[0], cols = (double)a->dim[1];
	once(call, c);
	if (call->code == GT_OP_LINEAR) {
		product(c, rows, (double)b->dim[0], cols, 1);
		c->kernels += third && half(a); /* rounds the bias */
	} else if (call->code == GT_OP_LINEAR_DX) {
		product(c, rows, (double)b->dim[1], cols, 1);
		if (third && third->dtype != GT_U8) { /* a kernel of its own masks dx */
			c->read += bytes(call->out[0]);
			c->written += bytes(call->out[0]);
			c->kernels++;
		}
	} else if (!out_of(call, 0)) { /* the bias alone; x is not read */
		c->read -= bytes(a) + bytes(b);
		c->kernels = 0;
		column_sums(a, c);
	} else {
		product(c, cols, (double)b->dim[1], rows, 1);
		if (out_of(call, 1) && call->accumulate & 2)
			column_sums(a, c);
	}
}

static void cost_rowsum(const struct gt_opcall *call, struct gt_opcost *c)
{
	once(call, c);
	if (call->code == GT_OP_BIAS_DB && count(call->in[0]) / (double)call->in[0]->dim[1] > COLSUM_ROWS)
		c->kernels++;
}

static void cost_linear_dw_update(const struct gt_opcall *call, struct gt_opcost *c)
{
	once(call, c);
	product(c, (double)call->in[0]->dim[1], (double)call->in[1]->dim[1], (double)call->in[0]->dim[0], 1);
}

/* In 16 bits, engines of cuDNN on tensor cores read channels in blocks of GT_CHANNEL_PAD. They copy an x with other channels into their
 * workspace first (tests/cuda/dnn_plans.c reads its size), unless gather has padded it. In the forward pass the weights are padded in
 * either case; they are too few to count. */
static void pad_channels(const struct gt_opcall *call, const struct gt_tdesc *x, struct gt_opcost *c)
{
	if (!half(x) || ((const struct gt_attr_conv2d *)call->attr)->groups != 1 || x->dim[1] % GT_CHANNEL_PAD == 0)
		return;
	c->kernels += call->code == GT_OP_CONV2D;
	if (x->layout.nblk)
		return;
	struct gt_tdesc copy = gt_tdesc_pad_channels(x, GT_CHANNEL_PAD);
	c->read += bytes(&copy);
	c->written += bytes(&copy);
	c->kernels++;
}

static void cost_conv(const struct gt_opcall *call, struct gt_opcost *c)
{
	const struct gt_attr_conv2d *a = call->attr;
	bool dw = call->code == GT_OP_CONV2D_DW, fwd = call->code == GT_OP_CONV2D;
	const struct gt_tdesc *y = fwd ? call->out[0] : call->in[0], *x = fwd ? call->in[0] : dw ? call->in[1] : call->out[0];
	double groups = (double)a->groups, out = (double)y->dim[1] / groups, in = (double)x->dim[1] / groups;
	double filter = (double)(a->kernel[0] * a->kernel[1]), pixels = count(y) / (double)y->dim[1];
	once(call, c);
	if (fwd || (dw && out_of(call, 0)))
		pad_channels(call, x, c);
	if (fwd) {
		product(c, pixels, out, in * filter, groups);
		c->kernels += in_of(call, 2) && half(x); /* rounds the bias */
		return;
	}
	if (!dw) {
		product(c, count(x) / (double)x->dim[1], in, out * filter, groups);
		return;
	}
	const struct gt_tdesc *w = out_of(call, 0);
	if (w) {
		product(c, out, in * filter, pixels, groups);
		if (half(x)) { /* the product writes 16 bits, which another kernel converts */
			c->read += 2 * count(w);
			c->written += 2 * count(w);
			c->kernels++;
		}
	} else { /* the bias alone; x is not read */
		c->read -= bytes(x) + bytes(y);
		c->kernels = 0;
	}
	if (out_of(call, 1))
		column_sums(y, c);
}

/* A kernel for the statistics, or for tables of the running ones, and one for y. The gradient has a kernel for its sums, and one for dx. */
static void cost_batchnorm(const struct gt_opcall *call, struct gt_opcost *c)
{
	const struct gt_attr_norm *a = call->attr;
	once(call, c);
	switch (call->code) {
	case GT_OP_BATCHNORM:
		if (a->train || !a->track)
			c->read += bytes(call->in[0]);
		c->kernels = 2;
		break;
	case GT_OP_BATCHNORM_STATS:
		if (a->empty)
			c->read -= bytes(call->in[0]);
		break;
	case GT_OP_BATCHNORM_Y:
		c->kernels = 2;
		break;
	case GT_OP_BATCHNORM_DX:
		c->kernels = out_of(call, 0) ? 2 : 1;
		if (in_of(call, 7) || !out_of(call, 0))
			break;
		/* the second kernel reads the masked dy, which the first one wrote to g, or dy and y once more */
		c->read += bytes(call->in[1]) + (out_of(call, 3) ? bytes(call->out[3]) : bytes(call->in[0]) + bytes(in_of(call, 6)));
		break;
	default:
		break;
	}
}

/* The gradients of gamma and beta read dy and x in a kernel of their own, and a second one adds up its results. */
static void cost_layernorm(const struct gt_opcall *call, struct gt_opcost *c)
{
	once(call, c);
	if (call->code != GT_OP_LAYERNORM && call->code != GT_OP_GROUPNORM && (out_of(call, 1) || out_of(call, 2))) {
		bool dx = out_of(call, 0);
		c->kernels = dx ? 3 : 2;
		if (dx)
			c->read += bytes(call->in[0]) + bytes(call->in[1]);
	}
}
#define cost_groupnorm cost_layernorm

#define cost_eltwise once
#define cost_head once
#define cost_head_back once
#define cost_pool once
#define cost_moments once
#define cost_softmax once
#define cost_dropout once
#define cost_shape once
#define cost_loss once
#define cost_bound once
#define cost_check once

static void cost_channels(const struct gt_opcall *call, struct gt_opcost *c)
{
	once(call, c);
	if (call->code == GT_OP_PRELU_DX && out_of(call, 1)) {
		c->kernels = (out_of(call, 0) ? 3 : 2) + (gt_tdesc_count(call->out[1]) == 1);
		if (out_of(call, 0))
			c->read += bytes(call->in[0]) + bytes(call->in[1]);
	}
}

/* permute reads and writes every element. select reads only what it copies. */
static void cost_strided(const struct gt_opcall *call, struct gt_opcost *c)
{
	once(call, c);
	if (call->code == GT_OP_SELECT)
		c->read = bytes(call->out[0]);
}

/* The rows of a table that `entries` tokens name. No more than the table is read: other tokens find their row in a cache. */
static double rows_read(const struct gt_tdesc *w, double entries)
{
	double some = entries * (double)w->dim[1] * (double)gt_dtype_size(w->dtype), all = bytes(w);
	return some < all ? some : all;
}

/* Adds what it takes to order the tokens of a gradient of a table: they are read, sorted in tiles, which are merged if there are several,
 * and summed in chunks, which are joined. An entry has 8 bytes. bag: NULL unless the tokens belong to bags, whose mean needs a kernel. */
static void cost_rows(double entries, const struct gt_attr_embedding *bag, struct gt_opcost *c)
{
	bool merge = entries > GT_CU_SORT_TILE, mean = bag && bag->mode == GT_BAG_MEAN;
	c->read += entries * (4 + 2 * 8 + (merge ? 8 : 0) + (mean ? 4 : 0));
	c->written += entries * (8 + (merge ? 8 : 0));
	c->kernels += 3 + merge + mean;
}

static void cost_embedding(const struct gt_opcall *call, struct gt_opcost *c)
{
	bool bag = call->code == GT_OP_EMBEDDING_BAG || call->code == GT_OP_EMBEDDING_BAG_DW;
	once(call, c);
	if (call->code == GT_OP_EMBEDDING || call->code == GT_OP_EMBEDDING_BAG) {
		const struct gt_tdesc *w = call->in[bag ? 2 : 1];
		double entries = bag ? count(call->in[0]) : count(call->out[0]) / (double)w->dim[1];
		c->read += rows_read(w, entries) - bytes(w) - (bag ? 0 : bytes(call->in[0]) - 4 * entries);
		return;
	}
	/* dw is set to 0 unless it accumulates, and the rows that the tokens name are added */
	double entries = bag ? count(call->in[1]) : (double)call->in[0]->dim[0], touched = rows_read(call->out[0], entries);
	bool adds = call->accumulate & 1;
	c->read = bytes(call->in[0]) + bytes(in_of(call, 2)) + bytes(in_of(call, 3)) + touched;
	c->written = (adds ? 0 : bytes(call->out[0])) + touched;
	c->kernels = adds ? 0 : 1;
	cost_rows(entries, bag ? call->attr : NULL, c);
}

static void cost_embedding_update(const struct gt_opcall *call, struct gt_opcost *c)
{
	bool bag = call->code == GT_OP_EMBEDDING_BAG_DW_UPDATE;
	const struct gt_attr_embedding_update *attr = call->attr;
	const struct gt_tdesc *w = call->in[2];
	double entries = bag ? count(call->in[1]) : (double)call->in[0]->dim[0], touched = rows_read(w, entries);
	for (int i = 0; i < call->nin; i++)
		if (call->in[i] && i != 1) {
			bool table = call->in[i]->rank == 2 && gt_tdesc_same_shape(call->in[i], w);
			c->read += table ? touched : bytes(call->in[i]);
			c->written += table ? touched : 0;
		}
	c->kernels = 0;
	cost_rows(entries, bag && attr ? &attr->table : NULL, c);
}

static void cost_tokens(const struct gt_opcall *call, struct gt_opcost *c)
{
	once(call, c);
	if (call->code == GT_OP_POOL_TOKENS) {
		int mode = ((const struct gt_attr_pool_tokens *)call->attr)->mode;
		if (mode == GT_POOL_FIRST || mode == GT_POOL_LAST)
			c->read += bytes(call->out[0]) - bytes(call->in[0]);
	} else if (call->code == GT_OP_POSITIONAL && in_of(call, 1)) { /* the table has rows for longer sequences too */
		double used = (double)(call->in[0]->dim[1] * call->in[0]->dim[2]) * (double)gt_dtype_size(call->in[1]->dtype);
		c->read += (used < bytes(call->in[1]) ? used : bytes(call->in[1])) - bytes(call->in[1]);
	}
}

/* The gradient has a kernel for queries and one for keys and values, each of which reads everything. */
static void cost_attention(const struct gt_opcall *call, struct gt_opcost *c)
{
	once(call, c);
	if (call->code == GT_OP_ATTENTION_DX) {
		c->read *= 2;
		c->kernels = 2;
	}
}

/* Each step reads the weights again. They stay in a cache, but they are what limits a step. */
static void cost_rnn(const struct gt_opcall *call, struct gt_opcost *c)
{
	bool back = call->code == GT_OP_LSTM_STEPS_DX || call->code == GT_OP_GRU_STEPS_DX;
	once(call, c);
	c->read += bytes(call->in[back ? 5 : 2]) * (double)(call->in[0]->dim[1] - 1);
}

/* Reads the samples of the batch, not those of the whole split; every view reads them again. */
static void cost_gather(const struct gt_opcall *call, struct gt_opcost *c)
{
	double n = (double)call->out[0]->dim[0], labels = out_of(call, 1) ? (double)call->out[1]->dim[0] * 4 : 0;
	c->read = n * bytes(call->in[0]) / (double)call->in[0]->dim[0] + labels + 8 * n;
	c->written = bytes(call->out[0]) + labels;
	c->kernels = 1;
}

/* As if the pixels filled every row. Reads every image once for its pixels, and once for each mean on which a change of its contrast
 * depends. The arithmetic is an estimate: 20 instructions for each value and operation, and 4 x 4 weights of a resized one. */
static void cost_gather_recipes(const struct gt_opcall *call, struct gt_opcost *c)
{
	const struct gt_attr_recipes *a = call->attr;
	double n = (double)call->out[0]->dim[0], labels = out_of(call, 1) ? (double)call->out[1]->dim[0] * 4 : 0;
	double row = bytes(call->in[0]) / (double)call->in[0]->dim[0];
	c->read = n * (row + a->contrasts * count(call->out[0]) / n) + labels + 8 * n;
	c->written = bytes(call->out[0]) + labels;
	c->flops = count(call->out[0]) * (1 + a->contrasts) * (20 * a->ops + (a->resize ? 2 * (4 * 4 + 4) : 0));
	c->kernels = 1;
}

static void cost_gather_rows(const struct gt_opcall *call, struct gt_opcost *c)
{
	c->read = count(call->out[0]) * (double)gt_dtype_size(call->in[0]->dtype) + 8 * (double)call->out[0]->dim[0];
	c->written = bytes(call->out[0]);
	c->kernels = 1;
}

/* As if every sequence had the longest length. */
static void cost_gather_ragged(const struct gt_opcall *call, struct gt_opcost *c)
{
	c->read = bytes(call->out[0]) + 3 * 8 * (double)call->out[0]->dim[0];
	c->written = bytes(call->out[0]);
	c->kernels = 1;
}

/* A step of the window: the samples of its batch, with label and index, and the numbers that it leaves. Weights and states stay in the
 * multiprocessors. */
static void cost_mlp(const struct gt_opcall *call, struct gt_opcost *c)
{
	double n = (double)((const struct gt_attr_mlp_steps *)call->attr)->batch;
	c->read = n * (bytes(call->in[0]) / (double)call->in[0]->dim[0] + 4 + 8);
	c->written = (double)sizeof(struct gt_scalars);
	c->kernels = 1;
}

/* ---- optimizers ------------------------------------------------------------------------------------------ */
/* The segments of an update are a part of its operands. work is written only. An update by norms reads parameters and states once more. */
static void cost_update(const struct gt_opcall *call, struct gt_opcost *c)
{
	const struct gt_attr_update *a = call->attr;
	struct gt_opsig sig;
	if (call->code == GT_OP_SUMSQ) {
		once(call, c);
		return;
	}
	double share = 0, all = (double)gt_tdesc_padded(call->in[0]);
	for (int i = 0; i < a->nseg; i++)
		share += (double)(a->seg[i].end - a->seg[i].begin) / all;
	gt_opsig_read(call->code, &sig);
	for (int i = 0; i < call->nin; i++) {
		const struct gt_operand *o = gt_opsig_input(&sig, i);
		bool scalars = !strcmp(o->name, "scalars"), work = !strcmp(o->name, "work");
		double n = scalars ? bytes(call->in[i]) : share * bytes(call->in[i]);
		c->read += work ? 0 : n;
		c->written += o->updated && !scalars ? n : 0;
		c->read += gt_update_row(call->code)->whole && o->updated && !scalars && !work ? n : 0;
	}
	c->kernels = gt_update_row(call->code)->whole ? 3 : 1;
}

static double round_up(int64_t n, int64_t unit)
{
	return (double)((n + unit - 1) / unit * unit);
}

/* A matrix of Muon, with its sizes rounded up to 16 bytes, as the products have them. */
struct matrix {
	double given; /* elements */
	double rows, cols, n;
};

static struct matrix matrix_at(const struct gt_attr_muon *a, int i, bool half)
{
	int64_t unit = half ? 8 : 4, rows = a->desc[i]->dim[0], cols = gt_tdesc_count(a->desc[i]) / rows;
	struct matrix m = {.given = (double)(rows * cols), .rows = round_up(rows, unit), .cols = round_up(cols, unit)};
	m.n = m.rows * m.cols;
	return m;
}

/* The Newton-Schulz iterations of matrices [first, end): in each step, three batches of products for each shape
 * (kernels/cuda/cuda_muon.c). */
static void iterations(const struct gt_attr_muon *a, int first, int end, bool half, struct gt_opcost *c)
{
	double size = half ? 2 : 4, steps = (double)a->ns_steps, shapes = 0;
	for (int i = first; i < end; i++) {
		struct matrix m = matrix_at(a, i, half);
		double side = m.rows < m.cols ? m.rows : m.cols, long_side = m.rows < m.cols ? m.cols : m.rows, gram = side * side;
		bool alone = true;
		for (int j = first; j < i && alone; j++) {
			struct matrix other = matrix_at(a, j, half);
			alone = other.rows != m.rows || other.cols != m.cols;
		}
		shapes += alone;
		/* x x'; a a with a; a x with x */
		c->read += steps * size * (m.n + gram + gram + 2 * m.n);
		c->written += steps * size * (2 * gram + m.n);
		c->flops += steps * 2 * (2 * gram * long_side + gram * side);
		product(c, side, side, long_side, 1); /* of one of the products, because they follow each other */
	}
	c->kernels += (int)(3 * steps * shapes);
	c->half = half; /* it then rounds the operands of its products to bf16 */
}

/* Two kernels before the products and one after them. */
static void cost_muon(const struct gt_opcall *call, struct gt_opcost *c)
{
	const struct gt_attr_muon *a = call->attr;
	bool work = in_of(call, 4);
	for (int i = 0; i < a->update.nseg; i++) {
		struct matrix m = matrix_at(a, i, work);
		/* momentum: g and buf, buf; fill: g and buf, x; apply: p and x, p and work */
		c->read += 4 * m.given * (a->normalize ? 6 : 5) + (work ? 2 : 4) * m.n;
		c->written += 4 * m.given * 2 + (work ? 2 * m.given : 0) + (work ? 2 : 4) * m.n;
	}
	c->kernels = 3;
	iterations(a, 0, a->update.nseg, work, c);
}

/* Two kernels before the products of a group. */
static void cost_muon_directions(const struct gt_opcall *call, struct gt_opcost *c)
{
	const struct gt_attr_muon *a = call->attr;
	bool half = gt_dtype_size(a->update.work_dtype) == 2;
	int first = a->group[a->part], end = a->part + 1 < a->ngroups ? a->group[a->part + 1] : a->update.nseg;
	for (int i = first; i < end; i++) {
		struct matrix m = matrix_at(a, i, half);
		/* sums: g and buf; fill: g and buf, x */
		c->read += 4 * m.given * (a->normalize ? 5 : 4);
		c->written += (half ? 2 : 4) * m.n;
	}
	c->kernels = 2;
	iterations(a, first, end, half, c);
}

static void cost_muon_apply(const struct gt_opcall *call, struct gt_opcost *c)
{
	const struct gt_attr_muon *a = call->attr;
	bool half = gt_dtype_size(a->update.work_dtype) == 2;
	for (int i = 0; i < a->update.nseg; i++) {
		struct matrix m = matrix_at(a, i, half);
		/* g, buf, p and x; buf, p and work */
		c->read += 4 * m.given * 3 + (half ? 2 : 4) * m.n;
		c->written += 4 * m.given * 2 + (in_of(call, 5) ? 2 * m.given : 0);
	}
	c->kernels = 1;
}

/* ---- table ------------------------------------------------------------------------------------------ */
static cost_fn *const table[GT_OP_COUNT] = {
#define GT_X(code, name, family, ...) [code] = cost_##family,
	GT_OPCODES(GT_X)
#undef GT_X
#define GT_X(NAME, ...) [GT_OP_##NAME] = cost_update,
	GT_ELEMENT_UPDATES(GT_X)
	GT_NORM_UPDATES(GT_X)
#undef GT_X
	[GT_OP_MUON] = cost_muon,
};

void gt_opcall_cost(const struct gt_opcall *call, struct gt_opcost *out)
{
	*out = (struct gt_opcost){0};
	table[call->code](call, out);
	if (call->code != GT_OP_MUON && call->code != GT_OP_MUON_DIRECTIONS)
		out->half = out->matrix && half(call->in[0]);
}
