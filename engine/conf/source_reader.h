/* What stands between a hostile or mistaken file and libconfig 1.5, which turns 4294967297 into 1, 3000000000 into -1294967296 and
 * "a\x00b" into "a", lets "." pass for 0, calls exit() on some includes and blocks on others. source_reader.c reads files within limits
 * and follows @include; lexer.c checks every token and the grammar from the source text, and writes clean text for libconfig.
 *
 * The language is libconfig's, with these choices:
 * - @include "file" stands alone on its line; a relative name is relative to the folder of the file that includes it. A file
 *   closes the brackets that it opens.
 * - Integers are 64 bits wide, with or without L. What does not fit is an error, as are leading zeros and floats beyond a double.
 * - A comma before `)` or `]` is allowed. An array `[ ]` holds scalars of one kind.
 * - Strings are UTF-8 without control characters, and end on their line; escapes are \\ \" and \xHH. */
#ifndef GT_CONF_SOURCE_READER_H
#define GT_CONF_SOURCE_READER_H

#include "conf/ctree.h"

#define GT_CONF_MAX_BYTES (4 << 20) /* all files of a config together */
#define GT_CONF_MAX_FILES 64
#define GT_CONF_MAX_INCLUDES 8     /* deep */
#define GT_CONF_MAX_DEPTH 32       /* brackets within brackets */
#define GT_CONF_MAX_MEMBERS 4096   /* of one group: libconfig compares each with all */
#define GT_CONF_MAX_ELEMENTS 65536 /* of one list or array */
#define GT_CONF_MAX_VALUES 500000  /* names and values together */

/* GT_ENOINPUT: no such file or not a readable regular one. GT_ECONFIG: anything else, with its place. */
enum gt_code gt_source_check_file(struct gt_arena *a, const char *path, struct gt_clean *out, struct gt_err *err);
/* Text in memory; @include is refused. label stands where a file name would; line1 is the number of its first line, 0: none. */
enum gt_code gt_source_check_text(struct gt_arena *a, const char *label, int line1, const char *text, size_t n, struct gt_clean *out,
                           struct gt_err *err);

/* ---- between source_reader.c and lexer.c ------------------------------------------------------------------------------------------ */
struct gt_frame { /* an open bracket, or the file */
	char open;    /* '{', '(', '[', 0: the top */
	int state;
	int count;
	enum gt_ctype kind; /* of an array's elements */
	struct gt_source_loc loc;
};

struct gt_lexer {
	struct gt_arena *arena;
	struct gt_clean *out;
	struct gt_frame frame[GT_CONF_MAX_DEPTH + 1];
	int depth;
	/* the text being read */
	const char *p, *end, *bol; /* bol: where its line begins */
	struct gt_source_loc at;
	const char *key; /* in the text: the last name read, for messages */
	int nkey;
	char *str; /* malloc'ed: the string being read */
	size_t nstr, cap_str;
	/* NULL: @include is refused */
	enum gt_code (*include)(struct gt_lexer *lx, const char *name, struct gt_err *err);
	void *user;
};
/* Reads lx->p up to lx->end. A frame that was open before stays open, one that opens in here must close in here. */
enum gt_code gt_lex(struct gt_lexer *lx, struct gt_err *err);
/* NULL if the bytes are UTF-8 without control characters, else what is wrong with them. */
const char *gt_string_fault(const char *s, size_t n);

#endif
