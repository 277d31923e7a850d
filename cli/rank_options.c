/* The options about ranks, and the command lines that start and restart ranks. */
#include "cli.h"
#include "gtrain.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct words {
	struct gt_arena *arena;
	char **v;
	int n, cap;
	enum gt_code code;
	struct gt_err *err;
};

static enum gt_code grow_words(struct words *w)
{
	char **v;
	GT_NEW(v, w->arena, w->cap ? 2 * w->cap : 32, w->err);
	if (w->n)
		memcpy(v, w->v, (size_t)w->n * sizeof *v);
	w->v = v;
	w->cap = w->cap ? 2 * w->cap : 32;
	return GT_OK;
}

static void add_word(struct words *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add_word(struct words *w, const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;
	va_start(ap, fmt);
	size_t n = (size_t)vsnprintf(NULL, 0, fmt, ap) + 1;
	va_end(ap);
	if (w->code == GT_OK && w->n + 1 >= w->cap)
		w->code = grow_words(w);
	if (w->code == GT_OK && !(s = gt_arena_alloc(w->arena, n, 1)))
		w->code = gt_fail(w->err, GT_EFAIL, "out of memory");
	if (w->code != GT_OK)
		return;
	va_start(ap, fmt);
	vsnprintf(s, n, fmt, ap);
	va_end(ap);
	w->v[w->n++] = s;
	w->v[w->n] = NULL;
}

/* The launcher alone uses these options. Rank 0 prints them in the command that continues a run. */
static void add_host_words(struct words *w, const struct gt_job_args *job)
{
	const struct gt_option_range *n = &job->nnodes;
	if (n->least)
		add_word(w, "--nnodes=%d:%d", (int)n->least, (int)n->most);
	else if (n->most)
		add_word(w, "--nnodes=%d", (int)n->most);
	if (job->node_rank)
		add_word(w, "--node-rank=%d", (int)job->node_rank);
	if (job->master_addr)
		add_word(w, "--master-addr=%s", job->master_addr);
	if (job->master_port)
		add_word(w, "--master-port=%d", (int)job->master_port);
	if (job->token_file)
		add_word(w, "--token-file=%s", job->token_file);
	if (job->max_restarts)
		add_word(w, "--max-restarts=%d", (int)job->max_restarts);
}

/* Builds the command line of `command` without operand, time limit and --from, which the engine adds. `resume` gets neither --init nor
 * --out, because the resumed directory determines both. A smoke test sets the directories and rank counts of its runs itself, and reads
 * their events. */
static enum gt_code build_command_line(struct gt_cli *cli, const struct gt_job_args *job, const char *command, char *const **out,
                                       struct gt_err *err)
{
	const struct gt_args *a = &cli->args;
	struct words w = {.arena = cli->arena, .err = err};
	bool run = strcmp(command, "run") == 0;
	add_word(&w, "%s", cli->argv[0]);
	add_word(&w, "%s", command);
	if (a->json || job->smoke)
		add_word(&w, "--json");
	if (a->quiet || job->smoke)
		add_word(&w, "--quiet");
	if (a->verbose && !job->smoke)
		add_word(&w, "--verbose");
	if (a->no_progress)
		add_word(&w, "--no-progress");
	if (a->color)
		add_word(&w, "--color=%s", a->color);
	for (int i = 0; i < job->sets.n; i++)
		add_word(&w, "--set=%s", job->sets.v[i]);
	if (job->device)
		add_word(&w, "--device=%s", job->device);
	if (run && job->out && !job->smoke)
		add_word(&w, "--out=%s", job->out);
	if (run && job->init)
		add_word(&w, "--init=%s", job->init);
	if (job->nproc && !job->smoke)
		add_word(&w, job->nproc == GT_NPROC_AUTO ? "--nproc=auto" : "--nproc=%d", (int)job->nproc);
	if (!job->smoke)
		add_host_words(&w, job);
	*out = w.v;
	return w.code;
}

enum gt_code gt_cli_ranks(struct gt_cli *cli, const struct gt_job_args *job, struct gt_run_opts *o, struct gt_err *err)
{
	o->link = cli->link;
	o->argv = cli->argv;
	o->nproc = job->nproc > 0 ? (int)job->nproc : 0;
	o->nnodes = (int)job->nnodes.most;
	o->min_nodes = (int)job->nnodes.least;
	o->node_rank = (int)job->node_rank;
	o->master_addr = job->master_addr;
	o->master_port = (int)job->master_port;
	o->token_file = job->token_file;
	o->max_restarts = (int)job->max_restarts;
	if (cli->link || (!job->max_restarts && !job->smoke && !job->nnodes.least))
		return GT_OK;
	if (strcmp(cli->command->name, "run") == 0)
		GT_TRY(build_command_line(cli, job, "run", &o->run_argv, err));
	return build_command_line(cli, job, "resume", &o->resume_argv, err);
}
