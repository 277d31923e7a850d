/* mlp.steps: a multilayer perceptron whose weights stay in the shared memory of the GPU over a window of training (mlp_steps.cu). This file
 * divides the layers among the blocks, and shared memory and workspace among what the kernel keeps there. */
#include "aug.h"
#include "cuda/cuda_internal.h"
#include "ew.h"
#include "optimizer.h"
#include <stdio.h>
#include <stdlib.h>

#define WARPS (GT_CU_MLP_BLOCK / 32)
#define TILE 256 /* a tile that does not have all columns has a multiple of this, so that it does not change the order of sums */

struct mlp {
	struct gt_kernel head;
	struct gt_cu_mlp c; /* arguments of the kernel; the launch fills in the pointers */
	enum gt_opcode optimizer;
	int nstates, blocks;
	size_t shared;
	char text[64];
};

static enum gt_code launch_mlp(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct mlp *k = (const struct mlp *)kernel;
	struct gt_cu_mlp c = k->c;
	GT_TRY(gt_cuda_step_args(dev, a, &c.look.step_args, err));
	if (!c.look.step_args.dev)
		return gt_fail(err, GT_EINTERNAL, "%s: mlp.steps needs the gt_step_args of its steps in device memory", dev->id);
	c.images = a->in[0];
	c.labels = a->in[1];
	c.look.index = a->in[2];
	c.look.fault = dev->fault;
	c.p = a->in[3];
	for (int i = 0; i < k->nstates; i++)
		c.state[i] = a->in[4 + i];
	c.scalars = a->in[6];
	c.scaler = a->in[7];
	c.work = a->scratch;
	GT_CUDA(dev, gt_cu_mlp_start(k->optimizer, &c, k->blocks, k->shared, s), "mlp.steps", err);
	return GT_OK;
}

/* ---- division --------------------------------------------------------------------------------------------------------------------- */
static int32_t up(int64_t n, int32_t to)
{
	return (int32_t)((n + to - 1) / to * to);
}

/* Chooses the number of blocks, at most one for each multiprocessor, and the outputs that a block owns. */
static int divide_layers(struct gt_cu_mlp *c, int sms)
{
	int32_t widest = 4;
	for (int l = 0; l < c->nlayers - 1; l++)
		widest = c->layer[l].out > widest ? up(c->layer[l].out, 4) : widest;
	int32_t each = up((widest + sms - 1) / sms, 4), blocks = (widest + each - 1) / each;
	for (int l = 0; l < c->nlayers - 1; l++)
		c->layer[l].cols = up((c->layer[l].out + blocks - 1) / blocks, 4);
	c->layer[c->nlayers - 1].cols = c->layer[c->nlayers - 2].cols;
	return blocks;
}

/* Divides the workspace; returns its bytes. */
static size_t divide_work(struct gt_cu_mlp *c)
{
	int64_t at = GT_CU_MLP_HEAD;
	for (int l = 0; l < c->nlayers; l++) {
		struct gt_cu_mlp_layer *y = &c->layer[l];
		bool last = l == c->nlayers - 1, first = l == 0;
		int64_t rows = (int64_t)c->rows * y->out, weights = last ? (int64_t)(y->in + 1) * c->classes : (int64_t)y->in * y->out;
		for (int i = 0; i < 2; i++) {
			bool grad = !first && l < c->nlayers - 2;
			y->act[i] = last ? -1 : at;
			at += last ? 0 : up(rows, 4);
			y->grad[i] = grad ? at : -1;
			at += grad ? up(rows, 4) : 0;
			y->next[i] = first ? -1 : at;
			at += first ? 0 : up(weights, 4);
		}
	}
	return (size_t)at * sizeof(float);
}

/* Divides the shared memory, except that the tile gets what is left of `limit` floats. Returns the number of floats that are in use; more
 * than `limit` if there is no room. */
