/* Describes the config language as a JSON schema (draft 2020-12), for programs that write configs. Groups of a config are objects; lists
 * and arrays are arrays. The schema does not have all checks of gtrain: if a key requires another setting, only the key's description says
 * so. */
#include "editor_files.h"
#include "gtrain.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct schema {
	struct gt_cli *cli;
	struct gt_json *j;
	struct gt_schema_key *key; /* [n] */
	int n, cap;
	bool no_memory;
	bool parameters; /* the schema of a template's layers: a string "$name" is allowed in place of each value */
};

/* Keys that have the same type and range as another key. */
static const struct {
	const char *path, *like;
} same[] = {
	{"eval.transforms", "#/properties/data/properties/augment"},
	{"model.blocks.NAME.layers", "#/properties/model/properties/layers"},
	{"train.groups[].optimizer", "#/properties/train/properties/optimizer"},
	{"train.groups[].schedule", "#/properties/train/properties/schedule"},
};

static const char layers[] = "model.layers[].";

/* ---- the keys ----------------------------------------------------------------------------------------------------------- */
static void keep_key(void *user, const struct gt_schema_key *key)
{
	struct schema *s = user;
	const char *const from[] = {key->path, key->type, key->def, key->range, key->help, key->when, key->is};
	char *to[7];
	if (s->n == s->cap)
		s->no_memory = true;
	for (int i = 0; i < 7 && !s->no_memory; i++)
		s->no_memory = !(to[i] = gt_arena_strdup(s->cli->arena, from[i]));
	if (!s->no_memory)
		s->key[s->n++] = (struct gt_schema_key){.path = to[0], .type = to[1], .def = to[2], .range = to[3], .help = to[4], .when = to[5],
		                                        .is = to[6]};
}

static bool begins_with(const char *s, const char *with)
{
	return strncmp(s, with, strlen(with)) == 0;
}

/* Returns whether some key of the schema begins with path, which ends with "." or "[].". */
static bool has_below(const struct schema *s, const char *path)
{
	for (int i = 0; i < s->n; i++)
		if (begins_with(s->key[i].path, path))
			return true;
	return false;
}

static const struct gt_schema_key *find_key(const struct schema *s, const char *path)
{
	for (int i = 0; i < s->n; i++)
		if (!strcmp(s->key[i].path, path))
			return &s->key[i];
	return NULL;
}

/* ---- values ------------------------------------------------------------------------------------------------------------- */
/* Writes the limits of a numeric value, from gt_schema_key.range: "0..", "1..3", "> 0", "(0, 1]". */
static void write_range(struct gt_json *j, const char *range)
{
	char *rest;
	const char *sep = strstr(range, "..");
	if (*range == '(' || *range == '[') {
		gt_json_double(j, *range == '(' ? "exclusiveMinimum" : "minimum", strtod(range + 1, &rest), 15);
		gt_json_double(j, range[strlen(range) - 1] == ')' ? "exclusiveMaximum" : "maximum", strtod(rest + 1, NULL), 15);
	} else if (*range == '>' || *range == '<') {
		gt_json_double(j, *range == '>' ? "exclusiveMinimum" : "exclusiveMaximum", strtod(range + 1, NULL), 15);
	} else if (sep) {
		if (sep > range)
			gt_json_double(j, "minimum", strtod(range, NULL), 15);
		if (sep[2])
			gt_json_double(j, "maximum", strtod(sep + 2, NULL), 15);
	}
}

static void write_scalar(struct gt_json *j, const char *name, const char *type, const char *range)
{
	gt_json_object(j, name);
	gt_json_string(j, "type", type);
	write_range(j, range);
	gt_json_end(j);
}

/* Writes the schema of an array of n values; n = 0: any length. */
static void write_array(struct gt_json *j, const char *type, int n, const char *range)
{
	gt_json_object(j, NULL);
	gt_json_string(j, "type", "array");
	write_scalar(j, "items", type, range);
	if (n)
		gt_json_add(j, GT_INT("minItems", n), GT_INT("maxItems", n));
	gt_json_end(j);
}

