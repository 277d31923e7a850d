/* The interface between the C files of the CUDA backend and its kernels, for C and C++: arguments, and functions that start a kernel on a
 * stream.
 *
 *     struct gt_cu_eltwise a = {.in = {x}, .out = y, .n = n, .nin = 1};
 *     cudaError_t e = gt_cu_eltwise_start(GT_OP_RELU, false, GT_CU_BF16, &a, stream);
 *
 * Pointers are device memory. Each function returns cudaSuccess or the error of the launch; an error inside a kernel appears at the next
 * wait. Fields named `counter` point to counters that are 0 before a launch and that the kernel leaves at 0. Arguments named `type` are
 * GT_CU_F32, ... */
#ifndef GT_KERNELS_CUDA_LAUNCH_H
#define GT_KERNELS_CUDA_LAUNCH_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "mlp_division.h"
#include "offers.h"

enum { GT_CU_F32, GT_CU_BF16, GT_CU_F16, GT_CU_TYPES }; /* dtypes of activations */

/* The numbers of a step. Kernels read *dev if dev is not NULL, so that a replayed graph sees new values, else host. */
struct gt_cu_step_args {
	const struct gt_step_args *dev;
	struct gt_step_args host;
};

/* A fault that a kernel found in its data. The struct is in host memory, and later faults do not overwrite the first one. The codes mean
 * that a label, a sample index, a position in the epoch or a token is out of range. */
enum { GT_CU_FAULT_LABEL = 1, GT_CU_FAULT_INDEX, GT_CU_FAULT_PLACE, GT_CU_FAULT_TOKEN };
struct gt_cu_fault {
	int32_t code;
	int32_t value_hi; /* padding: keeps value at offset 8 with every compiler */
	int64_t value, at, limit; /* the wrong value, its position in the data, and the limit that it violates */
};

/* ---- families that are whole in one .cu file: softmax.cu, layernorm.cu --------------------------------------------------------------- */
/* The call that gt_cu_family.start receives: operands and their device addresses. */
struct gt_cu_call {
	const struct gt_opcall *op; /* a copy of the call that was prepared, which has the signature of its operation (opsig.h) */
	int type;                   /* dtype of the activations: GT_CU_F32, ... */
	void *const *in, *const *out, *scratch;
	struct gt_cu_fault *fault;
};

static inline int gt_cu_activation(enum gt_dtype t) /* GT_CU_F32, ... */
{
	return t == GT_BF16 ? GT_CU_BF16 : t == GT_F16 ? GT_CU_F16 : GT_CU_F32;
}

static inline void *gt_cu_in(const struct gt_cu_call *c, int i) /* device address of input i; NULL: absent */
{
	return i < c->op->nin && c->op->in[i] ? c->in[i] : NULL;
}

static inline void *gt_cu_out(const struct gt_cu_call *c, int i)
{
	return i < c->op->nout && c->op->out[i] ? c->out[i] : NULL;
}

struct gt_cu_family {
	cudaError_t (*start)(const struct gt_cu_call *c, cudaStream_t s);
	size_t (*scratch)(const struct gt_opcall *op);    /* returns the bytes of workspace of a call; NULL: no call needs any */
	/* Returns the reason why the call is refused, or NULL if it is accepted, and sets open layouts. The pointer is NULL if no call is
	 * refused. */
	const char *(*refuse)(const struct gt_opcall *op);
	const char *describe;                             /* name of the implementation, as gt_backend.describe returns it */
};
struct gt_dev;
struct gt_kernel;
enum gt_code gt_cuda_family(struct gt_dev *dev, const struct gt_opcall *call, const struct gt_cu_family *f, struct gt_kernel **out,
                            struct gt_err *err); /* cuda.c */

/* Defines the prepare function of a family. */
#define GT_CU_FAMILY(name, ...)                                                                                                            \
	extern "C" enum gt_code gt_cuda_##name(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)   \
	{                                                                                                                                      \
		static const struct gt_cu_family family = {__VA_ARGS__};                                                                           \
		return gt_cuda_family(dev, call, &family, out, err);                                                                               \
	}

/* ---- eltwise.cu -------------------------------------------------------------------------------------------------------------- */
/* The arguments of an element-wise operation. code is one of GT_OP_RELU ... GT_OP_HARDSWISH_DX, GT_OP_MUL, GT_OP_ADD. gelu_tanh is true if
 * gt_attr_gelu.approximate is 1. out may be the same memory as in[0]. */
