/* A part of the public interface of the engine (gtrain.h): what a run would do, how fast it is, and on which devices.
 *
 *     struct gt_report *r;
 *     GT_TRY(gt_check(conf, NULL, 0, &r, err));
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
struct gt_run_opts;
struct gt_pretrained_report;

/* ---- look before running -------------------------------------------------------------------------------------------------- */
struct gt_check_layer {
	const char *name, *type;
	char shape[96];          /* shape of the output of one batch, as text */
	int64_t params;          /* number of elements of its parameters */
	double flops;            /* floating-point operations of a forward pass over one batch */
};
struct gt_check_memory {
	const char *arena;       /* "parameters", "gradients", "optimizer state", "activations", ... */
	uint64_t bytes, least;   /* size on the rank that needs the most memory in total, and on the rank that needs the least */
	bool common;             /* all ranks of a host share one copy of the arena */
};
/* The communication of a rank in one optimizer step, summed over the calls of the same kind in the same group of ranks. */
struct gt_check_traffic {
	const char *kind, *group; /* kind: "all_reduce", "send", ...; group: "world", "data" (ranks with the same part of the model), "pipe" */
	int64_t calls;            /* number of calls */
	/* Bytes that the rank sends with an algorithm that sends the fewest bytes. For n bytes on W ranks: all_reduce 2 n (W - 1) / W,
	 * reduce_scatter and all_gather n (W - 1) / W, broadcast n. */
	uint64_t bytes;
};
struct gt_check_rank {
	int copy, pipe_rank;      /* number of its copy of the model, and of the rank within this copy (0 except in a pipeline), from 0 */
	uint64_t *memory, total;  /* memory[gt_report.nmemory]: bytes of each arena; total: their sum */
	int steps;                /* number of program steps in an optimizer step */
	int64_t samples;          /* samples that it reads in an optimizer step */
	double flops;             /* floating-point operations of the rank in an optimizer step */
	struct gt_check_traffic *traffic;
	int ntraffic;
	uint64_t sent;            /* bytes that it sends in an optimizer step */
};
/* A bucket: consecutive parameters whose gradients are communicated together, in the order in which the backward pass completes them. */
struct gt_check_bucket {
	int pipe_rank;            /* number, within each copy of the model, of the rank that has the bucket */
	bool learned;             /* true: its parameters have gradients; false: its parameters are frozen */
	const char *first, *last; /* names of its first and last parameter */
	int nparams;
	uint64_t bytes, shard;    /* bytes of all parameters of the bucket; bytes of one rank's shard of them, 0 if it is not sharded */
};
/* The ranks that have the shards of one parameter. */
struct gt_check_owner {
	const char *name;         /* name of the parameter */
	int bucket, first, last;  /* number of its bucket; the first and the last rank, among those that share the bucket, with a part of it */
};
struct gt_check_stage {
	int pipe_rank;            /* number, within each copy of the model, of the rank that runs it */
	const char *first, *last; /* names of its first and last layer */
	int nlayers;
	int64_t params;           /* number of elements of its parameters */
	double share;             /* share of the stage in the FLOPs of a step, 0 ... 1 */
	int slots;                /* number of micro-batches whose activations it keeps at the same time */
};
struct gt_check_group {      /* an entry of train.groups */
	const char *match;       /* patterns of the names of its parameters, such as "*.norm1.bias, *.norm2.bias" */
	bool frozen;             /* the parameters of the group are not trained */
	double frozen_until;     /* number of epochs at the beginning in which the group is frozen; 0: none */
	double freeze_after;     /* number of epochs after which the group is frozen; 0: never */
	bool frozen_stats;       /* the batch normalisations of the group do not update their running statistics */
	double lr[5];            /* learning rate of the group at 0, 25, 50, 75, 100 % of the run; NAN: the length of the run is not known */
	double momentum[5];      /* its momentum, or beta1, at the same times, if the schedule changes it; else NAN */
};
struct gt_check_block {      /* a block of layers, with train.layer_decay */
	const char *name;
	double factor;           /* factor of the learning rate of its parameters */
};
/* A column of a table, and what the training split has taught about it. */
struct gt_check_column {
	const char *name, *type; /* type as in data.columns */
	const char *why;         /* why it has this type; "given; …" if the config says so, with what would be inferred */
	int64_t different;       /* number of different words or classes; -1: a column of numbers, or one that is not used */
	int64_t missing;         /* rows of the training split without a value */
	double mean, std;        /* of numbers; NAN: others */
};
/* The texts of the training files, as the model reads them. */
struct gt_check_texts {
	const char *tokenizer;        /* word of data.tokenizer; NULL: the data has no texts */
	int64_t vocabulary, ids;      /* tokens in the vocabulary; different tokens, those of n-grams included */
	int64_t texts, max_tokens;
	double mean;                  /* mean number of tokens of a text */
	double unknown, truncated;    /* shares of tokens that the vocabulary lacks, and of texts that are cut off */
};
/* A part of the run in which parameters are frozen that are trained in another part (frozen_until, freeze_after). */
struct gt_check_phase {
	const char *when;                    /* "in the epochs after 1" */
	int index;                           /* position among all parts of the run, also those that it does not reach */
	int64_t steps;                       /* number of optimizer steps; 0 if the steps of an epoch are not known */
	double flops_forward, flops_train;   /* as in gt_report */
};
struct gt_report {
	const char *name, *device, *mode, *precision;
	const char *native;                  /* gt_check_machine: gt_device_row.native of the run's device; NULL: no machine was checked */
	bool computes_in_f32;                /* gt_check_machine: the device stores precision's type and computes in f32 */
	struct gt_check_layer *layers;
	int nlayers;
	struct gt_check_memory *memory;
	int nmemory;
	uint64_t decoding;                   /* maximum bytes that the threads of a rank which decode samples keep besides; 0: none do */
	int64_t params, buffers;             /* number of elements of parameters and of buffers */
	int64_t outputs;                     /* number of values of the model's output for one sample */
	double flops_forward, flops_train;   /* floating-point operations for one sample: forward pass only; whole training step */
	/* the parts of the run that the numbers above do not describe, in the order of time; a part that the run does not reach is not there */
	struct gt_check_phase *phases;
	int nphases;
	int64_t train_samples, valid_samples, test_samples; /* number of samples of each split; -1: not known, because the data was not found */
	int64_t batch, micro_batch, steps_per_epoch, steps, world; /* batch sizes over all ranks; numbers of optimizer steps; number of ranks */
	bool world_is_auto; /* a run may have more ranks: parallel.nproc is "auto" and depends on its machine */
	int64_t part;                        /* number of samples of a micro-batch on the first rank, for which the shapes of the layers are
	                                        given */
	int copies;                          /* number of copies of the model */
	struct gt_check_rank *ranks;         /* [world] */
	int largest, smallest;               /* the rank that needs the most memory, and the rank that needs the least */
	struct gt_check_bucket *buckets;     /* buckets of the first copy of the model, over all its ranks */
	int nbuckets;
	const char *sync;                    /* how copies of the model make one update: "all_reduce", "rank0_update", "sharded_update",
	                                        "factored_update"; "": there is one copy */
	const char *sharded;                 /* which tensors are sharded, such as "optimizer state, gradients"; "": none */
	struct gt_check_owner *owners;       /* the ranks that have each parameter, if something is sharded */
	int nowners;
	struct gt_check_stage *stages;       /* stages of a pipeline */
	int nstages;
	const char *balance;                 /* how the layers were divided into pipeline stages: "by hand", or "computed" from their costs */
	const char *grid;                    /* schedule of a pipeline as text, one line for each rank; NULL: no pipeline */
	/* Predicted share of time that the ranks of a pipeline are idle, 0 ... 1. bubble: if the duration of a stage is proportional to its
	 * FLOPs; even: if all stages take equally long. */
	double bubble, even;
	int64_t collectives, transfers;      /* numbers over all ranks in an optimizer step; they were verified to match on all ranks */
	double lr[5];                        /* learning rate at 0, 25, 50, 75, 100 % of the run; NAN: the length of the run is not known */
	double momentum[5];                  /* momentum, or beta1, at the same times, if train.schedule changes it; else NAN */
	struct gt_check_group *groups;
	int ngroups;
	struct gt_check_block *blocks;       /* in the order of the model; NULL: train.layer_decay is 1 */
	int nblocks;
	const char *data;                    /* where the data was found, or why it was not */
	/* How the transforms of training samples are divided: those of the threads that decode, and those of the kernel that gathers batches on
	 * a GPU, as "hflip, color_jitter"; NULL: they are not divided */
	const char *thread_transforms, *gpu_transforms;
	struct gt_check_column *columns;     /* of a table, in the order of its files */
	int ncolumns;
	struct gt_check_texts texts;
	int64_t *lengths;                    /* the lengths to which batches of sequences are padded */
	int nlengths;                        /* 0: the model reads no sequences */
	uint64_t reading;                    /* bytes of host memory that a table or texts take while they are read, before training; 0: none */
	const struct gt_pretrained_report *pretrained; /* what model.pretrained loads; NULL: the config has none, or the file is missing */
	struct gt_problems warnings;         /* sorted by line; in the report's arena */
	struct gt_problems skipped;          /* further warnings: rows, cells and texts that the run leaves out; in the same arena */
	struct gt_arena *arena;              /* owns the report's memory */
};
/* Plans a run and reports on it. device: name of the device whose kernels are planned; NULL: plan without a device. world: number of ranks;
 * 0: the number that the config requests, or 1 if the config says "auto". The caller frees *out with gt_report_free. */
