/* Translates layers of images and of rows of numeric values to modules of torch.nn. */
#include "export/torch_model.h"
#include <string.h>

void gt_torch_linear(const struct gt_torch_layer *l)
{
	const struct gt_attr_linear *a = l->attr;
	gt_torch_module(l, "nn.Linear(%lld, %lld%s)", (long long)l->dx[0]->dim[l->dx[0]->rank - 1], (long long)a->out,
	                a->bias ? "" : ", bias=False");
}

/* ---- convolution and pooling ------------------------------------------------------------------------------------------------------ */
/* Writes "3", or "(3, 5)" for two different integers, and returns buf. */
static const char *print_pair(const int64_t v[2], char buf[48])
{
	snprintf(buf, 48, v[0] == v[1] ? "%lld" : "(%lld, %lld)", (long long)v[0], (long long)v[1]);
	return buf;
}

/* Appends ", key=value" unless both integers are `def`. */
static void append_pair(char *text, size_t size, const char *key, const int64_t v[2], int64_t def)
{
	char buf[48];
	size_t n = strlen(text);
	if (v[0] != def || v[1] != def)
		snprintf(text + n, size - n, ", %s=%s", key, print_pair(v, buf));
}

static void print_conv(const struct gt_attr_conv2d *a, int64_t in, char *text, size_t size)
{
	char kernel[48];
	snprintf(text, size, "nn.Conv2d(%lld, %lld, %s", (long long)in, (long long)a->out, print_pair(a->kernel, kernel));
	append_pair(text, size, "stride", a->stride, 1);
	append_pair(text, size, "padding", a->padding, 0);
	append_pair(text, size, "dilation", a->dilation, 1);
	if (a->groups != 1)
		snprintf(text + strlen(text), size - strlen(text), ", groups=%lld", (long long)a->groups);
	snprintf(text + strlen(text), size - strlen(text), "%s)", a->bias ? "" : ", bias=False");
}

void gt_torch_conv2d(const struct gt_torch_layer *l)
{
	char text[512];
	print_conv(l->attr, l->dx[0]->dim[1], text, sizeof text);
	gt_torch_module(l, "%s", text);
}

static void add_pool(const struct gt_torch_layer *l, const char *name, const char *more)
{
	const struct gt_attr_pool2d *a = l->attr;
	char text[512], buf[48];
	snprintf(text, sizeof text, "%s", print_pair(a->kernel, buf));
	snprintf(text + strlen(text), sizeof text - strlen(text), ", stride=%s", print_pair(a->stride, buf));
	append_pair(text, sizeof text, "padding", a->padding, 0);
	gt_torch_module(l, "nn.%s(%s%s%s)", name, text, a->ceil_mode ? ", ceil_mode=True" : "", more);
}

void gt_torch_maxpool(const struct gt_torch_layer *l)
{
	add_pool(l, "MaxPool2d", "");
}

void gt_torch_avgpool(const struct gt_torch_layer *l)
{
	const struct gt_attr_pool2d *a = l->attr;
	add_pool(l, "AvgPool2d", a->count_include_pad ? "" : ", count_include_pad=False");
}

void gt_torch_adaptive_avgpool(const struct gt_torch_layer *l)
{
	const struct gt_attr_adaptive *a = l->attr;
	char out[48];
	gt_torch_module(l, "nn.AdaptiveAvgPool2d(%s)", print_pair(a->out, out));
}

void gt_torch_adaptive_maxpool(const struct gt_torch_layer *l)
{
	const struct gt_attr_adaptive *a = l->attr;
	char out[48];
	gt_torch_module(l, "nn.AdaptiveMaxPool2d(%s)", print_pair(a->out, out));
}

/* ---- normalisation ---------------------------------------------------------------------------------------------------------------- */
void gt_torch_batchnorm(const struct gt_torch_layer *l)
{
	const struct gt_attr_norm *a = l->attr;
	char eps[32], momentum[32];
	gt_torch_module(l, "nn.BatchNorm%dd(%lld, eps=%s, momentum=%s%s%s)", l->dx[0]->rank == 4 ? 2 : 1, (long long)l->dx[0]->dim[1],
	                gt_torch_number(eps, a->eps), gt_torch_number(momentum, a->momentum), a->affine ? "" : ", affine=False",
	                a->track ? "" : ", track_running_stats=False");
}

/* Writes nn.LayerNorm, whose normalized_shape is the shape of the node's input without the batch. */
void gt_torch_layernorm(const struct gt_torch_layer *l)
{
	const struct gt_attr_norm *a = l->attr;
	const struct gt_tdesc *x = gt_node_desc(l->g, l->node, "x");
	char shape[96] = "", eps[32];
	for (int i = 1; i < x->rank; i++)
		snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld", i > 1 ? ", " : "", (long long)x->dim[i]);
	gt_torch_module(l, "nn.LayerNorm([%s], eps=%s%s)", shape, gt_torch_number(eps, a->eps), a->affine ? "" : ", elementwise_affine=False");
}

void gt_torch_groupnorm(const struct gt_torch_layer *l)
{
	const struct gt_attr_norm *a = l->attr;
	char eps[32];
	gt_torch_module(l, "nn.GroupNorm(%lld, %lld, eps=%s%s)", (long long)a->groups, (long long)l->dx[0]->dim[1],
	                gt_torch_number(eps, a->eps), a->affine ? "" : ", affine=False");
}

