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
};

/* A word of a config has no control characters. */
static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((uint8_t)*text < 0x20 || *text == 0x7f)
			return true;
	return false;
}

/* Counts the values of a column; count: values of each of its words. Returns whether the column may be one of numbers. */
static bool tally_words(const struct gt_data_table *t, const struct gt_table_spec *spec, int k, const int64_t *count, struct tally *out)
{
	const struct gt_words *words = &t->column[k].words;
	*out = (struct tally){0};
	for (int32_t i = 0; i < words->n; i++) {
		double v;
		const char *text = gt_words_text(words, i);
		size_t len = gt_words_len(words, i);
		enum gt_number_kind kind = gt_cell_parse(&spec->notation, text, len, &v);
		out->present += count[i];
		if (kind == GT_CELL_NUMBER) {
			out->numbers += count[i];
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

static bool is_target_word(const struct gt_data_table *t, const struct gt_table_spec *spec, const char *text)
{
	for (int k = 0; k < t->ncolumns; k++)
		if (t->column[k].store == GT_STORE_WORDS && gt_table_given_type(spec, t->column[k].name) == GT_COLUMN_TARGET &&
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

static enum gt_code add_column(const struct gt_data_table *t, const struct gt_table_spec *spec, int k, const int64_t *count,
                               const struct gt_init_spec *init, struct gt_init_missing *out, struct gt_err *err)
{
	struct tally tally;
	char shown[2][GT_CELL_SHOWN], warning[400];
	if (!tally_words(t, spec, k, count, &tally))
		return GT_OK;
	for (int i = 0; i < tally.nwords && out->n < GT_INIT_MISSING_MAX; i++) {
		const char *text = gt_words_text(&t->column[k].words, tally.word[i]);
		if (is_target_word(t, spec, text))
			continue;
		GT_TRY(add_word(out, text, err));
		snprintf(warning, sizeof warning, "column \"%s\": %lld of %lld values are numbers, and %lld are \"%s\", which counts as missing "
		         "(na)", gt_cell_shown(t->column[k].name, shown[0]), (long long)tally.numbers, (long long)tally.present,
		         (long long)count[tally.word[i]], gt_cell_shown(text, shown[1]));
		gt_init_warn(init, warning);
	}
	return GT_OK;
}

enum gt_code gt_init_find_missing(const struct gt_data_table *t, const struct gt_table_spec *spec, const struct gt_init_spec *init,
                                  struct gt_init_missing *out, struct gt_err *err)
{
	for (int k = 0; k < t->ncolumns; k++) {
		const struct gt_table_column *c = &t->column[k];
		int64_t *count = NULL;
		if (c->store != GT_STORE_WORDS || !c->words.n || gt_table_given_type(spec, c->name) == GT_COLUMN_TARGET)
			continue;
		GT_CALLOC(count, c->words.n, err);
		for (int64_t i = 0; i < t->n; i++)
			if (c->code[i] >= 0)
				count[c->code[i]]++;
		enum gt_code code = add_column(t, spec, k, count, init, out, err);
		free(count);
		GT_TRY(code);
	}
	return GT_OK;
}

void gt_init_missing_free(struct gt_init_missing *m)
{
	for (int i = 0; i < m->n; i++)
		free(m->word[i]);
	m->n = 0;
}
