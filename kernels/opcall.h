/* What a kernel sees: the operation codes, their attributes, the shapes of a call, and the numbers that change every step.
 *
 * Conventions for all operations
 * - Shapes are PyTorch's. Rank-4 activations are NHWC in memory, everything else is plain, weights as the backend chose.
 * - x, y activations; w, b weight and bias; dx, dy, dw, db gradients. Activations have the compute dtype (f32, bf16, f16, f64).
 *   w of linear and conv2d has the compute dtype; b and all parameters of normalisations are f32 (f64 in an f64 graph), and so is
 *   every parameter gradient. Saved statistics are f32 (f64).
 * - Targets are i32 [N], class indices.
 * - An output in gt_opcall.accumulate is added to, not overwritten. Only parameter gradients are ever accumulated, sums of squares, and the
 *   part of batchnorm and batchnorm.merge, which is joined to what stands there.
 * - Element-wise operations (GT_OPF_INPLACE in their row) must work with out[0] == in[0]. */
#ifndef GT_KERNELS_OPCALL_H
#define GT_KERNELS_OPCALL_H

#include "base/types.h"
#include "comm.h"

/* X(code, name, inputs -> outputs). Inputs in brackets may be absent (pointer and desc NULL). */
#define GT_OPCODES(X)                                                                          \
	X(GT_OP_LINEAR, "linear")                /* x[N,in] w[out,in] [b] -> y[N,out] [mask]; with relu. mask: u8 [N, gt_mask_bytes(out)], a bit an element of y, set where y > 0, in an order of the backend's own */ \
	X(GT_OP_LINEAR_DX, "linear.dx")          /* dy w [y] -> dx; with y: 0 where y <= 0, the mask of the relu before; or that mask itself, as linear wrote it */ \
	X(GT_OP_LINEAR_DW, "linear.dw")          /* dy x -> dw [db] */                              \
	X(GT_OP_BIAS_DB, "bias.db")              /* dy[N,C[,H,W]] -> db[C]: the bias of a layer whose weights are frozen */ \
	X(GT_OP_LINEAR_DW_UPDATE, "linear.dw+update") /* dy x w [scalars] [s0] [s1] [s2] -> [db]; the optimizer takes dw as it is made: it is never stored */ \
	X(GT_OP_LINEAR_LOSS, "linear+loss")      /* x w [b] target [scale] -> y metrics [dy]: the last layer and the loss (gt_attr_linear_loss) */ \
	X(GT_OP_LINEAR_BACK, "linear.dx+dw")     /* dy x w [y] -> dx dw [db]: linear.dx and linear.dw in one */ \
	X(GT_OP_CONV2D, "conv2d")                /* x w [b] -> y */                                 \
	X(GT_OP_CONV2D_DX, "conv2d.dx")          /* dy w -> dx */                                   \
	X(GT_OP_CONV2D_DW, "conv2d.dw")          /* dy x -> dw [db] */                              \
	X(GT_OP_MAXPOOL2D, "maxpool2d")          /* x -> y idx(i32, offset h*W+w in its input plane; like y) */ \
	X(GT_OP_MAXPOOL2D_DX, "maxpool2d.dx")    /* dy idx -> dx */                                 \
	X(GT_OP_AVGPOOL2D, "avgpool2d")          /* x -> y */                                       \
	X(GT_OP_AVGPOOL2D_DX, "avgpool2d.dx")    /* dy -> dx */                                     \
	X(GT_OP_ADAPTIVE_AVGPOOL2D, "adaptive_avgpool2d")       /* x -> y */                        \
	X(GT_OP_ADAPTIVE_AVGPOOL2D_DX, "adaptive_avgpool2d.dx") /* dy -> dx */                      \
	X(GT_OP_ADAPTIVE_MAXPOOL2D, "adaptive_maxpool2d")       /* x -> y idx; its gradient is maxpool2d.dx */ \
	X(GT_OP_BATCHNORM, "batchnorm")          /* x gamma beta rmean rvar nbt(i64) [res] -> y mean rstd [part]; updates rmean, rvar, nbt in place when training; y = act(bn(x) + res); part: as batchnorm.stats has it */ \
	X(GT_OP_BATCHNORM_Y, "batchnorm.y")      /* x gamma beta mean rstd [res] -> y as batchnorm gave it */ \
	X(GT_OP_BATCHNORM_DX, "batchnorm.dx")    /* dy x gamma mean rstd [beta] [y] [sums] -> dx dgamma dbeta [g]; with a 6th operand a relu stood behind: dy counts where y > 0, or without y where bn(x) > 0; g: dy so masked. With an 8th, the sums of the whole batch, dx is made of them and nothing else is: the 6th and 7th are absent and mean nothing, dy is masked already */ \
	X(GT_OP_BATCHNORM_STATS, "batchnorm.stats") /* x -> part(f64 [3, C], moments.h): of these samples, for batchnorm.merge */ \
	X(GT_OP_BATCHNORM_MERGE, "batchnorm.merge") /* parts(f64 [k, 3, C], or [3, C]) [rmean] [rvar] [nbt] -> [mean] [rstd] [part]: of all parts in comm.h's tree; updates rmean, rvar, nbt in place where they are, unless the parts have no values */ \
	X(GT_OP_BATCHNORM_SUMS, "batchnorm.sums") /* dy x gamma mean rstd [beta] [y] -> sums(f64 [3, C]) dgamma dbeta [g]: of dy, of dy * (x - mean), and the count of values; the rest as batchnorm.dx has it, of these samples. Added up over the ranks, batchnorm.dx takes them */ \
	X(GT_OP_LAYERNORM, "layernorm")          /* x gamma beta -> y mean rstd (one a row) */      \
	X(GT_OP_LAYERNORM_DX, "layernorm.dx")    /* dy x gamma mean rstd -> dx dgamma dbeta */      \
	X(GT_OP_RELU, "relu")                    /* x -> y */                                       \
	X(GT_OP_RELU_DX, "relu.dx")              /* dy y -> dx */                                   \
	X(GT_OP_LEAKY_RELU, "leaky_relu")        /* x -> y */                                       \
	X(GT_OP_LEAKY_RELU_DX, "leaky_relu.dx")  /* dy x -> dx */                                   \
	X(GT_OP_SIGMOID, "sigmoid")              /* x -> y */                                       \
	X(GT_OP_SIGMOID_DX, "sigmoid.dx")        /* dy y -> dx */                                   \
	X(GT_OP_TANH, "tanh")                    /* x -> y */                                       \
	X(GT_OP_TANH_DX, "tanh.dx")              /* dy y -> dx */                                   \
	X(GT_OP_GELU, "gelu")                    /* x -> y */                                       \
	X(GT_OP_GELU_DX, "gelu.dx")              /* dy x -> dx */                                   \
	X(GT_OP_SILU, "silu")                    /* x -> y */                                       \
	X(GT_OP_SILU_DX, "silu.dx")              /* dy x -> dx */                                   \
	X(GT_OP_SOFTMAX, "softmax")              /* x -> y, over dimension 1 */                     \
	X(GT_OP_SOFTMAX_DX, "softmax.dx")        /* dy y -> dx */                                   \
	X(GT_OP_LOG_SOFTMAX, "log_softmax")      /* x -> y, over dimension 1 */                     \
	X(GT_OP_LOG_SOFTMAX_DX, "log_softmax.dx") /* dy y -> dx */                                  \
	X(GT_OP_DROPOUT, "dropout")              /* x -> y; its own gradient: dy -> dx draws the same mask again */ \
	X(GT_OP_FLATTEN, "flatten")              /* x[N,C,H,W] -> y[N,C*H*W], in PyTorch's element order */ \
	X(GT_OP_FLATTEN_DX, "flatten.dx")        /* dy[N,C*H*W] -> dx[N,C,H,W] */                   \
	X(GT_OP_ADD, "add")                      /* 2..8 inputs -> y */                             \
	X(GT_OP_SCALE, "scale")                  /* x -> factor * x; its own gradient: dy -> dx */  \
	X(GT_OP_MUL, "mul")                      /* a b -> y */                                     \
	X(GT_OP_CONCAT, "concat")                /* 2..8 inputs -> y, along dimension 1 */          \
	X(GT_OP_CONCAT_DX, "concat.dx")          /* dy -> one dx an input */                        \
	X(GT_OP_VIEWS_MEAN, "views.mean")        /* x[views*N,C] -> y[N,C]: the weighted mean of the views of each sample (aug.h) */ \
	X(GT_OP_IDENTITY, "identity")            /* x -> y, never lowered: the planner aliases it */ \
	X(GT_OP_COMM, "comm")                    /* [in] -> [out]: what joins ranks (gt_attr_comm); no backend sees it: the executor calls the communicator */ \
	X(GT_OP_ROWS, "rows")                    /* x -> the rows of all ranks, of which x are this one's (gt_attr_rows), in memory that they have in common; never lowered */ \
	X(GT_OP_CAST, "cast")                    /* x -> y, other dtype, same layout */             \
	X(GT_OP_CROSS_ENTROPY, "cross_entropy")  /* logits target [scale] -> metrics [dlogits]; scale: f64, multiplies the gradient, not the loss */           \
	X(GT_OP_NLL, "nll")                      /* logp target [scale] -> metrics [dlogp] */               \
	X(GT_OP_MSE, "mse")                      /* y target [scale] -> metrics [dy]; the target is one-hot(label) */ \
	X(GT_OP_GATHER, "gather")                /* images(u8 [M,C,H,W], NHWC) labels(i32 [M]) index(i64 [N], or [R,L]: sample n is index[epoch % R][sample0 + n * stride]) -> x target; with views x is [views*N, C, H, W], view after view */ \
	X(GT_OP_SUMSQ, "sumsq")                  /* flat f32 -> f64 scalar: sum of squares; NaN or infinity shows in the result */ \
	X(GT_OP_BOUND, "bound")                  /* dy x -> f64 scalar, raised to N * max|dy| * max(1, max|x|), which bounds dw and db; NaN sticks */ \
	X(GT_OP_CHECK, "check")                  /* scalars scaler [numbers] [parts] [g]: decides, in place, whether the step is applied, and by what its gradients are divided (ew.h); with g, flat f32, on one rank: first sumsq, whose result is scalars.sumsq */ \
	X(GT_OP_SGD, "sgd")                      /* p g [buf] [scalars] [work] , all flat; p, buf, work updated in place, unless scalars.skip */ \
	X(GT_OP_ADAM, "adam")                    /* p g m v [scalars] [work]; Adam, and AdamW by its attribute */ \
	X(GT_OP_RMSPROP, "rmsprop")              /* p g sq [buf] [gavg] [scalars] [work] */          \
	X(GT_OP_MUON, "muon")                    /* p g buf [scalars] [work]; one segment a parameter, a matrix or the weights of a convolution */

