#include "mlp_division.h"
#include "aug.h"
#include "ew.h"
#include "optimizer.h"
#include <stdio.h>

#define WARPS (GT_MLP_BLOCK / 32)
#define TILE 32       /* a tile that does not have all columns has a multiple of this, so that it does not change the order of sums */
/* Maximum bytes between L2 and all blocks in a step: 20 us at the assumed bandwidth of an H200, in which the single kernels of such a model
 * are predicted to be done, too. Measure on a GPU before this limit is changed. */
#define BYTES (96 << 20)

static bool known_act(enum gt_opcode code)
{
	return code == GT_OP_RELU || code == GT_OP_LEAKY_RELU || code == GT_OP_SIGMOID || code == GT_OP_TANH || code == GT_OP_GELU ||
	       code == GT_OP_SILU || code == GT_OP_ELU || code == GT_OP_IDENTITY;
}

const char *gt_mlp_refuses(const struct gt_opcall *call)
{
	const struct gt_attr_mlp_steps *a = call->attr;
	if (a->nlayers < 2 || a->nlayers > GT_MLP_LAYERS)
		return "it has kernels for 2 to 4 linear layers";
	if (a->batch < 1 || a->batch > GT_MLP_ROWS)
		return "it has kernels for batches of up to 128 samples";
	if (a->layer[a->nlayers - 1].out > GT_MLP_CLASSES)
		return "it has kernels for up to 16 outputs";
	if (a->optimizer != GT_OP_SGD && a->optimizer != GT_OP_ADAM)
		return "it has kernels for sgd, adam and adamw";
	if (a->update.amsgrad)
		return "it has no kernel for amsgrad";
	if (!gt_aug_none(&a->gather) || a->gather.views > 1)
		return "it does not augment samples";
	if (a->loss.nweights && a->loss.nweights != a->layer[a->nlayers - 1].out)
		return "the number of weights is not that of the outputs";
	for (int l = 0; l < a->nlayers; l++)
		if (a->layer[l].in > 1 << 14 || a->layer[l].out > 1 << 14 || (l && a->layer[l].in != a->layer[l - 1].out))
			return "it has kernels for layers of up to 16384 features";
	for (int l = 0; l < a->nlayers - 1; l++)
		if (!known_act(a->layer[l].act.code))
			return "it has relu, leaky_relu, sigmoid, tanh, gelu, silu and elu between layers";
	if (call->in[0]->dim[1] > GT_MAX_CHANNELS || call->in[0]->dim[1] * call->in[0]->dim[2] * call->in[0]->dim[3] != a->layer[0].in)
		return "the first layer must have the bytes of a sample as its inputs";
	return NULL;
}

/* ---- division --------------------------------------------------------------------------------------------------------------------- */
static int32_t up(int64_t n, int32_t to)
{
	return (int32_t)((n + to - 1) / to * to);
}

/* Returns the number of rows of the kernel for a batch. */
static int32_t rows_of(const struct gt_mlp_division *d)
{
	return d->rows <= 32 ? 32 : d->rows <= 64 ? 64 : 128;
}

/* Chooses the number of blocks, at most one for each multiprocessor, and the outputs that a block owns. */
static void divide_layers(struct gt_mlp_division *d, int sms)
{
	int32_t widest = 4;
	for (int l = 0; l < d->nlayers - 1; l++)
		widest = d->layer[l].out > widest ? up(d->layer[l].out, 4) : widest;
	int32_t each = up((widest + sms - 1) / sms, 4);
	d->blocks = (widest + each - 1) / each;
	for (int l = 0; l < d->nlayers - 1; l++)
		d->layer[l].cols = up((d->layer[l].out + d->blocks - 1) / d->blocks, 4);
	d->layer[d->nlayers - 1].cols = d->layer[d->nlayers - 2].cols;
}

