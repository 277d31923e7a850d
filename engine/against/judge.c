#include "against/judge.h"
#include "load_number.h"
#include "opsig.h"
#include <float.h>
#include <math.h>
#include <string.h>

static bool is_float(enum gt_dtype t)
{
	return t == GT_F32 || t == GT_F64 || t == GT_BF16 || t == GT_F16;
}

/* ---- the rule of a call ------------------------------------------------------------------------------------------------------------ */
static bool is_element_update(enum gt_opcode code)
{
	switch (code) {
#define GT_X(NAME, ...) case GT_OP_##NAME:
		GT_ELEMENT_UPDATES(GT_X)
#undef GT_X
		return true;
	default:
		return false;
	}
}

/* Returns whether an operation computes a weight gradient as a sum of operands, or of products of operands, without an intermediate result
 * of 16 bits. The weight gradient of a convolution is no such sum, because cuDNN writes it in 16 bits. */
static bool is_exact_sum(enum gt_opcode code)
{
	switch (code) {
	case GT_OP_LINEAR_DW:
	case GT_OP_LINEAR_BACK:
	case GT_OP_EMBEDDING_DW:
	case GT_OP_EMBEDDING_BAG_DW:
	case GT_OP_POSITIONAL_DW:
		return true;
	default:
		return false;
	}
}

static enum gt_tolerance_id tolerance_of_type(enum gt_dtype t)
{
	return t == GT_BF16 ? GT_TOLERANCE_BF16 : t == GT_F16 ? GT_TOLERANCE_F16 : GT_TOLERANCE_F32;
}

static void add_operand(struct gt_judge *j, const struct gt_tdesc *d)
{
	if (!d)
		return;
	enum gt_tolerance_id id = tolerance_of_type(d->dtype);
	j->id = id > j->id ? id : j->id;
	j->terms = fmax(j->terms, (double)gt_tdesc_count(d));
}

struct gt_judge gt_judge_of(const struct gt_opcall *call, enum gt_dtype type, bool tf32)
{
	struct gt_judge j = {.code = call->code, .id = tf32 ? GT_TOLERANCE_TF32 : GT_TOLERANCE_F32, .terms = 1};
	if (is_element_update(call->code)) /* the optimizer updates f32 parameters and states, whatever the precision of the run */
		return (struct gt_judge){.code = call->code, .id = GT_TOLERANCE_F32, .terms = 1};
	for (int i = 0; i < call->nin; i++)
		add_operand(&j, call->in[i]);
	for (int i = 0; i < call->nout; i++)
		add_operand(&j, call->out[i]);
	if (call->code == GT_OP_MUON && j.id > GT_TOLERANCE_TF32) /* with 16-bit work copies of the weights, a GPU iterates in bf16 */
		j.id = GT_TOLERANCE_BF16;
	j.sums = is_exact_sum(call->code) && (type == GT_DTYPE_COUNT || type == GT_F32 || type == call->in[0]->dtype);
	if (type != GT_DTYPE_COUNT && tolerance_of_type(type) > j.id)
		j.id = tolerance_of_type(type);
	return j;
}

/* ---- one tensor --------------------------------------------------------------------------------------------------------------------- */
static int64_t count_elements(const struct gt_tdesc *d)
{
	return gt_tdesc_padded(d);
}

static double largest_magnitude(const struct gt_tdesc *d, const void *p)
{
	double top = 0;
	for (int64_t i = 0; i < count_elements(d); i++) {
		double v = fabs(gt_load_number(d->dtype, p, i));
		top = v > top && v <= DBL_MAX ? v : top;
	}
	return top;
}

/* Returns the absolute tolerance of a tensor with the largest magnitude top. */
static double absolute_tolerance(const struct gt_judge *j, enum gt_tolerance_id id, double top)
{
	double scale = top < 1 ? top : 1, largest = scale > 0 ? top / scale : 0;
	if (id == GT_TOLERANCE_BF16 || id == GT_TOLERANCE_F16)
		largest = gt_tolerance_rounding(j->code, largest);
	return scale * gt_tolerance_atol(id, j->terms, largest);
}

static enum gt_tolerance_id tolerance_of_tensor(const struct gt_judge *j, const struct gt_tdesc *d)
{
	enum gt_tolerance_id own = tolerance_of_type(d->dtype), id = own > j->id ? own : j->id;
	return j->sums && d->dtype == GT_F32 && id > GT_TOLERANCE_TF32 ? GT_TOLERANCE_F32_SUM : id;
}

