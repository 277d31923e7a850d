/* `gtrain run --smoke --against cpu`: repeats the run of the smoke test on the CPU and compares the losses. Then repeats it on the device
 * and compares the results of each operation with the CPU's (against/against.h). */
#include "base/clock.h"
#include "base/fileio.h"
#include "base/json_read.h"
#include "load_number.h"
#include "plan/strategy.h"
#include "report/smoke_parts.h"
#include "session/session.h"
#include "store/ckpt_scan.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FINDINGS (64 << 20) /* maximum size in bytes of a file with the findings of one rank */

/* Maximum relative difference of the losses of two correct runs. Rounding differences grow from step to step, and may change the sign of a
 * value near 0, where relu has a kink. Measured on the simulator: up to 1e-4 in fp32 and 1e-2 in bf16
 * (tests/cudasim/test_cudasim_nets.sh). */
static const double run_limit[] = {
	[GT_PREC_FP32] = 1e-3, [GT_PREC_TF32] = 1e-2, [GT_PREC_BF16] = 5e-2, [GT_PREC_FP16] = 2e-2};

/* The losses of the two runs may differ by this multiple of the change that one rounding error in the result of each operation causes,
 * because most operations round more than once. */
#define AMPLIFIED 10
#define ROUNDINGS 3 /* number of runs with such rounding errors; a single run may miss a value near the kink of a relu */

/* ---- the run on the CPU ------------------------------------------------------------------------------------------------------------- */
/* Sets *out to the precision in which the CPU runs: the one given by --against, else the config's if the CPU supports it, else fp32. */
static enum gt_code find_cpu_precision(const struct gt_smoke_test *s, int *out, struct gt_err *err)
{
	GT_TRY(gt_against_precision(s->opts->against, out, err));
	if (*out < 0)
		*out = s->conf->precision == GT_PREC_BF16 ? GT_PREC_BF16 : GT_PREC_FP32;
	return GT_OK;
}

static enum gt_code add_option(struct gt_smoke_test *s, const char **more, int *n, const char *name, const char *value, struct gt_err *err)
{
	GT_NEW_STR(more[(*n)++], gt_arena_printf(s->arena, "--%s=%s", name, value), err);
	return GT_OK;
}

/* Trains on the CPU. against: the argument of an option --against for this run, or NULL. */
static enum gt_code run_on_cpu(struct gt_smoke_test *s, const char *dir, int precision, const char *against, struct gt_smoke_curve *curve,
                               struct gt_err *err)
{
	const char **more, *set;
	int n;
	GT_TRY(gt_smoke_set_options(s, 4, &more, &n, err));
	if (against)
		GT_TRY(add_option(s, more, &n, "against", against, err));
	GT_NEW_STR(set, gt_arena_printf(s->arena, "precision=\"%s\"", gt_precision_names[precision]), err);
	GT_TRY(add_option(s, more, &n, "set", set, err));
	GT_TRY(add_option(s, more, &n, "device", "cpu", err));
	GT_TRY(add_option(s, more, &n, "out", dir, err));
	s->curve = curve;
	enum gt_code code = gt_smoke_start_ranks(s, s->opts->run_argv, more, n, s->conf->path, err);
	s->curve = NULL;
	return code == GT_OK ? GT_OK : gt_fail_prefix(err, "the run on the CPU");
}

/* ---- two checkpoints ---------------------------------------------------------------------------------------------------------------- */
/* Returns the 2-norm of a - b, divided by the 2-norm of b. */
static double relative_distance(const struct gt_tdesc *d, const void *a, const void *b)
{
	double off = 0, size = 0;
	for (int64_t i = 0; i < gt_tdesc_count(d); i++) {
		double x = gt_load_number(d->dtype, a, i), y = gt_load_number(d->dtype, b, i);
		off += (x - y) * (x - y);
		size += y * y;
	}
	return off == 0 ? 0 : !isfinite(off) ? INFINITY : size > 0 ? sqrt(off / size) : INFINITY;
}

static enum gt_code measure_tensor(const struct gt_ckpt *a, const struct gt_ckpt *b, int file, const struct gt_ckpt_tensor *t, double *out,
                                   struct gt_err *err)
{
	char *x, *y;
	GT_TRY(gt_smoke_read_pair(a, b, file, t, &x, &y, err));
	*out = relative_distance(&t->desc, x, y);
	free(x);
	return GT_OK;
}

