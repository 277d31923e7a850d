/* Loads the config of an operand CFG with the options --set, --nproc, --mode and --out. */
#include "cli.h"
#include <string.h>

enum gt_code gt_cli_conf(struct gt_cli *cli, struct gt_conf **out, struct gt_err *err)
{
	const struct gt_args *a = &cli->args;
	const char **sets = NULL;
	int n = a->sets.n;
	GT_NEW(sets, cli->arena, n + 3, err);
	if (n)
		memcpy(sets, a->sets.v, (size_t)n * sizeof *sets);
	/* "auto" has no number in gt_run_opts, so it is set in the config. */
	if (a->nproc == GT_NPROC_AUTO)
		sets[n++] = "parallel.nproc=auto";
	if (a->dry_run && a->out)
		GT_NEW_STR(sets[n++], gt_arena_printf(cli->arena, "checkpoint.dir=\"%s\"", a->out), err);
	if (a->mode)
		GT_NEW_STR(sets[n++], gt_arena_printf(cli->arena, "parallel.mode=%s", a->mode), err);
	struct gt_problems errors = {.arena = cli->arena};
	const char *path;
	GT_TRY(gt_cli_config_path(cli, a->operands.v[0], &path, err));
	enum gt_code code = gt_conf_load_all(path, sets, n, &errors, out, err);
	/* main() reports the last error. In a rank, the launcher has reported the others. */
	for (int i = 0; code == GT_ECONFIG && i + 1 < errors.n && !cli->link; i++)
		gt_cli_complain(cli, errors.v[i].text);
	if (code == GT_ECONFIG && errors.n)
		gt_problems_get(&errors, errors.n - 1, err);
	return code;
}
