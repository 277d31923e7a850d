#include "commands.h"
#include <stdio.h>
#include <string.h>

/* Prints text inside a single-quoted spec of _arguments; escapes quotes, which end the string, and brackets and colons, which end the
 * field. */
static void quoted(struct gt_cli *cli, const char *s)
{
	for (; *s; s++) {
		if (*s == '\'')
			gt_out(cli, "'\\''");
		else
			gt_out(cli, strchr("[]:\\", *s) ? "\\%c" : "%c", *s);
	}
}

static void action(struct gt_cli *cli, enum gt_complete kind, const char *choices)
{
	switch (kind) {
	case GT_COMPLETE_NONE:
		gt_out(cli, " ");
		break;
	case GT_COMPLETE_CONFIG:
		gt_out(cli, "_gtrain_configs");
		break;
	case GT_COMPLETE_BUNDLED:
		gt_out(cli, "_gtrain_words configs");
		break;
	case GT_COMPLETE_DIR:
	case GT_COMPLETE_CHECKPOINT:
		gt_out(cli, "_files -/");
		break;
	case GT_COMPLETE_FILE:
		gt_out(cli, "_files");
		break;
	case GT_COMPLETE_KEY:
		gt_out(cli, "_gtrain_keys");
		break;
	case GT_COMPLETE_DEVICE:
		gt_out(cli, "_gtrain_words devices");
		break;
	case GT_COMPLETE_DATASET:
		gt_out(cli, "_gtrain_words datasets");
		break;
	case GT_COMPLETE_COMMAND:
		gt_out(cli, "_gtrain_commands");
		break;
	case GT_COMPLETE_CHOICE:
		gt_out(cli, "(");
		for (const char *p = choices; p && *p; p++)
			gt_out(cli, "%c", *p == '|' ? ' ' : *p);
		gt_out(cli, ")");
		break;
	}
}

static void option(struct gt_cli *cli, const struct gt_option *o)
{
	if (o->kind == GT_OPTION_LIST)
		gt_out(cli, o->letter ? "'*'" : "'*");
	else if (o->letter)
		gt_out(cli, "'(-%c --%s)'", o->letter, o->name);
	else
		gt_out(cli, "'");
	if (o->letter)
		gt_out(cli, "{-%c%s,--%s%s}'", o->letter, o->arg ? "+" : "", o->name, o->arg ? "=" : "");
	else
		gt_out(cli, "--%s%s", o->name, o->arg ? "=" : "");
	gt_out(cli, "[");
	quoted(cli, o->help);
	gt_out(cli, "]");
	if (o->arg) {
		gt_out(cli, ":%s:", o->arg);
		action(cli, o->complete, o->choices);
	}
	gt_out(cli, "'");
}

static void operand(struct gt_cli *cli, const char *position, enum gt_complete kind, const char *choices)
{
	gt_out(cli, " \\\n\t\t\t'%s: :", position);
	action(cli, kind, choices);
	gt_out(cli, "'");
}

static const char head[] =
	"#compdef gtrain\n"
	"# zsh completion for gtrain. Made by `gtrain completion zsh` from the option tables; do not edit.\n"
	"\n"
	"# One word a line, from gtrain itself. _arguments puts options of compadd before our own argument.\n"
	"_gtrain_words() {\n"
	"\tlocal -a list\n"
	"\tlist=(${(f)\"$(_call_program words ${(q)gtrain} completion $@[-1] 2>/dev/null)\"})\n"
	"\tcompadd \"${(@)@[1,-2]}\" -a list\n"
	"}\n"
	"\n"
	"# KEY=VALUE: the keys of the schema, then the values of an enumeration.\n"
	"_gtrain_keys() {\n"
	"\tlocal -a lines keys values\n"
	"\tlocal line chosen\n"
	"\tlines=(${(f)\"$(_call_program keys ${(q)gtrain} completion keys 2>/dev/null)\"})\n"
	"\tif compset -P '[^=]##='; then\n"
	"\t\tchosen=${${IPREFIX%=}##*=}\n"
	"\t\tchosen=${chosen#-s}\n"
	"\t\tfor line in $lines; do\n"
	"\t\t\t[[ ${line%%$'\\t'*} == $chosen ]] || continue\n"
	"\t\t\tvalues=(${(s:|:)${${line#*$'\\t'}%%$'\\t'*}})\n"
	"\t\t\t[[ $values == bool ]] && values=(true false)\n"
	"\t\t\t(( $#values > 1 )) && compadd -a values && return\n"
	"\t\t\t_message -e values \"$values\"\n"
	"\t\tdone\n"
	"\telse\n"
	"\t\tfor line in $lines; do\n"
	"\t\t\tkeys+=(\"${line%%$'\\t'*}:${line##*$'\\t'}\")\n"
	"\t\tdone\n"
	"\t\t_describe -t keys key keys -S =\n"
	"\tfi\n"
	"}\n"
	"\n"
	"# Files here; where there are none, the configs that come with gtrain.\n"
	"_gtrain_configs() {\n"
	"\t_files -g '*.cfg' || _gtrain_words configs\n"
	"}\n"
	"\n"
	"_gtrain_commands() {\n"
	"\tlocal -a list=(\n";

static const char middle[] =
	"\t)\n"
	"\t_describe -t commands command list\n"
	"}\n"
	"\n"
	"_gtrain() {\n"
	"\tsetopt localoptions extendedglob\n"
	"\tlocal curcontext=$curcontext state line ret=1 gtrain=${(Q)words[1]}\n"
	"\ttypeset -A opt_args\n"
	"\tlocal -a global=(\n";

static const char tail[] =
	"\tesac\n"
	"\treturn ret\n"
	"}\n"
	"\n"
	"if [[ $funcstack[1] == _gtrain ]]; then\n"
	"\t_gtrain \"$@\"\n"
	"else\n"
	"\tcompdef _gtrain gtrain\n"
	"fi\n";

void gt_complete_zsh(struct gt_cli *cli)
{
	gt_out(cli, "%s", head);
	for (int i = 0; gt_commands[i]; i++) {
		gt_out(cli, "\t\t'%s:", gt_commands[i]->name);
		quoted(cli, gt_commands[i]->summary);
		gt_out(cli, "'\n");
	}
	gt_out(cli, "%s", middle);
	for (const struct gt_option *o = gt_global_options; o->name; o++) {
		gt_out(cli, "\t\t");
		option(cli, o);
		gt_out(cli, "\n");
	}
	gt_out(cli, "\t)\n"
	            "\t_arguments -C -s -S $global '1:command:_gtrain_commands' '*::operand:->operand' && ret=0\n"
	            "\t[[ $state == operand ]] || return ret\n"
	            "\tcase $line[1] in\n");
	for (int i = 0; gt_commands[i]; i++) {
		const struct gt_command *c = gt_commands[i];
		gt_out(cli, "\t%s)\n\t\t_arguments -s -S $global", c->name);
		for (const struct gt_option *o = c->options; o && o->name; o++) {
			gt_out(cli, " \\\n\t\t\t");
			option(cli, o);
		}
		if (c->max_operands != 0)
			operand(cli, "1", c->first, c->choices);
		if (c->max_operands < 0)
			operand(cli, "*", c->rest, NULL);
		gt_out(cli, " && ret=0\n\t\t;;\n");
	}
	gt_out(cli, "%s", tail);
}
