/* Converts the rows of a table with fitted facts, column by column, and hashes the row contents that the facts use. */
#include "base/arena.h"
#include "sample_mark.h"
#include "table/parse_cell.h"
#include "table/table_facts.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the numbers of column k to out[0], out[stride], …, normalised or unchanged. A missing number becomes the median, and its element
 * of na (if not NULL) 1; a missing target is an error. v: memory for a column. */
static enum gt_code put_numbers(const struct gt_data_table *t, int k, const struct gt_table_fact *f, double *v, bool normalize, float *out,
                                float *na, int64_t stride, struct gt_err *err)
{
	double mean = normalize ? f->mean : 0, scale = normalize && f->std > 0 ? f->std : 1;
	GT_TRY(gt_table_numbers(t, k, NULL, t->n, v, err));
	for (int64_t i = 0; i < t->n; i++) {
		bool missing = isnan(v[i]);
		if (missing && f->type == GT_COLUMN_TARGET)
			return gt_table_fail(t, k, i, GT_TARGET_MISSING, err);
		float x = (float)(((missing ? f->median : v[i]) - mean) / scale);
		if (!isfinite(x))
			return gt_table_fail(t, k, i, "after normalisation, the number exceeds the range of a 32-bit float", err);
		out[i * stride] = x;
		if (na)
			na[i * stride] = missing;
	}
	return GT_OK;
}

/* Writes the parts of the dates of column k to out[0 ... GT_DATE_PARTS - 1], out[stride ...], …, and 1 to na for missing dates. */
static enum gt_code put_dates(const struct gt_data_table *t, int k, const struct gt_table_fact *f, float *out, float *na, int64_t stride,
                              struct gt_err *err)
{
	for (int64_t i = 0; i < t->n; i++) {
		double seconds, part[GT_DATE_PARTS];
		size_t len;
		const char *text = gt_table_text(t, k, i, &len);
		if (len && !gt_date_parse(text, len, f->order, &seconds))
			return gt_table_fail(t, k, i, "expected a date whose day, month and year have the same order as in the other dates", err);
		if (len)
			gt_date_parts(seconds, part);
		for (int p = 0; p < GT_DATE_PARTS; p++) {
			const struct gt_date_fact *d = &f->part[p];
			out[i * stride + p] = (float)(((len ? part[p] : d->median) - d->mean) / (d->std > 0 ? d->std : 1));
		}
		if (na)
			na[i * stride] = !len;
	}
	return GT_OK;
}

/* Returns the index of the word with a numeric value; -1: no such word. */
static int32_t find_number_code(const struct gt_table_fact *f, double v)
{
	char buf[32];
	if (!f->whole || !gt_cell_is_whole(v))
		return -1;
	return gt_words_find(&f->words, buf, (size_t)snprintf(buf, sizeof buf, "%lld", (long long)v));
}

/* Writes `first` plus the word index of each row of column k to out[0], out[stride], …. Missing values and words that the facts lack get
 * the codes `missing` and `unknown`; if these are negative, they are errors. */
static enum gt_code put_codes(const struct gt_data_table *t, int k, const struct gt_table_fact *f, int32_t first, int32_t missing,
                              int32_t unknown, int32_t *out, int64_t stride, struct gt_err *err)
{
	const struct gt_table_column *c = &t->column[k];
	int32_t *map, last = -1;
	double last_number = NAN;
	enum gt_code code = GT_OK;
	GT_CALLOC(map, c->words.n, err);
	for (int32_t i = 0; i < c->words.n; i++)
		map[i] = gt_table_lookup(f, &t->notation, gt_words_text(&c->words, i), gt_words_len(&c->words, i));
	for (int64_t i = 0; i < t->n && code == GT_OK; i++) {
		bool absent;
		int32_t at = -1;
		if (c->store == GT_STORE_WORDS) {
			absent = c->code[i] == GT_CODE_MISSING;
			at = c->code[i] >= 0 ? map[c->code[i]] : -1;
		} else {
			absent = isnan(c->number[i]);
			if (!absent && c->number[i] != last_number) {
				last = find_number_code(f, c->number[i]);
				last_number = c->number[i];
			}
			at = absent ? -1 : last;
		}
		int32_t result = at >= 0 ? at + first : absent ? missing : unknown;
		if (result < 0)
			code = gt_table_fail(t, k, i, absent ? GT_TARGET_MISSING : "the training split does not have this class", err);
		out[i * stride] = result;
	}
	free(map);
	return code;
}

enum gt_code gt_table_transform(const struct gt_data_table *t, const struct gt_table_facts *f, const struct gt_table_fields *out,
                            struct gt_err *err)
{
	int value = 0, na = 0, codes = 0, target = 0;
	double *v;
	GT_SPILL_NEW(t->spill, v, t->n, err);
	for (int k = 0; k < f->ncolumns; k++)
		na += gt_table_values(&f->column[k]);
	enum gt_code code = GT_OK;
	for (int k = 0; k < f->ncolumns && code == GT_OK; k++) {
		const struct gt_table_fact *c = &f->column[k];
		if (c->type == GT_COLUMN_CONTINUOUS) {
			if (out->values)
				code = put_numbers(t, k, c, v, true, out->values + value, c->na ? out->values + na : NULL, f->nvalues, err);
			value++;
			na += c->na;
		} else if (c->type == GT_COLUMN_DATE) {
			if (out->values)
				code = put_dates(t, k, c, out->values + value, c->na ? out->values + na : NULL, f->nvalues, err);
			value += GT_DATE_PARTS;
			na += c->na;
		} else if (c->type == GT_COLUMN_CATEGORICAL) {
			if (out->codes)
				code = put_codes(t, k, c, GT_CODE_OF_WORDS, GT_CODE_OF_MISSING, GT_CODE_OF_UNKNOWN, out->codes + codes, f->ncodes, err);
			codes++;
		} else if (c->type == GT_COLUMN_TARGET) {
			if (f->task == GT_TASK_CLASSES && out->labels)
				code = put_codes(t, k, c, 0, -1, -1, out->labels, 1, err);
			else if (f->task == GT_TASK_NUMBERS && out->targets)
				code = put_numbers(t, k, c, v, out->normalize, out->targets + target, NULL, f->ntargets, err);
			target++;
		}
	}
	gt_spill_free(t->spill, v);
	return code;
}

