#include "base/clock.h"
#include "exec/comm_thread.h"
#include "exec/exec_parts.h"
#include <stdlib.h>
#include <string.h>

#define WINDOW_S 0.1 /* maximum length of a window in seconds, so that signals, time limits and the progress line are handled in time */
/* maximum number of program steps in one graph; the node of a step takes about 1 KB of device memory and 1 us a replay */
#define GRAPH_STEPS 16384
#define LIST 64 /* maximum number of kernels that one call of the backend launches */
#define EVENT (GT_EVENTS - 2) /* index of the first of two device events, one for each window in gt_exec.ring */

static const int sizes[GT_EXEC_SIZES] = {64, 8, 1};

/* ---- open and close ----------------------------------------------------------------------------------------------------------------- */
/* Returns the bytes of the scaler and the scalars of n steps. They are adjacent in device memory (GT_A_METRICS in plan.h), and each window
 * has a copy in host memory. */
static size_t scalars_bytes(int n)
{
	return GT_SCALER_BYTES + (size_t)n * sizeof(struct gt_scalars);
}

enum gt_code gt_exec_open(struct gt_exec *x, struct gt_err *err)
{
	struct gt_space *s = x->space;
	bool host = x->be->host_memory;
	size_t back = scalars_bytes(s->memory.slots),
	       bytes = back + (size_t)s->memory.slots * (size_t)s->memory.micros * sizeof(struct gt_step_args);
	x->depth = host || x->lockstep ? 1 : 2;
	if (!(x->loaded_batches = calloc((size_t)s->memory.micros, sizeof *x->loaded_batches)))
		return gt_fail_memory(err, (size_t)s->memory.micros * sizeof *x->loaded_batches);
	if (!x->be->capture_begin)
		x->graphs = false;
	if (!host && !x->be->copy_async)
		return gt_fail(err, GT_EUNAVAILABLE, "the %s backend only makes plans: it cannot run them", x->be->name);
	for (int i = 0; i < x->depth; i++) {
		char *p = (char *)gt_space_scaler(s);
		if (!host) {
			void *mirror;
			GT_TRY(x->be->host_alloc(x->dev, bytes, &mirror, err));
			p = mirror;
		}
		x->ring[i] = (struct gt_window){.scaler = (struct gt_scaler *)(void *)p,
		                                .scalars = (struct gt_scalars *)(void *)(p + GT_SCALER_BYTES),
		                                .step_args = (struct gt_step_args *)(void *)(p + back)};
	}
	return x->overlaps ? gt_comm_thread_open(x, &x->comm_thread, err) : GT_OK;
}

void gt_exec_close(struct gt_exec *x)
{
	gt_comm_thread_close(x->comm_thread);
	if (x->depth && !x->be->host_memory)
		x->be->sync(x->dev, 0, NULL); /* copies that are still queued may use the memory that is freed below */
	for (int i = 0; i < x->nprogs; i++)
		for (int k = 0; k < GT_EXEC_SIZES; k++)
			if (x->prog[i].graph[k])
				x->be->graph_free(x->dev, x->prog[i].graph[k]);
	for (int i = 0; i < x->depth; i++)
		if (!x->be->host_memory && x->ring[i].scaler)
			x->be->host_free(x->dev, (void *)(uintptr_t)x->ring[i].scaler);
	free(x->loaded_batches);
	*x = (struct gt_exec){0};
}

static struct gt_exec_prog *prog_of(struct gt_exec *x, const struct gt_prog *p)
{
	for (int i = 0; i < x->nprogs; i++)
		if (x->prog[i].prog == p)
			return &x->prog[i];
	if (x->nprogs == GT_EXEC_PROGS)
		return NULL;
	struct gt_exec_prog *e = &x->prog[x->nprogs++];
	*e = (struct gt_exec_prog){.prog = p};
	for (int i = 0; i < p->n; i++)
		e->train |= p->step[i].kind == GT_STEP_CHECK;
	return e;
}

/* ---- one step of a program ------------------------------------------------------------------------------------------------------- */
static struct gt_step_args *step_args_at(const struct gt_exec *x, const struct gt_prog *p, int slot, int micro)
{
	return gt_space_step_args(x->space, 0) + (int64_t)slot * p->nmicro + micro;
}

