/* cuBLASLt by plain loops. It returns CUBLAS_STATUS_INVALID_VALUE for every epilogue but DEFAULT where m, n or k is 1, as the library is
 * reported to do (kernels/cuda/cublaslt.h). $CUDASIM_NO_EPILOGUE: words among BIAS, RELU, BGRADB, AUX, DRELU, with commas between them: no
 * algorithm has these epilogues, so that the other way is tested for every shape. $CUDASIM_UNORDERED=1: where the caller's preferences
 * allow sums in the order of arrival, the last bits of a product differ from launch to launch.
 *
 * The mask of a relu, in the manual's words a matrix of bits like D, its leading dimension in bits, a multiple of 128 and no less than D's
 * rows: bit i + j * ld is set where D[i, j] > 0. Which bit of a byte that is the manual does not say, and only cuBLASLt reads it. */
#include "add_scaled.h"
#include "cublasLt.h"
#include "cuda_runtime.h"
#include "ew.h"
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <new>
#include <unistd.h>
#include <vector>

#define MAGIC 0x67747261696eull
#define WORKSPACE 1000

struct cudasim_lt {
	int unused;
};

struct cudasim_lt_desc {
	cublasComputeType_t compute;
	cudaDataType_t scale, bias_type;
	cublasOperation_t ta, tb;
	cublasLtEpilogue_t epilogue;
	void *bias, *aux;
	int64_t aux_ld;
	bool bias_type_set;
};

struct cudasim_lt_layout {
	cudaDataType type;
	int64_t rows, cols, ld;
	int32_t batch;
	int64_t stride;
};

struct cudasim_lt_pref {
	size_t workspace;
	uint32_t mask;
};

static int64_t size_of(cudaDataType t)
{
	return t == CUDA_R_32F ? 4 : 2;
}

static float get(const void *p, cudaDataType t, int64_t i)
{
	if (t == CUDA_R_32F)
		return ((const float *)p)[i];
	if (t == CUDA_R_16F)
		return gt_f16_to_f32(((const uint16_t *)p)[i]);
	uint32_t u = (uint32_t)((const uint16_t *)p)[i] << 16;
	float f;
	memcpy(&f, &u, 4);
	return f;
}

