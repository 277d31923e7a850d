#include "test.h"
#include <ftw.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct test_case *first, **last = &first;
static bool failed, skipped;
static const char *current;
static char dir[64];

void test_add(struct test_case *t)
{
	*last = t;
	last = &t->next;
}

void test_fail(const char *file, int line, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	printf("not ok %s: %s:%d: ", current, file, line);
	vprintf(fmt, ap);
	printf("\n");
	va_end(ap);
	failed = true;
}

void test_skip(const char *why)
{
	printf("skip %s: %s\n", current, why);
	skipped = true;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void remove_dir(void)
{
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *test_tmpdir(void)
{
	if (!dir[0]) {
		strcpy(dir, "/tmp/gtrain-test-XXXXXX");
		if (!mkdtemp(dir)) {
			perror("mkdtemp");
			exit(1);
		}
		atexit(remove_dir);
	}
	return dir;
}

const char *test_source(void)
{
	const char *s = getenv("GTRAIN_SRC");
	return s ? s : ".";
}

int test_run_all(int argc, char **argv)
{
	bool any = false;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (struct test_case *t = first; t; t = t->next) {
		if (argc > 1 && !strstr(t->name, argv[1]))
			continue;
		current = t->name;
		failed = skipped = false;
		t->fn();
		if (!failed && !skipped)
			printf("ok %s\n", t->name);
		any |= failed;
	}
	return any;
}
