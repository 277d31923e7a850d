/* `gtrain completion words -- WORD...` prints candidates for the last word, from the tables of commands and options. It parses the words
 * before the last word as options.c does. The completion script of a shell passes the words of the command line and gives the candidates to
 * the shell. */
#include "commands.h"
#include "gtrain.h"
#include "gtrain_data.h"
#include "gtrain_report.h"
#include <stdio.h>
#include <string.h>

struct completion {
	struct gt_cli *cli;
	const char *word, *value; /* word: the last word of the command line. value: the part of word to complete: the text after "--out=", or
	                             the whole word */
};

/* Returns the option in a word, if the option takes an argument; else NULL. Sets *value to the argument in this word; NULL: the argument is
 * the next word. */
static const struct gt_option *option_with_argument(const struct gt_command *c, const char *word, const char **value)
{
	*value = NULL;
	if (word[1] == '-') {
		size_t len = strcspn(word + 2, "=");
		const struct gt_option *o = gt_option_find(c, word + 2, len, 0);
		if (word[2 + len])
			*value = word + 2 + len + 1;
		return o && o->arg ? o : NULL;
	}
	for (const char *p = word + 1; *p; p++) {
		const struct gt_option *o = gt_option_find(c, NULL, 0, *p);
		if (!o || o->arg) {
			*value = p[1] ? p + 1 : NULL;
			return o;
		}
	}
	return NULL;
}

static void print_type(const struct completion *t, const char *type)
{
	gt_out(t->cli, "%s\t%.*s\n", type, (int)(t->value - t->word), t->word);
}

static void print_word(const struct completion *t, const char *word, size_t len, const char *help)
{
	gt_out(t->cli, "%.*s%.*s\t%s\n", (int)(t->value - t->word), t->word, (int)len, word, help);
}

/* Prints the words of a list such as "a|b|c", each preceded by `before`. */
static void print_choices(const struct completion *t, const char *before, const char *choices)
{
	for (const char *p = choices; p && *p; p += strcspn(p, "|") + (p[strcspn(p, "|")] == '|')) {
		gt_out(t->cli, "%.*s%s", (int)(t->value - t->word), t->word, before);
		gt_out(t->cli, "%.*s\t\n", (int)strcspn(p, "|"), p);
	}
}

static void print_options(const struct completion *t, const struct gt_option *table)
{
	for (const struct gt_option *o = table; o && o->name; o++) {
		gt_out(t->cli, "--%s\t%s\n", o->name, o->help);
		if (o->letter)
			gt_out(t->cli, "-%c\t%s\n", o->letter, o->help);
	}
}

static void print_commands(const struct completion *t)
{
	for (int i = 0; gt_commands[i].name; i++)
		print_word(t, gt_commands[i].name, strlen(gt_commands[i].name), gt_commands[i].summary);
}

/* Prints "KEY=" for every key that --set can set to a value or, after "KEY=", the values of an enumeration. Groups have no value, and keys
 * of list elements and templates have no fixed path. */
static void print_key(void *user, const struct gt_schema_key *key)
{
	const struct completion *t = user;
	size_t len = strlen(key->path);
	char before[128];
	if (strchr(key->path, '[') || strstr(key->path, ".NAME") || !strcmp(key->type, "group") || !strcmp(key->type, "list"))
		return;
	snprintf(before, sizeof before, "%s=", key->path);
	if (!strchr(t->value, '='))
		print_word(t, before, len + 1, key->help);
	else if (strncmp(t->value, before, len + 1) == 0 && (strchr(key->type, '|') || !strcmp(key->type, "bool")))
		print_choices(t, before, strcmp(key->type, "bool") ? key->type : "true|false");
}

static void print_topic_word(void *user, const struct gt_schema_word *word)
{
	if (!strncmp(word->key, "model.layers[]", 14) || strstr(word->key, "type") || !strcmp(word->key, "train.loss"))
		print_word(user, word->word, strlen(word->word), word->help);
}

static void print_topic_key(void *user, const struct gt_schema_key *key)
{
	print_word(user, key->path, strlen(key->path), key->help);
}

