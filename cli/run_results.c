/* Writes the results of a run as members of a JSON object: for `gtrain runs` and `gtrain compare`. */
#include "cli.h"
#include "gtrain_view.h"
#include <math.h>
#include <stdio.h>

void gt_cli_run_results(struct gt_json *j, const struct gt_run_record *r)
{
	if (r->best_metric)
		gt_json_row(j, "best", GT_STR("metric", r->best_metric), GT_NUM("value", r->best, 9), GT_INT("step", r->best_step),
		            GT_INT("epoch", r->best_epoch));
	else
		gt_json_null(j, "best");
	gt_json_object(j, "last");
	for (int split = 0; split < 3; split++)
		for (int i = 0; i < GT_SCORE_COUNT; i++)
			if (!isnan(r->last[split][i])) {
				char name[64];
				snprintf(name, sizeof name, "%s/%s", gt_run_splits[split], gt_score_rows[i].word);
				gt_json_double(j, name, r->last[split][i], 9);
			}
	gt_json_end(j);
}
