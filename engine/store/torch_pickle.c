#include "store/torch_pickle.h"
#include "base/bytes.h"
#include <string.h>

enum {
	VALUES_MAX = 6000000, /* maximum number of values of a pickle, to limit the memory for an untrusted file. A tensor has about 12. */
	NAME_MAX_BYTES = 200  /* maximum length of the name of a module or class */
};

static const struct gt_torch_global known[] = {
    {"collections", "OrderedDict", GT_TORCH_DICT, -1},
    {"torch._utils", "_rebuild_tensor_v2", GT_TORCH_TENSOR, -1},
    {"torch._utils", "_rebuild_parameter", GT_TORCH_PARAMETER, -1},
    {"torch", "FloatStorage", GT_TORCH_STORAGE, GT_F32},
    {"torch", "DoubleStorage", GT_TORCH_STORAGE, GT_F64},
    {"torch", "HalfStorage", GT_TORCH_STORAGE, GT_F16},
    {"torch", "BFloat16Storage", GT_TORCH_STORAGE, GT_BF16},
    {"torch", "LongStorage", GT_TORCH_STORAGE, GT_I64},
    {"torch", "IntStorage", GT_TORCH_STORAGE, GT_I32},
    {"torch", "ByteStorage", GT_TORCH_STORAGE, GT_U8},
    {"torch", "ShortStorage", GT_TORCH_STORAGE, -1},
    {"torch", "CharStorage", GT_TORCH_STORAGE, -1},
    {"torch", "BoolStorage", GT_TORCH_STORAGE, -1},
    {"torch", "ComplexFloatStorage", GT_TORCH_STORAGE, -1},
    {"torch", "ComplexDoubleStorage", GT_TORCH_STORAGE, -1},
};

/* The state of the stack machine that executes a pickle. Its arrays are in the arena. */
struct machine {
	const unsigned char *p; /* [n] */
	size_t n, at;
	const char *path;
	struct gt_arena *a;
	struct gt_pickle_value **stack, **memo;
	int *mark; /* heights of the stack */
	int depth, stack_cap, marks, mark_cap, memos, memo_cap, values;
	bool ended;
};

/* Indices of constants[], the values that all pickles share. */
enum { NONE, FALSE, TRUE, NO_ITEMS };
static struct gt_pickle_value constants[] = {[NONE] = {.kind = GT_PICKLE_NONE},
                                             [FALSE] = {.kind = GT_PICKLE_BOOL, .number = 0},
                                             [TRUE] = {.kind = GT_PICKLE_BOOL, .number = 1},
                                             [NO_ITEMS] = {.kind = GT_PICKLE_TUPLE}};

static enum gt_code fail_damaged(const struct machine *m, const char *what, struct gt_err *err)
{
	return gt_fail(err, GT_EDATA,
	               "%s: expected a state dict that torch.save has written, got a file that cannot be read (byte %zu of its pickle: %s)",
	               m->path, m->at, what);
}

/* ---- the stack ------------------------------------------------------------ */

static enum gt_code push_value(struct machine *m, struct gt_pickle_value *v, struct gt_err *err)
{
	GT_TRY(gt_arena_grow(m->a, &m->stack, m->depth, &m->stack_cap, sizeof *m->stack, err));
	m->stack[m->depth++] = v;
	return GT_OK;
}

/* Pushes a new value of a kind, whose members the caller fills in *out. */
static enum gt_code push_new(struct machine *m, enum gt_pickle_kind kind, struct gt_pickle_value **out, struct gt_err *err)
{
	if (++m->values > VALUES_MAX)
		return fail_damaged(m, "too many values", err);
	GT_NEW(*out, m->a, 1, err);
	(*out)->kind = kind;
	return push_value(m, *out, err);
}

/* Pops the top of the stack into *out. Fails if there is no value above the last mark. */
static enum gt_code pop_value(struct machine *m, struct gt_pickle_value **out, struct gt_err *err)
{
	*out = NULL;
	if (m->depth <= (m->marks ? m->mark[m->marks - 1] : 0))
		return fail_damaged(m, "the stack is empty", err);
	*out = m->stack[--m->depth];
	return GT_OK;
}

/* Pops the values above the last mark, and the mark itself. *v points to these values until the next push. */
static enum gt_code pop_marked(struct machine *m, struct gt_pickle_value ***v, int *n, struct gt_err *err)
{
	if (!m->marks)
		return fail_damaged(m, "a mark is missing", err);
	int from = m->mark[--m->marks];
	*n = m->depth - from;
	*v = m->depth ? m->stack + from : NULL;
	m->depth = from;
	return GT_OK;
}

