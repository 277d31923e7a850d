/* The CUDA backend's device on the host's CUDA runtime (tests/cudasim/include): memory, streams, graphs, faults, refusals. Run by
 * test_cudasim.sh from build/cudasim. */
#include "backend.h"
#include "base/philox.h"
#include "base/plugin.h"
#include "test.h"
#include <stdlib.h>
#include <string.h>

static const struct gt_backend *be;
static struct gt_dev *dev;

static bool open_cuda(void)
{
	struct gt_err e = {0};
	void *p;
	if (dev)
		return true;
	CHECK_OK(gt_plugin_open("cuda", "gt_backend_cuda", &p, &e), e);
	if (e.code)
		return false;
	be = p;
	CHECK_OK(be->open(&(struct gt_dev_opts){.deterministic = true}, &dev, &e), e);
	return dev;
}

/* In [-3, 3), and not 0. */
static float *filled(int64_t n)
{
	float *f = malloc((size_t)n * sizeof *f);
	for (int64_t i = 0; i < n; i++)
		f[i] = (gt_rng_uniform(gt_philox4x32((uint32_t)i, 1, 0, 0, 7, 11).v[0]) + 0x1p-26f) * 6 - 3;
	return f;
}

static void *device_floats(const float *x, int64_t n)
{
	struct gt_err e = {0};
	void *p = NULL;
	CHECK_OK(be->alloc(dev, (size_t)n * 4, &p, &e), e);
	if (x)
		CHECK_OK(be->copy(dev, p, x, (size_t)n * 4, GT_COPY_H2D, 0, &e), e);
	return p;
}

static struct gt_kernel *prepared(enum gt_opcode code, const void *attr, struct gt_tdesc *x, int nin)
{
	struct gt_err e = {0};
	struct gt_kernel *k = NULL;
	struct gt_opcall call = {.code = code, .attr = attr, .nin = nin, .nout = 1, .in = {x, x}, .out = {x}};
	CHECK_OK(be->prepare(dev, &call, &k, &e), e);
	return k;
}

TEST(alloc_is_zeroed_and_says_when_memory_is_out)
{
	struct gt_err e = {0};
	float x[64];
	void *p, *big;
	if (!open_cuda())
		return;
	p = device_floats(NULL, 64);
	CHECK_OK(be->copy(dev, x, p, sizeof x, GT_COPY_D2H, 0, &e), e);
	for (int i = 0; i < 64; i++)
		CHECK(x[i] == 0);
	be->free(dev, p);
	CHECK(be->alloc(dev, (size_t)1 << 40, &big, &e) == GT_EFAIL && !big);
	CHECK_MSG(strstr(e.msg, "out of memory on cuda:0") && strstr(e.msg, " free"), "%s", e.msg);
	CHECK_OK(be->alloc(dev, 0, &p, &e), ((struct gt_err){0}));
	be->free(dev, p);
}

TEST(host_memory_may_be_changed_after_a_copy)
{
	struct gt_err e = {0};
	float got[64];
	void *page_locked;
	if (!open_cuda())
		return;
	CHECK_OK(be->host_alloc(dev, sizeof got, &page_locked, &e), e);
	float *host = page_locked;
	for (int i = 0; i < 64; i++)
		host[i] = (float)i;
	void *p = device_floats(host, 64);
	memset(host, 0, sizeof got);
	CHECK_OK(be->copy(dev, got, p, sizeof got, GT_COPY_D2H, 0, &e), e);
	for (int i = 0; i < 64; i++)
		CHECK(got[i] == (float)i);
	be->free(dev, p);
	be->host_free(dev, page_locked);
}

