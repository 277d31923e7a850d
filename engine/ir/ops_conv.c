/* conv2d: x [N, I, H, W], w [O, I/groups, kh, kw] (torch.nn.Conv2d, cross-correlation); layer_scale. */
#include "ir/rows.h"

/* Checks groups, window sizes and the init methods that are for convolutions only; then declares weight and bias and the output. */
static enum gt_code conv_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	const struct gt_attr_conv2d *a = n->attr;
	GT_TRY(gt_expect_rank(g, n, 4, err));
	struct gt_tdesc x = *gt_node_desc(g, n, "x");
	int64_t y[4] = {x.dim[0], a->out};
	gt_vid out;
	if (x.dim[1] % a->groups || a->out % a->groups)
		return gt_fail(err, GT_ECONFIG, "expected input and output channels (out) to be multiples of groups = %lld, got %lld and %lld",
		               (long long)a->groups, (long long)x.dim[1], (long long)a->out);
	for (int i = 0; i < 2; i++) {
		y[2 + i] = gt_window_out(x.dim[2 + i], a->kernel[i], a->stride[i], a->padding[i], a->dilation[i], false);
		if (y[2 + i] < 1)
			return gt_fail(err, GT_ECONFIG, "expected a%s of at least %lld with padding (kernel %lld, dilation %lld), got %lld + 2 * %lld",
			               i ? " width" : " height", (long long)(a->dilation[i] * (a->kernel[i] - 1) + 1), (long long)a->kernel[i],
			               (long long)a->dilation[i], (long long)x.dim[2 + i], (long long)a->padding[i]);
	}
	int init = g->spec ? g->spec->init : -1;
	if ((init == GT_INIT_DIRAC || init == GT_INIT_WHITENING) && a->groups != 1)
		return gt_fail(err, GT_ECONFIG, "init: expected groups = 1 with \"%s\", got %lld", init == GT_INIT_DIRAC ? "dirac" : "whitening",
		               (long long)a->groups);
	if (init == GT_INIT_WHITENING) {
		int64_t patch = x.dim[1] * a->kernel[0] * a->kernel[1];
		if (g->values[gt_node_operand(n, "x")].kind != GT_V_INPUT || a->dilation[0] != 1 || a->dilation[1] != 1)
			return gt_fail(err, GT_ECONFIG, "init: expected a convolution of the model's input without dilation for \"whitening\"");
		if (a->out % 2 || a->out / 2 > patch || patch > 1024)
			return gt_fail(err, GT_ECONFIG,
			               "init: expected an even number of filters, at most 2 * %lld, and patches of at most 1024 values, got %lld",
			               (long long)patch, (long long)a->out);
	}
	int64_t w[4] = {a->out, x.dim[1] / a->groups, a->kernel[0], a->kernel[1]}, area = w[2] * w[3];
	int64_t fan_in = w[1] * area, fan_out = w[0] * area; /* computed as in torch.nn.init._calculate_fan_in_and_fan_out */
	GT_TRY(gt_graph_param(g, n, "weight", GT_PARAM_WEIGHT, 4, w, gt_init_weight_default(fan_in), fan_in, fan_out, err));
	if (a->bias)
		GT_TRY(gt_graph_param(g, n, "bias", GT_PARAM_BIAS, 1, &a->out, gt_init_bias_default(fan_in), fan_in, fan_out, err));
	else
		gt_node_input(n, -1);
	struct gt_tdesc d = gt_tdesc_make(g->compute, 4, y, true);
	return gt_graph_output(g, n, NULL, &d, &out, err);
}

static enum gt_code conv_gradient(GT_GRADIENT_ARGS)
{
	return gt_gradient_weighted(g, n, dy, want, dx, err, GT_OP_CONV2D_DX, GT_OP_CONV2D_DW);
}

/* Counts one multiply-add for each pair of an element of y (or dy) and a value of one filter of w, in the forward pass and for each
 * gradient. */
static double conv_flops_of(const struct gt_graph *g, gt_vid y, gt_vid w)
{
	const struct gt_tdesc *d = gt_graph_desc(g, w);
	return 2.0 * (double)gt_tdesc_count(gt_graph_desc(g, y)) * (double)(gt_tdesc_count(d) / d->dim[0]);
}

static double conv_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return conv_flops_of(g, gt_node_operand(n, "y"), gt_node_operand(n, "w"));
}

static double conv_dx_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return conv_flops_of(g, gt_node_operand(n, "dy"), gt_node_operand(n, "w"));
}

static double conv_dw_flops(const struct gt_graph *g, const struct gt_node *n)
{
	return conv_flops_of(g, gt_node_operand(n, "dy"), gt_node_first_output(n));
}

/* Each element of the output needs one filter of w2; each pixel of x, all filters of w. */
static double conv_pair_flops(const struct gt_graph *g, const struct gt_node *n)
{
	const struct gt_tdesc *x = gt_node_desc(g, n, "x");
	double pixels = (double)(x->dim[0] * x->dim[2] * x->dim[3]), w = (double)gt_tdesc_count(gt_node_desc(g, n, "w"));
	return 2 * pixels * w + conv_flops_of(g, gt_node_operand(n, "y"), gt_node_operand(n, "w2"));
}

