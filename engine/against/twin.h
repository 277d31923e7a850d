/* The twin of a call: the calls of the CPU that compute the same. Usually this is one call with the same operands. A call that the CPU does
 * not have because it joins several operations has one twin call for each of them (twin_joined.c).
 *
 * Tensors are numbered: input i of the device's call is tensor i, output i is tensor GT_MAX_IO + i, and values between the twin's calls
 * follow from GT_TWIN_TEMPS on. In memory of the host, each tensor has the type and layout that it has on the device; a call of the CPU
 * that needs another type or layout gets a converted copy. */
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

/* What a call without a kernel does with its input and its output. */
enum gt_twin_step {
	GT_TWIN_KERNEL,   /* it has a kernel */
	GT_TWIN_CONVERT,  /* out = in, in the type and layout of out; only the elements of `seg`, if there are some */
	GT_TWIN_NARROW,   /* out = positions of maxima: in has offsets in the input plane, i32; out has offsets in the pooling window, u8 */
	GT_TWIN_WIDEN     /* the reverse */
};

struct gt_twin_call {
	enum gt_twin_step step;
	struct gt_kernel *kernel;      /* GT_TWIN_KERNEL; else NULL */
	struct gt_attr_pool2d pool;    /* GT_TWIN_NARROW, GT_TWIN_WIDEN */
	int64_t width;                 /* the same: width of the input plane */
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
	/* Tensors, or -1. A mask has one bit for each element of a tensor, in an order that the device chooses. The call that writes the mask
	 * also writes the masked tensor; in the call that reads it, the masked tensor is a temporary one, with the values from that call. */
	int mask, masked;
	bool opaque[GT_TWIN_TENSORS]; /* the device chooses the meaning of the bits of this tensor, so it is not compared */
};

/* Sets the tensors of the operands of a call. */
void gt_twin_describe(struct gt_twin *t, const struct gt_opcall *call);
/* Makes the twin of a call that the device has prepared, so that no layout is open. be, dev and type of *t are set. GT_EUNAVAILABLE: the
 * CPU cannot compute the call, for the reason in err. Release it in any case. */
enum gt_code gt_twin_make(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err);
void gt_twin_release(struct gt_twin *t);

/* Runs the twin. memory: one address for each tensor that is present, aligned to 64 bytes; NULL: absent. Values of the outputs before the
 * call count where the call adds to them. stream: as in gt_launch. */
enum gt_code gt_twin_run(const struct gt_twin *t, void *const *memory, const struct gt_step_args *step_args, int stream,
                         struct gt_err *err);

/* Adds a call to the twin, for twin_joined.c. in, out: the tensors of its operands, -1 for absent ones; call->in and call->out are set from
 * them. */
enum gt_code gt_twin_add(struct gt_twin *t, const struct gt_opcall *call, const int *in, const int *out, struct gt_err *err);

/* Adds a call without a kernel, from tensor `from` to tensor `to`. Returns it for its other members; NULL: there are too many calls. */
struct gt_twin_call *gt_twin_add_step(struct gt_twin *t, enum gt_twin_step step, int from, int to);
/* Adds a temporary tensor and returns its index; -1: there are too many. */
int gt_twin_add_temp(struct gt_twin *t, const struct gt_tdesc *d);

/* Adds the calls that a joined call stands for. GT_EUNAVAILABLE: no rule knows the call. */
enum gt_code gt_twin_join(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err);

void *gt_twin_alloc(size_t bytes); /* aligned to 64 bytes; free() it */

#endif
