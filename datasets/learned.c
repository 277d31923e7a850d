#include "learned.h"
#include "base/arena.h"
#include "format.h"
#include <stdlib.h>

const struct gt_learning *gt_dataset_learning(const struct gt_dataset_spec *spec)
{
	const struct gt_format *f = gt_format_find(spec->format);
	return f ? f->learning : NULL;
}

enum gt_code gt_learned_new(const struct gt_learning *by, struct gt_learned **out, struct gt_err *err)
{
	if (!(*out = calloc(1, sizeof **out)))
		return gt_fail_memory(err, sizeof **out);
	(*out)->by = by;
	return GT_OK;
}

void gt_learned_free(struct gt_learned *l)
{
	if (!l)
		return;
	l->by->forget(l);
	free(l);
}
