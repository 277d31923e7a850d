/* sumsq and the updates of the flat parameter arena. One pass reads gradient and state and writes parameter, state and the bf16 copy. The
 * elements of all segments together are divided among the threads, so that short segments do not unbalance them. An update by norms has a
 * pass before, which updates the states and sums squares as sumsq does, in chunks that begin with the segment. */
#include "cpu/loops.h"
#include "cpu/update.h"
#include "optimizer.h"
#include <stdlib.h>
#include <string.h>

#define SUM_CHUNK 4096 /* number of elements of one partial sum; the last bits of the result depend on it */
#define SUM_LANES 32

struct args;
typedef void run_fn(const struct args *c, const void *opt, int64_t begin, int64_t end);
/* Updates the states of at most SUM_CHUNK elements, and sums the squares of the parameters and of the directions. */
typedef void sums_fn(const struct args *c, const void *opt, int64_t begin, int64_t end, double part[2]);

struct chunk {
	int64_t begin, end;
	int seg;
};

struct update {
	struct gt_kernel head;
	enum gt_opcode code;
	run_fn *run;
	sums_fn *sums;       /* NULL: the update is element-wise */
	struct chunk *chunk; /* of an update by norms: the elements of each segment in chunks of SUM_CHUNK */
	int64_t nchunks;
	struct gt_attr_update attr;
	bool f64;
	int64_t total; /* number of elements of all segments */
	struct gt_seg *seg;
	int64_t *start; /* for each segment, the number of elements of all segments before it */
	char *opt;      /* the scalars of each segment at this step, as struct gt_opt_f32 or gt_opt_f64 */
	size_t opt_size;
	int nstate;        /* number of states, which are inputs 2 ... 1 + nstate */
	int scalars, work; /* indices of the inputs `scalars` and `work`; -1: absent */
};

struct args {
	const struct update *k;
	void *p, *state[GT_MAX_STATES];
	const void *g;
	uint16_t *work;
	double *part; /* two sums for each chunk of an update by norms */
	bool nesterov;
};

struct sum_args {
	const void *x;
	int64_t n;
	double *part;
};

#define T float
#define F(name) name##_f32
#include "cpu/update.inc"
#undef T
#undef F
#define T double
#define F(name) name##_f64
#include "cpu/update.inc"
#undef T
#undef F

/* Updates elements [begin, end) of the concatenated segments. */
static void run_range(const void *ctx, int64_t begin, int64_t end)
{
	const struct args *c = ctx;
	const struct update *k = c->k;
	for (int s = 0; s < k->attr.nseg; s++) {
		int64_t n = k->seg[s].end - k->seg[s].begin, b = begin - k->start[s], e = end - k->start[s];
		b = b > 0 ? b : 0;
		e = e < n ? e : n;
		if (b < e)
			k->run(c, k->opt + (size_t)s * k->opt_size, k->seg[s].begin + b, k->seg[s].begin + e);
	}
}

/* Computes the sums of chunks [begin, end). */
static void run_sums(const void *ctx, int64_t begin, int64_t end)
{
	const struct args *c = ctx;
	const struct update *k = c->k;
	for (int64_t i = begin; i < end; i++)
		k->sums(c, k->opt + (size_t)k->chunk[i].seg * k->opt_size, k->chunk[i].begin, k->chunk[i].end, c->part + 2 * i);
}

/* Adds up the sums of the chunks of each segment, and fills in the ratios. */
static void fill_ratios(const struct update *k, double *part)
{
	int64_t first = 0;
	for (int s = 0; s < k->attr.nseg; s++) {
		int64_t n = (k->seg[s].end - k->seg[s].begin + SUM_CHUNK - 1) / SUM_CHUNK;
		double *x = part + 2 * first;
		for (int64_t w = 1; w < n; w *= 2)
			for (int64_t i = 0; i + w < n; i += 2 * w) {
				x[2 * i] += x[2 * (i + w)];
				x[2 * i + 1] += x[2 * (i + w) + 1];
			}
		if (k->f64)
			gt_opt_set_ratio_f64(k->code, &((struct gt_opt_f64 *)k->opt)[s], n ? x[0] : 0, n ? x[1] : 0);
		else
			gt_opt_set_ratio_f32(k->code, &((struct gt_opt_f32 *)k->opt)[s], n ? x[0] : 0, n ? x[1] : 0);
		first += n;
	}
}

