/* FIPS 180-4's and RFC 4231's examples. */
#include "base/sha256.h"
#include "test.h"
#include <string.h>

static const char *hex(const unsigned char *m)
{
	static char text[65];
	for (int i = 0; i < 32; i++)
		sprintf(text + 2 * i, "%02x", m[i]);
	return text;
}

static const char *sha(const char *text, int times, size_t piece)
{
	struct gt_sha256 s;
	unsigned char m[32];
	gt_sha256_start(&s);
	for (int i = 0; i < times; i++)
		for (size_t at = 0, n = strlen(text); at < n; at += piece)
			gt_sha256_add(&s, text + at, n - at < piece ? n - at : piece);
	gt_sha256_end(&s, m);
	return hex(m);
}

TEST(sha256)
{
	for (size_t piece = 1; piece < 130; piece++) {
		CHECK(!strcmp(sha("abc", 1, piece), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"));
		CHECK(!strcmp(sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1, piece),
		              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"));
	}
	CHECK(!strcmp(sha("", 1, 1), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"));
	CHECK(!strcmp(sha("aaaaaaaaaa", 100000, 10), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
}

static const char *hmac(const void *key, size_t n, const char *text)
{
	struct gt_hmac h;
	unsigned char m[32];
	gt_hmac_start(&h, key, n);
	gt_sha256_add(&h.inner, text, strlen(text));
	gt_hmac_end(&h, m);
	return hex(m);
}

TEST(hmac)
{
	unsigned char key[131];
	memset(key, 0x0b, 20);
	CHECK(!strcmp(hmac(key, 20, "Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"));
	CHECK(!strcmp(hmac("Jefe", 4, "what do ya want for nothing?"), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"));
	memset(key, 0xaa, 131);
	CHECK(!strcmp(hmac(key, 131, "Test Using Larger Than Block-Size Key - Hash Key First"),
	              "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"));
}

TEST(mac_equal)
{
	unsigned char a[32] = {0}, b[32] = {0};
	CHECK(gt_mac_equal(a, b));
	for (int i = 0; i < 256; i++) {
		b[i / 8] = (unsigned char)(1 << i % 8);
		CHECK(!gt_mac_equal(a, b));
		b[i / 8] = 0;
	}
}

RUN_TESTS()
