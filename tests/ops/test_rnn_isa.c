/* The steps of lstm and gru (kernels/cpu/rnn.h) in f32 and bf16 with every instruction set that this machine has: those with a fused
 * multiply-add give the same bits, and the one without it nearly the same numbers; how the samples are grouped changes no bit. */
#include "cpu/bf16_rows.c"
#include "cpu/rnn_isa.c"
#include "base/philox.h"
#include "test.h"
#include <stdlib.h>

enum { X, W, B, DY, Y, GATES, CELLS, DX, BEFORE, DH, TENSORS }; /* W: the weights; the first four are inputs */

/* The biases, gates and cells are f32 in calls with bf16, too. */
static bool is_half(const struct gt_rnn *r, int tensor)
{
	return r->bf16 && tensor != B && tensor != GATES && tensor != CELLS;
}

struct run {
	float *v[TENSORS];
	int64_t n[TENSORS];
};

static void make(const struct gt_rnn *r, struct run *out)
{
	int64_t tokens = r->n * r->t, g = r->gates * r->h;
	const int64_t n[TENSORS] = {tokens * g, g * r->h, g, tokens * r->h, tokens * r->h,
	                            tokens * g, tokens * r->h, tokens * g, tokens * r->h, tokens * g};
	for (int k = 0; k < TENSORS; k++) {
		out->n[k] = n[k];
		out->v[k] = aligned_alloc(64, (size_t)(n[k] + 16) / 16 * 64);
		for (int64_t i = 0; i < n[k]; i++) {
			float v = k > DY ? NAN : 2 * gt_rng_uniform(gt_philox4x32((uint32_t)i, (uint32_t)k, 0, 0, 1, 2).v[0]) - 1;
			if (is_half(r, k))
				((uint16_t *)(void *)out->v[k])[i] = gt_bf16_from_f32(v);
			else
				out->v[k][i] = v;
		}
	}
}

static void drop(struct run *run)
{
	for (int k = 0; k < TENSORS; k++)
		free(run->v[k]);
}

/* Runs both passes of a shape. Lengths go from t down to 0. */
static void pass(const struct gt_rnn_isa *isa, struct gt_rnn r, int groups, struct run *out)
{
	int64_t wide = isa->width;
	make(&r, out);
	r.hp = (r.h + GT_RNN_PANEL - 1) / GT_RNN_PANEL * GT_RNN_PANEL;
	r.groups = groups;
	r.state_size = gt_rnn_state_size(&r, (r.n + groups - 1) / groups);
	r.packed = aligned_alloc(64, (size_t)gt_rnn_packed_size(&r) * sizeof(float));
	r.state = aligned_alloc(64, (size_t)(groups * r.state_size) * sizeof(float));
	r.order = calloc((size_t)r.n, sizeof *r.order);
	r.length = calloc((size_t)r.n, sizeof *r.length);
	for (int64_t i = 0; i < r.n; i++) {
		r.order[i] = (int32_t)(r.n - 1 - i);
		r.length[i] = (int32_t)(i < r.t ? r.t - i : 0);
	}
	memset(r.state, 0x7f, (size_t)(groups * r.state_size) * sizeof(float));
	r.x = out->v[X], r.w = out->v[W], r.b = out->v[B], r.y = out->v[Y], r.gate_values = out->v[GATES], r.cells = out->v[CELLS];
	isa->pack_forward(&r, 0, (r.h + wide - 1) / wide);
	isa->forward(&r, 0, groups);
	r.dy = out->v[DY], r.dx = out->v[DX], r.before = out->v[BEFORE], r.dh = r.gates == 3 ? out->v[DH] : NULL;
	isa->pack_backward(&r, 0, (r.h + 4 * wide - 1) / (4 * wide));
	isa->backward(&r, 0, groups);
	free(r.packed), free(r.state), free(r.order), free(r.length);
}

static double number_at(const struct gt_rnn *r, const struct run *run, int tensor, int64_t i)
{
	return is_half(r, tensor) ? gt_bf16_to_f32(((const uint16_t *)(const void *)run->v[tensor])[i]) : run->v[tensor][i];
}

static void compare(const struct gt_rnn *r, const char *what, const struct run *a, const struct run *b, double tol)
{
	static const char *const names[TENSORS] = {"x", "w", "b", "dy", "y", "gates", "cells", "dx", "before", "dh"};
	for (int k = Y; k < TENSORS; k++) {
		if (k == DH && r->gates == 4)
			continue;
		int64_t bad = 0;
		for (int64_t i = 0; i < a->n[k]; i++) {
			double one = number_at(r, a, k, i), other = number_at(r, b, k, i);
			bad += tol > 0 ? !(fabs(one - other) <= tol) : memcmp(&one, &other, sizeof one) != 0;
		}
		CHECK_MSG(!bad, "%s, %s, %d gates, h %lld, n %lld%s: %lld of %lld elements of %s differ", what, r->bf16 ? "bf16" : "f32", r->gates,
		          (long long)r->h, (long long)r->n, r->reverse ? ", reverse" : "", (long long)bad, (long long)a->n[k], names[k]);
	}
}

static void all(const char *name)
{
	static const int64_t shapes[][3] = {{1, 1, 1}, {7, 5, 3}, {5, 4, 16}, {13, 6, 33}, {3, 4, 70}}; /* samples, tokens, units */
	const struct gt_rnn_isa *isa = gt_rnn_isa_named(name), *loops = gt_rnn_isa_named("plain");
	if (!isa) {
		test_skip("this processor has not the instructions");
		return;
	}
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
		for (int k = 0; k < 8; k++) {
			struct gt_rnn r = {.n = shapes[i][0], .t = shapes[i][1], .h = shapes[i][2], .gates = 3 + k % 2, .reverse = k / 2 % 2,
			                   .bf16 = k / 4};
			const struct gt_rnn_isa *best = gt_rnn_isa(r.bf16);
			struct run one, other;
			if (isa->pair == 2 && !r.bf16)
				continue;
			pass(isa, r, 1, &one);
			pass(isa, r, (int)(r.n < 3 ? r.n : 3), &other);
			compare(&r, "three groups", &one, &other, 0);
			drop(&other);
			pass(best, r, 1, &other);
			/* A product of a few dozen terms of at most 1 is off by 2^-24 times their number, and the steps add up a few of them. In bf16,
			 * gradients of up to 4 that are rounded differently are off by 2^-6, and a few steps add up such differences. */
			compare(&r, best->name, &one, &other, isa == loops && best != loops ? r.bf16 ? 0.0625 : 1e-5 : 0);
			drop(&other);
			drop(&one);
		}
}

TEST(avx512_bf16)
{
	all("avx512_bf16");
}

TEST(avx512)
{
	all("avx512");
}

TEST(avx2)
{
	all("avx2");
}

TEST(neon)
{
	all("neon");
}

TEST(any_processor)
{
	all("plain");
}

RUN_TESTS()
