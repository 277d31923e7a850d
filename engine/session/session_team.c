#include "session/session_team.h"
#include "against/against.h"
#include "base/memstream.h"
#include "team/comm_staged.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Allocates an arena. Gradients and parameters are in memory that the other ranks of the host can read directly. */
static enum gt_code alloc_shared_arena(void *user, enum gt_arena_id id, size_t bytes, void **out, struct gt_err *err)
{
	struct gt_session *s = user;
	struct gt_comm *c = s->exec.group[GT_GROUP_DATA];
	bool params = id == GT_A_PARAM || id == GT_A_WORK;
	*out = NULL;
	if (!c || c->world == 1)
		return GT_OK;
	if (gt_space_is_shared(s->space, id))
		return c->api->common(c, bytes, out, err);
	return id == GT_A_GRAD || id == GT_A_WIRE || (params && s->space->shards.spec.shards > 1) ? c->api->buffer(c, bytes, out, err) : GT_OK;
}

/* Checks that all ranks have the same offsets of parameters and the same numbers of samples and micro-batches in a step. */
static enum gt_code check_same_layout(struct gt_session *s, struct gt_err *err)
{
	const struct gt_graph *g = s->space->layout.first;
	char *text = NULL;
	struct gt_memstream m;
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	fprintf(f, "%lld %lld %lld %lld\n", (long long)s->batch.size, (long long)s->batch.samples,
	        (long long)(s->at.npipe == 1 ? s->space->layout.elements : 0), (long long)s->batch.steps);
	for (int i = 0; i < g->nparams && s->at.npipe == 1; i++) {
		const struct gt_param_slot *p = &s->space->layout.param[i];
		fprintf(f, "%s %lld %lld", g->params[i].name, (long long)p->offset, (long long)p->count);
		for (int k = 0; k < p->desc.layout.nblk; k++)
			fprintf(f, " %d:%d", (int)p->desc.layout.blk_dim[k], (int)p->desc.layout.blk[k]);
		fprintf(f, "\n");
	}
	GT_TRY(gt_memstream_close(f, &m, &text, NULL, err));
	enum gt_code code = gt_team_compare(s->team, "layout of parameters", text, err);
	free(text);
	if (code == GT_ECONFIG)
		gt_fail_suffix(err, "the processors or the versions of a library may differ");
	return code;
}

/* Splits the group of all ranks into the groups that programs use. If a group has all ranks, it is `world` itself. split[]: groups that the
 * caller must close. */
static enum gt_code split_groups(struct gt_session *s, struct gt_comm *world, struct gt_comm **split, struct gt_comm **lane,
                                 struct gt_err *err)
{
	struct gt_comm **group = s->exec.group;
	group[GT_GROUP_WORLD] = group[GT_GROUP_DATA] = world;
	if (s->at.ndata == s->at.world)
		return GT_OK;
	GT_TRY(world->api->split(world, "replicas", s->at.pipe, s->at.data, &split[GT_GROUP_DATA], err));
	if (s->pipe.pair_bytes && world->api->set_send_buffer)
		world->api->set_send_buffer(world, s->pipe.pair_bytes);
	GT_TRY(world->api->split(world, "pipeline", s->at.data, s->at.pipe, &split[GT_GROUP_PIPE], err));
	group[GT_GROUP_DATA] = split[GT_GROUP_DATA];
	group[GT_GROUP_PIPE] = split[GT_GROUP_PIPE];
	for (int i = 1; i < s->pipe.lanes; i++) {
		GT_TRY(world->api->split(world, "pipeline", s->at.data, s->at.pipe, &lane[i], err));
		s->exec.lane[i] = lane[i];
	}
	return GT_OK;
}

