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

/* Computes the eigenvalues lambda[n], ascending, and eigenvectors v[n][n] (row i belongs to lambda[i]) of the symmetric matrix a[n][n],
 * which it overwrites. The method is cyclic Jacobi rotation (Golub and Van Loan, "Matrix Computations", section 8.5). In each eigenvector
 * the element of largest magnitude is positive. */
void gt_eigen_symmetric(double *a, int n, double *lambda, double *v);

#endif
