/* Finds the configs that are installed with gtrain, and reads their descriptions. */
#include "base/fileio.h"
#include "base/plugin.h"
#include "conf/conf.h"
#include "gtrain.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUMMARY 300 /* maximum length of a description; "…" ends a longer one */

/* Finds the folder of the installed configs, or the folder configs/ of the source tree in which the program was built. */
static enum gt_code find_folder(char *buf, struct gt_err *err)
{
	static const char *const from[] = {"../share/gtrain/configs", "../../configs"};
	char exe[GT_PATH_SIZE];
	GT_TRY(gt_exe_dir(exe, sizeof exe, err));
	for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
		char *real;
		GT_TRY(gt_path_join(buf, exe, from[i], err));
		if (!(real = realpath(buf, NULL)))
			continue;
		size_t n = strlen(real);
		if (n < GT_PATH_SIZE)
			memcpy(buf, real, n + 1);
		free(real);
		return GT_OK;
	}
	return gt_fail(err, GT_ENOINPUT, "the configs of gtrain are not installed: %s/%s does not exist", exe, from[0]);
}

static bool is_config(const char *name)
{
	size_t n = strlen(name);
	return n > 4 && !strcmp(name + n - 4, ".cfg") && name[0] != '.' && !strchr(name, '/');
}

/* Returns whether a description of n bytes can end at p: after a sentence, before a semicolon, or before a colon if it is long enough. */
static bool ends_summary(const char *p, size_t n)
{
	return (*p == '.' || *p == ';' || (*p == ':' && n >= 24)) && (isspace((unsigned char)p[1]) || !p[1]);
}

/* Reads the description of a config: the first sentence of its opening comment, without text in parentheses. */
static enum gt_code read_summary(struct gt_arena *a, const char *path, const char **out, struct gt_err *err)
{
	char *text, buf[SUMMARY + sizeof "…"];
	size_t size, n = 0;
	int depth = 0;
	bool done = false;
	GT_TRY(gt_file_read(path, 1 << 20, &text, &size, err));
	for (const char *p = text; *p == '#' && !done; p += *p == '\n') {
		for (p++; *p == ' '; p++)
			;
		if (n && n < SUMMARY && buf[n - 1] != ' ')
			buf[n++] = ' ';
		for (; *p && *p != '\n' && !done; p++) {
			depth += *p == '(';
			bool shown = !depth && !(*p == ' ' && n && buf[n - 1] == ' ');
			depth -= *p == ')';
			done = shown && (n == SUMMARY || ends_summary(p, n));
			if (shown && !done)
				buf[n++] = *p;
		}
	}
	bool cut = n == SUMMARY;
	for (; cut && n && buf[n - 1] != ' '; n--)
		;
	while (n && strchr(" ,:", buf[n - 1]))
		n--;
	strcpy(buf + n, cut ? "…" : "");
	free(text);
	GT_NEW_STR(*out, gt_arena_strdup(a, buf), err);
	return GT_OK;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_config_entry(const struct dirent *d)
{
	return is_config(d->d_name);
}

static enum gt_code fill_row(struct gt_arena *a, const char *dir, const char *name, struct gt_bundled *out, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	struct gt_conf *c;
	GT_TRY(gt_path_join(path, dir, name, err));
	GT_NEW_STR(out->name, gt_arena_printf(a, "%.*s", (int)strlen(name) - 4, name), err);
	GT_NEW_STR(out->path, gt_arena_strdup(a, path), err);
	GT_TRY(read_summary(a, path, &out->summary, err));
	GT_TRY(gt_conf_load(path, NULL, 0, &c, err));
	out->dataset = gt_arena_strdup(a, c->data.name);
	gt_conf_free(c);
	return out->dataset ? GT_OK : gt_fail_memory(err, 0);
}

enum gt_code gt_bundled_list(struct gt_arena *a, struct gt_bundled **rows, int *n, struct gt_err *err)
{
	char dir[GT_PATH_SIZE];
	struct dirent **names;
	GT_TRY(find_folder(dir, err));
	int found = scandir(dir, &names, is_config_entry, by_name);
	if (found < 0)
		return gt_fail_errno(err, GT_ENOINPUT, errno, "%s", dir);
	*n = found;
	*rows = gt_arena_alloc(a, (size_t)found + 1, sizeof **rows);
	enum gt_code code = *rows ? GT_OK : gt_fail_memory(err, 0);
	for (int i = 0; i < found; i++) {
		if (code == GT_OK)
			code = fill_row(a, dir, names[i]->d_name, &(*rows)[i], err);
		free(names[i]);
	}
	free(names);
	return code;
}

enum gt_code gt_bundled_find(struct gt_arena *a, const char *name, const char **path, struct gt_err *err)
{
	char dir[GT_PATH_SIZE], at[GT_PATH_SIZE];
	const char *file = name;
	*path = NULL;
	if (strchr(name, '/') || !*name)
		return GT_OK;
	if (!is_config(name))
		GT_NEW_STR(file, gt_arena_printf(a, "%s.cfg", name), err);
	if (!is_config(file) || find_folder(dir, NULL) != GT_OK || gt_path_join(at, dir, file, NULL) != GT_OK || access(at, R_OK))
		return GT_OK;
	GT_NEW_STR(*path, gt_arena_strdup(a, at), err);
	return GT_OK;
}
