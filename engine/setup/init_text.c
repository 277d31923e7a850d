/* `gtrain init FOLDER` of texts: examines the texts, and writes a config that classifies them by words and word pairs.
 *
 *     look: classes, splits, sizes of texts  -->  choose: tokens, epochs  -->  write the text */
#include "setup/init_text.h"
#include "base/arena.h"
#include "fitted.h"
#include "folder.h"
#include "setup/init_found.h"
#include "setup/init_template.h"
#include "skipped.h"
#include "text/tokenizer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PROBES = 1000        /* maximum number of texts whose sizes are measured */
};
#define BYTES_A_TOKEN 5. /* mean bytes of an English word and a space */

/* Properties of the texts. */
struct look {
	const char *root;
	const struct gt_init_spec *spec;
	const struct gt_init_names *names;
	int64_t bad;         /* number of texts of all splits that cannot be read */
	int64_t n, classes;  /* number of training texts, and of their classes */
	int64_t valid, test; /* number of texts of these splits */
	bool pairs;          /* at least one class has two or more training texts */
	struct gt_text_sizes sizes;
};

bool gt_init_is_text(const char *path)
{
	return !gt_init_count_files(path, &gt_folder_images, NULL) && gt_init_count_files(path, &gt_folder_texts, NULL);
}

struct gt_text_sizes gt_text_sizes_of(int64_t *bytes, int64_t n)
{
	gt_init_sort(bytes, n);
	return (struct gt_text_sizes){bytes[n / 2], bytes[n * 98 / 100]};
}

/* Reads the sizes of up to PROBES texts at equal distances in the split. */
static enum gt_code sample_text_sizes(struct look *l, struct gt_err *err)
{
	int64_t bytes[PROBES], known = 0;
	struct gt_source *s;
	struct gt_class_list classes;
	struct gt_bytes_buf file = {0};
	GT_TRY(gt_folder_split(l->root, &gt_folder_texts, GT_TRAIN, NULL, &s, &classes, err));
	int64_t n = s->n < PROBES ? s->n : PROBES;
	for (int64_t i = 0; i < n; i++)
		if (gt_source_read(s, i * s->n / n, &file, NULL) == GT_OK)
			bytes[known++] = (int64_t)file.size;
	free(file.data);
	l->classes = classes.n;
	gt_source_close(s);
	gt_class_list_free(&classes);
	if (!known) /* if none of the texts is readable, assumes texts of 1000 bytes */
		bytes[known++] = 1000;
	l->sizes = gt_text_sizes_of(bytes, known);
	return GT_OK;
}

static void warn_of_bad_text(void *user, int set, int64_t i, const char *why)
{
	struct look *l = user;
	(void)set;
	(void)i;
	if (l->bad++ < GT_INIT_LISTED)
		gt_init_warn(l->spec, why);
}

/* Sets l->pairs. */
static enum gt_code find_pairs(struct look *l, const struct gt_dataset_spec *data, const struct gt_dataset *d, struct gt_err *err)
{
	int64_t groups = 0;
	int32_t *group = malloc(((size_t)d->n + 1) * sizeof *group);
	enum gt_code code = group ? d->fitting->strata(data, d, group, &groups, err) : gt_fail_memory(err, (size_t)d->n * sizeof *group);
	bool *seen = code == GT_OK ? calloc((size_t)groups + 1, sizeof *seen) : NULL;
	if (code == GT_OK && !seen)
		code = gt_fail_memory(err, (size_t)groups);
	for (int64_t i = 0; i < d->n && seen; i++) {
		l->pairs |= seen[group[i]];
		seen[group[i]] = true;
	}
	free(seen);
	free(group);
	return code;
}

