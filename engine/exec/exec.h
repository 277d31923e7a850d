/* The executor: runs programs (plan/program.h) on a device. It does not depend on the parallel mode, model or optimizer.
 *
 *     gt_exec_open(&x, err);                                 the caller has set x.be, x.dev and x.space
 *     int n = gt_exec_window_size(&x, prog, steps_left);
 *     gt_exec_step_args(&x, &step_args, err);                the caller fills in n * prog->nmicro entries
 *     for (int i = 0; i < n; i++)                            fills in the sample positions
 *         gt_loader_take_parts(loader, prog->nmicro, &step_args[i * prog->nmicro], err);
 *     gt_exec_launch(&x, prog, loader, n, err);
 *     gt_exec_collect(&x, &window, err);                     waits; the results are window->scalars[0 ... n - 1]
 *     gt_exec_close(&x);
 *
 * Windows. The executor queues steps in windows. A window is up to GT_WINDOW consecutive executions of one program. Each execution has its
 * own step arguments (gt_step_args) and scalars in device memory, called a slot, so that the device does not wait for the host between
 * steps. A window costs one copy of its step arguments to the device, one graph launch, and one copy of its scalars back, which the host
 * reads while the next window runs:
 *
 *     host     fill 0, launch 0 | fill 1, launch 1 | wait and collect 0 | fill 2, launch 2 | wait and collect 1 | ...
 *     device                    | window 0 ------------------ | window 1 ------------------------------ | window 2 ...
 *
 *     window   copy step arguments to the device | step 0 | step 1 | ... | step n - 1 | copy scalars to the host
 *
 * At most `depth` windows are queued. On a device that uses host memory, a window is one step; the launch itself executes the step, on the
 * same code path without the copies. The windows of an evaluation all add to the scalars of slot 0. They are not collected: gt_exec_metrics
 * reads the sum. */
#ifndef GT_EXEC_EXEC_H
#define GT_EXEC_EXEC_H

#include "exec/loader.h"
#include "launch/launcher.h"
#include "plan/program.h"

#define GT_WINDOW 64     /* maximum number of steps in a window */
#define GT_LANES 32      /* maximum number of lanes (gt_attr_comm.lane): each is a communicator between two pipeline stages */
#define GT_EXEC_PROGS 320 /* maximum number of programs that one executor can run */
#define GT_EXEC_SIZES 3  /* number of sizes that a window may have: 64, 8 or 1 training steps */

/* A window that is queued or was collected: an entry of the ring gt_exec.ring. */
struct gt_window {
	const struct gt_prog *prog;
	int n;                            /* number of steps */
	struct gt_step_args *step_args;   /* host memory: the step arguments that were sent to the device, prog->nmicro for each step */
	const struct gt_scaler *scaler;   /* host memory; after gt_exec_collect: the scaler's state at the end of the window */
	const struct gt_scalars *scalars; /* host memory; after gt_exec_collect: n entries, one for each step */
	bool busy;                        /* the device may still read or write the host memory of this window */
	bool cold;                        /* first window of its program: its time includes the loading of libraries and is not used */
	double start;                     /* time of the launch, in seconds (gt_clock) */
};

/* Data that the executor keeps about a program that it has run: measured time and captured graphs. */
struct gt_exec_prog {
	const struct gt_prog *prog;
	bool train;    /* true: the program has a CHECK step, and each execution has its own scalars; false: an evaluation */
	bool warm;     /* the program has been launched before. A first launch may load libraries, which is not possible during a capture */
	double step_s; /* measured seconds of one step; 0: not measured yet */
	void *graph[GT_EXEC_SIZES]; /* the captured CUDA graph for each window size; NULL: not captured yet */
};

