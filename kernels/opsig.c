/* Reads the signatures of opcall.h, and checks calls with them. */
#include "opsig.h"
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct gt_attr_none {
	char unused[0];
};

#define UPDATE_ATTR_PLAIN gt_attr_update
#define UPDATE_ATTR_FIRST_NESTEROV gt_attr_update
#define UPDATE_ATTR_NORMS gt_attr_update
#define UPDATE_ATTR_MATRIX gt_attr_muon

static const struct {
	const char *text;
	size_t attr_size;
} rows[GT_OP_COUNT] = {
#define GT_X(code, name, family, attr, text) [code] = {text, sizeof(struct gt_attr_##attr)},
	GT_OPCODES(GT_X)
#undef GT_X
#define GT_X(NAME, name, s0, s1, s2, loops) \
	[GT_OP_##NAME] = {"p:f(E)! g:f(E) " GT_STATE_SIG_##s0 GT_STATE_SIG_##s1 GT_STATE_SIG_##s2 "[scalars:f64(SCALARS)!] [work:any(E)!] ->", \
	                  sizeof(struct UPDATE_ATTR_##loops)},
	GT_UPDATES(GT_X)
#undef GT_X
};

size_t gt_opcode_attr_size(enum gt_opcode code)
{
	return rows[code].attr_size;
}

/* ---- reader ------------------------------------------------------------------------------------------------------------------------- */
static int read_type(const char *s, size_t n)
{
	static const struct {
		const char *word;
		int type;
	} words[] = {{"w", GT_OPERAND_WEIGHT}, {"f", GT_OPERAND_PARAM}, {"any", GT_OPERAND_ANY}};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i].word) == n && !memcmp(words[i].word, s, n))
			return words[i].type;
	for (int t = 0; t < GT_DTYPE_COUNT; t++)
		if (strlen(gt_dtype_name((enum gt_dtype)t)) == n && !memcmp(gt_dtype_name((enum gt_dtype)t), s, n))
			return GT_OPERAND_DTYPE + t;
	assert(!"a type of the signatures");
	return GT_OPERAND_ANY;
}

static int64_t read_dim(const char *s, size_t n)
{
	static const struct {
		const char *word;
		int64_t size;
	} words[] = {{"SCALARS", GT_SCALARS_WORDS}, {"SCALER", GT_SCALER_WORDS}};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (strlen(words[i].word) == n && !memcmp(words[i].word, s, n))
			return words[i].size;
	if (*s >= '1' && *s <= '9')
		return strtoll(s, NULL, 10);
	assert(n == 1 && (*s == '_' || (*s >= 'A' && *s <= 'Z')));
	return *s == '_' ? GT_DIM_FREE : -*s;
}

/* Reads one operand at s; returns a pointer to the next operand. */
static const char *read_operand(const char *s, struct gt_operand *o)
{
	*o = (struct gt_operand){.optional = *s == '['};
	s += o->optional;
	size_t n = strcspn(s, ":(]!+*~ ");
	assert(n && n < sizeof o->name);
	memcpy(o->name, s, n);
	s += n;
	if (*s == ':') {
		n = strcspn(++s, "(]!+*~ ");
		o->type = read_type(s, n);
		s += n;
	}
	if (*s == '(') {
		o->shaped = true;
		for (s++; *s != ')'; s += *s == ',') {
			n = strcspn(s, ",)");
			if (n == 2 && !memcmp(s, "..", 2))
				o->rest = true;
			else
				o->dim[o->ndim++] = read_dim(s, n);
			s += n;
		}
		s++;
	}
	for (; *s && *s != ' '; s++) {
		assert(strchr("!+*~]", *s));
		o->updated |= *s == '!';
		o->added |= *s == '+';
		o->repeated |= *s == '*';
		o->padded |= *s == '~';
	}
	return s + strspn(s, " ");
}

void gt_opsig_read(enum gt_opcode code, struct gt_opsig *out)
{
	const char *s = rows[code].text;
	out->nin = out->nout = 0;
	while (strncmp(s, "->", 2))
		s = read_operand(s, &out->in[out->nin++]);
	for (s += strspn(s, "-> "); *s;)
		s = read_operand(s, &out->out[out->nout++]);
	assert(out->nin <= GT_MAX_IO && out->nout <= GT_MAX_IO);
}

