#include "commands.h"
#include "base/shell_word.h"
#include "gtrain_sweep.h"
#include "status_line.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MOST_COLUMNS 6 /* maximum number of columns for keys; with more keys, one column has all of them */
#define WIDEST 32      /* maximum width of the value of a key, in columns */

struct sweep_args {
	struct gt_job_args job;
	int64_t trials, jobs, seed;
	bool halving;
};
#define OFFSET(member) offsetof(struct sweep_args, member)

static const struct gt_option options[] = {
	{"set", 's', GT_OPTION_LIST, OFFSET(job.sets), "KEY=VALUE", GT_COMPLETE_KEY,
	 .help = "set a key of the config to one value, to each of several values (KEY=V,V...), or to values from a range (KEY=LOW..HIGH); can "
	         "be repeated"},
	{"out", 'o', GT_OPTION_STRING, OFFSET(job.out), "DIR", GT_COMPLETE_DIR, .help = "directory of the sweep; default: runs/NAME-sweep"},
	{"trials", 0, GT_OPTION_INT, OFFSET(trials), "N", GT_COMPLETE_NONE, NULL, 1, GT_SWEEP_TRIALS,
	 "number of trials, if a key has a range; default: 16"},
	{"halving", 0, GT_OPTION_FLAG, OFFSET(halving),
	 .help = "train all trials for few epochs, the best third of the trials for three times as many, and so on (successive halving)"},
	{"jobs", 0, GT_OPTION_INT, OFFSET(jobs), "N", GT_COMPLETE_NONE, NULL, 1, 64,
	 "number of trials that run at the same time and share the processors; default: 1"},
	{"seed", 0, GT_OPTION_INT, OFFSET(seed), "N", GT_COMPLETE_NONE, NULL, 1, (int64_t)1 << 53,
	 "seed of the values that are drawn from ranges; default: the config's seed"},
	GT_OPT_DEVICE(struct sweep_args),
	{0},
};

/* ---- progress ----------------------------------------------------------------------------------------------------------------------- */
/* Returns the last component of the path of key i, or the whole path if another key has the same last component. */
static const char *short_key(const struct gt_sweep *s, int i)
{
	const char *dot = strrchr(s->key[i], '.'), *name = dot ? dot + 1 : s->key[i];
	for (int k = 0; k < s->naxes; k++) {
		const char *other = strrchr(s->key[k], '.');
		if (k != i && !strcmp(other ? other + 1 : s->key[k], name))
			return s->key[i];
	}
	return name;
}

