/* gtrain's public face: the only header that cli/ includes. Nothing in here prints or exits; long calls report through an
 * observer. Every function returns an exit code (base/err.h) and fills err with one sentence. */
#ifndef GT_GTRAIN_H
#define GT_GTRAIN_H

#include "base/problems.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The parallel modes: the words of parallel.mode and --mode, in the order of enum gt_mode (conf/conf.h). */
#define GT_MODES "single|dp|ddp|zero|pipe"

struct gt_conf; /* a loaded, checked config (conf/conf.h) */
enum gt_code gt_conf_load(const char *path, const char *const *sets, int nsets, struct gt_conf **out, struct gt_err *err);
/* errors: all errors of the config, sorted by line, where it returns GT_ECONFIG; err is the first of them. */
enum gt_code gt_conf_load_all(const char *path, const char *const *sets, int nsets, struct gt_problems *errors, struct gt_conf **out,
                              struct gt_err *err);
void gt_conf_free(struct gt_conf *c);
/* The ranks that it asks for on a host; 1 where that is the machine's choice. */
int gt_conf_world(const struct gt_conf *c);

/* ---- configs that come with gtrain ------------------------------------------------------------------------------------------ */
struct gt_bundled {
	const char *name, *path; /* "fmnist_mlp.cfg", and where it is */
	const char *dataset;     /* data.name */
	const char *summary;     /* the first sentence of its opening comment */
};
/* All of them, by name; in the arena. GT_ENOINPUT: they are not installed. */
enum gt_code gt_bundled_list(struct gt_arena *a, struct gt_bundled **rows, int *n, struct gt_err *err);
/* The path of the one of this name, with or without ".cfg"; NULL: there is none. */
enum gt_code gt_bundled_find(struct gt_arena *a, const char *name, const char **path, struct gt_err *err);

/* ---- schema, for --set completion and the manual ------------------------------------------------------------------------- */
struct gt_schema_key {
	const char *path;    /* "train.optimizer.lr", "model.layers[].conv2d.kernel" */
	const char *type;    /* "int", "float", "bool", "string", "int[]", "a|b|c" for an enumeration */
	const char *def;     /* as it would stand in a config; in parentheses: in words; "": required */
	const char *range;   /* "0..", "(0, 1]", "" */
	const char *help;
};
/* Calls fn for every key in the order of the manual, layer attributes included. */
void gt_schema_each(void (*fn)(void *user, const struct gt_schema_key *key), void *user);

/* ---- run and resume ------------------------------------------------------------------------------------------------------- */
enum gt_event_kind { GT_EV_START, GT_EV_TRAIN, GT_EV_EVAL, GT_EV_CHECKPOINT, GT_EV_RESUME, GT_EV_WARN, GT_EV_END,
	GT_EV_SKIP,  /* fp16: gradients overflowed, the step was not applied; step: what would have been its number */
	GT_EV_EPOCH, /* an epoch of training is complete; its evaluations, if any, follow */
	GT_EV_PHASE, /* an evaluation or a save takes time: text and share. It is never a line of metrics.jsonl */
	GT_EV_COMPLETE /* a resume of a run that has nothing left to do: text says so, and what prolongs it. The only event then */ };

/* Mean loss and fractions of samples that were classified correctly (target is the largest output; among the five largest). */
struct gt_scores {
	double loss, acc, top5;
	int64_t samples; /* that they are of; 0: nothing was measured */
};
struct gt_run_result {
	double seconds;       /* trained, over all resumes */
	double samples_per_s; /* of this session's steps, without evaluations and checkpoints */
	struct gt_scores train, valid, test; /* train: of the last epoch as far as it went; others: the last evaluation of this session */
	const char *best_metric; /* checkpoint.best.metric; NULL: none, or not evaluated so far */
	double best;
	int64_t best_step, best_epoch;
	double peak_acc;      /* highest accuracy of all evaluations of test, or of valid where there is no test; over all resumes */
	int64_t peak_epoch;   /* of that evaluation; 0: none had an accuracy */
};

struct gt_event {
	enum gt_event_kind kind;
	int64_t step, steps;   /* optimizer steps done, of the whole run */
	int64_t epoch, epochs; /* epoch: the one that the last step done belongs to, from 1; 0: no step is done. epochs 0: train.steps ends the run */
	double loss, lr;       /* TRAIN: mean loss of the batch */
	double acc;            /* TRAIN: of the batch; NAN where no sample counts */
	struct gt_scores scores; /* EVAL, EPOCH */
	const struct gt_run_result *result; /* END */
	double share;          /* PHASE: done so far, 0..1 */
	const double *lr_groups; /* TRAIN: the rates of train.groups, in their order; frozen: 0 */
	int ngroups;
	double samples_per_s;  /* TRAIN, EPOCH: of recent steps */
	double seconds, eta_s; /* EPOCH: that it took in this session; TRAIN: to the end of the run, evaluations included; 0: not known yet */
	double loss_scale;     /* TRAIN, SKIP: of fp16, behind the step; 0: none */
	const char *split;     /* EVAL, PHASE */
	const char *text;      /* START: one line on what runs; WARN; RESUME, CHECKPOINT: the path; END: "ok", "signal", …;
	                          PHASE: "evaluating" (split says what), "saving a checkpoint" */
	const char *json;      /* the line of metrics.jsonl this event wrote; NULL: none (TRAIN events come every step, lines do not) */
};
typedef void (*gt_observer)(void *user, const struct gt_event *ev);

