/* gt_run and gt_resume: the work before and after the training loop. */
#include "base/fileio.h"
#include "launch/launcher.h"
#include "launch/rendezvous.h"
#include "launch/signals.h"
#include "session/session_data.h"
#include "session/world_plan.h"
#include "store/ckpt_scan.h"
#include "train/ema.h"
#include "train/metric_watch.h"
#include "train/pretrained.h"
#include "train/resume.h"
#include "train/run_end.h"
#include "train/run_ranks.h"
#include "train/run_start.h"
#include "train/state.h"
#include "train/trainer.h"
#include "train/warnings.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void on_warning(void *user, const char *text)
{
	struct gt_trainer *t = user;
	struct gt_event ev = {.kind = GT_EV_WARN, .step = t->state.step, .text = text};
	if (t->opts->observe)
		t->opts->observe(t->opts->user, &ev);
}

struct job {
	struct gt_conf *c;
	const char *dir;
	const struct gt_ckpt *from; /* the checkpoint from which the run resumes; NULL: the run is new */
	const char *const *sets; /* [nsets] with from: the settings that are not in the config of the checkpoint */
	int nsets;
	const struct gt_run_opts *opts;
	const struct gt_session_files *data; /* shared by ranks that are threads; NULL: each rank reads its own */
};

static struct gt_session_spec session_spec(struct gt_conf *c)
{
	return (struct gt_session_spec){.conf = c, .train = true, .eval = {[GT_VALID] = true, [GT_TEST] = true}};
}

/* Messages to print after the start line; "": none. */
struct notes {
	char back[GT_PATH_SIZE + 512], damaged[GT_PATH_SIZE + 64], space[768];
	struct gt_resume_notes kept;
};

/* Before settings of a resume change the config for the first time: keeps the config with which the run began as first.cfg. A new run
 * removes this file, which belongs to a run before it in the same directory. */
static enum gt_code keep_first_config(const struct job *j, struct gt_err *err)
{
	char path[GT_PATH_SIZE];
	struct stat st;
	GT_TRY(gt_path_join(path, j->dir, "first.cfg", err));
	bool exists = !lstat(path, &st);
	if (!j->from)
		return !exists || !unlink(path) ? GT_OK : gt_fail_errno(err, GT_ECANTCREAT, errno, "%s: cannot remove", path);
	const char *text = gt_ckpt_meta(j->from)->config;
	return exists || !strcmp(text, j->c->text) ? GT_OK : gt_file_replace(path, 0666, text, strlen(text), err);
}

/* Opens the log files and writes config.cfg. If anything before this fails, the old files are unchanged. A run that goes back to an earlier
 * checkpoint replaces the old files only at its first commit. */
static enum gt_code open_log_files(const struct job *j, struct gt_trainer *t, struct notes *say, struct gt_err *err)
{
	char config[GT_PATH_SIZE];
	int64_t next = 0, step = j->from ? t->state.step : -1, damaged;
	struct stat st;
	if (j->from)
		GT_TRY(gt_ckpt_dir_continue(t->dir, j->from, &next, say->back, sizeof say->back, err));
	GT_TRY(keep_first_config(j, err));
	struct gt_metrics_spec spec = {.dir = j->dir, .resume_step = step, .evaluates = t->state.pending.set, .next = next};
	GT_TRY(gt_metrics_open(&spec, &t->metrics, &damaged, err));
	if (j->c->log.tensorboard)
		GT_TRY(gt_tensorboard_open(j->dir, step, next, &t->tensorboard, err));
	GT_TRY(gt_ckpt_next_path(config, j->dir, next, "config.cfg", err));
	if (!lstat(config, &st) && !S_ISREG(st.st_mode))
		return gt_fail(err, GT_ECANTCREAT, "%s: expected a regular file; remove or rename it", config);
	if (damaged)
		snprintf(say->damaged, sizeof say->damaged, "%s/metrics.jsonl: removed %lld damaged line%s", j->dir, (long long)damaged,
		         damaged == 1 ? "" : "s");
	return gt_file_replace(config, 0666, j->c->text, strlen(j->c->text), err);
}

