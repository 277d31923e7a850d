/* permute, select and select.dx: copies by element size (strided.h). A thread writes one element of the output. */
#include "cuda/device.cuh"
extern "C" {
#include "strided.h"
}

#define BLOCK 256

/* ---- kernel ---------------------------------------------------------------------------------------------------------------------- */
template <class U> __global__ void __launch_bounds__(BLOCK) copy_strided(const U *in, U *out, int64_t n, const gt_strided s)
{
	after_previous();
	int64_t i = (int64_t)blockIdx.x * BLOCK + threadIdx.x, left = i, from = s.first;
	bool zero = false;
	if (i >= n)
		return;
#pragma unroll
	for (int k = 3; k >= 0; k--) {
		int64_t rest = left / s.dim[k], at = left - rest * s.dim[k];
		from += at * s.step[k];
		zero |= k == s.guard && at != s.index;
		left = rest;
	}
	out[i] = zero ? (U)0 : in[from];
}

/* ---- launcher -------------------------------------------------------------------------------------------------------------------- */
static const char *refuse_call(const struct gt_opcall *op)
{
	struct gt_strided s;
	return gt_strided_make(op, &s);
}

static cudaError_t start_call(const struct gt_cu_call *c, cudaStream_t s)
{
	struct args {
		const void *in;
		void *out;
	} a = {};
	static const struct gt_operand_slot slots[] = {
	    GT_SLOT_AS(args, "x", in), GT_SLOT_AS(args, "dy", in), GT_SLOT_AS(args, "y", out), GT_SLOT_AS(args, "dx", out)};
	struct gt_strided how;
	int64_t n = gt_tdesc_count(gt_opcall_output(c->op)), blocks = ceil_div(n, BLOCK);
	if (gt_strided_make(c->op, &how) || !grid_fits(blocks))
		return cudaErrorInvalidValue;
	dim3 grid((unsigned)blocks), block(BLOCK);
	GT_CU_BIND(c, slots, &a);
	if (c->type == GT_CU_F32)
		return launch(copy_strided<uint32_t>, grid, block, s, (const uint32_t *)a.in, (uint32_t *)a.out, n, how);
	return launch(copy_strided<uint16_t>, grid, block, s, (const uint16_t *)a.in, (uint16_t *)a.out, n, how);
}

GT_CU_FAMILY(strided, start_call, NULL, refuse_call, "copy")
