/* A fresh folder in memory where there is one, for tests that make and remove thousands of small trees. Removed at exit. */
#ifndef GT_TESTS_FAST_DIR_H
#define GT_TESTS_FAST_DIR_H

#include "base/fileio.h"
#include "test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char fast_path[64];

static void fast_remove(void)
{
	gt_tree_remove(fast_path, NULL);
}

static inline const char *fast_dir(void)
{
	if (fast_path[0])
		return fast_path;
	strcpy(fast_path, "/dev/shm/gtrain-test-XXXXXX");
	if (mkdtemp(fast_path))
		atexit(fast_remove);
	else
		snprintf(fast_path, sizeof fast_path, "%s", test_tmpdir());
	return fast_path;
}

#endif
