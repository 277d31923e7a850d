/* The planner: lowers graphs onto a device and plans all memory. All decisions are made before step 0.
 *
 * A gt_space holds what all graphs of a model share: the memory arenas and, for each parameter, the offsets of its master values, its
 * gradient, its optimizer state and its 16-bit copy. The arenas PARAM, GRAD, WORK and each slot of STATE are flat: they use the same
 * element offsets, in the order in which the backward pass finishes gradients. So a range of elements belongs to the same parameters in all
 * these arenas. A gradient bucket (gt_bucket) is such a range.
 *
 * A gt_plan is one graph lowered onto a device: a list of prepared kernels in execution order, and an arena and an offset for every value.
 * Activations share memory by lifetime (memory.c). All plans of a space share its arenas; they run one after the other, never at once.
 *
 *	gt_space_open(be, dev, nstates, &s, err);
 *	gt_plan_make(s, training_graph, false, false, &p, err);    the first plan decides the parameters' layouts and offsets
 *	gt_plan_make(s, evaluation_graph, false, false, &q, err);
 *	gt_call_prepare(s, &optimizer_opcall, &update, err);       a kernel that is in no graph
 *	gt_space_alloc(s, err);                                    allocates each arena once
 *	gt_plan_bind(p);                                           fills in the kernels' operand pointers
 *
 *	gt_graph --- fuse.h, recompute.h, syncbn.h, image_padding.c, norm_folding.c, backend_fusion.c, fused_update.c rewrite it
 *	    |  lower.c: choose layouts, prepare one kernel a node; layout.c: offsets of parameters; memory.c: offsets of activations
 *	    |  batch_segments.c: repeats the calls of segments that compute the batch in parts
 *	gt_plan --- calls with operands, in execution order
 *	    |  mode_*.c: the strategy (strategy.h) adds loads, collectives, transfers and the optimizer's update
 *	gt_prog --- list of steps of one rank (program.h), which exec/execute.c executes */
#ifndef GT_PLAN_PLAN_H
#define GT_PLAN_PLAN_H

#include "backend.h"
#include "ir/graph.h"
#include "plan/offsets.h"

/* X(id, name in tables) */
#define GT_ARENAS(X)                 \
	X(GT_A_PARAM, "parameters")      \
	X(GT_A_GRAD, "gradients")        \
	X(GT_A_STATE, "optimizer state") \
	X(GT_A_WORK, "16-bit weights")   \
	X(GT_A_BUFFER, "buffers")        \
	X(GT_A_ACT, "activations")       \
	X(GT_A_SHARED_ACT, "rows of all ranks") /* activations: each rank writes its own rows and reads the rows of all ranks (GT_OP_ROWS) */ \
	X(GT_A_RESIDUAL, "rounding errors") /* compressed gradients: the rounding errors that this rank adds to its next gradients */ \
	X(GT_A_WIRE, "sent gradients")      /* compressed gradients: the bucket that is being reduced, in bf16 */ \
	X(GT_A_SCRATCH, "scratch")       /* workspace of calls that belong to no plan; the workspace of a plan's calls is in ACT */ \
	X(GT_A_METRICS, "metrics")

enum gt_arena_id {
#define GT_X(id, name) id,
	GT_ARENAS(GT_X)
#undef GT_X
	GT_A_COUNT
};
const char *gt_arena_name(enum gt_arena_id id);

/* Layout and memory offset of one parameter or buffer. */
struct gt_param_slot {
	struct gt_tdesc desc; /* description of the master values, with the layout that the first kernel chose */
	/* of a parameter: offset in elements, the same in PARAM, GRAD, WORK and each slot of STATE; of a buffer: byte offset in BUFFER; -1:
	 * another pipeline stage has the parameter or buffer */
	int64_t offset;
	int64_t count;        /* number of elements, padding included */
	bool fused_update;    /* the kernel that computes the gradient of the parameter also updates the parameter (fused_update.c) */
};