static const struct gt_operand *operand_at(const struct gt_operand *o, int n, int i)
{
	return i < n ? &o[i] : n && o[n - 1].repeated ? &o[n - 1] : NULL;
}

const struct gt_operand *gt_opsig_input(const struct gt_opsig *sig, int i)
{
	return operand_at(sig->in, sig->nin, i);
}

const struct gt_operand *gt_opsig_output(const struct gt_opsig *sig, int i)
{
	return operand_at(sig->out, sig->nout, i);
}

/* ---- checking -------------------------------------------------------------------------------------------------------------- */
/* Dtypes and sizes that the already checked operands determine. */
struct bound {
	const struct gt_opcall *call;
	int compute;         /* enum gt_dtype of the activations; -1: not known */
	int param;           /* dtype of operands of type f; -1: not known */
	int64_t letter[26];  /* size for which each letter of the signature stands; 0: not known */
	int64_t rest[GT_MAX_RANK];
	int nrest;           /* -1: not known */
};

static bool is_float(enum gt_dtype t)
{
	return t == GT_F32 || t == GT_BF16 || t == GT_F16 || t == GT_F64;
}

/* Returns whether operand o may have dtype t, and stores in b the dtypes that follow from it. */
static bool fits_type(const struct gt_operand *o, enum gt_dtype t, struct bound *b)
{
	switch (o->type) {
	case GT_OPERAND_ANY:
		return true;
	case GT_OPERAND_ACT:
	case GT_OPERAND_WEIGHT:
		if (b->compute < 0 && is_float(t) && (b->param < 0 || (t == GT_F64) == (b->param == GT_F64)))
			b->compute = t;
		if (b->compute >= 0)
			b->param = b->compute == GT_F64 ? GT_F64 : GT_F32;
		return (int)t == b->compute;
	case GT_OPERAND_PARAM:
		if (b->param < 0 && (t == GT_F32 || t == GT_F64))
			b->param = t;
		return (int)t == b->param;
	default:
		return (int)t == o->type - GT_OPERAND_DTYPE;
	}
}

static bool fits_shape(const struct gt_operand *o, const struct gt_tdesc *d, struct bound *b)
{
	if (!o->shaped)
		return true;
	if (!o->ndim && !o->rest)
		return gt_tdesc_count(d) == 1;
	if (o->rest ? d->rank < o->ndim : d->rank != o->ndim)
		return false;
	if (o->type == GT_OPERAND_ACT && o->rest && o->ndim == 2 && o->dim[1] < 0 && d->rank == 3) /* (N,C,..): see opcall.h */
		return false;
	for (int i = 0; i < o->ndim; i++) {
		int64_t want = o->dim[i];
		if (want < 0) {
			int64_t *size = &b->letter[-want - 'A'];
			*size = *size ? *size : d->dim[i];
			want = *size;
		}
		if (want != GT_DIM_FREE && want != d->dim[i])
			return false;
	}
	if (!o->rest)
		return true;
	if (b->nrest < 0) {
		b->nrest = d->rank - o->ndim;
		memcpy(b->rest, d->dim + o->ndim, (size_t)b->nrest * sizeof *b->rest);
	}
	return d->rank - o->ndim == b->nrest && !memcmp(b->rest, d->dim + o->ndim, (size_t)b->nrest * sizeof *b->rest);
}

/* Returns whether operand o may have d's layout. If the operand needs the standard layout and its layout is open, sets the standard layout.
 * Vectors of type f have no padding. */
static bool fits_layout(const struct gt_operand *o, struct gt_tdesc *d)
{
	if (o->type == GT_OPERAND_PARAM && d->rank < 2)
		return !d->layout.nblk;
	if (o->type == GT_OPERAND_WEIGHT || o->type == GT_OPERAND_PARAM || o->type == GT_OPERAND_ANY)
		return true;
	struct gt_tdesc want = gt_tdesc_make(d->dtype, d->rank, d->dim, true);
	if (d->any)
		*d = want;
	if (o->padded && d->rank == 4 && d->layout.nblk)
		want = gt_tdesc_pad_channels(&want, GT_CHANNEL_PAD);
	return gt_tdesc_equal(d, &want) && (o->type != GT_OPERAND_ACT || d->rank <= 4);
}

