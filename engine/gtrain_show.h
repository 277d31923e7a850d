/* A part of the public interface of the engine (gtrain.h): shows samples as the network gets them, or as they are in the data.
 *
 *     struct gt_shown *batch;
 *     GT_TRY(gt_show(conf, &(struct gt_show_spec){.split = "train", .step = 1, .samples = 16}, &batch, err));
 *     GT_TRY(gt_shown_write(batch, "batch.png", err));
 *     gt_shown_free(batch);
 *
 *     dataset --> loader of a run, on the CPU --> batch of step N --> u8 images, words, numbers --> terminal, PNG, JSON
 */
#ifndef GT_GTRAIN_SHOW_H
#define GT_GTRAIN_SHOW_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_arena;
struct gt_conf;

struct gt_show_spec {
	const char *split; /* "train", "valid" or "test" */
	bool plain;        /* the samples as they are in the data, before transforms, scaling and tokenizing */
	/* First step to show, from 1: an optimizer step of the run or, of another split, a batch of an evaluation. 0: step 1 of the run or, of
	 * another split, samples that are drawn from the whole split. */
	int64_t step;
	int64_t samples;   /* number of samples; if a batch has fewer: samples of the following steps, too */
	bool of_run;       /* the config is that of a run: if its data is missing, the error message explains how to set the new location of the
	                      data */
	bool one_step;     /* do not add samples of the following steps if the step has too few */
	void (*warn)(void *user, const char *text); /* receives a sentence for each sample that cannot be read and is skipped */
	void *user;
};

/* A class, and its share in the target of a sample: 1, or less if the sample is mixed (mixup, cutmix). */
struct gt_shown_share {
	int64_t class;
	const char *name; /* NULL: the class has no name */
	double share;
};

/* A number that the network gets, or a cell of a table. */
struct gt_shown_value {
	const char *name;   /* name of the column; "values[3]" without names */
	double value;       /* name of the table column, or "values[3]" if the columns have no names */
	const char *text;   /* the number; for a category, its code; NAN: the value is a text or missing */
	bool unknown;       /* the category does not occur in the training split */
	bool missing;       /* the cell is empty */
};

struct gt_shown_token {
	const char *text;
	bool unknown; /* the word is not in the vocabulary */
};

/* An image as u8 pixels, 0 ... 255, channels last. The normalization by data.mean and data.std is undone. */
struct gt_shown_image {
	int64_t c, h, w; /* shape of the image; c is 0 if the sample has no image */
	const uint8_t *pixels;
	int64_t full_h, full_w; /* size of the image in the dataset, if `plain` has reduced a large image; else h and w */
};

struct gt_shown_sample {
	int64_t index, step; /* index in the dataset; step that the sample belongs to, from 1 */
	const char *name;    /* path of its file, "FILE:LINE", or "DIR[index]" */
	bool skipped;        /* the sample cannot be read: the network gets zeros, and the sample is ignored */
	struct gt_shown_image image;
	struct gt_shown_share *share; /* [nshares], the largest first. Several labels of a sample have the share 1 each */
	int nshares;
	struct gt_shown_value *target; /* [ntargets]: numeric targets */
	int ntargets;
	struct gt_shown_value *value; /* [nvalues]: numbers and codes of the sample, in the order of the model's inputs */
	int nvalues;
	struct gt_shown_token *token; /* [ntokens], without padding */
	int ntokens, nunknown;
	const char *text; /* with plain: the text from which the tokens are made; NULL: the sample has none, or it is among `value` */
};

/* How mixup or cutmix mixes the samples of a step. */
struct gt_shown_mix {
	int64_t step;
	const char *how; /* "mixup" or "cutmix"; NULL: the step is not mixed */
	double share;    /* share of the sample itself in the mixture, 0 ... 1 */
};

struct gt_shown {
	const char *name, *split, *where; /* name of the config; split; where the data is */
	bool plain;
	int64_t step, epoch, steps; /* first step and its epoch, from 1; steps of an epoch */
	int64_t drawn_from;         /* number of samples of the split from which the samples were drawn; 0: the samples are those of a step */
	int64_t batch;              /* number of samples of a step */
	const char *transforms;     /* transforms of the images, for example "pad_crop, hflip, mixup"; "": none */
	struct gt_shown_mix *mix;   /* [nmix], one for each step */
	int nmix;
	/* minimum, maximum, mean and standard deviation of the image values that the network gets, normalized by data.mean and data.std; NAN
	 * with `plain` and without images */
	double least, most, mean, std;
	struct gt_shown_sample *sample; /* [n] in the order of the batch */
	int n;
	struct gt_arena *arena;
};

/* Reads samples with the loader of a run, as one rank on the CPU; the network's input does not depend on ranks and device. Plans and trains
 * nothing. GT_EUSAGE: the run or the split has fewer steps than spec->step. GT_ENOINPUT: the split has no samples. The caller frees *out
 * with gt_shown_free. */
enum gt_code gt_show(const struct gt_conf *c, const struct gt_show_spec *spec, struct gt_shown **out, struct gt_err *err);
void gt_shown_free(struct gt_shown *b); /* does nothing if b is NULL */

/* Writes line `line` (0 or 1) of the caption of a sample: "cat", "cat 0.71" and "+ dog 0.29", "price 12.5". Returns buf. */
const char *gt_shown_caption(const struct gt_shown_sample *s, int line, char *buf, size_t size);

/* Scales an image to w x h pixels of RGB, out[3 * w * h]: each pixel is the mean of the area that it covers. Of more than three channels,
 * the first three are used; of two, the first. */
void gt_shown_scale(const struct gt_shown_image *image, int64_t w, int64_t h, uint8_t *out);

/* Checks the file name for gt_shown_write. GT_EUSAGE: the name does not end in .png. option: name of the option for the message,
 * "--out". */
enum gt_code gt_shown_check_path(const char *path, const char *option, struct gt_err *err);
/* Returns whether the image shows this class name. The font has only ASCII and the letters of Latin-1; other classes are shown by number,
 * as "class 3". */
bool gt_shown_is_drawn(const char *name);
/* Replaces a file by a PNG image: a mosaic of all images with their captions. GT_EUSAGE: the samples have no images. */
enum gt_code gt_shown_write(const struct gt_shown *b, const char *path, struct gt_err *err);

#endif
