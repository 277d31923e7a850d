/* CIFAR, the binary version (https://www.cs.toronto.edu/~kriz/cifar.html): records of 1 label (CIFAR-10) or a coarse and a fine label
 * (CIFAR-100; the fine one is used), then 1,024 bytes each of R, G, B. Plain or gzip, any number of records per file. Files are
 * decompressed in parallel, one per thread: the five gzip files of CIFAR-10 took 0.21 s on two idle cores. */
#include "base/arena.h"
#include "format.h"
#include "gzfile.h"
#include "threads.h"
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { PLANE = 32 * 32, PIXELS = 3 * PLANE, MAX_THREADS = 8 };

struct job {
	struct gt_gzfile file;
	uint64_t size; /* size of the content in bytes: first estimated, later exact */
	uint64_t at;   /* index of the file's first sample in the split */
	enum gt_code rc;
	struct gt_err err;
};

struct work {
	struct job *jobs;
	int n, label_bytes;
	int64_t classes, total; /* total: number of samples for which the arrays of `out` are allocated */
	struct gt_dataset *out;
	atomic_bool again; /* a file's size differs from the size in its gzip trailer, so the files must be read again with the correct
	                      offsets */
};

static enum gt_code check_size(const struct job *j, int label_bytes, struct gt_err *err)
{
	uint64_t record = (uint64_t)label_bytes + PIXELS;
	if (!j->size || j->size % record)
		return gt_fail(err, GT_EDATA, "%s: the file's %llu bytes are not a multiple of the %llu bytes of a CIFAR-%d record", j->file.shown,
		               (unsigned long long)j->size, (unsigned long long)record, label_bytes == 1 ? 10 : 100);
	return GT_OK;
}

static enum gt_code check_label(const struct job *j, const uint8_t *rec, uint64_t i, int label_bytes, int64_t classes, struct gt_err *err)
{
	if (label_bytes == 2 && rec[0] > 19)
		return gt_fail(err, GT_EDATA, "%s: expected a coarse label in 0..19, got %d in record %llu",
		               j->file.shown, rec[0], (unsigned long long)i);
	if (rec[label_bytes - 1] >= classes)
		return gt_fail(err, GT_EDATA, "%s: label %d of record %llu is outside of 0..%lld", j->file.shown, rec[label_bytes - 1],
		               (unsigned long long)i, (long long)classes - 1);
	return GT_OK;
}

static enum gt_code convert_records(struct work *w, struct job *j, const uint8_t *raw)
{
	uint64_t record = (uint64_t)w->label_bytes + PIXELS;
	for (uint64_t i = 0; i < j->size / record; i++) {
		const uint8_t *rec = raw + i * record, *r = rec + w->label_bytes;
		GT_TRY(check_label(j, rec, i, w->label_bytes, w->classes, &j->err));
		uint8_t *to = w->out->images + (j->at + i) * PIXELS;
		w->out->labels[j->at + i] = rec[w->label_bytes - 1];
		for (int k = 0; k < PLANE; k++) {
			to[3 * k] = r[k];
			to[3 * k + 1] = r[PLANE + k];
			to[3 * k + 2] = r[2 * PLANE + k];
		}
	}
	return GT_OK;
}

static enum gt_code run_job(struct work *w, struct job *j)
{
	uint8_t *raw;
	uint64_t size;
	GT_TRY(gt_gzfile_load(&j->file, &raw, &size, &j->err));
	enum gt_code rc = GT_OK;
	if (size != j->size) { /* A file of several gzip members has its exact size only after decompression; the next pass uses this size for
	                          the offsets. */
		j->size = size;
		w->again = true;
	} else {
		rc = check_size(j, w->label_bytes, &j->err);
		if (rc == GT_OK)
			rc = convert_records(w, j, raw);
	}
	free(raw);
	return rc;
}

static bool run_job_of(void *user, int thread, int64_t i)
{
	struct work *w = user;
	(void)thread;
	w->jobs[i].rc = run_job(w, &w->jobs[i]);
	return true;
}

