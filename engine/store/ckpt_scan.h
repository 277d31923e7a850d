/* The entries of a run directory by name and manifest; nothing is verified here. Internal header of the checkpoint files (ckpt_*.c).
 * Names:  step-<8 or more digits>              a committed checkpoint
 *         step-N.tmp-<nonce>, ...old-<nonce>   left-overs: a checkpoint that was being written; one that was being removed
 *         step-N.prev-<nonce>                  the old step-N while a new one takes its name, on file systems that cannot exchange two
 *                                              names atomically: counts as step-N until the new one has the name
 *         latest.tmp-<nonce>, best.tmp-<nonce> left-overs of replacing a symlink; the same for config.cfg and metrics.jsonl
 *         next-<serial>.<file>                 replaces <file> when the checkpoint with that serial is committed */
#ifndef GT_STORE_CKPT_SCAN_H
#define GT_STORE_CKPT_SCAN_H

#include "store/ckpt.h"
#include "store/ckpt_manifest.h"

#define GT_CKPT_NAME 64 /* maximum bytes of a name above, with its NUL */

/* Kinds of names: none of the below; step-N; step-N.prev-...; a left-over. */
enum gt_ckpt_kind { GT_CKPT_OTHER, GT_CKPT_STEP, GT_CKPT_PREV, GT_CKPT_LEFTOVER };

struct gt_ckpt_entry {
	char name[GT_CKPT_NAME];
	enum gt_ckpt_kind kind;
	int64_t step;          /* from the name */
	int64_t serial;        /* from the manifest; 0: the manifest is missing, damaged or was not read */
	int64_t parent;        /* serial of the checkpoint that it continues */
	bool has_best;         /* best_step is set */
	int64_t best_step;     /* step of the checkpoint that the manifest calls best */
};

struct gt_ckpt_dir {
	char path[4096];
	int lock;       /* descriptor of the locked file .lock */
	int64_t serial; /* highest serial so far */
	int64_t parent; /* serial of the checkpoint that the next commit continues */
	int64_t step;   /* step of that checkpoint; -1: none */
	bool back;      /* the run has gone back: later checkpoints move to history-<serial + 1> with the next commit */
};

/* Returns the kind of a name, and its step in *step. */
enum gt_ckpt_kind gt_ckpt_name_parse(const char *name, int64_t *step);
void gt_ckpt_name_print(char name[GT_CKPT_NAME], int64_t step);

/* Lists the entries of dir of the kinds STEP, PREV and LEFTOVER in *out, which is malloc'ed; the caller frees it. STEP and PREV come first,
 * in this order: those without a readable manifest, then by serial and step, highest first. manifests: read them; otherwise serial is 0. */
enum gt_code gt_ckpt_scan(const char *dir, bool manifests, struct gt_ckpt_entry **out, int *n, struct gt_err *err);

/* *step: the step of the checkpoint to which the symlink dir/link points; -1: there is no such link, or it does not name a checkpoint. */
enum gt_code gt_ckpt_link_step(const char *dir, const char *link, int64_t *step, struct gt_err *err);

/* Sets the symlink dir/link to a step's directory; removes it if step is -1 or has no directory. Sets *changed if dir needs an fsync. */
enum gt_code gt_ckpt_link_set(const char *dir, const char *link, int64_t step, bool *changed, struct gt_err *err);

/* ---- ckpt_history.c: for a writer that holds the lock ------------------------------------------------------------------------- */
/* Moves checkpoints of later steps than d->step without a readable manifest aside, because a new checkpoint may need their names. */
enum gt_code gt_ckpt_history_clear(struct gt_ckpt_dir *d, struct gt_err *err);

/* Moves every checkpoint that is not an ancestor of the newest checkpoint (serial, parent) to history-<serial>. beyond: checkpoints of
 * later steps than this are no ancestors, whatever their serial is. The moves are durable when it returns; after a kill at any point it may
 * be called again. */
enum gt_code gt_ckpt_history_move(const char *dir, int64_t serial, int64_t parent, int64_t beyond, struct gt_err *err);

/* Renames each file next-<s>.<file> with s <= serial to <file>, and removes the others. Removes temporary files that were left over. */
enum gt_code gt_ckpt_next_commit(const char *dir, int64_t serial, struct gt_err *err);

/* Parts of an opened checkpoint: a tensor file (file: enum gt_ckpt_file; NULL: the checkpoint lacks it), its format, its serial. */
struct gt_st_file;
const struct gt_st_file *gt_ckpt_file(const struct gt_ckpt *c, int file);
int64_t gt_ckpt_format(const struct gt_ckpt *c);
int64_t gt_ckpt_serial(const struct gt_ckpt *c);
/* Whether path is the directory of a checkpoint: it contains a manifest, or is named like a checkpoint. */
bool gt_ckpt_is_step_dir(const char *path);

#endif
