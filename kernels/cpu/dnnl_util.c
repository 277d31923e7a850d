#include "cpu/dnnl_util.h"
#include "cpu/loops.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

struct gt_dnnl {
	dnnl_engine_t engine;
	dnnl_stream_t stream;
};

dnnl_engine_t gt_dnnl_engine_of(const struct gt_dnnl *d)
{
	return d->engine;
}

dnnl_engine_t gt_dnnl_engine(const struct gt_dev *dev)
{
	return gt_dnnl_engine_of(gt_cpu_dnnl(dev));
}

static dnnl_stream_t stream_of(const struct gt_dev *dev)
{
	return gt_cpu_dnnl(dev)->stream;
}

void gt_dnnl_close(struct gt_dnnl *d)
{
	if (!d)
		return;
	if (d->stream)
		dnnl_stream_destroy(d->stream);
	if (d->engine)
		dnnl_engine_destroy(d->engine);
	free(d);
}

enum gt_code gt_dnnl_open(struct gt_dnnl **out, struct gt_err *err)
{
	struct gt_dnnl *d = calloc(1, sizeof *d);
	*out = NULL;
	if (!d)
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", sizeof *d);
	if (dnnl_engine_create(&d->engine, dnnl_cpu, 0) != dnnl_success ||
	    dnnl_stream_create(&d->stream, d->engine, dnnl_stream_default_flags) != dnnl_success) {
		gt_dnnl_close(d);
		return gt_fail(err, GT_EUNAVAILABLE, "oneDNN cannot create a CPU engine");
	}
	*out = d;
	return GT_OK;
}

#if defined(__aarch64__)
/* On arm64 the processor is asked directly: there oneDNN reports instruction sets by numbers that its headers do not name and that mean
 * other sets on x86-64. */
const char *gt_dnnl_isa(void)
{
	return getauxval(AT_HWCAP) & HWCAP_SVE ? "sve" : "neon";
}
#else
/* Returns the name of this processor's largest instruction set that both major versions of oneDNN have. oneDNN's value of a set includes
 * the bits of its subsets. */
const char *gt_dnnl_isa(void)
{
	static const struct {
		int isa;
		const char *name;
	} sets[] = {
	    {dnnl_cpu_isa_avx512_core_amx, "avx512_core_amx"},
	    {dnnl_cpu_isa_avx512_core_bf16, "avx512_core_bf16"},
	    {dnnl_cpu_isa_avx512_core_vnni, "avx512_core_vnni"},
	    {dnnl_cpu_isa_avx512_core, "avx512_core"},
	    {dnnl_cpu_isa_avx2_vnni, "avx2_vnni"},
	    {dnnl_cpu_isa_avx2, "avx2"},
	    {dnnl_cpu_isa_avx, "avx"},
	    {dnnl_cpu_isa_sse41, "sse41"},
	};
	int isa = (int)dnnl_get_effective_cpu_isa();
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
		if ((isa & sets[i].isa) == sets[i].isa)
			return sets[i].name;
	return "generic";
}
#endif

