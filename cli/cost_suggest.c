/* `gtrain check --suggest`: plans a config in every parallel mode, and proposes the mode, ZeRO stage, pipeline and micro-batches for a
 * number of ranks and an amount of memory. Each candidate is a set of keys, with which the report of `gtrain check` is made. */
#include "cost_suggest.h"
#include "base/json_read.h"
#include "commands.h"
#include "gtrain.h"
#include "gtrain_cost.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
	MOST = 64,          /* maximum number of candidates that are kept */
	MOST_SPLIT = 1024,  /* maximum number of micro-batches of a batch in ddp and zero */
	MOST_STAGES = 16,   /* maximum number of ranks of a pipeline */
	VALUES = 1 << 22    /* maximum number of values in a report */
};

#define MOST_IDLE 0.5 /* share of idle time from which longer pipelines are not tried, if the memory suffices */

/* A way to train, and what its plan needs. */
struct candidate {
	char name[64];       /* "zero, stage 2" */
	char parallel[160];  /* the members of the section parallel, as in a config */
	int64_t accumulate;  /* train.accumulate */
	int64_t micros;      /* number of micro-batches of a step on each copy of the model */
	uint64_t memory;     /* bytes of the rank with the largest need */
	double bytes;        /* bytes that the rank that sends most sends in a step */
	double idle;         /* share of the step in which ranks are idle because of a pipeline's schedule, 0 ... 1 */
	double step, exposed; /* seconds of a predicted step, and of its exposed communication; 0: there is no prediction */
	bool planned, fits;
	char why[1024];      /* why it has no plan or no prediction; "": it has both that are wanted */
};

struct search {
	struct gt_cli *cli;
	const struct gt_suggest_args *args;
	const char *path;
	uint64_t limit;      /* bytes of a rank; 0: no limit */
	struct gt_cost_input *cost; /* NULL: no prediction */
	struct candidate *c; /* [n] */
	int n;
};

/* ---- arguments ---------------------------------------------------------------------------------------------------------------------- */

/* Reads "80G" or "79.5GiB". Returns 0 if the text has another form. */
static uint64_t parse_memory(const char *text)
{
	static const char units[] = "KMGT";
	char *end;
	double v = strtod(text, &end);
	const char *u = *end ? strchr(units, *end) : NULL;
	if (end == text || !(v > 0) || !isfinite(v))
		return 0;
	if (u) {
		bool binary = !strcmp(end + 1, "iB");
		if (!binary && strcmp(end + 1, "B") && end[1])
			return 0;
		v *= pow(binary ? 1024 : 1000, (double)(u - units + 1));
	} else if (*end) {
		return 0;
	}
	return v < 1e18 ? (uint64_t)v : 0;
}

static enum gt_code open_search(struct search *s, struct gt_err *err)
{
	struct stat st;
	const char *operand = s->cli->args.operands.v[0];
	if (s->args->world < 2)
		return gt_fail(err, GT_EUSAGE, "--suggest: expected --world N with the number of ranks, at least 2");
	if (s->args->memory && !(s->limit = parse_memory(s->args->memory)))
		return gt_fail(err, GT_EUSAGE, "--memory: expected bytes with a unit, such as 80G or 79.5GiB, got %.100s", s->args->memory);
	if (!strcmp(operand, "-") || (!stat(operand, &st) && !S_ISREG(st.st_mode)))
		return gt_fail(err, GT_EUSAGE, "--suggest needs a file, because it reads the config several times; got %.200s", operand);
	GT_TRY(gt_cli_config_path(s->cli, operand, &s->path, err));
	if (s->args->link)
		GT_TRY(gt_cost_open(s->args->link, s->args->times, s->cli->arena, &s->cost, err));
	if (s->cost && gt_cost_doubt(s->cost))
		gt_cli_warn(s->cli, gt_cost_doubt(s->cost));
	GT_NEW(s->c, s->cli->arena, MOST, err);
	return GT_OK;
}

/* ---- the plan of a candidate -------------------------------------------------------------------------------------------------------- */

static uint64_t sum_members(const struct gt_json_value *object)
{
	double n = 0;
	for (const struct gt_json_value *v = object ? object->child : NULL; v; v = v->next)
		n += v->number;
	return (uint64_t)n;
}

