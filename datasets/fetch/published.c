#include "fetch/fetch_parts.h"
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct gt_published {
	EVP_MD_CTX *ctx[2];
	const char *want[2];
};

enum gt_code gt_published_open(const char *md5, const char *sha256, struct gt_published **out, struct gt_err *err)
{
	const EVP_MD *const kinds[2] = {EVP_md5(), EVP_sha256()};
	struct gt_published *d = calloc(1, sizeof *d);
	*out = NULL;
	if (!d)
		return gt_fail(err, GT_EFAIL, "out of memory");
	d->want[0] = md5;
	d->want[1] = sha256;
	int n = 0;
	for (int i = 0; i < 2; i++) {
		if (!d->want[i])
			continue;
		d->ctx[i] = EVP_MD_CTX_new();
		if (d->ctx[i] && EVP_DigestInit_ex(d->ctx[i], kinds[i], NULL) == 1) {
			n++;
			continue;
		}
		/* A FIPS machine has no MD5. SHA-256 is stronger and suffices. */
		EVP_MD_CTX_free(d->ctx[i]);
		d->ctx[i] = NULL;
	}
	if (!n || (sha256 && !d->ctx[1])) {
		gt_published_close(d);
		return gt_fail(err, GT_EFAIL, "libcrypto has no %s", sha256 ? "SHA-256" : "MD5");
	}
	*out = d;
	return GT_OK;
}

void gt_published_add(struct gt_published *d, const void *data, size_t n)
{
	for (int i = 0; i < 2; i++)
		if (d->ctx[i])
			EVP_DigestUpdate(d->ctx[i], data, n);
}

bool gt_published_close(struct gt_published *d)
{
	if (!d)
		return false;
	bool good = true;
	for (int i = 0; i < 2; i++) {
		unsigned char md[EVP_MAX_MD_SIZE];
		char hex[2 * EVP_MAX_MD_SIZE + 1] = "";
		unsigned n = 0;
		if (!d->ctx[i])
			continue;
		if (EVP_DigestFinal_ex(d->ctx[i], md, &n) != 1)
			n = 0;
		for (unsigned k = 0; k < n; k++)
			snprintf(hex + 2 * k, 3, "%02x", md[k]);
		good &= !strcmp(hex, d->want[i]);
		EVP_MD_CTX_free(d->ctx[i]);
	}
	free(d);
	return good;
}

enum gt_code gt_published_file(int fd, const char *path, uint64_t size, const char *md5, const char *sha256, bool *good, struct gt_err *err)
{
	enum { CHUNK = 256 * 1024 };
	struct stat st;
	*good = false;
	if (fstat(fd, &st))
		return gt_fail(err, GT_EIO, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != size)
		return GT_OK;
	struct gt_published *d;
	unsigned char *buf = malloc(CHUNK);
	if (!buf)
		return gt_fail(err, GT_EFAIL, "out of memory");
	enum gt_code rc = gt_published_open(md5, sha256, &d, err);
	uint64_t at = 0;
	while (rc == GT_OK && at < size) {
		ssize_t n = pread(fd, buf, CHUNK, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			rc = gt_fail(err, GT_EIO, "%s: %s", path, n ? strerror(errno) : "the file became shorter while it was read");
			break;
		}
		gt_published_add(d, buf, (size_t)n);
		at += (uint64_t)n;
	}
	*good = gt_published_close(d) && rc == GT_OK;
	free(buf);
	return rc;
}
