/* Memory that runs out while a config is read, checked and planned, and while a table is read: the Nth allocation fails, once or from then
 * on, for every N. A clean error, or the right result; no crash, no leak. Allocations of libconfig, which it does not check, are left
 * alone: conf/ctree.c reserves what they need, and config_under_limit shows that the reserve holds under a limit on the address space. */
#include "base/json.h"
#include "conf/conf.h"
#include "gtrain_report.h"
#include "skipped.h"
#include "table/table_facts.h"
#include "test.h"
#include <dlfcn.h>
#include <libconfig.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

TEST(oom_config)
{
	test_skip("the sanitizer has an allocator of its own");
}

#else

#include "failing_malloc.h"

static bool in_libconfig;
static int copies, fail_copy; /* calls of strdup by libconfig, and the one that fails; 0: none */

/* Stands before libc's own, by the name that libraries of Debian call. */
SEEN char *__strdup(const char *s);
SEEN char *__strdup(const char *s)
{
	if (in_libconfig && ++copies == fail_copy)
		return NULL;
	size_t n = strlen(s) + 1;
	char *copy = malloc(n);
	return copy ? memcpy(copy, s, n) : NULL;
}

/* Stands before libconfig's own. */
SEEN int config_read_string(config_t *c, const char *text)
{
	int (*real)(config_t *, const char *) = (int (*)(config_t *, const char *))dlsym(RTLD_NEXT, "config_read_string");
	bool was = armed;
	armed = false;
	in_libconfig = true;
	int r = real(c, text);
	in_libconfig = false;
	armed = was;
	return r;
}

SEEN void config_init(config_t *c)
{
	void (*real)(config_t *) = (void (*)(config_t *))dlsym(RTLD_NEXT, "config_init");
	bool was = armed;
	armed = false;
	real(c);
	armed = was;
}

static const char text[] =
    "name = \"oom\"; data = { name = \"synthetic\"; batch = 8; classes = 3; samples = 20; samples_test = 8; augment = ( { type = "
    "\"hflip\"; } ); };\n"
    "model = { input = [1, 6, 6]; blocks = { b = { params = [\"ch\"]; layers = ( { type = \"conv2d\"; out = \"$ch\"; kernel = 3; padding = "
    "1; },\n"
    "{ type = \"batchnorm2d\"; }, { type = \"relu\"; } ); }; }; layers = ( { block = \"b\"; name = \"x\"; repeat = 3; ch = 4; }, { type = "
    "\"flatten\"; },\n"
    "{ name = \"fc\"; type = \"linear\"; out = 3; } ); };\n"
    "train = { epochs = 2; groups = ( { match = \"fc.*\"; lr_mul = 2.0; } ); optimizer = { type = \"sgd\"; lr = 0.1; }; };\n";
static const char wrong[] = "device = \"gpu\"; data = { name = \"synthetic\"; batch_size = 8; };\nmodel = { input = 5.5; layers = ( { type "
                            "= \"dense\"; } ); }; quux = 1;\n";

enum what { LOAD, LOAD_WRONG, CHECK_IT, PLAN, WHATS };
static const char *const names[WHATS] = {"load", "load a wrong config", "check", "plan"};

static enum gt_code once(enum what what, char *got, size_t size, struct gt_err *e)
{
	const char *t = what == LOAD_WRONG ? wrong : text;
	struct gt_conf *c;
	struct gt_json json = {0};
	struct gt_report *r;
	const char *line;
	char *plan;
	enum gt_code code = gt_conf_load_text("oom.cfg", t, strlen(t), NULL, 0, &c, e);
	if (code != GT_OK)
		return code;
	if (what == LOAD) {
		snprintf(got, size, "%s", c->text);
	} else if (what == CHECK_IT) {
		if (!(code = gt_check(c, &(struct gt_check_opts){.world = 1}, &json, &r, e))) {
			gt_json_end(&json);
			code = gt_json_finish(&json, &line, e);
			snprintf(got, size, "%s", code ? "" : line);
			gt_report_free(r);
		}
		gt_json_free(&json);
	} else if (!(code = gt_plan_text(c, NULL, 1, 0, false, &plan, e))) {
		snprintf(got, size, "%s", plan);
		free(plan);
	}
	gt_conf_free(c);
	return code;
}

