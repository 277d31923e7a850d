/* sumsq and the updates of the flat parameter arena. One pass reads gradient and state and writes parameter, state and the bf16 copy. The
 * elements of all segments together are divided among the threads, so that short segments do not make the division uneven. An update by
 * norms first makes a pass that updates the states and sums squares as sumsq does, in chunks of each segment. */
#include "cpu/loops.h"
#include "cpu/update.h"
#include "optimizer.h"
#include <stdlib.h>
#include <string.h>

#define SUM_CHUNK 4096 /* number of elements of one partial sum; the last bits of the result depend on it */
#define SUM_LANES 32

/* The arguments of the update loops: addresses of the operands, and the optimizer's flag nesterov. */
struct args {
	void *p, *state[GT_MAX_STATES];
	const void *g;
	uint16_t *work;
	bool nesterov;
};

typedef void run_fn(const struct args *c, const void *opt, int64_t begin, int64_t end);
/* Updates the states of at most SUM_CHUNK elements, and sums the squares of the parameters and of their directions. */
typedef void sums_fn(const struct args *c, const void *opt, int64_t begin, int64_t end, double part[2]);

struct chunk {
	int64_t begin, end;
	int seg;
};

struct update {
	struct gt_cpu_loop loop; /* loop over the elements of all segments */
	struct args args;
	const struct gt_scalars *scalars;
	enum gt_opcode code;
	run_fn *run;
	sums_fn *sums;       /* NULL: the update is element-wise */
	struct chunk *chunk; /* update by norms: the chunks of SUM_CHUNK elements of each segment */
	int64_t nchunks;
	double *part;        /* two sums for each chunk of an update by norms */
	struct gt_attr_update attr;
	bool f64;
	struct gt_seg *seg;
	int64_t *start; /* for each segment, the number of elements in all segments before it */
	char *opt;      /* the scalars of each segment at this step, as struct gt_opt_f32 or gt_opt_f64 */
	size_t opt_size;
};

struct sumsq {
	struct gt_cpu_loop loop; /* over chunks */
	const void *flat;
	double *scalar;
	double *part; /* the sum of each chunk */
	int64_t count;
	bool add;
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
	const struct update *k = ctx;
	for (int s = 0; s < k->attr.nseg; s++) {
		int64_t n = k->seg[s].end - k->seg[s].begin, b = begin - k->start[s], e = end - k->start[s];
		b = b > 0 ? b : 0;
		e = e < n ? e : n;
		if (b < e)
			k->run(&k->args, k->opt + (size_t)s * k->opt_size, k->seg[s].begin + b, k->seg[s].begin + e);
	}
}

/* Computes the sums of chunks [begin, end). */
static void run_sums(const void *ctx, int64_t begin, int64_t end)
{
	const struct update *k = ctx;
	for (int64_t i = begin; i < end; i++)
		k->sums(&k->args, k->opt + (size_t)k->chunk[i].seg * k->opt_size, k->chunk[i].begin, k->chunk[i].end, k->part + 2 * i);
}

