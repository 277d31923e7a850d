#include "commands.h"
#include "base/json_read.h"
#include "gtrain.h"
#include "gtrain_data.h"
#include "gtrain_report.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	MEASURED = 10, /* number of steps that --time measures */
	NARROWEST = 16 /* minimum width of the column with names of layers; if less remains, another column is removed */
};

struct check_args {
	struct gt_job_args job;
	bool data, verify, time, strict, suggest;
	const char *link, *times, *memory;
};
#define OFFSET(member) offsetof(struct check_args, member)

static const struct gt_option options[] = {
	GT_OPT_SET(struct check_args),
	GT_OPT_DEVICE(struct check_args),
	GT_OPT_WORLD(struct check_args),
	GT_OPT_MODE(struct check_args),
	{"data", 0, GT_OPTION_FLAG, OFFSET(data),
	 .help = "read all texts or rows, or the headers of all images, and list all that cannot be read"},
	{"verify", 0, GT_OPTION_FLAG, OFFSET(verify), .help = "do the same as --data, but decode every image completely"},
	{"time", 0, GT_OPTION_FLAG, OFFSET(time), .help = "measure some steps on this machine, and estimate the time of an epoch and of the "
	                                                  "run"},
	{"link", 0, GT_OPTION_STRING, OFFSET(link), "LINK", GT_COMPLETE_NONE, NULL, 0, 0,
	 "with --times: predict the time of a step of ranks on several hosts, whose links have this bandwidth and latency: 100Gbit,5us"},
	{"times", 0, GT_OPTION_STRING, OFFSET(times), "FILE", GT_COMPLETE_FILE, NULL, 0, 0,
	 "with --link: times of kernels, which gtrain bench CFG --world N --json has printed"},
	{"suggest", 0, GT_OPTION_FLAG, OFFSET(suggest),
	 .help = "propose the parallel mode, ZeRO stage, pipeline and micro-batches for --world N ranks, with reasons"},
	{"memory", 0, GT_OPTION_STRING, OFFSET(memory), "SIZE", GT_COMPLETE_NONE, NULL, 0, 0,
	 "with --suggest: memory of a rank, for example 80G or 79.5GiB"},
	{"strict", 0, GT_OPTION_FLAG, OFFSET(strict),
	 .help = "fail if there is a warning, for example if this machine does not have the data or the device"},
	{0},
};

/* ---- the report as text: f is the object that --json prints ----------------------------------------------------------------------- */
static enum gt_code print_layers(struct gt_cli *cli, const struct gt_json_value *f, struct gt_err *err)
{
	char params[GT_UNITS], flops[GT_UNITS], output[64];
	struct gt_table t;
	double total = 0;
	gt_table_init(&t, cli->arena, "lllrr");
	snprintf(output, sizeof output, gt_json_count(f, "part") == gt_json_count(f, "batch") ? "output" : "output, of %" PRId64 " samples",
	         gt_json_count(f, "part"));
	gt_table_head(&t, "layer", "type", output, "parameters", "FLOP");
	for (const struct gt_json_value *l = gt_json_first(f, "layers"); l; l = l->next) {
		double flop = gt_json_num(l, "flops");
		int64_t n = gt_json_count(l, "params");
		total += flop;
		gt_table_add(&t, gt_json_str(l, "name"), gt_json_str(l, "type"), gt_json_str(l, "shape"), n ? gt_units_count(params, n) : "",
		             flop > 0 ? gt_units_si(flops, flop, "") : "");
	}
	gt_table_rule(&t);
	gt_table_add(&t, "total", "", "", gt_units_count(params, gt_json_count(f, "params")), gt_units_si(flops, total, ""));
	gt_table_narrow(cli, &t, 0, NARROWEST, "14"); /* the type, FLOP */
	return gt_table_print(cli, &t, err);
}

/* Writes the number of samples of each split to buf: "60,000 train, 10,000 test"; "" if the data is missing. */
static void describe_samples(const struct gt_json_value *f, char *buf, size_t size)
{
	int n = 0;
	buf[0] = '\0';
	for (const struct gt_json_value *s = gt_json_first(f, "samples"); s; s = s->next) {
		char count[GT_UNITS];
		if (s->type == GT_JSON_NUMBER && s->number > 0)
			n += snprintf(buf + n, size - (size_t)n, "%s%s %s", n ? ", " : "", gt_units_count(count, (int64_t)s->number), s->key);
	}
}

