/* All threads or one (kernels/cpu/team_choice.h), with times as measured on machines whose cores are free, shared, or both in turn. */
#include "cpu/team_choice.c"
#include "base/philox.h"
#include "test.h"

struct machine {
	struct gt_team_choice c;
	double all, one, noise; /* seconds of a walk; noise: each takes up to so much more, as a share */
	double clock, by_one;   /* seconds passed, and those of them in which one thread walked */
	uint32_t walks;
};

static void walk_until(struct machine *m, double until)
{
	while (m->clock < until) {
		double seconds = m->c.one ? m->one : m->all;
		seconds *= 1 + m->noise * gt_rng_uniform(gt_philox4x32(m->walks++, 1, 0, 0, 1, 2).v[0]);
		m->by_one += m->c.one ? seconds : 0;
		m->clock += seconds;
		gt_team_choice_record(&m->c, seconds);
	}
}

/* Ratio of the time to that of the faster way for as many walks. */
static double cost(double all, double one, double noise, double seconds)
{
	struct machine m = {.all = all, .one = one, .noise = noise};
	walk_until(&m, seconds);
	return m.clock / (m.walks * (1 + noise / 2) * (all < one ? all : one));
}

#define AT_MOST(limit, got)                                                                                                                \
	do {                                                                                                                                   \
		double value = got;                                                                                                                \
		CHECK_MSG(value <= (limit), "%s is %.4f, not %g at most", #got, value, (double)(limit));                                           \
	} while (0)

/* The loss is one window by one thread, at the start. */
TEST(free_cores)
{
	AT_MOST(1.01, cost(0.8e-3, 1.6e-3, 0, 10));
	AT_MOST(1.01, cost(10e-6, 160e-6, 0, 10)); /* many threads */
	AT_MOST(1.01, cost(0.8e-3, 1.6e-3, 0.3, 10));
	AT_MOST(1.01, cost(0.25, 0.5, 0, 60)); /* a walk is longer than a window */
}

TEST(shared_cores)
{
	AT_MOST(1.05, cost(3.0e-3, 1.65e-3, 0, 10));
	AT_MOST(1.05, cost(3.0e-3, 1.65e-3, 0.5, 10));
	AT_MOST(1.05, cost(2.0e-3, 1.65e-3, 0.5, 10));
	AT_MOST(1.05, cost(54e-3, 1.65e-3, 0, 60)); /* a walk is longer than a window */
	AT_MOST(1.1, cost(3.0e-3, 1.65e-3, 0, 1));
}

/* Neither is much faster: whatever is chosen costs little. */
TEST(hardly_any_difference)
{
	AT_MOST(1.06, cost(1e-3, 1.03e-3, 0, 10));
	AT_MOST(1.06, cost(1.03e-3, 1e-3, 0, 10));
	AT_MOST(1.06, cost(1e-3, 1e-3, 1, 10));
}

/* Another process comes, and goes again. */
TEST(cores_in_turn)
{
	struct machine m = {.all = 0.8e-3, .one = 1.6e-3};
	walk_until(&m, 10);
	AT_MOST(0.05, m.by_one);
	for (int i = 0; i < 3; i++) {
		double begin = m.clock, before = m.by_one;
		m.all = 2.5e-3;
		walk_until(&m, begin + 10);
		CHECK_MSG(m.by_one - before >= 9, "one thread walked %.2f s of 10", m.by_one - before);
		m.all = 0.8e-3;
		walk_until(&m, begin + 15); /* the trials are up to 4 s apart */
		before = m.by_one;
		walk_until(&m, begin + 25);
		AT_MOST(0.1, m.by_one - before);
	}
}

RUN_TESTS()
