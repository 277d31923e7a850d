#include "progress.h"
#include "base/clock.h"
#include "base/shell_word.h"
#include "commands.h"
#include "gtrain.h"
#include "status_line.h"
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DRAW_EVERY 0.1   /* minimum seconds between two lines of steps on a terminal, and between two lines of phases */
#define PHASE_AFTER 0.02 /* seconds that a line of steps stays before an evaluation or a save is shown */
#define PLAIN_EVERY 5.0  /* seconds between two plain lines if stderr is not a terminal */

void gt_progress_init(struct gt_progress *p, struct gt_cli *cli, const struct gt_job_args *job)
{
	*p = (struct gt_progress){.cli = cli, .job = job, .start = gt_clock(), .loss = NAN};
	p->last = p->start;
}

static void add_epoch(const struct gt_progress *p, struct gt_parts *parts, int64_t epoch)
{
	if (p->epochs > 0)
		gt_parts_add(parts, 2, "epoch %" PRId64 "/%" PRId64, epoch, p->epochs);
	else if (epoch > 0)
		gt_parts_add(parts, 2, "epoch %" PRId64, epoch);
}

/* Describes a step: "epoch 2/5  [=======>            ] 38%  elapsed 0:12  eta 0:19  loss 0.4312  acc 0.8521  64.1 k/s  step 938/2,345". */
static void describe_step(const struct gt_progress *p, const struct gt_event *ev, struct gt_parts *parts)
{
	char step[GT_UNITS], steps[GT_UNITS], number[GT_UNITS];
	double share = ev->steps > 0 ? (double)ev->step / (double)ev->steps : 0;
	*parts = (struct gt_parts){0};
	add_epoch(p, parts, ev->epoch);
	if (p->cli->animate)
		gt_parts_bar(parts, 3, share);
	gt_parts_add(parts, 0, "%d%%", (int)(100 * share));
	parts->part[parts->n - 1].tight = parts->n > 1;
	gt_parts_add(parts, 5, "elapsed %s", gt_units_clock(number, gt_clock() - p->start));
	if (ev->eta_s > 0 && isfinite(ev->eta_s))
		gt_parts_add(parts, 1, "eta %s", gt_units_clock(number, ev->eta_s));
	gt_parts_add(parts, 4, "loss %s", gt_units_loss(number, ev->loss));
	if (!isnan(ev->acc))
		gt_parts_add(parts, 6, "acc %.4f", ev->acc);
	if (ev->samples_per_s > 0)
		gt_parts_add(parts, 7, "%s samples/s", gt_units_si(number, ev->samples_per_s, ""));
	gt_parts_add(parts, 8, "step %s/%s", gt_units_count(step, ev->step), gt_units_count(steps, ev->steps));
	gt_parts_add(parts, 9, "lr %s", gt_units_number(number, ev->lr));
}

/* Describes a phase, for example "epoch 2/5  evaluating test  [=========>          ] 45%  elapsed 0:12". */
static void describe_phase(const struct gt_progress *p, const struct gt_event *ev, struct gt_parts *parts)
{
	char number[GT_UNITS];
	*parts = (struct gt_parts){0};
	add_epoch(p, parts, ev->epoch);
	gt_parts_add(parts, 0, "%s%s%s", ev->text ? ev->text : "", ev->split ? " " : "", ev->split ? ev->split : "");
	if (ev->split) {
		if (p->cli->animate)
			gt_parts_bar(parts, 3, ev->share);
		gt_parts_add(parts, 1, "%d%%", (int)(100 * ev->share));
		parts->part[parts->n - 1].tight = true;
	}
	gt_parts_add(parts, 4, "elapsed %s", gt_units_clock(number, gt_clock() - p->start));
}

/* Shows the status line on a terminal, or prints a plain line. */
static void show_parts(struct gt_progress *p, const struct gt_parts *parts)
{
	char text[1024];
	gt_parts_join(parts, gt_status_columns() - p->cli->animate, text, sizeof text);
	if (p->cli->animate)
		gt_status_paint(p->cli, text);
	else
		gt_cli_note(p->cli, "%s", text);
}

