/* libFuzzer on a config in memory: whatever the bytes, it loads or gives GT_ECONFIG with a line, and what loads resolves to a text that
 * loads to itself. A first byte 0x01 makes the rest of the first line a --set. `make fuzz F=conf`; the corpus is replayed by
 * tests/unit/test_conf_bad.c. */
#include "conf/conf.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct gt_conf *c, *again;
	struct gt_err e;
	char set[256];
	const char *sets[1] = {set}, *text = (const char *)data, *nl = n ? memchr(data, '\n', n) : NULL;
	int nsets = 0, line = 0;
	if (n && data[0] == 1 && nl && nl - text < (int)sizeof set) {
		snprintf(set, sizeof set, "%.*s", (int)(nl - text - 1), text + 1);
		nsets = 1;
		n -= (size_t)(nl + 1 - text);
		text = nl + 1;
	}
	enum gt_code code = gt_conf_load_text("f.cfg", text, n, sets, nsets, &c, &e);
	if (code == GT_ECONFIG && sscanf(e.msg, "f.cfg:%d:", &line) != 1 && strncmp(e.msg, "--set ", 6))
		abort();
	if (code == GT_ECONFIG && strchr(e.msg, '\n'))
		abort();
	if (code != GT_OK)
		return 0;
	if (gt_conf_load_text("resolved", c->text, strlen(c->text), NULL, 0, &again, &e) != GT_OK || strcmp(c->text, again->text)) {
		fprintf(stderr, "%s\n", c->text);
		abort();
	}
	gt_conf_free(again);
	gt_conf_free(c);
	return 0;
}
