/* The loader: assembles batches of a dataset, in an order that is a pure function of (seed, epoch). The dataset is resident on the
 * device, or its samples are fetched: threads read them into host memory ahead of the training (fetcher.h).
 *
 *     gt_loader_open(&spec, &l, err);
 *     gt_loader_start(l, epoch, cursor, err);
 *     while (...)
 *         gt_loader_next(l, &batch, err);            batch.x, batch.target: one micro-batch, or this rank's part of it
 *     gt_loader_close(l);
 *
 * A loader delivers micro-batch after micro-batch, epoch after epoch, from any starting point. If the host can read the device's memory,
 * the loader works in one of two ways, which deliver the same bytes:
 * - depth > 0: a thread gathers ahead into a ring of buffers, in which the newest `keep` delivered batches stay valid.
 * - depth = 0: the caller's thread gathers in gt_loader_next; for small images, gathering costs less than waking a thread.
 *
 *     dataset --> gather --> | ready | ready | empty |  kept  | in use |  --> gt_loader_next
 *     order of the epoch -'  '-------- depth --------'----- keep ------'
 *
 * On a device with its own memory the gather is a kernel among the kernels of the step, and there is no thread. The kernel finds its
 * samples through its gt_step_args in the order of the epoch, which is also in device memory:
 *
 *     host    gt_loader_take_parts: positions of the samples --> gt_step_args --> copied with the window (exec.h)
 *     host    gt_loader_order_next_epoch: order of epoch e + 1 --------.
 *     device  orders: [ epoch e ][ epoch e + 1 ] <----------'
 *     device  gather(images, labels, orders, gt_step_args) --> x, target --> the step's first kernel
 *
 * gt_loader_launch queues this kernel, or records it in a graph. The device holds the orders of two epochs; the host copies the next order
 * while the device works.
 *
 * Fetched samples are bytes too, and the same kernel normalises them. The kernel then reads a batch that the fetcher has completed:
 *
 *     files --> threads --> ring of batches (u8 rows) --> mixup, cutmix (mixing.h) --> gather(rows, labels) --> x, target
 *
 * If the device makes the last transforms of images, each row has a recipe before its bytes (gt_loader_spec.split), and the kernel
 * gather.recipes gathers and transforms the images.
 *
 * On a device with its own memory, the batches of a window are copied before the window starts, on a separate stream, into a ring with room
 * for two windows: the running window and the next window. Instead of the order of an epoch, the device then has a table: the row of this
 * ring for every position of the epoch that this loader delivers.
 *
 * In addition to the images, a batch has columns: the target and the dataset's fields. The kernel of the images also gathers labels; each
 * other column has its own kernel (gather.rows). */
#ifndef GT_EXEC_LOADER_H
#define GT_EXEC_LOADER_H

#include "conf/conf.h"
#include "dataset.h"
#include "exec/device.h"
#include "exec/fetcher.h"
#include "exec/lengths.h"
#include "exec/mixing.h"
#include "image/recipe_draw.h"

#define GT_MAX_COLUMNS (1 + GT_MAX_FIELDS)
/* A column: values of the samples in addition to the images. Column 0 is the target, the other columns are the dataset's fields. */
struct gt_column {
	enum gt_dtype dtype; /* GT_F32 or GT_I32 */
	int64_t width;       /* values per sample; 0: one value per sample, and the column has one dimension, like labels */
	const void *host;    /* [n, width]; if start is set, the sequences one after the other */
	const int64_t *start; /* [n + 1]: sample i has the values start[i] ... start[i + 1] - 1, at most width; NULL: width values each */
	int32_t pad;         /* if start is set: padding value after the end of a sequence */
};
/* Fills the columns of a dataset and returns their number. */
int gt_columns_of(const struct gt_dataset *d, struct gt_column out[GT_MAX_COLUMNS]);
/* Returns the bytes of a sample in a column. */
static inline size_t gt_column_bytes(const struct gt_column *c)
{
	return (size_t)(c->width ? c->width : 1) * gt_dtype_size(c->dtype);
}

/* Device addresses of a dataset. A pointer is NULL if the samples are fetched. */
struct gt_resident {
	void *images, *column[GT_MAX_COLUMNS], *start[GT_MAX_COLUMNS];
};

/* A split: the samples of a dataset that belong to the split, resident on a device. */
struct gt_view {
	const struct gt_dataset *data; /* not owned */
	const struct gt_resident *at;  /* addresses of the data on the device; not owned */
	const int64_t *index;   /* indices of the samples in the dataset; NULL: all samples in order. Owned by the session */
	int64_t n;              /* number of samples; -1: not known, because the data was not found (gt_session_spec.dry) */
};

/* Makes the images and columns of a dataset readable by the device: copies them to device memory, or takes the dataset's own addresses if
 * the device reads host memory. fetched: the samples will be fetched, so nothing is copied. gt_resident_drop frees the copies. */
