#include "test.h"
#include "../crash/ckpt_fixture.h"
#include "base/fileio.h"
#include "base/json.h"
#include "base/public.h"
#include "gtrain_use.h"
#include "store/ckpt_manifest.h"
#include "store/safetensors.h"
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char warned[1024];
static int warnings;

static void warn(void *user, const char *text)
{
	(void)user;
	snprintf(warned, sizeof warned, "%s", text);
	warnings++;
}

/* A fresh run directory's name. */
static const char *fresh(void)
{
	static char path[128];
	static int n;
	snprintf(path, sizeof path, "%s/run%d", test_tmpdir(), n++);
	return path;
}

static const char *in(const char *dir, const char *name)
{
	static char buf[256][512]; /* a test uses fewer */
	static int k;
	char *p = buf[k++ % 256];
	p[0] = 0;
	strncat(strncat(strncat(p, dir, 255), "/", 2), name, 127);
	return p;
}

/* Names in dir but "." and "..", and how many of them contain a word. */
static int entries(const char *dir, const char *word)
{
	DIR *d = opendir(dir);
	int n = 0;
	for (struct dirent *e; d && (e = readdir(d));)
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strstr(e->d_name, word);
	if (d)
		closedir(d);
	return n;
}

static int64_t open_step(const char *dir, const char *which, enum gt_code *code, struct gt_err *e)
{
	struct gt_ckpt *c;
	*code = gt_ckpt_open(dir, which, true, warn, NULL, &c, e);
	if (*code)
		return -1;
	const char *d = fix_differs(c);
	CHECK_MSG(!d, "%s differs", d);
	int64_t step = gt_ckpt_meta(c)->step;
	gt_ckpt_close(c);
	return step;
}

static void save_steps(const char *dir, int64_t from, int64_t to, int64_t keep)
{
	struct gt_ckpt_dir *d;
	struct gt_err e;
	CHECK_OK(gt_ckpt_dir_open(dir, &d, &e), e);
	for (int64_t s = from; d && s <= to; s++) {
		CHECK_OK(fix_save(d, s, &e), e);
		CHECK_OK(gt_ckpt_retain(d, keep, &e), e);
	}
	gt_ckpt_dir_close(d);
}

TEST(ckpt_round_trip)
{
	const char *dir = in(fresh(), "deep/er"); /* parents are made */
	struct gt_err e;
	enum gt_code code;
	struct stat st;
	save_steps(dir, 0, 4, 0);
	CHECK(open_step(dir, "latest", &code, &e) == 4);
	CHECK(open_step(dir, "best", &code, &e) == 3);
	CHECK(open_step(dir, "2", &code, &e) == 2);
	CHECK(open_step(dir, "00000002", &code, &e) == 2);
	CHECK(open_step(dir, "0", &code, &e) == 0);
	CHECK(open_step(in(dir, "step-00000001"), "latest", &code, &e) == 1);
	CHECK(open_step(in(dir, "latest"), "latest", &code, &e) == 4); /* the symlink as a path */
	CHECK(open_step(dir, "9", &code, &e) == -1 && code == GT_ENOINPUT);
	CHECK_MSG(strstr(e.msg, "there is no checkpoint of step 9; expected one of 0, 1, 2, 3, 4") && !strchr(strstr(e.msg, "of 0"), ';'), "%s",
	          e.msg);
	CHECK(open_step(in(dir, "step-00000007"), "latest", &code, &e) == -1 && code == GT_ENOINPUT);
	CHECK_MSG(strstr(e.msg, "deep/er: there is no checkpoint of step 7; expected one of 0, 1, 2, 3, 4"), "%s", e.msg);
	CHECK(open_step(in(dir, "gone/step-00000007"), "latest", &code, &e) == -1 &&
	      strstr(e.msg, "step-00000007: expected a checkpoint, but this path does not exist; "));
	CHECK(open_step(dir, "-1", &code, &e) == -1 && code == GT_EUSAGE);
	CHECK(open_step(dir, "x", &code, &e) == -1 && code == GT_EUSAGE);
	CHECK(open_step(in(dir, "nowhere"), "latest", &code, &e) == -1 && code == GT_ENOINPUT);
	CHECK(open_step(in(dir, ".lock"), "latest", &code, &e) == -1 && code == GT_EDATA);
	mode_t mask = umask(0);
	umask(mask);
	CHECK(!stat(dir, &st) && (st.st_mode & 0777) == (0777 & ~mask));
	CHECK(!stat(in(dir, "step-00000001"), &st) && (st.st_mode & 0777) == (0777 & ~mask));
	CHECK(!stat(in(dir, "step-00000001/model.safetensors"), &st) && (st.st_mode & 0777) == (0666 & ~mask));
	CHECK(!stat(in(dir, "step-00000001/manifest.json"), &st) && (st.st_mode & 0777) == (0666 & ~mask));
	CHECK(entries(dir, "tmp-") == 0 && entries(dir, "step-") == 5);
}

