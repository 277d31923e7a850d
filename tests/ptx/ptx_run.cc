/* Instructions that touch memory or other threads, and the execution of a thread. */
#include "ptx_thread.hh"
#include "cuda_runtime.h"
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <memory>

using std::string;
using std::vector;

/* The accesses to a byte of shared memory since the last barrier of the block. */
struct access {
	uint64_t serial = 0;              /* of the block that made them */
	int writer = -1, reader = -1;     /* number of the last thread; SEVERAL: readers of one warp that nothing orders */
	int readers_warp = -1;            /* SEVERAL: readers of several warps */
	uint32_t write_block, write_warp; /* numbers of the barriers that the thread had passed then */
	uint32_t read_block, read_warp;
};
#define SEVERAL (-2)

struct region {
	char *memory = NULL;
	size_t size = 0;
	uint64_t serial = 0; /* of the block that uses it: what another one did is forgotten when a byte is used again */
	vector<access> at;
	access &of(size_t byte)
	{
		access &a = at[byte];
		if (a.serial != serial) {
			a = access();
			a.serial = serial;
		}
		return a;
	}
};

struct ptx_block {
	region fixed; /* variables of the kernel */
	vector<char> storage;
	uint64_t serial = 0;
};

static ptx_block block; /* that runs */

void ptx_die(const ptx_kernel *k, int line, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	fprintf(stderr, "ptx: %s:%d: %s (thread %u,%u,%u of block %u,%u,%u): ", k->file.c_str(), line, k->name.c_str(), threadIdx.x,
	        threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z);
	vfprintf(stderr, format, list);
	fputc('\n', stderr);
	va_end(list);
	abort();
}

/* ---- races in shared memory ------------------------------------------------------------------------------------------------------ */
/* Returns whether a barrier orders an access that thread `other` made after block_syncs and warp_syncs barriers before one of t now. */
static bool ordered(const ptx_thread &t, int other, uint32_t block_syncs, uint32_t warp_syncs)
{
	return other == t.number || block_syncs != t.block_syncs || (other / 32 == t.warp && warp_syncs != t.warp_syncs);
}

static void note_read(ptx_thread &t, const ptx_ins &i, access &a, size_t at)
{
	if (a.writer >= 0 && !ordered(t, a.writer, a.write_block, a.write_warp))
		ptx_die(t.kernel, i.line, "race: reads shared byte %zu, which thread %d writes without a barrier between", at, a.writer);
	if (a.reader == -1 || a.read_block != t.block_syncs) {
		a.readers_warp = t.warp;
		a.reader = t.number;
	} else {
		a.readers_warp = a.readers_warp == t.warp ? t.warp : SEVERAL;
		a.reader = a.reader == t.number || a.read_warp != t.warp_syncs ? t.number : SEVERAL;
	}
	a.read_block = t.block_syncs;
	a.read_warp = t.warp_syncs;
}

static void note_write(ptx_thread &t, const ptx_ins &i, access &a, size_t at, bool changes)
{
	bool read = a.reader != -1 && a.read_block == t.block_syncs,
	     alone = a.readers_warp == t.warp && (a.reader == t.number || a.read_warp != t.warp_syncs);
	if (changes && a.writer >= 0 && !ordered(t, a.writer, a.write_block, a.write_warp))
		ptx_die(t.kernel, i.line, "race: writes shared byte %zu, which thread %d writes without a barrier between", at, a.writer);
	if (changes && read && !alone)
		ptx_die(t.kernel, i.line, "race: writes shared byte %zu, which another thread reads without a barrier between", at);
	a.writer = t.number;
	a.write_block = t.block_syncs;
	a.write_warp = t.warp_syncs;
}

/* ---- addresses ------------------------------------------------------------------------------------------------------------------- */
static region *region_of(ptx_thread &t, const ptx_ins &i, uint64_t address, size_t bytes, size_t *at)
{
	region *r = &t.block->fixed;
	*at = (size_t)address;
	if (*at + bytes > r->size)
		ptx_die(t.kernel, i.line, "shared address %zu is outside of the kernel's %zu bytes", *at, r->size);
	return r;
}

/* Returns the host's address of `bytes` bytes, and in *shared the region that has them, if they are shared memory. */
static char *locate(ptx_thread &t, const ptx_ins &i, size_t bytes, region **shared, size_t *at)
{
	uint64_t address = t.in<uint64_t>(i.src[0]) + (uint64_t)i.offset;
	*shared = NULL;
	if (address % bytes)
		ptx_die(t.kernel, i.line, "address 0x%llx is not aligned to %zu bytes", (unsigned long long)address, bytes);
	if (i.space == PTX_SHARED) {
		*shared = region_of(t, i, (uint32_t)address, bytes, at);
		return (*shared)->memory + *at;
	}
	region *r = &t.block->fixed;
	if (i.space == PTX_GENERIC && (char *)address >= r->memory && (char *)address + bytes <= r->memory + r->size) {
		*shared = r;
		*at = (size_t)((char *)address - r->memory);
	}
	return (char *)address;
}

