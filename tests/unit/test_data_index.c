/* Indices of data (datasets/data_index.h): what is loaded equals what was saved; no damaged file, and no file with impossible values but
 * correct hashes, is used. Whole runs with an index: tests/cli/test_data_index.sh. */
#include "data_index_parts.h"
#include "data_files.h"
#include "sample_mark.h"
#include <math.h>
#include <stdlib.h>

enum { ROWS = 60 };

static struct gt_dataset_spec spec;
static struct gt_data_index place;
static struct gt_index_content saved;
static const char *files[1];
static struct gt_err e;

static void make_table(void)
{
	static char path[1024];
	char text[ROWS * 80] = "x,colour,note,t\n", *to = text + strlen(text);
	static const char *const colour[] = {"red", "green", "blue"};
	for (int i = 0; i < ROWS; i++)
		to += sprintf(to, "%g,%s,\"%s thing%s number %d\",%d\n", i * .37, colour[i % 3], i % 4 ? "a" : "one", i % 5 ? "" : "\n", i, i % 2);
	put("table.csv", text, strlen(text), false);
	snprintf(path, sizeof path, "%s", at("table.csv"));
	files[0] = path;
}

/* Reads the table, divides it and fits facts, as a session does, and saves the index. */
static void save_index(void)
{
	static const char *const target[] = {"t"};
	static const struct gt_column_spec columns[] = {{"note", GT_COLUMN_TEXT, GT_DATE_AUTO}};
	if (saved.learned)
		return;
	setenv("XDG_CACHE_HOME", test_tmpdir(), 1);
	make_table();
	spec = (struct gt_dataset_spec){.format = "csv", .train = files, .ntrain = 1};
	spec.text = (struct gt_text_spec){.max_tokens = 8, .min_freq = 1, .max_vocab = 100, .ngrams = 1};
	spec.table = (struct gt_table_spec){.target = target, .ntarget = 1, .task = GT_TASK_CLASSES, .column = columns, .ncolumns = 1};
	const struct gt_fitting *by = gt_dataset_fitting(&spec);
	CHECK_OK(gt_dataset_read(&spec, GT_TRAIN, &saved.data, &e), e);
	for (int k = 0; k < 2; k++)
		saved.index[k] = malloc(ROWS * sizeof *saved.index[k]);
	for (int64_t i = 0; i < ROWS; i++)
		saved.index[i % 5 == 2][saved.count[i % 5 == 2]++] = i;
	CHECK_OK(gt_fitted_new(by, &saved.learned, &e), e);
	CHECK_OK(by->fit(&spec, &saved.data, saved.index[0], saved.count[0], saved.learned, &e), e);
	CHECK_OK(by->mark(saved.learned, &saved.data, &e), e);
	CHECK_OK(by->transform(&spec, saved.learned, &saved.data, &e), e);
	CHECK(gt_data_index_find(&spec, GT_TRAIN, "settings", &place));
	CHECK(!place.place.settled); /* the table was written a moment ago */
	CHECK(!gt_data_index_save(&place, &saved, true) && strstr(place.note, "a file was changed"));
	place.place.settled = true;
	CHECK_MSG(gt_data_index_save(&place, &saved, true), "%s", place.note);
}

/* Loads the index; frees what was loaded unless `out` is set. Returns whether the index was used. */
static bool load(struct gt_index_content *out)
{
	struct gt_index_content c;
	*place.note = 0;
	gt_data_index_load(&place, &spec, gt_dataset_fitting(&spec), NULL, &c);
	bool used = c.data.mapped != NULL;
	CHECK(used == (c.learned != NULL));
	CHECK(used || *place.note);
	if (out)
		*out = c;
	else
		gt_index_content_free(&c);
	return used;
}