/* A gradient bucket: a range of the flat arenas whose gradients are reduced together. No parameter is divided between buckets. Buckets are
 * in the order in which the backward pass finishes their gradients. */
struct gt_bucket {
	int64_t begin, end; /* elements [begin, end) of the flat arenas; multiples of the number of shards if there are shards */
	bool trainable;     /* true: the parameters in the bucket have gradients; false: they are frozen */
};

/* The tensors of which each rank stores only its own shards. All other tensors are stored whole. */
enum gt_sharding {
	GT_SHARD_NONE, /* nothing is sharded */
	/* each rank stores only its shard of the optimizer state (ZeRO stage 1) */
	GT_SHARD_STATE,
	/* each rank stores only its shard of the optimizer state and the gradients (ZeRO stage 2). The backward pass writes the whole gradients
	 * of a bucket into memory after the shards; the next bucket reuses this memory */
	GT_SHARD_STATE_GRADS,
	/* each rank stores only its shard of the optimizer state and the parameters. Whole buckets of parameters are gathered into memory after
	 * the shards while they are in use (gt_gather_span). This is ZeRO stage 3 with reproducible = "world", whose summation tree needs whole
	 * gradients */
	GT_SHARD_STATE_PARAMS,
	/* each rank stores only its shard of the optimizer state, the gradients and the parameters (ZeRO stage 3) */
	GT_SHARD_ALL
};

/* The method by which the ranks with the same parameters (a data group) sum their gradients and update the parameters. gt_replicas_shard
 * chooses it. */
enum gt_sync_method {
	GT_SYNC_ALL_REDUCE,      /* every rank gets the sum of all gradients and makes the whole update; also used with one rank */
	GT_SYNC_RANK0_UPDATE,    /* gradients are summed, and rank 0 makes the update; the other ranks have no optimizer state */
	GT_SYNC_SHARDED_UPDATE,  /* each rank gets the sum of its shard of every bucket, has the optimizer state of that shard only, and updates
	                            that shard of the parameters; enum gt_sharding lists the other sharded tensors */
	GT_SYNC_FACTORED_UPDATE, /* weight gradients are not summed over ranks: ranks share the PARAM, WORK and STATE arenas and the two factors
	                            of each weight gradient; each rank computes and applies a part of each gradient (gt_plan_factors), and rank
	                            0 updates the other parameters */
};
/* "all_reduce", "rank0_update", "sharded_update", "factored_update" */
const char *gt_sync_method_name(enum gt_sync_method m);

/* How the flat arenas are divided into buckets and shards. The strategy (strategy.h) fills it in before the first plan is made. All zero
 * means one bucket and one rank. */
struct gt_shard_spec {
	int64_t bucket_bytes; /* a bucket is closed when it has at least this number of bytes; 0: no limit */
	int64_t first_bytes;  /* the first bucket is closed when it has at least this number of bytes, usually fewer than bucket_bytes; 0: no
	                         limit */
	int shards;           /* number of shards of equal length into which each bucket is divided; 0: buckets are not divided */
	int rank;             /* index of this rank in its data group, 0 …; it is also the index of the rank's shard of each bucket */
	enum gt_sync_method sync;
	enum gt_sharding sharding; /* GT_SHARD_NONE unless sync is GT_SYNC_SHARDED_UPDATE */
	bool shared_params;   /* all ranks of the data group share one PARAM and one WORK arena */
	bool compressed;      /* gradients are reduced over the ranks in bf16, with error feedback (gradient_compression.h) */
	bool pipeline_stages; /* the model is divided into pipeline stages, so each rank's sum of squares of gradients covers only its own
	                         stages */
};

/* With sharded parameters: the calls of a plan during which a bucket is whole. Bucket `bucket` is gathered into gather slot `slot`
 * before call `first` and is released after call `last`. */
struct gt_gather_span {
	int bucket, slot, first, last;
};

