/* Calls that the planner joins (engine/plan/backend_fusion.c) beside the calls that they replace, which tool_calls.c compares with the
 * CPU's: on the simulator and, from tests/gpu/check.sh, on a GPU (PAIR_GPU). */
#include "backend.h"
#include "base/philox.h"
#include "base/plugin.h"
#include "ew.h"
#include "number.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct gt_backend *be;
static struct gt_dev *dev;

static bool open_device(void)
{
	struct gt_err e = {0};
	void *p;
	if (dev)
		return true;
	CHECK_OK(gt_plugin_open("cuda", "gt_backend_cuda", &p, &e), e);
	be = p;
	CHECK_OK(be->open(&(struct gt_dev_opts){.deterministic = true}, &dev, &e), e);
	return dev != NULL;
}

/* ---- tensors in device memory ------------------------------------------------------------------------------------------------------ */
struct tensor {
	struct gt_tdesc d;
	void *p;
};

static struct tensor empty(enum gt_dtype t, int rank, const int64_t *dim)
{
	struct tensor x = {.d = gt_tdesc_make(t, rank, dim, false)};
	struct gt_err e = {0};
	CHECK_OK(be->alloc(dev, gt_tdesc_bytes(&x.d) + 256, &x.p, &e), e);
	return x;
}

static void put(struct tensor *x, const void *host)
{
	struct gt_err e = {0};
	CHECK_OK(be->copy(dev, x->p, host, gt_tdesc_bytes(&x->d), GT_COPY_H2D, 0, &e), e);
}

static void *host_of(const struct tensor *x)
{
	struct gt_err e = {0};
	void *host = malloc(gt_tdesc_bytes(&x->d) + 1);
	CHECK_OK(be->copy(dev, host, x->p, gt_tdesc_bytes(&x->d), GT_COPY_D2H, 0, &e), e);
	return host;
}

/* -3 .. 3; row `zero` of a matrix is zeros, whose relu is a tie */
static struct tensor filled(enum gt_dtype t, int64_t rows, int64_t cols, uint32_t seed, int64_t zero)
{
	struct tensor x = empty(t, cols ? 2 : 1, (int64_t[]){rows, cols});
	int64_t n = gt_tdesc_count(&x.d), width = cols ? cols : 1;
	char *host = malloc((size_t)n * 4 + 4);
	for (int64_t i = 0; i < n; i++) {
		float v = i / width == zero ? 0 : gt_rng_uniform(gt_philox4x32((uint32_t)i, seed, 0, 0, 7, 11).v[0]) * 6 - 3;
		if (t == GT_F32)
			((float *)(void *)host)[i] = v;
		else
			((uint16_t *)(void *)host)[i] = t == GT_BF16 ? gt_bf16_from_f32(v) : gt_f16_from_f32(v);
	}
	put(&x, host);
	free(host);
	return x;
}

static void drop(struct tensor *x, int n)
{
	for (int i = 0; i < n; i++)
		if (x[i].p)
			be->free(dev, x[i].p);
}

/* Largest difference, relative to 1 or the number. */
static double apart(const struct tensor *a, const struct tensor *b)
{
	char *x = host_of(a), *y = host_of(b);
	double most = 0;
	for (int64_t i = 0; i < gt_tdesc_count(&a->d); i++) {
		double u = gt_load_number(a->d.dtype, x, i), v = gt_load_number(b->d.dtype, y, i), d = fabs(u - v) / fmax(1, fabs(u));
		most = d > most || isnan(d) ? d : most;
	}
	free(x);
	free(y);
	return most;
}

/* ---- calls ------------------------------------------------------------------------------------------------------------------------- */
#define LIST(...) (struct tensor *[]){__VA_ARGS__}, (int)(sizeof((struct tensor *[]){__VA_ARGS__}) / sizeof(struct tensor *))
static struct gt_step_args step_args;

