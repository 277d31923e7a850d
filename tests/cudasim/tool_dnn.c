/* Convolutions of the CUDA backend on the host's cuDNN (cudasim_dnn.cc has its engines): which engine is chosen under which options, and
 * the file that keeps choices. Run by test_cudasim.sh from build/cudasim. */
#include "base/fileio.h"
#include "base/plugin.h"
#include "pair.h"
#include <dirent.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct gt_backend *be;
static char folder[512], log_path[600];

/* ---- a device, a call, what the library was asked ---------------------------------------------------------------------------------- */
static void setup(void)
{
	struct gt_err e = {0};
	void *p;
	snprintf(folder, sizeof folder, "%s/gtrain", test_tmpdir());
	snprintf(log_path, sizeof log_path, "%s/log", test_tmpdir());
	setenv("XDG_CACHE_HOME", test_tmpdir(), 1);
	setenv("CUDASIM_DNN_LOG", log_path, 1);
	unsetenv("CUDASIM_DNN_ONLY"), unsetenv("CUDASIM_DNN_VERSION"), unsetenv("CUDASIM_CARD");
	unlink(log_path);
	CHECK_OK(gt_tree_remove(folder, &e), e);
	if (!be) {
		CHECK_OK(gt_plugin_open("cuda", "gt_backend_cuda", &p, &e), e);
		be = p;
	}
}

static struct gt_dev *device(struct gt_dev_opts opts)
{
	struct gt_err e = {0};
	struct gt_dev *dev = NULL;
	CHECK_OK(be->open(&opts, &dev, &e), e);
	return dev;
}

static int logged(const char *prefix)
{
	char line[128];
	FILE *f = fopen(log_path, "r");
	int n = 0;
	while (f && fgets(line, sizeof line, f))
		n += !strncmp(line, prefix, strlen(prefix));
	if (f)
		fclose(f);
	return n;
}

/* y [2, 5, h, w] = conv 3x3 of x [2, 4, h, w], padding 1, with bias; h = w = size. */
struct job {
	struct gt_attr_conv2d attr;
	struct gt_tdesc x, w, b, y;
	struct gt_opcall call;
};

static void job_make(struct job *j, enum gt_dtype t, int64_t size)
{
	int64_t x[4] = {2, 4, size, size}, w[4] = {5, 4, 3, 3}, b = 5, y[4] = {2, 5, size, size};
	*j = (struct job){
	    .attr = {.out = 5, .kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}, .dilation = {1, 1}, .groups = 1, .bias = true}};
	j->x = gt_tdesc_make(t, 4, x, true), j->w = gt_tdesc_make(t, 4, w, true), j->y = gt_tdesc_make(t, 4, y, true);
	j->b = gt_tdesc_make(GT_F32, 1, &b, false);
	j->call = (struct gt_opcall){
	    .code = GT_OP_CONV2D, .name = "conv1", .attr = &j->attr, .nin = 3, .nout = 1, .in = {&j->x, &j->w, &j->b}, .out = {&j->y}};
}

/* What prepare chose on a device of its own, or its error. */
static const char *chosen(struct gt_dev_opts opts, enum gt_dtype t)
{
	static char text[1100];
	struct gt_err e = {0};
	struct gt_kernel *k;
	struct job j;
	struct gt_dev *dev = device(opts);
	job_make(&j, t, 6);
	if (be->prepare(dev, &j.call, &k, &e) == GT_OK) {
		snprintf(text, sizeof text, "%s", be->describe(k));
		be->release(dev, k);
	} else {
		snprintf(text, sizeof text, "%d %s", e.code, e.msg);
	}
	be->close(dev);
	return text;
}

static void expect(struct gt_dev_opts opts, enum gt_dtype t, const char *want)
{
	const char *got = chosen(opts, t);
	CHECK_MSG(!strcmp(got, want), "chosen: %s, not %s", got, want);
}

