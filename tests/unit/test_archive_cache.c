/* Packed archives: their names, the .tar that is written for them (tar_writer.h), which tar_reader.h reads back, and the file in the
 * cache. */
#include "archive_cache.h"
#include "base/fileio.h"
#include "folder.h"
#include "tar_reader.h"
#include "tar_writer.h"
#include "unit/data_files.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct gt_err e;

TEST(names)
{
	CHECK(gt_archive_has_name("a.zip") && gt_archive_has_name("x/A.ZIP") && gt_archive_has_name("a.tar.gz"));
	CHECK(gt_archive_has_name("a.tgz"));
	CHECK(gt_archive_has_name("a.tar.zst") && gt_archive_has_name("a.tar.xz") && gt_archive_has_name("a.b.tar.bz2"));
	CHECK(!gt_archive_has_name(".zip") && !gt_archive_has_name("a.gz") && !gt_archive_has_name("a.tar") && !gt_archive_has_name("zip"));
	CHECK(!gt_archive_has_name("a.csv.gz") && !gt_archive_has_name("a.zip/b") && !gt_archive_has_name(""));
	CHECK(!gt_archive_is_packed(at("none.zip")));
	mkdir(at("folder.zip"), 0755);
	CHECK(!gt_archive_is_packed(at("folder.zip")) && gt_folder_is_source(at("folder.zip")));
}

struct file {
	int fd;
};

static enum gt_code read_at(void *user, uint64_t offset, void *buf, size_t n, size_t *got, struct gt_err *err)
{
	const struct file *f = user;
	ssize_t r = pread(f->fd, buf, n, (off_t)offset);
	(void)err;
	*got = r < 0 ? 0 : (size_t)r;
	return GT_OK;
}

/* Writes a member of n bytes in pieces. */
static void write_one(struct gt_tar_writer *w, const char *path, const char *data, size_t n, size_t piece)
{
	CHECK_MSG(gt_tar_begin(w, path, '0', &e) == GT_OK, "%s", e.msg);
	for (size_t i = 0; i < n; i += piece)
		CHECK(gt_tar_append(w, data + i, n - i < piece ? n - i : piece, &e) == GT_OK);
	CHECK(gt_tar_end(w, &e) == GT_OK);
}

static char *path_of(size_t n)
{
	char *path = malloc(n + 1);
	for (size_t i = 0; i < n; i++)
		path[i] = i % 50 == 49 ? '/' : (char)('a' + i % 26);
	path[n] = 0;
	return path;
}

TEST(written_members_are_read)
{
	static const size_t lengths[] = {1, 99, 100, 101, 255, 511, 512, 4000}, sizes[] = {0, 1, 511, 512, 513, 5000, 1024, 7};
	char path[1024], data[5000], back[5000];
	struct gt_tar_member m;
	snprintf(path, sizeof path, "%s", at("w.tar"));
	struct gt_tar_writer w = {.name = path};
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (char)(i * 7);
	CHECK(gt_file_create(path, 0600, &w.fd, &e) == GT_OK);
	for (size_t i = 0; i < 8; i++) {
		char *name = path_of(lengths[i]);
		write_one(&w, name, data, sizes[i], 300 + i);
		free(name);
	}
	CHECK(gt_tar_finish(&w, &e) == GT_OK);
	close(w.fd);
	struct file f = {open(path, O_RDONLY)};
	struct gt_tar_reader *r = calloc(1, sizeof *r);
	*r = (struct gt_tar_reader){.name = path, .bytes = w.bytes, .read = read_at, .user = &f};
	CHECK(lseek(f.fd, 0, SEEK_END) == (off_t)w.bytes);
	for (size_t i = 0; i < 8; i++) {
		char *name = path_of(lengths[i]);
		CHECK_MSG(gt_tar_next(r, &m, &e) == GT_OK && m.path && !strcmp(m.path, name) && m.size == sizes[i] && gt_tar_is_file(&m),
		          "member %zu: %s", i, e.msg);
		CHECK(pread(f.fd, back, m.size, (off_t)m.offset) == (ssize_t)m.size && !memcmp(back, data, m.size));
		free(name);
	}
	CHECK(gt_tar_next(r, &m, &e) == GT_OK && !m.path);
	free(r);
	close(f.fd);
	unlink(path);
}