enum gt_opcode {
#define GT_X(code, name) code,
	GT_OPCODES(GT_X)
#undef GT_X
	GT_OP_COUNT
};

const char *gt_opcode_name(enum gt_opcode code);

/* ---- attributes: gt_opcall.attr points to the struct of the operation; a gradient shares its forward's ------------------ */

enum gt_act { GT_ACT_NONE, GT_ACT_RELU };

struct gt_attr_linear {
	int64_t out; /* features */
	bool bias;
	int act;     /* enum gt_act, set by fusion: linear applies it; linear.dw and .dx then take dy already masked */
};

/* Bytes of a row of linear's mask: whole runs of 128 bits. */
static inline int64_t gt_mask_bytes(int64_t out)
{
	return (out + 127) / 128 * 16;
}

struct gt_attr_conv2d {
	int64_t out;
	int64_t kernel[2], stride[2], padding[2], dilation[2]; /* h, w */
	int64_t groups;
	bool bias;
	int act;
};

struct gt_attr_pool2d {
	int64_t kernel[2], stride[2], padding[2]; /* h, w; stride 0,0 in a config means = kernel, resolved by infer. kernel 0,0:
	                                                          a maxpool2d.dx of adaptive_maxpool2d, whose windows only idx knows */
	bool ceil_mode;
	bool count_include_pad; /* avgpool2d: PyTorch's default true */
};

