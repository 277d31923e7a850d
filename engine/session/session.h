/* A session: everything that a command needs to train or evaluate one config on this rank. gt_session_open builds it from the config and
 * gt_session_close frees it in reverse order: device, data, graphs, plans, programs, loaders.
 *
 *     struct gt_session_spec spec = {.conf = conf, .team = team, .train = true, .eval[GT_TEST] = true};
 *     gt_session_open(&spec, &s, err);
 *     gt_session_init(s, err);                    or gt_state_load (train/state.h)
 *     ... run s->prog.full and s->prog.tail with s->exec and s->prog.loader (exec/exec.h) ...
 *     gt_session_eval(s, GT_TEST, &scores, err);
 *     gt_session_close(s);
 *
 *     config -> device, data -> graphs -> plans -> programs -> memory -> loaders
 */
#ifndef GT_SESSION_SESSION_H
#define GT_SESSION_SESSION_H

#include "conf/conf.h"
#include "exec/device.h"
#include "exec/exec.h"
#include "exec/loader.h"
#include "image/transform.h"
#include "plan/strategy.h"
#include "session/optim.h"
#include "store/data_facts.h"
#include "team/team.h"
#include "used_samples.h"

extern const char *const gt_precision_names[]; /* precisions as the config writes them, indexed by enum gt_precision */

struct gt_session;
struct gt_fitted;
struct gt_scores; /* base/public.h */

/* The data of a session: read_data.c. Ranks that are threads of one process share it. */
struct gt_session_files {
	struct gt_dataset set[GT_SPLITS]; /* the data of each split; empty if the session does not need it, or the split does not exist */
	int64_t *index[GT_SPLITS], count[GT_SPLITS]; /* with data.valid: indices in set[GT_TRAIN] of the samples of the splits "train" and
	                                                "valid", and their count; malloc'ed. NULL: the split has all samples of its dataset */
	struct gt_fitted *learned;       /* facts fitted to the training split (vocabulary, statistics); NULL: the format has no such facts */
	/* if `learned` is set: a dataset without samples that has the fields, targets and classes of all splits */
	struct gt_dataset like;
	uint64_t reading;                 /* if `learned` is set: maximum bytes of memory while the training split is converted */
	struct gt_skipped *skipped;       /* list of skipped texts and rows that cannot be read; NULL: unreadable samples are errors */
	struct gt_used_samples was;       /* the samples that the run of the checkpoint spec->ckpt used; empty without a checkpoint */
	/* in training: the samples that this run uses, for its checkpoints; used.listed is false if the samples have no ids */
	struct gt_used_samples used;
	struct gt_arena *memory;          /* memory of the data that was read from spec->ckpt; NULL: none */
	/* number of samples that keep the split of the checkpoint's run, although data.valid and seed would now select another split */
	int64_t stayed;
	struct gt_data_changes changes;   /* differences between the samples of this session and the samples of the checkpoint's run */
	/* number of samples of each split that are not evaluated, because the checkpoint's run was trained on them */
	int64_t left_out[GT_SPLITS];
	bool differs;                     /* samples were added, are missing or have changed since the run of the checkpoint */
	/* with spec->measure: number of measured samples that are in the training split of the checkpoint's run */
	int64_t trained;
	char changed[1024];               /* message about differences from the checkpoint's data and their consequences; "": none */
	bool wanted[GT_SPLITS];           /* the splits that the session uses, or reads to make another split; some may have no samples */
	bool missing[GT_SPLITS];          /* the split was not found in a dry session, which needs no data */
	char note[1024];                  /* reason why a split was not found; "": all splits were found */
	char index_note[700];             /* why the index of the data was not used or not written (data_index.h); "": nothing to say */
};

