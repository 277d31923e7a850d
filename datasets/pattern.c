/* Images in one folder whose file names contain the class, as in the Oxford-IIIT Pet dataset ("Abyssinian_1.jpg"). data.pattern is a POSIX
 * extended regular expression with one group, which is the class. It is matched against the file name without folder. */
#include "base/arena.h"
#include "class_list.h"
#include "folder.h"
#include "format.h"
#include "source.h"
#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_PATTERN = 400, MAX_PARTS = 256 };

/* Returns the factor by which a repetition operator at *p lengthens the repeated part when the C library expands it: x+ becomes xx*, x{2,3}
 * becomes xxx?. The factor of a group is at least 2, because nested repetitions multiply the time. Moves *p after the operator. Without an
 * operator returns 1. */
static double parse_repetition(const char **p, bool group)
{
	long most = 0;
	if (**p == '*' || **p == '+' || **p == '?')
		return *(*p)++ == '+' || group ? 2 : 1;
	if (**p != '{')
		return 1;
	for (++*p; **p && **p != '}'; ++*p) {
		char *end;
		long n = strtol(*p, &end, 10);
		most = n > most ? n : most;
		*p = end > *p ? end - 1 : *p;
	}
	*p += **p == '}';
	return most > 1 ? (double)most : group ? 2 : 1;
}

/* Returns the end of a bracket expression that begins at p. A ] at its start is an ordinary character. */
static const char *find_bracket_end(const char *p)
{
	p += 1 + (p[1] == '^');
	p += *p == ']';
	while (*p && *p != ']')
		p += p[0] == '[' && (p[1] == ':' || p[1] == '.' || p[1] == '=') && strchr(p + 2, ']') ? strchr(p + 2, ']') + 1 - p : 1;
	return p + (*p == ']');
}

/* Returns the length of an expression after all repetitions are expanded, as the C library does without a limit. */
static double expanded_length(const char *p)
{
	double sum[MAX_PATTERN + 1] = {0}; /* expanded length so far of each open group */
	int depth = 0;
	while (*p) {
		double atom = 1;
		bool group = *p == ')' && depth;
		if (*p == '(') {
			sum[++depth] = 1;
			p++;
			continue;
		}
		if (group)
			atom = sum[depth--];
		p = *p == '[' ? find_bracket_end(p) : p + 1 + (p[0] == '\\' && p[1]);
		sum[depth] += atom * parse_repetition(&p, group);
	}
	for (; depth; depth--)
		sum[depth - 1] += sum[depth];
	return sum[0];
}

/* Returns a construct with exponential time or memory in the C library, for a message; NULL: the expression has no such construct. */
static const char *find_costly_construct(const char *begin)
{
	bool repeated = false; /* a repetition operator ends at p */
	for (const char *p = begin; *p; p = *p == '[' ? find_bracket_end(p) : p + 1 + (p[0] == '\\' && p[1])) {
		if (repeated && strchr("*+?{", *p))
			return "repetition of a repetition, such as a**";
		repeated = strchr("*+?}", *p) != NULL;
		if (*p == '\\' && p[1] >= '1' && p[1] <= '9')
			return "reference to a group, such as \\1";
		if (*p == '\\' && p[1] && strchr("bB<>`'", p[1]))
			return "boundary of a word, such as \\b";
		if (*p == '^' && p > begin)
			return "^ except at the beginning and in brackets";
		if (*p == '$' && p[1])
			return "$ except at the end and in brackets";
	}
	return NULL;
}

static enum gt_code compile_pattern(const struct gt_dataset_spec *spec, regex_t *re, struct gt_err *err)
{
	char why[200];
	if (strlen(spec->pattern) > MAX_PATTERN || expanded_length(spec->pattern) > MAX_PARTS)
		return gt_fail(err, GT_ECONFIG, "data.pattern: expected at most %d characters, and at most %d with repetitions expanded, got "
		               "\"%.200s\"", MAX_PATTERN, MAX_PARTS, spec->pattern);
	if (find_costly_construct(spec->pattern))
		return gt_fail(err, GT_ECONFIG, "data.pattern: expected no %s, got \"%.200s\"", find_costly_construct(spec->pattern),
		               spec->pattern);
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

static bool match_class(const regex_t *re, const char *path, const char **class, size_t *len)
{
	regmatch_t m[2];
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	if (regexec(re, name, 2, m, 0) || m[1].rm_so < 0 || m[1].rm_so == m[1].rm_eo)
		return false;
	*class = name + m[1].rm_so;
	*len = (size_t)(m[1].rm_eo - m[1].rm_so);
	return true;
}

static enum gt_code find_classes(const struct gt_source *s, const regex_t *re, const struct gt_dataset_spec *spec,
                                 struct gt_class_list *out, struct gt_err *err)
{
	char name[720];
	const char *class;
	size_t len;
	for (int64_t i = 0; i < s->n; i++) {
		if (!match_class(re, gt_source_path(s, i), &class, &len))
			return gt_fail(err, GT_EDATA, "%s: expected a name that matches data.pattern, \"%.200s\"",
			               gt_source_name(s, i, name, sizeof name), spec->pattern);
		GT_TRY(gt_class_list_add(out, class, len, err));
	}
	GT_TRY(spec->known ? gt_class_list_use(out, spec->known, spec->nknown, s->root, err) : gt_class_list_check(out, s->root, err));
	for (int64_t i = 0; i < s->n; i++) {
		match_class(re, gt_source_path(s, i), &class, &len);
		s->file[i].label = (int32_t)gt_class_list_find(out, class, len);
	}
	return GT_OK;
}

static enum gt_code load_split(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_paths *paths, bool headers_only,
                               struct gt_dataset *out, struct gt_err *err)
{
	(void)headers_only;
	struct gt_class_list classes = {0};
	struct gt_source *s = NULL;
	regex_t re;
	if (split != GT_TRAIN && !spec->all) /* a folder of format "pattern" has only a training split; data.valid divides it */
		return GT_OK;
	if (!spec->pattern || !*spec->pattern)
		return gt_fail(err, GT_ECONFIG, "data.pattern: expected a regular expression with a group for the class, because data.format is "
		                                "\"pattern\", got none");
	GT_TRY(compile_pattern(spec, &re, err));
	enum gt_code code = gt_folder_open(paths->path[0], &s, err);
	if (code == GT_OK)
		code = gt_folder_list(s, &gt_folder_images, err);
	if (code == GT_OK && !s->n)
		code = gt_fail(err, GT_EDATA, "%s: expected images (.jpg, .jpeg, .png or .webp), got none", s->root);
	if (code == GT_OK)
		code = find_classes(s, &re, spec, &classes, err);
	regfree(&re);
	if (code == GT_OK)
		return gt_dataset_take_source(spec, s, &classes, paths->path[0], out, err);
	gt_source_close(s);
	gt_class_list_free(&classes);
	return code;
}

const struct gt_format gt_format_pattern = {
	.name = "pattern", .content = GT_CONTENT_FILES, .by_name = true, .find = gt_folder_find, .load = load_split};
