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

#include "base/json.h"
#include "base/problems.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The parallel modes: the words of parallel.mode and --mode, in the order of enum gt_mode (conf/conf.h). */
#define GT_MODES "single|dp|ddp|zero|pipe"

struct gt_conf; /* a loaded, checked config (conf/conf.h) */
/* Loads and checks a config file. sets: nsets strings "KEY=VALUE" that override keys of the file, as --set does. The caller frees *out with
 * gt_conf_free. */
enum gt_code gt_conf_load(const char *path, const char *const *sets, int nsets, struct gt_conf **out, struct gt_err *err);
/* Loads a config like gt_conf_load. If it returns GT_ECONFIG, `errors` has all errors of the config, sorted by line, and err the first
 * one. */
enum gt_code gt_conf_load_all(const char *path, const char *const *sets, int nsets, struct gt_problems *errors, struct gt_conf **out,
                              struct gt_err *err);
/* Loads a config like gt_conf_load_all, from the beginning of an open file. Names of files in it are relative to the working directory.
 * label: its name in messages. */
enum gt_code gt_conf_load_fd(int fd, const char *label, const char *const *sets, int nsets, struct gt_problems *errors,
                             struct gt_conf **out, struct gt_err *err);
/* Reads a config from standard input ("-") or a pipe, at most a little more than a config can have, and keeps it in memory behind a
 * descriptor for gt_conf_load_fd, which processes that this one starts inherit. The caller closes it. */
enum gt_code gt_conf_keep_stream(const char *path, int *fd, struct gt_err *err);
void gt_conf_free(struct gt_conf *c);
/* Returns the number of ranks on each host that the config requests: 1 in mode "single" and if parallel.nproc is "auto". */
int gt_conf_world(const struct gt_conf *c);

/* Finds a directory for a new run: `out` or, if it is NULL, the config's checkpoint.dir; if that exists, the first of DIR-2, DIR-3, ...
 * that does not. GT_EUSAGE: several processes would choose, each for itself: nnodes > 1, or another program started this one as a rank. */
enum gt_code gt_run_new_dir(const struct gt_conf *c, const char *out, int nnodes, struct gt_arena *a, const char **dir, struct gt_err *err);

/* ---- configs that come with gtrain ------------------------------------------------------------------------------------------ */
struct gt_bundled {
	const char *name, *path; /* name of the file without ".cfg", such as "fmnist_mlp", and its path */
	const char *dataset;     /* value of the key data.name */
	const char *summary;     /* first sentence of the comment at the beginning of the file */
};
/* Lists all configs that come with gtrain, sorted by name, in arena memory. Returns GT_ENOINPUT if they are not installed. */
enum gt_code gt_bundled_list(struct gt_arena *a, struct gt_bundled **rows, int *n, struct gt_err *err);
/* Sets *path to the path, in arena memory, of the config that comes with gtrain and has this name, with or without ".cfg"; NULL if there is
 * none. */
enum gt_code gt_bundled_find(struct gt_arena *a, const char *name, const char **path, struct gt_err *err);

/* ---- schema, for --set completion and the manual ------------------------------------------------------------------------- */
struct gt_schema_key {
	const char *path;    /* path of the key: "train.optimizer.lr", "model.layers[].conv2d.kernel" */
	const char *type;    /* type of the value: "int", "float", "bool", "string", "int[]", or "a|b|c" for an enumeration */
	const char *def;     /* default as written in a config, or in words in parentheses; "": the key is required */
	const char *range;   /* allowed values, such as "0.." or "(0, 1]"; "": any value of the type */
	const char *help;    /* one sentence that describes the key */
};
/* Calls fn for every key, including layer attributes, in the order of the manual. */
void gt_schema_each(void (*fn)(void *user, const struct gt_schema_key *key), void *user);

/* ---- run and resume ------------------------------------------------------------------------------------------------------- */
enum gt_event_kind { GT_EV_START, GT_EV_TRAIN, GT_EV_EVAL, GT_EV_CHECKPOINT, GT_EV_RESUME, GT_EV_WARN, GT_EV_END,
	GT_EV_SKIP,  /* fp16: gradients overflowed and the step was not applied; step: the number that it would have had */
	GT_EV_EPOCH, /* an epoch of training is complete; its evaluations, if any, follow */
	GT_EV_PHASE, /* progress of an evaluation or of a save, in text and share; never a line of metrics.jsonl */
	GT_EV_PRETRAINED, /* a new run has loaded weights from a file (model.pretrained) */
	GT_EV_COMPLETE, /* a resume of a run that is already complete; text says so and how to prolong it. There are no other events then */
	GT_EV_DETAIL /* one of the rows or cells that the warning after it sums up; never a line of metrics.jsonl */ };

/* Scores of a model on some samples. loss: mean loss. acc and top5: share (0 ... 1) of the samples whose label has the largest output, and
 * one of the five largest outputs. */
