#include "commands.h"
#include <stdio.h>
#include <string.h>

static void quoted(struct gt_cli *cli, const char *s)
{
	gt_out(cli, "'");
	for (; *s; s++)
		gt_out(cli, *s == '\'' || *s == '\\' ? "\\%c" : "%c", *s);
	gt_out(cli, "'");
}

/* Prints the candidates of an argument: " -a '…'", and the option for files. Prints nothing for an argument without candidates. */
static void candidates(struct gt_cli *cli, enum gt_complete kind, const char *choices)
{
	switch (kind) {
	case GT_COMPLETE_NONE:
	case GT_COMPLETE_COMMAND: /* commands have lines of their own */
		break;
	case GT_COMPLETE_CONFIG:
		gt_out(cli, " -k -a '(__fish_complete_suffix .cfg; count *.cfg >/dev/null; or __gtrain_words configs)'");
		break;
	case GT_COMPLETE_BUNDLED:
		gt_out(cli, " -a '(__gtrain_words configs)'");
		break;
	case GT_COMPLETE_DIR:
	case GT_COMPLETE_CHECKPOINT:
		gt_out(cli, " -a '(__fish_complete_directories)'");
		break;
	case GT_COMPLETE_FILE:
		gt_out(cli, " -F");
		break;
	case GT_COMPLETE_KEY:
		gt_out(cli, " -a '(__gtrain_keys)'");
		break;
	case GT_COMPLETE_DEVICE:
		gt_out(cli, " -a '(__gtrain_words devices)'");
		break;
	case GT_COMPLETE_DATASET:
		gt_out(cli, " -a '(__gtrain_words datasets)'");
		break;
	case GT_COMPLETE_CHOICE:
		gt_out(cli, " -a '");
		for (const char *p = choices; p && *p; p++)
			gt_out(cli, "%c", *p == '|' ? ' ' : *p);
		gt_out(cli, "'");
		break;
	}
}

static void option(struct gt_cli *cli, const char *command, const struct gt_option *o)
{
	gt_out(cli, "complete -c gtrain");
	if (command)
		gt_out(cli, " -n '__gtrain_is %s'", command);
	if (o->letter)
		gt_out(cli, " -s %c", o->letter);
	gt_out(cli, " -l %s", o->name);
	if (o->arg) {
		gt_out(cli, o->complete == GT_COMPLETE_FILE ? " -r" : " -x");
		candidates(cli, o->complete, o->choices);
	}
	gt_out(cli, " -d ");
	quoted(cli, o->help);
	gt_out(cli, "\n");
}

static const char head[] =
	"# fish completion for gtrain. Made by `gtrain completion fish` from the option tables; do not edit.\n"
	"\n"
	"# The words before the cursor that are neither options nor arguments of options: the command, then operands.\n"
	"function __gtrain_words_typed\n"
	"\tset -l skip 0\n"
	"\tfor word in (commandline -opc)[2..-1]\n"
	"\t\tif test $skip = 1\n"
	"\t\t\tset skip 0\n"
	"\t\t\tcontinue\n"
	"\t\tend\n"
	"\t\tswitch $word\n"
	"\t\t\tcase";

static const char middle[] =
	"\n"
	"\t\t\t\tset skip 1\n"
	"\t\t\tcase '-*'\n"
	"\t\t\tcase '*'\n"
	"\t\t\t\techo $word\n"
	"\t\tend\n"
	"\tend\n"
	"end\n"
	"\n"
	"# Is $argv[1] the command, with (if given) $argv[2] operands after it?\n"
	"function __gtrain_is\n"
	"\tset -l typed (__gtrain_words_typed)\n"
	"\ttest \"$typed[1]\" = \"$argv[1]\"; or return\n"
	"\tset -q argv[2]; or return 0\n"
	"\ttest (math (count $typed) - 1) -$argv[2] $argv[3]\n"
	"end\n"
	"\n"
	"# One word a line, from gtrain itself.\n"
	"function __gtrain_words\n"
	"\tset -l program (commandline -opc)[1]\n"
	"\t$program completion $argv[1] 2>/dev/null\n"
	"end\n"
	"\n"
	"# KEY=VALUE: the keys of the schema, then the values of an enumeration.\n"
	"function __gtrain_keys\n"
	"\tset -l token (commandline -ct | string replace -r '^(--set=|-s)' '')\n"
	"\tset -l chosen (string split -m 1 = -- $token)\n"
	"\tfor line in (__gtrain_words keys)\n"
	"\t\tset -l key (string split \\t -- $line)\n"
	"\t\tif not string match -q '*=*' -- $token\n"
	"\t\t\tprintf '%s=\\t%s\\n' $key[1] $key[3]\n"
	"\t\telse if test \"$key[1]\" = \"$chosen[1]\"\n"
	"\t\t\ttest \"$key[2]\" = bool; and set key[2] 'true|false'\n"
	"\t\t\tstring match -q '*|*' -- $key[2]; and printf \"$key[1]=%s\\n\" (string split '|' -- $key[2])\n"
	"\t\tend\n"
	"\tend\n"
	"end\n"
	"\n"
	"complete -c gtrain -f\n";

/* Returns whether a command before number n has an option of this name. */
static bool seen(const char *name, int n)
{
	for (int i = 0; i < n; i++)
		for (const struct gt_option *o = gt_commands[i]->options; o && o->name; o++)
			if (strcmp(o->name, name) == 0)
				return true;
	return false;
}

static void taking_argument(struct gt_cli *cli, const struct gt_option *table, int before)
{
	for (const struct gt_option *o = table; o && o->name; o++) {
		if (!o->arg || seen(o->name, before))
			continue;
		if (o->letter)
			gt_out(cli, " -%c", o->letter);
		gt_out(cli, " --%s", o->name);
	}
}

static void operands(struct gt_cli *cli, const struct gt_command *c)
{
	if (c->first == GT_COMPLETE_NONE)
		return;
	if (c->first == GT_COMPLETE_COMMAND) {
		for (int i = 0; gt_commands[i]; i++)
			gt_out(cli, "complete -c gtrain -n '__gtrain_is %s eq 0' -a %s\n", c->name, gt_commands[i]->name);
		return;
	}
	gt_out(cli, "complete -c gtrain -n '__gtrain_is %s eq 0'", c->name);
	candidates(cli, c->first, c->choices);
	gt_out(cli, "\n");
	if (c->rest != GT_COMPLETE_NONE) {
		gt_out(cli, "complete -c gtrain -n '__gtrain_is %s ge 1'", c->name);
		candidates(cli, c->rest, NULL);
		gt_out(cli, "\n");
	}
}

void gt_complete_fish(struct gt_cli *cli)
{
	gt_out(cli, "%s", head);
	taking_argument(cli, gt_global_options, 0);
	for (int i = 0; gt_commands[i]; i++)
		taking_argument(cli, gt_commands[i]->options, i);
	gt_out(cli, "%s\n", middle);
	for (const struct gt_option *o = gt_global_options; o->name; o++)
		option(cli, NULL, o);
	for (int i = 0; gt_commands[i]; i++) {
		const struct gt_command *c = gt_commands[i];
		gt_out(cli, "\ncomplete -c gtrain -n 'test (count (__gtrain_words_typed)) = 0' -a %s -d ", c->name);
		quoted(cli, c->summary);
		gt_out(cli, "\n");
		for (const struct gt_option *o = c->options; o && o->name; o++)
			option(cli, c->name, o);
		operands(cli, c);
	}
}
