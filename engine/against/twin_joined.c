/* Twins of calls that the CPU's backend lacks. A GPU's call that fuses several operations (plan/backend_fusion.c) becomes one CPU call for
 * each operation. For a call whose operands have a format that only the GPU supports, the twin converts the format. */
#include "against/twin.h"
#include "base/arena.h"
#include "opsig.h"
#include <string.h>

/* A call for add_part: operation, attributes, and the tensor numbers of its operands. */
struct part {
	enum gt_opcode code;
	const void *attr;
	uint32_t accumulate;
	int in[GT_MAX_IO], out[GT_MAX_IO]; /* -1: absent */
	int nin, nout;
};

static enum gt_code add_part(struct gt_twin *t, const struct gt_opcall *call, const struct part *p, struct gt_err *err)
{
	struct gt_opcall oc = {.code = p->code, .name = call->name, .attr = p->attr, .nin = p->nin, .nout = p->nout,
	                       .accumulate = p->accumulate, .deterministic = call->deterministic};
	while (oc.nin > 0 && p->in[oc.nin - 1] < 0) /* drop absent last inputs: batchnorm.dx has a relu if it has more inputs */
		oc.nin--;
	return gt_twin_add(t, &oc, p->in, p->out, err);
}

/* Returns the tensor number of the operand that the signature of the call names `name`; -1: the operand is absent. */
static int tensor_of(const struct gt_opcall *call, const char *name)
{
	struct gt_opsig sig;
	gt_opsig_read(call->code, &sig);
	for (int i = 0; i < call->nin; i++)
		if (call->in[i] && !strcmp(gt_opsig_input(&sig, i)->name, name))
			return i;
	for (int i = 0; i < call->nout; i++)
		if (call->out[i] && !strcmp(gt_opsig_output(&sig, i)->name, name))
			return GT_MAX_IO + i;
	return -1;
}

static enum gt_code refuse_rule(const struct gt_opcall *call, struct gt_err *err)
{
	return gt_opcall_refuse(call, err, "no rule splits it into calls that the CPU supports");
}

static enum gt_code refuse_size(const struct gt_opcall *call, struct gt_err *err)
{
	return gt_opcall_refuse(call, err, "the CPU needs too many calls to compute it");
}

#define IN(...) .in = {__VA_ARGS__}, .nin = (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define OUT(...) .out = {__VA_ARGS__}, .nout = (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))
#define T(name) tensor_of(call, name)

/* ---- linear layers ------------------------------------------------------------------------------------------------------------------ */
static enum gt_code split_linear(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err)
{
	int mask = T("mask"), y = T("y");
	if (mask < 0)
		return refuse_rule(call, err);
	struct part p = {GT_OP_LINEAR, call->attr, 0, IN(T("x"), T("w"), T("b")), OUT(y)};
	t->mask = mask;
	t->masked = y;
	t->opaque[mask] = true;
	return add_part(t, call, &p, err);
}

static enum gt_code split_linear_dx(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err)
{
	int y = T("y");
	if (y < 0 || t->tensor[y].desc.dtype != GT_U8)
		return refuse_rule(call, err);
	t->mask = y;
	t->masked = gt_twin_add_temp(t, gt_opcall_operand(call, "dx"));
	if (t->masked < 0)
		return refuse_size(call, err);
	struct part p = {GT_OP_LINEAR_DX, call->attr, 0, IN(T("dy"), T("w"), t->masked), OUT(T("dx"))};
	return add_part(t, call, &p, err);
}

static enum gt_code split_linear_loss(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err)
{
	const struct gt_attr_linear_loss *a = call->attr;
	struct part linear = {GT_OP_LINEAR, &a->linear, 0, IN(T("x"), T("w"), T("b")), OUT(T("y"))};
	struct part loss = {a->code, &a->loss, 0, IN(T("y"), T("target"), T("scale")), OUT(T("metrics"), T("dy"))};
	GT_TRY(add_part(t, call, &linear, err));
	return add_part(t, call, &loss, err);
}