struct gt_scores {
	double loss, acc, top5;
	double f1;       /* macro F1 (score/macro_f1.h), if a key of the config names it as its metric; NAN: not measured */
	double auc;      /* area under the ROC curve (score/auc.h), likewise */
	/* Of targets that are numbers, in the unit of the target, and the mean over the targets if there are several: mean absolute error, root
	 * mean squared error, coefficient of determination (score/value_tally.h); NAN: not measured, or other targets */
	double mae, rmse, r2;
	int64_t samples; /* number of samples; 0: nothing was measured */
};
struct gt_run_result {
	double seconds;       /* duration of training in seconds, summed over all resumes */
	double samples_per_s; /* speed of the training steps since the run was started or resumed, without evaluations and checkpoints */
	struct gt_scores train, valid, test; /* train: scores of the last epoch, which may be incomplete; valid, test: of the last evaluation
	                                        since the run was started or resumed */
	const char *best_metric; /* metric that selects the best checkpoint (checkpoint.best.metric); NULL: none, or not evaluated so far */
	double best;          /* best value of that metric */
	int64_t best_step, best_epoch; /* number of optimizer steps done, and epoch (from 1), when the best value was measured */
	double peak_acc;      /* highest accuracy of all evaluations of split test (of split valid if there is no test), over all resumes */
	int64_t peak_epoch;   /* epoch, from 1, of the evaluation with the highest accuracy; 0: no evaluation had an accuracy */
};

/* What model.pretrained loads: names of the model, and names of the file. */
struct gt_pretrained_report {
	const char *file;            /* path of the file */
	int loaded, tensors;         /* number of the model's tensors that the file has; number of all tensors of the model */
	int64_t elements;            /* elements of the loaded tensors */
	const char *converted;       /* dtype of values that are converted to f32: "f16", "bf16" or "f64"; NULL: none */
	bool stripped;               /* all names in the file begin with "module.", which is removed */
	const char *const *initial;  /* names in the model that keep their initial values */
	const char *const *dropped;  /* names in the file that an entry of model.pretrained.map with to = "" skips */
	const char *const *unused;   /* all other names in the file that the model does not have */
	int ninitial, ndropped, nunused;
};
/* Writes a report as one line of text, with at most six names of each list, to buf (2048 bytes suffice), and returns buf; and as members
 * of the open JSON object, with all names. */
const char *gt_pretrained_text(const struct gt_pretrained_report *r, char *buf, size_t size);
void gt_pretrained_json(struct gt_json *j, const struct gt_pretrained_report *r);

/* An event of a run. A field whose comment begins with kinds of events is set for these kinds only. */
struct gt_event {
	enum gt_event_kind kind;
	int64_t step, steps;   /* step: number of optimizer steps done; steps: number of the whole run */
	int64_t epoch, epochs; /* epoch: of the last step done, from 1 (0: no step is done); epochs: of the run (0: train.steps ends it) */
	double loss, lr;       /* TRAIN: loss: mean loss of the batch; lr: learning rate */
	double acc, top5;      /* TRAIN: scores of the batch, as in struct gt_scores; NAN if no sample counts */
	struct gt_scores scores; /* EVAL: scores of the evaluation; EPOCH: scores on the training batches of the epoch */
	const struct gt_run_result *result; /* END: results of the run */
	const struct gt_pretrained_report *pretrained; /* PRETRAINED: what was loaded; text is gt_pretrained_text of it */
	double share;          /* PHASE: share of the evaluation or save that is done, 0 ... 1 */
	const double *lr_groups; /* TRAIN: learning rate of each entry of train.groups, in their order; 0 for frozen groups */
	int ngroups;           /* TRAIN: number of entries of lr_groups */
	double samples_per_s;  /* TRAIN, EPOCH: training speed over the most recent steps */
	/* EPOCH: `seconds` is the duration of the epoch since the run was started or resumed. TRAIN: `eta_s` is the number of seconds until
	 * the end of the run, including evaluations; 0: not known yet. */
	double seconds, eta_s;
	double loss_scale;     /* TRAIN, SKIP: the loss scale of fp16 after the step; 0: none */
	const char *split;     /* EVAL, PHASE: name of the split */
	/* START: one line with the model's parameters, the device and the ranks. WARN: the warning. RESUME, CHECKPOINT: path of the
	 * checkpoint. END: how the run ended: "ok", "signal", ... PHASE: what is in progress: "evaluating" (the field split names the split)
	 * or "saving a checkpoint". */
	const char *text;
	/* The line of metrics.jsonl that this event wrote. NULL: it wrote none; every step is a TRAIN event, but not every step writes a
	 * line. */
	const char *json;
};
typedef void (*gt_observer)(void *user, const struct gt_event *ev);

struct gt_rank_link;

struct gt_run_opts {
	const char *out;       /* run directory, instead of the config's checkpoint.dir; NULL: the config decides */
	const char *device;    /* device, instead of the config's key `device`; NULL: the config decides */
	const char *init;      /* safetensors file with the initial weights; NULL: none */
	bool dry;              /* make all checks that a run makes before its first step, then end; create or change no file */
	const char *predictions; /* gt_eval: rank 0 writes the prediction and the loss of each sample to this CSV file; NULL: it does not */
	double time_limit_s;   /* save a checkpoint and end after this number of seconds; 0: no limit */
	int nproc;             /* number of ranks on each host; 0: the config decides */
	int nnodes, node_rank; /* number of hosts (0 means 1), and number of this host, from 0; each host has nproc ranks */
	const char *master_addr; /* with nnodes > 1: address of the host of rank 0 */
	int master_port;       /* with nnodes > 1: port on the host of rank 0; 0 means 29500 */
	const char *token_file; /* path of a file with the secret of the run, 64 hexadecimal digits, which is the same on every host; NULL:
	                           the path is in $GTRAIN_TOKEN_FILE */
	int max_restarts;      /* maximum number of restarts from the newest checkpoint after failures that may be transient */
	char *const *argv;     /* NULL-terminated arguments of this process, with which the processes of the ranks are started; NULL: no
	                          ranks can be started */
	/* Arguments for restarts, without operand and time limit. run_argv starts the same run again (NULL: the run is a `gtrain resume`).
	 * resume_argv resumes it from a checkpoint (NULL: no restarts). */
	char *const *run_argv;
	char *const *resume_argv;
	struct gt_rank_link *link; /* connection to the launcher, from gt_rank_open; NULL: no launcher started this process */
	gt_observer observe;   /* receives the events; NULL: none. With several ranks it is called in the process of rank 0 */
	/* Receives each line that a rank wrote and each message about a restart. It is called in the process that supervises the ranks.
	 * NULL: it is not called. */
	void (*say)(void *user, const char *line);
	void *user;            /* first argument of observe and say */
};
/* gt_run trains a config; gt_resume continues a run. If the config or the options request several ranks and nothing else has started them,
 * both execute the program again once for each rank and supervise these processes (launch/launcher.h). A signal ends both with code 128+n
 * after a checkpoint. */
