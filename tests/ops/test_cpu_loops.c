/* The CPU backend's element-wise operations, shapes, softmax against formulas in double, in f32, bf16 and f64,
 * on one thread and three: same bits. */
/* tests/run: beside others */
#include "cpu_raw.h"
#include "ew.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NEW(t, n) raw_alloc(t, n)
static const int64_t sizes[] = {1, 2, 7, 15, 16, 17, 63, 64, 65, 1000, 4099, 300001};

/* ---- element-wise -------------------------------------------------------------------------------------------------------------
 * a, b: inputs; *tol: what the formula may be off by in units of eps of the arithmetic, given in absolute terms. */
typedef double formula(double a, double b, double *mag);
#define FORMULA(name) static double name(double a, double b, double *mag)
static double sig(double x)
{
	return 1 / (1 + exp(-x));
}
static double cdf(double x)
{
	return 0.5 * (1 + erf(x * M_SQRT1_2));
}
FORMULA(f_relu)
{
	(void)b;
	*mag = 0;
	return a > 0 || isnan(a) ? a : 0;
}
FORMULA(f_relu_dx)
{
	*mag = 0;
	return b > 0 ? a : 0;
}
FORMULA(f_leaky)
{
	(void)b;
	*mag = fabs(a);
	return a > 0 ? a : 0.1 * a;
}
FORMULA(f_leaky_dx)
{
	*mag = fabs(a);
	return b > 0 ? a : 0.1 * a;
}
FORMULA(f_sigmoid)
{
	(void)b;
	return *mag = sig(a);
}
FORMULA(f_sigmoid_dx)
{
	*mag = fabs(a * b) * (1 + fabs(b));
	return a * (1 - b) * b;
}
FORMULA(f_tanh)
{
	(void)b;
	*mag = fabs(tanh(a));
	return tanh(a);
}
FORMULA(f_tanh_dx)
{
	*mag = fabs(a) * (1 + b * b);
	return a * (1 - b * b);
}
FORMULA(f_gelu)
{
	(void)b;
	*mag = fabs(a);
	return a * cdf(a);
} /* 1 + erf(x) cancels for negative x, as in PyTorch: absolute error */
FORMULA(f_gelu_dx)
{
	*mag = fabs(a) * (1 + fabs(b));
	return a * (cdf(b) + b * exp(-b * b / 2) / sqrt(2 * M_PI));
}
FORMULA(f_gelu_tanh)
{
	(void)b;
	*mag = fabs(a) * (1 + fabs(a));
	return 0.5 * a * (1 + tanh(sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)));
}
FORMULA(f_gelu_tanh_dx)
{
	double t = tanh(sqrt(2 / M_PI) * (b + 0.044715 * b * b * b)), d = sqrt(2 / M_PI) * (1 + 3 * 0.044715 * b * b);
	*mag = fabs(a) * (1 + fabs(b) * d * (1 + fabs(b)));
	return a * (0.5 * (1 + t) + 0.5 * b * (1 - t * t) * d);
}
FORMULA(f_silu)
{
	(void)b;
	*mag = fabs(a * sig(a));
	return a * sig(a);
}
FORMULA(f_silu_dx)
{
	*mag = fabs(a) * (1 + fabs(b));
	return a * sig(b) * (1 + b * (1 - sig(b)));
}
FORMULA(f_mish)
{
	double t = tanh(log1p(exp(a)));
	(void)b;
	*mag = fabs(a * t);
	return a * t;
}
FORMULA(f_mish_dx)
{
	double t = tanh(log1p(exp(b)));
	*mag = fabs(a) * (1 + fabs(b));
	return a * (t + b * sig(b) * (1 - t * t));
}
FORMULA(f_elu)
{
	(void)b;
	*mag = fabs(a);
	return a < 0 ? 1.3 * expm1(a) : a;
}
FORMULA(f_elu_dx)
{
	double d = b <= 0 ? a * 1.3 * exp(b) : a;
	*mag = fabs(d);
	return d;
}
FORMULA(f_relu6)
{
	(void)b;
	*mag = 0;
	return fmin(fmax(a, 0), 6);
}
FORMULA(f_relu6_dx)
{
	*mag = 0;
	return b <= 0 || b >= 6 ? 0 : a;
}
FORMULA(f_hardsigmoid)
{
	(void)b;
	*mag = 1;
	return fmin(fmax(a + 3, 0), 6) / 6;
}
FORMULA(f_hardsigmoid_dx)
{
	*mag = fabs(a);
	return b > -3 && b < 3 ? a / 6 : 0;
}
FORMULA(f_hardswish)
{
	(void)b;
	*mag = fabs(a);
	return a * fmin(fmax(a + 3, 0), 6) / 6;
}
FORMULA(f_hardswish_dx)
{
	*mag = fabs(a) * (1 + fabs(b));
	return b <= -3 ? 0 : b < 3 ? a * (b / 3 + 0.5) : a;
}
FORMULA(f_mul)
{
	*mag = 0;
	return a * b;
}
FORMULA(f_add)
{
	*mag = 0;
	return a + b;
}

