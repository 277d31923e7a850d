/* `gtrain help TOPIC` for the config language: keys, layer types, and other words that are values of keys. */
#include "base/guess.h"
#include "cli.h"
#include "gtrain.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define INDENT 11 /* column at which the facts about a key begin */
#define TABLE 22  /* column at which the descriptions in lists of words and keys begin */
#define WIDTH gt_help_width()

static const char layer_types[] = "model.layers[].type";

/* Topics that explain all values of a key. */
static const struct {
	const char *topic, *key;
} lists[] = {
	{"layers", layer_types},
	{"losses", "train.loss"},
	{"optimizers", "train.optimizer.type"},
	{"schedules", "train.schedule.type"},
	{"transforms", "data.augment[].type"},
	{"metrics", "checkpoint.best.metric"},
	{"modes", "parallel.mode"},
	{"formats", "data.format"},
};

struct search {
	struct gt_cli *cli;
	const char *topic;
	enum { WHOLE, BELOW, LAST, INSIDE, ELSEWHERE } match; /* the topic is a key's path (WHOLE), the beginning of a path, its last component,
	                                                         a group in it, or in `also` */
	const struct gt_schema_word *of;              /* the word whose keys are printed; NULL: no word */
	char settings[512];                           /* an example of a config that uses the word, with the keys that the word requires */
	int found;
};

/* Returns whether two names are equal, or the longer one ends with a dot and the shorter one, as "torch.nn.ReLU" and "nn.ReLU" do. Case is
 * ignored. */
static bool same_name(const char *a, size_t na, const char *b, size_t nb)
{
	size_t n = na < nb ? na : nb;
	const char *longer = na < nb ? b : a;
	size_t rest = (na < nb ? nb : na) - n;
	return !strncasecmp(a + na - n, b + nb - n, n) && (!rest || longer[rest - 1] == '.');
}

/* Returns whether `word` is one of the names in `words`, which has the form "a|b". */
static bool is_among(const char *words, const char *word)
{
	size_t n;
	for (; *words; words += n + (words[n] == '|')) {
		n = strcspn(words, "|");
		if (same_name(words, n, word, strlen(word)))
			return true;
	}
	return false;
}

static bool is_enumeration(const char *type)
{
	return strchr(type, '|') && strncmp(type, "int", 3) != 0 && strncmp(type, "float", 5) != 0 && strncmp(type, "string", 6) != 0;
}

/* Copies a list "a|b" to buf in the form "a, b". Returns buf. */
static const char *list_words(const char *words, char *buf, size_t size)
{
	size_t n = 0;
	buf[0] = 0;
	for (size_t len; *words && n < size; words += len + (words[len] == '|')) {
		len = strcspn(words, "|");
		n += (size_t)snprintf(buf + n, size - n, "%s%.*s", n ? ", " : "", (int)len, words);
	}
	return buf;
}

static void print_title(struct gt_cli *cli, const char *title)
{
	gt_out(cli, "%s%s%s\n", gt_style(cli->color_out, GT_STYLE_BOLD), title, gt_style(cli->color_out, GT_STYLE_NONE));
}

static void print_fact(struct gt_cli *cli, const char *name, const char *text)
{
	char head[16];
	snprintf(head, sizeof head, "  %s", name);
	if (*text)
		gt_out_wrapped(cli, head, INDENT, text, WIDTH);
}

/* ---- keys --------------------------------------------------------------------------------------------------------------- */
/* Returns the last component of a path. */
static const char *last_name(const char *path)
{
	const char *dot = strrchr(path, '.');
	return dot ? dot + 1 : path;
}

/* Returns the length of the part at the beginning of path that equals the topic; 0: no match. The topic may omit "[]":
 * "data.augment.pad". */
static size_t match_path(const char *path, const char *topic)
{
	const char *p = path;
	for (; *topic; p++, topic++) {
		if (!strncmp(p, "[]", 2) && strncmp(topic, "[]", 2) != 0)
			p += 2;
		if (*p != *topic)
			return 0;
	}
	return (size_t)(p - path);
}

