/* Opens a compute device by the name that --device and the config key `device` take.
 *
 *     struct gt_device d;
 *     gt_device_open("auto", &opts, &d, err);
 *     d.be->alloc(d.dev, bytes, &memory, err);
 *     gt_device_close(&d);
 */
#ifndef GT_EXEC_DEVICE_H
#define GT_EXEC_DEVICE_H

#include "backend.h"

struct gt_device {
	const struct gt_backend *be;
	struct gt_dev *dev;
	struct gt_devinfo info;
	char note[512]; /* why "auto" chose the CPU although the machine seems to have a GPU; empty: it does not apply */
};

/* Opens a device. word: "auto" (the first CUDA device, else the CPU; the first line of a run names it), "cpu", "cuda", "cuda:N" or "null".
 * The index comes from word; opts->index is ignored. GT_EUNAVAILABLE: the device cannot be used, with the reason. */
enum gt_code gt_device_open(const char *word, const struct gt_dev_opts *opts, struct gt_device *out, struct gt_err *err);
void gt_device_close(struct gt_device *d);

/* Opens a plugin as gt_plugin_open() does. Use it for plugins that may load OpenMP: it sets OpenMP's environment variables first. */
enum gt_code gt_device_plugin(const char *name, const char *symbol, void **out, struct gt_err *err);

/* Number of GPUs that `word` allows, for --nproc auto: 1 if it names one GPU, 0 for the CPU; 1 for "null". */
int gt_device_choice(const char *word);

#endif
