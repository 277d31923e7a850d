/* Damaged checkpoints: every one must be refused by name, and an older one used where there is one. */
/* tests/run: beside others */
#include "ckpt_fixture.h"
#include "fast_dir.h"
#include "base/digest.h"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES 4
static const char *const names[FILES] = {"manifest.json", "model.safetensors", "optimizer.safetensors", "config.cfg"};

static char dir[256], newest[300];
static int tried, silent;

static void make_run(const char *name)
{
	struct gt_ckpt_dir *d;
	struct gt_err e;
	snprintf(dir, sizeof dir, "%s/%s", fast_dir(), name);
	snprintf(newest, sizeof newest, "%s/step-00000002", dir);
	CHECK_OK(gt_ckpt_dir_open(dir, &d, &e), e);
	for (int64_t s = 1; s <= 2; s++)
		CHECK_OK(fix_save(d, s, &e), e);
	gt_ckpt_dir_close(d);
	tried = silent = 0;
}

static const char *in(const char *folder, const char *name)
{
	static char buf[64][512];
	static int k;
	char *p = buf[k++ % 64];
	snprintf(p, sizeof buf[0], "%.300s/%.100s", folder, name);
	return p;
}

static char *slurp(const char *path, size_t *n)
{
	static char *data; /* static: gcc 12 sees a dangling pointer otherwise, once this is inlined */
	struct gt_err e;
	data = NULL;
	CHECK_OK(gt_file_read(path, 1 << 20, &data, n, &e), e);
	return data;
}

static void put(const char *path, const void *data, size_t n)
{
	FILE *f = fopen(path, "w");
	if (!f || fwrite(data, 1, n, f) != n || fclose(f))
		abort();
}

static int warnings;

static void warn(void *user, const char *text)
{
	(void)user;
	warnings += strstr(text, "step-00000002") != NULL;
}

/* The newest checkpoint is damaged: says so by name, and the older one is taken, not silently. */
static void must_refuse(const char *what)
{
	struct gt_ckpt *c;
	struct gt_err e = {0};
	tried++;
	enum gt_code code = gt_ckpt_open(newest, "latest", true, NULL, NULL, &c, &e);
	if (!code) {
		silent++;
		gt_ckpt_close(c);
	}
	CHECK_MSG(code == GT_EDATA && strstr(e.msg, "step-00000002"), "%s: code %d: %s", what, code, e.msg);
	warnings = 0;
	code = gt_ckpt_open(dir, "latest", true, warn, NULL, &c, &e);
	CHECK_MSG(!code && gt_ckpt_meta(c)->step == 1 && !fix_differs(c) && warnings == 1, "%s: the older one: code %d, %d warnings", what,
	          code, warnings);
	if (!code)
		gt_ckpt_close(c);
}

static void report(const char *name)
{
	printf("# sweep damaged checkpoints, %s: %d points, %d failures\n", name, tried, silent);
}

TEST(corrupt_truncation_at_every_byte)
{
	char what[128];
	make_run("cut");
	for (int i = 0; i < FILES; i++) {
		size_t n;
		char *data = slurp(in(newest, names[i]), &n);
		for (size_t len = 0; len < n; len++) {
			put(in(newest, names[i]), data, len);
			snprintf(what, sizeof what, "%s cut to %zu bytes", names[i], len);
			must_refuse(what);
		}
		char *longer = calloc(1, n + 8);
		memcpy(longer, data, n);
		for (size_t more = 1; more <= 8; more++) {
			put(in(newest, names[i]), longer, n + more);
			snprintf(what, sizeof what, "%s with %zu bytes more", names[i], more);
			must_refuse(what);
		}
		put(in(newest, names[i]), data, n);
		free(longer);
		free(data);
	}
	report("truncated or longer");
}

