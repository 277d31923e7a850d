/* Images in one folder whose file names have their class, as in the Oxford-IIIT Pet dataset ("Abyssinian_1.jpg"). data.pattern is a POSIX
 * extended regular expression with one group, which is the class. It is applied to the name of the file without its folder. */
#include "base/arena.h"
#include "class_list.h"
#include "folder.h"
#include "format.h"
#include "source.h"
#include <regex.h>
#include <stdlib.h>
#include <string.h>

static enum gt_code compile(const struct gt_dataset_spec *spec, regex_t *re, struct gt_err *err)
{
	char why[200];
	int bad = regcomp(re, spec->pattern, REG_EXTENDED);
	if (bad) {
		regerror(bad, re, why, sizeof why);
		return gt_fail(err, GT_ECONFIG, "data.pattern: expected a POSIX extended regular expression, got \"%.200s\": %s", spec->pattern,
		               why);
	}
	if (re->re_nsub < 1) {
		regfree(re);
		return gt_fail(err, GT_ECONFIG, "data.pattern: expected a group ( ) that matches the class, got \"%.200s\"", spec->pattern);
	}
	return GT_OK;
}

static bool match(const regex_t *re, const char *path, const char **class, size_t *len)
{
	regmatch_t m[2];
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	if (regexec(re, name, 2, m, 0) || m[1].rm_so < 0 || m[1].rm_so == m[1].rm_eo)
		return false;
	*class = name + m[1].rm_so;
	*len = (size_t)(m[1].rm_eo - m[1].rm_so);
	return true;
}

static enum gt_code find_classes(const struct gt_source *s, const regex_t *re, const char *pattern, struct gt_class_list *out,
                                 struct gt_err *err)
{
	char name[720];
	const char *class;
	size_t len;
	for (int64_t i = 0; i < s->n; i++) {
		if (!match(re, gt_source_path(s, i), &class, &len))
			return gt_fail(err, GT_EDATA, "%s: expected a name that matches data.pattern, \"%.200s\"",
			               gt_source_name(s, i, name, sizeof name), pattern);
		GT_TRY(gt_class_list_add(out, class, len, err));
	}
	GT_TRY(gt_class_list_check(out, s->root, err));
	for (int64_t i = 0; i < s->n; i++) {
		match(re, gt_source_path(s, i), &class, &len);
		s->file[i].label = (int32_t)gt_class_list_find(out, class, len);
	}
	return GT_OK;
}

static enum gt_code load(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_paths *paths, bool headers_only,
                         struct gt_dataset *out, struct gt_err *err)
{
	(void)headers_only;
	struct gt_class_list classes = {0};
	struct gt_source *s = NULL;
	regex_t re;
	if (split != GT_TRAIN) /* the folder is one split; data.valid divides it */
		return GT_OK;
	if (!spec->pattern || !*spec->pattern)
		return gt_fail(err, GT_ECONFIG, "data.pattern: expected a regular expression with a group for the class, because data.format is "
		                                "\"pattern\", got none");
	GT_TRY(compile(spec, &re, err));
	enum gt_code code = gt_folder_open(paths->path[0], &s, err);
	if (code == GT_OK)
		code = gt_folder_list(s, err);
	if (code == GT_OK && !s->n)
		code = gt_fail(err, GT_EDATA, "%s: expected images (.jpg, .jpeg, .png or .webp), got none", s->root);
	if (code == GT_OK)
		code = find_classes(s, &re, spec->pattern, &classes, err);
	regfree(&re);
	if (code == GT_OK)
		return gt_dataset_take_source(spec, s, &classes, paths->path[0], out, err);
	gt_source_close(s);
	gt_class_list_free(&classes);
	return code;
}

static enum gt_code find(const char *dir, enum gt_split split, struct gt_paths *paths, struct gt_err *err)
{
	(void)split;
	return gt_folder_is_source(dir) ? gt_paths_add(paths, "", dir, err) : GT_OK;
}

const struct gt_format gt_format_pattern = {.name = "pattern", .by_name = true, .find = find, .load = load};