struct gt_exec {
	const struct gt_backend *be;
	struct gt_dev *dev;
	struct gt_space *space;
	struct gt_comm *lane[GT_LANES];        /* one communicator of GT_GROUP_PIPE for each lane; lane[0] is group[GT_GROUP_PIPE] */
	struct gt_comm *group[GT_GROUP_COUNT]; /* one communicator for each enum gt_group; NULL: there is one rank */
	struct gt_batch *loaded_batches; /* the batches that the running program has loaded, one entry for each micro-batch; owned */
	struct gt_rank_link *link; /* connection to the launcher that watches this rank; NULL: none */
	/* executes the communication stream (comm_thread.h); owned; NULL: the device has streams, or communication does not overlap */
	struct gt_comm_thread *comm_thread;
	double *times;     /* for bench: total seconds of each program step, measured without graphs; NULL: not measured */
	/* total seconds that this rank's thread spent in communication, or waiting for the communication stream; NULL: not measured */
	double *waited;
	bool overlaps;     /* true: gt_exec_open starts a thread for the communication stream; only on a device that uses host memory */
	bool graphs;       /* capture and replay graphs, if the backend can */
	int max_window_steps; /* maximum number of steps in a window; 0: as many steps as take about 0.1 s */
	/* True if there are several ranks. All ranks must queue the same number of steps in a window, so gt_exec_window_size then uses
	 * rank0_step_s instead of this rank's own measurement. */
	bool uses_rank0_time;
	/* Communicators start with a longer timeout (GT_PATIENCE). timeout_s is the final timeout in seconds, which the executor sets after the
	 * first window; 0: already set. */
	double timeout_s;
	double rank0_step_s; /* seconds of one training step, measured on rank 0 and sent to all ranks; 0: not measured yet */
	bool lockstep;     /* the host must read the results of a window before it can fill in the step arguments of the next window */
	int depth;         /* number of windows that may be queued: 1 with lockstep or if the device uses host memory, else 2 */
	struct gt_window ring[2];
	int next, queued;  /* next: index in ring of the next window; queued: number of windows that wait for gt_exec_collect */
	double collected;  /* time of the last gt_exec_collect, in seconds (gt_clock) */
	struct gt_exec_prog prog[GT_EXEC_PROGS];
	int nprogs;
};

/* Opens x. The caller has set x->be, x->dev and x->space, and has called gt_space_alloc. Close x before the space. */
enum gt_code gt_exec_open(struct gt_exec *x, struct gt_err *err);
void gt_exec_close(struct gt_exec *x);

/* Returns the number of steps for the next window of program p, which are queued on the device at once; at most `want`. want: number of
 * remaining steps, >= 1. */
int gt_exec_window_size(struct gt_exec *x, const struct gt_prog *p, int64_t want);
/* Returns the seconds of one step of program p by the latest measurement; 0: not measured yet, or the device does not queue steps. */
double gt_exec_step_s(struct gt_exec *x, const struct gt_prog *p);
/* Sets *out to the host memory for the step arguments of the next window, p->nmicro entries for each step, which the caller fills in. Waits
 * until the device has read the previous contents. */
enum gt_code gt_exec_step_args(struct gt_exec *x, struct gt_step_args **out, struct gt_err *err);
/* Queues a window of n executions of p (n from gt_exec_window_size), which read samples from l. */
enum gt_code gt_exec_launch(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, int n, struct gt_err *err);
/* Waits for the oldest queued window of a training program. *out is valid until the next call of gt_exec_step_args. */
enum gt_code gt_exec_collect(struct gt_exec *x, const struct gt_window **out, struct gt_err *err);
/* Waits until all queued steps have finished, and discards their results, for example to find the cause of a loss that is not finite. */
enum gt_code gt_exec_drain(struct gt_exec *x, struct gt_err *err);

/* Copies the metrics of slot 0, to which evaluations add, to *out; then zeroes them if clear is set. */
enum gt_code gt_exec_metrics(struct gt_exec *x, bool clear, struct gt_metrics *out, struct gt_err *err);

/* Finds the cause of a skipped step: runs the step of p again, with the samples at l's current position, up to the first tensor that holds
 * NaN or infinity. step_args: the arguments of the step, nmicro entries. Always returns GT_EDIVERGED, with a sentence that names the layer,
 * the operation and, for activations, the sample. No step may be queued. */
enum gt_code gt_exec_diagnose(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, const struct gt_step_args *step_args,
                              int64_t step, struct gt_err *err);
/* Evaluates one batch again: runs p, a program without a CHECK step, with the samples at l's current position. Writes to `why` a clause
 * that names the layer, the operation and the sample of the first output with NaN or infinity; "" if all outputs are finite. step_args:
 * nmicro entries. With several ranks, all ranks call it for the same batch. No step may be queued. */
enum gt_code gt_exec_diagnose_eval(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, const struct gt_step_args *step_args,
                                   char *why, size_t size, struct gt_err *err);
/* Sets *bad to whether an output of plan->call[call], which has just been run, holds NaN or infinity. */
enum gt_code gt_exec_diagnose_call(const struct gt_exec *x, const struct gt_plan *plan, int call, bool *bad, struct gt_err *err);

#endif