struct gt_cu_eltwise {
	const void *in[GT_MAX_IO];
	void *out;
	int64_t n; /* number of elements */
	int nin;
	float slope;
	bool aligned; /* every pointer is aligned to 16 bytes */
};
cudaError_t gt_cu_eltwise_start(int code, bool gelu_tanh, int type, const struct gt_cu_eltwise *a, cudaStream_t s);
cudaError_t gt_cu_cast_start(int from, int to, const void *in, void *out, int64_t n, cudaStream_t s); /* from != to */

/* Sets every row of y[rows, cols] to the f32 vector row[cols], rounded to y's dtype. */
cudaError_t gt_cu_fill_rows_start(int type, const float *row, void *y, int64_t rows, int64_t cols, cudaStream_t s);

/* ---- dropout.cu -------------------------------------------------------------------------------------------------------------- */
struct gt_cu_dropout {
	const void *x;
	void *y;
	int64_t samples, n; /* number of samples; number of elements of a sample */
	int64_t cols;       /* number of channels, if whole channels are dropped; 1: whole samples are; 0: single elements */
	uint32_t layer, threshold;
	float scale;
	bool aligned; /* x and y are aligned to 16 bytes */
	struct gt_cu_step_args step_args;
};
cudaError_t gt_cu_dropout_start(int type, const struct gt_cu_dropout *a, cudaStream_t s);

/* ---- shape.cu ---------------------------------------------------------------------------------------------------------------- */
/* Transposes `batch` matrices of rows x cols elements. size is the number of bytes of an element: 2 or 4. */
cudaError_t gt_cu_transpose_start(size_t size, const void *in, void *out, int64_t batch, int64_t rows, int64_t cols, cudaStream_t s);

/* Joins or splits rows of start[nparts] units. Part i has the units start[i] ... start[i + 1] - 1 of every row, with start[0] = 0, and is
 * its own tensor. A unit has 2, 4 or 16 bytes (the argument unit); every pointer and width is a multiple of it. If join is true, the parts
 * are copied to whole, otherwise whole to the parts; a NULL part is left out. */
struct gt_cu_concat {
	void *part[GT_MAX_IO];
	void *whole;
	int64_t start[GT_MAX_IO + 1], rows;
	int nparts;
	bool join;
};
cudaError_t gt_cu_concat_start(size_t unit, const struct gt_cu_concat *a, cudaStream_t s);

/* ---- loss.cu ----------------------------------------------------------------------------------------------------------------- */
struct gt_cu_loss {
	const void *x;
	const int32_t *target; /* label of each row; not used if dense is given */
	const float *dense;    /* target of each output, [rows, cols]; NULL: labels */
	const float *weights;  /* gt_attr_loss.weights; NULL: 1 */
	bool by_class;         /* the weights are those of the classes: a row counts with the weight of its label */
	const double *scale; /* factor of the gradient; NULL: 1 */
	void *dx; /* gradient of x; may be the same memory as x; NULL: no gradient is computed */
	struct gt_metrics *metrics;
	double *loss;  /* workspace: the loss of each row */
	int32_t *rank; /* workspace: the rank of the target in each row; -1: the row does not count; INT32_MAX: its target has no class */
	uint32_t *counter; /* one counter, which is 0 before a launch */
	int64_t rows, cols, ignore; /* ignore: gt_attr_loss.ignore_index */
	double smoothing, beta;
	struct gt_cu_fault *fault;
	struct gt_cu_step_args step_args;
};
cudaError_t gt_cu_loss_start(int code, int type, const struct gt_cu_loss *a, cudaStream_t s);

/* ---- head.cu ----------------------------------------------------------------------------------------------------------------- */
/* A linear layer with few outputs and the loss after it. x [rows, in], w [cols, in]; writes y [rows, cols], which the loss reads. */
struct gt_cu_head {
	const void *x, *w;
	const float *bias; /* NULL: none */
	void *y;
	int64_t in;
	struct gt_cu_loss loss; /* arguments of the loss, whose x is the member y of this struct */
};
cudaError_t gt_cu_head_start(int code, int type, const struct gt_cu_head *a, cudaStream_t s);

/* The gradients of a linear layer with few outputs: dx = dy w, but 0 where mask <= 0; dw = dy' x; db = the column sums of dy. If add_dw or
 * add_db is true, dw or db is added to the existing values. db may be NULL. */