enum gt_code gt_resident_make(const struct gt_device *device, const struct gt_dataset *d, bool fetched, struct gt_resident *out,
                              struct gt_err *err);
void gt_resident_drop(const struct gt_device *device, struct gt_resident *r);

/* The part of every micro-batch that a loader delivers. The micro-batch is divided into `parts` parts; the loader delivers the parts
 * part0 ... part0 + nparts - 1, one after the other, each as its own batch. All zero: the whole micro-batch. */
struct gt_batch_slice {
	int parts, part0, nparts;
	bool strided; /* true: part p has the samples p, p + parts, p + 2 * parts, ...; false: each part has consecutive samples */
};

/* Returns the number of samples in part p (0 ... parts - 1) of n samples, and sets *first (if not NULL) to the position of its first
 * sample. As in torch.tensor_split, the first n % parts parts have one sample more than the other parts, so no part is larger than part 0.
 * A part is empty only if n < parts. */
static inline int64_t gt_part_size(int64_t n, int parts, int p, int64_t *first)
{
	int64_t q = n / parts, more = n % parts;
	if (first)
		*first = p * q + (p < more ? p : more);
	return q + (p < more);
}

/* Returns the number of positions in the order of an epoch with n samples. pad: the first samples are repeated at the end until each of
 * `parts` parts has the same number of samples (as in torch.utils.data.DistributedSampler). drop_last: an incomplete last batch is left
 * out. */
int64_t gt_epoch_positions(int64_t n, int parts, bool pad, bool drop_last, int64_t batch);

#define GT_LOADER_EVENTS 3
struct gt_loader_spec {
	const struct gt_device *device;
	const struct gt_view *view;
	struct gt_attr_gather attr;
	struct gt_tdesc x;         /* description of the images of one micro-batch; the loader sets dim[0] */
	/* The inputs of the model: input_column[i] is 0 for the images, else the index of the column. Only column 0 and columns listed here are
	 * read. input_type[i]: the dtype of a column in a batch. ninputs 0: only the images. */
	int ninputs, input_column[GT_MAX_INPUTS];
	enum gt_dtype input_type[GT_MAX_INPUTS];
	int64_t shape[3];          /* with fetch: C, H, W of a fetched sample */
	/* With fetch, without mixing: the transforms that the device makes instead of the threads; a row that fetch.sample writes then has
	 * split.row bytes, with a recipe (kernels/recipe.h). on = false: rows are C * H * W bytes. */
	struct gt_recipe_split split;
	/* The lengths to which a column of sequences is padded; n is 0 without sequences. All samples of a step get the same length: the length
	 * of its longest sample, rounded up; in the last, short batch of an epoch the longest length. */
	struct gt_lengths lengths;
	int64_t buckets;           /* number of batches whose samples are sorted together by length and then shuffled; 0: no sorting */
	bool sorted;               /* all samples are sorted by length, as in an evaluation */
	int64_t batch, micro;      /* samples of one step and of one micro-batch, over all parts; micro divides batch, and parts <= micro */
	struct gt_batch_slice slice; /* the parts of each micro-batch that this loader delivers */
	bool shuffle, drop_last;
	bool pad;                  /* the first samples are repeated until all parts have the same size (gt_epoch_positions) */
	/* If true, every part gets as many rows as part 0: rows without a sample have the input 0 and the label fill_target. Allowed only if
	 * the device uses host memory. */
	bool fill;
	int32_t fill_target; /* label of rows without a sample, and of absent fetched samples. Targets that are not labels get 0 */
	struct gt_mixing mixing; /* with fetch: how samples are mixed. Then targets are f32 [N, mixing.classes] */
	/* Only with fill: memory for the inputs, that is gt_loader_buffers() buffers of gt_loader_rows() bytes. Each buffer has one block
	 * for each of slice.parts parts, and this loader writes block slice.part0. Not owned. NULL: the loader allocates the inputs. */
	char *rows;
	int sampler;               /* enum gt_sampler */
	uint64_t seed;
	int64_t ignore_index;      /* targets with this value have weight 0 */
	const double *class_weights; /* weight of each label, for gt_loader_weight; NULL: 1 */
	int depth;                 /* number of batches that a thread gathers ahead; 0: no thread */
	int keep;                  /* number of delivered batches that stay valid, including the newest one; 0 means 1 */
	struct gt_fetch fetch;     /* how samples are read if they are not resident; the loader calls close. All zero: samples are resident */
	int workers;               /* with fetch: number of threads that read samples, at least 1 */
	int ahead;                 /* with fetch: number of batches that are read ahead */
	int window, units;         /* with fetch, on a device with its own memory: maximum number of steps in a window, and maximum number of
	                              parts in a step; else 0 */
	bool one_epoch;            /* with fetch: do not read ahead beyond the end of the epoch, as in an evaluation */
	int event;                 /* index of the first of GT_LOADER_EVENTS device events that the loader uses if the device copies
	                              asynchronously */
};