double gt_judge_roundings(const struct gt_judge *j, const struct gt_tdesc *d)
{
	switch (tolerance_of_tensor(j, d)) {
	case GT_TOLERANCE_F32:
		return 2 * sqrt(j->terms);
	case GT_TOLERANCE_F32_SUM: /* scales from the 16-bit roundings of the inputs (gt_judge_disturb) to the f32 roundings of the sums */
		return 2 * sqrt(j->terms) * gt_tolerance_of(GT_TOLERANCE_F32_SUM)->unit / gt_tolerance_of(j->id)->unit;
	default:
		return 2;
	}
}

/* Returns whether v is an integer member of struct gt_scalars that was read as a double: such bits are a denormal double. Integers must be
 * equal on both devices. */
static bool is_whole_number(double v)
{
	return v != 0 && fabs(v) < DBL_MIN;
}

static void note_element(struct gt_verdict *v, double got, double want, double allowed, int64_t at)
{
	double d = fabs(got - want);
	if (got == want || (isnan(got) && isnan(want)))
		return;
	if (is_whole_number(got) || is_whole_number(want))
		allowed = 0;
	double share = isnan(d) || isinf(d) || allowed <= 0 ? INFINITY : d / allowed;
	if (v->at >= 0 && share <= v->share)
		return;
	*v = (struct gt_verdict){.share = share, .worst = d, .allowed = allowed, .at = at};
}

static struct gt_verdict judge_metrics(const struct gt_judge *j, const struct gt_metrics *got, const struct gt_metrics *want)
{
	double rtol = gt_tolerance_of(j->id)->rtol, base = absolute_tolerance(j, j->id, fabs(want->loss));
	struct gt_verdict v = {.at = -1};
	note_element(&v, got->loss, want->loss, base + rtol * fabs(want->loss), 0);
	note_element(&v, got->weight, want->weight, 1e-12 * fabs(want->weight), 1);
	note_element(&v, (double)got->count, (double)want->count, 0, 4);
	if (j->id > GT_TOLERANCE_F32) /* low-precision rounding can make logits equal, and then the predicted class is arbitrary */
		return v;
	note_element(&v, (double)got->correct, (double)want->correct, 0, 2);
	note_element(&v, (double)got->top5, (double)want->top5, 0, 3);
	return v;
}

struct gt_verdict gt_judge_tensor(const struct gt_judge *j, const struct gt_tdesc *d, bool metrics, const void *got, const void *want)
{
	struct gt_verdict v = {.at = -1};
	if (metrics)
		return judge_metrics(j, got, want);
	if (!memcmp(got, want, gt_tdesc_bytes(d)))
		return v;
	enum gt_tolerance_id id = tolerance_of_tensor(j, d);
	double atol = is_float(d->dtype) ? absolute_tolerance(j, id, largest_magnitude(d, want)) : 0;
	double rtol = is_float(d->dtype) ? gt_tolerance_of(id)->rtol : 0;
	for (int64_t i = 0; i < count_elements(d); i++) {
		double a = gt_load_number(d->dtype, got, i), b = gt_load_number(d->dtype, want, i);
		note_element(&v, a, b, atol + rtol * fabs(b), i);
	}
	return v;
}

/* ---- sensitivity -------------------------------------------------------------------------------------------------------------------- */
double gt_judge_distance(const struct gt_tdesc *d, const void *a, const void *b)
{
	double most = 0;
	for (int64_t i = 0; is_float(d->dtype) && i < count_elements(d); i++) {
		double v = fabs(gt_load_number(d->dtype, a, i) - gt_load_number(d->dtype, b, i));
		most = v > most ? v : most;
	}
	return most;
}

static uint32_t next_random(uint32_t x) /* Marsaglia 2003, "Xorshift RNGs" */
{
	x ^= x << 13;
	x ^= x >> 17;
	return x ^ x << 5;
}

void gt_judge_disturb(const struct gt_tdesc *d, void *p, uint32_t seed)
{
	size_t size = gt_dtype_size(d->dtype);
	if (d->dtype != GT_F32 && d->dtype != GT_BF16 && d->dtype != GT_F16)
		return;
	for (int64_t i = 0; i < count_elements(d); i++) {
		double v = gt_load_number(d->dtype, p, i);
		seed = next_random(seed);
		if (v == 0 || !isfinite(v))
			continue;
		if (size == 4)
			((uint32_t *)p)[i] += seed & 1 ? 1u : (uint32_t)-1;
		else
			((uint16_t *)p)[i] = (uint16_t)(((uint16_t *)p)[i] + (seed & 1 ? 1 : -1));
	}
}
