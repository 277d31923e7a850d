/* `gtrain check --data`: reads the samples of a config, and lists the samples that cannot be read. gt_probe_data: finds the files only. */
#include "conf/conf.h"
#include "gtrain_data.h"
#include "session/session_data.h"
#include "skipped.h"
#include "table/table_facts.h"
#include "verify_files.h"
#include <string.h>

struct to {
	void (*found)(void *user, const char *split, const char *why);
	void *user;
	struct gt_data_check *out;
};

static void add_skipped(void *user, int set, int64_t i, const char *why)
{
	const struct to *to = user;
	size_t n = strlen(why), end = strlen(GT_CELL_MISSING);
	bool cell = n >= end && !strcmp(why + n - end, GT_CELL_MISSING); /* the row was read; only one cell was replaced by a missing value */
	(void)i;
	to->out->bad += !cell;
	to->out->cells += cell;
	to->out->samples += !cell;
	to->found(to->user, gt_split_names[set], why);
}

static enum gt_code check_split(const struct gt_dataset *d, enum gt_split split, bool whole, const struct to *to, struct gt_err *err)
{
	struct gt_verified v;
	to->out->samples += d->n;
	if (!d->source)
		return GT_OK;
	to->out->files = true;
	GT_TRY(gt_source_verify(d->source, whole, &v, err));
	to->out->bad += v.bad;
	for (int64_t i = 0; i < v.n; i++)
		if (v.why[i])
			to->found(to->user, gt_split_names[split], v.why[i]);
	gt_verified_free(&v);
	return GT_OK;
}

enum gt_code gt_check_data(const struct gt_conf *c, bool whole, void (*found)(void *user, const char *split, const char *why), void *user,
                           struct gt_data_check *out, struct gt_err *err)
{
	struct gt_conf skips = *c;
	struct gt_session_spec spec = {.conf = &skips, .train = true, .eval = {[GT_VALID] = true, [GT_TEST] = true}};
	struct gt_session_files files;
	struct to to = {found, user, out};
	*out = (struct gt_data_check){.skips = c->data.on_error == GT_ON_ERROR_SKIP};
	skips.data.on_error = GT_ON_ERROR_SKIP; /* without this, the first text or row that cannot be read would be an error */
	GT_TRY(gt_session_read_data(&spec, &files, err));
	gt_skipped_new(files.skipped, add_skipped, &to);
	enum gt_code code = GT_OK;
	for (int i = 0; i < GT_SPLITS && code == GT_OK; i++)
		code = check_split(&files.set[i], (enum gt_split)i, whole, &to, err);
	gt_session_free_data(&files);
	return code;
}

enum gt_code gt_probe_data(const struct gt_conf *c, struct gt_err *err)
{
	struct gt_session_spec spec = {.conf = c, .train = true, .eval = {[GT_VALID] = true, [GT_TEST] = true}, .dry = true};
	struct gt_session_files files;
	GT_TRY(gt_session_read_data(&spec, &files, err));
	enum gt_code code = *files.note ? gt_fail(err, GT_ENOINPUT, "%s", files.note) : GT_OK;
	gt_session_free_data(&files);
	return code;
}
