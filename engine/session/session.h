/* Everything a command needs, built from a config and closed in reverse: device, data, graphs, plans, programs, loaders. */
#ifndef GT_SESSION_SESSION_H
#define GT_SESSION_SESSION_H

#include "conf/conf.h"
#include "exec/device.h"
#include "exec/exec.h"
#include "exec/loader.h"
#include "gtrain.h"
#include "par/strategy.h"
#include "session/optim.h"
#include "team/team.h"

enum gt_split_id { GT_TRAIN, GT_VALID, GT_TEST, GT_SPLITS };
extern const char *const gt_split_names[GT_SPLITS];
extern const char *const gt_precision_names[]; /* by enum gt_precision */

struct gt_session;
/* What to build. */
struct gt_session_spec {
	const struct gt_conf *conf; /* not owned; ranks that are threads share it */
	const struct gt_team *team; /* the ranks; not owned. NULL: there is one */
	int rank, world;         /* dry: of a world that is not there; 0, 0: one rank */
	const char *device;      /* instead of the config's; NULL */
	bool paper;              /* dry: no device is opened; the word says only which one the plan stands for */
	bool train;              /* programs of the optimizer step */
	bool eval[GT_SPLITS];    /* programs that evaluate these splits */
	int64_t predict;         /* > 0: a graph without loss for so many images, whose logits are read */
	const struct gt_dataset *data; /* [2]: what gt_session_read has read for the same spec; not owned. NULL: the session reads it for itself */
	/* Called when all sizes are known, before anything is allocated; may be NULL. */
	enum gt_code (*sized)(void *user, const struct gt_session *s, struct gt_err *err);
	void *user;
	bool dry;                /* plan only: data is probed, not read; nothing is allocated */
};

struct gt_eval_prog {
	struct gt_loader *loader;
	struct gt_prog full, tail;
	int64_t batch;        /* samples of full, of all ranks */
	int64_t nfull, ntail; /* executions of full; samples of tail (0: none) */
};

/* What a plan is for. n: samples; level, copy: of GRAD and BUFFER. idle: of a rank that has none of the samples, for what it must do all
 * the same (plan/syncbn.h); n is another rank's. all: samples of all ranks, where these normalise together. */
struct gt_plan_key {
	int64_t n, all;
	bool train, loss, accumulate, idle;
	int level, copy;
	int stage; /* mode pipe */
};

#define GT_PLANS 128
struct gt_session {
	const struct gt_conf *conf;
	bool sync_bn;                  /* parallel.sync_bn, and there are ranks to share statistics with */
	struct gt_arena *arena;
	struct gt_device device;
	const char *family;            /* "cpu", "cuda"; "null": a plan on paper, for either */
	bool queues;                   /* steps wait in streams of the device */
	const struct gt_team *team;
	const struct gt_strategy *strategy;
	struct gt_place_of_rank at;
	struct gt_comm *lane[GT_LANES], *device_lane[GT_LANES]; /* of GT_GROUP_PIPE, from the second on */
	size_t pair_bytes;             /* of a pipeline: what waits from one stage to another; 0: none */
	struct gt_comm *split[GT_GROUP_COUNT];  /* groups of the hosts that were split off the team's */
	struct gt_comm *device_world, *device_group[GT_GROUP_COUNT]; /* those of devices with memory of their own */
	struct gt_loss_spec loss;
	struct gt_dataset data[2];
	bool borrows;                  /* data is somebody else's */
	void *resident[2][2];          /* images and labels as the device sees them */
	int64_t *index[GT_SPLITS];
	struct gt_view view[GT_SPLITS];
	const char *data_note;         /* dry: why the data is not here; NULL: it is */
	struct gt_space *space;
	struct gt_plan *plan[GT_PLANS]; /* and instances of them */
	struct gt_plan_key want[GT_PLANS];  /* what each is for */
	int nplans;
	struct gt_optim optim;
	struct gt_exec exec;

