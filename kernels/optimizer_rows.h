/* One row for each optimizer. The operation codes, the config's values, the kernels' tables and the names in checkpoints are generated from
 * these lists. optimizer.h has the same rows as structs.
 *
 * To add an optimizer: a row in GT_OPTIMIZERS; for each key that no other optimizer has, a row in GT_OPTIMIZER_KEYS; if no update operation
 * here has its formula, a row in GT_ELEMENT_UPDATES, and functions for scalars and step in optim.inc. The CPU and CUDA kernels, the
 * attributes of the operation, the schema, the manual's text, the state dict and linear.dw+update follow. */
#ifndef GT_KERNELS_OPTIMIZER_ROWS_H
#define GT_KERNELS_OPTIMIZER_ROWS_H

/* Update operations: X(NAME, name, state 0, state 1, state 2, loops). The code is GT_OP_NAME; optim.inc has gt_scalars_name and
 * gt_step_name, or the functions listed at NORMS below. The operands are p g [state 0] [state 1] [state 2] [scalars] [work]; a state that
 * is NONE() in the row has no operand. All operands are flat. p, the states and work are updated in place, unless scalars.skip is set.
 * state: the name of the state in PyTorch's state dict, and the condition under which the state exists:
 *   ALWAYS(name), IF(key, name): if attr.key, a NUMBER or a FLAG of GT_OPTIMIZER_KEYS, is not 0, NONE().
 * loops: the flags of a launch for which a CPU kernel has a loop of its own:
 *   PLAIN: no flag. FIRST_NESTEROV: if state 0 exists, two flags: whether this is the first step, and attr.nesterov.
 *   NORMS: the step of each parameter is scaled by a ratio, which depends on norms of the whole parameter. optim.inc has
 *     gt_direction_name instead of gt_step_name: it updates the states and returns the direction of an element; gt_again_name returns it
 *     again from the updated states, and gt_ratio_name computes the ratio from the norms of parameter and direction.
 *   MATRIX: the update is not element by element; a backend has a kernel of its own for it.
 * EMA is no optimizer: its p is the moving average of the parameters (train.ema), and its g the parameters.
 * In an element-wise update, an element depends only on its own operands. So parameters may be divided anywhere: into shards of ranks, and
 * into tiles of linear.dw+update. NORMS and MATRIX updates need whole parameters, each in a segment of its own. */
#define GT_ELEMENT_UPDATES(X)                                                                                               \
	X(SGD, sgd, IF(momentum, "momentum_buffer"), NONE(), NONE(), FIRST_NESTEROV)                                            \
	X(ADAM, adam, ALWAYS("exp_avg"), ALWAYS("exp_avg_sq"), IF(amsgrad, "max_exp_avg_sq"), PLAIN)                            \
	X(RMSPROP, rmsprop, ALWAYS("square_avg"), IF(momentum, "momentum_buffer"), IF(centered, "grad_avg"), PLAIN)             \
	X(LION, lion, ALWAYS("exp_avg"), NONE(), NONE(), PLAIN)                                                                 \
	X(NADAM, nadam, ALWAYS("exp_avg"), ALWAYS("exp_avg_sq"), NONE(), PLAIN)                                                 \
	X(RADAM, radam, ALWAYS("exp_avg"), ALWAYS("exp_avg_sq"), NONE(), PLAIN)                                                 \
	X(ADAGRAD, adagrad, ALWAYS("sum"), NONE(), NONE(), PLAIN)                                                               \
	X(EMA, ema, NONE(), NONE(), NONE(), PLAIN)
#define GT_NORM_UPDATES(X)                                                                                                  \
	X(LAMB, lamb, ALWAYS("exp_avg"), ALWAYS("exp_avg_sq"), NONE(), NORMS)
#define GT_UPDATES(X)                                                                                                       \
	GT_ELEMENT_UPDATES(X)                                                                                                   \
	GT_NORM_UPDATES(X)                                                                                                      \
	X(MUON, muon, ALWAYS("momentum_buffer"), NONE(), NONE(), MATRIX)
#define GT_MAX_STATES 3

/* Keys of train.optimizer that are attributes of the update operation: X(P, A, KIND, key, default, max, help). The member of struct
 * gt_attr_update and of struct gt_conf_optimizer has the name of the key. Values are at least 0 and at most max. P and A are passed to X.
 * KIND:
 *   NUMBER: double.  FLAG: bool; max is 0.  BETAS: two values less than max, which are beta1 and beta2 in gt_attr_update.
 * A key exists for the types whose row in GT_OPTIMIZERS names it. */
