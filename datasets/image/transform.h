/* Decodes one image and applies a list of transforms to it. The loader calls it from several threads; `gtrain predict` calls it for its
 * files.
 *
 *     gt_image_scratch_open(&scratch, err);                                  one for each thread
 *     struct gt_transform_list list = {conf->data.augment, conf->data.naugment};
 *     struct gt_sample_key key = {seed, epoch, sample};
 *     gt_image_make(&(struct gt_image_job){.name = "a.jpg", .raw = file, .size = bytes, .list = list, .key = &key, .c = 3, …}, err);
 *     gt_image_scratch_close(scratch);
 *
 *     encoded file ── decoder ──> u8 [H, W, C] ── transform 0 ── transform 1 ── … ──> out, u8 [h, w, c]
 *                        └ decodes only the part, and only the DCT scale, that a random_resized_crop, resize or center_crop needs
 *
 * Pixels are u8 from the decoder to the output; the gather kernel normalises them (data.mean, data.std). Results equal torchvision's
 * transforms on PIL images. Every random decision is a pure function of (seed, epoch, sample, index in the list). */
#ifndef GT_IMAGE_TRANSFORM_H
#define GT_IMAGE_TRANSFORM_H

#include "base/err.h"
#include "base/types.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each type has a word, which is the value of the key "type" of a transform in a config; types and words have the same order. */
#define GT_TRANSFORM_WORDS                                                                                                       \
	"pad_crop|hflip|random_resized_crop|resize|center_crop|vflip|rotate|color_jitter|grayscale|random_erasing|trivial_augment|" \
	"rand_augment|mixup|cutmix"
enum gt_transform_type {
	GT_TF_PAD_CROP,
	GT_TF_HFLIP,
	GT_TF_RANDOM_RESIZED_CROP,
	GT_TF_RESIZE,
	GT_TF_CENTER_CROP,
	GT_TF_VFLIP,
	GT_TF_ROTATE,
	GT_TF_COLOR_JITTER,
	GT_TF_GRAYSCALE,
	GT_TF_RANDOM_ERASING,
	GT_TF_TRIVIAL_AUGMENT,
	GT_TF_RAND_AUGMENT,
	GT_TF_MIXUP, /* mixup and cutmix mix pairs of images of a batch: see gt_transform_single */
	GT_TF_CUTMIX,
	GT_TF_COUNT
};
enum gt_interpolation { GT_INTERP_NEAREST, GT_INTERP_BILINEAR, GT_INTERP_BICUBIC };

/* One entry of a list of transforms in a config. A field that the type does not use is 0. */
struct gt_transform {
	int type;               /* enum gt_transform_type */
	int64_t size[2];        /* random_resized_crop, resize, center_crop: height and width in pixels; [1] = 0: a single size was given, which
	                           is the shorter side for resize, and the side of a square for crops */
	double scale[2];        /* random_resized_crop, random_erasing: lowest and highest share of the image's area */
	double ratio[2];        /* random_resized_crop, random_erasing: lowest and highest ratio of the width to the height */
	int interpolation;      /* enum gt_interpolation; random_resized_crop, resize: bilinear or bicubic, with antialiasing; rotate,
	                           trivial_augment, rand_augment: nearest or bilinear */
	int64_t pad;            /* pad_crop: number of pixels added on every side */
	int mode;               /* pad_crop: value of the padded pixels, 0: black (mode "constant"), 1: mirrored image (mode "reflect") */
	double p;               /* hflip, vflip, grayscale, random_erasing: probability; mixup, cutmix: probability for a batch */
	double alpha;           /* mixup, cutmix: the share of an image is drawn from Beta(alpha, alpha) */
	bool alternate;         /* hflip: see gt_aug_of */
	double degrees;         /* rotate: the angle is drawn from -degrees ... degrees */
	double brightness;      /* color_jitter: the factor is drawn from max(0, 1 - x) ... 1 + x, for contrast and saturation too */
	double contrast, saturation;
	double hue;             /* color_jitter: the shift is drawn from -hue ... hue, in turns; at most 0.5 */
	int64_t ops, magnitude; /* rand_augment: number of operations; index of their strength, below `bins` */
	int64_t bins;           /* trivial_augment, rand_augment: number of strengths of each operation */
	bool random;            /* random_erasing: fill with random bytes */
	struct gt_floats fill;  /* random_erasing, rotate, trivial_augment, rand_augment: colour of new pixels, 0 ... 1, one value per channel
	                           or one for all; empty: data.mean for random_erasing, else black */
	struct gt_floats mean;  /* random_erasing: copy of data.mean, not a key of the config */
};

struct gt_transform_list {
	const struct gt_transform *t;
	int n;
};

/* Identifies a sample in a run. gt_aug_of (kernels/aug.h) uses the same triple. */
struct gt_sample_key {
	uint64_t seed, epoch, sample; /* sample: index in the dataset */
};

