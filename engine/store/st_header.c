#include "store/safetensors_file.h"
#include "base/json_read.h"
#include <stdlib.h>
#include <string.h>

/* ---- reader ------------------------------------------------------------------------------------------------------------------------- */

static enum gt_code read_shape(const struct gt_json_value *v, const char *path, struct gt_st_slot *s, struct gt_err *err)
{
	int64_t dim[GT_MAX_RANK], size = (int64_t)gt_dtype_size(s->desc.dtype);
	int rank = 0;
	if (!gt_json_is(v, GT_JSON_ARRAY))
		return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": the shape is missing", path, s->name);
	for (const struct gt_json_value *c = v->child; c; c = c->next) {
		if (rank == GT_MAX_RANK)
			return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": more than %d dimensions", path, s->name, GT_MAX_RANK);
		if (!gt_json_whole(c, &dim[rank]))
			return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": a dimension is not a whole number", path, s->name);
		if (__builtin_mul_overflow(size, dim[rank++], &size))
			return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": its size overflows", path, s->name);
	}
	if ((uint64_t)size != s->end - s->begin)
		return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": shape and dtype need %lld bytes, but data_offsets give %llu", path, s->name,
		               (long long)size, (unsigned long long)(s->end - s->begin));
	s->desc = gt_tdesc_make(s->desc.dtype, rank, dim, false);
	return GT_OK;
}

static enum gt_code read_slot(const struct gt_json_value *v, const char *path, uint64_t data_bytes, struct gt_st_slot *s,
                              struct gt_err *err)
{
	const struct gt_json_value *dtype = NULL, *shape = NULL, *offsets = NULL;
	int64_t begin, end;
	if (!gt_json_is(v, GT_JSON_OBJECT))
		return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": expected an object", path, s->name);
	for (const struct gt_json_value *c = v->child; c; c = c->next) {
		if (!strcmp(c->key, "dtype"))
			dtype = c;
		else if (!strcmp(c->key, "shape"))
			shape = c;
		else if (!strcmp(c->key, "data_offsets"))
			offsets = c;
		else
			return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": unknown key \"%.100s\"", path, s->name, c->key);
	}
	if (!gt_json_text(dtype))
		return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": the dtype is missing", path, s->name);
	if (!gt_dtype_from_safetensors(dtype->text, &s->desc.dtype))
		return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": gtrain does not support the dtype \"%.40s\"", path, s->name, dtype->text);
	const struct gt_json_value *o = gt_json_is(offsets, GT_JSON_ARRAY) ? offsets->child : NULL;
	if (!o || !o->next || o->next->next || !gt_json_whole(o, &begin) || !gt_json_whole(o->next, &end))
		return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": expected two whole numbers in data_offsets", path, s->name);
	if (begin > end || (uint64_t)end > data_bytes)
		return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": data_offsets [%lld, %lld] are outside of the %llu bytes of data",
		               path, s->name, (long long)begin, (long long)end, (unsigned long long)data_bytes);
	s->begin = (uint64_t)begin;
	s->end = (uint64_t)end;
	return read_shape(shape, path, s, err);
}

static enum gt_code read_metadata(const struct gt_json_value *v, const char *path, struct gt_err *err)
{
	bool good = gt_json_is(v, GT_JSON_OBJECT);
	for (const struct gt_json_value *c = good ? v->child : NULL; c && good; c = c->next)
		good = gt_json_text(c);
	return good ? GT_OK : gt_fail(err, GT_EDATA, "%s: expected an object of strings in __metadata__", path);
}

static int compare_offsets(const void *pa, const void *pb)
{
	const struct gt_st_slot *a = pa, *b = pb;
	if (a->begin != b->begin)
		return a->begin < b->begin ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

static int compare_names(const void *pa, const void *pb)
{
	const struct gt_st_slot *a = pa, *b = pb;
	return strcmp(a->name, b->name);
}

static enum gt_code read_slots(const struct gt_json_value *root, uint64_t data_bytes, const char *path, struct gt_arena *a,
                               struct gt_st_slot **slots, int *count, struct gt_err *err)
{
	struct gt_st_slot *s;
	size_t n = 0;
	if (!gt_json_is(root, GT_JSON_OBJECT))
		return gt_fail(err, GT_EDATA, "%s: expected an object as the header", path);
	for (const struct gt_json_value *c = root->child; c; c = c->next)
		n++;
	if (n > GT_ST_TENSORS_MAX)
		return gt_fail(err, GT_EDATA, "%s: the file has %zu tensors, but at most %d are supported", path, n, GT_ST_TENSORS_MAX);
	GT_NEW(s, a, n, err);
	n = 0;
	for (const struct gt_json_value *c = root->child; c; c = c->next) {
		if (!strcmp(c->key, "__metadata__")) {
			GT_TRY(read_metadata(c, path, err));
			continue;
		}
		s[n].name = c->key;
		GT_TRY(read_slot(c, path, data_bytes, &s[n++], err));
	}
	/* the end of the tensors so far; tensors must be contiguous from 0 to the end of the file, so that every byte belongs to exactly
	 * one */
	uint64_t at = 0;
	qsort(s, n, sizeof *s, compare_offsets);
	for (size_t i = 0; i < n; at = s[i++].end)
		if (s[i].begin != at)
			return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": its data begins at byte %llu, expected byte %llu", path, s[i].name,
			               (unsigned long long)s[i].begin, (unsigned long long)at);
	if (at != data_bytes)
		return gt_fail(err, GT_EDATA, "%s: the file has %llu bytes of data, but its header describes %llu", path,
		               (unsigned long long)data_bytes, (unsigned long long)at);
	qsort(s, n, sizeof *s, compare_names);
	*slots = s;
	*count = (int)n;
	return GT_OK;
}

