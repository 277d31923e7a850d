/* The public interface of the engine, and the only engine header that cli/ includes. No function prints or exits; long calls report their
 * progress to an observer. Every function that can fail returns an exit code (base/err.h) and fills err with one sentence.
 *
 *     struct gt_conf *c;
 *     GT_TRY(gt_conf_load("fmnist_mlp.cfg", NULL, 0, &c, err));
 *     struct gt_run_opts opts = {.observe = print_event};
 *     GT_TRY(gt_run(c, &opts, err));
 *     gt_conf_free(c);
 *
 *     cli/ --> gt_conf_load --> gt_check, gt_plan_text        what a run would do
 *                           --> gt_run, gt_resume, gt_smoke   training; events --> observer
 *                           --> gt_bench                      timing
 *     checkpoint --> gt_eval, gt_predict, gt_inspect, gt_export
 */
#ifndef GT_GTRAIN_H
#define GT_GTRAIN_H

#include "base/problems.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The parallel modes: the words of parallel.mode and --mode, in the order of enum gt_mode (conf/conf.h). */
#define GT_MODES "single|dp|ddp|zero|pipe"

struct gt_conf; /* a loaded, checked config (conf/conf.h) */
/* Loads and checks a config file. sets: nsets settings "KEY=VALUE", as for --set. The caller frees *out with gt_conf_free. */
enum gt_code gt_conf_load(const char *path, const char *const *sets, int nsets, struct gt_conf **out, struct gt_err *err);
/* The same; if it returns GT_ECONFIG, errors holds all errors of the config, sorted by line, and err the first of them. */
enum gt_code gt_conf_load_all(const char *path, const char *const *sets, int nsets, struct gt_problems *errors, struct gt_conf **out,
                              struct gt_err *err);
void gt_conf_free(struct gt_conf *c);
/* Number of ranks on a host that the config requests; 1 if it leaves the number to the machine. */
int gt_conf_world(const struct gt_conf *c);

/* ---- configs that come with gtrain ------------------------------------------------------------------------------------------ */
struct gt_bundled {
	const char *name, *path; /* "fmnist_mlp.cfg"; path of the file */
	const char *dataset;     /* data.name */
	const char *summary;     /* the first sentence of the comment at its beginning */
};
/* Lists all of them, sorted by name, in arena memory. GT_ENOINPUT: they are not installed. */
enum gt_code gt_bundled_list(struct gt_arena *a, struct gt_bundled **rows, int *n, struct gt_err *err);
/* Finds the path of the config with this name, with or without ".cfg", in arena memory; NULL: there is none. */
enum gt_code gt_bundled_find(struct gt_arena *a, const char *name, const char **path, struct gt_err *err);

/* ---- schema, for --set completion and the manual ------------------------------------------------------------------------- */
struct gt_schema_key {
	const char *path;    /* "train.optimizer.lr", "model.layers[].conv2d.kernel" */
	const char *type;    /* "int", "float", "bool", "string", "int[]", "a|b|c" for an enumeration */
	const char *def;     /* default as written in a config, or in words in parentheses; "": the key is required */
	const char *range;   /* allowed values: "0..", "(0, 1]"; "": any */
	const char *help;    /* one sentence on the key */
};
/* Calls fn for every key, including layer attributes, in the order of the manual. */
void gt_schema_each(void (*fn)(void *user, const struct gt_schema_key *key), void *user);

/* ---- run and resume ------------------------------------------------------------------------------------------------------- */
enum gt_event_kind { GT_EV_START, GT_EV_TRAIN, GT_EV_EVAL, GT_EV_CHECKPOINT, GT_EV_RESUME, GT_EV_WARN, GT_EV_END,
	GT_EV_SKIP,  /* fp16: gradients overflowed and the step was not applied; step: the number that it would have had */
	GT_EV_EPOCH, /* an epoch of training is complete; its evaluations, if any, follow */
	GT_EV_PHASE, /* progress of an evaluation or of a save, in text and share; never a line of metrics.jsonl */
	GT_EV_COMPLETE /* a resume of a run that is already complete; text says so and how to prolong it. There are no other events then */ };