TEST(ckpt_lists_steps)
{
	const char *dir = fresh();
	struct gt_err e;
	enum gt_code code;
	save_steps(dir, 99, 99, 0);
	CHECK(open_step(dir, "1", &code, &e) == -1 && strstr(e.msg, "of step 1; expected 99"));
	save_steps(dir, 5, 24, 0);
	CHECK(open_step(dir, "1", &code, &e) == -1);
	CHECK_MSG(strstr(e.msg, "expected one of 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, ..., 16, 17, 18, 19, 20, 21, 22, 23, 24, 99"), "%s", e.msg);
}

TEST(ckpt_without_optimizer_or_best)
{
	const char *dir = fresh();
	struct fixture f;
	struct gt_ckpt_dir *d;
	struct gt_ckpt *c;
	struct gt_ckpt_tensor t;
	struct gt_err e;
	char path[512];
	fix_make(&f, 12345678901);
	f.meta.has_best = false;
	CHECK_OK(gt_ckpt_dir_open(dir, &d, &e), e);
	CHECK_OK(gt_ckpt_save(d, &f.meta, f.model, 3, NULL, 0, path, sizeof path, &e), e);
	CHECK(!strcmp(path, in(dir, "step-12345678901")));
	CHECK(access(in(path, "optimizer.safetensors"), F_OK));
	CHECK(access(in(dir, "best"), F_OK));
	CHECK(gt_ckpt_open(dir, "best", true, NULL, NULL, &c, &e) == GT_ENOINPUT);
	CHECK_OK(gt_ckpt_open(dir, "latest", true, NULL, NULL, &c, &e), e);
	CHECK(!gt_ckpt_tensor_at(c, 1, 0, &t));
	CHECK(gt_ckpt_tensor_at(c, 0, 0, &t) && !strcmp(t.name, "bn.num_batches_tracked") && t.desc.rank == 0);
	float out[FIX_W];
	CHECK(gt_ckpt_read(c, 1, "momentum.fc.weight", &f.optim[0].desc, out, &e) == GT_EDATA);
	CHECK(gt_ckpt_read(c, 0, "fc.weight", &f.model[1].desc, out, &e) == GT_EDATA && strstr(e.msg, "[11, 3]") && strstr(e.msg, "fc.weight"));
	gt_ckpt_close(c);
	/* What no manifest can hold is refused before anything is written; odd values of `best` survive. */
	f.meta.step = -1;
	CHECK(gt_ckpt_save(d, &f.meta, f.model, 3, NULL, 0, path, sizeof path, &e) == GT_EINTERNAL);
	static const double odd[] = {INFINITY, -INFINITY, NAN, 4.9e-324};
	for (int i = 0; i < 4; i++) {
		f.meta.step = i;
		f.meta.has_best = true;
		f.meta.best = odd[i];
		CHECK_OK(gt_ckpt_save(d, &f.meta, f.model, 3, NULL, 0, path, sizeof path, &e), e);
		CHECK_OK(gt_ckpt_open(path, "latest", true, NULL, NULL, &c, &e), e);
		CHECK(gt_ckpt_meta(c)->has_best && (gt_ckpt_meta(c)->best == odd[i] || (isnan(odd[i]) && isnan(gt_ckpt_meta(c)->best))));
		gt_ckpt_close(c);
	}
	gt_ckpt_dir_close(d);
}

