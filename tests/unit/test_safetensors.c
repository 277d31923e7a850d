#include "test.h"
#include "base/fileio.h"
#include "store/safetensors_file.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char path[512];

static const char *file(const char *name)
{
	snprintf(path, sizeof path, "%s/%s", test_tmpdir(), name);
	return path;
}

static const char *golden(const char *name)
{
	snprintf(path, sizeof path, "%s/tests/golden/%s", test_source(), name);
	return path;
}

static void put(const char *name, const void *data, size_t n)
{
	FILE *f = fopen(name, "w");
	CHECK(f && fwrite(data, 1, n, f) == n && !fclose(f));
}

/* Element i of the golden files' tensors. */
static double element(const struct gt_st_tensor *t, int64_t i)
{
	const char *p = (const char *)t->data + (size_t)i * gt_dtype_size(t->desc.dtype);
	float f;
	uint16_t h;
	uint32_t u;
	switch (t->desc.dtype) {
	case GT_F32:
		memcpy(&f, p, 4);
		return f;
	case GT_F64: {
		double d;
		memcpy(&d, p, 8);
		return d;
	}
	case GT_BF16:
		memcpy(&h, p, 2);
		u = (uint32_t)h << 16;
		memcpy(&f, &u, 4);
		return f;
	case GT_F16: { /* normal numbers and zero only */
		memcpy(&h, p, 2);
		if (!(h & 0x7FFF))
			return 0;
		u = (uint32_t)(h & 0x8000) << 16 | ((uint32_t)(h & 0x7FFF) + (112 << 10)) << 13;
		memcpy(&f, &u, 4);
		return f;
	}
	case GT_I32: {
		int32_t v;
		memcpy(&v, p, 4);
		return v;
	}
	case GT_I64: {
		int64_t v;
		memcpy(&v, p, 8);
		return (double)v;
	}
	default:
		return *(const uint8_t *)p + (t->desc.dtype == GT_U8 ? -2 : 1e9); /* unsigned ones begin at 0 */
	}
}

TEST(safetensors_reads_what_pytorch_wrote)
{
	static const struct {
		const char *name;
		enum gt_dtype t;
		const char *shape;
	} want[] = {{"bf16", GT_BF16, "[2, 3]"}, {"empty", GT_F32, "[0, 3]"}, {"f16", GT_F16, "[2, 3]"},
	            {"f32", GT_F32, "[2, 3]"},   {"f64", GT_F64, "[2, 3]"},   {"five", GT_F16, "[1, 2, 1, 3, 1]"},
	            {"i32", GT_I32, "[2, 3]"},   {"i64", GT_I64, "[2, 3]"},   {"scalar", GT_F64, "[]"},
	            {"u8", GT_U8, "[2, 3]"}};
	struct gt_st_file *f;
	struct gt_err e;
	CHECK_OK(gt_st_open(golden("mixed.safetensors"), &f, &e), e);
	if (!f)
		return;
	CHECK(gt_st_count(f) == 10);
	for (int i = 0; i < 10; i++) {
		const struct gt_st_tensor *t = gt_st_at(f, i);
		char shape[96];
		CHECK(t && t == gt_st_find(f, want[i].name) && !strcmp(t->name, want[i].name) && t->desc.dtype == want[i].t);
		CHECK(!strcmp(gt_tdesc_text(&t->desc, shape, sizeof shape), want[i].shape));
		for (int64_t k = 0; k < gt_tdesc_count(&t->desc); k++)
			CHECK_MSG(element(t, k) == (double)(k - 2), "%s[%d] is %g", t->name, (int)k, element(t, k));
	}
	CHECK(!gt_st_at(f, 10) && !gt_st_at(f, -1) && !gt_st_find(f, "none"));
	gt_st_close(f);
}

static enum gt_code write_tensors(int fd, const char *to, const struct gt_st_tensor *t, int n, const char *const *metadata,
                                  struct gt_err *err)
{
	uint64_t bytes;
	return gt_st_write_digest(fd, to, t, n, metadata, NULL, &bytes, err);
}

