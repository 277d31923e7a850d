/* sumsq, bound, and the optimizer updates of the flat parameter arena but muon. The segments are divided into chunks once, and the list
 * of chunks stays in device memory. */
#include "cuda/cuda_internal.h"
#include "optimizer.h"
#include <stdlib.h>

struct update {
	struct gt_kernel head;
	enum gt_opcode code;
	struct gt_attr_update attr;
	int nstate, scalars, work; /* nstate: number of states, which are inputs 2, 3, …; scalars, work: indices of these inputs, -1: absent */
	void *seg, *chunk;         /* lists in device memory: segments, and chunks of them */
	void *first;               /* in device memory: gt_cu_update.first; NULL: the update is element-wise */
	int nchunks;
};

static enum gt_code launch_update(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                  struct gt_err *err)
{
	const struct update *k = (const struct update *)kernel;
	struct gt_cu_update c = {
	    .p = a->in[0],
	    .g = a->in[1],
	    .work = k->work >= 0 ? a->in[k->work] : NULL,
	    .scalars = k->scalars >= 0 ? a->in[k->scalars] : NULL,
	    .seg = k->seg,
	    .chunk = k->chunk,
	    .nchunks = k->nchunks,
	    .attr = k->attr,
	};
	if (k->first) {
		c.first = k->first;
		c.part = a->scratch;
		c.ratio = (float *)(c.part + 2 * (size_t)k->nchunks);
	}
	for (int i = 0; i < k->nstate; i++)
		c.state[i] = a->in[2 + i];
	GT_TRY(gt_cuda_step_args(dev, a, &c.step_args, err));
	GT_CUDA(dev, gt_cu_update_start(k->code, &c, s), gt_opcode_name(k->code), err);
	return GT_OK;
}

static void release_update(struct gt_dev *dev, struct gt_kernel *kernel)
{
	struct update *k = (struct update *)kernel;
	gt_cuda_free(dev, k->seg);
	gt_cuda_free(dev, k->chunk);
	gt_cuda_free(dev, k->first);
	free(k);
}

/* Uploads the index of the first chunk of each segment, and makes room for the sums. */
static enum gt_code make_norms(struct gt_dev *dev, struct update *k, struct gt_err *err)
{
	size_t bytes = ((size_t)k->attr.nseg + 1) * sizeof(int32_t);
	int32_t *first = calloc((size_t)k->attr.nseg + 1, sizeof *first);
	if (!first)
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", bytes);
	for (int i = 0; i < k->attr.nseg; i++)
		first[i + 1] = first[i] + (int32_t)((k->attr.seg[i].end - k->attr.seg[i].begin + GT_CU_CHUNK - 1) / GT_CU_CHUNK);
	enum gt_code code = gt_cuda_upload(dev, first, bytes, &k->first, err);
	free(first);
	k->head.scratch = (size_t)k->nchunks * 2 * sizeof(double) + (size_t)k->attr.nseg * sizeof(float);
	return code;
}

static enum gt_code make_chunks(struct gt_dev *dev, struct update *k, struct gt_err *err)
{
	const struct gt_seg *seg = k->attr.seg;
	int64_t n = 0;
	for (int i = 0; i < k->attr.nseg; i++)
		n += (seg[i].end - seg[i].begin + GT_CU_CHUNK - 1) / GT_CU_CHUNK;
	if (n > INT32_MAX)
		return gt_fail(err, GT_EUNAVAILABLE, "%s: more than 2^31 chunks of parameters", dev->id);
	struct gt_cu_chunk *chunk = calloc((size_t)n + 1, sizeof *chunk);
	if (!chunk)
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", (size_t)n * sizeof *chunk);
	for (int i = 0; i < k->attr.nseg; i++)
		for (int64_t at = seg[i].begin; at < seg[i].end; at += GT_CU_CHUNK) {
			int64_t left = seg[i].end - at;
			chunk[k->nchunks++] = (struct gt_cu_chunk){at, (int32_t)(left < GT_CU_CHUNK ? left : GT_CU_CHUNK), i};
		}
	enum gt_code code = gt_cuda_upload(dev, chunk, (size_t)(n ? n : 1) * sizeof *chunk, &k->chunk, err);
	free(chunk);
	return code;
}