/* Writes the values of the learning rate or the momentum during the run to buf: "0.1 at 0%, 0.05 at 25%, …". */
static void describe_rates(const struct gt_json_value *of, const char *key, char *buf, size_t size)
{
	int n = 0, percent = 0;
	for (const struct gt_json_value *v = gt_json_first(of, key); v && v->type == GT_JSON_NUMBER; v = v->next, percent += 25) {
		char a[GT_UNITS];
		n += snprintf(buf + n, size - (size_t)n, "%s%s at %d%%", n ? ", " : "", gt_units_number(a, v->number), percent);
	}
	if (!n)
		snprintf(buf, size, "unknown without the data");
}

/* Describes an entry of train.groups in buf: "frozen for 2 epochs, then 0.1 at 0%, …  (head.*)". run: the momentum of the run. */
static void describe_group(const struct gt_json_value *g, const char *run, char *buf, size_t size)
{
	double frozen_until = gt_json_num(g, "frozen_until"), freeze_after = gt_json_num(g, "freeze_after");
	char rates[256], momentum[256], cycle[280] = "", until[64] = "", after[64] = "";
	describe_rates(g, "lr", rates, sizeof rates);
	describe_rates(g, "momentum", momentum, sizeof momentum);
	if (gt_json_member(g, "momentum") && strcmp(momentum, run) != 0)
		snprintf(cycle, sizeof cycle, "; momentum %s", momentum);
	if (frozen_until > 0)
		snprintf(until, sizeof until, "frozen for %g epoch%s, then ", frozen_until, frozen_until == 1 ? "" : "s");
	if (freeze_after > 0)
		snprintf(after, sizeof after, ", frozen after %g epoch%s", freeze_after, freeze_after == 1 ? "" : "s");
	snprintf(buf, size, "%s%s%s%s%s  (%s)", until, gt_json_true(g, "frozen") ? "frozen" : rates, cycle, after,
	         gt_json_true(g, "frozen_stats") ? ", statistics frozen" : "", gt_json_str(g, "match"));
}

/* Adds a row with FLOPs: for one sample, for the whole run, or for one phase of the run. */
static void add_flops(struct gt_table *t, const char *label, const struct gt_json_value *v, const char *when)
{
	char text[256], a[GT_UNITS], b[GT_UNITS];
	snprintf(text, sizeof text, "%s forward, %s to train%s%s", gt_units_si(a, gt_json_num(v, "flops_forward"), "FLOP"),
	         gt_units_si(b, gt_json_num(v, "flops_train"), "FLOP"), *when ? " " : "", when);
	gt_table_add(t, label, text);
}

/* Adds the rows about the data to the report table. */
static void add_data(struct gt_table *t, const struct gt_json_value *f, const struct gt_report *r)
{
	const struct gt_json_value *transforms = gt_json_member(f, "transforms");
	const char *threads = gt_json_str(transforms, "threads"), *native = gt_json_str(f, "native");
	char text[2048], a[GT_UNITS], samples[192];
	describe_samples(f, samples, sizeof samples);
	snprintf(text, 700, "%s%s%s%.511s", samples, *samples && r->skips_files ? " files; a run skips those that cannot be read" : "",
	         *samples && *r->data ? "  from " : "", r->data);
	gt_table_add(t, "data", text);
	if (*native) {
		snprintf(text, sizeof text, "%s%s; this machine has arithmetic for %s", r->precision,
		         r->computes_in_f32 ? ", computed in fp32 (slower than fp32, less memory)" : "", native);
		gt_table_add(t, "precision", text);
	}
	if (r->reading) {
		snprintf(text, sizeof text, "%s of host memory before training, to convert the training split",
		         gt_units_bytes(a, r->reading));
		gt_table_add(t, "reading", text);
	}
	if (transforms) {
		snprintf(text, sizeof text, "%s%s%s on the GPU", threads, *threads ? " by threads; " : "", gt_json_str(transforms, "gpu"));
		gt_table_add(t, "transforms", text);
	}
	gt_cli_texts_facts(t, f);
	if (r->pretrained)
		gt_table_add(t, "pretrained", gt_pretrained_text(r->pretrained, text, sizeof text));
}

