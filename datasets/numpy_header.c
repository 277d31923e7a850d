/* The header of a .npy array: a Python dictionary with exactly three keys, in any order. */
#include "numpy_file.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 6, MAX_HEADER = 1 << 16 };

struct literal {
	const char *p, *end;
};

static void skip_space(struct literal *l)
{
	while (l->p < l->end && (*l->p == ' ' || *l->p == '\n' || *l->p == '\t'))
		l->p++;
}

/* Skips a token if it follows. */
static bool take_token(struct literal *l, const char *token)
{
	size_t n = strlen(token);
	skip_space(l);
	if ((size_t)(l->end - l->p) < n || memcmp(l->p, token, n))
		return false;
	l->p += n;
	return true;
}

/* Reads a string in single or double quotes without escapes. */
static bool take_string(struct literal *l, char *out, size_t size)
{
	skip_space(l);
	char quote = l->p < l->end ? *l->p : 0;
	if (quote != '\'' && quote != '"')
		return false;
	const char *begin = l->p + 1, *stop = memchr(begin, quote, (size_t)(l->end - begin));
	if (!stop || (size_t)(stop - begin) >= size)
		return false;
	snprintf(out, size, "%.*s", (int)(stop - begin), begin);
	l->p = stop + 1;
	return true;
}

static bool take_number(struct literal *l, uint64_t *out)
{
	skip_space(l);
	const char *begin = l->p;
	*out = 0;
	for (; l->p < l->end && *l->p >= '0' && *l->p <= '9'; l->p++)
		if (__builtin_mul_overflow(*out, 10, out) || __builtin_add_overflow(*out, (uint64_t)(*l->p - '0'), out))
			return false;
	return l->p > begin;
}

/* Reads a tuple of numbers: (), (60,) or (60, 4). */
static bool take_shape(struct literal *l, struct gt_numpy_array *out)
{
	if (!take_token(l, "("))
		return false;
	while (!take_token(l, ")")) {
		if (out->rank == GT_NUMPY_RANK || !take_number(l, &out->dim[out->rank++]))
			return false;
		if (!take_token(l, ","))
			return take_token(l, ")");
	}
	return true;
}

/* Sets kind and item from a descr such as "<f4", "|u1" or "<U12". */
static enum gt_code parse_descr(const char *descr, const char *where, struct gt_numpy_array *out, struct gt_err *err)
{
	char *rest = "";
	out->kind = descr[0] ? descr[1] : 0;
	unsigned long size = out->kind ? strtoul(descr + 2, &rest, 10) : 0;
	if (out->kind == 'O')
		return gt_fail(err, GT_EDATA, "%s: expected an array of numbers or texts, got Python objects, which gtrain does not read because "
		               "loading such objects runs code", where);
	bool number = (out->kind == 'f' && (size == 4 || size == 8)) || (out->kind == 'b' && size == 1) ||
	              (out->kind && strchr("iu", out->kind) && (size == 1 || size == 2 || size == 4 || size == 8));
	bool text = out->kind && strchr("US", out->kind) && size > 0 && size <= 1 << 16;
	if (!number && !text)
		return gt_fail(err, GT_EDATA, "%s: expected elements of the types bool, int8 to int64, uint8 to uint64, float32, float64 or str, "
		               "got \"%.40s\"", where, descr);
	out->item = (int)(out->kind == 'U' ? 4 * size : size);
	if (descr[0] != '<' && descr[0] != '|')
		return gt_fail(err, GT_EDATA, "%s: expected little-endian elements, got \"%.40s\"; write "
		               "array.astype(array.dtype.newbyteorder(\"<\"))", where, descr);
	return *rest ? gt_fail(err, GT_EDATA, "%s: expected a type such as \"<f4\", got \"%.40s\"", where, descr) : GT_OK;
}

static enum gt_code count_elements(const char *where, struct gt_numpy_array *out, struct gt_err *err)
{
	uint64_t bytes;
	out->count = 1;
	for (int i = 0; i < out->rank; i++)
		if (__builtin_mul_overflow(out->count, out->dim[i], &out->count))
			return gt_fail(err, GT_EDATA, "%s: the product of the array's dimensions overflows", where);
	if (__builtin_mul_overflow(out->count, (uint64_t)out->item, &bytes) || bytes > UINT64_MAX / 2)
		return gt_fail(err, GT_EDATA, "%s: the product of the array's dimensions overflows", where);
	return GT_OK;
}

/* Parses the dictionary. */
static enum gt_code parse_literal(struct literal *l, const char *where, struct gt_numpy_array *out, struct gt_err *err)
{
	char key[20], descr[64] = "";
	bool ok = take_token(l, "{"), order = false, shape = false, fortran = false;
	while (ok && !take_token(l, "}")) {
		ok = take_string(l, key, sizeof key) && take_token(l, ":");
		if (ok && !strcmp(key, "descr") && take_token(l, "["))
			return gt_fail(err, GT_EDATA, "%s: expected one type of elements, got a structured array; write each field as a separate array",
			               where);
		if (ok && !strcmp(key, "descr") && !*descr)
			ok = take_string(l, descr, sizeof descr);
		else if (ok && !strcmp(key, "fortran_order") && !order)
			ok = order = (fortran = take_token(l, "True")) || take_token(l, "False");
		else if (ok && !strcmp(key, "shape") && !shape)
			ok = shape = take_shape(l, out);
		else
			ok = false;
		if (ok && !take_token(l, ",")) {
			ok = take_token(l, "}");
			break;
		}
	}
	skip_space(l);
	if (!ok || l->p != l->end || !*descr || !order || !shape)
		return gt_fail(err, GT_EDATA, "%s: expected a NumPy header with descr, fortran_order and shape of at most %d dimensions, got "
		               "another header", where, GT_NUMPY_RANK);
	if (fortran && out->rank > 1)
		return gt_fail(err, GT_EDATA, "%s: expected elements in C order, got Fortran order; write np.ascontiguousarray(array)", where);
	return parse_descr(descr, where, out, err);
}

enum gt_code gt_numpy_parse(const uint8_t *b, size_t n, const char *where, struct gt_numpy_array *out, struct gt_err *err)
{
	*out = (struct gt_numpy_array){0};
	if (n < MAGIC + 4 || memcmp(b, "\x93NUMPY", MAGIC))
		return gt_fail(err, GT_EDATA, "%s: expected a NumPy array, which begins with \\x93NUMPY", where);
	if (b[MAGIC] < 1 || b[MAGIC] > 3)
		return gt_fail(err, GT_EDATA, "%s: expected NumPy's format 1.0 to 3.0, got %d.%d", where, b[MAGIC], b[MAGIC + 1]);
	size_t begin = MAGIC + (b[MAGIC] == 1 ? 4 : 6), len = (size_t)b[8] | (size_t)b[9] << 8;
	if (b[MAGIC] > 1)
		len |= n >= begin ? (size_t)b[10] << 16 | (size_t)b[11] << 24 : 0;
	if (len > MAX_HEADER || n < begin || n - begin < len)
		return gt_fail(err, GT_EDATA, "%s: truncated: the file ends inside the NumPy header", where);
	struct literal l = {(const char *)b + begin, (const char *)b + begin + len};
	GT_TRY(parse_literal(&l, where, out, err));
	out->header = begin + len;
	return count_elements(where, out, err);
}
