/* The CUDA backend: its table of functions, and the table that maps operation codes to the files that implement them. */
#include "cuda/cuda_internal.h"
#include "opsig.h"
#include <stdlib.h>
#include <string.h>

static gt_cuda_prepare *const table[GT_OP_COUNT] = {
#define GT_X(code, name, family, ...) [code] = gt_cuda_##family,
    GT_OPCODES(GT_X)
#undef GT_X
#define GT_X(NAME, ...) [GT_OP_##NAME] = gt_cuda_update,
    GT_ELEMENT_UPDATES(GT_X)
    GT_NORM_UPDATES(GT_X)
#undef GT_X
    [GT_OP_MUON] = gt_cuda_muon,
};

enum gt_code gt_cuda_none(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	(void)dev, (void)out;
	return gt_opcall_refuse(call, err, GT_CU_ABSENT);
}

/* ---- families that are whole in one .cu file ------------------------------------------------------------------------------------ */
struct family {
	struct gt_kernel head;
	const struct gt_cu_family *f;
	struct gt_opcall op;
	struct gt_binding binding;
	struct gt_cu_table table[GT_CU_TABLES];
	struct gt_tdesc desc[2 * GT_MAX_IO];
	struct gt_seg seg; /* the segment of an embedding's update; at a launch, the attributes of other updates have no segment */
	int type;
	bool reads_step_args;
	max_align_t attr[]; /* the attribute struct of op */
};

static enum gt_code launch_family(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                  struct gt_err *err)
{
	struct family *k = (struct family *)kernel;
	struct gt_cu_call c = {.op = &k->op, .type = k->type, .in = a->in, .out = a->out, .scratch = a->scratch, .binding = &k->binding,
	                       .table = k->table, .counter = kernel->counter, .fault = dev->fault};
	if (k->reads_step_args)
		GT_TRY(gt_cuda_step_args(dev, a, &c.step_args, err));
	GT_CUDA(dev, k->f->start(&c, s), gt_opcode_name(k->op.code), err);
	return GT_OK;
}

static void release_family(struct gt_dev *dev, struct gt_kernel *kernel)
{
	struct family *k = (struct family *)kernel;
	for (int i = 0; i < GT_CU_TABLES; i++)
		gt_cuda_free(dev, k->table[i].p);
	free(k);
}

/* Copies a call into k, with all that it points to, because the memory of a call belongs to the caller. */
static void copy_call(struct family *k, const struct gt_opcall *call)
{
	size_t size = gt_opcode_attr_size(call->code);
	k->op = *call;
	k->op.name = NULL;
	k->op.attr = size && call->attr ? memcpy(k->attr, call->attr, size) : NULL;
	if (call->code == GT_OP_EMBEDDING_DW_UPDATE || call->code == GT_OP_EMBEDDING_BAG_DW_UPDATE) {
		struct gt_attr_embedding_update *attr = (struct gt_attr_embedding_update *)k->attr;
		k->seg = *attr->update.seg;
		attr->update.seg = &k->seg;
	}
	for (int i = 0; i < GT_MAX_IO; i++) {
		if (i < call->nin && call->in[i])
			k->op.in[i] = memcpy(&k->desc[i], call->in[i], sizeof *k->desc);
		if (i < call->nout && call->out[i])
			k->op.out[i] = memcpy(&k->desc[GT_MAX_IO + i], call->out[i], sizeof *k->desc);
	}
}

enum gt_code gt_cuda_family(struct gt_dev *dev, const struct gt_opcall *call, const struct gt_cu_family *f, struct gt_kernel **out,
                            struct gt_err *err)
{
	const char *why = f->refuse ? f->refuse(call) : NULL;
	int64_t counters = f->counters && !why ? f->counters(call) : 0;
	enum gt_code code = GT_OK;
	struct family *k;
	if (why)
		return gt_opcall_refuse(call, err, why);
	if (!(k = calloc(1, sizeof *k + gt_opcode_attr_size(call->code))))
		return gt_fail(err, GT_EFAIL, "out of memory");
	k->head.launch = launch_family;
	k->head.release = release_family;
	k->head.describe = f->variant ? f->variant(call) : f->describe;
	k->head.scratch = f->scratch ? f->scratch(call) : 0;
	k->f = f;
	k->type = gt_cuda_type(gt_opcall_input(call)->dtype);
	k->reads_step_args = f->reads_step_args && f->reads_step_args(call);
	copy_call(k, call);
	if (f->tables)
		code = f->tables(dev, call, k->table, err);
	if (counters && code == GT_OK)
		code = gt_cuda_counters(dev, &k->head, counters, err);
	if (code == GT_OK)
		*out = &k->head;
	else
		release_family(dev, &k->head);
	return code;
}

/* ---- the backend ---------------------------------------------------------------------------------------------------------------- */
static enum gt_code cuda_prepare(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	*out = NULL;
	GT_TRY(gt_opcall_check(call, err));
	const char *why = gt_cuda_refuses(call);
	if (why)
		return gt_opcall_refuse(call, err, why);
	GT_TRY(gt_cuda_use(dev, err));
	GT_TRY(table[call->code](dev, call, out, err));
	(*out)->nin = call->nin;
	(*out)->nout = call->nout;
	return GT_OK;
}

static void cuda_release(struct gt_dev *dev, struct gt_kernel *k)
{
	if (!k)
		return;
	gt_cuda_free(dev, k->counter);
	if (k->release)
		k->release(dev, k);
	else
		free(k);
}

