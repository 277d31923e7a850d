/* The ranks of a command other than run and resume: starts them if necessary, opens a session on each, and calls a function with it.
 *
 *     struct gt_rank_session r = {.conf = c, .opts = o, .spec = {.train = true}, .start = "a benchmark", .body = measure, .user = &job};
 *     GT_TRY(gt_rank_session_run(&r, err));
 *     if (job.result)  ...                 body has run in this process, and this was rank 0 */
#ifndef GT_TRAIN_RANK_SESSION_H
#define GT_TRAIN_RANK_SESSION_H

#include "session/session.h"

struct gt_rank_session {
	struct gt_conf *conf;
	const struct gt_run_opts *opts;  /* options of the command, of which device, nproc, argv, link and say are used */
	struct gt_session_spec spec;     /* the programs of the session; conf, team, device and data are set for each rank */
	const char *start;               /* description of the starting point; must be the same on all ranks */
	/* Called on each rank with its session, which is closed afterwards. */
	enum gt_code (*body)(void *user, struct gt_session *s, struct gt_err *err);
	void *user;                      /* first argument of body */
	const struct gt_session_files *data;   /* set by gt_rank_session_run: data that ranks share if they are threads; else NULL */
};

/* Returns when body has returned on all ranks of this process, or when the processes of the ranks have ended. */
enum gt_code gt_rank_session_run(struct gt_rank_session *r, struct gt_err *err);

#endif
