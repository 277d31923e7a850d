/* Reads the orientation of an image, tag 0x0112 in the first directory of its Exif data (Exif 2.32, 4.6.4: TIFF 6.0), and rotates and
 * mirrors the image so that it is upright. */
#include "image/decode.h"
#include "image/image_scratch.h"
#include <string.h>

enum { TAG_ORIENTATION = 0x0112, TYPE_SHORT = 3, ENTRY = 12 };

static uint32_t read_number(const uint8_t *p, int bytes, bool little)
{
	uint32_t v = 0;
	for (int i = 0; i < bytes; i++)
		v = v << 8 | p[little ? bytes - 1 - i : i];
	return v;
}

int gt_exif_orientation(const uint8_t *p, size_t n)
{
	if (n >= 6 && !memcmp(p, "Exif\0\0", 6)) /* In a JPEG, segment APP1 has this prefix before the TIFF header; in a PNG, chunk eXIf has no
	                                            prefix. */
		p += 6, n -= 6;
	if (n < 8 || (memcmp(p, "II*\0", 4) && memcmp(p, "MM\0*", 4)))
		return 1;
	bool little = *p == 'I';
	size_t at = read_number(p + 4, 4, little);
	if (at > n - 2)
		return 1;
	size_t entries = read_number(p + at, 2, little);
	at += 2;
	for (; entries && n - at >= ENTRY; entries--, at += ENTRY) {
		if (read_number(p + at, 2, little) != TAG_ORIENTATION)
			continue;
		uint32_t v = read_number(p + at + 8, 2, little);
		return read_number(p + at + 2, 2, little) == TYPE_SHORT && read_number(p + at + 4, 4, little) == 1 && v >= 1 && v <= 8 ? (int)v : 1;
	}
	return 1;
}

/* Orientations 1..8: the positions of row 0 and column 0 of the stored image in the upright image, from the table in the standard. */
static const struct {
	bool swapped, right, bottom; /* swapped: rows become columns; right, bottom: column 0 is right, row 0 at the bottom (before the swap) */
} how[] = {{false, false, false}, {false, true, false}, {false, true, true}, {false, false, true},
           {true, false, false},  {true, false, true},  {true, true, true},  {true, true, false}};

void gt_orientation_mirrors(int orientation, bool *x, bool *y)
{
	*x = how[orientation - 1].swapped ? how[orientation - 1].bottom : how[orientation - 1].right;
	*y = how[orientation - 1].swapped ? how[orientation - 1].right : how[orientation - 1].bottom;
}

enum gt_code gt_pixels_orient(struct gt_pixels *p, int orientation, struct gt_image_scratch *s, struct gt_err *err)
{
	if (orientation <= 1 || orientation > 8)
		return GT_OK;
	size_t c = (size_t)p->c;
	uint8_t *out;
	GT_TRY(gt_scratch_take(s, GT_BUF_UPRIGHT, (size_t)p->w * (size_t)p->h * c, &out, err));
	bool swapped = how[orientation - 1].swapped, right = how[orientation - 1].right, bottom = how[orientation - 1].bottom;
	int64_t stride = swapped ? p->h : p->w; /* pixels per row of the rotated image */
	for (int64_t y = 0; y < p->h; y++)
		for (int64_t x = 0; x < p->w; x++) {
			int64_t tx = right ? p->w - 1 - x : x, ty = bottom ? p->h - 1 - y : y;
			memcpy(out + (size_t)(swapped ? tx * stride + ty : ty * stride + tx) * c, p->data + (size_t)(y * p->w + x) * c, c);
		}
	p->data = out;
	if (swapped) {
		int64_t w = p->w;
		p->w = p->h;
		p->h = w;
	}
	return GT_OK;
}
