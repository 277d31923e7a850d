/* libFuzzer target: manifest.json (make fuzz F=manifest). As every manifest is sealed with its digest, the input is tried as it is and
 * sealed. */
#include "store/ckpt_manifest.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_one(const char *text, size_t n)
{
	struct gt_arena *a;
	struct gt_err e;
	struct gt_ckpt_manifest m, again;
	struct gt_json j = {0};
	if (gt_arena_open(&a, &e))
		return;
	enum gt_code code = gt_ckpt_manifest_parse(text, n, "fuzz", a, &m, &e);
	if (code && (code != GT_EDATA || !e.msg[0]))
		__builtin_trap();
	/* What is taken can be written and read again, and means the same. */
	if (!code &&
	    (gt_ckpt_manifest_print(&m, &j, &e) || gt_ckpt_manifest_parse(j.text, j.len, "again", a, &again, &e) ||
	     m.meta.step != again.meta.step || m.meta.seed != again.meta.seed || m.serial != again.serial ||
	     strcmp(m.meta.name, again.meta.name) || m.meta.has_best != again.meta.has_best || memcmp(m.file, again.file, sizeof m.file)))
		__builtin_trap();
	gt_json_free(&j);
	gt_arena_close(a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char hex[GT_DIGEST_HEX];
	try_one((const char *)data, size);
	char *text = malloc(size + 64);
	if (!text)
		return 0;
	memcpy(text, data, size);
	gt_digest_bytes(data, size, hex);
	int n = sprintf(text + size, ",\"xxh3\":\"%s\"}\n", hex);
	try_one(text, size + (size_t)n);
	free(text);
	return 0;
}
