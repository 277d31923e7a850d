/* The backend's own convolutions give the same bits for any number of threads (kernels/cpu/README.md). */
/* tests/run: beside others */
#include "clones.h"
#include "cpu_raw.h"
#include <stdlib.h>
#include <string.h>

struct shape {
	int64_t n, c, h, w, o, k, s, p, g;
};

static struct gt_tdesc describe(int64_t a, int64_t b, int64_t c, int64_t d, bool image)
{
	return gt_tdesc_make(GT_F32, 4, (int64_t[]){a, b, c, d}, image);
}

/* Runs one pass with 1, 2 and 5 threads. in[0], in[1]: operands; out: the result, whose bits are compared. */
static void compare_bits(enum gt_opcode code, const struct gt_attr_conv2d *attr, const struct gt_tdesc *in0, const struct gt_tdesc *in1,
                         const struct gt_tdesc *out)
{
	struct gt_tdesc a = *in0, b = *in1, y = *out, db = gt_tdesc_make(GT_F32, 1, (int64_t[]){attr->out}, false);
	bool dw = code == GT_OP_CONV2D_DW;
	struct gt_opcall call = {.code = code, .attr = attr, .nin = 2, .nout = dw ? 2 : 1, .in = {&a, &b}, .out = {&y, dw ? &db : NULL}};
	static const int threads[] = {1, 2, 5};
	float *x = raw_alloc(GT_F32, gt_tdesc_count(&a)), *w = raw_alloc(GT_F32, gt_tdesc_count(&b)), *got[3], *bias[3];
	raw_random(GT_F32, x, gt_tdesc_count(&a), 1, -1, 1);
	raw_random(GT_F32, w, gt_tdesc_count(&b), 2, -1, 1);
	for (int i = 0; i < 3; i++) {
		got[i] = raw_alloc(GT_F32, gt_tdesc_count(&y));
		bias[i] = raw_alloc(GT_F32, attr->out);
		CHECK(raw_run(threads[i], &call, (void *[]){x, w}, (void *[]){got[i], bias[i]}, NULL));
		CHECK_MSG(!memcmp(got[i], got[0], gt_tdesc_bytes(&y)), "%s: other bits with %d threads", gt_opcode_name(code), threads[i]);
		CHECK_MSG(!dw || !memcmp(bias[i], bias[0], gt_tdesc_bytes(&db)), "db: other bits with %d threads", threads[i]);
	}
	for (int i = 0; i < 3; i++)
		free(got[i]), free(bias[i]);
	free(x), free(w);
}

static void check_shape(const struct shape *s, bool forward)
{
	struct gt_attr_conv2d attr = {.out = s->o, .kernel = {s->k, s->k}, .stride = {s->s, s->s}, .padding = {s->p, s->p}, .dilation = {1, 1},
	                              .groups = s->g, .bias = true};
	int64_t p = (s->h + 2 * s->p - s->k) / s->s + 1, q = (s->w + 2 * s->p - s->k) / s->s + 1;
	struct gt_tdesc x = describe(s->n, s->c, s->h, s->w, true), y = describe(s->n, s->o, p, q, true);
	struct gt_tdesc w = describe(s->o, s->c / s->g, s->k, s->k, false);
	if (forward) {
		compare_bits(GT_OP_CONV2D, &attr, &x, &w, &y);
		compare_bits(GT_OP_CONV2D_DX, &attr, &y, &w, &x);
	}
	compare_bits(GT_OP_CONV2D_DW, &attr, &y, &x, &w);
}

TEST(conv_bits)
{
	static const struct shape dw[] = {
		{3, 24, 14, 13, 24, 5, 1, 2, 24}, /* depthwise; 42 rows are divided into 16 parts */
		{1, 16, 9, 70, 16, 3, 2, 1, 16}, /* a wide image */
	}, grouped = {3, 16, 9, 11, 16, 3, 2, 1, 4}, first = {5, 3, 30, 31, 20, 3, 1, 1, 1}, direct[] = {
		{2, 48, 12, 10, 96, 3, 1, 1, 2},
		{2, 24, 15, 17, 40, 3, 2, 1, 1},
		{1, 512, 6, 6, 1024, 3, 2, 1, 1}, /* so many weights that the rows are one part, and the panels are divided */
	};
	if (!GT_CPU_AVX2) {
		test_skip("this processor has not the instructions");
		return;
	}
	for (size_t i = 0; i < sizeof dw / sizeof *dw; i++)
		check_shape(&dw[i], false);
	check_shape(&grouped, true);
	if (!GT_CPU_AVX512)
		check_shape(&first, false);
	for (size_t i = 0; i < sizeof direct / sizeof *direct && !GT_CPU_AVX512; i++) /* with AVX-512, oneDNN computes them */
		check_shape(&direct[i], true);
}

RUN_TESTS()
