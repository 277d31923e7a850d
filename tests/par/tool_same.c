/* How far two runs are from each other: their loss curves, and the tensors of their last checkpoints.
 *   tool_same [-b] [-z SHARE] [-l LIMIT] [-w LIMIT] [-m LIMIT] [-f STEP] DIR DIR
 * prints one line: loss=WORST@STEP steps=N weights=WORST:NAME moments=WORST:NAME tensors=N. Worst: of the losses the relative difference,
 * of a tensor the largest absolute one over its largest element. Two runs must have the same steps, and the same tensors with the same
 * types and shapes in the same order: a checkpoint does not tell who wrote it.
 *   -b          leave running statistics out: modes that normalise by parts of the batch keep others
 *   -z SHARE    the largest element of a tensor counts as at least SHARE of the largest one of all weights, or of all moments of its kind
 *               (of squares: SHARE times SHARE): for nets in which the gradient of a whole tensor is zero but for rounding
 *   -l, -w, -m  status 1 if the losses, the weights, the optimizer's moments differ by more
 *   -f STEP     losses from this step on: a run that was resumed has two lines for none */
#include "store/safetensors.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STEPS 100000

struct worst {
	double d;
	char at[200];
};

static void die(const char *what, const char *why)
{
	printf("%s: %s\n", what, why);
	exit(2);
}

/* NaN where there is no line; an infinite loss is written as null, which no number equals. */
static int read_losses(const char *dir, double *loss)
{
	char path[4200], line[4096];
	int last = 0;
	for (int i = 0; i < STEPS; i++)
		loss[i] = NAN;
	snprintf(path, sizeof path, "%s/metrics.jsonl", dir);
	FILE *f = fopen(path, "r");
	if (!f)
		die(path, "cannot be read");
	while (fgets(line, sizeof line, f)) {
		const char *s = strstr(line, "\"step\":"), *l = strstr(line, "\"loss\":");
		if (!strstr(line, "\"event\":\"train\"") || !s || !l)
			continue;
		int step = atoi(s + 7);
		if (step < 1 || step >= STEPS)
			die(path, "a step out of range");
		loss[step] = strncmp(l + 7, "null", 4) ? atof(l + 7) : INFINITY;
		last = step > last ? step : last;
	}
	fclose(f);
	return last;
}

static double element(const struct gt_st_tensor *t, size_t i)
{
	switch (t->desc.dtype) {
	case GT_F32:
		return ((const float *)t->data)[i];
	case GT_F64:
		return ((const double *)t->data)[i];
	case GT_I64:
		return (double)((const int64_t *)t->data)[i];
	default:
		die(t->name, "has a type that is not read here");
		return 0;
	}
}

static bool is_buffer(const char *name)
{
	return strstr(name, "running_") || strstr(name, "num_batches_tracked");
}

static double largest(const struct gt_st_tensor *t)
{
	double max = 0;
	for (int64_t k = 0; k < gt_tdesc_count(&t->desc); k++)
		max = fabs(element(t, (size_t)k)) > max ? fabs(element(t, (size_t)k)) : max;
	return max;
}

/* The largest element of all weights, or of all moments whose names begin with the same word. */
static double largest_of_kind(const struct gt_st_file *f, const char *name, bool moments)
{
	double max = 0;
	for (int i = 0; i < gt_st_count(f); i++) {
		const struct gt_st_tensor *t = gt_st_at(f, i);
		if (!is_buffer(t->name) && (!moments || !strncmp(t->name, name, strcspn(name, ".") + 1)))
			max = fmax(max, largest(t));
	}
	return max;
}

