/* lib/gtrain/fetch.so against an HTTP server in this process, on the loopback: resume, digests, cuts, refusals, archives. */
#include "base/plugin.h"
#include "gtrain_data.h"
#include "known.h"
#include "known_weights.h"
#include "unit/data_files.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- the server ------------------------------------------------------------------------------------------------------------- */
enum mode { NORMAL, NO_RANGE, CUT_ONCE, CUT_ALWAYS, MISSING, BUSY_ONCE, WRONG_RANGE, REDIRECT, REDIRECT_FILE, NO_LENGTH_CUT };

static struct {
	int listener, port;
	enum mode mode;
	size_t cut;
	int requests, ranges;
	uint64_t sent;
	struct {
		const char *name;
		const uint8_t *data;
		size_t size;
	} file[4];
} server;

static void send_all(int fd, const void *data, size_t n)
{
	for (const char *p = data; n;) {
		ssize_t w = send(fd, p, n, MSG_NOSIGNAL);
		if (w <= 0)
			return;
		p += w;
		n -= (size_t)w;
	}
}

static void reply(int fd, const char *status, const char *more, uint64_t length, const uint8_t *body, size_t n)
{
	char head[1024];
	int k = snprintf(head, sizeof head, "HTTP/1.1 %s\r\nContent-Length: %llu\r\nConnection: close\r\n%s\r\n", status,
	                 (unsigned long long)length, more);
	if (length == UINT64_MAX)
		k = snprintf(head, sizeof head, "HTTP/1.0 %s\r\n%s\r\n", status, more);
	send_all(fd, head, (size_t)k);
	send_all(fd, body, n);
	server.sent += n;
}

static void serve(int fd, const char *request)
{
	char path[256] = "", more[512] = "";
	const char *range = strcasestr(request, "\nRange: bytes=");
	enum mode mode = server.mode;
	server.requests++;
	server.ranges += range != NULL;
	sscanf(request, "GET /%255s", path);
	if (mode == REDIRECT && strncmp(path, "there/", 6)) {
		snprintf(more, sizeof more, "Location: http://127.0.0.1:%d/there/%s\r\n", server.port, path);
		reply(fd, "302 Found", more, 9, (const uint8_t *)"elsewhere", 9);
		return;
	}
	if (mode == REDIRECT_FILE) {
		reply(fd, "302 Found", "Location: file:///etc/hostname\r\n", 0, NULL, 0);
		return;
	}
	if (mode == BUSY_ONCE) {
		server.mode = NORMAL;
		reply(fd, "503 Service Unavailable", "", 4, (const uint8_t *)"busy", 4);
		return;
	}
	const char *name = strrchr(path, '/');
	name = name ? name + 1 : path;
	int i = 0;
	while (i < 4 && server.file[i].name && strcmp(server.file[i].name, name))
		i++;
	if (i == 4 || !server.file[i].name || mode == MISSING || !strncmp(path, "missing/", 8)) {
		reply(fd, "404 Not Found", "", 9, (const uint8_t *)"not found", 9);
		return;
	}
	const uint8_t *data = server.file[i].data;
	size_t size = server.file[i].size, from = range && mode != NO_RANGE ? strtoull(range + 14, NULL, 10) : 0, n = size - from;
	if (from >= size && from) {
		reply(fd, "416 Range Not Satisfiable", "", 0, NULL, 0);
		return;
	}
	if (range && mode != NO_RANGE)
		snprintf(more, sizeof more, "Content-Range: bytes %zu-%zu/%zu\r\n", mode == WRONG_RANGE ? from + 1 : from, size - 1, size);
	bool cut = mode == CUT_ONCE || mode == CUT_ALWAYS || mode == NO_LENGTH_CUT;
	if (mode == CUT_ONCE)
		server.mode = NORMAL;
	reply(fd, *more ? "206 Partial Content" : "200 OK", more, mode == NO_LENGTH_CUT ? UINT64_MAX : n, data + from,
	      cut && n > server.cut ? server.cut : n);
}

