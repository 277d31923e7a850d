/* Batch, layer and group normalisation and pooling of the CUDA backend against the CPU's, as tool_calls.c: one channel, one pixel, channels
 * that are no multiple of a vector, widths and heights around every tile, addresses off 16 bytes. */
#include "pair.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where a result of 16 bits falls on the other side of a tie: one step of a number below 4, relative to it. */
static double step_of(enum gt_dtype t)
{
	return t == GT_BF16 ? 0x1p-7 : 0x1p-10;
}

static float *positive(int64_t n, uint32_t seed)
{
	float *p = pair_filled(GT_F32, n, seed);
	for (int64_t i = 0; i < n; i++)
		p[i] = fabsf(p[i]) + 0.25f;
	return p;
}

/* ---- batchnorm ------------------------------------------------------------------------------------------------------------------- */
static const struct {
	int rank;
	int64_t dim[4];
} bn_shapes[] = {{2, {2, 1}},         {2, {5, 3}},          {2, {7, 8}},        {2, {128, 40}},      {2, {33, 520}},
                 {2, {1000, 1}},      {2, {3, 1026}},       {4, {2, 1, 1, 1}},  {4, {1, 1, 3, 3}},   {4, {4, 3, 5, 7}},
                 {4, {2, 8, 4, 4}},   {4, {3, 33, 2, 3}},   {4, {2, 64, 8, 8}}, {4, {1, 264, 7, 7}}, {4, {8, 24, 16, 16}},
                 {4, {2, 4, 65, 40}}, {4, {3, 2, 100, 31}}, {4, {9, 16, 1, 1}}, {4, {1, 128, 1, 9}}};
#define NBN (int)(sizeof bn_shapes / sizeof *bn_shapes)

/* The simulator takes milliseconds: one type, another one each time. */
static bool big(int shape)
{
	const int64_t *d = bn_shapes[shape].dim;
	return d[0] * d[1] * (bn_shapes[shape].rank == 4 ? d[2] * d[3] : 1) > 4000;
}

/* What a call has: bits of a number. */
enum { AFFINE = 1, RES = 2, RELU = 4, EVAL = 8, UNTRACKED = 16, NO_STATS = 32 };

static void batchnorm(int shape, enum gt_dtype t, int has, size_t shift, double offset, double tol)
{
	int rank = bn_shapes[shape].rank;
	const int64_t *dim = bn_shapes[shape].dim;
	int64_t c = dim[1], n = dim[0] * c * (rank == 4 ? dim[2] * dim[3] : 1);
	bool track = !(has & UNTRACKED);
	struct gt_attr_norm attr = {.eps = 1e-5,
	                            .momentum = 0.1,
	                            .affine = has & AFFINE,
	                            .track = track,
	                            .train = !(has & EVAL) || !track,
	                            .act = has & RELU ? GT_ACT_RELU : GT_ACT_NONE};
	struct pair_job j = {.call = {.code = GT_OP_BATCHNORM, .attr = &attr}, .shift = shift * gt_dtype_size(t)};
	int64_t *nbt = calloc(1, 8);
	char what[64];
	*nbt = 41;
	pair_tensor(&j, false, t, rank, dim, NULL);
	pair_scale(t, j.in[0], n, 1, offset);
	for (int i = 1; i < 5; i++) {
		pair_tensor(&j, false, GT_F32, 1, &c, i == 4 ? positive(c, 8) : NULL);
		if (i < 3 ? !attr.affine : !track)
			j.call.in[i] = NULL;
	}
	pair_tensor(&j, false, GT_I64, 0, NULL, nbt);
	if (!track)
		j.call.in[5] = NULL;
	if (has & RES)
		pair_tensor(&j, false, t, rank, dim, NULL);
	pair_tensor(&j, true, t, rank, dim, NULL);
	for (int i = 0; i < 2 && !(has & NO_STATS); i++)
		pair_tensor(&j, true, GT_F32, 1, &c, NULL);
	snprintf(what, sizeof what, "attributes %#x", (unsigned)has);
	pair_compare2(&j, tol, 2 * step_of(t), what);
	pair_free(&j);
}