/* Returns whether a group of the path has this name: "mlflow" is a group of "log.mlflow.uri". */
static bool has_group(const char *path, const char *name)
{
	size_t n = strlen(name);
	for (const char *dot = path; (dot = strchr(dot, '.')); dot++)
		if (!strncmp(dot + 1, name, n) && n && strchr(".[", dot[1 + n]) && dot[1 + n])
			return true;
	return false;
}

static bool matches_topic(const struct search *s, const struct gt_schema_key *key)
{
	size_t n = match_path(key->path, s->topic);
	if (s->match == ELSEWHERE)
		return is_among(key->also, s->topic);
	if (s->match == INSIDE)
		return has_group(key->path, s->topic);
	if (s->match == LAST)
		return strcmp(last_name(key->path), s->topic) == 0;
	return n && (s->match == WHOLE ? !key->path[n] : strchr(".[", key->path[n]) != NULL);
}

/* Writes settings of a group in the syntax of a config: "train = { optimizer = { lr = 0.001; }; };", or "{ pad = 4; }" for an element of a
 * list. path: path of a key of the group. */
static void write_example(const char *path, const char *settings, char *buf, size_t size)
{
	int depth = 0;
	size_t n = 0;
	if (strchr(path, ']')) {
		snprintf(buf, size, "{ %s }", settings);
		return;
	}
	const char *p = strstr(path, ".NAME.") ? strrchr(path, '.') + 1 : path;
	for (const char *dot; (dot = strchr(p, '.')) && n < size; p = dot + 1, depth++)
		n += (size_t)snprintf(buf + n, size - n, "%.*s = { ", (int)(dot - p), p);
	n += (size_t)snprintf(buf + n, n < size ? size - n : 0, "%s", settings);
	for (; depth > 0 && n < size; depth--)
		n += (size_t)snprintf(buf + n, size - n, " };");
}

static void print_values(struct gt_cli *cli, const struct gt_schema_key *key)
{
	char word[48], text[1024];
	const char *head = "values";
	size_t len;
	for (const char *p = key->type; *p; p += len + (p[len] == '|'), head = "") {
		len = strcspn(p, "|");
		snprintf(word, sizeof word, "%.*s", (int)len, p);
		gt_out(cli, "  %-*s", INDENT - 2, head);
		if (*gt_schema_word_text(key, word, text, sizeof text)) {
			gt_out(cli, "%s: ", word);
			gt_out_words(cli, text, INDENT + 2, WIDTH - (int)len);
		} else {
			gt_out(cli, "%s", len ? word : "\"\"");
		}
		gt_out(cli, "\n");
	}
}

static void print_key(struct gt_cli *cli, const struct gt_schema_key *key)
{
	char about[2048], list[1024], only[1200] = "", settings[512], example[1024];
	bool words = is_enumeration(key->type);
	print_title(cli, key->path);
	print_fact(cli, "about", gt_schema_about(key, about, sizeof about));
	if (words)
		print_values(cli, key);
	else
		print_fact(cli, "value", key->type);
	print_fact(cli, "range", key->range);
	print_fact(cli, "default", *key->def ? key->def : "none: the key is required");
	if (*key->when)
		snprintf(only, sizeof only, "%s = %s", key->when, list_words(key->is, list, sizeof list));
	print_fact(cli, "with", only);
	print_fact(cli, "also", list_words(key->also, list, sizeof list));
	snprintf(settings, sizeof settings, "%s = %s;", last_name(key->path), key->example);
	write_example(key->path, settings, example, sizeof example);
	print_fact(cli, "example", example);
}

static void write_key(struct gt_json *j, const struct gt_schema_key *key)
{
	char about[2048];
	gt_json_row(j, NULL, GT_STR("path", key->path), GT_STR("type", key->type), GT_STR("range", key->range), GT_STR("default", key->def),
	            GT_STR("when", key->when), GT_STR("is", key->is), GT_STR("also", key->also), GT_STR("example", key->example),
	            GT_STR("about", gt_schema_about(key, about, sizeof about)));
}

