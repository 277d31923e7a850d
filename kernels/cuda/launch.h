/* What stands between the C files and the kernels: arguments and the functions that start a kernel on a stream. C and C++.
 * Pointers are device memory. Each returns cudaSuccess or the error of the launch; a kernel's own failure shows at the next wait. */
#ifndef GT_KERNELS_CUDA_LAUNCH_H
#define GT_KERNELS_CUDA_LAUNCH_H

#include "opcall.h"
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { GT_CU_F32, GT_CU_BF16, GT_CU_F16, GT_CU_TYPES }; /* activations */

/* The numbers of a step: read from dev where it is set (a replayed graph sees new values), else from host. */
struct gt_cu_dyn {
	const struct gt_dyn *dev;
	struct gt_dyn host;
};

/* What a kernel finds wrong with its data, in host memory; the first finding stays. */
enum { GT_CU_FAULT_LABEL = 1, GT_CU_FAULT_INDEX, GT_CU_FAULT_PLACE };
struct gt_cu_fault {
	int32_t code;
	int32_t value_hi; /* keeps value at 8 bytes on every compiler */
	int64_t value, at, limit;
};

/* ---- eltwise.cu -------------------------------------------------------------------------------------------------------------- */
/* One of relu .. silu.dx, mul, add; gelu_tanh: approximate = 1. out may be in[0]. */
struct gt_cu_eltwise {
	const void *in[GT_MAX_IO];
	void *out;
	int64_t n; /* elements */
	int nin;
	float slope;
	bool aligned; /* every pointer to 16 bytes */
};
cudaError_t gt_cu_eltwise_start(int code, bool gelu_tanh, int type, const struct gt_cu_eltwise *a, cudaStream_t s);
cudaError_t gt_cu_cast_start(int from, int to, const void *in, void *out, int64_t n, cudaStream_t s); /* from != to */

/* y[rows, cols]: every row is the f32 vector row[cols], rounded to y's type. */
cudaError_t gt_cu_fill_rows_start(int type, const float *row, void *y, int64_t rows, int64_t cols, cudaStream_t s);

/* ---- dropout.cu -------------------------------------------------------------------------------------------------------------- */
struct gt_cu_dropout {
	const void *x;
	void *y;
	int64_t samples, n; /* elements of a sample */
	uint32_t layer, threshold;
	float scale;
	bool aligned; /* x and y to 16 bytes */
	struct gt_cu_dyn dyn;
};
cudaError_t gt_cu_dropout_start(int type, const struct gt_cu_dropout *a, cudaStream_t s);

/* ---- shape.cu ---------------------------------------------------------------------------------------------------------------- */
/* batch matrices of rows x cols elements of 2 or 4 bytes become cols x rows. */
cudaError_t gt_cu_transpose_start(size_t size, const void *in, void *out, int64_t batch, int64_t rows, int64_t cols, cudaStream_t s);

/* Rows of `start[nparts]` units, cut at start[0] = 0 < start[1] …: part i of every row lies in its own tensor. unit: 2, 4 or 16 bytes,
 * which every pointer and width is a multiple of. join: parts to whole, else whole to parts; a NULL part is left out. */
struct gt_cu_concat {
	void *part[GT_MAX_IO];
	void *whole;
	int64_t start[GT_MAX_IO + 1], rows;
	int nparts;
	bool join;
};
cudaError_t gt_cu_concat_start(size_t unit, const struct gt_cu_concat *a, cudaStream_t s);

/* ---- softmax.cu -------------------------------------------------------------------------------------------------------------- */
struct gt_cu_softmax {
	const void *in[2]; /* x; or dy and y */
	void *out;
	int64_t rows, cols;
};
cudaError_t gt_cu_softmax_start(int code, int type, const struct gt_cu_softmax *a, cudaStream_t s);

