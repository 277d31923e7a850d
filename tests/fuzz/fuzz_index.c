/* libFuzzer target: index files (make fuzz F=index). The first byte of the input selects what is changed; all hashes are correct
 * afterwards, because a damaged file is refused before its content is read:
 *
 *     0  the index of a table of 60 rows with numbers, categories and texts. Edits follow: section, how, position (2 bytes), and
 *        how % 8 bytes that replace those at the position. how / 8: 0 nothing else, 1 the section ends at the position, 2 it is left out.
 *     1  the index of image contents: settings other than those of the folder if the second byte is odd, then the entries
 *     2  the header of the index of the table: position (2 bytes), and the bytes that replace those at the position
 *
 * What is accepted must be usable: labels, codes, tokens and samples are within their limits, and each sample has a name. */
#include "base/fileio.h"
#include "content_index.h"
#include "data_index_parts.h"
#include "fuzz_file.h"
#include "sample_mark.h"
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

enum { INDEX_ROWS = 60, SECTION_MAX = 16384 };

struct fixture {
	char dir[64];
	struct gt_dataset_spec spec;
	struct gt_data_index place;
	struct { uint32_t tag; uint64_t bytes; uint8_t *data; } section[GT_INDEX_SECTIONS];
	int nsections;
	uint8_t *file; /* [bytes] the index as it was written */
	uint64_t bytes;
};

static struct fixture *index_fixture;
static struct gt_err index_err;

static void remove_fixture(void)
{
	gt_tree_remove(index_fixture->dir, NULL);
}

static void write_index_file(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "wb");
	FUZZ_ASSERT(f && fwrite(data, 1, n, f) == n && !fclose(f) && !chmod(path, 0600));
}

/* Reads the table, divides it and fits facts, as a session does, and saves the index. */
static void save_table(struct fixture *x)
{
	struct gt_index_content c = {0};
	const struct gt_fitting *by = gt_dataset_fitting(&x->spec);
	FUZZ_ASSERT(gt_dataset_read(&x->spec, GT_TRAIN, &c.data, &index_err) == GT_OK);
	for (int k = 0; k < 2; k++)
		FUZZ_ASSERT((c.index[k] = malloc(INDEX_ROWS * sizeof *c.index[k])));
	for (int64_t i = 0; i < INDEX_ROWS; i++)
		c.index[i % 5 == 2][c.count[i % 5 == 2]++] = i;
	FUZZ_ASSERT(gt_fitted_new(by, &c.learned, &index_err) == GT_OK);
	FUZZ_ASSERT(by->fit(&x->spec, &c.data, c.index[0], c.count[0], c.learned, &index_err) == GT_OK);
	FUZZ_ASSERT(by->mark(c.learned, &c.data, &index_err) == GT_OK);
	FUZZ_ASSERT(by->transform(&x->spec, c.learned, &c.data, &index_err) == GT_OK);
	FUZZ_ASSERT(gt_data_index_find(&x->spec, GT_TRAIN, "settings", &x->place));
	x->place.place.settled = true;
	FUZZ_ASSERT(gt_data_index_save(&x->place, &c, true));
	gt_index_content_free(&c);
}

