/* The signatures of opcall.h as structs, and the check that a call has the operands of its operation. The graph's verification and both
 * backends use the check; a backend then only checks whether it can compute the call.
 *
 *     struct gt_opsig sig;
 *     gt_opsig_read(GT_OP_LAYERNORM, &sig);          sig.in[1].name is "gamma", sig.in[1].optional is true
 *     GT_TRY(gt_opcall_check(&call, err));           "layernorm (ln1): operand gamma: expected f32 [16, 4, 4], got f32 [16]"
 *     gamma = gt_opcall_operand(&call, "gamma");     call.in[1] in layernorm, call.in[2] in layernorm.dx */
#ifndef GT_KERNELS_OPSIG_H
#define GT_KERNELS_OPSIG_H

#include "opcall.h"
#include <stddef.h>
#include <string.h>

/* The type of an operand. A type >= GT_OPERAND_DTYPE requires the dtype (enum gt_dtype) whose value is type - GT_OPERAND_DTYPE. */
enum gt_operand_type { GT_OPERAND_ACT, GT_OPERAND_WEIGHT, GT_OPERAND_PARAM, GT_OPERAND_ANY, GT_OPERAND_DTYPE };
/* an entry of gt_operand.dim that allows any size; a positive entry requires that size; a negative entry is the negated letter of a size */
enum { GT_DIM_FREE = 0 };

struct gt_operand {
	char name[16];
	int type;        /* enum gt_operand_type, or GT_OPERAND_DTYPE + enum gt_dtype */
	bool optional;   /* the operand may be absent */
	bool updated;    /* the operation changes the operand in place */
	bool added;      /* the operation may add to the operand (gt_opcall.accumulate) */
	bool padded;     /* its channels may be padded */
	bool repeated;   /* this entry describes one or more operands; it is the last input or output */
	bool shaped;     /* the members below describe the shape; false: any shape */
	bool rest;       /* further sizes follow the sizes in dim */
	int ndim;        /* number of entries in dim; 0 without rest: a tensor of one element, of any rank */
	int64_t dim[GT_MAX_RANK];
};

struct gt_opsig {
	int nin, nout;
	struct gt_operand in[GT_MAX_IO], out[GT_MAX_IO];
};

void gt_opsig_read(enum gt_opcode code, struct gt_opsig *out);

/* Return the index of the operand with this name among the inputs, or the outputs, of an operation; -1: the operation has none. */
int gt_opsig_find_input(enum gt_opcode code, const char *name);
int gt_opsig_find_output(enum gt_opcode code, const char *name);

/* Both functions return the operand with index i of a call, or NULL if the operation has no such operand. */
const struct gt_operand *gt_opsig_input(const struct gt_opsig *sig, int i);
const struct gt_operand *gt_opsig_output(const struct gt_opsig *sig, int i);

size_t gt_opcode_attr_size(enum gt_opcode code); /* bytes of the operation's attribute struct; 0: it has none */

/* Checks count, presence, dtypes, shapes and layouts of a call's operands, and gt_opcall.accumulate. Sets the standard layout of operands
 * that need it and whose layout is open (gt_tdesc.any). Returns GT_EINTERNAL if the call does not fit the signature, which is a bug in
 * gtrain. */
enum gt_code gt_opcall_check(const struct gt_opcall *call, struct gt_err *err);

/* Returns the descriptor of an operand, NULL if it is absent: gt_opcall_operand(call, "gamma"). */
struct gt_tdesc *gt_opcall_operand(const struct gt_opcall *call, const char *name);
/* Returns the descriptor of the first input, which every operation of a backend has, and of the first output; NULL: absent. */
struct gt_tdesc *gt_opcall_input(const struct gt_opcall *call);
struct gt_tdesc *gt_opcall_output(const struct gt_opcall *call);
/* Returns whether the call adds to an output (gt_opcall.accumulate). */
bool gt_opcall_adds(const struct gt_opcall *call, const char *name);

/* The destination of an operand's address: the operand's name, and the offset of a member of the kernel's argument struct:
 *
 *     struct args { const void *x; void *y; };
 *     static const struct gt_operand_slot slots[] = {GT_SLOTS(args, x, y)};
 *     gt_binding_make(&k->binding, slots, 2, call);                 when the kernel is prepared
 *     gt_binding_apply(&k->binding, &args, a->in, a->out);          at a launch: args.x and args.y */
