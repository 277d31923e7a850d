#include "plot_follow.h"
#include "base/arena.h"
#include "gtrain_view.h"
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PERIOD_NS 500000000 /* interval at which the runs are read */
#define PANEL_ROWS 3        /* rows of a panel in addition to its curves: title, axis, labels */

struct follow {
	struct gt_cli *cli;
	const struct gt_plot_runs *runs;
	struct winsize screen;
	int lines; /* number of printed lines since the last frame began */
};

enum gt_code gt_plot_runs_chart(const struct gt_plot_runs *runs, struct gt_arena *a, struct gt_chart **out, struct gt_err *err)
{
	return gt_run_chart((const struct gt_run_curves *const *)runs->run, runs->n, &runs->spec, a, out, err);
}

/* Returns whether at least one run is still trained. Sets *changed to whether a run has new values. */
static enum gt_code update_runs(const struct gt_plot_runs *runs, bool *running, bool *changed, struct gt_err *err)
{
	*running = *changed = false;
	for (int i = 0; i < runs->n; i++) {
		GT_TRY(gt_run_curves_update(runs->run[i], err));
		*running |= !strcmp(runs->run[i]->state, "running");
		*changed |= runs->run[i]->changed;
	}
	return GT_OK;
}

static bool exists_run(const char *path)
{
	struct gt_arena *arena;
	struct gt_run_curves *run;
	struct gt_err why;
	const char *const *trial;
	int n;
	if (gt_arena_open(&arena, &why))
		return true; /* opening the run reports the error */
	enum gt_code code = gt_runs_expand(&path, 1, arena, &trial, &n, &why);
	if (!code && !(code = gt_run_curves_open(trial[0], 0, &run, &why)))
		gt_run_curves_close(run);
	gt_arena_close(arena);
	return code != GT_ENOINPUT;
}

static bool is_file(const char *path)
{
	struct stat st;
	return !stat(path, &st) && !S_ISDIR(st.st_mode);
}

void gt_plot_wait(struct gt_cli *cli, const char *path)
{
	for (bool first = true; !is_file(path) && !exists_run(path); first = false) {
		if (first && !cli->args.quiet)
			gt_cli_note(cli, "waiting until a run starts in %s; Ctrl-C ends this", path);
		nanosleep(&(struct timespec){.tv_nsec = PERIOD_NS}, NULL);
	}
}

static bool measure_screen(struct follow *f)
{
	struct winsize now;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &now) || now.ws_row < 2 || now.ws_col < 2)
		now = (struct winsize){.ws_row = 24, .ws_col = 80};
	bool changed = now.ws_row != f->screen.ws_row || now.ws_col != f->screen.ws_col;
	f->screen = now;
	return changed;
}

/* Divides the screen among the panels. Panels that would have fewer than 3 rows are left out. */
static struct gt_plot_size divide_screen(const struct follow *f, const struct gt_chart *chart)
{
	int columns = f->screen.ws_col < GT_PLOT_WIDEST ? f->screen.ws_col : GT_PLOT_WIDEST;
	int rows = f->screen.ws_row - 2 - gt_plot_legend_rows(f->cli, chart, columns), panels = chart->npanels;
	while (panels > 1 && rows / panels < PANEL_ROWS + 3)
		panels--;
	return (struct gt_plot_size){columns, rows / (panels ? panels : 1) - PANEL_ROWS, panels};
}

/* Prints "2 of 3 runs are trained; not shown: top5, lr (--score)". */
static void print_head(struct follow *f, const struct gt_chart *chart, struct gt_plot_size size)
{
	char line[1024], fit[1024];
	int running = 0;
	for (int i = 0; i < f->runs->n; i++)
		running += !strcmp(f->runs->run[i]->state, "running");
	int n = f->runs->n > 1 ? snprintf(line, sizeof line, "%d of %d runs are being trained", running, f->runs->n)
	                       : snprintf(line, sizeof line, "%.400s: %.60s", f->runs->run[0]->dir, f->runs->run[0]->state);
	for (int i = size.panels; i < chart->npanels; i++)
		n += snprintf(line + n, sizeof line - (size_t)n, "%s%s", i == size.panels ? "; not shown: " : ", ", chart->panel[i].score);
	if (size.panels < chart->npanels)
		snprintf(line + n, sizeof line - (size_t)n, " (--score)");
	gt_out(f->cli, "%s\n", gt_text_fit(f->cli, line, f->screen.ws_col - 1, fit, sizeof fit));
	f->lines++;
}

/* Replaces the last frame. After a change of the terminal's size its lines may be wrapped, so the whole screen is erased. */
static enum gt_code draw_frame(struct follow *f, bool resized, struct gt_err *err)
{
	struct gt_arena *arena;
	struct gt_chart *chart;
	GT_TRY(gt_arena_open(&arena, err));
	enum gt_code code = gt_plot_runs_chart(f->runs, arena, &chart, err);
	if (!code) {
		struct gt_plot_size size = divide_screen(f, chart);
		if (f->lines && resized)
			gt_out(f->cli, "\033[H\033[2J");
		else if (f->lines)
			gt_out(f->cli, "\033[%dA\033[J", f->lines);
		f->lines = 0;
		print_head(f, chart, size);
		code = gt_plot_chart(f->cli, chart, size, arena, &f->lines, err);
		gt_out_flush(f->cli);
	}
	gt_arena_close(arena);
	return code;
}

enum gt_code gt_plot_follow(struct gt_cli *cli, const struct gt_plot_runs *runs, struct gt_err *err)
{
	struct follow f = {.cli = cli, .runs = runs};
	bool running = true, changed;
	setvbuf(stdout, NULL, _IOFBF, 1 << 16); /* writes each frame at once, to avoid flicker */
	for (bool first = true; running && !cli->out_errno; first = false) {
		if (!first)
			nanosleep(&(struct timespec){.tv_nsec = PERIOD_NS}, NULL);
		GT_TRY(update_runs(runs, &running, &changed, err));
		bool resized = measure_screen(&f);
		if (changed || resized || !running)
			GT_TRY(draw_frame(&f, resized, err));
	}
	return GT_OK;
}
