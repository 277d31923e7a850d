/* Plots a curve as text, as wide as the terminal: with Braille dots (2 by 4 per character) if the character set is UTF-8, else with
 * asterisks. The plot uses no colours and no cursor movement, so that it can be printed to a file.
 *
 *     2.31 |*****
 *          |     ***
 *     0.42 |        **V***
 *          +---+----+----+--
 *            1e-6 1e-4 0.01 */
#ifndef GT_CLI_PLOT_CURVE_H
#define GT_CLI_PLOT_CURVE_H

#include "cli.h"

struct gt_plot {
	const double *x, *y; /* [n], finite, x ascending */
	int n;
	/* Range of y in the plot. Parts of the curve outside this range are not drawn. */
	double low, high;
	const double *mark;  /* [nmarks]: values of x at which a letter is printed on the curve; NAN: no letter */
	const char *letter;  /* [nmarks] */
	int nmarks;
	int columns, rows;   /* size of the plot with its labels */
};

/* Prints the plot. x is a decimal logarithm: the labels below the plot are powers of ten. */
enum gt_code gt_plot_print(struct gt_cli *cli, const struct gt_plot *p, struct gt_err *err);

#endif
