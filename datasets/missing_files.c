#include "missing_files.h"
#include "format.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MOST = 6 };

struct set {
	const char *what;
	const char *sub[4];     /* subdirectories that may have the files; NULL ends the list */
	const char *name[MOST]; /* names of the files of the training split, then of those of the test split */
	int ntrain, ntest;
	bool has_test;          /* every copy of the dataset has a test split; false: it may be missing */
};

#define IDX_SUB {"", "/raw", "/FashionMNIST/raw", "/MNIST/raw"}
static const struct set sets[] = {
    {"cifar10", {"", "/cifar-10-batches-bin"}, {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
     "data_batch_5.bin", "test_batch.bin"}, 5, 1, true},
    {"cifar100", {"", "/cifar-100-binary"}, {"train.bin", "test.bin"}, 1, 1, true},
    {"an IDX dataset", IDX_SUB, {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
     2, 2, false},
    {"an IDX dataset", IDX_SUB, {"train-images.idx3-ubyte", "train-labels.idx1-ubyte", "t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"},
     2, 2, false},
};

static bool has_file(const char *dir, const char *name)
{
	struct gt_paths p = {0};
	bool found = gt_paths_find(&p, dir, name);
	gt_paths_free(&p);
	return found;
}

/* Writes "a, b and c" to buf. Returns the number of names that dir lacks. */
static int list_missing(const char *dir, const char *const *name, int n, char *buf, size_t size)
{
	const char *lacks[MOST];
	int missing = 0;
	*buf = 0;
	for (int i = 0; i < n; i++)
		if (!has_file(dir, name[i]))
			lacks[missing++] = name[i];
	for (int i = 0; i < missing; i++) {
		size_t at = strlen(buf);
		snprintf(buf + at, size - at, "%s%s", !i ? "" : i + 1 < missing ? ", " : " and ", lacks[i]);
	}
	return missing;
}

static bool find_missing(const struct set *s, const char *dir, enum gt_split split, char *buf, size_t size)
{
	char list[400], rest[400];
	int of_train = list_missing(dir, s->name, s->ntrain, list, sizeof list);
	int of_test = list_missing(dir, s->name + s->ntrain, s->ntest, split == GT_TEST ? list : rest, sizeof list);
	bool some = of_train < s->ntrain || of_test < s->ntest;
	int missing = split == GT_TEST ? of_test : of_train;
	if (!some || !missing || (split == GT_TEST && !s->has_test && missing == s->ntest))
		return false;
	snprintf(buf, size, "%.400s: expected all files of %s, but %s %s missing", dir, s->what, list, missing == 1 ? "is" : "are");
	return true;
}

bool gt_missing_files(const char *dir, enum gt_split split, char *buf, size_t size)
{
	char in[PATH_MAX];
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
		for (int k = 0; k < 4 && sets[i].sub[k]; k++)
			if ((size_t)snprintf(in, sizeof in, "%s%s", dir, sets[i].sub[k]) < sizeof in && find_missing(&sets[i], in, split, buf, size))
				return true;
	return false;
}
