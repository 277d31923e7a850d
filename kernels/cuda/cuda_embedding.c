/* embedding, embedding_bag, the gradients of their tables, and the updates of the rows that a batch names. */
#include "cuda/cuda_internal.h"
#include <stdlib.h>

struct embedding {
	struct gt_kernel head;
	struct gt_cu_embedding a; /* what does not depend on the launch */
	int type;
	bool bags;
	int tokens, table, lengths, idx, scalars; /* indices of inputs; -1: absent */
};

static bool is_bag(int code)
{
	return code == GT_OP_EMBEDDING_BAG || code == GT_OP_EMBEDDING_BAG_DW || code == GT_OP_EMBEDDING_BAG_DW_UPDATE;
}

static bool is_update(int code)
{
	return code == GT_OP_EMBEDDING_DW_UPDATE || code == GT_OP_EMBEDDING_BAG_DW_UPDATE;
}

static bool is_forward(int code)
{
	return code == GT_OP_EMBEDDING || code == GT_OP_EMBEDDING_BAG;
}

/* ---- launching --------------------------------------------------------------------------------------------------------------- */
static int64_t chunks_of(const struct gt_cu_embedding *a)
{
	return (a->entries + GT_CU_ROW_CHUNK - 1) / GT_CU_ROW_CHUNK;
}

static size_t scratch_of(const struct gt_cu_embedding *a)
{
	return (size_t)a->entries * 2 * sizeof *a->tile + (size_t)(chunks_of(a) * 2 * a->cols + a->entries / a->bag) * sizeof *a->part;
}

static enum gt_code launch_forward(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *in, cudaStream_t s,
                                   struct gt_err *err)
{
	const struct embedding *k = (const struct embedding *)kernel;
	struct gt_cu_embedding a = k->a;
	a.tokens = in->in[k->tokens];
	a.lengths = k->lengths < 0 ? NULL : in->in[k->lengths];
	a.w = in->in[k->table];
	a.y = in->out[0];
	a.idx = k->idx < 0 ? NULL : in->out[1];
	a.fault = dev->fault;
	GT_CUDA(dev, gt_cu_embedding_start(k->type, k->bags, &a, s), "embedding", err);
	return GT_OK;
}

static enum gt_code launch_gradient(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *in, cudaStream_t s,
                                    struct gt_err *err)
{
	const struct embedding *k = (const struct embedding *)kernel;
	struct gt_cu_embedding a = k->a;
	a.dy = in->in[0];
	a.tokens = in->in[k->tokens];
	a.lengths = k->lengths < 0 ? NULL : in->in[k->lengths];
	a.idx = k->idx < 0 ? NULL : in->in[k->idx];
	a.scalars = k->scalars < 0 ? NULL : in->in[k->scalars];
	a.dw = a.update ? in->in[k->table] : in->out[0];
	a.tile = in->scratch;
	a.sorted = a.tile + a.entries;
	a.part = (float *)(void *)(a.sorted + a.entries);
	a.share = a.part + chunks_of(&a) * 2 * a.cols;
	if (a.update)
		GT_TRY(gt_cuda_step_args(dev, in, &a.step_args, err));
	GT_CUDA(dev, gt_cu_embedding_start(k->type, k->bags, &a, s), "embedding.dw", err);
	return GT_OK;
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------- */
static int input(const struct gt_opcall *call, int i) /* i, or -1 if the input is absent */
{
	return i < call->nin && call->in[i] ? i : -1;
}

/* Finds the operands that the operations have at different places. */
static void find_operands(struct embedding *k, const struct gt_opcall *call)
{
	bool update = is_update(call->code), forward = is_forward(call->code);
	int first = forward ? 1 : 2 + update; /* operand lengths of bags */
	k->tokens = forward ? 0 : 1;
	k->table = forward ? 1 + k->bags : 2;
	k->lengths = k->bags ? input(call, first) : -1;
	k->idx = !k->bags || k->a.mode != GT_BAG_MAX ? -1 : !forward ? input(call, first + 1) : call->nout > 1 && call->out[1] ? 1 : -1;
	k->scalars = update ? input(call, k->bags ? 5 : 3) : -1;
}

/* Fills in k; returns the reason why the call is refused, or NULL. */
static const char *describe(struct embedding *k, const struct gt_opcall *call)
{
	bool update = is_update(call->code), forward = is_forward(call->code);
	const struct gt_attr_embedding_update *up = call->attr;
	const struct gt_attr_embedding *at = update ? &up->table : call->attr;
	const struct gt_tdesc *rows = forward ? call->out[0] : call->in[0]; /* y or dy */
	k->bags = is_bag(call->code);
	k->a.mode = k->bags ? at->mode : GT_BAG_SUM;
	find_operands(k, call);
	const struct gt_tdesc *tokens = call->in[k->tokens], *table = forward || update ? call->in[k->table] : call->out[0];
	int64_t width = tokens->dim[tokens->rank - 1];
	struct gt_cu_embedding *a = &k->a;
	if (rows->dtype == GT_F64)
		return "f64 is not supported by the cuda backend (the cpu backend has it)";
	if (at->column >= 0 && (k->bags || at->column >= width))
		return "the tokens have no such column";
	k->type = gt_cuda_type(rows->dtype);
	a->step = at->column >= 0 ? width : 1;
	a->first = at->column >= 0 ? at->column : 0;
	a->entries = gt_tdesc_count(tokens) / a->step;
	a->bag = k->bags ? width : 1;
	a->rows = a->end = table->dim[0];
	a->cols = table->dim[1];
	a->padding = at->padding;
	a->zero = !forward && !update && !(call->accumulate & 1);
	if (rows->dim[0] * a->bag != a->entries)
		return "there is not one row for each token, or for each bag";
	if (a->rows >= INT32_MAX || a->entries >= INT32_MAX / 2)
		return "there are too many rows, or tokens in a batch";
	if (!forward && a->mode == GT_BAG_MAX && k->idx < 0)
		return "the gradient of the maximum needs idx";
	if (!update)
		return NULL;
	if (up->parts) {
		a->begin = a->rows * up->part / up->parts;
		a->end = a->rows * (up->part + 1) / up->parts;
	}
	a->update = true;
	a->attr = up->update;
	a->seg = up->update.seg[0];
	a->attr.seg = NULL; /* the segments belong to the caller, so the kernel keeps no pointer to them */
	return NULL;
}

enum gt_code gt_cuda_embedding(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	struct embedding *k;
	(void)dev;
	GT_CUDA_NEW(k, is_forward(call->code) ? launch_forward : launch_gradient, "rows", err);
	const char *why = describe(k, call);
	if (why) {
		free(k);
		return gt_cuda_refuse(call, err, why);
	}
	k->head.scratch = is_forward(call->code) ? 0 : scratch_of(&k->a);
	*out = &k->head;
	return GT_OK;
}
