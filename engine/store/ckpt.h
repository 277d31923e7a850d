/* Checkpoints on disk: atomic commit, retention, and the search for the newest checkpoint that verifies.
 *
 * <dir>/step-00000938/            a committed checkpoint; modes follow the umask
 *   model.safetensors             parameters and buffers, with PyTorch's names, shapes and order of elements
 *   optimizer.safetensors         logical tensors named "<state>.<parameter>", e.g. "exp_avg.fc1.weight"; absent if there are none
 *   config.cfg                    the resolved config
 *   data.json                     facts learned from the training data, such as the names of the classes; absent if there are none
 *   manifest.json                 written last: format, program version, step, epoch, cursor, seed, best, and for each file its length and
 *                                 XXH3-128 digest
 * <dir>/latest, <dir>/best        symlinks to step directories, replaced by rename; hints only
 * <dir>/first.cfg                 the config with which the run began, after settings of a resume have changed it
 * <dir>/.lock                     flock: one run uses a directory at a time
 * <dir>/history-<serial>/         the files that a run left behind when it went back to an earlier checkpoint: the later checkpoints,
 *                                 metrics.jsonl and config.cfg. <serial> is the serial of the checkpoint that replaced them. A history is a
 *                                 run directory too
 *
 * The commit of a checkpoint. Until the rename, a kill leaves only a temporary directory, which is no checkpoint:
 *
 *     mkdir step-N.tmp-<nonce>/
 *         |  write model, optimizer, config; fsync each
 *         |  write manifest.json; fsync
 *         |  fsync the directory
 *     rename to step-N                      <-- committed
 *         |  fsync <dir>
 *     replace the symlinks latest, best
 *
 * Going back (ckpt_history.c): nothing moves until the first new checkpoint is committed. Its manifest names its parent, so that a later
 * writer can finish a move that a kill interrupted.
 *
 * Removal: an old checkpoint is renamed to step-N.old-<nonce> before its files are removed. The next run that holds the lock removes the
 * left-overs of interrupted commits and removals. Loading executes nothing and takes no path from a file. (The protocols of SQLite and
 * Orbax.)
 *
 *     gt_ckpt_dir_open(path, &d, err);
 *     gt_ckpt_save(d, &meta, model, nmodel, optim, noptim, committed, sizeof committed, err);
 *     gt_ckpt_retain(d, 3, err);
 *     gt_ckpt_dir_close(d);
 */
#ifndef GT_STORE_CKPT_H
#define GT_STORE_CKPT_H

#include "base/arena.h"
#include "base/types.h"
#include "opcall.h"
#include "store/safetensors.h"

#define GT_CKPT_FORMAT 1 /* version of the format that this program writes */

struct gt_ckpt_tensor {
	const char *name;
	struct gt_tdesc desc; /* shape and dtype of the tensor, which is in plain layout */
	const void *data;     /* host memory of desc's size, in plain layout */
	/* called if `data` is NULL: returns the bytes of the tensor each time a save writes the file */
	gt_bytes_fn *read;
	void *user;           /* first argument of read */
	int key;              /* second argument of read */
};

/* The history of the metric of train.early_stop or of the schedule plateau. */
struct gt_ckpt_watch {
	bool set;         /* a value was measured */
	const char *metric; /* the metric with the value `best`; NULL: unknown, because an earlier version wrote the checkpoint */
	double best;      /* best value */
	int64_t bad;      /* number of evaluations since the one with the value `best` */
	int64_t cooldown; /* plateau: number of evaluations that will still be ignored after a reduction of the learning rate */
	int64_t drops;    /* plateau: number of times that the learning rate was reduced so far */
};

/* The evaluation of the last step, which a stop of the run has interrupted. */
struct gt_ckpt_pending {
	bool set;                /* the evaluation has to be made when the run resumes */
	bool due;                /* train.eval_every_* asks for it; false: only the end of the run does */
	struct gt_metrics epoch; /* sums over the samples of the last complete epoch; zeros: no epoch is complete */
};

