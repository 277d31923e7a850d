/* The interface between the C files of the CUDA backend and its kernels, for C and C++: the functions of families that are in a single .cu
 * file, and for other families arguments and functions that start a kernel on a stream.
 *
 *     struct gt_cu_eltwise a = {.x = {x}, .out = y, .n = n, .nin = 1};
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

#include "losses.h"
#include "offers.h"
#include "optimizer.h"

struct gt_dev;
struct gt_kernel;
enum { GT_CU_F32, GT_CU_BF16, GT_CU_F16, GT_CU_TYPES }; /* dtypes of activations */

/* The values of a step. Kernels read *dev if dev is not NULL, so that a replayed graph sees new values, else `host`. */
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

/* ---- families that are whole in one .cu file ----------------------------------------------------------------------------------------- */
/* A table that a call reads in addition to its operands, in device memory. */
struct gt_cu_table {
	void *p;
	int64_t n; /* number of entries */
};
#define GT_CU_TABLES 3 /* maximum number of tables of a call */

/* The call that gt_cu_family.start receives: operands and their device addresses. */
struct gt_cu_call {
	const struct gt_opcall *op; /* a copy of the call that was prepared, which has the signature of its operation (opsig.h) */
	int type;                   /* dtype of input 0: GT_CU_F32, ...; -1: it is not a dtype of activations */
	void *const *in, *const *out, *scratch;
	struct gt_binding *binding;       /* used by GT_CU_BIND, which fills it at the first launch */
	uint32_t *counter;                /* as many counters as gt_cu_family.counters returned */
	const struct gt_cu_table *table;  /* tables that gt_cu_family.tables has uploaded */
	struct gt_cu_step_args step_args; /* set if gt_cu_family.reads_step_args returned true */
	struct gt_cu_fault *fault;
};

/* Sets the members of args that the array slots names to the addresses of the operands; members of absent operands keep their values. */
#define GT_CU_BIND(c, slots, args) gt_cu_bind(c, slots, sizeof(slots) / sizeof *(slots), args)
static inline void gt_cu_bind(const struct gt_cu_call *c, const struct gt_operand_slot *slots, size_t n, void *args)
{
	if (!c->binding->n)
		gt_binding_make(c->binding, slots, n, c->op);
	gt_binding_apply(c->binding, args, c->in, c->out);
}

/* Returns the descriptor of the operand that an operation and its gradient name differently: "x", "dx". */
static inline struct gt_tdesc *gt_cu_operand(const struct gt_opcall *op, const char *name, const char *gradient)
{
	struct gt_tdesc *d = gt_opcall_operand(op, name);
	return d ? d : gt_opcall_operand(op, gradient);
}

/* Returns the index of a dtype in the tables of kernels (GT_CU_F32, ...), or -1 if the kernels do not support it. */
static inline int gt_cuda_type(enum gt_dtype t)
{
	return t == GT_F32 ? GT_CU_F32 : t == GT_BF16 ? GT_CU_BF16 : t == GT_F16 ? GT_CU_F16 : -1;
}

/* Returns the number of channels in the memory of x if they are padded (gather in opcall.h); 0: they are not. */
static inline int32_t gt_cuda_padded_channels(const struct gt_tdesc *x)
{
	return x->layout.nblk ? (int32_t)(gt_tdesc_padded(x) / (x->dim[0] * x->dim[2] * x->dim[3])) : 0;
}

/* The functions of a family. All but start may be NULL. */
struct gt_cu_family {
	cudaError_t (*start)(const struct gt_cu_call *c, cudaStream_t s);
	size_t (*scratch)(const struct gt_opcall *op);    /* returns the bytes of workspace of a call; NULL: no call needs any */
	/* Returns the reason why the call is refused, or NULL if it is accepted, and sets open layouts. The pointer is NULL if no call is
	 * refused. */
	const char *(*refuse)(const struct gt_opcall *op);
	const char *describe;                               /* name of the implementation, as gt_backend.describe returns it */
	int64_t (*counters)(const struct gt_opcall *op);    /* returns the number of counters of a call; NULL: no call needs any */
	bool (*reads_step_args)(const struct gt_opcall *op); /* returns whether a call reads the values of a step; NULL: no call reads them */
	const char *(*variant)(const struct gt_opcall *op); /* name of the implementation of a call; NULL: describe */
	/* Uploads the tables of a call to table[0] and on, zeroed before. They are freed with the kernel. NULL: no call has tables. */
	enum gt_code (*tables)(struct gt_dev *dev, const struct gt_opcall *op, struct gt_cu_table *table, struct gt_err *err);
};
enum gt_code gt_cuda_family(struct gt_dev *dev, const struct gt_opcall *call, const struct gt_cu_family *f, struct gt_kernel **out,
                            struct gt_err *err); /* cuda.c */

