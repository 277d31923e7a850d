/* libFuzzer target: the header of a safetensors file (make fuzz F=safetensors). Corpus: tests/corpus/checkpoint, which test_corpus.c
 * replays. */
#include "store/safetensors_file.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_arena *a;
	struct gt_err e;
	struct gt_st_slot *s;
	int n;
	uint64_t bytes = 0;
	if (size < 2 || gt_arena_open(&a, &e))
		return 0;
	bytes = (uint64_t)data[0] | (uint64_t)data[1] << 8; /* how long the data behind the header claims to be */
	enum gt_code code = gt_st_header_parse((const char *)data + 2, size - 2, bytes, "fuzz", a, &s, &n, &e);
	if (code && (code != GT_EDATA || !e.msg[0]))
		__builtin_trap();
	/* What is taken keeps the format's promises. */
	uint64_t sum = 0;
	for (int i = 0; !code && i < n; i++) {
		if (s[i].end < s[i].begin || s[i].end > bytes || gt_tdesc_bytes(&s[i].desc) != s[i].end - s[i].begin)
			__builtin_trap();
		if (i && strcmp(s[i - 1].name, s[i].name) >= 0)
			__builtin_trap();
		sum += s[i].end - s[i].begin;
	}
	if (!code && sum != bytes)
		__builtin_trap();
	gt_arena_close(a);
	return 0;
}
