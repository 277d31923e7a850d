/* SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104), by which ranks prove to each other that they hold the token of a run. libcrypto is not
 * used: only this handshake would need it, and loading it would slow down every start of the program. */
#ifndef GT_BASE_SHA256_H
#define GT_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_SHA256_SIZE 32

struct gt_sha256 {
	uint32_t h[8];
	uint64_t bytes;
	unsigned char block[64];
};

void gt_sha256_start(struct gt_sha256 *s);
void gt_sha256_add(struct gt_sha256 *s, const void *data, size_t n);
void gt_sha256_end(struct gt_sha256 *s, unsigned char out[GT_SHA256_SIZE]);

/* Computes the HMAC of data that comes in pieces: call gt_hmac_start, then gt_sha256_add with &h->inner for each piece, then
 * gt_hmac_end. */
struct gt_hmac {
	struct gt_sha256 inner, outer;
};
void gt_hmac_start(struct gt_hmac *h, const void *key, size_t nkey);
void gt_hmac_end(struct gt_hmac *h, unsigned char out[GT_SHA256_SIZE]);

/* Returns whether a and b are equal, in a time that does not depend on where they differ. */
bool gt_mac_equal(const unsigned char a[GT_SHA256_SIZE], const unsigned char b[GT_SHA256_SIZE]);

#endif
