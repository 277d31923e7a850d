#include "setup/init_spec.h"
#include "conf/conf_string.h"
#include "setup/init_found.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_UP = 2 }; /* maximum number of ".." in a relative path */

static void make_run_name(const char *root, char *out, size_t size)
{
	const char *slash = strrchr(root, '/');
	size_t n = 0;
	for (const char *p = slash && slash[1] ? slash + 1 : root; *p && n + 1 < size; p++)
		out[n++] = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", *p) ? *p : '-';
	out[n] = 0;
	static const char *const ends[] = {"-gz", "-csv", "-tsv", "-tar"}; /* of a file's name */
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
		if (n > strlen(ends[i]) && !strcmp(out + n - strlen(ends[i]), ends[i]))
			out[n -= strlen(ends[i])] = 0;
	if (!n || (n == 1 && *out == '-'))
		snprintf(out, size, "images");
}

/* Writes the real path of the folder of a file that need not exist. */
static bool find_folder(const char *file, char *out)
{
	char dir[PATH_MAX];
	const char *slash = strrchr(file, '/');
	snprintf(dir, sizeof dir, "%.*s", slash ? (int)(slash - file) : 1, slash ? file : ".");
	return realpath(*dir ? dir : "/", out) != NULL;
}

/* Writes root relative to a folder; both are real paths. Returns false if they are far from each other: if the way leads up more than
 * MAX_UP folders, or through the root folder. */
static bool make_relative_path(const char *root, const char *folder, char *out, size_t size)
{
	size_t common = 0, n = 0;
	for (size_t i = 0;; i++) { /* the length of the folders that both have, without a slash at the end */
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
		gt_init_word(spec->out, out->config, sizeof out->config);
}

enum gt_code gt_init_one_each(const char *root, int64_t classes, const char *what, struct gt_err *err)
{
	return gt_fail(err, GT_EDATA, "%.600s: expected a class with two %ss or more, of which some are kept for evaluation, or a folder "
	               "\"valid\" or \"test\" beside \"train\", got one %s in each of %lld classes", root, what, what, (long long)classes);
}
