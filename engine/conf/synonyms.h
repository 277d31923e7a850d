/* Words that gtrain does not know, and what errors say about them: words of PyTorch and other trainers for keys, layer types and values,
 * whose spelling is too different for a suggestion; and keys and values that gtrain had once. */
#ifndef GT_CONF_SYNONYMS_H
#define GT_CONF_SYNONYMS_H

#include "conf/ctree.h"

struct gt_synonym {
	const char *word;   /* the foreign word; compared without regard to case */
	const char *meant;  /* what to suggest: the path or name of a key, a layer type, or a value; NULL: `reason` tells what to do */
	const char *reason; /* if meant is NULL: text for the error that says why there is nothing to suggest and what to do instead */
};

/* Each function looks up a foreign word and returns its entry, or NULL if it is unknown: the word for a key of a layer, for another key,
 * for a layer type, or for a value of the key `path`. */
const struct gt_synonym *gt_synonym_of_layer_key(const char *word);
const struct gt_synonym *gt_synonym_of_key(const char *word);
const struct gt_synonym *gt_synonym_of_layer_type(const char *word);
const struct gt_synonym *gt_synonym_of_value(const char *path, const char *word);

/* A key that gtrain had once, or a value of a key that still exists. A config that has it is refused with one sentence. */
struct gt_removed_key {
	const char *path;     /* path of the key, without indices: "data.augment.type" */
	const char *value;    /* the removed value, without quotation marks; NULL: the key itself was removed */
	const char *sentence; /* text of the error after the path: what to write, and what happens then */
	const char *ignored;  /* the config of a checkpoint that an older gtrain has written is not refused if the key has this value; the
	                         key then has no effect; "": any value; NULL: none */
};
extern const struct gt_removed_key gt_removed_keys[]; /* the last one has path NULL */
/* Returns the entry of `list` for the node n with this path ("data.augment[0].type"); NULL: neither the key nor its value was removed. */
const struct gt_removed_key *gt_removed_key_find(const struct gt_removed_key *list, const char *path, const struct gt_cnode *n);
/* Returns whether n, to which k applies, is ignored in the config of a checkpoint. */
bool gt_removed_key_ignored(const struct gt_removed_key *k, const struct gt_cnode *n);

#endif
