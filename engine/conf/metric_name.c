#include "conf/metric_name.h"
#include "base/public.h"
#include <stddef.h>
#include <string.h>

#define OF_STEPS(score, falls, kinds) {#score, falls, true, kinds, offsetof(struct gt_scores, score)},
#define OF_OUTPUTS(score, falls, kinds) {#score, falls, false, kinds, offsetof(struct gt_scores, score)},
const struct gt_metric_row gt_metric_rows[] = {GT_METRICS_OF_STEPS(OF_STEPS) GT_METRICS_OF_OUTPUTS(OF_OUTPUTS){0}};

bool gt_metric_parse(const char *text, struct gt_metric *out)
{
	const char *slash = strchr(text, '/');
	int split = 0;
	const struct gt_metric_row *row = gt_metric_rows;
	if (!slash)
		return false;
	while (split < GT_SPLITS && (strlen(gt_split_names[split]) != (size_t)(slash - text) ||
	                             strncmp(text, gt_split_names[split], (size_t)(slash - text))))
		split++;
	while (row->name && strcmp(row->name, slash + 1))
		row++;
	*out = (struct gt_metric){(enum gt_split)split, row};
	return split < GT_SPLITS && row->name;
}

double gt_metric_value(const struct gt_metric *m, const struct gt_scores *r)
{
	double v;
	memcpy(&v, (const char *)r + m->score->offset, sizeof v);
	return v;
}

bool gt_metric_falls(const char *text)
{
	struct gt_metric m;
	return gt_metric_parse(text, &m) && m.score->falls;
}

bool gt_metric_is(const char *text, const char *score)
{
	struct gt_metric m;
	return gt_metric_parse(text, &m) && !strcmp(m.score->name, score);
}
