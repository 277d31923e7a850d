/* mlp.steps: a multilayer perceptron whose weights stay in the shared memory of the GPU over a window of training (mlp_kernel.cuh).
 * mlp_division.h divides it among the blocks. */
#include "cuda/cuda_internal.h"
#include <stdio.h>
#include <stdlib.h>

struct mlp {
	struct gt_kernel head;
	struct gt_cu_mlp c; /* arguments of the kernel; the launch fills in the pointers */
	bool average; /* the call has the operand ema */
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
	for (int i = 0; i < k->c.d.nstates; i++)
		c.state[i] = a->in[4 + i];
	c.scalars = a->in[6];
	c.scaler = a->in[7];
	c.average = k->average ? a->in[8] : NULL;
	c.work = a->scratch;
	GT_CUDA(dev, gt_cu_mlp_start(&c, s), "mlp.steps", err);
	return GT_OK;
}

/* ---- prepare ---------------------------------------------------------------------------------------------------------------------- */
static void fill(struct mlp *k, const struct gt_opcall *call)
{
	const struct gt_attr_mlp_steps *a = call->attr;
	const struct gt_tdesc *images = call->in[0], *index = call->in[2];
	struct gt_cu_mlp *c = &k->c;
	c->look = (struct gt_cu_lookup){.n = a->batch, .samples = a->batch, .all = images->dim[0], .rows = index->dim[0],
	                                .length = index->dim[1]};
	c->gather = a->gather;
	c->channels = (int32_t)images->dim[1];
	c->pixels = (int32_t)(images->dim[2] * images->dim[3]);
	c->loss_code = a->loss_code;
	c->loss = a->loss;
	c->loss.weights = NULL;
	for (int i = 0; i < a->loss.nweights; i++)
		c->class_weight[i] = (float)a->loss.weights[i];
	c->update_code = a->optimizer;
	c->update = a->update;
	c->update.seg = NULL;
	c->update.clip_norm = 0;
	c->clip_norm = a->update.clip_norm;
	c->ema.alpha = a->ema_decay;
	c->ema.nesterov = a->ema_warmup;
	k->average = call->nin > 8 && call->in[8];
	for (int l = 0; l < a->nlayers; l++) {
		const struct gt_mlp_layer *y = &a->layer[l];
		c->param[l] = (struct gt_cu_mlp_params){.w = y->weight, .b = y->bias, .seg = {y->weight_seg, y->bias_seg}, .act = y->act};
	}
}

/* Checks that the card has room for the model, and that all blocks can run at once. */
static enum gt_code fit(struct gt_dev *dev, const struct gt_opcall *call, struct mlp *k, struct gt_err *err)
{
	struct gt_mlp_division *d = &k->c.d;
	int most = 0, cooperative = 0;
	char text[160];
	GT_TRY(gt_cuda_use(dev, err));
	GT_CUDA(dev, cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, dev->index), "cudaDeviceGetAttribute", err);
	GT_CUDA(dev, cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, dev->index), "cudaDeviceGetAttribute", err);
	if (!cooperative)
		return gt_cuda_refuse(call, err, "the card has no cooperative launches");
	const struct gt_mlp_card card = {.sms = dev->sms, .shared = most};
	if (!gt_mlp_divide(call, &card, d, text, sizeof text))
		return gt_cuda_refuse(call, err, text);
	k->head.scratch = d->work;
	cudaError_t e = gt_cu_mlp_check(d, &card);
	if (e == cudaErrorCooperativeLaunchTooLarge || e == cudaErrorInvalidValue)
		return gt_cuda_refuse(call, err, "the card cannot run all blocks of it at once");
	GT_CUDA(dev, e, "mlp.steps", err);
	return GT_OK;
}

enum gt_code gt_cuda_mlp(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	struct mlp *k;
	GT_CUDA_NEW(k, launch_mlp, NULL, err);
	fill(k, call);
	enum gt_code code = fit(dev, call, k, err);
	if (code != GT_OK) {
		free(k);
		return code;
	}
	snprintf(k->text, sizeof k->text, "%d blocks, %zu KiB of shared memory", k->c.d.blocks, (k->c.d.shared + 1023) / 1024);
	k->head.describe = k->text;
	*out = &k->head;
	return GT_OK;
}
