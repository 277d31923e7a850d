#include "sweep/sweep_data.h"
#include "base/fileio.h"
#include "conf/conf.h"
#include "gtrain_data.h"
#include <stdio.h>

/* Returns whether the data of the config c exists, and frees c. If the data is missing and *why has no error yet, sets *why to the reason.
 * Other errors are reported when the trial runs. */
static bool has_data(struct gt_conf *c, struct gt_err *why)
{
	struct gt_err now = {0};
	bool found = gt_probe_data(c, &now) != GT_ENOINPUT;
	if (!found && !why->code)
		*why = now;
	gt_conf_free(c);
	return found;
}

enum gt_code gt_sweep_data_new(const struct gt_sweep_spec *spec, const struct gt_sweep_plan *p, struct gt_arena *a, struct gt_err *err)
{
	struct gt_err why = {0};
	bool found = false;
	for (int i = 0; i < p->ntrials && !found; i++) {
		struct gt_conf *c;
		GT_TRY(gt_sweep_plan_config(spec, p, i, a, &c, err));
		found = has_data(c, &why);
	}
	return found ? GT_OK : gt_fail(err, GT_ENOINPUT, "%s", why.msg);
}

enum gt_code gt_sweep_data_continued(const char *dir, const struct gt_sweep_plan *p, const struct gt_trial_run *t, struct gt_err *err)
{
	char name[32], path[GT_PATH_SIZE];
	struct gt_err why = {0};
	bool found = gt_trial_next(t, p) < 0;
	for (int i = 0; i < p->ntrials && !found; i++) {
		struct gt_conf *c;
		if (t[i].code || t[i].done == p->nrungs)
			continue;
		snprintf(name, sizeof name, "configs/%d.cfg", i + 1);
		GT_TRY(gt_path_join(path, dir, name, err));
		GT_TRY(gt_conf_load(path, NULL, 0, &c, err));
		found = has_data(c, &why);
	}
	return found ? GT_OK : gt_fail(err, GT_ENOINPUT, "%s", why.msg);
}