/* ---- which engine ------------------------------------------------------------------------------------------------------------------- */
TEST(options_decide_which_engines_are_allowed)
{
	setup();
	expect((struct gt_dev_opts){.deterministic = true}, GT_F32, "cudnn:1 (heuristic)");
	expect((struct gt_dev_opts){.deterministic = true, .tf32 = true}, GT_F32, "cudnn:3 (heuristic) tf32");
	expect((struct gt_dev_opts){.deterministic = true, .winograd = true}, GT_F32, "cudnn:6 (heuristic)");
	expect((struct gt_dev_opts){0}, GT_F32, "cudnn:5 (heuristic)");
	expect((struct gt_dev_opts){.deterministic = true, .winograd = true}, GT_BF16, "cudnn:3 (heuristic)");
	CHECK(logged("run 2") + logged("run 4") + logged("run 7") + logged("run 8") + logged("run 9") + logged("run 90") == 0);
}

TEST(the_fastest_is_taken)
{
	setup();
	setenv("CUDASIM_DNN_ONLY", "10,1,1,1,4", 1); /* tiles 2, 0, 1: 20, 30 and 10 microseconds */
	expect((struct gt_dev_opts){.autotune = true}, GT_F32, "cudnn:1 (timed)");
	int best = logged("run 1 1"), others = logged("run 1 2") + logged("run 1 0");
	CHECK_MSG(best > 3 && others > 3, "%d runs of the fastest, %d of the others", best, others);
	CHECK_MSG(logged("trivial operand") == 0, "%d runs on an operand of one value", logged("trivial operand"));
	unlink(log_path);
	expect((struct gt_dev_opts){.autotune = true}, GT_F32, "cudnn:1 (cached)");
	CHECK(logged("heuristic") == 0 && logged("run 1 1") == 1 && logged("run") == 1); /* it runs once before its first use */
}

TEST(the_same_shape_again_takes_no_trial)
{
	struct gt_err e = {0};
	struct gt_kernel *k[2];
	struct job j;
	int runs[2];
	setup();
	struct gt_dev *dev = device((struct gt_dev_opts){.autotune = true});
	job_make(&j, GT_F32, 6);
	for (int i = 0; i < 2; i++) {
		CHECK_OK(be->prepare(dev, &j.call, &k[i], &e), e);
		runs[i] = logged("run");
	}
	CHECK_MSG(runs[0] > 8 && runs[1] == runs[0], "%d runs for the first, %d with the second", runs[0], runs[1]);
	CHECK(!strcmp(be->describe(k[1]), "cudnn:5 (cached)") && logged("heuristic") == 1);
	be->release(dev, k[0]), be->release(dev, k[1]);
	be->close(dev);
}

TEST(repeatable_runs_are_not_timed)
{
	setup();
	setenv("CUDASIM_DNN_ONLY", "1,1,1", 1);
	expect((struct gt_dev_opts){.autotune = true, .deterministic = true}, GT_F32, "cudnn:1 (heuristic)");
	CHECK(logged("run 1 2") == 1 && logged("run") == 1);
	expect((struct gt_dev_opts){.autotune = true}, GT_F32, "cudnn:1 (timed)"); /* and neither takes the other's choice */
	expect((struct gt_dev_opts){.autotune = true, .deterministic = true}, GT_F32, "cudnn:1 (cached)");
	CHECK(logged("run 1 2") > 1);
}

/* Where tensor cores may be used, an engine on them is taken even if the heuristic names others first, 16 at most. */
TEST(tensor_cores_are_preferred)
{
	static const enum gt_dtype types[] = {GT_BF16, GT_F16, GT_F32};
	static const char *const want[][2] = {{"cudnn:3 (heuristic)", "cudnn:1 (heuristic)"},
	                                      {"cudnn:3 (heuristic)", "cudnn:1 (heuristic)"},
	                                      {"cudnn:1 (heuristic)", "cudnn:1 (heuristic)"}};
	static const char *const offers[] = {"1,1,1,1,1,1,3", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,3"};
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 2; k++) {
			setup();
			setenv("CUDASIM_DNN_ONLY", offers[k], 1);
			expect((struct gt_dev_opts){.deterministic = true, .autotune = true}, types[i], want[i][k]);
			expect((struct gt_dev_opts){.deterministic = true}, types[i], i < 2 && !k ? "cudnn:3 (cached)" : "cudnn:1 (cached)");
		}
	setup();
	setenv("CUDASIM_DNN_ONLY", offers[0], 1);
	expect((struct gt_dev_opts){.deterministic = true, .tf32 = true}, GT_F32, "cudnn:3 (heuristic) tf32");
	setenv("CUDASIM_DNN_ONLY", "10,1,3", 1); /* 10 does not run, and is no engine on tensor cores */
	expect((struct gt_dev_opts){.deterministic = true}, GT_F16, "cudnn:3 (heuristic)");
}

