/* Numbers for people and durations: the parts of cli/ that are plain functions. */
#include "../../cli/options.c"
#include "../../cli/units.c"
#include "test.h"
#include <string.h>

#define SAME(expr, want)                                                    \
	do {                                                                    \
		const char *got_ = (expr);                                          \
		CHECK_MSG(!strcmp(got_, want), "%s: %s, not %s", #expr, got_, want); \
	} while (0)

TEST(clock_times)
{
	char b[GT_UNITS];
	SAME(gt_units_clock(b, 0), "0:00");
	SAME(gt_units_clock(b, 0.0574), "0:00"); /* not 57.4 ms */
	SAME(gt_units_clock(b, 59.6), "1:00");
	SAME(gt_units_clock(b, 754), "12:34");
	SAME(gt_units_clock(b, 3754), "1:02:34");
	SAME(gt_units_clock(b, 2 * 86400 + 3 * 3600), "2 d 03 h");
	SAME(gt_units_clock(b, INFINITY), "-:--");
	SAME(gt_units_clock(b, -1), "-:--");
}

TEST(counts)
{
	char b[GT_UNITS];
	SAME(gt_units_count(b, 0), "0");
	SAME(gt_units_count(b, 999), "999");
	SAME(gt_units_count(b, 1000), "1,000");
	SAME(gt_units_count(b, 669706), "669,706");
	SAME(gt_units_count(b, -1234567), "-1,234,567");
	SAME(gt_units_count(b, INT64_MIN), "-9,223,372,036,854,775,808");
}

TEST(bytes)
{
	char b[GT_UNITS];
	SAME(gt_units_bytes(b, 0), "0 B");
	SAME(gt_units_bytes(b, 1023), "1023 B");
	SAME(gt_units_bytes(b, 1024), "1.00 KiB");
	SAME(gt_units_bytes(b, 2678824), "2.55 MiB");
	SAME(gt_units_bytes(b, 1048575), "1.00 MiB"); /* not 1024 KiB */
	SAME(gt_units_bytes(b, UINT64_MAX), "16.0 EiB");
}

TEST(si)
{
	char b[GT_UNITS];
	SAME(gt_units_si(b, 0, "FLOP"), "0 FLOP");
	SAME(gt_units_si(b, 999, "FLOP"), "999 FLOP");
	SAME(gt_units_si(b, 999.7, "FLOP"), "1.00 kFLOP");
	SAME(gt_units_si(b, 102.8e6, "FLOP"), "103 MFLOP");
	SAME(gt_units_si(b, 64123, ""), "64.1 k");
	SAME(gt_units_si(b, 545, ""), "545");
	SAME(gt_units_si(b, 9.996e9, ""), "10.0 G"); /* rounding adds a digit: one decimal less */
	SAME(gt_units_si(b, NAN, ""), "-");
	SAME(gt_units_si(b, 999e21, "FLOP"), "999 ZFLOP");
	SAME(gt_units_si(b, 1e300, "FLOP"), "1e+300 FLOP");
}

TEST(losses)
{
	char b[GT_UNITS];
	SAME(gt_units_loss(b, 0.33012), "0.3301");
	SAME(gt_units_loss(b, 2.7e29), "2.7e+29");
	SAME(gt_units_loss(b, 2.302585), "2.3026");
	SAME(gt_units_loss(b, 0.1), "0.1000");
	SAME(gt_units_loss(b, 0.0999), "0.09990"); /* a small loss has enough digits to compare epochs */
	SAME(gt_units_loss(b, 0.00123456), "0.001235");
	SAME(gt_units_loss(b, 8.3e-5), "8.300e-05");
	SAME(gt_units_loss(b, -8.31e-5), "-8.310e-05");
	SAME(gt_units_loss(b, 0), "0.0000");
	SAME(gt_units_loss(b, NAN), "nan");
	SAME(gt_units_loss(b, -NAN), "nan");
}

TEST(seconds)
{
	char b[GT_UNITS];
	SAME(gt_units_seconds(b, 0), "0 us");
	SAME(gt_units_seconds(b, 201e-6), "201 us");
	SAME(gt_units_seconds(b, 6.88e-3), "6.88 ms");
	SAME(gt_units_seconds(b, 0.234), "234 ms");
	SAME(gt_units_seconds(b, 0.9996), "1.0 s");
	SAME(gt_units_seconds(b, 4.14), "4.1 s");
	SAME(gt_units_seconds(b, 59.97), "1 min 00 s");
	SAME(gt_units_seconds(b, 125), "2 min 05 s");
	SAME(gt_units_seconds(b, 3599.6), "1 h 00 min");
	SAME(gt_units_seconds(b, 3725), "1 h 02 min");
	SAME(gt_units_seconds(b, 3 * 86400 + 7200), "3 d 02 h");
	SAME(gt_units_seconds(b, NAN), "-");
	SAME(gt_units_seconds(b, INFINITY), "-");
	SAME(gt_units_seconds(b, -1), "-");
}

TEST(durations)
{
	CHECK(gt_cli_duration_parse("90") == 90);
	CHECK(gt_cli_duration_parse("90s") == 90);
	CHECK(gt_cli_duration_parse("1.5h") == 5400);
	CHECK(gt_cli_duration_parse("1h30m") == 5400);
	CHECK(gt_cli_duration_parse("2d1s") == 172801);
	static const char *const bad[] = {"",      "s",    "-1",  "+1",  " 1",   "1 s",   "1x",  "1h30",
	                                  "30m1h", "1m1m", "inf", "nan", "0x10", "1e400", "1ms", "1h-5m"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		CHECK_MSG(gt_cli_duration_parse(bad[i]) < 0, "'%s' passed for a duration", bad[i]);
}

RUN_TESTS()