enum gt_code gt_run(struct gt_conf *c, const struct gt_run_opts *o, struct gt_err *err);
/* Continues a run. path: a run directory, or a checkpoint in one. from: "latest", "best" or a step number selects the checkpoint; NULL
 * selects the checkpoint that path names, or the latest one if path is a run directory. Going back to an earlier checkpoint changes
 * nothing in the directory until the first new checkpoint is committed; the later ones then move to <dir>/history-<n>. */
enum gt_code gt_resume(const char *path, const char *from, const char *const *sets, int nsets, const struct gt_run_opts *o,
                       struct gt_err *err);

/* Results of a smoke test so far. A comment in quotes names the phase that sets a field. Strings are valid until gt_smoke returns. */
struct gt_smoke {
	const char *phase;       /* the phase that has ended: "plan", "train", "evaluate", "checkpoint", "resume", "compare" */
	double seconds;          /* duration of this phase */
	const char *name, *mode, *precision; /* name, parallel.mode and precision of the config */
	int ranks, config_ranks; /* number of ranks in the test, and in the config; config_ranks 0: the config says "auto" */
	int64_t batch, config_batch, samples; /* batch size in the test, and in the config; maximum number of samples of each split in the
	                                         test, 0: all */
	int64_t steps, saved;    /* number of steps of the uninterrupted run; step from which the resumed run continues */
	const char *data;        /* where the data was found, or what replaces it */
	bool synthetic;          /* the data is generated from the seed, because the config's data was not found */
	const char *why;         /* if synthetic is set: why the config's data was not found */
	const char *weights;     /* why the first weights are initial ones, although the config has model.pretrained; NULL: they are not */
	const char *start;       /* "train": the first line of the run, with parameters, device and ranks */
	double first_loss, last_loss; /* "train": loss of the first and of the last step */
	char split[16];          /* "evaluate": the last split that was evaluated */
	double loss, acc;        /* "evaluate": its scores */
	uint64_t bytes;          /* "checkpoint": size of one checkpoint */
	const char *model, *optimizer; /* "compare": digests of model and optimizer files, equal in both runs; optimizer NULL: no such file */
};
/* The smoke test runs gt_run and gt_resume in separate processes: a few steps, an evaluation, checkpoints; then a resume from the earlier
 * checkpoint, which must end with the same bits. run/smoke_plan.h describes how the config is reduced. It uses these fields of o: out
 * (kept; NULL: a temporary directory, which is removed), device, init, nproc, say, user, and run_argv and resume_argv, which must make a
 * rank write its events as JSON and nothing else. tell: called after each phase, with o->user. GT_EFAIL: the resumed run ended with
 * different bits; otherwise the code of the phase that failed. */
enum gt_code gt_smoke(struct gt_conf *c, const struct gt_run_opts *o, void (*tell)(void *user, const struct gt_smoke *s),
                      struct gt_err *err);

/* The connection of a rank to the launcher that started it. main() calls gt_rank_open first; it sets *out to NULL if no launcher started
 * this process. A rank passes the error with which it will exit to gt_rank_report_error instead of printing it, and the launcher prints
 * it. */
enum gt_code gt_rank_open(struct gt_rank_link **out, struct gt_err *err);
void gt_rank_report_error(struct gt_rank_link *l, enum gt_code code, const char *sentence);
void gt_rank_close(struct gt_rank_link *l);

