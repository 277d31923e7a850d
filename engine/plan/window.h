/* The kernel that runs whole windows of training, where the model and the device allow one: GT_OP_MLP_STEPS. A program keeps its list of
 * steps; the executor launches gt_prog.window in their place.
 *
 *     gt_plan_window(space, graph, &spec, &call, &asked, &why, err);     call.kernel is NULL if there is none; why says the reason
 *     prog.window = &call;
 *     gt_window_bind(&call, space);                              after gt_space_alloc
 *
 *     list     n * (load | kernels of one step | check | update)
 *     window   one kernel: n steps */
#ifndef GT_PLAN_WINDOW_H
#define GT_PLAN_WINDOW_H

#include "optimizer.h"
#include "plan/step.h"

/* Operands of the call: the first three are those of the data (gt_loader_operands), then p, states, scalars, scaler and
 * the moving average. */
#define GT_WINDOW_OPERANDS 9
#define GT_WINDOW_STATES 2

struct gt_window_spec {
	const struct gt_update_spec *apply;  /* one entry for each parameter, which all have the same optimizer */
	const struct gt_attr_gather *gather; /* how the bytes of a sample become the input */
	int64_t samples;                     /* samples of the dataset in device memory */
	int64_t shape[3];                    /* channels, height and width of a sample */
	int64_t order;                       /* positions of an epoch */
	bool deterministic;
	bool ema;                            /* the parameters have a moving average, in the slot of STATE behind those of the optimizer */
	double ema_decay;
	bool ema_warmup;
};

/* Prepares the kernel for a training graph of one device whose parameters have their place in the arena. Otherwise *why is the reason.
 * *asked: the call that was prepared, in the arena of g; NULL: none. A device that is not there (null:cuda) accepts what no card refuses;
 * gt_mlp_divide says whether a card has room. */
enum gt_code gt_plan_window(struct gt_space *s, const struct gt_graph *g, const struct gt_window_spec *spec, struct gt_call *out,
                            const struct gt_opcall **asked, const char **why, struct gt_err *err);
/* Fills in the operands that are in the arenas. */
void gt_window_bind(struct gt_call *c, const struct gt_space *s);

#endif
