/* The interface between the engine and a kernel: operation codes and their operands, attributes, the shapes of one call, and the values
 * that change with every step.
 *
 * A gt_opcall describes one call to a backend's prepare() (backend.h):
 *
 *     struct gt_attr_linear attr = {.out = 10, .bias = true};
 *     struct gt_opcall call = {.code = GT_OP_LINEAR, .name = "fc2", .attr = &attr,
 *                              .nin = 3, .in = {&x, &w, &b}, .nout = 1, .out = {&y}};
 *
 * Conventions for all operations:
 * - Shapes are PyTorch's. The compute dtype is f32, bf16, f16 or f64.
 * - x and y are activations; w and b are weight and bias; dx, dy, dw and db are gradients. A target is a class index.
 * - A kernel adds to the outputs marked in gt_opcall.accumulate and overwrites all others; a marked `part` is merged with the statistics
 *   that the memory already holds.
 * - An operation with GT_OPF_INPLACE in its row (gt_op.inplace) must also work if an output uses the memory of an input: out[0] that of
 *   in[0] if it is element-wise; in the steps of lstm and gru, gates that of x, and dx that of gates. */
#ifndef GT_KERNELS_OPCALL_H
#define GT_KERNELS_OPCALL_H

#include "activation_rows.h"
#include "base/types.h"
#include "comm.h"
#include "loss_rows.h"
#include "optimizer_rows.h"