TEST(ckpt_retention_keeps_newest_and_best)
{
	const char *dir = fresh();
	struct gt_err e;
	enum gt_code code;
	save_steps(dir, 1, 11, 2);
	CHECK(entries(dir, "step-") == 3); /* 10, 11 and the best, 9 */
	CHECK(open_step(dir, "latest", &code, &e) == 11 && open_step(dir, "10", &code, &e) == 10 && open_step(dir, "best", &code, &e) == 9);
	save_steps(dir, 12, 12, 1);
	CHECK(entries(dir, "step-") == 1 && open_step(dir, "best", &code, &e) == 12);
	save_steps(dir, 13, 20, 0); /* keep all */
	CHECK(entries(dir, "step-") == 9);
}

TEST(ckpt_newest_is_by_commit_not_by_step)
{
	const char *dir = fresh();
	struct gt_err e;
	enum gt_code code;
	save_steps(dir, 100, 101, 0);
	save_steps(dir, 50, 51, 2); /* went on from an earlier step: retention must not eat what was just saved */
	CHECK(open_step(dir, "latest", &code, &e) == 51);
	CHECK(entries(dir, "step-") == 2 && open_step(dir, "50", &code, &e) == 50);
}

TEST(ckpt_same_step_is_replaced_whole)
{
	const char *dir = fresh();
	struct gt_ckpt_dir *d;
	struct gt_ckpt *c;
	struct gt_err e;
	struct fixture f;
	char path[512];
	CHECK_OK(gt_ckpt_dir_open(dir, &d, &e), e);
	CHECK_OK(fix_save(d, 6, &e), e);
	fix_make(&f, 6);
	f.meta.cursor = 77;
	f.meta.epoch_sums = (struct gt_metrics){.loss = 0.1, .weight = 77, .correct = 40, .top5 = 70, .count = 77};
	CHECK_OK(gt_ckpt_save(d, &f.meta, f.model, 3, NULL, 0, path, sizeof path, &e), e);
	CHECK_OK(gt_ckpt_open(dir, "latest", true, NULL, NULL, &c, &e), e);
	CHECK(gt_ckpt_meta(c)->cursor == 77);
	const struct gt_metrics *sums = &gt_ckpt_meta(c)->epoch_sums;
	CHECK(sums->loss == 0.1 && sums->weight == 77 && sums->correct == 40 && sums->top5 == 70 && sums->count == 77);
	gt_ckpt_close(c);
	CHECK(entries(dir, "step-") == 1 && entries(path, "optimizer") == 0);
	gt_ckpt_dir_close(d);
}

TEST(ckpt_damage_leads_to_an_older_one_and_is_told)
{
	const char *dir = fresh();
	struct gt_err e;
	enum gt_code code;
	save_steps(dir, 1, 3, 0);
	CHECK(!truncate(in(dir, "step-00000003/model.safetensors"), 100));
	CHECK(!unlink(in(dir, "step-00000002/manifest.json")));
	warnings = 0;
	CHECK(open_step(dir, "latest", &code, &e) == 1 && warnings == 2);
	/* Asked for by name, it is not replaced by another. */
	CHECK(open_step(dir, "3", &code, &e) == -1 && code == GT_EDATA && strstr(e.msg, "step-00000003/model.safetensors"));
	CHECK(open_step(dir, "best", &code, &e) == -1 && code == GT_EDATA);
	CHECK(open_step(in(dir, "step-00000002"), "latest", &code, &e) == -1 && code == GT_EDATA && strstr(e.msg, "manifest.json"));
	CHECK(!unlink(in(dir, "step-00000001/config.cfg")));
	CHECK(open_step(dir, "latest", &code, &e) == -1 && code == GT_EDATA && strstr(e.msg, "every checkpoint is damaged"));
	/* Retention: the two newest and the best (6); without a manifest it is left for its owner to look at. */
	save_steps(dir, 4, 7, 2);
	CHECK(entries(dir, "step-") == 3 && !access(in(dir, "step-00000002"), F_OK) && open_step(dir, "latest", &code, &e) == 7);
}

TEST(ckpt_under_a_wrong_name)
{
	const char *dir = fresh();
	struct gt_err e;
	enum gt_code code;
	save_steps(dir, 1, 2, 0);
	CHECK(!rename(in(dir, "step-00000002"), in(dir, "step-00000009")));
	warnings = 0;
	CHECK(open_step(dir, "latest", &code, &e) == 1 && warnings == 1 && strstr(warned, "step 2"));
	CHECK(!rename(in(dir, "step-00000009"), in(dir, "mine"))); /* a copy under a name of one's own is fine */
	CHECK(open_step(in(dir, "mine"), "latest", &code, &e) == 2);
}

