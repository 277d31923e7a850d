/* gt_cost_report: the predicted time of a step in the report of gtrain check. */
#include "base/json.h"
#include "gtrain_cost.h"
#include "report/cost_model.h"
#include <string.h>

struct gt_cost_input {
	struct gt_link link; /* without transport, which the plan's device determines */
	struct gt_times times;
	struct gt_arena *arena;
};

enum gt_code gt_cost_open(const char *link, const char *times, struct gt_arena *a, struct gt_cost_input **out, struct gt_err *err)
{
	GT_NEW(*out, a, 1, err);
	(*out)->arena = a;
	GT_TRY(gt_link_parse(link, &(*out)->link, err));
	return gt_times_read(a, times, &(*out)->times, err);
}

const char *gt_cost_doubt(const struct gt_cost_input *in)
{
	return in->times.doubt;
}

void gt_cost_set_options(struct gt_cost_input *in, const char *options)
{
	in->times.options = options;
}

/* Predicts a step of a planned world. Sets *link to the links with their transport. Errors: as of gt_cost_report. */
static enum gt_code predict_step(const struct gt_cost_input *in, const struct gt_world_plan *w, struct gt_link *link,
                                 struct gt_cost *out, struct gt_err *err)
{
	const struct gt_session *s = w->rank[0];
	*link = in->link;
	link->transport = strcmp(s->family, "cuda") ? GT_LINK_GLOO : GT_LINK_NCCL;
	if (w->world == 1)
		return gt_fail(err, GT_EUSAGE, "--link: expected a plan of several ranks, got one rank; add --world N and a parallel.mode");
	if (s->strategy->ranks == GT_RANKS_THREADS)
		return gt_fail(err, GT_EUSAGE, "--link and parallel.mode = \"%s\" cannot be combined: its ranks are threads of one process",
		               s->strategy->name);
	if (link->transport == GT_LINK_NCCL && s->conf->parallel.host_staged)
		return gt_fail(err, GT_EUSAGE, "--link and parallel.host_staged = true cannot be combined: the cost model does not know the "
		               "time of copies through host memory");
	return gt_cost_predict(w, &in->times, link, in->arena, out, err);
}

enum gt_code gt_cost_report(void *user, const struct gt_world_plan *w, struct gt_json *j, struct gt_err *err)
{
	const struct gt_cost_input *in = user;
	struct gt_link link;
	struct gt_cost c;
	GT_TRY(predict_step(in, w, &link, &c, err));
	gt_json_row(j, "cost", GT_STR("transport", link.transport == GT_LINK_NCCL ? "NCCL" : "gloo"),
	            GT_NUM("bytes_per_s", 1 / link.byte_s, 6), GT_NUM("latency_s", link.latency_s, 6), GT_STR("measured_on", in->times.device),
	            GT_STR("warning", in->times.doubt ? in->times.doubt : ""),
	            GT_NUM("step_s", c.step_s, 6), GT_NUM("compute_s", c.compute_s, 6), GT_NUM("idle_s", c.idle_s, 6),
	            GT_NUM("exposed_s", c.exposed_s, 6), GT_NUM("communication_s", c.communication_s, 6),
	            GT_NUM("efficiency", c.efficiency, 6), GT_NUM("scaled", c.scaled, 6),
	            GT_NUM("samples_per_s", (double)w->rank[0]->batch.size / c.step_s, 6));
	return GT_OK;
}