static enum gt_code print_devices(const struct completion *t, struct gt_err *err)
{
	enum { MAX = 64 };
	struct gt_device_row *rows;
	int n = 0;
	GT_NEW(rows, t->cli->arena, MAX, err);
	GT_TRY(gt_devices(rows, MAX, &n, err));
	print_word(t, "auto", 4, "");
	for (int i = 0; i < n && i < MAX; i++)
		if (rows[i].usable)
			print_word(t, rows[i].id, strlen(rows[i].id), rows[i].name);
	return GT_OK;
}

static enum gt_code print_bundled(const struct completion *t, struct gt_err *err)
{
	struct gt_bundled *rows;
	int n;
	GT_TRY(gt_bundled_list(t->cli->arena, &rows, &n, err));
	for (int i = 0; i < n; i++)
		print_word(t, rows[i].name, strlen(rows[i].name), rows[i].summary);
	return GT_OK;
}

static enum gt_code print_candidates(struct completion *t, enum gt_complete type, const char *choices, struct gt_err *err)
{
	static const char *const shell_type[] = {
		[GT_COMPLETE_CONFIG] = "configs", [GT_COMPLETE_DIR] = "dirs", [GT_COMPLETE_CHECKPOINT] = "dirs", [GT_COMPLETE_FILE] = "files",
		[GT_COMPLETE_CHOICE] = NULL, /* the highest index, so that the array has an entry for every enum gt_complete */
	};
	print_type(t, shell_type[type] ? shell_type[type] : "words");
	switch (type) {
	case GT_COMPLETE_NONE:
	case GT_COMPLETE_DIR:
	case GT_COMPLETE_CHECKPOINT:
	case GT_COMPLETE_FILE:
		break;
	case GT_COMPLETE_CONFIG:
	case GT_COMPLETE_BUNDLED:
		return print_bundled(t, err);
	case GT_COMPLETE_KEY:
		gt_schema_each(print_key, t);
		break;
	case GT_COMPLETE_DEVICE:
		return print_devices(t, err);
	case GT_COMPLETE_DATASET:
		for (int i = 0; gt_fetch_name(i); i++)
			print_word(t, gt_fetch_name(i), strlen(gt_fetch_name(i)), "");
		break;
	case GT_COMPLETE_TOPIC:
		print_commands(t);
		gt_schema_words(print_topic_word, t);
		gt_schema_each(print_topic_key, t);
		break;
	case GT_COMPLETE_COMMAND:
		print_commands(t);
		break;
	case GT_COMPLETE_CHOICE:
		print_choices(t, "", choices);
		break;
	}
	return GT_OK;
}

enum gt_code gt_complete_words(struct gt_cli *cli, const char *const *words, int n, struct gt_err *err)
{
	const char *word = n > 0 ? words[n - 1] : "", *value = NULL;
	const struct gt_command_row *row;
	const struct gt_command *c = NULL;
	const struct gt_option *o = NULL; /* option that takes the next word as its argument; NULL: none */
	bool only_operands = false;
	int operands = 0;
	for (int i = 0; i + 1 < n; i++) {
		if (o) {
			o = NULL;
		} else if (!only_operands && strcmp(words[i], "--") == 0) {
			only_operands = c != NULL; /* a `--` before the command only ends the global options; a `--` after it makes all further words
			                              operands */
		} else if (!only_operands && words[i][0] == '-' && words[i][1]) {
			o = option_with_argument(c, words[i], &value);
			o = value ? NULL : o;
		} else if (c) {
			operands++;
		} else if (!(row = gt_command_find(words[i]))) {
			return GT_OK;
		} else {
			GT_TRY(gt_command_open(row, &c, err));
		}
	}
	struct completion t = {.cli = cli, .word = word, .value = word};
	if (!o && !only_operands && word[0] == '-') {
		o = option_with_argument(c, word, &value);
		if (!o || !value) {
			print_type(&t, "words");
			print_options(&t, c ? c->options : NULL);
			print_options(&t, gt_global_options);
			return GT_OK;
		}
		t.value = value;
	}
	if (o)
		return print_candidates(&t, o->complete, o->choices, err);
	if (!c)
		return print_candidates(&t, GT_COMPLETE_COMMAND, NULL, err);
	if (c->max_operands >= 0 && operands >= c->max_operands)
		return print_candidates(&t, GT_COMPLETE_NONE, NULL, err);
	return print_candidates(&t, operands ? c->rest : c->first, c->choices, err);
}
