#include "session/batch_partition.h"
#include "plan/mode_pipe.h"
#include "session/session_pipe.h"
#include <stdlib.h>

static bool has_virtual_shards(const struct gt_session *s)
{
	return s->conf->reproducible == GT_REPRO_WORLD;
}

struct gt_batch_slice gt_batch_eval_slice(const struct gt_session *s)
{
	return (struct gt_batch_slice){.parts = s->at.ndata, .part0 = s->at.data, .nparts = 1};
}

/* Divides the batch into virtual shards, and each shard into train.accumulate pieces. A rank has consecutive shards. */
static enum gt_code partition_by_shards(struct gt_session *s, bool train, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	int64_t v = c->parallel.shards, pieces = c->train.accumulate;
	if (s->at.ndata & (s->at.ndata - 1)) /* no power of two is a multiple of this number, so no value of parallel.shards helps */
		return gt_conf_refuse(c, "parallel.shards", err,
		                      "expected a power of two as the number of ranks that share the batch, with reproducible = \"world\", got %d",
		                      s->at.ndata);
	if (v % s->at.ndata)
		return gt_conf_refuse(c, "parallel.shards", err,
		                      "expected a multiple of the number of ranks, %d, with reproducible = \"world\", got %lld", s->at.ndata,
		                      (long long)v);
	if (s->batch.size < v * pieces)
		return gt_conf_refuse(c, "data.batch", err,
		                      "expected at least %lld (parallel.shards) times %lld (train.accumulate) samples, got %lld", (long long)v,
		                      (long long)pieces, (long long)s->batch.size);
	s->batch.micro = s->batch.size;
	s->batch.slice = (struct gt_batch_slice){.parts = (int)(v * pieces), .nparts = (int)(v / s->at.ndata * pieces)};
	s->batch.slice.part0 = s->at.data * s->batch.slice.nparts;
	s->batch.units = s->batch.slice.nparts;
	for (s->space->memory.levels = 1; (1 << (s->space->memory.levels - 1)) < v / s->at.ndata;)
		s->space->memory.levels++;
	s->space->memory.copies = train && v > 1 ? 2 : 1;
	return GT_OK;
}

static enum gt_code partition_by_micros(struct gt_session *s, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	int64_t accumulate = c->train.accumulate;
	if (s->batch.size % accumulate)
		return gt_conf_refuse(c, "train.accumulate", err, "expected a divisor of data.batch = %lld, got %lld", (long long)s->batch.size,
		                      (long long)accumulate);
	s->batch.micro = s->batch.size / accumulate;
	int pieces = 1;
	/* a micro-batch is divided into parallel.chunks parts, but not into more parts than it has samples on a rank */
	if (gt_session_is_pipeline(s))
		pieces = (int)(s->batch.micro / s->at.ndata < c->parallel.chunks ? s->batch.micro / s->at.ndata : c->parallel.chunks);
	pieces = pieces ? pieces : 1;
	s->batch.slice = (struct gt_batch_slice){.parts = s->at.ndata * pieces, .part0 = s->at.data * pieces, .nparts = pieces,
	                         .strided = c->data.sampler == GT_SAMPLER_TORCH && s->at.ndata > 1};
	s->batch.units = accumulate * s->batch.slice.nparts;
	if (s->batch.micro < s->batch.slice.parts || (s->batch.slice.strided && s->batch.micro % s->batch.slice.parts))
		return gt_conf_refuse(c, "data.batch", err, "expected %s %lld (train.accumulate) times %d (%s)%s, got %lld",
		                      s->batch.slice.strided ? "a multiple of" : "at least", (long long)accumulate, s->batch.slice.parts,
		                      pieces > 1 ? "ranks times micro-batches in the pipeline" : "ranks",
		                      s->batch.slice.strided ? ", because data.sampler = \"torch\" gives every rank the same number of samples"
		                                             : "",
		                      (long long)s->batch.size);
	return GT_OK;
}

