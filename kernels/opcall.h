/* The interface between the engine and a kernel: operation codes and their operands, attributes, the shapes of one call, and the numbers
 * that change with every step.
 *
 * A gt_opcall describes one call to a backend's prepare() (backend.h):
 *
 *     struct gt_attr_linear attr = {.out = 10, .bias = true};
 *     struct gt_opcall call = {.code = GT_OP_LINEAR, .name = "fc2", .attr = &attr,
 *                              .nin = 3, .in = {&x, &w, &b}, .nout = 1, .out = {&y}};
 *
 * Conventions for all operations:
 * - Shapes are PyTorch's. Activations of rank 4 are NHWC in memory; weights have the layout that the backend chose; all other tensors are
 *   plain.
 * - x and y are activations; w and b are weight and bias; dx, dy, dw and db are gradients. Activations have the compute dtype (f32, bf16,
 * f16
 *   or f64). w of linear and conv2d has the compute dtype. b, all parameters of normalisations and all parameter gradients are f32
 *   (f64 in an f64 graph). Saved statistics are f32 (f64).
 * - Targets are i32 [N]: class indices.
 * - A kernel overwrites its outputs, except those marked in gt_opcall.accumulate, to which it adds. Only parameter gradients, sums of
 * squares
 *   and the partial statistics `part` of batchnorm and batchnorm.merge are accumulated; `part` is merged with the statistics that the
 *   memory already holds.
 * - An element-wise operation (GT_OPF_INPLACE in its row) must also work if out[0] == in[0]. */
#ifndef GT_KERNELS_OPCALL_H
#define GT_KERNELS_OPCALL_H

#include "base/types.h"
#include "comm.h"
#include "optimizer_rows.h"

/* X(code, name), followed by the operands: inputs -> outputs. Operands in brackets may be absent (pointer and gt_tdesc are NULL).
 *
 * linear            mask is u8 [N, gt_mask_bytes(out)]: one bit for each element of y, set if y > 0, in an order that the backend chooses.
 *                   It is written only with act = relu.
 * linear.dx         With y, dx is 0 where y <= 0: the gradient of the relu before. The operand y may also be the mask that linear wrote.
 * bias.db           The bias gradient of a layer whose weights are frozen.
 * linear.dw+update  Computes dw and updates w with it at once; dw is never stored. s0, s1 and s2 are the states of the optimizer.
 * linear+loss       The last layer and the loss in one kernel (gt_attr_linear_loss).
 * linear.dx+dw      linear.dx and linear.dw in one kernel.
 * maxpool2d         idx is i32, shaped like y: the offset h * W + w of the maximum in its input plane. The gradient of adaptive_maxpool2d
 *                   is maxpool2d.dx.
 * batchnorm         y = act(bn(x) + res). In training it updates rmean, rvar and nbt (i64) in place. part: as batchnorm.stats.
 * batchnorm.y       Recomputes the y that batchnorm returned.
 * batchnorm.dx      A 6th operand, beta, means that a relu follows: dy counts only where y > 0 or, if y is absent, where bn(x) > 0. g is dy
 *                   masked in this way. An 8th operand, sums, holds the sums over the whole batch: only dx is computed, from them; the 6th
 *                   and 7th operand are then absent without meaning, because dy is already masked.
 * batchnorm.stats   part is f64 [3, C] (moments.h): the statistics of these samples, for batchnorm.merge.
 * batchnorm.merge   parts is f64 [k, 3, C] or [3, C]. Merges all parts in the fixed tree of comm.h. Updates rmean, rvar and nbt in place if
 *                   they are present, unless the parts contain no values.
 * batchnorm.sums    sums is f64 [3, C]: the sum of dy, the sum of dy * (x - mean), and the number of values. The other operands are as in
 *                   batchnorm.dx, for these samples. The sums, added up over the ranks, are the 8th operand of batchnorm.dx.
 * layernorm         mean and rstd have one element for each row.
 * softmax           Normalises over dimension 1; so does log_softmax.
 * dropout           It is its own gradient: a call dy -> dx draws the same mask again.
 * flatten           Writes the elements in PyTorch's order.
 * scale             Multiplies by a factor. It is its own gradient.
 * views.mean        The weighted mean over the views of each sample (aug.h).
 * identity          Never lowered to a kernel: the planner makes y an alias of x.
 * comm              A collective or a transfer between ranks (gt_attr_comm). No backend receives it: the executor calls the communicator.
 * rows              all: the rows of all ranks, in memory that the ranks share; x is this rank's block of it (gt_attr_rows). Never lowered.
 * cast              Converts to another dtype in the same layout.
 * cross_entropy     scale is an f64 scalar that multiplies the gradient, not the loss; so in nll and mse.
 * mse               The target is one-hot(label).
 * gather            images is u8 [M,C,H,W] (NHWC in memory), labels is i32 [M]. index is i64 [N], or [R,L]: then sample n of the batch is
 *                   index[epoch % R][sample0 + n * stride], with the numbers of gt_step_args. With views, x is [views*N,C,H,W]: all samples
 *                   of the first view, then all samples of the next one.
 * sumsq             The sum of squares of flat f32, as an f64 scalar. It is NaN or infinite if an element is.
 * bound             Raises an f64 scalar to N * max|dy| * max(1, max|x|), an upper bound of the elements of dw and db. A NaN stays NaN.
 * check             Decides, in place, whether the step is applied and by which number its gradients are divided (ew.h). With g (flat f32,
 *                   one rank only) it first computes sumsq of g and stores it in scalars.sumsq.
 *
 * The updates of the optimizers follow; optimizer_rows.h lists them with their operands. */
