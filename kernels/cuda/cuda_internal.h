/* Internal header of the CUDA backend. There are three kinds of files:
 *   <family>.cu       a family of operations: its kernels, the functions that start them, and the checks of a call (GT_CU_FAMILY)
 *   cuda_<family>.c   prepare and launch of a family that needs a vendor library (plain C, no kernels); its kernels, if it has any, are in
 *                     <family>.cu, called through launch.h
 *   cuda.c            the functions of backend.h; cuda_dev.c has the device, memory, streams and events
 * Vendor libraries are loaded at run time, each as a table of functions: cuBLASLt with the device, cuDNN with the first call
 * that uses it.
 *
 *     backend.h: prepare, launch --> cuda.c: gt_cuda_family --> <family>.cu: kernel<<<...>>>
 *                         '--------> cuda_<family>.c ---------> launch.h: gt_cu_*_start --> <family>.cu: kernel<<<...>>>
 *                                            '----------------> cublaslt.h, cudnn_plan.h: vendor libraries */
#ifndef GT_KERNELS_CUDA_INTERNAL_H
#define GT_KERNELS_CUDA_INTERNAL_H

#include "backend.h"
#include "cuda/launch.h"
#include "opsig.h"
#include <cuda_runtime_api.h>

#define GT_CUDA_STREAMS 8 /* number of streams */

struct gt_lt;
struct gt_dnn;

struct gt_cuda_block { /* one allocation */
	char *p;
	size_t bytes;
};

/* A watcher of queued work that may wait for other ranks. While the host waits for a stream, it calls look() every few milliseconds with
 * the number of seconds that it has waited. If look() fails, the wait ends with that error. */
struct gt_cuda_watch {
	enum gt_code (*look)(void *user, double waited_s, struct gt_err *err);
	void *user;
	struct gt_cuda_watch *next;
};

struct gt_cuda_graph { /* a graph that capture_end() has returned */
	cudaGraphExec_t exec; /* NULL: gt_cuda_drop_graphs has destroyed it */
	struct gt_cuda_graph *next;
};

struct gt_dev {
	int index;
	char id[16];
	bool deterministic, tf32, winograd, autotune, cudnn_attention, capturing;
	bool lost;                            /* an error has occurred after which every CUDA call of the process fails */
	cudaStream_t stream[GT_CUDA_STREAMS]; /* created on first use */
	cudaEvent_t event[GT_EVENTS];         /* created on first use */
	cudaEvent_t mark[GT_MARKS];           /* events with timing; created on first use */
	struct gt_cu_fault *fault;            /* host memory in which kernels report faults */
	struct gt_cuda_block *block;          /* the allocations of alloc(), unordered */
	int nblocks, cap;
	struct gt_lt *lt;   /* cuBLASLt and its handle */
	struct gt_dnn *dnn; /* cuDNN; NULL before the first call that uses it */
	struct gt_cuda_graph *graph; /* list of all graphs that are not freed */
	struct gt_cuda_watch *watch; /* list of watchers; NULL: no work on this device waits for other ranks */
};

/* The first member of every kernel struct. A family allocates its own struct with calloc and fills this member. */
struct gt_kernel {
	enum gt_code (*launch)(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *a, cudaStream_t stream, struct gt_err *err);
	void (*release)(struct gt_dev *dev, struct gt_kernel *k); /* NULL: free(k) is enough */
	size_t scratch;       /* bytes of workspace */
	const char *describe; /* name of the implementation: static memory, or inside the kernel */
	int nin, nout;        /* number of inputs and of outputs of the call */
	void *counter;        /* counters of finished blocks, from gt_cuda_counters; freed with the kernel */
};

typedef enum gt_code gt_cuda_prepare(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err);
/* The families (opcall.h): a call of family F is prepared by gt_cuda_F, in f32, bf16 and f16. */
gt_cuda_prepare gt_cuda_none; /* refuses the call */
#define gt_cuda_linear_dw_update gt_cuda_none
#define gt_cuda_conv_pair gt_cuda_none
#define gt_cuda_embedding_update gt_cuda_embedding
#define GT_X(code, name, family, ...) gt_cuda_prepare gt_cuda_##family;
GT_OPCODES(GT_X)
#undef GT_X
gt_cuda_prepare gt_cuda_update, gt_cuda_muon;
gt_cuda_prepare gt_cuda_attention_tiles; /* attention by attention.cu; cuda_attention.c decides which calls cuDNN computes */

void gt_cuda_conv_close(struct gt_dev *dev); /* closes cuDNN if it is loaded */

/* ---- cuda_dev.c ----------------------------------------------------------------------------------------------------------- */
enum gt_code gt_cuda_probe(struct gt_devinfo *out, int cap, int *n, struct gt_err *err);
enum gt_code gt_cuda_open(const struct gt_dev_opts *opts, struct gt_dev **out, struct gt_err *err);
void gt_cuda_close(struct gt_dev *dev);
enum gt_code gt_cuda_use(struct gt_dev *dev, struct gt_err *err); /* selects dev as the calling thread's device */
/* Selects dev as the calling thread's device and returns a stream of it, which is created on first use. */
enum gt_code gt_cuda_stream(struct gt_dev *dev, int stream, cudaStream_t *out, struct gt_err *err);
/* Blocks the host until the stream has done its work, and reports faults that kernels found in their data. */
enum gt_code gt_cuda_wait(struct gt_dev *dev, cudaStream_t s, struct gt_err *err);

