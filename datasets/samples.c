#include "samples.h"
#include "base/arena.h"
#include <stdio.h>
#include <stdlib.h>

struct worker {
	struct gt_bytes_buf file;
	struct gt_image_scratch *scratch;
};

struct gt_samples {
	struct gt_samples_spec spec;
	struct worker *worker; /* [spec.threads] */
};

enum gt_code gt_samples_open(const struct gt_samples_spec *spec, struct gt_samples **out, struct gt_err *err)
{
	struct gt_samples *r = calloc(1, sizeof *r);
	*out = NULL;
	if (!r)
		return gt_fail_memory(err, sizeof *r);
	r->spec = *spec;
	r->worker = calloc((size_t)spec->threads, sizeof *r->worker);
	enum gt_code code = r->worker ? GT_OK : gt_fail_memory(err, (size_t)spec->threads * sizeof *r->worker);
	for (int i = 0; i < spec->threads && code == GT_OK; i++)
		code = gt_image_scratch_open(&r->worker[i].scratch, err);
	if (code != GT_OK) {
		gt_samples_close(r);
		return code;
	}
	*out = r;
	return GT_OK;
}

void gt_samples_close(struct gt_samples *r)
{
	if (!r)
		return;
	for (int i = 0; r->worker && i < r->spec.threads; i++) {
		gt_image_scratch_close(r->worker[i].scratch);
		free(r->worker[i].file.data);
	}
	free(r->worker);
	free(r);
}

enum gt_code gt_samples_read(struct gt_samples *r, int thread, int64_t i, uint64_t epoch, uint8_t *out, struct gt_err *err)
{
	const struct gt_samples_spec *s = &r->spec;
	const struct gt_dataset *d = s->data;
	struct worker *w = &r->worker[thread];
	struct gt_sample_key key = {.seed = s->seed, .epoch = epoch, .sample = (uint64_t)i};
	char name[720];
	struct gt_image_job job = {.name = name, .list = s->list, .split = &s->split, .key = &key, .c = (int)s->c, .h = s->h, .w = s->w,
	                           .scratch = w->scratch, .out = out};
	if (!d->source) {
		snprintf(name, sizeof name, "sample %lld of %.400s", (long long)i, d->where);
		job.pixels = d->images + (size_t)(i * d->h * d->w * d->c);
		job.ih = d->h;
		job.iw = d->w;
		job.ic = (int)d->c;
		return gt_image_make(&job, err);
	}
	GT_TRY(gt_source_read(d->source, i, &w->file, err));
	gt_source_name(d->source, i, name, sizeof name);
	job.raw = w->file.data;
	job.size = w->file.size;
	enum gt_code code = gt_image_make(&job, err);
	if (w->file.cap > GT_SOURCE_KEEP) {
		free(w->file.data);
		w->file = (struct gt_bytes_buf){0};
	}
	return code;
}
