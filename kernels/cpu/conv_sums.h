/* The weights' gradient of a convolution in f32, computed in parts: each part has the sums of all weights over some of the rows
 * (conv_direct_dw.c, conv_grouped_dw.c). The sums of the parts are added in order and stored:
 *
 *     dw[weight] (+)= sum in part 0 + sum in part 1 + … */
#ifndef GT_CPU_CONV_SUMS_H
#define GT_CPU_CONV_SUMS_H

#include "cpu/loops.h"

struct gt_conv_sums {
	int64_t parts, floats; /* number of parts; floats of a part */
	/* The sum of a weight in a part: group * group_step + o / width * panel_step + o % width + i * in_step + tap * tap_step floats from its
	 * begin, where o and i are an output and an input channel of the group. */
	int64_t width, group_step, panel_step, in_step, tap_step;
	int64_t out, group_out, in, taps; /* output channels, of all groups and of a group; input channels of a group; taps of the filter */
	int64_t *at;                      /* for each weight [out][in of a group][tap], its position in dw; NULL: dw is plain */
	size_t padded_bytes;              /* bytes of dw with its padding, which is 0; 0: dw has no padding */
	bool add;                         /* add to the values in dw */
	float *part, *dw;                 /* set by a launch */
};

/* Allocates and fills the positions of the weights w, [out][in of a group][tap], in their layout. */
enum gt_code gt_conv_positions(const struct gt_tdesc *w, int64_t **at, struct gt_err *err);

/* Fills in out … add from the weights' gradient of a call, whose layout it chooses if the kernel may choose it. Allocates at. */
enum gt_code gt_conv_sums_init(struct gt_conv_sums *s, const struct gt_opcall *call, struct gt_err *err);

/* Adds the parts and stores the gradient. */
void gt_conv_sums_store(const struct gt_dev *dev, const struct gt_conv_sums *s);

#endif
