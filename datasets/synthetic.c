/* Images made from the seed: every class has a smooth random pattern; a sample is the pattern of its class plus noise. A linear model can
 * separate the classes with a few samples of each class. The data is the same on every machine, because all arithmetic uses integers.
 * Fields are made in the same way: each class has a value from -1 to 1, or a code from 0 to 7, in each column. A sample has the value plus
 * noise, or the code with probability 3/4. A token sequence has 1 to width ids from 1 to 8, mostly four ids of the class, repeated; the
 * field "lengths" has the sequence lengths. model.inputs.vocabulary sets another upper limit of codes or tokens. Draws: GT_RNG_SYNTH,
 * stream 0: samples (split, sample, element / 4, 0) and labels (split, sample, 0, 1); stream 1: patterns; stream 2 + k: field k, (split,
 * sample, column, 0) and its classes (class, column, 0, 1). */
#include "base/arena.h"
#include "base/philox.h"
#include "format.h"
#include "gzfile.h"
#include <stdlib.h>
#include <string.h>

#define GRID 5        /* a pattern is GRID x GRID random values per channel, interpolated */
#define NOISE_SHIFT 2 /* noise is the sum of four random bytes (-510..510) shifted by this: -127..127, standard deviation 37 */

/* Returns a value of the grid of (class, channel), 32..223, so that noise rarely exceeds the range of a byte. */
static int32_t draw_grid_value(uint64_t key, uint32_t class, uint32_t channel, uint32_t y, uint32_t x)
{
	return 32 + (int32_t)(gt_rng_draw(key, class, channel, y * GRID + x, 0).v[0] % 192u);
}

/* Computes the pattern of a class by bilinear interpolation of its grid, with positions in 1/256 of a cell. */
static void make_pattern(uint64_t key, uint32_t class, const struct gt_dataset *d, uint8_t *out)
{
	for (int64_t c = 0; c < d->c; c++) {
		int32_t g[GRID][GRID];
		for (uint32_t y = 0; y < GRID; y++)
			for (uint32_t x = 0; x < GRID; x++)
				g[y][x] = draw_grid_value(key, class, (uint32_t)c, y, x);
		for (int64_t y = 0; y < d->h; y++) {
			int64_t py = d->h > 1 ? y * (GRID - 1) * 256 / (d->h - 1) : 0;
			int iy = (int)(py >> 8) < GRID - 1 ? (int)(py >> 8) : GRID - 2, fy = (int)(py - iy * 256);
			for (int64_t x = 0; x < d->w; x++) {
				int64_t px = d->w > 1 ? x * (GRID - 1) * 256 / (d->w - 1) : 0;
				int ix = (int)(px >> 8) < GRID - 1 ? (int)(px >> 8) : GRID - 2, fx = (int)(px - ix * 256);
				int32_t top = g[iy][ix] * (256 - fx) + g[iy][ix + 1] * fx;
				int32_t bottom = g[iy + 1][ix] * (256 - fx) + g[iy + 1][ix + 1] * fx;
				out[(y * d->w + x) * d->c + c] = (uint8_t)((top * (256 - fy) + bottom * fy) >> 16);
			}
		}
	}
}

static int32_t noise_from_bits(uint32_t u)
{
	int32_t sum = (int32_t)((u & 255) + (u >> 8 & 255) + (u >> 16 & 255) + (u >> 24)) - 510;
	return sum / (1 << NOISE_SHIFT);
}