/* Mean loss; fractions (0 ... 1) of samples whose target is the largest output, and is among the five largest outputs. */
struct gt_scores {
	double loss, acc, top5;
	int64_t samples; /* number of samples; 0: nothing was measured */
};
struct gt_run_result {
	double seconds;       /* time of training, over all resumes */
	double samples_per_s; /* of the steps of this session, without evaluations and checkpoints */
	struct gt_scores train, valid, test; /* train: the last epoch as far as it went; others: the last evaluation of this session */
	const char *best_metric; /* checkpoint.best.metric; NULL: none, or not evaluated so far */
	double best;          /* best value of that metric */
	int64_t best_step, best_epoch; /* optimizer steps done when it was measured; its epoch, from 1 */
	double peak_acc;      /* highest accuracy of all evaluations of test, or of valid if there is no test split; over all resumes */
	int64_t peak_epoch;   /* epoch of that evaluation, from 1; 0: no evaluation had an accuracy */
};

/* An event of a run. A field whose comment begins with kinds of events is set for these kinds only. */
struct gt_event {
	enum gt_event_kind kind;
	int64_t step, steps;   /* optimizer steps done; steps of the whole run */
	int64_t epoch, epochs; /* epoch of the last step done, from 1, 0 if no step is done; epochs of the run, 0 if train.steps ends it */
	double loss, lr;       /* TRAIN: mean loss of the batch; learning rate */
	double acc;            /* TRAIN: accuracy on the batch; NAN if no sample counts */
	struct gt_scores scores; /* EVAL, EPOCH */
	const struct gt_run_result *result; /* END */
	double share;          /* PHASE: share that is done, 0 ... 1 */
	const double *lr_groups; /* TRAIN: learning rates of train.groups, in their order; 0 for frozen groups */
	int ngroups;           /* TRAIN: entries of lr_groups */
	double samples_per_s;  /* TRAIN, EPOCH: over the most recent steps */
	/* seconds: EPOCH: duration of the epoch in this session. eta_s: TRAIN: seconds until the end of the run, including evaluations; 0: not
	 * known yet. */
	double seconds, eta_s;
	double loss_scale;     /* TRAIN, SKIP: the loss scale of fp16 after the step; 0: none */
	const char *split;     /* EVAL, PHASE: name of the split */
	/* START: one line on what runs. WARN: the warning. RESUME, CHECKPOINT: the path. END: "ok", "signal", ... PHASE: "evaluating" (split
	 * names the split), "saving a checkpoint". */
	const char *text;
	/* the line of metrics.jsonl that this event wrote; NULL: none (every step is a TRAIN event, but not every one a line) */
	const char *json;
};
typedef void (*gt_observer)(void *user, const struct gt_event *ev);

struct gt_rank_link;

struct gt_run_opts {
	const char *out;       /* overrides the config's checkpoint.dir; NULL: the config's */
	const char *device;    /* overrides the config's device; NULL: the config's */
	const char *init;      /* safetensors file with the initial weights; NULL: none */
	bool dry;              /* make all checks that a run makes before its first step, then end; create or change no file */
	double time_limit_s;   /* save a checkpoint and end after this number of seconds; 0: no limit */
	int nproc;             /* number of ranks on this host; 0: the config's */
	int nnodes, node_rank; /* number of hosts, each with that number of ranks, and number of this host, from 0; nnodes 0: one host */
	const char *master_addr; /* with nnodes > 1: address of the host of rank 0 */
	int master_port;       /* its port; 0: 29500 */
	const char *token_file; /* file with 64 hexadecimal digits, the same on every host; NULL: $GTRAIN_TOKEN_FILE */
	int max_restarts;      /* number of restarts from the newest checkpoint after failures that may be transient */
	char *const *argv;     /* arguments of this process, NULL-terminated, with which ranks are started; NULL: no ranks can be started */
	/* For restarts, both without operand and time limit: the arguments that start the same run again (NULL: the run is a `gtrain resume`),
	 * and those that resume from a checkpoint (NULL: no restarts). */
	char *const *run_argv;
	char *const *resume_argv;
	struct gt_rank_link *link; /* from gt_rank_open; NULL: this process is no rank of a launcher */
	gt_observer observe;   /* receives the events; NULL: none. With several ranks it is called in the process of rank 0 */
	/* Called in the process that supervises ranks, with a line that a rank wrote or a message on a restart; NULL: not called. */
	void (*say)(void *user, const char *line);
	void *user;            /* first argument of observe and say */
};
/* gt_run trains a config; gt_resume continues a run. If the config or the options request several ranks and nothing else has started them,
 * both execute the program again once for each rank and supervise these processes (launch/launcher.h). A signal ends both with code 128+n
 * after a checkpoint. */