static enum gt_code train_rank(const struct job *j, struct gt_trainer *t, struct gt_err *err)
{
	struct gt_conf *c = j->c;
	const char *dir = j->dir;
	const struct gt_ckpt *from = j->from;
	const struct gt_run_opts *o = t->opts;
	const struct gt_world *w = &t->team->world;
	char device[32];
	enum gt_dtype converted = GT_F32;
	const struct gt_pretrained_report *pretrained = NULL;
	struct notes say = {0};
	struct gt_session_spec spec = session_spec(c);
	spec.device = gt_rank_device(o->device ? o->device : c->device, w, device, sizeof device);
	spec.against = o->against;
	spec.team = t->team;
	spec.data = j->data;
	spec.ckpt = from;
	GT_TRY(gt_check_logs(c, dir, err));
	spec.sized = o->dry ? NULL : gt_run_report_warnings;
	spec.user = t;
	if (*dir && !w->rank)
		GT_TRY(gt_at_directory(c, dir, o->dry ? gt_ckpt_dir_check(dir, err) : gt_ckpt_dir_open(dir, &t->dir, err), err));
	t->saves = *dir;
	t->resumes = from != NULL;
	if (*dir && !w->rank && !from)
		GT_TRY(gt_refuse_used(dir, err));
	if (o->observe && !o->dry)
		o->observe(o->user, &(struct gt_event){.kind = GT_EV_PHASE, .text = "reading data and planning"});
	gt_rank_phase(t->team->link, "reading data and planning", GT_PATIENCE * c->parallel.timeout);
	GT_TRY(gt_session_open(&spec, &t->s, err));
	gt_rank_phase(t->team->link, from ? "loading a checkpoint" : "initialising", GT_PATIENCE * c->parallel.timeout);
	GT_TRY(gt_session_check_metrics(t->s, err));
	t->state.seed = (uint64_t)c->seed;
	if (from) {
		gt_resume_state(t, gt_ckpt_meta(from), &say.kept);
		GT_TRY(gt_state_load(t->s, from, true, err));
		if (!gt_session_scales_loss(t->s))
			t->state.loss_scale = 0, t->state.good_steps = 0;
		else if (t->state.loss_scale > 0) /* a loss scale of 0 means that the run had another precision before */
			GT_TRY(gt_session_set_scale(t->s, t->state.loss_scale, t->state.good_steps, err));
		if (t->state.cursor >= t->s->batch.samples && t->s->data.files->differs)
			return gt_fail(err, GT_EDATA,
			               "%s: the checkpoint is at sample %lld of an epoch, which now has only %lld samples, because the "
			               "data has changed; resume from a checkpoint at the end of an epoch",
			               gt_ckpt_path(from), (long long)t->state.cursor, (long long)t->s->batch.samples);
		if (t->state.cursor % t->s->batch.size || t->state.cursor >= t->s->batch.samples)
			return gt_fail(err, GT_ECONFIG, "%s: the checkpoint is at sample %lld of an epoch, which is not a multiple of data.batch = "
			               "%lld; resume with the data.batch of the checkpoint",
			               gt_ckpt_path(from), (long long)t->state.cursor, (long long)t->s->batch.size);
	} else if (o->init) {
		GT_TRY(gt_state_import(t->s, o->init, &converted, err));
	} else {
		GT_TRY(gt_session_init(t->s, err));
		GT_TRY(gt_pretrained_load(t->s, &pretrained, err));
	}
	if (!from && !o->dry)
		GT_TRY(gt_ema_start(t->s, err));
	t->state.world = w->world;
	t->state.epoch_steps = t->s->batch.steps_per_epoch;
	if (*dir && !w->rank)
		GT_TRY(gt_state_check_space(t->s, dir, from != NULL, say.space, sizeof say.space, err));
	if (o->dry)
		return GT_OK;
	if (t->dir)
		GT_TRY(open_log_files(j, t, &say, err));
	if (!w->rank)
		GT_TRY(gt_tracker_start(c, dir, &t->tracker, err));
	GT_TRY(gt_tensorboard_hparams(t->tensorboard, c, err));
	if (gt_session_scales_loss(t->s) && t->state.loss_scale <= 0)
		t->state.loss_scale = (double)(float)c->train.loss_scale.init;
	GT_TRY(gt_run_report_start(t, err));
	if (*say.space)
		GT_TRY(gt_run_warn(t, say.space, err));
	if (converted != GT_F32)
		GT_TRY(gt_run_warn_of_conversion(t, converted, err));
	if (pretrained)
		GT_TRY(gt_run_report_pretrained(t, pretrained, err));
	if (*t->s->device.note) {
		struct gt_event ev = {.kind = GT_EV_WARN, .text = t->s->device.note};
		GT_TRY(gt_trainer_send_event(t, &ev, false, err));
	}
	if (from) {
		struct gt_event ev = {.kind = GT_EV_RESUME, .text = gt_ckpt_path(from), .sets = j->sets};
		ev.nsets = strcmp(gt_ckpt_meta(from)->config, c->text) ? j->nsets : 0;
		GT_TRY(gt_trainer_send_event(t, &ev, true, err));
		GT_TRY(gt_run_warn_of_ranks(t, gt_ckpt_meta(from)->world, err));
		if (*say.back)
			GT_TRY(gt_run_warn(t, say.back, err));
		const char *const changed[] = {say.kept.best,     say.kept.stop, say.kept.plateau, t->s->data.files->changed,
		                               say.kept.schedule, say.kept.jump};
		for (int i = 0; i < 6; i++)
			if (*changed[i])
				GT_TRY(gt_run_warn(t, changed[i], err));
		if (*say.damaged)
			GT_TRY(gt_run_warn(t, say.damaged, err));
	}
	gt_rank_phase(t->team->link, "", t->s->device.be->host_memory ? 0 : GT_PATIENCE * c->parallel.timeout);
	return gt_trainer_run(t, err);
}

