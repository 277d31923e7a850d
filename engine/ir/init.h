/* Initial values of parameters.
 *   torch-default    PyTorch's distributions (nn.Linear, nn.Conv2d: U(±1/sqrt(fan_in)) for weight and bias). Philox draws them from
 *                    (seed, parameter, element), so any rank can draw any part of any parameter
 *   torch            the same distributions from PyTorch's own generator. The values are, bit for bit, those of torch.manual_seed(seed)
 *                    followed by the construction of the modules in the layers' order (weight before bias; normalisations draw nothing);
 *                    the values of embedding tables, N(0, 1), differ by about 1e-6 (mt19937.h). Every method draws tables in this way
 *   kaiming-normal   N(0, sqrt(2 / fan_in)), kaiming-uniform U(±sqrt(6 / fan_in)), xavier-normal N(0, sqrt(2 / (fan_in + fan_out))),
 *   …                xavier-uniform U(±sqrt(6 / (fan_in + fan_out))): weights as in torch.nn.init with the gain of ReLU (kaiming) or 1
 *                    (xavier); biases are 0
 * A layer's init = "dirac" replaces the first min(in, out) filters by the identity after the draw; init = "zeros" sets the weight to 0
 * after the draw; session/whiten.c computes init = "whitening", because it can read the data. init_std then scales the weights to a
 * standard deviation. Normalisation parameters and buffers start at the same constants with every method, except the weight of a layer with
 * init = "zeros". */
#ifndef GT_IR_INIT_H
#define GT_IR_INIT_H

#include "base/mt19937.h"
#include "ir/graph.h"

/* State of the random draws of one model. */
struct gt_init_stream {
	uint64_t seed;
	struct gt_mt19937 torch; /* PyTorch's generator, for method `torch` */
	struct gt_mt19937 skipped; /* copy of `torch` from before the draws that gt_param.torch_skip skips, for the parameter that uses them */
};

void gt_init_begin(struct gt_init_stream *s, uint64_t seed);

/* Writes the initial values of p to plain_out, host memory for all elements of p in the dtype of p->desc and in plain (row-major)
 * layout. index: the index of p in the graph. Parameters with method `torch` share one stream and must be initialised in the order of
 * the graph (index 0, 1, …); other parameters may be initialised in any order. */
void gt_param_init(struct gt_init_stream *s, const struct gt_param *p, int index, void *plain_out);

#endif
