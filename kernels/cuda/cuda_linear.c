/* Linear layers by cuBLASLt. A row-major x [N, in] is a column-major X of in x N, so that
 *   y  = x w'  + b   is  Y[out, N]  = W' X      W is stored as [in, out] and transposed; the bias runs along the rows of Y
 *   dx = dy w        is  dX[in, N]  = W dY
 *   dw = dy' x       is  dW[in, out] = X dY'    db is the sum of dY over N, the product's k: epilogue BGRADB
 * cuBLASLt's table of types pairs 16-bit outputs with a 16-bit bias, so a kernel first rounds the bias into the scratch memory, as
 * PyTorch's autocast does. If the library has no algorithm with an epilogue (cublaslt.h), own kernels replace the epilogue: fill_rows
 * before the product, relu after it, and colsum for db. */
#include "cuda/cublaslt.h"
#include <stdlib.h>
#include <string.h>

struct linear {
	struct gt_kernel head;
	struct gt_lt_gemm gemm;
	struct gt_binding binding;
	enum gt_opcode code;
	int type;
	int64_t n, in, out;
	bool bias;
	bool own_act;        /* kernels before and after the forward product apply bias and relu instead of its epilogue */
	bool own_db, add_db; /* own_db: colsum computes db, because the product cannot; add_db: db is added to the existing values */
	bool no_dw, relu;
	bool mask; /* dx: a kernel after the product applies the gradient of the preceding relu, using the relu's output */
	bool bits; /* the forward product writes a mask of bits, and the epilogue of the dx product reads it */
	size_t bias16, colsum; /* offsets in the scratch memory in bytes. bias16: of the rounded bias; colsum: of the partial sums of colsum */
	char text[48];
};

/* The addresses of the operands (opcall.h). */
struct operands {
	void *x, *dy, *w, *b, *y, *mask, *dx, *dw, *db;
};

static const struct gt_operand_slot slots[] = {GT_SLOTS(operands, x, dy, w, b, y, mask, dx, dw, db)};

static struct operands bind_operands(const struct linear *k, const struct gt_launch *a)
{
	struct operands o = {0};
	gt_binding_apply(&k->binding, &o, a->in, a->out);
	return o;
}

static enum gt_code launch_fwd(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct linear *k = (const struct linear *)kernel;
	const struct operands o = bind_operands(k, a);
	const void *bias = o.b;
	if (bias && k->type != GT_CU_F32) {
		void *rounded = (char *)a->scratch + k->bias16;
		GT_CUDA(dev, gt_cu_cast_start(GT_CU_F32, k->type, bias, rounded, k->out, s), "linear: bias", err);
		bias = rounded;
	}
	return gt_lt_run(dev, &k->gemm, o.w, o.x, o.y, o.y, bias, o.mask, a->scratch, s, err);
}

/* Launches the forward pass without an epilogue: y = bias, y += x w', y = relu(y). */
static enum gt_code launch_plain(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s,
                                 struct gt_err *err)
{
	const struct linear *k = (const struct linear *)kernel;
	const struct operands o = bind_operands(k, a);
	if (o.b)
		GT_CUDA(dev, gt_cu_fill_rows_start(k->type, o.b, o.y, k->n, k->out, s), "linear: bias", err);
	GT_TRY(gt_lt_run(dev, &k->gemm, o.w, o.x, o.y, o.y, NULL, NULL, a->scratch, s, err));
	if (!k->relu)
		return GT_OK;
	struct gt_cu_eltwise c = {{o.y}, o.y, k->n * k->out, 1, {0}, true}; /* gt_lt_run has checked the alignment of y already */
	GT_CUDA(dev, gt_cu_eltwise_start(GT_OP_RELU, false, k->type, &c, s), "linear: relu", err);
	return GT_OK;
}

