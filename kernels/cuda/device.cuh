/* Functions that the kernels share: launches, 16-byte vectors, activation types, and reductions over a team of threads. */
#ifndef GT_KERNELS_CUDA_DEVICE_CUH
#define GT_KERNELS_CUDA_DEVICE_CUH

#include <cuda_runtime.h>
#include "cuda/launch.h"
#include <cstdlib>
#include <cstring>
#include "ew.h"

/* ---- kernel launch ------------------------------------------------------------------------------------------------------------------ */
/* Programmatic dependent launch (CUDA Programming Guide, "Programmatic Dependent Launch and Synchronization"; compute capability 9.0 and
 * higher): a kernel may start on the multiprocessors while the previous kernel still runs, and then waits. GTRAIN_CUDA_PDL=1 enables it.
 *
 * This is safe because every kernel here calls after_previous() before it touches memory. griddepcontrol.wait returns when all grids on
 * which this grid depends have ended and their writes are visible; since those grids also waited, this includes all earlier grids. Every
 * thread has to call it, because a thread that leaves earlier would count as finished for the next grid. launch_dependents, which follows,
 * lets the next kernel start as soon as all blocks of this kernel have started. Kernels of cuBLASLt and cuDNN, copies and events do not
 * have the attribute: they wait for whole kernels, and later kernels wait for them. A capture turns the attribute into a programmatic edge
 * between two kernels, which replaces the full edge. The simulator aborts a kernel that touches memory, reaches a barrier or leaves before
 * it has waited.
 *
 * It is disabled by default: there is no documentation that a capture accepts such launches together with memory sets and joins of streams
 * (a report of "invalid resource handle" on compute capability 12.0: sgl-project/sglang, pull request 18596), and it has not run on a GPU.
 * `make bench-gpu` measures both settings, `make check-gpu` compares the result bits. */
static inline bool overlap_wanted()
{
	const char *said = getenv("GTRAIN_CUDA_PDL");
	int device, major;
	return said && !strcmp(said, "1") && cudaGetDevice(&device) == cudaSuccess &&
	       cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess && major >= 9;
}

__device__ static inline void after_previous()
{
#ifndef __CUDACC__
	cudasim_after_previous();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
	asm volatile("griddepcontrol.wait;" ::: "memory");
	asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

template <class... P, class... A>
static inline cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t s, const A &...args)
{
	cudaLaunchConfig_t c = {};
	c.gridDim = grid;
	c.blockDim = block;
	c.stream = s;
	cudaLaunchAttribute overlap;
	if (overlap_wanted()) {
		overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
		overlap.val.programmaticStreamSerializationAllowed = 1;
		c.attrs = &overlap;
		c.numAttrs = 1;
	}
	return cudaLaunchKernelEx(&c, kernel, P(args)...);
}

static inline int64_t ceil_div(int64_t a, int64_t b)
{
	return (a + b - 1) / b;
}

/* Returns true if CUDA allows a grid with this number of blocks in x: at most 2^31 - 1. */
static inline bool grid_fits(int64_t blocks)
{
	return blocks <= INT32_MAX;
}

/* ---- activation types: storage formats; arithmetic is f32 --------------------------------------------------------------------------- */
struct bf16 {
	uint16_t bits;
};

struct f16 {
	uint16_t bits;
};

