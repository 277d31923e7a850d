/* The results of `gtrain run --smoke --against cpu`: the same steps on the device of the config and on the CPU, and each operation of these
 * steps on both with the same inputs. gt_smoke (gtrain.h) makes them; struct gt_smoke points to them. All memory is valid until gt_smoke
 * returns. */
#ifndef GT_GTRAIN_AGAINST_H
#define GT_GTRAIN_AGAINST_H

#include <stdbool.h>
#include <stdint.h>

#define GT_AGAINST_STEPS 6 /* number of optimizer steps in the run on the device and in the run on the CPU */
#define GT_AGAINST_EVALS 4 /* maximum number of evaluations of each run that are compared */

/* A value that the device computed, and the same value from the CPU. */
struct gt_against_pair {
	double device, cpu;
};

struct gt_against_eval {
	char split[16];
	struct gt_against_pair loss, acc; /* loss and accuracy of the evaluation; acc is NAN if the loss has no classes */
};

/* The largest relative difference between the tensors of two checkpoints: 2-norm of the difference divided by the 2-norm of the tensor. */
struct gt_against_distance {
	double worst;       /* largest relative difference of a tensor; 0: all tensors are equal */
	const char *tensor; /* name of the tensor with the largest relative difference; NULL: all tensors are equal */
	int tensors;        /* number of compared tensors; 0: the checkpoints have no such file */
};

/* The two runs. */
struct gt_against_runs {
	const char *device, *precision[2]; /* name of the device, and the precisions of the device and of the CPU, as in a config */
	int nsteps, nevals;
	struct gt_against_pair loss[GT_AGAINST_STEPS]; /* of each step */
	struct gt_against_eval eval[GT_AGAINST_EVALS];
	double worst, limit; /* largest relative difference of the losses, and the largest difference that rounding can explain */
	struct gt_against_distance weights, moments;
	bool equal;          /* all bits of losses, weights and moments are equal */
};

/* The comparison of all calls of one kernel for one operation of one layer. */
struct gt_against_operation {
	const char *operation, *layer, *kernel; /* "conv2d.dw", "layer2.0.conv1", and the name of the implementation */
	int rank;                /* rank that computed the calls */
	int64_t calls, differ;   /* number of calls, and number of calls whose difference is larger than rounding can explain */
	double share;            /* largest difference of an element, divided by the element's tolerance */
	int64_t step, before;    /* first call that differs: its optimizer step, and the number of earlier calls in this step that agree */
	const char *operand;     /* name of the tensor that differs in the first call that differs; NULL: no call differs */
	double worst, allowed;   /* largest difference in tensor `operand`, and the tolerance of the element that has this difference */
	int64_t at[5];           /* index of the element with the difference `worst` in tensor `operand` */
	int nat;                 /* number of dimensions of the index `at` */
	const char *absent;      /* reason why the CPU cannot compute the calls, so that they were not compared; NULL: they were compared */
};

struct gt_against_operations {
	const struct gt_against_operation *row; /* [n] sorted: first the operations that differ, then those that were not compared, then those
	                                           that agree */
	int n, differ, absent;   /* number of operations, of operations that differ, and of operations that were not compared */
	int64_t calls;           /* number of calls that were compared */
};

#endif