#define TRACKERS_ENDED_S 5.0 /* seconds for trackers after a signal or an error, because the machine may be about to stop */

/* Waits, at the end of a run, for trackers that have not taken all events. */
static void end_trackers(struct gt_trainer *t, bool failed)
{
	double wait_s = failed ? TRACKERS_ENDED_S : GT_TRACKER_WAIT_S;
	struct gt_event ev = {.kind = GT_EV_PHASE, .step = t->state.step, .text = "waiting for experiment trackers"};
	if (!t->tracker)
		return;
	gt_rank_phase(t->team->link, ev.text, wait_s + TRACKERS_ENDED_S);
	if (t->opts->observe)
		t->opts->observe(t->opts->user, &ev);
	gt_tracker_end(t->tracker, wait_s, on_warning, t);
}

/* gt_rank_body: trains one rank of a run, which can be the only one. */
static enum gt_code run_rank(void *user, const struct gt_team *team, struct gt_err *err)
{
	const struct job *j = user;
	struct gt_run_opts o = *j->opts;
	if (team->world.rank) /* rank 0 prints the warnings */
		o.observe = NULL;
	struct gt_trainer t = {.opts = &o, .team = team};
	struct gt_err own = {0};
	err = err ? err : &own;
	enum gt_code code = train_rank(j, &t, err), compared = GT_OK;
	if (o.against && t.s) /* also after an error, because the calls before it were compared */
		compared = gt_session_write_comparison(t.s, j->dir, code == GT_OK ? err : NULL);
	code = code == GT_OK ? compared : code;
	if (code != GT_OK && code != GT_RANK_REGROUP)
		gt_run_end_failed(&t, code, err);
	/* The launcher gets the error now, because closing the session of a broken device or group may take longer than the launcher allows. If
	 * ranks are threads, another thread may have caused the error of the run. */
	if (code != GT_OK && code < 128 && gt_strategy_of(j->c->parallel.mode)->ranks != GT_RANKS_THREADS)
		gt_rank_report_error(team->link, code, err->msg);
	struct gt_err why[2] = {0};
	enum gt_code logs[2] = {gt_metrics_close(t.metrics, &why[0]), gt_tensorboard_close(t.tensorboard, &why[1])};
	for (int i = 0; i < 2; i++) { /* an error of a log file is returned only if the training itself has not failed */
		if (code == GT_OK && logs[i])
			*err = why[i];
		code = code ? code : logs[i];
	}
	gt_json_free(&t.json);
	gt_session_close(t.s);
	gt_ckpt_dir_close(t.dir);
	end_trackers(&t, code != GT_OK);
	return code;
}

/* Prints a warning on every rank, not only on rank 0, because the ranks are not connected yet. */
static void on_team_warning(void *user, const char *text)
{
	const struct gt_run_opts *o = user;
	struct gt_event ev = {.kind = GT_EV_WARN, .text = text};
	if (o->observe)
		o->observe(o->user, &ev);
}

