#include "strided.h"
#include "opsig.h"

/* Sets step[k] to the stride of dimension k in elements. */
static void steps_of(const struct gt_tdesc *d, int64_t *step)
{
	int64_t n = 1;
	for (int k = d->rank - 1; k >= 0; k--) {
		step[d->layout.order[k]] = n;
		n *= d->dim[d->layout.order[k]];
	}
}

const char *gt_strided_make(const struct gt_opcall *call, struct gt_strided *out)
{
	const struct gt_tdesc *x = gt_opcall_input(call), *y = gt_opcall_output(call);
	const struct gt_attr_permute *p = call->attr;
	const struct gt_attr_select *s = call->attr;
	bool permute = call->code == GT_OP_PERMUTE, back = call->code == GT_OP_SELECT_DX;
	int64_t step[GT_MAX_RANK];
	const struct gt_tdesc *whole = back ? y : x;
	if (x->rank > 4 || y->rank > 4 || y->rank != (permute ? x->rank : back ? x->rank + 1 : x->rank - 1))
		return "the ranks of input and output do not match the operation";
	if (!permute && (s->dim < 1 || s->dim >= whole->rank || s->index < 0 || s->index >= whole->dim[s->dim]))
		return "the index is outside of the dimension";
	steps_of(x, step);
	*out = (struct gt_strided){.dim = {1, 1, 1, 1}, .guard = -1, .first = permute || back ? 0 : s->index * step[s->dim]};
	for (int k = 0; k < y->rank; k++) {
		int to = 4 - y->rank + k, d = y->layout.order[k]; /* dimension of y */
		int from = permute ? (int)p->dims.v[d] : back ? d - (d > s->dim) : d + (d >= s->dim); /* the dimension of x that corresponds to d */
		out->dim[to] = y->dim[d];
		if (back && d == s->dim) {
			out->guard = to;
			out->index = s->index;
			continue;
		}
		if (from < 0 || from >= x->rank || x->dim[from] != y->dim[d])
			return "the sizes of input and output do not match the operation";
		out->step[to] = step[from];
	}
	return NULL;
}