static void *server_run(void *arg)
{
	(void)arg;
	for (;;) {
		int fd = accept(server.listener, NULL, NULL);
		char request[4096];
		size_t n = 0;
		if (fd < 0)
			return NULL;
		while (n < sizeof request - 1) {
			ssize_t r = recv(fd, request + n, sizeof request - 1 - n, 0);
			if (r <= 0)
				break;
			n += (size_t)r;
			request[n] = '\0';
			if (strstr(request, "\r\n\r\n")) {
				serve(fd, request);
				break;
			}
		}
		shutdown(fd, SHUT_WR);
		close(fd);
	}
}

static const char *server_url(void)
{
	static char url[64];
	if (!server.port) {
		struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		socklen_t len = sizeof a;
		pthread_t t;
		server.listener = socket(AF_INET, SOCK_STREAM, 0);
		CHECK(!bind(server.listener, (struct sockaddr *)&a, sizeof a) && !listen(server.listener, 16));
		getsockname(server.listener, (struct sockaddr *)&a, &len);
		server.port = ntohs(a.sin_port);
		CHECK(!pthread_create(&t, NULL, server_run, NULL));
		pthread_detach(t);
	}
	snprintf(url, sizeof url, "http://127.0.0.1:%d/data", server.port);
	return url;
}

/* ---- one data set of two files ---------------------------------------------------------------------------------------------- */
enum { NA = 300000, NB = 5000 };
static uint8_t a[NA + 10], b[NB];
static struct gt_known_dataset row;
static char sha_a[65], sha_b[65];
static const struct gt_fetch_plugin *plugin;
static uint64_t seen_done, seen_total;

static void digest(const char *program, const void *data, size_t n, char *hex, size_t len)
{
	char command[1200];
	put("digest.tmp", data, n, false);
	snprintf(command, sizeof command, "%s '%s'", program, at("digest.tmp"));
	FILE *p = popen(command, "r");
	CHECK(p && fread(hex, 1, len, p) == len);
	hex[len] = '\0';
	pclose(p);
}

static void start(enum mode mode)
{
	void *symbol;
	struct gt_err e;
	if (!plugin) {
		unsetenv("http_proxy");
		setenv("no_proxy", "*", 1);
		CHECK_OK(gt_plugin_open("fetch", GT_FETCH_SYMBOL, &symbol, &e), e);
		plugin = symbol;
		if (!plugin || plugin->abi != GT_FETCH_ABI) {
			test_fail(__FILE__, __LINE__, "no usable fetch plugin");
			exit(1);
		}
		for (int i = 0; i < NA + 10; i++)
			a[i] = (uint8_t)(i * 7 + i / 256 * 31);
		for (int i = 0; i < NB; i++)
			b[i] = (uint8_t)(i * 13 + 5);
		digest("sha256sum", a, NA, sha_a, 64);
		digest("sha256sum", b, NB, sha_b, 64);
		row = (struct gt_known_dataset){.name = "t", .format = "idx", .file = {{"a.gz", NA, sha_a}, {"b.gz", NB, sha_b}}};
	}
	server_url();
	server.mode = mode;
	server.cut = 100000;
	server.requests = server.ranges = 0;
	server.sent = 0;
	memset(server.file, 0, sizeof server.file);
	server.file[0].name = "a.gz", server.file[0].data = a, server.file[0].size = NA;
	server.file[1].name = "b.gz", server.file[1].data = b, server.file[1].size = NB;
}

static void progress(void *user, const char *file, uint64_t done, uint64_t total)
{
	CHECK(user == &row && file && total && done <= total);
	seen_done = done;
	seen_total = total;
}

