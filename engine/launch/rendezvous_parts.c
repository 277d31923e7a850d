/* Closes connections of a rendezvous, and reports its failure to all ranks. */
#include "launch/rendezvous_parts.h"
#include "base/bytes.h"
#include "base/clock.h"
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void gt_rdv_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void gt_rdv_drain_close(int *fd, double until)
{
	char sink[4096];
	while (*fd >= 0 && gt_rdv_recv(*fd, sink, 1, until))
		while (recv(*fd, sink, sizeof sink, MSG_DONTWAIT) > 0)
			;
	gt_rdv_close(fd);
}

static void drain_connections(struct gt_rendezvous *r)
{
	double until = gt_clock() + 1; /* time until which the other ranks can read the message */
	for (int i = 1; i < r->world.world; i++)
		if (r->conn[i].fd >= 0)
			shutdown(r->conn[i].fd, SHUT_WR);
	for (int i = 1; i < r->world.world; i++)
		gt_rdv_drain_close(&r->conn[i].fd, until);
}

/* Reports a failure and sends it to the other ranks as a frame of the byte 1, the code and the message. */
enum gt_code gt_rdv_fail(struct gt_rendezvous *r, enum gt_code code, struct gt_err *err, const char *msg)
{
	unsigned char frame[5 + sizeof r->err.msg];
	size_t n = strlen(msg);
	r->err.code = code;
	snprintf(r->err.msg, sizeof r->err.msg, "%s", msg);
	n = n < sizeof r->err.msg ? n : sizeof r->err.msg - 1;
	frame[0] = 1;
	gt_put_u32(frame + 1, (uint32_t)code);
	memcpy(frame + 5, msg, n);
	for (int i = 1; gt_rdv_is_server(r) && i < r->world.world; i++)
		if (r->conn[i].fd >= 0)
			gt_rdv_send_frame(&r->conn[i], true, frame, 5 + n, gt_clock() + 1);
	if (gt_rdv_is_server(r))
		drain_connections(r);
	else
		gt_rdv_close(&r->conn[0].fd);
	return gt_fail(err, code, "%s", r->err.msg);
}

void gt_rdv_list_missing(const bool *there, int world, char *out, size_t size)
{
	int n = 0, named = 0;
	size_t at = 0;
	for (int i = 0; i < world; i++)
		n += !there[i];
	at += (size_t)snprintf(out, size, n == 1 ? "rank " : "ranks ");
	for (int i = 0; i < world && named < 8; i++)
		if (!there[i])
			at += (size_t)snprintf(out + at, size - at, "%s%d", named++ ? ", " : "", i);
	if (n > named)
		snprintf(out + at, size - at, " and %d more", n - named);
}