/* Selects the instance of a kernel template for an activation type (GT_CU_F32 …), which is the template's first argument. */
#define OF_TYPE(type, name, ...)                                                                                                           \
	((type) == GT_CU_F32 ? name<float, ##__VA_ARGS__> : (type) == GT_CU_BF16 ? name<bf16, ##__VA_ARGS__> : name<f16, ##__VA_ARGS__>)

__device__ static inline float to_float(float x)
{
	return x;
}

__device__ static inline float to_float(bf16 x)
{
	return gt_bf16_to_f32(x.bits);
}

__device__ static inline float to_float(f16 x)
{
#ifdef __CUDA_ARCH__
	float r;
	asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
	return r;
#else
	return gt_f16_to_f32(x.bits);
#endif
}

template <class S> __device__ static inline S from_float(float x);

template <> __device__ inline float from_float<float>(float x)
{
	return x;
}

/* Rounds two values: one instruction from compute capability 8.0 on. a becomes the low half. */
__device__ static inline uint32_t bf16_pair(float a, float b)
{
#ifdef __CUDA_ARCH__
	uint32_t r;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
	return r;
#else
	return gt_bf16_from_f32(a) | (uint32_t)gt_bf16_from_f32(b) << 16;
#endif
}

__device__ static inline uint32_t f16_pair(float a, float b)
{
#ifdef __CUDA_ARCH__
	uint32_t r;
	asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(b), "f"(a));
	return r;
#else
	return gt_f16_from_f32(a) | (uint32_t)gt_f16_from_f32(b) << 16;
#endif
}

template <> __device__ inline bf16 from_float<bf16>(float x)
{
	return bf16{(uint16_t)bf16_pair(x, 0)};
}

template <> __device__ inline f16 from_float<f16>(float x)
{
	return f16{(uint16_t)f16_pair(x, 0)};
}

/* Packs two 16-bit elements into a word; the first element is the low half. */
__device__ static inline uint32_t to_pair(float a, float b, bf16)
{
	return bf16_pair(a, b);
}

__device__ static inline uint32_t to_pair(float a, float b, f16)
{
	return f16_pair(a, b);
}

__device__ static inline void from_pair(float *v, uint32_t w, bf16)
{
	v[0] = gt_f32_from_bits(w << 16);
	v[1] = gt_f32_from_bits(w & 0xffff0000u);
}

__device__ static inline void from_pair(float *v, uint32_t w, f16)
{
	v[0] = to_float(f16{(uint16_t)w});
	v[1] = to_float(f16{(uint16_t)(w >> 16)});
}

/* ---- vectors of 16 bytes ------------------------------------------------------------------------------------------------------- */
template <class S> struct width {
	static constexpr int n = 16 / (int)sizeof(S);
};

__device__ static inline void unpack_vector(float *v, uint4 u, float)
{
	v[0] = gt_f32_from_bits(u.x), v[1] = gt_f32_from_bits(u.y), v[2] = gt_f32_from_bits(u.z), v[3] = gt_f32_from_bits(u.w);
}

template <class H> __device__ static inline void unpack_vector(float *v, uint4 u, H)
{
	from_pair(v, u.x, H());
	from_pair(v + 2, u.y, H());
	from_pair(v + 4, u.z, H());
	from_pair(v + 6, u.w, H());
}

template <class H> __device__ static inline uint4 pack_vector(const float *v)
{
	return make_uint4(to_pair(v[0], v[1], H()), to_pair(v[2], v[3], H()), to_pair(v[4], v[5], H()), to_pair(v[6], v[7], H()));
}

template <> __device__ inline uint4 pack_vector<float>(const float *v)
{
	return make_uint4(gt_f32_bits(v[0]), gt_f32_bits(v[1]), gt_f32_bits(v[2]), gt_f32_bits(v[3]));
}

/* Loads elements i .. i + width - 1 of p, which has n elements; v gets `fill` for elements from n on. vector must be true only if p + i is
 * aligned to 16 bytes. */
template <class S> __device__ static inline void load_vector(float *v, const void *p, int64_t i, int64_t n, bool vector, float fill)
{
	const S *x = (const S *)p + i;
	if (vector && i + width<S>::n <= n) {
		unpack_vector(v, *(const uint4 *)x, S());
		return;
	}
#pragma unroll
	for (int j = 0; j < width<S>::n; j++)
		v[j] = i + j < n ? to_float(x[j]) : fill;
}

template <class S> __device__ static inline void store_vector(void *p, const float *v, int64_t i, int64_t n, bool vector)
{
	S *y = (S *)p + i;
	if (vector && i + width<S>::n <= n) {
		*(uint4 *)y = pack_vector<S>(v);
		return;
	}
#pragma unroll
	for (int j = 0; j < width<S>::n; j++)
		if (i + j < n)
			y[j] = from_float<S>(v[j]);
}