static size_t cuda_scratch(const struct gt_kernel *k)
{
	return k->scratch;
}

static const char *cuda_describe(const struct gt_kernel *k)
{
	return k->describe;
}

/* Called only in tests: checks that operands are device memory. Otherwise a host address would cause a fault later, in the kernel. */
static enum gt_code check_operands(struct gt_dev *dev, const struct gt_kernel *k, const struct gt_launch *a, struct gt_err *err)
{
#ifdef GT_CUDA_CHECK_OPERANDS
	for (int i = 0; i < k->nin; i++)
		if (a->in[i] && !gt_cuda_owns(dev, a->in[i], 1))
			return gt_fail(err, GT_EINTERNAL, "%s: input %d of %s is not device memory", dev->id, i, k->describe);
	for (int i = 0; i < k->nout; i++)
		if (a->out[i] && !gt_cuda_owns(dev, a->out[i], 1))
			return gt_fail(err, GT_EINTERNAL, "%s: output %d of %s is not device memory", dev->id, i, k->describe);
	if (k->scratch && !gt_cuda_owns(dev, a->scratch, k->scratch))
		return gt_fail(err, GT_EINTERNAL, "%s: the scratch of %s is not device memory of %zu bytes", dev->id, k->describe, k->scratch);
#else
	(void)dev, (void)k, (void)a, (void)err;
#endif
	return GT_OK;
}

static enum gt_code cuda_launch(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *a, struct gt_err *err)
{
	cudaStream_t s;
	GT_TRY(gt_cuda_stream(dev, a->stream, &s, err));
	GT_TRY(check_operands(dev, k, a, err));
	return k->launch(dev, k, a, s, err);
}

static enum gt_code cuda_copy_async(struct gt_dev *dev, void *dst, const void *src, size_t bytes, enum gt_copy dir, int stream,
                               struct gt_err *err)
{
	static const enum cudaMemcpyKind kinds[] = {
	    [GT_COPY_H2D] = cudaMemcpyHostToDevice,
	    [GT_COPY_D2H] = cudaMemcpyDeviceToHost,
	    [GT_COPY_D2D] = cudaMemcpyDeviceToDevice,
	};
	cudaStream_t s;
	if (dev->capturing && dir != GT_COPY_D2D)
		return gt_fail(err, GT_EINTERNAL, "%s: cannot copy to or from the host while a graph is captured", dev->id);
	GT_TRY(gt_cuda_stream(dev, stream, &s, err));
	GT_CUDA(dev, cudaMemcpyAsync(dst, src, bytes, kinds[dir], s), "cudaMemcpyAsync", err);
	return GT_OK;
}

static enum gt_code cuda_copy(struct gt_dev *dev, void *dst, const void *src, size_t bytes, enum gt_copy dir, int stream,
                              struct gt_err *err)
{
	cudaStream_t s;
	GT_TRY(gt_cuda_stream(dev, stream, &s, err));
	/* in a copy to pageable memory the runtime itself waits for the stream, without a deadline */
	if (dev->watch && !dev->capturing && dir == GT_COPY_D2H)
		GT_TRY(gt_cuda_wait(dev, s, err));
	GT_TRY(cuda_copy_async(dev, dst, src, bytes, dir, stream, err));
	/* The caller may reuse the host's memory as soon as this function returns. So it waits, because a copy may still read page-locked
	 * memory after cudaMemcpyAsync, or any host memory if the GPU accesses pageable memory itself (cudaDevAttrPageableMemoryAccess). */
	return dir == GT_COPY_D2D ? GT_OK : gt_cuda_wait(dev, s, err);
}

static enum gt_code cuda_zero(struct gt_dev *dev, void *dst, size_t bytes, int stream, struct gt_err *err)
{
	cudaStream_t s;
	GT_TRY(gt_cuda_stream(dev, stream, &s, err));
	GT_CUDA(dev, cudaMemsetAsync(dst, 0, bytes, s), "cudaMemsetAsync", err);
	return GT_OK;
}

static enum gt_code cuda_sync(struct gt_dev *dev, int stream, struct gt_err *err)
{
	cudaStream_t s;
	GT_TRY(gt_cuda_stream(dev, stream, &s, err));
	return gt_cuda_wait(dev, s, err);
}

__attribute__((visibility("default"))) extern const struct gt_backend gt_backend_cuda;
const struct gt_backend gt_backend_cuda = {
    .abi = GT_BACKEND_ABI,
    .name = "cuda",
    .probe = gt_cuda_probe,
    .open = gt_cuda_open,
    .close = gt_cuda_close,
    .alloc = gt_cuda_alloc,
    .free = gt_cuda_free,
    .copy = cuda_copy,
    .zero = cuda_zero,
    .prepare = cuda_prepare,
    .release = cuda_release,
    .scratch = cuda_scratch,
    .describe = cuda_describe,
    .launch = cuda_launch,
    .record = gt_cuda_record,
    .wait = gt_cuda_wait_event,
    .sync = cuda_sync,
    .host_alloc = gt_cuda_host_alloc,
    .host_free = gt_cuda_host_free,
    .copy_async = cuda_copy_async,
    .host_wait = gt_cuda_host_wait,
    .mark = gt_cuda_mark,
    .elapsed = gt_cuda_elapsed,
    .capture_begin = gt_cuda_capture_begin,
    .capture_end = gt_cuda_capture_end,
    .replay = gt_cuda_replay,
    .graph_free = gt_cuda_graph_free,
};
