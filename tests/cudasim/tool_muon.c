/* muon on the CUDA backend: in f32 against the CPU backend, whose trajectories test_muon.c holds to the author's formulas; with a 16-bit
 * work copy, when the iteration is in bf16, against loops that round where it rounds. As tool_calls.c, on the host's CUDA runtime or a
 * GPU. */
#include "ew.h"
#include "number.h"
#include "pair.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST 12
static const struct one { /* matrices of one call: of equal shapes and alone, odd sizes, more than a chunk, one row, one column */
	int rank;
	int64_t dim[4], gap;
	double lr_mul, wd;
	int lr;
} call[MOST] = {{2, {12, 5}, 3, 1, 0.1, 0},       {2, {5, 12}, 0, 1, 0, 0},          {4, {20, 3, 3, 3}, 5, 2, 0, 1},
                {2, {12, 5}, 0, 0.5, 0, 0},       {4, {20, 3, 3, 3}, 64, 1, 0.2, 0}, {2, {11, 6}, 1, 0, 0.1, 1},
                {2, {64, 200}, 0, 1, 0, 0},       {2, {200, 64}, 8, 1, 0, 1},        {4, {8, 24, 1, 3}, 0, 1, 0, 0},
                {4, {20, 3, 3, 3}, 0, 1, 0.2, 0}, {2, {1, 9}, 2, 1, 0, 0},           {2, {9, 1}, 0, 1, 0, 0}};

struct setup {
	struct gt_tdesc d[MOST];
	const struct gt_tdesc *desc[MOST];
	struct gt_seg seg[MOST];
	struct gt_attr_muon attr;
	int64_t n; /* of the arena */
	struct gt_scalars *scalars;
	struct pair_job job;
};

/* v: bits choose among the attributes. */
static void make(struct setup *s, int v, enum gt_dtype work)
{
	int64_t at = 0, words = GT_SCALARS_WORDS;
	memset(s, 0, sizeof *s);
	for (int i = 0; i < MOST; i++) {
		s->d[i] = gt_tdesc_make(GT_F32, call[i].rank, call[i].dim, true);
		s->desc[i] = &s->d[i];
		s->seg[i] = (struct gt_seg){at + call[i].gap, at + call[i].gap + gt_tdesc_count(&s->d[i]), call[i].lr_mul, call[i].wd, call[i].lr};
		at = s->seg[i].end;
	}
	s->n = at + 7;
	s->attr = (struct gt_attr_muon){.update = {.momentum = v & 1 ? 0.95 : 0.6,
	                                           .nesterov = v & 2,
	                                           .eps = 1e-7,
	                                           .clip_norm = v & 4 ? 0.5 : 0,
	                                           .seg = s->seg,
	                                           .nseg = v & 64 ? 0 : MOST,
	                                           .work_dtype = work},
	                                .desc = s->desc,
	                                .ns_steps = v & 8 ? 5 : 4,
	                                .ns = {3.4445, -4.7750, 2.0315},
	                                .adjust = v % 3,
	                                .normalize = v & 16};
	s->scalars = calloc(1, sizeof *s->scalars);
	*s->scalars = (struct gt_scalars){.sumsq = 9, .inv_scale = 0.25, .skip = v & 32};
	s->job = (struct pair_job){.call = {.code = GT_OP_MUON, .attr = &s->attr}, .step_args = {.step = 3, .lr = {0.05, v & 128 ? 0 : 0.02}}};
	for (int i = 0; i < 3; i++)
		pair_tensor(&s->job, false, GT_F32, 1, &s->n, NULL);
	pair_tensor(&s->job, false, GT_F64, 1, &words, s->scalars);
	if (work != GT_F32)
		pair_tensor(&s->job, false, work, 1, &s->n, NULL);
}

