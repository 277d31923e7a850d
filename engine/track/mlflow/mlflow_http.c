#include "base/clock.h"
#include "base/descriptors.h"
#include "track/mlflow/mlflow_parts.h"
#include <curl/curl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REPLY_BYTES ((size_t)4 << 20)
#define CONNECT_S 20L
#define ANSWER_S 120L /* seconds that a call without a file may take */
#define SILENT_S 120L /* seconds without a byte after which the transfer of a file fails */

/* ---- time ----------------------------------------------------------------------------------------------------------------------- */
bool gt_mlflow_ended(struct gt_mlflow_clock *c)
{
	struct pollfd p = {.fd = c->until, .events = POLLIN};
	char byte[64];
	if (!c->ended && (c->until < 0 || (gt_poll(&p, 1, 0) > 0 && read(c->until, byte, sizeof byte) <= 0))) {
		c->ended = true;
		c->deadline = c->until < 0 ? INFINITY : gt_clock() + c->wait_s;
	}
	return c->ended;
}

bool gt_mlflow_over(struct gt_mlflow_clock *c)
{
	return gt_mlflow_ended(c) && gt_clock() >= c->deadline;
}

void gt_mlflow_pause(struct gt_mlflow_clock *c, double s)
{
	struct pollfd p = {.fd = c->until, .events = POLLIN};
	if (!gt_mlflow_ended(c)) {
		gt_poll(&p, 1, s);
		return;
	}
	double left = c->deadline - gt_clock();
	s = s < left ? s : left;
	if (s > 0)
		nanosleep(&(struct timespec){(time_t)s, (long)(1e9 * (s - floor(s)))}, NULL);
}

/* ---- a request ------------------------------------------------------------------------------------------------------------------ */
struct gt_mlflow_http {
	CURL *curl;
	struct gt_mlflow_clock *clock;
	struct curl_slist *headers;
	char uri[1024];   /* address of the server, without a slash at its end */
	char *reply;      /* REPLY_BYTES + 1 */
	size_t n;
	bool too_long;
	int fd;           /* descriptor of the file that a PUT sends */
	char detail[CURL_ERROR_SIZE];
};

static size_t take_reply(char *data, size_t size, size_t n, void *user)
{
	struct gt_mlflow_http *h = user;
	size_t len = size * n;
	h->too_long |= len > REPLY_BYTES - h->n;
	if (h->too_long)
		return 0;
	memcpy(h->reply + h->n, data, len);
	h->n += len;
	return len;
}

static size_t give_file(char *data, size_t size, size_t n, void *user)
{
	struct gt_mlflow_http *h = user;
	ssize_t got = read(h->fd, data, size * n);
	return got < 0 ? CURL_READFUNC_ABORT : (size_t)got;
}

/* Aborts a transfer after the time limit for sending. libcurl calls this function at least once a second. */
static int check_time(void *user, curl_off_t total_in, curl_off_t in, curl_off_t total_out, curl_off_t out)
{
	struct gt_mlflow_http *h = user;
	(void)total_in, (void)in, (void)total_out, (void)out;
	return gt_mlflow_over(h->clock);
}

static void set_credentials(CURL *c)
{
	const char *user = getenv("MLFLOW_TRACKING_USERNAME"), *password = getenv("MLFLOW_TRACKING_PASSWORD");
	const char *token = getenv("MLFLOW_TRACKING_TOKEN"), *ca = getenv("MLFLOW_TRACKING_SERVER_CERT_PATH");
	if (user && *user && password) {
		curl_easy_setopt(c, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
		curl_easy_setopt(c, CURLOPT_USERNAME, user);
		curl_easy_setopt(c, CURLOPT_PASSWORD, password);
	} else if (token && *token) {
		curl_easy_setopt(c, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
		curl_easy_setopt(c, CURLOPT_XOAUTH2_BEARER, token);
	}
	if (ca && *ca)
		curl_easy_setopt(c, CURLOPT_CAINFO, ca);
}

enum gt_code gt_mlflow_http_open(const char *uri, struct gt_mlflow_clock *clock, struct gt_mlflow_http **out, struct gt_err *err)
{
	struct gt_mlflow_http *h = calloc(1, sizeof *h);
	*out = h;
	if (!h || curl_global_init(CURL_GLOBAL_DEFAULT) || !(h->curl = curl_easy_init()) || !(h->reply = malloc(REPLY_BYTES + 1)))
		return gt_fail(err, GT_EFAIL, "libcurl: out of memory");
	size_t n = strlen(uri);
	snprintf(h->uri, sizeof h->uri, "%.*s", (int)(n - (n && uri[n - 1] == '/')), uri);
	h->clock = clock;
	h->headers = curl_slist_append(NULL, "Content-Type: application/json");
	h->headers = curl_slist_append(h->headers, "Expect:"); /* else libcurl waits up to 1 s for "100 Continue" before a body */
	return GT_OK;
}

void gt_mlflow_http_close(struct gt_mlflow_http *h)
{
	if (!h)
		return;
	curl_slist_free_all(h->headers);
	if (h->curl)
		curl_easy_cleanup(h->curl);
	free(h->reply);
	free(h);
}

/* Sets the options that all requests have. Redirects are not followed, because the credentials are for this server only. */
static void set_request(struct gt_mlflow_http *h, const char *url)
{
	CURL *c = h->curl;
	curl_easy_reset(c); /* keeps the connection */
	h->n = 0;
	h->too_long = false;
	*h->detail = '\0';
	curl_easy_setopt(c, CURLOPT_URL, url);
	curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(c, CURLOPT_USERAGENT, "gtrain");
	curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->detail);
	curl_easy_setopt(c, CURLOPT_HTTPHEADER, h->headers);
	curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_reply);
	curl_easy_setopt(c, CURLOPT_WRITEDATA, h);
	curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, check_time);
	curl_easy_setopt(c, CURLOPT_XFERINFODATA, h);
	set_credentials(c);
}

