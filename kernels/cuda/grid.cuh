/* Kernels whose blocks run at the same time and wait for each other: a barrier of the whole grid, dynamic shared memory, and their launch.
 *
 * The launch is cooperative (CUDA Programming Guide, "Grid Synchronization"): the driver starts all blocks at once or refuses, so that no
 * block waits for one that has no multiprocessor. */
#ifndef GT_KERNELS_CUDA_GRID_CUH
#define GT_KERNELS_CUDA_GRID_CUH

#include "cuda/device.cuh"

/* Waits until every block of the grid is here. What a block wrote to global memory before is then visible to all (read it with __ldcg,
 * because the L1 cache is not coherent). arrived counts the arrivals at all barriers of the launch and is 0 when the kernel starts; goal
 * is a variable of the thread, 0 before the first barrier. All threads of all blocks must call it. */
__device__ static inline void grid_barrier(uint32_t *arrived, uint32_t &goal)
{
#ifndef __CUDACC__
	(void)arrived, (void)goal;
	cudasim_grid_barrier();
#else
	goal += gridDim.x;
	__syncthreads();
	if (threadIdx.x == 0) {
		uint32_t seen;
		__threadfence(); /* also orders the writes of the block's other threads, which the barrier above has made visible to this one */
		atomicAdd(arrived, 1u);
		do
			asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
		while (seen < goal);
		__threadfence();
	}
	__syncthreads();
#endif
}

/* The dynamic shared memory of the block. */
__device__ static inline float *dynamic_shared()
{
#ifndef __CUDACC__
	return (float *)cudasim_dynamic_shared();
#else
	extern __shared__ float4 gt_dynamic_shared[];
	return (float *)gt_dynamic_shared;
#endif
}

/* Launches a kernel whose blocks all run at once. It has no programmatic dependent launch (device.cuh), so it begins when the kernels
 * before it have ended. */
template <class... P, class... A>
static inline cudaError_t launch_together(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t s, const A &...args)
{
	cudaLaunchConfig_t c = {};
	cudaLaunchAttribute together;
	together.id = cudaLaunchAttributeCooperative;
	together.val.cooperative = 1;
	c.gridDim = grid;
	c.blockDim = block;
	c.dynamicSmemBytes = shared;
	c.stream = s;
	c.attrs = &together;
	c.numAttrs = 1;
	return cudaLaunchKernelEx(&c, kernel, P(args)...);
}

#endif