static int32_t divide_shared(struct gt_cu_mlp *c, int nstates, int32_t limit)
{
	const int32_t r = up(c->rows, 32), ld = r + 1, last = c->nlayers - 1;
	int32_t at = 0, columns = 4, most = 0;
	c->set = c->own_floats = 0;
	for (int l = 0; l <= last; l++) {
		struct gt_cu_mlp_layer *y = &c->layer[l];
		y->shared = c->set;
		c->set += up((int64_t)y->cols * (l < last ? y->in : c->classes), 4);
		y->shared_bias = c->set;
		c->set += l < last ? y->cols : c->classes;
		columns = l > 0 && l < last && y->out > columns ? y->out : columns;
		most = y->in > most ? y->in : most;
	}
	at = 2 * (1 + nstates) * c->set;
	for (int l = 0; l < last; l++) {
		c->layer[l].own = at + c->own_floats;
		c->own_floats += c->layer[l].cols * r;
	}
	at += 2 * c->own_floats;
	c->places_at = at, at += 2 * r;
	c->loss_at = at, at += 2 * r;
	c->labels_at = at, at += r;
	c->rank_at = at, at += r;
	c->opt_at = at, at += up((int64_t)(2 * (size_t)c->nlayers * sizeof(struct gt_opt_f32) / sizeof(float)), 4);
	c->logits_at = at, at += up(2 * r * c->layer[last].out, 4);
	c->part_at = at, at += WARPS * r * c->classes;
	c->column_at = at, at += 4 * columns;
	c->tile_at = at;
	/* a tile has all columns, or a multiple of TILE */
	int32_t weights = c->layer[last].in * c->classes, hidden = c->layer[last].in, left = limit - at;
	c->wide = left / ld < most ? left / ld / TILE * TILE : most;
	c->narrow = (left - weights) / ld < hidden ? (left - weights) / ld / TILE * TILE : hidden;
	if (left < weights || c->wide < 1 || c->narrow < 1)
		return at + weights + ld * (hidden < TILE ? hidden : TILE);
	c->last_at = at + up(c->narrow * ld, 4);
	int32_t wide = at + c->wide * ld, narrow = c->last_at + weights;
	if (narrow > limit) { /* by the alignment */
		c->narrow = (c->narrow - 1) / TILE * TILE;
		c->last_at = at + up(c->narrow * ld, 4);
		narrow = c->narrow < 1 ? limit + 1 : c->last_at + weights;
	}
	return wide > narrow ? wide : narrow;
}

/* ---- prepare ---------------------------------------------------------------------------------------------------------------------- */
/* Returns the reason why the call cannot be done, of those that do not depend on the card; NULL: there is none. */
static const char *why_not(const struct gt_opcall *call)
{
	const struct gt_attr_mlp_steps *a = call->attr;
	if (a->nlayers < 2 || a->nlayers > GT_MLP_LAYERS)
		return "it has kernels for 2 to 4 linear layers";
	if (a->batch < 1 || a->batch > GT_CU_MLP_ROWS)
		return "it has kernels for batches of up to 64 samples";
	if (a->layer[a->nlayers - 1].out > GT_CU_MLP_CLASSES)
		return "it has kernels for up to 16 outputs";
	if (a->optimizer != GT_OP_SGD && a->optimizer != GT_OP_ADAM)
		return "it has kernels for sgd, adam and adamw";
	if (!gt_aug_none(&a->gather) || a->gather.views > 1 || a->update.clip_norm > 0 || a->loss.nweights)
		return "it does not augment samples, clip gradients or weigh classes";
	for (int l = 0; l < a->nlayers; l++)
		if (a->layer[l].in > 1 << 14 || a->layer[l].out > 1 << 14 || (l && a->layer[l].in != a->layer[l - 1].out))
			return "it has kernels for layers of up to 16384 features";
	if (call->in[0]->dim[1] > GT_MAX_CHANNELS || call->in[0]->dim[1] * call->in[0]->dim[2] * call->in[0]->dim[3] != a->layer[0].in)
		return "the first layer must have the bytes of a sample as its inputs";
	return NULL;
}

