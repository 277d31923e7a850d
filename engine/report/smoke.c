/* gt_smoke: runs and resumes the program in separate processes and compares the results. The directory:
 *   DIR/run/             directory of the run; at the end, of the resumed run
 *   DIR/uninterrupted/   last checkpoint of the first run, moved out of DIR/run before resuming
 *   DIR/cpu/, DIR/operations/   with --against: the run on the CPU, and the run whose operations are compared (smoke_against.c)
 *   DIR/made-up/         generated rows or texts, if the data of the config is missing */
#include "base/arena.h"
#include "base/clock.h"
#include "base/fileio.h"
#include "base/json_read.h"
#include "launch/launcher_parts.h"
#include "launch/signals.h"
#include "plan/strategy.h"
#include "report/smoke_parts.h"
#include "store/ckpt_scan.h"
#include "train/run_ranks.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void gt_smoke_report_phase(struct gt_smoke_test *s, const char *phase, double seconds)
{
	s->shown.phase = phase;
	s->shown.seconds = seconds;
	if (s->tell)
		s->tell(s->opts->user, &s->shown);
}

/* ---- what a run writes: its events, one JSON object a line -------------------------------------------------------------------------- */
static void keep_event(const struct gt_smoke_test *s, struct gt_smoke_curve *c, const char *what, const struct gt_json_value *e)
{
	if (!strcmp(what, "train") && s->step >= 1 && s->step <= GT_SMOKE_STEPS)
		c->loss[s->step] = gt_json_num(e, "loss");
	if (strcmp(what, "eval") != 0 || c->nevals == GT_AGAINST_EVALS)
		return;
	snprintf(c->eval[c->nevals].split, sizeof c->eval[0].split, "%s", gt_json_str(e, "split"));
	c->eval[c->nevals].loss = gt_json_num(e, "loss");
	c->eval[c->nevals++].acc = gt_json_num(e, "acc");
}

static void on_event(struct gt_smoke_test *s, const struct gt_json_value *e)
{
	const char *what = gt_json_str(e, "event");
	double now = gt_clock(), took = now - s->heard, step = gt_json_num(e, "step");
	s->heard = now;
	s->step = isnan(step) ? s->step : (int64_t)step;
	if (s->curve)
		keep_event(s, s->curve, what, e);
	if (s->silent)
		return;
	if (!strcmp(what, "start") && !s->shown.start) {
		s->train_s += took;
		s->shown.start = gt_arena_strdup(s->arena, gt_json_str(e, "text"));
		s->no_memory |= !s->shown.start;
	} else if (!strcmp(what, "train")) {
		s->train_s += took;
		s->shown.last_loss = gt_json_num(e, "loss");
		if (s->step == 1)
			s->shown.first_loss = s->shown.last_loss;
	} else if (!strcmp(what, "eval")) {
		s->eval_s += took;
		snprintf(s->shown.split, sizeof s->shown.split, "%s", gt_json_str(e, "split"));
		s->shown.loss = gt_json_num(e, "loss");
		s->shown.acc = gt_json_num(e, "acc");
	} else if (!strcmp(what, "checkpoint")) {
		s->save_s += took;
	}
}

/* Handles a line that a rank has printed: an event of rank 0, or a message for the user. */
static void handle_rank_line(void *user, const char *line)
{
	static const char first[] = "[rank 0] ";
	struct gt_smoke_test *s = user;
	const struct gt_json_value *e;
	bool rank0 = !strncmp(line, first, strlen(first));
	if (rank0 && line[strlen(first)] == '{' &&
	    gt_json_parse(line + strlen(first), strlen(line) - strlen(first), "an event", 2, 64, s->arena, &e, NULL) == GT_OK) {
		on_event(s, e);
	} else if (s->opts->say) {
		s->opts->say(s->opts->user, rank0 && s->plan.ranks == 1 ? line + strlen(first) : line);
	}
}

/* ---- phases --------------------------------------------------------------------------------------------------------------------- */

