/* The graph of a model: values (tensors) and nodes (operations) in execution order, for one batch size and one purpose (training or
 * evaluation). A graph is built from a list of layer specs and then extended by the loss and the backward nodes. It is stored in an arena.
 *
 *	gt_graph_build(arena, &model, batch, GT_F32, true, &g, err);   forward nodes
 *	gt_graph_loss(g, &loss, err);                                  loss node
 *	gt_graph_differentiate(g, err);                                backward nodes
 *	gt_graph_verify(g, err);
 *
 *	input --> [conv1] --> a --> [relu] --> y --> [fc] --> output --> [loss] <-- target
 *	             ^                                ^                    |  \--> metrics
 *	conv1.weight +                      fc.weight +                    v
 *	conv1.weight.grad <-- [conv2d.dw] <-- [relu.dx] <-- [linear.dx] <-- gradient of output
 *
 * Parameters and buffers are named as in a PyTorch state dict: "<layer>.weight". They are in the order of the layers for every batch size
 * and purpose, so parameter i is the same tensor in every graph of a model.
 *
 * Adding a value, node or parameter may move its array. Pointers into the old array can still be read, but show no later changes. Ids
 * (array indices) stay valid. An input, output or gradient that is absent has the id -1 at its position in gt_node.in or .out. */
#ifndef GT_IR_GRAPH_H
#define GT_IR_GRAPH_H

#include "base/arena.h"
#include "ir/op.h"

enum gt_vkind {
	GT_V_INPUT,   /* an input of the model: images, or other values of the samples */
	GT_V_TARGET,  /* labels */
	GT_V_PARAM,   /* trainable parameters: master values in the parameter arena, f32 (f64 in an f64 graph) */
	GT_V_WORK,    /* the 16-bit copy of a parameter, which the optimizer writes */
	GT_V_BUFFER,  /* state that is not trained: running statistics */
	GT_V_GRAD,    /* gradient of a parameter, in the gradient arena */
	GT_V_ACT,     /* every other intermediate value: activations and their gradients */
	GT_V_METRICS, /* the metrics that the loss node adds up (struct gt_metrics) */
	GT_V_SCALE,   /* f64 scalar: the loss scale, with which the loss node of an f16 training graph multiplies its gradient */
	GT_V_BOUND    /* f64 scalar: an upper bound of the gradients that fused updates apply without storing them (plan/fused_update.c) */
};

enum gt_init_method {
	GT_INIT_TORCH_DEFAULT,
	GT_INIT_TORCH,
	GT_INIT_KAIMING_NORMAL,
	GT_INIT_KAIMING_UNIFORM,
	GT_INIT_XAVIER_NORMAL,
	GT_INIT_XAVIER_UNIFORM,
	/* The methods below are set for single layers. They change the values that the model's method has drawn. */
	GT_INIT_DIRAC,     /* replaces the first min(in, out) filters of a convolution by the identity (torch.nn.init.dirac_) */
	GT_INIT_WHITENING, /* computes all filters from the training data (session/whiten.h) */
	GT_INIT_ZEROS      /* sets the weight of a layer to 0 (torch.nn.init.zeros_), such as a block's last batch normalisation */
};

enum gt_init_kind { GT_INIT_CONST, GT_INIT_UNIFORM, GT_INIT_NORMAL };

/* Distribution of the initial values of a parameter. */
struct gt_init {
	enum gt_init_kind kind;
	double value; /* CONST: the value; UNIFORM: the bound of U(-bound, bound); NORMAL: the standard deviation of N(0, std) */
};

enum gt_param_class {
	GT_PARAM_WEIGHT,
	GT_PARAM_BIAS,
	GT_PARAM_NORM,
	GT_PARAM_BUFFER,
	GT_PARAM_TABLE /* table of rows that are selected by integers: plain layout, f32 (f64 in an f64 graph), without a 16-bit copy */
};

struct gt_value {
	const char *name;
	enum gt_vkind kind;
	struct gt_tdesc desc;
	int producer; /* index of the node that makes the value; -1 for inputs and parameters */
	int param;    /* for the kinds PARAM, WORK, BUFFER and GRAD: index of the parameter in gt_graph.params; else -1 */
	const int64_t *codes; /* input of codes: number of different codes in each column; input of tokens: one vocabulary size; 0: not known.
	                         Other values: NULL */
	gt_vid again; /* if the value is recomputed in the backward pass: the forward value that it repeats (plan/recompute.h); else -1 */
};

