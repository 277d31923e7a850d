/* mixup and cutmix (exec/mixing.h). */
#include "exec/mixing.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of 4 x 6 pixels with 2 channels; row r has the bytes r * 40 + position. */
enum { H = 4, W = 6, C = 2, BYTES = H * W * C, ROWS = 10, CLASSES = 5 };
static uint8_t pixels[ROWS][BYTES], before[ROWS][BYTES];
static int32_t label[ROWS];
static float target[ROWS][CLASSES];

static struct gt_mix_rows fill(int64_t n, bool apart)
{
	for (int r = 0; r < ROWS; r++) {
		label[r] = (r * 3 + 1) % CLASSES;
		for (int i = 0; i < BYTES; i++)
			pixels[r][i] = before[r][i] = (uint8_t)(r * 40 + i);
	}
	return (struct gt_mix_rows){.pixels = pixels[0], .label = label, .target = target[0], .n = n, .apart = apart, .h = H, .w = W, .c = C,
	                            .classes = CLASSES};
}

static int partner_of(const struct gt_mix_rows *r, int i)
{
	return (int)(r->apart ? r->n + i : i ? i - 1 : r->n);
}

TEST(mixup_blends_pixels_and_targets)
{
	for (int apart = 0; apart < 2; apart++) {
		struct gt_mix_rows r = fill(4, apart);
		struct gt_mix m = {.lambda = 0.3};
		gt_mix_rows(&m, &r);
		for (int i = 0; i < 4; i++) {
			int p = partner_of(&r, i);
			for (int k = 0; k < BYTES; k++) {
				double want = 0.3 * before[i][k] + 0.7 * before[p][k];
				CHECK_MSG(fabs(pixels[i][k] - want) <= 0.51, "row %d, byte %d: %d, not %g", i, k, pixels[i][k], want);
			}
			for (int c = 0; c < CLASSES; c++) {
				double want = 0.3 * (label[i] == c) + 0.7 * (label[p] == c);
				CHECK(fabs(target[i][c] - want) < 1e-6);
			}
		}
	}
}

TEST(cutmix_pastes_the_box)
{
	struct gt_mix_rows r = fill(5, false);
	struct gt_mix m = {.cut = true, .top = 1, .left = 2, .bottom = 3, .right = 6, .lambda = 1 - 8.0 / 24};
	gt_mix_rows(&m, &r);
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < BYTES; k++) {
			int y = k / C / W, x = k / C % W, from = y >= 1 && y < 3 && x >= 2 ? partner_of(&r, i) : i;
			CHECK(pixels[i][k] == before[from][k]);
		}
	CHECK(fabsf(target[1][label[1]] - 2.0f / 3) < 1e-6f && fabsf(target[1][label[0]] - 1.0f / 3) < 1e-6f);
}

TEST(numbers_are_mixed_like_pixels)
{
	struct gt_mix_rows r = fill(3, false);
	struct gt_mix m = {.lambda = 0.25};
	float was[ROWS][CLASSES];
	r.label = NULL;
	for (int i = 0; i < ROWS * CLASSES; i++)
		was[i / CLASSES][i % CLASSES] = target[i / CLASSES][i % CLASSES] = (float)(i * i % 17) - 5;
	gt_mix_rows(&m, &r);
	for (int i = 0; i < 3; i++)
		for (int c = 0; c < CLASSES; c++)
			CHECK(fabsf(target[i][c] - (0.25f * was[i][c] + 0.75f * was[partner_of(&r, i)][c])) < 1e-5f);
}

TEST(samples_that_do_not_count)
{
	struct gt_mix_rows r = fill(4, false);
	struct gt_mix m = {.lambda = 0.25};
	label[1] = label[2] = -1; /* 1: its partner 0 stands alone; 2: neither counts; 3: it stands alone */
	gt_mix_rows(&m, &r);
	CHECK(!memcmp(pixels[1], before[0], BYTES) && target[1][label[0]] == 1);
	for (int i = 0; i < BYTES; i++)
		CHECK(!pixels[2][i]);
	for (int c = 0; c < CLASSES; c++)
		CHECK(target[2][c] == 0);
	CHECK(!memcmp(pixels[3], before[3], BYTES) && target[3][label[3]] == 1);
}