static void compare(bool moments, const char *a, const char *b, bool skip_buffers, double share, struct worst *w, int *n)
{
	char path[2][4300];
	struct gt_st_file *f[2];
	struct gt_err err = {0};
	snprintf(path[0], sizeof path[0], "%s/latest/%s.safetensors", a, moments ? "optimizer" : "model");
	snprintf(path[1], sizeof path[1], "%s/latest/%s.safetensors", b, moments ? "optimizer" : "model");
	if (access(path[0], F_OK) && access(path[1], F_OK)) /* an optimizer without states */
		return;
	for (int i = 0; i < 2; i++)
		if (gt_st_open(path[i], &f[i], &err) != GT_OK)
			die(path[i], err.msg);
	if (gt_st_count(f[0]) != gt_st_count(f[1]))
		die(path[1], "another number of tensors");
	for (int i = 0; i < gt_st_count(f[0]); i++) {
		const struct gt_st_tensor *x = gt_st_at(f[0], i), *y = gt_st_at(f[1], i);
		double scale, d = 0;
		if (strcmp(x->name, y->name) || x->desc.dtype != y->desc.dtype || !gt_tdesc_same_shape(&x->desc, &y->desc))
			die(y->name, "another name, type or shape");
		if (skip_buffers && is_buffer(x->name))
			continue;
		scale = largest(x);
		if (share > 0) {
			bool squares = moments && (!strncmp(x->name, "exp_avg_sq.", 11) || !strncmp(x->name, "square_avg.", 11));
			scale = fmax(scale, (squares ? share * share : share) * largest_of_kind(f[0], x->name, moments));
		}
		for (int64_t k = 0; k < gt_tdesc_count(&x->desc); k++) {
			double u = element(x, (size_t)k), v = element(y, (size_t)k);
			d = fabs(u - v) <= d ? d : isnan(u - v) ? INFINITY : fabs(u - v);
		}
		d = d > 0 ? d / (scale > 0 ? scale : 1) : 0;
		if (d > w->d || !*w->at) {
			w->d = d;
			snprintf(w->at, sizeof w->at, "%s", x->name);
		}
		++*n;
	}
	for (int i = 0; i < 2; i++)
		gt_st_close(f[i]);
}

int main(int argc, char **argv)
{
	static double loss[2][STEPS];
	struct worst weights = {0}, moments = {0};
	double limit[3] = {INFINITY, INFINITY, INFINITY}, worst = 0, share = 0;
	int n = 0, at = 0, from = 1;
	bool skip_buffers = false;
	for (int o; (o = getopt(argc, argv, "bz:l:w:m:f:")) != -1;) {
		if (o == 'b')
			skip_buffers = true;
		else if (o == 'f')
			from = atoi(optarg);
		else if (o == 'z')
			share = atof(optarg);
		else if (o == 'l' || o == 'w' || o == 'm')
			limit[o == 'l' ? 0 : o == 'w' ? 1 : 2] = atof(optarg);
		else
			die(argv[0], "see tool_same.c");
	}
	if (argc - optind != 2)
		die(argv[0], "expected two folders");
	const char *a = argv[optind], *b = argv[optind + 1];
	int steps = read_losses(a, loss[0]);
	if (read_losses(b, loss[1]) != steps || !steps)
		die(b, "another number of steps, or none");
	for (int i = from; i <= steps; i++) {
		double a_loss = loss[0][i], b_loss = loss[1][i]; /* 0 if all labels of a batch are ignored */
		double d = a_loss == b_loss && isfinite(a_loss) ? 0 : fabs(a_loss - b_loss) / fabs(a_loss);
		if (!(d <= worst)) {
			worst = isnan(d) ? INFINITY : d;
			at = i;
		}
	}
	compare(false, a, b, skip_buffers, share, &weights, &n);
	compare(true, a, b, false, share, &moments, &n);
	if (!n)
		die(b, "no tensor was compared");
	printf("loss=%.2e@%d steps=%d weights=%.2e:%s moments=%.2e:%s tensors=%d\n", worst, at, steps, weights.d, weights.at, moments.d,
	       moments.at, n);
	return worst > limit[0] || weights.d > limit[1] || moments.d > limit[2];
}