TEST(fallback_and_compiled_engines_come_last)
{
	setup();
	setenv("CUDASIM_DNN_ONLY", "90,1", 1);
	expect((struct gt_dev_opts){.deterministic = true, .tf32 = true}, GT_F32, "cudnn:1 (heuristic)");
	setenv("CUDASIM_DNN_ONLY", "90", 1);
	CHECK_OK(gt_tree_remove(folder, NULL), (struct gt_err){0});
	expect((struct gt_dev_opts){.deterministic = true, .tf32 = true}, GT_F32, "cudnn:90 (heuristic) tf32");
	CHECK(logged("heuristic fallback") == 1);
}

TEST(refusals_say_why)
{
	static const struct {
		const char *only, *want;
		bool tf32;
	} rows[] = {{"4", " refuse it; cuDNN 9.19.0: execution plan: CUDNN_STATUS_NOT_SUPPORTED: ptr->isSupported()", false},
	            {"3,3", " round to tf32", false},
	            {"2", " take more than 256 MiB of workspace", true},
	            {"7,8,9", " compute in lower precision", true},
	            {"10", "cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED: engine 10 never runs", true}};
	setup();
	for (int i = 0; i < 5; i++) {
		setenv("CUDASIM_DNN_ONLY", rows[i].only, 1);
		const char *got = chosen((struct gt_dev_opts){.deterministic = true, .tf32 = rows[i].tf32}, GT_F32);
		CHECK_MSG(strstr(got, "69 conv2d (conv1) of f32 [2, 4, 6, 6]: ") == got && strstr(got, rows[i].want), "%s", got);
	}
	unsetenv("CUDASIM_DNN_ONLY");
	setenv("CUDASIM_DNN_VERSION", "80905", 1);
	const char *got = chosen((struct gt_dev_opts){0}, GT_F32);
	CHECK_MSG(strstr(got, "this build needs 9.x"), "%s", got);
}

TEST(wrong_operands_are_refused)
{
	struct gt_err e = {0};
	struct gt_kernel *k;
	struct job j;
	setup();
	struct gt_dev *dev = device((struct gt_dev_opts){.deterministic = true});
	job_make(&j, GT_F32, 6);
	j.w = gt_tdesc_make(GT_F32, 4, j.w.dim, false); /* [out, in, kh, kw] */
	CHECK(be->prepare(dev, &j.call, &k, &e) == GT_EUNAVAILABLE && strstr(e.msg, "channels last"));
	job_make(&j, GT_F32, 6);
	j.w.any = true; /* the backend's choice, then */
	j.w.layout = gt_tdesc_make(GT_F32, 4, j.w.dim, false).layout;
	CHECK_OK(be->prepare(dev, &j.call, &k, &e), e);
	CHECK(!j.w.any && j.w.layout.order[1] == 2 && j.w.layout.order[3] == 1);
	be->release(dev, k);
	job_make(&j, GT_F32, 6);
	j.y = gt_tdesc_make(GT_F32, 4, (int64_t[4]){2, 5, 6, 5}, true);
	CHECK(be->prepare(dev, &j.call, &k, &e) == GT_EUNAVAILABLE);
	CHECK_MSG(strstr(e.msg, "convolution forward: CUDNN_STATUS_BAD_PARAM: is_valid_spatial_dim"), "%s", e.msg);
	be->close(dev);
}

