/* cuBLASLt, opened at run time: its functions in a table, the handle, and a matrix product as the linear layers need it.
 *
 * Which epilogues (cuBLAS manual, cublasLtEpilogue_t), and what has to be measured on a GPU before it is changed:
 * - Forward: BIAS, RELU, RELU_BIAS; one kernel. With 16-bit outputs the manual's table of types wants a 16-bit bias: a kernel of a few
 *   hundred elements rounds it first. To measure: its share of a step (1.3 us in a graph); the flat work copy already holds the rounded
 *   bias, so the way out is an operand, not another kernel.
 * - dw: BGRADB sums dy over N while the product reads it. Where the heuristic has no algorithm with it (not known yet for f32 outputs of
 *   16-bit inputs), or db is accumulated (the epilogue overwrites), colsum.cu does. To measure: BGRADB against the plain product and
 *   colsum; for N = 32 .. 128 colsum is one launch of some microseconds beside the product.
 * - dx with the mask of the relu before: DRELU, by the matrix of bits that the forward pass wrote with RELU_AUX or RELU_AUX_BIAS (leading
 *   dimension in bits, a multiple of 128, no less than D's rows). The planner asks prepare() for both (engine/plan/backend_fusion.c); where the
 *   heuristic has no algorithm for one, the plan shows y as the operand and relu.dx runs behind the product. DRELU_BGRAD, which would make the
 *   db of the layer before as well, is not used: dw has BGRADB, its sums over N would cross tiles, and in 16 bits its db is of 16 bits.
 *   What lies in the bits behind a row of D is never read.
 * - Every epilogue other than DEFAULT is optional: any status other than success counts as "no algorithm", and the caller has another way.
 *   PyTorch (ATen/native/cuda/Blas.cpp) reports CUBLAS_STATUS_INVALID_VALUE from the heuristic where m, n or k is 1, and takes the plain
 *   product there. Without BIAS, D is filled with the bias and the product is added to it (beta = 1), which rounds once, as the epilogue
 *   does; without RELU, an element-wise kernel follows. The simulator refuses every epilogue where a dimension is 1.
 *   Known from NVIDIA's forum, not yet seen by us on a GPU: the RELU epilogues turn NaN into 0, where PyTorch's relu keeps it.
 * - The algorithm is the heuristic's first. To measure: the first eight, timed once, as cuDNN's plans are. */
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

/* GT_EUNAVAILABLE with the loader's reason if the library is missing. */
enum gt_code gt_lt_open(const struct gt_dev *dev, struct gt_lt **out, struct gt_err *err);
void gt_lt_close(struct gt_lt *lt); /* NULL is fine */

/* D[m, n] = alpha op(A) op(B) + beta C, column-major as BLAS has it: A is stored [m, k] or, transposed, [k, m] and so on. Leading
 * dimensions are the stored first dimensions. C is D, or another matrix like it. */
struct gt_lt_spec {
	int64_t m, n, k;
	int64_t batch; /* so many products; the matrices of each operand stand one behind the other */
	bool ta, tb;
	float alpha, beta;
	enum gt_dtype in, out; /* of A and B; of D */
	cublasLtEpilogue_t epilogue;
	enum gt_dtype bias; /* of what the epilogue reads or writes */
};

struct gt_lt_gemm {
	cublasLtMatmulDesc_t desc;
	cublasLtMatrixLayout_t a, b, d;
	cublasLtMatmulAlgo_t algo;
	size_t workspace; /* bytes, aligned to 256 */
	float alpha, beta;
	bool has_bias, has_aux;
};

/* Asks the library's heuristic for an algorithm; *found = false if it has none for this. With an epilogue other than DEFAULT every failure
 * of the library means *found = false; with DEFAULT, only "not supported" does, and any other status is an error. */
enum gt_code gt_lt_make(struct gt_dev *dev, const struct gt_lt_spec *spec, struct gt_lt_gemm *out, bool *found, struct gt_err *err);
void gt_lt_drop(struct gt_dev *dev, struct gt_lt_gemm *g); /* zeroes it; a zeroed one is fine */
enum gt_code gt_lt_run(struct gt_dev *dev, const struct gt_lt_gemm *g, const void *a, const void *b, const void *c, void *d,
                       const void *bias, const void *aux, void *workspace, cudaStream_t s, struct gt_err *err);

#endif
