/* Samples that are recognised by what they are: the division by identity, the list in a checkpoint, and what is measured. */
#include "base/arena.h"
#include "base/philox.h"
#include "exec/class_shares.h"
#include "exec/split_samples.h"
#include "store/data_facts.h"
#include "test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 4000 };

static struct gt_sample_mark mark_of(int name, int content)
{
	return (struct gt_sample_mark){.id = gt_mark_hash(&name, sizeof name, 1), .content = gt_mark_hash(&content, sizeof content, 2)};
}

static void make(struct gt_sample_mark *mark, int32_t *class, int n, int classes)
{
	for (int i = 0; i < n; i++) {
		mark[i] = mark_of(i, i);
		class[i] = i % classes;
	}
}

/* The share is met within four standard deviations; without a sample, the others stay; another seed draws another split. */
TEST(identity_decides)
{
	static struct gt_sample_mark mark[N], fewer[N];
	static int32_t class[N];
	static char valid[N], again[N];
	struct gt_err e = {0};
	int n = 0, moved = 0, differs = 0;
	make(mark, class, N, 10);
	CHECK_OK(gt_split_samples(7, 0.2, mark, N, NULL, 0, NULL, valid, &e), e);
	for (int i = 0; i < N; i++)
		n += valid[i];
	CHECK_MSG(n > 800 - 102 && n < 800 + 102, "%d of %d", n, N); /* sqrt(N * 0.2 * 0.8) = 25.3 */
	for (int i = 0, k = 0; i < N; i++)
		if (i % 3)
			fewer[k++] = mark[i];
	CHECK_OK(gt_split_samples(7, 0.2, fewer, N - N / 3 - 1, NULL, 0, NULL, again, &e), e);
	for (int i = 0, k = 0; i < N; i++)
		if (i % 3)
			moved += again[k++] != valid[i];
	CHECK_MSG(!moved, "%d moved", moved);
	CHECK_OK(gt_split_samples(8, 0.2, mark, N, NULL, 0, NULL, again, &e), e);
	for (int i = 0; i < N; i++)
		differs += again[i] != valid[i];
	CHECK(differs > N / 5);
	/* a larger share has the samples of a smaller one, and equal identities are in the same split */
	CHECK_OK(gt_split_samples(7, 0.3, mark, N, NULL, 0, NULL, again, &e), e);
	for (int i = 0; i < N; i++)
		CHECK(again[i] >= valid[i]);
	for (int i = 1; i < N; i += 2)
		mark[i].id = mark[i - 1].id;
	CHECK_OK(gt_split_samples(7, 0.2, mark, N, NULL, 0, NULL, again, &e), e);
	for (int i = 1; i < N; i += 2)
		CHECK(again[i] == again[i - 1]);
}

/* Ten classes of 4, 44, 84, ... 364 samples. */
static int make_unequal(struct gt_sample_mark *mark, int32_t *class)
{
	int n = 0;
	for (int k = 0; k < 10; k++)
		for (int i = 0; i < 4 + 40 * k; i++, n++) {
			mark[n] = mark_of(n, n);
			class[n] = k;
		}
	return n;
}