enum gt_code gt_smoke_start_ranks(struct gt_smoke_test *s, char *const *base, const char *const *more, int nmore, const char *operand,
                                  struct gt_err *err)
{
	static const char only[] = "rank 0: ";
	struct gt_run_opts o = *s->opts;
	struct gt_ranks r;
	char **argv;
	int n = 0;
	while (base[n])
		n++;
	GT_NEW(argv, s->arena, n + nmore + 4, err);
	memcpy(argv, base, (size_t)n * sizeof *argv);
	for (int i = 0; i < nmore; i++)
		argv[n++] = (char *)more[i];
	if (gt_strategy_of(s->conf->parallel.mode)->ranks != GT_RANKS_ONE)
		GT_NEW_STR(argv[n++], gt_arena_printf(s->arena, "--nproc=%d", s->plan.ranks), err);
	argv[n++] = "--";
	argv[n++] = (char *)operand;
	o.argv = argv;
	o.nproc = s->plan.ranks;
	o.say = handle_rank_line;
	o.user = s;
	GT_TRY(gt_ranks_of(s->conf, &o, &r, err));
	r.capture = true;
	s->heard = gt_clock();
	enum gt_code code = gt_ranks_launch(&r, s->conf, s->run, NULL, &o, err);
	/* with one rank, removes the prefix with the number of the rank */
	if (code != GT_OK && s->plan.ranks == 1 && err && !strncmp(err->msg, only, strlen(only)))
		memmove(err->msg, err->msg + strlen(only), strlen(err->msg + strlen(only)) + 1);
	GT_TRY(code);
	if (s->no_memory)
		return gt_fail_memory(err, 0);
	int sig = gt_signals_pending(); /* no launcher handles a signal that arrives between two launches, so this function looks for one */
	return sig ? gt_fail(err, (enum gt_code)(128 + sig), "ended by signal %d (%s)", sig, strsignal(sig)) : GT_OK;
}

enum gt_code gt_smoke_set_options(struct gt_smoke_test *s, int extra, const char ***more, int *n, struct gt_err *err)
{
	*n = 0;
	GT_NEW(*more, s->arena, s->plan.nsets + extra, err);
	for (int i = 0; i < s->plan.nsets; i++)
		GT_NEW_STR((*more)[(*n)++], gt_arena_printf(s->arena, "--set=%s", s->plan.sets[i]), err);
	return GT_OK;
}

enum gt_code gt_smoke_open_last(const char *path, const char *which, struct gt_ckpt **out, struct gt_err *err)
{
	GT_TRY(gt_ckpt_open(path, which, true, NULL, NULL, out, err));
	if (gt_ckpt_meta(*out)->step == GT_SMOKE_STEPS)
		return GT_OK;
	enum gt_code code = gt_fail(err, GT_EINTERNAL, "%s: the last checkpoint has step %lld, expected step %d", path,
	                            (long long)gt_ckpt_meta(*out)->step, GT_SMOKE_STEPS);
	gt_ckpt_close(*out);
	return code;
}

static uint64_t checkpoint_bytes(const struct gt_ckpt_manifest *m)
{
	uint64_t n = 0;
	for (int i = 0; i < GT_CKPT_FILE_COUNT; i++)
		n += m->file[i].there ? (uint64_t)m->file[i].bytes : 0;
	return n;
}

/* Executes the first run and moves its last checkpoint out of the run directory, as if the run had crashed before this commit. */
static enum gt_code run_reference(struct gt_smoke_test *s, struct gt_err *err)
{
	const char **more;
	struct gt_ckpt *c;
	struct gt_ckpt_manifest m;
	int n;
	char from[GT_PATH_SIZE], name[GT_CKPT_NAME];
	GT_TRY(gt_smoke_set_options(s, 1, &more, &n, err));
	GT_NEW_STR(more[n++], gt_arena_printf(s->arena, "--out=%s", s->run), err);
	s->curve = &s->device;
	GT_TRY(gt_smoke_start_ranks(s, s->opts->run_argv, more, n, s->conf->path, err));
	GT_TRY(gt_smoke_open_last(s->run, "latest", &c, err));
	gt_ckpt_close(c);
	gt_ckpt_name_print(name, GT_SMOKE_STEPS);
	GT_TRY(gt_path_join(from, s->run, name, err));
	GT_TRY(gt_ckpt_manifest_read(from, s->arena, &m, err));
	GT_TRY(gt_file_rename(from, s->whole, err));
	s->shown.bytes = checkpoint_bytes(&m);
	gt_smoke_report_phase(s, "train", s->train_s);
	gt_smoke_report_phase(s, "evaluate", s->eval_s);
	gt_smoke_report_phase(s, "checkpoint", s->save_s);
	return GT_OK;
}

