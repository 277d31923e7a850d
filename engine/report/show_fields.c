/* Describes targets and inputs of a batch in words: names of classes and columns, categories, tokens. */
#include "base/arena.h"
#include "fitted.h"
#include "report/show_parts.h"
#include "text/tokenizer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- targets --------------------------------------------------------------------------------------------------------------------- */
static enum gt_code add_share(struct gt_show_job *j, struct gt_shown_sample *out, int64_t class, double share, struct gt_err *err)
{
	const char *name = gt_session_class_name(j->s, class), *copy = NULL;
	if (name)
		GT_NEW_STR(copy, gt_arena_strdup(j->a, name), err);
	out->share[out->nshares++] = (struct gt_shown_share){class, copy, share};
	return GT_OK;
}

static int by_share(const void *a, const void *b)
{
	const struct gt_shown_share *x = a, *y = b;
	return x->share != y->share ? (x->share < y->share) - (x->share > y->share) : (x->class > y->class) - (x->class < y->class);
}

/* Adds each class whose share in the mixed target is not 0 to out->share, the largest share first. */
static enum gt_code add_shares(struct gt_show_job *j, const float *target, int64_t n, struct gt_shown_sample *out, struct gt_err *err)
{
	int64_t some = 0;
	for (int64_t k = 0; k < n; k++)
		some += target[k] != 0;
	GT_NEW(out->share, j->a, some + 1, err);
	for (int64_t k = 0; k < n; k++)
		if (target[k] != 0)
			GT_TRY(add_share(j, out, k, (double)target[k], err));
	qsort(out->share, (size_t)some, sizeof *out->share, by_share);
	return GT_OK;
}

static enum gt_code add_numbers(struct gt_show_job *j, const float *target, int64_t n, struct gt_shown_sample *out, struct gt_err *err)
{
	const struct gt_session_data *d = &j->s->data;
	GT_NEW(out->target, j->a, n, err);
	for (int64_t k = 0; k < n; k++) {
		struct gt_shown_value *v = &out->target[out->ntargets++];
		*v = (struct gt_shown_value){.value = (double)target[k]};
		if (j->spec->plain && k < d->nvalues)
			v->value = v->value * d->value_scale[k].std + d->value_scale[k].mean;
		GT_NEW_STR(v->name, k < d->nvalues ? gt_arena_strdup(j->a, d->value_name[k]) : gt_arena_printf(j->a, "target[%d]", (int)k), err);
	}
	return GT_OK;
}

/* Sets the target to class `label`, or to none if the label is ignored. */
static enum gt_code add_label(struct gt_show_job *j, int32_t label, struct gt_shown_sample *out, struct gt_err *err)
{
	GT_NEW(out->share, j->a, 1, err);
	return label < 0 ? GT_OK : add_share(j, out, label, 1, err);
}

enum gt_code gt_show_targets(struct gt_show_job *j, const struct gt_batch *b, int64_t i, struct gt_shown_sample *out, struct gt_err *err)
{
	const struct gt_session *s = j->s;
	const struct gt_dataset *d = j->data;
	bool mixed = gt_session_mixes(s) && !strcmp(j->out->split, "train");
	int64_t width = d->target.width ? d->target.width : mixed ? s->data.mixing.classes : 0;
	/* without a batch (--plain), targets come directly from the data */
	const float *target = b ? (const float *)b->target + i * width : width && d->target.width ? (float *)d->target.data + i * width : NULL;
	if (target && width)
		return s->conf->data.targets == GT_TARGETS_NUMBERS ? add_numbers(j, target, width, out, err)
		                                                   : add_shares(j, target, width, out, err);
	if (!d->labels && !b)
		return GT_OK;
	return add_label(j, b ? ((const int32_t *)b->target)[i] : d->labels[i], out, err);
}

/* ---- numbers and codes ----------------------------------------------------------------------------------------------------------- */
/* Sets the names of the values in the input "values" of a table: continuous columns and parts of dates, then columns NAME_na, which mark
 * missing values. */
