#include "commands.h"
#include "gtrain.h"
#include "gtrain_data.h"
#include "gtrain_report.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MEASURED = 10 }; /* number of steps that --time measures */

struct check_args {
	struct gt_job_args job;
	bool data, verify, time, strict;
};
#define OFFSET(member) offsetof(struct check_args, member)

static const struct gt_option options[] = {
	GT_OPT_SET(struct check_args),
	GT_OPT_DEVICE(struct check_args),
	GT_OPT_WORLD(struct check_args),
	GT_OPT_MODE(struct check_args),
	{"data", 0, GT_OPTION_FLAG, OFFSET(data), NULL, GT_COMPLETE_NONE, NULL, 0, 0,
	 "read all texts or rows, or the headers of all images, and list those that cannot be read"},
	{"verify", 0, GT_OPTION_FLAG, OFFSET(verify), NULL, GT_COMPLETE_NONE, NULL, 0, 0, "as --data, but decode every image completely"},
	{"time", 0, GT_OPTION_FLAG, OFFSET(time), NULL, GT_COMPLETE_NONE, NULL, 0, 0,
	 "measure some steps on this machine, and show how long an epoch and the run take"},
	{"strict", 0, GT_OPTION_FLAG, OFFSET(strict), NULL, GT_COMPLETE_NONE, NULL, 0, 0,
	 "fail if there is a warning, for example about data or a device that this machine does not have"},
	{0},
};

/* Writes the learning rates, or the momenta, at the five times of a report. */
static void rates_json(struct gt_json *j, const char *key, const double rate[5])
{
	gt_json_array(j, key);
	for (int i = 0; i < 5; i++)
		gt_json_double(j, NULL, rate[i], 9);
	gt_json_end(j);
}

