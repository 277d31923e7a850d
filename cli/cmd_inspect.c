#include "commands.h"
#include "base/json_read.h"
#include "gtrain_use.h"
#include <inttypes.h>
#include <stdio.h>

enum { NARROWEST = 24 }; /* minimum width of the column with names of tensors; if less remains, another column is removed */

struct inspect_args {
	bool verify;
};
#define OFFSET(member) offsetof(struct inspect_args, member)

static const struct gt_option options[] = {
	{"verify", 0, GT_OPTION_FLAG, OFFSET(verify), .help = "read all files and verify their digests"},
	{0},
};

/* Prints the names of the classes, up to the width of the terminal. */
static void print_classes(struct gt_cli *cli, const struct gt_json_value *first)
{
	int width = gt_out_columns(), used;
	char count[GT_UNITS], name[128];
	int64_t n = 0;
	for (const struct gt_json_value *c = first; c; c = c->next)
		n++;
	if (!n)
		return;
	gt_units_count(count, n);
	gt_out(cli, "%s classes:", count);
	used = gt_text_width(count) + 9;
	for (const struct gt_json_value *c = first; c; c = c->next) {
		gt_text_fit(cli, c->text, 40, name, sizeof name);
		used += gt_text_width(name) + 2;
		if (c != first && used > width - 4) { /* keeps space for an ellipsis */
			gt_out(cli, " ...");
			break;
		}
		gt_out(cli, " %s%s", name, c->next ? "," : "");
	}
	gt_out(cli, "\n");
}

static enum gt_code print_text(struct gt_cli *cli, struct gt_err *err)
{
	char path[4096], name[128], step[GT_UNITS], bytes[GT_UNITS], took[GT_UNITS];
	const struct gt_json_value *f, *best;
	struct gt_table t;
	uint64_t total = 0;
	GT_TRY(gt_out_facts(cli, &f, err));
	int64_t world = gt_json_count(f, "world");
	gt_out(cli, "%s%s%s\n", gt_style(cli->color_out, GT_STYLE_BOLD), gt_cli_printable(gt_json_str(f, "path"), path, sizeof path),
	       gt_style(cli->color_out, GT_STYLE_NONE));
	snprintf(path, sizeof path, "%s, step %s, epoch %" PRId64 ", %" PRId64 " rank%s, format %" PRId64 ", %s",
	       gt_cli_printable(gt_json_str(f, "name"), name, sizeof name), gt_units_count(step, gt_json_count(f, "step")),
	       gt_json_count(f, "epoch"), world, world == 1 ? "" : "s", gt_json_count(f, "format"),
	       gt_json_true(f, "verified") ? "every digest matches" : "digests not verified (use --verify)");
	gt_out_sentence(cli, path);
	gt_out(cli, "trained %s", gt_units_seconds(took, gt_json_num(f, "seconds")));
	best = gt_json_member(f, "best");
	if (gt_json_first(f, "best"))
		gt_out(cli, "; best %s %s at step %s", gt_json_member(best, "metric") ? gt_json_str(best, "metric") : "result",
		       gt_units_loss(bytes, gt_json_num(best, "value")), gt_units_count(step, gt_json_count(best, "step")));
	if (gt_json_member(best, "epoch"))
		gt_out(cli, ", epoch %" PRId64, gt_json_count(best, "epoch"));
	gt_out(cli, "\n");
	print_classes(cli, gt_json_first(f, "classes"));
	gt_out(cli, "\n");
	gt_table_init(&t, cli->arena, "llllr");
	gt_table_head(&t, "file", "tensor", "type", "shape", "bytes");
	for (const struct gt_json_value *x = gt_json_first(f, "tensors"); x; x = x->next) {
		uint64_t n = (uint64_t)gt_json_count(x, "bytes");
		total += n;
		gt_table_add(&t, gt_json_str(x, "file"), gt_json_str(x, "name"), gt_json_str(x, "dtype"), gt_json_str(x, "shape"),
		             gt_units_bytes(bytes, n));
	}
	gt_table_rule(&t);
	gt_table_add(&t, "total", "", "", "", gt_units_bytes(bytes, total));
	gt_table_narrow(cli, &t, 1, NARROWEST, "02"); /* Column 0 (file) is removed first, then column 2 (dtype). Without the file, rows stay
	                                                 distinct, because tensor names are unique in a checkpoint. */
	return gt_table_print(cli, &t, err);
}

static enum gt_code run_inspect(struct gt_cli *cli, struct gt_err *err)
{
	const struct inspect_args *a = cli->options;
	cli->json.exact = !cli->args.json; /* the printed text is made from these values */
	GT_TRY(gt_inspect(cli->args.operands.v[0], a->verify, &cli->json, err));
	return cli->args.json ? gt_out_json(cli, err) : print_text(cli, err);
}

const struct gt_command gt_cmd_inspect = {
	.name = "inspect",
	.operands = "CKPT",
	.about = "Shows the contents of a checkpoint: step, epoch, training time, the best result so\n"
	         "far, and every tensor. Ends with status 65 if the checkpoint is damaged; --verify\n"
	         "reads all files to find damage.",
	.example = "gtrain inspect --verify runs/fmnist-mlp",
	.min_operands = 1,
	.max_operands = 1,
	.first = GT_COMPLETE_CHECKPOINT,
	.options = options,
	.args_size = sizeof(struct inspect_args),
	.run = run_inspect,
};