/* Copies a table of the host to new device memory, which the caller frees with gt_cuda_free. */
enum gt_code gt_cuda_upload(struct gt_dev *dev, const void *src, size_t bytes, void **out, struct gt_err *err);

/* Divides segments of the flat arena into chunks and uploads the list of chunks. */
#define GT_CU_CHUNK 4096 /* elements of the flat arena that one block updates, all of one segment */
struct gt_cu_chunk {
	int64_t begin;
	int32_t n, seg;
};
enum gt_code gt_cuda_upload_chunks(struct gt_dev *dev, const struct gt_seg *seg, int nseg, struct gt_cu_table *out, struct gt_err *err);

/* Functions for gt_cu_family.counters if every call has one counter, and for .reads_step_args if every call reads the values of the
 * step. */
static inline int64_t gt_cu_one_counter(const struct gt_opcall *op)
{
	(void)op;
	return 1;
}

static inline bool gt_cu_always(const struct gt_opcall *op)
{
	(void)op;
	return true;
}

/* Defines the prepare function of a family. */
#define GT_CU_FAMILY(name, ...)                                                                                                            \
	extern "C" enum gt_code gt_cuda_##name(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)   \
	{                                                                                                                                      \
		static const struct gt_cu_family family = {__VA_ARGS__};                                                                           \
		return gt_cuda_family(dev, call, &family, out, err);                                                                               \
	}

/* ---- eltwise.cu -------------------------------------------------------------------------------------------------------------- */
/* The arguments of an element-wise operation. code is an operation of GT_ACTIVATIONS (activation_rows.h), GT_OP_SCALE, GT_OP_MUL or
 * GT_OP_ADD. gelu_tanh is true if gt_attr_gelu.approximate is 1. out may be the same memory as x[0]. */
struct gt_cu_eltwise {
	const void *x[GT_MAX_IO]; /* the inputs */
	void *out;
	int64_t n; /* number of elements */
	int nin;
	float number[2]; /* gt_attr_act.number; the factor of scale */
	bool aligned;    /* every pointer is aligned to 16 bytes */
};
cudaError_t gt_cu_eltwise_start(int code, bool gelu_tanh, int type, const struct gt_cu_eltwise *a, cudaStream_t s);
cudaError_t gt_cu_cast_start(int from, int to, const void *in, void *out, int64_t n, cudaStream_t s); /* from != to */

/* Sets every row of y[rows, cols] to the f32 vector row[cols], rounded to y's dtype. */
cudaError_t gt_cu_fill_rows_start(int type, const float *row, void *y, int64_t rows, int64_t cols, cudaStream_t s);

/* ---- shape.cu ---------------------------------------------------------------------------------------------------------------- */
/* Transposes `batch` matrices of rows x cols elements. size is the number of bytes of an element: 2 or 4. */
cudaError_t gt_cu_transpose_start(size_t size, const void *in, void *out, int64_t batch, int64_t rows, int64_t cols, cudaStream_t s);

/* ---- update.cu --------------------------------------------------------------------------------------------------------------- */
/* The operation check. */
struct gt_cu_check {
	struct gt_attr_check attr;
	struct gt_scalars *scalars;
	struct gt_scaler *scaler;
	struct gt_step_args *numbers; /* the step's values for a run with a loss scale; else NULL */
	struct gt_scalars *parts;     /* the scalars of several ranks; else NULL */
};

/* Computes the sum of squares with the same chunks, lanes and tree as the CPU backend (so with the same bits), and stores it in check's
 * scalars. The last block to finish then does the operation check. part is workspace of one double for each chunk of 4096 elements, at
 * least one. counter points to one counter, which is 0 before and after. */
cudaError_t gt_cu_sumsq_check_start(const float *x, int64_t n, double *part, uint32_t *counter, const struct gt_cu_check *check,
                                    cudaStream_t s);

