/* How many ranks a run has, who starts them, and which device each of them takes. */
#ifndef GT_RUN_RUN_RANKS_H
#define GT_RUN_RUN_RANKS_H

#include "conf/conf.h"
#include "gtrain.h"
#include "launch/world.h"
#include "store/ckpt.h"

struct gt_ranks {
	struct gt_world world;     /* this process, as it was started */
	bool launch;               /* it starts ranks, and is none */
	int nproc;                 /* of them, on this host */
	bool capture;              /* what rank 0 writes comes to opts->say, as "[rank 0] …" */
	int threads;               /* parallel.mode = "dp": ranks that are threads of the process that trains; else 1 */
	const char *token_file;    /* NULL: none */
};

/* GT_ECONFIG where mode and number contradict each other, GT_EUSAGE where the options do. */
enum gt_code gt_ranks_of(const struct gt_conf *c, const struct gt_run_opts *o, struct gt_ranks *out, struct gt_err *err);

/* Starts them, and returns when they have ended. dir: the run's, "" for none. from: the checkpoint that it goes on from, or NULL. */
enum gt_code gt_ranks_launch(const struct gt_ranks *r, const struct gt_conf *c, const char *dir, const struct gt_ckpt *from,
                             const struct gt_run_opts *o, struct gt_err *err);

/* The word for a rank's device: of several GPUs, each takes the one of its number on the host. */
const char *gt_rank_device(const char *word, const struct gt_world *w, char *buf, size_t size);

#endif
