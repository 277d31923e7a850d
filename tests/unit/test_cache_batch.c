/* How many samples an inference computes at once (session/cache_batch.h), and which inputs of a prediction are known to be one sample. */
#include "folder.h"
#include "gtrain.h"
#include "ir_net.h"
#include "session/cache_batch.h"
#include "test.h"
#include "use/input_files.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB ((uint64_t)1 << 20)

TEST(samples_that_fit)
{
	CHECK(gt_cache_batch(32 * MIB, 14 * MIB, 6 * MIB, 1) == 3);
	CHECK(gt_cache_batch(32 * MIB, 8 * MIB, 6 * MIB, 1) == 4);
	CHECK(gt_cache_batch(32 * MIB, 14 * MIB, 6 * MIB, 2) == 2); /* a multiple of the threads */
	CHECK(gt_cache_batch(32 * MIB, 14 * MIB, 6 * MIB, 8) == 8); /* a sample for each thread */
	CHECK(gt_cache_batch(32 * MIB, 31 * MIB, 6 * MIB, 1) == 1);
	CHECK(gt_cache_batch(32 * MIB, 32 * MIB, 6 * MIB, 1) == INT64_MAX); /* the weights do not fit */
	CHECK(gt_cache_batch(32 * MIB, 44 * MIB, 6 * MIB, 1) == INT64_MAX);
	CHECK(gt_cache_batch(32 * MIB, 14 * MIB, 0, 1) == INT64_MAX);
}

/* The size of a part: what fits into an eighth of the cache, but enough operations for each byte of weights. */
TEST(samples_of_a_part)
{
	struct gt_cache_need early = {.each_sample = 2 * MIB, .weights = 1000, .flops = 1e9},
	                     late = {.each_sample = 1000, .weights = 4 * MIB, .flops = 1e8}, full = {.weights = 4 * MIB, .flops = 2e6};
	CHECK(gt_cache_part(64, 32 * MIB, &early, 1) == 2);
	CHECK(gt_cache_part(60, 32 * MIB, &early, 4) == 4); /* a sample for each thread */
	CHECK(gt_cache_part(64, 32 * MIB, &early, 3) == 4);
	CHECK(gt_cache_part(61, 32 * MIB, &early, 1) == 1); /* a divisor of the batch */
	CHECK(gt_cache_part(64, 32 * MIB, &late, 1) == 64); /* small activations */
	late.each_sample = 4 * MIB;
	CHECK(gt_cache_part(64, 32 * MIB, &late, 1) == 16); /* 8.4 samples have 200 operations for each byte */
	CHECK(gt_cache_part(64, 32 * MIB, &full, 1) == 64);
}

/* Opens a session for predictions of 60 samples, and returns the number of samples that it computes at once. *segments:
 * the number of segments of this plan. */
static int64_t open_session(const char *layers, const char *more, bool inference, int *segments)
{
	struct gt_conf *c;
	struct gt_session *s;
	struct gt_err e;
	char text[4096];
	snprintf(text, sizeof text,
	         "schema = 1; name = \"parts\"; threads = 1; device = \"cpu\"; data = { name = \"synthetic\"; classes = 10; samples = 100; "
	         "samples_test = 60; batch = 29; eval_batch = 60; }; model = { input = [3, 64, 64]; layers = ( %s ); }; "
	         "train = { steps = 5; optimizer = { type = \"sgd\"; lr = 0.01; }; }; checkpoint = { dir = \"\"; }; %s",
	         layers, more);
	CHECK_OK(gt_conf_load_text("parts.cfg", text, strlen(text), NULL, 0, &c, &e), e);
	struct gt_session_spec spec = {.conf = c, .predict = 60, .eval = {[GT_TEST] = true}, .inference = inference, .dry = true};
	CHECK_OK(gt_session_open(&spec, &s, &e), e);
	int64_t n = s->prog.predict_batch;
	CHECK(gt_graph_desc(s->prog.predict->graph, s->prog.predict->graph->input[0])->dim[0] % n == 0);
	CHECK_MSG(s->prog.eval[GT_TEST].batch == n, "%lld at once in an evaluation, %lld in a prediction",
	          (long long)s->prog.eval[GT_TEST].batch, (long long)n);
	*segments = s->prog.predict->nsegments;
	CHECK(s->prog.eval[GT_TEST].nfull * n + s->prog.eval[GT_TEST].ntail == 60);
	gt_session_close(s);
	gt_conf_free(c);
	return n;
}

