/* The time of a collective over the links of its ranks, by the model of Hockney (1994, "The communication challenge for MPP"): a message of
 * B bytes takes latency + B / bandwidth. Every rank has one link of its own to all others, full duplex, and nothing else uses it.
 *
 *     struct gt_link l;
 *     GT_TRY(gt_link_parse("100Gbit,5us", &l, err));
 *     l.transport = GT_LINK_NCCL;
 *     seconds = gt_link_collective(&l, GT_COLL_ALL_REDUCE, 64, bytes);
 *
 * With n ranks, latency a and b seconds for a byte:
 *
 *     NCCL     all_reduce, ring   2 (n - 1) a + 2 (n - 1) / n B b    Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms"
 *              all_reduce, tree   2 log2(n) a + 2 B b                Sanders, Speck, Traff 2009, "Two-tree algorithms for full bandwidth
 *                                                                    broadcast, reduction and scan"; the faster of the two
 *              others             (n - 1) a + (n - 1) / n B b        ring; B: bytes of the whole operand
 *     gloo     call               a + (n - 1) c b                    every call: c bytes of description, with the data of a small call
 *              all_reduce         call + 2 a + max(2 P, P + a + p)   parts to their owners, sums to all ranks (gloo/gloo_coll.c);
 *              broadcast          call + 2 a + max(2 P, P + a + p)   P = (n - 1) / n B b, and p is the time of the last piece of a part
 *              others             call + 2 a + P
 *
 * gloo sends a large message when the receiver has announced that it is ready, which takes one more latency. With gloo, b counts the
 * headers of TCP, IP and Ethernet: 1,448 bytes of data occupy 1,538 bytes of the link. */
#ifndef GT_REPORT_COST_LINK_H
#define GT_REPORT_COST_LINK_H

#include "comm.h"

enum gt_link_transport {
	GT_LINK_GLOO, /* TCP between the CPUs of several hosts */
	GT_LINK_NCCL  /* between GPUs */
};

struct gt_link {
	double byte_s;    /* seconds for one byte on the link in one direction: 1 / bandwidth; 0: no time */
	double latency_s; /* seconds from the call that sends an empty message to its arrival */
	enum gt_link_transport transport;
};

/* Reads "BANDWIDTH,LATENCY": a number and Kbit, Mbit, Gbit, Tbit, KB, MB, GB or TB, in each case of a second; a number and ns, us, ms or s.
 * Does not set out->transport. GT_EUSAGE: text has another form. */
enum gt_code gt_link_parse(const char *text, struct gt_link *out, struct gt_err *err);

/* Returns the seconds of one byte of data, with its share of the headers. */
double gt_link_byte_time(const struct gt_link *l);

/* Returns the seconds of a collective of n ranks that begin at the same time. bytes: gt_coll.count times the size of an element. */
double gt_link_collective(const struct gt_link *l, enum gt_coll_kind kind, int n, double bytes);

/* The times of one message. `ready` is when the receiver calls, and `start` when the sender calls; link_free: when the sender's link has
 * transferred its earlier messages, which the function advances to when it has transferred this one. Returns when the data have arrived. */
double gt_link_message(const struct gt_link *l, double start, double ready, double bytes, double *link_free);

#endif
