/* First values of parameters: PyTorch's stream bit for bit, the distributions by their moments, and the Mersenne twister. */
#include "test.h"
#include "ir_net.h"
#include "ir/init.h"
#include <inttypes.h>

static uint64_t fnv(const void *data, size_t n)
{
	uint64_t h = 0xCBF29CE484222325u;
	for (const unsigned char *p = data; n--; p++)
		h = (h ^ *p) * 0x100000001B3u;
	return h;
}

static void make_mlp(struct net *t)
{
	net_open(t, 1, 28, 28);
	net_add(t, "0", "flatten", NULL, NULL);
	net_add(t, "1", "linear", "out=64", NULL);
	net_add(t, "2", "relu", NULL, NULL);
	net_add(t, "3", "linear", "out=64 bias=0", NULL);
	net_add(t, "4", "relu", NULL, NULL);
	net_add(t, "5", "linear", "out=10", NULL);
}

static void make_cnn(struct net *t)
{
	net_open(t, 3, 12, 17);
	net_add(t, "0", "conv2d", "out=8 kernel=3,5", NULL);
	net_add(t, "1", "batchnorm2d", NULL, NULL);
	net_add(t, "2", "relu", NULL, NULL);
	net_add(t, "3", "conv2d", "out=16 kernel=3 groups=4 bias=0", NULL);
	net_add(t, "4", "flatten", NULL, NULL);
	net_add(t, "5", "linear", "out=10", NULL);
}

static FILE *golden(void)
{
	char path[512];
	snprintf(path, sizeof path, "%s/tests/golden/init.txt", test_source());
	FILE *f = fopen(path, "r");
	CHECK_MSG(f, "cannot open %s", path);
	return f;
}

/* Initialises every parameter and compares each with its golden line; returns how many lines of `name` and `seed` matched. */
static int compare(struct net *t, const char *name, uint64_t seed)
{
	struct gt_init_stream s;
	gt_init_begin(&s, seed);
	int found = 0;
	for (int i = 0; i < t->g->nparams; i++) {
		const struct gt_param *p = &t->g->params[i];
		size_t bytes = gt_tdesc_bytes(&p->desc);
		void *v = malloc(bytes);
		gt_param_init(&s, p, i, v);
		char line[512], want[128], got[256];
		FILE *f = golden();
		if (!f)
			return 0;
		snprintf(want, sizeof want, "param %s %" PRIu64 " %s ", name, seed, p->name);
		snprintf(got, sizeof got, "%s%" PRId64 " %016" PRIx64 " ", want, gt_tdesc_count(&p->desc), fnv(v, bytes));
		while (fgets(line, sizeof line, f)) {
			if (strncmp(line, want, strlen(want)))
				continue;
			CHECK_MSG(!strncmp(line, got, strlen(got)), "expected %sgot %s", line, got);
			found++;
		}
		fclose(f);
		free(v);
	}
	return found;
}

/* Embeddings, whose values are compared with a tolerance, and attention, whose projections are drawn in another order than they are
 * in: 0 to 3 are tables, 4 and 5 attention, 6 a linear layer, which shows that the stream is where PyTorch's is. */
static void make_words(struct net *t)
{
	static const struct gt_model_input input = {"tokens", GT_INPUT_TOKENS, {4, 1, 1}, .vocabulary = 5};
	net_open(t, 0, 0, 0);
	t->m.inputs = &input;
	t->m.ninputs = 1;
	net_add(t, "0", "embedding", "embedding_dim=7 padding_idx=2", "tokens");
	net_add(t, "1", "embedding", "embedding_dim=3", "tokens");
	net_add(t, "2", "embedding", "embedding_dim=3", "tokens");
	net_add(t, "3", "embedding_bag", "embedding_dim=32", "tokens");
	net_add(t, "bag", "reshape", "shape=4,8", "3");
	for (int i = 0; i < 3; i++)
		net_add(t, (const char *[]){"a", "b", "c"}[i], "permute", "dims=0,2,1", (const char *[]){"0", "1", "2"}[i]);
	net_add(t, "d", "permute", "dims=0,2,1", "bag");
	net_add(t, "all", "concat", NULL, "a b c d");
	net_add(t, "in", "permute", "dims=0,2,1", NULL);
	net_add(t, "4", "attention", "num_heads=3", NULL);
	net_add(t, "5", "attention", "num_heads=7 bias=0", NULL);
	net_add(t, "6", "linear", "out=10", NULL);
	net_add(t, "out", "select", "index=0", NULL);
}

