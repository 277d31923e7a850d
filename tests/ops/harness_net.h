/* A case of the op table as a graph: the operation alone, differentiated for all of its inputs, whether or not a parameter needs it. */
#ifndef GT_TESTS_HARNESS_NET_H
#define GT_TESTS_HARNESS_NET_H

#include "harness.h"
#include "harness_table.h"

struct net {
	const struct opcase *c;
	struct gt_arena *arena;
	struct gt_graph *g;
	int ninputs;
	gt_vid x[OPCASE_INPUTS], dx[OPCASE_INPUTS]; /* dx -1: no gradient (evaluation) */
	gt_vid y, dy;                               /* -1 for a loss */
	int forward;                                /* nodes [0, forward) are the forward ones */
};

/* n->arena owns the graph; the caller closes it, after a failure too. */
void case_weights(const struct opcase *c, double *w); /* the weights of a loss, one for each output */
enum gt_code net_build(struct net *n, const struct opcase *c, enum gt_dtype t, struct gt_err *err);

#endif
