/* Folders of images and tar archives of them: which files belong to which split and class, and what is rejected. */
#include "base/arena.h"
#include "dataset.h"
#include "source.h"
#include "test.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define dir test_tmpdir()

/* Writes a file below the test's folder, and the folders that it needs. */
static void put(const char *path, const char *content)
{
	char all[600];
	snprintf(all, sizeof all, "%s/%s", dir, path);
	for (char *p = all + strlen(dir) + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(all, 0755);
		*p = '/';
	}
	FILE *f = fopen(all, "w");
	CHECK(f != NULL);
	if (f) {
		fputs(content, f);
		fclose(f);
	}
}

static void run_in(const char *command)
{
	char all[900];
	snprintf(all, sizeof all, "cd %s && %s", dir, command);
	CHECK_MSG(system(all) == 0, "%s", all);
}

static struct gt_dataset_spec spec_of(const char *name, char *root, size_t size)
{
	snprintf(root, size, "%s/%s", dir, name);
	return (struct gt_dataset_spec){.root = root, .shape = {3, 8, 8}};
}

static enum gt_code read_split(const char *name, enum gt_split split, struct gt_dataset *d, struct gt_err *e)
{
	char root[600];
	struct gt_dataset_spec s = spec_of(name, root, sizeof root);
	return gt_dataset_read(&s, split, d, e);
}

/* Checks the files of a split, as "label:path label:path …". */
static void expect(const char *name, enum gt_split split, const char *want)
{
	struct gt_dataset d;
	struct gt_err e = {0};
	char got[2000] = "";
	CHECK_OK(read_split(name, split, &d, &e), e);
	for (int64_t i = 0; i < d.n; i++) {
		size_t n = strlen(got);
		CHECK(d.labels[i] == d.source->file[i].label);
		snprintf(got + n, sizeof got - n, "%s%d:%s", i ? " " : "", d.labels[i], gt_source_path(d.source, i));
	}
	CHECK_MSG(!strcmp(got, want), "%s: got \"%s\", expected \"%s\"", name, got, want);
	gt_dataset_free(&d);
}

static void refuse(const char *name, enum gt_split split, enum gt_code code, const char *words)
{
	struct gt_dataset d;
	struct gt_err e = {0};
	enum gt_code got = read_split(name, split, &d, &e);
	CHECK_MSG(got == code && strstr(e.msg, words), "%s: code %d, \"%s\", expected %d, \"%s\"", name, got, e.msg, code, words);
	CHECK(!d.source && !d.labels && !d.class_name && !d.n);
}

static void make_tree(void)
{
	put("a/train/rose/2.jpg", "r2");
	put("a/train/rose/1.JPEG", "r1");
	put("a/train/rose/deep/er/3.png", "r3");
	put("a/train/aster/x.webp", "ax");
	put("a/train/aster/notes.txt", "no image");
	put("a/train/aster/._x.jpg", "no image either");
	put("a/val/aster/v.jpg", "v");
	put("a/test/rose/t.jpg", "t");
}

TEST(splits_and_classes)
{
	make_tree();
	expect("a", GT_TRAIN, "0:train/aster/x.webp 1:train/rose/1.JPEG 1:train/rose/2.jpg 1:train/rose/deep/er/3.png");
	expect("a", GT_VALID, "0:val/aster/v.jpg");
	expect("a", GT_TEST, "1:test/rose/t.jpg");
	struct gt_dataset d;
	struct gt_err e = {0};
	CHECK_OK(read_split("a", GT_TRAIN, &d, &e), e);
	CHECK(d.encoded && d.c == 3 && d.h == 8 && d.w == 8 && d.classes == 2 && d.nclass_names == 2);
	CHECK(!strcmp(d.class_name[0], "aster") && !strcmp(d.class_name[1], "rose"));
	struct gt_bytes_buf buf = {0};
	CHECK_OK(gt_source_read(d.source, 2, &buf, &e), e);
	CHECK(buf.size == 2 && !memcmp(buf.data, "r2", 2));
	CHECK_OK(gt_source_read(d.source, 3, &buf, &e), e);
	CHECK(buf.size == 2 && !memcmp(buf.data, "r3", 2));
	run_in("rm a/train/rose/2.jpg");
	CHECK(gt_source_read(d.source, 2, &buf, &e) == GT_EDATA && strstr(e.msg, "a/train/rose/2.jpg"));
	put("a/train/rose/2.jpg", "");
	CHECK(gt_source_read(d.source, 2, &buf, &e) == GT_EDATA && strstr(e.msg, "got 0 bytes"));
	put("a/train/rose/2.jpg", "r2");
	free(buf.data);
	gt_dataset_free(&d);
}