TEST(ckpt_open_looks_no_further_than_damage)
{
	const char *dir = fresh();
	save_steps(dir, 1, 2, 0);
	/* Too few descriptors is no damage: the newest must not be passed over. In a child, for its limits. */
	int tried = 0;
	for (rlim_t limit = 3; limit < 16; limit++) {
		pid_t pid = fork();
		if (!pid) {
			struct rlimit r = {limit, limit};
			struct gt_ckpt *c;
			struct gt_err e;
			setrlimit(RLIMIT_NOFILE, &r);
			enum gt_code code = gt_ckpt_open(dir, "latest", true, NULL, NULL, &c, &e);
			_exit(!code ? (gt_ckpt_meta(c)->step == 2 ? 0 : 1) : code == GT_EFAIL || code == GT_EIO ? 2 : 3);
		}
		int status;
		waitpid(pid, &status, 0);
		CHECK_MSG(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 2), "limit %d: status %x", (int)limit, status);
		tried += WEXITSTATUS(status) == 2;
	}
	CHECK(tried >= 2);
}

TEST(ckpt_stale_dirs_are_swept)
{
	const char *dir = fresh();
	struct gt_err e;
	enum gt_code code;
	char cmd[1024];
	save_steps(dir, 1, 3, 0);
	snprintf(
	    cmd, sizeof cmd,
	    "cd '%s' && mkdir -p keep/me step-00000007.tmp-0123456789abcdef/sub/sub step-00000001.tmp-xyz step-1.tmp-0123456789abcdef && "
	    "touch keep/me/file step-00000007.tmp-0123456789abcdef/sub/file && ln -s ../../keep step-00000007.tmp-0123456789abcdef/sub/link && "
	    "ln -s keep step-00000002.old-0123456789abcdef && ln -s nowhere latest.tmp-0123456789abcdef && "
	    "cp -r step-00000001 step-00000001.old-aaaaaaaaaaaaaaaa && mv step-00000003 step-00000003.prev-bbbbbbbbbbbbbbbb && "
	    "cp -r step-00000002 step-00000002.prev-cccccccccccccccc && ln -sfn step-00000001 latest && rm best",
	    dir);
	CHECK(!system(cmd));
	CHECK(open_step(dir, "latest", &code, &e) == 3); /* through its stand-in */
	CHECK(open_step(dir, "3", &code, &e) == 3);
	save_steps(dir, 1, 0, 0); /* opens and closes */
	CHECK(open_step(dir, "latest", &code, &e) == 3 && open_step(dir, "best", &code, &e) == 3);
	CHECK(!access(in(dir, "keep/me/file"), F_OK));          /* symlinks were not followed */
	CHECK(!access(in(dir, "step-00000001.tmp-xyz"), F_OK)); /* not a name of ours */
	CHECK(!access(in(dir, "step-1.tmp-0123456789abcdef"), F_OK));
	CHECK(entries(dir, "step-") == 5 && entries(dir, "latest") == 1 && entries(dir, "0123456789abcdef") == 1);
	char target[64] = "";
	CHECK(readlink(in(dir, "latest"), target, sizeof target - 1) > 0 && !strcmp(target, "step-00000003"));
}

