/* Finds out how the characters and the numbers of a table are written. Used by `gtrain init`; a run reads what
 * its config says. */
#ifndef GT_DATASETS_TABLE_GUESS_H
#define GT_DATASETS_TABLE_GUESS_H

#include "table/table_spec.h"

/* Looks at the first rows of a file and sets *out to the notation in which most columns have numbers; that of C, all zero, if no other
 * makes more columns numbers. Of the spec, delimiter, na and encoding are used. *ambiguous: every number could also be read in another
 * notation, such as 1,234 with a decimal comma and with a separator of thousands; files with semicolons or tabs then have decimal
 * commas. */
enum gt_code gt_table_guess_notation(const char *path, const struct gt_table_spec *spec, struct gt_notation *out, bool *ambiguous,
                                     struct gt_err *err);

/* Sets *out to GT_WINDOWS_1252 if a file is no UTF-8, has no other characters of UTF-8 than ASCII, and can be this; else to GT_UTF_8. */
enum gt_code gt_table_guess_encoding(const char *path, enum gt_encoding *out, struct gt_err *err);

#endif