struct gt_attr_adaptive {
	int64_t out[2]; /* h, w */
};

struct gt_attr_norm {
	double eps;
	double momentum;  /* batchnorm: running = (1 - momentum) * old + momentum * new */
	bool affine;      /* false: gamma and beta absent (NULL) */
	bool track;       /* batchnorm: running statistics exist; false: batch statistics in evaluation too */
	bool train;       /* set by the graph: batch statistics (true) or running ones */
	int act;          /* batchnorm: enum gt_act, set by fusion */
	bool empty;       /* batchnorm.stats: of no samples; x is not read, and may be any tensor */
	bool deferred;    /* batchnorm.merge, as PyTorch's DeferredBatchNorm: the running variance too is the biased one; and the parts become
	                     those of no values */
};

struct gt_attr_leaky {
	double slope;
};

struct gt_attr_gelu {
	int approximate; /* 0: erf, 1: tanh */
};

struct gt_attr_scale {
	double factor;
};

struct gt_attr_views {
	int views; /* 2 or 6, as gt_attr_gather has them */
};

struct gt_attr_dropout {
	double p;
	uint32_t layer; /* random stream */
	bool train;
};

struct gt_attr_loss {
	double label_smoothing; /* cross_entropy */
	int64_t ignore_index;   /* cross_entropy, nll; targets equal to it count nothing */
};