static enum gt_code launch_kernel(struct gt_exec *x, const struct gt_prog *p, const struct gt_step *s, int slot, struct gt_err *err)
{
	struct gt_call *c = s->call;
	struct gt_step_args *step_args = step_args_at(x, p, slot, s->micro);
	struct gt_launch a = {.in = c->in, .out = c->out, .scratch = c->work, .step_args = step_args, .stream = s->stream};
	void *in[GT_MAX_IO], *out[GT_MAX_IO];
	if (s->kind == GT_STEP_CHECK && c->nin > gt_opsig_find_input(GT_OP_CHECK, "numbers"))
		c->in[gt_opsig_find_input(GT_OP_CHECK, "numbers")] = step_args;
	if (slot && prog_of(x, p)->train) {
		for (int i = 0; i < c->nin; i++)
			in[i] = gt_exec_slot_address(x, c->in[i], slot);
		for (int i = 0; i < c->nout; i++)
			out[i] = gt_exec_slot_address(x, c->out[i], slot);
		a.in = in;
		a.out = out;
	}
	return x->be->launch(x->dev, c->kernel, &a, err);
}

/* Loads the batch of a step. In host memory the batch is ready, or the loader's thread provides it. On another device a gather kernel is
 * queued. */
static enum gt_code load_batch(struct gt_exec *x, const struct gt_prog *p, const struct gt_step *s, int slot, struct gt_loader *l,
                               struct gt_err *err)
{
	struct gt_step_args *step_args = step_args_at(x, p, slot, s->micro);
	if (s->kind == GT_STEP_PASS) {
		struct gt_batch others;
		if (!x->be->host_memory) /* gt_loader_take_parts has already taken the part */
			return GT_OK;
		GT_TRY(gt_loader_skip_part(l, &others, err));
		step_args->epoch = (uint64_t)others.epoch;
		step_args->sample0 = (uint64_t)others.cursor;
		step_args->stride = (uint64_t)others.stride;
		return GT_OK;
	}
	int64_t n = s->plan->graph->batch / s->plan->graph->views, length = s->plan->graph->length;
	struct gt_batch b;
	if (!x->be->host_memory) {
		GT_TRY(gt_loader_launch(l, n, length, step_args, s->stream, &b, err));
	} else {
		GT_TRY(gt_loader_next(l, &b, err));
		if (b.n != n || b.length != length)
			return gt_fail(err, GT_EINTERNAL, "the loader returned %lld samples of length %lld, but the plan expects %lld of length %lld",
			               (long long)b.n, (long long)b.length, (long long)n, (long long)length);
		step_args->epoch = (uint64_t)b.epoch;
		step_args->sample0 = (uint64_t)b.cursor;
		step_args->stride = (uint64_t)b.stride;
	}
	gt_plan_bind_batch(s->plan, b.input, b.target);
	x->loaded_batches[s->micro] = b;
	return GT_OK;
}

enum gt_code gt_exec_step(struct gt_exec *x, const struct gt_prog *p, int i, int slot, int n, struct gt_loader *l, struct gt_err *err)
{
	const struct gt_step *s = &p->step[i];
	switch (s->kind) {
	case GT_STEP_LAUNCH:
	case GT_STEP_CHECK:
	case GT_STEP_UPDATE:
		return launch_kernel(x, p, s, slot, err);
	case GT_STEP_LOAD:
	case GT_STEP_PASS:
		return load_batch(x, p, s, slot, l, err);
	case GT_STEP_BIND:
		gt_plan_bind_batch(s->plan, x->loaded_batches[s->micro].input, x->loaded_batches[s->micro].target);
		return GT_OK;
	case GT_STEP_COMM:
		return gt_exec_comm(x, p, i, slot, err);
	case GT_STEP_CLEAR:
		return x->be->zero(x->dev, gt_space_at(x->space, s->range), s->bytes, s->stream, err);
	case GT_STEP_RECORD:
		return x->be->record(x->dev, s->event, s->stream, err);
	case GT_STEP_WAIT:
		return x->be->wait(x->dev, s->event, s->stream, err);
	case GT_STEP_ZERO: /* the first step of a window zeroes the scalars of all its steps */
		if (slot)
			return GT_OK;
		return x->be->zero(x->dev, gt_space_scalars(x->space, 0), (size_t)n * sizeof(struct gt_scalars), s->stream, err);
	}
	return gt_fail(err, GT_EINTERNAL, "the list of steps has a step of the unknown kind %d", (int)s->kind);
}

/* ---- windows ----------------------------------------------------------------------------------------------------------------------- */
int gt_exec_window_size(struct gt_exec *x, const struct gt_prog *p, int64_t want)
{
	if (x->space->memory.slots == 1 || x->times)
		return 1;
	struct gt_exec_prog *e = prog_of(x, p);
	double limit = x->space->memory.slots;
	if (!e || !e->warm)
		return 1;
	double step_s = x->uses_rank0_time ? x->rank0_step_s : e->step_s;
	if (x->max_window_steps)
		limit = x->max_window_steps;
	else if (e->train)
		limit = step_s > 0 ? WINDOW_S / step_s : 1;
	for (int i = 0; i < GT_EXEC_SIZES; i++)
		if (sizes[i] <= want && sizes[i] <= limit && sizes[i] <= x->space->memory.slots && (int64_t)sizes[i] * p->n <= GRAPH_STEPS)
			return sizes[i];
	return 1;
}

