#include "numpy_file.h"
#include "archive_plugin.h"
#include "base/arena.h"
#include "gzfile.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)
#define FREE_SIZE (64 * MIB) /* size to which every .npz file may expand; the same limit as for gzip files (gzfile.c) */
#define MAX_RATIO 64         /* maximum expansion factor of .npz files that expand to more than FREE_SIZE */
enum { HEAD = (1 << 16) + 16 }; /* maximum number of bytes before the elements: the magic bytes, the version and the header */

static bool ends_with(const char *path, const char *end)
{
	size_t n = strlen(path), m = strlen(end);
	return n > m && !strcasecmp(path + n - m, end);
}

bool gt_numpy_is_file(const char *path)
{
	struct stat st;
	char b[6] = "";
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	if (ends_with(path, ".npz"))
		return true;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool found = fd >= 0 && read(fd, b, sizeof b) == (ssize_t)sizeof b && !memcmp(b, "\x93NUMPY", sizeof b);
	if (fd >= 0)
		close(fd);
	return found;
}

/* ---- .npy ----------------------------------------------------------------------------------------------------------------------- */
static enum gt_code list_npy(const char *path, struct gt_numpy *out, struct gt_err *err)
{
	struct gt_gzfile f;
	size_t got;
	uint8_t *head = malloc(HEAD);
	struct gt_numpy_array *a = &out->array[0];
	if (!head)
		return gt_fail_memory(err, HEAD);
	enum gt_code code = gt_gzfile_open(path, UINT64_MAX, &f, err);
	if (code == GT_OK)
		code = gt_gzfile_head(&f, head, HEAD, &got, err);
	if (code == GT_OK)
		code = gt_numpy_parse(head, got, f.shown, a, err);
	if (code == GT_OK)
		code = gt_gzfile_expect(&f, a->header + a->count * (uint64_t)a->item, err);
	gt_gzfile_close(&f);
	free(head);
	GT_TRY(code);
	out->n = 1;
	GT_NEW_STR(a->name, strdup(""), err);
	return GT_OK;
}

static enum gt_code load_npy(const char *path, struct gt_numpy_array *a, uint64_t most, struct gt_err *err)
{
	struct gt_gzfile f;
	uint64_t bytes = a->header + a->count * (uint64_t)a->item;
	GT_TRY(gt_gzfile_open(path, most, &f, err));
	a->memory = gt_big_alloc(bytes);
	enum gt_code code = a->memory ? gt_gzfile_read(&f, a->memory, bytes, err) : gt_fail_memory(err, bytes);
	a->data = (uint8_t *)a->memory + a->header;
	gt_gzfile_close(&f);
	return code;
}

/* ---- .npz ----------------------------------------------------------------------------------------------------------------------- */
struct npz {
	const char *path;
	const struct gt_archive_plugin *plugin;
	void *archive;
	char where[600]; /* path of the file and name of the current member, for messages */
};

static enum gt_code open_npz(const char *path, struct npz *z, struct gt_err *err)
{
	*z = (struct npz){.path = path};
	GT_TRY(gt_archive_plugin(&z->plugin, err));
	return z->plugin->open(path, &z->archive, err);
}

static void close_npz(struct npz *z)
{
	if (z->archive)
		z->plugin->close(z->archive);
}

/* Moves to the next array; m->path is NULL at the end. *len: length of its name. */
static enum gt_code next_array(struct npz *z, struct gt_archive_member *m, size_t *len, struct gt_err *err)
{
	do {
		GT_TRY(z->plugin->next(z->archive, m, err));
		if (!m->path)
			return GT_OK;
	} while (m->type != GT_ARCHIVE_FILE || !ends_with(m->path, ".npy"));
	*len = strlen(m->path) - 4;
	snprintf(z->where, sizeof z->where, "%.300s: %.*s", z->path, (int)(*len > 200 ? 200 : *len), m->path);
	return m->encrypted ? gt_fail(err, GT_EDATA, "%s is encrypted", z->where) : GT_OK;
}

/* Reads n bytes of the current member; *got is less at its end. */
static enum gt_code read_exactly(struct npz *z, uint8_t *to, uint64_t n, uint64_t *got, struct gt_err *err)
{
	*got = 0;
	for (size_t some = 1; *got < n && some; *got += some)
		GT_TRY(z->plugin->read(z->archive, to + *got, (size_t)(n - *got), &some, err));
	return GT_OK;
}

static enum gt_code list_one(struct npz *z, const struct gt_archive_member *m, size_t len, uint8_t *head, struct gt_numpy *out,
                             struct gt_err *err)
{
	uint64_t got;
	if (out->n == GT_NUMPY_ARRAYS)
		return gt_fail(err, GT_EDATA, "%s: expected at most %d arrays, got more", z->path, GT_NUMPY_ARRAYS);
	char *name = strndup(m->path, len);
	if (!name)
		return gt_fail_memory(err, len);
	enum gt_code code = gt_numpy_find(out, name) ? gt_fail(err, GT_EDATA, "%s: expected arrays of different names, got this name twice",
	                                                       z->where) : GT_OK;
	if (code == GT_OK)
		code = read_exactly(z, head, HEAD, &got, err);
	if (code == GT_OK)
		code = gt_numpy_parse(head, (size_t)got, z->where, &out->array[out->n], err);
	if (code != GT_OK) {
		free(name);
		return code;
	}
	out->array[out->n++].name = name;
	return GT_OK;
}

