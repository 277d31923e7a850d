/* The operation graphs of attention. Tensors are [samples, heads, tokens, features]; scores are [samples, heads, queries, keys]. The order
 * of the operations is that of cudnn-frontend, by which cuDNN recognizes the graph. */
#include "cuda/cudnn_attention.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define F32 CUDNN_DATA_FLOAT
#define I32 CUDNN_DATA_INT32
#define BOOL CUDNN_DATA_BOOLEAN
#define OPS 40       /* maximum number of operations of a graph */
#define OLDEST 91600 /* before it, cudnn-frontend has workarounds for errors in these graphs */

typedef cudnnBackendDescriptor_t desc;

struct builder {
	struct gt_dnn_plan *p;
	const struct gt_dnn_attention *a;
	desc op[OPS];
	int n;
	cudnnDataType_t type;     /* of qkv */
	int64_t score[4], row[4]; /* shapes of the scores, and of a number for each query */
	int64_t score_step[4], row_step[4];
	desc lengths_q, lengths_kv; /* NULL: all samples have all tokens */
};

/* ---- operations ------------------------------------------------------------------------------------------------------------------- */
static void add_op(struct builder *b, desc op)
{
	if (b->n < OPS)
		b->op[b->n++] = op;
}

static desc score_register(struct builder *b, cudnnDataType_t type)
{
	return gt_dnn_register(b->p, type, b->score, b->score_step);
}

static desc row_register(struct builder *b)
{
	return gt_dnn_register(b->p, F32, b->row, b->row_step);
}

/* Adds y = mode(x, o) and returns y; o may be NULL. */
static desc point_to(struct builder *b, cudnnPointwiseMode_t mode, cudnnDataType_t math, desc x, desc o, desc y)
{
	add_op(b, gt_dnn_pointwise(b->p, &(struct gt_dnn_pointwise){.mode = mode, .math = math, .x = x, .b = o, .y = y}));
	return y;
}

static desc point_score(struct builder *b, cudnnPointwiseMode_t mode, desc x, desc o)
{
	return point_to(b, mode, F32, x, o, score_register(b, F32));
}

/* The index of each score along an axis: 2 for its query, 3 for its key. */
static desc index_of(struct builder *b, desc x, int64_t axis, cudnnDataType_t math)
{
	struct gt_dnn_pointwise o = {.mode = CUDNN_POINTWISE_GEN_INDEX, .math = math, .axis = axis, .x = x, .y = score_register(b, I32)};
	add_op(b, gt_dnn_pointwise(b->p, &o));
	return o.y;
}

/* Replaces the scores whose mask is false by minus infinity. */
static desc mask_scores(struct builder *b, desc x, desc minus_infinity, desc mask)
{
	struct gt_dnn_pointwise o = {
	    .mode = CUDNN_POINTWISE_BINARY_SELECT, .math = F32, .x = x, .b = minus_infinity, .t = mask, .y = score_register(b, F32)};
	add_op(b, gt_dnn_pointwise(b->p, &o));
	return o.y;
}

static desc mask_lengths(struct builder *b, desc x, desc minus_infinity)
{
	desc query = index_of(b, x, 2, I32), key = index_of(b, x, 3, I32), in_q, in_kv;
	in_q = point_to(b, CUDNN_POINTWISE_CMP_LT, BOOL, query, b->lengths_q, score_register(b, BOOL));
	in_kv = point_to(b, CUDNN_POINTWISE_CMP_LT, BOOL, key, b->lengths_kv, score_register(b, BOOL));
	return mask_scores(b, x, minus_infinity, point_to(b, CUDNN_POINTWISE_LOGICAL_AND, BOOL, in_q, in_kv, score_register(b, BOOL)));
}

static desc mask_later(struct builder *b, desc x, desc minus_infinity)
{
	desc query = index_of(b, x, 2, F32), key = index_of(b, x, 3, F32);
	return mask_scores(b, x, minus_infinity, point_to(b, CUDNN_POINTWISE_CMP_GE, BOOL, query, key, score_register(b, BOOL)));
}

/* The dimensions of a product that the samples' lengths limit: those of the result, or the summed one. */
enum { LIMIT_M = 1, LIMIT_N = 2, LIMIT_K = 4, KEYS_FIRST = 8 };