static const struct gt_attr_act leaky = {{0.1}}, elu = {{1.3}};
static const struct gt_attr_gelu gelu_erf = {0}, gelu_tanh = {1};
/* ulps: roundings in the formula, two ulp for each exp, tanh or erf among them. */
static const struct act {
	enum gt_opcode code;
	formula *f;
	int nin;
	double ulps;
	const void *attr;
} acts[] = {
    {GT_OP_RELU, f_relu, 1, 0, NULL},
    {GT_OP_RELU_DX, f_relu_dx, 2, 0, NULL},
    {GT_OP_LEAKY_RELU, f_leaky, 1, 2, &leaky},
    {GT_OP_LEAKY_RELU_DX, f_leaky_dx, 2, 2, &leaky},
    {GT_OP_SIGMOID, f_sigmoid, 1, 6, NULL},
    {GT_OP_SIGMOID_DX, f_sigmoid_dx, 2, 3, NULL},
    {GT_OP_TANH, f_tanh, 1, 4, NULL},
    {GT_OP_TANH_DX, f_tanh_dx, 2, 3, NULL},
    {GT_OP_GELU, f_gelu, 1, 6, &gelu_erf},
    {GT_OP_GELU_DX, f_gelu_dx, 2, 12, &gelu_erf},
    {GT_OP_GELU, f_gelu_tanh, 1, 10, &gelu_tanh},
    {GT_OP_GELU_DX, f_gelu_tanh_dx, 2, 16, &gelu_tanh},
    {GT_OP_SILU, f_silu, 1, 7, NULL},
    {GT_OP_SILU_DX, f_silu_dx, 2, 12, NULL},
    {GT_OP_MUL, f_mul, 2, 0, NULL},
    {GT_OP_ADD, f_add, 2, 0, NULL},
    {GT_OP_MISH, f_mish, 1, 9, NULL},
    {GT_OP_MISH_DX, f_mish_dx, 2, 16, NULL},
    {GT_OP_ELU, f_elu, 1, 4, &elu},
    {GT_OP_ELU_DX, f_elu_dx, 2, 5, &elu},
    {GT_OP_RELU6, f_relu6, 1, 0, NULL},
    {GT_OP_RELU6_DX, f_relu6_dx, 2, 0, NULL},
    {GT_OP_HARDSIGMOID, f_hardsigmoid, 1, 3, NULL},
    {GT_OP_HARDSIGMOID_DX, f_hardsigmoid_dx, 2, 3, NULL},
    {GT_OP_HARDSWISH, f_hardswish, 1, 4, NULL},
    {GT_OP_HARDSWISH_DX, f_hardswish_dx, 2, 4, NULL},
};

