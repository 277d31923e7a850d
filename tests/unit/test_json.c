#include "test.h"
#include "base/json.h"
#include <cjson/cJSON.h>
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
	/* Every one- and two-byte string survives an independent parser. */
	int tried = 0;
	for (int a = 1; a < 256; a++) {
		for (int b = 0; b < 256; b++) {
			char in[3] = {(char)a, (char)b, 0};
			gt_json_reset(&j);
			gt_json_string(&j, NULL, in);
			cJSON *v = cJSON_Parse(finish(&j));
			if (!v || !cJSON_IsString(v) || (a < 128 && b < 128 && strcmp(v->valuestring, in)))
				CHECK_MSG(false, "%02x %02x came back wrong: %s", a, b, j.text);
			cJSON_Delete(v);
			tried++;
		}
	}
	CHECK(tried == 255 * 256);
	gt_json_free(&j);
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