#define GT_OPCODES(X)                                                                                                                \
	X(GT_OP_LINEAR, "linear")                                    /* x[N,in] w[out,in] [b] -> y[N,out] [mask] */                      \
	X(GT_OP_LINEAR_DX, "linear.dx")                              /* dy w [y] -> dx */                                                \
	X(GT_OP_LINEAR_DW, "linear.dw")                              /* dy x -> dw [db] */                                               \
	X(GT_OP_BIAS_DB, "bias.db")                                  /* dy[N,C[,H,W]] -> db[C] */                                        \
	X(GT_OP_LINEAR_DW_UPDATE, "linear.dw+update")                /* dy x w [scalars] [s0] [s1] [s2] -> [db] */                       \
	X(GT_OP_LINEAR_LOSS, "linear+loss")                          /* x w [b] target [scale] -> y metrics [dy] */                      \
	X(GT_OP_LINEAR_BACK, "linear.dx+dw")                         /* dy x w [y] -> dx dw [db] */                                      \
	X(GT_OP_CONV2D, "conv2d")                                    /* x w [b] -> y */                                                  \
	X(GT_OP_CONV2D_DX, "conv2d.dx")                              /* dy w -> dx */                                                    \
	X(GT_OP_CONV2D_DW, "conv2d.dw")                              /* dy x -> dw [db] */                                               \
	X(GT_OP_MAXPOOL2D, "maxpool2d")                              /* x -> y idx */                                                    \
	X(GT_OP_MAXPOOL2D_DX, "maxpool2d.dx")                        /* dy idx -> dx */                                                  \
	X(GT_OP_AVGPOOL2D, "avgpool2d")                              /* x -> y */                                                        \
	X(GT_OP_AVGPOOL2D_DX, "avgpool2d.dx")                        /* dy -> dx */                                                      \
	X(GT_OP_ADAPTIVE_AVGPOOL2D, "adaptive_avgpool2d")            /* x -> y */                                                        \
	X(GT_OP_ADAPTIVE_AVGPOOL2D_DX, "adaptive_avgpool2d.dx")      /* dy -> dx */                                                      \
	X(GT_OP_ADAPTIVE_MAXPOOL2D, "adaptive_maxpool2d")            /* x -> y idx */                                                    \
	X(GT_OP_BATCHNORM, "batchnorm")                              /* x gamma beta rmean rvar nbt [res] -> y mean rstd [part] */       \
	X(GT_OP_BATCHNORM_Y, "batchnorm.y")                          /* x gamma beta mean rstd [res] -> y */                             \
	X(GT_OP_BATCHNORM_DX, "batchnorm.dx")                        /* dy x gamma mean rstd [beta] [y] [sums] -> dx dgamma dbeta [g] */ \
	X(GT_OP_BATCHNORM_STATS, "batchnorm.stats")                  /* x -> part */                                                     \
	X(GT_OP_BATCHNORM_MERGE, "batchnorm.merge")                  /* parts [rmean] [rvar] [nbt] -> [mean] [rstd] [part] */            \
	X(GT_OP_BATCHNORM_SUMS, "batchnorm.sums")                    /* dy x gamma mean rstd [beta] [y] -> sums dgamma dbeta [g] */      \
	X(GT_OP_LAYERNORM, "layernorm")                              /* x gamma beta -> y mean rstd */                                   \
	X(GT_OP_LAYERNORM_DX, "layernorm.dx")                        /* dy x gamma mean rstd -> dx dgamma dbeta */                       \
	X(GT_OP_RELU, "relu")                                        /* x -> y */                                                        \
	X(GT_OP_RELU_DX, "relu.dx")                                  /* dy y -> dx */                                                    \
	X(GT_OP_LEAKY_RELU, "leaky_relu")                            /* x -> y */                                                        \
	X(GT_OP_LEAKY_RELU_DX, "leaky_relu.dx")                      /* dy x -> dx */                                                    \
	X(GT_OP_SIGMOID, "sigmoid")                                  /* x -> y */                                                        \
	X(GT_OP_SIGMOID_DX, "sigmoid.dx")                            /* dy y -> dx */                                                    \
	X(GT_OP_TANH, "tanh")                                        /* x -> y */                                                        \
	X(GT_OP_TANH_DX, "tanh.dx")                                  /* dy y -> dx */                                                    \
	X(GT_OP_GELU, "gelu")                                        /* x -> y */                                                        \
	X(GT_OP_GELU_DX, "gelu.dx")                                  /* dy x -> dx */                                                    \
	X(GT_OP_SILU, "silu")                                        /* x -> y */                                                        \
	X(GT_OP_SILU_DX, "silu.dx")                                  /* dy x -> dx */                                                    \
	X(GT_OP_SOFTMAX, "softmax")                                  /* x -> y */                                                        \
	X(GT_OP_SOFTMAX_DX, "softmax.dx")                            /* dy y -> dx */                                                    \
	X(GT_OP_LOG_SOFTMAX, "log_softmax")                          /* x -> y */                                                        \
	X(GT_OP_LOG_SOFTMAX_DX, "log_softmax.dx")                    /* dy y -> dx */                                                    \
	X(GT_OP_DROPOUT, "dropout")                                  /* x -> y */                                                        \
	X(GT_OP_FLATTEN, "flatten")                                  /* x[N,C,H,W] -> y[N,C*H*W] */                                      \
	X(GT_OP_FLATTEN_DX, "flatten.dx")                            /* dy[N,C*H*W] -> dx[N,C,H,W] */                                    \
	X(GT_OP_ADD, "add")                                          /* 2 to 8 inputs -> y */                                            \
	X(GT_OP_SCALE, "scale")                                      /* x -> y */                                                        \
	X(GT_OP_MUL, "mul")                                          /* a b -> y */                                                      \
	X(GT_OP_CONCAT, "concat")                                    /* 2 to 8 inputs -> y, along dimension 1 */                         \
	X(GT_OP_CONCAT_DX, "concat.dx")                              /* dy -> one dx for each input */                                   \
	X(GT_OP_VIEWS_MEAN, "views.mean")                            /* x[views*N,C] -> y[N,C] */                                        \
	X(GT_OP_IDENTITY, "identity")                                /* x -> y */                                                        \
	X(GT_OP_COMM, "comm")                                        /* [in] -> [out] */                                                 \
	X(GT_OP_ROWS, "rows")                                        /* x -> all */                                                      \
	X(GT_OP_CAST, "cast")                                        /* x -> y */                                                        \
	X(GT_OP_CROSS_ENTROPY, "cross_entropy")                      /* logits target [scale] -> metrics [dlogits] */                    \
	X(GT_OP_NLL, "nll")                                          /* logp target [scale] -> metrics [dlogp] */                        \
	X(GT_OP_MSE, "mse")                                          /* y target [scale] -> metrics [dy] */                              \
	X(GT_OP_GATHER, "gather")                                    /* images labels index -> x target */                               \
	X(GT_OP_SUMSQ, "sumsq")                                      /* flat -> scalar */                                                \
	X(GT_OP_BOUND, "bound")                                      /* dy x -> scalar */                                                \
	X(GT_OP_CHECK, "check")                                      /* scalars scaler [numbers] [parts] [g]; updates all but g */

