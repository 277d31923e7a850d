/* Configs that must not load: the corpus with the message that each must give, removed keys, and mutants of the shipped configs, which load
 * or give GT_ECONFIG with a place, in no time, and never take the process with them. */
#include "conf/conf.h"
#include "conf/schema.h"
#include "conf/synonyms.h"
#include "ir/op.h"
#include "test.h"
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int tried;

static char *read_text(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	char *text = calloc(1, 1 << 16);
	*n = f && text ? fread(text, 1, (1 << 16) - 1, f) : 0;
	if (f)
		fclose(f);
	return text;
}

/* The types of optimizer that take a key, as a message lists them; without a key all, each in quotation marks. */
static void list_types(const char *key, char *buf, size_t size)
{
	const char *word[GT_OPT_COUNT];
	int n = 0;
	size_t len = 0;
	for (int i = 0; i < GT_OPT_COUNT; i++)
		if (!key || gt_type_key_find(gt_optimizer_rows[i].key, key))
			word[n++] = gt_optimizer_rows[i].word;
	for (int i = 0; i < n; i++)
		len += (size_t)snprintf(buf + len, size - len, key ? "%s%s" : "%s\"%s\"",
		                        !i          ? ""
		                        : i + 1 < n ? ", "
		                        : key       ? " and "
		                                    : " or ",
		                        word[i]);
}

static void list_layers(char *buf, size_t size)
{
	size_t len = 0;
	for (int i = 0; gt_op_at(i); i++)
		if (gt_op_at(i)->flags & GT_OPF_LAYER)
			len += (size_t)snprintf(buf + len, size - len, "%s%s", len ? ", " : "", gt_op_name(gt_op_at(i)));
}

/* The losses, each in quotation marks, or those over classes. */
static void list_losses(bool classes, char *buf, size_t size)
{
	size_t len = 0;
	int n = 0, left = 0;
	for (int i = 0; i < GT_LOSS_COUNT; i++)
		n += !classes || gt_loss_has_classes(&gt_loss_rows[i]);
	left = n;
	for (int i = 0; i < GT_LOSS_COUNT; i++) {
		if (classes && !gt_loss_has_classes(&gt_loss_rows[i]))
			continue;
		len += (size_t)snprintf(buf + len, size - len, classes ? "%s%s" : "%s\"%s\"",
		                        left == n     ? ""
		                        : left > 1    ? ", "
		                        : classes     ? " and "
		                                      : " or ",
		                        gt_loss_rows[i].word);
		left--;
	}
}

/* Replaces {types}, {types of betas}, {layers}, {losses}, {losses over classes} and {loss keys}, so that another optimizer, layer type or
 * loss changes no expected message. */
static void fill_in(const char *text, char *out, size_t size)
{
	struct {
		const char *word;
		char list[512];
	} known[] = {{.word = "{types}"},  {.word = "{types of betas}"},     {.word = "{layers}"},
	             {.word = "{losses}"}, {.word = "{losses over classes}"}, {.word = "{loss keys}"}};
	list_types(NULL, known[0].list, sizeof known[0].list);
	list_types("betas", known[1].list, sizeof known[1].list);
	strcat(known[1].list, " do");
	list_layers(known[2].list, sizeof known[2].list);
	list_losses(false, known[3].list, sizeof known[3].list);
	list_losses(true, known[4].list, sizeof known[4].list);
#define GT_X(name, i, key, ...) ", " key
	snprintf(known[5].list, sizeof known[5].list, "%s", &(GT_LOSS_KEYS(GT_X))[2]);
#undef GT_X
	snprintf(out, size, "%s", text);
	for (int i = 0; i < 6; i++) {
		const char *at = strstr(text, known[i].word);
		if (at)
			snprintf(out, size, "%.*s%s%s", (int)(at - text), text, known[i].list, at + strlen(known[i].word));
	}
}

