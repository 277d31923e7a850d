/* oneDNN in gtrain: tensor descriptors, layouts, and the list kernel, a gtrain kernel that is a short list of oneDNN primitives.
 *
 * prepare builds a list kernel from tensors (memory objects bound to an input, an output or an offset in the workspace) and steps (a
 * primitive with its arguments, a sum into an output, or a relu). launch sets the data handles that have changed and executes the steps
 * once for each slice of the batch; tensors with a stride advance by it from slice to slice. A launch allocates nothing. */
#ifndef GT_CPU_DNNL_UTIL_H
#define GT_CPU_DNNL_UTIL_H

#include "cpu/cpu.h"
#include "cpu/dnnl_api.h"

dnnl_engine_t gt_dnnl_engine(const struct gt_dev *dev);
dnnl_engine_t gt_dnnl_engine_of(const struct gt_dnnl *d);

/* Converts a oneDNN status to GT_OK, or to an error whose message names the operation, the failed call and the status. The error is
 * GT_EUNAVAILABLE if oneDNN has no implementation. */
enum gt_code gt_dnnl_check(dnnl_status_t s, const struct gt_opcall *call, const char *what, struct gt_err *err);

/* Describes a tensor with its layout. With groups > 1 (convolution weights), dimension 0 is split into the dimensions groups and
 * O/groups. */
enum gt_code gt_dnnl_md(const struct gt_tdesc *d, int64_t groups, struct gt_dnnl_md *md, struct gt_err *err);
/* Describes a tensor of d's shape and dtype, for which oneDNN chooses the layout. */
struct gt_dnnl_md gt_dnnl_md_any(const struct gt_tdesc *d, int64_t groups);
/* Converts the layout that oneDNN chose for d's shape. Returns false if struct gt_layout cannot express it. */
bool gt_dnnl_layout(gt_dnnl_ref ref, const struct gt_tdesc *d, int64_t groups, struct gt_layout *out);

/* ---- the list kernel --------------------------------------------------------------------------------------------------------- */
enum { GT_DNNL_IN, GT_DNNL_OUT, GT_DNNL_SCRATCH };
#define GT_DNNL_MAX_TENSORS 12
#define GT_DNNL_MAX_STEPS 8
#define GT_DNNL_MAX_ARGS 6

struct gt_dnnl_tensor {
	dnnl_memory_t mem;
	void *last;    /* the data handle that mem has now */
	uint8_t where; /* GT_DNNL_IN, GT_DNNL_OUT or GT_DNNL_SCRATCH */
	uint8_t index; /* number of the input or output */
	size_t offset; /* byte offset in the workspace, of a scratch tensor */
	size_t stride; /* bytes from one slice of the batch to the next; 0: all slices use the same memory */
};

/* The kind of a step: it executes a primitive, or loops over consecutive elements of an operand, in memory order. */
enum gt_dnnl_action {
	GT_DNNL_EXECUTE, /* executes prim */
	GT_DNNL_SUM,     /* out[operand] += the f32 elements at `offset` in the workspace */
	GT_DNNL_FINISH,  /* y = act(y + res) in place, where y is the first output */
	GT_DNNL_WIDEN,   /* f32 elements at `offset` in the workspace = the bf16 elements of in[operand] */
	GT_DNNL_PAIR,    /* interleaves pairs of rows of the f32 blocks of out[operand] or, if it is -1, at `offset` in the workspace */
	GT_DNNL_NARROW,  /* the bf16 elements of out[operand] = the f32 elements at `offset` in the workspace, rounded to nearest even */
};

struct gt_dnnl_step {
	enum gt_dnnl_action action;
	bool once; /* the step is executed for the first slice of the batch only */
	dnnl_primitive_t prim;
	int nargs;
	dnnl_exec_arg_t args[GT_DNNL_MAX_ARGS];
	int operand;        /* number of the input or output */
	size_t offset;      /* byte offset in the workspace */
	int64_t count;      /* number of elements of the operand that the step uses for one slice of the batch */
	bool moves;         /* true: every slice has its own `count` elements of the operand; false: all slices have the same elements */
	bool add;           /* GT_DNNL_SUM without `moves`: whether the first slice, too, adds to the output; false: it overwrites the output */
	enum gt_dtype type; /* GT_DNNL_FINISH: type of the output */
	int act;            /* GT_DNNL_FINISH: the activation (enum gt_act) */
	int res;            /* GT_DNNL_FINISH: index of the input that is the residual; -1: no residual */
	int64_t rows, cols; /* GT_DNNL_PAIR: size of a block */
};

struct gt_dnnl_kernel {
	struct gt_kernel head;
	int ntensors, nsteps, slices; /* slices: number of slices of the batch, 1 if it is not divided */
	struct gt_dnnl_tensor tensors[GT_DNNL_MAX_TENSORS];
	struct gt_dnnl_step steps[GT_DNNL_MAX_STEPS];
	char text[96]; /* head.describe */
};