double gt_exec_step_s(struct gt_exec *x, const struct gt_prog *p)
{
	const struct gt_exec_prog *e = p->n ? prog_of(x, p) : NULL;
	return e ? e->step_s : 0;
}

enum gt_code gt_exec_step_args(struct gt_exec *x, struct gt_step_args **out, struct gt_err *err)
{
	struct gt_window *w = &x->ring[x->next];
	*out = w->step_args;
	if (x->queued == x->depth)
		return gt_fail(err, GT_EINTERNAL, "steps were launched before the earlier steps that use the same memory were collected");
	if (w->busy)
		GT_TRY(x->be->host_wait(x->dev, EVENT + x->next, err));
	w->busy = false;
	return GT_OK;
}

enum gt_code gt_exec_send(struct gt_exec *x, const struct gt_prog *p, int n, struct gt_err *err)
{
	const struct gt_window *w = &x->ring[x->next];
	if (x->be->host_memory)
		return GT_OK;
	return x->be->copy_async(x->dev, gt_space_step_args(x->space, 0), w->step_args, (size_t)n * (size_t)p->nmicro * sizeof *w->step_args,
	                         GT_COPY_H2D, 0, err);
}

/* Launches the steps [begin, end) of p in slot 0; all of them are kernels. */
static enum gt_code run_list(struct gt_exec *x, const struct gt_prog *p, int begin, int end, struct gt_err *err)
{
	struct gt_kernel *k[LIST];
	struct gt_launch a[LIST];
	for (int i = begin; i < end; i++) {
		struct gt_call *c = p->step[i].call;
		k[i - begin] = c->kernel;
		a[i - begin] =
		    (struct gt_launch){.in = c->in, .out = c->out, .scratch = c->work, .step_args = step_args_at(x, p, 0, p->step[i].micro)};
	}
	return x->be->launch_list(x->dev, end - begin, k, a, err);
}

static bool can_batch_launch(const struct gt_step *s)
{
	return (s->kind == GT_STEP_LAUNCH || s->kind == GT_STEP_CHECK || s->kind == GT_STEP_UPDATE) && s->stream == 0;
}

static enum gt_code run_step(struct gt_exec *x, const struct gt_prog *p, int i, int slot, int n, struct gt_loader *l, struct gt_err *err)
{
	if (x->comm_thread && gt_comm_thread_takes(&p->step[i]))
		return gt_comm_thread_step(x->comm_thread, p, i, slot, err);
	return gt_exec_step(x, p, i, slot, n, l, err);
}

static enum gt_code run_steps(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, int n, struct gt_err *err)
{
	bool lists = x->be->launch_list && n == 1 && !x->lockstep;
	for (int slot = 0; slot < n; slot++)
		for (int i = 0; i < p->n;) {
			int end = i;
			while (lists && end < p->n && end - i < LIST && can_batch_launch(&p->step[end]))
				end++;
			if (end - i > 1) {
				GT_TRY(run_list(x, p, i, end, err));
				i = end;
			} else {
				GT_TRY(run_step(x, p, i++, slot, n, l, err));
			}
		}
	return x->comm_thread ? gt_comm_thread_drain(x->comm_thread, err) : GT_OK;
}

/* Runs the program and measures each of its steps with device events, because the host queues steps ahead of the device. The time of a step
 * includes the gaps between its kernels. */
static enum gt_code run_marked(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, struct gt_err *err)
{
	for (int i = 0; i < p->n; i++) {
		GT_TRY(x->be->mark(x->dev, 2 * i, p->step[i].stream, err));
		GT_TRY(gt_exec_step(x, p, i, 0, 1, l, err));
		GT_TRY(x->be->mark(x->dev, 2 * i + 1, p->step[i].stream, err));
	}
	for (int i = 0; i < p->n; i++) {
		double seconds;
		GT_TRY(x->be->elapsed(x->dev, 2 * i, 2 * i + 1, &seconds, err));
		x->times[i] += seconds;
	}
	return GT_OK;
}

static enum gt_code run_timed(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, struct gt_err *err)
{
	GT_TRY(x->be->sync(x->dev, 0, err));
	if (x->be->mark && 2 * p->n <= GT_MARKS)
		return run_marked(x, p, l, err);
	for (int i = 0; i < p->n; i++) {
		double t = gt_clock();
		GT_TRY(gt_exec_step(x, p, i, 0, 1, l, err));
		GT_TRY(x->be->sync(x->dev, p->step[i].stream, err));
		x->times[i] += gt_clock() - t;
	}
	return GT_OK;
}