/* The tensors of sizes.safetensors into a file of ours. */
static void write_sizes(const char *to)
{
	static const int64_t d35[] = {3, 5}, d3[] = {3}, d213[] = {2, 1, 3}, d7[] = {7}, d1[] = {1};
	static const char *const metadata[] = {"format", "pt", NULL};
	float w[15], b[3], one = -2;
	int64_t seen = -2;
	uint16_t half[6];
	uint8_t bytes[7];
	for (int i = 0; i < 15; i++)
		w[i] = (float)(i - 2);
	memcpy(b, w, sizeof b);
	for (int i = 0; i < 6; i++) {
		uint32_t u;
		memcpy(&u, &w[i], 4);
		half[i] = (uint16_t)(u >> 16);
	}
	for (int i = 0; i < 7; i++)
		bytes[i] = (uint8_t)i;
	const struct gt_st_tensor t[] = {{"bytes", gt_tdesc_make(GT_U8, 1, d7, false), bytes},
	                                 {"fc.weight", gt_tdesc_make(GT_F32, 2, d35, false), w},
	                                 {"half", gt_tdesc_make(GT_BF16, 3, d213, false), half},
	                                 {"fc.bias", gt_tdesc_make(GT_F32, 1, d3, false), b},
	                                 {"a/name with \"quotes\" und Gr\xc3\xbc\xc3\x9f"
	                                  "e",
	                                  gt_tdesc_make(GT_F32, 1, d1, false), &one},
	                                 {"bn.num_batches_tracked", gt_tdesc_make(GT_I64, 0, NULL, false), &seen}};
	struct gt_err e;
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK_OK(write_tensors(fd, to, t, 6, metadata, &e), e);
	close(fd);
}

TEST(safetensors_writes_the_same_bytes_as_the_reference)
{
	char *mine = NULL, *theirs = NULL;
	size_t n, m;
	struct gt_err e;
	write_sizes(file("mine"));
	CHECK_OK(gt_file_read(file("mine"), 1 << 20, &mine, &n, &e), e);
	CHECK_OK(gt_file_read(golden("sizes.safetensors"), 1 << 20, &theirs, &m, &e), e);
	CHECK(mine && theirs && n == m && !memcmp(mine, theirs, n));
	free(mine);
	free(theirs);
}

TEST(safetensors_is_read_by_pytorch)
{
	const char *python = getenv("SAFETENSORS_PYTHON");
	char cmd[2048];
	if (!python)
		python = "python3";
	snprintf(cmd, sizeof cmd, "%s -c 'import torch, safetensors' 2>/dev/null", python);
	if (system(cmd)) {
		test_skip("no python3 with torch and safetensors (SAFETENSORS_PYTHON names one); the golden bytes above stand for it");
		return;
	}
	write_sizes(file("mine"));
	snprintf(cmd, sizeof cmd, "%s '%s/tests/golden/make_safetensors.py' --check '%s'", python, test_source(), file("mine"));
	CHECK(!system(cmd));
}