static enum gt_code measure_file(struct gt_smoke_test *s, const struct gt_ckpt *a, const struct gt_ckpt *b, int file,
                                 struct gt_against_distance *out, struct gt_err *err)
{
	struct gt_ckpt_tensor t;
	for (; gt_ckpt_tensor_at(a, file, out->tensors, &t); out->tensors++) {
		double d = 0;
		GT_TRY(measure_tensor(a, b, file, &t, &d, err));
		if (d <= out->worst)
			continue;
		out->worst = d;
		GT_NEW_STR(out->tensor, gt_arena_strdup(s->arena, t.name), err);
	}
	return GT_OK;
}

static enum gt_code measure_checkpoints(struct gt_smoke_test *s, const char *dir, struct gt_against_runs *r, struct gt_err *err)
{
	struct gt_ckpt *a, *b;
	GT_TRY(gt_smoke_open_last(s->whole, NULL, &a, err));
	enum gt_code code = gt_smoke_open_last(dir, "latest", &b, err);
	if (code == GT_OK) {
		code = measure_file(s, a, b, GT_CKPT_MODEL, &r->weights, err);
		if (code == GT_OK)
			code = measure_file(s, a, b, GT_CKPT_OPTIMIZER, &r->moments, err);
		gt_ckpt_close(b);
	}
	gt_ckpt_close(a);
	return code;
}

/* ---- both runs ---------------------------------------------------------------------------------------------------------------------- */
static void compare_losses(struct gt_against_runs *r, struct gt_against_pair p)
{
	double size = fmax(fabs(p.device), fabs(p.cpu)), d = fabs(p.device - p.cpu);
	if (isnan(p.device) && isnan(p.cpu))
		return;
	r->equal &= d == 0;
	double relative = d == 0 ? 0 : isfinite(d) ? d / size : INFINITY;
	r->worst = relative > r->worst ? relative : r->worst;
}

static void pair_curves(struct gt_against_runs *r, const struct gt_smoke_curve *device, const struct gt_smoke_curve *cpu)
{
	r->nsteps = GT_AGAINST_STEPS;
	r->nevals = device->nevals < cpu->nevals ? device->nevals : cpu->nevals;
	for (int i = 0; i < r->nsteps; i++) {
		r->loss[i] = (struct gt_against_pair){device->loss[i + 1], cpu->loss[i + 1]};
		compare_losses(r, r->loss[i]);
	}
	for (int i = 0; i < r->nevals; i++) {
		memcpy(r->eval[i].split, device->eval[i].split, sizeof r->eval[i].split);
		r->eval[i].loss = (struct gt_against_pair){device->eval[i].loss, cpu->eval[i].loss};
		r->eval[i].acc = (struct gt_against_pair){device->eval[i].acc, cpu->eval[i].acc};
		compare_losses(r, r->eval[i].loss);
	}
}

/* Raises the limit r->limit if this training amplifies rounding errors. Adam, for example, makes steps of the size of the learning rate
 * even for gradients that consist of rounding errors only. To measure the amplification, trains again on the CPU with a rounding error
 * added to each result of each operation. */
static enum gt_code measure_amplification(struct gt_smoke_test *s, int precision, const struct gt_smoke_curve *cpu,
                                          struct gt_against_runs *r, struct gt_err *err)
{
	for (int i = 1; i <= ROUNDINGS && r->worst > r->limit; i++) {
		struct gt_smoke_curve moved = {0};
		struct gt_against_runs apart = {.equal = true};
		const char *dir, *word;
		GT_NEW_STR(word, gt_arena_printf(s->arena, "%s%d", GT_AGAINST_ROUNDING, i), err);
		GT_NEW_STR(dir, gt_arena_printf(s->arena, "%s/cpu-%s", s->dir, word), err);
		GT_TRY(run_on_cpu(s, dir, precision, word, &moved, err));
		pair_curves(&apart, &moved, cpu);
		r->limit = fmax(r->limit, AMPLIFIED * apart.worst);
	}
	return GT_OK;
}

