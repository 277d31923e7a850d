/* The signatures of opcall.h as structs, and the check that a call has the operands of its operation. The graph's verification and both
 * backends use the check; a backend then checks only what it cannot compute.
 *
 *     struct gt_opsig sig;
 *     gt_opsig_read(GT_OP_LAYERNORM, &sig);          sig.in[1].name is "gamma", sig.in[1].optional is true
 *     GT_TRY(gt_opcall_check(&call, err));           "layernorm (ln1): operand gamma: expected f32 [16, 4, 4], got f32 [16]"
 *     gamma = gt_opcall_operand(&call, "gamma");     call.in[1] in layernorm, call.in[2] in layernorm.dx */
#ifndef GT_KERNELS_OPSIG_H
#define GT_KERNELS_OPSIG_H

#include "opcall.h"

/* The type of an operand. A type >= GT_OPERAND_DTYPE requires the dtype (enum gt_dtype) whose number is type - GT_OPERAND_DTYPE. */
enum gt_operand_type { GT_OPERAND_ACT, GT_OPERAND_WEIGHT, GT_OPERAND_PARAM, GT_OPERAND_ANY, GT_OPERAND_DTYPE };
/* an entry of gt_operand.dim that allows any size; a positive entry requires that size; a negative entry is minus the letter of the size */
enum { GT_DIM_FREE = 0 };

struct gt_operand {
	char name[16];
	int type;        /* enum gt_operand_type, or GT_OPERAND_DTYPE + enum gt_dtype */
	bool optional;   /* the operand may be absent */
	bool updated;    /* the operation changes the operand in place */
	bool added;      /* the operation may add to the operand (gt_opcall.accumulate) */
	bool padded;     /* its channels may be padded */
	bool repeated;   /* this entry stands for one or more operands; it is the last of the inputs or outputs */
	bool shaped;     /* the members below describe the shape; false: any shape */
	bool rest;       /* further sizes follow those of dim */
	int ndim;        /* number of entries in dim; 0 without rest: a tensor of one element, of any rank */
	int64_t dim[GT_MAX_RANK];
};

struct gt_opsig {
	int nin, nout;
	struct gt_operand in[GT_MAX_IO], out[GT_MAX_IO];
};

void gt_opsig_read(enum gt_opcode code, struct gt_opsig *out);

/* Both functions return the operand with index i of a call, or NULL if the operation has no such operand. */
const struct gt_operand *gt_opsig_input(const struct gt_opsig *sig, int i);
const struct gt_operand *gt_opsig_output(const struct gt_opsig *sig, int i);

size_t gt_opcode_attr_size(enum gt_opcode code); /* bytes of the operation's attribute struct; 0: it has none */

/* Checks numbers, presence, dtypes, shapes and layouts of a call's operands and gt_opcall.accumulate. An open layout (gt_tdesc.any) of an
 * operand that has the standard layout is set to it. Returns GT_EINTERNAL if the call does not fit the signature, which is a bug in
 * gtrain. */
enum gt_code gt_opcall_check(const struct gt_opcall *call, struct gt_err *err);

/* An operand of a call: in[index], or out[index] if output is true. index is -1 if the operand is absent or the operation has none of this
 * name. Backends look for operands by name when they prepare a call, and keep the index for launches. */
struct gt_operand_ref {
	int index;
	bool output;
};
struct gt_operand_ref gt_opcall_find(const struct gt_opcall *call, const char *name);

/* Returns the descriptor of an operand, NULL if it is absent: gt_opcall_operand(call, "gamma"). */
struct gt_tdesc *gt_opcall_operand(const struct gt_opcall *call, const char *name);
/* Returns whether the call adds to an output (gt_opcall.accumulate). */
bool gt_opcall_adds(const struct gt_opcall *call, const char *name);

/* Returns the operand of a checked call whose channels are padded; NULL: there is none. */
const struct gt_tdesc *gt_opcall_padded(const struct gt_opcall *call);

#endif
