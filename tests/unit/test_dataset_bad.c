/* Damaged and hostile data files: each is refused with GT_EDATA and a reason, in bounded memory and under a second. */
#include "dataset.h"
#include "unit/data_files.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static int tried;
static double slowest;
static long memory_at_start;

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long memory(void) /* KiB at the most so far */
{
	struct rusage r;
	getrusage(RUSAGE_SELF, &r);
	return r.ru_maxrss;
}

/* Reads the split. The message must contain word and the name of the file. word NULL: any GT_EDATA. */
static void expect(const struct gt_dataset_spec *s, enum gt_code want, const char *word, const char *what)
{
	struct gt_dataset d;
	struct gt_err e = {0};
	double start = now();
	enum gt_code rc = gt_dataset_read(s, GT_TRAIN, &d, &e);
	double took = now() - start;
	tried++;
	slowest = took > slowest ? took : slowest;
	CHECK_MSG(rc == want, "%s: code %d: %s", what, (int)rc, e.msg);
	if (rc != GT_OK) {
		CHECK(!d.images && !d.labels && !d.n);
		CHECK_MSG(e.code == want && strlen(e.msg) > 10 && !strchr(e.msg, '\n'), "%s: \"%s\"", what, e.msg);
		CHECK_MSG(!word || strstr(e.msg, word), "%s: no \"%s\" in \"%s\"", what, word ? word : "", e.msg);
	}
	gt_dataset_free(&d);
	enum gt_code probe = gt_dataset_probe(s, GT_TRAIN, &d, &e); /* must not crash either, nor pass what read refuses by its header */
	CHECK_MSG(probe == GT_OK || probe == want, "%s: probe %d: %s", what, (int)probe, e.msg);
	gt_dataset_free(&d);
}

static void put_raw(const char *name, const void *data, size_t size)
{
	put(name, data, size, false);
}

static uint8_t *get(const char *name, size_t *size)
{
	FILE *f = fopen(at(name), "rb");
	uint8_t *b = malloc(1 << 20);
	*size = fread(b, 1, 1 << 20, f);
	fclose(f);
	return b;
}

static const char *const pair[] = {"im", "la"};

static struct gt_dataset_spec idx_spec(void)
{
	return (struct gt_dataset_spec){.name = "x", .root = test_tmpdir(), .format = "idx", .train = pair, .ntrain = 2};
}

static struct gt_dataset_spec cifar_spec(const char *const *file, int n)
{
	return (struct gt_dataset_spec){.name = "x", .root = test_tmpdir(), .format = "cifar10", .train = file, .ntrain = n};
}

enum { N = 40, SIDE = 9 };

static size_t good(uint8_t *im, size_t *nla, uint8_t *la)
{
	*nla = idx(la, 8, 1, (uint32_t[]){N}, 1);
	return idx(im, 8, 3, (uint32_t[]){N, SIDE, SIDE}, 1);
}

TEST(idx_truncated_and_longer)
{
	uint8_t im[8192], la[256];
	size_t nla, nim = good(im, &nla, la);
	struct gt_dataset_spec s = idx_spec();
	memory_at_start = memory();
	put_raw("im", im, nim);
	put_raw("la", la, nla);
	expect(&s, GT_OK, NULL, "the good pair");
	for (size_t cut = 0; cut < nim; cut += cut < 64 ? 1 : 97) {
		put_raw("im", im, cut);
		expect(&s, GT_EDATA, NULL, "cut images");
	}
	put_raw("im", im, nim);
	for (size_t cut = 0; cut < nla; cut++) {
		put_raw("la", la, cut);
		expect(&s, GT_EDATA, NULL, "cut labels");
	}
	put_raw("la", la, nla + 1);
	expect(&s, GT_EDATA, "too many", "a byte more");
	put_raw("la", la, nla);
	put_raw("im", im, nim + 100);
	expect(&s, GT_EDATA, "too many", "100 bytes more");
}

