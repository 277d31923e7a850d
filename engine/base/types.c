#include "base/types.h"
#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof(void *) == 8,
               "gtrain needs a 64-bit little-endian processor, because its files hold numbers as such a processor stores them");

static const struct {
	size_t size;
	const char *name, *st;
} dtypes[GT_DTYPE_COUNT] = {
#define GT_X(id, size, text, st) [id] = {size, text, st},
	GT_DTYPES(GT_X)
#undef GT_X
};

size_t gt_dtype_size(enum gt_dtype t)
{
	return dtypes[t].size;
}

const char *gt_dtype_name(enum gt_dtype t)
{
	return dtypes[t].name;
}

const char *gt_dtype_safetensors(enum gt_dtype t)
{
	return dtypes[t].st;
}

bool gt_dtype_from_safetensors(const char *s, enum gt_dtype *out)
{
	for (int i = 0; i < GT_DTYPE_COUNT; i++) {
		if (!strcmp(dtypes[i].st, s)) {
			*out = (enum gt_dtype)i;
			return true;
		}
	}
	return false;
}

struct gt_tdesc gt_tdesc_make(enum gt_dtype t, int rank, const int64_t *dim, bool channels_last)
{
	struct gt_tdesc d = {.dtype = t, .rank = (uint8_t)rank};
	for (int i = 0; i < rank; i++) {
		d.dim[i] = dim[i];
		d.layout.order[i] = (uint8_t)i;
	}
	if (channels_last && rank == 4) {
		static const uint8_t nhwc[4] = {0, 2, 3, 1};
		memcpy(d.layout.order, nhwc, sizeof nhwc);
	}
	return d;
}

struct gt_tdesc gt_tdesc_pad_channels(const struct gt_tdesc *d, int n)
{
	struct gt_tdesc out = gt_tdesc_make(d->dtype, 4, d->dim, true);
	if (d->dim[1] % n) {
		out.layout.nblk = 1;
		out.layout.blk_dim[0] = 1;
		out.layout.blk[0] = (uint8_t)n;
	}
	return out;
}

int64_t gt_tdesc_count(const struct gt_tdesc *d)
{
	int64_t n = 1;
	for (int i = 0; i < d->rank; i++)
		n *= d->dim[i];
	return n;
}

/* Computes the number of blocks in each dimension, from the product of the dimension's block sizes. */
static void compute_outer_dims(const struct gt_tdesc *d, int64_t *outer)
{
	int64_t block[GT_MAX_RANK];
	for (int i = 0; i < d->rank; i++)
		block[i] = 1;
	for (int b = 0; b < d->layout.nblk; b++)
		block[d->layout.blk_dim[b]] *= d->layout.blk[b];
	for (int i = 0; i < d->rank; i++)
		outer[i] = (d->dim[i] + block[i] - 1) / block[i];
}

int64_t gt_tdesc_padded(const struct gt_tdesc *d)
{
	int64_t outer[GT_MAX_RANK], n = 1;
	compute_outer_dims(d, outer);
	for (int i = 0; i < d->rank; i++)
		n *= outer[i];
	for (int b = 0; b < d->layout.nblk; b++)
		n *= d->layout.blk[b];
	return n;
}

size_t gt_tdesc_bytes(const struct gt_tdesc *d)
{
	return (size_t)gt_tdesc_padded(d) * gt_dtype_size(d->dtype);
}

bool gt_tdesc_plain(const struct gt_tdesc *d)
{
	if (d->any || d->layout.nblk)
		return false;
	for (int i = 0; i < d->rank; i++)
		if (d->layout.order[i] != i)
			return false;
	return true;
}

bool gt_tdesc_same_shape(const struct gt_tdesc *a, const struct gt_tdesc *b)
{
	if (a->rank != b->rank)
		return false;
	for (int i = 0; i < a->rank; i++)
		if (a->dim[i] != b->dim[i])
			return false;
	return true;
}

bool gt_tdesc_same_but_ones(const struct gt_tdesc *a, const struct gt_tdesc *b)
{
	for (int i = 0, k = 0;; i++, k++) {
		while (i < a->rank && a->dim[i] == 1)
			i++;
		while (k < b->rank && b->dim[k] == 1)
			k++;
		if (i == a->rank || k == b->rank)
			return i == a->rank && k == b->rank;
		if (a->dim[i] != b->dim[k])
			return false;
	}
}

bool gt_tdesc_equal(const struct gt_tdesc *a, const struct gt_tdesc *b)
{
	if (!gt_tdesc_same_shape(a, b) || a->dtype != b->dtype || a->any != b->any || a->layout.nblk != b->layout.nblk)
		return false;
	for (int i = 0; i < a->rank; i++)
		if (a->layout.order[i] != b->layout.order[i])
			return false;
	for (int i = 0; i < a->layout.nblk; i++)
		if (a->layout.blk_dim[i] != b->layout.blk_dim[i] || a->layout.blk[i] != b->layout.blk[i])
			return false;
	return true;
}

