/* The fuzzers of datasets/ without a fuzzer: their seeds, and some thousand mutations of each that are the same every time. */
#include "test.h"
#include <dirent.h>
#include <string.h>

#define LLVMFuzzerTestOneInput fuzz_idx
#include "../fuzz/fuzz_idx.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_cifar
int fuzz_cifar(const uint8_t *data, size_t size);
#include "../fuzz/fuzz_cifar.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_image
int fuzz_image(const uint8_t *data, size_t size);
#include "../fuzz/fuzz_image.c"
#undef LLVMFuzzerTestOneInput

#define LLVMFuzzerTestOneInput fuzz_transform
int fuzz_transform(const uint8_t *data, size_t size);
#include "../fuzz/fuzz_transform.c"
#undef LLVMFuzzerTestOneInput

#define LLVMFuzzerTestOneInput fuzz_tar
int fuzz_tar(const uint8_t *data, size_t size);
#include "../fuzz/fuzz_tar.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_source
int fuzz_source(const uint8_t *data, size_t size);
#include "../fuzz/fuzz_source.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_csv
int fuzz_csv(const uint8_t *data, size_t size);
#include "../fuzz/fuzz_csv.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_numpy
int fuzz_numpy(const uint8_t *data, size_t size);
#include "../fuzz/fuzz_numpy.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_table
int fuzz_table(const uint8_t *data, size_t size);
#include "../fuzz/fuzz_table.c"
#undef LLVMFuzzerTestOneInput

#define LLVMFuzzerTestOneInput fuzz_text
int fuzz_text(const uint8_t *data, size_t size);
#include "../fuzz/fuzz_text.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_vocab
int fuzz_vocab(const uint8_t *data, size_t size);
#include "../fuzz/fuzz_vocab.c"
#undef LLVMFuzzerTestOneInput
#define LLVMFuzzerTestOneInput fuzz_index
int fuzz_index(const uint8_t *data, size_t size);
#include "../fuzz/fuzz_index.c"
#undef LLVMFuzzerTestOneInput

enum { MUTANTS = 400, CAP = 16384 };

static uint32_t next(uint32_t *r)
{
	*r = *r * 1664525u + 1013904223u;
	return *r >> 8;
}

static size_t mutate(uint8_t *b, size_t n, uint32_t *r)
{
	for (uint32_t k = next(r) % 4 + 1; k-- && n;) {
		size_t at = next(r) % n;
		switch (next(r) % 6) {
		case 0:
			b[at] ^= (uint8_t)(1u << next(r) % 8);
			break;
		case 1:
			b[at] = (uint8_t)next(r);
			break;
		case 2:
			b[at] = next(r) % 2 ? 0xff : 0;
			break;
		case 3: /* cut */
			n = at;
			break;
		case 4: /* take out */
			memmove(b + at, b + at + 1, n - at - 1);
			n--;
			break;
		default: /* double */
			if (n < CAP / 2) {
				memmove(b + at + 1, b + at, n - at);
				n++;
			}
		}
	}
	return n;
}

static void replay(const char *word, int (*fn)(const uint8_t *data, size_t size))
{
	char dir[600], path[900];
	int seeds = 0, tried = 0;
	snprintf(dir, sizeof dir, "%s/tests/corpus/data", test_source());
	DIR *d = opendir(dir);
	CHECK_MSG(d, "no %s", dir);
	for (struct dirent *e; d && (e = readdir(d));) {
		static uint8_t seed[CAP], b[CAP];
		if (strncmp(e->d_name, word, strlen(word)))
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
		FILE *f = fopen(path, "rb");
		size_t n = f ? fread(seed, 1, sizeof seed, f) : 0;
		if (f)
			fclose(f);
		CHECK_MSG(n > 0 && n < CAP / 2, "%s: %zu bytes", path, n);
		fn(seed, n);
		uint32_t r = (uint32_t)n;
		for (int i = 0; i < MUTANTS; i++, tried++) {
			memcpy(b, seed, n);
			fn(b, mutate(b, n, &r));
		}
		seeds++;
	}
	if (d)
		closedir(d);
	CHECK_MSG(seeds >= 3, "%d seeds for %s", seeds, word);
	printf("# fuzz %s: %d seeds, %d mutants\n", word, seeds, tried);
}

TEST(fuzz_replay_idx)
{
	replay("idx-", fuzz_idx);
}

TEST(fuzz_replay_cifar)
{
	replay("cifar-", fuzz_cifar);
}

TEST(fuzz_replay_image)
{
	replay("image-", fuzz_image);
}

TEST(fuzz_replay_transform)
{
	replay("transform-", fuzz_transform);
}

TEST(fuzz_replay_tar)
{
	replay("tar-", fuzz_tar);
}

TEST(fuzz_replay_source)
{
	replay("source-", fuzz_source);
}

TEST(fuzz_replay_csv)
{
	replay("csv-", fuzz_csv);
}

TEST(fuzz_replay_numpy)
{
	replay("numpy-", fuzz_numpy);
}

TEST(fuzz_replay_text)
{
	replay("text-", fuzz_text);
}

/* More tokens than the list of the fuzz target has room for, with every limit. */
TEST(fuzz_long_text)
{
	enum { WORDS = 60000 };
	uint8_t *text = malloc(1 + 3 * WORDS);
	CHECK(text != NULL);
	for (int i = 0; text && i < WORDS; i++)
		memcpy(text + 1 + 3 * i, "ab ", 3);
	for (int choice = 0; text && choice < 256; choice += 51) {
		text[0] = (uint8_t)choice;
		fuzz_text(text, 1 + 3 * WORDS);
	}
	free(text);
}

TEST(fuzz_replay_vocab)
{
	replay("vocab-", fuzz_vocab);
}

TEST(fuzz_replay_table)
{
	replay("table-", fuzz_table);
}

TEST(fuzz_replay_index)
{
	replay("index-", fuzz_index);
}

RUN_TESTS()