struct gt_rank_link;

struct gt_run_opts {
	const char *out;       /* checkpoint.dir instead of the config's; NULL */
	const char *device;    /* instead of the config's; NULL */
	const char *init;      /* safetensors file with the first weights; NULL */
	bool dry;              /* find out all that a run finds out before its first step, and end there: no file is made or changed */
	double time_limit_s;   /* checkpoint and end after so long; 0: none */
	int nproc;             /* ranks on this host; 0: the config's */
	int nnodes, node_rank; /* hosts with so many ranks each, and which of them this is; 0: one host */
	const char *master_addr; /* nnodes > 1: of the host of rank 0 */
	int master_port;       /* 0: 29500 */
	const char *token_file; /* 64 hexadecimal digits that every host has; NULL: $GTRAIN_TOKEN_FILE */
	int max_restarts;      /* after failures that may pass, from the newest checkpoint */
	char *const *argv;     /* of this process, NULL-terminated: what a rank is started with; NULL: no ranks can be started */
	char *const *run_argv; /* for a restart: what does the same again, without operand and time limit; NULL: the run is a `gtrain resume` */
	char *const *resume_argv; /* and what goes on from a checkpoint, without operand and time limit; NULL: no restarts */
	struct gt_rank_link *link; /* gt_rank_open's */
	gt_observer observe;   /* may be NULL; of a run on several ranks, rank 0 is observed in its own process */
	void (*say)(void *user, const char *line); /* in the process that watches ranks: a line that one of them wrote, or about a restart; may be NULL */
	void *user;
};
/* Where the config or the options ask for several ranks, and nothing else has started them, both execute the program again once per rank
 * and watch over these (launch/launcher.h). A signal ends both with 128+n after a checkpoint. */
enum gt_code gt_run(struct gt_conf *c, const struct gt_run_opts *o, struct gt_err *err);
/* path: a run directory, or a checkpoint in one, which stands for its run and step. from: "latest", "best", a step number, or NULL: the
 * checkpoint that path names, else the latest. Going back to an earlier checkpoint changes nothing in the directory until the first new
 * one is committed; then the later ones move to <dir>/history-<n>. */
enum gt_code gt_resume(const char *path, const char *from, const char *const *sets, int nsets, const struct gt_run_opts *o, struct gt_err *err);

/* What a smoke test has found out so far; strings live until gt_smoke returns. */
struct gt_smoke {
	const char *phase;       /* that has just ended: "plan", "train", "evaluate", "checkpoint", "resume", "compare" */
	double seconds;          /* of this phase */
	const char *name, *mode, *precision;
	int ranks, config_ranks; /* config_ranks 0: auto */
	int64_t batch, config_batch, samples; /* samples: at most so many of each split; 0: all */
	int64_t steps, saved;    /* steps of the uninterrupted run; the resumed one starts behind step `saved` */
	const char *data;        /* where the data was found, or what stands in for it */
	bool synthetic;          /* data is made from the seed, because the config's is not here; why: in words */
	const char *why;
	const char *start;       /* "train": the first line of the run: parameters, device, ranks */
	double first_loss, last_loss; /* "train": of the first and of the last step */
	char split[16];          /* "evaluate": the last one of them */
	double loss, acc;        /* "evaluate" */
	uint64_t bytes;          /* "checkpoint": of one */
	const char *model, *optimizer; /* "compare": digests of the two files, equal after both runs; optimizer NULL: the checkpoint has none */
};
/* Composes gt_run and gt_resume into a test, in processes of their own: a few steps, an evaluation, checkpoints; a resume from the earlier
 * checkpoint; the same bits at the end. What is reduced: run/smoke_plan.h. Of o: out (kept; NULL: a temporary directory, which is removed), device,
 * init, nproc, say, user, and run_argv and resume_argv, which must make a rank write its events as JSON and nothing else. tell: after each phase,
 * with o->user. GT_EFAIL: the resumed run ended with other bits; otherwise the code of the phase that failed. */
enum gt_code gt_smoke(struct gt_conf *c, const struct gt_run_opts *o, void (*tell)(void *user, const struct gt_smoke *s), struct gt_err *err);

