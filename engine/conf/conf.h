/* A checked config. conf/ is the only user of libconfig; nobody else sees a libconfig type. Every field below comes from one row
 * of the schema table (schema.c), which also gives `gtrain check`, gtrain.cfg(5) and the completions their words. */
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
	int64_t batch, batch_per_rank; /* exactly one is > 0 after loading */
	int64_t eval_batch;            /* 0: as batch */
	bool shuffle, drop_last;
	int sampler;                   /* enum gt_sampler */
	double valid;                  /* share of the training split kept for the split "valid" */
	struct gt_floats mean, std;    /* one a channel, or one for all; empty: 0 and 1 (x = byte / 255) */
	struct gt_conf_augment augment[8];
	int naugment;
	int64_t classes, samples, samples_test; /* synthetic */
	int64_t limit;
	int64_t prefetch;              /* batches ahead; 0: on the step's own threads; -1: auto */
};

struct gt_conf_optimizer {
	int type; /* enum gt_optimizer: an index of gt_optimizer_rows */
	double lr, momentum, dampening, weight_decay, eps, alpha;
	double betas[2];
	bool nesterov, centered;
	int64_t ns_steps;    /* muon */
	struct gt_floats ns; /* three */
	int adjust;          /* enum gt_muon_adjust */
	bool normalize;
	bool decay_bias, decay_norm; /* false: biases / normalisation parameters are exempt from weight decay */
};

struct gt_conf_schedule {
	int type, unit; /* unit of step_size, milestones, t_max, warmup */
	double warmup;            /* length, in units */
	double warmup_start;      /* factor of lr at the first step */
	double step_size, gamma;  /* step, exponential, multistep */
	struct gt_floats milestones;
	double t_max;             /* cosine, polynomial, onecycle; 0: the rest of the run */
	double min_lr;            /* cosine, polynomial: absolute */
	double power;
	double pct_start, div_factor, final_div_factor; /* onecycle; lr is its maximum */
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
	bool frozen_stats; /* of batch normalisations */
	double freeze_after; /* epochs; 0: never */
	double lr_mul;
	double weight_decay; /* NAN: the optimizer's */
	struct gt_conf_optimizer optimizer;
	struct gt_conf_schedule schedule;
	const char *file; /* of the entry in the config */
	int line;
	bool own_optimizer, own_schedule; /* said; else train's */
};

struct gt_conf_train {
	int64_t epochs;
	int64_t steps; /* > 0: stop after so many optimizer steps */
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
	const struct gt_conf_group *group; /* as many as model.groups, which has their patterns */
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
	struct gt_strings cuts; /* pipe; as indices of layers, ascending: */
	int cut[GT_MAX_LIST];
	bool sync_bn;
	double bucket_mb;
	bool host_staged;
	int64_t shards; /* reproducible = "world" */
	double timeout; /* seconds */
};

struct gt_conf_checkpoint {
	const char *dir; /* "": no checkpoints */
	int64_t every_epochs, every_steps;
	double every_minutes;
	int64_t keep;
	const char *best_metric; /* "": none; "test/acc", "valid/loss" */
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
	int64_t threads;    /* 0: all */
	bool winograd;
	bool autotune;
	bool cuda_graphs;
	int64_t window;     /* steps queued on a GPU at once; 0: as many as take 0.1 s */
	struct gt_conf_data data;
	struct gt_model_spec model;
	struct gt_conf_train train;
	struct gt_conf_eval eval;
	struct gt_conf_parallel parallel;
	struct gt_conf_checkpoint checkpoint;
	struct gt_conf_log log;
	const struct gt_cnode *tree; /* as it was read: for the places in messages */
	const char *text; /* the resolved config, as written to <dir>/config.cfg: loading it gives the same struct */
};

/* Reads, checks and resolves a file. sets: n strings "path=value" (value as libconfig writes it; a bare word is taken as a string)
 * with the same checks; errors in them read "--set train.epochs=x: train.epochs: expected …, got …".
 * GT_ENOINPUT: no such file. GT_ECONFIG: one line "file:line: path: expected …, got …", the first error by line. On failure *out is
 * NULL. */
enum gt_code gt_conf_load(const char *path, const char *const *sets, int nsets, struct gt_conf **out, struct gt_err *err);
/* The same; with GT_ECONFIG errors has all of them, at most 20, sorted by line: those that follow from another one are left out. */
enum gt_code gt_conf_load_all(const char *path, const char *const *sets, int nsets, struct gt_problems *errors, struct gt_conf **out,
                              struct gt_err *err);
/* The same from n bytes in memory, as a checkpoint holds them: it includes nothing. label stands where a file name would. */
enum gt_code gt_conf_load_text(const char *label, const char *text, size_t n, const char *const *sets, int nsets, struct gt_conf **out,
                               struct gt_err *err);
void gt_conf_free(struct gt_conf *c);

/* "file:line: path: …" at the place of a key, or of the nearest group above it. Returns GT_ECONFIG. */
enum gt_code gt_conf_refuse(const struct gt_conf *c, const char *path, struct gt_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Puts "file:line: model.layers[i] (name): " before a message; keeps its code, and returns it. */
enum gt_code gt_conf_at_layer(const struct gt_conf *c, int i, struct gt_err *err);
/* Puts "file:line: " of the key before a message that begins with one ("data.root: …"); other messages stay as they are. Returns the
 * message's code. */
enum gt_code gt_conf_at_key(const struct gt_conf *c, struct gt_err *err);

/* The loss of the config as the graph wants it. */
enum gt_code gt_conf_loss(const struct gt_conf *c, struct gt_loss_spec *out, struct gt_err *err);

/* Every key with a single value that applies, in the order of the manual: hyper-parameters, for what compares runs. */
enum gt_scalar_kind { GT_SCALAR_NUMBER, GT_SCALAR_BOOL, GT_SCALAR_TEXT };
struct gt_conf_scalar {
	const char *path; /* "train.optimizer.lr" */
	enum gt_scalar_kind kind;
	double number;    /* BOOL: 0 or 1 */
	const char *text;
};
void gt_conf_each_scalar(const struct gt_conf *c, void (*fn)(void *user, const struct gt_conf_scalar *s), void *user);

#endif
