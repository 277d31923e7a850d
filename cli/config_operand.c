/* Loads the config of the operand CFG, which is a file, a pipe, standard input ("-") or the name of a config that comes with gtrain, and
 * applies the options --set, --nproc, --mode and --out. */
#include "base/guess.h"
#include "cli.h"
#include "gtrain.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STREAM_FD "GTRAIN_CONFIG_FD" /* environment variable with the descriptor of a config that the launcher has read from a pipe, for its
                                        ranks */

/* Returns the length of a file name without the extension .cfg. */
static int stem_length(const char *name)
{
	size_t n = strlen(name);
	return (int)(n > 4 && strcmp(name + n - 4, ".cfg") == 0 ? n - 4 : n);
}

static bool is_file_name(const char *name)
{
	return strchr(name, '/') || name[stem_length(name)];
}

/* Searches the folder of `path` for a config with a similar name (the extension .cfg is ignored). Sets *out to the path of this config;
 * NULL: not found. */
static enum gt_code similar_file(struct gt_cli *cli, const char *path, const char **out, struct gt_err *err)
{
	enum { MAX = 256 };
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dir = ".", *found[MAX], *word;
	int n = 0;
	*out = NULL;
	GT_NEW_STR(word, gt_arena_printf(cli->arena, "%.*s", stem_length(base), base), err);
	if (slash)
		GT_NEW_STR(dir, gt_arena_printf(cli->arena, "%.*s", slash > path ? (int)(slash - path) : 1, path), err);
	DIR *d = opendir(dir);
	if (!d)
		return GT_OK;
	enum gt_code code = GT_OK;
	for (struct dirent *e; code == GT_OK && n < MAX && (e = readdir(d));)
		if (e->d_name[0] != '.' && is_file_name(e->d_name) &&
		    !(found[n++] = gt_arena_printf(cli->arena, "%.*s", stem_length(e->d_name), e->d_name)))
			code = gt_fail_memory(err, 0);
	closedir(d);
	GT_TRY(code);
	const char *near = gt_guess_nearest(word, found, n);
	if (near)
		GT_NEW_STR(*out, gt_arena_printf(cli->arena, "%.*s%s.cfg", (int)(base - path), path, near), err);
	return GT_OK;
}

/* Sets *out to the config that comes with gtrain and has a similar name (the extension .cfg is ignored); NULL: not found. */
static enum gt_code similar_bundled(struct gt_cli *cli, const char *name, const char **out, struct gt_err *err)
{
	struct gt_bundled *rows;
	const char *word;
	int count;
	*out = NULL;
	if (gt_bundled_list(cli->arena, &rows, &count, NULL) != GT_OK)
		return GT_OK;
	GT_NEW_STR(word, gt_arena_printf(cli->arena, "%.*s", stem_length(name), name), err);
	struct gt_guess g = gt_guess_open(word);
	for (int i = 0; i < count; i++)
		gt_guess_try(&g, rows[i].name);
	*out = g.best;
	return GT_OK;
}

/* Fails because there is no config file with this name; suggests a similar name. */
static enum gt_code no_file(struct gt_cli *cli, const char *name, struct gt_err *err)
{
	const char *base = strrchr(name, '/') ? strrchr(name, '/') + 1 : name, *near, *bundled;
	GT_TRY(similar_file(cli, name, &near, err));
	if (near)
		return gt_fail(err, GT_ENOINPUT, "%.200s: there is no such file; did you mean %.200s?", name, near);
	GT_TRY(gt_bundled_find(cli->arena, base, &bundled, err));
	int len = stem_length(base);
	if (bundled)
		return gt_fail(err, GT_ENOINPUT, "%.200s: there is no such file; a config of this name comes with gtrain: write %.*s to use it, or "
		               "`gtrain configs %.*s >%.*s.cfg` to copy it", name, len, base, len, base, len, base);
	GT_TRY(similar_bundled(cli, base, &bundled, err));
	if (bundled)
		return gt_fail(err, GT_ENOINPUT, "%.200s: there is no such file; did you mean %s, a config that comes with gtrain?", name, bundled);
	return gt_fail(err, GT_ENOINPUT, "%.200s: there is no such file; `gtrain configs` lists the configs that come with gtrain, and `gtrain "
	               "init PATH` writes one for your data", name);
}