TEST(classes_in_the_root)
{
	put("b/two/1.jpg", "1");
	put("b/one/2.jpg", "2");
	put("b/test/one/3.jpg", "3");
	expect("b", GT_TRAIN, "0:one/2.jpg 1:two/1.jpg");
	expect("b", GT_VALID, "");
	expect("b", GT_TEST, "0:test/one/3.jpg");
}

/* What is no class: folders without images, and those that operating systems and programs add. */
TEST(folders_that_are_no_classes)
{
	static const char *const files[] = {"rose/1.jpg", "rose/.ipynb_checkpoints/1.jpg", "aster/2.jpg", "aster/__MACOSX/2.jpg",
	                                    "empty/notes.txt",
	                                    "__MACOSX/rose/1.jpg", ".cache/3.jpg", "lost+found/4.jpg", "aster/Thumbs.db"};
	for (int t = 0; t < 3; t++) {
		char path[100];
		for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
			snprintf(path, sizeof path, "e%d/%s%s", t, t ? "train/" : "", files[i]);
			put(path, "x");
		}
	}
	put("e2/valid/empty/notes.txt", "x"); /* a class that is empty only in another split is no error */
	put("e2/valid/rose/5.jpg", "x");
	put("e2/test/aster/6.jpg", "x");
	run_in("mkdir e2/test/rose && tar -cf e0.tar -C e0 . && tar -cf e2.tar e2");
	expect("e0", GT_TRAIN, "0:aster/2.jpg 1:rose/1.jpg");
	expect("e0.tar", GT_TRAIN, "0:aster/2.jpg 1:rose/1.jpg");
	expect("e1", GT_TRAIN, "0:train/aster/2.jpg 1:train/rose/1.jpg");
	expect("e2", GT_TRAIN, "0:train/aster/2.jpg 1:train/rose/1.jpg");
	expect("e2", GT_VALID, "1:valid/rose/5.jpg");
	expect("e2", GT_TEST, "0:test/aster/6.jpg");
	expect("e2.tar", GT_VALID, "1:e2/valid/rose/5.jpg");
	struct gt_dataset d;
	struct gt_err e = {0};
	CHECK_OK(read_split("e1", GT_TRAIN, &d, &e), e);
	CHECK_MSG(!strcmp(d.left_out, "empty") && d.classes == 2, "left out: \"%s\"", d.left_out);
	gt_dataset_free(&d);
}

/* Other names of the folders of splits, which classes can also have. */
TEST(other_names_of_splits)
{
	static const struct {
		const char *train, *valid, *test;
	} names[] = {{"training", "validation", "testing"}, {"Train", "Val", "Test"}, {"TRAIN", "dev", "TEST"}, {"train", "eval", "Test"}};
	char path[100], want[200];
	for (int i = 0; i < 4; i++) {
		const char *of[3] = {names[i].train, names[i].valid, names[i].test};
		for (int s = 0; s < 3; s++) {
			for (int k = 0; k < 2; k++) {
				snprintf(path, sizeof path, "n%d/%s/%c/1.jpg", i, of[s], 'a' + k);
				put(path, "x");
			}
		}
		snprintf(path, sizeof path, "tar -cf n%d.tar n%d", i, i);
		run_in(path);
		for (int s = 0; s < 3; s++) {
			snprintf(path, sizeof path, "n%d", i);
			snprintf(want, sizeof want, "0:%s/a/1.jpg 1:%s/b/1.jpg", of[s], of[s]);
			expect(path, (enum gt_split)s, want);
			snprintf(path, sizeof path, "n%d.tar", i);
			snprintf(want, sizeof want, "0:n%d/%s/a/1.jpg 1:n%d/%s/b/1.jpg", i, of[s], i, of[s]);
			expect(path, (enum gt_split)s, want);
		}
	}
	put("c/Train/1.jpg", "x");
	put("c/Bus/2.jpg", "x");
	put("c/dev/3.jpg", "x");
	expect("c", GT_TRAIN, "0:Bus/2.jpg 1:Train/1.jpg 2:dev/3.jpg");
	expect("c", GT_VALID, "");
	put("g/Train/near/1.jpg", "x");
	put("g/Bus/2.jpg", "x");
	expect("g", GT_TRAIN, "0:Bus/2.jpg 1:Train/near/1.jpg");
	run_in("rm -r c/Bus c/dev && mkdir c/Test && echo x >c/Test/2.jpg && tar -cf c.tar -C c Train Test");
	expect("c", GT_TRAIN, "0:Test/2.jpg 1:Train/1.jpg");
	expect("c.tar", GT_TRAIN, "0:Test/2.jpg 1:Train/1.jpg");
}

