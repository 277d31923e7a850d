/* How a session uses the data that read_data.c has read: views of the splits, names, facts for checkpoints. */
#include "session/session_data.h"
#include "skipped.h"
#include <string.h>

struct gt_data_facts gt_session_facts_of(const struct gt_dataset *d)
{
	return (struct gt_data_facts){.files = d->encoded, .nclasses = d->nclass_names, .class = (const char *const *)d->class_name};
}

const char *gt_session_class_name(const struct gt_session *s, int64_t label)
{
	const struct gt_data_facts *f = &s->data.facts;
	if (f->nclasses)
		return label >= 0 && label < f->nclasses ? f->class[label] : NULL;
	return gt_dataset_class(s->conf->data.name, label);
}

bool gt_session_skips_files(const struct gt_session *s)
{
	return s->conf->data.on_error == GT_ON_ERROR_SKIP && s->data.set[GT_TRAIN].encoded;
}

static struct gt_view view_of(struct gt_session *s, int which, int64_t *index, int64_t n)
{
	return (struct gt_view){&s->data.set[which], &s->data.resident[which], index, n};
}

/* Sets the view of a split whose data has been read. */
static enum gt_code set_view(struct gt_session *s, enum gt_split split, struct gt_err *err)
{
	const struct gt_session_files *f = s->data.files;
	int64_t n = f->set[split].n;
	if (split == GT_VALID && n && s->conf->data.valid > 0)
		return gt_conf_refuse(s->conf, "data.valid", err, "expected this key only for data without a split \"valid\", but the data has "
		                      "this split, with %lld samples; remove this key", (long long)n);
	if (split != GT_VALID || n)
		s->data.view[split] = f->index[split] ? view_of(s, split, f->index[split], f->count[split]) : view_of(s, split, NULL, n);
	if (split == GT_TRAIN && f->index[GT_TRAIN])
		s->data.view[GT_VALID] = view_of(s, GT_TRAIN, f->index[GT_VALID], f->count[GT_VALID]);
	return GT_OK;
}

/* Sets the names of the columns whose values the model predicts. */
static enum gt_code name_values(struct gt_session *s, struct gt_err *err)
{
	const struct gt_strings *given = &s->conf->data.target_columns;
	const struct gt_fitted *l = s->data.files->learned;
	int n = s->conf->data.targets != GT_TARGETS_NUMBERS ? 0 : l ? l->table.ntargets : given->n;
	GT_NEW(s->data.value_name, s->arena, n + 1, err);
	GT_NEW(s->data.value_scale, s->arena, n + 1, err);
	for (int i = 0; i < n; i++) {
		const struct gt_table_fact *f = l ? &l->table.column[gt_table_target_column(&l->table, i)] : NULL;
		s->data.value_name[i] = f ? f->name : given->v[i];
		s->data.value_scale[i] = (struct gt_value_scale){0, 1};
		if (f && s->conf->data.normalize_target)
			s->data.value_scale[i] = (struct gt_value_scale){f->mean, f->std > 0 ? f->std : 1};
	}
	s->data.nvalues = n;
	return GT_OK;
}

enum gt_code gt_session_data_open(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err)
{
	if (s->conf->data.on_error == GT_ON_ERROR_SKIP)
		GT_TRY(gt_skipped_open(&s->data.skipped, err));
	const struct gt_dataset *first = NULL; /* data of the first split that was found; all splits have the same fields */
	for (int i = 0; i < GT_SPLITS; i++)
		s->data.view[i].n = spec->dry ? -1 : 0;
	if (!spec->data)
		GT_TRY(gt_session_read_data(spec, &s->data.own, err));
	s->data.files = spec->data ? spec->data : &s->data.own;
	memcpy(s->data.set, s->data.files->set, sizeof s->data.set);
	s->data.note = *s->data.files->note ? s->data.files->note : NULL;
	for (int i = 0; i < GT_SPLITS; i++) {
		if (!s->data.files->wanted[i] || s->data.files->missing[i])
			continue;
		if (!spec->dry)
			GT_TRY(gt_resident_make(&s->device, &s->data.set[i], s->data.set[i].encoded, &s->data.resident[i], err));
		GT_TRY(set_view(s, (enum gt_split)i, err));
		if (s->data.set[i].n && !first)
			first = &s->data.set[i];
	}
	if (!first && s->data.files->learned)
		first = &s->data.files->like;
	if (first) {
		s->data.facts = gt_session_facts_of(first);
		s->data.facts.learned = s->data.files->learned;
		s->data.facts.samples = s->data.files->used.listed && !s->at.rank ? &s->data.files->used : NULL; /* rank 0 writes checkpoints */
		GT_TRY(gt_session_set_lists(s, first, err));
	}
	GT_TRY(name_values(s, err));
	GT_TRY(gt_session_match_inputs(s, first, err));
	return gt_data_facts_print(&s->data.facts, s->arena, &s->data.facts_text, err);
}

void gt_session_data_close(struct gt_session *s)
{
	for (int i = 0; i < GT_SPLITS; i++)
		if (s->device.be)
			gt_resident_drop(&s->device, &s->data.resident[i]);
	gt_session_free_data(&s->data.own);
	gt_skipped_close(s->data.skipped);
}
