/* init = "whitening": filters of the first convolution whose outputs on patches of the training images are uncorrelated and, but for
 * eps, of one size. The rows of E / sqrt(lambda + eps), E and lambda the eigenvectors and eigenvalues of the second moments of the
 * patches (ascending; those of the largest where the layer has fewer filters), followed by the same rows with the other sign. Source:
 * Page's page on CIFAR-10 training, "How to train your ResNet", part 8 (patch whitening); Jordan, "94% on CIFAR-10 in 3.29 seconds on a
 * single GPU", 2024, section 3.1. */
#ifndef GT_SESSION_WHITEN_H
#define GT_SESSION_WHITEN_H

#include "session/session.h"

/* The weights of p, [out, C, kh, kw], to a plain host buffer, from the first p->init_samples training images as the loader gives them
 * without augmentation. A pure function of data and config. */
enum gt_code gt_whiten(struct gt_session *s, const struct gt_param *p, void *plain, struct gt_err *err);

/* Eigenvalues, ascending, and eigenvectors (row i of v belongs to lambda[i]) of the symmetric matrix a[n][n], which is overwritten:
 * cyclic Jacobi rotations (Golub and Van Loan, "Matrix Computations", section 8.5). The largest element of every vector is positive. */
void gt_eigen_symmetric(double *a, int n, double *lambda, double *v);

#endif