template <class T, class Cell> static void load(ptx_thread &t, const ptx_ins &i)
{
	region *shared;
	size_t at;
	const char *p = locate(t, i, sizeof(T) * (size_t)i.ndst, &shared, &at);
	if (shared)
		for (size_t b = 0; b < sizeof(T) * (size_t)i.ndst; b++)
			note_read(t, i, shared->of(at + b), at + b);
	T v[4];
	memcpy(v, p, sizeof(T) * (size_t)i.ndst);
	for (int k = 0; k < i.ndst; k++)
		t.out<Cell>(i.dst[k], (Cell)v[k]);
}

template <class T> static void store(ptx_thread &t, const ptx_ins &i)
{
	region *shared;
	size_t at, bytes = sizeof(T) * (size_t)(i.nsrc - 1);
	char *p = locate(t, i, bytes, &shared, &at);
	T v[4];
	for (int k = 1; k < i.nsrc; k++)
		v[k - 1] = t.in<T>(i.src[k]);
	if (shared)
		for (size_t b = 0; b < bytes; b++)
			note_write(t, i, shared->of(at + b), at + b, p[b] != ((char *)v)[b]);
	memcpy(p, v, bytes);
}

static void atomic_add(ptx_thread &t, const ptx_ins &i)
{
	region *shared;
	size_t at;
	uint32_t *p = (uint32_t *)locate(t, i, sizeof *p, &shared, &at), old = *p;
	*p = old + t.in<uint32_t>(i.src[1]);
	if (i.ndst)
		t.out<uint32_t>(i.dst[0], old);
}

static void atomic_cas(ptx_thread &t, const ptx_ins &i)
{
	region *shared;
	size_t at;
	uint32_t *p = (uint32_t *)locate(t, i, sizeof *p, &shared, &at), old = *p;
	if (old == t.in<uint32_t>(i.src[1]))
		*p = t.in<uint32_t>(i.src[2]);
	t.out<uint32_t>(i.dst[0], old);
}

static void generic_of_shared(ptx_thread &t, const ptx_ins &i)
{
	size_t at;
	region *r = region_of(t, i, t.in<uint32_t>(i.src[0]), 0, &at);
	t.out<uint64_t>(i.dst[0], (uint64_t)(r->memory + at));
}

static void same_address(ptx_thread &t, const ptx_ins &i)
{
	t.out<uint64_t>(i.dst[0], t.in<uint64_t>(i.src[0]));
}

/* ---- other threads --------------------------------------------------------------------------------------------------------------- */
static void block_barrier(ptx_thread &t, const ptx_ins &i)
{
	if (t.in<uint32_t>(i.src[0]))
		ptx_die(t.kernel, i.line, "only barrier 0 is simulated");
	cudasim_block_barrier();
	t.block_syncs++;
}

static void warp_barrier(ptx_thread &t, const ptx_ins &i)
{
	__syncwarp(t.in<uint32_t>(i.src[0]));
	t.warp_syncs++;
}

/* Lanes outside of the segment give their own value: operand c has the last lane, and above it the mask of the segment. */
template <bool down> static void shuffle(ptx_thread &t, const ptx_ins &i)
{
	int lane = cudasim_self->lane, by = (int)t.in<uint32_t>(i.src[1]), from = down ? lane + by : lane ^ by;
	uint32_t c = t.in<uint32_t>(i.src[2]), segment = c >> 8 & 31, last = (lane & segment) | (c & 31 & ~segment);
	bool inside = from >= 0 && from <= (int)last;
	uint32_t v = cudasim_shuffle(t.in<uint32_t>(i.src[3]), t.in<uint32_t>(i.src[0]), inside ? from : lane, (down ? 200 : 100) + by);
	t.out<uint32_t>(i.dst[0], v);
	if (i.pred >= 0)
		t.out<bool>(i.pred, inside);
}

static void wait_for_previous(ptx_thread &, const ptx_ins &)
{
	cudasim_after_previous();
}

static void nothing(ptx_thread &, const ptx_ins &)
{
}

static void branch(ptx_thread &t, const ptx_ins &i)
{
	t.next = (size_t)i.offset;
}

