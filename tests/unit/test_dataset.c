/* datasets/: finding, reading, the real FashionMNIST and CIFAR-10 where they are. Damaged files: test_dataset_bad.c. */
#include "dataset.h"
#include "format.h"
#include "fitted.h"
#include "unit/data_files.h"
#include "base/philox.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

static void put_pair(const char *dir, const char *images, const char *labels, uint32_t n, bool gz)
{
	uint8_t b[8192];
	char name[128];
	snprintf(name, sizeof name, "%s/%s%s", dir, images, gz ? ".gz" : "");
	put(name, b, idx(b, 8, 3, (uint32_t[]){n, 3, 5}, 1), gz);
	snprintf(name, sizeof name, "%s/%s%s", dir, labels, gz ? ".gz" : "");
	put(name, b, idx(b, 8, 1, (uint32_t[]){n}, 1), gz);
}

TEST(idx_plain_and_gzip_and_other_names)
{
	static const char *const names[][3] = {
	    {"a", "train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
	    {"b", "train-images.idx3-ubyte", "train-labels.idx1-ubyte"},
	    {"c", "FashionMNIST/raw/train-images-idx3-ubyte", "FashionMNIST/raw/train-labels-idx1-ubyte"},
	};
	for (int i = 0; i < 6; i++) {
		struct gt_dataset d, p;
		struct gt_err e = {0};
		char dir[16];
		snprintf(dir, sizeof dir, "%s%d", names[i / 2][0], i % 2);
		put_pair(dir, names[i / 2][1], names[i / 2][2], 23, i % 2);
		struct gt_dataset_spec s = {.name = "mine", .root = at(dir), .format = "auto", .shape = {1, 3, 5}};
		CHECK_OK(gt_dataset_read(&s, GT_TRAIN, &d, &e), e);
		CHECK(d.n == 23 && d.c == 1 && d.h == 3 && d.w == 5 && d.classes == 10);
		for (int k = 0; k < 23 * 15; k++)
			CHECK(d.images[k] == (uint8_t)(k * 7));
		for (int k = 0; k < 23; k++)
			CHECK(d.labels[k] == k % 10);
		CHECK(strstr(d.where, "idx: "));
		CHECK_OK(gt_dataset_probe(&s, GT_TRAIN, &p, &e), e);
		CHECK(p.n == 23 && p.c == 1 && p.h == 3 && p.w == 5 && p.classes == 10 && !p.images && !p.labels);
		gt_dataset_free(&d);
		s.limit = 7;
		CHECK_OK(gt_dataset_read(&s, GT_TRAIN, &d, &e), e);
		CHECK(d.n == 7);
		gt_dataset_free(&d);
		gt_dataset_free(&d); /* twice is fine */
		CHECK(gt_dataset_read(&s, GT_TEST, &d, &e) == GT_ENOINPUT);
		CHECK(!d.images && !d.labels && !d.n);
	}
}

TEST(idx_by_hand_and_label_types)
{
	uint8_t b[8192];
	struct gt_err e = {0};
	struct gt_dataset d;
	static const struct {
		int type;
		size_t item;
	} types[] = {{8, 1}, {11, 2}, {12, 4}};
	put("hand/im", b, idx(b, 8, 4, (uint32_t[]){11, 3, 2, 4}, 1), false);
	for (int i = 0; i < 3; i++) {
		put("hand/la", b, idx(b, types[i].type, 1, (uint32_t[]){11}, types[i].item), true);
		const char *const files[2][2] = {{"im", "la"}, {"la", "im"}}; /* either order */
		for (int k = 0; k < 2; k++) {
			struct gt_dataset_spec s = {.name = "x", .root = at("hand"), .train = files[k], .ntrain = 2, .shape = {3, 2, 4}};
			CHECK_OK(gt_dataset_read(&s, GT_TRAIN, &d, &e), e);
			CHECK(d.n == 11 && d.c == 3 && d.h == 2 && d.w == 4 && d.classes == 10);
			for (int n = 0; n < 11; n++) /* N,C,H,W in the file, N,H,W,C here */
				for (int c = 0; c < 3; c++)
					for (int j = 0; j < 8; j++)
						CHECK(d.images[(n * 8 + j) * 3 + c] == (uint8_t)(((n * 3 + c) * 8 + j) * 7));
			for (int n = 0; n < 11; n++)
				CHECK(d.labels[n] == n % 10);
			gt_dataset_free(&d);
		}
	}
	struct gt_dataset_spec s = {.name = "x", .root = at("hand"), .train = (const char *const[]){"im", "la"}, .ntrain = 2};
	CHECK(gt_dataset_read(&s, GT_TEST, &d, &e) == GT_ECONFIG); /* no test files named */
	s.shape[0] = 24;
	CHECK(gt_dataset_read(&s, GT_TRAIN, &d, &e) == GT_ECONFIG); /* three channels are not flattened silently */
	CHECK_MSG(strstr(e.msg, "[3, 2, 4]") && strstr(e.msg, "model.input"), "%s", e.msg);
	s.ntrain = 1;
	CHECK(gt_dataset_read(&s, GT_TRAIN, &d, &e) == GT_ECONFIG);
}

TEST(flat_input_is_accepted_for_one_channel)
{
	struct gt_err e = {0};
	struct gt_dataset d;
	put_pair("flat", "train-images-idx3-ubyte", "train-labels-idx1-ubyte", 5, false);
	struct gt_dataset_spec s = {.name = "x", .root = at("flat"), .shape = {15}};
	CHECK_OK(gt_dataset_read(&s, GT_TRAIN, &d, &e), e);
	gt_dataset_free(&d);
	s.shape[0] = 16;
	CHECK(gt_dataset_read(&s, GT_TRAIN, &d, &e) == GT_ECONFIG);
}

TEST(search_order)
{
	struct gt_err e = {0};
	struct gt_dataset d;
	char cache[600];
	struct gt_dataset_spec s = {.name = "search-test", .root = ""};
	setenv("GTRAIN_DATA", at("sd"), 1);
	setenv("XDG_CACHE_HOME", at("sc"), 1);
	CHECK(gt_dataset_read(&s, GT_TRAIN, &d, &e) == GT_ENOINPUT);
	CHECK_MSG(strstr(e.msg, "/sd/search-test") && strstr(e.msg, "/sc/gtrain/search-test") &&
	              strstr(e.msg, "/usr/share/datasets/search-test"),
	          "%s", e.msg);
	CHECK_OK(gt_dataset_cache("search-test", cache, sizeof cache, &e), e);
	CHECK(strstr(cache, "/sc/gtrain/search-test"));
	put_pair("sc/gtrain/search-test", "train-images-idx3-ubyte", "train-labels-idx1-ubyte", 3, true);
	CHECK_OK(gt_dataset_read(&s, GT_TRAIN, &d, &e), e);
	CHECK(d.n == 3);
	gt_dataset_free(&d);
	put_pair("sd/search-test", "train-images-idx3-ubyte", "train-labels-idx1-ubyte", 4, true);
	CHECK_OK(gt_dataset_read(&s, GT_TRAIN, &d, &e), e);
	CHECK(d.n == 4);
	gt_dataset_free(&d);
	/* a known name says how to get it */
	s.name = "cifar100";
	CHECK(gt_dataset_read(&s, GT_TRAIN, &d, &e) == GT_ENOINPUT);
	CHECK_MSG(strstr(e.msg, "gtrain fetch cifar100"), "%s", e.msg);
	s.name = "../x";
	CHECK(gt_dataset_read(&s, GT_TRAIN, &d, &e) == GT_ECONFIG);
	s.name = "x";
	s.format = "png";
	CHECK(gt_dataset_read(&s, GT_TRAIN, &d, &e) == GT_ECONFIG);
	unsetenv("GTRAIN_DATA");
	unsetenv("XDG_CACHE_HOME");
}

static void put_cifar(const char *name, int labels, int n, int seed, int how)
{
	static uint8_t b[8 * 3074];
	size_t size = 0;
	for (int i = 0; i < n; i++) {
		if (labels == 2)
			b[size++] = (uint8_t)(i % 20);
		b[size++] = (uint8_t)((i + seed) % (labels == 2 ? 100 : 10));
		struct gt_philox r;
		for (int k = 0; k < 3072; k++) {
			if (k % 4 == 0)
				r = gt_philox4x32((uint32_t)k, (uint32_t)i, (uint32_t)seed, 0, 1, 2);
			b[size++] = (uint8_t)r.v[k % 4];
		}
	}
	if (how < 2) {
		put(name, b, size, how);
		return;
	}
	/* two gzip members */
	put(name, b, 3072, true);
	gzFile f = gzopen(at(name), "ab");
	CHECK(f && gzwrite(f, b + 3072, (unsigned)size - 3072) == (int)size - 3072);
	gzclose(f);
}

static void check_cifar_pixels(const struct gt_dataset *d, int64_t first, int n, int seed)
{
	for (int i = 0; i < n; i++)
		for (int k = 0; k < 3072; k++) {
			struct gt_philox r = gt_philox4x32((uint32_t)(k & ~3), (uint32_t)i, (uint32_t)seed, 0, 1, 2);
			CHECK(d->images[(first + i) * 3072 + (k % 1024) * 3 + k / 1024] == (uint8_t)r.v[k % 4]);
		}
}

TEST(cifar_plain_gzip_and_two_members)
{
	for (int how = 0; how < 3; how++) {
		struct gt_err e = {0};
		struct gt_dataset d, p;
		char name[64], dir[32];
		snprintf(dir, sizeof dir, "cifar%d", how);
		for (int i = 1; i <= 5; i++) {
			snprintf(name, sizeof name, "%s/data_batch_%d.bin%s", dir, i, how ? ".gz" : "");
			put_cifar(name, 1, i, i, i == 3 && how == 1 ? 2 : how);
		}
		struct gt_dataset_spec s = {.name = "cifar10", .root = at(dir), .shape = {3, 32, 32}};
		CHECK_OK(gt_dataset_read(&s, GT_TRAIN, &d, &e), e);
		CHECK(d.n == 15 && d.c == 3 && d.h == 32 && d.w == 32 && d.classes == 10);
		for (int i = 1, at_n = 0; i <= 5; at_n += i++) {
			check_cifar_pixels(&d, at_n, i, i);
			for (int k = 0; k < i; k++)
				CHECK(d.labels[at_n + k] == k + i);
		}
		gt_dataset_free(&d);
		CHECK_OK(gt_dataset_probe(&s, GT_TRAIN, &p, &e), e);
		CHECK(p.n == 15 && !p.images);
		s.limit = 4;
		CHECK_OK(gt_dataset_read(&s, GT_TRAIN, &d, &e), e);
		CHECK(d.n == 4);
		gt_dataset_free(&d);
		CHECK(gt_dataset_read(&s, GT_TEST, &d, &e) == GT_ENOINPUT);
	}
	struct gt_err e = {0};
	struct gt_dataset d;
	put_cifar("c100/cifar-100-binary/train.bin", 2, 7, 90, 0);
	struct gt_dataset_spec s = {.name = "cifar100", .root = at("c100")};
	CHECK_OK(gt_dataset_read(&s, GT_TRAIN, &d, &e), e);
	CHECK(d.n == 7 && d.classes == 100 && d.labels[6] == 96);
	check_cifar_pixels(&d, 0, 7, 90);
	gt_dataset_free(&d);
	put_cifar("c10h/a.bin", 1, 2, 1, 1);
	s = (struct gt_dataset_spec){.name = "x", .root = at("c10h"), .test = (const char *const[]){"a.bin"}, .ntest = 1};
	CHECK(gt_dataset_read(&s, GT_TEST, &d, &e) == GT_ECONFIG); /* which CIFAR? */
	s.format = "cifar10";
	CHECK_OK(gt_dataset_read(&s, GT_TEST, &d, &e), e);
	CHECK(d.n == 2);
	gt_dataset_free(&d);
}

/* Nearest class mean on the training samples: if that works, every model learns it. */
TEST(synthetic_is_deterministic_and_learnable)
{
	struct gt_err e = {0};
	struct gt_dataset a, b, t;
	struct gt_dataset_spec s = {.name = "synthetic", .shape = {3, 8, 9}, .classes = 7, .seed = 5};
	s.samples[GT_TRAIN] = 700;
	s.samples[GT_TEST] = 300;
	CHECK_OK(gt_dataset_read(&s, GT_TRAIN, &a, &e), e);
	CHECK_OK(gt_dataset_read(&s, GT_TRAIN, &b, &e), e);
	CHECK_OK(gt_dataset_read(&s, GT_TEST, &t, &e), e);
	CHECK(a.n == 700 && t.n == 300 && a.c == 3 && a.h == 8 && a.w == 9 && a.classes == 7);
	CHECK(!memcmp(a.images, b.images, 700 * 216) && !memcmp(a.labels, b.labels, 700 * 4));
	CHECK(memcmp(a.images, t.images, 300 * 216));
	/* the same bytes on every machine and in every version */
	CHECK_MSG(XXH3_64bits(a.images, 700 * 216) == 0xd898e6cfc5b57a70, "%016llx", (unsigned long long)XXH3_64bits(a.images, 700 * 216));
	static double mean[7][216], count[7];
	for (int i = 0; i < 700; i++) {
		CHECK(a.labels[i] >= 0 && a.labels[i] < 7);
		count[a.labels[i]]++;
		for (int k = 0; k < 216; k++)
			mean[a.labels[i]][k] += a.images[i * 216 + k];
	}
	int right = 0;
	for (int i = 0; i < 300; i++) {
		int best = 0;
		double least = INFINITY;
		for (int c = 0; c < 7; c++) {
			double dist = 0;
			CHECK(count[c] > 60); /* 100 expected; binomial, standard deviation 9.3 */
			for (int k = 0; k < 216; k++)
				dist += pow(t.images[i * 216 + k] - mean[c][k] / count[c], 2);
			if (dist < least) {
				least = dist;
				best = c;
			}
		}
		right += best == t.labels[i];
	}
	CHECK_MSG(right >= 297, "%d of 300 right", right);
	gt_dataset_free(&b);
	s.seed = 6;
	CHECK_OK(gt_dataset_read(&s, GT_TRAIN, &b, &e), e);
	CHECK(memcmp(a.images, b.images, 700 * 216));
	gt_dataset_free(&a);
	gt_dataset_free(&b);
	gt_dataset_free(&t);
	s.samples[0] = 1000000000;
	s.shape[1] = s.shape[2] = 1000;
	CHECK(gt_dataset_read(&s, GT_TRAIN, &a, &e) == GT_ECONFIG);
	s.shape[1] = INT64_MAX;
	CHECK(gt_dataset_read(&s, GT_TRAIN, &a, &e) == GT_ECONFIG);
}

/* A format that learns: raw rows, what they teach, and other rows converted with it. */
TEST(tables_learn)
{
	static const char train[] = "a,word,y\n1,x,p\n2,y,q\n3,x,p\n?,x,q\n6,z,p\n", test[] = "y,word,a\np,unknown,3\n";
	static const int64_t rows[] = {0, 1, 2, 3}; /* the last row is no training sample */
	char files[2][1024];
	put("tables/train.csv", train, sizeof train - 1, false);
	snprintf(files[0], sizeof files[0], "%s", at("tables/train.csv"));
	put("tables/test.csv", test, sizeof test - 1, false);
	snprintf(files[1], sizeof files[1], "%s", at("tables/test.csv"));
	const char *list[] = {files[0]}, *other[] = {files[1]}, *target[] = {"y"};
	static const struct gt_column_spec types[] = {{"a", GT_COLUMN_CONTINUOUS}};
	struct gt_dataset_spec s = {.format = "csv", .train = list, .ntrain = 1,
	                            .table = {.target = target, .ntarget = 1, .column = types, .ncolumns = 1, .task = GT_TASK_CLASSES}};
	struct gt_dataset d;
	struct gt_fitted *learned = NULL;
	struct gt_err e;
	const struct gt_fitting *by = gt_dataset_fitting(&s);
	int32_t group[5];
	int64_t groups;
	CHECK(by && !strcmp(by->format, "csv"));
	CHECK_OK(gt_dataset_read(&s, GT_TRAIN, &d, &e), e);
	CHECK(d.n == 5 && d.raw && !d.nfields && !d.labels && by->raw_bytes(d.raw, NULL) > 0);
	CHECK_OK(by->strata(&s, &d, group, &groups, &e), e);
	CHECK(groups == 2 && group[0] == group[2] && group[0] == group[4] && group[1] == group[3] && group[0] != group[1]);
	CHECK_OK(gt_fitted_new(by, &learned, &e), e);
	CHECK_OK(by->fit(&s, &d, rows, 4, learned, &e), e);
	CHECK_OK(by->transform(&s, learned, &d, &e), e);
	CHECK(!d.raw && d.nfields == 2 && d.classes == 2 && d.nclass_names == 2 && !strcmp(d.class_name[1], "q"));
	const float *v = d.field[0].data;
	const int32_t *c = d.field[1].data;
	/* 1, 2, 3 and the median 2, of the mean 2 and the variance 1/2; then a_na */
	CHECK(d.field[0].width == 2 && fabs((double)v[0] + sqrt(2)) < 1e-6 && v[1] == 0 && v[2] == 0 && v[6] == 0 && v[7] == 1);
	CHECK(d.field[1].width == 1 && c[0] == 2 && c[1] == 3 && c[2] == 2 && c[4] == 1); /* z is unknown */
	CHECK(d.labels[0] == 0 && d.labels[1] == 1 && d.labels[4] == 0);
	gt_dataset_free(&d);
	s.fitted = learned;
	CHECK_OK(gt_dataset_read(&s, GT_TEST, &d, &e), e);
	CHECK(!d.n && !strcmp(d.where, "csv: ")); /* there is no such split */
	gt_dataset_free(&d);
	s.test = other;
	s.ntest = 1;
	CHECK_OK(gt_dataset_read(&s, GT_TEST, &d, &e), e);
	CHECK(d.n == 1 && d.nfields == 2 && d.labels[0] == 0 && *(int32_t *)d.field[1].data == 1);
	gt_dataset_free(&d);
	d = (struct gt_dataset){0};
	CHECK_OK(by->inputs(&s, files[1], &d, &e), e);
	CHECK(d.n == 1 && d.nfields == 2 && !d.labels);
	gt_dataset_free(&d);
	d = (struct gt_dataset){0};
	CHECK_OK(by->describe(&s, learned, &d, &e), e);
	CHECK(!d.n && d.nfields == 2 && !d.field[0].data && d.field[0].width == 2 && d.classes == 2);
	gt_dataset_free(&d);
	gt_fitted_free(learned);
}

TEST(real_fashion_mnist)
{
	struct gt_err e = {0};
	struct gt_dataset d;
	struct gt_dataset_spec s = {.name = "fashion-mnist", .shape = {1, 28, 28}};
	if (access("/usr/share/datasets/fashion-mnist", F_OK)) {
		test_skip("FashionMNIST is not installed (Debian: dataset-fashion-mnist)");
		return;
	}
	for (int split = 0; split < 2; split++) {
		CHECK_OK(gt_dataset_read(&s, split ? GT_TEST : GT_TRAIN, &d, &e), e);
		CHECK(d.n == (split ? 10000 : 60000) && d.c == 1 && d.h == 28 && d.w == 28 && d.classes == 10);
		int64_t count[10] = {0};
		uint64_t sum = 0;
		for (int64_t i = 0; i < d.n; i++)
			count[d.labels[i]]++;
		for (int i = 0; i < 10; i++)
			CHECK(count[i] == d.n / 10);
		for (int64_t i = 0; i < d.n * 784; i++)
			sum += d.images[i];
		/* The data set's published mean, 0.2860 for train; 0.0001: it is given with four digits. */
		double mean = (double)sum / 255 / 784 / (double)d.n;
		CHECK_MSG(split || fabs(mean - 0.2860) < 1e-4, "mean %.5f", mean);
		gt_dataset_free(&d);
	}
}

TEST(real_cifar10)
{
	struct gt_err e = {0};
	struct gt_dataset d;
	char dir[600];
	const char *env = getenv("GTRAIN_CIFAR10");
	if (env)
		snprintf(dir, sizeof dir, "%s", env);
	else
		snprintf(dir, sizeof dir, "%s/../shared/data/cifar-10", test_source());
	if (access(dir, F_OK)) {
		test_skip("no CIFAR-10 ($GTRAIN_CIFAR10 or ../shared/data/cifar-10)");
		return;
	}
	struct gt_dataset_spec s = {.name = "cifar10", .root = dir, .shape = {3, 32, 32}};
	for (int split = 0; split < 2; split++) {
		CHECK_OK(gt_dataset_read(&s, split ? GT_TEST : GT_TRAIN, &d, &e), e);
		CHECK(d.n == (split ? 10000 : 50000) && d.c == 3 && d.h == 32 && d.w == 32 && d.classes == 10);
		int64_t count[10] = {0};
		uint64_t sum[3] = {0};
		for (int64_t i = 0; i < d.n; i++)
			count[d.labels[i]]++;
		for (int i = 0; i < 10; i++)
			CHECK(count[i] == d.n / 10);
		for (int64_t i = 0; i < d.n * 3072; i++)
			sum[i % 3] += d.images[i];
		/* The published channel means of train: 0.4914 0.4822 0.4465; 1e-4: four digits. They also show that R, G, B are in order. */
		static const double want[3] = {0.4914, 0.4822, 0.4465};
		for (int c = 0; c < 3 && !split; c++)
			CHECK_MSG(fabs((double)sum[c] / 255 / 1024 / 50000 - want[c]) < 1e-4, "channel %d: %.5f", c,
			          (double)sum[c] / 255 / 1024 / 50000);
		gt_dataset_free(&d);
	}
}

/* The words of data.format are the names of the formats. */
TEST(format_words)
{
	static const char *const word[] = {
#define X(name) #name,
		GT_FORMATS(X)
#undef X
	};
	int n = sizeof word / sizeof *word;
	for (int i = 0; i < n; i++)
		CHECK_MSG(gt_formats[i] && !strcmp(gt_formats[i]->name, word[i]), "format %d is not %s", i, word[i]);
	CHECK(!gt_formats[n]);
}

RUN_TESTS()
