/* The random parameters of transforms. Each transform of a list has its own random stream, so that a change of one entry does not change
 * the draws of other entries. pad_crop and hflip draw the same values as the gather kernel (kernels/aug.h) at any index. */
#include "aug.h"
#include "image/image_work.h"
#include <math.h>
#include <string.h>

struct numbers {
	uint64_t key, epoch, sample;
	uint32_t drawn; /* number of random values that were drawn from this stream */
	struct gt_philox block;
};

static struct numbers open_numbers(const struct gt_sample_key *key, int index)
{
	return (struct numbers){gt_rng_key(key->seed, GT_RNG_TRANSFORM, (uint32_t)index), key->epoch, key->sample, 0, {{0}}};
}

static uint32_t next_number(struct numbers *n)
{
	if (n->drawn % 4 == 0)
		n->block = gt_rng_draw(n->key, (uint32_t)n->epoch, (uint32_t)n->sample, (uint32_t)(n->sample >> 32), n->drawn / 4);
	return n->block.v[n->drawn++ % 4];
}

static double draw_uniform(struct numbers *n, double from, double to)
{
	return from + (to - from) * ((double)next_number(n) * 0x1p-32);
}

/* Draws an integer from 0 ... count - 1. */
static int64_t draw_below(struct numbers *n, int64_t count)
{
	return (int64_t)((uint64_t)next_number(n) * (uint64_t)count >> 32);
}

/* torchvision's RandomResizedCrop.get_params: ten attempts, then the largest centred part with an allowed ratio. */
static void draw_resized_crop(const struct gt_transform *t, struct numbers *n, int64_t h, int64_t w, struct gt_transform_draw *d)
{
	for (int i = 0; i < 10; i++) {
		double area = (double)h * (double)w * draw_uniform(n, t->scale[0], t->scale[1]);
		double ratio = exp(draw_uniform(n, log(t->ratio[0]), log(t->ratio[1])));
		double width = rint(sqrt(area * ratio)), height = rint(sqrt(area / ratio));
		if (width > 0 && width <= (double)w && height > 0 && height <= (double)h) {
			d->width = (int64_t)width;
			d->height = (int64_t)height;
			d->top = draw_below(n, h - d->height + 1);
			d->left = draw_below(n, w - d->width + 1);
			return;
		}
	}
	double ratio = (double)w / (double)h;
	d->width = ratio > t->ratio[1] ? (int64_t)rint((double)h * t->ratio[1]) : w;
	d->height = ratio < t->ratio[0] ? (int64_t)rint((double)w / t->ratio[0]) : h;
	d->width = d->width < 1 ? 1 : d->width;
	d->height = d->height < 1 ? 1 : d->height;
	d->top = (h - d->height) / 2;
	d->left = (w - d->width) / 2;
}

/* torchvision's RandomErasing.get_params: ten attempts; if none of them fits, the image stays as it is. */
static void draw_erasing(const struct gt_transform *t, struct numbers *n, int64_t h, int64_t w, struct gt_transform_draw *d)
{
	if (draw_uniform(n, 0, 1) >= t->p)
		return;
	for (int i = 0; i < 10; i++) {
		double area = (double)h * (double)w * draw_uniform(n, t->scale[0], t->scale[1]);
		double ratio = exp(draw_uniform(n, log(t->ratio[0]), log(t->ratio[1])));
		/* torchvision's RandomErasing divides the height by the width, RandomResizedCrop the width by the height */
		double height = rint(sqrt(area * ratio)), width = rint(sqrt(area / ratio));
		if (height >= (double)h || width >= (double)w)
			continue;
		d->apply = height > 0 && width > 0;
		d->height = (int64_t)height;
		d->width = (int64_t)width;
		d->top = draw_below(n, h - d->height + 1);
		d->left = draw_below(n, w - d->width + 1);
		d->noise = (uint64_t)next_number(n) << 32;
		d->noise |= next_number(n);
		return;
	}
}

static void draw_jitter(const struct gt_transform *t, struct numbers *n, struct gt_transform_draw *d)
{
	const double most[] = {t->brightness, t->contrast, t->saturation};
	for (int i = 0; i < 4; i++)
		d->order[i] = i;
	for (int i = 3; i > 0; i--) {
		int k = (int)draw_below(n, i + 1), old = d->order[i];
		d->order[i] = d->order[k];
		d->order[k] = old;
	}
	for (int i = 0; i < 3; i++)
		d->factor[i] = draw_uniform(n, most[i] > 1 ? 0 : 1 - most[i], 1 + most[i]);
	d->factor[3] = draw_uniform(n, -t->hue, t->hue);
}

/* The strengths of torchvision's RandAugment and TrivialAugmentWide (_augmentation_space). The strengths of an operation are evenly spaced
 * from `from` to `to`; translations are in pixels, or relative to the image size. */
