/* Events, with which one stream waits for another, and CUDA graphs, which record a list of launches once and replay it. */
#include "cuda/cuda_internal.h"
#include <stdlib.h>

static enum gt_code event_of(struct gt_dev *dev, int event, cudaEvent_t *out, struct gt_err *err)
{
	if (event < 0 || event >= GT_EVENTS)
		return gt_fail(err, GT_EINTERNAL, "%s: event %d does not exist", dev->id, event);
	if (!dev->event[event])
		GT_CUDA(dev, cudaEventCreateWithFlags(&dev->event[event], cudaEventDisableTiming), "cudaEventCreateWithFlags", err);
	*out = dev->event[event];
	return GT_OK;
}

enum gt_code gt_cuda_record(struct gt_dev *dev, int event, int stream, struct gt_err *err)
{
	cudaStream_t s;
	cudaEvent_t e;
	GT_TRY(gt_cuda_stream(dev, stream, &s, err));
	GT_TRY(event_of(dev, event, &e, err));
	GT_CUDA(dev, cudaEventRecord(e, s), "cudaEventRecord", err);
	return GT_OK;
}

enum gt_code gt_cuda_wait_event(struct gt_dev *dev, int event, int stream, struct gt_err *err)
{
	cudaStream_t s;
	cudaEvent_t e;
	GT_TRY(gt_cuda_stream(dev, stream, &s, err));
	GT_TRY(event_of(dev, event, &e, err));
	GT_CUDA(dev, cudaStreamWaitEvent(s, e, 0), "cudaStreamWaitEvent", err);
	return GT_OK;
}

enum gt_code gt_cuda_mark(struct gt_dev *dev, int mark, int stream, struct gt_err *err)
{
	cudaStream_t s;
	if (mark < 0 || mark >= GT_MARKS || dev->capturing)
		return gt_fail(err, GT_EINTERNAL, "%s: timing mark %d does not exist, or a graph is being captured", dev->id, mark);
	GT_TRY(gt_cuda_stream(dev, stream, &s, err));
	if (!dev->mark[mark])
		GT_CUDA(dev, cudaEventCreateWithFlags(&dev->mark[mark], cudaEventDefault), "cudaEventCreateWithFlags", err);
	GT_CUDA(dev, cudaEventRecord(dev->mark[mark], s), "cudaEventRecord", err);
	return GT_OK;
}

enum gt_code gt_cuda_elapsed(struct gt_dev *dev, int from, int to, double *seconds, struct gt_err *err)
{
	float ms;
	if (from < 0 || to < 0 || from >= GT_MARKS || to >= GT_MARKS || !dev->mark[from] || !dev->mark[to])
		return gt_fail(err, GT_EINTERNAL, "%s: timing mark %d or %d does not exist", dev->id, from, to);
	GT_TRY(gt_cuda_use(dev, err));
	GT_TRY(gt_cuda_finish(dev, NULL, dev->mark[to], err));
	GT_CUDA(dev, cudaEventElapsedTime(&ms, dev->mark[from], dev->mark[to]), "cudaEventElapsedTime", err);
	*seconds = 1e-3 * (double)ms;
	return GT_OK;
}

/* Begins to capture stream 0. Work on another stream is captured from the time when this stream waits for an event of stream 0 until stream
 * 0 waits for an event of this stream. */
enum gt_code gt_cuda_capture_begin(struct gt_dev *dev, struct gt_err *err)
{
	if (dev->capturing)
		return gt_fail(err, GT_EINTERNAL, "%s: cannot start a capture while another graph is being captured", dev->id);
	GT_TRY(gt_cuda_use(dev, err));
	GT_CUDA(dev, cudaStreamBeginCapture(dev->stream[0], cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture", err);
	dev->capturing = true;
	return GT_OK;
}

enum gt_code gt_cuda_capture_end(struct gt_dev *dev, void **graph, struct gt_err *err)
{
	cudaGraph_t g = NULL;
	struct gt_cuda_graph *n;
	*graph = NULL;
	if (!dev->capturing)
		return gt_fail(err, GT_EINTERNAL, "%s: no graph is being captured", dev->id);
	dev->capturing = false;
	GT_TRY(gt_cuda_use(dev, err));
	GT_CUDA(dev, cudaStreamEndCapture(dev->stream[0], &g), "cudaStreamEndCapture", err);
	if (!(n = calloc(1, sizeof *n))) {
		cudaGraphDestroy(g);
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", sizeof *n);
	}
	/* With this flag, each kernel of the graph keeps the priority of the stream on which it was captured (gt_cuda_stream). */
	cudaError_t e = cudaGraphInstantiateWithFlags(&n->exec, g, cudaGraphInstantiateFlagUseNodePriority);
	cudaGraphDestroy(g);
	if (e != cudaSuccess) {
		free(n);
		return gt_cuda_fail(dev, e, "cudaGraphInstantiateWithFlags", err);
	}
	n->next = dev->graph;
	dev->graph = n;
	*graph = n;
	return GT_OK;
}

enum gt_code gt_cuda_replay(struct gt_dev *dev, void *graph, struct gt_err *err)
{
	const struct gt_cuda_graph *g = graph;
	if (!g->exec)
		return gt_fail(err, GT_EINTERNAL, "%s: the graph was destroyed together with its communication groups", dev->id);
	GT_TRY(gt_cuda_use(dev, err));
	GT_CUDA(dev, cudaGraphLaunch(g->exec, dev->stream[0]), "cudaGraphLaunch", err);
	return GT_OK;
}

static void destroy_graph(struct gt_cuda_graph *g)
{
	if (g->exec)
		cudaGraphExecDestroy(g->exec);
	g->exec = NULL;
}

void gt_cuda_graph_free(struct gt_dev *dev, void *graph)
{
	struct gt_cuda_graph **at = &dev->graph;
	if (!graph)
		return;
	cudaSetDevice(dev->index);
	while (*at != graph)
		at = &(*at)->next;
	*at = (*at)->next;
	destroy_graph(graph);
	free(graph);
}

void gt_cuda_drop_graphs(struct gt_dev *dev)
{
	cudaGraph_t g = NULL;
	cudaSetDevice(dev->index);
	if (dev->capturing && cudaStreamEndCapture(dev->stream[0], &g) == cudaSuccess)
		cudaGraphDestroy(g);
	dev->capturing = false;
	for (struct gt_cuda_graph *at = dev->graph; at; at = at->next)
		destroy_graph(at);
}
