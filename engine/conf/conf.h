/* The config of a run after all checks.
 *
 *     GT_TRY(gt_conf_load("net.cfg", sets, nsets, &conf, err));
 *     … conf->train.epochs …
 *     gt_conf_free(conf);
 *
 * Each field below has one row in the table of keys (schema.c). The checks, gtrain.cfg(5) and the completions are generated from the same
 * rows. Only ctree.c uses types of libconfig. */
#ifndef GT_CONF_CONF_H
#define GT_CONF_CONF_H

#include "base/modes.h"
#include "base/problems.h"
#include "conf/schedule_rows.h"
#include "image/transform.h"
#include "ir/graph.h"
#include "losses.h"
#include "optimizer.h"
#include "table/table_spec.h"
#include "text/tokenizer.h"

enum gt_reproducible { GT_REPRO_NONE, GT_REPRO_RUN, GT_REPRO_WORLD };
enum gt_precision { GT_PREC_FP32, GT_PREC_TF32, GT_PREC_BF16, GT_PREC_FP16 };
enum gt_sampler { GT_SAMPLER_GTRAIN, GT_SAMPLER_TORCH, GT_SAMPLER_TORCH_RANDOM };
enum gt_on_error { GT_ON_ERROR_STOP, GT_ON_ERROR_SKIP };
enum gt_keep_index { GT_KEEP_INDEX_AUTO, GT_KEEP_INDEX_ALWAYS, GT_KEEP_INDEX_NEVER };
/* Kinds of targets of a sample: one class; several labels, each 0 or 1; or values that the model predicts (regression). */
enum gt_targets { GT_TARGETS_CLASS, GT_TARGETS_LABELS, GT_TARGETS_NUMBERS };
enum gt_tta { GT_TTA_NONE, GT_TTA_MIRROR, GT_TTA_MIRROR_TRANSLATE };
enum gt_across { GT_ACROSS_DDP, GT_ACROSS_ZERO };
enum gt_compress { GT_COMPRESS_NONE, GT_COMPRESS_BF16 };
enum gt_pipe_schedule { GT_PIPE_GPIPE, GT_PIPE_1F1B, GT_PIPE_INTERLEAVED, GT_PIPE_ZERO_BUBBLE };

#define GT_MAX_CH 16
#define GT_MAX_TRANSFORMS 8

struct gt_conf_data {
	const char *name, *root, *format;
	const char *path_column, *label_column, *pattern; /* keys of data with format = "list" or "pattern"; "": not set */
	const char *label_separator;   /* of the format "list"; "": a sample has one label */
	struct gt_strings target_columns; /* of the format "list"; empty: the targets are labels */
	/* of the format "csv" */
	struct gt_strings target, ignore, na;
	const char *delimiter;         /* one character; "": detected */
	int encoding;                  /* enum gt_encoding */
	const char *decimal, *thousands; /* decimal point, and separator of thousands, of numbers in a table; thousands "": no separator */
	int header;                    /* enum gt_table_header */
	bool normalize_target;         /* the model learns (target - mean) / standard deviation */
	const struct gt_column_spec *columns; /* [ncolumns] */
	int ncolumns;
	int targets;                   /* enum gt_targets; follows from other keys */
	struct gt_strings train, test;
	int64_t batch, batch_per_rank; /* samples of a step over all ranks, or on each rank; exactly one of the two is > 0 after loading */
	int64_t eval_batch;            /* samples of one batch of an evaluation; 0: the batch size of training */
	bool shuffle, drop_last;
	int sampler;                   /* enum gt_sampler */
	double valid;                  /* share of the training split that becomes the split "valid" */
	int64_t valid_seed;            /* seed of this division; -1: the seed of the run */
	bool stratify;                 /* true: the share `valid` is taken from every class separately */
	int on_error;                  /* enum gt_on_error */
	int index;                     /* enum gt_keep_index */
	int64_t workers;               /* number of threads that read and decode samples; 0: chosen automatically */
	bool gpu_transforms;           /* the GPU does the transforms that it supports, after threads have decoded the images */
	struct gt_floats mean, std;    /* one value for each channel or one for all, for pixel values 0 … 1; empty: mean 0, std 1 */
	struct gt_transform augment[GT_MAX_TRANSFORMS];
	int naugment;
	int64_t classes, samples, samples_test; /* of a synthetic dataset: number of classes, training samples and test samples */
	int64_t limit;
	struct gt_text_spec text;      /* of the formats "text" and "csv" */
	const char *text_key;          /* the first key of texts whose value is not the default; NULL: none */
	struct gt_floats lengths;      /* ascending integers: lengths to which batches are padded; empty: chosen automatically */
	int64_t buckets;               /* number of batches whose sequences are sorted by length together; 0: not sorted; -1: automatic */
	int64_t prefetch;              /* number of batches that a thread prepares in advance; 0: the step prepares its batch; -1: automatic */
};

