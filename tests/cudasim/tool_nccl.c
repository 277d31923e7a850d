/* The NCCL communicator with one rank: every collective in place and not, split, buffers, a captured graph, refusals. Run by
 * test_cudasim.sh on the host's NCCL, and by check-gpu on the real one. */
#include "backend.h"
#include "base/clock.h"
#include "base/plugin.h"
#include "comm.h"
#include "test.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define N 1000

static const struct gt_backend *be;
static const struct gt_comm_api *api;
static struct gt_dev *dev;
static struct gt_comm *comm;
static char *mem; /* of the device: two blocks */

static bool open_all(void)
{
	struct gt_err e = {0};
	struct gt_comm_boot boot;
	void *p;
	if (comm)
		return true;
	CHECK_OK(gt_plugin_open("cuda", "gt_backend_cuda", &p, &e), e);
	be = p;
	CHECK_OK(gt_plugin_open("cuda", "gt_comm_nccl", &p, &e), e);
	api = p;
	if (e.code)
		return false;
	CHECK_OK(be->open(&(struct gt_dev_opts){0}, &dev, &e), e);
	CHECK_OK(api->create(1, &boot, &e), e);
	struct gt_comm_spec spec = {.rank = 0, .world = 1, .timeout_s = 60, .boot = &boot, .dev = dev};
	CHECK_OK(api->open(&spec, &comm, &e), e);
	CHECK_OK(be->alloc(dev, 2 * N * 8, (void **)&mem, &e), e);
	return comm && mem;
}

static void fill(unsigned char *host, void *at, size_t n)
{
	struct gt_err e = {0};
	for (size_t i = 0; i < n; i++)
		host[i] = (unsigned char)(i * 7 + 3);
	CHECK_OK(be->copy(dev, at, host, n, GT_COPY_H2D, 0, &e), e);
}

static void same(const unsigned char *want, const void *at, size_t n)
{
	struct gt_err e = {0};
	unsigned char got[N * 8];
	CHECK_OK(be->copy(dev, got, at, n, GT_COPY_D2H, 0, &e), e);
	CHECK(!memcmp(got, want, n));
}

typedef enum gt_code collective(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err);

TEST(collectives_of_one_rank_move_what_they_are_given)
{
	static const enum gt_dtype types[] = {GT_F32, GT_F64, GT_BF16, GT_F16, GT_I32, GT_I64, GT_U8};
	struct gt_err e = {0};
	unsigned char host[N * 8];
	if (!open_all())
		return;
	collective *const fn[] = {api->all_reduce, api->reduce_scatter, api->all_gather, api->broadcast, api->gather, api->scatter};
	for (size_t f = 0; f < sizeof fn / sizeof *fn; f++)
		for (size_t t = 0; t < sizeof types / sizeof *types; t++)
			for (int place = 0; place < 2; place++) {
				size_t bytes = N * gt_dtype_size(types[t]);
				fill(host, mem, bytes);
				struct gt_coll x = {.what = "numbers", .in = mem, .out = place ? mem : mem + N * 8, .count = N, .dtype = types[t]};
				CHECK_OK(fn[f](comm, &x, &e), e);
				same(host, x.out, bytes);
			}
	CHECK_OK(api->barrier(comm, 0, &e), e);
	CHECK_OK(api->check(comm, &e), e);
}

TEST(a_rank_sends_to_itself)
{
	struct gt_err e = {0};
	unsigned char host[N];
	if (!open_all())
		return;
	fill(host, mem, N);
	struct gt_p2p list[2] = {{.what = "x", .sends = true, .send = mem, .count = N, .dtype = GT_U8},
	                         {.what = "x", .recv = mem + N * 8, .count = N, .dtype = GT_U8}};
	CHECK_OK(api->exchange(comm, list, 2, 0, &e), e);
	same(host, mem + N * 8, N);
}

TEST(a_split_group_and_a_buffer)
{
	struct gt_err e = {0};
	unsigned char host[N];
	struct gt_comm *part, *none;
	void *p = NULL;
	if (!open_all())
		return;
	CHECK_OK(api->split(comm, "half", 3, 5, &part, &e), e);
	CHECK(part && part->rank == 0 && part->world == 1 && !strcmp(part->name, "half"));
	CHECK_OK(api->split(comm, "none", -1, 0, &none, &e), e);
	CHECK(!none);
	CHECK_OK(api->buffer(comm, N, &p, &e), e);
	memset(host, 0, sizeof host);
	if (!p || !part)
		return;
	same(host, p, N); /* zeroed */
	fill(host, p, N);
	struct gt_coll x = {.in = p, .out = mem, .count = N, .dtype = GT_U8};
	CHECK_OK(api->all_gather(part, &x, &e), e);
	same(host, mem, N);
	api->close(part);
}

