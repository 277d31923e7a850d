/* Prints the parts of the report of `gtrain check` about table columns, texts and ranks. */
#include "cli.h"
#include "base/json_read.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { NARROWEST = 16 }; /* minimum width of a column with names of layers or parameters; if less remains, another column is removed */

#define MOST 60 /* maximum number of table columns to print */
#define NAME 32 /* maximum width of a printed name */

enum gt_code gt_cli_columns_text(struct gt_cli *cli, const struct gt_json_value *f, struct gt_err *err)
{
	struct gt_table t;
	int n = 0;
	if (!gt_json_first(f, "columns"))
		return GT_OK;
	gt_table_init(&t, cli->arena, "llrll");
	gt_table_head(&t, "column", "type", "missing", "values", "why");
	for (const struct gt_json_value *c = gt_json_first(f, "columns"); c; c = c->next) {
		char name[256], missing[GT_UNITS] = "", values[2 * GT_UNITS + 16] = "", a[GT_UNITS], b[GT_UNITS];
		const char *why = gt_json_str(c, "why");
		if (n++ >= MOST)
			continue;
		if (gt_json_member(c, "different"))
			snprintf(values, sizeof values, "%s different", gt_units_count(a, gt_json_count(c, "different")));
		else if (gt_json_member(c, "mean"))
			snprintf(values, sizeof values, "mean %s, std %s", gt_units_number(a, gt_json_num(c, "mean")),
			         gt_units_number(b, gt_json_num(c, "std")));
		if (gt_json_count(c, "missing"))
			gt_units_count(missing, gt_json_count(c, "missing"));
		gt_table_add(&t, gt_text_fit(cli, gt_json_str(c, "name"), NAME, name, sizeof name), gt_json_str(c, "type"), missing, values,
		             *why ? why : "given");
	}
	gt_out(cli, "\n");
	GT_TRY(gt_table_print(cli, &t, err));
	if (n > MOST)
		gt_out(cli, "and %d more\n", n - MOST);
	return GT_OK;
}

void gt_cli_texts_facts(struct gt_table *table, const struct gt_json_value *f)
{
	const struct gt_json_value *t = gt_json_member(f, "texts"), *first = gt_json_first(f, "lengths");
	char text[256], a[GT_UNITS], b[GT_UNITS], c[GT_UNITS];
	int n;
	if (t) {
		int64_t vocabulary = gt_json_count(t, "vocabulary"), tokens = gt_json_count(t, "tokens");
		bool grams = vocabulary && tokens > vocabulary;
		snprintf(text, sizeof text, "%s; %s tokens in the vocabulary%s%s", gt_json_str(t, "tokenizer"),
		         gt_units_count(a, vocabulary ? vocabulary : tokens), grams ? ", and tokens of n-grams: " : "",
		         grams ? gt_units_count(b, tokens - vocabulary) : "");
		gt_table_add(table, "tokens", text);
		snprintf(text, sizeof text, "%s tokens on average; %s%% of the tokens are unknown, %s%% of the texts are truncated to %" PRId64,
		         gt_units_number(a, gt_json_num(t, "mean_tokens")), gt_units_number(b, 100 * gt_json_num(t, "unknown")),
		         gt_units_number(c, 100 * gt_json_num(t, "truncated")), gt_json_count(t, "max_tokens"));
		gt_table_add(table, "texts", text);
	}
	if (!first)
		return;
	n = snprintf(text, sizeof text, "batches are padded to ");
	for (const struct gt_json_value *l = first; l && n < (int)sizeof text; l = l->next)
		n += snprintf(text + n, sizeof text - (size_t)n, "%s%.0f%s", l == first ? "" : l->next ? ", " : " or ", l->number,
		              l->next ? "" : " tokens");
	gt_table_add(table, "lengths", text);
}

/* ---- ranks ----------------------------------------------------------------------------------------------------------------------- */

/* Returns the total size in bytes of a rank's arenas. */
static uint64_t total_bytes(const struct gt_json_value *rank)
{
	uint64_t n = 0;
	for (const struct gt_json_value *m = gt_json_first(rank, "memory"); m; m = m->next)
		n += (uint64_t)m->number;
	return n;
}

static bool is_common(const struct gt_json_value *f, const char *arena)
{
	const struct gt_json_value *c = gt_json_first(f, "common");
	while (c && strcmp(c->text, arena))
		c = c->next;
	return c;
}