static enum gt_code compare_runs(struct gt_smoke_test *s, struct gt_against_runs *r, struct gt_err *err)
{
	struct gt_smoke_curve cpu = {0};
	const char *dir;
	double began = gt_clock();
	int precision;
	GT_TRY(find_cpu_precision(s, &precision, err));
	GT_NEW_STR(dir, gt_arena_printf(s->arena, "%s/cpu", s->dir), err);
	GT_TRY(run_on_cpu(s, dir, precision, NULL, &cpu, err));
	gt_smoke_report_phase(s, "cpu", gt_clock_since(began));
	began = gt_clock();
	*r = (struct gt_against_runs){.device = s->opts->device ? s->opts->device : s->conf->device,
	                              .precision = {gt_precision_names[s->conf->precision], gt_precision_names[precision]},
	                              .limit = fmax(run_limit[s->conf->precision], run_limit[precision]),
	                              .equal = true};
	pair_curves(r, &s->device, &cpu);
	if (r->worst > r->limit)
		GT_TRY(measure_amplification(s, precision, &cpu, r, err));
	GT_TRY(measure_checkpoints(s, dir, r, err));
	r->equal &= r->weights.worst == 0 && r->moments.worst == 0;
	s->shown.runs = r;
	gt_smoke_report_phase(s, "runs", gt_clock_since(began));
	return GT_OK;
}

/* ---- operations --------------------------------------------------------------------------------------------------------------------- */
struct rows {
	struct gt_against_operation *v;
	int n, cap;
};

static int class_of(const struct gt_against_operation *o)
{
	return o->differ ? 0 : o->absent ? 1 : 2;
}

static int by_time(const void *a, const void *b)
{
	const struct gt_against_operation *x = a, *y = b;
	int d = (x->step > y->step) - (x->step < y->step);
	return d ? d : (x->before > y->before) - (x->before < y->before);
}

/* Sorts the rows: first the operations that differ, by their first difference, then the operations that were not compared. */
static enum gt_code sort_rows(struct gt_smoke_test *s, const struct rows *rows, struct gt_against_operations *o, struct gt_err *err)
{
	struct gt_against_operation *v;
	int n = 0;
	GT_NEW(v, s->arena, rows->n, err);
	for (int class = 0; class < 3; class++)
		for (int i = 0; i < rows->n; i++)
			if (class_of(&rows->v[i]) == class)
				v[n++] = rows->v[i];
	*o = (struct gt_against_operations){.row = v, .n = n};
	for (int i = 0; i < n; i++) {
		o->differ += v[i].differ > 0;
		o->absent += v[i].absent != NULL;
		o->calls += v[i].absent ? 0 : v[i].calls;
	}
	qsort(v, (size_t)o->differ, sizeof *v, by_time);
	return GT_OK;
}

static enum gt_code read_row(struct gt_smoke_test *s, int rank, const char *line, struct gt_against_operation *o, struct gt_err *err)
{
	const struct gt_json_value *e;
	GT_TRY(gt_json_parse(line, strlen(line), "a comparison", 3, 64, s->arena, &e, err));
	*o = (struct gt_against_operation){
		.rank = rank,
		.operation = gt_json_str(e, "operation"),
		.layer = gt_json_str(e, "layer"),
		.kernel = gt_json_str(e, "kernel"),
		.calls = (int64_t)gt_json_num(e, "calls"),
		.differ = (int64_t)gt_json_num(e, "differ"),
		.share = gt_json_num(e, "share"),
	};
	o->absent = gt_json_text(gt_json_member(e, "absent"));
	if (!o->differ)
		return GT_OK;
	o->step = (int64_t)gt_json_num(e, "step");
	o->before = (int64_t)gt_json_num(e, "before");
	o->operand = gt_json_str(e, "operand");
	o->worst = gt_json_num(e, "worst");
	o->allowed = gt_json_num(e, "allowed");
	for (const struct gt_json_value *v = gt_json_first(e, "at"); v && o->nat < 5; v = v->next)
		o->at[o->nat++] = (int64_t)v->number;
	return GT_OK;
}

