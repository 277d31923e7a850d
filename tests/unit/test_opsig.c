/* The signatures of the operations: each can be read, a call made from it is accepted, and a call that differs from it is refused. */
#include "opsig.h"
#include "test.h"
#include <string.h>

/* A call with all operands of a signature: every letter is another size, `..` fills an activation up to rank 4. */
struct made {
	struct gt_opsig sig;
	struct gt_opcall call;
	struct gt_tdesc desc[2 * GT_MAX_IO];
	const struct gt_operand *of[2 * GT_MAX_IO];
	int n;
};

static int rest_of(const struct gt_opsig *sig)
{
	for (int i = 0; i < sig->nin + sig->nout; i++) {
		const struct gt_operand *o = i < sig->nin ? &sig->in[i] : &sig->out[i - sig->nin];
		if (o->rest)
			return 4 - o->ndim;
	}
	return 0;
}

static struct gt_tdesc describe(const struct gt_operand *o, int rest)
{
	static const int64_t more[3] = {31, 33, 35};
	int64_t dim[GT_MAX_RANK] = {5};
	int rank = o->shaped ? o->ndim : 1;
	for (int i = 0; i < o->ndim; i++)
		dim[i] = o->dim[i] < 0 ? 2 + (-o->dim[i] - 'A') : o->dim[i] ? o->dim[i] : 29;
	for (int i = 0; o->rest && i < rest; i++)
		dim[rank++] = more[i];
	enum gt_dtype t = o->type >= GT_OPERAND_DTYPE ? (enum gt_dtype)(o->type - GT_OPERAND_DTYPE) : GT_F32;
	return gt_tdesc_make(t, rank, dim, o->type == GT_OPERAND_ACT || o->type >= GT_OPERAND_DTYPE);
}

static void make(struct made *m, enum gt_opcode code)
{
	*m = (struct made){.call = {.code = code, .name = "x"}};
	gt_opsig_read(code, &m->sig);
	m->call.nin = m->sig.nin;
	m->call.nout = m->sig.nout;
	for (int i = 0; i < m->sig.nin + m->sig.nout; i++) {
		bool in = i < m->sig.nin;
		m->of[i] = in ? &m->sig.in[i] : &m->sig.out[i - m->sig.nin];
		m->desc[i] = describe(m->of[i], rest_of(&m->sig));
		*(in ? &m->call.in[i] : &m->call.out[i - m->sig.nin]) = &m->desc[i];
	}
	m->n = m->sig.nin + m->sig.nout;
}

static struct gt_tdesc **slot(struct made *m, int i)
{
	return i < m->sig.nin ? &m->call.in[i] : &m->call.out[i - m->sig.nin];
}

TEST(a_call_of_every_operation_is_accepted)
{
	int operands = 0;
	for (int c = 0; c < GT_OP_COUNT; c++) {
		struct made m;
		struct gt_err e = {0};
		make(&m, (enum gt_opcode)c);
		CHECK_OK(gt_opcall_check(&m.call, &e), e);
		CHECK_MSG(m.sig.nin > 0, "%s has no input", gt_opcode_name((enum gt_opcode)c));
		for (int i = 0; i < m.n; i++)
			CHECK_MSG(!m.of[i]->repeated || i == m.sig.nin - 1 || i == m.n - 1, "%s: %s is repeated, but not the last operand",
			          gt_opcode_name((enum gt_opcode)c), m.of[i]->name);
		operands += m.n;
	}
	printf("# signatures: %d operands of %d operations\n", operands, GT_OP_COUNT);
}

TEST(a_missing_operand_is_refused_unless_it_is_optional)
{
	for (int c = 0; c < GT_OP_COUNT; c++) {
		struct made m;
		make(&m, (enum gt_opcode)c);
		for (int i = 0; i < m.n; i++) {
			struct gt_tdesc *was = *slot(&m, i);
			struct gt_err e = {0};
			*slot(&m, i) = NULL;
			enum gt_code code = gt_opcall_check(&m.call, &e);
			CHECK_MSG(m.of[i]->optional ? code == GT_OK : code == GT_EINTERNAL && strstr(e.msg, m.of[i]->name), "%s without %s: %s",
			          gt_opcode_name((enum gt_opcode)c), m.of[i]->name, e.msg);
			*slot(&m, i) = was;
		}
	}
}