#define GT_MAX_LENGTHS 8 /* maximum number of entries of data.lengths */
#define GT_FLOATS_AUTO (-1) /* gt_floats.n of a key whose value is "auto" */

#define GT_KEY_NUMBER(key) double key;
#define GT_KEY_FLAG(key) bool key;
#define GT_KEY_BETAS(key) double key[2];
struct gt_conf_optimizer {
	int type; /* enum gt_optimizer, an index of gt_optimizer_rows */
	double lr, weight_decay;
#define GT_X(P, A, KIND, key, ...) GT_KEY_##KIND(key)
	GT_OPTIMIZER_KEYS(GT_X, , )
#undef GT_X
	int64_t ns_steps;    /* of the optimizer muon: number of Newton-Schulz iterations */
	struct gt_floats ns; /* of the optimizer muon: the three coefficients of the Newton-Schulz iteration */
	int adjust;          /* enum gt_muon_adjust */
	bool normalize;
	bool decay_bias, decay_norm; /* whether biases, and parameters of normalisations, have weight decay */
};

struct gt_conf_loss_scale {
	bool dynamic;
	double init, growth, backoff;
	int64_t interval;
};

#define GT_MAX_PGROUPS 15
struct gt_conf_group {
	struct gt_strings match;
	bool frozen;
	bool frozen_stats; /* batch normalisations use their running statistics in training */
	double frozen_until; /* number of epochs at the beginning in which the group is frozen; 0: none */
	double freeze_after; /* number of epochs after which the group is frozen; 0: never */
	double lr_mul;
	double weight_decay; /* NAN: the optimizer's value */
	struct gt_conf_optimizer optimizer;
	struct gt_conf_schedule schedule;
	const char *file; /* file and line of the entry in the config */
	int line;
	bool own_optimizer, own_schedule; /* whether the entry sets these keys; false: copies of train.optimizer and train.schedule */
};

/* An entry of model.pretrained.map: the name of a tensor in the file, and of the model's tensor that gets its values. */
struct gt_conf_rename {
	const char *from; /* pattern of names in the file, with at most one '*' */
	const char *to;   /* name in the model; its '*' is replaced by the text that the '*' of `from` matched; "": not loaded */
	struct gt_ints part; /* {i, n}: part i, from 0, of n equal parts of the model's tensor along dimension 0; empty: the whole tensor */
};
#define GT_MAX_PARTS 8
#define GT_MAX_RENAMES 64
struct gt_conf_pretrained {
	const char *file; /* safetensors file from which a new run takes its first weights; "": none */
	const struct gt_conf_rename *map;
	int nmap;
};