static enum gt_code run_resumed(struct gt_smoke_test *s, struct gt_err *err)
{
	double began = gt_clock();
	const char **more;
	int n;
	s->step = -1;
	s->curve = NULL;
	GT_TRY(gt_smoke_set_options(s, 1, &more, &n, err));
	GT_TRY(gt_smoke_start_ranks(s, s->opts->resume_argv, more, n, s->run, err));
	gt_smoke_report_phase(s, "resume", gt_clock_since(began));
	return GT_OK;
}

/* ---- the two ends --------------------------------------------------------------------------------------------------------------- */
enum gt_code gt_smoke_read_pair(const struct gt_ckpt *a, const struct gt_ckpt *b, int file, const struct gt_ckpt_tensor *t, char **x,
                                char **y, struct gt_err *err)
{
	size_t bytes = gt_tdesc_bytes(&t->desc);
	char *buf = malloc(2 * bytes + 1);
	if (!buf)
		return gt_fail_memory(err, 2 * bytes);
	enum gt_code code = gt_ckpt_read(a, file, t->name, &t->desc, buf, err);
	if (code == GT_OK)
		code = gt_ckpt_read(b, file, t->name, &t->desc, buf + bytes, err);
	if (code != GT_OK) {
		free(buf);
		return code;
	}
	*x = buf;
	*y = buf + bytes;
	return GT_OK;
}

static enum gt_code compare_tensor(const struct gt_ckpt *a, const struct gt_ckpt *b, int file, const struct gt_ckpt_tensor *t, bool *same,
                                   struct gt_err *err)
{
	char *x, *y;
	GT_TRY(gt_smoke_read_pair(a, b, file, t, &x, &y, err));
	*same = !memcmp(x, y, gt_tdesc_bytes(&t->desc));
	free(x);
	return GT_OK;
}

/* Fails with an error that lists the tensors that differ between file `file` of two checkpoints. */
static enum gt_code report_tensor_diff(const struct gt_ckpt *a, const struct gt_ckpt *b, int file, struct gt_err *err)
{
	struct gt_ckpt_tensor t;
	const char *first = NULL;
	int n = 0, all = 0;
	for (; gt_ckpt_tensor_at(a, file, all, &t); all++) {
		bool same = false;
		GT_TRY(compare_tensor(a, b, file, &t, &same, err));
		first = first || same ? first : t.name;
		n += !same;
	}
	return gt_fail(err, GT_EFAIL,
	               "the resumed run and the uninterrupted run end with different bits: %d of %d tensors of %s differ, the first of them is "
	               "%s", n, all, gt_ckpt_file_name(file), first ? first : "none (only the headers of the files differ)");
}

static enum gt_code compare_state(const struct gt_ckpt_meta *a, const struct gt_ckpt_meta *b, struct gt_err *err)
{
	const struct {
		const char *name;
		double a, b;
	} v[] = {
		{"epoch", (double)a->epoch, (double)b->epoch},
		{"next sample of the epoch", (double)a->cursor, (double)b->cursor},
		{"loss scale", a->loss_scale, b->loss_scale},
		{"steps since the loss scale changed", (double)a->good_steps, (double)b->good_steps},
		{"best step", a->has_best ? (double)a->best_step : -1, b->has_best ? (double)b->best_step : -1},
		{"best value", a->has_best ? a->best : 0, b->has_best ? b->best : 0},
	};
	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		if (v[i].a != v[i].b)
			return gt_fail(err, GT_EFAIL, "the resumed run and the uninterrupted run end in different states: %s is %.17g, expected %.17g",
			               v[i].name, v[i].b, v[i].a);
	return GT_OK;
}

static enum gt_code compare_checkpoints(struct gt_smoke_test *s, const struct gt_ckpt *a, const struct gt_ckpt *b, struct gt_err *err)
{
	struct gt_ckpt_manifest m[2];
	GT_TRY(gt_ckpt_manifest_read(gt_ckpt_path(a), s->arena, &m[0], err));
	GT_TRY(gt_ckpt_manifest_read(gt_ckpt_path(b), s->arena, &m[1], err));
	for (int i = GT_CKPT_MODEL; i <= GT_CKPT_OPTIMIZER; i++) {
		if (m[0].file[i].there != m[1].file[i].there)
			return gt_fail(err, GT_EFAIL, "the resumed run and the uninterrupted run end in different states: only one run has %s",
			               gt_ckpt_file_name(i));
		if (!m[0].file[i].there)
			continue;
		if (strcmp(m[0].file[i].digest, m[1].file[i].digest))
			return report_tensor_diff(a, b, i, err);
		const char **digest = i == GT_CKPT_MODEL ? &s->shown.model : &s->shown.optimizer;
		GT_NEW_STR(*digest, gt_arena_strdup(s->arena, m[0].file[i].digest), err);
	}
	return compare_state(gt_ckpt_meta(a), gt_ckpt_meta(b), err);
}