/* What gt_session_open builds. */
struct gt_session_spec {
	const struct gt_conf *conf; /* not owned; ranks that are threads of one process share it */
	const struct gt_team *team; /* the ranks of the run; not owned. NULL: there is one rank */
	/* in a dry session: the rank for which it plans, and the number of ranks, which need not run; both 0: one rank */
	int rank, world;
	const char *device;      /* overrides the key `device` of the config; NULL: not overridden */
	bool apart;              /* in a dry session: every rank is on a host of its own, so that ranks share no memory */
	bool paper;              /* in a dry session: open no device; `device` only names the kind of device for which the session plans */
	bool train;              /* make the programs of the optimizer step */
	bool eval[GT_SPLITS];    /* make the programs that evaluate these splits */
	bool or_valid;           /* with eval[GT_TEST]: evaluate the split "valid" if the data has no split "test" */
	/* > 0: build a graph without loss for this number of samples, for a caller that reads the logits; with `inference`, possibly for
	 * fewer samples (gt_session_programs.predict_batch) */
	int64_t predict;
	const struct gt_session_files *data; /* from gt_session_read_data for the same spec; not owned. NULL: the session reads the data */
	/* Called when all sizes are known and before memory is allocated; NULL: not called. An error ends gt_session_open. */
	enum gt_code (*sized)(void *user, const struct gt_session *s, struct gt_err *err);
	void *user;              /* first argument of sized */
	const struct gt_ckpt *ckpt; /* the checkpoint whose state the session will load; not owned. NULL: no checkpoint */
	const char *measure;     /* with eval[GT_TEST]: file or folder whose samples are all evaluated instead of the split test; NULL: none */
	/* "cpu" or "cpu:PRECISION": compare each call with the CPU's, which computes in this precision (against/against.h). GT_AGAINST_ROUNDING
	 * followed by a seed: add a random rounding error to each result instead. NULL: no comparison, no added errors */
	const char *against;
	bool samples_only;       /* the session makes no plans; it only delivers samples (gt_session_loader_open) */
	/* the session loads weights once and never saves them, so its plans may change them (gt_session_fold_norms) */
	bool inference;
	bool dry;                /* the session only plans: checks that the data exists but does not read it, allocates no device memory */
};

/* The programs that evaluate a split. */
struct gt_eval_prog {
	struct gt_loader *loader;
	struct gt_prog full, tail; /* the program of a full batch, and the program of the samples that remain after all full batches */
	struct gt_prog *shorter;   /* [lengths.n - 1]: the program of a full batch for each sequence length but the longest, which `full` has */
	int64_t batch;        /* number of samples of a full batch, over all ranks */
	int64_t nfull, ntail; /* number of full batches in the split; number of samples that `tail` evaluates, 0: no samples remain */
};

/* The properties that determine a plan. A session makes one plan for each different key. */
struct gt_plan_key {
	int64_t n;       /* number of samples of this rank; if `idle` is set: of a rank that has samples */
	int64_t length;  /* length to which sequences are padded; 0: the model reads no sequences */
	int64_t all;     /* number of samples on all ranks, if batch statistics cover all ranks (sync_bn) */
	bool train;      /* the plan has a backward pass, for the optimizer step */
	bool loss;       /* the plan computes the loss */
	bool accumulate; /* the plan adds parameter gradients to the gradients in memory instead of overwriting them */
	bool idle;       /* the plan is for a rank without samples, which takes part in the communication of the other ranks (plan/syncbn.h) */
	int level, copy; /* index of the copy of the arena GRAD, and index of the copy of the arena BUFFER, that the plan uses */
	int stage;       /* mode pipe: the stage of the model that the plan computes */
	int phase;       /* with train: 1 + index of the phase in which the plan is used (gt_train_phase); 0: outside of all phases */
};

/* Converts an output of the model to a predicted value: output * std + mean (data.normalize_target). */
struct gt_value_scale {
	double mean, std;
};

