/* Operations on sequences on the CUDA backend against the CPU backend: lengths and widths around every vector, block and piece of a sum.
 * What runs this: test_cudasim.sh. */
#include "pair.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A result of 16 bits that is on the other side of a tie: one rounding step of a number below 1. */
static double step_of(enum gt_dtype t)
{
	return t == GT_BF16 ? 0x1p-7 : 0x1p-10;
}

/* ---- positional.dw --------------------------------------------------------------------------------------------------------------- */
/* Samples and tokens around the rows that one kernel sums alone (1024), and samples around those that a thread reads at once. A table has
 * the rows of the tokens, or more: then the other rows become 0. The sums have up to 3,000 terms of order 1 in another order. */
TEST(gradients_of_tables_of_positions)
{
	static const int64_t shapes[][3] = {{1, 1, 1},   {7, 5, 67},   {8, 5, 64},  {9, 4, 8},  {23, 3, 33},
	                                    {16, 64, 7}, {25, 41, 24}, {3, 1000, 5}, {2, 600, 264}};
	for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
		for (int t = 0; t < 12; t++) {
			bool same = t / 3 % 2;
			const int64_t *dy = shapes[s], table[2] = {(same ? 1 : dy[1]) + (s + t) % 3, dy[2]};
			struct gt_attr_positional attr = {table[0], same ? GT_POSITIONAL_SAME : GT_POSITIONAL_LEARNED};
			struct pair_job j = {.call = {.code = GT_OP_POSITIONAL_DW, .attr = &attr, .accumulate = t / 6}};
			pair_tensor(&j, false, pair_types[t % 3], 3, dy, NULL);
			pair_tensor(&j, true, GT_F32, 2, table, NULL);
			pair_compare(&j, 2e-5, same ? "same" : "learned");
			j.shift = gt_dtype_size(pair_types[t % 3]);
			pair_compare(&j, 2e-5, same ? "same, off 16 bytes" : "learned, off 16 bytes");
			pair_free(&j);
		}
}

/* ---- permute, select ------------------------------------------------------------------------------------------------------------- */
/* Dimensions around a tile of 32 and around a vector, some of size 1, in every order. Attributes name dimensions of the tensor; its memory
 * has the order of the dimensions for rank 3, and channels last for rank 4. */
TEST(permutations)
{
	static const int64_t shapes[][4] = {{2, 3, 5, 7},   {3, 33, 65, 1}, {2, 1, 40, 16},  {1, 64, 3, 32}, {5, 16, 17, 8},
	                                    {2, 32, 32, 4}, {1, 1, 1, 1},   {70, 1, 31, 33}, {2, 8, 6, 64}};
	for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
		for (int rank = 3; rank <= 4; rank++)
			for (int order = 0; order < (rank == 3 ? 27 : 256); order++) {
				struct gt_attr_permute attr = {{.n = rank}};
				int64_t y[4];
				int seen = 0;
				for (int k = 0, left = order; k < rank; k++, left /= rank) {
					attr.dims.v[k] = left % rank;
					y[k] = shapes[s][left % rank];
					seen |= 1 << left % rank;
				}
				if (seen != (1 << rank) - 1)
					continue;
				enum gt_dtype t = pair_types[(s + order) % 2];
				struct pair_job j = {.call = {.code = GT_OP_PERMUTE, .attr = &attr}};
				pair_tensor(&j, false, t, rank, shapes[s], NULL);
				pair_tensor(&j, true, t, rank, y, NULL);
				pair_compare(&j, 0, "");
				if (order % 3 == 0) {
					j.shift = gt_dtype_size(t);
					pair_compare(&j, 0, "off 16 bytes");
				}
				pair_free(&j);
			}
}

TEST(selections)
{
	static const int64_t shapes[][3] = {{3, 5, 7}, {2, 6, 64}, {9, 1, 33}, {4, 8, 8}, {1, 2, 1}};
	for (int s = 0; s < 5; s++)
		for (int v = 0; v < 12; v++) {
			const int64_t *x = shapes[s], dim = 1 + v % 2, y[2] = {x[0], x[3 - dim]};
			struct gt_attr_select attr = {dim, v / 2 % 2 ? x[dim] - 1 : 0};
			bool back = v / 4 % 2;
			enum gt_dtype t = pair_types[(s + v) % 3];
			struct pair_job j = {.call = {.code = back ? GT_OP_SELECT_DX : GT_OP_SELECT, .attr = &attr}};
			pair_tensor(&j, false, t, back ? 2 : 3, back ? y : x, NULL);
			pair_tensor(&j, true, t, back ? 3 : 2, back ? x : y, NULL);
			pair_compare(&j, 0, "");
			j.shift = gt_dtype_size(t);
			pair_compare(&j, 0, "off 16 bytes");
			pair_free(&j);
		}
}

