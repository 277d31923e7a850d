#include "par/strategy.h"
#include <string.h>

const struct gt_strategy *gt_strategy_find(const char *name)
{
	static const struct gt_strategy *const all[] = {&gt_strategy_single, &gt_strategy_dp, &gt_strategy_ddp, &gt_strategy_zero, &gt_strategy_pipe};
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i]->name, name))
			return all[i];
	return NULL;
}