static enum gt_code name_values(struct gt_show_job *j, const struct gt_table_facts *f, struct gt_err *err)
{
	if (j->value_name || !f->ncolumns)
		return GT_OK;
	GT_NEW(j->value_name, j->a, f->nvalues + 1, err);
	for (int k = 0; k < f->ncolumns; k++) {
		const struct gt_table_fact *c = &f->column[k];
		for (int p = 0; p < gt_table_values(c); p++)
			GT_NEW_STR(j->value_name[j->nvalue_names++],
			           gt_arena_printf(j->a, c->type == GT_COLUMN_DATE ? "%s.%s" : "%s", c->name, gt_date_part_names[p]), err);
	}
	for (int k = 0; k < f->ncolumns; k++)
		if (f->column[k].na && gt_table_values(&f->column[k]))
			GT_NEW_STR(j->value_name[j->nvalue_names++], gt_arena_printf(j->a, "%s_na", f->column[k].name), err);
	return GT_OK;
}

static enum gt_code add_values(struct gt_show_job *j, const struct gt_model_input *in, const float *v, struct gt_shown_sample *out,
                               struct gt_err *err)
{
	const struct gt_fitted *l = j->s->data.files->learned;
	if (l)
		GT_TRY(name_values(j, &l->table, err));
	for (int64_t k = 0; k < in->shape[0]; k++) {
		struct gt_shown_value *to = &out->value[out->nvalues++];
		to->value = (double)v[k];
		if (k < j->nvalue_names)
			to->name = j->value_name[k];
		else
			GT_NEW_STR(to->name, gt_arena_printf(j->a, "%s[%d]", in->name, (int)k), err);
	}
	return GT_OK;
}

/* Fills in the name of the k-th categorical column and the category that a code stands for. */
static enum gt_code describe_code(struct gt_show_job *j, const struct gt_table_facts *f, int k, int32_t code, struct gt_shown_value *to,
                                  struct gt_err *err)
{
	const struct gt_table_fact *c = &f->column[gt_table_code_column(f, k)];
	const char *text = code == GT_CODE_OF_MISSING ? "" : code == GT_CODE_OF_UNKNOWN ? "<unknown>"
	                                                   : gt_words_text(&c->words, code - GT_CODE_OF_WORDS);
	to->missing = code == GT_CODE_OF_MISSING;
	to->unknown = code == GT_CODE_OF_UNKNOWN;
	GT_NEW_STR(to->name, gt_arena_strdup(j->a, c->name), err);
	GT_NEW_STR(to->text, gt_arena_strdup(j->a, text), err);
	return GT_OK;
}

static enum gt_code add_codes(struct gt_show_job *j, const struct gt_model_input *in, const int32_t *v, struct gt_shown_sample *out,
                              struct gt_err *err)
{
	const struct gt_fitted *l = j->s->data.files->learned;
	int64_t n = in->shape[0] ? in->shape[0] : 1;
	for (int64_t k = 0; k < n; k++) {
		struct gt_shown_value *to = &out->value[out->nvalues++];
		to->value = v[k];
		if (l && l->table.ncodes == n && in->type == GT_INPUT_CODES)
			GT_TRY(describe_code(j, &l->table, (int)k, v[k], to, err));
		else
			GT_NEW_STR(to->name, in->shape[0] ? gt_arena_printf(j->a, "%s[%d]", in->name, (int)k) : gt_arena_strdup(j->a, in->name), err);
	}
	return GT_OK;
}

/* ---- tokens ---------------------------------------------------------------------------------------------------------------------- */
/* Returns the text of a token: a word, a byte or an n-gram, or the token's id if there is no vocabulary. */
static char *token_text(struct gt_show_job *j, const struct gt_tokenizer *t, int32_t id)
{
	size_t n;
	if (t && t->kind == GT_TOK_BYTES && id >= 1 && id <= 256)
		return gt_arena_printf(j->a, id - 1 > ' ' && id - 1 < 127 ? "%c" : "<%02x>", id - 1);
	if (t && t->vocab && id < t->size) {
		const char *word = gt_vocab_token(t->vocab, id, &n);
		return gt_arena_printf(j->a, "%.*s", (int)n, word);
	}
	return t ? gt_arena_printf(j->a, "<n-gram %d>", (int)(id - t->size)) : gt_arena_printf(j->a, "<%d>", (int)id);
}

