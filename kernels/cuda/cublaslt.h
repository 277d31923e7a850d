/* cuBLASLt, opened at run time: its functions in a table, the handle, and a matrix product as the linear layers need it. */
#ifndef GT_KERNELS_CUBLASLT_H
#define GT_KERNELS_CUBLASLT_H

#include "cuda/cuda_internal.h"
#include <cublasLt.h>

#define GT_LT_FUNCTIONS(X)                                                                                                                 \
	X(cublasLtCreate)                                                                                                                      \
	X(cublasLtDestroy)                                                                                                                     \
	X(cublasLtGetVersion)                                                                                                                  \
	X(cublasLtGetStatusString)                                                                                                             \
	X(cublasLtMatmul)                                                                                                                      \
	X(cublasLtMatmulDescCreate)                                                                                                            \
	X(cublasLtMatmulDescDestroy)                                                                                                           \
	X(cublasLtMatmulDescSetAttribute)                                                                                                      \
	X(cublasLtMatrixLayoutCreate)                                                                                                          \
	X(cublasLtMatrixLayoutDestroy)                                                                                                         \
	X(cublasLtMatmulPreferenceCreate)                                                                                                      \
	X(cublasLtMatmulPreferenceDestroy)                                                                                                     \
	X(cublasLtMatmulPreferenceSetAttribute)                                                                                                \
	X(cublasLtMatmulAlgoGetHeuristic)

struct gt_lt {
	void *so;
	cublasLtHandle_t handle;
#define GT_X(name) __typeof__(name) *name;
	GT_LT_FUNCTIONS(GT_X)
#undef GT_X
};

/* GT_EUNAVAILABLE with the loader's reason if the library is missing. */
enum gt_code gt_lt_open(const struct gt_dev *dev, struct gt_lt **out, struct gt_err *err);
void gt_lt_close(struct gt_lt *lt); /* NULL is fine */

/* D[m, n] = op(A) op(B) (+ D where add), column-major as BLAS has it: A is stored [m, k] or, transposed, [k, m] and so on. Leading
 * dimensions are the stored first dimensions. */
struct gt_lt_spec {
	int64_t m, n, k;
	bool ta, tb, add;
	enum gt_dtype in, out; /* of A and B; of D */
	cublasLtEpilogue_t epilogue;
	enum gt_dtype bias; /* of what the epilogue reads or writes */
};

struct gt_lt_gemm {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, d;
	cublasLtMatmulAlgo_t algo;
	size_t workspace; /* bytes, aligned to 256 */
	float beta;
	bool has_bias;
};

/* Asks the library's heuristic for an algorithm; *found = false if it has none for this. */
enum gt_code gt_lt_make(struct gt_dev *dev, const struct gt_lt_spec *spec, struct gt_lt_gemm *out, bool *found, struct gt_err *err);
void gt_lt_drop(struct gt_dev *dev, struct gt_lt_gemm *g); /* zeroes it; a zeroed one is fine */
enum gt_code gt_lt_run(struct gt_dev *dev, const struct gt_lt_gemm *g, const void *a, const void *b, void *d, const void *bias,
                       void *workspace, cudaStream_t s, struct gt_err *err);

#endif