/* The operations: X(code, name, family, attr, signature).
 *   family     the function of a backend that prepares the calls: gt_cpu_<family>, gt_cuda_<family>. none: no backend receives a call.
 *   attr       gt_opcall.attr points to a struct gt_attr_<attr>; none: it is not read
 *   signature  the operands, "inputs -> outputs". opsig.h reads it; the engine verifies graphs and backends verify calls with it.
 *
 * An operand is NAME[:TYPE][(SHAPE)][MARKS]. An operand in brackets may be absent (pointer and gt_tdesc are NULL, or the index is >= nin).
 *   TYPE   nothing: an activation or its gradient: the compute dtype; NHWC if of rank 4, else plain of rank 1, 2 or 3
 *          w: weights in the compute dtype, in the layout that the backend chose
 *          f: f32, or f64 in an f64 graph, in any layout: parameters, their gradients, saved statistics
 *          f64, i32, i64, u8: that dtype; NHWC if of rank 4, else plain      any: any dtype and layout
 *   SHAPE  sizes, separated by commas: a letter is the same size in the whole signature, a number or a name in capitals is a constant, _ is
 *          any size, and .. at the end is any number of further sizes, the same ones in the whole signature. (): one element, of any rank.
 *          Without parentheses: any shape. An activation (N,C,..), where C is a letter, must not have rank 3: dimension 1 is then the
 *          tokens, which are not contiguous as channels are
 *   MARKS  ! the operation updates it in place.  + it may be accumulated.  * one or more operands of this kind
 *          ~ its channels may be padded to a multiple of GT_CHANNEL_PAD, if the backend supports it (gather)
 *
 * linear            mask is u8 [N, gt_mask_bytes(out)]: one bit for each element of y, set if y > 0, in an order that the backend chooses.
 *                   It is written only with act = relu.
 * linear.dx         If y is given, dx is 0 where y <= 0: the gradient of the preceding relu. The operand y may also be linear's mask.
 * bias.db           Computes the bias gradient of a layer whose weights are frozen.
 * linear.dw+update  Computes dw and updates w with it at once; dw is never stored. s0, s1 and s2 are the states of the optimizer.
 * linear+loss       The last layer and the loss in one kernel (gt_attr_linear_loss).
 * linear.dx+dw      Computes linear.dx and linear.dw in one kernel.
 * conv2d            y = act(conv(x) + b + res). Only an evaluation has a residual, or an activation other than relu.
 * conv2d+conv2d     A 1x1 conv2d (x, w, b) and the depthwise conv2d (w2, b2) that reads it, each with its activation and without a
 *                   residual (gt_attr_conv_pair). The tensor between them is not stored.
 * maxpool2d         idx is the position of the maximum: i32, the offset h * W + w in the input plane, or u8, the offset in the pooling
 *                   window, which includes padding pixels. The gradient of adaptive_maxpool2d is maxpool2d.dx; its idx is i32.
 * batchnorm         y = act(bn(x) + res). In training it updates rmean, rvar and nbt in place.
 * batchnorm.y       Recomputes the y that batchnorm returned.
 * batchnorm.dx      If the 6th operand, beta, is given, an activation follows: act, or relu if act is none. With relu, dy counts only where
 *                   y > 0 or, if y is absent, where bn(x) > 0; with a gelu, dy is multiplied by its derivative at bn(x). The 9th operand,
 *                   more, is added to dy first; with it, an activation follows only if act is not none. g receives the resulting dy.
 *                   The 8th operand, sums, holds the sums over the whole batch: only dx is computed, from these sums; the 6th and 7th
 *                   operand may then be absent, because dy is already masked. The output `again` receives the y that batchnorm
 *                   returned without res; with it, an activation follows only if act is not none.
 * batchnorm.stats   part: the statistics of the call's samples (moments.h), for batchnorm.merge.
 * batchnorm.merge   parts is [k, 3, C] or [3, C]. Merges all parts in the fixed tree of comm.h. Updates rmean, rvar and nbt in place if
 *                   they are present, unless the parts contain no values.
 * batchnorm.sums    sums: the sum of dy, the sum of dy * (x - mean), and the number of values. The other operands are as in batchnorm.dx,
 *                   for the call's samples. The sums, added up over the ranks, are the 8th operand of batchnorm.dx.
 * prelu             K is 1 or C.
 * softmax           Normalises over dimension 1; so does log_softmax.
 * dropout           Drops elements, channels or samples (gt_attr_dropout.unit). The gradient is the same operation: a call dy -> dx draws
 *                   the same mask again.
 * flatten           Writes the elements in PyTorch's order.
 * scale             Multiplies by a factor. The gradient is the same operation.
 * mul.channels      v is [N,C] or [N,C,1,1]: y = x * v at every pixel; add.channels: y = x + v. dv is the gradient of v, a sum over pixels.
 * concat            Concatenates along dimension 1. At most 8 inputs, as for add.
 * view              y has the elements of x in another shape. Never lowered to a kernel: y is an alias of x. Neither x nor y is NHWC.
 * permute           y.dim[i] = x.dim[dims[i]] (torch.permute).
 * select            y is x at one index of a dimension; y lacks this dimension (torch.select). select.dx: dx is 0 at the other indices.
 * embedding         y has one row of the table w for each token, in order, or for each code in one column of tokens [N,columns]
 *                   (gt_attr_embedding.column). A token is 0 ... V - 1.
 * embedding.dw+update, embedding_bag.dw+update  Computes the gradient of the rows that the tokens name, and updates these rows at once. The
 *                   optimizer must not change rows without a gradient: sgd without momentum and weight decay. `none` is always NULL.
 * embedding_bag     The mean, sum or maximum of the table rows of a sample's tokens: of the first lengths[n] tokens, or of all. For the
 *                   maximum, idx is the position of its token in the sample; -1: no token.
 * positional        Adds row t of w to token t, or row 0 to every token (GT_POSITIONAL_SAME). Without w, it adds sines and cosines
 *                   (gt_sinusoid in ew.h).
 * pool_tokens       The mean, the maximum, the first or the last of a sample's tokens within its length. If the length is 0, the last token
 *                   is token 0. idx as in embedding_bag.
 * attention         Scaled dot-product attention of a sequence to itself: qkv has queries, keys and values, C features each, in that order,
 *                   and the features of head h follow those of h - 1. Keys from lengths[n] on are not attended to. lse is the logarithm
 *                   of the sum of the exponentials of a query's scores, for the gradient; infinite if the length is 0, and y is then 0.
 * lstm.steps        One direction of one layer of an LSTM over time (torch.nn.LSTM), without the products with the layer's input: x is the
 *                   input times weight_ih plus bias_ih; w and b are weight_hh and bias_hh. The gates are i, f, g, o, in that order, and G
 *                   is 4 H. y is the hidden state of each step, 0 from lengths[n] on; with gt_attr_rnn.reverse, a sample begins at its own
 *                   last token. gates: the values of the gates; cells: the cell states, both for the gradient.
 * lstm.steps.dx     dx is the gradient of x, and also of the product of w and `before`, the hidden state before the step. The gradient of w
 *                   is therefore dw of a linear layer (linear.dw) with the input `before`.
 * gru.steps         The same for torch.nn.GRU: the gates are r, z, n, and G is 3 H. cells: n's product with the hidden state, with bias,
 *                   before the multiplication by r. In gru.steps.dx, dh is the gradient of the product of w and `before`.
 * views.mean        The weighted mean over the views of each sample (aug.h): x is [views * N, C].
 * identity          Never lowered to a kernel: the planner makes y an alias of x.
 * comm              A collective or a transfer between ranks (gt_attr_comm). No backend receives it: the executor calls the communicator.
 * rows              all: the rows of all ranks, in memory that the ranks share; x is this rank's block (gt_attr_rows). Never lowered.
 * cast              Converts to another dtype in the same layout.
 * losses            metrics is a struct gt_metrics. scale multiplies the gradient, not the loss. The target is i32 [N], a label for each
 *                   sample, or f32 [N,K], a value for each output (gt_loss_target). loss_rows.h describes each loss.
 * gather            images are NHWC in memory. index is [N], or [R,L]: then sample n of the batch is
 *                   index[epoch % R][sample0 + n * stride], with the values of gt_step_args. With views, x is [views*N,C,H,W]: all samples
 *                   of the first view, then all samples of the next one. labels and target are both present or both absent.
 *                   If a backend accepts an x with padded channels, it writes zeros into the padding, and its conv2d and conv2d.dw without
 *                   groups accept such an x.
 * gather.recipes    gather for images that are not transformed yet: a row has the transforms and the pixels of an image (recipe.h). index,
 *                   views and padded channels as in gather.
 * gather.rows       Gathers rows of values: i32 stays i32, and f32 becomes f32 or the compute dtype. y has all rows of the batch once for
 *                   each view. index as in gather.
 * gather.ragged     Gathers sequences of different lengths: sample i is rows[start[i] ... start[i + 1] - 1], at most L values. The rest of
 *                   its row of y is filled with gt_attr_ragged.pad. index and views as in gather.
 * sumsq             The sum of squares of a flat tensor. It is NaN or infinite if an element is.
 * bound             Raises scalar to factor * N * max|dy| * max(1, max|x|): with factor 1, an upper bound of the elements of dw and db. A
 *                   NaN stays NaN.
 * check             Decides, in place, whether the step is applied and by which factor its gradients are divided (ew.h). With g (one rank
 *                   only) it first computes sumsq of g and stores it in scalars.sumsq.
 *
 * The updates of the optimizers follow; optimizer_rows.h lists them with their operands. */