static enum gt_code run_one_process(struct job *j, const struct gt_ranks *r, struct gt_err *err)
{
	char start[64] = "from the beginning";
	struct gt_team_spec spec = {.world = &r->world,
	                            .link = j->opts->link,
	                            .token_file = r->token_file,
	                            .timeout_s = j->c->parallel.timeout,
	                            .config = j->c->text,
	                            .start = start,
	                            .warn = on_team_warning,
	                            .warn_user = (void *)j->opts};
	struct gt_team *team;
	if (j->from) /* each host opens its latest checkpoint itself; gt_team_open compares the steps */
		snprintf(start, sizeof start, "from the checkpoint of step %lld", (long long)gt_ckpt_meta(j->from)->step);
	GT_TRY(gt_team_open(&spec, &team, err));
	gt_signals_install();
	enum gt_code code = run_rank(j, team, err);
	if (code != GT_OK && code < 128 && code != GT_EPEER && team->comm && err) /* the other ranks then report this error as the reason */
		team->comm->api->abort(team->comm, err->msg);
	gt_team_close(team);
	gt_signals_restore();
	return code;
}

/* Trains n ranks that are threads. The data is read once for all ranks. */
static enum gt_code run_threads(struct job *j, int n, struct gt_err *err)
{
	struct gt_session_spec spec = session_spec(j->c);
	struct gt_session_files data;
	ino_t log = gt_run_log_inode(j->dir);
	spec.ckpt = j->from;
	gt_rank_phase(j->opts->link, "reading data", GT_PATIENCE * j->c->parallel.timeout);
	gt_signals_install();
	enum gt_code code = gt_session_read_data(&spec, &data, err);
	if (code == GT_OK) {
		j->data = &data;
		code = gt_team_threads(n, j->opts->link, run_rank, j, err);
		gt_session_free_data(&data);
		if (code != GT_OK && err)
			gt_run_end_add(j->dir, log, code, err->msg);
	}
	gt_signals_restore();
	return code;
}

static enum gt_code check_pretrained(const struct gt_session *s, struct gt_err *err)
{
	const struct gt_pretrained_report *report;
	return gt_pretrained_check(s->conf, s->space->layout.first, s->arena, &report, err);
}

/* Checks the run before ranks are started, so that an error that all ranks would report is reported once. Errors that only a rank can
 * detect, such as a missing GPU, are left to the ranks. */
static enum gt_code check_before_launch(const struct job *j, const struct gt_ranks *r, struct gt_err *err)
{
	const struct gt_run_opts *o = j->opts;
	int world = r->threads > 1 ? r->threads : r->nproc * (o->nnodes > 1 ? o->nnodes : 1);
	if (o->min_nodes && !*j->dir)
		return gt_conf_refuse(j->c, "checkpoint.dir", err,
		                      "--nnodes %d:%d needs a directory of the run, which all hosts share; add --out DIR", o->min_nodes, o->nnodes);
	GT_TRY(gt_world_plan_preflight(j->c, o->device, world, j->from ? NULL : check_pretrained, err));
	for (int n = o->min_nodes; n && n < o->nnodes; n++) /* the number of hosts may become any of these */
		if (gt_world_plan_preflight(j->c, o->device, r->nproc * n, NULL, err) != GT_OK)
			return gt_fail_prefix(err, "--nnodes %d:%d with %d host%s", o->min_nodes, o->nnodes, n, n == 1 ? "" : "s");
	return *j->dir && !j->from && !o->node_rank ? gt_refuse_used(j->dir, err) : GT_OK;
}

/* A dry run of several ranks in this process, with the device of the first one: reads the data and prepares kernels, without memory for
 * training. */
static enum gt_code dry_run_ranks(const struct job *j, const struct gt_ranks *r, struct gt_err *err)
{
	const struct gt_run_opts *o = j->opts;
	struct gt_world here = {.local_world = r->nproc};
	struct gt_session_spec spec = session_spec(j->c);
	struct gt_session_files data;
	struct gt_st_file *init;
	struct gt_session *s;
	char device[32];
	unsigned char token[GT_TOKEN_SIZE];
	if (o->nnodes > 1)
		GT_TRY(gt_token_read(r->token_file, token, err));
	explicit_bzero(token, sizeof token);
	if (*j->dir && !o->node_rank)
		GT_TRY(gt_at_directory(j->c, j->dir, gt_ckpt_dir_check(j->dir, err), err));
	spec.ckpt = j->from;
	GT_TRY(gt_session_read_data(&spec, &data, err));
	spec.data = &data;
	spec.dry = true;
	spec.world = r->threads > 1 ? r->threads : r->nproc * (o->nnodes > 1 ? o->nnodes : 1);
	spec.device = gt_rank_device(o->device ? o->device : j->c->device, &here, device, sizeof device);
	enum gt_code code = gt_session_open(&spec, &s, err);
	if (code == GT_OK) {
		char text[768];
		code = j->from ? GT_OK : check_pretrained(s, err);
		if (code == GT_OK && *j->dir && !o->node_rank)
			code = gt_state_check_space(s, j->dir, j->from != NULL, text, sizeof text, err);
		gt_session_close(s);
	}
	gt_session_free_data(&data);
	if (code == GT_OK && o->init && (code = gt_st_open(o->init, &init, err)) == GT_OK)
		gt_st_close(init);
	return code;
}