/* Writes the schema of one alternative of a type: "int", "float[2]", "\"auto\"", "list". Returns false, and writes nothing, if the
 * alternative is a word. */
static bool write_alternative(struct gt_json *j, const char *word, const char *range)
{
	static const char *const types[][2] = {{"int", "integer"}, {"float", "number"}, {"bool", "boolean"}, {"string", "string"},
	                                       {"list", "array"},  {"group", "object"}};
	char quoted[48];
	if (*word == '"') {
		snprintf(quoted, sizeof quoted, "%.*s", (int)strcspn(word + 1, "\""), word + 1);
		gt_json_row(j, NULL, GT_STR("const", quoted));
		return true;
	}
	for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
		size_t n = strlen(types[i][0]);
		if (strncmp(word, types[i][0], n) != 0 || (word[n] && word[n] != '['))
			continue;
		if (!word[n] || word[n + 1] == ']') /* "word[]": the schema also allows a single value in place of an array */
			write_scalar(j, NULL, types[i][1], range);
		if (word[n])
			write_array(j, types[i][1], atoi(word + n + 1), range);
		return true;
	}
	return false;
}

/* Writes the alternatives of a key's type: types and words. If the key has words and the default "", the schema also allows "". */
static void write_value(const struct schema *s, const struct gt_schema_key *key)
{
	char word[48];
	size_t n;
	int words = 0;
	gt_json_array(s->j, "anyOf");
	for (const char *p = key->type;; p += n + 1) {
		n = strcspn(p, "|");
		snprintf(word, sizeof word, "%.*s", (int)n, p);
		if (!write_alternative(s->j, word, key->range)) {
			gt_json_row(s->j, NULL, GT_STR("const", word));
			words++;
		}
		if (!p[n])
			break;
	}
	if (words && !strcmp(key->def, "\"\""))
		gt_json_row(s->j, NULL, GT_STR("const", ""));
	if (s->parameters)
		gt_json_row(s->j, NULL, GT_STR("type", "string"), GT_STR("pattern", "^\\$"));
	gt_json_end(s->j);
}

static void write_description(struct gt_json *j, const struct gt_schema_key *key)
{
	char text[4096];
	snprintf(text, sizeof text, "%s (%s%s%s%s%s%s)", key->help, *key->def ? "default " : "required", key->def, *key->when ? "; with " : "",
	         key->when, *key->when ? " = " : "", key->is);
	gt_json_string(j, "description", text);
}

/* ---- groups ------------------------------------------------------------------------------------------------------------- */
static void write_group(const struct schema *s, const char *name, const char *prefix);
static void write_properties(const struct schema *s, const char *prefix);

static const char *find_like(const char *path)
{
	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		if (!strcmp(path, same[i].path))
			return same[i].like;
	return NULL;
}

/* Returns the length of the property name in group `prefix` under which key i is; 0: key i is not in the group, or an earlier key is under
 * the same property. Skips attributes of layer types, which differ from type to type. */
static size_t property_of(const struct schema *s, int i, const char *prefix)
{
	size_t before = strlen(prefix);
	const char *path = s->key[i].path;
	if (!begins_with(path, prefix) || (!strcmp(prefix, layers) && strchr(path + before, '.')))
		return 0;
	size_t n = strcspn(path + before, ".[");
	for (int k = 0; k < i; k++)
		if (!strncmp(s->key[k].path, path, before + n) && strchr(".[", s->key[k].path[before + n]))
			return 0;
	return n;
}

static void add_layer_type(void *user, const struct gt_schema_word *word);

static void write_required(struct gt_json *j, const char *name)
{
	gt_json_array(j, "required");
	gt_json_string(j, NULL, name);
	gt_json_end(j);
}

/* Writes the schema of an element of model.layers: an instance of a template, with any parameters, or a layer with the keys of its type. */
static void write_layer(const struct schema *s)
{
	struct schema in = *s;
	in.parameters = true;
	gt_json_object(s->j, "items");
	gt_json_array(s->j, "oneOf");
	gt_json_object(s->j, NULL);
	write_required(s->j, "block");
	gt_json_end(s->j);
	gt_json_object(s->j, NULL);
	write_properties(&in, layers);
	gt_json_array(s->j, "allOf");
	gt_schema_words(add_layer_type, &in);
	gt_json_end(s->j);
	gt_json_bool(s->j, "unevaluatedProperties", false);
	gt_json_end(s->j);
	gt_json_end(s->j);
	gt_json_end(s->j);
}