/* Sets *out to the next n bytes of the pickle and moves past them. */
static enum gt_code take_bytes(struct machine *m, uint64_t n, const unsigned char **out, struct gt_err *err)
{
	*out = m->p + m->at;
	if (n > m->n - m->at)
		return fail_damaged(m, "it is cut", err);
	m->at += (size_t)n;
	return GT_OK;
}

/* ---- opcodes: arg is the integer that follows the opcode ------------------------------------------------------------ */

static enum gt_code check_protocol(struct machine *m, uint64_t arg, struct gt_err *err)
{
	return arg >= 2 && arg <= 5 ? GT_OK : fail_damaged(m, "an unknown protocol", err);
}

static enum gt_code skip_frame(struct machine *m, uint64_t arg, struct gt_err *err)
{
	return arg <= m->n - m->at ? GT_OK : fail_damaged(m, "it is cut", err);
}

static enum gt_code end_pickle(struct machine *m, uint64_t arg, struct gt_err *err)
{
	(void)arg;
	m->ended = true;
	return m->depth == 1 && !m->marks ? GT_OK : fail_damaged(m, "it does not end with exactly one value", err);
}

static enum gt_code push_mark(struct machine *m, uint64_t arg, struct gt_err *err)
{
	(void)arg;
	GT_TRY(gt_arena_grow(m->a, &m->mark, m->marks, &m->mark_cap, sizeof *m->mark, err));
	m->mark[m->marks++] = m->depth;
	return GT_OK;
}

static enum gt_code push_constant(struct machine *m, uint64_t arg, struct gt_err *err)
{
	return push_value(m, &constants[arg], err);
}

/* Pushes an empty list or dict. */
static enum gt_code push_empty(struct machine *m, uint64_t arg, struct gt_err *err)
{
	struct gt_pickle_value *v;
	return push_new(m, (enum gt_pickle_kind)arg, &v, err);
}

static enum gt_code push_int(struct machine *m, uint64_t arg, struct gt_err *err)
{
	struct gt_pickle_value *v;
	GT_TRY(push_new(m, GT_PICKLE_INT, &v, err));
	v->number = (int64_t)arg;
	return GT_OK;
}

static enum gt_code push_signed(struct machine *m, uint64_t arg, struct gt_err *err)
{
	return push_int(m, (uint64_t)(int64_t)(int32_t)(uint32_t)arg, err);
}

/* Pushes an integer, whose arg bytes follow in two's complement. */
static enum gt_code push_long(struct machine *m, uint64_t arg, struct gt_err *err)
{
	const unsigned char *p;
	GT_TRY(take_bytes(m, arg, &p, err));
	if (arg > 8)
		return fail_damaged(m, "an integer of more than 64 bits", err);
	uint64_t v = gt_get_le(p, arg);
	if (arg && arg < 8 && p[arg - 1] & 0x80)
		v |= ~(uint64_t)0 << 8 * arg;
	return push_int(m, v, err);
}

static enum gt_code push_float(struct machine *m, uint64_t arg, struct gt_err *err)
{
	struct gt_pickle_value *v;
	uint64_t big_endian = __builtin_bswap64(arg);
	GT_TRY(push_new(m, GT_PICKLE_FLOAT, &v, err));
	memcpy(&v->real, &big_endian, sizeof v->real);
	return GT_OK;
}

/* Pushes a text, whose arg bytes follow. */
static enum gt_code push_text(struct machine *m, uint64_t arg, struct gt_err *err)
{
	const unsigned char *p;
	struct gt_pickle_value *v;
	char *copy;
	GT_TRY(take_bytes(m, arg, &p, err));
	GT_TRY(push_new(m, GT_PICKLE_TEXT, &v, err));
	GT_NEW(copy, m->a, arg + 1, err);
	memcpy(copy, p, arg);
	v->text.bytes = copy;
	v->text.len = (size_t)arg;
	return GT_OK;
}

static enum gt_code push_tuple(struct machine *m, struct gt_pickle_value *const *from, int n, struct gt_err *err)
{
	struct gt_pickle_value *v, **copy;
	GT_NEW(copy, m->a, n, err);
	for (int i = 0; i < n; i++)
		copy[i] = from[i];
	GT_TRY(push_new(m, GT_PICKLE_TUPLE, &v, err));
	v->tuple.v = copy;
	v->tuple.n = n;
	return GT_OK;
}

