/* The key reference of man/gtrain.cfg.5 is what the schema's table makes of itself: it stands between the lines .\" BEGIN KEYS and
 * .\" END KEYS. The test compares; with GTRAIN_UPDATE=1 it writes the page instead. */
#include "conf/schema.h"
#include "gtrain.h"
#include "ir/op.h"
#include "test.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *prefix, *head, *says;
} sections[] = {
    {"", "The run", NULL},
    {"data.", "data", NULL},
    {"data.augment[].", "data.augment",
     "Each entry of the list is a group with the keys below. Names, defaults and results are those of torchvision's transforms on PIL "
     "images; a JPEG that is much larger than the result of a random_resized_crop or resize is decoded at a half, a quarter or an eighth "
     "of its size, which changes pixels a little. The random numbers of a transform are a function of the seed, the epoch, the sample and "
     "the position of the transform in the list."},
    {"data.columns[].", "data.columns",
     "Each entry of the list is a group with the keys below. Types that are not given are inferred from the rows of the training "
     "split. A column without a value, or with only one value, is ignored. A column of whole numbers is also ignored if it counts the "
     "rows, or if all its values differ and it has a name such as id, user_id or index. Columns of other whole numbers with at most 20 "
     "different values are categorical; columns of other numbers are continuous; a column of dates has the type date if the order of "
     "day and month is clear. A column of words is categorical if it has at most 20 different values. A column of words with more "
     "different values is text if more than half of the values differ and have 8 or more words on average; otherwise it is ignored if "
     "all values differ, and else categorical. A column has numbers (or dates) "
     "if at least 99 of 100 values are numbers (or dates), or if only one of at least 21 values is not. Another cell in a column of "
     "numbers or dates, such as #REF! or inf, is an error that names the line of the cell, or, with data.on_error = skip, a missing "
     "value. It is an error if the numbers of a column without a given type are not written as data.decimal and data.thousands specify. "
     "A missing number is replaced by the median of the column, and a further input NAME_na is 1. Numbers are normalised: the mean of "
     "the column is subtracted, and the result is divided by the standard deviation, both of the training split. A date is converted "
     "to nine numbers, which are replaced and normalised like other numbers. A category is converted to a code: 0 for a missing value, "
     "1 for a word that the training split does not "
     "have, and 2, 3, ... for the words of the training split, the most frequent word first. A text is split into tokens, as "
     "data.tokenizer and the keys after it specify; layers read the tokens from the input \"tokens\", and the number of tokens from the "
     "input \"lengths\". The texts of several columns are combined to one text, with a line for each column; a missing text, or a text "
     "without tokens, "
     "is one token of padding. Medians, categories and vocabularies are computed from the training split only and stored in the "
     "checkpoint."},
    {"model.", "model", NULL},
    {"model.blocks.NAME.", "model.blocks", "Each member of model.blocks is a template:"},
    {"model.layers[].", "model.layers",
     "Each entry is a layer, with a \"type\" and the keys of that type, or an instance of a template, with a \"block\" and its "
     "parameters."},
    {"model.pretrained.", "model.pretrained", NULL},
    {"model.pretrained.map[].", "model.pretrained.map",
     "Each entry of the list is a group with the keys below. Example for weights that were trained on 1,000 classes, and a model "
     "with another number of outputs: pretrained = { file = \"resnet18.safetensors\"; map = ( { from = \"fc.*\"; to = \"\"; } ); "
     "}; names that all begin with backbone: map = ( { from = \"backbone.*\"; to = \"*\"; } ). If all names in the file begin with "
     "module., as those of torch.nn.DataParallel do, this prefix is removed first. Shapes may differ only in dimensions of size 1. "
     "It is an error if an entry of the map matches no name, or if no tensor is loaded. Values in f16, bf16 and f64 are converted to f32. "
     "gtrain run and gtrain check print which tensors are loaded and which are not."},
    {"train.", "train", NULL},
    {"train.groups[].", "train.groups",
     "Each entry of the list is a group with the keys below. Parameters that no group matches use train.optimizer and train.schedule."},
    {"train.optimizer.", "train.optimizer", "A key that the chosen type of optimizer does not use is an error."},
    {"train.schedule.", "train.schedule", "A key that the chosen type of schedule does not use is an error."},
    {"train.ema.", "train.ema",
     "The moving average is computed as by torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn; its initial value is a copy of "
     "the parameters. The warm-up of the decay is that of timm's ModelEmaV3. In a checkpoint, model.safetensors has the averages, and "
     "optimizer.safetensors has the trained parameters, from which a resumed run continues."},
    {"train.loss_scale.", "train.loss_scale",
     "With precision = \"fp16\", the loss is multiplied by a scale before the backward pass so that small gradients do not become "
     "0, as by PyTorch's GradScaler. The losses in reports are not scaled. A step whose gradients overflow is skipped: it changes "
     "no weight and does not advance the schedule or Adam's step counter, but its samples count as used. If train.epochs sets the "
     "length of a run, the run therefore reads its data exactly train.epochs times and may make fewer optimizer steps than planned. "
     "If train.steps sets the length of a run, the run makes exactly that number of optimizer steps: skipped steps do not count, so "
     "the run may read more batches than train.steps. After 64 skipped steps in a row, the run ends as diverged."},
    {"eval.", "eval", NULL},
    {"parallel.", "parallel", "A key that the chosen parallel.mode does not use is an error."},
    {"checkpoint.", "checkpoint", NULL},
    {"log.", "log", NULL},
};
#define NSECTIONS ((int)(sizeof sections / sizeof *sections))

