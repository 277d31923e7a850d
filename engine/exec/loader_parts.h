/* The parts of the loader (loader.h) that its files share.
 *
 *     loader_gather.c   the loader itself: gathers batches, one after the other
 *     loader_order.c    the sequence of parts, and the orders of epochs
 *     loader_columns.c  the kernels that gather images, targets and fields of the samples
 *     loader_thread.c   with gt_loader_spec.depth: a thread that gathers batches of a resident dataset ahead
 *     loader_fetch.c    with gt_loader_spec.fetch: batches that threads read ahead into host memory
 *     loader_ring.c     with fetch on a device with its own memory: the copies of these batches on the device */
#ifndef GT_EXEC_LOADER_PARTS_H
#define GT_EXEC_LOADER_PARTS_H

#include "exec/loader.h"
#include <pthread.h>

/* maximum number of different sizes of a part, in full and last micro-batches of an epoch, for each length of sequences */
#define GT_LOADER_SIZES (8 * GT_MAX_LENGTHS)

/* The order of the samples in one epoch. It is in row epoch % 2 of the arrays loader.orders (host) and orders_dev (device). */
struct gt_order {
	int64_t epoch;
	int64_t *host;
	bool sent; /* the copy of this order to the device is queued */
};

/* A position in the sequence of parts that the loader delivers, epoch after epoch. */
struct gt_loader_place {
	int64_t epoch, cursor; /* cursor: position in the epoch at which the micro-batch begins */
	int part;
};

/* A column of the dataset, and how the loader delivers its values in batches. */
struct gt_loader_column {
	struct gt_column of; /* the column of the dataset; if labels are mixed: the mixed targets, with of.host NULL */
	int operand;         /* index in gt_loader_size.kernel; 0: the kernel of the images also gathers this column; -1: the model does not
	                        read the column */
	enum gt_dtype to;    /* dtype in a batch */
	void **out;          /* [nbuf] */
};

/* The kernels that gather a batch of n samples: first of the images, then of the columns. */
struct gt_loader_size {
	int64_t n, length; /* length: values per sample in the column of sequences; 0: no sequences */
	struct gt_kernel *kernel[1 + GT_MAX_COLUMNS];
};

/* A thread that gathers batches ahead. `lock` protects the members after it. */
struct gt_loader_thread {
	pthread_t id;
	bool running;
	pthread_mutex_t lock;
	pthread_cond_t filled, freed;
	bool stop;
	struct gt_loader_place ahead; /* the part that the thread gathers next */
	struct gt_batch *batch;       /* [nbuf], cyclically */
	int head, count;              /* index of the first ready batch; number of ready batches */
	int lent;                     /* number of batches before head that have been delivered and must stay valid */
	struct gt_err failure;
};

/* The batches that are read ahead, in host memory. */
struct gt_loader_fetch {
	struct gt_fetcher *fetcher;
	struct gt_loader_place ahead;  /* the next part to queue for the fetcher's threads */
	int64_t rows;                  /* maximum number of rows that are read for a part, including mixing partners */
	size_t image;                  /* bytes of an image */
	uint8_t *images;               /* [batches][rows] */
	char *column[GT_MAX_COLUMNS];  /* [batches][rows]; NULL: the model does not read the column */
	int64_t *list;                 /* [rows] the samples of the batch that is queued next */
	int64_t *iota;                 /* 0, 1, …, most - 1: the operand index of a gather from a batch */
	/* If labels are mixed: the labels of the rows of each batch, from which the targets are computed, and the labels of one part. */
	int32_t *labels, *part_labels; /* [batches][rows]; [rows] */
};

