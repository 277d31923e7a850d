#include "commands.h"
#include "gtrain_use.h"
#include <inttypes.h>
#include <stdio.h>

struct inspect_args {
	bool verify;
};
#define OFFSET(member) offsetof(struct inspect_args, member)

static const struct gt_option options[] = {
	{"verify", 0, GT_OPTION_FLAG, OFFSET(verify), NULL, GT_COMPLETE_NONE, NULL, 0, 0, "read all files and verify their digests"},
	{0},
};

static enum gt_code print_json(struct gt_cli *cli, const struct gt_inspect *r, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_object(j, NULL);
	gt_json_string(j, "path", r->path);
	gt_json_string(j, "name", r->name);
	gt_json_int(j, "format", r->format);
	gt_json_int(j, "step", r->step);
	gt_json_int(j, "epoch", r->epoch);
	gt_json_int(j, "world", r->world);
	gt_json_double(j, "seconds", r->seconds, 6);
	if (r->has_best) {
		gt_json_object(j, "best");
		if (r->best_metric)
			gt_json_string(j, "metric", r->best_metric);
		gt_json_double(j, "value", r->best, 9);
		gt_json_int(j, "step", r->best_step);
		if (r->best_epoch >= 0)
			gt_json_int(j, "epoch", r->best_epoch);
		gt_json_end(j);
	} else {
		gt_json_null(j, "best");
	}
	gt_json_bool(j, "verified", r->verified);
	if (r->nclasses)
		gt_json_array(j, "classes");
	else
		gt_json_null(j, "classes");
	for (int64_t i = 0; i < r->nclasses; i++)
		gt_json_string(j, NULL, r->class_name[i]);
	if (r->nclasses)
		gt_json_end(j);
	gt_json_array(j, "tensors");
	for (int i = 0; i < r->ntensors; i++) {
		gt_json_object(j, NULL);
		gt_json_string(j, "file", r->tensors[i].file);
		gt_json_string(j, "name", r->tensors[i].name);
		gt_json_string(j, "dtype", r->tensors[i].dtype);
		gt_json_string(j, "shape", r->tensors[i].shape);
		gt_json_uint(j, "bytes", r->tensors[i].bytes);
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_end(j);
	return gt_out_json(cli, err);
}

/* Prints the names of the classes, as many as fit into one line of the terminal. */
static void print_classes(struct gt_cli *cli, const struct gt_inspect *r)
{
	int width = gt_out_columns(), used;
	char count[GT_UNITS], name[128];
	if (!r->nclasses)
		return;
	gt_units_count(count, r->nclasses);
	gt_out(cli, "%s classes:", count);
	used = gt_text_width(count) + 9;
	for (int64_t i = 0; i < r->nclasses; i++) {
		gt_text_fit(cli, r->class_name[i], 40, name, sizeof name);
		used += gt_text_width(name) + 2;
		if (i && used > width - 4) { /* leaves room for the dots */
			gt_out(cli, " ...");
			break;
		}
		gt_out(cli, " %s%s", name, i + 1 < r->nclasses ? "," : "");
	}
	gt_out(cli, "\n");
}

static enum gt_code print_text(struct gt_cli *cli, const struct gt_inspect *r, struct gt_err *err)
{
	char path[sizeof r->path], name[128], step[GT_UNITS], bytes[GT_UNITS], took[GT_UNITS];
	struct gt_table t;
	uint64_t total = 0;
	gt_out(cli, "%s%s%s\n", gt_style(cli->color_out, GT_STYLE_BOLD), gt_cli_printable(r->path, path, sizeof path),
	       gt_style(cli->color_out, GT_STYLE_NONE));
	gt_out(cli, "%s, step %s, epoch %" PRId64 ", %" PRId64 " rank%s, format %" PRId64 ", %s\n",
	       gt_cli_printable(r->name ? r->name : "", name, sizeof name), gt_units_count(step, r->step), r->epoch, r->world,
	       r->world == 1 ? "" : "s", r->format, r->verified ? "every digest matches" : "digests not verified (use --verify)");
	gt_out(cli, "trained %s", gt_units_seconds(took, r->seconds));
	if (r->has_best)
		gt_out(cli, "; best %s %s at step %s", r->best_metric ? r->best_metric : "result", gt_units_loss(bytes, r->best),
		       gt_units_count(step, r->best_step));
	if (r->has_best && r->best_epoch >= 0)
		gt_out(cli, ", epoch %" PRId64, r->best_epoch);
	gt_out(cli, "\n");
	print_classes(cli, r);
	gt_out(cli, "\n");
	gt_table_init(&t, cli->arena, "llllr");
	gt_table_head(&t, (const char *[]){"file", "tensor", "type", "shape", "bytes"});
	for (int i = 0; i < r->ntensors; i++) {
		const struct gt_inspect_tensor *x = &r->tensors[i];
		total += x->bytes;
		gt_table_add(&t, (const char *[]){x->file, x->name, x->dtype, x->shape, gt_units_bytes(bytes, x->bytes)});
	}
	gt_table_rule(&t);
	gt_table_add(&t, (const char *[]){"total", "", "", "", gt_units_bytes(bytes, total)});
	return gt_table_print(cli, &t, err);
}

static enum gt_code run_inspect(struct gt_cli *cli, struct gt_err *err)
{
	const struct inspect_args *a = cli->options;
	struct gt_inspect *r = NULL;
	GT_TRY(gt_inspect(cli->args.operands.v[0], a->verify, &r, err));
	enum gt_code code = cli->args.json ? print_json(cli, r, err) : print_text(cli, r, err);
	gt_inspect_free(r);
	return code;
}

const struct gt_command gt_cmd_inspect = {
	.name = "inspect",
	.operands = "CKPT",
	.summary = "show the contents of a checkpoint, and verify it",
	.about = "Shows the contents of a checkpoint: step, epoch, training time, the best result so\n"
	         "far, and every tensor. Fails with status 65 if the checkpoint is damaged; --verify\n"
	         "reads all files to find damage.",
	.example = "gtrain inspect --verify runs/fmnist-mlp",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CHECKPOINT,
	.options = options,
	.args_size = sizeof(struct inspect_args),
	.run = run_inspect,
};
