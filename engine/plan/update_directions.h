/* Muon in two parts, on a device with streams: for groups of matrices, muon.directions computes the directions of the update on a stream of
 * its own while the backward pass still runs, and muon.apply updates all matrices after the CHECK step. muon.directions changes neither
 * parameters nor momentum, so a step that CHECK skips leaves both as they were.
 *
 *     gt_directions_prepare(space, &attr, n, offset, &d, &offered, err);     groups and calls; attr is that of muon
 *     space->memory.bytes[GT_A_DIRECTIONS] = ...;                            the caller adds up d.bytes and the largest workspace
 *     gt_directions_bind(&d, space, p, g, buf, workspace);                   after gt_space_alloc
 *     gt_directions_close(&d, space);
 *
 *	stream 0   ... conv2d.dw  conv2d.dx  conv2d.dw  conv2d.dx ...  CHECK  sgd  muon.apply
 *	                    |                     |                                  |
 *	stream 2            +--> muon.directions  +--> muon.directions --------------+
 *
 * Directions and workspace are in the arena DIRECTIONS, because kernels of stream 0 use the arena SCRATCH at the same time. */
#ifndef GT_PLAN_UPDATE_DIRECTIONS_H
#define GT_PLAN_UPDATE_DIRECTIONS_H

#include "plan/step.h"

struct gt_directions {
	struct gt_attr_muon attr;  /* attributes of muon.apply: those of muon, and the groups */
	struct gt_attr_muon *part; /* [n] attributes of each call of muon.directions */
	struct gt_call *call;      /* [n] calls of muon.directions, in the order in which the backward pass finishes the gradients */
	struct gt_elements *reads; /* [n] elements of GRAD that each call reads */
	int n;                     /* number of groups */
	struct gt_tdesc desc;      /* the operand d of all these calls and of muon.apply */
	size_t offset;             /* byte offset of d in the arena DIRECTIONS, a multiple of 256 */
	size_t bytes;              /* of d, rounded up to a multiple of 256 */
	size_t scratch;            /* bytes of the largest workspace of a call; the calls run one after the other */
};

/* Divides the matrices of attr (the segments of muon) into groups, and prepares a call for each. n: number of elements of the parameters.
 * offset: offset of d. If the device does not offer muon.directions, sets *offered to false and prepares nothing. attr's lists must live as
 * long as the space. */
enum gt_code gt_directions_prepare(struct gt_space *s, const struct gt_attr_muon *attr, int64_t n, size_t offset, struct gt_directions *out,
                                   bool *offered, struct gt_err *err);
/* Sets the operand addresses. p, g, buf: addresses of parameters, gradients and momentum; scratch: byte offset of the workspace in the
 * arena DIRECTIONS. */
void gt_directions_bind(struct gt_directions *d, struct gt_space *s, void *p, void *g, void *buf, size_t scratch);
void gt_directions_close(struct gt_directions *d, struct gt_space *s);

#endif
