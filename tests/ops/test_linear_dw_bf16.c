/* The gradients of kernels/cpu/linear_dw_bf16.c against loops with the same order of the sums: bit for bit, on one thread and three, with
 * sizes around blocks up to the largest batch, both orders of the blocks, stored and added. */
/* tests/run: beside others */
#include "clones.h"
#include "cpu_raw.h"
#include "ew.h"
#include <stdlib.h>
#include <string.h>

#define DB_ROWS 64

struct shape {
	int64_t m, in, out;
	uint8_t block_out;
	bool inputs_first, add;
};

static float *sum_products(const struct shape *s, const uint16_t *dy, const uint16_t *x, const float *before)
{
	float *want = malloc((size_t)(s->in * s->out) * sizeof *want);
	for (int64_t o = 0; o < s->out; o++)
		for (int64_t i = 0; i < s->in; i++) {
			float sum = 0;
			for (int64_t k = 0; k < s->m; k++)
				sum = fmaf(gt_bf16_to_f32(dy[k * s->out + o]), gt_bf16_to_f32(x[k * s->in + i]), sum);
			want[o * s->in + i] = s->add ? before[o * s->in + i] + sum : sum;
		}
	return want;
}

static float *sum_rows(const struct shape *s, const uint16_t *dy, const float *before)
{
	float *want = malloc((size_t)s->out * sizeof *want);
	for (int64_t o = 0; o < s->out; o++) {
		double total = 0;
		for (int64_t r = 0; r < s->m; r += DB_ROWS) {
			float sum = 0;
			for (int64_t k = r; k < r + DB_ROWS && k < s->m; k++)
				sum += gt_bf16_to_f32(dy[k * s->out + o]);
			total += (double)sum;
		}
		want[o] = (float)total + (s->add ? before[o] : 0);
	}
	return want;
}

static void check_shape(const struct shape *s)
{
	struct gt_tdesc dy = gt_tdesc_make(GT_BF16, 2, (int64_t[]){s->m, s->out}, false);
	struct gt_tdesc x = gt_tdesc_make(GT_BF16, 2, (int64_t[]){s->m, s->in}, false);
	struct gt_tdesc dw = gt_tdesc_make(GT_F32, 2, (int64_t[]){s->out, s->in}, false), db = gt_tdesc_make(GT_F32, 1, &s->out, false);
	struct gt_attr_linear attr = {.out = s->out, .bias = true};
	dw.layout = (struct gt_layout){
	    .order = {s->inputs_first, !s->inputs_first}, .nblk = 3, .blk_dim = {1, 0, 1}, .blk = {8, s->block_out, 2}};
	struct gt_opcall call = {.code = GT_OP_LINEAR_DW, .name = "fc", .attr = &attr, .nin = 2, .nout = 2, .in = {&dy, &x}, .out = {&dw, &db},
	                         .accumulate = s->add ? 3 : 0};
	void *in[] = {raw_alloc(GT_BF16, s->m * s->out), raw_alloc(GT_BF16, s->m * s->in)};
	float *before = raw_alloc(GT_F32, s->in * s->out), *bias = raw_alloc(GT_F32, s->out), *got = raw_alloc(GT_F32, s->in * s->out);
	float *packed = raw_alloc(GT_F32, gt_tdesc_padded(&dw)), *sums = raw_alloc(GT_F32, s->out);
	raw_random(GT_BF16, in[0], s->m * s->out, 1, -1, 1);
	raw_random(GT_BF16, in[1], s->m * s->in, 2, -1, 1);
	raw_random(GT_F32, before, s->in * s->out, 3, -1, 1);
	raw_random(GT_F32, bias, s->out, 4, -1, 1);
	float *want = sum_products(s, in[0], in[1], before), *want_db = sum_rows(s, in[0], bias);
	for (int threads = 1; threads <= 3; threads += 2) {
		int64_t bad = 0, padding = 0;
		memset(packed, 0xff, gt_tdesc_bytes(&dw));
		if (s->add)
			gt_tdesc_pack(&dw, before, packed);
		memcpy(sums, bias, (size_t)s->out * sizeof *sums);
		if (!raw_run(threads, &call, in, (void *[]){packed, sums}, NULL))
			break;
		gt_tdesc_unpack(&dw, packed, got);
		for (int64_t i = 0; i < s->in * s->out; i++)
			bad += gt_f32_bits(got[i]) != gt_f32_bits(want[i]);
		for (int64_t i = 0; i < s->out; i++)
			bad += gt_f32_bits(sums[i]) != gt_f32_bits(want_db[i]);
		for (int64_t i = 0; i < gt_tdesc_padded(&dw); i++)
			padding += packed[i] == 0;
		for (int64_t i = 0; i < s->in * s->out; i++)
			padding -= got[i] == 0;
		CHECK_MSG(!bad && padding == gt_tdesc_padded(&dw) - s->in * s->out,
		          "%lld x %lld x %lld, blocks of %d%s, %d threads: %lld elements differ, %lld of padding are 0", (long long)s->m,
		          (long long)s->in, (long long)s->out, s->block_out, s->add ? ", added" : "", threads, (long long)bad,
		          (long long)padding);
	}
	free(in[0]), free(in[1]), free(before), free(bias), free(got), free(packed), free(sums), free(want), free(want_db);
}

TEST(gradients_have_the_bits_of_their_sums)
{
	static const struct shape shapes[] = {
	    {1, 1, 1, 16, true, false},      {2, 16, 16, 16, true, false},    {7, 33, 30, 32, true, true},    {64, 100, 48, 48, false, false},
	    {65, 31, 65, 64, true, false},   {129, 48, 200, 64, false, true}, {1024, 17, 20, 32, true, false}, {1023, 20, 64, 64, true, false},
	    {513, 16, 70, 64, false, true}, {3, 200, 1040, 64, true, false},
	};
	if (!GT_CPU_BF16) {
		test_skip("this processor has no avx512_bf16");
		return;
	}
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		check_shape(&shapes[i]);
}

RUN_TESTS()
