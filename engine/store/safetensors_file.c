#include "store/safetensors_file.h"
#include "base/descriptors.h"
#include "base/fileio.h"
#include "store/torch_file.h"
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FIRST 512 /* number of bytes at the start of a file that tell which format it has */

struct gt_st_file {
	struct gt_arena *arena;
	const char *path;
	int fd;
	uint64_t bytes, data_at;
	struct gt_st_slot *slots;
	struct gt_st_tensor *tensors;
	int count;
	void *map;
};

/* ---- writer ------------------------------------------------------------------------------------------------------------------------- */

static enum gt_code write_bytes(int fd, const char *path, const void *p, size_t n, struct gt_digest *d, uint64_t *bytes, struct gt_err *err)
{
	GT_TRY(gt_file_write(fd, path, p, n, err));
	if (d)
		gt_digest_add(d, p, n);
	*bytes += n;
	return GT_OK;
}

static enum gt_code write_contents(int fd, const char *path, const struct gt_st_tensor *t, int n, const int *order, const struct gt_json *j,
                                   struct gt_digest *d, uint64_t *bytes, struct gt_err *err)
{
	static const char spaces[8] = "        ";
	size_t pad = (8 - j->len % 8) % 8;
	uint64_t total = j->len + pad;
	unsigned char length[8];
	for (int i = 0; i < 8; i++)
		length[i] = (unsigned char)(total >> 8 * i);
	GT_TRY(write_bytes(fd, path, length, sizeof length, d, bytes, err));
	GT_TRY(write_bytes(fd, path, j->text, j->len, d, bytes, err));
	GT_TRY(write_bytes(fd, path, spaces, pad, d, bytes, err));
	for (int i = 0; i < n; i++) {
		const struct gt_st_tensor *x = &t[order[i]];
		const void *data = x->data;
		if (!data && x->read)
			GT_TRY(x->read(x->user, x->key, &data, err));
		GT_TRY(write_bytes(fd, path, data, gt_tdesc_bytes(&x->desc), d, bytes, err));
	}
	return GT_OK;
}

enum gt_code gt_st_write_digest(int fd, const char *path, const struct gt_st_tensor *t, int n, const char *const *metadata,
                                struct gt_digest *d, uint64_t *bytes, struct gt_err *err)
{
	struct gt_json j = {0};
	int *order = malloc(((size_t)n + 1) * sizeof *order);
	*bytes = 0;
	enum gt_code code = order ? gt_st_header_print(t, n, metadata, order, &j, err) : gt_fail_memory(err, 0);
	if (!code)
		code = write_contents(fd, path, t, n, order, &j, d, bytes, err);
	gt_json_free(&j);
	free(order);
	return code;
}

/* ---- reader ------------------------------------------------------------------------------------------------------------------------- */

/* Fails for a file of another format that users may pass as weights. `first`: the first bytes of the file, padded with zeros. Returns GT_OK
 * for a file of an unknown format. */
static enum gt_code reject_other_format(const char *path, const unsigned char first[FIRST], struct gt_err *err)
{
	static const struct {
		const char *magic, *name;
	} others[] = {
	    {"\x89HDF", "an HDF5 file, as Keras writes"},
	    {"\x93NUMPY", "a NumPy file"},
	    {"GGUF", "a GGUF file"},
	    {"PK\3\4", "a zip archive"},
	    {"\x1f\x8b", "a gzip file"},
	};
	if (first[8] == '{') /* a safetensors file: its first 8 bytes, the length of the header, only happen to look like another format */
		return GT_OK;
	if (first[0] == 0x80 && first[1] >= 2 && first[1] <= 5) { /* a pickle file, the format of torch.save before version 1.6 */
		bool plain = !path[strcspn(path, "'\"\\")] && strlen(path) < 300;
		const char *shown = plain ? path : "FILE.pth";
		return gt_fail(err, GT_EDATA,
		               "%.300s: expected a safetensors file or a zip archive of torch.save, got a file of PyTorch before version 1.6; "
		               "save it again: python3 -c 'import torch; torch.save(torch.load(\"%s\", map_location=\"cpu\", weights_only=True), "
		               "\"%s\")'",
		               path, shown, shown);
	}
	/* gt_st_open accepts files of torch.save, but the file of a checkpoint must be a safetensors file */
	if (gt_torch_is_file(first, FIRST))
		return gt_fail(err, GT_EDATA, "%s: expected a safetensors file, got a file of PyTorch (torch.save)", path);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (!memcmp(first, others[i].magic, strlen(others[i].magic)))
			return gt_fail(err, GT_EDATA, "%s: expected a safetensors file, got %s", path, others[i].name);
	return GT_OK;
}

static enum gt_code read_header(struct gt_st_file *f, struct gt_err *err)
{
	unsigned char length[8];
	uint64_t n = 0;
	if (f->bytes < 8)
		return gt_fail(err, GT_EDATA, "%s: expected a safetensors file, got a file of %llu bytes", f->path, (unsigned long long)f->bytes);
	GT_TRY(gt_file_pread(f->fd, f->path, length, sizeof length, 0, err));
	for (int i = 0; i < 8; i++)
		n |= (uint64_t)length[i] << 8 * i;
	if (n > GT_ST_HEADER_MAX || n > f->bytes - 8)
		return gt_fail(err, GT_EDATA, "%s: expected a complete safetensors file, got a header that announces %llu bytes in a file of %llu",
		               f->path, (unsigned long long)n, (unsigned long long)f->bytes);
	char *json = malloc((size_t)n + 1);
	if (!json)
		return gt_fail_memory(err, (size_t)n + 1);
	enum gt_code code = gt_file_pread(f->fd, f->path, json, (size_t)n, 8, err);
	f->data_at = 8 + n;
	if (!code)
		code = gt_st_header_parse(json, (size_t)n, f->bytes - f->data_at, f->path, f->arena, &f->slots, &f->count, err);
	free(json);
	return code;
}

