/* Files for the tests of datasets/: written into test_tmpdir(), folders made. */
#ifndef GT_TESTS_UNIT_DATA_FILES_H
#define GT_TESTS_UNIT_DATA_FILES_H

#include "test.h"
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Path of a file; good until the next call. */
static inline const char *at(const char *name)
{
	static char path_buf[1024];
	snprintf(path_buf, sizeof path_buf, "%s/%s", test_tmpdir(), name);
	return path_buf;
}

static inline void put(const char *name, const void *data, size_t size, bool gz)
{
	char path[1024];
	snprintf(path, sizeof path, "%s", at(name));
	for (char *s = path + strlen(test_tmpdir()) + 1; (s = strchr(s, '/')); s++) {
		*s = '\0';
		mkdir(path, 0755);
		*s = '/';
	}
	unlink(path); /* ext4 writes a file out that is cut and written again: thousands of them would take a minute */
	gzFile f = gzopen(path, gz ? "wb6" : "wbT");
	CHECK(f && gzwrite(f, data, (unsigned)size) == (int)size);
	gzclose(f);
}

/* An IDX header and `count` items of `item` bytes that count up. */
static inline size_t idx(uint8_t *b, int type, int rank, const uint32_t *dim, size_t item)
{
	size_t n = 4, count = 1;
	b[0] = b[1] = 0;
	b[2] = (uint8_t)type;
	b[3] = (uint8_t)rank;
	for (int i = 0; i < rank; i++) {
		for (int k = 3; k >= 0; k--)
			b[n++] = (uint8_t)(dim[i] >> 8 * k);
		count *= dim[i];
	}
	for (size_t i = 0; i < count; i++)
		for (size_t k = item; k-- > 0;)
			b[n++] = k ? 0 : (uint8_t)(rank == 1 ? i % 10 : i * 7);
	return n;
}

#endif