TEST(conf_corpus)
{
	char pattern[512], dir[512];
	glob_t g;
	snprintf(dir, sizeof dir, "%s/tests/corpus/config/", test_source());
	snprintf(pattern, sizeof pattern, "%s/tests/corpus/config/*.cfg", test_source());
	CHECK(!glob(pattern, 0, NULL, &g));
	CHECK(g.gl_pathc >= 180);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		struct gt_conf *c;
		struct gt_err e = {0};
		char beside[600], msg[sizeof e.msg], *at;
		size_t n;
		enum gt_code code = gt_conf_load(g.gl_pathv[i], NULL, 0, &c, &e);
		/* Messages name files as the user did; the expected ones stand without the folder. */
		memcpy(msg, e.msg, sizeof msg);
		while ((at = strstr(msg, dir)))
			memmove(at, at + strlen(dir), strlen(at + strlen(dir)) + 1);
		snprintf(beside, sizeof beside, "%.*s.err", (int)strlen(g.gl_pathv[i]) - 4, g.gl_pathv[i]);
		char *want = read_text(beside, &n);
		char filled[1024];
		want[strcspn(want, "\n")] = 0;
		fill_in(want, filled, sizeof filled);
		CHECK_MSG(code == GT_ECONFIG && !c && want[0] && !strcmp(msg, filled), "%s: code %d\n  want %s\n  got  %s", g.gl_pathv[i], code,
		          filled, msg);
		free(want);
		gt_conf_free(c);
		tried++;
	}
	globfree(&g);
}

/* Keys and values that gtrain no longer has. */
static const struct gt_removed_key removed[] = {
    {"train.gone", NULL, "is gone", ""},
    {"data.augment.kind", "old", "the value is gone", NULL},
    {"parallel.half", NULL, "is half gone", "false"},
    {0},
};

TEST(removed_keys_are_found_by_path_and_value)
{
	struct gt_cnode yes = {.type = GT_C_BOOL, .b = true}, old = {.type = GT_C_STRING, .s = "old"};
	struct gt_cnode new = {.type = GT_C_STRING, .s = "new"}, raw = {.type = GT_C_INT, .i = 1, .raw = "old", .set = true};
	CHECK(gt_removed_key_find(removed, "train.gone", &yes) == &removed[0]);
	CHECK(gt_removed_key_find(removed, "train.gone", &old) == &removed[0]);
	CHECK(!gt_removed_key_find(removed, "gone", &yes) && !gt_removed_key_find(removed, "train", &yes));
	CHECK(!gt_removed_key_find(removed, "train.gone.more", &yes));
	CHECK(gt_removed_key_find(removed, "data.augment[12].kind", &old) == &removed[1]);
	CHECK(gt_removed_key_find(removed, "data.augment[0].kind", &raw) == &removed[1]);
	CHECK(!gt_removed_key_find(removed, "data.augment[0].kind", &new) && !gt_removed_key_find(removed, "data.augment[0].kind", &yes));
}

TEST(removed_keys_are_ignored_with_the_values_that_they_name)
{
	struct gt_cnode yes = {.type = GT_C_BOOL, .b = true}, no = {.type = GT_C_BOOL};
	struct gt_cnode set = {.type = GT_C_BOOL, .set = true};
	CHECK(gt_removed_key_ignored(&removed[0], &yes) && gt_removed_key_ignored(&removed[0], &no));
	CHECK(!gt_removed_key_ignored(&removed[1], &no));
	CHECK(!gt_removed_key_ignored(&removed[2], &yes) && gt_removed_key_ignored(&removed[2], &no));
	CHECK(!gt_removed_key_ignored(&removed[0], &set) && !gt_removed_key_ignored(&removed[2], &set));
}

/* Each row of the table: a key is not in the schema, a value belongs to a key that is there. */
TEST(removed_keys_are_not_in_the_schema)
{
	for (const struct gt_removed_key *k = gt_removed_keys; k->path; k++) {
		const struct gt_row *r = gt_row_find(gt_rows, k->path);
		CHECK_MSG(k->value ? r && (!r->values || gt_values_index(r->values, k->value) < 0) : !r, "%s", k->path);
	}
}

