/* Partitions a graph into the stages of a pipeline. The input is the finished training graph (differentiated, fused, with recomputation). A
 * map assigns each layer to a stage. The graph of a stage has the forward and backward nodes of its layers. RECV nodes receive values from
 * other stages, and SEND nodes send values to other stages (GT_OP_COMM, GT_GROUP_PIPE). A value is sent directly from the stage that makes
 * it to each stage that reads it; for example, the stages between the two ends of a skip connection do not relay it. No node is changed, so
 * the results equal those of the whole graph, bit for bit.
 *
 *	gt_partition_make(full, stage_of, 2, 2, false, &c, err);     finds the crossing values a and da
 *	gt_partition_stage(c, 0, &g0, err);
 *	gt_partition_stage(c, 1, &g1, err);
 *
 *	stage 0    conv1  relu  SEND a                       RECV da  relu.dx  conv1.dw
 *	                          |                             ^
 *	                          v                             |
 *	stage 1                 RECV a  fc  loss  fc.dx      SEND da  fc.dw
 *
 * - Stage s runs on rank s % ranks of the pipeline. If both stages of a transfer are on one rank, the peer is the rank itself and the
 *   transfer is one copy. In the forward pass the copy is made when the receiving stage begins. Until then the value stays in memory,
 *   because its SEND node is at the start of the sending stage's backward pass. In the backward pass the copy is made as soon as the value
 *   is made, because the receiving stage's memory is reserved from its own forward pass on.
 * - Parameters keep their indices: parameter i is the same tensor in the whole graph and in the graph of every stage. Only the stage that
 *   uses a parameter has its values and memory for them.
 * - A tied parameter (gt_param.tied) belongs to the stage of the layer that owns it. gt_graph_send_tied, before the partition, gives layers
 *   of other stages a copy of the parameter, which is sent like an activation; the nodes that make its gradient are all on the owner's
 *   stage (ir/autodiff.c), which receives their operands. So the sums have the same order as without a pipeline.
 * - Images and labels are never sent: a stage that reads them loads them. Metrics stay on the last stage.
 * - A value that shares another value's memory (gt_node_alias) is not sent. Instead the value that owns the memory is sent, and the
 *   receiving stage makes the alias.
 * - A value that is recomputed for the backward pass (recompute.h) is recomputed on its own stage only. A stage that receives the value
 *   keeps it.
 * - Both ends order their transfers in the same way: within one phase of a micro-batch, in the order of gt_partition.cross. A stage
 *   receives the values for a phase at the start of the phase; their memory has no earlier use, so that data may arrive early. In the
 *   forward pass a stage sends at the end, together with its next receives; in the backward pass it sends a value right after the node that
 *   makes the value.
 * - The nodes of a stage are in the order of the phases: forward, backward, and with `split` the nodes that make only gradients of
 *   parameters (gt_node_phase: W), whose operands are kept until then. The results do not depend on this order. */
#ifndef GT_PLAN_PIPELINE_PARTITION_H
#define GT_PLAN_PIPELINE_PARTITION_H

#include "ir/graph.h"

/* One value that one stage sends to another. Both ends transfer it in the same phase. */
struct gt_stage_transfer {
	gt_vid v;            /* the transferred value, as an index in the whole graph */
	int from, to;        /* index of the sending and of the receiving stage */
	enum gt_phase phase; /* GT_PHASE_F or GT_PHASE_B: phase in which both stages transfer it */
	int lane;            /* value of gt_attr_comm.lane; 0 unless gt_partition_lanes gave each pair of stages a lane of its own */
};

struct gt_partition {
	const struct gt_graph *full; /* the whole graph */
	int stages, ranks;           /* number of stages and number of ranks of the pipeline; stages is a multiple of ranks */
	/* the backward pass is split into phase B (gradients of activations) and phase W (gradients of parameters) */
	bool split;
	int *stage;                  /* [node of full]: stage that executes the node */
	uint8_t *phase;              /* [node of full]: enum gt_phase of the node */
	bool *live;                  /* [node of full]: false: the node recomputes a value that its own stage does not need */
	struct gt_stage_transfer *cross; /* all transfers, sorted by the node that makes the value, then by the receiving stage */
	int ncross;
};

/* tied_stages.c: inserts, for each tied parameter that layers of several stages read, a node that copies it, and makes the layers of the
 * other stages read the copy. stage_of: as for gt_partition_make. */
enum gt_code gt_graph_send_tied(struct gt_graph *g, const int *stage_of, int stages, struct gt_err *err);

/* Finds the values that one stage makes and another stage reads. stage_of: one entry for each layer, ascending from 0 to stages - 1
 * (nodes that the engine added after the layers belong to the last stage). split: divide the backward pass into the phases B and W. The
 * result is in the arena of full. Returns GT_EINTERNAL if a value would have to be sent against the direction of its phase. */
enum gt_code gt_partition_make(const struct gt_graph *full, const int *stage_of, int stages, int ranks, bool split,
                               struct gt_partition **out, struct gt_err *err);

/* Gives the transfers of each pair of stages a lane (a communicator) of their own. This is needed if ranks have several stages: two
 * ranks may then receive transfers of different pairs of stages in another order than they are sent. Returns the number of lanes. Graphs
 * of stages that are made afterwards use these lanes. */
int gt_partition_lanes(struct gt_partition *c);

/* Makes the graph of one stage, in the arena of the whole graph, and verifies it. */
enum gt_code gt_partition_stage(const struct gt_partition *c, int stage, struct gt_graph **out, struct gt_err *err);

bool gt_graph_reads_batch(const struct gt_graph *g); /* returns whether some node of g reads an input of the model or the target */

/* ---- choosing the stages (balance.c) ---------------------------------------------------------------------------------------------- */
/* returns the number of layers in the config that have nodes in g, which is the length of stage_of */
int gt_graph_layers(const struct gt_graph *g);

/* Estimates the cost of each node, in flops: its own flops, plus flops_per_byte for each byte that it reads or writes. An alias costs
 * nothing. flops_per_byte is the device's arithmetic rate divided by its memory bandwidth. The two constants are measured: two CPU cores
 * reach 512 GFLOP/s and about 40 GB/s; an H200 in 16 bits reaches 790 TFLOP/s and 4.3 TB/s. */
#define GT_CUT_CPU 13.0
#define GT_CUT_GPU 180.0
void gt_partition_costs(const struct gt_graph *g, double flops_per_byte, double *cost);

/* Divides the layers into consecutive stages of at least one layer each, so that the cost of the most expensive stage is as low as
 * possible. Among such divisions it takes the division that sends the fewest bytes of activations from stage to stage (gradients take the
 * same paths back). cost: one entry for each node, forward and backward, from gt_partition_costs. The result is optimal; computing it takes
 * O(stages * layers^2) time. Returns GT_ECONFIG if there are fewer layers than stages. */
enum gt_code gt_partition_balance(const struct gt_graph *g, const double *cost, int stages, int *stage_of, struct gt_err *err);

#endif
