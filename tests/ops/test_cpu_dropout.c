/* Dropout: how many are dropped, and that the mask belongs to the sample. */
#include "base/philox.h"
#include "cpu_raw.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEW(t, n) raw_alloc(t, n)

static void dropout_run(int threads, enum gt_dtype t, const struct gt_attr_dropout *attr, struct gt_step_args step_args, int64_t n,
                        int64_t per, const void *x, void *y)
{
	struct gt_tdesc dx = gt_tdesc_make(t, 2, (int64_t[]){n, per}, true), dy = dx;
	struct gt_opcall call = {.code = GT_OP_DROPOUT, .attr = attr, .nin = 1, .nout = 1, .in = {&dx}, .out = {&dy}};
	raw_run(threads, &call, (void *[]){(void *)x}, (void *[]){y}, &step_args);
}

TEST(dropout_keeps_the_right_share)
{
	static const double ps[] = {0, 0.1, 0.5, 0.9, 1};
	const int64_t n = 128, per = 2047, count = n * per;
	for (size_t t = 0; t < 3; t++)
		for (size_t k = 0; k < 5; k++) {
			enum gt_dtype type = raw_types[t];
			struct gt_attr_dropout attr = {.p = ps[k], .layer = 3, .train = true};
			void *x = NEW(type, count), *y = NEW(type, count);
			for (int64_t i = 0; i < count; i++)
				number_put(type, x, i, 1 + (double)(i % 3));
			dropout_run(3, type, &attr, (struct gt_step_args){.seed = 1, .stride = 1}, n, per, x, y);
			int64_t zeros = 0, pairs = 0, wrong = 0;
			for (int64_t i = 0; i < count; i++) {
				double v = gt_load_number(type, y, i);
				zeros += v == 0;
				pairs += i && v == 0 && gt_load_number(type, y, i - 1) == 0;
				double want = gt_load_number(type, x, i) / (1 - ps[k]), half = type == GT_BF16 ? 0x1p-8 : 0x1p-23;
				wrong += v != 0 && !(fabs(v - want) <= half * want); /* the scale is rounded, then the product */
			}
			/* Five standard deviations of a binomial; neighbours are independent. The draws are fixed: this cannot flicker. */
			double p = ps[k], sd = sqrt(count * p * (1 - p)), sd2 = sqrt(count * p * p * (1 - p * p) * 3);
			CHECK_MSG(fabs((double)zeros - p * count) <= 5 * sd, "p %g: %lld of %lld dropped", p, (long long)zeros, (long long)count);
			CHECK_MSG(fabs((double)pairs - p * p * (count - 1)) <= 5 * sd2, "p %g: %lld neighbours dropped", p, (long long)pairs);
			CHECK(wrong == 0);
			free(x), free(y);
		}
}

