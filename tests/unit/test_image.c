/* gt_image_read: PNG, JPEG and IDX to a model's bytes, scaled as Pillow does it; damaged ones refused. */
#include "dataset.h"
#include "unit/data_files.h"
#include <stdlib.h>
#include <time.h>
#include <sys/stat.h>
#include <png.h>
#include <jpeglib.h>

enum { W = 9, H = 6 };

static void pattern(uint8_t *b, int n)
{
	for (int i = 0; i < n; i++)
		b[i] = (uint8_t)(i * i * 37 + i * 11 + 5);
}

static void put_png(const char *name, const uint8_t *px, unsigned w, unsigned h, int format, const uint8_t *palette)
{
	png_image im = {
	    .version = PNG_IMAGE_VERSION, .width = w, .height = h, .format = (png_uint_32)format, .colormap_entries = palette ? 16 : 0};
	CHECK_MSG(png_image_write_to_file(&im, at(name), 0, px, 0, palette), "%s", im.message);
}

static uint8_t exif[64]; /* an APP1 for the next JPEG */
static unsigned exif_size;
static bool ycck; /* the next JPEG of four components is stored as YCCK */

static void put_jpeg(const char *name, const uint8_t *px, unsigned w, unsigned h, int c, bool progressive)
{
	struct jpeg_compress_struct j;
	struct jpeg_error_mgr mgr;
	FILE *f = fopen(at(name), "wb");
	j.err = jpeg_std_error(&mgr);
	jpeg_create_compress(&j);
	jpeg_stdio_dest(&j, f);
	j.image_width = w;
	j.image_height = h;
	j.input_components = c;
	j.in_color_space = c == 1 ? JCS_GRAYSCALE : c == 3 ? JCS_RGB : JCS_CMYK;
	jpeg_set_defaults(&j);
	jpeg_set_quality(&j, 100, TRUE);
	j.comp_info[0].h_samp_factor = j.comp_info[0].v_samp_factor = 1;
	if (progressive)
		jpeg_simple_progression(&j);
	if (ycck)
		jpeg_set_colorspace(&j, JCS_YCCK);
	jpeg_start_compress(&j, TRUE);
	if (exif_size)
		jpeg_write_marker(&j, JPEG_APP0 + 1, exif, exif_size);
	for (unsigned y = 0; y < h; y++) {
		JSAMPROW row = (JSAMPROW)(uintptr_t)(px + (size_t)y * w * (size_t)c);
		jpeg_write_scanlines(&j, &row, 1);
	}
	jpeg_finish_compress(&j);
	jpeg_destroy_compress(&j);
	fclose(f);
}

static uint8_t *get(const char *name, size_t *size)
{
	FILE *f = fopen(at(name), "rb");
	uint8_t *b = malloc(1 << 20);
	*size = fread(b, 1, 1 << 20, f);
	fclose(f);
	return b;
}

static uint8_t *read_ok(const char *name, int c, int h, int w, int64_t *n, bool *scaled)
{
	struct gt_err e = {0};
	uint8_t *out = NULL;
	CHECK_OK(gt_image_read(at(name), (struct gt_transform_list){0}, c, h, w, 100, &out, n, scaled, &e), e);
	return out;
}

static void same(const char *name, int c, int h, int w, const uint8_t *want, int slack, bool want_scaled)
{
	int64_t n;
	bool scaled;
	uint8_t *out = read_ok(name, c, h, w, &n, &scaled);
	CHECK(n == 1 && scaled == want_scaled);
	for (int i = 0; out && i < c * h * w; i++)
		if (abs(out[i] - want[i]) > slack) {
			CHECK_MSG(false, "%s %d x %d x %d: byte %d is %d, expected %d", name, c, h, w, i, out[i], want[i]);
			break;
		}
	free(out);
}