/* false: refused, for the reason in err */
static bool call(enum gt_opcode code, const void *attr, uint32_t accumulate, struct tensor **in, int nin, struct tensor **out, int nout,
                 struct gt_err *err)
{
	struct gt_opcall oc = {
	    .code = code, .name = "l", .attr = attr, .nin = nin, .nout = nout, .accumulate = accumulate, .deterministic = true};
	void *pin[GT_MAX_IO] = {0}, *pout[GT_MAX_IO] = {0}, *scratch = NULL;
	struct gt_kernel *k;
	*err = (struct gt_err){0};
	for (int i = 0; i < nin; i++)
		if (in[i])
			oc.in[i] = &in[i]->d, pin[i] = in[i]->p;
	for (int i = 0; i < nout; i++)
		if (out[i])
			oc.out[i] = &out[i]->d, pout[i] = out[i]->p;
	if (be->prepare(dev, &oc, &k, err) != GT_OK)
		return false;
	CHECK_OK(be->alloc(dev, be->scratch(k) + 1, &scratch, err), *err);
	struct gt_launch a = {.in = pin, .out = pout, .scratch = scratch, .step_args = &step_args};
	CHECK_OK(be->launch(dev, k, &a, err), *err);
	CHECK_OK(be->sync(dev, 0, err), *err);
	be->free(dev, scratch);
	be->release(dev, k);
	return true;
}

#define CALL(...) CHECK_MSG(call(__VA_ARGS__, &e), "%s", e.msg)

static const enum gt_dtype types[] = {GT_F32, GT_BF16, GT_F16};

/* ---- tests ------------------------------------------------------------------------------------------------------------------------- */
/* The mask of bits says what y says: the same bits of y and dx. */
TEST(a_mask_of_bits)
{
	static const int64_t shapes[][4] = {
	    {1, 1, 1, 1}, {5, 7, 33, 4}, {32, 40, 512, 10}, {9, 24, 128, 33}, {100, 16, 129, 12}}; /* N, in, out, of the next */
	struct gt_err e;
	int bits = 0;
	if (!open_device())
		return;
	for (int s = 0; s < 5; s++)
		for (int v = 0; v < 6; v++) {
			enum gt_dtype t = types[v % 3];
			int64_t n = shapes[s][0], in = shapes[s][1], out = shapes[s][2], next = shapes[s][3];
			struct gt_attr_linear attr = {.out = out, .bias = v / 3, .act = GT_ACT_RELU}, after = {.out = next};
			struct tensor x[] = {filled(t, n, in, 1, -1),
			                     filled(t, out, in, 2, out / 2),
			                     filled(GT_F32, out, 0, 3, out / 2),
			                     filled(t, n, next, 4, -1),
			                     filled(t, next, out, 5, -1),
			                     empty(t, 2, (int64_t[]){n, out}),
			                     empty(t, 2, (int64_t[]){n, out}),
			                     empty(t, 2, (int64_t[]){n, out}),
			                     empty(t, 2, (int64_t[]){n, out}),
			                     empty(GT_U8, 2, (int64_t[]){n, gt_mask_bytes(out)})};
			struct tensor *b = attr.bias ? &x[2] : NULL;
			CALL(GT_OP_LINEAR, &attr, 0, LIST(&x[0], &x[1], b), LIST(&x[5]));
			CALL(GT_OP_LINEAR_DX, &after, 0, LIST(&x[3], &x[4], &x[5]), LIST(&x[6]));
			if (call(GT_OP_LINEAR, &attr, 0, LIST(&x[0], &x[1], b), LIST(&x[7], &x[9]), &e) &&
			    call(GT_OP_LINEAR_DX, &after, 0, LIST(&x[3], &x[4], &x[9]), LIST(&x[8]), &e)) {
				/* On a GPU the library may take another algorithm with another epilogue. */
				double tol = !getenv("PAIR_GPU") ? 0 : t == GT_F32 ? 1e-5 : t == GT_BF16 ? 0x1p-7 : 0x1p-10;
				CHECK_MSG(apart(&x[5], &x[7]) <= tol, "y of %s [%d, %d] differs", gt_dtype_name(t), (int)n, (int)out);
				CHECK_MSG(apart(&x[6], &x[8]) <= tol, "dx of %s [%d, %d] differs", gt_dtype_name(t), (int)n, (int)out);
				bits++;
			} else {
				/* No epilogue where a dimension is 1; a library may lack it for other shapes. */
				CHECK_MSG(e.code == GT_EUNAVAILABLE && (getenv("PAIR_GPU") || n == 1), "%s", e.msg);
				printf("# joins: %s\n", e.msg);
			}
			drop(x, 10);
		}
	printf("# joins: %d of 30 pairs of linear and linear.dx by a mask of bits\n", bits);
}

