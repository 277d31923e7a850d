/* A launch on both devices. The order: copy the operands to the host, launch on the device, copy its results, run the twin on the copies,
 * compare, and write the results of the CPU to the device. */
#include "against/against_parts.h"
#include "base/arena.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DISTURBED 2 /* number of CPU runs with inputs changed by one rounding, before results of a call count as different */

/* Copies in host memory of the tensors of a call. The index is the number of the tensor (twin.h). */
struct copies {
	void *before[GT_TWIN_TENSORS]; /* before the launch */
	void *got[GT_TWIN_TENSORS];    /* results of the device */
	void *want[GT_TWIN_TENSORS];   /* all tensors of the CPU's calls: copies of the inputs, and the CPU's results */
};

static void free_copies(struct copies *c)
{
	for (int i = 0; i < GT_TWIN_TENSORS; i++) {
		free(c->before[i]);
		free(c->got[i]);
		free(c->want[i]);
	}
}

static void *address_of(const struct gt_launch *a, int tensor)
{
	return tensor < GT_MAX_IO ? a->in[tensor] : a->out[tensor - GT_MAX_IO];
}

/* Returns whether tensor t is an operand of this launch. */
static bool is_operand(const struct gt_kernel *k, const struct gt_launch *a, int t)
{
	int i = t % GT_MAX_IO, n = t < GT_MAX_IO ? k->nin : k->nout;
	return t < GT_TWIN_TEMPS && i < n && k->twin.tensor[t].bytes && address_of(a, t);
}

static const struct gt_operand *operand_of(const struct gt_kernel *k, int t)
{
	return t < GT_MAX_IO ? gt_opsig_input(&k->sig, t) : gt_opsig_output(&k->sig, t - GT_MAX_IO);
}

/* Returns whether the call writes tensor t: an output, or an input that it updates. */
static bool is_result(const struct gt_kernel *k, int t)
{
	return t >= GT_MAX_IO || operand_of(k, t)->updated;
}

static enum gt_code fetch_tensor(struct gt_dev *w, const void *from, size_t bytes, int stream, void **out, struct gt_err *err)
{
	if (!(*out = gt_twin_alloc(bytes)))
		return gt_fail_memory(err, bytes);
	if (!w->be->host_memory)
		return w->be->copy(w->dev, *out, from, bytes, GT_COPY_D2H, stream, err);
	memcpy(*out, from, bytes);
	return GT_OK;
}

static enum gt_code store_tensor(struct gt_dev *w, void *to, const void *from, size_t bytes, int stream, struct gt_err *err)
{
	if (!w->be->host_memory)
		return w->be->copy(w->dev, to, from, bytes, GT_COPY_H2D, stream, err);
	memcpy(to, from, bytes);
	return GT_OK;
}

/* Copies the step arguments of a launch, which are in host memory or in device memory. */
static enum gt_code fetch_step_args(struct gt_dev *w, const struct gt_launch *a, struct gt_step_args *out, struct gt_err *err)
{
	const char *p = (const char *)a->step_args;
	*out = (struct gt_step_args){0};
	if (!p)
		return GT_OK;
	for (int i = 0; i < w->nblocks && !w->be->host_memory; i++)
		if (p >= w->block[i].p && p < w->block[i].p + w->block[i].bytes)
			return w->be->copy(w->dev, out, p, sizeof *out, GT_COPY_D2H, a->stream, err);
	*out = *a->step_args;
	return GT_OK;
}

/* For a `check` call: sets step_args.left to 0, so that the CPU's kernel changes only the step arguments of this micro-batch. Those of
 * later micro-batches follow in memory on the device, but are not in the copy. */
static void limit_step_args(const struct gt_kernel *k, void *const *memory)
{
	for (int t = 0; t < k->nin && k->code == GT_OP_CHECK; t++)
		if (memory[t] && !strcmp(operand_of(k, t)->name, "numbers"))
			((struct gt_step_args *)memory[t])->left = 0;
}

static void restore_step_args(const struct gt_kernel *k, const struct copies *c, void *const *memory)
{
	for (int t = 0; t < k->nin && k->code == GT_OP_CHECK; t++)
		if (memory[t] && !strcmp(operand_of(k, t)->name, "numbers"))
			((struct gt_step_args *)memory[t])->left = ((const struct gt_step_args *)c->before[t])->left;
}

/* Runs the twin, the same call on the CPU, on copies of the tensors from before the launch. disturb: if not 0, the seed with which
 * gt_judge_disturb changes each element of the inputs by one rounding. */