TEST(streams_are_ordered_by_events)
{
	struct gt_err e = {0};
	int64_t n = 1000;
	struct gt_tdesc d = gt_tdesc_make(GT_F32, 1, &n, false);
	if (!open_cuda())
		return;
	float *host = filled(n), *got = malloc((size_t)n * 4);
	void *x = device_floats(host, n), *y = device_floats(NULL, n), *z = device_floats(NULL, n);
	struct gt_kernel *k = prepared(GT_OP_ADD, NULL, &d, 2);
	/* y = x + x on stream 1; z = y + y on stream 0 behind it. Work is put off until somebody waits: without the events z would be 0. */
	CHECK_OK(be->record(dev, 0, 0, &e), e);
	CHECK_OK(be->wait(dev, 0, 1, &e), e);
	CHECK_OK(be->launch(dev, k, &(struct gt_launch){.in = (void *[]){x, x}, .out = (void *[]){y}, .stream = 1}, &e), e);
	CHECK_OK(be->record(dev, 1, 1, &e), e);
	CHECK_OK(be->wait(dev, 1, 0, &e), e);
	CHECK_OK(be->launch(dev, k, &(struct gt_launch){.in = (void *[]){y, y}, .out = (void *[]){z}, .stream = 0}, &e), e);
	CHECK_OK(be->copy(dev, got, z, (size_t)n * 4, GT_COPY_D2H, 0, &e), e);
	for (int64_t i = 0; i < n; i++)
		if (got[i] != 4 * host[i]) {
			test_fail(__FILE__, __LINE__, "z[%lld] = %g, not %g", (long long)i, (double)got[i], 4 * (double)host[i]);
			break;
		}
	CHECK(be->record(dev, -1, 0, &e) == GT_EINTERNAL && be->sync(dev, 99, &e) == GT_EINTERNAL);
	be->release(dev, k);
	be->free(dev, x), be->free(dev, y), be->free(dev, z);
	free(host), free(got);
}

static int64_t kept(void *y, int64_t n, uint64_t *hash)
{
	struct gt_err e = {0};
	float *got = malloc((size_t)n * 4);
	int64_t count = 0;
	CHECK_OK(be->copy(dev, got, y, (size_t)n * 4, GT_COPY_D2H, 0, &e), e);
	*hash = 0;
	for (int64_t i = 0; i < n; i++) {
		count += got[i] != 0;
		*hash = *hash * 31 + (got[i] != 0);
	}
	free(got);
	return count;
}

TEST(graph_reads_new_numbers_at_every_replay)
{
	struct gt_err e = {0};
	int64_t dim[2] = {4, 1000};
	struct gt_tdesc d = gt_tdesc_make(GT_F32, 2, dim, false);
	struct gt_attr_dropout attr = {.p = 0.5, .train = true};
	struct gt_step_args step_args = {.seed = 1, .stride = 1};
	uint64_t hash[4];
	void *graph = NULL, *dyn_dev;
	if (!open_cuda())
		return;
	float *host = filled(4000);
	void *x = device_floats(host, 4000), *y = device_floats(NULL, 4000);
	struct gt_kernel *k = prepared(GT_OP_DROPOUT, &attr, &d, 1);
	CHECK_OK(be->alloc(dev, sizeof step_args, &dyn_dev, &e), e);
	struct gt_launch a = {.in = &x, .out = &y, .step_args = dyn_dev};
	CHECK_OK(be->capture_begin(dev, &e), e);
	CHECK_OK(be->launch(dev, k, &a, &e), e);
	/* What would make a graph wrong is refused. */
	a.step_args = &step_args;
	CHECK(be->launch(dev, k, &a, &e) == GT_EINTERNAL);
	CHECK(be->sync(dev, 0, &e) == GT_EINTERNAL);
	CHECK(be->copy(dev, host, y, 4, GT_COPY_D2H, 0, &e) == GT_EINTERNAL);
	e.code = GT_OK;
	CHECK_OK(be->capture_end(dev, &graph, &e), e);
	CHECK(kept(y, 4000, &hash[3]) == 0); /* capturing runs nothing */
	for (int i = 0; i < 3; i++) {
		step_args.epoch = (uint64_t)(i / 2); /* 0 0 1 */
		CHECK_OK(be->copy(dev, dyn_dev, &step_args, sizeof step_args, GT_COPY_H2D, 0, &e), e);
		CHECK_OK(be->replay(dev, graph, &e), e);
		int64_t n = kept(y, 4000, &hash[i]);
		CHECK_MSG(n > 1800 && n < 2200, "%lld of 4000 kept", (long long)n); /* 2000 +- 6 sigma of a fair coin */
	}
	CHECK(hash[0] == hash[1] && hash[1] != hash[2]);
	be->graph_free(dev, graph);
	be->release(dev, k);
	be->free(dev, x), be->free(dev, y), be->free(dev, dyn_dev);
	free(host);
}

