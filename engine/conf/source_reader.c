/* Reads a config and the files that it includes, within limits. See source_reader.h. */
#include "conf/source_reader.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct reader {
	struct {
		dev_t dev;
		ino_t ino;
	} open[GT_CONF_MAX_INCLUDES + 1];
	int depth, files;
	int stream; /* descriptor of the main config file, not of an included file; -1: its path is opened */
	size_t bytes;
};

static const char no_memory[] = "out of memory", is_directory[] = "it is a directory";

/* Reads a whole file of at most max bytes. given: a descriptor of the file, which stays open; -1: opens path. Returns NULL, or the reason
 * why the file cannot be read. */
static const char *read_whole_file(const char *path, int given, size_t max, char **text, size_t *n, struct stat *st)
{
	/* O_NONBLOCK: opening a FIFO must not wait for a writer. */
	int fd = given >= 0 ? given : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	const char *why = NULL;
	*text = NULL;
	*n = 0;
	if (fd < 0)
		return strerror(errno);
	if (fstat(fd, st))
		why = strerror(errno);
	else if (S_ISDIR(st->st_mode))
		why = is_directory;
	else if (!S_ISREG(st->st_mode))
		why = "it is not a regular file";
	else if (!(*text = malloc(max + 1)))
		why = no_memory;
	while (!why && *n <= max) {
		ssize_t r = pread(fd, *text + *n, max + 1 - *n, (off_t)*n); /* pread: processes that have inherited fd share its position */
		if (!r)
			break;
		if (r > 0)
			*n += (size_t)r;
		else if (errno != EINTR)
			why = strerror(errno);
	}
	if (fd != given)
		close(fd);
	if (why) {
		free(*text);
		*text = NULL;
	}
	return why;
}

static enum gt_code include_file(struct gt_lexer *lx, const char *name, struct gt_err *err);

/* Reads a file and passes it to the lexer. from: file and line of the @include; NULL for the config itself. */
static enum gt_code read_file(struct gt_lexer *lx, const char *path, const struct gt_source_loc *from, struct gt_err *err)
{
	struct reader *rd = lx->user;
	struct gt_source_loc top = {path, 1};
	struct stat st;
	char *text;
	size_t n;
	enum gt_code code = GT_OK;
	if (from && rd->depth > GT_CONF_MAX_INCLUDES)
		return gt_conf_fail(err, *from, NULL, "@include: expected files that are nested at most %d deep, got more", GT_CONF_MAX_INCLUDES);
	if (from && rd->files >= GT_CONF_MAX_FILES)
		return gt_conf_fail(err, *from, NULL, "@include: expected at most %d files in a config, got more", GT_CONF_MAX_FILES);
	const char *why = read_whole_file(path, from ? -1 : rd->stream, GT_CONF_MAX_BYTES - rd->bytes, &text, &n, &st);
	if (why && why == no_memory)
		return gt_fail_memory(err, GT_CONF_MAX_BYTES);
	if (why && from)
		return gt_conf_fail(err, *from, NULL, "@include: cannot read %s: %s", path, why);
	if (why)
		return gt_fail(err, GT_ENOINPUT, "%s: cannot read this config: %s%s", path, why, why != is_directory ? "" :
		               "; `gtrain resume DIR` continues a run, and `gtrain init DIR` writes a config for data");
	if (rd->bytes + n > GT_CONF_MAX_BYTES)
		code = gt_conf_fail(err, from ? *from : top, NULL, "expected a config of at most %d MiB, got a larger one",
		                    GT_CONF_MAX_BYTES >> 20);
	for (int i = 0; code == GT_OK && i < rd->depth; i++)
		if (rd->open[i].dev == st.st_dev && rd->open[i].ino == st.st_ino)
			code = gt_conf_fail(err, from ? *from : top, NULL, "@include: expected a file that does not include itself, got %s", path);
	if (code == GT_OK) {
		struct gt_lexer outer = *lx;
		rd->open[rd->depth].dev = st.st_dev;
		rd->open[rd->depth++].ino = st.st_ino;
		rd->bytes += n;
		rd->files++;
		lx->at = top;
		lx->p = lx->bol = text;
		lx->end = text + n;
		if (n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3)) /* skips a byte order mark, which some editors write */
			lx->p = lx->bol = text + 3;
		code = gt_lex(lx, err);
		rd->depth--;
		lx->at = outer.at;
		lx->p = outer.p;
		lx->end = outer.end;
		lx->bol = outer.bol;
	}
	free(text);
	return code;
}

static enum gt_code include_file(struct gt_lexer *lx, const char *name, struct gt_err *err)
{
	const char *slash = strrchr(lx->at.file, '/');
	char *path;
	struct gt_source_loc from = lx->at;
	if (name[0] == '/' || !slash)
		GT_NEW_STR(path, gt_arena_strdup(lx->arena, name), err);
	else
		GT_NEW_STR(path, gt_arena_printf(lx->arena, "%.*s/%s", (int)(slash - lx->at.file), lx->at.file, name), err);
	return read_file(lx, path, &from, err);
}

enum gt_code gt_source_check_file(struct gt_arena *a, const char *path, int fd, struct gt_clean *out, struct gt_err *err)
{
	struct reader rd = {.depth = 0, .stream = fd};
	struct gt_lexer lx = {.arena = a, .out = out, .include = include_file, .user = &rd};
	memset(out, 0, sizeof *out);
	GT_NEW_STR(path, gt_arena_strdup(a, path), err);
	lx.at.file = path;
	enum gt_code code = read_file(&lx, path, NULL, err);
	free(lx.str);
	return code;
}

enum gt_code gt_source_check_text(struct gt_arena *a, const char *label, int line1, const char *text, size_t n, struct gt_clean *out,
                           struct gt_err *err)
{
	struct gt_lexer lx = {.arena = a, .out = out};
	memset(out, 0, sizeof *out);
	GT_NEW_STR(lx.at.file, gt_arena_strdup(a, label), err);
	lx.at.line = line1;
	if (n > GT_CONF_MAX_BYTES)
		return gt_conf_fail(err, lx.at, NULL, "expected a config of at most %d MiB, got a larger one", GT_CONF_MAX_BYTES >> 20);
	lx.p = lx.bol = text;
	lx.end = text + n;
	enum gt_code code = gt_lex(&lx, err);
	free(lx.str);
	return code;
}
