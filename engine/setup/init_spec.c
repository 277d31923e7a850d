#include "setup/init_spec.h"
#include "base/shell_word.h"
#include "conf/conf_string.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_UP = 2 }; /* maximum number of ".." in a relative path */

static void make_run_name(const char *root, char *out, size_t size)
{
	const char *slash = strrchr(root, '/');
	size_t n = 0;
	for (const char *p = slash && slash[1] ? slash + 1 : root; *p && n + 1 < size; p++)
		if (((uint8_t)*p & 0xc0) != 0x80) /* one hyphen for a character of several bytes */
			out[n++] = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", *p) ? *p : '-';
	out[n] = 0;
	/* endings of data files that are removed from the name of the run; points are already replaced by hyphens */
	static const char *const ends[] = {"-gz", "-csv", "-tsv", "-jsonl", "-ndjson", "-npy", "-npz",
	                                   "-zip", "-tgz", "-zst", "-xz", "-bz2", "-tar"};
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (n > strlen(ends[i]) && !strcmp(out + n - strlen(ends[i]), ends[i]))
			out[n -= strlen(ends[i])] = 0;
	if (!n || (n == 1 && *out == '-'))
		snprintf(out, size, "images");
}

/* Writes the real path of the folder that contains `file` to out; the file itself need not exist. */
static bool find_folder(const char *file, char *out)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(file, '/');
	snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - file) : 1, slash ? file : ".");
	return realpath(*dir ? dir : "/", out) != NULL;
}

/* Writes root relative to a folder; both are real paths. Returns false if the folders are far from each other: if the path would go up more
 * than MAX_UP folders, or through the root folder. */
static bool make_relative_path(const char *root, const char *folder, char *out, size_t size)
{
	size_t common = 0, n = 0;
	for (size_t i = 0;; i++) { /* sets `common` to the length of the parent path that both have, without a slash at the end */
		char a = root[i] == '/' ? 0 : root[i], b = folder[i] == '/' ? 0 : folder[i];
		if (!a && !b)
			common = i;
		if (a != b || !root[i] || !folder[i])
			break;
	}
	int up = 0;
	for (const char *p = folder + common; *p; p++)
		up += *p == '/' && p[1];
	if (!common || up > MAX_UP)
		return false;
	for (int i = 0; i < up; i++)
		n += (size_t)snprintf(out + n, size - n, "%s..", i ? "/" : "");
	const char *rest = root + common + (root[common] == '/');
	snprintf(out + n, size - n, "%s%s", n && *rest ? "/" : "", *rest || n ? rest : ".");
	return true;
}

void gt_init_names(const struct gt_init_spec *spec, const char *root, struct gt_init_names *out)
{
	char folder[PATH_MAX];
	make_run_name(root, out->run, sizeof out->run);
	snprintf(out->shown, sizeof out->shown, "%s", root);
	snprintf(out->config, sizeof out->config, "THIS.cfg");
	if (!spec->out)
		return;
	if (find_folder(spec->out, folder))
		make_relative_path(root, folder, out->shown, sizeof out->shown);
	if (strlen(spec->out) < sizeof out->config / 5 && !gt_string_fault(spec->out, strlen(spec->out)))
		gt_shell_word(spec->out, out->config, sizeof out->config);
}

void gt_init_warn(const struct gt_init_spec *spec, const char *text)
{
	if (spec->warn)
		spec->warn(spec->user, text);
}

void gt_init_warn_of_more(const struct gt_init_spec *spec, int64_t bad, const char *what)
{
	char text[100];
	if (bad <= GT_INIT_LISTED)
		return;
	snprintf(text, sizeof text, "%lld more %ss cannot be read", (long long)(bad - GT_INIT_LISTED), what);
	gt_init_warn(spec, text);
}

static int compare_numbers(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

void gt_init_sort(int64_t *v, int64_t n)
{
	qsort(v, (size_t)n, sizeof *v, compare_numbers);
}

enum gt_code gt_init_too_few(const char *root, int64_t n, const char *what, struct gt_err *err)
{
	return gt_fail(err, GT_EDATA, "%.600s: expected at least %d %ss, because a fifth is kept for evaluation, or a folder \"valid\" or "
	               "\"test\" beside \"train\", got %lld %s%s", root, GT_INIT_LEAST, what, (long long)n, what, n == 1 ? "" : "s");
}

enum gt_code gt_init_one_each(const char *root, int64_t classes, const char *what, struct gt_err *err)
{
	return gt_fail(err, GT_EDATA, "%.600s: expected a class with at least two %ss, because some are kept for evaluation, or a folder "
	               "\"valid\" or \"test\" beside \"train\", got one %s in each of %lld classes", root, what, what, (long long)classes);
}
