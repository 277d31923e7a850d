#include "commands.h"
#include <stdio.h>
#include <string.h>

static const char *const kind_name[] = {
	[GT_COMPLETE_NONE] = "none",       [GT_COMPLETE_CONFIG] = "config",         [GT_COMPLETE_DIR] = "dir",
	[GT_COMPLETE_FILE] = "file",       [GT_COMPLETE_CHECKPOINT] = "checkpoint", [GT_COMPLETE_KEY] = "key",
	[GT_COMPLETE_DEVICE] = "device",   [GT_COMPLETE_DATASET] = "dataset",       [GT_COMPLETE_COMMAND] = "command",
	[GT_COMPLETE_CHOICE] = "choice", [GT_COMPLETE_BUNDLED] = "bundled",
};

static void choices(struct gt_cli *cli, const char *list)
{
	for (const char *p = list; p && *p; p++)
		gt_out(cli, "%c", *p == '|' ? ' ' : *p);
}

static void names(struct gt_cli *cli, const struct gt_option *table)
{
	for (const struct gt_option *o = table; o && o->name; o++) {
		gt_out(cli, " --%s", o->name);
		if (o->letter)
			gt_out(cli, " -%c", o->letter);
	}
}

/* Prints the cases `command:option` of options with an argument: "	run:--set | run:-s) kind=key ;;" */
static void arguments(struct gt_cli *cli, const char *command, const struct gt_option *table)
{
	for (const struct gt_option *o = table; o && o->name; o++) {
		if (!o->arg)
			continue;
		gt_out(cli, "\t%s:--%s", command, o->name);
		if (o->letter)
			gt_out(cli, " | %s:-%c", command, o->letter);
		gt_out(cli, ") kind='%s' choices='", kind_name[o->complete]);
		choices(cli, o->choices);
		gt_out(cli, "' ;;\n");
	}
}

static const char head[] =
	"# bash completion for gtrain. Made by `gtrain completion bash` from the option tables; do not edit.\n"
	"\n"
	"# What the argument of option $2 of command $1 is: sets kind and choices. Fails if it takes none.\n"
	"_gtrain_argument()\n"
	"{\n"
	"\tkind='' choices=''\n"
	"\tcase $1:$2 in\n";

static const char middle[] =
	"\tesac\n"
	"\t[[ -n $kind ]]\n"
	"}\n"
	"\n"
	"# KEY=VALUE: the keys of the schema, then the values of an enumeration.\n"
	"_gtrain_key()\n"
	"{\n"
	"\tlocal key type rest value\n"
	"\twhile IFS=$'\\t' read -r key type rest; do\n"
	"\t\tif [[ $2 != *=* ]]; then\n"
	"\t\t\t[[ $key == \"$2\"* ]] && COMPREPLY+=(\"$key=\")\n"
	"\t\telif [[ $key == \"${2%%=*}\" ]]; then\n"
	"\t\t\t[[ $type == bool ]] && type='true|false'\n"
	"\t\t\t[[ $type == *'|'* ]] || return\n"
	"\t\t\tfor value in ${type//|/ }; do\n"
	"\t\t\t\t[[ $key=$value == \"$2\"* ]] && COMPREPLY+=(\"$key=$value\")\n"
	"\t\t\tdone\n"
	"\t\tfi\n"
	"\tdone < <(\"$1\" completion keys 2>/dev/null)\n"
	"\t[[ $2 == *=* ]] || compopt -o nospace\n"
	"}\n"
	"\n"
	"_gtrain()\n"
	"{\n"
	"\tlocal line=${COMP_LINE:0:COMP_POINT} word cur prev='' command='' prefix='' tail broken kind='' choices='' options='' i operand=0\n"
	"\tlocal -a words=()\n"
	"\t# COMP_WORDS is cut at = and :, which stand in our words; so is the text that readline replaces.\n"
	"\tread -ra words <<<\"$line\"\n"
	"\t[[ $line == *[[:space:]] ]] && words+=('')\n"
	"\tword=${words[${#words[@]} - 1]} cur=$word\n"
	"\tfor ((i = 1; i < ${#words[@]} - 1; i++)); do\n"
	"\t\tif [[ ${words[i]} == -?* ]]; then\n"
	"\t\t\tif _gtrain_argument \"$command\" \"${words[i]}\" || _gtrain_argument '' \"${words[i]}\"; then\n"
	"\t\t\t\tprev=${words[i]}\n"
	"\t\t\t\t((i++))\n"
	"\t\t\t\t((i < ${#words[@]} - 1)) && prev=''\n"
	"\t\t\tfi\n"
	"\t\telif [[ -z $command ]]; then\n"
	"\t\t\tcommand=${words[i]}\n"
	"\t\telse\n"
	"\t\t\t((operand++))\n"
	"\t\tfi\n"
	"\tdone\n"
	"\tif [[ -z $prev && $cur == --*=* ]]; then\n"
	"\t\tprev=${cur%%=*} prefix=$prev= cur=${cur#*=}\n"
	"\tfi\n"
	"\tkind='' choices=''\n";