/* The data of a session and its splits, as the session uses them: read_data.c. */
struct gt_session_data {
	const struct gt_session_files *files; /* gt_session_spec.data, or `own` */
	struct gt_session_files own;    /* empty if the data belongs to the caller */
	/* the datasets of `files`, not owned; the split "valid" has no dataset if it is a part of the training data */
	struct gt_dataset set[GT_SPLITS];
	/* device addresses of the data of set[i]; NULL in a dry session, or if the samples of set[i] are read from files */
	struct gt_resident resident[GT_SPLITS];
	struct gt_view view[GT_SPLITS]; /* the samples of each split; n is 0 if it is not used, -1 if a dry session did not find the data */
	struct gt_model_input *input;   /* [conf->model.ninputs]: the model's inputs, with the shapes of the data */
	int input_column[GT_MAX_INPUTS]; /* index of the data column (gt_columns_of) of each input; 0: the images */
	struct gt_lengths lengths;      /* the lengths to which sequences are padded; n is 0 if the model reads no sequences */
	int sequences;                  /* if lengths.n > 0: index of the model's input that has the sequences */
	struct gt_data_facts facts;     /* facts of the training data, or of the checkpoint that was loaded (gt_state_load) */
	const struct gt_ckpt *ckpt;     /* gt_session_spec.ckpt */
	bool dry;                       /* gt_session_spec.dry */
	const char **value_name;        /* [nvalues]: names of the columns whose values the model predicts */
	struct gt_value_scale *value_scale; /* [nvalues] */
	int nvalues;                    /* number of columns whose values the model predicts; 0: targets are classes or labels */
	const char *facts_text;         /* text of data.json, which checkpoints contain; NULL: no such file */
	struct gt_transform_list train_list, eval_list; /* transforms of training samples, and of samples for evaluation and prediction */
	struct gt_mixing mixing;        /* how training samples are mixed in pairs (mixup, cutmix); classes: number of classes of the data */
	struct gt_skipped *skipped;     /* list of the unreadable samples, which are skipped; NULL: an unreadable sample ends the run */
	const char *note;               /* the reason why a dry session did not find the data; NULL: found */
};

/* How the samples of an optimizer step are divided among micro-batches and ranks: batch_partition.c. */
struct gt_batch_partition {
	int64_t size, micro;         /* samples of a step and of a micro-batch, over all ranks */
	struct gt_batch_slice slice; /* the parts of a micro-batch that this rank processes */
	int64_t units;               /* number of units (parts of micro-batches) that this rank processes in a step */
	int keep;                    /* number of parts of micro-batches that the loader keeps in memory for this rank at a time; 0 means 1 */
	int64_t samples;             /* number of samples in an epoch, over all ranks; 0: not known */
	/* optimizer steps of an epoch and of the run; 0 if the data is missing and the run is counted in epochs */
	int64_t steps_per_epoch, steps;
};

/* The communicators that a session opens in addition to its team's communicator (session_team.c). A pointer is NULL if the session does not
 * need that communicator. Programs use the communicators in gt_session.exec. */
struct gt_session_comm {
	struct gt_comm *split[GT_GROUP_COUNT];        /* communicators of groups of ranks on host memory, split from the team's communicator */
	/* [lane]: communicator of GT_GROUP_PIPE on host memory for the transfers of this lane (gt_attr_comm.lane); lane 0 uses split[] */
	struct gt_comm *lane[GT_LANES];
	struct gt_comm *device_world;                 /* communicator of all ranks on device memory, for GPUs that use NCCL */
	struct gt_comm *device_group[GT_GROUP_COUNT]; /* communicators of groups of ranks on device memory, for devices with their own memory */
	struct gt_comm *device_lane[GT_LANES];        /* as lane, on device memory; lane 0 uses device_group[] */
};

/* Mode pipe: the stages of the model: session_pipe.c. All zero in other modes. */
struct gt_session_pipe {
	int *stage_of;                  /* [layers]: index of each layer's pipeline stage; NULL before the first plan */
	int *home;                      /* [parameters]: index of each parameter's pipeline stage */
	bool reads;                     /* a stage of this rank reads images or labels, so the rank needs a loader */
	int lanes;                      /* number of transfer lanes; gt_attr_comm.lane is 0 ... lanes - 1; 0 means 1 */
	/* size in bytes of the buffer between two ranks for data that was sent and not yet received; 0: default */
	size_t pair_bytes;
};

