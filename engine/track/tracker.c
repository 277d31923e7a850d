#include "track/tracker.h"
#include "base/arena.h"
#include "base/clock.h"
#include "track/log_command.h"
#include "track/mlflow_sender.h"
#include <stdlib.h>

struct gt_tracker {
	struct gt_log_command *command;  /* NULL: log.command = "" */
	struct gt_mlflow_sender *mlflow; /* NULL: log.mlflow.uri = "" */
};

enum gt_code gt_tracker_start(const struct gt_conf *c, const char *dir, struct gt_tracker **out, struct gt_err *err)
{
	enum gt_code code = GT_OK;
	*out = NULL;
	if (!*c->log.command && !*c->log.mlflow.uri)
		return GT_OK;
	struct gt_tracker *t = calloc(1, sizeof *t);
	if (!t)
		return gt_fail_memory(err, sizeof *t);
	if (*c->log.command)
		code = gt_log_command_start(c->log.command, dir, &t->command, err);
	if (code == GT_OK && *c->log.mlflow.uri)
		code = gt_mlflow_sender_start(dir, &t->mlflow, err);
	*out = t;
	return code;
}

void gt_tracker_event(struct gt_tracker *t, const char *line)
{
	if (t && t->command)
		gt_log_command_write(t->command, line);
}

const char *gt_tracker_trouble(struct gt_tracker *t)
{
	const char *why = t && t->command ? gt_log_command_trouble(t->command) : NULL;
	return why || !t || !t->mlflow ? why : gt_mlflow_sender_trouble(t->mlflow);
}

void gt_tracker_end(struct gt_tracker *t, double wait_s, void (*warn)(void *user, const char *text), void *user)
{
	double end = gt_clock() + wait_s;
	char text[256];
	if (!t)
		return;
	if (t->mlflow)
		gt_mlflow_sender_finish(t->mlflow); /* before the wait for the log command, so that both trackers finish at the same time */
	if (t->command && gt_log_command_end(t->command, wait_s, text, sizeof text))
		warn(user, text);
	if (t->mlflow)
		gt_mlflow_sender_end(t->mlflow, end - gt_clock() + (wait_s < GT_TRACKER_WAIT_S ? 0 : 3), warn, user);
	free(t);
}
