#include "use/input_files.h"
#include "base/arena.h"
#include "base/fileio.h"
#include "format.h"
#include "gzfile.h"
#include "image/decode.h"
#include "table/parse_cell.h"
#include "text/word_set.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static enum gt_code append_input(struct gt_inputs *in, const char *path, const struct gt_err *why, struct gt_err *err)
{
	GT_GROW(in->v, in->cap, in->n + 1, err);
	struct gt_input *i = &in->v[in->n];
	*i = (struct gt_input){0};
	GT_NEW_STR(i->path, gt_arena_strdup(in->arena, path), err);
	i->name = i->path;
	if (why) {
		i->code = why->code;
		GT_NEW_STR(i->error, gt_arena_strdup(in->arena, why->msg), err);
	}
	in->n++;
	return GT_OK;
}

void gt_inputs_free(struct gt_inputs *in)
{
	free(in->v);
	in->v = NULL;
	while (in->nsources > 0)
		gt_source_close(in->source[--in->nsources]);
	free(in->source);
	in->source = NULL;
	in->n = in->cap = 0;
	if (in->copied)
		close(in->copy);
	in->copied = false;
}

/* ---- folders -------------------------------------------------------------------------------------------------------------------- */

struct walk {
	struct gt_inputs *in;
	char path[GT_PATH_SIZE]; /* the current folder or file */
	struct gt_words seen;    /* the folders that have been read, each as "DEVICE:INODE" */
};

/* Adds an entry with the error of a folder. */
static enum gt_code append_bad_folder(struct walk *w, enum gt_code code, const char *why, struct gt_err *err)
{
	struct gt_err e = {0};
	gt_fail(&e, code, "%s: %s", w->path, why);
	return append_input(w->in, w->path, &e, err);
}

/* Marks an open folder as read; sets *first to false if it was read before. */
static enum gt_code mark_folder_read(struct walk *w, int fd, bool *first, struct gt_err *err)
{
	struct stat st;
	char id[64];
	int32_t number, before = w->seen.n;
	if (fstat(fd, &st))
		return gt_fail_errno(err, GT_EIO, errno, "%s", w->path);
	int len = snprintf(id, sizeof id, "%llx:%llx", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	GT_TRY(gt_words_add(&w->seen, id, (size_t)len, &number, err));
	*first = w->seen.n > before;
	return GT_OK;
}

static int is_visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static enum gt_code walk_folder(struct walk *w, struct gt_err *err);

/* Adds the entry `name` of the current folder, whose path has `len` bytes. */
static enum gt_code walk_entry(struct walk *w, size_t len, const char *name, struct gt_err *err)
{
	struct stat st;
	const char *slash = len && w->path[len - 1] == '/' ? "" : "/";
	if ((size_t)snprintf(w->path + len, sizeof w->path - len, "%s%s", slash, name) >= sizeof w->path - len) {
		w->path[len] = 0;
		return append_bad_folder(w, GT_EDATA, "a path in this directory is too long", err);
	}
	/* the reader reports a link to a missing file */
	if (!stat(w->path, &st) && S_ISDIR(st.st_mode))
		return walk_folder(w, err);
	return gt_folder_wants(w->in->kind, name) ? append_input(w->in, w->path, NULL, err) : GT_OK;
}

/* Adds all files of the kind in the folder w->path and its subfolders. w->path is unchanged on return. */
static enum gt_code walk_folder(struct walk *w, struct gt_err *err)
{
	struct dirent **list = NULL;
	size_t len = strlen(w->path);
	int fd = open(w->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), n = -1;
	bool first = true;
	enum gt_code code = fd < 0 ? GT_OK : mark_folder_read(w, fd, &first, err);
	if (fd >= 0 && code == GT_OK && first)
		n = scandir(w->path, &list, is_visible, by_name);
	if (n < 0 && first && code == GT_OK)
		code = errno == ENOMEM || errno == EMFILE || errno == ENFILE
		           ? gt_fail_errno(err, GT_EFAIL, errno, "%s: cannot read the directory", w->path)
		           : append_bad_folder(w, GT_ENOINPUT, strerror(errno), err);
	if (fd >= 0)
		close(fd);
	for (int i = 0; i < n; i++) {
		if (code == GT_OK)
			code = walk_entry(w, len, list[i]->d_name, err);
		w->path[len] = 0;
		free(list[i]);
	}
	free(list);
	return code;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct gt_input *)a)->path, ((const struct gt_input *)b)->path);
}

static enum gt_code add_folder(struct gt_inputs *in, const char *path, struct gt_err *err)
{
	struct walk *w = calloc(1, sizeof *w);
	int64_t begin = in->n;
	if (!w)
		return gt_fail_memory(err, sizeof *w);
	w->in = in;
	snprintf(w->path, sizeof w->path, "%s", path); /* not truncated, because the caller has checked the length */
	enum gt_code code = walk_folder(w, err);
	if (code == GT_OK && in->n == begin) {
		char why[128];
		snprintf(why, sizeof why, "expected %s in the folder or below it, found none", in->kind->what);
		code = append_bad_folder(w, GT_ENOINPUT, why, err);
	}
	if (in->n > begin)
		qsort(in->v + begin, (size_t)(in->n - begin), sizeof *in->v, by_path);
	gt_words_free(&w->seen);
	free(w);
	return code;
}