static enum gt_code fetch(const char *dir, struct gt_err *e)
{
	char path[1100];
	*e = (struct gt_err){0};
	snprintf(path, sizeof path, "%s", at(dir));
	seen_done = seen_total = 0;
	return plugin->fetch(&row, path, server_url(), progress, &row, e);
}

static long size_of(const char *dir, const char *name)
{
	char path[700];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", dir, name);
	return stat(at(path), &st) ? -1 : (long)st.st_size;
}

static bool is(const char *dir, const char *name, const uint8_t *want, size_t n)
{
	char path[700];
	bool same = false;
	uint8_t *got = malloc(n + 1);
	snprintf(path, sizeof path, "%s/%s", dir, name);
	FILE *f = fopen(at(path), "rb");
	if (f) {
		same = fread(got, 1, n + 1, f) == n && !memcmp(got, want, n);
		fclose(f);
	}
	free(got);
	return same;
}

static bool both(const char *dir)
{
	return is(dir, "a.gz", a, NA) && is(dir, "b.gz", b, NB) && size_of(dir, "a.gz.part") < 0 && size_of(dir, "b.gz.part") < 0;
}

TEST(fetch_and_again)
{
	struct gt_err e;
	start(NORMAL);
	CHECK_OK(fetch("one/two/three", &e), e);
	CHECK(both("one/two/three") && server.requests == 2 && !server.ranges);
	CHECK(seen_done == NB && seen_total == NB);
	CHECK_OK(fetch("one/two/three", &e), e);
	CHECK_MSG(server.requests == 2, "what is there is not fetched again");
	put("one/two/three/b.gz", a, NB, false); /* right size, wrong bytes */
	CHECK_OK(fetch("one/two/three", &e), e);
	CHECK(both("one/two/three") && server.requests == 3);
}

/* Weights: the size is not published, and of the digest only the first digits. */
TEST(fetch_weights)
{
	static const enum mode modes[] = {NORMAL, NO_RANGE, CUT_ONCE, NO_LENGTH_CUT};
	struct gt_err e;
	start(NORMAL);
	struct gt_known_dataset weights = {.name = "w", .file = {{"a.gz", 0, "00000000"}}};
	char prefix[9], dir[64], path[1100];
	snprintf(prefix, sizeof prefix, "%.8s", sha_a);
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		start(modes[i]);
		server.cut = modes[i] == NO_LENGTH_CUT ? NA : 100000;
		weights.file[0].sha256 = prefix;
		snprintf(dir, sizeof dir, "weights%zu", i);
		snprintf(path, sizeof path, "%s", at(dir));
		if (i % 2)
			put("weights1/a.gz.part", a, 5000, false);
		CHECK_OK(plugin->fetch(&weights, path, server_url(), NULL, NULL, &e), e);
		CHECK_MSG(is(dir, "a.gz", a, NA) && size_of(dir, "a.gz.part") < 0, "mode %d", modes[i]);
		int requests = server.requests;
		CHECK_OK(plugin->fetch(&weights, path, server_url(), NULL, NULL, &e), e);
		CHECK_MSG(server.requests == requests, "what is there is not fetched again");
	}
	start(NORMAL);
	weights.file[0].sha256 = "00000000";
	snprintf(path, sizeof path, "%s", at("weights_wrong"));
	CHECK(plugin->fetch(&weights, path, server_url(), NULL, NULL, &e) == GT_EDATA && strstr(e.msg, "digest differs"));
	CHECK(size_of("weights_wrong", "a.gz") < 0 && size_of("weights_wrong", "a.gz.part") < 0);
}