/* ---- loss.cu ----------------------------------------------------------------------------------------------------------------- */
struct gt_cu_loss {
	const void *x;
	const int32_t *target;
	const double *scale; /* of the gradient; NULL: 1 */
	void *dx; /* NULL: evaluation; may be x */
	struct gt_metrics *metrics;
	double *loss;  /* scratch, one a row */
	int32_t *rank; /* scratch, one a row; -1: the row does not count */
	uint32_t *counter; /* one, zero before and behind */
	int64_t rows, cols, ignore;
	double smoothing;
	struct gt_cu_fault *fault;
	struct gt_cu_dyn dyn;
};
cudaError_t gt_cu_loss_start(int code, int type, const struct gt_cu_loss *a, cudaStream_t s);

/* ---- head.cu ----------------------------------------------------------------------------------------------------------------- */
/* A layer of few outputs. x [rows, in], w [cols, in]; what the loss reads is y [rows, cols], which this writes. */
#define GT_CU_HEAD_COLS 32 /* outputs, at most */
struct gt_cu_head {
	const void *x, *w;
	const float *bias; /* NULL: none */
	void *y;
	int64_t in;
	struct gt_cu_loss loss; /* x is y */
};
cudaError_t gt_cu_head_start(int code, int type, const struct gt_cu_head *a, cudaStream_t s);

/* Its gradients: dx = dy w, 0 where mask <= 0; dw = (add: +=) dy' x; db, or NULL, = (add: +=) the column sums of dy. */
struct gt_cu_head_back {
	const void *dy, *x, *w, *mask; /* mask NULL: none; may be x */
	void *dx;
	float *dw, *db;
	int64_t rows, in, cols;
	bool add_dw, add_db;
};
cudaError_t gt_cu_head_back_start(int type, const struct gt_cu_head_back *a, cudaStream_t s);

/* ---- check.cu ---------------------------------------------------------------------------------------------------------------- */
struct gt_cu_check {
	struct gt_attr_check attr;
	struct gt_scalars *scalars;
	struct gt_scaler *scaler;
	struct gt_dyn *numbers;   /* with a loss scale */
	struct gt_scalars *parts; /* of several ranks */
};
cudaError_t gt_cu_check_start(const struct gt_cu_check *a, cudaStream_t s);

/* ---- update.cu --------------------------------------------------------------------------------------------------------------- */
#define GT_CU_CHUNK 4096 /* elements of the flat arena that one block updates, all of one segment */
struct gt_cu_chunk {
	int64_t begin;
	int32_t n, seg;
};
struct gt_cu_update {
	float *p, *state[GT_MAX_STATES];
	const float *g;
	uint16_t *work;                   /* in attr.work_dtype, bf16 or f16; NULL: none */
	const struct gt_scalars *scalars; /* NULL: no clipping, no loss scale, never skipped */
	const struct gt_seg *seg;         /* device memory */
	const struct gt_cu_chunk *chunk; /* device memory */
	int nchunks;
	struct gt_attr_update attr; /* without seg */
	struct gt_cu_dyn dyn;
};
cudaError_t gt_cu_update_start(int code, const struct gt_cu_update *a, cudaStream_t s);

/* Sum of squares: the same chunks, lanes and tree as the CPU backend's, so the same bits. part: one double a chunk of 4096, at least one;
 * counter: one, zero before and behind. */
cudaError_t gt_cu_sumsq_start(const float *x, int64_t n, double *part, double *out, bool add, uint32_t *counter, cudaStream_t s);
/* The same into check's scalars, and then the check, by the block that comes last. */
cudaError_t gt_cu_sumsq_check_start(const float *x, int64_t n, double *part, uint32_t *counter, const struct gt_cu_check *check, cudaStream_t s);