struct gt_conf_train {
	int64_t epochs;
	int64_t steps; /* > 0: number of optimizer steps of the run */
	const char *loss;
	double loss_number[GT_LOSS_COUNT][GT_LOSS_NUMBERS]; /* parameters of each loss (GT_LOSS_KEYS), indexed by enum gt_loss */
	/* One weight for each output of the model; empty: 1. class_weights.n may be GT_FLOATS_AUTO: computed from the training split */
	struct gt_floats class_weights, pos_weight;
	int64_t ignore_index;
	int64_t accumulate;
	int recompute; /* 0: none, 1: cheap */
	double clip_norm, clip_value;
	double layer_decay; /* factor of the learning rate for each block between a parameter's block and the head; 1: none */
	int64_t eval_every_epochs, eval_every_steps;
	struct gt_conf_optimizer optimizer;
	struct gt_conf_schedule schedule;
	/* Early stopping. metric "": off. patience: number of evaluations without an improvement of more than min_delta that end the run. */
	struct { const char *metric; int64_t patience; double min_delta; } early_stop;
	struct { double decay; bool warmup; } ema; /* exponential moving average of the parameters; decay 0: none is kept */
	struct gt_conf_loss_scale loss_scale; /* loss scaling, used with precision = "fp16" only */
	const struct gt_conf_group *group; /* entries of train.groups; entry i has the same patterns as gt_conf.model.groups[i] */
	int ngroups;
};

struct gt_conf_eval {
	int tta; /* enum gt_tta */
	struct gt_transform transforms[GT_MAX_TRANSFORMS];
	int ntransforms;
};

struct gt_conf_parallel {
	int mode;
	int64_t nproc; /* number of ranks on each host; 0: "auto" */
	int64_t stage; /* mode zero: ZeRO stage, 1 … 3 */
	int64_t chunks, replicas; /* mode pipe: number of micro-batches of a batch; number of copies of the pipeline */
	int across;    /* mode pipe: enum gt_across */
	int schedule;  /* mode pipe: enum gt_pipe_schedule */
	int64_t virtual_stages; /* schedule "interleaved": number of stages on each rank */
	struct gt_strings cuts; /* mode pipe: names of the first layers of all stages except the first stage */
	int cut[GT_MAX_LIST];   /* indices, ascending, of the layers in cuts */
	bool sync_bn;
	double bucket_mb;
	int compress; /* enum gt_compress */
	bool host_staged;
	int64_t shards; /* reproducible = "world": number of virtual shards of a batch */
	double timeout; /* seconds without progress after which a rank is treated as lost */
};

struct gt_conf_checkpoint {
	const char *dir; /* "": the run writes no files */
	int64_t every_epochs, every_steps;
	double every_minutes;
	int64_t keep;
	const char *best_metric; /* metric that selects the best checkpoint: "test/acc", "valid/loss", …; "": none */
	int best_mode;           /* 0: the highest value of best_metric is the best, 1: the lowest */
	bool on_signal;
};

struct gt_conf_log {
	int64_t every_steps;
	bool tensorboard;
	bool report;
	int64_t histograms;  /* number of epochs between histograms of the weights for TensorBoard; 0: none */
	int64_t images;      /* number of images of mistakes for TensorBoard after an evaluation; 0: none */
	const char *command; /* shell command that gets the lines of metrics.jsonl; "": none */
	struct {
		const char *uri; /* address of an MLflow server; "": none */
		const char *experiment;
		bool artifacts;  /* upload the config and the model */
	} mlflow;
};

struct gt_conf {
	struct gt_arena *arena; /* owns everything below */
	const char *path;
	int64_t schema;
	const char *name;
	int64_t seed;
	int reproducible, precision;
	const char *device; /* "auto", "cpu", "cuda", "cuda:0" */
	int64_t threads;    /* number of CPU threads of each rank; 0: chosen automatically */
	bool winograd;
	bool autotune;
	bool cudnn_attention;
	bool cuda_graphs;
	int64_t window;     /* maximum number of steps queued on a GPU; 0: steps for about 0.1 s */
	struct gt_conf_data data;
	struct gt_model_spec model;
	struct gt_conf_pretrained pretrained; /* model.pretrained */
	struct gt_conf_train train;
	struct gt_conf_eval eval;
	struct gt_conf_parallel parallel;
	struct gt_conf_checkpoint checkpoint;
	struct gt_conf_log log;
	const struct gt_cnode *tree; /* the parsed config, from which messages take line numbers */
	const char *text; /* text of the config with all defaults, as in <dir>/config.cfg; loading it gives the same struct */
};

