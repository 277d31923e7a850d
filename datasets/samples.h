/* Reads samples of a dataset one at a time through the transforms of a split, from encoded files or from an array.
 *
 *     gt_samples_open(&spec, &r, err);
 *     gt_samples_read(r, thread, i, epoch, out, err);        out: gt_samples_row(&spec) bytes; each thread has its own index
 *     gt_samples_close(r);
 */
#ifndef GT_DATASETS_SAMPLES_H
#define GT_DATASETS_SAMPLES_H

#include "dataset.h"
#include "image/recipe_draw.h"
#include "source.h"

struct gt_samples_spec {
	const struct gt_dataset *data; /* not owned */
	struct gt_transform_list list; /* the transforms that are applied to each image; not owned */
	int64_t c, h, w;               /* shape of an image after the transforms */
	struct gt_recipe_split split;  /* division of the transforms between these threads and gather.recipes */
	uint64_t seed;
	int threads;                   /* number of threads that read and decode samples */
};

/* Maximum bytes of buffers that each thread keeps between two samples. While a thread reads a sample, it may use more. */
#define GT_SAMPLES_KEEP (GT_IMAGE_SCRATCH_KEEP + GT_SOURCE_KEEP)

/* Returns the bytes of an output row: h * w * c or, with split.on, a recipe and pixels (kernels/recipe.h). */
static inline size_t gt_samples_row(const struct gt_samples_spec *s)
{
	return (size_t)(s->split.on ? s->split.row : s->c * s->h * s->w);
}

struct gt_samples;

enum gt_code gt_samples_open(const struct gt_samples_spec *spec, struct gt_samples **out, struct gt_err *err);
void gt_samples_close(struct gt_samples *r); /* does nothing if r is NULL */

/* Writes sample i (0 ... data->n - 1) to out, transformed with the random draws of the epoch. GT_EDATA: the sample cannot be read or
 * decoded; the message names its file. */
enum gt_code gt_samples_read(struct gt_samples *r, int thread, int64_t i, uint64_t epoch, uint8_t *out, struct gt_err *err);

#endif
