/* The f64 reference kernels of tests/ops/ref/. Forward: formulas over PyTorch's logical NCHW order. Backward: a product's gradients satisfy
 * <y, dy> = <x, dx> = <w, dw> (it is linear in each), pooling's <y, dy> = <x, dx>; batchnorm's by finite differences. */
#include "cpu_case.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums of a few thousand terms in double, each side in its own order. */
#define TOL 1e-12

static double dot(const struct tens *a, const struct tens *b, double *mag)
{
	double s = 0;
	for (int64_t i = 0; i < gt_tdesc_count(&a->d); i++) {
		s += a->v[i] * b->v[i];
		*mag += fabs(a->v[i] * b->v[i]);
	}
	return s;
}

static void check_adjoint(const char *what, const struct tens *y, const struct tens *dy, const struct tens *x, const struct tens *dx)
{
	double mag = 0, a = dot(y, dy, &mag), b = dot(x, dx, &mag);
	CHECK_MSG(fabs(a - b) <= TOL * mag, "%s: <y,dy> = %.15g but <x,dx> = %.15g", what, a, b);
}

/* Adding to what is there must give the same as overwriting plus what was there. */
static void check_accumulate(struct op_case c, int i, const struct tens *plain)
{
	struct tens *acc = c.out[i], *start = tens_new(GT_F64, acc->d.rank, acc->d.dim);
	tens_random(acc, 77, -1, 1);
	memcpy(start->v, acc->v, (size_t)gt_tdesc_count(&acc->d) * sizeof(double));
	for (int64_t k = 0; k < gt_tdesc_count(&acc->d); k++)
		start->v[k] += plain->v[k];
	c.accumulate = 1u << i;
	if (op_run(&c))
		TENS_CHECK(acc, start, TOL);
	tens_free(start);
}

static struct tens *copy_of(const struct tens *t)
{
	struct tens *c = tens_new(GT_F64, t->d.rank, t->d.dim);
	memcpy(c->v, t->v, (size_t)gt_tdesc_count(&t->d) * sizeof(double));
	return c;
}

TEST(f64_linear)
{
	cpu_reference();
	static const int64_t shapes[][3] = {{1, 1, 1}, {3, 7, 5}, {8, 33, 10}};
	for (int s = 0; s < 3; s++)
		for (int act = 0; act < 2; act++) {
			int64_t n = shapes[s][0], in = shapes[s][1], out = shapes[s][2];
			struct gt_attr_linear attr = {.out = out, .bias = true, .act = act};
			struct tens *x = tens_new(GT_F64, DIMS(n, in)), *w = tens_weights(GT_F64, DIMS(out, in)), *b = tens_new(GT_F64, DIMS(out));
			struct tens *y = tens_new(GT_F64, DIMS(n, out)), *want = tens_new(GT_F64, DIMS(n, out)), *dy = tens_new(GT_F64, DIMS(n, out));
			struct tens *dx = tens_new(GT_F64, DIMS(n, in)), *dw = tens_new(GT_F64, DIMS(out, in)), *db = tens_new(GT_F64, DIMS(out));
			tens_random(x, 1, -1, 1), tens_random(w, 2, -1, 1), tens_random(b, 3, -1, 1), tens_random(dy, 4, -1, 1);
			want->mag = calloc((size_t)(n * out), 8);
			for (int64_t i = 0; i < n * out; i++) {
				want->v[i] = b->v[i % out];
				for (int64_t k = 0; k < in; k++)
					want->v[i] += x->v[i / out * in + k] * w->v[i % out * in + k];
				want->mag[i] = 1 + (double)in;
				want->v[i] = act && want->v[i] < 0 ? 0 : want->v[i];
			}
			struct op_case c = {.code = GT_OP_LINEAR, .attr = &attr, .in = {x, w, b}, .nin = 3, .out = {y}, .nout = 1};
			if (op_run(&c))
				TENS_CHECK(y, want, TOL);
			attr.act = 0; /* the product alone, without bias, is linear */
			c.in[2] = NULL;
			op_run(&c);
			c = (struct op_case){.code = GT_OP_LINEAR_DX, .attr = &attr, .in = {dy, w}, .nin = 2, .out = {dx}, .nout = 1};
			if (op_run(&c))
				check_adjoint("linear.dx", y, dy, x, dx);
			c = (struct op_case){.code = GT_OP_LINEAR_DW, .attr = &attr, .in = {dy, x}, .nin = 2, .out = {dw, db}, .nout = 2};
			if (op_run(&c)) {
				check_adjoint("linear.dw", y, dy, w, dw);
				for (int64_t o = 0; o < out; o++) {
					double sum = 0;
					for (int64_t i = 0; i < n; i++)
						sum += dy->v[i * out + o];
					CHECK(fabs(sum - db->v[o]) <= TOL);
				}
				struct tens *w0 = copy_of(dw), *b0 = copy_of(db);
				check_accumulate(c, 0, w0);
				check_accumulate(c, 1, b0);
				tens_free(w0), tens_free(b0);
			}
			tens_free(x), tens_free(w), tens_free(b), tens_free(y), tens_free(want), tens_free(dy), tens_free(dx), tens_free(dw),
			    tens_free(db);
		}
}

