/* The file that keeps choices of convolution engines, without any of CUDA: limits, and hostile bytes (for the sanitizers). */
#include "cuda/cudnn_cache.c"
#include "base/philox.h"
#include "test.h"
#include <unistd.h>

static struct gt_dnn_cache *opened(const char *card)
{
	struct gt_err e = {0};
	struct gt_dnn_cache *c = NULL;
	setenv("XDG_CACHE_HOME", test_tmpdir(), 1);
	CHECK_OK(gt_dnn_cache_open(card, "cudnn 1", &c, &e), e);
	return c;
}

static struct gt_dnn_choice sample(int i)
{
	struct gt_dnn_choice c = {.engine = i, .nknobs = i % (GT_DNN_KNOBS + 1), .us = i % 2 ? 12.5 : 0};
	for (int k = 0; k < c.nknobs; k++)
		c.knob[k][0] = k * 400 + i % 7, c.knob[k][1] = k % 3 ? -i : i * 1000;
	return c;
}

TEST(choices_come_back)
{
	char key[GT_DNN_KEY];
	struct gt_dnn_choice got;
	struct gt_dnn_cache *c = opened("card A");
	for (int i = 0; i < 100; i++) {
		struct gt_dnn_choice s = sample(i);
		snprintf(key, sizeof key, "conv %d", i);
		gt_dnn_cache_add(c, key, &s);
	}
	gt_dnn_cache_close(c);
	c = opened("card A");
	for (int i = 0; i < 100; i++) {
		struct gt_dnn_choice s = sample(i);
		snprintf(key, sizeof key, "conv %d", i);
		CHECK_MSG(gt_dnn_cache_find(c, key, &got) && got.engine == s.engine && got.nknobs == s.nknobs && got.us == s.us && !got.ran &&
		              !memcmp(got.knob, s.knob, sizeof s.knob),
		          "choice %d is another one", i);
	}
	CHECK(!gt_dnn_cache_find(c, "conv 100", &got));
	gt_dnn_cache_ran(c, "conv 3");
	CHECK(gt_dnn_cache_find(c, "conv 3", &got) && got.ran);
	gt_dnn_cache_close(c);
}

/* What two processes added in turn is all there; what a process has is not replaced by the file when it saves. */
TEST(additions_of_two_are_merged)
{
	struct gt_dnn_choice one = {.engine = 1}, two = {.engine = 2}, got;
	struct gt_dnn_cache *a = opened("card B"), *b = opened("card B");
	gt_dnn_cache_add(a, "of a", &one);
	gt_dnn_cache_add(a, "of both", &one);
	gt_dnn_cache_add(b, "of b", &two);
	gt_dnn_cache_add(b, "of both", &two);
	gt_dnn_cache_close(a);
	gt_dnn_cache_close(b);
	a = opened("card B");
	CHECK(gt_dnn_cache_find(a, "of a", &got) && got.engine == 1);
	CHECK(gt_dnn_cache_find(a, "of b", &got) && got.engine == 2);
	CHECK(gt_dnn_cache_find(a, "of both", &got) && got.engine == 2);
	gt_dnn_cache_close(a);
}

TEST(limits_hold)
{
	struct gt_dnn_choice one = sample(24), got;
	char key[GT_DNN_KEY + 10];
	struct gt_dnn_cache *c = opened("card C");
	memset(key, 'k', sizeof key);
	key[GT_DNN_KEY] = '\0';
	gt_dnn_cache_add(c, key, &one);
	CHECK(!gt_dnn_cache_find(c, key, &got)); /* too long: not kept, not cut */
	key[GT_DNN_KEY - 1] = '\0';
	gt_dnn_cache_add(c, key, &one);
	CHECK(gt_dnn_cache_find(c, key, &got) && got.nknobs == 24);
	c->path[0] = '\0'; /* thousands of saves would take their time */
	for (int i = 0; i < ENTRIES_MAX + 10; i++) {
		snprintf(key, sizeof key, "%d", i);
		gt_dnn_cache_add(c, key, &one);
	}
	CHECK_MSG(c->n == ENTRIES_MAX, "%d entries", c->n);
	gt_dnn_cache_close(c);
	gt_dnn_cache_close(NULL);
	CHECK(!gt_dnn_cache_find(NULL, "a", &got));
	gt_dnn_cache_add(NULL, "a", &one);
}

TEST(hostile_files)
{
	struct gt_err e = {0};
	struct gt_dnn_cache *c = opened("card D");
	char path[GT_PATH_SIZE], *good, *bad, key[32];
	size_t n;
	uint32_t at = 0;
	int kept = 0;
	for (int i = 0; i < 12; i++) {
		struct gt_dnn_choice s = sample(3 * i);
		snprintf(key, sizeof key, "conv %d", i);
		gt_dnn_cache_add(c, key, &s);
	}
	snprintf(path, sizeof path, "%s", c->path);
	gt_dnn_cache_close(c);
	CHECK_OK(gt_file_read(path, FILE_MAX, &good, &n, &e), e);
	bad = malloc(n + 1);
	for (int i = 0; i < 3000; i++) {
		size_t len = n;
		memcpy(bad, good, n);
		for (int k = 0; k < 1 + i % 5; k++) {
			struct gt_philox r = gt_philox4x32(at++, 1, 2, 3, 4, 5);
			bad[r.v[0] % n] = (char)(r.v[1] % 3 ? "\t\n=,-09 e.x"[r.v[2] % 11] : (char)r.v[2]);
			if (r.v[3] % 8 == 0)
				len = r.v[2] % n;
		}
		FILE *f = fopen(path, "wb");
		CHECK(f && fwrite(bad, 1, len, f) == len && fclose(f) == 0);
		c = opened("card D");
		for (int j = 0; j < c->n; j++) {
			const struct gt_dnn_choice *x = &c->entry[j].choice;
			CHECK_MSG(x->engine >= 0 && x->nknobs >= 0 && x->nknobs <= GT_DNN_KNOBS && x->us >= 0 && !x->workspace && !x->ran &&
			              strlen(c->entry[j].key) < GT_DNN_KEY,
			          "mutant %d", i);
		}
		kept += c->n;
		gt_dnn_cache_close(c);
	}
	printf("# plan files: 3000 damaged ones, %d choices survived\n", kept);
	CHECK(kept > 3000);
	free(good);
	free(bad);
}

RUN_TESTS()
