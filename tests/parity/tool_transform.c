/* Applies the transforms of a config to image files, for a comparison with torchvision and for a measurement.
 *
 *     tool_transform CONFIG EPOCH OUT FILE...       writes c * h * w bytes of each image to OUT, and to stdout one line an image with the
 *                                                   parameters that each transform drew
 *     tool_transform --speed CONFIG ROUNDS FILE...  images a second of libjpeg's full decode of the files, of gt_image_make, and of the
 *                                                   part of it that is left to a thread if a GPU does the rest, on one thread; the
 *                                                   three take turns */
#include "base/err.h"
#include "conf/conf.h"
#include "image/decode.h"
#include "../unit/image_calls.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <jpeglib.h>

struct file {
	const char *name;
	uint8_t *raw;
	size_t size;
};

static void check(enum gt_code rc, const struct gt_err *err)
{
	if (rc == GT_OK)
		return;
	fprintf(stderr, "tool_transform: %s\n", err->msg);
	exit(1);
}

static struct file *read_files(char **names, int n)
{
	struct file *f = calloc((size_t)n, sizeof *f);
	for (int i = 0; i < n; i++) {
		FILE *in = fopen(names[i], "rb");
		f[i].name = names[i];
		f[i].raw = malloc(1 << 22);
		f[i].size = in ? fread(f[i].raw, 1, 1 << 22, in) : 0;
		f[i].raw = realloc(f[i].raw, f[i].size + 1);
		if (in)
			fclose(in);
	}
	return f;
}