enum gt_opcode {
#define GT_X(code, name) code,
	GT_OPCODES(GT_X)
#undef GT_X
#define GT_X(NAME, ...) GT_OP_##NAME,
	GT_UPDATES(GT_X)
#undef GT_X
	GT_OP_COUNT
};

const char *gt_opcode_name(enum gt_opcode code);

/* ---- attributes: gt_opcall.attr points to the struct of the operation; a gradient uses the struct of its forward operation --- */

enum gt_act { GT_ACT_NONE, GT_ACT_RELU }; /* an activation that is fused into another operation */

struct gt_attr_linear {
	int64_t out; /* output features */
	bool bias;   /* operand b is present */
	int act;     /* enum gt_act, set by fusion: linear applies it. linear.dw and linear.dx then expect a dy that is already masked */
};

/* Bytes of one row of linear's mask, for `out` features: a multiple of 16, because a row is stored in runs of 128 bits. */
static inline int64_t gt_mask_bytes(int64_t out)
{
	return (out + 127) / 128 * 16;
}

struct gt_attr_conv2d {
	int64_t out; /* output channels */
	int64_t kernel[2], stride[2], padding[2], dilation[2]; /* height, width; in pixels */
	int64_t groups;
	bool bias;   /* operand b is present */
	int act;     /* enum gt_act, set by fusion */
};