#define GT_OPCODES(X) \
	X(GT_OP_LINEAR, "linear", linear, linear, "x(N,I) w:w(O,I) [b:f(O)] -> y(N,O) [mask:u8(N,_)]") \
	X(GT_OP_LINEAR_DX, "linear.dx", linear, linear, "dy(N,O) w:w(O,I) [y:any(N,_)] -> dx(N,I)") \
	X(GT_OP_LINEAR_DW, "linear.dw", linear, linear, "dy(N,O) x(N,I) -> [dw:f(O,I)+] [db:f(O)+]") \
	X(GT_OP_BIAS_DB, "bias.db", rowsum, none, "dy(N,C,..) -> db:f(C)+") \
	X(GT_OP_LINEAR_DW_UPDATE, "linear.dw+update", linear_dw_update, dw_update, \
	  "dy(N,O) x(N,I) w:f(O,I)! [scalars:f64(SCALARS)] [s0:f!] [s1:f!] [s2:f!] " \
	  "-> [db:f(O)+]") \
	X(GT_OP_LINEAR_LOSS, "linear+loss", head, linear_loss, \
	  "x(N,I) w:w(O,I) [b:f(O)] target:i32(N) [scale:f64()] " \
	  "-> y(N,O) metrics:any [dy(N,O)]") \
	X(GT_OP_LINEAR_BACK, "linear.dx+dw", head_back, linear, "dy(N,O) x(N,I) w:w(O,I) [y(N,I)] -> dx(N,I) dw:f(O,I)+ [db:f(O)+]") \
	X(GT_OP_CONV2D, "conv2d", conv, conv2d, "x(N,_,_,_)~ w:w(O,_,_,_) [b:f(O)] [res(N,O,P,Q)] -> y(N,O,P,Q)") \
	X(GT_OP_CONV2D_PAIR, "conv2d+conv2d", conv_pair, conv_pair, "x(N,_,_,_) w:w(C,_,_,_) [b:f(C)] w2:w(C,_,_,_) [b2:f(C)] -> y(N,C,_,_)") \
	X(GT_OP_CONV2D_DX, "conv2d.dx", conv, conv2d, "dy(N,O,_,_) w:w(O,_,_,_) -> dx(N,_,_,_)") \
	X(GT_OP_CONV2D_DW, "conv2d.dw", conv, conv2d, "dy(N,O,_,_) x(N,_,_,_)~ -> [dw:f(O,_,_,_)+] [db:f(O)+]") \
	X(GT_OP_MAXPOOL2D, "maxpool2d", pool, pool2d, "x(N,C,_,_) -> y(N,C,P,Q) [idx:any(N,C,P,Q)]") \
	X(GT_OP_MAXPOOL2D_DX, "maxpool2d.dx", pool, pool2d, "dy(N,C,P,Q) idx:any(N,C,P,Q) -> dx(N,C,_,_)") \
	X(GT_OP_AVGPOOL2D, "avgpool2d", pool, pool2d, "x(N,C,_,_) -> y(N,C,_,_)") \
	X(GT_OP_AVGPOOL2D_DX, "avgpool2d.dx", pool, pool2d, "dy(N,C,_,_) -> dx(N,C,_,_)") \
	X(GT_OP_ADAPTIVE_AVGPOOL2D, "adaptive_avgpool2d", pool, adaptive, "x(N,C,_,_) -> y(N,C,_,_)") \
	X(GT_OP_ADAPTIVE_AVGPOOL2D_DX, "adaptive_avgpool2d.dx", pool, adaptive, "dy(N,C,_,_) -> dx(N,C,_,_)") \
	X(GT_OP_ADAPTIVE_MAXPOOL2D, "adaptive_maxpool2d", pool, adaptive, "x(N,C,_,_) -> y(N,C,P,Q) [idx:i32(N,C,P,Q)]") \
	X(GT_OP_BATCHNORM, "batchnorm", batchnorm, norm, \
	  "x(N,C,..) [gamma:f(C)] [beta:f(C)] [rmean:f(C)!] [rvar:f(C)!] [nbt:i64()!] [res(N,C,..)] " \
	  "-> y(N,C,..) [mean:f(C)] [rstd:f(C)]") \
	X(GT_OP_BATCHNORM_Y, "batchnorm.y", batchnorm, norm, \
	  "x(N,C,..) [gamma:f(C)] [beta:f(C)] mean:f(C) rstd:f(C) [res(N,C,..)] " \
	  "-> y(N,C,..)") \
	X(GT_OP_BATCHNORM_DX, "batchnorm.dx", batchnorm, norm, \
	  "dy(N,C,..) x(N,C,..) [gamma:f(C)] mean:f(C) rstd:f(C) [beta:f(C)] [y(N,C,..)] [sums:f64(3,C)] [more(N,C,..)] " \
	  "-> [dx(N,C,..)] [dgamma:f(C)+] [dbeta:f(C)+] [g(N,C,..)] [again(N,C,..)]") \
	X(GT_OP_BATCHNORM_STATS, "batchnorm.stats", batchnorm, norm, "x -> part:f64(3,_)") \
	X(GT_OP_BATCHNORM_MERGE, "batchnorm.merge", moments, norm, \
	  "parts:f64 [rmean:f(C)!] [rvar:f(C)!] [nbt:i64()!] " \
	  "-> [mean:f(C)] [rstd:f(C)]") \
	X(GT_OP_BATCHNORM_SUMS, "batchnorm.sums", batchnorm, norm, \
	  "dy(N,C,..) x(N,C,..) [gamma:f(C)] mean:f(C) rstd:f(C) [beta:f(C)] [y(N,C,..)] [more(N,C,..)] " \
	  "-> sums:f64(3,C) [dgamma:f(C)+] [dbeta:f(C)+] [g(N,C,..)]") \
	X(GT_OP_LAYERNORM, "layernorm", layernorm, norm, "x(N,..) [gamma:f(..)] [beta:f(..)] -> y(N,..) [mean:f(N)] [rstd:f(N)]") \
	X(GT_OP_LAYERNORM_DX, "layernorm.dx", layernorm, norm, \
	  "dy(N,..) x(N,..) [gamma:f(..)] mean:f(N) rstd:f(N) " \
	  "-> [dx(N,..)] [dgamma:f(..)+] [dbeta:f(..)+]") \
	X(GT_OP_GROUPNORM, "groupnorm", groupnorm, norm, \
	  "x(N,C,..) [gamma:f(C)] [beta:f(C)] -> y(N,C,..) [mean:f(N,G)] [rstd:f(N,G)]") \
	X(GT_OP_GROUPNORM_DX, "groupnorm.dx", groupnorm, norm, \
	  "dy(N,C,..) x(N,C,..) [gamma:f(C)] mean:f(N,G) rstd:f(N,G) -> [dx(N,C,..)] [dgamma:f(C)+] [dbeta:f(C)+]") \
	X(GT_OP_PRELU, "prelu", channels, prelu, "x(N,C,..) w:f(K) -> y(N,C,..)") \
	X(GT_OP_PRELU_DX, "prelu.dx", channels, prelu, "dy(N,C,..) x(N,C,..) w:f(K) -> [dx(N,C,..)] [dw:f(K)+]") \
	X(GT_OP_SOFTMAX, "softmax", softmax, none, "x(N,C,..) -> y(N,C,..)") \
	X(GT_OP_SOFTMAX_DX, "softmax.dx", softmax, none, "dy(N,C,..) y(N,C,..) -> dx(N,C,..)") \
	X(GT_OP_LOG_SOFTMAX, "log_softmax", softmax, none, "x(N,C,..) -> y(N,C,..)") \
	X(GT_OP_LOG_SOFTMAX_DX, "log_softmax.dx", softmax, none, "dy(N,C,..) y(N,C,..) -> dx(N,C,..)") \
	X(GT_OP_DROPOUT, "dropout", dropout, dropout, "x(..) -> y(..)") \
	X(GT_OP_FLATTEN, "flatten", shape, none, "x(N,..) -> y(N,_)") \
	X(GT_OP_FLATTEN_DX, "flatten.dx", shape, none, "dy(N,_) -> dx(N,..)") \
	X(GT_OP_ADD, "add", eltwise, none, "a(..) b(..)* -> y(..)") \
	X(GT_OP_SCALE, "scale", eltwise, scale, "x(..) -> y(..)") \
	X(GT_OP_MUL, "mul", eltwise, none, "a(..) b(..) -> y(..)") \
	X(GT_OP_MUL_CHANNELS, "mul.channels", channels, none, "x(N,C,..) v -> y(N,C,..)") \
	X(GT_OP_MUL_CHANNELS_DV, "mul.channels.dv", channels, none, "dy(N,C,..) x(N,C,..) -> dv") \
	X(GT_OP_ADD_CHANNELS, "add.channels", channels, none, "x(N,C,..) v -> y(N,C,..)") \
	X(GT_OP_ADD_CHANNELS_DV, "add.channels.dv", channels, none, "dy(N,C,..) -> dv") \
	X(GT_OP_CONCAT, "concat", shape, none, "[x(N,_,..)]* -> y(N,_,..)") \
	X(GT_OP_CONCAT_DX, "concat.dx", shape, none, "dy(N,_,..) -> [dx(N,_,..)]*") \
	X(GT_OP_VIEW, "view", none, none, "x -> y") \
	X(GT_OP_PERMUTE, "permute", strided, permute, "x -> y") \
	X(GT_OP_SELECT, "select", strided, select, "x -> y") \
	X(GT_OP_SELECT_DX, "select.dx", strided, select, "dy -> dx") \
	X(GT_OP_EMBEDDING, "embedding", embedding, embedding, "tokens:i32 w:f(V,D) -> y(_,D)") \
	X(GT_OP_EMBEDDING_DW, "embedding.dw", embedding, embedding, "dy(_,D) tokens:i32 -> dw:f(_,D)+") \
	X(GT_OP_EMBEDDING_DW_UPDATE, "embedding.dw+update", embedding_update, embedding_update, \
	  "dy(_,D) tokens:i32 w:f(V,D)! [scalars:f64(SCALARS)] [s0:f!] [s1:f!] [s2:f!] -> [none:f]") \
	X(GT_OP_EMBEDDING_BAG, "embedding_bag", embedding, embedding, \
	  "tokens:i32(N,T) [lengths:i32(N)] w:f(V,D) -> y(N,D) [idx:i32(N,D)]") \
	X(GT_OP_EMBEDDING_BAG_DW, "embedding_bag.dw", embedding, embedding, \
	  "dy(N,D) tokens:i32(N,T) [lengths:i32(N)] [idx:i32(N,D)] -> dw:f(_,D)+") \
	X(GT_OP_EMBEDDING_BAG_DW_UPDATE, "embedding_bag.dw+update", embedding_update, embedding_update, \
	  "dy(N,D) tokens:i32(N,T) w:f(V,D)! [lengths:i32(N)] [idx:i32(N,D)] [scalars:f64(SCALARS)] [s0:f!] [s1:f!] [s2:f!] -> [none:f]") \
	X(GT_OP_POSITIONAL, "positional", tokens, positional, "x(N,T,C) [w:f(_,C)] -> y(N,T,C)") \
	X(GT_OP_POSITIONAL_DW, "positional.dw", tokens, positional, "dy(N,T,C) -> dw:f(_,C)+") \
	X(GT_OP_POOL_TOKENS, "pool_tokens", tokens, pool_tokens, "x(N,T,C) [lengths:i32(N)] -> y(N,C) [idx:i32(N,C)]") \
	X(GT_OP_POOL_TOKENS_DX, "pool_tokens.dx", tokens, pool_tokens, "dy(N,C) [lengths:i32(N)] [idx:i32(N,C)] -> dx(N,T,C)") \
	X(GT_OP_ATTENTION, "attention", attention, attention, "qkv(N,T,_) [lengths:i32(N)] -> y(N,T,C) [lse:f(N,H,T)]") \
	X(GT_OP_ATTENTION_DX, "attention.dx", attention, attention, \
	  "dy(N,T,C) qkv(N,T,_) y(N,T,C) [lengths:i32(N)] lse:f(N,H,T) -> dqkv(N,T,_)") \
	X(GT_OP_LSTM_STEPS, "lstm.steps", rnn, rnn, \
	  "x(N,T,G) [lengths:i32(N)] w:w(G,H) [b:f(G)] -> y(N,T,H) [gates:f(N,T,G)] [cells:f(N,T,H)]") \
	X(GT_OP_LSTM_STEPS_DX, "lstm.steps.dx", rnn, rnn, \
	  "dy(N,T,H) y(N,T,H) gates:f(N,T,G) cells:f(N,T,H) [lengths:i32(N)] w:w(G,H) -> dx(N,T,G) [before(N,T,H)]") \
	X(GT_OP_GRU_STEPS, "gru.steps", rnn, rnn, \
	  "x(N,T,G) [lengths:i32(N)] w:w(G,H) [b:f(G)] -> y(N,T,H) [gates:f(N,T,G)] [cells:f(N,T,H)]") \
	X(GT_OP_GRU_STEPS_DX, "gru.steps.dx", rnn, rnn, \
	  "dy(N,T,H) y(N,T,H) gates:f(N,T,G) cells:f(N,T,H) [lengths:i32(N)] w:w(G,H) -> dx(N,T,G) [before(N,T,H)] [dh(N,T,G)]") \
	X(GT_OP_VIEWS_MEAN, "views.mean", rowsum, views, "x(_,C) -> y(_,C)") \
	X(GT_OP_IDENTITY, "identity", none, none, "x(..) -> y(..)") \
	X(GT_OP_COMM, "comm", none, comm, "[in:any] -> [out:any]") \
	X(GT_OP_ROWS, "rows", none, rows, "x(_,..) -> all(_,..)") \
	X(GT_OP_CAST, "cast", eltwise, none, "x:any(..) -> y:any(..)") \
	X(GT_OP_GATHER, "gather", gather, gather, "images:u8(M,C,H,W) [labels:i32(M)] index:i64 -> x(_,C,..)~ [target:i32(_)]") \
	X(GT_OP_GATHER_RECIPES, "gather.recipes", gather_recipes, recipes, \
	  "rows:u8(M,_) [labels:i32(M)] index:i64 -> x(_,_,_,_)~ [target:i32(_)]") \
	X(GT_OP_GATHER_ROWS, "gather.rows", gather_rows, views, "rows:any(M,..) index:i64 -> y:any(_,..)") \
	X(GT_OP_GATHER_RAGGED, "gather.ragged", gather_ragged, ragged, "rows:i32(T) start:i64(M) index:i64 -> y:i32(_,L)") \
	X(GT_OP_SUMSQ, "sumsq", sumsq, none, "flat:f -> scalar:f64()+") \
	X(GT_OP_BOUND, "bound", bound, scale, "dy(N,_) x(N,_) -> scalar:f64()!") \
	X(GT_OP_CHECK, "check", check, check, "scalars:f64(SCALARS)! scaler:f64(SCALER)! [numbers:u8!] [parts:f64(_,SCALARS)!] [g:f] ->") \
	GT_ACTIVATIONS(GT_ACTIVATION_OPCODES, X) \
	GT_LOSSES(GT_LOSS_OPCODES, X)