static enum gt_code fail_operand(const struct bound *b, const struct gt_operand *o, const char *what, struct gt_err *err)
{
	return gt_fail(err, GT_EINTERNAL, "%s (%s): operand %s: %s", gt_opcode_name(b->call->code), b->call->name ? b->call->name : "?",
	               o->name, what);
}

static void put_dim(char *buf, size_t size, size_t *n, int64_t dim, const struct bound *b)
{
	const char *comma = *n > 1 ? ", " : "";
	int64_t known = dim < 0 ? b->letter[-dim - 'A'] : dim;
	if (*n + 32 > size)
		return;
	if (known)
		*n += (size_t)snprintf(buf + *n, size - *n, "%s%lld", comma, (long long)known);
	else
		*n += (size_t)snprintf(buf + *n, size - *n, "%s%c", comma, dim < 0 ? (char)-dim : '_');
}

/* Writes the required shape of the operand, with letters for unknown sizes: "[4, C, 5, 5]". */
static void expected_shape(const struct gt_operand *o, const struct bound *b, char *buf, size_t size)
{
	size_t n = 0;
	if (!o->shaped || (!o->ndim && !o->rest)) {
		snprintf(buf, size, "%s", o->shaped ? "one element" : "any shape");
		return;
	}
	buf[n++] = '[';
	for (int i = 0; i < o->ndim; i++)
		put_dim(buf, size, &n, o->dim[i], b);
	for (int i = 0; o->rest && i < b->nrest; i++)
		put_dim(buf, size, &n, b->rest[i], b);
	if (o->rest && b->nrest < 0)
		n += (size_t)snprintf(buf + n, size - n, "%s..", n > 1 ? ", " : "");
	snprintf(buf + n, size - n, "]");
}

static enum gt_code check_operand(const struct gt_operand *o, struct gt_tdesc *d, struct bound *b, struct gt_err *err)
{
	char want[160], shape[96], text[360];
	if (!d)
		return o->optional ? GT_OK : fail_operand(b, o, "it is required", err);
	bool type = fits_type(o, d->dtype, b);
	if (type && fits_shape(o, d, b))
		return fits_layout(o, d) ? GT_OK : fail_operand(b, o, "expected the standard layout: channels last for rank 4, else plain", err);
	int known = o->type >= GT_OPERAND_DTYPE ? o->type - GT_OPERAND_DTYPE : o->type == GT_OPERAND_PARAM ? b->param : b->compute;
	expected_shape(o, b, want, sizeof want);
	snprintf(text, sizeof text, "expected %s %s, got %s %s",
	         o->type == GT_OPERAND_ANY ? "any type," : known < 0 ? "floating point" : gt_dtype_name((enum gt_dtype)known), want,
	         gt_dtype_name(d->dtype), gt_tdesc_text(d, shape, sizeof shape));
	return fail_operand(b, o, text, err);
}

/* Checks all inputs or all outputs of a call. */
static enum gt_code check_list(const struct gt_operand *o, int no, struct gt_tdesc *const *d, int n, struct bound *b, struct gt_err *err)
{
	if (n > no && !(no && o[no - 1].repeated))
		return gt_fail(err, GT_EINTERNAL, "%s (%s): expected at most %d %s, got %d", gt_opcode_name(b->call->code),
		               b->call->name ? b->call->name : "?", no, d == b->call->in ? "inputs" : "outputs", n);
	for (int i = 0; i < n || i < no; i++)
		GT_TRY(check_operand(operand_at(o, no, i), i < n ? d[i] : NULL, b, err));
	return GT_OK;
}

enum gt_code gt_opcall_check(const struct gt_opcall *call, struct gt_err *err)
{
	struct bound b = {.call = call, .compute = -1, .param = -1, .nrest = -1};
	struct gt_opsig sig;
	if ((unsigned)call->code >= GT_OP_COUNT)
		return gt_fail(err, GT_EINTERNAL, "operation code %d", (int)call->code);
	gt_opsig_read(call->code, &sig);
	GT_TRY(check_list(sig.in, sig.nin, call->in, call->nin, &b, err));
	GT_TRY(check_list(sig.out, sig.nout, call->out, call->nout, &b, err));
	for (int i = 0; i < call->nout; i++)
		if (call->accumulate & 1u << i && !gt_opsig_output(&sig, i)->added)
			return fail_operand(&b, gt_opsig_output(&sig, i), "this operand cannot be accumulated", err);
	return GT_OK;
}