enum gt_code gt_cuda_alloc(struct gt_dev *dev, size_t bytes, void **out, struct gt_err *err);
void gt_cuda_free(struct gt_dev *dev, void *p);
enum gt_code gt_cuda_host_alloc(struct gt_dev *dev, size_t bytes, void **out, struct gt_err *err);
void gt_cuda_host_free(struct gt_dev *dev, void *p);
enum gt_code gt_cuda_host_wait(struct gt_dev *dev, int event, struct gt_err *err);
/* Returns whether [p, p + bytes) is inside one allocation of alloc(). */
bool gt_cuda_owns(const struct gt_dev *dev, const void *p, size_t bytes);

/* Allocates n 32-bit counters, initially 0, with which a kernel counts its finished blocks. Each prepared kernel has its own, because
 * another stream may run another call at the same time. */
enum gt_code gt_cuda_counters(struct gt_dev *dev, struct gt_kernel *k, int64_t n, struct gt_err *err);

/* Prepares a->step_args as a kernel argument: its address if it is in alloc() memory, so that a replayed graph reads new values, else a
 * copy. A copy is rejected during a capture. */
enum gt_code gt_cuda_step_args(const struct gt_dev *dev, const struct gt_launch *a, struct gt_cu_step_args *out, struct gt_err *err);

/* Loads a vendor library by its file name, from the plugin's list of folders (cuda.mk) and then from the loader's search path, and stores
 * the address of names[i] in *slot[i]. product is its name for messages. Returns GT_EUNAVAILABLE with the loader's reason if the library
 * cannot be loaded. The library stays loaded, because such libraries register kernels with the driver and cannot be unloaded and loaded
 * again. */
enum gt_code gt_cuda_library(const char *file, const char *product, const char *const *names, void **const *slot, int n, void **so,
                             struct gt_err *err);

/* ---- cuda_wait.c ---------------------------------------------------------------------------------------------------------- */
void gt_cuda_watch(struct gt_dev *dev, struct gt_cuda_watch *w); /* adds a watcher; the caller owns w and keeps it until gt_cuda_unwatch */
void gt_cuda_unwatch(struct gt_dev *dev, struct gt_cuda_watch *w);
/* Blocks the host until the device has completed the work that is queued on s or, if e is not NULL, that precedes the last record of e.
 * Whenever the host waits for work that may wait for other ranks, it uses this function, so that the wait has a deadline. */
enum gt_code gt_cuda_finish(struct gt_dev *dev, cudaStream_t s, cudaEvent_t e, struct gt_err *err);

/* ---- cuda_graph.c: order between streams, and graphs --------------------------------------------------------------------------------- */
enum gt_code gt_cuda_record(struct gt_dev *dev, int event, int stream, struct gt_err *err);
enum gt_code gt_cuda_wait_event(struct gt_dev *dev, int event, int stream, struct gt_err *err);
enum gt_code gt_cuda_mark(struct gt_dev *dev, int mark, int stream, struct gt_err *err);
enum gt_code gt_cuda_elapsed(struct gt_dev *dev, int from, int to, double *seconds, struct gt_err *err);
enum gt_code gt_cuda_capture_begin(struct gt_dev *dev, struct gt_err *err);
enum gt_code gt_cuda_capture_end(struct gt_dev *dev, void **graph, struct gt_err *err);
enum gt_code gt_cuda_replay(struct gt_dev *dev, void *graph, struct gt_err *err);
void gt_cuda_graph_free(struct gt_dev *dev, void *graph);
/* Destroys all graphs of the device, and a graph that is being captured. A running graph is freed when it has ended. Later replays return
 * GT_EINTERNAL; the owner of a graph still frees it with gt_cuda_graph_free. */
void gt_cuda_drop_graphs(struct gt_dev *dev);

/* ---- errors ------------------------------------------------------------------------------------------------------------------ */
/* "cuda:0: cudaMemcpyAsync: an illegal memory access was encountered": GT_EFAIL. Sets dev->lost if the error is of that kind. */
enum gt_code gt_cuda_fail(struct gt_dev *dev, cudaError_t e, const char *what, struct gt_err *err);
#define GT_CUDA(dev, call, what, err)                                                                                                      \
	do {                                                                                                                                   \
		cudaError_t gt_cuda_error = (call);                                                                                                \
		if (gt_cuda_error != cudaSuccess)                                                                                                  \
			return gt_cuda_fail(dev, gt_cuda_error, what, err);                                                                            \
	} while (0)

/* Allocates a kernel whose first member is struct gt_kernel head, and sets launch and describe. */
#define GT_CUDA_NEW(k, fn, text, err)                                                                                                      \
	do {                                                                                                                                   \
		if (!((k) = calloc(1, sizeof *(k))))                                                                                               \
			return gt_fail(err, GT_EFAIL, "out of memory");                                                                                \
		(k)->head.launch = (fn);                                                                                                           \
		(k)->head.describe = (text);                                                                                                       \
	} while (0)

#endif