/* ---- muon.cu ----------------------------------------------------------------------------------------------------------------- */
/* A weight [out, …] whose memory has `out` slowest: the others may stand in any order, which the iteration does not see. */
struct gt_cu_muon_matrix {
	struct gt_seg hyper;
	double adjust;
	int64_t x;           /* where it begins among the operands of the products, in elements: [rows, up to whole blocks][ld] */
	int32_t rows, cols, ld;
	int32_t first, chunks; /* of gt_cu_muon.chunk */
};
struct gt_cu_muon_factor { /* of a matrix, at one step */
	float direction, weight, step; /* p = p * weight - step * NS(d * direction) */
};
struct gt_cu_muon {
	float *p, *buf;
	const float *g;
	uint16_t *work;
	const struct gt_scalars *scalars;       /* NULL: as for gt_cu_update */
	const struct gt_cu_muon_matrix *matrix; /* device memory, as what follows */
	const struct gt_cu_chunk *chunk, *fill; /* of the arena; of the operands, begin from the matrix's on, multiples of 4. seg: the matrix */
	int nchunks, nfill;
	struct gt_attr_update attr; /* without seg */
	bool normalize;
	double *part;                     /* scratch, two a chunk */
	struct gt_cu_muon_factor *factor; /* scratch, one a matrix */
	uint32_t *counter;                /* one a matrix, zero before and behind */
	void *x;                          /* the operands: f32 or bf16 */
	struct gt_cu_dyn dyn;
};
/* Momentum, and x = the directions, of norm 1. A skipped step leaves zeros there. */
cudaError_t gt_cu_muon_begin(bool bf16, const struct gt_cu_muon *a, cudaStream_t s);
/* The step, by x. */
cudaError_t gt_cu_muon_end(bool bf16, const struct gt_cu_muon *a, cudaStream_t s);

/* ---- colsum.cu --------------------------------------------------------------------------------------------------------------- */
/* out[cols] = (add: +=) column sums of x[rows, cols], in a fixed order. scratch: as many bytes as gt_cu_colsum_scratch says. */
cudaError_t gt_cu_colsum_start(int type, const void *x, float *out, int64_t rows, int64_t cols, bool add, void *scratch, cudaStream_t s);
size_t gt_cu_colsum_scratch(int64_t rows, int64_t cols);

/* ---- batchnorm.cu ------------------------------------------------------------------------------------------------------------ */
/* x and y are [rows, c]. gamma, beta NULL: 1 and 0. batch: statistics of the batch, else the running ones. update: the running ones are
 * updated, and nbt where it is not NULL. res: summand before the relu, or NULL. mean, rstd: where the statistics go, or NULL. again:
 * where they come from; eps, momentum and what is running are not looked at. part: [3, c] (moments.h) of the batch, or NULL; join: to
 * what stands there. y NULL: nothing but part is made. */
struct gt_cu_batchnorm {
	const void *x, *res;
	void *y;
	const float *gamma, *beta;
	float *rmean, *rvar, *mean, *rstd;
	int64_t *nbt;
	int64_t rows, c;
	double eps, momentum;
	bool batch, update, relu, again;
	double *part;
	bool join;
	float *scratch;
	uint32_t *counter; /* as many as gt_cu_batchnorm_counters says, zero before and behind; of one call at a time */
};
cudaError_t gt_cu_batchnorm_start(int type, const struct gt_cu_batchnorm *a, cudaStream_t s);

/* mask: dy counts everywhere (0), where bn(x) > 0 (1), where y > 0 (2). g: dy so masked, or NULL. dx, dgamma, dbeta may be NULL.
 * sums: [3, c], where the sums of dy and of dy * (x - mean) and the count go, or NULL; given: where they come from, with mask 0, or NULL. */
struct gt_cu_batchnorm_dx {
	const void *dy, *x, *y;
	void *dx, *g;
	const float *gamma, *beta, *mean, *rstd;
	float *dgamma, *dbeta;
	int64_t rows, c;
	int mask;
	bool batch, add_gamma, add_beta;
	double *sums;
	const double *given;
	float *scratch;
	uint32_t *counter; /* as above */
};
cudaError_t gt_cu_batchnorm_dx_start(int type, const struct gt_cu_batchnorm_dx *a, cudaStream_t s);
size_t gt_cu_batchnorm_scratch(int64_t rows, int64_t c); /* bytes, of either */
int64_t gt_cu_batchnorm_counters(int64_t c);

