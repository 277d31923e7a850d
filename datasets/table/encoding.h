/* Converts text in other encodings to UTF-8. A file with a UTF-16 byte order mark (spreadsheets call it "Unicode text") is always
 * converted; a file with a UTF-8 byte order mark is not. Other encodings cannot be detected reliably, so the user names them. */
#ifndef GT_DATASETS_TABLE_ENCODING_H
#define GT_DATASETS_TABLE_ENCODING_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gt_encoding { GT_UTF_8, GT_LATIN_1, GT_WINDOWS_1252 };
#define GT_ENCODING_WORDS "utf-8|latin-1|windows-1252" /* names of the encodings in a config, in the order of enum gt_encoding */

/* Macros for the end of a message about text that is not UTF-8: how to convert the file, and the setting of the encoding besides. */
#define GT_CONVERT_FILE "convert the file with `iconv -f WINDOWS-1252 -t UTF-8` if it comes from a spreadsheet on Windows"
#define GT_USE_ENCODING                                                                                                          \
	"write data.encoding = \"windows-1252\" if it comes from a spreadsheet on Windows, or convert the file with `iconv -f WINDOWS-1252 " \
	"-t UTF-8`"

bool gt_encoding_is_utf16(const void *text, size_t n); /* returns whether text begins with a UTF-16 byte order mark */

/* Converts n bytes to UTF-8, into *out, which is malloc'ed and has *len bytes plus `pad` unused bytes; a byte order mark is removed. A
 * UTF-16 byte order mark overrides `from`. path: for messages. GT_EDATA names file and line of a byte that is invalid in the encoding. */
enum gt_code gt_encoding_convert(enum gt_encoding from, const void *text, size_t n, size_t pad, const char *path, char **out, size_t *len,
                                 struct gt_err *err);

bool gt_encoding_has_windows(uint8_t byte); /* returns whether Windows-1252 has a character for the byte */

#endif
