#include "against/findings.h"
#include "base/arena.h"
#include "base/fileio.h"
#include "base/json.h"
#include "base/memstream.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
	struct gt_finding_name name;
	int64_t calls, differ, absent; /* numbers of compared calls, of compared calls whose results differ, and of calls not compared */
	double share;
	int64_t step, before;
	char operand[16], why[400];
	double worst, allowed;
	int64_t at[GT_MAX_RANK];
	int rank;
};

struct gt_findings {
	struct row *row;
	int n, cap;
	int64_t step, agreed; /* optimizer step of the last call, and number of calls of this step whose results agreed */
};

struct gt_findings *gt_findings_open(void)
{
	return calloc(1, sizeof(struct gt_findings));
}

void gt_findings_close(struct gt_findings *f)
{
	if (f)
		free(f->row);
	free(f);
}

static enum gt_code find_row(struct gt_findings *f, const struct gt_finding_name *name, struct row **out, struct gt_err *err)
{
	for (int i = 0; i < f->n; i++)
		if (!memcmp(&f->row[i].name, name, sizeof *name)) {
			*out = &f->row[i];
			return GT_OK;
		}
	if (f->n == f->cap) {
		int cap = f->cap ? 2 * f->cap : 64;
		struct row *grown = realloc(f->row, (size_t)cap * sizeof *grown);
		if (!grown)
			return gt_fail_memory(err, (size_t)cap * sizeof *grown);
		f->row = grown;
		f->cap = cap;
	}
	*out = &f->row[f->n++];
	**out = (struct row){.name = *name};
	return GT_OK;
}

/* Sets r->at and r->rank to the logical index of the element whose index in memory is `at`; rank 0: the element is padding. */
static void find_index(struct row *r, const struct gt_tdesc *d, int64_t at)
{
	int64_t idx[GT_MAX_RANK] = {0};
	for (int64_t i = 0; i < gt_tdesc_count(d); i++) {
		if (gt_tdesc_offset(d, idx) == at) {
			r->rank = d->rank;
			memcpy(r->at, idx, sizeof idx);
			return;
		}
		for (int k = d->rank - 1; k >= 0 && ++idx[k] == d->dim[k]; k--)
			idx[k] = 0;
	}
}

static void note_first(struct gt_findings *f, struct row *r, const struct gt_finding *result)
{
	const struct gt_verdict *v = &result->verdict;
	r->step = f->step;
	r->before = f->agreed;
	r->worst = v->worst;
	r->allowed = v->allowed;
	snprintf(r->operand, sizeof r->operand, "%s", result->operand);
	find_index(r, result->desc, v->at);
}

enum gt_code gt_findings_add(struct gt_findings *f, const struct gt_finding_name *name, int64_t step, const struct gt_finding *result,
                             struct gt_err *err)
{
	struct row *r;
	double share = result->verdict.share;
	GT_TRY(find_row(f, name, &r, err));
	if (step && step != f->step) {
		f->step = step;
		f->agreed = 0;
	}
	r->calls++;
	r->share = share > r->share ? share : r->share;
	if (share <= 1) {
		f->agreed++;
		return GT_OK;
	}
	if (!r->differ++)
		note_first(f, r, result);
	return GT_OK;
}

enum gt_code gt_findings_skip(struct gt_findings *f, const struct gt_finding_name *name, const char *why, struct gt_err *err)
{
	struct row *r;
	GT_TRY(find_row(f, name, &r, err));
	r->absent++;
	snprintf(r->why, sizeof r->why, "%s", why);
	return GT_OK;
}

static void write_row(struct gt_json *j, const struct row *r)
{
	gt_json_object(j, NULL);
	gt_json_add(j, GT_STR("operation", r->name.operation), GT_STR("layer", r->name.layer), GT_STR("kernel", r->name.kernel),
	            GT_INT("calls", r->calls + r->absent), GT_INT("differ", r->differ), GT_NUM("share", r->share, 6));
	if (r->differ) {
		gt_json_add(j, GT_INT("step", r->step), GT_INT("before", r->before), GT_STR("operand", r->operand), GT_NUM("worst", r->worst, 6),
		            GT_NUM("allowed", r->allowed, 6));
		gt_json_array(j, "at");
		for (int k = 0; k < r->rank; k++)
			gt_json_int(j, NULL, r->at[k]);
		gt_json_end(j);
	}
	gt_json_string(j, "absent", r->absent ? r->why : NULL);
	gt_json_end(j);
}

enum gt_code gt_findings_write(const struct gt_findings *f, const char *path, struct gt_err *err)
{
	struct gt_memstream m;
	FILE *out = gt_memstream_open(&m);
	struct gt_json j = {0};
	const char *line;
	char *text = NULL;
	size_t len;
	enum gt_code code = GT_OK;
	if (!out)
		return gt_fail_memory(err, 0);
	for (int i = 0; i < f->n && code == GT_OK; i++) {
		write_row(&j, &f->row[i]);
		if ((code = gt_json_finish(&j, &line, err)) == GT_OK)
			fprintf(out, "%s\n", line);
		gt_json_reset(&j);
	}
	gt_json_free(&j);
	enum gt_code closed = gt_memstream_close(out, &m, &text, &len, code == GT_OK ? err : NULL);
	if (code == GT_OK && closed == GT_OK)
		code = gt_file_replace(path, 0666, text, len, err);
	free(text);
	return code == GT_OK ? closed : code;
}