/* The parts that were copied to the device. Instead of an epoch's order, the device has a map from positions to rows of the ring. */
struct gt_loader_ring {
	int parts;                    /* number of batch parts for which the ring has memory */
	uint8_t *images;              /* [parts][gt_loader.most], in device memory */
	char *column[GT_MAX_COLUMNS]; /* [parts][gt_loader.most], in device memory; NULL: the model does not read the column */
	int64_t *map;                 /* [2 * row], in host memory: the row of the ring for each position of two epochs */
	int64_t end[2];               /* for the epochs in map: number of non-empty parts from the loader's start to the end of the epoch */
	struct gt_loader_place begin; /* where the loader started */
	int64_t copied;               /* number of parts that have been copied since the start */
	int copying;                  /* number of the fetcher's oldest batches that a copy may still read */
};

struct gt_loader {
	struct gt_loader_spec spec;
	const struct gt_backend *be;
	struct gt_dev *dev;
	struct gt_loader_thread *thread; /* thread that gathers ahead; NULL: the caller's thread or the device gathers */
	struct gt_loader_fetch *fetch;   /* fetched batches; NULL: the dataset is resident */
	struct gt_loader_ring *ring;     /* fetched batches on the device; NULL: the dataset is resident, or the device uses host memory */

	/* The order of the samples. */
	int64_t samples;              /* number of samples that are used in an epoch */
	int64_t row;                  /* number of positions in the order of an epoch; at least samples */
	int64_t most;                 /* maximum number of samples of a part */
	struct gt_loader_place next;  /* the part that the next call of gt_loader_next delivers */
	struct gt_order order[2];
	struct gt_order counted;      /* with a thread, which may write `order` at any time: the order that gt_loader_weight uses */
	int64_t *orders, *orders_dev; /* [2 * row]: the orders in host memory and in device memory; equal if the device uses host memory */
	bool longest;                 /* all sequences are padded to the longest length */

	/* The buffers of batches, and the kernels that fill them. */
	int nbuf, buffer;   /* buffer: without a thread, index of the next buffer */
	void **x;           /* [nbuf] images; NULL: samples have no image */
	struct gt_loader_column column[GT_MAX_COLUMNS]; /* the target, then the dataset's fields */
	int ncolumns;
	const struct gt_column *sequences; /* the column whose rows have different lengths; NULL: no such column */
	struct gt_loader_size gather[GT_LOADER_SIZES];
	int nsizes;
};

/* ---- loader_gather.c ----------------------------------------------------------------------------------------------------------- */
/* Gathers a batch into the buffers with index `buffer`. The caller has set epoch, cursor, n and stride; the function sets the addresses. */
enum gt_code gt_loader_gather_batch(struct gt_loader *l, struct gt_batch *b, int buffer, int stream, struct gt_err *err);
/* Allocates host memory from which a device with its own memory can copy, and sets the pointer *out to it. */
enum gt_code gt_loader_host_alloc(struct gt_loader *l, size_t bytes, void *out, struct gt_err *err);
void gt_loader_host_free(struct gt_loader *l, void *p); /* does nothing if p is NULL */
/* Allocates device memory, and sets the pointer *out to it. */
enum gt_code gt_loader_device_alloc(struct gt_loader *l, size_t bytes, void *out, struct gt_err *err);
void gt_loader_device_free(struct gt_loader *l, void *p); /* does nothing if p is NULL */

/* ---- loader_order.c ------------------------------------------------------------------------------------------------------------ */
/* Returns the part at position p: number of samples, and their position in the order of the epoch; x and target are NULL. */
struct gt_batch gt_loader_part_at(const struct gt_loader *l, const struct gt_loader_place *p);
/* Moves p to the next part of this loader. */
void gt_loader_advance(const struct gt_loader *l, struct gt_loader_place *p);
/* Works like gt_loader_part_at for the first part from position p on that is not empty (with fill: for the part at p). */
struct gt_batch gt_loader_next_part(const struct gt_loader *l, struct gt_loader_place *p);
/* Computes the order of an epoch and queues its copy to the device, unless that has been done. */
enum gt_code gt_loader_make_order(struct gt_loader *l, int64_t epoch, struct gt_err *err);
/* Returns the length of the sequences in the batch at position `cursor` of an order of samples; 0: no sequences. */
int64_t gt_loader_length_at(const struct gt_loader *l, const int64_t *order, int64_t cursor);
/* Returns whether the weight of a sample depends on its label. */
bool gt_loader_weighs_labels(const struct gt_loader *l);

