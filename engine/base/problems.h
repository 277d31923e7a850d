/* A list of problems: the errors of a config that are reported together, and the warnings about a run. An entry is one sentence that names
 * its place. The list lives in an arena of its owner:
 *
 *     struct gt_problems list = {.arena = arena};
 *     gt_problems_add(&list, &err);
 *     gt_problems_sort(&list, path);
 *
 * An entry is dropped where the list has one about the same file, line and key: the first one is the cause, later ones follow from it. */
#ifndef GT_BASE_PROBLEMS_H
#define GT_BASE_PROBLEMS_H

#include "base/arena.h"
#include <stdbool.h>

struct gt_problem {
	enum gt_code code; /* what a run would end with; GT_OK: a warning, a run goes on */
	const char *text;  /* "file:line: path: what is wrong", or a sentence without a place */
	int line;          /* 0: none */
	int subject;       /* leading bytes of text that name file, line and key; 0: it names none */
};

struct gt_problems {
	struct gt_arena *arena; /* not owned */
	struct gt_problem *v;
	int n, cap;
	int seen;               /* entries added so far, the dropped ones too */
};

/* Copies err. GT_EFAIL: out of memory. */
enum gt_code gt_problems_add(struct gt_problems *p, const struct gt_err *err);
/* By file, then by line; entries of one line stay as they were added. Those without a line come first, then those of the file main, then
 * other files in the order in which the list first named them. */
void gt_problems_sort(struct gt_problems *p, const char *main);
/* Entry i as an error. */
void gt_problems_get(const struct gt_problems *p, int i, struct gt_err *out);

#endif
