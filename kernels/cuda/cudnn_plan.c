/* The parts of an operation graph, the variant pack with its pointers, and the execution of a plan. */
#include "cuda/cudnn_plan.h"
#include <stdio.h>
#include <string.h>

#define ALIGNMENT 16 /* alignment of operands in bytes, on which engines may rely to load vectors; every run checks it */

/* The ids of the tensors of a graph: pointers from 0 on, then constants, then tensors in registers. */
enum { NUMBERS = GT_DNN_TENSORS, REGISTERS = NUMBERS + GT_DNN_NUMBERS };

/* ---- the graph ----------------------------------------------------------------------------------------------------------------- */
cudnnDataType_t gt_dnn_type(enum gt_dtype t)
{
	return t == GT_BF16 ? CUDNN_DATA_BFLOAT16 : t == GT_F16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

static cudnnBackendDescriptor_t make_tensor(struct gt_dnn_set *s, int64_t uid, cudnnDataType_t type, const int64_t dim[4],
                                            const int64_t stride[4])
{
	int64_t align = ALIGNMENT;
	bool yes = true;
	cudnnBackendDescriptor_t d = gt_dnn_new(s, CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor");
	gt_dnn_put(s, d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
	gt_dnn_put(s, d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim);
	gt_dnn_put(s, d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride);
	gt_dnn_put(s, d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &uid);
	gt_dnn_put(s, d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align);
	if (uid >= REGISTERS)
		gt_dnn_put(s, d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
	else if (uid >= NUMBERS)
		gt_dnn_put(s, d, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
	gt_dnn_finalize(s, d, "tensor");
	return d;
}

cudnnBackendDescriptor_t gt_dnn_tensor(struct gt_dnn_plan *p, int64_t uid, cudnnDataType_t type, const int64_t dim[4],
                                       const int64_t stride[4])
{
	p->used |= 1u << uid;
	return make_tensor(&p->set, uid, type, dim, stride);
}

cudnnBackendDescriptor_t gt_dnn_register(struct gt_dnn_plan *p, cudnnDataType_t type, const int64_t dim[4], const int64_t stride[4])
{
	return make_tensor(&p->set, REGISTERS + p->registers++, type, dim, stride);
}

cudnnBackendDescriptor_t gt_dnn_number(struct gt_dnn_plan *p, float value)
{
	static const int64_t one[4] = {1, 1, 1, 1};
	p->number[p->numbers] = value;
	return make_tensor(&p->set, NUMBERS + p->numbers++, CUDNN_DATA_FLOAT, one, one);
}

cudnnBackendDescriptor_t gt_dnn_pointwise(struct gt_dnn_plan *p, const struct gt_dnn_pointwise *o)
{
	struct gt_dnn_set *s = &p->set;
	cudnnNanPropagation_t nan = CUDNN_PROPAGATE_NAN; /* relu keeps a NaN, as in PyTorch; without this, cuDNN turns it into 0 */
	cudnnBackendDescriptor_t d = gt_dnn_new(s, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise"), op;
	gt_dnn_put(s, d, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &o->mode);
	gt_dnn_put(s, d, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &o->math);
	gt_dnn_put(s, d, CUDNN_ATTR_POINTWISE_NAN_PROPAGATION, CUDNN_TYPE_NAN_PROPOGATION, 1, &nan);
	if (o->mode == CUDNN_POINTWISE_GEN_INDEX)
		gt_dnn_put(s, d, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &o->axis);
	gt_dnn_finalize(s, d, "pointwise");
	op = gt_dnn_new(s, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise");
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, d);
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, o->x);
	if (o->b)
		gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, o->b);
	if (o->t)
		gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, o->t);
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, o->y);
	gt_dnn_finalize(s, op, "pointwise");
	return op;
}

void gt_dnn_finish_graph(struct gt_dnn_plan *p, const cudnnBackendDescriptor_t *ops, int n)
{
	struct gt_dnn_set *s = &p->set;
	p->graph = gt_dnn_new(s, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph");
	gt_dnn_put(s, p->graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, n, ops);
	if (s->dnn->handle)
		gt_dnn_put(s, p->graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &s->dnn->handle);
	gt_dnn_finalize(s, p->graph, "operation graph");
}

const char *gt_dnn_options(const struct gt_dev *dev, enum gt_dtype type, bool timed, char buf[32])
{
	bool f32 = type == GT_F32;
	snprintf(buf, 32, " %s%s%s",
	         dev->deterministic       ? "repeatable"
	         : dev->autotune && timed ? "timed"
	                                  : "first",
	         f32 && dev->tf32 ? " tf32" : "", f32 && dev->winograd ? " winograd" : "");
	return buf;
}

/* ---- execution ---------------------------------------------------------------------------------------------------------------------- */
static enum gt_code make_pack(struct gt_dev *dev, struct gt_dnn_plan *p, struct gt_dnn_pack *pack, void *const at[GT_DNN_TENSORS],
                              void *workspace, struct gt_err *err)
{
	struct gt_dnn_set *s = &pack->set;
	int64_t uids[GT_DNN_TENSORS + GT_DNN_NUMBERS], n = 0;
	void *pointers[GT_DNN_TENSORS + GT_DNN_NUMBERS];
	uintptr_t all = 0;
	for (int i = 0; i < GT_DNN_TENSORS; i++)
		if (p->used & 1u << i) {
			uids[n] = i, pointers[n++] = at[i];
			all |= (uintptr_t)at[i];
		}
	for (int i = 0; i < p->numbers; i++)
		uids[n] = NUMBERS + i, pointers[n++] = &p->number[i];
	if (all % ALIGNMENT || (p->workspace && (uintptr_t)workspace % 256))
		return gt_fail(err, GT_EINTERNAL,
		               "%s: an operand of cuDNN is not aligned to %d bytes, or its scratch memory is not aligned to 256 "
		               "bytes",
		               dev->id, ALIGNMENT);
	gt_dnn_drop(s, 0);
	s->dnn = dev->dnn;
	pack->pack = gt_dnn_new(s, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
	gt_dnn_put(s, pack->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, uids);
	gt_dnn_put(s, pack->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, pointers);
	gt_dnn_put(s, pack->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
	gt_dnn_finalize(s, pack->pack, "variant pack");
	memset(pack->at, 0, sizeof pack->at);
	if (s->status != CUDNN_STATUS_SUCCESS)
		return gt_dnn_fail(dev, s->status, "variant pack", err);
	memcpy(pack->at, at, sizeof pack->at);
	pack->workspace_at = workspace;
	return GT_OK;
}

enum gt_code gt_dnn_plan_run(struct gt_dev *dev, struct gt_dnn_plan *p, struct gt_dnn_pack *pack, void *const at[GT_DNN_TENSORS],
                             void *workspace, cudaStream_t s, struct gt_err *err)
{
	struct gt_dnn *dnn = dev->dnn;
	cudnnStatus_t status;
	if (!p->workspace)
		workspace = NULL;
	if (!pack->pack || memcmp(pack->at, at, sizeof pack->at) || pack->workspace_at != workspace)
		GT_TRY(make_pack(dev, p, pack, at, workspace, err));
	if (dnn->stream != s) {
		if ((status = dnn->cudnnSetStream(dnn->handle, s)) != CUDNN_STATUS_SUCCESS)
			return gt_dnn_fail(dev, status, "cudnnSetStream", err);
		dnn->stream = s;
	}
	status = dnn->cudnnBackendExecute(dnn->handle, p->plan, pack->pack);
	return status == CUDNN_STATUS_SUCCESS ? GT_OK : gt_dnn_fail(dev, status, "cudnnBackendExecute", err);
}

void gt_dnn_pack_drop(struct gt_dnn_pack *pack)
{
	if (pack->set.dnn)
		gt_dnn_drop(&pack->set, 0);
	memset(pack, 0, sizeof *pack);
}

void gt_dnn_plan_drop(struct gt_dnn_plan *p)
{
	if (p->set.dnn)
		gt_dnn_drop(&p->set, 0);
	memset(p, 0, sizeof *p);
}
