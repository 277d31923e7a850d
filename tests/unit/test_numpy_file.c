/* Files of NumPy: headers of arrays, good and bad ones (numpy_file.h), numbers as Python writes them, and arrays as rows (numpy_rows.h). */
#include "csv.h"
#include "numpy_file.h"
#include "numpy_images.h"
#include "numpy_rows.h"
#include "unit/data_files.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct gt_err e;

/* Writes a header of format 1.0 with a dictionary to b, and returns its length. */
static size_t header_of(uint8_t *b, const char *dictionary)
{
	size_t n = strlen(dictionary);
	memcpy(b, "\x93NUMPY\1\0", 8);
	b[8] = (uint8_t)n;
	b[9] = (uint8_t)(n >> 8);
	memcpy(b + 10, dictionary, n);
	return 10 + n;
}

static enum gt_code parse(const char *dictionary, struct gt_numpy_array *a)
{
	uint8_t b[1000];
	return gt_numpy_parse(b, header_of(b, dictionary), "x.npy", a, &e);
}

static void parsed(const char *dictionary, const char *expected)
{
	struct gt_numpy_array a;
	char text[100] = "";
	enum gt_code code = parse(dictionary, &a);
	CHECK_MSG(code == GT_OK && !strcmp(gt_numpy_text(&a, text, sizeof text), expected), "%s: got %d %s %s", dictionary, code, text,
	          code ? e.msg : "");
}

static void refused(const char *dictionary, const char *what)
{
	struct gt_numpy_array a;
	enum gt_code code = parse(dictionary, &a);
	CHECK_MSG(code == GT_EDATA && strstr(e.msg, what), "%s: expected \"%s\", got %d \"%s\"", dictionary, what, code, code ? e.msg : "");
}

TEST(headers)
{
	parsed("{'descr': '<f4', 'fortran_order': False, 'shape': (60, 4), }   \n", "float32 [60, 4]");
	parsed("{'descr': '|u1', 'fortran_order': False, 'shape': (60000, 28, 28), }\n", "uint8 [60000, 28, 28]");
	parsed("{\"shape\": (5,), \"fortran_order\": True, \"descr\": \"<i8\"}", "int64 [5]");
	parsed("{'descr':'<f8','fortran_order':False,'shape':()}", "float64");
	parsed("{'descr': '|b1', 'fortran_order': False, 'shape': (0,), }", "bool [0]");
	parsed("{'descr': '<U12', 'fortran_order': False, 'shape': (3,1), }", "str [3, 1]");
	parsed("{'descr': '|S3', 'fortran_order': False, 'shape': (3), }", "str [3]");
}

TEST(wrong_headers)
{
	refused("{'descr': '|O', 'fortran_order': False, 'shape': (3,), }", "got Python objects");
	refused("{'descr': '>f4', 'fortran_order': False, 'shape': (3,), }", "expected little-endian elements, got \">f4\"");
	refused("{'descr': '<f2', 'fortran_order': False, 'shape': (3,), }", "got \"<f2\"");
	refused("{'descr': '<c16', 'fortran_order': False, 'shape': (3,), }", "got \"<c16\"");
	refused("{'descr': '<f4x', 'fortran_order': False, 'shape': (3,), }", "x.npy: expected");
	refused("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (3,), }", "got a structured array");
	refused("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }", "expected elements in C order, got Fortran order");
	refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-3,), }", "expected a NumPy header");
	refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1), }", "at most 8 dimensions");
	refused("{'descr': '<f4', 'fortran_order': False}", "expected a NumPy header");
	refused("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", "expected a NumPy header");
	refused("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}", "expected a NumPy header");
	refused("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)", "expected a NumPy header");
	refused("{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x", "expected a NumPy header");
	refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}",
	        "the product of the array's dimensions overflows");
	refused("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "expected a NumPy header");
	refused("", "expected a NumPy header");
	struct gt_numpy_array a;
	CHECK(gt_numpy_parse((const uint8_t *)"\x93NUMPY\1\0\xff\xff{}", 12, "x", &a, &e) == GT_EDATA && strstr(e.msg, "truncated"));
	CHECK(gt_numpy_parse((const uint8_t *)"\x93NUMPY\4\0\0\0\0\0", 12, "x", &a, &e) == GT_EDATA && strstr(e.msg, "got 4.0"));
	CHECK(gt_numpy_parse((const uint8_t *)"\x93NUMPY\2\0\xff\xff\xff\xff", 12, "x", &a, &e) == GT_EDATA);
	CHECK(gt_numpy_parse((const uint8_t *)"\x93NUMPY\2\0", 8, "x", &a, &e) == GT_EDATA);
	CHECK(gt_numpy_parse((const uint8_t *)"NUMPY\1\0\0\0\0\0\0", 12, "x", &a, &e) == GT_EDATA);
}

