/* The backend interface: memory, kernels, streams and events of a compute device. Each backend is one shared object,
 * lib/gtrain/<name>.so, that exports one const gt_backend named `gt_backend_<name>`. The engine opens it lazily from a path relative to
 * the binary. A backend supports an operation if and only if its prepare() succeeds: the engine never falls back to another implementation
 * or precision.
 *
 *     be->open(&opts, &dev, err);
 *     be->alloc(dev, bytes, &memory, err);
 *     be->prepare(dev, &call, &kernel, err);                  before step 0, once per operation and shape
 *     struct gt_launch args = {.in = in, .out = out, .scratch = scratch, .step_args = step_args, .stream = 0};
 *     be->launch(dev, kernel, &args, err);                    every step
 *     be->sync(dev, 0, err);
 *     be->release(dev, kernel);
 *     be->free(dev, memory);
 *     be->close(dev);
 *
 *     probe -> open -> alloc, prepare -> launch ... launch -> release, free -> close
 *
 *     stream 0 (compute):  launch A, launch B, record(event) --.
 *     stream 1 (copies):                                        `--> wait(event), copy of what B wrote
 *
 * A stream is a small integer and names a queue of work that the device executes in order; stream 0 is the compute stream. A synchronous
 * backend ignores streams, and its functions record, wait and sync return at once. */
#ifndef GT_KERNELS_BACKEND_H
#define GT_KERNELS_BACKEND_H

#include "opcall.h"

/* Version of this interface. It depends on the number of operations, because a new row in GT_OPCODES changes the codes of the rows after
 * it, and on the keys of optimizers, which are members of struct gt_attr_update. */
#define GT_BACKEND_ABI (12u << 24 | (unsigned)sizeof(struct gt_attr_update) << 16 | (unsigned)GT_OP_COUNT)
/* Number of events: record() and wait() take 0 ... GT_EVENTS - 1. The last GT_EVENTS_ENGINE are reserved for the executor and the
 * loaders. */
#define GT_EVENTS 1024
#define GT_EVENTS_ENGINE 16
#define GT_STREAM_FETCH 7 /* stream of the loader's copies of samples to the device; no other work uses this stream */
#define GT_MARKS 8192 /* number of time marks: mark() takes 0 ... GT_MARKS - 1 */

struct gt_dev;    /* an open device; owned by the caller of open */
struct gt_kernel; /* a prepared call; owned by the caller of prepare, who releases it before closing the device */

struct gt_devinfo {
	char id[32];       /* the name that --device accepts: "cpu", "cuda:0" */
	char name[128];    /* the product name: "AMD EPYC (avx512_core_bf16)" */
	/* number of host threads that the device uses if gt_dev_opts.threads is 0; 0: the device does not compute on the host */
	int threads;
	char detail[256];  /* text for people: versions of the libraries, and features of the device */
	/* The values of the config key `precision` that the device's hardware supports: "fp32, bf16". A backend may accept other types: it
	 * stores values in such a type and computes in f32. "": not known, because the device only makes plans */
	char native[40];
	uint64_t bytes;    /* size of the device's memory in bytes */
	uint64_t cache;    /* bytes of the largest cache of a host processor, if the device computes on the host; 0: not known */
	char pci_bus_id[32]; /* PCI bus id of a GPU: equal for two ranks of a host that share the GPU; empty: not a GPU */
	char note[160];      /* a sentence for the user about this device, for example a slow first start; empty: none */
};

struct gt_dev_opts {
	int index;          /* position of the device in the list that probe returns */
	int threads;        /* number of CPU threads; 0: one for each processor that the process may use */
	bool deterministic; /* use only implementations whose results do not vary from run to run */
	bool winograd;      /* allow Winograd's algorithm, which rounds differently, for f32 convolutions; ignored by devices without it */
	bool tf32;          /* allow rounding the operands of f32 matrix products and convolutions to tf32; ignored by devices without it */
	/* let prepare() choose among implementations by timing them; ignored if deterministic is true, and by the CPU backend */
	bool autotune;
	bool cudnn_attention; /* compute attention in 16 bits with cuDNN's fused kernels; ignored by devices without them */
};

enum gt_copy { GT_COPY_H2D, GT_COPY_D2H, GT_COPY_D2D }; /* host to device, device to host, device to device */

/* The arguments of one launch. */
struct gt_launch {
	void *const *in;  /* device addresses of the inputs in the order of the opcall; NULL: the input is absent */
	void *const *out; /* device addresses of the outputs in the order of the opcall; NULL: the output is absent */
	void *scratch;    /* workspace of at least scratch() bytes, aligned to 64 bytes (256 on CUDA); kernels share it */
	/* The values of the step, such as the learning rates. They may be in host memory, which launch reads before it returns, or in alloc()
	 * memory, which the kernel reads when it runs. A replayed graph repeats the launch, so a captured launch needs alloc() memory: one
	 * gt_step_args for each micro-batch, which the caller copies there (GT_COPY_H2D, stream 0) before each replay. A backend whose device
	 * works asynchronously distinguishes both kinds of memory by the address. */
	const struct gt_step_args *step_args;
	/* Index of the stream of the launch. On the CPU, a kernel runs at once: with stream 0 on all threads, with another stream on the
	 * calling thread only. */
	int stream;
};