static void divide_work(struct gt_mlp_division *d)
{
	int64_t at = GT_MLP_HEAD;
	for (int l = 0; l < d->nlayers; l++) {
		struct gt_mlp_division_layer *y = &d->layer[l];
		bool last = l == d->nlayers - 1, first = l == 0;
		int64_t rows = (int64_t)d->rows * y->out, weights = last ? (int64_t)(y->in + 1) * d->classes : (int64_t)y->in * y->out;
		for (int i = 0; i < 2; i++) {
			bool grad = !first && l < d->nlayers - 2;
			y->act[i] = last ? -1 : at;
			at += last ? 0 : up(rows, 4);
			y->grad[i] = grad ? at : -1;
			at += grad ? up(rows, 4) : 0;
			y->next[i] = first ? -1 : at;
			at += first ? 0 : up(weights, 4);
			bool slope = d->more && l == d->nlayers - 2;
			y->slope[i] = slope ? at : -1;
			at += slope ? up(rows, 4) : 0;
		}
		d->norms += up(last ? y->in : y->out, 4) / 4 + last;
	}
	for (int i = 0; i < 2; i++) {
		d->norm[i] = d->clips ? at : -1;
		at += d->clips ? up(2 * d->norms, 4) : 0;
	}
	d->work = (size_t)at * sizeof(float);
}

/* Divides the shared memory; the tile gets what is left of `limit` floats. Returns the number of floats that are in use; more than `limit`
 * if there is no room. */
static int32_t divide_shared(struct gt_mlp_division *d, int32_t limit)
{
	const int32_t r = rows_of(d), ld = r + 1, last = d->nlayers - 1;
	int32_t at = 0, columns = 4, most = 0;
	d->set = d->own_floats = 0;
	for (int l = 0; l <= last; l++) {
		struct gt_mlp_division_layer *y = &d->layer[l];
		y->shared = d->set;
		d->set += up((int64_t)y->cols * (l < last ? y->in : d->classes), 4);
		y->shared_bias = d->set;
		d->set += l < last ? y->cols : d->classes;
		columns = l > 0 && l < last && y->out > columns ? y->out : columns;
		most = y->in > most ? y->in : most;
	}
	at = 2 * d->copies * d->set;
	for (int l = 0; l < last; l++) {
		d->layer[l].own = at + d->own_floats;
		d->own_floats += d->layer[l].cols * r;
	}
	at += (d->more ? 3 : 2) * d->own_floats;
	d->places_at = at, at += 2 * r;
	d->loss_at = at, at += 2 * r;
	d->labels_at = at, at += r;
	d->rank_at = at, at += r;
	d->norm_at = at, at += d->more ? 4 : 0;
	d->opt_at = at, at += up((int64_t)((2 * (size_t)d->nlayers + d->more) * sizeof(struct gt_opt_f32) / sizeof(float)), 4);
	d->logits_at = at, at += up(2 * r * d->layer[last].out, 4);
	d->part_at = at, at += WARPS * (4 * r > 32 * d->classes ? 4 * r : 32 * d->classes);
	d->column_at = at, at += 4 * columns;
	d->tile_at = at;
	/* a tile has all columns, or a multiple of TILE */
	int32_t weights = d->layer[last].in * d->classes, hidden = d->layer[last].in, left = limit - at;
	d->wide = left / ld < most ? left / ld / TILE * TILE : most;
	d->narrow = (left - weights) / ld < hidden ? (left - weights) / ld / TILE * TILE : hidden;
	if (left < weights || d->wide < 1 || d->narrow < 1)
		return at + weights + ld * (hidden < TILE ? hidden : TILE);
	d->last_at = at + up(d->narrow * ld, 4);
	int32_t wide = at + d->wide * ld, narrow = d->last_at + weights;
	if (narrow > limit) { /* by the alignment */
		d->narrow = (d->narrow - 1) / TILE * TILE;
		d->last_at = at + up(d->narrow * ld, 4);
		narrow = d->narrow < 1 ? limit + 1 : d->last_at + weights;
	}
	return wide > narrow ? wide : narrow;
}

