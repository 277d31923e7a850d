/* Cutting a graph into the stages of a pipeline. What is cut is the finished graph (differentiated, fused, with recomputation): a stage has
 * the layers that the map gives it, their forward and their backward nodes; what it needs of others arrives through RECV nodes, what others
 * need of it leaves through SEND nodes (GT_OP_COMM, GT_GROUP_PIPE), whichever stages these are: a skip connection goes from where it is made
 * straight to where it is used. No node is changed, so that the numbers are those of the whole graph, bit for bit.
 *
 * - Stage s runs on rank s % ranks of the pipe. A transfer between two stages of one rank has that rank itself as its peer, and is one copy:
 *   of the forward pass when the receiving stage begins, until when (and longer) the value stays as it is, its SEND standing only at the start
 *   of the sending stage's backward pass; of the backward pass when it is made, since the receiving end has its place from its own forward
 *   pass on.
 * - Parameters keep their numbers: parameter i is the same tensor in the whole graph and in every stage's; it has values only on the stage
 *   that uses it, and a space gives it memory only there.
 * - Images and labels never cross: a stage that reads them loads them. Metrics stay on the last stage.
 * - A value that shares another one's memory (gt_node_alias) does not cross; what lies behind it does, and the alias is made again there.
 * - A value that is made again for the backward pass (recompute.h) is so on its own stage only; another stage keeps what it received.
 * - Transfers are in one order on both ends: that of gt_partition.cross within a phase of a micro-batch. A stage receives what a phase needs at
 *   the phase's start (where its memory is not used for anything else, so that it may also arrive before). It sends at the end of the forward
 *   pass, together with what it receives next, and in the backward pass right behind the node that makes the value.
 * - The nodes of a stage stand in the order of the phases: forward, backward, and, with split, those that make gradients of parameters only
 *   (gt_node_phase: W), whose operands live until then. What is computed does not depend on it. */
#ifndef GT_PLAN_PIPELINE_PARTITION_H
#define GT_PLAN_PIPELINE_PARTITION_H

#include "ir/graph.h"

/* One value that crosses from one stage to another. Both ends do it in this phase. */
struct gt_cross {
	gt_vid v;            /* of the whole graph */
	int from, to;        /* stages */
	enum gt_phase phase; /* F or B */
	int lane;            /* 0, unless gt_partition_lanes gives each pair of stages its own */
};

struct gt_partition {
	const struct gt_graph *full;
	int stages, ranks;
	bool split;
	int *stage;         /* one a node of full */
	uint8_t *phase;     /* the same: enum gt_phase */
	bool *live;         /* the same: some stage needs it; false: recomputation that only other stages would have read */
	struct gt_cross *cross; /* in the order of the nodes that make the values, then of the receiving stages */
	int ncross;
};

/* Finds what crosses. stage_of: one a layer, ascending from 0 to stages - 1 (what the engine added behind the layers is the last stage's).
 * In full's arena. GT_EINTERNAL: a value would have to go against the direction of its phase. */
enum gt_code gt_partition_make(const struct gt_graph *full, const int *stage_of, int stages, int ranks, bool split, struct gt_partition **out, struct gt_err *err);

/* With several stages on a rank, transfers between two ranks may be wanted in another order than they are sent, if they are of different
 * pairs of stages (a skip connection, and what comes right behind it). Then each pair of stages gets a lane of its own between its two
 * ranks. Returns the number of lanes; the graphs of stages that are made from now on have them. */
int gt_partition_lanes(struct gt_partition *c);

/* The graph of one stage, verified, in full's arena. */
enum gt_code gt_partition_stage(const struct gt_partition *c, int stage, struct gt_graph **out, struct gt_err *err);

bool gt_graph_reads(const struct gt_graph *g, gt_vid v); /* some node reads v, or what shares its memory */

/* ---- where to cut (balance.c) ----------------------------------------------------------------------------------------------------- */
int gt_graph_layers(const struct gt_graph *g); /* layers of the config that nodes come from: the length of stage_of */

/* What each node costs, in flops: its own, and flops_per_byte for each byte that it reads or writes. An alias costs nothing.
 * flops_per_byte: arithmetic over memory bandwidth of the device. Measured here on two cores, 512 GFLOP/s and about 40 GB/s; on an H200 in 16
 * bits, 790 TFLOP/s and 4.3 TB/s. */
#define GT_CUT_CPU 13.0
#define GT_CUT_GPU 180.0
void gt_partition_costs(const struct gt_graph *g, double flops_per_byte, double *cost);

/* The cut into consecutive layers, at least one a stage, whose largest stage costs the least; among these the one with the fewest bytes
 * of activations crossing (gradients take the same ways back). cost: one a node, from gt_partition_costs or measured, forward and backward.
 * Exact, in O(stages * layers^2). GT_ECONFIG: fewer layers than stages. */
enum gt_code gt_partition_balance(const struct gt_graph *g, const double *cost, int stages, int *stage_of, struct gt_err *err);

#endif
