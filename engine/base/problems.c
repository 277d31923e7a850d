#include "base/problems.h"
#include <stdio.h>
#include <string.h>

static bool same_subject(const struct gt_problem *a, const struct gt_err *b)
{
	if (a->subject && a->subject == b->subject)
		return !strncmp(a->text, b->msg, (size_t)a->subject);
	return !strcmp(a->text, b->msg);
}

enum gt_code gt_problems_add(struct gt_problems *p, const struct gt_err *err)
{
	p->seen++;
	for (int i = 0; i < p->n; i++)
		if (same_subject(&p->v[i], err))
			return GT_OK;
	GT_TRY(gt_arena_grow(p->arena, &p->v, p->n, &p->cap, sizeof *p->v, NULL));
	char *text = gt_arena_strdup(p->arena, err->msg);
	if (!text)
		return GT_EFAIL;
	p->v[p->n++] = (struct gt_problem){err->code, text, err->line, err->subject};
	return GT_OK;
}

/* Returns the length of the file name in a text that begins with "file:line:". */
static size_t file_length(const struct gt_problem *p)
{
	char line[24];
	snprintf(line, sizeof line, ":%d:", p->line);
	const char *at = p->line > 0 ? strstr(p->text, line) : NULL;
	return at ? (size_t)(at - p->text) : 0;
}

/* Returns the rank of the file of an entry for sorting: -2: no line; -1: the file main; else the index of its first entry. */
static int file_rank(const struct gt_problems *p, const struct gt_problem *e, const char *main)
{
	size_t n = file_length(e);
	int i = 0;
	if (!n)
		return -2;
	if (n == strlen(main) && !strncmp(e->text, main, n))
		return -1;
	while (i < p->n && (file_length(&p->v[i]) != n || strncmp(p->v[i].text, e->text, n) != 0))
		i++;
	return i;
}

void gt_problems_sort(struct gt_problems *p, const char *main)
{
	int rank[64], n = p->n < 64 ? p->n : 64;
	for (int i = 0; i < n; i++)
		rank[i] = file_rank(p, &p->v[i], main);
	for (int i = 1; i < n; i++) { /* insertion sort, which is stable; the lists are short */
		struct gt_problem e = p->v[i];
		int r = rank[i], k = i;
		for (; k > 0 && (rank[k - 1] > r || (rank[k - 1] == r && p->v[k - 1].line > e.line)); k--) {
			p->v[k] = p->v[k - 1];
			rank[k] = rank[k - 1];
		}
		p->v[k] = e;
		rank[k] = r;
	}
}

void gt_problems_get(const struct gt_problems *p, int i, struct gt_err *out)
{
	const struct gt_problem *e = &p->v[i];
	gt_fail(out, e->code, "%s", e->text);
	out->line = e->line;
	out->subject = e->subject;
}