/* A process that was started as a rank: called first of all, by main(). *out NULL: it is none. Its owner tells the error that the rank
 * will exit with, instead of printing it: who watches the ranks does that. */
enum gt_code gt_rank_open(struct gt_rank_link **out, struct gt_err *err);
void gt_rank_report_error(struct gt_rank_link *l, enum gt_code code, const char *sentence);
void gt_rank_close(struct gt_rank_link *l);

/* ---- look before running -------------------------------------------------------------------------------------------------- */
struct gt_check_layer {
	const char *name, *type;
	char shape[96];          /* of the output, for one batch */
	int64_t params;
	double flops;            /* forward, a batch */
};
struct gt_check_memory {
	const char *arena;       /* "parameters", "gradients", "optimizer state", "activations", … */
	uint64_t bytes, least;   /* of the rank that needs the most of all arenas together, and of the one that needs the least */
	bool common;             /* all ranks of a host have it once, together */
};
/* What a rank does with others in an optimizer step, of one kind and in one group. */
struct gt_check_traffic {
	const char *kind, *group; /* "all_reduce", "send"; "world", "data" (ranks that have the same part of the model), "pipe" */
	int64_t calls;
	uint64_t bytes;           /* that it sends, where the fewest bytes are sent: of n bytes on W ranks, an all_reduce 2 n (W - 1) / W, a
	                             reduce_scatter or all_gather n (W - 1) / W, a broadcast n */
};
struct gt_check_rank {
	int copy, place;          /* which copy of the model, and which of its ranks: 0 but in a pipeline */
	uint64_t *memory, total;  /* [nmemory] */
	int steps;                /* of the list of an optimizer step */
	int64_t samples;          /* of a step, that it reads */
	double flops;             /* of a step */
	struct gt_check_traffic *traffic;
	int ntraffic;
	uint64_t sent;            /* in a step */
};
/* A run of parameters whose gradients are joined at once, in the order in which the backward pass finishes them. */
struct gt_check_bucket {
	int place;                /* of the rank of each copy that has it */
	bool learned;             /* false: frozen parameters, which have no gradients */
	const char *first, *last;
	int nparams;
	uint64_t bytes, shard;    /* of one value of each parameter; of these a rank's, where they are shared out: else 0 */
};
/* Ranks first to last (of those that share) have parts of a parameter. */
struct gt_check_owner {
	const char *name;
	int bucket, first, last;
};
struct gt_check_stage {
	int place;                /* of the rank of each copy that has it */
	const char *first, *last; /* layers */
	int nlayers;
	int64_t params;
	double share;             /* of all FLOPs of a step */
	int slots;                /* micro-batches whose activations it keeps at once */
};
struct gt_check_group {      /* an entry of train.groups */
	const char *match;       /* its patterns, "*.norm1.bias, *.norm2.bias" */
	bool frozen;
	bool frozen_stats;       /* of its batch normalisations */
	double lr[5];            /* as gt_report.lr */
};
struct gt_report {
	const char *name, *device, *mode, *precision;
	struct gt_check_layer *layers;
	int nlayers;
	struct gt_check_memory *memory;
	int nmemory;
	int64_t params, buffers;             /* elements */
	int64_t outputs;                     /* values of the model's output for one sample */
	double flops_forward, flops_train;   /* a sample */
	int64_t train_samples, valid_samples, test_samples; /* -1: the data is not here */
	int64_t batch, micro_batch, steps_per_epoch, steps, world;
	int64_t part;                        /* samples of a micro-batch that the layers' shapes are of: the first rank's */
	/* the ranks */
	int copies;                          /* of the model */
	struct gt_check_rank *ranks;         /* [world] */
	int largest, smallest;               /* of them, by memory */
	struct gt_check_bucket *buckets;     /* of the ranks of the first copy */
	int nbuckets;
	const char *sharded;                 /* "optimizer state, gradients": what of the buckets is shared out; "": nothing */
	struct gt_check_owner *owners;       /* where something is */
	int nowners;
	struct gt_check_stage *stages;       /* of a pipeline */
	int nstages;
	const char *balance;                 /* what the model is cut by: "computed" cost; "measured", which only a run does, this one is computed; "by hand" */
	const char *grid;                    /* of a pipeline: its schedule as text, a line a rank; NULL */
	double bubble, even;                 /* share of the time that ranks of a pipeline are idle, by FLOPs, and if all stages took as long */
	int64_t collectives, transfers;      /* of all ranks in a step; every one has its partners */
	double lr[5];                        /* at 0, 25, 50, 75, 100 % of the run; NAN: its length is unknown */
	struct gt_check_group *groups;
	int ngroups;
	const char *data;                    /* where the data was found, or why not */
	struct gt_problems warnings;         /* sorted by line; in the report's arena */
	struct gt_arena *arena;              /* owns it all */
};
/* device: plan with its kernels; NULL: on paper. world: ranks; 0: as many as the config asks for, 1 where that is the machine's choice. */
enum gt_code gt_check(struct gt_conf *c, const char *device, int world, struct gt_report **out, struct gt_err *err);
/* Adds to the warnings what a run of the report's config would fail of on this machine; each has the code that it would end with. */
enum gt_code gt_check_machine(struct gt_conf *c, const char *device, struct gt_report *r, struct gt_err *err);
void gt_report_free(struct gt_report *r);