/* ---- the table ------------------------------------------------------------------------------------------------------------------- */
static ptx_step *load_of(ptx_type type)
{
	switch (type) {
	case PTX_B8:
	case PTX_U8:
		return load<uint8_t, uint64_t>;
	case PTX_S8:
		return load<int8_t, int64_t>;
	case PTX_B16:
	case PTX_U16:
		return load<uint16_t, uint64_t>;
	case PTX_S16:
		return load<int16_t, int64_t>;
	case PTX_B32:
	case PTX_U32:
	case PTX_F32:
		return load<uint32_t, uint64_t>;
	case PTX_S32:
		return load<int32_t, int64_t>;
	case PTX_B64:
	case PTX_U64:
	case PTX_S64:
	case PTX_F64:
		return load<uint64_t, uint64_t>;
	default:
		return NULL;
	}
}

static ptx_step *store_of(ptx_type type)
{
	switch (ptx_size(type)) {
	case 1:
		return type == PTX_PRED ? NULL : store<uint8_t>;
	case 2:
		return store<uint16_t>;
	case 4:
		return store<uint32_t>;
	case 8:
		return store<uint64_t>;
	default:
		return NULL;
	}
}

static bool among(const string &word, std::initializer_list<const char *> words)
{
	for (const char *w : words)
		if (word == w)
			return true;
	return false;
}

/* Sets type and space of a load or store. Returns whether all its words are known. */
static bool take_words(const vector<string> &how, ptx_ins *i)
{
	ptx_ins value;
	i->space = PTX_GENERIC;
	for (size_t k = 0; k < how.size(); k++) {
		const string &w = how[k];
		if (w == "global")
			i->space = PTX_GLOBAL;
		else if (w == "shared")
			i->space = PTX_SHARED;
		else if (w == "param" || w == "local")
			i->space = PTX_LOCAL;
		else if (k + 1 == how.size() && ptx_choose({"mov", w}, &value))
			i->type = value.type;
		else if (!among(w, {"cg", "ca", "cs", "nc", "volatile", "gpu", "v2", "v4", "L1::no_allocate"}))
			return false;
	}
	return i->type != PTX_NONE;
}

bool ptx_choose_memory(const string &op, const vector<string> &how, ptx_ins *i)
{
	string all = op;
	for (const string &w : how)
		all += "." + w;
	if (op == "ld" || op == "st") {
		i->run = !take_words(how, i) ? NULL : op == "st" ? store_of(i->type) : load_of(i->type);
		return true;
	}
	static const struct {
		const char *name;
		ptx_step *run;
	} others[] = {{"bra", branch},
	              {"bra.uni", branch},
	              {"bar.sync", block_barrier},
	              {"bar.warp.sync", warp_barrier},
	              {"shfl.sync.bfly.b32", shuffle<false>},
	              {"shfl.sync.down.b32", shuffle<true>},
	              {"griddepcontrol.wait", wait_for_previous},
	              {"griddepcontrol.launch_dependents", nothing},
	              {"membar.gl", nothing}, /* one thread runs at a time */
	              {"membar.sys", nothing},
	              {"membar.cta", nothing},
	              {"atom.global.add.u32", atomic_add},
	              {"red.global.add.u32", atomic_add},
	              {"atom.global.sys.cas.b32", atomic_cas},
	              {"cvta.to.global.u64", same_address},
	              {"cvta.global.u64", same_address},
	              {"cvta.param.u64", same_address},
	              {"cvta.shared.u64", generic_of_shared}};
	for (const auto &o : others)
		if (all == o.name) {
			i->run = o.run;
			return true;
		}
	return op == "bar" || op == "shfl" || op == "atom" || op == "red" || op == "cvta" || op == "membar" || op == "fence";
}

/* ---- a thread -------------------------------------------------------------------------------------------------------------------- */
static void begin_region(region *r, char *memory, size_t size, uint64_t serial)
{
	r->memory = memory;
	r->size = size;
	r->serial = serial;
	if (r->at.size() < size)
		r->at.resize(size);
}

static ptx_block *block_of(const ptx_kernel *k)
{
	uint64_t serial = cudasim_block_serial();
	ptx_block *b = &block;
	if (b->serial != serial) {
		b->serial = serial;
		b->storage.assign(k->shared + 16, (char)0xff);
		char *aligned = b->storage.data() + (16 - (uintptr_t)b->storage.data() % 16) % 16;
		begin_region(&b->fixed, aligned, k->shared, serial);
	}
	return b;
}