/* Creates an empty list kernel, whose functions launch and release are set. */
enum gt_code gt_dnnl_kernel_make(struct gt_dnnl_kernel **out, struct gt_err *err);
void gt_dnnl_kernel_release(struct gt_kernel *k);
/* Adds a tensor and returns its memory object in *mem, for the arguments of steps. where is GT_DNNL_IN, GT_DNNL_OUT or GT_DNNL_SCRATCH.
 * index: number of the input or output; a scratch tensor gets an offset in the workspace instead. */
enum gt_code gt_dnnl_tensor_add(struct gt_dev *dev, struct gt_dnnl_kernel *k, const struct gt_dnnl_md *md, int where, int index,
                                dnnl_memory_t *mem, struct gt_err *err);
/* Like gt_dnnl_tensor_add, with a descriptor of oneDNN, for a scratch tensor or an output. */
enum gt_code gt_dnnl_ref_add(struct gt_dev *dev, struct gt_dnnl_kernel *k, gt_dnnl_ref ref, int where, int index, dnnl_memory_t *mem,
                             struct gt_err *err);
/* Adds a step that executes a primitive created from pd, with nargs arguments and a scratchpad. Destroys pd. */
enum gt_code gt_dnnl_step_add(struct gt_dev *dev, struct gt_dnnl_kernel *k, dnnl_primitive_desc_t pd, const dnnl_exec_arg_t *args,
                              int nargs,
                              struct gt_err *err);
/* Adds a reorder from one of k's tensors to another. */
enum gt_code gt_dnnl_reorder_add(struct gt_dev *dev, struct gt_dnnl_kernel *k, dnnl_memory_t from, dnnl_memory_t to, struct gt_err *err);
/* Adds the step that interleaves pairs of rows of the blocks of mem, a scratch tensor, or of the first output, if mem is NULL. */
enum gt_code gt_dnnl_pair_add(struct gt_dnnl_kernel *k, dnnl_memory_t mem, int64_t count, int64_t rows, int64_t cols, struct gt_err *err);
/* Adds the step out[index] += mem, where mem is a scratch tensor of count f32 elements. If moves is true, each slice of the batch has its
 * own count elements of out[index]; otherwise all slices add to the same elements, which the first slice overwrites if add is false. */
enum gt_code gt_dnnl_sum_add(struct gt_dnnl_kernel *k, int index, dnnl_memory_t mem, int64_t count, bool add, bool moves,
                             struct gt_err *err);
/* Adds the step y = act(y + res) over the elements of y, the first output. res: number of the input that is the residual; -1: none. If
 * moves is true, each slice of the batch has its own consecutive elements; otherwise the last slice processes all elements. oneDNN's relu,
 * as a primitive or as a post-op, turns NaN into 0; PyTorch's keeps it. */
enum gt_code gt_dnnl_finish_add(struct gt_dnnl_kernel *k, const struct gt_tdesc *y, int act, int res, bool moves, struct gt_err *err);
/* Sets the number of bytes by which the address of a tensor of k advances from one slice of the batch to the next. */
void gt_dnnl_slice(struct gt_dnnl_kernel *k, dnnl_memory_t mem, size_t stride);
/* Adds a scratch tensor *mem with the descriptor md, of f32, and the step that copies the bf16 operand in[index], of the same layout, into
 * it. count is the number of elements of one slice, with padding. If moves is false, all slices have the same elements and only the first
 * slice copies them. */
enum gt_code gt_dnnl_widen_add(struct gt_dev *dev, struct gt_dnnl_kernel *k, const struct gt_dnnl_md *md, int index, int64_t count,
                               bool moves, dnnl_memory_t *mem, struct gt_err *err);
/* Adds the step that copies the scratch tensor mem, of f32, to the first output, of bf16 and of the same layout. Every slice has its own
 * count elements of this output. */
enum gt_code gt_dnnl_narrow_add(struct gt_dnnl_kernel *k, dnnl_memory_t mem, int64_t count, struct gt_err *err);
/* Describes the part of a tensor with the first n entries of dimension i. */
enum gt_code gt_dnnl_md_part(const struct gt_tdesc *d, int i, int64_t n, struct gt_dnnl_md *md, struct gt_err *err);

/* Creates the attributes that all primitives of gtrain use (the caller provides the scratchpad). The caller destroys *out. */
enum gt_code gt_dnnl_attr(dnnl_primitive_attr_t *out, struct gt_err *err);
/* Returns whether pd uses one of oneDNN's reference loops. */
bool gt_dnnl_reference(const_dnnl_primitive_desc_t pd);
/* Returns whether pd uses one of oneDNN's slow implementations, whose names contain "ref", or "gemm" without "brgemm". */
bool gt_dnnl_slow(const_dnnl_primitive_desc_t pd);

#endif