TEST(another_type_size_or_rank_is_refused)
{
	for (int c = 0; c < GT_OP_COUNT; c++) {
		struct made m;
		make(&m, (enum gt_opcode)c);
		for (int i = 0; i < m.n; i++) {
			const struct gt_operand *o = m.of[i];
			struct gt_tdesc was = m.desc[i];
			struct gt_err e = {0};
			m.desc[i].dtype = was.dtype == GT_I64 ? GT_F32 : GT_I64;
			CHECK_MSG((gt_opcall_check(&m.call, &e) != GT_OK) == (o->type != GT_OPERAND_ANY), "%s: %s of another type: %s",
			          gt_opcode_name((enum gt_opcode)c), o->name, e.msg);
			m.desc[i] = was;
			if (o->shaped && (o->ndim || o->rest)) {
				m.desc[i] = gt_tdesc_make(was.dtype, 5, (int64_t[]){1, 1, 1, 1, 1}, false);
				CHECK_MSG(gt_opcall_check(&m.call, &e) != GT_OK, "%s: %s of rank 5", gt_opcode_name((enum gt_opcode)c), o->name);
				m.desc[i] = was;
			}
			if (o->type == GT_OPERAND_ACT && was.rank == 4) {
				m.desc[i] = gt_tdesc_make(was.dtype, 4, was.dim, false);
				CHECK_MSG(gt_opcall_check(&m.call, &e) == GT_EINTERNAL && strstr(e.msg, "channels last"), "%s: %s as NCHW: %s",
				          gt_opcode_name((enum gt_opcode)c), o->name, e.msg);
				m.desc[i] = was;
			}
		}
	}
}

TEST(channels_are_padded_where_the_signature_says_so)
{
	int may = 0;
	for (int c = 0; c < GT_OP_COUNT; c++) {
		struct made m;
		make(&m, (enum gt_opcode)c);
		for (int i = 0; i < m.n; i++) {
			struct gt_tdesc was = m.desc[i];
			struct gt_err e = {0};
			if (was.rank != 4 || was.dim[1] % GT_CHANNEL_PAD == 0 || m.of[i]->type == GT_OPERAND_PARAM ||
			    m.of[i]->type == GT_OPERAND_WEIGHT || m.of[i]->type == GT_OPERAND_ANY)
				continue;
			m.desc[i] = gt_tdesc_pad_channels(&was, GT_CHANNEL_PAD);
			enum gt_code code = gt_opcall_check(&m.call, &e);
			CHECK_MSG((code == GT_OK) == m.of[i]->padded, "%s: %s: %s", gt_opcode_name((enum gt_opcode)c), m.of[i]->name, e.msg);
			if (code == GT_OK)
				CHECK(gt_opcall_padded(&m.call) == &m.desc[i]);
			may += m.of[i]->padded;
			m.desc[i] = gt_tdesc_pad_channels(&was, 2 * GT_CHANNEL_PAD);
			CHECK_MSG(gt_opcall_check(&m.call, &e) != GT_OK, "%s: %s padded to 16", gt_opcode_name((enum gt_opcode)c), m.of[i]->name);
			m.desc[i] = was;
		}
		CHECK(!gt_opcall_padded(&m.call));
	}
	CHECK_MSG(may == 4, "%d operands may have padded channels", may);
}