struct gt_attr_linear_loss {
	struct gt_attr_linear linear; /* without act */
	enum gt_opcode code;          /* cross_entropy, nll, mse */
	struct gt_attr_loss loss;
};

#define GT_MAX_CHANNELS 16
struct gt_attr_gather {
	float scale[GT_MAX_CHANNELS], shift[GT_MAX_CHANNELS]; /* x = u8 * scale + shift: (u8/255 - mean) / std */
	int pad;           /* pad_crop: shift by -pad..pad in both directions; 0: none */
	bool pad_reflect;  /* else the padding is black (byte 0) and then normalised, as torchvision's RandomCrop before Normalize */
	double hflip;      /* probability; 0: none */
	bool hflip_alternate; /* the draw of epoch 0 stays, and every odd epoch mirrors all images once more */
	bool augment;      /* false: neither */
	int views;         /* of each sample, for evaluation, instead of augmentation: 0 or 1 the image; 2 also mirrored; 6 also shifted by
	                      (-1, -1) and (1, 1) over a reflected edge, each mirrored too (gt_aug_view) */
};

#define GT_MAX_GROUPS 64
/* A run of consecutive elements of the flat parameter arena with the same hyper-parameters. */
struct gt_seg {
	int64_t begin, end; /* elements, relative to the pointers of the call; work has the same offsets */
	double lr_mul;
	double weight_decay;
	int lr; /* index into gt_dyn.lr */
};

struct gt_attr_update {
	double momentum, dampening, beta1, beta2, eps, alpha;
	bool nesterov, decoupled /* AdamW */, centered /* RMSprop */;
	double clip_norm; /* 0: off; else scalars.sumsq is the global sum of squares */
	const struct gt_seg *seg; /* ascending, not overlapping; elements outside are left alone */
	int nseg;
	enum gt_dtype work_dtype; /* of the work copy: bf16, f16 */
};

enum gt_muon_adjust { GT_MUON_ORIGINAL, GT_MUON_RMS, GT_MUON_NONE, GT_MUON_SPECTRAL };

/* torch.optim.Muon's formula and state. A weight [out, …] is taken as the matrix [out, the rest].
 *   buf = momentum * buf + (1 - momentum) * g;  d = nesterov ? (1 - momentum) * g + momentum * buf : buf
 *   normalize: p *= sqrt(out) / |p|;  p *= 1 - lr * weight_decay
 *   p -= lr * adjust(out, rest) * NS(d)
 * NS: X = d / max(|d|, eps), of the shorter side's orientation, then ns_steps times X = a X + (b A + c A A) X with A = X X^T. A rate of 0
 * leaves p alone. Jordan's own form ("Muon: an optimizer for hidden layers in neural networks", 2024; airbench94_muon) has neither factor
 * 1 - momentum: its d is that of this one times a constant, which NS divides out. */
struct gt_attr_muon {
	struct gt_attr_update update;       /* momentum, nesterov, eps, clip_norm, seg, work_dtype */
	const struct gt_tdesc *const *desc; /* one a segment: shape and layout */
	int64_t ns_steps;
	double ns[3];                       /* a, b, c */
	int adjust;                         /* enum gt_muon_adjust: sqrt(max(1, out / rest)), 0.2 sqrt(max(out, rest)), 1, sqrt(out / rest) */
	bool normalize;
};

/* ---- numbers that change from step to step, in memory the kernel can read ----------------------------------------------- */
#define GT_MAX_LR 16
struct gt_dyn {
	uint64_t seed;
	uint64_t epoch;
	uint64_t sample0;  /* position in the epoch's permutation of this micro-batch's first sample */
	uint64_t stride;   /* distance to the next sample's position: 1, or the world size under sampler = "torch" */
	int64_t step;      /* optimizer steps done, this one included: Adam's t */
	double lr[GT_MAX_LR]; /* of each group of parameters: gt_seg.lr says which */
	double inv_weight; /* 1 / sum of target weights over the effective batch: what turns sums into PyTorch's mean */
	int64_t left;      /* how many gt_dyn follow this one in the same window, for steps that are queued already: check moves them */
};