static void print_draws(struct gt_transform_list list, const struct gt_sample_key *key, int64_t h, int64_t w, const struct gt_conf *c)
{
	for (int i = 0; i < list.n; i++) {
		struct gt_transform_draw d;
		char word[32];
		gt_transform_draw(list, i, key, h, w, &d);
		printf("%s%s %d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %.17g", i ? ";" : "",
		       gt_transform_word(list.t[i].type, word), d.apply, d.top, d.left, d.height, d.width, d.angle);
		for (int k = 0; k < 4; k++)
			printf(" %d %.17g", d.order[k], d.factor[k]);
		printf(" %d", d.nops);
		for (int k = 0; k < d.nops; k++)
			printf(" %d %.17g", d.op[k], d.strength[k]);
		h = c->model.input[1]; /* the first transform of these lists sets the size, if any does */
		w = c->model.input[2];
	}
	puts("");
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void decode(const struct file *f, uint8_t **px, size_t *room)
{
	struct jpeg_decompress_struct j;
	struct jpeg_error_mgr mgr;
	j.err = jpeg_std_error(&mgr);
	jpeg_create_decompress(&j);
	jpeg_mem_src(&j, f->raw, f->size);
	jpeg_read_header(&j, TRUE);
	j.out_color_space = JCS_RGB;
	jpeg_start_decompress(&j);
	size_t row = (size_t)j.output_width * 3, bytes = row * j.output_height;
	if (bytes > *room) {
		*px = realloc(*px, bytes);
		*room = bytes;
	}
	while (j.output_scanline < j.output_height) {
		JSAMPROW to[8];
		for (unsigned k = 0; k < 8; k++)
			to[k] = *px + row * (j.output_scanline + k < j.output_height ? j.output_scanline + k : j.output_height - 1);
		jpeg_read_scanlines(&j, to, 8);
	}
	jpeg_finish_decompress(&j);
	jpeg_destroy_decompress(&j);
}

static int by_value(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;
	return d < 0 ? -1 : d > 0;
}

static int speed(int argc, char **argv)
{
	enum { CHUNK = 50 };
	struct gt_err err;
	struct gt_conf *c;
	struct gt_image_scratch *s;
	uint8_t *px = NULL;
	size_t room = 0;
	check(gt_conf_load(argv[2], NULL, 0, &c, &err), &err);
	check(gt_image_scratch_open(&s, &err), &err);
	int rounds = atoi(argv[3]), n = argc - 4, chunks = 0;
	struct gt_transform_list list = {c->data.augment, c->data.naugment};
	struct file *f = read_files(argv + 4, n);
	const int64_t *in = c->model.input;
	struct gt_recipe_split split = gt_recipe_split_of(list, (int)in[0], in[1], in[2]);
	uint8_t *out = malloc((size_t)split.row);
	double sum[3] = {0}, *ratio = calloc((size_t)(rounds * (n / CHUNK + 1)), sizeof *ratio);
	for (int round = -1; round < rounds; round++) /* the first round is not counted */
		for (int i = 0; i + CHUNK <= n; i += CHUNK) {
			double t[3];
			for (int k = 0; k < 3; k++) {
				int what = (k + i / CHUNK) % 3;
				double from = now();
				for (int m = i; m < i + CHUNK; m++) {
					struct gt_sample_key key = {1, (uint64_t)(round + 1), (uint64_t)m};
					if (what == 0)
						decode(&f[m], &px, &room);
					else if (what == 2 && split.on)
						check(recipe_load(f[m].raw, f[m].size, f[m].name, list, &split, &key, (int)in[0], in[1], in[2], s, out, &err),
						      &err);
					else
						check(image_load(f[m].raw, f[m].size, f[m].name, list, &key, (int)in[0], in[1], in[2], s, out, &err), &err);
				}
				t[what] = now() - from;
			}
			if (round < 0)
				continue;
			sum[0] += t[0];
			sum[1] += t[1];
			sum[2] += t[2];
			ratio[chunks++] = t[0] / t[1];
		}
	qsort(ratio, (size_t)chunks, sizeof *ratio, by_value);
	printf("# libjpeg %.0f images/s, gt_image_make %.0f images/s, ratio %.3f (median of pairs %.3f)\n", chunks * CHUNK / sum[0],
	       chunks * CHUNK / sum[1], sum[0] / sum[1], ratio[chunks / 2]);
	printf("# with the last %d of %d transforms on a GPU: %.0f images/s, %.2f times as many\n", list.n - (split.resize ? 0 : split.first),
	       list.n, chunks * CHUNK / sum[2], sum[1] / sum[2]);
	return 0;
}

int main(int argc, char **argv)
{
	struct gt_err err;
	struct gt_conf *c;
	struct gt_image_scratch *s;
	if (argc > 4 && !strcmp(argv[1], "--speed"))
		return speed(argc, argv);
	if (argc < 5) {
		fputs("usage: tool_transform CONFIG EPOCH OUT FILE...\n", stderr);
		return 64;
	}
	check(gt_conf_load(argv[1], NULL, 0, &c, &err), &err);
	check(gt_image_scratch_open(&s, &err), &err);
	FILE *to = fopen(argv[3], "wb");
	struct file *f = read_files(argv + 4, argc - 4);
	struct gt_transform_list list = {c->data.augment, c->data.naugment};
	const int64_t *in = c->model.input;
	size_t bytes = (size_t)(in[0] * in[1] * in[2]);
	uint8_t *out = malloc(bytes);
	for (int i = 0; i < argc - 4; i++) {
		struct gt_sample_key key = {(uint64_t)c->seed, strtoull(argv[2], NULL, 10), (uint64_t)i};
		struct gt_image_head head;
		check(gt_decode_head(f[i].raw, f[i].size, f[i].name, s, &head, &err), &err);
		check(image_load(f[i].raw, f[i].size, f[i].name, list, &key, (int)in[0], in[1], in[2], s, out, &err), &err);
		if (fwrite(out, 1, bytes, to) != bytes)
			return 74;
		print_draws(list, &key, head.h, head.w, c);
		free(f[i].raw);
	}
	gt_image_scratch_close(s);
	gt_conf_free(c);
	free(out);
	free(f);
	return fclose(to) ? 74 : 0;
}