/* step_s: seconds of a measured step; 0: none was measured */
static enum gt_code print_json(struct gt_cli *cli, const struct gt_report_opts *o, const struct gt_report *r, double step_s,
                               struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_object(j, NULL);
	gt_json_string(j, "name", r->name);
	gt_json_string(j, "device", o->device ? r->device : NULL); /* without --device, no device is opened */
	gt_json_string(j, "mode", r->mode);
	gt_json_int(j, "world", r->world);
	if (r->world_is_auto)
		gt_json_bool(j, "world_is_auto", true);
	gt_json_string(j, "precision", r->precision);
	if (r->native)
		gt_json_string(j, "native", r->native);
	gt_json_array(j, "layers");
	for (int i = 0; i < r->nlayers; i++) {
		gt_json_object(j, NULL);
		gt_json_string(j, "name", r->layers[i].name);
		gt_json_string(j, "type", r->layers[i].type);
		gt_json_string(j, "shape", r->layers[i].shape);
		gt_json_int(j, "params", r->layers[i].params);
		gt_json_double(j, "flops", r->layers[i].flops, 15);
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_cli_ranks_json(j, r);
	gt_json_int(j, "params", r->params);
	gt_json_int(j, "buffers", r->buffers);
	gt_json_double(j, "flops_forward", r->flops_forward, 15);
	gt_json_double(j, "flops_train", r->flops_train, 15);
	gt_json_array(j, "phases");
	for (int i = 0; i < r->nphases; i++) {
		const struct gt_check_phase *p = &r->phases[i];
		gt_json_object(j, NULL);
		gt_json_string(j, "when", p->when);
		gt_json_int(j, "steps", p->steps);
		gt_json_double(j, "flops_forward", p->flops_forward, 15);
		gt_json_double(j, "flops_train", p->flops_train, 15);
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_string(j, "data", r->data);
	if (r->gpu_transforms) {
		gt_json_object(j, "transforms");
		gt_json_string(j, "threads", r->thread_transforms);
		gt_json_string(j, "gpu", r->gpu_transforms);
		gt_json_end(j);
	}
	gt_cli_columns_json(j, r);
	gt_cli_texts_json(j, r);
	gt_json_object(j, "samples");
	const struct { const char *split; int64_t n; } split[] = {
		{"train", r->train_samples}, {"valid", r->valid_samples}, {"test", r->test_samples}};
	for (int i = 0; i < 3; i++) {
		if (split[i].n >= 0)
			gt_json_int(j, split[i].split, split[i].n);
		else
			gt_json_null(j, split[i].split);
	}
	gt_json_end(j);
	if (r->pretrained) {
		gt_json_object(j, "pretrained");
		gt_pretrained_json(j, r->pretrained);
		gt_json_end(j);
	}
	gt_json_int(j, "batch", r->batch);
	gt_json_int(j, "micro_batch", r->micro_batch);
	gt_json_int(j, "steps_per_epoch", r->steps_per_epoch);
	gt_json_int(j, "steps", r->steps);
	rates_json(j, "lr", r->lr);
	if (!isnan(r->momentum[0]))
		rates_json(j, "momentum", r->momentum);
	if (r->nblocks)
		gt_json_array(j, "layer_decay");
	for (int i = 0; i < r->nblocks; i++) {
		gt_json_object(j, NULL);
		gt_json_string(j, "block", r->blocks[i].name);
		gt_json_double(j, "factor", r->blocks[i].factor, 15);
		gt_json_end(j);
	}
	if (r->nblocks)
		gt_json_end(j);
	if (step_s > 0) {
		gt_json_object(j, "time");
		gt_json_double(j, "step_s", step_s, 6);
		gt_json_double(j, "epoch_s", step_s * (double)r->steps_per_epoch, 6);
		gt_json_double(j, "run_s", step_s * (double)r->steps, 6);
		gt_json_end(j);
	}
	gt_json_array(j, "warnings");
	for (int i = 0; i < r->warnings.n; i++)
		gt_json_string(j, NULL, r->warnings.v[i].text);
	for (int i = 0; i < r->skipped.n; i++)
		gt_json_string(j, NULL, r->skipped.v[i].text);
	gt_json_end(j);
	if (r->ngroups)
		gt_json_array(j, "groups");
	for (int i = 0; i < r->ngroups; i++) {
		gt_json_object(j, NULL);
		gt_json_string(j, "match", r->groups[i].match);
		gt_json_bool(j, "frozen", r->groups[i].frozen);
		gt_json_double(j, "frozen_until", r->groups[i].frozen_until, 15);
		gt_json_double(j, "freeze_after", r->groups[i].freeze_after, 15);
		gt_json_bool(j, "frozen_stats", r->groups[i].frozen_stats);
		rates_json(j, "lr", r->groups[i].lr);
		if (!isnan(r->groups[i].momentum[0]))
			rates_json(j, "momentum", r->groups[i].momentum);
		gt_json_end(j);
	}
	if (r->ngroups)
		gt_json_end(j);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

static enum gt_code print_layers(struct gt_cli *cli, const struct gt_report *r, struct gt_err *err)
{
	char params[GT_UNITS], flops[GT_UNITS], output[64];
	struct gt_table t;
	double total = 0;
	gt_table_init(&t, cli->arena, "lllrr");
	snprintf(output, sizeof output, r->part == r->batch ? "output" : "output, of %" PRId64 " samples", r->part);
	gt_table_head(&t, (const char *[]){"layer", "type", output, "parameters", "FLOP"});
	for (int i = 0; i < r->nlayers; i++) {
		const struct gt_check_layer *l = &r->layers[i];
		total += l->flops;
		gt_table_add(&t, (const char *[]){l->name, l->type, l->shape, l->params ? gt_units_count(params, l->params) : "",
		                                  l->flops > 0 ? gt_units_si(flops, l->flops, "") : ""});
	}
	gt_table_rule(&t);
	gt_table_add(&t, (const char *[]){"total", "", "", gt_units_count(params, r->params), gt_units_si(flops, total, "")});
	return gt_table_print(cli, &t, err);
}

/* Writes "60,000 train, 10,000 test", or "" if the data is missing. */
static void describe_samples(const struct gt_report *r, char *buf, size_t size)
{
	const struct { const char *split; int64_t n; } split[] = {
		{"train", r->train_samples}, {"valid", r->valid_samples}, {"test", r->test_samples}};
	int n = 0;
	buf[0] = '\0';
	for (int i = 0; i < 3; i++) {
		char count[GT_UNITS];
		if (split[i].n > 0)
			n += snprintf(buf + n, size - (size_t)n, "%s%s %s", n ? ", " : "", gt_units_count(count, split[i].n), split[i].split);
	}
}

/* Writes the learning rate, or the momentum, over the run: "0.1 at 0%, 0.05 at 25%, …". */
static void describe_rates(const struct gt_report *r, const double *rate, char *buf, size_t size)
{
	int n = 0;
	if (r->steps <= 0)
		snprintf(buf, size, "unknown without the data");
	for (int i = 0; i < 5 && r->steps > 0; i++) {
		char a[GT_UNITS];
		n += snprintf(buf + n, size - (size_t)n, "%s%s at %d%%", i ? ", " : "", gt_units_number(a, rate[i]), i * 25);
	}
}

static enum gt_code print_facts(struct gt_cli *cli, const struct gt_report_opts *o, const struct gt_report *r, double step_s,
                                struct gt_err *err)
{
	char text[640], a[GT_UNITS], b[GT_UNITS], samples[192], data[512], loaded[2048];
	struct gt_table t;
	gt_table_init(&t, cli->arena, "ll");
	describe_samples(r, samples, sizeof samples);
	snprintf(data, sizeof data, "%s", r->data ? r->data : "");
	snprintf(text, sizeof text, "%s%s%s", samples, *samples && *data ? "  from " : "", data);
	gt_table_add(&t, (const char *[]){"data", text});
	if (r->native) {
		snprintf(text, sizeof text, "%s%s; this machine has arithmetic for %s", r->precision,
		         r->computes_in_f32 ? ", computed in fp32 (slower than fp32, less memory)" : "", r->native);
		gt_table_add(&t, (const char *[]){"precision", text});
	}
	if (r->reading) {
		snprintf(text, sizeof text, "%s of host memory before training, while the training split is converted",
		         gt_units_bytes(a, r->reading));
		gt_table_add(&t, (const char *[]){"reading", text});
	}
	if (r->gpu_transforms) {
		snprintf(text, sizeof text, "%s%s%s on the GPU", r->thread_transforms, *r->thread_transforms ? " by threads; " : "",
		         r->gpu_transforms);
		gt_table_add(&t, (const char *[]){"transforms", text});
	}
	gt_cli_texts_facts(&t, r);
	if (r->pretrained)
		gt_table_add(&t, (const char *[]){"pretrained", gt_pretrained_text(r->pretrained, loaded, sizeof loaded)});
	if (r->micro_batch > 0 && r->micro_batch < r->batch)
		snprintf(text, sizeof text, "%" PRId64 " samples per step, in micro-batches of %" PRId64, r->batch, r->micro_batch);
	else
		snprintf(text, sizeof text, "%" PRId64 " samples per step", r->batch);
	if (r->copies > 1) {
		size_t len = strlen(text);
		snprintf(text + len, sizeof text - len, r->world > r->copies ? ", over %d copies of the model" : ", over %d ranks", r->copies);
	}
	gt_table_add(&t, (const char *[]){"batch", text});
	if (r->world > 1) {
		gt_cli_ranks_line(r, text, sizeof text);
		gt_table_add(&t, (const char *[]){"ranks", text});
	}
	if (r->world_is_auto) {
		snprintf(text, sizeof text, "1 here; a run has as many as its machine decides (parallel.nproc = \"auto\"); %s shows N ranks",
		         o->dry_run ? "--nproc N" : "--world N");
		gt_table_add(&t, (const char *[]){"ranks", text});
	}
	if (r->steps_per_epoch > 0)
		snprintf(text, sizeof text, "%s (%s per epoch)", gt_units_count(a, r->steps), gt_units_count(b, r->steps_per_epoch));
	else
		snprintf(text, sizeof text, "%s", r->steps > 0 ? gt_units_count(a, r->steps) : "unknown without the data");
	gt_table_add(&t, (const char *[]){"steps", text});
	snprintf(text, sizeof text, "%s forward, %s to train", gt_units_si(a, r->flops_forward, "FLOP"),
	         gt_units_si(b, r->flops_train, "FLOP"));
	gt_table_add(&t, (const char *[]){"per sample", text});
	for (int i = 0; i < r->nphases; i++) {
		snprintf(text, sizeof text, "%s forward, %s to train %s", gt_units_si(a, r->phases[i].flops_forward, "FLOP"),
		         gt_units_si(b, r->phases[i].flops_train, "FLOP"), r->phases[i].when);
		gt_table_add(&t, (const char *[]){"", text});
	}
	describe_rates(r, r->lr, text, sizeof text);
	gt_table_add(&t, (const char *[]){"lr", text});
	if (!isnan(r->momentum[0])) {
		describe_rates(r, r->momentum, text, sizeof text);
		gt_table_add(&t, (const char *[]){"momentum", text});
	}
	size_t n = 0;
	for (int i = r->nblocks; i-- > 0 && n < sizeof loaded;) {
		n += (size_t)snprintf(loaded + n, sizeof loaded - n, "%s%s %s", n ? ", " : "", r->blocks[i].name,
		                      gt_units_number(a, r->blocks[i].factor));
	}
	if (r->nblocks)
		gt_table_add(&t, (const char *[]){"lr factors", loaded});
	for (int i = 0; i < r->ngroups; i++) {
		const struct gt_check_group *g = &r->groups[i];
		char rates[256], momentum[256], cycle[280] = "", until[64] = "", after[64] = "";
		describe_rates(r, g->lr, rates, sizeof rates);
		describe_rates(r, g->momentum, momentum, sizeof momentum);
		if (!isnan(g->momentum[0]) && memcmp(g->momentum, r->momentum, sizeof g->momentum) != 0)
			snprintf(cycle, sizeof cycle, "; momentum %s", momentum);
		if (g->frozen_until > 0)
			snprintf(until, sizeof until, "frozen for %g epoch%s, then ", g->frozen_until, g->frozen_until == 1 ? "" : "s");
		if (g->freeze_after > 0)
			snprintf(after, sizeof after, ", frozen after %g epoch%s", g->freeze_after, g->freeze_after == 1 ? "" : "s");
		snprintf(text, sizeof text, "%s%s%s%s%s  (%s)", until, g->frozen ? "frozen" : rates, cycle, after,
		         g->frozen_stats ? ", statistics frozen" : "", g->match);
		snprintf(data, sizeof data, "  groups[%d]", i);
		gt_table_add(&t, (const char *[]){data, text});
	}
	if (step_s > 0) {
		char run[GT_UNITS], step[GT_UNITS];
		snprintf(text, sizeof text, "%s per epoch, %s for the run on this machine, without evaluations (%d steps of %s were measured)",
		         gt_units_seconds(a, step_s * (double)r->steps_per_epoch), gt_units_seconds(run, step_s * (double)r->steps), MEASURED,
		         gt_units_seconds(step, step_s));
		gt_table_add(&t, (const char *[]){"time", text});
	}
	gt_out(cli, "\n");
	return gt_table_print(cli, &t, err);
}

/* Measures some steps of training on this machine. *step_s: seconds of one of them. */
static enum gt_code measure_steps(struct gt_cli *cli, struct gt_conf *c, const struct gt_report_opts *opts, const struct gt_report *r,
                                  bool elsewhere, double *step_s, struct gt_err *err)
{
	struct gt_run_opts o = {.device = opts->device};
	struct gt_bench *b = NULL;
	if (elsewhere)
		return gt_fail(err, GT_EUSAGE, "--time measures this machine, so it does not go together with %s",
		               opts->dry_run ? "--dry-run" : "--device null");
	if (r->world > 1)
		return gt_fail(err, GT_EUSAGE,
		               "--time measures one rank, and this plan has %" PRId64 "; to measure them, write gtrain bench %s --nproc %" PRId64,
		               r->world, cli->args.operands.v[0], r->world);
	if (r->steps <= 0)
		return gt_fail(err, GT_ENOINPUT, "--time: the number of steps is not known without the data: %.800s", r->data ? r->data : "");
	enum gt_code code = gt_bench(c, &o, MEASURED, &b, err);
	if (code == GT_OK)
		*step_s = b->step_ms * 1e-3;
	gt_bench_free(b);
	return code;
}

/* Fails if there are warnings. The exit code is that of the first warning for which a run would fail. */
static enum gt_code fail_on_warnings(const struct gt_report *r, struct gt_err *err)
{
	const struct gt_problems *w = &r->warnings;
	enum gt_code code = GT_OK;
	int all = w->n + r->skipped.n;
	for (int i = 0; i < w->n && code == GT_OK; i++)
		code = w->v[i].code;
	if (!all)
		return GT_OK;
	return gt_fail(err, code != GT_OK ? code : GT_ECONFIG, "--strict: the config has %d warning%s", all, all == 1 ? "" : "s");
}

enum gt_code gt_cli_report(struct gt_cli *cli, struct gt_conf *c, int world, const struct gt_report_opts *o, struct gt_err *err)
{
	struct gt_report *r = NULL;
	char title[512], clean[512], buffers[GT_UNITS], note[96] = "";
	double step_s = 0;
	GT_TRY(gt_check(c, o->device, world, &r, err));
	bool elsewhere = o->dry_run || (o->device && !strcmp(o->device, "null")); /* device "null" needs no machine */
	enum gt_code code = elsewhere ? GT_OK : gt_check_machine(c, o->device, r, err);
	for (int i = 0; i < r->warnings.n; i++)
		gt_cli_warn(cli, r->warnings.v[i].text);
	for (int i = 0; i < r->skipped.n && !o->listed; i++)
		gt_cli_warn(cli, r->skipped.v[i].text);
	if (code == GT_OK && o->time)
		code = measure_steps(cli, c, o, r, elsewhere, &step_s, err);
	if (code == GT_OK && cli->args.json) {
		code = print_json(cli, o, r, step_s, err);
	} else if (code == GT_OK) {
		if (r->buffers > 0)
			snprintf(note, sizeof note, ", %s elements of buffers", gt_units_count(buffers, r->buffers));
		/* without --device, no device is opened and the plan has no device name */
		const char *device = o->device ? r->device : "";
		snprintf(title, sizeof title, "%s: %s%s%s, %s%s", r->name, device, *device ? ", " : "", r->mode, r->precision, note);
		gt_out(cli, "%s%s%s\n\n", gt_style(cli->color_out, GT_STYLE_BOLD), gt_cli_printable(title, clean, sizeof clean),
		       gt_style(cli->color_out, GT_STYLE_NONE));
		code = print_layers(cli, r, err);
		if (code == GT_OK)
			code = gt_cli_columns_text(cli, r, err);
		if (code == GT_OK)
			code = gt_cli_ranks_text(cli, r, err);
		if (code == GT_OK)
			code = print_facts(cli, o, r, step_s, err);
	}
	if (code == GT_OK && o->strict)
		code = fail_on_warnings(r, err);
	gt_report_free(r);
	return code;
}

/* ---- --data --------------------------------------------------------------------------------------------------------------------- */
enum { LISTED = 10 }; /* maximum number of samples that cannot be read of which the user is told one by one */

struct data_list {
	struct gt_cli *cli;
	int64_t n;
};

static void list_unreadable(void *user, const char *split, const char *why)
{
	struct data_list *l = user;
	if (l->cli->args.json) {
		gt_json_object(&l->cli->json, NULL);
		gt_json_string(&l->cli->json, "split", split);
		gt_json_string(&l->cli->json, "why", why);
		gt_json_end(&l->cli->json);
	} else if (l->n++ < LISTED) {
		gt_cli_warn(l->cli, why);
	}
}

static enum gt_code end_data_json(struct gt_cli *cli, const struct gt_data_check *d, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_end(j);
	gt_json_int(j, "checked", d->samples);
	gt_json_int(j, "bad", d->bad);
	if (d->cells)
		gt_json_int(j, "cells", d->cells);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

/* Lists the samples that cannot be read, with `whole` also the images that cannot be decoded. They are an error, unless a run leaves
 * them out. */
static enum gt_code check_data(struct gt_cli *cli, struct gt_conf *conf, bool whole, struct gt_err *err)
{
	struct data_list list = {.cli = cli};
	struct gt_data_check d;
	char n[GT_UNITS], bad[GT_UNITS], cells[GT_UNITS], text[200];
	if (cli->args.json) {
		gt_json_object(&cli->json, NULL);
		gt_json_array(&cli->json, "unreadable");
	}
	enum gt_code code = gt_check_data(conf, whole, list_unreadable, &list, &d, err);
	if (code != GT_OK)
		gt_json_reset(&cli->json);
	GT_TRY(code);
	if (!d.skips) /* a bad cell ends a run, too */
		d.bad += d.cells, d.cells = 0;
	gt_units_count(n, d.samples);
	gt_units_count(cells, d.cells);
	gt_units_count(bad, d.bad);
	const char *how = !d.files ? "samples were read" : whole ? "samples were read and decoded" : "samples: the headers were read";
	if (cli->args.json) {
		GT_TRY(end_data_json(cli, &d, err));
	} else {
		if (list.n > LISTED) {
			snprintf(text, sizeof text, "%" PRId64 " more samples cannot be read", list.n - LISTED);
			gt_cli_warn(cli, text);
		}
		gt_out(cli, "%s %s; %s%s%s%s%s%s\n\n", n, how, d.bad ? bad : "all", d.bad ? " cannot be read" : " can be read",
		       d.bad && d.skips ? ", and a run leaves them out" : "", d.cells ? "; " : "", d.cells ? cells : "",
		       d.cells == 1 ? " cell counts as missing" : d.cells ? " cells count as missing" : "");
	}
	if (!d.bad || d.skips)
		return GT_OK;
	return gt_fail(err, GT_EDATA, "data: %s of %s samples cannot be read; remove them, or write data.on_error = \"skip\" to leave them out",
	               bad, n);
}

static enum gt_code run_check(struct gt_cli *cli, struct gt_err *err)
{
	const struct check_args *a = cli->options;
	struct gt_report_opts o = {.device = a->job.device, .time = a->time, .strict = a->strict, .listed = a->data || a->verify};
	struct gt_conf *conf;
	GT_TRY(gt_cli_conf(cli, &a->job, &conf, err));
	enum gt_code code = o.listed ? check_data(cli, conf, a->verify, err) : GT_OK;
	if (code == GT_OK)
		code = gt_cli_report(cli, conf, (int)a->job.world, &o, err);
	gt_conf_free(conf);
	return code;
}

const struct gt_command gt_cmd_check = {
	.name = "check",
	.operands = "CFG",
	.summary = "show the shapes, parameters, memory, steps and learning rates of a config",
	.about = "Does everything that gtrain run does before the first step, and shows the result:\n"
	         "shapes, parameters, FLOPs, exact bytes, steps and learning rates. For several ranks,\n"
	         "shows what each rank stores and sends, and verifies that their lists of steps match.\n"
	         "Needs no GPU. With --data, reads all samples, and fails if a run would end at one.",
	.example = "gtrain check configs/resnet18_cifar.cfg --mode ddp --world 8",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CONFIG,
	.options = options,
	.args_size = sizeof(struct check_args),
	.run = run_check,
};
