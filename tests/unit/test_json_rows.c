/* JSON Lines as the records of a table (datasets/json_rows.h), read as csv.h reads files: the fields of good files, and the sentence and
 * the line of bad ones. */
#include "csv.h"
#include "table_files.h"
#include <stdlib.h>
#include <string.h>

/* Returns the records of a text as lines of fields in brackets; after an error, its message. The caller frees the text. */
static char *records(const char *text, size_t window)
{
	struct gt_csv *csv;
	struct gt_csv_record r = {.n = 1};
	char *out = NULL, path[1024];
	size_t size;
	FILE *f = open_memstream(&out, &size);
	put_text("t.jsonl", text);
	snprintf(path, sizeof path, "%s", at("t.jsonl"));
	enum gt_code code = gt_csv_open(path, ',', GT_UTF_8, window, &csv, &e);
	while (code == GT_OK && r.n && (code = gt_csv_next(csv, &r, &e)) == GT_OK) {
		for (int i = 0; i < r.n; i++)
			fprintf(f, "[%s]", r.field[i]);
		if (r.n)
			fprintf(f, "%s%d\n", r.names ? "names " : "", (int)r.line);
	}
	if (code != GT_OK)
		fprintf(f, "%s", e.msg);
	else
		gt_csv_close(csv);
	fclose(f);
	return out;
}

static void check_text(const char *text, size_t window, const char *expected)
{
	char *got = records(text, window);
	CHECK_MSG(!strcmp(got, expected), "window %zu: expected\n%sgot\n%s", window, expected, got);
	free(got);
}

/* Whatever the window, the records are the same. */
static void gives(const char *text, const char *expected)
{
	for (size_t window = 0; window < 40; window += 1 + window / 8)
		check_text(text, window, expected);
}

static void refused(const char *text, const char *what)
{
	char *got = records(text, 0);
	CHECK_MSG(strstr(got, what), "expected \"%s\", got \"%s\"", what, got);
	free(got);
}

TEST(fields)
{
	gives("{\"a\": 1, \"b\": \"x\"}\n{\"a\": 2, \"b\": \"y\"}\n", "[a][b]names 1\n[1][x]1\n[2][y]2\n");
	gives("{\"a\":1,\"b\":\"x\"}\r\n\r\n{\"b\":\"y\",\"a\":2}", "[a][b]names 1\n[1][x]1\n[2][y]3\n");
	gives("\xef\xbb\xbf{ \"a\" : -1.50e+3 }", "[a]names 1\n[-1.50e+3]1\n");
	gives("\n{\"a\":true,\"b\":false,\"c\":null,\"d\":NaN}\n", "[a][b][c][d]names 1\n[true][false][][]2\n");
	gives("{}\n{\"a\":1}\n{}\n", "[a]names 1\n[]1\n[1]2\n[]3\n");
	gives("{\"a\":1}\n{\"b\":2}\n", "[a][b]names 1\n[1][]1\n[][2]2\n");
	gives("{\"a\":{\"b\":1,\"c\":{\"d\":2}},\"e\":{}}\n", "[a.b][a.c.d]names 1\n[1][2]1\n");
	gives("{\"a\":[1, [\"x\"], {\"k\": null}],\"b\":[ ]}\n", "[a][b]names 1\n[[1, [\"x\"], {\"k\": null}]][[ ]]1\n");
	gives("{\"a\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"}\n", "[a]names 1\n[\"\\/\b\f\n\r\t]1\n");
	gives("{\"\\u0061\":\"\\u00e9\\u20AC\\ud83d\\ude00\"}\n", "[a]names 1\n[\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80]1\n");
	gives("{}\n", "");
}

