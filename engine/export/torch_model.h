/* Writes model.py: a PyTorch module with the layers of a graph. It imports only torch.
 *
 *     char *text;
 *     GT_TRY(gt_torch_model(source, &text, err));
 *     free(text);
 *
 * Each layer of the config becomes one line of forward() and, if torch.nn has a module for it, a line of __init__():
 *
 *     self.add("conv1", nn.Conv2d(3, 16, 3, padding=1))          x4 = self["conv1"](x3)
 * */
#ifndef GT_EXPORT_TORCH_MODEL_H
#define GT_EXPORT_TORCH_MODEL_H

#include "export/export_source.h"
#include <stdio.h>

/* Writes the text to *out, which the caller frees. GT_EFAIL: a layer has no equivalent; the message names the layer. */
enum gt_code gt_torch_model(const struct gt_export_source *s, char **out, struct gt_err *err);

/* ---- for the functions that translate layers (torch_layers.c, torch_sequence.c) ------------------------------------------------ */
/* Functions of model.py that some layers need; torch_text.c has their source text. */
enum gt_torch_helper {
	GT_TORCH_DROP_PATH,
	GT_TORCH_BAG,
	GT_TORCH_SINUSOIDS,
	GT_TORCH_POOL,
	GT_TORCH_ATTEND,
	GT_TORCH_RECUR,
	GT_TORCH_HELPERS
};
extern const char gt_torch_head[], gt_torch_class[], gt_torch_load[];
extern const char *const gt_torch_helper_text[GT_TORCH_HELPERS];

/* A layer to translate. */
struct gt_torch_layer {
	FILE *init, *forward;        /* the lines of __init__ and of forward */
	bool *helper;                /* [GT_TORCH_HELPERS]: helpers that model.py needs */
	const struct gt_graph *g;
	const struct gt_layer_spec *spec;
	int index;                   /* index of the layer; its nodes have the same index */
	const struct gt_node *node;  /* the node of the layer's operation; for a composite layer, its first node */
	const void *attr;            /* the attributes of this node; for a composite layer, the attributes of the layer */
	char x[GT_MAX_LAYER_IN][16]; /* variables of the inputs */
	char y[16];                  /* variable of the output */
	const struct gt_tdesc *dx[GT_MAX_LAYER_IN], *dy;
	int nin;
};

/* Adds a module, and calls it with the first input. fmt: the constructor of the module. */
void gt_torch_module(const struct gt_torch_layer *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds a module without a call; gt_torch_line adds the call. */
void gt_torch_register(const struct gt_torch_layer *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds a line of forward() that assigns an expression to the output. */
void gt_torch_line(const struct gt_torch_layer *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes a double with the fewest digits that give the same double when read, and returns buf. */
const char *gt_torch_number(char buf[32], double v);
/* Returns the next node of the layer with this operation after `after` (NULL: the first node); NULL: none. */
const struct gt_node *gt_torch_node(const struct gt_torch_layer *l, enum gt_opcode code, const struct gt_node *after);

typedef void gt_torch_fn(const struct gt_torch_layer *l);

/* X(layer type, function): the layer types that have an equivalent. A layer of another type is an error that names it. */
#define GT_TORCH_LAYERS(X)                    \
	X(linear, linear)                         \
	X(conv2d, conv2d)                         \
	X(maxpool2d, maxpool)                     \
	X(avgpool2d, avgpool)                     \
	X(adaptive_avgpool2d, adaptive_avgpool)   \
	X(adaptive_maxpool2d, adaptive_maxpool)   \
	X(global_avgpool, adaptive_avgpool)       \
	X(batchnorm1d, batchnorm)                 \
	X(batchnorm2d, batchnorm)                 \
	X(layernorm, layernorm)                   \
	X(groupnorm, groupnorm)                   \
	X(relu, relu)                             \
	X(leaky_relu, leaky_relu)                 \
	X(sigmoid, sigmoid)                       \
	X(tanh, tanh)                             \
	X(gelu, gelu)                             \
	X(silu, silu)                             \
	X(mish, mish)                             \
	X(elu, elu)                               \
	X(relu6, relu6)                           \
	X(hardsigmoid, hardsigmoid)               \
	X(hardswish, hardswish)                   \
	X(softplus, softplus)                     \
	X(selu, selu)                             \
	X(prelu, prelu)                           \
	X(softmax, softmax)                       \
	X(log_softmax, log_softmax)               \
	X(dropout, dropout)                       \
	X(dropout2d, dropout2d)                   \
	X(drop_path, drop_path)                   \
	X(scale, scale)                           \
	X(flatten, flatten)                       \
	X(add, add)                               \
	X(mul, mul)                               \
	X(concat, concat)                         \
	X(identity, identity)                     \
	X(shortcut, shortcut)                     \
	X(permute, permute)                       \
	X(select, select)                         \
	X(reshape, reshape)                       \
	X(embedding, embedding)                   \
	X(embeddings, embeddings)                 \
	X(embedding_bag, embedding_bag)           \
	X(positional, positional)                 \
	X(class_token, class_token)               \
	X(layer_scale, layer_scale)               \
	X(pool_tokens, pool_tokens)               \
	X(attention, attention)                   \
	X(lstm, recurrent)                        \
	X(gru, recurrent)

#define GT_X(type, name) gt_torch_fn gt_torch_##name;
GT_TORCH_LAYERS(GT_X)
#undef GT_X

#endif
