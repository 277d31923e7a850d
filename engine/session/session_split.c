/* Splits the validation samples off the training samples, as data.valid requests. */
#include "session/session_split.h"
#include "base/spill.h"
#include "exec/epoch_order.h"
#include "exec/split_samples.h"
#include "fitted.h"
#include <stdlib.h>

static uint64_t split_seed(const struct gt_conf *c)
{
	return (uint64_t)(c->data.valid_seed < 0 ? c->seed : c->data.valid_seed);
}

/* Splits the training samples into train and valid, by their indices. group[n]: class of each sample, below `groups`, for a stratified
 * split; groups = 0: the split is not stratified. */
static enum gt_code divide_numbers(const struct gt_conf *c, int64_t nvalid, const int32_t *group, int64_t groups,
                                   struct gt_session_files *out, struct gt_err *err)
{
	int64_t n = out->set[GT_TRAIN].n, *train, *valid;
	out->index[GT_TRAIN] = train = malloc((size_t)(n - nvalid) * sizeof *train);
	out->index[GT_VALID] = valid = malloc((size_t)nvalid * sizeof *valid);
	if (!train || !valid)
		return gt_fail_memory(err, (size_t)n * sizeof *train);
	out->count[GT_TRAIN] = n - nvalid;
	out->count[GT_VALID] = nvalid;
	if (groups)
		return gt_permute_split_classes(split_seed(c), group, n, groups, nvalid, train, valid, err);
	return gt_permute_split(split_seed(c), n, nvalid, train, valid, err);
}

/* Splits the training samples into train and valid by their ids, so that a sample keeps its split when other samples are added. */
static enum gt_code divide_marks(const struct gt_conf *c, const int32_t *group, int64_t groups, struct gt_session_files *out,
                                 struct gt_err *err)
{
	const struct gt_dataset *d = &out->set[GT_TRAIN];
	const struct gt_used_samples rule = {.by_draw = out->was.by_draw};
	char *part = malloc((size_t)d->n), *own = malloc((size_t)d->n);
	int64_t *index[2], n[2] = {0, 0};
	for (int k = 0; k < 2; k++)
		index[k] = gt_spill_resize(d->spill, NULL, (size_t)d->n * sizeof **index);
	bool some = part && own && index[0] && index[1];
	enum gt_code code = some ? GT_OK : gt_fail_memory(err, (size_t)d->n * sizeof **index);
	if (code == GT_OK)
		code = gt_split_samples(split_seed(c), c->data.valid, d->mark, d->n, group, groups, &out->was, part, err);
	if (code == GT_OK && out->was.listed)
		code = gt_split_samples(split_seed(c), c->data.valid, d->mark, d->n, group, groups, &rule, own, err);
	for (int64_t i = 0; i < d->n && code == GT_OK; i++) {
		int k = part[i];
		index[k][n[k]++] = i;
		out->stayed += out->was.listed && !out->was.by_number && part[i] != own[i];
	}
	out->index[GT_TRAIN] = index[0];
	out->index[GT_VALID] = index[1];
	out->count[GT_TRAIN] = n[0];
	out->count[GT_VALID] = n[1];
	free(part);
	free(own);
	return code;
}

/* Writes the class of each training sample to group[n], and the number of classes to *groups; 0: no classes. */
static enum gt_code find_groups(const struct gt_dataset_spec *ds, const struct gt_dataset *d, int32_t *group, int64_t *groups,
                                struct gt_err *err)
{
	*groups = 0;
	if (d->raw)
		return d->fitting->strata(ds, d, group, groups, err);
	if (!d->labels && !d->mark)
		return GT_OK;
	for (int64_t i = 0; i < d->n; i++)
		group[i] = d->labels ? d->labels[i] : d->mark[i].stratum;
	*groups = d->classes;
	return GT_OK;
}

enum gt_code gt_session_split_train(const struct gt_conf *c, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                                   struct gt_err *err)
{
	const struct gt_dataset *set = &out->set[GT_TRAIN];
	int64_t nvalid = (int64_t)(c->data.valid * (double)set->n + 0.5), groups = 0;
	bool numbers = !set->mark || (out->was.by_number && !out->was.listed);
	if (!(c->data.valid > 0) || (!nvalid && !out->was.listed))
		return GT_OK;
	if (nvalid >= set->n)
		return gt_conf_refuse(c, "data.valid", err, "expected a fraction that leaves training samples, got %g of %lld samples",
		                      c->data.valid, (long long)set->n);
	int32_t *group = c->data.stratify ? gt_spill_resize(set->spill, NULL, (size_t)set->n * sizeof *group) : NULL;
	enum gt_code code = GT_OK;
	if (c->data.stratify)
		code = group ? find_groups(ds, set, group, &groups, err) : gt_fail_memory(err, (size_t)set->n * sizeof *group);
	if (code == GT_OK)
		code = numbers ? divide_numbers(c, nvalid, group, groups, out, err) : divide_marks(c, group, groups, out, err);
	gt_spill_free(set->spill, group);
	return code;
}
