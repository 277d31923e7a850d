#include "base/sha256.h"
#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
	0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
	0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
	0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
	0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
	0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

static void compress_block(uint32_t h[8], const unsigned char *p)
{
	uint32_t w[64], v[8];
	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
	for (int i = 16; i < 64; i++)
		w[i] = w[i - 16] + (rotate_right(w[i - 15], 7) ^ rotate_right(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
		       (rotate_right(w[i - 2], 17) ^ rotate_right(w[i - 2], 19) ^ w[i - 2] >> 10);
	memcpy(v, h, sizeof v);
	for (int i = 0; i < 64; i++) {
		uint32_t t1 = v[7] + (rotate_right(v[4], 6) ^ rotate_right(v[4], 11) ^ rotate_right(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) +
		              k[i] + w[i];
		uint32_t t2 =
		    (rotate_right(v[0], 2) ^ rotate_right(v[0], 13) ^ rotate_right(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
		memmove(v + 1, v, 7 * sizeof *v);
		v[4] += t1;
		v[0] = t1 + t2;
	}
	for (int i = 0; i < 8; i++)
		h[i] += v[i];
}

void gt_sha256_start(struct gt_sha256 *s)
{
	*s = (struct gt_sha256){
		.h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
	};
}

void gt_sha256_add(struct gt_sha256 *s, const void *data, size_t n)
{
	const unsigned char *p = data;
	size_t have = s->bytes % 64;
	s->bytes += n;
	while (n) {
		size_t part = 64 - have < n ? 64 - have : n;
		memcpy(s->block + have, p, part);
		p += part;
		n -= part;
		have += part;
		if (have < 64)
			return;
		compress_block(s->h, s->block);
		have = 0;
	}
}

void gt_sha256_end(struct gt_sha256 *s, unsigned char out[GT_SHA256_SIZE])
{
	static const unsigned char pad[64] = {0x80};
	unsigned char bits[8];
	for (int i = 0; i < 8; i++)
		bits[i] = (unsigned char)(s->bytes * 8 >> (56 - 8 * i));
	gt_sha256_add(s, pad, 1 + (119 - s->bytes % 64) % 64);
	gt_sha256_add(s, bits, 8);
	for (int i = 0; i < GT_SHA256_SIZE; i++)
		out[i] = (unsigned char)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void gt_hmac_start(struct gt_hmac *h, const void *key, size_t nkey)
{
	unsigned char pad[64] = {0};
	if (nkey > sizeof pad) {
		gt_sha256_start(&h->inner);
		gt_sha256_add(&h->inner, key, nkey);
		gt_sha256_end(&h->inner, pad);
	} else {
		memcpy(pad, key, nkey);
	}
	for (size_t i = 0; i < sizeof pad; i++)
		pad[i] ^= 0x36;
	gt_sha256_start(&h->inner);
	gt_sha256_add(&h->inner, pad, sizeof pad);
	for (size_t i = 0; i < sizeof pad; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	gt_sha256_start(&h->outer);
	gt_sha256_add(&h->outer, pad, sizeof pad);
	explicit_bzero(pad, sizeof pad);
}

void gt_hmac_end(struct gt_hmac *h, unsigned char out[GT_SHA256_SIZE])
{
	gt_sha256_end(&h->inner, out);
	gt_sha256_add(&h->outer, out, GT_SHA256_SIZE);
	gt_sha256_end(&h->outer, out);
	explicit_bzero(h, sizeof *h);
}

bool gt_mac_equal(const unsigned char a[GT_SHA256_SIZE], const unsigned char b[GT_SHA256_SIZE])
{
	unsigned char diff = 0;
	for (int i = 0; i < GT_SHA256_SIZE; i++)
		diff |= a[i] ^ b[i];
	return diff == 0;
}