/* Handles a failed write to stdout. After a broken pipe, stops the run with a checkpoint if the run's signal handler is installed. If the
 * write failed for another reason, such as a full disk, prints a warning; training continues, and the exit status is 74. */
static void handle_lost_output(struct gt_progress *p)
{
	struct sigaction sa;
	if (p->out_told)
		return;
	p->out_told = true;
	if (p->cli->out_errno != EPIPE) {
		char text[256];
		snprintf(text, sizeof text, "cannot write standard output: %s; training continues", strerror(p->cli->out_errno));
		gt_cli_warn(p->cli, text);
	} else if (sigaction(SIGTERM, NULL, &sa) == 0 && sa.sa_handler != SIG_DFL && sa.sa_handler != SIG_IGN) {
		raise(SIGTERM);
	}
}

/* Adds "test acc 0.8650 loss 0.4000" as two parts, and the scores of gt_units_scores as a third part. */
static void add_scores(struct gt_parts *parts, int rank, const char *name, const struct gt_scores *s)
{
	char loss[GT_UNITS];
	bool acc = !isnan(s->acc);
	if (acc)
		gt_parts_add(parts, rank, "%s acc %.4f", name, s->acc);
	gt_parts_add(parts, acc ? rank + 3 : rank, "%s%sloss %s", acc ? "" : name, acc ? "" : " ", gt_units_loss(loss, s->loss));
	parts->part[parts->n - 1].tight = acc;
	char more[GT_UNITS_SCORES];
	if (!*gt_units_scores(more, s, " "))
		return;
	gt_parts_add(parts, acc ? rank + 3 : rank, "%s", more);
	parts->part[parts->n - 1].tight = true;
}

/* Prints the line of an epoch: "epoch 2/5  train acc 0.8521 loss 0.4312  test acc 0.8650 loss 0.4000  12.3 s". */
static void print_epoch_row(struct gt_progress *p)
{
	const struct gt_progress_row *r = &p->row;
	struct gt_parts parts = {0};
	char text[1024], number[GT_UNITS];
	if (!r->have)
		return;
	add_epoch(p, &parts, r->epoch);
	if (!r->whole)
		gt_parts_add(&parts, 2, "step %s", gt_units_count(number, r->step));
	if (r->train.samples)
		add_scores(&parts, 5, "train", &r->train);
	for (int i = 0; i < r->nevals; i++)
		add_scores(&parts, r->nevals - i, r->eval[i].split, &r->eval[i].scores);
	if (r->whole)
		gt_parts_add(&parts, 9, "%s", gt_units_seconds(number, r->seconds));
	p->row = (struct gt_progress_row){0};
	gt_parts_join(&parts, gt_status_columns(), text, sizeof text);
	gt_cli_note(p->cli, "%s", text);
}

static void observe_epoch(struct gt_progress *p, const struct gt_event *ev)
{
	bool show = !p->cli->args.quiet && !p->cli->args.json;
	p->row = (struct gt_progress_row){.have = show, .whole = true, .step = ev->step, .epoch = ev->epoch, .train = ev->scores};
	p->row.seconds = ev->seconds;
}

static void observe_eval(struct gt_progress *p, const struct gt_event *ev)
{
	struct gt_progress_eval e = {.scores = ev->scores, .step = ev->step, .epoch = ev->epoch};
	struct gt_progress_row *r = &p->row;
	snprintf(e.split, sizeof e.split, "%s", ev->split ? ev->split : "eval");
	/* the run's result is the evaluation of the test split, if the data has a test split */
	if (!p->eval.split[0] || strcmp(p->eval.split, e.split) == 0 || strcmp(e.split, "test") == 0)
		p->eval = e;
	if (p->cli->args.quiet || p->cli->args.json)
		return;
	if (!r->have)
		*r = (struct gt_progress_row){.have = true, .step = ev->step, .epoch = ev->epoch};
	if (r->nevals < GT_PROGRESS_EVALS)
		r->eval[r->nevals++] = e;
}

