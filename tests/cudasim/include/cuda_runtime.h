/* CUDA C++ as a host compiler sees it: qualifiers, built-in variables, barriers and shuffles, kernel launches. See cuda_runtime_api.h. */
#ifndef CUDASIM_RUNTIME_H
#define CUDASIM_RUNTIME_H

#include "cuda_runtime_api.h"
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <tuple>

#define __global__
#define __device__
#define __host__
#define __shared__ static /* blocks run one after the other */
#define __launch_bounds__(...)
#define __grid_constant__

struct uint2 {
	unsigned x, y;
};
struct alignas(16) uint4 {
	unsigned x, y, z, w;
};
struct alignas(16) float4 {
	float x, y, z, w;
};
static inline uint2 make_uint2(unsigned x, unsigned y)
{
	return {x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
	return {x, y, z, w};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
	return {x, y, z, w};
}

struct dim3 {
	unsigned x, y, z;
	constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c)
	{
	}
};

enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
struct cudaLaunchAttribute {
	cudaLaunchAttributeID id;
	struct {
		int programmaticStreamSerializationAllowed;
	} val;
};

struct cudaLaunchConfig_t {
	dim3 gridDim, blockDim;
	size_t dynamicSmemBytes;
	cudaStream_t stream;
	cudaLaunchAttribute *attrs;
	unsigned numAttrs;
};

/* One simulated thread. */
struct cudasim_thread {
	dim3 thread, block;
	int lane;
	unsigned parity;
	alignas(16) unsigned char slot[2][16]; /* what a shuffle offers; two, so that one barrier a shuffle is enough */
};
extern cudasim_thread *cudasim_self;
cudasim_thread *cudasim_lane(int lane); /* of this thread's warp */
void cudasim_block_barrier();
void cudasim_warp_barrier(unsigned mask, int kind);

extern dim3 threadIdx, blockIdx, blockDim, gridDim; /* set whenever a thread goes on */

static inline void __syncthreads()
{
	cudasim_block_barrier();
}
static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
	cudasim_warp_barrier(mask, 1);
}
static inline void __threadfence_system()
{
}

template <class T> static inline T cudasim_shuffle(unsigned mask, T v, int from, int kind)
{
	static_assert(sizeof(T) <= 16, "a shuffle moves up to 16 bytes");
	unsigned p = cudasim_self->parity++ % 2;
	memcpy(cudasim_self->slot[p], &v, sizeof v);
	cudasim_warp_barrier(mask, kind);
	if (from >= 0 && from < 32)
		memcpy(&v, cudasim_lane(from)->slot[p], sizeof v);
	return v;
}

template <class T> static inline T __shfl_xor_sync(unsigned mask, T v, int w)
{
	return cudasim_shuffle(mask, v, cudasim_self->lane ^ w, 100 + w);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T v, int w)
{
	return cudasim_shuffle(mask, v, cudasim_self->lane + w, 200 + w);
}

static inline void __threadfence()
{
}

static inline unsigned atomicAdd(unsigned *p, unsigned value)
{
	unsigned old = *p;
	*p += value;
	return old;
}

template <class T> static inline T __ldcg(const T *p)
{
	return *p;
}
template <class T> static inline void __stcg(T *p, T v)
{
	*p = v;
}

static inline int atomicCAS_system(int *p, int compare, int value)
{
	int old = *p;
	if (old == compare)
		*p = value;
	return old;
}

/* Puts work on a stream, or into the graph that the stream is captured to. */
cudaError_t cudasim_enqueue(cudaStream_t s, std::function<void()> work);
/* What is queued behind it waits while held() is true. */
cudaError_t cudasim_hold(cudaStream_t s, std::function<bool()> held);
/* While the stream is captured: gives the graph a reference to user, which it drops when it is destroyed and no launch of it is queued. */
void cudasim_retain(cudaStream_t s, std::shared_ptr<void> user);
bool cudasim_captures(); /* true: a stream is being captured */
bool cudasim_finish();   /* runs all queued work of the device; false: a kernel waits for something that did not happen */
bool cudasim_on_device(const void *p, size_t bytes); /* all of it in one block? */
void cudasim_spend(double us);                       /* work that runs took so long */
void cudasim_run(dim3 grid, dim3 block, bool early, const std::function<void()> &thread); /* early: with programmatic serialization */
extern size_t cudasim_early;   /* such kernels so far */
uint64_t cudasim_block_serial(); /* of the block that runs: a number that no other block of the process has had */

/* Returns what each thread of a launch does: the kernel, as the host's compiler made it, or its PTX, if $CUDASIM_PTX names a folder with
 * the PTX of all kernels (tests/ptx/). args: their addresses; they are copied. */
std::function<void()> cudasim_thread_body(const void *kernel, std::function<void()> host, const void *const *args, const size_t *sizes,
                                          const size_t *aligns, size_t n);

template <class... P> static inline std::function<void()> cudasim_body(void (*kernel)(P...), const std::tuple<P...> &copy)
{
	static const size_t sizes[] = {sizeof(P)..., 0}, aligns[] = {alignof(P)..., 0};
	return std::apply(
	    [&](const P &...a) {
		    const void *args[] = {&a..., NULL};
		    return cudasim_thread_body((const void *)kernel, [=] { std::apply(kernel, copy); }, args, sizes, aligns, sizeof...(P));
	    },
	    copy);
}
void cudasim_after_previous(); /* griddepcontrol.wait */
void cudasim_cover();          /* device memory cannot be reached until cudasim_reveal() */
void cudasim_reveal();

template <class... P, class... A>
static inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *c, void (*kernel)(P...), A &&...args)
{
	dim3 grid = c->gridDim, block = c->blockDim;
	std::tuple<P...> copy(args...);
	std::function<void()> thread = cudasim_body(kernel, copy);
	if (!grid.x || !grid.y || !grid.z || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535 || !block.x || !block.y || !block.z ||
	    block.x * block.y * block.z > 1024 || block.z > 64)
		return cudaErrorInvalidValue;
	if (c->dynamicSmemBytes)
		return cudaErrorInvalidValue; /* no kernel has dynamic shared memory here */
	bool early = c->numAttrs == 1 && c->attrs->id == cudaLaunchAttributeProgrammaticStreamSerialization &&
	             c->attrs->val.programmaticStreamSerializationAllowed;
	return cudasim_enqueue(c->stream, [=] { cudasim_run(grid, block, early, thread); });
}

#endif