bool gt_mlp_divide(const struct gt_opcall *call, const struct gt_mlp_card *card, struct gt_mlp_division *out, char *why, size_t size)
{
	const struct gt_attr_mlp_steps *a = call->attr;
	int64_t room = card->shared - GT_MLP_RESERVED;
	*out = (struct gt_mlp_division){.nlayers = a->nlayers, .rows = (int32_t)a->batch};
	out->nstates = (call->in[4] != NULL) + (call->in[5] != NULL);
	bool average = call->nin > 8 && call->in[8];
	out->copies = 1 + out->nstates + average;
	out->clips = a->update.clip_norm > 0;
	out->more = average || out->clips || out->rows > 64 || a->loss.nweights || a->loss_code != GT_OP_CROSS_ENTROPY;
	for (int l = 0; l < a->nlayers - 1; l++)
		out->more |= a->layer[l].act.code != GT_OP_RELU;
	for (int l = 0; l < a->nlayers; l++) {
		out->layer[l].in = (int32_t)a->layer[l].in;
		out->layer[l].out = (int32_t)a->layer[l].out;
	}
	out->classes = up(out->layer[out->nlayers - 1].out, 4);
	divide_layers(out, card->sms);
	divide_work(out);
	out->shared = (size_t)divide_shared(out, (int32_t)(room / (int)sizeof(float))) * sizeof(float);
	if ((int64_t)out->shared <= room) {
		struct gt_mlp_work w;
		gt_mlp_work(out, &w);
		if (w.bytes * out->blocks <= BYTES)
			return true;
		snprintf(why, size, "its %d blocks would move %.0f MiB from the L2 cache in a step, and from %d MiB on, single kernels are "
		         "predicted to take less time", out->blocks, w.bytes * out->blocks / (1 << 20), BYTES >> 20);
		return false;
	}
	snprintf(why, size, "weights, optimizer state and a batch need %zu KiB of shared memory in each of %d blocks, and there are %lld KiB",
	         out->shared / 1024, out->blocks, (long long)room / 1024);
	return false;
}

/* ---- work ------------------------------------------------------------------------------------------------------------------------- */
struct count {
	const struct gt_mlp_division *d;
	double rows, rb; /* rows of a tile; warps that they have */
	struct gt_mlp_work *w;
};

static double warps(double n)
{
	return ceil(n / 32);
}

/* Ways of the conflict if neighbouring lanes are `stride` floats apart. */
static double conflict(int stride)
{
	int ways = 1;
	while (ways < 32 && stride % (2 * ways) == 0)
		ways *= 2;
	return ways;
}

/* fill(): all columns of a layer's input. The samples are bytes; what other layers read are floats. */
static void fill(const struct count *c, int columns, bool bytes)
{
	c->w->bytes += (double)c->d->rows * columns * (bytes ? 1 : 4);
	c->w->accesses += c->rows / 32 * columns;
}

/* multiply() and add_warps(): a group of four outputs. The weights of a column are one access for all lanes. */
static void product(const struct count *c, double columns)
{
	c->w->multiply_adds += columns * c->rows * 4;
	c->w->accesses += columns * (1 + c->rb) + WARPS * c->rb * 4 + c->rows * 4 / 32 * WARPS;
}

static void forward(const struct count *c, int l)
{
	const struct gt_mlp_division_layer *y = &c->d->layer[l];
	int groups = y->cols / 4;
	for (int g = 0; g < groups; g++) {
		if (!g || y->in > c->d->wide)
			fill(c, y->in, l == 0);
		product(c, y->in);
	}
	c->w->accesses += (c->d->more ? 2 : 1) * c->rows / 32 * y->cols; /* own outputs, and the derivatives of the activation */
	c->w->bytes += (y->slope[0] >= 0 ? 8.0 : 4.0) * c->d->rows * y->cols;
}

static void head(const struct count *c)
{
	const struct gt_mlp_division *d = c->d;
	const struct gt_mlp_division_layer *y = &d->layer[d->nlayers - 1];
	double weights = (double)y->in * d->classes;
	c->w->bytes += 4 * weights;
	c->w->accesses += weights / 32;
	fill(c, y->in, false);
	c->w->multiply_adds += weights * c->rows;
	c->w->accesses += y->in * (d->classes / 4 + c->rb);
	/* sums of the warps: four of a lane's at once, which are `classes` floats from those of the next lane */
	c->w->accesses += WARPS * c->rb * d->classes * conflict(d->classes / 4);
	for (int r = 0; r < d->rows; r += 32)
		c->w->accesses += warps((double)(d->rows - r < 32 ? d->rows - r : 32) * d->classes) * WARPS;
	/* own gradients of the layer before, in which each thread first reads the gradients of its row */
	double rows = warps((double)y->cols * c->rows);
	c->w->multiply_adds += (double)y->cols * c->rows * d->classes;
	c->w->accesses += rows * (y->out * conflict(y->out) + d->classes / 4 + 2);
}

