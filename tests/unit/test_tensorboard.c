/* Event files: the checksum's published value, and a file read back record by record. */
#include "train/tensorboard.h"
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
	struct gt_event ev = {.kind = GT_EV_TRAIN, .step = 300, .loss = 0.5, .acc = 0.25, .lr = 0.25, .samples_per_s = 8};
	static const char config[] =
	    "schema = 1; name = \"t\"; data = { name = \"synthetic\"; batch = 32; samples = 64; samples_test = 64; classes = 10; }; model = { "
	    "input = [1, 8, 8]; layers = ( { type = \"flatten\"; }, "
	    "{ type = \"linear\"; out = 10; } ); }; train = { epochs = 2; optimizer = { type = \"adam\"; lr = 0.5; }; };";
	struct gt_histogram histogram = {.min = -1, .max = 0.5, .n = 3, .sum = -0.5, .sum_squares = 1.25, .count = {1, [29] = 2}};
	struct gt_conf *conf;
	uint8_t buf[16384];
	const uint8_t *rec[9];
	size_t len[9];
	int n = 0;
	float half = 0.5f;
	CHECK_OK(gt_tensorboard_open(test_tmpdir(), 299, 0, &t, &e), e);
	gt_tensorboard_write(t, &ev);
	ev = (struct gt_event){.kind = GT_EV_EVAL, .step = 300, .split = "test", .scores = {.loss = 0.5, .acc = 0.75, .top5 = 1, .samples = 8}};
	gt_tensorboard_write(t, &ev);
	ev.kind = GT_EV_CHECKPOINT;
	gt_tensorboard_write(t, &ev); /* writes nothing */
	ev.kind = GT_EV_EPOCH;
	gt_tensorboard_write(t, &ev);
	CHECK_OK(gt_conf_load_text("t.cfg", config, strlen(config), NULL, 0, &conf, &e), e);
	CHECK_OK(gt_tensorboard_hparams(t, conf, &e), e);
	gt_conf_free(conf);
	ev = (struct gt_event){.kind = GT_EV_END, .step = 300, .text = "ok"};
	gt_tensorboard_write(t, &ev);
	ev = (struct gt_event){.kind = GT_EV_END, .step = 300, .text = "diverged", .code = GT_EDIVERGED, .why = "diverged at step 301"};
	gt_tensorboard_write(t, &ev);
	ev = (struct gt_event){.kind = GT_EV_END, .step = 300, .text = "time limit"};
	gt_tensorboard_write(t, &ev); /* writes nothing, because the run can go on */
	gt_tensorboard_histogram(t, "weights/fc.weight", 300, &histogram);
	histogram.n = 0;
	gt_tensorboard_histogram(t, "weights/empty", 300, &histogram); /* writes nothing */
	CHECK_OK(gt_tensorboard_close(t, &e), e);

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
	while (at + 16 <= size && n < 9) {
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
	CHECK_MSG(at == size && n == 9, "%d records, %zu of %zu bytes", n, at, size);
	if (n != 9)
		return;
	CHECK(has(rec[0], len[0], "\x1a\x0d" "brain.Event:2", 15));
	CHECK(has(rec[1], len[1], "\x10\xac\x02", 3) && has(rec[1], len[1], "\x3a\x02\x08\x01", 4)); /* START at step 300 */
	CHECK(has(rec[2], len[2], "\x10\xac\x02", 3) && has(rec[2], len[2], "train/loss", 10) && has(rec[2], len[2], &half, 4));
	CHECK(has(rec[2], len[2], "train/acc", 9) && has(rec[3], len[3], "test/acc", 8) && has(rec[3], len[3], "test/top5", 9));
	CHECK(has(rec[4], len[4], "train_epoch/loss", 16) && has(rec[4], len[4], "train_epoch/top5", 16));
	/* { key = "train.optimizer.lr", value { number_value = 0.5 } }, and a string; lists and where to write are no hyper-parameters. */
	CHECK(has(rec[5], len[5], "_hparams_/session_start_info", 28) && has(rec[5], len[5], "\x0a\x07hparams", 9));
	CHECK(has(rec[5], len[5], "\x0a\x12train.optimizer.lr\x12\x09\x11\0\0\0\0\0\0\xe0\x3f", 31));
	CHECK(has(rec[5], len[5], "\x0a\x14train.optimizer.type\x12\x06\x1a\x04" "adam", 30));
	CHECK(!has(rec[5], len[5], "checkpoint.", 11) && !has(rec[5], len[5], "train.optimizer.momentum", 24));
	CHECK(has(rec[6], len[6], "_hparams_/session_end_info", 26) && has(rec[6], len[6], "\x08\x01\x11", 3)); /* STATUS_SUCCESS, end time */
	CHECK(has(rec[7], len[7], "_hparams_/session_end_info", 26) && has(rec[7], len[7], "\x08\x02\x11", 3)); /* STATUS_FAILURE */
	CHECK(has(rec[8], len[8], "\x0a\x11weights/fc.weight\x2a", 20));
	CHECK(has(rec[8], len[8], "\x09\0\0\0\0\0\0\xf0\xbf\x11\0\0\0\0\0\0\xe0\x3f\x19\0\0\0\0\0\0\x08\x40", 27)); /* -1, 0.5, 3 */
	CHECK(has(rec[8], len[8], "\x32\xf0\x01", 3) && has(rec[8], len[8], "\x3a\xf0\x01\0\0\0\0\0\0\xf0\x3f", 11)); /* 30 limits, 30 counts */
}

RUN_TESTS()