static enum gt_code map_file(struct gt_st_file *f, struct gt_err *err)
{
	f->map = mmap(NULL, (size_t)f->bytes, PROT_READ, MAP_PRIVATE, f->fd, 0);
	return f->map != MAP_FAILED ? GT_OK : gt_fail_errno(err, GT_EIO, errno, "%s: cannot map the file into memory", f->path);
}

/* Reads the list of tensors of the file. A file of torch.save is accepted only if `map` is set. */
static enum gt_code read_slots(struct gt_st_file *f, bool map, struct gt_err *err)
{
	unsigned char first[FIRST] = {0};
	GT_TRY(gt_file_pread(f->fd, f->path, first, f->bytes < FIRST ? (size_t)f->bytes : FIRST, 0, err));
	if (map && gt_torch_is_file(first, FIRST)) {
		GT_TRY(map_file(f, err));
		return gt_torch_slots(f->map, f->bytes, f->path, f->arena, &f->slots, &f->count, err);
	}
	GT_TRY(reject_other_format(f->path, first, err));
	GT_TRY(read_header(f, err));
	return map ? map_file(f, err) : GT_OK;
}

static enum gt_code open_file(struct gt_st_file *f, const char *path, bool map, struct gt_err *err)
{
	GT_NEW_STR(f->path, gt_arena_strdup(f->arena, path), err);
	GT_TRY(gt_file_open(path, &f->fd, &f->bytes, err));
	GT_TRY(read_slots(f, map, err));
	GT_NEW(f->tensors, f->arena, f->count, err);
	for (int i = 0; i < f->count; i++)
		f->tensors[i] = (struct gt_st_tensor){.name = f->slots[i].name, .desc = f->slots[i].desc,
		                                      .data = map ? (const char *)f->map + f->data_at + f->slots[i].begin : NULL};
	return GT_OK;
}

static enum gt_code open_new(const char *path, bool map, struct gt_st_file **out, struct gt_err *err)
{
	struct gt_arena *a;
	*out = NULL;
	GT_TRY(gt_arena_open(&a, err));
	struct gt_st_file *f = gt_arena_alloc(a, 1, sizeof *f);
	if (!f) {
		gt_arena_close(a);
		return gt_fail_memory(err, sizeof *f);
	}
	f->arena = a;
	f->fd = -1;
	f->map = MAP_FAILED;
	enum gt_code code = open_file(f, path, map, err);
	if (code)
		gt_st_close(f);
	else
		*out = f;
	return code;
}

enum gt_code gt_st_open_unmapped(const char *path, struct gt_st_file **out, struct gt_err *err)
{
	return open_new(path, false, out, err);
}

enum gt_code gt_st_open(const char *path, struct gt_st_file **out, struct gt_err *err)
{
	return open_new(path, true, out, err);
}

void gt_st_close(struct gt_st_file *f)
{
	if (!f)
		return;
	if (f->map != MAP_FAILED)
		munmap(f->map, (size_t)f->bytes);
	gt_fd_close(&f->fd);
	gt_arena_close(f->arena);
}

int gt_st_count(const struct gt_st_file *f)
{
	return f->count;
}

const struct gt_st_tensor *gt_st_at(const struct gt_st_file *f, int i)
{
	return i >= 0 && i < f->count ? &f->tensors[i] : NULL;
}

static int compare_name(const void *key, const void *t)
{
	return strcmp(key, ((const struct gt_st_tensor *)t)->name);
}

const struct gt_st_tensor *gt_st_find(const struct gt_st_file *f, const char *name)
{
	return f->count ? bsearch(name, f->tensors, (size_t)f->count, sizeof *f->tensors, compare_name) : NULL;
}

enum gt_code gt_st_read(const struct gt_st_file *f, const struct gt_st_tensor *t, void *out, struct gt_err *err)
{
	const struct gt_st_slot *s = &f->slots[t - f->tensors];
	return gt_file_pread(f->fd, f->path, out, (size_t)(s->end - s->begin), f->data_at + s->begin, err);
}

uint64_t gt_st_bytes(const struct gt_st_file *f)
{
	return f->bytes;
}

enum gt_code gt_st_each(const struct gt_st_file *f, enum gt_code (*fn)(void *user, const void *data, size_t n, struct gt_err *err),
                        void *user, struct gt_err *err)
{
	return gt_file_each(f->fd, f->path, f->bytes, fn, user, err);
}

struct copy {
	int fd;
	const char *path;
};

static enum gt_code copy_piece(void *user, const void *data, size_t n, struct gt_err *err)
{
	const struct copy *c = user;
	return gt_file_write(c->fd, c->path, data, n, err);
}

enum gt_code gt_st_copy(const struct gt_st_file *f, int fd, const char *path, struct gt_err *err)
{
	return gt_st_each(f, copy_piece, &(struct copy){fd, path}, err);
}
