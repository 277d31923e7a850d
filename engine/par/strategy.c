/* The table of strategies, one for each value of parallel.mode. */
#include "par/strategy.h"

const struct gt_strategy *gt_strategy_of(enum gt_mode mode)
{
	static const struct gt_strategy *const all[] = {[GT_MODE_SINGLE] = &gt_strategy_single,
	                                                [GT_MODE_DP] = &gt_strategy_dp,
	                                                [GT_MODE_DDP] = &gt_strategy_ddp,
	                                                [GT_MODE_ZERO] = &gt_strategy_zero,
	                                                [GT_MODE_PIPE] = &gt_strategy_pipe};
	return all[mode];
}