/* backward(): gradients of own outputs of layer l - 1 from those of layer l. */
static void backward(const struct count *c, int l)
{
	const struct gt_mlp_division *d = c->d;
	const struct gt_mlp_division_layer *y = &d->layer[l], *x = &d->layer[l - 1], *last = &d->layer[d->nlayers - 1];
	bool after = l == d->nlayers - 2, whole = y->out <= (after ? d->narrow : d->wide);
	for (int g = 0; g < x->cols / 4; g++) {
		c->w->bytes += 32.0 * y->out; /* L2 moves sectors of 32 bytes, of which four outputs are 16 */
		c->w->accesses += warps(4.0 * y->out);
		if (whole ? !g && (!after || d->more) : true) /* a whole tile still has h; with `more` the derivatives are needed */
			fill(c, y->out, false);
		if (after && (!g || !whole)) { /* last_gradient() */
			c->w->multiply_adds += (double)y->out * c->rows * d->classes;
			c->w->accesses += WARPS * last->out * conflict(last->out) + (double)y->out * c->rb * (d->classes / 4 + 2);
		}
		product(c, y->out);
	}
	c->w->accesses += 2 * c->rows / 32 * x->cols;
	c->w->bytes += x->grad[0] >= 0 ? 4.0 * d->rows * x->cols : 0;
}

/* Returns the accesses by which n accesses' parameters are updated: these, the states and the average are read and written; with `more`,
 * gradients are written first, read again and, if they are clipped, once more for their norm. */
static double updates(const struct count *c, double n)
{
	return n * (2 * c->d->copies + (c->d->more ? 2 : 0) + (c->d->clips ? 1 : 0));
}

/* learn_rows() and apply() */
static void learn_rows(const struct count *c, int l)
{
	const struct gt_mlp_division *d = c->d;
	const struct gt_mlp_division_layer *y = &d->layer[l];
	double weights = (double)y->cols * y->in;
	fill(c, y->in, l == 0);
	c->w->multiply_adds += weights * c->rows;
	c->w->accesses += warps(y->in) * (y->cols / 4) * c->rows * 2;
	c->w->accesses += updates(c, weights / 32);
	c->w->bytes += l ? 4 * weights : 0;
}

/* learn_last() and apply(), which updates the padding after the classes too */
static void learn_last(const struct count *c)
{
	const struct gt_mlp_division *d = c->d;
	const struct gt_mlp_division_layer *y = &d->layer[d->nlayers - 1];
	double weights = (double)y->cols * y->out, updated = d->more ? (double)y->cols * d->classes : weights;
	c->w->multiply_adds += weights * d->rows;
	c->w->accesses += warps(weights) * 2 * d->rows + updates(c, warps(updated));
	c->w->bytes += 4 * updated;
}

void gt_mlp_work(const struct gt_mlp_division *d, struct gt_mlp_work *out)
{
	struct count c = {.d = d, .rows = rows_of(d), .rb = rows_of(d) / 32, .w = out};
	*out = (struct gt_mlp_work){.barriers = d->nlayers - 1 + d->clips};
	for (int l = 0; l < d->nlayers - 1; l++)
		forward(&c, l);
	head(&c);
	for (int l = d->nlayers - 2; l > 0; l--) {
		backward(&c, l);
		out->barriers += d->layer[l - 1].grad[0] >= 0;
	}
	learn_last(&c);
	if (d->clips)
		out->bytes += 8.0 * d->norms;
	for (int l = d->nlayers - 2; l >= 0; l--)
		learn_rows(&c, l);
}
