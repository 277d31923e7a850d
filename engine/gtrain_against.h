/* The results of `gtrain run --smoke --against cpu`: the same steps on the device of the config and on the CPU, and each operation of these
 * steps on both with the same inputs. gt_smoke (gtrain.h) makes them; struct gt_smoke points to them. All memory is valid until gt_smoke
 * returns. */
#ifndef GT_GTRAIN_AGAINST_H
#define GT_GTRAIN_AGAINST_H

#include <stdbool.h>
#include <stdint.h>

#define GT_AGAINST_STEPS 6 /* number of steps of both runs */
#define GT_AGAINST_EVALS 4 /* maximum number of evaluations of each run that are kept */

/* A pair of values: of the device, and of the CPU. */
struct gt_against_pair {
	double device, cpu;
};

struct gt_against_eval {
	char split[16];
	struct gt_against_pair loss, acc; /* acc: NAN if the loss has no classes */
};

/* How far the tensors of two checkpoints are apart: of the tensor that is farthest, the 2-norm of the difference over its 2-norm. */
struct gt_against_distance {
	double worst;       /* 0: all tensors are equal */
	const char *tensor; /* name of that tensor; NULL: all are equal */
	int tensors;        /* number of tensors; 0: there is no such file */
};

/* The two runs. */
struct gt_against_runs {
	const char *device, *precision[2]; /* name of the device, and the precisions of the device and of the CPU, as in a config */
	int nsteps, nevals;
	struct gt_against_pair loss[GT_AGAINST_STEPS]; /* of each step */
	struct gt_against_eval eval[GT_AGAINST_EVALS];
	double worst, limit; /* worst relative difference of the losses; the largest one that rounding explains */
	struct gt_against_distance weights, moments;
	bool equal;          /* all bits of losses, weights and moments are equal */
};

/* The calls of one kernel: of one operation of one layer. */
struct gt_against_operation {
	const char *operation, *layer, *kernel; /* "conv2d.dw", "layer2.0.conv1", and the name of the implementation */
	int rank;                /* rank that computed the calls */
	int64_t calls, differ;   /* number of calls, and of those that differ by more than rounding explains */
	double share;            /* worst difference, in units of its tolerance */
	int64_t step, before;    /* first call that differs: its optimizer step, and the number of calls before it in this step that agree */
	const char *operand;     /* its tensor; NULL: no call differs */
	double worst, allowed;   /* worst difference in this tensor, and the tolerance of the element */
	int64_t at[5];           /* index of the element */
	int nat;                 /* number of dimensions of `at` */
	const char *absent;      /* why the CPU cannot compute the calls, which were not compared; NULL: they were */
};

struct gt_against_operations {
	const struct gt_against_operation *row; /* those that differ first, then those that were not compared, then the others */
	int n, differ, absent;   /* number of rows, of rows that differ, and of rows that were not compared */
	int64_t calls;           /* number of calls that were compared */
};

#endif
