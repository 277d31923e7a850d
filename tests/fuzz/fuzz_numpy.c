/* A pair of .npy files: two bytes say how long the first is. What is accepted must be whole: every pixel and label is looked at. The first
 * one is also read as a table. */
#include "csv.h"
#include "dataset.h"
#include "fuzz_file.h"
#include "numpy_file.h"
#include <string.h>

static void read_arrays_as_table(const char *path)
{
	struct gt_csv *csv;
	struct gt_csv_record r = {.n = 1};
	struct gt_err e = {0};
	if (!gt_numpy_is_file(path))
		return;
	enum gt_code rc = gt_csv_open(path, ',', GT_UTF_8, 0, &csv, &e);
	FUZZ_ASSERT(rc == GT_OK || (rc == GT_EDATA && e.msg[0]));
	if (rc != GT_OK)
		return;
	while (rc == GT_OK && r.n) {
		rc = gt_csv_next(csv, &r, &e);
		for (int i = 0; i < r.n; i++)
			FUZZ_ASSERT(strlen(r.field[i]) == r.len[i]);
	}
	FUZZ_ASSERT(rc == GT_OK);
	gt_csv_close(csv);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz_file images, labels;
	if (size < 2)
		return 0;
	size_t first = (size_t)(data[0] << 8 | data[1]);
	first = first > size - 2 ? size - 2 : first;
	const char *const files[] = {fuzz_put(&images, data + 2, first), fuzz_put(&labels, data + 2 + first, size - 2 - first)};
	struct gt_dataset_spec s = {.name = "x", .format = "numpy", .train = files, .ntrain = 2, .max_bytes = 1 << 22};
	struct gt_dataset d, p;
	struct gt_err e = {0};
	read_arrays_as_table(files[0]);
	enum gt_code rc = gt_dataset_read(&s, GT_TRAIN, &d, &e);
	if (rc != GT_OK) {
		FUZZ_ASSERT((rc == GT_EDATA || rc == GT_ECONFIG) && e.code == rc && e.msg[0] && !d.images && !d.labels);
		return 0;
	}
	uint64_t sum = 0;
	for (int64_t i = 0; i < d.n * d.c * d.h * d.w; i++)
		sum += d.images[i];
	for (int64_t i = 0; i < d.n; i++)
		FUZZ_ASSERT(d.labels[i] >= 0 && d.labels[i] < d.classes);
	FUZZ_ASSERT(sum <= (uint64_t)(d.n * d.c * d.h * d.w) * 255 && d.n > 0);
	FUZZ_ASSERT(gt_dataset_probe(&s, GT_TRAIN, &p, &e) == GT_OK && p.n == d.n && p.c == d.c && p.h == d.h && p.w == d.w);
	gt_dataset_free(&p);
	gt_dataset_free(&d);
	return 0;
}
