/* Linear layers: which implementation takes a call. */
#include "cpu/cpu.h"

enum gt_code gt_cpu_linear(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	return gt_dnnl_linear(dev, call, out, err);
}
