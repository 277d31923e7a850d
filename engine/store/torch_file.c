#include "store/torch_file.h"
#include "base/json.h"
#include "store/torch_pickle.h"
#include "store/torch_zip.h"
#include <stdlib.h>
#include <string.h>

enum {
	PICKLE_MAX = 64 << 20, /* maximum bytes of data.pkl; each tensor takes about 150 bytes in it */
	NAME_MAX_BYTES = 400   /* maximum bytes of the name of an archive member */
};

/* The state of reading a file of torch.save. */
struct source {
	const char *path;
	const unsigned char *file;
	struct gt_zip zip;
	const struct gt_zip_member *pickle; /* NAME/data.pkl */
	struct gt_arena *a;                 /* memory of the parsed archive and pickle; the result is in an arena of the caller */
};

bool gt_torch_is_file(const unsigned char *first, size_t n)
{
	return n > 30 && !memcmp(first, "PK\3\4", 4) && memmem(first + 30, n - 30, "/data.pkl", 9);
}

/* Returns the archive member NAME/<name>, where NAME is the same for all members; NULL: there is no such member. */
static const struct gt_zip_member *find_member(const struct source *s, const char *name)
{
	char full[NAME_MAX_BYTES];
	size_t stem = s->pickle->len - strlen("data.pkl"), len = strlen(name);
	if (stem + len + 1 > sizeof full)
		return NULL;
	memcpy(full, s->pickle->name, stem);
	memcpy(full + stem, name, len + 1);
	return gt_zip_find(&s->zip, full);
}

static enum gt_code find_pickle(struct source *s, struct gt_err *err)
{
	static const char end[] = "/data.pkl";
	for (int i = 0; i < s->zip.n && !s->pickle; i++) {
		const struct gt_zip_member *m = &s->zip.member[i];
		if (m->len >= sizeof end - 1 && !memcmp(m->name + m->len - (sizeof end - 1), end, sizeof end - 1))
			s->pickle = m;
	}
	if (!s->pickle)
		return gt_fail(err, GT_EDATA, "%s: expected a file of torch.save, got an archive without data.pkl", s->path);
	if (s->pickle->size > PICKLE_MAX)
		return gt_fail(err, GT_EDATA, "%s: data.pkl has %llu bytes, but at most %d are supported", s->path,
		               (unsigned long long)s->pickle->size, PICKLE_MAX);
	const struct gt_zip_member *order = find_member(s, "byteorder");
	if (order && (order->size != 6 || memcmp(s->file + order->begin, "little", 6) != 0))
		return gt_fail(err, GT_EDATA, "%s: expected little-endian values, got a file of a big-endian machine", s->path);
	return GT_OK;
}

/* Returns the dict of the tensors: the value of a key of GT_TORCH_KEYS, or root. */
static const struct gt_pickle_value *find_state_dict(const struct gt_pickle_value *root)
{
	static const char *const keys[] = {
#define GT_X(key) key,
	    GT_TORCH_KEYS(GT_X)
#undef GT_X
	};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
		const struct gt_pickle_value *v = gt_pickle_get(root, keys[i]);
		if (v && v->kind == GT_PICKLE_DICT)
			return v;
	}
	return root;
}

static enum gt_code check_name(const struct source *s, const struct gt_pickle_value *key, struct gt_err *err)
{
	if (key->kind != GT_PICKLE_TEXT)
		return gt_fail(err, GT_EDATA, "%s: expected names of tensors as keys of the state dict, got %s", s->path, gt_pickle_kind_text(key));
	if (strlen(key->text.bytes) != key->text.len || !gt_utf8_valid(key->text.bytes))
		return gt_fail(err, GT_EDATA, "%s: the name of a tensor is not UTF-8 text", s->path);
	return GT_OK;
}

static enum gt_code read_shape(const struct source *s, const struct gt_pickle_value *t, struct gt_st_slot *slot, int64_t *count,
                               struct gt_err *err)
{
	const struct gt_pickle_value *shape = t->tensor.shape, *stride = t->tensor.stride;
	int64_t dim[GT_MAX_RANK];
	int rank = shape->tuple.n;
	bool contiguous = true;
	*count = 1;
	if (rank > GT_MAX_RANK)
		return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": more than %d dimensions", s->path, slot->name, GT_MAX_RANK);
	for (int i = rank; i-- > 0;) {
		dim[i] = shape->tuple.v[i]->number;
		contiguous &= dim[i] == 1 || stride->tuple.v[i]->number == *count;
		if (dim[i] < 0 || __builtin_mul_overflow(*count, dim[i], count) || *count > INT64_MAX / 8)
			return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": its size overflows", s->path, slot->name);
	}
	if (!contiguous && *count > 1)
		return gt_fail(err, GT_EDATA,
		               "%s: tensor \"%.200s\": expected contiguous values, got other strides; save contiguous tensors: torch.save({k: "
		               "v.contiguous() for k, v in model.state_dict().items()}, \"weights.pth\")", s->path, slot->name);
	slot->desc = gt_tdesc_make(slot->desc.dtype, rank, dim, false);
	return GT_OK;
}

