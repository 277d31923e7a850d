/* Inside `gtrain init`: writes configs for tables. */
#ifndef GT_SETUP_INIT_TABLE_H
#define GT_SETUP_INIT_TABLE_H

#include "setup/init_spec.h"

/* Examines the table in a CSV file, and sets *text to a config that predicts the columns spec->targets; the caller frees *text. path:
 * absolute. GT_EUSAGE names the columns if there is no target. */
enum gt_code gt_init_table(const char *path, const struct gt_init_names *names, const struct gt_init_spec *spec, char **text,
                           struct gt_err *err);

#endif