/* ---- launches ------------------------------------------------------------------------------------------------------------------------ */
static void launch(struct gt_dev *dev, struct gt_kernel *k, void **p, void *scratch, size_t shift, enum gt_code want)
{
	struct gt_err e = {0};
	void *in[3] = {(char *)p[0] + shift, p[1], p[2]};
	struct gt_launch a = {.in = in, .out = &p[3], .scratch = scratch};
	enum gt_code code = be->launch(dev, k, &a, &e);
	CHECK_MSG(code == want, "%d: %s", code, e.msg);
}

TEST(captured_and_replayed_as_launched)
{
	struct gt_err e = {0};
	struct gt_kernel *k, *late;
	struct job j, other;
	void *p[4], *scratch, *graph;
	static float y[3][2 * 5 * 6 * 6];
	setup();
	struct gt_dev *dev = device((struct gt_dev_opts){.autotune = true});
	job_make(&j, GT_F32, 6);
	job_make(&other, GT_F32, 8);
	CHECK_OK(be->prepare(dev, &j.call, &k, &e), e);
	const struct gt_tdesc *d[4] = {&j.x, &j.w, &j.b, &j.y};
	for (int i = 0; i < 4; i++) {
		void *host = pair_filled(GT_F32, gt_tdesc_count(d[i]), (uint32_t)i);
		CHECK_OK(be->alloc(dev, gt_tdesc_bytes(d[i]) + 16, &p[i], &e), e);
		CHECK_OK(be->copy(dev, p[i], host, gt_tdesc_bytes(d[i]), GT_COPY_H2D, 0, &e), e);
		free(host);
	}
	CHECK_OK(be->alloc(dev, be->scratch(k), &scratch, &e), e);
	launch(dev, k, p, scratch, 4, GT_EINTERNAL); /* off 16 bytes */
	launch(dev, k, p, scratch, 0, GT_OK);
	CHECK_OK(be->copy(dev, y[0], p[3], sizeof y[0], GT_COPY_D2H, 0, &e), e);
	CHECK_OK(be->capture_begin(dev, &e), e);
	launch(dev, k, p, scratch, 0, GT_OK);
	int runs = logged("run");
	CHECK_OK(be->prepare(dev, &other.call, &late, &e), e); /* chosen without a trial */
	CHECK(logged("run") == runs);
	CHECK_OK(be->capture_end(dev, &graph, &e), e);
	for (int i = 1; i < 3; i++) {
		CHECK_OK(be->zero(dev, p[3], sizeof y[0], 0, &e), e);
		CHECK_OK(be->replay(dev, graph, &e), e);
		CHECK_OK(be->copy(dev, y[i], p[3], sizeof y[0], GT_COPY_D2H, 0, &e), e);
		float worst = 0; /* engine 5 adds in no fixed order */
		for (size_t n = 0; n < sizeof y[0] / sizeof *y[0]; n++)
			worst = fmaxf(worst, fabsf(y[i][n] - y[0][n]) / fmaxf(1, fabsf(y[0][n])));
		CHECK_MSG(worst < 1e-5f && y[0][7] != 0, "replay differs by %g", (double)worst);
	}
	be->graph_free(dev, graph);
	be->release(dev, k), be->release(dev, late);
	for (int i = 0; i < 4; i++)
		be->free(dev, p[i]);
	be->free(dev, scratch);
	be->close(dev);
}

TEST(without_room_for_a_trial)
{
	struct gt_err e = {0};
	struct gt_kernel *k;
	struct job j;
	void *all;
	setup();
	struct gt_dev *dev = device((struct gt_dev_opts){.autotune = true});
	CHECK_OK(be->alloc(dev, ((size_t)1 << 30) - 4096, &all, &e), e); /* the simulated card has 1 GiB */
	job_make(&j, GT_F32, 64);
	CHECK_OK(be->prepare(dev, &j.call, &k, &e), e);
	CHECK_MSG(!strcmp(be->describe(k), "cudnn:5 (heuristic)") && !logged("run"), "%s", be->describe(k));
	be->release(dev, k);
	be->free(dev, all);
	be->close(dev);
}

