/* Internal to engine/report: the state of a smoke test, for smoke.c and smoke_against.c. */
#ifndef GT_REPORT_SMOKE_PARTS_H
#define GT_REPORT_SMOKE_PARTS_H

#include "base/arena.h"
#include "gtrain_against.h"
#include "report/smoke_plan.h"
#include "store/ckpt.h"

/* What a run said about its steps. */
struct gt_smoke_curve {
	double loss[GT_SMOKE_STEPS + 1]; /* of each step, from 1 */
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
	size_t existed;                /* length of the part of the path dir that existed before; only with --out */
	double heard;                  /* time of the last event */
	double train_s, eval_s, save_s;
	int64_t step;                  /* optimizer step that the last event reported */
	bool no_memory;                /* memory ran out when an event was parsed */
	struct gt_smoke_curve *curve;  /* receives the events of the run that runs now; NULL: they are not kept */
	struct gt_smoke_curve device;  /* the uninterrupted run */
	bool silent;                   /* the events of the run that runs now do not change `shown` */
};

void gt_smoke_report_phase(struct gt_smoke_test *s, const char *phase, double seconds);
/* Starts the ranks of the plan with the arguments `base`, `more` and "-- operand", and waits for them. */
enum gt_code gt_smoke_start_ranks(struct gt_smoke_test *s, char *const *base, const char *const *more, int nmore, const char *operand,
                                  struct gt_err *err);
/* Sets *more to the changes of the config as options, with space for `extra` further ones. */
enum gt_code gt_smoke_set_options(struct gt_smoke_test *s, int extra, const char ***more, int *n, struct gt_err *err);
/* Opens the checkpoint of the last step. which: as in gt_ckpt_open. */
enum gt_code gt_smoke_open_last(const char *path, const char *which, struct gt_ckpt **out, struct gt_err *err);
/* Reads tensor t of a file of both checkpoints into memory of malloc, which begins at *x; the caller frees *x. */
enum gt_code gt_smoke_read_pair(const struct gt_ckpt *a, const struct gt_ckpt *b, int file, const struct gt_ckpt_tensor *t, char **x,
                                char **y, struct gt_err *err);

/* Compares with the CPU: runs on the CPU, then each operation. GT_EDIFFERS: they differ. Call it after the uninterrupted run. */
enum gt_code gt_smoke_against(struct gt_smoke_test *s, struct gt_err *err);

#endif