/* Each row of the table has the digits that its file's name ends with, and a config. */
TEST(fetch_weights_table)
{
	for (const struct gt_known_weights *w = gt_known_weights; w->name; w++) {
		char end[32], path[512];
		snprintf(end, sizeof end, "-%s.pth", w->digest);
		size_t n = strlen(w->file);
		CHECK_MSG(strlen(w->digest) == 8 || strlen(w->digest) == 10, "%s", w->name);
		CHECK_MSG(n > strlen(end) && !strcmp(w->file + n - strlen(end), end), "%s", w->name);
		CHECK_MSG(!strncmp(w->mirror, "https://", 8) && gt_known_weights_find(w->name) == w, "%s", w->name);
		snprintf(path, sizeof path, "%s/configs/%s", test_source(), w->config);
		CHECK_MSG(!access(path, R_OK), "%s", path);
	}
	CHECK(!gt_known_weights_find("resnet1"));
}

TEST(fetch_resumes)
{
	struct gt_err e;
	start(NORMAL);
	put("resume/a.gz.part", a, 123457, false);
	CHECK_OK(fetch("resume", &e), e);
	CHECK(both("resume") && server.requests == 2 && server.ranges == 1 && server.sent == NA - 123457 + NB);
	/* a server without ranges sends it all */
	start(NO_RANGE);
	put("resume2/a.gz.part", a, 123457, false);
	CHECK_OK(fetch("resume2", &e), e);
	CHECK(both("resume2") && server.sent == NA + NB);
	/* the part is whole already */
	start(NORMAL);
	put("resume3/a.gz.part", a, NA, false);
	CHECK_OK(fetch("resume3", &e), e);
	CHECK(both("resume3") && server.requests == 1);
	/* a part of something else: found out by the digest, and fetched anew */
	start(NORMAL);
	put("resume4/a.gz.part", b, NB, false);
	CHECK_OK(fetch("resume4", &e), e);
	CHECK(both("resume4") && server.requests == 3);
	/* and one that is too long */
	start(NORMAL);
	put("resume5/a.gz.part", a, NA + 1, false);
	CHECK_OK(fetch("resume5", &e), e);
	CHECK(both("resume5") && server.requests == 2);
	/* a server that goes on elsewhere than asked */
	start(WRONG_RANGE);
	put("resume6/a.gz.part", a, 1000, false);
	CHECK_OK(fetch("resume6", &e), e);
	CHECK(both("resume6") && server.requests == 3);
}

TEST(fetch_truncated_transfer)
{
	struct gt_err e;
	start(CUT_ONCE);
	CHECK_OK(fetch("cut", &e), e);
	CHECK(both("cut") && server.requests == 3 && server.ranges == 1 && server.sent == NA + NB);
	/* cut again and again: it gets on each time, but gives up; the part stays, and the next call ends it */
	start(CUT_ALWAYS);
	server.cut = 1000;
	CHECK(fetch("cut2", &e) == GT_EIO);
	CHECK_MSG(strstr(e.msg, "run the command again") && strstr(e.msg, "127.0.0.1"), "%s", e.msg);
	CHECK(size_of("cut2", "a.gz") < 0 && size_of("cut2", "a.gz.part") == server.requests * 1000);
	start(NORMAL);
	CHECK_OK(fetch("cut2", &e), e);
	CHECK(both("cut2") && server.ranges == 1);
	start(NO_LENGTH_CUT); /* HTTP/1.0 without a length: the end of the connection is the end of the file, or is not */
	CHECK_OK(fetch("cut3", &e), e);
	CHECK(both("cut3") && server.requests == 4 && server.ranges == 2 && !e.code);
}

