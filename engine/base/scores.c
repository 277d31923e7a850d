#include "base/scores.h"
#include <math.h>
#include <string.h>

#define OF_STEPS(word, label, falls, kinds, help) {#word, label, falls, true, kinds, offsetof(struct gt_scores, word)},
#define OF_OUTPUTS(word, label, falls, kinds, help) {#word, label, falls, false, kinds, offsetof(struct gt_scores, word)},
const struct gt_score_row gt_score_rows[GT_SCORE_COUNT] = {GT_SCORES_OF_STEPS(OF_STEPS) GT_SCORES_OF_OUTPUTS(OF_OUTPUTS)};

double gt_score_get(const struct gt_scores *s, enum gt_score score)
{
	double v;
	memcpy(&v, (const char *)s + gt_score_rows[score].offset, sizeof v);
	return v;
}

void gt_scores_clear_outputs(struct gt_scores *s)
{
#define CLEAR(word, ...) s->word = NAN;
	GT_SCORES_OF_OUTPUTS(CLEAR)
}
