/* The phases "cpu", "runs" and "operations" of `gtrain run --smoke --against`, as text and as JSON. */
#include "against_view.h"
#include "commands.h"
#include "gtrain_against.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define INDENT "                     " /* indentation of the lines that are printed below the text of a phase */

/* ---- text --------------------------------------------------------------------------------------------------------------------------- */
static void print_pair(struct gt_cli *cli, const char *what, struct gt_against_pair p)
{
	char a[GT_UNITS], b[GT_UNITS];
	double size = fmax(fabs(p.device), fabs(p.cpu)), apart = fabs(p.device - p.cpu);
	gt_out(cli, INDENT "%-14s %10s %10s   ", what, gt_units_loss(a, p.device), gt_units_loss(b, p.cpu));
	if (apart == 0)
		gt_out(cli, "equal\n");
	else
		gt_out(cli, "%.1e apart\n", size > 0 ? apart / size : apart);
}

static void print_distance(struct gt_cli *cli, const char *what, const struct gt_against_distance *d)
{
	char clean[256];
	if (!d->tensors)
		return;
	gt_out(cli, INDENT "%-14s %d tensor%s ", what, d->tensors, d->tensors == 1 ? "" : "s");
	if (d->tensor)
		gt_out(cli, "at most %.1e apart: %s\n", d->worst, gt_cli_printable(d->tensor, clean, sizeof clean));
	else
		gt_out(cli, "equal\n");
}

void gt_against_print_runs(struct gt_cli *cli, const struct gt_against_runs *r)
{
	char what[64];
	for (int i = 0; i < r->nsteps; i++) {
		snprintf(what, sizeof what, "loss, step %d", i + 1);
		print_pair(cli, what, r->loss[i]);
	}
	for (int i = 0; i < r->nevals; i++) {
		snprintf(what, sizeof what, "loss, %s", r->eval[i].split);
		print_pair(cli, what, r->eval[i].loss);
		snprintf(what, sizeof what, "acc, %s", r->eval[i].split);
		if (!isnan(r->eval[i].acc.device))
			print_pair(cli, what, r->eval[i].acc);
	}
	print_distance(cli, "weights", &r->weights);
	print_distance(cli, "moments", &r->moments);
}

void gt_against_runs_text(const struct gt_against_runs *r, char *buf, size_t size)
{
	bool other = strcmp(r->precision[0], r->precision[1]) != 0;
	if (r->equal)
		snprintf(buf, size, "equal: losses, weights and moments of %s (%s) and of the CPU (%s)", r->device, r->precision[0],
		         r->precision[1]);
	else if (other)
		snprintf(buf, size, "a difference of precision: %s computes in %s, the CPU in %s; losses at most %.1e apart (limit %.1e)",
		         r->device, r->precision[0], r->precision[1], r->worst, r->limit);
	else
		snprintf(buf, size, "losses of %s and of the CPU at most %.1e apart (limit %.1e), %s", r->device, r->worst, r->limit,
		         r->precision[0]);
}

/* Writes the operation, the layer and the kernel to buf: "conv2d.dw of layer2.0.conv1 (cudnn:57)". */
static void name_operation(const struct gt_against_operation *o, char *buf, size_t size)
{
	char text[400], rank[32] = "";
	if (o->rank)
		snprintf(rank, sizeof rank, " on rank %d", o->rank);
	snprintf(text, sizeof text, "%s of %s (%s)%s", o->operation, o->layer, o->kernel, rank);
	gt_cli_printable(text, buf, size);
}

/* Describes the first call whose result differs, with its worst difference and the tolerance: "step 3: conv2d.dw of layer2.0.conv1
 * (cudnn:57): dw: worst 3.1e-2 of 1.6e-2 at [12, 3, 0, 1]; 41 operations before it agree". */
static void difference_text(const struct gt_against_operation *o, char *buf, size_t size)
{
	char name[400], at[128] = "the padding";
	name_operation(o, name, sizeof name);
	for (int i = 0, n = 0; i < o->nat; i++)
		n += snprintf(at + n, sizeof at - (size_t)n, "%s%" PRId64 "%s", i ? ", " : "[", o->at[i], i + 1 == o->nat ? "]" : "");
	snprintf(buf, size, "step %" PRId64 ": %s: worst %.1e of %.1e at %s of %s; %" PRId64 " operation%s before it agree%s", o->step, name,
	         o->worst, o->allowed, at, o->operand, o->before, o->before == 1 ? "" : "s", o->before == 1 ? "s" : "");
}