/* ---- the file ------------------------------------------------------------------------------------------------------------------------ */
static const struct gt_dev_opts plain = {.deterministic = true};

static char *only_file(char *path, size_t size)
{
	DIR *d = opendir(folder);
	struct dirent *f;
	int n = 0;
	while (d && (f = readdir(d)))
		if (f->d_name[0] != '.') {
			snprintf(path, size, "%s/%s", folder, f->d_name);
			n++;
		}
	if (d)
		closedir(d);
	CHECK_MSG(n == 1, "%d files in the cache", n);
	return path;
}

TEST(another_version_or_card_has_its_own_file)
{
	struct stat st;
	char path[900];
	setup();
	expect(plain, GT_F32, "cudnn:1 (heuristic)");
	CHECK(stat(only_file(path, sizeof path), &st) == 0 && (st.st_mode & 0777) == 0600);
	CHECK_MSG(strstr(path, "/cudnn-simulated_on_the_host_9.0_1_SMs-cudnn_91900.plans"), "%s", path);
	expect(plain, GT_F32, "cudnn:1 (cached)");
	setenv("CUDASIM_DNN_VERSION", "91901", 1);
	expect(plain, GT_F32, "cudnn:1 (heuristic)");
	expect(plain, GT_F32, "cudnn:1 (cached)");
	setenv("CUDASIM_CARD", "../../another\tcard", 1); /* a name is no path */
	expect(plain, GT_F32, "cudnn:1 (heuristic)");
	unsetenv("CUDASIM_CARD");
	CHECK_OK(gt_file_rename(path, strcat(strcpy((char[1000]){0}, path), ".moved"), NULL), (struct gt_err){0});
	unsetenv("CUDASIM_DNN_VERSION");
	expect(plain, GT_F32, "cudnn:1 (heuristic)");
	/* The content names its card and library too: a file that was moved here is not taken. */
	char other[900];
	snprintf(other, sizeof other, "%s/cudnn-simulated_on_the_host_9.0_1_SMs-cudnn_91901.plans", folder);
	CHECK_OK(gt_file_rename(other, path, NULL), (struct gt_err){0});
	expect(plain, GT_F32, "cudnn:1 (heuristic)");
}

/* With any content of the file, a convolution gets an engine that is allowed. */
static void survives(const char *path, const char *what, const void *data, size_t n)
{
	FILE *f = fopen(path, "wb");
	CHECK(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
	const char *got = chosen(plain, GT_F32);
	CHECK_MSG(!strncmp(got, "cudnn:1 ", 8), "%s: %s", what, got);
}

TEST(damaged_files_do_no_harm)
{
	struct gt_err e = {0};
	char path[900], *good, *bad, *big, what[64];
	size_t n;
	int tried = 0;
	setup();
	expect(plain, GT_F32, "cudnn:1 (heuristic)");
	CHECK_OK(gt_file_read(only_file(path, sizeof path), 1 << 20, &good, &n, &e), e);
	bad = malloc(n + 64);
	for (size_t i = 0; i <= n; i++) { /* cut, flipped, a byte that the format never has */
		snprintf(what, sizeof what, "cut at %zu", i);
		survives(path, what, good, i);
		if (i == n)
			break;
		memcpy(bad, good, n);
		bad[i] = (char)(i % 3 == 0 ? bad[i] ^ 1 : i % 3 == 1 ? bad[i] ^ 0x80 : 0);
		snprintf(what, sizeof what, "byte %zu damaged", i);
		survives(path, what, bad, n);
		tried += 2;
	}
	/* Engines that the options forbid, that do not exist, knobs that are not the engine's, numbers that are none. */
	static const char *const tails[] = {
	    "3\t1.0\t-",
	    "5\t1.0\t-",
	    "6\t0.0\t-",
	    "77777\t1\t-",
	    "1\t1.0\t2=9",
	    "1\t1.0\t999=1",
	    "10\t1\t-",
	    "4\t1\t-",
	    "2\t1\t-",
	    "90\t1\t-",
	    "1\tnan\t2=1",
	    "1\t-5\t2=1",
	    "1\t1e999\t2=1",
	    "99999999999999999999\t1\t-",
	    "-1\t1\t-",
	    "1\t1\t2=1,",
	    "1\t1\t=",
	    "1\t1\t2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1,2=1",
	    "",
	    "\t\t\t"};
	char *line = strchr(good, '\n') + 1, *tab = strchr(line, '\t');
	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
		char text[2000];
		int len = snprintf(text, sizeof text, "%.*s\t%s\n", (int)(tab - good), good, tails[i]);
		survives(path, tails[i], text, (size_t)len);
		tried++;
	}
	big = malloc(3 << 20);
	memset(big, 'x', 3 << 20);
	memcpy(big, good, (size_t)(line - good));
	survives(path, "3 MiB", big, 3 << 20);
	survives(path, "one long line", big, 1000000);
	unlink(path);
	CHECK(mkfifo(path, 0600) == 0);
	expect(plain, GT_F32, "cudnn:1 (heuristic)");
	unlink(path);
	CHECK(mkdir(path, 0700) == 0);
	expect(plain, GT_F32, "cudnn:1 (heuristic)");
	rmdir(path);
	CHECK(symlink(path, path) == 0);
	expect(plain, GT_F32, "cudnn:1 (heuristic)");
	printf("# cudasim: calls with %d damaged plan files\n", tried + 5);
	free(good), free(bad), free(big);
}

