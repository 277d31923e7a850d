#include "setup/init_missing.h"
#include "base/arena.h"
#include "table/parse_cell.h"
#include "table/table_facts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The values of a column of words. */
struct tally {
	int64_t present, numbers, different; /* values, values that are numbers, distinct numbers */
	int32_t word[GT_INIT_MISSING_WORDS]; /* [nwords] codes of the other values */
	int nwords;
	bool is_numeric; /* a column of numbers, but for these words */
	int64_t *count;  /* [words] values of each word; malloc'ed */
};

/* A word of a config has no control characters. */
static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((uint8_t)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

/* Adds up the values of a column from out->count. Returns whether the column may be one of numbers. */
static bool tally_words(const struct gt_data_table *t, const struct gt_table_spec *spec, int k, struct tally *out)
{
	const struct gt_words *words = &t->column[k].words;
	for (int32_t i = 0; i < words->n; i++) {
		double v;
		const char *text = gt_words_text(words, i);
		size_t len = gt_words_len(words, i);
		enum gt_number_kind kind = gt_cell_parse(&spec->notation, text, len, &v);
		out->present += out->count[i];
		if (kind == GT_CELL_NUMBER) {
			out->numbers += out->count[i];
			out->different++;
			continue;
		}
		/* a value such as 80+ or 12%, a code such as 007, a number in another notation, or more words than stand for a missing value */
		if (kind != GT_CELL_WORD || strpbrk(text, "0123456789") || gt_cell_almost(&spec->notation, text, len) ||
		    gt_cell_is_infinite(text, len) || out->nwords == GT_INIT_MISSING_WORDS || has_control(text))
			return false;
		out->word[out->nwords++] = i;
	}
	return out->different > GT_TABLE_FEW && 2 * out->numbers >= out->present;
}

/* Returns whether a column other than those of numbers has this word as a value: its cells would be missing, too. */
static bool is_value(const struct gt_data_table *t, const struct tally *tally, const char *text)
{
	for (int k = 0; k < t->ncolumns; k++)
		if (t->column[k].store == GT_STORE_WORDS && !tally[k].is_numeric &&
		    gt_words_find(&t->column[k].words, text, strlen(text)) >= 0)
			return true;
	return false;
}

static enum gt_code add_word(struct gt_init_missing *m, const char *text, struct gt_err *err)
{
	for (int i = 0; i < m->n; i++)
		if (!strcmp(m->word[i], text))
			return GT_OK;
	GT_NEW_STR(m->word[m->n], strdup(text), err);
	m->n++;
	return GT_OK;
}

static enum gt_code add_column(const struct gt_data_table *t, const struct tally *tally, int k, const struct gt_init_spec *init,
                               struct gt_init_missing *out, struct gt_err *err)
{
	const struct tally *c = &tally[k];
	char shown[2][GT_CELL_SHOWN], warning[400];
	for (int i = 0; c->is_numeric && i < c->nwords && out->n < GT_INIT_MISSING_MAX; i++) {
		const char *text = gt_words_text(&t->column[k].words, c->word[i]);
		if (is_value(t, tally, text))
			continue;
		GT_TRY(add_word(out, text, err));
		snprintf(warning, sizeof warning, "column \"%s\": %lld of %lld values are numbers, and %lld are \"%s\", which counts as missing "
		         "(na)", gt_cell_shown(t->column[k].name, shown[0]), (long long)c->numbers, (long long)c->present,
		         (long long)c->count[c->word[i]], gt_cell_shown(text, shown[1]));
		gt_init_warn(init, warning);
	}
	return GT_OK;
}

static enum gt_code tally_column(const struct gt_data_table *t, const struct gt_table_spec *spec, int k, struct tally *out,
                                 struct gt_err *err)
{
	const struct gt_table_column *c = &t->column[k];
	if (c->store != GT_STORE_WORDS || !c->words.n || gt_table_given_type(spec, c->name) == GT_COLUMN_TARGET)
		return GT_OK;
	GT_CALLOC(out->count, c->words.n, err);
	for (int64_t i = 0; i < t->n; i++)
		if (c->code[i] >= 0)
			out->count[c->code[i]]++;
	out->is_numeric = tally_words(t, spec, k, out);
	return GT_OK;
}

enum gt_code gt_init_find_missing(const struct gt_data_table *t, const struct gt_table_spec *spec, const struct gt_init_spec *init,
                                  struct gt_init_missing *out, struct gt_err *err)
{
	struct tally *tally;
	enum gt_code code = GT_OK;
	GT_CALLOC(tally, t->ncolumns, err);
	for (int k = 0; k < t->ncolumns && code == GT_OK; k++)
		code = tally_column(t, spec, k, &tally[k], err);
	for (int k = 0; k < t->ncolumns && code == GT_OK; k++)
		code = add_column(t, tally, k, init, out, err);
	for (int k = 0; k < t->ncolumns; k++)
		free(tally[k].count);
	free(tally);
	return code;
}

void gt_init_missing_free(struct gt_init_missing *m)
{
	for (int i = 0; i < m->n; i++)
		free(m->word[i]);
	m->n = 0;
}
