/* Trials of candidate plans on the device: tests whether they run, and finds the fastest. Every plan runs once before it is used, because
 * CUDA loads a kernel at its first run, which is not allowed while a stream is captured into a graph. */
#include "cuda/cudnn_plan.h"
#include "base/clock.h"
#include <string.h>

/* ---- timing ------------------------------------------------------------------------------------------------------------------------- */
struct trial {
	struct gt_dev *dev;
	cudaStream_t stream;
	cudaEvent_t event[2];
	struct gt_dnn_pack pack; /* variant pack of the plan that is tried */
	void *at[GT_DNN_TENSORS], *workspace;
};

/* Measures n runs of a plan. *us receives the microseconds of one run. */
static enum gt_code time_runs(struct trial *w, struct gt_dnn_plan *p, int n, double *us, struct gt_err *err)
{
	float ms;
	GT_CUDA(w->dev, cudaEventRecord(w->event[0], w->stream), "cudaEventRecord", err);
	for (int i = 0; i < n; i++)
		GT_TRY(gt_dnn_plan_run(w->dev, p, &w->pack, w->at, w->workspace, w->stream, err));
	GT_CUDA(w->dev, cudaEventRecord(w->event[1], w->stream), "cudaEventRecord", err);
	GT_CUDA(w->dev, cudaStreamSynchronize(w->stream), "cudaStreamSynchronize", err);
	GT_CUDA(w->dev, cudaEventElapsedTime(&ms, w->event[0], w->event[1]), "cudaEventElapsedTime", err);
	*us = (double)ms * 1000 / n;
	return GT_OK;
}

/* Measures a plan: runs it once to load the kernel, then takes the fastest of three groups of runs. If a single run takes more than twice
 * as long as the best plan so far, it measures no groups. */
static enum gt_code time_plan(struct trial *w, struct gt_dnn_plan *p, double best, double *us, struct gt_err *err)
{
	double t;
	GT_TRY(time_runs(w, p, 1, &t, err));
	GT_TRY(time_runs(w, p, 1, us, err));
	int n = *us > 0 ? (int)(1000 / *us) : 10; /* a group has so many runs that it takes about a millisecond */
	n = n < 1 ? 1 : n > 20 ? 20 : n;
	for (int i = 0; i < 3 && !(best > 0 && *us > 2 * best); i++) {
		GT_TRY(time_runs(w, p, n, &t, err));
		*us = t < *us ? t : *us;
	}
	return GT_OK;
}

/* Runs the choices one after the other and removes those that fail. Without timing, it stops at the first choice that runs. */
static enum gt_code run_all(struct trial *w, const struct gt_dnn_call *c, struct gt_dnn_choice *choice, int *n, bool timed,
                            struct gt_err *err)
{
	struct gt_err why = {0};
	double best = 0, us = 0;
	int kept = 0;
	for (int i = 0; i < *n && (timed || !kept); i++) {
		struct gt_dnn_plan p = {.set.dnn = w->dev->dnn};
		c->build(&p, c->shape);
		bool ran = gt_dnn_realize(w->dev, &p, c, &choice[i], true) == GT_DNN_FINE &&
		           (timed ? time_plan(w, &p, best, &us, &why)
		                  : gt_dnn_plan_run(w->dev, &p, &w->pack, w->at, w->workspace, w->stream, &why)) == GT_OK;
		/* A fault of the device persists and would be reported by an unrelated call later, so it is reported here. */
		cudaError_t e = cudaStreamSynchronize(w->stream);
		gt_dnn_pack_drop(&w->pack);
		gt_dnn_plan_drop(&p);
		GT_CUDA(w->dev, e, "trying a plan of cuDNN", err);
		if (!ran)
			continue;
		choice[kept] = choice[i];
		choice[kept].ran = true;
		if (timed)
			choice[kept].us = us > 0.1 ? us : 0.1; /* not 0, which means that the plan was not measured */
		if (timed && (best == 0 || us < best))
			best = us;
		kept++;
	}
	*n = kept;
	return kept ? GT_OK : gt_fail(err, GT_EUNAVAILABLE, "%s", why.msg);
}

#define WAKE_S 0.03 /* seconds of work after which a device has left its idle clock (H200: 345 MHz, a sixth of the full clock) */

/* Fills the n elements of the operands. Products of zeros take less power than products of other values, so the card's clock could rise: a
 * trial with zeros would measure a speed that training does not reach. The first call repeats the fill until the card has left its idle
 * clock. */
static cudaError_t fill_operands(struct trial *w, enum gt_dtype type, void *memory, int64_t n)
{
	double start = gt_clock();
	cudaError_t e;
	do {
		e = gt_cu_noise_start(gt_cuda_type(type), memory, n, 1, w->stream);
		if (e == cudaSuccess && !w->dev->dnn->awake)
			e = cudaStreamSynchronize(w->stream);
	} while (e == cudaSuccess && !w->dev->dnn->awake && gt_clock() - start < WAKE_S);
	w->dev->dnn->awake = true;
	return e;
}

static size_t round_up(size_t bytes)
{
	return (bytes + 255) / 256 * 256;
}

enum gt_code gt_dnn_try(struct gt_dev *dev, const struct gt_dnn_call *c, struct gt_dnn_choice *choice, int *n, bool timed,
                        struct gt_err *err)
{
	struct trial w = {.dev = dev};
	size_t operands = 0, workspace = 0, offset = 0;
	void *memory = NULL;
	cudaError_t e = cudaSuccess;
	if (!dev->dnn->handle || dev->capturing)
		return GT_OK;
	for (int i = 0; i < *n; i++)
		workspace = choice[i].workspace > workspace ? choice[i].workspace : workspace;
	for (int i = 0; i < GT_DNN_TENSORS; i++)
		operands += round_up(c->bytes[i]);
	GT_TRY(gt_cuda_stream(dev, 0, &w.stream, err));
	if (gt_cuda_alloc(dev, operands + workspace, &memory, NULL) != GT_OK)
		return GT_OK; /* too little memory for a trial: the choices keep the heuristic's order */
	for (int i = 0; i < GT_DNN_TENSORS; offset += round_up(c->bytes[i++]))
		if (c->bytes[i])
			w.at[i] = (char *)memory + offset;
	w.workspace = (char *)memory + operands;
	if (timed)
		e = fill_operands(&w, c->type, memory, (int64_t)(operands / gt_dtype_size(c->type)));
	else
		e = cudaMemsetAsync(memory, 0, operands, w.stream); /* a kernel uses some operands as indices: lengths of samples */
	for (int i = 0; i < 2 && timed && e == cudaSuccess; i++)
		e = cudaEventCreateWithFlags(&w.event[i], cudaEventDefault);
	enum gt_code code = e == cudaSuccess ? run_all(&w, c, choice, n, timed, err) : gt_cuda_fail(dev, e, "cannot prepare the operands "
	                                                                                            "or events to time a plan", err);
	for (int i = 0; i < 2; i++)
		if (w.event[i])
			cudaEventDestroy(w.event[i]);
	gt_cuda_free(dev, memory);
	for (int i = 1; i < *n && timed && code == GT_OK; i++) /* the fastest choice moves to the front, the others keep their order */
		if (choice[i].us < choice[0].us) {
			struct gt_dnn_choice fastest = choice[i];
			memmove(choice + 1, choice, (size_t)i * sizeof *choice);
			choice[0] = fastest;
		}
	return code;
}
