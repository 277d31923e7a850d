/* A part of the public interface of the engine (gtrain.h): charts, described independently of their output. cli/ shows a chart on the
 * terminal; gt_chart_write draws it as a file.
 *
 *     struct gt_chart *chart;
 *     GT_TRY(gt_run_chart(curves, n, &spec, arena, &chart, err));
 *     GT_TRY(gt_chart_write(chart, "curves.svg", err));
 */
#ifndef GT_GTRAIN_CHART_H
#define GT_GTRAIN_CHART_H

#include "base/err.h"
#include "base/scores.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_arena;
struct gt_run_curves;

#define GT_CHART_COLORS 7 /* colours that lines can have; they are distinguishable with each kind of colour blindness */

enum gt_chart_dash { GT_DASH_SOLID, GT_DASH_LONG, GT_DASH_DOTTED };

struct gt_chart_line {
	const char *name;    /* name of the line in the file, such as "runs/fast, valid", which viewers may show */
	const double *x, *y; /* [n] coordinates of the points, x ascending; a NAN in y interrupts the line. A logarithmic axis does not show
	                        values <= 0 */
	int n;
	int color;           /* index of the line's colour, 0 ... GT_CHART_COLORS - 1 */
	enum gt_chart_dash dash;
	char letter;         /* letter of this line in the legend, for charts without colours */
	bool faint;          /* the line is drawn thin and pale, below the other lines: it has the raw values of another line, which is their
	                        average */
	bool points;         /* a dot is also drawn at each value */
};

struct gt_chart_mark { /* a vertical line in a chart, with a text */
	double x;            /* NAN: no mark */
	char letter;         /* the text of the mark in a chart on the terminal */
	const char *text;    /* the text of the mark in a chart in a file */
};

struct gt_chart_panel { /* a coordinate system */
	const char *title;
	const char *score;   /* word of the score in a config, or "lr" */
	bool log_y;
	double low, high;    /* range of the y axis; NAN: the range of the values of the lines */
	struct gt_chart_line *line; /* [nlines] */
	int nlines;
	const struct gt_chart_mark *mark; /* [nmarks] */
	int nmarks;
};

struct gt_chart_key { /* a row of the legend */
	const char *text;
	int color;           /* -1: the colour of texts, for a key that explains a dash */
	enum gt_chart_dash dash;
	char letter;         /* letter that identifies the lines of this key if colours are off or repeat; 0: the key has no colour */
};

struct gt_chart {
	const char *title;
	const char *x_title; /* "epoch", "step" */
	bool log_x;
	struct gt_chart_panel *panel; /* [npanels] the panels, which all have the same x axis */
	int npanels;
	const struct gt_chart_key *key; /* [nkeys] the legend */
	int nkeys;
	double width;        /* width of the image file in pixels; 0: computed from the columns of panels */
};

/* Writes a chart to a file, whose format is given by the extension .svg or .png. Replaces the file atomically. GT_EUSAGE: another
 * extension. GT_EUNAVAILABLE: the plugin that draws PNG files, or its library, is not installed. */
enum gt_code gt_chart_write(const struct gt_chart *c, const char *path, struct gt_err *err);
/* Checks the requirements of gt_chart_write before the data of the chart is computed: the extension, the directory and the plugin. option:
 * name of the option, for the message. GT_ECANTCREAT: no file can be created in the directory. Other codes: see gt_chart_write. */
enum gt_code gt_chart_check_path(const char *path, const char *option, struct gt_err *err);
/* Sets *text to the chart as an SVG document of *n bytes. The caller frees *text with free(). */
enum gt_code gt_chart_svg(const struct gt_chart *c, char **text, size_t *n, struct gt_err *err);

/* ---- axes ------------------------------------------------------------------------------------------------------------------------ */
#define GT_AXIS_TICKS 24
struct gt_axis {
	double low, high;    /* limits of the axis: low < high, and low > 0 if the axis is logarithmic */
	bool log;
	double tick[GT_AXIS_TICKS]; /* [n] round numbers from low to high */
	int n;
	int decimals;        /* number of decimals of the tick labels; -1: chosen for each label, or labels are powers of ten */
	int digits;          /* maximum number of significant digits of a tick label if decimals is -1 */
};
/* Sets an axis from low to high, which can be equal. The axis has at most `most` ticks (2 ... GT_AXIS_TICKS), but a linear axis has at
 * least two. */
void gt_axis_set(struct gt_axis *a, double low, double high, bool log, int most);
double gt_axis_share(const struct gt_axis *a, double value); /* returns the position of a value on the axis: 0 at low, 1 at high */
#define GT_AXIS_LABEL 32
const char *gt_axis_label(const struct gt_axis *a, double value, char buf[GT_AXIS_LABEL]); /* writes the label of a tick, returns buf */
/* Position of a panel's coordinate system in a file, in pixels, and its axes. */
struct gt_chart_box {
	double x, y, w, h;
};
struct gt_chart_frame {
	struct gt_chart_box at;
	struct gt_axis x, y;
};
void gt_chart_place(const struct gt_chart *c, int panel, struct gt_chart_frame *out);
/* Sets the axes of a panel. The ranges are those of the panel's values, without the outliers of faint lines. */
void gt_chart_axes(const struct gt_chart *c, const struct gt_chart_panel *p, int most_x, int most_y, struct gt_axis *x, struct gt_axis *y);

/* ---- runs ------------------------------------------------------------------------------------------------------------------------ */
enum gt_run_chart_x { GT_X_AUTO, GT_X_STEP, GT_X_EPOCH }; /* GT_X_AUTO selects epochs if the epochs of all runs are known, else steps */

struct gt_run_chart_spec {
	enum gt_run_chart_x x;
	bool log;             /* logarithmic axes for scores that fall and for the learning rate */
	bool smooth;          /* draws the moving average of the training steps, and the raw values as a pale line */
	const char *const *score; /* [nscores] words of the scores to draw: "loss", "lr"; none: all that the runs have */
	int nscores;
	bool partial;         /* leaves out a score that no run has so far; false: such a score is an error */
};
/* Describes the curves of runs: one panel for each score, with the training, validation and test values of each run. Lasts as long as the
 * arena. GT_EUSAGE: a score does not exist, or no run has it; or epochs are requested, but not known. */
enum gt_code gt_run_chart(const struct gt_run_curves *const *runs, int n, const struct gt_run_chart_spec *spec, struct gt_arena *a,
                          struct gt_chart **out, struct gt_err *err);

#endif
