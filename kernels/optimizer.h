/* The rows of optimizer_rows.h as structs, with which the engine, the backends and the tests look up the properties of an optimizer.
 *
 *     const struct gt_update_row *row = gt_update_row(GT_OP_ADAM);        row->state[0].name is "exp_avg"
 *     const struct gt_optimizer_row *adamw = &gt_optimizer_rows[GT_OPT_ADAMW];
 */
#ifndef GT_KERNELS_OPTIMIZER_H
#define GT_KERNELS_OPTIMIZER_H

#include "opcall.h"

/* When a state of an update exists. */
enum gt_state_when { GT_STATE_NONE, GT_STATE_ALWAYS, GT_STATE_MOMENTUM, GT_STATE_CENTERED };

/* An update operation. Its inputs are p, g, the slots of the states, scalars and work. */
struct gt_update_row {
	enum gt_opcode code;
	bool matrix; /* true: the update needs whole parameters of rank 2 or more, and struct gt_attr_muon; false: it is element-wise */
	int nslots;  /* number of states */
	struct {
		const char *name; /* name in PyTorch's state dict: "exp_avg" */
		enum gt_state_when when;
	} state[GT_MAX_STATES];
};

/* Returns the row of an update operation; NULL: the operation is not an optimizer's update. */
const struct gt_update_row *gt_update_row(enum gt_opcode code);
/* Whether the state with number `slot` exists with these attributes. */
bool gt_update_has(const struct gt_update_row *row, const struct gt_attr_update *attr, int slot);

/* The positions of the inputs in a call of an element-wise update. */
struct gt_update_inputs {
	int nslots;  /* states are inputs 2 ... 1 + nslots; the input of a state that does not exist is NULL, or its index is nin or more */
	int scalars; /* index of the input; -1: absent */
	int work;    /* index of the input; -1: absent */
};
/* Checks what the signature (opsig.h) of an element-wise update does not say; does not check the dtype of the work copy. Returns NULL, or
 * the reason why a backend must reject the call. */
const char *gt_update_check(const struct gt_opcall *call, struct gt_update_inputs *out);

/* ---- train.optimizer.type ------------------------------------------------------------------------------------------------ */
enum gt_optimizer {
#define GT_X(NAME, ...) GT_OPT_##NAME,
	GT_OPTIMIZERS(GT_X)
#undef GT_X
	GT_OPT_COUNT
};

struct gt_optimizer_key {
	const char *key; /* "betas"; NULL: the end */
	const char *def; /* default as written in a config, "[0.9, 0.99]"; NULL: the default that all types share */
};

struct gt_optimizer_row {
	const char *word;      /* value of train.optimizer.type: "adamw" */
	enum gt_opcode update; /* the update operation */
	bool decoupled;        /* gt_attr_update.decoupled */
	struct gt_optimizer_key key[12]; /* the keys that it takes and others do not, or with another default; ends with key NULL */
};

extern const struct gt_optimizer_row gt_optimizer_rows[GT_OPT_COUNT]; /* by enum gt_optimizer */

/* Finds a key in a row; NULL: the row does not name it. */
const struct gt_optimizer_key *gt_optimizer_key(const struct gt_optimizer_row *row, const char *key);

#endif
