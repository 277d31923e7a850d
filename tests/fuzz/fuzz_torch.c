/* libFuzzer target: a file of torch.save (make fuzz F=torch). Corpus: tests/corpus/checkpoint, which test_corpus.c replays. */
#include "store/torch_file.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gt_arena *a;
	struct gt_err e;
	struct gt_st_slot *s;
	int n;
	if (gt_arena_open(&a, &e))
		return 0;
	enum gt_code code = gt_torch_slots(data, size, "fuzz", a, &s, &n, &e);
	if (code && (code != GT_EDATA || !e.msg[0]))
		__builtin_trap();
	/* What is taken can be read in place. */
	for (int i = 0; !code && i < n; i++) {
		if (s[i].end < s[i].begin || s[i].end > size || gt_tdesc_bytes(&s[i].desc) != s[i].end - s[i].begin)
			__builtin_trap();
		if (s[i].begin % gt_dtype_size(s[i].desc.dtype) || (i && strcmp(s[i - 1].name, s[i].name) >= 0))
			__builtin_trap();
	}
	gt_arena_close(a);
	return 0;
}