/* ---- convolution ---------------------------------------------------------------------------------------------------------------- */
static void conv_case(int64_t n, int64_t ic, int64_t ih, int64_t iw, struct gt_attr_conv2d attr)
{
	const int64_t *k = attr.kernel, *st = attr.stride, *pad = attr.padding, *dil = attr.dilation, oc = attr.out, g = attr.groups,
	              ig = ic / g;
	int64_t oh = (ih + 2 * pad[0] - dil[0] * (k[0] - 1) - 1) / st[0] + 1, ow = (iw + 2 * pad[1] - dil[1] * (k[1] - 1) - 1) / st[1] + 1;
	struct tens *x = tens_new(GT_F64, DIMS(n, ic, ih, iw)), *w = tens_weights(GT_F64, DIMS(oc, ig, k[0], k[1])),
	            *b = tens_new(GT_F64, DIMS(oc));
	struct tens *y = tens_new(GT_F64, DIMS(n, oc, oh, ow)), *want = tens_new(GT_F64, DIMS(n, oc, oh, ow)),
	            *dy = tens_new(GT_F64, DIMS(n, oc, oh, ow));
	struct tens *dx = tens_new(GT_F64, DIMS(n, ic, ih, iw)), *dw = tens_weights(GT_F64, DIMS(oc, ig, k[0], k[1])),
	            *db = tens_new(GT_F64, DIMS(oc));
	tens_random(x, 1, -1, 1), tens_random(w, 2, -1, 1), tens_random(b, 3, -1, 1), tens_random(dy, 4, -1, 1);
	dw->d = gt_tdesc_make(GT_F64, 4, dw->d.dim, false);
	want->mag = calloc((size_t)gt_tdesc_count(&want->d), 8);
	for (int64_t i = 0; i < gt_tdesc_count(&want->d); i++) {
		int64_t ox = i % ow, oy = i / ow % oh, o = i / ow / oh % oc, s = i / ow / oh / oc;
		double sum = b->v[o];
		for (int64_t c = 0; c < ig; c++)
			for (int64_t t = 0; t < k[0] * k[1]; t++) {
				int64_t iy = oy * st[0] + t / k[1] * dil[0] - pad[0], ix = ox * st[1] + t % k[1] * dil[1] - pad[1];
				if (iy >= 0 && iy < ih && ix >= 0 && ix < iw)
					sum += x->v[((s * ic + o / (oc / g) * ig + c) * ih + iy) * iw + ix] * w->v[(o * ig + c) * k[0] * k[1] + t];
			}
		want->v[i] = attr.act && sum < 0 ? 0 : sum;
		want->mag[i] = 1 + (double)(ig * k[0] * k[1]);
	}
	struct op_case c = {.code = GT_OP_CONV2D, .attr = &attr, .in = {x, w, b}, .nin = 3, .out = {y}, .nout = 1};
	if (op_run(&c))
		TENS_CHECK(y, want, TOL);
	attr.act = 0;
	c.nin = 2;
	op_run(&c);
	c = (struct op_case){.code = GT_OP_CONV2D_DX, .attr = &attr, .in = {dy, w}, .nin = 2, .out = {dx}, .nout = 1};
	if (op_run(&c))
		check_adjoint("conv2d.dx", y, dy, x, dx);
	c = (struct op_case){.code = GT_OP_CONV2D_DW, .attr = &attr, .in = {dy, x}, .nin = 2, .out = {dw, db}, .nout = 2};
	if (op_run(&c)) {
		check_adjoint("conv2d.dw", y, dy, w, dw);
		double sum = 0, want_sum = 0;
		for (int64_t o = 0; o < oc; o++)
			sum += db->v[o] * (double)(o + 1);
		for (int64_t i = 0; i < gt_tdesc_count(&dy->d); i++)
			want_sum += dy->v[i] * (double)(i / ow / oh % oc + 1);
		CHECK(fabs(sum - want_sum) <= TOL * (double)(gt_tdesc_count(&dy->d) * oc));
		struct tens *w0 = copy_of(dw), *b0 = copy_of(db);
		check_accumulate(c, 0, w0);
		check_accumulate(c, 1, b0);
		tens_free(w0), tens_free(b0);
	}
	tens_free(x), tens_free(w), tens_free(b), tens_free(y), tens_free(want), tens_free(dy), tens_free(dx), tens_free(dw), tens_free(db);
}