/* ---- look before running -------------------------------------------------------------------------------------------------- */
struct gt_check_layer {
	const char *name, *type;
	char shape[96];          /* shape of the output of one batch, as text */
	int64_t params;          /* number of elements of its parameters */
	double flops;            /* floating-point operations of a forward pass over one batch */
};
struct gt_check_memory {
	const char *arena;       /* "parameters", "gradients", "optimizer state", "activations", ... */
	uint64_t bytes, least;   /* size on the rank that needs the most memory in total, and on the rank that needs the least */
	bool common;             /* all ranks of a host share one copy of the arena */
};
/* The communication of a rank in one optimizer step, summed over the calls of the same kind in the same group of ranks. */
struct gt_check_traffic {
	const char *kind, *group; /* kind: "all_reduce", "send", ...; group: "world", "data" (ranks with the same part of the model), "pipe" */
	int64_t calls;            /* number of calls */
	/* Bytes that the rank sends with an algorithm that sends the fewest bytes. For n bytes on W ranks: all_reduce 2 n (W - 1) / W,
	 * reduce_scatter and all_gather n (W - 1) / W, broadcast n. */
	uint64_t bytes;
};
struct gt_check_rank {
	int copy, pipe_rank;      /* number of its copy of the model, and of the rank within this copy (0 except in a pipeline), from 0 */
	uint64_t *memory, total;  /* memory[gt_report.nmemory]: bytes of each arena; total: their sum */
	int steps;                /* number of program steps in an optimizer step */
	int64_t samples;          /* samples that it reads in an optimizer step */
	double flops;             /* floating-point operations of the rank in an optimizer step */
	struct gt_check_traffic *traffic;
	int ntraffic;
	uint64_t sent;            /* bytes that it sends in an optimizer step */
};
/* A bucket: consecutive parameters whose gradients are communicated together, in the order in which the backward pass completes them. */
struct gt_check_bucket {
	int pipe_rank;            /* number, within each copy of the model, of the rank that has the bucket */
	bool learned;             /* true: its parameters have gradients; false: its parameters are frozen */
	const char *first, *last; /* names of its first and last parameter */
	int nparams;
	uint64_t bytes, shard;    /* bytes of all parameters of the bucket; bytes of one rank's shard of them, 0 if it is not sharded */
};
/* The ranks that have the shards of one parameter. */
struct gt_check_owner {
	const char *name;         /* name of the parameter */
	int bucket, first, last;  /* number of its bucket; the first and the last rank, among those that share the bucket, with a part of it */
};
struct gt_check_stage {
	int pipe_rank;            /* number, within each copy of the model, of the rank that runs it */
	const char *first, *last; /* names of its first and last layer */
	int nlayers;
	int64_t params;           /* number of elements of its parameters */
	double share;             /* share of the stage in the FLOPs of a step, 0 ... 1 */
	int slots;                /* number of micro-batches whose activations it keeps at the same time */
};
struct gt_check_group {      /* an entry of train.groups */
	const char *match;       /* patterns of the names of its parameters, such as "*.norm1.bias, *.norm2.bias" */
	bool frozen;             /* the parameters of the group are not trained */
	double frozen_until;     /* number of epochs at the beginning in which the group is frozen; 0: none */
	double freeze_after;     /* number of epochs after which the group is frozen; 0: never */
	bool frozen_stats;       /* the batch normalisations of the group do not update their running statistics */
	double lr[5];            /* learning rate of the group at 0, 25, 50, 75, 100 % of the run; NAN: the length of the run is not known */
	double momentum[5];      /* its momentum, or beta1, at the same times, if the schedule changes it; else NAN */
};
struct gt_check_block {      /* a block of layers, with train.layer_decay */
	const char *name;
	double factor;           /* factor of the learning rate of its parameters */
};
/* A column of a table, and what the training split has taught about it. */
struct gt_check_column {
	const char *name, *type; /* type as in data.columns */
	const char *why;         /* why it has this type; "given; …" if the config says so, with what would be inferred */
	int64_t different;       /* number of different words or classes; -1: a column of numbers, or one that is not used */
	int64_t missing;         /* rows of the training split without a value */
	double mean, std;        /* of numbers; NAN: others */
};
/* The texts of the training files, as the model reads them. */
struct gt_check_texts {
	const char *tokenizer;        /* word of data.tokenizer; NULL: the data has no texts */
	int64_t vocabulary, ids;      /* tokens in the vocabulary; different tokens, those of n-grams included */
	int64_t texts, max_tokens;
	double mean;                  /* mean number of tokens of a text */
	double unknown, truncated;    /* shares of tokens that the vocabulary lacks, and of texts that are cut off */
};
/* The predicted time of a training step on a card that is only described (par/roofline.h). It is not a measurement. */
struct gt_check_kernel {
	const char *op, *layer;   /* layer: of the rows by operation, NULL */
	double bytes, flops;      /* moved between memory and multiprocessors; floating-point operations */
	double seconds;
	int calls, kernels;       /* number of calls; number of kernels, the nodes of a CUDA graph */
	const char *ceiling;      /* what decides the time: "latency", "memory", "L2", "tensor cores", "f32 units"; of a row by operation, of
	                             most of its time */
};
struct gt_check_card {
	const char *word, *name;  /* the value of --card, and the product's name; NULL: nothing is predicted */
	struct gt_check_kernel *calls, *ops; /* in the order of the program; by operation, the slowest first */
	int ncalls, nops;
	/* seconds in single kernels of a step and of the steps of an epoch, outside of gt_report.phases, and of all steps of the run; NAN:
	 * their number is unknown */
	double step, epoch, run;
	double one_by_one;        /* seconds of the kernels of a step, if none overlapped with another */
	double beside;            /* seconds of those kernels of a step that are not on the first stream, if nothing else runs */
	double samples_per_s;
	double bytes, flops;      /* of a step */
	int kernels;              /* of a step */
	double memory;            /* bytes of the card's memory */
	/* assumptions: shares of the peaks that kernels reach, in order: memory, L2, tensor cores, f32 units; seconds between two kernels, and
	 * of a kernel that has next to nothing to do */
	double reach[4], gap, latency;
};
/* A part of the run in which parameters are frozen that are trained in another part (frozen_until, freeze_after). */
struct gt_check_phase {
	const char *when;                    /* "in the epochs after 1" */
	int index;                           /* position among all parts of the run, also those that it does not reach */
	int64_t steps;                       /* number of optimizer steps; 0 if the steps of an epoch are not known */
	double flops_forward, flops_train;   /* as in gt_report */
	double seconds;                      /* of a step on gt_report.card, in single kernels; NAN: nothing is predicted */
};
struct gt_report {
	const char *name, *device, *mode, *precision;
	const char *native;                  /* gt_check_machine: gt_device_row.native of the run's device; NULL: no machine was checked */
	bool computes_in_f32;                /* gt_check_machine: the device stores precision's type and computes in f32 */
	struct gt_check_card card;
	struct gt_check_layer *layers;
	int nlayers;
	struct gt_check_memory *memory;
	int nmemory;
	uint64_t decoding;                   /* maximum bytes that the threads of a rank which decode samples keep besides; 0: none do */
	int64_t params, buffers;             /* number of elements of parameters and of buffers */
	int64_t outputs;                     /* number of values of the model's output for one sample */
	double flops_forward, flops_train;   /* floating-point operations for one sample: forward pass only; whole training step */
	/* the parts of the run that the numbers above do not describe, in the order of time; a part that the run does not reach is not there */
	struct gt_check_phase *phases;
	int nphases;
	int64_t train_samples, valid_samples, test_samples; /* number of samples of each split; -1: not known, because the data was not found */
	int64_t batch, micro_batch, steps_per_epoch, steps, world; /* batch sizes over all ranks; numbers of optimizer steps; number of ranks */
	bool world_is_auto; /* a run may have more ranks: parallel.nproc is "auto" and depends on its machine */
	int64_t part;                        /* number of samples of a micro-batch on the first rank, for which the shapes of the layers are
	                                        given */
	int copies;                          /* number of copies of the model */
	struct gt_check_rank *ranks;         /* [world] */
	int largest, smallest;               /* the rank that needs the most memory, and the rank that needs the least */
	struct gt_check_bucket *buckets;     /* buckets of the first copy of the model, over all its ranks */
	int nbuckets;
	const char *sync;                    /* how copies of the model make one update: "all_reduce", "rank0_update", "sharded_update",
	                                        "factored_update"; "": there is one copy */
	const char *sharded;                 /* which tensors are sharded, such as "optimizer state, gradients"; "": none */
	struct gt_check_owner *owners;       /* the ranks that have each parameter, if something is sharded */
	int nowners;
	struct gt_check_stage *stages;       /* stages of a pipeline */
	int nstages;
	/* How the layers were divided into pipeline stages: "by hand", or by cost: "computed" or "measured". Only a run measures costs, so
	 * with "measured" the stages of this report follow computed costs. */
	const char *balance;
	const char *grid;                    /* schedule of a pipeline as text, one line for each rank; NULL: no pipeline */
	/* Predicted share of time that the ranks of a pipeline are idle, 0 ... 1. bubble: if the duration of a stage is proportional to its
	 * FLOPs; even: if all stages take equally long. */
	double bubble, even;
	int64_t collectives, transfers;      /* numbers over all ranks in an optimizer step; they were verified to match on all ranks */
	double lr[5];                        /* learning rate at 0, 25, 50, 75, 100 % of the run; NAN: the length of the run is not known */
	double momentum[5];                  /* momentum, or beta1, at the same times, if train.schedule changes it; else NAN */
	struct gt_check_group *groups;
	int ngroups;
	struct gt_check_block *blocks;       /* in the order of the model; NULL: train.layer_decay is 1 */
	int nblocks;
	const char *data;                    /* where the data was found, or why it was not */
	/* How the transforms of training samples are divided: those of the threads that decode, and those of the kernel that gathers batches on
	 * a GPU, as "hflip, color_jitter"; NULL: they are not divided */
	const char *thread_transforms, *gpu_transforms;
	struct gt_check_column *columns;     /* of a table, in the order of its files */
	int ncolumns;
	struct gt_check_texts texts;
	int64_t *lengths;                    /* the lengths to which batches of sequences are padded */
	int nlengths;                        /* 0: the model reads no sequences */
	uint64_t reading;                    /* bytes of host memory that a table or texts take while they are read, before training; 0: none */
	const struct gt_pretrained_report *pretrained; /* what model.pretrained loads; NULL: the config has none, or the file is missing */
	struct gt_problems warnings;         /* sorted by line; in the report's arena */
	struct gt_arena *arena;              /* owns the report's memory */
};
/* Plans a run and reports on it. device: name of the device whose kernels are planned; NULL: plan without a device. card: predict the time
 * of a step on this card, one of GT_CARD_WORDS, without opening a device; NULL: none. world: number of ranks; 0: the number that the config
 * requests, or 1 if the config says "auto". The caller frees *out with gt_report_free. */