static enum gt_code push_marked_tuple(struct machine *m, uint64_t arg, struct gt_err *err)
{
	struct gt_pickle_value **v = NULL;
	int n = 0;
	(void)arg;
	GT_TRY(pop_marked(m, &v, &n, err));
	return push_tuple(m, v, n, err);
}

/* Replaces the arg values (1 ... 3) on top of the stack by a tuple of them. */
static enum gt_code push_short_tuple(struct machine *m, uint64_t arg, struct gt_err *err)
{
	struct gt_pickle_value *v[3];
	for (uint64_t i = arg; i-- > 0;)
		GT_TRY(pop_value(m, &v[i], err));
	return push_tuple(m, v, (int)arg, err);
}

/* Adds n values to the list or dict on top of the stack. step: 1 for a list; 2 for a dict, for which keys and values alternate. */
static enum gt_code add_items(struct machine *m, struct gt_pickle_value *const *v, int n, int step, struct gt_err *err)
{
	struct gt_pickle_value *to = m->depth ? m->stack[m->depth - 1] : &constants[NONE];
	if (to->kind != (step == 1 ? GT_PICKLE_LIST : GT_PICKLE_DICT) || n % step)
		return fail_damaged(m, "items of an object that has no items", err);
	for (int i = 0; i < n; i += step) {
		struct gt_pickle_item *item;
		if (++m->values > VALUES_MAX)
			return fail_damaged(m, "too many values", err);
		GT_NEW(item, m->a, 1, err);
		item->key = step == 2 ? v[i] : NULL;
		item->value = v[i + step - 1];
		if (to->items.last)
			to->items.last->next = item;
		else
			to->items.first = item;
		to->items.last = item;
	}
	return GT_OK;
}

/* Pops an item (arg values: 1 of a list, 2 of a dict) and adds it to the list or dict below it. */
static enum gt_code add_item(struct machine *m, uint64_t arg, struct gt_err *err)
{
	struct gt_pickle_value *v[2];
	for (uint64_t i = arg; i-- > 0;)
		GT_TRY(pop_value(m, &v[i], err));
	return add_items(m, v, (int)arg, (int)arg, err);
}

static enum gt_code add_marked_items(struct machine *m, uint64_t arg, struct gt_err *err)
{
	struct gt_pickle_value **v = NULL;
	int n = 0;
	GT_TRY(pop_marked(m, &v, &n, err));
	return add_items(m, v, n, (int)arg, err);
}

static enum gt_code get_memo(struct machine *m, uint64_t arg, struct gt_err *err)
{
	if (arg >= (uint64_t)m->memos)
		return fail_damaged(m, "a reference to a value that was not stored", err);
	return push_value(m, m->memo[arg], err);
}

/* Stores the top of the stack in the memo under the number arg. Python numbers stored values from 0 without gaps. */
static enum gt_code put_memo(struct machine *m, uint64_t arg, struct gt_err *err)
{
	if (!m->depth || arg > (uint64_t)m->memos)
		return fail_damaged(m, "a value is stored out of order", err);
	if (arg == (uint64_t)m->memos) {
		GT_TRY(gt_arena_grow(m->a, &m->memo, m->memos, &m->memo_cap, sizeof *m->memo, err));
		m->memos++;
	}
	m->memo[arg] = m->stack[m->depth - 1];
	return GT_OK;
}

static enum gt_code put_next_memo(struct machine *m, uint64_t arg, struct gt_err *err)
{
	(void)arg;
	return put_memo(m, (uint64_t)m->memos, err);
}

/* ---- names and calls ------------------------------------------------------------ */

static enum gt_code push_named(struct machine *m, const char *module, const char *name, struct gt_err *err)
{
	struct gt_pickle_value *v;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (strcmp(known[i].module, module) != 0 || strcmp(known[i].name, name) != 0)
			continue;
		GT_TRY(push_new(m, GT_PICKLE_GLOBAL, &v, err));
		v->global = &known[i];
		return GT_OK;
	}
	return gt_fail(err, GT_EDATA,
	               "%s: expected a state dict, which has tensors, numbers and texts, got the Python object %.200s.%.200s; save only the "
	               "weights: torch.save(model.state_dict(), \"weights.pth\")", m->path, module, name);
}

/* Reads a line of text from the pickle, without its end, into out. */
static enum gt_code take_line(struct machine *m, char out[NAME_MAX_BYTES + 1], struct gt_err *err)
{
	const unsigned char *p = m->p + m->at, *end = memchr(p, '\n', m->n - m->at);
	if (!end || end - p > NAME_MAX_BYTES || memchr(p, 0, (size_t)(end - p)))
		return fail_damaged(m, "a name without an end", err);
	memcpy(out, p, (size_t)(end - p));
	out[end - p] = '\0';
	m->at += (size_t)(end - p) + 1;
	return GT_OK;
}

