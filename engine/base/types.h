/* Data types and tensor descriptions, used by all rooms.
 *
 * A tensor has a logical shape (PyTorch's: activations N,C[,H,W]; linear weights out,in; convolution weights O,I/groups,kh,kw)
 * and a physical layout: the order of its dimensions in memory, the slowest one first, and up to three inner blocks.
 *   plain NCHW                order 0,1,2,3
 *   channels last (NHWC)      order 0,2,3,1      every rank-4 activation in gtrain
 *   padded channels           order 0,2,3,1 with the inner block 8 of dimension 1: images for tensor cores (GT_OP_GATHER)
 *   oneDNN's Ohwi16o          order 0,2,3,1 with the inner block 16 of dimension 0
 * Blocked dimensions are padded to a multiple of their block. Padding is zero, and every kernel keeps it zero. A backend chooses the layout
 * of weights; checkpoints have the plain layout. Source of the blocking scheme: oneDNN developer guide, "Memory formats". */
#ifndef GT_BASE_TYPES_H
#define GT_BASE_TYPES_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Short lists with a fixed capacity, for values of config keys. */
#define GT_MAX_LIST 64
struct gt_floats { int n; double v[GT_MAX_LIST]; };
struct gt_ints { int n; int64_t v[GT_MAX_LIST]; };
struct gt_strings { int n; const char *v[GT_MAX_LIST]; };

#define GT_MAX_RANK 5
#define GT_MAX_BLOCKS 3

/* X(name, size in bytes, name in texts, name in safetensors files) */
#define GT_DTYPES(X)           \
	X(GT_F32, 4, "f32", "F32")  \
	X(GT_F64, 8, "f64", "F64")  \
	X(GT_BF16, 2, "bf16", "BF16") \
	X(GT_F16, 2, "f16", "F16")  \
	X(GT_I32, 4, "i32", "I32")  \
	X(GT_I64, 8, "i64", "I64")  \
	X(GT_U8, 1, "u8", "U8")

enum gt_dtype {
#define GT_X(name, size, text, st) name,
	GT_DTYPES(GT_X)
#undef GT_X
	GT_DTYPE_COUNT
};

size_t gt_dtype_size(enum gt_dtype t);
const char *gt_dtype_name(enum gt_dtype t);                /* name in texts, such as "f32" */
const char *gt_dtype_safetensors(enum gt_dtype t);         /* name in safetensors files, such as "F32" */
bool gt_dtype_from_safetensors(const char *s, enum gt_dtype *out);

struct gt_layout {
	uint8_t order[GT_MAX_RANK]; /* the dimensions, the slowest one first */
	uint8_t nblk;
	uint8_t blk_dim[GT_MAX_BLOCKS]; /* dimension of each inner block, the slowest block first */
	uint8_t blk[GT_MAX_BLOCKS];
};

struct gt_tdesc {
	enum gt_dtype dtype;
	uint8_t rank;
	bool any; /* no layout is chosen yet; the first kernel that is prepared with this tensor chooses a layout */
	int64_t dim[GT_MAX_RANK];
	struct gt_layout layout;
};

/* Returns a description of a tensor. The layout is NHWC if channels_last is true and the rank is 4, otherwise plain. */
struct gt_tdesc gt_tdesc_make(enum gt_dtype t, int rank, const int64_t *dim, bool channels_last);

/* Returns d (rank 4, channels last) with its channels padded to a multiple of n, if their number is not a multiple already. */
struct gt_tdesc gt_tdesc_pad_channels(const struct gt_tdesc *d, int n);

int64_t gt_tdesc_count(const struct gt_tdesc *d);  /* number of logical elements; rank 0 has one */
int64_t gt_tdesc_padded(const struct gt_tdesc *d); /* number of physical elements, with padding */
size_t gt_tdesc_bytes(const struct gt_tdesc *d);   /* size in memory, with padding */
bool gt_tdesc_plain(const struct gt_tdesc *d);     /* whether the physical order equals the logical order, without blocks */
bool gt_tdesc_equal(const struct gt_tdesc *a, const struct gt_tdesc *b);
bool gt_tdesc_same_shape(const struct gt_tdesc *a, const struct gt_tdesc *b);
/* Returns whether the shapes are the same without their dimensions of 1: [96, 1, 1] and [96], [1, 197, 768] and [197, 768]. */
bool gt_tdesc_same_but_ones(const struct gt_tdesc *a, const struct gt_tdesc *b);

/* Returns the physical index of the element with logical index idx, which has one entry per dimension. */
int64_t gt_tdesc_offset(const struct gt_tdesc *d, const int64_t *idx);

/* gt_tdesc_pack copies a plain host buffer to the physical layout of d and sets the padding to 0. gt_tdesc_unpack copies back, without the
 * padding. */
void gt_tdesc_pack(const struct gt_tdesc *d, const void *plain, void *physical);
void gt_tdesc_unpack(const struct gt_tdesc *d, const void *physical, void *plain);

/* Returns the index of the first of n elements that is NaN or infinite; -1: none. Integers are always finite. */
int64_t gt_first_nonfinite(const void *p, enum gt_dtype t, int64_t n);

/* Writes the shape as "[128, 64, 32, 32]" into buf; 96 bytes always suffice. Returns buf. */
const char *gt_tdesc_text(const struct gt_tdesc *d, char *buf, size_t size);

#endif
