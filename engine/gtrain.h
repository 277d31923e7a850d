/* The public interface of the engine: configs, and training. The headers below declare the rest; cli/ includes no other header of
 * engine/. No function prints or exits; long calls report their progress to an observer. Every function that can fail returns an exit code
 * (base/err.h) and fills err with one sentence.
 *
 *     struct gt_conf *c;
 *     GT_TRY(gt_conf_load("fmnist_mlp.cfg", NULL, 0, &c, err));
 *     struct gt_run_opts opts = {.observe = print_event};
 *     GT_TRY(gt_run(c, &opts, err));
 *     gt_conf_free(c);
 *
 *     gtrain.h          gt_conf_load, gt_run, gt_resume, gt_smoke    configs and training; events --> observer
 *     gtrain_report.h   gt_check, gt_plan_text, gt_bench, gt_devices what a run would do, and how fast
 *     gtrain_use.h      gt_eval, gt_predict, gt_inspect, gt_export   use of a checkpoint
 *     gtrain_data.h     gt_init_config, gt_fetch, gt_lr_find         from data to a config
 *     gtrain_track.h    gt_track                                      a run to an MLflow server
 *     gtrain_view.h     gt_runs_find, gt_run_read, gt_runs_compare   what the directories of runs say
 *     gtrain_sweep.h    gt_sweep_run                                 runs with several values of keys
 *     gtrain_page.h     gt_page_write                                a page about a run
 */
#ifndef GT_GTRAIN_H
#define GT_GTRAIN_H

#include "base/json.h"
#include "base/problems.h"
#include "base/public.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_conf; /* a loaded, checked config (conf/conf.h) */
/* Loads and checks a config file. sets: nsets strings "KEY=VALUE" that override keys of the file, as --set does. The caller frees *out with
 * gt_conf_free. */
enum gt_code gt_conf_load(const char *path, const char *const *sets, int nsets, struct gt_conf **out, struct gt_err *err);
/* Loads a config like gt_conf_load. If it returns GT_ECONFIG, `errors` has all errors of the config, sorted by line, and err the first
 * error. */
enum gt_code gt_conf_load_all(const char *path, const char *const *sets, int nsets, struct gt_problems *errors, struct gt_conf **out,
                              struct gt_err *err);
/* Loads a config like gt_conf_load_all, from the beginning of an open file. Names of files in it are relative to the working directory.
 * label: its name in messages. */
enum gt_code gt_conf_load_fd(int fd, const char *label, const char *const *sets, int nsets, struct gt_problems *errors,
                             struct gt_conf **out, struct gt_err *err);
/* Reads a config from standard input ("-") or a pipe into a memory file, and sets *fd to its descriptor, for gt_conf_load_fd. Child
 * processes inherit the descriptor. Stops reading above the maximum size of a config. The caller closes *fd. */
enum gt_code gt_conf_keep_stream(const char *path, int *fd, struct gt_err *err);
void gt_conf_free(struct gt_conf *c);
/* Returns the number of ranks on each host that the config requests: 1 in mode "single" and if parallel.nproc is "auto". */
int gt_conf_world(const struct gt_conf *c);

/* Finds a directory for a new run: `out` or, if it is NULL, the config's checkpoint.dir; if that exists, the first of DIR-2, DIR-3, ...
 * that does not exist. GT_EUSAGE: several processes would choose directories: nnodes > 1, or another program started this rank. */
enum gt_code gt_run_new_dir(const struct gt_conf *c, const char *out, int nnodes, struct gt_arena *a, const char **dir, struct gt_err *err);

