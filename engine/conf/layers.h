/* model.layers and model.blocks into layer specs.
 *
 *   blocks = { basic = { params = ["ch", "stride"]; defaults = { stride = 1; };
 *                        layers = ( { name = "conv1"; type = "conv2d"; out = "$ch"; stride = "$stride"; … }, … ); }; };
 *   layers = ( …, { block = "basic"; name = "layer1"; repeat = 2; ch = 64; first = { stride = 2; }; }, … );
 *
 * An instance puts the layers of its template in its place, named "layer1.0.conv1", "layer1.1.conv1" (without repeat: "layer1.conv1").
 * "$ch" as a value is replaced by the instance's; `first` differs for the first repeat. `in` names a layer of the same instance,
 * else of the blocks around it, else of the model; "$in" is the block's input, "input" the model's. The name of an instance stands
 * for its last layer. An instance's own frozen, init, lr_mul and weight_decay are the defaults of its layers. */
#ifndef GT_CONF_LAYERS_H
#define GT_CONF_LAYERS_H

#include "conf/schema.h"
#include "ir/op.h"

#define GT_CONF_MAX_LAYERS 10000
#define GT_CONF_MAX_NAME 200
#define GT_CONF_MAX_BLOCK_DEPTH 16 /* blocks within blocks */

/* An instance being expanded. */
struct gt_scope {
	const struct gt_scope *parent; /* NULL: of model.layers */
	const struct gt_cnode *tmpl;   /* entry of model.blocks */
	const struct gt_cnode *inst;   /* entry of a list of layers */
	const struct gt_cnode *first;  /* its `first` in the first repeat, else NULL */
	const char *prefix;            /* "layer1.0." */
	const char *input;             /* name of the layer that is the block's input, "input" */
};

struct gt_layer_name {
	const char *name, *layer; /* what it stands for: itself, or the last layer of an instance */
};

struct gt_expand {
	struct gt_reading *rd;
	const struct gt_cnode *blocks; /* NULL: none */
	struct gt_layer_spec *spec;
	int n, cap;
	struct gt_layer_name *slot; /* open addressing, at most half full */
	uint32_t mask, nnames;
	const char *last; /* name of the layer before, "input" at the start */
};

/* layer_names.c */
bool gt_layer_name_fits(const char *name); /* [A-Za-z0-9_.-]+ */
/* Makes name stand for layer; fails where it is taken. */
enum gt_code gt_layer_declare(struct gt_expand *x, const char *name, const char *layer, struct gt_source_loc at, const char *path,
                              struct gt_err *err);
bool gt_layer_declared(const struct gt_expand *x, const char *name);
/* The layer that `in = name` means in a scope. */
enum gt_code gt_layer_resolve(struct gt_expand *x, const struct gt_scope *s, const char *name, struct gt_source_loc at, const char *path,
                              const char **out, struct gt_err *err);

/* templates.c */
/* The templates, instantiated or not: their keys, parameters declared and used. */
enum gt_code gt_blocks_check(const struct gt_expand *x, struct gt_err *err);
/* The keys of an instance (first: of its `first`) are its own or parameters of the template. */
enum gt_code gt_block_check_keys(const struct gt_cnode *inst, const struct gt_cnode *tmpl, const char *at, bool first, struct gt_err *err);
/* What n stands for: "$ch" is looked up, through the scopes around, in an array element by element. path is for messages. */
enum gt_code gt_scope_value(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *n, const char *path,
                            const struct gt_cnode **out, struct gt_err *err);

/* layers.c */
/* The whole name of an entry: the scope's prefix and its `name`, or its index. */
enum gt_code gt_layer_fullname(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *entry, const char *path, int index,
                               const char **out, struct gt_err *err);
/* Reads an entry of a list of layers that has `type`, and appends the layer. */
enum gt_code gt_layer_add(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *entry, const char *at, int index,
                          const struct gt_layer_spec *proto, struct gt_err *err);
/* Declares the name of an entry that has an error, because later layers may name it all the same. */
enum gt_code gt_layer_hold_name(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *entry, const char *at, int index,
                                struct gt_err *err);

#endif
