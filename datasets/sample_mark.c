#include "sample_mark.h"
#include "tar_reader.h"
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

uint64_t gt_mark_hash(const void *data, size_t n, uint64_t seed)
{
	uint64_t h = XXH3_64bits_withSeed(data, n, seed) >> 16;
	return h ? h : 1;
}

uint64_t gt_mark_path(const char *path)
{
	char clean[4096];
	snprintf(clean, sizeof clean, "%s", path);
	gt_tar_clean_path(clean);
	return gt_mark_hash(clean, strlen(clean), 0);
}