TEST(messages_name_operation_operand_and_both_shapes)
{
	struct gt_tdesc x = gt_tdesc_make(GT_F32, 4, (int64_t[]){2, 8, 5, 6}, true), y = x, p = gt_tdesc_make(GT_F32, 1, (int64_t[]){9}, false),
	                q = p;
	struct gt_opcall call = {.code = GT_OP_BATCHNORM_Y, .name = "bn", .nin = 5, .nout = 1, .in = {&x, &p, &p, &q, &q}, .out = {&y}};
	struct gt_err e = {0};
	CHECK(gt_opcall_check(&call, &e) == GT_EINTERNAL && !strcmp(e.msg, "batchnorm.y (bn): operand gamma: expected f32 [8], got f32 [9]"));
	call.in[1] = call.in[2] = NULL;
	p.dim[0] = q.dim[0] = 8;
	q.dtype = GT_BF16;
	CHECK(gt_opcall_check(&call, &e) == GT_EINTERNAL && !strcmp(e.msg, "batchnorm.y (bn): operand mean: expected f32 [8], got bf16 [8]"));
	q.dtype = GT_F32;
	y.dim[3] = 7;
	CHECK(gt_opcall_check(&call, &e) == GT_EINTERNAL &&
	      !strcmp(e.msg, "batchnorm.y (bn): operand y: expected f32 [2, 8, 5, 6], got f32 [2, 8, 5, 7]"));
	y.dim[3] = 6;
	call.nin = 7;
	CHECK(gt_opcall_check(&call, &e) == GT_EINTERNAL && !strcmp(e.msg, "batchnorm.y (bn): expected at most 6 inputs, got 7"));
	call.nin = 5;
	call.accumulate = 1;
	CHECK(gt_opcall_check(&call, &e) == GT_EINTERNAL && !strcmp(e.msg, "batchnorm.y (bn): operand y: this operand cannot be accumulated"));
	call.accumulate = 0;
	y.any = true;
	y.layout = (struct gt_layout){0};
	CHECK_OK(gt_opcall_check(&call, &e), e);
	CHECK(gt_tdesc_equal(&x, &y)); /* an open layout has become the standard one */
}

TEST(f64_graphs_have_f64_parameters)
{
	struct gt_tdesc x = gt_tdesc_make(GT_F64, 2, (int64_t[]){2, 8}, true), y = x, p = gt_tdesc_make(GT_F32, 1, (int64_t[]){8}, false);
	struct gt_opcall call = {.code = GT_OP_LAYERNORM, .name = "ln", .nin = 3, .nout = 1, .in = {&x, &p, &p}, .out = {&y}};
	struct gt_err e = {0};
	CHECK(gt_opcall_check(&call, &e) == GT_EINTERNAL && strstr(e.msg, "expected f64 [8], got f32 [8]"));
	p.dtype = GT_F64;
	CHECK_OK(gt_opcall_check(&call, &e), e);
}

TEST(operands_are_found_by_name)
{
	struct made m;
	make(&m, GT_OP_LAYERNORM_DX);
	CHECK(gt_opcall_operand(&m.call, "dy") == m.call.in[0] && gt_opcall_operand(&m.call, "rstd") == m.call.in[4]);
	CHECK(gt_opcall_operand(&m.call, "dbeta") == m.call.out[2]);
	CHECK_MSG(!gt_opcall_operand(&m.call, "beta"), "layernorm.dx has no operand beta");
	m.call.accumulate = 2;
	CHECK(gt_opcall_adds(&m.call, "dgamma") && !gt_opcall_adds(&m.call, "dbeta") && !gt_opcall_adds(&m.call, "gamma"));
	m.call.in[2] = NULL;
	m.call.nout = 2;
	CHECK(!gt_opcall_operand(&m.call, "gamma") && !gt_opcall_operand(&m.call, "dbeta"));
}

TEST(addresses_are_bound_by_name)
{
	struct args {
		void *gamma, *dbeta, *beta;
	} args = {0};
	static const struct gt_operand_slot slots[] = {GT_SLOTS(args, dbeta, gamma, beta)};
	char memory[8];
	void *in[] = {memory, memory + 1, memory + 2, memory + 3, memory + 4}, *out[] = {memory + 5, memory + 6, memory + 7};
	struct made m;
	struct gt_binding b;
	make(&m, GT_OP_LAYERNORM_DX);
	gt_binding_make(&b, slots, 3, &m.call);
	gt_binding_apply(&b, &args, in, out);
	CHECK(args.gamma == in[2] && args.dbeta == out[2] && !args.beta);
}

/* A name that an operation had twice would be found only once. */
TEST(an_operation_has_an_operand_of_each_name_once)
{
	for (int code = 0; code < GT_OP_COUNT; code++) {
		struct made m;
		make(&m, (enum gt_opcode)code);
		for (int i = 0; i < m.n; i++)
			CHECK_MSG(gt_opcall_operand(&m.call, m.of[i]->name) == *slot(&m, i), "%s: %s", gt_opcode_name((enum gt_opcode)code),
			          m.of[i]->name);
	}
}

RUN_TESTS()
