/* Words of PyTorch and other trainers for keys, layer types and values of gtrain. Errors suggest what they mean, where the spelling is too
 * different for a suggestion. */
#ifndef GT_CONF_SYNONYMS_H
#define GT_CONF_SYNONYMS_H

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

#endif