void gt_against_print_operations(struct gt_cli *cli, const struct gt_against_operations *r)
{
	char text[1024], name[400], why[420];
	for (int i = 0; i < r->n; i++) {
		const struct gt_against_operation *o = &r->row[i];
		if (o->differ) {
			difference_text(o, text, sizeof text);
			gt_out(cli, INDENT "%s\n", text);
		} else if (o->absent) {
			name_operation(o, name, sizeof name);
			gt_out(cli, INDENT "not compared: %s: %s\n", name, gt_cli_printable(o->absent, why, sizeof why));
		}
	}
}

void gt_against_operations_text(const struct gt_against_operations *r, char *buf, size_t size)
{
	char absent[64] = "";
	if (r->absent)
		snprintf(absent, sizeof absent, "; %d not compared", r->absent);
	snprintf(buf, size, "%" PRId64 " calls of %d operations compared: %d differ%s%s", r->calls, r->n - r->absent, r->differ,
	         r->differ == 1 ? "s" : "", absent);
}

/* ---- JSON --------------------------------------------------------------------------------------------------------------------------- */
static void write_pair(struct gt_json *j, const char *key, struct gt_against_pair p)
{
	gt_json_row(j, key, GT_NUM("device", p.device, 9), GT_NUM("cpu", p.cpu, 9));
}

static void write_distance(struct gt_json *j, const char *key, const struct gt_against_distance *d)
{
	gt_json_row(j, key, GT_NUM("worst", d->worst, 6), GT_STR("tensor", d->tensor), GT_INT("tensors", d->tensors));
}

void gt_against_write_runs(struct gt_json *j, const struct gt_against_runs *r)
{
	gt_json_add(j, GT_STR("device", r->device), GT_STR("device_precision", r->precision[0]), GT_STR("cpu_precision", r->precision[1]),
	            GT_BOOL("equal", r->equal), GT_NUM("worst", r->worst, 6), GT_NUM("limit", r->limit, 6));
	gt_json_array(j, "losses");
	for (int i = 0; i < r->nsteps; i++)
		write_pair(j, NULL, r->loss[i]);
	gt_json_end(j);
	gt_json_array(j, "scores");
	for (int i = 0; i < r->nevals; i++) {
		gt_json_object(j, NULL);
		gt_json_string(j, "split", r->eval[i].split);
		write_pair(j, "loss", r->eval[i].loss);
		write_pair(j, "acc", r->eval[i].acc);
		gt_json_end(j);
	}
	gt_json_end(j);
	write_distance(j, "weights_apart", &r->weights);
	write_distance(j, "moments_apart", &r->moments);
}

static void write_operation(struct gt_json *j, const struct gt_against_operation *o)
{
	gt_json_object(j, NULL);
	gt_json_add(j, GT_STR("operation", o->operation), GT_STR("layer", o->layer), GT_STR("kernel", o->kernel), GT_INT("rank", o->rank),
	            GT_INT("calls", o->calls), GT_INT("differ", o->differ), GT_NUM("share", o->share, 6), GT_STR("absent", o->absent));
	gt_json_add(j, GT_INT("step", o->step), GT_INT("before", o->before), GT_STR("operand", o->operand), GT_NUM("worst", o->worst, 6),
	            GT_NUM("allowed", o->allowed, 6));
	gt_json_array(j, "at");
	for (int i = 0; i < o->nat; i++)
		gt_json_int(j, NULL, o->at[i]);
	gt_json_end(j);
	gt_json_end(j);
}

void gt_against_write_operations(struct gt_json *j, const struct gt_against_operations *r)
{
	gt_json_add(j, GT_INT("compared", r->n - r->absent), GT_INT("calls", r->calls), GT_INT("differ", r->differ),
	            GT_INT("absent", r->absent));
	gt_json_array(j, "operations");
	for (int i = 0; i < r->n; i++)
		write_operation(j, &r->row[i]);
	gt_json_end(j);
}