/* Prints the ratio of the planned arena size to its lower bound, for the arenas in which blocks with disjoint lifetimes share memory. */
static void print_live(struct gt_cli *cli, const struct gt_json_value *rank)
{
	char a[GT_UNITS];
	for (const struct gt_json_value *l = gt_json_first(rank, "live"); l; l = l->next)
		gt_out(cli, "%s: %.3f times the lower bound of %s\n", l->key,
		       gt_json_num(gt_json_member(rank, "memory"), l->key) / l->number, gt_units_bytes(a, (uint64_t)l->number));
}

/* Prints the memory of the rank with the largest need and of the rank with the smallest need. */
static enum gt_code print_memory(struct gt_cli *cli, const struct gt_json_value *f, struct gt_err *err)
{
	const struct gt_json_value *most = gt_json_first(f, "ranks"), *least = most;
	char a[GT_UNITS + 4], b[GT_UNITS], most_head[64], least_head[64];
	struct gt_table t;
	for (const struct gt_json_value *r = most; r; r = r->next) {
		most = total_bytes(r) > total_bytes(most) ? r : most;
		least = total_bytes(r) < total_bytes(least) ? r : least;
	}
	bool two = total_bytes(most) != total_bytes(least);
	gt_table_init(&t, cli->arena, two ? "lrr" : "lr");
	snprintf(most_head, sizeof most_head, "rank %" PRId64 ", most", gt_json_count(most, "rank"));
	snprintf(least_head, sizeof least_head, "rank %" PRId64 ", least", gt_json_count(least, "rank"));
	gt_table_head(&t, gt_json_count(f, "world") > 1 ? "memory per rank" : "memory", two ? most_head : "", least_head);
	const struct gt_json_value *l = gt_json_first(least, "memory");
	for (const struct gt_json_value *m = gt_json_first(most, "memory"); m; m = m->next, l = l->next) {
		char name[64];
		snprintf(name, sizeof name, "%s%s", m->key, is_common(f, m->key) ? " *" : "");
		gt_table_add(&t, name, gt_units_bytes(a, (uint64_t)m->number), gt_units_bytes(b, (uint64_t)l->number));
	}
	gt_table_rule(&t);
	gt_table_add(&t, "total", gt_units_bytes(a, total_bytes(most)), gt_units_bytes(b, total_bytes(least)));
	gt_out(cli, "\n");
	GT_TRY(gt_table_print(cli, &t, err));
	print_live(cli, most);
	if (gt_json_first(f, "common"))
		gt_out(cli, "* shared by all ranks of a host\n");
	if (gt_json_count(f, "decoding"))
		gt_out(cli, "image decoding threads: at most %s more\n",
		       gt_units_bytes(a, (uint64_t)gt_json_count(f, "decoding")));
	return GT_OK;
}