TEST(loads_what_was_saved)
{
	struct gt_index_content c;
	save_index();
	CHECK(load(&c));
	const struct gt_dataset *a = &saved.data, *b = &c.data;
	CHECK(b->mapped && b->n == ROWS && b->nfields == a->nfields && b->nfields == 4 && b->classes == 2 && b->nclass_names == 2);
	CHECK(!strcmp(b->where + 5, files[0]));
	for (int i = 0; i < b->nfields; i++) {
		size_t n = a->field[i].ragged ? (size_t)a->field[i].start[ROWS] : ROWS * (size_t)(a->field[i].width ? a->field[i].width : 1);
		CHECK(gt_index_owns(b->mapped, b->field[i].data) && !strcmp(a->field[i].name, b->field[i].name));
		CHECK(!memcmp(a->field[i].data, b->field[i].data, n * 4));
		CHECK(!a->field[i].ragged || !memcmp(a->field[i].start, b->field[i].start, (ROWS + 1) * sizeof *a->field[i].start));
	}
	CHECK(!memcmp(a->labels, b->labels, ROWS * sizeof *a->labels) && !memcmp(a->mark, b->mark, ROWS * sizeof *a->mark));
	CHECK(!memcmp(&a->texts, &b->texts, sizeof a->texts));
	for (int k = 0; k < 2; k++)
		CHECK(c.count[k] == saved.count[k] && !memcmp(c.index[k], saved.index[k], (size_t)c.count[k] * sizeof *c.index[k]));
	for (int64_t i = 0; i < ROWS; i++) {
		char name[2][2000];
		CHECK(!strcmp(gt_dataset_sample_name(a, i, name[0], 2000), gt_dataset_sample_name(b, i, name[1], 2000)));
	}
	const struct gt_table_facts *f = &saved.learned->table, *g = &c.learned->table;
	CHECK_OK(saved.learned->by->compare(saved.learned, c.learned, "", "", &e), e);
	CHECK(f->nrows == g->nrows && f->ncolumns == g->ncolumns && c.learned->text.ids == saved.learned->text.ids);
	for (int k = 0; k < f->ncolumns; k++) {
		const struct gt_table_fact *x = &f->column[k], *y = &g->column[k];
		CHECK(x->missing == y->missing && x->given == y->given && x->inferred == y->inferred && !x->why == !y->why);
		CHECK(!x->why || !strcmp(x->why, y->why));
	}
	gt_index_content_free(&c);
}

TEST(other_settings_and_other_files_are_stale)
{
	save_index();
	struct gt_data_index other;
	CHECK(gt_data_index_find(&spec, GT_TRAIN, "other settings", &other) && strcmp(other.place.path, place.place.path) != 0);
	gt_data_index_close(&other);
	char *state = place.place.state, *settings = place.place.settings;
	place.place.settings = "another";
	CHECK(!load(NULL) && strstr(place.note, "another config"));
	place.place.settings = settings;
	char changed[4096];
	snprintf(changed, sizeof changed, "%s", state);
	changed[strlen(changed) - 2] ^= 1; /* the last digit of the time */
	place.place.state = changed;
	CHECK(!load(NULL) && strstr(place.note, "table.csv has changed since"));
	place.place.state = state;
	CHECK(load(NULL));
}

/* ---- damaged files ------------------------------------------------------------------------------------------------------------------ */
static uint8_t *file_bytes;
static long file_size;

static void write_file(const uint8_t *bytes, long n)
{
	unlink(place.place.path);
	FILE *f = fopen(place.place.path, "wb");
	CHECK(f && fwrite(bytes, 1, (size_t)n, f) == (size_t)n && !fclose(f));
	chmod(place.place.path, 0600);
}

static void read_file(void)
{
	FILE *f = fopen(place.place.path, "rb");
	CHECK(f && !fseek(f, 0, SEEK_END) && (file_size = ftell(f)) > 4096 && !fseek(f, 0, SEEK_SET));
	file_bytes = malloc((size_t)file_size + 1);
	CHECK(file_bytes && fread(file_bytes, 1, (size_t)file_size, f) == (size_t)file_size && !fclose(f));
}

TEST(no_damaged_file_is_used)
{
	save_index();
	read_file();
	const struct gt_index_header *h = (const struct gt_index_header *)(void *)file_bytes;
	for (uint32_t s = 0; s <= h->nsections; s++) { /* the header, then the sections */
		long from = s ? (long)h->section[s - 1].offset : 0, n = s ? (long)h->section[s - 1].bytes : 4096, step = n > 200 ? n / 200 : 1;
		for (long i = from; i < from + n; i += step) {
			file_bytes[i] ^= (uint8_t)(1u << i % 8);
			write_file(file_bytes, file_size);
			file_bytes[i] ^= (uint8_t)(1u << i % 8);
			CHECK_MSG(!load(NULL), "bit at byte %ld", i);
		}
	}
	for (long n = 0; n < file_size; n += n < 64 ? 1 : 509) {
		write_file(file_bytes, n);
		CHECK_MSG(!load(NULL), "%ld bytes", n);
	}
	file_bytes[file_size] = 0;
	write_file(file_bytes, file_size + 1);
	CHECK(!load(NULL) && strstr(place.note, "longer"));
	write_file(file_bytes, file_size);
	CHECK(load(NULL));
	free(file_bytes);
}