TEST(wrong_lines)
{
	refused("{\"a\":1}\n[1]\n",
	        "t.jsonl:2: expected an object, as in {\"a\": 1}, because the file is JSON Lines, got something else at byte 1");
	refused("{\"a\":1}\n1,2\n", "t.jsonl:2: expected an object");
	refused("{\"a\":1\n}\n", "t.jsonl:1: expected a comma or the end of the object at byte 7");
	refused("{\"a\":1} x\n", "t.jsonl:1: expected the end of the line after the object, got more text");
	refused("{\"a\":1}{\"a\":2}\n", "t.jsonl:1: expected the end of the line after the object, got more text");
	refused("{\"a\":1,}\n", "t.jsonl:1: expected a key in quotes");
	refused("{\"a\":1,b:2}\n", "t.jsonl:1: expected a key in quotes");
	refused("{\"a\" 1}\n", "t.jsonl:1: expected a colon after the key");
	refused("{\"a\":}\n", "t.jsonl:1: expected a value");
	refused("{\"a\":", "t.jsonl:1: expected a value");
	refused("{\"a\":01}\n", "t.jsonl:1: expected a value");
	refused("{\"a\":1.}\n", "t.jsonl:1: expected a value");
	refused("{\"a\":1e}\n", "t.jsonl:1: expected a value");
	refused("{\"a\":Infinity}\n", "t.jsonl:1: expected a value");
	refused("{\"a\":[1 2]}\n", "t.jsonl:1: expected a comma or the end of the array");
	refused("{\"a\":[1}\n", "t.jsonl:1: expected a comma or the end of the array");
	refused("{\"a\":\"x\n", "t.jsonl:1: expected a closing quote, got the end of the line");
	refused("{\"a\":\"\\", "t.jsonl:1: expected an escape such as");
	refused("{\"a\":\"\\x\"}\n", "t.jsonl:1: expected an escape such as");
	refused("{\"a\":\"\\u00g0\"}\n", "t.jsonl:1: expected an escape such as");
	refused("{\"a\":\"\\u0000\"}\n", "t.jsonl:1: expected an escape such as");
	refused("{\"a\":\"\\ud83d\"}\n", "t.jsonl:1: expected an escape such as");
	refused("{\"a\":\"\\ude00\\ud83d\"}\n", "t.jsonl:1: expected an escape such as");
	refused("{\"a\":\"x\ty\"}\n", "t.jsonl:1: expected a string without control characters");
	refused("{\"a\":1,\"b\":2,\"a\":3}\n", "t.jsonl:1: expected each key once in an object, got a key twice");
	refused("{\"a\":{\"b\":1},\"a.b\":2}\n", "t.jsonl:1: expected each key once in an object, got a key twice");
}

/* Writes a file of `begin`, n times `part`, and `end`, which must be refused. */
static void refused_long(const char *begin, const char *part, int n, const char *end, const char *what)
{
	char *text = malloc(strlen(begin) + strlen(part) * (size_t)n + strlen(end) + 1), *to = stpcpy(text, begin);
	for (int i = 0; i < n; i++)
		to = stpcpy(to, part);
	strcpy(to, end);
	refused(text, what);
	free(text);
}

TEST(limits)
{
	refused_long("{\"a\":", "[", 100000, "\n", "expected at most 16 levels of objects and arrays, got more");
	refused_long("{\"a\":1}\n", "{\"a\":", 100000, "\n", "t.jsonl:2: expected at most 16 levels of objects and arrays, got more");
	refused_long("{\"a\":[", "{\"a\":", 100000, "\n", "expected at most 16 levels of objects and arrays, got more");
	refused_long("{\"", "x", 2000, "\":1}\n", "expected keys of at most 1023 bytes, got a longer key");
	refused_long("{\"a\":\"", "x", (1 << 20) + 1, "\"}\n", "expected strings of at most 1 MiB, got a longer string");
	refused_long("{\"a\":1", "0", (1 << 20) + 1, "}\n", "expected numbers of at most 1 MiB, got a longer number");
	refused_long("{\"a\":[", "1,", 1 << 20, "1]}\n", "expected arrays of at most 1 MiB of text, got a longer array");
}

/* A CSV file is not taken for JSON Lines. */
TEST(csv_files)
{
	gives("{a},b\n1,2\n", "[{a}][b]1\n[1][2]2\n");
	gives("x,\"{\"\"a\"\":1}\"\n", "[x][{\"a\":1}]1\n");
}

/* The same data gives the same table, from either kind of file. */
TEST(same_table)
{
	const struct gt_table_spec spec = {.target = (const char *const[]){"y"}, .ntarget = 1};
	struct gt_data_table a, b;
	struct gt_table_facts f, g;
	CHECK(learn_text("x,w,y\n1.5,red,a\n,blue,b\n2,,a\n-3,red,b\n", &spec, &a, &f) == GT_OK);
	CHECK(learn_text("{\"x\":1.5,\"w\":\"red\",\"y\":\"a\"}\n{\"x\":null,\"w\":\"blue\",\"y\":\"b\"}\n{\"x\":2,\"y\":\"a\"}\n"
	                 "{\"y\":\"b\",\"w\":\"red\",\"x\":-3}\n", &spec, &b, &g) == GT_OK);
	CHECK(a.n == 4 && b.n == 4 && b.header && !memcmp(a.row_id, b.row_id, 4 * sizeof *a.row_id));
	CHECK(f.column[0].mean == g.column[0].mean && f.column[1].words.n == g.column[1].words.n);
	gt_table_facts_free(&f);
	gt_table_facts_free(&g);
	gt_table_free(&a);
	gt_table_free(&b);
}

RUN_TESTS()