enum gt_code gt_check(struct gt_conf *c, const char *device, int world, struct gt_report **out, struct gt_err *err);
/* Sets r->native and r->computes_in_f32, and adds to r->warnings the reasons why a run of the report's config would fail on this machine,
 * each with the exit code of such a run. */
enum gt_code gt_check_machine(struct gt_conf *c, const char *device, struct gt_report *r, struct gt_err *err);
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
};
struct gt_bench_rank {
	int copy, pipe_rank;      /* number of its copy of the model, and of the rank within this copy, as in struct gt_check_rank */
	double step_ms, wait_ms;  /* milliseconds of a step; milliseconds of it in communication, including waiting for other ranks */
};
struct gt_bench_stage {      /* times of a pipeline stage for one micro-batch */
	int pipe_rank;            /* number, within each copy of the model, of the rank that runs it */
	const char *first;        /* name of its first layer */
	double forward_ms, backward_ms, weights_ms; /* weights_ms: weight gradients, if a zero-bubble schedule computes them separately */
};
/* A step in a part of the run in which parameters are frozen that are trained in another part (frozen_until, freeze_after). */
struct gt_bench_phase {
	const char *when; /* "in the epochs after 1" */
	double step_ms, samples_per_s, gflops;
};
struct gt_bench {
	struct gt_bench_phase *phases; /* those that the run reaches, in the order of time; all other fields describe steps outside of them */
	int nphases;
	struct gt_bench_row *rows; /* one row for each kernel of rank 0 */
	int nrows;
	double step_ms, samples_per_s, gflops, peak_mb; /* peak_mb: peak resident memory of the process, in MB */
	const char *device;
	struct gt_bench_rank *ranks; /* one entry for each rank, if there are several ranks */
	int nranks;
	double wait;               /* share of a step in communication, 0 ... 1, as a mean over the ranks */
	struct gt_bench_stage *stages; /* stages of a pipeline */
	int nstages, micros;       /* micros: number of micro-batches of a step */
	/* Share of time that the ranks of a pipeline are idle by its schedule, 0 ... 1. bubble: with the measured times of the stages; even:
	 * if all stages took equally long. */
	double bubble, even;
	struct gt_arena *arena;
};
/* Times the kernels and steps of a config. It uses these fields of o: device, nproc, argv, link, say. Ranks are started as by gt_run, and
 * all of them call it. Only rank 0 gets a result; on the other ranks, and in the process that started them, *out is NULL. */
enum gt_code gt_bench(struct gt_conf *c, const struct gt_run_opts *o, int steps, struct gt_bench **out, struct gt_err *err);
void gt_bench_free(struct gt_bench *b);

#endif