TEST(removed_keys_of_an_old_checkpoint)
{
	static const char text[] = "window_kernel = true; data = { name = \"mnist\"; batch = 4; };\n"
	                           "model = { input = [1, 28, 28]; layers = ( { type = \"flatten\"; }, { type = \"linear\"; out = 10; } ); };\n"
	                           "train = { epochs = 1; optimizer = { type = \"sgd\"; lr = 0.1; }; };\n";
	struct gt_conf *c = NULL;
	struct gt_err e = {0};
	CHECK(gt_conf_load_text("old.cfg", text, strlen(text), NULL, 0, &c, &e) == GT_ECONFIG && !c);
	CHECK_MSG(!strncmp(e.msg, "old.cfg:1: window_kernel: this key was removed; delete it: ", 59), "%s", e.msg);
	CHECK(gt_conf_load_resolved("old.cfg", text, strlen(text), (const char *[]){"window_kernel=true"}, 1, &c, &e) == GT_ECONFIG && !c);
	CHECK_OK(gt_conf_load_resolved("old.cfg", text, strlen(text), NULL, 0, &c, &e), e);
	CHECK(c && !strstr(c->text, "window_kernel"));
	gt_conf_free(c);
}

/* Configs of older checkpoints have the keys of every loss. */
TEST(keys_of_other_losses_in_an_old_checkpoint)
{
	static const char text[] = "data = { name = \"mnist\"; batch = 4; };\n"
	                           "model = { input = [1, 28, 28]; layers = ( { type = \"flatten\"; }, { type = \"linear\"; out = 10; } ); };\n"
	                           "train = { epochs = 1; loss = \"mse\"; label_smoothing = 0.0; class_weights = [ ]; smooth_l1_beta = 1.0;\n"
	                           "ignore_index = -100; optimizer = { type = \"sgd\"; lr = 0.1; }; };\n";
	struct gt_conf *c = NULL;
	struct gt_err e = {0};
	CHECK(gt_conf_load_text("old.cfg", text, strlen(text), NULL, 0, &c, &e) == GT_ECONFIG && !c);
	CHECK_OK(gt_conf_load_resolved("old.cfg", text, strlen(text), NULL, 0, &c, &e), e);
	CHECK(c && !strstr(c->text, "smooth_l1_beta") && !strstr(c->text, "ignore_index"));
	gt_conf_free(c);
	CHECK(gt_conf_load_resolved("old.cfg", text, strlen(text), (const char *[]){"train.ignore_index=3"}, 1, &c, &e) == GT_ECONFIG);
}

static uint64_t state;

static uint32_t draw(uint32_t n)
{
	state ^= state << 13; /* xorshift64: any deterministic numbers do */
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state >> 32) % n;
}

static const char *const tokens[] = {"{",
                                     "}",
                                     "(",
                                     ")",
                                     "[",
                                     "]",
                                     ";",
                                     ",",
                                     "=",
                                     ":",
                                     "\"",
                                     "\\",
                                     "\n",
                                     "@include \"x\"\n",
                                     "/*",
                                     "//",
                                     "#",
                                     "$in",
                                     "\"$n\"",
                                     "0",
                                     "-1",
                                     "1e999",
                                     "4294967297",
                                     "3000000000",
                                     "9223372036854775808",
                                     "0x7fffffffffffffff",
                                     "1.5",
                                     ".",
                                     "true",
                                     "\"\"",
                                     "[]",
                                     "()",
                                     "{}",
                                     "[1, 2]",
                                     "repeat = 9999;",
                                     "block = \"basic\";",
                                     "name = \"conv1\";",
                                     "type = \"linear\";",
                                     "in = \"$in\";",
                                     "first = { };",
                                     "out = 1048576;",
                                     "\x80",
                                     "\xEF\xBB\xBF"};

