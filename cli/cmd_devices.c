#include "commands.h"
#include "gtrain_report.h"
#include <string.h>

#define MAX_DEVICES 64

static enum gt_code print_json(struct gt_cli *cli, const struct gt_device_row *r, struct gt_err *err)
{
	struct gt_json *j = &cli->json;
	gt_json_row(j, NULL, GT_STR("backend", r->backend), GT_STR("id", r->id), GT_BOOL("usable", r->usable), GT_STR("name", r->name),
	            GT_STR("detail", r->detail), GT_STR("native", r->native), GT_UINT("bytes", r->bytes));
	return gt_out_json(cli, err);
}

static enum gt_code run_devices(struct gt_cli *cli, struct gt_err *err)
{
	struct gt_device_row *rows;
	struct gt_table t;
	int n = 0;
	GT_NEW(rows, cli->arena, MAX_DEVICES, err);
	GT_TRY(gt_devices(rows, MAX_DEVICES, &n, err));
	gt_table_init(&t, cli->arena, "llrll");
	gt_table_head(&t, "device", "name", "memory", "precision", "detail");
	for (int i = 0; i < n && i < MAX_DEVICES; i++) {
		char bytes[GT_UNITS];
		if (cli->args.json)
			GT_TRY(print_json(cli, &rows[i], err));
		else
			gt_table_add(&t, rows[i].usable ? rows[i].id : rows[i].backend, rows[i].usable ? rows[i].name : "none",
			             rows[i].bytes ? gt_units_bytes(bytes, rows[i].bytes) : "", rows[i].native, rows[i].detail);
	}
	if (cli->args.json)
		return GT_OK;
	if (gt_out_terminal())
		gt_table_leave_out(&t, gt_out_columns(), 4, 0, "32"); /* column 3 (precision) is removed first, then column 2 (memory) */
	return gt_table_print(cli, &t, err);
}

const struct gt_command gt_cmd_devices = {
	.name = "devices",
	.operands = "",
	.about = "Lists the devices on which this machine can train, and the number formats for which\n"
	         "they have arithmetic. For a backend without a device, shows the reason.",
	.example = "gtrain devices --json",
	.run = run_devices,
};
