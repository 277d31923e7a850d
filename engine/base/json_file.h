/* Writes a finished JSON text to a file. */
#ifndef GT_BASE_JSON_FILE_H
#define GT_BASE_JSON_FILE_H

#include "base/json.h"

/* Replaces the file `name` in dir atomically by the text of j and a newline (gt_file_replace), and frees j in any case. */
enum gt_code gt_json_save(struct gt_json *j, const char *dir, const char *name, struct gt_err *err);

#endif
