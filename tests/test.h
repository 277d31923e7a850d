/* The unit tests' frame. A test program is a list of functions: TEST(name) { … CHECK(…); } and RUN_TESTS() at the end.
 * It prints one line a test, `ok NAME`, `not ok NAME: why` or `skip NAME: why`, which tests/run counts. */
#ifndef GT_TESTS_TEST_H
#define GT_TESTS_TEST_H

#include <stdbool.h>
#include <stdio.h>

struct test_case {
	const char *name;
	void (*fn)(void);
	struct test_case *next;
};
void test_add(struct test_case *t);
int test_run_all(int argc, char **argv); /* argv[1]: only tests whose name contains it */
void test_fail(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void test_skip(const char *why);         /* counts the test as skipped; return after it */
const char *test_tmpdir(void);           /* a fresh folder, removed at exit */
const char *test_source(void);           /* the root of the source tree ($GTRAIN_SRC or ".") */

#define TEST(id)                                                           \
	static void test_##id(void);                                           \
	static struct test_case case_##id = {#id, test_##id, NULL};            \
	__attribute__((constructor)) static void add_##id(void)                \
	{                                                                      \
		test_add(&case_##id);                                              \
	}                                                                      \
	static void test_##id(void)

#define CHECK(cond) ((cond) ? (void)0 : test_fail(__FILE__, __LINE__, "%s", #cond))
#define CHECK_MSG(cond, ...) ((cond) ? (void)0 : test_fail(__FILE__, __LINE__, __VA_ARGS__))
/* A gt_code that must be GT_OK; prints e.msg. */
#define CHECK_OK(expr, e) ((expr) == GT_OK ? (void)0 : test_fail(__FILE__, __LINE__, "%s: %s", #expr, (e).msg))

#define RUN_TESTS()                        \
	int main(int argc, char **argv)        \
	{                                      \
		return test_run_all(argc, argv);   \
	}

#endif
