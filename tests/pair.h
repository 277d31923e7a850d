/* One call on two backends, the CPU's as the reference: tests/cudasim and, on a GPU, tests/gpu. Buffers are in physical order.
 * The CPU backend has no f16: there the call is made in f32 on the same numbers, and its results are rounded once. */
#ifndef GT_TESTS_PAIR_H
#define GT_TESTS_PAIR_H

#include "backend.h"
#include "test.h"

#define PAIR_T 10

struct pair_job {
	struct gt_opcall call;
	struct gt_tdesc d[2 * PAIR_T];  /* inputs, then outputs from PAIR_T on */
	void *in[PAIR_T], *out[PAIR_T]; /* outputs begin as they stand here */
	struct gt_step_args step_args;
	bool in_place; /* out[0] is in[0] */
	size_t shift;  /* bytes from an aligned address to each tensor, on the CUDA side; whole elements */
	int copy;      /* input that must become in[0] in its own type, on the CUDA side only (f16 work copies); 0: none */
};

/* Adds an operand, NHWC if of rank 4. data: taken over; NULL: numbers in [-3, 3), which its position decides. */
void pair_tensor(struct pair_job *j, bool out, enum gt_dtype t, int rank, const int64_t *dim, void *data);
void pair_absent(struct pair_job *j, bool out);
/* Pads the channels of the operand that was added last, on the CUDA side only: with zeros that must stay zeros, or, of an output, with
 * numbers that must become zeros. */
void pair_pad(struct pair_job *j, bool out);
void *pair_filled(enum gt_dtype t, int64_t n, uint32_t seed); /* malloc */
void pair_scale(enum gt_dtype t, void *p, int64_t n, double mul, double add);
void pair_free(struct pair_job *j);

/* Runs it on both and compares every input and output. tol 0: the same bits. Else |a - b| <= tol * max(1, |b|). what: for messages */
void pair_compare(const struct pair_job *j, double tol, const char *what);
/* tol: of f32 tensors; tol16: of 16-bit ones. */
void pair_compare2(const struct pair_job *j, double tol, double tol16, const char *what);

/* The CUDA side alone: its inputs as they are then, malloc. */
void pair_run_cuda(const struct pair_job *j, void **in);
void pair_run_cuda_out(const struct pair_job *j, void **in, void *out0, size_t bytes); /* and its first output */
/* Why CUDA refuses the call; "" if it does not. Until the next call. */
const char *pair_refused_cuda(const struct pair_job *j);

/* Prints `# cudasim: N calls agree …` and the largest differences; fails with fewer than `least`. */
void pair_report(int least);

static const enum gt_dtype pair_types[3] = {GT_F32, GT_BF16, GT_F16};

#endif