/* y is at most 3 * (3 - -3) / sqrt(2^-17), for a channel whose two values lie together; usually it is of order 10. Statistics agree to a
 * few units of 2^-24 of numbers below 10 and y, with two more roundings, to 8 of them. 16 bits: fused sums round twice. */
TEST(batchnorm)
{
	static const int has[] = {AFFINE,
	                          0,
	                          AFFINE | RELU,
	                          AFFINE | RES,
	                          AFFINE | RES | RELU,
	                          RES,
	                          AFFINE | EVAL,
	                          EVAL | RES | RELU | AFFINE,
	                          UNTRACKED | AFFINE,
	                          UNTRACKED | EVAL | RELU,
	                          AFFINE | NO_STATS};
	for (int s = 0; s < NBN; s++)
		for (int t = 0; t < 3; t++)
			for (int k = 0; k < 11; k++) {
				if (big(s) && t != (s + k) % 3)
					continue;
				batchnorm(s, pair_types[t], has[k], 0, 0, 0x1p-20 * 8);
				if ((s + k) % 3 == 0)
					batchnorm(s, pair_types[t], has[k], 1, 0, 0x1p-20 * 8);
			}
}

static void batchnorm_y(int shape, enum gt_dtype t, int has, size_t shift)
{
	int rank = bn_shapes[shape].rank;
	const int64_t *dim = bn_shapes[shape].dim;
	int64_t c = dim[1], n = dim[0] * c * (rank == 4 ? dim[2] * dim[3] : 1);
	struct gt_attr_norm attr = {
	    .eps = 1e-5, .affine = has & AFFINE, .track = true, .train = true, .act = has & RELU ? GT_ACT_RELU : GT_ACT_NONE};
	struct pair_job j = {.call = {.code = GT_OP_BATCHNORM_Y, .attr = &attr}, .shift = shift * gt_dtype_size(t)};
	pair_tensor(&j, false, t, rank, dim, NULL);
	pair_scale(t, j.in[0], n, 1, 0);
	for (int i = 1; i < 5; i++) {
		pair_tensor(&j, false, GT_F32, 1, &c, i == 4 ? positive(c, 8) : NULL);
		if (i < 3 && !attr.affine)
			j.call.in[i] = NULL;
	}
	if (has & RES)
		pair_tensor(&j, false, t, rank, dim, NULL);
	pair_tensor(&j, true, t, rank, dim, NULL);
	pair_compare2(&j, 0x1p-20 * 8, 2 * step_of(t), "again"); /* as for batchnorm */
	pair_free(&j);
}

TEST(batchnorm_y)
{
	static const int has[] = {AFFINE, 0, AFFINE | RELU, AFFINE | RES | RELU, RES};
	for (int s = 0; s < NBN; s++)
		for (int t = 0; t < 3; t++)
			for (int k = 0; k < 5; k++)
				if (!big(s) || t == (s + k) % 3)
					batchnorm_y(s, pair_types[t], has[k], k % 2);
}

/* A mean 300 times the deviation: sums of squares in f32 would leave nothing of the variance (1000^2 * 2^-24 = 0.06 of 3 by one rounding,
 * and the roundings of thousands of terms add up). Statistics must agree as closely as ever: 2^-24 of the mean is 6e-5, which is what the
 * mean may differ by; times gamma / sqrt(3) of up to 2, and with the roundings of x * scale and mean * scale, numbers of 2000, y by 5e-4.
 */
TEST(batchnorm_small_variance_of_large_numbers)
{
	for (int s = 0; s < NBN; s++)
		if (bn_shapes[s].rank == 4 && s != 7)
			for (int k = 0; k < 2; k++)
				batchnorm(s, GT_F32, AFFINE, (size_t)k, 1000, 1e-3);
}

