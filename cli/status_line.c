#include "status_line.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ERASE "\r\033[J"
#define WRAP_OFF "\033[?7l"
#define WRAP_ON "\033[?7h"
#define MAX_LINE 1024

enum { BAR_LEAST = 10, BAR_MOST = 40 }; /* width of the bar in columns, brackets included */

int gt_status_columns(void)
{
	struct winsize ws;
	if (!isatty(STDERR_FILENO))
		return 0;
	return ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 1 ? ws.ws_col : 80;
}

void gt_status_paint(struct gt_cli *cli, const char *text)
{
	char line[MAX_LINE + 32];
	/* one write, so that lines of several processes are not mixed */
	int n = snprintf(line, sizeof line, ERASE WRAP_OFF "%.*s" WRAP_ON "\r", MAX_LINE, text);
	fwrite(line, 1, (size_t)n, stderr);
	fflush(stderr);
	cli->painted = true;
}

void gt_status_erase(struct gt_cli *cli)
{
	if (!cli->painted)
		return;
	cli->painted = false;
	fputs(ERASE, stderr);
	fflush(stderr);
}

static struct gt_part *append_part(struct gt_parts *p, int rank)
{
	struct gt_part *t = &p->part[p->n < GT_PARTS ? p->n++ : GT_PARTS - 1];
	*t = (struct gt_part){.rank = rank, .bar = NAN};
	return t;
}

void gt_parts_add(struct gt_parts *p, int rank, const char *fmt, ...)
{
	struct gt_part *t = append_part(p, rank);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(t->text, sizeof t->text, fmt, ap);
	va_end(ap);
}

void gt_parts_bar(struct gt_parts *p, int rank, double share)
{
	append_part(p, rank)->bar = share > 1 ? 1 : share >= 0 ? share : 0;
}

/* Draws "[=====>    ]" with `width` characters. */
static int draw_bar(char *buf, size_t size, double share, int width)
{
	char cells[BAR_MOST];
	int room = width - 2, full = (int)(share * room);
	memset(cells, ' ', sizeof cells);
	memset(cells, '=', (size_t)full);
	if (full < room)
		cells[full] = '>';
	return snprintf(buf, size, "[%.*s]", room, cells);
}

/* Returns the width of a part with the spaces before it. */
static int part_width(const struct gt_part *t)
{
	return (t->tight ? 1 : 2) + (isnan(t->bar) ? (int)strlen(t->text) : BAR_LEAST);
}

/* Chooses the parts that fit. Returns the remaining columns. */
static int choose_parts(const struct gt_parts *p, int columns, bool *kept)
{
	int total = -2;
	for (int i = 0; i < p->n; i++) {
		kept[i] = true;
		total += part_width(&p->part[i]);
	}
	for (int left = p->n; total > columns && left > 1; left--) {
		int worst = -1;
		for (int i = 0; i < p->n; i++)
			if (kept[i] && (worst < 0 || p->part[i].rank >= p->part[worst].rank))
				worst = i;
		kept[worst] = false;
		total -= part_width(&p->part[worst]);
	}
	return columns - total;
}

void gt_parts_join(const struct gt_parts *p, int columns, char *buf, size_t size)
{
	bool kept[GT_PARTS] = {false};
	int spare = choose_parts(p, columns > 0 ? columns : MAX_LINE, kept);
	size_t n = 0;
	*buf = '\0';
	for (int i = 0; i < p->n && n + 1 < size; i++) {
		const struct gt_part *t = &p->part[i];
		int bar = BAR_LEAST + (spare > 0 ? spare : 0);
		if (!kept[i] || (columns <= 0 && !isnan(t->bar)))
			continue;
		n += (size_t)snprintf(buf + n, size - n, "%s", !n ? "" : t->tight ? " " : "  ");
		if (n < size && isnan(t->bar))
			n += (size_t)snprintf(buf + n, size - n, "%s", t->text);
		else if (n < size)
			n += (size_t)draw_bar(buf + n, size - n, t->bar, bar < BAR_MOST ? bar : BAR_MOST);
	}
	if (columns > 0 && strlen(buf) > (size_t)columns) /* truncates the only remaining part, which is ASCII */
		buf[columns] = '\0';
}