enum gt_opcode {
#define GT_X(code, ...) code,
	GT_OPCODES(GT_X)
#undef GT_X
#define GT_X(NAME, ...) GT_OP_##NAME,
	GT_UPDATES(GT_X)
#undef GT_X
	GT_OP_COUNT
};

const char *gt_opcode_name(enum gt_opcode code);

/* ---- attributes: gt_opcall.attr points to the struct of the operation; a gradient uses the struct of its forward operation --- */

/* An activation that is fused into another operation. Every backend supports relu in linear and conv2d. Batch normalisation also supports
 * gelu, exact or approximated by tanh. Some backends support all of them in a conv2d of an evaluation. */
enum gt_act { GT_ACT_NONE, GT_ACT_RELU, GT_ACT_GELU, GT_ACT_GELU_TANH, GT_ACT_RELU6, GT_ACT_SILU, GT_ACT_HARDSWISH };

struct gt_attr_linear {
	int64_t out; /* output features */
	bool bias;   /* operand b is present */
	/* enum gt_act: activation fused into this layer. linear applies it; linear.dw and linear.dx then expect a dy that is already masked */
	int act;
};

/* Returns the bytes of one row of linear's mask for `out` features: a multiple of 16, because a row is stored in runs of 128 bits. */
static inline int64_t gt_mask_bytes(int64_t out)
{
	return (out + 127) / 128 * 16;
}

