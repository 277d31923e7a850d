/* Offsets of blocks of memory: blocks that are live at the same time are apart, and all blocks take little more than the lower bound. */
#include "plan/offsets.h"
#include "test.h"
#include <string.h>

enum { MOST = 400 };

static uint32_t draw(uint32_t *state, uint32_t below)
{
	*state = *state * 1664525u + 1013904223u;
	return (*state >> 8) % below;
}

/* Assigns offsets and checks them against their definition. Returns the memory divided by the lower bound. */
static double assign(struct gt_block *b, int n)
{
	struct gt_arena *a;
	struct gt_blocks_size size;
	struct gt_err e;
	size_t live = 0, top = 0;
	CHECK_OK(gt_arena_open(&a, &e), e);
	CHECK_OK(gt_blocks_assign(a, b, n, &size, &e), e);
	gt_arena_close(a);
	for (int i = 0; i < n; i++) {
		size_t sum = 0; /* some block begins where most bytes are live */
		for (int j = 0; j < n; j++) {
			sum += b[j].first <= b[i].first && b[i].first <= b[j].last ? b[j].bytes : 0;
			bool together = i != j && b[i].first <= b[j].last && b[j].first <= b[i].last;
			if (together && b[i].offset < b[j].offset + b[j].bytes && b[j].offset < b[i].offset + b[i].bytes)
				test_fail(__FILE__, __LINE__, "blocks %d and %d overlap", i, j);
		}
		CHECK(b[i].offset % GT_ALIGN == 0);
		live = sum > live ? sum : live;
		top = b[i].offset + b[i].bytes > top ? b[i].offset + b[i].bytes : top;
	}
	CHECK_MSG(size.live == live, "%zu live bytes, expected %zu", size.live, live);
	CHECK_MSG(size.bytes == (top + GT_ALIGN - 1) / GT_ALIGN * GT_ALIGN, "%zu bytes, expected %zu", size.bytes, top);
	return n ? (double)size.bytes / (double)size.live : 1;
}

TEST(no_blocks)
{
	CHECK(assign(NULL, 0) == 1);
}

/* Blocks as in a training step: block i of the forward pass is read again in the mirrored node of the backward pass, and some calls have
 * a workspace. No single order comes close to the lower bound for all of these lists: placing the block with the longest life first needs
 * up to 1.10 times the bound. */
TEST(training_steps_come_close_to_the_lower_bound)
{
	for (uint32_t seed = 1; seed <= 20; seed++) {
		struct gt_block b[MOST];
		uint32_t state = seed;
		int n = 0, layers = 20 + (int)draw(&state, 40);
		for (int i = 0; i < layers; i++) {
			b[n++] = (struct gt_block){.bytes = (1 + draw(&state, 64)) << 14, .first = i, .last = 2 * layers - i};
			b[n++] = (struct gt_block){.bytes = (1 + draw(&state, 64)) << 14, .first = i, .last = i + 1};
			b[n++] = (struct gt_block){.bytes = (1 + draw(&state, 64)) << 14, .first = 2 * layers - i, .last = 2 * layers - i + 1};
			if (draw(&state, 3) == 0)
				b[n++] = (struct gt_block){.bytes = (1 + draw(&state, 256)) << 14, .first = i, .last = i};
		}
		double ratio = assign(b, n);
		CHECK_MSG(ratio <= 1.03, "seed %u: %.4f times the lower bound", seed, ratio);
	}
}

/* Any lifetimes and sizes: the offsets are right, and the memory is bounded. No order reaches the lower bound of every such list. */
TEST(random_blocks_are_apart)
{
	for (uint32_t seed = 1; seed <= 30; seed++) {
		struct gt_block b[MOST], again[MOST];
		uint32_t state = seed;
		int n = 1 + (int)draw(&state, MOST - 1);
		for (int i = 0; i < n; i++) {
			int first = (int)draw(&state, 300);
			b[i] = (struct gt_block){.bytes = 1 + draw(&state, 1 << 20), .first = first, .last = first + (int)draw(&state, 40)};
		}
		memcpy(again, b, sizeof *b * (size_t)n);
		double ratio = assign(b, n);
		CHECK_MSG(ratio <= 1.15, "seed %u: %.4f times the lower bound", seed, ratio);
		assign(again, n);
		for (int i = 0; i < n; i++)
			CHECK(again[i].offset == b[i].offset);
	}
}

RUN_TESTS()