TEST(a_library_without_the_epilogue)
{
	static const char *const names[] = {"AUX", "DRELU"};
	struct gt_attr_linear attr = {.out = 24, .act = GT_ACT_RELU};
	struct gt_err e;
	if (getenv("PAIR_GPU") || !open_device())
		return;
	for (int i = 0; i < 2; i++) {
		struct tensor x[] = {filled(GT_F32, 5, 24, 1, -1), filled(GT_F32, 24, 24, 2, -1), empty(GT_F32, 2, (int64_t[]){5, 24}),
		                     empty(GT_U8, 2, (int64_t[]){5, 16})};
		setenv("CUDASIM_NO_EPILOGUE", names[i], 1);
		bool forward = call(GT_OP_LINEAR, &attr, 0, LIST(&x[0], &x[1]), LIST(&x[2], &x[3]), &e);
		CHECK_MSG(forward == (i == 1) && (forward || e.code == GT_EUNAVAILABLE), "linear without %s: %s", names[i], e.msg);
		bool back = call(GT_OP_LINEAR_DX, &attr, 0, LIST(&x[0], &x[1], &x[3]), LIST(&x[2]), &e);
		CHECK_MSG(back == (i == 0) && (back || e.code == GT_EUNAVAILABLE), "linear.dx without %s: %s", names[i], e.msg);
		unsetenv("CUDASIM_NO_EPILOGUE");
		drop(x, 4);
	}
}

/* Sums of up to 784 products of values up to 3, in f32, in another order (tool_calls.c); 16-bit results: a rounding step of terms of 3 or,
 * for the bias, two. */
static double tolerance(enum gt_dtype t)
{
	return t == GT_F32 ? 1e-4 : t == GT_BF16 ? 3 * 0x1p-7 : 3 * 0x1p-10;
}

TEST(last_layer_and_loss)
{
	static const int64_t shapes[][3] = {{1, 1, 1}, {5, 7, 4}, {32, 512, 10}, {33, 784, 17}, {64, 84, 32}, {300, 33, 2}}; /* N, in, out */
	static const enum gt_opcode codes[] = {GT_OP_CROSS_ENTROPY, GT_OP_NLL, GT_OP_MSE};
	int64_t words = sizeof(struct gt_metrics) / 8;
	struct gt_err e;
	if (!open_device())
		return;
	for (int s = 0; s < 6; s++)
		for (int v = 0; v < 18; v++) {
			enum gt_dtype t = types[v % 3];
			int64_t n = shapes[s][0], in = shapes[s][1], out = shapes[s][2];
			bool train = v < 9;
			struct gt_attr_linear_loss attr = {.linear = {.out = out, .bias = s % 2},
			                                   .code = codes[v / 3 % 3],
			                                   .loss = {.number = {s % 3 ? 0.1 : 0}, .ignore_index = s % 4 ? -100 : 0}};
			struct tensor x[] = {filled(t, n, in, 1, -1),  filled(t, out, in, 2, 0),         filled(GT_F32, out, 0, 3, -1),
			                     empty(GT_I32, 1, &n),     empty(GT_F64, 0, NULL),           empty(t, 2, (int64_t[]){n, out}),
			                     empty(GT_F64, 1, &words), empty(t, 2, (int64_t[]){n, out}), empty(t, 2, (int64_t[]){n, out}),
			                     empty(GT_F64, 1, &words), empty(t, 2, (int64_t[]){n, out})};
			int32_t *target = malloc((size_t)n * 4);
			double scale = 6;
			for (int64_t i = 0; i < n; i++)
				target[i] = (int32_t)(i * 7 % out);
			put(&x[3], target);
			put(&x[4], &scale);
			free(target);
			step_args = (struct gt_step_args){.inv_weight = 1 / (double)n};
			struct tensor *b = attr.linear.bias ? &x[2] : NULL, *sc = s == 2 ? &x[4] : NULL;
			CALL(GT_OP_LINEAR, &attr.linear, 0, LIST(&x[0], &x[1], b), LIST(&x[5]));
			CALL(attr.code, &attr.loss, 0, LIST(&x[5], &x[3], sc), LIST(&x[6], &x[7]));
			if (train)
				CALL(GT_OP_LINEAR_LOSS, &attr, 0, LIST(&x[0], &x[1], b, &x[3], sc), LIST(&x[8], &x[9], &x[10]));
			else
				CALL(GT_OP_LINEAR_LOSS, &attr, 0, LIST(&x[0], &x[1], b, &x[3]), LIST(&x[8], &x[9]));
			const char *at = gt_opcode_name(attr.code), *type = gt_dtype_name(t);
			double tol = tolerance(t);
			CHECK_MSG(apart(&x[5], &x[8]) <= tol, "y of %s %s [%d, %d] is %g off", at, type, (int)n, (int)out, apart(&x[5], &x[8]));
			/* Of a loss, which is a difference of logits, over all rows; counts are compared as bits of doubles (denormal): their own test
			 * below. */
			struct gt_metrics *p = host_of(&x[6]), *q = host_of(&x[9]);
			CHECK_MSG(fabs(p->loss - q->loss) <= 40 * tol * (double)n && p->weight == q->weight && p->count == q->count,
			          "%s %s [%d, %d]: loss %.9g of %g, separately %.9g of %g", at, type, (int)n, (int)out, q->loss, q->weight, p->loss,
			          p->weight);
			CHECK_MSG(t != GT_F32 || (p->correct == q->correct && p->top5 == q->top5), "%s: %d right, separately %d", at, (int)q->correct,
			          (int)p->correct);
			free(p);
			free(q);
			/* Gradients are of the order of scale / N, of which a probability moves by less than the logits do: 50 of them, at worst. */
			if (train)
				CHECK_MSG(apart(&x[7], &x[10]) <= 50 * tol, "dy of %s %s [%d, %d] is %g off", at, type, (int)n, (int)out,
				          apart(&x[7], &x[10]));
			drop(x, 11);
		}
}

