/* Inside `gtrain init`: configs for folders of texts. */
#ifndef GT_TUNE_INIT_TEXT_H
#define GT_TUNE_INIT_TEXT_H

#include "base/err.h"
#include <stdbool.h>

/* Returns whether a folder or .tar archive has texts and no images. path: absolute. */
bool gt_init_is_text(const char *path);
/* Looks at the texts in it and writes a config that trains on them to *text, which the caller frees. name: of the run. */
enum gt_code gt_init_text(const char *path, const char *name, char **text, struct gt_err *err);

#endif
