#include "base/fileio.h"
#include "fetch/fetch_parts.h"
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define UNKNOWN_MAX ((uint64_t)4 << 30) /* maximum size of a file whose size is not published */

struct state {
	const struct gt_transfer *t;
	CURL *curl;
	uint64_t at;          /* offset in the file at which the next received byte is written */
	uint64_t size;        /* size of the whole file in bytes; if not published, UNKNOWN_MAX until the server sends the size */
	bool placed;          /* the offset `at` has been set from the HTTP status of the reply */
	uint64_t other_size;  /* size of the file on the server if it differs from the expected size; 0: no difference */
	struct gt_err disk;   /* write error; code GT_OK: no error */
	bool too_long, wrong_range;
};

static long status_of(struct state *s)
{
	long code = 0;
	curl_easy_getinfo(s->curl, CURLINFO_RESPONSE_CODE, &code);
	return code;
}

/* Returns whether a reply with status 206 continues at the end of the partial file. */
static bool continues_file(struct state *s)
{
	struct curl_header *range;
	unsigned long long start;
	return curl_easy_header(s->curl, "Content-Range", 0, CURLH_HEADER, -1, &range) == CURLHE_OK &&
	       sscanf(range->value, "bytes %20llu", &start) == 1 && start == s->t->have;
}

/* Receives data. The body of status 200 is the whole file, the body of status 206 is the rest of the file; other bodies are error pages. */
static size_t on_body(char *data, size_t size, size_t n, void *user)
{
	struct state *s = user;
	const struct gt_transfer *t = s->t;
	size_t len = size * n;
	long status = status_of(s);
	if (status != 200 && status != 206)
		return len;
	if (!s->placed) {
		s->at = status == 206 ? t->have : 0;
		if (status == 206 && !continues_file(s)) {
			s->wrong_range = true;
			return 0;
		}
		curl_off_t rest = -1;
		curl_easy_getinfo(s->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &rest);
		uint64_t told = rest < 0 ? s->size : s->at + (uint64_t)rest;
		if (t->size ? told != t->size : told > UNKNOWN_MAX) { /* reject a wrong size from the header before the first byte is written */
			s->other_size = told;
			return 0;
		}
		s->size = told;
		if (ftruncate(t->fd, (off_t)s->at) || lseek(t->fd, (off_t)s->at, SEEK_SET) < 0) {
			gt_fail_errno(&s->disk, GT_EIO, errno, "%s", t->path);
			return 0;
		}
		s->placed = true;
	}
	if (len > s->size - s->at) {
		s->too_long = true;
		return 0;
	}
	if (gt_file_write(t->fd, t->path, data, len, &s->disk) != GT_OK)
		return 0;
	s->at += len;
	if (t->progress)
		t->progress(t->user, t->name, s->at, s->size == UNKNOWN_MAX ? 0 : s->size);
	return len;
}

static enum gt_transfer_end refuse_status(const struct gt_transfer *t, long status, struct gt_err *err)
{
	bool gone = status == 404 || status == 410 || status == 403;
	gt_fail(err, gone ? GT_ENOINPUT : GT_EIO, "%s: the server answered with status %ld%s",
	        t->url, status, status == 404 ? " (not found)" : "");
	return status >= 500 || status == 429 || status == 408 ? GT_TRANSFER_AGAIN : GT_TRANSFER_NEVER;
}

/* Discards the received data. If the partial file cannot be truncated, its digest will not match next time. */
static enum gt_transfer_end give_up(const struct gt_transfer *t)
{
	(void)!ftruncate(t->fd, 0);
	return GT_TRANSFER_NEVER;
}

