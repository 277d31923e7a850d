/* From graphs to kernels and memory. Everything is decided here, before step 0.
 *
 * A gt_space holds what all graphs of a model share: where each parameter, its gradient, its optimizer state and its 16-bit copy
 * lie. The flat arenas PARAM, GRAD, WORK and each STATE slot use the same element offsets, in the order in which the backward pass
 * finishes gradients, so that one range of elements means the same in all of them.
 *
 * A gt_plan is one graph lowered onto a device: kernels in order, an arena and an offset for every value. Activations share memory
 * by lifetime (memory.c). All plans of a space share its arenas; they run one after the other, never at once. */
#ifndef GT_PLAN_PLAN_H
#define GT_PLAN_PLAN_H

#include "backend.h"
#include "ir/graph.h"

/* X(id, name in tables) */
#define GT_ARENAS(X)                 \
	X(GT_A_PARAM, "parameters")      \
	X(GT_A_GRAD, "gradients")        \
	X(GT_A_STATE, "optimizer state") \
	X(GT_A_WORK, "16-bit weights")   \
	X(GT_A_BUFFER, "buffers")        \
	X(GT_A_ACT, "activations")       \
	X(GT_A_SHARED_ACT, "rows of all ranks") /* activations of which every rank makes a block and reads all (GT_OP_ROWS) */ \
	X(GT_A_SCRATCH, "scratch")       /* of calls outside the plans; theirs is planned with the activations */ \
	X(GT_A_METRICS, "metrics")

enum gt_arena_id {
#define GT_X(id, name) id,
	GT_ARENAS(GT_X)
#undef GT_X
	GT_A_COUNT
};
const char *gt_arena_name(enum gt_arena_id id);

/* Where a parameter or buffer lies; nowhere (offset -1) where it is another pipeline stage's. */
struct gt_param_slot {
	struct gt_tdesc desc; /* of the master, with the layout that the first kernel chose */
	int64_t offset;       /* elements in PARAM, GRAD, WORK and each STATE slot; bytes in BUFFER */
	int64_t count;        /* padded elements */
	int64_t part;         /* of a running mean that waits for a whole batch: where its GT_V_PART lies, bytes in BUFFER; -1: it does not */
	bool early;           /* its update is part of the kernel that makes its gradient (fused_update.c) */
};

/* A run of the flat arenas whose gradients are reduced at once: whole parameters, in the order in which their gradients are finished. */
struct gt_bucket {
	int64_t begin, end; /* elements; with shards, multiples of their number */
	bool learned;       /* false: of frozen parameters, which have no gradients */
};

/* How the flat arenas are cut; set before the first plan. All zero: one bucket, on one rank. */
struct gt_shard_spec {
	int64_t bucket_bytes, first_bytes; /* a bucket is closed when it has so many, the first one earlier (torch's DDP: 25 MiB and 1 MiB) */
	int shards, shard;  /* of every bucket, each as long as the others; which one is this rank's. 0: whole */
	bool state;         /* of the optimizer's state this rank has its shards only, one behind the other */
	bool grads;         /* and of the gradients: the backward pass writes a bucket into a place behind them, which the next bucket uses again */
	bool common;        /* PARAM and WORK are one memory for all ranks that have a shard */
	bool stages;        /* other ranks have other parameters: sums over the gradients of all ranks are added up */
	bool params;        /* and of the parameters: those of a bucket are gathered into a place behind them for as long as they are used (gt_gather_span) */
	bool factors;       /* STATE is one memory for all ranks too, and the calls of gt_plan_factors apply weight gradients */
	bool follows;       /* another rank makes the update: nothing of the optimizer's state is here */
};

/* Bucket `bucket` is whole, in place `slot`, from call `first` to call `last` of a plan. */
struct gt_gather_span {
	int bucket, slot, first, last;
};

struct gt_space {
	const struct gt_backend *be;
	struct gt_dev *dev;
	struct gt_arena *arena;  /* owned */
	struct gt_graph *first;  /* the graph whose parameters are the model's */
	struct gt_param_slot *place;  /* one a parameter of first */
	enum gt_dtype master;    /* f32, f64 */
	enum gt_dtype work;      /* = master: no work copies */
	int nstates;             /* optimizer state slots */
	struct gt_shard_spec cut;
	struct gt_bucket *bucket;
	int nbuckets;
	int64_t elements;        /* of each flat arena, padding included; with shards, of all ranks */
	int64_t widest;          /* bucket */
	int places;              /* with cut.params: buckets that are whole at once, at most */
	int64_t checked;         /* [0, checked): gradients that are stored before anything is updated; what sumsq covers */
	size_t bytes[GT_A_COUNT];
	void *base[GT_A_COUNT];
	int levels;              /* copies of GRAD, which a fixed tree of sums needs; 0: 1 */
	int copies;              /* of BUFFER; 0: 1 */
	int seats[2];            /* of ACT: executions of graphs that are under way at once, [false] of an evaluation, [true] of a step; 0: 1 */
	size_t seat_bytes[2];    /* of one: of the largest such graph */
	int ranks;               /* whose scalars are merged in every step; 0: 1 */
	/* Where an arena may come from instead of the backend: memory that a communicator reaches without a copy, which is not freed here. */
	enum gt_code (*shared)(void *user, enum gt_arena_id id, size_t bytes, void **out, struct gt_err *err);
	void *user;
	bool lent[GT_A_COUNT];
	int slots;               /* steps that may be queued at once: each has its own scalars and numbers; set before gt_space_alloc, 0: 1 */
	int micros;              /* micro-batches of a step, at most; 0: 1 */
};

