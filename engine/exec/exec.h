/* Walks programs. Knows steps, kernels and buffers; no strategy, no model, no optimizer.
 *
 * Steps are queued in windows: up to GT_WINDOW executions of one program behind each other, each with numbers (gt_dyn) and scalars of its
 * own in device memory (a slot), so that nothing between them waits for the host. A window costs one copy of its numbers to the
 * device, one graph launch, and one copy of its scalars back, which the host reads while the next window runs. On a device whose memory is
 * the host's a window is one step, executed when it is launched, on the very same path without the copies.
 *
 * A window's life: gt_exec_window_size says how many steps it takes → gt_exec_numbers gives their gt_dyn to fill → gt_loader_claim fills
 * in where the samples lie → gt_exec_launch queues → gt_exec_collect waits and gives the scalars. At most `depth` windows are queued.
 * An evaluation's windows add to one set of scalars; they are not collected: gt_exec_metrics reads the sum. */
#ifndef GT_EXEC_EXEC_H
#define GT_EXEC_EXEC_H

#include "exec/loader.h"
#include "launch/launcher.h"
#include "plan/step.h"

#define GT_WINDOW 64
#define GT_LANES 32 /* gt_attr_comm.lane is below it */
#define GT_EXEC_PROGS 16 /* programs that one executor may see */
#define GT_EXEC_SIZES 3  /* a window holds 64, 8 or 1 steps: one graph each */

struct gt_window {
	const struct gt_prog *prog;
	int n;                         /* steps */
	struct gt_dyn *dyn;            /* host memory, prog->nmicro a step, as they went to the device */
	const struct gt_scaler *scaler;   /* host memory; after collect: as the window left it */
	const struct gt_scalars *scalars; /* n */
	bool busy;                     /* the device may still read or write what stands here */
	bool cold;                     /* the first of its program, which loads libraries: its time says nothing */
	double start;                  /* when it was launched */
};

/* What is known of a program. */
struct gt_exec_prog {
	const struct gt_prog *prog;
	bool train;                  /* it ends in an update; each of its steps has its own scalars */
	bool warm;                   /* it has been launched: libraries have loaded what they load at the first call, which none may in a capture */
	double step_s;               /* measured; 0: not yet */
	void *graph[GT_EXEC_SIZES];  /* NULL: not captured yet */
};

struct gt_exec {
	const struct gt_backend *be;
	struct gt_dev *dev;
	struct gt_space *space;
	struct gt_comm *lane[GT_LANES];        /* of GT_GROUP_PIPE; the first is group[GT_GROUP_PIPE] */
	struct gt_comm *group[GT_GROUP_COUNT]; /* of the programs' COMM steps; NULL: there is one rank */
	struct gt_batch *held; /* of each micro-batch of the program that runs: what was loaded */
	struct gt_rank_link *link; /* of the launcher that watches; NULL: none */
	double *times;     /* bench: seconds added per step of the program, which then runs without graphs; NULL: not timed */
	double *waited;    /* bench: seconds added that a step's thread is in what joins ranks; NULL: not timed */
	bool graphs;       /* capture and replay, where the backend can */
	int most;          /* steps of a window; 0: as many as take 0.1 s */
	bool told;         /* of several ranks, which must all have the same windows: told_s counts, and not this rank's own clock */
	double told_s;     /* seconds of a training step; 0: not known yet, one step a window */
	bool lockstep;     /* the numbers of a window depend on how the last one went: the host reads that first */
	int depth;         /* windows that may be queued: 2; 1 in lockstep, and where the device's memory is the host's */
	struct gt_window ring[2];
	int next, queued;  /* ring entry that comes next; entries that wait for collect */
	double collected;  /* when the last window was */
	struct gt_exec_prog prog[GT_EXEC_PROGS];
	int nprogs;
};

/* After gt_space_alloc, with be, dev and space set. Close before the space. */
enum gt_code gt_exec_open(struct gt_exec *x, struct gt_err *err);
void gt_exec_close(struct gt_exec *x);

/* Steps of the next window of p, of which `want` >= 1 are to be done. */
int gt_exec_window_size(struct gt_exec *x, const struct gt_prog *p, int64_t want);
/* Seconds of a step of p, as last measured; 0: not yet, or steps are not queued. */
double gt_exec_step_s(struct gt_exec *x, const struct gt_prog *p);
/* Where the numbers of the next window go: n * p->nmicro entries. Waits until the device has read what last stood there. */
enum gt_code gt_exec_numbers(struct gt_exec *x, struct gt_dyn **out, struct gt_err *err);
/* Queues n (from gt_exec_window_size) executions of p, which read samples of l. */
enum gt_code gt_exec_launch(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, int n, struct gt_err *err);
/* The oldest window of a training program; *out stays valid until the next gt_exec_numbers. */
enum gt_code gt_exec_collect(struct gt_exec *x, const struct gt_window **out, struct gt_err *err);
/* Waits for everything that is queued and forgets it. */
enum gt_code gt_exec_drain(struct gt_exec *x, struct gt_err *err);

/* The metrics of slot 0, to which evaluations add, copied; and zeroed when clear. */
enum gt_code gt_exec_metrics(struct gt_exec *x, bool clear, struct gt_metrics *out, struct gt_err *err);

/* After a step of p that was skipped: runs it again, from where l stands, up to the first tensor that holds NaN or infinity and says
 * which: layer, operation and, for activations, the sample. dyn: the step's numbers, nmicro of them. Always returns GT_EDIVERGED with the
 * sentence in err. Nothing may be queued. */
enum gt_code gt_exec_diagnose(struct gt_exec *x, const struct gt_prog *p, struct gt_loader *l, const struct gt_dyn *dyn, int64_t step,
                              struct gt_err *err);

#endif