static enum gt_transfer_end classify_result(struct state *s, CURLcode rc, const char *detail, struct gt_err *err)
{
	const struct gt_transfer *t = s->t;
	long status = status_of(s);
	if (s->disk.code) {
		gt_fail_copy(err, &s->disk);
		return GT_TRANSFER_NEVER;
	}
	if (s->other_size && !t->size) {
		gt_fail(err, GT_EDATA, "%s: the file has %llu bytes, which is more than published weights have", t->url,
		        (unsigned long long)s->other_size);
		return give_up(t);
	}
	if (s->other_size) {
		gt_fail(err, GT_EDATA, "%s: the file has %llu bytes, but the published %s has %llu",
		        t->url, (unsigned long long)s->other_size, t->name,
		        (unsigned long long)t->size);
		return give_up(t);
	}
	if (s->too_long) {
		gt_fail(err, GT_EDATA, "%s: the file is longer than the %llu bytes of the published %s",
		        t->url, (unsigned long long)s->size, t->name);
		return give_up(t);
	}
	if (s->wrong_range || status == 416) { /* The partial file does not match the file on the server: discard it and start again. */
		gt_fail(err, GT_EIO, "%s: the server cannot continue the download at byte %llu", t->url, (unsigned long long)t->have);
		return t->have && !ftruncate(t->fd, 0) ? GT_TRANSFER_AGAIN : GT_TRANSFER_NEVER;
	}
	if (rc == CURLE_OK && status != 200 && status != 206)
		return refuse_status(t, status, err);
	if (rc != CURLE_OK && rc != CURLE_PARTIAL_FILE && !s->placed) {
		gt_fail(err, GT_EIO, "%s: %s", t->url, *detail ? detail : curl_easy_strerror(rc));
		bool never = rc == CURLE_UNSUPPORTED_PROTOCOL || rc == CURLE_URL_MALFORMAT || rc == CURLE_PEER_FAILED_VERIFICATION ||
		             rc == CURLE_TOO_MANY_REDIRECTS || rc == CURLE_OUT_OF_MEMORY;
		bool unreached = rc == CURLE_COULDNT_RESOLVE_PROXY || rc == CURLE_COULDNT_RESOLVE_HOST || rc == CURLE_COULDNT_CONNECT ||
		                 rc == CURLE_OPERATION_TIMEDOUT || rc == CURLE_SSL_CONNECT_ERROR || rc == CURLE_RECV_ERROR;
		return never ? GT_TRANSFER_NEVER : unreached ? GT_TRANSFER_UNREACHED : GT_TRANSFER_AGAIN;
	}
	bool told = s->size != UNKNOWN_MAX;
	if (rc != CURLE_OK || (told && s->at < s->size)) {
		char of[40] = "";
		if (told)
			snprintf(of, sizeof of, " of %llu", (unsigned long long)s->size);
		gt_fail(err, GT_EIO, "%s: the transfer ended after %llu%s bytes; gtrain keeps them: run the command again to continue", t->url,
		        (unsigned long long)s->at, of);
		return GT_TRANSFER_AGAIN;
	}
	return GT_TRANSFER_DONE;
}

enum gt_transfer_end gt_transfer(const struct gt_transfer *t, struct gt_err *err)
{
	char detail[CURL_ERROR_SIZE] = "", range[32];
	CURL *c = curl_easy_init();
	struct state s = {.t = t, .curl = c, .at = t->have, .size = t->size ? t->size : UNKNOWN_MAX};
	if (!c) {
		gt_fail(err, GT_EFAIL, "libcurl: out of memory");
		return GT_TRANSFER_NEVER;
	}
	curl_easy_setopt(c, CURLOPT_URL, t->url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 1L);
	curl_easy_setopt(c, CURLOPT_MAXREDIRS, 5L);
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "gtrain");
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, 20L);
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, 100L); /* abort a transfer that is slower than 100 bytes per second for 30 s */
	curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME, 30L);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, detail);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, &s);
	if (t->have) { /* sets the Range header itself, because CURLOPT_RESUME_FROM fails if the server replies with the whole file */
		snprintf(range, sizeof range, "%llu-", (unsigned long long)t->have);
		curl_easy_setopt(c, CURLOPT_RANGE, range);
	}
	enum gt_transfer_end end = classify_result(&s, curl_easy_perform(c), detail, err);
	curl_easy_cleanup(c);
	return end;
}
