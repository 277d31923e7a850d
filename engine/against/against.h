/* A device that computes every call twice: on the device of the session, and on the CPU with the same inputs. It compares the results.
 *
 *     gt_against_wrap(&device, &spec, &opts, err);          before the session makes its plans; device.be is now the comparing backend
 *     ... plan, load, train, evaluate ...                   each launch is compared
 *     gt_against_write(&device, "operations-0.jsonl", err); the findings, one JSON object a line
 *     gt_device_close(&device);                             closes both devices
 *
 *     a launch:   inputs -----------+--> kernel of the device ------> results --.
 *                                   |                                           +--> judge.h: within the tolerance?
 *                                   `--> kernels of the CPU (twin.h) -> results --'         |
 *                                                                      `--> written to the device's memory
 *
 * Each call gets the CPU's results of the calls before it, because the results of the CPU replace those of the device. An earlier
 * difference therefore neither hides nor causes a later one. A call that the CPU cannot compute is listed as not compared. */
#ifndef GT_AGAINST_AGAINST_H
#define GT_AGAINST_AGAINST_H

#include "exec/device.h"

struct gt_against_spec {
	/* Type in which the CPU computes calls that the device computes in 16 bits; GT_DTYPE_COUNT: the device's type, or f32 if the CPU
	 * does not support it. */
	enum gt_dtype type;
	bool tf32; /* the device rounds the operands of f32 products to tf32 */
	/* 0: compare the results. Else the seed of random numbers, and nothing is compared: each element of each result is replaced by an
	 * adjacent floating-point number, as another rounding could have given it. Only for a device that uses host memory. */
	int disturb;
};

/* Wraps an open device and opens the CPU. On failure *d is unchanged. opts: options with which *d was opened. */
enum gt_code gt_against_wrap(struct gt_device *d, const struct gt_against_spec *spec, const struct gt_dev_opts *opts, struct gt_err *err);

/* Returns the device that a wrapped device computes on; for other devices, d->dev. */
struct gt_dev *gt_against_inner(const struct gt_device *d);

/* Writes the findings of a wrapped device to a file, one JSON object a line: findings.h describes them. */
enum gt_code gt_against_write(const struct gt_device *d, const char *path, struct gt_err *err);

#endif