struct gt_attr_pool2d {
	/* Height, width; in pixels. Stride 0,0 in a config means stride = kernel; shape inference resolves it. Kernel 0,0 marks a maxpool2d.dx
	 * of adaptive_maxpool2d, whose windows are known only through idx. */
	int64_t kernel[2], stride[2], padding[2];
	bool ceil_mode;         /* round the output size up, as in PyTorch */
	bool count_include_pad; /* avgpool2d: padding counts in the mean; PyTorch's default is true */
};

struct gt_attr_adaptive {
	int64_t out[2]; /* output height, width */
};

struct gt_attr_norm {
	double eps;
	double momentum; /* batchnorm: running = (1 - momentum) * old + momentum * new */
	bool affine;     /* false: gamma and beta are absent (NULL) */
	bool track;      /* batchnorm: running statistics exist; false: evaluation uses batch statistics too */
	bool train;      /* set by the graph; true: use batch statistics, false: use running statistics */
	int act;         /* batchnorm: enum gt_act, set by fusion */
	bool empty;      /* batchnorm.stats: the statistics of no samples; x is not read and may be any tensor */
	bool deferred;   /* batchnorm.merge, as PyTorch's DeferredBatchNorm: the running variance is the biased one too, and the operand parts
	                  * is reset to the statistics of no values */
};

struct gt_attr_leaky {
	double slope; /* factor of negative inputs */
};

struct gt_attr_gelu {
	int approximate; /* 0: erf, 1: tanh */
};

struct gt_attr_scale {
	double factor;
};

struct gt_attr_views {
	int views; /* number of views of each sample, 2 or 6; see gt_attr_gather.views */
};

struct gt_attr_dropout {
	double p;       /* probability that an element becomes 0; 0 ... 1 */
	uint32_t layer; /* number of the layer's random stream */
	bool train;     /* false: y = x */
};

struct gt_attr_loss {
	double label_smoothing; /* cross_entropy; 0 ... 1 */
	int64_t ignore_index;   /* cross_entropy, nll: samples with this target have weight 0 */
};

struct gt_attr_linear_loss {
	struct gt_attr_linear linear; /* act is GT_ACT_NONE */
	enum gt_opcode code;          /* cross_entropy, nll or mse */
	struct gt_attr_loss loss;
};

#define GT_MAX_CHANNELS 16
struct gt_attr_gather {
	float scale[GT_MAX_CHANNELS], shift[GT_MAX_CHANNELS]; /* per channel: x = u8 * scale + shift, which is (u8/255 - mean) / std */
	int pad;              /* pad_crop: random shift by -pad ... pad pixels in both directions; 0: off */
	bool pad_reflect;     /* true: the padding mirrors the image. false: it is black (byte 0) and then normalised, as in torchvision's
	                       * RandomCrop before Normalize */
	double hflip;         /* probability of mirroring left to right, 0 ... 1; 0: off */
	bool hflip_alternate; /* use the random decision of epoch 0 in every epoch, and mirror all images once more in odd epochs */
	bool augment;         /* false: pad and hflip are off */
	/* Number of views of each sample in an evaluation, which replace augmentation. 0 or 1: the image. 2: also its mirror image. 6: also the
	 * image shifted by (-1, -1) and by (1, 1) pixels over a reflected edge, and the mirror image of each (gt_aug_view). */
	int views;
};

