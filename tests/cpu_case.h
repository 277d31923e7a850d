/* For tests of the CPU backend: tensors that keep their values as doubles in plain order, and one call of an operation. */
#ifndef GT_TESTS_CPU_CASE_H
#define GT_TESTS_CPU_CASE_H

#include "backend.h"
#include "test.h"

struct tens {
	struct gt_tdesc d;
	double *v;   /* logical values, plain order */
	double *mag; /* of a reference: sum of the magnitudes that were added up, for error bounds; NULL: |v| */
	void *p;     /* device memory in d's layout; NULL until the layout is known */
};

/* Before the first call: the tests use the backend `ref` (tests/ops/ref/), which has f64 for every operation. */
void cpu_reference(void);
/* The backend and a device of 2 threads, opened once. NULL after a test_fail. */
const struct gt_backend *cpu_backend(void);
struct gt_dev *cpu_device(void);
void cpu_winograd(bool on); /* from here on; on at first */
bool cpu_has_winograd(void); /* AVX2 or NEON; otherwise false after a test_skip */

/* Values 0. Rank 4 is NHWC. weights: layout any, chosen by the first call that sees it. */
struct tens *tens_new(enum gt_dtype t, int rank, const int64_t *dim);
struct tens *tens_weights(enum gt_dtype t, int rank, const int64_t *dim);
#define DIMS(...) (sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (int64_t[]){__VA_ARGS__}
void tens_free(struct tens *t);
void tens_random(struct tens *t, uint32_t seed, double lo, double hi); /* rounded to the dtype */
void tens_upload(struct tens *t);
void tens_download(struct tens *t);
double tens_round(enum gt_dtype t, double v);

struct op_case {
	enum gt_opcode code;
	const void *attr;
	struct tens *in[GT_MAX_IO], *out[GT_MAX_IO];
	int nin, nout;
	uint32_t accumulate;
	bool keep_out; /* outputs are uploaded before (accumulation, running statistics); else filled with NaN */
	struct gt_step_args step_args;
	const char *describe; /* of the last call, static text copied */
};
/* prepare, upload, launch twice when nothing accumulates (the second launch must not depend on the first), download. */
bool op_run(struct op_case *c);

/* Error bound of a sum of k products in f32, relative to the sum of their magnitudes: k*2^-24 can never be exceeded, roundings that
 * average out stay near sqrt(k)*2^-24; eight roundings are allowed on top, for the parts that threads and blocks add. */
double tens_sum_tol(double k);
void tens_need_mag(struct tens *t); /* mag: zeros, to be added to */

/* |got - want| <= rel * mag (+ output rounding of the dtype * |want|) + tiny; reports the worst element. */
void tens_check(const char *file, int line, const struct tens *got, const struct tens *want, double rel);
#define TENS_CHECK(got, want, rel) tens_check(__FILE__, __LINE__, got, want, rel)

#endif