/* ---- files with correct hashes ------------------------------------------------------------------------------------------------------ */
/* Changes a section; returns its new size, 0: the section is left out. */
typedef uint64_t change_section(uint8_t *data, uint64_t bytes);

/* Writes the index again with a change of the section `tag`. */
static void forge(uint32_t tag, change_section *change)
{
	struct gt_index_writer w;
	struct gt_index *ix;
	char why[200];
	gt_index_open(place.place.path, &ix, why, sizeof why);
	CHECK_MSG(ix, "%s", why);
	CHECK_OK(gt_index_create(place.place.path, &w, &e), e);
	for (uint32_t t = 1; t < GT_IX_START + GT_MAX_FIELDS; t++) {
		uint64_t bytes;
		const void *data = gt_index_section(ix, t, &bytes);
		uint8_t *copy = data ? malloc(bytes + 64) : NULL;
		if (!copy)
			continue;
		memcpy(copy, data, bytes);
		if (t == tag)
			bytes = change(copy, bytes);
		CHECK_OK(gt_index_add(&w, t, copy, bytes, &e), e);
		free(copy);
	}
	gt_index_close(ix);
	CHECK_OK(gt_index_commit(&w, place.place.path, &e), e);
}

#define I32 ((int32_t *)(void *)d)
#define I64 ((int64_t *)(void *)d)
#define F32 ((float *)(void *)d)
#define SIZES ((struct gt_index_sizes *)(void *)d)
#define LAST(v) (n / sizeof *(v) - 1)
/* X(name, tag, statement): impossible values */
#define FORGERIES(X) \
	X(label_too_large, GT_IX_LABELS, I32[LAST(I32)] = 2) X(negative_label, GT_IX_LABELS, I32[3] = -1) \
	X(value_nan, GT_IX_FIELD, F32[7] = NAN) X(value_infinite, GT_IX_FIELD, F32[LAST(F32)] = -INFINITY) \
	X(code_too_large, GT_IX_FIELD + 1, I32[LAST(I32)] = 5) X(negative_code, GT_IX_FIELD + 1, I32[0] = INT32_MIN) \
	X(token_too_large, GT_IX_FIELD + 2, I32[4] = 1 << 20) X(negative_token, GT_IX_FIELD + 2, I32[LAST(I32)] = -1) \
	X(length_too_large, GT_IX_FIELD + 3, I32[9]++) X(negative_length, GT_IX_FIELD + 3, I32[LAST(I32)] = -1) \
	X(start_not_zero, GT_IX_START + 2, I64[0] = 1) X(start_falls, GT_IX_START + 2, I64[5] = I64[4] - 1) \
	X(start_negative, GT_IX_START + 2, I64[5] = INT64_MIN) X(last_start_beyond, GT_IX_START + 2, I64[LAST(I64)] = 1 << 20) \
	X(row_too_wide, GT_IX_START + 2, for (int i = 1; i < 20; i++) I64[i] = I64[20]) \
	X(sample_twice, GT_IX_PART, I64[1] = I64[0]) X(sample_beyond, GT_IX_PART, I64[LAST(I64)] = ROWS) \
	X(sample_negative, GT_IX_PART + 1, I64[0] = -1) X(samples_swapped, GT_IX_PART + 1, I64[0] = 7; I64[1] = 2) \
	X(sample_in_both, GT_IX_PART + 1, I64[0] = 3) \
	X(line_of_no_row, GT_IX_LINES, I64[0] = 1) X(line_row_beyond, GT_IX_LINES, I64[3] = ROWS) X(line_of_no_file, GT_IX_LINES, I64[2] = 1) \
	X(line_zero, GT_IX_LINES, I64[1] = 0) X(line_of_negative_file, GT_IX_LINES, I64[5] = -1) \
	X(no_samples, GT_IX_SIZES, SIZES->n = 0) X(more_samples, GT_IX_SIZES, SIZES->n++) X(negative_samples, GT_IX_SIZES, SIZES->n = -1) \
	X(very_many_samples, GT_IX_SIZES, SIZES->n = INT64_MAX / 2) X(other_part, GT_IX_SIZES, SIZES->part[0]--; SIZES->part[1]++) \
	X(negative_part, GT_IX_SIZES, SIZES->part[0] = -1) X(many_lines, GT_IX_SIZES, SIZES->lines = INT64_MAX / 3) \
	X(no_json, GT_IX_FACTS, d[0] = '[') X(other_type, GT_IX_FACTS, memcpy(strstr((char *)d, "\"target\""), "\"ignore\"", 8)) \
	X(no_report, GT_IX_FACTS, memcpy(strstr((char *)d, "\"report\""), "\"repost\"", 8)) \
	X(short_section, GT_IX_LABELS, n -= 4) X(no_labels, GT_IX_LABELS, n = 0) X(no_field, GT_IX_FIELD, n = 0) \
	X(no_starts, GT_IX_START + 2, n = 0) X(no_lengths, GT_IX_FIELD + 3, n = 0) X(no_part, GT_IX_PART + 1, n = 0) \
	X(no_lines, GT_IX_LINES, n = 0) X(no_facts, GT_IX_FACTS, n = 0) X(no_sizes, GT_IX_SIZES, n = 0) X(no_state, GT_IX_STATE, n = 0)