static void observe_train(struct gt_progress *p, const struct gt_event *ev)
{
	const struct gt_args *a = &p->cli->args;
	struct gt_parts parts;
	p->loss = ev->loss;
	if (a->quiet)
		return;
	/* -v without a terminal: prints a line for every line of metrics.jsonl */
	bool logged = a->verbose && ev->json && !p->cli->animate && !a->json;
	if (!logged) {
		if (a->no_progress || (a->json && !p->cli->animate))
			return;
		double now = gt_clock();
		if (now - p->last < (p->cli->animate ? DRAW_EVERY : PLAIN_EVERY))
			return;
		p->last = now;
	}
	describe_step(p, ev, &parts);
	show_parts(p, &parts);
}

static void observe_phase(struct gt_progress *p, const struct gt_event *ev)
{
	const struct gt_args *a = &p->cli->args;
	struct gt_parts parts;
	bool early = !p->steps; /* before the start event, phases are shown on a terminal only */
	bool animate = p->cli->animate;
	double now = gt_clock();
	if (a->quiet || a->no_progress || ((a->json || early) && !animate))
		return;
	if (!early && (now - p->last < (animate ? PHASE_AFTER : PLAIN_EVERY) || now - p->last_phase < (animate ? DRAW_EVERY : PLAIN_EVERY)))
		return;
	/* On a terminal a phase does not delay the next line of steps: otherwise, with epochs of less than DRAW_EVERY, each save would be shown
	 * until the next one, and the steps never. */
	p->last_phase = now;
	if (!animate)
		p->last = now;
	describe_phase(p, ev, &parts);
	show_parts(p, &parts);
}

void gt_progress_observe(void *user, const struct gt_event *ev)
{
	struct gt_progress *p = user;
	const struct gt_args *a = &p->cli->args;
	p->shown |= ev->kind != GT_EV_PHASE;
	p->step = ev->step;
	if (ev->steps > 0) {
		p->steps = ev->steps;
		p->epoch = ev->epoch;
		p->epochs = ev->epochs;
	}
	if (a->json && ev->json)
		gt_out_line(p->cli, ev->json);
	if (p->cli->out_errno)
		handle_lost_output(p);
	/* The line of an epoch is complete when an event other than its evaluations follows. */
	if (ev->kind != GT_EV_EVAL && !(ev->kind == GT_EV_PHASE && ev->split))
		print_epoch_row(p);
	switch (ev->kind) {
	case GT_EV_TRAIN:
		observe_train(p, ev);
		break;
	case GT_EV_PHASE:
		observe_phase(p, ev);
		break;
	case GT_EV_START:
		if (!a->quiet && !a->json && ev->text)
			gt_cli_note_words(p->cli, ev->text);
		break;
	case GT_EV_PRETRAINED:
		if (!a->quiet && !a->json && ev->text)
			gt_cli_note(p->cli, "pretrained: %s", ev->text);
		break;
	case GT_EV_RESUME:
		if (!a->quiet && !a->json && ev->text) {
			char step[GT_UNITS];
			gt_cli_note(p->cli, "resuming from %s, step %s", ev->text, gt_units_count(step, ev->step));
		}
		break;
	case GT_EV_EPOCH:
		observe_epoch(p, ev);
		break;
	case GT_EV_EVAL:
		observe_eval(p, ev);
		break;
	case GT_EV_CHECKPOINT:
		if (ev->text) {
			snprintf(p->checkpoint, sizeof p->checkpoint, "%s", ev->text);
			if (a->verbose && !a->json)
				gt_cli_note(p->cli, "checkpoint %s", ev->text);
		}
		break;
	case GT_EV_WARN:
		if (ev->text)
			gt_cli_warn(p->cli, ev->text);
		break;
	case GT_EV_DETAIL:
		if (a->verbose)
			gt_cli_note(p->cli, "%s", ev->text);
		break;
	case GT_EV_END: {
		bool stopped = ev->text && !strcmp(ev->text, "early stop");
		p->early = ev->text && strcmp(ev->text, "ok") != 0 && !stopped && !ev->code;
		if (stopped && !a->quiet && !a->json)
			gt_cli_note(p->cli, "train.early_stop ended the run: the metric did not improve any more");
		if (ev->result) {
			p->ended = true;
			p->result = *ev->result;
			snprintf(p->best_metric, sizeof p->best_metric, "%s", ev->result->best_metric ? ev->result->best_metric : "");
		}
		break;
	}
	case GT_EV_COMPLETE: {
		char clean[2048];
		p->complete = true;
		if (!a->json)
			gt_out(p->cli, "%s\n", gt_cli_printable(ev->text, clean, sizeof clean));
		break;
	}
	case GT_EV_SKIP:
		if (a->verbose && !a->json)
			gt_cli_note(p->cli, "step %" PRId64 ": skipped, because gradients overflowed; the loss scale is now %g",
			            ev->step, ev->loss_scale);
		break;
	}
}