enum gt_code gt_check(struct gt_conf *c, const char *device, const char *card, int world, struct gt_report **out, struct gt_err *err);
#define GT_CARD_WORDS "h200|h100|a100|l40s|rtx4090|rtx3090"
/* Sets r->native and r->computes_in_f32, and adds to r->warnings the reasons why a run of the report's config would fail on this machine,
 * each with the exit code of such a run. */
enum gt_code gt_check_machine(struct gt_conf *c, const char *device, struct gt_report *r, struct gt_err *err);
void gt_report_free(struct gt_report *r);

/* Prints the list of steps of one rank to *out, which is malloc'ed and freed by the caller. If json is true, each line is a JSON object.
 * device and world have the same meaning as in gt_check. */
enum gt_code gt_plan_text(struct gt_conf *c, const char *device, int world, int rank, bool json, char **out, struct gt_err *err);

/* ---- use of a checkpoint ---------------------------------------------------------------------------------------------------- */
/* How well a model recognises one class. The definitions are scikit-learn's; a ratio whose divisor is 0 is 0. */
struct gt_class_score {
	const char *name;      /* name of the class; NULL: not known */
	int64_t support;       /* number of samples of the class */
	int64_t predicted;     /* number of samples that the model assigns to the class */
	int64_t correct;       /* number of samples of the class that the model assigns to it */
	double precision, recall, f1; /* correct / predicted; correct / support; harmonic mean of the two */
	double auc;            /* area under the ROC curve of this class against all others; NAN: one of the two has no samples */
};
struct gt_class_mean {
	double precision, recall, f1;
};
/* The samples of class `label` that the model assigns to another class. */
struct gt_confusion_cell {
	int32_t label, predicted;
	int64_t n;
};
#define GT_CONFUSION_CLASSES 1000 /* largest number of classes for which a report has the whole confusion matrix */
struct gt_class_report {
	int64_t classes, samples;        /* number of classes; number of samples that count */
	struct gt_class_score *score;    /* [classes] */
	struct gt_class_mean macro;      /* mean over the classes that are the label or the prediction of a sample */
	struct gt_class_mean weighted;   /* mean over the samples, each with the scores of its class */
	bool several;                    /* a sample can have several labels, or none: score[] are those of the labels, accuracy is the share
	                                    of samples whose labels are all correct, top5 is NAN, log_loss is the binary cross entropy of all
	                                    labels, auc is the mean area, and there is no confusion */
	struct gt_class_mean micro;      /* with several: the scores of all labels of all samples together */
	double accuracy, top5;           /* shares of the samples, 0 ... 1 */
	double log_loss;                 /* mean of -log(probability of the label), without label smoothing */
	double auc;                      /* two classes: the area of class 1; more: the mean area over the classes that have one */
	int64_t *matrix;                 /* [classes * classes]: number of samples by label, then by prediction; NULL: too many classes */
	struct gt_confusion_cell *confused; /* all pairs of a label and another prediction that occur, most frequent first */
	int64_t nconfused;
};