struct gt_param {
	const char *name;  /* name of the parameter: "layer1.0.conv1.weight" */
	const char *layer; /* name of its layer: "layer1.0.conv1" */
	enum gt_param_class cls;
	struct gt_tdesc desc;       /* dtype and logical shape of the master values; the planner fills in the layout */
	struct gt_init init;        /* initial distribution with method torch-default; the other methods compute one from fan_in and fan_out
	                               (ir/init.h) */
	enum gt_init_method method; /* method by which the initial values are drawn */
	enum gt_init_method then;   /* GT_INIT_DIRAC, WHITENING or ZEROS if applied after the draw; else equal to method */
	double init_std;            /* if > 0: standard deviation to which the initial values are scaled at the end */
	double init_eps;            /* GT_INIT_WHITENING: value >= 0 that is added to the variances */
	int64_t init_samples;       /* GT_INIT_WHITENING: number of training images that are used */
	int64_t zero_row;           /* row of a table that starts at 0; -1: none */
	int64_t torch_skip;         /* method `torch`: > 0: number of random draws to skip before this parameter; -1: the parameter uses the
	                               skipped draws; 0: it uses the next draws */
	int64_t torch_lost;         /* method `torch`: number of random draws before this parameter to discard, because PyTorch draws and
	                               discards a weight for a layer that shares another layer's weight (gt_layer_spec.tie) */
	int64_t fan_in, fan_out;    /* fan-in and fan-out of the weight tensor, as torch.nn.init computes them */
	double lr_mul;              /* factor by which the learning rate is multiplied for this parameter */
	double weight_decay;        /* weight decay of this parameter; NAN: as set for the optimizer */
	gt_vid value, work, grad;   /* values of the graph: master values, 16-bit copy, gradient; -1: the graph has no such value */
	bool frozen;                /* the parameter is not trained */
	bool tied;                  /* other layers share this weight (gt_layer_spec.tie). The layout is plain. The gradient is the sum of the
	                               gradients of all these layers: several nodes make it, one after the other */
	const char *const *alias;   /* [naliases] names of this weight in these layers in a PyTorch state dict, in addition to `name` */
	int naliases;
	int group;                  /* index in gt_graph.groups of the first group that matches the name; -1: none. Of running statistics: a
	                               group with frozen_stats, else -1 */
};

/* The parts of one micro-batch's work that a pipeline schedule orders separately. */
enum gt_phase {
	GT_PHASE_F, /* forward pass */
	GT_PHASE_B, /* backward pass: gradients for which earlier stages wait; the whole backward pass if it is not split */
	GT_PHASE_W, /* backward pass: gradients of parameters, for which no other stage waits */
	GT_PHASE_COUNT
};

struct gt_node {
	const struct gt_op *op;
	const char *name;  /* name of its layer */
	int layer;         /* index of the layer spec, also for backward nodes; -1 for nodes that the engine added */
	bool backward;     /* the node belongs to the backward pass */
	bool deferred;     /* the node belongs to GT_PHASE_W of a pipeline stage whose backward pass is split (plan/pipeline_partition.h) */
	void *attr;        /* attributes: the operation's struct gt_attr_…, in the arena */
	int nin, nout;
	int ndata;         /* the first ndata inputs are data, the others are parameters and buffers */
	gt_vid in[GT_MAX_IO], out[GT_MAX_IO];
};

/* A batch normalisation that was folded into the layer before it (plan/norm_folding.c). Members are indices of parameters; -1: absent.
 * With s = gamma / sqrt(var + eps), w is multiplied by s, filter by filter, and mean is replaced by beta + (b - mean) * s. */
struct gt_norm_fold {
	int w, b, gamma, beta, mean, var;
	double eps;
};

