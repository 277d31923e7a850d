/* Parts of a JPEG against the same pixels of the whole image, for every sampling, scale and kind of file. */
#include "image/decode.h"
#include "image/image_scratch.h"
#include "image/transform.h"
#include "test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>

/* Encodes a smooth image with noise. h, v: sampling factors of the first component; 0: a grey image. */
static uint8_t *encode(int w, int h, int hs, int vs, bool progressive, int quality, size_t *size)
{
	struct jpeg_compress_struct j;
	struct jpeg_error_mgr mgr;
	unsigned char *out = NULL;
	unsigned long n = 0;
	int c = hs ? 3 : 1;
	uint8_t *row = malloc((size_t)(w * c));
	uint32_t r = 1;
	j.err = jpeg_std_error(&mgr);
	jpeg_create_compress(&j);
	jpeg_mem_dest(&j, &out, &n);
	j.image_width = (unsigned)w;
	j.image_height = (unsigned)h;
	j.input_components = c;
	j.in_color_space = c == 1 ? JCS_GRAYSCALE : JCS_RGB;
	jpeg_set_defaults(&j);
	jpeg_set_quality(&j, quality, TRUE);
	if (hs) {
		j.comp_info[0].h_samp_factor = hs;
		j.comp_info[0].v_samp_factor = vs;
	}
	if (progressive)
		jpeg_simple_progression(&j);
	jpeg_start_compress(&j, TRUE);
	for (int y = 0; y < h; y++) {
		for (int i = 0; i < w * c; i++) {
			r = r * 1664525u + 1013904223u;
			row[i] = (uint8_t)((i / c * 3 + y * 2 + i % c * 70) % 200 + (int)(r >> 27));
		}
		JSAMPROW at = row;
		jpeg_write_scanlines(&j, &at, 1);
	}
	jpeg_finish_compress(&j);
	jpeg_destroy_compress(&j);
	free(row);
	*size = n;
	return out;
}

TEST(parts_of_jpegs)
{
	static const int sampling[][2] = {{0, 0}, {1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}};
	struct gt_image_scratch *s;
	struct gt_err e;
	uint32_t r = 7;
	int tried = 0;
	CHECK_OK(gt_image_scratch_open(&s, &e), e);
	for (int k = 0; k < 6 * 2 * 4; k++) {
		int w = 131 + k % 7, h = 117 + k % 5, reduce = 1 << k / 12;
		size_t size;
		uint8_t *raw = encode(w, h, sampling[k % 6][0], sampling[k % 6][1], k / 6 % 2, k % 3 ? 75 : 95, &size);
		struct gt_image_head head;
		struct gt_decode_part part = {.reduce = reduce, .x1 = (w + reduce - 1) / reduce, .y1 = (h + reduce - 1) / reduce};
		struct gt_pixels px;
		CHECK_OK(gt_decode_head(raw, size, "a.jpg", s, &head, &e), e);
		CHECK_OK(gt_decode_pixels(raw, size, "a.jpg", &head, &part, s, &px, &e), e);
		int64_t fw = part.x1, fh = part.y1, c = px.c;
		CHECK(px.w == fw && px.h == fh && head.w == w && head.h == h);
		uint8_t *whole = malloc((size_t)(fw * fh * c));
		memcpy(whole, px.data, (size_t)(fw * fh * c));
		for (int i = 0; i < 60; i++) {
			int64_t n[4];
			for (int m = 0; m < 4; m++) {
				r = r * 1664525u + 1013904223u;
				n[m] = (int64_t)((r >> 16) % (uint32_t)(m % 2 ? fw + 1 : fh + 1));
			}
			part.y0 = n[0] < n[2] ? n[0] : n[2];
			part.y1 = n[0] < n[2] ? n[2] : n[0];
			part.x0 = n[1] < n[3] ? n[1] : n[3];
			part.x1 = n[1] < n[3] ? n[3] : n[1];
			if (part.x0 == part.x1 || part.y0 == part.y1)
				continue;
			CHECK_OK(gt_decode_head(raw, size, "a.jpg", s, &head, &e), e);
			CHECK_OK(gt_decode_pixels(raw, size, "a.jpg", &head, &part, s, &px, &e), e);
			CHECK(px.left <= part.x0 && px.top <= part.y0 && px.left + px.w >= part.x1 && px.top + px.h >= part.y1);
			int64_t bad = 0, at_y = 0, at_x = 0;
			for (int64_t y = part.y0; y < part.y1; y++)
				for (int64_t x = part.x0; x < part.x1; x++)
					if (memcmp(px.data + ((y - px.top) * px.w + x - px.left) * c, whole + (y * fw + x) * c, (size_t)c)) {
						at_y = bad ? at_y : y;
						at_x = bad ? at_x : x;
						bad++;
					}
			tried++;
			CHECK_MSG(!bad, "sampling %d x %d, %s, 1/%d, %d x %d: columns %d to %d, rows %d to %d: %d pixels differ, first x %d y %d",
			          sampling[k % 6][0], sampling[k % 6][1], k / 6 % 2 ? "progressive" : "sequential", reduce, w, h, (int)part.x0,
			          (int)part.x1, (int)part.y0, (int)part.y1, (int)bad, (int)at_x, (int)at_y);
		}
		free(whole);
		free(raw);
	}
	gt_image_scratch_close(s);
	printf("# parts compared: %d\n", tried);
}