/* Compares the values of a table with golden lines; returns how many values there were. */
static int compare_near(const char *name, uint64_t seed, const struct gt_param *p, const void *v, double tolerance)
{
	char line[512], want[128];
	int found = 0;
	FILE *f = golden();
	snprintf(want, sizeof want, "near %s %" PRIu64 " %s ", name, seed, p->name);
	while (f && fgets(line, sizeof line, f)) {
		if (strncmp(line, want, strlen(want)))
			continue;
		char *at = line + strlen(want);
		for (int64_t i = strtoll(at, &at, 10); *at == ' '; i++, found++) {
			double x = strtod(at, &at), y = p->desc.dtype == GT_F64 ? ((const double *)v)[i] : (double)((const float *)v)[i];
			CHECK_MSG(fabs(x - y) <= tolerance, "%s seed %" PRIu64 " %s[%lld]: expected %.9g, got %.9g", name, seed, p->name, (long long)i,
			          x, y);
		}
	}
	if (f)
		fclose(f);
	return found;
}

TEST(torch_stream_of_tables_and_attention)
{
	static const uint64_t seeds[] = {0, 42, (1ull << 40) + 7, 42};
	for (int i = 0; i < 4; i++) {
		struct net t;
		struct gt_init_stream s;
		make_words(&t);
		t.m.init = GT_INIT_TORCH;
		CHECK_OK(net_train(&t, 2, i == 3 ? GT_F64 : GT_F32), t.e);
		CHECK(compare(&t, i == 3 ? "words64" : "words", seeds[i]) == 8);
		gt_init_begin(&s, seeds[i]);
		for (int k = 0; k < 4; k++) {
			double v[200];
			gt_param_init(&s, &t.g->params[k], k, v);
			/* f32: a logarithm and a cosine of PyTorch's, with errors of 2^-24 each, and arguments up to 2 pi, times values up to 5 */
			CHECK(compare_near(i == 3 ? "words64" : "words", seeds[i], &t.g->params[k], v, i == 3 ? 1e-8 : 3e-6) ==
			      gt_tdesc_count(&t.g->params[k].desc));
		}
		net_close(&t);
	}
}

TEST(torch_stream)
{
	static const uint64_t seeds[] = {0, 42, (1ull << 40) + 7};
	struct net t;
	for (int i = 0; i < 3; i++) {
		make_mlp(&t);
		t.m.init = GT_INIT_TORCH;
		CHECK_OK(net_train(&t, 2, GT_F32), t.e);
		CHECK(compare(&t, "mlp", seeds[i]) == 5);
		net_close(&t);
		make_cnn(&t);
		t.m.init = GT_INIT_TORCH;
		CHECK_OK(net_train(&t, 2, i == 1 ? GT_BF16 : GT_F32), t.e); /* masters are f32 either way */
		CHECK(compare(&t, "cnn", seeds[i]) == 9);
		net_close(&t);
	}
	make_cnn(&t);
	t.m.init = GT_INIT_TORCH;
	CHECK_OK(net_train(&t, 2, GT_F64), t.e);
	CHECK(compare(&t, "cnn64", 42) == 9);
	net_close(&t);
}

TEST(randperm)
{
	char line[512];
	FILE *f = golden();
	int found = 0;
	while (f && fgets(line, sizeof line, f)) {
		uint64_t seed, hash;
		int64_t n;
		if (sscanf(line, "perm %" SCNu64 " %" SCNd64 " %" SCNx64, &seed, &n, &hash) != 3)
			continue;
		struct gt_mt19937 m;
		int64_t *p = malloc((size_t)n * sizeof *p);
		gt_mt19937_seed(&m, seed);
		gt_mt19937_randperm(&m, n, p);
		CHECK_MSG(fnv(p, (size_t)n * sizeof *p) == hash, "another permutation: %s", line);
		free(p);
		found++;
	}
	if (f)
		fclose(f);
	CHECK(found == 5);
}

TEST(torch_rand)
{
	static const double want[5] = {.4963, .7682, .0885, .1320, .3074}; /* torch.manual_seed(0); torch.rand(5), as PyTorch prints it */
	struct gt_mt19937 m;
	gt_mt19937_seed(&m, 0);
	for (int i = 0; i < 5; i++)
		CHECK(fabs((double)gt_mt19937_uniform(&m, 0, 1) - want[i]) < 5e-5);
	gt_mt19937_seed(&m, 5489); /* the C++ standard, [rand.predef]: the 10000th draw of mt19937 */
	uint32_t v = 0;
	for (int i = 0; i < 10000; i++)
		v = gt_mt19937_u32(&m);
	CHECK(v == 4123659995u);
}