#define GT_PLANS 1024 /* maximum number of plans in a session */
/* A phase of the run, in which some parameters are frozen that are trained in another phase (gt_optim_phase). */
struct gt_train_phase {
	int64_t begin, end;        /* the phase has the optimizer steps begin ... end - 1, from 0; 0 if the steps of an epoch are not known */
	struct gt_prog full, tail; /* the optimizer step in the phase; n is 0 in both if the run ends before the phase begins */
	struct gt_prog *shorter;   /* [lengths.n - 1]: the program of a full batch for each sequence length but the longest, which `full` has */
};
/* The plans of a session, and the programs that execute them: session_plan.c, session_programs.c. */
struct gt_session_programs {
	struct gt_plan *plan[GT_PLANS];        /* plans, and instances of plans (gt_plan_instance) */
	struct gt_plan_key plan_key[GT_PLANS]; /* [nplans]: the key of plan[i] */
	int nplans;                   /* 0 ... GT_PLANS */
	int64_t num_params;           /* number of trained elements of the whole model's parameters */
	struct gt_prog full, tail;    /* the optimizer step on a full batch and on an epoch's short last batch; tail.n = 0: no short batch.
	                                 They apply outside of all phases, and decide the layout even if phases cover the whole run */
	struct gt_train_phase *phase; /* [optim.nphases], in the order of time */
	struct gt_prog *shorter;      /* programs like `full`, but for the shorter lengths of sequences, as in gt_train_phase */
	int64_t length;               /* while programs are made: length of the sequences (gt_plan_key.length) for their plans */
	int building;                 /* while programs are made: phase of the run (gt_plan_key.phase) for their plans */
	struct gt_loader *loader;     /* loader of the training split; NULL without gt_session_spec.train and in a dry session */
	/* if ranks share the factors of weight gradients (gt_space_factored): location of the loader's batches in the arena GT_A_SHARED_ACT,
	 * which all ranks read */
	struct gt_range rows;
	struct gt_eval_prog eval[GT_SPLITS]; /* programs of the evaluations of each split; all zero for a split that is not evaluated */
	size_t fetched_bytes;         /* bytes of the buffers for fetched batches of all loaders; 0: the data is in memory */
	size_t decoding_bytes;        /* maximum bytes that the decoders of the threads which read samples allocate */
	struct gt_plan *predict;      /* the plan that gt_session_spec.predict requests; NULL: none */
	int64_t predict_batch;        /* number of samples of the plan `predict`; it may be below gt_session_spec.predict (cache_batch.h) */
	int64_t cached;               /* in an inference: largest number of samples that are computed at once; 0: not computed yet */
	const struct gt_graph *folded; /* the first graph, which decides the folded normalisations of all graphs; NULL: no graph yet */
};

struct gt_session {
	const struct gt_conf *conf;         /* not owned */
	struct gt_arena *arena;             /* memory of everything that exists as long as the session */
	const struct gt_team *team;         /* not owned; NULL: there is one rank */
	const struct gt_strategy *strategy; /* the strategy of parallel.mode */
	struct gt_rank_position at;         /* the position of this rank in the world */
	bool sync_bn;                       /* parallel.sync_bn is set and there are several ranks to share statistics */
	struct gt_loss_spec loss;           /* train.loss with its keys */
	struct gt_device device;            /* owned; closed last, except for the arena */
	const char *family;                 /* kind of device: "cpu", "cuda"; "null": a plan without a device, for either kind */
	/* a thread of the executor executes the communication stream (exec/comm_thread.h); in a dry session: it would in the run */
	bool overlaps;
	bool queues;                        /* the device executes steps asynchronously in streams, so the host need not wait for each step */

	struct gt_session_data data;
	struct gt_batch_partition batch;
	struct gt_session_pipe pipe;
	struct gt_session_programs prog;
	struct gt_session_comm comm;

	struct gt_optim optim;   /* the optimizer's calls; empty without gt_session_spec.train */
	struct gt_space *space;  /* owned: parameters, shards and memory of all plans */
	struct gt_exec exec;     /* executes the programs, with the communicators of the session */
	/* Called during an evaluation, on all ranks after the same batches, with its progress, 0 ... 1. A code other than GT_OK ends the
	 * evaluation; it must be the same on all ranks. NULL: not called. */
	enum gt_code (*watch)(void *user, double share, struct gt_err *err);
	void *watch_user;                        /* first argument of watch */
	/* Called after each batch of an evaluation, while the outputs of the batch are still in device memory and its labels in
	 * exec.loaded_batches. p: the program that has evaluated the batch. NULL: no function is called, so several batches may be queued. */
	enum gt_code (*after_batch)(void *user, const struct gt_prog *p, struct gt_err *err);
	void *after_batch_user;                  /* first argument of after_batch */
};