/* Scores of predicted numbers, by column. */
struct gt_value_score {
	const char *name;
	double mae, rmse; /* mean absolute error; root of the mean squared error */
	double r2;        /* 1 minus the share of the targets' variance that is left; NAN: all targets are equal */
};
struct gt_value_report {
	int64_t values, samples;
	struct gt_value_score *score; /* [values] */
};

struct gt_eval_result {
	char split[16];                  /* "train", "valid", "test", or "data" for the file or folder that was named */
	int64_t samples;
	double loss, acc, top5, seconds; /* scores as in struct gt_scores; duration of the evaluation in seconds */
	struct gt_scores scores;         /* all scores */
	int64_t step;                    /* number of optimizer steps after which the checkpoint was saved */
	int64_t classes;                 /* number of classes between which the model chooses; 0: not known */
	struct gt_class_report *report;  /* NULL: none was requested, or the targets are columns of numbers */
	struct gt_value_report *value_report; /* the report, if they are */
	struct gt_arena *arena;          /* owns this struct and the report */
};
/* Evaluates a checkpoint on a split, or on all samples of a file or folder. ckpt: a run directory (selects its best checkpoint, else the
 * latest) or a step-... directory.
 * data: a folder of classes, a .tar archive, a CSV file or an IDX file of images, all of whose samples are evaluated; split is then NULL.
 * NULL: the samples of a split are.
 * split: train, valid or test; NULL: test, or valid if the data has no split test.
 * report: also make a report by class, from the outputs of all samples. It uses these fields of o: device, nproc (0: one rank, whatever the
 * config says), argv, link, say, and observe for WARN events. Ranks are started as by gt_run, and all of them call it. Only rank 0 gets a
 * result; on the other ranks, and in the process that started them, *out is NULL. The caller frees *out with gt_eval_free. */
enum gt_code gt_eval(const char *ckpt, const char *data, const char *split, bool report, const char *const *sets, int nsets,
                     const struct gt_run_opts *o, struct gt_eval_result **out, struct gt_err *err);
void gt_eval_free(struct gt_eval_result *r); /* r may be NULL */

#define GT_TOP 10 /* maximum number of classes of a prediction */
struct gt_prediction {
	const char *file;
	const char *error;  /* why the file cannot be classified; NULL: it was classified */
	int64_t index;      /* number of the image or row in the file, from 0 */
	bool scaled;        /* the image had another size than the model's input and was scaled */
	int n;              /* entries of top; 0: the model predicts numbers, or an output of it is not finite */
	struct { int label; double p; const char *name; } top[GT_TOP]; /* the most probable classes, with number, probability and name (NULL:
	                                                                  not known) */
	const float *value; /* [nvalues]: the outputs of a model whose targets are columns of numbers; top is then empty */
	const char *const *value_name; /* [nvalues]: the names of these columns */
	int nvalues;
	bool row;            /* a row of a table; false: an image */
	const char *text;    /* the text itself if it is not in a file; else NULL */
	const char *const *column;      /* [ncolumns]: the cells of the row, as its file has them: gt_predict_spec.append */
	const char *const *column_name; /* [ncolumns] */
	int ncolumns;
	bool several;        /* a sample can have several labels, whose probabilities are independent */
	const char *target;  /* of a row: name of the column of classes that was the target; NULL: none */
	const double *probability;     /* [nclasses]: of each class; NULL: value is set */
	const char *const *class_name; /* [nclasses]; an entry is NULL if the name is not known */
	int64_t nclasses;
};
struct gt_predict_spec {
	const char *ckpt;          /* a run directory (selects its best checkpoint, else the latest) or a step-... directory */
	const char *const *inputs; /* files: images, or tables for a model of tables; folders, which stand for all images below them; "@LIST";
	                              "-": standard input, with the rows of a table, a text on each line or a list of the paths of images */
	int ninputs;
	const char *const *lists;  /* files with one path on each line, after the inputs; "-": standard input */
	int nlists;
	const char *const *texts;  /* texts themselves, for a model of texts */
	int ntexts;
	bool append;               /* of a model of tables: results have the columns of the input, */
	const char *const *keep;   /* or those that these names list, with commas between them; [nkeep] */
	int nkeep;
	int top;                   /* number of classes for each image or row, 1 ... GT_TOP; 0: 1. An error if the model predicts numbers */
	const char *device;        /* device, instead of the config's; NULL: the config decides */
};
/* Predicts images, or the rows of tables, and calls fn for each, in order; fn returns false to end the prediction. If one of several files
 * cannot be read, fn receives its error, the other files are predicted, and the result is GT_EDATA. The error of a single file is returned
 * itself. If outputs of the model are NaN or infinite, fn receives NAN in their place, and the result is GT_EDIVERGED. */