static enum gt_code run_twin(const struct gt_kernel *k, const struct copies *c, void **memory, uint32_t disturb,
                             const struct gt_step_args *step_args, int stream, struct gt_err *err)
{
	for (int t = 0; t < GT_TWIN_TENSORS; t++) {
		size_t bytes = k->twin.tensor[t].bytes;
		if (t < GT_TWIN_TEMPS ? !c->before[t] : !bytes)
			continue;
		if (!memory[t] && !(memory[t] = gt_twin_alloc(bytes)))
			return gt_fail_memory(err, bytes);
		if (c->before[t])
			memcpy(memory[t], c->before[t], bytes);
		if (disturb && t < GT_MAX_IO)
			gt_judge_disturb(&k->twin.tensor[t].desc, memory[t], disturb * 2654435761u + (uint32_t)t);
	}
	limit_step_args(k, memory);
	GT_TRY(gt_twin_run(&k->twin, memory, step_args, stream, err));
	restore_step_args(k, c, memory);
	return GT_OK;
}

/* ---- masks -------------------------------------------------------------------------------------------------------------------------- */
/* Stores a copy of the tensor from which the device has computed a mask, for the later call that reads the mask. A later mask at the same
 * device address replaces it. */
static enum gt_code keep_masked(struct gt_dev *w, const void *mask, const void *values, size_t bytes, struct gt_err *err)
{
	int i = 0;
	while (i < w->nmasks && w->mask[i].mask != mask)
		i++;
	if (i == w->nmasks) {
		struct gt_against_mask *grown = realloc(w->mask, (size_t)(i + 1) * sizeof *grown);
		if (!grown)
			return gt_fail_memory(err, 0);
		w->mask = grown;
		w->mask[w->nmasks++] = (struct gt_against_mask){.mask = mask};
	}
	void *copy = gt_twin_alloc(bytes);
	if (!copy)
		return gt_fail_memory(err, bytes);
	free(w->mask[i].values);
	w->mask[i].values = memcpy(copy, values, bytes);
	w->mask[i].bytes = bytes;
	return GT_OK;
}

/* Sets *out to a copy of the tensor from which the device has computed the mask at device address `mask`. */
static enum gt_code find_masked(const struct gt_dev *w, const void *mask, size_t bytes, void **out, struct gt_err *err)
{
	for (int i = 0; i < w->nmasks; i++)
		if (w->mask[i].mask == mask && w->mask[i].bytes == bytes) {
			if (!(*out = gt_twin_alloc(bytes)))
				return gt_fail_memory(err, bytes);
			memcpy(*out, w->mask[i].values, bytes);
			return GT_OK;
		}
	return gt_fail(err, GT_EINTERNAL, "a call reads a mask at %p that no earlier call has written", mask);
}

/* If the launch has written a mask, stores the device's values of the tensor from which it has computed the mask. */
static enum gt_code note_mask(struct gt_dev *w, const struct gt_kernel *k, const struct gt_launch *a, const struct copies *c,
                              struct gt_err *err)
{
	int mask = k->twin.mask, masked = k->twin.masked;
	if (mask < GT_MAX_IO || !c->got[masked])
		return GT_OK;
	return keep_masked(w, address_of(a, mask), c->got[masked], k->twin.tensor[masked].bytes, err);
}

/* Sets *out to the largest change of tensor t on the CPU if each element of the inputs is replaced by an adjacent floating-point number. */
static enum gt_code measure_sensitivity(const struct gt_kernel *k, const struct copies *c, int t, const struct gt_step_args *step_args,
                                        int stream, double *out, struct gt_err *err)
{
	enum gt_code code = GT_OK;
	*out = 0;
	for (uint32_t i = 1; i <= DISTURBED && code == GT_OK; i++) {
		void *memory[GT_TWIN_TENSORS] = {0};
		code = run_twin(k, c, memory, i, step_args, stream, err);
		double moved = code == GT_OK ? gt_judge_distance(&k->twin.tensor[t].desc, memory[t], c->want[t]) : 0;
		*out = moved > *out ? moved : *out;
		for (int m = 0; m < GT_TWIN_TENSORS; m++)
			free(memory[m]);
	}
	return code;
}

/* Raises the tolerance of tensor t if rounding of the inputs explains a difference above it: when the terms of a sum cancel, or when the
 * call compares values that are almost equal. */
static enum gt_code explain_difference(const struct gt_kernel *k, const struct copies *c, int t, const struct gt_step_args *step_args,
                                       int stream, struct gt_verdict *v, struct gt_err *err)
{
	double sensitivity, factor = gt_judge_roundings(&k->judge, &k->twin.tensor[t].desc);
	GT_TRY(measure_sensitivity(k, c, t, step_args, stream, &sensitivity, err));
	double allowed = factor * sensitivity;
	if (allowed > v->allowed && isfinite(v->worst) && v->worst <= allowed) {
		v->share = v->worst / allowed;
		v->allowed = allowed;
	}
	return GT_OK;
}

