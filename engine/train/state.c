#include "train/state.h"
#include "session/session_data.h"
#include "store/ckpt_scan.h"
#include "store/convert.h"
#include "store/safetensors.h"
#include "train/ema.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state of a save. A tensor's key combines the indices of its parameter and of its state. Rank 0 writes. If a tensor has parts on
 * several ranks, rank 0 sends its key to all ranks, which gather the tensor together. */
struct saving {
	struct gt_session *s;
	void *buf; /* memory for one tensor */
	size_t size;
};

#define DONE (-1)

/* Returns the state number of the first rounding errors of compressed gradients, those of rank 0 of the data group. */
static int first_residual(const struct gt_session *s)
{
	return s->optim.nstates + s->optim.ema;
}

/* Returns the number of tensors of a parameter: its value, the states of the optimizer, the moving average, rounding errors. */
static int tensors_per_param(const struct gt_session *s)
{
	return 1 + first_residual(s) + gt_session_residuals(s);
}

static int tensor_key(const struct gt_session *s, int i, int state)
{
	return i * tensors_per_param(s) + 1 + state;
}

static enum gt_code gather_tensor(struct saving *v, int key, struct gt_err *err)
{
	int each = tensors_per_param(v->s), i = key / each, residual = key % each - 1 - first_residual(v->s);
	struct gt_tdesc d = gt_session_desc(v->s, i);
	size_t bytes = gt_tdesc_bytes(&d);
	if (bytes > v->size) {
		void *p = realloc(v->buf, bytes);
		if (!p)
			return gt_fail_memory(err, bytes);
		v->buf = p;
		v->size = bytes;
	}
	return residual >= 0 ? gt_session_get_residual(v->s, i, residual, v->buf, err) : gt_session_get(v->s, i, key % each - 1, v->buf, err);
}

static enum gt_code broadcast_key(struct saving *v, int64_t *key, struct gt_err *err)
{
	return gt_team_broadcast(v->s->team, key, sizeof *key, 0, "a checkpoint", err);
}

/* The read function of a checkpoint's tensor: gathers it into the buffer. */
static enum gt_code read_tensor(void *user, int key, const void **data, struct gt_err *err)
{
	struct saving *v = user;
	int each = tensors_per_param(v->s);
	int64_t called = key;
	if (key % each - 1 >= first_residual(v->s) || !gt_session_has_tensor(v->s, key / each, key % each - 1))
		GT_TRY(broadcast_key(v, &called, err));
	GT_TRY(gather_tensor(v, key, err));
	*data = v->buf;
	return GT_OK;
}

/* On other ranks than 0: takes part in gathering tensors until rank 0 has finished. */
static enum gt_code serve_gathers(struct saving *v, struct gt_err *err)
{
	for (;;) {
		int64_t key;
		GT_TRY(broadcast_key(v, &key, err));
		if (key == DONE)
			return GT_OK;
		GT_TRY(gather_tensor(v, (int)key, err));
	}
}

/* Describes a tensor of the file. It is read directly from memory if the device uses host memory and the layout is plain; otherwise it is
 * gathered when it is written. */
static struct gt_ckpt_tensor describe_tensor(struct saving *v, int i, int state, const char *name)
{
	struct gt_session *s = v->s;
	bool buffer = s->space->layout.first->params[i].cls == GT_PARAM_BUFFER;
	struct gt_ckpt_tensor t = {.name = name, .desc = gt_session_desc(s, i), .read = read_tensor, .user = v, .key = tensor_key(s, i, state)};
	if (s->device.be->host_memory && gt_tdesc_plain(&s->space->layout.param[i].desc) && gt_session_has_tensor(s, i, state))
		t.data = gt_space_param(s->space, i, state >= 0 ? GT_A_STATE : buffer ? GT_A_BUFFER : GT_A_PARAM, state < 0 ? 0 : state);
	return t;
}

#define TRAINED "trained." /* with a moving average: prefix of the trained parameters' names in optimizer.safetensors */

