/* The instructions: ptx_choose() maps an opcode to a function that does it. Only what nvcc makes of this backend's kernels is here; another
 * opcode ends the process when its kernel is launched. Approximate instructions (ex2.approx, rcp.approx) return the nearest value, which is
 * within the error that the manual allows. */
#include "ptx_thread.hh"
#include <cfenv>
#include <cmath>

using std::string;
using std::vector;

/* ---- types ----------------------------------------------------------------------------------------------------------------------- */
static const struct {
	const char *word;
	ptx_type type;
	size_t size;
} types[] = {{"pred", PTX_PRED, 1}, {"b8", PTX_B8, 1},       {"b16", PTX_B16, 2},      {"b32", PTX_B32, 4}, {"b64", PTX_B64, 8},
             {"u8", PTX_U8, 1},     {"u16", PTX_U16, 2},     {"u32", PTX_U32, 4},      {"u64", PTX_U64, 8}, {"s8", PTX_S8, 1},
             {"s16", PTX_S16, 2},   {"s32", PTX_S32, 4},     {"s64", PTX_S64, 8},      {"f16", PTX_F16, 2}, {"f32", PTX_F32, 4},
             {"f64", PTX_F64, 8},   {"f16x2", PTX_F16X2, 4}, {"bf16x2", PTX_BF16X2, 4}};

static ptx_type type_of(const string &word)
{
	for (const auto &t : types)
		if (word == t.word)
			return t.type;
	return PTX_NONE;
}

