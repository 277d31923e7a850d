/* How the host waits for the device. With NCCL, queued work may wait for a rank that never arrives. So the host polls the stream, and the
 * watch of the communicator (struct gt_cuda_watch) ends the wait at the deadline. */
#include "base/clock.h"
#include "cuda/cuda_internal.h"
#include <time.h>

#define SPIN_S 0.002 /* seconds in which the host polls without a pause; most waits are shorter */
#define NAP_NS 50000 /* nanoseconds between two polls after SPIN_S */
#define LOOK_S 0.005 /* seconds between two calls of the watch functions */

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

static enum gt_code call_watchers(struct gt_dev *dev, double waited_s, struct gt_err *err)
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
			GT_TRY(call_watchers(dev, t - start, err));
			looked = t;
		}
		if (t - start > SPIN_S)
			nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
	}
}
