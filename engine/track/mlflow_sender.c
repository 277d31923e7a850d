#include "track/mlflow_sender.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/fileio.h"
#include "base/shell_word.h"
#include "launch/signals.h"
#include "track/side_process.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TICK_S 0.1 /* seconds between two checks for signals while the ended run waits for the process */

struct gt_mlflow_sender {
	struct gt_side_process process;
	char dir[GT_PATH_SIZE];
	char text[4096]; /* output of the process: n bytes, of which the first `used` were returned */
	size_t n, used;
};

enum gt_code gt_mlflow_sender_start(const char *dir, struct gt_mlflow_sender **out, struct gt_err *err)
{
	char *argv[] = {"gtrain", "track", "--follow", "--quiet", "--color=never", "--", (char *)dir, NULL};
	struct gt_mlflow_sender *s = calloc(1, sizeof *s);
	*out = NULL;
	if (!s)
		return gt_fail_memory(err, sizeof *s);
	snprintf(s->dir, sizeof s->dir, "%s", dir);
	/* /proc/self/exe is the running program, even if the file was replaced */
	enum gt_code code = gt_side_start("/proc/self/exe", argv, NULL, true, &s->process, err);
	if (code)
		free(s);
	else
		*out = s;
	return code;
}

/* Returns the next complete line of the text, without the prefix "gtrain: "; NULL: no complete line. */
static const char *next_line(struct gt_mlflow_sender *s)
{
	static const char *const prefixes[] = {"gtrain: ", "warning: "};
	char *line = s->text + s->used, *nl = memchr(line, '\n', s->n - s->used);
	if (!nl)
		return NULL;
	*nl = '\0';
	s->used = (size_t)(nl + 1 - s->text);
	for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
		if (!strncmp(line, prefixes[i], strlen(prefixes[i])))
			line += strlen(prefixes[i]);
	return line;
}

const char *gt_mlflow_sender_trouble(struct gt_mlflow_sender *s)
{
	const char *line = next_line(s);
	if (line)
		return line;
	memmove(s->text, s->text + s->used, s->n - s->used);
	s->n -= s->used;
	s->used = 0;
	if (s->n == sizeof s->text) /* longer than any line of gtrain: discard it */
		s->n = 0;
	ssize_t got = s->process.out < 0 ? 0 : read(s->process.out, s->text + s->n, sizeof s->text - s->n);
	if (got > 0)
		s->n += (size_t)got;
	else if (!got)
		gt_fd_close(&s->process.out);
	return got > 0 ? next_line(s) : NULL;
}

void gt_mlflow_sender_finish(struct gt_mlflow_sender *s)
{
	gt_fd_close(&s->process.in);
}

void gt_mlflow_sender_end(struct gt_mlflow_sender *s, double wait_s, void (*warn)(void *user, const char *text), void *user)
{
	double end = gt_clock() + wait_s;
	char word[512], text[900];
	const char *line;
	int before = gt_signals_pending();
	gt_mlflow_sender_finish(s);
	while (s->process.out >= 0 && gt_clock() < end && gt_signals_pending() == before) {
		struct pollfd p = {.fd = s->process.out, .events = POLLIN};
		gt_poll(&p, 1, TICK_S);
		while ((line = gt_mlflow_sender_trouble(s)))
			warn(user, line);
	}
	snprintf(text, sizeof text, "process %ld still sends events to MLflow; `gtrain track %s` sends the rest after this process has ended",
	         (long)s->process.pid, gt_shell_word(s->dir, word, sizeof word));
	if (s->process.out >= 0)
		warn(user, text);
	else
		gt_side_kill(&s->process);
	gt_fd_close(&s->process.out);
	free(s);
}