TEST(f64_conv2d)
{
	cpu_reference();
	conv_case(2, 3, 8, 9,
	          (struct gt_attr_conv2d){.out = 4, .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}, .groups = 1});
	conv_case(1, 1, 7, 7,
	          (struct gt_attr_conv2d){.out = 1, .kernel = {7, 7}, .stride = {1, 1}, .dilation = {1, 1}, .groups = 1, .act = GT_ACT_RELU});
	conv_case(3, 4, 9, 6,
	          (struct gt_attr_conv2d){.out = 6, .kernel = {3, 2}, .stride = {2, 1}, .padding = {0, 1}, .dilation = {2, 1}, .groups = 2});
	conv_case(2, 5, 6, 6,
	          (struct gt_attr_conv2d){.out = 5, .kernel = {3, 3}, .stride = {2, 2}, .padding = {2, 2}, .dilation = {1, 2}, .groups = 5});
	conv_case(2, 6, 5, 5,
	          (struct gt_attr_conv2d){.out = 12, .kernel = {1, 1}, .stride = {2, 2}, .dilation = {1, 1}, .groups = 3, .act = GT_ACT_RELU});
}

/* ---- pooling -------------------------------------------------------------------------------------------------------------------- */
/* The cells of a window as ATen has them: divisor first from the padded extent, then clipped. */
static void pool_case(enum gt_opcode code, int64_t h, int64_t w, int64_t oh, int64_t ow, struct gt_attr_pool2d p)
{
	const int64_t n = 2, ch = 3;
	bool max = code == GT_OP_MAXPOOL2D || code == GT_OP_ADAPTIVE_MAXPOOL2D,
	     adaptive = code == GT_OP_ADAPTIVE_AVGPOOL2D || code == GT_OP_ADAPTIVE_MAXPOOL2D;
	struct gt_attr_adaptive a = {{oh, ow}};
	const void *attr = adaptive ? (const void *)&a : &p;
	struct tens *x = tens_new(GT_F64, DIMS(n, ch, h, w)), *y = tens_new(GT_F64, DIMS(n, ch, oh, ow)),
	            *idx = tens_new(GT_I32, DIMS(n, ch, oh, ow));
	struct tens *want = tens_new(GT_F64, DIMS(n, ch, oh, ow)), *dy = tens_new(GT_F64, DIMS(n, ch, oh, ow)),
	            *dx = tens_new(GT_F64, DIMS(n, ch, h, w));
	tens_random(x, 1, -2, -1), tens_random(dy, 2, -1, 1); /* negative: a maximum must not come from the padding */
	for (int64_t i = 0; i < gt_tdesc_count(&want->d); i++) {
		int64_t ox = i % ow, oy = i / ow % oh, plane = i / ow / oh, cells = 0, padded = 0;
		double sum = 0, best = -INFINITY;
		for (int64_t iy = -8; iy < h + 8; iy++)
			for (int64_t ix = -8; ix < w + 8; ix++) {
				bool in;
				if (adaptive)
					in = iy >= (int64_t)floor((double)(oy * h) / (double)oh) && iy < (int64_t)ceil((double)((oy + 1) * h) / (double)oh) &&
					     ix >= (int64_t)floor((double)(ox * w) / (double)ow) && ix < (int64_t)ceil((double)((ox + 1) * w) / (double)ow);
				else
					in = iy >= oy * p.stride[0] - p.padding[0] && iy < oy * p.stride[0] - p.padding[0] + p.kernel[0] &&
					     ix >= ox * p.stride[1] - p.padding[1] && ix < ox * p.stride[1] - p.padding[1] + p.kernel[1] &&
					     iy < h + p.padding[0] && ix < w + p.padding[1];
				padded += in;
				if (!in || iy < 0 || iy >= h || ix < 0 || ix >= w)
					continue;
				cells++;
				sum += x->v[(plane * h + iy) * w + ix];
				best = fmax(best, x->v[(plane * h + iy) * w + ix]);
			}
		want->v[i] = max ? best : sum / (double)(!adaptive && p.count_include_pad ? padded : cells);
	}
	struct op_case c = {.code = code, .attr = attr, .in = {x}, .nin = 1, .out = {y, max ? idx : NULL}, .nout = max ? 2 : 1};
	if (!op_run(&c))
		return;
	TENS_CHECK(y, want, TOL);
	for (int64_t i = 0; max && i < gt_tdesc_count(&idx->d); i++)
		CHECK(x->v[i / ow / oh * h * w + (int64_t)idx->v[i]] == y->v[i]);
	c = (struct op_case){.code = max        ? GT_OP_MAXPOOL2D_DX
	                             : adaptive ? GT_OP_ADAPTIVE_AVGPOOL2D_DX
	                                        : GT_OP_AVGPOOL2D_DX,
	                     .attr = attr,
	                     .in = {dy, max ? idx : NULL},
	                     .nin = max ? 2 : 1,
	                     .out = {dx},
	                     .nout = 1};
	if (op_run(&c))
		check_adjoint("pooling", y, dy, x, dx);
	tens_free(x), tens_free(y), tens_free(idx), tens_free(want), tens_free(dy), tens_free(dx);
}