TEST(ckpt_two_runs_do_not_share_a_directory)
{
	const char *dir = fresh();
	struct gt_ckpt_dir *d, *d2;
	struct gt_err e;
	struct timespec a, b;
	int ready[2];
	char byte, word[64];
	CHECK(!pipe(ready));
	pid_t pid = fork();
	if (!pid) {
		bool good = !gt_ckpt_dir_open(dir, &d, &e);
		if (write(ready[1], good ? "y" : "n", 1) == 1)
			pause();
		_exit(1);
	}
	CHECK(read(ready[0], &byte, 1) == 1 && byte == 'y');
	clock_gettime(CLOCK_MONOTONIC, &a);
	CHECK(gt_ckpt_dir_open(dir, &d2, &e) == GT_ECANTCREAT);
	clock_gettime(CLOCK_MONOTONIC, &b);
	snprintf(word, sizeof word, "another run (pid %d) uses", pid);
	CHECK_MSG(strstr(e.msg, word) && strstr(e.msg, dir), "%s", e.msg);
	double s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
	CHECK(s < 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK_OK(gt_ckpt_dir_open(dir, &d2, &e), e); /* the lock went with its holder */
	gt_ckpt_dir_close(d2);
	close(ready[0]);
	close(ready[1]);
}

TEST(ckpt_dir_that_cannot_be)
{
	struct gt_ckpt_dir *d;
	struct gt_err e;
	char file[512];
	snprintf(file, sizeof file, "%s/file", test_tmpdir());
	fclose(fopen(file, "w"));
	CHECK(gt_ckpt_dir_open(in(file, "run"), &d, &e) == GT_ECANTCREAT && strstr(e.msg, "Not a directory"));
	CHECK(gt_ckpt_dir_open("/proc/gtrain/run", &d, &e) == GT_ECANTCREAT && strstr(e.msg, "/proc/gtrain"));
	CHECK(gt_ckpt_dir_open("", &d, &e) == GT_ECANTCREAT);
	char longer[5000];
	memset(longer, 'a', sizeof longer - 1);
	longer[sizeof longer - 1] = 0;
	CHECK(gt_ckpt_dir_open(longer, &d, &e) == GT_ECANTCREAT);
}

TEST(ckpt_dir_half_made_is_removed)
{
	const char *dir = fresh(), *path = in(dir, "a/b"), *part = in(dir, "a");
	struct stat st;
	CHECK(!mkdir(dir, 0777));
	size_t existed = gt_ckpt_dir_existing(path);
	CHECK(!mkdir(part, 0777)); /* as a rank that is killed before it creates a/b */
	gt_ckpt_dir_clean(path, existed);
	CHECK(stat(part, &st) && errno == ENOENT);
	CHECK(!stat(dir, &st)); /* what existed before stays */
}

TEST(inspect_and_export)
{
	const char *dir = fresh();
	struct gt_json j = {0};
	const char *line;
	struct gt_st_file *st;
	struct gt_err e;
	struct stat s;
	save_steps(dir, 1, 4, 0);
	CHECK_OK(gt_inspect(dir, true, &j, &e), e);
	CHECK_OK(gt_json_finish(&j, &line, &e), e);
	CHECK(strstr(line, "step-00000003\",\"name\":\"fixture\"")); /* of a run: its best */
	CHECK(strstr(line, "\"step\":3,") && strstr(line, "\"world\":1,") && strstr(line, "\"verified\":true"));
	CHECK(strstr(line, "{\"file\":\"model.safetensors\",\"name\":\"fc.weight\",\"dtype\":\"f32\",\"shape\":\"[11, 3]\",\"bytes\":132},"
	                   "{\"file\":\"optimizer.safetensors\""));
	gt_json_reset(&j);
	CHECK(!unlink(in(dir, "best")));
	CHECK_OK(gt_inspect(dir, false, &j, &e), e);
	CHECK_OK(gt_json_finish(&j, &line, &e), e);
	CHECK(strstr(line, "\"verified\":false") && strstr(line, "\"step\":4,")); /* none marked: the latest */
	gt_json_free(&j);
	CHECK(!symlink("step-00000003", in(dir, "best")));
	/* Over an old file, too. */
	const char *out = in(dir, "out.safetensors");
	for (int i = 0; i < 2; i++) {
		CHECK_OK(gt_export(dir, out, &e), e);
		CHECK_OK(gt_st_open(out, &st, &e), e);
		const struct gt_st_tensor *t = gt_st_find(st, "fc.bias");
		float b;
		CHECK(t && gt_st_count(st) == 3);
		memcpy(&b, t->data, sizeof b);
		CHECK(b == 9); /* step 3 */
		gt_st_close(st);
	}
	mode_t mask = umask(0);
	umask(mask);
	CHECK(!stat(out, &s) && (s.st_mode & 0777) == (0666 & ~mask));
	CHECK(gt_export(dir, "/dev/null", &e) == GT_ECANTCREAT);
	CHECK(gt_export(dir, in(dir, "no/where"), &e) == GT_ECANTCREAT);
	CHECK(gt_export(in(dir, "step-00000002"), out, &e) == GT_OK);
	CHECK(!truncate(in(dir, "step-00000002/model.safetensors"), 8));
	CHECK(gt_export(in(dir, "step-00000002"), out, &e) == GT_EDATA && gt_inspect(in(dir, "step-00000002"), false, &j, &e) == GT_EDATA);
	CHECK(gt_inspect(in(dir, "nowhere"), false, &j, &e) == GT_ENOINPUT);
	CHECK(entries(dir, ".tmp-") == 0);
}

/* ---- the members of the manifest ------------------------------------------------------------------------------------------------- */
#define FILE_ENTRY(name) "{\"name\":\"" name "\",\"bytes\":123,\"xxh3\":\"0123456789abcdef0123456789abcdef\"}"

/* A manifest with every member, without the digest that ends it. All members differ. */
static const char *const every_member =
    "{\"format\":1,\"version\":\"" GT_VERSION "\",\"serial\":9,\"parent\":7,\"name\":\"a \\\"run\\\"\",\"step\":30,\"epoch\":3,"
    "\"cursor\":64,\"schedule_step\":31,\"epoch_steps\":10,\"world\":11,\"seed\":\"18446744073709551615\","
    "\"best\":{\"value\":\"-inf\",\"step\":20,\"epoch\":2,\"metric\":\"test/acc\",\"mode\":\"max\"},\"peak\":{\"acc\":0.5,\"epoch\":1},"
    "\"early_stop\":{\"metric\":\"valid/loss\",\"best\":0.25,\"bad\":5,\"cooldown\":6,\"drops\":8},"
    "\"plateau\":{\"metric\":\"valid/acc\",\"best\":\"nan\",\"bad\":12,\"cooldown\":13,\"drops\":14},"
    "\"loss_scale\":65536,\"good_steps\":15,\"seconds\":1.5,"
    "\"epoch_sums\":{\"loss\":2.5,\"weight\":66,\"correct\":40,\"top5\":60,\"count\":65},"
    "\"pending_evaluation\":{\"due\":true,\"epoch\":{\"loss\":3.5,\"weight\":96,\"correct\":70,\"top5\":90,\"count\":95}},"
    "\"files\":[" FILE_ENTRY("model.safetensors") "," FILE_ENTRY("config.cfg") "]";

/* Parses a manifest to which the digest is added. */
static enum gt_code parse_sealed(struct gt_arena *a, const char *body, struct gt_ckpt_manifest *m, struct gt_err *e)
{
	char digest[GT_DIGEST_HEX], text[4096];
	gt_digest_bytes(body, strlen(body), digest);
	int n = snprintf(text, sizeof text, "%s,\"xxh3\":\"%s\"}\n", body, digest);
	return gt_ckpt_manifest_parse(text, (size_t)n, "m", a, m, e);
}

/* Parses every_member with its part `from` replaced. */
static enum gt_code parse_changed(const char *from, size_t length, const char *to)
{
	char body[4096];
	struct gt_ckpt_manifest m;
	struct gt_arena *a;
	struct gt_err e;
	CHECK_OK(gt_arena_open(&a, &e), e);
	snprintf(body, sizeof body, "%.*s%s%s", (int)(from - every_member), every_member, to, from + length);
	enum gt_code code = parse_sealed(a, body, &m, &e);
	gt_arena_close(a);
	return code;
}

TEST(manifest_is_written_as_it_is_read)
{
	struct gt_ckpt_manifest m;
	struct gt_arena *a;
	struct gt_json j = {0};
	struct gt_err e;
	CHECK_OK(gt_arena_open(&a, &e), e);
	CHECK_OK(parse_sealed(a, every_member, &m, &e), e);
	CHECK_OK(gt_ckpt_manifest_print(&m, &j, &e), e);
	CHECK_MSG(!strncmp(j.text, every_member, strlen(every_member)), "%s", j.text);
	gt_json_free(&j);
	gt_arena_close(a);
}

/* Each member is removed, doubled and given values of other types. */
TEST(manifest_members)
{
	static const char *const wrong_whole[] = {"null", "-1", "1.5", "9007199254740994", "\"1\"", "[]", NULL};
	static const char *const wrong_real[] = {"null", "true", "1e999", "\"1\"", "\"\"", "{}", NULL};
	static const char *const wrong_text[] = {"null", "1", "[]", NULL};
	static const char *const wrong_digits[] = {"null", "1", "\"-1\"", "\" 1\"", "\"01\"", "\"\"", "\"18446744073709551616\"", NULL};
	static const char *const wrong_bool[] = {"null", "1", "\"true\"", "{}", NULL};
	static const char *const wrong_object[] = {"true", "1", "\"x\"", "[]", "{}", NULL};
	static const struct {
		const char *member;
		const char *const *wrong;
		bool optional; /* absent in checkpoints of earlier versions */
	} rows[] = {
	    {"\"format\":1", wrong_whole},
	    {"\"serial\":9", wrong_whole},
	    {"\"parent\":7", wrong_whole, true},
	    {"\"name\":\"a \\\"run\\\"\"", wrong_text},
	    {"\"step\":30", wrong_whole},
	    {"\"epoch\":3", wrong_whole},
	    {"\"cursor\":64", wrong_whole},
	    {"\"schedule_step\":31", wrong_whole, true},
	    {"\"epoch_steps\":10", wrong_whole, true},
	    {"\"world\":11", wrong_whole},
	    {"\"seed\":\"18446744073709551615\"", wrong_digits},
	    {"\"best\":{\"value\":\"-inf\",\"step\":20,\"epoch\":2,\"metric\":\"test/acc\",\"mode\":\"max\"}", wrong_object},
	    {"\"value\":\"-inf\"", wrong_real},
	    {"\"step\":20", wrong_whole},
	    {"\"epoch\":2", wrong_whole, true},
	    {"\"metric\":\"test/acc\"", wrong_text},
	    {"\"mode\":\"max\"", wrong_text},
	    {"\"peak\":{\"acc\":0.5,\"epoch\":1}", wrong_object, true},
	    {"\"acc\":0.5", wrong_real},
	    {"\"epoch\":1", wrong_whole},
	    {"\"early_stop\":{\"metric\":\"valid/loss\",\"best\":0.25,\"bad\":5,\"cooldown\":6,\"drops\":8}", wrong_object, true},
	    {"\"metric\":\"valid/loss\"", wrong_text, true},
	    {"\"best\":0.25", wrong_real},
	    {"\"bad\":5", wrong_whole},
	    {"\"cooldown\":6", wrong_whole},
	    {"\"drops\":8", wrong_whole},
	    {"\"plateau\":{\"metric\":\"valid/acc\",\"best\":\"nan\",\"bad\":12,\"cooldown\":13,\"drops\":14}", wrong_object, true},
	    {"\"metric\":\"valid/acc\"", wrong_text, true},
	    {"\"best\":\"nan\"", wrong_real},
	    {"\"bad\":12", wrong_whole},
	    {"\"cooldown\":13", wrong_whole},
	    {"\"drops\":14", wrong_whole},
	    {"\"loss_scale\":65536", wrong_real},
	    {"\"good_steps\":15", wrong_whole},
	    {"\"seconds\":1.5", wrong_real},
	    {"\"epoch_sums\":{\"loss\":2.5,\"weight\":66,\"correct\":40,\"top5\":60,\"count\":65}", wrong_object, true},
	    {"\"loss\":2.5", wrong_real},
	    {"\"weight\":66", wrong_real},
	    {"\"correct\":40", wrong_whole},
	    {"\"top5\":60", wrong_whole},
	    {"\"count\":65", wrong_whole},
	    {"\"pending_evaluation\":{\"due\":true,\"epoch\":{\"loss\":3.5,\"weight\":96,\"correct\":70,\"top5\":90,\"count\":95}}",
	     wrong_object, true},
	    {"\"due\":true", wrong_bool},
	    {"\"epoch\":{\"loss\":3.5,\"weight\":96,\"correct\":70,\"top5\":90,\"count\":95}", wrong_object, true},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *at = strstr(every_member, rows[i].member), *member = rows[i].member;
		size_t n = strlen(member), key = (size_t)(strchr(member, ':') - member) + 1;
		char twice[512];
		CHECK_MSG(at, "%s", member);
		if (!at)
			continue;
		bool last = at[n] == '}';
		enum gt_code code = parse_changed(at - last, n + 1, "");
		CHECK_MSG(code == (rows[i].optional ? GT_OK : GT_EDATA), "without %s: %d", member, code);
		snprintf(twice, sizeof twice, "%s,%s", member, member);
		CHECK_MSG(parse_changed(at, n, twice) == GT_EDATA, "twice %s", member);
		for (const char *const *w = rows[i].wrong; *w; w++)
			CHECK_MSG(parse_changed(at + key, n - key, *w) == GT_EDATA, "%s as %s", member, *w);
	}
}

RUN_TESTS()
