/* The parts of the loader (loader.h) that its files share.
 *
 *     loader_order.c   the sequence of parts, and the orders of epochs
 *     loader_fetch.c   samples that are fetched: batches that threads read ahead, and their copies to the device
 *     loader_columns.c the kernels that gather images, targets and other numbers of the samples
 *     loader_gather.c  the loader itself: gathers batches, with or without a thread that works ahead */
#ifndef GT_EXEC_LOADER_PARTS_H
#define GT_EXEC_LOADER_PARTS_H

#include "exec/loader.h"
#include <pthread.h>

/* maximum number of different sizes of a part, in full micro-batches and in the last one of an epoch, for each length of sequences */
#define GT_LOADER_SIZES (8 * GT_MAX_LENGTHS)

/* The order of the samples in one epoch. It is in row epoch % 2 of the arrays loader.orders (host) and orders_dev (device). */
struct gt_order {
	int64_t epoch;
	int64_t *host;
	bool sent;    /* the copy of this order to the device is queued */
	int64_t part; /* with fetch on a device: number of non-empty parts from the start of the loader to the end of this epoch */
};

/* A position in the sequence of parts that the loader delivers, epoch after epoch. */
struct gt_loader_place {
	int64_t epoch, cursor; /* cursor: position in the epoch at which the micro-batch begins */
	int part;
};

/* A column as the loader delivers it. */
struct gt_loader_column {
	struct gt_column of; /* what the dataset has; with mixing of labels, what is computed from them, and of.host is NULL */
	int operand;         /* index in gt_loader_size.kernel; 0: the kernel of the images gathers this column too; -1: the model does not
	                        read it */
	enum gt_dtype to;    /* dtype in a batch */
	void **out;          /* [nbuf] */
	char *staged;        /* with fetch: [slots][gt_loader.rows] in host memory: the rows of batches that are read ahead */
	char *ring;          /* [ring_parts][most], in device memory; NULL: the device uses host memory */
};

/* The kernels that gather a batch of n samples: of the images, then of columns. */
struct gt_loader_size {
	int64_t n, length; /* length: numbers of each sample in the column of sequences; 0: there is none */
	struct gt_kernel *kernel[1 + GT_MAX_COLUMNS];
};

struct gt_loader {
	struct gt_loader_spec spec;
	const struct gt_backend *be;
	struct gt_dev *dev;
	bool longest;    /* all sequences are padded to the longest length */
	int64_t samples; /* number of samples that are used in an epoch */
	int64_t row;     /* number of positions in the order of an epoch; at least samples */
	struct gt_order order[2];
	struct gt_order counted; /* the order that gt_loader_weight uses, because the producer thread may write the two others at any time */
	int64_t *orders, *orders_dev; /* [2 * row]: the orders in host memory and in device memory; equal if the device uses host memory */
	struct gt_loader_size gather[GT_LOADER_SIZES];
	int nsizes;
	struct gt_loader_column column[GT_MAX_COLUMNS]; /* the target, then the dataset's fields */
	int ncolumns;
	const struct gt_column *sequences; /* the column whose rows have different lengths; NULL: there is none */
	int nbuf;
	void **x;           /* [nbuf] buffers of images; NULL: samples have no image */
	int slot;           /* without a producer thread: index of the next buffer */
	struct gt_loader_place next; /* the part that the caller of gt_loader_next gets next */

	/* State of the producer. If the producer is a thread, `lock` protects it. */
	pthread_t thread;
	bool threaded, stop;
	pthread_mutex_t lock;
	pthread_cond_t filled, freed;
	struct gt_loader_place ahead;              /* the part that the producer gathers next */
	struct gt_batch *ring;           /* [nbuf] batches */
	int head, count;                 /* index of the first ready batch; number of ready batches */
	int lent;                        /* number of batches before head that have been delivered and must stay valid */
	struct gt_err failure;

	/* With gt_loader_spec.fetch: the batches that are read ahead. They have the host's memory; ahead is the next part to queue. */
	struct gt_fetcher *fetcher;      /* NULL: the dataset is resident */
	uint8_t *staged;                 /* [slots][rows] images */
	int64_t *iota;                   /* 0, 1, …, most - 1: the operand index of a gather from a staged batch */
	int64_t most;                    /* maximum number of samples of a part */
	int64_t rows;                    /* maximum number of rows that are read for a part: with mixing, its partners too */
	int64_t *list;                   /* [rows] */
	/* With mixing of labels: those of the rows of each slot, from which the target's column is computed, and those of one part. */
	int32_t *staged_labels, *labels; /* [slots][rows]; [rows] */
	/* On a device with its own memory: the ring of parts there, and the rows of the ring in place of orders_dev. */
	uint8_t *ring_rows;              /* [ring_parts][most] images, in device memory; NULL: the device uses host memory */
	int64_t *map;                    /* [2 * row], in host memory: the row of the ring for each position; copied to orders_dev */
	int ring_parts;
	int64_t staged_parts;            /* number of parts that have been copied to the ring since the start */
	int copying;                     /* number of the fetcher's oldest batches that a copy may still read */
	struct gt_loader_place begin;              /* where the loader started */
};

/* ---- loader_order.c ------------------------------------------------------------------------------------------------------------ */
/* Returns the part at position p: number of samples, and their position in the order of the epoch; x and target are NULL. */
struct gt_batch gt_loader_part_at(const struct gt_loader *l, const struct gt_loader_place *p);
/* Moves p to the next part of this loader. */
void gt_loader_advance(const struct gt_loader *l, struct gt_loader_place *p);
/* Does the same as gt_loader_part_at for the first part from position p on that is not empty (with fill: for the part at p). */
struct gt_batch gt_loader_next_part(const struct gt_loader *l, struct gt_loader_place *p);
/* Computes the order of an epoch and queues its copy to the device, unless that has been done. */
enum gt_code gt_loader_make_order(struct gt_loader *l, int64_t epoch, struct gt_err *err);
/* Returns the length of the sequences in the batch that has position `cursor`, in an order of the samples; 0: there are none. */
int64_t gt_loader_length_at(const struct gt_loader *l, const int64_t *order, int64_t cursor);
/* Returns whether the weight of a sample depends on its label. */
bool gt_loader_weighs_labels(const struct gt_loader *l);

/* ---- loader_fetch.c ------------------------------------------------------------------------------------------------------------ */
enum gt_code gt_loader_open_fetcher(struct gt_loader *l, struct gt_err *err);
void gt_loader_close_fetcher(struct gt_loader *l); /* does nothing if the dataset is resident */
/* Queues batches for the fetcher until gt_loader_spec.ahead batches are queued beyond those that `used` counts. */
enum gt_code gt_loader_fetch_ahead(struct gt_loader *l, int used, struct gt_err *err);
/* Gathers batch b into b->x, whose buffer has index slot, from the samples that were read for it. The device uses host memory. */
enum gt_code gt_loader_gather_fetched(struct gt_loader *l, const struct gt_batch *b, const struct gt_step_args *step_args, int slot,
                                      struct gt_err *err);
/* Queues the copy of a fetched part to the ring on the device. */
enum gt_code gt_loader_stage(struct gt_loader *l, const struct gt_batch *b, struct gt_err *err);
/* Makes the batches reusable that have been copied to the device. The copies wait for nothing on the device, so this takes no longer than
 * they do. */
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
                              const struct gt_fetched *from, void *x, int slot, int stream, struct gt_err *err);

#endif
