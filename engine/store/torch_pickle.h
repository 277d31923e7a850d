/* Reads the pickles of torch.save: numbers, texts, tuples, lists, dicts, tensors and their storages. A pickle is a program for a stack
 * machine. In Python, it can call any function. This machine calls no functions: it accepts only the names in torch_pickle.c (OrderedDict,
 * the types of storages, and the two functions that make a tensor of storage, shape and strides).
 *
 *     \x80 2   c collections OrderedDict   ) R   ( X "fc.bias" ... u   .        push the class, call it, fill the dict, end
 *
 * Source: the module pickletools of Python 3.13. Protocols 2 to 5. */
#ifndef GT_STORE_TORCH_PICKLE_H
#define GT_STORE_TORCH_PICKLE_H

#include "base/arena.h"
#include "base/types.h"

/* X(kind, name in messages) */
#define GT_PICKLE_KINDS(X)                                                                                                                 \
	X(GT_PICKLE_NONE, "None")                                                                                                              \
	X(GT_PICKLE_BOOL, "a bool")                                                                                                            \
	X(GT_PICKLE_INT, "an int")                                                                                                             \
	X(GT_PICKLE_FLOAT, "a float")                                                                                                          \
	X(GT_PICKLE_TEXT, "a str")                                                                                                             \
	X(GT_PICKLE_TUPLE, "a tuple")                                                                                                          \
	X(GT_PICKLE_LIST, "a list")                                                                                                            \
	X(GT_PICKLE_DICT, "a dict")                                                                                                            \
	X(GT_PICKLE_GLOBAL, "a class")                                                                                                         \
	X(GT_PICKLE_STORAGE, "a storage")                                                                                                      \
	X(GT_PICKLE_TENSOR, "a tensor")

enum gt_pickle_kind {
#define GT_X(kind, text) kind,
	GT_PICKLE_KINDS(GT_X)
#undef GT_X
};

struct gt_pickle_item {                        /* an element of a list, or of a dict in the order of insertion */
	const struct gt_pickle_value *key, *value; /* key: the key of an element of a dict, NULL in a list; value: the element */
	struct gt_pickle_item *next;
};

/* A value. A list or dict may contain itself, so code that follows values must bound its depth. */
struct gt_pickle_value {
	enum gt_pickle_kind kind;
	union {
		int64_t number; /* BOOL, INT */
		double real;    /* FLOAT */
		struct {
			const char *bytes;
			size_t len;
		} text; /* member for kind TEXT; the text ends with NUL and may contain other zero bytes */
		struct {
			struct gt_pickle_value **v;
			int n;
		} tuple;
		struct {
			struct gt_pickle_item *first, *last;
		} items; /* LIST, DICT */
		const struct gt_torch_global *global;
		struct {
			const struct gt_torch_global *type;
			const char *key;
			int64_t count;
		} storage; /* count: elements */
		struct {
			const struct gt_pickle_value *storage, *shape, *stride;
			int64_t offset;
		} tensor; /* member for kind TENSOR; `shape` and `stride` are tuples of integers */
	};
};

struct gt_torch_global { /* a class or function that a pickle may name */
	const char *module, *name;
	enum { GT_TORCH_DICT, GT_TORCH_TENSOR, GT_TORCH_PARAMETER, GT_TORCH_STORAGE } role;
	int dtype; /* for the type of a storage: dtype of the elements; -1: gtrain does not have this dtype */
};

/* Reads the pickle of n bytes at p. The value is in the arena. GT_EDATA: the bytes are no pickle, or use another opcode or name. */
enum gt_code gt_pickle_read(const unsigned char *p, size_t n, const char *path, struct gt_arena *a, const struct gt_pickle_value **out,
                            struct gt_err *err);

const char *gt_pickle_kind_text(const struct gt_pickle_value *v);

/* Returns the value of a key of a dict; NULL: v is no dict or lacks the key. */
const struct gt_pickle_value *gt_pickle_get(const struct gt_pickle_value *v, const char *key);

#endif
