/* Unknown words, with the texts of the errors about them: words of PyTorch and other trainers for keys, layer types and values whose
 * spelling is too different for "did you mean"; and keys and values of earlier versions. */
#ifndef GT_CONF_SYNONYMS_H
#define GT_CONF_SYNONYMS_H

#include "conf/ctree.h"

struct gt_synonym {
	const char *of;     /* the path of the key that has the words as values, or GT_SYN_... */
	const char *words;  /* foreign words, "a|b"; compared without regard to case */
	const char *meant;  /* the suggestion: path or name of a key, or a value; NULL: `reason` says what to do */
	const char *reason; /* if meant is NULL: text for the error: why gtrain has no such word, and what to do instead */
};

#define GT_SYN_KEY "a key"
#define GT_SYN_LAYER_KEY "a key of a layer"
#define GT_SYN_LAYER_TYPE "a type of layers"
/* Looks up a foreign word. Returns its entry, or NULL if it is unknown. of: gt_synonym.of; a path may have indices. */
const struct gt_synonym *gt_synonym_find(const char *of, const char *word);
/* Returns the foreign words, "a|b", for which a key or a value is suggested; NULL: none. of: gt_synonym.of; an index is "[]". */
const char *gt_synonym_words(const char *of, const char *meant);

const char *gt_schema_advice(const char *word); /* see gtrain.h */

/* A removed key, or a removed value of a key that still exists. A config with the key or value is rejected with one sentence. */
struct gt_removed_key {
	const char *path;     /* path of the key, without indices: "data.augment.type" */
	const char *value;    /* the removed value, without quotation marks; NULL: the key itself was removed */
	const char *sentence; /* text of the error after the path: what to write instead, and its effect */
	const char *ignored;  /* value that is accepted, without effect, in the config of an older checkpoint; "": any; NULL: none */
};
extern const struct gt_removed_key gt_removed_keys[]; /* the last entry has path NULL */
/* Returns the entry of `list` for the node n with this path ("data.augment[0].type"); NULL: neither the key nor its value was removed. */
const struct gt_removed_key *gt_removed_key_find(const struct gt_removed_key *list, const char *path, const struct gt_cnode *n);
/* Returns whether n, to which k applies, is ignored in the config of a checkpoint. */
bool gt_removed_key_ignored(const struct gt_removed_key *k, const struct gt_cnode *n);

#endif
