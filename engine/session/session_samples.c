#include "session/session_samples.h"
#include "session/session_contents.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void gt_session_note_change(struct gt_session_files *out, const char *format, ...)
{
	size_t n = strlen(out->changed);
	va_list args;
	va_start(args, format);
	vsnprintf(out->changed + n, sizeof out->changed - n, format, args);
	va_end(args);
}

/* Returns the number of samples that the run uses of all splits. */
static int64_t count_used(const struct gt_session_files *f)
{
	int64_t n = 0;
	for (int i = 0; i < GT_SPLITS; i++)
		n += f->index[i] && i != GT_TRAIN && !(i == GT_VALID && f->index[GT_TRAIN]) ? f->count[i] : f->set[i].n;
	return n;
}

void gt_session_hash_contents(const struct gt_session_spec *spec, struct gt_session_files *out)
{
	bool stored = spec->train && !spec->samples_only && count_used(out) <= GT_SAMPLES_MAX;
	for (int i = 0; i < GT_SPLITS; i++)
		gt_session_hash_images(spec->conf, stored || out->was.listed, &out->set[i], out->index_note, sizeof out->index_note);
}

/* Removes the samples on which the checkpoint's run was trained from a split that is evaluated. */
static enum gt_code leave_out_trained(struct gt_session_files *out, enum gt_split split, struct gt_err *err)
{
	const struct gt_dataset *d = &out->set[split];
	int64_t kept = 0, *index = malloc(((size_t)d->n + 1) * sizeof *index);
	if (!index)
		return gt_fail_memory(err, (size_t)d->n * sizeof *index);
	for (int64_t i = 0; i < d->n; i++)
		if (gt_used_measures(&out->was, split, &d->mark[i]))
			index[kept++] = i;
	out->left_out[split] = d->n - kept;
	if (kept == d->n) {
		free(index);
		return GT_OK;
	}
	out->index[split] = index;
	out->count[split] = kept;
	return kept ? GT_OK
	            : gt_fail(err, GT_EDATA, "%.400s: the run has trained on every sample of the split \"%s\", so no sample is left to test",
	                      d->where, gt_split_names[split]);
}

/* Returns whether the samples of the run's split "valid" were taken from its training data, not from a separate split. */
static bool is_valid_part_of_train(const struct gt_conf *c, const struct gt_session_files *out)
{
	const struct gt_sample_list *valid = &out->was.list[GT_VALID];
	const struct gt_dataset *d = &out->set[GT_TRAIN];
	for (int64_t i = 0; i < d->n && valid->n && !out->set[GT_VALID].n && !(c->data.valid > 0); i++)
		if (gt_used_find(valid, d->mark[i].id))
			return true;
	return c->data.valid > 0;
}

enum gt_code gt_session_compare_split(const struct gt_session_spec *spec, struct gt_session_files *out, enum gt_split split,
                                      struct gt_err *err)
{
	const struct gt_dataset *d = &out->set[split];
	const struct gt_sample_list *lists[] = {&out->was.list[split], &out->was.list[GT_VALID]};
	struct gt_data_changes *c = &out->changes;
	if (!out->was.listed || !d->n || !d->mark || spec->dry)
		return GT_OK;
	for (int64_t i = 0; spec->measure && i < d->n; i++)
		out->trained += gt_used_trained(&out->was, d->mark[i].content);
	if (spec->measure)
		return GT_OK;
	if (split == GT_TRAIN || lists[0]->n)
		GT_TRY(gt_used_compare(lists, 1 + (split == GT_TRAIN && is_valid_part_of_train(spec->conf, out)), d->mark, d->n, c, err));
	out->differs = c->added || c->missing || c->changed;
	return split == GT_TRAIN ? GT_OK : leave_out_trained(out, split, err);
}

void gt_session_describe_changes(struct gt_session_files *out)
{
	const struct gt_data_changes *c = &out->changes;
	if (out->differs)
		gt_session_note_change(out,
		                       "the data has changed since the run read it: of the run's %lld samples, %lld %s missing and %lld %s "
		                       "changed; %lld %s new",
		                       (long long)c->samples, (long long)c->missing, c->missing == 1 ? "is" : "are", (long long)c->changed,
		                       c->changed == 1 ? "has" : "have", (long long)c->added, c->added == 1 ? "is" : "are");
	if (out->stayed && !out->was.changed)
		gt_session_note_change(out,
		                       "%s%lld sample%s in the run's earlier split (train or valid), although data.valid and seed now select the "
		                       "other",
		                       *out->changed ? "; " : "", (long long)out->stayed, out->stayed == 1 ? " stays" : "s stay");
	for (int i = 0; i < GT_SPLITS; i++)
		if (out->left_out[i])
			gt_session_note_change(out, "%s%lld sample%s of the split \"%s\" %s left out, because the run has trained on %s",
			                       *out->changed ? "; " : "", (long long)out->left_out[i], out->left_out[i] == 1 ? "" : "s",
			                       gt_split_names[i], out->left_out[i] == 1 ? "is" : "are", out->left_out[i] == 1 ? "it" : "them");
}

static enum gt_code list_part(const struct gt_dataset *d, const int64_t *index, int64_t n, struct gt_sample_list *out, struct gt_err *err)
{
	for (int64_t i = 0; i < n; i++)
		GT_TRY(gt_used_add(out, &d->mark[index ? index[i] : i], 1, err));
	return GT_OK;
}

enum gt_code gt_session_list_used(const struct gt_session_spec *spec, struct gt_session_files *out, struct gt_err *err)
{
	struct gt_used_samples *u = &out->used;
	const struct gt_dataset *train = &out->set[GT_TRAIN];
	const struct gt_sample_list *const before[] = {&out->was.list[GT_TRAIN], &out->was.past};
	if (!spec->train || spec->dry || !train->n || !(train->mark || train->mapped))
		return GT_OK;
	u->listed = true;
	u->by_number = out->was.by_number && spec->ckpt;
	u->by_draw = spec->ckpt ? out->was.by_draw : !spec->conf->data.stratify;
	u->changed = out->was.changed || out->differs || out->stayed;
	if (count_used(out) > GT_SAMPLES_MAX) /* more than data.json lists */
		return GT_OK;
	if (out->index[GT_TRAIN])
		GT_TRY(list_part(train, out->index[GT_VALID], out->count[GT_VALID], &u->list[GT_VALID], err));
	for (int i = 0; i < GT_SPLITS; i++) {
		const struct gt_dataset *d = &out->set[i];
		if (d->n && d->mark)
			GT_TRY(list_part(d, out->index[i], out->index[i] ? out->count[i] : d->n, &u->list[i], err));
	}
	if (!u->list[GT_TEST].n)
		GT_TRY(gt_used_add(&u->list[GT_TEST], out->was.list[GT_TEST].mark, out->was.list[GT_TEST].n, err));
	GT_TRY(gt_used_index(u, err));
	for (int k = 0; k < 2; k++)
		for (int64_t i = 0; i < before[k]->n; i++)
			if (!gt_used_trained(u, before[k]->mark[i].content))
				GT_TRY(gt_used_add(&u->past, &before[k]->mark[i], 1, err));
	return gt_used_index(u, err);
}
