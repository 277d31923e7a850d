#include "against/twin.h"
#include "base/arena.h"
#include "ew.h"
#include "opsig.h"
#include <stdlib.h>
#include <string.h>

void *gt_twin_alloc(size_t bytes)
{
	return aligned_alloc(64, (bytes + 64) & ~(size_t)63);
}

/* ---- conversion --------------------------------------------------------------------------------------------------------------------- */
static float load_float(enum gt_dtype t, const void *p, int64_t i)
{
	return t == GT_F32    ? ((const float *)p)[i]
	       : t == GT_BF16 ? gt_bf16_to_f32(((const uint16_t *)p)[i])
	                      : gt_f16_to_f32(((const uint16_t *)p)[i]);
}

static void store_float(enum gt_dtype t, void *p, int64_t i, float x)
{
	if (t == GT_F32)
		((float *)p)[i] = x;
	else
		((uint16_t *)p)[i] = t == GT_BF16 ? gt_bf16_from_f32(x) : gt_f16_from_f32(x);
}

static void convert_type(enum gt_dtype from, const void *p, enum gt_dtype to, void *q, int64_t n)
{
	if (from == to)
		memcpy(q, p, (size_t)n * gt_dtype_size(to));
	else
		for (int64_t i = 0; i < n; i++)
			store_float(to, q, i, load_float(from, p, i));
}

/* Copies a tensor to another type and layout of the same shape. */
static enum gt_code convert_tensor(const struct gt_tdesc *from, const void *p, const struct gt_tdesc *to, void *q, struct gt_err *err)
{
	int64_t n = gt_tdesc_count(from);
	size_t bytes = (size_t)n * 8 + 64;
	char *plain = malloc(2 * bytes);
	if (!plain)
		return gt_fail_memory(err, 2 * bytes);
	gt_tdesc_unpack(from, p, plain);
	convert_type(from->dtype, plain, to->dtype, plain + bytes, n);
	gt_tdesc_pack(to, plain + bytes, q);
	free(plain);
	return GT_OK;
}

/* ---- making ------------------------------------------------------------------------------------------------------------------------- */
static bool is_half(enum gt_dtype t)
{
	return t == GT_BF16 || t == GT_F16;
}

/* One way to describe the operands of a call to the CPU. */
struct form {
	enum gt_dtype type; /* type of activations and weights; GT_DTYPE_COUNT: the type on the device */
	bool open;          /* true: the CPU chooses the layout of weights; false: they have the layout on the device */
};

static struct gt_tdesc describe_operand(const struct gt_tdesc *d, enum gt_opcode code, const struct gt_operand *o, const struct form *f)
{
	struct gt_tdesc t = *d;
	bool weight = o->type == GT_OPERAND_WEIGHT || o->type == GT_OPERAND_PARAM;
	bool any = o->type == GT_OPERAND_ANY && (code == GT_OP_LINEAR_DX || code == GT_OP_GATHER_ROWS);
	bool computes = any || o->type == GT_OPERAND_ACT || o->type == GT_OPERAND_WEIGHT;
	if (o->padded && t.rank == 4 && t.layout.nblk)
		t = gt_tdesc_make(t.dtype, 4, t.dim, true);
	if (f->type != GT_DTYPE_COUNT && computes && (is_half(t.dtype) || t.dtype == GT_F32))
		t.dtype = f->type;
	t.any = f->open && weight && t.rank >= 2;
	return t;
}

static void describe_operands(const struct gt_twin *t, const struct gt_opcall *call, const struct gt_opsig *sig, bool out, const int *index,
                              const struct form *f, struct gt_twin_operand *operand)
{
	for (int i = 0; i < (out ? call->nout : call->nin); i++) {
		const struct gt_operand *o = out ? gt_opsig_output(sig, i) : gt_opsig_input(sig, i);
		operand[i] = (struct gt_twin_operand){.tensor = index[i]};
		if (index[i] >= 0 && o)
			operand[i].desc = describe_operand(&t->tensor[index[i]].desc, call->code, o, f);
	}
}

/* Returns whether the CPU has chosen every layout. */
static bool is_closed(const struct gt_twin_operand *operand, int n)
{
	for (int i = 0; i < n; i++)
		if (operand[i].tensor >= 0 && operand[i].desc.any)
			return false;
	return true;
}

/* Prepares the CPU's kernel for a call whose operands are described in the form f. */
static enum gt_code prepare_form(const struct gt_twin *t, const struct gt_opcall *call, const struct gt_opsig *sig, const int *in,
                                 const int *out, const struct form *f, struct gt_twin_call *c, struct gt_err *err)
{
	struct gt_opcall oc = *call;
	*c = (struct gt_twin_call){.nin = call->nin, .nout = call->nout};
	describe_operands(t, call, sig, false, in, f, c->in);
	describe_operands(t, call, sig, true, out, f, c->out);
	for (int i = 0; i < oc.nin; i++)
		oc.in[i] = in[i] >= 0 ? &c->in[i].desc : NULL;
	for (int i = 0; i < oc.nout; i++)
		oc.out[i] = out[i] >= 0 ? &c->out[i].desc : NULL;
	GT_TRY(t->be->prepare(t->dev, &oc, &c->kernel, err));
	if (is_closed(c->in, c->nin) && is_closed(c->out, c->nout))
		return GT_OK;
	t->be->release(t->dev, c->kernel);
	c->kernel = NULL;
	return gt_opcall_refuse(call, err, "the CPU's kernel has not chosen a layout for the weights");
}