/* Returns a sentence that explains how all copies of the model get the same update. It begins with the name of the method. */
static const char *sync_sentence(const char *sync)
{
	static const struct {
		const char *method, *sentence;
	} row[] = {
		{"all_reduce", "all_reduce: gradients are summed on every rank, and every rank updates all parameters"},
		{"rank0_update", "rank0_update: gradients are summed, and rank 0 updates all parameters"},
		{"sharded_update", "sharded_update: every rank sums one shard of the gradients and updates one shard of the parameters"},
		{"factored_update", "factored_update: ranks share the factors of weight gradients; every rank computes and applies a part of the "
		                    "gradients"},
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (!strcmp(sync, row[i].method))
			return row[i].sentence;
	return "";
}

static enum gt_code print_buckets(struct gt_cli *cli, const struct gt_json_value *f, struct gt_err *err)
{
	int64_t copies = gt_json_count(f, "copies"), k = 0, before = -1;
	const char *sharded = gt_json_str(f, "sharded");
	bool pipe = copies < gt_json_count(f, "world");
	char number[48], rank[32], count[GT_UNITS], bytes[GT_UNITS], part[GT_UNITS], range[256], head[64];
	struct gt_table t;
	if (copies < 2)
		return GT_OK;
	gt_table_init(&t, cli->arena, "lrrrlr");
	snprintf(head, sizeof head, "1/%" PRId64, copies);
	gt_table_head(&t, "bucket", pipe ? "place" : "", "parameters", "bytes", "parameters, in this order", *sharded ? head : "");
	for (const struct gt_json_value *b = gt_json_first(f, "buckets"); b; b = b->next) {
		int64_t place = gt_json_count(b, "place"), n = gt_json_count(b, "parameters");
		k = place == before ? k + 1 : 1;
		before = place;
		snprintf(number, sizeof number, "%" PRId64 "%s", k, gt_json_true(b, "learned") ? "" : ", not reduced");
		snprintf(rank, sizeof rank, "%" PRId64, place);
		snprintf(range, sizeof range, "%s%s%s", gt_json_str(b, "first"), n > 1 ? " … " : "", n > 1 ? gt_json_str(b, "last") : "");
		*part = '\0';
		if (gt_json_member(b, "shard_bytes"))
			gt_units_bytes(part, (uint64_t)gt_json_count(b, "shard_bytes"));
		gt_table_add(&t, number, pipe ? rank : "", gt_units_count(count, n), gt_units_bytes(bytes, (uint64_t)gt_json_count(b, "bytes")),
		             range, part);
	}
	gt_out(cli, "\n");
	gt_table_narrow(cli, &t, 4, 2 * NARROWEST, "2"); /* A cell of column 4 has two names. Column 2, the number of parameters, is removed
	                                                    first. */
	GT_TRY(gt_table_print(cli, &t, err));
	gt_out_sentence(cli, sync_sentence(gt_json_str(f, "sync")));
	if (*sharded) {
		snprintf(range, sizeof range, "every bucket is divided into %" PRId64 " equal shards, and rank r has shard r: %s", copies, sharded);
		gt_out_sentence(cli, range);
	}
	return GT_OK;
}

/* Adds the rows for the ranks from k to last, which all have the same traffic. */
static void add_traffic_rows(struct gt_table *t, const struct gt_json_value *k, const struct gt_json_value *last)
{
	int64_t first = gt_json_count(k, "rank"), end = gt_json_count(last, "last");
	char who[48], times[GT_UNITS], bytes[GT_UNITS];
	snprintf(who, sizeof who, first == end ? "%" PRId64 : "%" PRId64 " to %" PRId64, first, end);
	for (const struct gt_json_value *x = gt_json_first(k, "traffic"); x; x = x->next)
		gt_table_add(t, x == gt_json_first(k, "traffic") ? who : "", gt_json_str(x, "kind"), gt_json_str(x, "group"),
		             gt_units_count(times, gt_json_count(x, "calls")), gt_units_bytes(bytes, (uint64_t)gt_json_count(x, "bytes_sent")));
}

static bool is_same_traffic(const struct gt_json_value *a, const struct gt_json_value *b)
{
	const struct gt_json_value *x = gt_json_first(a, "traffic"), *y = gt_json_first(b, "traffic");
	while (x && y && !strcmp(gt_json_str(x, "kind"), gt_json_str(y, "kind")) &&
	       !strcmp(gt_json_str(x, "group"), gt_json_str(y, "group")) && gt_json_num(x, "calls") == gt_json_num(y, "calls") &&
	       gt_json_num(x, "bytes_sent") == gt_json_num(y, "bytes_sent"))
		x = x->next, y = y->next;
	return !x && !y;
}

static enum gt_code print_traffic(struct gt_cli *cli, const struct gt_json_value *f, struct gt_err *err)
{
	struct gt_table t;
	gt_table_init(&t, cli->arena, "lllrr");
	gt_table_head(&t, "rank", "communication in a step", "among", "times", "sends");
	for (const struct gt_json_value *r = gt_json_first(f, "ranks"), *last; r; r = last->next) {
		for (last = r; last->next && is_same_traffic(r, last->next);)
			last = last->next;
		add_traffic_rows(&t, r, last);
	}
	gt_out(cli, "\n");
	return gt_table_print(cli, &t, err);
}

/* Whether every line of a grid has a space before `column`, or is shorter. */
static bool is_between_slots(const char *grid, int column)
{
	for (const char *line = grid; *line; line += strcspn(line, "\n") + 1)
		if ((int)strcspn(line, "\n") > column && line[column - 1] != ' ')
			return false;
	return true;
}

/* Prints the schedule of a pipeline, one line for each rank. On a terminal that is too narrow for all slots, prints parts of the schedule
 * one below the other. */
static void print_grid(struct gt_cli *cli, const char *grid)
{
	int label = (int)strcspn(grid, "0123456789"), length = 0, width = gt_out_columns();
	label += (int)strcspn(grid + label, " ");
	label += (int)strspn(grid + label, " ");
	for (const char *line = grid; *line; line += strcspn(line, "\n") + 1)
		length = (int)strcspn(line, "\n") > length ? (int)strcspn(line, "\n") : length;
	for (int from = label, to; from < length; from = to) {
		gt_out(cli, "%s", from > label ? "\n" : "");
		to = gt_out_terminal() && from + width - label < length ? from + width - label : length;
		while (to < length && to > from + 1 && !is_between_slots(grid, to))
			to--;
		to = to > from ? to : from + 1;
		for (const char *line = grid; *line; line += strcspn(line, "\n") + 1) {
			int n = (int)strcspn(line, "\n");
			gt_out(cli, "%.*s%.*s\n", label, line, (n < to ? n : to) - (n < from ? n : from), line + (n < from ? n : from));
		}
	}
}

static enum gt_code print_stages(struct gt_cli *cli, const struct gt_json_value *f, struct gt_err *err)
{
	int64_t copies = gt_json_count(f, "copies");
	char number[32], rank[48], layers[256], params[GT_UNITS], share[32], slots[32];
	struct gt_table t;
	int i = 0;
	if (!gt_json_first(f, "stages"))
		return GT_OK;
	gt_table_init(&t, cli->arena, "rllrrr");
	gt_table_head(&t, "stage", copies > 1 ? "ranks" : "rank", "layers", "parameters", "FLOP", "micro-batches kept");
	for (const struct gt_json_value *s = gt_json_first(f, "stages"); s; s = s->next) {
		int64_t first = gt_json_count(s, "place") * copies, n = gt_json_count(s, "layers");
		snprintf(number, sizeof number, "%d", i++);
		snprintf(rank, sizeof rank, copies > 1 ? "%" PRId64 " to %" PRId64 : "%" PRId64, first, first + copies - 1);
		snprintf(layers, sizeof layers, n > 1 ? "%" PRId64 ": %s … %s" : "%" PRId64 ": %s", n, gt_json_str(s, "first"),
		         gt_json_str(s, "last"));
		snprintf(share, sizeof share, "%.1f%%", 100 * gt_json_num(s, "flop_share"));
		snprintf(slots, sizeof slots, "%" PRId64, gt_json_count(s, "slots"));
		gt_table_add(&t, number, rank, layers, gt_units_count(params, gt_json_count(s, "params")), share, slots);
	}
	gt_out(cli, "\n");
	gt_table_narrow(cli, &t, 2, NARROWEST, "43"); /* Column 4 (FLOP) is removed first, then column 3 (the number of parameters). */
	GT_TRY(gt_table_print(cli, &t, err));
	gt_out(cli, "\n");
	print_grid(cli, gt_json_str(f, "grid"));
	snprintf(layers, sizeof layers, "idle time of the pipeline: %.1f%% if the time of a stage is proportional to its FLOP, %.1f%% if all "
	         "stages take the same time", 100 * gt_json_num(f, "bubble"), 100 * gt_json_num(f, "bubble_even"));
	gt_out_sentence(cli, layers);
	return GT_OK;
}

enum gt_code gt_cli_ranks_text(struct gt_cli *cli, const struct gt_json_value *f, struct gt_err *err)
{
	GT_TRY(print_memory(cli, f, err));
	if (gt_json_count(f, "world") == 1)
		return GT_OK;
	GT_TRY(print_stages(cli, f, err));
	GT_TRY(print_buckets(cli, f, err));
	return print_traffic(cli, f, err);
}

void gt_cli_ranks_line(const struct gt_json_value *f, char *buf, size_t size)
{
	const struct gt_json_value *r = gt_json_first(f, "ranks");
	int64_t least = gt_json_count(r, "steps"), most = least;
	char steps[64], a[GT_UNITS], b[GT_UNITS];
	for (; r; r = r->next) {
		int64_t n = gt_json_count(r, "steps");
		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	snprintf(steps, sizeof steps, least == most ? "%" PRId64 : "%" PRId64 " to %" PRId64, least, most);
	snprintf(buf, size, "%" PRId64 ": %s steps per rank, %s collectives and %s transfers in a training step; all collectives and transfers "
	         "match between ranks", gt_json_count(f, "world"), steps, gt_units_count(a, gt_json_count(f, "collectives")),
	         gt_units_count(b, gt_json_count(f, "transfers")));
}