struct gt_cu_head_back {
	const void *dy, *x, *w, *mask; /* mask may be x; NULL: no mask */
	void *dx;
	float *dw, *db;
	int64_t rows, in, cols;
	bool add_dw, add_db;
};
cudaError_t gt_cu_head_back_start(int type, const struct gt_cu_head_back *a, cudaStream_t s);

/* How a batch finds its samples in the dataset. */
struct gt_cu_lookup {
	const int64_t *index;
	/* number of rows of the result (samples * views); number of samples of the batch; number of samples of the dataset */
	int64_t n, samples, all;
	int64_t rows, length; /* shape of the operand index; rows is 0 if index lists the samples of the batch itself */
	struct gt_cu_fault *fault;
	struct gt_cu_step_args step_args;
};

/* ---- mlp_steps.cu, mlp_more.cu ----------------------------------------------------------------------------------------------- */
/* What a layer has besides its part of the division (mlp_division.h): the offsets of weight and bias in p, and their hyper-parameters. */
struct gt_cu_mlp_params {
	int64_t w, b; /* b is -1: no bias */
	struct gt_seg seg[2];
	struct gt_mlp_act act;
};
struct gt_cu_mlp {
	const uint8_t *images;
	const int32_t *labels;
	struct gt_cu_lookup look; /* the numbers of step s are look.step_args.dev[s] */
	struct gt_attr_gather gather;
	int32_t channels, pixels;
	float *p, *state[2], *average; /* average: NULL if there is none */
	struct gt_scalars *scalars;
	struct gt_scaler *scaler;
	float *work; /* the workspace; it begins with GT_MLP_HEAD words */
	struct gt_mlp_division d;
	struct gt_cu_mlp_params param[GT_MLP_LAYERS];
	int loss_code, update_code;    /* enum gt_opcode */
	struct gt_attr_loss loss;      /* without its pointer to weights */
	float class_weight[GT_MLP_CLASSES];
	double clip_norm;              /* 0: no clipping */
	struct gt_attr_update update;  /* without clip_norm */
	struct gt_attr_update ema;     /* of the operation ema */
};
/* Checks that all blocks of a division can run at once on the card of this thread. Returns cudaErrorCooperativeLaunchTooLarge if not. */
cudaError_t gt_cu_mlp_check(const struct gt_mlp_division *d, const struct gt_mlp_card *card);
cudaError_t gt_cu_mlp_start(const struct gt_cu_mlp *a, cudaStream_t s);

/* ---- check.cu ---------------------------------------------------------------------------------------------------------------- */
struct gt_cu_check {
	struct gt_attr_check attr;
	struct gt_scalars *scalars;
	struct gt_scaler *scaler;
	struct gt_step_args *numbers;   /* the step's numbers for a run with a loss scale; else NULL */
	struct gt_scalars *parts; /* the scalars of several ranks; else NULL */
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
	uint16_t *work;                   /* 16-bit copy of p in attr.work_dtype, bf16 or f16; NULL: none */
	const struct gt_scalars *scalars; /* NULL: no clipping, no loss scale, and the step is never skipped */
	const struct gt_seg *seg;         /* device memory */
	const struct gt_cu_chunk *chunk; /* device memory */
	int nchunks;
	/* An update by norms: the index of the first chunk of each segment and the number of chunks, in device memory; workspace of two
	 * sums for each chunk and of a ratio for each segment. */
	const int32_t *first;
	double *part;
	float *ratio;
	struct gt_attr_update attr; /* without seg */
	struct gt_cu_step_args step_args;
};
cudaError_t gt_cu_update_start(int code, const struct gt_cu_update *a, cudaStream_t s);

/* Computes the sum of squares with the same chunks, lanes and tree as the CPU backend, and so the same bits. part is workspace of one
 * double for each chunk of 4096 elements, at least one. counter points to one counter, which is 0 before and after. */
cudaError_t gt_cu_sumsq_start(const float *x, int64_t n, double *part, double *out, bool add, uint32_t *counter, cudaStream_t s);
/* Computes the sum of squares as gt_cu_sumsq_start does and stores it in check's scalars. The last block to finish then does the operation
 * check. */
cudaError_t gt_cu_sumsq_check_start(const float *x, int64_t n, double *part, uint32_t *counter, const struct gt_cu_check *check,
                                    cudaStream_t s);