/* A team handles one row of data: a warp (team = 32) or a whole block. A block of TEAM_BLOCK threads holds TEAM_BLOCK / team rows. All
 * threads of a team must call these functions. All threads get the result; the order of additions depends only on the team size. */
#define TEAM_BLOCK 256

struct op_sum {
	template <class T> __device__ static T f(T a, T b)
	{
		return a + b;
	}
};

struct op_max {
	__device__ static float f(float a, float b)
	{
		return fmaxf(a, b);
	}
};

template <class Op, class T> __device__ static inline T team_reduce(T v, int team)
{
	__shared__ T part[TEAM_BLOCK / 32];
#pragma unroll
	for (int w = 16; w > 0; w /= 2)
		v = Op::f(v, __shfl_xor_sync(0xffffffffu, v, w));
	if (team == 32)
		return v;
	__syncthreads(); /* all threads must have read the parts of the previous reduction before they are overwritten */
	if (threadIdx.x % 32 == 0)
		part[threadIdx.x / 32] = v;
	__syncthreads();
	v = part[0];
#pragma unroll
	for (int i = 1; i < TEAM_BLOCK / 32; i++)
		v = Op::f(v, part[i]);
	return v;
}

template <class T> __device__ static inline T team_sum(T v, int team)
{
	return team_reduce<op_sum>(v, team);
}

__device__ static inline float team_max(float v, int team)
{
	return team_reduce<op_max>(v, team);
}

/* Returns the number of threads for a row of n elements, or of n vectors if a thread reads vectors: a whole block if a warp would need more
 * than 16 rounds. */
static inline int team_for(int64_t n)
{
	return n > 32 * 16 ? TEAM_BLOCK : 32;
}

/* ---- last block --------------------------------------------------------------------------------------------------------------------- */
/* Returns true in the last of `blocks` blocks to call it. The writes of all blocks are then visible (with __ldcg, which bypasses the L1
 * cache, because that is not coherent). counter is 0 before and after. All threads of a block must call it. (CUDA C++ Programming Guide,
 * "Memory Fence Functions".) */
__device__ static inline bool last_of(uint32_t *counter, uint32_t blocks)
{
	__shared__ bool last;
	__threadfence();
	__syncthreads();
	if (threadIdx.x == 0) {
		last = atomicAdd(counter, 1u) == blocks - 1;
		if (last)
			*counter = 0;
	}
	__syncthreads();
	__threadfence();
	return last;
}

/* ---- values of a step, and faults --------------------------------------------------------------------------------------------------- */
/* Returns the values of a step by value: taking an argument's address would put a copy of the argument into local memory. */
__device__ static inline struct gt_step_args step_args_of(const struct gt_cu_step_args &d)
{
	return d.dev ? *d.dev : d.host;
}

/* Returns the learning rate and the momentum with this index. Values from host memory are kernel arguments, which a variable index would
 * copy to the stack. */
__device__ static inline double rate_of(const struct gt_cu_step_args &d, int index)
{
	double lr = 0;
	if (d.dev)
		return d.dev->lr[index];
#pragma unroll
	for (int k = 0; k < GT_MAX_LR; k++)
		lr = k == index ? d.host.lr[k] : lr;
	return lr;
}
__device__ static inline double momentum_of(const struct gt_cu_step_args &d, int index)
{
	double momentum = 0;
	if (d.dev)
		return d.dev->momentum[index];
#pragma unroll
	for (int k = 0; k < GT_MAX_LR; k++)
		momentum = k == index ? d.host.momentum[k] : momentum;
	return momentum;
}

/* Reports a fault. The first thread that finds a fault describes it; the host reads it when it next waits for the device. */
__device__ static inline void report_fault(struct gt_cu_fault *f, int code, int64_t value, int64_t at, int64_t limit)
{
	if (atomicCAS_system(&f->code, 0, -1) != 0)
		return;
	f->value = value;
	f->at = at;
	f->limit = limit;
	__threadfence_system();
	*(volatile int32_t *)&f->code = code;
}

#endif