static desc add_product(struct builder *b, desc x, desc w, desc y, int limits)
{
	struct gt_dnn_set *s = &b->p->set;
	cudnnDataType_t sums = F32;
	desc d = gt_dnn_new(s, CUDNN_BACKEND_MATMUL_DESCRIPTOR, "matmul"), op;
	desc m = limits & KEYS_FIRST ? b->lengths_kv : b->lengths_q, k = limits & KEYS_FIRST ? b->lengths_q : b->lengths_kv;
	gt_dnn_put(s, d, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
	gt_dnn_finalize(s, d, "matmul");
	op = gt_dnn_new(s, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "matmul");
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, x);
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, w);
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, y);
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_MATMUL_DESC, d);
	if (m && limits & LIMIT_M)
		gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_M_OVERRIDE_DESC, m);
	if (k && limits & LIMIT_N)
		gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_N_OVERRIDE_DESC, k);
	if (k && limits & LIMIT_K)
		gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_MATMUL_GEMM_K_OVERRIDE_DESC, k);
	gt_dnn_finalize(s, op, "matmul");
	add_op(b, op);
	return y;
}

/* Reduces the last dimension of x. */
static desc reduce_rows(struct builder *b, cudnnReduceTensorOp_t how, desc x)
{
	struct gt_dnn_set *s = &b->p->set;
	cudnnDataType_t sums = F32;
	desc d = gt_dnn_new(s, CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "reduction"), op, y = row_register(b);
	gt_dnn_put(s, d, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
	gt_dnn_put(s, d, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &how);
	gt_dnn_finalize(s, d, "reduction");
	op = gt_dnn_new(s, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "reduction");
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_REDUCTION_DESC, d);
	gt_dnn_finalize(s, op, "reduction");
	add_op(b, op);
	return y;
}