static enum gt_code launch_dx(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct linear *k = (const struct linear *)kernel;
	const struct operands o = bind_operands(k, a);
	GT_TRY(gt_lt_run(dev, &k->gemm, o.w, o.dy, o.dx, o.dx, NULL, k->bits ? o.y : NULL, a->scratch, s, err));
	if (!k->mask)
		return GT_OK;
	struct gt_cu_eltwise c = {{o.dx, o.y}, o.dx, k->n * k->in, 2, {0}, (uintptr_t)o.y % 16 == 0};
	GT_CUDA(dev, gt_cu_eltwise_start(GT_OP_RELU_DX, false, k->type, &c, s), "linear.dx: mask", err);
	return GT_OK;
}

static enum gt_code launch_dw(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, cudaStream_t s, struct gt_err *err)
{
	const struct linear *k = (const struct linear *)kernel;
	const struct operands o = bind_operands(k, a);
	if (o.dw)
		GT_TRY(gt_lt_run(dev, &k->gemm, o.x, o.dy, o.dw, o.dw, k->own_db ? NULL : o.db, NULL, a->scratch, s, err));
	if (o.db && k->own_db)
		GT_CUDA(dev, gt_cu_colsum_start(k->type, o.dy, o.db, k->n, k->out, k->add_db, (char *)a->scratch + k->colsum, s),
		        "linear.dw: bias", err);
	return GT_OK;
}

static void release_linear(struct gt_dev *dev, struct gt_kernel *kernel)
{
	gt_lt_drop(dev, &((struct linear *)kernel)->gemm);
	free(kernel);
}

