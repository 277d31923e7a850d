/* Internal to engine/report: the state of a smoke test, for smoke.c and smoke_against.c. */
#ifndef GT_REPORT_SMOKE_PARTS_H
#define GT_REPORT_SMOKE_PARTS_H

#include "base/arena.h"
#include "gtrain_against.h"
#include "report/smoke_plan.h"
#include "store/ckpt.h"

/* The losses and evaluations that a run of the smoke test has reported. */
struct gt_smoke_curve {
	double loss[GT_SMOKE_STEPS + 1]; /* loss of each optimizer step, from index 1 */
	int nevals;
	struct { char split[16]; double loss, acc; } eval[GT_AGAINST_EVALS];
};

struct gt_smoke_test {
	struct gt_conf *conf;
	const struct gt_run_opts *opts;
	void (*tell)(void *user, const struct gt_smoke *s);
	struct gt_arena *arena;
	struct gt_smoke_plan plan;
	struct gt_smoke shown;
	const char *dir, *run, *whole, *made; /* DIR, DIR/run, DIR/uninterrupted, DIR/made-up */
	size_t existed;                /* length of the part of the path `dir` that existed before the smoke test; used only with --out */
	double heard;                  /* time (gt_clock) of the last event from a rank */
	double train_s, eval_s, save_s;
	int64_t step;                  /* optimizer step that the last event reported */
	bool no_memory;                /* memory ran out when an event was parsed */
	struct gt_smoke_curve *curve;  /* receives the losses of the running program; NULL: they are not recorded */
	struct gt_smoke_curve device;  /* the uninterrupted run */
	bool silent;                   /* events of the running program do not change `shown` */
};

void gt_smoke_report_phase(struct gt_smoke_test *s, const char *phase, double seconds);
/* Starts the planned number of ranks with the arguments `base`, then `more`, then "-- operand", and waits until they end. */
enum gt_code gt_smoke_start_ranks(struct gt_smoke_test *s, char *const *base, const char *const *more, int nmore, const char *operand,
                                  struct gt_err *err);
/* Sets *more to options that make the plan's changes of the config. The array has space for `extra` additional options. */
enum gt_code gt_smoke_set_options(struct gt_smoke_test *s, int extra, const char ***more, int *n, struct gt_err *err);
/* Opens the checkpoint of the last step. which: as in gt_ckpt_open. */
enum gt_code gt_smoke_open_last(const char *path, const char *which, struct gt_ckpt **out, struct gt_err *err);
/* Reads tensor t of file `file` from both checkpoints into one block of memory, which begins at *x and which the caller frees. */
enum gt_code gt_smoke_read_pair(const struct gt_ckpt *a, const struct gt_ckpt *b, int file, const struct gt_ckpt_tensor *t, char **x,
                                char **y, struct gt_err *err);

/* Compares the device with the CPU: the losses of a whole run, then the results of each operation. GT_EDIFFERS: they differ by more than
 * rounding explains. Call it after the uninterrupted run. */
enum gt_code gt_smoke_against(struct gt_smoke_test *s, struct gt_err *err);

#endif
