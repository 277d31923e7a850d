/* tool_images DIR: writes 12 images of each kind to DIR/KIND/N.EXT, for tests of folders: rgb, grey, rgba, rgb16 and large (PNG), jpeg and
 * grey_jpeg, webp, and wide.png, whose side is beyond the limit. */
#include <png.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <jpeglib.h>
#include <webp/encode.h>

enum { N = 12 };

static void fail(const char *path)
{
	fprintf(stderr, "tool_images: cannot write %s\n", path);
	exit(1);
}

/* Pixels with a gradient and noise, different for each image. */
static void fill(uint8_t *p, int w, int h, int c, unsigned seed)
{
	for (int i = 0; i < w * h * c; i++) {
		seed = seed * 1664525u + 1013904223u;
		p[i] = (uint8_t)((i / c % w) * 160 / w + (seed >> 24) / 4);
	}
}

static void png(const char *path, int w, int h, uint32_t format, unsigned seed)
{
	png_image image = {.version = PNG_IMAGE_VERSION, .width = (uint32_t)w, .height = (uint32_t)h, .format = format};
	uint8_t *pixels = malloc(PNG_IMAGE_SIZE(image));
	if (!pixels)
		fail(path);
	fill(pixels, w, h, (int)(PNG_IMAGE_SIZE(image) / (size_t)(w * h)), seed);
	if (!png_image_write_to_file(&image, path, 0, pixels, 0, NULL))
		fail(path);
	free(pixels);
}

static void jpeg(const char *path, int w, int h, int c, unsigned seed)
{
	struct jpeg_compress_struct j;
	struct jpeg_error_mgr e;
	uint8_t pixels[64 * 64 * 3];
	FILE *f = fopen(path, "wb");
	if (!f)
		fail(path);
	fill(pixels, w, h, c, seed);
	j.err = jpeg_std_error(&e);
	jpeg_create_compress(&j);
	jpeg_stdio_dest(&j, f);
	j.image_width = (JDIMENSION)w;
	j.image_height = (JDIMENSION)h;
	j.input_components = c;
	j.in_color_space = c == 3 ? JCS_RGB : JCS_GRAYSCALE;
	jpeg_set_defaults(&j);
	jpeg_start_compress(&j, TRUE);
	for (JSAMPROW row = pixels; j.next_scanline < j.image_height; row += w * c)
		jpeg_write_scanlines(&j, &row, 1);
	jpeg_finish_compress(&j);
	jpeg_destroy_compress(&j);
	fclose(f);
}

static void webp(const char *path, int w, int h, unsigned seed)
{
	uint8_t pixels[64 * 64 * 3], *out;
	fill(pixels, w, h, 3, seed);
	size_t n = WebPEncodeRGB(pixels, w, h, w * 3, 80, &out);
	FILE *f = fopen(path, "wb");
	if (!n || !f || fwrite(out, 1, n, f) != n)
		fail(path);
	fclose(f);
	WebPFree(out);
}

int main(int argc, char **argv)
{
	static const char *const kinds[] = {"rgb", "grey", "rgba", "rgb16", "large", "jpeg", "grey_jpeg", "webp"};
	static const uint32_t formats[] = {PNG_FORMAT_RGB, PNG_FORMAT_GRAY, PNG_FORMAT_RGBA, PNG_FORMAT_LINEAR_RGB, PNG_FORMAT_RGB};
	char path[4096];
	if (argc != 2)
		return 64;
	mkdir(argv[1], 0755);
	for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		snprintf(path, sizeof path, "%s/%s", argv[1], kinds[k]);
		mkdir(path, 0755);
		for (unsigned i = 0; i < N; i++) {
			int side = 16 + (int)i % 3;
			snprintf(path, sizeof path, "%s/%s/%u.%s", argv[1], kinds[k], i, k < 5 ? "png" : k < 7 ? "jpg" : "webp");
			if (k < 5)
				png(path, k == 4 ? 300 : side, k == 4 ? 200 : 16, formats[k], 1 + i);
			else if (k < 7)
				jpeg(path, side, 16, k == 5 ? 3 : 1, 1 + i);
			else
				webp(path, side, 16, 1 + i);
		}
	}
	snprintf(path, sizeof path, "%s/wide.png", argv[1]);
	png(path, 100000, 1, PNG_FORMAT_GRAY, 1);
	return 0;
}
