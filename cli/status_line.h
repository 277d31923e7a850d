/* A status line on the terminal of stderr that is rewritten in place, and text that is assembled from parts to fit the width.
 *
 * The cursor remains in the first column of the line, and erasing clears from there to the end of the screen. If the terminal becomes
 * narrower, it wraps the line into several rows and moves the cursor to the first row, so that all rows are erased. Automatic wrapping is
 * off while the line is written, so that a text for a wider terminal is clipped. */
#ifndef GT_CLI_STATUS_LINE_H
#define GT_CLI_STATUS_LINE_H

#include "cli.h"

int gt_status_columns(void); /* returns the current width of the terminal of stderr; 0 if stderr is not a terminal */
void gt_status_paint(struct gt_cli *cli, const char *text); /* replaces the line; text must be narrower than the terminal */
void gt_status_erase(struct gt_cli *cli);

#define GT_PARTS 16
#define GT_PART_TEXT 80
struct gt_part {
	int rank;    /* the part with the highest rank is left out first */
	bool tight;  /* one space, instead of two, separates this part from the previous part */
	double bar;  /* for a progress bar, which takes the remaining width: the progress, 0 ... 1; NAN: the part is a text */
	char text[GT_PART_TEXT];
};
struct gt_parts {
	int n;
	struct gt_part part[GT_PARTS];
};
void gt_parts_add(struct gt_parts *p, int rank, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void gt_parts_bar(struct gt_parts *p, int rank, double share);
/* Writes the parts that fit into `columns`, in their order; if columns is 0, all parts except bars. */
void gt_parts_join(const struct gt_parts *p, int columns, char *buf, size_t size);

#endif