/* The mean of Beta(a, a) is 1/2 and its variance 1 / (4 (2a + 1)); the draws are fixed, and six deviations wide. */
TEST(lambda_has_its_distribution)
{
	static const double alphas[] = {0.1, 0.4, 1, 3};
	enum { N = 20000 };
	for (int a = 0; a < 4; a++) {
		struct gt_mixing p = {.mixup_p = 1, .mixup_alpha = alphas[a], .classes = 2};
		double sum = 0, square = 0, variance = 1 / (4 * (2 * alphas[a] + 1));
		for (int i = 0; i < N; i++) {
			struct gt_mix m, again;
			gt_mix_draw(&p, 7, (uint64_t)i / 100, (uint64_t)i % 100, 8, 8, &m);
			gt_mix_draw(&p, 7, (uint64_t)i / 100, (uint64_t)i % 100, 8, 8, &again);
			CHECK(m.lambda >= 0 && m.lambda <= 1 && !m.cut && m.lambda == again.lambda);
			sum += m.lambda;
			square += (m.lambda - 0.5) * (m.lambda - 0.5);
		}
		CHECK_MSG(fabs(sum / N - 0.5) < 6 * sqrt(variance / N), "alpha %g: mean %g", alphas[a], sum / N);
		CHECK_MSG(fabs(square / N / variance - 1) < 0.06, "alpha %g: variance %g, not %g", alphas[a], square / N, variance);
	}
}

/* Returns P(e < lambda < 1 - e) of Beta(a, a) for a tiny a: the density is a / 2 * (1 / x + 1 / (1 - x)), without terms of a^2. */
static double share_between(double a, double e)
{
	return a * log((1 - e) / e);
}

/* With a tiny alpha nearly every lambda is 0 or 1, in equal parts. The bounds are six deviations wide. */
TEST(lambda_of_a_tiny_alpha)
{
	static const double alphas[] = {0.01, 0.001, 1e-4, 1e-12, 1e-300};
	enum { N = 20000 };
	for (int a = 0; a < 5; a++) {
		struct gt_mixing p = {.mixup_p = 1, .mixup_alpha = alphas[a], .classes = 2};
		double between = share_between(alphas[a], 1e-3);
		int inner = 0, high = 0;
		for (int i = 0; i < N; i++) {
			struct gt_mix m;
			gt_mix_draw(&p, 3, (uint64_t)i / 100, (uint64_t)i % 100, 8, 8, &m);
			CHECK_MSG(m.lambda >= 0 && m.lambda <= 1, "alpha %g: %g", alphas[a], m.lambda);
			inner += m.lambda > 1e-3 && m.lambda < 1 - 1e-3;
			high += m.lambda > 0.5;
		}
		CHECK_MSG(fabs(inner - N * between) <= 6 * sqrt(N * between) + 1, "alpha %g: %d of %d draws lie between, expected %.1f", alphas[a],
		          inner, (int)N, N * between);
		CHECK_MSG(abs(high - N / 2) < 6 * sqrt(N) / 2, "alpha %g: %d of %d draws are above 0.5", alphas[a], high, (int)N);
	}
}

TEST(batches_are_shared_by_probability)
{
	struct gt_mixing p = {.mixup_p = 0.2, .mixup_alpha = 1, .cutmix_p = 0.5, .cutmix_alpha = 1, .classes = 2};
	int mixed = 0, cut = 0;
	for (int i = 0; i < 10000; i++) {
		struct gt_mix m;
		gt_mix_draw(&p, 1, 0, (uint64_t)i, 30, 20, &m);
		if (m.cut && m.bottom) {
			cut++;
			CHECK(m.top >= 0 && m.left >= 0 && m.top <= m.bottom && m.left <= m.right && m.bottom <= 30 && m.right <= 20);
			CHECK(fabs(m.lambda - (1 - (double)((m.bottom - m.top) * (m.right - m.left)) / 600)) < 1e-12);
		} else if (m.lambda < 1) {
			mixed++;
		}
	}
	CHECK_MSG(abs(mixed - 2000) < 240 && abs(cut - 5000) < 300, "%d by mixup, %d by cutmix", mixed, cut);
}

RUN_TESTS()
