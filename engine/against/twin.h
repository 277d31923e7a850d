/* A twin is the reference for one kernel call of a device: a list of CPU calls that compute the same results from the same inputs. Usually
 * the list has one call. If the device's call fuses several operations and the CPU lacks this fusion, the list has one call for each
 * operation (twin_joined.c).
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
	size_t offset;        /* bytes from the start of the tensor to the operand; 0 if the operand is converted to another type or layout */
	struct gt_tdesc desc; /* type and layout that the kernel of the CPU needs */
};

/* Kinds of twin calls: a CPU kernel, or a conversion between tensors `in` and `out` without a kernel. */
enum gt_twin_step {
	GT_TWIN_KERNEL,   /* runs a CPU kernel */
	GT_TWIN_CONVERT,  /* copies in to out, in the type and layout of out; with gt_twin_call.seg: only the elements of these segments */
	/* converts the positions of the maxima of a max pooling: from i32 offsets in the input plane to u8 offsets in the pooling window */
	GT_TWIN_NARROW,
	GT_TWIN_WIDEN     /* the reverse of GT_TWIN_NARROW */
};

struct gt_twin_call {
	enum gt_twin_step step;
	struct gt_kernel *kernel;      /* GT_TWIN_KERNEL; else NULL */
	struct gt_attr_pool2d pool;    /* GT_TWIN_NARROW, GT_TWIN_WIDEN: the max pooling */
	int64_t width;                 /* GT_TWIN_NARROW, GT_TWIN_WIDEN: width of the input plane */
	struct gt_seg *seg;            /* GT_TWIN_CONVERT: segments of the flat tensor to copy; NULL: all; owned */
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
	/* Tensor numbers of a mask (for example: is an output of relu positive?) and of the masked tensor; -1: the call has no mask. A mask has
	 * one bit for each element of the masked tensor, in an order that the device chooses, so the CPU cannot read it. The call that writes
	 * the mask also writes the masked tensor; in the twin of the call that reads the mask, a temporary tensor has the values of the masked
	 * tensor. */
	int mask, masked;
	bool opaque[GT_TWIN_TENSORS]; /* true: this tensor has a format that only the device knows, so it is not compared */
};

/* Sets type, layout and size of t->tensor for each operand of the device's call. */
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
