/* The op case table (cases.txt) and PyTorch's results for it (golden/ops.bin). */
#ifndef GT_TESTS_HARNESS_TABLE_H
#define GT_TESTS_HARNESS_TABLE_H

#include "base/arena.h"
#include <stdbool.h>
#include <stdint.h>

#define OPCASE_INPUTS 8
#define OPCASE_KEYS 12

struct opcase {
	const char *name, *type;
	int nin;
	struct {
		int rank;
		int64_t dim[4];
		double scale;
		int64_t codes; /* > 0: integers 0 ... codes - 1, without a gradient */
		bool lengths;  /* the integers are lengths 1 ... codes */
	} in[OPCASE_INPUTS];
	int nkeys;
	struct { const char *key, *value; } kv[OPCASE_KEYS];
};

struct golden {
	const char *name; /* "CASE f32 y" */
	int64_t n;
	const float *v;
};

struct optable {
	struct gt_arena *arena; /* owns all; gt_arena_close */
	struct opcase *cases;
	int ncases;
	struct golden *goldens;
	int ngoldens;
};

/* Both files or a sentence about what is wrong with them. goldens may be NULL. */
enum gt_code optable_read(const char *cases, const char *goldens, struct optable *out, struct gt_err *err);

const char *opcase_key(const struct opcase *c, const char *key); /* NULL: not given */
double opcase_number(const struct opcase *c, const char *key, double def);
const struct golden *optable_golden(const struct optable *t, const char *name); /* NULL: none */

#endif