/* A micro-batch, or a part of one. */
struct gt_batch {
	void *x, *target;        /* device addresses of the images and targets; owned by the loader. x is NULL if samples have no image */
	void *input[GT_MAX_INPUTS]; /* the inputs of the model: each is x or a column */
	int64_t n;               /* number of samples, including rows that `fill` adds; x has n rows for each augmented view of the samples
	                            (gt_attr_gather.views) */
	int64_t epoch, cursor;   /* epoch of the first sample, and its position in the order of that epoch, from 0 */
	int64_t length;          /* values per sample in the column of sequences; 0: no sequences */
	int64_t micro;           /* position, in the order of the epoch, of the first sample of the whole micro-batch */
	int64_t stride;          /* number of positions from one sample to the next */
};

struct gt_loader;

/* Returns the number of buffers that the loader uses: keep + depth, where depth is at most 16, and 0 on a device with its own memory. */
int gt_loader_buffers(const struct gt_loader_spec *spec);
/* Returns the bytes of the inputs of one micro-batch over all parts, if every part has as many rows as part 0. */
size_t gt_loader_rows(const struct gt_loader_spec *spec);
/* Returns the bytes of the rings of fetched batches, in host memory and on a device with its own memory; 0 if the dataset is resident. */
size_t gt_loader_fetched_bytes(const struct gt_loader_spec *spec);

/* Opens a loader. On failure the caller still owns spec->fetch. */
enum gt_code gt_loader_open(const struct gt_loader_spec *spec, struct gt_loader **out, struct gt_err *err);
void gt_loader_close(struct gt_loader *l);

/* Starts the loader, or restarts it, at position `cursor` of `epoch`, which must be a multiple of gt_loader_spec.batch. */
enum gt_code gt_loader_start(struct gt_loader *l, int64_t epoch, int64_t cursor, struct gt_err *err);

/* Stops the thread until the next gt_loader_start. */
void gt_loader_stop(struct gt_loader *l);

/* Delivers the next part that is not empty (with fill: the next part). The part is valid until the keep-th call after this call. After the
 * last micro-batch of an epoch the next epoch begins. */
enum gt_code gt_loader_next(struct gt_loader *l, struct gt_batch *out, struct gt_err *err);
/* Skips the next part, which other ranks read: like gt_loader_next, but without gathering; x and target are NULL. Only with depth 0, and
 * not for parts that gt_loader_take_parts has already taken. */
enum gt_code gt_loader_skip_part(struct gt_loader *l, struct gt_batch *out, struct gt_err *err);

/* Takes the next nmicro parts, including empty ones, for a step on a device with its own memory: fills epoch, sample0 and stride of
 * step_args[0 ... nmicro - 1], and queues the copy of the epoch's order to the device before all work that is queued later. On other
 * devices it does nothing, because gt_loader_next takes the parts. */
enum gt_code gt_loader_take_parts(struct gt_loader *l, int nmicro, struct gt_step_args *step_args, struct gt_err *err);
/* Queues the kernel that gathers n samples, with sequences of `length` (0: no sequences). The kernel reads the position of the samples from
 * step_args, in device memory, when it runs. *out is valid until the keep-th gather after this gather. */
enum gt_code gt_loader_launch(struct gt_loader *l, int64_t n, int64_t length, const struct gt_step_args *step_args, int stream,
                              struct gt_batch *out, struct gt_err *err);
/* Computes the order of the next epoch and queues its copy to the device, unless that has been done. */
enum gt_code gt_loader_order_next_epoch(struct gt_loader *l, struct gt_err *err);

/* Sets *out to the indices in the dataset of the samples of an epoch, in the order in which the loader delivers them, for the caller's
 * thread. Valid until the next call. */
enum gt_code gt_loader_order(struct gt_loader *l, int64_t epoch, const int64_t **out, struct gt_err *err);

/* Sets *out to the sum of the label weights (0 for ignored labels, else 1) of the n samples from position `cursor` of `epoch` on, over
 * all parts. The loss of a step is divided by this sum. */
enum gt_code gt_loader_weight(struct gt_loader *l, int64_t epoch, int64_t cursor, int64_t n, double *out, struct gt_err *err);

/* With sequences: sets *index to the index in gt_loader_spec.lengths of the batch that begins at `cursor` of `epoch`, and *run to the
 * number of consecutive full batches from there on that have the same length, at most `most`; without sequences, both are 0. */
enum gt_code gt_loader_length(struct gt_loader *l, int64_t epoch, int64_t cursor, int64_t most, int *index, int64_t *run,
                              struct gt_err *err);
/* After the next start, all batches get the longest length. For commands that repeat one program. */
void gt_loader_use_longest(struct gt_loader *l);

/* Returns the index in the dataset of the sample at position `cursor` of the current epoch, for messages. */
int64_t gt_loader_sample(struct gt_loader *l, int64_t cursor);

#endif
