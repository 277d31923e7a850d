/* How far one step of two runs is apart that began with the same weights and moments.
 *   tool_step [-u LIMIT] [-m LIMIT] BEFORE AFTER OTHER
 * BEFORE: the checkpoint that both began with ("-": none, both began anew); AFTER, OTHER: what each made of it. Prints one line:
 *   update=WORST:NAME moments=WORST:NAME all=WHOLE: tensors=N
 * update: of a tensor of the model, the 2-norm of the difference of the two changes over that of the change. What both must round away,
 * half a last bit of f32 of every element before and after, is taken off first: a small change of a large weight has few digits. Without
 * BEFORE, the difference over the tensor itself. moments: the difference of an optimizer's state over the state, gradients among them: the
 * first momentum of SGD, and momentum * before + gradient later.
 * all: the same of the moments of all tensors as one vector.
 *   -u, -m    status 1 if updates, moments part by more. A tensor that only one of the runs has changed is infinitely far. */
#include "store/safetensors.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct worst {
	double d;
	char at[200];
	double size, off; /* of all tensors: sums of squares */
};

static void die(const char *what, const char *why)
{
	printf("%s: %s\n", what, why);
	exit(2);
}

static struct gt_st_file *open_one(const char *dir, const char *name)
{
	char path[4300];
	struct gt_st_file *f;
	struct gt_err err = {0};
	snprintf(path, sizeof path, "%s/%s", dir, name);
	if (gt_st_open(path, &f, &err) != GT_OK)
		die(path, err.msg);
	return f;
}

/* What of a tensor changes by steps: floating point; num_batches_tracked must be equal. */
static const float *floats(const struct gt_st_tensor *t)
{
	if (t->desc.dtype != GT_F32)
		die(t->name, "has a type that is not read here");
	return t->data;
}

static void compare(const char *name, const char *const dir[3], bool changes, struct worst *w, int *n)
{
	struct gt_st_file *f[3] = {changes ? open_one(dir[0], name) : NULL, open_one(dir[1], name), open_one(dir[2], name)};
	if (gt_st_count(f[1]) != gt_st_count(f[2]))
		die(dir[2], "another number of tensors");
	for (int i = 0; i < gt_st_count(f[1]); i++) {
		const struct gt_st_tensor *x = gt_st_at(f[1], i), *y = gt_st_at(f[2], i), *b = changes ? gt_st_find(f[0], x->name) : x;
		double size = 0, off = 0, ulps = 0, d;
		if (!b || strcmp(x->name, y->name) || x->desc.dtype != y->desc.dtype || !gt_tdesc_same_shape(&x->desc, &y->desc))
			die(y->name, "another name, type or shape");
		if (x->desc.dtype == GT_I64) {
			if (memcmp(x->data, y->data, (size_t)gt_tdesc_count(&x->desc) * 8) != 0)
				die(x->name, "another number");
			continue;
		}
		const float *u = floats(x), *v = floats(y), *from = floats(b);
		for (int64_t k = 0; k < gt_tdesc_count(&x->desc); k++) {
			double a = u[k], o = v[k], base = changes ? from[k] : 0;
			size += (a - base) * (a - base);
			off += (a - o) * (a - o);
			ulps += fabs(a) > fabs(base) ? a * a : base * base;
		}
		w->size += size;
		w->off += off;
		off = isfinite(off) ? sqrt(off) - (changes ? 0x1p-23 * sqrt(ulps) : 0) : INFINITY;
		d = off > 0 ? off / sqrt(size) : 0;
		if (!(d <= w->d) || !*w->at) {
			w->d = d;
			snprintf(w->at, sizeof w->at, "%s", x->name);
		}
		++*n;
	}
	for (int i = 0; i < 3; i++)
		if (f[i])
			gt_st_close(f[i]);
}

int main(int argc, char **argv)
{
	struct worst update = {0}, moments = {0};
	double limit[2] = {INFINITY, INFINITY};
	int n = 0;
	for (int o; (o = getopt(argc, argv, "u:m:")) != -1;) {
		if (o != 'u' && o != 'm')
			die(argv[0], "see tool_step.c");
		limit[o == 'm'] = atof(optarg);
	}
	if (argc - optind != 3)
		die(argv[0], "expected three checkpoints");
	const char *const dir[3] = {argv[optind], argv[optind + 1], argv[optind + 2]};
	compare("model.safetensors", dir, strcmp(dir[0], "-") != 0, &update, &n);
	compare("optimizer.safetensors", dir, false, &moments, &n);
	printf("update=%.2e:%s moments=%.2e:%s all=%.2e: tensors=%d\n", update.d, update.at, moments.d, moments.at,
	       moments.off > 0 ? sqrt(moments.off / moments.size) : 0, n);
	return update.d > limit[0] || moments.d > limit[1];
}