/* Where the parameters of a model are in the flat arenas. The first plan of a space decides it. */
struct gt_param_layout {
	struct gt_graph *first;      /* the first graph that was planned; its parameters are the model's. NULL before the first plan */
	struct gt_param_slot *param; /* one slot for each parameter of `first` */
	enum gt_dtype master;        /* dtype of parameters, gradients and state: f32 or f64 */
	enum gt_dtype work;          /* dtype of the copies in WORK: bf16 or f16; equal to master if there are no copies */
	int nstates;                 /* number of optimizer state tensors of each parameter, 0 … 3; each is one slot of STATE */
	/* number of additional slots of STATE that no optimizer reads: 1 for the moving average of the parameters, else 0 */
	int more_states;
	int64_t elements;            /* number of elements of each flat arena, with padding; of a sharded arena, sum over all ranks */
	int64_t checked;             /* the sum of squares covers elements [0, checked) of GRAD: all gradients that are stored before an
	                                update */
};

/* How the flat arenas are divided into buckets, and the buckets into shards. */
struct gt_shards {
	struct gt_shard_spec spec; /* set by the strategy */
	struct gt_bucket *bucket;  /* buckets in ascending order of their elements, without gaps; NULL before the first plan */
	int nbuckets;              /* number of buckets; 0 before the first plan */
	int64_t widest;            /* number of elements in the largest bucket */
	int gather_slots;          /* if parameters are sharded: maximum number of buckets that are whole at the same time */
};

/* The arenas in device memory. Sizes grow while plans are made; gt_space_alloc allocates each arena once. */
struct gt_memory {
	size_t bytes[GT_A_COUNT]; /* size of each arena in bytes; 0: the arena is not used */
	/* ACT and SHARED_ACT: maximum number of bytes that are live at the same time, a lower bound of `bytes`; other arenas: 0 */
	size_t live[GT_A_COUNT];
	void *base[GT_A_COUNT];   /* device address of each arena; NULL before gt_space_alloc, and for arenas of 0 bytes */
	int levels;               /* number of copies of GRAD, one for each level of the fixed summation tree; 0 means 1 */
	int copies;               /* number of copies of BUFFER; 0 means 1 */
	int act_slots[2];         /* number of activation slots in ACT: graphs that may run at the same time; [0] in an evaluation, [1] in a
	                             training step; 0 means 1 */
	size_t act_slot_bytes[2]; /* bytes of one activation slot; [0] in an evaluation, [1] in a training step. The largest graph determines
	                             it */
	int ranks;                /* number of ranks whose scalars are merged in every step; 0 means 1 */
	int slots;                /* maximum number of steps that may be queued on the device; each has its own gt_scalars and gt_step_args.
	                             Set it before gt_space_alloc; 0 means 1 */
	int micros;               /* maximum number of micro-batches in a step; 0 means 1 */
	/* Allocates the memory of an arena that ranks share or a communicator accesses without a copy. If it sets *out to NULL, the backend
	 * allocates this arena. The space does not free memory that comes from this function. NULL: the backend allocates every arena. */
	enum gt_code (*shared)(void *user, enum gt_arena_id id, size_t bytes, void **out, struct gt_err *err);
	void *user;               /* passed to shared */
	bool lent[GT_A_COUNT];    /* the memory of the arena belongs to the function `shared`, not to the backend */
};

struct gt_space {
	const struct gt_backend *be;
	struct gt_dev *dev;     /* not owned; closed after the space */
	struct gt_arena *arena; /* owned; holds the space's tables and plans, not device memory */
	struct gt_param_layout layout;
	struct gt_shards shards;
	struct gt_memory memory;
	bool constant; /* the parameters do not change after the first launch (gt_opcall.constant); set it before the first plan */
};

/* A position in an arena: an offset from the arena's base, whose device address is known only after gt_space_alloc. */
struct gt_range {
	enum gt_arena_id arena;
	size_t offset; /* bytes */
};

/* The nodes [first, last] of the graph of an inference, which compute the batch in equal parts, one part after the other
 * (batch_segments.c). */
