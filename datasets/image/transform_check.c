/* Checks a list of transforms before any image is read. */
#include "image/decode.h"
#include "image/transform.h"
#include "opcall.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *gt_transform_word(int type, char buf[32])
{
	const char *p = GT_TRANSFORM_WORDS;
	for (; type > 0; type--)
		p += strcspn(p, "|") + 1;
	snprintf(buf, 32, "%.*s", (int)strcspn(p, "|"), p);
	return buf;
}

bool gt_transform_in_kernel(struct gt_transform_list list)
{
	int n[2] = {0};
	for (int i = 0; i < list.n; i++)
		if (list.t[i].type > GT_TF_HFLIP || ++n[list.t[i].type] > 1)
			return false;
	return true;
}

struct gt_transform_list gt_transform_single(struct gt_transform_list list)
{
	while (list.n && list.t[list.n - 1].type >= GT_TF_MIXUP)
		list.n--;
	return list;
}

#define WRONG(...) return snprintf(why, size, __VA_ARGS__), GT_ECONFIG

/* Checks the parameters of one transform. */
static enum gt_code check_one(struct gt_transform_list list, int i, int c, char *why, size_t size)
{
	const struct gt_transform *t = &list.t[i];
	char word[32];
	bool resizes = t->type == GT_TF_RANDOM_RESIZED_CROP || t->type == GT_TF_RESIZE,
	     warps = t->type == GT_TF_ROTATE || t->type == GT_TF_TRIVIAL_AUGMENT || t->type == GT_TF_RAND_AUGMENT,
	     colours = t->type == GT_TF_COLOR_JITTER || t->type == GT_TF_GRAYSCALE || (warps && t->type != GT_TF_ROTATE);
	gt_transform_word(t->type, word);
	bool mixes = t->type >= GT_TF_MIXUP;
	for (int k = 0; k < i && (t->type <= GT_TF_HFLIP || mixes); k++)
		if (list.t[k].type == t->type)
			WRONG("expected at most one transform of type %s, got more", word);
	if (i && !mixes && list.t[i - 1].type >= GT_TF_MIXUP)
		WRONG("expected mixup and cutmix at the end of the list, because they mix finished images, got %s after them", word);
	if (i && mixes && list.t[i - 1].type >= GT_TF_MIXUP && list.t[i - 1].p + t->p > 1)
		WRONG("expected the probabilities p of mixup and cutmix to have a sum of at most 1, got %g and %g", list.t[i - 1].p, t->p);
	if (t->scale[0] > t->scale[1])
		WRONG("expected scale = [lowest, highest], got [%g, %g]", t->scale[0], t->scale[1]);
	if (t->ratio[0] > t->ratio[1])
		WRONG("expected ratio = [lowest, highest], got [%g, %g]", t->ratio[0], t->ratio[1]);
	if (resizes && t->interpolation == GT_INTERP_NEAREST)
		WRONG("expected interpolation = \"bilinear\" or \"bicubic\" for %s, got \"nearest\"", word);
	if (warps && t->interpolation == GT_INTERP_BICUBIC)
		WRONG("expected interpolation = \"nearest\" or \"bilinear\" for %s, got \"bicubic\"", word);
	if (t->type == GT_TF_RAND_AUGMENT && t->magnitude >= t->bins)
		WRONG("expected a magnitude < bins = %" PRId64 ", got %" PRId64, t->bins, t->magnitude);
	if (t->fill.n > 1 && t->fill.n != c)
		WRONG("expected 1 value in fill, or a value for each of %d channels, got %d", c, t->fill.n);
	if (c > GT_MAX_CHANNELS)
		WRONG("expected at most %d channels, got %d", GT_MAX_CHANNELS, c);
	if (colours && c != 1 && c != 3)
		WRONG("expected images of 1 or 3 channels for %s, got %d", word, c);
	return GT_OK;
}

/* Computes the size of an image after each transform; 0: the size depends on the file. */
enum gt_code gt_transform_check(struct gt_transform_list list, int64_t ih, int64_t iw, int c, int64_t h, int64_t w, int *at, char *why,
                                size_t size)
{
	int64_t least = ih && iw ? ih < iw ? ih : iw : 1; /* the image has at least this number of rows and columns */
	for (int i = 0; i < list.n; i++) {
		const struct gt_transform *t = &list.t[i];
		*at = i;
		if (check_one(list, i, c, why, size) != GT_OK)
			return GT_ECONFIG;
		if (t->type == GT_TF_RESIZE && !t->size[1] && ih) { /* resize the shorter side; the other side keeps the proportion */
			int64_t shorter = ih < iw ? ih : iw, longer = ih < iw ? iw : ih, side = t->size[0] * longer / shorter;
			bool wide = iw > ih;
			ih = wide ? t->size[0] : side;
			iw = wide ? side : t->size[0];
			least = t->size[0];
		} else if (t->type == GT_TF_RESIZE && !t->size[1]) {
			least = t->size[0];
		} else if (t->type == GT_TF_RESIZE || t->type == GT_TF_RANDOM_RESIZED_CROP || t->type == GT_TF_CENTER_CROP) {
			ih = t->size[0];
			iw = t->size[1] ? t->size[1] : t->size[0];
			least = ih < iw ? ih : iw;
		} else if (t->type == GT_TF_PAD_CROP && t->mode == 1 && t->pad >= least) {
			if (least > 1 || ih)
				WRONG("expected a pad smaller than the image, because the pad mirrors the image's edge, got %" PRId64, t->pad);
			WRONG("expected a resize, random_resized_crop or center_crop before pad_crop, because the pad mirrors the image's edge and "
			      "must be smaller than the image");
		}
		if (ih > GT_IMAGE_MAX_SIDE || iw > GT_IMAGE_MAX_SIDE || (ih && iw > GT_IMAGE_MAX_PIXELS / ih))
			WRONG("expected at most %" PRId64 " pixels, got %" PRId64 " x %" PRId64, GT_IMAGE_MAX_PIXELS, ih, iw);
	}
	*at = list.n;
	if (!ih)
		WRONG("expected images of %" PRId64 " x %" PRId64 " pixels, but files can have any size; add a random_resized_crop, a resize of "
		      "both sides or a center_crop", h, w);
	if (ih != h || iw != w)
		WRONG("expected images of %" PRId64 " x %" PRId64 " pixels, as in model.input, got %" PRId64 " x %" PRId64
		      " from the last transform that changes the size", h, w, ih, iw);
	return GT_OK;
}