struct gt_operand_slot {
	const char *name;
	size_t at;
};
#ifdef __cplusplus
#define GT_SLOT_TYPE(tag) tag
#else
#define GT_SLOT_TYPE(tag) struct tag
#endif
#define GT_SLOT_AS(tag, name, member)                                                                                                      \
	{                                                                                                                                      \
		name, offsetof(GT_SLOT_TYPE(tag), member)                                                                                          \
	}
/* Slots for 2 to 13 members that have the names of their operands. */
#define GT_SLOTS(tag, ...) GT_SLOTS_COUNT(__VA_ARGS__, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)(tag, __VA_ARGS__)
#define GT_SLOTS_COUNT(a, b, c, d, e, f, g, h, i, j, k, l, m, n, ...) GT_SLOTS_##n
#define GT_SLOTS_1(tag, m) GT_SLOT_AS(tag, #m, m)
#define GT_SLOTS_2(tag, m, ...) GT_SLOTS_1(tag, m), GT_SLOTS_1(tag, __VA_ARGS__)
#define GT_SLOTS_3(tag, m, ...) GT_SLOTS_1(tag, m), GT_SLOTS_2(tag, __VA_ARGS__)
#define GT_SLOTS_4(tag, m, ...) GT_SLOTS_1(tag, m), GT_SLOTS_3(tag, __VA_ARGS__)
#define GT_SLOTS_5(tag, m, ...) GT_SLOTS_1(tag, m), GT_SLOTS_4(tag, __VA_ARGS__)
#define GT_SLOTS_6(tag, m, ...) GT_SLOTS_1(tag, m), GT_SLOTS_5(tag, __VA_ARGS__)
#define GT_SLOTS_7(tag, m, ...) GT_SLOTS_1(tag, m), GT_SLOTS_6(tag, __VA_ARGS__)
#define GT_SLOTS_8(tag, m, ...) GT_SLOTS_1(tag, m), GT_SLOTS_7(tag, __VA_ARGS__)
#define GT_SLOTS_9(tag, m, ...) GT_SLOTS_1(tag, m), GT_SLOTS_8(tag, __VA_ARGS__)
#define GT_SLOTS_10(tag, m, ...) GT_SLOTS_1(tag, m), GT_SLOTS_9(tag, __VA_ARGS__)
#define GT_SLOTS_11(tag, m, ...) GT_SLOTS_1(tag, m), GT_SLOTS_10(tag, __VA_ARGS__)
#define GT_SLOTS_12(tag, m, ...) GT_SLOTS_1(tag, m), GT_SLOTS_11(tag, __VA_ARGS__)
#define GT_SLOTS_13(tag, m, ...) GT_SLOTS_1(tag, m), GT_SLOTS_12(tag, __VA_ARGS__)

/* The slots of the operands that are present in a call, inputs before outputs. */
struct gt_binding {
	int nin, n;
	struct {
		uint16_t from, to; /* index of the operand; offset of the member */
	} slot[2 * GT_MAX_IO];
};

void gt_binding_make(struct gt_binding *b, const struct gt_operand_slot *slots, size_t n, const struct gt_opcall *call);

/* Sets the members to the addresses of a launch. The members of absent operands keep their values. */
static inline void gt_binding_apply(const struct gt_binding *b, void *args, void *const *in, void *const *out)
{
	int i = 0;
	for (; i < b->nin; i++)
		memcpy((char *)args + b->slot[i].to, &in[b->slot[i].from], sizeof *in);
	for (; i < b->n; i++)
		memcpy((char *)args + b->slot[i].to, &out[b->slot[i].from], sizeof *out);
}

/* Fails with GT_EUNAVAILABLE and a sentence: "conv2d (layer1.0.conv1) of f16 [32, 3, 32, 32]: not supported by the cpu backend". */
enum gt_code gt_opcall_refuse(const struct gt_opcall *call, struct gt_err *err, const char *why);

/* Returns the operand of a checked call whose channels are padded; NULL: no channels are padded. */
const struct gt_tdesc *gt_opcall_padded(const struct gt_opcall *call);

#endif
