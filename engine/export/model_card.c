#include "export/model_card.h"
#include "base/fileio.h"
#include "base/json_read.h"
#include "base/memstream.h"
#include "base/public.h"
#include "export/image_text.h"
#include "export/token_text.h"
#include "text/tokenizer.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TRAIN, VALID, TEST, SPLITS };
static const char *const split_name[SPLITS] = {"train", "valid", "test"};

/* Values from metrics.jsonl for the step of the checkpoint. */
struct facts {
	double score[SPLITS][GT_SCORE_COUNT]; /* NAN: not measured at the step of the checkpoint */
	double samples[SPLITS];               /* NAN: not known */
	char *start;                          /* the first line that the run has printed; malloc'ed; NULL: not known */
};

/* ---- text of Markdown ------------------------------------------------------------------------------------------------------------- */
/* Writes a text with Markdown's special characters escaped, and without control characters. */
static void put_text(FILE *f, const char *s)
{
	for (; *s; s++) {
		if (strchr("\\`*_{}[]<>()#|~&", *s))
			fputc('\\', f);
		fputc((unsigned char)*s < ' ' || *s == 127 ? '?' : *s, f);
	}
}

/* Writes a text as a block of code: each line indented. */
static void put_code(FILE *f, const char *s)
{
	bool begin = true;
	for (; *s; s++) {
		if (begin && *s != '\n')
			fputs("    ", f);
		fputc(*s != '\n' && *s != '\t' && ((unsigned char)*s < ' ' || *s == 127) ? '?' : *s, f);
		begin = *s == '\n';
	}
	if (!begin)
		fputc('\n', f);
}

/* ---- metrics.jsonl ---------------------------------------------------------------------------------------------------------------- */
static void take_scores(struct facts *a, int split, const struct gt_json_value *o)
{
	for (int i = 0; i < GT_SCORE_COUNT; i++)
		a->score[split][i] = gt_json_num(o, gt_score_rows[i].word);
	a->samples[split] = gt_json_num(o, "samples");
}

static void take_line(struct facts *a, const struct gt_json_value *o, int64_t step)
{
	const char *event = gt_json_str(o, "event"), *split = gt_json_str(o, "split");
	if (!strcmp(event, "start") && gt_json_count(o, "step") <= step) {
		free(a->start);
		a->start = strdup(gt_json_str(o, "text"));
	}
	if (gt_json_count(o, "step") != step)
		return;
	if (!strcmp(event, "epoch"))
		take_scores(a, TRAIN, o);
	for (int i = 0; !strcmp(event, "eval") && i < SPLITS; i++)
		if (!strcmp(split, split_name[i]))
			take_scores(a, i, o);
}

/* Reads the lines. A damaged line is skipped, as in `gtrain runs`. */
static enum gt_code read_lines(FILE *f, struct facts *a, int64_t step, struct gt_err *err)
{
	char *line = NULL;
	size_t cap = 0;
	enum gt_code code = GT_OK;
	for (ssize_t n; code == GT_OK && (n = getline(&line, &cap, f)) > 0;) {
		const struct gt_json_value *o;
		struct gt_arena *arena;
		if (!strstr(line, "\"event\":\"eval\"") && !strstr(line, "\"event\":\"epoch\"") && !strstr(line, "\"event\":\"start\""))
			continue;
		code = gt_arena_open(&arena, err);
		if (code == GT_OK && gt_json_parse(line, (size_t)n, "metrics.jsonl", 4, 4096, arena, &o, NULL) == GT_OK)
			take_line(a, o, step);
		if (code == GT_OK)
			gt_arena_close(arena);
	}
	free(line);
	return code;
}

static enum gt_code read_facts(const struct gt_export_source *s, struct facts *a, struct gt_err *err)
{
	char dir[GT_PATH_SIZE], path[GT_PATH_SIZE];
	int64_t step;
	uint64_t bytes;
	int fd;
	for (int i = 0; i < SPLITS; i++) {
		a->samples[i] = NAN;
		for (int k = 0; k < GT_SCORE_COUNT; k++)
			a->score[i][k] = NAN;
	}
	if (gt_ckpt_run_dir(gt_ckpt_path(s->ckpt), dir, &step, NULL) != GT_OK || gt_path_join(path, dir, "metrics.jsonl", NULL) != GT_OK ||
	    gt_file_open(path, &fd, &bytes, NULL) != GT_OK)
		return GT_OK;
	FILE *f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return gt_fail_memory(err, 0);
	}
	enum gt_code code = read_lines(f, a, gt_ckpt_meta(s->ckpt)->step, err);
	fclose(f);
	return code;
}

