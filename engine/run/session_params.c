/* The tensors of a session seen from the host: plain layout, PyTorch's element order. */
#include "run/session.h"
#include "ir/init.h"
#include "run/whiten.h"
#include <stdlib.h>
#include <string.h>

struct gt_tdesc gt_session_desc(const struct gt_session *s, int i)
{
	const struct gt_tdesc *d = &s->space->place[i].desc;
	return gt_tdesc_make(d->dtype, d->rank, d->dim, false);
}

static void *address(const struct gt_session *s, int i, int state)
{
	if (s->space->first->params[i].cls == GT_PARAM_BUFFER)
		return gt_space_param(s->space, i, GT_A_BUFFER, 0);
	return gt_space_param(s->space, i, state < 0 ? GT_A_PARAM : GT_A_STATE, state < 0 ? 0 : state);
}

/* Host memory and plain layout need no detour; everything else goes through a physical copy. */
static enum gt_code transfer(struct gt_session *s, int i, int state, void *get, const void *put, struct gt_err *err)
{
	const struct gt_tdesc *d = &s->space->place[i].desc;
	const struct gt_backend *be = s->device.be;
	void *at = address(s, i, state), *physical = at;
	size_t bytes = gt_tdesc_bytes(d);
	enum gt_code code = GT_OK;
	if (!be->host_memory && !(physical = malloc(bytes)))
		return gt_fail_memory(err, bytes);
	if (get) {
		if (physical != at)
			code = be->copy(s->device.dev, physical, at, bytes, GT_COPY_D2H, 0, err);
		if (code == GT_OK)
			gt_tdesc_unpack(d, physical, get);
	} else {
		gt_tdesc_pack(d, put, physical);
		if (physical != at)
			code = be->copy(s->device.dev, at, physical, bytes, GT_COPY_H2D, 0, err);
	}
	if (physical != at)
		free(physical);
	return code;
}

enum gt_code gt_session_get(struct gt_session *s, int i, int state, void *plain, struct gt_err *err)
{
	return transfer(s, i, state, plain, NULL, err);
}

enum gt_code gt_session_put(struct gt_session *s, int i, int state, const void *plain, struct gt_err *err)
{
	return transfer(s, i, state, NULL, plain, err);
}

bool gt_session_scales(const struct gt_session *s)
{
	return s->space->first->compute == GT_F16;
}

enum gt_code gt_session_set_scale(struct gt_session *s, double scale, int64_t good, struct gt_err *err)
{
	struct gt_scaler c = {.scale = (double)(float)scale, .good = good};
	if (s->device.be->host_memory) {
		*gt_space_scaler(s->space) = c;
		return GT_OK;
	}
	return s->device.be->copy(s->device.dev, gt_space_scaler(s->space), &c, sizeof c, GT_COPY_H2D, 0, err);
}

enum gt_code gt_session_refresh(struct gt_session *s, struct gt_err *err)
{
	struct gt_space *sp = s->space;
	struct gt_call cast;
	if (!sp->base[GT_A_WORK])
		return GT_OK;
	struct gt_tdesc from = gt_tdesc_make(sp->master, 1, &sp->elements, false), to = from;
	to.dtype = sp->work;
	struct gt_opcall oc = {.code = GT_OP_CAST, .name = "weights", .nin = 1, .nout = 1, .in = {&from}, .out = {&to}};
	struct gt_dyn dyn = {0};
	GT_TRY(gt_call_prepare(sp, &oc, &cast, err));
	cast.in[0] = sp->base[GT_A_PARAM];
	cast.out[0] = sp->base[GT_A_WORK];
	struct gt_launch a = {.in = cast.in, .out = cast.out, .dyn = &dyn};
	enum gt_code code = sp->be->launch(sp->dev, cast.kernel, &a, err);
	if (code == GT_OK)
		code = sp->be->sync(sp->dev, 0, err);
	sp->be->release(sp->dev, cast.kernel);
	return code;
}

enum gt_code gt_session_init(struct gt_session *s, struct gt_err *err)
{
	const struct gt_graph *g = s->space->first;
	struct gt_init_stream stream;
	gt_init_begin(&stream, (uint64_t)s->conf->seed);
	for (int i = 0; i < g->nparams; i++) {
		struct gt_tdesc d = gt_session_desc(s, i);
		void *buf = malloc(gt_tdesc_bytes(&d));
		if (!buf)
			return gt_fail_memory(err, gt_tdesc_bytes(&d));
		gt_param_init(&stream, &g->params[i], i, buf);
		enum gt_code code = g->params[i].then == GT_INIT_WHITENING ? gt_whiten(s, &g->params[i], buf, err) : GT_OK;
		if (code == GT_OK)
			code = gt_session_put(s, i, -1, buf, err);
		free(buf);
		GT_TRY(code);
	}
	return gt_session_refresh(s, err);
}