enum gt_code gt_predict(const struct gt_predict_spec *spec, bool (*fn)(void *user, const struct gt_prediction *p), void *user,
                        struct gt_err *err);

struct gt_inspect_tensor {
	const char *file, *name, *dtype;
	char shape[96];
	uint64_t bytes;
};
struct gt_inspect {
	char path[512];
	int64_t format, step, epoch, world;
	const char *name;
	double seconds;     /* duration of training until the checkpoint, in seconds, summed over all resumes */
	bool has_best;      /* the run had a best result when the checkpoint was saved */
	const char *best_metric; /* metric of the best result (checkpoint.best.metric); NULL: an earlier version did not save it */
	double best;        /* best value of best_metric */
	int64_t best_step, best_epoch; /* step, and epoch (from 1), of the best result; best_epoch -1: the checkpoint does not have it */
	const char *const *class_name; /* [nclasses]: names of the classes that the data has given, by label */
	int64_t nclasses;   /* 0: the checkpoint has no names of classes */
	bool verified;      /* every digest was recomputed and matched */
	struct gt_inspect_tensor *tensors;
	int ntensors;
	struct gt_arena *arena;
};
/* Describes a checkpoint. If verify is true, recomputes and compares all digests. The caller frees *out with gt_inspect_free. */
enum gt_code gt_inspect(const char *ckpt, bool verify, struct gt_inspect **out, struct gt_err *err);
void gt_inspect_free(struct gt_inspect *r);

/* Copies model.safetensors of a checkpoint to path, atomically. */
enum gt_code gt_export(const char *ckpt, const char *path, struct gt_err *err);
/* Verifies the digests of a checkpoint and passes model.safetensors to fn in pieces, in their order; fn returns false to end the copy. */
enum gt_code gt_export_pieces(const char *ckpt, bool (*fn)(void *user, const void *data, size_t n), void *user, struct gt_err *err);

/* ---- machine -------------------------------------------------------------------------------------------------------------- */
struct gt_device_row {
	char backend[16];
	char id[32], name[128], detail[256];
	char native[40];    /* values of the config key precision for which it has arithmetic: "fp32, bf16" */
	uint64_t bytes;     /* size of its memory */
	bool usable;        /* false: name is empty, and detail says why the backend has no device */
};
/* Lists the devices of all backends in at most cap rows. A backend without devices gets one row with usable = false. *n: number of rows. */
enum gt_code gt_devices(struct gt_device_row *rows, int cap, int *n, struct gt_err *err);

/* What this build has, for `gtrain --version`. */
struct gt_build_info {
	char libraries[320];  /* libraries and their versions: "oneDNN 2.6.3, zlib 1.2.13, …" */
	char processor[128];  /* the processor as gt_devices names it */
	bool cpu, cuda, gloo, fetch; /* whether the plugin of a backend, of communication between hosts, of downloads is installed */
};
void gt_build_info(struct gt_build_info *out);

struct gt_bench_row {
	char op[48], layer[64], impl[64];
	double ms, gflops, share; /* time in milliseconds in one step; speed in GFLOP/s; share of the step's time, 0 ... 1 */
};
struct gt_bench_rank {
	int copy, pipe_rank;      /* number of its copy of the model, and of the rank within this copy, as in struct gt_check_rank */
	double step_ms, wait_ms;  /* milliseconds of a step; milliseconds of it in communication, including waiting for other ranks */
};
struct gt_bench_stage {      /* times of a pipeline stage for one micro-batch */
	int pipe_rank;            /* number, within each copy of the model, of the rank that runs it */
	const char *first;        /* name of its first layer */
	double forward_ms, backward_ms, weights_ms; /* weights_ms: weight gradients, if a zero-bubble schedule computes them separately */
};
/* A step in a part of the run in which parameters are frozen that are trained in another part (frozen_until, freeze_after). */
struct gt_bench_phase {
	const char *when; /* "in the epochs after 1" */
	double step_ms, samples_per_s, gflops;
};
struct gt_bench {
	struct gt_bench_phase *phases; /* those that the run reaches, in the order of time; all other fields describe steps outside of them */
	int nphases;
	struct gt_bench_row *rows; /* one row for each kernel of rank 0 */
	int nrows;
	double step_ms, samples_per_s, gflops, peak_mb; /* peak_mb: peak resident memory of the process, in MB */
	const char *device;
	struct gt_bench_rank *ranks; /* one entry for each rank, if there are several ranks */
	int nranks;
	double wait;               /* share of a step in communication, 0 ... 1, as a mean over the ranks */
	struct gt_bench_stage *stages; /* stages of a pipeline */
	int nstages, micros;       /* micros: number of micro-batches of a step */
	/* Share of time that the ranks of a pipeline are idle by its schedule, 0 ... 1. bubble: with the measured times of the stages; even:
	 * if all stages took equally long. */
	double bubble, even;
	struct gt_arena *arena;
};
/* Times the kernels and steps of a config. It uses these fields of o: device, nproc, argv, link, say. Ranks are started as by gt_run, and
 * all of them call it. Only rank 0 gets a result; on the other ranks, and in the process that started them, *out is NULL. */