#define CELLS 65536 /* upper bound of kernel sizes, strides, paddings and dilations, so that their products cannot overflow */
static const struct gt_attr_def conv_attrs[] = {
    GT_KEY(gt_attr_conv2d, "out", out, GT_ATTR_INT, .def = GT_REQUIRED, .min = 1, .max = GT_MAX_FEATURES, .help = "output channels"),
    GT_KEY(gt_attr_conv2d, "kernel", kernel, GT_ATTR_INT2, .def = GT_REQUIRED, .min = 1, .max = CELLS,
           .help = "height and width of the filters"),
    GT_KEY(gt_attr_conv2d, "stride", stride, GT_ATTR_INT2, .def = 1, .min = 1, .max = CELLS, .help = "step between filter positions"),
    GT_KEY(gt_attr_conv2d, "padding", padding, GT_ATTR_INT2, .def = 0, .min = 0, .max = CELLS, .help = "zeros added on each side"),
    GT_KEY(gt_attr_conv2d, "dilation", dilation, GT_ATTR_INT2, .def = 1, .min = 1, .max = CELLS, .help = "distance between the elements "
           "of a filter"),
    GT_KEY(gt_attr_conv2d, "groups", groups, GT_ATTR_INT, .def = 1, .min = 1, .max = GT_MAX_FEATURES,
           .help = "number of groups of channels that are convolved separately; with as many groups as input channels, the convolution "
           	"is depthwise"),
    GT_KEY(gt_attr_conv2d, "bias", bias, GT_ATTR_BOOL, .def = 1, .max = 1,
           .help = "add a learned bias; it has no effect before a batch normalisation"),
    GT_KEYS_END,
};

/* ---- layer_scale --------------------------------------------------------------------------------------------------------- */
struct attr_layer_scale {
	double value; /* initial value of the learned factors, one for each channel */
};

/* Infers the node of layer_scale: a depthwise 1x1 convolution, whose filters all have the same initial value. */
static enum gt_code factors_infer(struct gt_graph *g, struct gt_node *n, struct gt_err *err)
{
	const struct attr_layer_scale *a = g->spec->attr;
	struct gt_tdesc x = *gt_node_desc(g, n, "x");
	gt_vid y;
	GT_TRY(gt_graph_param(g, n, "weight", GT_PARAM_WEIGHT, 4, (int64_t[]){x.dim[1], 1, 1, 1}, (struct gt_init){GT_INIT_CONST, a->value}, 1,
	                      1, err));
	gt_node_input(n, -1);
	return gt_graph_output(g, n, NULL, &x, &y, err);
}

static const struct gt_op factors_op = {
    .code = GT_OP_CONV2D, .infer = factors_infer, .gradient = conv_gradient, .flops = conv_flops};

/* Adds layer_scale. An input that is not an image is reshaped to images of one pixel, whose channels are the features of a sample or of a
 * token. */
static enum gt_code layer_scale_expand(struct gt_graph *g, const struct gt_layer_spec *s, const gt_vid *in, int nin, gt_vid *y,
                                       struct gt_err *err)
{
	struct gt_tdesc x = *gt_graph_desc(g, *in);
	int64_t channels = x.dim[x.rank == 4 ? 1 : x.rank - 1], rows = gt_tdesc_count(&x) / channels;
	struct gt_attr_conv2d c;
	(void)nin;
	gt_op_defaults(gt_op_get(GT_OP_CONV2D), &c);
	c.out = c.groups = channels;
	c.kernel[0] = c.kernel[1] = 1;
	c.bias = false;
	*y = *in;
	if (x.rank == 4)
		return gt_graph_apply(g, &factors_op, s->name, &c, 1, in, y, err);
	if (x.rank == 3)
		GT_TRY(gt_graph_view(g, s->name, *y, 2, (int64_t[]){rows, channels}, y, err));
	GT_TRY(gt_graph_unflatten(g, s->name, *y, (int64_t[]){rows, channels, 1, 1}, y, err));
	GT_TRY(gt_graph_apply(g, &factors_op, s->name, &c, 1, y, y, err));
	GT_TRY(gt_graph_apply(g, gt_op_get(GT_OP_FLATTEN), s->name, NULL, 1, y, y, err));
	return x.rank == 3 ? gt_graph_view(g, s->name, *y, 3, x.dim, y, err) : GT_OK;
}

static const struct gt_attr_def layer_scale_attrs[] = {
    GT_KEY(attr_layer_scale, "init_value", value, GT_ATTR_FLOAT, .def = 1e-6, .min = -1e6, .max = 1e6,
           .help = "initial value of the factors"),
    GT_KEYS_END,
};

const struct gt_op gt_ops_conv[] = {
    {
        .code = GT_OP_CONV2D,
        .help = "two-dimensional convolution; takes [batch, channels, height, width]",
        .also = "nn.Conv2d|conv|convolution",
        .flags = GT_OPF_LAYER,
        .min_in = 1,
        .max_in = 1,
        .attrs = conv_attrs,
        .infer = conv_infer,
        .gradient = conv_gradient,
        .flops = conv_flops,
    },
    {
        .code = GT_OP_COUNT,
        .name = "layer_scale",
        .help = "multiplies each channel, or feature, by a learned factor (LayerScale of CaiT and ConvNeXt; weight: [channels, 1, 1, 1])",
        .also = "layerscale",
        .flags = GT_OPF_LAYER | GT_OPF_TOKENS,
        .min_in = 1,
        .max_in = 1,
        .attrs = layer_scale_attrs,
        .attr_size = sizeof(struct attr_layer_scale),
        .expand = layer_scale_expand,
    },
    {.code = GT_OP_CONV2D_PAIR, .flops = conv_pair_flops},
    {.code = GT_OP_CONV2D_DX, .flops = conv_dx_flops},
    {.code = GT_OP_CONV2D_DW, .flops = conv_dw_flops},
    GT_OPS_END,
};
