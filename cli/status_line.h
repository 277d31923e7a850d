/* One line of the terminal behind stderr that is rewritten in place, and text that is made of parts to fit a line.
 *
 * The cursor rests in the first column of the painted line, and erasing clears from there to the end of the screen. A terminal that
 * becomes narrower wraps the line into several rows and takes the cursor along to the first of them, so all of them are erased. Painting
 * switches automatic wrapping off: a text that was made for a wider terminal a moment ago is clipped. */
#ifndef GT_CLI_STATUS_LINE_H
#define GT_CLI_STATUS_LINE_H

#include "cli.h"

int gt_status_columns(void); /* of the terminal behind stderr, asked anew; 0: stderr is no terminal, lines have no limit */
void gt_status_paint(struct gt_cli *cli, const char *text); /* replaces the line; text is of fewer columns than the terminal */
void gt_status_erase(struct gt_cli *cli);

#define GT_PARTS 16
#define GT_PART_TEXT 80
struct gt_part {
	int rank;    /* the part with the highest rank is left out first */
	bool tight;  /* follows the part before it after one space instead of two */
	double bar;  /* 0..1: a bar, as wide as there is room for; NAN: text */
	char text[GT_PART_TEXT];
};
struct gt_parts {
	int n;
	struct gt_part part[GT_PARTS];
};
void gt_parts_add(struct gt_parts *p, int rank, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void gt_parts_bar(struct gt_parts *p, int rank, double share);
/* The parts that fit into `columns`, in their order; all but bars where columns is 0. */
void gt_parts_join(const struct gt_parts *p, int columns, char *buf, size_t size);

#endif