TEST(png_kinds)
{
	uint8_t rgb[W * H * 3], rgba[W * H * 4], grey[W * H], ga[W * H * 2], index[W * H], palette[48], want[W * H * 3];
	uint16_t grey16[W * H];
	pattern(rgb, sizeof rgb);
	pattern(grey, sizeof grey);
	pattern(palette, sizeof palette);
	for (int i = 0; i < W * H; i++) {
		memcpy(rgba + 4 * i, rgb + 3 * i, 3);
		rgba[4 * i + 3] = (uint8_t)(i * 5); /* alpha is dropped, not blended */
		ga[2 * i] = grey[i];
		ga[2 * i + 1] = (uint8_t)(255 - i);
		index[i] = (uint8_t)(i % 16);
		memcpy(want + 3 * i, palette + 3 * index[i], 3);
	}
	put_png("a.png", rgb, W, H, PNG_FORMAT_RGB, NULL);
	same("a.png", 3, H, W, rgb, 0, false);
	put_png("a.png", rgba, W, H, PNG_FORMAT_RGBA, NULL);
	same("a.png", 3, H, W, rgb, 0, false);
	put_png("a.png", grey, W, H, PNG_FORMAT_GRAY, NULL);
	same("a.png", 1, H, W, grey, 0, false);
	put_png("a.png", ga, W, H, PNG_FORMAT_GA, NULL);
	same("a.png", 1, H, W, grey, 0, false);
	put_png("a.png", index, W, H, PNG_FORMAT_RGB_COLORMAP, palette);
	same("a.png", 3, H, W, want, 0, false);
	/* 16 bits, as written: linear light, which is not converted, only shortened to its high byte, as PIL's convert("RGB") does */
	for (int i = 0; i < W * H; i++)
		grey16[i] = (uint16_t)(i * 1213);
	put_png("a.png", (const uint8_t *)grey16, W, H, PNG_FORMAT_LINEAR_Y, NULL);
	for (int i = 0; i < W * H; i++)
		want[i] = (uint8_t)(grey16[i] >> 8);
	same("a.png", 1, H, W, want, 0, false);
}

TEST(jpeg_kinds)
{
	uint8_t rgb[32 * 24 * 3], grey[32 * 24];
	for (int i = 0; i < 32 * 24; i++) {
		grey[i] = (uint8_t)(i % 32 * 5 + i / 32 * 3);
		for (int c = 0; c < 3; c++)
			rgb[3 * i + c] = (uint8_t)(c == 0 ? i % 32 * 8 : c == 1 ? i / 32 * 10 : 200 - i % 32 * 4);
	}
	for (int progressive = 0; progressive < 2; progressive++) {
		/* Quality 100 quantises by 1: at most 1 off in grey; the colour transform and back, and chroma at full resolution: 3. */
		put_jpeg("a.jpg", grey, 32, 24, 1, progressive);
		same("a.jpg", 1, 24, 32, grey, 1, false);
		put_jpeg("a.jpg", rgb, 32, 24, 3, progressive);
		same("a.jpg", 3, 24, 32, rgb, 3, false);
	}
}

