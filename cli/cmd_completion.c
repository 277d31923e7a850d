#include "commands.h"
#include "editor_files.h"
#include <string.h>

/* The completion script of each shell. Each script calls `gtrain completion words` (commands.h) for the candidates, so all shells get the
 * same. */
static const struct {
	const char *shell, *script;
} scripts[] = {
	{"bash",
	 "# bash completion for gtrain, printed by `gtrain completion bash`. `gtrain completion words` knows the words.\n"
	 "_gtrain()\n"
	 "{\n"
	 "\tlocal line=${COMP_LINE:0:COMP_POINT} type='' prefix='' word rest cur end i\n"
	 "\tlocal -a words=() files=()\n"
	 "\t# bash splits COMP_WORDS at = and :, which are part of our words, and readline replaces only what follows the last of them.\n"
	 "\tread -ra words <<<\"$line\"\n"
	 "\t[[ $line == *[[:space:]] ]] && words+=('')\n"
	 "\tcur=${words[${#words[@]} - 1]} end=$cur\n"
	 "\tCOMPREPLY=()\n"
	 "\t{\n"
	 "\t\tIFS=$'\\t' read -r type prefix\n"
	 "\t\twhile IFS=$'\\t' read -r word rest; do\n"
	 "\t\t\t[[ $word == \"$cur\"* ]] && COMPREPLY+=(\"$word\")\n"
	 "\t\tdone\n"
	 "\t} < <(\"$1\" completion words -- \"${words[@]:1}\" 2>/dev/null)\n"
	 "\tcase $type in\n"
	 "\tconfigs) mapfile -t files < <(compgen -f -X '!*.cfg' -- \"${cur#\"$prefix\"}\"; compgen -d -- \"${cur#\"$prefix\"}\") ;;\n"
	 "\tdirs) mapfile -t files < <(compgen -d -- \"${cur#\"$prefix\"}\") ;;\n"
	 "\tfiles) mapfile -t files < <(compgen -f -- \"${cur#\"$prefix\"}\") ;;\n"
	 "\tesac\n"
	 "\t((${#files[@]})) && COMPREPLY=(\"${files[@]/#/$prefix}\") && compopt -o filenames\n"
	 "\t[[ ${COMPREPLY-} == *= ]] && compopt -o nospace\n"
	 "\tfor i in = :; do\n"
	 "\t\t[[ $COMP_WORDBREAKS == *\"$i\"* ]] && end=${end##*\"$i\"}\n"
	 "\tdone\n"
	 "\tCOMPREPLY=(\"${COMPREPLY[@]#\"${cur%\"$end\"}\"}\")\n"
	 "}\n"
	 "complete -o default -F _gtrain gtrain\n"},
	{"zsh",
	 "#compdef gtrain\n"
	 "# zsh completion for gtrain, printed by `gtrain completion zsh`. `gtrain completion words` knows the words.\n"
	 "_gtrain() {\n"
	 "\tlocal line type prefix word help\n"
	 "\tlocal -a lines list join\n"
	 "\tlines=(\"${(@f)$(\"${(Q)words[1]}\" completion words -- \"${(@Q)words[2,CURRENT-1]}\" \"${(Q)PREFIX}\" 2>/dev/null)}\")\n"
	 "\ttype=${lines[1]%%$'\\t'*} prefix=${lines[1]#*$'\\t'}\n"
	 "\tfor line in \"${(@)lines[2,-1]}\"; do\n"
	 "\t\tword=${line%%$'\\t'*} help=${line#*$'\\t'}\n"
	 "\t\tlist+=(\"${word//:/\\\\:}${help:+:$help}\")\n"
	 "\t\t[[ $word == *= ]] && join=(-S '')\n"
	 "\tdone\n"
	 "\t[[ $type == words ]] || compset -P \"${(b)prefix}\"\n"
	 "\tcase $type in\n"
	 "\tconfigs) _files -g '*.cfg' || _describe -t configs config list ;;\n"
	 "\tdirs) _files -/ ;;\n"
	 "\tfiles) _files ;;\n"
	 "\twords) _describe -t words word list \"${(@)join}\" ;;\n"
	 "\tesac\n"
	 "}\n"
	 "\n"
	 "if [[ $funcstack[1] == _gtrain ]]; then\n"
	 "\t_gtrain \"$@\"\n"
	 "else\n"
	 "\tcompdef _gtrain gtrain\n"
	 "fi\n"},
	{"fish",
	 "# fish completion for gtrain, printed by `gtrain completion fish`. `gtrain completion words` knows the words.\n"
	 "function __gtrain_complete\n"
	 "\tset -l typed (commandline -opc)\n"
	 "\tset -l word (commandline -ct)\n"
	 "\tset -l lines ($typed[1] completion words -- $typed[2..-1] \"$word\" 2>/dev/null)\n"
	 "\tset -l head (string split \\t -- $lines[1])\n"
	 "\tset -l rest (string sub -s (math (string length -- \"$head[2]\") + 1) -- \"$word\")\n"
	 "\tset -l files\n"
	 "\tif test \"$head[1]\" != words\n"
	 "\t\tset files (complete -C \"__fish_command_without_completions $rest\")\n"
	 "\tend\n"
	 "\tswitch \"$head[1]\"\n"
	 "\t\tcase configs\n"
	 "\t\t\tset files (string match -r '^.*(?:\\.cfg|/)$' -- $files)\n"
	 "\t\t\tstring match -q '*.cfg' -- $files; and set lines $lines[1]\n"
	 "\t\tcase dirs\n"
	 "\t\t\tset files (string match '*/' -- $files)\n"
	 "\tend\n"
	 "\tstring join \\n -- $lines[2..-1]\n"
	 "\tset -q files[1]; and printf \"$head[2]%s\\n\" $files\n"
	 "end\n"
	 "\n"
	 "complete -c gtrain -f -a '(__gtrain_complete)'\n"},
};