struct gt_backend {
	uint32_t abi;     /* GT_BACKEND_ABI */
	const char *name; /* "cpu" */
	bool host_memory; /* the host may read and write alloc() memory directly */
	/* an evaluation runs faster if batch normalisations are folded into the layers before them (plan/norm_folding.c) */
	bool folds_norms;

	/* Describes up to cap devices in out and sets *n to the number of devices that exist. If there is no device, returns GT_OK with *n = 0
	 * and the reason in err->msg. */
	enum gt_code (*probe)(struct gt_devinfo *out, int cap, int *n, struct gt_err *err);
	enum gt_code (*open)(const struct gt_dev_opts *opts, struct gt_dev **out, struct gt_err *err);
	void (*close)(struct gt_dev *dev);

	/* Allocates zeroed device memory. The caller frees it with free(). */
	enum gt_code (*alloc)(struct gt_dev *dev, size_t bytes, void **out, struct gt_err *err);
	void (*free)(struct gt_dev *dev, void *p);
	/* Copies bytes. From the host: when copy returns, the caller may reuse src. To the host: when copy returns, dst holds the data; copy
	 * reports faults that kernels found in their data (such as a label out of range), as sync does. Device to device: the copy runs in
	 * stream order. */
	enum gt_code (*copy)(struct gt_dev *dev, void *dst, const void *src, size_t bytes, enum gt_copy dir, int stream, struct gt_err *err);
	enum gt_code (*zero)(struct gt_dev *dev, void *dst, size_t bytes, int stream, struct gt_err *err);

	/* Chooses the implementation of a call, and the layout of the tensors that are marked `any`. Returns GT_EUNAVAILABLE, with a sentence
	 * that names operation, shape and dtype, if the backend does not support the call, and GT_EINTERNAL if the call does not have the
	 * operands of its operation (opsig.h). The kernel keeps no pointer to call or to anything that call points to. */
	enum gt_code (*prepare)(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err);
	void (*release)(struct gt_dev *dev, struct gt_kernel *k);
	size_t (*scratch)(const struct gt_kernel *k); /* bytes of workspace that a launch needs */
	/* Returns the name of the implementation, for `gtrain bench` and plans: "brgconv:avx512_core_bf16". The kernel owns the string. */
	const char *(*describe)(const struct gt_kernel *k);
	enum gt_code (*launch)(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *args, struct gt_err *err);
	/* Optional (NULL): launches n kernels on stream 0, one after the other, with the same results as n calls of launch. It may save the
	 * cost between two launches, such as starting and ending a team of threads. */
	enum gt_code (*launch_list)(struct gt_dev *dev, int n, struct gt_kernel *const *k, const struct gt_launch *args, struct gt_err *err);

	/* record() records an event at the current end of a stream. wait() makes a stream wait for the last record() of an event; the host does
	 * not wait. sync() makes the host wait for a stream and reports faults that kernels found in their data. */
	enum gt_code (*record)(struct gt_dev *dev, int event, int stream, struct gt_err *err);
	enum gt_code (*wait)(struct gt_dev *dev, int event, int stream, struct gt_err *err);
	enum gt_code (*sync)(struct gt_dev *dev, int stream, struct gt_err *err);

	/* Optional (all four functions or none): copies that do not block the host. host_alloc returns zeroed host memory that the device can
	 * access itself; free it with host_free. copy_async from or to such memory returns at once. The device reads or writes the memory when
	 * the stream reaches the copy, so the caller must not change or use it before then. host_wait blocks the host until the device has
	 * reached the last record() of the event, and reports faults as sync does. */
	enum gt_code (*host_alloc)(struct gt_dev *dev, size_t bytes, void **out, struct gt_err *err);
	void (*host_free)(struct gt_dev *dev, void *p);
	enum gt_code (*copy_async)(struct gt_dev *dev, void *dst, const void *src, size_t bytes, enum gt_copy dir, int stream,
	                           struct gt_err *err);
	enum gt_code (*host_wait)(struct gt_dev *dev, int event, struct gt_err *err);

	/* Optional (both functions or neither): time measured by the device, for benchmarks. mark() stores the device's time when the stream
	 * reaches this point; it fails during a capture. elapsed() waits until the device has reached mark `to` and returns the seconds since
	 * mark `from`, which must come before `to` in the stream. */
	enum gt_code (*mark)(struct gt_dev *dev, int mark, int stream, struct gt_err *err);
	enum gt_code (*elapsed)(struct gt_dev *dev, int from, int to, double *seconds, struct gt_err *err);

	/* Optional (all four functions or none): capture and replay, as with CUDA graphs. Between capture_begin and capture_end, launches on
	 * stream 0, and on streams that wait for stream 0, are recorded and do not run; copies to or from the host, and sync, are not allowed.
	 * replay runs the recorded list on stream 0. Free the graph with graph_free, before the device closes. */
	enum gt_code (*capture_begin)(struct gt_dev *dev, struct gt_err *err);
	enum gt_code (*capture_end)(struct gt_dev *dev, void **graph, struct gt_err *err);
	enum gt_code (*replay)(struct gt_dev *dev, void *graph, struct gt_err *err);
	void (*graph_free)(struct gt_dev *dev, void *graph);
};

#endif
