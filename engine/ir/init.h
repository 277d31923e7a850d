/* The first values of parameters.
 *   torch-default    PyTorch's distributions (nn.Linear, nn.Conv2d: U(±1/sqrt(fan_in)) for weight and bias), drawn by Philox from
 *                    (seed, parameter, element): any rank may draw any part of any parameter
 *   torch            the same distributions by PyTorch's own generator: bit for bit what torch.manual_seed(seed) followed by the
 *                    construction of the modules in the layers' order gives (weight before bias; normalisations draw nothing)
 *   kaiming-normal   N(0, sqrt(2 / fan_in)), kaiming-uniform U(±sqrt(6 / fan_in)), xavier-normal N(0, sqrt(2 / (fan_in + fan_out))),
 *   …                xavier-uniform U(±sqrt(6 / (fan_in + fan_out))): weights as torch.nn.init with the gain of ReLU (kaiming) or 1
 *                    (xavier); biases 0
 * A layer's init = "dirac" makes the first min(in, out) filters the identity after the draw; "whitening" is left to session/whiten.c, which
 * knows the data. init_std then scales the weights to a standard deviation.
 * Normalisations and buffers start at their constants under every method. */
#ifndef GT_IR_INIT_H
#define GT_IR_INIT_H

#include "base/mt19937.h"
#include "ir/graph.h"

struct gt_init_stream {
	uint64_t seed;
	struct gt_mt19937 torch;
};

void gt_init_begin(struct gt_init_stream *s, uint64_t seed);

/* Fills a plain host buffer of p->desc's dtype and element count. Parameters with method `torch` share one stream and must come in the
 * order of the graph (index 0, 1, …); the others may come in any. */
void gt_param_init(struct gt_init_stream *s, const struct gt_param *p, int index, void *plain_out);

#endif
