#include "cli.h"
#include <stdio.h>
#include <string.h>

#define INDENT 28 /* column of the help of an option */
#define WIDTH 80

static void option_line(struct gt_cli *cli, const struct gt_option *o)
{
	char left[64];
	int n = o->letter ? snprintf(left, sizeof left, "  -%c, --%s", o->letter, o->name) : snprintf(left, sizeof left, "      --%s", o->name);
	if (o->arg)
		snprintf(left + n, sizeof left - (size_t)n, " %s", o->arg);
	gt_out(cli, "%-*s", INDENT, left);
	if (strlen(left) >= INDENT)
		gt_out(cli, "\n%*s", INDENT, "");
	int col = INDENT;
	for (const char *p = o->help; *p;) { /* wrapped at words */
		int len = (int)strcspn(p, " ");
		if (col > INDENT && col + 1 + len > WIDTH) {
			gt_out(cli, "\n%*s", INDENT, "");
			col = INDENT;
		} else if (col > INDENT) {
			gt_out(cli, " ");
			col++;
		}
		gt_out(cli, "%.*s", len, p);
		col += len;
		p += len + (p[len] == ' ');
	}
	gt_out(cli, "\n");
}

static void heading(struct gt_cli *cli, const char *text)
{
	gt_out(cli, "\n%s%s%s\n", gt_style(cli->color_out, GT_STYLE_BOLD), text, gt_style(cli->color_out, GT_STYLE_NONE));
}

void gt_help_program(struct gt_cli *cli)
{
	gt_out(cli, "usage: gtrain COMMAND [OPTION]... [OPERAND]...\n\nTrains neural networks that are described by a config file.\n");
	heading(cli, "commands");
	for (int i = 0; gt_commands[i]; i++)
		gt_out(cli, "  %-12s%s\n", gt_commands[i]->name, gt_commands[i]->summary);
	heading(cli, "options of every command");
	for (const struct gt_option *o = gt_global_options; o->name; o++)
		option_line(cli, o);
	gt_out(cli, "\n'gtrain COMMAND -h' explains a command; gtrain(1) and gtrain.cfg(5) are the manual.\n");
}

/* Prints "usage: gtrain run [-n] [-o DIR] [-s KEY=VALUE]... CFG", wrapped at the width of the help. */
static void usage(struct gt_cli *cli, const struct gt_command *c)
{
	char word[96];
	int col = snprintf(word, sizeof word, "usage: gtrain %s", c->name), indent = col + 1;
	gt_out(cli, "%s", word);
	for (const struct gt_option *o = c->options; o && o->name; o++) {
		const char *open = o->required ? "" : "[", *close = o->required ? "" : "]";
		int n = o->letter ? snprintf(word, sizeof word, "%s-%c", open, o->letter) : snprintf(word, sizeof word, "%s--%s", open, o->name);
		n += snprintf(word + n, sizeof word - (size_t)n, "%s%s%s%s", o->arg ? " " : "", o->arg ? o->arg : "", close,
		              o->kind == GT_OPTION_LIST ? "..." : "");
		if (col + 1 + n > WIDTH) {
			gt_out(cli, "\n%*s%s", indent, "", word);
			col = indent + n;
		} else {
			gt_out(cli, " %s", word);
			col += 1 + n;
		}
	}
	if (*c->operands)
		gt_out(cli, col + 1 + (int)strlen(c->operands) > WIDTH ? "\n%*s%s" : "%*s%s",
		       col + 1 + (int)strlen(c->operands) > WIDTH ? indent : 1, "", c->operands);
	gt_out(cli, "\n");
}

void gt_help_command(struct gt_cli *cli, const struct gt_command *c)
{
	usage(cli, c);
	gt_out(cli, "\n%s\n", c->about);
	if (c->options && c->options->name) {
		heading(cli, "options");
		for (const struct gt_option *o = c->options; o->name; o++)
			option_line(cli, o);
	}
	heading(cli, "options of every command");
	for (const struct gt_option *o = gt_global_options; o->name; o++)
		option_line(cli, o);
	if (c->example) {
		heading(cli, "example");
		gt_out(cli, "  %s\n", c->example);
	}
}
