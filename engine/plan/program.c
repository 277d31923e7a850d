/* Prints the names of steps, and binds the operands of programs to device addresses. */
#include "plan/program.h"

const char *gt_step_name(enum gt_step_kind k)
{
	static const char *const names[] = {
#define GT_X(id, name) [id] = name,
		GT_STEPS(GT_X)
#undef GT_X
	};
	return names[k];
}

void gt_prog_bind(struct gt_prog *p, const struct gt_space *s)
{
	const struct gt_plan *bound = NULL;
	for (int i = 0; i < p->n; i++) {
		struct gt_call *c = p->step[i].call;
		struct gt_plan *q = p->step[i].plan;
		/* gt_plan_bind for an instance of a plan, because the caller knows only the plans and not the instances that the strategy made */
		if (q && q->of && q != bound) {
			gt_plan_bind(q);
			bound = q;
		}
		if (!c || !c->comm || c->node >= 0)
			continue;
		*c->in = gt_space_at(s, c->from);
		*c->out = gt_space_at(s, c->to);
	}
}
