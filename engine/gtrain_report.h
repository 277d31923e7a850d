/* A part of the public interface of the engine (gtrain.h): reports what a run would do, its speed, and the devices.
 *
 *     struct gt_json j = {0};
 *     struct gt_report *r;
 *     GT_TRY(gt_check(conf, &(struct gt_check_opts){0}, &j, &r, err));
 *     gt_report_free(r);
 */
#ifndef GT_GTRAIN_REPORT_H
#define GT_GTRAIN_REPORT_H

#include "base/err.h"
#include "base/problems.h"
#include "base/public.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_conf;
struct gt_json;
struct gt_run_opts;
struct gt_pretrained_report;

/* ---- look before running -------------------------------------------------------------------------------------------------- */
/* The part of the result of gt_check that callers use; the JSON object has more. */
struct gt_report {
	const char *name, *mode, *precision;
	bool computes_in_f32;                /* the device stores tensors in the type of the key `precision`, but computes in f32 */
	int64_t params, buffers;             /* number of elements of parameters and of buffers */
	int64_t outputs;                     /* number of values of the model's output for one sample */
	double flops_forward, flops_train;   /* floating-point operations for one sample: forward pass only; whole training step */
	int64_t train_samples, valid_samples, test_samples; /* number of samples of each split; -1: not known, because the data was not found */
	bool skips_files;                    /* train_samples, valid_samples and test_samples count image files; a run skips the files that
	                                        cannot be read */
	int64_t batch, steps_per_epoch, steps; /* samples of a step over all ranks; optimizer steps of an epoch and of the run, 0: not known */
	int world;                           /* number of ranks */
	const char *data;                    /* location of the data, or the reason why it was not found */
	uint64_t reading;                    /* host memory in bytes that is needed while a table or texts are read, before training; 0: none */
	const struct gt_pretrained_report *pretrained; /* what model.pretrained loads; NULL: the config has none, or the file is missing */
	struct gt_problems warnings;         /* sorted by line; in the report's arena */
	struct gt_problems skipped;          /* warnings about rows, cells and texts that the run skips; in the arena of the report */
	struct gt_arena *arena;              /* owns the report's memory */
};
struct gt_world_plan;
/* Adds members about the planned ranks to the report, an open object. */
typedef enum gt_code gt_report_part(void *user, const struct gt_world_plan *w, struct gt_json *j, struct gt_err *err);
struct gt_check_opts {
	const char *device;   /* name of the device whose kernels are planned; NULL: plan without a device */
	int world;            /* number of ranks; 0: the number that the config requests, or 1 if the config says "auto" */
	bool apart;           /* every rank is on a host of its own */
	bool classes;         /* plan ranks with equal programs once in a small world too */
	bool machine;         /* the warnings include the reasons why a run would fail on this machine, each with the exit code of the run */
	gt_report_part *more; /* called with the planned ranks after all other members of the report are written; may be NULL */
	void *user;           /* first argument of more */
};
/* Plans a run and reports on it. Writes the report to *j as an object to which the caller may add members before it ends it. The caller
 * frees *out with gt_report_free. */
enum gt_code gt_check(struct gt_conf *c, const struct gt_check_opts *o, struct gt_json *j, struct gt_report **out, struct gt_err *err);
void gt_report_free(struct gt_report *r);

/* Prints the list of steps of one rank to *out, which is malloc'ed and freed by the caller. If json is true, each line is a JSON object.
 * device and world have the same meaning as in gt_check. */
enum gt_code gt_plan_text(struct gt_conf *c, const char *device, int world, int rank, bool json, char **out, struct gt_err *err);

/* ---- machine -------------------------------------------------------------------------------------------------------------- */
/* Lists the devices of all backends in at most cap rows. A backend without devices gets one row with usable = false. *n: number of rows. */
enum gt_code gt_devices(struct gt_device_row *rows, int cap, int *n, struct gt_err *err);

void gt_build_info(struct gt_build_info *out);

struct gt_bench_row {
	char op[48], layer[64], impl[64];
	double ms, gflops, share; /* time in milliseconds in one step; speed in GFLOP/s; share of the step's time, 0 ... 1 */
	int64_t calls, size;      /* number of calls in one step; what each call works on, in the unit of gt_step_size (report/step_size.h) */
};
struct gt_bench_rank {
	int copy, pipe_rank;      /* index of the rank's copy of the model, and index of the rank within this copy */
	double step_ms, wait_ms;  /* duration of a step in ms, and the part of this time in communication, including waiting for other ranks */
};
struct gt_bench_stage {      /* times of a pipeline stage for one micro-batch */
	int pipe_rank;            /* index, within each copy of the model, of the rank that runs the stage */
	const char *first;        /* name of the first layer of the stage */
	double forward_ms, backward_ms, weights_ms; /* weights_ms: weight gradients, if a zero-bubble schedule computes them separately */
};
/* Duration of a step in those epochs in which other parameters are frozen than in the rest of the run (frozen_until, freeze_after). */
struct gt_bench_phase {
	const char *when; /* the epochs of the phase, for texts: "in the epochs after 1" */
	double step_ms, samples_per_s, gflops;
};
struct gt_bench {
	struct gt_bench_phase *phases; /* the phases of the run in order of time; all other fields describe steps outside of these phases */
	int nphases;
	struct gt_bench_row *rows; /* one row for each kernel of rank 0 */
	int nrows;
	double step_ms, samples_per_s, gflops, peak_mb; /* peak_mb: peak resident memory of the process, in MB */
	double kernels_ms; /* sum of the times of the kernels of the rank of step_ms, which were measured in other steps */
	const char *device;
	struct gt_bench_rank *ranks; /* one entry for each rank, if there are several ranks */
	int nranks;
	double wait;               /* share of a step's time in communication, 0 ... 1; mean over the ranks */
	struct gt_bench_stage *stages; /* stages of a pipeline */
	int nstages, micros;       /* micros: number of micro-batches of a step */
	/* Share of time, 0 ... 1, in which the ranks of a pipeline are idle because of the schedule. bubble: computed from the measured times
	 * of the stages. even: computed for stages that all take the same time. */
	double bubble, even;
	struct gt_arena *arena;
};
/* Times the kernels and steps of a config. It uses these fields of o: device, nproc, argv, link, say. Ranks are started as by gt_run, and
 * all of them call it. Only rank 0 gets a result; on the other ranks, and in the process that started them, *out is NULL. */
enum gt_code gt_bench(struct gt_conf *c, const struct gt_run_opts *o, int steps, struct gt_bench **out, struct gt_err *err);
/* Times the kernels of ranks of a world that does not run, one rank after the other on this device: rank 0 and, in a pipeline, the first
 * rank of each stage. Communication takes no time. The rows of *out are those of all measured ranks; step_ms is the time of the slowest.
 * device overrides the config's device; NULL: it does not. */
enum gt_code gt_bench_world(struct gt_conf *c, const char *device, int world, int steps, struct gt_bench **out, struct gt_err *err);
void gt_bench_free(struct gt_bench *b);

#endif