#define GT_MAX_GROUPS 64
/* A segment: consecutive elements of the flat parameter arena with the same hyper-parameters. */
struct gt_seg {
	int64_t begin, end;  /* [begin, end) in elements, relative to the pointers of the call; the same in the operand work */
	double lr_mul;       /* factor of the learning rate */
	double weight_decay;
	int lr;              /* index into gt_step_args.lr: 0 ... GT_MAX_LR - 1 */
};

struct gt_attr_update {
	double momentum, dampening, beta1, beta2, eps, alpha;
	bool nesterov, decoupled /* Adam: AdamW */, centered /* RMSprop */;
	double clip_norm; /* maximum norm of the gradients; 0: no clipping. If > 0, scalars.sumsq holds the sum of squares of all gradients */
	const struct gt_seg *seg; /* ascending, not overlapping; elements outside all segments are not changed */
	int nseg;
	enum gt_dtype work_dtype; /* dtype of the operand work, the 16-bit copy of p: bf16 or f16 */
};

enum gt_muon_adjust { GT_MUON_ORIGINAL, GT_MUON_RMS, GT_MUON_NONE, GT_MUON_SPECTRAL };

/* Muon: formula and state of torch.optim.Muon. A weight [out, ...] is treated as the matrix [out, rest], rest the product of its other
 * sizes.
 *   buf = momentum * buf + (1 - momentum) * g
 *   d = nesterov ? (1 - momentum) * g + momentum * buf : buf
 *   if normalize: p *= sqrt(out) / |p|
 *   p *= 1 - lr * weight_decay
 *   p -= lr * adjust(out, rest) * NS(d)
 * NS(d), the Newton-Schulz iteration: X = d / max(|d|, eps), transposed if d has more rows than columns; then ns_steps times
 * X = a X + (b A + c A A) X with A = X X^T. With a learning rate of 0, p does not change.
 * Jordan's original ("Muon: an optimizer for hidden layers in neural networks", 2024; airbench94_muon) lacks both factors
 * 1 - momentum: its d is this d times a constant, which NS divides out. */
struct gt_attr_muon {
	struct gt_attr_update update;       /* uses momentum, nesterov, eps, clip_norm, seg and work_dtype */
	const struct gt_tdesc *const *desc; /* one for each segment: shape and layout of the weight */
	int64_t ns_steps;                   /* number of Newton-Schulz iterations */
	double ns[3];                       /* coefficients a, b, c */
	int adjust; /* enum gt_muon_adjust: sqrt(max(1, out / rest)), 0.2 sqrt(max(out, rest)), 1, sqrt(out / rest), in the order of the enum */
	bool normalize;                     /* scale p to the norm sqrt(out) before each update */
};

/* ---- numbers that change from step to step, in memory that the kernel can read -------------------------------------------- */
#define GT_MAX_LR 16
struct gt_step_args {
	uint64_t seed;
	uint64_t epoch;       /* from 0 */
	uint64_t sample0;     /* position of this micro-batch's first sample in the epoch's order */
	uint64_t stride;      /* positions from one sample to the next: 1, or the world size with sampler = "torch" */
	int64_t step;         /* number of optimizer steps, including this one: Adam's t */
	double lr[GT_MAX_LR]; /* learning rates of the parameter groups, indexed by gt_seg.lr */
	double inv_weight;    /* 1 / sum of the target weights of the effective batch; turns sums into PyTorch's mean */
	/* number of gt_step_args after this one in the same window, for steps that are already queued; `check` may shift them */
	int64_t left;
};

/* The sums that the losses update. The executor zeroes them at the start of a step or an evaluation. */
struct gt_metrics {
	double loss;     /* sum over samples, not divided */
	double weight;   /* divisor of the mean loss: the number of samples whose target is not ignored */
	int64_t correct; /* samples with argmax == target */
	int64_t top5;    /* samples whose target is among the five largest outputs */
	int64_t count;   /* samples whose target is not ignored */
};