/* Adds up the sums of the chunks of each segment, and fills in the ratios. */
static void fill_ratios(const struct update *k)
{
	int64_t first = 0;
	for (int s = 0; s < k->attr.nseg; s++) {
		int64_t n = (k->seg[s].end - k->seg[s].begin + SUM_CHUNK - 1) / SUM_CHUNK;
		double *x = k->part + 2 * first;
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

static enum gt_code launch_update(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct update *k = gt_cpu_loop_bind(head, a);
	(void)err;
	if (k->scalars && k->scalars->skip)
		return GT_OK;
	for (int s = 0; s < k->attr.nseg; s++) {
		if (k->f64)
			((struct gt_opt_f64 *)k->opt)[s] = gt_opt_make_f64(k->code, &k->attr, &k->seg[s], a->step_args, k->scalars);
		else
			((struct gt_opt_f32 *)k->opt)[s] = gt_opt_make_f32(k->code, &k->attr, &k->seg[s], a->step_args, k->scalars);
	}
	if (k->sums) {
		k->part = a->scratch;
		gt_cpu_for(dev, k->nchunks, 8, 1, run_sums, k);
		fill_ratios(k);
	}
	gt_cpu_for(dev, k->loop.n, k->loop.grain, 64, run_range, k);
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
	k->loop.head.scratch = (size_t)k->nchunks * 2 * sizeof(double);
	return GT_OK;
}

enum gt_code gt_cpu_update(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	struct gt_operand_slot slots[4 + GT_MAX_STATES] = {
	    GT_SLOT_AS(update, "scalars", scalars), GT_SLOT_AS(update, "p", args.p), GT_SLOT_AS(update, "g", args.g),
	    GT_SLOT_AS(update, "work", args.work)};
	const struct gt_attr_update *attr = call->attr;
	const struct row *row = row_of(call->code);
	const struct gt_tdesc *work = gt_opcall_operand(call, "work");
	bool f64 = gt_opcall_operand(call, "p")->dtype == GT_F64;
	const char *why = gt_update_check(call);
	int nseg = attr->nseg;
	struct update *k;
	(void)dev;
	if (why)
		return gt_opcall_refuse(call, err, why);
	if (work && work->dtype != GT_BF16)
		return gt_opcall_refuse(call, err, "the work copy must be bf16");
	GT_KERNEL_NEW(k, err);
	size_t n = gt_update_slots(call->code, slots, 4, offsetof(struct update, args.state));
	gt_cpu_loop_init(&k->loop, slots, n, call, gt_opcode_name(call->code));
	k->loop.head.launch = launch_update;
	k->loop.head.release = release_update;
	k->code = call->code;
	k->attr = *attr;
	k->args.nesterov = attr->nesterov;
	k->f64 = f64;
	k->run = f64 ? row->f64 : row->f32;
	k->sums = f64 ? row->sums_f64 : row->sums_f32;
	k->opt_size = f64 ? sizeof(struct gt_opt_f64) : sizeof(struct gt_opt_f32);
	k->seg = calloc((size_t)nseg + 1, sizeof *k->seg);
	k->start = calloc((size_t)nseg + 1, sizeof *k->start);
	k->opt = calloc((size_t)nseg + 1, k->opt_size);
	if (!k->seg || !k->start || !k->opt) {
		release_update(&k->loop.head);
		return gt_fail(err, GT_EFAIL, "out of memory");
	}
	int64_t total = 0;
	for (int s = 0; s < nseg; s++) {
		k->seg[s] = attr->seg[s];
		k->start[s] = total;
		total += attr->seg[s].end - attr->seg[s].begin;
	}
	k->attr.seg = k->seg;
	if (k->sums && make_chunks(k, err) != GT_OK) {
		release_update(&k->loop.head);
		return GT_EFAIL;
	}
	gt_cpu_loop_over(&k->loop, run_range, total, 32768);
	k->loop.head.small = gt_cpu_alone(total, 32768) && gt_cpu_alone(k->nchunks, 8);
	*out = &k->loop.head;
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
static enum gt_code launch_sumsq(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	struct sumsq *k = gt_cpu_loop_bind(head, a);
	int64_t n = k->loop.n;
	(void)err;
	k->part = a->scratch;
	gt_cpu_for(dev, n, 16, 1, k->loop.fn, k);
	for (int64_t w = 1; w < n; w *= 2)
		for (int64_t i = 0; i + w < n; i += 2 * w)
			k->part[i] += k->part[i + w];
	*k->scalar = (k->add ? *k->scalar : 0) + (n ? k->part[0] : 0);
	return GT_OK;
}

enum gt_code gt_cpu_sumsq(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	static const struct gt_operand_slot slots[] = {GT_SLOTS(sumsq, flat, scalar)};
	const struct gt_tdesc *x = gt_opcall_operand(call, "flat");
	struct sumsq *k;
	(void)dev;
	GT_LOOP_NEW(k, slots, call, "sumsq", err);
	k->loop.head.launch = launch_sumsq;
	k->add = gt_opcall_adds(call, "scalar");
	k->count = gt_tdesc_padded(x);
	gt_cpu_loop_over(&k->loop, x->dtype == GT_F64 ? run_sumsq_f64 : run_sumsq_f32, (k->count + SUM_CHUNK - 1) / SUM_CHUNK, 16);
	k->loop.head.scratch = (size_t)k->loop.n * sizeof(double);
	k->loop.head.small = gt_cpu_alone(k->loop.n, k->loop.grain);
	*out = &k->loop.head;
	return GT_OK;
}
