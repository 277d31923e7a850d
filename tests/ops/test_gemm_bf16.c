/* The product of kernels/cpu/gemm_bf16.h against a loop with the same order of the sum, bit for bit: sizes around the tiles, transposed
 * operands, symmetric results, and any division among threads. */
/* tests/run: beside others */
#include "cpu/gemm_bf16.c"
#include "base/philox.h"
#include "test.h"
#include <stdlib.h>

static int64_t parts; /* into how many pieces a loop is divided; they run in reverse order */

void gt_cpu_for(const struct gt_dev *dev, int64_t n, int64_t grain, int64_t align, gt_range_fn *fn, const void *ctx)
{
	int64_t units = (n + align - 1) / align;
	(void)dev, (void)grain;
	for (int64_t i = parts - 1; i >= 0; i--) {
		int64_t begin = units * i / parts * align, end = units * (i + 1) / parts * align;
		if (begin < end)
			fn(ctx, begin, end < n ? end : n);
	}
}

static float *make_matrix(int64_t n, uint32_t stream)
{
	float *p = malloc((size_t)n * sizeof *p);
	for (int64_t i = 0; i < n; i++)
		p[i] = gt_bf16_to_f32(gt_bf16_from_f32(2 * gt_rng_uniform(gt_philox4x32((uint32_t)i, stream, 0, 0, 1, 2).v[0]) - 1));
	return p;
}

static void check_product(struct gt_gemm_bf16 g)
{
	float *a = make_matrix(g.m * g.k, 1), *b = g.symmetric ? a : make_matrix(g.k * g.n, 2), *c = make_matrix(g.m * g.n, 3);
	float *want = malloc((size_t)(g.m * g.n) * sizeof *want);
	for (int64_t i = 0; g.symmetric && i < g.m; i++) /* what is added is symmetric as well */
		for (int64_t j = 0; j < i; j++)
			c[i * g.n + j] = c[j * g.n + i];
	for (int64_t i = 0; i < g.m; i++)
		for (int64_t j = 0; j < g.n; j++) {
			float sum = 0;
			for (int64_t l = 0; l < g.k; l++)
				sum = fmaf(a[g.ta == 'N' ? i * g.k + l : l * g.m + i], b[g.tb == 'N' ? l * g.n + j : j * g.k + l], sum);
			sum *= g.alpha;
			want[i * g.n + j] = gt_bf16_to_f32(gt_bf16_from_f32(g.beta == 0 ? sum : sum + g.beta * c[i * g.n + j]));
		}
	float *out = malloc((size_t)(g.m * g.n) * sizeof *out);
	for (parts = 1; parts < 8; parts += 3) {
		void *scratch = aligned_alloc(64, (gt_gemm_bf16_scratch(g.m, g.n, g.k) + 63) / 64 * 64);
		memset(scratch, 0x7f, gt_gemm_bf16_scratch(g.m, g.n, g.k));
		memcpy(out, c, (size_t)(g.m * g.n) * sizeof *out);
		g.a = a, g.b = b, g.c = out;
		gt_gemm_bf16_run(NULL, &g, scratch);
		int64_t bad = 0;
		for (int64_t i = 0; i < g.m * g.n; i++)
			bad += out[i] != want[i];
		CHECK_MSG(!bad, "%c%c %lld x %lld x %lld, beta %g%s, %lld parts: %lld elements differ", g.ta, g.tb, (long long)g.m, (long long)g.n,
		          (long long)g.k, (double)g.beta, g.symmetric ? ", symmetric" : "", (long long)parts, (long long)bad);
		free(scratch);
	}
	free(a), free(c), free(want), free(out);
	if (!g.symmetric)
		free(b);
}

TEST(products_have_the_bits_of_a_loop)
{
	static const int64_t sizes[] = {1, 7, 17, 64, 65, 130};
	if (!gt_gemm_bf16_supported()) {
		test_skip("this processor has not the instructions");
		return;
	}
	for (int m = 0; m < 6; m++)
		for (int n = 0; n < 6; n++)
			for (int k = 0; k < 6; k++)
				check_product((struct gt_gemm_bf16){.ta = (m + n) % 2 ? 'T' : 'N', .tb = (n + k) % 2 ? 'T' : 'N', .m = sizes[m],
				                                    .n = sizes[n], .k = sizes[k] * 3 - 2, .alpha = k % 2 ? 1 : 2.0315f,
				                                    .beta = m % 2 ? 0 : -4.775f});
	for (int m = 0; m < 6; m++)
		for (int k = 0; k < 6; k++)
			for (int t = 0; t < 2; t++)
				check_product((struct gt_gemm_bf16){.ta = t ? 'T' : 'N', .tb = t ? 'N' : 'T', .m = sizes[m], .n = sizes[m], .k = sizes[k],
				                                    .alpha = 1, .beta = k % 2 ? 0 : 3.4445f, .symmetric = true});
}

RUN_TESTS()
