#include "cli.h"
#include <stdio.h>
#include <string.h>

#define GAP 2
#define MIN_ROOM 20 /* texts are not broken into lines of fewer columns than this */

struct gt_table_row {
	const char *cell[GT_TABLE_COLUMNS]; /* texts of the cells of a row; if all are NULL, the row is a horizontal rule */
	bool head;
};

int gt_text_width(const char *s)
{
	int n = 0;
	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

const char *gt_text_fit(const struct gt_cli *cli, const char *s, int width, char *buf, size_t size)
{
	const char *dots = cli->utf8 ? "…" : "~";
	gt_cli_printable(s, buf, size - 4);
	if (gt_text_width(buf) <= width && strlen(s) < size - 4)
		return buf;
	char *end = buf;
	for (int n = 0; *end && (n += ((unsigned char)*end & 0xc0) != 0x80) < width;)
		end++;
	*end = '\0';
	strcat(buf, dots);
	return buf;
}

const char *gt_text_tail(const struct gt_cli *cli, const char *s, int width, char *buf, size_t size)
{
	int skip = gt_text_width(s) - width;
	const char *from = s;
	size_t room = size - 4;
	if (skip > 0)
		for (skip++; *from && (skip -= ((unsigned char)*from & 0xc0) != 0x80) >= 0;)
			from++;
	for (size_t n = strlen(from); n >= room || ((unsigned char)*from & 0xc0) == 0x80; n--)
		from++;
	if (from == s)
		return gt_cli_printable(s, buf, size);
	int n = snprintf(buf, size, "%s", cli->utf8 ? "…" : "~");
	gt_cli_printable(from, buf + n, size - (size_t)n);
	return buf;
}

void gt_table_init(struct gt_table *t, struct gt_arena *arena, const char *align)
{
	*t = (struct gt_table){.arena = arena, .align = align, .cols = (int)strlen(align)};
}

static struct gt_table_row *append_row(struct gt_table *t)
{
	if (t->rows == t->cap) {
		int cap = t->cap ? t->cap * 2 : 32;
		struct gt_table_row *row = gt_arena_alloc(t->arena, (size_t)cap, sizeof *row);
		if (!row) {
			t->no_memory = true;
			return NULL;
		}
		if (t->rows)
			memcpy(row, t->row, (size_t)t->rows * sizeof *row);
		t->row = row;
		t->cap = cap;
	}
	struct gt_table_row *r = &t->row[t->rows++];
	memset(r, 0, sizeof *r);
	return r;
}

void gt_table_add_cells(struct gt_table *t, bool head, const char *const *cell)
{
	struct gt_table_row *r = append_row(t);
	if (!r)
		return;
	r->head = head;
	for (int i = 0; i < t->cols; i++) {
		char *s = gt_arena_strdup(t->arena, cell[i] ? cell[i] : "");
		if (!s) {
			t->no_memory = true;
			t->rows--;
			return;
		}
		gt_cli_printable(s, s, strlen(s) + 1);
		r->cell[i] = s;
	}
	if (head)
		gt_table_rule(t);
}

void gt_table_rule(struct gt_table *t)
{
	append_row(t);
}

/* ---- tables that fit ------------------------------------------------------------------------------------------------------------ */
static int cell_width(const struct gt_table *t, int column)
{
	int widest = 0;
	for (int i = 0; i < t->rows; i++) {
		int w = t->row[i].cell[0] ? gt_text_width(t->row[i].cell[column]) : 0;
		widest = w > widest ? w : widest;
	}
	return widest;
}

/* Returns the width of all columns but one, with the gaps between all. */
static int others_width(const struct gt_table *t, int column)
{
	int sum = GAP * (t->cols - 1);
	for (int c = 0; c < t->cols; c++)
		sum += c == column ? 0 : cell_width(t, c);
	return sum;
}

static void remove_column(struct gt_table *t, int column)
{
	char *align = gt_arena_strdup(t->arena, t->align);
	size_t after = (size_t)(t->cols - column - 1);
	if (!align) {
		t->no_memory = true;
		return;
	}
	memmove(align + column, align + column + 1, after + 1);
	for (int i = 0; i < t->rows; i++)
		memmove(&t->row[i].cell[column], &t->row[i].cell[column + 1], after * sizeof *t->row[i].cell);
	t->align = align;
	t->cols--;
}

/* Removes columns as gt_table_leave_out describes. Returns the new position of the column `flexible`. */
static int remove_columns(struct gt_table *t, int width, int flexible, int least, const char *drop)
{
	int whole = cell_width(t, flexible);
	least = whole < least ? whole : least;
	for (const char *d = drop; *d && others_width(t, flexible) + least > width; d++) {
		int column = *d - '0';
		for (const char *before = drop; before < d; before++)
			column -= *before < *d;
		remove_column(t, column);
		flexible -= column < flexible;
	}
	return flexible;
}

void gt_table_leave_out(struct gt_table *t, int width, int flexible, int least, const char *drop)
{
	remove_columns(t, width, flexible, least, drop);
}

void gt_table_shorten(const struct gt_cli *cli, struct gt_table *t, int width, int column)
{
	char buf[1024];
	int room = width - others_width(t, column);
	room = room < 4 ? 4 : room;
	for (int i = 0; i < t->rows; i++) {
		if (!t->row[i].cell[0] || gt_text_width(t->row[i].cell[column]) <= room)
			continue;
		const char *copy = gt_arena_strdup(t->arena, gt_text_tail(cli, t->row[i].cell[column], room, buf, sizeof buf));
		t->no_memory |= !copy;
		t->row[i].cell[column] = copy ? copy : "";
	}
}

void gt_table_narrow(const struct gt_cli *cli, struct gt_table *t, int flexible, int least, const char *drop)
{
	int width = gt_out_columns();
	if (gt_out_terminal())
		gt_table_shorten(cli, t, width, remove_columns(t, width, flexible, least, drop));
}

/* ---- output --------------------------------------------------------------------------------------------------------------------- */
void gt_out_words(struct gt_cli *cli, const char *text, int indent, int width)
{
	int col = indent;
	for (const char *p = text; *p;) {
		char word[512];
		size_t len = strcspn(p, " ");
		len = len < sizeof word ? len : sizeof word - 1;
		snprintf(word, sizeof word, "%.*s", (int)len, p);
		int wide = gt_text_width(word);
		if (col > indent && col + 1 + wide > width) {
			gt_out(cli, "\n%*s", indent, "");
			col = indent;
		} else if (col > indent) {
			gt_out(cli, " ");
			col++;
		}
		gt_out(cli, "%s", word);
		col += wide;
		p += len + (p[len] == ' ');
	}
}

void gt_out_sentence(struct gt_cli *cli, const char *text)
{
	if (gt_out_terminal())
		gt_out_words(cli, text, 0, gt_out_columns());
	else
		gt_out(cli, "%s", text);
	gt_out(cli, "\n");
}

enum gt_code gt_table_print(struct gt_cli *cli, const struct gt_table *t, struct gt_err *err)
{
	int w[GT_TABLE_COLUMNS] = {0}, total = -GAP, last = t->cols - 1;
	if (t->no_memory)
		return gt_fail_memory(err, 0);
	for (int i = 0; i < t->rows; i++)
		for (int c = 0; c < t->cols && t->row[i].cell[0]; c++)
			if (gt_text_width(t->row[i].cell[c]) > w[c])
				w[c] = gt_text_width(t->row[i].cell[c]);
	for (int c = 0; c < t->cols; c++)
		total += w[c] + GAP;
	/* On a terminal, texts in the last column are broken into lines if the table is too wide; they start below the other columns if there
	 * is too little space beside these. In a pipe or file, each row is one line. */
	int indent = total - w[last], width = gt_out_columns();
	bool wrap = t->align[last] == 'l' && total > width && gt_out_terminal(), below = wrap && width - indent < MIN_ROOM;
	if (below) {
		total = indent - GAP;
		indent = w[0] + GAP;
	} else if (wrap) {
		total = width;
	}
	for (int i = 0; i < t->rows; i++) {
		const struct gt_table_row *r = &t->row[i];
		if (!r->cell[0]) {
			gt_out(cli, "%s", gt_style(cli->color_out, GT_STYLE_DIM));
			for (int k = 0; k < total; k++)
				gt_out(cli, "%s", cli->utf8 ? "─" : "-");
			gt_out(cli, "%s\n", gt_style(cli->color_out, GT_STYLE_NONE));
			continue;
		}
		gt_out(cli, "%s", r->head ? gt_style(cli->color_out, GT_STYLE_BOLD) : "");
		int blank = 0; /* pending spaces, printed only before a further text, so that no line ends with spaces */
		for (int c = 0; c < t->cols; c++) {
			int pad = w[c] - gt_text_width(r->cell[c]);
			if (t->align[c] == 'r')
				blank += pad;
			if (*r->cell[c] && wrap && c == last) {
				gt_out(cli, below ? "\n%*s" : "%*s", below ? indent : blank, "");
				gt_out_words(cli, r->cell[c], indent, width);
			} else if (*r->cell[c]) {
				gt_out(cli, "%*s%s", blank, "", r->cell[c]);
				blank = 0;
			}
			if (t->align[c] != 'r')
				blank += pad;
			blank += GAP;
		}
		gt_out(cli, "%s\n", r->head ? gt_style(cli->color_out, GT_STYLE_NONE) : "");
	}
	return GT_OK;
}