TEST(both_gradients)
{
	static const int64_t shapes[][3] = {{1, 1, 1}, {5, 7, 4}, {32, 512, 10}, {70, 33, 17}, {64, 84, 32}, {512, 40, 3}};
	struct gt_err e;
	if (!open_device())
		return;
	for (int s = 0; s < 6; s++)
		for (int v = 0; v < 24; v++) {
			enum gt_dtype t = types[v % 3];
			int64_t n = shapes[s][0], in = shapes[s][1], out = shapes[s][2];
			bool bias = v / 3 % 2, add = v / 6 % 2, masked = v / 12;
			struct gt_attr_linear attr = {.out = out, .bias = bias};
			struct tensor x[] = {filled(t, n, out, 1, -1), filled(t, n, in, 2, n / 2), filled(t, out, in, 3, -1),
			                     empty(t, 2, (int64_t[]){n, in}), filled(GT_F32, out, in, 5, -1), filled(GT_F32, out, 0, 6, -1),
			                     empty(t, 2, (int64_t[]){n, in}), filled(GT_F32, out, in, 5, -1), filled(GT_F32, out, 0, 6, -1)};
			struct tensor *y = masked ? &x[1] : NULL;
			CALL(GT_OP_LINEAR_DX, &attr, 0, LIST(&x[0], &x[2], y), LIST(&x[3]));
			CALL(GT_OP_LINEAR_DW, &attr, add ? 3 : 0, LIST(&x[0], &x[1]), LIST(&x[4], bias ? &x[5] : NULL));
			CALL(GT_OP_LINEAR_BACK, &attr, add ? 6 : 0, LIST(&x[0], &x[1], &x[2], y), LIST(&x[6], &x[7], bias ? &x[8] : NULL));
			for (int i = 0; i < 3; i++)
				CHECK_MSG(apart(&x[3 + i], &x[6 + i]) <= (i ? 1e-4 : tolerance(t)), "output %d of %s [%d, %d, %d]%s%s is %g off", i,
				          gt_dtype_name(t), (int)n, (int)in, (int)out, masked ? ", masked" : "", add ? ", added to" : "",
				          apart(&x[3 + i], &x[6 + i]));
			drop(x, 9);
		}
}

/* What is too large for them, the planner must be told. */
TEST(larger_layers_are_refused)
{
	struct gt_err e;
	int64_t words = sizeof(struct gt_metrics) / 8, n = 4;
	if (!open_device())
		return;
	struct gt_attr_linear_loss attr = {.linear = {.out = 33}, .code = GT_OP_CROSS_ENTROPY};
	struct tensor x[] = {filled(GT_F32, 4, 8, 1, -1),          filled(GT_F32, 33, 8, 2, -1), empty(GT_I32, 1, &n),
	                     empty(GT_F32, 2, (int64_t[]){4, 33}), empty(GT_F64, 1, &words),     empty(GT_F32, 2, (int64_t[]){4, 8})};
	CHECK(!call(GT_OP_LINEAR_LOSS, &attr, 0, LIST(&x[0], &x[1], NULL, &x[2]), LIST(&x[3], &x[4]), &e) && e.code == GT_EUNAVAILABLE);
	CHECK(!call(GT_OP_LINEAR_BACK, &attr.linear, 0, LIST(&x[3], &x[0], &x[1]), LIST(&x[5], &x[1]), &e) && e.code == GT_EUNAVAILABLE);
	drop(x, 6);
}