/* A place in an arena, known before there is memory. */
struct gt_range {
	enum gt_arena_id arena;
	size_t offset; /* bytes */
};

/* One prepared kernel and its operands; or what joins ranks, with at most one operand each way. */
struct gt_call {
	struct gt_kernel *kernel;        /* NULL: of comm */
	const struct gt_attr_comm *comm; /* NULL: of a kernel */
	size_t count;                    /* of comm: elements, as gt_coll.count */
	enum gt_dtype dtype;
	struct gt_range from, to;        /* of comm outside a graph: what in[0] and out[0] are bound to */
	bool early;      /* changes weights: must come after the CHECK */
	const char *op, *layer;
	int node; /* in the graph, -1 for what the planner added */
	enum gt_phase phase;
	int nin, nout;
	void *in[GT_MAX_IO], *out[GT_MAX_IO];
	size_t scratch;        /* bytes */
	size_t scratch_offset; /* of a plan's call: in ACT */
	void *work;            /* its scratch memory */
	double flops;
};

struct gt_slot { /* of a value that is not a parameter */
	gt_vid root;       /* the value whose memory it is: itself, or what it aliases or overwrites */
	enum gt_arena_id arena; /* of a root: ACT, or ROWS where other ranks read it */
	size_t offset;     /* of a root, bytes in the arena */
	ptrdiff_t shift;   /* bytes from the root's to the value's own: 0, but for the rows of all ranks */
	int first, last;   /* of a root: nodes that first write and last read its memory */
};

struct gt_plan {
	struct gt_space *space;
	struct gt_graph *graph;
	struct gt_slot *slot; /* one a value */
	struct gt_call *call; /* one a lowered node, in order */
	int ncalls;
	struct gt_gather_span *span; /* with cut.params, in the order of first */
	int nspans;
	size_t act_bytes;     /* activations and scratch */
	size_t rows_bytes;    /* of ROWS */
	bool accumulate;      /* parameter gradients are added to */
	struct gt_plan *of;   /* an instance: whose kernels these are; NULL: its own */
	int seat, level, copy; /* which part of ACT, GRAD and BUFFER it works on */
};

/* The optimizer as the planner sees it. */
struct gt_apply {
	enum gt_opcode code;
	struct gt_attr_update attr;  /* without segments */
	const struct gt_seg *hyper;  /* one a parameter: lr_mul and weight_decay */
};

/* nstates: state tensors an element that the optimizer keeps (0..3). The space owns an arena of its own. */
enum gt_code gt_space_open(const struct gt_backend *be, struct gt_dev *dev, int nstates, struct gt_space **out, struct gt_err *err);
void gt_space_close(struct gt_space *s); /* after its plans */

/* fused_update.c: lets weight gradients be applied by the kernel that makes them, where the backend offers that: the gradient is never
 * stored, nor read again. Their nodes move behind everything else, so that one CHECK can still stop the step before anything is
 * updated; a bound of each gradient, which a BOUND node finds from its two factors, stands in for its values. Only for programs of
 * one micro-batch on one rank, without clipping. */
enum gt_code gt_plan_fuse_updates(struct gt_space *s, struct gt_graph *g, const struct gt_apply *apply, struct gt_err *err);

/* backend_fusion.c: neighbours that the backend offers to do in one call, or by a smaller operand: the bits of a relu instead of its output, the last
 * layer with the loss, both gradients of a layer. A table of patterns; each asks prepare(), and what is refused stays as it is. Call it on
 * a graph that is otherwise finished, before gt_plan_fuse_updates. accumulate, deterministic: as gt_plan_make will be told. */
enum gt_code gt_plan_fuse_for_backend(struct gt_space *s, struct gt_graph *g, bool accumulate, bool deterministic, struct gt_err *err);

/* As gt_plan_fuse_updates for ranks that have parameters and state in common: instead of adding up weight gradients they have the two factors of each in
 * common, which for small batches are much smaller, and every rank makes and applies one part of it ("sufficient factors": Xing et al. 2014,
 * Petuum). Nothing is copied: every rank writes its rows where all read them, between the exchange of scalars before the CHECK and a barrier
 * behind the step. The sum over the samples is then made as one rank makes it. Every rank has as many rows, some of which may be fillings
 * whose dy is 0.
 * pay: whether g is a graph for it, and less is moved. */