static enum gt_code push_global(struct machine *m, uint64_t arg, struct gt_err *err)
{
	char module[NAME_MAX_BYTES + 1], name[NAME_MAX_BYTES + 1];
	(void)arg;
	GT_TRY(take_line(m, module, err));
	GT_TRY(take_line(m, name, err));
	return push_named(m, module, name, err);
}

static enum gt_code push_stack_global(struct machine *m, uint64_t arg, struct gt_err *err)
{
	struct gt_pickle_value *module, *name;
	(void)arg;
	GT_TRY(pop_value(m, &name, err));
	GT_TRY(pop_value(m, &module, err));
	if (module->kind != GT_PICKLE_TEXT || name->kind != GT_PICKLE_TEXT)
		return fail_damaged(m, "a name that is not text", err);
	return push_named(m, module->text.bytes, name->text.bytes, err);
}

static bool is_kind(const struct gt_pickle_value *tuple, int i, enum gt_pickle_kind kind)
{
	return i < tuple->tuple.n && tuple->tuple.v[i]->kind == kind;
}

static bool are_ints(const struct gt_pickle_value *tuple)
{
	for (int i = 0; i < tuple->tuple.n; i++)
		if (!is_kind(tuple, i, GT_PICKLE_INT))
			return false;
	return true;
}

/* Pushes the tensor that the call _rebuild_tensor_v2(storage, offset, shape, stride, requires_grad, hooks[, metadata]) makes in PyTorch. */
static enum gt_code push_tensor(struct machine *m, const struct gt_pickle_value *args, struct gt_err *err)
{
	struct gt_pickle_value *v;
	if (!is_kind(args, 0, GT_PICKLE_STORAGE) || !is_kind(args, 1, GT_PICKLE_INT) || !is_kind(args, 2, GT_PICKLE_TUPLE) ||
	    !is_kind(args, 3, GT_PICKLE_TUPLE) || !are_ints(args->tuple.v[2]) || !are_ints(args->tuple.v[3]) ||
	    args->tuple.v[2]->tuple.n != args->tuple.v[3]->tuple.n)
		return fail_damaged(m, "a tensor without storage, shape or strides", err);
	GT_TRY(push_new(m, GT_PICKLE_TENSOR, &v, err));
	v->tensor.storage = args->tuple.v[0];
	v->tensor.offset = args->tuple.v[1]->number;
	v->tensor.shape = args->tuple.v[2];
	v->tensor.stride = args->tuple.v[3];
	return GT_OK;
}

static enum gt_code reduce_call(struct machine *m, uint64_t arg, struct gt_err *err)
{
	struct gt_pickle_value *args, *f;
	(void)arg;
	GT_TRY(pop_value(m, &args, err));
	GT_TRY(pop_value(m, &f, err));
	if (f->kind != GT_PICKLE_GLOBAL || args->kind != GT_PICKLE_TUPLE)
		return fail_damaged(m, "a call of an object that is not a function", err);
	if (f->global->role == GT_TORCH_DICT && !args->tuple.n)
		return push_empty(m, GT_PICKLE_DICT, err);
	if (f->global->role == GT_TORCH_TENSOR)
		return push_tensor(m, args, err);
	if (f->global->role == GT_TORCH_PARAMETER && is_kind(args, 0, GT_PICKLE_TENSOR))
		return push_value(m, args->tuple.v[0], err);
	return fail_damaged(m, "a call with arguments that torch.save does not write", err);
}

/* Pops and ignores the attributes of the OrderedDict below them on the stack, such as the _metadata of a state dict. */
static enum gt_code drop_state(struct machine *m, uint64_t arg, struct gt_err *err)
{
	struct gt_pickle_value *state;
	(void)arg;
	GT_TRY(pop_value(m, &state, err));
	if (!m->depth || m->stack[m->depth - 1]->kind != GT_PICKLE_DICT || state->kind != GT_PICKLE_DICT)
		return fail_damaged(m, "attributes of an object that has no attributes", err);
	return GT_OK;
}

/* Pushes a storage, which has the data of tensors outside of the pickle. The stack has its tuple ("storage", type, key, device, number of
 * elements). */
