/* Inside the CUDA backend. Three kinds of files:
 *   cuda_<family>.c   prepare and launch of a family of operations: checks a call, fills the arguments (plain C, no kernels)
 *   <family>.cu       two parts: kernels, then the functions of launch.h that start them
 *   cuda.c            the table of families; cuda_dev.c  device, memory, streams, events, graphs
 * Vendor libraries are opened when a device is, through a table of their functions (cublaslt.h). */
#ifndef GT_KERNELS_CUDA_INTERNAL_H
#define GT_KERNELS_CUDA_INTERNAL_H

#include "backend.h"
#include "cuda/launch.h"
#include <cuda_runtime_api.h>

#define GT_CUDA_STREAMS 8
#define GT_CUDA_MIN_CC 80 /* compute capability 8.0: the oldest that this build has machine code for */

struct gt_lt;
struct gt_dnn;

struct gt_cuda_block { /* one allocation */
	char *p;
	size_t bytes;
};

/* Somebody whose queued work may wait for other ranks. While the host waits for a stream, look() is asked every few milliseconds, with the seconds
 * that it has waited; a failure ends the wait, and is its error. */
struct gt_cuda_watch {
	enum gt_code (*look)(void *user, double waited_s, struct gt_err *err);
	void *user;
	struct gt_cuda_watch *next;
};

struct gt_dev {
	int index;
	char id[16];
	bool deterministic, tf32, winograd, autotune, capturing;
	int sms;                              /* multiprocessors */
	cudaStream_t stream[GT_CUDA_STREAMS]; /* made on first use */
	cudaEvent_t event[GT_EVENTS];         /* made on first use */
	cudaEvent_t mark[GT_MARKS];           /* with a clock; made on first use */
	struct gt_cu_fault *fault;            /* host memory that kernels write to */
	struct gt_cuda_block *block;          /* what alloc() gave out, in no order */
	int nblocks, cap;
	struct gt_lt *lt;   /* cuBLASLt and its handle */
	struct gt_dnn *dnn; /* cuDNN; NULL until the first convolution */
	struct gt_cuda_watch *watch; /* NULL: nothing on this device waits for other ranks */
};

/* Head of every kernel; families embed it as their first member, calloc theirs and fill it. */
struct gt_kernel {
	enum gt_code (*launch)(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *a, cudaStream_t stream, struct gt_err *err);
	void (*release)(struct gt_dev *dev, struct gt_kernel *k); /* NULL: free(k) is enough */
	size_t scratch;
	const char *describe; /* static, or inside the kernel */
	int nin, nout;        /* of the call */
	void *counter;        /* gt_cuda_counters; freed with the kernel */
};

typedef enum gt_code gt_cuda_prepare(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err);
gt_cuda_prepare gt_cuda_eltwise, gt_cuda_dropout, gt_cuda_shape, gt_cuda_softmax, gt_cuda_loss, gt_cuda_update, gt_cuda_linear,
    gt_cuda_rowsum, gt_cuda_gather, gt_cuda_check, gt_cuda_batchnorm, gt_cuda_moments, gt_cuda_layernorm, gt_cuda_pool, gt_cuda_conv,
    gt_cuda_muon, gt_cuda_head, gt_cuda_head_back;

void gt_cuda_conv_close(struct gt_dev *dev); /* what the convolutions opened */

/* ---- cuda_dev.c ----------------------------------------------------------------------------------------------------------- */
enum gt_code gt_cuda_probe(struct gt_devinfo *out, int cap, int *n, struct gt_err *err);
enum gt_code gt_cuda_open(const struct gt_dev_opts *opts, struct gt_dev **out, struct gt_err *err);
void gt_cuda_close(struct gt_dev *dev);
enum gt_code gt_cuda_use(struct gt_dev *dev, struct gt_err *err); /* makes it the calling thread's device */
enum gt_code gt_cuda_stream(struct gt_dev *dev, int stream, cudaStream_t *out, struct gt_err *err);
enum gt_code gt_cuda_wait(struct gt_dev *dev, cudaStream_t s, struct gt_err *err); /* for the host; reports what kernels found wrong */

enum gt_code gt_cuda_alloc(struct gt_dev *dev, size_t bytes, void **out, struct gt_err *err);
void gt_cuda_free(struct gt_dev *dev, void *p);
enum gt_code gt_cuda_host_alloc(struct gt_dev *dev, size_t bytes, void **out, struct gt_err *err);
void gt_cuda_host_free(struct gt_dev *dev, void *p);
enum gt_code gt_cuda_host_wait(struct gt_dev *dev, int event, struct gt_err *err);
/* Is [p, p + bytes) inside one block of alloc()? */
bool gt_cuda_owns(const struct gt_dev *dev, const void *p, size_t bytes);