/* ---- sections --------------------------------------------------------------------------------------------------------------------- */
static void write_summary(FILE *f, const struct gt_export_source *s)
{
	const struct gt_conf *c = s->conf;
	const char *data = *c->data.name ? c->data.name : *c->data.root ? c->data.root : c->data.train.n ? c->data.train.v[0] : "";
	const char *slash = strrchr(data, '/');
	int64_t classes = gt_export_classes(s);
	fprintf(f, "---\nlibrary_name: pytorch\ntags:\n- gtrain\n---\n\n# ");
	put_text(f, c->name);
	fprintf(f, "\n\nA network that gtrain %s has trained on the data \"", GT_VERSION);
	put_text(f, slash && slash[1] ? slash + 1 : data);
	if (s->session->data.nvalues)
		fprintf(f, "\". It predicts %d number%s.\n", s->session->data.nvalues, s->session->data.nvalues > 1 ? "s" : "");
	else
		fprintf(f, "\". It has %" PRId64 " outputs.\n", classes ? classes : gt_graph_desc(s->graph, s->graph->output)->dim[1]);
	fprintf(f, "It has %" PRId64 " parameters, and its weights are the weights after %" PRId64 " optimizer steps.\n",
	        gt_graph_num_params(s->graph), gt_ckpt_meta(s->ckpt)->step);
}

/* Writes the transforms of an evaluation, by which images of other sizes get the size of the input. */
static void write_transforms(FILE *f, struct gt_transform_list list)
{
	char word[32];
	for (int i = 0; i < list.n; i++) {
		const struct gt_transform *t = &list.t[i];
		fprintf(f, "%s%s", i ? ", then " : " Before that, an image passes through ", gt_transform_word(t->type, word));
		if (t->size[1])
			fprintf(f, " to %" PRId64 " x %" PRId64, t->size[0], t->size[1]);
		else if (t->size[0])
			fprintf(f, " to %" PRId64, t->size[0]);
	}
	if (list.n)
		fputc('.', f);
}

static void write_token_use(FILE *f, const struct gt_export_source *s)
{
	const struct gt_text_spec *t = &s->conf->data.text;
	fprintf(f, "\nTexts become ids by the tokenizer \"%s\", at most %" PRId64 " of a text. `tokens.py` has it, without packages%s:\n\n",
	        gt_tokenizer_names[t->tokenizer], t->max_tokens, t->tokenizer == GT_TOK_BYTES ? "" : ", and `vocab.txt` the vocabulary");
	fprintf(f, "```python\nimport torch\nfrom tokens import batch\n\n"
	           "tokens, lengths = map(torch.tensor, batch([\"a text\", \"another one\"]))\n```\n\n");
	if (t->tokenizer == GT_TOK_WORDS)
		fprintf(f, "HTML breaks and entities are replaced, upper case is folded (Unicode NFC), and the text is divided into words, "
		           "numbers and punctuation; a word that is not in the vocabulary has the id of `<unk>`.");
	else if (t->tokenizer == GT_TOK_WORDPIECE)
		fprintf(f, "The ids are those of BertTokenizer (uncased): `[CLS]`, the longest known pieces of each word, `[SEP]`.");
	else
		fprintf(f, "Byte b of the UTF-8 text has the id 1 + b.");
	if (t->tokenizer == GT_TOK_WORDS && t->ngrams > 1)
		fprintf(f, " Each sequence of %s%" PRId64 " words has another id, of %" PRId64 " hash buckets after the vocabulary.",
		        t->ngrams > 2 ? "2 to " : "", t->ngrams, t->hash_buckets);
	fprintf(f, " Shorter texts are filled up with the padding id; `lengths` counts the ids without it.\n");
}

static const char image_use[] =
    "\nThe function `batch` of `images.py`, which needs Pillow and NumPy, does all this for image files:\n\n"
    "```python\nimport torch\nfrom images import batch\n\n"
    "output = model(torch.from_numpy(batch([\"a.jpg\", \"b.png\"])))\n```\n";