static void put(void *p, cudaDataType t, int64_t i, double v)
{
	float f = (float)v;
	uint32_t u;
	if (t == CUDA_R_32F) {
		((float *)p)[i] = f;
		return;
	}
	if (t == CUDA_R_16F) {
		((uint16_t *)p)[i] = gt_f16_from_f32(f);
		return;
	}
	memcpy(&u, &f, 4);
	((uint16_t *)p)[i] = f != f ? 0x7fff : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static bool with_bias(cublasLtEpilogue_t e)
{
	return e == CUBLASLT_EPILOGUE_BIAS || e == CUBLASLT_EPILOGUE_RELU_BIAS || e == CUBLASLT_EPILOGUE_RELU_AUX_BIAS;
}

static bool with_aux(cublasLtEpilogue_t e)
{
	return e == CUBLASLT_EPILOGUE_RELU_AUX || e == CUBLASLT_EPILOGUE_RELU_AUX_BIAS || e == CUBLASLT_EPILOGUE_DRELU;
}

static bool listed(const char *name)
{
	const char *list = getenv("CUDASIM_NO_EPILOGUE");
	for (size_t n = strlen(name); list && *list; list += strcspn(list, ","), list += strspn(list, ","))
		if (strcspn(list, ",") == n && !strncmp(list, name, n))
			return true;
	return false;
}

static bool refused(cublasLtEpilogue_t e)
{
	if (e == CUBLASLT_EPILOGUE_BGRADB || e == CUBLASLT_EPILOGUE_DRELU)
		return listed(e == CUBLASLT_EPILOGUE_DRELU ? "DRELU" : "BGRADB");
	bool relu = with_aux(e) || e == CUBLASLT_EPILOGUE_RELU || e == CUBLASLT_EPILOGUE_RELU_BIAS;
	return (with_bias(e) && listed("BIAS")) || (relu && listed("RELU")) || (with_aux(e) && listed("AUX"));
}

/* The rules of the manual's table "cublasLtMatmul": A, B and C, D types, bias type; dimensions. */
static bool valid(const cudasim_lt_desc *d, const cudasim_lt_layout *a, const cudasim_lt_layout *b, const cudasim_lt_layout *c,
                  const cudasim_lt_layout *out)
{
	int64_t m = d->ta ? a->cols : a->rows, k = d->ta ? a->rows : a->cols, kb = d->tb ? b->cols : b->rows, n = d->tb ? b->rows : b->cols;
	bool bias = with_bias(d->epilogue) || d->epilogue == CUBLASLT_EPILOGUE_BGRADB;
	if (with_aux(d->epilogue) && (!d->aux || (uintptr_t)d->aux % 16 || d->aux_ld % 128 || d->aux_ld < out->rows || out->batch > 1))
		return false;
	if (d->epilogue != CUBLASLT_EPILOGUE_DEFAULT && (m == 1 || n == 1 || k == 1))
		return false;
	if (k != kb || out->rows != m || out->cols != n || c->rows != m || c->cols != n || c->type != out->type)
		return false;
	if (a->ld < a->rows || b->ld < b->rows || out->ld < out->rows || c->ld < c->rows || d->scale != CUDA_R_32F)
		return false;
	if (a->batch != out->batch || b->batch != out->batch || c->batch != out->batch ||
	    (out->batch > 1 && (bias || out->stride < out->ld * n)))
		return false;
	if (a->type != b->type || (a->type == CUDA_R_32F && out->type != CUDA_R_32F))
		return false;
	if (d->compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a->type != CUDA_R_32F)
		return false;
	return !bias || (d->bias_type_set ? d->bias_type : out->type) == out->type;
}

static std::atomic<unsigned> launches;

/* op(M) as floats, in columns without gaps. */
static std::vector<float> dense(const void *p, const cudasim_lt_layout &l, cublasOperation_t op)
{
	int64_t rows = op ? l.cols : l.rows, cols = op ? l.rows : l.cols;
	std::vector<float> out((size_t)(rows * cols));
	for (int64_t j = 0; j < cols; j++)
		for (int64_t i = 0; i < rows; i++)
			out[(size_t)(i + j * rows)] = get(p, l.type, op ? j + i * l.ld : i + j * l.ld);
	return out;
}

/* sum[i] = the sum over l of a[i + l * m] * b[l]. */
GT_CLONES static void column(double *sum, int64_t m, int64_t k, const float *a, const float *b)
{
	for (int64_t i = 0; i < m; i++)
		sum[i] = 0;
	for (int64_t l = 0; l < k; l++)
		add_scaled(sum, b[l], a + l * m, m);
}

static void multiply(const cudasim_lt_desc &d, bool unordered, double alpha, const void *A, const cudasim_lt_layout &a, const void *B,
                     const cudasim_lt_layout &b, double beta, const void *C, void *D, const cudasim_lt_layout &out)
{
	int64_t k = d.ta ? a.rows : a.cols;
	bool drelu = d.epilogue == CUBLASLT_EPILOGUE_DRELU, aux = with_aux(d.epilogue) && !drelu;
	bool relu = aux || d.epilogue == CUBLASLT_EPILOGUE_RELU || d.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS;
	unsigned char *bits = (unsigned char *)d.aux;
	double arrival = unordered ? 1 + 0x1p-22 * ((launches++ + (unsigned)getpid()) * 2654435761u >> 30) : 1;
	for (int64_t j = 0; beta == 0 && j < out.cols; j++) /* what D held is not read, and D does not overlap A or B */
		memset((char *)D + j * out.ld * size_of(out.type), 0xff, (size_t)(out.rows * size_of(out.type)));
	std::vector<float> fa = dense(A, a, d.ta), fb = dense(B, b, d.tb);
	std::vector<double> sums((size_t)out.rows);
	for (int64_t j = 0; j < out.cols; j++) {
		column(sums.data(), out.rows, k, fa.data(), fb.data() + j * k);
		for (int64_t i = 0; i < out.rows; i++) {
			double sum = sums[(size_t)i] * arrival;
			sum = alpha * sum + (beta != 0 ? beta * get(C, out.type, i + j * out.ld) : 0);
			if (with_bias(d.epilogue))
				sum += get(d.bias, out.type, i);
			int64_t bit = i + j * d.aux_ld;
			if (aux) /* one by one: the rest of a run of 128 stays as it was */
				bits[bit / 8] = (unsigned char)((bits[bit / 8] & ~(1 << bit % 8)) | (sum > 0) << bit % 8);
			if (drelu && !(bits[bit / 8] >> bit % 8 & 1))
				sum = 0;
			put(D, out.type, i + j * out.ld, relu && !(sum > 0) ? 0 : sum); /* a NaN becomes 0, as it does in cuBLASLt's epilogues */
		}
	}
	for (int64_t j = 0; d.epilogue == CUBLASLT_EPILOGUE_BGRADB && j < out.cols; j++) {
		double sum = 0;
		for (int64_t l = 0; l < k; l++)
			sum += fb[(size_t)(l + j * k)];
		put(d.bias, out.type, j, sum);
	}
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void *alpha, const void *A, cublasLtMatrixLayout_t a,
                              const void *B, cublasLtMatrixLayout_t b, const void *beta, const void *C, cublasLtMatrixLayout_t c, void *D,
                              cublasLtMatrixLayout_t out, const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes, cudaStream_t s)
{
	cudasim_lt_desc desc = *d;
	cudasim_lt_layout la = *a, lb = *b, lo = *out;
	bool unordered = algo->data[2] != 0;
	double al = *(const float *)alpha, be = *(const float *)beta;
	uintptr_t at = (uintptr_t)A | (uintptr_t)B | (uintptr_t)C | (uintptr_t)D | (uintptr_t)workspace;
	if (!valid(d, a, b, c, out) || at % 256 || algo->data[0] != MAGIC || algo->data[1] != (uint64_t)desc.epilogue ||
	    bytes < WORKSPACE || !workspace)
		return CUBLAS_STATUS_INVALID_VALUE;
	cudaError_t e = cudasim_enqueue(s, [=] {
		memset(workspace, 0xff, WORKSPACE);
		for (int i = 0; i < lo.batch; i++)
			multiply(desc, unordered, al, (const char *)A + i * la.stride * size_of(la.type), la,
			         (const char *)B + i * lb.stride * size_of(lb.type), lb, be, (const char *)C + i * lo.stride * size_of(lo.type),
			         (char *)D + i * lo.stride * size_of(lo.type), lo);
	});
	return e == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out, cublasLtMatmulPreference_t p, int n,
                                              cublasLtMatmulHeuristicResult_t r[], int *found)
{
	*found = 0;
	if (n < 1 || !valid(d, a, b, c, out))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (p->workspace < WORKSPACE || refused(d->epilogue))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	r[0] = {};
	r[0].algo.data[0] = MAGIC;
	r[0].algo.data[1] = (uint64_t)d->epilogue;
	r[0].algo.data[2] = (p->mask & CUBLASLT_REDUCTION_SCHEME_INPLACE) && getenv("CUDASIM_UNORDERED");
	r[0].workspaceSize = WORKSPACE;
	*found = 1;
	return CUBLAS_STATUS_SUCCESS;
}

/* ---- descriptors ------------------------------------------------------------------------------------------------------------------- */
cublasStatus_t cublasLtCreate(cublasLtHandle_t *h)
{
	*h = new cudasim_lt();
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
	delete h;
	return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
	return 0;
}

const char *cublasLtGetStatusString(cublasStatus_t s)
{
	return s == CUBLAS_STATUS_SUCCESS ? "success" : s == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "invalid value";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute, cudaDataType_t scale)
{
	*d = new cudasim_lt_desc();
	(*d)->compute = compute;
	(*d)->scale = scale;
	(*d)->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
	delete d;
	return CUBLAS_STATUS_SUCCESS;
}

template <class T> static cublasStatus_t set(T *field, const void *buf, size_t size)
{
	if (size != sizeof *field)
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(field, buf, size);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t attr, const void *buf, size_t size)
{
	switch (attr) {
	case CUBLASLT_MATMUL_DESC_TRANSA:
		return set(&d->ta, buf, size);
	case CUBLASLT_MATMUL_DESC_TRANSB:
		return set(&d->tb, buf, size);
	case CUBLASLT_MATMUL_DESC_EPILOGUE:
		return set(&d->epilogue, buf, size);
	case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
		return set(&d->bias, buf, size);
	case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
		return set(&d->aux, buf, size);
	case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
		return set(&d->aux_ld, buf, size);
	case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
		d->bias_type_set = true;
		return set(&d->bias_type, buf, size);
	}
	return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType type, uint64_t rows, uint64_t cols, int64_t ld)
{
	*l = new cudasim_lt_layout{type, (int64_t)rows, (int64_t)cols, ld, 1, 0};
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t attr, const void *buf,
                                                size_t size)
{
	return attr == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT ? set(&l->batch, buf, size) : set(&l->stride, buf, size);
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
	delete l;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
	*p = new cudasim_lt_pref{0, UINT32_MAX};
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
	delete p;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, cublasLtMatmulPreferenceAttributes_t attr,
                                                    const void *buf, size_t size)
{
	return attr == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES ? set(&p->workspace, buf, size) : set(&p->mask, buf, size);
}
