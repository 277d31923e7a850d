/* The index of image contents (datasets/content_index.h): a file in a recorded state is not read, a file in any other state is, and no
 * damaged or impossible index is used. Whole runs with an index: tests/cli/test_content_index.sh. */
#include "base/fileio.h"
#include "content_index.h"
#include "file_system.h"
#include "data_files.h"
#include "index_file.h"
#include "sample_mark.h"
#include "source_contents.h"
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 300, WRONG = 4711 };

static struct gt_source *source;
static struct gt_sample_mark mark[FILES];
static char note[700];
static struct gt_err e;

static void put_file(int i, const char *text)
{
	char name[32];
	snprintf(name, sizeof name, "data/%d.png", i);
	put(name, text, strlen(text), false);
}

/* Overwrites a file in place. */
static void overwrite(const char *name, const char *text)
{
	int fd = openat(source->fd, name, O_WRONLY);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static uint64_t state_of(int i)
{
	struct stat st;
	CHECK(!fstatat(source->fd, gt_source_path(source, i), &st, 0));
	return gt_content_state(&st);
}

/* Makes a folder of files whose last change was long enough ago. Returns false if its file system does not keep their states. */
static bool make_folder(void)
{
	char text[32];
	if (!source) {
		setenv("XDG_CACHE_HOME", test_tmpdir(), 1);
		CHECK(!mkdir(at("data"), 0700));
		CHECK_OK(gt_source_open(at("data"), open(at("data"), O_RDONLY), false, &source, &e), e);
		for (int i = 0; i < FILES; i++) {
			snprintf(text, sizeof text, "content %d", i);
			put_file(i, text);
			snprintf(text, sizeof text, "%d.png", i);
			CHECK_OK(gt_source_add(source, text, 0, 0, &e), e);
		}
		sleep(GT_CONTENT_SETTLED_S + 1);
		usleep(100000);
	}
	if (gt_fs_keeps_states(source->fd))
		return true;
	test_skip("the file system of the temporary folder does not keep the states of files");
	return false;
}

/* Hashes all files, and returns how many have the wrong content that write_wrong has recorded. */
static int hash_files(bool keep)
{
	int wrong = 0;
	for (int i = 0; i < FILES; i++)
		mark[i].content = 0;
	gt_source_contents(source, mark, FILES, keep, note, sizeof note);
	for (int i = 0; i < FILES; i++) {
		CHECK(mark[i].content != 0);
		wrong += mark[i].content == WRONG;
	}
	return wrong;
}

/* Records a wrong content for the current states of files 0 … n - 1, so that a file that is not read can be told from one that is. */
static void write_wrong(int n)
{
	struct gt_content_entry entry[FILES] = {0};
	struct gt_content_index *x;
	for (int i = 0; i < n; i++)
		entry[i] = (struct gt_content_entry){state_of(i), WRONG};
	gt_content_index_open(source->root, &x, note, sizeof note);
	CHECK(x != NULL);
	gt_content_index_save(x, entry, n, note, sizeof note);
	CHECK_MSG(!*note, "%s", note);
	gt_content_index_close(x);
}

static void index_path(char *buf, size_t size)
{
	glob_t g;
	*buf = 0;
	CHECK(!glob(at("gtrain/index/*.index"), 0, NULL, &g) && g.gl_pathc == 1);
	snprintf(buf, size, "%s", g.gl_pathc ? g.gl_pathv[0] : "");
	globfree(&g);
}

static void remove_index(void)
{
	char path[1024];
	index_path(path, sizeof path);
	CHECK(!unlink(path));
}

TEST(recorded_files_are_not_read)
{
	uint64_t right[FILES];
	if (!make_folder())
		return;
	CHECK(hash_files(false) == 0 && access(at("gtrain"), F_OK));
	for (int i = 0; i < FILES; i++)
		right[i] = mark[i].content;
	for (int again = 0; again < 2; again++) {
		CHECK(hash_files(true) == 0 && !*note);
		for (int i = 0; i < FILES; i++)
			CHECK(mark[i].content == right[i]);
	}
	write_wrong(FILES);
	CHECK(hash_files(true) == FILES);
	CHECK(hash_files(false) == 0);
	remove_index();
}

TEST(changed_files_are_read)
{
	struct stat st;
	if (!make_folder())
		return;
	write_wrong(FILES);
	overwrite("0.png", "content X"); /* as many bytes */
	CHECK(!fstatat(source->fd, "1.png", &st, 0));
	overwrite("1.png", "content Y");
	CHECK(!utimensat(source->fd, "1.png", (struct timespec[]){st.st_atim, st.st_mtim}, 0)); /* with its earlier mtime */
	put_file(FILES, "content 2");
	CHECK(!utimensat(source->fd, "300.png", (struct timespec[]){st.st_atim, st.st_mtim}, 0));
	CHECK(!renameat(source->fd, "300.png", source->fd, "2.png")); /* another file of this name */
	CHECK(!fstatat(source->fd, "3.png", &st, 0));
	CHECK(!utimensat(source->fd, "3.png", (struct timespec[]){st.st_atim, {1, 0}}, 0)); /* only another mtime */
	CHECK(hash_files(true) == FILES - 4);
	for (int i = 0; i < FILES; i++)
		CHECK((mark[i].content != WRONG) == (i < 4));
	remove_index();
}

TEST(unsettled_files_are_not_recorded)
{
	if (!make_folder())
		return;
	put_file(5, "content U");
	CHECK(hash_files(true) == 0);
	uint64_t right = mark[5].content;
	struct gt_content_index *x;
	gt_content_index_open(source->root, &x, note, sizeof note);
	CHECK(gt_content_index_find(x, state_of(5)) == 0);
	CHECK(gt_content_index_find(x, state_of(6)) == mark[6].content);
	gt_content_index_close(x);
	sleep(GT_CONTENT_SETTLED_S + 1);
	CHECK(hash_files(true) == 0 && mark[5].content == right);
	gt_content_index_open(source->root, &x, note, sizeof note);
	CHECK(gt_content_index_find(x, state_of(5)) == right);
	gt_content_index_close(x);
	remove_index();
}

TEST(entries_are_merged)
{
	struct gt_content_index *x;
	if (!make_folder())
		return;
	for (int round = 0; round < 7; round++) { /* entries of files round, round + 7, … */
		struct gt_content_entry entry[FILES] = {0};
		for (int i = round; i < FILES; i += 7)
			entry[i] = (struct gt_content_entry){gt_mark_hash(&i, sizeof i, 0) << 16, (uint64_t)i + 1};
		gt_content_index_open(source->root, &x, note, sizeof note);
		gt_content_index_save(x, entry, FILES, note, sizeof note);
		gt_content_index_close(x);
		gt_content_index_open(source->root, &x, note, sizeof note);
		for (int i = 0; i < FILES; i++)
			CHECK(gt_content_index_find(x, gt_mark_hash(&i, sizeof i, 0) << 16) == (i % 7 <= round ? (uint64_t)i + 1 : 0));
		gt_content_index_close(x);
	}
	remove_index();
}

TEST(another_process_has_written)
{
	struct gt_content_entry entry = {1, 2};
	struct gt_content_index *x;
	if (!make_folder())
		return;
	gt_content_index_open(source->root, &x, note, sizeof note);
	write_wrong(FILES);
	gt_content_index_save(x, &entry, 1, note, sizeof note);
	gt_content_index_close(x);
	CHECK(!*note && hash_files(true) == FILES); /* its index stays */
	remove_index();
}

/* Replaces the sections of the index by n entries and `settings`, or by its own settings if that is NULL. */
static void forge(const struct gt_content_entry *entry, uint64_t bytes, const char *settings)
{
	char path[1024];
	struct gt_index *ix;
	struct gt_index_writer w;
	uint64_t size;
	index_path(path, sizeof path);
	gt_index_open(path, &ix, note, sizeof note);
	const char *own = ix ? gt_index_section(ix, 1, &size) : NULL;
	CHECK(own != NULL);
	CHECK_OK(gt_index_create(path, &w, &e), e);
	CHECK_OK(gt_index_add(&w, 1, settings ? settings : own, settings ? strlen(settings) : size, &e), e);
	CHECK_OK(gt_index_add(&w, 2, entry, bytes, &e), e);
	CHECK_OK(gt_index_commit(&w, path, &e), e);
	gt_index_close(ix);
}

TEST(impossible_values)
{
	const struct gt_content_entry good[3] = {{5, 1}, {6, 2}, {UINT64_MAX, 3}}, twice[2] = {{5, 1}, {5, 2}}, falls[2] = {{6, 1}, {5, 2}},
	                              none[1] = {{5, 0}}, large[1] = {{5, (uint64_t)1 << 48}};
	const struct {
		const struct gt_content_entry *entry;
		uint64_t bytes;
		const char *settings, *note;
	} bad[] = {{twice, sizeof twice, NULL, "not possible"}, {falls, sizeof falls, NULL, "not possible"},
	           {none, sizeof none, NULL, "not possible"},   {large, sizeof large, NULL, "not possible"},
	           {good, sizeof good - 1, NULL, "not possible"}, {good, 0, NULL, "not possible"},
	           {good, sizeof good, "contents of images, version 0\n", "another folder"}};
	if (!make_folder())
		return;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		write_wrong(FILES);
		forge(bad[i].entry, bad[i].bytes, bad[i].settings);
		CHECK(hash_files(true) == 0);
		CHECK_MSG(strstr(note, "could not be used") && strstr(note, bad[i].note), "%zu: %s", i, note);
		CHECK(hash_files(true) == 0 && !*note); /* it has been made again */
		remove_index();
	}
	write_wrong(1);
	forge(good, sizeof good, NULL);
	struct gt_content_index *x;
	gt_content_index_open(source->root, &x, note, sizeof note);
	CHECK(!*note && gt_content_index_find(x, 5) == 1 && gt_content_index_find(x, UINT64_MAX) == 3 && !gt_content_index_find(x, 7));
	gt_content_index_close(x);
	remove_index();
}

