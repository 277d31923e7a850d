/* Shared by the loops of the CPU backend: function clones for several instruction sets, the distribution of work over threads, and types.
 *
 *     GT_CLONES static void scale(const void *ctx, int64_t begin, int64_t end);       processes the elements [begin, end)
 *     gt_cpu_for(dev, n, 4096, 16, scale, &ctx);                                      divides [0, n) among the threads
 *
 * The two levels are necessary because an OpenMP region inside a cloned function would be compiled only for the baseline instruction set.
 * Results never depend on the division: a function processes its elements independently, or reduces over chunks with fixed boundaries. */
#ifndef GT_KERNELS_CPU_LOOPS_H
#define GT_KERNELS_CPU_LOOPS_H

#include "clones.h"
#include "cpu/cpu.h"
#include "opsig.h"
#include <stddef.h>
#include <stdlib.h>

typedef void gt_range_fn(const void *ctx, int64_t begin, int64_t end);

/* Calls fn on pieces of [0, n) in parallel. Pieces begin at multiples of `align` and have at least `grain` elements, because starting and
 * joining threads costs about 2 us. */
void gt_cpu_for(const struct gt_dev *dev, int64_t n, int64_t grain, int64_t align, gt_range_fn *fn, const void *ctx);

/* y = act(y + res) over n elements of f32, bf16 or f64 (eltwise.c). act: enum gt_act. res NULL: there is no residual. */
void gt_cpu_finish(const struct gt_dev *dev, enum gt_dtype type, int act, void *y, const void *res, int64_t n);
void gt_cpu_finish_rows(int act, float *y, int64_t n); /* y = act(y) in f32, by the calling thread alone */
/* y = x over n elements, from bf16 to f32 (widen) and from f32 to bf16, rounded to nearest even (narrow; eltwise.c). */
void gt_cpu_widen(const struct gt_dev *dev, float *y, const uint16_t *x, int64_t n);
void gt_cpu_narrow(const struct gt_dev *dev, uint16_t *y, const float *x, int64_t n);

/* The gradient of a bias: db[channels] (+)= the sums of dy over images x pixels (rowsum.c). */
struct gt_cpu_bias {
	const float *dy; /* [images][pixels][channels] */
	float *db;
	int64_t images, pixels, channels;
	bool add; /* add to the values in db */
};
void gt_cpu_sum_bias(const struct gt_dev *dev, const struct gt_cpu_bias *bias);

/* Chooses the plain layout for weights in f32 whose layout the kernel may choose. */
static inline void gt_cpu_choose_plain(struct gt_tdesc *w)
{
	if (w->any)
		w->layout = gt_tdesc_make(GT_F32, 4, w->dim, false).layout;
	w->any = false;
}

/* Interleaves rows 2k and 2k + 1 of each block of rows x cols elements, in place (pair_rows.c). can_pair: whether it supports the block. */
bool gt_cpu_can_pair(int64_t rows, int64_t cols);
void gt_cpu_pair_rows(const struct gt_dev *dev, float *p, int64_t count, int64_t rows, int64_t cols);

/* Returns whether gt_cpu_for uses one thread for n elements. A kernel of this size sets gt_kernel.small. */
static inline bool gt_cpu_alone(int64_t n, int64_t grain)
{
	return n / (grain > 0 ? grain : 1) < 2;
}

/* gt_cpu_type returns the index of a dtype in a table with one entry for each of these dtypes, or -1 for another dtype. */
enum { GT_T_F32, GT_T_BF16, GT_T_F64, GT_T_COUNT };
static inline int gt_cpu_type(enum gt_dtype t)
{
	return t == GT_F32 ? GT_T_F32 : t == GT_BF16 ? GT_T_BF16 : t == GT_F64 ? GT_T_F64 : -1;
}

/* One entry for each of the dtypes of gt_cpu_type, in a table of functions that typed.inc has made. */
#define GT_TYPES(op)                                                                                                                       \
	{                                                                                                                                      \
		op##_f32, op##_bf16, op##_f64                                                                                                      \
	}

/* A kernel made of loops. Its struct has the shapes, which prepare fills in, and the address of each operand in a member with the operand's
 * name in opcall.h. A launch sets the addresses (NULL: the operand is absent), then runs the loop, which gets the kernel as its context:
 *
 *     struct softmax {
 *         struct gt_cpu_loop loop;
 *         const void *x;
 *         void *y;
 *         int64_t cols;
 *     };
 *     static const struct gt_operand_slot slots[] = {GT_SLOTS(softmax, x, y)};
 *
 *     GT_LOOP_NEW(k, slots, call, "loop", err);
 *     k->cols = x->dim[1];
 *     gt_cpu_loop_over(&k->loop, softmax_f32, rows, grain);
 *
 * A kernel that needs more than a loop sets loop.head.launch to a function that begins with `struct softmax *k = gt_cpu_loop_bind(head,
 * a);`. Because a launch writes to the kernel, launches of one kernel do not overlap. */
struct gt_cpu_loop {
	struct gt_kernel head;
	gt_range_fn *fn; /* the loop over [0, n); the members have the meaning of the arguments of gt_cpu_for */
	int64_t n, grain, align;
	struct gt_binding binding;
};

/* Allocates a kernel, with zeros. */
#define GT_KERNEL_NEW(k, err)                                                                                                              \
	do {                                                                                                                                   \
		if (!((k) = calloc(1, sizeof *(k))))                                                                                               \
			return gt_fail(err, GT_EFAIL, "out of memory");                                                                                \
	} while (0)
/* Allocates a kernel whose first member is struct gt_cpu_loop loop. slots is an array with all operands of the operations of the family. */
#define GT_LOOP_NEW(k, slots, call, text, err)                                                                                             \
	do {                                                                                                                                   \
		GT_KERNEL_NEW(k, err);                                                                                                             \
		gt_cpu_loop_init(&(k)->loop, slots, sizeof(slots) / sizeof *(slots), call, text);                                                  \
	} while (0)
void gt_cpu_loop_init(struct gt_cpu_loop *k, const struct gt_operand_slot *slots, size_t n, const struct gt_opcall *call, const char *text);

static inline void gt_cpu_loop_over(struct gt_cpu_loop *k, gt_range_fn *fn, int64_t n, int64_t grain)
{
	k->fn = fn;
	k->n = n;
	k->grain = grain;
}

/* Sets the addresses of the operands and returns the kernel. */
static inline void *gt_cpu_loop_bind(struct gt_kernel *head, const struct gt_launch *a)
{
	gt_binding_apply(&((struct gt_cpu_loop *)head)->binding, head, a->in, a->out);
	return head;
}

#endif
