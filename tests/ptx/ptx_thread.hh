/* A thread that runs PTX, shared by the files of this folder. */
#ifndef GT_TESTS_PTX_THREAD_H
#define GT_TESTS_PTX_THREAD_H

#include "ptx.hh"
#include <cstring>
#include <limits>
#include <type_traits>

struct ptx_block; /* shared memory of a block (ptx_run.cc) */

/* What the threads of a kernel have executed in all launches. Called functions count for their kernel, except their accesses to memory. */
struct ptx_count {
	uint64_t threads = 0, instructions = 0, longest = 0; /* longest: instructions of one thread */
	uint64_t loads = 0, read = 0, stores = 0, written = 0; /* accesses to global memory, and their bytes */
	void add(const ptx_ins &i);
	void end(uint64_t executed); /* a thread has ended after so many instructions */
};

/* Returns the counts of a kernel, which are printed at exit if the environment has CUDASIM_PTX_COUNT; otherwise NULL. */
ptx_count *ptx_count_of(const ptx_kernel *k);

struct ptx_thread {
	const ptx_kernel *kernel;
	uint64_t *cell; /* registers, constants, special registers */
	ptx_block *block;
	size_t next;                      /* index of the next instruction */
	int number, warp;                 /* of this thread in its block */
	uint32_t block_syncs, warp_syncs; /* barriers that this thread has passed */
	uint64_t executed;                /* instructions that this thread has executed */
	ptx_count *count;          /* counts of the kernel; NULL: nothing is counted */

	template <class T> T in(int c) const
	{
		T v;
		if (std::is_same<T, bool>::value) /* "mov.pred %p1, -1" sets a predicate too */
			return (T)(cell[c] & 1);
		memcpy(&v, &cell[c], sizeof v);
		return v;
	}
	/* The rest of the cell becomes 0, or copies of the sign of a narrow signed integer. */
	template <class T> void out(int c, T v)
	{
		uint64_t u = 0;
		if (c < 0)
			return;
		memcpy(&u, &v, sizeof v);
		cell[c] = u;
	}
};

/* ptx_choose for instructions that touch memory or other threads: returns false if op is not one of them; otherwise i->run is NULL if the
 * instruction is not known. */
ptx_step ptx_call; /* callee, with src: addresses of the result (ndst = 1) and of the arguments */
bool ptx_choose_memory(const std::string &op, const std::vector<std::string> &how, ptx_ins *i);

#endif
