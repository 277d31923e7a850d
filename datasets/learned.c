#include "learned.h"
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>

const struct gt_learning *gt_dataset_learning(const struct gt_dataset_spec *spec)
{
	static const struct gt_learning *const all[] = {&gt_learning_csv, &gt_learning_text};
	for (size_t i = 0; spec->format && i < sizeof all / sizeof *all; i++)
		if (!strcmp(all[i]->format, spec->format))
			return all[i];
	return NULL;
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
