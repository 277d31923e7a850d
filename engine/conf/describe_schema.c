/* Implements the functions of gtrain.h that list the config's keys and the words that they accept, for commands such as `gtrain help`. */
#include "base/public.h"
#include "conf/key_examples.h"
#include "conf/schema.h"
#include "conf/synonyms.h"
#include <stdio.h>
#include <string.h>

/* ---- keys --------------------------------------------------------------------------------------------------------------- */
struct key_walk {
	void (*fn)(void *user, const struct gt_schema_key *key);
	void *user;
};

/* Writes a value that differs from the default: the other value of a switch, or the first other word of an enumeration. Returns buf. */
static const char *other_value(const struct gt_row *r, char *buf, size_t size)
{
	char word[48];
	const char *def = r->def ? r->def : "";
	if (r->type == GT_T_BOOL)
		return strcmp(def, "true") ? "true" : "false";
	for (int i = 0; gt_values_word(r->values, i, word, sizeof word); i++) {
		snprintf(buf, size, "\"%s\"", word);
		if (strcmp(buf, def) != 0)
			break;
	}
	return buf;
}

static const char *example_of(const struct gt_row *r, const char *path, char *buf, size_t size)
{
	const char *example = gt_key_example(path);
	if (example)
		return example;
	if (r->type == GT_T_BOOL || r->type == GT_T_ENUM || r->type == GT_T_CHOICE)
		return other_value(r, buf, size);
	return r->def && *r->def != '(' ? r->def : "";
}

static void describe_row(const struct key_walk *w, const struct gt_row *r, const char *prefix, const char *layer)
{
	char path[160], when[160] = "", def[160], range[64], is[GT_ROW_IS], example[64];
	snprintf(path, sizeof path, "%s%s%s%s", prefix, layer ? layer : "", layer ? "." : "", r->path);
	if (r->when)
		snprintf(when, sizeof when, "%s%s", prefix, r->when);
	const char *also = strncmp(prefix, "model.layers[]", 14) ? gt_synonym_words(GT_SYN_KEY, path)
	                                                         : gt_synonym_words(GT_SYN_LAYER_KEY, r->path);
	struct gt_schema_key k = {.path = path,
	                          .type = gt_row_typename(r),
	                          .def = gt_row_default_words(r, def, sizeof def),
	                          .range = gt_row_range(r, range, sizeof range),
	                          .help = r->help,
	                          .when = when,
	                          .is = r->when ? gt_row_is(r, is, sizeof is) : "",
	                          .also = also ? also : "",
	                          .example = example_of(r, path, example, sizeof example)};
	w->fn(w->user, &k);
}

static void each_attr(const struct key_walk *w, const struct gt_op *op)
{
	for (const struct gt_attr_def *d = op->attrs; d && d->key; d++) {
		char def[48];
		struct gt_row r = gt_row_of_attr(d, def);
		describe_row(w, &r, "model.layers[].", gt_op_name(op));
	}
}

static void each_row(const struct key_walk *w, const struct gt_row *rows, const char *prefix)
{
	const struct gt_op *op;
	char at[136];
	for (const struct gt_row *r = rows; r->path; r++) {
		describe_row(w, r, prefix, NULL);
		if (r->entries) {
			snprintf(at, sizeof at, "%s%s[].", prefix, r->path);
			each_row(w, r->entries, at);
		} else if (!strcmp(r->path, "model.layers")) {
			each_row(w, gt_rows_template, "model.blocks.NAME.");
			each_row(w, gt_rows_layer, "model.layers[].");
			each_row(w, gt_rows_block, "model.layers[].");
			for (int i = 0; (op = gt_op_at(i)); i++)
				if (op->flags & GT_OPF_LAYER)
					each_attr(w, op);
		}
	}
}

void gt_schema_each(void (*fn)(void *user, const struct gt_schema_key *key), void *user)
{
	each_row(&(struct key_walk){fn, user}, gt_rows, "");
}

/* ---- words -------------------------------------------------------------------------------------------------------------- */
/* Returns the position in help, "about; sgd: text; adam: text", of the text about the word, after "word: "; NULL: no such text. For a
 * metric, such as "valid/f1", it is the text about its score. */
static const char *find_text(const char *help, const char *word)
{
	word = strchr(word, '/') ? strchr(word, '/') + 1 : word;
	size_t n = strlen(word);
	for (const char *p = help; p; p = (p = strstr(p, "; ")) ? p + 2 : NULL)
		if (!strncmp(p, word, n) && !strncmp(p + n, ": ", 2))
			return p + n + 2;
	return NULL;
}

/* Returns the position of the nearest text about another word of the key in help, with its "word: "; NULL: no such text. */
static const char *find_next(const struct gt_schema_key *key, const char *help)
{
	char word[48];
	const char *found = NULL, *text;
	for (int i = 0; strchr(key->type, '|') && gt_values_word(key->type, i, word, sizeof word); i++) {
		size_t before = strlen(strchr(word, '/') ? strchr(word, '/') + 1 : word) + 2;
		if ((text = find_text(help, word)) && (!found || text - before < found))
			found = text - before;
	}
	return found;
}

/* Copies the text from begin to before next, or to its end, without a final "; ". Returns buf. */
static const char *copy_text(const char *begin, const char *next, char *buf, size_t size)
{
	const char *end = next ? next : begin + strlen(begin);
	while (end > begin && strchr("; ", end[-1]))
		end--;
	snprintf(buf, size, "%.*s", (int)(end - begin), begin);
	return buf;
}

const char *gt_schema_word_text(const struct gt_schema_key *key, const char *word, char *buf, size_t size)
{
	const char *text = find_text(key->help, word);
	return text ? copy_text(text, find_next(key, text), buf, size) : copy_text("", NULL, buf, size);
}

const char *gt_schema_about(const struct gt_schema_key *key, char *buf, size_t size)
{
	return copy_text(key->help, find_next(key, key->help), buf, size);
}

struct word_walk {
	void (*fn)(void *user, const struct gt_schema_word *word);
	void *user;
};

static void each_value(void *user, const struct gt_schema_key *key)
{
	struct word_walk *w = user;
	char word[48], text[768];
	if (!strchr(key->type, '|') || !strncmp(key->type, "int", 3) || !strncmp(key->type, "float", 5) || !strncmp(key->type, "string", 6))
		return;
	for (int i = 0; gt_values_word(key->type, i, word, sizeof word); i++) {
		const char *also = gt_synonym_words(key->path, word);
		struct gt_schema_word v = {.key = key->path, .word = word, .also = also ? also : ""};
		v.help = gt_schema_word_text(key, word, text, sizeof text);
		if (*word)
			w->fn(w->user, &v);
	}
}

void gt_schema_words(void (*fn)(void *user, const struct gt_schema_word *word), void *user)
{
	struct word_walk w = {fn, user};
	const struct gt_op *op;
	for (int i = 0; (op = gt_op_at(i)); i++)
		if (op->flags & GT_OPF_LAYER)
			fn(user, &(struct gt_schema_word){"model.layers[].type", gt_op_name(op), op->help, op->also ? op->also : ""});
	gt_schema_each(each_value, &w);
}