TEST(fetch_wrong_content)
{
	struct gt_err e;
	start(NORMAL);
	a[777] ^= 1;
	CHECK(fetch("wrong", &e) == GT_EDATA);
	CHECK_MSG(strstr(e.msg, "digest") && strstr(e.msg, "a.gz"), "%s", e.msg);
	CHECK(size_of("wrong", "a.gz") < 0 && size_of("wrong", "a.gz.part") < 0);
	a[777] ^= 1;
	server.file[0].size = NA + 10;
	CHECK(fetch("wrong", &e) == GT_EDATA);
	CHECK_MSG(strstr(e.msg, "300010"), "%s", e.msg);
	CHECK(size_of("wrong", "a.gz") < 0 && size_of("wrong", "a.gz.part") < 0);
	server.file[0].size = NA - 10;
	CHECK(fetch("wrong", &e) == GT_EDATA);
	CHECK_MSG(strstr(e.msg, "299990"), "%s", e.msg);
	server.mode = NO_LENGTH_CUT; /* no length told: seen when a byte too many comes */
	server.cut = server.file[0].size = NA + 10;
	CHECK(fetch("wrong", &e) == GT_EDATA);
	CHECK_MSG(strstr(e.msg, "longer"), "%s", e.msg);
	CHECK(size_of("wrong", "a.gz") < 0 && size_of("wrong", "a.gz.part") < 0);
	server.mode = NORMAL;
	server.file[0].size = NA;
	b[77] ^= 1; /* the second file of the data set */
	CHECK(fetch("wrong", &e) == GT_EDATA);
	CHECK(is("wrong", "a.gz", a, NA) && size_of("wrong", "b.gz") < 0);
	b[77] ^= 1;
}

TEST(fetch_refusals)
{
	struct gt_err e;
	start(MISSING);
	CHECK(fetch("no", &e) == GT_ENOINPUT);
	CHECK_MSG(strstr(e.msg, "404") && server.requests == 1, "%s", e.msg);
	CHECK(size_of("no", "a.gz.part") < 0);
	/* folders that the call created are removed, those that were there are not */
	CHECK(access(at("no"), F_OK));
	mkdir(at("deep"), 0755);
	CHECK(fetch("deep/er/and/deeper/", &e) == GT_ENOINPUT);
	CHECK(access(at("deep/er"), F_OK) && !access(at("deep"), F_OK));
	start(BUSY_ONCE);
	CHECK_OK(fetch("busy", &e), e);
	CHECK(both("busy") && server.requests == 3);
	start(REDIRECT);
	CHECK_OK(fetch("redirect", &e), e);
	CHECK(both("redirect") && server.requests == 4);
	start(REDIRECT_FILE);
	CHECK(fetch("redirect2", &e) == GT_EIO); /* http may not lead to a local file */
	CHECK(size_of("redirect2", "a.gz") < 0);
	CHECK(plugin->fetch(&row, at("x"), "ftp://127.0.0.1/", NULL, NULL, &e) == GT_EUSAGE);
	CHECK(plugin->fetch(&row, at("x"), "file:///etc/", NULL, NULL, &e) == GT_EUSAGE);
	/* nobody listens: port 1 of the loopback */
	CHECK(plugin->fetch(&row, at("x"), "http://127.0.0.1:1/", NULL, NULL, &e) == GT_EIO);
	CHECK_MSG(strstr(e.msg, "https_proxy") && strstr(e.msg, row.file[0].sha256) && strstr(e.msg, at("x")), "no advice: %s", e.msg);
	put("plainfile", "x", 1, false);
	CHECK(fetch("plainfile/sub", &e) == GT_ECANTCREAT);
	CHECK_MSG(strstr(e.msg, "plainfile"), "%s", e.msg);
	CHECK(fetch("none/../plainfile/sub", &e) == GT_ECANTCREAT && access(at("none"), F_OK));
}

