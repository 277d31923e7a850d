/* Predicts the time of a step on a GPU that is only described, from what each kernel moves and computes (kernels/opcost.h) and from the
 * ceilings of the card. A prediction is a bound with assumptions, not a measurement.
 *
 *     const struct gt_card *card = gt_card_find("h200");
 *     gt_roofline(&prog, card, true, false, arena, &r, err);           the program must be planned for a GPU (--device null:cuda)
 *
 * For each kernel:
 *     time = gap + max(latency, bytes / bandwidth, FLOPs / rate)
 *
 *     gap        from the end of a kernel to the start of the next one in a CUDA graph
 *     latency    of the kernel itself, if it has next to nothing to do
 *     bandwidth  of the memory; of the L2 cache if all operands of the call fit into half of it
 *     rate       of tensor cores for matrix products of libraries, of f32 units for everything else; only a part of it if a product has
 *                fewer pieces than the card has multiprocessors
 * The efficiencies with which peaks are multiplied are in gt_roofline_assumptions.
 *
 * Kernels of two streams run at the same time, as far as the program's events allow. A kernel needs a share of the card: the time that its
 * bytes or FLOPs would take at the ceilings of the whole card, divided by its own time. A kernel that is limited by latency, or has few
 * pieces, needs little. While the shares of all running kernels add up to more than 1, all of them slow down by this sum. */
#ifndef GT_PAR_ROOFLINE_H
#define GT_PAR_ROOFLINE_H

#include "plan/step.h"

/* A card as its data sheet describes it. Rates are in FLOP/s without sparsity, and bandwidths in bytes per second. */
struct gt_card {
	const char *word, *name; /* word: the value of --card */
	double bf16, tf32, fp32; /* tensor cores with f32 sums for bf16 and f16; tensor cores in tf32; f32 units */
	double memory;           /* bandwidth of the memory */
	double l2_bytes, l2;     /* size of the L2 cache, and its bandwidth, which is an estimate (cards.c) */
	double bytes;            /* size of the memory */
	int sms;                 /* multiprocessors */
};
const struct gt_card *gt_card_find(const char *word); /* NULL: there is no such card */
const struct gt_card *gt_card_at(int i);              /* NULL after the last one */

/* What the prediction assumes. */
struct gt_roofline_assumptions {
	double memory, l2;    /* share of the bandwidth that kernels reach */
	double tensor, fp32;  /* share of the rate that kernels reach */
	double gap, latency;  /* seconds */
};
extern const struct gt_roofline_assumptions gt_roofline_assumptions;

/* The ceiling that decides the time of a kernel. */
enum gt_ceiling { GT_CEILING_LATENCY, GT_CEILING_MEMORY, GT_CEILING_L2, GT_CEILING_TENSOR, GT_CEILING_FP32, GT_CEILING_COUNT };
const char *gt_ceiling_name(enum gt_ceiling c); /* "latency", "memory", "L2", "tensor cores", "f32 units" */

/* One call of a program. A call of several kernels has the time of all of them. */
struct gt_roofline_row {
	const char *op, *layer;
	double bytes, flops;
	double seconds; /* if nothing else runs */
	double share;   /* of the card, 0 ... 1 */
	int kernels, stream;
	enum gt_ceiling ceiling;
};

struct gt_roofline {
	struct gt_roofline_row *row; /* in the order of the program */
	int nrows;
	double seconds;              /* of one execution of the program */
	double one_by_one;           /* seconds of all kernels, if none overlapped with another */
	double bytes, flops;
	int kernels;                 /* nodes of its CUDA graph */
};

/* tf32: products of f32 use tensor cores. Fails with GT_EUNAVAILABLE if the program has steps whose time depends on other ranks. */
enum gt_code gt_roofline(const struct gt_prog *p, const struct gt_card *card, bool tf32, struct gt_arena *a, struct gt_roofline *out,
                         struct gt_err *err);

#endif