#define RESIDUAL "residual.%d." /* with compressed gradients: prefix of the rounding errors on a rank of the data group */

static enum gt_code trained_tensor(struct saving *v, int i, struct gt_arena *names, struct gt_ckpt_tensor *out, struct gt_err *err)
{
	const char *name;
	GT_NEW_STR(name, gt_arena_printf(names, TRAINED "%s", v->s->space->layout.first->params[i].name), err);
	*out = describe_tensor(v, i, -1, name);
	return GT_OK;
}

/* Describes the rounding errors of parameter i on each rank of its data group in out; *n counts the tensors. */
static enum gt_code describe_residuals(struct saving *v, int i, struct gt_arena *names, struct gt_ckpt_tensor *out, int *n,
                                       struct gt_err *err)
{
	struct gt_session *s = v->s;
	for (int r = 0; r < gt_session_residuals(s); r++) {
		const char *name;
		GT_NEW_STR(name, gt_arena_printf(names, RESIDUAL "%s", r, s->space->layout.first->params[i].name), err);
		out[(*n)++] = (struct gt_ckpt_tensor){.name = name,
		                                      .desc = gt_session_desc(s, i),
		                                      .read = read_tensor,
		                                      .user = v,
		                                      .key = tensor_key(s, i, first_residual(s) + r)};
	}
	return GT_OK;
}

static enum gt_code write_checkpoint(struct saving *v, struct gt_ckpt_dir *dir, struct gt_ckpt_meta *meta, char *path, size_t size,
                                     struct gt_err *err)
{
	struct gt_session *s = v->s;
	const struct gt_graph *g = s->space->layout.first;
	int cap = g->nparams * (1 + tensors_per_param(s)), nmodel = 0, noptim = 0;
	struct gt_ckpt_tensor *model = calloc((size_t)cap + 1, sizeof *model), *optim = calloc((size_t)cap + 1, sizeof *optim);
	struct gt_arena *names = NULL;
	enum gt_code code = model && optim ? gt_arena_open(&names, err) : gt_fail_memory(err, (size_t)cap * sizeof *model);

	for (int i = 0; i < g->nparams && code == GT_OK; i++) {
		const struct gt_param *p = &g->params[i];
		/* the moving average if the run has one, else (state -1) the parameter */
		model[nmodel++] = describe_tensor(v, i, gt_ema_state(s, i), p->name);
		if (p->cls == GT_PARAM_BUFFER || p->frozen)
			continue;
		if (s->optim.ema && code == GT_OK)
			code = trained_tensor(v, i, names, &optim[noptim++], err);
		const struct gt_optim_call *o = gt_optim_of(&s->optim, p);
		for (int k = 0; k < o->nstates && code == GT_OK; k++) {
			const char *name = gt_arena_printf(names, "%s.%s", o->state[k], p->name);
			if (name)
				optim[noptim++] = describe_tensor(v, i, k, name);
			else
				code = gt_fail_memory(err, 0);
		}
		if (code == GT_OK)
			code = describe_residuals(v, i, names, optim, &noptim, err);
	}
	meta->name = s->conf->name;
	meta->config = s->conf->text;
	meta->data = s->data.facts_text;
	if (code == GT_OK)
		code = gt_ckpt_save(dir, meta, model, nmodel, optim, noptim, path, size, err);
	free(model);
	free(optim);
	gt_arena_close(names);
	return code;
}

enum gt_code gt_state_save(struct gt_session *s, struct gt_ckpt_dir *dir, struct gt_ckpt_meta *meta, char *path, size_t size,
                           struct gt_err *err)
{
	struct saving v = {.s = s};
	int64_t done = DONE;
	enum gt_code code = s->at.rank ? serve_gathers(&v, err) : write_checkpoint(&v, dir, meta, path, size, err);
	free(v.buf);
	if (code == GT_OK && s->at.rank == 0) /* ends serve_gathers on the other ranks; after a failure all ranks end anyway */
		code = broadcast_key(&v, &done, err);
	return code;
}

