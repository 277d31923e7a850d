/* Selects the processors of a rank: whole cores if there are enough, so that no two ranks share a core. */
#include "launch/launcher_parts.h"
#include <stdio.h>
#include <stdlib.h>

/* Reads a number of /sys/devices/system/cpu/cpuN/topology; returns `or` if it is missing (a container may hide it). */
static int read_topology(int cpu, const char *what, int or)
{
	char path[96];
	int v;
	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/%s", cpu, what);
	FILE *f = fopen(path, "re");
	if (!f)
		return or;
	if (fscanf(f, "%d", &v) != 1)
		v = or;
	fclose(f);
	return v;
}

int gt_cpu_list(struct gt_cpu_info out[CPU_SETSIZE])
{
	cpu_set_t set;
	int n = 0;
	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof set, &set)) /* fails with EINVAL if the machine has more processors than a cpu_set_t can hold */
		return 0;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			out[n++] = (struct gt_cpu_info){cpu, read_topology(cpu, "physical_package_id", 0), read_topology(cpu, "core_id", cpu)};
	return n;
}

static int compare_cores(const void *a, const void *b)
{
	const struct gt_cpu_info *x = a, *y = b;
	return x->package != y->package ? x->package - y->package : x->core != y->core ? x->core - y->core : x->cpu - y->cpu;
}

bool gt_cpu_share(struct gt_cpu_info *p, int np, int local, int n, cpu_set_t *set, int *cores)
{
	int ncores = 0, unit = -1, first, last, held = 0;
	if (np < n)
		return false;
	qsort(p, (size_t)np, sizeof *p, compare_cores);
	for (int i = 0; i < np; i++)
		ncores += !i || p[i].package != p[i - 1].package || p[i].core != p[i - 1].core;
	bool whole = ncores >= n;
	int units = whole ? ncores : np;
	first = (int)((long)local * units / n);
	last = (int)((long)(local + 1) * units / n);
	CPU_ZERO(set);
	for (int i = 0; i < np; i++) {
		bool next = !whole || !i || p[i].package != p[i - 1].package || p[i].core != p[i - 1].core;
		unit += next;
		if (unit >= first && unit < last) {
			CPU_SET(p[i].cpu, set);
			held += next;
		}
	}
	*cores = held;
	return true;
}
