/* One CIFAR file, plain or gzip: the first byte chooses CIFAR-10 or CIFAR-100. */
#include "dataset.h"
#include "fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_file file;
	if (!size)
		return 0;
	const char *const files[] = {fuzz_put(&file, data + 1, size - 1)};
	struct gt_dataset_spec s = {
	    .name = "x", .format = data[0] & 1 ? "cifar100" : "cifar10", .train = files, .ntrain = 1, .max_bytes = 1 << 22};
	struct gt_dataset d;
	struct gt_err e = {0};
	enum gt_code rc = gt_dataset_read(&s, GT_TRAIN, &d, &e);
	if (rc != GT_OK) {
		FUZZ_ASSERT(rc == GT_EDATA && e.code == rc && e.msg[0] && !d.images && !d.labels);
		return 0;
	}
	uint64_t sum = 0;
	for (int64_t i = 0; i < d.n * 3072; i++)
		sum += d.images[i];
	for (int64_t i = 0; i < d.n; i++)
		FUZZ_ASSERT(d.labels[i] >= 0 && d.labels[i] < d.classes);
	FUZZ_ASSERT(sum <= (uint64_t)d.n * 3072 * 255 && d.n > 0 && d.c == 3 && d.h == 32 && d.w == 32);
	gt_dataset_free(&d);
	return 0;
}
