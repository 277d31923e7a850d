/* The schedules of the learning rate, one row each. The enumeration, the values of train.schedule.type, the keys of each type, the words of
 * PyTorch for "did you mean" and the text of the manual follow from these rows.
 *
 * To add a schedule: a row in GT_SCHEDULES; if it has keys that no other schedule has, a row for each in GT_SCHEDULE_KEYS; its formula
 * rate_<word> in session/lr_schedule.c; and a curve in tests/golden/make_schedules.py and tests/unit/test_schedule.c. */
#ifndef GT_CONF_SCHEDULE_ROWS_H
#define GT_CONF_SCHEDULE_ROWS_H

#include "conf/metric_name.h"
#include "ir/graph.h"
#include "optimizer.h"
#include <math.h>

/* Values of train.schedule.type: X(NAME, word, counted, also, help, keys...). The enumerator is GT_SCHED_NAME.
 *   counted  a key other than t_max and warmup is a length, or a factor for each length, in the unit of train.schedule.unit
 *   also     names of this schedule in other programs, "a|b"; case is ignored
 *   help     for the manual: the name in torch.optim.lr_scheduler, if any, and facts that the keys do not show
 *   keys     additional keys of this type: {"key"}, or {"key", "default for this type"} */
#define GT_SCHED_WARMUP {"warmup"}, {"warmup_start"}
#define GT_SCHEDULES(X)                                                                                                                    \
	X(CONSTANT, constant, false, "none", "lr", GT_SCHED_WARMUP)                                                                            \
	X(STEP, step, true, "StepLR", "StepLR, lr is multiplied by gamma after every step_size", {"step_size"}, {"gamma"}, GT_SCHED_WARMUP)    \
	X(MULTISTEP, multistep, true, "MultiStepLR", "MultiStepLR, lr is multiplied by gamma at each of the milestones", {"milestones"},       \
	  {"gamma"}, GT_SCHED_WARMUP)                                                                                                          \
	X(EXPONENTIAL, exponential, true, "ExponentialLR", "ExponentialLR, lr is multiplied by gamma once per unit", {"gamma"},                \
	  GT_SCHED_WARMUP)                                                                                                                     \
	X(COSINE, cosine, false, "CosineAnnealingLR|cosine_annealing", "CosineAnnealingLR, half a cosine from lr to min_lr", {"t_max"},        \
	  {"min_lr"}, GT_SCHED_WARMUP)                                                                                                         \
	X(POLYNOMIAL, polynomial, false, "PolynomialLR|linear", "PolynomialLR, from lr to min_lr; linear with power = 1", {"t_max"},           \
	  {"min_lr"}, {"power"}, GT_SCHED_WARMUP)                                                                                              \
	X(ONECYCLE, onecycle, false, "OneCycleLR",                                                                                             \
	  "OneCycleLR: in the first pct_start of the run, rises from lr / div_factor to lr; then falls to lr / div_factor / "                  \
	  "final_div_factor; the momentum falls while the learning rate rises", {"t_max"}, {"pct_start"}, {"div_factor"},                      \
	  {"final_div_factor"}, {"three_phase"}, {"anneal_strategy"}, {"cycle_momentum"}, {"base_momentum"}, {"max_momentum"})                 \
	X(FLAT_COSINE, flat_cosine, false, "", "constant, then half a cosine down", {"t_max"}, {"min_lr"}, {"pct_flat"}, GT_SCHED_WARMUP)      \
	X(PLATEAU, plateau, false, "ReduceLROnPlateau|reduce_lr_on_plateau|reduce_on_plateau",                                                 \
	  "ReduceLROnPlateau, the only type whose learning rates depend on the results of the run", {"min_lr"}, {"metric"}, {"factor"},        \
	  {"patience"},                                                                                                                        \
	  {"threshold"}, {"cooldown"}, GT_SCHED_WARMUP)                                                                                        \
	X(COSINE_RESTARTS, cosine_restarts, true, "CosineAnnealingWarmRestarts|cosine_annealing_warm_restarts|cosine_with_restarts",           \
	  "CosineAnnealingWarmRestarts, consecutive half cosines that each start at lr", {"t_0"}, {"t_mult"}, {"min_lr"}, GT_SCHED_WARMUP)     \
	X(CYCLIC, cyclic, true, "CyclicLR", "CyclicLR, repeated cycles from base_lr up to lr and back", {"gamma"}, {"base_lr"},                \
	  {"step_size_up"}, {"step_size_down"}, {"mode"}, {"cycle_momentum"}, {"base_momentum", "0.8"}, {"max_momentum", "0.9"})               \
	X(INVERSE_SQRT, inverse_sqrt, true, "inverse_square_root|inv_sqrt|get_inverse_sqrt_schedule",                                          \
	  "get_inverse_sqrt_schedule of transformers, lr * sqrt(timescale / (timescale + t)), where t starts after the warm-up",               \
	  {"timescale"},                                                                                                                       \
	  GT_SCHED_WARMUP)

