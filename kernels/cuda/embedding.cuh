/* The arguments of the embedding family, and functions that embedding.cu and embedding_forward.cu share. */
#ifndef GT_KERNELS_CUDA_EMBEDDING_CUH
#define GT_KERNELS_CUDA_EMBEDDING_CUH

#include "cuda/device.cuh"

struct embedding_args {
	const int32_t *tokens, *lengths; /* lengths NULL: every token counts */
	int32_t *idx;                    /* mode max: position in the sample of the token with the maximum; -1: none */
	const float *w;                  /* forward: the table */
	void *y;                         /* forward: the result */
	const void *dy;                  /* NULL: a forward pass */
	float *dw;                       /* the gradient, or the table that is updated */
	uint64_t *tile, *sorted;         /* workspace: one element for each entry */
	float *part, *share;             /* workspace: two rows of cols for each chunk of entries; 1 / number of tokens of each sample */
	int64_t entries, step, first;    /* entry e is tokens[e * step + first] */
	int64_t bag;                     /* entries of a sample, whose row in y or dy they share; 1 without bags */
	int64_t rows, cols, padding;     /* size of the table; padding: token without a gradient that bags skip, -1: none */
	int64_t begin, end;              /* the range of rows that a gradient covers */
	int mode;                        /* enum gt_bag; GT_BAG_SUM without bags */
	bool zero, update;               /* zero: dw is set to 0 first; update: dw is the table, which sgd without momentum updates */
	struct gt_attr_update attr;      /* attributes of the update, without seg */
	struct gt_seg seg;
	const struct gt_scalars *scalars; /* NULL: no clipping, no loss scale, and the step is never skipped */
	struct gt_cu_step_args step_args;
	struct gt_cu_fault *fault;
};

__device__ static inline int64_t length_of(const embedding_args &a, int64_t sample)
{
	int64_t n = a.lengths ? a.lengths[sample] : a.bag;
	return n < 0 ? 0 : n > a.bag ? a.bag : n;
}

/* Launches the forward pass of embedding, or of embedding_bag if bags is true. */
cudaError_t gt_cu_embedding_forward(int type, const embedding_args &a, bool bags, cudaStream_t s);

#endif
