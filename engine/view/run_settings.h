/* The resolved config of a run as a list of keys and values. */
#ifndef GT_VIEW_RUN_SETTINGS_H
#define GT_VIEW_RUN_SETTINGS_H

#include "gtrain_view.h"

/* Fills setting and nsettings from the text of a config. label: name of the text in errors. GT_ECONFIG: the text is not a valid config. */
enum gt_code gt_run_settings_read(const char *label, const char *text, struct gt_arena *a, struct gt_run_record *r, struct gt_err *err);

#endif
