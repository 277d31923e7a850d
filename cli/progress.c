#include "progress.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DRAW_EVERY 0.1  /* seconds between two drawings on a terminal */
#define PLAIN_EVERY 5.0 /* seconds between two plain lines elsewhere */

void gt_progress_init(struct gt_progress *p, struct gt_cli *cli)
{
	*p = (struct gt_progress){.cli = cli, .start = gt_cli_seconds(), .loss = NAN};
	p->last = p->start;
}

static void erase(struct gt_progress *p)
{
	if (p->drawn)
		fputs("\r\033[K", stderr);
	p->drawn = false;
}

/* "epoch 2/5  step 938/2,345  loss 0.4312  lr 0.001  64.1 k samples/s  eta 12.0 s" */
static int describe(const struct gt_event *ev, char *buf, size_t size)
{
	char step[GT_UNITS], steps[GT_UNITS], lr[GT_UNITS], speed[GT_UNITS], eta[GT_UNITS], loss[GT_UNITS];
	int n = 0;
	if (ev->epochs > 0)
		n = snprintf(buf, size, "epoch %" PRId64 "/%" PRId64 "  ", ev->epoch + 1, ev->epochs);
	n += snprintf(buf + n, size - (size_t)n, "step %s/%s  loss %s  lr %s", gt_units_count(step, ev->step),
	              gt_units_count(steps, ev->steps), gt_units_loss(loss, ev->loss), gt_units_number(lr, ev->lr));
	if (ev->samples_per_s > 0)
		n += snprintf(buf + n, size - (size_t)n, "  %s samples/s", gt_units_si(speed, ev->samples_per_s, ""));
	if (ev->eta_s > 0 && isfinite(ev->eta_s))
		n += snprintf(buf + n, size - (size_t)n, "  eta %s", gt_units_seconds(eta, ev->eta_s));
	return n;
}

static void draw(struct gt_progress *p, const struct gt_event *ev)
{
	char text[512], line[640];
	struct winsize ws;
	int n = describe(ev, text, sizeof text);
	int cols = ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 1 ? ws.ws_col : 80;
	if (n > cols - 1) /* a wrapped line could not be erased */
		n = cols - 1;
	int len = snprintf(line, sizeof line, "\r\033[K%.*s", n, text);
	fwrite(line, 1, (size_t)len, stderr);
	fflush(stderr);
	p->drawn = true;
}

/* stdout was lost. A broken pipe says that nobody listens any more: end by a checkpoint, if the run has its handler in place. A
 * full disk must not cost hours of training: say so now, go on, and exit with 74 at the end. */
static void lost_output(struct gt_progress *p)
{
	struct sigaction sa;
	if (p->out_told)
		return;
	p->out_told = true;
	if (p->cli->out_errno != EPIPE) {
		char text[256];
		snprintf(text, sizeof text, "cannot write standard output: %s; training goes on", strerror(p->cli->out_errno));
		erase(p);
		gt_cli_warn(p->cli, text);
	} else if (sigaction(SIGTERM, NULL, &sa) == 0 && sa.sa_handler != SIG_DFL && sa.sa_handler != SIG_IGN) {
		raise(SIGTERM);
	}
}

static bool better(const struct gt_progress_eval *a, const struct gt_progress_eval *b)
{
	return isnan(a->acc) || isnan(b->acc) ? a->loss < b->loss : a->acc > b->acc;
}

static void observe_eval(struct gt_progress *p, const struct gt_event *ev)
{
	struct gt_progress_eval e = {.have = true, .loss = ev->loss, .acc = ev->acc, .step = ev->step, .epoch = ev->epoch};
	char epoch[64] = "", acc[48] = "", step[GT_UNITS], loss[GT_UNITS];
	snprintf(e.split, sizeof e.split, "%s", ev->split ? ev->split : "eval");
	/* The result of a run is its test split, where there is one. */
	if (!p->eval.have || strcmp(p->eval.split, e.split) == 0 || strcmp(e.split, "test") == 0) {
		if (!p->eval.have || strcmp(p->eval.split, e.split) != 0 || better(&e, &p->best))
			p->best = e;
		p->eval = e;
	}
	if (p->cli->args.quiet || p->cli->args.json)
		return;
	if (ev->epochs > 0)
		snprintf(epoch, sizeof epoch, "epoch %" PRId64 "/%" PRId64 "  ", ev->epoch + 1, ev->epochs);
	if (!isnan(e.acc))
		snprintf(acc, sizeof acc, "  accuracy %.4f", e.acc);
	gt_cli_note(p->cli, "%sstep %s  %s%s  loss %s", epoch, gt_units_count(step, ev->step), e.split, acc, gt_units_loss(loss, e.loss));
}