/* Exif data whose one directory says `orientation`, of either byte order; behind another entry. */
static void make_exif(int orientation, bool little, bool jpeg)
{
	static const uint8_t big[] = {'M', 'M', 0, 42, 0,    0, 0, 8, 0, 2, 1, 0, 0, 3, 0, 0, 0, 1, 0,
	                              9,   0,   0, 1,  0x12, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0},
	                     small[] = {'I', 'I', 42, 0,    8, 0, 0, 0, 2, 0, 0, 1, 3, 0, 1, 0, 0, 0, 9,
	                                0,   0,   0,  0x12, 1, 3, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
	uint8_t *p = exif;
	if (jpeg) {
		memcpy(p, "Exif\0\0", 6);
		p += 6;
	}
	memcpy(p, little ? small : big, sizeof big);
	p[little ? 30 : 31] = (uint8_t)orientation;
	exif_size = (unsigned)(p - exif) + sizeof big;
}

static void put_png_exif(const char *name, const uint8_t *px, unsigned w, unsigned h, bool behind)
{
	FILE *f = fopen(at(name), "wb");
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png_create_info_struct(png);
	png_init_io(png, f);
	png_set_IHDR(png, info, w, h, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_write_info(png, info);
	if (!behind)
		png_write_chunk(png, (png_const_bytep)"eXIf", exif, exif_size);
	for (unsigned y = 0; y < h; y++)
		png_write_row(png, px + (size_t)y * w * 3);
	if (behind)
		png_write_chunk(png, (png_const_bytep)"eXIf", exif, exif_size);
	png_write_end(png, NULL);
	png_destroy_write_struct(&png, &info);
	fclose(f);
}

/* What PIL's ImageOps.exif_transpose makes of np.arange(6).reshape(2, 3) for orientations 1 to 8. */
TEST(turned_upright)
{
	static const uint8_t want[8][6] = {{0, 1, 2, 3, 4, 5}, {2, 1, 0, 5, 4, 3}, {5, 4, 3, 2, 1, 0}, {3, 4, 5, 0, 1, 2},
	                                   {0, 3, 1, 4, 2, 5}, {3, 0, 4, 1, 5, 2}, {5, 2, 4, 1, 3, 0}, {2, 5, 1, 4, 0, 3}};
	enum { BLOCK = 8 }; /* of a JPEG, of one colour: exact */
	uint8_t grey[6 * BLOCK * BLOCK], rgb[18], *out;
	int64_t n;
	bool scaled;
	struct gt_err e;
	for (int y = 0; y < 2 * BLOCK; y++)
		for (int x = 0; x < 3 * BLOCK; x++)
			grey[y * 3 * BLOCK + x] = (uint8_t)(40 * (y / BLOCK * 3 + x / BLOCK));
	for (int i = 0; i < 18; i++)
		rgb[i] = (uint8_t)(40 * (i / 3));
	for (int k = 0; k < 32; k++) {
		int o = k % 8 + 1;
		int64_t h = o > 4 ? 3 : 2, w = o > 4 ? 2 : 3, block = k < 16 ? BLOCK : 1;
		make_exif(o, k / 8 % 2, k < 16);
		if (k < 16)
			put_jpeg("o", grey, 3 * BLOCK, 2 * BLOCK, 1, false);
		else
			put_png_exif("o", rgb, 3, 2, k % 16 >= 8);
		CHECK_OK(gt_image_read(at("o"), (struct gt_transform_list){0}, 1, h * block, w * block, 1, &out, &n, &scaled, &e), e);
		CHECK(!scaled);
		for (int64_t i = 0; i < 6; i++) {
			int64_t at = (i / w * w * block + i % w) * block;
			CHECK_MSG(out[at] == 40 * want[o - 1][i], "%s of orientation %d: pixel %d is of block %d, not %d", k < 16 ? "JPEG" : "PNG", o,
			          (int)i, out[at] / 40, want[o - 1][i]);
		}
		free(out);
	}
	/* Damaged Exif data, and values that there are not, are no orientation. */
	for (int k = 0; k < 8; k++) {
		make_exif(k == 0 ? 9 : k == 1 ? 0 : 6, true, true);
		exif_size = k < 2 ? exif_size : k == 2 ? 6 : k == 3 ? 12 : k == 4 ? 16 : k == 5 ? 39 : exif_size;
		if (k == 6)
			memset(exif + 10, 0xff, 4); /* where the directory is */
		if (k == 7)
			exif[6] = 'X';
		put_jpeg("o", grey, 3 * BLOCK, 2 * BLOCK, 1, false);
		CHECK_OK(gt_image_read(at("o"), (struct gt_transform_list){0}, 1, 2 * BLOCK, 3 * BLOCK, 1, &out, &n, &scaled, &e), e);
		CHECK_MSG(!memcmp(out, grey, sizeof grey), "case %d", k);
		free(out);
	}
	exif_size = 0;
}

/* CMYK as Adobe stores it, inverted. Blocks of one colour; the results are those of PIL's Image.open(...).convert("RGB"), which for every
 * CMYK below is 255 - K - C (255 - K) / 255 and so on, rounded. */
TEST(cmyk)
{
	static const uint8_t in[4][4] = {{0, 37, 74, 111}, {148, 185, 222, 3}, {40, 77, 114, 151}, {12, 49, 86, 123}},
	                     want[4][3] = {{144, 123, 102}, {106, 69, 33}, {88, 73, 58}, {126, 107, 87}};
	uint8_t px[8 * 32 * 4], *out;
	int64_t n;
	bool scaled;
	struct gt_err e;
	for (int i = 0; i < 8 * 32; i++)
		for (int k = 0; k < 4; k++)
			px[4 * i + k] = (uint8_t)(255 - in[i % 32 / 8][k]);
	for (int k = 0; k < 2; k++) {
		ycck = k;
		put_jpeg("c", px, 32, 8, 4, false);
		ycck = false;
		CHECK_OK(gt_image_read(at("c"), (struct gt_transform_list){0}, 3, 8, 32, 1, &out, &n, &scaled, &e), e);
		for (int b = 0; b < 4; b++)
			for (int c = 0; c < 3; c++) {
				int d = out[(4 * 32 + 8 * b + 4) * 3 + c] - want[b][c];
				/* YCCK: luma and chroma are rounded before they are stored */
				CHECK_MSG(abs(d) <= (k ? 2 : 0), "%s, block %d, channel %d: off by %d", k ? "YCCK" : "CMYK", b, c, d);
			}
		free(out);
	}
}

TEST(grey_and_colour)
{
	static const uint8_t rgb[] = {255, 0, 0, 0, 255, 0, 0, 0, 255, 12, 200, 77}, luma[] = {76, 150, 29, 130}; /* Pillow's convert("L") */
	static const uint8_t triple[] = {76, 76, 76, 150, 150, 150, 29, 29, 29, 130, 130, 130};
	put_png("a.png", rgb, 4, 1, PNG_FORMAT_RGB, NULL);
	same("a.png", 1, 1, 4, luma, 0, false);
	put_png("a.png", luma, 4, 1, PNG_FORMAT_GRAY, NULL);
	same("a.png", 3, 1, 4, triple, 0, false);
}

/* Bytes of Pillow 13.0.0: Image.frombytes(mode, (9, 6), pattern).resize((w, h), Image.BILINEAR) */
TEST(scaled_as_pillow)
{
	static const struct {
		int c, w, h;
		uint8_t px[60];
	} cases[] = {
	    {1, 5, 4, {73, 157, 121, 143, 137, 111, 162, 142, 116, 155, 147, 142, 136, 157, 140, 175, 95, 113, 99, 73}},
	    {1, 3, 12, {79,  150, 136, 101, 139, 138, 146, 118, 141, 153, 123, 140, 122, 155, 133, 117, 156, 136,
	                140, 127, 149, 149, 131, 150, 144, 170, 137, 141, 156, 110, 142, 91,  69,  142, 58,  49}},
	    {1, 20, 3, {37,  52,  90,  128, 167, 206, 167, 124, 105, 94,  117, 173, 198, 139, 85,  109, 133, 144, 152, 155,
	                144, 136, 115, 104, 145, 186, 163, 136, 134, 141, 142, 139, 137, 139, 140, 131, 122, 142, 166, 176,
	                185, 181, 171, 158, 131, 104, 94,  84,  98,  121, 137, 144, 148, 139, 129, 87,  46,  74,  116, 132}},
	    {3, 5, 4, {86,  95,  179, 131, 138, 169, 105, 124, 199, 134, 109, 140, 91,  112, 143, 129, 142, 158, 166, 137,
	               113, 111, 150, 123, 99,  93,  140, 97,  72,  102, 145, 171, 128, 139, 125, 153, 87,  94,  120, 111,
	               124, 157, 124, 125, 168, 153, 126, 165, 100, 101, 158, 121, 96,  106, 137, 138, 133, 102, 125, 178}},
	    {3, 3, 12, {79,  116, 196, 78,  104, 203, 128, 139, 159, 98,  114, 182, 104, 117, 190, 117, 123, 147, 135, 111,
	                153, 155, 144, 163, 94,  90,  122, 146, 122, 138, 161, 153, 140, 85,  73,  111, 133, 147, 139, 120,
	                144, 121, 90,  70,  114, 134, 154, 138, 98,  125, 112, 103, 89,  125, 149, 145, 135, 93,  96,  115}},
	    {3, 20, 3, {91,  103, 189, 92,  104, 184, 93,  106, 172, 100, 109, 159, 138, 115, 150, 175, 122, 141, 154, 146,
	                150, 129, 172, 160, 119, 164, 173, 114, 144, 187, 111, 126, 186, 110, 110, 171, 114, 99,  157, 133,
	                102, 145, 148, 105, 134, 122, 112, 125, 95,  119, 116, 84,  101, 124, 77,  79,  136, 74,  70,  140}},
	};
	uint8_t b[W * H * 3];
	pattern(b, sizeof b);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		int c = cases[i].c, w = cases[i].w, h = cases[i].h, have = c * w * h < 60 ? c * w * h : 60;
		put_png("a.png", b, W, H, c == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB, NULL);
		int64_t n;
		bool scaled;
		uint8_t *out = read_ok("a.png", c, h, w, &n, &scaled);
		CHECK(scaled && n == 1);
		CHECK_MSG(out && !memcmp(out, cases[i].px, (size_t)have), "case %zu", i);
		free(out);
	}
}

TEST(idx_images)
{
	uint8_t b[8192];
	int64_t n;
	bool scaled;
	struct gt_err e = {0};
	put("a", b, idx(b, 8, 3, (uint32_t[]){7, 4, 5}, 1), true);
	uint8_t *out = read_ok("a", 1, 4, 5, &n, &scaled);
	CHECK(n == 7 && !scaled && !memcmp(out, b + 16, 140));
	free(out);
	CHECK_OK(gt_image_read(at("a"), (struct gt_transform_list){0}, 1, 4, 5, 3, &out, &n, &scaled, &e), e);
	CHECK(n == 3);
	free(out);
	out = read_ok("a", 3, 8, 8, &n, &scaled);
	CHECK(n == 7 && scaled);
	free(out);
	put("a", b, idx(b, 8, 4, (uint32_t[]){2, 3, 4, 5}, 1), false);
	out = read_ok("a", 3, 4, 5, &n, &scaled);
	CHECK(n == 2 && !scaled);
	for (int i = 0; i < 2; i++)
		for (int c = 0; c < 3; c++)
			for (int k = 0; k < 20; k++)
				CHECK(out[(i * 20 + k) * 3 + c] == b[20 + (i * 3 + c) * 20 + k]);
	free(out);
	put("a", b, idx(b, 8, 4, (uint32_t[]){2, 2, 4, 5}, 1), false);
	CHECK(gt_image_read(at("a"), (struct gt_transform_list){0}, 1, 4, 5, 9, &out, &n, &scaled, &e) == GT_EDATA);
	put("a", b, idx(b, 8, 1, (uint32_t[]){20}, 1), false);
	CHECK(gt_image_read(at("a"), (struct gt_transform_list){0}, 1, 4, 5, 9, &out, &n, &scaled, &e) == GT_EDATA);
	CHECK(!out && !n);
	CHECK(gt_image_read(at("a"), (struct gt_transform_list){0}, 2, 4, 5, 9, &out, &n, &scaled, &e) == GT_ECONFIG);
}

static int tried;

static enum gt_code refused(const char *name, const char *word)
{
	struct gt_err e = {0};
	uint8_t *out = NULL;
	int64_t n;
	bool scaled;
	struct timespec a, b;
	clock_gettime(CLOCK_MONOTONIC, &a);
	enum gt_code rc = gt_image_read(at(name), (struct gt_transform_list){0}, 3, 28, 28, 10, &out, &n, &scaled, &e);
	clock_gettime(CLOCK_MONOTONIC, &b);
	tried++;
	CHECK_MSG(b.tv_sec - a.tv_sec < 5, "%s takes long", name);
	CHECK(rc == GT_OK ? n == 1 && out : !n && !out);
	CHECK_MSG(rc == GT_OK || (e.code == rc && strstr(e.msg, name) && !strchr(e.msg, '\n')), "%s", e.msg);
	if (word)
		CHECK_MSG(rc == GT_EDATA && strstr(e.msg, word), "%s: code %d, no \"%s\" in \"%s\"", name, (int)rc, word, e.msg);
	free(out);
	return rc;
}

TEST(damaged_pictures)
{
	static uint8_t px[64 * 48 * 4];
	static const char *const names[] = {"d.png", "d.jpg", "p.jpg"};
	pattern(px, sizeof px);
	put_png("d.png", px, 64, 48, PNG_FORMAT_RGB, NULL);
	put_jpeg("d.jpg", px, 64, 48, 3, false);
	put_jpeg("p.jpg", px, 64, 48, 3, true);
	for (int k = 0; k < 3; k++) {
		size_t size;
		uint8_t *b = get(names[k], &size);
		CHECK(refused(names[k], NULL) == GT_OK);
		/* Cut anywhere: a PNG needs its IEND; a JPEG only lacks its last marker when up to two bytes are gone, and is whole then. */
		for (size_t cut = 0; cut < size; cut += cut < 700 || cut + 40 > size ? 1 : 37) {
			put(names[k], b, cut, false);
			CHECK_MSG(refused(names[k], NULL) == GT_EDATA || (k && cut + 2 >= size), "%s cut at %zu of %zu", names[k], cut, size);
		}
		/* Damage at any byte gives an image or an error. The CRCs of a PNG detect all damage in the parts that are read. */
		uint32_t r = 12345;
		for (int i = 0; i < 1500; i++) {
			r = r * 1664525u + 1013904223u;
			size_t where = i < 700 ? (size_t)i % size : r % size;
			uint8_t old = b[where];
			b[where] = (uint8_t)(r >> 24);
			put(names[k], b, size, false);
			refused(names[k], NULL);
			b[where] = old;
		}
		free(b);
	}
	put("x", "no picture at all", 17, false);
	refused("x", "expected a PNG, JPEG, WebP, IDX or NumPy file");
	put("x", "\x89PNG\r\n\x1a\n", 8, false);
	refused("x", "truncated");
	put("x", "", 0, false);
	refused("x", "empty");
	mkdir(at("dir"), 0755);
	refused("dir", "directory");
	printf("# damaged pictures tried: %d\n", tried);
}

/* Headers that announce more than there is, or more than anybody wants. */
TEST(picture_bombs)
{
	static uint8_t px[64 * 48 * 3];
	size_t size;
	put_png("b.png", px, 64, 48, PNG_FORMAT_RGB, NULL);
	uint8_t *b = get("b.png", &size);
	static const struct {
		uint32_t w, h;
		const char *word;
	} sizes[] = {{0, 48, "no pixels"},
	             {64, 0, "no pixels"},
	             {60000, 60000, "at most 67108864 pixels"},
	             {0x7fffffff, 0x7fffffff, "at most 65500 pixels on a side"},
	             {0xffffffff, 1, "at most 65500 pixels on a side"},
	             {8000, 8000, "can hold"}};
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		for (int k = 0; k < 4; k++) {
			b[16 + k] = (uint8_t)(sizes[i].w >> 8 * (3 - k));
			b[20 + k] = (uint8_t)(sizes[i].h >> 8 * (3 - k));
		}
		uint32_t crc = (uint32_t)crc32(0, b + 12, 17);
		for (int k = 0; k < 4; k++)
			b[29 + k] = (uint8_t)(crc >> 8 * (3 - k));
		put("b.png", b, size, false);
		refused("b.png", sizes[i].word);
	}
	free(b);
	put_jpeg("b.jpg", px, 64, 48, 3, false);
	b = get("b.jpg", &size);
	size_t sof = 2;
	while (sof + 9 < size && b[sof + 1] != 0xc0)
		sof += 2 + (size_t)(b[sof + 2] << 8 | b[sof + 3]);
	CHECK(b[sof] == 0xff && b[sof + 1] == 0xc0);
	for (int k = 0; k < 2; k++) {
		b[sof + 5] = b[sof + 7] = k ? 0xff : 0x1f; /* 65,343 or 8,000 pixels each way */
		b[sof + 6] = b[sof + 8] = k ? 0x3f : 0x40;
		put("b.jpg", b, size, false);
		refused("b.jpg", k ? "expected at most" : "can hold");
	}
	free(b);
}

RUN_TESTS()
