/* A cache of the chosen cuDNN engine for each convolution and attention on this card with this library. It is kept in memory and, between
 * runs, in
 *   $XDG_CACHE_HOME/gtrain/cudnn-CARD-LIBRARY.plans, else ~/.cache/gtrain/...      (mode 0600)
 *
 *   gtrain cudnn plans 2<TAB>CARD<TAB>LIBRARY
 *   KEY<TAB>ENGINE<TAB>MICROSECONDS<TAB>KNOB=VALUE,KNOB=VALUE        "-" without knobs; one line for each choice; every line ends in \n
 *
 * The file is a hint, and its contents are not trusted. If its first line differs, or if it is too long or not a regular file, it is
 * ignored; a line that does not match the format exactly is skipped. A caller must check a choice from the cache like a new choice (its
 * numerical notes, its workspace), so that a wrong choice can only cost time. The file is replaced atomically, after merging choices that
 * other processes have added: if two processes write at the same time, the choices of one may be lost, but the file stays intact. */
#ifndef GT_KERNELS_CUDNN_CACHE_H
#define GT_KERNELS_CUDNN_CACHE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_DNN_KNOBS 24 /* maximum number of knobs of a choice */
#define GT_DNN_KEY 256  /* maximum bytes of a key, with its NUL; printable ASCII */

struct gt_dnn_choice {
	int64_t engine; /* cuDNN's global index of the engine */
	int nknobs;
	int64_t knob[GT_DNN_KNOBS][2]; /* type, value */
	/* measured time of one run in microseconds; 0: not measured, because it is the heuristic's first engine */
	double us;

	/* the fields below are not stored in the file */
	size_t workspace; /* bytes of workspace of the choice's plan; valid after a plan was made */
	bool ran;         /* this process has run a plan of this choice */
	bool tensor_core; /* the engine multiplies on tensor cores */
};

struct gt_dnn_cache;

/* Opens the cache and reads the file if it exists. Fails only if memory is exhausted. Without a cache folder, it exists in memory only. */
enum gt_code gt_dnn_cache_open(const char *card, const char *library, struct gt_dnn_cache **out, struct gt_err *err);
void gt_dnn_cache_close(struct gt_dnn_cache *c); /* saves the file and frees c; here and in the functions below, c may be NULL */
bool gt_dnn_cache_find(const struct gt_dnn_cache *c, const char *key, struct gt_dnn_choice *out);
/* Records that the choice for this key has run. */
void gt_dnn_cache_ran(struct gt_dnn_cache *c, const char *key);
/* Replaces the choice for this key, and occasionally saves the file. If memory or the folder is missing, it does nothing. */
void gt_dnn_cache_add(struct gt_dnn_cache *c, const char *key, const struct gt_dnn_choice *choice);

#endif