TEST(gzip_truncated_anywhere)
{
	uint8_t im[8192], la[256];
	size_t nla, nim = good(im, &nla, la), ngz;
	struct gt_dataset_spec s = idx_spec();
	put("im", im, nim, true);
	put("la", la, nla, true);
	expect(&s, GT_OK, NULL, "the good pair");
	uint8_t *gz = get("im", &ngz);
	for (size_t cut = 0; cut < ngz; cut++) {
		put_raw("im", gz, cut);
		expect(&s, GT_EDATA, cut ? NULL : "empty", "cut gzip");
	}
	put_raw("im", gz, ngz - 1);
	expect(&s, GT_EDATA, "truncated", "the last byte cut");
	put_raw("im", gz, ngz / 2);
	expect(&s, GT_EDATA, "truncated", "half a gzip");
	free(gz);
}

/* Every bit: either refused or (the header's time and system, padding, a match that may as well stand elsewhere) the same content. */
TEST(gzip_bit_flips)
{
	uint8_t im[8192], la[256];
	size_t nla, nim = good(im, &nla, la), ngz;
	struct gt_dataset_spec s = idx_spec();
	put("la", la, nla, true);
	put("im", im, nim, true);
	uint8_t *gz = get("im", &ngz);
	for (size_t bit = 16; bit < ngz * 8; bit++) {
		gz[bit / 8] ^= (uint8_t)(1 << bit % 8);
		put_raw("im", gz, ngz);
		struct gt_dataset d;
		struct gt_err e = {0};
		enum gt_code rc = gt_dataset_read(&s, GT_TRAIN, &d, &e);
		tried++;
		if (bit >= (ngz - 8) * 8)
			CHECK_MSG(rc == GT_EDATA, "bit %zu, in the CRC or the length: code %d", bit, (int)rc);
		else
			CHECK_MSG(rc == GT_EDATA || (rc == GT_OK && d.n == N && !memcmp(d.images, im + 16, nim - 16)), "bit %zu: code %d", bit,
			          (int)rc);
		gt_dataset_free(&d);
		gz[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	gz[ngz - 6] ^= 1;
	put_raw("im", gz, ngz);
	expect(&s, GT_EDATA, "checksum", "a wrong CRC");
	free(gz);
}

TEST(gzip_tails_and_members)
{
	uint8_t im[8192], la[256], two[32768];
	size_t nla, nim = good(im, &nla, la), ngz;
	struct gt_dataset_spec s = idx_spec();
	put("la", la, nla, true);
	put("im", im, nim, true);
	uint8_t *gz = get("im", &ngz);
	memcpy(two, gz, ngz);
	memcpy(two + ngz, "garbage", 7);
	put_raw("im", two, ngz + 7);
	expect(&s, GT_EDATA, "follow the compressed data", "garbage behind");
	memset(two + ngz, 0, 512);
	put_raw("im", two, ngz + 512);
	expect(&s, GT_EDATA, "follow the compressed data", "zeros behind");
	memcpy(two + ngz, gz, ngz);
	put_raw("im", two, 2 * ngz);
	expect(&s, GT_EDATA, "more than", "the same member twice");
	put_raw("im", two, 2 * ngz - 5);
	expect(&s, GT_EDATA, NULL, "a second member, cut");
	free(gz);
	/* the content in three members, one of them empty: as gzip(1), it is one file */
	for (int part = 0; part < 3; part++) {
		gzFile f = gzopen(at("im"), part ? "ab" : "wb");
		size_t a = part == 0 ? 0 : 7, n = part == 0 ? 7 : part == 1 ? 0 : nim - 7;
		CHECK(f && (!n || gzwrite(f, im + a, (unsigned)n) == (int)n));
		gzclose(f);
	}
	expect(&s, GT_OK, NULL, "three members");
	put("im", im, nim - 1, true);
	expect(&s, GT_EDATA, "only", "a byte too few inside");
	put("im", im, nim + 1, true);
	expect(&s, GT_EDATA, "more than", "a byte too many inside");
}

static void put_head(const char *name, int type, int rank, const uint32_t *dim, size_t body, bool gz)
{
	uint8_t b[4096] = {0, 0, (uint8_t)type, (uint8_t)rank};
	for (int i = 0; i < rank * 4; i++)
		b[4 + i] = (uint8_t)(dim[i / 4] >> 8 * (3 - i % 4));
	put(name, b, 4 + 4 * (size_t)rank + body, gz);
}

TEST(idx_headers)
{
	uint8_t im[8192], la[256];
	size_t nla, nim = good(im, &nla, la);
	struct gt_dataset_spec s = idx_spec();
	put_raw("la", la, nla);
	static const uint32_t huge[4] = {0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff};
	for (int gz = 0; gz < 2; gz++) {
		put_head("im", 8, 3, huge, 100, gz);
		expect(&s, GT_EDATA, "overflow", "3 huge dimensions");
		put_head("im", 8, 4, huge, 100, gz);
		expect(&s, GT_EDATA, "overflow", "4 huge dimensions");
		put_head("im", 14, 2, huge, 100, gz);
		expect(&s, GT_EDATA, "overflow", "2 huge dimensions of f64");
		put_head("im", 8, 2, huge, 100, gz);
		expect(&s, GT_EDATA, "header declares", "2 huge dimensions"); /* 2^64 - 2^33 + 1: fits in 64 bits, not in a file */
		put_head("im", 8, 3, (uint32_t[]){N, 30000, 30000}, 100, gz);
		expect(&s, GT_EDATA, "header declares", "more than the file holds");
		for (int k = 0; k < 3; k++) {
			uint32_t dim[3] = {N, SIDE, SIDE};
			dim[k] = 0;
			put_head("im", 8, 3, dim, 0, gz);
			expect(&s, GT_EDATA, "is 0", "a dimension of 0");
		}
		for (int type = 0; type < 256; type++) {
			put_head("im", type, 3, (uint32_t[]){N, 2, 2}, type == 9 ? N * 4u : type == 11 ? N * 8u : 4u * N, gz);
			if (type != 8)
				expect(&s, GT_EDATA, NULL, "a wrong type byte");
		}
		put_head("im", 9, 3, (uint32_t[]){N, 2, 2}, 4u * N, gz);
		expect(&s, GT_EDATA, "i8", "signed images");
		for (int rank = 0; rank < 256; rank += rank < 8 ? 1 : 31) {
			static const uint32_t one[256] = {N, 1, 1, 1};
			put_head("im", 8, rank, one, N, gz);
			if (rank < 1 || rank > 4)
				expect(&s, GT_EDATA, "dimensions", "a wrong rank");
		}
		put("im", "\0\1\10\3junk", 8, gz);
		expect(&s, GT_EDATA, "two zero bytes", "a wrong magic");
		put("im", "\x80\4\x95junkjunk", 10, gz);
		expect(&s, GT_EDATA, "pickle", "a pickle");
		put("im", im, nim, gz);
		put_head("la", 8, 1, (uint32_t[]){N + 1}, N + 1, gz);
		expect(&s, GT_EDATA, "41 labels", "count mismatch");
		put_head("la", 8, 2, (uint32_t[]){N, 1}, N, gz);
		expect(&s, GT_EDATA, "expected labels with one dimension", "labels of rank 2");
		put_head("la", 13, 1, (uint32_t[]){N}, 4 * N, gz);
		expect(&s, GT_EDATA, "f32", "float labels");
		la[8 + 17] = 11;
		s.classes = 10;
		put("la", la, nla, gz);
		expect(&s, GT_EDATA, "label 11 of sample 17", "a label out of range");
		s.classes = 0;
		uint8_t wide[8 + 4 * N] = {0, 0, 12, 1, 0, 0, 0, N};
		memset(wide + 8 + 4 * 3, 0xff, 4);
		put("la", wide, sizeof wide, gz);
		expect(&s, GT_EDATA, "label -1 of sample 3", "a negative label");
		la[8 + 17] = 7;
		put("la", la, nla, gz);
	}
	expect(&s, GT_OK, NULL, "the good pair again");
	s.shape[0] = 3, s.shape[1] = s.shape[2] = 32;
	expect(&s, GT_ECONFIG, "model.input", "another shape");
	s = idx_spec();
	s.max_bytes = 1000;
	expect(&s, GT_EDATA, "allowed", "over max_bytes");
}

/* What is no regular file; a FIFO without a writer would block for ever. */
TEST(not_a_regular_file)
{
	uint8_t im[8192], la[256];
	size_t nla, nim = good(im, &nla, la);
	struct gt_dataset_spec s = idx_spec();
	put_raw("la", la, nla);
	unlink(at("im"));
	expect(&s, GT_ENOINPUT, "No such file", "a missing file");
	mkdir(at("im"), 0755);
	expect(&s, GT_EDATA, "directory", "a directory");
	rmdir(at("im"));
	mkfifo(at("im"), 0600);
	expect(&s, GT_EDATA, "FIFO", "a FIFO");
	unlink(at("im"));
	CHECK(!symlink("/dev/zero", at("im")));
	expect(&s, GT_EDATA, "device", "a device");
	unlink(at("im"));
	CHECK(!symlink("im", at("im")));
	expect(&s, GT_ENOINPUT, "symbolic links", "a link to itself");
	unlink(at("im"));
	put_raw("im", im, nim);
	expect(&s, GT_OK, NULL, "the good pair again");
	char deep[3000];
	memset(deep, 'x', sizeof deep - 1);
	deep[sizeof deep - 1] = '\0';
	const char *const far[] = {deep, "la"};
	s.train = far;
	expect(&s, GT_ENOINPUT, "too long", "a path too long: the reason is still there");
}

static void put_zeros(const char *name, size_t size, const uint8_t *head, size_t nhead)
{
	static uint8_t zero[1 << 20];
	gzFile f = gzopen(at(name), "wb9");
	if (nhead)
		gzwrite(f, head, (unsigned)nhead);
	for (size_t n = nhead; n < size; n += sizeof zero)
		gzwrite(f, zero, (unsigned)(size - n < sizeof zero ? size - n : sizeof zero));
	gzclose(f);
}

TEST(bombs)
{
	enum { BIG = 1 << 28 }; /* 256 KiB compressed; a quarter of a bomb shows as much as a whole one, and its making takes a second less */
	static const char *const one[] = {"bomb"};
	struct gt_dataset_spec s = idx_spec(), c = cifar_spec(one, 1);
	uint8_t la[256], im[8192], head[16] = {0, 0, 8, 3, 0, 0, 0, N, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
	size_t nla;
	good(im, &nla, la);
	put_raw("la", la, nla);
	put_zeros("im", BIG, head, 16); /* an honest small header before 256 MiB of zeros */
	expect(&s, GT_EDATA, "more than", "a bomb behind a small header");
	head[4] = 0, head[5] = 1, head[6] = 0, head[7] = 0; /* 65,536 images of 64 x 64: what is in there, and too much for its size */
	head[11] = head[15] = 64;
	put_zeros("im", BIG + 16, head, 16);
	uint8_t many[65536 + 8] = {0, 0, 8, 1, 0, 1, 0, 0};
	put("la", many, sizeof many, true);
	expect(&s, GT_EDATA, "bomb", "a bomb with an honest header");
	put_zeros("bomb", BIG, NULL, 0);
	expect(&c, GT_EDATA, "bomb", "a bomb as CIFAR");
	put_zeros("bomb", (size_t)BIG / 3073 * 3073, NULL, 0); /* zeros are valid records */
	expect(&c, GT_EDATA, "bomb", "a bomb of valid records");
	c.max_bytes = 1 << 20;
	expect(&c, GT_EDATA, "1048576", "max_bytes holds for what is inside");
	/* empty members without end */
	put("im", "", 0, true);
	size_t n;
	uint8_t *empty = get("im", &n), *all = malloc(4 << 20);
	for (size_t i = 0; i < (4u << 20) / n; i++)
		memcpy(all + i * n, empty, n);
	put_raw("im", all, (4u << 20) / n * n);
	expect(&s, GT_EDATA, "no data", "200,000 empty members");
	put_raw("bomb", all, (4u << 20) / n * n);
	c.max_bytes = 0;
	expect(&c, GT_EDATA, "no data", "200,000 empty members as CIFAR");
	free(empty);
	free(all);
}

TEST(cifar_sizes_and_labels)
{
	static const char *const one[] = {"c.bin"}, *const two[] = {"c.bin", "d.bin"};
	static uint8_t b[4 * 3073 + 1];
	struct gt_dataset_spec s = cifar_spec(one, 1);
	for (int gz = 0; gz < 2; gz++) {
		put("c.bin", b, 4 * 3073, gz);
		expect(&s, GT_OK, NULL, "four records");
		for (size_t n = 0; n <= 4 * 3073 + 1; n += n < 4 || n > 12288 ? 1 : 307) {
			if (!n || n % 3073) {
				put("c.bin", b, n, gz);
				expect(&s, GT_EDATA, NULL, "no whole number of records");
			}
		}
		put("c.bin", b, 3073 * 3 + 1000, gz);
		expect(&s, GT_EDATA, "multiple of the 3073", "a cut record");
		b[2 * 3073] = 10;
		put("c.bin", b, 4 * 3073, gz);
		expect(&s, GT_EDATA, "label 10 of record 2", "a label of 10");
		b[2 * 3073] = 0;
		b[0] = 10;
		put("c.bin", b, 4 * 3073, gz);
		expect(&s, GT_EDATA, "label 10 of record 0", "a first label of 10");
		memcpy(b, "\x80\2}q", 4);
		put("c.bin", b, 4 * 3073, gz);
		expect(&s, GT_EDATA, "gtrain fetch cifar10", "a pickle");
		memset(b, 0, 4);
		put("c.bin", b, 4 * 3073, gz);
		put("d.bin", b, 3072, gz);
		s.train = two, s.ntrain = 2;
		expect(&s, GT_EDATA, "d.bin", "the second file cut");
		s = cifar_spec(one, 1);
		s.format = "cifar100";
		put("c.bin", b, 4 * 3073, gz);
		expect(&s, GT_EDATA, "3074", "CIFAR-10 as CIFAR-100");
		b[3074 * 2] = 20;
		put("c.bin", b, 3 * 3074, gz);
		expect(&s, GT_EDATA, "got 20 in record 2", "a coarse label of 20");
		b[3074 * 2] = 0;
		b[3074 * 2 + 1] = 100;
		put("c.bin", b, 3 * 3074, gz);
		expect(&s, GT_EDATA, "label 100 of record 2", "a fine label of 100");
		b[3074 * 2 + 1] = 0;
		s = cifar_spec(one, 1);
	}
	size_t n;
	put("c.bin", b, 4 * 3073, true);
	uint8_t *gz = get("c.bin", &n);
	for (size_t cut = 0; cut < n; cut++) {
		put_raw("c.bin", gz, cut);
		expect(&s, GT_EDATA, NULL, "a cut gzip");
	}
	free(gz);
}

TEST(cifar_pickle_folder)
{
	struct gt_dataset d;
	struct gt_err e;
	put_raw("py/cifar-10-batches-py/data_batch_1", "\x80\2}q\1", 5);
	struct gt_dataset_spec s = {.name = "cifar10", .root = at("py")};
	CHECK(gt_dataset_read(&s, GT_TRAIN, &d, &e) == GT_EDATA);
	CHECK_MSG(strstr(e.msg, "pickle") && strstr(e.msg, "gtrain fetch cifar10"), "%s", e.msg);
	put_raw("py100/cifar-100-python/meta", "\x80\2}q\1", 5);
	s = (struct gt_dataset_spec){.name = "cifar100", .root = at("py100")};
	CHECK(gt_dataset_read(&s, GT_TRAIN, &d, &e) == GT_EDATA);
	CHECK_MSG(strstr(e.msg, "pickle") && strstr(e.msg, "gtrain fetch cifar100"), "%s", e.msg);
}

/* Last: what all of the above took. */
TEST(bounded_time_and_memory)
{
	long grown = (memory() - memory_at_start) / 1024;
	printf("# bad data files tried: %d\n# bad data: slowest %.3f s, memory grown by %ld MiB\n", tried, slowest, grown);
	/* A second is the promise (sanitizers and a busy machine: five); the memory: the 64 MiB that any gzip may expand to, the next
	 * smaller buffer beside it and a sanitizer's quarantine of 256 MiB. */
	CHECK_MSG(slowest < 5, "%.3f s", slowest);
	CHECK_MSG(grown < 450, "%ld MiB", grown);
}

RUN_TESTS()
