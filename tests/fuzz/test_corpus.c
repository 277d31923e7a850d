/* Replays what the fuzzers of checkpoints' files found worth keeping, without a fuzzer: each input once, and cut short at every byte. The
 * targets trap on a broken promise, so a failure ends this program. The inputs: tests/corpus/checkpoint/<target>-*. */
#include "test.h"
#include "base/fileio.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#define LLVMFuzzerTestOneInput fuzz_safetensors
#include "fuzz_safetensors.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_manifest
#include "fuzz_manifest.c"
#undef LLVMFuzzerTestOneInput

static void replay(const char *name, int (*target)(const uint8_t *data, size_t size))
{
	char dir[512], path[1024];
	int inputs = 0, runs = 0;
	snprintf(dir, sizeof dir, "%s/tests/corpus/checkpoint", test_source());
	DIR *d = opendir(dir);
	CHECK_MSG(d, "%s is missing", dir);
	for (struct dirent *i; d && (i = readdir(d));) {
		struct gt_err e;
		char *data;
		size_t n;
		if (strncmp(i->d_name, name, strlen(name)))
			continue;
		snprintf(path, sizeof path, "%s/%.200s", dir, i->d_name);
		CHECK_OK(gt_file_read(path, 1 << 16, &data, &n, &e), e);
		for (size_t len = 0; len <= n; len++, runs++) {
			char *exact = malloc(len + 1); /* of its own length, for the sanitizer to watch its end */
			memcpy(exact, data, len);
			exact = realloc(exact, len ? len : 1);
			target((const uint8_t *)exact, len);
			free(exact);
		}
		free(data);
		inputs++;
	}
	if (d)
		closedir(d);
	CHECK(inputs >= 20);
	printf("# fuzz corpus %s: %d inputs, %d runs\n", name, inputs, runs);
}

TEST(corpus_safetensors)
{
	replay("safetensors", fuzz_safetensors);
}

TEST(corpus_manifest)
{
	replay("manifest", fuzz_manifest);
}

RUN_TESTS()