struct gt_segment {
	int first, last;
	int parts;                   /* number of parts, at least 2 */
	const struct gt_graph *like; /* the same graph for the samples of one part. It gives the kernels their shapes */
};

/* One prepared kernel with its operands; or one communication (collective, send or receive) with at most one input and one output. */
struct gt_call {
	struct gt_kernel *kernel;        /* the prepared kernel; NULL: the call is a communication */
	const struct gt_attr_comm *comm; /* attributes of the communication; NULL: the call is a kernel */
	size_t count;                    /* number of elements of a communication, counted as in gt_coll.count */
	enum gt_dtype dtype;             /* type of the elements of a communication */
	struct gt_range from, to;        /* communication outside a graph: positions of its input and its output */
	bool fused_update;               /* the kernel changes weights, so it must run after the CHECK step */
	const char *op, *layer;          /* names of the node's operation and layer, for dumps and messages */
	int node;                        /* index of the call's node in the graph; -1: the call belongs to no graph */
	enum gt_phase phase;
	int nin, nout;
	void *in[GT_MAX_IO], *out[GT_MAX_IO]; /* device addresses of the operands; NULL: the operand is absent */
	size_t scratch;        /* workspace size in bytes */
	size_t scratch_offset; /* byte offset of the workspace in the activation slot, if the call belongs to a plan */
	void *work;            /* device address of the workspace */
	double flops;          /* floating-point operations of the call; 0: the call belongs to no graph */
	const struct gt_segment *segment; /* the segment of the call's node; NULL: the call computes the whole batch */
	int part;              /* index of the part of the batch that the call computes; 0 without a segment. The kernel belongs to the call of
	                          part 0 */
};

/* Memory of one value that is not a parameter. A value's root is the value that owns its memory: the value itself, or the value that it
 * aliases or overwrites in place. */
struct gt_slot {
	gt_vid root;
	enum gt_arena_id arena; /* if the value is a root: its arena, ACT, or SHARED_ACT if other ranks read the value */
	size_t offset;          /* for a root only: byte offset from the start of the activation slot or of SHARED_ACT */
	ptrdiff_t shift;        /* bytes from the root's address to this value's address. It is 0 except for outputs of GT_OP_ROWS: the root is
	                           this rank's rows, and the rows of all ranks begin before the root */
	int first, last;        /* for a root only: index of the first node that writes its memory, and of the last node that reads it; -1:
	                           none */
	/* for a root only: the segment, if only one uses it; its memory has the samples of one part. NULL: it has the samples of the batch */
	const struct gt_segment *segment;
};

struct gt_plan {
	struct gt_space *space;
	struct gt_graph *graph;
	struct gt_slot *slot;  /* one for each value */
	struct gt_call *call;  /* [ncalls] the calls of the lowered nodes, in execution order */
	int ncalls;
	const struct gt_segment *segment; /* [nsegments] in ascending order of their nodes; all other nodes compute the whole batch */
	int nsegments;
	/* if parameters are sharded: the calls during which each bucket is whole, sorted by gt_gather_span.first */
	struct gt_gather_span *span;
	int nspans;
	struct gt_blocks_size act;  /* bytes of one activation slot, for activations and the workspace of calls */
	struct gt_blocks_size rows; /* the memory that the plan uses in SHARED_ACT */
	bool accumulate;       /* kernels add to parameter gradients instead of overwriting them */
	struct gt_plan *of;    /* if this plan is an instance (gt_plan_instance): the plan that owns its kernels; NULL: this plan owns them */
	int act_slot;          /* index of the activation slot in ACT that the plan uses */
	int level;             /* index of the copy of GRAD that the plan uses */
	int copy;              /* index of the copy of BUFFER that the plan uses */
};

/* The optimizer settings of one parameter that the planner reads. */
struct gt_update_spec {
	enum gt_opcode code;
	struct gt_attr_update attr; /* hyper-parameters of the update operation, without a list of segments */
	struct gt_seg hyper;        /* learning rate, lr_mul and weight_decay of the parameter, as a segment of all its elements */
};

