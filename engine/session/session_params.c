/* Access to the tensors of a session from the host, in plain layout and PyTorch's order of elements. */
#include "session/session.h"
#include "comm.h"
#include "ir/init.h"
#include "session/session_pipe.h"
#include "session/session_team.h"
#include "session/whiten.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct gt_tdesc gt_session_desc(const struct gt_session *s, int i)
{
	const struct gt_tdesc *d = &s->space->layout.param[i].desc;
	return gt_tdesc_make(d->dtype, d->rank, d->dim, false);
}

/* ---- pieces: the parts of a tensor that a rank has ---------------------------------------------------------------------------------- */
struct piece {
	void *at;             /* device address of the part; NULL: the rank has no part of the tensor */
	int64_t begin, end;   /* range of elements of the tensor, in memory order, that the rank has */
};

#define RESIDUAL (-2) /* in place of the index of an optimizer state: the rounding errors of compressed gradients on this rank */

static enum gt_arena_id arena_of(const struct gt_session *s, int i, int state)
{
	if (state == RESIDUAL)
		return GT_A_RESIDUAL;
	return s->space->layout.first->params[i].cls == GT_PARAM_BUFFER ? GT_A_BUFFER : state < 0 ? GT_A_PARAM : GT_A_STATE;
}

/* Returns the part of parameter i in shard `shard` of a sharded arena; for an optimizer state, in slot `state`. The address `at` is an
 * address in this rank's own shard. */
static struct piece piece_of(const struct gt_session *s, int i, int state, int shard)
{
	const struct gt_space *sp = s->space;
	const struct gt_param_slot *p = &sp->layout.param[i];
	enum gt_arena_id a = arena_of(s, i, state);
	int b = gt_space_bucket_of(sp, p->offset);
	int64_t lo = sp->shards.bucket[b].begin + shard * gt_space_shard(sp, b), hi = lo + gt_space_shard(sp, b);
	int64_t begin = p->offset > lo ? p->offset : lo, end = p->offset + p->count < hi ? p->offset + p->count : hi;
	if (begin >= end)
		return (struct piece){0};
	struct gt_range own = gt_space_own_shard(sp, a, b);
	own.offset += gt_space_element(sp, a, (state > 0 ? state : 0) * (sp->layout.elements / sp->shards.spec.shards) + begin - lo).offset;
	return (struct piece){gt_space_at(sp, own), begin - p->offset, end - p->offset};
}

static bool is_divided(const struct gt_session *s, int i, int state)
{
	return gt_space_sharded(s->space, arena_of(s, i, state));
}

static struct piece own_piece(const struct gt_session *s, int i, int state)
{
	if (is_divided(s, i, state))
		return piece_of(s, i, state, s->space->shards.spec.rank);
	return (struct piece){gt_space_param(s->space, i, arena_of(s, i, state), state < 0 ? 0 : state), 0, s->space->layout.param[i].count};
}

static enum gt_code copy_piece(struct gt_session *s, struct piece p, size_t size, char *physical, bool get, struct gt_err *err)
{
	const struct gt_backend *be = s->device.be;
	char *host = physical + (size_t)p.begin * size;
	size_t bytes = (size_t)(p.end - p.begin) * size;
	if (!p.at || !bytes)
		return GT_OK;
	if (be->host_memory) {
		memcpy(get ? (void *)host : p.at, get ? p.at : (void *)host, bytes);
		return GT_OK;
	}
	return get ? be->copy(s->device.dev, host, p.at, bytes, GT_COPY_D2H, 0, err)
	           : be->copy(s->device.dev, p.at, host, bytes, GT_COPY_H2D, 0, err);
}

/* Gathers the parts of a tensor from the other ranks on rank 0. All ranks call it. */
static enum gt_code gather_pieces(struct gt_session *s, int i, int state, size_t size, char *physical, struct gt_err *err)
{
	struct gt_comm *c = gt_session_host_group(s);
	struct gt_p2p list[GT_COMM_BATCH];
	int n = 0;
	if (!is_divided(s, i, state) || !c)
		return GT_OK;
	for (int r = 1; r < c->world; r++) {
		struct piece p = piece_of(s, i, state, r);
		if (p.begin == p.end || (c->rank != 0 && c->rank != r))
			continue;
		char *at = physical + (size_t)p.begin * size;
		list[n++] = (struct gt_p2p){.what = "a checkpoint", .sends = c->rank == r, .peer = c->rank == r ? 0 : r, .send = at, .recv = at,
		                            .count = (size_t)(p.end - p.begin) * size, .dtype = GT_U8};
	}
	return n ? c->api->exchange(c, list, n, 0, err) : GT_OK;
}

/* Copies a tensor between the device and plain host memory. Tensors in host memory with plain layout need no intermediate copy; other
 * tensors need an intermediate copy in memory order. */