static enum gt_code split_linear_back(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err)
{
	struct part dx = {GT_OP_LINEAR_DX, call->attr, 0, IN(T("dy"), T("w"), T("y")), OUT(T("dx"))};
	struct part dw = {GT_OP_LINEAR_DW, call->attr, call->accumulate >> 1, IN(T("dy"), T("x")), OUT(T("dw"), T("db"))};
	GT_TRY(add_part(t, call, &dx, err));
	return add_part(t, call, &dw, err);
}

/* ---- normalisation ------------------------------------------------------------------------------------------------------------------ */
static bool is_gelu(const struct gt_attr_norm *a)
{
	return a->act == GT_ACT_GELU || a->act == GT_ACT_GELU_TANH;
}

/* Splits a batch normalisation with a fused gelu into the normalisation and the gelu. */
static enum gt_code split_batchnorm(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err)
{
	struct gt_attr_norm norm = *(const struct gt_attr_norm *)call->attr;
	struct gt_attr_gelu gelu = {.approximate = norm.act == GT_ACT_GELU_TANH};
	if (!is_gelu(&norm))
		return refuse_rule(call, err);
	int y = gt_twin_add_temp(t, gt_opcall_operand(call, "y"));
	norm.act = GT_ACT_NONE;
	struct part first = {GT_OP_BATCHNORM, &norm, 0, IN(T("x"), T("gamma"), T("beta"), T("rmean"), T("rvar"), T("nbt"), T("res")),
	                     OUT(y, T("mean"), T("rstd"))};
	struct part again = {GT_OP_BATCHNORM_Y, &norm, 0, IN(T("x"), T("gamma"), T("beta"), T("mean"), T("rstd"), T("res")), OUT(y)};
	struct part last = {GT_OP_GELU, &gelu, 0, IN(y), OUT(T("y"))};
	if (y < 0)
		return refuse_size(call, err);
	GT_TRY(add_part(t, call, call->code == GT_OP_BATCHNORM ? &first : &again, err));
	return add_part(t, call, &last, err);
}

/* Adds the backward pass of the gelu: the product of the gradient *dy and the gelu's derivative at the normalised x. Sets *dy to the tensor
 * of the product. */
static enum gt_code add_gelu_dx(struct gt_twin *t, const struct gt_opcall *call, struct gt_attr_norm *norm, int *dy, struct gt_err *err)
{
	struct gt_attr_gelu gelu = {.approximate = norm->act == GT_ACT_GELU_TANH};
	int y = gt_twin_add_temp(t, gt_opcall_operand(call, "x")), masked = gt_twin_add_temp(t, gt_opcall_operand(call, "x"));
	norm->act = GT_ACT_NONE;
	struct part value = {GT_OP_BATCHNORM_Y, norm, 0, IN(T("x"), T("gamma"), T("beta"), T("mean"), T("rstd")), OUT(y)};
	struct part product = {GT_OP_GELU_DX, &gelu, 0, IN(*dy, y), OUT(masked)};
	if (y < 0 || masked < 0)
		return refuse_size(call, err);
	GT_TRY(add_part(t, call, &value, err));
	*dy = masked;
	return add_part(t, call, &product, err);
}