/* Creates a space with an arena of its own for host data. nstates: number of state tensors that the optimizer keeps for each parameter,
 * 0 … 3. */
enum gt_code gt_space_open(const struct gt_backend *be, struct gt_dev *dev, int nstates, struct gt_space **out, struct gt_err *err);
void gt_space_close(struct gt_space *s); /* the caller must have closed all plans of the space */

/* fused_update.c: where the backend supports it, replaces the kernel that computes a weight gradient by a kernel that also updates the
 * weight. The gradient is then neither stored nor read again. These kernels run after all other kernels, so that one CHECK step can still
 * stop the update before any weight changes. The CHECK cannot read the gradient's values; instead it reads an upper bound of the values,
 * which a BOUND node computes from the gradient's two factors. Use it only for programs of one micro-batch on one rank, without gradient
 * clipping. apply has an entry for each parameter. */
enum gt_code gt_plan_fuse_updates(struct gt_space *s, struct gt_graph *g, const struct gt_update_spec *apply, struct gt_err *err);

/* backend_fusion.c: where the backend supports it, replaces neighbouring nodes by one node (the last layer and the loss; both gradients
 * of a layer), or a large operand by a smaller operand (one bit for each element instead of the output of a relu). It tries a table of
 * patterns. For each pattern it calls the backend's prepare(); if the backend refuses the call, the graph is unchanged. Call it on a graph
 * that is otherwise finished, before gt_plan_fuse_updates. accumulate and deterministic are the values that gt_plan_make will get. */
enum gt_code gt_plan_fuse_for_backend(struct gt_space *s, struct gt_graph *g, bool accumulate, bool deterministic, struct gt_err *err);

/* norm_folding.c: in an evaluation whose parameters do not change, folds each batch normalisation into the convolution or linear layer
 * before it, if nothing else reads that layer's output and the backend benefits (gt_backend.folds_norms). The node of the normalisation
 * disappears; its activation and its residual become those of the layer. The layer reads its bias from the running mean, so the caller
 * must change the values of the parameters as g->fold describes (session/session_fold.c). Call it after gt_graph_fuse. All graphs of a
 * model read the same parameters, so they must have the same folds: the backend is asked for the first graph, and `like` is this graph for
 * all later graphs; NULL: g is the first. */
enum gt_code gt_plan_fold_norms(struct gt_space *s, struct gt_graph *g, const struct gt_graph *like, bool deterministic,
                                struct gt_err *err);

/* image_padding.c: where the backend supports it and only convolutions without groups read the images, pads the channels of the images to
 * a multiple of GT_CHANNEL_PAD. The decision does not depend on the batch size, so that all graphs of a model have the same input. Call it
 * on a graph of the whole model, after gt_graph_fuse and before a rewrite that lets other nodes read the images. */
enum gt_code gt_plan_pad_images(struct gt_space *s, struct gt_graph *g, struct gt_err *err);

/* The counterpart of gt_plan_fuse_updates for ranks that share one arena of parameters and one of optimizer state. The ranks do not add up
 * weight gradients. They share the two factors of each gradient instead (dy and x), which are much smaller than the gradient if the batch
 * is small; each rank then computes and applies one part of every weight gradient ("sufficient factors": Xing et al. 2014, Petuum). Nothing
 * is copied: every rank writes its rows into memory that all ranks read. The exchange of scalars before the CHECK and a barrier after the
 * step order these accesses. The sum over the samples has the same order as on one rank. Every rank has the same number of rows; some may
 * be padding rows, whose dy is 0.
 *
 * For an embedding table the factors are dy and the tokens, and each rank updates a block of rows of the table.
 *
 * gt_plan_factors_pay sets *out to whether this is possible for g and the factors move fewer bytes than the gradients. gt_plan_factors
 * rewrites the graph of one rank. copies: the inputs of the model are not in memory that all ranks read, so the graph copies them there. */
enum gt_code gt_plan_factors_pay(struct gt_space *s, struct gt_graph *g, const struct gt_update_spec *apply, int ranks, bool *out,
                                 struct gt_err *err);
