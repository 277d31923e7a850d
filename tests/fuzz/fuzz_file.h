/* What a fuzzer of a file reader needs: the input as a file that is no file. Build and run: `make fuzz F=idx`. */
#ifndef GT_TESTS_FUZZ_FILE_H
#define GT_TESTS_FUZZ_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct fuzz_file {
	int fd;
	char path[32];
};

/* The file holds these bytes until the next call with the same f (zeroed at first). */
static inline const char *fuzz_put(struct fuzz_file *f, const uint8_t *data, size_t size)
{
	if (!f->path[0]) {
		f->fd = memfd_create("fuzz", MFD_CLOEXEC);
		if (f->fd < 0)
			abort();
		snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->fd);
	}
	if (ftruncate(f->fd, 0) || pwrite(f->fd, data, size, 0) != (ssize_t)size)
		abort();
	return f->path;
}

#define FUZZ_ASSERT(cond) ((cond) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond), abort()))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