/* mask 0: none; 1: bn(x) > 0; 2: y > 0; | 4: dy so masked is wanted too */
static void batchnorm_dx(int shape, enum gt_dtype t, int mask, int has, uint32_t accumulate, size_t shift, double tol)
{
	int rank = bn_shapes[shape].rank;
	const int64_t *dim = bn_shapes[shape].dim;
	int64_t c = dim[1], n = dim[0] * c * (rank == 4 ? dim[2] * dim[3] : 1);
	struct gt_attr_norm attr = {.eps = 1e-5, .momentum = 0.1, .affine = has & AFFINE, .track = true, .train = !(has & EVAL)};
	struct pair_job j = {.call = {.code = GT_OP_BATCHNORM_DX, .attr = &attr, .accumulate = accumulate},
	                     .shift = shift * gt_dtype_size(t),
	                     .in_place = (shape + mask) % 2};
	char what[64];
	pair_tensor(&j, false, t, rank, dim, NULL);
	pair_tensor(&j, false, t, rank, dim, NULL);
	for (int i = 2; i < 5; i++)
		pair_tensor(&j, false, GT_F32, 1, &c, i == 4 ? positive(c, 8) : NULL);
	if (!(has & AFFINE))
		j.call.in[2] = NULL;
	if (mask % 4) {
		pair_tensor(&j, false, GT_F32, 1, &c, NULL);
		if (!(has & AFFINE))
			j.call.in[5] = NULL;
	}
	if (mask % 4 == 2) {
		pair_tensor(&j, false, t, rank, dim, NULL);
		for (int64_t i = 0; i < n; i += 3) /* a relu's output has zeros */
			memset((char *)j.in[6] + (size_t)i * gt_dtype_size(t), 0, gt_dtype_size(t));
	}
	pair_tensor(&j, true, t, rank, dim, NULL);
	for (int i = 0; i < 2; i++) {
		pair_tensor(&j, true, GT_F32, 1, &c, NULL);
		if (!(has & AFFINE))
			j.call.out[1 + i] = NULL;
	}
	if (mask & 4)
		pair_tensor(&j, true, t, rank, dim, NULL);
	snprintf(what, sizeof what, "mask %d, attributes %#x", mask, (unsigned)has);
	pair_compare2(&j, tol, 8 * step_of(t), what);
	pair_free(&j);
}

/* Sums of up to 10,000 products of up to 3 * 6 * 3.25 in f32 in another order, relative to results of their order or, where they cancel,
 * 1: 2^-24 * sqrt(10,000) * 58, a tenth of it measured. dx of 16 bits: terms of up to 3 * 3.25 * 3 cancel. */
TEST(batchnorm_dx)
{
	static const int masks[] = {0, 1, 5, 2, 6};
	for (int s = 0; s < NBN; s++)
		for (int t = 0; t < 3; t++)
			for (int m = 0; m < 5; m++)
				for (int k = 0; k < 3; k++) {
					if (big(s) && t != (s + m + k) % 3)
						continue;
					int has = k == 0 ? AFFINE : k == 1 ? 0 : AFFINE | EVAL;
					batchnorm_dx(s, pair_types[t], masks[m], has, has & AFFINE ? (uint32_t)(s % 4) * 2 : 0, 0, 3e-4);
					if ((s + m + k) % 4 == 0)
						batchnorm_dx(s, pair_types[t], masks[m], has, 0, 1, 3e-4);
				}
}

/* ---- batchnorm in pieces --------------------------------------------------------------------------------------------------------- */
/* n parts [3, c] of a few values each; the second one and every fifth is of none. */
static double *some_parts(int n, int64_t c)
{
	double *p = calloc((size_t)(n * 3 * c) + 1, 8);
	float *u = pair_filled(GT_F32, n * 3 * c, 21);
	for (int k = 0; k < n; k++)
		for (int64_t i = 0; i < c && (n == 1 || k % 5 != 1); i++) {
			p[k * 3 * c + i] = u[k * 3 * c + i];
			p[k * 3 * c + c + i] = fabsf(u[k * 3 * c + c + i]) * (float)(k + 2);
			p[k * 3 * c + 2 * c + i] = k + 2;
		}
	free(u);
	return p;
}

static void part(struct pair_job *j, bool out, int64_t c)
{
	pair_tensor(j, out, GT_F64, 2, (int64_t[]){3, c}, some_parts(1, c));
}

