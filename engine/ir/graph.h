/* The graph: values and nodes in execution order. Built from a list of layer specs (gt_graph_build), for one batch size and one
 * purpose, then extended by the loss and the backward nodes (gt_graph_differentiate). Lives in an arena.
 *
 * Parameters and buffers are named as in a PyTorch state dict: "<layer>.weight". Their order is that of the layers. It does not
 * depend on the batch size or purpose, so that parameter i is the same tensor in every graph of a model.
 *
 * Pointers into values, nodes and params may be outdated (though readable, and unchanged) once another one has been added; ids never
 * are. Inputs, outputs and gradients that are absent stand as -1 at their place in gt_node.in and .out. */
#ifndef GT_IR_GRAPH_H
#define GT_IR_GRAPH_H

#include "base/arena.h"
#include "opcall.h"

typedef int gt_vid; /* index into gt_graph.values; -1: none */

enum gt_vkind {
	GT_V_INPUT,   /* images */
	GT_V_TARGET,  /* labels */
	GT_V_PARAM,   /* learned: f32 masters in the parameter arena (f64 in an f64 graph) */
	GT_V_WORK,    /* the 16-bit copy of a parameter, written by the optimizer */
	GT_V_BUFFER,  /* state that is not learned: running statistics */
	GT_V_GRAD,    /* parameter gradients, in the gradient arena */
	GT_V_ACT,     /* everything between */
	GT_V_METRICS, /* struct gt_metrics */
	GT_V_SCALE,   /* f64: what the loss multiplies its gradient by, in a training graph of f16 */
	GT_V_BOUND,   /* f64: an upper bound of gradients that are applied as they are made (plan/fused_update.c) */
	GT_V_PART     /* f64 [3, C] (moments.h): of the micro-batches so far, where running statistics wait for the whole batch (plan/syncbn.h) */
};

enum gt_init_method { GT_INIT_TORCH_DEFAULT, GT_INIT_TORCH, GT_INIT_KAIMING_NORMAL, GT_INIT_KAIMING_UNIFORM, GT_INIT_XAVIER_NORMAL,
	GT_INIT_XAVIER_UNIFORM,
	/* of a layer only: what is drawn is the model's, then … */
	GT_INIT_DIRAC,     /* … the first min(in, out) filters of a convolution become the identity (torch.nn.init.dirac_) */
	GT_INIT_WHITENING  /* … all of them are found from the training data (session/whiten.h) */
};

enum gt_init_kind { GT_INIT_CONST, GT_INIT_UNIFORM, GT_INIT_NORMAL };

/* How a parameter starts: value (CONST), U(-bound, bound), or N(0, std). */
struct gt_init {
	enum gt_init_kind kind;
	double value;
};

enum gt_param_class { GT_PARAM_WEIGHT, GT_PARAM_BIAS, GT_PARAM_NORM, GT_PARAM_BUFFER };

struct gt_value {
	const char *name;
	enum gt_vkind kind;
	struct gt_tdesc desc;
	int producer; /* node, -1 for inputs and parameters */
	int param;    /* index into params for PARAM, WORK, BUFFER, GRAD, and PART: the running mean's; else -1 */
	gt_vid again; /* the value that this one repeats in the backward pass (plan/recompute.h); -1: none */
};

struct gt_param {
	const char *name;  /* "layer1.0.conv1.weight" */
	const char *layer; /* "layer1.0.conv1" */
	enum gt_param_class cls;
	struct gt_tdesc desc; /* of the master: dtype, logical shape; the layout is filled in by the planner */
	struct gt_init init;  /* of torch-default; the other methods use the fans (ir/init.h) */
	enum gt_init_method method; /* how it is drawn */
	enum gt_init_method then;   /* GT_INIT_DIRAC or GT_INIT_WHITENING; else as method */
	double init_std;            /* > 0: scaled to this standard deviation last */
	double init_eps;            /* whitening */
	int64_t init_samples;
	int64_t fan_in, fan_out;
	double lr_mul;
	double weight_decay; /* NAN: the optimizer's */
	gt_vid value, work, grad; /* -1: none */
	bool frozen;
	int group; /* index into the model's groups; -1: none matches. Of running statistics: the group that has frozen_stats; else -1 */
};

