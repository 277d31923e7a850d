/* Words of PyTorch and other trainers for keys, layer types and values of gtrain. Errors suggest what they mean, where the spelling is too
 * different for a suggestion. */
#ifndef GT_CONF_SYNONYMS_H
#define GT_CONF_SYNONYMS_H

struct gt_synonym {
	const char *word;   /* the foreign word; compared without regard to case */
	const char *meant;  /* the path or name of a key, the type, or the value to suggest; NULL: there is none, because … */
	const char *reason; /* … of this reason */
};

/* Return the synonym of a key of a layer, another key, a layer type, or a value of the key `path`; NULL: unknown. */
const struct gt_synonym *gt_synonym_of_layer_key(const char *word);
const struct gt_synonym *gt_synonym_of_key(const char *word);
const struct gt_synonym *gt_synonym_of_layer_type(const char *word);
const struct gt_synonym *gt_synonym_of_value(const char *path, const char *word);

#endif
