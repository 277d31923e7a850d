/* Prints a chart (gtrain_chart.h) as text: with Braille dots (2 by 4 per character) if the character set is UTF-8, else with letters. Lines
 * are distinguished by colours or, if colours are off or repeat, by their letters in the legend. The text moves no cursor, so it can be
 * printed to a file.
 *
 *     loss by step
 *       2     |aaaaa
 *             |     aaab bb
 *       0     |        aaabb bbbb
 *             +---+-------+------
 *                 0      500 */
#ifndef GT_CLI_PLOT_CHART_H
#define GT_CLI_PLOT_CHART_H

#include "cli.h"

struct gt_chart;

struct gt_plot_size {
	int columns; /* width of the text */
	int rows;    /* rows of a panel, without its title and the two rows of its axis; at least 3 */
	int panels;  /* number of panels that are shown, from the first panel */
};
#define GT_PLOT_WIDEST 100 /* maximum columns on a wide terminal */

/* Prints the legend and the panels. Uses memory of the arena during the call. Adds the number of printed lines to *lines. */
enum gt_code gt_plot_chart(struct gt_cli *cli, const struct gt_chart *c, struct gt_plot_size size, struct gt_arena *a, int *lines,
                           struct gt_err *err);
int gt_plot_legend_rows(struct gt_cli *cli, const struct gt_chart *c, int columns); /* returns the number of lines of the legend */

#endif
