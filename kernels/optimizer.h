/* The rows of optimizer_rows.h as structs, with which the engine, the backends and the tests look up the properties of an optimizer.
 *
 *     const struct gt_update_row *row = gt_update_row(GT_OP_ADAM);        row->state[0].name is "exp_avg"
 *     const struct gt_optimizer_row *adamw = &gt_optimizer_rows[GT_OPT_ADAMW];
 */
#ifndef GT_KERNELS_OPTIMIZER_H
#define GT_KERNELS_OPTIMIZER_H

#include "opsig.h"

/* The condition under which an optimizer keeps a state (such as Adam's exp_avg) for each parameter: never, always, or if the attribute that
 * GT_STATE_IF_key names is not 0 (GT_STATE_IF_momentum, ...). */
enum gt_state_when {
	GT_STATE_NONE,
	GT_STATE_ALWAYS,
#define GT_X(P, A, KIND, key, ...) GT_STATE_IF_##key,
	GT_OPTIMIZER_KEYS(GT_X, , )
#undef GT_X
};

/* An update operation, which applies an optimizer's step to parameters. The inputs of its call are the parameters p, their gradients g, one
 * input for each entry of state, the scalars of the step (struct gt_scalars) and work, the 16-bit copy of p. */
struct gt_update_row {
	enum gt_opcode code;
	bool matrix; /* the update needs parameters of rank 2 or more and a struct gt_attr_muon */
	bool whole;  /* the update needs whole parameters, each in a segment of its own; false: it is element-wise */
	int nslots;  /* number of entries in state */
	struct {
		const char *name; /* name of the state in PyTorch's state dict: "exp_avg" */
		enum gt_state_when when;
	} state[GT_MAX_STATES];
};

/* Returns the row of an update operation, or NULL if code is another operation. */
const struct gt_update_row *gt_update_row(enum gt_opcode code);
/* Returns whether an update with these attributes keeps state[slot] of the row. */
bool gt_update_has(const struct gt_update_row *row, const struct gt_attr_update *attr, int slot);
/* Returns the reason why no backend can fuse the optimizer of a call with the gradient (linear.dw+update, embedding.dw+update,
 * embedding_bag.dw+update); NULL: backends can, or the call is another operation. */
const char *gt_update_refuses_fused(const struct gt_opcall *call);

/* Checks the rules for an update that its signature (opsig.h) cannot express, except the dtype of the work copy. Returns NULL, or the
 * reason why a backend must reject the call. */
const char *gt_update_check(const struct gt_opcall *call);
/* Adds the operands of the states to a list of n slots; `at` is the offset of an array of GT_MAX_STATES addresses. Returns the new n. */
size_t gt_update_slots(enum gt_opcode code, struct gt_operand_slot *slots, size_t n, size_t at);

/* ---- train.optimizer.type ------------------------------------------------------------------------------------------------ */
enum gt_optimizer {
#define GT_X(NAME, ...) GT_OPT_##NAME,
	GT_OPTIMIZERS(GT_X)
#undef GT_X
	GT_OPT_COUNT
};

/* A config key that only some types of optimizer or schedule accept, or whose default depends on the type. */
struct gt_type_key {
	const char *key; /* name of the key: "betas"; NULL: end of the list */
	const char *def; /* default as written in a config, "[0.9, 0.99]"; NULL: the default that all types share */
};

struct gt_optimizer_row {
	const char *word;      /* value of train.optimizer.type: "adamw" */
	enum gt_opcode update; /* operation that applies the optimizer's step: GT_OP_ADAM */
	bool decoupled;        /* value of gt_attr_update.decoupled: true for AdamW */
	struct gt_type_key key[12]; /* ends with key NULL */
};

extern const struct gt_optimizer_row gt_optimizer_rows[GT_OPT_COUNT]; /* indexed by enum gt_optimizer */

/* Finds a key in the list of a row. Returns NULL if the list does not have it. */
const struct gt_type_key *gt_type_key_find(const struct gt_type_key *list, const char *key);

#endif
