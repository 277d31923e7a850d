/* Lists of launches (kernels/cpu/launch_list.c): the same bits as launch by launch, for any number of threads and whether
 * all walk or one, and an end at the first failure. */
#include "cpu/cpu.h"
#include "cpu_case.h"
#include <stdlib.h>
#include <string.h>

#define N 32
#define IN 100
#define MID 48
#define CLASSES 10

enum { X, W1, Y1, W2, Y2, T, M, DY2, DW2, DY1, DX1, DW1, NT };

struct net {
	struct gt_dev *dev;
	struct tens *t[NT];
	struct gt_kernel *k[8];
	struct gt_launch a[8];
	void *in[8][4], *out[8][2];
	struct gt_metrics metrics;
	struct gt_step_args step_args;
	char *scratch;
	int n;
};

static struct gt_attr_linear lin1 = {.out = MID, .act = GT_ACT_RELU}, lin2 = {.out = CLASSES};
static struct gt_attr_loss loss = {.ignore_index = -100};

static void add(struct net *s, enum gt_opcode code, const void *attr, int nin, const int *in, int nout, const int *out)
{
	struct gt_opcall c = {.code = code, .attr = attr, .name = "test", .nin = nin, .nout = nout};
	struct gt_err e;
	int i = s->n++;
	for (int j = 0; j < nin; j++)
		c.in[j] = &s->t[in[j]]->d;
	for (int j = 0; j < nout; j++)
		c.out[j] = &s->t[out[j]]->d;
	CHECK_OK(cpu_backend()->prepare(s->dev, &c, &s->k[i], &e), e);
	for (int j = 0; j < nin; j++) {
		if (!s->t[in[j]]->p)
			tens_upload(s->t[in[j]]);
		s->in[i][j] = s->t[in[j]]->p;
	}
	for (int j = 0; j < nout; j++) {
		if (out[j] != M && !s->t[out[j]]->p)
			tens_upload(s->t[out[j]]);
		s->out[i][j] = out[j] == M ? (void *)&s->metrics : s->t[out[j]]->p;
	}
	CHECK(cpu_backend()->scratch(s->k[i]) <= 1 << 20);
	s->a[i] = (struct gt_launch){.in = s->in[i], .out = s->out[i], .scratch = s->scratch, .step_args = &s->step_args};
}
#define LIST(...) (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__}

static void net_open(struct net *s, int threads)
{
	struct gt_err e;
	*s = (struct net){.step_args = {.inv_weight = 1.0 / N}};
	CHECK_OK(cpu_backend()->open(&(struct gt_dev_opts){.threads = threads}, &s->dev, &e), e);
	s->scratch = aligned_alloc(64, 1 << 20);
	s->t[X] = tens_new(GT_F32, DIMS(N, IN));
	s->t[Y1] = tens_new(GT_F32, DIMS(N, MID)), s->t[DY1] = tens_new(GT_F32, DIMS(N, MID));
	s->t[Y2] = tens_new(GT_F32, DIMS(N, CLASSES)), s->t[DY2] = tens_new(GT_F32, DIMS(N, CLASSES));
	s->t[DX1] = tens_new(GT_F32, DIMS(N, MID));
	s->t[T] = tens_new(GT_I32, DIMS(N));
	s->t[M] = tens_new(GT_F64, DIMS((int64_t)(sizeof(struct gt_metrics) / 8)));
	s->t[W1] = tens_weights(GT_F32, DIMS(MID, IN)), s->t[W2] = tens_weights(GT_F32, DIMS(CLASSES, MID));
	tens_random(s->t[X], 1, -1, 1), tens_random(s->t[W1], 2, -1, 1), tens_random(s->t[W2], 3, -1, 1);
	tens_random(s->t[T], 4, 0, CLASSES);
	add(s, GT_OP_LINEAR, &lin1, LIST(X, W1), LIST(Y1));
	add(s, GT_OP_LINEAR, &lin2, LIST(Y1, W2), LIST(Y2));
	add(s, GT_OP_CROSS_ENTROPY, &loss, LIST(Y2, T), LIST(M, DY2));
	s->t[DW2] = tens_new(GT_F32, DIMS(CLASSES, MID)), s->t[DW1] = tens_new(GT_F32, DIMS(MID, IN));
	s->t[DW2]->d = s->t[W2]->d, s->t[DW1]->d = s->t[W1]->d;
	add(s, GT_OP_LINEAR_DX, &lin2, LIST(DY2, W2), LIST(DX1));
	add(s, GT_OP_LINEAR_DW, &lin2, LIST(DY2, Y1), LIST(DW2));
	add(s, GT_OP_RELU_DX, NULL, LIST(DX1, Y1), LIST(DY1));
	add(s, GT_OP_LINEAR_DW, &lin1, LIST(DY1, X), LIST(DW1));
}

