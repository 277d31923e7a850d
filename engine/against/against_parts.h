/* Internal to engine/against: the comparing device, for against_device.c and against_launch.c. */
#ifndef GT_AGAINST_AGAINST_PARTS_H
#define GT_AGAINST_AGAINST_PARTS_H

#include "against/against.h"
#include "against/findings.h"
#include "against/twin.h"
#include "opsig.h"
#include <pthread.h>

struct gt_against_block {
	char *p;
	size_t bytes;
};

/* A mask that the device has written, and the values of the tensor. */
struct gt_against_mask {
	const void *mask; /* address on the device */
	void *values;     /* in memory of the host; owned */
	size_t bytes;
};

struct gt_dev {
	const struct gt_backend *be; /* the device */
	struct gt_dev *dev;
	struct gt_device cpu;
	struct gt_backend self;      /* functions of this file, for gt_device.be */
	struct gt_against_spec spec;
	struct gt_findings *findings;
	struct gt_against_block *block;         /* memory of the device, to tell step arguments in it from those in host memory */
	int nblocks, cap;
	struct gt_against_mask *mask;
	int nmasks;
	uint32_t seed;               /* with spec.disturb: changes with every launch */
	pthread_mutex_t lock;        /* a loader's thread also launches */
};

struct gt_kernel {
	struct gt_dev *owner;
	struct gt_kernel *kernel;    /* that of the device */
	struct gt_twin twin;         /* ncalls is 0: not compared */
	struct gt_opsig sig;
	struct gt_judge judge;
	struct gt_finding_name name;
	char why[400];               /* why the CPU cannot compute the call */
	enum gt_opcode code;
	int nin, nout;
};

/* Launches a kernel on both devices and compares the results. The caller holds the lock. */
enum gt_code gt_against_launch(struct gt_dev *w, struct gt_kernel *k, const struct gt_launch *a, struct gt_err *err);

#endif
