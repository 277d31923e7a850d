/* `gtrain init FOLDER` of texts: looks at them, and writes a config that classifies them by their words and pairs of words.
 *
 *     look: classes, splits, sizes of texts  -->  choose: tokens, epochs  -->  write the text */
#include "setup/init_text.h"
#include "base/arena.h"
#include "base/memstream.h"
#include "conf/conf_string.h"
#include "folder.h"
#include "learned.h"
#include "skipped.h"
#include "text/tokenizer.h"
#include "setup/init_checkpoint.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	PROBES = 1000,       /* maximum number of texts whose sizes are measured */
	LISTED = 10,         /* maximum number of texts that cannot be read of which the user is told one by one */
	LEAST = 10           /* minimum number of texts of which a fifth is kept for evaluation */
};
#define BYTES_A_TOKEN 5. /* of English texts, with their spaces */

/* What the texts look like. */
struct look {
	const char *root;
	const struct gt_init_spec *spec;
	const struct gt_init_names *names;
	int64_t bad;         /* number of texts of all splits that cannot be read */
	int64_t n, classes;  /* training texts, and their classes */
	int64_t valid, test; /* number of texts of these splits */
	bool pairs;          /* a class has two training texts or more */
	struct gt_text_sizes sizes;
};

static enum gt_code count_files(const char *root, const struct gt_folder_kind *kind, enum gt_split split, int64_t *n, struct gt_err *err)
{
	struct gt_source *s;
	struct gt_class_list classes;
	*n = 0;
	GT_TRY(gt_folder_split(root, kind, split, &s, &classes, err));
	*n = s->n;
	gt_source_close(s);
	gt_class_list_free(&classes);
	return GT_OK;
}

bool gt_init_is_text(const char *path)
{
	int64_t n;
	if (count_files(path, &gt_folder_images, GT_TRAIN, &n, NULL) == GT_OK && n)
		return false;
	return count_files(path, &gt_folder_texts, GT_TRAIN, &n, NULL) == GT_OK && n;
}

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

struct gt_text_sizes gt_text_sizes_of(int64_t *bytes, int64_t n)
{
	qsort(bytes, (size_t)n, sizeof *bytes, by_number);
	return (struct gt_text_sizes){bytes[n / 2], bytes[n * 98 / 100]};
}

/* Reads the sizes of texts at equal distances. */
static enum gt_code sample_text_sizes(struct look *l, struct gt_err *err)
{
	int64_t bytes[PROBES], known = 0;
	struct gt_source *s;
	struct gt_class_list classes;
	struct gt_bytes_buf file = {0};
	GT_TRY(gt_folder_split(l->root, &gt_folder_texts, GT_TRAIN, &s, &classes, err));
	int64_t n = s->n < PROBES ? s->n : PROBES;
	for (int64_t i = 0; i < n; i++)
		if (gt_source_read(s, i * s->n / n, &file, NULL) == GT_OK)
			bytes[known++] = (int64_t)file.size;
	free(file.data);
	l->classes = classes.n;
	gt_source_close(s);
	gt_class_list_free(&classes);
	if (!known) /* those that can be read are all between those that were tried */
		bytes[known++] = 1000;
	l->sizes = gt_text_sizes_of(bytes, known);
	return GT_OK;
}

static void emit_warning(const struct look *l, const char *text)
{
	if (l->spec->warn)
		l->spec->warn(l->spec->user, text);
}

static void warn_of_bad_text(void *user, int set, int64_t i, const char *why)
{
	struct look *l = user;
	(void)set;
	(void)i;
	if (l->bad++ < LISTED)
		emit_warning(l, why);
}

