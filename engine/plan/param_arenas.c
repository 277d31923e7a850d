/* The memory that all plans of a model share: arenas, shards and the addresses of parameters. */
#include "plan/plan_parts.h"
#include "base/bytes.h"
#include "ir/op.h"
#include <stdlib.h>
#include <string.h>

const char *gt_arena_name(enum gt_arena_id id)
{
	static const char *const names[GT_A_COUNT] = {
#define GT_X(id, name) [id] = name,
		GT_ARENAS(GT_X)
#undef GT_X
	};
	return names[id];
}

enum gt_code gt_space_open(const struct gt_backend *be, struct gt_dev *dev, int nstates, struct gt_space **out, struct gt_err *err)
{
	struct gt_arena *a;
	*out = NULL;
	GT_TRY(gt_arena_open(&a, err));
	struct gt_space *s = gt_arena_alloc(a, 1, sizeof *s);
	if (!s) {
		gt_arena_close(a);
		return gt_fail_memory(err, sizeof *s);
	}
	*s = (struct gt_space){.be = be, .dev = dev, .arena = a, .layout.nstates = nstates};
	*out = s;
	return GT_OK;
}

void gt_space_close(struct gt_space *s)
{
	if (!s)
		return;
	for (int i = 0; i < GT_A_COUNT; i++)
		if (s->memory.base[i] && !s->memory.lent[i])
			s->be->free(s->dev, s->memory.base[i]);
	gt_arena_close(s->arena);
}

enum gt_code gt_kernel_prepare(struct gt_space *s, const struct gt_opcall *oc, struct gt_call *out, struct gt_err *err)
{
	struct gt_call c = {.op = gt_opcode_name(oc->code), .layer = oc->name, .node = -1, .nin = oc->nin, .nout = oc->nout};
	GT_TRY(s->be->prepare(s->dev, oc, &c.kernel, err));
	c.scratch = s->be->scratch(c.kernel);
	*out = c;
	return GT_OK;
}

enum gt_code gt_call_supported(struct gt_space *s, const struct gt_opcall *oc, bool *yes, struct gt_err *err)
{
	struct gt_kernel *k;
	struct gt_err why;
	enum gt_code code = s->be->prepare(s->dev, oc, &k, &why);
	*yes = code == GT_OK;
	if (code == GT_OK)
		s->be->release(s->dev, k);
	return code == GT_EFAIL ? gt_fail_copy(err, &why) : GT_OK;
}

enum gt_code gt_call_prepare(struct gt_space *s, const struct gt_opcall *oc, struct gt_call *out, struct gt_err *err)
{
	GT_TRY(gt_kernel_prepare(s, oc, out, err));
	if (out->scratch > s->memory.bytes[GT_A_SCRATCH])
		s->memory.bytes[GT_A_SCRATCH] = out->scratch;
	return GT_OK;
}

void gt_call_release(struct gt_space *s, struct gt_call *c)
{
	if (c->kernel)
		s->be->release(s->dev, c->kernel);
	c->kernel = NULL;
}

/* Returns the number of bytes of the arena METRICS in which the scalars of all ranks are gathered. */
static size_t gathered_bytes(const struct gt_space *s)
{
	return s->memory.ranks < 2 ? 0 : ((size_t)s->memory.ranks * sizeof(struct gt_scalars) + GT_ALIGN - 1) / GT_ALIGN * GT_ALIGN;
}

static enum gt_code alloc_arena(struct gt_space *s, enum gt_arena_id id, size_t bytes, struct gt_err *err)
{
	if (s->memory.shared) {
		GT_TRY(s->memory.shared(s->memory.user, id, bytes, &s->memory.base[id], err));
		s->memory.lent[id] = s->memory.base[id] != NULL;
	}
	return s->memory.base[id] ? GT_OK : s->be->alloc(s->dev, bytes, &s->memory.base[id], err);
}

/* GTRAIN_NAN_MEMORY, for tests: fills the arenas whose contents a step computes before it reads them with bytes 0xff, which are NaN in
 * every floating-point type. alloc() zeroes memory, so a kernel that reads memory too early would find zeros. */
static enum gt_code fill_with_nan(const struct gt_space *s, enum gt_arena_id id, struct gt_err *err)
{
	bool computed = !s->memory.lent[id]; /* shared memory is not filled, because other ranks may already write to it */
	computed &= id == GT_A_ACT || id == GT_A_SHARED_ACT || id == GT_A_SCRATCH;
	size_t part = 1 << 20, left = computed ? s->memory.bytes[id] : 0;
	char *nan = malloc(part), *to = s->memory.base[id];
	if (!nan)
		return gt_fail_memory(err, part);
	memset(nan, 0xff, part);
	enum gt_code code = GT_OK;
	for (size_t n; code == GT_OK && left; to += n, left -= n) {
		n = left < part ? left : part;
		code = s->be->copy(s->dev, to, nan, n, GT_COPY_H2D, 0, err);
	}
	free(nan);
	return code;
}

void gt_space_size(struct gt_space *s)
{
	s->memory.slots = gt_at_least_one(s->memory.slots);
	s->memory.micros = gt_at_least_one(s->memory.micros);
	s->memory.bytes[GT_A_METRICS] = gathered_bytes(s) + GT_SCALER_BYTES +
	                         (size_t)s->memory.slots * (sizeof(struct gt_scalars) + (size_t)s->memory.micros * sizeof(struct gt_step_args));
}