/* Without free file descriptors, the message says so, and not that there is no data. */
TEST(no_free_descriptors)
{
	struct rlimit was, few;
	CHECK(!getrlimit(RLIMIT_NOFILE, &was));
	for (int n = 3; n < 12; n++) {
		struct gt_dataset d;
		struct gt_err e = {0};
		few = (struct rlimit){(rlim_t)n, was.rlim_max};
		CHECK(!setrlimit(RLIMIT_NOFILE, &few));
		enum gt_code code = read_split("a", GT_TRAIN, &d, &e);
		CHECK(!setrlimit(RLIMIT_NOFILE, &was));
		if (code == GT_OK)
			gt_dataset_free(&d);
		else
			CHECK_MSG(code == GT_EFAIL && strstr(e.msg, "Too many open files"), "%d descriptors: %d \"%s\"", n, code, e.msg);
	}
}

TEST(archive)
{
	run_in("tar -cf a.tar -C a train val test && tar -cf ./top.tar a && tar -cf dot.tar -C a ./train && "
	       "tar --format=pax -cf pax.tar -C a train && tar -cf b.tar -C b one two test");
	const char *train = "0:train/aster/x.webp 1:train/rose/1.JPEG 1:train/rose/2.jpg 1:train/rose/deep/er/3.png";
	expect("a.tar", GT_TRAIN, train);
	expect("a.tar", GT_VALID, "0:val/aster/v.jpg");
	expect("a.tar", GT_TEST, "1:test/rose/t.jpg");
	expect("top.tar", GT_TRAIN, "0:a/train/aster/x.webp 1:a/train/rose/1.JPEG 1:a/train/rose/2.jpg 1:a/train/rose/deep/er/3.png");
	expect("top.tar", GT_VALID, "0:a/val/aster/v.jpg");
	expect("dot.tar", GT_TRAIN, train);
	expect("dot.tar", GT_TEST, "");
	expect("pax.tar", GT_TRAIN, train);
	expect("b.tar", GT_TRAIN, "0:one/2.jpg 1:two/1.jpg");
	struct gt_dataset d;
	struct gt_err e = {0};
	struct gt_bytes_buf buf = {0};
	CHECK_OK(read_split("top.tar", GT_TRAIN, &d, &e), e);
	CHECK_OK(gt_source_read(d.source, 3, &buf, &e), e);
	CHECK(buf.size == 2 && !memcmp(buf.data, "r3", 2));
	free(buf.data);
	gt_dataset_free(&d);
}

TEST(long_paths_in_an_archive)
{
	char deep[400] = "l/train/rose/";
	for (int i = 0; i < 5; i++)
		strcat(deep, "a-folder-with-a-name-of-forty-characters/");
	strcat(deep, "x.jpg");
	put(deep, "deep");
	put("l/train/aster/y.jpg", "y");
	run_in("tar --format=gnu -cf gnu.tar -C l train && tar --format=pax -cf long.tar -C l train");
	char want[500];
	snprintf(want, sizeof want, "0:train/aster/y.jpg 1:%s", deep + 2);
	expect("gnu.tar", GT_TRAIN, want);
	expect("long.tar", GT_TRAIN, want);
}

TEST(limit_keeps_all_classes)
{
	char root[600];
	struct gt_dataset_spec s = spec_of("a", root, sizeof root);
	struct gt_dataset d;
	struct gt_err e = {0};
	s.limit = 2;
	CHECK_OK(gt_dataset_read(&s, GT_TRAIN, &d, &e), e);
	CHECK(d.n == 2 && d.labels[0] == 0 && d.labels[1] == 1);
	gt_dataset_free(&d);
}

