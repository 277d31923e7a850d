/* The entries of a run directory by name and manifest; nothing is verified here. Internal header of the checkpoint files (ckpt_*.c).
 * Names:  step-<8 or more digits>              a committed checkpoint
 *         step-N.tmp-<nonce>, ...old-<nonce>   left-overs: a checkpoint that was being written; one that was being removed
 *         step-N.prev-<nonce>                  the old step-N while a new one takes its name, on file systems that cannot exchange two
 *                                              names atomically: counts as step-N until the new one has the name
 *         latest.tmp-<nonce>, best.tmp-<nonce> left-overs: a symlink that was being replaced
 *         config.cfg.tmp-..., first.cfg.tmp-..., metrics.jsonl.tmp-...    left-overs: a file that was being replaced
 *         next-<serial>.<file>                 replaces <file> when the checkpoint with that serial is committed */
#ifndef GT_STORE_CKPT_SCAN_H
#define GT_STORE_CKPT_SCAN_H

#include "store/ckpt.h"
#include "store/ckpt_manifest.h"

#define GT_CKPT_NAME 64 /* maximum bytes of a name above, with its NUL */

/* The kind of a name in a run directory: GT_CKPT_STEP is step-N, GT_CKPT_PREV is step-N.prev-<nonce>, GT_CKPT_LEFTOVER is a name that an
 * interrupted commit, removal or replacement left behind, and GT_CKPT_OTHER is any other name. */
enum gt_ckpt_kind { GT_CKPT_OTHER, GT_CKPT_STEP, GT_CKPT_PREV, GT_CKPT_LEFTOVER };

struct gt_ckpt_entry {
	char name[GT_CKPT_NAME];
	enum gt_ckpt_kind kind;
	int64_t step;          /* the step N in the name; -1: the name belongs to the left-over of a symlink or of a log file */
	int64_t serial;        /* the serial in the manifest; 0: the manifest is missing, damaged or was not read */
	int64_t parent;        /* serial of the checkpoint that this checkpoint continues; 0: none, or not known */
	bool has_best;         /* whether best_step is set */
	int64_t best_step;     /* step of the best checkpoint, as the manifest names it */
};

struct gt_ckpt_dir {
	char path[4096];
	size_t existed; /* length of the part of the path that existed before gt_ckpt_dir_open */
	int lock;       /* descriptor of the locked file .lock */
	int64_t serial; /* serial of the last committed checkpoint, the highest in the directory; 0: no checkpoint */
	int64_t parent; /* serial of the checkpoint from which the next committed checkpoint continues */
	int64_t step;   /* step of the checkpoint with the serial `parent`; -1: there is no such checkpoint */
	bool back;      /* the run has gone back: the next commit moves later checkpoints to history-<serial + 1> */
};

/* Returns the kind of a name, and sets *step to the step in the name (-1: there is no step in it). */
enum gt_ckpt_kind gt_ckpt_name_parse(const char *name, int64_t *step);
void gt_ckpt_name_print(char name[GT_CKPT_NAME], int64_t step);

/* Lists the entries of dir of the kinds STEP, PREV and LEFTOVER in *out, an array of *n elements that the caller frees with free(). The
 * order is: entries with serial 0, sorted by step, highest first; other entries, sorted by serial, highest first; entries of kind LEFTOVER.
 * If `manifests` is false, no manifest is read and serial is 0 in every entry. */
enum gt_code gt_ckpt_scan(const char *dir, bool manifests, struct gt_ckpt_entry **out, int *n, struct gt_err *err);

int gt_ckpt_compare_steps(const void *a, const void *b); /* orders entries by their steps, for qsort(3) */

/* Sets *step to the step of the checkpoint to which the symlink dir/link points, or to -1 if there is no such link or it does not name a
 * checkpoint. */
enum gt_code gt_ckpt_link_step(const char *dir, const char *link, int64_t *step, struct gt_err *err);

/* Points the symlink dir/link to the directory of a step. Removes the link if step is -1 or that directory does not exist. Sets *changed to
 * true if it changed the link, because dir then needs an fsync; otherwise it leaves *changed as it is. */
enum gt_code gt_ckpt_link_set(const char *dir, const char *link, int64_t step, bool *changed, struct gt_err *err);

/* ---- ckpt_history.c: for a writer that holds the lock ------------------------------------------------------------------------- */
/* Renames checkpoints of later steps than d->step that have no readable manifest into a history, because new checkpoints may need their
 * names. */
enum gt_code gt_ckpt_history_clear(struct gt_ckpt_dir *d, struct gt_err *err);

/* Moves the checkpoints that are not ancestors of the newest checkpoint (serial, parent) to history-<serial>. beyond: checkpoints of
 * later steps than `beyond` are not ancestors, whatever their serials are. When it returns, the moves are durable. After a kill at any
 * point, it can be called again. */
enum gt_code gt_ckpt_history_move(const char *dir, int64_t serial, int64_t parent, int64_t beyond, struct gt_err *err);

/* Renames each file next-<s>.<file> of dir to <file> if s <= serial, and removes it otherwise. Also removes temporary files that
 * interrupted saves left behind. */
enum gt_code gt_ckpt_next_commit(const char *dir, int64_t serial, struct gt_err *err);

struct gt_st_file;
/* Returns a tensor file of an opened checkpoint, or NULL if the checkpoint does not have it. file: GT_CKPT_MODEL or GT_CKPT_OPTIMIZER. */
const struct gt_st_file *gt_ckpt_file(const struct gt_ckpt *c, int file);
/* Returns the format version in the manifest of an opened checkpoint, which is GT_CKPT_FORMAT. */
int64_t gt_ckpt_format(const struct gt_ckpt *c);
/* Returns the serial of an opened checkpoint: the number of checkpoints that its run directory had committed, including this one. */
int64_t gt_ckpt_serial(const struct gt_ckpt *c);
/* Writes the end of the error that `path` is not a run: it suggests the newest runs in or next to path, in runs/ or in the working
 * directory, or says how to start a run. Returns buf; 512 bytes suffice. */
const char *gt_ckpt_near(const char *path, char *buf, size_t size);
/* Returns whether path is a checkpoint directory: it contains a manifest, or has the name of a checkpoint. */
bool gt_ckpt_is_step_dir(const char *path);

#endif