static void write_use(FILE *f, const struct gt_export_source *s)
{
	const struct gt_conf_data *d = &s->conf->data;
	fprintf(f, "\n## Use\n"
	           "\n"
	           "```python\n"
	           "from model import load\n"
	           "\n"
	           "model = load()  # model.safetensors, for evaluation\n"
	           "```\n"
	           "\n"
	           "`model.py` needs only torch; its first lines describe the inputs.");
	if (s->conf->model.input[0]) {
		fprintf(f, " Images are normalised: (pixel / 255 - mean) / std, with the mean");
		for (int i = 0; i < d->mean.n; i++)
			fprintf(f, "%s %.9g", i ? "," : "", d->mean.v[i]);
		fprintf(f, "%s and the std", d->mean.n ? "" : " 0");
		for (int i = 0; i < d->std.n; i++)
			fprintf(f, "%s %.9g", i ? "," : "", d->std.v[i]);
		fprintf(f, "%s.", d->std.n ? "" : " 1");
		write_transforms(f, s->session->data.eval_list);
	}
	if (s->session->data.facts.learned)
		fprintf(f, " `data.json` has the statistics of columns, the words of categories and the vocabulary.");
	fputc('\n', f);
	if (gt_image_files(s) && gt_image_fixed(s))
		fputs(image_use, f);
	if (gt_token_texts(s))
		write_token_use(f, s);
}

/* Writes the list of classes; class i is output i. */
static void write_classes(FILE *f, const struct gt_export_source *s)
{
	int64_t n = gt_export_classes(s);
	if (!n || !gt_export_class_name(s, 0))
		return;
	fprintf(f, "\n## Classes\n\n");
	for (int64_t i = 0; i < n; i++) {
		fprintf(f, "%s%" PRId64 " ", i ? ", " : "", i);
		put_text(f, gt_export_class_name(s, i) ? gt_export_class_name(s, i) : "?");
	}
	fputc('\n', f);
}

static void write_head(FILE *f, const bool *has)
{
	fprintf(f, "| split | samples |");
	for (int k = 0; k < GT_SCORE_COUNT; k++)
		if (has[k])
			fprintf(f, " %s |", gt_score_rows[k].label);
	fprintf(f, "\n|---|---|");
	for (int k = 0; k < GT_SCORE_COUNT; k++)
		fprintf(f, "%s", has[k] ? "---|" : "");
	fputc('\n', f);
}

static void write_row(FILE *f, const struct facts *a, int split, const bool *has)
{
	fprintf(f, isnan(a->samples[split]) ? "| %s | |" : "| %s | %.0f |", split_name[split], a->samples[split]);
	for (int k = 0; k < GT_SCORE_COUNT; k++)
		if (has[k])
			fprintf(f, isnan(a->score[split][k]) ? " |" : " %.4g |", a->score[split][k]);
	fputc('\n', f);
}

/* Writes a table of scores, with a column for each score that a split has. */
static void write_scores(FILE *f, const struct facts *a, int64_t step)
{
	bool has[GT_SCORE_COUNT] = {false}, measured[SPLITS] = {false}, some = false;
	for (int i = 0; i < SPLITS; i++)
		for (int k = 0; k < GT_SCORE_COUNT; k++)
			if (!isnan(a->score[i][k]))
				has[k] = measured[i] = some = true;
	fprintf(f, "\n## Scores\n\n");
	if (!some) {
		fprintf(f, "The run has measured no scores at step %" PRId64 ".\n", step);
		return;
	}
	fprintf(f, "Measured by the run at step %" PRId64 "; \"train\": over the last epoch, during training.\n\n", step);
	write_head(f, has);
	for (int i = 0; i < SPLITS; i++)
		if (measured[i])
			write_row(f, a, i, has);
}

static void write_training(FILE *f, const struct gt_export_source *s, const struct facts *a)
{
	const struct gt_ckpt_meta *m = gt_ckpt_meta(s->ckpt);
	fprintf(f, "\n## Training\n\nIt took %.*f seconds on %" PRId64 " rank%s, with the seed %" PRIu64 ".", m->seconds < 10 ? 2 : 0,
	        m->seconds, m->world, m->world == 1 ? "" : "s", m->seed);
	if (a->start) {
		fprintf(f, " The run began as\n\n> ");
		put_text(f, a->start);
	}
	fprintf(f, "\n\nThe config, with all defaults; `gtrain run FILE` repeats the run:\n\n");
	put_code(f, m->config);
}

static void write_card(FILE *f, const struct gt_export_source *s, const struct facts *a)
{
	write_summary(f, s);
	write_use(f, s);
	write_scores(f, a, gt_ckpt_meta(s->ckpt)->step);
	write_classes(f, s);
	write_training(f, s, a);
}

enum gt_code gt_model_card(const struct gt_export_source *s, char **out, struct gt_err *err)
{
	struct gt_memstream m;
	struct facts a = {0};
	enum gt_code code = read_facts(s, &a, err);
	FILE *f = code == GT_OK ? gt_memstream_open(&m) : NULL;
	if (f) {
		write_card(f, s, &a);
		code = gt_memstream_close(f, &m, out, NULL, err);
	} else if (code == GT_OK) {
		code = gt_fail_memory(err, 0);
	}
	free(a.start);
	return code;
}