/* Exchanges the last two dimensions of x, whose shape and strides are dim and step. */
static desc swap_last(struct builder *b, desc x, const int64_t dim[4], const int64_t step[4])
{
	struct gt_dnn_set *s = &b->p->set;
	int64_t d[4] = {dim[0], dim[1], dim[3], dim[2]}, t[4] = {step[0], step[1], step[3], step[2]};
	desc op, y = gt_dnn_register(b->p, b->type, d, t);
	op = gt_dnn_new(s, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "reshape");
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
	gt_dnn_put_desc(s, op, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
	gt_dnn_finalize(s, op, "reshape");
	add_op(b, op);
	return y;
}

/* ---- tensors ---------------------------------------------------------------------------------------------------------------------- */
/* The features of all heads of a token follow each other; `parts` is 3 in qkv, 1 in y. If turned is true, the last two dimensions are
 * features and tokens. */
static desc feature_tensor(struct builder *b, int64_t uid, int parts, bool turned)
{
	const struct gt_dnn_attention *a = b->a;
	int64_t token = parts * a->heads * a->d, dim[4] = {a->samples, a->heads, a->tokens, a->d},
	        step[4] = {a->tokens * token, a->d, token, 1};
	int64_t dim_t[4] = {dim[0], dim[1], dim[3], dim[2]}, step_t[4] = {step[0], step[1], step[3], step[2]};
	return gt_dnn_tensor(b->p, uid, b->type, turned ? dim_t : dim, turned ? step_t : step);
}

static desc row_tensor(struct builder *b, int64_t uid)
{
	return gt_dnn_tensor(b->p, uid, F32, b->row, b->row_step);
}

static desc length_tensor(struct builder *b, int64_t uid)
{
	int64_t dim[4] = {b->a->samples, 1, 1, 1}, step[4] = {1, 1, 1, 1};
	return b->a->lengths ? gt_dnn_tensor(b->p, uid, I32, dim, step) : NULL;
}

/* ---- the passes ------------------------------------------------------------------------------------------------------------------- */
static void build_forward(struct builder *b, desc scale, desc minus_infinity)
{
	desc q = feature_tensor(b, GT_DNN_A_Q, 3, false), k = feature_tensor(b, GT_DNN_A_K, 3, true),
	     v = feature_tensor(b, GT_DNN_A_V, 3, false);
	desc x = add_product(b, q, k, score_register(b, F32), LIMIT_M | LIMIT_N), most, sum, e;
	x = point_score(b, CUDNN_POINTWISE_MUL, x, scale);
	if (b->a->lengths)
		x = mask_lengths(b, x, minus_infinity);
	if (b->a->causal)
		x = mask_later(b, x, minus_infinity);
	most = reduce_rows(b, CUDNN_REDUCE_TENSOR_MAX, x);
	e = point_score(b, CUDNN_POINTWISE_EXP, point_score(b, CUDNN_POINTWISE_SUB, x, most), NULL);
	sum = reduce_rows(b, CUDNN_REDUCE_TENSOR_ADD, e);
	point_to(b, CUDNN_POINTWISE_ADD, F32, most, point_to(b, CUDNN_POINTWISE_LOG, F32, sum, NULL, row_register(b)),
	         row_tensor(b, GT_DNN_A_LSE));
	x = point_to(b, CUDNN_POINTWISE_DIV, F32, e, sum, score_register(b, b->type));
	add_product(b, x, v, feature_tensor(b, GT_DNN_A_Y, 1, false), LIMIT_M | LIMIT_K);
}

static void build_gradient(struct builder *b, desc scale, desc minus_infinity)
{
	const struct gt_dnn_attention *a = b->a;
	int64_t y_dim[4] = {a->samples, a->heads, a->tokens, a->d}, token = a->heads * a->d, y_step[4] = {a->tokens * token, a->d, token, 1};
	int64_t k_dim[4] = {a->samples, a->heads, a->d, a->tokens}, k_step[4] = {a->tokens * 3 * token, a->d, 1, 3 * token};
	int64_t sum_step[4] = {a->heads * a->tokens * a->d, a->tokens * a->d, a->d, 1};
	desc q = feature_tensor(b, GT_DNN_A_Q, 3, false), k = feature_tensor(b, GT_DNN_A_K, 3, true),
	     v = feature_tensor(b, GT_DNN_A_V, 3, true);
	desc y = feature_tensor(b, GT_DNN_A_Y, 1, false), dy = feature_tensor(b, GT_DNN_A_DY, 1, false), lse = row_tensor(b, GT_DNN_A_LSE);
	desc x, e, ds, dq = feature_tensor(b, GT_DNN_A_DQ, 3, false), sums = row_tensor(b, GT_DNN_A_SUMS);
	x = point_to(b, CUDNN_POINTWISE_MUL, F32, dy, y, gt_dnn_register(b->p, F32, y_dim, y_step));
	point_to(b, CUDNN_POINTWISE_MUL, F32, reduce_rows(b, CUDNN_REDUCE_TENSOR_ADD, x), gt_dnn_number(b->p, 1), sums);

	x = add_product(b, q, k, score_register(b, F32), LIMIT_M | LIMIT_N);
	x = point_score(b, CUDNN_POINTWISE_MUL, x, scale);
	if (a->lengths)
		x = mask_lengths(b, x, minus_infinity);
	x = point_score(b, CUDNN_POINTWISE_SUB, x, lse);
	if (a->causal)
		x = mask_later(b, x, minus_infinity);
	e = point_score(b, CUDNN_POINTWISE_EXP, x, NULL);
	add_product(b, swap_last(b, e, b->score, b->score_step), dy, feature_tensor(b, GT_DNN_A_DV, 3, false), LIMIT_M | LIMIT_K | KEYS_FIRST);

	x = add_product(b, dy, v, score_register(b, F32), LIMIT_M | LIMIT_N);
	x = point_score(b, CUDNN_POINTWISE_MUL, point_score(b, CUDNN_POINTWISE_SUB, x, sums), e);
	ds = point_score(b, CUDNN_POINTWISE_MUL, x, scale);
	add_product(b, swap_last(b, ds, b->score, b->score_step), q, feature_tensor(b, GT_DNN_A_DK, 3, false), LIMIT_M | LIMIT_K | KEYS_FIRST);

	k = swap_last(b, k, k_dim, k_step);
	if (a->ordered) {
		add_product(b, ds, k, dq, LIMIT_M | LIMIT_K);
	} else {
		x = add_product(b, ds, k, gt_dnn_tensor(b->p, GT_DNN_A_QUERY_SUMS, F32, y_dim, sum_step), LIMIT_M | LIMIT_K);
		point_to(b, CUDNN_POINTWISE_IDENTITY, F32, x, NULL, dq);
	}
}

static void build_graph(struct gt_dnn_plan *p, const void *shape)
{
	const struct gt_dnn_attention *a = shape;
	int64_t n = a->samples, h = a->heads, t = a->tokens;
	struct builder b = {.p = p,
	                    .a = a,
	                    .type = gt_dnn_type(a->type),
	                    .score = {n, h, t, t},
	                    .row = {n, h, t, 1},
	                    .score_step = {h * t * t, t * t, t, 1},
	                    .row_step = {h * t, t, 1, 1}};
	desc scale = gt_dnn_number(p, (float)(1 / sqrt((double)a->d)));
	desc minus_infinity = a->lengths || a->causal ? gt_dnn_number(p, -INFINITY) : NULL;
	b.lengths_q = length_tensor(&b, GT_DNN_A_LENGTHS_Q), b.lengths_kv = length_tensor(&b, GT_DNN_A_LENGTHS_KV);
	if (a->gradient)
		build_gradient(&b, scale, minus_infinity);
	else
		build_forward(&b, scale, minus_infinity);
	gt_dnn_finish_graph(p, b.op, b.n);
}

/* ---- the call --------------------------------------------------------------------------------------------------------------------- */
const char *gt_dnn_attention_refuses(const struct gt_dnn *dnn, const struct gt_dnn_attention *a)
{
	if (a->d % 8)
		return "tiles (cuDNN needs heads of 8, 16, 24, ... features)";
	return dnn->version < OLDEST ? "tiles (cuDNN 9.16 or newer is needed)" : NULL;
}

void gt_dnn_attention_call(const struct gt_dev *dev, const struct gt_dnn_attention *a, struct gt_dnn_call *out)
{
	size_t rows_bytes = (size_t)(a->samples * a->heads * a->tokens) * sizeof(float), y = rows_bytes / 2 * (size_t)a->d;
	char options[32];
	*out = (struct gt_dnn_call){.build = build_graph, .shape = a, .type = a->type, .first = 1}; /* each is compiled */
	snprintf(out->key, sizeof out->key, "attention %s %s n%lld h%lld t%lld d%lld%s%s%s%s", a->gradient ? "dx" : "fwd",
	         gt_dtype_name(a->type), (long long)a->samples, (long long)a->heads, (long long)a->tokens, (long long)a->d,
	         a->causal ? " causal" : "", a->lengths ? " lengths" : "", a->ordered ? " ordered" : "",
	         gt_dnn_options(dev, a->type, false, options));
	/* the last part of qkv ends with the tensor: a part is as long as the rest of qkv from its first feature on */
	for (int i = GT_DNN_A_Q; i <= GT_DNN_A_V; i++)
		out->bytes[i] = 3 * y;
	out->bytes[GT_DNN_A_Y] = y;
	out->bytes[GT_DNN_A_LSE] = rows_bytes;
	if (a->lengths)
		out->bytes[GT_DNN_A_LENGTHS_Q] = out->bytes[GT_DNN_A_LENGTHS_KV] = (size_t)a->samples * sizeof(int32_t);
	if (!a->gradient)
		return;
	out->bytes[GT_DNN_A_DY] = y;
	for (int i = GT_DNN_A_DQ; i <= GT_DNN_A_DV; i++)
		out->bytes[i] = 3 * y;
	out->bytes[GT_DNN_A_SUMS] = rows_bytes;
	if (!a->ordered)
		out->bytes[GT_DNN_A_QUERY_SUMS] = 2 * y;
}

enum gt_code gt_dnn_attention_open(struct gt_dev *dev, const struct gt_dnn_attention *a, struct gt_dnn_shared **out, struct gt_err *err)
{
	struct gt_dnn_call call;
	struct gt_dnn_shared *s = dev->dnn ? dev->dnn->shared : NULL;
	gt_dnn_attention_call(dev, a, &call);
	while (s && strcmp(s->key, call.key))
		s = s->next;
	if (!s) {
		if (!(s = calloc(1, sizeof *s)))
			return gt_fail(err, GT_EFAIL, "out of memory");
		memcpy(s->key, call.key, sizeof s->key);
		enum gt_code code = gt_dnn_plan_find(dev, &call, &s->plan, err);
		if (code != GT_OK) {
			free(s);
			return code;
		}
		s->next = dev->dnn->shared;
		dev->dnn->shared = s;
	}
	s->users++;
	*out = s;
	return GT_OK;
}

void gt_dnn_attention_close(struct gt_dev *dev, struct gt_dnn_shared *shared)
{
	struct gt_dnn_shared **at = &dev->dnn->shared;
	if (--shared->users)
		return;
	while (*at != shared)
		at = &(*at)->next;
	*at = shared->next;
	gt_dnn_plan_drop(&shared->plan);
	free(shared);
}