TEST(wrong_folders)
{
	put("one/train/rose/1.jpg", "1");
	refuse("one", GT_TRAIN, GT_EDATA, "expected at least two classes, got only \"rose\"");
	put("empty/train/rose/1.jpg", "1");
	put("empty/train/aster/x.txt", "1");
	refuse("empty", GT_TRAIN, GT_EDATA, "got only \"rose\"; these folders have no images (.jpg, .jpeg, .png or .webp): aster");
	put("case/train/rose/1.jpg", "1");
	put("case/train/Rose/1.jpg", "1");
	refuse("case", GT_TRAIN, GT_EDATA, "differ only in their case");
	put("more/train/rose/1.jpg", "1");
	put("more/train/aster/1.jpg", "1");
	put("more/test/tulip/1.jpg", "1");
	refuse("more", GT_TEST, GT_EDATA, "the training split has no folder with files for the class \"tulip\"");
	put("loop/train/rose/1.jpg", "1");
	put("loop/train/aster/1.jpg", "1");
	run_in("ln -s .. loop/train/rose/back");
	refuse("loop", GT_TRAIN, GT_EDATA, "leads back to a folder that contains it");
	refuse("missing", GT_TRAIN, GT_ENOINPUT, "does not exist");
	put("nothing/readme.txt", "1");
	refuse("nothing", GT_TRAIN, GT_ENOINPUT, "no image folders");
	put("closed/train/rose/1.jpg", "1");
	put("closed/train/aster/1.jpg", "1");
	run_in("chmod 000 closed/train/aster");
	if (geteuid() != 0)
		refuse("closed", GT_TRAIN, GT_ENOINPUT, "closed/train/aster: cannot read the directory: Permission denied");
	run_in("chmod 755 closed/train/aster");
}

TEST(wrong_archives)
{
	run_in("ln -sf 1.JPEG a/train/rose/link.jpg && tar -cf link.tar -C a train && rm a/train/rose/link.jpg");
	refuse("link.tar", GT_TRAIN, GT_EDATA, "member train/rose/link.jpg is a link");
	run_in("ln -f a/train/rose/1.JPEG a/train/rose/hard.jpg && tar -cf hard.tar -C a train && rm a/train/rose/hard.jpg");
	refuse("hard.tar", GT_TRAIN, GT_EDATA, "is a link");
	run_in("tar -P --transform='s,^train/rose/2,train/../../2,' -cf up.tar -C a train");
	refuse("up.tar", GT_TRAIN, GT_EDATA, "leads out of the archive");
	run_in("truncate -s 1M sparse.jpg && printf x >>sparse.jpg && mkdir -p s/train/rose s/train/aster && mv sparse.jpg s/train/rose/ && "
	       "cp a/train/aster/x.webp s/train/aster/ && tar -S -cf sparse.tar -C s train");
	refuse("sparse.tar", GT_TRAIN, GT_EDATA, "is a sparse file");
	run_in("tar --format=pax -S -cf sparse2.tar -C s train");
	refuse("sparse2.tar", GT_TRAIN, GT_EDATA, "is a sparse file");
	run_in("head -c 3500 a.tar >short.tar");
	refuse("short.tar", GT_TRAIN, GT_EDATA, "damaged tar archive");
	run_in("head -c 2000 /dev/urandom >noise.tar");
	refuse("noise.tar", GT_TRAIN, GT_EDATA, "expected a tar archive");
	run_in(": >zero.tar");
	refuse("zero.tar", GT_TRAIN, GT_EDATA, "expected folders of images");
	run_in("mkfifo a/train/rose/pipe.jpg && tar -cf fifo.tar -C a train && rm a/train/rose/pipe.jpg");
	refuse("fifo.tar", GT_TRAIN, GT_EDATA, "is a special file");
}

/* Every archive that differs from a right one in one byte of a header is read or rejected. */
TEST(flipped_bytes_of_an_archive)
{
	char path[600];
	uint8_t buf[2048];
	snprintf(path, sizeof path, "%s/a.tar", dir);
	FILE *f = fopen(path, "r");
	size_t n = f ? fread(buf, 1, sizeof buf, f) : 0;
	CHECK(n == sizeof buf);
	if (f)
		fclose(f);
	run_in("cp a.tar flip.tar");
	for (size_t i = 0; i < n; i++) {
		struct gt_dataset d;
		struct gt_err e = {0};
		uint8_t was = buf[i];
		snprintf(path, sizeof path, "%s/flip.tar", dir);
		int fd = open(path, O_WRONLY);
		uint8_t flipped = (uint8_t)(was ^ (1u << (i % 8)));
		CHECK(fd >= 0 && pwrite(fd, &flipped, 1, (off_t)i) == 1);
		enum gt_code code = read_split("flip.tar", GT_TRAIN, &d, &e);
		CHECK_MSG(code == GT_OK || code == GT_EDATA, "byte %zu: %d %s", i, code, e.msg);
		if (code == GT_OK)
			gt_dataset_free(&d);
		CHECK(pwrite(fd, &was, 1, (off_t)i) == 1);
		close(fd);
	}
}