/* Takes the facts about the training data from the checkpoint, after a check that the session's data agrees. */
static enum gt_code load_facts(struct gt_session *s, const struct gt_ckpt *c, struct gt_err *err)
{
	struct gt_data_facts facts;
	GT_TRY(gt_data_facts_read(c, s->arena, &facts, err));
	for (int i = 0; i < GT_SPLITS; i++) {
		const struct gt_dataset *d = &s->data.set[i];
		struct gt_data_facts now = gt_session_facts_of(d);
		GT_TRY(gt_data_facts_compare(&facts, &now, d->where, gt_ckpt_path(c), err));
	}
	if (!s->data.eval_list.n) /* a session without data, for prediction */
		GT_TRY(gt_session_set_eval_list(s, facts.files, err));
	if (!facts.nclasses && !facts.files && !s->data.facts.learned)
		return GT_OK;
	facts.weights = s->data.facts.weights; /* of this session, because train.class_weights may have changed since the checkpoint */
	facts.nweights = s->data.facts.nweights;
	facts.learned = s->data.facts.learned;
	facts.samples = s->data.facts.samples;
	s->data.facts = facts;
	return gt_data_facts_print(&facts, s->arena, &s->data.facts_text, err);
}

/* Loads the moving average of parameter i. buf: the tensor of the model file, which is the average if `averaged` is true. A run that begins
 * or stops averaging continues from the parameters. */
static enum gt_code load_average(struct gt_session *s, const struct gt_ckpt *c, int i, bool averaged, void *buf, struct gt_err *err)
{
	struct gt_tdesc d = gt_session_desc(s, i);
	char name[512];
	if (gt_ema_state(s, i) >= 0)
		GT_TRY(gt_session_put(s, i, gt_ema_state(s, i), buf, err));
	if (!averaged)
		return GT_OK;
	snprintf(name, sizeof name, TRAINED "%s", s->space->layout.first->params[i].name);
	GT_TRY(gt_ckpt_read(c, 1, name, &d, buf, err));
	if (gt_first_nonfinite(buf, d.dtype, gt_tdesc_count(&d)) >= 0)
		return gt_fail(err, GT_EDATA, "%s: %s is not finite; choose an older checkpoint", gt_ckpt_path(c), name);
	return gt_session_put(s, i, -1, buf, err);
}

/* Loads the rounding errors of parameter i. If the world had more ranks when the checkpoint was made, rank r of the data group takes those
 * of ranks r, r + n, r + 2 n … of the old group, so that none is lost. buf: memory for two tensors. */
static enum gt_code load_residual(struct gt_session *s, const struct gt_ckpt *c, int i, void *buf, struct gt_err *err)
{
	struct gt_tdesc d = gt_session_desc(s, i);
	int64_t n = gt_tdesc_count(&d);
	float *sum = buf, *part = sum + n;
	char name[512];
	memset(sum, 0, (size_t)n * sizeof *sum);
	for (int64_t r = s->at.data; r < gt_ckpt_meta(c)->world; r += s->at.ndata) {
		snprintf(name, sizeof name, RESIDUAL "%s", (int)r, s->space->layout.first->params[i].name);
		if (!gt_st_find(gt_ckpt_file(c, GT_CKPT_OPTIMIZER), name))
			continue;
		GT_TRY(gt_ckpt_read(c, GT_CKPT_OPTIMIZER, name, &d, part, err));
		if (gt_first_nonfinite(part, d.dtype, n) >= 0)
			return gt_fail(err, GT_EDATA, "%s: %s is not finite; choose an older checkpoint", gt_ckpt_path(c), name);
		for (int64_t k = 0; k < n; k++)
			sum[k] = r < s->at.ndata ? part[k] : sum[k] + part[k]; /* -0.0 stays as it is */
	}
	return gt_session_put_residual(s, i, sum, err);
}