enum gt_code gt_twin_add(struct gt_twin *t, const struct gt_opcall *call, const int *in, const int *out, struct gt_err *err)
{
	/* Tried in this order: the device's types and layouts, the CPU's layouts of weights, f32 instead of types that the CPU lacks. */
	const struct form forms[] = {{t->type, false}, {t->type, true}, {GT_F32, false}, {GT_F32, true}};
	struct gt_opsig sig;
	enum gt_code code = GT_EUNAVAILABLE;
	gt_opsig_read(call->code, &sig);
	if (t->ncalls == GT_TWIN_CALLS)
		return gt_opcall_refuse(call, err, "the CPU needs too many calls to compute it");
	for (size_t i = 0; i < sizeof forms / sizeof *forms && code != GT_OK; i++) {
		code = prepare_form(t, call, &sig, in, out, &forms[i], &t->call[t->ncalls], err);
		if (code != GT_OK && code != GT_EUNAVAILABLE && code != GT_EINTERNAL)
			return code;
	}
	t->ncalls += code == GT_OK;
	return code == GT_OK ? GT_OK : gt_code_replace(code, GT_EINTERNAL, GT_EUNAVAILABLE, err);
}

struct gt_twin_call *gt_twin_add_step(struct gt_twin *t, enum gt_twin_step step, int from, int to)
{
	if (t->ncalls == GT_TWIN_CALLS)
		return NULL;
	struct gt_twin_call *c = &t->call[t->ncalls++];
	*c = (struct gt_twin_call){.step = step, .nin = 1, .nout = 1};
	c->in[0] = (struct gt_twin_operand){.tensor = from, .desc = t->tensor[from].desc};
	c->out[0] = (struct gt_twin_operand){.tensor = to, .desc = t->tensor[to].desc};
	return c;
}

int gt_twin_add_temp(struct gt_twin *t, const struct gt_tdesc *d)
{
	for (int i = GT_TWIN_TEMPS; i < GT_TWIN_TENSORS; i++)
		if (!t->tensor[i].bytes) {
			t->tensor[i] = (struct gt_twin_tensor){*d, gt_tdesc_bytes(d)};
			return i;
		}
	return -1;
}

static void describe_tensor(struct gt_twin_tensor *t, const struct gt_tdesc *d, const struct gt_operand *o)
{
	if (!d)
		return;
	t->desc = *d;
	t->bytes = o && !strcmp(o->name, "metrics") ? sizeof(struct gt_metrics) : gt_tdesc_bytes(d);
}

void gt_twin_describe(struct gt_twin *t, const struct gt_opcall *call)
{
	struct gt_opsig sig;
	gt_opsig_read(call->code, &sig);
	for (int i = 0; i < call->nin; i++)
		describe_tensor(&t->tensor[i], call->in[i], gt_opsig_input(&sig, i));
	for (int i = 0; i < call->nout; i++)
		describe_tensor(&t->tensor[GT_MAX_IO + i], call->out[i], gt_opsig_output(&sig, i));
}

enum gt_code gt_twin_make(struct gt_twin *t, const struct gt_opcall *call, struct gt_err *err)
{
	int in[GT_MAX_IO], out[GT_MAX_IO];
	gt_twin_describe(t, call);
	t->mask = t->masked = -1;
	for (int i = 0; i < call->nin; i++)
		in[i] = call->in[i] ? i : -1;
	for (int i = 0; i < call->nout; i++)
		out[i] = call->out[i] ? GT_MAX_IO + i : -1;
	enum gt_code code = gt_twin_join(t, call, err);
	if (code != GT_EUNAVAILABLE)
		return code;
	gt_twin_release(t);
	memset(t->opaque, 0, sizeof t->opaque);
	t->mask = t->masked = -1;
	return gt_twin_add(t, call, in, out, err);
}

void gt_twin_release(struct gt_twin *t)
{
	for (int i = 0; i < t->ncalls; i++) {
		if (t->call[i].kernel)
			t->be->release(t->dev, t->call[i].kernel);
		free(t->call[i].seg);
	}
	t->ncalls = 0;
}

/* ---- running ------------------------------------------------------------------------------------------------------------------------ */
static bool needs_copy(const struct gt_twin *t, const struct gt_twin_operand *o)
{
	return o->tensor >= 0 && !o->offset && !gt_tdesc_equal(&o->desc, &t->tensor[o->tensor].desc);
}