struct operation {
	bool has_strength, has_sign;
	double rand_from, rand_to, wide_from, wide_to;
};
static const struct operation operations[GT_AUG_OP_COUNT] = {
    [GT_AUG_SHEAR_X] = {true, true, 0, 0.3, 0, 0.99},      [GT_AUG_SHEAR_Y] = {true, true, 0, 0.3, 0, 0.99},
    [GT_AUG_TRANSLATE_X] = {true, true, 0, 0, 0, 32},      [GT_AUG_TRANSLATE_Y] = {true, true, 0, 0, 0, 32},
    [GT_AUG_ROTATE] = {true, true, 0, 30, 0, 135},         [GT_AUG_BRIGHTNESS] = {true, true, 0, 0.9, 0, 0.99},
    [GT_AUG_COLOR] = {true, true, 0, 0.9, 0, 0.99},        [GT_AUG_CONTRAST] = {true, true, 0, 0.9, 0, 0.99},
    [GT_AUG_SHARPNESS] = {true, true, 0, 0.9, 0, 0.99},    [GT_AUG_POSTERIZE] = {true, false, 0, 0, 0, 0},
    [GT_AUG_SOLARIZE] = {true, false, 255, 0, 255, 0},
};

/* torch.linspace(from, to, bins)[i], which computes in f32 and starts from the nearer end. */
static double linspace_at(double from, double to, int64_t bins, int64_t i)
{
	float a = (float)from, b = (float)to, step = (b - a) / (float)(bins - 1);
	return (double)(i < bins / 2 ? a + step * (float)i : b - step * (float)(bins - 1 - i));
}

static double operation_strength(const struct gt_transform *t, int op, int64_t i, int64_t h, int64_t w)
{
	bool wide = t->type == GT_TF_TRIVIAL_AUGMENT;
	const struct operation *o = &operations[op];
	if (op == GT_AUG_POSTERIZE) /* number of bits to keep; at most 6 or 4 bits are removed */
		return 8 - (double)rintf((float)i / (float)((double)(t->bins - 1) / (wide ? 6 : 4)));
	if (!wide && (op == GT_AUG_TRANSLATE_X || op == GT_AUG_TRANSLATE_Y))
		return linspace_at(0, 150.0 / 331.0 * (double)(op == GT_AUG_TRANSLATE_X ? w : h), t->bins, i);
	return wide ? linspace_at(o->wide_from, o->wide_to, t->bins, i) : linspace_at(o->rand_from, o->rand_to, t->bins, i);
}

static void draw_operations(const struct gt_transform *t, struct numbers *n, int64_t h, int64_t w, struct gt_transform_draw *d)
{
	bool wide = t->type == GT_TF_TRIVIAL_AUGMENT;
	d->nops = wide ? 1 : (int)t->ops;
	for (int i = 0; i < d->nops; i++) {
		int op = d->op[i] = (int)draw_below(n, GT_AUG_OP_COUNT);
		int64_t bin = wide ? draw_below(n, t->bins) : t->magnitude;
		bool negative = next_number(n) >> 31;
		if (operations[op].has_strength)
			d->strength[i] = operation_strength(t, op, bin, h, w) * (operations[op].has_sign && negative ? -1 : 1);
	}
}

uint8_t gt_transform_colour(const struct gt_floats *f, int i)
{
	return f->n ? (uint8_t)rint(f->v[f->n == 1 ? 0 : i] * 255) : 0;
}

void gt_transform_draw(struct gt_transform_list list, int index, const struct gt_sample_key *key, int64_t h, int64_t w,
                       struct gt_transform_draw *out)
{
	const struct gt_transform *t = &list.t[index];
	struct gt_aug g;
	*out = (struct gt_transform_draw){0};
	if (!key)
		return;
	struct numbers n = open_numbers(key, index);
	switch (t->type) {
	case GT_TF_PAD_CROP:
		g = gt_aug_draw(key->seed, key->epoch, key->sample, (int)t->pad, 0);
		out->apply = true;
		out->top = g.dy;
		out->left = g.dx;
		out->height = h;
		out->width = w;
		break;
	case GT_TF_HFLIP:
		g = gt_aug_of(&(struct gt_attr_gather){.augment = true, .hflip = t->p, .hflip_alternate = t->alternate}, key->seed, key->epoch,
		              key->sample, 0);
		out->apply = g.flip;
		break;
	case GT_TF_VFLIP:
	case GT_TF_GRAYSCALE:
		out->apply = draw_uniform(&n, 0, 1) < t->p;
		break;
	case GT_TF_RANDOM_RESIZED_CROP:
		draw_resized_crop(t, &n, h, w, out);
		break;
	case GT_TF_ROTATE:
		out->angle = draw_uniform(&n, -t->degrees, t->degrees);
		break;
	case GT_TF_COLOR_JITTER:
		draw_jitter(t, &n, out);
		break;
	case GT_TF_RANDOM_ERASING:
		draw_erasing(t, &n, h, w, out);
		break;
	case GT_TF_TRIVIAL_AUGMENT:
	case GT_TF_RAND_AUGMENT:
		draw_operations(t, &n, h, w, out);
		break;
	default:
		break;
	}
}