TEST(corrupt_bit_flips)
{
	/* All bits of a manifest; of the rest, 5,000 and more by chance, and with SWEEP=full all. */
	const char *sweep = getenv("SWEEP");
	bool all = sweep && !strcmp(sweep, "full");
	char what[128];
	unsigned dice = 1;
	make_run("flip");
	for (int i = 0; i < FILES; i++) {
		size_t n, flips = 0;
		const char *path = in(newest, names[i]);
		char *data = slurp(path, &n);
		int fd = open(path, O_WRONLY);
		size_t count = i && !all ? 1700 : n * 8;
		for (size_t k = 0; k < count; k++, flips++) {
			dice = dice * 1664525u + 1013904223u;
			size_t bit = i && !all ? (dice >> 4) % (n * 8) : k;
			char byte = (char)(data[bit / 8] ^ 1 << bit % 8);
			if (pwrite(fd, &byte, 1, (off_t)(bit / 8)) != 1)
				abort();
			snprintf(what, sizeof what, "%s with bit %zu flipped", names[i], bit);
			must_refuse(what);
			if (pwrite(fd, &data[bit / 8], 1, (off_t)(bit / 8)) != 1)
				abort();
		}
		close(fd);
		free(data);
	}
	struct gt_ckpt *c;
	struct gt_err e;
	CHECK_OK(gt_ckpt_open(newest, "latest", true, NULL, NULL, &c, &e), e); /* all flipped back */
	CHECK(!fix_differs(c));
	gt_ckpt_close(c);
	CHECK(tried >= 5000);
	report("one bit flipped");
}

TEST(corrupt_files_missing_or_swapped)
{
	char what[128], old[300];
	make_run("swap");
	snprintf(old, sizeof old, "%s/step-00000001", dir);
	for (int i = 0; i < FILES; i++) {
		size_t n;
		const char *path = in(newest, names[i]);
		char *data = slurp(path, &n);
		snprintf(what, sizeof what, "without %s", names[i]);
		unlink(path);
		must_refuse(what);
		snprintf(what, sizeof what, "%s is a folder", names[i]);
		mkdir(path, 0700);
		must_refuse(what);
		rmdir(path);
		snprintf(what, sizeof what, "%s is a FIFO", names[i]);
		if (mkfifo(path, 0600))
			abort();
		must_refuse(what);
		unlink(path);
		snprintf(what, sizeof what, "%s is a symlink to itself", names[i]);
		if (symlink(names[i], path))
			abort();
		must_refuse(what);
		unlink(path);
		for (int k = 0; k < FILES; k++) { /* the other files of its own, and its fellow of the older checkpoint */
			size_t m;
			char *other = slurp(in(k == i ? old : newest, names[k]), &m);
			if (k == i && m == n && !memcmp(data, other, n)) { /* config.cfg is the same in both: that is no damage */
				free(other);
				continue;
			}
			put(path, other, m);
			snprintf(what, sizeof what, "%s holds %s%s", names[i], names[k], k == i ? " of step 1" : "");
			must_refuse(what);
			free(other);
			unlink(path);
		}
		put(path, data, n);
		free(data);
	}
	report("files missing or swapped");
}