struct gt_ckpt_meta {
	int64_t step;         /* optimizer steps done */
	int64_t epoch;        /* epoch of the next step, from 0 */
	int64_t cursor;       /* number of samples of this epoch that were already used for training */
	/* position in the learning-rate schedules, in optimizer steps; differs from `step` only after a resume that changed the number of steps
	 * in an epoch */
	int64_t schedule_step;
	int64_t epoch_steps;  /* optimizer steps of an epoch; 0: unknown, because an earlier version wrote the checkpoint */
	int64_t world;        /* number of ranks of the run */
	uint64_t seed;
	bool has_best;        /* the fields best, best_step, best_epoch, best_metric and best_mode are set */
	double best;          /* best value of the metric checkpoint.best.metric so far in the run */
	int64_t best_step;    /* number of optimizer steps done when the value `best` was measured */
	int64_t best_epoch;   /* epoch of best_step, from 1; -1: unknown, because an earlier version wrote the checkpoint */
	/* metric and mode of `best`, for example "test/acc" and "max"; NULL: unknown, because an earlier version wrote the checkpoint */
	const char *best_metric, *best_mode;
	double peak_acc;      /* highest accuracy of any evaluation of the test split, or of the valid split if there is no test split */
	int64_t peak_epoch;   /* epoch of the evaluation with the accuracy peak_acc, from 1; 0: no evaluation had an accuracy */
	double loss_scale;    /* the loss scale in precision fp16; 0 in other precisions */
	int64_t good_steps;   /* number of optimizer steps applied since loss_scale last changed; 0 in other precisions than fp16 */
	struct gt_ckpt_watch early_stop, plateau;
	double seconds;       /* seconds of training so far, including the time before resumes */
	/* sums over the samples that the current epoch has used so far, from which the scores of the epoch are computed at its end */
	struct gt_metrics epoch_sums;
	struct gt_ckpt_pending pending;
	const char *name;     /* name of the run */
	const char *config;   /* text of config.cfg */
	const char *data;     /* text of data.json, one line of JSON (store/data_facts.h); NULL: the checkpoint has no such file */
};

struct gt_ckpt_dir; /* an open, locked run directory */

/* Opens a run directory for writing: creates it if needed (parents too), takes the lock, checks that the directory is writable, and removes
 * what interrupted saves left behind. GT_ECANTCREAT: with the text of errno, or "another run (pid N) uses DIR" if the directory is
 * locked. */
enum gt_code gt_ckpt_dir_open(const char *path, struct gt_ckpt_dir **out, struct gt_err *err);
/* Closes the directory. If the run has failed before it wrote config.cfg, removes the directories that gt_ckpt_dir_open created. */
void gt_ckpt_dir_close(struct gt_ckpt_dir *d);
/* Functions for the process that starts ranks, because the rank that opens the directory may be killed. Before the start,
 * gt_ckpt_dir_existing returns the length of the part of path that exists. After a failure, gt_ckpt_dir_clean removes the rest of path if
 * it has only files of a run that never began. */
size_t gt_ckpt_dir_existing(const char *path);
void gt_ckpt_dir_clean(const char *path, size_t existed);
/* Checks whether gt_ckpt_dir_open would succeed now and returns its codes and sentences. Creates, changes and keeps nothing. */
enum gt_code gt_ckpt_dir_check(const char *path, struct gt_err *err);

/* gt_ckpt_continue continues the run in d from the checkpoint `from`. If that is the newest checkpoint, *next becomes 0. Otherwise the run
 * goes back: *next becomes the serial of the first new checkpoint, later checkpoints move to <dir>/history-<*next> when it is committed,
 * and text (size bytes) receives a sentence about this move. Until then the caller must write its other files under the names of
 * gt_ckpt_next_path(). */
struct gt_ckpt;
enum gt_code gt_ckpt_dir_continue(struct gt_ckpt_dir *d, const struct gt_ckpt *from, int64_t *next, char *text, size_t size,
                                  struct gt_err *err);