enum gt_code gt_run(struct gt_conf *c, const struct gt_run_opts *o, struct gt_err *err);
/* path: a run directory, or a checkpoint in one, which selects its run and step. from: "latest", "best", a step number, or NULL: the
 * checkpoint that path names, else the latest. Going back to an earlier checkpoint changes nothing in the directory until the first new
 * checkpoint is committed; the later ones then move to <dir>/history-<n>. */
enum gt_code gt_resume(const char *path, const char *from, const char *const *sets, int nsets, const struct gt_run_opts *o,
                       struct gt_err *err);

/* Results of a smoke test so far. A comment in quotes names the phase that sets a field. Strings are valid until gt_smoke returns. */
struct gt_smoke {
	const char *phase;       /* the phase that has ended: "plan", "train", "evaluate", "checkpoint", "resume", "compare" */
	double seconds;          /* duration of this phase */
	const char *name, *mode, *precision; /* of the config */
	int ranks, config_ranks; /* number of ranks of the test and of the config; config_ranks 0: auto */
	int64_t batch, config_batch, samples; /* batch of the test and of the config; maximum number of samples of each split, 0: all */
	int64_t steps, saved;    /* steps of the uninterrupted run; the step from which the resumed run continues */
	const char *data;        /* where the data was found, or what replaces it */
	bool synthetic;          /* the data is generated from the seed, because the config's data was not found */
	const char *why;         /* with synthetic: the reason */
	const char *start;       /* "train": the first line of the run: parameters, device, ranks */
	double first_loss, last_loss; /* "train": loss of the first and of the last step */
	char split[16];          /* "evaluate": the last split that was evaluated */
	double loss, acc;        /* "evaluate": its scores */
	uint64_t bytes;          /* "checkpoint": size of one checkpoint */
	const char *model, *optimizer; /* "compare": digests of the two files, equal after both runs; optimizer NULL: the checkpoint has none */
};
/* The smoke test runs gt_run and gt_resume in separate processes: a few steps, an evaluation, checkpoints; then a resume from the earlier
 * checkpoint, which must end with the same bits. run/smoke_plan.h describes how the config is reduced. It uses these fields of o: out
 * (kept; NULL: a temporary directory, which is removed), device, init, nproc, say, user, and run_argv and resume_argv, which must make a
 * rank write its events as JSON and nothing else. tell: called after each phase, with o->user. GT_EFAIL: the resumed run ended with
 * different bits; otherwise the code of the phase that failed. */
enum gt_code gt_smoke(struct gt_conf *c, const struct gt_run_opts *o, void (*tell)(void *user, const struct gt_smoke *s),
                      struct gt_err *err);

/* The connection of a rank to the launcher that started it; main() calls gt_rank_open first. *out NULL: this process is no rank of a
 * launcher. A rank reports the error with which it will exit through gt_rank_report_error instead of printing it; the launcher prints
 * it. */
enum gt_code gt_rank_open(struct gt_rank_link **out, struct gt_err *err);
void gt_rank_report_error(struct gt_rank_link *l, enum gt_code code, const char *sentence);
void gt_rank_close(struct gt_rank_link *l);