/* Another user may lock the directory, which is readable, for ever: this does not keep this user from writing an index. */
TEST(directory_locked_by_others)
{
	if (!make_folder())
		return;
	CHECK(!gt_dir_make(at("gtrain/index"), NULL, NULL));
	int fd = open(at("gtrain/index"), O_RDONLY | O_DIRECTORY);
	CHECK(fd >= 0 && !flock(fd, LOCK_EX | LOCK_NB));
	write_wrong(FILES);
	CHECK(hash_files(true) == FILES);
	close(fd);
	remove_index();
}

TEST(flipped_bytes)
{
	char path[1024];
	if (!make_folder())
		return;
	write_wrong(FILES);
	index_path(path, sizeof path);
	int fd = open(path, O_RDWR);
	for (off_t offset = 4096; offset < 8192 + FILES * 16; offset += offset == 4096 ? 4096 : 977) {
		uint8_t byte = 0, other;
		CHECK(pread(fd, &byte, 1, offset) == 1);
		other = byte ^ 4;
		CHECK(pwrite(fd, &other, 1, offset) == 1);
		struct gt_content_index *x;
		gt_content_index_open(source->root, &x, note, sizeof note);
		CHECK_MSG(strstr(note, "it is damaged"), "offset %lld: %s", (long long)offset, note);
		CHECK(!gt_content_index_find(x, state_of(9)));
		gt_content_index_close(x);
		CHECK(pwrite(fd, &byte, 1, offset) == 1);
	}
	close(fd);
	CHECK(hash_files(true) == FILES);
	remove_index();
	gt_source_close(source);
	source = NULL;
}

RUN_TESTS()