/* A file without tables is refused, and is not shown with those of the image before it, which another thread would not have read. */
TEST(tables_of_another_jpeg)
{
	static const int gone[] = {0xdb, 0xc4}; /* DQT, DHT */
	struct gt_image_scratch *s;
	struct gt_image_head head;
	struct gt_decode_part part = {.reduce = 1, .x1 = 40, .y1 = 30};
	struct gt_pixels px;
	struct gt_err e;
	size_t size, more, n;
	uint8_t *raw = encode(40, 30, 1, 1, false, 75, &size), *other = encode(40, 30, 2, 2, true, 20, &more), first[40 * 30 * 3];
	CHECK_OK(gt_image_scratch_open(&s, &e), e);
	for (int k = 0; k < 2; k++) {
		uint8_t *cut = malloc(size);
		enum gt_code alone = GT_OK;
		n = 0;
		for (size_t i = 0, len; i < size; i += len) { /* SOI, then segments with their length, until SOS */
			len = i == 0 ? 2 : raw[i + 1] == 0xda ? size - i : 2 + (size_t)raw[i + 2] * 256 + raw[i + 3];
			if (i && raw[i + 1] == gone[k])
				continue;
			memcpy(cut + n, raw + i, len);
			n += len;
		}
		CHECK(n < size);
		for (int after = 0; after < 2; after++) { /* by a new decoder, then after another image */
			enum gt_code code = gt_decode_head(cut, n, "a.jpg", s, &head, &e);
			code = code == GT_OK ? gt_decode_pixels(cut, n, "a.jpg", &head, &part, s, &px, &e) : code;
			/* some versions of libjpeg have the standard's Huffman tables for files that have none */
			CHECK(k ? after == 0 || code == alone : code == GT_EDATA && strstr(e.msg, "a.jpg: JPEG:"));
			if (code == GT_OK && after)
				CHECK(!memcmp(first, px.data, sizeof first));
			else if (code == GT_OK)
				memcpy(first, px.data, sizeof first);
			alone = code;
			CHECK_OK(gt_decode_head(other, more, "b.jpg", s, &head, &e), e);
			CHECK_OK(gt_decode_pixels(other, more, "b.jpg", &head, &part, s, &px, &e), e);
		}
		gt_image_scratch_close(s); /* the next file without tables meets a new decoder too */
		CHECK_OK(gt_image_scratch_open(&s, &e), e);
		free(cut);
	}
	free(raw);
	free(other);
	gt_image_scratch_close(s);
}

RUN_TESTS()
