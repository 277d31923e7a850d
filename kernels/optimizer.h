/* The rows of optimizer_rows.h as structs: what the engine, the backends and the tests look up about an optimizer. */
#ifndef GT_KERNELS_OPTIMIZER_H
#define GT_KERNELS_OPTIMIZER_H

#include "opcall.h"

/* When a state of an update exists. */
enum gt_state_when { GT_STATE_NONE, GT_STATE_ALWAYS, GT_STATE_MOMENTUM, GT_STATE_CENTERED };

/* An update operation. Its inputs are p, g, the slots of the states, scalars and work. */
struct gt_update_row {
	enum gt_opcode code;
	bool matrix; /* the update needs whole parameters of rank 2 or more, and struct gt_attr_muon; else it is element by element */
	int nslots;  /* of states */
	struct {
		const char *name; /* PyTorch's, in a state dict: "exp_avg" */
		enum gt_state_when when;
	} state[GT_MAX_STATES];
};

/* NULL: the operation is not an optimizer's update. */
const struct gt_update_row *gt_update_row(enum gt_opcode code);
/* Whether the state of a slot exists with these attributes. */
bool gt_update_has(const struct gt_update_row *row, const struct gt_attr_update *attr, int slot);

/* Where a call of an element-wise update has its inputs. */
struct gt_update_inputs {
	int nslots;  /* states are inputs 2 .. 1 + nslots; one that does not exist is NULL, or lies behind the last input */
	int scalars; /* index; -1: absent */
	int work;    /* index; -1: absent */
};
/* Checks a call of an element-wise update whose p, g and states have type t, except for the type of the work copy. Returns NULL, or why a
 * backend must refuse it. */
const char *gt_update_check(const struct gt_opcall *call, enum gt_dtype t, struct gt_update_inputs *out);

/* ---- train.optimizer.type ------------------------------------------------------------------------------------------------ */
enum gt_optimizer {
#define GT_X(NAME, ...) GT_OPT_##NAME,
	GT_OPTIMIZERS(GT_X)
#undef GT_X
	GT_OPT_COUNT
};

struct gt_optimizer_key {
	const char *key; /* "betas"; NULL: the end */
	const char *def; /* as a config has it, "[0.9, 0.99]"; NULL: the default that all types share */
};

struct gt_optimizer_row {
	const char *word;      /* "adamw" */
	enum gt_opcode update;
	bool decoupled;        /* gt_attr_update.decoupled */
	struct gt_optimizer_key key[12];
};

extern const struct gt_optimizer_row gt_optimizer_rows[GT_OPT_COUNT]; /* by enum gt_optimizer */

/* NULL: the row does not name the key. */
const struct gt_optimizer_key *gt_optimizer_key(const struct gt_optimizer_row *row, const char *key);

#endif
