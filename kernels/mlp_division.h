/* How mlp.steps divides a multilayer perceptron among the multiprocessors of a card, and which calls it refuses. The CUDA backend asks
 * here for the card that it runs on, and `gtrain check --card` for one that is only described.
 *
 *     const char *why = gt_mlp_refuses(&call);                               the reasons that do not depend on the card
 *     struct gt_mlp_card card = {.sms = 132, .shared = 227 << 10};
 *     if (!gt_mlp_divide(&call, &card, &d, text, sizeof text)) ...           the card has no kernel; text says why
 *     gt_mlp_work(&d, &work);                                                what a block does in a step
 *
 * Layers are numbered from 0; the last one is `nlayers - 1`. There is at most one block for each multiprocessor. Block i owns the outputs
 * [i * cols, (i + 1) * cols) of each layer but the last one, with their rows of the weight, and the same inputs of the last layer, with
 * their columns of its weight. kernels/cuda/mlp_kernel.cuh has the kernel. */
#ifndef GT_KERNELS_MLP_DIVISION_H
#define GT_KERNELS_MLP_DIVISION_H

#include "opcall.h"

#define GT_MLP_BLOCK 512  /* threads of a block */
#define GT_MLP_CLASSES 16 /* maximum number of outputs of the last layer */
#define GT_MLP_ROWS 128   /* maximum number of rows of the batch */
#define GT_MLP_HEAD 16    /* words at the begin of the workspace: the arrivals at the barrier, and two flags; 0 before a launch */
/* bytes of a block's shared memory that no division uses: the kernel's own static shared memory, and a KiB that the driver keeps */
#define GT_MLP_RESERVED 2048

struct gt_mlp_card {
	int sms;        /* multiprocessors */
	int64_t shared; /* bytes of shared memory that a block may have if it asks for more than usual (opt-in) */
};

/* `shared` and `own` are offsets in shared memory, `act`, `slope`, `grad` and `next` in the workspace, all in floats. */
struct gt_mlp_division_layer {
	int32_t in, out;
	int32_t cols;        /* a multiple of 4; of the last layer: as of the one before */
	int32_t shared, shared_bias; /* weights and bias that the block owns, relative to the begin of a set */
	/* outputs that the block owns; gt_mlp_division.own_floats further on their gradients; with `more`, as far again, the derivatives of the
	 * activation */
	int32_t own;
	int64_t act[2];      /* outputs of all blocks, [rows, out], at even and odd steps; -1: the last layer has none */
	int64_t slope[2];    /* with `more`, of the layer before the last one: derivatives of the activation; else -1 */
	int64_t grad[2];     /* gradients of them; -1: no block needs those of another one */
	int64_t next[2];     /* weights of all blocks at even and odd steps; of the last layer [in, classes] and then the bias; -1: layer 0 */
};

struct gt_mlp_division {
	struct gt_mlp_division_layer layer[GT_MLP_LAYERS];
	int32_t nlayers, rows;
	int32_t classes; /* outputs of the last layer, rounded up to a multiple of 4 */
	int32_t nstates; /* states that the optimizer keeps of each parameter */
	int32_t copies;  /* 1 + nstates, and one if there is a moving average */
	/* the kernel needs what only the larger one of two kernels has: clipping, a moving average, class weights, another loss than cross
	 * entropy, another activation than relu, or more than 64 rows */
	bool more, clips;
	/* Shared memory, offsets in floats. A set has the weights and biases that the block owns; the parameters, each state and the moving
	 * average have one at even and one at odd steps. */
	int32_t set, own_floats;
	int32_t labels_at, places_at, loss_at, rank_at, norm_at, opt_at; /* numbers of the rows; norm; factors of the optimizer */
	int32_t logits_at, part_at, column_at, tile_at, last_at;
	int32_t wide, narrow; /* columns of a batch that are in shared memory at once; narrow: beside the weights of the last layer */
	int64_t norm[2]; /* sums of squares of gradients at even and odd steps, offsets in the workspace in floats; -1: no clipping */
	int32_t norms;   /* number of these sums: one of each four outputs, or inputs of the last layer, and one of its bias */
	int32_t blocks;
	size_t shared, work; /* bytes of shared memory of a block; bytes of the workspace */
};

/* What one block does in one step. The counts follow the loops of mlp_layers.cuh, mlp_update.cuh and mlp_parts.cuh. */
struct gt_mlp_work {
	double multiply_adds; /* of single threads */
	double accesses;      /* reads and writes of shared memory by a warp; one with a conflict of n ways counts n times */
	double bytes;         /* between the L2 cache and the multiprocessor, in both directions */
	int barriers;         /* of the whole grid */
};

/* Returns the reason why no card can do a call that has the operands of its operation (opsig.h); NULL: there is none. */
const char *gt_mlp_refuses(const struct gt_opcall *call);
/* Divides the model of a call that gt_mlp_refuses does not refuse. Returns false if the card has no room, or if the blocks would read so
 * much that single kernels are better; `why` is then the reason. */
bool gt_mlp_divide(const struct gt_opcall *call, const struct gt_mlp_card *card, struct gt_mlp_division *out, char *why, size_t size);
void gt_mlp_work(const struct gt_mlp_division *d, struct gt_mlp_work *out);

#endif