static void fill(struct mlp *k, const struct gt_opcall *call)
{
	const struct gt_attr_mlp_steps *a = call->attr;
	const struct gt_tdesc *images = call->in[0], *index = call->in[2];
	struct gt_cu_mlp *c = &k->c;
	k->optimizer = a->optimizer;
	k->nstates = (call->in[4] != NULL) + (call->in[5] != NULL);
	c->look = (struct gt_cu_lookup){.n = a->batch, .samples = a->batch, .all = images->dim[0], .rows = index->dim[0],
	                                .length = index->dim[1]};
	c->gather = a->gather;
	c->channels = (int32_t)images->dim[1];
	c->pixels = (int32_t)(images->dim[2] * images->dim[3]);
	c->nlayers = a->nlayers;
	c->rows = (int32_t)a->batch;
	c->loss = a->loss;
	c->update = a->update;
	c->update.seg = NULL;
	for (int l = 0; l < a->nlayers; l++) {
		const struct gt_mlp_layer *y = &a->layer[l];
		c->layer[l] = (struct gt_cu_mlp_layer){.w = y->weight, .b = y->bias, .in = (int32_t)y->in, .out = (int32_t)y->out,
		                                       .seg = {y->weight_seg, y->bias_seg}};
	}
	c->classes = up(c->layer[c->nlayers - 1].out, 4);
}

/* Checks that the card has room for the model, and that all blocks can run at once. */
static enum gt_code fit(struct gt_dev *dev, const struct gt_opcall *call, struct mlp *k, struct gt_err *err)
{
	int most = 0, cooperative = 0;
	char text[160];
	GT_TRY(gt_cuda_use(dev, err));
	GT_CUDA(dev, cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, dev->index), "cudaDeviceGetAttribute", err);
	GT_CUDA(dev, cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, dev->index), "cudaDeviceGetAttribute", err);
	if (!cooperative)
		return gt_cuda_refuse(call, err, "the card has no cooperative launches");
	k->blocks = divide_layers(&k->c, dev->sms);
	k->head.scratch = divide_work(&k->c);
	most -= 2048; /* the kernel's own static shared memory, and a KiB that the driver keeps of each block's */
	int32_t used = divide_shared(&k->c, k->nstates, most / (int)sizeof(float));
	k->shared = (size_t)used * sizeof(float);
	if (k->shared > (size_t)most) {
		snprintf(text, sizeof text, "weights, optimizer state and a batch need %zu KiB of shared memory in each of %d blocks, and there "
		         "are %d KiB", k->shared / 1024, k->blocks, most / 1024);
		return gt_cuda_refuse(call, err, text);
	}
	cudaError_t e = gt_cu_mlp_check(k->optimizer, k->c.rows, k->nstates, k->blocks, dev->sms, k->shared);
	if (e == cudaErrorCooperativeLaunchTooLarge || e == cudaErrorInvalidValue)
		return gt_cuda_refuse(call, err, "the card cannot run all blocks of it at once");
	GT_CUDA(dev, e, "mlp.steps", err);
	return GT_OK;
}

enum gt_code gt_cuda_mlp(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const char *why = why_not(call);
	struct mlp *k;
	if (why)
		return gt_cuda_refuse(call, err, why);
	GT_CUDA_NEW(k, launch_mlp, NULL, err);
	fill(k, call);
	enum gt_code code = fit(dev, call, k, err);
	if (code != GT_OK) {
		free(k);
		return code;
	}
	snprintf(k->text, sizeof k->text, "%d blocks, %zu KiB of shared memory", k->blocks, (k->shared + 1023) / 1024);
	k->head.describe = k->text;
	*out = &k->head;
	return GT_OK;
}