/* What the losses add to (zeroed by the executor at the start of a step or an evaluation). */
struct gt_metrics {
	double loss;     /* sum over samples, not yet divided */
	double weight;   /* samples that count (not ignored) */
	int64_t correct; /* argmax == target */
	int64_t top5;    /* target among the five largest */
	int64_t count;   /* samples that count */
};

/* What one optimizer step adds up and decides, in device memory; zeroed by the executor before the step. In an opcall: f64
 * [GT_SCALARS_WORDS]. */
struct gt_scalars {
	struct gt_metrics metrics;
	double sumsq;     /* of the gradients that are stored before anything is updated, still multiplied by the loss scale */
	double bound;     /* of those that are applied early: they are finite if it is below FLT_MAX */
	double inv_scale; /* by check: what the optimizer multiplies gradients by, before it clips; 1 without a loss scale */
	int64_t skip;     /* by check: not 0: the optimizer leaves everything as it is */
	double scale;     /* by check: the loss scale behind the step */
};
#define GT_SCALARS_WORDS ((int64_t)(sizeof(struct gt_scalars) / sizeof(double)))

/* What outlives a step, in device memory. In an opcall: f64 [GT_SCALER_WORDS]. */
struct gt_scaler {
	double scale;   /* of the loss, exact in f32; looked at with gt_attr_check.scaling only */
	int64_t good;   /* steps applied since it last changed */
	int64_t bad;    /* steps skipped in a row */
	int64_t halted; /* not 0: a step diverged, and no step behind it is applied either, until the host clears it */
};
#define GT_SCALER_WORDS ((int64_t)(sizeof(struct gt_scaler) / sizeof(double)))

/* check. scaling: as torch.amp.GradScaler, a step whose gradients overflow is skipped and the scale is lowered; else it halts. The
 * operand `numbers`, needed with scaling: the gt_dyn of this micro-batch and the `left` ones behind it, as bytes (u8 [n]). */
struct gt_attr_check {
	bool scaling, dynamic; /* dynamic: the scale changes */
	double growth, backoff;
	int64_t interval;      /* steps without an overflow until the scale grows */
	int64_t patience;      /* so many steps skipped in a row halt it: no scale helps; 0: none do */
	int64_t ranks;         /* > 1: parts holds the scalars of so many ranks (f64 [ranks, GT_SCALARS_WORDS]), whose sum the step's are; it is overwritten */
	bool sharded;          /* with ranks: each has the squares of its own gradients; else all have those of all */
};

/* Which ranks take part. Ranks are numbered within each group. */
enum gt_group {
	GT_GROUP_WORLD,
	GT_GROUP_DATA, /* those that have the same part of the model, and other samples */
	GT_GROUP_PIPE, /* the stages of one copy of the model, in the order of the stages */
	GT_GROUP_COUNT
};
enum { GT_COMM_SEND = GT_COLL_COUNT, GT_COMM_RECV };

struct gt_attr_comm {
	int kind;  /* enum gt_coll_kind, or GT_COMM_SEND, GT_COMM_RECV. Counts follow from the shapes */
	int group; /* enum gt_group */
	int peer;  /* send, recv: the other end; broadcast, gather, scatter: the root */
	int op;    /* enum gt_reduction */
	int lane;  /* send, recv: transfers of different lanes of a group have no order among each other */
};
const char *gt_comm_name(const struct gt_attr_comm *c); /* "all_reduce", "send" */
const char *gt_group_name(int group);                   /* "world" */

/* Block `part` of `parts` equal ones is this rank's. */
struct gt_attr_rows {
	int part, parts;
};

/* linear.dw+update: one segment, [0, elements of w). States as the optimizer's own call has them, clip_norm 0, no work copy. */
struct gt_attr_dw_update {
	int part, parts;         /* this call makes and applies one of so many equal parts of dw, without db, and others the rest; 0, 0: all */
	enum gt_opcode optimizer; /* sgd, adam, rmsprop */
	struct gt_attr_update update;
};

#define GT_MAX_IO 10
struct gt_opcall {
	enum gt_opcode code;
	const char *name; /* of the layer, for messages */
	const void *attr;
	int nin, nout;
	struct gt_tdesc *in[GT_MAX_IO], *out[GT_MAX_IO]; /* NULL: absent. prepare() may choose the layout of one that has .any set */
	uint32_t accumulate;                             /* bit i: out[i] is added to */
	bool deterministic;                              /* fixed reduction orders only (reproducible != none) */
};

#endif