static enum gt_code launch_update(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	struct update *k = (struct update *)kernel;
	const struct gt_scalars *scalars = k->scalars >= 0 ? a->in[k->scalars] : NULL;
	struct args c = {
	    .k = k,
	    .p = a->in[0],
	    .g = a->in[1],
	    .work = k->work >= 0 ? a->in[k->work] : NULL,
	    .nesterov = k->attr.nesterov,
	};
	(void)err;
	if (scalars && scalars->skip)
		return GT_OK;
	for (int i = 0; i < k->nstate; i++)
		c.state[i] = a->in[2 + i];
	for (int s = 0; s < k->attr.nseg; s++) {
		if (k->f64)
			((struct gt_opt_f64 *)k->opt)[s] = gt_opt_make_f64(k->code, &k->attr, &k->seg[s], a->step_args, scalars);
		else
			((struct gt_opt_f32 *)k->opt)[s] = gt_opt_make_f32(k->code, &k->attr, &k->seg[s], a->step_args, scalars);
	}
	if (k->sums) {
		c.part = a->scratch;
		gt_cpu_for(dev, k->nchunks, 8, 1, run_sums, &c);
		fill_ratios(k, c.part);
	}
	gt_cpu_for(dev, k->total, 32768, 64, run_range, &c);
	return GT_OK;
}

static void release_update(struct gt_kernel *kernel)
{
	struct update *k = (struct update *)kernel;
	free(k->seg);
	free(k->start);
	free(k->opt);
	free(k->chunk);
	free(k);
}

static const struct row {
	enum gt_opcode code;
	run_fn *f32, *f64;
	sums_fn *sums_f32, *sums_f64; /* NULL: the update is element-wise */
} rows[] = {
#define GT_X(NAME, name, ...) {GT_OP_##NAME, run_##name##_f32, run_##name##_f64, NULL, NULL},
    GT_ELEMENT_UPDATES(GT_X)
#undef GT_X
#define GT_X(NAME, name, ...) {GT_OP_##NAME, run_##name##_f32, run_##name##_f64, sums_##name##_f32, sums_##name##_f64},
    GT_NORM_UPDATES(GT_X)
#undef GT_X
};

/* Returns the row of an operation, or NULL if it is no update of flat parameters. */
static const struct row *row_of(enum gt_opcode code)
{
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].code == code)
			return &rows[i];
	return NULL;
}

/* Divides the segments into chunks. */
static enum gt_code make_chunks(struct update *k, struct gt_err *err)
{
	int64_t n = 0;
	for (int s = 0; s < k->attr.nseg; s++)
		n += (k->seg[s].end - k->seg[s].begin + SUM_CHUNK - 1) / SUM_CHUNK;
	if (!(k->chunk = calloc((size_t)n + 1, sizeof *k->chunk)))
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", (size_t)n * sizeof *k->chunk);
	for (int s = 0; s < k->attr.nseg; s++)
		for (int64_t at = k->seg[s].begin; at < k->seg[s].end; at += SUM_CHUNK) {
			int64_t end = at + SUM_CHUNK < k->seg[s].end ? at + SUM_CHUNK : k->seg[s].end;
			k->chunk[k->nchunks++] = (struct chunk){at, end, s};
		}
	k->head.scratch = (size_t)k->nchunks * 2 * sizeof(double);
	return GT_OK;
}