static enum gt_code transfer_tensor(struct gt_session *s, int i, int state, void *get, const void *put, struct gt_err *err)
{
	const struct gt_tdesc *d = &s->space->layout.param[i].desc;
	struct piece p = own_piece(s, i, state);
	size_t bytes = gt_tdesc_bytes(d), size = gt_dtype_size(d->dtype);
	bool direct = s->device.be->host_memory && p.at && !is_divided(s, i, state);
	char *physical = direct ? p.at : malloc(bytes);
	enum gt_code code = GT_OK;
	if (!physical)
		return gt_fail_memory(err, bytes);
	if (get) {
		if (!direct)
			code = copy_piece(s, p, size, physical, true, err);
		if (code == GT_OK && !direct)
			code = gather_pieces(s, i, state, size, physical, err);
		if (code == GT_OK)
			gt_tdesc_unpack(d, physical, get);
	} else {
		gt_tdesc_pack(d, put, physical);
		if (!direct)
			code = copy_piece(s, p, size, physical, false, err);
	}
	if (!direct)
		free(physical);
	return code;
}

/* Sends a tensor from rank `home` to rank 0, which receives it in the same memory. Both ranks call it. */
static enum gt_code send_to_rank0(struct gt_session *s, int home, void *plain, size_t bytes, struct gt_err *err)
{
	struct gt_comm *c = s->team ? s->team->comm : NULL; /* the communicator of the team uses host memory */
	if (!home || !c || (s->at.rank && s->at.rank != home))
		return GT_OK;
	return s->at.rank ? gt_comm_send(c, 0, plain, bytes, GT_U8, "a checkpoint", 0, err)
	                  : gt_comm_recv(c, home, plain, bytes, GT_U8, "a checkpoint", 0, err);
}

/* Mode pipe: rank 0 receives a tensor of another stage. In each copy of the model, the rank of that stage may have a part of the tensor. */
static enum gt_code get_from_home(struct gt_session *s, int i, int state, void *plain, struct gt_err *err)
{
	int home = gt_session_pipe_rank_of(s, i);
	struct gt_tdesc d = gt_session_desc(s, i);
	if (s->at.rank == home || (gt_session_pipe_has_param(s, i) && is_divided(s, i, state)))
		GT_TRY(transfer_tensor(s, i, state, plain, NULL, err));
	return send_to_rank0(s, home, plain, gt_tdesc_bytes(&d), err);
}

enum gt_code gt_session_get(struct gt_session *s, int i, int state, void *plain, struct gt_err *err)
{
	return gt_session_is_pipeline(s) ? get_from_home(s, i, state, plain, err) : transfer_tensor(s, i, state, plain, NULL, err);
}

/* Returns whether another rank writes the parameters in the memory that the ranks of this host share. */
static bool is_written_by_other_rank(const struct gt_session *s)
{
	return s->space->shards.spec.shared_params && s->at.data != 0;
}

enum gt_code gt_session_put(struct gt_session *s, int i, int state, const void *plain, struct gt_err *err)
{
	bool common = state < 0 ? s->space->layout.first->params[i].cls != GT_PARAM_BUFFER : gt_space_factored(s->space);
	if (common && is_written_by_other_rank(s))
		return GT_OK;
	return transfer_tensor(s, i, state, NULL, plain, err);
}

int gt_session_residuals(const struct gt_session *s)
{
	return s->space->shards.spec.compressed ? s->at.ndata : 0;
}

enum gt_code gt_session_get_residual(struct gt_session *s, int i, int copy, void *plain, struct gt_err *err)
{
	int home = (gt_session_is_pipeline(s) ? gt_session_pipe_rank_of(s, i) : 0) + copy; /* copies of a stage have consecutive ranks */
	struct gt_tdesc d = gt_session_desc(s, i);
	if (s->at.rank == home)
		GT_TRY(transfer_tensor(s, i, RESIDUAL, plain, NULL, err));
	return send_to_rank0(s, home, plain, gt_tdesc_bytes(&d), err);
}

enum gt_code gt_session_put_residual(struct gt_session *s, int i, const void *plain, struct gt_err *err)
{
	return transfer_tensor(s, i, RESIDUAL, NULL, plain, err);
}

bool gt_session_has_tensor(const struct gt_session *s, int i, int state)
{
	return !is_divided(s, i, state) && !(gt_session_is_pipeline(s) && gt_session_pipe_rank_of(s, i));
}

