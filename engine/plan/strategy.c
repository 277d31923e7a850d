/* The table of strategies, one for each value of parallel.mode. */
#include "plan/strategy.h"

const struct gt_strategy *gt_strategy_of(enum gt_mode mode)
{
#define STRATEGY(NAME, word, ...) [GT_MODE_##NAME] = &gt_strategy_##word,
	static const struct gt_strategy *const all[] = {GT_MODES(STRATEGY)};
#undef STRATEGY
	return all[mode];
}

enum gt_code gt_strategy_check_nproc(const struct gt_conf *c, int nproc, struct gt_err *err)
{
	const struct gt_strategy *s = gt_strategy_of(c->parallel.mode);
	if (s->ranks != GT_RANKS_ONE || (nproc ? nproc : c->parallel.nproc) <= 1)
		return GT_OK;
	if (nproc)
		return gt_conf_refuse(c, "parallel.mode", err,
		                      "--nproc %d and parallel.mode = \"%s\" cannot be combined; add -s parallel.mode=ddp", nproc, s->name);
	return gt_conf_refuse(c, "parallel.nproc", err,
	                      "parallel.nproc = %lld and parallel.mode = \"%s\" cannot be combined; write parallel.mode = \"ddp\"",
	                      (long long)c->parallel.nproc, s->name);
}