/* Writes "lr=0.001 batch=32". */
static const char *format_values(const struct gt_sweep *s, const struct gt_sweep_trial *t, char *buf, size_t size)
{
	size_t n = 0;
	*buf = '\0';
	for (int i = 0; i < s->naxes && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s=%.*s", i ? " " : "", short_key(s, i), WIDEST, t->value[i]);
	return buf;
}

static const char *format_score(double score, char *buf)
{
	return isnan(score) ? "-" : gt_units_loss(buf, score);
}

static void paint_status(struct gt_cli *cli, const struct gt_sweep *s)
{
	struct gt_parts p = {0};
	char line[1024], score[GT_UNITS], running[GT_PART_TEXT - 16] = "";
	const struct gt_sweep_trial *best = &s->trial[s->order[0]];
	for (int i = 0; i < s->ntrials; i++) {
		size_t n = strlen(running);
		if (s->trial[i].state == GT_TRIAL_RUNNING && n + 8 < sizeof running)
			snprintf(running + n, sizeof running - n, " %d", s->trial[i].number);
	}
	gt_parts_add(&p, 0, "sweep");
	gt_parts_add(&p, 1, "%d/%d", s->ended, s->runs);
	gt_parts_bar(&p, 5, (double)s->ended / s->runs);
	if (s->failed)
		gt_parts_add(&p, 2, "%d failed", s->failed);
	if (!isnan(best->score))
		gt_parts_add(&p, 3, "best %s %s (trial %d)", s->metric, gt_units_loss(score, best->score), best->number);
	if (*running)
		gt_parts_add(&p, 4, "running%s", running);
	gt_parts_join(&p, gt_status_columns() - 1, line, sizeof line);
	gt_status_paint(cli, line);
}

/* Prints a line about a trial that has ended, if no status line shows the trials. */
static void print_end(struct gt_cli *cli, const struct gt_sweep *s, const struct gt_sweep_trial *t)
{
	char values[400], score[GT_UNITS], epochs[40];
	const char *state = gt_trial_states[t->state];
	if (t->state == GT_TRIAL_RUNNING)
		return;
	if (t->state == GT_TRIAL_STOPPED) { /* successive halving may still promote a stopped trial */
		snprintf(epochs, sizeof epochs, "%" PRId64 " epoch%s", t->epochs, t->epochs == 1 ? "" : "s");
		state = epochs;
	}
	gt_cli_note(cli, "trial %d: %s: %s, %s %s", t->number, format_values(s, t, values, sizeof values), state, s->metric,
	            format_score(t->score, score));
}

static void show_progress(void *user, const struct gt_sweep *s, int index)
{
	struct gt_cli *cli = user;
	if (cli->animate)
		paint_status(cli, s);
	else if (index >= 0 && !cli->args.quiet && !cli->args.json)
		print_end(cli, s, &s->trial[index]);
}

static void warn_of_plan(void *user, const char *text)
{
	gt_cli_warn(user, text);
}

/* ---- results ------------------------------------------------------------------------------------------------------------------------ */
static enum gt_code print_json(struct gt_cli *cli, const struct gt_sweep *s, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	for (int i = 0; i < s->ntrials; i++) {
		const struct gt_sweep_trial *t = &s->trial[s->order[i]];
		gt_json_object(j, NULL);
		gt_json_add(j, GT_INT("trial", t->number), GT_STR("path", t->dir), GT_STR("state", gt_trial_states[t->state]));
		gt_json_object(j, "values");
		for (int k = 0; k < s->naxes; k++)
			gt_json_string(j, s->key[k], t->value[k]);
		gt_json_end(j);
		gt_json_add(j, GT_STR("metric", s->metric), GT_NUM("score", t->score, 9), GT_INT("epochs", t->epochs),
		            GT_NUM("seconds", t->seconds, 6), GT_INT("code", t->code), GT_STR("error", t->error));
		gt_json_end(j);
		GT_TRY(gt_out_json(cli, err));
	}
	return GT_OK;
}

struct sheet {
	struct gt_table table;
	const char *cell[MOST_COLUMNS + 6];
	char text[MOST_COLUMNS + 6][400];
	int n;
};

static void add_cell(struct sheet *t, const struct gt_cli *cli, const char *text, int width)
{
	t->cell[t->n] = gt_text_fit(cli, text, width, t->text[t->n], sizeof *t->text);
	t->n++;
}

static void add_values(struct sheet *t, const struct gt_cli *cli, const struct gt_sweep *s, const struct gt_sweep_trial *trial)
{
	char values[400];
	if (s->naxes > MOST_COLUMNS)
		add_cell(t, cli, trial ? format_values(s, trial, values, sizeof values) : "values", (int)sizeof values);
	for (int i = 0; i < s->naxes && s->naxes <= MOST_COLUMNS; i++)
		add_cell(t, cli, trial ? trial->value[i] : short_key(s, i), WIDEST);
}

static void add_head(struct sheet *t, struct gt_cli *cli, const struct gt_sweep *s, bool halving)
{
	t->n = 0;
	add_cell(t, cli, "trial", WIDEST);
	add_values(t, cli, s, NULL);
	add_cell(t, cli, s->metric, WIDEST);
	if (halving)
		add_cell(t, cli, "epochs", WIDEST);
	add_cell(t, cli, "state", WIDEST);
	add_cell(t, cli, "time", WIDEST);
	gt_table_add_cells(&t->table, true, t->cell);
}

static void add_trial(struct sheet *t, struct gt_cli *cli, const struct gt_sweep *s, const struct gt_sweep_trial *trial, bool halving)
{
	char number[32], score[GT_UNITS], epochs[32], time[GT_UNITS];
	snprintf(number, sizeof number, "%d", trial->number);
	snprintf(epochs, sizeof epochs, "%" PRId64, trial->epochs);
	t->n = 0;
	add_cell(t, cli, number, WIDEST);
	add_values(t, cli, s, trial);
	add_cell(t, cli, format_score(trial->score, score), WIDEST);
	if (halving)
		add_cell(t, cli, trial->epochs ? epochs : "-", WIDEST);
	add_cell(t, cli, gt_trial_states[trial->state], WIDEST);
	add_cell(t, cli, trial->seconds > 0 ? gt_units_seconds(time, trial->seconds) : "-", WIDEST);
	gt_table_add_cells(&t->table, false, t->cell);
}

static enum gt_code print_table(struct gt_cli *cli, const struct gt_sweep *s, struct gt_err *err)
{
	bool halving = !strcmp(s->kind, "halving");
	int columns = (s->naxes > MOST_COLUMNS ? 1 : s->naxes) + 4 + halving;
	char align[MOST_COLUMNS + 8];
	struct sheet *t;
	GT_NEW(t, cli->arena, 1, err);
	snprintf(align, sizeof align, "r%.*s", columns - 1, "llllllllllll");
	gt_table_init(&t->table, cli->arena, align);
	add_head(t, cli, s, halving);
	for (int i = 0; i < s->ntrials; i++)
		add_trial(t, cli, s, &s->trial[s->order[i]], halving);
	return gt_table_print(cli, &t->table, err);
}

static void print_failures(struct gt_cli *cli, const struct gt_sweep *s)
{
	char text[1400];
	for (int i = 0; i < s->ntrials; i++)
		if (s->trial[i].state == GT_TRIAL_FAILED) {
			snprintf(text, sizeof text, "trial %d has failed with status %d: %s", s->trial[i].number, s->trial[i].code, s->trial[i].error);
			gt_cli_warn(cli, text);
		}
}

/* Prints commands that the user can run next: with the best trial, or to continue the sweep if it has not ended. */
static enum gt_code print_next(struct gt_cli *cli, const struct gt_sweep *s, struct gt_err *err)
{
	const struct gt_sweep_trial *best = &s->trial[s->order[0]];
	bool ended = true;
	for (int i = 0; i < s->ntrials; i++)
		ended &= s->trial[i].state != GT_TRIAL_INTERRUPTED && s->trial[i].state != GT_TRIAL_WAITING;
	const char *path = ended ? best->dir : s->dir;
	char program[4096], *quoted;
	size_t size = 4 * strlen(path) + 8;
	GT_NEW(quoted, cli->arena, size, err);
	gt_shell_word(path, quoted, size);
	gt_cli_program(cli, program, sizeof program);
	if (!ended)
		gt_cli_note(cli, "`%s sweep %s` continues the sweep", program, quoted);
	else if (isnan(best->score) && s->failed < s->ntrials)
		gt_cli_note(cli, "no trial has measured %s; set checkpoint.best.metric to a metric that the runs measure", s->metric);
	else if (!isnan(best->score))
		gt_cli_note(cli, "best: trial %d; next: %s eval %s", best->number, program, quoted);
	return GT_OK;
}

static enum gt_code print_results(struct gt_cli *cli, const struct gt_sweep *s, struct gt_err *err)
{
	GT_TRY(cli->args.json ? print_json(cli, s, err) : print_table(cli, s, err));
	print_failures(cli, s);
	return cli->args.quiet || cli->args.json ? GT_OK : print_next(cli, s, err);
}

/* ---- command ------------------------------------------------------------------------------------------------------------------------ */
static bool is_directory(const char *path)
{
	struct stat st;
	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* Sets the config of the sweep and its settings. --device becomes a setting, because the sweep must use the same device when it is
 * continued. */
static enum gt_code take_config(struct gt_cli *cli, const char *name, struct gt_sweep_spec *spec, struct gt_err *err)
{
	const struct sweep_args *a = cli->options;
	const char **sets;
	struct stat st;
	GT_NEW(sets, cli->arena, a->job.sets.n + 1, err);
	for (int i = 0; i < a->job.sets.n; i++)
		sets[spec->nsets++] = a->job.sets.v[i];
	if (a->job.device)
		GT_NEW_STR(sets[spec->nsets++], gt_arena_printf(cli->arena, "device=\"%s\"", a->job.device), err);
	spec->sets = sets;
	if (strcmp(name, "-"))
		GT_TRY(gt_cli_config_path(cli, name, &spec->config, err));
	if (!spec->config || (!stat(spec->config, &st) && !S_ISREG(st.st_mode)))
		return gt_fail(err, GT_EUSAGE, "%.300s: expected a regular file, because each trial reads the config", name);
	return GT_OK;
}

static enum gt_code take_directory(const struct sweep_args *a, const char *dir, struct gt_sweep_spec *spec, struct gt_err *err)
{
	if (a->job.sets.n || a->job.out || a->job.device || a->trials || a->seed || a->halving)
		return gt_fail(err, GT_EUSAGE, "%.300s: expected no option except --jobs with the directory of a sweep, because the plan of the "
		               "sweep is fixed", dir);
	spec->dir = dir;
	return GT_OK;
}

static enum gt_code run_sweep(struct gt_cli *cli, struct gt_err *err)
{
	const struct sweep_args *a = cli->options;
	const char *name = cli->args.operands.v[0];
	struct gt_sweep *s;
	struct gt_err why;
	struct gt_sweep_spec spec = {.dir = a->job.out, .trials = a->trials, .jobs = a->jobs ? (int)a->jobs : 1, .seed = a->seed ? a->seed : -1,
	                             .halving = a->halving, .program = cli->argv[0], .tell = show_progress, .warn = warn_of_plan,
	                             .user = cli};
	if (is_directory(name))
		GT_TRY(take_directory(a, name, &spec, err));
	else
		GT_TRY(take_config(cli, name, &spec, err));
	enum gt_code code = gt_sweep_run(&spec, cli->arena, &s, err);
	gt_status_erase(cli);
	enum gt_code printed = s ? print_results(cli, s, code ? &why : err) : GT_OK;
	return code ? code : printed;
}

const struct gt_command gt_cmd_sweep = {
	.name = "sweep",
	.operands = "CFG|DIR",
	.about = "Trains CFG once for each combination of the values that -s gives to its keys, or with\n"
	         "values drawn from ranges. Each trial is a run in DIR/1, DIR/2, ... The same command,\n"
	         "or gtrain sweep DIR, continues an interrupted sweep. At the end a table lists\n"
	         "the trials, best first.",
	.example = "gtrain sweep configs/fmnist_mlp.cfg -s train.optimizer.lr=1e-4..1e-2 --trials 8",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CONFIG,
	.options = options,
	.args_size = sizeof(struct sweep_args),
	.run = run_sweep,
};
