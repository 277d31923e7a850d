/* Builds an ONNX model (onnx.proto of github.com/onnx/onnx) in memory, and writes it to a file.
 *
 *     struct gt_onnx m = {.arena = arena, .source = source, .layer = "fc1"};
 *     gt_onnx_input(&m, "input", GT_ONNX_FLOAT, &desc);
 *     const char *y = GT_ONNX(&m, "Gemm", GT_IN("input", gt_onnx_param(&m, w), gt_onnx_param(&m, b)), GT_ONNX_INT("transB", 1));
 *     gt_onnx_output(&m, y, "output", &desc);
 *     gt_onnx_write(&m, "model.onnx", err);
 *     gt_onnx_free(&m);
 *
 *     ModelProto --+-- GraphProto --+-- nodes           NodeProto: operator, names of inputs and outputs, attributes
 *                  |                +-- initializers    TensorProto: constants, and parameters, which are read when the file is written
 *                  |                +-- inputs, outputs
 *                  +-- operator set, metadata
 *
 * The functions that add something return no error: an error (out of memory, a parameter that cannot be read) is stored in the struct, and
 * gt_onnx_write returns it. Names are in the arena. */
#ifndef GT_EXPORT_ONNX_MODEL_H
#define GT_EXPORT_ONNX_MODEL_H

#include "export/export_source.h"
#include "export/protobuf.h"

#define GT_ONNX_OPSET 17
#define GT_ONNX_IR 8 /* version of the file format; opset 17 needs at least 8 */

/* TensorProto.DataType */
enum gt_onnx_type { GT_ONNX_FLOAT = 1, GT_ONNX_UINT8 = 2, GT_ONNX_INT32 = 6, GT_ONNX_INT64 = 7, GT_ONNX_BOOL = 9 };

/* An attribute of an operator; name NULL ends a list. */
struct gt_onnx_attr {
	const char *name;
	char kind; /* i: integer; f: float; s: string; I: n integers */
	int n;
	int64_t integer;
	double number;
	const char *word;
	const int64_t *integers;
};
#define GT_ONNX_INT(key, value) {.name = (key), .kind = 'i', .integer = (value)}
#define GT_ONNX_NUMBER(key, value) {.name = (key), .kind = 'f', .number = (value)}
#define GT_ONNX_WORD(key, value) {.name = (key), .kind = 's', .word = (value)}
#define GT_ONNX_INTS(key, ...)                                                                                                             \
	{.name = (key), .kind = 'I', .n = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .integers = (int64_t[]){__VA_ARGS__}}
#define GT_ONNX_SHAPE(key, count, values) {.name = (key), .kind = 'I', .n = (count), .integers = (values)}

/* An initializer: its values are at `data`, or in a parameter. */
struct gt_onnx_tensor {
	const char *name;
	enum gt_onnx_type type;
	int rank;
	int64_t dim[GT_MAX_RANK];
	uint64_t bytes;
	const void *data; /* values of the constant; NULL: the initializer is parameter `param` of the source */
	int param;
};

struct gt_onnx {
	struct gt_arena *arena;
	const struct gt_export_source *source;
	const char *layer;                         /* layer whose nodes are added: their names begin with the name of the layer */
	struct gt_pb nodes, inputs, outputs, meta; /* encoded fields of GraphProto and, for meta, of ModelProto */
	struct gt_onnx_tensor *tensor;
	int ntensors, cap;
	const char **param;                        /* [parameters of the graph]: names in the model; NULL: not used yet */
	int serial;                                /* number of names made so far */
	enum gt_code code;                         /* the first failure */
	struct gt_err err;
};

/* Adds a node with one output and returns the output's name. in: names of the inputs, NULL-terminated; "": absent optional input. */
const char *gt_onnx_node(struct gt_onnx *m, const char *type, const char *const *in, const struct gt_onnx_attr *attr);
#define GT_IN(...) ((const char *const[]){__VA_ARGS__, NULL})
#define GT_ONNX(m, type, in, ...) gt_onnx_node((m), (type), (in), (const struct gt_onnx_attr[]){__VA_ARGS__ __VA_OPT__(,) {NULL}})

/* Adds a constant and returns its name. Values are copied. rank 0: a scalar. */
const char *gt_onnx_floats(struct gt_onnx *m, int rank, const int64_t *dim, const float *v);
const char *gt_onnx_ints(struct gt_onnx *m, int n, const int64_t *v); /* a list */
const char *gt_onnx_float(struct gt_onnx *m, double v);               /* a scalar */
const char *gt_onnx_int(struct gt_onnx *m, int64_t v);                /* a scalar */
/* The same without a copy: v must be in the arena. */
const char *gt_onnx_own_floats(struct gt_onnx *m, int rank, const int64_t *dim, const float *v);
/* Returns the name of a parameter; the first call adds the parameter. */
const char *gt_onnx_param(struct gt_onnx *m, int param);
/* Reads a parameter into the arena, so that the caller can rearrange its values; NULL: failure. */
float *gt_onnx_param_values(struct gt_onnx *m, int param);
/* Returns zeroed memory for n floats in the arena; NULL: failure. */
float *gt_onnx_room(struct gt_onnx *m, int64_t n);
/* Returns an array for n names and a final NULL, in the arena; NULL: failure. */
const char **gt_onnx_names(struct gt_onnx *m, int64_t n);

/* Functions that add nodes which several families of operations need. They return the name of the output. */
const char *gt_onnx_reshape(struct gt_onnx *m, const char *x, int rank, const int64_t *dim); /* the first dimension is symbolic */
const char *gt_onnx_cast(struct gt_onnx *m, const char *x, enum gt_onnx_type type);

/* Declare an input, or an output of the graph (value x gets the name `name`). d: the shape; its first dimension is symbolic. */
void gt_onnx_input(struct gt_onnx *m, const char *name, enum gt_onnx_type type, const struct gt_tdesc *d);
void gt_onnx_output(struct gt_onnx *m, const char *x, const char *name, const struct gt_tdesc *d);
void gt_onnx_metadata(struct gt_onnx *m, const char *key, const char *value);

/* Writes the file atomically. GT_EFAIL: it would be larger than 2 GiB, the limit of Protocol Buffers. */
enum gt_code gt_onnx_write(struct gt_onnx *m, const char *path, struct gt_err *err);
void gt_onnx_free(struct gt_onnx *m);

#endif
