/* The output of `gtrain check` about ranks: memory, buckets, stages and traffic. */
#include "cli.h"
#include "gtrain_report.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- text ------------------------------------------------------------------------------------------------------------------------ */

static enum gt_code print_memory(struct gt_cli *cli, const struct gt_report *r, struct gt_err *err)
{
	const struct gt_check_rank *most = &r->ranks[r->largest], *least = &r->ranks[r->smallest];
	bool two = most->total != least->total, shared = false;
	char a[GT_UNITS + 4], b[GT_UNITS], most_head[64], least_head[64];
	struct gt_table t;
	gt_table_init(&t, cli->arena, two ? "lrr" : "lr");
	snprintf(most_head, sizeof most_head, "rank %d, most", r->largest);
	snprintf(least_head, sizeof least_head, "rank %d, least", r->smallest);
	gt_table_head(&t, (const char *[]){r->world > 1 ? "memory per rank" : "memory", two ? most_head : "", least_head});
	for (int i = 0; i < r->nmemory; i++) {
		const struct gt_check_memory *m = &r->memory[i];
		char name[64];
		shared |= m->common;
		snprintf(name, sizeof name, "%s%s", m->arena, m->common ? " *" : "");
		gt_table_add(&t, (const char *[]){name, gt_units_bytes(a, m->bytes), gt_units_bytes(b, m->least)});
	}
	gt_table_rule(&t);
	gt_table_add(&t, (const char *[]){"total", gt_units_bytes(a, most->total), gt_units_bytes(b, least->total)});
	gt_out(cli, "\n");
	GT_TRY(gt_table_print(cli, &t, err));
	if (shared)
		gt_out(cli, "* shared by all ranks of a host\n");
	if (r->decoding)
		gt_out(cli, "besides, threads that decode images keep at most %s from one image to the next\n", gt_units_bytes(a, r->decoding));
	return GT_OK;
}

