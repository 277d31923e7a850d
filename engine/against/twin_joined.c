#include "against/twin.h"
#include "opsig.h"

enum gt_code gt_twin_join(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err)
{
	(void)t;
	return gt_opcall_refuse(call, err, "no rule for it");
}