static void act_case(const struct act *act, enum gt_dtype t, int64_t n)
{
	struct gt_tdesc d = gt_tdesc_make(t, 2, (int64_t[]){1, n}, true), d0 = d, d1 = d, dy = d;
	struct gt_opcall call = {.code = act->code, .attr = act->attr, .nin = act->nin, .nout = 1, .in = {&d0, &d1}, .out = {&dy}};
	size_t bytes = (size_t)n * gt_dtype_size(t);
	void *a = NEW(t, n), *b = NEW(t, n), *y = NEW(t, n), *z = NEW(t, n);
	double *want = malloc((size_t)n * sizeof *want), *tol = malloc((size_t)n * sizeof *tol);
	raw_random(t, a, n, 1, -12, 12);
	raw_random(t, b, n, 2, -6, 6);
	for (int64_t i = 0; i < n; i++) {
		double mag;
		want[i] = act->f(gt_load_number(t, a, i), gt_load_number(t, b, i), &mag);
		tol[i] = act->ulps * raw_eps(t) * mag;
	}
	raw_run(1, &call, (void *[]){a, b}, (void *[]){y}, NULL);
	RAW_CHECK(gt_opcode_name(call.code), t, y, want, tol, n);
	raw_run(3, &call, (void *[]){a, b}, (void *[]){z}, NULL);
	CHECK_MSG(!memcmp(y, z, bytes), "%s: three threads give other bits than one", gt_opcode_name(call.code));
	raw_run(3, &call, (void *[]){a, b}, (void *[]){a}, NULL);
	CHECK_MSG(!memcmp(y, a, bytes), "%s: other bits in place", gt_opcode_name(call.code));
	free(a), free(b), free(y), free(z), free(want), free(tol);
}

TEST(activations_and_gradients)
{
	for (size_t w = 0; w < sizeof acts / sizeof acts[0]; w++)
		for (size_t t = 0; t < 3; t++)
			for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
				act_case(&acts[w], raw_types[t], sizes[s]);
}

/* Every activation, also one that has no formula above, against its own function in f64 (ew.inc), which test_ops.c compares with PyTorch.
 * The tolerance allows for a cancellation, as in gelu. */
