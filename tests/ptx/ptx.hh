/* Runs the PTX that nvcc made of a kernel, one thread at a time, on the simulated CUDA runtime (tests/cudasim/): so the machine-independent
 * code that a GPU gets is tested, with its inline assembly and its layout of arguments, and not only what a host compiler made of the
 * same source. Source of the instructions' meaning: NVIDIA, "Parallel Thread Execution ISA", version 9.0.
 *
 *     const ptx_kernel *k = ptx_find(symbol);         NULL: $CUDASIM_PTX names no folder of PTX files
 *     ptx_check_params(k, sizes, n);                  host and device agree on the arguments
 *     ptx_run(k, params);                             in the coroutine of each thread
 *
 * Harsher than a GPU:
 * - An address that is not aligned to its access and a shared address outside of the kernel's variables end the process.
 * - Shared memory starts as NaN. Two accesses to a byte of it, one of them a write of another value, by threads that no barrier orders, end
 *   the process. A shuffle is no barrier for memory.
 * - Registers start with anything. */
#ifndef GT_TESTS_PTX_H
#define GT_TESTS_PTX_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

enum ptx_type : uint8_t {
	PTX_NONE,
	PTX_PRED,
	PTX_B8,
	PTX_B16,
	PTX_B32,
	PTX_B64,
	PTX_U8,
	PTX_U16,
	PTX_U32,
	PTX_U64,
	PTX_S8,
	PTX_S16,
	PTX_S32,
	PTX_S64,
	PTX_F16,
	PTX_F32,
	PTX_F64,
	PTX_F16X2,
	PTX_BF16X2
};

enum ptx_space : uint8_t { PTX_GENERIC, PTX_GLOBAL, PTX_SHARED, PTX_PARAM, PTX_LOCAL };

struct ptx_thread;
struct ptx_ins;
typedef void ptx_step(ptx_thread &t, const ptx_ins &i);

/* An instruction. Operands are indices into the thread's array of 64-bit cells: registers, then constants and special registers, which are
 * copied to it when the thread starts. */
struct ptx_ins {
	ptx_step *run = NULL; /* does the instruction; NULL: `ret` */
	int guard = -1;       /* cell of the predicate; -1: none */
	bool guard_not = false;
	int dst[4] = {-1, -1, -1, -1}; /* -1: the value is dropped */
	int src[5] = {-1, -1, -1, -1, -1}; /* a store: an address and at most 4 values */
	int ndst = 0, nsrc = 0;
	int pred = -1;                             /* second result of shfl.sync */
	int64_t offset = 0;                        /* of an address, in bytes; of a branch, the index of the next instruction */
	ptx_type type = PTX_NONE, from = PTX_NONE; /* from: type of the source of cvt, mul.wide */
	ptx_space space = PTX_GENERIC;
	int line = 0;                           /* in the file */
	const struct ptx_kernel *callee = NULL; /* of call */
};

struct ptx_param {
	std::string name;
	size_t offset, size;
};

struct ptx_kernel {
	std::string name, file;
	std::vector<ptx_param> params;
	std::vector<ptx_ins> code;
	std::vector<uint64_t> constants;                              /* values of cells nregs, nregs + 1, … */
	std::vector<std::pair<int, int>> special;                     /* cell and number of a special register (ptx_read.cc: specials) */
	std::vector<std::pair<int, size_t>> param_cells, local_cells; /* cell, and offset in the arguments, or in the thread's own memory */
	size_t nregs, shared, local, params_size;
	unsigned max_threads; /* .maxntid; 0: none */
};


enum ptx_special {
	PTX_TID_X,
	PTX_TID_Y,
	PTX_TID_Z,
	PTX_NTID_X,
	PTX_NTID_Y,
	PTX_NTID_Z,
	PTX_CTAID_X,
	PTX_CTAID_Y,
	PTX_CTAID_Z,
	PTX_NCTAID_X,
	PTX_NCTAID_Y,
	PTX_NCTAID_Z,
	PTX_LANEID,
	PTX_SPECIALS
};

const ptx_kernel *ptx_find(const char *symbol);
void ptx_check_params(const ptx_kernel *k, const size_t *sizes, size_t n);
void ptx_run(const ptx_kernel *k, const void *params);
[[noreturn]] void ptx_die(const ptx_kernel *k, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Chooses the function that does an instruction: opcode with its modifiers, "ld.global.v4.f32", split at the dots. Returns false if the
 * instruction is not known. Sets type, from and space of *i; *vector: number of values of a ld or st. */
bool ptx_choose(const std::vector<std::string> &words, ptx_ins *i);
void ptx_simplify(ptx_ins *i); /* call it when the instruction has its operands */
size_t ptx_size(ptx_type t);   /* bytes */

#endif
