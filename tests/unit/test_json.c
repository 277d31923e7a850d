#include "test.h"
#include "base/json.h"
#include "base/json_read.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *finish(struct gt_json *j)
{
	struct gt_err e;
	const char *s = "";
	CHECK_OK(gt_json_finish(j, &s, &e), e);
	return s;
}

TEST(json_shapes)
{
	struct gt_json j = {0};
	gt_json_object(&j, NULL);
	gt_json_string(&j, "event", "train");
	gt_json_int(&j, "step", -3);
	gt_json_uint(&j, "seed", UINT64_MAX);
	gt_json_double(&j, "loss", 2.302585092994046, 9);
	gt_json_bool(&j, "ok", true);
	gt_json_null(&j, "none");
	gt_json_array(&j, "list");
	gt_json_int(&j, NULL, 1);
	gt_json_object(&j, NULL);
	gt_json_end(&j);
	gt_json_array(&j, NULL);
	gt_json_end(&j);
	gt_json_end(&j);
	gt_json_string(&j, "last", NULL);
	gt_json_end(&j);
	CHECK(!strcmp(finish(&j), "{\"event\":\"train\",\"step\":-3,\"seed\":18446744073709551615,\"loss\":2.30258509,\"ok\":true,"
	                          "\"none\":null,\"list\":[1,{},[]],\"last\":null}"));
	char *before = j.text;
	gt_json_reset(&j);
	gt_json_int(&j, NULL, 7);
	CHECK(!strcmp(finish(&j), "7") && j.text == before);
	gt_json_free(&j);
}

TEST(json_strings_are_always_valid)
{
	struct gt_json j = {0};
	gt_json_array(&j, NULL);
	gt_json_string(&j, NULL, "q\" b\\ n\n t\t r\r c\x01 d\x7f");
	gt_json_string(&j, NULL, "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"); /* valid, kept */
	gt_json_string(&j, NULL, "\xff|\xc3|\xc0\x80|\xed\xa0\x80|\xf4\x90\x80\x80|\xe2\x82");
	gt_json_end(&j);
	const char *s = finish(&j);
	CHECK(strstr(s, "\"q\\\" b\\\\ n\\n t\\t r\\r c\\u0001 d\\u007f\""));
	CHECK(strstr(s, "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"));
	CHECK(strstr(s, "\"\\ufffd|\\ufffd|\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd|\\ufffd\\ufffd\\ufffd\\ufffd|\\ufffd\\ufffd\""));
	gt_json_free(&j);
	/* Every one- and two-byte string survives reading. */
	int tried = 0;
	struct gt_arena *arena;
	struct gt_err e;
	CHECK_OK(gt_arena_open(&arena, &e), e);
	for (int a = 1; a < 256; a++) {
		for (int b = 0; b < 256; b++) {
			char in[3] = {(char)a, (char)b, 0};
			gt_json_reset(&j);
			gt_json_string(&j, NULL, in);
			const char *text = finish(&j);
			const struct gt_json_value *v;
			if (gt_json_parse(text, strlen(text), "test", 0, 1, arena, &v, NULL) != GT_OK || !gt_json_text(v) ||
			    (a < 128 && b < 128 && strcmp(v->text, in)))
				CHECK_MSG(false, "%02x %02x came back wrong: %s", a, b, j.text);
			tried++;
		}
	}
	CHECK(tried == 255 * 256);
	gt_arena_close(arena);
	gt_json_free(&j);
}

/* ---- reading (base/json_read.h) -------------------------------------------------------------------------------------------------- */
static const struct {
	const char *json, *why; /* NULL: right */
} texts[] = {
    {" [ ] ", NULL},
    {"{\"a\":{\"a\":1},\"b\":[true,false,null,\"\"]}", NULL},
    {"[-0, 0.5, 1e3, -1.25E-2, 123456789012345678901234567890]", NULL},
    {"\"\xf0\x9f\x98\x80\"", NULL},
    {"", "expected a value"},
    {"[1", "expected a comma or a closing bracket"},
    {"[1,]", "malformed value"},
    {"{\"a\" 1}", "expected a colon"},
    {"{a:1}", "expected a key"},
    {"{\"a\":1,\"b\":2,\"a\":3}", "the key \"a\" appears twice"},
    {"{\"\\u0061\":1,\"a\":3}", "the key \"a\" appears twice"},
    {"01", "expected the end of the text"},
    {"1.", "malformed number"},
    {"-", "malformed number"},
    {"1e", "malformed number"},
    {"1111111111111111111111111111111111111111111111111111111111111", "number with too many digits"},
    {"+1", "malformed value"},
    {"nul", "malformed value"},
    {"NaN", "malformed value"},
    {"\"", "string without a closing quote"},
    {"\"\\", "string without a closing quote"},
    {"\"\\\"", "string without a closing quote"},
    {"\"\t\"", "control character in a string"},
    {"\"\\x\"", "unknown escape sequence in a string"},
    {"\"\\u12\"", "malformed escape sequence, or an escaped NUL, in a string"},
    {"\"\\u0000\"", "malformed escape sequence, or an escaped NUL, in a string"},
    {"\"\\ud83d\"", "half of a surrogate pair in a string"},
    {"\"\\ude00\"", "half of a surrogate pair in a string"},
    {"\"\\ud83d\\u0041\"", "half of a surrogate pair in a string"},
    {"\"\xc0\x80\"", "invalid UTF-8 in a string"},
    {"\"\xed\xa0\x80\"", "invalid UTF-8 in a string"},
    {"[[[[1]]]]", "nested too deeply"},
    {"[1,2,3,4,5,6,7,8,9]", "too many values"},
};