/* ---- look before running -------------------------------------------------------------------------------------------------- */
struct gt_check_layer {
	const char *name, *type;
	char shape[96];          /* shape of the output, for one batch */
	int64_t params;          /* number of elements of its parameters */
	double flops;            /* of a forward pass over one batch */
};
struct gt_check_memory {
	const char *arena;       /* "parameters", "gradients", "optimizer state", "activations", ... */
	uint64_t bytes, least;   /* on the rank that needs the most memory over all arenas, and on the rank that needs the least */
	bool common;             /* all ranks of a host share one copy */
};
/* Communication of a rank in one optimizer step, of one kind in one group. */
struct gt_check_traffic {
	const char *kind, *group; /* "all_reduce", "send"; "world", "data" (ranks with the same part of the model), "pipe" */
	int64_t calls;            /* number of calls */
	/* Bytes that the rank sends with an algorithm that sends the fewest bytes. For n bytes on W ranks: all_reduce 2 n (W - 1) / W,
	 * reduce_scatter and all_gather n (W - 1) / W, broadcast n. */
	uint64_t bytes;
};
struct gt_check_rank {
	int copy, pipe_rank;          /* number of its copy of the model; number of the rank within the copy, 0 except in a pipeline */
	uint64_t *memory, total;  /* [nmemory]: bytes of each arena; their sum */
	int steps;                /* number of program steps in an optimizer step */
	int64_t samples;          /* samples that it reads in an optimizer step */
	double flops;             /* in an optimizer step */
	struct gt_check_traffic *traffic;
	int ntraffic;
	uint64_t sent;            /* bytes that it sends in an optimizer step */
};
/* A bucket: consecutive parameters whose gradients are communicated together, in the order in which the backward pass completes them. */
struct gt_check_bucket {
	int pipe_rank;                /* number, within each copy of the model, of the rank that holds it */
	bool learned;             /* false: frozen parameters, which have no gradients */
	const char *first, *last; /* names of its first and last parameter */
	int nparams;
	uint64_t bytes, shard;    /* size of one value of each parameter; size of one rank's shard of it, 0 if it is not sharded */
};
/* The ranks first ... last, among those that share a bucket, hold parts of a parameter. */
struct gt_check_owner {
	const char *name;         /* of the parameter */
	int bucket, first, last;  /* number of the bucket; ranks */
};
struct gt_check_stage {
	int pipe_rank;                /* number, within each copy of the model, of the rank that runs it */
	const char *first, *last; /* names of its first and last layer */
	int nlayers;
	int64_t params;           /* number of elements of its parameters */
	double share;             /* its share of the FLOPs of a step, 0 ... 1 */
	int slots;                /* number of micro-batches whose activations it keeps at the same time */
};
struct gt_check_group {      /* an entry of train.groups */
	const char *match;       /* its patterns, "*.norm1.bias, *.norm2.bias" */
	bool frozen;             /* its parameters are not trained */
	bool frozen_stats;       /* its batch normalisations do not update their running statistics */
	double lr[5];            /* as in gt_report.lr */
};
struct gt_report {
	const char *name, *device, *mode, *precision;
	struct gt_check_layer *layers;
	int nlayers;
	struct gt_check_memory *memory;
	int nmemory;
	int64_t params, buffers;             /* number of elements of parameters and of buffers */
	int64_t outputs;                     /* number of values of the model's output for one sample */
	double flops_forward, flops_train;   /* for one sample */
	int64_t train_samples, valid_samples, test_samples; /* -1: not known, the data was not found */
	int64_t batch, micro_batch, steps_per_epoch, steps, world; /* batches are of all ranks; steps are optimizer steps */
	int64_t part;                        /* samples of a micro-batch for which the layers' shapes are given: those of the first rank */
	/* the ranks */
	int copies;                          /* of the model */
	struct gt_check_rank *ranks;         /* [world] */
	int largest, smallest;               /* the ranks that need the most and the least memory */
	struct gt_check_bucket *buckets;     /* of the ranks of the first copy */
	int nbuckets;
	const char *sync;                    /* how copies of the model make one update: "all_reduce", "rank0_update", "sharded_update",
	                                        "factored_update"; "": there is one copy */
	const char *sharded;                 /* what of the buckets is sharded: "optimizer state, gradients"; "": nothing */
	struct gt_check_owner *owners;       /* owners of parameters, if something is sharded */
	int nowners;
	struct gt_check_stage *stages;       /* of a pipeline */
	int nstages;
	/* Costs by which the model was partitioned: "computed"; "measured", which only a run does, so that this partition follows computed
	 * costs; "by hand". */
	const char *balance;
	const char *grid;                    /* schedule of a pipeline as text, one line for each rank; NULL: no pipeline */
	/* share of time that pipeline ranks are idle, 0 ... 1: by FLOPs; if all stages took equally long */
	double bubble, even;
	int64_t collectives, transfers;      /* of all ranks in an optimizer step; each of them has its partners */
	double lr[5];                        /* learning rate at 0, 25, 50, 75, 100 % of the run; NAN: the length of the run is not known */
	struct gt_check_group *groups;
	int ngroups;
	const char *data;                    /* where the data was found, or why it was not */
	struct gt_problems warnings;         /* sorted by line; in the report's arena */
	struct gt_arena *arena;              /* owns the report's memory */
};
/* Plans a run and reports on it. device: plan with the kernels of this device; NULL: plan on paper. world: number of ranks; 0: the number
 * that the config requests, 1 if it leaves the number to the machine. The caller frees *out with gt_report_free. */
