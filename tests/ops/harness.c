#include "harness.h"
#include "base/plugin.h"
#include "ew.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- made-up inputs ---- */

uint64_t harness_hash(const char *name)
{
	uint64_t s = 0xCBF29CE484222325u;
	for (; *name; name++)
		s = (s ^ (unsigned char)*name) * 0x100000001B3u;
	return s;
}

static uint64_t mix(uint64_t hash, int64_t i)
{
	uint64_t s = hash + (uint64_t)(i + 1) * 0x9E3779B97F4A7C15u;
	s = (s ^ s >> 30) * 0xBF58476D1CE4E5B9u;
	s = (s ^ s >> 27) * 0x94D049BB133111EBu;
	return s ^ s >> 31;
}

uint64_t harness_raw(const char *name, int64_t i)
{
	return mix(harness_hash(name), i);
}

double harness_number(uint64_t hash, int64_t i)
{
	return ((double)(mix(hash, i) >> 40) - 0x1p23) * 0x1p-23;
}

double harness_uniform(const char *name, int64_t i)
{
	return harness_number(harness_hash(name), i);
}

static uint16_t to_bf16(double x)
{
	float f = (float)x;
	uint32_t u;
	memcpy(&u, &f, 4);
	if (f != f)
		return (uint16_t)(u >> 16 | 0x40);
	return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static double from_bf16(uint16_t b)
{
	uint32_t u = (uint32_t)b << 16;
	float f;
	memcpy(&f, &u, 4);
	return f;
}

double harness_bf16(double x)
{
	return from_bf16(to_bf16(x));
}

/* ---- device ---- */

enum gt_code harness_open_with(struct harness *h, const char *name, const struct gt_dev_opts *opts, struct gt_err *err)
{
	char symbol[64];
	void *p;
	memset(h, 0, sizeof *h);
	snprintf(symbol, sizeof symbol, "gt_backend_%s", name);
	GT_TRY(gt_plugin_open(name, symbol, &p, err));
	h->be = p;
	if (h->be->abi != GT_BACKEND_ABI)
		return gt_fail(err, GT_EUNAVAILABLE, "%s: ABI %u, not %u", name, h->be->abi, GT_BACKEND_ABI);
	GT_TRY(h->be->open(opts, &h->dev, err));
	h->numbers = GT_DTYPE_COUNT;
	h->step_args = (struct gt_step_args){.seed = 1, .stride = 1, .step = 1, .inv_weight = 1};
	enum gt_code code = h->be->alloc(h->dev, sizeof h->step_args, &h->dyn_dev, err);
	if (code != GT_OK)
		harness_close(h);
	return code;
}

enum gt_code harness_open(struct harness *h, const char *name, struct gt_err *err)
{
	struct gt_dev_opts opts = {.threads = 2, .deterministic = true, .cudnn_attention = getenv("TEST_CUDNN_ATTENTION")};
	return harness_open_with(h, name, &opts, err);
}

void harness_close(struct harness *h)
{
	if (!h->dev)
		return;
	harness_drop(h);
	if (h->dyn_dev)
		h->be->free(h->dev, h->dyn_dev);
	h->be->close(h->dev);
	h->dev = NULL;
}

void harness_drop(struct harness *h)
{
	if (!h->g)
		return;
	for (int i = 0; i < h->g->nnodes; i++)
		if (h->kernel && h->kernel[i])
			h->be->release(h->dev, h->kernel[i]);
	for (int i = 0; i < h->g->nvalues; i++)
		if (h->mem && h->mem[i] && !h->shared[i])
			h->be->free(h->dev, h->mem[i]);
	if (h->scratch)
		h->be->free(h->dev, h->scratch);
	free(h->mem);
	free(h->shared);
	free(h->kernel);
	h->g = NULL;
	h->mem = NULL, h->shared = NULL, h->kernel = NULL, h->scratch = NULL;
}

/* ---- graph ---- */

static bool is_alias(const struct gt_graph *g, const struct gt_node *n)
{
	return n->op->code == GT_OP_IDENTITY || gt_node_alias(g, n);
}

static struct gt_tdesc *desc_of(struct gt_graph *g, gt_vid v)
{
	return v < 0 ? NULL : &g->values[v].desc;
}

/* Allocates workspace that holds NaN: alloc() zeroes memory, and a kernel must not read workspace that it has not written. */
static enum gt_code alloc_scratch(struct harness *h, size_t bytes, void **out, struct gt_err *err)
{
	GT_TRY(h->be->alloc(h->dev, bytes, out, err));
	void *nan = malloc(bytes);
	if (!nan)
		return gt_fail(err, GT_EFAIL, "out of memory");
	enum gt_code code = h->be->copy(h->dev, *out, memset(nan, 0xff, bytes), bytes, GT_COPY_H2D, 0, err);
	free(nan);
	return code;
}

static enum gt_code prepare(struct harness *h, int i, size_t *scratch, struct gt_err *err)
{
	struct gt_graph *g = h->g;
	struct gt_node *n = &g->nodes[i];
	struct gt_opcall call = {.code = n->op->code, .name = n->name, .attr = n->attr, .nin = n->nin, .nout = n->nout, .deterministic = true};
	for (int j = 0; j < n->nin; j++)
		call.in[j] = desc_of(g, n->in[j]);
	if (n->op->code == GT_OP_COMM)
		return GT_OK;
	for (int j = 0; j < n->nout; j++) {
		call.out[j] = desc_of(g, n->out[j]);
		enum gt_vkind kind = n->out[j] < 0 ? GT_V_ACT : g->values[n->out[j]].kind;
		if (kind == GT_V_GRAD && (h->accumulate || gt_graph_grad_adds(h->g, i, n->out[j])))
			call.accumulate |= 1u << j;
	}
	GT_TRY(h->be->prepare(h->dev, &call, &h->kernel[i], err));
	size_t s = h->be->scratch(h->kernel[i]);
	if (s > *scratch)
		*scratch = s;
	return GT_OK;
}

/* A master and its work copy, and a parameter and its gradient, have one layout: that of whichever the kernels chose. */
static void spread_layout(struct gt_graph *g)
{
	for (int i = 0; i < g->nparams; i++) {
		gt_vid all[3] = {g->params[i].value, g->params[i].work, g->params[i].grad};
		int from = -1;
		for (int j = 0; j < 3; j++)
			if (all[j] >= 0 && !g->values[all[j]].desc.any && !gt_tdesc_plain(&g->values[all[j]].desc))
				from = j;
		for (int j = 0; j < 3 && from >= 0; j++)
			if (all[j] >= 0 && g->values[all[j]].desc.any) {
				g->values[all[j]].desc.layout = g->values[all[from]].desc.layout;
				g->values[all[j]].desc.any = false;
			}
	}
}

static enum gt_code make(struct harness *h, struct gt_err *err)
{
	struct gt_graph *g = h->g;
	size_t scratch = 0;
	h->mem = calloc((size_t)g->nvalues, sizeof *h->mem);
	h->shared = calloc((size_t)g->nvalues, sizeof *h->shared);
	h->kernel = calloc((size_t)g->nnodes, sizeof *h->kernel);
	if (!h->mem || !h->shared || !h->kernel)
		return gt_fail_memory(err, 0);
	for (int i = 0; i < g->nnodes; i++) {
		if (!is_alias(g, &g->nodes[i]))
			GT_TRY(prepare(h, i, &scratch, err));
		spread_layout(g);
	}
	for (int i = 0; i < g->nnodes; i++)
		if (is_alias(g, &g->nodes[i]))
			h->shared[g->nodes[i].out[0]] = true;
	for (int v = 0; v < g->nvalues; v++) {
		size_t bytes = g->values[v].kind == GT_V_METRICS ? sizeof(struct gt_metrics) : gt_tdesc_bytes(&g->values[v].desc);
		if (!h->shared[v])
			GT_TRY(h->be->alloc(h->dev, bytes, &h->mem[v], err));
	}
	for (int i = 0; i < g->nnodes; i++)
		if (h->shared[g->nodes[i].out[0]])
			h->mem[g->nodes[i].out[0]] = h->mem[g->nodes[i].in[0]];
	return scratch ? alloc_scratch(h, scratch, &h->scratch, err) : GT_OK;
}

enum gt_code harness_graph(struct harness *h, struct gt_graph *g, struct gt_err *err)
{
	harness_drop(h);
	h->g = g;
	enum gt_code code = make(h, err);
	if (code != GT_OK)
		harness_drop(h);
	return code;
}

static enum gt_code send_dyn(struct harness *h, struct gt_err *err)
{
	return h->be->copy(h->dev, h->dyn_dev, &h->step_args, sizeof h->step_args, GT_COPY_H2D, 0, err);
}

enum gt_code harness_run(struct harness *h, int first, int last, struct gt_err *err)
{
	GT_TRY(send_dyn(h, err));
	for (int i = first; i < last; i++) {
		const struct gt_node *n = &h->g->nodes[i];
		void *in[GT_MAX_IO] = {0}, *out[GT_MAX_IO] = {0};
		if (n->op->code == GT_OP_COMM) {
			size_t bytes = gt_tdesc_bytes(&h->g->values[n->in[0]].desc);
			GT_TRY(h->be->copy(h->dev, h->mem[n->out[0]], h->mem[n->in[0]], bytes, GT_COPY_D2D, 0, err));
		}
		if (!h->kernel[i])
			continue;
		for (int j = 0; j < n->nin; j++)
			in[j] = n->in[j] < 0 ? NULL : h->mem[n->in[j]];
		for (int j = 0; j < n->nout; j++)
			out[j] = n->out[j] < 0 ? NULL : h->mem[n->out[j]];
		struct gt_launch a = {.in = in, .out = out, .scratch = h->scratch, .step_args = h->dyn_dev};
		GT_TRY(h->be->launch(h->dev, h->kernel[i], &a, err));
	}
	return h->be->sync(h->dev, 0, err);
}

/* ---- values ---- */

static void store(enum gt_dtype t, void *p, int64_t i, double x)
{
	switch (t) {
	case GT_F64: ((double *)p)[i] = x; break;
	case GT_F32: ((float *)p)[i] = (float)x; break;
	case GT_BF16: ((uint16_t *)p)[i] = to_bf16(x); break;
	case GT_I32: ((int32_t *)p)[i] = (int32_t)x; break;
	case GT_I64: ((int64_t *)p)[i] = (int64_t)x; break;
	case GT_U8: ((uint8_t *)p)[i] = (uint8_t)x; break;
	case GT_F16: ((uint16_t *)p)[i] = gt_f16_from_f32((float)x); break;
	case GT_DTYPE_COUNT: abort();
	}
}

static double load(enum gt_dtype t, const void *p, int64_t i)
{
	switch (t) {
	case GT_F64: return ((const double *)p)[i];
	case GT_F32: return ((const float *)p)[i];
	case GT_BF16: return from_bf16(((const uint16_t *)p)[i]);
	case GT_I32: return ((const int32_t *)p)[i];
	case GT_I64: return (double)((const int64_t *)p)[i];
	case GT_U8: return ((const uint8_t *)p)[i];
	case GT_F16: return (double)gt_f16_to_f32(((const uint16_t *)p)[i]);
	case GT_DTYPE_COUNT: break;
	}
	abort();
}

enum gt_code harness_put(struct harness *h, gt_vid v, const double *x, struct gt_err *err)
{
	const struct gt_tdesc *d = &h->g->values[v].desc;
	int64_t n = gt_tdesc_count(d);
	size_t bytes = gt_tdesc_bytes(d);
	char *plain = malloc((size_t)n * gt_dtype_size(d->dtype) + bytes + 16);
	if (!plain)
		return gt_fail_memory(err, bytes);
	char *physical = plain + (size_t)n * gt_dtype_size(d->dtype);
	for (int64_t i = 0; i < n; i++)
		store(d->dtype, plain, i, x[i]);
	gt_tdesc_pack(d, plain, physical);
	enum gt_code code = h->be->copy(h->dev, h->mem[v], physical, bytes, GT_COPY_H2D, 0, err);
	if (code == GT_OK)
		code = h->be->sync(h->dev, 0, err);
	free(plain);
	return code;
}

enum gt_code harness_get(struct harness *h, gt_vid v, double *x, struct gt_err *err)
{
	const struct gt_tdesc *d = &h->g->values[v].desc;
	int64_t n = gt_tdesc_count(d);
	size_t bytes = gt_tdesc_bytes(d);
	char *plain = malloc((size_t)n * gt_dtype_size(d->dtype) + bytes + 16);
	if (!plain)
		return gt_fail_memory(err, bytes);
	char *physical = plain + (size_t)n * gt_dtype_size(d->dtype);
	enum gt_code code = h->be->copy(h->dev, physical, h->mem[v], bytes, GT_COPY_D2H, 0, err);
	if (code == GT_OK)
		code = h->be->sync(h->dev, 0, err);
	if (code == GT_OK) {
		gt_tdesc_unpack(d, physical, plain);
		for (int64_t i = 0; i < n; i++)
			x[i] = load(d->dtype, plain, i);
	}
	free(plain);
	return code;
}

enum gt_code harness_metrics(struct harness *h, gt_vid v, struct gt_metrics *out, struct gt_err *err)
{
	GT_TRY(h->be->copy(h->dev, out, h->mem[v], sizeof *out, GT_COPY_D2H, 0, err));
	return h->be->sync(h->dev, 0, err);
}

enum gt_code harness_zero(struct harness *h, gt_vid v, struct gt_err *err)
{
	size_t bytes = h->g->values[v].kind == GT_V_METRICS ? sizeof(struct gt_metrics) : gt_tdesc_bytes(&h->g->values[v].desc);
	return h->be->zero(h->dev, h->mem[v], bytes, 0, err);
}

/* ---- one call ---- */

enum gt_code harness_call(struct harness *h, const struct gt_opcall *call, void *const *in, void *const *out, struct gt_err *err)
{
	struct gt_kernel *k = NULL;
	void *din[GT_MAX_IO] = {0}, *dout[GT_MAX_IO] = {0}, *scratch = NULL;
	enum gt_code code = h->be->prepare(h->dev, call, &k, err);
	if (code != GT_OK)
		return code;
	if (h->be->scratch(k))
		code = alloc_scratch(h, h->be->scratch(k), &scratch, err);
	for (int i = 0; code == GT_OK && i < call->nin; i++)
		if (call->in[i] && (code = h->be->alloc(h->dev, gt_tdesc_bytes(call->in[i]), &din[i], err)) == GT_OK)
			code = h->be->copy(h->dev, din[i], in[i], gt_tdesc_bytes(call->in[i]), GT_COPY_H2D, 0, err);
	for (int i = 0; code == GT_OK && i < call->nout; i++)
		if (call->out[i])
			code = h->be->alloc(h->dev, gt_tdesc_bytes(call->out[i]), &dout[i], err);
	if (code == GT_OK)
		code = send_dyn(h, err);
	struct gt_launch a = {.in = din, .out = dout, .scratch = scratch, .step_args = h->dyn_dev};
	if (code == GT_OK)
		code = h->be->launch(h->dev, k, &a, err);
	for (int i = 0; code == GT_OK && i < call->nin; i++) /* inputs too: updates are in place */
		if (din[i])
			code = h->be->copy(h->dev, in[i], din[i], gt_tdesc_bytes(call->in[i]), GT_COPY_D2H, 0, err);
	for (int i = 0; code == GT_OK && i < call->nout; i++)
		if (dout[i])
			code = h->be->copy(h->dev, out[i], dout[i], gt_tdesc_bytes(call->out[i]), GT_COPY_D2H, 0, err);
	if (code == GT_OK)
		code = h->be->sync(h->dev, 0, err);
	for (int i = 0; i < GT_MAX_IO; i++) {
		if (din[i])
			h->be->free(h->dev, din[i]);
		if (dout[i])
			h->be->free(h->dev, dout[i]);
	}
	if (scratch)
		h->be->free(h->dev, scratch);
	h->be->release(h->dev, k);
	return code;
}