/* Splits the backward pass of a batch normalisation with a fused gelu, or with two gradients of its output (dy, more), which are added. */
static enum gt_code split_batchnorm_dx(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err)
{
	struct gt_attr_norm norm = *(const struct gt_attr_norm *)call->attr;
	int dy = T("dy"), more = T("more"), beta = T("beta"), y = T("y");
	bool gelu = is_gelu(&norm) && beta >= 0, dx = call->code == GT_OP_BATCHNORM_DX;
	if (more < 0 && !gelu)
		return refuse_rule(call, err);
	if (more >= 0) {
		int sum = gt_twin_add_temp(t, gt_opcall_operand(call, "dy"));
		struct part add = {GT_OP_ADD, NULL, 0, IN(dy, more), OUT(sum)};
		if (sum < 0)
			return refuse_size(call, err);
		GT_TRY(add_part(t, call, &add, err));
		dy = sum;
		if (norm.act == GT_ACT_NONE) /* a call of batchnorm.dx with beta and y would also apply the gradient of a relu */
			beta = y = -1;
	}
	if (gelu) {
		GT_TRY(add_gelu_dx(t, call, &norm, &dy, err));
		beta = y = -1;
	}
	struct part back = {GT_OP_BATCHNORM_DX, &norm, call->accumulate,
	                    IN(dy, T("x"), T("gamma"), T("mean"), T("rstd"), beta, y, T("sums")),
	                    OUT(T("dx"), T("dgamma"), T("dbeta"), T("g"))};
	struct part sums = {GT_OP_BATCHNORM_SUMS, &norm, call->accumulate, IN(dy, T("x"), T("gamma"), T("mean"), T("rstd"), beta, y),
	                    OUT(T("sums"), T("dgamma"), T("dbeta"), T("g"))};
	return add_part(t, call, dx ? &back : &sums, err);
}

/* ---- pooling ------------------------------------------------------------------------------------------------------------------------ */
/* Adds a temporary tensor for the positions of maxima as the CPU writes them: i32 offsets in the input plane. Returns -1 if there are too
 * many tensors. */
static int add_positions(struct gt_twin *t, const struct gt_tdesc *like)
{
	struct gt_tdesc d = gt_tdesc_make(GT_I32, like->rank, like->dim, true);
	return gt_twin_add_temp(t, &d);
}

static enum gt_code convert_idx(struct gt_twin *t, const struct gt_opcall *call, enum gt_twin_step step, int from, int to, int64_t width,
                                struct gt_err *err)
{
	struct gt_twin_call *c = gt_twin_add_step(t, step, from, to);
	if (!c)
		return refuse_size(call, err);
	c->pool = *(const struct gt_attr_pool2d *)call->attr;
	c->width = width;
	return GT_OK;
}

/* Handles a forward call that writes no positions of maxima, or writes them as u8 offsets in the window; the CPU writes i32 offsets. */
static enum gt_code split_pool(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err)
{
	int idx = T("idx"), wide;
	if (idx >= 0 && t->tensor[idx].desc.dtype == GT_I32)
		return refuse_rule(call, err);
	if ((wide = add_positions(t, gt_opcall_operand(call, "y"))) < 0)
		return refuse_size(call, err);
	struct part p = {call->code, call->attr, 0, IN(T("x")), OUT(T("y"), wide)};
	GT_TRY(add_part(t, call, &p, err));
	return idx < 0 ? GT_OK : convert_idx(t, call, GT_TWIN_NARROW, wide, idx, gt_opcall_operand(call, "x")->dim[3], err);
}

static enum gt_code split_pool_dx(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err)
{
	int idx = T("idx"), wide;
	if (t->tensor[idx].desc.dtype == GT_I32)
		return refuse_rule(call, err);
	if ((wide = add_positions(t, gt_opcall_operand(call, "dy"))) < 0)
		return refuse_size(call, err);
	GT_TRY(convert_idx(t, call, GT_TWIN_WIDEN, idx, wide, gt_opcall_operand(call, "dx")->dim[3], err));
	struct part p = {GT_OP_MAXPOOL2D_DX, call->attr, 0, IN(T("dy"), wide), OUT(T("dx"))};
	return add_part(t, call, &p, err);
}