enum gt_code gt_check(struct gt_conf *c, const char *device, int world, struct gt_report **out, struct gt_err *err);
/* Adds to r->warnings the reasons why a run of the report's config would fail on this machine, each with the code with which it would
 * end. */
enum gt_code gt_check_machine(struct gt_conf *c, const char *device, struct gt_report *r, struct gt_err *err);
void gt_report_free(struct gt_report *r);

/* Prints the step list of one rank to *out, which is malloc'ed; the caller frees it. json: one JSON object a line. device, world: as in
 * gt_check. */
enum gt_code gt_plan_text(struct gt_conf *c, const char *device, int world, int rank, bool json, char **out, struct gt_err *err);

/* ---- use of a checkpoint ---------------------------------------------------------------------------------------------------- */
struct gt_eval_result {
	char split[16];
	int64_t samples;
	double loss, acc, top5, seconds; /* scores as in gt_scores; duration of the evaluation */
	int64_t step;                    /* optimizer steps done in the checkpoint */
};
/* Evaluates a checkpoint on a split. ckpt: a run directory (selects its best checkpoint, else the latest) or a step-... directory. */
enum gt_code gt_eval(const char *ckpt, const char *split, const char *device, const char *const *sets, int nsets,
                     struct gt_eval_result *out,
                     struct gt_err *err);

struct gt_prediction {
	const char *file;
	const char *error;  /* why the image cannot be classified; NULL: it was classified */
	int64_t index;      /* number of the image in the file, from 0 */
	bool scaled;        /* the image had another size than the model's input and was scaled */
	int n;              /* entries of top */
	struct { int label; double p; const char *name; } top[10]; /* the most probable classes: number, probability, name */
};
/* Classifies images and calls fn for each. top: number of classes for each image. If one of several files cannot be read, fn receives its
 * error, the other files are classified, and the result is GT_EDATA. The error of a single file is returned itself. */
enum gt_code gt_predict(const char *ckpt, const char *const *files, int nfiles, int top, const char *device,
                        void (*fn)(void *user, const struct gt_prediction *p), void *user, struct gt_err *err);