/* Reads the texts of a split like a run, and counts the texts that can be used. */
static enum gt_code count_texts(struct look *l, enum gt_split split, struct gt_skipped *skipped, int64_t *n, struct gt_err *err)
{
	struct gt_dataset_spec data = {.root = l->root, .format = "text", .text = {.tokenizer = GT_TOK_WORDS}, .skipped = skipped};
	struct gt_dataset d;
	char text[600];
	GT_TRY(gt_dataset_read(&data, split, &d, err));
	*n = d.n;
	if (split == GT_TRAIN && *d.left_out) {
		snprintf(text, sizeof text, "%.300s: these folders have no texts and are not used as classes: %s", l->root, d.left_out);
		gt_init_warn(l->spec, text);
	}
	enum gt_code code = split == GT_TRAIN ? find_pairs(l, &data, &d, err) : GT_OK;
	gt_dataset_free(&d);
	return code;
}

static enum gt_code inspect_texts(struct look *l, struct gt_err *err)
{
	struct gt_skipped *skipped;
	int64_t *n[GT_SPLITS] = {&l->n, &l->valid, &l->test};
	GT_TRY(sample_text_sizes(l, err));
	GT_TRY(gt_skipped_open(&skipped, err));
	enum gt_code code = GT_OK;
	for (int i = 0; i < GT_SPLITS && code == GT_OK; i++)
		code = count_texts(l, (enum gt_split)i, skipped, n[i], err);
	gt_skipped_new(skipped, warn_of_bad_text, l);
	gt_skipped_close(skipped);
	gt_init_warn_of_more(l->spec, l->bad, "text");
	GT_TRY(code);
	if (!l->valid && !l->test && l->n < GT_INIT_LEAST)
		return gt_init_too_few(l->root, l->n, "text", err);
	return l->valid || l->test || l->pairs ? GT_OK : gt_init_one_each(l->root, l->n, "text", err);
}

int64_t gt_init_max_tokens(const struct gt_text_sizes *sizes)
{
	int64_t tokens = 32;
	while ((double)tokens < (double)sizes->most / BYTES_A_TOKEN && tokens < 4096)
		tokens *= 2;
	return tokens;
}

int64_t gt_init_hash_buckets(int64_t n)
{
	return n < 5000 ? 1 << 17 : 1 << 20;
}

int64_t gt_init_text_epochs(int64_t n)
{
	return (int64_t)fmin(fmax(round(200000. / (double)n), 5), 40);
}

static enum gt_code write_config(const struct look *l, char **text, struct gt_err *err)
{
	const char *root = l->names->shown;
	const struct gt_init_value values[] = {
	    GT_TEXT("CONFIG", l->names->config),
	    GT_TEXT("RUN", l->names->run),
	    GT_STRINGS("ROOT", &root, 1),
	    GT_NUMBER("SAMPLES", l->n),
	    GT_NUMBER("CLASSES", l->classes),
	    GT_NUMBER("SPLITS", l->valid || l->test),
	    GT_NUMBER("VALID", l->valid),
	    GT_NUMBER("TEST", l->test),
	    GT_NUMBER("MEDIAN", l->sizes.median),
	    GT_NUMBER("MOST", l->sizes.most),
	    GT_NUMBER("BATCH", l->n < 40 ? 8 : 16),
	    GT_NUMBER("BAD", l->bad),
	    GT_NUMBER("MAX_TOKENS", gt_init_max_tokens(&l->sizes)),
	    GT_NUMBER("PAIRS", 1),
	    GT_NUMBER("HASH_BUCKETS", gt_init_hash_buckets(l->n)),
	    GT_NUMBER("TEXT_EPOCHS", gt_init_text_epochs(l->n)),
	    GT_TEXT("SPLIT", l->valid || !l->test ? "valid" : "test"),
	    GT_NUMBER("LOSS", 0),
	    {NULL}};
	return gt_init_template("text", values, text, err);
}

enum gt_code gt_init_text(const char *path, const struct gt_init_spec *spec, const struct gt_init_names *names, char **text,
                          struct gt_err *err)
{
	struct look l = {.root = path, .spec = spec, .names = names};
	GT_TRY(inspect_texts(&l, err));
	return write_config(&l, text, err);
}
