/* Worlds whose equal ranks are planned once, against the same worlds planned rank by rank: memory, steps and communication of every rank,
 * and the figures of the verification. In zero, the local steps of equal ranks may differ, because their shards have different parts. */
#include "comm.h"
#include "gtrain.h"
#include "session/batch_partition.h"
#include "session/world_plan.h"
#include "test.h"
#include <string.h>

#define EVERY 4096 /* more ranks than any world of this test has */

#define LINEAR(name, out) "{ name = \"" name "\"; type = \"linear\"; out = " out "; }"
#define RELU "{ type = \"relu\"; },"
static const char layers[] =
    "{ name = \"c1\"; type = \"conv2d\"; out = 8; kernel = 3; padding = 1; bias = false; }, { name = \"n1\"; type = \"batchnorm2d\"; },"
    RELU "{ type = \"flatten\"; }," LINEAR("a", "24") "," RELU LINEAR("b", "24") "," RELU LINEAR("fc", "10");
static const char plain[] = "{ type = \"flatten\"; }," LINEAR("a", "24") "," RELU LINEAR("b", "24") "," RELU LINEAR("c", "24") "," RELU
    LINEAR("d", "24") "," RELU LINEAR("fc", "10");

struct setting {
	const char *parallel, *layers, *more; /* more: keys at the top level */
	int world, batch, samples, accumulate;
};

static struct gt_conf *read_setting(const struct setting *k)
{
	char text[4096];
	struct gt_conf *c;
	struct gt_err e;
	snprintf(text, sizeof text,
	         "schema = 1; name = \"classes\"; threads = 1; device = \"cpu\"; data = { name = \"synthetic\"; classes = 10; samples = %d; "
	         "samples_test = 130; batch = %d; }; model = { input = [1, 6, 6]; layers = ( %s ); }; train = { epochs = 2; accumulate = %d; "
	         "optimizer = { type = \"adam\"; lr = 0.01; }; }; parallel = { %s }; checkpoint = { dir = \"\"; }; %s",
	         k->samples, k->batch, k->layers, k->accumulate, k->parallel, k->more ? k->more : "");
	if (gt_conf_load_text("classes.cfg", text, strlen(text), NULL, 0, &c, &e) == GT_OK)
		return c;
	test_fail(__FILE__, __LINE__, "%s: %s", k->parallel, e.msg);
	return NULL;
}

/* Returns the next communication step of a program from step *at on; NULL: no more. */
static const struct gt_call *next_comm(const struct gt_prog *p, int *at)
{
	while (*at < p->n && p->step[*at].kind != GT_STEP_COMM)
		++*at;
	return *at < p->n ? p->step[(*at)++].call : NULL;
}

static bool is_same_comm(const struct gt_prog *a, const struct gt_prog *b)
{
	int i = 0, k = 0;
	for (;;) {
		const struct gt_call *x = next_comm(a, &i), *y = next_comm(b, &k);
		if (!x || !y)
			return x == y;
		if (x->count != y->count || x->dtype != y->dtype || x->comm->kind != y->comm->kind || x->comm->op != y->comm->op ||
		    x->comm->group != y->comm->group || x->comm->peer != y->comm->peer || x->comm->lane != y->comm->lane ||
		    a->step[i - 1].micro != b->step[k - 1].micro)
			return false;
	}
}

/* Returns what differs between a rank and the rank that stands for it; NULL: nothing. */
static const char *find_difference(const struct gt_session *s, const struct gt_session *like, bool sharded)
{
	for (int i = 0; i < GT_A_COUNT; i++)
		if (s->space->memory.bytes[i] != like->space->memory.bytes[i])
			return gt_arena_name((enum gt_arena_id)i);
	if (s->at.pipe != like->at.pipe)
		return "the stage";
	if (s->prog.fetched_bytes != like->prog.fetched_bytes || s->batch.units != like->batch.units)
		return "the batches";
	const struct gt_prog *a[] = {&s->prog.full, &s->prog.tail, &s->prog.eval[GT_TEST].full, &s->prog.eval[GT_TEST].tail};
	const struct gt_prog *b[] = {&like->prog.full, &like->prog.tail, &like->prog.eval[GT_TEST].full, &like->prog.eval[GT_TEST].tail};
	for (int i = 0; i < 4; i++) {
		if (!is_same_comm(a[i], b[i]))
			return "communication";
		if (!sharded && a[i]->n != b[i]->n)
			return "the number of steps";
		for (int k = 0, l = 0; k < a[i]->n; k++) { /* the samples of each micro-batch */
			if (a[i]->step[k].kind != GT_STEP_LOAD)
				continue;
			while (l < b[i]->n && b[i]->step[l].kind != GT_STEP_LOAD)
				l++;
			if (l == b[i]->n || a[i]->step[k].plan->graph->batch != b[i]->step[l++].plan->graph->batch)
				return "the samples";
		}
	}
	return NULL;
}