/* Reads and checks a config file and sets all defaults. sets: nsets strings "path=value" that override keys, with the same checks; value
 * has the syntax of libconfig, and a bare word is a string. Errors in `sets` begin with "--set train.epochs=x: ". Returns GT_ENOINPUT if
 * the file does not exist, and GT_ECONFIG with the error that has the lowest line, "file:line: path: expected …, got …". On failure *out is
 * NULL. */
enum gt_code gt_conf_load(const char *path, const char *const *sets, int nsets, struct gt_conf **out, struct gt_err *err);
/* Loads a config like gt_conf_load. If it returns GT_ECONFIG, `errors` contains all errors of the config, at most 20, sorted by line,
 * without errors that are consequences of another error. */
enum gt_code gt_conf_load_all(const char *path, const char *const *sets, int nsets, struct gt_problems *errors, struct gt_conf **out,
                              struct gt_err *err);
/* gtrain.h describes these two functions. */
enum gt_code gt_conf_load_fd(int fd, const char *label, const char *const *sets, int nsets, struct gt_problems *errors,
                             struct gt_conf **out, struct gt_err *err);
enum gt_code gt_conf_keep_stream(const char *path, int *fd, struct gt_err *err);
/* Loads a config like gt_conf_load, from n bytes in memory, such as the config of a checkpoint; @include is an error. label: the file
 * name in messages. */
enum gt_code gt_conf_load_text(const char *label, const char *text, size_t n, const char *const *sets, int nsets, struct gt_conf **out,
                               struct gt_err *err);
/* Loads the config of a checkpoint like gt_conf_load_text. The text has all keys of the version that wrote it. A newer key gets the value
 * that keeps the run unchanged. A removed key may have no effect (gt_removed_key.ignored). */
enum gt_code gt_conf_load_resolved(const char *label, const char *text, size_t n, const char *const *sets, int nsets, struct gt_conf **out,
                                   struct gt_err *err);
void gt_conf_free(struct gt_conf *c);

/* Fills err with "file:line: path: …", with the line of the key or, if the config lacks the key, of the nearest enclosing group. Returns
 * GT_ECONFIG. */
enum gt_code gt_conf_refuse(const struct gt_conf *c, const char *path, struct gt_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Puts "file:line: model.layers[i] (name): " before the message in err. Returns its code. */
enum gt_code gt_conf_at_layer(const struct gt_conf *c, int i, struct gt_err *err);
/* If the message in err begins with a key ("data.root: …"), puts "file:line: " of this key before it. Returns the code of err. */
enum gt_code gt_conf_at_key(const struct gt_conf *c, struct gt_err *err);

/* Returns whether an optimizer has a momentum > 0, or betas. */
bool gt_conf_has_momentum(const struct gt_conf_optimizer *o);

/* Sets *out to the description of the config's loss that gt_graph_loss takes. */
enum gt_code gt_conf_loss(const struct gt_conf *c, struct gt_loss_spec *out, struct gt_err *err);

/* gt_conf_each_scalar calls fn with every key that has a single value and applies to this config, in the order of the manual. These keys
 * are the hyper-parameters of a run. */
enum gt_scalar_kind { GT_SCALAR_NUMBER, GT_SCALAR_BOOL, GT_SCALAR_TEXT };
struct gt_conf_scalar {
	const char *path; /* "train.optimizer.lr" */
	enum gt_scalar_kind kind;
	double number;    /* BOOL: 0 or 1 */
	const char *text;
};
void gt_conf_each_scalar(const struct gt_conf *c, void (*fn)(void *user, const struct gt_conf_scalar *s), void *user);
/* Calls fn with the same keys, and with keys whose value is a list of numbers or words. The value is passed as text: "0.001", "adam",
 * "[0.9, 0.999]". A text is valid until fn returns; a path stays valid. */
void gt_conf_each_value(const struct gt_conf *c, void (*fn)(void *user, const char *path, const char *text), void *user);

#endif
