#include "report/cost_link.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sizes of kernels/gloo/gloo.h, in bytes. */
enum {
	CALL = 64,             /* the description of a call, and the head of a message */
	SMALL = 8 << 10,       /* maximum data that travel with the description of a call */
	PIECE = 256 << 10,     /* data that are reduced at once */
	EAGER = (4 << 10) - 64 /* maximum data that travel with the head of a message */
};

/* TCP over Ethernet, in bytes: data in a frame of the usual size, and what the frame occupies on the wire. The other bytes are the headers
 * of TCP (32, with timestamps), IPv4 (20) and Ethernet (14), its checksum (4), the preamble (8) and the gap between two frames (12). */
enum { FRAME_DATA = 1448, FRAME_WIRE = 1538 };

struct unit {
	const char *name;
	double factor;
};

static const struct unit bandwidths[] = {{"Kbit", 1e3 / 8}, {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8}, {"Tbit", 1e12 / 8},
                                         {"KB", 1e3},       {"MB", 1e6},       {"GB", 1e9},       {"TB", 1e12},       {0}};
static const struct unit times[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {0}};

/* Reads a number and a unit, up to the byte `end`. Returns a negative number if the text has another form. */
static double read_quantity(const char *text, char end, const struct unit *units, const char **rest)
{
	char *after;
	double v = strtod(text, &after);
	if (after == text || !isfinite(v) || v < 0)
		return -1;
	for (; units->name; units++) {
		size_t n = strlen(units->name);
		if (strncmp(after, units->name, n) || after[n] != end)
			continue;
		*rest = after + n + (end != '\0');
		return v * units->factor;
	}
	return -1;
}

enum gt_code gt_link_parse(const char *text, struct gt_link *out, struct gt_err *err)
{
	const char *rest = text;
	double bandwidth = read_quantity(text, ',', bandwidths, &rest), latency = bandwidth > 0 ? read_quantity(rest, '\0', times, &rest) : -1;
	if (latency < 0)
		return gt_fail(err, GT_EUSAGE, "--link: expected the bandwidth and the latency of a rank's link, such as 100Gbit,5us, got %.100s",
		               text);
	out->byte_s = 1 / bandwidth;
	out->latency_s = latency;
	return GT_OK;
}

double gt_link_byte_time(const struct gt_link *l)
{
	return l->transport == GT_LINK_GLOO ? l->byte_s * FRAME_WIRE / FRAME_DATA : l->byte_s;
}

static double time_of_nccl(const struct gt_link *l, enum gt_coll_kind kind, double n, double all)
{
	double byte_s = gt_link_byte_time(l), ring = (n - 1) * l->latency_s + (n - 1) / n * all * byte_s;
	double tree = 2 * ceil(log2(n)) * l->latency_s + 2 * all * byte_s;
	if (kind == GT_COLL_BARRIER)
		return 2 * ceil(log2(n)) * l->latency_s;
	return kind != GT_COLL_ALL_REDUCE ? ring : 2 * ring < tree ? 2 * ring : tree;
}

static double time_of_gloo(const struct gt_link *l, enum gt_coll_kind kind, double n, double bytes, double all)
{
	bool halves = kind == GT_COLL_ALL_REDUCE || kind == GT_COLL_BROADCAST;
	/* the data that a rank sends to every other rank with its description of a small call */
	double staged = kind == GT_COLL_REDUCE_SCATTER || kind == GT_COLL_SCATTER ? all : bytes;
	double byte_s = gt_link_byte_time(l), call = l->latency_s + (n - 1) * (CALL + (staged <= SMALL ? staged : 0)) * byte_s;
	if (staged <= SMALL)
		return call;
	/* The results of the first pieces travel while the last pieces arrive, but the last result waits for its piece. */
	double parts = (n - 1) / n * all * byte_s, piece = (n - 1) * fmin(all / n, PIECE) * byte_s;
	return call + 2 * l->latency_s + (halves ? fmax(2 * parts, parts + l->latency_s + piece) : parts);
}

double gt_link_collective(const struct gt_link *l, enum gt_coll_kind kind, int n, double bytes)
{
	bool whole = kind == GT_COLL_ALL_REDUCE || kind == GT_COLL_BROADCAST;
	double all = whole ? bytes : n * bytes;
	if (n < 2)
		return 0;
	return l->transport == GT_LINK_NCCL ? time_of_nccl(l, kind, n, all) : time_of_gloo(l, kind, n, bytes, all);
}

double gt_link_message(const struct gt_link *l, double start, double ready, double bytes, double *link_free)
{
	if (l->transport == GT_LINK_GLOO && bytes > EAGER) { /* the receiver sees the head, then announces that it is ready */
		double head = start + l->latency_s + CALL * gt_link_byte_time(l);
		start = (head > ready ? head : ready) + l->latency_s;
	}
	start = start > *link_free ? start : *link_free;
	*link_free = start + bytes * gt_link_byte_time(l);
	double arrived = *link_free + l->latency_s;
	return arrived > ready ? arrived : ready;
}