static enum gt_code add_tokens(struct gt_show_job *j, const int32_t *v, int64_t n, struct gt_shown_sample *out, struct gt_err *err)
{
	const struct gt_fitted *l = j->s->data.files->learned;
	struct gt_tokenizer t;
	bool known = l && l->text.ids;
	if (known)
		GT_TRY(gt_tokenizer_init(&t, (enum gt_tokenizer_kind)j->s->conf->data.text.tokenizer, l->text.vocab, err));
	GT_NEW(out->token, j->a, n + 1, err);
	for (int64_t k = 0; k < n; k++) {
		struct gt_shown_token *to = &out->token[out->ntokens++];
		to->unknown = known && v[k] == t.unk;
		out->nunknown += to->unknown;
		GT_NEW_STR(to->text, token_text(j, known ? &t : NULL, v[k]), err);
	}
	return GT_OK;
}

/* Returns the number of tokens of a sample, without padding. most: length of the sequences in the batch. */
static int64_t count_tokens(const struct gt_show_job *j, const char *name, int64_t sample, int64_t most)
{
	for (int i = 0; i < j->data->nfields; i++) {
		const struct gt_field *f = &j->data->field[i];
		if (f->start && !strcmp(f->name, name) && f->start[sample + 1] - f->start[sample] < most)
			return f->start[sample + 1] - f->start[sample];
	}
	return most;
}

/* ---- inputs ---------------------------------------------------------------------------------------------------------------------- */
/* The input "lengths" is not shown: it has only the number of tokens of each text. */
enum gt_code gt_show_inputs(struct gt_show_job *j, const struct gt_batch *b, int64_t i, struct gt_shown_sample *out, struct gt_err *err)
{
	const struct gt_model_spec *m = &j->s->conf->model;
	int64_t n = 0;
	for (int k = 0; k < m->ninputs; k++)
		n += j->s->data.input[k].shape[0] + 1;
	GT_NEW(out->value, j->a, n + 1, err);
	for (int k = 0; k < m->ninputs; k++) {
		const struct gt_model_input *in = &j->s->data.input[k];
		int64_t width = in->shape[0] ? in->shape[0] : 1;
		if (in->type == GT_INPUT_VALUES)
			GT_TRY(add_values(j, in, (const float *)b->input[k] + i * width, out, err));
		else if (in->type == GT_INPUT_TOKENS)
			GT_TRY(add_tokens(j, (const int32_t *)b->input[k] + i * b->length, count_tokens(j, in->name, out->index, b->length), out, err));
		else if (in->type == GT_INPUT_CODES)
			GT_TRY(add_codes(j, in, (const int32_t *)b->input[k] + i * width, out, err));
	}
	return GT_OK;
}

const char *gt_shown_caption(const struct gt_shown_sample *s, int line, char *buf, size_t size)
{
	bool mixed = s->nshares == 2 && s->share[0].share < 1, several = s->nshares > 1 && !mixed;
	char number[32];
	size_t n = 0;
	*buf = 0;
	if (s->skipped || (!s->nshares && !s->ntargets)) {
		snprintf(buf, size, "%s", line ? "" : s->skipped ? "(not readable)" : "(no label)");
		return buf;
	}
	for (int i = 0; i < s->ntargets && !line && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s %.4g", i ? ", " : "", s->target[i].name, s->target[i].value);
	for (int i = several ? 0 : line; i < s->nshares && (several ? !line : i == line) && n < size; i++) {
		const struct gt_shown_share *c = &s->share[i];
		const char *name = c->name;
		if (!name) {
			snprintf(number, sizeof number, "class %lld", (long long)c->class);
			name = number;
		}
		n += (size_t)(c->share == 1 ? snprintf(buf + n, size - n, "%s%s", n ? ", " : "", name)
		                            : snprintf(buf + n, size - n, "%s%s %.2f", n ? ", " : line ? "+ " : "", name, c->share));
	}
	return buf;
}