static void net_close(struct net *s)
{
	for (int i = 0; i < s->n; i++)
		cpu_backend()->release(s->dev, s->k[i]);
	for (int i = 0; i < NT; i++)
		tens_free(s->t[i]);
	free(s->scratch);
	cpu_backend()->close(s->dev);
}

static void clear(struct net *s)
{
	static const int made[] = {Y1, Y2, DY2, DX1, DW2, DY1, DW1};
	for (size_t i = 0; i < sizeof made / sizeof *made; i++)
		memset(s->t[made[i]]->p, 0xff, gt_tdesc_bytes(&s->t[made[i]]->d));
	memset(&s->metrics, 0, sizeof s->metrics);
}

static void same_bits(int threads, int times)
{
	struct net s;
	struct gt_err e;
	size_t n1 = 0, n2 = 0;
	net_open(&s, threads);
	n1 = gt_tdesc_bytes(&s.t[DW1]->d), n2 = gt_tdesc_bytes(&s.t[DW2]->d);
	char *want = malloc(n1 + n2);
	clear(&s);
	for (int i = 0; i < s.n; i++)
		CHECK_OK(cpu_backend()->launch(s.dev, s.k[i], &s.a[i], &e), e);
	memcpy(want, s.t[DW1]->p, n1), memcpy(want + n1, s.t[DW2]->p, n2);
	double sum = s.metrics.loss;
	CHECK(sum > 0 && s.metrics.count == N);
	for (int i = 0; i < times; i++) {
		clear(&s);
		s.k[0]->choice.one = i & 1;
		CHECK_OK(cpu_backend()->launch_list(s.dev, s.n, s.k, s.a, &e), e);
		if (memcmp(want, s.t[DW1]->p, n1) || memcmp(want + n1, s.t[DW2]->p, n2) || s.metrics.loss != sum || s.metrics.count != N) {
			test_fail(__FILE__, __LINE__, "%d threads, list %d of %d: other gradients", threads, i, times);
			break;
		}
	}
	free(want);
	net_close(&s);
}

TEST(list_one_thread)
{
	same_bits(1, 10);
}

TEST(list_two_threads)
{
	same_bits(2, 1000);
}

TEST(list_more_threads_than_processors)
{
	same_bits(7, 50);
	same_bits(16, 20);
}

/* A label that is no class: the loss fails, and no thread goes on to what comes behind it. */
TEST(list_ends_at_a_failure)
{
	for (int threads = 1; threads < 5; threads++) {
		struct net s;
		struct gt_err e;
		net_open(&s, threads);
		((int32_t *)s.t[T]->p)[5] = CLASSES;
		for (int i = 0; i < 50; i++) {
			uint32_t word;
			clear(&s);
			s.k[0]->choice.one = i & 1;
			CHECK(cpu_backend()->launch_list(s.dev, s.n, s.k, s.a, &e) == GT_EDATA);
			CHECK_MSG(strstr(e.msg, "label 10 of sample 5"), "%s", e.msg);
			memcpy(&word, s.t[DX1]->p, sizeof word);
			CHECK_MSG(word == 0xffffffffu, "linear.dx ran");
			memcpy(&word, s.t[Y2]->p, sizeof word);
			CHECK_MSG(word != 0xffffffffu, "linear did not run");
		}
		net_close(&s);
	}
}

RUN_TESTS()