/* saved: with the outputs mean and rstd */
static void batchnorm_merge(int n, int64_t c, bool saved, bool track)
{
	struct gt_attr_norm attr = {.eps = 1e-5, .momentum = 0.1, .track = track, .train = true};
	struct pair_job j = {.call = {.code = GT_OP_BATCHNORM_MERGE, .attr = &attr}};
	int64_t *nbt = calloc(1, 8);
	*nbt = 41;
	if (n == 1)
		pair_tensor(&j, false, GT_F64, 2, (int64_t[]){3, c}, some_parts(n, c));
	else
		pair_tensor(&j, false, GT_F64, 3, (int64_t[]){n, 3, c}, some_parts(n, c));
	for (int i = 1; i < 3; i++)
		pair_tensor(&j, false, GT_F32, 1, &c, i == 2 ? positive(c, 8) : NULL);
	pair_tensor(&j, false, GT_I64, 0, NULL, nbt);
	for (int i = 1; i < 4 && !track; i++)
		j.call.in[i] = NULL;
	for (int i = 0; i < 2 && saved; i++)
		pair_tensor(&j, true, GT_F32, 1, &c, NULL);
	pair_compare(&j, 0, "merge"); /* both sides run the same lines in double, without fused multiply-adds */
	pair_free(&j);
}

TEST(batchnorm_merge)
{
	static const int parts[] = {1, 2, 3, 4, 5, 7, 8, 13, 64, 100};
	static const int64_t channels[] = {1, 7, 256, 300};
	for (int p = 0; p < 10; p++)
		for (int c = 0; c < 4; c++)
			for (int saved = 0; saved < 2; saved++)
				batchnorm_merge(parts[p], channels[c], saved, !saved || (p + c) % 3);
}

static void batchnorm_stats(int shape, enum gt_dtype t, bool empty, size_t shift)
{
	struct gt_attr_norm attr = {.eps = 1e-5, .train = true, .empty = empty};
	struct pair_job j = {.call = {.code = GT_OP_BATCHNORM_STATS, .attr = &attr}, .shift = shift * gt_dtype_size(t)};
	pair_tensor(&j, false, t, bn_shapes[shape].rank, bn_shapes[shape].dim, NULL);
	part(&j, true, bn_shapes[shape].dim[1]);
	pair_compare(&j, empty ? 0 : 0x1p-20 * 8, empty ? "of none" : ""); /* as for batchnorm, relative to the squares' sum */
	pair_free(&j);
}

TEST(batchnorm_parts)
{
	for (int s = 0; s < NBN; s++)
		for (int t = 0; t < 3; t++)
			for (int empty = 0; empty < 2; empty++)
				if (!big(s) || t == (s + empty) % 3)
					batchnorm_stats(s, pair_types[t], empty, (size_t)(s % 2));
}

/* As batchnorm_dx has it, in two halves. given: the second one, with the sums of twice as many values. */
static void batchnorm_half(int shape, enum gt_dtype t, int mask, bool given, bool affine, uint32_t accumulate)
{
	int rank = bn_shapes[shape].rank;
	const int64_t *dim = bn_shapes[shape].dim;
	int64_t c = dim[1], n = dim[0] * c * (rank == 4 ? dim[2] * dim[3] : 1);
	struct gt_attr_norm attr = {.eps = 1e-5, .momentum = 0.1, .affine = affine, .track = true, .train = true};
	struct pair_job j = {.call = {.code = given ? GT_OP_BATCHNORM_DX : GT_OP_BATCHNORM_SUMS, .attr = &attr, .accumulate = accumulate},
	                     .in_place = given && shape % 2};
	char what[64];
	for (int i = 0; i < 2; i++)
		pair_tensor(&j, false, t, rank, dim, NULL);
	for (int i = 2; i < 5; i++)
		pair_tensor(&j, false, GT_F32, 1, &c, i == 4 ? positive(c, 8) : NULL);
	if (!affine)
		j.call.in[2] = NULL;
	if (given) {
		double *sums = calloc((size_t)(3 * c), 8);
		float *u = pair_filled(GT_F32, 2 * c, 13);
		for (int64_t i = 0; i < 3 * c; i++)
			sums[i] = i < 2 * c ? u[i] * sqrt((double)(n / c)) : (double)(2 * n / c);
		free(u);
		for (int i = 0; i < 2; i++)
			pair_absent(&j, false);
		pair_tensor(&j, false, GT_F64, 2, (int64_t[]){3, c}, sums);
		pair_tensor(&j, true, t, rank, dim, NULL);
	} else {
		if (mask % 4)
			pair_tensor(&j, false, GT_F32, 1, &c, NULL);
		if (mask % 4 == 2)
			pair_tensor(&j, false, t, rank, dim, NULL);
		part(&j, true, c);
		for (int i = 0; i < 2; i++) {
			pair_tensor(&j, true, GT_F32, 1, &c, NULL);
			if (!affine)
				j.call.out[1 + i] = NULL;
		}
		if (mask & 4)
			pair_tensor(&j, true, t, rank, dim, NULL);
	}
	snprintf(what, sizeof what, "mask %d", mask);
	pair_compare2(&j, 3e-4, 8 * step_of(t), what); /* as for batchnorm_dx */
	pair_free(&j);
}

