#include "offers.h"
#include "opsig.h"
#include "optimizer.h"

/* Limits of the fused operations of a last layer with few outputs, where most of the time of a library kernel would be its launch. Before
 * you change these limits, measure on a GPU against separate calls at N = 32, 128, 512 and 1024. */
#define ROWS 1024         /* maximum number of rows of linear+loss: the thread block of each row reads all weights again */
#define WEIGHTS (1 << 15) /* maximum number of elements of the weights, so that they fit into a cache beside the rows */
#define BACK_ROWS 512     /* maximum number of rows of linear.dx+dw, because each thread loops over an eighth of the rows */
#define BACK_IN (1 << 16)
#define HEAD_FEATURES 128 /* maximum number of features of a head of attention */

static const char *refuse_linear_loss(const struct gt_opcall *call)
{
	const struct gt_attr_linear_loss *attr = call->attr;
	const struct gt_tdesc *x = gt_opcall_operand(call, "x");
	int64_t n = x->dim[0], in = x->dim[1], cols = attr->linear.out;
	if (attr->linear.act != GT_ACT_NONE)
		return "no activation may follow this layer";
	return cols > GT_CU_HEAD_COLS || n > ROWS || cols * in > WEIGHTS
	           ? "only layers with few outputs are supported; larger layers use a matrix product and a loss" : NULL;
}

/* Checks linear and conv2d: no kernel adds a residual, and cuDNN and cuBLASLt support no activation other than relu. */
static const char *refuse_epilogue(const struct gt_opcall *call)
{
	bool conv = call->code == GT_OP_CONV2D;
	int act = conv ? ((const struct gt_attr_conv2d *)call->attr)->act : ((const struct gt_attr_linear *)call->attr)->act;
	if (conv && gt_opcall_operand(call, "res"))
		return "a residual must be added by a separate call";
	return act > GT_ACT_RELU ? "only relu may follow in the same call" : NULL;
}

static const char *refuse_linear_back(const struct gt_opcall *call)
{
	const struct gt_tdesc *x = gt_opcall_operand(call, "x");
	int64_t n = x->dim[0], in = x->dim[1], cols = gt_opcall_operand(call, "dy")->dim[1];
	return cols > GT_CU_HEAD_COLS || n > BACK_ROWS || in > BACK_IN
	           ? "only few outputs and small batches are supported; larger layers use two matrix products" : NULL;
}

static const char *refuse_attention(const struct gt_opcall *call)
{
	const struct gt_tdesc *y = gt_opcall_operand(call, "y");
	int64_t heads = ((const struct gt_attr_attention *)call->attr)->heads;
	return heads < 1 || y->dim[2] % heads || y->dim[2] / heads > HEAD_FEATURES
	           ? "expected heads of equal size, with at most 128 features (--device cpu supports 256)" : NULL;
}

static const char *refuse_check(const struct gt_opcall *call)
{
	bool several = ((const struct gt_attr_check *)call->attr)->ranks > 1;
	return several && gt_opcall_operand(call, "g") ? "the gradients must belong to one rank" : NULL;
}

/* Checks batchnorm and batchnorm.y: the kernel that adds a residual supports no gelu, because a gelu needs so many registers that a
 * quarter fewer blocks would run on a multiprocessor. */
static const char *refuse_norm(const struct gt_opcall *call)
{
	bool gelu = ((const struct gt_attr_norm *)call->attr)->act > GT_ACT_RELU;
	return gelu && gt_opcall_operand(call, "res") ? "a gelu may not follow a residual" : NULL;
}

/* Checks calls of batchnorm.dx and batchnorm.sums. If the call has a gelu, whose derivative is computed from bn(x), it must not have the
 * operands `y` and `more`. */
static const char *refuse_norm_gradient(const struct gt_opcall *call)
{
	if (call->code == GT_OP_BATCHNORM_DX && gt_opcall_operand(call, "again"))
		return "the output must be computed again by batchnorm.y";
	if (((const struct gt_attr_norm *)call->attr)->act <= GT_ACT_RELU)
		return NULL;
	if (gt_opcall_operand(call, "y"))
		return "a gelu may not follow a sum";
	return gt_opcall_operand(call, "more") ? "a gradient in two parts through a gelu would need too many registers" : NULL;
}

static const char *refuse_max_pool(const struct gt_opcall *call)
{
	const struct gt_tdesc *idx = gt_opcall_operand(call, "idx");
	const struct gt_attr_pool2d *attr = call->code == GT_OP_ADAPTIVE_MAXPOOL2D ? NULL : call->attr;
	if (!idx || idx->dtype == GT_I32)
		return NULL;
	return idx->dtype != GT_U8 || !attr || attr->kernel[0] < 1 || attr->kernel[0] * attr->kernel[1] > 256
	           ? "indices must be i32, or u8 for windows of at most 256 pixels" : NULL;
}

/* Checks a call that reads or writes x, images with padded channels. */
static const char *refuse_padded_channels(const struct gt_opcall *call, const struct gt_tdesc *x)
{
	if (gt_dtype_size(x->dtype) != 2)
		return "padded channels are for 16-bit types only: in f32, tensor cores do not need padding";
	bool gathers = call->code == GT_OP_GATHER || call->code == GT_OP_GATHER_RECIPES;
	return !gathers && ((const struct gt_attr_conv2d *)call->attr)->groups != 1
	           ? "padded channels and groups cannot be combined" : NULL;
}

const char *gt_cuda_refuses(const struct gt_opcall *call)
{
	const struct gt_tdesc *padded = gt_opcall_padded(call);
	const char *why = padded ? refuse_padded_channels(call, padded) : NULL;
	bool any = call->code == GT_OP_CHECK || call->code == GT_OP_BATCHNORM_MERGE; /* both operations have f64 operands in every graph */
	if (!any && gt_opcall_input(call) && gt_opcall_input(call)->dtype == GT_F64)
		return "f64 is not supported by the cuda backend";
	if (why)
		return why;
	switch (call->code) {
	case GT_OP_LINEAR_DW_UPDATE:
	case GT_OP_CONV2D_PAIR:
		return GT_CU_ABSENT;
	case GT_OP_EMBEDDING_DW_UPDATE:
	case GT_OP_EMBEDDING_BAG_DW_UPDATE:
		return gt_update_refuses_fused(call);
	case GT_OP_LINEAR:
	case GT_OP_CONV2D:
		return refuse_epilogue(call);
	case GT_OP_LINEAR_LOSS:
		return refuse_linear_loss(call);
	case GT_OP_LINEAR_BACK:
		return refuse_linear_back(call);
	case GT_OP_ATTENTION:
	case GT_OP_ATTENTION_DX:
		return refuse_attention(call);
	case GT_OP_BATCHNORM:
	case GT_OP_BATCHNORM_Y:
		return refuse_norm(call);
	case GT_OP_BATCHNORM_DX:
	case GT_OP_BATCHNORM_SUMS:
		return refuse_norm_gradient(call);
	case GT_OP_MAXPOOL2D:
	case GT_OP_MAXPOOL2D_DX:
	case GT_OP_ADAPTIVE_MAXPOOL2D:
		return refuse_max_pool(call);
	case GT_OP_CHECK:
		return refuse_check(call);
	default:
		return NULL;
	}
}
