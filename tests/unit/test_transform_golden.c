/* Every transform against the digest of torchvision's result for the same parameters (tests/parity/transforms.py --golden). */
#include "conf/conf.h"
#include "image/transform.h"
#include "test.h"
#include "image_calls.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static const char base[] = "data = { name = \"x\"; train = [\"a\"]; batch = 8; mean = [0.485, 0.456, 0.406]; };\n"
                           "model = { input = [3, 8, 8]; layers = ( { type = \"flatten\"; }, { type = \"linear\"; out = 2; } ); };\n"
                           "train = { epochs = 1; optimizer = { type = \"sgd\"; lr = 0.1; }; };\n";

TEST(as_torchvision)
{
	static const int sizes[][2] = {{160, 160}, {121, 118}, {97, 141}, {230, 64}, {64, 230}};
	char path[600], line[1024];
	struct gt_image_scratch *s;
	struct gt_err e;
	int tried = 0;
	snprintf(path, sizeof path, "%s/tests/golden/transforms.txt", test_source());
	FILE *f = fopen(path, "r");
	CHECK_MSG(f, "no %s", path);
	CHECK_OK(gt_image_scratch_open(&s, &e), e);
	while (f && fgets(line, sizeof line, f)) {
		unsigned crc;
		int h, w, at;
		char augment[1000], input[64];
		struct gt_conf *c;
		if (line[0] == '#')
			continue;
		line[strcspn(line, "\n")] = 0;
		CHECK(sscanf(line, "%x %d %d %n", &crc, &h, &w, &at) == 3);
		snprintf(augment, sizeof augment, "data.augment=( %s )", line + at);
		snprintf(input, sizeof input, "model.input=[3, %d, %d]", h, w);
		CHECK_OK(gt_conf_load_text("t.cfg", base, strlen(base), (const char *[]){augment, input}, 2, &c, &e), e);
		if (!c)
			continue;
		uint8_t *out = malloc((size_t)(h * w * 3));
		uLong got = crc32(0, NULL, 0);
		for (int i = 0; i < 5; i++) {
			int ih = sizes[i][0], iw = sizes[i][1];
			uint8_t *in = malloc((size_t)(ih * iw * 3));
			for (int y = 0; y < ih; y++)
				for (int x = 0; x < iw; x++)
					for (int k = 0; k < 3; k++)
						in[(y * iw + x) * 3 + k] =
						    (uint8_t)((3 * x + 2 * y + 70 * k) % 200 + (x * x * 31 + y * 17 + k * 7 + x * y * 13) / 8 % 56);
			struct gt_transform_list list = {c->data.augment, c->data.naugment};
			struct gt_sample_key key = {5, 3, (uint64_t)i};
			CHECK_OK(image_transform(in, ih, iw, 3, "picture", list, &key, 3, h, w, s, out, &e), e);
			got = crc32(got, out, (uInt)(h * w * 3));
			free(in);
		}
		CHECK_MSG(got == crc, "%s: digest %08lx, expected %08x", line + at, got, crc);
		tried++;
		free(out);
		gt_conf_free(c);
	}
	CHECK(tried >= 20);
	gt_image_scratch_close(s);
	if (f)
		fclose(f);
}

RUN_TESTS()
