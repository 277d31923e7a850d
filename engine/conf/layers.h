/* Converts model.layers and model.blocks into a list of layers.
 *
 *   blocks = { basic = { params = ["ch", "stride"]; defaults = { stride = 1; };
 *                        layers = ( { name = "conv1"; type = "conv2d"; out = "$ch"; stride = "$stride"; … }, … ); }; };
 *   layers = ( …, { block = "basic"; name = "layer1"; repeat = 2; ch = 64; first = { stride = 2; }; }, … );
 *
 * An instance is replaced by the layers of its template, named "layer1.0.conv1", "layer1.1.conv1" (without repeat: "layer1.conv1"). "$ch"
 * is replaced by the parameter of the instance; `first` overrides parameters in the first repetition. `in` names a layer of the same
 * instance, otherwise of an enclosing block, otherwise of the model; "$in" is the input of the block, "input" the input of the model. The
 * name of an instance refers to its last layer. The keys frozen, init, lr_mul and weight_decay of an instance are the defaults of its
 * layers.
 * */
#ifndef GT_CONF_LAYERS_H
#define GT_CONF_LAYERS_H

#include "conf/schema.h"
#include "ir/op.h"

#define GT_CONF_MAX_LAYERS 10000
#define GT_CONF_MAX_NAME 200
#define GT_CONF_MAX_BLOCK_DEPTH 16 /* maximum depth of nested blocks */

/* An instance of a block that is being replaced by the layers of its template. */
struct gt_scope {
	const struct gt_scope *parent; /* the instance around this one; NULL: model.layers */
	const struct gt_cnode *tmpl;   /* the template: an entry of model.blocks */
	const struct gt_cnode *inst;   /* the instance: an entry of a list of layers */
	const struct gt_cnode *first;  /* in the first repetition: the value of the instance's key `first`; NULL in others */
	const char *prefix;            /* prefix of the names of its layers, such as "layer1.0." */
	const char *input;             /* name of the layer whose output is the input of the block, or "input" */
};

struct gt_layer_name {
	const char *name, *layer; /* layer: the layer to which the name refers: layer `name`, or the last layer of instance `name` */
};

struct gt_expand {
	struct gt_reading *rd;
	const struct gt_cnode *blocks; /* model.blocks; NULL: the config has none */
	struct gt_layer_spec *spec;
	int n, cap;
	struct gt_layer_name *slot; /* hash table of names with open addressing, at most half full */
	uint32_t mask, nnames;
	const char *last; /* name of the layer that was added last; "input" before the first layer */
};

/* layer_names.c */
bool gt_layer_name_fits(const char *name); /* returns whether name matches [A-Za-z0-9_.-]+ */
/* Declares name as a name of layer. Fails if the name exists already. */
enum gt_code gt_layer_declare(struct gt_expand *x, const char *name, const char *layer, struct gt_source_loc at, const char *path,
                              struct gt_err *err);
bool gt_layer_declared(const struct gt_expand *x, const char *name);
/* Sets *out to the layer to which the key `in = name` refers in a scope. */
enum gt_code gt_layer_resolve(struct gt_expand *x, const struct gt_scope *s, const char *name, struct gt_source_loc at, const char *path,
                              const char **out, struct gt_err *err);

/* templates.c */
/* Checks the keys of all templates, and that their parameters are declared and used. It also checks templates that no layer uses. */
enum gt_code gt_blocks_check(const struct gt_expand *x, struct gt_err *err);
/* Checks that each key of an instance is a key that instances may have or a parameter of the template. If `first` is true, inst is the
 * value of the instance's key `first`. */
enum gt_code gt_block_check_keys(const struct gt_cnode *inst, const struct gt_cnode *tmpl, const char *at, bool first, struct gt_err *err);
/* Sets *out to the value of n in which each "$ch", also in elements of an array, is replaced by the parameter of the scope or of a scope
 * around it. path: name of the key in messages. */
enum gt_code gt_scope_value(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *n, const char *path,
                            const struct gt_cnode **out, struct gt_err *err);

/* layers.c */
/* Sets *out to the full name of an entry: the prefix of the scope, and the entry's key `name` or, without this key, its index. */
enum gt_code gt_layer_fullname(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *entry, const char *path, int index,
                               const char **out, struct gt_err *err);
/* Reads an entry of a list of layers that has the key `type`, and appends the layer. proto: defaults of the keys that every layer has. */
enum gt_code gt_layer_add(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *entry, const char *at, int index,
                          const struct gt_layer_spec *proto, struct gt_err *err);
/* Declares the name of an entry that has an error, so that later layers may refer to it without causing further errors. */
enum gt_code gt_layer_hold_name(struct gt_expand *x, const struct gt_scope *s, const struct gt_cnode *entry, const char *at, int index,
                                struct gt_err *err);

#endif