static char *page;
static size_t npage;
static FILE *out;
static int section = -1;
static const char *layer_type; /* whose attributes are being written */

/* A word of mdoc: quotes and backslashes by name, never a macro (on a line of one) or a request. */
static void word(const char *w, size_t n, bool macro_line)
{
	if ((macro_line && n <= 3) || *w == '.' || *w == '\'')
		fputs("\\&", out);
	for (size_t i = 0, line = 0; i < n; i++, line++) {
		if (macro_line && line > 60 && i && w[i - 1] == '|') { /* a long list of values continues on the next line */
			fputs("\\\n", out);
			line = 0;
		}
		if (w[i] == '"')
			fputs("\\(dq", out);
		else if (w[i] == '\\')
			fputs("\\e", out);
		else if (w[i] == '-')
			fputs("\\-", out);
		else if ((unsigned char)w[i] == 0xE2) { /* …: the only one beyond ASCII */
			fputs("...", out);
			i += 2;
		} else if (w[i] == '|' && n > 40 && i + 1 < n) { /* a page of 80 columns breaks a long list of values here */
			fputs(" | \\&", out);
			line += 4;
		} else
			fputc(w[i], out);
	}
}

static void text(const char *s)
{
	size_t column = 0;
	while (*s) {
		size_t n = strcspn(s, " ");
		bool end = n > 1 && strchr(".;:", s[n - 1]) && s[n]; /* a sentence has its own line */
		if (column && column + n > 74) {
			fputc('\n', out);
			column = 0;
		} else if (column) {
			fputc(' ', out);
		}
		word(s, n, false);
		column += n + 1;
		if (end && s[n - 1] == '.') {
			fputc('\n', out);
			column = 0;
		}
		s += n;
		s += strspn(s, " ");
	}
	fputc('\n', out);
}

/* row: says with which type or mode the key may stand; NULL: always. */
static void item(const char *name, const char *type, const char *range, const char *def, const char *help, const struct gt_row *row)
{
	char facts[512], *p = facts, *end = facts + sizeof facts;
	p += snprintf(p, sizeof facts, "(%s", type);
	if (range[0])
		p += snprintf(p, (size_t)(end - p), ", %s", range);
	snprintf(p, (size_t)(end - p),
	         def[0] == '(' ? "; default: %s"
	         : def[0]      ? "; default %s)"
	                       : "; required)",
	         def[0] == '(' ? def + 1 : def);
	fprintf(out, ".It Va %s No ", name);
	for (const char *s = facts; *s; s += strspn(s, " ")) {
		size_t n = strcspn(s, " ");
		if (s != facts)
			fputc(' ', out);
		word(s, n, true);
		s += n;
	}
	fputc('\n', out);
	text(help);
	if (row && row->when) {
		char only[256], value[48], next[48], buf[GT_ROW_IS];
		const char *is = gt_row_is(row, buf, sizeof buf);
		size_t len = (size_t)snprintf(only, sizeof only, "This key is valid only with %s =", row->when);
		for (int i = 0; gt_values_word(is, i, value, sizeof value) && len < sizeof only; i++)
			len += (size_t)snprintf(only + len, sizeof only - len, "%s%s",
			                        !i                                                  ? " "
			                        : gt_values_word(is, i + 1, next, sizeof next) ? ", "
			                                                                            : " or ",
			                        value);
		if (len + 1 < sizeof only)
			strcpy(only + len, ".");
		fputs(".br\n", out);
		text(only);
	}
}

static void list_end(void)
{
	if (section >= 0)
		fputs(".El\n", out);
}

static void list_begin(int i)
{
	fprintf(out, ".Ss %s\n", sections[i].head);
	if (sections[i].says)
		text(sections[i].says);
	fputs(".Bl -tag -width Ds\n", out);
	section = i;
}