static struct gt_lt_spec spec_of(const struct linear *k, const struct gt_opcall *call)
{
	enum gt_dtype t = gt_opcall_input(call)->dtype;
	struct gt_lt_spec s = {.batch = 1, .alpha = 1, .in = t, .out = t, .bias = t, .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
	if (k->code == GT_OP_LINEAR) {
		static const cublasLtEpilogue_t epilogue[3][2] = {{CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS},
		                                                  {CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_RELU_BIAS},
		                                                  {CUBLASLT_EPILOGUE_RELU_AUX, CUBLASLT_EPILOGUE_RELU_AUX_BIAS}};
		s.m = k->out, s.n = k->n, s.k = k->in, s.ta = true;
		if (k->own_act)
			s.beta = k->bias ? 1 : 0;
		else
			s.epilogue = epilogue[k->bits ? 2 : k->relu][k->bias];
	} else if (k->code == GT_OP_LINEAR_DX) {
		s.m = k->in, s.n = k->n, s.k = k->out;
		s.epilogue = k->bits ? CUBLASLT_EPILOGUE_DRELU : CUBLASLT_EPILOGUE_DEFAULT;
	} else {
		s.m = k->in, s.n = k->out, s.k = k->n, s.tb = true;
		s.out = s.bias = GT_F32;
		s.beta = gt_opcall_adds(call, "dw") ? 1 : 0;
		s.epilogue = k->bias && !k->own_db ? CUBLASLT_EPILOGUE_BGRADB : CUBLASLT_EPILOGUE_DEFAULT;
	}
	return s;
}

static enum gt_code make_gemm(struct gt_dev *dev, const struct gt_opcall *call, struct linear *k, struct gt_err *err)
{
	struct gt_lt_spec s = spec_of(k, call);
	bool found;
	GT_TRY(gt_lt_make(dev, &s, &k->gemm, &found, err));
	if (!found && k->bits) /* refuse: the planner then uses y itself as the mask (engine/plan/backend_fusion.c) */
		return gt_opcall_refuse(call, err, "cuBLASLt has no algorithm with a bit mask for this call");
	if (!found && s.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
		k->own_act = k->code == GT_OP_LINEAR;
		k->own_db = k->code == GT_OP_LINEAR_DW;
		s = spec_of(k, call);
		GT_TRY(gt_lt_make(dev, &s, &k->gemm, &found, err));
	}
	return found ? GT_OK : gt_opcall_refuse(call, err, "cuBLASLt has no algorithm for this call");
}

/* Checks the operands; weights must be plain. The epilogue overwrites db, so it cannot compute a bias gradient that accumulates. */
static enum gt_code check_weights(const struct gt_opcall *call, struct gt_tdesc *w, struct gt_err *err)
{
	if (w && w->any)
		*w = gt_tdesc_make(w->dtype, w->rank, w->dim, false);
	return !w || gt_tdesc_plain(w) ? GT_OK : gt_opcall_refuse(call, err, "weights must be [out, in] in the plain layout");
}

/* Prepares a linear operation: checks bias and mask, selects the product and its epilogue, and selects own kernels for everything that the
 * epilogue does not compute. */
enum gt_code gt_cuda_linear(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	bool fwd = call->code == GT_OP_LINEAR, dw = call->code == GT_OP_LINEAR_DW;
	const struct gt_tdesc *x = gt_opcall_operand(call, fwd || dw ? "x" : "dx"), *y = gt_opcall_operand(call, fwd ? "y" : "dy");
	const struct gt_tdesc *mask = gt_opcall_operand(call, fwd ? "mask" : "y"), *like = fwd ? y : x;
	struct gt_tdesc *w = gt_opcall_operand(call, dw ? "dw" : "w");
	struct linear *k;
	enum gt_code code;
	GT_TRY(check_weights(call, w, err));
	bool bits = mask && mask->dtype == GT_U8;
	if (bits ? gt_tdesc_count(mask) != like->dim[0] * gt_mask_bytes(like->dim[1]) : mask && (fwd || !gt_tdesc_equal(mask, x)))
		return gt_opcall_refuse(call, err, "the mask must have the shape of the gradient, or one bit per element");
	if (bits && fwd && ((const struct gt_attr_linear *)call->attr)->act != GT_ACT_RELU)
		return gt_opcall_refuse(call, err, "a bit mask is only allowed for relu");
	GT_CUDA_NEW(k, fwd ? launch_fwd : dw ? launch_dw : launch_dx, NULL, err);
	k->head.release = release_linear;
	k->code = call->code;
	k->type = gt_cuda_type(x->dtype);
	k->n = x->dim[0], k->in = x->dim[1], k->out = y->dim[1];
	k->bias = gt_opcall_operand(call, fwd ? "b" : "db");
	gt_binding_make(&k->binding, slots, sizeof slots / sizeof *slots, call);
	k->mask = mask && !bits;
	k->bits = bits;
	k->relu = fwd && ((const struct gt_attr_linear *)call->attr)->act == GT_ACT_RELU;
	k->no_dw = dw && !w;
	k->add_db = gt_opcall_adds(call, "db");
	k->own_db = k->add_db || k->no_dw;
	code = k->no_dw ? GT_OK : make_gemm(dev, call, k, err);
	if (code != GT_OK) {
		release_linear(dev, &k->head);
		return code;
	}
	if (k->own_act)
		k->head.launch = launch_plain;
	k->bias16 = k->colsum = (k->gemm.workspace + 255) / 256 * 256;
	k->head.scratch = k->bias16 + (fwd && k->bias && !k->own_act && k->type != GT_CU_F32 ? (size_t)k->out * 2 : 0);
	if (dw && k->bias && k->own_db)
		k->head.scratch += gt_cu_colsum_scratch(k->n, k->out);
	strcpy(k->text, k->no_dw ? "colsum" : dev->tf32 && k->type == GT_CU_F32 ? "cublasLt:tf32" : "cublasLt");
	if (dw && k->bias && !k->no_dw)
		strcat(k->text, k->own_db ? " + colsum" : " with bgradb");
	if (k->own_act && k->bias)
		strcat(k->text, " + bias");
	if (k->own_act && k->relu)
		strcat(k->text, " + relu");
	if (k->mask || k->bits)
		strcat(k->text, k->mask ? " + relu.dx" : fwd ? " with relu_aux" : " with drelu");
	k->head.describe = k->text;
	*out = &k->head;
	return GT_OK;
}