/* What no bit flip makes: a manifest with a right digest that lies. Its digest is no signature, so its words are checked. */
TEST(corrupt_manifests_that_lie)
{
	static const struct {
		const char *from, *to;
		bool earlier; /* no lie: as an earlier version wrote it */
	} cases[] = {
	    {"\"format\":1", "\"format\":2"},
	    {"\"format\":1", "\"format\":1.5"},
	    {"\"format\":1,", ""},
	    {"\"step\":2,\"epoch\"", "\"step\":3,\"epoch\""},
	    {"\"step\":2,\"epoch\"", "\"step\":-2,\"epoch\""},
	    {"\"step\":2,\"epoch\"", "\"step\":2,\"step\":2,\"epoch\""},
	    {"\"step\":2,\"epoch\"", "\"step\":\"2\",\"epoch\""},
	    {"\"seed\":\"18446744073709551613\"", "\"seed\":\"18446744073709551616\""},
	    {"\"seed\":\"18446744073709551613\"", "\"seed\":\" 1\""},
	    {"\"seed\":\"18446744073709551613\"", "\"seed\":\"-1\""},
	    {"\"seed\":\"18446744073709551613\"", "\"seed\":1"},
	    {"\"loss_scale\":65536", "\"loss_scale\":\"big\""},
	    {"\"loss_scale\":65536", "\"loss_scale\":1e999"},
	    {"\"best\":{", "\"best\":[{"},
	    {"\"best\":{\"value\"", "\"best\":{\"worth\""},
	    {"\"epoch\":1,\"metric\"", "\"epoch\":-1,\"metric\""},
	    {"\"metric\":\"test/loss\",", ""},
	    {"\"mode\":\"min\"", "\"mode\":3"},
	    {"\"peak\":{\"acc\"", "\"peak\":{\"accuracy\""},
	    {",\"epoch\":1,\"metric\":\"test/loss\",\"mode\":\"min\"", "", .earlier = true},
	    {"\"peak\":{\"acc\":0.001953125,\"epoch\":1},", "", .earlier = true},
	    {"\"name\":\"fixture\"", "\"name\":null"},
	    {"\"name\":\"fixture\"", "\"name\":\"fix\\u0000ture\""},
	    {"model.safetensors", "../step-00000001/model.safetensors"},
	    {"model.safetensors", "/etc/passwd"},
	    {"model.safetensors", "optimizer.safetensors"},
	    {"config.cfg", "other.cfg"},
	    {"\"files\":[", "\"files\":[{},"},
	    {"\"files\":[", "\"files\":[7,"},
	    {"\"files\":[", "\"data\":["},
	    {"\"bytes\":", "\"bytes\":1"},
	    {"{\"format\"", "[\"format\""},
	};
	size_t n;
	char body[4096], text[4096], hex[GT_DIGEST_HEX];
	make_run("lie");
	const char *path = in(newest, names[0]);
	char *data = slurp(path, &n);
	char *seal = strstr(data, ",\"xxh3\":\"");
	for (char *next; (next = strstr(seal + 1, ",\"xxh3\":\""));)
		seal = next; /* the last one is the manifest's own */
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char *at = strstr(data, cases[i].from);
		CHECK_MSG(at && at < seal, "%s is not in the manifest", cases[i].from);
		if (!at)
			continue;
		snprintf(body, sizeof body, "%.*s%s%.*s", (int)(at - data), data, cases[i].to, (int)(seal - at - (long)strlen(cases[i].from)),
		         at + strlen(cases[i].from));
		gt_digest_bytes(body, strlen(body), hex);
		snprintf(text, sizeof text, "%.3900s,\"xxh3\":\"%s\"}\n", body, hex);
		put(path, text, strlen(text));
		if (cases[i].earlier) {
			struct gt_ckpt *c;
			struct gt_err e;
			enum gt_code code = gt_ckpt_open(newest, "latest", true, NULL, NULL, &c, &e);
			CHECK_OK(code, e);
			const struct gt_ckpt_meta *m = code ? NULL : gt_ckpt_meta(c);
			CHECK(m && (m->peak_epoch == 0 || (m->has_best && m->best_epoch == -1 && !m->best_metric && !m->best_mode)));
			if (m)
				gt_ckpt_close(c);
			continue;
		}
		if (strstr(cases[i].to, "\"step\":3")) { /* well formed: wrong only under this folder's name */
			struct gt_ckpt *c;
			struct gt_err e;
			CHECK(gt_ckpt_open(dir, "2", true, NULL, NULL, &c, &e) == GT_EDATA && strstr(e.msg, "step 3"));
			continue;
		}
		must_refuse(cases[i].to);
	}
	/* The seal itself is right: put back unchanged, it is taken. */
	put(path, data, n);
	struct gt_ckpt *c;
	struct gt_err e;
	CHECK_OK(gt_ckpt_open(newest, "latest", true, NULL, NULL, &c, &e), e);
	gt_ckpt_close(c);
	free(data);
	report("manifest that lies");
}

RUN_TESTS()