TEST(oom_config)
{
	enum { SIZE = 1 << 17 };
	char *right = malloc(SIZE), *got = malloc(SIZE);
	struct gt_err e;
	int tried = 0, others = 0;
	CHECK(right && got);
	for (int what = 0; right && got && what < WHATS; what++) {
		enum gt_code want = what == LOAD_WRONG ? GT_ECONFIG : GT_OK;
		right[0] = 0;
		CHECK_MSG(once((enum what)what, right, SIZE, &e) == want, "%s: %s", names[what], e.msg); /* and plugins are loaded */
		int most = 0;
		for (int mode = 0; mode < 2; mode++) {
			for (at = 1;; at++, tried++) {
				count = 0;
				ever = mode;
				got[0] = 0;
				e = (struct gt_err){0};
				long blocks = live;
				armed = true;
				enum gt_code code = once((enum what)what, got, SIZE, &e);
				armed = false;
				bool hit = count >= at;
				most = at > most ? at : most;
				CHECK_MSG(live == blocks, "%s, allocation %d%s: %ld blocks leaked", names[what], at, mode ? " and all later" : "",
				          live - blocks);
				/* If a thread cannot be started, the caller does its work; if a plugin cannot be opened, the message is the loader's. */
				CHECK_MSG(code == want || (hit && (code == GT_EFAIL || code == GT_EUNAVAILABLE) && e.msg[0]),
				          "%s, allocation %d%s: code %d: %s", names[what], at, mode ? " and all later" : "", code, e.msg);
				others += code == GT_OK && strcmp(got, right) != 0;
				CHECK_MSG(code != GT_OK || !strcmp(got, right), "%s, allocation %d: another result", names[what], at);
				if (!hit)
					break;
			}
		}
		CHECK_MSG(most > 3, "%s: only %d allocations seen", names[what], most);
	}
	free(right);
	free(got);
	printf("# oom-sweep of configs: %d allocations refused, %d other results\n", tried, others);
}

/* Reads a table of numbers, words, odd cells and missing targets, and learns from it. */
static enum gt_code learn_table(const char *path, struct gt_err *e)
{
	struct gt_table_spec spec = {.target = (const char *const[]){"t"}, .ntarget = 1};
	struct gt_data_table t;
	struct gt_table_facts f;
	GT_TRY(gt_skipped_open(&spec.skipped, e));
	enum gt_code code = gt_table_read(&path, 1, &spec, &t, e);
	if (code == GT_OK) {
		code = gt_table_fit(&t, &spec, NULL, t.n, &f, e);
		if (code == GT_OK)
			gt_table_facts_free(&f);
		gt_table_free(&t);
	}
	gt_skipped_close(spec.skipped);
	return code;
}

TEST(oom_table)
{
	char path[1024];
	struct gt_err e;
	snprintf(path, sizeof path, "%s/oom.csv", test_tmpdir());
	FILE *f = fopen(path, "we");
	fprintf(f, "x,y,cat,t\n");
	for (int i = 0; i < 200; i++)
		fprintf(f, "%s%d.5,%d,w%d,%s\n", i == 70 ? "#" : "", i, i * i, i % 30, i % 50 == 3 ? "" : i % 3 ? "a" : "b");
	fclose(f);
	CHECK_OK(learn_table(path, &e), e);
	int tried = 0;
	for (int mode = 0; mode < 2; mode++)
		for (at = 1;; at++, tried++) {
			count = 0;
			ever = mode;
			e = (struct gt_err){0};
			long blocks = live;
			armed = true;
			enum gt_code code = learn_table(path, &e);
			armed = false;
			CHECK_MSG(live == blocks, "allocation %d: %ld blocks leaked", at, live - blocks);
			CHECK_MSG(code == GT_OK || (code == GT_EFAIL && strstr(e.msg, "out of memory")), "allocation %d: code %d: %s", at, code, e.msg);
			if (count < at) {
				CHECK(code == GT_OK);
				break;
			}
		}
	CHECK_MSG(tried > 50, "%d", tried);
	printf("# oom-sweep of a table: %d allocations refused\n", tried);
}

