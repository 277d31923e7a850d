#include "run/state.h"
#include "run/safetensors.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor's plain bytes: in place where the device's memory is the host's and its layout is plain, else a copy in *owned. */
static enum gt_code plain_bytes(struct gt_session *s, int i, int state, struct gt_ckpt_tensor *t, void **owned, struct gt_err *err)
{
	bool buffer = s->space->first->params[i].cls == GT_PARAM_BUFFER;
	t->desc = gt_session_desc(s, i);
	*owned = NULL;
	if (s->device.be->host_memory && gt_tdesc_plain(&s->space->place[i].desc)) {
		t->data = gt_space_param(s->space, i, state >= 0 ? GT_A_STATE : buffer ? GT_A_BUFFER : GT_A_PARAM, state < 0 ? 0 : state);
		return GT_OK;
	}
	if (!(*owned = malloc(gt_tdesc_bytes(&t->desc))))
		return gt_fail_memory(err, gt_tdesc_bytes(&t->desc));
	t->data = *owned;
	return gt_session_get(s, i, state, *owned, err);
}

enum gt_code gt_state_save(struct gt_session *s, struct gt_ckpt_dir *dir, struct gt_ckpt_meta *meta, bool is_best, char *path, size_t size,
                           struct gt_err *err)
{
	const struct gt_graph *g = s->space->first;
	int cap = g->nparams * (1 + s->optim.nstates), nmodel = 0, noptim = 0, nowned = 0;
	struct gt_ckpt_tensor *model = calloc((size_t)cap + 1, sizeof *model), *optim = calloc((size_t)cap + 1, sizeof *optim);
	void **owned = calloc((size_t)cap + 1, sizeof *owned);
	struct gt_arena *names = NULL;
	enum gt_code code = model && optim && owned ? gt_arena_open(&names, err) : gt_fail_memory(err, (size_t)cap * sizeof *model);

	for (int i = 0; i < g->nparams && code == GT_OK; i++) {
		const struct gt_param *p = &g->params[i];
		model[nmodel].name = p->name;
		code = plain_bytes(s, i, -1, &model[nmodel++], &owned[nowned++], err);
		if (p->cls == GT_PARAM_BUFFER || p->frozen)
			continue;
		const struct gt_optim_call *o = gt_optim_of(&s->optim, p);
		for (int k = 0; k < o->nstates && code == GT_OK; k++) {
			if (!(optim[noptim].name = gt_arena_printf(names, "%s.%s", o->state[k], p->name)))
				code = gt_fail_memory(err, 0);
			else
				code = plain_bytes(s, i, k, &optim[noptim++], &owned[nowned++], err);
		}
	}
	meta->name = s->conf->name;
	meta->config = s->conf->text;
	if (code == GT_OK)
		code = gt_ckpt_save(dir, meta, model, nmodel, optim, noptim, is_best, path, size, err);
	for (int i = 0; owned && i < nowned; i++)
		free(owned[i]);
	free(owned);
	free(model);
	free(optim);
	gt_arena_close(names);
	return code;
}

enum gt_code gt_state_load(struct gt_session *s, const struct gt_ckpt *c, bool optim, struct gt_err *err)
{
	const struct gt_graph *g = s->space->first;
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *p = &g->params[i];
		struct gt_tdesc d = gt_session_desc(s, i);
		void *buf = malloc(gt_tdesc_bytes(&d));
		char name[512];
		if (!buf)
			return gt_fail_memory(err, gt_tdesc_bytes(&d));
		enum gt_code code = gt_ckpt_read(c, 0, p->name, &d, buf, err);
		if (code == GT_OK)
			code = gt_session_put(s, i, -1, buf, err);
		const struct gt_optim_call *o = gt_optim_of(&s->optim, p);
		for (int k = 0; optim && k < o->nstates && p->cls != GT_PARAM_BUFFER && !p->frozen && code == GT_OK; k++) {
			snprintf(name, sizeof name, "%s.%s", o->state[k], p->name);
			code = gt_ckpt_read(c, 1, name, &d, buf, err);
			if (code == GT_OK)
				code = gt_session_put(s, i, k, buf, err);
		}
		free(buf);
		GT_TRY(code);
	}
	struct gt_ckpt_tensor t;
	int n = 0;
	while (gt_ckpt_tensor_at(c, 0, n, &t))
		n++;
	if (n != g->nparams)
		return gt_fail(err, GT_EDATA, "%s: expected %d model tensors, got %d", gt_ckpt_path(c), g->nparams, n);
	return gt_session_refresh(s, err);
}

enum gt_code gt_state_import(struct gt_session *s, const char *path, struct gt_err *err)
{
	const struct gt_graph *g = s->space->first;
	struct gt_st_file *f;
	enum gt_code code = GT_OK;
	GT_TRY(gt_st_open(path, &f, err));
	for (int i = 0; i < g->nparams && code == GT_OK; i++) {
		struct gt_tdesc d = gt_session_desc(s, i);
		const struct gt_st_tensor *t = gt_st_find(f, g->params[i].name);
		char want[96], got[96];
		if (!t)
			code = gt_fail(err, GT_EDATA, "%s: no tensor %s", path, g->params[i].name);
		else if (t->desc.dtype != d.dtype || !gt_tdesc_same_shape(&t->desc, &d))
			code = gt_fail(err, GT_EDATA, "%s: %s: expected %s %s, got %s %s", path, t->name, gt_dtype_name(d.dtype), gt_tdesc_text(&d, want, sizeof want),
			               gt_dtype_name(t->desc.dtype), gt_tdesc_text(&t->desc, got, sizeof got));
		else
			code = gt_session_put(s, i, -1, t->data, err);
	}
	if (code == GT_OK && gt_st_count(f) != g->nparams)
		code = gt_fail(err, GT_EDATA, "%s: expected %d tensors, got %d", path, g->nparams, gt_st_count(f));
	gt_st_close(f);
	GT_TRY(code);
	return gt_session_refresh(s, err);
}