static const char tail[] =
	"\tesac\n"
	"\tif [[ -n $prev ]]; then\n"
	"\t\t_gtrain_argument \"$command\" \"$prev\" || _gtrain_argument '' \"$prev\" || return\n"
	"\telif [[ $cur == -* ]]; then\n"
	"\t\tkind=choice choices=\"$options$global\"\n"
	"\tfi\n"
	"\tCOMPREPLY=()\n"
	"\tcase $kind in\n"
	"\tconfig)\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -f -X '!*.cfg' -- \"$cur\"; compgen -d -- \"$cur\")\n"
	"\t\tcompopt -o filenames\n"
	"\t\t((${#COMPREPLY[@]})) || mapfile -t COMPREPLY < <(compgen -W \"$(\"$1\" completion configs 2>/dev/null)\" -- \"$cur\")\n"
	"\t\t;;\n"
	"\tbundled) mapfile -t COMPREPLY < <(compgen -W \"$(\"$1\" completion configs 2>/dev/null)\" -- \"$cur\") ;;\n"
	"\tdir | checkpoint)\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -d -- \"$cur\")\n"
	"\t\tcompopt -o filenames\n"
	"\t\t;;\n"
	"\tfile)\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$cur\")\n"
	"\t\tcompopt -o filenames\n"
	"\t\t;;\n"
	"\tkey) _gtrain_key \"$1\" \"$cur\" ;;\n"
	"\tdevice) mapfile -t COMPREPLY < <(compgen -W \"$(\"$1\" completion devices 2>/dev/null)\" -- \"$cur\") ;;\n"
	"\tdataset) mapfile -t COMPREPLY < <(compgen -W \"$(\"$1\" completion datasets 2>/dev/null)\" -- \"$cur\") ;;\n"
	"\tchoice | command) mapfile -t COMPREPLY < <(compgen -W \"$choices\" -- \"$cur\") ;;\n"
	"\tesac\n"
	"\t((${#COMPREPLY[@]})) || return\n"
	"\ttail=$word\n"
	"\tfor i in = :; do\n"
	"\t\t[[ $COMP_WORDBREAKS == *\"$i\"* ]] && tail=${tail##*\"$i\"}\n"
	"\tdone\n"
	"\tbroken=${word%\"$tail\"}\n"
	"\tCOMPREPLY=(\"${COMPREPLY[@]/#/$prefix}\")\n"
	"\tCOMPREPLY=(\"${COMPREPLY[@]#\"$broken\"}\")\n"
	"}\n"
	"complete -o default -F _gtrain gtrain\n";

/* Prints the case of one command, which sets its options and the kind of its current operand: "	run) options='--set …' …". */
static void command(struct gt_cli *cli, const struct gt_command *c)
{
	gt_out(cli, "\t%s)\n\t\toptions='", c->name);
	names(cli, c->options);
	gt_out(cli, "'\n");
	if (c->first == GT_COMPLETE_COMMAND) {
		gt_out(cli, "\t\t((operand)) || kind=command choices=$commands\n");
	} else if (c->rest != GT_COMPLETE_NONE) {
		gt_out(cli, "\t\tkind='%s'\n\t\t((operand)) || kind='%s'\n", kind_name[c->rest], kind_name[c->first]);
	} else if (c->first != GT_COMPLETE_NONE) {
		gt_out(cli, "\t\t((operand)) || kind='%s' choices='", kind_name[c->first]);
		choices(cli, c->choices);
		gt_out(cli, "'\n");
	}
	gt_out(cli, "\t\t;;\n");
}

void gt_complete_bash(struct gt_cli *cli)
{
	gt_out(cli, "%s", head);
	arguments(cli, "", gt_global_options);
	for (int i = 0; gt_commands[i]; i++)
		arguments(cli, gt_commands[i]->name, gt_commands[i]->options);
	gt_out(cli, "%s", middle);
	gt_out(cli, "\tlocal global='");
	names(cli, gt_global_options);
	gt_out(cli, "'\n\tlocal commands='");
	for (int i = 0; gt_commands[i]; i++)
		gt_out(cli, "%s%s", i ? " " : "", gt_commands[i]->name);
	gt_out(cli, "'\n\tcase $command in\n\t'') kind=command choices=$commands ;;\n");
	for (int i = 0; gt_commands[i]; i++)
		command(cli, gt_commands[i]);
	gt_out(cli, "%s", tail);
}