#define HEAD "{ type = \"global_avgpool\"; }, { type = \"flatten\"; }, { name = \"fc\"; type = \"linear\"; out = 10; }"
/* 2 GiB of weights, which a session without memory does not allocate. */
#define WIDE_HEAD \
	"{ type = \"global_avgpool\"; }, { type = \"flatten\"; }, { name = \"f\"; type = \"linear\"; out = 131072; }, " \
	"{ name = \"fc\"; type = \"linear\"; out = 10; }"
/* The output of the convolution has 64 MiB for each sample: more than a sixtieth of any cache. */
#define LARGE "{ name = \"c\"; type = \"conv2d\"; out = 4096; kernel = 3; padding = 1; }, "
#define SMALL "{ name = \"c\"; type = \"conv2d\"; out = 4; kernel = 3; stride = 16; }, "
#define NORM "{ name = \"n\"; type = \"batchnorm2d\"; track_running_stats = "

static bool knows_cache(void)
{
	struct gt_device d;
	struct gt_err e;
	CHECK_OK(gt_device_open("cpu", &(struct gt_dev_opts){.threads = 1}, &d, &e), e);
	bool known = d.info.cache;
	gt_device_close(&d);
	return known;
}

TEST(sessions)
{
	int n;
	if (!knows_cache()) {
		CHECK(open_session(LARGE HEAD, "", true, &n) == 60 && !n);
		test_skip("the size of the cache is not known");
		return;
	}
	CHECK(open_session(LARGE HEAD, "", true, &n) < 60 && !n);
	CHECK(open_session(SMALL HEAD, "", true, &n) == 60 && !n);
	CHECK(open_session(LARGE NORM "true; }, " HEAD, "", true, &n) < 60 && !n);
	CHECK(open_session(LARGE NORM "false; }, " HEAD, "", true, &n) == 60 && !n); /* the statistics of the batch */
	CHECK(open_session(LARGE HEAD, "reproducible = \"world\";", true, &n) == 60 && !n);
	CHECK(open_session(LARGE HEAD, "", false, &n) == 60 && !n);
}

/* The weights do not fit into any cache: the batch is not divided, but the convolution is a segment. */
TEST(sessions_with_large_weights)
{
	int n;
	bool known = knows_cache();
	CHECK(open_session(LARGE WIDE_HEAD, "", true, &n) == 60 && (n > 0) == known);
	CHECK(open_session(LARGE NORM "false; }, " WIDE_HEAD, "", true, &n) == 60 && !n);
	CHECK(open_session(LARGE WIDE_HEAD, "reproducible = \"world\";", true, &n) == 60 && !n);
	CHECK(open_session(LARGE WIDE_HEAD, "eval = { tta = \"mirror\"; };", true, &n) == 60 && !n);
	CHECK(open_session(LARGE WIDE_HEAD, "", false, &n) == 60 && !n);
}

static void write_file(const char *name, const void *bytes, size_t n)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	CHECK(fd >= 0 && write(fd, bytes, n) == (ssize_t)n);
	close(fd);
}

static bool is_single(const struct gt_folder_kind *kind, const char *operand)
{
	struct gt_inputs in = {.kind = kind};
	struct gt_err e;
	CHECK_OK(gt_arena_open(&in.arena, &e), e);
	CHECK_OK(gt_inputs_add(&in, operand, &e), e);
	bool single = gt_inputs_are_single(&in);
	gt_inputs_free(&in);
	gt_arena_close(in.arena);
	return single;
}

TEST(single_inputs)
{
	char dir[] = "/tmp/gtrain-single-XXXXXX", before[4096];
	CHECK(getcwd(before, sizeof before) && mkdtemp(dir) && !chdir(dir));
	write_file("a.png", "\x89PNG\r\n\x1a\n0123456789", 18);
	write_file("b.idx", "\0\0\x08\x03\0\0\0\x02\0\0\0\x02", 12);
	write_file("c.csv", "x,y\n1,2\n3,4\n", 12);
	CHECK(!mkfifo("pipe", 0666) && !mkdir("folder", 0777));
	write_file("folder/d.png", "\x89PNG\r\n\x1a\n0123456789", 18);
	CHECK(is_single(&gt_folder_images, "a.png"));
	CHECK(is_single(&gt_folder_images, "folder"));
	CHECK(!is_single(&gt_folder_images, "b.idx"));
	CHECK(!is_single(&gt_folder_images, "pipe")); /* it is not opened, which would wait for a writer */
	CHECK(!is_single(&gt_folder_tables, "c.csv"));
	CHECK(is_single(&gt_folder_texts, "c.csv")); /* a file is one text */
	CHECK(!chdir(before));
	char command[64];
	snprintf(command, sizeof command, "rm -r %s", dir);
	CHECK(!system(command));
}
RUN_TESTS()
