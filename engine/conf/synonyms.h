/* Words of PyTorch and of other trainers for keys, layer types and values of ours: what an error suggests where spelling alone does not. */
#ifndef GT_CONF_SYNONYMS_H
#define GT_CONF_SYNONYMS_H

struct gt_synonym {
	const char *word;   /* as it may be written; compared without regard to case */
	const char *meant;  /* the key's path or name, the type, the value; NULL: there is nothing to write instead, and … */
	const char *reason; /* … why */
};

/* NULL: none is known. A key: of a layer, or of the rest of a config. A value: of the key at path. */
const struct gt_synonym *gt_synonym_of_layer_key(const char *word);
const struct gt_synonym *gt_synonym_of_key(const char *word);
const struct gt_synonym *gt_synonym_of_layer_type(const char *word);
const struct gt_synonym *gt_synonym_of_value(const char *path, const char *word);

#endif
