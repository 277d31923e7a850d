/* The update of one element by an optimizer of optimizer_rows.h, as a type that the kernel templates of update.cu take as an argument. */
#ifndef GT_KERNELS_CUDA_OPTIM_STEP_CUH
#define GT_KERNELS_CUDA_OPTIM_STEP_CUH

#include "cuda/device.cuh"

/* The update operation and the bit mask of its existing states are template arguments: with branches at run time, the compiler would keep
 * the states in local memory instead of registers. */
template <int CODE> struct row;
#define GT_X(NAME, name, s0, s1, s2, loops)                                                                                           \
	template <> struct row<GT_OP_##NAME> {                                                                                            \
		static const int all = GT_STATES_ALL(s0, s1, s2), must = GT_STATES_MUST(s0, s1, s2);                                          \
		__device__ static float step(const gt_opt_f32 *h, float p, float g, float *a, float *b, float *c, bool first, bool nesterov)  \
		{                                                                                                                             \
			return gt_step_##name##_f32(h, p, g, a, b, c, first, nesterov);                                                           \
		}                                                                                                                             \
	};
GT_ELEMENT_UPDATES(GT_X)
#undef GT_X
/* The updates that need the norm of a tensor (NORMS in optimizer_rows.h). All their states exist. s: the states of one element. */
#define GT_X(NAME, name, s0, s1, s2, loops)                                                                                           \
	template <> struct row<GT_OP_##NAME> {                                                                                            \
		static const int all = GT_STATES_ALL(s0, s1, s2);                                                                             \
		__device__ static float direction(const gt_opt_f32 *h, float p, float g, float *s)                                            \
		{                                                                                                                             \
			return gt_direction_##name##_f32(h, p, g, all & 1 ? s : NULL, all & 2 ? s + 1 : NULL, all & 4 ? s + 2 : NULL);            \
		}                                                                                                                             \
		__device__ static float again(const gt_opt_f32 *h, float p, const float *s)                                                   \
		{                                                                                                                             \
			return gt_again_##name##_f32(h, p, all & 1 ? s : NULL, all & 2 ? s + 1 : NULL, all & 4 ? s + 2 : NULL);                   \
		}                                                                                                                             \
	};
GT_NORM_UPDATES(GT_X)
#undef GT_X

template <int CODE, int HAS> struct step {
	static constexpr int code = CODE, states = (HAS & 1) + (HAS >> 1 & 1) + (HAS >> 2 & 1);
	__device__ static constexpr bool use(int k)
	{
		return HAS >> k & 1;
	}
	__device__ static float f(const gt_opt_f32 &h, float p, float g, float *s, bool first, bool nesterov)
	{
		return row<CODE>::step(&h, p, g, use(0) ? &s[0] : NULL, use(1) ? &s[1] : NULL, use(2) ? &s[2] : NULL, first, nesterov);
	}
};

/* Computes the scalars of the update of a segment. step, lr, momentum: number, learning rate and momentum of the optimizer step. */
__device__ static inline gt_opt_f32 opt_of(int code, const struct gt_attr_update *attr, struct gt_seg seg, int64_t step, double lr,
                                           double momentum, const struct gt_scalars *scalars)
{
	struct gt_step_args step_args;
	step_args.step = step;
	step_args.lr[0] = lr;
	step_args.momentum[0] = momentum;
	seg.lr = 0; /* index of the only learning rate in step_args; since it is constant, the compiler keeps the arrays in registers */
	return gt_opt_make_f32((enum gt_opcode)code, attr, &seg, &step_args, scalars);
}

#endif