/* Returns a sentence about how the copies of the model make one update. It begins with the method's name. */
static const char *sync_sentence(const struct gt_report *r)
{
	static const struct {
		const char *method, *sentence;
	} row[] = {
		{"all_reduce", "all_reduce: gradients are summed on every rank, and every rank updates all parameters"},
		{"rank0_update", "rank0_update: gradients are summed, and rank 0 updates all parameters"},
		{"sharded_update", "sharded_update: every rank sums one shard of the gradients and updates one shard of the parameters"},
		{"factored_update", "factored_update: ranks share the factors of weight gradients, and each makes and applies a part of them"},
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (!strcmp(r->sync, row[i].method))
			return row[i].sentence;
	return "";
}

static enum gt_code print_buckets(struct gt_cli *cli, const struct gt_report *r, struct gt_err *err)
{
	bool pipe = r->copies < r->world, shards = *r->sharded != '\0';
	char number[32], rank[32], count[GT_UNITS], bytes[GT_UNITS], part[GT_UNITS], range[256], head[64];
	struct gt_table t;
	if (r->copies < 2)
		return GT_OK;
	gt_table_init(&t, cli->arena, "lrrrlr");
	snprintf(head, sizeof head, "1/%d", r->copies);
	gt_table_head(&t, (const char *[]){"bucket", pipe ? "place" : "", "parameters", "bytes", "parameters, in this order",
	                                   shards ? head : ""});
	for (int i = 0, k = 0; i < r->nbuckets; i++) {
		const struct gt_check_bucket *b = &r->buckets[i];
		k = i && r->buckets[i - 1].pipe_rank == b->pipe_rank ? k + 1 : 1;
		snprintf(number, sizeof number, "%d%s", k, b->learned ? "" : ", not reduced");
		snprintf(rank, sizeof rank, "%d", b->pipe_rank);
		if (b->nparams > 1)
			snprintf(range, sizeof range, "%s … %s", b->first, b->last);
		else
			snprintf(range, sizeof range, "%s", b->nparams ? b->first : "");
		gt_table_add(&t, (const char *[]){number, pipe ? rank : "", gt_units_count(count, b->nparams), gt_units_bytes(bytes, b->bytes),
		                                  range, b->shard ? gt_units_bytes(part, b->shard) : ""});
	}
	gt_out(cli, "\n");
	GT_TRY(gt_table_print(cli, &t, err));
	gt_out(cli, "%s\n", sync_sentence(r));
	if (shards)
		gt_out(cli, "every bucket is divided into %d equal shards, of which rank r has the r-th: %s\n", r->copies, r->sharded);
	return GT_OK;
}

/* Adds the rows for ranks [first, last], which all send the same. */
static void add_traffic_rows(struct gt_table *t, const struct gt_check_rank *k, int first, int last)
{
	char who[48], times[GT_UNITS], bytes[GT_UNITS];
	snprintf(who, sizeof who, first == last ? "%d" : "%d to %d", first, last);
	for (int i = 0; i < k->ntraffic; i++) {
		const struct gt_check_traffic *x = &k->traffic[i];
		gt_table_add(t,
		             (const char *[]){i ? "" : who, x->kind, x->group, gt_units_count(times, x->calls), gt_units_bytes(bytes, x->bytes)});
	}
}

static bool is_same_traffic(const struct gt_check_rank *a, const struct gt_check_rank *b)
{
	bool same = a->ntraffic == b->ntraffic;
	for (int i = 0; same && i < a->ntraffic; i++)
		same = !strcmp(a->traffic[i].kind, b->traffic[i].kind) && !strcmp(a->traffic[i].group, b->traffic[i].group) &&
		       a->traffic[i].calls == b->traffic[i].calls && a->traffic[i].bytes == b->traffic[i].bytes;
	return same;
}

static enum gt_code print_traffic(struct gt_cli *cli, const struct gt_report *r, struct gt_err *err)
{
	struct gt_table t;
	gt_table_init(&t, cli->arena, "lllrr");
	gt_table_head(&t, (const char *[]){"rank", "communication in a step", "among", "times", "sends"});
	for (int i = 0, end; i < r->world; i = end) {
		for (end = i + 1; end < r->world && is_same_traffic(&r->ranks[i], &r->ranks[end]);)
			end++;
		add_traffic_rows(&t, &r->ranks[i], i, end - 1);
	}
	gt_out(cli, "\n");
	return gt_table_print(cli, &t, err);
}

static enum gt_code print_stages(struct gt_cli *cli, const struct gt_report *r, struct gt_err *err)
{
	char number[32], rank[48], layers[256], params[GT_UNITS], share[32], slots[32];
	struct gt_table t;
	if (!r->nstages)
		return GT_OK;
	gt_table_init(&t, cli->arena, "rllrrr");
	gt_table_head(&t, (const char *[]){"stage", r->copies > 1 ? "ranks" : "rank", "layers", "parameters", "FLOP", "micro-batches kept"});
	for (int i = 0; i < r->nstages; i++) {
		const struct gt_check_stage *s = &r->stages[i];
		int first = s->pipe_rank * r->copies;
		snprintf(number, sizeof number, "%d", i);
		snprintf(rank, sizeof rank, r->copies > 1 ? "%d to %d" : "%d", first, first + r->copies - 1);
		snprintf(layers, sizeof layers, s->nlayers > 1 ? "%d: %s … %s" : "%d: %s", s->nlayers, s->first ? s->first : "", s->last);
		snprintf(share, sizeof share, "%.1f%%", 100 * s->share);
		snprintf(slots, sizeof slots, "%d", s->slots);
		gt_table_add(&t, (const char *[]){number, rank, layers, gt_units_count(params, s->params), share, slots});
	}
	gt_out(cli, "\n");
	GT_TRY(gt_table_print(cli, &t, err));
	gt_out(cli, "\n%s", r->grid);
	gt_out(cli, "idle time of the pipeline: %.1f%% if stages take a time proportional to their FLOP, %.1f%% if all take the same time\n",
	       100 * r->bubble,
	       100 * r->even);
	return GT_OK;
}

enum gt_code gt_cli_ranks_text(struct gt_cli *cli, const struct gt_report *r, struct gt_err *err)
{
	GT_TRY(print_memory(cli, r, err));
	if (r->world == 1)
		return GT_OK;
	GT_TRY(print_stages(cli, r, err));
	GT_TRY(print_buckets(cli, r, err));
	return print_traffic(cli, r, err);
}

void gt_cli_ranks_line(const struct gt_report *r, char *buf, size_t size)
{
	int least = r->ranks[0].steps, most = least;
	char steps[64], a[GT_UNITS], b[GT_UNITS];
	for (int i = 1; i < r->world; i++) {
		least = r->ranks[i].steps < least ? r->ranks[i].steps : least;
		most = r->ranks[i].steps > most ? r->ranks[i].steps : most;
	}
	snprintf(steps, sizeof steps, least == most ? "%d" : "%d to %d", least, most);
	snprintf(buf, size, "%" PRId64 ": %s steps in the list of each, %s collectives and %s transfers in a training step; all of them match "
	         "between ranks",
	         r->world, steps, gt_units_count(a, r->collectives), gt_units_count(b, r->transfers));
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------------ */

static void rank_json(struct gt_json *j, const struct gt_report *r, int i)
{
	const struct gt_check_rank *k = &r->ranks[i];
	gt_json_object(j, NULL);
	gt_json_int(j, "rank", i);
	gt_json_int(j, "copy", k->copy);
	gt_json_int(j, "place", k->pipe_rank);
	gt_json_int(j, "steps", k->steps);
	gt_json_int(j, "samples", k->samples);
	gt_json_double(j, "flops", k->flops, 15);
	gt_json_object(j, "memory");
	for (int n = 0; n < r->nmemory; n++)
		gt_json_uint(j, r->memory[n].arena, k->memory[n]);
	gt_json_end(j);
	gt_json_array(j, "traffic");
	for (int n = 0; n < k->ntraffic; n++) {
		gt_json_object(j, NULL);
		gt_json_string(j, "kind", k->traffic[n].kind);
		gt_json_string(j, "group", k->traffic[n].group);
		gt_json_int(j, "calls", k->traffic[n].calls);
		gt_json_uint(j, "bytes_sent", k->traffic[n].bytes);
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_end(j);
}

static void buckets_json(struct gt_json *j, const struct gt_report *r)
{
	gt_json_array(j, "buckets");
	for (int i = 0; i < r->nbuckets; i++) {
		const struct gt_check_bucket *b = &r->buckets[i];
		gt_json_object(j, NULL);
		gt_json_int(j, "place", b->pipe_rank);
		gt_json_bool(j, "learned", b->learned);
		gt_json_int(j, "parameters", b->nparams);
		gt_json_string(j, "first", b->first);
		gt_json_string(j, "last", b->last);
		gt_json_uint(j, "bytes", b->bytes);
		if (b->shard)
			gt_json_uint(j, "shard_bytes", b->shard);
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_string(j, "sync", r->sync);
	gt_json_string(j, "sharded", r->sharded);
	gt_json_array(j, "owners");
	for (int i = 0; i < r->nowners; i++) {
		gt_json_object(j, NULL);
		gt_json_string(j, "parameter", r->owners[i].name);
		gt_json_int(j, "bucket", r->owners[i].bucket);
		gt_json_int(j, "first", r->owners[i].first);
		gt_json_int(j, "last", r->owners[i].last);
		gt_json_end(j);
	}
	gt_json_end(j);
}

static void stages_json(struct gt_json *j, const struct gt_report *r)
{
	if (!r->nstages)
		return;
	gt_json_array(j, "stages");
	for (int i = 0; i < r->nstages; i++) {
		const struct gt_check_stage *s = &r->stages[i];
		gt_json_object(j, NULL);
		gt_json_int(j, "place", s->pipe_rank);
		gt_json_int(j, "layers", s->nlayers);
		gt_json_string(j, "first", s->first);
		gt_json_string(j, "last", s->last);
		gt_json_int(j, "params", s->params);
		gt_json_double(j, "flop_share", s->share, 6);
		gt_json_int(j, "slots", s->slots);
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_string(j, "balance", r->balance);
	gt_json_string(j, "grid", r->grid);
	gt_json_double(j, "bubble", r->bubble, 6);
	gt_json_double(j, "bubble_even", r->even, 6);
}

void gt_cli_ranks_json(struct gt_json *j, const struct gt_report *r)
{
	gt_json_object(j, "memory");
	for (int i = 0; i < r->nmemory; i++)
		gt_json_uint(j, r->memory[i].arena, r->memory[i].bytes);
	gt_json_end(j);
	gt_json_uint(j, "decoding", r->decoding);
	gt_json_array(j, "common");
	for (int i = 0; i < r->nmemory; i++)
		if (r->memory[i].common)
			gt_json_string(j, NULL, r->memory[i].arena);
	gt_json_end(j);
	gt_json_int(j, "copies", r->copies);
	gt_json_int(j, "part", r->part);
	gt_json_int(j, "collectives", r->collectives);
	gt_json_int(j, "transfers", r->transfers);
	gt_json_array(j, "ranks");
	for (int i = 0; i < r->world; i++)
		rank_json(j, r, i);
	gt_json_end(j);
	buckets_json(j, r);
	stages_json(j, r);
}
