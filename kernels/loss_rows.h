/* One row for each loss. The operation codes, the values and keys of train.loss, the kernels' loops and the lists of the tests are
 * generated from these rows. losses.h has the same rows as structs.
 *
 * To add a loss that is a mean over outputs: a row in GT_LOSSES; its keys in GT_LOSS_KEYS; in ew.inc its function gt_<name>_loss and its
 * derivative gt_<name>_grad; cases in tests/ops/cases.txt and PyTorch's function in tests/golden/make_ops.py. */
#ifndef GT_KERNELS_LOSS_ROWS_H
#define GT_KERNELS_LOSS_ROWS_H

/* X(arg, CODE, name, kind, output, target, weight, numbers, also, help). The operation is GT_OP_<CODE>.
 *   arg      the second argument of GT_LOSSES, for an X that expands another macro (opcall.h); else empty
 *   kind     how the loss of a sample is computed from the sample's outputs:
 *            MEAN: the mean over the outputs of gt_<name>_loss(output, target, weight..., numbers...); its derivative is gt_<name>_grad
 *            SUM: the sum instead of the mean. The outputs are classes, and one class is correct
 *            ROWS: each backend has its own code
 *   output   meaning of the model's outputs (enum gt_loss_output): LOGITS or LOG_PROBABILITIES of classes, one of which is correct; LABELS,
 *            logits of labels that do not exclude each other; VALUES
 *   target   ANY: a label for each sample, used as its one-hot vector, or a value for each output; LABEL: labels only
 *   weight   the loss's weights, one for each output (gt_attr_loss.weights): BY_CLASS, factors of samples by class (train.class_weights);
 *            BY_OUTPUT, factors of targets that are 1 (train.pos_weight), an argument of the function; NONE
 *   numbers  how many parameters (gt_attr_loss.number) the loss takes: 0, 1 or 2
 *   also     other names, "a|b", for which an error suggests this loss; NULL: none
 *   help     one line for gtrain.cfg(5) */
#define GT_LOSSES(X, ...)                                                                                                                  \
	X(__VA_ARGS__, CROSS_ENTROPY, cross_entropy, ROWS, LOGITS, ANY, BY_CLASS, 1,                                                           \
	  "ce|CrossEntropyLoss|categorical_crossentropy|sparse_categorical_crossentropy|log_loss|softmax",                                     \
	  "log-softmax of the outputs, then the negative log-likelihood of the label")                                                         \
	X(__VA_ARGS__, NLL, nll, ROWS, LOG_PROBABILITIES, LABEL, BY_CLASS, 0, "NLLLoss|nll_loss|negative_log_likelihood",                      \
	  "negative log-likelihood of the label, for a model that ends in log_softmax")                                                        \
	X(__VA_ARGS__, MSE, mse, MEAN, VALUES, ANY, NONE, 0, "MSELoss|mse_loss|l2|l2_loss|mean_squared_error|squared_error",                   \
	  "mean squared difference between outputs and targets")                                                                               \
	X(__VA_ARGS__, BCE, bce, MEAN, LABELS, ANY, BY_OUTPUT, 0,                                                                              \
	  "BCEWithLogitsLoss|bce_with_logits|binary_cross_entropy_with_logits|sigmoid", "binary cross entropy; each output is a logit")        \
	X(__VA_ARGS__, SMOOTH_L1, smooth_l1, MEAN, VALUES, ANY, NONE, 1, "SmoothL1Loss|smooth_l1_loss",                                        \
	  "mean difference from the targets; small differences are squared (Huber's loss divided by beta)")                                    \
	X(__VA_ARGS__, L1, l1, MEAN, VALUES, ANY, NONE, 0, "mae|L1Loss|l1_loss|mean_absolute_error|absolute_error",                            \
	  "mean absolute difference from the targets")                                                                                         \
	X(__VA_ARGS__, HUBER, huber, MEAN, VALUES, ANY, NONE, 1, "HuberLoss|huber_loss",                                                       \
	  "mean difference from the targets; small differences are squared, large differences have the slope huber_delta")                     \
	X(__VA_ARGS__, FOCAL, focal, MEAN, LABELS, ANY, NONE, 2, "focal_loss|FocalLoss|sigmoid_focal_loss|SigmoidFocalLoss",                   \
	  "mean over the outputs of bce times (1 - p)^focal_gamma, where p is the probability of the target")                                  \
	X(__VA_ARGS__, KL_DIV, kl_div, SUM, LOG_PROBABILITIES, ANY, NONE, 0, "KLDivLoss|kl|kl_loss|kl_divergence|kldiv",                       \
	  "Kullback-Leibler divergence of the target probabilities from the model's, for a model that ends in log_softmax (a sum over "        \
	  "the classes and a mean over the samples, PyTorch's batchmean)")