#define GT_OPTIMIZER_KEYS(X, P, A)                                                                                          \
	X(P, A, NUMBER, momentum, "0.0", 1, "factor of the previous momentum in the new momentum")                              \
	X(P, A, NUMBER, dampening, "0.0", 1, "part of the gradient that is left out of the momentum")                           \
	X(P, A, FLAG, nesterov, "false", 0, "use Nesterov's momentum")                                                          \
	X(P, A, BETAS, betas, "[0.9, 0.999]", 1, "decay rates of the first and the second moment")                              \
	X(P, A, NUMBER, alpha, "0.99", 1, "decay rate of the mean of squared gradients")                                        \
	X(P, A, FLAG, centered, "false", 0,                                                                                     \
	  "divide by the root of the gradients' variance instead of the root of their mean square")                             \
	X(P, A, NUMBER, eps, "1.0e-8", 1,                                                                                       \
	  "value added to the divisor; muon: lower bound of the divisor; with 0, elements whose divisor is 0 are not updated")  \
	X(P, A, FLAG, amsgrad, "false", 0, "divide by the square root of the largest second moment so far, not of the latest")  \
	X(P, A, NUMBER, momentum_decay, "4.0e-3", INFINITY, "rate at which the momentum of a step approaches the first value of betas") \
	X(P, A, NUMBER, lr_decay, "0.0", INFINITY, "divide the learning rate of step t by 1 + (t - 1) * lr_decay")              \
	X(P, A, NUMBER, initial_accumulator_value, "0.0", INFINITY, "initial value of the sums of squared gradients")           \
	X(P, A, FLAG, always_adapt, "false", 0, "also scale the steps of parameters without weight decay")                      \
	X(P, A, FLAG, trust_clip, "false", 0, "limit the scale of a step to at most 1")                                         \
	X(P, A, FLAG, decoupled_weight_decay, "false", 0, "apply weight decay to the parameters, as adamw does, not to the gradients")

/* Values of train.optimizer.type: X(NAME, word, UPDATE, decoupled, help, keys…). The enumerator is GT_OPT_NAME, the operation
 * GT_OP_UPDATE with attr.decoupled = decoupled. keys: the keys of train.optimizer that this type accepts but not every type does, {"key"},
 * and keys whose default differs from the usual default, {"key", "default"}. */
#define GT_OPTIMIZERS(X)                                                                                                    \
	X(SGD, "sgd", SGD, false, "torch.optim.SGD", {"momentum"}, {"dampening"}, {"nesterov"})                                 \
	X(ADAM, "adam", ADAM, false, "torch.optim.Adam", {"betas"}, {"eps"}, {"amsgrad"})                                       \
	X(ADAMW, "adamw", ADAM, true, "torch.optim.AdamW, whose weight decay is decoupled from the gradient", {"betas"}, {"eps"}, \
	  {"amsgrad"}, {"weight_decay", "0.01"})                                                                                \
	X(RMSPROP, "rmsprop", RMSPROP, false, "torch.optim.RMSprop", {"momentum"}, {"alpha"}, {"centered"}, {"eps"})            \
	X(MUON, "muon", MUON, false,                                                                                            \
	  "torch.optim.Muon, which only updates weights of linear and convolution layers; its weight decay is also decoupled",  \
	  {"momentum", "0.95"}, {"nesterov", "true"}, {"eps", "1.0e-7"}, {"weight_decay", "0.1"}, {"ns_steps"}, {"ns_coefficients"}, \
	  {"adjust_lr"}, {"normalize"})                                                                                          \
	X(LION, "lion", LION, false,                                                                                            \
	  "Lion, of the paper Symbolic Discovery of Optimization Algorithms (2023), which steps by the sign of an average of "  \
	  "gradients; betas[0] makes the direction of a step, betas[1] the stored average; the weight decay is decoupled, as in adamw",  \
	  {"betas", "[0.9, 0.99]"})                                                                                             \
	X(NADAM, "nadam", NADAM, false, "torch.optim.NAdam", {"betas"}, {"eps"}, {"momentum_decay"}, {"decoupled_weight_decay"}) \
	X(RADAM, "radam", RADAM, false, "torch.optim.RAdam", {"betas"}, {"eps"}, {"decoupled_weight_decay"})                    \
	X(ADAGRAD, "adagrad", ADAGRAD, false, "torch.optim.Adagrad", {"eps", "1.0e-10"}, {"lr_decay"}, {"initial_accumulator_value"}) \
	X(LAMB, "lamb", LAMB, false,                                                                                            \
	  "timm.optim.Lamb, whose step is adam's step plus weight_decay times the parameter; for each parameter tensor with "   \
	  "weight decay, the step is scaled by the norm of the tensor divided by the norm of the step; train.clip_norm is its max_grad_norm", \
	  {"betas"}, {"eps", "1.0e-6"}, {"weight_decay", "0.01"}, {"always_adapt"}, {"trust_clip"})

/* GT_STATES_ALL and GT_STATES_MUST make a bit mask of the states of a row, in which bit k is state k. ALL has the states that may exist,
 * MUST has those that always exist. */
#define GT_STATE_ALL_NONE() 0
#define GT_STATE_ALL_ALWAYS(name) 1
#define GT_STATE_ALL_IF(key, name) 1
#define GT_STATE_MUST_NONE() 0
#define GT_STATE_MUST_ALWAYS(name) 1
#define GT_STATE_MUST_IF(key, name) 0
#define GT_STATES_ALL(s0, s1, s2) (GT_STATE_ALL_##s0 | GT_STATE_ALL_##s1 << 1 | GT_STATE_ALL_##s2 << 2)
#define GT_STATES_MUST(s0, s1, s2) (GT_STATE_MUST_##s0 | GT_STATE_MUST_##s1 << 1 | GT_STATE_MUST_##s2 << 2)
/* The text of one state in a signature (opcall.h). A state that a row names is an optional operand, also in calls without the state. */
#define GT_STATE_SIG_NONE()
#define GT_STATE_SIG_ALWAYS(name) "[" name ":f(E)!] "
#define GT_STATE_SIG_IF(key, name) GT_STATE_SIG_ALWAYS(name)
/* The number of operands for states: one for each state that a row names, also in calls without the state. */
#define GT_STATES_SLOTS(s0, s1, s2) (GT_STATE_ALL_##s0 + GT_STATE_ALL_##s1 + GT_STATE_ALL_##s2)

#endif
