#include "setup/init_found.h"
#include "base/arena.h"
#include "base/shell_word.h"
#include "folder.h"
#include "missing_files.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum { MAX_DEPTH = 8, MAX_FILES = 1000000, MAX_TRIED = 100 };

/* ---- files ---------------------------------------------------------------------------------------------------------------------- */
static const char *const foreign[] = {".bmp", ".gif", ".tif", ".tiff", ".heic", ".heif", ".avif", ".jp2", ".ppm", ".pgm", ".tga"};
enum { FOREIGN = sizeof foreign / sizeof *foreign };

struct count {
	struct gt_init_found *f;
	int64_t foreign[FOREIGN]; /* number of files with each unsupported extension of images */
	int64_t left;             /* number of files that may still be examined until the search ends */
};

static void count_file(struct count *c, const char *name, bool direct)
{
	const char *dot = strrchr(name, '.');
	bool image = gt_folder_wants(&gt_folder_images, name), text = gt_folder_wants(&gt_folder_texts, name);
	c->f->images += image;
	c->f->texts += text;
	c->f->direct += direct && (image || text);
	for (int i = 0; dot && i < FOREIGN; i++)
		c->foreign[i] += !strcasecmp(dot, foreign[i]);
}

static void count_below(struct count *c, const char *path, int depth)
{
	DIR *d = opendir(path);
	char sub[PATH_MAX];
	for (struct dirent *e; d && c->left > 0 && (e = readdir(d));) {
		struct stat st;
		if (gt_folder_ignored(e->d_name, strlen(e->d_name)) || (size_t)snprintf(sub, sizeof sub, "%s/%s", path, e->d_name) >= sizeof sub)
			continue;
		c->left--;
		bool folder = e->d_type == DT_DIR || (e->d_type == DT_UNKNOWN && !lstat(sub, &st) && S_ISDIR(st.st_mode));
		if (!folder)
			count_file(c, e->d_name, !depth);
		else if (depth < MAX_DEPTH)
			count_below(c, sub, depth + 1);
	}
	if (d)
		closedir(d);
}

void gt_init_find(const char *path, struct gt_init_found *out)
{
	struct count c = {.f = out, .left = MAX_FILES};
	*out = (struct gt_init_found){0};
	count_below(&c, path, 0);
	for (int i = 0; i < FOREIGN; i++) {
		if (c.foreign[i] <= out->foreign)
			continue;
		out->foreign = c.foreign[i];
		out->end = foreign[i];
	}
}

void gt_init_foreign_text(const char *path, const struct gt_init_found *f, char *buf, size_t size)
{
	char word[700];
	snprintf(buf, size, "%.300s has %lld %s file%s, which gtrain does not read; convert %s, for example with: find %.300s -iname '*%s' "
	         "-exec mogrify -format png {} +", path, (long long)f->foreign, f->end, f->foreign == 1 ? "" : "s",
	         f->foreign == 1 ? "it" : "them", gt_shell_word(path, word, sizeof word), f->end);
}

/* ---- folders -------------------------------------------------------------------------------------------------------------------- */
int64_t gt_init_count_files(const char *path, const struct gt_folder_kind *kind, struct gt_err *err)
{
	struct gt_source *s;
	struct gt_class_list classes;
	if (gt_folder_split(path, kind, GT_TRAIN, NULL, &s, &classes, err) != GT_OK)
		return 0;
	int64_t n = s->n;
	gt_source_close(s);
	gt_class_list_free(&classes);
	return n;
}

/* Searches the subfolders of `path`, level by level, for a folder that has folders of classes, and sets `path` to it. */
static bool find_below(char *path, const struct gt_folder_kind *kind, int levels, int *tried, int64_t *n)
{
	char sub[PATH_MAX];
	bool found = false;
	for (int pass = 0; pass < 2 && !found && levels > 0; pass++) {
		DIR *d = opendir(path);
		for (struct dirent *e; d && !found && *tried < MAX_TRIED && (e = readdir(d));) {
			struct stat st;
			if (gt_folder_ignored(e->d_name, strlen(e->d_name)) ||
			    (size_t)snprintf(sub, sizeof sub, "%s/%s", path, e->d_name) >= sizeof sub || lstat(sub, &st) || !S_ISDIR(st.st_mode))
				continue;
			++*tried;
			found = pass ? find_below(sub, kind, levels - 1, tried, n) : (*n = gt_init_count_files(sub, kind, NULL)) > 0;
		}
		if (d)
			closedir(d);
	}
	if (found)
		memcpy(path, sub, sizeof sub);
	return found;
}

enum gt_code gt_init_nothing(const char *path, struct gt_err *err)
{
	struct gt_init_found f;
	struct gt_err why = {0};
	char below[PATH_MAX], text[800], word[700];
	int64_t n = 0;
	int tried = 0;
	if (gt_missing_files(path, GT_TRAIN, text, sizeof text))
		return gt_fail(err, GT_ENOINPUT, "%s", text);
	gt_init_find(path, &f);
	const struct gt_folder_kind *kind = f.images || !f.texts ? &gt_folder_images : &gt_folder_texts;
	const char *what = f.images || !f.texts ? "images" : "texts";
	snprintf(below, sizeof below, "%s", path);
	bool found = (f.images || f.texts) && find_below(below, kind, 3, &tried, &n);
	const char *last = strrchr(below, '/');
	if (found && last && (size_t)(last - below) == strlen(path) && gt_folder_names_split(last + 1))
		return gt_fail(err, GT_ENOINPUT, "%.250s: expected a folder \"train\" with folders of classes beside \"%.20s\", got none; to "
		               "divide the %lld %s of that folder, try `gtrain init %.300s`", path, last + 1, (long long)n, what,
		               gt_shell_word(below, word, sizeof word));
	if (found)
		return gt_fail(err, GT_ENOINPUT, "%.250s: expected folders of classes, found %lld %s in such folders below %.300s; try `gtrain "
		               "init %.300s`", path, (long long)n, what, below, gt_shell_word(below, word, sizeof word));
	if (f.foreign)
		gt_init_foreign_text(path, &f, text, sizeof text);
	if (!f.images && !f.texts && f.foreign)
		return gt_fail(err, GT_EDATA, "%s", text);
	int64_t nested = f.images + f.texts - f.direct;
	if (!gt_init_count_files(path, kind, &why) && (nested || why.code == GT_EFAIL || why.code == GT_ENOINPUT))
		return gt_fail_copy(err, &why);
	snprintf(text, sizeof text, "; found %lld %s outside folders of classes: make a folder for each class",
	         (long long)f.direct, what);
	return gt_fail(err, GT_ENOINPUT, "%.400s: expected a folder of images or of texts (.txt) for each class, CLASS/x.jpg or "
	               "train/CLASS/x.jpg, or IDX or CIFAR files with their usual names%s", path, f.direct ? text : "");
}