/* ---- activations ------------------------------------------------------------------------------------------------------------------ */
/* Defines the function of a layer that is a module without arguments. */
#define MODULE(name, text)                               \
	void gt_torch_##name(const struct gt_torch_layer *l) \
	{                                                    \
		gt_torch_module(l, "nn." text);                  \
	}
MODULE(relu, "ReLU()")
MODULE(sigmoid, "Sigmoid()")
MODULE(tanh, "Tanh()")
MODULE(silu, "SiLU()")
MODULE(mish, "Mish()")
MODULE(relu6, "ReLU6()")
MODULE(hardsigmoid, "Hardsigmoid()")
MODULE(hardswish, "Hardswish()")
MODULE(selu, "SELU()")
MODULE(softmax, "Softmax(dim=1)")
MODULE(log_softmax, "LogSoftmax(dim=1)")
MODULE(flatten, "Flatten()")
MODULE(identity, "Identity()")

/* Defines the function of a layer that is a module with one number as argument. */
#define MODULE_OF_NUMBER(name, text, number)                             \
	void gt_torch_##name(const struct gt_torch_layer *l)                 \
	{                                                                    \
		char buf[32];                                                    \
		gt_torch_module(l, "nn." text "(%s)", gt_torch_number(buf, number)); \
	}
MODULE_OF_NUMBER(leaky_relu, "LeakyReLU", ((const struct gt_attr_act *)l->attr)->number[0])
MODULE_OF_NUMBER(elu, "ELU", ((const struct gt_attr_act *)l->attr)->number[0])
MODULE_OF_NUMBER(dropout, "Dropout", ((const struct gt_attr_dropout *)l->attr)->p)
MODULE_OF_NUMBER(dropout2d, "Dropout2d", ((const struct gt_attr_dropout *)l->attr)->p)

void gt_torch_softplus(const struct gt_torch_layer *l)
{
	const struct gt_attr_act *a = l->attr;
	char beta[32], threshold[32];
	gt_torch_module(l, "nn.Softplus(beta=%s, threshold=%s)", gt_torch_number(beta, a->number[0]), gt_torch_number(threshold, a->number[1]));
}

void gt_torch_gelu(const struct gt_torch_layer *l)
{
	gt_torch_module(l, "nn.GELU(%s)", ((const struct gt_attr_gelu *)l->attr)->approximate ? "approximate=\"tanh\"" : "");
}

void gt_torch_prelu(const struct gt_torch_layer *l)
{
	gt_torch_module(l, "nn.PReLU(%lld)", (long long)((const struct gt_attr_prelu *)l->attr)->num);
}

void gt_torch_drop_path(const struct gt_torch_layer *l)
{
	char p[32];
	l->helper[GT_TORCH_DROP_PATH] = true;
	gt_torch_module(l, "DropPath(%s)", gt_torch_number(p, ((const struct gt_attr_dropout *)l->attr)->p));
}

void gt_torch_scale(const struct gt_torch_layer *l)
{
	char factor[32];
	gt_torch_line(l, "%s * %s", l->x[0], gt_torch_number(factor, ((const struct gt_attr_scale *)l->attr)->factor));
}

/* ---- several inputs and shapes ---------------------------------------------------------------------------------------------------- */
/* Writes an expression that combines the inputs by an operator of Python. If the inputs are [N, C] and [N, C, H, W], the input [N, C] is
 * broadcast over the pixels. */
static void join_inputs(const struct gt_torch_layer *l, const char *operator)
{
	char text[512] = "";
	for (int i = 0; i < l->nin; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s%s", i ? operator : "", l->x[i],
		         l->dx[i]->rank < l->dy->rank ? "[:, :, None, None]" : "");
	gt_torch_line(l, "%s", text);
}

void gt_torch_add(const struct gt_torch_layer *l)
{
	join_inputs(l, " + ");
}

void gt_torch_mul(const struct gt_torch_layer *l)
{
	join_inputs(l, " * ");
}

void gt_torch_concat(const struct gt_torch_layer *l)
{
	char text[512] = "";
	for (int i = 0; i < l->nin; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? ", " : "", l->x[i]);
	gt_torch_line(l, "torch.cat((%s), 1)", text);
}

/* Writes a shortcut: an identity, or nn.Sequential, whose convolution and batch normalisation get the names NAME.0 and NAME.1. */
void gt_torch_shortcut(const struct gt_torch_layer *l)
{
	const struct gt_node *conv = gt_torch_node(l, GT_OP_CONV2D, NULL);
	char text[512];
	if (!conv) {
		gt_torch_identity(l);
		return;
	}
	print_conv(conv->attr, l->dx[0]->dim[1], text, sizeof text);
	gt_torch_module(l, "nn.Sequential(%s, nn.BatchNorm2d(%lld))", text, (long long)l->dy->dim[1]);
}

void gt_torch_permute(const struct gt_torch_layer *l)
{
	const struct gt_attr_permute *a = l->attr;
	char text[96] = "0";
	for (int i = 1; i < a->dims.n; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), ", %lld", (long long)a->dims.v[i]);
	gt_torch_line(l, "%s.permute(%s)", l->x[0], text);
}

void gt_torch_select(const struct gt_torch_layer *l)
{
	const struct gt_attr_select *a = l->attr;
	gt_torch_line(l, "%s.select(%lld, %lld)", l->x[0], (long long)a->dim, (long long)a->index);
}

void gt_torch_reshape(const struct gt_torch_layer *l)
{
	char text[96] = "";
	for (int i = 1; i < l->dy->rank; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), ", %lld", (long long)l->dy->dim[i]);
	gt_torch_line(l, "%s.reshape(-1%s)", l->x[0], text);
}
