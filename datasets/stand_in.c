#include "stand_in.h"
#include "base/fileio.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define WORDS 60    /* number of different words in the generated texts */
#define SHORTEST 3  /* minimum number of words of a generated text */
#define LONGEST 60
#define CATEGORIES 4

/* ---- random numbers and words ---------------------------------------------------------------------------------------------------- */
struct made_up {
	FILE *f;
	uint64_t state;
};

/* Returns a random integer from 0 to n - 1 (Knuth's linear congruential generator; only its upper bits are used). */
static int draw_below(struct made_up *m, int n)
{
	m->state = m->state * 6364136223846793005u + 1442695040888963407u;
	return (int)((m->state >> 33) % (uint64_t)n);
}

/* Writes word i: two syllables of a consonant and a vowel. */
static void put_word(FILE *f, int i)
{
	static const char consonant[] = "bdfgklmnprst", vowel[] = "aeiou";
	fprintf(f, "%c%c%c%c", consonant[i % 12], vowel[i % 5], consonant[i / 5 % 12], vowel[i / 12 % 5]);
}

static void put_text(struct made_up *m, int longest)
{
	int n = SHORTEST + draw_below(m, longest - SHORTEST + 1);
	for (int i = 0; i < n; i++) {
		if (i)
			fputc(' ', m->f);
		put_word(m->f, draw_below(m, WORDS));
	}
}

/* ---- files ----------------------------------------------------------------------------------------------------------------------- */
static enum gt_code open_file(const char *path, FILE **f, struct gt_err *err)
{
	*f = fopen(path, "wxe");
	return *f ? GT_OK : gt_fail_errno(err, GT_ECANTCREAT, errno, "%s: cannot create", path);
}

static enum gt_code close_file(FILE *f, const char *path, struct gt_err *err)
{
	bool bad = ferror(f);
	int why = errno;
	if (fclose(f) && !bad) {
		bad = true;
		why = errno;
	}
	return bad ? gt_fail_errno(err, GT_EIO, why, "%s: cannot write", path) : GT_OK;
}

/* ---- tables ---------------------------------------------------------------------------------------------------------------------- */
static bool is_listed(const struct gt_table_spec *s, const char *name)
{
	for (int i = 0; i < s->ncolumns; i++)
		if (!strcmp(s->column[i].name, name))
			return true;
	return false;
}

/* Writes a field between quotes. */
static void put_quoted(FILE *f, const char *s)
{
	fputc('"', f);
	for (; *s; s++)
		fputs(*s == '"' ? "\"\"" : (char[]){*s, 0}, f);
	fputc('"', f);
}

/* Writes a date whose order of day and month is unambiguous. */
static void put_date(struct made_up *m, enum gt_date_order order)
{
	int year = 2000 + draw_below(m, 24), month = 1 + draw_below(m, 12), day = 13 + draw_below(m, 16);
	if (order == GT_DATE_DMY)
		fprintf(m->f, "%02d.%02d.%d", day, month, year);
	else if (order == GT_DATE_MDY)
		fprintf(m->f, "%02d/%02d/%d", month, day, year);
	else
		fprintf(m->f, "%d-%02d-%02d", year, month, day);
}

/* Writes the value of a column, or its name if row is negative. */
static void put_field(struct made_up *m, const struct gt_table_spec *s, const char *name, enum gt_stand_in_target target, int64_t classes,
                      int64_t row)
{
	enum gt_column_type type = gt_table_given_type(s, name);
	if (row < 0)
		put_quoted(m->f, name);
	else if (type == GT_COLUMN_TARGET && target == GT_STAND_IN_WORDS)
		fprintf(m->f, "class%d", (int)(row % classes));
	else if (type == GT_COLUMN_TARGET && target == GT_STAND_IN_BITS)
		fprintf(m->f, "%d", draw_below(m, 2));
	else if (type == GT_COLUMN_CATEGORICAL)
		put_word(m->f, (int)(row % CATEGORIES));
	else if (type == GT_COLUMN_DATE)
		put_date(m, gt_table_given_order(s, name));
	else if (type == GT_COLUMN_TEXT)
		put_text(m, LONGEST);
	else
		fprintf(m->f, "%d", draw_below(m, 1000));
}

static void put_row(struct made_up *m, const struct gt_table_spec *s, enum gt_stand_in_target target, int64_t classes, int64_t row)
{
	const char *lead = "", separator[2] = {s->delimiter ? s->delimiter : ',', 0};
	for (int i = 0; i < s->ncolumns; i++, lead = separator) {
		fputs(lead, m->f);
		put_field(m, s, s->column[i].name, target, classes, row);
	}
	for (int i = 0; i < s->ntarget; i++)
		if (!is_listed(s, s->target[i]) && gt_table_given_type(s, s->target[i]) == GT_COLUMN_TARGET) {
			fputs(lead, m->f);
			put_field(m, s, s->target[i], target, classes, row);
			lead = separator;
		}
	fputc('\n', m->f);
}

enum gt_code gt_stand_in_table(const char *path, const struct gt_table_spec *spec, enum gt_stand_in_target target, int64_t classes,
                               int64_t n, struct gt_err *err)
{
	struct made_up m = {.state = 1};
	GT_TRY(open_file(path, &m.f, err));
	if (spec->header != GT_HEADER_NO)
		put_row(&m, spec, target, classes, -1);
	for (int64_t i = 0; i < n && !ferror(m.f); i++)
		put_row(&m, spec, target, classes, i);
	return close_file(m.f, path, err);
}

/* ---- texts ----------------------------------------------------------------------------------------------------------------------- */
enum gt_code gt_stand_in_texts(const char *dir, int64_t classes, int64_t n, struct gt_err *err)
{
	struct made_up m = {.state = 2};
	char folder[GT_PATH_SIZE], path[GT_PATH_SIZE], name[64];
	for (int64_t c = 0; c < classes; c++) {
		snprintf(name, sizeof name, "class%lld", (long long)c);
		GT_TRY(gt_path_join(folder, dir, name, err));
		GT_TRY(gt_dir_make(folder, NULL, err));
	}
	for (int64_t i = 0; i < n; i++) {
		snprintf(name, sizeof name, "class%lld/%lld.txt", (long long)(i % classes), (long long)i);
		GT_TRY(gt_path_join(path, dir, name, err));
		GT_TRY(open_file(path, &m.f, err));
		put_text(&m, LONGEST);
		GT_TRY(close_file(m.f, path, err));
	}
	return GT_OK;
}

enum gt_code gt_stand_in_vocab(const char *path, struct gt_err *err)
{
	FILE *f;
	GT_TRY(open_file(path, &f, err));
	fputs("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", f);
	for (int i = 0; i < WORDS; i++) {
		put_word(f, i);
		fputc('\n', f);
	}
	return close_file(f, path, err);
}