/* Files for editors. */
static const struct {
	const char *name;
	enum gt_code (*print)(struct gt_cli *cli, struct gt_err *err);
} files[] = {{"vim", gt_print_vim}, {"vscode", gt_print_vscode}, {"json-schema", gt_print_json_schema}};

static enum gt_code run_completion(struct gt_cli *cli, struct gt_err *err)
{
	const struct gt_strlist *words = &cli->args.operands;
	if (strcmp(words->v[0], "words") == 0)
		return gt_complete_words(cli, words->v + 1, words->n - 1, err);
	if (words->n > 1)
		return gt_fail(err, GT_EUSAGE, "unexpected operand '%.60s'; usage: gtrain %s %s", words->v[1], cli->command->name,
		               cli->command->operands);
	for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
		if (strcmp(words->v[0], scripts[i].shell) == 0) {
			gt_out(cli, "%s", scripts[i].script);
			return GT_OK;
		}
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		if (strcmp(words->v[0], files[i].name) == 0)
			return files[i].print(cli, err);
	return gt_fail(err, GT_EUSAGE, "expected bash, zsh, fish, vim, vscode or json-schema, got '%.60s'", words->v[0]);
}

const struct gt_command gt_cmd_completion = {
	.name = "completion",
	.operands = "PROGRAM",
	.about = "Prints the completion script for bash, zsh or fish; a syntax file of configs for vim\n"
	         "or vscode; or a JSON schema of configs (json-schema). make install installs all of\n"
	         "them where the shells and Vim look for them.",
	.example = "source <(gtrain completion bash)",
	.min_operands = 1,
	.max_operands = -1, /* `gtrain completion` takes one operand; `gtrain completion words` takes any number of further operands */
	.first = GT_COMPLETE_CHOICE,
	.choices = "bash|zsh|fish|vim|vscode|json-schema",
	.run = run_completion,
};