/* The step list of one rank as text (malloc'ed, caller frees). device, world: as gt_check's. */
enum gt_code gt_plan_text(struct gt_conf *c, const char *device, int world, int rank, bool json, char **out, struct gt_err *err);

/* ---- use a checkpoint ----------------------------------------------------------------------------------------------------- */
struct gt_eval_result {
	char split[16];
	int64_t samples;
	double loss, acc, top5, seconds;
	int64_t step;
};
/* ckpt: a run directory (its best, else latest) or one step-… directory. */
enum gt_code gt_eval(const char *ckpt, const char *split, const char *device, const char *const *sets, int nsets, struct gt_eval_result *out,
                     struct gt_err *err);

struct gt_prediction {
	const char *file;
	const char *error;  /* why it cannot be classified; NULL: it was */
	int64_t index;      /* image within the file */
	bool scaled;        /* the image had another size */
	int n;
	struct { int label; double p; const char *name; } top[10];
};
/* A file that cannot be read is told to fn with its error, and the others are classified: GT_EDATA in the end. Of a single file its own
 * error is returned. */
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
	double seconds;     /* trained, over all resumes */
	bool has_best;      /* the run had a best result by then */
	const char *best_metric; /* checkpoint.best.metric; NULL: not known, the checkpoint is of an earlier version */
	double best;
	int64_t best_step, best_epoch; /* best_epoch -1: as best_metric */
	bool verified;      /* every digest was recomputed and matched */
	struct gt_inspect_tensor *tensors;
	int ntensors;
	struct gt_arena *arena;
};
enum gt_code gt_inspect(const char *ckpt, bool verify, struct gt_inspect **out, struct gt_err *err);
void gt_inspect_free(struct gt_inspect *r);

/* model.safetensors of a checkpoint, to any path, written atomically. */
enum gt_code gt_export(const char *ckpt, const char *path, struct gt_err *err);

/* ---- machine -------------------------------------------------------------------------------------------------------------- */
struct gt_device_row {
	char backend[16];
	char id[32], name[128], detail[256];
	uint64_t bytes;
	bool usable;        /* false: name is empty and detail says why there is none */
};
enum gt_code gt_devices(struct gt_device_row *rows, int cap, int *n, struct gt_err *err);

struct gt_bench_row {
	char op[48], layer[64], impl[64];
	double ms, gflops, share; /* of one step; share of the step's time, 0..1 */
};
struct gt_bench_rank {
	int copy, place;          /* as in gt_check_rank */
	double step_ms, wait_ms;  /* wait: of step, in what joins ranks: waiting for another one, and moving bytes */
};
struct gt_bench_stage {      /* of a pipeline: what a micro-batch takes there */
	int place;
	const char *first;        /* layer */
	double forward_ms, backward_ms, weights_ms; /* weights: of gradients that are made by themselves (zero-bubble); else in backward */
};
struct gt_bench {
	struct gt_bench_row *rows; /* of rank 0's kernels */
	int nrows;
	double step_ms, samples_per_s, gflops, peak_mb;
	const char *device;
	struct gt_bench_rank *ranks; /* where there are several */
	int nranks;
	double wait;               /* their mean share of a step that is wait */
	struct gt_bench_stage *stages;
	int nstages, micros;       /* micro-batches of a step */
	double bubble, even;       /* of a pipeline: what wait would be by its schedule with the stages' times, and if all stages took as long */
	struct gt_arena *arena;
};
/* Of o: device, nproc, argv, link, say. Ranks are started as gt_run starts them, and all of them call it; rank 0 has the result: for the others, and
 * for who started them, *out is NULL. */
enum gt_code gt_bench(struct gt_conf *c, const struct gt_run_opts *o, int steps, struct gt_bench **out, struct gt_err *err);
void gt_bench_free(struct gt_bench *b);

/* dir: NULL for the user's cache. base_url: NULL for the known mirrors. progress may be NULL; total 0: unknown. */
enum gt_code gt_fetch(const char *dataset, const char *dir, const char *base_url,
                      void (*progress)(void *user, const char *file, uint64_t done, uint64_t total), void *user, struct gt_err *err);
/* Names that gt_fetch knows; NULL at the end. */
const char *gt_fetch_name(int i);

#endif