/* Each class has its share within one sample, and all classes together have it, as in scikit-learn's StratifiedShuffleSplit. */
TEST(shares_of_classes)
{
	static struct gt_sample_mark mark[N];
	static int32_t class[N];
	static char valid[N], again[N];
	struct gt_err e = {0};
	int n = make_unequal(mark, class);
	for (uint64_t seed = 0; seed < 50; seed++) {
		int held[10] = {0}, all = 0, moved = 0;
		CHECK_OK(gt_split_samples(seed, 0.13, mark, n, class, 10, NULL, valid, &e), e);
		for (int i = 0; i < n; i++) {
			held[class[i]] += valid[i];
			all += valid[i];
		}
		CHECK_MSG(all == (int)(0.13 * n + 0.5), "%d of %d", all, n);
		for (int k = 0; k < 10; k++)
			CHECK_MSG(fabs(held[k] - 0.13 * (4 + 40 * k)) < 1, "class %d: %d", k, held[k]);
		/* without one sample, at most one other of its class moves, and one of another class, which gets the rounded place */
		CHECK_OK(gt_split_samples(seed, 0.13, mark, n - 1, class, 10, NULL, again, &e), e);
		for (int i = 0; i < n - 1; i++)
			moved += again[i] != valid[i];
		CHECK_MSG(moved <= 2, "%d moved", moved);
	}
	/* a run of an earlier version keeps the division by draws alone, and its listed samples stay */
	const struct gt_used_samples old = {.by_draw = true};
	int differs = 0, same = 0;
	CHECK_OK(gt_split_samples(7, 0.13, mark, n, class, 10, &old, valid, &e), e);
	CHECK_OK(gt_split_samples(7, 0.13, mark, n, NULL, 0, NULL, again, &e), e);
	for (int i = 4; i < n; i++)
		same += valid[i] == again[i];
	CHECK_OK(gt_split_samples(7, 0.13, mark, n, class, 10, NULL, again, &e), e);
	for (int i = 0; i < n; i++)
		differs += valid[i] != again[i];
	CHECK_MSG(same >= n - 4 - 10 && differs > 0, "same %d, differs %d", same, differs); /* a class may have had one sample moved */
}

/* Samples of one id in one class, or in two, stay together. */
TEST(ids_stay_together)
{
	static struct gt_sample_mark mark[N];
	static int32_t class[N];
	static char valid[N];
	struct gt_err e = {0};
	int n = make_unequal(mark, class), held = 0;
	for (int i = 1; i < n; i += 2)
		mark[i].id = mark[i - 1].id;
	for (int i = 100; i < 120; i++) /* of the classes 2 and 8 */
		mark[i + 900].id = mark[i].id;
	CHECK_OK(gt_split_samples(3, 0.2, mark, n, class, 10, NULL, valid, &e), e);
	for (int i = 0; i < n; i++) {
		held += valid[i];
		for (int k = 0; k < i; k++)
			CHECK(mark[k].id != mark[i].id || valid[k] == valid[i]);
	}
	CHECK_MSG(abs(held - n / 5) <= 20, "%d of %d", held, n); /* a pair of each class, and the ten pairs of two classes */
}

/* ---- a plain division, by sorting all samples of a class ----------------------------------------------------------------------- */
struct plain {
	double draw;
	uint64_t id;
	int index, class;
};

