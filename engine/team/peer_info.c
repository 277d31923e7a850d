#include "team/team_parts.h"
#include "base/public.h"
#include "launch/launcher_parts.h"
#include "omp_threads.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert(sizeof(cpu_set_t) == sizeof ((struct gt_peer_info *)0)->cpus, "one bit per processor");

static void describe_host(char *out, size_t size)
{
	char boot[64] = "?", space[64] = "?";
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (f && fscanf(f, "%63s", boot) != 1)
		strcpy(boot, "?");
	if (f)
		fclose(f);
	/* shared memory is opened through /proc/PID/fd, so the PID namespace must be the same */
	ssize_t n = readlink("/proc/self/ns/pid", space, sizeof space - 1);
	space[n > 0 ? n : 0] = 0;
	snprintf(out, size, "%s %s %d", boot, space, (int)geteuid());
}

void gt_peer_info(const struct gt_team_spec *s, struct gt_peer_info *out)
{
	cpu_set_t set;
	memset(out, 0, sizeof *out);
	snprintf(out->version, sizeof out->version, "%s", GT_VERSION);
	gt_digest_bytes(s->config, strlen(s->config), out->config);
	snprintf(out->start, sizeof out->start, "%s", s->start);
	describe_host(out->host, sizeof out->host);
	CPU_ZERO(&set);
	if (!sched_getaffinity(0, sizeof set, &set))
		memcpy(out->cpus, &set, sizeof out->cpus);
}

enum gt_code gt_peers_agree(const struct gt_rdv_value *all, int world, bool *one_host, struct gt_err *err)
{
	static const struct {
		const char *what;
		size_t at, size;
	} same[] = {
#define FIELD(name, text) {text, offsetof(struct gt_peer_info, name), sizeof ((struct gt_peer_info *)0)->name}
		FIELD(version, "version of gtrain"), FIELD(config, "config"), FIELD(start, "start"),
#undef FIELD
	};
	const char *first = all[0].data;
	*one_host = true;
	for (size_t k = 0; k < sizeof same / sizeof *same; k++)
		for (int i = 0; i < world; i++) {
			const char *card = all[i].data, *its = card + same[k].at, *want = first + same[k].at;
			int most = (int)same[k].size; /* a peer with another version of gtrain may send text without a NUL */
			if (all[i].n < same[k].at + same[k].size)
				return gt_fail(err, GT_EPEER, "rank %d runs another build of gtrain: its description has only %zu bytes", i, all[i].n);
			if (strncmp(its, want, same[k].size))
				return gt_fail(err, GT_ECONFIG, "rank %d and rank 0 differ in their %s: %.*s instead of %.*s",
				               i, same[k].what, most, its, most, want);
		}
	for (int i = 0; i < world; i++) {
		const struct gt_peer_info *card = all[i].data, *zero = all[0].data;
		if (all[i].n != sizeof *card)
			return gt_fail(err, GT_EPEER, "rank %d runs another build of gtrain: its description has %zu bytes instead of %zu",
			               i, all[i].n, sizeof *card);
		*one_host &= !strncmp(card->host, zero->host, sizeof card->host);
	}
	return GT_OK;
}

void gt_team_pin(struct gt_team *t, int local, int n)
{
	struct gt_cpu_info place[CPU_SETSIZE];
	cpu_set_t set;
	int cores, np = gt_cpu_list(place);
	if (gt_cpu_share(place, np, local, n, &set, &cores))
		sched_setaffinity(0, sizeof set, &set);
	else
		cores = 1;
	t->threads = gt_omp_threads(getenv("OMP_NUM_THREADS")) ? 0 : cores > 0 ? cores : 1;
}

void gt_team_set_affinity(struct gt_team *t, const struct gt_rdv_value *all, const struct gt_peer_info *own)
{
	int local = 0, here = 0;
	if (t->link)
		return;
	for (int i = 0; i < t->world.world; i++) {
		const struct gt_peer_info *card = all[i].data;
		if (strncmp(card->host, own->host, sizeof card->host))
			continue;
		if (memcmp(card->cpus, own->cpus, sizeof own->cpus))
			return;
		local += i < t->world.rank;
		here++;
	}
	if (here > 1)
		gt_team_pin(t, local, here);
}