static uint64_t special(int which)
{
	const unsigned values[PTX_SPECIALS] = {threadIdx.x,
	                                       threadIdx.y,
	                                       threadIdx.z,
	                                       blockDim.x,
	                                       blockDim.y,
	                                       blockDim.z,
	                                       blockIdx.x,
	                                       blockIdx.y,
	                                       blockIdx.z,
	                                       gridDim.x,
	                                       gridDim.y,
	                                       gridDim.z,
	                                       (unsigned)cudasim_self->lane};
	return values[which];
}

void ptx_check_params(const ptx_kernel *k, const size_t *sizes, size_t n)
{
	if (n != k->params.size())
		ptx_die(k, 0, "the host passes %zu arguments, the kernel has %zu", n, k->params.size());
	for (size_t i = 0; i < n; i++)
		if (sizes[i] != k->params[i].size)
			ptx_die(k, 0, "argument %zu has %zu bytes for the host, %zu in the kernel", i, sizes[i], k->params[i].size);
}

/* Runs the code of a kernel or function. from: the thread that calls; its counts of barriers go on. */
static void execute(const ptx_kernel *k, const void *params, ptx_thread &from)
{
	size_t cells = k->nregs + k->constants.size(), bytes = cells * sizeof(uint64_t);
	char *memory = (char *)malloc(bytes + k->local + 32);
	if (!memory)
		abort();
	ptx_thread t = from;
	t.kernel = k;
	t.cell = (uint64_t *)memory;
	t.next = 0;
	memcpy(t.cell + k->nregs, k->constants.data(), k->constants.size() * sizeof(uint64_t));
	for (const auto &s : k->special)
		t.cell[s.first] = special(s.second);
	for (const auto &p : k->param_cells)
		t.cell[p.first] = (uint64_t)params + p.second;
	for (const auto &p : k->local_cells)
		t.cell[p.first] = (uint64_t)memory + (bytes + 15) / 16 * 16 + p.second;
	while (t.next < k->code.size()) {
		const ptx_ins &i = k->code[t.next++];
		t.executed++;
		if (i.guard >= 0 && t.in<bool>(i.guard) == i.guard_not)
			continue;
		if (!i.run)
			break;
		if (t.count)
			t.count->add(i);
		i.run(t, i);
	}
	from.executed = t.executed;
	from.block_syncs = t.block_syncs;
	from.warp_syncs = t.warp_syncs;
	free(memory);
}

/* Operands are the addresses of the arguments and of the result in the caller's own memory. The callee has them in one array, the result
 * first. */
void ptx_call(ptx_thread &t, const ptx_ins &i)
{
	const std::vector<ptx_param> &list = i.callee->params;
	char values[64];
	for (int k = 0; k < i.nsrc; k++)
		memcpy(values + list[(size_t)k].offset, (const void *)t.in<uint64_t>(i.src[k]), list[(size_t)k].size);
	execute(i.callee, values, t);
	for (int k = 0; k < i.ndst; k++)
		memcpy((void *)t.in<uint64_t>(i.src[k]), values + list[(size_t)k].offset, list[(size_t)k].size);
}

void ptx_run(const ptx_kernel *k, const void *params)
{
	unsigned threads = blockDim.x * blockDim.y * blockDim.z;
	if (k->max_threads && threads > k->max_threads)
		ptx_die(k, 0, "a block of %u threads, at most %u are allowed", threads, k->max_threads);
	ptx_thread t = {};
	t.kernel = k;
	t.block = block_of(k);
	t.number = (int)(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
	t.warp = t.number / 32;
	t.count = ptx_count_of(k);
	execute(k, params, t);
	if (t.count)
		t.count->end(t.executed);
}

std::function<void()> cudasim_thread_body(const void *kernel, std::function<void()> host, const void *const *args, const size_t *sizes,
                                          const size_t *aligns, size_t n)
{
	static const bool wanted = getenv("CUDASIM_PTX") != NULL;
	if (!wanted)
		return host;
	Dl_info info;
	if (!dladdr(kernel, &info) || !info.dli_sname || info.dli_saddr != kernel) {
		fprintf(stderr, "ptx: a kernel without a name in the table of dynamic symbols\n");
		abort();
	}
	const ptx_kernel *k = ptx_find(info.dli_sname);
	ptx_check_params(k, sizes, n);
	auto params = std::make_shared<vector<char>>();
	for (size_t i = 0; i < n; i++) {
		params->resize((params->size() + aligns[i] - 1) / aligns[i] * aligns[i]);
		if (params->size() != k->params[i].offset)
			ptx_die(k, 0, "argument %zu is at byte %zu for the host, at %zu in the kernel", i, params->size(), k->params[i].offset);
		params->insert(params->end(), (const char *)args[i], (const char *)args[i] + sizes[i]);
	}
	return [=] { ptx_run(k, params->data()); };
}