/* The parts of one micro-batch's work that a pipeline orders on its own. */
enum gt_phase {
	GT_PHASE_F, /* forward */
	GT_PHASE_B, /* backward: what earlier stages wait for; where it is not split, all of it */
	GT_PHASE_W, /* backward: gradients of parameters, for which nobody waits */
	GT_PHASE_COUNT
};

struct gt_node {
	const struct gt_op *op;
	const char *name;  /* of the layer */
	int layer;         /* index of the layer spec, of backward nodes too; -1 for what the engine added */
	bool backward;
	bool deferred;     /* phase W, in a graph that was cut so (plan/pipeline_partition.h) */
	void *attr;        /* struct gt_attr_… of the operation, in the arena */
	int nin, nout;
	int ndata;         /* the first ndata inputs are data, the rest parameters and buffers */
	gt_vid in[GT_MAX_IO], out[GT_MAX_IO];
};

struct gt_graph {
	struct gt_arena *arena; /* not owned */
	bool train;             /* batch statistics, dropout, saved tensors */
	int64_t batch;          /* rows of the input: samples of one execution, times views */
	int views;              /* of each sample, averaged before the loss; 1: the sample itself */
	bool sync_bn;           /* batch statistics are of more ranks than this: one value a channel is enough here (plan/syncbn.h) */
	enum gt_dtype compute;  /* f32, bf16, f16, f64 */
	struct gt_value *values;
	struct gt_node *nodes;
	struct gt_param *params;
	int nvalues, nnodes, nparams;
	int cap_values, cap_nodes, cap_params;
	gt_vid input, target, output /* logits */, metrics;
	const struct gt_layer_spec *spec; /* of the node that infer is looking at */
	enum gt_init_method init;         /* the model's */
	const struct gt_param_group *groups; /* the model's */
	int ngroups;
	int layer;                        /* what gt_graph_node writes into a node: layer and backward */
	bool backward;
	int stage, stages;                /* of a graph that gt_partition_stage made: parameters of other stages have no values, and input, target, output
	                                     and metrics may be missing (-1) or read by nobody; stages 0: a whole graph */
};

static inline enum gt_phase gt_node_phase(const struct gt_node *n)
{
	return n->deferred ? GT_PHASE_W : n->backward ? GT_PHASE_B : GT_PHASE_F;
}

/* One layer as the config gives it, templates expanded. */
#define GT_MAX_LAYER_IN 8
struct gt_layer_spec {
	const char *name;
	const struct gt_op *op;
	void *attr;                        /* filled by conf from the row's attrs */
	const char *in[GT_MAX_LAYER_IN];   /* names of earlier layers, or "input": the model's; nin = 0: the layer before */
	int nin;
	double lr_mul;                     /* 1 */
	double weight_decay;               /* NAN: the optimizer's */
	bool frozen;
	bool recompute;                    /* its output is not kept for the backward pass, but made again */
	int init;                          /* enum gt_init_method, -1: the model's */
	double init_std, init_eps;
	int64_t init_samples;
	const char *file; int line;        /* of the layer in the config */
};

/* Parameters by name. The first group that matches a parameter has it. */
struct gt_param_group {
	const char *const *match; /* patterns, as fnmatch(3) without flags has them */
	int nmatch;
	bool frozen;
	bool frozen_stats; /* batch normalisations use running statistics in training and do not update them */
};

struct gt_model_spec {
	int64_t input[3]; /* C, H, W; 1-D inputs are C, 1, 1 */
	const struct gt_param_group *groups;
	int ngroups;
	enum gt_init_method init;
	bool sync_bn; /* as in gt_graph */
	const struct gt_layer_spec *layers;
	int nlayers;
};

struct gt_loss_spec {
	const struct gt_op *op;
	struct gt_attr_loss attr;
};

/* Builds and infers the forward graph. Every layer's output must be used,
 * the last one's is the model's. Errors: "file:line: model.layers[3] (fc1): …", GT_ECONFIG. */
enum gt_code gt_graph_build(struct gt_arena *a, const struct gt_model_spec *m, int64_t batch, enum gt_dtype compute, bool train,
                            struct gt_graph **out, struct gt_err *err);

