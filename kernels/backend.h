/* The device vtable. A backend is one shared object, lib/gtrain/<name>.so, that exports `gt_backend_<name>`; the engine opens it
 * lazily from a path relative to the binary. A backend can do an operation iff its prepare() succeeds: no fallback, no downgrade.
 *
 * Life of a device: open → alloc, prepare … → launch … → release, free → close. Streams are small integers; 0 is the compute
 * stream. A backend without asynchrony ignores them, and its record, wait and sync return at once. */
#ifndef GT_KERNELS_BACKEND_H
#define GT_KERNELS_BACKEND_H

#include "opcall.h"

#define GT_BACKEND_ABI 5
#define GT_EVENTS 1024 /* that record() and wait() know: 0 … GT_EVENTS - 1; the last GT_EVENTS_ENGINE belong to executor and loaders */
#define GT_EVENTS_ENGINE 16
#define GT_MARKS 8192 /* that mark() knows: 0 … GT_MARKS - 1 */

struct gt_dev;    /* owned by the caller of open */
struct gt_kernel; /* owned by the caller of prepare; freed by release, before the device is closed */

struct gt_devinfo {
	char id[32];       /* what --device takes: "cpu", "cuda:0" */
	char name[128];    /* "AMD EPYC (avx512_core_bf16)" */
	int threads;       /* of the host that it uses unless gt_dev_opts.threads says; 0: it computes with none */
	char detail[256];  /* versions of the libraries, features */
	uint64_t bytes;    /* memory */
	char place[32];    /* a GPU's PCI address: the same for two ranks of a host that share it; empty: not a device of its own */
};

struct gt_dev_opts {
	int index;          /* of the device among those that probe lists */
	int threads;        /* CPU threads; 0: all that the process may use */
	bool deterministic;
	bool winograd;      /* f32 convolutions may use Winograd's algorithm, whose rounding differs; devices without it ignore this */
	bool tf32;          /* f32 matrix products and convolutions may round their operands to tf32; devices without it ignore this */
	bool autotune;      /* implementations may be chosen by timing them in prepare(), unless deterministic; the CPU has nothing to time */
	int log_level;
};

enum gt_copy { GT_COPY_H2D, GT_COPY_D2H, GT_COPY_D2D };

struct gt_launch {
	void *const *in;  /* device pointers in the order of the opcall; NULL for absent ones */
	void *const *out;
	void *scratch;    /* at least the bytes that scratch() reports, 64-byte aligned (256 on CUDA); shared with other kernels */
	/* Host memory, which is read before launch returns, or alloc() memory, which the kernel reads when it runs. A replayed graph
	 * repeats the launch, so what is captured needs the latter: one gt_dyn a micro-batch, copied there (GT_COPY_H2D, stream 0)
	 * before each replay. A backend whose device works asynchronously tells the two apart by address. */
	const struct gt_dyn *dyn;
	int stream;       /* on the CPU: 0 the step's threads; otherwise the calling thread alone */
};

struct gt_backend {
	uint32_t abi;     /* GT_BACKEND_ABI */
	const char *name;
	bool host_memory; /* alloc() memory may be read and written by the host directly */

	/* Fills up to cap devices and *n = how many there are. No device is GT_OK with *n = 0 and the reason in err->msg. */
	enum gt_code (*probe)(struct gt_devinfo *out, int cap, int *n, struct gt_err *err);
	enum gt_code (*open)(const struct gt_dev_opts *opts, struct gt_dev **out, struct gt_err *err);
	void (*close)(struct gt_dev *dev);

	enum gt_code (*alloc)(struct gt_dev *dev, size_t bytes, void **out, struct gt_err *err); /* zeroed */
	void (*free)(struct gt_dev *dev, void *p);
	/* From the host: src may be reused on return. To the host: dst holds the data on return, and faults that kernels found in their
	 * data are reported (as by sync). Device to device: in the order of the stream. */
	enum gt_code (*copy)(struct gt_dev *dev, void *dst, const void *src, size_t bytes, enum gt_copy dir, int stream, struct gt_err *err);
	enum gt_code (*zero)(struct gt_dev *dev, void *dst, size_t bytes, int stream, struct gt_err *err);

	/* Chooses the implementation of one call and the layout of tensors marked `any`. Refuses (GT_EUNAVAILABLE) by a sentence that
	 * names operation, shape and dtype. call and what it points to need live only as long as this call. */
	enum gt_code (*prepare)(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err);
	void (*release)(struct gt_dev *dev, struct gt_kernel *k);
	size_t (*scratch)(const struct gt_kernel *k);
	const char *(*describe)(const struct gt_kernel *k); /* "brgconv:avx512_core_bf16", for `gtrain bench` and plans */
	enum gt_code (*launch)(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *args, struct gt_err *err);
	/* Optional (NULL): n launches on stream 0 one after the other, which may save what lies between two of them: threads that meet and
	 * part. The same results as n calls of launch. */
	enum gt_code (*launch_list)(struct gt_dev *dev, int n, struct gt_kernel *const *k, const struct gt_launch *args, struct gt_err *err);

	enum gt_code (*record)(struct gt_dev *dev, int event, int stream, struct gt_err *err);
	enum gt_code (*wait)(struct gt_dev *dev, int event, int stream, struct gt_err *err);
	enum gt_code (*sync)(struct gt_dev *dev, int stream, struct gt_err *err);

	/* Optional, all four or none: copies that the host does not wait for. host_alloc gives zeroed host memory that the device reaches by
	 * itself. copy_async from or to it returns at once: that memory is read or written when the copy's turn in the stream comes, so it
	 * must stay as it is until then; host_wait waits until the device has come to the last record() of the event, and reports faults
	 * as sync does. */
	enum gt_code (*host_alloc)(struct gt_dev *dev, size_t bytes, void **out, struct gt_err *err);
	void (*host_free)(struct gt_dev *dev, void *p);
	enum gt_code (*copy_async)(struct gt_dev *dev, void *dst, const void *src, size_t bytes, enum gt_copy dir, int stream, struct gt_err *err);
	enum gt_code (*host_wait)(struct gt_dev *dev, int event, struct gt_err *err);

	/* Optional, both or neither: the device's own clock, for a benchmark. mark notes the time when the device comes to this place of the
	 * stream; not in a capture. elapsed waits until it has come to mark `to`, and gives the seconds from mark `from`, which stands
	 * before it. */
	enum gt_code (*mark)(struct gt_dev *dev, int mark, int stream, struct gt_err *err);
	enum gt_code (*elapsed)(struct gt_dev *dev, int from, int to, double *seconds, struct gt_err *err);

	/* Optional (NULL): a list of launches on stream 0, and on streams that wait for it, recorded once and replayed, as a CUDA graph.
	 * Between begin and end nothing runs: no copy to or from the host, no sync. */
	enum gt_code (*capture_begin)(struct gt_dev *dev, struct gt_err *err);
	enum gt_code (*capture_end)(struct gt_dev *dev, void **graph, struct gt_err *err);
	enum gt_code (*replay)(struct gt_dev *dev, void *graph, struct gt_err *err);
	void (*graph_free)(struct gt_dev *dev, void *graph);
};

#endif
