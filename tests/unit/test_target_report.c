/* The scores of targets that are numbers (score/class_report.h, score/value_tally.h). The wanted values are scikit-learn's. */
#include "score/class_report.h"
#include "score/value_tally.h"
#include "test.h"
#include <math.h>
#include <string.h>

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

/* mean_absolute_error, root_mean_squared_error and r2_score of each column, and their means over the columns in the unit of the targets. */
TEST(columns_of_numbers)
{
	static const float y[] = {3, 7, -0.5f, 7, 2, 7, 7, 7}, z[] = {2.5f, 6, 0, 8, 2, 7, 8, 7};
	static const struct gt_value_scale scale[] = {{100, 10}, {0, 2}};
	struct gt_value_tally *t;
	struct gt_value_report *r;
	struct gt_arena *a;
	struct gt_err e = {0};
	struct gt_scores s;
	CHECK_OK(gt_arena_open(&a, &e), e);
	CHECK_OK(gt_value_tally_open(2, &t, &e), e);
	gt_value_tally_add(t, z, y, 1);
	gt_value_tally_means(t, scale, &s);
	CHECK(near(s.mae, (0.5 * 10 + 1 * 2) / 2) && isnan(s.r2)); /* one sample has no R2 */
	gt_value_tally_add(t, z + 2, y + 2, 3);
	CHECK_OK(gt_value_tally_report(t, a, &r, &e), e);
	CHECK(r->values == 2 && r->samples == 4);
	CHECK(near(r->score[0].mae, 0.5) && near(r->score[0].rmse, sqrt(0.375)) && near(r->score[0].r2, 0.9486081370449679));
	CHECK(near(r->score[1].mae, 0.5) && near(r->score[1].rmse, sqrt(0.5)) && r->score[1].r2 == 0); /* a constant target */
	gt_value_tally_means(t, scale, &s);
	CHECK(near(s.mae, (5 + 1) / 2.0) && near(s.rmse, (10 * sqrt(0.375) + 2 * sqrt(0.5)) / 2) && near(s.r2, 0.9486081370449679 / 2));
	gt_value_tally_close(t);
	gt_arena_close(a);
}

/* r2_score of a constant target is 1 if it is predicted exactly. Values far from zero keep their digits: the sums are those of two passes
 * over the values, in double. */
TEST(numbers_far_from_zero)
{
	enum { N = 1000 };
	static float y[N], z[N];
	double mean = 0, square = 0, spread = 0;
	struct gt_value_tally *t;
	struct gt_value_report *r;
	struct gt_arena *a;
	struct gt_err e = {0};
	for (int i = 0; i < N; i++) {
		y[i] = 1e6f + (float)((i * 37) % 101);
		z[i] = y[i] + (float)((i * 13) % 7 - 3);
		mean += (double)y[i] / N;
	}
	for (int i = 0; i < N; i++) {
		square += ((double)z[i] - (double)y[i]) * ((double)z[i] - (double)y[i]);
		spread += ((double)y[i] - mean) * ((double)y[i] - mean);
	}
	CHECK_OK(gt_arena_open(&a, &e), e);
	CHECK_OK(gt_value_tally_open(1, &t, &e), e);
	gt_value_tally_add(t, z, y, N);
	CHECK_OK(gt_value_tally_report(t, a, &r, &e), e);
	CHECK_MSG(near(r->score[0].r2, 1 - square / spread), "%.17g, two passes: %.17g", r->score[0].r2, 1 - square / spread);
	gt_value_tally_close(t);
	CHECK_OK(gt_value_tally_open(1, &t, &e), e);
	gt_value_tally_add(t, (const float[]){5, 5}, (const float[]){5, 5}, 2);
	CHECK_OK(gt_value_tally_report(t, a, &r, &e), e);
	CHECK(r->score[0].r2 == 1 && r->score[0].mae == 0);
	gt_value_tally_add(t, (const float[]){INFINITY}, (const float[]){5}, 1);
	CHECK(gt_value_tally_report(t, a, &r, &e) == GT_EDIVERGED && strstr(e.msg, "sample 2 "));
	gt_value_tally_close(t);
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