static enum gt_code prepare_update(const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_update *attr = call->attr;
	const struct row *row = row_of(call->code);
	bool f64 = call->in[0]->dtype == GT_F64;
	struct gt_update_inputs inputs;
	const char *why = gt_update_check(call, &inputs);
	int nseg = attr->nseg;
	struct update *k;
	if (why)
		return gt_cpu_refuse(call, err, why);
	if (inputs.work >= 0 && call->in[inputs.work]->dtype != GT_BF16)
		return gt_cpu_refuse(call, err, "the work copy must be bf16");
	GT_KERNEL_NEW(k, launch_update, gt_opcode_name(call->code), err);
	k->head.release = release_update;
	k->code = call->code;
	k->attr = *attr;
	k->f64 = f64;
	k->run = f64 ? row->f64 : row->f32;
	k->sums = f64 ? row->sums_f64 : row->sums_f32;
	k->opt_size = f64 ? sizeof(struct gt_opt_f64) : sizeof(struct gt_opt_f32);
	k->nstate = inputs.nslots < call->nin - 2 ? inputs.nslots : call->nin - 2;
	k->scalars = inputs.scalars;
	k->work = inputs.work;
	k->seg = calloc((size_t)nseg + 1, sizeof *k->seg);
	k->start = calloc((size_t)nseg + 1, sizeof *k->start);
	k->opt = calloc((size_t)nseg + 1, k->opt_size);
	if (!k->seg || !k->start || !k->opt) {
		release_update(&k->head);
		return gt_fail(err, GT_EFAIL, "out of memory");
	}
	for (int s = 0; s < nseg; s++) {
		k->seg[s] = attr->seg[s];
		k->start[s] = k->total;
		k->total += attr->seg[s].end - attr->seg[s].begin;
	}
	k->attr.seg = k->seg;
	if (k->sums && make_chunks(k, err) != GT_OK) {
		release_update(&k->head);
		return GT_EFAIL;
	}
	k->head.small = gt_cpu_alone(k->total, 32768) && gt_cpu_alone(k->nchunks, 8);
	*out = &k->head;
	return GT_OK;
}

struct gt_cpu_apply gt_cpu_apply_make(enum gt_opcode code, const struct gt_attr_update *attr, const struct gt_step_args *step_args,
                                      const struct gt_scalars *scalars, float *p, void *const *state)
{
	struct gt_cpu_apply a = {.code = code,
	                         .opt = gt_opt_make_f32(code, attr, attr->seg, step_args, scalars),
	                         .nesterov = attr->nesterov,
	                         .p = p};
	const struct gt_update_row *row = gt_update_row(code);
	for (int i = 0; i < row->nslots; i++)
		if (gt_update_has(row, attr, i))
			a.state[i] = *state++;
	return a;
}

void gt_cpu_apply_run(const void *ctx, const float *g, int64_t at, int64_t n)
{
	const struct gt_cpu_apply *a = ctx;
	struct args c = {.p = a->p + at, .g = g, .nesterov = a->nesterov};
	for (int i = 0; i < GT_MAX_STATES; i++)
		c.state[i] = a->state[i] ? a->state[i] + at : NULL;
	row_of(a->code)->f32(&c, &a->opt, 0, n);
}

/* ---- sumsq ------------------------------------------------------------------------------------------------------------------- */
struct sumsq {
	struct gt_kernel head;
	gt_range_fn *run;
	int64_t n, chunks;
	bool add;
};

static enum gt_code launch_sumsq(struct gt_dev *dev, struct gt_kernel *kernel, const struct gt_launch *a, struct gt_err *err)
{
	const struct sumsq *k = (const struct sumsq *)kernel;
	struct sum_args c = {a->in[0], k->n, a->scratch};
	(void)err;
	gt_cpu_for(dev, k->chunks, 16, 1, k->run, &c);
	for (int64_t w = 1; w < k->chunks; w *= 2)
		for (int64_t i = 0; i + w < k->chunks; i += 2 * w)
			c.part[i] += c.part[i + w];
	*(double *)a->out[0] = (k->add ? *(double *)a->out[0] : 0) + (k->chunks ? c.part[0] : 0);
	return GT_OK;
}

static enum gt_code prepare_sumsq(const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_tdesc *x = call->in[0];
	struct sumsq *k;
	GT_KERNEL_NEW(k, launch_sumsq, "sumsq", err);
	k->add = call->accumulate & 1;
	k->n = gt_tdesc_padded(x);
	k->chunks = (k->n + SUM_CHUNK - 1) / SUM_CHUNK;
	k->run = x->dtype == GT_F64 ? run_sumsq_f64 : run_sumsq_f32;
	k->head.scratch = (size_t)k->chunks * sizeof(double);
	k->head.small = gt_cpu_alone(k->chunks, 16);
	*out = &k->head;
	return GT_OK;
}

enum gt_code gt_cpu_update(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	(void)dev;
	return call->code == GT_OP_SUMSQ ? prepare_sumsq(call, out, err) : prepare_update(call, out, err);
}