TEST(a_captured_collective_reads_what_is_there_when_it_is_replayed)
{
	struct gt_err e = {0};
	unsigned char host[N * 4];
	void *graph = NULL;
	if (!open_all())
		return;
	struct gt_coll x = {.in = mem, .out = mem + N * 8, .count = N, .dtype = GT_F32};
	CHECK_OK(be->capture_begin(dev, &e), e);
	CHECK_OK(api->all_reduce(comm, &x, &e), e);
	CHECK_OK(be->capture_end(dev, &graph, &e), e);
	fill(host, mem, sizeof host);
	if (!graph)
		return;
	CHECK_OK(be->replay(dev, graph, &e), e);
	same(host, mem + N * 8, sizeof host);
	be->graph_free(dev, graph);
}

TEST(wrong_operands_break_the_group_with_one_sentence)
{
	struct gt_err e = {0}, again = {0};
	if (!open_all())
		return;
	struct gt_coll x = {.what = "overlapping", .in = mem, .out = mem + 4, .count = N, .dtype = GT_F32};
	CHECK(api->all_reduce(comm, &x, &e) != GT_OK);
	CHECK(strstr(e.msg, "overlapping"));
	CHECK(api->check(comm, &again) == GT_EPEER);
	CHECK(!strcmp(e.msg, again.msg));
	api->close(comm);
	be->free(dev, mem);
	be->close(dev);
}

/* Skips the test if the variable is not set: it needs the host's NCCL, with the behaviour that the variable asks for. */
static bool simulated(const char *variable)
{
	if (!getenv(variable))
		test_skip("it needs the simulated NCCL with CUDASIM_SILENT_PEER, CUDASIM_PEER_GATHERS or CUDASIM_LOSE_DEVICE");
	return getenv(variable) != NULL;
}

/* $CUDASIM_SILENT_PEER: a second rank that comes, and then does nothing. The host waits for the device in each of the ways that it has. */
static bool open_pair(double timeout_s, struct gt_comm *host)
{
	struct gt_err e = {0};
	struct gt_comm_boot boot;
	void *p;
	CHECK_OK(gt_plugin_open("cuda", "gt_backend_cuda", &p, &e), e);
	be = p;
	CHECK_OK(gt_plugin_open("cuda", "gt_comm_nccl", &p, &e), e);
	api = p;
	CHECK_OK(be->open(&(struct gt_dev_opts){0}, &dev, &e), e);
	CHECK_OK(be->alloc(dev, N * 4, (void **)&mem, &e), e);
	CHECK_OK(api->create(2, &boot, &e), e);
	struct gt_comm_spec spec = {.rank = 0, .world = 2, .timeout_s = timeout_s, .boot = &boot, .dev = dev, .host = host};
	CHECK_OK(api->open(&spec, &comm, &e), e);
	return comm && mem;
}

static void shut_pair(void)
{
	api->close(comm);
	be->free(dev, mem);
	be->close(dev);
	comm = NULL;
}

TEST(silent_peer)
{
	unsigned char host[N * 4];
	for (int way = 0; simulated("CUDASIM_SILENT_PEER") && way < 4; way++) {
		struct gt_err e = {0}, again = {0};
		if (!open_pair(0.3, NULL))
			return;
		struct gt_coll x = {.in = mem, .out = mem, .count = N, .dtype = GT_F32};
		CHECK_OK(api->all_reduce(comm, &x, &e), e);
		CHECK_OK(be->record(dev, 0, 0, &e), e);
		enum gt_code code = way == 0   ? be->sync(dev, 0, &e)
		                    : way == 1 ? be->host_wait(dev, 0, &e)
		                    : way == 2 ? be->copy(dev, host, mem, sizeof host, GT_COPY_D2H, 0, &e)
		                               : api->split(comm, "half", 0, 0, &(struct gt_comm *){NULL}, &e);
		CHECK_MSG(code == GT_EPEER && strstr(e.msg, "queued work is not finished after 0.3 s"), "way %d: code %d, %s", way, code, e.msg);
		CHECK(api->all_reduce(comm, &x, &again) == GT_EPEER && !strcmp(e.msg, again.msg));
		CHECK_OK(be->sync(dev, 0, &again), again); /* the kernels have ended with the group */
		shut_pair();
	}
}

/* A captured call belongs to its graph, and the communicator of a call that is captured cannot end. Here the peer falls silent while a
 * graph is replayed (way 0), while another graph is captured (way 1), and after the graph was captured (way 2). */
TEST(silent_peer_and_a_graph)
{
	for (int way = 0; simulated("CUDASIM_SILENT_PEER") && way < 3; way++) {
		struct gt_err e = {0};
		void *graph = NULL, *second = NULL;
		if (!open_pair(way ? 1e6 : 0.3, NULL))
			return;
		struct gt_coll x = {.in = mem, .out = mem, .count = N, .dtype = GT_F32};
		CHECK_OK(be->capture_begin(dev, &e), e);
		CHECK_OK(api->all_reduce(comm, &x, &e), e);
		CHECK_OK(be->capture_end(dev, &graph, &e), e);
		if (way == 0) {
			CHECK_OK(be->replay(dev, graph, &e), e);
			CHECK(be->sync(dev, 0, &e) == GT_EPEER && strstr(e.msg, "queued work is not finished after 0.3 s"));
		} else if (way == 1) {
			CHECK_OK(be->capture_begin(dev, &e), e);
			CHECK_OK(api->all_reduce(comm, &x, &e), e);
			api->abort(comm, "the run is ending");
			CHECK(api->all_reduce(comm, &x, &e) == GT_EPEER && strstr(e.msg, "the run is ending"));
			CHECK(be->capture_end(dev, &second, &(struct gt_err){0}) != GT_OK && !second);
		} else {
			api->abort(comm, "the run is ending");
			CHECK(api->barrier(comm, 0, &e) == GT_EPEER);
		}
		struct gt_err after = {0};
		CHECK_MSG(be->replay(dev, graph, &after) != GT_OK && strstr(after.msg, "graph"), "%s", after.msg); /* not without its groups */
		be->graph_free(dev, graph);
		shut_pair();
	}
}