int64_t gt_tdesc_offset(const struct gt_tdesc *d, const int64_t *idx)
{
	int64_t outer[GT_MAX_RANK], rest[GT_MAX_RANK], inner = 0, size = 1, off = 0;
	compute_outer_dims(d, outer);
	memcpy(rest, idx, sizeof rest[0] * d->rank);
	/* Begins with the innermost block, which varies fastest: the index in a block is the remainder of the logical index by its size. */
	for (int b = d->layout.nblk - 1; b >= 0; b--) {
		int k = d->layout.blk_dim[b], n = d->layout.blk[b];
		inner += rest[k] % n * size;
		rest[k] /= n;
		size *= n;
	}
	for (int i = 0; i < d->rank; i++) {
		int k = d->layout.order[i];
		off = off * outer[k] + rest[k];
	}
	return off * size + inner;
}

#define TABLE 2048 /* indices of a dimension whose offsets are kept */

/* Returns the offset of the element whose indices are 0, except idx[k] = i. */
static int64_t offset_along(const struct gt_tdesc *d, int k, int64_t i)
{
	int64_t idx[GT_MAX_RANK] = {0};
	idx[k] = i;
	return gt_tdesc_offset(d, idx);
}

/* Copies every logical element in plain order. Used for checkpoints and tests, not during a step. The offset of an element is the sum of
 * one offset for each index, because blocks divide each dimension separately. */
static void copy_permuted(const struct gt_tdesc *d, const char *from, char *to, bool pack)
{
	size_t size = gt_dtype_size(d->dtype);
	int64_t table[GT_MAX_RANK][TABLE], idx[GT_MAX_RANK] = {0}, along[GT_MAX_RANK] = {0}, n = gt_tdesc_count(d), at = 0;
	if (gt_tdesc_plain(d)) {
		memcpy(to, from, (size_t)n * size);
		return;
	}
	for (int k = 0; k < d->rank; k++)
		for (int64_t i = 0; i < TABLE && i < d->dim[k]; i++)
			table[k][i] = offset_along(d, k, i);
	for (int64_t i = 0; i < n; i++) {
		size_t p = (size_t)at * size, q = (size_t)i * size;
		if (size == sizeof(float)) /* a constant size is one instruction */
			memcpy(to + (pack ? p : q), from + (pack ? q : p), sizeof(float));
		else
			memcpy(to + (pack ? p : q), from + (pack ? q : p), size);
		bool carry = true;
		for (int k = d->rank - 1; k >= 0 && carry; k--) {
			carry = ++idx[k] == d->dim[k];
			idx[k] = carry ? 0 : idx[k];
			int64_t next = idx[k] < TABLE ? table[k][idx[k]] : offset_along(d, k, idx[k]);
			at += next - along[k];
			along[k] = next;
		}
	}
}

void gt_tdesc_pack(const struct gt_tdesc *d, const void *plain, void *physical)
{
	if (gt_tdesc_padded(d) != gt_tdesc_count(d))
		memset(physical, 0, gt_tdesc_bytes(d));
	copy_permuted(d, plain, physical, true);
}

void gt_tdesc_unpack(const struct gt_tdesc *d, const void *physical, void *plain)
{
	copy_permuted(d, physical, plain, false);
}

const char *gt_tdesc_text(const struct gt_tdesc *d, char *buf, size_t size)
{
	size_t n = (size_t)snprintf(buf, size, "[");
	for (int i = 0; i < d->rank && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%lld", i ? ", " : "", (long long)d->dim[i]);
	if (n < size)
		snprintf(buf + n, size - n, "]");
	return buf;
}

/* ---- values ------------------------------------------------------------------------------------------------------------------------- */
/* A value is finite if and only if its exponent has a bit that is 0. The search tests whole blocks, which the compiler vectorises, and then
 * the elements of the first block with a non-finite value. */
#define FIRST_NONFINITE(name, T, EXPONENT)                            \
	static int64_t name(const char *p, int64_t n)                     \
	{                                                                 \
		enum { BLOCK = 1024 };                                        \
		for (int64_t i = 0; i < n; i += BLOCK) {                      \
			T x[BLOCK] = {0};                                         \
			int64_t m = n - i < BLOCK ? n - i : BLOCK;                \
			int bad = 0;                                              \
			memcpy(x, p + (size_t)i * sizeof *x, (size_t)m * sizeof *x); \
			for (int k = 0; k < BLOCK; k++)                           \
				bad |= (x[k] & (EXPONENT)) == (EXPONENT);             \
			for (int k = 0; bad && k < BLOCK; k++)                    \
				if ((x[k] & (EXPONENT)) == (EXPONENT))                \
					return i + k;                                     \
		}                                                             \
		return -1;                                                    \
	}
FIRST_NONFINITE(first_f32, uint32_t, 0x7f800000u)
FIRST_NONFINITE(first_f64, uint64_t, 0x7ff0000000000000u)
FIRST_NONFINITE(first_bf16, uint16_t, 0x7f80u)
FIRST_NONFINITE(first_f16, uint16_t, 0x7c00u)

int64_t gt_first_nonfinite(const void *p, enum gt_dtype t, int64_t n)
{
	switch (t) {
	case GT_F32:
		return first_f32(p, n);
	case GT_F64:
		return first_f64(p, n);
	case GT_BF16:
		return first_bf16(p, n);
	case GT_F16:
		return first_f16(p, n);
	default:
		return -1;
	}
}
