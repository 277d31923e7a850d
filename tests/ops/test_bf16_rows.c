/* The rows of kernels/cpu/bf16_rows.h against the functions of ew.h, bit for bit: every bf16 value with the low halves at which rounding
 * changes, subnormal numbers and NaN at every position of a block, and rows around its length. */
/* tests/run: beside others */
#include "cpu/bf16_rows.c"
#include "test.h"

TEST(rows_round_every_value)
{
	static const uint32_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
	enum { LOWS = sizeof low / sizeof *low };
	static float x[0x10000 * LOWS];
	static uint16_t y[0x10000 * LOWS];
	int64_t wrong = 0, n = 0x10000 * LOWS;
	for (int64_t i = 0; i < n; i++)
		x[i] = gt_f32_from_bits((uint32_t)(i / LOWS) << 16 | low[i % LOWS]);
	gt_bf16_narrow_row(y, x, n);
	for (int64_t i = 0; i < n; i++)
		wrong += y[i] != gt_bf16_from_f32(x[i]);
	CHECK_MSG(wrong == 0, "%lld of %lld", (long long)wrong, (long long)n);
	gt_bf16_widen_row(x, y, n);
	for (int64_t i = 0; i < n; i++)
		wrong += gt_f32_bits(x[i]) != (uint32_t)y[i] << 16;
	CHECK(wrong == 0);
}

TEST(rows_of_any_length_round_alike)
{
	static const uint32_t odd[] = {0x00012345, 0x80018000, 0x007fffff, 0x7f800001, 0xffc12345, 0x7f800000};
	for (int64_t n = 0; n <= 70; n++)
		for (int64_t at = 0; at < (n ? n : 1); at++) {
			float x[70];
			uint16_t y[71], want = 0xbeef;
			for (int64_t i = 0; i < n; i++)
				x[i] = 1 + (float)i / 512;
			if (n)
				x[at] = gt_f32_from_bits(odd[(n + at) % 6]);
			y[n] = want;
			gt_bf16_narrow_row(y, x, n);
			int64_t wrong = y[n] != want;
			for (int64_t i = 0; i < n; i++)
				wrong += y[i] != gt_bf16_from_f32(x[i]);
			CHECK_MSG(wrong == 0, "%lld elements, element %lld", (long long)n, (long long)at);
		}
}

RUN_TESTS()