struct gt_inspect_tensor {
	const char *file, *name, *dtype;
	char shape[96];
	uint64_t bytes;
};
struct gt_inspect {
	char path[512];
	int64_t format, step, epoch, world;
	const char *name;
	double seconds;     /* time of training, over all resumes */
	bool has_best;      /* the run had a best result at that time */
	const char *best_metric; /* checkpoint.best.metric; NULL: not known, the checkpoint is of an earlier version */
	double best;        /* best value of that metric */
	int64_t best_step, best_epoch; /* step and epoch (from 1) of the best result; best_epoch -1: not known, as best_metric */
	bool verified;      /* every digest was recomputed and matched */
	struct gt_inspect_tensor *tensors;
	int ntensors;
	struct gt_arena *arena;
};
/* Describes a checkpoint. verify: recompute and compare all digests. The caller frees *out with gt_inspect_free. */
enum gt_code gt_inspect(const char *ckpt, bool verify, struct gt_inspect **out, struct gt_err *err);
void gt_inspect_free(struct gt_inspect *r);

/* Copies model.safetensors of a checkpoint to path, atomically. */
enum gt_code gt_export(const char *ckpt, const char *path, struct gt_err *err);

/* ---- machine -------------------------------------------------------------------------------------------------------------- */
struct gt_device_row {
	char backend[16];
	char id[32], name[128], detail[256];
	uint64_t bytes;     /* size of its memory */
	bool usable;        /* false: name is empty, and detail says why the backend has no device */
};
/* Lists the devices of all backends in at most cap rows. A backend without devices gets one row with usable = false. *n: number of rows. */
enum gt_code gt_devices(struct gt_device_row *rows, int cap, int *n, struct gt_err *err);

struct gt_bench_row {
	char op[48], layer[64], impl[64];
	double ms, gflops, share; /* milliseconds in one step; speed; share of the step's time, 0 ... 1 */
};
struct gt_bench_rank {
	int copy, pipe_rank;          /* as in gt_check_rank */
	double step_ms, wait_ms;  /* milliseconds of a step; those of it in communication, waiting for other ranks and moving bytes */
};
struct gt_bench_stage {      /* a stage of a pipeline, for one micro-batch */
	int pipe_rank;                /* number, within each copy of the model, of the rank that runs it */
	const char *first;        /* name of its first layer */
	double forward_ms, backward_ms, weights_ms; /* weights: weight gradients, if a zero-bubble schedule separates them from backward */
};
struct gt_bench {
	struct gt_bench_row *rows; /* of rank 0's kernels */
	int nrows;
	double step_ms, samples_per_s, gflops, peak_mb; /* peak_mb: peak resident memory of the process, in MB */
	const char *device;
	struct gt_bench_rank *ranks; /* if there are several ranks */
	int nranks;
	double wait;               /* mean over the ranks of the share of a step in communication, 0 ... 1 */
	struct gt_bench_stage *stages; /* of a pipeline */
	int nstages, micros;       /* micros: number of micro-batches of a step */
	/* of a pipeline: wait predicted by its schedule, with the measured stage times; if all stages took equally long */
	double bubble, even;
	struct gt_arena *arena;
};
/* Times the kernels and steps of a config. It uses these fields of o: device, nproc, argv, link, say. Ranks are started as by gt_run, and
 * all of them call it. Only rank 0 gets a result; on the other ranks, and in the process that started them, *out is NULL. */
enum gt_code gt_bench(struct gt_conf *c, const struct gt_run_opts *o, int steps, struct gt_bench **out, struct gt_err *err);
void gt_bench_free(struct gt_bench *b);

/* Downloads a dataset. dir: NULL for the user's cache. base_url: NULL for the known mirrors. progress: called with the bytes of a file so
 * far and in total (0: not known); NULL: not called. */
enum gt_code gt_fetch(const char *dataset, const char *dir, const char *base_url,
                      void (*progress)(void *user, const char *file, uint64_t done, uint64_t total), void *user, struct gt_err *err);
/* Name i, from 0, of the datasets that gt_fetch knows; NULL after the last one. */
const char *gt_fetch_name(int i);

#endif