struct gt_attr_conv2d {
	int64_t out; /* output channels */
	int64_t kernel[2], stride[2], padding[2], dilation[2]; /* height, width; in pixels */
	int64_t groups;
	bool bias;   /* operand b is present */
	int act;     /* activation that was fused into this operation (enum gt_act) */
};

struct gt_attr_conv_pair {
	struct gt_attr_conv2d first, second;
};

struct gt_attr_pool2d {
	/* Height, width; in pixels. Stride 0,0 in a config means stride = kernel; shape inference resolves it. Kernel 0,0 marks a maxpool2d.dx
	 * of adaptive_maxpool2d, whose pooling windows are known only through idx. */
	int64_t kernel[2], stride[2], padding[2];
	bool ceil_mode;         /* round the output size up, as in PyTorch */
	bool count_include_pad; /* avgpool2d: padding counts in the mean; PyTorch's default is true */
};

struct gt_attr_adaptive {
	int64_t out[2]; /* output height, width */
};

struct gt_attr_norm {
	double eps;
	int64_t groups;  /* groupnorm: number of groups; divides the channels */
	int64_t dims;    /* layernorm: value of the config key; only the graph reads it */
	double momentum; /* batchnorm: running = (1 - momentum) * old + momentum * new */
	bool affine;     /* false: gamma and beta are absent (NULL) */
	bool track;      /* batchnorm: running statistics exist; false: evaluation uses batch statistics too */
	bool train;      /* set by the graph; true: use batch statistics, false: use running statistics */
	int act;         /* batchnorm: activation that was fused into this operation (enum gt_act) */
	bool empty;      /* batchnorm.stats: if true, write the statistics of no samples; x is not read and may be any tensor */
};

