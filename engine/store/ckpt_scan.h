/* What lies in a run directory, by name and manifest; nothing is verified here. Inner header of the checkpoint files.
 * Names:  step-<8 or more digits>              a committed checkpoint
 *         step-N.tmp-<nonce>, …old-<nonce>     left-overs: being written; on its way out
 *         step-N.prev-<nonce>                  the old step-N while a new one takes its name, on file systems that cannot exchange two
 *                                              names at once: stands in for step-N until that is there
 *         latest.tmp-<nonce>, best.tmp-<nonce> left-overs of replacing a symlink; the same of config.cfg and metrics.jsonl
 *         next-<serial>.<file>                 takes the place of <file> with the commit of the checkpoint with that serial */
#ifndef GT_STORE_CKPT_SCAN_H
#define GT_STORE_CKPT_SCAN_H

#include "store/ckpt.h"
#include "store/ckpt_manifest.h"

#define GT_CKPT_NAME 64 /* bytes of any of the names above */

enum gt_ckpt_kind { GT_CKPT_OTHER, GT_CKPT_STEP, GT_CKPT_PREV, GT_CKPT_LEFTOVER };

struct gt_ckpt_entry {
	char name[GT_CKPT_NAME];
	enum gt_ckpt_kind kind;
	int64_t step;
	int64_t serial;        /* 0: the manifest is missing or damaged */
	int64_t parent;        /* serial of the checkpoint that it continues */
	bool has_best;
	int64_t best_step;
};

struct gt_ckpt_dir {
	char path[4096];
	int lock;
	int64_t serial; /* highest so far */
	int64_t parent; /* of the next commit: the serial of the checkpoint that it continues */
	int64_t step;   /* of that checkpoint; -1: none */
	bool back;      /* there are later ones, which move to history-<serial + 1> with the next commit */
};

/* kind and step of a name. */
enum gt_ckpt_kind gt_ckpt_name_parse(const char *name, int64_t *step);
void gt_ckpt_name_print(char name[GT_CKPT_NAME], int64_t step);

/* Entries of dir of the kinds STEP, PREV and LEFTOVER; malloc'ed, the caller frees. Order: STEP and PREV first, those without a readable
 * manifest before the others, then by serial and step, highest first. manifests: read them; else serial is 0. */
enum gt_code gt_ckpt_scan(const char *dir, bool manifests, struct gt_ckpt_entry **out, int *n, struct gt_err *err);

/* Where the symlink dir/link points, if that is the name of a checkpoint: step; else -1 (no link, or a strange one). */
enum gt_code gt_ckpt_link_step(const char *dir, const char *link, int64_t *step, struct gt_err *err);

/* Points dir/link at a step's directory; removes it if step is -1 or has no directory. *changed: the folder needs a sync. */
enum gt_code gt_ckpt_link_set(const char *dir, const char *link, int64_t step, bool *changed, struct gt_err *err);

/* ---- ckpt_history.c: of a writer that holds the lock -------------------------------------------------------------------------- */
/* Moves checkpoints without a readable manifest behind d->step aside: what is to be committed may take their name. */
enum gt_code gt_ckpt_history_clear(struct gt_ckpt_dir *d, struct gt_err *err);

/* Moves what is off the line of the checkpoint `newest` (serial, parent) to history-<serial>. beyond: checkpoints of later steps are off
 * the line whatever their serial says. Durable when it returns; may be repeated after a kill at any point. */
enum gt_code gt_ckpt_history_settle(const char *dir, int64_t serial, int64_t parent, int64_t beyond, struct gt_err *err);

/* Gives files named next-<s>.<file> their names where s <= serial, and removes the others. Removes left-over temporaries of files. */
enum gt_code gt_ckpt_next_settle(const char *dir, int64_t serial, struct gt_err *err);

/* Of an opened checkpoint: one of its tensor files (NULL: it has none), its format. */
struct gt_st_file;
const struct gt_st_file *gt_ckpt_file(const struct gt_ckpt *c, int file);
int64_t gt_ckpt_format(const struct gt_ckpt *c);
int64_t gt_ckpt_serial(const struct gt_ckpt *c);
/* Whether path is a checkpoint's directory: it has a manifest, or a checkpoint's name. */
bool gt_ckpt_is_step_dir(const char *path);

#endif