void gt_dnnl_version(char *buf, size_t size)
{
	const dnnl_version_t *v = dnnl_version();
	snprintf(buf, size, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
}

enum gt_code gt_dnnl_check(dnnl_status_t s, const struct gt_opcall *call, const char *what, struct gt_err *err)
{
	char why[96];
	if (s == dnnl_success)
		return GT_OK;
	if (s == dnnl_out_of_memory)
		return gt_fail(err, GT_EFAIL, "out of memory in oneDNN (%s)", what);
	snprintf(why, sizeof why, s == dnnl_unimplemented ? "oneDNN has no %s for these shapes and "
	         "types" : "oneDNN: %s: status %d", what, (int)s);
	return gt_opcall_refuse(call, err, why);
}

/* Returns oneDNN's name of a dtype, or dnnl_data_type_undef if oneDNN does not support the dtype. */
static dnnl_data_type_t dnnl_dtype(enum gt_dtype t)
{
	switch (t) {
	case GT_F32:
		return dnnl_f32;
	case GT_BF16:
		return dnnl_bf16;
	case GT_F16:
		return dnnl_f16;
	case GT_I32:
		return dnnl_s32;
	case GT_U8:
		return dnnl_u8;
	default:
		return dnnl_data_type_undef;
	}
}

/* ---- layouts ----------------------------------------------------------------------------------------------------------------- */
/* Returns a descriptor with the shape and dtype of d, without a layout. */
static struct gt_dnnl_md start_md(const struct gt_tdesc *d, int64_t groups)
{
	struct gt_dnnl_md md = {.dtype = dnnl_dtype(d->dtype)};
	if (groups > 1)
		md.dims[md.ndims++] = groups;
	for (int i = 0; i < d->rank; i++)
		md.dims[md.ndims++] = i || groups <= 1 ? d->dim[i] : d->dim[0] / groups;
	return md;
}

struct gt_dnnl_md gt_dnnl_md_any(const struct gt_tdesc *d, int64_t groups)
{
	struct gt_dnnl_md md = start_md(d, groups);
	md.any = true;
	return md;
}

/* Returns the number of elements of dimension i in one block of the layout. */
static int64_t block_of(const struct gt_layout *l, int i)
{
	int64_t p = 1;
	for (int b = 0; b < l->nblk; b++)
		if (l->blk_dim[b] == i)
			p *= l->blk[b];
	return p;
}

enum gt_code gt_dnnl_md(const struct gt_tdesc *d, int64_t groups, struct gt_dnnl_md *md, struct gt_err *err)
{
	const struct gt_layout *l = &d->layout;
	int64_t stride = 1, s[GT_MAX_RANK] = {0};
	*md = start_md(d, groups);
	/* g: number of dimensions that oneDNN has before ours, for the groups. o: its dimension (groups or output channels) that is divided
	 * into blocks where our dimension 0 is */
	int g = groups > 1, o = g && md->dims[1] > 1;
	if (md->dtype == dnnl_data_type_undef || d->any)
		return gt_fail(err, GT_EINTERNAL, "a tensor without dtype or layout reached oneDNN");
	for (int b = 0; b < l->nblk; b++)
		stride *= l->blk[b];
	for (int i = d->rank - 1; i >= 0; i--) {
		int k = l->order[i];
		int64_t p = block_of(l, k);
		s[k] = stride;
		stride *= (d->dim[k] + p - 1) / p;
	}
	/* With groups, dimension 0 is g * (O/g) + o, and its blocks must not extend over two groups. */
	md->strides[0] = s[0];
	if (g) {
		if (o && md->dims[1] % block_of(l, 0))
			return gt_fail(err, GT_EINTERNAL, "oneDNN chose a layout of these convolution weights in which one block has channels of two "
			               "groups");
		md->strides[0] = o ? s[0] * (md->dims[1] / block_of(l, 0)) : s[0];
		md->strides[1] = s[0];
	}
	for (int i = 1; i < d->rank; i++)
		md->strides[i + g] = s[i];
	md->nblk = l->nblk;
	for (int b = 0; b < l->nblk; b++) {
		int k = l->blk_dim[b];
		md->blk[b] = l->blk[b];
		md->blk_dim[b] = k ? k + g : o;
	}
	memcpy(md->padded, md->dims, sizeof md->dims);
	for (int i = 0; i < d->rank; i++) {
		int k = i ? i + g : o;
		int64_t p = block_of(l, i);
		md->padded[k] = (md->dims[k] + p - 1) / p * p;
	}
	return GT_OK;
}

enum gt_code gt_dnnl_md_part(const struct gt_tdesc *d, int i, int64_t n, struct gt_dnnl_md *md, struct gt_err *err)
{
	if (block_of(&d->layout, i) != 1)
		return gt_fail(err, GT_EINTERNAL, "cannot take a part of a tensor along a blocked dimension");
	GT_TRY(gt_dnnl_md(d, 1, md, err));
	md->dims[i] = md->padded[i] = n;
	return GT_OK;
}

bool gt_dnnl_layout(gt_dnnl_ref ref, const struct gt_tdesc *d, int64_t groups, struct gt_layout *out)
{
	struct gt_tdesc t = *d;
	struct gt_err err;
	struct gt_dnnl_md md, back;
	int64_t s[GT_MAX_RANK];
	if (!gt_dnnl_md_read(ref, &md))
		return false;
	int g = groups > 1, o = g && md.dims[1] > 1; /* as in gt_dnnl_md */
	memset(&t.layout, 0, sizeof t.layout);
	t.any = false;
	for (int i = 0; i < md.nblk; i++) {
		int k = md.blk_dim[i];
		if (md.blk[i] > 255 || (g && k < 2 && k != o))
			return false;
		t.layout.blk[i] = (uint8_t)md.blk[i];
		t.layout.blk_dim[i] = (uint8_t)(g ? (k < 2 ? 0 : k - 1) : k);
	}
	t.layout.nblk = (uint8_t)md.nblk;
	/* Dimensions are ordered by stride, largest first. Dimensions of equal stride (of one element) keep their logical order. */
	for (int i = 0; i < d->rank; i++) {
		s[i] = md.strides[i ? i + g : o];
		t.layout.order[i] = (uint8_t)i;
	}
	for (int i = 1; i < d->rank; i++)
		for (int j = i; j > 0 && s[t.layout.order[j]] > s[t.layout.order[j - 1]]; j--) {
			uint8_t swap = t.layout.order[j];
			t.layout.order[j] = t.layout.order[j - 1];
			t.layout.order[j - 1] = swap;
		}
	/* The layout is accepted only if it converts back to the same descriptor. */
	if (gt_dnnl_md(&t, groups, &back, &err) != GT_OK || !gt_dnnl_md_is(&back, ref) || dnnl_memory_desc_get_size(ref) != gt_tdesc_bytes(&t))
		return false;
	*out = t.layout;
	return true;
}

/* ---- kernels that are lists of primitives ------------------------------------------------------------------------------------------- */
GT_CLONES static void add_range(float *restrict dst, const float *restrict src, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		dst[i] += src[i];
}

/* dst[i] += src[i], or dst[i] = src[i] if add is false. */
static void add_f32(int threads, float *dst, const float *src, int64_t n, bool add)
{
	const int64_t chunk = 16384;
#pragma omp parallel for schedule(static) num_threads(threads) if (n > 2 * chunk)
	for (int64_t i = 0; i < n; i += chunk) {
		int64_t m = n - i < chunk ? n - i : chunk;
		if (add)
			add_range(dst + i, src + i, m);
		else
			memcpy(dst + i, src + i, (size_t)m * sizeof *dst);
	}
}

static enum gt_code set_handles(struct gt_dnnl_kernel *k, const struct gt_launch *a, int slice, struct gt_err *err)
{
	for (int i = 0; i < k->ntensors; i++) {
		struct gt_dnnl_tensor *t = &k->tensors[i];
		char *p = t->where == GT_DNNL_IN ? a->in[t->index] : t->where == GT_DNNL_OUT ? a->out[t->index] : (char *)a->scratch + t->offset;
		p += (size_t)slice * t->stride;
		if (p == t->last)
			continue;
		if (dnnl_memory_set_data_handle(t->mem, p) != dnnl_success)
			return gt_fail(err, GT_EINTERNAL, "%s: oneDNN rejects the address of an operand", k->text);
		t->last = p;
	}
	return GT_OK;
}

/* Executes a step that is a loop, for one slice of k->slices. */
static void loop_step(struct gt_dev *dev, const struct gt_dnnl_kernel *k, const struct gt_dnnl_step *s, const struct gt_launch *a,
                      int slice)
{
	float *scratch = (float *)((char *)a->scratch + s->offset);
	int64_t at = s->moves ? slice * s->count : 0; /* index of the slice's first element of the operand */
	switch (s->action) {
	case GT_DNNL_SUM:
		add_f32(gt_cpu_threads(dev), (float *)a->out[s->operand] + at, scratch, s->count, s->add || (slice && !s->moves));
		break;
	case GT_DNNL_FINISH:
		if (s->moves || slice == k->slices - 1) {
			size_t offset = (size_t)at * gt_dtype_size(s->type);
			const char *res = s->res < 0 ? NULL : (const char *)a->in[s->res] + offset;
			gt_cpu_finish(dev, s->type, s->act, (char *)a->out[s->operand] + offset, res, s->count);
		}
		break;
	case GT_DNNL_WIDEN:
		gt_cpu_widen(dev, scratch, (const uint16_t *)a->in[s->operand] + at, s->count);
		break;
	case GT_DNNL_PAIR:
		gt_cpu_pair_rows(dev, s->operand < 0 ? scratch : a->out[s->operand], s->count, s->rows, s->cols);
		break;
	case GT_DNNL_NARROW:
		gt_cpu_narrow(dev, (uint16_t *)a->out[s->operand] + at, scratch, s->count);
		break;
	case GT_DNNL_EXECUTE:
		break;
	}
}

static enum gt_code list_launch(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct gt_dnnl_kernel *k = (struct gt_dnnl_kernel *)head;
	dnnl_stream_t stream = stream_of(dev);
	for (int slice = 0; slice < k->slices; slice++) {
		GT_TRY(set_handles(k, a, slice, err));
		for (int i = 0; i < k->nsteps; i++) {
			const struct gt_dnnl_step *s = &k->steps[i];
			if (s->once && slice)
				continue;
			if (s->action != GT_DNNL_EXECUTE) {
				loop_step(dev, k, s, a, slice);
				continue;
			}
			dnnl_status_t st = dnnl_primitive_execute(s->prim, stream, s->nargs, s->args);
			if (st != dnnl_success)
				return gt_fail(err, GT_EINTERNAL, "%s: oneDNN could not execute: status %d", k->text, (int)st);
		}
	}
	return GT_OK;
}

void gt_dnnl_kernel_release(struct gt_kernel *head)
{
	struct gt_dnnl_kernel *k = (struct gt_dnnl_kernel *)head;
	for (int i = 0; i < k->nsteps; i++)
		if (k->steps[i].prim)
			dnnl_primitive_destroy(k->steps[i].prim);
	for (int i = 0; i < k->ntensors; i++)
		dnnl_memory_destroy(k->tensors[i].mem);
	free(k);
}

enum gt_code gt_dnnl_kernel_make(struct gt_dnnl_kernel **out, struct gt_err *err)
{
	struct gt_dnnl_kernel *k = calloc(1, sizeof *k);
	*out = k;
	if (!k)
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", sizeof *k);
	k->slices = 1;
	k->head.launch = list_launch;
	k->head.release = gt_dnnl_kernel_release;
	k->head.describe = k->text;
	return GT_OK;
}

/* Adds mem to the kernel's list of tensors. A scratch tensor gets its offset in the workspace. */
static enum gt_code add_memory(struct gt_dnnl_kernel *k, dnnl_status_t made, const dnnl_memory_t *mem, int where, int index,
                               struct gt_err *err)
{
	gt_dnnl_ref ref;
	if (made != dnnl_success || dnnl_memory_get_memory_desc(*mem, &ref) != dnnl_success)
		return gt_fail(err, GT_EFAIL, "oneDNN cannot create a memory object: status %d", (int)made);
	struct gt_dnnl_tensor *t = &k->tensors[k->ntensors++];
	*t = (struct gt_dnnl_tensor){.mem = *mem, .where = (uint8_t)where, .index = (uint8_t)index};
	if (where == GT_DNNL_SCRATCH) {
		t->offset = k->head.scratch;
		k->head.scratch += (dnnl_memory_desc_get_size(ref) + 63) & ~(size_t)63;
	}
	return GT_OK;
}

enum gt_code gt_dnnl_tensor_add(struct gt_dev *dev, struct gt_dnnl_kernel *k, const struct gt_dnnl_md *md, int where, int index,
                                dnnl_memory_t *mem, struct gt_err *err)
{
	if (k->ntensors == GT_DNNL_MAX_TENSORS)
		return gt_fail(err, GT_EINTERNAL, "too many tensors in a list kernel");
	return add_memory(k, gt_dnnl_memory(gt_dnnl_engine(dev), md, mem), mem, where, index, err);
}

enum gt_code gt_dnnl_ref_add(struct gt_dev *dev, struct gt_dnnl_kernel *k, gt_dnnl_ref ref, int where, int index, dnnl_memory_t *mem,
                             struct gt_err *err)
{
	if (k->ntensors == GT_DNNL_MAX_TENSORS)
		return gt_fail(err, GT_EINTERNAL, "too many tensors in a list kernel");
	return add_memory(k, dnnl_memory_create(mem, ref, gt_dnnl_engine(dev), DNNL_MEMORY_NONE), mem, where, index, err);
}

static struct gt_dnnl_tensor *tensor_of(struct gt_dnnl_kernel *k, dnnl_memory_t mem)
{
	for (int i = 0; i < k->ntensors; i++)
		if (k->tensors[i].mem == mem)
			return &k->tensors[i];
	return NULL;
}

enum gt_code gt_dnnl_step_add(struct gt_dev *dev, struct gt_dnnl_kernel *k, dnnl_primitive_desc_t pd, const dnnl_exec_arg_t *args,
                              int nargs, struct gt_err *err)
{
	struct gt_dnnl_step *s = &k->steps[k->nsteps];
	gt_dnnl_ref pad = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
	enum gt_code code = GT_OK;
	if (k->nsteps == GT_DNNL_MAX_STEPS || nargs >= GT_DNNL_MAX_ARGS)
		code = gt_fail(err, GT_EINTERNAL, "too many steps in a list kernel");
	else if (dnnl_primitive_create(&s->prim, pd) != dnnl_success)
		code = gt_fail(err, GT_EFAIL, "oneDNN cannot create a primitive");
	if (code == GT_OK) {
		k->nsteps++;
		memcpy(s->args, args, sizeof *args * (size_t)nargs);
		s->nargs = nargs;
		if (pad && dnnl_memory_desc_get_size(pad)) {
			s->args[nargs].arg = DNNL_ARG_SCRATCHPAD;
			code = gt_dnnl_ref_add(dev, k, pad, GT_DNNL_SCRATCH, 0, &s->args[nargs].memory, err);
			s->nargs++;
		}
	}
	dnnl_primitive_desc_destroy(pd);
	return code;
}

enum gt_code gt_dnnl_reorder_add(struct gt_dev *dev, struct gt_dnnl_kernel *k, dnnl_memory_t from, dnnl_memory_t to, struct gt_err *err)
{
	dnnl_primitive_attr_t attr;
	dnnl_primitive_desc_t pd;
	dnnl_status_t st;
	gt_dnnl_ref a, b;
	dnnl_memory_get_memory_desc(from, &a);
	dnnl_memory_get_memory_desc(to, &b);
	GT_TRY(gt_dnnl_attr(&attr, err));
	st = dnnl_reorder_primitive_desc_create(&pd, a, gt_dnnl_engine(dev), b, gt_dnnl_engine(dev), attr);
	dnnl_primitive_attr_destroy(attr);
	if (st != dnnl_success)
		return gt_fail(err, GT_EUNAVAILABLE, "oneDNN has no reorder between two layouts of the weights (status %d)", (int)st);
	dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
	return gt_dnnl_step_add(dev, k, pd, args, 2, err);
}

void gt_dnnl_slice(struct gt_dnnl_kernel *k, dnnl_memory_t mem, size_t stride)
{
	tensor_of(k, mem)->stride = stride;
}

/* Adds a step that is a loop. mem is its tensor in the workspace, or NULL if it has none. */
static enum gt_code loop_add(struct gt_dnnl_kernel *k, dnnl_memory_t mem, const struct gt_dnnl_step *step, struct gt_err *err)
{
	struct gt_dnnl_tensor *t = mem ? tensor_of(k, mem) : NULL;
	if (k->nsteps == GT_DNNL_MAX_STEPS)
		return gt_fail(err, GT_EINTERNAL, "too many steps in a list kernel");
	if (mem && (!t || t->where != GT_DNNL_SCRATCH))
		return gt_fail(err, GT_EINTERNAL, "a step of a list kernel has no scratch tensor");
	k->steps[k->nsteps] = *step;
	k->steps[k->nsteps++].offset = t ? t->offset : 0;
	return GT_OK;
}

enum gt_code gt_dnnl_pair_add(struct gt_dnnl_kernel *k, dnnl_memory_t mem, int64_t count, int64_t rows, int64_t cols, struct gt_err *err)
{
	struct gt_dnnl_step step = {.action = GT_DNNL_PAIR, .operand = mem ? -1 : 0, .count = count, .rows = rows, .cols = cols};
	return loop_add(k, mem, &step, err);
}

enum gt_code gt_dnnl_sum_add(struct gt_dnnl_kernel *k, int index, dnnl_memory_t mem, int64_t count, bool add, bool moves,
                             struct gt_err *err)
{
	return loop_add(k, mem, &(struct gt_dnnl_step){.action = GT_DNNL_SUM, .operand = index, .count = count, .add = add, .moves = moves},
	                err);
}

enum gt_code gt_dnnl_finish_add(struct gt_dnnl_kernel *k, const struct gt_tdesc *y, int act, int res, bool moves, struct gt_err *err)
{
	int64_t count = gt_tdesc_padded(y) / (moves ? k->slices : 1);
	return loop_add(
	    k, NULL,
	    &(struct gt_dnnl_step){.action = GT_DNNL_FINISH, .count = count, .type = y->dtype, .act = act, .res = res, .moves = moves}, err);
}

enum gt_code gt_dnnl_widen_add(struct gt_dev *dev, struct gt_dnnl_kernel *k, const struct gt_dnnl_md *md, int index, int64_t count,
                               bool moves, dnnl_memory_t *mem, struct gt_err *err)
{
	GT_TRY(gt_dnnl_tensor_add(dev, k, md, GT_DNNL_SCRATCH, 0, mem, err));
	return loop_add(
	    k, *mem, &(struct gt_dnnl_step){.action = GT_DNNL_WIDEN, .operand = index, .count = count, .moves = moves, .once = !moves}, err);
}

enum gt_code gt_dnnl_narrow_add(struct gt_dnnl_kernel *k, dnnl_memory_t mem, int64_t count, struct gt_err *err)
{
	return loop_add(k, mem, &(struct gt_dnnl_step){.action = GT_DNNL_NARROW, .count = count, .moves = true}, err);
}

enum gt_code gt_dnnl_attr(dnnl_primitive_attr_t *out, struct gt_err *err)
{
	dnnl_status_t st = dnnl_primitive_attr_create(out);
	if (st == dnnl_success)
		st = dnnl_primitive_attr_set_scratchpad_mode(*out, dnnl_scratchpad_mode_user);
	return st == dnnl_success ? GT_OK : gt_fail(err, GT_EFAIL, "oneDNN rejects the attributes of a primitive: status %d", (int)st);
}

const char *gt_dnnl_impl(const_dnnl_primitive_desc_t pd)
{
	const char *s = NULL;
	dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &s);
	return s ? s : "?";
}

bool gt_dnnl_reference(const_dnnl_primitive_desc_t pd)
{
	return strstr(gt_dnnl_impl(pd), "ref") != NULL;
}

bool gt_dnnl_slow(const_dnnl_primitive_desc_t pd)
{
	const char *s = gt_dnnl_impl(pd);
	return strstr(s, "ref") || (strstr(s, "gemm") && !strstr(s, "brgemm"));
}
