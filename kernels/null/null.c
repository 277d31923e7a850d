/* A backend that makes plans and does not execute, for `gtrain check` and `gtrain plan` without a device, and for golden plans in tests. It
 * counts memory without allocating it; the addresses that alloc returns must not be accessed. Open layouts become plain. It has two
 * devices: null:0 accepts every operation and fuses operations as the CPU does; null:1, which --device null:cuda selects, accepts and
 * refuses the same calls as the CUDA backend (offers.h), to predict the speed of an absent GPU. */
#include "backend.h"
#include "offers.h"
#include "opsig.h"
#include "optimizer.h"
#include <stdio.h>
#include <stdlib.h>

struct gt_dev {
	uintptr_t next;
	bool cuda; /* the device represents a GPU */
};

struct gt_kernel {
	int unused;
};

static enum gt_code null_probe(struct gt_devinfo *out, int cap, int *n, struct gt_err *err)
{
	(void)err;
	*n = 2;
	for (int i = 0; i < *n && i < cap; i++) {
		out[i] = (struct gt_devinfo){0};
		snprintf(out[i].id, sizeof out[i].id, i ? "null:cuda" : "null");
		snprintf(out[i].name, sizeof out[i].name, i ? "no device, plan for a GPU" : "no device, plan only");
	}
	return GT_OK;
}

static enum gt_code null_open(const struct gt_dev_opts *opts, struct gt_dev **out, struct gt_err *err)
{
	if (!(*out = calloc(1, sizeof **out)))
		return gt_fail(err, GT_EFAIL, "out of memory");
	(*out)->next = 1 << 20;
	(*out)->cuda = opts->index == 1;
	return GT_OK;
}

static void null_close(struct gt_dev *dev)
{
	free(dev);
}

static enum gt_code null_alloc(struct gt_dev *dev, size_t bytes, void **out, struct gt_err *err)
{
	(void)err;
	*out = (void *)dev->next;
	dev->next += (bytes + 4095) & ~(size_t)4095;
	return GT_OK;
}

static void null_free(struct gt_dev *dev, void *p)
{
	(void)dev, (void)p;
}

static enum gt_code null_copy(struct gt_dev *dev, void *dst, const void *src, size_t bytes, enum gt_copy dir, int stream,
                              struct gt_err *err)
{
	(void)dev, (void)dst, (void)src, (void)bytes, (void)dir, (void)stream, (void)err;
	return GT_OK;
}

static enum gt_code null_zero(struct gt_dev *dev, void *dst, size_t bytes, int stream, struct gt_err *err)
{
	(void)dev, (void)dst, (void)bytes, (void)stream, (void)err;
	return GT_OK;
}

/* Returns the reason why the CPU backend refuses a call that affects a plan; NULL: the call is accepted. */
static const char *cpu_refuses(const struct gt_opcall *call)
{
	if (gt_opcall_padded(call))
		return "channels are not padded in this backend, as on the CPU";
	if (call->code == GT_OP_CHECK && gt_opcall_operand(call, "g"))
		return "this backend computes the sum of squares in a separate call";
	if (call->code == GT_OP_LINEAR_LOSS || call->code == GT_OP_LINEAR_BACK || (call->code == GT_OP_LINEAR && call->nout > 1))
		return "the update is separate from the product in this backend, as on the CPU";
	if (call->code == GT_OP_LINEAR && ((const struct gt_attr_linear *)call->attr)->act > GT_ACT_RELU)
		return "only relu may follow in the same call in this backend, as on the CPU";
	if (call->code == GT_OP_CONV2D_PAIR)
		return "it depends on the processor whether the CPU backend has this kernel, so a plan without a device does not use it";
	const char *fused = gt_update_refuses_fused(call);
	if (fused)
		return fused;
	bool back = call->code == GT_OP_BATCHNORM_DX, sums = call->code == GT_OP_BATCHNORM_SUMS;
	bool norm = back || sums || call->code == GT_OP_BATCHNORM || call->code == GT_OP_BATCHNORM_Y;
	if (norm && (((const struct gt_attr_norm *)call->attr)->act > GT_ACT_RELU || ((back || sums) && gt_opcall_operand(call, "more"))))
		return "a gelu and the sum of two gradients must be separate calls in this backend, as on the CPU";
	bool pool = call->code == GT_OP_MAXPOOL2D || call->code == GT_OP_MAXPOOL2D_DX || call->code == GT_OP_ADAPTIVE_MAXPOOL2D;
	const struct gt_tdesc *idx = pool ? gt_opcall_operand(call, "idx") : NULL;
	if (pool && (!idx || idx->dtype != GT_I32))
		return "the output of indices is required and must be i32 in this backend, as on the CPU";
	return NULL;
}

static enum gt_code null_prepare(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	GT_TRY(gt_opcall_check(call, err));
	const char *why = dev->cuda ? gt_cuda_refuses(call) : cpu_refuses(call);
	if (why)
		return gt_fail(err, GT_EUNAVAILABLE, "%s: %s", gt_opcode_name(call->code), why);
	for (int i = 0; i < call->nin; i++)
		if (call->in[i])
			call->in[i]->any = false;
	for (int i = 0; i < call->nout; i++)
		if (call->out[i])
			call->out[i]->any = false;
	*out = calloc(1, sizeof **out);
	return *out ? GT_OK : gt_fail(err, GT_EFAIL, "out of memory");
}

static void null_release(struct gt_dev *dev, struct gt_kernel *k)
{
	(void)dev;
	free(k);
}

static size_t null_scratch(const struct gt_kernel *k)
{
	(void)k;
	return 0;
}

static const char *null_describe(const struct gt_kernel *k)
{
	(void)k;
	return "null";
}

static enum gt_code null_launch(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *args, struct gt_err *err)
{
	(void)dev, (void)k, (void)args;
	return gt_fail(err, GT_EUNAVAILABLE, "the null backend only makes plans: it cannot run them");
}

static enum gt_code null_event(struct gt_dev *dev, int event, int stream, struct gt_err *err)
{
	(void)dev, (void)event, (void)stream, (void)err;
	return GT_OK;
}

static enum gt_code null_sync(struct gt_dev *dev, int stream, struct gt_err *err)
{
	(void)dev, (void)stream, (void)err;
	return GT_OK;
}

extern const struct gt_backend gt_backend_null;
__attribute__((visibility("default"))) const struct gt_backend gt_backend_null = {
	.abi = GT_BACKEND_ABI,
	.name = "null",
	.probe = null_probe,
	.open = null_open,
	.close = null_close,
	.alloc = null_alloc,
	.free = null_free,
	.copy = null_copy,
	.zero = null_zero,
	.prepare = null_prepare,
	.release = null_release,
	.scratch = null_scratch,
	.describe = null_describe,
	.launch = null_launch,
	.record = null_event,
	.wait = null_event,
	.sync = null_sync,
};