/* Fills in a candidate from the report of its plan. */
static void read_report(const struct search *s, struct candidate *c, const struct gt_json_value *f)
{
	const struct gt_json_value *cost = gt_json_member(f, "cost");
	c->planned = true;
	c->memory = sum_members(gt_json_member(f, "memory"));
	c->fits = !s->limit || c->memory <= s->limit;
	for (const struct gt_json_value *r = gt_json_first(f, "ranks"); r; r = r->next) {
		double bytes = 0;
		for (const struct gt_json_value *t = gt_json_first(r, "traffic"); t; t = t->next)
			bytes += gt_json_num(t, "bytes_sent");
		c->bytes = bytes > c->bytes ? bytes : c->bytes;
	}
	if (gt_json_member(f, "bubble"))
		c->idle = gt_json_num(f, "bubble");
	if (cost) {
		c->step = gt_json_num(cost, "step_s");
		c->exposed = gt_json_num(cost, "exposed_s");
		c->idle = gt_json_num(cost, "idle_s") / c->step;
	}
}

/* A gt_report_part that keeps why there is no prediction: a candidate without one still has a plan. */
struct attempt {
	struct gt_cost_input *cost;
	struct gt_err why;
};

static enum gt_code try_cost(void *user, const struct gt_world_plan *w, struct gt_json *j, struct gt_err *err)
{
	struct attempt *a = user;
	(void)err;
	gt_cost_report(a->cost, w, j, &a->why);
	return GT_OK;
}

/* Plans a candidate. Sets c->why if the config and the keys of the candidate are refused. */
static enum gt_code plan_candidate(const struct search *s, const char *const *keys, int nkeys, struct candidate *c, struct gt_err *err)
{
	const struct gt_job_args *job = s->args->job;
	struct attempt attempt = {.cost = s->cost};
	struct gt_check_opts o = {.device = job->device, .world = (int)s->args->world, .apart = true, .classes = true,
	                          .more = s->cost ? try_cost : NULL,
	                          .user = &attempt};
	struct gt_problems errors = {.arena = s->cli->arena};
	struct gt_conf *conf = NULL;
	struct gt_report *r = NULL;
	struct gt_json j = {.exact = true};
	const struct gt_json_value *f;
	const char **sets, *text, *options;
	GT_NEW(sets, s->cli->arena, job->sets.n + nkeys + 1, err);
	for (int i = 0; i < job->sets.n + nkeys; i++)
		sets[i] = i < job->sets.n ? job->sets.v[i] : keys[i - job->sets.n];
	GT_TRY(gt_cli_bench_options(s->cli, job, keys, nkeys, &options, err));
	if (s->cost)
		gt_cost_set_options(s->cost, options);
	enum gt_code code = gt_conf_load_all(s->path, sets, job->sets.n + nkeys, &errors, &conf, err);
	if (code == GT_OK)
		code = gt_check(conf, &o, &j, &r, err);
	if (code == GT_OK) {
		gt_json_end(&j);
		code = gt_json_finish(&j, &text, err);
		if (code == GT_OK)
			code = gt_json_parse(text, j.len, "report", 8, VALUES, s->cli->arena, &f, err);
		if (code == GT_OK) {
			read_report(s, c, f);
			snprintf(c->why, sizeof c->why, "%s", attempt.why.msg);
		}
	} else if (code == GT_ECONFIG || code == GT_EUSAGE) {
		snprintf(c->why, sizeof c->why, "%s", err->msg);
		code = GT_OK;
	}
	gt_report_free(r);
	gt_json_free(&j);
	gt_conf_free(conf);
	return code;
}

/* ---- the candidates ------------------------------------------------------------------------------------------------------------------ */

/* Whether a is better than b. With predictions: the shorter step. Without: less idle time, then fewer bytes. */
static bool is_better(const struct candidate *a, const struct candidate *b)
{
	if (a->planned != b->planned)
		return a->planned;
	if (a->fits != b->fits)
		return a->fits;
	if (!a->fits)
		return a->memory < b->memory;
	if ((a->step > 0) != (b->step > 0))
		return a->step > 0;
	if (a->step > 0)
		return a->step < b->step;
	if (fabs(a->idle - b->idle) > 0.001)
		return a->idle < b->idle;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes;
	return a->memory < b->memory;
}

static void keep_candidate(struct search *s, const struct candidate *c)
{
	if (s->n < MOST)
		s->c[s->n++] = *c;
}