/* Memory for images in progress. It grows with the largest image and is reused for all samples. Each thread needs its own scratch. */
struct gt_image_scratch;
enum gt_code gt_image_scratch_open(struct gt_image_scratch **out, struct gt_err *err);
void gt_image_scratch_close(struct gt_image_scratch *s); /* accepts NULL */
/* Returns the number of bytes in the buffers that the scratch owns now: between calls, at most GT_IMAGE_SCRATCH_KEEP. */
#define GT_IMAGE_SCRATCH_KEEP ((size_t)24 << 20)
size_t gt_image_scratch_bytes(const struct gt_image_scratch *s);

struct gt_recipe_split;
/* An image, and the transforms to apply to it. */
struct gt_image_job {
	const char *name;                    /* name of the image, at the beginning of messages */
	const uint8_t *raw;                  /* an encoded file of `size` bytes (JPEG, PNG or WebP, recognised by its content); NULL: pixels */
	size_t size;
	const uint8_t *pixels;               /* without raw: an array of ih * iw * ic bytes, channels last */
	int64_t ih, iw;
	int ic;
	struct gt_transform_list list;       /* empty: the image must have h x w pixels */
	const struct gt_sample_key *key;     /* NULL: no transform of the list is random */
	const struct gt_recipe_split *split; /* division of the list (recipe_draw.h); NULL: gt_image_make applies the whole list */
	int c;                               /* channels of the result: 1 or 3; if c = ic and no transform changes colours, any count */
	int64_t h, w;
	struct gt_image_scratch *scratch;
	uint8_t *out;                        /* h * w * c bytes, channels last; with split->on, a row of split->row bytes */
};
/* Decodes an image, converts it to c channels, applies the list, and writes the result to out. GT_EDATA: the file is damaged, has another
 * format, or its size after the list is not h x w. A file may be accepted if the damage is in a part that the list does not need. */
enum gt_code gt_image_make(const struct gt_image_job *job, struct gt_err *err);

/* Checks that the list can be applied and gives images of c x h x w. ih, iw: common size of the input images; 0: they can have any size. On
 * failure returns GT_ECONFIG, sets *at to the index of the wrong transform, or to list.n if the result as a whole is wrong, and writes to
 * `why` a sentence that begins with "expected". */
enum gt_code gt_transform_check(struct gt_transform_list list, int64_t ih, int64_t iw, int c, int64_t h, int64_t w, int *at, char *why,
                                size_t size);
/* Returns a list without its last transforms mixup and cutmix, which mix pairs of images of a batch (gt_transform_check). Pass only this
 * part to the functions above. */
struct gt_transform_list gt_transform_single(struct gt_transform_list list);
/* Returns whether the gather kernel of the backend can apply the list: it has at most one pad_crop and one hflip, and nothing else. */
bool gt_transform_in_kernel(struct gt_transform_list list);
/* Writes the word of a type as in a config, "pad_crop", to buf. Returns buf. */
const char *gt_transform_word(int type, char buf[32]);

/* The operations of trivial_augment and rand_augment, in torchvision's order. */
enum gt_augment_op {
	GT_AUG_IDENTITY,
	GT_AUG_SHEAR_X,
	GT_AUG_SHEAR_Y,
	GT_AUG_TRANSLATE_X,
	GT_AUG_TRANSLATE_Y,
	GT_AUG_ROTATE,
	GT_AUG_BRIGHTNESS,
	GT_AUG_COLOR,
	GT_AUG_CONTRAST,
	GT_AUG_SHARPNESS,
	GT_AUG_POSTERIZE,
	GT_AUG_SOLARIZE,
	GT_AUG_AUTOCONTRAST,
	GT_AUG_EQUALIZE,
	GT_AUG_OP_COUNT
};

/* The parameters that a transform draws for one sample; 0 where the type does not use a field. */
#define GT_MAX_DRAWN_OPS 16
struct gt_transform_draw {
	bool apply;                       /* hflip, vflip, grayscale, random_erasing: false: the image stays unchanged */
	int64_t top, left, height, width; /* random_resized_crop, random_erasing: a box in pixels; pad_crop: position of the crop in the
	                                     unpadded image, which is negative in the padding */
	double angle;                     /* rotate: degrees, counter-clockwise */
	int order[4];                     /* color_jitter: order of 0 brightness, 1 contrast, 2 saturation, 3 hue */
	double factor[4];                 /* color_jitter: factors, indexed by 0 ... 3 as in `order`; for hue the shift in turns */
	int nops;                         /* trivial_augment, rand_augment: number of operations */
	int op[GT_MAX_DRAWN_OPS];         /* enum gt_augment_op */
	double strength[GT_MAX_DRAWN_OPS]; /* magnitude of each operation, with its sign */
	uint64_t noise;                   /* random_erasing with random: key of the random bytes that fill the box */
};
/* Draws the parameters of transform list.t[index] for an image of h x w pixels. */
void gt_transform_draw(struct gt_transform_list list, int index, const struct gt_sample_key *key, int64_t h, int64_t w,
                       struct gt_transform_draw *out);

#endif