static int by_class_then_draw(const void *a, const void *b)
{
	const struct plain *x = a, *y = b;
	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	if (x->draw != y->draw)
		return x->draw < y->draw ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

static int count_equal(const struct plain *s, int n)
{
	int same = 1;
	while (same < n && s[same].id == s[0].id)
		same++;
	return same;
}

/* Divides the samples as gt_split_samples with classes must do. */
static void divide_plainly(uint64_t seed, double share, const struct gt_sample_mark *mark, int n, const int32_t *class, int classes,
                           char *valid)
{
	static struct plain s[N];
	struct gt_class_share q[64] = {0};
	for (int i = 0; i < n; i++) {
		struct gt_philox r = gt_rng_draw(gt_rng_key(seed, GT_RNG_SPLIT, 1), (uint32_t)mark[i].id, (uint32_t)(mark[i].id >> 32), 0, 0);
		s[i] = (struct plain){(double)(((uint64_t)r.v[0] << 32 | r.v[1]) >> 11) * 0x1p-53, mark[i].id, i, class[i]};
		q[class[i]].n++;
		valid[i] = 0;
	}
	gt_class_shares(q, classes, n, (int64_t)(share * n + 0.5), true);
	qsort(s, (size_t)n, sizeof *s, by_class_then_draw);
	for (int k = 0, at = 0; k < classes; at += (int)q[k++].n) {
		int64_t taken = 0;
		for (int i = 0, same; i < q[k].n; i += same) {
			same = count_equal(s + at + i, (int)q[k].n - i);
			bool takes = taken + same / 2 < q[k].take && taken + same < q[k].n;
			for (int j = 0; takes && j < same; j++, taken++)
				valid[s[at + i + j].index] = 1;
		}
		int first = q[k].n ? count_equal(s + at, (int)q[k].n) : 0;
		for (int j = 0; !taken && q[k].take && first < q[k].n && j < first; j++)
			valid[s[at + j].index] = 1;
	}
	for (int i = 0; i < n; i++) /* an id that is in "train" once is not in "valid" */
		for (int j = 0; j < n && valid[i]; j++)
			valid[i] = mark[j].id != mark[i].id || valid[j];
}

/* The division is that of the plain sort: with few and many samples of the same id, in one class or several, and over several buckets. */
TEST(division_equals_sort)
{
	static struct gt_sample_mark mark[N];
	static int32_t class[N];
	static char valid[N], plain[N];
	static const struct {
		int n, classes, ids;
	} of[] = {{4000, 1, 4000}, {4000, 7, 4000}, {3000, 20, 900}, {500, 3, 40}, {200, 40, 30}, {64, 2, 3}, {64, 5, 1}, {1, 1, 1}, {9, 9, 9}};
	struct gt_err e = {0};
	for (size_t k = 0; k < sizeof of / sizeof *of; k++)
		for (uint64_t seed = 0; seed < 12; seed++) {
			double share = seed % 3 == 0 ? 0.2 : seed % 3 == 1 ? 0.05 : 0.6;
			int differs = 0;
			for (int i = 0; i < of[k].n; i++) {
				struct gt_philox r = gt_rng_draw(seed, (uint32_t)i, (uint32_t)k, 1, 2);
				mark[i] = mark_of((int)(r.v[0] % (uint32_t)of[k].ids), i);
				class[i] = (int32_t)(r.v[1] % (uint32_t)of[k].classes);
			}
			CHECK_OK(gt_split_samples(seed, share, mark, of[k].n, class, of[k].classes, NULL, valid, &e), e);
			divide_plainly(seed, share, mark, of[k].n, class, of[k].classes, plain);
			for (int i = 0; i < of[k].n; i++)
				differs += valid[i] != plain[i];
			CHECK_MSG(!differs, "case %zu, seed %d: %d differ", k, (int)seed, differs);
		}
}

/* Small classes: one sample in each split if the share is half a sample or more; never without a training sample. */
TEST(small_classes)
{
	struct gt_sample_mark mark[64];
	int32_t class[64];
	char valid[64];
	struct gt_err e = {0};
	for (int size = 1; size <= 8; size++)
		for (uint64_t seed = 0; seed < 200; seed++) {
			int held[8] = {0}, n = 8 * size, all = 0;
			make(mark, class, n, 8);
			CHECK_OK(gt_split_samples(seed, 0.25, mark, n, class, 8, NULL, valid, &e), e);
			for (int i = 0; i < n; i++) {
				held[class[i]] += valid[i];
				all += valid[i];
			}
			for (int k = 0; k < 8; k++)
				CHECK_MSG(held[k] < size && (held[k] > 0 || size < 2), "class of %d: %d", size, held[k]);
			CHECK(size == 1 || all > 0);
		}
	/* samples of one identity cannot be divided: they are trained */
	make(mark, class, 10, 1);
	for (int i = 0; i < 10; i++)
		mark[i].id = mark[0].id;
	for (uint64_t seed = 0; seed < 20; seed++) {
		CHECK_OK(gt_split_samples(seed, 0.25, mark, 10, class, 1, NULL, valid, &e), e);
		for (int i = 0; i < 10; i++)
			CHECK(!valid[i]);
	}
	/* without classes, all samples are one */
	make(mark, class, 3, 1);
	for (uint64_t seed = 0; seed < 100; seed++) {
		CHECK_OK(gt_split_samples(seed, 0.2, mark, 3, NULL, 0, NULL, valid, &e), e);
		CHECK(valid[0] + valid[1] + valid[2] > 0 && valid[0] + valid[1] + valid[2] < 3);
	}
}

/* A run of the samples 0 ... 99, of which those below 20 were held out; 200 ... 209 were its split test. */
static void run_of(struct gt_used_samples *u, struct gt_err *e)
{
	*u = (struct gt_used_samples){.listed = true};
	for (int i = 0; i < 100; i++) {
		struct gt_sample_mark m = mark_of(i, i);
		CHECK_OK(gt_used_add(&u->list[i < 20 ? GT_VALID : GT_TRAIN], &m, 1, e), *e);
	}
	for (int i = 200; i < 210; i++) {
		struct gt_sample_mark m = mark_of(i, i);
		CHECK_OK(gt_used_add(&u->list[GT_TEST], &m, 1, e), *e);
	}
	struct gt_sample_mark copy = mark_of(210, 50), gone = mark_of(300, 300);
	CHECK_OK(gt_used_add(&u->list[GT_TEST], &copy, 1, e), *e); /* the data had a copy from the beginning */
	CHECK_OK(gt_used_add(&u->past, &gone, 1, e), *e);
	CHECK_OK(gt_used_index(u, e), *e);
}

TEST(parts_and_measures)
{
	struct gt_used_samples u;
	struct gt_err e = {0};
	run_of(&u, &e);
	static const struct {
		int name, content, part;
		bool test; /* may be measured as test */
	} cases[] = {
	    {5, 5, 1, true},     /* held out */
	    {50, 50, 0, false},  /* trained */
	    {50, 999, 0, true},  /* trained, now with another content: stays in train */
	    {5, 50, 0, false},   /* held out, now with the content of a trained one */
	    {5, 999, 1, true},   /* held out, now with new content */
	    {500, 50, 0, false}, /* a copy of a trained one, or its new name */
	    {500, 5, 1, true},   /* a copy of one that was held out */
	    {500, 500, -1, true}, /* new */
	    {300, 300, 0, false}, /* trained on earlier */
	    {500, 300, 0, false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct gt_sample_mark m = mark_of(cases[i].name, cases[i].content);
		CHECK_MSG(gt_used_part(&u, &m) == cases[i].part, "case %zu: part %d", i, gt_used_part(&u, &m));
		CHECK_MSG(gt_used_measures(&u, GT_TEST, &m) == cases[i].test, "case %zu", i);
	}
	struct gt_sample_mark copy = mark_of(210, 50);
	CHECK(gt_used_measures(&u, GT_TEST, &copy)); /* as the run did */
	/* known samples stay, whatever the seed says; new ones are divided */
	struct gt_sample_mark mark[100];
	char valid[100];
	for (int i = 0; i < 100; i++)
		mark[i] = mark_of(i, i);
	for (uint64_t seed = 0; seed < 10; seed++) {
		CHECK_OK(gt_split_samples(seed, 0.5, mark, 100, NULL, 0, &u, valid, &e), e);
		for (int i = 0; i < 100; i++)
			CHECK(valid[i] == (i < 20));
	}
	gt_used_free(&u);
}

TEST(changes_are_counted)
{
	struct gt_used_samples u;
	struct gt_err e = {0};
	struct gt_data_changes c = {0};
	struct gt_sample_mark mark[100];
	run_of(&u, &e);
	for (int i = 0; i < 100; i++)
		mark[i] = mark_of(i < 90 ? i + 3 : i + 400, i < 10 ? i + 700 : i < 90 ? i + 3 : i); /* 0, 1, 2, 93 … 99 are missing, 10 new */
	const struct gt_sample_list *lists[] = {&u.list[GT_TRAIN], &u.list[GT_VALID]};
	CHECK_OK(gt_used_compare(lists, 2, mark, 100, &c, &e), e);
	CHECK_MSG(c.samples == 100 && c.missing == 10 && c.added == 10 && c.changed == 10,
	          "%lld samples, %lld missing, %lld added, %lld changed", (long long)c.samples,
	          (long long)c.missing, (long long)c.added, (long long)c.changed);
	/* duplicates count each */
	mark[1] = mark[0] = mark_of(5, 5);
	c = (struct gt_data_changes){0};
	const struct gt_sample_list one = {.mark = mark, .n = 1};
	lists[0] = &one;
	CHECK_OK(gt_used_compare(lists, 1, mark, 2, &c, &e), e);
	CHECK(c.samples == 1 && c.added == 1 && !c.missing && !c.changed);
	gt_used_free(&u);
}

static enum gt_code read_back(const char *text, struct gt_used_samples *out, struct gt_err *e)
{
	struct gt_arena *a;
	const struct gt_json_value *v;
	CHECK_OK(gt_arena_open(&a, e), *e);
	CHECK_OK(gt_json_parse(text, strlen(text), "data.json", 6, strlen(text), a, &v, e), *e);
	enum gt_code code = gt_sample_json_get(gt_json_member(v, "samples"), "data.json", out, e);
	gt_arena_close(a);
	return code;
}

TEST(list_in_a_checkpoint)
{
	struct gt_used_samples u, back;
	struct gt_json j = {0};
	struct gt_err e = {0};
	const char *text;
	run_of(&u, &e);
	u.list[GT_TRAIN].mark[3].label = 0xabcdef;
	u.changed = true;
	gt_json_object(&j, NULL);
	CHECK_OK(gt_sample_json_put(&j, "samples", &u, &e), e);
	gt_json_end(&j);
	CHECK_OK(gt_json_finish(&j, &text, &e), e);
	CHECK_OK(read_back(text, &back, &e), e);
	CHECK(back.listed && back.changed && !back.by_number && back.past.n == 1 && back.ntrained == u.ntrained);
	for (int i = 0; i < GT_SPLITS; i++) {
		CHECK(back.list[i].n == u.list[i].n);
		CHECK(!memcmp(back.list[i].mark, u.list[i].mark, (size_t)u.list[i].n * sizeof *u.list[i].mark));
	}
	gt_used_free(&back);
	gt_used_free(&u);
	gt_json_free(&j);
	/* a checkpoint of an earlier version */
	CHECK_OK(read_back("{}", &back, &e), e);
	CHECK(back.by_number && !back.listed);
	gt_used_free(&back);
	static const char *const bad[] = {
	    "{\"samples\":{}}", "{\"samples\":{\"split\":\"magic\"}}", "{\"samples\":{\"split\":7}}", "{\"samples\":[1]}",
	    "{\"samples\":{\"split\":\"identity\",\"train\":{}}}", "{\"samples\":{\"split\":\"identity\",\"train\":{\"id\":\"\"}}}",
	    "{\"samples\":{\"split\":\"identity\",\"train\":{\"id\":\"AAAAAAA\"}}}",
	    "{\"samples\":{\"split\":\"identity\",\"train\":{\"id\":\"AAAA-AAA\"}}}",
	    "{\"samples\":{\"split\":\"identity\",\"train\":{\"id\":\"AAAAAAAA\",\"content\":\"AAAA\"}}}",
	    "{\"samples\":{\"split\":\"identity\",\"train\":{\"id\":\"AAAAAAAA\",\"content\":7}}}",
	    "{\"samples\":{\"split\":\"identity\",\"train\":{\"id\":\"AAAAAAAA\",\"label\":\"AA\"}}}",
	    "{\"samples\":{\"split\":\"identity\",\"past\":\"AAAAAAAA\"}}",
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK_MSG(read_back(bad[i], &back, &e) == GT_EDATA, "case %zu", i);
		CHECK(strstr(e.msg, "data.json: expected"));
	}
}

TEST(paths)
{
	CHECK(gt_mark_path("a/b.png") == gt_mark_path("./a//b.png"));
	CHECK(gt_mark_path("a/b.png") == gt_mark_path("a/./b.png"));
	CHECK(gt_mark_path("a/b.png") != gt_mark_path("ab.png"));
	CHECK(gt_mark_path("a/b.png") != gt_mark_path("a/.b.png"));
}

RUN_TESTS()
