#include "commands.h"
#include "gtrain.h"
#include "show_print.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#define SAMPLES_PRINTED 12
#define SAMPLES_DRAWN 40
#define NUMBERED 12 /* maximum number of listed class names, for classes that the image shows by number */

struct show_args {
	struct gt_job_args job;
	const char *out, *split;
	bool plain;
	int64_t samples, step;
};
#define OFFSET(member) offsetof(struct show_args, member)

static const struct gt_option options[] = {
	GT_OPT_SET(struct show_args),
	{"out", 'o', GT_OPTION_STRING, OFFSET(out), "FILE", GT_COMPLETE_FILE,
	 .help = "draw the images into a file whose name ends in .png, instead of the terminal"},
	{"split", 0, GT_OPTION_CHOICE, OFFSET(split), "SPLIT", GT_COMPLETE_CHOICE, "train|valid|test",
	 .help = "split whose samples are shown; default: train. Of another split, samples of all classes are drawn by the seed"},
	{"plain", 0, GT_OPTION_FLAG, OFFSET(plain), .help = "show the samples of the data as they are before transforms and scaling"},
	{"samples", 'n', GT_OPTION_INT, OFFSET(samples), "COUNT", GT_COMPLETE_NONE, NULL, 1, 1000,
	 "number of samples to show; default: 12, or 40 with --out, but of a step at most a batch"},
	{"step", 0, GT_OPTION_INT, OFFSET(step), "N", GT_COMPLETE_NONE, NULL, 1, INT64_MAX,
	 "show the samples of training step N, or of batch N of an evaluation; default: step 1 of the training"},
	{0},
};

static void pass_warning(void *user, const char *text)
{
	gt_cli_warn(user, text);
}

/* If the operand is the directory of a run or a checkpoint, replaces the operand by the config in it, and sets *found. */
static enum gt_code find_run_config(struct gt_cli *cli, bool *found, struct gt_err *err)
{
	char *path;
	GT_NEW_STR(path, gt_arena_printf(cli->arena, "%s/config.cfg", cli->args.operands.v[0]), err);
	*found = !access(path, F_OK);
	if (*found)
		cli->args.operands.v[0] = path;
	return GT_OK;
}

/* Prints how the samples of a step are mixed: "step 3: mixup, 0.71 of the sample itself and 0.29 of the sample before it". */
static void print_mix(struct gt_cli *cli, const struct gt_shown_mix *m)
{
	if (m->how)
		gt_out(cli, "step %lld: %s, %.2f of the sample itself and %.2f of the sample before it in the batch\n", (long long)m->step, m->how,
		       m->share, 1 - m->share);
}

static void print_summary(struct gt_cli *cli, const struct gt_shown *b)
{
	char line[1600], count[GT_UNITS];
	bool train = b->split[1] == 'r';
	snprintf(line, sizeof line, "%s: split %s", b->name, b->split);
	gt_out(cli, "%s", gt_cli_printable(line, line, sizeof line));
	if (train)
		gt_out(cli, ", step %lld (epoch %lld)", (long long)b->step, (long long)b->epoch);
	else if (!b->drawn_from)
		gt_out(cli, ", batch %lld", (long long)b->step);
	gt_out(cli, "; %d sample%s", b->n, b->n == 1 ? "" : "s");
	if (b->drawn_from)
		gt_out(cli, ", drawn from %s (--step N shows batch N)\n", gt_units_count(count, b->drawn_from));
	else
		gt_out(cli, ", %lld in a batch\n", (long long)b->batch);
	if (b->plain)
		gt_out(cli, "before transforms, scaling and tokenizing\n");
	else if (!isnan(b->mean))
		gt_out(cli, "transforms: %s\n", *b->transforms ? b->transforms : "none");
	for (int i = 0; i < b->nmix; i++)
		print_mix(cli, &b->mix[i]);
	if (!isnan(b->mean))
		gt_out(cli, "values for the network: mean %.3f, standard deviation %.3f, from %.3f to %.3f\n", b->mean, b->std, b->least, b->most);
	if (b->n && (b->sample[0].image.c == 2 || b->sample[0].image.c > 3))
		gt_out(cli, "of %lld channels, %s shown\n", (long long)b->sample[0].image.c,
		       b->sample[0].image.c == 2 ? "the first one is" : "the first three are");
	gt_out(cli, "\n");
}