/* A header that is cut at any byte is refused, and a changed byte never gives a wrong size in bytes. */
TEST(cut_headers)
{
	uint8_t b[200];
	struct gt_numpy_array a;
	size_t n = header_of(b, "{'descr': '<f4', 'fortran_order': False, 'shape': (60, 4), }\n");
	for (size_t i = 0; i < n; i++)
		CHECK(gt_numpy_parse(b, i, "x", &a, &e) == GT_EDATA);
	for (size_t i = 0; i < n; i++)
		for (int bit = 0; bit < 8; bit++) {
			b[i] ^= (uint8_t)(1 << bit);
			if (gt_numpy_parse(b, n, "x", &a, &e) == GT_OK)
				CHECK(a.header <= n && a.item > 0 && a.rank <= GT_NUMPY_RANK);
			b[i] ^= (uint8_t)(1 << bit);
		}
}

static void number(double v, bool single, const char *expected)
{
	char buf[32];
	int n = gt_numpy_number_text(v, single, buf);
	CHECK_MSG(!strcmp(buf, expected) && n == (int)strlen(expected), "expected %s, got %s", expected, buf);
}

TEST(numbers)
{
	number(0, false, "0.0");
	number(-0.0, false, "-0.0");
	number(1, true, "1.0");
	number((double)0.1f, true, "0.1");
	number(0.1, false, "0.1");
	number(-123456.789, false, "-123456.789");
	number(1e15, false, "1000000000000000.0");
	number(1e16, false, "1e+16");
	number(1.5e300, false, "1.5e+300");
	number(0.0001, false, "0.0001");
	number(0.000012, false, "1.2e-05");
	number(16777216, true, "16777216.0");
	number((double)3.4028235e38f, true, "3.4028235e+38");
	number(2.0 / 3, false, "0.6666666666666666");
	number(4.9406564584124654e-324, false, "4.94065645841247e-324"); /* the digits of a number with one bit; Python writes 5e-324 */
	number(9007199254740993, false, "9007199254740992.0");
	for (int i = 0; i < 20000; i++) {
		char buf[32];
		uint32_t bits = (uint32_t)i * 2654435761u;
		float f;
		memcpy(&f, &bits, sizeof f);
		if (!isfinite(f))
			continue;
		gt_numpy_number_text((double)f, true, buf);
		CHECK_MSG(strtof(buf, NULL) == f, "%a became %s", (double)f, buf);
		double d = (double)f * 1.23456789012345678 * (double)i;
		gt_numpy_number_text(d, false, buf);
		CHECK_MSG(strtod(buf, NULL) == d, "%a became %s", d, buf);
	}
}

/* A .npy file is a table without names. */
TEST(rows_of_an_array)
{
	static const float v[] = {1, 2.5f, -0.25f, 3e9f, NAN, 7};
	uint8_t b[300];
	char path[1024];
	struct gt_csv *csv;
	struct gt_csv_record r;
	size_t n = header_of(b, "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }\n");
	memcpy(b + n, v, sizeof v);
	put("t.npy", b, n + sizeof v, false);
	snprintf(path, sizeof path, "%s", at("t.npy"));
	CHECK_MSG(gt_csv_open(path, ',', GT_UTF_8, 0, &csv, &e) == GT_OK, "%s", e.msg);
	static const char *const expected[3][2] = {{"1.0", "2.5"}, {"-0.25", "3000000000.0"}, {"", "7.0"}};
	for (int i = 0; i < 3; i++) {
		CHECK(gt_csv_next(csv, &r, &e) == GT_OK && r.n == 2 && !r.names && r.line == i + 1);
		CHECK(!strcmp(r.field[0], expected[i][0]) && !strcmp(r.field[1], expected[i][1]) && r.len[1] == strlen(expected[i][1]));
	}
	CHECK(gt_csv_next(csv, &r, &e) == GT_OK && !r.n);
	gt_csv_close(csv);
	put("t.npy", b, n + sizeof v - 1, false);
	CHECK(gt_csv_open(path, ',', GT_UTF_8, 0, &csv, &e) == GT_EDATA && strstr(e.msg, "truncated"));
	put("t.npy", b, n + sizeof v + 1, false);
	CHECK(gt_csv_open(path, ',', GT_UTF_8, 0, &csv, &e) == GT_EDATA && strstr(e.msg, "too many bytes at the end"));
}