/* Each group has queued work that waits for the peer: the end of one of them alone would wait for the kernels of the others. */
TEST(silent_peer_of_several_groups)
{
	struct gt_err e = {0};
	struct gt_comm *part[2] = {0};
	if (!simulated("CUDASIM_PEER_GATHERS") || !open_pair(0.3, NULL))
		return;
	for (int i = 0; i < 2; i++) {
		CHECK_OK(api->split(comm, i ? "pipeline" : "replicas", 0, 0, &part[i], &e), e);
		CHECK(part[i] && part[i]->world == 2);
	}
	for (int i = 0; part[0] && part[1] && i < 3; i++) {
		struct gt_coll x = {.in = mem, .out = mem, .count = N, .dtype = GT_F32, .stream = i};
		CHECK_OK(api->all_reduce(i ? part[i - 1] : comm, &x, &e), e);
	}
	CHECK_MSG(be->sync(dev, 1, &e) == GT_EPEER && strstr(e.msg, "not finished after 0.3 s"), "%s", e.msg);
	for (int i = 0; i < 2; i++)
		api->close(part[i]);
	shut_pair();
}

/* After an error of the device every CUDA call fails, graphs cannot be destroyed and NCCL's calls do not return. The rank must end all the
 * same, with the device's own message. */
TEST(a_lost_device)
{
	struct gt_err e = {0}, again = {0};
	void *graph = NULL, *buffer = NULL;
	if (!simulated("CUDASIM_LOSE_DEVICE") || !open_all())
		return;
	struct gt_coll x = {.in = mem, .out = mem, .count = N, .dtype = GT_F32};
	double start = gt_clock();
	CHECK_OK(api->buffer(comm, N, &buffer, &e), e);
	CHECK_OK(be->capture_begin(dev, &e), e);
	CHECK_OK(api->all_reduce(comm, &x, &e), e);
	CHECK_OK(be->capture_end(dev, &graph, &e), e);
	CHECK_OK(be->replay(dev, graph, &e), e);
	setenv("CUDASIM_LOST", "1", 1);
	CHECK_MSG(be->sync(dev, 0, &e) == GT_EFAIL && strstr(e.msg, "an illegal memory access"), "%s", e.msg);
	be->graph_free(dev, graph);
	api->close(comm);
	CHECK(be->sync(dev, 0, &again) == GT_EFAIL && strstr(again.msg, "an illegal memory access"));
	be->close(dev);
	comm = NULL;
	unsetenv("CUDASIM_LOST");
	CHECK_MSG(gt_clock() - start < 10, "it took %.1f s", gt_clock() - start); /* no deadline of 60 s was waited for */
}

static enum gt_code host_broke(struct gt_comm *c, struct gt_err *err)
{
	return gt_fail(err, GT_EPEER, "rank %d has died", c->world - 1);
}

/* The ranks' group on their hosts knows of a death long before the deadline. */
TEST(silent_peer_that_died)
{
	static const struct gt_comm_api api_of_host = {.check = host_broke};
	struct gt_comm host = {.api = &api_of_host, .world = 2};
	struct gt_err e = {0};
	if (!simulated("CUDASIM_SILENT_PEER") || !open_pair(1e6, &host))
		return;
	CHECK_OK(api->barrier(comm, 0, &e), e);
	CHECK_MSG(be->sync(dev, 0, &e) == GT_EPEER && !strcmp(e.msg, "rank 1 has died"), "%s", e.msg);
	shut_pair();
}

/* abort() comes from another thread than the one that waits. */
static void *give_up_soon(void *user)
{
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	api->abort(user, "the run is ending");
	return NULL;
}

TEST(silent_peer_and_an_end)
{
	struct gt_err e = {0};
	pthread_t other;
	if (!simulated("CUDASIM_SILENT_PEER") || !open_pair(1e6, NULL))
		return;
	CHECK_OK(api->barrier(comm, 0, &e), e);
	CHECK(!pthread_create(&other, NULL, give_up_soon, comm));
	CHECK_MSG(be->sync(dev, 0, &e) == GT_EPEER && strstr(e.msg, "rank 0 gave up: the run is ending"), "%s", e.msg);
	pthread_join(other, NULL);
	shut_pair();
}

RUN_TESTS()
