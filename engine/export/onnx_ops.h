/* Translates the operations of a graph to nodes of ONNX: one function for each operation, in the file of its family (onnx_<family>.c). */
#ifndef GT_EXPORT_ONNX_OPS_H
#define GT_EXPORT_ONNX_OPS_H

#include "export/onnx_model.h"

/* A node of the graph to translate. */
struct gt_onnx_op {
	struct gt_onnx *m;
	const struct gt_graph *g;
	const struct gt_node *n;
	const void *attr;           /* n->attr, the attribute struct of the operation */
	const char *const *value;   /* [values of the graph]: names of the activations that were added so far */
	const char *x, *x2;         /* names of the first two inputs, if these are activations */
	const struct gt_tdesc *dx, *dy; /* descriptions of the first input and of the first output */
};

/* Returns the name of the parameter that is operand `name` or, if the operand is absent, of a constant: `n` times `otherwise`. */
const char *gt_onnx_operand(const struct gt_onnx_op *op, const char *name, int64_t n, float otherwise);
/* Returns the index of the parameter that is operand `name`; -1: the operand is absent. */
int gt_onnx_operand_param(const struct gt_onnx_op *op, const char *name);

/* Adds the nodes of one operation and returns the name of its first output. */
typedef const char *gt_onnx_fn(const struct gt_onnx_op *op);

/* X(opcode, function): the operations that have an equivalent. An operation without a row is an error that names it. Several rows may share
 * a function. */
#define GT_ONNX_OPS(X)                      \
	X(LINEAR, linear)                       \
	X(CONV2D, conv)                         \
	X(MAXPOOL2D, maxpool)                   \
	X(AVGPOOL2D, avgpool)                   \
	X(ADAPTIVE_AVGPOOL2D, adaptive_avgpool) \
	X(ADAPTIVE_MAXPOOL2D, adaptive_maxpool) \
	X(BATCHNORM, batchnorm)                 \
	X(LAYERNORM, layernorm)                 \
	X(GROUPNORM, groupnorm)                 \
	X(RELU, relu)                           \
	X(LEAKY_RELU, leaky_relu)               \
	X(SIGMOID, sigmoid)                     \
	X(TANH, tanh)                           \
	X(GELU, gelu)                           \
	X(SILU, silu)                           \
	X(MISH, mish)                           \
	X(ELU, elu)                             \
	X(RELU6, relu6)                         \
	X(HARDSIGMOID, hardsigmoid)             \
	X(HARDSWISH, hardswish)                 \
	X(SOFTPLUS, softplus)                   \
	X(SELU, selu)                           \
	X(PRELU, prelu)                         \
	X(SOFTMAX, softmax)                     \
	X(LOG_SOFTMAX, log_softmax)             \
	X(DROPOUT, same)                        \
	X(IDENTITY, same)                       \
	X(SCALE, scale)                         \
	X(FLATTEN, reshape)                     \
	X(FLATTEN_DX, reshape)                  \
	X(VIEW, reshape)                        \
	X(ADD, add)                             \
	X(MUL, mul)                             \
	X(ADD_CHANNELS, add_channels)           \
	X(MUL_CHANNELS, mul_channels)           \
	X(CONCAT, concat)                       \
	X(PERMUTE, permute)                     \
	X(SELECT, select)                       \
	X(EMBEDDING, embedding)                 \
	X(EMBEDDING_BAG, embedding_bag)         \
	X(POSITIONAL, positional)               \
	X(POOL_TOKENS, pool_tokens)             \
	X(ATTENTION, attention)                 \
	X(LSTM_STEPS, lstm)                     \
	X(GRU_STEPS, gru)

#define GT_X(code, name) gt_onnx_fn gt_onnx_op_##name;
GT_ONNX_OPS(GT_X)
#undef GT_X

/* Adds all nodes of the source's graph. input: names of the graph's inputs. Sets the name of the output. GT_EFAIL: a layer has no
 * equivalent; the message names the layer. */
enum gt_code gt_onnx_graph(struct gt_onnx *m, const char *const *input, const char **output, struct gt_err *err);

#endif