static const char *const layer_prefix = "model.layers[].";

static void attribute(void *user, const struct gt_schema_key *k)
{
	const char *p = k->path + strlen(layer_prefix);
	size_t n = strlen(layer_type);
	(void)user;
	if (!strncmp(k->path, layer_prefix, strlen(layer_prefix)) && !strncmp(p, layer_type, n) && p[n] == '.')
		item(p + n + 1, k->type, k->range, k->def, k->help, NULL);
}

static void layer_types(void)
{
	const struct gt_op *op;
	fputs(".Ss Layer types\nNames, formulas and defaults are those of the PyTorch modules.\n.Bl -tag -width Ds\n", out);
	for (int i = 0; (op = gt_op_at(i)); i++) {
		if (!(op->flags & GT_OPF_LAYER))
			continue;
		fprintf(out, ".It Cm %s\n", gt_op_name(op));
		text(op->help);
		if (!op->attrs || !op->attrs->key)
			continue;
		layer_type = gt_op_name(op);
		fputs(".Bl -tag -width Ds -compact\n", out);
		gt_schema_each(attribute, NULL);
		fputs(".El\n", out);
	}
	fputs(".El\n", out);
}

static void key(void *user, const struct gt_schema_key *k)
{
	int best = 0;
	bool *types_done = user;
	for (int i = 0; i < NSECTIONS; i++)
		if (!strncmp(k->path, sections[i].prefix, strlen(sections[i].prefix)) &&
		    strlen(sections[i].prefix) >= strlen(sections[best].prefix))
			best = i;
	const char *name = k->path + strlen(sections[best].prefix);
	if (strchr(name, '.') && !strcmp(sections[best].prefix, layer_prefix)) { /* of a layer type */
		if (!*types_done) {
			list_end();
			section = -1;
			layer_types();
			*types_done = true;
		}
		return;
	}
	if (best != section) {
		list_end();
		list_begin(best);
	}
	item(name, k->type, k->range, k->def, k->help, best == 2 ? gt_row_find(gt_rows_augment, name) : gt_row_find(gt_rows, k->path));
}

static char *slurp(const char *path)
{
	FILE *f = fopen(path, "r");
	char *s = calloc(1, 1 << 18);
	if (f && s)
		s[fread(s, 1, (1 << 18) - 1, f)] = 0;
	if (f)
		fclose(f);
	return s;
}

TEST(conf_manual)
{
	static const char begin[] = ".\\\" BEGIN KEYS\n", end[] = ".\\\" END KEYS\n";
	char path[512];
	bool types_done = false;
	snprintf(path, sizeof path, "%s/man/gtrain.cfg.5", test_source());
	char *man = slurp(path), *from = man ? strstr(man, begin) : NULL, *to = from ? strstr(from, end) : NULL;
	CHECK_MSG(from && to, "%s: no BEGIN KEYS and END KEYS", path);
	if (!from || !to)
		return;
	from += strlen(begin);
	out = open_memstream(&page, &npage);
	section = -1;
	gt_schema_each(key, &types_done);
	list_end();
	fclose(out);
	CHECK(types_done);
	bool same = (size_t)(to - from) == npage && !memcmp(from, page, npage);
	if (!same && getenv("GTRAIN_UPDATE")) {
		FILE *f = fopen(path, "w");
		CHECK(f);
		if (f) {
			fprintf(f, "%.*s%s%s", (int)(from - man), man, page, to);
			fclose(f);
		}
	} else if (!same) {
		size_t i = 0, line = 1;
		for (; i < npage && from + i < to && from[i] == page[i]; i++)
			line += page[i] == '\n';
		CHECK_MSG(same, "man/gtrain.cfg.5 differs from the schema in line %zu of its key reference: GTRAIN_UPDATE=1 %s writes it again",
		          line, "build/tests/unit/test_conf_man");
	}
	free(page);
	free(man);
}

/* What completion and the manual rely on: paths are unique, every key has help and a type, defaults lie within what is allowed. */
static char paths[1024][96];
static int npaths;

static void check_key(void *user, const struct gt_schema_key *k)
{
	(void)user;
	CHECK_MSG(k->help && k->help[0] && k->type[0], "%s: no help or type", k->path);
	for (int i = 0; i < npaths; i++)
		CHECK_MSG(strcmp(paths[i], k->path), "%s stands twice", k->path);
	if (npaths < 1024)
		snprintf(paths[npaths++], sizeof *paths, "%s", k->path);
}

TEST(conf_schema_keys)
{
	gt_schema_each(check_key, NULL);
	CHECK_MSG(npaths > 100 && npaths < 1024, "%d keys", npaths);
}

RUN_TESTS()