	int64_t learned;               /* elements of the whole model's parameters */
	int64_t batch, micro;          /* of all ranks: samples of a step, of a micro-batch */
	struct gt_batch_slice cut;             /* of a micro-batch: this rank's parts */
	int64_t units;                 /* parts of a step that this rank has */
	int keep;                      /* parts that it reads at once; 0: 1 */
	bool reads;                    /* mode pipe: it reads them at all */
	int lanes;                     /* mode pipe: gt_attr_comm.lane is below it */
	int *stage_of;                 /* mode pipe: of each layer; NULL before the first plan */
	int *home;                     /* mode pipe: the stage of each parameter */
	struct gt_ending *ending;      /* mode pipe, deferred_bn: one a stage of this rank */
	bool measured;                 /* mode pipe: stage_of is by measured cost */
	int64_t samples;               /* of an epoch */
	int64_t steps_per_epoch, steps; /* optimizer steps; 0 where the data is not here and steps are counted in epochs */
	struct gt_loader *loader;
	struct gt_range rows;          /* with cut.factors: where its batches lie */
	struct gt_prog full, tail;     /* tail.n = 0: none */

	struct gt_eval_prog eval[GT_SPLITS];
	void (*watch)(void *user, double share); /* called as an evaluation advances; NULL */
	void *watch_user;
	struct gt_plan *predict;
};

enum gt_code gt_session_open(const struct gt_session_spec *spec, struct gt_session **out, struct gt_err *err);
void gt_session_close(struct gt_session *s);

/* gt_device_open; a failure of the config's own device names its place. */
enum gt_code gt_device_for(const struct gt_conf *c, const char *word, const struct gt_dev_opts *opts, struct gt_device *out, struct gt_err *err);

/* What products are computed in on a backend ("cpu", "cuda", "null"). GT_ECONFIG: the precision is not the backend's. */
enum gt_code gt_compute_dtype(const struct gt_conf *c, const char *backend, enum gt_dtype *out, struct gt_err *err);

/* The plan for something; made once. */
enum gt_code gt_session_plan(struct gt_session *s, const struct gt_plan_key *w, struct gt_plan **out, struct gt_err *err);

/* Refuses a checkpoint.best.metric that nothing measures: it would never be best. */
enum gt_code gt_session_check_best(const struct gt_session *s, struct gt_err *err);

/* Initial weights by the config's method and seed, buffers to their constants. */
enum gt_code gt_session_init(struct gt_session *s, struct gt_err *err);
/* Are all parameters and buffers finite? If not, GT_EDIVERGED with the name of the first that is not, the same on all ranks, which all call it
 * when nothing is queued. */
enum gt_code gt_session_finite(struct gt_session *s, int64_t step, struct gt_err *err);
/* After the master weights changed from outside: writes the 16-bit copies. */
enum gt_code gt_session_refresh(struct gt_session *s, struct gt_err *err);

/* fp16: gradients are computed of the loss times a scale (gt_scaler). */
bool gt_session_scales(const struct gt_session *s);
/* The scale, exact in f32, and the steps applied since it last changed. */
enum gt_code gt_session_set_scale(struct gt_session *s, double scale, int64_t good, struct gt_err *err);

/* Copies one tensor between the device and plain host memory; i: parameter or buffer, state: -1 the value itself, 0… an optimizer
 * state. plain has gt_tdesc_count elements. */
/* Where other ranks have parts of it (!gt_session_whole), all of them call get together, and rank 0 receives the whole. */
bool gt_session_whole(const struct gt_session *s, int i, int state);
enum gt_code gt_session_get(struct gt_session *s, int i, int state, void *plain, struct gt_err *err);
enum gt_code gt_session_put(struct gt_session *s, int i, int state, const void *plain, struct gt_err *err);
struct gt_tdesc gt_session_desc(const struct gt_session *s, int i); /* plain */

/* Evaluates a split: every sample once. */
enum gt_code gt_session_eval(struct gt_session *s, enum gt_split_id split, struct gt_scores *out, struct gt_err *err);
struct gt_scores gt_session_scores(const struct gt_metrics *m); /* acc and top5 NAN where no sample counts */

#endif
