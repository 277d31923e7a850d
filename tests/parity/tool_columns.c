/* Tables for tests/parity/tables.py.
 *   tool_columns learn FILE TARGET TASK OUT
 *       learns from the rows whose number is not 4 modulo 5. TARGET: names separated by commas; TASK: classes or numbers. Prints the facts
 *       as JSON, and writes the inputs of all rows to OUT.values, OUT.codes, OUT.labels and OUT.targets
 *   tool_columns speed FILE REPEATS [TARGET]
 *       reads a file: fewest seconds, fewest of the processor, rows, bytes of the table, bytes of the process at its peak. With TARGET
 *       also the processor's seconds of learning and converting */
#include "base/clock.h"
#include "base/json.h"
#include "base/json_read.h"
#include "table/table_facts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static struct gt_err err;

static void need(enum gt_code code)
{
	if (code == GT_OK)
		return;
	fprintf(stderr, "%s\n", err.msg);
	exit(code);
}

static int split(char *text, const char **out, int max)
{
	int n = 0;
	char *save = NULL;
	for (char *p = strtok_r(text, ",", &save); p && n < max; p = strtok_r(NULL, ",", &save))
		out[n++] = p;
	return n;
}

static void dump(const char *out, const char *name, const void *data, size_t size)
{
	char path[2048];
	snprintf(path, sizeof path, "%s.%s", out, name);
	FILE *f = fopen(path, "wb");
	if (!f || fwrite(data, 1, size, f) != size || fclose(f))
		exit(1);
}

static void learn(char **argv)
{
	const char *target[16], *json;
	struct gt_table_spec spec = {.target = target, .ntarget = split(argv[3], target, 16)};
	spec.task = strcmp(argv[4], "classes") ? GT_TASK_NUMBERS : GT_TASK_CLASSES;
	struct gt_data_table t;
	struct gt_table_facts f;
	need(gt_table_read(&(const char *){argv[2]}, 1, &spec, &t, &err));
	int64_t *row = malloc((size_t)t.n * sizeof *row), n = 0;
	for (int64_t i = 0; i < t.n; i++)
		if (i % 5 != 4)
			row[n++] = i;
	need(gt_table_fit(&t, &spec, row, n, &f, &err));
	size_t rows = (size_t)t.n, nv = rows * (size_t)f.nvalues * 4, nc = rows * (size_t)f.ncodes * 4, nt = rows * (size_t)f.ntargets * 4;
	struct gt_table_fields in = {calloc(nv + 1, 1), calloc(nc + 1, 1), calloc(rows * 4 + 1, 1), calloc(nt + 1, 1)};
	need(gt_table_transform(&t, &f, &in, &err));
	dump(argv[5], "values", in.values, nv);
	dump(argv[5], "codes", in.codes, nc);
	dump(argv[5], "labels", in.labels, rows * 4);
	dump(argv[5], "targets", in.targets, nt);
	struct gt_json j = {0};
	gt_json_object(&j, NULL);
	gt_table_json_put(&j, "table", &f);
	gt_json_end(&j);
	need(gt_json_finish(&j, &json, &err));
	puts(json);
	gt_json_free(&j);
	gt_table_facts_free(&f);
	gt_table_free(&t);
}

static void speed(int argc, char **argv)
{
	const char *target[16];
	struct gt_table_spec spec = {0};
	double best = 1e9, busy = 1e9;
	struct gt_data_table t;
	struct rusage u;
	if (argc > 4) {
		spec.target = target;
		spec.ntarget = split(argv[4], target, 16);
	}
	for (int i = 0; i < atoi(argv[3]); i++) {
		double from = gt_clock(), cpu = (double)clock() / CLOCKS_PER_SEC;
		need(gt_table_read(&(const char *){argv[2]}, 1, &spec, &t, &err));
		double took = gt_clock() - from;
		cpu = (double)clock() / CLOCKS_PER_SEC - cpu;
		best = took < best ? took : best;
		busy = cpu < busy ? cpu : busy;
		if (i + 1 < atoi(argv[3]))
			gt_table_free(&t);
	}
	getrusage(RUSAGE_SELF, &u);
	printf("%.3f s, processor %.3f s, %lld rows, %llu bytes, peak %ld KiB\n", best, busy, (long long)t.n,
	       (unsigned long long)gt_table_bytes(&t), u.ru_maxrss);
	if (argc > 4) {
		struct gt_table_facts f;
		double from = (double)clock() / CLOCKS_PER_SEC;
		need(gt_table_fit(&t, &spec, NULL, t.n, &f, &err));
		double learned = (double)clock() / CLOCKS_PER_SEC;
		float *values = malloc((size_t)(t.n * f.nvalues) * 4 + 4);
		int32_t *codes = malloc((size_t)(t.n * f.ncodes) * 4 + 4);
		need(gt_table_transform(&t, &f, &(struct gt_table_fields){.values = values, .codes = codes}, &err));
		printf("learn: processor %.3f s, apply: processor %.3f s\n", learned - from,
		       (double)clock() / CLOCKS_PER_SEC - learned);
	}
}

int main(int argc, char **argv)
{
	if (argc == 6 && !strcmp(argv[1], "learn"))
		learn(argv);
	else if (argc >= 4 && !strcmp(argv[1], "speed"))
		speed(argc, argv);
	else
		return 64;
	return 0;
}