/* The parameters of an activation, such as the slope of leaky_relu, in the order of its keys (activation_rows.h). */
struct gt_attr_act {
	double number[2];
};

struct gt_attr_prelu {
	int64_t num; /* number of weights: 1, or one for each channel */
};

struct gt_attr_gelu {
	int approximate; /* 0: erf, 1: tanh */
};

struct gt_attr_scale {
	double factor;
};

/* How embedding_bag combines the rows of a sample's tokens. */
enum gt_bag { GT_BAG_MEAN, GT_BAG_SUM, GT_BAG_MAX };
struct gt_attr_embedding {
	int64_t num, dim; /* rows and columns of the table */
	int64_t padding;  /* padding token: its row gets no gradient, and bags skip it; -1: none */
	int64_t column;   /* column of the tokens that is read; -1: all tokens */
	int mode;         /* embedding_bag: enum gt_bag */
};

enum gt_positional { GT_POSITIONAL_LEARNED, GT_POSITIONAL_SINUSOIDAL, GT_POSITIONAL_SAME };
struct gt_attr_positional {
	int64_t max; /* rows of the table */
	int kind;    /* enum gt_positional */
};

enum gt_pool_tokens { GT_POOL_MEAN, GT_POOL_MAX, GT_POOL_FIRST, GT_POOL_LAST };
struct gt_attr_pool_tokens {
	int mode; /* enum gt_pool_tokens */
};

struct gt_attr_attention {
	int64_t heads; /* divides the features */
	bool bias;     /* the projections, which are separate operations, have a bias */
	bool causal;   /* a token attends to itself and to earlier ones only */
};

struct gt_attr_permute {
	struct gt_ints dims; /* for each dimension of y, the dimension of x; dims.v[0] is 0 */
};

struct gt_attr_select {
	int64_t dim;   /* 1 ... rank - 1; a config may also count back from the last one, -1 */
	int64_t index; /* 0 ... size - 1; a config may also count back from the last one, -1 */
};

struct gt_attr_rnn {
	bool reverse; /* the steps go from the last token of a sample to the first */
};

struct gt_attr_views {
	int views; /* number of views of each sample, 2 or 6; see gt_attr_gather.views */
};

struct gt_attr_ragged {
	int views;   /* number of views of each sample; see gt_attr_gather.views */
	int32_t pad; /* value that fills a row after the end of its sequence */
};

/* The unit that dropout drops: single elements, channels of a sample, or whole samples. */
enum gt_drop { GT_DROP_ELEMENTS, GT_DROP_CHANNELS, GT_DROP_SAMPLES };
struct gt_attr_dropout {
	double p;       /* probability that a unit becomes 0; 0 ... 1 */
	int unit;       /* enum gt_drop */
	uint32_t layer; /* index of the layer's random stream */
	bool train;     /* false: y = x */
};