/* Elements of an update are at most the rate of 0.1 times 0.2 sqrt(200), and off by 2^-24 * 3.4445^5 = 3e-5 of that, as in test_muon.c. */
TEST(muon_in_f32)
{
	for (int v = 0; v < 256; v++) {
		struct setup s;
		if (v >= 32 && v % 5) /* what changes little: a skipped step, no matrices, a rate of 0 */
			continue;
		make(&s, v, GT_F32);
		pair_compare(&s.job, 1e-5, "");
		s.job.shift = v % 2 ? 16 : 4;
		pair_compare(&s.job, 1e-5, "");
		pair_free(&s.job);
	}
}

/* ---- bf16 ------------------------------------------------------------------------------------------------------------------------ */
static double rounded(double x)
{
	return gt_load_number(GT_BF16, &(uint16_t){gt_bf16_from_f32((float)x)}, 0);
}

/* c[m, n] = alpha a[m, k] b[k, n] + beta d, rounded; strides of rows and columns. */
static void product(int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t ar, int64_t ac, const double *b, int64_t br,
                    int64_t bc, double beta, const double *d, double *c)
{
	for (int64_t i = 0; i < m; i++)
		for (int64_t j = 0; j < n; j++) {
			double sum = 0;
			for (int64_t l = 0; l < k; l++)
				sum += a[i * ar + l * ac] * b[l * br + j * bc];
			c[i * n + j] = rounded(alpha * sum + (beta != 0 ? beta * d[i * n + j] : 0));
		}
}

static void reference(const struct setup *s, int i, float *p, const float *g, float *buf)
{
	const struct gt_attr_muon *attr = &s->attr;
	const struct gt_seg *seg = &s->seg[i];
	int64_t n = seg->end - seg->begin, r = s->d[i].dim[0], c = n / r, side = r < c ? r : c;
	struct gt_opt_f32 h = gt_opt_make_f32(GT_OP_MUON, &attr->update, seg, &s->job.step_args, s->scalars);
	double *x = malloc((size_t)n * 8), *y = malloc((size_t)n * 8), *a = malloc((size_t)(side * side) * 8),
	       *poly = malloc((size_t)(side * side) * 8);
	double norm = 0, weights = 0, lr = s->job.step_args.lr[seg->lr] * seg->lr_mul;
	for (int64_t k = 0; k < n; k++) {
		x[k] = gt_muon_direction_f32(&h, g[k], &buf[k], attr->update.nesterov);
		norm += x[k] * x[k];
		weights += (double)p[k] * p[k];
	}
	float scale = (float)(1 / (sqrt(norm) + attr->update.eps));
	for (int64_t k = 0; k < n; k++)
		x[k] = rounded((float)x[k] * scale);
	for (int64_t k = 0; k < attr->ns_steps; k++) {
		if (r <= c)
			product(r, r, c, 1, x, c, 1, x, 1, c, 0, NULL, a);
		else
			product(c, c, r, 1, x, 1, c, x, c, 1, 0, NULL, a);
		product(side, side, side, (float)attr->ns[2], a, side, 1, a, side, 1, (float)attr->ns[1], a, poly);
		if (r <= c)
			product(r, c, r, 1, poly, r, 1, x, c, 1, (float)attr->ns[0], x, y);
		else
			product(r, c, c, 1, x, c, 1, poly, c, 1, (float)attr->ns[0], x, y);
		memcpy(x, y, (size_t)n * 8);
	}
	double keep = (1 - lr * seg->weight_decay) * (attr->normalize ? sqrt((double)r) / sqrt(weights) : 1);
	float step = (float)(lr * gt_muon_adjust(attr->adjust, r, c));
	for (int64_t k = 0; k < n && step != 0; k++)
		p[k] = p[k] * (float)keep - step * (float)x[k];
	free(x), free(y), free(a), free(poly);
}