static struct gt_numpy_array array_of(char *name, char kind, int item, int rank, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	struct gt_numpy_array x = {.name = name, .kind = kind, .item = item, .rank = rank, .dim = {a, b, c, d}, .count = a};
	for (int i = 1; i < rank; i++)
		x.count *= x.dim[i];
	return x;
}

TEST(arrays_of_splits)
{
	struct gt_numpy f = {.n = 6};
	struct gt_numpy_images m;
	static char *const names[] = {"train_labels", "train_images", "x", "y", "val_images", "val_labels"};
	for (int i = 0; i < 6; i++)
		f.array[i].name = names[i];
	gt_numpy_images_find(&f, GT_TRAIN, &m);
	CHECK(m.images == &f.array[1] && m.labels == &f.array[0]);
	gt_numpy_images_find(&f, GT_VALID, &m);
	CHECK(m.images == &f.array[4] && m.labels == &f.array[5]);
	gt_numpy_images_find(&f, GT_TEST, &m); /* names without a split */
	CHECK(m.images == &f.array[2] && m.labels == &f.array[3] && !gt_numpy_images_split(&f, GT_TEST));
	f.n = 3;
	gt_numpy_images_find(&f, GT_TEST, &m);
	CHECK(m.images == &f.array[2] && !m.labels);
	gt_numpy_images_find(&f, GT_VALID, &m);
	CHECK(!m.images);
}

static void layout(struct gt_numpy_array x, int64_t c, int64_t h, int64_t w, bool last)
{
	struct gt_numpy_images m = {.images = &x};
	CHECK_MSG(gt_numpy_images_check("f", &m, &e) == GT_OK && m.n == 5 && m.c == c && m.h == h && m.w == w && m.channels_last == last,
	          "expected [%d, %d, %d], got [%d, %d, %d]", (int)c, (int)h, (int)w, (int)m.c, (int)m.h, (int)m.w);
}

TEST(layouts)
{
	layout(array_of("x", 'u', 1, 2, 5, 784, 0, 0), 1, 1, 784, true);
	layout(array_of("x", 'u', 1, 3, 5, 28, 27, 0), 1, 28, 27, true);
	layout(array_of("x", 'u', 1, 4, 5, 28, 27, 1), 1, 28, 27, true);
	layout(array_of("x", 'u', 1, 4, 5, 1, 28, 27), 1, 28, 27, true);
	layout(array_of("x", 'u', 1, 4, 5, 3, 32, 30), 3, 32, 30, false);
	layout(array_of("x", 'u', 1, 4, 5, 32, 30, 3), 3, 32, 30, true);
	layout(array_of("x", 'u', 1, 4, 5, 3, 32, 3), 3, 32, 3, false);
	struct gt_numpy_array x = array_of("x", 'f', 4, 4, 5, 3, 8, 8), y = array_of("y", 'f', 4, 2, 5, 10, 0, 0);
	struct gt_numpy_images m = {.images = &x, .labels = &y};
	CHECK(gt_numpy_images_check("f", &m, &e) == GT_EDATA && strstr(e.msg, "f: x: expected images of uint8"));
	x = array_of("x", 'u', 1, 4, 5, 3, 8, 8);
	CHECK(gt_numpy_images_check("f", &m, &e) == GT_EDATA && strstr(e.msg, "f: y: expected integer labels [n], got float32 [5, 10]"));
	y = array_of("y", 'i', 8, 1, 4, 0, 0, 0);
	CHECK(gt_numpy_images_check("f", &m, &e) == GT_EDATA && strstr(e.msg, "got 5 images and 4 labels"));
}

TEST(elements)
{
	uint8_t b[] = {0xff, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	struct gt_numpy_array a = {.kind = 'u', .item = 1, .data = b};
	CHECK(gt_numpy_integer(&a, 1) == 254);
	a.kind = 'i';
	CHECK(gt_numpy_integer(&a, 1) == -2);
	a.item = 2;
	CHECK(gt_numpy_integer(&a, 0) == -257);
	a.item = 8;
	CHECK(gt_numpy_integer(&a, 0) == -257);
}

RUN_TESTS()
