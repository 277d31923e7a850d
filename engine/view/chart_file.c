/* gt_chart_write of gtrain_chart.h: the file name extension selects the format. */
#include "base/fileio.h"
#include "base/plugin.h"
#include "view/canvas.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PNG_SCALE 2 /* pixels per unit of the chart: sharp on screens of high resolution */

static void draw_chart(const void *what, const struct gt_canvas *to)
{
	gt_chart_draw(what, to);
}

static enum gt_code open_plugin(const struct gt_draw_plugin **out, struct gt_err *err)
{
	void *symbol;
	if (gt_plugin_open("draw", GT_DRAW_SYMBOL, &symbol, err))
		return gt_fail_prefix(err, "a PNG file needs the plugin draw and the library of Debian's package libcairo2; an SVG file needs "
		                      "neither");
	*out = symbol;
	if ((*out)->abi != GT_DRAW_ABI)
		return gt_fail(err, GT_EUNAVAILABLE, "the plugin draw has version %u, but this gtrain needs %u: install both from one build",
		               (*out)->abi, (unsigned)GT_DRAW_ABI);
	return GT_OK;
}

static enum gt_code make_png(const struct gt_chart *c, char **data, size_t *n, struct gt_err *err)
{
	const struct gt_draw_plugin *plugin;
	double w, h;
	GT_TRY(open_plugin(&plugin, err));
	gt_chart_size(c, &w, &h);
	return plugin->png(w, h, PNG_SCALE, draw_chart, c, data, n, err);
}

static const struct {
	const char *ending;
	enum gt_code (*make)(const struct gt_chart *c, char **data, size_t *n, struct gt_err *err);
} formats[] = {{".svg", gt_chart_svg}, {".png", make_png}};

/* Returns the index of the format of a file; -1: the extension belongs to no format. */
static int find_format(const char *path)
{
	const char *name = strrchr(path, '/'), *ending = strrchr(name ? name : path, '.');
	for (int i = 0; ending && i < (int)(sizeof formats / sizeof *formats); i++)
		if (!strcasecmp(ending, formats[i].ending))
			return i;
	return -1;
}

enum gt_code gt_chart_check_path(const char *path, const char *option, struct gt_err *err)
{
	char parent[GT_PATH_SIZE];
	const struct gt_draw_plugin *plugin;
	int format = find_format(path);
	if (format < 0)
		return gt_fail(err, GT_EUSAGE, "%s: expected a file name that ends in .svg or .png, got '%.500s'", option, path);
	GT_TRY(gt_path_parent(parent, path, err));
	if (access(parent, W_OK | X_OK))
		return gt_fail_errno(err, GT_ECANTCREAT, errno, "%s", path);
	return formats[format].make == make_png ? open_plugin(&plugin, err) : GT_OK;
}

enum gt_code gt_chart_write(const struct gt_chart *c, const char *path, struct gt_err *err)
{
	char *data;
	size_t n;
	GT_TRY(gt_chart_check_path(path, "the file of a chart", err));
	GT_TRY(formats[find_format(path)].make(c, &data, &n, err));
	enum gt_code code = gt_file_replace(path, 0666, data, n, err);
	free(data);
	return code;
}