TEST(fetch_mirrors)
{
	struct gt_err e;
	char first[96], second[96];
	start(NORMAL);
	snprintf(first, sizeof first, "http://127.0.0.1:%d/missing/", server.port);
	snprintf(second, sizeof second, "http://127.0.0.1:%d/", server.port);
	row.mirrors[0] = first;
	row.mirrors[1] = second;
	CHECK_OK(plugin->fetch(&row, at("mirror"), NULL, NULL, NULL, &e), e);
	CHECK(both("mirror") && server.requests == 4);
	/* None has it: each is named, with its own reason. */
	row.mirrors[1] = "http://127.0.0.1:1/";
	CHECK(plugin->fetch(&row, at("nowhere"), NULL, NULL, NULL, &e) == GT_EIO);
	CHECK_MSG(strstr(e.msg, "failed from all 2 mirrors") && strstr(e.msg, "/missing/") && strstr(e.msg, "404") &&
	              strstr(e.msg, "http://127.0.0.1:1/") && !strstr(e.msg, "https_proxy"), /* one mirror was reached */
	          "%s", e.msg);
	row.mirrors[1] = NULL;
	CHECK(plugin->fetch(&row, at("nowhere"), NULL, NULL, NULL, &e) == GT_ENOINPUT);
	CHECK_MSG(!strstr(e.msg, "mirrors"), "%s", e.msg);
}

TEST(fetch_one_at_a_time)
{
	struct gt_err e;
	start(NORMAL);
	mkdir(at("locked"), 0755);
	int fd = open(at("locked"), O_RDONLY | O_DIRECTORY);
	CHECK(!flock(fd, LOCK_EX));
	CHECK(fetch("locked", &e) == GT_EFAIL && !server.requests);
	CHECK_MSG(strstr(e.msg, "another gtrain process"), "%s", e.msg);
	close(fd);
	CHECK_OK(fetch("locked", &e), e);
}

/* ---- archives --------------------------------------------------------------------------------------------------------------- */
static uint8_t tar[200000];
static size_t ntar;

static void tar_add(const char *name, const uint8_t *data, size_t n, char type)
{
	uint8_t *h = tar + ntar;
	memset(h, 0, 512);
	strcpy((char *)h, name);
	sprintf((char *)h + 100, "0000644");
	sprintf((char *)h + 124, "%011zo", n);
	h[156] = (uint8_t)type;
	memcpy(h + 257, "ustar\00000", 8);
	memset(h + 148, ' ', 8);
	unsigned sum = 0;
	for (int i = 0; i < 512; i++)
		sum += h[i];
	sprintf((char *)h + 148, "%06o", sum);
	memcpy(h + 512, data, n);
	memset(h + 512 + n, 0, 512);
	ntar += 512 + (n + 511) / 512 * 512;
}

static uint8_t *tgz;
static size_t ntgz;
static char sha_tgz[65], sha_m[65];

/* Serves the archive in tar[] as x.tar.gz, with its digest. */
static void publish(size_t cut)
{
	memset(tar + ntar, 0, 1024);
	put("x.tar.gz", tar, ntar + 1024, true);
	FILE *f = fopen(at("x.tar.gz"), "rb");
	free(tgz);
	tgz = malloc(sizeof tar);
	ntgz = fread(tgz, 1, sizeof tar, f) - cut;
	fclose(f);
	digest("sha256sum", tgz, ntgz, sha_tgz, 64);
	server.file[0].name = "x.tar.gz", server.file[0].data = tgz, server.file[0].size = ntgz;
	row.file[0] = (struct gt_known_file){"x.tar.gz", ntgz, sha_tgz};
	row.file[1].name = NULL;
}

