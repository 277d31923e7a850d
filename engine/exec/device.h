/* Opening a device by the word that --device and `device =` take. */
#ifndef GT_EXEC_DEVICE_H
#define GT_EXEC_DEVICE_H

#include "backend.h"

struct gt_device {
	const struct gt_backend *be;
	struct gt_dev *dev;
	struct gt_devinfo info;
	char note[512]; /* "auto" took the CPU though a GPU seems to be there: why; empty: nothing to say */
};

/* word: "auto" (the first CUDA device, else the CPU: the run's first line says which), "cpu", "cuda", "cuda:N", "null".
 * opts: the index is taken from the word. GT_EUNAVAILABLE with the reason. */
enum gt_code gt_device_open(const char *word, const struct gt_dev_opts *opts, struct gt_device *out, struct gt_err *err);
void gt_device_close(struct gt_device *d);

/* gt_plugin_open() for what may bring OpenMP's threads along, whose manners are set before that. */
enum gt_code gt_device_plugin(const char *name, const char *symbol, void **out, struct gt_err *err);

/* How many devices the word leaves to choose from, as --nproc auto counts them: GPUs, 1 where it names one, 0 for the CPU. */
int gt_device_choice(const char *word);

#endif