bool gt_session_scales_loss(const struct gt_session *s)
{
	return s->space->layout.first->compute == GT_F16;
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

/* Casts to 16 bits all weights whose 16-bit copy this rank writes. */
static enum gt_code cast_weights(struct gt_session *s, struct gt_err *err)
{
	struct gt_space *sp = s->space;
	struct gt_call cast;
	int64_t n = gt_space_sharded(sp, GT_A_PARAM) ? sp->layout.elements / sp->shards.spec.shards : sp->layout.elements;
	struct gt_tdesc from = gt_tdesc_make(sp->layout.master, 1, &n, false), to = from;
	to.dtype = sp->layout.work;
	struct gt_opcall oc = {.code = GT_OP_CAST, .name = "weights", .nin = 1, .nout = 1, .in = {&from}, .out = {&to}};
	struct gt_step_args step_args = {0};
	GT_TRY(gt_call_prepare(sp, &oc, &cast, err));
	*cast.in = sp->memory.base[GT_A_PARAM];
	*cast.out = sp->memory.base[GT_A_WORK];
	struct gt_launch a = {.in = cast.in, .out = cast.out, .step_args = &step_args};
	enum gt_code code = sp->be->launch(sp->dev, cast.kernel, &a, err);
	if (code == GT_OK)
		code = sp->be->sync(sp->dev, 0, err);
	gt_call_release(sp, &cast);
	return code;
}

enum gt_code gt_session_cast_weights(struct gt_session *s, struct gt_err *err)
{
	if (s->space->memory.base[GT_A_WORK] && !is_written_by_other_rank(s))
		GT_TRY(cast_weights(s, err));
	return s->space->shards.spec.shared_params ? gt_session_barrier(s, err) : GT_OK;
}

/* ---- finite values ------------------------------------------------------------------------------------------------------------------- */
/* Sums the squares of all parameters of this rank on the device. The sum is finite if and only if all parameters are finite, because f64
 * can represent squares of f32. *sum: NaN if it was not computed, for example because the device uses host memory; the caller then checks
 * each tensor. */
static enum gt_code sum_of_squares(struct gt_session *s, double *sum, struct gt_err *err)
{
	struct gt_space *sp = s->space;
	struct gt_scalars *scalars = gt_space_scalars(sp, 0);
	int64_t n = gt_space_sharded(sp, GT_A_PARAM) ? sp->layout.elements / sp->shards.spec.shards : sp->layout.elements, one = 1;
	struct gt_tdesc flat = gt_tdesc_make(sp->layout.master, 1, &n, false), out = gt_tdesc_make(GT_F64, 1, &one, false);
	struct gt_opcall oc = {.code = GT_OP_SUMSQ, .name = "parameters", .nin = 1, .nout = 1, .in = {&flat}, .out = {&out}};
	struct gt_step_args step_args = {0};
	struct gt_call c;
	*sum = NAN;
	if (s->device.be->host_memory || !sp->memory.base[GT_A_PARAM] || !scalars || !n)
		return GT_OK;
	GT_TRY(gt_kernel_prepare(sp, &oc, &c, err));
	*c.in = sp->memory.base[GT_A_PARAM];
	*c.out = &scalars->sumsq;
	struct gt_launch a = {.in = c.in, .out = c.out, .scratch = sp->memory.base[GT_A_SCRATCH], .step_args = &step_args};
	enum gt_code code = GT_OK;
	if (c.scratch <= sp->memory.bytes[GT_A_SCRATCH]) {
		code = sp->be->launch(sp->dev, c.kernel, &a, err);
		if (code == GT_OK)
			code = sp->be->copy(sp->dev, sum, &scalars->sumsq, sizeof *sum, GT_COPY_D2H, 0, err);
		if (code == GT_OK)
			code = sp->be->sync(sp->dev, 0, err);
	}
	gt_call_release(sp, &c);
	return code;
}

/* Sets *bad if this rank's part of tensor i has a value that is not finite. */
static enum gt_code find_nonfinite(struct gt_session *s, int i, bool *bad, struct gt_err *err)
{
	enum gt_dtype t = s->space->layout.param[i].desc.dtype;
	struct piece p = own_piece(s, i, -1);
	int64_t n = p.end - p.begin;
	size_t bytes = (size_t)n * gt_dtype_size(t);
	*bad = false;
	if (!p.at || n <= 0)
		return GT_OK;
	if (s->device.be->host_memory) {
		*bad = gt_first_nonfinite(p.at, t, n) >= 0;
		return GT_OK;
	}
	void *copy = malloc(bytes);
	if (!copy)
		return gt_fail_memory(err, bytes);
	enum gt_code code = copy_piece(s, (struct piece){p.at, 0, n}, gt_dtype_size(t), copy, true, err);
	*bad = code == GT_OK && gt_first_nonfinite(copy, t, n) >= 0;
	free(copy);
	return code;
}

enum gt_code gt_session_finite(struct gt_session *s, int64_t step, struct gt_err *err)
{
	const struct gt_graph *g = s->space->layout.first;
	/* nparams - i for the first non-finite parameter i on this rank, later the maximum over all ranks; 0: all are finite */
	int64_t first = 0;
	double sum;
	GT_TRY(sum_of_squares(s, &sum, err));
	for (int i = 0; i < g->nparams && !first; i++) {
		bool bad, buffer = g->params[i].cls == GT_PARAM_BUFFER;
		if (isfinite(sum) && !buffer)
			continue;
		GT_TRY(find_nonfinite(s, i, &bad, err));
		first = bad ? g->nparams - i : 0;
	}
	if (s->at.world > 1)
		GT_TRY(gt_team_max(s->team, &first, 1, err));
	if (!first)
		return GT_OK;
	return gt_fail(err, GT_EDIVERGED, "diverged at or before step %lld: %s is not finite; these weights were neither evaluated nor saved",
	               (long long)step,
	               g->params[g->nparams - first].name);
}

enum gt_code gt_session_init(struct gt_session *s, struct gt_err *err)
{
	const struct gt_graph *g = s->space->layout.first;
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
	return gt_session_cast_weights(s, err);
}