/* On the host the products add in f64, in this order, and round once: nothing is apart. A GPU adds in f32, 2^-24 sqrt(200) of a sum, so
 * that one rounding in some thousands falls on the other side: 2^-9 of an element, which up to 5 iterations make at most 3.4445 of, each.
 * An iteration in f32 is 7e-4 of a step away on average and 2e-2 at worst (measured on the host): a GPU must stay below a third of the
 * former. */
TEST(muon_in_bf16)
{
	double worst = 0, mean = 0, apart = 0;
	int64_t count = 0;
	for (int v = 0; v < 32; v++)
		for (int t = 0; t < 2; t++) {
			struct setup s;
			void *after[PAIR_T] = {0};
			make(&s, v, t ? GT_F16 : GT_BF16);
			size_t bytes = (size_t)s.n * 4;
			float *p = malloc(bytes), *buf = malloc(bytes);
			memcpy(p, s.job.in[0], bytes);
			memcpy(buf, s.job.in[2], bytes);
			pair_run_cuda(&s.job, after);
			for (int i = 0; i < MOST; i++)
				reference(&s, i, p + s.seg[i].begin, (const float *)s.job.in[1] + s.seg[i].begin, buf + s.seg[i].begin);
			const float *got = after[0];
			const uint16_t *work = after[4], *before = s.job.in[4];
			CHECK_MSG(!memcmp(after[2], buf, bytes), "variant %d: the momentum is another", v);
			for (int i = 0, k = 0; i < s.n; i++) {
				while (k < MOST && i >= s.seg[k].end)
					k++;
				bool in = k < MOST && i >= s.seg[k].begin && s.seg[k].lr_mul != 0;
				double step = in ? s.job.step_args.lr[s.seg[k].lr] * s.seg[k].lr_mul *
				                       gt_muon_adjust(s.attr.adjust, s.d[k].dim[0], (s.seg[k].end - s.seg[k].begin) / s.d[k].dim[0])
				                 : 1;
				double off = fabs((double)got[i] - p[i]) / step;
				uint16_t want = !in ? before[i] : t ? gt_f16_from_f32(got[i]) : gt_bf16_from_f32(got[i]);
				if (!in && got[i] != ((const float *)s.job.in[0])[i])
					CHECK_MSG(false, "variant %d: [%d], outside of the matrices, was written", v, i);
				if (work[i] != want)
					CHECK_MSG(false, "variant %d: the work copy of [%d] is %#x, not %#x", v, i, work[i], want);
				worst = off > worst || isnan(off) ? off : worst;
				mean += off, count += in;
				apart += in && off > 1e-5;
			}
			for (int i = 0; i < PAIR_T; i++)
				free(after[i]);
			free(p), free(buf);
			pair_free(&s.job);
		}
	mean /= (double)count;
	bool gpu = getenv("PAIR_GPU") != NULL;
	CHECK_MSG(worst <= (gpu ? 0.1 : 1e-6) && mean <= (gpu ? 2e-4 : 1e-6), "the worst element is %.2e of a step apart, the mean %.2e", worst,
	          mean);
	printf("# muon in bf16: worst element %.1e of a step apart, mean %.1e, %.2f %% of %lld elsewhere\n", worst, mean,
	       100 * apart / (double)count, (long long)count);
}

TEST(muon_refuses_what_it_cannot)
{
	struct setup s;
	static const uint8_t channels_first_last[4] = {2, 0, 3, 1};
	make(&s, 0, GT_F32);
	memcpy(s.d[4].layout.order, channels_first_last, 4);
	CHECK(strstr(pair_refused_cuda(&s.job), "row by row"));
	pair_free(&s.job);
	make(&s, 4, GT_F32);
	s.job.call.in[3] = NULL;
	CHECK(strstr(pair_refused_cuda(&s.job), "clipping"));
	pair_free(&s.job);
	make(&s, 0, GT_F32);
	s.seg[3].end--;
	CHECK(strstr(pair_refused_cuda(&s.job), "must be matrices"));
	pair_free(&s.job);
}

TEST(report)
{
	pair_report(100);
}

RUN_TESTS()