/* A host table in device memory, for gt_cuda_free. */
enum gt_code gt_cuda_upload(struct gt_dev *dev, const void *src, size_t bytes, void **out, struct gt_err *err);

/* n zeros of 32 bits that kernels count their blocks with, the kernel's own: another stream may run another call. */
enum gt_code gt_cuda_counters(struct gt_dev *dev, struct gt_kernel *k, int64_t n, struct gt_err *err);

/* dyn as a kernel's argument: the address if alloc() gave the memory, so that a replayed graph reads new values, else a copy.
 * A copy is refused while a graph is captured. */
enum gt_code gt_cuda_dyn(const struct gt_dev *dev, const struct gt_launch *a, struct gt_cu_dyn *out, struct gt_err *err);

/* Opens a vendor's library by its file name along the plugin's list of folders (cuda.mk), then where the loader looks, and puts the
 * addresses of names[i] in *slot[i]. GT_EUNAVAILABLE with the loader's reason; product: for that message. It stays loaded: such
 * libraries register kernels with the driver and do not survive being unloaded and loaded again. */
enum gt_code gt_cuda_library(const char *file, const char *product, const char *const *names, void **const *slot, int n, void **so,
                             struct gt_err *err);

/* ---- cuda_wait.c ---------------------------------------------------------------------------------------------------------- */
void gt_cuda_watch(struct gt_dev *dev, struct gt_cuda_watch *w); /* the caller's, until unwatch */
void gt_cuda_unwatch(struct gt_dev *dev, struct gt_cuda_watch *w);
/* Until the device has done what is queued on s, or what came before the last record of e, where e is not NULL. Every wait of the host goes
 * through here, so that none is without a deadline. */
enum gt_code gt_cuda_finish(struct gt_dev *dev, cudaStream_t s, cudaEvent_t e, struct gt_err *err);

/* ---- cuda_graph.c: streams' order and graphs --------------------------------------------------------------------------------- */
enum gt_code gt_cuda_record(struct gt_dev *dev, int event, int stream, struct gt_err *err);
enum gt_code gt_cuda_wait_event(struct gt_dev *dev, int event, int stream, struct gt_err *err);
enum gt_code gt_cuda_mark(struct gt_dev *dev, int mark, int stream, struct gt_err *err);
enum gt_code gt_cuda_elapsed(struct gt_dev *dev, int from, int to, double *seconds, struct gt_err *err);
enum gt_code gt_cuda_capture_begin(struct gt_dev *dev, struct gt_err *err);
enum gt_code gt_cuda_capture_end(struct gt_dev *dev, void **graph, struct gt_err *err);
enum gt_code gt_cuda_replay(struct gt_dev *dev, void *graph, struct gt_err *err);
void gt_cuda_graph_free(struct gt_dev *dev, void *graph);

/* ---- errors ------------------------------------------------------------------------------------------------------------------ */
/* "cuda:0: cudaMemcpyAsync: an illegal memory access was encountered": GT_EFAIL */
enum gt_code gt_cuda_fail(const struct gt_dev *dev, cudaError_t e, const char *what, struct gt_err *err);
/* "conv2d (layer1.0.conv1) of f32 [32, 3, 32, 32]: not supported by the cuda backend": GT_EUNAVAILABLE */
enum gt_code gt_cuda_refuse(const struct gt_opcall *call, struct gt_err *err, const char *why);

#define GT_CUDA(dev, call, what, err)                                                                                                      \
	do {                                                                                                                                   \
		cudaError_t gt_cuda_error = (call);                                                                                                \
		if (gt_cuda_error != cudaSuccess)                                                                                                  \
			return gt_cuda_fail(dev, gt_cuda_error, what, err);                                                                            \
	} while (0)

/* calloc of a kernel that starts with struct gt_kernel. */
#define GT_CUDA_NEW(k, fn, text, err)                                                                                                      \
	do {                                                                                                                                   \
		if (!((k) = calloc(1, sizeof *(k))))                                                                                               \
			return gt_fail(err, GT_EFAIL, "out of memory");                                                                                \
		(k)->head.launch = (fn);                                                                                                           \
		(k)->head.describe = (text);                                                                                                       \
	} while (0)

/* Column of the tables of kernels; -1: a type that they do not know. */
static inline int gt_cuda_type(enum gt_dtype t)
{
	return t == GT_F32 ? GT_CU_F32 : t == GT_BF16 ? GT_CU_BF16 : t == GT_F16 ? GT_CU_F16 : -1;
}

#endif
