/* Runs a kernel: the threads of a block are coroutines on stacks of their own, switched at barriers. Blocks run one after the other, the
 * last one first; with $CUDASIM_FIRST the first one first, and so warps and lanes: nothing may lean on an order that a GPU does not
 * promise, and a forgotten barrier shows in one of the two. The first kernel of a process takes $CUDASIM_LOAD_S seconds, as where a driver
 * loads or compiles it. */
#include "cuda_runtime.h"
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK ((size_t)64 << 10)
#define MAX_THREADS 1024

enum { READY, AT_BLOCK, AT_WARP, DONE };

/* The compiler's own jumps (__builtin_setjmp) save three words, and no signal mask: a fifth of the time of libc's. */
typedef void *jump[5];

struct fiber {
	cudasim_thread t;
	jump at;
	ucontext_t *start; /* apart from the fibers, which then lie close together in the cache */
	bool made;
	int state, kind;
	unsigned mask;
	bool waited; /* for the kernel before this one */
};

cudasim_thread *cudasim_self;
size_t cudasim_early;
dim3 threadIdx, blockIdx, blockDim, gridDim;

static fiber *fibers; /* MAX_THREADS, which serve one block after the other */
static int current, count;
static jump scheduler;
static ucontext_t scheduler_start;
static const std::function<void()> *body;
static bool first_first, early_kernel, covered;
static uint64_t serial; /* of the block that runs */

[[noreturn]] static void die(const char *what)
{
	fprintf(stderr, "cudasim: %s (block %u,%u,%u of a grid of %u,%u,%u, %d threads)\n", what, blockIdx.x, blockIdx.y, blockIdx.z, gridDim.x,
	        gridDim.y, gridDim.z, count);
	abort();
}

void cudasim_after_previous()
{
	fibers[current].waited = true;
	if (covered)
		cudasim_reveal();
	covered = false;
}

__attribute__((noinline)) static void leave(int state)
{
	fiber *f = &fibers[current];
	if (early_kernel && !f->waited)
		die("a thread that did not wait for the kernel before its own");
	f->state = state;
	if (!__builtin_setjmp(f->at))
		__builtin_longjmp(scheduler, 1);
}

/* A coroutine is made once and serves every block: it comes back here for the next. */
static void loop()
{
	for (;;) {
		(*body)();
		leave(DONE);
	}
}

__attribute__((noinline)) static void resume(int i)
{
	fiber *f = &fibers[i];
	current = i;
	cudasim_self = &f->t;
	threadIdx = f->t.thread;
	blockIdx = f->t.block;
	if (__builtin_setjmp(scheduler))
		return;
	if (f->made)
		__builtin_longjmp(f->at, 1);
	f->made = true;
	swapcontext(&scheduler_start, f->start);
}

/* Makes n coroutines on stacks of their own. */
static fiber *make_fibers(size_t n)
{
	fiber *f = (fiber *)calloc(n, sizeof *f);
	ucontext_t *start = (ucontext_t *)calloc(n, sizeof *start);
	char *stacks = (char *)mmap(NULL, n * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!f || !start || stacks == MAP_FAILED)
		abort();
	for (size_t i = 0; i < n; i++) {
		f[i].start = &start[i];
		getcontext(&start[i]);
		start[i].uc_stack.ss_sp = stacks + i * STACK;
		start[i].uc_stack.ss_size = STACK - (i % 64) * 192; /* tops of stacks in different sets of the cache */
		makecontext(&start[i], loop, 0);
	}
	return f;
}

static void prepare()
{
	first_first = getenv("CUDASIM_FIRST") != NULL;
	fibers = make_fibers(MAX_THREADS);
	if (const char *load_s = getenv("CUDASIM_LOAD_S"))
		usleep((useconds_t)(atof(load_s) * 1e6));
}

cudasim_thread *cudasim_lane(int lane)
{
	int i = current / 32 * 32 + lane;
	if (i >= count)
		die("a shuffle from a lane that does not exist");
	return &fibers[i].t;
}