static enum gt_code print_samples(struct gt_cli *cli, const struct gt_shown *b, struct gt_err *err)
{
	const struct show_args *a = cli->options;
	bool images = false;
	for (int i = 0; i < b->n; i++)
		images |= b->sample[i].image.c > 0;
	if (images && !a->out)
		GT_TRY(gt_show_print_images(cli, b, err));
	if (a->out)
		return GT_OK;
	GT_TRY(gt_show_print_texts(cli, b, err));
	return gt_show_print_rows(cli, b, err);
}

/* Prints number and name of the classes that the PNG image shows by number, because its font lacks a character of their names. */
static void print_numbered(struct gt_cli *cli, const struct gt_shown *b)
{
	char text[1024] = "";
	int64_t seen[NUMBERED];
	int n = 0, at = 0;
	for (int i = 0; i < b->n; i++)
		for (int k = 0; k < b->sample[i].nshares; k++) {
			const struct gt_shown_share *c = &b->sample[i].share[k];
			bool known = !c->name || gt_shown_is_drawn(c->name);
			for (int j = 0; j < n; j++)
				known |= seen[j] == c->class;
			if (known || n == NUMBERED || at >= (int)sizeof text)
				continue;
			seen[n] = c->class;
			at += snprintf(text + at, sizeof text - (size_t)at, "%s class %" PRId64 " is %.60s", n++ ? "," : "", c->class, c->name);
		}
	if (n)
		gt_cli_note(cli, "the font of the image lacks characters of names:%s", text);
}

static enum gt_code show_batch(struct gt_cli *cli, const struct gt_shown *b, struct gt_err *err)
{
	const struct show_args *a = cli->options;
	if (a->out)
		GT_TRY(gt_shown_write(b, a->out, err));
	if (cli->args.json)
		return gt_show_print_json(cli, b, err);
	if (!cli->args.quiet)
		print_summary(cli, b);
	GT_TRY(print_samples(cli, b, err));
	if (a->out && !cli->args.quiet) {
		gt_cli_note(cli, "wrote %s", a->out);
		print_numbered(cli, b);
	}
	return GT_OK;
}

static enum gt_code run_show(struct gt_cli *cli, struct gt_err *err)
{
	const struct show_args *a = cli->options;
	struct gt_show_spec spec = {.split = a->split ? a->split : "train", .plain = a->plain, .step = a->step,
	                            .samples = a->samples ? a->samples : a->out ? SAMPLES_DRAWN : SAMPLES_PRINTED, .one_step = !a->samples,
	                            .warn = pass_warning, .user = cli};
	struct gt_conf *conf;
	struct gt_shown *b;
	if (a->out)
		GT_TRY(gt_shown_check_path(a->out, "--out", err));
	GT_TRY(find_run_config(cli, &spec.of_run, err));
	GT_TRY(gt_cli_conf(cli, &a->job, &conf, err));
	enum gt_code code = gt_show(conf, &spec, &b, err);
	if (code == GT_OK)
		code = show_batch(cli, b, err);
	gt_shown_free(b);
	gt_conf_free(conf);
	return code;
}

const struct gt_command gt_cmd_show = {
	.name = "show",
	.operands = "CFG",
	.about = "Shows samples of a training batch as the network gets them: images after the\n"
	         "transforms, with their classes, and with the weights of mixed images; tokens of\n"
	         "texts; scaled values and categories of tables. Images are blocks of colour, or with\n"
	         "-o one PNG image. CFG can be the directory of a run. Does not train.",
	.example = "gtrain show configs/fmnist_cnn.cfg -o batch.png",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CONFIG,
	.options = options,
	.args_size = sizeof(struct show_args),
	.run = run_show,
};
