/* The file of `gtrain eval --predictions`: a CSV table with a row for each sample of a split, in the order of the split.
 *
 *     gt_sample_table_open(s, GT_TEST, "wrong.csv", &t, err);        begins a temporary file
 *     gt_sample_table_add(t, rows, err);                             for all outputs
 *     gt_sample_table_finish(t, err);                                renames it
 *     gt_sample_table_close(t);                                      without finish: removes it
 *
 *     classes   path, label, prediction, probability_CLASS..., loss
 *     labels    path, label_NAME..., prediction_NAME..., probability_NAME..., loss
 *     numbers   path, NAME..., predicted_NAME..., loss                       in the unit of the targets
 *
 * path is the path of a file, FILE:LINE for a row, or FOLDER[i] for an array. loss is the loss of the sample alone, and empty if the label
 * is ignored. An unreadable image that is skipped has no row. */
#ifndef GT_USE_SAMPLE_TABLE_H
#define GT_USE_SAMPLE_TABLE_H

#include "score/outputs.h"

struct gt_sample_table;

/* path: not copied. GT_ECANTCREAT: the file cannot be written. */
enum gt_code gt_sample_table_open(const struct gt_session *s, enum gt_split split, const char *path, struct gt_sample_table **out,
                                  struct gt_err *err);
enum gt_code gt_sample_table_add(struct gt_sample_table *t, const struct gt_output_rows *rows, struct gt_err *err);
/* Replaces an existing file. */
enum gt_code gt_sample_table_finish(struct gt_sample_table *t, struct gt_err *err);
void gt_sample_table_close(struct gt_sample_table *t); /* does nothing if t is NULL */

#endif