/* Writes "<dir>/<name>" to buf (GT_PATH_SIZE bytes) or, with next > 0, a temporary name: "<dir>/next-<next>.<name>"; in it, "tensorboard."
 * replaces the prefix "events.out.tfevents.", because TensorBoard would read the file. A file with the temporary name is renamed to <name>
 * when the checkpoint with serial `next` is committed. If the checkpoint is never committed, the next run that opens dir removes the
 * file. */
enum gt_code gt_ckpt_next_path(char *buf, const char *dir, int64_t next, const char *name, struct gt_err *err);

/* Commits one checkpoint. Points the symlink `latest` to it and `best` to the checkpoint of step m->best_step. path (size bytes) receives
 * "<dir>/step-...". A failure leaves every committed checkpoint unchanged; GT_EIO names the file. If the step is already committed, the new
 * checkpoint replaces it whole. */
enum gt_code gt_ckpt_save(struct gt_ckpt_dir *d, const struct gt_ckpt_meta *m, const struct gt_ckpt_tensor *model, int nmodel,
                          const struct gt_ckpt_tensor *optim, int noptim, char *path, size_t size, struct gt_err *err);

/* Retention: removes committed checkpoints except the newest `keep`. It also keeps the best checkpoints that the manifests of kept
 * checkpoints name, so that a run that goes back still has its best checkpoint. With keep <= 0 it removes nothing. */
enum gt_code gt_ckpt_retain(struct gt_ckpt_dir *d, int64_t keep, struct gt_err *err);

/* Finds the run directory of path and writes it to dir (GT_PATH_SIZE bytes). If path is a checkpoint inside a run directory (its step-...
 * directory, `latest` or `best`, or "." in one of these), *step is that checkpoint's step; else -1. GT_EUSAGE: path is a checkpoint under
 * another name, which belongs to no run directory. */
enum gt_code gt_ckpt_run_dir(const char *path, char *dir, int64_t *step, struct gt_err *err);

/* Sets *serial to the serial of the newest checkpoint of a run directory; 0: no checkpoint. */
enum gt_code gt_ckpt_newest_serial(const char *dir, int64_t *serial, struct gt_err *err);

/* Opens a checkpoint and verifies its files; its tensors are then readable by name. path is a run directory or a step directory. In a run
 * directory, `which` selects the checkpoint: "latest", "best", a decimal step, or NULL for the best one, or the latest if none is marked as
 * the best. "latest" opens the newest checkpoint that is not damaged, and reports each newer, damaged checkpoint through warn. The other
 * words never open another checkpoint instead of a damaged one. The newest checkpoint is the checkpoint that was committed last; after a
 * resume from an earlier step it does not have the highest step. If `verify` is true, all digests are recomputed, otherwise only lengths
 * and headers are checked. GT_ENOINPUT: there is no checkpoint. GT_EDATA: it is damaged. GT_EFAIL: memory, descriptors or permissions were
 * lacking; the checkpoint may be good. */
enum gt_code gt_ckpt_open(const char *path, const char *which, bool verify, void (*warn)(void *user, const char *text), void *user,
                          struct gt_ckpt **out, struct gt_err *err);
void gt_ckpt_close(struct gt_ckpt *c);
const char *gt_ckpt_path(const struct gt_ckpt *c);
const struct gt_ckpt_meta *gt_ckpt_meta(const struct gt_ckpt *c);

/* Describes tensor i of a file, without its data. file: 0 is model.safetensors, 1 is optimizer.safetensors. Returns false if the file has
 * no tensor i. */
bool gt_ckpt_tensor_at(const struct gt_ckpt *c, int file, int i, struct gt_ckpt_tensor *out);

/* Reads one tensor into host memory in plain layout. GT_EDATA: the file has no such tensor, or its dtype or shape differs from `want`; the
 * message names checkpoint and tensor. */
enum gt_code gt_ckpt_read(const struct gt_ckpt *c, int file, const char *name, const struct gt_tdesc *want, void *out, struct gt_err *err);

#endif