/* ---- texts ----------------------------------------------------------------------------------------------------------------------- */
/* Returns the index of the only text column, if it is stored as texts; -1: the texts must be joined, or copied from a set of words. */
static int find_whole_text_column(const struct gt_data_table *t, const struct gt_table_facts *f)
{
	for (int k = 0; k < f->ncolumns && f->ntexts == 1; k++)
		if (f->column[k].type == GT_COLUMN_TEXT)
			return t->column[k].store == GT_STORE_TEXT ? k : -1;
	return -1;
}

uint64_t gt_table_texts_bytes(const struct gt_data_table *t, const struct gt_table_facts *f)
{
	uint64_t bytes = (uint64_t)t->n * sizeof(int64_t) + 1;
	size_t len;
	if (!f->ntexts || find_whole_text_column(t, f) >= 0)
		return 0;
	for (int k = 0; k < f->ncolumns; k++)
		for (int64_t i = 0; i < t->n && f->column[k].type == GT_COLUMN_TEXT; i++) {
			gt_table_text(t, k, i, &len);
			bytes += len + 1;
		}
	return bytes;
}

static enum gt_code join_row_texts(const struct gt_data_table *t, const struct gt_table_facts *f, int64_t row, struct gt_texts *to,
                                   struct gt_err *err)
{
	bool any = false;
	GT_TRY(gt_texts_add(to, "", 0, err));
	for (int k = 0; k < f->ncolumns; k++) {
		size_t len = 0;
		const char *text = f->column[k].type == GT_COLUMN_TEXT ? gt_table_text(t, k, row, &len) : "";
		if (!len)
			continue;
		if (any)
			GT_TRY(gt_texts_append(to, "\n", 1, err));
		GT_TRY(gt_texts_append(to, text, len, err));
		any = true;
	}
	return GT_OK;
}

enum gt_code gt_table_texts(const struct gt_data_table *t, const struct gt_table_facts *f, struct gt_texts *own,
                            const struct gt_texts **out, struct gt_err *err)
{
	int k = find_whole_text_column(t, f);
	*own = (struct gt_texts){.spill = t->spill};
	*out = k < 0 ? own : &t->column[k].text;
	if (k >= 0)
		return GT_OK;
	uint64_t bytes = gt_table_texts_bytes(t, f), ends = (uint64_t)t->n * sizeof *own->end;
	GT_TRY(gt_texts_reserve(own, t->n, bytes > ends ? (int64_t)(bytes - ends) : 0, err));
	for (int64_t i = 0; i < t->n; i++)
		GT_TRY(join_row_texts(t, f, i, own, err));
	return GT_OK;
}

/* ---- marks ----------------------------------------------------------------------------------------------------------------------- */
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
		enum gt_number_kind kind = gt_cell_parse(notation, copy, n, &v);
		if (kind == GT_CELL_NUMBER || kind == GT_CELL_CODE)
			return hash_number(v, seed);
	}
	return gt_mark_hash(text, n, seed);
}

static enum gt_code add_words(const struct gt_data_table *t, const struct gt_table_column *c, uint64_t seed, struct gt_sample_mark *mark,
                              struct gt_err *err)
{
	uint64_t *word;
	GT_CALLOC(word, c->words.n, err);
	for (int32_t i = 0; i < c->words.n; i++)
		word[i] = hash_text(&t->notation, gt_words_text(&c->words, i), gt_words_len(&c->words, i), seed);
	for (int64_t i = 0; i < t->n; i++)
		mark[i].content += c->code[i] >= 0 ? word[c->code[i]] : c->code[i] == GT_CODE_OTHER ? seed + 2 : 0;
	free(word);
	return GT_OK;
}

enum gt_code gt_table_marks(const struct gt_data_table *t, const struct gt_table_facts *facts, struct gt_sample_mark *mark,
                            struct gt_err *err)
{
	for (int64_t i = 0; i < t->n; i++)
		mark[i].content = 0;
	for (int k = 0; k < t->ncolumns; k++) {
		const struct gt_table_column *c = &t->column[k];
		/* the row's hash is the sum of its cells' hashes, seeded by column names, so that the order of columns does not matter */
		uint64_t seed = gt_mark_hash(c->name, strlen(c->name), 0);
		if (c->store == GT_STORE_SKIP || k >= facts->ncolumns || facts->column[k].type == GT_COLUMN_IGNORE)
			continue;
		if (c->store == GT_STORE_WORDS)
			GT_TRY(add_words(t, c, seed, mark, err));
		for (int64_t i = 0; i < t->n && c->store == GT_STORE_NUMBERS; i++)
			mark[i].content += isnan(c->number[i]) ? 0 : hash_number(c->number[i], seed);
		for (int64_t i = 0; i < t->n && c->store == GT_STORE_TEXT; i++) {
			size_t n;
			const char *text = gt_texts_get(&c->text, i, &n);
			mark[i].content += n ? hash_text(&t->notation, text, n, seed) : 0;
		}
	}
	for (int64_t i = 0; i < t->n; i++)
		mark[i].content = gt_mark_hash(&mark[i].content, sizeof mark[i].content, 0);
	return GT_OK;
}