TEST(f64_pooling)
{
	cpu_reference();
	static const enum gt_opcode codes[] = {GT_OP_MAXPOOL2D, GT_OP_AVGPOOL2D};
	for (int k = 0; k < 2; k++)
		for (int include = 0; include < 2; include++) {
			pool_case(codes[k], 8, 6, 4, 3, (struct gt_attr_pool2d){{2, 2}, {2, 2}, {0, 0}, false, include});
			pool_case(codes[k], 7, 9, 4, 5, (struct gt_attr_pool2d){{3, 3}, {2, 2}, {1, 1}, false, include});
			pool_case(codes[k], 8, 8, 4, 4, (struct gt_attr_pool2d){{3, 2}, {2, 2}, {0, 0}, true, include}); /* last window hangs over */
			pool_case(codes[k], 6, 5, 4, 3, (struct gt_attr_pool2d){{3, 3}, {2, 2}, {1, 1}, true, include}); /* and over the padding */
			pool_case(codes[k], 5, 5, 5, 5, (struct gt_attr_pool2d){{3, 3}, {1, 1}, {1, 1}, false, include});
		}
	static const int64_t ad[][4] = {{7, 7, 1, 1}, {8, 6, 2, 3}, {7, 5, 3, 2}, {4, 4, 7, 5}};
	for (int i = 0; i < 4; i++) {
		pool_case(GT_OP_ADAPTIVE_AVGPOOL2D, ad[i][0], ad[i][1], ad[i][2], ad[i][3], (struct gt_attr_pool2d){{0}});
		pool_case(GT_OP_ADAPTIVE_MAXPOOL2D, ad[i][0], ad[i][1], ad[i][2], ad[i][3], (struct gt_attr_pool2d){{0}});
	}
}