/* ---- archives ------------------------------------------------------------------------------------------------------------------- */

/* Adds the members of a source, which in->source owns. */
static enum gt_code add_members(struct gt_inputs *in, const struct gt_source *s, struct gt_err *err)
{
	char name[720];
	for (int64_t i = 0; i < s->n; i++) {
		GT_TRY(append_input(in, gt_source_name(s, i, name, sizeof name), NULL, err));
		in->v[in->n - 1].source = s;
		in->v[in->n - 1].member = i;
	}
	return GT_OK;
}

static enum gt_code add_archive(struct gt_inputs *in, const char *path, struct gt_err *err)
{
	struct gt_err why = {0};
	struct gt_source *s = NULL;
	GT_GROW(in->source, in->source_cap, in->nsources + 1, err);
	enum gt_code code = gt_folder_open(path, &s, &why);
	if (code == GT_OK)
		code = gt_folder_list(s, in->kind, &why);
	if (code == GT_OK && !s->n)
		code = gt_fail(&why, GT_ENOINPUT, "%s: expected %s in this archive, found none", path, in->kind->what);
	if (code != GT_OK) {
		gt_source_close(s);
		return append_input(in, path, &why, err);
	}
	in->source[in->nsources++] = s;
	return add_members(in, s, err);
}

/* Adds a file or a folder. Sets *there to true if path exists. */
static enum gt_code add_path(struct gt_inputs *in, const char *path, bool *there, struct gt_err *err)
{
	struct stat st;
	errno = ENAMETOOLONG;
	bool found = strlen(path) < GT_PATH_SIZE && !stat(path, &st);
	*there |= found || (errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG);
	if (found && S_ISDIR(st.st_mode))
		return add_folder(in, path, err);
	bool archive = found && in->kind != &gt_folder_tables && gt_folder_is_source(path);
	return archive ? add_archive(in, path, err) : append_input(in, path, NULL, err);
}

/* ---- lists ---------------------------------------------------------------------------------------------------------------------- */

/* Returns the remedy if the user passed a file that is not a list of paths as a list. */
static const char *suggest_remedy(const struct gt_inputs *in, FILE *f)
{
	if (f != stdin)
		return "write the name of an image, table or text as FILE, without @ or --list";
	return in->kind == &gt_folder_images ? "gtrain cannot read images from standard input; write the names of their files instead"
	                                     : "to read rows or texts from standard input, write - without @ or --list";
}

/* Fails if no line names a file: the input is then probably a table or a text. One error is clearer than an error for each line. */
static enum gt_code fail_not_list(const struct gt_inputs *in, FILE *f, const char *name, const char *first, int64_t lines,
                                  struct gt_err *err)
{
	char shown[GT_CELL_SHOWN];
	return gt_fail(err, GT_ENOINPUT,
	               "%s: expected a list with a path on each line, got %lld line%s that name%s no file, such as \"%s\"%s; %s", name,
	               (long long)lines, lines == 1 ? "" : "s", lines == 1 ? "s" : "", gt_cell_shown(first, shown),
	               *first == '/' ? "" : " in the working directory", suggest_remedy(in, f));
}

static enum gt_code read_list(struct gt_inputs *in, FILE *f, const char *name, struct gt_err *err)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int64_t number = 0, begin = in->n;
	bool there = false;
	enum gt_code code = GT_OK;
	errno = 0;
	while (code == GT_OK && (n = getline(&line, &cap, f)) >= 0) {
		number++;
		while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = 0;
		if (memchr(line, 0, (size_t)n))
			code = gt_fail(err, GT_EDATA, "%s:%lld: expected the path of a file, got a line with a NUL byte; %s", name, (long long)number,
			               suggest_remedy(in, f));
		else if (n >= GT_PATH_SIZE)
			code = gt_fail(err, GT_EDATA, "%s:%lld: expected a path of at most %d bytes, got %lld; %s", name, (long long)number,
			               GT_PATH_SIZE - 1, (long long)n, suggest_remedy(in, f));
		else if (n)
			code = add_path(in, line, &there, err);
	}
	if (code == GT_OK && ferror(f))
		code = gt_fail_errno(err, GT_EIO, errno, "%s: cannot read the list", name);
	if (code == GT_OK && in->n == begin)
		code = gt_fail(err, GT_ENOINPUT, "%s: expected a list with a path on each line, got no path", name);
	if (code == GT_OK && !there)
		code = fail_not_list(in, f, name, in->v[begin].path, in->n - begin, err);
	free(line);
	return code;
}

/* Marks standard input as used; fails if it is already used. */
static enum gt_code take_stdin(struct gt_inputs *in, struct gt_err *err)
{
	if (in->stdin_read)
		return gt_fail(err, GT_EUSAGE, "-: expected standard input at most once, got it twice");
	in->stdin_read = true;
	return GT_OK;
}