/* Sets *out if every rank has a GPU of its own. */
static enum gt_code check_own_gpus(struct gt_session *s, bool *out, struct gt_err *err)
{
	struct gt_comm *world = s->team->comm;
	struct { char host[64], pci_bus_id[64]; } own = {{0}}, *all;
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (f) {
		if (!fgets(own.host, sizeof own.host, f))
			own.host[0] = 0;
		fclose(f);
	}
	snprintf(own.pci_bus_id, sizeof own.pci_bus_id, "%s", s->device.info.pci_bus_id);
	GT_NEW(all, s->arena, world->world, err);
	struct gt_coll x = {.what = "addresses of devices", .in = &own, .out = all, .count = sizeof own, .dtype = GT_U8};
	GT_TRY(world->api->all_gather(world, &x, err));
	*out = true;
	for (int i = 0; i < world->world; i++)
		for (int k = 0; k < i; k++)
			*out &= memcmp(&all[i], &all[k], sizeof own) != 0;
	return GT_OK;
}

/* Opens NCCL groups for ranks with GPUs of their own; NCCL's id is sent over the host communicator. */
static enum gt_code join_gpus(struct gt_session *s, struct gt_err *err)
{
	const struct gt_comm_api *api;
	struct gt_comm_boot boot = {.fd = -1};
	void *p;
	GT_TRY(gt_device_plugin("cuda", "gt_comm_nccl", &p, err));
	api = p;
	enum gt_code code = s->at.rank == 0 ? api->create(s->at.world, &boot, err) : GT_OK;
	GT_TRY(code);
	GT_TRY(gt_team_broadcast(s->team, boot.id, sizeof boot.id, 0, "NCCL's id", err));
	struct gt_comm_spec spec = {.rank = s->at.rank,
	                            .world = s->at.world,
	                            /* ranks arrive at different times, because cuDNN first measures its algorithms */
	                            .timeout_s = GT_PATIENCE * s->conf->parallel.timeout,
	                            .boot = &boot,
	                            .dev = gt_against_inner(&s->device),
	                            .host = s->team->comm};
	GT_TRY(api->open(&spec, &s->comm.device_world, err));
	api->set_timeout(s->comm.device_world, s->conf->parallel.timeout);
	return split_groups(s, s->comm.device_world, s->comm.device_group, s->comm.device_lane, err);
}

/* Opens groups through host memory for ranks that share a GPU. */
static enum gt_code join_hosts(struct gt_session *s, struct gt_err *err)
{
	for (int i = 0; i < GT_GROUP_COUNT; i++)
		if (s->exec.group[i]) {
			GT_TRY(gt_comm_staged_open(s->exec.group[i], s->device.be, s->device.dev, &s->comm.device_group[i], err));
			s->exec.group[i] = s->comm.device_group[i];
		}
	for (int i = 1; i < s->pipe.lanes; i++) {
		GT_TRY(gt_comm_staged_open(s->comm.lane[i], s->device.be, s->device.dev, &s->comm.device_lane[i], err));
		s->exec.lane[i] = s->comm.device_lane[i];
	}
	return GT_OK;
}

static enum gt_code open_groups(struct gt_session *s, struct gt_err *err)
{
	bool own = false;
	GT_TRY(split_groups(s, s->team->comm, s->comm.split, s->comm.lane, err));
	if (s->device.be->host_memory)
		return GT_OK;
	if (!s->conf->parallel.host_staged)
		GT_TRY(check_own_gpus(s, &own, err));
	GT_TRY(own ? join_gpus(s, err) : join_hosts(s, err));
	struct gt_comm *world = s->exec.group[GT_GROUP_WORLD];
	s->exec.timeout_s = world->api->set_timeout(world, s->conf->parallel.timeout);
	world->api->set_timeout(world, GT_PATIENCE * s->exec.timeout_s);
	return GT_OK;
}

enum gt_code gt_session_comm_open(struct gt_session *s, struct gt_err *err)
{
	s->exec.link = s->team ? s->team->link : NULL;
	if (!s->team || !s->team->comm)
		return GT_OK;
	GT_TRY(open_groups(s, err));
	const struct gt_comm_api *api = s->exec.group[GT_GROUP_DATA]->api;
	if (s->conf->reproducible == GT_REPRO_WORLD && !api->fixed_tree)
		return gt_conf_refuse(s->conf, "reproducible", err,
		                      "reproducible = \"world\" and the communicator %s cannot be combined: it does not sum in a fixed order%s",
		                      api->name, s->device.be->host_memory ? "" : "; use parallel.host_staged = true, which sums in a fixed order");
	if (api->buffer) {
		s->space->memory.shared = alloc_shared_arena;
		s->space->memory.user = s;
	}
	return check_same_layout(s, err);
}

