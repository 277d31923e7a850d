/* The backend of a device that compares its calls with the CPU's. Its functions prepare_call and launch_kernel use both devices; the other
 * functions call the wrapped device. */
#include "against/against_parts.h"
#include "base/arena.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- functions that the device executes alone ------------------------------------------------------------------------------------- */
static void close_both(struct gt_dev *w)
{
	w->be->close(w->dev);
	gt_device_close(&w->cpu);
	gt_findings_close(w->findings);
	pthread_mutex_destroy(&w->lock);
	for (int i = 0; i < w->nmasks; i++)
		free(w->mask[i].values);
	free(w->mask);
	free(w->block);
	free(w);
}

static enum gt_code note_block(struct gt_dev *w, void *p, size_t bytes, struct gt_err *err)
{
	if (w->nblocks == w->cap) {
		int cap = w->cap ? 2 * w->cap : 64;
		struct gt_against_block *grown = realloc(w->block, (size_t)cap * sizeof *grown);
		if (!grown)
			return gt_fail_memory(err, (size_t)cap * sizeof *grown);
		w->block = grown;
		w->cap = cap;
	}
	w->block[w->nblocks++] = (struct gt_against_block){p, bytes};
	return GT_OK;
}

static enum gt_code alloc_memory(struct gt_dev *w, size_t bytes, void **out, struct gt_err *err)
{
	GT_TRY(w->be->alloc(w->dev, bytes, out, err));
	pthread_mutex_lock(&w->lock);
	enum gt_code code = note_block(w, *out, bytes, err);
	pthread_mutex_unlock(&w->lock);
	if (code != GT_OK)
		w->be->free(w->dev, *out);
	return code;
}

static void free_memory(struct gt_dev *w, void *p)
{
	pthread_mutex_lock(&w->lock);
	for (int i = 0; i < w->nblocks; i++)
		if (w->block[i].p == p)
			w->block[i--] = w->block[--w->nblocks];
	pthread_mutex_unlock(&w->lock);
	w->be->free(w->dev, p);
}

static enum gt_code copy_memory(struct gt_dev *w, void *dst, const void *src, size_t bytes, enum gt_copy dir, int stream,
                                struct gt_err *err)
{
	return w->be->copy(w->dev, dst, src, bytes, dir, stream, err);
}

static enum gt_code zero_memory(struct gt_dev *w, void *dst, size_t bytes, int stream, struct gt_err *err)
{
	return w->be->zero(w->dev, dst, bytes, stream, err);
}

static enum gt_code record_event(struct gt_dev *w, int event, int stream, struct gt_err *err)
{
	return w->be->record(w->dev, event, stream, err);
}

static enum gt_code wait_event(struct gt_dev *w, int event, int stream, struct gt_err *err)
{
	return w->be->wait(w->dev, event, stream, err);
}

static enum gt_code sync_stream(struct gt_dev *w, int stream, struct gt_err *err)
{
	return w->be->sync(w->dev, stream, err);
}

static enum gt_code alloc_host(struct gt_dev *w, size_t bytes, void **out, struct gt_err *err)
{
	return w->be->host_alloc(w->dev, bytes, out, err);
}

static void free_host(struct gt_dev *w, void *p)
{
	w->be->host_free(w->dev, p);
}

static enum gt_code copy_queued(struct gt_dev *w, void *dst, const void *src, size_t bytes, enum gt_copy dir, int stream,
                                struct gt_err *err)
{
	return w->be->copy_async(w->dev, dst, src, bytes, dir, stream, err);
}

static enum gt_code wait_host(struct gt_dev *w, int event, struct gt_err *err)
{
	return w->be->host_wait(w->dev, event, err);
}

static size_t scratch_bytes(const struct gt_kernel *k)
{
	return k->owner->be->scratch(k->kernel);
}

static const char *describe_kernel(const struct gt_kernel *k)
{
	return k->owner->be->describe(k->kernel);
}

static void release_kernel(struct gt_dev *w, struct gt_kernel *k)
{
	w->be->release(w->dev, k->kernel);
	gt_twin_release(&k->twin);
	free(k);
}