enum gt_code gt_st_header_parse(const char *json, size_t n, uint64_t data_bytes, const char *path, struct gt_arena *a,
                                struct gt_st_slot **slots, int *count, struct gt_err *err)
{
	const struct gt_json_value *root;
	if (!n || json[0] != '{')
		return gt_fail(err, GT_EDATA, "%s: expected a safetensors file, got a header that does not begin with '{'", path);
	GT_TRY(gt_json_parse(json, n, path, 3, (size_t)GT_ST_TENSORS_MAX * 12, a, &root, err));
	return read_slots(root, data_bytes, path, a, slots, count, err);
}

/* ---- writer ------------------------------------------------------------------------------------------------------------------------- */

struct sort_key {
	size_t size;
	const char *name;
	int index;
};

static int compare_size_and_name(const void *pa, const void *pb)
{
	const struct sort_key *a = pa, *b = pb;
	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return strcmp(a->name, b->name);
}

static int compare_key_names(const void *pa, const void *pb)
{
	const struct sort_key *a = pa, *b = pb;
	return strcmp(a->name, b->name);
}

static enum gt_code sort_tensors(const struct gt_st_tensor *t, int n, int *order, struct gt_err *err)
{
	struct sort_key *k = calloc((size_t)n + 1, sizeof *k);
	if (!k)
		return gt_fail_memory(err, (size_t)n * sizeof *k);
	for (int i = 0; i < n; i++)
		k[i] = (struct sort_key){gt_dtype_size(t[i].desc.dtype), t[i].name, i};
	enum gt_code code = GT_OK;
	qsort(k, (size_t)n, sizeof *k, compare_key_names);
	for (int i = 0; i < n && !code; i++) {
		if (!gt_utf8_valid(k[i].name))
			code = gt_fail(err, GT_EINTERNAL, "cannot save tensor \"%s\": its name is not valid UTF-8", k[i].name);
		else if (!gt_tdesc_plain(&t[k[i].index].desc))
			code = gt_fail(err, GT_EINTERNAL, "cannot save tensor \"%s\": its layout is not row-major without padding", k[i].name);
		else if ((i && !strcmp(k[i - 1].name, k[i].name)) || !strcmp(k[i].name, "__metadata__"))
			code = gt_fail(err, GT_EINTERNAL, "cannot save two tensors with the same name \"%s\"", k[i].name);
	}
	qsort(k, (size_t)n, sizeof *k, compare_size_and_name);
	for (int i = 0; i < n; i++)
		order[i] = k[i].index;
	free(k);
	return code;
}

enum gt_code gt_st_header_print(const struct gt_st_tensor *t, int n, const char *const *metadata, int *order, struct gt_json *j,
                                struct gt_err *err)
{
	const char *text;
	uint64_t at = 0;
	GT_TRY(sort_tensors(t, n, order, err));
	gt_json_object(j, NULL);
	if (metadata) {
		gt_json_object(j, "__metadata__");
		for (; metadata[0]; metadata += 2)
			gt_json_string(j, metadata[0], metadata[1]);
		gt_json_end(j);
	}
	for (int i = 0; i < n; i++) {
		const struct gt_tdesc *d = &t[order[i]].desc;
		gt_json_object(j, t[order[i]].name);
		gt_json_string(j, "dtype", gt_dtype_safetensors(d->dtype));
		gt_json_array(j, "shape");
		for (int k = 0; k < d->rank; k++)
			gt_json_int(j, NULL, d->dim[k]);
		gt_json_end(j);
		gt_json_array(j, "data_offsets");
		gt_json_uint(j, NULL, at);
		gt_json_uint(j, NULL, at += gt_tdesc_bytes(d));
		gt_json_end(j);
		gt_json_end(j);
	}
	gt_json_end(j);
	GT_TRY(gt_json_finish(j, &text, err));
	if (j->len > GT_ST_HEADER_MAX || n > GT_ST_TENSORS_MAX)
		return gt_fail(err, GT_EINTERNAL, "too many tensors for one safetensors file: %d", n);
	return GT_OK;
}