/* ---- batch normalisation ------------------------------------------------------------------------------------------------------------- */
#define NORM_SHAPES 5
static const int64_t norm_shapes[NORM_SHAPES][2] = {{2, 1}, {7, 8}, {33, 37}, {130, 64}, {1000, 3}}; /* rows, channels */

/* The same bits. */
static bool same(const struct tensor *a, const struct tensor *b)
{
	void *x = host_of(a), *y = host_of(b);
	bool yes = !memcmp(x, y, gt_tdesc_bytes(&a->d));
	free(x);
	free(y);
	return yes;
}

/* A normalisation that writes the gelu of its result, and its gradient, against the two calls of each: the same bits. */
TEST(a_gelu_in_batchnorm)
{
	struct gt_err e;
	if (!open_device())
		return;
	for (int s = 0; s < NORM_SHAPES; s++)
		for (int v = 0; v < 12; v++) {
			enum gt_dtype t = types[v % 3];
			int64_t n = norm_shapes[s][0], c = norm_shapes[s][1];
			bool affine = v / 3 % 2, tanh = v / 6;
			struct gt_attr_gelu gelu = {.approximate = tanh};
			struct gt_attr_norm alone = {.eps = 1e-5, .affine = affine, .train = true}, with = alone;
			with.act = tanh ? GT_ACT_GELU_TANH : GT_ACT_GELU;
			/* 0 x, 1 gamma, 2 beta, 3 dy; of the separate calls: 4 y, 5 mean, 6 rstd, 7 gelu, 8 dy of y, 9 dx, 10 dgamma, 11 dbeta */
			struct tensor x[] = {filled(t, n, c, 1, -1), filled(GT_F32, c, 0, 2, -1), filled(GT_F32, c, 0, 3, -1), filled(t, n, c, 4, -1),
			                     empty(t, 2, (int64_t[]){n, c}), empty(GT_F32, 1, &c), empty(GT_F32, 1, &c),
			                     empty(t, 2, (int64_t[]){n, c}), empty(t, 2, (int64_t[]){n, c}), empty(t, 2, (int64_t[]){n, c}),
			                     empty(GT_F32, 1, &c), empty(GT_F32, 1, &c), empty(t, 2, (int64_t[]){n, c}), empty(GT_F32, 1, &c),
			                     empty(GT_F32, 1, &c), empty(t, 2, (int64_t[]){n, c}), empty(GT_F32, 1, &c), empty(GT_F32, 1, &c),
			                     empty(t, 2, (int64_t[]){n, c})};
			struct tensor *gamma = affine ? &x[1] : NULL, *beta = affine ? &x[2] : NULL;
			struct tensor *dg = affine ? &x[10] : NULL, *db = affine ? &x[11] : NULL, *dg2 = affine ? &x[16] : NULL,
			              *db2 = affine ? &x[17] : NULL;
			CALL(GT_OP_BATCHNORM, &alone, 0, LIST(&x[0], gamma, beta), LIST(&x[4], &x[5], &x[6]));
			CALL(GT_OP_GELU, &gelu, 0, LIST(&x[4]), LIST(&x[7]));
			CALL(GT_OP_GELU_DX, &gelu, 0, LIST(&x[3], &x[4]), LIST(&x[8]));
			CALL(GT_OP_BATCHNORM_DX, &alone, 0, LIST(&x[8], &x[0], gamma, &x[5], &x[6]), LIST(&x[9], dg, db));
			CALL(GT_OP_BATCHNORM, &with, 0, LIST(&x[0], gamma, beta), LIST(&x[12], &x[13], &x[14]));
			CALL(GT_OP_BATCHNORM_Y, &with, 0, LIST(&x[0], gamma, beta, &x[5], &x[6]), LIST(&x[18]));
			CALL(GT_OP_BATCHNORM_DX, &with, 0, LIST(&x[3], &x[0], gamma, &x[5], &x[6], beta), LIST(&x[15], dg2, db2));
			CHECK_MSG(same(&x[7], &x[12]) && same(&x[7], &x[18]) && same(&x[5], &x[13]) && same(&x[6], &x[14]),
			          "%s [%d, %d]: the gelu, which batchnorm writes, is %g off", gt_dtype_name(t), (int)n, (int)c, apart(&x[7], &x[12]));
			CHECK_MSG(same(&x[9], &x[15]) && same(&x[10], &x[16]) && same(&x[11], &x[17]), "%s [%d, %d]: dx through a gelu is %g off",
			          gt_dtype_name(t), (int)n, (int)c, apart(&x[9], &x[15]));
			CHECK(!call(GT_OP_BATCHNORM, &with, 0, LIST(&x[0], gamma, beta, NULL, NULL, NULL, &x[3]), LIST(&x[12], &x[13], &x[14]), &e) &&
			      strstr(e.msg, "a gelu may not follow a residual"));
			CHECK(!call(GT_OP_BATCHNORM_Y, &with, 0, LIST(&x[0], gamma, beta, &x[5], &x[6], &x[3]), LIST(&x[18]), &e) &&
			      strstr(e.msg, "a gelu may not follow a residual"));
			drop(x, 19);
		}
}

