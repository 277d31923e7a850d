/* A font of 5 x 8 pixels for captions in images: the printable ASCII characters, letters of Latin-1 without their accents, and a
 * question mark for any other character. The last row of pixels is below the base line.
 *
 *     gt_pixel_text(&picture, x, y, 2, "cat", 0x000000);       16 pixels high
 */
#ifndef GT_REPORT_PIXEL_FONT_H
#define GT_REPORT_PIXEL_FONT_H

#include <stdbool.h>
#include <stdint.h>

struct gt_picture {
	uint8_t *rgb; /* [h, w, 3] */
	int64_t w, h;
};

#define GT_FONT_STEP 6  /* distance in pixels from one character to the next, at scale 1 */
#define GT_FONT_HEIGHT 8

/* Returns the number of characters of a text (UTF-8). */
int gt_pixel_text_length(const char *text);
/* returns whether the font has all characters of a text, so that none is drawn as a question mark in its place */
bool gt_pixel_text_complete(const char *text);
/* Draws a text with its upper left pixel at (x, y). color: 0xRRGGBB. Characters that are not completely inside the picture are left out. */
void gt_pixel_text(struct gt_picture *to, int64_t x, int64_t y, int scale, const char *text, uint32_t color);

#endif