TEST(bad_labels_and_indices_are_named)
{
	struct gt_err e = {0};
	int64_t dim[2] = {3, 4}, n = 3;
	struct gt_tdesc x = gt_tdesc_make(GT_F32, 2, dim, false), t = gt_tdesc_make(GT_I32, 1, &n, false),
	                m = gt_tdesc_make(GT_F64, 0, NULL, false);
	struct gt_attr_loss attr = {.ignore_index = -100};
	struct gt_opcall call = {.code = GT_OP_CROSS_ENTROPY, .attr = &attr, .nin = 2, .nout = 1, .in = {&x, &t}, .out = {&m}};
	struct gt_step_args step_args = {.inv_weight = 1};
	struct gt_metrics got;
	struct gt_kernel *k = NULL;
	if (!open_cuda())
		return;
	float *host = filled(12);
	void *px = device_floats(host, 12), *pt = device_floats((const float *)(const int32_t[]){1, 4, -100}, 3),
	     *pm = device_floats(NULL, sizeof got / 4), *scratch = device_floats(NULL, 64);
	CHECK_OK(be->prepare(dev, &call, &k, &e), e);
	CHECK_OK(be->launch(dev, k,
	                    &(struct gt_launch){.in = (void *[]){px, pt}, .out = (void *[]){pm}, .scratch = scratch, .step_args = &step_args},
	                    &e),
	         e);
	CHECK(be->copy(dev, &got, pm, sizeof got, GT_COPY_D2H, 0, &e) == GT_EDATA);
	CHECK_MSG(!strcmp(e.msg, "label 4 of sample 1 in the batch: the model has classes 0..3"), "%s", e.msg);
	e.code = GT_OK;
	CHECK_OK(be->copy(dev, &got, pm, sizeof got, GT_COPY_D2H, 0, &e), e); /* told once */
	CHECK(got.count == 1);
	be->release(dev, k);
	be->free(dev, px), be->free(dev, pt), be->free(dev, pm), be->free(dev, scratch);
	free(host);
}

TEST(what_it_cannot_do_is_refused_by_name)
{
	struct gt_err e = {0};
	int64_t dim[4] = {2, 3, 8, 8}, n = 5;
	struct gt_tdesc x = gt_tdesc_make(GT_F32, 4, dim, true), y = gt_tdesc_make(GT_F32, 2, dim, false),
	                f = gt_tdesc_make(GT_F64, 1, &n, false);
	struct gt_seg seg = {.end = 6};
	struct gt_attr_dw_update update = {.optimizer = GT_OP_SGD, .update = {.seg = &seg, .nseg = 1}};
	struct gt_tdesc w = gt_tdesc_make(GT_F32, 2, (int64_t[]){3, 3}, false);
	struct gt_opcall calls[3] = {{.code = GT_OP_LINEAR_DW_UPDATE, .name = "fc", .attr = &update, .nin = 3, .in = {&y, &y, &w}},
	                             {.code = GT_OP_RELU, .name = "r", .nin = 1, .nout = 1, .in = {&f}, .out = {&f}},
	                             {.code = GT_OP_RELU, .name = "wide", .nin = 2, .nout = 1, .in = {&x, &x}, .out = {&x}}};
	static const char *const why[] = {"--device cpu", "f64", "at most 1 inputs"};
	struct gt_kernel *k;
	if (!open_cuda())
		return;
	for (int i = 0; i < 3; i++)
		CHECK(be->prepare(dev, &calls[i], &k, &e) == (i < 2 ? GT_EUNAVAILABLE : GT_EINTERNAL) && !k && strstr(e.msg, calls[i].name) &&
		      strstr(e.msg, why[i]));
}

RUN_TESTS()