/* Returns whether the model of a checkpoint is a moving average. */
static bool is_averaged(const struct gt_ckpt *c)
{
	struct gt_ckpt_tensor t;
	for (int i = 0; gt_ckpt_tensor_at(c, 1, i, &t); i++)
		if (!strncmp(t.name, TRAINED, strlen(TRAINED)))
			return true;
	return false;
}

enum gt_code gt_state_load(struct gt_session *s, const struct gt_ckpt *c, bool optim, struct gt_err *err)
{
	const struct gt_graph *g = s->space->layout.first;
	bool averaged = optim && is_averaged(c);
	if (optim)
		GT_TRY(gt_state_check_optimizers(s, c, err));
	GT_TRY(load_facts(s, c, err));
	for (int i = 0; i < g->nparams; i++) {
		const struct gt_param *p = &g->params[i];
		struct gt_tdesc d = gt_session_desc(s, i);
		bool residual = optim && gt_session_residuals(s) && p->cls != GT_PARAM_BUFFER && !p->frozen;
		size_t bytes = gt_tdesc_bytes(&d) * (residual ? 2 : 1);
		void *buf = malloc(bytes);
		char name[512];
		if (!buf)
			return gt_fail_memory(err, bytes);
		enum gt_code code = gt_ckpt_read(c, 0, p->name, &d, buf, err);
		if (code == GT_OK && gt_first_nonfinite(buf, d.dtype, gt_tdesc_count(&d)) >= 0)
			code = gt_fail(err, GT_EDATA, "%s: %s is not finite; choose an older checkpoint", gt_ckpt_path(c), p->name);
		if (code == GT_OK)
			code = gt_session_put(s, i, -1, buf, err);
		if (optim && p->cls != GT_PARAM_BUFFER && !p->frozen && code == GT_OK)
			code = load_average(s, c, i, averaged, buf, err);
		const struct gt_optim_call *o = gt_optim_of(&s->optim, p);
		for (int k = 0; optim && k < o->nstates && p->cls != GT_PARAM_BUFFER && !p->frozen && code == GT_OK; k++) {
			snprintf(name, sizeof name, "%s.%s", o->state[k], p->name);
			code = gt_ckpt_read(c, 1, name, &d, buf, err);
			if (code == GT_OK)
				code = gt_session_put(s, i, k, buf, err);
		}
		if (residual && code == GT_OK)
			code = load_residual(s, c, i, buf, err);
		free(buf);
		GT_TRY(code);
	}
	struct gt_ckpt_tensor t;
	int n = 0;
	while (gt_ckpt_tensor_at(c, 0, n, &t))
		n++;
	if (n != g->nparams)
		return gt_fail(err, GT_EDATA, "%s: expected %d model tensors, got %d", gt_ckpt_path(c), g->nparams, n);
	return gt_session_cast_weights(s, err);
}

/* Returns the index of the first negative value of a running variance, from which no standard deviation follows; -1: there is none, or the
 * parameter is no variance. */
static int64_t find_negative_variance(const struct gt_param *p, const float *v, int64_t n)
{
	const char *dot = strrchr(p->name, '.');
	if (p->cls != GT_PARAM_BUFFER || strcmp(dot ? dot + 1 : p->name, "running_var"))
		return -1;
	for (int64_t i = 0; i < n; i++)
		if (v[i] < 0)
			return i;
	return -1;
}

/* Checks the values of parameter i, which have been read from the tensor t of a file. */
static enum gt_code check_values(const struct gt_session *s, const char *path, int i, const struct gt_st_tensor *t, const void *data,
                                 struct gt_err *err)
{
	struct gt_tdesc d = gt_session_desc(s, i);
	int64_t n = gt_tdesc_count(&d), bad = gt_first_nonfinite(data, d.dtype, n);
	if (bad >= 0)
		return gt_fail(err, GT_EDATA, "%s: %s: expected finite values, got NaN or infinity at element %lld%s", path, t->name,
		               (long long)bad, t->desc.dtype == GT_F64 ? " (as f32)" : "");
	bad = find_negative_variance(&s->space->layout.first->params[i], data, n);
	return bad < 0 ? GT_OK
	               : gt_fail(err, GT_EDATA, "%s: %s: expected variances, which are 0 or more, got %g at element %lld", path, t->name,
	                         (double)((const float *)data)[bad], (long long)bad);
}

