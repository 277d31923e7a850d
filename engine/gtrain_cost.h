/* A part of the public interface of the engine (gtrain.h), in the plugin cost.so: predicts the time of a training step on several hosts
 * from times of kernels that gtrain bench has measured.
 *
 *     struct gt_cost_input *in;
 *     GT_TRY(gt_cost_open("100Gbit,5us", "times.json", arena, &in, err));
 *     struct gt_check_opts o = {.world = 64, .apart = true, .more = gt_cost_report, .user = in};
 *     GT_TRY(gt_check(conf, &o, &j, &r, err));      the report has the member "cost"
 */
#ifndef GT_GTRAIN_COST_H
#define GT_GTRAIN_COST_H

#include "base/arena.h"
#include "gtrain_report.h"

struct gt_cost_input;

/* Reads the description of the links, "BANDWIDTH,LATENCY", and a file of lines of `gtrain bench --json`. The arena owns *out. GT_EUSAGE:
 * the description is wrong. GT_ENOINPUT, GT_EDATA: the file is missing or wrong. */
enum gt_code gt_cost_open(const char *link, const char *times, struct gt_arena *a, struct gt_cost_input **out, struct gt_err *err);
/* Returns a warning that the times of kernels in the file do not fit the time of the step that they belong to, as if the machine had been
 * busy; NULL: they fit. */
const char *gt_cost_doubt(const struct gt_cost_input *in);
/* Sets the options of `gtrain bench` with which it measures the plans that are predicted next, for the error that a time is missing. Each
 * option begins with a space: " -s parallel.mode=zero". The text must outlive `in`. */
void gt_cost_set_options(struct gt_cost_input *in, const char *options);
/* Adds the predicted times of a step to a report, as the object "cost". user: a struct gt_cost_input. GT_EUSAGE: the plan has one rank or
 * communicates in a way that the model does not know. */
gt_report_part gt_cost_report;

#endif
