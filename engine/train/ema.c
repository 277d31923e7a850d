#include "train/ema.h"
#include "session/session_team.h"
#include "team/team.h"
#include <stdlib.h>
#include <string.h>

int gt_ema_state(const struct gt_session *s, int i)
{
	const struct gt_param *p = &s->space->layout.first->params[i];
	return s->optim.ema && p->cls != GT_PARAM_BUFFER && !p->frozen ? s->optim.nstates : -1;
}

/* Copies the parameters to the average, or the average to the parameters. Tensors may have parts on several ranks: rank 0 gathers each
 * tensor and sends it to all ranks. */
static enum gt_code copy_all_params(struct gt_session *s, bool to_average, struct gt_err *err)
{
	const struct gt_graph *g = s->space->layout.first;
	for (int i = 0; i < g->nparams; i++) {
		struct gt_tdesc d = gt_session_desc(s, i);
		int state = gt_ema_state(s, i);
		if (state < 0)
			continue;
		void *buf = malloc(gt_tdesc_bytes(&d));
		if (!buf)
			return gt_fail_memory(err, gt_tdesc_bytes(&d));
		enum gt_code code = gt_session_get(s, i, to_average ? -1 : state, buf, err);
		if (code == GT_OK && s->at.world > 1)
			code = gt_team_broadcast(s->team, buf, gt_tdesc_bytes(&d), 0, "averaged weights", err);
		if (code == GT_OK)
			code = gt_session_put(s, i, to_average ? state : -1, buf, err);
		free(buf);
		GT_TRY(code);
	}
	return GT_OK;
}

/* Waits until no rank reads parameters that several ranks share. */
static enum gt_code wait_for_shared_params(struct gt_session *s, struct gt_err *err)
{
	return s->space->shards.spec.shared_params ? gt_session_barrier(s, err) : GT_OK;
}

enum gt_code gt_ema_start(struct gt_session *s, struct gt_err *err)
{
	if (!s->optim.ema)
		return GT_OK;
	GT_TRY(wait_for_shared_params(s, err));
	return copy_all_params(s, true, err);
}

/* Returns whether this rank saves the parameters before an evaluation replaces them by the average. If ranks share the memory of
 * parameters, only one rank saves them. */
static bool holds_params(const struct gt_session *s)
{
	return !(s->space->shards.spec.shared_params && s->at.data);
}

size_t gt_ema_held_bytes(const struct gt_session *s)
{
	bool evaluates = false;
	for (int i = 0; i < GT_SPLITS; i++)
		evaluates |= s->prog.eval[i].nfull > 0;
	return s->optim.ema && evaluates && holds_params(s) ? s->space->memory.bytes[GT_A_PARAM] : 0;
}

enum gt_code gt_ema_begin(struct gt_session *s, struct gt_ema_held *held, struct gt_err *err)
{
	size_t bytes = s->space->memory.bytes[GT_A_PARAM];
	const void *arena = s->space->memory.base[GT_A_PARAM];
	*held = (struct gt_ema_held){0};
	if (!s->optim.ema)
		return GT_OK;
	GT_TRY(wait_for_shared_params(s, err));
	if (holds_params(s) && !(held->params = malloc(bytes)))
		return gt_fail_memory(err, bytes);
	if (!held->params)
		;
	else if (s->device.be->host_memory)
		memcpy(held->params, arena, bytes);
	else
		GT_TRY(s->device.be->copy(s->device.dev, held->params, arena, bytes, GT_COPY_D2H, 0, err));
	held->on = true;
	GT_TRY(wait_for_shared_params(s, err)); /* wait before rank 0 changes parameters that other ranks still copy */
	GT_TRY(copy_all_params(s, false, err));
	return gt_session_cast_weights(s, err);
}

enum gt_code gt_ema_end(struct gt_session *s, struct gt_ema_held *held, struct gt_err *err)
{
	size_t bytes = s->space->memory.bytes[GT_A_PARAM];
	void *arena = s->space->memory.base[GT_A_PARAM];
	enum gt_code code = GT_OK;
	if (held->on)
		code = wait_for_shared_params(s, err);
	if (held->on && held->params && code == GT_OK) {
		if (s->device.be->host_memory)
			memcpy(arena, held->params, bytes);
		else
			code = s->device.be->copy(s->device.dev, arena, held->params, bytes, GT_COPY_H2D, 0, err);
	}
	free(held->params);
	held->params = NULL;
	GT_TRY(code);
	return held->on ? gt_session_cast_weights(s, err) : GT_OK;
}
