/* XXH_INLINE_ALL inlines XXH3, so that the backends, which link engine/base, do not need libxxhash. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/digest.h"
#include "base/arena.h"
#include <stdio.h>

struct gt_digest {
	XXH3_state_t *state;
};

static void format_hash(XXH128_hash_t h, char hex[GT_DIGEST_HEX])
{
	snprintf(hex, GT_DIGEST_HEX, "%016llx%016llx", (unsigned long long)h.high64, (unsigned long long)h.low64);
}

void gt_digest_bytes(const void *data, size_t n, char hex[GT_DIGEST_HEX])
{
	format_hash(XXH3_128bits(data, n), hex);
}

enum gt_code gt_digest_open(struct gt_digest **out, struct gt_err *err)
{
	struct gt_digest *d = malloc(sizeof *d);
	if (d && !(d->state = XXH3_createState())) { /* the state must be aligned to 64 bytes, which malloc does not guarantee */
		free(d);
		d = NULL;
	}
	*out = d;
	if (!d)
		return gt_fail_memory(err, sizeof(XXH3_state_t));
	gt_digest_start(d);
	return GT_OK;
}

void gt_digest_close(struct gt_digest *d)
{
	if (!d)
		return;
	XXH3_freeState(d->state);
	free(d);
}

void gt_digest_start(struct gt_digest *d)
{
	XXH3_128bits_reset(d->state);
}

void gt_digest_add(struct gt_digest *d, const void *data, size_t n)
{
	if (n)
		XXH3_128bits_update(d->state, data, n);
}

void gt_digest_get(const struct gt_digest *d, char hex[GT_DIGEST_HEX])
{
	format_hash(XXH3_128bits_digest(d->state), hex);
}

const char *gt_digest_library(char *buf, size_t size)
{
	unsigned v = XXH_versionNumber();
	snprintf(buf, size, "xxHash %u.%u.%u", v / 10000, v / 100 % 100, v % 100);
	return buf;
}