struct gt_attr_loss {
	double number[GT_LOSS_NUMBERS]; /* parameters in the order of the loss's keys (GT_LOSS_KEYS); cross_entropy: label smoothing */
	int64_t ignore_index;           /* for losses over classes: samples with this label have weight 0 */
	const double *weights;          /* one weight for each output (see `weight` in loss_rows.h). NULL: all 1 */
	int64_t nweights;               /* number of weights: the number of outputs, or 0 */
};

struct gt_attr_linear_loss {
	struct gt_attr_linear linear; /* act is GT_ACT_NONE */
	enum gt_opcode code;          /* operation of the loss: cross_entropy, nll or mse */
	struct gt_attr_loss loss;
};

#define GT_MAX_CHANNELS 16
#define GT_CHANNEL_PAD 8 /* number of 16-bit channels in 16 bytes, the unit that tensor cores require */
struct gt_attr_gather {
	float scale[GT_MAX_CHANNELS], shift[GT_MAX_CHANNELS]; /* per channel: x = u8 * scale + shift, which is (u8/255 - mean) / std */
	int pad;              /* random crop (pad_crop): the image is shifted by -pad ... pad pixels in both directions; 0: off */
	bool pad_reflect;     /* true: the padding mirrors the image. false: it is black (byte 0) and then normalised, as in torchvision's
	                       * RandomCrop before Normalize */
	double hflip;         /* probability of mirroring left to right, 0 ... 1; 0: off */
	bool hflip_alternate; /* use the random flips of epoch 0 in every epoch, and flip all images once more in odd epochs */
	bool augment;         /* false: pad and hflip are off */
	/* Number of views of each sample in an evaluation, which replace augmentation. 0 or 1: only the image. 2: also its mirror image. 6:
	 * also the image shifted by (-1, -1) and by (1, 1) pixels over a reflected edge, and the mirror image of each (gt_aug_view). */
	int views;
};

struct gt_attr_recipes {
	struct gt_attr_gather gather; /* scale, shift and views; without augmentation */
	int ops;                      /* number of operations for which a row has memory, at most GT_RECIPE_MAX_OPS */
	bool resize;                  /* images may be resized; rows then have memory for more pixels than an image */
	int contrasts;                /* maximum number of operations that change the contrast; each reads the whole image once more */
};

/* A segment: consecutive elements of the flat parameter arena with the same hyper-parameters. */
struct gt_seg {
	int64_t begin, end;  /* range [begin, end) in elements, relative to the pointers of the call; the operand work has the same range */
	double lr_mul;       /* factor of the learning rate */
	double weight_decay;
	int lr;              /* index into gt_step_args.lr: 0 ... GT_MAX_LR - 1 */
	int64_t since;       /* number of optimizer steps before the segment's first update; the segment's own steps count from there */
};