/* "test accuracy 0.8812  loss 0.3301  (5 epochs, 4.1 s)" */
static void print_result(struct gt_progress *p)
{
	const struct gt_scores *s = &p->eval.scores;
	char amount[GT_UNITS], took[GT_UNITS], count[GT_UNITS], loss[GT_UNITS], more[GT_UNITS_SCORES], text[480];
	int n = 0;
	bool whole = p->epochs > 0 && p->epoch >= p->epochs && p->step == p->steps;
	int64_t amount_n = whole ? p->epochs : p->step;
	snprintf(amount, sizeof amount, "%s %s%s", gt_units_count(count, amount_n), whole ? "epoch" : "step", amount_n == 1 ? "" : "s");
	if (p->eval.split[0]) {
		n = snprintf(text, sizeof text, "%s ", p->eval.split);
		if (!isnan(s->acc))
			n += snprintf(text + n, sizeof text - (size_t)n, "accuracy %.4f  ", s->acc);
		n += snprintf(text + n, sizeof text - (size_t)n, "loss %s", gt_units_loss(loss, s->loss));
		gt_units_scores(more, s, "  ");
		n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", *more ? "  " : "", more);
	} else {
		n = snprintf(text, sizeof text, "train loss %s", gt_units_loss(loss, isnan(p->loss) && p->ended ? p->result.train.loss : p->loss));
	}
	if (p->best_metric[0] && p->result.best_step != p->step)
		n += snprintf(text + n, sizeof text - (size_t)n, "  best %s %s in epoch %" PRId64, p->best_metric,
		              gt_units_loss(loss, p->result.best), p->result.best_epoch);
	else if (!p->best_metric[0] && p->eval.split[0] && p->result.peak_epoch > 0 && p->result.peak_acc > s->acc)
		n += snprintf(text + n, sizeof text - (size_t)n, "  best %.4f in epoch %" PRId64, p->result.peak_acc, p->result.peak_epoch);
	double seconds = p->ended ? p->result.seconds : gt_clock() - p->start;
	snprintf(text + n, sizeof text - (size_t)n, "  (%s, %s)", amount, gt_units_seconds(took, seconds));
	gt_out(p->cli, "%s", gt_style(p->cli->color_out, GT_STYLE_BOLD));
	gt_out_sentence(p->cli, text);
	gt_out(p->cli, "%s", gt_style(p->cli->color_out, GT_STYLE_NONE));
}

/* Writes the directory of the run as a word for a shell, from the path of the checkpoint, <dir>/step-…. */
static const char *run_dir(const struct gt_progress *p, char *buf, size_t size)
{
	char dir[sizeof p->checkpoint];
	snprintf(dir, sizeof dir, "%s", p->checkpoint);
	char *slash = strrchr(dir, '/');
	if (slash && slash > dir)
		*slash = '\0';
	else
		snprintf(dir, sizeof dir, ".");
	return gt_shell_word(dir, buf, size);
}

enum { AGAIN = 1024 };