TEST(batchnorm_halves)
{
	static const int masks[] = {0, 1, 5, 2, 6};
	for (int s = 0; s < NBN; s++)
		for (int t = 0; t < 3; t++)
			for (int m = 0; m < 6; m++) {
				if (big(s) && t != (s + m) % 3)
					continue;
				bool affine = (s + m) % 3;
				batchnorm_half(s, pair_types[t], m < 5 ? masks[m] : 0, m == 5, affine, affine && m < 5 ? (uint32_t)(s % 4) * 2 : 0);
			}
}

/* ---- layernorm ------------------------------------------------------------------------------------------------------------------- */
static const struct {
	int rank;
	int64_t dim[4];
} ln_shapes[] = {{2, {1, 1}},        {2, {9, 2}},        {2, {3, 31}},       {2, {8, 32}},     {2, {4, 768}},
                 {2, {2, 513}},      {2, {700, 8}},      {2, {2, 1400}},     {2, {300, 40}},   {4, {2, 3, 4, 5}},
                 {4, {3, 16, 4, 4}}, {4, {2, 32, 8, 8}}, {4, {40, 1, 3, 2}}, {4, {3, 7, 1, 1}}};
#define NLN (int)(sizeof ln_shapes / sizeof *ln_shapes)

static void ln_param(struct pair_job *j, bool out, int shape, bool channels_last)
{
	static const uint8_t hwc[3] = {1, 2, 0};
	pair_tensor(j, out, GT_F32, ln_shapes[shape].rank - 1, ln_shapes[shape].dim + 1, NULL);
	struct gt_tdesc *d = out ? j->call.out[j->call.nout - 1] : j->call.in[j->call.nin - 1];
	if (channels_last && d->rank == 3)
		memcpy(d->layout.order, hwc, sizeof hwc);
}

/* Statistics to 2^-24 of a few, y (up to 3 * 3 * sqrt(1 / eps) / 2, where a row's values lie together) with two more roundings. */
TEST(layernorm)
{
	for (int s = 0; s < NLN; s++)
		for (int t = 0; t < 3; t++)
			for (int k = 0; k < 6; k++) { /* k % 3: not affine, plain parameters, channels last */
				struct gt_attr_norm attr = {.eps = 1e-5, .affine = k % 3};
				struct pair_job j = {.call = {.code = GT_OP_LAYERNORM, .attr = &attr}, .shift = k / 3 * gt_dtype_size(pair_types[t])};
				pair_tensor(&j, false, pair_types[t], ln_shapes[s].rank, ln_shapes[s].dim, NULL);
				for (int i = 0; i < 2; i++)
					if (k % 3)
						ln_param(&j, false, s, k % 3 == 2);
					else
						pair_absent(&j, false);
				pair_tensor(&j, true, pair_types[t], ln_shapes[s].rank, ln_shapes[s].dim, NULL);
				for (int i = 0; i < 2; i++)
					pair_tensor(&j, true, GT_F32, 1, ln_shapes[s].dim, NULL);
				pair_compare2(&j, 0x1p-20 * 2, step_of(pair_types[t]), "");
				pair_free(&j);
			}
}