/* Reads the file with the findings of one rank, and adds them to the rows. */
static enum gt_code read_findings(struct gt_smoke_test *s, const char *dir, int rank, struct rows *rows, struct gt_err *err)
{
	char path[GT_PATH_SIZE], name[64], *text, *next;
	size_t n;
	enum gt_code code = GT_OK;
	snprintf(name, sizeof name, "operations-%d.jsonl", rank);
	GT_TRY(gt_path_join(path, dir, name, err));
	GT_TRY(gt_file_read(path, MAX_FINDINGS, &text, &n, err));
	for (char *line = strtok_r(text, "\n", &next); line && code == GT_OK; line = strtok_r(NULL, "\n", &next)) {
		code = gt_arena_grow(s->arena, &rows->v, rows->n, &rows->cap, sizeof *rows->v, err);
		if (code == GT_OK)
			code = read_row(s, rank, line, &rows->v[rows->n++], err);
	}
	free(text);
	return code;
}

/* Runs the steps on the device again, and compares each operation. Only one step is queued at a time, so that its values can be read. */
static enum gt_code run_compared(struct gt_smoke_test *s, const char *dir, struct gt_err *err)
{
	static const char *const sets[] = {"window=1", "cuda_graphs=false", "parallel.timeout=600.0"};
	double timeout = s->conf->parallel.timeout;
	const char **more;
	int n, nsets = gt_strategy_of(s->conf->parallel.mode)->ranks == GT_RANKS_PROCESSES ? 3 : 2;
	GT_TRY(gt_smoke_set_options(s, 5, &more, &n, err));
	for (int i = 0; i < nsets; i++)
		GT_TRY(add_option(s, more, &n, "set", sets[i], err));
	GT_TRY(add_option(s, more, &n, "against", s->opts->against, err));
	GT_TRY(add_option(s, more, &n, "out", dir, err));
	/* seconds until this launcher gives up; the comparison makes a step many times longer than the config's timeout assumes */
	s->conf->parallel.timeout = 600;
	enum gt_code code = gt_smoke_start_ranks(s, s->opts->run_argv, more, n, s->conf->path, err);
	s->conf->parallel.timeout = timeout;
	return code == GT_OK ? GT_OK : gt_fail_prefix(err, "the run whose operations are compared");
}

static enum gt_code compare_operations(struct gt_smoke_test *s, struct gt_against_operations *o, struct gt_err *err)
{
	struct rows rows = {0};
	const char *dir;
	double began = gt_clock();
	GT_NEW_STR(dir, gt_arena_printf(s->arena, "%s/operations", s->dir), err);
	GT_TRY(run_compared(s, dir, err));
	for (int i = 0; i < s->plan.ranks; i++)
		GT_TRY(read_findings(s, dir, i, &rows, err));
	GT_TRY(sort_rows(s, &rows, o, err));
	s->shown.operations = o;
	gt_smoke_report_phase(s, "operations", gt_clock_since(began));
	return GT_OK;
}

/* ---- the result --------------------------------------------------------------------------------------------------------------------- */
/* Writes text such as ", and 2 operations were not compared" to buf, or "" if all were compared. */
static const char *absent_text(const struct gt_against_operations *o, char *buf, size_t size)
{
	*buf = 0;
	if (o->absent)
		snprintf(buf, size, "; %d operation%s not compared", o->absent, o->absent == 1 ? " was" : "s were");
	return buf;
}

static enum gt_code judge_result(const struct gt_against_runs *r, const struct gt_against_operations *o, struct gt_err *err)
{
	char absent[80];
	absent_text(o, absent, sizeof absent);
	if (o->differ)
		return gt_fail(err, GT_EDIFFERS, "%d of %d operations differ%s from the CPU's by more than rounding explains, the first of them is "
		               "%s of %s%s",
		               o->differ, o->n, o->differ == 1 ? "s" : "", o->row[0].operation, o->row[0].layer, absent);
	if (r->worst > r->limit)
		return gt_fail(err, GT_EDIFFERS, "the losses of the runs are %.1e apart, more than the %.1e that rounding explains, but no "
		               "operation differs: the order of the work is wrong (streams, graphs, windows); compare with "
		               "-s cuda_graphs=false -s window=1%s",
		               r->worst, r->limit, absent);
	return GT_OK;
}

enum gt_code gt_smoke_against(struct gt_smoke_test *s, struct gt_err *err)
{
	struct gt_against_runs *r;
	struct gt_against_operations *o;
	s->silent = true;
	GT_NEW(r, s->arena, 1, err);
	GT_NEW(o, s->arena, 1, err);
	GT_TRY(compare_runs(s, r, err));
	GT_TRY(compare_operations(s, o, err));
	return judge_result(r, o, err);
}
