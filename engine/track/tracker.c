#include "track/tracker.h"
#include "track/log_command.h"
#include "base/arena.h"
#include <stdlib.h>

struct gt_tracker {
	struct gt_log_command *command; /* NULL: log.command = "" */
};

enum gt_code gt_tracker_start(const struct gt_conf *c, const char *dir, struct gt_tracker **out, struct gt_err *err)
{
	*out = NULL;
	if (!*c->log.command)
		return GT_OK;
	struct gt_tracker *t = calloc(1, sizeof *t);
	if (!t)
		return gt_fail_memory(err, sizeof *t);
	enum gt_code code = gt_log_command_start(c->log.command, dir, &t->command, err);
	if (code)
		free(t);
	else
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
	return t && t->command ? gt_log_command_trouble(t->command) : NULL;
}

void gt_tracker_end(struct gt_tracker *t, double wait_s, void (*warn)(void *user, const char *text), void *user)
{
	char text[256];
	if (!t)
		return;
	if (t->command && gt_log_command_end(t->command, wait_s, text, sizeof text))
		warn(user, text);
	free(t);
}
