/* The class names of a dataset, collected from its files in any order, then sorted.
 *
 *     gt_class_list_add(&list, "rose", 4, err);          for every file or folder; duplicates are removed
 *     gt_class_list_check(&list, "flowers", err);
 *     label = gt_class_list_find(&list, "rose", 4);
 *     gt_class_list_free(&list);
 */
#ifndef GT_DATASETS_CLASS_LIST_H
#define GT_DATASETS_CLASS_LIST_H

#include "base/err.h"
#include <stddef.h>
#include <stdint.h>

struct gt_class_list {
	char **v; /* malloc'ed strings; after gt_class_list_check they are sorted as bytes and different */
	int64_t n, cap;
};

/* Adds a name of len bytes, unless it equals the last added name. */
enum gt_code gt_class_list_add(struct gt_class_list *c, const char *name, size_t len, struct gt_err *err);
/* Sorts the names and removes duplicates. GT_EDATA: there is only one class, there are more than 2^20, two names differ only in case, or a
 * name is not UTF-8. where: the data's name for messages. An empty list is no error. */
enum gt_code gt_class_list_check(struct gt_class_list *c, const char *where, struct gt_err *err);
/* Returns GT_EDATA. The message names a class (len bytes) that is not a class of the checkpoint, and lists the checkpoint's classes. */
enum gt_code gt_class_list_unknown(const struct gt_class_list *c, const char *name, size_t len, const char *where, struct gt_err *err);
/* Replaces the names by the class names of a checkpoint. GT_EDATA: the checkpoint lacks a name of the list. where: the data's name for
 * messages. */
enum gt_code gt_class_list_use(struct gt_class_list *c, const char *const *known, int64_t nknown, const char *where, struct gt_err *err);
/* Returns the index of a name of len bytes in a checked list; -1: the list lacks the name. */
int64_t gt_class_list_find(const struct gt_class_list *c, const char *name, size_t len);
/* Writes the names for a message: "a, b and 3 more"; "" if the list is empty. Sorts the list. size: at least 64. */
void gt_class_list_text(struct gt_class_list *c, char *buf, size_t size);
void gt_class_list_free(struct gt_class_list *c);

#endif