static enum gt_code run_ranks(struct job *j, struct gt_err *err)
{
	struct gt_ranks r;
	struct gt_conf *c = j->c;
	const struct gt_run_opts *o = j->opts;
	if (o->dry) /* a dry run writes no files, but autotuning would write to the user's cache */
		c->autotune = false;
	if (!j->from && o->init && *c->pretrained.file)
		return gt_conf_refuse(c, "model.pretrained.file", err,
		                      "expected no file, because --init %.300s sets all weights; remove one of the two", o->init);
	GT_TRY(gt_ranks_of(c, o, &r, err));
	if (r.launch) {
		GT_TRY(check_before_launch(j, &r, err));
		return o->dry ? dry_run_ranks(j, &r, err) : gt_ranks_launch(&r, c, j->dir, j->from, o, err);
	}
	if (r.threads > 1)
		return o->dry ? dry_run_ranks(j, &r, err) : run_threads(j, r.threads, err);
	enum gt_code code = run_one_process(j, &r, err);
	if (code != GT_OK && r.world.world > 1 && !o->link && err) /* the error must name the rank */
		gt_fail_prefix(err, "rank %d", r.world.rank);
	return code;
}

/* The common part of gt_run and gt_resume. */
static enum gt_code run_or_resume(struct job *j, struct gt_err *err)
{
	struct gt_world w;
	const struct gt_run_opts *o = j->opts;
	GT_TRY(run_ranks(j, err));
	if (!j->c->log.report || !o->want_page || o->link || o->dry || o->node_rank || !*j->dir)
		return GT_OK;
	GT_TRY(gt_team_world(NULL, &w, err));
	if (!w.rank)
		o->want_page(o->user, j->dir);
	return GT_OK;
}

enum gt_code gt_run(struct gt_conf *c, const struct gt_run_opts *o, struct gt_err *err)
{
	return run_or_resume(&(struct job){.c = c, .dir = o->out ? o->out : c->checkpoint.dir, .opts = o}, err);
}

/* Completes or removes incomplete files of a killed run in its directory, before a checkpoint is chosen. With several ranks, the launcher
 * does this before it starts them, otherwise rank 0 when it opens the directory. */
static enum gt_code finish_interrupted_commit(const char *dir, const struct gt_run_opts *o, struct gt_err *err)
{
	struct gt_ckpt_entry *e;
	struct gt_ckpt_dir *d;
	struct gt_world w;
	int n;
	GT_TRY(gt_team_world(o->link, &w, err));
	if (o->link || w.world > 1 || gt_ckpt_scan(dir, false, &e, &n, NULL))
		return GT_OK; /* opening the checkpoint reports the error of the folder */
	free(e);
	if (!n)
		return GT_OK;
	GT_TRY(gt_ckpt_dir_open(dir, &d, err));
	gt_ckpt_dir_close(d);
	return GT_OK;
}

/* Returns whether train.early_stop has ended the run with this checkpoint, by the metric that the config names now. */
static bool stopped_early(const struct gt_conf *c, const struct gt_ckpt_meta *at)
{
	const char *metric = at->early_stop.metric;
	return gt_watch_stopped(&c->train, &at->early_stop) && (!metric || !strcmp(metric, c->train.early_stop.metric));
}