/* parts: n of [3, c], n < GT_MOMENTS_PARTS. What is not wanted is NULL; rmean and rvar both or neither. */
struct gt_cu_moments {
	double *parts, *part;
	float *rmean, *rvar, *mean, *rstd;
	int64_t *nbt;
	int64_t c;
	double eps, momentum;
	int n;
	bool deferred, join; /* as in gt_attr_norm; as above */
};
cudaError_t gt_cu_moments_start(const struct gt_cu_moments *a, cudaStream_t s);

/* ---- layernorm.cu ------------------------------------------------------------------------------------------------------------ */
/* x and y are [rows, cols]. gamma and beta NULL: not affine. pixels: 0, parameters stand in the order of a row; else they are plain
 * [cols / pixels, pixels] and a row is NHWC. mean, rstd: one a row, or NULL. */
struct gt_cu_layernorm {
	const void *x;
	void *y;
	const float *gamma, *beta;
	float *mean, *rstd;
	int64_t rows, cols, pixels;
	double eps;
};
cudaError_t gt_cu_layernorm_start(int type, const struct gt_cu_layernorm *a, cudaStream_t s);

/* dx may be dy; dx, dgamma, dbeta may be NULL. */
struct gt_cu_layernorm_dx {
	const void *dy, *x;
	void *dx;
	const float *gamma, *mean, *rstd;
	float *dgamma, *dbeta;
	int64_t rows, cols, pixels;
	bool add_gamma, add_beta;
	float *scratch;
};
cudaError_t gt_cu_layernorm_dx_start(int type, const struct gt_cu_layernorm_dx *a, cudaStream_t s);
size_t gt_cu_layernorm_scratch(int64_t rows, int64_t cols); /* bytes, of the gradient with parameters */

/* ---- pool.cu ----------------------------------------------------------------------------------------------------------------- */
/* NHWC. x [n, h, w, c] and y [n, oh, ow, c]; idx is like y, and may be NULL in the forward pass of a maximum. Numbers of windows and sizes
 * are h, w; adaptive: windows follow from the shapes alone. */
struct gt_cu_pool {
	const void *in; /* x, or dy */
	void *out;      /* y, or dx */
	int32_t *idx;   /* maximum: what forward writes and backward reads */
	int64_t n, c;
	int32_t h, w, oh, ow;
	int32_t kernel[2], stride[2], padding[2];
	bool adaptive, include_pad;
};
cudaError_t gt_cu_pool_start(int type, bool max, bool back, const struct gt_cu_pool *a, cudaStream_t s);

/* ---- conv_tail.cu ------------------------------------------------------------------------------------------------------------ */
/* out[n] = (add: +=) x[n]; both to 16 bytes. */
/* Numbers in [-1, 1), other ones at every place. */
cudaError_t gt_cu_noise_start(int type, void *x, int64_t n, uint32_t seed, cudaStream_t s);
cudaError_t gt_cu_widen_start(int type, const void *x, float *out, int64_t n, bool add, cudaStream_t s);

/* ---- views.cu ---------------------------------------------------------------------------------------------------------------- */
/* y[n] = the mean of x[views][n], each view with its weight. */
cudaError_t gt_cu_views_start(int type, const void *x, void *y, int64_t n, int views, cudaStream_t s);

/* ---- gather.cu --------------------------------------------------------------------------------------------------------------- */
struct gt_cu_gather {
	const uint8_t *images;
	const int32_t *labels;
	const int64_t *index;
	void *x;
	int32_t *target;
	int64_t n, samples, images_n; /* n: rows of x, view after view */
	int64_t rows, length; /* of the index; rows 0: it is the batch itself */
	int32_t c, h, w;
	struct gt_attr_gather attr;
	struct gt_cu_fault *fault;
	struct gt_cu_dyn dyn;
};
cudaError_t gt_cu_gather_start(int type, const struct gt_cu_gather *a, cudaStream_t s);

#ifdef __cplusplus
}
#endif
#endif
