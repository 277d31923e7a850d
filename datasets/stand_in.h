/* Generates files in the format of a dataset, for a smoke test on a machine without the dataset. The readers of tables and texts read them
 * like real files. The content depends only on the arguments.
 *
 *     DIR/rows.csv              a header, and rows with a value in every column: gt_stand_in_table
 *     DIR/train/class0/0.txt    texts of 3 to 60 generated words in class folders: gt_stand_in_texts
 *     DIR/vocab.txt             these words and the special tokens of BERT: gt_stand_in_vocab
 */
#ifndef GT_DATASETS_STAND_IN_H
#define GT_DATASETS_STAND_IN_H

#include "table/table_spec.h"
#include <stdint.h>

/* The kind of values in a target column. */
enum gt_stand_in_target { GT_STAND_IN_WORDS, GT_STAND_IN_BITS, GT_STAND_IN_NUMBERS };

/* Writes n rows of the columns that the spec names. A number is whole, a category is one of four words, and a
 * target of words is one of `classes` words. */
enum gt_code gt_stand_in_table(const char *path, const struct gt_table_spec *spec, enum gt_stand_in_target target, int64_t classes,
                               int64_t n, struct gt_err *err);
/* Writes n texts into folders of classes below dir, which it creates. */
enum gt_code gt_stand_in_texts(const char *dir, int64_t classes, int64_t n, struct gt_err *err);
enum gt_code gt_stand_in_vocab(const char *path, struct gt_err *err);

#endif
