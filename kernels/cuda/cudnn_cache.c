#include "cuda/cudnn_cache.h"
#include "base/fileio.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "gtrain cudnn plans 2" /* files of version 1 are not read, because their choices did not prefer tensor cores */
#define FILE_MAX ((size_t)1 << 20)
#define ENTRIES_MAX 4096
#define LINE_MAX_BYTES (GT_DNN_KEY + 64 + GT_DNN_KNOBS * 32)
#define SAVE_EVERY 16 /* number of additions before a save, because a save costs two fsyncs */

struct entry {
	char key[GT_DNN_KEY];
	struct gt_dnn_choice choice;
};

struct gt_dnn_cache {
	char path[GT_PATH_SIZE]; /* path of the cache file; "": the cache is in memory only */
	char head[512];
	struct entry *entry;
	int n, cap, unsaved;
};

/* ---- entries ----------------------------------------------------------------------------------------------------------------- */
static struct entry *find_entry(const struct gt_dnn_cache *c, const char *key)
{
	for (int i = 0; i < c->n; i++)
		if (!strcmp(c->entry[i].key, key))
			return &c->entry[i];
	return NULL;
}

/* Adds or replaces an entry. ours is true if the choice was made in this process. A choice from the file does not replace an entry with
 * `ours`, which may have been tried on the device. */
static void set_entry(struct gt_dnn_cache *c, const char *key, const struct gt_dnn_choice *choice, bool ours)
{
	struct entry *e = find_entry(c, key);
	if (e && !ours)
		return;
	if (!e) {
		if (c->n == ENTRIES_MAX)
			return;
		if (c->n == c->cap) {
			int cap = c->cap ? 2 * c->cap : 64;
			struct entry *more = realloc(c->entry, (size_t)cap * sizeof *more);
			if (!more)
				return;
			c->entry = more;
			c->cap = cap;
		}
		e = &c->entry[c->n++];
		snprintf(e->key, sizeof e->key, "%s", key);
	}
	e->choice = *choice;
}

/* ---- parser ------------------------------------------------------------------------------------------------------------------------- */
/* Parses a decimal number of the given range that is followed by `end`. *s is moved past `end`. */
static bool parse_number(char **s, char end, int64_t least, int64_t most, int64_t *out)
{
	char *stop;
	if (!isdigit((unsigned char)**s) && !(**s == '-' && isdigit((unsigned char)(*s)[1])))
		return false;
	errno = 0;
	long long v = strtoll(*s, &stop, 10);
	if (errno || *stop != end || v < least || v > most)
		return false;
	*s = end ? stop + 1 : stop;
	*out = v;
	return true;
}

static bool parse_knobs(char *s, struct gt_dnn_choice *c)
{
	if (!strcmp(s, "-"))
		return true;
	for (;;) {
		char *comma = strchr(s, ',');
		if (c->nknobs == GT_DNN_KNOBS || !parse_number(&s, '=', 0, 9999, &c->knob[c->nknobs][0]))
			return false;
		if (!parse_number(&s, comma ? ',' : '\0', INT32_MIN, INT32_MAX, &c->knob[c->nknobs][1]))
			return false;
		c->nknobs++;
		if (!comma)
			return true;
	}
}

/* Parses one line without its newline. The line is modified. */
static void parse_line(struct gt_dnn_cache *c, char *line)
{
	struct gt_dnn_choice choice = {0};
	char *s = strchr(line, '\t'), *end;
	if (!s || s == line || s - line >= GT_DNN_KEY)
		return;
	*s++ = '\0';
	for (char *p = line; *p; p++)
		if (*p < ' ' || *p > '~')
			return;
	if (!parse_number(&s, '\t', 0, 99999, &choice.engine))
		return;
	choice.us = strtod(s, &end);
	if (end == s || *end != '\t' || !(choice.us >= 0 && choice.us < 1e12))
		return;
	if (parse_knobs(end + 1, &choice))
		set_entry(c, line, &choice, false);
}

static void read_file(struct gt_dnn_cache *c)
{
	char *text = NULL;
	size_t n, head = strlen(c->head);
	if (!c->path[0] || gt_file_read(c->path, FILE_MAX, &text, &n, NULL) != GT_OK)
		return;
	if (n >= head && !memcmp(text, c->head, head)) {
		char *line = text + head, *end = text + n, *stop;
		for (; (stop = memchr(line, '\n', (size_t)(end - line))); line = stop + 1) {
			*stop = '\0';
			if (stop - line < LINE_MAX_BYTES && strlen(line) == (size_t)(stop - line))
				parse_line(c, line);
		}
	}
	free(text);
}