struct gt_comm *gt_session_host_group(const struct gt_session *s)
{
	return s->comm.split[GT_GROUP_DATA] ? s->comm.split[GT_GROUP_DATA] : s->team ? s->team->comm : NULL;
}

enum gt_code gt_session_barrier(struct gt_session *s, struct gt_err *err)
{
	struct gt_comm *c = s->exec.group[GT_GROUP_DATA];
	if (!c || c->world == 1)
		return GT_OK;
	gt_rank_set_waiting(s->exec.link, true);
	enum gt_code code = c->api->barrier(c, 0, err);
	gt_rank_set_waiting(s->exec.link, false);
	return code;
}

bool gt_session_shares_memory(const struct gt_session_spec *spec, const struct gt_conf *c, const struct gt_backend *be)
{
	const char *device = spec->device && strcmp(spec->device, "null") ? spec->device : c->device;
	if (spec->against) /* a device that compares calls writes whole tensors, also parts that other ranks change at the same time */
		return false;
	if (spec->team && spec->team->comm)
		return be->host_memory && spec->team->comm->api->common;
	/* a dry session may have no open device; its ranks are then assumed to be on one host, unless it says otherwise */
	return !spec->apart && strncmp(device, "cuda", 4) != 0;
}

void gt_session_comm_close(struct gt_session *s)
{
	for (int i = 1; i < s->pipe.lanes; i++) {
		if (s->comm.device_lane[i])
			s->comm.device_lane[i]->api->close(s->comm.device_lane[i]);
		if (s->comm.lane[i])
			s->comm.lane[i]->api->close(s->comm.lane[i]);
	}
	for (int i = 0; i < GT_GROUP_COUNT; i++) {
		if (s->comm.device_group[i])
			s->comm.device_group[i]->api->close(s->comm.device_group[i]);
		if (s->comm.split[i])
			s->comm.split[i]->api->close(s->comm.split[i]);
	}
	if (s->comm.device_world)
		s->comm.device_world->api->close(s->comm.device_world);
}

enum gt_code gt_session_sync_buffers(struct gt_session *s, struct gt_err *err)
{
	const struct gt_space *sp = s->space;
	if (s->at.ndata == 1 || !sp->memory.bytes[GT_A_BUFFER])
		return GT_OK;
	struct gt_comm *c = s->exec.group[GT_GROUP_DATA];
	struct gt_coll x = {.what = "running statistics",
	                    .in = sp->memory.base[GT_A_BUFFER],
	                    .out = sp->memory.base[GT_A_BUFFER],
	                    .count = sp->memory.bytes[GT_A_BUFFER],
	                    .dtype = GT_U8};
	gt_rank_set_waiting(s->exec.link, true);
	enum gt_code code = c->api->broadcast(c, &x, err);
	gt_rank_set_waiting(s->exec.link, false);
	return code;
}

enum gt_code gt_session_sum_metrics(struct gt_session *s, struct gt_metrics *m, struct gt_err *err)
{
	double f[2] = {m->loss, m->weight};
	int64_t n[3] = {m->correct, m->top5, m->count};
	if (s->at.world == 1)
		return GT_OK;
	struct gt_comm *c = s->team->comm;
	struct gt_coll xf = {.what = "metrics", .in = f, .out = f, .count = 2, .dtype = GT_F64},
	               xn = {.what = "metrics", .in = n, .out = n, .count = 3, .dtype = GT_I64};
	gt_rank_set_waiting(s->exec.link, true);
	enum gt_code code = c->api->all_reduce(c, &xf, err);
	if (code == GT_OK)
		code = c->api->all_reduce(c, &xn, err);
	gt_rank_set_waiting(s->exec.link, false);
	*m = (struct gt_metrics){.loss = f[0], .weight = f[1], .correct = n[0], .top5 = n[1], .count = n[2]};
	return code;
}
