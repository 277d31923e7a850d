#include "par/replicas.h"

#define FIRST_BYTES (1 << 20)

struct gt_cutting gt_replicas_cut(const struct gt_conf *c)
{
	int64_t bytes = (int64_t)(c->parallel.bucket_mb * (1 << 20));
	return (struct gt_cutting){.bucket_bytes = bytes, .first_bytes = bytes < FIRST_BYTES ? bytes : FIRST_BYTES};
}

/* How many buckets have gradients: they stand first. */
static int learned(const struct gt_space *s)
{
	int n = 0;
	while (n < s->nbuckets && s->bucket[n].learned)
		n++;
	return n;
}

/* The last unit: its calls, and between them the buckets that they have finished. */
static enum gt_code last_unit(struct gt_emit *e, int unit, void (*reduce)(struct gt_emit *e, int bucket, const char *name))
{
	const struct gt_job *job = e->job;
	struct gt_plan *p = job->unit[unit].plan;
	int n = learned(job->space), b = 0, *ready;
	bool sums = job->unit[unit].carry > 0;
	GT_NEW(ready, job->arena, job->space->nbuckets, e->err);
	GT_TRY(gt_emit_ready(p, ready, e->err));
	gt_emit_load(e, unit);
	for (int i = 0; i < p->ncalls; i++) {
		gt_emit_launch(e, unit, &p->call[i]);
		for (; !sums && b < n && ready[b] <= i; b++) {
			gt_emit_join(e, 0, 1);
			reduce(e, b, gt_arena_printf(job->arena, "gradients %d/%d", b + 1, n));
		}
	}
	gt_emit_carry(e, unit);
	for (; b < n; b++) {
		gt_emit_join(e, 0, 1);
		reduce(e, b, gt_arena_printf(job->arena, "gradients %d/%d", b + 1, n));
	}
	return GT_OK;
}

enum gt_code gt_replicas_passes(struct gt_emit *e, void (*reduce)(struct gt_emit *e, int bucket, const char *name))
{
	const struct gt_job *job = e->job;
	const struct gt_space *s = job->space;
	int last = -1;
	if (job->update)
		gt_emit_step(e, (struct gt_step){.kind = GT_STEP_ZERO});
	for (int i = 0; i < job->nunits; i++)
		if (job->unit[i].plan)
			last = i;
	for (int i = 0; i < last + !job->update; i++) {
		if (!job->unit[i].plan)
			continue;
		gt_emit_unit(e, i);
		gt_emit_carry(e, i);
	}
	if (!job->update)
		return GT_OK;
	if (last >= 0)
		return last_unit(e, last, reduce);
	int n = learned(s);
	gt_emit_step(e, (struct gt_step){.kind = GT_STEP_CLEAR, .range = {GT_A_GRAD, 0}, .bytes = s->bytes[GT_A_GRAD]});
	gt_emit_join(e, 0, 1);
	for (int b = 0; b < n; b++)
		reduce(e, b, gt_arena_printf(job->arena, "gradients %d/%d", b + 1, n));
	return GT_OK;
}