/* Sums of up to 1,400 products of up to 3 * 3 * 20 in f32 for dx, 700 for the parameters, relative to their order: as for batchnorm.dx. */
TEST(layernorm_dx)
{
	for (int s = 0; s < NLN; s++)
		for (int t = 0; t < 3; t++)
			for (int k = 0; k < 6; k++) {
				struct gt_attr_norm attr = {.eps = 1e-5, .affine = k % 3};
				struct pair_job j = {.call = {.code = GT_OP_LAYERNORM_DX, .attr = &attr, .accumulate = k % 3 ? (uint32_t)(s % 4) * 2 : 0},
				                     .shift = k / 3 * gt_dtype_size(pair_types[t])};
				for (int i = 0; i < 2; i++)
					pair_tensor(&j, false, pair_types[t], ln_shapes[s].rank, ln_shapes[s].dim, NULL);
				if (k % 3)
					ln_param(&j, false, s, k % 3 == 2);
				else
					pair_absent(&j, false);
				pair_tensor(&j, false, GT_F32, 1, ln_shapes[s].dim, NULL);
				pair_tensor(&j, false, GT_F32, 1, ln_shapes[s].dim, positive(ln_shapes[s].dim[0], 5));
				pair_tensor(&j, true, pair_types[t], ln_shapes[s].rank, ln_shapes[s].dim, NULL);
				for (int i = 0; i < 2 && k % 3; i++)
					ln_param(&j, true, s, k % 3 == 2);
				pair_compare2(&j, 1e-4, 16 * step_of(pair_types[t]), "");
				pair_free(&j);
			}
}

/* ---- groupnorm ------------------------------------------------------------------------------------------------------------------- */
static const struct {
	int rank;
	int64_t dim[4], groups;
} gn_shapes[] = {{2, {1, 2}, 1},          {2, {5, 12}, 3},        {2, {3, 64}, 8},         {4, {2, 3, 5, 7}, 3},  {4, {2, 8, 4, 4}, 2},
                 {4, {2, 24, 3, 3}, 4},   {4, {1, 32, 8, 8}, 4},  {4, {2, 4, 16, 16}, 2}, {4, {1, 4, 16, 17}, 2}, {4, {3, 66, 2, 3}, 22},
                 {4, {2, 260, 2, 2}, 2}, {4, {7, 16, 33, 3}, 16}, {4, {40, 8, 1, 1}, 2}};

/* A sum has up to 512 terms of up to 3 * 3 * 20 for dx, and of up to 700 for the parameters: as for layernorm. */
TEST(groupnorm)
{
	for (size_t s = 0; s < sizeof gn_shapes / sizeof *gn_shapes; s++)
		for (int t = 0; t < 3; t++)
			for (int k = 0; k < 8; k++) { /* bits: affine, gradient, off 16 bytes */
				bool affine = k & 1, back = k & 2;
				const int64_t *dim = gn_shapes[s].dim, stats[2] = {dim[0], gn_shapes[s].groups};
				struct gt_attr_norm attr = {.eps = 1e-5, .affine = affine, .groups = gn_shapes[s].groups};
				struct pair_job j = {.call = {.code = back ? GT_OP_GROUPNORM_DX : GT_OP_GROUPNORM, .attr = &attr,
				                              .accumulate = back && affine ? (uint32_t)(s % 4) * 2 : 0},
				                     .shift = k & 4 ? gt_dtype_size(pair_types[t]) : 0};
				for (int i = 0; i <= back; i++)
					pair_tensor(&j, false, pair_types[t], gn_shapes[s].rank, dim, NULL);
				for (int i = back; i < 2; i++)
					if (affine)
						pair_tensor(&j, false, GT_F32, 1, dim + 1, NULL);
					else
						pair_absent(&j, false);
				for (int i = 0; i < 2 && back; i++)
					pair_tensor(&j, false, GT_F32, 2, stats, i ? positive(stats[0] * stats[1], 5) : NULL);
				pair_tensor(&j, true, pair_types[t], gn_shapes[s].rank, dim, NULL);
				for (int i = 0; i < 2 && (!back || affine); i++)
					pair_tensor(&j, true, GT_F32, back ? 1 : 2, back ? dim + 1 : stats, NULL);
				pair_compare2(&j, back ? 1e-4 : 0x1p-20 * 2, (back ? 16 : 1) * step_of(pair_types[t]), "");
				pair_free(&j);
			}
}