static void make_fixture(void)
{
	static const char *const colour[] = {"red", "green", "blue"}, *const target[] = {"t"};
	static const struct gt_column_spec columns[] = {{"note", GT_COLUMN_TEXT, GT_DATE_AUTO}};
	static struct fixture x;
	static char table[128];
	static const char *files[] = {table};
	char text[INDEX_ROWS * 80] = "x,colour,note,t\n", *to = text + strlen(text), why[200];
	struct gt_index *ix;
	index_fixture = &x;
	snprintf(x.dir, sizeof x.dir, "/tmp/fuzz-index-XXXXXX");
	FUZZ_ASSERT(mkdtemp(x.dir) && !setenv("XDG_CACHE_HOME", x.dir, 1) && !atexit(remove_fixture));
	for (int i = 0; i < INDEX_ROWS; i++)
		to += sprintf(to, "%g,%s,\"%s thing%s number %d\",%d\n", i * .37, colour[i % 3], i % 4 ? "a" : "one", i % 5 ? "" : "\n", i, i % 2);
	snprintf(table, sizeof table, "%s/table.csv", x.dir);
	write_index_file(table, text, strlen(text));
	x.spec = (struct gt_dataset_spec){.format = "csv", .train = files, .ntrain = 1};
	x.spec.text = (struct gt_text_spec){.max_tokens = 8, .min_freq = 1, .max_vocab = 100, .ngrams = 1};
	x.spec.table = (struct gt_table_spec){.target = target, .ntarget = 1, .task = GT_TASK_CLASSES, .column = columns, .ncolumns = 1};
	save_table(&x);
	gt_index_open(x.place.place.path, &ix, why, sizeof why);
	FUZZ_ASSERT(ix);
	for (uint32_t tag = 1; tag < GT_IX_START + GT_MAX_FIELDS; tag++) {
		uint64_t bytes;
		const void *data = gt_index_section(ix, tag, &bytes);
		if (!data)
			continue;
		FUZZ_ASSERT(bytes <= SECTION_MAX && (x.section[x.nsections].data = malloc(bytes)));
		memcpy(x.section[x.nsections].data, data, bytes);
		x.section[x.nsections].tag = tag;
		x.section[x.nsections++].bytes = bytes;
	}
	gt_index_close(ix);
	size_t n;
	FUZZ_ASSERT(gt_file_read(x.place.place.path, 1 << 20, (char **)&x.file, &n, &index_err) == GT_OK);
	x.bytes = n;
}

/* ---- the index of a table ----------------------------------------------------------------------------------------------------------- */
static void check_content(const struct gt_index_content *c)
{
	const struct gt_dataset *d = &c->data;
	char name[2000];
	FUZZ_ASSERT(d->n == INDEX_ROWS && d->nfields == 4 && c->learned);
	for (int64_t i = 0; i < d->n; i++) {
		FUZZ_ASSERT(d->labels[i] >= 0 && d->labels[i] < d->classes);
		gt_dataset_sample_name(d, i, name, sizeof name);
	}
	for (int f = 0; f < d->nfields; f++) {
		const struct gt_field *v = &d->field[f];
		int64_t n = v->ragged ? v->start[d->n] : d->n * (v->width ? v->width : 1);
		for (int64_t i = 0; v->dtype == GT_I32 && v->codes && i < n; i++) {
			int32_t code = ((const int32_t *)v->data)[i];
			FUZZ_ASSERT(code >= 0 && code < v->codes[v->ragged ? 0 : i % v->width]);
		}
		for (int64_t i = 0; v->dtype == GT_F32 && i < n; i++)
			FUZZ_ASSERT(((const float *)v->data)[i] - ((const float *)v->data)[i] == 0);
	}
	for (int k = 0; k < 2; k++)
		for (int64_t i = 0; c->index[k] && i < c->count[k]; i++)
			FUZZ_ASSERT(c->index[k][i] >= 0 && c->index[k][i] < d->n);
}

static void load_index(void)
{
	struct gt_index_content c;
	struct gt_data_index *place = &index_fixture->place;
	*place->note = 0;
	gt_data_index_load(place, &index_fixture->spec, gt_dataset_fitting(&index_fixture->spec), NULL, &c);
	FUZZ_ASSERT(!c.data.mapped == !!*place->note);
	if (c.data.mapped)
		check_content(&c);
	gt_index_content_free(&c);
}