/* ---- muon.cu ----------------------------------------------------------------------------------------------------------------- */
/* A weight [out, ...] in whose memory `out` is the slowest-changing dimension. The order of the other dimensions does not affect the
 * iteration. */
struct gt_cu_muon_matrix {
	struct gt_seg hyper;
	double adjust;
	int64_t x;           /* offset in gt_cu_muon.x, in elements, of the matrix as operand of the products: [rows rounded up][ld] */
	int32_t rows, cols, ld;
	int32_t first, chunks; /* first entry of the matrix in gt_cu_muon.chunk; number of its entries */
};
struct gt_cu_muon_factor { /* the factors of a matrix at one step */
	float direction, weight, step; /* factors of the update p = p * weight - step * newton_schulz(d * direction) */
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
	double *part;                     /* workspace, two sums for each chunk */
	struct gt_cu_muon_factor *factor; /* workspace, one struct for each matrix */
	uint32_t *counter;                /* one counter for each matrix */
	void *x;                          /* the operands of the products: f32 or bf16 */
	struct gt_cu_step_args step_args;
};
/* Updates the momentum, and writes the update directions, normalised to norm 1, to x. In a skipped step x becomes zero. */
cudaError_t gt_cu_muon_begin(bool bf16, const struct gt_cu_muon *a, cudaStream_t s);
/* Updates the parameters p with the update directions in x. */
cudaError_t gt_cu_muon_end(bool bf16, const struct gt_cu_muon *a, cudaStream_t s);

/* ---- colsum.cu --------------------------------------------------------------------------------------------------------------- */
/* Writes the column sums of x[rows, cols] to out[cols], or adds them if add is true. The order of additions is fixed. scratch is workspace
 * of gt_cu_colsum_scratch bytes. */
cudaError_t gt_cu_colsum_start(int type, const void *x, float *out, int64_t rows, int64_t cols, bool add, void *scratch, cudaStream_t s);
size_t gt_cu_colsum_scratch(int64_t rows, int64_t cols);

/* ---- attention_lengths.cu ---------------------------------------------------------------------------------------------------- */
/* Sets all[i] to `tokens` and limited[i] to the length of sample i, at least 1 and at most `tokens`. */
cudaError_t gt_cu_limit_lengths_start(const int32_t *lengths, int64_t samples, int64_t tokens, int32_t *all, int32_t *limited,
                                      cudaStream_t s);
/* Sets y [samples, tokens, cols], of 16 bits, to 0 and lse [samples, heads, tokens] to infinity for samples whose length is 0 or less. */
cudaError_t gt_cu_empty_samples_start(const int32_t *lengths, int64_t samples, int64_t tokens, int64_t cols, int64_t heads, void *y,
                                      float *lse, cudaStream_t s);
/* Sets the gradients of keys and values [samples, tokens, 3, cols], of 16 bits, to 0 from a sample's length on, and for a length of 0 or
 * less also that of the queries. cols is a multiple of 8. */
cudaError_t gt_cu_zero_padding_start(const int32_t *lengths, int64_t samples, int64_t tokens, int64_t cols, void *dqkv, cudaStream_t s);

/* ---- conv_tail.cu ------------------------------------------------------------------------------------------------------------ */
/* Fills x with values in [-1, 1) that differ from element to element. */
cudaError_t gt_cu_noise_start(int type, void *x, int64_t n, uint32_t seed, cudaStream_t s);
/* Converts x[n] to f32 and stores it in out[n], or adds it to out[n] if add is true. Both are aligned to 16 bytes. */
cudaError_t gt_cu_widen_start(int type, const void *x, float *out, int64_t n, bool add, cudaStream_t s);
/* Like gt_cu_widen_start, but x is [rows, ld] with elements of 16 bits, and only the first cols elements of each row are converted; out is
 * [rows, cols]. */
cudaError_t gt_cu_widen_rows_start(int type, const void *x, int32_t ld, float *out, int64_t rows, int32_t cols, bool add, cudaStream_t s);
/* Copies x[rows, cols], of 16 bits, to y[rows, ld] and pads the rows with zeros. ld is a multiple of 8, and y aligned to 16 bytes. */
cudaError_t gt_cu_pad_rows_start(const void *x, int32_t cols, void *y, int32_t ld, int64_t rows, cudaStream_t s);

#ifdef __cplusplus
}
#endif
#endif