/* Adds a mode without a pipeline: with the fewest micro-batches with which a rank's memory suffices. */
static enum gt_code try_replicas(struct search *s, const char *mode, int stage, struct gt_err *err)
{
	struct candidate best = {0};
	for (int64_t micros = 1; micros <= MOST_SPLIT; micros *= 2) {
		struct candidate c = {.accumulate = micros, .micros = micros};
		char keys[3][64];
		snprintf(keys[0], sizeof keys[0], "parallel.mode=%s", mode);
		snprintf(keys[1], sizeof keys[1], "train.accumulate=%" PRId64, micros);
		snprintf(keys[2], sizeof keys[2], "parallel.stage=%d", stage);
		snprintf(c.name, sizeof c.name, stage ? "%s, stage %d" : "%s", mode, stage);
		snprintf(c.parallel, sizeof c.parallel, stage ? "mode = \"%s\"; stage = %d;" : "mode = \"%s\";", mode, stage);
		GT_TRY(plan_candidate(s, (const char *[]){keys[0], keys[1], keys[2]}, stage ? 3 : 2, &c, err));
		if (micros == 1 || is_better(&c, &best))
			best = c;
		if (!c.planned || c.fits)
			break;
	}
	keep_candidate(s, &best);
	return GT_OK;
}

/* Adds pipelines of `ranks` ranks: the best of the schedules, micro-batches and ways to join copies. *worth: whether longer pipelines may
 * be better. */
static enum gt_code try_pipeline(struct search *s, int64_t ranks, bool *worth, struct gt_err *err)
{
	static const char *const schedules[] = {"1f1b", "zero-bubble"}, *const joins[] = {"ddp", "zero"};
	int64_t copies = s->args->world / ranks;
	struct candidate best = {0};
	for (int i = 0; i < 2; i++)
		for (int join = 0; join < (copies > 1 ? 2 : 1); join++)
			for (int64_t chunks = 2 * ranks; chunks <= 4 * ranks; chunks *= 2) {
				struct candidate c = {.accumulate = 1, .micros = chunks};
				char keys[6][64], across[32] = "";
				snprintf(keys[0], sizeof keys[0], "parallel.mode=pipe");
				snprintf(keys[1], sizeof keys[1], "parallel.schedule=%s", schedules[i]);
				snprintf(keys[2], sizeof keys[2], "parallel.chunks=%" PRId64, chunks);
				snprintf(keys[3], sizeof keys[3], "parallel.replicas=%" PRId64, copies);
				snprintf(keys[4], sizeof keys[4], "parallel.across=%s", joins[join]);
				snprintf(keys[5], sizeof keys[5], "train.accumulate=%" PRId64, c.accumulate);
				if (copies > 1)
					snprintf(across, sizeof across, " across = \"%s\";", joins[join]);
				snprintf(c.name, sizeof c.name, "pipe, %" PRId64 " ranks%s", ranks, join ? ", zero" : "");
				snprintf(c.parallel, sizeof c.parallel,
				         "mode = \"pipe\"; schedule = \"%s\"; chunks = %" PRId64 "; replicas = %" PRId64 ";%s", schedules[i], chunks,
				         copies, across);
				GT_TRY(plan_candidate(s, (const char *[]){keys[0], keys[1], keys[2], keys[3], keys[4], keys[5]}, 6, &c, err));
				if (!*best.name || is_better(&c, &best))
					best = c;
			}
	*worth = best.planned && (best.idle < MOST_IDLE || !best.fits);
	keep_candidate(s, &best);
	return GT_OK;
}

static int by_rank(const void *a, const void *b)
{
	return is_better(a, b) ? -1 : is_better(b, a);
}

static enum gt_code try_all(struct search *s, struct gt_err *err)
{
	bool worth = true;
	GT_TRY(try_replicas(s, "ddp", 0, err));
	for (int stage = 1; stage <= 3; stage++)
		GT_TRY(try_replicas(s, "zero", stage, err));
	for (int64_t ranks = 2; ranks <= s->args->world && ranks <= MOST_STAGES && worth; ranks *= 2)
		if (s->args->world % ranks == 0)
			GT_TRY(try_pipeline(s, ranks, &worth, err));
	qsort(s->c, (size_t)s->n, sizeof *s->c, by_rank);
	return GT_OK;
}

/* ---- the result ---------------------------------------------------------------------------------------------------------------------- */

