/* One row for each element-wise activation. The operation codes, the layer types of the config, the loops of the CPU backend, the kernels
 * of the CUDA backend and the lists of the tests are generated from these rows.
 *
 * To add an activation: a row here; in ew.inc its function gt_<name> and its derivative gt_<name>_dx; cases in tests/ops/cases.txt and the
 * PyTorch module in tests/golden/make_ops.py. */
#ifndef GT_KERNELS_ACTIVATION_ROWS_H
#define GT_KERNELS_ACTIVATION_ROWS_H

/* X(arg, CODE, name, saved, numbers, grain, attr, help, also, keys...). The operations are GT_OP_<CODE> and GT_OP_<CODE>_DX. ew.inc has
 * gt_<name>(x, numbers...) and gt_<name>_dx(dy, saved, numbers...).
 *   arg      the second argument of GT_ACTIVATIONS, for an X that expands another macro (opcall.h); else empty
 *   saved    the tensor that the gradient reads: x, the input; or y, the output, so that the forward pass may run in place
 *   numbers  how many parameters (gt_attr_act.number) the function takes: 0, 1 or 2
 *   grain    elements that take about 8 us on one core of a CPU: 65536 if the function needs no exponential. The gradient has the same
 *            grain if it reads x, and 65536 if it reads y
 *   attr     the attribute struct is gt_attr_<attr>: act if the function takes parameters, else none
 *   help, also, keys   gt_op.help, .also and .attrs (engine/ir/op.h). GT_NUMBER(i, key, default, minimum, maximum, help) is the key of
 *            parameter i, in engine/ir/ops_act.c
 * An attribute of gelu selects between two formulas; the second one is gt_gelu_tanh. */
#define GT_ACTIVATIONS(X, ...)                                                                                                             \
	X(__VA_ARGS__, RELU, relu, y, 0, 65536, none, "max(0, x)", "nn.ReLU")                                                                  \
	X(__VA_ARGS__, LEAKY_RELU, leaky_relu, x, 1, 65536, act, "x, or slope * x where x is negative", "nn.LeakyReLU",                        \
	  GT_NUMBER(0, "slope", 0.01, -1e6, 1e6, "factor for negative inputs"))                                                                \
	X(__VA_ARGS__, SIGMOID, sigmoid, y, 0, 16384, none, "1 / (1 + exp(-x))", "nn.Sigmoid")                                                 \
	X(__VA_ARGS__, TANH, tanh, y, 0, 12288, none, "hyperbolic tangent", "nn.Tanh")                                                         \
	X(__VA_ARGS__, GELU, gelu, x, 0, 8192, gelu, "x times the cumulative normal distribution of x", "nn.GELU",                             \
	  GT_KEY(gt_attr_gelu, "approximate", approximate, GT_ATTR_ENUM, .def = 0, .max = 1, .values = "none|tanh",                            \
	         .help = "none: exact, with erf; tanh: the older approximation with tanh"))                                                    \
	X(__VA_ARGS__, SILU, silu, x, 0, 16384, none, "x * sigmoid(x)", "nn.SiLU|swish")                                                       \
	X(__VA_ARGS__, MISH, mish, x, 0, 12288, none, "x * tanh(log(1 + exp(x)))", "nn.Mish")                                                  \
	X(__VA_ARGS__, ELU, elu, x, 1, 16384, act, "x, or alpha * (exp(x) - 1) where x is negative", "nn.ELU",                                 \
	  GT_NUMBER(0, "alpha", 1, 0, 1e6, "y approaches -alpha if x is very negative"))                                                       \
	X(__VA_ARGS__, RELU6, relu6, y, 0, 65536, none, "min(max(0, x), 6)", "nn.ReLU6")                                                       \
	X(__VA_ARGS__, HARDSIGMOID, hardsigmoid, x, 0, 65536, none, "min(max(0, x + 3), 6) / 6", "nn.Hardsigmoid|hard_sigmoid")                \
	X(__VA_ARGS__, HARDSWISH, hardswish, x, 0, 65536, none, "x * min(max(0, x + 3), 6) / 6", "nn.Hardswish|hard_swish|hswish")             \
	X(__VA_ARGS__, SOFTPLUS, softplus, x, 2, 12288, act, "log(1 + exp(beta * x)) / beta, or x where beta * x is above threshold",          \
	  "nn.Softplus",                                                                                                                       \
	  GT_NUMBER(0, "beta", 1, 1e-6, 1e6, "a larger value makes the bend narrower"),                                                        \
	  GT_NUMBER(1, "threshold", 20, -1e6, 1e6, "y is x if beta * x is above the threshold"))                                               \
	X(__VA_ARGS__, SELU, selu, x, 0, 16384, none, "1.0507 * x, or 1.7581 * (exp(x) - 1) where x is negative", "nn.SELU")

/* The two rows of an activation in GT_OPCODES (opcall.h). */
#define GT_ACTIVATION_OPCODES(X, CODE, name, saved, numbers, grain, attr, ...)                                                             \
	X(GT_OP_##CODE, #name, eltwise, attr, "x(..) -> y(..)")                                                                                \
	X(GT_OP_##CODE##_DX, #name ".dx", eltwise, attr, "dy(..) " #saved "(..) -> dx(..)")

/* The arguments for an activation's parameters: the variables n0 and n1 of the calling loop or kernel. */
#define GT_ACTIVATION_NUMBERS_0
#define GT_ACTIVATION_NUMBERS_1 , n0
#define GT_ACTIVATION_NUMBERS_2 , n0, n1
/* The minimum number of elements of a thread in an activation's gradient: the row's grain if the gradient reads x; 65536 if it reads y. */
#define GT_ACTIVATION_GRAIN_x(grain) grain
#define GT_ACTIVATION_GRAIN_y(grain) 65536

#endif
