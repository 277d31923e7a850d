/* The twin of a device's call: the calls on the CPU that compute the same results. Usually the twin is one call with the same operands. If
 * the device's call fuses several operations and the CPU lacks this fusion, the twin has one call for each operation (twin_joined.c).
 *
 * Tensors are numbered: input i of the device's call is tensor i, output i is tensor GT_MAX_IO + i, and temporary tensors between the
 * twin's calls begin at GT_TWIN_TEMPS. In host memory, each tensor has the type and layout that it has on the device. A CPU kernel that
 * needs another type or layout gets a converted copy. */
#ifndef GT_AGAINST_TWIN_H
#define GT_AGAINST_TWIN_H

#include "backend.h"

#define GT_TWIN_TEMPS (2 * GT_MAX_IO)
#define GT_TWIN_TENSORS (GT_TWIN_TEMPS + 4)
#define GT_TWIN_CALLS 4

struct gt_twin_tensor {
	struct gt_tdesc desc; /* type and layout on the device */
	size_t bytes;         /* size in memory; 0: absent */
};

struct gt_twin_operand {
	int tensor;           /* index of the tensor; -1: the operand is absent */
	size_t offset;        /* bytes from the start of the tensor to the operand; not 0 only if desc is not converted */
	struct gt_tdesc desc; /* type and layout that the kernel of the CPU needs */
};

/* Kinds of twin calls: a CPU kernel, or a conversion between tensors `in` and `out` without a kernel. */
enum gt_twin_step {
	GT_TWIN_KERNEL,   /* runs a CPU kernel */
	GT_TWIN_CONVERT,  /* copies in to out, in the type and layout of out; with gt_twin_call.seg: only the elements of these segments */
	GT_TWIN_NARROW,   /* out = positions of maxima: in has offsets in the input plane, i32; out has offsets in the pooling window, u8 */
	GT_TWIN_WIDEN     /* the reverse of GT_TWIN_NARROW: from u8 offsets in the pooling window to i32 offsets in the input plane */
};

struct gt_twin_call {
	enum gt_twin_step step;
	struct gt_kernel *kernel;      /* GT_TWIN_KERNEL; else NULL */
	struct gt_attr_pool2d pool;    /* GT_TWIN_NARROW, GT_TWIN_WIDEN */
	int64_t width;                 /* GT_TWIN_NARROW, GT_TWIN_WIDEN: width of the input plane */
	struct gt_seg *seg;            /* GT_TWIN_CONVERT; owned */
	int nseg;
	int nin, nout;
	struct gt_twin_operand in[GT_MAX_IO], out[GT_MAX_IO];
};

struct gt_twin {
	const struct gt_backend *be; /* not owned: the CPU */
	struct gt_dev *dev;
	enum gt_dtype type;          /* gt_against_spec.type */
	struct gt_twin_tensor tensor[GT_TWIN_TENSORS];
	struct gt_twin_call call[GT_TWIN_CALLS];
	int ncalls;
	/* Tensor numbers of a mask and of the tensor from which it was computed, or -1. A mask has one bit for each element of the masked
	 * tensor, in an order that the device chooses. The call that writes the mask also writes the masked tensor. In the twin of the call
	 * that reads the mask, the masked tensor is a temporary tensor with the values that the writing call has computed. */
	int mask, masked;
	bool opaque[GT_TWIN_TENSORS]; /* true: this tensor has a format that only the device knows, so it is not compared */
};

/* Sets the tensors of the operands of a call. */
void gt_twin_describe(struct gt_twin *t, const struct gt_opcall *call);
/* Prepares the twin of a call that the device has prepared, so that the layouts of all its operands are chosen. The caller has set be, dev
 * and type of *t, and calls gt_twin_release also after a failure. GT_EUNAVAILABLE: the CPU cannot compute the call; err has the reason. */
enum gt_code gt_twin_make(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err);
void gt_twin_release(struct gt_twin *t);

/* Runs the twin. memory: the address of each tensor, aligned to 64 bytes; NULL: the tensor is absent. If the call accumulates into an
 * output, the output must have its previous values. stream: as in gt_launch. */
enum gt_code gt_twin_run(const struct gt_twin *t, void *const *memory, const struct gt_step_args *step_args, int stream,
                         struct gt_err *err);

/* Adds a call to the twin, for twin_joined.c. in, out: tensor numbers of the call's operands, -1: absent. The function describes the
 * operands by these tensors and ignores call->in and call->out. */
enum gt_code gt_twin_add(struct gt_twin *t, const struct gt_opcall *call, const int *in, const int *out, struct gt_err *err);

/* Adds a conversion from tensor `from` to tensor `to`. Returns the new call, whose other members the caller sets; NULL: the twin has
 * GT_TWIN_CALLS calls already. */
struct gt_twin_call *gt_twin_add_step(struct gt_twin *t, enum gt_twin_step step, int from, int to);
/* Adds a temporary tensor and returns its number; -1: the twin has GT_TWIN_TENSORS tensors already. */
int gt_twin_add_temp(struct gt_twin *t, const struct gt_tdesc *d);

/* Adds one CPU call for each operation that the device's fused call computes. GT_EUNAVAILABLE: twin_joined.c has no rule for the call. */
enum gt_code gt_twin_join(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err);

void *gt_twin_alloc(size_t bytes); /* returns memory that is aligned to 64 bytes, which the caller frees with free() */

#endif