enum gt_cyclic_mode { GT_CYCLIC_TRIANGULAR, GT_CYCLIC_TRIANGULAR2, GT_CYCLIC_EXP_RANGE };
enum gt_anneal { GT_ANNEAL_COS, GT_ANNEAL_LINEAR };

#define GT_SCHED_IN_UNITS ", in epochs (unit = \"step\": in steps)"

/* Keys of train.schedule: X(P, A, TYPE, key, values, default, min, max, flags, help), columns of struct gt_row (conf/schema.h): TYPE is
 * GT_T_TYPE, and values are the words of an ENUM or a CHOICE. The member of struct gt_conf_schedule has the name of the key. P and A are
 * passed to X. A key exists for the types whose row in GT_SCHEDULES names it. */
#define GT_SCHEDULE_KEYS(X, P, A)                                                                                                          \
	X(P, A, FLOAT, warmup, NULL, "0.0", 0, INFINITY, 0,                                                                                    \
	  "length of a linear warm-up of the learning rate before the schedule" GT_SCHED_IN_UNITS)                                             \
	X(P, A, FLOAT, warmup_start, NULL, "0.0", 0, 1, 0, "learning rate at the first step of the warm-up, divided by lr")                    \
	X(P, A, FLOAT, step_size, NULL, NULL, 0, INFINITY, GT_R_ABOVE | GT_R_REQUIRED,                                                         \
	  "interval after which the learning rate is multiplied by gamma" GT_SCHED_IN_UNITS)                                                   \
	X(P, A, FLOATS, milestones, NULL, NULL, 0, INFINITY, GT_R_ABOVE | GT_R_REQUIRED,                                                       \
	  "times, in ascending order, at which the learning rate is multiplied by gamma" GT_SCHED_IN_UNITS)                                    \
	X(P, A, FLOAT, gamma, NULL, "0.1", 0, INFINITY, 0,                                                                                     \
	  "factor by which the learning rate is multiplied; exponential applies it once per unit; exponential, and cyclic with mode "          \
	  "exp_range, require this key")                                                                                                       \
	X(P, A, FLOAT, t_max, NULL, "0.0", 0, INFINITY, 0,                                                                                     \
	  "length of the schedule after the warm-up" GT_SCHED_IN_UNITS "; 0: until the end of the run, so that a resume with more epochs "    \
	  "stretches the schedule and the learning rate jumps")                                                                                \
	X(P, A, FLOAT, t_0, NULL, NULL, 0, INFINITY, GT_R_ABOVE | GT_R_REQUIRED,                                                               \
	  "length of the schedule's first half cosine" GT_SCHED_IN_UNITS)                                                                      \
	X(P, A, INT, t_mult, NULL, "1", 1, 1 << 20, 0, "factor by which each half cosine is longer than the previous half cosine")             \
	X(P, A, FLOAT, min_lr, NULL, "0.0", 0, INFINITY, 0, "learning rate at the end of the decay; plateau: lowest learning rate")            \
	X(P, A, FLOAT, pct_flat, NULL, "0.75", 0, 1, GT_R_BELOW,                                                                               \
	  "fraction of the schedule in which the learning rate is constant, like pct_start of fastai's fit_flat_cos")                          \
	X(P, A, CHOICE, metric, &(GT_METRICS_EVALUATED)[1], "\"valid/loss\"", 0, 0, 0, "metric that must improve; " GT_METRICS_DIRECTION)      \
	X(P, A, FLOAT, factor, NULL, "0.1", 0, 1, GT_R_ABOVE | GT_R_BELOW, "factor by which a reduction multiplies the learning rate")         \
	X(P, A, INT, patience, NULL, "10", 0, 1 << 30, 0,                                                                                      \
	  "number of evaluations without an improvement before the learning rate is reduced")                                                  \
	X(P, A, FLOAT, threshold, NULL, "1.0e-4", 0, INFINITY, 0, "smallest relative change of the metric that counts as an improvement")      \
	X(P, A, INT, cooldown, NULL, "0", 0, 1 << 30, 0, "number of evaluations that are ignored after a reduction of the learning rate")      \
	X(P, A, FLOAT, power, NULL, "1.0", 0, INFINITY, GT_R_ABOVE, "exponent of the decay; 1: linear decay")                                  \
	X(P, A, FLOAT, timescale, NULL, "0.0", 0, INFINITY, 0,                                                                                 \
	  "time after which the learning rate has fallen to 0.71 lr; 0: the value of warmup, or 10000 steps without a warm-up")                \
	X(P, A, FLOAT, pct_start, NULL, "0.3", 0, 1, 0, "fraction of the cycle in which the learning rate rises to lr")                        \
	X(P, A, FLOAT, div_factor, NULL, "25.0", 0, INFINITY, GT_R_ABOVE, "the cycle begins at a learning rate of lr / div_factor")            \
	X(P, A, FLOAT, final_div_factor, NULL, "10000.0", 0, INFINITY, GT_R_ABOVE,                                                             \
	  "the cycle ends at a learning rate of lr / div_factor / final_div_factor")                                                           \
	X(P, A, BOOL, three_phase, NULL, "false", 0, 0, 0,                                                                                     \
	  "let the learning rate fall to lr / div_factor in as many steps as it rose, then fall until the cycle ends")                         \
	X(P, A, ENUM, anneal_strategy, "cos|linear", "\"cos\"", 0, 0, 0, "shape of the learning rate in each part of the cycle")               \
	X(P, A, FLOAT, base_lr, NULL, NULL, 0, INFINITY, GT_R_REQUIRED,                                                                        \
	  "learning rate at the beginning of each cycle; the highest learning rate is lr")                                                     \
	X(P, A, FLOAT, step_size_up, NULL, NULL, 0, INFINITY, GT_R_ABOVE | GT_R_REQUIRED,                                                      \
	  "length of the part of a cycle in which the learning rate rises" GT_SCHED_IN_UNITS)                                                  \
	X(P, A, FLOAT, step_size_down, NULL, "0.0", 0, INFINITY, 0,                                                                            \
	  "length of the part of a cycle in which the learning rate falls; 0: the value of step_size_up")                                      \
	X(P, A, ENUM, mode, "triangular|triangular2|exp_range", "\"triangular\"", 0, 0, 0,                                                     \
	  "triangular: all cycles are equal; triangular2: each cycle rises half as far as the previous cycle; exp_range: the rise is "         \
	  "multiplied by gamma once per unit")                                                                                                 \
	X(P, A, BOOL, cycle_momentum, NULL, "(true if the optimizer has betas or a momentum)", 0, 0, 0,                                        \
	  "change the momentum, or the first of betas, from max_momentum to base_momentum while the learning rate rises, and back while it "   \
	  "falls; the optimizer's own value then has no effect; in checkpoints of earlier versions without this key: false")          \
	X(P, A, FLOAT, base_momentum, NULL, "0.85", 0, 1, GT_R_ABOVE | GT_R_BELOW, "momentum at the highest learning rate")                    \
	X(P, A, FLOAT, max_momentum, NULL, "0.95", 0, 1, GT_R_ABOVE | GT_R_BELOW, "momentum at the beginning and at the end of the cycle")

