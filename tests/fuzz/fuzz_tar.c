/* A tar archive. What is listed must lie in the file: every member is read, has a name that does not leave the archive, and its bytes. */
#include "folder.h"
#include "fuzz_file.h"
#include <fcntl.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_file file;
	struct gt_source *s;
	struct gt_err e = {0};
	struct gt_bytes_buf buf = {0};
	int fd = open(fuzz_put(&file, data, size), O_RDONLY | O_CLOEXEC);
	FUZZ_ASSERT(fd >= 0 && gt_source_open("x.tar", fd, true, &s, &e) == GT_OK);
	enum gt_code rc = gt_folder_list(s, &gt_folder_images, &e);
	FUZZ_ASSERT(rc == GT_OK || (rc == GT_EDATA && e.code == rc && e.msg[0]));
	for (int64_t i = 0; rc == GT_OK && i < s->n; i++) {
		const char *path = gt_source_path(s, i);
		FUZZ_ASSERT(gt_folder_wants(&gt_folder_images, path) && *path != '/' && strncmp(path, "../", 3) && !strstr(path, "/../"));
		FUZZ_ASSERT(s->file[i].offset <= size && s->file[i].size <= size - s->file[i].offset);
		enum gt_code got = gt_source_read(s, i, &buf, &e);
		FUZZ_ASSERT(got == GT_OK ? buf.size == s->file[i].size && !memcmp(buf.data, data + s->file[i].offset, buf.size)
		                         : got == GT_EDATA && !s->file[i].size);
	}
	free(buf.data);
	gt_source_close(s);
	return 0;
}