enum gt_code gt_state_import_tensor(struct gt_session *s, const char *path, int i, const struct gt_st_tensor *t, enum gt_dtype *converted,
                                    struct gt_err *err)
{
	struct gt_tdesc d = gt_session_desc(s, i);
	int64_t n = gt_tdesc_count(&d);
	const void *data = t->data;
	char want[96], got[96];
	float *buf = NULL;
	if ((t->desc.dtype != d.dtype && !(d.dtype == GT_F32 && gt_converts_f32(t->desc.dtype))) || !gt_tdesc_same_but_ones(&t->desc, &d))
		return gt_fail(err, GT_EDATA, "%s: %s: expected %s %s, got %s %s", path, t->name, gt_dtype_name(d.dtype),
		               gt_tdesc_text(&d, want, sizeof want), gt_dtype_name(t->desc.dtype), gt_tdesc_text(&t->desc, got, sizeof got));
	if (t->desc.dtype != d.dtype) {
		if (!(data = buf = malloc((size_t)n * sizeof *buf)))
			return gt_fail_memory(err, (size_t)n * sizeof *buf);
		gt_convert_f32(buf, t->data, t->desc.dtype, n);
		*converted = t->desc.dtype;
	}
	enum gt_code code = check_values(s, path, i, t, data, err);
	if (code == GT_OK)
		code = gt_session_put(s, i, -1, data, err);
	free(buf);
	return code;
}

enum gt_code gt_state_same_tensors(const char *path, const struct gt_st_tensor *a, const struct gt_st_tensor *b, struct gt_err *err)
{
	if (gt_tdesc_equal(&a->desc, &b->desc) && !memcmp(a->data, b->data, gt_tdesc_bytes(&a->desc)))
		return GT_OK;
	return gt_fail(err, GT_EDATA, "%s: expected equal tensors %s and %s, which are one weight of this model (tie), got different tensors; "
	               "remove one of the two from the file", path, a->name, b->name);
}

/* Finds the tensor of parameter p, by its name or the names of layers tied to it, and counts the file's tensors with these names. */
static enum gt_code find_tensor(const char *path, const struct gt_st_file *f, const struct gt_param *p, const struct gt_st_tensor **out,
                                int *count, struct gt_err *err)
{
	*out = gt_st_find(f, p->name);
	*count += *out != NULL;
	for (int i = 0; i < p->naliases; i++) {
		const struct gt_st_tensor *t = gt_st_find(f, p->alias[i]);
		*count += t != NULL;
		if (t && *out)
			GT_TRY(gt_state_same_tensors(path, *out, t, err));
		*out = *out ? *out : t;
	}
	return *out ? GT_OK : gt_fail(err, GT_EDATA, "%s: the tensor %s is missing", path, p->name);
}

enum gt_code gt_state_import(struct gt_session *s, const char *path, enum gt_dtype *converted, struct gt_err *err)
{
	const struct gt_graph *g = s->space->layout.first;
	struct gt_st_file *f;
	enum gt_code code = GT_OK;
	int count = 0;
	*converted = GT_F32;
	GT_TRY(gt_st_open(path, &f, err));
	for (int i = 0; i < g->nparams && code == GT_OK; i++) {
		const struct gt_st_tensor *t;
		code = find_tensor(path, f, &g->params[i], &t, &count, err);
		if (code == GT_OK)
			code = gt_state_import_tensor(s, path, i, t, converted, err);
	}
	if (code == GT_OK && gt_st_count(f) != count)
		code = gt_fail(err, GT_EDATA, "%s: expected %d tensors, got %d", path, count, gt_st_count(f));
	gt_st_close(f);
	GT_TRY(code);
	return gt_session_cast_weights(s, err);
}