static void explain_key(void *user, const struct gt_schema_key *key)
{
	struct search *s = user;
	if (!matches_topic(s, key))
		return;
	if (s->cli->args.json) {
		write_key(&s->cli->json, key);
	} else {
		gt_out(s->cli, "%s", s->found ? "\n" : "");
		print_key(s->cli, key);
	}
	s->found++;
}

static void explain_keys(struct search *s)
{
	int before = s->found;
	for (s->match = WHOLE; s->match <= ELSEWHERE && s->found == before; s->match++)
		if (s->match != INSIDE || !before) /* keys of a layer type are printed with this layer type */
			gt_schema_each(explain_key, s);
}

/* ---- words -------------------------------------------------------------------------------------------------------------- */
/* Returns whether a key applies to all types of the group whose type is the word `of`: "lr" applies to "adamw" and to all other
 * optimizers. */
static bool is_for_all_types(const struct gt_schema_word *of, const struct gt_schema_key *key)
{
	size_t n = (size_t)(last_name(of->key) - of->key);
	return !strcmp(last_name(of->key), "type") && !strncmp(key->path, of->key, n) && !strchr(key->path + n, '.') && !*key->when &&
	       strcmp(key->path, of->key) != 0;
}

/* Returns the name of a key that belongs to the word `of`: an attribute of a layer type, or a key that applies only with this word; NULL:
 * the key does not belong to it. */
static const char *key_of_word(const struct gt_schema_word *of, const struct gt_schema_key *key)
{
	size_t n = strlen(of->word);
	bool belongs = !strcmp(of->key, layer_types)
	                   ? !strncmp(key->path, "model.layers[].", 15) && !strncmp(key->path + 15, of->word, n) && key->path[15 + n] == '.'
	                   : is_for_all_types(of, key) || (!strcmp(key->when, of->key) && is_among(key->is, of->word));
	return belongs ? last_name(key->path) : NULL;
}

/* Copies the part of a default that applies to a word: "0.01" for adamw if the default is "(0.0; adamw: 0.01; muon: 0.1)". Returns buf. */
static const char *default_with(const char *def, const char *word, char *buf, size_t size)
{
	char before[64];
	const char *own;
	snprintf(before, sizeof before, "; %s: ", word);
	if (*def != '(')
		return def;
	own = strstr(def, before) ? strstr(def, before) + strlen(before) : def + 1;
	snprintf(buf, size, "%.*s", (int)strcspn(own, ";)"), own);
	return buf;
}

static void print_key_of(void *user, const struct gt_schema_key *key)
{
	struct search *s = user;
	char head[160], text[2600], def[160];
	const char *name = key_of_word(s->of, key);
	if (!name)
		return;
	snprintf(head, sizeof head, "  %s%s", s->found++ ? "         " : "keys     ", name);
	snprintf(text, sizeof text, "%s (%s%s%s; %s%s)", key->help, key->type, *key->range ? ", " : "", key->range,
	         *key->def ? "default " : "required", default_with(key->def, s->of->word, def, sizeof def));
	gt_out_wrapped(s->cli, head, INDENT + 18, text, WIDTH);
}

static void require_key_of(void *user, const struct gt_schema_key *key)
{
	struct search *s = user;
	const char *name = key_of_word(s->of, key);
	size_t n = strlen(s->settings);
	if (name && !*key->def)
		snprintf(s->settings + n, sizeof s->settings - n, " %s = %s;", name, key->example);
}

/* Prints the setting whose value is the word, with the keys that the word requires. */
static void print_word_example(struct search *s)
{
	char example[1024];
	snprintf(s->settings, sizeof s->settings, "%s = \"%s\";", last_name(s->of->key), s->of->word);
	gt_schema_each(require_key_of, s);
	write_example(s->of->key, s->settings, example, sizeof example);
	print_fact(s->cli, "example", example);
}

static void print_word(struct search *s, const struct gt_schema_word *w)
{
	struct search keys = {.cli = s->cli, .of = w};
	char title[200], list[512];
	snprintf(title, sizeof title, "%s, a value of %s", w->word, w->key);
	print_title(s->cli, title);
	print_fact(s->cli, "about", w->help);
	print_fact(s->cli, "also", list_words(w->also, list, sizeof list));
	print_word_example(&keys);
	gt_schema_each(print_key_of, &keys);
}

