#include "session/whiten.h"
#include "session/session_data.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SWEEPS 60 /* maximum number of sweeps of Jacobi's method, which converges quadratically; usually 6 to 10 suffice */

static void rotate_jacobi(double *a, double *v, int n, int p, int q)
{
	double apq = a[p * n + q];
	double theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
	double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1)), c = 1 / sqrt(t * t + 1), s = t * c;
	for (int k = 0; k < n; k++) {
		double x = a[k * n + p], y = a[k * n + q];
		a[k * n + p] = c * x - s * y;
		a[k * n + q] = s * x + c * y;
	}
	for (int k = 0; k < n; k++) {
		double x = a[p * n + k], y = a[q * n + k];
		a[p * n + k] = c * x - s * y;
		a[q * n + k] = s * x + c * y;
		x = v[p * n + k], y = v[q * n + k];
		v[p * n + k] = c * x - s * y;
		v[q * n + k] = s * x + c * y;
	}
}

/* Computes the eigenvalues lambda[n], ascending, and eigenvectors v[n][n] (row i belongs to lambda[i]) of the symmetric matrix a[n][n],
 * which it overwrites. The method is cyclic Jacobi rotation (Golub and Van Loan, "Matrix Computations", section 8.5). In each eigenvector
 * the element of largest magnitude is positive. */
static void solve_symmetric(double *a, int n, double *lambda, double *v)
{
	double total = 0;
	for (int i = 0; i < n * n; i++) {
		v[i] = i / n == i % n;
		total += a[i] * a[i];
	}
	for (int sweep = 0; sweep < SWEEPS; sweep++) {
		double off = 0;
		for (int p = 0; p < n; p++)
			for (int q = p + 1; q < n; q++)
				off += 2 * a[p * n + q] * a[p * n + q];
		if (off <= 1e-30 * total)
			break;
		for (int p = 0; p < n; p++)
			for (int q = p + 1; q < n; q++)
				if (a[p * n + q] != 0)
					rotate_jacobi(a, v, n, p, q);
	}
	for (int i = 0; i < n; i++)
		lambda[i] = a[i * n + i];
	for (int i = 0; i < n; i++) { /* there are few values, so selection sort suffices */
		int least = i;
		for (int k = i + 1; k < n; k++)
			if (lambda[k] < lambda[least])
				least = k;
		double swap = lambda[i];
		lambda[i] = lambda[least];
		lambda[least] = swap;
		double *x = v + i * n, *y = v + least * n, sign = 0;
		for (int k = 0; k < n; k++) {
			swap = x[k];
			x[k] = y[k];
			y[k] = swap;
		}
		for (int k = 0; k < n; k++)
			if (fabs(x[k]) > fabs(sign))
				sign = x[k];
		for (int k = 0; sign < 0 && k < n; k++)
			x[k] = -x[k];
	}
}

struct moments {
	int64_t c, h, w, kh, kw; /* channels, height and width of an image; height and width of a patch */
	struct gt_attr_gather g;
	double *sum, *patch;
};

/* Adds the second moments of all patches of one image, whose bytes are NHWC. A patch is in PyTorch's order: C, kh, kw. */
static void add_image(void *user, const uint8_t *image)
{
	const struct moments *m = user;
	double *restrict sum = m->sum, *restrict patch = m->patch;
	int n = (int)(m->c * m->kh * m->kw);
	for (int64_t y = 0; y + m->kh <= m->h; y++)
		for (int64_t x = 0; x + m->kw <= m->w; x++) {
			for (int64_t c = 0, i = 0; c < m->c; c++)
				for (int64_t r = 0; r < m->kh; r++)
					for (int64_t s = 0; s < m->kw; s++)
						patch[i++] = (double)image[((y + r) * m->w + x + s) * m->c + c] * (double)m->g.scale[c] + (double)m->g.shift[c];
			for (int i = 0; i < n; i++)
				for (int k = i; k < n; k++)
					sum[i * n + k] += patch[i] * patch[k];
		}
}

enum gt_code gt_whiten(struct gt_session *s, const struct gt_param *p, void *plain, struct gt_err *err)
{
	const struct gt_view *view = &s->data.view[GT_TRAIN];
	const int64_t *in = s->conf->model.input;
	int64_t out = p->desc.dim[0], kh = p->desc.dim[2], kw = p->desc.dim[3], samples = p->init_samples < view->n ? p->init_samples : view->n;
	int n = (int)(p->desc.dim[1] * kh * kw), first = n - (int)(out / 2);
	size_t square = (size_t)n * (size_t)n;
	struct moments m = {.c = in[0], .h = in[1], .w = in[2], .kh = kh, .kw = kw};
	if (samples < 1 || m.h < kh || m.w < kw)
		return gt_fail(err, GT_ECONFIG, "%s: init = \"whitening\": expected training images of at least %lld x %lld pixels", p->name,
		               (long long)kh, (long long)kw);
	GT_TRY(gt_session_gather_attr(s->conf, (struct gt_transform_list){0}, &m.g, err));
	double *moments = calloc(2 * square + 2 * (size_t)n, sizeof *moments), *v = moments + square, *lambda = v + square, *patch = lambda + n;
	if (!moments)
		return gt_fail_memory(err, 2 * square * sizeof *moments);
	m.sum = moments;
	m.patch = patch;
	enum gt_code code = gt_session_each_sample(s, GT_TRAIN, 0, samples, add_image, &m, err);
	if (code != GT_OK) {
		free(moments);
		return code;
	}
	double count = (double)samples * (double)((m.h - kh + 1) * (m.w - kw + 1));
	for (int i = 0; i < n; i++)
		for (int k = i; k < n; k++)
			moments[k * n + i] = moments[i * n + k] /= count;
	solve_symmetric(moments, n, lambda, v);
	for (int64_t i = 0; i < out / 2; i++)
		for (int k = 0; k < n; k++) {
			double l = lambda[first + i] > 0 ? lambda[first + i] : 0, w = v[(first + i) * n + k] / sqrt(l + p->init_eps);
			((float *)plain)[i * n + k] = (float)w;
			((float *)plain)[(out / 2 + i) * n + k] = (float)-w;
		}
	free(moments);
	return GT_OK;
}