/* Reports that a run is complete, and which settings to change to train longer. */
static enum gt_code report_complete(const char *dir, const struct gt_conf *c, const struct gt_ckpt *ckpt, const struct gt_run_opts *o,
                                    struct gt_err *err)
{
	const struct gt_ckpt_meta *at = gt_ckpt_meta(ckpt);
	bool stopped = !gt_trainer_complete(c, at->step, at->epoch);
	char text[GT_PATH_SIZE + 256], epochs[32], steps[32];
	struct gt_event ev = {
	    .kind = GT_EV_COMPLETE, .step = at->step, .steps = at->step, .epoch = at->epoch, .epochs = at->epoch, .text = text};
	struct gt_json j = {0};
	struct gt_world w;
	bool by_steps = c->train.steps > 0;
	snprintf(text, sizeof text, "%s is complete: %s epoch%s, %s steps; to train longer, add -s train.%s=N with N above %lld", dir,
	         gt_format_grouped(at->epoch, epochs, sizeof epochs), at->epoch == 1 ? "" : "s",
	         gt_format_grouped(at->step, steps, sizeof steps),
	         by_steps ? "steps" : "epochs", (long long)(by_steps ? at->step : at->epoch));
	if (stopped)
		snprintf(text, sizeof text, "%s was stopped early (train.early_stop) after %s epoch%s, %s steps; to train longer, add -s "
		         "train.early_stop.patience=N with N above %lld, or -s train.early_stop.metric=\"\"", dir, epochs,
		         at->epoch == 1 ? "" : "s", steps, (long long)at->early_stop.bad);
	enum gt_code code = gt_metrics_write(NULL, &j, &ev, err);
	if (!code)
		code = gt_team_world(o->link, &w, err);
	if (!code && !w.rank && !o->dry)
		code = gt_run_end_record(dir, c, ckpt, stopped ? "early stop" : "ok", err);
	if (!code && o->observe && !w.rank)
		o->observe(o->user, &ev);
	gt_json_free(&j);
	return code;
}

/* Adds a remedy to the error about a directory without checkpoints, if a run in it ended before its first checkpoint. */
static enum gt_code explain_no_checkpoint(const char *dir, struct gt_err *err)
{
	char config[GT_PATH_SIZE];
	struct stat st;
	if (gt_path_join(config, dir, "config.cfg", NULL) || lstat(config, &st))
		return GT_ENOINPUT;
	return gt_fail(err, GT_ENOINPUT, "%s: there is no checkpoint, because the run ended before its first checkpoint or the checkpoints "
	               "were removed; start it again with `gtrain run CFG --out %s`", dir, dir);
}

enum gt_code gt_resume(const char *path, const char *from, const char *const *sets, int nsets, const struct gt_run_opts *o,
                       struct gt_err *err)
{
	struct gt_trainer warn = {.opts = o};
	struct gt_ckpt *ckpt;
	struct gt_conf *c = NULL;
	char dir[GT_PATH_SIZE], named[24], config[GT_PATH_SIZE];
	int64_t step;
	GT_TRY(gt_ckpt_run_dir(path, dir, &step, err));
	if (step >= 0) {
		if (from && (from[0] < '0' || from[0] > '9' || strtoll(from, NULL, 10) != step))
			return gt_fail(err, GT_EUSAGE,
			               "%s is the checkpoint of step %lld, but --from %s names a different step: expected the run directory, %s", path,
			               (long long)step, from, dir);
		snprintf(named, sizeof named, "%lld", (long long)step);
		from = named;
	}
	GT_TRY(finish_interrupted_commit(dir, o, err));
	enum gt_code code = gt_ckpt_open(dir, from ? from : "latest", true, o->link ? NULL : on_warning, &warn, &ckpt,
	                                 err); /* the launcher has already printed the warnings */
	if (code != GT_OK)
		return code == GT_ENOINPUT && !from ? explain_no_checkpoint(dir, err) : code;
	/* The text is verified by its digest, and @include is an error in it. */
	const char *text = gt_ckpt_meta(ckpt)->config;
	code = gt_path_join(config, gt_ckpt_path(ckpt), "config.cfg", err);
	if (code == GT_OK)
		code = gt_conf_load_resolved(config, text, strlen(text), sets, nsets, &c, err);
	const struct gt_ckpt_meta *at = gt_ckpt_meta(ckpt);
	if (code == GT_OK && !at->pending.set && (gt_trainer_complete(c, at->step, at->epoch) || stopped_early(c, at)))
		code = report_complete(dir, c, ckpt, o, err);
	else if (code == GT_OK)
		code = run_or_resume(&(struct job){c, o->out ? o->out : dir, ckpt, sets, nsets, o, NULL}, err);
	gt_ckpt_close(ckpt);
	gt_conf_free(c);
	return code;
}