/* ---- pooling --------------------------------------------------------------------------------------------------------------------- */
static const struct window {
	int64_t in[2], kernel[2], stride[2], padding[2];
	bool ceil;
} windows[] = {
    {{4, 4}, {2, 2}, {2, 2}, {0, 0}, false},   {{5, 7}, {3, 3}, {2, 2}, {1, 1}, false},  {{9, 6}, {3, 2}, {1, 3}, {0, 1}, false},
    {{1, 1}, {1, 1}, {1, 1}, {0, 0}, false},   {{8, 8}, {8, 8}, {8, 8}, {0, 0}, false},  {{7, 7}, {3, 3}, {2, 2}, {1, 1}, true},
    {{6, 11}, {2, 4}, {3, 2}, {1, 2}, true},   {{10, 3}, {5, 3}, {1, 1}, {2, 1}, false}, {{33, 17}, {2, 2}, {2, 2}, {0, 0}, true},
    {{40, 40}, {3, 3}, {2, 2}, {1, 1}, false}, {{2, 9}, {2, 2}, {4, 5}, {1, 0}, false},  {{12, 70}, {4, 4}, {4, 4}, {0, 0}, false}};
static const int64_t adaptive[][4] = {{4, 4, 1, 1},     {7, 5, 3, 2}, {3, 3, 7, 5}, {8, 8, 4, 4},
                                      {10, 11, 10, 11}, {1, 1, 2, 3}, {13, 6, 5, 6}};
static const int64_t pool_channels[] = {1, 3, 4, 8, 12, 16, 33, 264};
#define NWINDOWS (int)(sizeof windows / sizeof *windows)
#define NADAPTIVE (int)(sizeof adaptive / sizeof *adaptive)

/* PyTorch's pooling_output_shape */
static int64_t outputs(const struct window *w, int d)
{
	int64_t span = w->in[d] + 2 * w->padding[d] - w->kernel[d], n = (span + (w->ceil ? w->stride[d] - 1 : 0)) / w->stride[d] + 1;
	return w->ceil && (n - 1) * w->stride[d] >= w->in[d] + w->padding[d] ? n - 1 : n;
}

/* A pixel of every output's window, another one each time. */
static int32_t *some_pixels(const int64_t *x, const int64_t *y, const struct window *w)
{
	int32_t *idx = malloc((size_t)(y[0] * y[1] * y[2] * y[3]) * 4);
	for (int64_t at = 0; at < y[0] * y[1] * y[2] * y[3]; at++) {
		int64_t o[2] = {at / y[1] / y[3] % y[2], at / y[1] % y[3]}, pick[2];
		for (int d = 0; d < 2; d++) {
			int64_t in = x[2 + d], out = y[2 + d], begin = o[d] * in / out, end = ((o[d] + 1) * in + out - 1) / out;
			if (w) {
				begin = o[d] * w->stride[d] - w->padding[d];
				end = begin + w->kernel[d];
			}
			begin = begin < 0 ? 0 : begin;
			end = end > in ? in : end;
			pick[d] = begin + at * 7 / 3 % (end - begin);
		}
		idx[at] = (int32_t)(pick[0] * x[3] + pick[1]);
	}
	return idx;
}

static void pool(enum gt_opcode code, const void *attr, const struct window *w, const int64_t *x, const int64_t *y, enum gt_dtype t,
                 size_t shift)
{
	bool back = code == GT_OP_MAXPOOL2D_DX || code == GT_OP_AVGPOOL2D_DX || code == GT_OP_ADAPTIVE_AVGPOOL2D_DX;
	bool max = code == GT_OP_MAXPOOL2D || code == GT_OP_MAXPOOL2D_DX || code == GT_OP_ADAPTIVE_MAXPOOL2D;
	struct pair_job j = {.call = {.code = code, .attr = attr}, .shift = shift * gt_dtype_size(t)};
	char what[96];
	pair_tensor(&j, false, t, 4, back ? y : x, NULL);
	if (max && back)
		pair_tensor(&j, false, GT_I32, 4, y, some_pixels(x, y, w));
	pair_tensor(&j, true, t, 4, back ? x : y, NULL);
	if (max && !back)
		pair_tensor(&j, true, GT_I32, 4, y, NULL);
	snprintf(what, sizeof what, "window %d, %lld channels", w ? (int)(w - windows) : -1, (long long)x[1]);
	/* Means: a product with a reciprocal instead of a division, one rounding more in each term of at most 3 * 20. */
	pair_compare2(&j, max ? 0 : 60 * 0x1p-24, max ? 0 : step_of(t), what);
	pair_free(&j);
}