enum gt_code gt_plan_factors(struct gt_graph *g, const struct gt_update_spec *apply, int ranks, int rank, bool copies, struct gt_err *err);

/* Lowers g: chooses the layouts that are still undecided, prepares a kernel for every node, plans the memory. The arena of g must outlive
 * the plan. The first plan of a space decides layouts and offsets of the parameters, so it must be the training graph if there is one. The
 * graphs of several pipeline stages (plan/pipeline_partition.h) may share a space: each decides the offsets of its own parameters.
 * accumulate: kernels add to the gradients of parameters instead of overwriting them. deterministic: use only kernels with a fixed order of
 * summation. */
enum gt_code gt_plan_make(struct gt_space *s, struct gt_graph *g, bool accumulate, bool deterministic, struct gt_plan **out,
                          struct gt_err *err);
void gt_plan_close(struct gt_plan *p);

/* batch_segments.c: an inference whose activations do not fit into the cache can compute the batch in parts, and the first layers, which
 * have large activations, in more parts than the last layers, which have large weights. A segment is a range of nodes with one number of
 * parts. Its calls are repeated for each part. Values that only one segment uses have memory for one part; all other values have memory for
 * the batch, of which each call reads or writes its part:
 *
 *	segment of 4 parts    conv1, conv2 of part 0; conv1, conv2 of part 1; …    --> y of the batch
 *	segment of 2 parts    conv3, conv4 of part 0; conv3, conv4 of part 1       --> z of the batch
 *	the rest              fc of the batch
 *
 * gt_plan_make_parts is gt_plan_make for a graph with such segments, which stay in use with the plan. gt_segment_fits returns whether a
 * segment of g is possible: its nodes use only parameters and values of which the samples are the first dimension, and s->like has the same
 * nodes. */
enum gt_code gt_plan_make_parts(struct gt_space *s, struct gt_graph *g, const struct gt_segment *segment, int nsegments,
                                bool deterministic, struct gt_plan **out, struct gt_err *err);
bool gt_segment_fits(const struct gt_graph *g, const struct gt_segment *s);
/* Returns the description of value v as call c reads or writes it: of the batch, or of a part. */
const struct gt_tdesc *gt_call_desc(const struct gt_plan *p, const struct gt_call *c, gt_vid v);
/* Makes an instance: the same kernels on another activation slot, copy of GRAD and copy of BUFFER. The instance is owned by its parent
 * plan, which must stay open while it is used. */
enum gt_code gt_plan_instance(struct gt_plan *p, int act_slot, int level, int copy, struct gt_plan **out, struct gt_err *err);

/* Prepares one call outside a graph, for example an optimizer update. The caller releases it (gt_call_release) before the device closes.
 * Its workspace is in GT_A_SCRATCH. */
enum gt_code gt_call_prepare(struct gt_space *s, const struct gt_opcall *oc, struct gt_call *out, struct gt_err *err);
/* Prepares one call like gt_call_prepare, but reserves no workspace: the caller must provide out->scratch bytes. */
enum gt_code gt_kernel_prepare(struct gt_space *s, const struct gt_opcall *oc, struct gt_call *out, struct gt_err *err);

/* Releases the kernel of a call that gt_call_prepare or gt_kernel_prepare has filled in; does nothing for a call without a kernel. */
void gt_call_release(struct gt_space *s, struct gt_call *c);

/* Computes the size of the arena METRICS; the sizes of the other arenas grow while plans are made. Call it after all plans are made. */
void gt_space_size(struct gt_space *s);
/* Allocates every arena once. Call it after all plans are made. The error names the arena and what to change. */
enum gt_code gt_space_alloc(struct gt_space *s, struct gt_err *err);

/* gt_plan_bind fills in the operand pointers of a plan's calls, after gt_space_alloc. gt_plan_bind_batch sets only the operands that are
 * images or targets of a batch: input[i] is the address of the graph's input i. It takes little time; the executor calls it whenever the
 * address of the batch changes. */
