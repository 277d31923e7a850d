/* Finds the place of an index of data, and writes it. */
#include "base/arena.h"
#include "base/json.h"
#include "base/spill.h"
#include "data_index_parts.h"
#include "sample_mark.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOT_WRITTEN "the next command reads the data again, because no index was written: "

enum { LONGEST = 400 }; /* longer paths are shortened in messages (gzfile.h), and an index keeps only whole ones */

bool gt_data_index_find(const struct gt_dataset_spec *spec, enum gt_split split, const char *settings, struct gt_data_index *x)
{
	const char *vocab = spec->text.vocab;
	*x = (struct gt_data_index){0};
	if (gt_dataset_files(spec, split, &x->paths, x->where, sizeof x->where, NULL) != GT_OK)
		return false;
	x->nfiles = x->paths.n;
	for (int i = 0; i < x->nfiles; i++)
		if (strlen(x->paths.path[i]) >= LONGEST)
			return false;
	if (vocab && *vocab && gt_paths_add(&x->paths, "", vocab, NULL) != GT_OK)
		return false;
	return x->nfiles && gt_index_find_place(x->paths.path, x->paths.n, settings, &x->place);
}

void gt_data_index_close(struct gt_data_index *x)
{
	gt_paths_free(&x->paths);
	gt_index_place_free(&x->place);
}

void gt_index_content_free(struct gt_index_content *c)
{
	for (int k = 0; k < 2; k++)
		gt_dataset_free_array(&c->data, c->index[k]);
	gt_dataset_free(&c->data);
	gt_fitted_free(c->learned);
	*c = (struct gt_index_content){0};
}

/* ---- writing -------------------------------------------------------------------------------------------------------------------- */
struct part {
	uint32_t tag;
	const void *data;
	uint64_t bytes;
};

struct parts {
	struct part v[GT_INDEX_SECTIONS];
	int n;
	struct gt_index_sizes sizes;
	struct gt_json facts;
	int64_t *lines; /* [sizes.lines, 3] */
};

static void add_part(struct parts *p, uint32_t tag, const void *data, uint64_t bytes)
{
	if (data && bytes && p->n < GT_INDEX_SECTIONS)
		p->v[p->n++] = (struct part){tag, data, bytes};
}

static enum gt_code add_facts(struct parts *p, const struct gt_fitted *l, struct gt_err *err)
{
	const char *text;
	if (!l)
		return GT_OK;
	gt_json_object(&p->facts, NULL);
	GT_TRY(l->by->put_json(l, &p->facts, err));
	gt_table_report_put(&p->facts, "report", &l->table);
	gt_json_end(&p->facts);
	GT_TRY(gt_json_finish(&p->facts, &text, err));
	add_part(p, GT_IX_FACTS, text, p->facts.len);
	return GT_OK;
}

static enum gt_code add_lines(struct parts *p, const struct gt_data_table *t, struct gt_err *err)
{
	int64_t values = 3 * t->nlines;
	GT_SPILL_NEW(t->spill, p->lines, values, err);
	for (int64_t i = 0; i < t->nlines; i++) {
		p->lines[3 * i] = t->line[i].row;
		p->lines[3 * i + 1] = t->line[i].line;
		p->lines[3 * i + 2] = t->line[i].file;
	}
	p->sizes.lines = t->nlines;
	add_part(p, GT_IX_LINES, p->lines, (uint64_t)t->nlines * 3 * sizeof *p->lines);
	return GT_OK;
}

static void add_field(struct parts *p, int i, const struct gt_field *f, int64_t n)
{
	uint64_t rows = (uint64_t)n * (uint64_t)(f->width ? f->width : 1);
	add_part(p, GT_IX_FIELD + (uint32_t)i, f->data, (f->ragged ? (uint64_t)f->start[n] : rows) * gt_dtype_size(f->dtype));
	if (f->ragged)
		add_part(p, GT_IX_START + (uint32_t)i, f->start, (uint64_t)(n + 1) * sizeof *f->start);
}

static enum gt_code collect_parts(const struct gt_data_index *x, const struct gt_index_content *c, bool marks, struct parts *p,
                                  struct gt_err *err)
{
	const struct gt_dataset *d = &c->data;
	uint64_t n = (uint64_t)d->n;
	p->sizes = (struct gt_index_sizes){.n = d->n, .divided = c->index[0] != NULL, .texts = d->texts};
	add_part(p, GT_IX_SETTINGS, x->place.settings, strlen(x->place.settings));
	add_part(p, GT_IX_STATE, x->place.state, strlen(x->place.state));
	GT_TRY(add_facts(p, c->learned, err));
	GT_TRY(add_lines(p, d->row_lines, err));
	add_part(p, GT_IX_LABELS, d->labels, n * sizeof *d->labels);
	add_part(p, GT_IX_TARGET, d->target.data, n * (uint64_t)d->target.width * sizeof(float));
	add_part(p, GT_IX_MARKS, marks ? d->mark : NULL, n * sizeof *d->mark);
	for (int k = 0; k < 2 && c->index[0]; k++) {
		p->sizes.part[k] = c->count[k];
		add_part(p, GT_IX_PART + (uint32_t)k, c->index[k], (uint64_t)c->count[k] * sizeof *c->index[k]);
	}
	for (int i = 0; i < d->nfields; i++)
		add_field(p, i, &d->field[i], d->n);
	add_part(p, GT_IX_SIZES, &p->sizes, sizeof p->sizes);
	return GT_OK;
}

static enum gt_code write_parts(const struct parts *p, const char *path, struct gt_err *err)
{
	struct gt_index_writer w;
	GT_TRY(gt_index_create(path, &w, err));
	enum gt_code code = GT_OK;
	for (int i = 0; i < p->n && code == GT_OK; i++)
		code = gt_index_add(&w, p->v[i].tag, p->v[i].data, p->v[i].bytes, err);
	if (code == GT_OK)
		code = gt_index_commit(&w, path, err);
	if (code != GT_OK)
		gt_index_abandon(&w);
	return code;
}

bool gt_data_index_save(struct gt_data_index *x, const struct gt_index_content *c, bool marks)
{
	struct parts p = {0};
	struct gt_err e = {0};
	char why[512] = "";
	int lock = -1;
	uint64_t bytes = 4096;
	if (!x->place.settled || !gt_index_is_current(x->paths.path, x->paths.n, &x->place)) {
		snprintf(x->note, sizeof x->note, NOT_WRITTEN "a file was changed while it was read, or in the three seconds before");
		return false;
	}
	enum gt_code code = collect_parts(x, c, marks, &p, &e);
	for (int i = 0; i < p.n; i++)
		bytes += p.v[i].bytes + 4096;
	bool written = code == GT_OK && gt_index_lock(&x->place, bytes, &lock, why, sizeof why);
	if (written) {
		uint64_t now = gt_index_inode(&x->place);
		if (!now || now == x->inode) /* otherwise another rank has read the same data and written its index */
			code = write_parts(&p, x->place.path, &e);
		written = code == GT_OK;
		gt_index_unlock(lock);
	}
	if (code != GT_OK || *why)
		snprintf(x->note, sizeof x->note, NOT_WRITTEN "%.500s", *why ? why : e.msg);
	gt_json_free(&p.facts);
	gt_spill_free(c->data.spill, p.lines);
	return written;
}