/* A gradient in two parts, which batchnorm.dx adds, against the sum as a call of its own: the same bits. kind: no activation; relu, by
 * bn(x) and by y. wanted: the sum after the mask is an output too. pieces: batchnorm.sums. */
static void two_parts(int shape, enum gt_dtype t, int kind, bool wanted, bool pieces)
{
	struct gt_err e;
	int64_t n = norm_shapes[shape][0], c = norm_shapes[shape][1];
	struct gt_attr_norm attr = {.eps = 1e-5, .affine = true, .train = true, .act = kind ? GT_ACT_RELU : GT_ACT_NONE};
	/* 0 and 1 parts of dy, 2 x, 3 gamma, 4 beta, 5 mean, 6 rstd, 7 y, 8 sum; 9 dx, 10 dgamma, 11 dbeta, 12 g; the same from 13 on */
	struct tensor x[] = {filled(t, n, c, 1, -1), filled(t, n, c, 2, -1), filled(t, n, c, 3, -1), filled(GT_F32, c, 0, 4, -1),
	                     filled(GT_F32, c, 0, 5, -1), empty(GT_F32, 1, &c), empty(GT_F32, 1, &c), filled(t, n, c, 6, n / 2),
	                     empty(t, 2, (int64_t[]){n, c}), empty(t, 2, (int64_t[]){n, c}), empty(GT_F32, 1, &c), empty(GT_F32, 1, &c),
	                     empty(t, 2, (int64_t[]){n, c}), empty(t, 2, (int64_t[]){n, c}), empty(GT_F32, 1, &c), empty(GT_F32, 1, &c),
	                     empty(t, 2, (int64_t[]){n, c}), empty(GT_F64, 2, (int64_t[]){3, c}), empty(GT_F64, 2, (int64_t[]){3, c})};
	struct tensor *beta = kind ? &x[4] : NULL, *y = kind == 2 ? &x[7] : NULL;
	CALL(GT_OP_BATCHNORM, &attr, 0, LIST(&x[2], &x[3], &x[4]), LIST(&x[9], &x[5], &x[6]));
	CALL(GT_OP_ADD, NULL, 0, LIST(&x[0], &x[1]), LIST(&x[8]));
	enum gt_opcode code = pieces ? GT_OP_BATCHNORM_SUMS : GT_OP_BATCHNORM_DX;
	struct tensor *first = pieces ? &x[17] : &x[9], *second = pieces ? &x[18] : &x[13];
	struct tensor **in = (struct tensor *[]){&x[8], &x[2], &x[3], &x[5], &x[6], beta, y};
	CHECK_MSG(call(code, &attr, 0, in, kind ? 7 : 5, LIST(first, &x[10], &x[11], kind && wanted ? &x[12] : NULL), &e), "%s", e.msg);
	struct tensor **more = (struct tensor *[]){&x[0], &x[2], &x[3], &x[5], &x[6], beta, y, pieces ? &x[1] : NULL, &x[1]};
	CHECK_MSG(call(code, &attr, 0, more, pieces ? 8 : 9, LIST(second, &x[14], &x[15], wanted ? &x[16] : NULL), &e), "%s", e.msg);
	for (int i = 0; i < 4; i++)
		if ((i || !pieces) && (i < 3 || wanted)) {
			const struct tensor *alone = i == 3 && !kind ? &x[8] : &x[9 + i];
			CHECK_MSG(same(alone, &x[13 + i]), "%s [%d, %d], mask %d: output %d is %g off", gt_dtype_name(t), (int)n, (int)c, kind, i,
			          apart(alone, &x[13 + i]));
		}
	CHECK_MSG(same(&x[17], &x[18]), "%s [%d, %d], mask %d: sums differ", gt_dtype_name(t), (int)n, (int)c, kind);
	drop(x, 19);
}