static void add_again(char *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add_again(char *buf, const char *fmt, ...)
{
	va_list ap;
	size_t n = strlen(buf);
	va_start(ap, fmt);
	vsnprintf(buf + n, AGAIN - n, fmt, ap);
	va_end(ap);
}

/* Writes the options of this command, each with a space before it, that a later command needs again because checkpoints do not store them:
 * the device and, if `ranks` is true, the options about ranks, hosts and restarts, without the number of this host. Returns buf (AGAIN
 * bytes). */
static const char *options_again(const struct gt_progress *p, bool ranks, char *buf)
{
	const struct gt_job_args *a = p->job;
	char word[400];
	buf[0] = '\0';
	if (ranks && a->nproc > 0)
		add_again(buf, " --nproc %" PRId64, a->nproc);
	if (ranks && a->nnodes.least)
		add_again(buf, " --nnodes %" PRId64 ":%" PRId64, a->nnodes.least, a->nnodes.most);
	else if (ranks && a->nnodes.most)
		add_again(buf, " --nnodes %" PRId64, a->nnodes.most);
	if (ranks && a->master_addr)
		add_again(buf, " --master-addr %s", gt_shell_word(a->master_addr, word, sizeof word));
	if (ranks && a->master_port)
		add_again(buf, " --master-port %" PRId64, a->master_port);
	if (ranks && a->token_file)
		add_again(buf, " --token-file %s", gt_shell_word(a->token_file, word, sizeof word));
	if (ranks && a->max_restarts)
		add_again(buf, " --max-restarts %" PRId64, a->max_restarts);
	if (a->device)
		add_again(buf, " --device %s", gt_shell_word(a->device, word, sizeof word));
	return buf;
}

/* Prints the command that continues a run that ended early. */
static void suggest_resume(struct gt_progress *p)
{
	char dir[2 * sizeof p->checkpoint], step[GT_UNITS], gtrain[PATH_MAX], again[AGAIN];
	if (!p->checkpoint[0])
		gt_cli_note(p->cli, "ended early at step %s, without a checkpoint", gt_units_count(step, p->step));
	else
		gt_cli_note(p->cli, "ended early with the checkpoint %s; `%s resume %s%s` continues%s", p->checkpoint,
		            gt_cli_program(p->cli, gtrain, sizeof gtrain), run_dir(p, dir, sizeof dir), options_again(p, true, again),
		            p->job->nnodes.most > 1 ? "; the other hosts also need their --node-rank" : "");
}

/* Prints the checkpoint of a complete run, and commands that show and use its results. */
static void suggest_next(struct gt_progress *p)
{
	char dir[2 * sizeof p->checkpoint], best[64] = "", gtrain[PATH_MAX], again[AGAIN], split[32] = "";
	if (!p->checkpoint[0])
		return;
	run_dir(p, dir, sizeof dir);
	gt_cli_program(p->cli, gtrain, sizeof gtrain);
	options_again(p, false, again);
	if (p->best_metric[0] && p->result.best_step != p->step)
		snprintf(best, sizeof best, "; the best is step-%08" PRId64, p->result.best_step);
	if (strcmp(p->eval.split, "test") != 0) /* without --split, eval takes the split "test" */
		snprintf(split, sizeof split, " --split %s", p->eval.split[0] ? p->eval.split : "train");
	gt_cli_note(p->cli, "saved as %s%s", p->checkpoint, best);
	gt_cli_note(p->cli, "next: %s eval %s%s%s", gtrain, dir, split, again);
	gt_cli_note(p->cli, "      %s report %s%s%s", gtrain, dir, split, again);
	gt_cli_note(p->cli, "      %s predict %s FILE...%s", gtrain, dir, again);
}

enum gt_code gt_progress_finish(struct gt_progress *p, enum gt_code code)
{
	const struct gt_args *a = &p->cli->args;
	print_epoch_row(p);
	if (p->cli->animate && !p->shown) /* a killed rank may have left its status line */
		p->cli->painted = true;
	gt_status_erase(p->cli);
	if (code == GT_OK && p->shown && !p->complete && !a->json)
		print_result(p);
	if (p->early && !a->quiet && p->cli->out_errno != EPIPE)
		suggest_resume(p);
	if (code == GT_OK && p->ended && !p->early && !a->quiet && !a->json) {
		gt_out_flush(p->cli); /* prints the result before messages on stderr if both are the same terminal */
		suggest_next(p);
	}
	if (code == GT_OK && p->page_dir[0])
		gt_cli_page_of_run(p->cli, p->page_dir, p->job);
	return code;
}

void gt_progress_want_page(void *user, const char *dir)
{
	struct gt_progress *p = user;
	snprintf(p->page_dir, sizeof p->page_dir, "%s", dir);
}

void gt_progress_say(void *user, const char *line)
{
	struct gt_progress *p = user;
	if (p->cli->animate) /* rank 0 is another process and rewrites its status line later */
		p->cli->painted = true;
	gt_cli_note(p->cli, "%s", line);
}