/* The numeric keys of the losses: X(name, i, key, default, minimum, maximum, flags, help). The key train.<key>, a float, is parameter i of
 * the loss; `flags` is of enum gt_row_flag (engine/conf/schema.h). */
#define GT_LOSS_KEYS(X)                                                                                                                    \
	X(cross_entropy, 0, "label_smoothing", "0.0", 0, 1, 0, "part of the target probability that is spread over all classes")               \
	X(smooth_l1, 0, "smooth_l1_beta", "1.0", 0, INFINITY, 0, "difference above which the loss is linear; below, it is quadratic")          \
	X(huber, 0, "huber_delta", "1.0", 0, INFINITY, GT_R_ABOVE, "difference above which the loss is linear; below, it is quadratic")        \
	X(focal, 0, "focal_alpha", "0.25", -1, 1, 0,                                                                                           \
	  "weight of targets that are 1; other targets have the weight 1 - focal_alpha; < 0: no weights")                                      \
	X(focal, 1, "focal_gamma", "2.0", 0, INFINITY, 0, "a larger value gives less weight to outputs that are already correct; 0: bce")

#define GT_LOSS_NUMBERS 2 /* maximum number of parameters of a loss */

/* The row of a loss in GT_OPCODES (opcall.h). */
#define GT_LOSS_OPCODES(X, CODE, name, kind, output, target, ...)                                                                          \
	X(GT_OP_##CODE, #name, loss, loss, "x(N,K) target:" GT_LOSS_TARGET_##target " [scale:f64()] -> metrics:any [dx(N,K)]")
#define GT_LOSS_TARGET_ANY "any(N,..)"
#define GT_LOSS_TARGET_LABEL "i32(N)"

/* The arguments for a loss's weight and parameters: the variables w, n0 and n1 of the calling loop or kernel. */
#define GT_LOSS_ARGS_NONE
#define GT_LOSS_ARGS_BY_CLASS
#define GT_LOSS_ARGS_BY_OUTPUT , w
#define GT_LOSS_ARGS_0
#define GT_LOSS_ARGS_1 , n0
#define GT_LOSS_ARGS_2 , n0, n1
#define GT_LOSS_ARGS(weight, numbers) GT_LOSS_ARGS_##weight GT_LOSS_ARGS_##numbers

/* GT_LOSS_POINTWISE(X): X(CODE, name, is_sum, arguments) for each loss of kind MEAN or SUM. `arguments`: the result of GT_LOSS_ARGS. */
#define GT_LOSS_POINTWISE(X) GT_LOSSES(GT_LOSS_POINTWISE_OF, X)
#define GT_LOSS_POINTWISE_OF(X, CODE, name, kind, output, target, weight, numbers, ...)                                                    \
	GT_LOSS_POINTWISE_##kind(X, CODE, name, GT_LOSS_ARGS(weight, numbers))
#define GT_LOSS_POINTWISE_ROWS(X, CODE, name, ...)
#define GT_LOSS_POINTWISE_SUM(X, CODE, name, ...) X(CODE, name, true, __VA_ARGS__)
#define GT_LOSS_POINTWISE_MEAN(X, CODE, name, ...) X(CODE, name, false, __VA_ARGS__)

#endif