static enum gt_code compare_runs(struct gt_smoke_test *s, struct gt_err *err)
{
	struct gt_ckpt *a, *b;
	double began = gt_clock();
	GT_TRY(gt_smoke_open_last(s->whole, NULL, &a, err));
	enum gt_code code = gt_smoke_open_last(s->run, "latest", &b, err);
	if (code == GT_OK) {
		code = compare_checkpoints(s, a, b, err);
		gt_ckpt_close(b);
	}
	gt_ckpt_close(a);
	if (code == GT_OK)
		gt_smoke_report_phase(s, "compare", gt_clock_since(began));
	return code;
}

/* ---- the directory -------------------------------------------------------------------------------------------------------------- */
static enum gt_code make_directories(struct gt_smoke_test *s, struct gt_err *err)
{
	const char *base = getenv("TMPDIR");
	struct stat st;
	char *dir;
	if (s->opts->out) {
		s->dir = s->opts->out;
		GT_TRY(gt_dir_make(s->dir, &s->existed, err));
	} else {
		GT_NEW_STR(dir, gt_arena_printf(s->arena, "%s/gtrain-smoke-XXXXXX", base && *base ? base : "/tmp"), err);
		if (!mkdtemp(dir))
			return gt_fail(err, GT_ECANTCREAT,
			               "%s: cannot create a temporary directory: %s; name another directory with --out DIR or the variable TMPDIR", dir,
			               strerror(errno));
		s->dir = dir;
	}
	GT_NEW_STR(s->run, gt_arena_printf(s->arena, "%s/run", s->dir), err);
	GT_NEW_STR(s->whole, gt_arena_printf(s->arena, "%s/uninterrupted", s->dir), err);
	GT_NEW_STR(s->made, gt_arena_printf(s->arena, "%s/made-up", s->dir), err);
	if (!lstat(s->run, &st) || !lstat(s->whole, &st) || !lstat(s->made, &st))
		return gt_fail(err, GT_ECANTCREAT, "%s: this directory contains an earlier smoke test; remove it, or name another directory with "
		               "--out",
		               s->dir);
	return GT_OK;
}

static enum gt_code run_phases(struct gt_smoke_test *s, struct gt_err *err)
{
	double began = gt_clock();
	GT_TRY(gt_smoke_check(s->opts, err));
	GT_TRY(make_directories(s, err));
	enum gt_code code = gt_smoke_plan(s->conf, s->opts, s->made, s->arena, &s->plan, &s->shown, err);
	if (code != GT_OK)
		gt_tree_remove(s->made, NULL);
	GT_TRY(code);
	gt_smoke_report_phase(s, "plan", gt_clock_since(began));
	GT_TRY(run_reference(s, err));
	GT_TRY(run_resumed(s, err));
	GT_TRY(compare_runs(s, err));
	return s->opts->against ? gt_smoke_against(s, err) : GT_OK;
}

enum gt_code gt_smoke(struct gt_conf *c, const struct gt_run_opts *o, void (*observe)(void *user, const struct gt_smoke *s),
                      struct gt_err *err)
{
	struct gt_smoke_test s = {.conf = c, .opts = o, .tell = observe};
	s.shown.first_loss = s.shown.last_loss = s.shown.loss = s.shown.acc = NAN;
	struct gt_err gone = {0};
	GT_TRY(gt_arena_open(&s.arena, err));
	gt_signals_install();
	enum gt_code code = run_phases(&s, err);
	gt_signals_restore();
	if (code != GT_OK && s.dir && s.dir == o->out)
		gt_dir_unmake(s.dir, s.existed);
	if (s.dir && s.dir != o->out && gt_tree_remove(s.dir, &gone) != GT_OK && code == GT_OK)
		code = gt_fail_copy(err, &gone);
	gt_arena_close(s.arena);
	return code;
}
