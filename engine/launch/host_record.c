#include "launch/host_record.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static bool has_failures(const struct gt_host_record *r, const char *host, double now)
{
	return r->failures > 0 && !strcmp(r->host, host) && now < r->failed_at + GT_HOST_FORGET_S;
}

void gt_host_record_add(struct gt_host_record *r, const char *host, const char *why, bool in_attempt, double now)
{
	int failures = has_failures(r, host, now) ? r->failures : 0;
	*r = (struct gt_host_record){.failures = failures + 1, .open = in_attempt || (failures && r->open), .failed_at = now};
	snprintf(r->host, sizeof r->host, "%s", host);
	snprintf(r->why, sizeof r->why, "%s", why);
}

void gt_host_record_settle(struct gt_host_record *r, bool saved)
{
	if (r->open && saved)
		r->failures = 0;
	r->open = false;
}

double gt_host_record_ready(const struct gt_host_record *r, const char *host, double wait_s, double now)
{
	if (!has_failures(r, host, now))
		return now;
	double ready = r->failed_at + wait_s * (1 << (r->failures < GT_HOST_FAILURES ? r->failures - 1 : GT_HOST_FAILURES - 1));
	return r->open ? INFINITY : ready > now ? ready : now;
}

bool gt_host_record_refuses(const struct gt_host_record *r, const char *host, double now, char *why, size_t size)
{
	if (!has_failures(r, host, now) || r->open || r->failures < GT_HOST_FAILURES)
		return false;
	snprintf(why, size, "it has failed %d times in a row in attempts that saved no checkpoint (the last time: %s); repair it, and start "
	         "it again in %.0f min", r->failures, r->why, ceil((r->failed_at + GT_HOST_FORGET_S - now) / 60));
	return true;
}