enum gt_code gt_session_open(const struct gt_session_spec *spec, struct gt_session **out, struct gt_err *err);
void gt_session_close(struct gt_session *s);

/* Opens a device as gt_device_open does. If the config's own device cannot be opened, the error names its file and line. */
enum gt_code gt_device_for(const struct gt_conf *c, const char *word, const struct gt_dev_opts *opts, struct gt_device *out,
                           struct gt_err *err);

/* Sets *out to the dtype in which a backend ("cpu", "cuda", "null") computes matrix products. GT_ECONFIG: the backend lacks the config's
 * precision. */
enum gt_code gt_compute_dtype(const struct gt_conf *c, const char *backend, enum gt_dtype *out, struct gt_err *err);

/* Returns GT_EUSAGE if word is "null" or "null:cuda", devices that only plan. word: as for gt_device_open, or NULL. */
enum gt_code gt_device_check_computes(const char *word, struct gt_err *err);

/* Returns whether the device computes in f32 because it lacks arithmetic in the config's precision (gt_devinfo.native). */
bool gt_computes_in_f32(const struct gt_conf *c, const struct gt_devinfo *info);

#define GT_AGAINST_ROUNDING "rounding"
/* Reads the argument of --against: sets *out to the precision of the CPU (enum gt_precision), or to -1 for that of the config. */
enum gt_code gt_against_precision(const char *word, int *out, struct gt_err *err);
/* Writes the comparison of a session with gt_session_spec.against to DIR/operations-RANK.jsonl (against/findings.h). */
enum gt_code gt_session_write_comparison(const struct gt_session *s, const char *dir, struct gt_err *err);
/* Makes s->device compare each call with the CPU's. word: the argument of --against. opts: options of s->device. */
enum gt_code gt_session_wrap_device(struct gt_session *s, const char *word, const struct gt_dev_opts *opts, struct gt_err *err);

/* Returns the plan for a key; the first call for a key makes it. The session owns it. */
enum gt_code gt_session_plan(struct gt_session *s, const struct gt_plan_key *w, struct gt_plan **out, struct gt_err *err);

struct gt_segments {
	struct gt_segment *at; /* in the arena of the session */
	int n;
};

/* Chooses the segments of the plan `w` with graph g (cache_batch.h): none where gt_session_cache_batch must not reduce the batch, if the
 * weights fit into the cache, and with views of each sample (test-time augmentation). */
enum gt_code gt_session_segments(struct gt_session *s, const struct gt_plan_key *w, const struct gt_graph *g, struct gt_segments *out,
                                 struct gt_err *err);

/* Returns the program of an optimizer step, from 0, with the longest sequences; tail: of a short last batch. *end: the first later step
 * with another program, or INT64_MAX. */
const struct gt_prog *gt_session_step_prog(const struct gt_session *s, int64_t step, bool tail, int64_t *end);
/* Sets *out to the program of the optimizer step on the samples from position `cursor` of `epoch` on, and *n to the number of steps with
 * this program, at most `most`. */
enum gt_code gt_session_next_prog(struct gt_session *s, int64_t step, int64_t epoch, int64_t cursor, int64_t most,
                                  const struct gt_prog **out, int64_t *n, struct gt_err *err);

/* Rejects a metric of checkpoint.best, train.early_stop or the schedule plateau that the run never measures. */
enum gt_code gt_session_check_metrics(const struct gt_session *s, struct gt_err *err);

/* session_fold.c: in a session with gt_session_spec.inference, changes the weights for the batch normalisations that its plans have folded
 * into other layers (gt_graph.fold). Call it once, after gt_state_load. */
enum gt_code gt_session_fold_norms(struct gt_session *s, struct gt_err *err);

