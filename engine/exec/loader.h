/* Batches, gathered from a resident dataset by the backend's gather kernel, in an order that is a pure function of (seed, epoch).
 *
 * A loader delivers micro-batch after micro-batch, epoch after epoch, from any starting point. With depth > 0 a thread gathers ahead
 * into a ring of buffers; with depth 0 the caller's thread gathers when it asks (a batch of small images costs less than waking a
 * thread). Both give the same bytes.
 *
 * Devices with memory of their own need no thread: the gather is a kernel among the step's own, which finds its place in the epoch's
 * order, both in device memory, through its gt_dyn. So the host claims samples (gt_loader_claim) for steps that it queues, and
 * gt_loader_launch queues, or records in a graph, the kernel. Orders of two epochs are on the device at once; the next one is copied there
 * while the device works (gt_loader_ahead). */
#ifndef GT_EXEC_LOADER_H
#define GT_EXEC_LOADER_H

#include "conf/conf.h"
#include "dataset.h"
#include "exec/device.h"

/* A split: samples of a dataset, resident on a device. */
struct gt_view {
	const struct gt_dataset *data;
	void *images, *labels;  /* device addresses */
	const int64_t *index;   /* samples of the view, NULL: all of the dataset in order; owned by the session */
	int64_t n;
};

/* Makes a dataset's images and labels readable by the device: dev[0], dev[1] (the host's own addresses where memory is shared). */
enum gt_code gt_resident_make(const struct gt_device *device, const struct gt_dataset *d, void *dev[2], struct gt_err *err);
void gt_resident_drop(const struct gt_device *device, void *dev[2]);

/* Which samples of every micro-batch are this loader's: it is cut into `parts`, of which the loader delivers [part0, part0 + nparts) one
 * after the other, each as a batch of its own. All zero: the whole. */
struct gt_batch_slice {
	int parts, part0, nparts;
	bool strided; /* part p has samples p, p + parts, …; else consecutive ones */
};

/* Samples of part p of n, and where the first one stands, as torch.tensor_split has it: the first n % parts have one more than the others,
 * so part 0 is never smaller than another. Empty only where n < parts. */
static inline int64_t gt_part(int64_t n, int parts, int p, int64_t *first)
{
	int64_t q = n / parts, more = n % parts;
	if (first)
		*first = p * q + (p < more ? p : more);
	return q + (p < more);
}

/* Places of an epoch's order: with pad (torch.utils.data.DistributedSampler) the first samples stand once more at its end, until every one of
 * `parts` has as many. drop_last: without an incomplete batch. */
int64_t gt_epoch_places(int64_t n, int parts, bool pad, bool drop_last, int64_t batch);

struct gt_loader_spec {
	const struct gt_device *device;
	const struct gt_view *view;
	struct gt_attr_gather attr;
	struct gt_tdesc x;       /* of one micro-batch; dim[0] is set by the loader */
	int64_t batch, micro;    /* samples of one step, of one micro-batch, of all parts; micro divides batch, and parts <= micro */
	struct gt_batch_slice cut;
	bool shuffle, drop_last;
	bool pad;                /* see gt_epoch_places */
	bool fill;               /* every part has as many rows as part 0: x is 0 and the target fill_target where it has no sample. Host memory only */
	int32_t fill_target;
	char *rows;              /* with fill: x lies here, in gt_loader_buffers() places of gt_loader_rows() bytes, as block cut.part0 of cut.parts; not owned. NULL: elsewhere */
	int sampler;             /* enum gt_sampler */
	uint64_t seed;
	int64_t ignore_index;    /* targets that weigh nothing */
	int depth;
	int keep;                /* batches that stay valid, the newest included; 0: 1 */
	int event;               /* this one and the next are the loader's, in devices that copy by themselves */
};

struct gt_batch {
	void *x, *target;
	int64_t n;               /* samples, and what fills up; x has as many rows for each view of them */
	int64_t epoch, cursor;   /* of its first sample */
	int64_t micro;           /* where its micro-batch begins */
	int64_t stride;          /* from one sample's place to the next one's */
};

struct gt_loader;

int gt_loader_buffers(const struct gt_loader_spec *spec);
size_t gt_loader_rows(const struct gt_loader_spec *spec); /* of a micro-batch, of all parts, filled up */

enum gt_code gt_loader_open(const struct gt_loader_spec *spec, struct gt_loader **out, struct gt_err *err);
void gt_loader_close(struct gt_loader *l);

/* Begins at sample `cursor` of `epoch` (a multiple of batch, or 0). */
enum gt_code gt_loader_start(struct gt_loader *l, int64_t epoch, int64_t cursor, struct gt_err *err);

/* Ends the thread until the next start. */
void gt_loader_stop(struct gt_loader *l);

/* The next part of a micro-batch that is not empty (with fill: of every one); it stays valid until the keep-th call from then. At the end of
 * an epoch the next one begins. */
enum gt_code gt_loader_next(struct gt_loader *l, struct gt_batch *out, struct gt_err *err);
/* The same without its bytes (x and target are NULL): others read it. Only with depth 0, and not after gt_loader_claim has passed them. */
enum gt_code gt_loader_pass(struct gt_loader *l, struct gt_batch *out, struct gt_err *err);

/* For devices with memory of their own (elsewhere it does nothing, gt_loader_next does it): takes the next nmicro parts, empty ones too,
 * fills epoch, sample0 and stride of their numbers, and has the epoch's order on the device before what is queued from now on. */
enum gt_code gt_loader_claim(struct gt_loader *l, int nmicro, struct gt_dyn *dyn, struct gt_err *err);
/* Queues the gather of n samples at what dyn, device memory, says when it runs. They stay valid until the keep-th gather from then. */
enum gt_code gt_loader_launch(struct gt_loader *l, int64_t n, const struct gt_dyn *dyn, int stream, struct gt_batch *out, struct gt_err *err);
/* Makes the order of the epoch behind the current one, and queues its way to the device, unless that has been done. */
enum gt_code gt_loader_ahead(struct gt_loader *l, struct gt_err *err);

/* Sum of target weights of `n` samples, of all parts, from `cursor` of an epoch on: what divides the loss of an effective batch. */
enum gt_code gt_loader_weight(struct gt_loader *l, int64_t epoch, int64_t cursor, int64_t n, double *out, struct gt_err *err);

/* Dataset index of a sample of the current epoch, for messages. */
int64_t gt_loader_sample(struct gt_loader *l, int64_t cursor);

#endif