TEST(fetch_archive)
{
	struct gt_err e;
	start(NORMAL);
	digest("sha256sum", b, 3000, sha_m, 64);
	row.member[0] = (struct gt_known_member){"pkg/train.bin", "train.bin", 70000, NULL};
	row.member[1] = (struct gt_known_member){"pkg/test.bin", "test.bin", 3000, sha_m};
	ntar = 0;
	tar_add("pkg/", b, 0, '5');
	tar_add("pkg/readme.html", b, 513, '0');
	tar_add("../evil", b, 100, '0');
	tar_add("/tmp/gtrain-evil", b, 100, '0');
	tar_add("pkg/link", b, 0, '2');
	tar_add("./pkg/train.bin", a, 70000, '0');
	tar_add("pkg/test.bin", b, 3000, '\0');
	publish(0);
	CHECK_OK(fetch("arc", &e), e);
	CHECK(is("arc", "train.bin", a, 70000) && is("arc", "test.bin", b, 3000));
	CHECK(size_of("arc", "x.tar.gz") < 0 && size_of("arc", "readme.html") < 0 && size_of(".", "evil") < 0 &&
	      access("/tmp/gtrain-evil", F_OK));
	CHECK(size_of("arc", "train.bin.part") < 0 && server.requests == 1);
	CHECK_OK(fetch("arc", &e), e);
	CHECK(server.requests == 1);
	put("arc/test.bin", a, 3000, false);
	CHECK_OK(fetch("arc", &e), e);
	CHECK(server.requests == 2 && is("arc", "test.bin", b, 3000));
	/* killed between download and unpacking: the archive is there, and nothing is fetched */
	put("arc2/x.tar.gz", tgz, ntgz, false);
	CHECK_OK(fetch("arc2", &e), e);
	CHECK(server.requests == 2 && is("arc2", "train.bin", a, 70000));

	publish(9);
	CHECK_OK(fetch("arc3", &e), e); /* the end blocks and the CRC are cut: the members were complete, and the archive's digest right */
	publish(200);
	CHECK(fetch("arc4", &e) == GT_EDATA);
	CHECK(size_of("arc4", "test.bin") < 0 && size_of("arc4", "test.bin.part") < 0);
	ntar = 0;
	tar_add("pkg/train.bin", a, 70000, '0');
	publish(0);
	CHECK(fetch("arc5", &e) == GT_EDATA);
	CHECK_MSG(strstr(e.msg, "the file pkg/test.bin is not in the archive"), "%s", e.msg);
	tar_add("pkg/test.bin", b, 2999, '0');
	publish(0);
	CHECK(fetch("arc6", &e) == GT_EDATA);
	CHECK_MSG(strstr(e.msg, "to be a file of 3000 bytes"), "%s", e.msg);
	ntar = 0;
	tar_add("pkg/train.bin", a, 70000, '0');
	tar_add("pkg/test.bin", a, 3000, '0');
	publish(0);
	CHECK(fetch("arc7", &e) == GT_EDATA);
	CHECK_MSG(strstr(e.msg, "SHA-256"), "%s", e.msg);
	CHECK(size_of("arc7", "test.bin") < 0 && size_of("arc7", "test.bin.part") < 0);
	tar[512 + 70000 + 176 + 3] ^= 1; /* the second header's name: its sum no longer holds */
	publish(0);
	CHECK(fetch("arc8", &e) == GT_EDATA);
	CHECK_MSG(strstr(e.msg, "damaged tar archive: a header with a wrong checksum"), "%s", e.msg);
}

/* Headers that announce the path of the next member, as datasets/tar_reader.h reads them for images too (test_folder.c). */
TEST(fetch_archive_headers)
{
	struct gt_err e;
	static const struct {
		const char *text, *want; /* want: NULL: the archive is good */
		size_t n;
		char type;
	} cases[] = {{"21 path=pkg/test.bin\n", NULL, 21, 'x'},
	             {"11 size=3000\n", "an extended header that is not valid", 13, 'x'},
	             {"13 size=3000\n21 path=pkg/test.bin\n", NULL, 34, 'x'},
	             {"13 size=2999\n21 path=pkg/test.bin\n", "to be a file of 3000 bytes", 34, 'x'},
	             {"22 GNU.sparse.major=1\n21 path=pkg/test.bin\n", "to be a file of 3000 bytes", 43, 'x'},
	             {"22 path=pkg/test\0.bin\n", "a path with a NUL byte", 22, 'x'},
	             {"29 size=18446744073709551615\n", "a size that is not a number", 29, 'x'},
	             {"pkg/test.bin", NULL, 12, 'L'},
	             {"pkg//./test.bin", NULL, 15, 'L'},
	             {"", "an empty long name", 0, 'L'},
	             {"pkg/test.bin\0x", "a long name with a NUL byte", 14, 'L'}};
	start(NORMAL);
	digest("sha256sum", b, 3000, sha_m, 64);
	row.member[0] = (struct gt_known_member){"pkg/train.bin", "train.bin", 70000, NULL};
	row.member[1] = (struct gt_known_member){"pkg/test.bin", "test.bin", 3000, sha_m};
	for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
		char dir[16];
		snprintf(dir, sizeof dir, "head%d", i);
		ntar = 0;
		tar_add("pkg/train.bin", a, 70000, '0');
		tar_add("comment", b, 700, 'g');
		tar_add("header", (const uint8_t *)cases[i].text, cases[i].n, cases[i].type);
		tar_add("short", b, 3000, '0');
		publish(0);
		enum gt_code code = fetch(dir, &e);
		if (!cases[i].want)
			CHECK_MSG(code == GT_OK && is(dir, "test.bin", b, 3000), "%d: %s", i, e.msg);
		else
			CHECK_MSG(code == GT_EDATA && strstr(e.msg, cases[i].want), "%d: %s", i, e.msg);
	}
}

