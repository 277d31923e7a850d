#include "run/session_team.h"
#include "run/comm_staged.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gradients and parameters come from memory that the other ranks of the host read as they are. */
static enum gt_code shared(void *user, enum gt_arena_id id, size_t bytes, void **out, struct gt_err *err)
{
	struct gt_session *s = user;
	struct gt_comm *c = s->exec.group[GT_GROUP_DATA];
	bool params = id == GT_A_PARAM || id == GT_A_WORK;
	*out = NULL;
	if (!c || c->world == 1)
		return GT_OK;
	if (params && s->space->cut.common)
		return c->api->common(c, bytes, out, err);
	return id == GT_A_GRAD || (params && s->space->cut.shards > 1) ? c->api->buffer(c, bytes, out, err) : GT_OK;
}

/* What all ranks must have in common: where parameters lie, and the shape of a step. */
static enum gt_code same_layout(struct gt_session *s, struct gt_err *err)
{
	const struct gt_graph *g = s->space->first;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);
	if (!f)
		return gt_fail_memory(err, 0);
	fprintf(f, "%lld %lld %lld %lld\n", (long long)s->batch, (long long)s->samples, (long long)s->space->elements, (long long)s->steps);
	for (int i = 0; i < g->nparams && s->at.npipe == 1; i++) {
		const struct gt_place *p = &s->space->place[i];
		fprintf(f, "%s %lld %lld", g->params[i].name, (long long)p->offset, (long long)p->count);
		for (int k = 0; k < p->desc.layout.nblk; k++)
			fprintf(f, " %d:%d", (int)p->desc.layout.blk_dim[k], (int)p->desc.layout.blk[k]);
		fprintf(f, "\n");
	}
	enum gt_code code = fclose(f) ? gt_fail_memory(err, 0) : gt_team_same(s->team, "layout of parameters (another processor, or another version of a library)", text, err);
	free(text);
	return code;
}

/* The groups of a step, on host memory; then, where the device has its own, what goes through the host. */
static enum gt_code groups(struct gt_session *s, struct gt_err *err)
{
	struct gt_comm *world = s->team->comm, **g = s->exec.group;
	g[GT_GROUP_WORLD] = world;
	if (s->at.ndata == s->at.world) {
		g[GT_GROUP_DATA] = world;
	} else {
		GT_TRY(world->api->split(world, "replicas", s->at.pipe, s->at.data, &s->split[GT_GROUP_DATA], err));
		GT_TRY(world->api->split(world, "pipeline", s->at.data, s->at.pipe, &s->split[GT_GROUP_PIPE], err));
		g[GT_GROUP_DATA] = s->split[GT_GROUP_DATA];
		g[GT_GROUP_PIPE] = s->split[GT_GROUP_PIPE];
	}
	for (int i = 0; i < GT_GROUP_COUNT && !s->device.be->host_memory; i++)
		if (g[i]) {
			GT_TRY(gt_comm_staged_open(g[i], s->device.be, s->device.dev, &s->staged[i], err));
			g[i] = s->staged[i];
		}
	return GT_OK;
}

enum gt_code gt_session_join(struct gt_session *s, struct gt_err *err)
{
	struct gt_comm *world = s->team->comm;
	if (s->conf->reproducible == GT_REPRO_WORLD && !world->api->fixed_tree)
		return gt_fail(err, GT_ECONFIG, "%s: reproducible = \"world\" and the communicator %s do not go together: it adds up in an order of its own", s->conf->path,
		               world->api->name);
	GT_TRY(groups(s, err));
	if (s->device.be->host_memory) {
		s->space->shared = shared;
		s->space->user = s;
	}
	return same_layout(s, err);
}

struct gt_comm *gt_session_host_group(const struct gt_session *s)
{
	return s->split[GT_GROUP_DATA] ? s->split[GT_GROUP_DATA] : s->team ? s->team->comm : NULL;
}

enum gt_code gt_session_meet(struct gt_session *s, struct gt_err *err)
{
	struct gt_comm *c = s->exec.group[GT_GROUP_DATA];
	if (!c || c->world == 1)
		return GT_OK;
	gt_rank_waits(s->exec.link, true);
	enum gt_code code = c->api->barrier(c, 0, err);
	gt_rank_waits(s->exec.link, false);
	return code;
}

bool gt_session_common(const struct gt_session_spec *spec, const struct gt_conf *c, const struct gt_backend *be)
{
	const char *device = spec->device && strcmp(spec->device, "null") ? spec->device : c->device;
	if (spec->team && spec->team->comm)
		return be->host_memory && spec->team->comm->api->common;
	return strncmp(device, "cuda", 4) != 0; /* a look ahead: ranks of one host */
}

void gt_session_leave(struct gt_session *s)
{
	for (int i = 0; i < GT_GROUP_COUNT; i++) {
		if (s->staged[i])
			s->staged[i]->api->close(s->staged[i]);
		if (s->split[i])
			s->split[i]->api->close(s->split[i]);
	}
}

enum gt_code gt_session_follow(struct gt_session *s, struct gt_err *err)
{
	const struct gt_space *sp = s->space;
	if (s->at.ndata == 1 || !sp->bytes[GT_A_BUFFER])
		return GT_OK;
	struct gt_comm *c = s->exec.group[GT_GROUP_DATA];
	struct gt_coll x = {.what = "running statistics", .in = sp->base[GT_A_BUFFER], .out = sp->base[GT_A_BUFFER], .count = sp->bytes[GT_A_BUFFER], .dtype = GT_U8};
	gt_rank_waits(s->exec.link, true);
	enum gt_code code = c->api->broadcast(c, &x, err);
	gt_rank_waits(s->exec.link, false);
	return code;
}

enum gt_code gt_session_sum(struct gt_session *s, struct gt_metrics *m, struct gt_err *err)
{
	double f[2] = {m->loss, m->weight};
	int64_t n[3] = {m->correct, m->top5, m->count};
	if (s->at.world == 1)
		return GT_OK;
	struct gt_comm *c = s->team->comm;
	struct gt_coll xf = {.what = "metrics", .in = f, .out = f, .count = 2, .dtype = GT_F64}, xn = {.what = "metrics", .in = n, .out = n, .count = 3, .dtype = GT_I64};
	gt_rank_waits(s->exec.link, true);
	enum gt_code code = c->api->all_reduce(c, &xf, err);
	if (code == GT_OK)
		code = c->api->all_reduce(c, &xn, err);
	gt_rank_waits(s->exec.link, false);
	*m = (struct gt_metrics){.loss = f[0], .weight = f[1], .correct = n[0], .top5 = n[1], .count = n[2]};
	return code;
}