/* ---- configs that come with gtrain ------------------------------------------------------------------------------------------ */
struct gt_bundled {
	const char *name, *path; /* name of the file without ".cfg", such as "fmnist_mlp", and its path */
	const char *dataset;     /* value of the key data.name */
	const char *summary;     /* first sentence of the comment at the beginning of the file */
};
/* Lists all configs that come with gtrain, sorted by name, in arena memory. Returns GT_ENOINPUT if they are not installed. */
enum gt_code gt_bundled_list(struct gt_arena *a, struct gt_bundled **rows, int *n, struct gt_err *err);
/* Sets *path to the path, in arena memory, of the config that comes with gtrain and has this name, with or without ".cfg"; NULL: no config
 * has this name. */
enum gt_code gt_bundled_find(struct gt_arena *a, const char *name, const char **path, struct gt_err *err);

/* ---- schema, for help, completion of --set, editors and the manual ------------------------------------------------------- */
/* Calls fn for every key, including layer attributes, in the order of the manual. */
void gt_schema_each(void (*fn)(void *user, const struct gt_schema_key *key), void *user);
/* Calls fn for every layer type, then for every word that is a value of another key. */
void gt_schema_words(void (*fn)(void *user, const struct gt_schema_word *word), void *user);
/* Copies the description of a key without its words, or the description of one word ("": none), into buf. Both return buf. */
const char *gt_schema_about(const struct gt_schema_key *key, char *buf, size_t size);
const char *gt_schema_word_text(const struct gt_schema_key *key, const char *word, char *buf, size_t size);
/* Returns what to write instead of a key or a layer of another program that gtrain does not have, such as "freeze"; NULL: none is known. */
const char *gt_schema_advice(const char *word);

/* ---- run and resume ------------------------------------------------------------------------------------------------------- */
enum gt_event_kind { GT_EV_START, GT_EV_TRAIN, GT_EV_EVAL, GT_EV_CHECKPOINT, GT_EV_RESUME, GT_EV_WARN, GT_EV_END,
	GT_EV_SKIP,  /* fp16: gradients overflowed and the step was not applied; step: number of the skipped step */
	GT_EV_EPOCH, /* an epoch of training is complete; its evaluations, if any, follow */
	GT_EV_PHASE, /* progress of an evaluation or of a save, in text and share; never a line of metrics.jsonl */
	GT_EV_PRETRAINED, /* a new run has loaded weights from a file (model.pretrained) */
	GT_EV_COMPLETE, /* a resume of a run that is already complete; text says so, and how to train longer. No other events follow */
	GT_EV_DETAIL /* a line for --verbose: a row or cell that the next warning counts, or a rank that is slower than the others; never a line
	                of metrics.jsonl */ };

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

/* What model.pretrained loads, by names in the model and names in the file. */
struct gt_pretrained_report {
	const char *file;            /* path of the file */
	int loaded, tensors;         /* number of the model's tensors that the file has; number of all tensors of the model */
	int64_t elements;            /* number of elements of the loaded tensors */
	const char *converted;       /* dtype of values that are converted to f32: "f16", "bf16" or "f64"; NULL: none */
	bool stripped;               /* all names in the file begin with "module.", which is removed */
	const char *const *initial;  /* names of the model's tensors that keep their initial values, because the file lacks them */
	const char *const *dropped;  /* names in the file that an entry of model.pretrained.map with to = "" skips */
	const char *const *unused;   /* names of the remaining tensors in the file, which the model does not have */
	int ninitial, ndropped, nunused;
};
/* gt_pretrained_text writes a report as one line of text, with at most six names of each list, to buf (2048 bytes suffice) and returns buf.
 * gt_pretrained_json writes the report, with all names, as members of the open JSON object. */
const char *gt_pretrained_text(const struct gt_pretrained_report *r, char *buf, size_t size);
void gt_pretrained_json(struct gt_json *j, const struct gt_pretrained_report *r);

