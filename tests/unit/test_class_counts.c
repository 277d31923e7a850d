/* Scores from class counts against scikit-learn's numbers (golden/make_class_counts.py). */
#include "score/class_counts.h"
#include "test.h"
#include <math.h>

#define SAMPLES 400
#define CLASSES 10

static const struct {
	int64_t samples, classes, labels, cut, right; /* as in make_class_counts.py */
	double f1, mcc, balanced_acc;
} cases[] = {
	{400, 2, 2, 2, 2, 0.7674985468659179, 0.53508344309144729, 0.76755175517551755},
	{400, 10, 10, 10, 2, 0.54959634996019235, 0.50351922837179552, 0.55268962895082718},
	{57, 5, 3, 5, 3, 0.35557953597880998, 0.37540762560888202, 0.54047619047619044},
	{300, 7, 7, 4, 2, 0.264235002818141, 0.27604839756170169, 0.37617140689838852},
	{50, 3, 1, 3, 2, 0.26506024096385544, 0, 0.66000000000000003},
	{40, 4, 4, 1, 9, 0.10000000000000001, 0, 0.25},
};

static uint64_t state;

static int64_t next_number(void) /* the generator of make_class_counts.py */
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (int64_t)(state >> 33);
}

static bool is_close(double a, double b)
{
	return fabs(a - b) <= 1e-12;
}

TEST(scores_are_scikit_learns)
{
	static float z[SAMPLES * CLASSES];
	static int32_t label[SAMPLES + 1];
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		int64_t n = cases[i].samples, classes = cases[i].classes;
		struct gt_class_counts t = {.ignore = -100};
		struct gt_err e = {0};
		state = (uint64_t)(n * 1000 + classes);
		for (int64_t k = 0; k < n; k++)
			label[k] = (int32_t)(next_number() % cases[i].labels);
		for (int64_t k = 0; k < n; k++) {
			bool right = next_number() % cases[i].right == 0 && label[k] < cases[i].cut;
			int64_t guess = right ? label[k] : next_number() % cases[i].cut;
			for (int64_t c = 0; c < classes; c++)
				z[k * classes + c] = c == guess ? 1 : 0;
		}
		struct gt_output_rows all = {.n = n, .classes = classes, .z = z, .label = label};
		CHECK_OK(gt_class_counts_add(&t, &all, &e), e);
		double f1 = gt_counts_f1(&t), mcc = gt_counts_mcc(&t), balanced = gt_counts_balanced_acc(&t);
		CHECK_MSG(is_close(f1, cases[i].f1), "case %zu: f1 %.17g, expected %.17g", i, f1, cases[i].f1);
		CHECK_MSG(is_close(mcc, cases[i].mcc), "case %zu: mcc %.17g, expected %.17g", i, mcc, cases[i].mcc);
		CHECK_MSG(is_close(balanced, cases[i].balanced_acc), "case %zu: balanced_acc %.17g, expected %.17g", i, balanced,
		          cases[i].balanced_acc);
		gt_class_counts_free(&t);
	}
}

TEST(labels_that_do_not_count)
{
	const float z[] = {1, 0, 0, 1, 1, 0};
	const int32_t label[] = {0, 1, 7};
	struct gt_class_counts none = {.ignore = 7}, t = {.ignore = 7};
	struct gt_output_rows all = {.n = 3, .classes = 2, .z = z, .label = label};
	struct gt_err e = {0};
	CHECK(isnan(gt_counts_f1(&none)) && isnan(gt_counts_mcc(&none)) && isnan(gt_counts_balanced_acc(&none)));
	CHECK_OK(gt_class_counts_add(&t, &all, &e), e);
	CHECK(gt_counts_f1(&t) == 1 && gt_counts_mcc(&t) == 1 && gt_counts_balanced_acc(&t) == 1);
	gt_class_counts_free(&t);
}

RUN_TESTS()
