/* gt_bench: the time of each kernel of one optimizer step, on the config's own data and plan. */
#include "gtrain.h"
#include "run/schedule.h"
#include "run/session.h"
#include "run/trainer.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static int by_time(const void *a, const void *b)
{
	double x = ((const struct gt_bench_row *)a)->ms, y = ((const struct gt_bench_row *)b)->ms;
	return x < y ? 1 : x > y ? -1 : 0;
}

static enum gt_code collect(struct gt_session *s, struct gt_err *err)
{
	const struct gt_window *w;
	GT_TRY(gt_exec_collect(&s->exec, &w, err));
	for (int i = 0; i < w->n; i++)
		if (w->scalars[i].skip)
			return gt_fail(err, GT_EDIVERGED, "diverged at step %lld of the benchmark", (long long)w->dyn[i * w->prog->nmicro].step);
	return GT_OK;
}

/* `steps` full batches in windows as in training; the epoch begins again where it would run into its tail. */
static enum gt_code steps_run(struct gt_session *s, int steps, struct gt_err *err)
{
	const struct gt_prog *p = &s->full;
	int64_t full = s->samples / s->batch, done = full;
	for (int i = 0; i < steps;) {
		struct gt_dyn *dyn;
		if (done >= full) {
			GT_TRY(gt_loader_start(s->loader, i, 0, err));
			done = 0;
		}
		int n = gt_exec_fit(&s->exec, p, steps - i < full - done ? steps - i : full - done), left = n * p->nmicro;
		GT_TRY(gt_exec_numbers(&s->exec, &dyn, err));
		for (int k = 0; k < n; k++, i++, done++) {
			for (int m = 0; m < p->nmicro; m++) {
				struct gt_dyn *d = &dyn[k * p->nmicro + m];
				*d = (struct gt_dyn){.seed = (uint64_t)s->conf->seed, .stride = 1, .step = i + 1, .inv_weight = 1 / (double)s->batch, .left = --left};
				gt_optim_rates(&s->optim, i, s->steps, s->steps_per_epoch, d->lr);
			}
			GT_TRY(gt_loader_claim(s->loader, p->nmicro, &dyn[k * p->nmicro], err));
		}
		GT_TRY(gt_exec_launch(&s->exec, p, s->loader, n, err));
		if (s->exec.queued == s->exec.depth)
			GT_TRY(collect(s, err));
	}
	while (s->exec.queued)
		GT_TRY(collect(s, err));
	return GT_OK;
}

static enum gt_code rows(struct gt_bench *b, const struct gt_session *s, const double *times, int steps, struct gt_err *err)
{
	const struct gt_prog *p = &s->full;
	double total = 0, flops = 0;
	GT_NEW(b->rows, b->arena, p->n, err);
	for (int i = 0; i < p->n; i++)
		total += times[i];
	for (int i = 0; i < p->n; i++) {
		const struct gt_step *st = &p->step[i];
		struct gt_bench_row *r = &b->rows[b->nrows++];
		snprintf(r->op, sizeof r->op, "%s", st->call ? st->call->op : gt_step_name(st->kind));
		snprintf(r->layer, sizeof r->layer, "%s", st->call ? st->call->layer : "");
		snprintf(r->impl, sizeof r->impl, "%s", st->call ? s->device.be->describe(st->call->kernel) : "");
		r->ms = 1e3 * times[i] / steps;
		r->share = total > 0 ? times[i] / total : 0;
		r->gflops = st->call && times[i] > 0 ? st->call->flops * steps / times[i] / 1e9 : 0;
		flops += st->call ? st->call->flops : 0;
	}
	b->gflops = flops / b->step_ms / 1e6;
	qsort(b->rows, (size_t)b->nrows, sizeof *b->rows, by_time);
	return GT_OK;
}

static enum gt_code measure(struct gt_session *s, int steps, struct gt_bench *b, struct gt_err *err)
{
	double *times;
	struct rusage ru;
	GT_TRY(gt_session_init(s, err));
	GT_NEW(times, b->arena, s->full.n, err);
	GT_TRY(steps_run(s, steps < 10 ? 2 : 10, err)); /* caches, pages, clocks */
	if (s->exec.graphs) /* twice: windows grow once a step's time is known, and every graph is recorded when it is first used */
		for (int i = 0; i < 2; i++)
			GT_TRY(steps_run(s, steps, err));
	double start = gt_seconds();
	GT_TRY(steps_run(s, steps, err));
	GT_TRY(s->device.be->sync(s->device.dev, 0, err));
	b->step_ms = 1e3 * (gt_seconds() - start) / steps;
	b->samples_per_s = 1e3 * (double)s->batch / b->step_ms;
	s->exec.times = times; /* a second pass, so that reading the clock does not slow the first */
	GT_TRY(steps_run(s, steps, err));
	s->exec.times = NULL;
	GT_NEW_STR(b->device, gt_arena_strdup(b->arena, s->device.info.name), err);
	getrusage(RUSAGE_SELF, &ru);
	b->peak_mb = (double)ru.ru_maxrss / 1e3;
	return rows(b, s, times, steps, err);
}

enum gt_code gt_bench(struct gt_conf *c, const char *device, int steps, struct gt_bench **out, struct gt_err *err)
{
	struct gt_session_spec spec = {.conf = c, .device = device, .train = true};
	struct gt_session *s;
	struct gt_arena *a;
	*out = NULL;
	if (steps <= 0)
		return gt_fail(err, GT_EUSAGE, "--steps: expected an integer > 0, got %d", steps);
	GT_TRY(gt_session_open(&spec, &s, err));
	enum gt_code code = s->full.n ? gt_arena_open(&a, err)
	                              : gt_fail(err, GT_ECONFIG, "%s: expected at least one full batch of %lld samples", c->path, (long long)s->batch);
	if (code == GT_OK) {
		struct gt_bench *b = gt_arena_alloc(a, 1, sizeof *b);
		if (b)
			b->arena = a;
		code = b ? measure(s, steps, b, err) : gt_fail_memory(err, sizeof *b);
		if (code == GT_OK)
			*out = b;
		else
			gt_arena_close(a);
	}
	gt_session_close(s);
	return code;
}

void gt_bench_free(struct gt_bench *b)
{
	if (b)
		gt_arena_close(b->arena);
}