void cudasim_block_barrier()
{
	leave(AT_BLOCK);
}

void cudasim_warp_barrier(unsigned mask, int kind)
{
	fibers[current].mask = mask;
	fibers[current].kind = kind;
	leave(AT_WARP);
}

uint64_t cudasim_block_serial()
{
	return serial;
}

/* Releases the warp that begins at thread w if all lanes of its mask are at the same barrier. */
static bool release_warp(int w)
{
	int first = -1, end = w + 32 < count ? w + 32 : count;
	for (int i = w; i < end; i++)
		if (fibers[i].state == AT_WARP) {
			first = i;
			break;
		}
	if (first < 0)
		return false;
	for (int i = w; i < w + 32; i++) {
		if (!(fibers[first].mask >> (i - w) & 1))
			continue;
		current = first;
		if (i >= count || fibers[i].state == DONE)
			die("a warp's barrier or shuffle names a lane that has ended");
		if (fibers[i].state != AT_WARP)
			return false;
		if (fibers[i].kind != fibers[first].kind || fibers[i].mask != fibers[first].mask)
			die("the lanes of a warp are at different shuffles");
	}
	for (int i = w; i < end; i++)
		if (fibers[i].state == AT_WARP)
			fibers[i].state = READY;
	return true;
}

static bool release_block()
{
	int waiting = 0;
	for (int i = 0; i < count; i++) {
		if (fibers[i].state == AT_WARP || fibers[i].state == READY)
			return false;
		waiting += fibers[i].state == AT_BLOCK;
	}
	for (int i = 0; i < count; i++)
		if (fibers[i].state == AT_BLOCK)
			fibers[i].state = READY;
	return waiting > 0;
}

/* A warp goes on alone until it must wait for the others: what a forgotten barrier lets happen on a GPU now and then happens here every
 * time. */
static void run_warp(int w)
{
	int end = w + 32 < count ? w + 32 : count;
	do {
		for (int k = w; k < end; k++) {
			int i = first_first ? k : w + end - 1 - k;
			if (fibers[i].state == READY)
				resume(i);
		}
	} while (release_warp(w));
}

/* Runs the block until its threads have ended. */
static void run_block()
{
	for (;;) {
		bool live = false;
		int last = (count - 1) / 32 * 32;
		for (int w = 0; w <= last; w += 32)
			run_warp(first_first ? w : last - w);
		for (int i = 0; i < count; i++)
			live |= fibers[i].state != DONE;
		if (!live)
			return;
		if (!release_block())
			die("a barrier that not every thread reaches");
	}
}

static void begin(dim3 block)
{
	for (int i = 0; i < count; i++) {
		unsigned u = (unsigned)i;
		fibers[i].t.thread = dim3(u % block.x, u / block.x % block.y, u / (block.x * block.y));
		fibers[i].t.lane = i % 32;
	}
}

static void begin_block(uint64_t b)
{
	dim3 at((unsigned)(b % gridDim.x), (unsigned)(b / gridDim.x % gridDim.y), (unsigned)(b / gridDim.x / gridDim.y));
	for (int i = 0; i < count; i++) {
		fibers[i].t.block = at;
		fibers[i].t.parity = 0;
		fibers[i].state = READY;
		fibers[i].waited = false;
	}
}

void cudasim_run(dim3 grid, dim3 block, bool early, const std::function<void()> &thread)
{
	if (!fibers)
		prepare();
	body = &thread;
	early_kernel = covered = early;
	if (early) {
		cudasim_early++;
		cudasim_cover();
	}
	blockDim = block;
	gridDim = grid;
	count = (int)(block.x * block.y * block.z);
	begin(block);
	uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
	for (uint64_t k = 0; k < blocks; k++) {
		begin_block(first_first ? k : blocks - 1 - k);
		serial++;
		run_block();
	}
	cudasim_self = NULL;
}