/* Writes the schema of the property with this path. */
static void write_property(const struct schema *s, const char *path, const char *name)
{
	char below[168];
	const struct gt_schema_key *key = find_key(s, path);
	if (find_like(path)) {
		gt_json_row(s->j, name, GT_STR("$ref", find_like(path)));
		return;
	}
	snprintf(below, sizeof below, "%s.", path);
	if (!key) {
		write_group(s, name, below);
		return;
	}
	gt_json_object(s->j, name);
	write_description(s->j, key);
	if (snprintf(below, sizeof below, "%s[].", path), has_below(s, below)) {
		gt_json_string(s->j, "type", "array");
		if (strcmp(below, layers) != 0)
			write_group(s, "items", below);
		else
			write_layer(s);
	} else if (snprintf(below, sizeof below, "%s.NAME.", path), has_below(s, below)) {
		gt_json_string(s->j, "type", "object");
		write_group(s, "additionalProperties", below);
	} else {
		write_value(s, key);
	}
	gt_json_end(s->j);
}

static void write_properties(const struct schema *s, const char *prefix)
{
	size_t before = strlen(prefix), n;
	char path[160];
	gt_json_object(s->j, "properties");
	for (int i = 0; i < s->n; i++)
		if ((n = property_of(s, i, prefix)) > 0) {
			snprintf(path, sizeof path, "%.*s", (int)(before + n), s->key[i].path);
			write_property(s, path, path + before);
		}
	gt_json_end(s->j);
	gt_json_array(s->j, "required");
	for (int i = 0; i < s->n; i++)
		if (property_of(s, i, prefix) && !strchr(s->key[i].path + before, '.') && !*s->key[i].def && !*s->key[i].when &&
		    strcmp(s->key[i].path, "model.layers[].block") != 0)
			gt_json_string(s->j, NULL, s->key[i].path + before);
	gt_json_end(s->j);
}

static void write_group(const struct schema *s, const char *name, const char *prefix)
{
	gt_json_object(s->j, name);
	gt_json_string(s->j, "type", "object");
	write_properties(s, prefix);
	gt_json_bool(s->j, "additionalProperties", false);
	gt_json_end(s->j);
}

/* Writes the keys of a layer type, which apply to layers of this type. */
static void add_layer_type(void *user, const struct gt_schema_word *word)
{
	const struct schema *s = user;
	char prefix[96];
	if (strcmp(word->key, "model.layers[].type") != 0)
		return;
	snprintf(prefix, sizeof prefix, "%s%s.", layers, word->word);
	gt_json_object(s->j, NULL);
	gt_json_object(s->j, "if");
	gt_json_object(s->j, "properties");
	gt_json_row(s->j, "type", GT_STR("const", word->word));
	gt_json_end(s->j);
	gt_json_end(s->j);
	gt_json_object(s->j, "then");
	gt_json_string(s->j, "description", word->help);
	write_properties(s, prefix);
	gt_json_end(s->j);
	gt_json_end(s->j);
}

enum gt_code gt_print_json_schema(struct gt_cli *cli, struct gt_err *err)
{
	struct schema s = {.cli = cli, .j = &cli->json, .cap = 2048};
	GT_NEW(s.key, cli->arena, s.cap, err);
	gt_schema_each(keep_key, &s);
	if (s.no_memory)
		return gt_fail_memory(err, (size_t)s.cap * sizeof *s.key);
	gt_json_object(s.j, NULL);
	gt_json_add(s.j, GT_STR("$schema", "https://json-schema.org/draft/2020-12/schema"), GT_STR("title", "config of gtrain"),
	            GT_STR("type", "object"));
	write_properties(&s, "");
	gt_json_bool(s.j, "additionalProperties", false);
	gt_json_end(s.j);
	return gt_out_json(cli, err);
}