/* One to three changes of a text; the result has at most cap bytes. */
static size_t mutate(char *t, size_t n, size_t cap)
{
	for (uint32_t k = 1 + draw(3); k && n > 2; k--) {
		size_t at = draw((uint32_t)n), len = 1 + draw(24), to = draw((uint32_t)n);
		const char *tok = tokens[draw(sizeof tokens / sizeof *tokens)];
		size_t ntok = strlen(tok);
		if (len > n - at)
			len = n - at;
		switch (draw(7)) {
		case 0: /* a bit */
			t[at] = (char)(t[at] ^ 1 << draw(8));
			break;
		case 1: /* a piece less */
			memmove(t + at, t + at + len, n - at - len);
			n -= len;
			break;
		case 2: /* a piece twice */
			if (n + len <= cap) {
				memmove(t + at + len, t + at, n - at);
				n += len;
			}
			break;
		case 3: /* a token more */
			if (n + ntok <= cap) {
				memmove(t + at + ntok, t + at, n - at);
				memcpy(t + at, tok, ntok);
				n += ntok;
			}
			break;
		case 4: /* a number or word becomes a token */
			while (at < n && !strchr("0123456789", t[at]))
				at++;
			for (len = 0; at + len < n && strchr("0123456789.", t[at + len]) && t[at + len]; len++)
				;
			if (n - len + ntok <= cap) {
				memmove(t + at + ntok, t + at + len, n - at - len);
				memcpy(t + at, tok, ntok);
				n += ntok - len;
			}
			break;
		case 5: /* two bytes change places */
			len = (unsigned char)t[at];
			t[at] = t[to];
			t[to] = (char)len;
			break;
		default: /* the end is missing */
			if (!draw(4))
				n = at;
		}
	}
	return n;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

TEST(conf_mutants)
{
	enum { EACH = 200, CAP = 1 << 15 };
	char pattern[512];
	glob_t g;
	int loaded = 0, n = 0;
	double worst = 0;
	snprintf(pattern, sizeof pattern, "%s/configs/*.cfg", test_source());
	CHECK(!glob(pattern, 0, NULL, &g));
	for (size_t i = 0; i < g.gl_pathc; i++) {
		size_t len;
		char *text = read_text(g.gl_pathv[i], &len), *t = malloc(CAP);
		for (int k = 0; t && k < EACH; k++, n++) {
			struct gt_conf *c;
			struct gt_err e = {0};
			struct gt_graph *graph;
			state = 0x9E3779B97F4A7C15u * (uint64_t)(1 + k + 1000 * (int)i);
			memcpy(t, text, len);
			size_t m = mutate(t, len, CAP);
			double start = now();
			enum gt_code code = gt_conf_load_text("m.cfg", t, m, NULL, 0, &c, &e);
			if (code == GT_OK) {
				loaded++;
				CHECK(c && c->text);
				code = gt_graph_build(c->arena, &c->model, 2, GT_F32, true, &graph, &e);
			}
			double took = now() - start;
			worst = took > worst ? took : worst;
			int line = 0;
			CHECK_MSG(code == GT_OK || (code == GT_ECONFIG && sscanf(e.msg, "m.cfg:%d:", &line) == 1 && line > 0),
			          "%s, mutant %d: code %d: %s", g.gl_pathv[i], k, code, e.msg);
			gt_conf_free(c);
		}
		free(text);
		free(t);
	}
	tried += n;
	CHECK(n >= 500);
	CHECK(loaded > n / 20 && loaded < n / 2);              /* else the mutants are too tame or too wild to tell much */
	CHECK_MSG(worst < 1.0, "a mutant took %.2f s", worst); /* a wrong config is reported in less than a second */
	printf("# malformed configs tried: %d (%d of %d mutants still loaded, the slowest took %.1f ms)\n", tried, loaded, n, 1e3 * worst);
	globfree(&g);
}

RUN_TESTS()
