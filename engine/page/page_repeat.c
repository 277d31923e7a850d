/* The commands that repeat the run: its first start, and each resume that has changed settings. A resume without changed settings gives the
 * same result as a run without interruption, so no command is needed for it. */
#include "base/fileio.h"
#include "base/shell_word.h"
#include "page/html.h"
#include "page/page.h"
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* value of checkpoint.keep if a later command resumes from a checkpoint that is not the last one: all checkpoints are kept */
#define KEPT 1000000

/* Writes a space and a word of a command, quoted for a shell. */
static void put_word(FILE *f, const char *text)
{
	char word[8200];
	fputc(' ', f);
	gt_html_text(f, gt_shell_word(text, word, sizeof word));
}

static void put_path(FILE *f, const char *dir, const char *tail)
{
	char path[GT_PATH_SIZE + 16];
	snprintf(path, sizeof path, "%s%s", dir, tail);
	put_word(f, path);
}

/* Writes those options of a start that the config does not contain. */
static void put_options(FILE *f, const struct gt_run_start *s)
{
	if (s->init && *s->init) {
		fputs(" --init", f);
		put_word(f, s->init);
	}
	if (s->ranks > 1)
		fprintf(f, " --nproc %" PRId64, s->ranks);
	if (s->device && *s->device) {
		fputs(" --device", f);
		put_word(f, s->device);
	}
}

/* Writes the path of the config with which the run began (first.cfg) to buf (GT_PATH_SIZE bytes). Returns false if there is no such file:
 * no resume has changed the config, or an earlier version of gtrain did not save it. For a folder history-N of a run, the file is in the
 * directory of the run. */
static bool find_first(const struct gt_run_record *r, char *buf)
{
	char parent[GT_PATH_SIZE];
	const char *slash = strrchr(r->dir, '/'), *name = slash ? slash + 1 : r->dir;
	struct stat st;
	if (gt_path_join(buf, r->dir, "first.cfg", NULL) == GT_OK && !stat(buf, &st))
		return true;
	return !strncmp(name, "history-", 8) && gt_path_parent(parent, r->dir, NULL) == GT_OK &&
	       gt_path_join(buf, parent, "first.cfg", NULL) == GT_OK && !stat(buf, &st);
}

/* Returns the index of the next start after start i that needs a command; nstarts: there is none. */
static int next_start(const struct gt_run_record *r, int i)
{
	const struct gt_run_start *last = &r->start[i];
	for (int k = i + 1; k < r->nstarts; k++) {
		const struct gt_run_start *s = &r->start[k];
		bool changes = s->nset || s->ranks != last->ranks || strcmp(s->device, last->device) != 0;
		if (changes && (s->saved || k == r->nstarts - 1))
			return k;
	}
	return r->nstarts;
}

/* Returns whether the config of start i was trained to its end before start k. If so, start k continues from the last checkpoint. */
static bool reaches_end(const struct gt_run_record *r, int i, int k)
{
	bool ended = r->start[i].steps && r->start[k].step >= r->start[i].steps;
	for (; i < k; i++) /* the starts between i and k have continued with the config of start i */
		ended |= r->start[i].ended;
	return ended;
}

/* Writes an option -s that sets a key to its value in the config of the last session. */
static void put_setting(const struct gt_run_record *r, const char *key, FILE *f)
{
	const char *value = gt_run_setting_find(r, key);
	fprintf(f, " -s %s=%s", key, value ? value : "");
}

/* Writes the command for start i. before: the start of the previous command; -1: none. *middle becomes true if a later command resumes from
 * a checkpoint before the end of this session. */
static void put_start(const struct gt_run_record *r, int i, int before, bool *middle, FILE *f)
{
	const struct gt_run_start *s = &r->start[i];
	int next = next_start(r, i);
	fputs(before < 0 ? "gtrain run" : "gtrain resume", f);
	if (before < 0) {
		char path[GT_PATH_SIZE];
		if (next < r->nstarts && find_first(r, path))
			put_word(f, path);
		else
			put_path(f, r->dir, "/config.cfg");
		fputs(" -o", f);
	}
	put_path(f, r->dir, "-again");
	if (before >= 0 && !reaches_end(r, before, i))
		fprintf(f, " --from %" PRId64, s->step);
	put_options(f, s);
	for (int k = 0; k < s->nset; k++) {
		fputs(" -s", f);
		put_word(f, s->set[k]);
	}
	if (next < r->nstarts && !reaches_end(r, i, next)) {
		fprintf(f, " -s checkpoint.every_steps=%" PRId64 " -s checkpoint.keep=%d", r->start[next].step, KEPT);
		*middle = true;
	} else if (next == r->nstarts && *middle) {
		put_setting(r, "checkpoint.every_steps", f);
		put_setting(r, "checkpoint.keep", f);
	}
	fputc('\n', f);
}

/* Writes the commands that repeat the run, and notes about what the commands cannot express. */
static void put_starts(const struct gt_run_record *r, FILE *f)
{
	static const struct gt_run_start unknown = {.init = "", .device = ""};
	const struct gt_run_record whole = {.dir = r->dir, .start = (struct gt_run_start *)&unknown, .nstarts = 1};
	int64_t unrecorded = -1;
	bool middle = false;
	char path[GT_PATH_SIZE];
	for (int i = 0; i < r->nstarts; i++)
		if (!r->start[i].recorded || (!i && r->start[i].resumed) || (r->start[i].nset && !find_first(r, path)))
			unrecorded = r->start[i].step;
	if (unrecorded >= 0 || !r->nstarts)
		r = &whole;
	bool resumed = next_start(r, 0) < r->nstarts;
	fputs("<p>The resolved config of the run has all its settings, including the seed.", f);
	fputs(resumed ? " The commands after the first one changed some of them.</p>\n" : "</p>\n", f);
	fputs("<pre tabindex=\"0\"><code>", f);
	for (int i = 0, before = -1; i < r->nstarts; before = i, i = next_start(r, i))
		put_start(r, i, before, &middle, f);
	fputs("</code></pre>\n", f);
	if (middle)
		fputs("<p class=\"hint\">A later command continues from a checkpoint in the middle of a session, which therefore keeps all "
		      "checkpoints; it can be stopped when it has saved this one.</p>\n", f);
	if (unrecorded >= 0)
		fprintf(f, "<p class=\"hint\">The run was resumed at step %" PRId64 ", and its log does not contain with which settings. The "
		        "command trains all steps with the settings of the last session.</p>\n", unrecorded);
}

void gt_page_repeat(const struct gt_page_facts *p, FILE *f)
{
	gt_html_section(f, "repeat", "Repeat this run");
	put_starts(&p->run, f);
	if (p->eval) {
		fputs("<p>The scores on this page:</p>\n<pre tabindex=\"0\"><code>gtrain eval", f);
		put_word(f, p->spec->run);
		fprintf(f, " --split %s --report", p->eval->split);
		for (int i = 0; i < p->spec->nsets; i++) {
			fputs(" -s", f);
			put_word(f, p->spec->sets[i]);
		}
		fputs("</code></pre>\n", f);
	}
	gt_html_section_end(f);
}