enum gt_code gt_cli_no_config(struct gt_cli *cli, const char *name, struct gt_err *err)
{
	const char *near, *file;
	GT_TRY(similar_file(cli, name, &file, err));
	if (file)
		return gt_fail(err, GT_ENOINPUT, "%.200s: there is no such file; did you mean %.200s?", name, file);
	GT_TRY(similar_bundled(cli, name, &near, err));
	return gt_fail(err, GT_ENOINPUT, "%.200s: there is no such file, and gtrain has no config of this name; %s%s%s", name,
	               near ? "did you mean " : "`gtrain configs` lists the configs of gtrain", near ? near : "", near ? "?" : "");
}

enum gt_code gt_cli_config_path(struct gt_cli *cli, const char *name, const char **path, struct gt_err *err)
{
	*path = name;
	if (!access(name, F_OK) || errno != ENOENT)
		return GT_OK;
	if (is_file_name(name))
		return no_file(cli, name, err);
	GT_TRY(gt_bundled_find(cli->arena, name, path, err));
	if (!*path)
		return gt_cli_no_config(cli, name, err);
	if (!cli->link && !cli->args.quiet)
		gt_cli_note(cli, "there is no file %s; gtrain uses %s instead", name, *path);
	return GT_OK;
}

/* If the operand is standard input or a pipe, sets *fd to a descriptor from which the config can be read; else to -1. A pipe can be read
 * only once, so the launcher passes the text to its ranks. */
static enum gt_code open_stream(struct gt_cli *cli, const char *name, int *fd, struct gt_err *err)
{
	const char *given = getenv(STREAM_FD);
	struct stat st;
	char number[16];
	bool stream = strcmp(name, "-") == 0 || (stat(name, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode));
	*fd = -1;
	if (given && (cli->link || strcmp(name, "-") == 0)) {
		*fd = (int)strtol(given, NULL, 10);
		if (*fd > 2 && fstat(*fd, &st) == 0 && S_ISREG(st.st_mode))
			return GT_OK;
		return gt_fail(err, GT_EUSAGE, STREAM_FD "=%.20s in the environment is not the descriptor of gtrain's config; unset the variable",
		               given);
	}
	if (!stream)
		return GT_OK;
	GT_TRY(gt_conf_keep_stream(name, fd, err));
	snprintf(number, sizeof number, "%d", *fd);
	return setenv(STREAM_FD, number, 1) ? gt_fail_memory(err, 0) : GT_OK;
}

enum gt_code gt_cli_conf(struct gt_cli *cli, const struct gt_job_args *job, struct gt_conf **out, struct gt_err *err)
{
	const char *operand = cli->args.operands.v[0], **sets = NULL;
	int n = job->sets.n;
	GT_NEW(sets, cli->arena, n + 3, err);
	if (n)
		memcpy(sets, job->sets.v, (size_t)n * sizeof *sets);
	/* sets "auto" in the config, because gt_run_opts.nproc is a number */
	if (job->nproc == GT_NPROC_AUTO)
		sets[n++] = "parallel.nproc=auto";
	if (job->dry_run && job->out)
		GT_NEW_STR(sets[n++], gt_arena_printf(cli->arena, "checkpoint.dir=\"%s\"", job->out), err);
	if (job->mode)
		GT_NEW_STR(sets[n++], gt_arena_printf(cli->arena, "parallel.mode=%s", job->mode), err);
	struct gt_problems errors = {.arena = cli->arena};
	const char *path = "-";
	int fd;
	GT_TRY(open_stream(cli, operand, &fd, err));
	if (fd < 0)
		GT_TRY(gt_cli_config_path(cli, operand, &path, err));
	enum gt_code code = fd < 0 ? gt_conf_load_all(path, sets, n, &errors, out, err) : gt_conf_load_fd(fd, "-", sets, n, &errors, out, err);
	/* Prints all errors but the last, which main() prints. Only the launcher does so, not each of its ranks. */
	for (int i = 0; code == GT_ECONFIG && i + 1 < errors.n && !cli->link; i++)
		gt_cli_complain(cli, errors.v[i].text);
	if (code == GT_ECONFIG && errors.n)
		gt_problems_get(&errors, errors.n - 1, err);
	return code;
}