static enum gt_code list_npz(struct npz *z, struct gt_numpy *out, struct gt_err *err)
{
	struct gt_archive_member m;
	size_t len = 0;
	uint8_t *head = malloc(HEAD);
	enum gt_code code = head ? next_array(z, &m, &len, err) : gt_fail_memory(err, HEAD);
	while (code == GT_OK && m.path) {
		code = list_one(z, &m, len, head, out, err);
		if (code == GT_OK)
			code = next_array(z, &m, &len, err);
	}
	free(head);
	if (code == GT_OK && !out->n)
		code = gt_fail(err, GT_EDATA, "%s: expected arrays of NumPy in the zip file, got none", z->path);
	return code;
}

/* Checks that an array may expand to `bytes` bytes. */
static enum gt_code check_size(const struct npz *z, uint64_t bytes, uint64_t most, struct gt_err *err)
{
	struct stat st;
	uint64_t limit = stat(z->path, &st) || (uint64_t)st.st_size * MAX_RATIO < FREE_SIZE ? FREE_SIZE : (uint64_t)st.st_size * MAX_RATIO;
	limit = limit < most ? limit : most;
	if (bytes <= limit)
		return GT_OK;
	return gt_fail(err, GT_EDATA, "%s: the array expands to %llu bytes, more than the %llu allowed; it may be a decompression bomb; if "
	               "not, write the array to a .npy file", z->where, (unsigned long long)bytes, (unsigned long long)limit);
}

static enum gt_code load_member(struct npz *z, struct gt_numpy_array *a, uint64_t most, struct gt_err *err)
{
	uint64_t bytes = a->header + a->count * (uint64_t)a->item, got, more;
	uint8_t extra;
	GT_TRY(check_size(z, bytes, most, err));
	if (!(a->memory = gt_big_alloc(bytes)))
		return gt_fail_memory(err, bytes);
	GT_TRY(read_exactly(z, a->memory, bytes, &got, err));
	GT_TRY(read_exactly(z, &extra, 1, &more, err)); /* reading beyond the last byte also verifies the checksum of the member */
	a->data = (uint8_t *)a->memory + a->header;
	return got == bytes && !more ? GT_OK
	                             : gt_fail(err, GT_EDATA, "%s: expected %llu bytes, as its header declares, got %s", z->where,
	                                       (unsigned long long)bytes, more ? "more" : "less");
}

static enum gt_code load_npz(struct npz *z, struct gt_numpy_array *a, uint64_t most, struct gt_err *err)
{
	struct gt_archive_member m;
	size_t len = 0;
	do {
		GT_TRY(next_array(z, &m, &len, err));
		if (!m.path)
			return gt_fail(err, GT_EDATA, "%s: the file changed while it was read", z->path);
	} while (strlen(a->name) != len || strncmp(a->name, m.path, len));
	return load_member(z, a, most, err);
}

/* ---- both ----------------------------------------------------------------------------------------------------------------------- */
enum gt_code gt_numpy_list(const char *path, struct gt_numpy *out, struct gt_err *err)
{
	struct npz z;
	memset(out, 0, sizeof *out);
	enum gt_code code = GT_OK;
	if (ends_with(path, ".npz")) {
		code = open_npz(path, &z, err);
		if (code == GT_OK)
			code = list_npz(&z, out, err);
		close_npz(&z);
	} else {
		code = list_npy(path, out, err);
	}
	if (code != GT_OK)
		gt_numpy_free(out);
	return code;
}

enum gt_code gt_numpy_load(const char *path, struct gt_numpy_array *a, uint64_t most, struct gt_err *err)
{
	struct npz z;
	if (!ends_with(path, ".npz"))
		return load_npy(path, a, most, err);
	enum gt_code code = open_npz(path, &z, err);
	if (code == GT_OK)
		code = load_npz(&z, a, most, err);
	close_npz(&z);
	return code;
}

void gt_numpy_free(struct gt_numpy *f)
{
	for (int i = 0; i < GT_NUMPY_ARRAYS && (i < f->n || f->array[i].name); i++) {
		free(f->array[i].name);
		free(f->array[i].memory);
	}
	memset(f, 0, sizeof *f);
}

struct gt_numpy_array *gt_numpy_find(struct gt_numpy *f, const char *name)
{
	for (int i = 0; i < f->n; i++)
		if (!strcmp(f->array[i].name, name))
			return &f->array[i];
	return NULL;
}

int64_t gt_numpy_integer(const struct gt_numpy_array *a, uint64_t i)
{
	uint64_t v = 0;
	memcpy(&v, a->data + i * (uint64_t)a->item, (size_t)a->item); /* elements and machine are both little endian */
	int shift = a->kind == 'i' ? 64 - 8 * a->item : 0;
	return (int64_t)(v << shift) >> shift;
}

double gt_numpy_real(const struct gt_numpy_array *a, uint64_t i)
{
	float f;
	double d;
	if (a->item == 8)
		return memcpy(&d, a->data + i * sizeof d, sizeof d), d;
	return memcpy(&f, a->data + i * sizeof f, sizeof f), (double)f;
}

const char *gt_numpy_text(const struct gt_numpy_array *a, char *buf, size_t size)
{
	const char *what = a->kind == 'f' ? "float" : a->kind == 'i' ? "int" : a->kind == 'u' ? "uint" : a->kind == 'b' ? "bool" : "str";
	size_t n = (size_t)snprintf(buf, size, "%s", what);
	if (strchr("fiu", a->kind) && n < size)
		n += (size_t)snprintf(buf + n, size - n, "%d", 8 * a->item);
	for (int i = 0; i < a->rank && n < size; i++)
		n += (size_t)snprintf(buf + n, size - n, "%s%llu", i ? ", " : " [", (unsigned long long)a->dim[i]);
	if (n < size)
		snprintf(buf + n, size - n, "%s", a->rank ? "]" : "");
	return buf;
}