static void compare(const struct setting *k)
{
	struct gt_world_plan *all = NULL, *few = NULL;
	struct gt_world_report whole, part;
	struct gt_conf *c = read_setting(k);
	struct gt_err e = {0};
	int covered = 0, r = 0;
	if (!c)
		return;
	if (gt_world_plan_open(c, "null", true, false, k->world, EVERY, &all, &e) != GT_OK || gt_world_plan_verify(all, &whole, &e) != GT_OK ||
	    gt_world_plan_open(c, "null", true, false, k->world, 0, &few, &e) != GT_OK || gt_world_plan_verify(few, &part, &e) != GT_OK) {
		test_fail(__FILE__, __LINE__, "%s, %d ranks: %s", k->parallel, k->world, e.msg);
	} else {
		bool sharded = all->rank[0]->space->shards.spec.sharding != GT_SHARD_NONE;
		CHECK(all->nplanned == k->world && few->nplanned <= k->world);
		for (int i = 0; i < few->nplanned; i++) {
			CHECK(few->rank[i]->at.rank == covered);
			for (covered += few->equal[i]; r < covered && r < k->world; r++) {
				const char *why = find_difference(all->rank[r], few->rank[i], sharded);
				if (why)
					test_fail(__FILE__, __LINE__, "%s, %d ranks: rank %d differs from rank %d in %s", k->parallel, k->world, r,
					          few->rank[i]->at.rank, why);
			}
		}
		CHECK(covered == k->world);
		CHECK_MSG(whole.transfers == part.transfers && whole.collectives == part.collectives && whole.ahead == part.ahead,
		          "%s, %d ranks: %lld and %lld transfers, %lld and %lld collectives, %zu and %zu bytes ahead", k->parallel, k->world,
		          (long long)whole.transfers, (long long)part.transfers, (long long)whole.collectives, (long long)part.collectives,
		          whole.ahead, part.ahead);
		CHECK(sharded || (whole.least == part.least && whole.most == part.most));
	}
	gt_world_plan_close(few);
	gt_world_plan_close(all);
	gt_conf_free(c);
}

static const char *const modes[] = {
    "mode = \"ddp\";",
    "mode = \"ddp\"; sync_bn = true;",
    "mode = \"dp\";",
    "mode = \"zero\"; stage = 1; bucket_mb = 0.001;",
    "mode = \"zero\"; stage = 2; bucket_mb = 0.001;",
    "mode = \"zero\"; stage = 3; bucket_mb = 0.001;",
};

TEST(data_parallel_modes)
{
	static const int worlds[] = {2, 3, 7, 16, 24, 37};
	static const int batches[][3] = {{64, 640, 1}, {37, 200, 1}, {90, 1060, 2}, {41, 83, 1}, {48, 49, 1}};
	for (size_t m = 0; m < sizeof modes / sizeof *modes; m++)
		for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++)
			for (size_t b = 0; b < sizeof batches / sizeof *batches; b++)
				compare(&(struct setting){.parallel = modes[m], .layers = layers, .world = worlds[w], .batch = batches[b][0],
				                          .samples = batches[b][1], .accumulate = batches[b][2]});
}

TEST(pipelines_with_replicas)
{
	static const char *const across[] = {"ddp", "zero"};
	static const char *const schedule[] = {"gpipe", "1f1b"};
	char parallel[160];
	for (int i = 0; i < 4; i++)
		for (int replicas = 1; replicas <= 8; replicas += 1 + (replicas == 5)) {
			snprintf(parallel, sizeof parallel, "mode = \"pipe\"; replicas = %d; chunks = 3; schedule = \"%s\"; across = \"%s\";", replicas,
			         schedule[i / 2], across[i % 2]);
			if (replicas == 1)
				*strstr(parallel, "across") = '\0';
			compare(&(struct setting){.parallel = parallel, .layers = plain, .world = 3 * replicas, .batch = 50, .samples = 223,
			                          .accumulate = 1});
		}
}

TEST(reproducible_worlds)
{
	static const int worlds[] = {2, 4, 8, 16};
	for (size_t w = 0; w < sizeof worlds / sizeof *worlds; w++)
		for (int accumulate = 1; accumulate <= 2; accumulate++)
			compare(&(struct setting){.parallel = "mode = \"ddp\"; shards = 16;", .layers = plain, .world = worlds[w], .batch = 46,
			                          .samples = 500, .accumulate = accumulate, .more = "reproducible = \"world\";"});
}

TEST(largest_world)
{
	struct setting k = {.parallel = modes[0], .layers = plain, .world = GT_WORLD_MAX, .batch = 100000, .samples = 1000003, .accumulate = 1};
	struct gt_world_plan *w;
	struct gt_world_report report;
	struct gt_err e = {0};
	struct gt_conf *c = read_setting(&k);
	if (!c)
		return;
	CHECK_MSG(gt_world_plan_open(c, "null", true, false, k.world, GT_WORLD_PLAN_EACH, &w, &e) == GT_OK, "%s", e.msg);
	CHECK(w->nplanned <= GT_BATCH_CLASSES);
	CHECK_MSG(gt_world_plan_verify(w, &report, &e) == GT_OK, "%s", e.msg);
	int64_t samples = 0;
	for (int i = 0; i < w->nplanned; i++)
		for (int t = 0; t < w->rank[i]->prog.full.n; t++)
			if (w->rank[i]->prog.full.step[t].kind == GT_STEP_LOAD)
				samples += w->equal[i] * w->rank[i]->prog.full.step[t].plan->graph->batch;
	CHECK_MSG(samples == 100000, "%lld samples", (long long)samples);
	gt_world_plan_close(w);
	CHECK(gt_world_plan_open(c, "null", true, false, k.world + 1, GT_WORLD_PLAN_EACH, &w, &e) == GT_EUSAGE && !w);
	gt_conf_free(c);
}

RUN_TESTS()
