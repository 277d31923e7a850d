/* Values that `gtrain help` shows as examples of keys. A key whose default is a useful example has no entry: the example of a switch is its
 * other value, and the example of an enumeration a word other than the default. */
#ifndef GT_CONF_KEY_EXAMPLES_H
#define GT_CONF_KEY_EXAMPLES_H

/* Returns an example of the key's value as written in a config, such as "[128, 256]"; NULL: no entry. path: as in struct gt_schema_key; the
 * entry of a key of train.optimizer or train.schedule is also used for entries of train.groups. */
const char *gt_key_example(const char *path);

#endif
