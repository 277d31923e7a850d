/* Syntax files for editors. The names of keys, and the words that are values of keys, come from the config schema. */
#include "editor_files.h"
#include "gtrain.h"
#include <stdio.h>
#include <string.h>

/* ---- sets of names ------------------------------------------------------------------------------------------------------ */
struct names {
	struct gt_arena *arena;
	const char **v;
	int n, cap;
	bool no_memory;
};

static enum gt_code open_names(struct names *s, struct gt_cli *cli, struct gt_err *err)
{
	*s = (struct names){.arena = cli->arena, .cap = 2048};
	GT_NEW(s->v, cli->arena, s->cap, err);
	return GT_OK;
}

/* Adds a name of len bytes to the set, unless the set has it. */
static void add_name(struct names *s, const char *name, size_t len)
{
	for (int i = 0; i < s->n; i++)
		if (strlen(s->v[i]) == len && !memcmp(s->v[i], name, len))
			return;
	char *copy = s->n < s->cap ? gt_arena_printf(s->arena, "%.*s", (int)len, name) : NULL;
	if (copy)
		s->v[s->n++] = copy;
	else
		s->no_memory = true;
}

/* Adds the components of a key's path: "data", "augment" and "pad" of "data.augment[].pad". Layer types in a path are skipped. */
static void add_keys(void *user, const struct gt_schema_key *key)
{
	bool attribute = !strncmp(key->path, "model.layers[].", 15) && strchr(key->path + 15, '.');
	for (const char *p = attribute ? strrchr(key->path, '.') + 1 : key->path; *p;) {
		size_t n = strcspn(p, ".[");
		if (strncmp(p, "NAME", n) != 0)
			add_name(user, p, n);
		p += n;
		p += strspn(p, ".[]");
	}
}

static void add_word(void *user, const struct gt_schema_word *word)
{
	add_name(user, word->word, strlen(word->word));
}

/* Fills the sets of all names of keys and of all words that are values. */
static enum gt_code collect_names(struct names *keys, struct names *words, struct gt_cli *cli, struct gt_err *err)
{
	GT_TRY(open_names(keys, cli, err));
	GT_TRY(open_names(words, cli, err));
	gt_schema_each(add_keys, keys);
	gt_schema_words(add_word, words);
	return keys->no_memory || words->no_memory ? gt_fail_memory(err, 0) : GT_OK;
}

/* ---- Vim ---------------------------------------------------------------------------------------------------------------- */
static void print_keywords(struct gt_cli *cli, const char *group, const struct names *s)
{
	for (int i = 0; i < s->n; i++)
		gt_out(cli, "%s%s", i % 8 ? " " : i ? "\n  \\ " : group, s->v[i]);
	gt_out(cli, "\n");
}

enum gt_code gt_print_vim(struct gt_cli *cli, struct gt_err *err)
{
	struct names keys, words;
	GT_TRY(collect_names(&keys, &words, cli, err));
	gt_out(cli, "\" Vim syntax file for configs of gtrain, printed by `gtrain completion vim`.\n"
	            "if exists(\"b:current_syntax\")\n"
	            "  finish\n"
	            "endif\n"
	            "syntax case match\n"
	            "syntax iskeyword @,48-57,_,-,/\n"
	            "syntax match gtrainName \"\\<[A-Za-z*][-A-Za-z0-9_*]*\\>\\ze\\s*[=:]\" contains=gtrainKey\n");
	print_keywords(cli, "syntax keyword gtrainKey contained ", &keys);
	gt_out(cli, "syntax region gtrainString start=+\"+ skip=+\\\\.+ end=+\"+ oneline contains=gtrainWord,gtrainParam\n");
	print_keywords(cli, "syntax keyword gtrainWord contained ", &words);
	gt_out(cli, "syntax match gtrainParam \"\\$[A-Za-z_][A-Za-z0-9_]*\" contained\n"
	            "syntax match gtrainNumber \"\\<[-+]\\=\\d\\+\\(\\.\\d*\\)\\=\\([eE][-+]\\=\\d\\+\\)\\=L\\{0,2}\\>\"\n"
	            "syntax match gtrainNumber \"\\<0[xX]\\x\\+L\\{0,2}\\>\"\n"
	            "syntax keyword gtrainBoolean true false\n"
	            "syntax match gtrainInclude \"@include\"\n"
	            "syntax keyword gtrainTodo contained TODO FIXME\n"
	            "syntax match gtrainComment \"#.*$\" contains=gtrainTodo\n"
	            "syntax match gtrainComment \"//.*$\" contains=gtrainTodo\n"
	            "syntax region gtrainComment start=\"/\\*\" end=\"\\*/\" contains=gtrainTodo\n"
	            "highlight default link gtrainKey Statement\n"
	            "highlight default link gtrainName Identifier\n"
	            "highlight default link gtrainString String\n"
	            "highlight default link gtrainWord Type\n"
	            "highlight default link gtrainParam Special\n"
	            "highlight default link gtrainNumber Number\n"
	            "highlight default link gtrainBoolean Boolean\n"
	            "highlight default link gtrainInclude Include\n"
	            "highlight default link gtrainTodo Todo\n"
	            "highlight default link gtrainComment Comment\n"
	            "setlocal commentstring=#\\ %%s omnifunc=syntaxcomplete#Complete\n"
	            "let b:current_syntax = \"gtrain\"\n");
	return GT_OK;
}