/* Averages the output, [views * N, C], over the views of each sample, which stand view after view (test-time augmentation). */
enum gt_code gt_graph_views(struct gt_graph *g, int views, struct gt_err *err);

/* Adds the loss node on the output. In a training graph it also makes the gradient of the output. */
enum gt_code gt_graph_loss(struct gt_graph *g, const struct gt_loss_spec *loss, struct gt_err *err);

/* Appends the backward nodes of everything between the loss and the first parameter (autodiff.c). */
enum gt_code gt_graph_differentiate(struct gt_graph *g, struct gt_err *err);

/* Every input produced before use, every description complete, every parameter with one gradient, … : our own bugs, GT_EINTERNAL. */
enum gt_code gt_graph_verify(const struct gt_graph *g, struct gt_err *err);

double gt_graph_flops(const struct gt_graph *g);
int64_t gt_graph_num_params(const struct gt_graph *g); /* number of learned elements */

/* ---- for the rows' infer and gradient functions --------------------------------------------------------------------------- */
/* name and attr are kept, not copied: arena memory, or static. */
enum gt_code gt_graph_node(struct gt_graph *g, enum gt_opcode code, const char *name, const void *attr, struct gt_node **out,
                           struct gt_err *err);
/* The same for one row (several layer types may share an opcode). */
enum gt_code gt_graph_node_of(struct gt_graph *g, const struct gt_op *op, const char *name, const void *attr, struct gt_node **out,
                              struct gt_err *err);
/* Adds one forward node, checks the number of its inputs and infers it. attr is copied; NULL: the row's defaults. */
enum gt_code gt_graph_apply(struct gt_graph *g, const struct gt_op *op, const char *name, const void *attr, int nin, const gt_vid *in,
                            gt_vid *out, struct gt_err *err);
/* Fails (GT_ECONFIG) where the product of the dimensions is absurd. name is kept. */
enum gt_code gt_graph_value(struct gt_graph *g, const char *name, enum gt_vkind kind, const struct gt_tdesc *d, gt_vid *out,
                            struct gt_err *err);
/* Appends an output to n, named "<n->name>.<suffix>", or as n where suffix is NULL. n: the newest node. */
enum gt_code gt_graph_output(struct gt_graph *g, struct gt_node *n, const char *suffix, const struct gt_tdesc *d, gt_vid *out,
                             struct gt_err *err);
/* Declares "<n->name>.<suffix>" and appends it to n's inputs. Its desc: the compute dtype for GT_PARAM_WEIGHT (through a work copy
 * where that is 16 bits), f32 otherwise (f64 in an f64 graph); a buffer of rank 0 is an i64 counter. GT_PARAM_WEIGHT is
 * `any`, a parameter of rank 3 ([C, H, W]) lies as the activations do, H, W, C; all others are plain. */
enum gt_code gt_graph_param(struct gt_graph *g, struct gt_node *n, const char *suffix, enum gt_param_class cls, int rank,
                            const int64_t *dim, struct gt_init init, int64_t fan_in, int64_t fan_out, struct gt_err *err);
/* The first of the model's groups whose patterns match "<n->name>.<suffix>", whether such a parameter exists or not; -1: none. */
enum gt_code gt_graph_group(struct gt_graph *g, const struct gt_node *n, const char *suffix, int *out, struct gt_err *err);
/* Appends the gradient value of the parameter behind input vid to n's outputs (made on first use). -1 or frozen: appends "absent".
 * n: the newest node. */
enum gt_code gt_graph_grad(struct gt_graph *g, struct gt_node *n, gt_vid param, struct gt_err *err);
bool gt_graph_learns(const struct gt_graph *g, gt_vid param); /* v is there, is a parameter (or its work copy) and is not frozen */
void gt_node_input(struct gt_node *n, gt_vid v); /* v = -1: absent */
const struct gt_tdesc *gt_graph_desc(const struct gt_graph *g, gt_vid v);
enum gt_dtype gt_graph_stat_dtype(const struct gt_graph *g); /* f32, or f64 in an f64 graph */

#endif