#define GT_MAX_INPUTS 4
struct gt_graph {
	struct gt_arena *arena; /* not owned */
	bool train;             /* true: a training graph, with batch statistics, dropout and saved tensors; false: an evaluation graph */
	int64_t batch;          /* number of rows of the input: samples of one execution, multiplied by views */
	int64_t length;         /* length to which the sequences of an input are padded; 0: no input has sequences of different lengths */
	bool extended;          /* a class_token has added a token to each sequence, which the lengths of the samples do not count */
	int views;              /* number of augmented copies of each sample in the input, whose outputs are averaged before the loss
	                           (test-time augmentation); 1: only the sample itself */
	bool sync_bn;           /* batch statistics cover the samples of several ranks, so this rank may have a single value in a channel
	                           (plan/syncbn.h) */
	enum gt_dtype compute;  /* dtype of activations: f32, bf16, f16, f64 */
	struct gt_value *values;
	struct gt_node *nodes;
	struct gt_param *params;
	int nvalues, nnodes, nparams;
	int cap_values, cap_nodes, cap_params; /* allocated lengths of the arrays */
	gt_vid input[GT_MAX_INPUTS]; /* in the order of gt_model_spec.inputs */
	int ninputs;
	gt_vid target, output /* logits */, metrics;
	const struct gt_layer_spec *spec; /* while the graph is built: spec of the layer that infer handles */
	enum gt_init_method init;         /* the model's method of initialisation */
	int64_t torch_lost;               /* while the graph is built: gt_param.torch_lost of the next parameter */
	const struct gt_param_group *groups; /* while the graph is built: the model's parameter groups */
	int ngroups;
	int layer;                        /* gt_graph_node copies this to gt_node.layer of each new node */
	bool backward;                    /* gt_graph_node copies this to gt_node.backward of each new node */
	struct gt_norm_fold *fold;        /* [nfolds] */
	int nfolds;
	int stage, stages;                /* index of the pipeline stage of this graph (gt_partition_stage); number of stages; stages = 0: a
	                                     whole graph. In the graph of a stage, parameters of other stages have no values, and input, target,
	                                     output and metrics may be absent (-1) */
};

static inline enum gt_phase gt_node_phase(const struct gt_node *n)
{
	return n->deferred ? GT_PHASE_W : n->backward ? GT_PHASE_B : GT_PHASE_F;
}

#define GT_MAX_LAYER_IN 8
/* One layer of the config, after block templates are expanded. */
struct gt_layer_spec {
	const char *name;
	const struct gt_op *op;
	void *attr;                        /* attribute struct, which conf/ fills in from the keys in op->attrs */
	const char *in[GT_MAX_LAYER_IN];   /* names of earlier layers, or "input" for the model's input */
	int nin;                           /* number of names in `in`; 0: the input is the output of the preceding layer */
	const char *tie;                   /* name of an earlier layer, whose weight this layer shares; NULL: the layer has its own weight */
	double lr_mul;                     /* factor by which the learning rate of its parameters is multiplied; default 1 */
	double weight_decay;               /* weight decay of its parameters; NAN: as set for the optimizer */
	bool frozen;                       /* its parameters are not trained */
	bool recompute;                    /* the output is not kept; the backward pass computes it again */
	int init;                          /* enum gt_init_method; -1: the model's method */
	double init_std, init_eps;         /* same meaning as in struct gt_param */
	int64_t init_samples;              /* same meaning as in struct gt_param */
	const char *file;                  /* source location of the layer in the config; NULL: none */
	int line;
};

/* A group of parameters, selected by name. A parameter belongs to the first group that matches it. */
struct gt_param_group {
	const char *const *match; /* patterns of fnmatch(3), without flags */
	int nmatch;
	bool frozen;
	bool frozen_stats; /* batch normalisations use running statistics in training and do not update them */
	bool any_stats;    /* with frozen_stats: a match of only the weight or only the bias is allowed and does not freeze the statistics */
};

enum gt_input_type { GT_INPUT_IMAGE, GT_INPUT_VALUES, GT_INPUT_CODES, GT_INPUT_TOKENS, GT_INPUT_LENGTHS };
#define GT_INPUT_WORDS "image|values|codes|tokens|lengths"
/* One of several inputs of a model. */
struct gt_model_input {
	const char *name;  /* name of the data field; layers use it to read the input */
	int type;          /* enum gt_input_type. An image and values have the compute dtype; codes, tokens and lengths are i32 */
	int64_t shape[3];  /* shape of a sample: channels, height, width of an image; else number of values, 1, 1; 0, 1, 1 for a single value,
	                      whose batch has one dimension. All 0: taken from the data */
	int64_t vocabulary;   /* codes and tokens are below this value; 0: taken from the data */
	const int64_t *codes; /* vocabulary sizes in the data: of each column of codes, or one for all tokens; NULL: not known */
};

struct gt_model_spec {
	int64_t input[3]; /* shape of the images: channels, height, width; 1-D inputs are C, 1, 1. All 0: the model reads no images */
	const struct gt_model_input *inputs; /* [ninputs] */
	int ninputs;      /* 0: the model has one input, the images, with the name "input" */
	const struct gt_param_group *groups;
	int ngroups;
	enum gt_init_method init;
	bool sync_bn; /* same meaning as in struct gt_graph */
	const struct gt_layer_spec *layers;
	int nlayers;
};

