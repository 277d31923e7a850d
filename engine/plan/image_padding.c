/* Pads the channels of images. Tensor cores read 16-bit channels in blocks of GT_CHANNEL_PAD, so a library would copy images with 3
 * channels into a padded workspace before each convolution, in the forward pass and for the gradient of the weights. If only convolutions
 * read the images, and the backend supports padding, the images are written with padding from the start. The padding is zeros, which do not
 * change sums. */
#include "plan/plan_parts.h"
#include "ir/op.h"

/* Returns whether node n is a convolution that can read padded channels, and its input k is the image x. */
static bool reads_as_conv_image(const struct gt_node *n, int k)
{
	int x = n->op->code == GT_OP_CONV2D ? 0 : n->op->code == GT_OP_CONV2D_DW ? 1 : -1;
	return k == x && ((const struct gt_attr_conv2d *)n->attr)->groups == 1;
}

static bool only_convolutions_read(const struct gt_graph *g, gt_vid v)
{
	int readers = 0;
	for (int i = 0; i < g->nnodes; i++)
		for (int k = 0; k < g->nodes[i].nin; k++) {
			if (g->nodes[i].in[k] != v)
				continue;
			if (!reads_as_conv_image(&g->nodes[i], k))
				return false;
			readers++;
		}
	return readers > 0;
}

/* Sets *yes to whether the backend can write padded images when it gathers a batch. Only this call is tried: whether a convolution is
 * supported may depend on the batch size, but all graphs of a run must have the same input. */
static enum gt_code gathers_padded(struct gt_space *s, const struct gt_tdesc *padded, bool *yes, struct gt_err *err)
{
	struct gt_attr_gather attr = {0};
	struct gt_tdesc x = *padded, images = gt_tdesc_make(GT_U8, 4, x.dim, true), index = gt_tdesc_make(GT_I64, 1, x.dim, false);
	struct gt_opcall oc = {.code = GT_OP_GATHER, .name = "data", .attr = &attr, .nin = 3, .nout = 2,
	                       .in = {&images, NULL, &index}, .out = {&x, NULL}};
	return gt_call_supported(s, &oc, yes, err);
}

enum gt_code gt_plan_pad_images(struct gt_space *s, struct gt_graph *g, struct gt_err *err)
{
	for (int i = 0; i < g->ninputs; i++) {
		struct gt_tdesc *d = &g->values[g->input[i]].desc;
		bool yes;
		if (d->rank != 4 || d->dim[1] % GT_CHANNEL_PAD == 0 || !only_convolutions_read(g, g->input[i]))
			continue;
		struct gt_tdesc padded = gt_tdesc_pad_channels(d, GT_CHANNEL_PAD);
		GT_TRY(gathers_padded(s, &padded, &yes, err));
		if (yes)
			*d = padded;
	}
	return GT_OK;
}