enum gt_code gt_space_alloc(struct gt_space *s, struct gt_err *err)
{
	gt_space_size(s);
	for (int i = 0; i < GT_A_COUNT; i++) {
		if (!s->memory.bytes[i] || s->memory.base[i])
			continue;
		char text[GT_BYTES_TEXT];
		enum gt_code code = alloc_arena(s, (enum gt_arena_id)i, s->memory.bytes[i], err);
		if (code != GT_OK) {
			gt_fail_prefix(err, "%s (%s%s)", gt_arena_name((enum gt_arena_id)i), gt_bytes_text(text, sizeof text, s->memory.bytes[i]),
			               code == GT_EFAIL ? "; a smaller data.batch or a larger train.accumulate needs less" : "");
			return code;
		}
		if (getenv("GTRAIN_NAN_MEMORY"))
			GT_TRY(fill_with_nan(s, (enum gt_arena_id)i, err));
	}
	return GT_OK;
}

struct gt_range gt_space_all_scalars(const struct gt_space *s)
{
	(void)s;
	return (struct gt_range){GT_A_METRICS, 0};
}

struct gt_range gt_space_own_scalars(const struct gt_space *s)
{
	return (struct gt_range){GT_A_METRICS, gathered_bytes(s) + GT_SCALER_BYTES};
}

void *gt_space_at(const struct gt_space *s, struct gt_range r)
{
	char *base = s->memory.base[r.arena];
	return base ? base + r.offset : NULL;
}

struct gt_scaler *gt_space_scaler(const struct gt_space *s)
{
	char *base = s->memory.base[GT_A_METRICS];
	return base ? (struct gt_scaler *)(void *)(base + gathered_bytes(s)) : NULL;
}

struct gt_scalars *gt_space_scalars(const struct gt_space *s, int slot)
{
	struct gt_scalars *first = gt_space_at(s, gt_space_own_scalars(s));
	return first ? first + slot : NULL;
}

struct gt_step_args *gt_space_step_args(const struct gt_space *s, int slot)
{
	struct gt_scalars *end = gt_space_scalars(s, s->memory.slots);
	return end ? (struct gt_step_args *)(void *)end + (int64_t)slot * s->memory.micros : NULL;
}

const char *gt_sync_method_name(enum gt_sync_method m)
{
	static const char *const name[] = {"all_reduce", "rank0_update", "sharded_update", "factored_update"};
	return name[m];
}

/* ---- shards ---------------------------------------------------------------------------------------------------------------------- */
bool gt_space_sharded(const struct gt_space *s, enum gt_arena_id a)
{
	enum gt_sharding k = s->shards.spec.sharding;
	switch (a) {
	case GT_A_STATE: return k != GT_SHARD_NONE;
	case GT_A_GRAD: return k == GT_SHARD_STATE_GRADS || k == GT_SHARD_ALL;
	case GT_A_PARAM:
	case GT_A_WORK: return k == GT_SHARD_STATE_PARAMS || k == GT_SHARD_ALL;
	default: return false;
	}
}

size_t gt_element_size(const struct gt_space *s, enum gt_arena_id a)
{
	return gt_dtype_size(a == GT_A_WORK ? s->layout.work : a == GT_A_WIRE ? GT_BF16 : s->layout.master);
}

struct gt_range gt_space_element(const struct gt_space *s, enum gt_arena_id a, int64_t e)
{
	return (struct gt_range){a, (size_t)e * gt_element_size(s, a)};
}

int64_t gt_space_shard(const struct gt_space *s, int b)
{
	return (s->shards.bucket[b].end - s->shards.bucket[b].begin) / gt_at_least_one(s->shards.spec.shards);
}

struct gt_range gt_space_own_shard(const struct gt_space *s, enum gt_arena_id a, int b)
{
	/* in a sharded arena, this rank's shards of all buckets are contiguous, so their offsets are divided by the number of shards */
	if (gt_space_sharded(s, a))
		return gt_space_element(s, a, s->shards.bucket[b].begin / s->shards.spec.shards);
	return gt_space_element(s, a, s->shards.bucket[b].begin + s->shards.spec.rank * gt_space_shard(s, b));
}

struct gt_range gt_space_bucket(const struct gt_space *s, enum gt_arena_id a, int b, int slot)
{
	if (!gt_space_sharded(s, a))
		return gt_space_element(s, a, s->shards.bucket[b].begin);
	return gt_space_element(s, a, s->layout.elements / s->shards.spec.shards + slot * s->shards.widest);
}

int gt_space_bucket_of(const struct gt_space *s, int64_t element)
{
	int b = 0;
	while (b + 1 < s->shards.nbuckets && s->shards.bucket[b].end <= element)
		b++;
	return b;
}

void *gt_space_gathered_param(const struct gt_space *s, int param, enum gt_arena_id a, int slot)
{
	int64_t offset = s->layout.param[param].offset;
	int b = gt_space_bucket_of(s, offset);
	char *at = gt_space_at(s, gt_space_bucket(s, a, b, slot));
	return at && offset >= 0 ? at + (size_t)(offset - s->shards.bucket[b].begin) * gt_element_size(s, a) : NULL;
}

/* ---- addresses ------------------------------------------------------------------------------------------------------------------- */
void *gt_space_param(const struct gt_space *s, int i, enum gt_arena_id id, int state)
{
	const struct gt_param_slot *p = &s->layout.param[i];
	char *base = s->memory.base[id];
	if (!base || p->offset < 0 || gt_space_sharded(s, id))
		return NULL;
	switch (id) {
	case GT_A_BUFFER:
		return base + p->offset;
	case GT_A_WORK:
		return base + p->offset * (int64_t)gt_dtype_size(s->layout.work);
	case GT_A_STATE:
		return base + (p->offset + state * s->layout.elements) * (int64_t)gt_dtype_size(s->layout.master);
	default:
		return base + p->offset * (int64_t)gt_dtype_size(s->layout.master);
	}
}
