#include "run/metrics.h"
#include "base/arena.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct gt_metrics_file {
	int fd;
	char path[4096];
};

/* The step of a line that gtrain wrote: "step" is a key of every one of them. */
static int64_t line_step(const char *line)
{
	const char *p = strstr(line, "\"step\":");
	return p ? strtoll(p + 7, NULL, 10) : -1;
}

/* Keeps the whole lines up to `step`: a torn last line and what a lost stretch of training wrote go. */
static enum gt_code cut(const char *path, int64_t step, struct gt_err *err)
{
	char tmp[4200], *line = NULL;
	size_t cap = 0;
	ssize_t n;
	FILE *in = fopen(path, "re");
	if (!in)
		return errno == ENOENT ? GT_OK : gt_fail(err, GT_EIO, "%s: %s", path, strerror(errno));
	snprintf(tmp, sizeof tmp, "%s.tmp", path);
	FILE *out = fopen(tmp, "we");
	bool ok = out != NULL;
	while (ok && (n = getline(&line, &cap, in)) > 0)
		if (line[n - 1] == '\n' && line_step(line) <= step)
			ok = fwrite(line, 1, (size_t)n, out) == (size_t)n;
	ok = ok && !ferror(in) && !fflush(out) && !fsync(fileno(out));
	int why = errno;
	free(line);
	fclose(in);
	if (out && fclose(out))
		ok = false;
	if (ok && !rename(tmp, path))
		return GT_OK;
	unlink(tmp);
	return gt_fail(err, GT_EIO, "%s: %s", path, strerror(ok ? errno : why));
}

enum gt_code gt_metrics_open(const char *dir, int64_t resume_step, struct gt_metrics_file **out, struct gt_err *err)
{
	struct gt_metrics_file *m = calloc(1, sizeof *m);
	*out = NULL;
	if (!m)
		return gt_fail_memory(err, sizeof *m);
	m->fd = -1;
	snprintf(m->path, sizeof m->path, "%s/metrics.jsonl", dir);
	enum gt_code code = resume_step >= 0 ? cut(m->path, resume_step, err) : GT_OK;
	if (code == GT_OK) {
		m->fd = open(m->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (resume_step >= 0 ? 0 : O_TRUNC), 0600);
		if (m->fd < 0)
			code = gt_fail(err, GT_ECANTCREAT, "%s: %s", m->path, strerror(errno));
	}
	if (code != GT_OK) {
		gt_metrics_close(m);
		return code;
	}
	*out = m;
	return GT_OK;
}

void gt_metrics_close(struct gt_metrics_file *m)
{
	if (m && m->fd >= 0)
		close(m->fd);
	free(m);
}

static void put_scores(struct gt_json *j, const struct gt_scores *s)
{
	gt_json_double(j, "loss", s->loss, 9);
	gt_json_double(j, "acc", s->acc, 9);
	gt_json_double(j, "top5", s->top5, 9);
	gt_json_int(j, "samples", s->samples);
}

static void put_result(struct gt_json *j, const struct gt_run_result *r)
{
	const char *const names[] = {"train", "valid", "test"};
	const struct gt_scores *const scores[] = {&r->train, &r->valid, &r->test};
	gt_json_double(j, "seconds", r->seconds, 6);
	gt_json_double(j, "samples_per_s", r->samples_per_s, 6);
	for (int i = 0; i < 3; i++) {
		if (!scores[i]->samples)
			continue;
		gt_json_object(j, names[i]);
		put_scores(j, scores[i]);
		gt_json_end(j);
	}
	if (!r->best_metric)
		return;
	gt_json_object(j, "best");
	gt_json_string(j, "metric", r->best_metric);
	gt_json_double(j, "value", r->best, 9);
	gt_json_int(j, "step", r->best_step);
	gt_json_int(j, "epoch", r->best_epoch);
	gt_json_end(j);
}

/* Scripts find "event" and "step" first, "time" last. */
static void format(struct gt_json *j, const struct gt_event *e)
{
	static const char *const names[] = {"start", "train", "eval", "checkpoint", "resume", "warn", "end", "skip", "epoch"};
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	gt_json_reset(j);
	gt_json_object(j, NULL);
	gt_json_string(j, "event", names[e->kind]);
	gt_json_int(j, "step", e->step);
	switch (e->kind) {
	case GT_EV_START:
		gt_json_int(j, "steps", e->steps);
		gt_json_int(j, "epochs", e->epochs);
		gt_json_string(j, "text", e->text);
		break;
	case GT_EV_TRAIN:
		gt_json_int(j, "epoch", e->epoch);
		gt_json_double(j, "loss", e->loss, 9);
		gt_json_double(j, "acc", e->acc, 9);
		gt_json_double(j, "lr", e->lr, 17);
		if (e->ngroups) {
			gt_json_array(j, "lr_groups");
			for (int i = 0; i < e->ngroups; i++)
				gt_json_double(j, NULL, e->lr_groups[i], 17);
			gt_json_end(j);
		}
		gt_json_double(j, "samples_per_s", e->samples_per_s, 6);
		if (e->loss_scale > 0)
			gt_json_double(j, "loss_scale", e->loss_scale, 9);
		break;
	case GT_EV_EVAL:
		gt_json_int(j, "epoch", e->epoch);
		gt_json_string(j, "split", e->split);
		put_scores(j, &e->scores);
		break;
	case GT_EV_EPOCH:
		gt_json_int(j, "epoch", e->epoch);
		put_scores(j, &e->scores);
		gt_json_double(j, "seconds", e->seconds, 6);
		gt_json_double(j, "samples_per_s", e->samples_per_s, 6);
		break;
	case GT_EV_CHECKPOINT:
	case GT_EV_RESUME:
		gt_json_string(j, "path", e->text);
		break;
	case GT_EV_WARN:
		gt_json_string(j, "text", e->text);
		break;
	case GT_EV_SKIP:
		gt_json_int(j, "epoch", e->epoch);
		gt_json_double(j, "loss_scale", e->loss_scale, 9);
		break;
	case GT_EV_END:
		gt_json_int(j, "epoch", e->epoch);
		gt_json_string(j, "status", e->text);
		if (e->result)
			put_result(j, e->result);
		break;
	case GT_EV_PHASE:
		break;
	}
	gt_json_double(j, "time", (double)now.tv_sec + 1e-9 * (double)now.tv_nsec, 13);
	gt_json_end(j);
}

enum gt_code gt_metrics_write(struct gt_metrics_file *m, struct gt_json *j, struct gt_event *ev, struct gt_err *err)
{
	const char *text;
	format(j, ev);
	GT_TRY(gt_json_finish(j, &text, err));
	ev->json = text;
	if (!m)
		return GT_OK;
	/* One write a line, so that a reader and a crash see whole lines. */
	size_t n = strlen(text);
	struct iovec part[2] = {{(void *)text, n}, {"\n", 1}};
	ssize_t w = writev(m->fd, part, 2);
	return w == (ssize_t)n + 1 ? GT_OK : gt_fail(err, GT_EIO, "%s: %s", m->path, w < 0 ? strerror(errno) : "short write");
}
