/* Event files: the checksum's published value, and a file read back record by record. */
#include "run/tensorboard.h"
#include "test.h"
#include <dirent.h>
#include <math.h>
#include <string.h>

TEST(crc32c_check_value)
{
	CHECK(gt_crc32c("123456789", 9) == 0xe3069283u); /* RFC 3720, B.4 and every CRC catalogue */
}

static uint32_t masked(const uint8_t *p, size_t n)
{
	uint32_t c = gt_crc32c(p, n);
	return ((c >> 15) | (c << 17)) + 0xa282ead8u;
}

static bool has(const uint8_t *p, size_t n, const void *word, size_t len)
{
	return memmem(p, n, word, len) != NULL;
}

TEST(file_reads_back)
{
	struct gt_tensorboard *t;
	struct gt_err e;
	struct gt_event ev = {.kind = GT_EV_TRAIN, .step = 300, .loss = 0.5, .lr = 0.25, .samples_per_s = 8};
	uint8_t buf[4096];
	const uint8_t *rec[8];
	size_t len[8];
	int n = 0;
	float half = 0.5f;
	CHECK_OK(gt_tensorboard_open(test_tmpdir(), 299, &t, &e), e);
	CHECK_OK(gt_tensorboard_write(t, &ev, &e), e);
	ev = (struct gt_event){.kind = GT_EV_EVAL, .step = 300, .split = "test", .loss = 0.5, .acc = 0.75};
	CHECK_OK(gt_tensorboard_write(t, &ev, &e), e);
	ev.kind = GT_EV_END;
	CHECK_OK(gt_tensorboard_write(t, &ev, &e), e); /* writes nothing */
	gt_tensorboard_close(t);

	DIR *d = opendir(test_tmpdir());
	struct dirent *de;
	char path[600] = "";
	while ((de = readdir(d)))
		if (strstr(de->d_name, "tfevents"))
			snprintf(path, sizeof path, "%s/%s", test_tmpdir(), de->d_name);
	closedir(d);
	FILE *f = fopen(path, "r");
	CHECK(f != NULL);
	size_t size = f ? fread(buf, 1, sizeof buf, f) : 0, at = 0;
	if (f)
		fclose(f);
	while (at + 16 <= size && n < 8) {
		uint64_t length;
		uint32_t crc;
		memcpy(&length, buf + at, 8);
		memcpy(&crc, buf + at + 8, 4);
		CHECK(crc == masked(buf + at, 8));
		rec[n] = buf + at + 12;
		len[n] = (size_t)length;
		memcpy(&crc, rec[n] + length, 4);
		CHECK(crc == masked(rec[n], length));
		at += 16 + length;
		n++;
	}
	CHECK_MSG(at == size && n == 4, "%d records, %zu of %zu bytes", n, at, size);
	if (n != 4)
		return;
	CHECK(has(rec[0], len[0], "\x1a\x0d" "brain.Event:2", 15));
	CHECK(has(rec[1], len[1], "\x10\xab\x02", 3) && has(rec[1], len[1], "\x3a\x02\x08\x01", 4)); /* step 299, START */
	CHECK(has(rec[2], len[2], "\x10\xac\x02", 3) && has(rec[2], len[2], "train/loss", 10) && has(rec[2], len[2], &half, 4));
	CHECK(has(rec[3], len[3], "test/acc", 8));
}

RUN_TESTS()