TEST(json_read_strict)
{
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		const struct gt_json_value *v = NULL;
		size_t n = strlen(texts[i].json);
		char *exact = malloc(n ? n : 1); /* a byte read behind it is AddressSanitizer's */
		struct gt_arena *a;
		struct gt_err e = {0};
		CHECK_OK(gt_arena_open(&a, &e), e);
		memcpy(exact, texts[i].json, n);
		enum gt_code code = gt_json_parse(exact, n, "F", 3, 9, a, &v, &e);
		CHECK_MSG(texts[i].why ? code == GT_EDATA && strstr(e.msg, texts[i].why) : code == GT_OK && v, "%s: %d, %s", texts[i].json, code,
		          e.msg);
		gt_arena_close(a);
		free(exact);
	}
}

TEST(json_read_values)
{
	static const char json[] =
	    "{\"s\":\"\\\"\\\\\\/"
	    "\\b\\f\\n\\r\\t\\u0041\\u00fc\\u20AC\\ud83d\\ude00\xc3\xbc\",\"n\":[-1.25e-2,9007199254740992,9007199254740994,1e999],"
	    "\"t\":true,\"f\":false,\"z\":null,\"o\":{}}";
	const struct gt_json_value *v, *n;
	struct gt_arena *a;
	struct gt_err e;
	int64_t whole;
	CHECK_OK(gt_arena_open(&a, &e), e);
	CHECK_OK(gt_json_parse(json, strlen(json), "F", 4, 100, a, &v, &e), e);
	const char *s = gt_json_text(gt_json_member(v, "s"));
	CHECK(s && !strcmp(s, "\"\\/\b\f\n\r\tA\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xbc"));
	n = gt_json_member(v, "n");
	CHECK(gt_json_is(n, GT_JSON_ARRAY) && n->child->number == -1.25e-2 && !gt_json_whole(n->child, &whole));
	CHECK(gt_json_whole(n->child->next, &whole) && whole == 9007199254740992);
	CHECK(!gt_json_whole(n->child->next->next, &whole) && isinf(n->child->next->next->next->number) && !n->child->next->next->next->next);
	CHECK(gt_json_is(gt_json_member(v, "t"), GT_JSON_TRUE) && gt_json_is(gt_json_member(v, "f"), GT_JSON_FALSE));
	CHECK(gt_json_is(gt_json_member(v, "z"), GT_JSON_NULL) && !gt_json_is(gt_json_member(v, "none"), GT_JSON_NULL));
	CHECK(gt_json_is(gt_json_member(v, "o"), GT_JSON_OBJECT) && !gt_json_member(v, "o")->child);
	CHECK(!gt_json_text(gt_json_member(v, "t")) && !gt_json_member(n, "s") && !gt_json_whole(NULL, &whole));
	gt_arena_close(a);
}

TEST(json_doubles_round_trip)
{
	static const double v[] = {0, -0.0, 1, -1, 0.1, 1e-5, 1.0 / 3, DBL_MAX, DBL_MIN, 4.9e-324, 1e300, 123456789.125};
	for (size_t i = 0; i < sizeof v / sizeof v[0]; i++) {
		struct gt_json j = {0};
		gt_json_double(&j, NULL, v[i], 17);
		double back = strtod(finish(&j), NULL);
		CHECK(!memcmp(&back, &v[i], sizeof back));
		gt_json_free(&j);
	}
	static const double odd[] = {NAN, INFINITY, -INFINITY};
	for (int i = 0; i < 3; i++) {
		struct gt_json j = {0};
		gt_json_double(&j, NULL, odd[i], 17);
		CHECK(!strcmp(finish(&j), "null"));
		gt_json_free(&j);
	}
}

TEST(json_misuse_is_told)
{
	struct gt_err e;
	const char *s;
	for (int kind = 0; kind < 6; kind++) {
		struct gt_json j = {0};
		if (kind == 0)
			gt_json_object(&j, NULL); /* never closed */
		else if (kind == 1)
			gt_json_int(&j, "key", 1); /* a key at the top */
		else if (kind == 2)
			gt_json_object(&j, NULL), gt_json_int(&j, NULL, 1), gt_json_end(&j); /* no key in an object */
		else if (kind == 3)
			gt_json_int(&j, NULL, 1), gt_json_int(&j, NULL, 2); /* two values */
		else if (kind == 4)
			for (int i = 0; i <= GT_JSON_DEPTH; i++)
				gt_json_array(&j, NULL);
		CHECK(gt_json_finish(&j, &s, &e) == GT_EINTERNAL);
		gt_json_free(&j);
	}
}

RUN_TESTS()