enum gt_code gt_inputs_add_list(struct gt_inputs *in, const char *list, struct gt_err *err)
{
	if (!strcmp(list, "-")) {
		GT_TRY(take_stdin(in, err));
		return read_list(in, stdin, "standard input", err);
	}
	FILE *f = fopen(list, "re");
	if (!f)
		return gt_fail_errno(err, GT_ENOINPUT, errno, "%s: cannot open the list", list);
	enum gt_code code = read_list(in, f, list, err);
	fclose(f);
	return code;
}

/* ---- standard input ------------------------------------------------------------------------------------------------------------- */

/* Copies standard input to in->copy. */
static enum gt_code copy_stdin(struct gt_inputs *in, struct gt_err *err)
{
	enum { PIECE = 1 << 20 };
	uint64_t all = 0;
	ssize_t n = 1;
	char *buf = malloc(PIECE);
	enum gt_code code = buf ? GT_OK : gt_fail_memory(err, PIECE);
	in->copy = code == GT_OK ? memfd_create("standard input", MFD_CLOEXEC) : -1;
	in->copied = in->copy >= 0;
	if (code == GT_OK && !in->copied)
		code = gt_fail_errno(err, GT_EFAIL, errno, "standard input: cannot make a copy in memory");
	while (code == GT_OK && n > 0) {
		n = read(STDIN_FILENO, buf, PIECE);
		if (n < 0 && errno == EINTR) {
			n = 1;
			continue;
		}
		if (n < 0)
			code = gt_fail_errno(err, GT_EIO, errno, "standard input: cannot read");
		for (ssize_t done = 0, some; code == GT_OK && done < n; done += some)
			if ((some = write(in->copy, buf + done, (size_t)(n - done))) < 0)
				code = gt_fail_errno(err, GT_EFAIL, errno, "standard input: cannot copy it to memory");
		all += n > 0 ? (uint64_t)n : 0;
		if (code == GT_OK && all > GT_DEFAULT_MAX_BYTES)
			code = gt_fail(err, GT_EDATA, "standard input: expected at most 16 GiB, got more; divide the input");
	}
	free(buf);
	return code == GT_OK && !all ? gt_fail(err, GT_ENOINPUT, "standard input: expected the rows of a table, got nothing") : code;
}

static enum gt_code add_rows(struct gt_inputs *in, struct gt_err *err)
{
	char path[64];
	GT_TRY(take_stdin(in, err));
	GT_TRY(copy_stdin(in, err));
	snprintf(path, sizeof path, GT_FD_PATH "%d", in->copy);
	if (access(path, R_OK))
		return gt_fail(err, GT_EFAIL, "standard input: cannot read its copy %s: %s; write the rows to a file", path, strerror(errno));
	GT_TRY(append_input(in, path, NULL, err));
	in->v[in->n - 1].name = "-";
	return GT_OK;
}

static enum gt_code add_lines(struct gt_inputs *in, struct gt_err *err)
{
	GT_TRY(take_stdin(in, err));
	GT_TRY(append_input(in, "-", NULL, err));
	in->v[in->n - 1].lines = true;
	return GT_OK;
}

enum gt_code gt_inputs_add_text(struct gt_inputs *in, const char *text, struct gt_err *err)
{
	GT_TRY(append_input(in, "--text", NULL, err));
	GT_NEW_STR(in->v[in->n - 1].text, gt_arena_strdup(in->arena, text), err);
	return GT_OK;
}

enum gt_code gt_inputs_add(struct gt_inputs *in, const char *operand, struct gt_err *err)
{
	if (!strcmp(operand, "-") && in->kind == &gt_folder_tables)
		return add_rows(in, err);
	if (!strcmp(operand, "-") && in->kind == &gt_folder_texts)
		return add_lines(in, err);
	if (operand[0] == '@' || !strcmp(operand, "-"))
		return gt_inputs_add_list(in, operand + (operand[0] == '@'), err);
	bool there = false;
	return add_path(in, operand, &there, err);
}

/* Returns whether the input is a regular file that begins as an image does. A pipe is not read, because its bytes can be read only once. */
static bool is_picture(const struct gt_input *i)
{
	uint8_t head[12];
	struct stat st;
	if (stat(i->path, &st) || !S_ISREG(st.st_mode))
		return false;
	int fd = open(i->path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, head, sizeof head);
	if (fd >= 0)
		close(fd);
	return n > 0 && gt_image_format_of(head, (size_t)n) != GT_IMAGE_UNKNOWN;
}

bool gt_inputs_are_single(const struct gt_inputs *in)
{
	for (int64_t k = 0; k < in->n; k++) {
		const struct gt_input *i = &in->v[k];
		bool text = in->kind == &gt_folder_texts && !i->lines;
		if (!i->error && !i->source && !text && (in->kind != &gt_folder_images || !is_picture(i)))
			return false;
	}
	return true;
}
