/* Collects the facts of the page, with the functions of `gtrain eval`, `gtrain check` and `gtrain bench`. */
#include "base/fileio.h"
#include "gtrain.h"
#include "page/page.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BENCH_STEPS 3
#define BENCH_SECONDS 12 /* maximum duration of the measurement of steps, estimated from the speed of the run; a longer one is skipped */
#define CONFIG_BYTES (4 << 20)
#define MOST_NOTES 20

/* Adds a sentence to the notes of the page, and also calls spec->warn with this sentence. */
static enum gt_code add_note(struct gt_page_facts *p, const char *text, struct gt_err *err)
{
	struct gt_page *out = p->page;
	if (!out->missing)
		GT_NEW(out->missing, p->arena, MOST_NOTES, err);
	if (p->spec->warn)
		p->spec->warn(p->spec->user, text);
	if (out->nmissing < MOST_NOTES)
		GT_NEW_STR(out->missing[out->nmissing++], gt_arena_strdup(p->arena, text), err);
	return GT_OK;
}

static enum gt_code note_missing(struct gt_page_facts *p, const char *what, const struct gt_err *why, struct gt_err *err)
{
	const char *text;
	GT_NEW_STR(text, gt_arena_printf(p->arena, "%s: %s", what, why->msg), err);
	return add_note(p, text, err);
}

static void note_event(void *user, const struct gt_event *ev)
{
	struct gt_err err;
	if (ev->kind == GT_EV_WARN)
		add_note(user, ev->text, &err);
}

/* Evaluates the best checkpoint. If this fails, the page gets a note; if the user has chosen the split, it is an error. */
static enum gt_code evaluate_run(struct gt_page_facts *p, struct gt_err *err)
{
	const struct gt_page_spec *s = p->spec;
	struct gt_run_opts o = {.device = s->device, .mistakes = GT_PAGE_MISTAKES, .observe = note_event, .user = p};
	struct gt_err why = {0};
	if (s->split)
		return gt_eval(s->run, NULL, s->split, true, s->sets, s->nsets, &o, &p->eval, err);
	if (!gt_eval(s->run, NULL, NULL, true, s->sets, s->nsets, &o, &p->eval, &why))
		return GT_OK;
	return note_missing(p, "the page has no scores, no calibration and no mistakes", &why, err);
}

/* Calls gt_check, which plans the run, to get the facts about its layers. */
static enum gt_code check_layers(struct gt_page_facts *p, struct gt_conf *c, struct gt_err *err)
{
	struct gt_json j = {0};
	struct gt_report *r;
	const char *text;
	enum gt_code code = gt_check(c, &(struct gt_check_opts){.world = 1}, &j, &r, err);
	if (code == GT_OK) {
		gt_report_free(r);
		gt_json_end(&j);
		code = gt_json_finish(&j, &text, err);
	}
	if (code == GT_OK)
		code = gt_json_parse(text, strlen(text), "the plan of the run", GT_JSON_READ_DEPTH, 1 << 22, p->arena, &p->check, err);
	gt_json_free(&j);
	return code;
}

/* Measures training steps if the data was found and if the measurement takes at most BENCH_SECONDS. */
static void measure_steps(struct gt_page_facts *p, struct gt_conf *c)
{
	struct gt_run_opts o = {.device = p->spec->device, .nproc = 1};
	struct gt_err why = {0};
	double step = p->run.step ? p->run.seconds / (double)p->run.step : 0;
	if (!p->eval)
		p->unmeasured = "The times of layers were not measured, because the data was not found.";
	else if (!strcmp(p->run.state, "running"))
		p->unmeasured = "The times of layers were not measured, because the run is still training.";
	else if (step * BENCH_STEPS * 4 > BENCH_SECONDS)
		p->unmeasured = "The times of layers were not measured, because steps of this run are long; gtrain bench measures them.";
	else if (gt_bench(c, &o, BENCH_STEPS, &p->bench, &why))
		p->unmeasured = gt_arena_printf(p->arena, "The times of layers were not measured: %s", why.msg);
}

static enum gt_code plan_layers(struct gt_page_facts *p, struct gt_err *err)
{
	struct gt_conf *c;
	struct gt_err why = {0};
	if (gt_ckpt_conf(p->spec->run, p->spec->sets, p->spec->nsets, &c, &why))
		return note_missing(p, "the page has no layers", &why, err);
	enum gt_code code = check_layers(p, c, &why) ? note_missing(p, "the page has no layers", &why, err) : GT_OK;
	if (code == GT_OK && p->check)
		measure_steps(p, c);
	gt_conf_free(c);
	return code;
}

static void read_config(struct gt_page_facts *p)
{
	char path[GT_PATH_SIZE];
	size_t n;
	struct gt_err why;
	if (gt_path_join(path, p->run.dir, "config.cfg", &why) || gt_file_read(path, CONFIG_BYTES, &p->config, &n, &why))
		p->config = NULL;
}

enum gt_code gt_page_facts_open(struct gt_page_facts *p, struct gt_err *err)
{
	struct gt_err why = {0};
	GT_TRY(gt_run_read(p->spec->run, p->arena, &p->run, err));
	GT_TRY(gt_run_curves_open(p->spec->run, 0.9, &p->curves, err));
	GT_TRY(gt_run_curves_update(p->curves, err));
	if (gt_run_checkpoints(p->run.dir, p->arena, &p->checkpoint, &p->ncheckpoints, &why))
		GT_TRY(note_missing(p, "the page has no checkpoints", &why, err));
	read_config(p);
	GT_TRY(evaluate_run(p, err));
	return plan_layers(p, err);
}

void gt_page_facts_close(struct gt_page_facts *p)
{
	if (p->curves)
		gt_run_curves_close(p->curves);
	gt_eval_free(p->eval);
	gt_bench_free(p->bench);
	free(p->config);
}
