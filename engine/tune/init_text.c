/* `gtrain init FOLDER` of texts: looks at them, and writes a config that classifies them by their words and pairs of words.
 *
 *     look: classes, splits, sizes of texts  -->  choose: tokens, epochs  -->  write the text */
#include "tune/init_text.h"
#include "base/arena.h"
#include "base/memstream.h"
#include "conf/conf_string.h"
#include "folder.h"
#include "tune/init_checkpoint.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROBES = 1000 };  /* maximum number of texts that are read */
#define BYTES_A_TOKEN 5. /* of English texts, with their spaces */

/* What the texts look like. */
struct look {
	const char *root;
	int64_t n, classes;  /* training texts, and their classes */
	int64_t valid, test; /* number of texts of these splits */
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

/* Reads texts at equal distances. Those that cannot be read are left out; a run reports them. */
static enum gt_code probe(struct look *l, const struct gt_source *s, struct gt_err *err)
{
	int64_t bytes[PROBES], n = s->n < PROBES ? s->n : PROBES, known = 0;
	struct gt_bytes_buf file = {0};
	struct gt_err why = {0};
	for (int64_t i = 0; i < n; i++)
		if (gt_source_read(s, i * s->n / n, &file, &why) == GT_OK)
			bytes[known++] = (int64_t)file.size;
	free(file.data);
	if (!known) {
		if (err)
			*err = why;
		return why.code;
	}
	l->sizes = gt_text_sizes_of(bytes, known);
	return GT_OK;
}

static enum gt_code look_at(struct look *l, struct gt_err *err)
{
	struct gt_source *s;
	struct gt_class_list classes;
	GT_TRY(gt_folder_split(l->root, &gt_folder_texts, GT_TRAIN, &s, &classes, err));
	l->n = s->n;
	l->classes = classes.n;
	enum gt_code code = probe(l, s, err);
	gt_source_close(s);
	gt_class_list_free(&classes);
	if (code == GT_OK)
		code = count_files(l->root, &gt_folder_texts, GT_VALID, &l->valid, err);
	return code == GT_OK ? count_files(l->root, &gt_folder_texts, GT_TEST, &l->test, err) : code;
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

static void put_config(FILE *f, const struct look *l, const char *name)
{
	fprintf(f, "# Written by `gtrain init`. %lld training texts of %lld classes; ", (long long)l->n, (long long)l->classes);
	if (l->valid || l->test)
		fprintf(f, "%lld of a split \"valid\" and %lld of a split \"test\".\n", (long long)l->valid, (long long)l->test);
	else
		fprintf(f, "no other splits.\n");
	fprintf(f, "# A text has %lld bytes (median); 98 of 100 have at most %lld.\n", (long long)l->sizes.median, (long long)l->sizes.most);
	fprintf(f, "#     gtrain check THIS.cfg       the vocabulary, the lengths of texts, memory and work\n"
	           "#     gtrain run THIS.cfg         train\n");
	fprintf(f, "\nschema = 1;\nname = ");
	gt_string_write(f, name);
	fprintf(f, ";\nseed = 42;\n\ndata = {\n\tformat = \"text\";\n\troot = ");
	gt_string_write(f, l->root);
	fprintf(f, ";\n\tbatch = 16;\n");
	if (!l->valid && !l->test)
		fprintf(f, "\tvalid = 0.2; # a fifth of the texts, of every class, is kept from training and evaluated\n\tstratify = true;\n");
	gt_init_text_keys(f, &l->sizes, l->n, true);
	fprintf(f, "};\n\n");
	gt_init_text_model(f, l->classes);
	fputc('\n', f);
	gt_init_text_train(f, l->n);
	gt_init_checkpoint(f, name, l->valid || !l->test ? "valid" : "test", "acc");
}

enum gt_code gt_init_text(const char *path, const char *name, char **text, struct gt_err *err)
{
	struct look l = {.root = path};
	struct gt_memstream m;
	GT_TRY(look_at(&l, err));
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	put_config(f, &l, name);
	return gt_memstream_close(f, &m, text, NULL, err);
}
