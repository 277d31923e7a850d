/* Replays what the fuzzers of the files of checkpoints and of what a run reads found worth keeping, without a fuzzer: each input once, cut
 * short at every byte, and with bytes changed. The targets trap on a broken promise, so a failure ends this program. The inputs:
 * tests/corpus/checkpoint/<target>-*, tests/corpus/run/<target>-*. */
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
#define LLVMFuzzerTestOneInput fuzz_torch
#include "fuzz_torch.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_times
int fuzz_times(const uint8_t *data, size_t size);
#include "fuzz_times.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_members
int fuzz_members(const uint8_t *data, size_t size);
#include "fuzz_members.c"
#undef LLVMFuzzerTestOneInput

/* Runs the target on the input with one to four of its bytes changed, the same ones in each run of this program. */
static int mutate(const char *data, size_t n, int (*target)(const uint8_t *data, size_t size))
{
	uint64_t random = 88172645463325252u;
	int runs = 0;
	for (; runs < 2000 && n; runs++) {
		uint8_t *copy = malloc(n);
		memcpy(copy, data, n);
		for (int k = 0; k <= runs % 4; k++) {
			random ^= random << 13, random ^= random >> 7, random ^= random << 17;
			copy[(random >> 16) % n] = (uint8_t)(random >> 8 & 1 ? random : copy[(random >> 40) % n]);
		}
		target(copy, n);
		free(copy);
	}
	return runs;
}

static void replay(const char *folder, const char *name, int least, int (*target)(const uint8_t *data, size_t size))
{
	char dir[512], path[1024];
	int inputs = 0, runs = 0;
	snprintf(dir, sizeof dir, "%s/tests/corpus/%s", test_source(), folder);
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
		runs += mutate(data, n, target);
		free(data);
		inputs++;
	}
	if (d)
		closedir(d);
	CHECK(inputs >= least);
	printf("# fuzz corpus %s: %d inputs, %d runs\n", name, inputs, runs);
}

TEST(corpus_safetensors)
{
	replay("checkpoint", "safetensors", 20, fuzz_safetensors);
}

TEST(corpus_manifest)
{
	replay("checkpoint", "manifest", 20, fuzz_manifest);
}

TEST(corpus_torch)
{
	replay("checkpoint", "torch", 20, fuzz_torch);
}

TEST(corpus_times)
{
	replay("run", "times", 7, fuzz_times);
}

TEST(corpus_members)
{
	replay("run", "members", 8, fuzz_members);
}

RUN_TESTS()