static enum gt_mlflow_end classify_failure(struct gt_mlflow_http *h, CURLcode rc, struct gt_err *err)
{
	if (h->too_long)
		gt_fail(err, GT_EIO, "%.300s: the reply is longer than %zu MiB", h->uri, REPLY_BYTES >> 20);
	else if (rc == CURLE_ABORTED_BY_CALLBACK)
		gt_fail(err, GT_EIO, "%.300s: the server did not reply within the time limit for sending", h->uri);
	else
		gt_fail(err, GT_EIO, "%.300s: %.300s", h->uri, *h->detail ? h->detail : curl_easy_strerror(rc));
	bool never = rc == CURLE_UNSUPPORTED_PROTOCOL || rc == CURLE_URL_MALFORMAT || rc == CURLE_PEER_FAILED_VERIFICATION ||
	             rc == CURLE_SSL_CACERT_BADFILE;
	return never ? GT_MLFLOW_NEVER : GT_MLFLOW_AGAIN;
}

static const char *explain_status(long status)
{
	return status == 401 ? " (MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN, must have credentials that "
	                       "the server accepts)"
	     : status == 403 ? " (this user does not have the permission)"
	     : status == 404 ? " (is this the address of an MLflow server?)"
	     : status / 100 == 3 ? " (the reply is a redirect; log.mlflow.uri must be the final address)"
	                         : "";
}

/* Fails with the message of MLflow, or with the HTTP status if there is no message. */
static enum gt_mlflow_end refuse_status(const struct gt_mlflow_http *h, const char *path, const char *message, long status, bool known,
                                        struct gt_err *err)
{
	bool again = status >= 500 || status == 429 || status == 408 || status == 425;
	gt_fail(err, GT_EIO, "%.300s: the server answered %.80s with status %ld%s%s%.300s", h->uri, path, status,
	        known ? "" : explain_status(status), *message ? ": " : "", message);
	return again ? GT_MLFLOW_AGAIN : GT_MLFLOW_NEVER;
}

enum gt_mlflow_end gt_mlflow_call(struct gt_mlflow_http *h, const char *path, const char *body, struct gt_arena *a,
                                  struct gt_mlflow_reply *out, struct gt_err *err)
{
	char url[2048];
	struct gt_err why = {0};
	*out = (struct gt_mlflow_reply){0};
	snprintf(url, sizeof url, "%s/api/2.0/%s", h->uri, path);
	set_request(h, url);
	curl_easy_setopt(h->curl, CURLOPT_TIMEOUT, ANSWER_S);
	/* Requests that create something use a new connection: libcurl repeats a request if a reused connection closes without a reply,
	 * although the server may have executed the request. */
	curl_easy_setopt(h->curl, CURLOPT_FRESH_CONNECT, (long)(strstr(path, "/create") != NULL));
	if (body)
		curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, body);
	CURLcode rc = curl_easy_perform(h->curl);
	if (rc != CURLE_OK)
		return classify_failure(h, rc, err);
	curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &out->status);
	enum gt_code code = gt_json_parse(h->reply, h->n, h->uri, GT_JSON_READ_DEPTH, 100000, a, &out->json, &why);
	const char *name = path + (strncmp(path, "mlflow/", 7) ? 0 : 7);
	if (out->status / 100 != 2) {
		snprintf(out->error, sizeof out->error, "%s", code ? "" : gt_json_str(out->json, "error_code"));
		return refuse_status(h, name, code ? "" : gt_json_str(out->json, "message"), out->status, *out->error, err);
	}
	if (code || !gt_json_is(out->json, GT_JSON_OBJECT)) {
		gt_fail(err, GT_EIO, "%.300s: the reply to %.80s is not a JSON object; check that this is the address of an MLflow server", h->uri,
		        name);
		return GT_MLFLOW_AGAIN; /* try again: the reply may come from a proxy in front of the server */
	}
	return GT_MLFLOW_DONE;
}

enum gt_mlflow_end gt_mlflow_put(struct gt_mlflow_http *h, const char *path, int fd, uint64_t bytes, struct gt_err *err)
{
	char url[2048];
	long status = 0;
	snprintf(url, sizeof url, "%s/api/2.0/%s", h->uri, path);
	set_request(h, url);
	h->fd = fd;
	curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, h->headers->next);
	curl_easy_setopt(h->curl, CURLOPT_UPLOAD, 1L);
	curl_easy_setopt(h->curl, CURLOPT_READFUNCTION, give_file);
	curl_easy_setopt(h->curl, CURLOPT_READDATA, h);
	curl_easy_setopt(h->curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)bytes);
	curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl_easy_setopt(h->curl, CURLOPT_LOW_SPEED_TIME, SILENT_S);
	CURLcode rc = curl_easy_perform(h->curl);
	if (rc != CURLE_OK)
		return classify_failure(h, rc, err);
	curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
	return status / 100 == 2 ? GT_MLFLOW_DONE : refuse_status(h, path, "", status, false, err);
}

const char *gt_mlflow_escape(const char *text, const char *keep, char *buf, size_t size)
{
	size_t n = 0;
	for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
		bool plain = (*c >= '0' && *c <= '9') || (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z') || strchr("-._~", *c) ||
		             strchr(keep, *c);
		if (n + 4 > size)
			return strcpy(buf, "");
		n += (size_t)snprintf(buf + n, size - n, plain ? "%c" : "%%%02X", *c);
	}
	buf[n] = '\0';
	return buf;
}