/* Draws 400,000 values by a method; their moments must be those of the distribution. */
static void moments(enum gt_init_method method, double std, double bound)
{
	struct net t;
	struct gt_init_stream s;
	net_open(&t, 800, 1, 1);
	net_add(&t, "a", "linear", "out=500", NULL)->init = method;
	CHECK_OK(net_build(&t, 2, GT_F32, true), t.e);
	const struct gt_param *p = &t.g->params[0];
	int64_t n = gt_tdesc_count(&p->desc);
	float *v = malloc((size_t)n * sizeof *v), bias[500];
	double sum = 0, square = 0, fourth = 0, top = 0;
	gt_init_begin(&s, 42);
	gt_param_init(&s, p, 0, v);
	gt_param_init(&s, &t.g->params[1], 1, bias);
	for (int64_t i = 0; i < n; i++) {
		double x = (double)v[i];
		sum += x;
		square += x * x;
		fourth += x * x * x * x;
		top = fmax(top, fabs(x));
	}
	double m = sum / (double)n, var = square / (double)n, kurtosis = fourth / (double)n / (var * var);
	/* Five standard errors: of the mean std/sqrt(n); of the variance at most sqrt(2/n) of it; of the kurtosis sqrt(24/n). */
	CHECK_MSG(fabs(m) < 5 * std / sqrt((double)n), "method %d: mean %g", method, m);
	CHECK_MSG(fabs(var / (std * std) - 1) < 5 * sqrt(2.0 / (double)n), "method %d: std %g, expected %g", method, sqrt(var), std);
	CHECK_MSG(fabs(kurtosis - (bound > 0 ? 1.8 : 3.0)) < 5 * sqrt(24.0 / (double)n), "method %d: kurtosis %g", method, kurtosis);
	if (bound > 0)
		CHECK_MSG(top <= (double)(float)bound && top > 0.999 * bound, "method %d: largest %g, bound %g", method, top, bound);
	bool zero = true;
	for (int i = 0; i < 500; i++)
		zero &= bias[i] == 0;
	CHECK(zero == (method != GT_INIT_TORCH_DEFAULT));
	free(v);
	net_close(&t);
}

TEST(methods)
{
	moments(GT_INIT_TORCH_DEFAULT, 1 / sqrt(3.0 * 800), 1 / sqrt(800.0));
	moments(GT_INIT_KAIMING_NORMAL, sqrt(2.0 / 800), 0);
	moments(GT_INIT_KAIMING_UNIFORM, sqrt(2.0 / 800), sqrt(6.0 / 800));
	moments(GT_INIT_XAVIER_NORMAL, sqrt(2.0 / 1300), 0);
	moments(GT_INIT_XAVIER_UNIFORM, sqrt(2.0 / 1300), sqrt(6.0 / 1300));
}

TEST(draws_depend_on_seed_and_parameter_only)
{
	struct net t;
	struct gt_init_stream s;
	float a[6 * 64], b[6 * 64], c[6 * 64];
	double d[64 * 64];
	net_open(&t, 6, 1, 1);
	net_add(&t, "a", "linear", "out=64", NULL);
	CHECK_OK(net_build(&t, 2, GT_F32, true), t.e);
	gt_init_begin(&s, 1);
	gt_param_init(&s, &t.g->params[0], 0, a);
	gt_param_init(&s, &t.g->params[0], 2, b);
	gt_param_init(&s, &t.g->params[0], 0, c);
	CHECK(!memcmp(a, c, sizeof a) && memcmp(a, b, sizeof a));
	gt_init_begin(&s, 2);
	gt_param_init(&s, &t.g->params[0], 0, c);
	CHECK(memcmp(a, c, sizeof a));
	CHECK_OK(net_build(&t, 2, GT_F64, true), t.e); /* an f64 graph starts from the same numbers, less rounded */
	gt_init_begin(&s, 1);
	gt_param_init(&s, &t.g->params[0], 0, d);
	for (int i = 0; i < 6 * 64; i++)
		CHECK((float)d[i] == a[i]);
	net_close(&t);
}

RUN_TESTS()
