#include "table/table_marks.h"
#include "base/arena.h"
#include "sample_mark.h"
#include "table/cell.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_MAX = 63 }; /* maximum bytes of a text that may be a number */

static uint64_t hash_number(double v, uint64_t seed)
{
	v += 0.0; /* -0 is 0 */
	return gt_mark_hash(&v, sizeof v, seed + 1);
}

/* Returns the hash of a cell. The text need not end with a NUL. */
static uint64_t hash_text(const struct gt_notation *notation, const char *text, size_t n, uint64_t seed)
{
	char copy[NUMBER_MAX + 1];
	double v;
	if (n && n <= NUMBER_MAX) {
		memcpy(copy, text, n);
		copy[n] = 0;
		enum gt_cell kind = gt_cell_parse(notation, copy, n, &v);
		if (kind == GT_CELL_NUMBER || kind == GT_CELL_CODE)
			return hash_number(v, seed);
	}
	return gt_mark_hash(text, n, seed);
}

static enum gt_code add_words(const struct gt_data_table *t, const struct gt_table_column *c, int64_t n, uint64_t seed, uint64_t *out,
                              struct gt_err *err)
{
	uint64_t *word = malloc(((size_t)c->words.n + 1) * sizeof *word);
	if (!word)
		return gt_fail_memory(err, ((size_t)c->words.n + 1) * sizeof *word);
	for (int32_t i = 0; i < c->words.n; i++)
		word[i] = hash_text(&t->notation, gt_words_text(&c->words, i), gt_words_len(&c->words, i), seed);
	for (int64_t i = 0; i < n; i++)
		out[i] += c->code[i] >= 0 ? word[c->code[i]] : c->code[i] == GT_CODE_OTHER ? seed + 2 : 0;
	free(word);
	return GT_OK;
}

enum gt_code gt_table_marks(const struct gt_data_table *t, const struct gt_table_facts *facts, uint64_t *out, struct gt_err *err)
{
	memset(out, 0, (size_t)t->n * sizeof *out);
	for (int k = 0; k < t->ncolumns; k++) {
		const struct gt_table_column *c = &t->column[k];
		/* the sum of the hashes of cells is that of the row: a column counts by its name, so that the order of columns does not matter */
		uint64_t seed = gt_mark_hash(c->name, strlen(c->name), 0);
		if (c->store == GT_STORE_SKIP || k >= facts->ncolumns || facts->column[k].type == GT_COLUMN_IGNORE)
			continue;
		if (c->store == GT_STORE_WORDS)
			GT_TRY(add_words(t, c, t->n, seed, out, err));
		for (int64_t i = 0; i < t->n && c->store == GT_STORE_NUMBERS; i++)
			out[i] += isnan(c->number[i]) ? 0 : hash_number(c->number[i], seed);
		for (int64_t i = 0; i < t->n && c->store == GT_STORE_TEXT; i++) {
			size_t n;
			const char *text = gt_texts_get(&c->text, i, &n);
			out[i] += n ? hash_text(&t->notation, text, n, seed) : 0;
		}
	}
	for (int64_t i = 0; i < t->n; i++)
		out[i] = gt_mark_hash(&out[i], sizeof out[i], 0);
	return GT_OK;
}
