/* Which engine was the fastest for a convolution on this card with this library: kept in memory, and between runs in
 *   $XDG_CACHE_HOME/gtrain/cudnn-CARD-LIBRARY.plans, else ~/.cache/gtrain/…      (mode 0600)
 *
 *   gtrain cudnn plans 2<TAB>CARD<TAB>LIBRARY
 *   KEY<TAB>ENGINE<TAB>MICROSECONDS<TAB>KNOB=VALUE,KNOB=VALUE        or - without knobs; one line a choice, every line ends in \n
 *
 * The file is a hint and is read as hostile: a first line that is not this one, a file that is too long or not a regular one count as no
 * file; a line that is not exactly as above is passed over. Whoever takes a choice from here has to check it like a fresh one (its
 * numerical notes, its workspace), so that a wrong one can cost time and nothing else. It is replaced atomically, after merging what
 * others have added meanwhile: of two writers at the same moment one can lose its additions, none can damage the file. */
#ifndef GT_KERNELS_CUDNN_CACHE_H
#define GT_KERNELS_CUDNN_CACHE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_DNN_KNOBS 24
#define GT_DNN_KEY 256 /* of a key with its NUL; printable ASCII */

struct gt_dnn_choice {
	int64_t engine; /* global index */
	int nknobs;
	int64_t knob[GT_DNN_KNOBS][2]; /* type, value */
	double us;                     /* measured; 0: the heuristic's first, not measured */

	/* not kept in the file */
	size_t workspace; /* bytes of its plan, once one was made */
	bool ran;         /* in this process */
	bool tensor_core; /* its engine multiplies on tensor cores */
};

struct gt_dnn_cache;

/* Reads the file if there is one. Fails only without memory; without a folder it lives in memory. */
enum gt_code gt_dnn_cache_open(const char *card, const char *library, struct gt_dnn_cache **out, struct gt_err *err);
void gt_dnn_cache_close(struct gt_dnn_cache *c); /* saves; NULL is fine, as below */
bool gt_dnn_cache_find(const struct gt_dnn_cache *c, const char *key, struct gt_dnn_choice *out);
/* Notes that the entry of that key ran. */
void gt_dnn_cache_ran(struct gt_dnn_cache *c, const char *key);
/* Replaces the entry of that key. Saves now and then. Without memory or folder nothing happens: it is a cache. */
void gt_dnn_cache_add(struct gt_dnn_cache *c, const char *key, const struct gt_dnn_choice *choice);

#endif
