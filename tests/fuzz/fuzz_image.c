/* One picture for `gtrain predict`: PNG, JPEG, WebP or IDX, whatever its first bytes say. */
#include "dataset.h"
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_file file;
	if (!size)
		return 0;
	uint8_t *out;
	int64_t n, c = data[0] & 1 ? 3 : 1, side = data[0] & 2 ? 32 : 7;
	bool scaled;
	struct gt_err e = {0};
	struct gt_transform_list none = {0};
	enum gt_code rc = gt_image_read(fuzz_put(&file, data + 1, size - 1), none, c, side, side, 10, &out, &n, &scaled, &e);
	if (rc != GT_OK) {
		FUZZ_ASSERT(rc == GT_EDATA && e.code == rc && e.msg[0] && !out && !n);
		return 0;
	}
	uint64_t sum = 0;
	for (int64_t i = 0; i < n * c * side * side; i++)
		sum += out[i];
	FUZZ_ASSERT(n > 0 && n <= 10 && sum <= (uint64_t)(n * c * side * side) * 255);
	free(out);
	return 0;
}