/* Writes why a candidate is not proposed. */
static void explain_candidate(const struct search *s, const struct candidate *c, char *buf, size_t size)
{
	const struct candidate *best = &s->c[0];
	char a[GT_UNITS], b[GT_UNITS];
	bool predicted = !s->cost || c->step > 0;
	if (c == best && c->planned && c->fits)
		snprintf(buf, size, "proposed%s%s", predicted ? "" : " without a prediction: ", predicted ? "" : c->why);
	else if (!c->planned)
		snprintf(buf, size, "refused: %s", c->why);
	else if (!c->fits)
		snprintf(buf, size, "needs %s, but a rank has %s", gt_units_bytes(a, c->memory), gt_units_bytes(b, s->limit));
	else if (!predicted)
		snprintf(buf, size, "no prediction: %s", c->why);
	else if (c->step > 0)
		snprintf(buf, size, "the step takes %.2f times as long: %.0f%% exposed communication, %.0f%% idle", c->step / best->step,
		         100 * c->exposed / c->step, 100 * c->idle);
	else if (c->idle > best->idle + 0.001)
		snprintf(buf, size, "ranks are idle %.0f%% of the time", 100 * c->idle);
	else
		snprintf(buf, size, "sends %.2f times the bytes", best->bytes > 0 ? c->bytes / best->bytes : 1);
}

static enum gt_code print_json(struct search *s, struct gt_err *err)
{
	struct gt_json *j = &s->cli->json;
	char why[1200];
	gt_json_object(j, NULL);
	gt_json_int(j, "world", s->args->world);
	gt_json_array(j, "suggestions");
	for (int i = 0; i < s->n; i++) {
		const struct candidate *c = &s->c[i];
		explain_candidate(s, c, why, sizeof why);
		gt_json_row(j, NULL, GT_STR("way", c->name), GT_STR("parallel", c->parallel), GT_INT("accumulate", c->accumulate),
		            GT_INT("micro_batches", c->micros), GT_BOOL("fits", c->planned && c->fits), GT_UINT("memory", c->memory),
		            GT_NUM("bytes_sent", c->bytes, 15), GT_NUM("idle", c->idle, 6), GT_NUM("step_s", c->step, 6), GT_STR("why", why));
	}
	gt_json_end(j);
	gt_json_end(j);
	return gt_out_json(s->cli, err);
}

static enum gt_code print_text(struct search *s, struct gt_err *err)
{
	struct gt_cli *cli = s->cli;
	const struct candidate *best = &s->c[0];
	char why[1200], micros[GT_UNITS], memory[GT_UNITS], bytes[GT_UNITS], idle[32], step[GT_UNITS];
	struct gt_table t;
	gt_table_init(&t, cli->arena, "lrrrrr");
	gt_table_head(&t, "way", "micro-batches", "memory", "sends", "idle", s->cost ? "step" : "");
	for (int i = 0; i < s->n; i++) {
		const struct candidate *c = &s->c[i];
		snprintf(idle, sizeof idle, "%.1f%%", 100 * c->idle);
		if (c->planned)
			gt_table_add(&t, c->name, gt_units_count(micros, c->micros), gt_units_bytes(memory, c->memory),
			             gt_units_bytes(bytes, (uint64_t)c->bytes), idle, c->step > 0 ? gt_units_seconds(step, c->step) : "");
		else
			gt_table_add(&t, c->name, "", "", "", "", "");
	}
	GT_TRY(gt_table_print(cli, &t, err));
	gt_out(cli, "\n");
	for (int i = 0; i < s->n; i++) {
		char line[1400];
		explain_candidate(s, &s->c[i], why, sizeof why);
		snprintf(line, sizeof line, "%s: %s", s->c[i].name, why);
		gt_out_sentence(cli, line);
	}
	if (!s->cost)
		gt_out_sentence(cli, "without --link and --times, the order is that of the idle time, then of the bytes that a rank sends");
	if (best->planned && best->fits)
		gt_out(cli, "\nparallel = { %s };\ntrain = { accumulate = %" PRId64 "; };  # the other keys of the config's section train stay\n",
		       best->parallel, best->accumulate);
	return GT_OK;
}

enum gt_code gt_cli_suggest(struct gt_cli *cli, const struct gt_suggest_args *args, struct gt_err *err)
{
	struct search s = {.cli = cli, .args = args};
	char a[GT_UNITS], b[GT_UNITS];
	GT_TRY(open_search(&s, err));
	GT_TRY(try_all(&s, err));
	GT_TRY(cli->args.json ? print_json(&s, err) : print_text(&s, err));
	if (!s.c[0].planned)
		return gt_fail(err, GT_ECONFIG, "--suggest: no mode can train this config on %" PRId64 " ranks: %.700s", args->world, s.c[0].why);
	if (!s.c[0].fits)
		return gt_fail(err, GT_ECONFIG, "--suggest: no plan for %" PRId64 " ranks fits into %s; the smallest needs %s", args->world,
		               gt_units_bytes(a, s.limit), gt_units_bytes(b, s.c[0].memory));
	return GT_OK;
}
