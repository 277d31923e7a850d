/* Between gtrain and oneDNN: descriptions, layouts, and a kernel that is a short list of primitives.
 *
 * A list kernel is built at prepare time: tensors (memory objects bound to an input, an output or a place in the scratch buffer) and
 * steps (a primitive with its arguments, or a sum into an output). launch sets the handles that changed and executes the steps, once a
 * slice of the batch: tensors that have a stride move on by it. Nothing is allocated at launch. */
#ifndef GT_CPU_DNNL_UTIL_H
#define GT_CPU_DNNL_UTIL_H

#include "cpu/cpu.h"
#include "cpu/dnnl_api.h"

dnnl_engine_t gt_dnnl_engine(const struct gt_dev *dev);
dnnl_stream_t gt_dnnl_stream(const struct gt_dev *dev);

/* GT_OK, or a sentence with the operation, what failed and oneDNN's status: GT_EUNAVAILABLE when it has no implementation. */
enum gt_code gt_dnnl_check(dnnl_status_t s, const struct gt_opcall *call, const char *what, struct gt_err *err);

dnnl_data_type_t gt_dnnl_dtype(enum gt_dtype t); /* dnnl_data_type_undef: oneDNN has none */

/* The description of a tensor with its layout. With groups > 1 (convolution weights) dimension 0 is split into groups, O/groups. */
enum gt_code gt_dnnl_md(const struct gt_tdesc *d, int64_t groups, struct gt_dnnl_md *md, struct gt_err *err);
/* The same shape, layout left open. */
struct gt_dnnl_md gt_dnnl_md_any(const struct gt_tdesc *d, int64_t groups);
/* The layout of ref, as chosen by oneDNN for d's shape, if struct gt_layout can say it. */
bool gt_dnnl_layout(gt_dnnl_ref ref, const struct gt_tdesc *d, int64_t groups, struct gt_layout *out);

/* ---- the list kernel --------------------------------------------------------------------------------------------------------- */
enum { GT_DNNL_IN, GT_DNNL_OUT, GT_DNNL_SCRATCH };
#define GT_DNNL_MAX_TENSORS 12
#define GT_DNNL_MAX_STEPS 8
#define GT_DNNL_MAX_ARGS 6

struct gt_dnnl_tensor {
	dnnl_memory_t mem;
	void *last;    /* handle that mem has now */
	uint8_t where; /* GT_DNNL_… */
	uint8_t index; /* of the input or output */
	size_t offset; /* in the scratch buffer */
	size_t stride; /* bytes from one slice to the next; 0: every slice sees the same */
};

struct gt_dnnl_step {
	dnnl_primitive_t prim; /* NULL: relu of out[0] if relu_count > 0, else out[add_to] += scratch[add_from] */
	int nargs;
	dnnl_exec_arg_t args[GT_DNNL_MAX_ARGS];
	int add_to;
	size_t add_from;
	int64_t add_count; /* f32 elements */
	bool add_first;    /* false: the first slice overwrites */
	bool add_moves;    /* every slice has its own elements */
	bool once;         /* for the first slice only */
	int64_t relu_count;  /* elements of out[0], or of each slice of it if relu_moves */
	enum gt_dtype relu_type;
	bool relu_moves;
};

struct gt_dnnl_kernel {
	struct gt_kernel head;
	int ntensors, nsteps, slices; /* slices: 1 unless the batch is cut */
	struct gt_dnnl_tensor tensors[GT_DNNL_MAX_TENSORS];
	struct gt_dnnl_step steps[GT_DNNL_MAX_STEPS];
	char text[96]; /* head.describe */
};

/* An empty one, with launch and release set. */
enum gt_code gt_dnnl_kernel_make(struct gt_dnnl_kernel **out, struct gt_err *err);
void gt_dnnl_kernel_release(struct gt_kernel *k);
/* Adds a tensor; *mem goes into arguments. index: of the input or output; a scratch tensor gets its offset. */
enum gt_code gt_dnnl_tensor_add(struct gt_dev *dev, struct gt_dnnl_kernel *k, const struct gt_dnnl_md *md, int where, int index,
                                dnnl_memory_t *mem, struct gt_err *err);
/* Adds a scratch tensor as oneDNN describes it. */
enum gt_code gt_dnnl_scratch_add(struct gt_dev *dev, struct gt_dnnl_kernel *k, gt_dnnl_ref ref, dnnl_memory_t *mem, struct gt_err *err);
/* Adds a step that runs a primitive made from pd (which is destroyed here) with nargs arguments; its scratchpad is added too. */
enum gt_code gt_dnnl_step_add(struct gt_dev *dev, struct gt_dnnl_kernel *k, dnnl_primitive_desc_t pd, const dnnl_exec_arg_t *args, int nargs,
                              struct gt_err *err);
/* Adds a reorder from one of k's tensors to another. */
enum gt_code gt_dnnl_reorder_add(struct gt_dev *dev, struct gt_dnnl_kernel *k, dnnl_memory_t from, dnnl_memory_t to, struct gt_err *err);
/* Adds out[index] += the scratch tensor mem, count f32 elements. moves: each slice has its own count elements of out[index]; otherwise
 * all add to the same ones, and where add is false the first overwrites them. */
enum gt_code gt_dnnl_sum_add(struct gt_dnnl_kernel *k, int index, dnnl_memory_t mem, int64_t count, bool add, bool moves, struct gt_err *err);
/* Adds out[0] = relu(out[0]), y's elements. moves: each slice has its own, one behind the other; otherwise the last slice does all. oneDNN's
 * relu, alone or as a post-op, makes 0 of a NaN, where PyTorch's keeps it. */
enum gt_code gt_dnnl_relu_add(struct gt_dnnl_kernel *k, const struct gt_tdesc *y, bool moves, struct gt_err *err);
/* One of k's tensors moves on by so many bytes from slice to slice. */
void gt_dnnl_slice(struct gt_dnnl_kernel *k, dnnl_memory_t mem, size_t stride);
/* The description of a part of a tensor: the first n entries of dimension i. */
enum gt_code gt_dnnl_md_part(const struct gt_tdesc *d, int i, int64_t n, struct gt_dnnl_md *md, struct gt_err *err);

/* Attributes every primitive of ours has: the scratchpad is the caller's. Destroy after use. */
enum gt_code gt_dnnl_attr(dnnl_primitive_attr_t *out, struct gt_err *err);
/* Is this implementation one of oneDNN's slow ones? */
bool gt_dnnl_slow(const_dnnl_primitive_desc_t pd);

/* dst[i] += src[i], or = where add is false */
void gt_cpu_add_f32(int threads, float *dst, const float *src, int64_t n, bool add);

#endif
