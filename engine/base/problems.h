/* A list of problems: the errors of a config, which are reported together, and the warnings about a run. An entry is one sentence that
 * names its file, line and key. The list is allocated in an arena of the caller:
 *
 *     struct gt_problems list = {.arena = arena};
 *     gt_problems_add(&list, &err);
 *     gt_problems_sort(&list, path);
 *
 * An entry is dropped if the list already has an entry for its file, line and key, because later errors follow from the first. */
#ifndef GT_BASE_PROBLEMS_H
#define GT_BASE_PROBLEMS_H

#include "base/arena.h"
#include <stdbool.h>

struct gt_problem {
	enum gt_code code; /* exit code of a run that fails for this reason; GT_OK: a warning that does not end a run */
	const char *text;  /* "file:line: path: expected …, got …", or a sentence without a line */
	int line;          /* line of the config; 0: none */
	int subject;       /* number of leading bytes of text that name file, line and key; 0: it names none */
};

struct gt_problems {
	struct gt_arena *arena; /* not owned */
	struct gt_problem *v;
	int n, cap;
	int seen;               /* number of calls of gt_problems_add, including those whose entry was dropped */
};

/* Appends a copy of err to the list. Returns GT_EFAIL if memory runs out. */
enum gt_code gt_problems_add(struct gt_problems *p, const struct gt_err *err);
/* Sorts by file, then by line; entries of one line keep their order. Entries without a line come first, then entries of the file `main`,
 * then entries of other files, ordered by each file's first entry. */
void gt_problems_sort(struct gt_problems *p, const char *main);
/* Copies entry i into an error. */
void gt_problems_get(const struct gt_problems *p, int i, struct gt_err *out);

#endif