/* An event of a run. A field whose comment begins with kinds of events is set for these kinds only. */
struct gt_event {
	enum gt_event_kind kind;
	int64_t step, steps;   /* optimizer steps done; optimizer steps of the whole run */
	int64_t epoch, epochs; /* epoch of the last optimizer step, from 1 (0: no step was made); epochs of the run (0: the config sets
	                          train.steps) */
	double loss, lr;       /* TRAIN: loss: mean loss of the batch; lr: learning rate */
	double acc, top5;      /* TRAIN: accuracy and top-5 accuracy of the batch, 0 ... 1; NAN if all samples are ignored */
	struct gt_scores scores; /* EVAL: scores of the evaluation; EPOCH: scores on the training batches of the epoch */
	const struct gt_run_result *result; /* END: results of the run; NULL: not known */
	enum gt_code code;     /* END: exit status if an error has ended the run; else GT_OK */
	const char *why;       /* END: message of the error that has ended the run */
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
	const char *init, *device; /* START: the options of the command, as in struct gt_run_opts; NULL: not given */
	int64_t ranks;         /* START: number of ranks */
	const char *const *sets; /* RESUME: [nsets] the settings of the command that have changed the config of the checkpoint */
	int nsets;
	/* START: one line with the model's parameters, the device and the ranks. WARN: the warning. RESUME, CHECKPOINT: path of the
	 * checkpoint. END: how the run ended: "ok", "signal 15", ... (train/run_end.h). PHASE: what is in progress: "evaluating" (the field
	 * split names the split) or "saving a checkpoint". */
	const char *text;
	/* The line of metrics.jsonl that this event wrote. NULL: the event wrote no line; every step is a TRAIN event, but not every step
	 * writes a line. */
	const char *json;
};
typedef void (*gt_observer)(void *user, const struct gt_event *ev);

struct gt_rank_link;

struct gt_run_opts {
	const char *out;       /* run directory, instead of the config's checkpoint.dir; NULL: the config decides */
	const char *device;    /* device, instead of the config's key `device`; NULL: the config decides */
	const char *against;   /* gt_smoke: "cpu" or "cpu:PRECISION": compare with a run on the CPU, and each operation with the CPU's. gt_run,
	                          in a rank of a smoke test: write the comparison to operations-RANK.jsonl. NULL: do not compare */
	const char *init;      /* safetensors file with the initial weights; NULL: none */
	bool dry;              /* make all checks that a run makes before its first step, then return without creating or changing a file */
	const char *predictions; /* gt_eval: rank 0 writes the prediction and the loss of each sample to this CSV file; NULL: no file */
	int mistakes;          /* gt_eval with a report: number of the worst predictions to return with their samples; 0: none */
	double time_limit_s;   /* save a checkpoint and end after this number of seconds; 0: no limit */
	int nproc;             /* number of ranks on each host; 0: the config decides */
	int nnodes, node_rank; /* number of hosts (0 means 1), and number of this host, from 0; each host has nproc ranks */
	int min_nodes;         /* 0: the number of hosts is fixed. Otherwise hosts may be lost and join: the run has at least min_nodes and at
	                          most nnodes hosts */
	const char *master_addr; /* with nnodes > 1: address of the host of rank 0 */
	int master_port;       /* with nnodes > 1: port on the host of rank 0; 0 means 29500 */
	const char *token_file; /* path of a file with the secret of the run, 64 hexadecimal digits, which is the same on every host; NULL:
	                           the path is in $GTRAIN_TOKEN_FILE */
	int max_restarts;      /* maximum number of automatic restarts from the newest checkpoint, after failures that may be transient */
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
	/* Called after a run with log.report = true has ended without an error, when all ranks have ended, in one process: the launcher, or
	 * rank 0 without a launcher. dir: the run directory. NULL: it is not called. */
	void (*want_page)(void *user, const char *dir);
	void *user;            /* first argument of observe, say and want_page */
};
/* gt_run trains a config; gt_resume continues a run. If several ranks are requested and no launcher has started this process, both
 * functions start one process per rank from this program and supervise these processes (launch/launcher.h). After a signal n, both save a
 * checkpoint and return code 128+n. */