/* Computes the index of each file's first sample. Ignores an estimated size that is not a whole number of records. */
static enum gt_code compute_offsets(struct work *w, const struct gt_dataset_spec *spec, struct gt_err *err)
{
	uint64_t record = (uint64_t)w->label_bytes + PIXELS, n = 0;
	for (int i = 0; i < w->n; i++) {
		w->jobs[i].at = n;
		n += w->jobs[i].size / record;
	}
	if (n > spec->max_bytes / PIXELS)
		return gt_fail(err, GT_EDATA, "%s and the other files of the split: %llu images need more than the %zu bytes allowed",
		               w->jobs[0].file.shown,
		               (unsigned long long)n, spec->max_bytes);
	w->out->n = (int64_t)n;
	return GT_OK;
}

static enum gt_code read_files(struct work *w, const struct gt_dataset_spec *spec, struct gt_err *err)
{
	for (int pass = 0; pass < 2; pass++) {
		GT_TRY(compute_offsets(w, spec, err));
		struct gt_dataset *d = w->out;
		free(d->memory);
		free(d->labels);
		d->memory = d->images = gt_big_alloc((size_t)d->n * PIXELS);
		d->labels = malloc((size_t)d->n * sizeof *d->labels + 1);
		if (!d->images || !d->labels)
			return gt_fail_memory(err, (size_t)d->n * PIXELS);
		w->again = false;
		gt_threads_run(gt_threads_for(w->n, 1, MAX_THREADS), w->n, 1, run_job_of, w);
		for (int i = 0; i < w->n; i++) {
			if (w->jobs[i].rc != GT_OK)
				return gt_fail_copy(err, &w->jobs[i].err);
		}
		if (!w->again)
			return GT_OK;
	}
	return gt_fail(err, GT_EDATA, "%s or another file of the split changed while it was read", w->jobs[0].file.shown);
}

/* Checks the first record of a file, to detect a file of another format or an invalid label. */
static enum gt_code check_head(const struct job *j, int label_bytes, int64_t classes, struct gt_err *err)
{
	uint8_t head[2];
	size_t got;
	GT_TRY(gt_gzfile_head(&j->file, head, sizeof head, &got, err));
	if (got == 2 && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5)
		return gt_fail(
		    err, GT_EDATA,
		    "%s: is the Python (pickle) version of CIFAR, which gtrain does not read (loading one runs code): use the binary version, "
		    "`gtrain fetch cifar%d`",
		    j->file.shown, label_bytes == 1 ? 10 : 100);
	if (got < 2)
		return gt_fail(err, GT_EDATA, "%s: truncated: it has only %zu bytes", j->file.shown, got);
	return check_label(j, head, 0, label_bytes, classes, err);
}

/* Finds the size of a file by reading it, if the estimated size is missing or not a whole number of records. */
static enum gt_code determine_size(struct job *j, int label_bytes, struct gt_err *err)
{
	uint8_t *raw;
	if (j->size && j->size % ((uint64_t)label_bytes + PIXELS) == 0)
		return GT_OK;
	if (j->file.gz) {
		GT_TRY(gt_gzfile_load(&j->file, &raw, &j->size, err));
		free(raw);
	}
	return check_size(j, label_bytes, err);
}

static enum gt_code load_files(const struct gt_dataset_spec *spec, const struct gt_paths *paths, bool headers_only, int label_bytes,
                               struct gt_dataset *out, struct gt_err *err)
{
	int64_t most = label_bytes == 1 ? 10 : 100;
	if (paths->n < 1)
		return gt_fail(err, GT_ECONFIG, "data.train: expected one or more files for a CIFAR split, got none");
	if (spec->classes > most)
		return gt_fail(err, GT_ECONFIG, "data.classes: expected %lld, as CIFAR-%lld has, got %lld", (long long)most, (long long)most,
		               (long long)spec->classes);
	out->c = 3;
	out->h = out->w = 32;
	out->classes = spec->classes > 0 ? spec->classes : most;
	struct work w = {.label_bytes = label_bytes, .classes = out->classes, .out = out};
	GT_CALLOC(w.jobs, paths->n, err);
	enum gt_code rc = gt_dataset_check_shape(spec, out, paths->path[0], err);
	for (int64_t sum = 0; rc == GT_OK && w.n < paths->n && (spec->limit <= 0 || sum < spec->limit); w.n++) {
		struct job *j = &w.jobs[w.n];
		rc = gt_gzfile_open(paths->path[w.n], spec->max_bytes, &j->file, err);
		if (rc == GT_OK)
			rc = check_head(j, label_bytes, w.classes, err);
		j->size = rc == GT_OK ? gt_gzfile_hint(&j->file) : 0;
		if (rc == GT_OK && (!j->file.gz || headers_only || spec->limit > 0))
			rc = determine_size(j, label_bytes, err);
		sum += (int64_t)(j->size / ((uint64_t)label_bytes + PIXELS));
	}
	if (rc == GT_OK)
		rc = headers_only ? compute_offsets(&w, spec, err) : read_files(&w, spec, err);
	for (int i = 0; i < w.n; i++)
		gt_gzfile_close(&w.jobs[i].file);
	free(w.jobs);
	return rc;
}