TEST(pooling)
{
	static const enum gt_opcode codes[] = {GT_OP_MAXPOOL2D, GT_OP_MAXPOOL2D_DX, GT_OP_AVGPOOL2D, GT_OP_AVGPOOL2D_DX};
	for (int i = 0; i < NWINDOWS; i++)
		for (int k = 0; k < 4; k++)
			for (int t = 0; t < 3; t++)
				for (int c = 0; c < 8; c++) {
					const struct window *w = &windows[i];
					int64_t x[4] = {2, pool_channels[c], w->in[0], w->in[1]}, y[4] = {2, x[1], outputs(w, 0), outputs(w, 1)};
					struct gt_attr_pool2d attr = {
					    {w->kernel[0], w->kernel[1]}, {w->stride[0], w->stride[1]}, {w->padding[0], w->padding[1]}, w->ceil, (i + c) % 2};
					pool(codes[k], &attr, w, x, y, pair_types[t], (size_t)(c == 3));
				}
}

TEST(adaptive_pooling)
{
	static const enum gt_opcode codes[] = {GT_OP_ADAPTIVE_MAXPOOL2D, GT_OP_MAXPOOL2D_DX, GT_OP_ADAPTIVE_AVGPOOL2D,
	                                       GT_OP_ADAPTIVE_AVGPOOL2D_DX};
	for (int i = 0; i < NADAPTIVE; i++)
		for (int k = 0; k < 4; k++)
			for (int t = 0; t < 3; t++)
				for (int c = 0; c < 8; c++) {
					int64_t x[4] = {3, pool_channels[c], adaptive[i][0], adaptive[i][1]}, y[4] = {3, x[1], adaptive[i][2], adaptive[i][3]};
					struct gt_attr_adaptive attr = {{y[2], y[3]}};
					struct gt_attr_pool2d none = {{0}};
					pool(codes[k], k == 1 ? (void *)&none : &attr, NULL, x, y, pair_types[t], (size_t)(c == 5));
				}
}

/* ---- sums over the pixels of a sample -------------------------------------------------------------------------------------------- */
/* The mean over a whole image, and the gradients of values for each channel. Small batches of large images are divided among blocks. Sums
 * have up to 4,480 terms of up to 9 in another order, relative to results of their order or 1: 2^-24 * sqrt(4480) * 9, three times over. */
TEST(planes)
{
	static const int64_t shapes[][4] = {{1, 1, 1, 1},   {2, 3, 7, 5},  {1, 8, 64, 70}, {3, 33, 17, 9}, {2, 64, 40, 3},
	                                    {1, 264, 9, 9}, {40, 16, 8, 8}, {2, 12, 33, 33}};
	static const enum gt_opcode codes[] = {GT_OP_MUL_CHANNELS_DV, GT_OP_ADD_CHANNELS_DV, GT_OP_ADAPTIVE_AVGPOOL2D, GT_OP_AVGPOOL2D};
	for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++)
		for (int t = 0; t < 3; t++)
			for (int c = 0; c < 8; c++) { /* c / 4: off 16 bytes */
				const int64_t *x = shapes[s], y[4] = {x[0], x[1], 1, 1};
				enum gt_opcode code = codes[c % 4];
				bool dv = c % 4 < 2;
				struct gt_attr_adaptive whole = {{1, 1}};
				struct gt_attr_pool2d window = {{x[2] + 2, x[3] + 2}, {1, 1}, {1, 1}, false, s % 2};
				struct pair_job j = {.call = {.code = code, .attr = c % 4 == 2 ? (void *)&whole : c % 4 == 3 ? (void *)&window : NULL},
				                     .shift = c / 4 ? gt_dtype_size(pair_types[t]) : 0};
				pair_tensor(&j, false, pair_types[t], 4, x, NULL);
				if (code == GT_OP_MUL_CHANNELS_DV)
					pair_tensor(&j, false, pair_types[t], 4, x, NULL);
				pair_tensor(&j, true, pair_types[t], dv ? 2 : 4, y, NULL);
				pair_compare2(&j, dv ? 1e-4 : 1e-5, 2 * step_of(pair_types[t]), dv ? "dv" : "mean");
				pair_free(&j);
			}
}

TEST(report)
{
	pair_report(2650);
}

RUN_TESTS()