#define GT_X(name, tag, ...) static uint64_t name(uint8_t *d, uint64_t n) { d[n] = 0; __VA_ARGS__; return n; }
FORGERIES(GT_X)
#undef GT_X

TEST(no_impossible_value_is_used)
{
	static const struct {
		const char *name;
		uint32_t tag;
		change_section *change;
	} forgeries[] = {
#define GT_X(name, tag, ...) {#name, tag, name},
	    FORGERIES(GT_X)
#undef GT_X
	};
	save_index();
	read_file();
	for (size_t i = 0; i < sizeof forgeries / sizeof *forgeries; i++) {
		write_file(file_bytes, file_size);
		forge(forgeries[i].tag, forgeries[i].change);
		CHECK_MSG(!load(NULL), "%s", forgeries[i].name);
	}
	write_file(file_bytes, file_size);
	CHECK(load(NULL));
	free(file_bytes);
}

static uint32_t random_state = 7;
static uint32_t draw(void)
{
	random_state = random_state * 1664525u + 1013904223u;
	return random_state >> 8;
}

static uint64_t change_bytes(uint8_t *d, uint64_t n)
{
	for (uint32_t k = 1 + draw() % 3; k--;)
		d[draw() % n] = draw() % 2 ? (uint8_t)draw() : (uint8_t)(d[draw() % n] + 1);
	return draw() % 8 ? n : draw() % (n + 1);
}

/* Whatever is changed: the index is refused, or every value that is used as an offset is within its limits. */
TEST(any_change_is_refused_or_harmless)
{
	int used = 0;
	save_index();
	read_file();
	for (int i = 0; i < 3000; i++) {
		struct gt_index_content c;
		write_file(file_bytes, file_size);
		forge(3 + draw() % (GT_IX_START + 3), change_bytes);
		if (!load(&c))
			continue;
		used++;
		const struct gt_dataset *d = &c.data;
		for (int64_t k = 0; k < d->n; k++) {
			CHECK(d->labels[k] >= 0 && d->labels[k] < d->classes);
			char name[2000];
			gt_dataset_sample_name(d, k, name, sizeof name);
		}
		for (int f = 0; f < d->nfields; f++)
			for (int64_t k = 0; d->field[f].codes && k < (d->field[f].ragged ? d->field[f].start[d->n] : d->n); k++)
				CHECK(((int32_t *)d->field[f].data)[k] >= 0 && ((int32_t *)d->field[f].data)[k] < d->field[f].codes[0]);
		for (int64_t k = 0; k < c.count[0]; k++)
			CHECK(c.index[0][k] >= 0 && c.index[0][k] < d->n);
		gt_index_content_free(&c);
	}
	printf("# %d of 3000 changed indices were used\n", used);
	CHECK(used > 100); /* texts and values may change within their limits */
	write_file(file_bytes, file_size);
	free(file_bytes);
	gt_data_index_close(&place);
	gt_index_content_free(&saved);
}

RUN_TESTS()
