/* The names of the classes of a dataset, which the files give: collected in any order, then sorted.
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

/* Adds a name of len bytes; the same name as the last one is not added again. */
enum gt_code gt_class_list_add(struct gt_class_list *c, const char *name, size_t len, struct gt_err *err);
/* Sorts the names and removes duplicates. GT_EDATA: there is only one, there are more than 2^20, two differ only in their case, or one is
 * not UTF-8. where: the data, for the message. An empty list is no error. */
enum gt_code gt_class_list_check(struct gt_class_list *c, const char *where, struct gt_err *err);
/* Returns GT_EDATA, with a message that names a class of len bytes which the classes of a checkpoint do not have, and these. */
enum gt_code gt_class_list_unknown(const struct gt_class_list *c, const char *name, size_t len, const char *where, struct gt_err *err);
/* Replaces the names by those that a checkpoint has. GT_EDATA: a name is not among them. where: the data, for the message. */
enum gt_code gt_class_list_use(struct gt_class_list *c, const char *const *known, int64_t nknown, const char *where, struct gt_err *err);
/* Returns the index of a name of len bytes in a list that was checked; -1: it is not there. */
int64_t gt_class_list_find(const struct gt_class_list *c, const char *name, size_t len);
/* Writes the names for a message: "a, b and 3 more"; "" if there are none. Sorts the list. size: at least 64. */
void gt_class_list_text(struct gt_class_list *c, char *buf, size_t size);
void gt_class_list_free(struct gt_class_list *c);

#endif
