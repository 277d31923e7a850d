#include "cuda/cublaslt.h"
#include <stdlib.h>
#include <string.h>

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define LIBRARY "libcublasLt.so." TEXT(CUBLAS_VER_MAJOR)
#define ALIGN 256     /* alignment in bytes of all operands; the planner aligns every tensor to it */
#define BIAS_ALIGN 16 /* alignment in bytes of the bias, which epilogues read in vectors */
/* maximum bytes, as NVIDIA recommends for Hopper; the scratch arena grows only by the bytes that the chosen algorithm needs */
#define WORKSPACE ((size_t)32 << 20)

static enum gt_code lt_fail(const struct gt_dev *dev, const struct gt_lt *lt, cublasStatus_t status, const char *what, struct gt_err *err)
{
	return gt_fail(err, GT_EFAIL, "%s: %s: %s", dev->id, what, lt->cublasLtGetStatusString(status));
}

#define LT(dev, call, what, err)                                                                                                           \
	do {                                                                                                                                   \
		cublasStatus_t lt_status = (call);                                                                                                 \
		if (lt_status != CUBLAS_STATUS_SUCCESS)                                                                                            \
			return lt_fail(dev, (dev)->lt, lt_status, what, err);                                                                          \
	} while (0)

/* ---- the library ------------------------------------------------------------------------------------------------------------- */
static enum gt_code load_library(struct gt_lt *lt, struct gt_err *err)
{
	static const char *const names[] = {
#define GT_X(name) #name,
	    GT_LT_FUNCTIONS(GT_X)
#undef GT_X
	};
	void **const slots[] = {
#define GT_X(name) (void **)&lt->name,
	    GT_LT_FUNCTIONS(GT_X)
#undef GT_X
	};
	return gt_cuda_library(LIBRARY, "cuBLASLt", names, slots, (int)(sizeof names / sizeof *names), &lt->so, err);
}

enum gt_code gt_lt_open(const struct gt_dev *dev, struct gt_lt **out, struct gt_err *err)
{
	struct gt_lt *lt = calloc(1, sizeof *lt);
	*out = lt; /* the caller closes the library with the device, after a failure too */
	if (!lt)
		return gt_fail(err, GT_EFAIL, "out of memory");
	GT_TRY(load_library(lt, err));
	cublasStatus_t status = lt->cublasLtCreate(&lt->handle);
	if (status != CUBLAS_STATUS_SUCCESS) {
		lt->handle = NULL;
		return lt_fail(dev, lt, status, "cublasLtCreate", err);
	}
	return GT_OK;
}

void gt_lt_close(struct gt_lt *lt)
{
	if (!lt)
		return;
	if (lt->handle)
		lt->cublasLtDestroy(lt->handle);
	free(lt);
}

/* ---- products ---------------------------------------------------------------------------------------------------------------- */
static cudaDataType_t data_type(enum gt_dtype t)
{
	return t == GT_BF16 ? CUDA_R_16BF : t == GT_F16 ? CUDA_R_16F : CUDA_R_32F;
}

static enum gt_code make_layout(struct gt_dev *dev, const struct gt_lt_spec *s, enum gt_dtype t, int64_t rows, int64_t cols,
                                cublasLtMatrixLayout_t *out, struct gt_err *err)
{
	const struct gt_lt *lt = dev->lt;
	int32_t batch = (int32_t)s->batch;
	int64_t stride = rows * cols;
	LT(dev, lt->cublasLtMatrixLayoutCreate(out, data_type(t), (uint64_t)rows, (uint64_t)cols, rows), "cublasLtMatrixLayoutCreate", err);
	if (batch == 1)
		return GT_OK;
	LT(dev, lt->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof batch), "BATCH_COUNT", err);
	LT(dev, lt->cublasLtMatrixLayoutSetAttribute(*out, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
	   "STRIDED_BATCH_OFFSET", err);
	return GT_OK;
}

static enum gt_code make_desc(struct gt_dev *dev, const struct gt_lt_spec *s, struct gt_lt_gemm *g, struct gt_err *err)
{
	const struct gt_lt *lt = dev->lt;
	/* Without tf32, products of f32 keep full precision: CUBLAS_COMPUTE_32F does not round its operands. */
	cublasComputeType_t compute = dev->tf32 && s->in == GT_F32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
	cublasOperation_t ta = s->ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb = s->tb ? CUBLAS_OP_T : CUBLAS_OP_N;
	LT(dev, lt->cublasLtMatmulDescCreate(&g->desc, compute, CUDA_R_32F), "cublasLtMatmulDescCreate", err);
	LT(dev, lt->cublasLtMatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof ta), "TRANSA", err);
	LT(dev, lt->cublasLtMatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof tb), "TRANSB", err);
	LT(dev, lt->cublasLtMatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &s->epilogue, sizeof s->epilogue), "EPILOGUE", err);
	g->has_aux = s->epilogue == CUBLASLT_EPILOGUE_RELU_AUX || s->epilogue == CUBLASLT_EPILOGUE_RELU_AUX_BIAS ||
	             s->epilogue == CUBLASLT_EPILOGUE_DRELU;
	g->has_bias = s->epilogue == CUBLASLT_EPILOGUE_BIAS || s->epilogue == CUBLASLT_EPILOGUE_RELU_BIAS ||
	              s->epilogue == CUBLASLT_EPILOGUE_RELU_AUX_BIAS || s->epilogue == CUBLASLT_EPILOGUE_BGRADB;
	/* The heuristic reads only the alignment of these pointers. gt_lt_run checks that operands have this alignment. */
	if (g->has_bias) {
		cudaDataType_t bias = data_type(s->bias);
		const void *at = (const void *)BIAS_ALIGN;
		LT(dev, lt->cublasLtMatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &bias, sizeof bias), "BIAS_DATA_TYPE",
		   err);
		LT(dev, lt->cublasLtMatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &at, sizeof at), "BIAS_POINTER", err);
	}
	if (g->has_aux) {
		int64_t ld = 8 * gt_mask_bytes(s->m); /* leading dimension of the mask, in bits */
		const void *at = (const void *)ALIGN;
		LT(dev, lt->cublasLtMatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &ld, sizeof ld), "EPILOGUE_AUX_LD", err);
		LT(dev, lt->cublasLtMatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &at, sizeof at),
		   "EPILOGUE_AUX_POINTER", err);
	}
	GT_TRY(make_layout(dev, s, s->in, s->ta ? s->k : s->m, s->ta ? s->m : s->k, &g->a, err));
	GT_TRY(make_layout(dev, s, s->in, s->tb ? s->n : s->k, s->tb ? s->k : s->n, &g->b, err));
	GT_TRY(make_layout(dev, s, s->out, s->m, s->n, &g->d, err));
	g->alpha = s->alpha;
	g->beta = s->beta;
	return GT_OK;
}