TEST(safetensors_empty_and_refused_writes)
{
	struct gt_st_file *f;
	struct gt_err e;
	static const int64_t d[] = {1, 2, 3, 4};
	char x[24] = {0};
	int fd = open(file("empty"), O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK_OK(write_tensors(fd, path, NULL, 0, NULL, &e), e);
	close(fd);
	CHECK_OK(gt_st_open(file("empty"), &f, &e), e);
	CHECK(gt_st_count(f) == 0 && !gt_st_at(f, 0) && !gt_st_find(f, "x"));
	gt_st_close(f);
	struct gt_st_tensor t[2] = {{"a", gt_tdesc_make(GT_U8, 4, d, false), x}, {"a", gt_tdesc_make(GT_U8, 4, d, false), x}};
	fd = open("/dev/null", O_WRONLY);
	CHECK(write_tensors(fd, "null", t, 2, NULL, &e) == GT_EINTERNAL);
	t[1].name = "__metadata__";
	CHECK(write_tensors(fd, "null", t, 2, NULL, &e) == GT_EINTERNAL);
	t[1].name = "\xff";
	CHECK(write_tensors(fd, "null", t, 2, NULL, &e) == GT_EINTERNAL);
	t[1].name = "b";
	CHECK_OK(write_tensors(fd, "null", t, 2, NULL, &e), e);
	t[1].desc = gt_tdesc_make(GT_U8, 4, d, true); /* channels last */
	CHECK(write_tensors(fd, "null", t, 2, NULL, &e) == GT_EINTERNAL);
	close(fd);
	fd = open("/dev/full", O_WRONLY);
	t[1].desc = t[0].desc;
	CHECK(write_tensors(fd, "some/file", t, 2, NULL, &e) == GT_EIO && strstr(e.msg, "some/file") && strstr(e.msg, "No space"));
	close(fd);
}

/* ---- hostile files -------------------------------------------------------------------------------------------------------- */

#define T(shape, b, e) "{\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":[" #b "," #e "]}"

TEST(safetensors_refuses_every_wrong_header)
{
	/* 16 bytes of data follow each. The first ones are right: the others differ from them in one thing. */
	static const struct {
		const char *json, *word; /* NULL: is taken; else what the message must say */
	} cases[] = {
	    {"{\"a\":" T("[4]", 0, 16) "}", NULL},
	    {"{\"a\":" T("[4]", 0, 16) "}     ", NULL},
	    {"{\"b\":" T("[2]", 8, 16) ",\"a\":" T("[2]", 0, 8) ",\"z\":" T("[0]", 8, 8) "}", NULL},
	    {"{\"__metadata__\":{\"k\":\"v\"},\"a\":" T("[2,2]", 0, 16) "}", NULL},
	    {"{\"\":" T("[4]", 0, 16) "}", NULL},
	    {"", "begin with"},
	    {" {\"a\":" T("[4]", 0, 16) "}", "begin with"},
	    {"[]", "begin with"},
	    {"{}", "16 bytes of data"},
	    {"{\"a\":" T("[4]", 0, 16), "invalid JSON"},
	    {"{\"a\":" T("[4]", 0, 16) "}x", "end of the text"},
	    {"{\"a\":" T("[4]", 0, 16) ",}", "invalid JSON"},
	    {"{\"a\":" T("[4]", 0, 16) "}{}", "end of the text"},
	    {"{'a':" T("[4]", 0, 16) "}", "invalid JSON"},
	    {"{\"a\":" T("[2]", 0, 8) ",\"a\":" T("[2]", 8, 16) "}", "twice"},
	    {"{\"a\":" T("[2]", 0, 8) ",\"\\u0061\":" T("[2]", 8, 16) "}", "twice"},
	    {"{\"a\\u0000b\":" T("[4]", 0, 16) "}", "NUL"},
	    {"{\"a\x01\":" T("[4]", 0, 16) "}", "control"},
	    {"{\"a\xff\":" T("[4]", 0, 16) "}", "UTF-8"},
	    {"{\"a\\ud800\":" T("[4]", 0, 16) "}", "surrogate"},
	    {"{\"a\\ud80\x10\\udc00\":" T("[4]", 0, 16) "}", "escape"}, /* found by fuzz_safetensors */
	    {"{\"a\":" T("[3]", 0, 16) "}", "12 bytes"},
	    {"{\"a\":" T("[5]", 0, 16) "}", "20 bytes"},
	    {"{\"a\":" T("[3]", 0, 12) "}", "describes 12"},
	    {"{\"a\":" T("[3]", 4, 16) "}", "begins at byte 4"},
	    {"{\"a\":" T("[1]", 0, 4) ",\"b\":" T("[2]", 8, 16) "}", "begins at byte 8"},
	    {"{\"a\":" T("[3]", 0, 12) ",\"b\":" T("[2]", 8, 16) "}", "begins at byte 8"},
	    {"{\"a\":" T("[5]", 0, 20) "}", "outside"},
	    {"{\"a\":" T("[4]", 16, 0) "}", "outside"},
	    {"{\"a\":" T("[4]", -16, 0) "}", "whole numbers"},
	    {"{\"a\":" T("[4]", 0.5, 16.5) "}", "whole numbers"},
	    {"{\"a\":" T("[4]", 0, 1e999) "}", "whole numbers"},
	    {"{\"a\":" T("[4]", 0, 18446744073709551632) "}", "whole numbers"},
	    {"{\"a\":" T("[4]", 0, 016) "}", "invalid JSON"},
	    {"{\"a\":" T("[-4]", 0, 16) "}", "whole number"},
	    {"{\"a\":" T("[\"4\"]", 0, 16) "}", "whole number"},
	    {"{\"a\":" T("[4611686018427387908]", 0, 16) "}", "whole number"},
	    {"{\"a\":" T("[4294967296,4294967296,4]", 0, 16) "}", "overflows"},
	    {"{\"a\":" T("[1,1,1,1,1,4]", 0, 16) "}", "dimensions"},
	    {"{\"a\":" T("[[4]]", 0, 16) "}", "deeply"},
	    {"{\"a\":" T("4", 0, 16) "}", "the shape is missing"},
	    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4]}}", "data_offsets"},
	    {"{\"a\":{\"dtype\":\"F32\",\"data_offsets\":[0,16]}}", "the shape is missing"},
	    {"{\"a\":{\"shape\":[4],\"data_offsets\":[0,16]}}", "the dtype is missing"},
	    {"{\"a\":{\"dtype\":32,\"shape\":[4],\"data_offsets\":[0,16]}}", "the dtype is missing"},
	    {"{\"a\":{\"dtype\":\"F31\",\"shape\":[4],\"data_offsets\":[0,16]}}", "F31"},
	    {"{\"a\":{\"dtype\":\"f32\",\"shape\":[4],\"data_offsets\":[0,16]}}", "f32"},
	    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16,16]}}", "data_offsets"},
	    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0]}}", "data_offsets"},
	    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16],\"path\":\"/etc\"}}", "unknown key"},
	    {"{\"a\":[]}", "expected an object"},
	    {"{\"a\":null}", "expected an object"},
	    {"{\"__metadata__\":{\"k\":1},\"a\":" T("[4]", 0, 16) "}", "__metadata__"},
	    {"{\"__metadata__\":\"v\",\"a\":" T("[4]", 0, 16) "}", "__metadata__"},
	    {"{\"__metadata__\":{\"k\":{\"l\":{\"m\":\"n\"}}},\"a\":" T("[4]", 0, 16) "}", "deeply"},
	    {"{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"},\"a\":" T("[4]", 0, 16) "}", "twice"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct gt_st_file *f;
		struct gt_err e = {0};
		char buf[1024] = {0};
		size_t n = strlen(cases[i].json);
		buf[0] = (char)n;
		buf[1] = (char)(n >> 8);
		memcpy(buf + 8, cases[i].json, n);
		put(file("case"), buf, 8 + n + 16);
		enum gt_code code = gt_st_open(file("case"), &f, &e);
		if (!cases[i].word)
			CHECK_MSG(!code, "%s: %s", cases[i].json, e.msg);
		else
			CHECK_MSG(code == GT_EDATA && strstr(e.msg, cases[i].word) && strstr(e.msg, path), "%s: code %d: %s", cases[i].json, code,
			          e.msg);
		if (!code)
			gt_st_close(f);
		/* And cut short by one byte, or longer by one, none is taken. */
		for (int more = -1; more <= 1; more += 2) {
			put(file("case"), buf, (size_t)((int)n + 8 + 16 + more));
			CHECK_MSG(gt_st_open(file("case"), &f, &e) == GT_EDATA, "%s with %d bytes more", cases[i].json, more);
		}
	}
}