#define GT_MEMBER_NUMBER(key) double key;
#define GT_MEMBER_FLAG(key) bool key;
#define GT_MEMBER_BETAS(key) double beta1, beta2;
struct gt_attr_update {
	/* The keys of GT_OPTIMIZER_KEYS. gt_step_args.momentum replaces momentum and beta1; whether there is a momentum buffer depends on
	 * momentum here. For EMA, alpha is the decay, and nesterov enables a warm-up. */
#define GT_X(P, A, KIND, key, ...) GT_MEMBER_##KIND(key)
	GT_OPTIMIZER_KEYS(GT_X, , )
#undef GT_X
	bool decoupled;   /* the weight decay does not change the gradient: AdamW */
	double clip_value; /* maximum magnitude of an element of a gradient; 0: no clipping */
	double clip_norm; /* maximum norm of the gradients; 0: no clipping. If > 0, scalars.sumsq holds the sum of squares of all gradients */
	const struct gt_seg *seg; /* segments in ascending order, not overlapping; elements outside all segments are not changed */
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
 * X = a X + (b A + c A A) X with A = X X^T. With a 16-bit work copy, operands and results of its products are bf16, as in
 * torch.optim.Muon; else f32. With a learning rate of 0, p does not change.
 * Jordan's original ("Muon: an optimizer for hidden layers in neural networks", 2024; airbench94_muon) lacks both factors
 * 1 - momentum: its d is this d times a constant, which NS divides out. */
struct gt_attr_muon {
	struct gt_attr_update update;       /* uses momentum, nesterov, eps, clip_norm, seg and work_dtype */
	const struct gt_tdesc *const *desc; /* for each segment, the shape and layout of its weight */
	int64_t ns_steps;                   /* number of Newton-Schulz iterations */
	double ns[3];                       /* coefficients a, b, c */
	int adjust; /* enum gt_muon_adjust: sqrt(max(1, out / rest)), 0.2 sqrt(max(out, rest)), 1, sqrt(out / rest), in the order of the enum */
	bool normalize;                     /* scale p to the norm sqrt(out) before each update */
};

/* ---- values that change from step to step, in memory that the kernel can read --------------------------------------------- */
#define GT_MAX_LR 16
struct gt_step_args {
	uint64_t seed;
	uint64_t epoch;       /* from 0 */
	uint64_t sample0;     /* position of this micro-batch's first sample in the epoch's order */
	uint64_t stride;      /* positions from one sample to the next: 1, or the world size with sampler = "torch" */
	int64_t step;         /* number of optimizer steps, including this one: Adam's t */
	double lr[GT_MAX_LR]; /* learning rates of the parameter groups, indexed by gt_seg.lr */
	/* momentum of sgd, rmsprop and muon, or beta1 of adam and lion, of the parameter groups in this step, indexed by gt_seg.lr; 0: use the
	 * value of gt_attr_update */
	double momentum[GT_MAX_LR];
	double inv_weight;    /* 1 / sum of the target weights of the effective batch; turns sums into PyTorch's mean */
	/* number of gt_step_args that follow this one in memory, for micro-batches that are already queued on the device; after a skipped step,
	 * the operation check shifts their step counts and learning rates */
	int64_t left;
};

/* The sums that the losses update. The executor zeroes them at the start of a step or an evaluation. */
struct gt_metrics {
	double loss;     /* sum of the losses of the samples, not divided */
	double weight;   /* divisor of the mean loss: sum of the samples' weights; without class weights, a sample has 1, an ignored one 0 */
	int64_t correct; /* samples with argmax == target */
	int64_t top5;    /* samples whose target is among the five largest outputs */
	int64_t count;   /* samples whose target is not ignored and has a class; 0 with targets f32 [N,K] of a loss that is not over classes */
};

/* The scalars of one optimizer step, in device memory. The executor zeroes them before the step. As an operand: f64 [GT_SCALARS_WORDS]. */
struct gt_scalars {
	struct gt_metrics metrics;
	/* sum of squares of the gradients that are stored before any parameter is updated, still multiplied by the loss scale */
	double sumsq;
	double bound;     /* upper bound of the gradients of linear.dw+update, which are never stored; they are finite if it is below FLT_MAX */
	double inv_scale; /* written by check: factor of all gradients before clipping; 1 without a loss scale */
	int64_t skip;     /* written by check: if not 0, the optimizer changes nothing */
	double scale;     /* written by check: the loss scale after the step */
};
#define GT_SCALARS_WORDS ((int64_t)(sizeof(struct gt_scalars) / sizeof(double)))

/* State of the loss scaler and of `check`, which persists across steps, in device memory. As an operand: f64 [GT_SCALER_WORDS]. */
struct gt_scaler {
	double scale;   /* loss scale, exact in f32; used only with gt_attr_check.scaling */
	int64_t good;   /* steps applied since the scale last changed */
	int64_t bad;    /* number of consecutive steps that were skipped up to now */
	int64_t halted; /* not 0: a step diverged; no later step is applied until the host clears this */
};
#define GT_SCALER_WORDS ((int64_t)(sizeof(struct gt_scaler) / sizeof(double)))

/* Attributes of check. With scaling, as in torch.amp.GradScaler, a step whose gradients overflow is skipped and the scale decreases;
 * without it, such a step halts the run. The operand `numbers`, which scaling requires, holds the gt_step_args of this micro-batch and of
 * the `left` micro-batches after it, as bytes (u8 [n]). */
struct gt_attr_check {
	bool scaling, dynamic;  /* scaling: the loss is multiplied by a scale; dynamic, only with scaling: the scale changes during the run */
	double growth, backoff; /* factors of the scale: after `interval` good steps, and after an overflow */
	int64_t interval;       /* number of steps without an overflow before the scale grows */
	int64_t patience;       /* halt after this number of skipped steps in a row, because no scale helps; 0: never */
	/* Number of ranks. If it is > 1, the operand parts holds the scalars of all ranks (f64 [ranks, GT_SCALARS_WORDS]); their sum becomes
	 * the scalars of the step, and parts is overwritten. */
	int64_t ranks;
	/* used if ranks > 1. true: the sumsq of a rank covers its shard of the gradients; false: it covers all gradients */
	bool sharded;
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
	int lane;  /* send, recv: number of the lane, from 0; transfers in different lanes of a group have no order relative to each other */
};
const char *gt_comm_name(const struct gt_attr_comm *c); /* "all_reduce", "send" */
const char *gt_group_name(int group);                   /* "world" */

/* Attributes of rows: the operand x is block `part` (0 ... parts - 1) of the `parts` equal blocks of the output. */
struct gt_attr_rows {
	int part, parts;
};

/* Attributes of linear.dw+update. The update has one segment that covers all elements of w, and the same states as the optimizer's own
 * operation. It has clip_norm 0 and no work copy. */
struct gt_attr_dw_update {
	/* the call computes and applies block `part` (from 0) of `parts` equal blocks of dw, and no db; both 0: all of dw */
	int part, parts;
	enum gt_opcode optimizer; /* an element-wise update */
	struct gt_attr_update update;
};

/* Attributes of embedding.dw+update. The update has one segment that covers all elements of w. */
struct gt_attr_embedding_update {
	struct gt_attr_embedding table;
	int part, parts; /* the call updates block `part` (from 0) of `parts` blocks of rows of about the same size; both 0: all rows */
	enum gt_opcode optimizer; /* an update that does not change rows without a gradient */
	struct gt_attr_update update;
};

#define GT_MAX_IO 10
struct gt_opcall {
	enum gt_opcode code;
	const char *name; /* name of the layer for messages */
	const void *attr; /* attribute struct of the operation, as GT_OPCODES names it */
	int nin, nout;
	/* descriptors of the operands; NULL: absent. prepare() chooses the layout of tensors with .any set */
	struct gt_tdesc *in[GT_MAX_IO], *out[GT_MAX_IO];
	uint32_t accumulate;                             /* bit i: the kernel adds to out[i] */
	bool deterministic;                              /* allow only fixed orders of reduction (reproducible != none) */
	/* the parameters do not change after the first launch, so the kernel may keep its own transformed copy of them */
	bool constant;
};

#endif
