#include "session/session_learn.h"
#include "base/spill.h"
#include "fitted.h"
#include "session/session_index.h"
#include "session/session_samples.h"
#include "session/session_split.h"
#include <stdio.h>

/* Fits facts, such as a vocabulary or statistics, to the training samples. */
static enum gt_code learn_rows(const struct gt_dataset_spec *ds, const struct gt_session_files *files, struct gt_fitted **now,
                               struct gt_err *err)
{
	const struct gt_fitting *by = gt_dataset_fitting(ds);
	const struct gt_dataset *d = &files->set[GT_TRAIN];
	const int64_t *row = files->index[GT_TRAIN];
	if (!d->raw)
		return gt_fail(err, GT_EINTERNAL, "the data format must be fitted to the training split, which was not read");
	GT_TRY(gt_fitted_new(by, now, err));
	return by->fit(ds, d, row, row ? files->count[GT_TRAIN] : d->n, *now, err);
}

/* Checks that the facts learned from the training samples equal the facts in the checkpoint. If not, a resumed run ends; an evaluation
 * continues with the checkpoint's facts and writes a note to out->changed. */
static enum gt_code compare_learned(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                                    struct gt_err *err)
{
	struct gt_fitted *now = NULL;
	struct gt_err why = {0};
	enum gt_code code = learn_rows(ds, out, &now, &why);
	if (code == GT_OK)
		code = now->by->compare(out->learned, now, out->set[GT_TRAIN].where, gt_ckpt_path(spec->ckpt), &why);
	gt_fitted_free(now);
	if (code == GT_OK)
		return GT_OK;
	if ((code == GT_EDATA || code == GT_ENOINPUT) && !spec->train) { /* GT_ENOINPUT: data.vocab is missing; the checkpoint has a copy */
		gt_session_note_change(out, "%.700s; %s", why.msg,
		                       out->was.listed ? "a key of the group data has a different value than in the run"
		                                       : "the training data, data.valid, data.limit or seed has changed, so the splits train and "
		                                         "valid may have other samples than in the run");
		return GT_OK;
	}
	gt_fail_copy(err, &why);
	if (code == GT_EDATA && out->was.listed)
		gt_fail_suffix(err, "the data has not changed since the run; remove the data key that now has a different value");
	else if (code == GT_EDATA)
		gt_fail_suffix(err, "a resumed run needs the same training data, with the same data.valid, data.limit and seed");
	return code;
}

/* Fits out->learned to the training samples. If it already has the facts of a checkpoint, only compares them with the samples. */
static enum gt_code learn_or_load(const struct gt_session_spec *spec, const struct gt_dataset_spec *ds, struct gt_session_files *out,
                                  struct gt_err *err)
{
	if (!spec->ckpt)
		return learn_rows(ds, out, &out->learned, err);
	/* if samples have changed, facts are not compared: the run continues with the facts of the checkpoint */
	return !out->differs && !out->was.changed && (spec->train || out->set[GT_TRAIN].raw) ? compare_learned(spec, ds, out, err) : GT_OK;
}

/* Rejects keys for texts if the table has no texts. */
static enum gt_code check_texts(const struct gt_conf *c, const struct gt_fitted *l, struct gt_err *err)
{
	if (!c->data.text_key || !l->table.ncolumns || l->table.ntexts)
		return GT_OK;
	return gt_conf_refuse(c, c->data.text_key, err, "expected a column of texts for this key, but the table has no texts; give a column "
	                      "the type \"text\" in data.columns, or remove this key");
}

/* Returns the memory of arrays of `bytes` bytes, of which `spilled` bytes are in temporary files. */
static uint64_t subtract_spilled(uint64_t bytes, uint64_t spilled)
{
	uint64_t mapped = spilled < GT_SPILL_RESIDENT ? spilled : GT_SPILL_RESIDENT;
	return mapped + (bytes > spilled ? bytes - spilled : 0);
}

/* Reads the training split from its files, divides it, fits facts to it or compares them, and converts it. */
static enum gt_code scan_and_learn(const struct gt_session_spec *spec, struct gt_dataset_spec *ds, struct gt_session_files *out,
                                   struct gt_err *err)
{
	struct gt_dataset *d = &out->set[GT_TRAIN];
	if (out->wanted[GT_TRAIN]) {
		GT_TRY(gt_dataset_read(ds, GT_TRAIN, d, err));
		if (spec->ckpt && d->fitting->mark)
			GT_TRY(d->fitting->mark(out->learned, d, err));
		GT_TRY(gt_session_split_train(spec->conf, ds, out, err));
		GT_TRY(gt_session_compare_split(spec, out, GT_TRAIN, err));
	}
	GT_TRY(learn_or_load(spec, ds, out, err));
	if (d->raw && !spec->ckpt && d->fitting->mark)
		GT_TRY(d->fitting->mark(out->learned, d, err));
	out->reading = d->raw ? d->fitting->raw_bytes(d->raw, out->learned) : 0;
	if (!d->raw)
		return GT_OK;
	GT_TRY(out->learned->by->transform(ds, out->learned, d, err));
	/* adds the bytes of the converted split, of one column during its conversion, and of the indices of samples */
	out->reading += gt_dataset_bytes(d) + (uint64_t)d->n * (sizeof(double) + (out->index[GT_TRAIN] ? sizeof(int64_t) : 0));
	out->reading = subtract_spilled(out->reading, gt_spill_peak(d->spill));
	return GT_OK;
}

enum gt_code gt_session_learn_data(const struct gt_session_spec *spec, struct gt_dataset_spec *ds, struct gt_session_files *out,
                                   struct gt_err *err)
{
	struct gt_data_index index = {0};
	if (spec->ckpt)
		GT_TRY(gt_data_facts_learned(spec->ckpt, gt_dataset_fitting(ds), &out->learned, err));
	bool has_index = out->wanted[GT_TRAIN] && gt_session_index_find(spec, ds, GT_TRAIN, &index);
	bool used = has_index && gt_session_index_load(spec, ds, out, &index);
	ds->spill_dir = has_index && gt_index_make_spill_dir(index.place.dir) ? index.place.dir : NULL;
	enum gt_code code = used ? gt_session_compare_split(spec, out, GT_TRAIN, err) : scan_and_learn(spec, ds, out, err);
	if (code == GT_OK)
		code = check_texts(spec->conf, out->learned, err);
	if (code == GT_OK && has_index && !used)
		gt_session_index_save(spec, ds, out, &index);
	gt_spill_settle(out->set[GT_TRAIN].spill);
	ds->spill_dir = NULL;
	snprintf(out->index_note, sizeof out->index_note, "%s", index.note);
	gt_data_index_close(&index);
	GT_TRY(code);
	ds->fitted = out->learned;
	return out->learned->by->describe(ds, out->learned, &out->like, err);
}
