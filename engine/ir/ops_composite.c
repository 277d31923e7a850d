/* Composites: layer types that add several nodes. */
#include "ir/rows.h"

struct attr_shortcut {
	int64_t out, stride;
};

/* Adds the shortcut of a ResNet block: the input itself if the shape stays the same, else a 1x1 convolution and a batch normalisation,
 * named "<name>.0" and "<name>.1" as in torchvision's `downsample`. */
static enum gt_code shortcut_expand(struct gt_graph *g, const struct gt_layer_spec *s, const gt_vid *in, int nin, gt_vid *y,
                                    struct gt_err *err)
{
	const struct attr_shortcut *a = s->attr;
	const struct gt_tdesc *x = gt_graph_desc(g, *in);
	const struct gt_op *conv2d = gt_op_find_layer("conv2d");
	const char *conv, *norm;
	char buf[96];
	if (x->rank != 4)
		return gt_fail(err, GT_ECONFIG, "expected an input of [batch, channels, height, width], got %s", gt_tdesc_text(x, buf, sizeof buf));
	if (x->dim[1] == a->out && a->stride == 1)
		return gt_graph_apply(g, gt_op_find_layer("identity"), s->name, NULL, nin, in, y, err);
	struct gt_attr_conv2d c;
	gt_op_defaults(conv2d, &c);
	c.out = a->out;
	c.kernel[0] = c.kernel[1] = 1;
	c.stride[0] = c.stride[1] = a->stride;
	c.bias = false;
	GT_NEW_STR(conv, gt_arena_printf(g->arena, "%s.0", s->name), err);
	GT_NEW_STR(norm, gt_arena_printf(g->arena, "%s.1", s->name), err);
	GT_TRY(gt_graph_apply(g, conv2d, conv, &c, nin, in, y, err));
	return gt_graph_apply(g, gt_op_find_layer("batchnorm2d"), norm, NULL, 1, (gt_vid[]){*y}, y, err);
}

static const struct gt_attr_def shortcut_attrs[] = {
    GT_KEY(attr_shortcut, "out", out, GT_ATTR_INT, .def = GT_REQUIRED, .min = 1, .max = GT_MAX_FEATURES, .help = "output channels"),
    GT_KEY(attr_shortcut, "stride", stride, GT_ATTR_INT, .def = 1, .min = 1, .max = 65536, .help = "stride; it must equal the stride of "
           "the block's main branch"),
    GT_KEYS_END,
};

const struct gt_op gt_ops_composite[] = {
    {
        .code = GT_OP_COUNT,
        .name = "shortcut",
        .help = "residual shortcut: its input, or a 1x1 convolution and batchnorm2d (<name>.0, <name>.1) if channels or stride differ",
        .flags = GT_OPF_LAYER,
        .min_in = 1,
        .max_in = 1,
        .attrs = shortcut_attrs,
        .attr_size = sizeof(struct attr_shortcut),
        .expand = shortcut_expand,
    },
    GT_OPS_END,
};