enum gt_schedule {
#define GT_X(NAME, ...) GT_SCHED_##NAME,
	GT_SCHEDULES(GT_X)
#undef GT_X
	GT_SCHED_COUNT
};

struct gt_schedule_row {
	const char *word; /* value of train.schedule.type: "cosine" */
	bool counted;
	const char *also;
	struct gt_type_key key[12]; /* ends with key NULL */
};
extern const struct gt_schedule_row gt_schedule_rows[GT_SCHED_COUNT]; /* indexed by enum gt_schedule */

/* Returns whether schedules of a type (enum gt_schedule) have a key of GT_SCHEDULE_KEYS. */
static inline bool gt_schedule_has(int type, const char *key)
{
	return gt_type_key_find(gt_schedule_rows[type].key, key) != NULL;
}

#define GT_SCHEDULE_MEMBER_FLOAT double
#define GT_SCHEDULE_MEMBER_INT int64_t
#define GT_SCHEDULE_MEMBER_BOOL bool
#define GT_SCHEDULE_MEMBER_ENUM int
#define GT_SCHEDULE_MEMBER_CHOICE const char *
#define GT_SCHEDULE_MEMBER_FLOATS struct gt_floats
enum gt_sched_unit { GT_UNIT_EPOCH, GT_UNIT_STEP };
/* The group train.schedule. type: enum gt_schedule. unit: enum gt_sched_unit, of the lengths. */
struct gt_conf_schedule {
	int type, unit;
#define GT_X(P, A, TYPE, key, ...) GT_SCHEDULE_MEMBER_##TYPE key;
	GT_SCHEDULE_KEYS(GT_X, , )
#undef GT_X
};

#endif