enum gt_code gt_plan_factors_pay(struct gt_space *s, struct gt_graph *g, const struct gt_apply *apply, int ranks, bool *out, struct gt_err *err);
enum gt_code gt_plan_factors(struct gt_graph *g, const struct gt_apply *apply, int ranks, int rank, struct gt_err *err);

/* Lowers g (whose arena must outlive the plan): settles the layouts that are open, prepares every node, plans the memory. The first
 * plan of a space settles where the parameters lie, so it must be the training graph where there is one. The graphs of several stages
 * (plan/pipeline_partition.h) may share a space: each settles where its own parameters lie. */
enum gt_code gt_plan_make(struct gt_space *s, struct gt_graph *g, bool accumulate, bool deterministic, struct gt_plan **out, struct gt_err *err);
void gt_plan_close(struct gt_plan *p);
/* The same kernels on another part of the memory. Closed with the plan; has no life of its own. */
enum gt_code gt_plan_instance(struct gt_plan *p, int seat, int level, int copy, struct gt_plan **out, struct gt_err *err);

/* Prepares one call outside a graph, e.g. the optimizer's. Release it with the backend before the device closes. */
enum gt_code gt_call_prepare(struct gt_space *s, const struct gt_opcall *oc, struct gt_call *out, struct gt_err *err);
/* The same without room in GT_A_SCRATCH for it: out->scratch bytes are the caller's to find. */
enum gt_code gt_kernel_prepare(struct gt_space *s, const struct gt_opcall *oc, struct gt_call *out, struct gt_err *err);

/* Settles the last size that is open, that of METRICS, after all plans are made. */
void gt_space_size(struct gt_space *s);
/* Allocates every arena, once, after all plans are made. The error names the arena and what to change. */
enum gt_code gt_space_alloc(struct gt_space *s, struct gt_err *err);

/* Fills the operand pointers of a plan's calls (after gt_space_alloc), with the batch at x and target. Cheap: the executor repeats it
 * for each batch that lies elsewhere. */
void gt_plan_bind(struct gt_plan *p);
void gt_plan_bind_batch(struct gt_plan *p, void *x, void *target);

/* What the METRICS arena holds, all in device memory: with several ranks the scalars of each, then the scaler, then one gt_scalars a slot,
 * then micros gt_dyn a slot. Kernels are bound to slot 0; the executor moves their operands. NULL before gt_space_alloc. */
#define GT_SCALER_BYTES 64
struct gt_range gt_space_gathered(const struct gt_space *s); /* ranks */
struct gt_range gt_space_own(const struct gt_space *s);      /* of slot 0 */
struct gt_scaler *gt_space_scaler(const struct gt_space *s);
struct gt_scalars *gt_space_scalars(const struct gt_space *s, int slot);
struct gt_dyn *gt_space_dyn(const struct gt_space *s, int slot);

void *gt_plan_value(const struct gt_plan *p, gt_vid v); /* device address; NULL for the batch before it is bound */
/* Address of parameter i in PARAM, GRAD, WORK, STATE (slot `state`) or, for buffers, BUFFER. */
void *gt_space_param(const struct gt_space *s, int i, enum gt_arena_id id, int state);
void *gt_space_part(const struct gt_space *s, int i); /* of running mean i, in BUFFER; NULL: there is none */

void *gt_space_at(const struct gt_space *s, struct gt_range r); /* NULL before gt_space_alloc */
/* Element e of PARAM, GRAD, WORK or a slot of STATE, where this rank has the arena whole. */
struct gt_range gt_space_element(const struct gt_space *s, enum gt_arena_id a, int64_t e);
/* This rank's shard of bucket b, wherever the arena has it; gt_space_shard: its elements. */
struct gt_range gt_space_own_shard(const struct gt_space *s, enum gt_arena_id a, int b);
int64_t gt_space_shard(const struct gt_space *s, int b);
/* Where bucket b is whole: in its arena, or in a place behind the shards. */
struct gt_range gt_space_bucket(const struct gt_space *s, enum gt_arena_id a, int b, int place);
int gt_space_bucket_of(const struct gt_space *s, int64_t element);
bool gt_space_sharded(const struct gt_space *s, enum gt_arena_id a);
/* The arena is one memory for all ranks of the data group. */
static inline bool gt_space_common(const struct gt_space *s, enum gt_arena_id a)
{
	return (s->cut.common && (a == GT_A_PARAM || a == GT_A_WORK)) || (s->cut.factors && a == GT_A_STATE) || a == GT_A_SHARED_ACT;
}

/* param_residency.c: which buckets the calls of p need, and where they are put. */
enum gt_code gt_plan_param_residency(struct gt_plan *p, struct gt_err *err);

/* memory.c: slots for the activations of p's graph and places for the scratch memory of its calls: aliases, in-place reuse, then
 * offsets by lifetime. Sets p->act_bytes. */
enum gt_code gt_memory_plan(struct gt_plan *p, struct gt_err *err);

#endif
