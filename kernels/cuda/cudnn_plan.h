/* Plans of cuDNN: an operation graph, an engine that is chosen for it, and its execution. cudnn_conv.h and cudnn_attention.h describe the
 * graphs.
 *
 *     gt_dnn_plan_find(dev, &call, &plan, err);                        cache or heuristic -> engine -> plan
 *     gt_dnn_plan_run(dev, &plan, &pack, at, workspace, stream, err);
 *     gt_dnn_pack_drop(&pack), gt_dnn_plan_drop(&plan); */
#ifndef GT_KERNELS_CUDNN_PLAN_H
#define GT_KERNELS_CUDNN_PLAN_H

#include "cuda/cudnn_lib.h"

#define GT_DNN_WORKSPACE ((int64_t)256 << 20) /* maximum bytes of workspace of an engine */
#define GT_DNN_CANDIDATES 16                  /* maximum number of engines that are timed or searched for tensor cores */
#define GT_DNN_TENSORS 16                     /* maximum number of pointers of a run */
#define GT_DNN_NUMBERS 3                      /* maximum number of constants of a graph */

struct gt_dnn_plan {
	struct gt_dnn_set set; /* the descriptors of graph, engine and plan */
	cudnnBackendDescriptor_t graph, plan;
	uint32_t used;                /* bit i: the graph has a tensor whose pointer has index i */
	float number[GT_DNN_NUMBERS]; /* the constants of the graph, which cuDNN reads when a run is queued */
	int numbers;
	int64_t registers; /* number of virtual tensors, which exist in registers only */
	bool tensor_core;
	size_t workspace; /* bytes, aligned to 256 */
	struct gt_dnn_choice choice;
	const char *how; /* how the engine was chosen: "heuristic", "timed", "cached" */
};

/* The pointers of a plan's runs. Kernels that share a plan have a pack each. */
struct gt_dnn_pack {
	struct gt_dnn_set set;
	cudnnBackendDescriptor_t pack; /* variant pack of the pointers below; created again when they change */
	void *at[GT_DNN_TENSORS], *workspace_at;
};

/* What a plan computes. */
struct gt_dnn_call {
	void (*build)(struct gt_dnn_plan *p, const void *shape); /* adds the graph to p; p->set records the first failure */
	const void *shape;            /* argument of build */
	enum gt_dtype type;           /* dtype of the operands that are multiplied */
	bool timed;                   /* engines may be timed with operands of any values */
	int first;                    /* number of candidates if nothing is timed; the first candidate that runs is used */
	char key[GT_DNN_KEY];         /* key in the cache of engines: operation, shapes, options */
	size_t bytes[GT_DNN_TENSORS]; /* size of each tensor, in the order of the pointers; 0: the graph has no such tensor */
};

/* Chooses an engine and makes its plan. The cache's choice is used if it is still valid. Otherwise the candidates are the engines of the
 * heuristic (mode A, then fallback) that dev's options allow and that run. With dev->autotune, if the run need not be reproducible and the
 * call can be timed, the fastest engine is used; otherwise the first engine that uses tensor cores, or the first engine if none does. (In
 * cuDNN 9.19 the first three engines for a 1x1 convolution with stride 2 in 16 bits do not use tensor cores.) Returns GT_EUNAVAILABLE if no
 * engine is allowed; err then has the reasons, without the name of the call. */
enum gt_code gt_dnn_plan_find(struct gt_dev *dev, const struct gt_dnn_call *c, struct gt_dnn_plan *out, struct gt_err *err);
void gt_dnn_plan_drop(struct gt_dnn_plan *p); /* p may be zeroed */

/* Queues the plan on a stream. at[i] is the pointer with index i. Pointers are aligned to 16 bytes, the workspace to 256. The pack is
 * zeroed before the first run, and belongs to this plan, which may not move. Allocates only if the pointers differ from the pack's previous
 * run. */
enum gt_code gt_dnn_plan_run(struct gt_dev *dev, struct gt_dnn_plan *p, struct gt_dnn_pack *pack, void *const at[GT_DNN_TENSORS],
                             void *workspace, cudaStream_t s, struct gt_err *err);
void gt_dnn_pack_drop(struct gt_dnn_pack *pack); /* pack may be zeroed */

/* Returns " repeatable", " timed" or " first", and " tf32" and " winograd" if they matter: the options in a key. */
const char *gt_dnn_options(const struct gt_dev *dev, enum gt_dtype type, bool timed, char buf[32]);

/* ---- parts of a graph --------------------------------------------------------------------------------------------------------------- */
cudnnDataType_t gt_dnn_type(enum gt_dtype t);
/* Adds a tensor whose pointer has the index uid in a run; gt_dnn_register adds a tensor that exists in registers only, and gt_dnn_number a
 * constant. */
cudnnBackendDescriptor_t gt_dnn_tensor(struct gt_dnn_plan *p, int64_t uid, cudnnDataType_t type, const int64_t dim[4],
                                       const int64_t stride[4]);
cudnnBackendDescriptor_t gt_dnn_register(struct gt_dnn_plan *p, cudnnDataType_t type, const int64_t dim[4], const int64_t stride[4]);
cudnnBackendDescriptor_t gt_dnn_number(struct gt_dnn_plan *p, float value);

struct gt_dnn_pointwise {
	cudnnPointwiseMode_t mode;
	cudnnDataType_t math;
	int64_t axis;                           /* of CUDNN_POINTWISE_GEN_INDEX */
	cudnnBackendDescriptor_t x, b, t, y; /* b and t may be NULL */
};
/* Returns the finalized operation. */
cudnnBackendDescriptor_t gt_dnn_pointwise(struct gt_dnn_plan *p, const struct gt_dnn_pointwise *o);
void gt_dnn_finish_graph(struct gt_dnn_plan *p, const cudnnBackendDescriptor_t *ops, int n); /* creates p->graph */

/* ---- shared by cudnn_tune.c and cudnn_trial.c ---------------------------------------------------------------------------------------- */
enum gt_dnn_verdict {
	GT_DNN_FINE,
	GT_DNN_NO_TF32,
	GT_DNN_NO_ORDER,
	GT_DNN_NO_PRECISION,
	GT_DNN_NO_COMPILED,
	GT_DNN_NO_WORKSPACE,
	GT_DNN_NO_PLAN,
	GT_DNN_VERDICTS
};
/* Creates the engine, configuration and plan of a choice for p's graph, if dev's options allow it; otherwise p->set has cuDNN's error.
 * If compiled is true, it allows engines whose kernels NVRTC compiles when the plan is made, which takes a second each in every process. */
enum gt_dnn_verdict gt_dnn_realize(struct gt_dev *dev, struct gt_dnn_plan *p, const struct gt_dnn_call *c,
                                   const struct gt_dnn_choice *choice, bool compiled);
/* Runs the *n choices on its own memory. Keeps in `choice` the choices that ran, and their count in *n: if timed is true, all of them, the
 * fastest first; otherwise only the first choice that ran. Changes nothing during a capture, without a device, or if memory is too small.
 * Returns GT_EUNAVAILABLE if none runs. */
enum gt_code gt_dnn_try(struct gt_dev *dev, const struct gt_dnn_call *c, struct gt_dnn_choice *choice, int *n, bool timed,
                        struct gt_err *err);

#endif