static enum gt_code push_storage(struct machine *m, uint64_t arg, struct gt_err *err)
{
	struct gt_pickle_value *id, *v;
	(void)arg;
	GT_TRY(pop_value(m, &id, err));
	if (id->kind != GT_PICKLE_TUPLE || !is_kind(id, 0, GT_PICKLE_TEXT) || strcmp(id->tuple.v[0]->text.bytes, "storage") != 0 ||
	    !is_kind(id, 1, GT_PICKLE_GLOBAL) || id->tuple.v[1]->global->role != GT_TORCH_STORAGE || !is_kind(id, 2, GT_PICKLE_TEXT) ||
	    !is_kind(id, 4, GT_PICKLE_INT))
		return fail_damaged(m, "a storage of a kind that torch.save does not write", err);
	GT_TRY(push_new(m, GT_PICKLE_STORAGE, &v, err));
	v->storage.type = id->tuple.v[1]->global;
	v->storage.key = id->tuple.v[2]->text.bytes;
	v->storage.count = id->tuple.v[4]->number;
	return GT_OK;
}

/* ---- the loop ------------------------------------------------------------ */

static const struct opcode {
	unsigned char code, bytes; /* size in bytes of the integer after the opcode, which `run` gets as arg; 0: arg is `constant` */
	int constant;
	enum gt_code (*run)(struct machine *m, uint64_t arg, struct gt_err *err);
} opcodes[] = {
    {0x80, 1, 0, check_protocol},
    {0x95, 8, 0, skip_frame},
    {'.', 0, 0, end_pickle},
    {'(', 0, 0, push_mark},
    {'N', 0, NONE, push_constant},
    {0x88, 0, TRUE, push_constant},
    {0x89, 0, FALSE, push_constant},
    {')', 0, NO_ITEMS, push_constant},
    {'K', 1, 0, push_int},
    {'M', 2, 0, push_int},
    {'J', 4, 0, push_signed},
    {0x8a, 1, 0, push_long},
    {'G', 8, 0, push_float},
    {'X', 4, 0, push_text},
    {0x8c, 1, 0, push_text},
    {0x8d, 8, 0, push_text},
    {']', 0, GT_PICKLE_LIST, push_empty},
    {'}', 0, GT_PICKLE_DICT, push_empty},
    {'t', 0, 0, push_marked_tuple},
    {0x85, 0, 1, push_short_tuple},
    {0x86, 0, 2, push_short_tuple},
    {0x87, 0, 3, push_short_tuple},
    {'a', 0, 1, add_item},
    {'e', 0, 1, add_marked_items},
    {'s', 0, 2, add_item},
    {'u', 0, 2, add_marked_items},
    {'h', 1, 0, get_memo},
    {'j', 4, 0, get_memo},
    {'q', 1, 0, put_memo},
    {'r', 4, 0, put_memo},
    {0x94, 0, 0, put_next_memo},
    {'c', 0, 0, push_global},
    {0x93, 0, 0, push_stack_global},
    {'R', 0, 0, reduce_call},
    {'b', 0, 0, drop_state},
    {'Q', 0, 0, push_storage},
};

static enum gt_code run_opcode(struct machine *m, struct gt_err *err)
{
	const unsigned char *code, *arg;
	GT_TRY(take_bytes(m, 1, &code, err));
	for (size_t i = 0; i < sizeof opcodes / sizeof *opcodes; i++) {
		if (opcodes[i].code != *code)
			continue;
		GT_TRY(take_bytes(m, opcodes[i].bytes, &arg, err));
		return opcodes[i].run(m, opcodes[i].bytes ? gt_get_le(arg, opcodes[i].bytes) : (uint64_t)opcodes[i].constant, err);
	}
	return fail_damaged(m, "an opcode that no state dict needs", err);
}

enum gt_code gt_pickle_read(const unsigned char *p, size_t n, const char *path, struct gt_arena *a, const struct gt_pickle_value **out,
                            struct gt_err *err)
{
	struct machine m = {.p = p, .n = n, .path = path, .a = a};
	while (!m.ended)
		GT_TRY(run_opcode(&m, err));
	*out = m.stack[0];
	return GT_OK;
}

const char *gt_pickle_kind_text(const struct gt_pickle_value *v)
{
	static const char *const text[] = {
#define GT_X(kind, text) text,
	    GT_PICKLE_KINDS(GT_X)
#undef GT_X
	};
	return text[v->kind];
}

const struct gt_pickle_value *gt_pickle_get(const struct gt_pickle_value *v, const char *key)
{
	for (const struct gt_pickle_item *i = v->kind == GT_PICKLE_DICT ? v->items.first : NULL; i; i = i->next)
		if (i->key->kind == GT_PICKLE_TEXT && !strcmp(i->key->text.bytes, key))
			return i->value;
	return NULL;
}