/* ---- lstm, gru ------------------------------------------------------------------------------------------------------------------- */
static void scaled(struct pair_job *j, bool out, enum gt_dtype t, int rank, const int64_t *dim, uint32_t seed, double factor)
{
	int64_t n = 1;
	for (int i = 0; i < rank; i++)
		n *= dim[i];
	void *p = pair_filled(t, n, seed);
	pair_scale(t, p, n, factor, 0);
	pair_tensor(j, out, t, rank, dim, p);
}

/* kind: bits: lengths, bias or the outputs of the gradient that may be absent, reverse */
static void steps(enum gt_opcode code, const int64_t *shape, enum gt_dtype t, int kind)
{
	bool back = code == GT_OP_LSTM_STEPS_DX || code == GT_OP_GRU_STEPS_DX, gru = code == GT_OP_GRU_STEPS || code == GT_OP_GRU_STEPS_DX;
	int64_t n = shape[0], tokens = shape[1], h = shape[2], g = (gru ? 3 : 4) * h;
	const int64_t wide[3] = {n, tokens, g}, y[3] = {n, tokens, h}, w[2] = {g, h};
	struct gt_attr_rnn attr = {.reverse = kind & 4};
	struct pair_job j = {.call = {.code = code, .attr = &attr}};
	char what[64];
	snprintf(what, sizeof what, "%s of %d x %d, %d units, kind %d", gru ? "gru" : "lstm", (int)n, (int)tokens, (int)h, kind);
	scaled(&j, false, t, 3, back ? y : wide, 1, 0.5);
	if (back) {
		scaled(&j, false, t, 3, y, 2, 0.3);
		scaled(&j, false, GT_F32, 3, wide, 3, 0.3);
		scaled(&j, false, GT_F32, 3, y, 4, 0.3);
	}
	if (kind & 1) {
		int32_t *length = malloc((size_t)n * sizeof *length);
		for (int64_t i = 0; i < n; i++)
			length[i] = (int32_t)(i * 3 % (tokens + 1));
		pair_tensor(&j, false, GT_I32, 1, &n, length);
	} else {
		pair_absent(&j, false);
	}
	scaled(&j, false, t, 2, w, 5, 0.4 / sqrt((double)h));
	if (!back && kind & 2)
		scaled(&j, false, GT_F32, 1, &g, 6, 0.2);
	else if (!back)
		pair_absent(&j, false);
	pair_tensor(&j, true, t, 3, back ? wide : y, NULL);
	if (!back) {
		pair_tensor(&j, true, GT_F32, 3, wide, NULL);
		pair_tensor(&j, true, GT_F32, 3, y, NULL);
	} else if (kind & 2) {
		pair_tensor(&j, true, t, 3, y, NULL);
		if (gru)
			pair_tensor(&j, true, t, 3, wide, NULL);
	}
	/* f32: sums of up to 2,400 products of order 0.1 in another order. 16 bits: a hidden state that is rounded the other way at one step
	 * changes the later ones. */
	pair_compare2(&j, t == GT_F32 ? 2e-5 : 4 * step_of(t), 4 * step_of(t), what);
	pair_free(&j);
}

/* Units around a warp, the parts of a block and the units that have their states in shared memory; samples around the numbers for which a
 * block takes 1, 2 or 4 of them. */
TEST(steps_of_lstm_and_gru)
{
	static const enum gt_opcode codes[] = {GT_OP_LSTM_STEPS, GT_OP_LSTM_STEPS_DX, GT_OP_GRU_STEPS, GT_OP_GRU_STEPS_DX};
	static const int64_t shapes[][3] = {{1, 1, 1},  {3, 4, 7},   {5, 3, 32},  {2, 5, 33},   {133, 2, 5}, {265, 2, 3},
	                                    {2, 3, 63}, {1, 2, 130}, {2, 2, 260}, {49, 2, 200}, {1, 2, 512}, {1, 2, 517}};
	for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
		for (int c = 0; c < 4; c++)
			for (int kind = 0; kind < 8; kind++)
				if ((shapes[s][2] < 100 && shapes[s][0] < 100) || kind == (s + 3 * c) % 8)
					steps(codes[c], shapes[s], pair_types[(s + c + kind) % 3], kind);
}

TEST(report)
{
	pair_report(1000);
}

RUN_TESTS()