/* ---- batch normalisation ---------------------------------------------------------------------------------------------------------- */
struct bn {
	struct gt_attr_norm attr;
	struct tens *x, *gamma, *beta, *rmean, *rvar, *nbt, *y, *mean, *rstd;
};

static bool bn_forward(struct bn *b)
{
	struct op_case c = {.code = GT_OP_BATCHNORM,
	                    .attr = &b->attr,
	                    .in = {b->x, b->gamma, b->beta, b->rmean, b->rvar, b->nbt},
	                    .nin = 6,
	                    .out = {b->y, b->mean, b->rstd},
	                    .nout = 3,
	                    .keep_out = true}; /* keep_out: launched once */
	return op_run(&c);
}

static void bn_case(int rank, const int64_t *dim, bool train, bool affine)
{
	int64_t ch = dim[1], pixels = rank == 4 ? dim[2] * dim[3] : 1, m = dim[0] * pixels;
	struct bn b = {{.eps = 1e-3, .momentum = 0.3, .affine = affine, .track = true, .train = train},
	               tens_new(GT_F64, rank, dim),
	               affine ? tens_new(GT_F64, DIMS(ch)) : NULL,
	               affine ? tens_new(GT_F64, DIMS(ch)) : NULL,
	               tens_new(GT_F64, DIMS(ch)),
	               tens_new(GT_F64, DIMS(ch)),
	               tens_new(GT_I64, DIMS(1)),
	               tens_new(GT_F64, rank, dim),
	               tens_new(GT_F64, DIMS(ch)),
	               tens_new(GT_F64, DIMS(ch))};
	struct tens *want = tens_new(GT_F64, rank, dim), *wmean = tens_new(GT_F64, DIMS(ch)), *wvar = tens_new(GT_F64, DIMS(ch));
	tens_random(b.x, 1, 0, 4);
	if (affine)
		tens_random(b.gamma, 2, 0.5, 1.5), tens_random(b.beta, 3, -1, 1);
	tens_random(b.rmean, 4, -1, 1), tens_random(b.rvar, 5, 0.5, 2);
	b.nbt->v[0] = 41;
	for (int64_t c = 0; c < ch; c++) {
		long double mean = 0, var = 0;
		for (int64_t i = 0; i < m; i++)
			mean += b.x->v[(i / pixels * ch + c) * pixels + i % pixels] / (long double)m;
		for (int64_t i = 0; i < m; i++)
			var += powl(b.x->v[(i / pixels * ch + c) * pixels + i % pixels] - mean, 2) / (long double)m;
		wmean->v[c] = train ? (double)(0.7 * b.rmean->v[c] + 0.3 * mean) : b.rmean->v[c];
		wvar->v[c] = train ? (double)(0.7 * b.rvar->v[c] + 0.3 * var * m / (m - 1)) : b.rvar->v[c];
		if (!train)
			mean = b.rmean->v[c], var = b.rvar->v[c];
		for (int64_t i = 0; i < m; i++) {
			int64_t at = (i / pixels * ch + c) * pixels + i % pixels;
			want->v[at] = (double)((b.x->v[at] - mean) / sqrtl(var + 1e-3L)) * (affine ? b.gamma->v[c] : 1) + (affine ? b.beta->v[c] : 0);
		}
	}
	want->mag = calloc((size_t)gt_tdesc_count(&want->d), 8);
	for (int64_t i = 0; i < gt_tdesc_count(&want->d); i++)
		want->mag[i] = 10;
	if (!bn_forward(&b))
		return;
	TENS_CHECK(b.y, want, TOL);
	TENS_CHECK(b.rmean, wmean, TOL);
	TENS_CHECK(b.rvar, wvar, TOL);
	CHECK(b.nbt->v[0] == (train ? 42 : 41));

	/* Gradients against central differences of <y, dy>: eps 1e-6, atol 1e-5, rtol 1e-3, as in torch.autograd.gradcheck. */
	struct tens *dy = tens_new(GT_F64, rank, dim), *dx = tens_new(GT_F64, rank, dim), *dg = tens_new(GT_F64, DIMS(ch)),
	            *db = tens_new(GT_F64, DIMS(ch));
	tens_random(dy, 6, -1, 1);
	struct op_case c = {.code = GT_OP_BATCHNORM_DX,
	                    .attr = &b.attr,
	                    .in = {dy, b.x, b.gamma, b.mean, b.rstd},
	                    .nin = 5,
	                    .out = {dx, affine ? dg : NULL, affine ? db : NULL},
	                    .nout = 3};
	if (!op_run(&c))
		return;
	struct {
		struct tens *var, *grad;
	} pairs[] = {{b.x, dx}, {b.gamma, dg}, {b.beta, db}};
	struct tens *rm = copy_of(b.rmean), *rv = copy_of(b.rvar);
	for (int k = 0; k < (affine ? 3 : 1); k++)
		for (int64_t i = 0; i < gt_tdesc_count(&pairs[k].var->d); i += 1 + gt_tdesc_count(&pairs[k].var->d) / 40) {
			double keep = pairs[k].var->v[i], side[2], mag = 0;
			for (int s = 0; s < 2; s++) {
				pairs[k].var->v[i] = keep + (s ? 1e-6 : -1e-6);
				memcpy(b.rmean->v, rm->v, (size_t)ch * 8);
				memcpy(b.rvar->v, rv->v, (size_t)ch * 8);
				bn_forward(&b);
				side[s] = dot(b.y, dy, &mag);
			}
			pairs[k].var->v[i] = keep;
			double num = (side[1] - side[0]) / 2e-6, got = pairs[k].grad->v[i];
			CHECK_MSG(fabs(num - got) <= 1e-5 + 1e-3 * fabs(num), "train %d gradient %d[%lld]: %g, differences say %g", train, k,
			          (long long)i, got, num);
		}
	if (affine) {
		struct tens *g0 = copy_of(dg), *b0 = copy_of(db);
		check_accumulate(c, 1, g0);
		check_accumulate(c, 2, b0);
		tens_free(g0), tens_free(b0);
	}
	tens_free(b.x), tens_free(b.gamma), tens_free(b.beta), tens_free(b.rmean), tens_free(b.rvar), tens_free(b.nbt), tens_free(b.y),
	    tens_free(b.mean);
	tens_free(b.rstd), tens_free(want), tens_free(wmean), tens_free(wvar), tens_free(dy), tens_free(dx), tens_free(dg), tens_free(db),
	    tens_free(rm), tens_free(rv);
}

TEST(f64_batchnorm)
{
	cpu_reference();
	for (int v = 0; v < 4; v++) {
		bn_case(2, (int64_t[]){9, 5}, v & 1, v & 2);
		bn_case(4, (int64_t[]){3, 4, 5, 2}, v & 1, v & 2);
	}
}
RUN_TESTS()
