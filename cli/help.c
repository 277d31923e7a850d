#include "cli.h"
#include <stdio.h>
#include <string.h>

#define INDENT 28 /* column at which the help text of an option begins */
#define WIDTH gt_help_width()

int gt_help_width(void)
{
	int columns = gt_out_terminal() ? gt_out_columns() : GT_HELP_WIDTH;
	return columns < 40 ? 40 : columns < GT_HELP_WIDTH ? columns : GT_HELP_WIDTH;
}

/* Prints a text that has line breaks. If the terminal is narrower than these lines, breaks the text at the terminal's width instead. */
static void print_lines(struct gt_cli *cli, const char *text)
{
	char line[1024];
	if (WIDTH == GT_HELP_WIDTH) {
		gt_out(cli, "\n%s\n", text);
		return;
	}
	snprintf(line, sizeof line, "%s", text);
	for (char *p = line; *p; p++)
		*p = *p == '\n' ? ' ' : *p;
	gt_out(cli, "\n");
	gt_out_words(cli, line, 0, WIDTH);
	gt_out(cli, "\n");
}

void gt_out_wrapped(struct gt_cli *cli, const char *head, int indent, const char *text, int width)
{
	gt_out(cli, "%s%*s", head, gt_text_width(head) < indent ? indent - gt_text_width(head) : 0, "");
	if (gt_text_width(head) >= indent)
		gt_out(cli, "\n%*s", indent, "");
	gt_out_words(cli, text, indent, width);
	gt_out(cli, "\n");
}

static void print_option(struct gt_cli *cli, const struct gt_option *o)
{
	char left[64];
	int n = o->letter ? snprintf(left, sizeof left, "  -%c, --%s", o->letter, o->name) : snprintf(left, sizeof left, "      --%s", o->name);
	if (o->arg)
		snprintf(left + n, sizeof left - (size_t)n, " %s", o->arg);
	gt_out_wrapped(cli, left, INDENT, o->help, WIDTH);
}

static void print_heading(struct gt_cli *cli, const char *text)
{
	gt_out(cli, "\n%s%s%s\n", gt_style(cli->color_out, GT_STYLE_BOLD), text, gt_style(cli->color_out, GT_STYLE_NONE));
}

void gt_help_program(struct gt_cli *cli)
{
	gt_out(cli, "usage: gtrain COMMAND [OPTION]... [OPERAND]...\n");
	print_lines(cli, "Trains neural networks that are described by a config file.");
	print_heading(cli, "commands");
	for (int i = 0; gt_commands[i].name; i++) {
		char head[32];
		snprintf(head, sizeof head, "  %s", gt_commands[i].name);
		gt_out_wrapped(cli, head, 14, gt_commands[i].summary, WIDTH == GT_HELP_WIDTH ? 1024 : WIDTH);
	}
	print_heading(cli, "options of every command");
	for (const struct gt_option *o = gt_global_options; o->name; o++)
		print_option(cli, o);
	print_lines(cli, "'gtrain COMMAND -h' explains a command, 'gtrain help train.epochs' a key of a config, and\n"
	                 "'gtrain help layers' lists the layer types; gtrain(1) and gtrain.cfg(5) are the manual.");
}

/* Prints "usage: gtrain run [-n] [-o DIR] [-s KEY=VALUE]... CFG", wrapped at the width of the help. */
static void print_usage(struct gt_cli *cli, const struct gt_command *c)
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
	print_usage(cli, c);
	print_lines(cli, c->about);
	if (c->options && c->options->name) {
		print_heading(cli, "options");
		for (const struct gt_option *o = c->options; o->name; o++)
			print_option(cli, o);
	}
	print_heading(cli, "options of every command");
	for (const struct gt_option *o = gt_global_options; o->name; o++)
		print_option(cli, o);
	if (c->example) {
		print_heading(cli, "example");
		gt_out(cli, "  %s\n", c->example);
	}
}
