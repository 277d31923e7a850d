/* Checkpoints on disk: the commit protocol, retention, and the search for the newest one that verifies.
 *
 * <dir>/step-00000938/            a committed checkpoint (mode 0700, files 0600)
 *   model.safetensors             parameters and buffers, PyTorch's names, shapes and order of elements
 *   optimizer.safetensors         "<state>.<parameter>": logical tensors, e.g. "exp_avg.fc1.weight"; absent if there are none
 *   config.cfg                    the resolved config
 *   manifest.json                 written last: format, program version, step, epoch, cursor, seed, best, and per file its length and
 *                                 XXH3-128 digest
 * <dir>/latest, <dir>/best        symlinks to step directories, replaced by rename; hints only
 * <dir>/.lock                     flock: one run a directory
 * <dir>/history-<serial>/         what a run left behind when it went back to an earlier checkpoint: the later checkpoints, metrics.jsonl
 *                                 and config.cfg. <serial> is that of the checkpoint that replaced them. It is a run directory too
 *
 * Commit: step-N.tmp-<nonce>/ → files, fsync each → manifest, fsync → fsync directory → rename to step-N → fsync parent → symlinks.
 * Going back (ckpt_history.c): nothing moves until the first new checkpoint is committed. Its manifest names its parent, so a later
 * writer can finish a move that a kill interrupted.
 * An old checkpoint is renamed to step-N.old-<nonce> before its files are removed; left-overs of either kind are swept by the next
 * run that holds the lock. Loading executes nothing and takes no path from a file. (SQLite's and Orbax's protocols.) */
#ifndef GT_STORE_CKPT_H
#define GT_STORE_CKPT_H

#include "base/arena.h"
#include "base/types.h"
#include "opcall.h"
#include "store/safetensors.h"

#define GT_CKPT_FORMAT 1

struct gt_ckpt_tensor {
	const char *name;
	struct gt_tdesc desc; /* plain layout */
	const void *data;     /* plain host bytes, desc's size */
	gt_bytes_fn *read;    /* saving, where data is NULL: called when the bytes' turn comes, and once more where a file is written anew */
	void *user;
	int key;
};

struct gt_ckpt_meta {
	int64_t step;         /* optimizer steps done */
	int64_t epoch;        /* epoch the next step belongs to */
	int64_t cursor;       /* samples of that epoch already consumed */
	int64_t world;
	uint64_t seed;
	bool has_best;
	double best;          /* value of checkpoint.best so far */
	int64_t best_step;
	int64_t best_epoch;   /* the epoch that best_step belongs to, from 1; -1: not known, of a checkpoint of an earlier version */
	const char *best_metric, *best_mode; /* what `best` is a value of: "test/acc" and "max"; NULL: as best_epoch */
	double peak_acc;      /* highest accuracy of any evaluation of the test split, or of the valid split where there is none */
	int64_t peak_epoch;   /* of that evaluation, from 1; 0: there was none with an accuracy */
	double loss_scale;    /* fp16; 0: none */
	int64_t good_steps;   /* since the scale last changed */
	double seconds;       /* trained so far, over all resumes */
	struct gt_metrics epoch_sums; /* over those samples of the epoch: for its scores when it is complete */
	const char *name;     /* of the run */
	const char *config;   /* text of config.cfg */
};

struct gt_ckpt_dir; /* an open, locked run directory */

/* Makes the directory if needed (parents too), takes the lock, checks that it can be written, sweeps left-overs. GT_ECANTCREAT with
 * errno's words; "another run (pid N) uses DIR" if it is locked. */
enum gt_code gt_ckpt_dir_open(const char *path, struct gt_ckpt_dir **out, struct gt_err *err);
void gt_ckpt_dir_close(struct gt_ckpt_dir *d);
/* Whether gt_ckpt_dir_open would succeed now, with its codes and sentences. Creates, changes and keeps nothing. */
enum gt_code gt_ckpt_dir_try(const char *path, struct gt_err *err);

