/* Writes the configs of `gtrain init` from templates. The files engine/setup/templates/NAME.cfg are part of the program. A template is the
 * text of a config with
 *
 *     $NAME                the value NAME. Names consist of capital letters; $stride or $in of a config is not changed
 *     ${NAME?yes|no}       the first text if NAME is not 0, the second if it is 0; "|no" is optional; both can contain values
 *     ${NAME:one|many}     the first text if NAME is 1, else the second
 *     \                    at the end of a line: joins it with the next line
 *
 *     #if NAME             at the start of a line: the lines up to #else or #end if NAME is not 0 (#if !NAME: if it is 0)
 *     #else
 *     #end
 *     #include OTHER       at the start of a line: the template OTHER with the same values
 *
 *     const struct gt_init_value values[] = {GT_NUMBER("BATCH", 64), GT_STRINGS("ROOT", &path, 1), {NULL}};
 *     GT_TRY(gt_init_template("images", values, &text, err));
 * */
#ifndef GT_SETUP_INIT_TEMPLATE_H
#define GT_SETUP_INIT_TEMPLATE_H

#include "base/err.h"
#include <stdint.h>

struct gt_init_value {
	const char *name;           /* name of the value in the template; NULL ends a list of values */
	int64_t number;             /* the value if text and strings are NULL; for conditions, 0 if text or strings are empty */
	const char *text;           /* written without change */
	const char *const *strings; /* [number]: written as strings of a config, with commas between them */
};
#define GT_NUMBER(name, value) {(name), .number = (value)}
#define GT_TEXT(name, value) {(name), .number = *(value) != 0, .text = (value)}
#define GT_STRINGS(name, list, n) {(name), .number = (n), .strings = (list)}

/* Writes a template to *text, which the caller frees. GT_EINTERNAL: the template does not exist, or contains a name without a value. */
enum gt_code gt_init_template(const char *name, const struct gt_init_value *values, char **text, struct gt_err *err);

#endif