TEST(no_folder_no_cache)
{
	setup();
	char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
	setenv("XDG_CACHE_HOME", "relative", 1);
	unsetenv("HOME");
	expect(plain, GT_F32, "cudnn:1 (heuristic)");
	expect(plain, GT_F32, "cudnn:1 (heuristic)");
	CHECK(access("relative", F_OK) != 0);
	setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
	expect(plain, GT_F32, "cudnn:1 (heuristic)");
	if (home)
		setenv("HOME", home, 1);
	free(home);
	setenv("XDG_CACHE_HOME", test_tmpdir(), 1);
}

/* Eight processes add choices of their own at the same time: whatever of it stays, every line of the file is whole. */
TEST(writers_at_the_same_time)
{
	struct gt_err e = {0};
	char path[900], *text;
	size_t n;
	pid_t pid[8];
	setup();
	for (int i = 0; i < 8; i++) {
		if ((pid[i] = fork()) == 0) {
			struct gt_dev *dev = NULL;
			struct gt_kernel *k;
			struct job j;
			bool ok = be->open(&plain, &dev, &e) == GT_OK;
			for (int s = 0; ok && s < 40; s++) {
				job_make(&j, GT_F32, 3 + 8 * s % 37 + i);
				ok = be->prepare(dev, &j.call, &k, &e) == GT_OK;
				if (ok)
					be->release(dev, k);
			}
			be->close(dev);
			_exit(!ok);
		}
	}
	for (int i = 0; i < 8; i++) {
		int status = -1;
		CHECK(waitpid(pid[i], &status, 0) == pid[i] && status == 0);
	}
	CHECK_OK(gt_file_read(only_file(path, sizeof path), 1 << 20, &text, &n, &e), e);
	int lines = 0;
	char *save, *line = strtok_r(text, "\n", &save);
	CHECK(line && !strncmp(line, "gtrain cudnn plans 2\t", 21));
	while ((line = strtok_r(NULL, "\n", &save))) {
		CHECK_MSG(!strncmp(line, "conv2d fwd f32 x2,4,", 20) && strstr(line, "repeatable\t1\t0.0\t2=2,14=4"), "line: %s", line);
		lines++;
	}
	CHECK_MSG(lines >= 37, "%d lines", lines); /* the last writer's own, at least */
	printf("# cudasim: calls of 8 processes left %d plans\n", lines);
	free(text);
}

RUN_TESTS()
