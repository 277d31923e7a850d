/* Runs the nodes of a graph one by one on any backend: no planner, no fusion, no shared memory. Every value has a buffer of its own,
 * values are read and written as plain doubles, and aliases share their input's buffer. For tests of operations. */
#ifndef GT_TESTS_HARNESS_H
#define GT_TESTS_HARNESS_H

#include "backend.h"
#include "ir/graph.h"

struct harness {
	const struct gt_backend *be;
	struct gt_dev *dev;
	struct gt_graph *g;         /* not owned */
	void **mem;                 /* one a value, device memory */
	bool *shared;               /* mem[v] belongs to another value */
	struct gt_kernel **kernel;  /* one a node; NULL: an alias */
	void *scratch;
	struct gt_step_args step_args;          /* copied to the device before every launch */
	void *dyn_dev;
	bool accumulate;            /* gradients of parameters are added to; set before harness_graph */
	enum gt_dtype numbers;      /* made-up numbers of a graph in f64 are rounded to this type; GT_DTYPE_COUNT: to the graph's own */
};

/* name: "cpu", "ref", "null", "cuda", … GT_EUNAVAILABLE if there is no such backend or it has no device. Close with harness_close. */
enum gt_code harness_open(struct harness *h, const char *name, struct gt_err *err);
enum gt_code harness_open_with(struct harness *h, const char *name, const struct gt_dev_opts *opts, struct gt_err *err);
void harness_close(struct harness *h);

/* Prepares every node of g and allocates every value. Drops what an earlier call made. On failure too the harness stays usable. */
enum gt_code harness_graph(struct harness *h, struct gt_graph *g, struct gt_err *err);
void harness_drop(struct harness *h);

/* Launches nodes [first, last) and waits. A collective is that of one rank: what goes in comes out, in the first block. */
enum gt_code harness_run(struct harness *h, int first, int last, struct gt_err *err);

/* Writes or reads a whole value as doubles in plain (PyTorch's) element order, rounded to the value's dtype. */
enum gt_code harness_put(struct harness *h, gt_vid v, const double *x, struct gt_err *err);
enum gt_code harness_get(struct harness *h, gt_vid v, double *x, struct gt_err *err);
enum gt_code harness_metrics(struct harness *h, gt_vid v, struct gt_metrics *out, struct gt_err *err);
enum gt_code harness_zero(struct harness *h, gt_vid v, struct gt_err *err);

/* One call outside a graph, on host arrays that are copied to the device and back; h->step_args as above. */
enum gt_code harness_call(struct harness *h, const struct gt_opcall *call, void *const *in, void *const *out, struct gt_err *err);

/* The made-up inputs: element i of the tensor called name, in [-1, 1) and exact in f32. See golden/make_ops.py. */
double harness_uniform(const char *name, int64_t i);
uint64_t harness_raw(const char *name, int64_t i);
/* harness_number(harness_hash(name), i) == harness_uniform(name, i), for many elements of one tensor. */
uint64_t harness_hash(const char *name);
double harness_number(uint64_t hash, int64_t i);
double harness_bf16(double x); /* rounded to f32, then to bf16, to nearest even */

#endif