static uint8_t clip_to_byte(int32_t v)
{
	return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static void make_samples(uint64_t key, uint32_t split, const uint8_t *patterns, struct gt_dataset *d)
{
	size_t len = (size_t)(d->c * d->h * d->w);
	for (int64_t i = 0; i < d->n; i++) {
		uint32_t label = gt_rng_draw(key, split, (uint32_t)i, 0, 1).v[0] % (uint32_t)d->classes;
		const uint8_t *from = patterns + label * len;
		uint8_t *to = d->images + (size_t)i * len;
		d->labels[i] = (int32_t)label;
		for (size_t j = 0; j < len; j += 4) {
			struct gt_philox r = gt_rng_draw(key, split, (uint32_t)i, (uint32_t)(j / 4), 0);
			for (size_t k = 0; k < 4 && j + k < len; k++)
				to[j + k] = clip_to_byte(from[j + k] + noise_from_bits(r.v[k]));
		}
	}
}

static const int64_t codes = 8, tokens = 9;

/* Creates field k of all samples. */
static enum gt_code make_field(const struct gt_dataset_spec *spec, uint32_t split, int k, struct gt_dataset *d, struct gt_err *err)
{
	struct gt_field *f = &d->field[k];
	uint64_t key = gt_rng_key(spec->seed, GT_RNG_SYNTH, 2 + (uint32_t)k);
	int64_t width = f->width ? f->width : 1;
	uint32_t limit = (uint32_t)(f->ncodes ? f->codes[0] : codes);
	if (!(f->data = malloc((size_t)(d->n * width) * 4)))
		return gt_fail_memory(err, (size_t)(d->n * width) * 4);
	for (int64_t i = 0; i < d->n; i++)
		for (int64_t j = 0; j < width; j++) {
			struct gt_philox own = gt_rng_draw(key, split, (uint32_t)i, (uint32_t)j, 0),
			                 class = gt_rng_draw(key, (uint32_t)d->labels[i], (uint32_t)j, 0, 1);
			if (f->dtype == GT_F32)
				((float *)f->data)[i * width + j] = 2 * gt_rng_uniform(class.v[0]) - 1 + (float)noise_from_bits(own.v[0]) / 64;
			else
				((int32_t *)f->data)[i * width + j] = (int32_t)((own.v[1] % 4 ? class.v[0] : own.v[0]) % limit);
		}
	return GT_OK;
}

/* Creates field k of all samples: sequences of 1 to width tokens. A token is 1 + a code; id 0 is for padding. Draws: lengths (split,
 * sample, 0, 2), tokens, and the tokens of the classes, as for other fields. */
static enum gt_code make_sequences(const struct gt_dataset_spec *spec, uint32_t split, int k, struct gt_dataset *d, struct gt_err *err)
{
	struct gt_field *f = &d->field[k];
	uint64_t key = gt_rng_key(spec->seed, GT_RNG_SYNTH, 2 + (uint32_t)k);
	int32_t *id;
	GT_CALLOC(f->start, d->n + 1, err);
	for (int64_t i = 0; i < d->n; i++)
		f->start[i + 1] = f->start[i] + 1 + (int64_t)(gt_rng_draw(key, split, (uint32_t)i, 0, 2).v[0] % (uint32_t)f->width);
	GT_CALLOC(id, f->start[d->n], err);
	f->data = id;
	for (int64_t i = 0; i < d->n; i++)
		for (uint32_t j = 0; id < (int32_t *)f->data + f->start[i + 1]; j++) {
			struct gt_philox own = gt_rng_draw(key, split, (uint32_t)i, j, 0),
			                 class = gt_rng_draw(key, (uint32_t)d->labels[i], j % 4, 0, 1);
			*id++ = 1 + (int32_t)((own.v[1] % 4 ? class.v[0] : own.v[0]) % ((uint32_t)f->codes[0] - 1));
		}
	return GT_OK;
}

/* Creates field k, the lengths of the sequences. */
static enum gt_code make_lengths(struct gt_dataset *d, const int64_t *start, int k, struct gt_err *err)
{
	int32_t *n;
	GT_CALLOC(n, d->n, err);
	d->field[k].data = n;
	for (int64_t i = 0; i < d->n; i++)
		n[i] = (int32_t)(start[i + 1] - start[i]);
	return GT_OK;
}

static enum gt_code make_fields(const struct gt_dataset_spec *spec, uint32_t split, struct gt_dataset *d, struct gt_err *err)
{
	const struct gt_field *sequences = NULL;
	for (int k = 0; k < d->nfields; k++) {
		if (d->field[k].ragged) {
			GT_TRY(make_sequences(spec, split, k, d, err));
			sequences = &d->field[k];
		}
	}
	for (int k = 0; k < d->nfields; k++) {
		if (!d->field[k].width && sequences)
			GT_TRY(make_lengths(d, sequences->start, k, err));
		else if (!d->field[k].ragged)
			GT_TRY(make_field(spec, split, k, d, err));
	}
	return GT_OK;
}

static enum gt_code make_split(const struct gt_dataset_spec *spec, enum gt_split split, const struct gt_paths *paths, bool headers_only,
                               struct gt_dataset *out, struct gt_err *err)
{
	(void)paths;
	out->n = spec->samples[split];
	if (spec->limit > 0 && out->n > spec->limit)
		out->n = spec->limit;
	out->c = spec->shape[0];
	out->h = spec->shape[1] ? spec->shape[1] : 1;
	out->w = spec->shape[2] ? spec->shape[2] : 1;
	out->classes = spec->classes > 0 ? spec->classes : 10;
	uint64_t bytes, all, patterns;
	if (out->n < 1 || out->n > INT32_MAX)
		return gt_fail(err, GT_ECONFIG, "data.%s: expected 1 to %d samples, got %lld", split == GT_TEST ? "samples_test" : "samples",
		               INT32_MAX, (long long)out->n);
	if (out->classes > 1000000)
		return gt_fail(err, GT_ECONFIG, "data.classes: expected at most 1000000, got %lld", (long long)out->classes);
	for (int i = 0; i < spec->nwanted; i++) {
		const struct gt_field *f = &spec->wanted[i];
		if (!f->width && strcmp(f->name, "lengths"))
			return gt_fail(err, GT_ECONFIG, "model.inputs: expected a shape for \"%.64s\" in synthetic data, got none", f->name);
		if (f->width > 65536 || out->n > (int64_t)(spec->max_bytes / 4) / (f->width + 1))
			return gt_fail(err, GT_ECONFIG, "model.inputs: %lld samples of %lld values need more than the %zu bytes allowed",
			               (long long)out->n, (long long)f->width, spec->max_bytes);
		out->field[out->nfields] = *f;
		if (f->ncodes && !f->codes[0])
			out->field[out->nfields].codes = f->ragged ? &tokens : &codes;
		out->nfields++;
	}
	if (!spec->shape[0] && spec->nwanted)
		out->h = out->w = 0;
	else if (out->c < 1 || out->h < 1 || out->w < 1)
		return gt_fail(err, GT_ECONFIG, "model.input: expected three sizes of at least 1 for synthetic data, got [%lld, %lld, %lld]",
		               (long long)out->c, (long long)out->h, (long long)out->w);
	if (!gt_product4(1, out->c, out->h, out->w, &bytes) || bytes > INT32_MAX || !gt_product4(out->n, out->c, out->h, out->w, &all) ||
	    !gt_product4(out->classes, out->c, out->h, out->w, &patterns) || all > spec->max_bytes || patterns > spec->max_bytes)
		return gt_fail(err, GT_ECONFIG, "data.%s: %lld images of [%lld, %lld, %lld] need more than the %zu bytes allowed",
		               split == GT_TEST ? "samples_test" : "samples", (long long)out->n, (long long)out->c, (long long)out->h,
		               (long long)out->w, spec->max_bytes);
	if (headers_only)
		return GT_OK;
	if (out->c)
		out->memory = out->images = gt_big_alloc(all);
	out->labels = malloc((size_t)out->n * sizeof *out->labels);
	uint8_t *pat = malloc(patterns + 1);
	if ((out->c && !out->images) || !out->labels || !pat) {
		free(pat);
		return gt_fail_memory(err, all);
	}
	uint64_t key = gt_rng_key(spec->seed, GT_RNG_SYNTH, 1);
	for (int64_t k = 0; k < out->classes; k++)
		make_pattern(key, (uint32_t)k, out, pat + (uint64_t)k * bytes);
	make_samples(gt_rng_key(spec->seed, GT_RNG_SYNTH, 0), split == GT_TEST, pat, out);
	free(pat);
	return make_fields(spec, split == GT_TEST, out, err);
}

const struct gt_format gt_format_synthetic = {"synthetic", GT_CONTENT_MADE, NULL, make_split};
