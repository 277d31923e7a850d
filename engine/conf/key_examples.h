/* Values that `gtrain help` shows as examples of keys. A key whose default is a useful example has no entry: for a switch, the example is
 * the other value, for an enumeration another word than the default. */
#ifndef GT_CONF_KEY_EXAMPLES_H
#define GT_CONF_KEY_EXAMPLES_H

/* Returns an example of the key's value as written in a config, such as "[128, 256]"; NULL: the table has none. path: as in struct
 * gt_schema_key; the path of a key of train.optimizer or train.schedule also stands for the same key of an entry of train.groups. */
const char *gt_key_example(const char *path);

#endif
