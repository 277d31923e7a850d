#include "train/rank_session.h"
#include "plan/strategy.h"
#include "session/session_data.h"
#include "session/world_plan.h"
#include "train/run_ranks.h"


/* gt_rank_body. */
static enum gt_code run_rank(void *user, const struct gt_team *team, struct gt_err *err)
{
	struct gt_rank_session *r = user;
	const char *word = r->opts->device ? r->opts->device : r->conf->device;
	char device[32];
	struct gt_session *s;
	struct gt_session_spec spec = r->spec;
	spec.conf = r->conf;
	spec.team = team;
	spec.data = r->data;
	spec.device = gt_rank_device(word, &team->world, device, sizeof device);
	gt_rank_phase(team->link, "reading data and planning", GT_PATIENCE * r->conf->parallel.timeout);
	GT_TRY(gt_session_open(&spec, &s, err));
	gt_rank_phase(team->link, "", s->device.be->host_memory ? 0 : GT_PATIENCE * r->conf->parallel.timeout);
	enum gt_code code = r->body(r->user, s, err);
	if (code != GT_OK && code < 128 && err && gt_strategy_of(r->conf->parallel.mode)->ranks != GT_RANKS_THREADS) /* as in run.c */
		gt_rank_report_error(team->link, code, err->msg);
	gt_session_close(s);
	return code;
}

static enum gt_code run_one_process(struct gt_rank_session *r, const struct gt_ranks *ranks, struct gt_err *err)
{
	struct gt_team_spec spec = {.world = &ranks->world, .link = r->opts->link, .token_file = ranks->token_file,
	                            .timeout_s = r->conf->parallel.timeout, .config = r->conf->text, .start = r->start};
	struct gt_team *team;
	GT_TRY(gt_team_open(&spec, &team, err));
	enum gt_code code = run_rank(r, team, err);
	gt_team_close(team);
	return code;
}

static enum gt_code run_threads(struct gt_rank_session *r, int n, struct gt_err *err)
{
	struct gt_session_spec spec = r->spec;
	struct gt_session_files data;
	spec.conf = r->conf;
	GT_TRY(gt_session_read_data(&spec, &data, err));
	r->data = &data;
	enum gt_code code = gt_team_threads(n, r->opts->link, run_rank, r, err);
	r->data = NULL;
	gt_session_free_data(&data);
	return code;
}

enum gt_code gt_rank_session_run(struct gt_rank_session *r, struct gt_err *err)
{
	struct gt_ranks ranks;
	GT_TRY(gt_ranks_of(r->conf, r->opts, &ranks, err));
	if (ranks.launch) {
		if (r->spec.train)
			GT_TRY(gt_world_plan_preflight(r->conf, r->opts->device, ranks.nproc, NULL, err));
		return gt_ranks_launch(&ranks, r->conf, "", NULL, r->opts, err);
	}
	if (!r->spec.train && ranks.world.world == 1 && ranks.threads == 1)
		gt_ranks_use_one(r->conf);
	return ranks.threads > 1 ? run_threads(r, ranks.threads, err) : run_one_process(r, &ranks, err);
}