/* Appends a member to an archive: its name, its type, and n bytes of content. */
static void add_member(FILE *f, const char *name, char type, const char *content, size_t n)
{
	char h[512] = {0};
	unsigned sum = 0;
	snprintf(h, 100, "%s", name);
	snprintf(h + 124, 12, "%011zo", n);
	memcpy(h + 100, "0000644", 8);
	memset(h + 148, ' ', 8);
	h[156] = type;
	memcpy(h + 257, "ustar\00000", 8);
	for (int i = 0; i < 512; i++)
		sum += (unsigned char)h[i];
	snprintf(h + 148, 7, "%06o", sum);
	fwrite(h, 1, sizeof h, f);
	fwrite(content, 1, n, f);
	for (size_t i = n; i % 512; i++)
		fputc(0, f);
}

static FILE *open_tar(const char *name)
{
	char path[600];
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	CHECK(f != NULL);
	return f;
}

/* Checks that an archive whose first member has this header before it is refused, or, with words NULL, read. */
static void header(char type, const char *content, size_t n, const char *words)
{
	FILE *f = open_tar("header.tar");
	add_member(f, "header", type, content, n);
	add_member(f, "a/0.png", '0', "zero", 4);
	add_member(f, "b/1.png", '0', "one", 3);
	fclose(f);
	if (words)
		refuse("header.tar", GT_TRAIN, GT_EDATA, words);
	else
		expect("header.tar", GT_TRAIN, "0:a/x.png 1:b/1.png");
}

TEST(headers_of_an_archive)
{
#define H(type, text, words) header(type, text, sizeof text - 1, words)
	H('x', "17 path=a/x.png\n", "an extended header that is not valid"); /* 16 bytes */
	H('x', "16 path=a/x.png\n", NULL);
	H('x', "16 path=a/\0.png\n", "damaged tar archive: a path with a NUL byte");
	H('x', "10 size=4\n16 path=a/x.png\n", NULL);
	H('x', "29 size=99999999999999999999\n", "damaged tar archive: a size that is not a number");
	H('x', "29 size=18446744073709551615\n", "a size that is not a number");
	H('x', "11 size=-5\n", "a size that is not a number");
	H('x', "12 size=abc\n", "a size that is not a number");
	H('x', "9 size=4 \n", "an extended header that is not valid");
	H('x', "9 size=\n", "an extended header that is not valid");
	H('x', "8 size=\n", "a size that is not a number");
	H('x', "11 size= 4\n", "a size that is not a number");
	H('x', "-1 path=a/x.png\n", "an extended header that is not valid");
	H('L', "a/x.png", NULL);
	H('L', "a/x.png\0", NULL);
	H('L', "", "damaged tar archive: an empty long name");
	H('L', "\0", "damaged tar archive: an empty long name");
	H('L', "a/x.png\0y", "damaged tar archive: a long name with a NUL byte");
}

/* The last member of a path counts, however the path is written. */
TEST(members_twice)
{
	static const char *const names[] = {"a/0.png", "./a/0.png", "a//0.png", ".//a/./0.png"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct gt_dataset d;
		struct gt_err e = {0};
		struct gt_bytes_buf buf = {0};
		FILE *f = open_tar("twice.tar");
		add_member(f, "a/0.png", '0', "first", 5);
		add_member(f, "b/1.png", '0', "one", 3);
		add_member(f, names[i], '0', "last", 4);
		add_member(f, "b/2.png", '0', "two", 3);
		fclose(f);
		expect("twice.tar", GT_TRAIN, "0:a/0.png 1:b/1.png 1:b/2.png");
		CHECK_OK(read_split("twice.tar", GT_TRAIN, &d, &e), e);
		CHECK_OK(gt_source_read(d.source, 0, &buf, &e), e);
		CHECK_MSG(buf.size == 4 && !memcmp(buf.data, "last", 4), "%s", names[i]);
		free(buf.data);
		gt_dataset_free(&d);
	}
}

RUN_TESTS()
