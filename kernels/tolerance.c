#include "tolerance.h"
#include <math.h>

const struct gt_tolerance *gt_tolerance_of(enum gt_tolerance_id id)
{
	static const struct gt_tolerance rows[GT_TOLERANCE_COUNT] = {
#define GT_X(id, name, rtol, unit) [id] = {name, rtol, unit},
		GT_TOLERANCES(GT_X)
#undef GT_X
	};
	return &rows[id];
}

double gt_tolerance_atol(enum gt_tolerance_id id, double terms, double largest)
{
	const double base = 1e-5; /* torch.testing.assert_close */
	double unit = gt_tolerance_of(id)->unit;
	switch (id) {
	case GT_TOLERANCE_F32:
	case GT_TOLERANCE_F32_SUM: /* rounding of a sum of `terms` terms of either sign */
		return base + 2 * unit * sqrt(terms) * largest;
	case GT_TOLERANCE_TF32: /* 4 sigma; value and error of a sum of K products both grow by sqrt(K) */
		return base + 4 * unit * largest;
	default:
		return base + unit * largest;
	}
}

double gt_tolerance_rounding(enum gt_opcode code, double largest)
{
	switch (code) {
	/* The gradient has the factor 1 - y or 1 - y^2. Near y = 1 its error is a rounding of y, whose size is 1 however small the gradient
	 * is. */
	case GT_OP_SIGMOID:
	case GT_OP_SIGMOID_DX:
	case GT_OP_TANH:
	case GT_OP_TANH_DX:
		return fmax(largest, 1);
	/* The gradient passes five roundings one after the other (qkv, y, the gradients of y and of qkv, dx), whose errors add up like
	 * sqrt(5). */
	case GT_OP_ATTENTION:
	case GT_OP_ATTENTION_DX:
		return largest * sqrt(5);
	/* Each step rounds the product with the input and the state, both of size 1, and the next step reads them: the errors of the few steps
	 * of a case add up. */
	case GT_OP_LSTM_STEPS:
	case GT_OP_LSTM_STEPS_DX:
	case GT_OP_GRU_STEPS:
	case GT_OP_GRU_STEPS_DX:
		return 4 * fmax(largest, 0.25);
	default:
		return largest;
	}
}