#define GT_X(arg, CODE, name, saved, numbers, ...)                                                                                         \
	FORMULA(row_##name)                                                                                                                    \
	{                                                                                                                                      \
		const double n0 = 1.25, n1 = 20;                                                                                                   \
		(void)n0, (void)n1, (void)b;                                                                                                       \
		*mag = 1 + fabs(a);                                                                                                                \
		return gt_##name##_f64(a GT_ACTIVATION_NUMBERS_##numbers);                                                                         \
	}                                                                                                                                      \
	FORMULA(row_##name##_dx)                                                                                                               \
	{                                                                                                                                      \
		const double n0 = 1.25, n1 = 20;                                                                                                   \
		(void)n0, (void)n1;                                                                                                                \
		*mag = fabs(a) * (1 + fabs(b));                                                                                                    \
		return gt_##name##_dx_f64(a, b GT_ACTIVATION_NUMBERS_##numbers);                                                                   \
	}
GT_ACTIVATIONS(GT_X)
#undef GT_X

TEST(every_activation_is_its_function_in_f64)
{
	static const struct gt_attr_act attr_act = {{1.25, 20}};
	static const struct gt_attr_gelu attr_gelu = {0};
	static const char attr_none;
	static const struct act rows[] = {
#define GT_X(arg, CODE, name, saved, numbers, grain, attr, ...)                                                                            \
	{GT_OP_##CODE, row_##name, 1, 16, &attr_##attr}, {GT_OP_##CODE##_DX, row_##name##_dx, 2, 16, &attr_##attr},
	    GT_ACTIVATIONS(GT_X)
#undef GT_X
	};
	for (size_t w = 0; w < sizeof rows / sizeof rows[0]; w++)
		for (size_t t = 0; t < 3; t++)
			for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
				act_case(&rows[w], raw_types[t], sizes[s]);
}

/* A digest of all f32 and bf16 results: no machine, instruction set or compiler may change a bit (f64 goes through the C library).
 * A deliberate change of a formula changes it too; print and replace it then. */
TEST(activations_have_the_same_bits_everywhere)
{
	const int64_t n = 100003;
	uint64_t digest = 0xcbf29ce484222325; /* FNV-1a over 16-bit words */
	for (size_t w = 0; w < sizeof acts / sizeof acts[0]; w++)
		for (size_t t = 0; t < 2; t++) {
			enum gt_dtype type = raw_types[t];
			struct gt_tdesc d0 = gt_tdesc_make(type, 1, &n, false), d1 = d0, dy = d0;
			struct gt_opcall call = {
			    .code = acts[w].code, .attr = acts[w].attr, .nin = acts[w].nin, .nout = 1, .in = {&d0, &d1}, .out = {&dy}};
			void *a = NEW(type, n), *b = NEW(type, n), *y = NEW(type, n);
			raw_random(type, a, n, 31, -20, 20);
			raw_random(type, b, n, 32, -8, 8);
			raw_run(2, &call, (void *[]){a, b}, (void *[]){y}, NULL);
			for (size_t i = 0; i < (size_t)n * gt_dtype_size(type) / 2; i++)
				digest = (digest ^ ((uint16_t *)y)[i]) * 0x100000001b3;
			free(a), free(b), free(y);
		}
	CHECK_MSG(digest == 0x1a75830fbef08526ull, "digest 0x%llx", (unsigned long long)digest);
}

TEST(activations_show_nan_and_saturate)
{
	const double in[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 100, -100};
	const struct {
		enum gt_opcode code;
		double want[7];
	} rows[] = {
	    {GT_OP_RELU, {NAN, INFINITY, 0, 0, 0, 100, 0}},
	    {GT_OP_SIGMOID, {NAN, 1, 0, 0.5, 0.5, 1, 3.720075976020836e-44}},
	    {GT_OP_TANH, {NAN, 1, -1, 0, 0, 1, -1}},
	    {GT_OP_SILU, {NAN, INFINITY, NAN, 0, 0, 100, -3.720075976020836e-42}}, /* -inf: -inf / inf, as in PyTorch */
	    {GT_OP_MISH, {NAN, INFINITY, NAN, 0, 0, 100, -3.720075976020836e-42}},
	    {GT_OP_RELU6, {NAN, 6, 0, 0, 0, 6, 0}},
	    {GT_OP_HARDSIGMOID, {NAN, 1, 0, 0.5, 0.5, 1, 0}},
	    {GT_OP_HARDSWISH, {NAN, INFINITY, NAN, 0, 0, 100, 0}}, /* -inf * 0 */
	};
	for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
		for (size_t t = 0; t < 3; t++) {
			enum gt_dtype type = raw_types[t];
			struct gt_tdesc dx = gt_tdesc_make(type, 2, (int64_t[]){1, 7}, true), dy = dx;
			struct gt_opcall call = {.code = rows[r].code, .nin = 1, .nout = 1, .in = {&dx}, .out = {&dy}};
			void *x = NEW(type, 7), *y = NEW(type, 7);
			double want[7], tol[7] = {0};
			for (int i = 0; i < 7; i++) {
				number_put(type, x, i, in[i]);
				want[i] = rows[r].want[i];
				tol[i] = 1e-6 * fabs(want[i]);
			}
			tol[1] = tol[2] = 0;
			raw_run(1, &call, (void *[]){x}, (void *[]){y}, NULL);
			RAW_CHECK(gt_opcode_name(call.code), type, y, want, tol, 7);
			free(x), free(y);
		}
}

/* dy passes as it is where y is NaN or positive, and is 0 elsewhere, also if dy is infinite or NaN. */
TEST(relu_dx_selects_by_y)
{
	const double from[] = {NAN, -NAN, INFINITY, -INFINITY, 0, -0.0, 1e-30, -1e-30}, grad[] = {3, -INFINITY, NAN, -0.0, 0x1p-140};
	const int64_t n = 40; /* all pairs; more than two vectors */
	for (size_t t = 0; t < 3; t++) {
		enum gt_dtype type = raw_types[t];
		struct gt_tdesc d0 = gt_tdesc_make(type, 1, &n, false), d1 = d0, dx = d0;
		struct gt_opcall call = {.code = GT_OP_RELU_DX, .nin = 2, .nout = 1, .in = {&d0, &d1}, .out = {&dx}};
		void *dy = NEW(type, n), *y = NEW(type, n), *got = NEW(type, n);
		double want[40], tol[40] = {0};
		for (int64_t i = 0; i < n; i++) {
			number_put(type, dy, i, grad[i / 8]);
			number_put(type, y, i, from[i % 8]);
			want[i] = from[i % 8] <= 0 ? 0 : gt_load_number(type, dy, i);
		}
		raw_run(1, &call, (void *[]){dy, y}, (void *[]){got}, NULL);
		RAW_CHECK("relu.dx", type, got, want, tol, n);
		free(dy), free(y), free(got);
	}
}

TEST(add_of_many_rounds_once)
{
	for (size_t t = 0; t < 3; t++)
		for (int nin = 3; nin <= 8; nin++) {
			enum gt_dtype type = raw_types[t];
			const int64_t n = 70001;
			struct gt_tdesc d[9];
			struct gt_opcall call = {.code = GT_OP_ADD, .nin = nin, .nout = 1, .out = {&d[8]}};
			void *in[8], *y = NEW(type, n), *z = NEW(type, n);
			double *want = calloc((size_t)n, sizeof *want), *tol = calloc((size_t)n, sizeof *tol);
			d[8] = gt_tdesc_make(type, 2, (int64_t[]){1, n}, true);
			for (int k = 0; k < nin; k++) {
				d[k] = d[8];
				call.in[k] = &d[k];
				in[k] = NEW(type, n);
				raw_random(type, in[k], n, (uint32_t)k, -1, 1);
				for (int64_t i = 0; i < n; i++) {
					want[i] += gt_load_number(type, in[k], i);
					tol[i] += raw_eps(type) * fabs(want[i]); /* one rounding of each partial sum */
				}
			}
			raw_run(1, &call, in, &y, NULL);
			RAW_CHECK("add", type, y, want, tol, n);
			raw_run(3, &call, in, &z, NULL);
			CHECK(!memcmp(y, z, (size_t)n * gt_dtype_size(type)));
			raw_run(3, &call, in, &in[0], NULL);
			CHECK(!memcmp(y, in[0], (size_t)n * gt_dtype_size(type)));
			for (int k = 0; k < nin; k++)
				free(in[k]);
			free(y), free(z), free(want), free(tol);
		}
}

TEST(cast_rounds_to_nearest)
{
	static const enum gt_dtype pairs[][2] = {{GT_F32, GT_BF16}, {GT_BF16, GT_F32}, {GT_F32, GT_F64},
	                                         {GT_F64, GT_F32},  {GT_BF16, GT_F64}, {GT_F32, GT_F32}};
	for (size_t p = 0; p < sizeof pairs / sizeof pairs[0]; p++) {
		enum gt_dtype from = pairs[p][0], to = pairs[p][1];
		const int64_t n = 4099;
		struct gt_tdesc dx = gt_tdesc_make(from, 2, (int64_t[]){1, n}, true), dy = gt_tdesc_make(to, 2, (int64_t[]){1, n}, true);
		struct gt_opcall call = {.code = GT_OP_CAST, .nin = 1, .nout = 1, .in = {&dx}, .out = {&dy}};
		void *x = NEW(from, n), *y = NEW(to, n), *z = NEW(to, n);
		raw_random(from, x, n, 5, -3, 3);
		number_put(from, x, 0, NAN);
		number_put(from, x, 1, -INFINITY);
		for (int64_t i = 0; i < n; i++)
			number_put(to, z, i, gt_load_number(from, x, i));
		raw_run(1, &call, (void *[]){x}, (void *[]){y}, NULL);
		CHECK(isnan(gt_load_number(to, y, 0)));
		CHECK(!memcmp((char *)y + gt_dtype_size(to), (char *)z + gt_dtype_size(to), (size_t)(n - 1) * gt_dtype_size(to)));
		free(x), free(y), free(z);
	}
	struct gt_tdesc f16 = gt_tdesc_make(GT_F16, 1, (int64_t[]){4}, false), f32 = gt_tdesc_make(GT_F32, 1, (int64_t[]){4}, false);
	struct gt_opcall call = {.code = GT_OP_CAST, .nin = 1, .nout = 1, .in = {&f32}, .out = {&f16}};
	struct gt_err e = {0};
	CHECK(raw_try(1, &call, NULL, NULL, NULL, &e) == GT_EUNAVAILABLE && strstr(e.msg, "f16"));
}

/* ---- shapes ------------------------------------------------------------------------------------------------------------------- */
TEST(flatten_gives_torchs_order)
{
	static const int64_t shapes[][4] = {{1, 1, 1, 1},    {3, 1, 4, 5},   {2, 7, 1, 1},   {2, 3, 5, 7},
	                                    {5, 16, 16, 16}, {3, 65, 9, 11}, {130, 64, 7, 7}};
	for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++)
		for (size_t t = 0; t < 3; t++) {
			enum gt_dtype type = raw_types[t];
			const int64_t *q = shapes[s], per = q[1] * q[2] * q[3], n = q[0] * per;
			struct gt_tdesc dx = gt_tdesc_make(type, 4, q, true), dy = gt_tdesc_make(type, 2, (int64_t[]){q[0], per}, true);
			struct gt_opcall call = {.code = GT_OP_FLATTEN, .nin = 1, .nout = 1, .in = {&dx}, .out = {&dy}};
			void *x = NEW(type, n), *y = NEW(type, n), *back = NEW(type, n), *want = NEW(type, n);
			raw_random(type, x, n, 9, -1, 1);
			gt_tdesc_unpack(&dx, x, want);
			raw_run(3, &call, (void *[]){x}, (void *[]){y}, NULL);
			CHECK_MSG(!memcmp(y, want, gt_tdesc_bytes(&dx)), "shape %zu", s);
			struct gt_opcall dcall = {.code = GT_OP_FLATTEN_DX, .nin = 1, .nout = 1, .in = {&dy}, .out = {&dx}};
			raw_run(3, &dcall, (void *[]){y}, (void *[]){back}, NULL);
			CHECK_MSG(!memcmp(back, x, gt_tdesc_bytes(&dx)), "shape %zu, gradient", s);
			free(x), free(y), free(back), free(want);
		}
}

static void concat_case(enum gt_dtype t, int rank, int nparts, int64_t h, int64_t w)
{
	int64_t dim[4] = {6, 0, h, w}, rows = 6 * (rank == 4 ? h * w : 1), total = 0;
	struct gt_tdesc part[8], whole, same[8];
	struct gt_opcall call = {.code = GT_OP_CONCAT, .nin = nparts, .nout = 1, .out = {&whole}};
	struct gt_opcall dcall = {.code = GT_OP_CONCAT_DX, .nin = 1, .nout = nparts, .in = {&whole}};
	void *in[8], *back[8], *y;
	for (int k = 0; k < nparts; k++) {
		dim[1] = 3 + 5 * k;
		total += dim[1];
		part[k] = same[k] = gt_tdesc_make(t, rank, dim, true);
		call.in[k] = &part[k];
		dcall.out[k] = &same[k];
		in[k] = NEW(t, rows * dim[1]);
		back[k] = NEW(t, rows * dim[1]);
		raw_random(t, in[k], rows * dim[1], (uint32_t)k, -1, 1);
	}
	dim[1] = total;
	whole = gt_tdesc_make(t, rank, dim, true);
	y = NEW(t, rows * total);
	raw_run(3, &call, in, &y, NULL);
	for (int64_t r = 0; r < rows; r++)
		for (int64_t c = 0, k = 0, at = 0; c < total; c++, at++) {
			if (at == part[k].dim[1])
				k++, at = 0;
			CHECK(gt_load_number(t, y, r * total + c) == gt_load_number(t, in[k], r * part[k].dim[1] + at));
		}
	dcall.out[nparts - 1] = NULL; /* one that nobody wants */
	void *out[8];
	memcpy(out, back, sizeof out);
	out[nparts - 1] = NULL;
	raw_run(3, &dcall, &y, out, NULL);
	for (int k = 0; k < nparts; k++) {
		CHECK(k == nparts - 1 || !memcmp(back[k], in[k], gt_tdesc_bytes(&part[k])));
		free(in[k]), free(back[k]);
	}
	free(y);
}

TEST(concat_and_its_gradient)
{
	for (size_t t = 0; t < 3; t++)
		for (int n = 2; n <= 8; n += 3) {
			concat_case(raw_types[t], 2, n, 1, 1);
			concat_case(raw_types[t], 4, n, 5, 3);
			concat_case(raw_types[t], 4, n, 40, 40);
		}
}

/* ---- softmax ------------------------------------------------------------------------------------------------------------------ */
static void softmax_case(enum gt_dtype t, int rank, int64_t n, int64_t c, int64_t h, int64_t w, double range)
{
	int64_t dim[4] = {n, c, h, w}, count = n * c * (rank == 4 ? h * w : 1), rows = count / c;
	struct gt_tdesc d = gt_tdesc_make(t, rank, dim, true), e = d, f = d;
	void *x = NEW(t, count), *y = NEW(t, count), *z = NEW(t, count), *dy = NEW(t, count), *dx = NEW(t, count);
	double *p = calloc((size_t)count, 8), *lp = calloc((size_t)count, 8), *tol = calloc((size_t)count, 8), *want = calloc((size_t)count, 8);
	raw_random(t, x, count, 11, -range, range);
	raw_random(t, dy, count, 12, -1, 1);
	for (int64_t r = 0; r < rows; r++) {
		double max = -INFINITY, sum = 0;
		for (int64_t j = 0; j < c; j++)
			max = fmax(max, gt_load_number(t, x, r * c + j));
		for (int64_t j = 0; j < c; j++)
			sum += exp(gt_load_number(t, x, r * c + j) - max);
		for (int64_t j = 0; j < c; j++) {
			lp[r * c + j] = gt_load_number(t, x, r * c + j) - max - log(sum);
			p[r * c + j] = exp(lp[r * c + j]);
		}
	}
	/* x - max is rounded (range * eps, which exp makes relative), the sum of c terms at most log2 deep plus c/16 in a lane, then exp
	 * and the division. */
	double k = (2 * range + 8 + (double)c / 16) * raw_eps(t);
	for (int pass = 0; pass < 2; pass++) {
		struct gt_opcall call = {.code = pass ? GT_OP_LOG_SOFTMAX : GT_OP_SOFTMAX, .nin = 1, .nout = 1, .in = {&d}, .out = {&e}};
		for (int64_t i = 0; i < count; i++)
			tol[i] = pass ? k + 2 * raw_eps(t) * fabs(lp[i]) : k * p[i];
		raw_run(1, &call, (void *[]){x}, (void *[]){y}, NULL);
		RAW_CHECK(gt_opcode_name(call.code), t, y, pass ? lp : p, tol, count);
		raw_run(3, &call, (void *[]){x}, (void *[]){z}, NULL);
		CHECK(!memcmp(y, z, gt_tdesc_bytes(&d)));
		/* the gradient, from the y that was stored */
		for (int64_t r = 0; r < rows; r++) {
			double dot = 0, mag = 0;
			for (int64_t j = 0; j < c; j++) {
				double g = gt_load_number(t, dy, r * c + j) * (pass ? 1 : gt_load_number(t, y, r * c + j));
				dot += g;
				mag += fabs(g);
			}
			for (int64_t j = 0; j < c; j++) {
				double g = gt_load_number(t, dy, r * c + j), yv = gt_load_number(t, y, r * c + j);
				want[r * c + j] = pass ? g - exp(yv) * dot : yv * (g - dot);
				tol[r * c + j] = (pass ? fabs(g) + 4 * exp(yv) * mag : 2 * yv * (fabs(g) + mag)) * (8 + (double)c / 16) * raw_eps(t);
			}
		}
		struct gt_opcall dcall = {.code = pass ? GT_OP_LOG_SOFTMAX_DX : GT_OP_SOFTMAX_DX, .nin = 2, .nout = 1, .in = {&f, &d}, .out = {&e}};
		raw_run(3, &dcall, (void *[]){dy, y}, (void *[]){dx}, NULL);
		RAW_CHECK(gt_opcode_name(dcall.code), t, dx, want, tol, count);
		raw_run(1, &dcall, (void *[]){dy, y}, (void *[]){z}, NULL);
		CHECK(!memcmp(dx, z, gt_tdesc_bytes(&d)));
	}
	free(x), free(y), free(z), free(dy), free(dx), free(p), free(lp), free(tol), free(want);
}

TEST(softmax_and_log_softmax)
{
	for (size_t t = 0; t < 3; t++) {
		static const int64_t classes[] = {1, 2, 10, 15, 16, 17, 33, 100, 1000};
		for (size_t c = 0; c < sizeof classes / sizeof classes[0]; c++) {
			softmax_case(raw_types[t], 2, 5, classes[c], 1, 1, 4);
			softmax_case(raw_types[t], 2, 1, classes[c], 1, 1, 60);
			softmax_case(raw_types[t], 4, 2, classes[c], 3, 7, 4);
		}
		softmax_case(raw_types[t], 2, 4000, 10, 1, 1, 8);
	}
}
RUN_TESTS()
