/* Attention on the CUDA backend against the CPU backend: heads around every width that has a kernel, sequences around the blocks and tiles
 * of each, with and without lengths and a causal mask. With TEST_CUDNN_ATTENTION=ordered or unordered (pair.c), 16-bit calls with heads of
 * 8, 16, 24, ... features are computed by cuDNN. What runs this: test_cudasim.sh. */
#include "pair.h"
#include <math.h>
#include <stdlib.h>

static const int64_t widths[] = {1, 3, 8, 15, 16, 17, 32, 33, 63, 64, 65, 100, 128};
static const int64_t tokens[] = {1, 16, 17, 33, 64, 65, 130, 257};
enum { WIDTHS = sizeof widths / sizeof *widths, TOKENS = sizeof tokens / sizeof *tokens };
enum { LENGTHS = 1, CAUSAL = 2, MASKS = 4 };

static int32_t *lengths_of(int64_t samples, int64_t t)
{
	const int64_t some[] = {t, 0, (t + 1) / 2, 1};
	int32_t *p = malloc((size_t)samples * sizeof *p);
	for (int64_t i = 0; i < samples; i++)
		p[i] = (int32_t)some[i % 4];
	return p;
}

/* Adds numbers in [-3, 3) times `factor`: scores of wide heads would otherwise leave one key all the weight. */
static void numbers(struct pair_job *j, enum gt_dtype t, const int64_t dim[3], uint32_t seed, double factor)
{
	int64_t n = dim[0] * dim[1] * dim[2];
	void *p = pair_filled(t, n, seed);
	pair_scale(t, p, n, factor, 0);
	pair_tensor(j, false, t, 3, dim, p);
}

static void compare(enum gt_opcode code, int64_t samples, int64_t heads, int64_t d, int64_t t, enum gt_dtype type, int mask)
{
	struct gt_attr_attention attr = {.heads = heads, .causal = mask & CAUSAL};
	struct pair_job j = {.call = {.code = code, .attr = &attr}};
	const int64_t y[3] = {samples, t, heads * d}, qkv[3] = {samples, t, 3 * heads * d}, lse[3] = {samples, heads, t};
	bool back = code == GT_OP_ATTENTION_DX, fused = getenv("TEST_CUDNN_ATTENTION");
	char what[96];
	snprintf(what, sizeof what, "%d heads of %d, %d tokens, mask %d", (int)heads, (int)d, (int)t, mask);
	if (back)
		numbers(&j, type, y, 1, 0.5);
	numbers(&j, type, qkv, 2, 0.5);
	if (back)
		numbers(&j, type, y, 3, 0.5);
	if (mask & LENGTHS)
		pair_tensor(&j, false, GT_I32, 1, &samples, lengths_of(samples, t));
	else
		pair_absent(&j, false);
	if (back) { /* any numbers will do, if no weight exp(score - lse) is large; for cuDNN, weights that f16 can represent */
		float *p = pair_filled(GT_F32, samples * heads * t, 4);
		pair_scale(GT_F32, p, samples * heads * t, fused ? 0.1 : 1, fused ? 1 + log((double)t) : 12);
		pair_tensor(&j, false, GT_F32, 3, lse, p);
	}
	pair_tensor(&j, true, type, 3, back ? qkv : y, NULL);
	if (!back)
		pair_tensor(&j, true, GT_F32, 3, lse, NULL);
	/* f32: sums of up to 257 keys in another order, 2^-24 each, and another exp. 16 bits: a step where a result is near a tie; cuDNN also
	 * rounds the weights of the keys, and their gradients, before it adds up products of up to 257 of them. */
	pair_compare2(&j, 2e-5, (type == GT_BF16 ? 0x1p-7 : 0x1p-10) * (fused ? 2 : 1), what);
	pair_free(&j);
}

/* cuDNN compiles a kernel for each shape, which takes a second on a GPU. */
static bool only_few(void)
{
	return getenv("TEST_CUDNN_ATTENTION") && getenv("PAIR_GPU");
}

static void all(enum gt_opcode code)
{
	bool few = only_few();
	int n = 0;
	for (int w = 0; w < WIDTHS; w++)
		for (int t = 0; t < TOKENS; t++)
			for (int mask = 0; mask < MASKS; mask++, n++)
				if (few ? (widths[w] == 8 || widths[w] % 64 == 0) && (tokens[t] == 17 || tokens[t] == 257)
				        : tokens[t] < 100 || mask == n / 4 % MASKS) /* long ones take the simulator milliseconds */
					compare(code, mask & LENGTHS ? 4 : 1, 1 + n % 3, widths[w], tokens[t],
					        few ? pair_types[1 + n % 2] : pair_types[n % 7 % 3], mask);
}

TEST(attention)
{
	all(GT_OP_ATTENTION);
}

TEST(attention_gradients)
{
	all(GT_OP_ATTENTION_DX);
}

TEST(report)
{
	pair_report(only_few() ? 48 : 600);
}

RUN_TESTS()
