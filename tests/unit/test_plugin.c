#include "base/plugin.h"
#include "test.h"
#include <string.h>

TEST(plugin_missing_is_unavailable)
{
	void *p = (void *)1;
	struct gt_err e = {0};
	CHECK(gt_plugin_open("no-such-backend", "x", &p, &e) == GT_EUNAVAILABLE);
	CHECK(!p);
	CHECK_MSG(strstr(e.msg, "/lib/gtrain/no-such-backend.so"), "%s", e.msg);
}

TEST(plugin_name_cannot_be_a_path)
{
	static const char *const bad[] = {"", "../cpu", "/tmp/x", "a/b", ".", "CPU", "a b", "x.so"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		void *p;
		struct gt_err e = {0};
		CHECK(gt_plugin_open(bad[i], "x", &p, &e) == GT_EUNAVAILABLE);
		CHECK_MSG(strstr(e.msg, "is not the name of a plugin"), "\"%s\": %s", bad[i], e.msg);
	}
}

/* fetch.so is built wherever the tests are: finds it from build/tests/unit/ */
TEST(plugin_opens_and_misses_symbol)
{
	void *p, *q;
	struct gt_err e = {0};
	CHECK_OK(gt_plugin_open("fetch", "gt_fetch_plugin", &p, &e), e);
	CHECK_OK(gt_plugin_open("fetch", "gt_fetch_plugin", &q, &e), e);
	CHECK(p && p == q);
	CHECK(gt_plugin_open("fetch", "gt_not_there", &q, &e) == GT_EINTERNAL);
	CHECK_MSG(strstr(e.msg, "gt_not_there"), "%s", e.msg);
}

RUN_TESTS()
