/* Internal to the plugin cost.so: what the prediction of a step needs besides the plan. */
#ifndef GT_REPORT_COST_INPUT_H
#define GT_REPORT_COST_INPUT_H

#include "gtrain_cost.h"
#include "report/cost_model.h"

struct gt_cost_input {
	struct gt_link link; /* without transport, which the plan's device determines */
	struct gt_times times;
	struct gt_arena *arena;
};

/* Predicts a step of a planned world. Sets *link to the links with their transport. Errors: as of gt_cost_report. */
enum gt_code gt_cost_of(const struct gt_cost_input *in, const struct gt_world_plan *w, struct gt_link *link, struct gt_cost *out,
                        struct gt_err *err);

#endif
