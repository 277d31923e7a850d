/* Initialisation "whitening" of the first convolution: filters whose outputs on patches of training images are uncorrelated and have (apart
 * from eps) equal variances.
 *
 * The filters are the rows of E / sqrt(lambda + eps), followed by the same rows with the opposite sign. lambda and E are the eigenvalues
 * and eigenvectors of the second moments of the patches, in ascending order; if the layer has fewer filters, it gets the rows of the
 * largest eigenvalues. Sources: Page's page on CIFAR-10 training, "How to train your ResNet", part 8 (patch whitening); Jordan, "94% on
 * CIFAR-10 in 3.29 seconds on a single GPU", 2024, section 3.1. */
#ifndef GT_SESSION_WHITEN_H
#define GT_SESSION_WHITEN_H

#include "session/session.h"

/* Computes the weights of p, [out, C, kh, kw], into plain host memory, from the first p->init_samples training images as the loader
 * delivers them without augmentation. The result depends only on data and config. */
enum gt_code gt_whiten(struct gt_session *s, const struct gt_param *p, void *plain, struct gt_err *err);

#endif