/* libconfig does not look whether a copy of a name or of a string failed: its tree then has NULL there. In a group of several settings it
 * crashes itself, when it compares the names; here each group has one. */
TEST(libconfig_without_copies)
{
	static const char nested[] = "a = { b = { c = ( { d = \"x\"; }, [\"y\", \"z\"], \"w\" ); }; };\n";
	struct gt_conf *c;
	struct gt_err e;
	copies = 0;
	CHECK(gt_conf_load_text("copies.cfg", nested, strlen(nested), NULL, 0, &c, &e) == GT_ECONFIG);
	int all = copies;
	if (!all) {
		test_skip("this libconfig does not call strdup");
		return;
	}
	for (fail_copy = 1; fail_copy <= all; fail_copy++) {
		copies = 0;
		enum gt_code code = gt_conf_load_text("copies.cfg", nested, strlen(nested), NULL, 0, &c, &e);
		CHECK_MSG(code == GT_EFAIL && strstr(e.msg, "out of memory"), "copy %d: code %d: %s", fail_copy, code, e.msg);
	}
	fail_copy = 0;
}

/* A process whose address space may grow by so many KiB loads a config of n layers; 0: it was loaded, 1: a clean refusal, else how it
 * ended. */
static int limited(const char *t, size_t n, long kib)
{
	pid_t pid = fork();
	if (!pid) {
		struct gt_conf *c;
		struct gt_err e;
		long pages = 0;
		FILE *f = fopen("/proc/self/statm", "re");
		if (!f || fscanf(f, "%ld", &pages) != 1)
			_exit(9);
		fclose(f);
		struct rlimit r = {(rlim_t)(pages * sysconf(_SC_PAGESIZE) + kib * 1024), RLIM_INFINITY};
		setrlimit(RLIMIT_AS, &r);
		enum gt_code code = gt_conf_load_text("big.cfg", t, n, NULL, 0, &c, &e);
		_exit(code == GT_OK ? 0 : code == GT_EFAIL && strstr(e.msg, "out of memory") ? 1 : 2);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

/* Values of every shape that libconfig allocates for: groups, lists, strings, an array that grows element by element. */
static char *big_config(int layers, size_t *size)
{
	char *t = NULL;
	FILE *f = open_memstream(&t, size);
	fprintf(f, "data = { name = \"synthetic\"; batch = 8; classes = 3; samples = 20; samples_test = 8; };\nmodel = { input = [1, 6, 6]; "
	           "layers = ( { type = \"flatten\"; }");
	for (int i = 0; i < layers; i++)
		fprintf(f, ",\n{ name = \"fc%d\"; type = \"linear\"; out = 3; in = [\"%s\"]; }", i, "input");
	fprintf(f, " ); };\ntrain = { epochs = 2; optimizer = { type = \"sgd\"; lr = 0.1; }; };\nquux = [0");
	for (int i = 0; i < 8 * layers; i++)
		fprintf(f, ",%d", i % 10);
	fprintf(f, "];\n");
	fclose(f);
	return t;
}

TEST(config_under_limit)
{
	int refused = 0, crashed = 0, tried = 0;
	const int sizes[] = {4, 400, 4000};
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		size_t n = 0;
		char *t = big_config(sizes[k], &n);
		long step = 64 + (long)n / 1024 * 2;
		bool done = false;
		for (long kib = 0; t && !done && kib < step * 200; kib += step, tried++) {
			int r = limited(t, n, kib);
			CHECK_MSG(r == 1 || r == 2, "%d layers, %ld KiB: the process ended with %d", sizes[k], kib, r);
			refused += r == 1;
			crashed += r != 1 && r != 2;
			done = r == 2; /* read whole: quux is no key */
		}
		CHECK_MSG(done, "%d layers: never read", sizes[k]);
		free(t);
	}
	CHECK(refused > 5);
	printf("# configs under a limit on memory: %d limits, %d clean refusals, %d crashes\n", tried, refused, crashed);
}

#endif

RUN_TESTS()