enum gt_code gt_batch_partition_open(struct gt_session *s, bool train, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	int64_t n = s->data.view[GT_TRAIN].n;
	s->batch.size = c->data.batch > 0 ? c->data.batch : c->data.batch_per_rank * s->at.ndata;
	GT_TRY(has_virtual_shards(s) ? partition_by_shards(s, train, err) : partition_by_micros(s, err));
	if (train && n >= 0) { /* a session without training may not have read the training split */
		s->batch.samples = gt_epoch_positions(n, s->batch.slice.parts, s->batch.slice.strided, c->data.drop_last, s->batch.size);
		if (s->batch.samples <= 0)
			return gt_conf_refuse(c, "data.drop_last", err, "expected at least data.batch = %lld training samples, got %lld",
			                      (long long)s->batch.size, (long long)n);
		s->batch.steps_per_epoch = (s->batch.samples + s->batch.size - 1) / s->batch.size;
	}
	s->batch.steps = c->train.steps > 0 ? c->train.steps : c->train.epochs * s->batch.steps_per_epoch;
	return GT_OK;
}

/* Adds the two ranks at which the sizes of parts may change if n samples are divided as in `slice`: parts from n % parts on have a sample
 * less than the parts before (gt_part_size), and one rank may have parts of both sizes. */
static void add_class_bounds(int64_t n, const struct gt_batch_slice *slice, int *bound, int *nbounds)
{
	int64_t more = n % slice->parts;
	bound[(*nbounds)++] = (int)(more / slice->nparts);
	bound[(*nbounds)++] = (int)((more + slice->nparts - 1) / slice->nparts);
}