/* The mask of a sample is the same in every batch; other seeds, layers, epochs and samples have other masks. */
TEST(dropout_mask_does_not_depend_on_the_split)
{
	enum { N = 24, PER = 77 };
	struct gt_attr_dropout attr = {.p = 0.4, .layer = 2, .train = true}, other = {.p = 0.4, .layer = 5, .train = true};
	struct gt_step_args step_args = {.seed = 7, .epoch = 3, .sample0 = 1000, .stride = 1};
	float x[N * PER], whole[N * PER], parts[N * PER], ranks[N * PER];
	for (int i = 0; i < N * PER; i++)
		x[i] = 1;
	dropout_run(1, GT_F32, &attr, step_args, N, PER, x, whole);
	for (int at = 0, w = 1; at < N; at += w, w++) {
		int n = at + w < N ? w : N - at;
		struct gt_step_args d = step_args;
		d.sample0 += (uint64_t)at;
		dropout_run(3, GT_F32, &attr, d, n, PER, x, parts + at * PER);
	}
	CHECK(!memcmp(whole, parts, sizeof whole));
	/* Two ranks that take every other sample. */
	for (int r = 0; r < 2; r++) {
		struct gt_step_args d = step_args;
		d.sample0 += (uint64_t)r;
		d.stride = 2;
		dropout_run(2, GT_F32, &attr, d, N / 2, PER, x, ranks);
		for (int i = 0; i < N / 2; i++)
			CHECK(!memcmp(ranks + i * PER, whole + (2 * i + r) * PER, PER * sizeof(float)));
	}
	/* In place is the same; the gradient draws the mask again. */
	memcpy(parts, x, sizeof x);
	dropout_run(1, GT_F32, &attr, step_args, N, PER, parts, parts);
	CHECK(!memcmp(whole, parts, sizeof whole));
	struct gt_step_args variants[4] = {step_args, step_args, step_args, step_args};
	variants[0].seed++;
	variants[1].epoch++;
	variants[2].sample0 += N;
	variants[3].sample0 += 1ull << 32;
	for (int v = 0; v < 5; v++) {
		int same = 0;
		dropout_run(1, GT_F32, v < 4 ? &attr : &other, v < 4 ? variants[v] : step_args, N, PER, x, parts);
		for (int i = 0; i < N * PER; i++)
			same += (parts[i] == 0) == (whole[i] == 0);
		/* Independent masks agree with probability p^2 + (1-p)^2 = 0.52; five standard deviations. */
		CHECK_MSG(fabs(same - 0.52 * N * PER) < 5 * sqrt(0.52 * 0.48 * N * PER), "variant %d: %d of %d agree", v, same, N * PER);
	}
	attr.train = false;
	dropout_run(1, GT_F32, &attr, step_args, N, PER, x, parts);
	CHECK(!memcmp(x, parts, sizeof x));
}
/* The words stand where ew.h says: what CUDA's kernel must draw too. */
TEST(dropout_uses_the_documented_counters)
{
	struct gt_attr_dropout attr = {.p = 0.5, .layer = 9, .train = true};
	struct gt_step_args step_args = {.seed = 0x123456789abcdef0, .epoch = 4, .sample0 = (5ull << 32) + 6, .stride = 3};
	float x[2 * 11], y[2 * 11];
	for (int i = 0; i < 22; i++)
		x[i] = 1;
	dropout_run(1, GT_F32, &attr, step_args, 2, 11, x, y);
	for (uint32_t s = 0; s < 2; s++)
		for (uint32_t i = 0; i < 11; i++) {
			struct gt_philox r = gt_rng_draw(gt_rng_key(step_args.seed, GT_RNG_DROPOUT, 9), 4, 6 + 3 * s, 5, i / 4);
			CHECK(y[s * 11 + i] == (gt_rng_uniform(r.v[i % 4]) >= 0.5f ? 2.0f : 0.0f));
		}
}

/* Channels and whole samples share one decision, whatever the batch, and the words stand where ew.h says. */
static void check_units(int C)
{
	enum { N = 6, P = 5 };
	static const int units[] = {GT_DROP_CHANNELS, GT_DROP_SAMPLES};
	struct gt_step_args step_args = {.seed = 11, .epoch = 2, .sample0 = 40, .stride = 3};
	for (size_t t = 0; t < 3; t++)
		for (int u = 0; u < 2; u++) {
			enum gt_dtype type = raw_types[t];
			struct gt_attr_dropout attr = {.p = 0.25, .unit = units[u], .layer = 7, .train = true};
			struct gt_tdesc dx = gt_tdesc_make(type, 4, (int64_t[]){N, C, P, 1}, true), dy = dx;
			struct gt_opcall call = {.code = GT_OP_DROPOUT, .attr = &attr, .nin = 1, .nout = 1, .in = {&dx}, .out = {&dy}};
			void *x = NEW(type, N * C * P), *y = NEW(type, N * C * P);
			int dropped = 0, kept = 0, wrong = 0;
			for (int i = 0; i < N * C * P; i++)
				number_put(type, x, i, 3);
			raw_run(2, &call, (void *[]){x}, (void *[]){y}, &step_args);
			for (int s = 0; s < N; s++)
				for (int i = 0; i < C * P; i++) {
					uint32_t unit = u ? 0 : (uint32_t)(i % C); /* channels last */
					struct gt_philox r = gt_rng_draw(gt_rng_key(11, GT_RNG_DROPOUT, 7), 2, 40 + 3 * (uint32_t)s, 0, unit / 4);
					bool keep = gt_rng_uniform(r.v[unit % 4]) >= 0.25f;
					wrong += gt_load_number(type, y, s * C * P + i) != (keep ? 4 : 0); /* 3 / 0.75 is exact in every type */
					kept += keep, dropped += !keep;
				}
			CHECK_MSG(!wrong && kept && dropped, "unit %d: %d elements differ, %d dropped", units[u], wrong, dropped);
			raw_run(1, &call, (void *[]){x}, (void *[]){x}, &step_args);
			CHECK(!memcmp(x, y, (size_t)(N * C * P) * gt_dtype_size(type)));
			free(x), free(y);
		}
}

/* As many channels as fill a part of a block, so that several pixels share it, and more than a block has. */
TEST(dropout_of_channels_and_samples)
{
	check_units(67);
	check_units(400);
	check_units(1030);
}
RUN_TESTS()
