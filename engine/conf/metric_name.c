#include "conf/metric_name.h"
#include <string.h>

bool gt_metric_parse(const char *text, struct gt_metric *out)
{
	const char *slash = strchr(text, '/');
	int split = 0, score = 0;
	if (!slash)
		return false;
	while (split < GT_SPLITS && (strlen(gt_split_names[split]) != (size_t)(slash - text) ||
	                             strncmp(text, gt_split_names[split], (size_t)(slash - text))))
		split++;
	while (score < GT_SCORE_COUNT && strcmp(gt_score_rows[score].word, slash + 1))
		score++;
	*out = (struct gt_metric){(enum gt_split)split, (enum gt_score)score};
	return split < GT_SPLITS && score < GT_SCORE_COUNT;
}

bool gt_metric_falls(const char *text)
{
	struct gt_metric m;
	return gt_metric_parse(text, &m) && gt_score_rows[m.score].falls;
}

bool gt_metric_is(const char *text, enum gt_score score)
{
	struct gt_metric m;
	return gt_metric_parse(text, &m) && m.score == score;
}
