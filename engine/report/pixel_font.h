/* A font of 5 x 7 pixels for captions in images: the printable ASCII characters; a box for any other character.
 *
 *     gt_pixel_text(&picture, x, y, 2, "cat", 0x000000);       14 pixels high
 */
#ifndef GT_REPORT_PIXEL_FONT_H
#define GT_REPORT_PIXEL_FONT_H

#include <stdint.h>

struct gt_picture {
	uint8_t *rgb; /* [h, w, 3] */
	int64_t w, h;
};

#define GT_FONT_STEP 6  /* pixels from one character to the next, at scale 1 */
#define GT_FONT_HEIGHT 7

/* Returns the number of characters of a text (UTF-8). */
int gt_pixel_text_length(const char *text);
/* Draws a text whose upper left pixel is (x, y). color: 0xRRGGBB. Characters that are not wholly inside the picture are left out. */
void gt_pixel_text(struct gt_picture *to, int64_t x, int64_t y, int scale, const char *text, uint32_t color);

#endif