/* Adds the rows about batch, ranks and steps to the report table. */
static void add_steps(struct gt_table *t, const struct gt_json_value *f, const struct gt_report_opts *o)
{
	int64_t batch = gt_json_count(f, "batch"), micro = gt_json_count(f, "micro_batch"), copies = gt_json_count(f, "copies");
	int64_t world = gt_json_count(f, "world"), steps = gt_json_count(f, "steps"), of_epoch = gt_json_count(f, "steps_per_epoch");
	char text[640], a[GT_UNITS], b[GT_UNITS];
	int n = snprintf(text, sizeof text, micro > 0 && micro < batch ? "%" PRId64 " samples per step, in micro-batches of %" PRId64
	                                                               : "%" PRId64 " samples per step", batch, micro);
	if (copies > 1)
		snprintf(text + n, sizeof text - (size_t)n, world > copies ? ", over %" PRId64 " copies of the model" : ", over %" PRId64 " ranks",
		         copies);
	gt_table_add(t, "batch", text);
	if (world > 1) {
		gt_cli_ranks_line(f, text, sizeof text);
		gt_table_add(t, "ranks", text);
	}
	if (gt_json_member(f, "world_is_auto")) {
		snprintf(text, sizeof text, "1 here; a run chooses the number for its machine (parallel.nproc = \"auto\"); %s shows N ranks",
		         o->dry_run ? "--nproc N" : "--world N");
		gt_table_add(t, "ranks", text);
	}
	if (of_epoch > 0)
		snprintf(text, sizeof text, "%s (%s per epoch)", gt_units_count(a, steps), gt_units_count(b, of_epoch));
	else
		snprintf(text, sizeof text, "%s", steps > 0 ? gt_units_count(a, steps) : "unknown without the data");
	gt_table_add(t, "steps", text);
}

/* Adds the rows about learning rates and momenta to the report table. */
static void add_rates(struct gt_table *t, const struct gt_json_value *f)
{
	char text[1024], momentum[640], factors[2048] = "", older[1900], label[32], a[GT_UNITS];
	int i = 0;
	describe_rates(f, "lr", text, sizeof text);
	gt_table_add(t, "lr", text);
	describe_rates(f, "momentum", momentum, sizeof momentum);
	if (gt_json_member(f, "momentum"))
		gt_table_add(t, "momentum", momentum);
	for (const struct gt_json_value *b = gt_json_first(f, "layer_decay"); b; b = b->next) { /* each block is prepended */
		snprintf(older, sizeof older, "%s", factors);
		snprintf(factors, sizeof factors, "%s %s%s%s", gt_json_str(b, "block"), gt_units_number(a, gt_json_num(b, "factor")),
		         *older ? ", " : "", older);
	}
	if (*factors)
		gt_table_add(t, "lr factors", factors);
	for (const struct gt_json_value *g = gt_json_first(f, "groups"); g; g = g->next) {
		describe_group(g, momentum, text, sizeof text);
		snprintf(label, sizeof label, "  groups[%d]", i++);
		gt_table_add(t, label, text);
	}
}

static enum gt_code print_facts(struct gt_cli *cli, const struct gt_report_opts *o, const struct gt_json_value *f,
                                const struct gt_report *r, struct gt_err *err)
{
	double step_s = gt_json_num(gt_json_member(f, "time"), "step_s");
	char text[640], epoch[GT_UNITS], run[GT_UNITS], step[GT_UNITS];
	struct gt_table t;
	gt_table_init(&t, cli->arena, "ll");
	add_data(&t, f, r);
	add_steps(&t, f, o);
	add_flops(&t, "per sample", f, "");
	for (const struct gt_json_value *p = gt_json_first(f, "phases"); p; p = p->next)
		add_flops(&t, "", p, gt_json_str(p, "when"));
	add_rates(&t, f);
	if (step_s > 0) {
		const struct gt_json_value *time = gt_json_member(f, "time");
		snprintf(text, sizeof text, "%s per epoch, %s for the run on this machine, without evaluations (%d steps of %s were measured)",
		         gt_units_seconds(epoch, gt_json_num(time, "epoch_s")), gt_units_seconds(run, gt_json_num(time, "run_s")), MEASURED,
		         gt_units_seconds(step, step_s));
		gt_table_add(&t, "time", text);
	}
	gt_out(cli, "\n");
	return gt_table_print(cli, &t, err);
}

