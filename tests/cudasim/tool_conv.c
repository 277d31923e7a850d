/* Convolutions of the CUDA backend against the CPU backend. Run by test_cudasim.sh on the host's cuDNN and by tests/gpu/check.sh. */
#include "pair.h"
#include <string.h>

/* N, C, H, W, K, kh, kw, stride, padding, dilation, groups. The last have more pixels than one slice of a bias's gradient. */
static const int64_t shapes[][11] = {
    {2, 4, 7, 6, 5, 3, 3, 1, 1, 1, 1},   {1, 1, 5, 5, 1, 1, 1, 1, 0, 1, 1}, {3, 8, 9, 7, 16, 3, 2, 2, 1, 1, 1},
    {2, 6, 8, 8, 9, 3, 3, 1, 2, 2, 3},   {2, 8, 6, 6, 8, 3, 3, 2, 1, 1, 8}, {3, 3, 31, 31, 33, 2, 2, 1, 0, 1, 1},
    {9, 2, 41, 40, 7, 1, 1, 1, 0, 1, 1},
};

/* pad: with padded channels of x, where CUDA supports them. */
static void conv_as_on_the_cpu(bool pad)
{
	static const enum gt_opcode codes[] = {GT_OP_CONV2D, GT_OP_CONV2D_DX, GT_OP_CONV2D_DW};
	for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
		for (int t = 0; t < 3; t++)
			for (int c = 0; c < 3; c++)
				for (int v = 0; v < 4; v++) {
					const int64_t *a = shapes[s];
					bool fwd = c == 0, dx = c == 1, dw = c == 2, half = pair_types[t] != GT_F32;
					int64_t p = (a[2] + 2 * a[8] - a[9] * (a[5] - 1) - 1) / a[7] + 1,
					        q = (a[3] + 2 * a[8] - a[9] * (a[6] - 1) - 1) / a[7] + 1;
					int64_t x[4] = {a[0], a[1], a[2], a[3]}, w[4] = {a[4], a[1] / a[10], a[5], a[6]}, y[4] = {a[0], a[4], p, q};
					struct gt_attr_conv2d attr = {.out = a[4],
					                              .kernel = {a[5], a[6]},
					                              .stride = {a[7], a[7]},
					                              .padding = {a[8], a[8]},
					                              .dilation = {a[9], a[9]},
					                              .groups = a[10],
					                              .bias = v % 2,
					                              .act = fwd && v / 2 ? GT_ACT_RELU : GT_ACT_NONE};
					struct pair_job j = {.call = {.code = codes[c], .attr = &attr}};
					if ((dx && v) || (pad && (dx || !half || a[10] != 1 || a[1] % GT_CHANNEL_PAD == 0)))
						continue;
					pair_tensor(&j, false, pair_types[t], 4, fwd ? x : y, NULL);
					if (pad && fwd)
						pair_pad(&j, false);
					pair_tensor(&j, false, pair_types[t], 4, dw ? x : w, NULL);
					if (pad && dw)
						pair_pad(&j, false);
					if (fwd && v % 2)
						pair_tensor(&j, false, GT_F32, 1, &a[4], NULL);
					pair_tensor(&j, true, dw ? GT_F32 : pair_types[t], 4, fwd ? y : dx ? x : w, NULL);
					if (dw && v % 2)
						pair_tensor(&j, true, GT_F32, 1, &a[4], NULL);
					if (dw && v / 2)
						j.call.accumulate = v % 2 ? 3 : 1;
					/* f32: y and dx are sums of at most 72 products of up to 9; dw is one of up to 14,760, whose partial sums are of
					 * sqrt(14760) * 3 = 360, each rounded by 2^-24 of that: sqrt(14760) of them make 2.6e-3. 16 bits: one step of rounding
					 * of y, one of the bias that is rounded first; one of dw, relative to itself. bf16 has 2^-8. */
					pair_compare2(&j, dw ? half ? 0x1p-7 : 2.6e-3 : 1e-4, 3 * 0x1p-7, pad ? "padded" : "conv");
					pair_free(&j);
				}
}

TEST(conv)
{
	conv_as_on_the_cpu(false);
	pair_report(189);
}

TEST(conv_of_padded_channels)
{
	conv_as_on_the_cpu(true);
	pair_report(64);
}

TEST(padded_channels_are_for_16_bits_without_groups)
{
	for (int t = 0; t < 3; t++)
		for (int groups = 1; groups < 3; groups++) {
			struct gt_attr_conv2d attr = {.out = 4, .kernel = {1, 1}, .stride = {1, 1}, .dilation = {1, 1}, .groups = groups};
			struct pair_job j = {.call = {.code = GT_OP_CONV2D, .attr = &attr}};
			pair_tensor(&j, false, pair_types[t], 4, (int64_t[]){1, 2, 3, 3}, NULL);
			pair_pad(&j, false);
			pair_tensor(&j, false, pair_types[t], 4, (int64_t[]){4, 2 / groups, 1, 1}, NULL);
			pair_tensor(&j, true, pair_types[t], 4, (int64_t[]){1, 4, 3, 3}, NULL);
			const char *why = pair_refused_cuda(&j);
			bool refused = t == 0 || groups == 2;
			CHECK_MSG(refused ? strstr(why, "padded channels") != NULL : !*why, "%s, %d groups: %s", gt_dtype_name(pair_types[t]), groups,
			          why);
			pair_free(&j);
		}
}

RUN_TESTS()
