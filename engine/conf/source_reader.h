/* Checks the source text of a config before libconfig 1.5 parses it. libconfig reads 4294967297 as 1, 3000000000 as -1294967296, "a\x00b"
 * as "a" and "." as 0; it calls exit() for some includes and blocks for others. Therefore source_reader.c reads the files within limits and
 * follows @include, and lexer.c checks every token and the grammar, and writes text that libconfig cannot misread.
 *
 *     net.cfg + included files -> source_reader.c -> lexer.c -> struct gt_clean -> libconfig (ctree.c) -> struct gt_cnode
 *
 * The language is that of libconfig with these rules:
 * - @include "file" is the only text on its line. A relative name is relative to the directory of the including file. A file closes the
 *   brackets that it opens.
 * - Integers have 64 bits, with or without L. An integer that does not fit is an error, and so are leading zeros and floats that a double
 *   cannot hold.
 * - A comma before `)` or `]` is allowed. An array `[ ]` has scalars of one type.
 * - Strings are UTF-8 without control characters, and end on their line. The escape sequences are \\ \" and \xHH. */
#ifndef GT_CONF_SOURCE_READER_H
#define GT_CONF_SOURCE_READER_H

#include "conf/ctree.h"

#define GT_CONF_MAX_BYTES (4 << 20) /* total size of all files of a config */
#define GT_CONF_MAX_FILES 64
#define GT_CONF_MAX_INCLUDES 8     /* depth of nested includes */
#define GT_CONF_MAX_DEPTH 32       /* depth of nested brackets */
#define GT_CONF_MAX_MEMBERS 4096   /* keys of one group; libconfig compares each key with all others */
#define GT_CONF_MAX_ELEMENTS 65536 /* maximum number of elements of one list or array */
#define GT_CONF_MAX_VALUES 500000  /* maximum number of names and values of a config together */

/* Reads and checks a file with its includes. fd: a descriptor of the file, which is read from its beginning (path is only its name in
 * messages); -1: opens path. GT_ENOINPUT: the file does not exist, or is not a readable regular file. GT_ECONFIG: any other error, with
 * file and line. */
enum gt_code gt_source_check_file(struct gt_arena *a, const char *path, int fd, struct gt_clean *out, struct gt_err *err);
/* Checks n bytes in memory like gt_source_check_file; @include is an error. label: the file name in messages. line1: number of the first
 * line in messages; 0: messages have no line numbers. */
enum gt_code gt_source_check_text(struct gt_arena *a, const char *label, int line1, const char *text, size_t n, struct gt_clean *out,
                           struct gt_err *err);

/* ---- between source_reader.c and lexer.c ------------------------------------------------------------------------------------------ */
struct gt_frame { /* an open bracket, or the top level of a file */
	char open;    /* '{', '(' or '['; 0: the top level */
	int state;
	int count;
	enum gt_ctype kind; /* type of the elements of an array */
	struct gt_source_loc loc;
};

struct gt_lexer {
	struct gt_arena *arena;
	struct gt_clean *out;
	struct gt_frame frame[GT_CONF_MAX_DEPTH + 1];
	int depth;
	/* The text that is being read: p is the current character, end is after the last one, bol is the beginning of the current line. */
	const char *p, *end, *bol;
	struct gt_source_loc at;
	const char *key; /* the last name that was read, for messages; it points into the text */
	int nkey;
	char *str; /* contents of the string that is being read; malloc'ed */
	size_t nstr;
	int64_t cap_str;
	/* Reads an included file. NULL: @include is an error. */
	enum gt_code (*include)(struct gt_lexer *lx, const char *name, struct gt_err *err);
	void *user;
};
/* Reads the text from lx->p to lx->end. Brackets that were open before remain open; the text must close all brackets that it opens. */
enum gt_code gt_lex(struct gt_lexer *lx, struct gt_err *err);

#endif