/* Compares all results of the call, and sets *result to the one with the largest difference in units of its tolerance. */
static enum gt_code judge_results(const struct gt_kernel *k, const struct copies *c, const struct gt_step_args *step_args, int stream,
                                  struct gt_finding *result, struct gt_err *err)
{
	*result = (struct gt_finding){.operand = "", .desc = &k->twin.tensor[0].desc, .verdict = {.at = -1}};
	for (int t = 0; t < GT_TWIN_TEMPS; t++) {
		if (!c->got[t] || k->twin.opaque[t])
			continue;
		const struct gt_operand *o = operand_of(k, t);
		const struct gt_tdesc *d = &k->twin.tensor[t].desc;
		bool metrics = !strcmp(o->name, "metrics");
		struct gt_verdict v = gt_judge_tensor(&k->judge, d, metrics, c->got[t], c->want[t]);
		if (v.share > 1 && !metrics)
			GT_TRY(explain_difference(k, c, t, step_args, stream, &v, err));
		if (v.at >= 0 && (result->verdict.at < 0 || v.share > result->verdict.share))
			*result = (struct gt_finding){.operand = o->name, .desc = d, .verdict = v};
	}
	return GT_OK;
}

static enum gt_code launch_on_device(struct gt_dev *w, const struct gt_kernel *k, const struct gt_launch *a, struct gt_err *err)
{
	return w->be->launch(w->dev, k->kernel, a, err);
}

/* Copies the operands before the launch, launches, and copies the results. */
static enum gt_code launch_and_fetch(struct gt_dev *w, const struct gt_kernel *k, const struct gt_launch *a, struct copies *c,
                                     struct gt_err *err)
{
	for (int t = 0; t < GT_TWIN_TEMPS; t++)
		if (is_operand(k, a, t))
			GT_TRY(fetch_tensor(w, address_of(a, t), k->twin.tensor[t].bytes, a->stream, &c->before[t], err));
	int mask = k->twin.mask, masked = k->twin.masked;
	if (mask >= 0 && mask < GT_MAX_IO)
		GT_TRY(find_masked(w, address_of(a, mask), k->twin.tensor[masked].bytes, &c->before[masked], err));
	GT_TRY(launch_on_device(w, k, a, err));
	for (int t = 0; t < GT_TWIN_TEMPS; t++)
		if (c->before[t] && is_result(k, t))
			GT_TRY(fetch_tensor(w, address_of(a, t), k->twin.tensor[t].bytes, a->stream, &c->got[t], err));
	return GT_OK;
}

/* Overwrites the device's results by the CPU's, so that later calls have the CPU's values as their inputs. */
static enum gt_code replace_results(struct gt_dev *w, const struct gt_kernel *k, const struct gt_launch *a, const struct copies *c,
                                    struct gt_err *err)
{
	for (int t = 0; t < GT_TWIN_TEMPS; t++) {
		size_t bytes = k->twin.tensor[t].bytes;
		if (c->got[t] && !k->twin.opaque[t] && memcmp(c->got[t], c->want[t], bytes) != 0)
			GT_TRY(store_tensor(w, address_of(a, t), c->want[t], bytes, a->stream, err));
	}
	return GT_OK;
}

static enum gt_code compare_launch(struct gt_dev *w, struct gt_kernel *k, const struct gt_launch *a, struct copies *c, struct gt_err *err)
{
	struct gt_step_args step_args;
	struct gt_finding result;
	int stream = w->be->host_memory ? a->stream : 0;
	GT_TRY(fetch_step_args(w, a, &step_args, err));
	GT_TRY(launch_and_fetch(w, k, a, c, err));
	GT_TRY(note_mask(w, k, a, c, err));
	GT_TRY(run_twin(k, c, c->want, 0, &step_args, stream, err));
	GT_TRY(judge_results(k, c, &step_args, stream, &result, err));
	GT_TRY(gt_findings_add(w->findings, &k->name, step_args.step, &result, err));
	return replace_results(w, k, a, c, err);
}

/* For gt_against_spec.disturb: launches on the device only, and then changes each element of the results by one rounding. */
static enum gt_code launch_disturbed(struct gt_dev *w, const struct gt_kernel *k, const struct gt_launch *a, struct gt_err *err)
{
	GT_TRY(launch_on_device(w, k, a, err));
	w->seed = w->seed * 1664525u + 1013904223u;
	for (int t = 0; t < GT_TWIN_TEMPS; t++)
		if (is_operand(k, a, t) && is_result(k, t))
			gt_judge_disturb(&k->twin.tensor[t].desc, address_of(a, t), w->seed + (uint32_t)t + 1);
	return GT_OK;
}

enum gt_code gt_against_launch(struct gt_dev *w, struct gt_kernel *k, const struct gt_launch *a, struct gt_err *err)
{
	struct copies c = {0};
	if (w->spec.disturb)
		return launch_disturbed(w, k, a, err);
	if (!k->twin.ncalls) {
		GT_TRY(gt_findings_skip(w->findings, &k->name, k->why, err));
		return launch_on_device(w, k, a, err);
	}
	enum gt_code code = compare_launch(w, k, a, &c, err);
	free_copies(&c);
	return code;
}