/* Sets *p to the address of an operand: the address of its tensor in `memory`, or of a converted copy if the types or layouts differ. */
static enum gt_code give_operand(const struct gt_twin *t, const struct gt_twin_operand *o, void *const *memory, void **p,
                                 struct gt_err *err)
{
	char *at = o->tensor >= 0 ? memory[o->tensor] : NULL;
	*p = at ? at + o->offset : NULL;
	if (!at || !needs_copy(t, o))
		return GT_OK;
	if (!(*p = gt_twin_alloc(gt_tdesc_bytes(&o->desc))))
		return gt_fail_memory(err, gt_tdesc_bytes(&o->desc));
	return convert_tensor(&t->tensor[o->tensor].desc, at, &o->desc, *p, err);
}

/* Frees the copy of an operand, after writing it back to the tensor if `keep` is set. */
static enum gt_code take_operand(const struct gt_twin *t, const struct gt_twin_operand *o, void *const *memory, void *p, bool keep,
                                 struct gt_err *err)
{
	enum gt_code code = GT_OK;
	if (!p || !needs_copy(t, o))
		return GT_OK;
	if (keep)
		code = convert_tensor(&o->desc, p, &t->tensor[o->tensor].desc, memory[o->tensor], err);
	free(p);
	return code;
}

static enum gt_code run_call(const struct gt_twin *t, const struct gt_twin_call *c, void *const *memory,
                             const struct gt_step_args *step_args, int stream, struct gt_err *err)
{
	void *in[GT_MAX_IO] = {0}, *out[GT_MAX_IO] = {0}, *work = gt_twin_alloc(t->be->scratch(c->kernel));
	enum gt_code code = work ? GT_OK : gt_fail_memory(err, t->be->scratch(c->kernel));
	for (int i = 0; i < c->nin && code == GT_OK; i++)
		code = give_operand(t, &c->in[i], memory, &in[i], err);
	for (int i = 0; i < c->nout && code == GT_OK; i++)
		code = give_operand(t, &c->out[i], memory, &out[i], err);
	struct gt_launch a = {.in = in, .out = out, .scratch = work, .step_args = step_args, .stream = stream};
	if (code == GT_OK)
		code = t->be->launch(t->dev, c->kernel, &a, err);
	bool keep = code == GT_OK;
	for (int i = 0; i < c->nin + c->nout; i++) {
		bool back = i >= c->nin;
		enum gt_code taken = take_operand(t, back ? &c->out[i - c->nin] : &c->in[i], memory, back ? out[i - c->nin] : in[i], keep,
		                                  code == GT_OK ? err : NULL);
		code = code == GT_OK ? taken : code;
	}
	free(work);
	return code;
}

/* Converts the positions of a max pooling's maxima between offsets in the input plane (i32) and in the window (u8). Both tensors have the
 * shape [N, C, P, Q] and are stored as NHWC. */
static void convert_positions(const struct gt_twin_call *c, const void *from, void *to)
{
	const struct gt_attr_pool2d *a = &c->pool;
	const int64_t *dim = c->in[0].desc.dim;
	int64_t i = 0;
	for (int64_t n = 0; n < dim[0]; n++)
		for (int64_t p = 0; p < dim[2]; p++)
			for (int64_t q = 0; q < dim[3]; q++)
				for (int64_t k = 0; k < dim[1]; k++, i++) {
					int64_t top = p * a->stride[0] - a->padding[0], left = q * a->stride[1] - a->padding[1];
					if (c->step == GT_TWIN_NARROW) {
						int64_t at = ((const int32_t *)from)[i];
						((uint8_t *)to)[i] = (uint8_t)((at / c->width - top) * a->kernel[1] + at % c->width - left);
					} else {
						int64_t at = ((const uint8_t *)from)[i];
						((int32_t *)to)[i] = (int32_t)((at / a->kernel[1] + top) * c->width + at % a->kernel[1] + left);
					}
				}
}

/* Converts the elements of the segments c->seg; both tensors have one dimension. */
static void convert_segments(const struct gt_twin_call *c, const char *from, char *to)
{
	enum gt_dtype a = c->in[0].desc.dtype, b = c->out[0].desc.dtype;
	for (int i = 0; i < c->nseg; i++) {
		size_t at = (size_t)c->seg[i].begin;
		convert_type(a, from + at * gt_dtype_size(a), b, to + at * gt_dtype_size(b), c->seg[i].end - c->seg[i].begin);
	}
}

static enum gt_code run_step(const struct gt_twin_call *c, void *const *memory, struct gt_err *err)
{
	const void *from = memory[c->in[0].tensor];
	void *to = memory[c->out[0].tensor];
	if (c->seg)
		convert_segments(c, from, to);
	else if (c->step == GT_TWIN_CONVERT)
		return convert_tensor(&c->in[0].desc, from, &c->out[0].desc, to, err);
	else
		convert_positions(c, from, to);
	return GT_OK;
}

enum gt_code gt_twin_run(const struct gt_twin *t, void *const *memory, const struct gt_step_args *step_args, int stream,
                         struct gt_err *err)
{
	for (int i = 0; i < t->ncalls; i++)
		GT_TRY(t->call[i].kernel ? run_call(t, &t->call[i], memory, step_args, stream, err) : run_step(&t->call[i], memory, err));
	return GT_OK;
}