static bool is_pickle(const char *path)
{
	struct gt_gzfile f;
	uint8_t head[2] = {0};
	size_t got;
	if (gt_gzfile_open(path, GT_DEFAULT_MAX_BYTES, &f, NULL) != GT_OK)
		return false;
	bool yes = gt_gzfile_head(&f, head, sizeof head, &got, NULL) == GT_OK && head[0] == 0x80 && head[1] >= 2 && head[1] <= 5;
	gt_gzfile_close(&f);
	return yes;
}

/* Finds the files in dir, or in the subfolder of dir that unpacking CIFAR's archive creates. */
static enum gt_code find_files(const char *dir, enum gt_split split, int label_bytes, struct gt_paths *paths, struct gt_err *err)
{
	static const char *const sub10[] = {"", "/cifar-10-batches-bin"}, *const sub100[] = {"", "/cifar-100-binary"};
	static const char *const pickle10[] = {"/data_batch_1", "/cifar-10-batches-py/data_batch_1"};
	static const char *const pickle100[] = {"/meta", "/cifar-100-python/meta"};
	bool ten = label_bytes == 1;
	char in[PATH_MAX], name[32];
	for (int s = 0; s < 2; s++) {
		if ((size_t)snprintf(in, sizeof in, "%s%s", dir, ten ? sub10[s] : sub100[s]) >= sizeof in)
			continue;
		snprintf(name, sizeof name, "%s",
		         !ten                     ? split == GT_TEST ? "test.bin" : "train.bin"
		         : split == GT_TEST ? "test_batch.bin"
		                                  : "data_batch_1.bin");
		if (!gt_paths_find(paths, in, name))
			continue;
		for (int i = 2; ten && split == GT_TRAIN && i <= 5; i++) {
			snprintf(name, sizeof name, "data_batch_%d.bin", i);
			if (!gt_paths_find(paths, in, name))
				GT_TRY(gt_paths_add(paths, in, name, err));
		}
		return GT_OK;
	}
	for (int s = 0; s < 2; s++)
		if ((size_t)snprintf(in, sizeof in, "%s%s", dir, ten ? pickle10[s] : pickle100[s]) < sizeof in && is_pickle(in))
			return gt_fail(
			    err, GT_EDATA,
			    "%.500s: is the Python (pickle) version of CIFAR-%d, which gtrain does not read (loading one runs code): use the binary "
			    "version, `gtrain fetch cifar%d`",
			    in, ten ? 10 : 100, ten ? 10 : 100);
	return GT_OK;
}

static enum gt_code find_cifar10(const char *dir, enum gt_split split, struct gt_paths *paths, struct gt_err *err)
{
	return find_files(dir, split, 1, paths, err);
}

static enum gt_code find_cifar100(const char *dir, enum gt_split split, struct gt_paths *paths, struct gt_err *err)
{
	return find_files(dir, split, 2, paths, err);
}

static enum gt_code load_cifar10(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_paths *paths, bool headers_only,
                                 struct gt_dataset *out, struct gt_err *err)
{
	(void)split;
	return load_files(spec, paths, headers_only, 1, out, err);
}

static enum gt_code load_cifar100(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_paths *paths, bool headers_only,
                                  struct gt_dataset *out, struct gt_err *err)
{
	(void)split;
	return load_files(spec, paths, headers_only, 2, out, err);
}

const struct gt_format gt_format_cifar10 = {"cifar10", GT_CONTENT_ARRAYS, find_cifar10, load_cifar10};
const struct gt_format gt_format_cifar100 = {"cifar100", GT_CONTENT_ARRAYS, find_cifar100, load_cifar100};
