/* Matrix products with cuBLASLt, for the linear layers. The library is loaded at run time, as a table of its functions.
 *
 *     gt_lt_make(dev, &spec, &gemm, &found, err);                       chooses an algorithm
 *     gt_lt_run(dev, &gemm, a, b, c, d, bias, aux, workspace, stream, err);
 *     gt_lt_drop(dev, &gemm);
 *
 * Epilogues (cuBLAS manual, cublasLtEpilogue_t), and measurements on a GPU that a change requires:
 * - Forward: BIAS, RELU, RELU_BIAS; one kernel. For 16-bit outputs the manual's table of types requires a 16-bit bias: a kernel of a few
 *   hundred elements rounds it first. To measure: the share of this kernel in a step (1.3 us in a graph). The flat work copy already
 *   contains the rounded bias, so an additional operand could replace this kernel.
 * - dw: BGRADB sums dy over N while the product reads it. If the heuristic has no algorithm with BGRADB (not known yet for f32 outputs of
 *   16-bit inputs), or db is accumulated (the epilogue overwrites), colsum.cu computes db. To measure: BGRADB against the plain product
 *   with colsum; for N = 32 ... 128 colsum is one launch of some microseconds in addition to the product.
 * - dx with the mask of the relu before: DRELU, with the matrix of bits that the forward pass wrote by RELU_AUX or RELU_AUX_BIAS (leading
 *   dimension in bits, a multiple of 128, at least D's number of rows). The planner asks prepare() for both (engine/plan/backend_fusion.c).
 *   If the heuristic has no algorithm for one of them, the plan keeps y as the operand and relu.dx runs after the product. DRELU_BGRAD,
 *   which would also compute the db of the layer before, is not used: dw has BGRADB, its sums over N would cross tiles, and in 16 bits its
 *   db has 16 bits. The bits after a row of D are never read.
 * - Every epilogue other than DEFAULT is optional: any status other than success counts as "no algorithm", and the caller uses another way.
 *   PyTorch (ATen/native/cuda/Blas.cpp) reports CUBLAS_STATUS_INVALID_VALUE from the heuristic if m, n or k is 1, and uses the plain
 *   product there. Without BIAS, D is filled with the bias and the product is added to it (beta = 1), which rounds once, as the epilogue
 *   does. Without RELU, an element-wise kernel follows. The simulator rejects every epilogue if a dimension is 1. Known from NVIDIA's
 *   forum, not yet observed on a GPU by us: the RELU epilogues turn NaN into 0; PyTorch's relu keeps it.
 * - The algorithm is the first of the heuristic. To measure: the first eight, timed once, as for cuDNN's plans. */
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
	X(cublasLtMatrixLayoutSetAttribute)                                                                                                    \
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

/* Loads cuBLASLt. Returns GT_EUNAVAILABLE with the loader's reason if the library is missing. */
enum gt_code gt_lt_open(const struct gt_dev *dev, struct gt_lt **out, struct gt_err *err);
void gt_lt_close(struct gt_lt *lt); /* lt may be NULL */

/* The product D[m, n] = alpha op(A) op(B) + beta C, column-major as in BLAS: A is stored as [m, k] or, transposed, as [k, m]; B
 * accordingly. The leading dimension of a matrix is its first stored dimension. C is D or another matrix of the same shape and dtype. */
struct gt_lt_spec {
	int64_t m, n, k;
	int64_t batch; /* number of products in one call; the matrices of each operand are consecutive in memory */
	bool ta, tb;
	float alpha, beta;
	enum gt_dtype in, out; /* dtype of A and B; dtype of D */
	cublasLtEpilogue_t epilogue;
	enum gt_dtype bias; /* dtype of the bias that the epilogue reads or writes */
};

struct gt_lt_gemm {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, d;
	cublasLtMatmulAlgo_t algo;
	size_t workspace; /* bytes, aligned to 256 */
	float alpha, beta;
	bool has_bias, has_aux;
};

/* Requests an algorithm from the library's heuristic. Sets *found to false if the heuristic has none for this product. With an epilogue
 * other than DEFAULT, every failure of the library gives *found = false; with DEFAULT, only "not supported" does, and any other status is
 * an error. */
enum gt_code gt_lt_make(struct gt_dev *dev, const struct gt_lt_spec *spec, struct gt_lt_gemm *out, bool *found, struct gt_err *err);
void gt_lt_drop(struct gt_dev *dev, struct gt_lt_gemm *g); /* frees and zeroes g; g may be zeroed */
enum gt_code gt_lt_run(struct gt_dev *dev, const struct gt_lt_gemm *g, const void *a, const void *b, const void *c, void *d,
                       const void *bias, const void *aux, void *workspace, cudaStream_t s, struct gt_err *err);

#endif
