/* What `gtrain help` shows of the schema: examples that the config accepts, texts of the words of enumerations. */
#include "conf/schema.h"
#include "gtrain.h"
#include "test.h"
#include <stdlib.h>
#include <string.h>

/* The tables of the keys of entries, by the beginning of their paths. The longest beginning counts. */
static const struct {
	const char *prefix;
	const struct gt_row *rows;
} tables[] = {
	{"model.pretrained.map[].", gt_rows_rename}, {"data.augment[].", gt_rows_augment}, {"data.columns[].", gt_rows_column},
	{"model.inputs[].", gt_rows_input},          {"train.groups[].", gt_rows_group},   {"model.blocks.NAME.", gt_rows_template},
	{"model.layers[].", gt_rows_layer},          {"model.layers[].", gt_rows_block},   {"", gt_rows},
};

static const struct gt_row *find_row(const char *path)
{
	const struct gt_row *r = NULL;
	for (size_t i = 0; i < sizeof tables / sizeof *tables && !r; i++)
		if (!strncmp(path, tables[i].prefix, strlen(tables[i].prefix)))
			r = gt_row_find(tables[i].rows, path + strlen(tables[i].prefix));
	return r;
}

/* Makes the row of the key of a layer type, "model.layers[].conv2d.kernel". def: memory for the row. */
static struct gt_row attr_row(const char *path, char def[48])
{
	char type[48];
	const char *p = path + strlen("model.layers[]."), *key = strrchr(path, '.') + 1;
	snprintf(type, sizeof type, "%.*s", (int)(key - 1 - p), p);
	const struct gt_op *op = gt_op_find_layer(type);
	for (const struct gt_attr_def *d = op ? op->attrs : NULL; d && d->key; d++)
		if (!strcmp(d->key, key))
			return gt_row_of_attr(d, def);
	return (struct gt_row){0};
}

struct reading {
	struct gt_arena *arena;
	void *base; /* memory for any struct of the config */
	int n;
};

static void read_example(void *user, const struct gt_schema_key *k)
{
	struct reading *t = user;
	struct gt_err e = {0};
	struct gt_cnode *root;
	char set[512], def[48];
	const struct gt_row *r = find_row(k->path);
	struct gt_row attr = r ? *r : attr_row(k->path, def);
	if (!*k->example || !attr.path) {
		CHECK_MSG(false, "%s: no example, or no row", k->path);
		return;
	}
	CHECK_OK(gt_cnode_new(t->arena, GT_C_GROUP, NULL, (struct gt_source_loc){"x", 0}, &root, &e), e);
	snprintf(set, sizeof set, "%s=%s", attr.path, k->example);
	CHECK_OK(gt_conf_set(t->arena, root, set, &e), e);
	const struct gt_cnode *n = gt_conf_given(root, attr.path);
	CHECK_MSG(n != NULL, "%s: the example %s sets nothing", k->path, k->example);
	if (n && attr.type != GT_T_OTHER) {
		enum gt_code code = gt_row_read(&attr, n, k->path, t->base, &e);
		CHECK_MSG(code == GT_OK, "%s = %s: %s", k->path, k->example, e.msg);
	}
	t->n++;
}

TEST(examples_are_accepted)
{
	struct gt_err e = {0};
	struct reading t = {.base = calloc(1, 1 << 20)};
	CHECK_OK(gt_arena_open(&t.arena, &e), e);
	gt_schema_each(read_example, &t);
	CHECK_MSG(t.n > 200, "%d examples", t.n);
	gt_arena_close(t.arena);
	free(t.base);
}

struct texts {
	const char *path;
	char about[2048], text[1024], word[32];
};

static void read_texts(void *user, const struct gt_schema_key *k)
{
	struct texts *t = user;
	if (!strcmp(k->path, t->path)) {
		gt_schema_about(k, t->about, sizeof t->about);
		gt_schema_word_text(k, t->word, t->text, sizeof t->text);
	}
}

static void check_texts(const char *path, const char *word, const char *about, const char *text)
{
	struct texts t = {.path = path};
	snprintf(t.word, sizeof t.word, "%s", word);
	gt_schema_each(read_texts, &t);
	CHECK_MSG(!strcmp(t.about, about), "%s: about \"%s\"", path, t.about);
	CHECK_MSG(!strcmp(t.text, text), "%s: %s: \"%s\"", path, word, t.text);
}

TEST(texts_of_words)
{
	check_texts("data.header", "no", "whether the first line has the names of the columns", "");
	check_texts("eval.tta", "mirror", "test-time augmentation", "average the logits of an image and its mirror image");
	check_texts("eval.tta", "mirror_translate", "test-time augmentation", "average also the logits of copies shifted by one pixel");
	check_texts("reproducible", "world", "", "any number of ranks and any parallel mode give bit-identical results");
	check_texts("train.optimizer.type", "sgd", "update rule", "torch.optim.SGD");
	check_texts("train.clip_norm", "no such word",
	            "maximum global norm of the gradient; larger gradients are scaled down to this norm; 0: no clipping", "");
}

static void check_word(void *user, const struct gt_schema_word *w)
{
	++*(int *)user;
	CHECK_MSG(*w->word && *w->key, "a word without a name");
	CHECK_MSG(strcmp(w->key, "model.layers[].type") != 0 || *w->help, "the layer type %s has no help", w->word);
	size_t n = strlen(w->help);
	CHECK_MSG(!n || (w->help[n - 1] != ' ' && w->help[n - 1] != ';'), "%s: its text \"%s\" does not end", w->word, w->help);
}

TEST(words)
{
	int n = 0;
	gt_schema_words(check_word, &n);
	CHECK_MSG(n > 150, "%d words", n);
}

RUN_TESTS()
