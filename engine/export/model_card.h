/* Writes README.md of an exported directory: a model card with facts from the checkpoint and its run. */
#ifndef GT_EXPORT_MODEL_CARD_H
#define GT_EXPORT_MODEL_CARD_H

#include "export/export_source.h"

/* Writes the text to *out, which the caller frees. Its scores are the scores of the run at the step of the checkpoint; there are none
 * without the metrics.jsonl of the run. */
enum gt_code gt_model_card(const struct gt_export_source *s, char **out, struct gt_err *err);

#endif