struct gt_loss_spec {
	const struct gt_op *op;
	struct gt_attr_loss attr; /* weights are not copied and must live as long as the graphs */
	bool dense;               /* the target of a sample has one value for each output; false: the target is a label */
};

/* Describes the target of a loss for `samples` samples and a model with `outputs` outputs: i32 [samples], or with loss->dense f32 [samples,
 * outputs]. Every loss takes labels; a loss that compares outputs with values takes a label as its one-hot vector. GT_ECONFIG: the loss
 * takes labels only. */
enum gt_code gt_loss_target(const struct gt_loss_spec *loss, int64_t samples, int64_t outputs, struct gt_tdesc *out, struct gt_err *err);
bool gt_loss_ignores(const struct gt_loss_spec *loss); /* whether samples with the label attr.ignore_index have weight 0 */
/* Returns the weights of the classes in the divisor of the mean loss (attr.nweights values); NULL: all 1. */
const double *gt_loss_class_weights(const struct gt_loss_spec *loss);

/* Builds the forward graph and infers all shapes. The output of every layer must be used; the output of the last layer is the model's
 * output. Returns GT_ECONFIG, with a message of the form "file:line: model.layers[3] (fc1): …", if a layer does not fit. */
enum gt_code gt_graph_build(struct gt_arena *a, const struct gt_model_spec *m, int64_t batch, enum gt_dtype compute, bool train,
                            struct gt_graph **out, struct gt_err *err);

/* For test-time augmentation, where a batch has several views (augmented copies) of each of N samples: averages the output, [views * N, C],
 * over the views of each sample. The rows of the output are sorted by view, then by sample. */
enum gt_code gt_graph_views(struct gt_graph *g, int views, struct gt_err *err);

/* Adds the loss node after the output. In a training graph the node also makes the gradient of the output. */
enum gt_code gt_graph_loss(struct gt_graph *g, const struct gt_loss_spec *loss, struct gt_err *err);

/* Appends the backward nodes, from the loss back to the first trainable parameter (autodiff.c). */
enum gt_code gt_graph_differentiate(struct gt_graph *g, struct gt_err *err);

/* Checks the invariants: every input is made before it is used, every description is complete, every trainable parameter has one gradient,
 * and so on. GT_EINTERNAL: an invariant does not hold, which is a bug in gtrain. */
enum gt_code gt_graph_verify(const struct gt_graph *g, struct gt_err *err);

/* In layer_depth.c. A block is a sequence of parameters whose layers' names have the same part before the first dot ("layer1" of
 * "layer1.0.conv1"); a sequence of only normalisation parameters belongs to the preceding block. gt_graph_depth returns the number of
 * blocks after the block of a parameter: 0 for the last block, the head. gt_graph_block returns the name of a parameter's block, and
 * its length in *length. */
int gt_graph_depth(const struct gt_graph *g, int param);
const char *gt_graph_block(const struct gt_graph *g, int param, int *length);

double gt_node_flops(const struct gt_graph *g, const struct gt_node *n); /* floating-point operations of a node; 0 for an alias */
/* Returns whether the output of n shares the memory of its input under another description (GT_OPF_ALIAS). */
bool gt_node_alias(const struct gt_graph *g, const struct gt_node *n);
gt_vid gt_graph_source(const struct gt_graph *g, gt_vid v); /* returns the value that v aliases, or v if v is no alias; -1 for -1 */
/* Returns whether the output of a sample depends on other samples of the batch, as with batch statistics. */
bool gt_graph_mixes_samples(const struct gt_graph *g);
int64_t gt_graph_num_params(const struct gt_graph *g); /* total number of elements of all trainable parameters */

/* ---- for the rows' infer and gradient functions --------------------------------------------------------------------------- */
/* Appends a node. name and attr are kept, not copied: they must be in the arena or static. */
enum gt_code gt_graph_node(struct gt_graph *g, enum gt_opcode code, const char *name, const void *attr, struct gt_node **out,
                           struct gt_err *err);
/* Appends a node like gt_graph_node, but takes a row of the table of operations, because several layer types may share an opcode. */
enum gt_code gt_graph_node_of(struct gt_graph *g, const struct gt_op *op, const char *name, const void *attr, struct gt_node **out,
                              struct gt_err *err);
/* Appends one forward node and infers its outputs. attr is copied; NULL: the defaults of the operation. */
enum gt_code gt_graph_apply(struct gt_graph *g, const struct gt_op *op, const char *name, const void *attr, int nin, const gt_vid *in,
                            gt_vid *out, struct gt_err *err);