enum gt_code gt_run(struct gt_conf *c, const struct gt_run_opts *o, struct gt_err *err);
/* Continues a run. path: a run directory, or a checkpoint in one. from: "latest", "best" or a step number selects the checkpoint; NULL
 * selects the checkpoint that path names, or the latest one if path is a run directory. Going back to an earlier checkpoint changes
 * nothing in the directory until the first new checkpoint is committed; the later ones then move to <dir>/history-<n>. */
enum gt_code gt_resume(const char *path, const char *from, const char *const *sets, int nsets, const struct gt_run_opts *o,
                       struct gt_err *err);

struct gt_against_runs;
struct gt_against_operations;
/* Results of a smoke test so far. A comment in quotes names the phase that sets a field. Strings are valid until gt_smoke returns. */
struct gt_smoke {
	const char *phase;       /* the phase that has ended: "plan", "train", "evaluate", "checkpoint", "resume", "compare"; with
	                            gt_run_opts.against also "cpu", "runs", "operations" */
	double seconds;          /* duration of the phase that has ended, in seconds */
	const char *name, *mode, *precision; /* name, parallel.mode and precision of the config */
	int ranks, config_ranks; /* number of ranks in the test, and in the config; config_ranks 0: the config says "auto" */
	int64_t batch, config_batch, samples; /* batch size in the test, and in the config; maximum number of samples that the test reads of
	                                         each split, 0: no maximum */
	int64_t steps, saved;    /* number of steps of the uninterrupted run; number of the step from whose checkpoint the second run resumes */
	const char *data;        /* location of the data, or a description of its replacement */
	bool synthetic;          /* the data is generated from the seed, because the config's data was not found */
	const char *why;         /* reason why the config's data was not found; set only if `synthetic` is true */
	const char *weights;     /* reason why the run keeps its initial weights although the config has model.pretrained; NULL: it loads the
	                            pretrained weights */
	const char *start;       /* "train": the first line of the run, with parameters, device and ranks */
	double first_loss, last_loss; /* "train": loss of the first and of the last step */
	char split[16];          /* "evaluate": the last split that was evaluated */
	double loss, acc;        /* "evaluate": its scores */
	uint64_t bytes;          /* "checkpoint": size of one checkpoint */
	const struct gt_against_runs *runs;             /* "runs": the run on the device and the run on the CPU (gtrain_against.h) */
	const struct gt_against_operations *operations; /* "operations": each operation on the device and on the CPU, with the same inputs
	                                                   (gtrain_against.h) */
	const char *model, *optimizer; /* "compare": digests of the model and optimizer files, which are equal in both runs; optimizer NULL: the
	                                  optimizer has no file */
};
/* The smoke test runs gt_run and gt_resume in separate processes: a few steps, an evaluation, checkpoints; then a resume from the earlier
 * checkpoint, which must end with the same bits. report/smoke_plan.h describes how the config is reduced. It uses these fields of o: out
 * (kept; NULL: a temporary directory, which is removed), device, init, nproc, say, user, and run_argv and resume_argv, which must make a
 * rank write its events as JSON and nothing else. tell: called after each phase, with o->user. GT_EFAIL: the resumed run ended with
 * different bits; GT_EDIFFERS: with against, the device and the CPU differ; otherwise the code of the phase that failed. */
enum gt_code gt_smoke(struct gt_conf *c, const struct gt_run_opts *o, void (*tell)(void *user, const struct gt_smoke *s),
                      struct gt_err *err);

/* The connection of a rank to the launcher that started it. main() calls gt_rank_open first; it sets *out to NULL if no launcher started
 * this process. A rank passes the error with which it will exit to gt_rank_report_error instead of printing it, and the launcher prints
 * it. */
enum gt_code gt_rank_open(struct gt_rank_link **out, struct gt_err *err);
void gt_rank_report_error(struct gt_rank_link *l, enum gt_code code, const char *sentence);
void gt_rank_close(struct gt_rank_link *l);

#endif
