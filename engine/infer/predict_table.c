/* Predicts the rows of tables, and texts, which are converted as the training split has taught. */
#include "infer/predictor.h"
#include "learned.h"
#include "session/session_data.h"

static enum gt_code predict_rows(struct gt_predictor *p, const char *file, const struct gt_dataset *d, struct gt_err *err)
{
	for (int64_t i = 0; i < d->n && !p->ended; i++)
		GT_TRY(gt_predictor_add_row(p, file, d, i, err));
	return GT_OK;
}

enum gt_code gt_predict_tables(struct gt_predictor *p, const struct gt_inputs *in, int64_t *failed, struct gt_err *err)
{
	for (int64_t i = 0; i < in->n && !p->ended; i++) {
		struct gt_dataset d = {0};
		struct gt_err why = {0};
		const struct gt_input *file = &in->v[i];
		enum gt_code code = file->error ? gt_fail(&why, file->code, "%s", file->error) : gt_session_read_inputs(p->s, file->path, &d, &why);
		if (code == GT_OK) {
			code = predict_rows(p, file->path, &d, err);
			gt_dataset_free(&d);
			GT_TRY(code);
			continue;
		}
		if (in->n == 1) {
			if (err)
				*err = why;
			return code;
		}
		(*failed)++;
		GT_TRY(gt_predictor_add_error(p, file->path, why.msg, err));
	}
	return GT_OK;
}
