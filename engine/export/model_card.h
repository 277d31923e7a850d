/* README.md of an exported directory: a model card, filled from the checkpoint and the run that it belongs to. */
#ifndef GT_EXPORT_MODEL_CARD_H
#define GT_EXPORT_MODEL_CARD_H

#include "export/export_source.h"

/* Writes the text to *out, which the caller frees. Scores are those that the run has measured at the step of the checkpoint; a checkpoint
 * without the metrics.jsonl of its run has none. */
enum gt_code gt_model_card(const struct gt_export_source *s, char **out, struct gt_err *err);

#endif