/* Raises *out to rows * max|dy| * max(1, max|x|), with a NaN above all (the operation bound). dy and x are of the same type, and may be the
 * same memory. part is workspace of GT_CU_BOUND_PARTS pairs; counter as above. */
#define GT_CU_BOUND_PARTS 1024
struct gt_cu_bound {
	const void *dy, *x;
	int64_t ndy, nx; /* numbers of elements */
	double rows;
	uint32_t *part;
	double *out;
	uint32_t *counter;
};
cudaError_t gt_cu_bound_start(int type, const struct gt_cu_bound *a, cudaStream_t s);

/* ---- embedding.cu ------------------------------------------------------------------------------------------------------------ */
#define GT_CU_ROW_CHUNK 16 /* sorted entries that a warp sums */
struct gt_cu_embedding {
	const int32_t *tokens, *lengths; /* lengths NULL: every token counts */
	int32_t *idx;                    /* mode max: the place of the largest element in the sample; -1: none */
	const float *w;                  /* forward: the table */
	void *y;                         /* forward: the result */
	const void *dy;                  /* NULL: a forward pass */
	float *dw;                       /* the gradient, or the table that is updated */
	uint64_t *tile, *sorted;         /* workspace: an element for each entry */
	float *part, *share;             /* workspace: two rows of cols for each chunk of entries; an element for each sample */
	int64_t entries, step, first;    /* entry e is tokens[e * step + first] */
	int64_t bag;                     /* entries of a sample, whose row in y or dy they share; 1 without bags */
	int64_t rows, cols, padding;     /* of the table; the token without a gradient, which no bag counts: -1: none */
	int64_t begin, end;              /* the rows that a gradient covers */
	int mode;                        /* enum gt_bag; GT_BAG_SUM without bags */
	bool zero, update;               /* dw is set to 0 first; dw is the table, to which sgd without momentum applies the gradient */
	struct gt_attr_update attr;      /* of the update, without seg */
	struct gt_seg seg;
	const struct gt_scalars *scalars; /* NULL: as in gt_cu_update */
	struct gt_cu_step_args step_args;
	struct gt_cu_fault *fault;
};
cudaError_t gt_cu_embedding_start(int type, bool bags, const struct gt_cu_embedding *a, cudaStream_t s);

/* ---- muon.cu ----------------------------------------------------------------------------------------------------------------- */
/* A weight [out, ...] in whose memory `out` is the slowest-changing dimension. The order of the other dimensions does not affect the
 * iteration. */
struct gt_cu_muon_matrix {
	struct gt_seg hyper;
	double adjust;
	int64_t x;           /* offset, in elements, of its operand of the products: [rows, rounded up to whole blocks][ld] */
	int32_t rows, cols, ld;
	int32_t first, chunks; /* first entry of the matrix in gt_cu_muon.chunk; number of its entries */
};
struct gt_cu_muon_factor { /* the factors of a matrix at one step */
	float direction, weight, step; /* p = p * weight - step * NS(d * direction) */
};
struct gt_cu_muon {
	float *p, *buf;
	const float *g;
	uint16_t *work;
	const struct gt_scalars *scalars;       /* NULL: no clipping, no loss scale, and the step is never skipped */
	const struct gt_cu_muon_matrix *matrix; /* the matrices, in device memory; all later pointers of this struct are device memory too */
	/* chunk: chunks of the arena. fill: chunks of the operands of the products, with begin relative to the matrix and a multiple of 4. In
	 * both, gt_cu_chunk.seg is the number of the matrix. */
	const struct gt_cu_chunk *chunk, *fill;
	int nchunks, nfill;
	struct gt_attr_update attr; /* without seg */
	bool normalize;
	/* The call is muon.directions or muon.apply: the kernels before the products do not store the momentum; the one after them does. */
	bool split;
	double *part;                     /* workspace, two numbers for each chunk */
	struct gt_cu_muon_factor *factor; /* one struct for each matrix: workspace; with split, at the start of the operand d */
	uint32_t *counter;                /* one counter for each matrix */
	void *x;                          /* the operands of the products: f32 or bf16 */
	struct gt_cu_step_args step_args;
};
/* Updates the momentum, unless split is set, and writes the update directions, normalised to norm 1, to x. In a skipped step x becomes
 * zero. */