void gt_plan_bind(struct gt_plan *p);
void gt_plan_bind_batch(struct gt_plan *p, void *const *input, void *target);

/* Layout of the METRICS arena, in device memory:
 *
 *	gt_scalars[ranks]        gathered from all ranks; only with several ranks
 *	gt_scaler                GT_SCALER_BYTES
 *	gt_scalars[slots]        this rank's scalars, one entry for each queued step
 *	gt_step_args[slots * micros]   one for each micro-batch of each queued step
 *
 * A slot has the entries of one queued step. Kernels are bound to slot 0; for a step in another slot the executor passes them addresses in
 * that slot. The functions that return pointers return NULL before gt_space_alloc. */
#define GT_SCALER_BYTES 64
struct gt_range gt_space_all_scalars(const struct gt_space *s); /* returns the position of the scalars of all ranks */
struct gt_range gt_space_own_scalars(const struct gt_space *s); /* returns the position of this rank's scalars in slot 0 */
struct gt_scaler *gt_space_scaler(const struct gt_space *s);
struct gt_scalars *gt_space_scalars(const struct gt_space *s, int slot);
struct gt_step_args *gt_space_step_args(const struct gt_space *s, int slot);

/* returns the device address of value v; NULL for images and labels, whose address depends on the batch */
void *gt_plan_value(const struct gt_plan *p, gt_vid v);
/* Returns the device address of parameter i in PARAM, GRAD, WORK or STATE (state slot `state`), or of buffer i in BUFFER; NULL if the arena
 * is not allocated or is sharded, or if the parameter belongs to another pipeline stage. */
void *gt_space_param(const struct gt_space *s, int i, enum gt_arena_id id, int state);

void *gt_space_at(const struct gt_space *s, struct gt_range r); /* returns the device address of a position; NULL before gt_space_alloc */
/* Returns the position of element e of PARAM, GRAD, WORK or STATE (slot 0). The arena must not be sharded. */
struct gt_range gt_space_element(const struct gt_space *s, enum gt_arena_id a, int64_t e);
/* Returns the position of this rank's shard of bucket b, whether the arena is sharded or whole. */
struct gt_range gt_space_own_shard(const struct gt_space *s, enum gt_arena_id a, int b);
int64_t gt_space_shard(const struct gt_space *s, int b); /* returns the number of elements in one shard of bucket b */
/* Returns the position of the whole bucket b: in a sharded arena, gather slot `slot`, which follows the shards. */
struct gt_range gt_space_bucket(const struct gt_space *s, enum gt_arena_id a, int b, int slot);
int gt_space_bucket_of(const struct gt_space *s, int64_t element);
bool gt_space_sharded(const struct gt_space *s, enum gt_arena_id a);
/* Returns whether ranks exchange the two factors of each weight gradient instead of the gradient (gt_plan_factors). */
static inline bool gt_space_factored(const struct gt_space *s)
{
	return s->shards.spec.sync == GT_SYNC_FACTORED_UPDATE;
}
/* Returns whether the ranks of the data group share the memory of this arena. */
static inline bool gt_space_is_shared(const struct gt_space *s, enum gt_arena_id a)
{
	bool params = a == GT_A_PARAM || a == GT_A_WORK;
	return (params && s->shards.spec.shared_params) || (a == GT_A_STATE && gt_space_factored(s)) || a == GT_A_SHARED_ACT;
}

/* param_residency.c: if parameters are sharded, finds the calls of p during which each bucket must be whole (gt_plan.span), and assigns
 * gather slots to the buckets. */
enum gt_code gt_plan_param_residency(struct gt_plan *p, struct gt_err *err);

/* memory.c: gives each activation of p's graph and the workspace of each call its offset: aliases first, then in-place reuse, then offsets
 * by lifetime. Sets p->act and p->rows. */
enum gt_code gt_memory_plan(struct gt_plan *p, struct gt_err *err);

#endif