/* Sets l->pairs. */
static enum gt_code find_pairs(struct look *l, const struct gt_dataset_spec *data, const struct gt_dataset *d, struct gt_err *err)
{
	int64_t groups = 0;
	int32_t *group = malloc(((size_t)d->n + 1) * sizeof *group);
	enum gt_code code = group ? d->learning->strata(data, d, group, &groups, err) : gt_fail_memory(err, (size_t)d->n * sizeof *group);
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

/* Reads the texts of a split as a run does, and counts those that it can use. */
static enum gt_code count_texts(struct look *l, enum gt_split split, struct gt_skipped *skipped, int64_t *n, struct gt_err *err)
{
	struct gt_dataset_spec data = {.root = l->root, .format = "text", .text = {.tokenizer = GT_TOK_WORDS}, .skipped = skipped};
	struct gt_dataset d;
	char text[600];
	GT_TRY(gt_dataset_read(&data, split, &d, err));
	*n = d.n;
	if (split == GT_TRAIN && *d.left_out) {
		snprintf(text, sizeof text, "%.300s: these folders have no texts and are no classes: %s", l->root, d.left_out);
		emit_warning(l, text);
	}
	enum gt_code code = split == GT_TRAIN ? find_pairs(l, &data, &d, err) : GT_OK;
	gt_dataset_free(&d);
	return code;
}

static enum gt_code inspect_texts(struct look *l, struct gt_err *err)
{
	struct gt_skipped *skipped;
	int64_t *n[GT_SPLITS] = {&l->n, &l->valid, &l->test};
	char text[100];
	GT_TRY(sample_text_sizes(l, err));
	GT_TRY(gt_skipped_open(&skipped, err));
	enum gt_code code = GT_OK;
	for (int i = 0; i < GT_SPLITS && code == GT_OK; i++)
		code = count_texts(l, (enum gt_split)i, skipped, n[i], err);
	gt_skipped_new(skipped, warn_of_bad_text, l);
	gt_skipped_close(skipped);
	if (l->bad > LISTED) {
		snprintf(text, sizeof text, "%lld more texts cannot be read", (long long)(l->bad - LISTED));
		emit_warning(l, text);
	}
	GT_TRY(code);
	if (!l->valid && !l->test && l->n < LEAST)
		return gt_fail(err, GT_EDATA, "%.600s: expected at least %d texts, of which a fifth is kept for evaluation, or a folder \"valid\" "
		               "or \"test\" beside \"train\", got %lld text%s", l->root, LEAST, (long long)l->n, l->n == 1 ? "" : "s");
	return l->valid || l->test || l->pairs ? GT_OK : gt_init_one_each(l->root, l->n, "text", err);
}

void gt_init_text_keys(FILE *f, const struct gt_text_sizes *sizes, int64_t n, bool pairs)
{
	int64_t tokens = 32;
	while ((double)tokens < (double)sizes->most / BYTES_A_TOKEN && tokens < 4096)
		tokens *= 2;
	fprintf(f, "\ttokenizer = \"words\";\n\tmax_tokens = %lld; # a longer text is cut off\n"
	           "\tmin_freq = 2;      # rarer words are unknown\n", (long long)tokens);
	if (pairs)
		fprintf(f, "\tngrams = 2;        # pairs of words are tokens, too\n\thash_buckets = %d;\n", n < 5000 ? 1 << 17 : 1 << 20);
}

void gt_init_text_model(FILE *f, int64_t classes)
{
	fprintf(f, "# The network: the mean of the vectors of all words and pairs, as in fastText.\n"
	           "model = {\n\tinputs = ( { name = \"tokens\"; }, { name = \"lengths\"; } );\n\tlayers = (\n"
	           "\t\t{ name = \"bag\"; type = \"embedding_bag\"; in = [\"tokens\", \"lengths\"]; embedding_dim = 16; padding_idx = 0; "
	           "init_std = 0.05; },\n\t\t{ name = \"fc\"; type = \"linear\"; out = %lld; } # one output for each class\n\t);\n};\n",
	        (long long)classes);
}

void gt_init_text_train(FILE *f, int64_t n)
{
	int64_t epochs = (int64_t)fmin(fmax(round(200000. / (double)n), 5), 40);
	fprintf(f, "# Plain SGD updates only the rows of words that a batch has. Its rate is large: a word is one of many in a mean.\n"
	           "train = {\n\tepochs = %lld;\n\toptimizer = { type = \"sgd\"; lr = 4.0; };\n"
	           "\tschedule = { type = \"polynomial\"; }; # falls to 0 in a line\n};\n", (long long)epochs);
}

static void put_config(FILE *f, const struct look *l)
{
	const char *name = l->names->run, *cfg = l->names->config;
	fprintf(f, "# Written by `gtrain init`. %lld training texts of %lld classes; ", (long long)l->n, (long long)l->classes);
	if (l->valid || l->test)
		fprintf(f, "%lld of a split \"valid\" and %lld of a split \"test\".\n", (long long)l->valid, (long long)l->test);
	else
		fprintf(f, "no other splits.\n");
	fprintf(f, "# A text has %lld bytes (median); 98 of 100 have at most %lld.\n", (long long)l->sizes.median, (long long)l->sizes.most);
	fprintf(f, "#     gtrain check %s       the vocabulary, the lengths of texts, memory and work\n"
	           "#     gtrain run %s         train\n", cfg, cfg);
	fprintf(f, "\nschema = 1;\nname = ");
	gt_string_write(f, name);
	fprintf(f, ";\nseed = 42;\n\ndata = {\n\tformat = \"text\";\n\troot = ");
	gt_string_write(f, l->names->shown);
	fprintf(f, ";\n\tbatch = %d;\n", l->n < 40 ? 8 : 16);
	if (l->bad)
		fprintf(f, "\ton_error = \"skip\"; # %lld text%s cannot be read and %s left out; `gtrain check %s --data` lists %s\n",
		        (long long)l->bad, l->bad == 1 ? "" : "s", l->bad == 1 ? "is" : "are", l->names->config, l->bad == 1 ? "it" : "them");
	if (!l->valid && !l->test)
		fprintf(f, "\tvalid = 0.2; # a fifth of the texts, of every class, is kept from training and evaluated\n\tstratify = true;\n");
	gt_init_text_keys(f, &l->sizes, l->n, true);
	fprintf(f, "};\n\n");
	gt_init_text_model(f, l->classes);
	fputc('\n', f);
	gt_init_text_train(f, l->n);
	gt_init_checkpoint(f, name, l->valid || !l->test ? "valid" : "test", "acc");
}

enum gt_code gt_init_text(const char *path, const struct gt_init_spec *spec, const struct gt_init_names *names, char **text,
                          struct gt_err *err)
{
	struct look l = {.root = path, .spec = spec, .names = names};
	struct gt_memstream m;
	GT_TRY(inspect_texts(&l, err));
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	put_config(f, &l);
	return gt_memstream_close(f, &m, text, NULL, err);
}