/* ---- prepare ------------------------------------------------------------------------------------------------------------------------ */
static enum gt_code make_twin(struct gt_dev *w, const struct gt_opcall *call, struct gt_kernel *k, struct gt_err *err)
{
	struct gt_err why = {0};
	k->twin = (struct gt_twin){.be = w->cpu.be, .dev = w->cpu.dev, .type = w->spec.type};
	enum gt_code code = gt_twin_make(&k->twin, call, &why);
	if (code == GT_OK)
		return GT_OK;
	gt_twin_release(&k->twin);
	snprintf(k->why, sizeof k->why, "%.399s", why.msg);
	if (code != GT_EUNAVAILABLE && err)
		*err = why;
	return code == GT_EUNAVAILABLE ? GT_OK : code;
}

static enum gt_code prepare_call(struct gt_dev *w, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	struct gt_kernel *k, *own;
	GT_TRY(w->be->prepare(w->dev, call, &own, err));
	if (!(k = calloc(1, sizeof *k))) {
		w->be->release(w->dev, own);
		return gt_fail_memory(err, sizeof *k);
	}
	*k = (struct gt_kernel){.owner = w, .kernel = own, .code = call->code, .nin = call->nin, .nout = call->nout,
	                        .judge = gt_judge_of(call, w->spec.type, w->spec.tf32)};
	gt_opsig_read(call->code, &k->sig);
	snprintf(k->name.operation, sizeof k->name.operation, "%s", gt_opcode_name(call->code));
	snprintf(k->name.layer, sizeof k->name.layer, "%s", call->name ? call->name : "");
	snprintf(k->name.kernel, sizeof k->name.kernel, "%s", w->be->describe(own));
	k->twin.mask = k->twin.masked = -1;
	gt_twin_describe(&k->twin, call);
	enum gt_code code = w->spec.disturb ? GT_OK : make_twin(w, call, k, err);
	if (code == GT_OK)
		*out = k;
	else
		release_kernel(w, k);
	return code;
}

static enum gt_code launch_kernel(struct gt_dev *w, struct gt_kernel *k, const struct gt_launch *args, struct gt_err *err)
{
	pthread_mutex_lock(&w->lock);
	enum gt_code code = gt_against_launch(w, k, args, err);
	pthread_mutex_unlock(&w->lock);
	return code;
}

/* ---- the device --------------------------------------------------------------------------------------------------------------------- */
/* Sets the functions of the wrapping backend. Those for lists of kernels, graphs and time marks stay NULL, so that the executor calls
 * `launch` for every kernel, which compares it. */
static void set_functions(struct gt_dev *w)
{
	const struct gt_backend *be = w->be;
	w->self = (struct gt_backend){
		.abi = be->abi,
		.name = be->name,
		.host_memory = be->host_memory,
		.probe = be->probe,
		.open = be->open,
		.close = close_both,
		.alloc = alloc_memory,
		.free = free_memory,
		.copy = copy_memory,
		.zero = zero_memory,
		.prepare = prepare_call,
		.release = release_kernel,
		.scratch = scratch_bytes,
		.describe = describe_kernel,
		.launch = launch_kernel,
		.record = record_event,
		.wait = wait_event,
		.sync = sync_stream,
	};
	if (!be->host_alloc)
		return;
	w->self.host_alloc = alloc_host;
	w->self.host_free = free_host;
	w->self.copy_async = copy_queued;
	w->self.host_wait = wait_host;
}

enum gt_code gt_against_wrap(struct gt_device *d, const struct gt_against_spec *spec, const struct gt_dev_opts *opts, struct gt_err *err)
{
	struct gt_dev *w = calloc(1, sizeof *w);
	if (!w || !(w->findings = gt_findings_open())) {
		free(w);
		return gt_fail_memory(err, sizeof *w);
	}
	enum gt_code code = gt_device_open("cpu", opts, &w->cpu, err);
	if (code != GT_OK) {
		gt_findings_close(w->findings);
		free(w);
		return code;
	}
	pthread_mutex_init(&w->lock, NULL);
	w->be = d->be;
	w->dev = d->dev;
	w->spec = *spec;
	w->seed = (uint32_t)spec->disturb;
	set_functions(w);
	d->be = &w->self;
	d->dev = w;
	return GT_OK;
}

/* Returns whether gt_against_wrap has wrapped the device. */
static bool is_wrapped(const struct gt_device *d)
{
	return d->be && d->be->close == close_both;
}

struct gt_dev *gt_against_inner(const struct gt_device *d)
{
	return is_wrapped(d) ? d->dev->dev : d->dev;
}

enum gt_code gt_against_write(const struct gt_device *d, const char *path, struct gt_err *err)
{
	return is_wrapped(d) ? gt_findings_write(d->dev->findings, path, err) : GT_OK;
}
