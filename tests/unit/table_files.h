/* Tables of a text, for the tests of datasets/table/. Each function leaves the reason of a failure in e. */
#ifndef GT_TESTS_UNIT_TABLE_FILES_H
#define GT_TESTS_UNIT_TABLE_FILES_H

#include "data_files.h"
#include "table/table_facts.h"
#include "test.h"

static struct gt_err e;

static inline void put_text(const char *name, const char *text)
{
	put(name, text, strlen(text), false);
}

/* Reads one file of a text; the caller frees the table, which is empty after a failure. */
static inline enum gt_code read_text(const char *text, const struct gt_table_spec *spec, struct gt_data_table *t)
{
	char path[1024];
	put_text("t.csv", text);
	snprintf(path, sizeof path, "%s", at("t.csv"));
	return gt_table_read(&(const char *){path}, 1, spec, t, &e);
}

static inline enum gt_code read_as(const char *text, const struct gt_table_spec *spec, const struct gt_table_facts *f, bool targets,
                                   struct gt_data_table *t)
{
	char path[1024];
	put_text("u.csv", text);
	snprintf(path, sizeof path, "%s", at("u.csv"));
	return gt_table_read_as(&(const char *){path}, 1, spec, f, targets, t, &e);
}

/* Reads and learns from all rows. */
static inline enum gt_code learn_text(const char *text, const struct gt_table_spec *spec, struct gt_data_table *t, struct gt_table_facts *f)
{
	*f = (struct gt_table_facts){0};
	enum gt_code code = read_text(text, spec, t);
	return code == GT_OK ? gt_table_fit(t, spec, NULL, t->n, f, &e) : code;
}

static const char *const target_y[] = {"y"};
static const struct gt_table_spec plain = {.target = target_y, .ntarget = 1};

static inline bool is_text(const struct gt_texts *t, int64_t i, const char *want)
{
	size_t n;
	const char *text = gt_texts_get(t, i, &n);
	return n == strlen(want) && !memcmp(text, want, n);
}

#endif
