/* Axes of charts: round ticks inside the range, labels that differ, and ranges that are no range. Series: the groups that remain. */
#include "base/arena.h"
#include "gtrain_chart.h"
#include "test.h"
#include "view/series_builder.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Joins the labels of an axis: "0 0.5 1". */
static const char *all_labels(const struct gt_axis *a, char buf[1024])
{
	*buf = '\0';
	for (int i = 0; i < a->n; i++) {
		char label[GT_AXIS_LABEL];
		strcat(strcat(buf, i ? " " : ""), gt_axis_label(a, a->tick[i], label));
	}
	return buf;
}

TEST(ticks_are_round)
{
	static const struct { double low, high; bool log; int most; const char *labels; } row[] = {
		{0, 1, false, 6, "0.0 0.2 0.4 0.6 0.8 1.0"},
		{0, 3, false, 8, "0.0 0.5 1.0 1.5 2.0 2.5 3.0"},
		{0.23, 0.52, false, 5, "0.3 0.4 0.5"},
		{0, 1876, false, 5, "0 500 1000 1500"},
		{0, 90000, false, 4, "0 50k"},
		{0, 4e6, false, 5, "0 1M 2M 3M 4M"},
		{-2, 2, false, 5, "-2 -1 0 1 2"},
		{0.0009, 0.0011, false, 5, "0.00090 0.00095 0.00100 0.00105 0.00110"},
		{1e-7, 1, true, 5, "1e-06 0.0001 0.01 1"},
		{0.1, 100, true, 12, "0.1 0.2 0.5 1 2 5 10 20 50 100"},
		{2, 2, false, 5, "0 1 2 3 4"},
		{0, 0, false, 3, "-1 0 1"},
		{0.001, 0.001, true, 3, "0.0001 0.001 0.01"},
		{1e-300, 1e300, true, 4, "1e-200 1 1e+200"},
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
		struct gt_axis a;
		char buf[1024];
		gt_axis_set(&a, row[i].low, row[i].high, row[i].log, row[i].most);
		CHECK_MSG(!strcmp(all_labels(&a, buf), row[i].labels), "row %zu: %s, expected %s", i, buf, row[i].labels);
	}
}

/* Any range gives at most as many ticks as asked for, inside the range, in order, with different labels. */
TEST(ticks_of_any_range)
{
	srand(1);
	for (int i = 0; i < 20000; i++) {
		double low = (rand() % 2001 - 1000) * pow(10, rand() % 12 - 8), span = (1 + rand() % 999) * pow(10, rand() % 12 - 8);
		bool log = rand() % 2;
		int most = 2 + rand() % 12;
		struct gt_axis a;
		low = log ? fabs(low) + span / 1000 : low;
		if (span < 1e-6 * fabs(low)) /* labels have a limited number of digits */
			continue;
		gt_axis_set(&a, low, low + span, log, most);
		CHECK_MSG(a.n >= (log ? 0 : 2) && a.n <= (most < 6 ? 6 : most), "%d ticks of %d from %g to %g", a.n, most, low, low + span);
		for (int k = 0; k < a.n; k++) {
			char one[GT_AXIS_LABEL], two[GT_AXIS_LABEL];
			double at = gt_axis_share(&a, a.tick[k]);
			CHECK_MSG(at > -1e-6 && at < 1 + 1e-6, "tick %g from %g to %g", a.tick[k], low, low + span);
			if (k)
				CHECK_MSG(strcmp(gt_axis_label(&a, a.tick[k - 1], one), gt_axis_label(&a, a.tick[k], two)), "%s twice from %.9g to %.9g",
				          one, low, low + span);
		}
	}
}

static void add_values(struct gt_series_builder *b, int n, double (*value)(int i))
{
	struct gt_err err = {0};
	for (int i = 0; i < n; i++)
		CHECK_OK(gt_series_add(b, i, NAN, value(i), 0.9, &err), err);
}

static double sine_with_peaks(int i)
{
	return i == 123456 ? 1e6 : i == 777 ? -1e6 : i == 500000 ? NAN : sin(i * 1e-4);
}

TEST(series_keep_peaks)
{
	struct gt_series_builder b = {0};
	struct gt_run_point point[GT_SERIES_POINTS];
	struct gt_run_series s = {.point = point};
	bool high = false, low = false;
	int gaps = 0;
	add_values(&b, 1000000, sine_with_peaks);
	gt_series_store(&b, &s);
	CHECK(s.n > GT_SERIES_POINTS / 4 && s.n <= GT_SERIES_POINTS);
	CHECK(s.values == 999999 && s.missing == 1);
	for (int i = 0; i < s.n; i++) {
		CHECK(point[i].value == sine_with_peaks((int)point[i].step));
		CHECK(!i || point[i].step > point[i - 1].step);
		high |= point[i].step == 123456;
		low |= point[i].step == 777;
		gaps += point[i].gap;
	}
	CHECK(high && low);
	CHECK_MSG(gaps == 1, "%d gaps", gaps);
	free(b.group);
}

static double ramp(int i)
{
	return i;
}

TEST(series_average_is_that_of_tensorboard)
{
	struct gt_series_builder b = {0};
	struct gt_run_point point[GT_SERIES_POINTS];
	struct gt_run_series s = {.point = point};
	double last = 0;
	add_values(&b, 1000, ramp);
	gt_series_store(&b, &s);
	CHECK(s.n == 1000);
	for (int i = 0; i < s.n; i++) {
		last = last * 0.9 + 0.1 * i;
		/* two ways to add up to 1000 doubles */
		CHECK_MSG(fabs(point[i].smooth - last / (1 - pow(0.9, i + 1))) < 1e-9, "value %d", i);
	}
	gt_series_set_epochs(&b, 100);
	gt_series_store(&b, &s);
	CHECK(point[250].epoch == 2.5);
	free(b.group);
}

TEST(series_leave_out_steps_that_go_back)
{
	struct gt_series_builder b = {0};
	struct gt_err err = {0};
	struct gt_run_point point[GT_SERIES_POINTS];
	struct gt_run_series s = {.point = point};
	static const int step[] = {5, 7, 6, 7, 9};
	for (int i = 0; i < 5; i++)
		CHECK_OK(gt_series_add(&b, step[i], i, i, 0, &err), err);
	gt_series_store(&b, &s);
	CHECK(s.n == 4 && point[1].step == 7 && point[2].step == 7 && point[3].step == 9);
	free(b.group);
}

RUN_TESTS()