/* The run goes on from this checkpoint of d. *next: 0 where it is the newest. Else the run goes back: later checkpoints move to
 * <dir>/history-<*next> when the first new one is committed; text (size bytes) is one sentence that says so. Until then the caller keeps
 * its other files under the names of gt_ckpt_next_path(). */
struct gt_ckpt;
enum gt_code gt_ckpt_dir_continue(struct gt_ckpt_dir *d, const struct gt_ckpt *from, int64_t *next, char *text, size_t size, struct gt_err *err);

/* "<dir>/<name>", or "<dir>/next-<next>.<name>" where next > 0: the name of a file that takes its place when the checkpoint with that
 * serial is committed, and is removed by the next writer if it never is. buf: GT_PATH_SIZE bytes. */
enum gt_code gt_ckpt_next_path(char *buf, const char *dir, int64_t next, const char *name, struct gt_err *err);

/* Commits one checkpoint and points `latest` at it, and `best` at the step that m calls best. path (size bytes) receives "<dir>/step-…".
 * A failure leaves every committed checkpoint as it was; GT_EIO names the file. A step that is committed already is replaced whole. */
enum gt_code gt_ckpt_save(struct gt_ckpt_dir *d, const struct gt_ckpt_meta *m, const struct gt_ckpt_tensor *model, int nmodel,
                          const struct gt_ckpt_tensor *optim, int noptim, char *path, size_t size, struct gt_err *err);

/* Removes committed checkpoints but the newest `keep` and the best ones: for each that stays, the checkpoint that its manifest calls best
 * stays too, so that a run can go back to any of them. keep <= 0 keeps all. */
enum gt_code gt_ckpt_retain(struct gt_ckpt_dir *d, int64_t keep, struct gt_err *err);

/* The run directory that path means, into dir (GT_PATH_SIZE bytes). *step: -1; if path is a checkpoint inside a run directory (its
 * step-… directory, `latest` or `best`, or "." in one of these), that checkpoint's step. GT_EUSAGE: a checkpoint under another name,
 * which belongs to no run directory. */
enum gt_code gt_ckpt_run_dir(const char *path, char *dir, int64_t *step, struct gt_err *err);

/* The serial of the newest checkpoint of a run directory, 0 if there is none. */
enum gt_code gt_ckpt_newest_serial(const char *dir, int64_t *serial, struct gt_err *err);

/* An opened checkpoint: its files verified as asked, its tensors readable by name. */
/* path: a run directory (which: "latest", "best", a decimal step, or NULL: the best if one is marked, else the latest) or a step
 * directory. Of a run directory with "latest" the newest checkpoint that verifies is taken; each damaged one before it is told through
 * warn; one that is asked for by name is never replaced by another. Newest: committed last, which after a resume from an earlier step is
 * not the highest step. verify: recompute all digests (resume does), else only lengths and headers. GT_ENOINPUT: nothing there;
 * GT_EDATA: there, but damaged; GT_EFAIL: memory, descriptors or permissions, which say nothing about the checkpoint. */
enum gt_code gt_ckpt_open(const char *path, const char *which, bool verify, void (*warn)(void *user, const char *text), void *user,
                          struct gt_ckpt **out, struct gt_err *err);
void gt_ckpt_close(struct gt_ckpt *c);
const char *gt_ckpt_path(const struct gt_ckpt *c);
const struct gt_ckpt_meta *gt_ckpt_meta(const struct gt_ckpt *c);

/* Tensors of one file: file 0 is the model's, file 1 the optimizer's. data is NULL in the result. Returns false past the end. */
bool gt_ckpt_tensor_at(const struct gt_ckpt *c, int file, int i, struct gt_ckpt_tensor *out);

/* Reads one tensor into plain host memory, checking dtype and shape against want. GT_EDATA names checkpoint and tensor. */
enum gt_code gt_ckpt_read(const struct gt_ckpt *c, int file, const char *name, const struct gt_tdesc *want, void *out, struct gt_err *err);

#endif