/* Initialises parameters by the config's method and seed, and buffers to their constants. */
enum gt_code gt_session_init(struct gt_session *s, struct gt_err *err);
/* Checks that all parameters and buffers are finite. GT_EDIVERGED names the first non-finite tensor, the same on all ranks. All ranks call
 * it, while no step is queued on the device. */
enum gt_code gt_session_finite(struct gt_session *s, int64_t step, struct gt_err *err);
/* Rewrites the 16-bit copies of the weights. Call it after changing the master weights from outside the optimizer. */
enum gt_code gt_session_cast_weights(struct gt_session *s, struct gt_err *err);

/* Returns whether the loss is scaled before the backward pass (gt_scaler), as it is in precision fp16. */
bool gt_session_scales_loss(const struct gt_session *s);
/* Sets the loss scale, exact in f32, and the number of steps applied since it last changed. */
enum gt_code gt_session_set_scale(struct gt_session *s, double scale, int64_t good, struct gt_err *err);

/* gt_session_get copies one tensor from the device to plain host memory of gt_tdesc_count elements, and gt_session_put copies it back. i:
 * index of the parameter or buffer. state: -1 for the value itself, 0 ... for an optimizer state. gt_session_has_tensor returns whether
 * rank 0 holds the whole tensor. If it does not, all ranks must call gt_session_get together, and rank 0 receives the whole tensor. */
bool gt_session_has_tensor(const struct gt_session *s, int i, int state);
enum gt_code gt_session_get(struct gt_session *s, int i, int state, void *plain, struct gt_err *err);
enum gt_code gt_session_put(struct gt_session *s, int i, int state, const void *plain, struct gt_err *err);
/* With compressed gradients, each rank of a data group has rounding errors of its own. gt_session_residuals returns the number of these
 * ranks, or 0 if gradients are not compressed. gt_session_get_residual gathers on rank 0 the errors of parameter i on rank `copy` of the
 * data group; all ranks call it. gt_session_put_residual sets the errors of this rank. */
int gt_session_residuals(const struct gt_session *s);
enum gt_code gt_session_get_residual(struct gt_session *s, int i, int copy, void *plain, struct gt_err *err);
enum gt_code gt_session_put_residual(struct gt_session *s, int i, const void *plain, struct gt_err *err);
/* Returns shape and dtype of parameter or buffer i, in plain layout. */
struct gt_tdesc gt_session_desc(const struct gt_session *s, int i);

#define GT_EVAL_GIVEN_UP 200 /* not an exit code: gt_session.watch returns it to give up an evaluation and to keep the session */
/* Evaluates a split on every sample once. GT_EDIVERGED: the loss is NaN or infinite; the message names the first operation whose output is
 * not finite. GT_EVAL_GIVEN_UP: s->watch has returned this code; the session can go on training. */
enum gt_code gt_session_eval(struct gt_session *s, enum gt_split split, struct gt_scores *out, struct gt_err *err);
/* Sets *out to the dataset indices of the samples of a split, in the order of an evaluation: sequences of tokens are sorted by length. Call
 * it before the evaluation. The caller frees *out. */
enum gt_code gt_session_eval_order(const struct gt_session *s, enum gt_split split, int64_t **out, struct gt_err *err);
/* Returns how many of `samples` evaluated samples are counted in m. If the loss uses no classes, every sample is counted. */
int64_t gt_session_counted(const struct gt_session *s, const struct gt_metrics *m, int64_t samples);
/* Computes scores from the sums m; m->count must be the result of gt_session_counted. acc and top5 are NAN without classes or samples;
 * scores that need outputs are NAN. */
struct gt_scores gt_session_scores(const struct gt_session *s, const struct gt_metrics *m);

/* Returns whether the loss compares the outputs of each sample with one class, so that a prediction is right or wrong. */
bool gt_session_has_classes(const struct gt_session *s);
/* Returns whether the outputs predict the values of the columns data.value_name[], before scaling by data.value_scale[]. */
bool gt_session_predicts_numbers(const struct gt_session *s);
/* Returns the label that marks samples as ignored. */
int64_t gt_session_ignored_label(const struct gt_session *s);

#endif