static void write_word(struct gt_json *j, const struct gt_schema_word *w)
{
	gt_json_row(j, NULL, GT_STR("key", w->key), GT_STR("word", w->word), GT_STR("also", w->also), GT_STR("about", w->help));
}

/* Returns the topic without the module of PyTorch at its beginning: "SGD" for "torch.optim.SGD", "relu" for "F.relu". */
static const char *without_module(const char *topic)
{
	static const char *const modules[] = {"torch.optim.", "optim.", "torch.nn.functional.", "nn.functional.", "F."};
	for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
		if (!strncmp(topic, modules[i], strlen(modules[i])))
			return topic + strlen(modules[i]);
	return topic;
}

static void explain_word(void *user, const struct gt_schema_word *w)
{
	struct search *s = user;
	if (strcasecmp(w->word, without_module(s->topic)) != 0 && !is_among(w->also, s->topic))
		return;
	if (s->cli->args.json) {
		write_word(&s->cli->json, w);
	} else {
		gt_out(s->cli, "%s", s->found ? "\n" : "");
		print_word(s, w);
	}
	s->found++;
}

/* Prints a word that is a value of the key s->topic. */
static void list_word(void *user, const struct gt_schema_word *w)
{
	struct search *s = user;
	char head[64];
	if (strcmp(w->key, s->topic) != 0)
		return;
	snprintf(head, sizeof head, "  %s", w->word);
	if (s->cli->args.json)
		write_word(&s->cli->json, w);
	else if (*w->help)
		gt_out_wrapped(s->cli, head, TABLE, w->help, WIDTH);
	else
		gt_out(s->cli, "%s\n", head);
	s->found++;
}

/* ---- topics ------------------------------------------------------------------------------------------------------------- */
static void find_lists(struct search *s)
{
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		if (!strcmp(s->topic, lists[i].topic)) {
			if (!s->cli->args.json)
				print_title(s->cli, lists[i].key);
			gt_schema_words(list_word, &(struct search){.cli = s->cli, .topic = lists[i].key});
			s->found++;
		}
}

enum gt_code gt_help_topic(struct gt_cli *cli, const char *topic, int *found, struct gt_err *err)
{
	struct search s = {.cli = cli, .topic = topic};
	if (cli->args.json) {
		gt_json_object(&cli->json, NULL);
		gt_json_array(&cli->json, "words");
	}
	find_lists(&s);
	gt_schema_words(explain_word, &s);
	if (cli->args.json) {
		gt_json_end(&cli->json);
		gt_json_array(&cli->json, "keys");
	}
	explain_keys(&s);
	*found = s.found;
	if (!cli->args.json)
		return GT_OK;
	gt_json_end(&cli->json);
	gt_json_end(&cli->json);
	if (s.found)
		return gt_out_json(cli, err);
	gt_json_reset(&cli->json);
	return GT_OK;
}

/* ---- suggestions -------------------------------------------------------------------------------------------------------- */
struct candidates {
	struct gt_arena *arena;
	const char **name;
	int n, cap;
};

static void add_candidate(struct candidates *c, const char *name)
{
	char *copy = c->n < c->cap ? gt_arena_strdup(c->arena, name) : NULL;
	if (copy)
		c->name[c->n++] = copy;
}

static void add_key(void *user, const struct gt_schema_key *key)
{
	add_candidate(user, last_name(key->path));
	add_candidate(user, key->path);
}

static void add_word(void *user, const struct gt_schema_word *word)
{
	add_candidate(user, word->word);
}

enum gt_code gt_help_nearest(struct gt_cli *cli, const char *topic, const char **near, struct gt_err *err)
{
	struct candidates c = {.arena = cli->arena, .cap = 4096};
	GT_NEW(c.name, cli->arena, c.cap, err);
	gt_schema_words(add_word, &c);
	gt_schema_each(add_key, &c);
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
		add_candidate(&c, lists[i].topic);
	*near = gt_guess_nearest(topic, c.name, c.n);
	return GT_OK;
}
