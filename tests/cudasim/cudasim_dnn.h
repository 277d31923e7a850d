/* Between cudasim_dnn.cc (descriptors, engines), cudasim_conv.cc (an operation graph, checked and run on the host) and cudasim_attention.cc
 * (the operations of attention, and which of its graphs there are engines for). */
#ifndef CUDASIM_DNN_H
#define CUDASIM_DNN_H

#include "cudnn_graph.h"
#include <cstdint>
#include <map>
#include <string>
#include <vector>

struct dnn_value {
	int type;
	int64_t n;
	std::vector<unsigned char> bytes;
	template <class T> const T *as() const
	{
		return (const T *)bytes.data();
	}
};

struct dnn_desc {
	int kind;
	bool final;
	std::map<int, dnn_value> a;
	template <class T> T get(int name) const
	{
		return *a.at(name).as<T>();
	}
	bool has(int name) const
	{
		return a.count(name) != 0;
	}
	const dnn_desc *ref(int name) const
	{
		return get<const dnn_desc *>(name);
	}
};

struct dnn_tensor {
	int64_t uid, dim[4], stride[4], align;
	int type;
	bool is_virtual, by_value;
};

struct dnn_op {
	int kind;           /* descriptor type of the operation */
	int mode;           /* of a pointwise one */
	bool keeps_nan;     /* of a relu: NaN stays, else it becomes 0 */
	dnn_tensor x, w, y; /* pointwise: x, b in w, y; gradients: dx, dw, dy */
	bool has_w;
	int64_t pre[2], stride[2], dilation[2];
	float alpha, beta;
	/* attention: x times w is y; t: condition of a selection; limit: lengths for the rows and columns of y, and for the sum */
	dnn_tensor t, limit[3];
	bool has_t, has_limit[3];
	int64_t axis;
};
std::vector<const dnn_tensor *> dnn_tensors(const dnn_op &op);
const dnn_tensor &dnn_output(const dnn_op &op);

/* What an engine does to a graph, beside computing it. */
enum dnn_rounding { DNN_EXACT, DNN_TF32, DNN_BF16, DNN_NOISE, DNN_WINOGRAD };

struct dnn_program {
	std::vector<dnn_op> ops;
	dnn_rounding rounding;
	int64_t engine, tile;
	int64_t workspace;
	double us;
};

/* One operation, and those of a graph, or why the library would not take it. */
cudnnStatus_t dnn_op_of(const dnn_desc *d, dnn_op *op, std::string *why);
cudnnStatus_t dnn_walk(const std::vector<const dnn_desc *> &ops, std::vector<dnn_op> *out, std::string *why);
/* Is there a precompiled engine for it? (kernels/cuda/cudnn_conv.h has the rules, asked of the real library.) */
bool dnn_precompiled(const std::vector<dnn_op> &ops);
/* memory: uid to pointer. */
void dnn_run(const dnn_program &p, const std::map<int64_t, void *> &memory);
dnn_tensor dnn_tensor_of(const dnn_desc *d);
size_t dnn_size_of(int type);
/* Operations other than convolutions and bias or relu after them: what dnn_op_of and dnn_run do with one, and whether a graph is one of the
 * graphs of attention. */
bool dnn_is_attention_op(const dnn_desc *d);
cudnnStatus_t dnn_attention_op(const dnn_desc *d, dnn_op *op, std::string *why);
void dnn_run_attention_op(const dnn_op &op, const std::map<int64_t, void *> &memory);
bool dnn_is_attention(const std::vector<dnn_op> &ops);
/* Can an engine be compiled for it? */
bool dnn_compiles(const std::vector<dnn_op> &ops);
int64_t dnn_extent(const dnn_tensor &t); /* bytes from its first to behind its last element */

#endif
