/* Opens a compute device by its name, as in --device and the config key `device`.
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
	char note[512]; /* reason why "auto" chose the CPU although the machine seems to have a GPU; in all other cases a copy of info.note */
};

/* Opens a device. word: "auto" (the first GPU if it can be used, else the CPU), "cpu", "cuda", "cuda:N", "null" (plans only, computes
 * nothing), or "null:cuda" (like "null", but plans as for a GPU). opts->index is ignored; the index comes from word. Returns
 * GT_EUNAVAILABLE, with the reason, if the device cannot be used. */
enum gt_code gt_device_open(const char *word, const struct gt_dev_opts *opts, struct gt_device *out, struct gt_err *err);
void gt_device_close(struct gt_device *d);

/* Opens a plugin as gt_plugin_open() does. Use it for plugins that may load OpenMP: it sets OpenMP's environment variables first. */
enum gt_code gt_device_plugin(const char *name, const char *symbol, void **out, struct gt_err *err);

/* Returns the number of ranks that --nproc auto may start on GPUs for this device name: the number of GPUs for "auto" and "cuda", 1 if
 * the word names one GPU, 1 for "null", and 0 for the CPU. */
int gt_device_choice(const char *word);

/* Device rows and the functions that list them. engine/gtrain_report.h documents them for the command line. */
struct gt_device_row;
struct gt_build_info;
enum gt_code gt_devices(struct gt_device_row *rows, int cap, int *n, struct gt_err *err);
void gt_build_info(struct gt_build_info *out);

#endif
