/* Internal header of against_device.c and against_launch.c: the device that compares its calls with the CPU's. */
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

/* A mask that the device has written, and the tensor from which it was computed. */
struct gt_against_mask {
	const void *mask; /* address on the device */
	void *values;     /* the tensor in host memory; owned */
	size_t bytes;
};

struct gt_dev {
	const struct gt_backend *be; /* the wrapped device */
	struct gt_dev *dev;
	struct gt_device cpu;
	struct gt_backend self;      /* the functions of against_device.c; gt_device.be points to this member */
	struct gt_against_spec spec;
	struct gt_findings *findings;
	struct gt_against_block *block; /* all device memory; step arguments outside of these blocks are in host memory */
	int nblocks, cap;
	struct gt_against_mask *mask;
	int nmasks;
	uint32_t seed;               /* with spec.disturb: state of the random numbers, which changes with every launch */
	pthread_mutex_t lock;        /* protects all members, because a thread of the loader launches kernels, too */
};

struct gt_kernel {
	struct gt_dev *owner;
	struct gt_kernel *kernel;    /* the wrapped device's kernel */
	struct gt_twin twin;         /* the same call on the CPU; twin.ncalls 0: the CPU cannot compute the call, so it is not compared */
	struct gt_opsig sig;
	struct gt_judge judge;
	struct gt_finding_name name;
	char why[400];               /* reason why the CPU cannot compute the call; empty if it can */
	enum gt_opcode code;
	int nin, nout;
};

/* Launches a kernel on both devices and compares the results. The caller holds the lock. */
enum gt_code gt_against_launch(struct gt_dev *w, struct gt_kernel *k, const struct gt_launch *a, struct gt_err *err);

#endif