/* ---- updates ------------------------------------------------------------------------------------------------------------------------ */
/* Splits a `check` call that reads the gradients: a call `sumsq` writes their sum of squares to gt_scalars.sumsq, which `check` reads. */
static enum gt_code split_check(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err)
{
	int g = T("g"), scalars = T("scalars");
	struct gt_tdesc one = gt_tdesc_make(GT_F64, 0, NULL, false);
	if (g < 0)
		return refuse_rule(call, err);
	int sum = gt_twin_add_temp(t, &one);
	struct part sumsq = {GT_OP_SUMSQ, NULL, 0, IN(g), OUT(sum)};
	struct part check = {GT_OP_CHECK, call->attr, 0, IN(scalars, T("scaler"), T("numbers"), T("parts"))};
	if (sum < 0)
		return refuse_size(call, err);
	GT_TRY(add_part(t, call, &sumsq, err));
	t->call[t->ncalls - 1].out[0].tensor = scalars; /* `sumsq` writes to the member gt_scalars.sumsq instead of a temporary tensor */
	t->call[t->ncalls - 1].out[0].offset = offsetof(struct gt_scalars, sumsq);
	return add_part(t, call, &check, err);
}

/* Splits an optimizer update that also writes a copy of the parameters in f16, which the CPU's kernel does not support, into the update and
 * a conversion of its segments. Neither the parameters nor the copy change outside the segments: for example, another call updates the rows
 * of a table, and does not write the 16-bit copy. */
static enum gt_code split_update(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err)
{
	struct gt_opsig sig;
	int work = T("work");
	if (work < 0 || t->tensor[work].desc.dtype != GT_F16)
		return refuse_rule(call, err);
	struct part p = {.code = call->code, .attr = call->attr, .nin = work};
	gt_opsig_read(call->code, &sig);
	for (int i = 0; i < work; i++)
		p.in[i] = call->in[i] ? i : -1;
	GT_TRY(add_part(t, call, &p, err));
	const struct gt_attr_update *update = call->attr; /* Muon's attribute struct begins with a struct gt_attr_update */
	struct gt_twin_call *c = gt_twin_add_step(t, GT_TWIN_CONVERT, T("p"), work);
	if (!c)
		return refuse_size(call, err);
	size_t bytes = (size_t)update->nseg * sizeof *c->seg;
	if (!(c->seg = gt_twin_alloc(bytes)))
		return gt_fail_memory(err, bytes);
	memcpy(c->seg, update->seg, bytes);
	c->nseg = update->nseg;
	return GT_OK;
}

static enum gt_code split_cast(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err)
{
	if (call->in[0]->dtype != GT_F16 && call->out[0]->dtype != GT_F16)
		return refuse_rule(call, err);
	return gt_twin_add_step(t, GT_TWIN_CONVERT, T("x"), T("y")) ? GT_OK : refuse_size(call, err);
}

/* ---- the rules ---------------------------------------------------------------------------------------------------------------------- */
enum gt_code gt_twin_join(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err)
{
	static const struct {
		enum gt_opcode code;
		enum gt_code (*split)(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err);
	} rules[] = {
		{GT_OP_LINEAR, split_linear},
		{GT_OP_LINEAR_DX, split_linear_dx},
		{GT_OP_LINEAR_LOSS, split_linear_loss},
		{GT_OP_LINEAR_BACK, split_linear_back},
		{GT_OP_BATCHNORM, split_batchnorm},
		{GT_OP_BATCHNORM_Y, split_batchnorm},
		{GT_OP_BATCHNORM_DX, split_batchnorm_dx},
		{GT_OP_BATCHNORM_SUMS, split_batchnorm_dx},
		{GT_OP_MAXPOOL2D, split_pool},
		{GT_OP_ADAPTIVE_MAXPOOL2D, split_pool},
		{GT_OP_MAXPOOL2D_DX, split_pool_dx},
		{GT_OP_CHECK, split_check},
		{GT_OP_CAST, split_cast},
#define GT_X(NAME, ...) {GT_OP_##NAME, split_update},
		GT_UPDATES(GT_X)
#undef GT_X
	};
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		if (rules[i].code == call->code)
			return rules[i].split(t, call, err);
	return refuse_rule(call, err);
}