/* ---- gt_fetch --------------------------------------------------------------------------------------------------------------- */
TEST(fetch_by_name)
{
	struct gt_err e = {0};
	static const char *const names[] = {"fashion-mnist", "mnist", "cifar10", "cifar100"};
	for (int i = 0; i < 4; i++)
		CHECK(gt_fetch_name(i) && !strcmp(gt_fetch_name(i), names[i]));
	int n = 4;
	for (const struct gt_known_weights *w = gt_known_weights; w->name; w++, n++)
		CHECK(gt_fetch_name(n) && !strcmp(gt_fetch_name(n), w->name));
	CHECK(!gt_fetch_name(n) && !gt_fetch_name(-1) && !gt_fetch_name(1000));
	CHECK(gt_fetch("no-such", NULL, NULL, NULL, NULL, &e) == GT_EUSAGE);
	CHECK_MSG(strstr(e.msg, "cifar100"), "%s", e.msg);
	CHECK(gt_fetch("synthetic", NULL, NULL, NULL, NULL, &e) == GT_EUSAGE);
	for (const struct gt_known_dataset *k = gt_known_datasets; k->name; k++) {
		CHECK(k->mirrors[0] && k->file[0].name && k->classes > 0);
		for (int i = 0; i < 4 && k->file[i].name; i++)
			CHECK(k->file[i].size && strlen(k->file[i].sha256) == 64);
	}
	/* into the user's cache, from a server that has another file under that name */
	start(NORMAL);
	server.file[0].name = "train-images-idx3-ubyte.gz";
	setenv("XDG_CACHE_HOME", at("xdg"), 1);
	CHECK(gt_fetch("fashion-mnist", NULL, server_url(), NULL, NULL, &e) == GT_EDATA);
	CHECK_MSG(strstr(e.msg, "26421880"), "%s", e.msg);
	CHECK(size_of("xdg/gtrain/fashion-mnist", "train-images-idx3-ubyte.gz") < 0);
	CHECK(access(at("xdg"), F_OK));
	mkdir(at("xdg"), 0755);
	mkdir(at("xdg/gtrain"), 0755);
	mkdir(at("xdg/gtrain/fashion-mnist"), 0755);
	int fd = open(at("xdg/gtrain/fashion-mnist"), O_RDONLY | O_DIRECTORY);
	CHECK(!flock(fd, LOCK_EX));
	CHECK(gt_fetch("fashion-mnist", NULL, server_url(), NULL, NULL, &e) == GT_EFAIL);
	CHECK_MSG(strstr(e.msg, "xdg/gtrain/fashion-mnist"), "%s", e.msg);
	close(fd);
	unsetenv("XDG_CACHE_HOME");
}

RUN_TESTS()