static enum gt_code prepare_update(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_update *attr = call->attr;
	struct gt_update_inputs inputs;
	const char *why = gt_update_check(call, &inputs);
	const struct gt_tdesc *work = !why && inputs.work >= 0 ? call->in[inputs.work] : NULL;
	struct update *k;
	enum gt_code code;
	if (why)
		return gt_cuda_refuse(call, err, why);
	if (work && ((work->dtype != GT_BF16 && work->dtype != GT_F16) || work->dtype != attr->work_dtype))
		return gt_cuda_refuse(call, err, "the work copy must be bf16 or f16, as its attribute says");
	GT_CUDA_NEW(k, launch_update, gt_opcode_name(call->code), err);
	k->head.release = release_update;
	k->code = call->code;
	k->attr = *attr;
	k->nstate = inputs.nslots < call->nin - 2 ? inputs.nslots : call->nin - 2;
	k->scalars = inputs.scalars;
	k->work = inputs.work;
	code = attr->nseg ? gt_cuda_upload(dev, attr->seg, (size_t)attr->nseg * sizeof *attr->seg, &k->seg, err) : GT_OK;
	if (code == GT_OK)
		code = make_chunks(dev, k, err);
	if (code == GT_OK && gt_update_row(call->code)->whole)
		code = make_norms(dev, k, err);
	k->attr.seg = NULL; /* the segments belong to the caller, so the kernel keeps no pointer to them */
	if (code != GT_OK) {
		release_update(dev, &k->head);
		return code;
	}
	*out = &k->head;
	return GT_OK;
}

/* ---- sumsq ------------------------------------------------------------------------------------------------------------------- */
struct sumsq {
	struct gt_kernel head;
	int64_t n;
	bool add;
};

static enum gt_code launch_sumsq(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                 struct gt_err *err)
{
	const struct sumsq *k = (const struct sumsq *)kernel;
	GT_CUDA(dev, gt_cu_sumsq_start(a->in[0], k->n, a->scratch, a->out[0], k->add, kernel->counter, s), "sumsq", err);
	return GT_OK;
}

static enum gt_code prepare_sumsq(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *x = call->in[0];
	struct sumsq *k;
	enum gt_code code;
	GT_CUDA_NEW(k, launch_sumsq, "sumsq", err);
	k->add = call->accumulate & 1;
	k->n = gt_tdesc_padded(x);
	k->head.scratch = (size_t)(k->n / GT_CU_CHUNK + 1) * sizeof(double);
	code = gt_cuda_counters(dev, &k->head, 1, err);
	if (code == GT_OK)
		*out = &k->head;
	else
		free(k);
	return code;
}

/* ---- bound ------------------------------------------------------------------------------------------------------------------- */
struct bound {
	struct gt_kernel head;
	int64_t ndy, nx;
	double rows; /* times the factor */
	int type;
};

static enum gt_code launch_bound(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *in, cudaStream_t s,
                                 struct gt_err *err)
{
	const struct bound *k = (const struct bound *)kernel;
	struct gt_cu_bound a = {.dy = in->in[0], .x = in->in[1], .ndy = k->ndy, .nx = k->nx, .rows = k->rows, .part = in->scratch,
	                        .out = in->out[0], .counter = kernel->counter};
	GT_CUDA(dev, gt_cu_bound_start(k->type, &a, s), "bound", err);
	return GT_OK;
}

static enum gt_code prepare_bound(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *dy = call->in[0], *x = call->in[1];
	struct bound *k;
	if (dy->dtype != x->dtype || gt_cuda_type(dy->dtype) < 0)
		return gt_cuda_refuse(call, err, "it takes two operands of one type of activations");
	GT_CUDA_NEW(k, launch_bound, "bound", err);
	k->ndy = gt_tdesc_padded(dy);
	k->nx = gt_tdesc_padded(x);
	k->rows = (double)dy->dim[0] * ((const struct gt_attr_scale *)call->attr)->factor;
	k->type = gt_cuda_type(dy->dtype);
	k->head.scratch = 2 * GT_CU_BOUND_PARTS * sizeof(uint32_t);
	enum gt_code code = gt_cuda_counters(dev, &k->head, 1, err);
	if (code == GT_OK)
		*out = &k->head;
	else
		free(k);
	return code;
}

enum gt_code gt_cuda_update(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	return call->code == GT_OP_SUMSQ   ? prepare_sumsq(dev, call, out, err)
	       : call->code == GT_OP_BOUND ? prepare_bound(dev, call, out, err)
	                                   : prepare_update(dev, call, out, err);
}