/* The scalars of one optimizer step, in device memory. The executor zeroes them before the step. As an operand: f64 [GT_SCALARS_WORDS]. */
struct gt_scalars {
	struct gt_metrics metrics;
	/* sum of squares of the gradients that are stored before any parameter is updated, still multiplied by the loss scale */
	double sumsq;
	double bound;     /* bound of the gradients of fused updates, which are never stored: they are finite if it is below FLT_MAX */
	double inv_scale; /* written by check: factor of all gradients before clipping; 1 without a loss scale */
	int64_t skip;     /* written by check: if not 0, the optimizer changes nothing */
	double scale;     /* written by check: the loss scale after the step */
};
#define GT_SCALARS_WORDS ((int64_t)(sizeof(struct gt_scalars) / sizeof(double)))

/* State that persists across steps, in device memory. As an operand: f64 [GT_SCALER_WORDS]. */
struct gt_scaler {
	double scale;   /* loss scale, exact in f32; used only with gt_attr_check.scaling */
	int64_t good;   /* steps applied since the scale last changed */
	int64_t bad;    /* steps skipped in a row */
	int64_t halted; /* not 0: a step diverged; no later step is applied until the host clears this */
};
#define GT_SCALER_WORDS ((int64_t)(sizeof(struct gt_scaler) / sizeof(double)))

/* Attributes of check. With scaling, as in torch.amp.GradScaler, a step whose gradients overflow is skipped and the scale decreases;
 * without it, such a step halts the run. The operand `numbers`, which scaling requires, is the gt_step_args of this micro-batch and the
 * `left` ones after it, as bytes (u8 [n]). */
struct gt_attr_check {
	bool scaling, dynamic;  /* dynamic, only with scaling: the scale changes */
	double growth, backoff; /* factors of the scale: after `interval` good steps, and after an overflow */
	int64_t interval;       /* number of steps without an overflow before the scale grows */
	int64_t patience;       /* halt after this number of skipped steps in a row, because no scale helps; 0: never */
	/* > 1: the operand parts holds the scalars of this number of ranks (f64 [ranks, GT_SCALARS_WORDS]); their sum becomes the scalars of
	 * the step. parts is overwritten. */
	int64_t ranks;
	bool sharded;           /* with ranks > 1: each rank's sumsq covers its own gradients; otherwise each covers all gradients */
};

/* The ranks that take part in a communication. Ranks are numbered within each group. */
enum gt_group {
	GT_GROUP_WORLD,
	GT_GROUP_DATA, /* ranks with the same part of the model and different samples */
	GT_GROUP_PIPE, /* the stages of one copy of the model, in stage order */
	GT_GROUP_COUNT
};
enum { GT_COMM_SEND = GT_COLL_COUNT, GT_COMM_RECV };

struct gt_attr_comm {
	int kind;  /* enum gt_coll_kind, GT_COMM_SEND or GT_COMM_RECV. Counts follow from the shapes */
	int group; /* enum gt_group */
	int peer;  /* send, recv: rank of the other end; broadcast, gather, scatter: rank of the root */
	int op;    /* enum gt_reduction */
	int lane;  /* send, recv: transfers of different lanes of a group have no order relative to each other; 0 ... */
};
const char *gt_comm_name(const struct gt_attr_comm *c); /* "all_reduce", "send" */
const char *gt_group_name(int group);                   /* "world" */

/* The operand x is block `part` (0 ... parts - 1) of `parts` equal blocks. */
struct gt_attr_rows {
	int part, parts;
};

/* linear.dw+update. The update has one segment, [0, elements of w), the states of the optimizer's own call, clip_norm 0 and no work
 * copy. */
struct gt_attr_dw_update {
	int part, parts;         /* this call computes and applies part `part` of `parts` equal parts of dw, without db; 0, 0: all of dw */
	enum gt_opcode optimizer; /* an element-wise update */
	struct gt_attr_update update;
};

#define GT_MAX_IO 10
struct gt_opcall {
	enum gt_opcode code;
	const char *name; /* of the layer, for messages */
	const void *attr; /* the attribute struct of the operation */
	int nin, nout;
	struct gt_tdesc *in[GT_MAX_IO], *out[GT_MAX_IO]; /* NULL: absent. prepare() chooses the layout of tensors with .any set */
	uint32_t accumulate;                             /* bit i: the kernel adds to out[i] */
	bool deterministic;                              /* allow only fixed orders of reduction (reproducible != none) */
};

#endif
