/* The ranks of a run: their number, the process that starts them, and the device of each. */
#ifndef GT_TRAIN_RUN_RANKS_H
#define GT_TRAIN_RUN_RANKS_H

#include "conf/conf.h"
#include "gtrain.h"
#include "launch/world.h"
#include "store/ckpt.h"

struct gt_ranks {
	struct gt_world world;     /* rank and world of this process, from its environment */
	bool launch;               /* this process starts ranks and is not a rank itself */
	int nproc;                 /* number of ranks on this host */
	bool capture;              /* pass the output of rank 0 to opts->say, as "[rank 0] …"; a signal that arrives after the last step is a
	                              failure, too */
	int threads;               /* parallel.mode = "dp": number of ranks that are threads of the process; else 1 */
	const char *token_file;    /* file with the authentication token for ranks on several hosts; NULL: none */
};

/* Fills *out. GT_ECONFIG: parallel.mode and the number of ranks contradict each other. GT_EUSAGE: the options contradict each other. */
enum gt_code gt_ranks_of(const struct gt_conf *c, const struct gt_run_opts *o, struct gt_ranks *out, struct gt_err *err);

/* Starts the ranks and returns when they have ended. dir: directory of the run; "": the run has none. from: the checkpoint from which the
 * run resumes; NULL: the run is new. */
enum gt_code gt_ranks_launch(const struct gt_ranks *r, const struct gt_conf *c, const char *dir, const struct gt_ckpt *from,
                             const struct gt_run_opts *o, struct gt_err *err);

/* Changes a config so that one rank can use its model, for any parallel mode of the training. Otherwise settings for several ranks, such as
 * parallel.replicas and parallel.cuts, would be refused. */
void gt_ranks_use_one(struct gt_conf *c);

/* Returns the device of a rank for the config's device `word`. With several ranks on a host, "cuda" and "auto" become "cuda:N", where N is
 * the rank's number on the host, modulo the number of GPUs; without a GPU, word stays as it is. */
const char *gt_rank_device(const char *word, const struct gt_world *w, char *buf, size_t size);

#endif