TEST(paths_that_leave)
{
	CHECK(gt_tar_path_leaves("/a") && gt_tar_path_leaves("..") && gt_tar_path_leaves("../a") && gt_tar_path_leaves("a/../b"));
	CHECK(gt_tar_path_leaves("a/..") && !gt_tar_path_leaves("a/..b/c") && !gt_tar_path_leaves("..a") && !gt_tar_path_leaves("a.."));
	CHECK(!gt_tar_path_leaves("a/b.txt") && !gt_tar_path_leaves(""));
}

/* A stored zip file with one member. The CRC is computed by zlib. */
static size_t zip_of(uint8_t *b, const char *name, const char *text)
{
	size_t n = strlen(text), k = strlen(name), at_dir;
	uint32_t crc = (uint32_t)crc32(0, (const uint8_t *)text, (unsigned)n);
	uint8_t shared[22] = {20, 0, 0, 0, 0, 0, 0, 0, 33, 0, (uint8_t)crc, (uint8_t)(crc >> 8), (uint8_t)(crc >> 16), (uint8_t)(crc >> 24),
	                      (uint8_t)n, 0, 0, 0, (uint8_t)n, 0, 0, 0};
	uint8_t *p = b;
	p = mempcpy(p, "PK\3\4", 4);
	p = mempcpy(p, shared, 22);
	p = mempcpy(p, (uint8_t[]){(uint8_t)k, 0, 0, 0}, 4);
	p = mempcpy(p, name, k);
	p = mempcpy(p, text, n);
	at_dir = (size_t)(p - b);
	p = mempcpy(p, "PK\1\2\24\3", 6);
	p = mempcpy(p, shared, 22);
	p = mempcpy(p, (uint8_t[]){(uint8_t)k, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xa4, 0x81, 0, 0, 0, 0}, 18);
	p = mempcpy(p, name, k);
	size_t dir = (size_t)(p - b) - at_dir;
	p = mempcpy(p, "PK\5\6\0\0\0\0\1\0\1\0", 12);
	p = mempcpy(p, (uint8_t[]){(uint8_t)dir, 0, 0, 0, (uint8_t)at_dir, 0, 0, 0, 0, 0}, 10);
	return (size_t)(p - b);
}

TEST(a_source_of_a_zip_file)
{
	uint8_t b[500];
	char path[1024];
	struct gt_source *s;
	struct gt_bytes_buf buf = {0};
	setenv("XDG_CACHE_HOME", at("cache"), 1);
	put("t.zip", b, zip_of(b, "pos/x.txt", "a text"), false);
	snprintf(path, sizeof path, "%s", at("t.zip"));
	for (int i = 0; i < 2; i++) { /* the second time, the cache has it */
		CHECK_MSG(gt_folder_open(path, &s, &e) == GT_OK, "%s", e.msg);
		CHECK_MSG(gt_folder_list(s, &gt_folder_texts, &e) == GT_OK && s->n == 1 && !strcmp(gt_source_path(s, 0), "pos/x.txt"), "%s", e.msg);
		CHECK(gt_source_read(s, 0, &buf, &e) == GT_OK && buf.size == 6 && !memcmp(buf.data, "a text", 6));
		gt_source_close(s);
	}
	put("t.zip", b, zip_of(b, "pos/x.txt", "a text") - 1, false); /* another file: another state */
	CHECK(gt_folder_open(path, &s, &e) == GT_EDATA && strstr(e.msg, "t.zip: the archive is damaged or truncated"));
	put("t.zip", b, zip_of(b, "pos/y.txt", "other"), false);
	CHECK(gt_folder_open(path, &s, &e) == GT_OK && gt_folder_list(s, &gt_folder_texts, &e) == GT_OK);
	CHECK(s->n == 1 && !strcmp(gt_source_path(s, 0), "pos/y.txt"));
	gt_source_close(s);
	free(buf.data);
}

RUN_TESTS()