/* ---- writer ------------------------------------------------------------------------------------------------------------------------- */
static size_t print_entry(const struct entry *e, char *buf, size_t size)
{
	int n = snprintf(buf, size, "%s\t%" PRId64 "\t%.1f\t", e->key, e->choice.engine, e->choice.us);
	for (int i = 0; i < e->choice.nknobs; i++)
		n += snprintf(buf + n, size - (size_t)n, "%s%" PRId64 "=%" PRId64, i ? "," : "", e->choice.knob[i][0], e->choice.knob[i][1]);
	n += snprintf(buf + n, size - (size_t)n, e->choice.nknobs ? "\n" : "-\n");
	return (size_t)n;
}

static void save_file(struct gt_dnn_cache *c)
{
	char folder[GT_PATH_SIZE], *text;
	size_t used = strlen(c->head);
	if (!c->path[0] || !c->unsaved)
		return;
	c->unsaved = 0; /* also after a failed save, so that a read-only directory is not tried after every choice */
	read_file(c);
	text = malloc(used + (size_t)c->n * LINE_MAX_BYTES + 1);
	if (!text)
		return;
	strcpy(text, c->head);
	for (int i = 0; i < c->n && used + LINE_MAX_BYTES < FILE_MAX; i++)
		used += print_entry(&c->entry[i], text + used, LINE_MAX_BYTES);
	if (gt_path_parent(folder, c->path, NULL) == GT_OK && gt_dir_make(folder, NULL, NULL) == GT_OK)
		gt_file_replace(c->path, 0600, text, used, NULL);
	free(text);
}

/* ---- the cache --------------------------------------------------------------------------------------------------------------- */
/* Appends a name to the path. Letters, digits, '.' and '-' stay; every run of other characters becomes one '_'. */
static void add_name(char *path, size_t size, const char *s)
{
	size_t n = strlen(path);
	for (; *s && n + 1 < size; s++) {
		bool plain = isalnum((unsigned char)*s) || *s == '.' || *s == '-';
		if (plain || path[n - 1] != '_')
			path[n++] = plain ? *s : '_';
	}
	path[n] = '\0';
}

static void find_path(struct gt_dnn_cache *c, const char *card, const char *library)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool own = xdg && xdg[0] == '/'; /* the XDG Base Directory specification ignores relative paths */
	if (!own && !(home && home[0] == '/'))
		return;
	int n = snprintf(c->path, sizeof c->path, "%s%s/gtrain/cudnn-", own ? xdg : home, own ? "" : "/.cache");
	if (n < 0 || (size_t)n + 2 * GT_DNN_KEY > sizeof c->path) {
		c->path[0] = '\0';
		return;
	}
	add_name(c->path, (size_t)n + GT_DNN_KEY, card);
	strcat(c->path, "-");
	add_name(c->path, strlen(c->path) + 64, library);
	strcat(c->path, ".plans");
}

enum gt_code gt_dnn_cache_open(const char *card, const char *library, struct gt_dnn_cache **out, struct gt_err *err)
{
	struct gt_dnn_cache *c = *out = calloc(1, sizeof *c);
	if (!c)
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", sizeof *c);
	snprintf(c->head, sizeof c->head, "%s\t%s\t%s\n", MAGIC, card, library);
	find_path(c, card, library);
	read_file(c);
	return GT_OK;
}

void gt_dnn_cache_close(struct gt_dnn_cache *c)
{
	if (!c)
		return;
	save_file(c);
	free(c->entry);
	free(c);
}

bool gt_dnn_cache_find(const struct gt_dnn_cache *c, const char *key, struct gt_dnn_choice *out)
{
	const struct entry *e = c ? find_entry(c, key) : NULL;
	if (e)
		*out = e->choice;
	return e;
}

void gt_dnn_cache_ran(struct gt_dnn_cache *c, const char *key)
{
	struct entry *e = c ? find_entry(c, key) : NULL;
	if (e)
		e->choice.ran = true;
}

void gt_dnn_cache_add(struct gt_dnn_cache *c, const char *key, const struct gt_dnn_choice *choice)
{
	if (!c || strlen(key) >= GT_DNN_KEY)
		return;
	set_entry(c, key, choice, true);
	if (++c->unsaved >= SAVE_EVERY)
		save_file(c);
}