size_t ptx_size(ptx_type type)
{
	for (const auto &t : types)
		if (type == t.type)
			return t.size;
	return 0;
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------------------------ */
/* The unsigned type of T's size, in which sums wrap around. */
template <class T> struct wrap {
	typedef typename std::make_unsigned<T>::type type;
};
template <> struct wrap<float> {
	typedef float type;
};
template <> struct wrap<double> {
	typedef double type;
};
template <> struct wrap<bool> {
	typedef bool type;
};

#define OP(name, arguments, expression)                                                                                                    \
	template <class T> struct name {                                                                                                       \
		typedef typename wrap<T>::type U;                                                                                                  \
		static T f arguments                                                                                                               \
		{                                                                                                                                  \
			return (T)(expression);                                                                                                        \
		}                                                                                                                                  \
	};

OP(op_add, (T a, T b), (U)a + (U)b)
OP(op_sub, (T a, T b), (U)a - (U)b)
OP(op_mul, (T a, T b), (U)((U)a *(U)b))
OP(op_and, (T a, T b), a &b)
OP(op_or, (T a, T b), a | b)
OP(op_xor, (T a, T b), a ^ b)
OP(op_neg, (T a), -(U)a)
OP(op_not, (T a), ~a)
OP(op_mad, (T a, T b, T c), (U)((U)a *(U)b) + (U)c)
OP(op_imin, (T a, T b), a < b ? a : b)
OP(op_imax, (T a, T b), a > b ? a : b)
OP(op_fmin, (T a, T b), std::fmin(a, b))
OP(op_fmax, (T a, T b), std::fmax(a, b))
OP(op_div, (T a, T b), a / b)
OP(op_rcp, (T a), T(1) / a)
OP(op_sqrt, (T a), std::sqrt(a))
OP(op_abs, (T a), std::fabs(a))
OP(op_fma, (T a, T b, T c), std::fma(a, b, c))
OP(op_copysign, (T a, T b), std::copysign(b, a)) /* the sign of the first operand */

template <class T, template <class> class Op> static void unary(ptx_thread &t, const ptx_ins &i)
{
	t.out<T>(i.dst[0], Op<T>::f(t.in<T>(i.src[0])));
}
template <class T, template <class> class Op> static void binary(ptx_thread &t, const ptx_ins &i)
{
	t.out<T>(i.dst[0], Op<T>::f(t.in<T>(i.src[0]), t.in<T>(i.src[1])));
}
template <class T, template <class> class Op> static void ternary(ptx_thread &t, const ptx_ins &i)
{
	t.out<T>(i.dst[0], Op<T>::f(t.in<T>(i.src[0]), t.in<T>(i.src[1]), t.in<T>(i.src[2])));
}

/* The function `step<T, op>` for an integer type, and for a type of floating point. */
#define INTEGER(step, op)                                                                                                                  \
	(type == PTX_S16   ? step<int16_t, op>                                                                                                 \
	 : type == PTX_S32 ? step<int32_t, op>                                                                                                 \
	 : type == PTX_S64 ? step<int64_t, op>                                                                                                 \
	 : size == 2       ? step<uint16_t, op>                                                                                                \
	 : size == 4       ? step<uint32_t, op>                                                                                                \
	                   : step<uint64_t, op>)
#define FLOATING(step, op) (type == PTX_F32 ? step<float, op> : step<double, op>)

/* A division by 0 has no defined result, and no trap: nvcc divides before a loop whose body may not need the result. */
template <class T, bool remainder> static void divide(ptx_thread &t, const ptx_ins &i)
{
	T a = t.in<T>(i.src[0]), b = t.in<T>(i.src[1]);
	bool undefined = b == 0 || (std::is_signed<T>::value && b == (T)-1 && a == std::numeric_limits<T>::min());
	t.out<T>(i.dst[0], undefined ? (T)0x5a5a5a5a5a5a5a5a : remainder ? (T)(a % b) : (T)(a / b));
}

template <bool remainder> static ptx_step *division(ptx_type type)
{
	return type == PTX_S32   ? divide<int32_t, remainder>
	       : type == PTX_U32 ? divide<uint32_t, remainder>
	       : type == PTX_S64 ? divide<int64_t, remainder>
	       : type == PTX_U64 ? divide<uint64_t, remainder>
	       : type == PTX_S16 ? divide<int16_t, remainder>
	       : type == PTX_U16 ? divide<uint16_t, remainder>
	                         : (ptx_step *)NULL;
}

template <class T> static void shift_left(ptx_thread &t, const ptx_ins &i)
{
	uint32_t n = t.in<uint32_t>(i.src[1]);
	t.out<T>(i.dst[0], n < 8 * sizeof(T) ? (T)(t.in<T>(i.src[0]) << n) : (T)0);
}

template <class T> static void shift_right(ptx_thread &t, const ptx_ins &i)
{
	uint32_t n = t.in<uint32_t>(i.src[1]), most = 8 * sizeof(T) - 1;
	T a = t.in<T>(i.src[0]);
	if (std::is_signed<T>::value)
		t.out<T>(i.dst[0], (T)(a >> (n < most ? n : most)));
	else
		t.out<T>(i.dst[0], n <= most ? (T)(a >> n) : (T)0);
}

template <class T, class W> static void multiply_wide(ptx_thread &t, const ptx_ins &i)
{
	t.out<W>(i.dst[0], (W)t.in<T>(i.src[0]) * (W)t.in<T>(i.src[1]));
}

template <class T, class W> static void multiply_add_wide(ptx_thread &t, const ptx_ins &i)
{
	t.out<W>(i.dst[0], (W)((uint64_t)((W)t.in<T>(i.src[0]) * (W)t.in<T>(i.src[1])) + (uint64_t)t.in<W>(i.src[2])));
}

template <class T, class W> static void multiply_high(ptx_thread &t, const ptx_ins &i)
{
	t.out<T>(i.dst[0], (T)((W)t.in<T>(i.src[0]) * (W)t.in<T>(i.src[1]) >> 8 * sizeof(T)));
}

static void fma_down(ptx_thread &t, const ptx_ins &i)
{
	volatile float a = t.in<float>(i.src[0]), b = t.in<float>(i.src[1]), c = t.in<float>(i.src[2]), r;
	fesetround(FE_DOWNWARD);
	r = std::fma(a, b, c);
	fesetround(FE_TONEAREST);
	t.out<float>(i.dst[0], r);
}

static void add_toward_zero(ptx_thread &t, const ptx_ins &i)
{
	volatile float a = t.in<float>(i.src[0]), b = t.in<float>(i.src[1]), r;
	fesetround(FE_TOWARDZERO);
	r = a + b;
	fesetround(FE_TONEAREST);
	t.out<float>(i.dst[0], r);
}

static float flushed(float x)
{
	return std::fabs(x) < 1.17549435e-38f ? std::copysign(0.0f, x) : x;
}

template <bool ftz> static void power_of_two(ptx_thread &t, const ptx_ins &i)
{
	float a = t.in<float>(i.src[0]), r = (float)std::exp2((double)(ftz ? flushed(a) : a));
	t.out<float>(i.dst[0], ftz ? flushed(r) : r);
}

template <bool ftz> static void log_of_two(ptx_thread &t, const ptx_ins &i)
{
	float a = t.in<float>(i.src[0]), r = (float)std::log2((double)(ftz ? flushed(a) : a));
	t.out<float>(i.dst[0], ftz ? flushed(r) : r);
}

template <bool ftz> static void reciprocal(ptx_thread &t, const ptx_ins &i)
{
	float a = t.in<float>(i.src[0]), r = 1 / (ftz ? flushed(a) : a);
	t.out<float>(i.dst[0], ftz ? flushed(r) : r);
}

/* The low half of the operand and of the result is 0. */
static void reciprocal_f64(ptx_thread &t, const ptx_ins &i)
{
	double r = 1 / t.in<double>(i.src[0]);
	uint64_t bits;
	memcpy(&bits, &r, sizeof bits);
	t.out<uint64_t>(i.dst[0], bits & 0xffffffff00000000u);
}

/* ---- comparisons, choices -------------------------------------------------------------------------------------------------------- */
enum compare { EQ, NE, LT, LE, GT, GE, EQU, NEU, LTU, LEU, GTU, GEU, NUM, NOT_A_NUMBER, COMPARES };
static const char *const compare_words[] = {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

template <class T, int C> static void set_predicate(ptx_thread &t, const ptx_ins &i)
{
	T a = t.in<T>(i.src[0]), b = t.in<T>(i.src[1]);
	bool nan = a != a || b != b, r;
	switch (C >= EQU && C <= GEU ? C - EQU : C) {
	case EQ:
		r = a == b;
		break;
	case NE:
		r = a != b && !nan;
		break;
	case LT:
		r = a < b;
		break;
	case LE:
		r = a <= b;
		break;
	case GT:
		r = a > b;
		break;
	case GE:
		r = a >= b;
		break;
	case NUM:
		r = !nan;
		break;
	default:
		r = nan;
	}
	t.out<bool>(i.dst[0], C >= EQU && C <= GEU ? r || nan : r);
}

template <class T> static ptx_step *comparison(const string &word)
{
	static ptx_step *const steps[] = {set_predicate<T, EQ>,  set_predicate<T, NE>,          set_predicate<T, LT>,  set_predicate<T, LE>,
	                                  set_predicate<T, GT>,  set_predicate<T, GE>,          set_predicate<T, EQU>, set_predicate<T, NEU>,
	                                  set_predicate<T, LTU>, set_predicate<T, LEU>,         set_predicate<T, GTU>, set_predicate<T, GEU>,
	                                  set_predicate<T, NUM>, set_predicate<T, NOT_A_NUMBER>};
	for (int c = 0; c < COMPARES; c++)
		if (word == compare_words[c] && (c < EQU || std::is_floating_point<T>::value))
			return steps[c];
	return NULL;
}

static ptx_step *comparison_of(const string &word, ptx_type type)
{
	switch (type) {
	case PTX_B16:
	case PTX_U16:
		return comparison<uint16_t>(word);
	case PTX_B32:
	case PTX_U32:
		return comparison<uint32_t>(word);
	case PTX_B64:
	case PTX_U64:
		return comparison<uint64_t>(word);
	case PTX_S16:
		return comparison<int16_t>(word);
	case PTX_S32:
		return comparison<int32_t>(word);
	case PTX_S64:
		return comparison<int64_t>(word);
	case PTX_F32:
		return comparison<float>(word);
	case PTX_F64:
		return comparison<double>(word);
	default:
		return NULL;
	}
}

template <class T> static void choose(ptx_thread &t, const ptx_ins &i)
{
	t.out<T>(i.dst[0], t.in<T>(i.src[t.in<bool>(i.src[2]) ? 0 : 1]));
}

static void not_predicate(ptx_thread &t, const ptx_ins &i)
{
	t.out<bool>(i.dst[0], !t.in<bool>(i.src[0]));
}

/* ---- moves and conversions ------------------------------------------------------------------------------------------------------- */
template <class T> static void copy(ptx_thread &t, const ptx_ins &i)
{
	t.out<T>(i.dst[0], t.in<T>(i.src[0]));
}

/* Moves a value, joins 2 or 4 parts of it, or takes it apart; the first part is the lowest. */
static void move(ptx_thread &t, const ptx_ins &i)
{
	int parts = i.ndst > i.nsrc ? i.ndst : i.nsrc, bits = 8 * (int)ptx_size(i.type) / parts;
	uint64_t all = 0, mask = bits < 64 ? ((uint64_t)1 << bits) - 1 : ~(uint64_t)0;
	for (int k = 0; k < i.nsrc; k++)
		all |= (t.in<uint64_t>(i.src[k]) & (i.nsrc > 1 ? mask : ~(uint64_t)0)) << (i.nsrc > 1 ? k * bits : 0);
	for (int k = 0; k < i.ndst; k++)
		t.out<uint64_t>(i.dst[k], i.ndst > 1 ? all >> k * bits & mask : all);
}

static int64_t read_integer(const ptx_thread &t, int cell, ptx_type type)
{
	switch (type) {
	case PTX_U8:
		return t.in<uint8_t>(cell);
	case PTX_S8:
		return t.in<int8_t>(cell);
	case PTX_U16:
		return t.in<uint16_t>(cell);
	case PTX_S16:
		return t.in<int16_t>(cell);
	case PTX_U32:
		return t.in<uint32_t>(cell);
	case PTX_S32:
		return t.in<int32_t>(cell);
	default:
		return t.in<int64_t>(cell);
	}
}

static void write_integer(ptx_thread &t, int cell, ptx_type type, int64_t v)
{
	switch (type) {
	case PTX_U8:
		return t.out<uint64_t>(cell, (uint8_t)v);
	case PTX_S8:
		return t.out<int64_t>(cell, (int8_t)v);
	case PTX_U16:
		return t.out<uint64_t>(cell, (uint16_t)v);
	case PTX_S16:
		return t.out<int64_t>(cell, (int16_t)v);
	case PTX_U32:
		return t.out<uint64_t>(cell, (uint32_t)v);
	case PTX_S32:
		return t.out<int64_t>(cell, (int32_t)v);
	default:
		return t.out<int64_t>(cell, v);
	}
}

static void convert_integer(ptx_thread &t, const ptx_ins &i)
{
	write_integer(t, i.dst[0], i.type, read_integer(t, i.src[0], i.from));
}

template <class F> static void float_of_integer(ptx_thread &t, const ptx_ins &i)
{
	int64_t v = read_integer(t, i.src[0], i.from);
	t.out<F>(i.dst[0], i.from == PTX_U64 ? (F)(uint64_t)v : (F)v);
}

/* Rounds towards zero or to the nearest; NaN becomes 0, and what is outside of the type its nearest limit. */
template <class F, bool nearest> static void integer_of_float(ptx_thread &t, const ptx_ins &i)
{
	F v = t.in<F>(i.src[0]);
	int bits = 8 * (int)ptx_size(i.type);
	bool sign = i.type == PTX_S16 || i.type == PTX_S32 || i.type == PTX_S64;
	F low = sign ? -std::ldexp((F)1, bits - 1) : 0, high = std::ldexp((F)1, sign ? bits - 1 : bits);
	v = nearest ? std::nearbyint(v) : std::trunc(v);
	if (v != v)
		write_integer(t, i.dst[0], i.type, 0);
	else if (v >= high)
		write_integer(t, i.dst[0], i.type, sign ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1) : -1);
	else if (v <= low)
		write_integer(t, i.dst[0], i.type, sign ? (int64_t)((uint64_t)-1 << (bits - 1)) : 0);
	else
		write_integer(t, i.dst[0], i.type, i.type == PTX_U64 ? (int64_t)(uint64_t)v : (int64_t)v);
}

template <class To, class From> static void convert_float(ptx_thread &t, const ptx_ins &i)
{
	t.out<To>(i.dst[0], (To)t.in<From>(i.src[0]));
}

template <class F, F (*round)(F)> static void round_float(ptx_thread &t, const ptx_ins &i)
{
	t.out<F>(i.dst[0], round(t.in<F>(i.src[0])));
}

static void saturate(ptx_thread &t, const ptx_ins &i)
{
	float v = t.in<float>(i.src[0]);
	t.out<float>(i.dst[0], v > 0 ? v < 1 ? v : 1.0f : 0.0f);
}

static float float_of_half(uint16_t h)
{
	_Float16 v;
	memcpy(&v, &h, sizeof v);
	return (float)v;
}

static uint16_t half_of_float(float f)
{
	_Float16 v = (_Float16)f;
	uint16_t h;
	memcpy(&h, &v, sizeof h);
	return f != f ? 0x7fff : h;
}

static uint16_t bf16_of_float(float f)
{
	uint32_t u;
	memcpy(&u, &f, sizeof u);
	return f != f ? 0x7fff : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static void widen_half(ptx_thread &t, const ptx_ins &i)
{
	t.out<float>(i.dst[0], float_of_half(t.in<uint16_t>(i.src[0])));
}

/* The first source becomes the upper half. */
template <uint16_t (*narrow)(float)> static void narrow_pair(ptx_thread &t, const ptx_ins &i)
{
	t.out<uint32_t>(i.dst[0], (uint32_t)narrow(t.in<float>(i.src[0])) << 16 | narrow(t.in<float>(i.src[1])));
}

static bool is_integer(ptx_type t)
{
	return t >= PTX_U8 && t <= PTX_S64;
}

static ptx_step *conversion(const string &how, ptx_type to, ptx_type from)
{
	if (is_integer(to) && is_integer(from))
		return how.empty() ? convert_integer : NULL;
	if (is_integer(from) && (to == PTX_F32 || to == PTX_F64))
		return how == "rn" ? to == PTX_F32 ? float_of_integer<float> : float_of_integer<double> : NULL;
	if (is_integer(to) && from == PTX_F32)
		return how == "rzi" ? integer_of_float<float, false> : how == "rni" ? integer_of_float<float, true> : (ptx_step *)NULL;
	if (is_integer(to) && from == PTX_F64)
		return how == "rzi" ? integer_of_float<double, false> : how == "rni" ? integer_of_float<double, true> : (ptx_step *)NULL;
	if (to == PTX_F64 && from == PTX_F32)
		return how.empty() ? convert_float<double, float> : NULL;
	if (to == PTX_F32 && from == PTX_F64)
		return how == "rn" ? convert_float<float, double> : NULL;
	if (to == PTX_F32 && from == PTX_F32)
		return how == "sat"   ? saturate
		       : how == "rni" ? round_float<float, nearbyintf>
		       : how == "rmi" ? round_float<float, floorf>
		       : how == "rpi" ? round_float<float, ceilf>
		       : how == "rzi" ? round_float<float, truncf>
		                      : (ptx_step *)NULL;
	if (to == PTX_F64 && from == PTX_F64)
		return how == "rni"   ? round_float<double, nearbyint>
		       : how == "rmi" ? round_float<double, floor>
		       : how == "rpi" ? round_float<double, ceil>
		       : how == "rzi" ? round_float<double, trunc>
		                      : (ptx_step *)NULL;
	if (to == PTX_F32 && from == PTX_F16)
		return how.empty() ? widen_half : NULL;
	if (from == PTX_F32 && (to == PTX_F16X2 || to == PTX_BF16X2))
		return how == "rn" ? to == PTX_F16X2 ? narrow_pair<half_of_float> : narrow_pair<bf16_of_float> : NULL;
	return NULL;
}

/* Replaces `move` where it only copies. */
void ptx_simplify(ptx_ins *i)
{
	if (i->run == move && i->ndst == 1 && i->nsrc == 1)
		i->run = i->type == PTX_PRED      ? copy<bool>
		         : ptx_size(i->type) == 2 ? copy<uint16_t>
		         : ptx_size(i->type) == 4 ? copy<uint32_t>
		                                  : copy<uint64_t>;
}

/* ---- bits ------------------------------------------------------------------------------------------------------------------------ */
static void permute_bytes(ptx_thread &t, const ptx_ins &i)
{
	uint64_t from = t.in<uint32_t>(i.src[0]) | (uint64_t)t.in<uint32_t>(i.src[1]) << 32;
	uint32_t how = t.in<uint32_t>(i.src[2]), r = 0;
	for (int k = 0; k < 4; k++) {
		uint32_t n = how >> 4 * k & 15, byte = (uint32_t)(from >> 8 * (n & 7) & 0xff);
		r |= (n & 8 ? byte & 0x80 ? 0xffu : 0u : byte) << 8 * k;
	}
	t.out<uint32_t>(i.dst[0], r);
}

static void extract_bits(ptx_thread &t, const ptx_ins &i)
{
	uint32_t a = t.in<uint32_t>(i.src[0]), at = t.in<uint32_t>(i.src[1]) & 0xff, n = t.in<uint32_t>(i.src[2]) & 0xff;
	uint64_t r = at < 32 ? a >> at : 0;
	t.out<uint32_t>(i.dst[0], n < 32 ? (uint32_t)(r & (((uint64_t)1 << n) - 1)) : (uint32_t)r);
}

static void insert_bits(ptx_thread &t, const ptx_ins &i)
{
	uint32_t a = t.in<uint32_t>(i.src[0]), b = t.in<uint32_t>(i.src[1]), at = t.in<uint32_t>(i.src[2]) & 0xff;
	uint32_t n = t.in<uint32_t>(i.src[3]) & 0xff;
	uint32_t mask = at < 32 ? (n < 32 ? (1u << n) - 1 : ~0u) << at : 0;
	t.out<uint32_t>(i.dst[0], at < 32 ? (b & ~mask) | (a << at & mask) : b);
}

static void count_bits(ptx_thread &t, const ptx_ins &i)
{
	t.out<uint32_t>(i.dst[0], (uint32_t)__builtin_popcountll(i.type == PTX_B64 ? t.in<uint64_t>(i.src[0]) : t.in<uint32_t>(i.src[0])));
}

/* ---- the table ------------------------------------------------------------------------------------------------------------------- */
static ptx_step *arithmetic(const string &op, const vector<string> &how, ptx_type type)
{
	size_t size = ptx_size(type);
	bool floating = type == PTX_F32 || type == PTX_F64, none = how.empty(), rn = how.size() == 1 && how[0] == "rn", f32 = type == PTX_F32;
	if (floating) {
		bool approx = how.size() && how[0] == "approx", ftz = how.size() == 2 && how[1] == "ftz", fast = approx && (how.size() == 1 || ftz);
		if (op == "ex2" && f32 && fast)
			return ftz ? power_of_two<true> : power_of_two<false>;
		if (op == "lg2" && f32 && fast)
			return ftz ? log_of_two<true> : log_of_two<false>;
		if (op == "rcp" && fast)
			return !f32 ? ftz ? reciprocal_f64 : NULL : ftz ? reciprocal<true> : reciprocal<false>;
		if (op == "fma" && f32 && how.size() == 1 && how[0] == "rm")
			return fma_down;
		if (op == "add" && f32 && how.size() == 1 && how[0] == "rz")
			return add_toward_zero;
		return op == "add" && rn          ? FLOATING(binary, op_add)
		       : op == "sub" && rn        ? FLOATING(binary, op_sub)
		       : op == "mul" && rn        ? FLOATING(binary, op_mul)
		       : op == "div" && rn        ? FLOATING(binary, op_div)
		       : op == "fma" && rn        ? FLOATING(ternary, op_fma)
		       : op == "rcp" && rn        ? FLOATING(unary, op_rcp)
		       : op == "sqrt" && rn       ? FLOATING(unary, op_sqrt)
		       : op == "min" && none      ? FLOATING(binary, op_fmin)
		       : op == "max" && none      ? FLOATING(binary, op_fmax)
		       : op == "neg" && none      ? FLOATING(unary, op_neg)
		       : op == "abs" && none      ? FLOATING(unary, op_abs)
		       : op == "copysign" && none ? FLOATING(binary, op_copysign)
		                                  : (ptx_step *)NULL;
	}
	if (type == PTX_PRED)
		return op == "and"   ? binary<bool, op_and>
		       : op == "or"  ? binary<bool, op_or>
		       : op == "xor" ? binary<bool, op_xor>
		       : op == "not" ? not_predicate
		                     : (ptx_step *)NULL;
	bool low = how.size() == 1 && how[0] == "lo", wide = how.size() == 1 && how[0] == "wide", high = how.size() == 1 && how[0] == "hi";
	if (op == "mul" && wide)
		return type == PTX_S32   ? multiply_wide<int32_t, int64_t>
		       : type == PTX_U32 ? multiply_wide<uint32_t, uint64_t>
		       : type == PTX_S16 ? multiply_wide<int16_t, int32_t>
		       : type == PTX_U16 ? multiply_wide<uint16_t, uint32_t>
		                         : (ptx_step *)NULL;
	if (op == "mad" && wide)
		return type == PTX_S32   ? multiply_add_wide<int32_t, int64_t>
		       : type == PTX_U32 ? multiply_add_wide<uint32_t, uint64_t>
		                         : (ptx_step *)NULL;
	if (op == "mul" && high)
		return type == PTX_S32   ? multiply_high<int32_t, int64_t>
		       : type == PTX_U32 ? multiply_high<uint32_t, uint64_t>
		       : type == PTX_S64 ? multiply_high<int64_t, __int128>
		       : type == PTX_U64 ? multiply_high<uint64_t, unsigned __int128>
		                         : (ptx_step *)NULL;
	if (op == "mul" && low)
		return INTEGER(binary, op_mul);
	if (op == "mad" && low)
		return INTEGER(ternary, op_mad);
	if (!none || size < 2)
		return NULL;
	if (op == "shl")
		return size == 2 ? shift_left<uint16_t> : size == 4 ? shift_left<uint32_t> : shift_left<uint64_t>;
	if (op == "shr")
		return type == PTX_S16   ? shift_right<int16_t>
		       : type == PTX_S32 ? shift_right<int32_t>
		       : type == PTX_S64 ? shift_right<int64_t>
		       : size == 2       ? shift_right<uint16_t>
		       : size == 4       ? shift_right<uint32_t>
		                         : shift_right<uint64_t>;
	return op == "add"                      ? INTEGER(binary, op_add)
	       : op == "sub"                    ? INTEGER(binary, op_sub)
	       : op == "and"                    ? INTEGER(binary, op_and)
	       : op == "or"                     ? INTEGER(binary, op_or)
	       : op == "xor"                    ? INTEGER(binary, op_xor)
	       : op == "min"                    ? INTEGER(binary, op_imin)
	       : op == "max"                    ? INTEGER(binary, op_imax)
	       : op == "neg"                    ? INTEGER(unary, op_neg)
	       : op == "not"                    ? INTEGER(unary, op_not)
	       : op == "div"                    ? division<false>(type)
	       : op == "rem"                    ? division<true>(type)
	       : op == "prmt" && size == 4      ? permute_bytes
	       : op == "bfe" && type == PTX_U32 ? extract_bits
	       : op == "bfi" && type == PTX_B32 ? insert_bits
	       : op == "popc"                   ? count_bits
	                                        : (ptx_step *)NULL;
}

bool ptx_choose(const vector<string> &words, ptx_ins *i)
{
	string op = words[0];
	vector<string> how(words.begin() + 1, words.end());
	if (ptx_choose_memory(op, how, i))
		return i->run != NULL;
	if (how.empty() || (i->type = type_of(how.back())) == PTX_NONE)
		return false;
	how.pop_back();
	size_t size = ptx_size(i->type);
	if (op == "mov") {
		i->run = how.empty() ? move : NULL;
	} else if (op == "cvt") {
		i->from = i->type;
		i->type = how.empty() ? PTX_NONE : type_of(how.back());
		if (i->type != PTX_NONE)
			how.pop_back();
		i->run = i->type && how.size() < 2 ? conversion(how.empty() ? "" : how[0], i->type, i->from) : NULL;
	} else if (op == "setp") {
		i->run = how.size() == 1 ? comparison_of(how[0], i->type) : NULL;
	} else if (op == "selp") {
		i->run = !how.empty() ? NULL : size == 2 ? choose<uint16_t> : size == 4 ? choose<uint32_t> : choose<uint64_t>;
	} else {
		i->run = arithmetic(op, how, i->type);
	}
	return i->run != NULL;
}
