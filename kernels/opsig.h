/* The signatures of opcall.h as structs, and the check that a call has the operands of its operation. The graph's verification and both
 * backends use the check; a backend then checks only what it cannot compute.
 *
 *     struct gt_opsig sig;
 *     gt_opsig_read(GT_OP_LAYERNORM, &sig);          sig.in[1].name is "gamma", sig.in[1].optional is true
 *     GT_TRY(gt_opcall_check(&call, err));           "layernorm (ln1): operand gamma: expected f32 [16, 4, 4], got f32 [16]" */
#ifndef GT_KERNELS_OPSIG_H
#define GT_KERNELS_OPSIG_H

#include "opcall.h"

/* The type of an operand. From GT_OPERAND_DTYPE on: the dtype type - GT_OPERAND_DTYPE. */
enum gt_operand_type { GT_OPERAND_ACT, GT_OPERAND_WEIGHT, GT_OPERAND_PARAM, GT_OPERAND_ANY, GT_OPERAND_DTYPE };
enum { GT_DIM_FREE = 0 }; /* an entry of gt_operand.dim: any size. Positive: that size. Negative: -letter */

struct gt_operand {
	char name[16];
	int type;        /* enum gt_operand_type, or GT_OPERAND_DTYPE + enum gt_dtype */
	bool optional;   /* may be absent */
	bool updated;    /* changed in place */
	bool added;      /* may be accumulated */
	bool repeated;   /* stands for one or more operands; the last one of the inputs or outputs */
	bool shaped;     /* the members below describe the shape; false: any shape */
	bool rest;       /* further sizes follow those of dim */
	int ndim;        /* entries of dim; 0 without rest: one element, of any rank */
	int64_t dim[GT_MAX_RANK];
};

struct gt_opsig {
	int nin, nout;
	struct gt_operand in[GT_MAX_IO], out[GT_MAX_IO];
};

void gt_opsig_read(enum gt_opcode code, struct gt_opsig *out);

/* The operand at an index of a call; NULL: the operation has no such operand. */
const struct gt_operand *gt_opsig_input(const struct gt_opsig *sig, int i);
const struct gt_operand *gt_opsig_output(const struct gt_opsig *sig, int i);

size_t gt_opcode_attr_size(enum gt_opcode code); /* bytes of the operation's attribute struct; 0: it has none */

/* Checks numbers, presence, dtypes, shapes and layouts of a call's operands and gt_opcall.accumulate. An open layout (gt_tdesc.any) of an
 * operand that has the standard layout is set to it. GT_EINTERNAL: the call does not fit the signature, which is a bug in gtrain. */
enum gt_code gt_opcall_check(const struct gt_opcall *call, struct gt_err *err);

#endif
