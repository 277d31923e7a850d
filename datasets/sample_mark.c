#include "sample_mark.h"
#include <stdbool.h>
#include <xxhash.h>

uint64_t gt_mark_hash(const void *data, size_t n, uint64_t seed)
{
	uint64_t h = XXH3_64bits_withSeed(data, n, seed) >> 16;
	return h ? h : 1;
}

uint64_t gt_mark_path(const char *path)
{
	char clean[4096];
	size_t n = 0;
	for (bool begin = true; *path && n + 1 < sizeof clean; path++) {
		if (begin && (*path == '/' || (path[0] == '.' && path[1] == '/'))) {
			path += *path == '.';
			continue;
		}
		begin = *path == '/';
		clean[n++] = *path;
	}
	return gt_mark_hash(clean, n, 0);
}