/* Asks the heuristic for an algorithm. It assumes operands that are aligned to 256 bytes, as the planner places them; gt_lt_run checks
 * this. */
static enum gt_code choose_algorithm(struct gt_dev *dev, struct gt_lt_gemm *g, cublasLtMatmulPreference_t pref, bool *found,
                                     struct gt_err *err)
{
	const struct gt_lt *lt = dev->lt;
	cublasLtMatmulHeuristicResult_t r;
	size_t workspace = WORKSPACE;
	int n = 0;
	LT(dev, lt->cublasLtMatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace),
	   "MAX_WORKSPACE_BYTES", err);
	if (dev->deterministic) { /* the scheme INPLACE adds partial sums to the output in the order of their arrival */
		uint32_t mask = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE;
		LT(dev, lt->cublasLtMatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &mask, sizeof mask),
		   "REDUCTION_SCHEME_MASK", err);
	}
	cublasStatus_t status = lt->cublasLtMatmulAlgoGetHeuristic(lt->handle, g->desc, g->a, g->b, g->d, g->d, pref, 1, &r, &n);
	if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && (n == 0 || r.state != CUBLAS_STATUS_SUCCESS)))
		return GT_OK;
	if (status != CUBLAS_STATUS_SUCCESS)
		return lt_fail(dev, lt, status, "cublasLtMatmulAlgoGetHeuristic", err);
	g->algo = r.algo;
	g->workspace = r.workspaceSize;
	*found = true;
	return GT_OK;
}

enum gt_code gt_lt_make(struct gt_dev *dev, const struct gt_lt_spec *spec, struct gt_lt_gemm *out, bool *found, struct gt_err *err)
{
	cublasLtMatmulPreference_t pref = NULL;
	*found = false;
	memset(out, 0, sizeof *out);
	enum gt_code code = make_desc(dev, spec, out, err);
	if (code == GT_OK) {
		cublasStatus_t status = dev->lt->cublasLtMatmulPreferenceCreate(&pref);
		code = status == CUBLAS_STATUS_SUCCESS ? choose_algorithm(dev, out, pref, found, err)
		                                       : lt_fail(dev, dev->lt, status, "cublasLtMatmulPreferenceCreate", err);
	}
	if (pref)
		dev->lt->cublasLtMatmulPreferenceDestroy(pref);
	if (code != GT_OK || !*found)
		gt_lt_drop(dev, out);
	/* no algorithm for this epilogue: *found is false, and the call succeeds */
	return spec->epilogue == CUBLASLT_EPILOGUE_DEFAULT ? code : GT_OK;
}

void gt_lt_drop(struct gt_dev *dev, struct gt_lt_gemm *g)
{
	const struct gt_lt *lt = dev->lt;
	if (g->a)
		lt->cublasLtMatrixLayoutDestroy(g->a);
	if (g->b)
		lt->cublasLtMatrixLayoutDestroy(g->b);
	if (g->d)
		lt->cublasLtMatrixLayoutDestroy(g->d);
	if (g->desc)
		lt->cublasLtMatmulDescDestroy(g->desc);
	memset(g, 0, sizeof *g);
}

enum gt_code gt_lt_run(struct gt_dev *dev, const struct gt_lt_gemm *g, const void *a, const void *b, const void *c, void *d,
                       const void *bias, const void *aux, void *workspace, cudaStream_t s, struct gt_err *err)
{
	const struct gt_lt *lt = dev->lt;
	uintptr_t at = (uintptr_t)a | (uintptr_t)b | (uintptr_t)c | (uintptr_t)d | (uintptr_t)(g->workspace ? workspace : NULL) |
	               (uintptr_t)(g->has_aux ? aux : NULL);
	if (at % ALIGN)
		return gt_fail(err, GT_EINTERNAL, "%s: an operand of a matrix product is not aligned to 256 bytes", dev->id);
	if (g->has_bias && (uintptr_t)bias % BIAS_ALIGN)
		return gt_fail(err, GT_EINTERNAL, "%s: the bias of a matrix product is not aligned to 16 bytes", dev->id);
	if (g->has_bias)
		LT(dev, lt->cublasLtMatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias), "BIAS_POINTER", err);
	if (g->has_aux)
		LT(dev, lt->cublasLtMatmulDescSetAttribute(g->desc, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux),
		   "EPILOGUE_AUX_POINTER", err);
	LT(dev,
	   lt->cublasLtMatmul(lt->handle, g->desc, &g->alpha, a, g->a, b, g->b, &g->beta, c, g->d, d, g->d, &g->algo,
	                      g->workspace ? workspace : NULL, g->workspace, s),
	   "cublasLtMatmul", err);
	return GT_OK;
}