cudaError_t gt_cu_muon_begin(bool bf16, const struct gt_cu_muon *a, cudaStream_t s);
/* Updates the parameters p with the update directions in x and, if split is set, the momentum. */
cudaError_t gt_cu_muon_end(bool bf16, const struct gt_cu_muon *a, cudaStream_t s);

/* ---- colsum.cu --------------------------------------------------------------------------------------------------------------- */
/* Writes the column sums of x[rows, cols] to out[cols], or adds them if add is true. The order of additions is fixed. scratch is workspace
 * of gt_cu_colsum_scratch bytes. */
cudaError_t gt_cu_colsum_start(int type, const void *x, float *out, int64_t rows, int64_t cols, bool add, void *scratch, cudaStream_t s);
size_t gt_cu_colsum_scratch(int64_t rows, int64_t cols);

/* ---- batchnorm.cu, batchnorm_dx.cu ------------------------------------------------------------------------------------------- */
/* The arguments of batch normalisation. x and y are [rows, c]. A gamma of NULL counts as 1, a beta of NULL as 0. If batch is true, the
 * statistics of the batch are used, otherwise the running statistics. If update is true, the running statistics are updated, and nbt if it
 * is not NULL. res is added before the activation act (enum gt_act); it may be NULL. mean and rstd receive the statistics, unless they are
 * NULL. If again is true, the statistics are read from mean and rstd instead; eps, momentum and the running statistics are not used. part,
 * if not NULL, receives the statistics of the batch as [3, c] (moments.h); if join is true, they are merged with those that part holds. If
 * y is NULL, only part is computed. */
struct gt_cu_batchnorm {
	const void *x, *res;
	void *y;
	const float *gamma, *beta;
	float *rmean, *rvar, *mean, *rstd;
	int64_t *nbt;
	int64_t rows, c;
	double eps, momentum;
	bool batch, update, again;
	int act;
	double *part;
	bool join;
	float *scratch;
	uint32_t *counter; /* gt_cu_batchnorm_counters counters; one call at a time may use them */
};
cudaError_t gt_cu_batchnorm_start(int type, const struct gt_cu_batchnorm *a, cudaStream_t s);

/* The arguments of the gradient of batch normalisation. more, if not NULL, is added to dy first. mask is the gradient of an activation that
 * follows. g, if not NULL, receives the dy that results. dx, dgamma and dbeta may be NULL. sums, if not NULL, receives [3, c]: the sums of
 * dy and of dy * (x - mean), and the number of values. given, if not NULL, holds such sums, from which dx is computed with mask 0. */
enum {
	GT_CU_MASK_NONE,
	GT_CU_MASK_BN, /* dy counts where bn(x) > 0 */
	GT_CU_MASK_Y,  /* dy counts where y > 0 */
	GT_CU_MASK_GELU,
	GT_CU_MASK_GELU_TANH /* dy is multiplied by the derivative of a gelu at bn(x) */
};
struct gt_cu_batchnorm_dx {
	const void *dy, *more, *x, *y;
	void *dx, *g;
	const float *gamma, *beta, *mean, *rstd;
	float *dgamma, *dbeta;
	int64_t rows, c;
	int mask;
	bool batch, add_gamma, add_beta;
	double *sums;
	const double *given;
	float *scratch;
	uint32_t *counter; /* gt_cu_batchnorm_counters counters; one call at a time may use them */
};
cudaError_t gt_cu_batchnorm_dx_start(int type, const struct gt_cu_batchnorm_dx *a, cudaStream_t s);
size_t gt_cu_batchnorm_scratch(int64_t rows, int64_t c); /* bytes of workspace of both functions */
int64_t gt_cu_batchnorm_counters(int64_t c);

/* Merges n parts of [3, c], n < GT_MOMENTS_PARTS. The caller sets outputs that it does not need to NULL. rmean and rvar are either both
 * NULL or both not NULL. */
struct gt_cu_moments {
	double *parts, *part;
	float *rmean, *rvar, *mean, *rstd;
	int64_t *nbt;
	int64_t c;
	double eps, momentum;
	int n;
	bool deferred, join; /* deferred: as gt_attr_norm.deferred; join: merge with the statistics that `part` holds */
};
cudaError_t gt_cu_moments_start(const struct gt_cu_moments *a, cudaStream_t s);

/* ---- pool.cu ----------------------------------------------------------------------------------------------------------------- */
/* The arguments of pooling in NHWC: x is [n, h, w, c] and y is [n, oh, ow, c]. idx has the shape of y and may be NULL in the forward pass
 * of a maximum. Pairs are height, width. If adaptive is true, the pooling windows follow from the shapes alone. */