static void fuzz_sections(const uint8_t *data, size_t size)
{
	struct fixture *x = index_fixture;
	struct gt_index_writer w;
	static uint8_t changed[GT_INDEX_SECTIONS][SECTION_MAX + 8];
	uint64_t bytes[GT_INDEX_SECTIONS];
	for (int s = 0; s < x->nsections; s++)
		memcpy(changed[s], x->section[s].data, bytes[s] = x->section[s].bytes);
	while (size >= 4) {
		int s = data[0] % x->nsections, how = data[1] / 8;
		size_t at = (size_t)(data[2] | data[3] << 8) % (x->section[s].bytes + 1), n = data[1] % 8;
		data += 4, size -= 4;
		n = n < size ? n : size;
		memcpy(changed[s] + at, data, n);
		data += n, size -= n;
		bytes[s] = how == 1 ? at + n : how == 2 ? 0 : bytes[s];
	}
	FUZZ_ASSERT(gt_index_create(x->place.place.path, &w, &index_err) == GT_OK);
	for (int s = 0; s < x->nsections; s++)
		FUZZ_ASSERT(gt_index_add(&w, x->section[s].tag, changed[s], bytes[s], &index_err) == GT_OK);
	FUZZ_ASSERT(gt_index_commit(&w, x->place.place.path, &index_err) == GT_OK);
	load_index();
}

static void fuzz_header(const uint8_t *data, size_t size)
{
	struct fixture *x = index_fixture;
	static uint8_t file[1 << 20];
	struct gt_index_header *h = (struct gt_index_header *)(void *)file;
	if (size < 2)
		return;
	size_t at = (size_t)(data[0] | data[1] << 8) % sizeof *h, n = size - 2 < sizeof *h - at ? size - 2 : sizeof *h - at;
	memcpy(file, x->file, x->bytes);
	memcpy(file + at, data + 2, n);
	for (uint32_t i = 0; i < h->nsections && i < GT_INDEX_SECTIONS; i++) {
		struct gt_index_entry *s = &h->section[i];
		if (s->offset <= x->bytes && s->bytes <= x->bytes - s->offset)
			s->hash = XXH3_64bits(file + s->offset, s->bytes);
	}
	h->hash = XXH3_64bits(h, sizeof *h - sizeof h->hash);
	write_index_file(x->place.place.path, file, x->bytes);
	load_index();
}

/* ---- the index of contents ---------------------------------------------------------------------------------------------------------- */
static void fuzz_contents(const uint8_t *data, size_t size)
{
	static char settings[200], path[GT_PATH_SIZE], images[80];
	struct gt_index_writer w;
	struct gt_content_index *x;
	struct gt_index_place place;
	char note[700];
	uint64_t n = size ? (size - 1) / sizeof(struct gt_content_entry) : 0;
	if (!*path) {
		snprintf(images, sizeof images, "%s/images", index_fixture->dir);
		snprintf(settings, sizeof settings, "contents of images, version 1\n%s\n", images); /* as in content_index.c */
		FUZZ_ASSERT(!mkdir(images, 0700) && gt_index_place_of(images, settings, &place));
		snprintf(path, sizeof path, "%s", place.path);
		gt_index_place_free(&place);
	}
	FUZZ_ASSERT(gt_index_create(path, &w, &index_err) == GT_OK);
	FUZZ_ASSERT(gt_index_add(&w, 1, settings, strlen(settings) - (size && data[0] & 1), &index_err) == GT_OK);
	FUZZ_ASSERT(gt_index_add(&w, 2, data + 1, size ? size - 1 : 0, &index_err) == GT_OK);
	FUZZ_ASSERT(gt_index_commit(&w, path, &index_err) == GT_OK);
	gt_content_index_open(images, &x, note, sizeof note);
	FUZZ_ASSERT(x && (*note != 0) == (gt_content_index_count(x) == 0));
	for (uint64_t i = 0; i < n; i++) {
		struct gt_content_entry e;
		memcpy(&e, data + 1 + i * sizeof e, sizeof e);
		uint64_t found = gt_content_index_find(x, e.state);
		FUZZ_ASSERT(found == (*note ? 0 : e.content));
		gt_content_index_find(x, ~e.state);
	}
	gt_content_index_close(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!index_fixture)
		make_fixture();
	if (!size)
		return 0;
	if (data[0] % 3 == 1)
		fuzz_contents(data + 1, size - 1);
	else if (data[0] % 3 == 2)
		fuzz_header(data + 1, size - 1);
	else
		fuzz_sections(data + 1, size - 1);
	return 0;
}