TEST(safetensors_refuses_what_is_no_such_file)
{
	struct gt_st_file *f;
	struct gt_err e;
	static const unsigned char lengths[][8] = {
	    {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, {1, 0xe1, 0xf5, 5}, {9}, {0, 0, 0, 0, 0, 0, 0, 0x80}};
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		put(file("bad"), lengths[i], 8);
		CHECK(gt_st_open(file("bad"), &f, &e) == GT_EDATA);
	}
	for (size_t n = 0; n < 8; n++) {
		put(file("bad"), "\2\0\0\0\0\0\0\0", n);
		CHECK(gt_st_open(file("bad"), &f, &e) == GT_EDATA);
	}
	/* Files of other programs, by their first bytes; a header whose length has such bytes is none of them. */
	static const struct {
		const char *bytes;
		size_t n;
		const char *want;
	} others[] = {
	    {"PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\20\0\0\0w/data.pkl", 40,
	     "a damaged one (its end is missing)"},
	    {"\x80\2\x8a\nl\xfc\x9c" "F\xf9 j\xa8P\x19.", 16, "torch.load(\"FILE.pth\", "},
	    {"\x80\2}q\0(X", 7, "a file of PyTorch before version 1.6; save it again: python3 "},
	    {"PK\3\4\0\0\10\10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\20\0\0\0w/arr_0.np", 40, "got a zip archive"},
	    {"\x89HDF\r\n\x1a\n\0\0", 10, "got an HDF5 file, as Keras writes"},
	    {"GGUF\3\0\0\0\0\0", 10, "got a GGUF file"},
	};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		const char *to = file(i == 1 ? "it's.pth" : "weights.v2.pth");
		put(to, others[i].bytes, others[i].n);
		CHECK_MSG(gt_st_open(to, &f, &e) == GT_EDATA && strstr(e.msg, others[i].want), "%zu: %s", i, e.msg);
	}
	put(file("weights.v2.pth"), "\x80\2}q\0(X", 7);
	CHECK(gt_st_open(file("weights.v2.pth"), &f, &e) == GT_EDATA && strstr(e.msg, "/weights.v2.pth\")'"));
	char long_header[648] = "\x80\2\0\0\0\0\0\0{}";
	memset(long_header + 10, ' ', sizeof long_header - 10);
	put(file("good"), long_header, sizeof long_header);
	CHECK_OK(gt_st_open(file("good"), &f, &e), e);
	gt_st_close(f);
	CHECK(gt_st_open(file("none"), &f, &e) == GT_ENOINPUT);
	CHECK(gt_st_open(test_tmpdir(), &f, &e) == GT_EDATA && strstr(e.msg, "expected a regular file"));
	CHECK(!mkfifo(file("fifo"), 0600));
	CHECK(gt_st_open(file("fifo"), &f, &e) == GT_EDATA); /* and does not wait for a writer */
}