/* ---- VS Code ------------------------------------------------------------------------------------------------------------ */
/* Writes a JSON member whose value is a regular expression: `before`, then one of the names, then `after`. */
static enum gt_code write_choice(struct gt_json *j, const struct names *s, const char *before, const char *after, struct gt_err *err)
{
	char *text;
	size_t size = strlen(before) + strlen(after) + 16, n;
	for (int i = 0; i < s->n; i++)
		size += strlen(s->v[i]) + 1;
	GT_NEW(text, s->arena, size, err);
	n = (size_t)snprintf(text, size, "%s(?:", before);
	for (int i = 0; i < s->n; i++)
		n += (size_t)snprintf(text + n, size - n, "%s%s", i ? "|" : "", s->v[i]);
	snprintf(text + n, size - n, ")%s", after);
	gt_json_string(j, "match", text);
	return GT_OK;
}

static void write_match(struct gt_json *j, const char *scope, const char *match)
{
	gt_json_row(j, NULL, GT_STR("name", scope), GT_STR("match", match));
}

static void write_block(struct gt_json *j, const char *scope, const char *begin, const char *end)
{
	gt_json_row(j, NULL, GT_STR("name", scope), GT_STR("begin", begin), GT_STR("end", end));
}

static enum gt_code write_names(struct gt_json *j, const char *scope, const struct names *s, const char *before, const char *after,
                                struct gt_err *err)
{
	gt_json_object(j, NULL);
	gt_json_string(j, "name", scope);
	GT_TRY(write_choice(j, s, before, after, err));
	gt_json_end(j);
	return GT_OK;
}

/* Writes the pattern of strings, which highlights words that are values of keys, and parameters of templates. */
static enum gt_code write_strings(struct gt_json *j, const struct names *words, struct gt_err *err)
{
	gt_json_object(j, NULL);
	gt_json_add(j, GT_STR("name", "string.quoted.double.gtrain"), GT_STR("begin", "\""), GT_STR("end", "\""));
	gt_json_array(j, "patterns");
	write_match(j, "constant.character.escape.gtrain", "\\\\(?:x[0-9A-Fa-f]{2}|.)");
	write_match(j, "variable.parameter.gtrain", "\\$[A-Za-z_][A-Za-z0-9_]*");
	GT_TRY(write_names(j, "support.constant.gtrain", words, "(?<=\")", "(?=\")", err));
	gt_json_end(j);
	gt_json_end(j);
	return GT_OK;
}

enum gt_code gt_print_vscode(struct gt_cli *cli, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	struct names keys, words;
	GT_TRY(collect_names(&keys, &words, cli, err));
	gt_json_object(j, NULL);
	gt_json_add(j, GT_STR("name", "gtrain config"), GT_STR("scopeName", "source.gtrain"));
	gt_json_array(j, "patterns");
	write_match(j, "comment.line.gtrain", "(?:#|//).*$");
	write_block(j, "comment.block.gtrain", "/\\*", "\\*/");
	write_match(j, "keyword.control.gtrain", "@include");
	GT_TRY(write_strings(j, &words, err));
	GT_TRY(write_names(j, "keyword.other.gtrain", &keys, "\\b", "(?=\\s*[=:])", err));
	write_match(j, "variable.other.gtrain", "[A-Za-z*][-A-Za-z0-9_*]*(?=\\s*[=:])");
	write_match(j, "constant.language.gtrain", "\\b(?:true|false)\\b");
	write_match(j, "constant.numeric.gtrain", "[-+]?\\b(?:0[xX][0-9A-Fa-f]+|[0-9]+(?:\\.[0-9]*)?(?:[eE][-+]?[0-9]+)?)L{0,2}\\b");
	gt_json_end(j);
	gt_json_end(j);
	return gt_out_json(cli, err);
}
