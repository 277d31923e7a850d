/* The config of a run after all checks.
 *
 *     GT_TRY(gt_conf_load("net.cfg", sets, nsets, &conf, err));
 *     … conf->train.epochs …
 *     gt_conf_free(conf);
 *
 * Each field below has one row in the table of keys (schema.c), from which the checks, gtrain.cfg(5) and the completions are made too. The
 * types of libconfig are used in ctree.c only. */
#ifndef GT_CONF_CONF_H
#define GT_CONF_CONF_H

#include "base/problems.h"
#include "ir/graph.h"
#include "optimizer.h"

enum gt_reproducible { GT_REPRO_NONE, GT_REPRO_RUN, GT_REPRO_WORLD };
enum gt_precision { GT_PREC_FP32, GT_PREC_TF32, GT_PREC_BF16, GT_PREC_FP16 };
enum gt_sampler { GT_SAMPLER_GTRAIN, GT_SAMPLER_TORCH, GT_SAMPLER_TORCH_RANDOM };
enum gt_mode { GT_MODE_SINGLE, GT_MODE_DP, GT_MODE_DDP, GT_MODE_ZERO, GT_MODE_PIPE };
enum gt_schedule { GT_SCHED_CONSTANT, GT_SCHED_STEP, GT_SCHED_MULTISTEP, GT_SCHED_EXPONENTIAL, GT_SCHED_COSINE, GT_SCHED_POLYNOMIAL,
	GT_SCHED_ONECYCLE };
enum gt_sched_unit { GT_UNIT_EPOCH, GT_UNIT_STEP };
enum gt_aug_type { GT_AUG_PAD_CROP, GT_AUG_HFLIP };
enum gt_tta { GT_TTA_NONE, GT_TTA_MIRROR, GT_TTA_MIRROR_TRANSLATE };
enum gt_across { GT_ACROSS_DDP, GT_ACROSS_ZERO };
enum gt_pipe_balance { GT_BALANCE_COMPUTED, GT_BALANCE_MEASURED };
enum gt_pipe_schedule { GT_PIPE_GPIPE, GT_PIPE_1F1B, GT_PIPE_INTERLEAVED, GT_PIPE_ZERO_BUBBLE };

#define GT_MAX_LIST 64
#define GT_MAX_CH 16

struct gt_floats { int n; double v[GT_MAX_LIST]; };
struct gt_ints { int n; int64_t v[GT_MAX_LIST]; };
struct gt_strings { int n; const char *v[GT_MAX_LIST]; };

struct gt_conf_augment {
	int type; /* enum gt_aug_type */
	int64_t pad;
	int mode; /* 0: constant, 1: reflect */
	double p; /* hflip */
	bool alternate;
};

struct gt_conf_data {
	const char *name, *root, *format;
	struct gt_strings train, test;
	int64_t batch, batch_per_rank; /* samples per step, over all ranks or on each; exactly one of them is > 0 after loading */
	int64_t eval_batch;            /* samples per batch of an evaluation; 0: as in training */
	bool shuffle, drop_last;
	int sampler;                   /* enum gt_sampler */
	double valid;                  /* share of the training split that becomes the split "valid" */
	struct gt_floats mean, std;    /* one per channel, or one for all; empty: 0 and 1; pixels are byte / 255 */
	struct gt_conf_augment augment[8];
	int naugment;
	int64_t classes, samples, samples_test; /* synthetic */
	int64_t limit;
	int64_t prefetch;              /* batches that a thread prepares in advance; 0: the step prepares its own; -1: chosen automatically */
};

struct gt_conf_optimizer {
	int type; /* enum gt_optimizer, an index of gt_optimizer_rows */
	double lr, momentum, dampening, weight_decay, eps, alpha;
	double betas[2];
	bool nesterov, centered;
	int64_t ns_steps;    /* muon */
	struct gt_floats ns; /* three coefficients */
	int adjust;          /* enum gt_muon_adjust */
	bool normalize;
	bool decay_bias, decay_norm; /* false: no weight decay for biases, for parameters of normalisations */
};

struct gt_conf_schedule {
	int type, unit; /* unit: of step_size, milestones, t_max and warmup */
	double warmup;            /* length, in units */
	double warmup_start;      /* learning rate at the first step, as a factor of lr */
	double step_size, gamma;  /* step, exponential, multistep */
	struct gt_floats milestones;
	double t_max;             /* cosine, polynomial, onecycle; 0: until the end of the run */
	double min_lr;            /* cosine, polynomial: a rate, not a factor */
	double power;
	double pct_start, div_factor, final_div_factor; /* onecycle, whose maximum is lr */
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
	double freeze_after; /* epochs; 0: never */
	double lr_mul;
	double weight_decay; /* NAN: the optimizer's */
	struct gt_conf_optimizer optimizer;
	struct gt_conf_schedule schedule;
	const char *file; /* position of the entry in the config */
	int line;
	bool own_optimizer, own_schedule; /* the entry has one of its own; false: a copy of train's */
};