static int compare_ints(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

int gt_batch_partition_classes(const struct gt_session *s, int first[GT_BATCH_CLASSES])
{
	const struct gt_batch_partition *b = &s->batch;
	struct gt_batch_slice eval = gt_batch_eval_slice(s);
	int64_t step[] = {b->size, b->samples % b->size};
	int n = 0, kept = 0;
	first[n++] = 0;
	first[n++] = 1;
	for (int i = 0; i < 2; i++) {
		add_class_bounds(step[i] < b->micro ? step[i] : b->micro, &b->slice, first, &n);
		add_class_bounds(step[i] % b->micro, &b->slice, first, &n);
	}
	for (int i = 0; i < GT_SPLITS; i++) {
		add_class_bounds(s->prog.eval[i].batch, &eval, first, &n);
		add_class_bounds(s->prog.eval[i].ntail, &eval, first, &n);
	}
	qsort(first, (size_t)n, sizeof *first, compare_ints);
	for (int i = 0; i < n; i++)
		if (first[i] < s->at.ndata && (!kept || first[i] > first[kept - 1]))
			first[kept++] = first[i];
	return kept;
}

/* Sets the plans of a unit in a pipeline, one for each stage of this rank. */
static enum gt_code set_stage_plans(struct gt_session *s, struct gt_plan_key *want, struct gt_unit *u, struct gt_err *err)
{
	int own = gt_pipe_stages(s->conf, s->at.npipe);
	GT_NEW(u->stage, s->arena, own, err);
	for (int k = own - 1; k >= 0; k--) { /* begins with the last stage, whose gradients are complete first */
		want->stage = k * s->at.npipe + s->at.pipe;
		GT_TRY(gt_session_plan(s, want, &u->stage[k], err));
	}
	u->plan = u->stage[0];
	return GT_OK;
}

/* Sets the plan of a unit that has samples. */
static enum gt_code set_unit_plan(struct gt_session *s, struct gt_plan_key *want, struct gt_unit *u, struct gt_err *err)
{
	return gt_session_is_pipeline(s) ? set_stage_plans(s, want, u, err) : gt_session_plan(s, want, &u->plan, err);
}

static int count_set_bits(int64_t n)
{
	return __builtin_popcountll((unsigned long long)n);
}

/* Sets unit i, which is one of the pieces of a virtual shard of this rank. The first piece with samples overwrites the copy of the
 * gradients that the shard uses (its level); later pieces of the shard are added to it. Only the first shard of the first rank updates the
 * running statistics; plans of other shards write them to an unused copy. */
static enum gt_code set_shard_unit(struct gt_session *s, int i, int64_t own, bool *add, struct gt_unit *u, struct gt_err *err)
{
	int pieces = (int)s->conf->train.accumulate, shard = i / pieces, piece = i % pieces;
	struct gt_plan_key want = {.n = own, .train = true, .loss = true, .length = s->prog.length, .phase = s->prog.building};
	if (piece == 0)
		*add = false;
	u->level = want.level = count_set_bits(shard);
	want.copy = s->at.data == 0 && shard == 0 ? 0 : s->space->memory.copies - 1;
	want.accumulate = *add;
	if (own)
		GT_TRY(set_unit_plan(s, &want, u, err));
	*add |= own > 0;
	if (piece == pieces - 1) {
		u->carry = __builtin_ctz((unsigned)shard + 1);
		u->clears = !*add;
	}
	return GT_OK;
}

/* Every rank first makes the plan of the largest part of a micro-batch, part 0, so that the same plan determines the layouts on all
 * ranks. */
enum gt_code gt_batch_train_units(struct gt_session *s, int64_t n, struct gt_job *job, struct gt_err *err)
{
	int64_t count = (n + s->batch.micro - 1) / s->batch.micro;
	struct gt_plan_key like = {.all = s->batch.micro < n ? s->batch.micro : n, .train = true, .loss = true, .length = s->prog.length,
	                           .phase = s->prog.building};
	bool add = false, some = false;
	like.n = gt_part_size(like.all, s->batch.slice.parts, 0, NULL);
	job->nunits = (int)(count * s->batch.slice.nparts);
	GT_NEW(job->unit, s->arena, job->nunits, err);
	if (s->at.ndata > 1 || has_virtual_shards(s)) {
		struct gt_unit first = {0};
		GT_TRY(set_unit_plan(s, &like, &first, err));
		job->like = first.plan;
	}
	for (int i = 0; i < job->nunits; i++) {
		int64_t left = n - i / s->batch.slice.nparts * s->batch.micro, all = left < s->batch.micro ? left : s->batch.micro;
		int64_t own = gt_part_size(all, s->batch.slice.parts, s->batch.slice.part0 + i % s->batch.slice.nparts, NULL);
		if (has_virtual_shards(s)) {
			GT_TRY(set_shard_unit(s, i, own, &add, &job->unit[i], err));
			continue;
		}
		/* if ranks share the factors of weight gradients, all parts have this size; the loader fills up smaller parts */
		if (gt_space_factored(s->space))
			own = gt_part_size(all, s->batch.slice.parts, 0, NULL);
		struct gt_plan_key want = {.n = own,
		                           .all = all,
		                           .train = true,
		                           .loss = true,
		                           .length = s->prog.length, .phase = s->prog.building,
		                           .accumulate =
		                               /* sharded gradients are reduced before they are added up */
		                               some && !gt_space_sharded(s->space, GT_A_GRAD)};
		if (!own && s->sync_bn)
			want = (struct gt_plan_key){.n = like.n, .all = all, .train = true, .loss = true, .idle = true, .length = like.length,
			                            .phase = like.phase};
		if (own || want.idle)
			GT_TRY(set_unit_plan(s, &want, &job->unit[i], err));
		some |= own > 0;
	}
	if (!some && !has_virtual_shards(s) && !gt_space_sharded(s->space, GT_A_GRAD))
		job->unit[job->nunits - 1].clears = true;
	return GT_OK;
}

enum gt_code gt_batch_eval_units(struct gt_session *s, int64_t n, struct gt_job *job, struct gt_err *err)
{
	struct gt_batch_slice slice = gt_batch_eval_slice(s);
	struct gt_plan_key like = {.n = gt_part_size(n, slice.parts, 0, NULL), .length = s->prog.length, .loss = true};
	struct gt_plan_key want = {.n = gt_part_size(n, slice.parts, slice.part0, NULL), .length = s->prog.length, .loss = true};
	job->nunits = 1;
	GT_NEW(job->unit, s->arena, 1, err);
	if (s->at.ndata > 1) {
		struct gt_unit first = {0};
		GT_TRY(set_unit_plan(s, &like, &first, err));
		job->like = first.plan;
	}
	return want.n ? set_unit_plan(s, &want, &job->unit[0], err) : GT_OK;
}