/* Sets the range of bytes in the file that has the values of tensor t. storage: the member that contains them. count: number of elements of
 * the tensor. */
static enum gt_code place_values(const struct source *s, const struct gt_pickle_value *t, const struct gt_zip_member *storage,
                                 int64_t count, struct gt_st_slot *slot, struct gt_err *err)
{
	uint64_t size = gt_dtype_size(slot->desc.dtype), have = storage->size / size;
	uint64_t offset = (uint64_t)t->tensor.offset, n = (uint64_t)count;
	if (t->tensor.offset < 0 || offset > have || n > have - offset)
		return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": expected %lld values from index %lld of its storage, which has %llu", s->path,
		               slot->name, (long long)count, (long long)t->tensor.offset, (unsigned long long)have);
	slot->begin = storage->begin + offset * size;
	slot->end = slot->begin + n * size;
	if (slot->begin % size)
		return gt_fail(err, GT_EDATA,
		               "%s: tensor \"%.200s\": its values are not aligned to %llu bytes, as torch.save aligns them; the archive may have "
		               "been repacked", s->path, slot->name, (unsigned long long)size);
	return GT_OK;
}

static enum gt_code read_tensor(const struct source *s, const struct gt_pickle_value *t, struct gt_st_slot *slot, struct gt_err *err)
{
	char name[NAME_MAX_BYTES] = "data/";
	int64_t count;
	if (t->kind != GT_PICKLE_TENSOR)
		return gt_fail(err, GT_EDATA, "%s: expected a state dict, whose values are tensors, got %s for \"%.200s\"", s->path,
		               gt_pickle_kind_text(t), slot->name);
	const struct gt_pickle_value *storage = t->tensor.storage;
	if (storage->storage.type->dtype < 0)
		return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": gtrain does not support the type torch.%s", s->path, slot->name,
		               storage->storage.type->name);
	slot->desc.dtype = (enum gt_dtype)storage->storage.type->dtype;
	GT_TRY(read_shape(s, t, slot, &count, err));
	strncat(name, storage->storage.key, sizeof name - 6);
	const struct gt_zip_member *m = find_member(s, name);
	if (!m || storage->storage.count < 0 || m->size / gt_dtype_size(slot->desc.dtype) != (uint64_t)storage->storage.count)
		return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\": its storage is missing or has another size than the file declares", s->path,
		               slot->name);
	return place_values(s, t, m, count, slot, err);
}

static int compare_slots(const void *pa, const void *pb)
{
	const struct gt_st_slot *a = pa, *b = pb;
	return strcmp(a->name, b->name);
}

static enum gt_code read_state_dict(const struct source *s, const struct gt_pickle_value *dict, struct gt_arena *a,
                                    struct gt_st_slot **slots, int *count, struct gt_err *err)
{
	struct gt_st_slot *slot;
	int n = 0;
	if (dict->kind != GT_PICKLE_DICT)
		return gt_fail(err, GT_EDATA, "%s: expected a state dict, got %s", s->path, gt_pickle_kind_text(dict));
	for (const struct gt_pickle_item *i = dict->items.first; i; i = i->next)
		if (++n > GT_ST_TENSORS_MAX)
			return gt_fail(err, GT_EDATA, "%s: the file has more than %d tensors", s->path, GT_ST_TENSORS_MAX);
	GT_NEW(slot, a, n, err);
	*count = 0;
	for (const struct gt_pickle_item *i = dict->items.first; i; i = i->next) {
		struct gt_st_slot *to = &slot[(*count)++];
		GT_TRY(check_name(s, i->key, err));
		GT_NEW_STR(to->name, gt_arena_strdup(a, i->key->text.bytes), err);
		GT_TRY(read_tensor(s, i->value, to, err));
	}
	qsort(slot, (size_t)n, sizeof *slot, compare_slots);
	for (int i = 1; i < n; i++)
		if (!strcmp(slot[i - 1].name, slot[i].name))
			return gt_fail(err, GT_EDATA, "%s: tensor \"%.200s\" is in the state dict twice", s->path, slot[i].name);
	*slots = slot;
	return GT_OK;
}

static enum gt_code read_source(struct source *s, uint64_t bytes, struct gt_arena *a, struct gt_st_slot **slots, int *count,
                                struct gt_err *err)
{
	const struct gt_pickle_value *root;
	GT_TRY(gt_zip_read(s->file, bytes, s->path, s->a, &s->zip, err));
	GT_TRY(find_pickle(s, err));
	GT_TRY(gt_pickle_read(s->file + s->pickle->begin, (size_t)s->pickle->size, s->path, s->a, &root, err));
	return read_state_dict(s, find_state_dict(root), a, slots, count, err);
}

enum gt_code gt_torch_slots(const unsigned char *file, uint64_t bytes, const char *path, struct gt_arena *a, struct gt_st_slot **slots,
                            int *count, struct gt_err *err)
{
	struct source s = {.path = path, .file = file};
	GT_TRY(gt_arena_open(&s.a, err));
	enum gt_code code = read_source(&s, bytes, a, slots, count, err);
	gt_arena_close(s.a);
	return code;
}