enum gt_code gt_bench(struct gt_conf *c, const struct gt_run_opts *o, int steps, struct gt_bench **out, struct gt_err *err);
void gt_bench_free(struct gt_bench *b);

/* ---- learning-rate range test ----------------------------------------------------------------------------------------------- */
struct gt_lr_find_spec {
	double from, to; /* learning rates of the first and of the last step, 0 < from < to; between them, the rate grows exponentially */
	int steps;       /* number of steps of the whole test, at least 10 */
};
struct gt_lr_point {
	double lr, loss; /* learning rate of the step, and mean loss of its batch before the step */
	double smooth;   /* exponential moving average of the loss, corrected for its start */
};
enum gt_lr_method { GT_LR_VALLEY, GT_LR_STEEP, GT_LR_MINIMUM, GT_LR_METHODS };
struct gt_lr_suggestion {
	const char *method; /* "valley", "steep" or "minimum/10" */
	double lr;          /* NAN: the curve gives none */
};
struct gt_lr_curve {
	const char *name, *device, *precision; /* name and precision of the config; name of the device */
	int steps;                  /* number of steps of the whole test */
	struct gt_lr_point *point;
	int n;                      /* number of points: at most steps */
	const char *ended;          /* "range": after all steps; "rise": the smoothed loss rose above 4 times its minimum; "diverged" */
	struct gt_lr_suggestion suggestion[GT_LR_METHODS]; /* by enum gt_lr_method; the valley is the one to use */
	double *group;              /* [ngroups]: rate of each entry of train.groups that belongs to the valley; NAN: frozen, or no valley */
	bool *own;                  /* [ngroups]: the entry has an optimizer of its own, whose rate is a key of its own */
	int ngroups;
	struct gt_arena *arena;
};
/* Trains a config for some steps with growing learning rates, as tune/lr_find.h describes. It uses these fields of o: device, nproc, argv,
 * link, say, init, and observe for TRAIN, WARN and PRETRAINED events. Ranks are started as by gt_run. Only rank 0 gets a result; on the
 * other ranks, and in the process that started them, *out is NULL. Creates and changes no file. */
enum gt_code gt_lr_find(struct gt_conf *c, const struct gt_run_opts *o, const struct gt_lr_find_spec *spec, struct gt_lr_curve **out,
                        struct gt_err *err);
void gt_lr_curve_free(struct gt_lr_curve *c);

/* What gt_check_data has found. */
struct gt_data_check {
	int64_t samples; /* number of samples of all splits, with those that cannot be read */
	int64_t bad;     /* number of samples that cannot be read */
	int64_t cells;   /* number of cells of tables that are no numbers; with `skips` they count as missing, and their rows are used */
	bool files;      /* the samples are images in files */
	bool skips;      /* the config says to leave out what cannot be read (data.on_error = "skip"); otherwise a run ends there */
};
/* Reads all samples of a config: texts and tables as a run does; of images in files the headers or, if `whole`, all of them. Calls found
 * with each one that cannot be read and the reason, which names it. Returns GT_OK also if there are some. */
enum gt_code gt_check_data(const struct gt_conf *c, bool whole, void (*found)(void *user, const char *split, const char *why), void *user,
                           struct gt_data_check *out, struct gt_err *err);

struct gt_init_spec {
	const char *path;           /* a folder of images, a .tar archive of one, or a CSV file */
	const char *pretrained;     /* safetensors file with the weights of a ResNet of torchvision, from which the run starts; NULL: from
	                               scratch */
	const char *const *targets; /* [ntargets]: of a CSV file, the columns to predict */
	int ntargets;
	const char *out;            /* the file to which the caller writes the config: the paths of data near it become relative to its
	                               folder; NULL: not known, and paths are absolute */
	void (*warn)(void *user, const char *text); /* called with what was left out, such as files that cannot be read; NULL: not called */
	void *user;
};
/* Looks at data and writes a config that trains on it, with comments, to *text, which the caller frees. GT_ENOINPUT: there is no data that
 * gtrain can read. */
enum gt_code gt_init_config(const struct gt_init_spec *spec, char **text, struct gt_err *err);

/* Downloads a dataset. dir: folder for the files; NULL: the user's cache. base_url: URL of a mirror; NULL: the known mirrors. progress:
 * called with the number of bytes of a file that have arrived and its total number (0: not known); NULL: not called. */
enum gt_code gt_fetch(const char *dataset, const char *dir, const char *base_url,
                      void (*progress)(void *user, const char *file, uint64_t done, uint64_t total), void *user, struct gt_err *err);
/* Returns the name of dataset i, from 0, of those that gt_fetch can download; NULL after the last one. */
const char *gt_fetch_name(int i);
/* Returns the dataset that gt_fetch can download and that a misspelled or abbreviated name means, or NULL. */
const char *gt_fetch_near(const char *name);

#endif
