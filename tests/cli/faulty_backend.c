/* A backend named cuda that computes with the backend cpu of $FAULTY_CPU, except that one element of the first f32 result of the operations
 * $FAULTY_OPS ("linear.dw,adam") is wrong by the largest magnitude of the tensor. It has no launch_list. With
 * $FAULTY_RUNS, operations are wrong only in a process without --against, as if the order of the work were wrong. */
#define _GNU_SOURCE
#include "backend.h"
#include "opsig.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gt_kernel {
	struct gt_kernel *real;
	bool wrong;
	bool in;   /* the first result is an operand that the operation updates: in[at] */
	int at;
	struct gt_tdesc d;
};

static const struct gt_backend *cpu;
extern struct gt_backend gt_backend_cuda;

static enum gt_code faulty_probe(struct gt_devinfo *out, int cap, int *n, struct gt_err *err)
{
	GT_TRY(cpu->probe(out, cap, n, err));
	if (cap > 0)
		snprintf(out[0].id, sizeof out[0].id, "cuda:0");
	return GT_OK;
}

/* Returns whether this process was started with --against. */
static bool is_compared(void)
{
	char text[65536];
	FILE *f = fopen("/proc/self/cmdline", "r");
	size_t n = f ? fread(text, 1, sizeof text, f) : 0;
	if (f)
		fclose(f);
	return memmem(text, n, "--against", strlen("--against")) != NULL;
}

/* Returns whether the list $FAULTY_OPS has the operation. */
static bool is_faulty(enum gt_opcode code)
{
	if (getenv("FAULTY_RUNS") && is_compared())
		return false;
	const char *list = getenv("FAULTY_OPS"), *name = gt_opcode_name(code);
	size_t n = strlen(name);
	for (const char *p = list ? list : ""; *p; p += strcspn(p, ","), p += *p == ',')
		if (strcspn(p, ",") == n && !strncmp(p, name, n))
			return true;
	return false;
}

static void find_result(struct gt_kernel *k, const struct gt_opcall *call)
{
	struct gt_opsig sig;
	gt_opsig_read(call->code, &sig);
	for (int i = 0; i < call->nout; i++)
		if (call->out[i] && call->out[i]->dtype == GT_F32) {
			k->at = i;
			k->d = *call->out[i];
			return;
		}
	for (int i = 0; i < call->nin; i++)
		if (call->in[i] && call->in[i]->dtype == GT_F32 && gt_opsig_input(&sig, i)->updated) {
			k->in = true;
			k->at = i;
			k->d = *call->in[i];
			return;
		}
	k->wrong = false;
}

static enum gt_code faulty_prepare(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	struct gt_kernel *real;
	GT_TRY(cpu->prepare(dev, call, &real, err));
	*out = calloc(1, sizeof **out);
	if (!*out)
		abort();
	(*out)->real = real;
	(*out)->wrong = is_faulty(call->code);
	if ((*out)->wrong)
		find_result(*out, call);
	return GT_OK;
}

static void faulty_release(struct gt_dev *dev, struct gt_kernel *k)
{
	cpu->release(dev, k->real);
	free(k);
}

static size_t faulty_scratch(const struct gt_kernel *k)
{
	return cpu->scratch(k->real);
}

static const char *faulty_describe(const struct gt_kernel *k)
{
	return k->wrong ? "faulty" : cpu->describe(k->real);
}

static enum gt_code faulty_launch(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *a, struct gt_err *err)
{
	float *p, most = 0;
	int64_t n = gt_tdesc_count(&k->d);
	GT_TRY(cpu->launch(dev, k->real, a, err));
	if (!k->wrong || !(p = (k->in ? a->in : a->out)[k->at]))
		return GT_OK;
	for (int64_t i = 0; i < n; i++)
		most = fmaxf(most, fabsf(p[i]));
	p[n / 2] += most;
	return GT_OK;
}

__attribute__((visibility("default"))) struct gt_backend gt_backend_cuda;

__attribute__((constructor)) static void open_cpu(void)
{
	void *lib = dlopen(getenv("FAULTY_CPU"), RTLD_NOW | RTLD_LOCAL);
	if (!lib || !(cpu = dlsym(lib, "gt_backend_cpu")))
		abort();
	gt_backend_cuda = *cpu;
	gt_backend_cuda.name = "cuda";
	gt_backend_cuda.probe = faulty_probe;
	gt_backend_cuda.prepare = faulty_prepare;
	gt_backend_cuda.release = faulty_release;
	gt_backend_cuda.scratch = faulty_scratch;
	gt_backend_cuda.describe = faulty_describe;
	gt_backend_cuda.launch = faulty_launch;
	gt_backend_cuda.launch_list = NULL;
}
