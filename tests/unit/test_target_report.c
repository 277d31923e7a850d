/* The reports for targets that are numbers (score/target_report.h). The wanted values are scikit-learn's. */
#include "score/target_report.h"
#include "test.h"
#include <math.h>

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

/* Y = [[1,0,1],[0,0,1],[1,1,0],[0,0,0],[1,0,0]], scores Z, predictions Z > 0:
 *   classification_report(Y, Z > 0, zero_division=0, output_dict=True), accuracy_score(Y, Z > 0), roc_auc_score(Y, Z, average=None) */
TEST(several_labels)
{
	static const float y[] = {1, 0, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 0, 0};
	static const float z[] = {2, -1, 0.5f, 1, -2, 3, -1, -3, -2, -4, 1, -1, 3, -2, 0.5f};
	struct gt_target_tally *t;
	struct gt_class_report *r;
	struct gt_arena *a;
	struct gt_err e = {0};
	CHECK_OK(gt_arena_open(&a, &e), e);
	CHECK_OK(gt_target_tally_open(5, 3, &t, &e), e);
	CHECK_OK(gt_target_tally_add(t, z, y, 2, &e), e);
	CHECK_OK(gt_target_tally_add(t, z + 6, y + 6, 3, &e), e);
	CHECK(gt_target_tally_add(t, z, y, 1, &e) == GT_EINTERNAL);
	CHECK_OK(gt_target_tally_labels(t, a, &r, &e), e);
	CHECK(r->several && r->classes == 3 && r->samples == 5 && !r->matrix && !r->nconfused && isnan(r->top5));
	CHECK(near(r->score[0].precision, 2.0 / 3) && near(r->score[0].recall, 2.0 / 3) && near(r->score[0].f1, 2.0 / 3));
	CHECK(r->score[1].precision == 0 && r->score[1].recall == 0 && r->score[1].support == 1 && r->score[1].predicted == 1);
	CHECK(near(r->score[2].precision, 2.0 / 3) && r->score[2].recall == 1 && near(r->score[2].f1, 0.8));
	CHECK(near(r->micro.precision, 4.0 / 7) && near(r->micro.recall, 4.0 / 6) && near(r->micro.f1, 8.0 / 13));
	CHECK(near(r->macro.f1, (2.0 / 3 + 0.8) / 3) && near(r->weighted.f1, (3 * 2.0 / 3 + 2 * 0.8) / 6));
	CHECK_MSG(near(r->accuracy, 1.0 / 5), "%g", r->accuracy);
	/* label 0: positives 2, -1, 3 against 1, -4: 5 of 6 pairs; label 1: positive -3 against all: 0 of 4; label 2: 0.5, 3 against -2, -1,
	 * 0.5 */
	CHECK(near(r->score[0].auc, 5.0 / 6) && r->score[1].auc == 0 && near(r->score[2].auc, 5.5 / 6));
	double loss = 0;
	for (int i = 0; i < 15; i++)
		loss -= log(y[i] > 0 ? 1 / (1 + exp(-(double)z[i])) : 1 - 1 / (1 + exp(-(double)z[i]))) / 15;
	CHECK(near(r->log_loss, loss));
	gt_target_tally_close(t);
	gt_arena_close(a);
}

/* mean_absolute_error, root_mean_squared_error and r2_score of each column. */
TEST(columns_of_numbers)
{
	static const float y[] = {3, 7, -0.5f, 7, 2, 7, 7, 7}, z[] = {2.5f, 6, 0, 8, 2, 7, 8, 7};
	struct gt_target_tally *t;
	struct gt_value_report *r;
	struct gt_arena *a;
	struct gt_err e = {0};
	CHECK_OK(gt_arena_open(&a, &e), e);
	CHECK_OK(gt_target_tally_open(4, 2, &t, &e), e);
	CHECK_OK(gt_target_tally_add(t, z, y, 4, &e), e);
	CHECK_OK(gt_target_tally_values(t, a, &r, &e), e);
	CHECK(r->values == 2 && r->samples == 4);
	CHECK(near(r->score[0].mae, 0.5) && near(r->score[0].rmse, sqrt(0.375)) && near(r->score[0].r2, 0.9486081370449679));
	CHECK(near(r->score[1].mae, 0.5) && near(r->score[1].rmse, sqrt(0.5)) && isnan(r->score[1].r2));
	gt_target_tally_close(t);
	gt_arena_close(a);
}

TEST(outputs_that_are_no_numbers)
{
	static const float y[] = {1, 0}, z[] = {1, NAN};
	struct gt_target_tally *t;
	struct gt_err e = {0};
	CHECK_OK(gt_target_tally_open(1, 2, &t, &e), e);
	CHECK(gt_target_tally_add(t, z, y, 1, &e) == GT_EDIVERGED);
	gt_target_tally_close(t);
}

RUN_TESTS()