/* ---- operands by name --------------------------------------------------------------------------------------------------------------- */
/* Returns whether any operation has an operand of this name. */
static bool is_operand_name(const char *name)
{
	size_t n = strlen(name);
	for (int code = 0; code < GT_OP_COUNT; code++)
		for (const char *text = rows[code].text, *s = text; (s = strstr(s, name)); s++)
			if ((s == text || s[-1] == ' ' || s[-1] == '[') && strchr(":(]!+*~ ", s[n]))
				return true;
	return false;
}

/* Returns the index of the operand `name` in the list at s, or -1. */
static int find_name(const char *s, const char *name)
{
	size_t n = strlen(name);
	for (int i = 0; *s && *s != '-'; i++) {
		s += *s == '[';
		if (!strncmp(s, name, n) && strchr(":(]!+*~ ", s[n]))
			return i;
		s += strcspn(s, " ");
		s += strspn(s, " ");
	}
	return -1;
}

int gt_opsig_find_input(enum gt_opcode code, const char *name)
{
	return find_name(rows[code].text, name);
}

int gt_opsig_find_output(enum gt_opcode code, const char *name)
{
	const char *outputs = strstr(rows[code].text, "->") + 2;
	return find_name(outputs + strspn(outputs, " "), name);
}

static int find_input(const struct gt_opcall *call, const char *name)
{
	int i = gt_opsig_find_input(call->code, name);
	return i >= 0 && i < call->nin && call->in[i] ? i : -1;
}

static int find_output(const struct gt_opcall *call, const char *name)
{
	int i = gt_opsig_find_output(call->code, name);
	return i >= 0 && i < call->nout && call->out[i] ? i : -1;
}

struct gt_tdesc *gt_opcall_operand(const struct gt_opcall *call, const char *name)
{
	int in = find_input(call, name), out = in < 0 ? find_output(call, name) : -1;
	assert(in >= 0 || out >= 0 || is_operand_name(name));
	return in >= 0 ? call->in[in] : out >= 0 ? call->out[out] : NULL;
}

struct gt_tdesc *gt_opcall_input(const struct gt_opcall *call)
{
	return call->nin ? call->in[0] : NULL;
}

struct gt_tdesc *gt_opcall_output(const struct gt_opcall *call)
{
	return call->nout ? call->out[0] : NULL;
}

bool gt_opcall_adds(const struct gt_opcall *call, const char *name)
{
	int out = find_output(call, name);
	return out >= 0 && call->accumulate & 1u << out;
}

void gt_binding_make(struct gt_binding *b, const struct gt_operand_slot *slots, size_t n, const struct gt_opcall *call)
{
	b->n = 0;
	for (int outputs = 0; outputs < 2; outputs++) {
		b->nin = b->n;
		for (size_t i = 0; i < n; i++) {
			int from = outputs ? find_output(call, slots[i].name) : find_input(call, slots[i].name);
			assert(from >= 0 || is_operand_name(slots[i].name));
			if (from < 0)
				continue;
			assert(b->n < 2 * GT_MAX_IO && slots[i].at <= UINT16_MAX);
			b->slot[b->n].from = (uint16_t)from;
			b->slot[b->n++].to = (uint16_t)slots[i].at;
		}
	}
}

enum gt_code gt_opcall_refuse(const struct gt_opcall *call, struct gt_err *err, const char *why)
{
	char shape[96] = "";
	const struct gt_tdesc *in = gt_opcall_input(call), *d = in ? in : gt_opcall_output(call);
	if (d)
		gt_tdesc_text(d, shape, sizeof shape);
	return gt_fail(err, GT_EUNAVAILABLE, "%s (%s) of %s %s: %s", gt_opcode_name(call->code), call->name ? call->name : "?",
	               d ? gt_dtype_name(d->dtype) : "", shape, why);
}

const struct gt_tdesc *gt_opcall_padded(const struct gt_opcall *call)
{
	struct gt_opsig sig;
	gt_opsig_read(call->code, &sig);
	for (int i = 0; i < call->nin + call->nout; i++) {
		bool in = i < call->nin;
		const struct gt_operand *o = in ? gt_opsig_input(&sig, i) : gt_opsig_output(&sig, i - call->nin);
		const struct gt_tdesc *d = in ? call->in[i] : call->out[i - call->nin];
		if (o->padded && d && d->layout.nblk)
			return d;
	}
	return NULL;
}