TEST(two_gradients_in_batchnorm)
{
	if (!open_device())
		return;
	for (int s = 0; s < NORM_SHAPES; s++)
		for (int t = 0; t < 3; t++)
			for (int kind = 0; kind < 3; kind++)
				for (int form = 0; form < 3; form++)
					two_parts(s, types[t], kind, form > 0, form > 1);
}

/* ---- pooling ------------------------------------------------------------------------------------------------------------------------- */
static struct tensor image(enum gt_dtype t, const int64_t *dim, uint32_t seed)
{
	struct tensor flat = seed ? filled(t, dim[0] * dim[1], dim[2] * dim[3], seed, 0) : empty(t, 4, dim);
	flat.d = gt_tdesc_make(t, 4, dim, true);
	return flat;
}

/* Indices of one byte, in windows with padding, overlap, gaps and a cut edge, against indices of four: the same bits of y and dx. Without
 * indices, y is the same too. */
TEST(indices_of_a_byte)
{
	static const struct gt_attr_pool2d windows[] = {{.kernel = {2, 2}, .stride = {2, 2}},
	                                                {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}},
	                                                {.kernel = {3, 2}, .stride = {1, 3}, .padding = {1, 0}},
	                                                {.kernel = {16, 16}, .stride = {5, 5}, .padding = {7, 7}}};
	static const int64_t channels[] = {3, 8, 24};
	struct gt_err e;
	if (!open_device())
		return;
	for (int w = 0; w < 4; w++)
		for (int v = 0; v < 9; v++) {
			enum gt_dtype t = types[v % 3];
			const struct gt_attr_pool2d *a = &windows[w];
			int64_t in[4] = {3, channels[v / 3], 11, 10}, out[4] = {in[0], in[1]};
			for (int d = 0; d < 2; d++)
				out[2 + d] = (in[2 + d] + 2 * a->padding[d] - a->kernel[d]) / a->stride[d] + 1;
			/* 0 x, 1 y, 2 indices, 3 dy, 4 dx; 5 y, 6 indices of a byte, 7 dx; 8 y without indices */
			struct tensor x[] = {image(t, in, 1),  image(t, out, 0),     image(GT_I32, out, 0), image(t, out, 2), image(t, in, 0),
			                     image(t, out, 0), image(GT_U8, out, 0), image(t, in, 0),       image(t, out, 0)};
			CALL(GT_OP_MAXPOOL2D, a, 0, LIST(&x[0]), LIST(&x[1], &x[2]));
			CALL(GT_OP_MAXPOOL2D_DX, a, 0, LIST(&x[3], &x[2]), LIST(&x[4]));
			CALL(GT_OP_MAXPOOL2D, a, 0, LIST(&x[0]), LIST(&x[5], &x[6]));
			CALL(GT_OP_MAXPOOL2D_DX, a, 0, LIST(&x[3], &x[6]), LIST(&x[7]));
			CALL(GT_OP_MAXPOOL2D, a, 0, LIST(&x[0]), LIST(&x[8]));
			CHECK_MSG(same(&x[1], &x[5]) && same(&x[4], &x[7]) && same(&x[1], &x[8]), "%s, window %d: y is %g off, dx %g", gt_dtype_name(t),
			          w, apart(&x[1], &x[5]), apart(&x[4], &x[7]));
			drop(x, 9);
		}
	struct gt_attr_pool2d large = {.kernel = {17, 16}, .stride = {1, 1}};
	int64_t in[4] = {1, 1, 17, 16}, out[4] = {1, 1, 1, 1};
	struct tensor x[] = {image(GT_F32, in, 1), image(GT_F32, out, 0), image(GT_U8, out, 0)};
	CHECK(!call(GT_OP_MAXPOOL2D, &large, 0, LIST(&x[0]), LIST(&x[1], &x[2]), &e) && e.code == GT_EUNAVAILABLE);
	drop(x, 3);
}

RUN_TESTS()