static enum gt_code capture_graph(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, int n, void **graph, struct gt_err *err)
{
	GT_TRY(x->be->capture_begin(x->dev, err));
	enum gt_code code = run_steps(x, p, l, n, err);
	/* also after a failure, because the stream would otherwise remain in capture mode */
	enum gt_code ended = x->be->capture_end(x->dev, graph, code == GT_OK ? err : NULL);
	if (code != GT_OK && ended == GT_OK)
		x->be->graph_free(x->dev, *graph);
	if (code != GT_OK || ended != GT_OK)
		*graph = NULL;
	return code != GT_OK ? code : ended;
}

static enum gt_code replay_graph(struct gt_exec *x, struct gt_exec_prog *e, struct gt_loader *l, int n, struct gt_err *err)
{
	int k = 0;
	while (k < GT_EXEC_SIZES && sizes[k] != n)
		k++;
	if (k == GT_EXEC_SIZES)
		return gt_fail(err, GT_EINTERNAL, "a launch of %d steps at once is not supported", n);
	if (!e->graph[k])
		GT_TRY(capture_graph(x, e->prog, l, n, &e->graph[k], err));
	x->ring[x->next].start = gt_clock();
	return x->be->replay(x->dev, e->graph[k], err);
}

enum gt_code gt_exec_launch(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, int n, struct gt_err *err)
{
	struct gt_window *w = &x->ring[x->next];
	struct gt_exec_prog *e = prog_of(x, p);
	if (!e)
		return gt_fail(err, GT_EINTERNAL, "too many different step lists are in use");
	w->prog = p;
	w->n = n;
	w->cold = !e->warm;
	e->warm = true;
	if (!x->be->host_memory)
		w->start = gt_clock();
	GT_TRY(gt_exec_send(x, p, n, err));
	if (x->times)
		GT_TRY(run_timed(x, p, l, err));
	else if (x->graphs && !w->cold)
		GT_TRY(replay_graph(x, e, l, n, err));
	else
		GT_TRY(run_steps(x, p, l, n, err));
	if (!x->be->host_memory) {
		if (e->train)
			GT_TRY(
			    x->be->copy_async(x->dev, (void *)(uintptr_t)w->scaler, gt_space_scaler(x->space), scalars_bytes(n), GT_COPY_D2H, 0, err));
		GT_TRY(x->be->record(x->dev, EVENT + x->next, 0, err));
		w->busy = true;
	}
	x->queued += e->train;
	x->next = (x->next + 1) % x->depth;
	return GT_OK;
}

/* Sets the final timeout of communication. Call it when a window is complete: kernels are then loaded and ranks connected. */
static void end_patience(struct gt_exec *x)
{
	struct gt_comm *world = x->group[GT_GROUP_WORLD];
	if (x->timeout_s > 0)
		world->api->set_timeout(world, x->timeout_s);
	x->timeout_s = 0;
}

enum gt_code gt_exec_collect(struct gt_exec *x, const struct gt_window **out, struct gt_err *err)
{
	int at = (x->next + x->depth - x->queued) % x->depth;
	struct gt_window *w = &x->ring[at];
	*out = w;
	if (x->queued == 0)
		return gt_fail(err, GT_EINTERNAL, "cannot collect the results of steps, because no steps are queued");
	if (w->busy)
		GT_TRY(x->be->host_wait(x->dev, EVENT + at, err));
	w->busy = false;
	x->queued--;
	end_patience(x);
	if (x->be->host_memory)
		return GT_OK;
	double t = gt_clock(), from = w->start > x->collected ? w->start : x->collected;
	if (!w->cold)
		prog_of(x, w->prog)->step_s = (t - from) / w->n;
	x->collected = t;
	return GT_OK;
}

enum gt_code gt_exec_drain(struct gt_exec *x, struct gt_err *err)
{
	x->queued = 0;
	return x->be->sync(x->dev, 0, err);
}

enum gt_code gt_exec_metrics(struct gt_exec *x, bool clear, struct gt_metrics *out, struct gt_err *err)
{
	void *m = gt_space_scalars(x->space, 0);
	if (x->be->host_memory) {
		memcpy(out, m, sizeof *out);
		if (clear)
			memset(m, 0, sizeof *out);
		return GT_OK;
	}
	GT_TRY(x->be->copy(x->dev, out, m, sizeof *out, GT_COPY_D2H, 0, err));
	end_patience(x);
	return clear ? x->be->zero(x->dev, m, sizeof *out, 0, err) : GT_OK;
}