TEST(safetensors_header_bomb_is_bounded)
{
	/* Twelve million values in 24 MB: refused by count before the tree is built. A hundred thousand keys: sorted, not compared pairwise. */
	size_t n = 24000000;
	char *json = malloc(n + 16);
	struct gt_arena *a;
	struct gt_err e;
	struct gt_st_slot *s;
	int count;
	CHECK_OK(gt_arena_open(&a, &e), e);
	memset(json, '0', n);
	memcpy(json, "{\"a\":[", 6);
	for (size_t i = 7; i < n; i += 2)
		json[i] = ',';
	json[n - 1] = ']';
	json[n] = '}';
	CHECK(gt_st_header_parse(json, n + 1, 0, "bomb", a, &s, &count, &e) == GT_EDATA && strstr(e.msg, "too many values"));
	memset(json, '{', n);
	CHECK(gt_st_header_parse(json, n, 0, "bomb", a, &s, &count, &e) == GT_EDATA);
	char *p = json;
	*p++ = '{';
	for (int i = 0; i < 100000; i++)
		p += sprintf(p, "\"%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},", i);
	p[-1] = '}';
	CHECK_OK(gt_st_header_parse(json, (size_t)(p - json), 0, "many", a, &s, &count, &e), e);
	CHECK(count == 100000 && !strcmp(s[0].name, "0") && !strcmp(s[99999].name, "99999"));
	gt_arena_close(a);
	free(json);
}

RUN_TESTS()
