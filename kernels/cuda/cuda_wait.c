/* The host waits for the device. Where ranks are joined by NCCL (struct gt_cuda_watch), work of a stream may wait for a rank that does not come:
 * then the host asks again and again, and the watch says when it has waited long enough. */
#include "base/clock.h"
#include "cuda/cuda_internal.h"
#include <time.h>

#define SPIN_S 0.002 /* asks without a pause; a window of steps is mostly done by then */
#define NAP_NS 50000 /* between two questions after it */
#define LOOK_S 0.005 /* between two looks at the watches */

void gt_cuda_watch(struct gt_dev *dev, struct gt_cuda_watch *w)
{
	w->next = dev->watch;
	dev->watch = w;
}

void gt_cuda_unwatch(struct gt_dev *dev, struct gt_cuda_watch *w)
{
	struct gt_cuda_watch **at = &dev->watch;
	while (*at && *at != w)
		at = &(*at)->next;
	if (*at)
		*at = w->next;
}

static enum gt_code look(struct gt_dev *dev, double waited_s, struct gt_err *err)
{
	for (struct gt_cuda_watch *w = dev->watch; w; w = w->next)
		GT_TRY(w->look(w->user, waited_s, err));
	return GT_OK;
}

enum gt_code gt_cuda_finish(struct gt_dev *dev, cudaStream_t s, cudaEvent_t e, struct gt_err *err)
{
	if (!dev->watch) {
		GT_CUDA(dev, e ? cudaEventSynchronize(e) : cudaStreamSynchronize(s), e ? "cudaEventSynchronize" : "cudaStreamSynchronize", err);
		return GT_OK;
	}
	double start = gt_clock(), looked = start, t = start;
	for (;; t = gt_clock()) {
		cudaError_t q = e ? cudaEventQuery(e) : cudaStreamQuery(s);
		if (q == cudaSuccess)
			return GT_OK;
		if (q != cudaErrorNotReady)
			return gt_cuda_fail(dev, q, e ? "cudaEventQuery" : "cudaStreamQuery", err);
		if (t - looked > LOOK_S) {
			GT_TRY(look(dev, t - start, err));
			looked = t;
		}
		if (t - start > SPIN_S)
			nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
	}
}
