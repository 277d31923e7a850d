#include "session/stage_cost.h"
#include "base/clock.h"
#include "exec/exec_parts.h"
#include "ir/op.h"
#include <string.h>

#define TRIES 3               /* the fastest counts, because other programs may use the machine */
#define SWEEP ((size_t)48 << 20) /* maximum bytes; about the size of a processor's caches */
#define TRY_S 1.0e-3 /* seconds of a try on a device with its own memory, where a launch costs as much as a kernel */
#define LAUNCHES 64           /* maximum number of launches in a try */

struct operands {
	void *in[GT_MAX_IO], *out[GT_MAX_IO], *scratch;
};

/* Memory that is read before each try if the device uses host memory: in training, other layers have used the caches meanwhile. */
struct sweep {
	const char *at;
	size_t bytes;
};

/* Number of bytes of a value that a kernel may access; parameters have the layout of the space. */
static size_t value_bytes(const struct gt_space *sp, const struct gt_graph *g, gt_vid v)
{
	const struct gt_value *val = &g->values[v];
	struct gt_tdesc d = val->desc;
	switch (val->kind) {
	case GT_V_METRICS:
	case GT_V_BOUND:
		return sizeof(struct gt_scalars);
	case GT_V_SCALE:
		return GT_SCALER_BYTES;
	case GT_V_PARAM:
	case GT_V_WORK:
	case GT_V_GRAD:
	case GT_V_BUFFER:
		d = sp->layout.param[val->param].desc;
		d.dtype = val->desc.dtype;
		break;
	default:
		break;
	}
	return gt_tdesc_bytes(&d);
}

static enum gt_code make(const struct gt_space *sp, const struct gt_graph *g, const struct gt_call *c, struct operands *o,
                         struct gt_err *err)
{
	const struct gt_node *n = &g->nodes[c->node];
	for (int k = 0; k < n->nin; k++) {
		for (int i = 0; i < k && n->in[k] >= 0; i++) /* a value that is read twice has one memory */
			if (n->in[i] == n->in[k])
				o->in[k] = o->in[i];
		if (n->in[k] >= 0 && !o->in[k])
			GT_TRY(sp->be->alloc(sp->dev, value_bytes(sp, g, n->in[k]), &o->in[k], err));
	}
	for (int k = 0; k < n->nout; k++)
		if (n->out[k] >= 0)
			GT_TRY(sp->be->alloc(sp->dev, value_bytes(sp, g, n->out[k]), &o->out[k], err));
	return c->scratch ? sp->be->alloc(sp->dev, c->scratch, &o->scratch, err) : GT_OK;
}

static void drop(const struct gt_space *sp, struct operands *o)
{
	for (int k = 0; k < GT_MAX_IO; k++) {
		for (int i = k + 1; i < GT_MAX_IO; i++)
			if (o->in[i] == o->in[k])
				o->in[i] = NULL;
		if (o->in[k])
			sp->be->free(sp->dev, o->in[k]);
		if (o->out[k])
			sp->be->free(sp->dev, o->out[k]);
	}
	if (o->scratch)
		sp->be->free(sp->dev, o->scratch);
	o->scratch = NULL;
}

static enum gt_code run(const struct gt_space *sp, const struct gt_call *c, const struct operands *o, int times, double *seconds,
                        struct gt_err *err)
{
	struct gt_step_args step_args = {.stride = 1, .step = 1, .inv_weight = 1};
	struct gt_launch a = {.in = o->in, .out = o->out, .scratch = o->scratch, .step_args = &step_args};
	double start = gt_clock();
	for (int i = 0; i < times; i++)
		GT_TRY(sp->be->launch(sp->dev, c->kernel, &a, err));
	GT_TRY(sp->be->sync(sp->dev, 0, err));
	*seconds = (gt_clock() - start) / times;
	return GT_OK;
}

static enum gt_code time_call(const struct gt_space *sp, const struct gt_call *c, const struct operands *o, const struct sweep *w,
                              double *seconds, struct gt_err *err)
{
	double once, t;
	GT_TRY(run(sp, c, o, 1, &once, err)); /* the first runs load libraries and pages */
	GT_TRY(run(sp, c, o, 1, &once, err));
	int times = w->at ? 1 : once > TRY_S / LAUNCHES ? 1 + (int)(TRY_S / once) : LAUNCHES;
	for (int i = 0; i < TRIES; i++) {
		for (size_t k = 0; k < w->bytes; k += 64)
			(void)*(const volatile char *)&w->at[k];
		GT_TRY(run(sp, c, o, times, &t, err));
		*seconds = !i || t < *seconds ? t : *seconds;
	}
	return GT_OK;
}

static enum gt_code time_all(const struct gt_space *sp, const struct gt_plan *p, const struct sweep *w, double *seconds, struct gt_err *err)
{
	for (int i = 0; i < p->ncalls; i++) {
		const struct gt_call *c = &p->call[i];
		struct operands o = {{0}, {0}, NULL};
		if (c->comm)
			continue;
		enum gt_code code = make(sp, p->graph, c, &o, err);
		if (code == GT_OK)
			code = time_call(sp, c, &o, w, &seconds[c->node], err);
		drop(sp, &o);
		if (code != GT_OK)
			return gt_fail_prefix(err, "timing %s of %s", c->op, c->layer);
	}
	return GT_OK;
}

enum gt_code gt_stage_costs(const struct gt_session *s, struct gt_graph *g, double *seconds, struct gt_err *err)
{
	struct gt_space *sp;
	struct gt_plan *p = NULL;
	struct sweep w = {NULL, 0};
	void *memory = NULL;
	for (int i = 0; i < g->nnodes; i++)
		seconds[i] = 0;
	GT_TRY(gt_space_open(s->device.be, s->device.dev, 0, &sp, err));
	enum gt_code code =
	    /* with accumulation, because gradients are added up over micro-batches */
	    gt_plan_make(sp, g, true, s->conf->reproducible != GT_REPRO_NONE, &p, err);
	if (code == GT_OK && s->device.be->host_memory) {
		for (gt_vid v = 0; v < g->nvalues && w.bytes < SWEEP; v++)
			w.bytes += value_bytes(sp, g, v);
		w.bytes = w.bytes < SWEEP ? w.bytes : SWEEP;
		code = s->device.be->alloc(s->device.dev, w.bytes, &memory, err);
		w.at = memory;
		if (memory)
			memset(memory, 1, w.bytes); /* allocates real pages instead of the kernel's zero page */
	}
	if (code == GT_OK)
		code = time_all(sp, p, &w, seconds, err);
	if (memory)
		s->device.be->free(s->device.dev, memory);
	gt_plan_close(p);
	gt_space_close(sp);
	return code;
}
