/* Opening a device by the word that --device and `device =` take. */
#ifndef GT_RUN_DEVICE_H
#define GT_RUN_DEVICE_H

#include "backend.h"

struct gt_device {
	const struct gt_backend *be;
	struct gt_dev *dev;
	struct gt_devinfo info;
};

/* word: "auto" (the first CUDA device, else the CPU: the run's first line says which), "cpu", "cuda", "cuda:N", "null".
 * opts: the index is taken from the word. GT_EUNAVAILABLE with the reason. */
enum gt_code gt_device_open(const char *word, const struct gt_dev_opts *opts, struct gt_device *out, struct gt_err *err);
void gt_device_close(struct gt_device *d);

#endif
