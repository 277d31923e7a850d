#include "track/log_command.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/descriptors.h"
#include "base/fileio.h"
#include "launch/signals.h"
#include "track/side_process.h"
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)4 << 20)
#define TICK_S 0.1 /* seconds between two checks for signals while the rest of the buffer is written */

struct gt_log_command {
	struct gt_side_process process;
	char *buffer;       /* [BUFFER_BYTES]; the bytes from `from` to `to` are not yet written to the pipe */
	size_t from, to;
	int64_t lines;      /* number of lines of the run */
	int64_t dropped;    /* lines that did not fit into the buffer */
	bool early;         /* the command has ended, or closed its standard input, before the run ended */
	bool said;          /* gt_log_command_trouble has returned its warning */
	char trouble[160];
};

enum gt_code gt_log_command_start(const char *command, const char *dir, struct gt_log_command **out, struct gt_err *err)
{
	char variable[GT_PATH_SIZE + 32], path[PATH_MAX];
	char *argv[] = {"sh", "-c", (char *)command, NULL};
	struct gt_log_command *c = calloc(1, sizeof *c);
	*out = NULL;
	if (!c || !(c->buffer = malloc(BUFFER_BYTES))) {
		free(c);
		return gt_fail_memory(err, BUFFER_BYTES);
	}
	snprintf(variable, sizeof variable, "GTRAIN_RUN_DIR=%s", *dir && realpath(dir, path) ? path : dir);
	enum gt_code code = gt_side_start("/bin/sh", argv, variable, false, &c->process, err);
	if (code) {
		free(c->buffer);
		free(c);
		return code;
	}
	*out = c;
	return GT_OK;
}

static void note_early_end(struct gt_log_command *c)
{
	char how[96];
	c->early = true;
	gt_fd_close(&c->process.in);
	c->from = c->to = 0;
	if (gt_side_wait(&c->process, 0.02)) /* wait: an ending process closes its pipes shortly before waitpid() reports its end */
		gt_side_end_text(&c->process, how, sizeof how);
	else
		snprintf(how, sizeof how, "closed its standard input");
	snprintf(c->trouble, sizeof c->trouble, "log.command %s; it gets no further events", how);
}

/* Writes as much of the buffer as the pipe takes. */
static void write_buffer(struct gt_log_command *c)
{
	while (c->from < c->to) {
		ssize_t n = write(c->process.in, c->buffer + c->from, c->to - c->from);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EPIPE)
			note_early_end(c);
		if (n <= 0)
			return;
		c->from += (size_t)n;
	}
}

/* Moves the unwritten bytes to the beginning of the buffer if this frees much. Moving megabytes for each line would delay the training. */
static void compact_buffer(struct gt_log_command *c)
{
	if (c->from < c->to && c->from < BUFFER_BYTES / 4)
		return;
	memmove(c->buffer, c->buffer + c->from, c->to - c->from);
	c->to -= c->from;
	c->from = 0;
}

void gt_log_command_write(struct gt_log_command *c, const char *line)
{
	size_t n = strlen(line);
	c->lines++;
	if (!c->early)
		write_buffer(c);
	if (!c->early && n + 1 > BUFFER_BYTES - c->to)
		compact_buffer(c);
	if (c->early || n + 1 > BUFFER_BYTES - c->to) {
		c->dropped++;
		return;
	}
	memcpy(c->buffer + c->to, line, n);
	c->buffer[c->to + n] = '\n';
	c->to += n + 1;
	write_buffer(c);
}

const char *gt_log_command_trouble(struct gt_log_command *c)
{
	if (!c->early || c->said)
		return NULL;
	c->said = true;
	return c->trouble;
}

/* Writes the rest of the buffer, at most until the time `end` or until a signal asks this process to end. */
static void drain_buffer(struct gt_log_command *c, double end)
{
	int before = gt_signals_pending();
	write_buffer(c);
	while (c->from < c->to && gt_clock() < end && gt_signals_pending() == before) {
		struct pollfd p = {.fd = c->process.in, .events = POLLOUT};
		gt_poll(&p, 1, TICK_S);
		write_buffer(c);
	}
}

static int64_t count_waiting(const struct gt_log_command *c)
{
	int64_t n = 0;
	for (size_t i = c->from; i < c->to; i++)
		n += c->buffer[i] == '\n';
	return n;
}

bool gt_log_command_end(struct gt_log_command *c, double wait_s, char *text, size_t size)
{
	double end = gt_clock() + wait_s;
	char how[96];
	drain_buffer(c, end);
	int64_t lost = c->dropped + count_waiting(c), lines = c->lines;
	gt_fd_close(&c->process.in);
	bool ended = gt_side_wait(&c->process, end - gt_clock()), failed = ended && c->process.status && !c->early;
	gt_side_end_text(&c->process, how, sizeof how);
	gt_side_kill(&c->process);
	if (lost && c->early)
		snprintf(text, size, "log.command ended early and did not get %lld of %lld events", (long long)lost, (long long)lines);
	else if (lost)
		snprintf(text, size, "log.command is too slow and did not get %lld of %lld events", (long long)lost, (long long)lines);
	else if (!ended)
		snprintf(text, size, "log.command did not end within %.0f s after the last event and was killed", wait_s);
	else if (failed)
		snprintf(text, size, "log.command %s", how);
	free(c->buffer);
	free(c);
	return lost || !ended || failed;
}