/* Prints the JSON report in cli->json as text. cost: prints the predicted time of a step; NULL: there is none. */
static enum gt_code print_report(struct gt_cli *cli, const struct gt_report_opts *o, const struct gt_report *r,
                                 const struct gt_cost_view *cost, struct gt_err *err)
{
	char title[512], buffers[GT_UNITS], note[96] = "";
	const struct gt_json_value *f;
	GT_TRY(gt_out_facts(cli, &f, err));
	if (r->buffers > 0)
		snprintf(note, sizeof note, ", %s elements of buffers", gt_units_count(buffers, r->buffers));
	const char *device = gt_json_str(f, "device");
	snprintf(title, sizeof title, "%s: %s%s%s, %s%s", r->name, device, *device ? ", " : "", r->mode, r->precision, note);
	gt_out(cli, "%s%s%s\n\n", gt_style(cli->color_out, GT_STYLE_BOLD), gt_cli_printable(title, title, sizeof title),
	       gt_style(cli->color_out, GT_STYLE_NONE));
	GT_TRY(print_layers(cli, f, err));
	GT_TRY(gt_cli_columns_text(cli, f, err));
	GT_TRY(gt_cli_ranks_text(cli, f, err));
	GT_TRY(print_facts(cli, o, f, r, err));
	return cost ? cost->print(cli, f, err) : GT_OK;
}

/* Measures some training steps on this machine, and adds the durations of a step, an epoch and the run to the report. */
static enum gt_code measure_steps(struct gt_cli *cli, struct gt_conf *c, const struct gt_report_opts *opts, const struct gt_report *r,
                                  bool elsewhere, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	struct gt_run_opts o = {.device = opts->device};
	struct gt_bench *b = NULL;
	if (elsewhere)
		return gt_fail(err, GT_EUSAGE, "--time cannot be combined with %s, because it measures this machine",
		               opts->dry_run ? "--dry-run" : "--device null");
	if (r->world > 1)
		return gt_fail(err, GT_EUSAGE,
		               "--time measures one rank, and this plan has %d ranks; to measure all ranks, write gtrain bench %s --nproc %d",
		               r->world, cli->args.operands.v[0], r->world);
	if (r->steps <= 0)
		return gt_fail(err, GT_ENOINPUT, "--time: gtrain cannot know the number of steps without the data: %.800s", r->data ? r->data : "");
	enum gt_code code = gt_bench(c, &o, MEASURED, &b, err);
	if (code == GT_OK && b->step_ms > 0)
		gt_json_row(j, "time", GT_NUM("step_s", b->step_ms * 1e-3, 6), GT_NUM("epoch_s", b->step_ms * 1e-3 * (double)r->steps_per_epoch, 6),
		            GT_NUM("run_s", b->step_ms * 1e-3 * (double)r->steps, 6));
	gt_bench_free(b);
	return code;
}

/* If the report has warnings, fails with the exit code of the first warning that would make a run fail. doubt: whether there is a warning
 * about the file of --times. */
static enum gt_code fail_on_warnings(const struct gt_report *r, bool doubt, struct gt_err *err)
{
	const struct gt_problems *w = &r->warnings;
	enum gt_code code = GT_OK;
	int all = w->n + r->skipped.n;
	for (int i = 0; i < w->n && code == GT_OK; i++)
		code = w->v[i].code;
	if (!all)
		return doubt ? gt_fail(err, GT_EDATA, "--strict: the file of --times has a warning") : GT_OK;
	return gt_fail(err, code != GT_OK ? code : GT_ECONFIG, "--strict: the config has %d warning%s", all, all == 1 ? "" : "s");
}

enum gt_code gt_cli_report(struct gt_cli *cli, struct gt_conf *c, int world, const struct gt_report_opts *o, struct gt_err *err)
{
	struct gt_report *r = NULL;
	bool elsewhere = o->dry_run || (o->device && !strcmp(o->device, "null")); /* the device "null" does not check this machine */
	cli->json.exact = !cli->args.json; /* exact floating-point values, because the text output is made from this JSON */
	const struct gt_cost_view *cost = NULL;
	struct gt_check_opts check = {.device = o->device, .world = world, .machine = !elsewhere, .apart = o->link};
	if (o->link) {
		GT_TRY(gt_cli_cost(&cost, err));
		GT_TRY(cost->open(cli, o, &check.user, err));
		check.more = cost->add;
	}
	GT_TRY(gt_check(c, &check, &cli->json, &r, err));
	const char *doubt = cost ? cost->doubt(check.user) : NULL;
	if (doubt)
		gt_cli_warn(cli, doubt);
	for (int i = 0; i < r->warnings.n; i++)
		gt_cli_warn(cli, r->warnings.v[i].text);
	for (int i = 0; i < r->skipped.n && !o->listed; i++)
		gt_cli_warn(cli, r->skipped.v[i].text);
	enum gt_code code = o->time ? measure_steps(cli, c, o, r, elsewhere, err) : GT_OK;
	gt_json_end(&cli->json);
	if (code == GT_OK)
		code = cli->args.json ? gt_out_json(cli, err) : print_report(cli, o, r, cost, err);
	else
		gt_json_reset(&cli->json);
	if (code == GT_OK && o->strict)
		code = fail_on_warnings(r, doubt, err);
	gt_report_free(r);
	return code;
}