/* ---- loader_thread.c ----------------------------------------------------------------------------------------------------------- */
enum gt_code gt_loader_open_thread(struct gt_loader *l, struct gt_err *err);
void gt_loader_close_thread(struct gt_loader *l); /* does nothing without a thread */
enum gt_code gt_loader_start_thread(struct gt_loader *l, struct gt_err *err);
void gt_loader_stop_thread(struct gt_loader *l);
/* Takes the next batch that the thread has gathered. */
enum gt_code gt_loader_take_batch(struct gt_loader *l, struct gt_batch *out, struct gt_err *err);

/* ---- loader_fetch.c ------------------------------------------------------------------------------------------------------------ */
enum gt_code gt_loader_open_fetch(struct gt_loader *l, struct gt_err *err);
void gt_loader_close_fetch(struct gt_loader *l); /* does nothing if the dataset is resident */
/* Queues batches for the fetcher until `used` + gt_loader_spec.ahead batches are queued. */
enum gt_code gt_loader_fetch_ahead(struct gt_loader *l, int used, struct gt_err *err);
/* Waits for batch i of the fetcher, which must have the rows of part b, and completes its columns. */
enum gt_code gt_loader_wait_fetched(struct gt_loader *l, int i, const struct gt_batch *b, struct gt_fetched *out, struct gt_err *err);
/* Gathers batch b into b->x and the columns of `buffer` from the samples that were read for it. The device uses host memory. */
enum gt_code gt_loader_gather_fetched(struct gt_loader *l, const struct gt_batch *b, const struct gt_step_args *step_args, int buffer,
                                      struct gt_err *err);

/* ---- loader_ring.c ------------------------------------------------------------------------------------------------------------- */
/* Returns the number of parts in the ring, which holds two windows; 0: no ring. */
static inline int gt_loader_ring_parts(const struct gt_loader_spec *s)
{
	return 2 * s->window * s->units;
}
enum gt_code gt_loader_open_ring(struct gt_loader *l, struct gt_err *err);
void gt_loader_close_ring(struct gt_loader *l); /* does nothing without a ring */
/* Restarts the ring at l->next. */
enum gt_code gt_loader_start_ring(struct gt_loader *l, struct gt_err *err);
/* Fills the map of an epoch, and returns it: part number k since the start of the loader is in part k % ring.parts of the ring. */
const int64_t *gt_loader_map_epoch(struct gt_loader *l, int64_t epoch);
/* Queues the copy of a fetched part to the ring. */
enum gt_code gt_loader_copy_part(struct gt_loader *l, const struct gt_batch *b, struct gt_err *err);
/* Waits for the copies to the device and makes the copied batches reusable. The copies do not wait for other work on the device. */
enum gt_code gt_loader_end_copies(struct gt_loader *l, struct gt_err *err);

/* ---- loader_columns.c ---------------------------------------------------------------------------------------------------------- */
/* Fills in the columns and allocates their buffers. */
enum gt_code gt_loader_open_columns(struct gt_loader *l, struct gt_err *err);
void gt_loader_close_columns(struct gt_loader *l);
/* Prepares the kernels that gather n samples, for every length of sequences, unless that has been done. */
enum gt_code gt_loader_prepare_size(struct gt_loader *l, int64_t n, struct gt_err *err);
/* Queues the kernels that gather n samples into x and the columns. step_args is in host or device memory. from: the fetched samples; NULL:
 * the dataset is resident, or the samples are in the ring on the device. */
enum gt_code gt_loader_gather(struct gt_loader *l, int64_t n, int64_t length, const struct gt_step_args *step_args,
                              const struct gt_fetched *from, void *x, int buffer, int stream, struct gt_err *err);

#endif