struct gt_conf_train {
	int64_t epochs;
	int64_t steps; /* > 0: number of optimizer steps of the run */
	const char *loss;
	double label_smoothing;
	int64_t ignore_index;
	int64_t accumulate;
	int recompute; /* 0: none, 1: cheap */
	double clip_norm;
	int64_t eval_every_epochs, eval_every_steps;
	struct gt_conf_optimizer optimizer;
	struct gt_conf_schedule schedule;
	struct gt_conf_loss_scale loss_scale; /* fp16 */
	const struct gt_conf_group *group; /* entry i belongs to model.groups[i], which has its patterns */
	int ngroups;
};

struct gt_conf_eval {
	int tta; /* enum gt_tta */
};

struct gt_conf_parallel {
	int mode;
	int64_t nproc; /* 0: auto */
	int64_t stage; /* zero */
	int64_t chunks, replicas; /* pipe */
	int across;    /* pipe: enum gt_across */
	bool deferred_bn; /* pipe */
	int schedule;  /* pipe: enum gt_pipe_schedule */
	int64_t virtual_stages; /* interleaved */
	int balance;   /* pipe: enum gt_pipe_balance */
	struct gt_strings cuts; /* pipe: first layers of the second and later stages, … */
	int cut[GT_MAX_LIST];   /* … and their indices, ascending */
	bool sync_bn;
	double bucket_mb;
	bool host_staged;
	int64_t shards; /* reproducible = "world": number of virtual shards of a batch */
	double timeout; /* seconds */
};

struct gt_conf_checkpoint {
	const char *dir; /* "": the run writes no files */
	int64_t every_epochs, every_steps;
	double every_minutes;
	int64_t keep;
	const char *best_metric; /* "test/acc", "valid/loss", …; "": none */
	int best_mode;           /* 0: max, 1: min */
	bool on_signal;
};

struct gt_conf_log {
	int64_t every_steps;
	bool tensorboard;
};

struct gt_conf {
	struct gt_arena *arena; /* owns everything below */
	const char *path;
	int64_t schema;
	const char *name;
	int64_t seed;
	int reproducible, precision;
	const char *device; /* "auto", "cpu", "cuda", "cuda:0" */
	int64_t threads;    /* of a rank; 0: chosen automatically */
	bool winograd;
	bool autotune;
	bool cuda_graphs;
	int64_t window;     /* maximum number of steps queued on a GPU; 0: as many as take about 0.1 s */
	struct gt_conf_data data;
	struct gt_model_spec model;
	struct gt_conf_train train;
	struct gt_conf_eval eval;
	struct gt_conf_parallel parallel;
	struct gt_conf_checkpoint checkpoint;
	struct gt_conf_log log;
	const struct gt_cnode *tree; /* the tree that was read, for the lines in messages */
	const char *text; /* the resolved config, as in <dir>/config.cfg; loading it gives the same struct */
};

/* Reads, checks and resolves a file. sets: nsets strings "path=value" that override keys, with the same checks; value has the syntax of
 * libconfig, and a bare word is a string. Errors in them begin with "--set train.epochs=x: ". GT_ENOINPUT: no such file. GT_ECONFIG: one
 * line "file:line: path: expected …, got …", the first error by line. On failure *out is NULL. */
enum gt_code gt_conf_load(const char *path, const char *const *sets, int nsets, struct gt_conf **out, struct gt_err *err);
/* The same. With GT_ECONFIG, errors contains all errors, at most 20, sorted by line, without those that follow from another one. */
enum gt_code gt_conf_load_all(const char *path, const char *const *sets, int nsets, struct gt_problems *errors, struct gt_conf **out,
                              struct gt_err *err);
/* The same for n bytes in memory, such as the config of a checkpoint; @include is an error. label: the file name in messages. */
enum gt_code gt_conf_load_text(const char *label, const char *text, size_t n, const char *const *sets, int nsets, struct gt_conf **out,
                               struct gt_err *err);
void gt_conf_free(struct gt_conf *c);

/* Fills err with "file:line: path: …", where the line is that of the key, or of the nearest group above it that the config has. Returns
 * GT_ECONFIG. */
enum gt_code gt_conf_refuse(const struct gt_conf *c, const char *path, struct gt_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Puts "file:line: model.layers[i] (name): " before the message in err. Returns its code. */
enum gt_code gt_conf_at_layer(const struct gt_conf *c, int i, struct gt_err *err);
/* If the message in err begins with a key ("data.root: …"), puts "file:line: " of this key before it. Returns the code of err. */
enum gt_code gt_conf_at_key(const struct gt_conf *c, struct gt_err *err);

/* Fills out with the loss of the config, for the graph. */
enum gt_code gt_conf_loss(const struct gt_conf *c, struct gt_loss_spec *out, struct gt_err *err);

/* Calls fn with every key that has a single value and applies, in the order of the manual: the hyper-parameters of a run. */
enum gt_scalar_kind { GT_SCALAR_NUMBER, GT_SCALAR_BOOL, GT_SCALAR_TEXT };
struct gt_conf_scalar {
	const char *path; /* "train.optimizer.lr" */
	enum gt_scalar_kind kind;
	double number;    /* BOOL: 0 or 1 */
	const char *text;
};
void gt_conf_each_scalar(const struct gt_conf *c, void (*fn)(void *user, const struct gt_conf_scalar *s), void *user);

#endif