struct gt_cu_pool {
	const void *in; /* x, or dy */
	void *out;      /* y, or dx */
	/* maximum pooling: position of each maximum, which the forward pass writes and the backward pass reads: i32, in its input plane, or,
	 * if `bytes` is true, u8, in its window */
	void *idx;
	bool bytes;
	int64_t n, c;
	int32_t h, w, oh, ow;
	int32_t kernel[2], stride[2], padding[2];
	bool adaptive, include_pad;
};
cudaError_t gt_cu_pool_start(int type, bool max, bool back, const struct gt_cu_pool *a, cudaStream_t s);

/* ---- conv_tail.cu ------------------------------------------------------------------------------------------------------------ */
/* Fills x with numbers in [-1, 1) that differ from element to element. */
cudaError_t gt_cu_noise_start(int type, void *x, int64_t n, uint32_t seed, cudaStream_t s);
/* Converts x[n] to f32 and stores it in out[n], or adds it to out[n] if add is true. Both are aligned to 16 bytes. */
cudaError_t gt_cu_widen_start(int type, const void *x, float *out, int64_t n, bool add, cudaStream_t s);
/* The same for the first cols elements of each row of x[rows, ld], of 16 bits: out is [rows, cols]. */
cudaError_t gt_cu_widen_rows_start(int type, const void *x, int32_t ld, float *out, int64_t rows, int32_t cols, bool add, cudaStream_t s);
/* Copies x[rows, cols], of 16 bits, to y[rows, ld] and fills the rows up with zeros. ld is a multiple of 8, and y aligned to 16 bytes. */
cudaError_t gt_cu_pad_rows_start(const void *x, int32_t cols, void *y, int32_t ld, int64_t rows, cudaStream_t s);

/* ---- views.cu ---------------------------------------------------------------------------------------------------------------- */
/* y[n] = the weighted mean of x[views][n] over the views (aug.h). */
cudaError_t gt_cu_views_start(int type, const void *x, void *y, int64_t n, int views, cudaStream_t s);

/* ---- gather.cu --------------------------------------------------------------------------------------------------------------- */
struct gt_cu_gather {
	const uint8_t *images;
	const int32_t *labels;
	void *x;
	int32_t *target; /* NULL: only images */
	int32_t c, h, w;
	int32_t ld; /* 0, or the number of channels of x, of 16 bits: a multiple of 8; those from c on are set to 0 */
	struct gt_attr_gather attr;
	struct gt_cu_lookup look;
};
cudaError_t gt_cu_gather_start(int type, const struct gt_cu_gather *a, cudaStream_t s);

/* recipes.cu: images with recipes (recipe.h) */
struct gt_cu_recipes {
	const uint8_t *rows; /* [look.all, row] */
	const int32_t *labels;
	void *x;
	int32_t *target; /* NULL: only images */
	int64_t row;     /* bytes; a multiple of 16 */
	int32_t c, h, w; /* c is 1 or 3 */
	int32_t ld;      /* as in gt_cu_gather */
	int32_t ops, contrasts, views; /* as in gt_attr_recipes */
	bool resize;
	float scale[3], shift[3];
	struct gt_cu_lookup look;
};
cudaError_t gt_cu_gather_recipes_start(int type, const struct gt_cu_recipes *a, cudaStream_t s);

/* Rows of numbers. type: that of y; -1: i32, else rows are f32. */
struct gt_cu_gather_rows {
	const void *from; /* [look.all, width] */
	void *y;          /* [look.n, width] */
	int64_t width;
	struct gt_cu_lookup look;
};
cudaError_t gt_cu_gather_rows_start(int type, const struct gt_cu_gather_rows *a, cudaStream_t s);

/* Sequences of different lengths: from[start[i] ... start[i + 1] - 1], at most width numbers, then pad. */
struct gt_cu_gather_ragged {
	const int32_t *from;
	const int64_t *start; /* [look.all + 1] */
	int32_t *y;           /* [look.n, width] */
	int64_t width;
	int32_t pad;
	struct gt_cu_lookup look;
};
cudaError_t gt_cu_gather_ragged_start(const struct gt_cu_gather_ragged *a, cudaStream_t s);

#ifdef __cplusplus
}
#endif
#endif