/* Adds one layer with the given inputs, and its parameters, to the forward graph: checks number and types of the inputs, and adds views
 * before and after a layer that processes each token separately. s->name is kept, not copied. */
enum gt_code gt_graph_layer(struct gt_graph *g, const struct gt_layer_spec *s, int nin, const gt_vid *in, gt_vid *out, struct gt_err *err);
/* Adds a value. name is kept, not copied. GT_ECONFIG: the tensor has no elements or more than 2^40. */
enum gt_code gt_graph_value(struct gt_graph *g, const char *name, enum gt_vkind kind, const struct gt_tdesc *d, gt_vid *out,
                            struct gt_err *err);
/* Appends an output to n, named "<n->name>.<suffix>"; suffix NULL: named as n. n must be the newest node. */
enum gt_code gt_graph_output(struct gt_graph *g, struct gt_node *n, const char *suffix, const struct gt_tdesc *d, gt_vid *out,
                             struct gt_err *err);
/* Declares the parameter "<n->name>.<suffix>" and appends it to n's inputs. A GT_PARAM_WEIGHT is read in the compute dtype (with 16 bits,
 * the work copy is read); other parameters are f32 (f64 in an f64 graph), and a buffer of rank 0 is an i64 counter. The layout of a
 * GT_PARAM_WEIGHT is chosen by the planner; a parameter of rank 3 ([C, H, W]) is stored as H, W, C, like the activations; all others are
 * plain. */
enum gt_code gt_graph_param(struct gt_graph *g, struct gt_node *n, const char *suffix, enum gt_param_class cls, int rank,
                            const int64_t *dim, struct gt_init init, int64_t fan_in, int64_t fan_out, struct gt_err *err);
/* Sets *out to the first of the model's groups that matches "<n->name>.<suffix>", whether such a parameter exists or not; -1: none. */
enum gt_code gt_graph_group(struct gt_graph *g, const struct gt_node *n, const char *suffix, int *out, struct gt_err *err);
/* Appends the gradient of a parameter to n's outputs, and adds the gradient value on first use. param: the parameter's value or work copy;
 * if it is -1 or frozen, the output is absent (-1). n must be the newest node. If several nodes make the gradient of a tied parameter, the
 * first node writes it and the others add to it; gt_value.producer is the last node. */
enum gt_code gt_graph_grad(struct gt_graph *g, struct gt_node *n, gt_vid param, struct gt_err *err);
/* init.c: returns how many generator outputs PyTorch uses for n values of type t: 64-bit outputs for f64, else 32-bit outputs. After an odd
 * number n < 16 of normal values, PyTorch also keeps one value for the next such tensor; that value is not counted. */
int64_t gt_init_torch_draws(struct gt_init d, enum gt_dtype t, int64_t n);
bool gt_graph_learns(const struct gt_graph *g, gt_vid param); /* whether param is a parameter, or its work copy, that is
                                                                 present (not -1) and not frozen */
bool gt_graph_borrows(const struct gt_graph *g, const struct gt_node *n, gt_vid param); /* whether param (a parameter or its work copy) is
                                                                                           owned by another layer than n's */
/* Returns whether node i, which has gradient v as an output, must add to v instead of writing it, because an earlier node writes v. */
bool gt_graph_grad_adds(const struct gt_graph *g, int i, gt_vid v);
void gt_node_input(struct gt_node *n, gt_vid v); /* appends an input to n; v = -1: the input is absent */
/* Return the value, or its description, of the operand of n that the signature of its operation (kernels/opcall.h) calls `name`:
 * gt_node_operand(n, "gamma"). -1, or NULL: n does not have the operand, which the
 * signature must name. */
gt_vid gt_node_operand(const struct gt_node *n, const char *name);
const struct gt_tdesc *gt_node_desc(const struct gt_graph *g, const struct gt_node *n, const char *name);
void gt_node_replace(struct gt_node *n, const char *name, gt_vid v); /* replaces an operand of n, which n must have */
/* Return the first operands of n, whatever its operation is: x and y of most operations. */
static inline gt_vid gt_node_first_input(const struct gt_node *n)
{
	return n->in[0];
}
static inline gt_vid gt_node_first_output(const struct gt_node *n)
{
	return n->out[0];
}
const struct gt_tdesc *gt_graph_desc(const struct gt_graph *g, gt_vid v);
enum gt_dtype gt_graph_stat_dtype(const struct gt_graph *g); /* dtype of statistics: f32, or f64 in an f64 graph */

#endif