static void observe_train(struct gt_progress *p, const struct gt_event *ev)
{
	const struct gt_args *a = &p->cli->args;
	p->loss = ev->loss;
	if (a->quiet)
		return;
	/* -v outside a terminal: a line for every line of metrics.jsonl. */
	bool logged = a->verbose && ev->json && !p->cli->animate && !a->json;
	if (!logged) {
		if (a->no_progress || (a->json && !p->cli->animate))
			return;
		double now = gt_cli_seconds();
		if (now - p->last < (p->cli->animate ? DRAW_EVERY : PLAIN_EVERY))
			return;
		p->last = now;
	}
	if (p->cli->animate) {
		draw(p, ev);
	} else {
		char text[512];
		describe(ev, text, sizeof text);
		gt_cli_note(p->cli, "%s", text);
	}
}

void gt_progress_observe(void *user, const struct gt_event *ev)
{
	struct gt_progress *p = user;
	const struct gt_args *a = &p->cli->args;
	p->told = true;
	p->step = ev->step;
	if (ev->steps > 0)
		p->steps = ev->steps;
	if (ev->epochs > 0) {
		p->epoch = ev->epoch;
		p->epochs = ev->epochs;
	}
	if (a->json && ev->json) {
		erase(p); /* both may be the same terminal */
		gt_out_line(p->cli, ev->json);
	}
	if (p->cli->out_errno)
		lost_output(p);
	if (ev->kind == GT_EV_TRAIN) {
		observe_train(p, ev);
		return;
	}
	erase(p);
	switch (ev->kind) {
	case GT_EV_START:
		if (!a->quiet && !a->json && ev->text)
			gt_cli_note(p->cli, "%s", ev->text);
		break;
	case GT_EV_RESUME:
		if (!a->quiet && !a->json && ev->text) {
			char step[GT_UNITS];
			gt_cli_note(p->cli, "resuming from %s, step %s", ev->text, gt_units_count(step, ev->step));
		}
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
	case GT_EV_END:
		p->early = ev->text && strcmp(ev->text, "ok") != 0;
		break;
	case GT_EV_SKIP:
		if (a->verbose && !a->json)
			gt_cli_note(p->cli, "step %" PRId64 ": gradients overflow, skipped; the loss scale is %g", ev->step, ev->loss_scale);
		break;
	case GT_EV_TRAIN:
		break;
	}
}

/* "test accuracy 0.8812  loss 0.3301  (5 epochs, 4.1 s)" */
static void result(struct gt_progress *p)
{
	char amount[GT_UNITS], took[GT_UNITS], count[GT_UNITS], loss[GT_UNITS], text[256];
	int n = 0;
	bool whole = p->epochs > 0 && p->epoch + 1 >= p->epochs && p->step == p->steps;
	int64_t amount_n = whole ? p->epochs : p->step;
	snprintf(amount, sizeof amount, "%s %s%s", gt_units_count(count, amount_n), whole ? "epoch" : "step", amount_n == 1 ? "" : "s");
	if (p->eval.have) {
		n = snprintf(text, sizeof text, "%s ", p->eval.split);
		if (!isnan(p->eval.acc))
			n += snprintf(text + n, sizeof text - (size_t)n, "accuracy %.4f  ", p->eval.acc);
		n += snprintf(text + n, sizeof text - (size_t)n, "loss %s", gt_units_loss(loss, p->eval.loss));
		if (!isnan(p->best.acc) && p->best.step != p->eval.step)
			n += snprintf(text + n, sizeof text - (size_t)n, "  best %.4f in epoch %" PRId64, p->best.acc, p->best.epoch + 1);
	} else {
		n = snprintf(text, sizeof text, "train loss %s", gt_units_loss(loss, p->loss));
	}
	snprintf(text + n, sizeof text - (size_t)n, "  (%s, %s)", amount, gt_units_seconds(took, gt_cli_seconds() - p->start));
	gt_out(p->cli, "%s%s%s\n", gt_style(p->cli->color_out, GT_STYLE_BOLD), text, gt_style(p->cli->color_out, GT_STYLE_NONE));
}

/* How to go on with a run that ended early. */
static void tell_resume(struct gt_progress *p)
{
	char dir[sizeof p->checkpoint], step[GT_UNITS];
	if (!p->checkpoint[0]) {
		gt_cli_note(p->cli, "ended early, at step %s of the run; no checkpoint holds it", gt_units_count(step, p->step));
		return;
	}
	/* <dir>/step-…: the run is its parent. */
	snprintf(dir, sizeof dir, "%s", p->checkpoint);
	char *slash = strrchr(dir, '/');
	if (slash && slash > dir)
		*slash = '\0';
	else
		snprintf(dir, sizeof dir, ".");
	gt_cli_note(p->cli, "ended early, with the checkpoint %s; 'gtrain resume %s' goes on", p->checkpoint, dir);
}

enum gt_code gt_progress_finish(struct gt_progress *p, enum gt_code code)
{
	erase(p);
	fflush(stderr);
	if (code == GT_OK && p->told && !p->cli->args.json)
		result(p);
	if (p->early && !p->cli->args.quiet && p->cli->out_errno != EPIPE)
		tell_resume(p);
	return code;
}

void gt_progress_say(void *user, const char *line)
{
	struct gt_progress *p = user;
	if (p->cli->animate) /* the progress line is drawn by rank 0, in another process, which draws it again */
		fputs("\r\033[K", stderr);
	gt_cli_note(p->cli, "%s", line);
}