/* ---- --data --------------------------------------------------------------------------------------------------------------------- */
enum { LISTED = 10 }; /* maximum number of unreadable samples to list individually */

struct data_list {
	struct gt_cli *cli;
	int64_t n;
};

static void list_unreadable(void *user, const char *split, const char *why)
{
	struct data_list *l = user;
	if (l->cli->args.json) {
		gt_json_row(&l->cli->json, NULL, GT_STR("split", split), GT_STR("why", why));
	} else if (l->n++ < LISTED) {
		gt_cli_warn(l->cli, why);
	}
}

static enum gt_code end_data_json(struct gt_cli *cli, const struct gt_data_check *d, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_end(j);
	gt_json_add(j, GT_INT("checked", d->samples), GT_INT("bad", d->bad));
	if (d->cells)
		gt_json_int(j, "cells", d->cells);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

/* Lists the unreadable samples of the data; with `whole`, decodes every image and lists those that cannot be decoded. Fails if there are
 * any, unless a run would skip them. */
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
	if (!d.skips) /* without data.on_error = "skip", a run also fails at a cell that is not a number */
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
		       d.bad && d.skips ? ", and a run skips these samples" : "", d.cells ? "; " : "", d.cells ? cells : "",
		       d.cells == 1 ? " cell counts as missing" : d.cells ? " cells count as missing" : "");
	}
	if (!d.bad || d.skips)
		return GT_OK;
	return gt_fail(err, GT_EDATA, "data: %s of %s samples cannot be read; remove these samples, or write data.on_error = \"skip\" to skip "
	               "them", bad, n);
}

static enum gt_code suggest_plan(struct gt_cli *cli, const struct check_args *a, struct gt_err *err)
{
	const struct gt_cost_view *cost;
	struct gt_suggest_args s = {.job = &a->job, .world = a->job.world, .memory = a->memory, .link = a->link, .times = a->times};
	const char *other = a->job.mode ? "--mode" : a->data ? "--data" : a->verify ? "--verify" : a->time ? "--time"
	                    : a->strict ? "--strict" : NULL;
	if (other)
		return gt_fail(err, GT_EUSAGE, "--suggest and %s cannot be combined: --suggest prints no report of one plan", other);
	GT_TRY(gt_cli_cost(&cost, err));
	return cost->suggest(cli, &s, err);
}

static enum gt_code run_check(struct gt_cli *cli, struct gt_err *err)
{
	const struct check_args *a = cli->options;
	struct gt_report_opts o = {.device = a->job.device, .time = a->time, .strict = a->strict, .listed = a->data || a->verify};
	struct gt_conf *conf;
	if (!a->link != !a->times)
		return gt_fail(err, GT_EUSAGE, "--link and --times need each other: a prediction needs the links, such as 100Gbit,5us, and the "
		               "times of kernels, which `gtrain bench CFG --world N --json >times.json` measures");
	if (a->memory && !a->suggest)
		return gt_fail(err, GT_EUSAGE, "--memory: expected the option --suggest too, which compares plans with the memory of a rank");
	if (a->suggest)
		return suggest_plan(cli, a, err);
	o.link = a->link;
	o.times = a->times;
	o.job = &a->job;
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
	.about = "Does everything that gtrain run does before the first step, and shows the result:\n"
	         "shapes, parameters, FLOPs, exact bytes, steps and learning rates. For several ranks,\n"
	         "shows what each rank stores and sends, and verifies that their lists of steps match.\n"
	         "Needs no GPU. With --data, reads all samples, and fails if a sample would end a run.",
	.example = "gtrain check configs/resnet18_cifar.cfg --mode ddp --world 8",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CONFIG,
	.options = options,
	.args_size = sizeof(struct check_args),
	.run = run_check,
};
