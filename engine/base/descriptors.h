/* Descriptors of this process: how many it may have, poll(2) over a table in which many entries are unused, and what limits shared memory.
 */
#ifndef GT_BASE_DESCRIPTORS_H
#define GT_BASE_DESCRIPTORS_H

#include "base/err.h"
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#define GT_POLL_MAX 2048 /* entries of gt_poll() */

/* Makes room for `need` descriptors beside those that are open, and for `want` where the hard limit allows it: raises the soft limit
 * (RLIMIT_NOFILE, `ulimit -n`), and never lowers it. GT_EFAIL: the hard limit is too low; `who` ("2 ranks on this host") needs them. */
enum gt_code gt_descriptors_reserve(int need, int want, const char *who, struct gt_err *err);

/* poll(2) over those of p[0 … n) whose fd is not negative, for at most wait_s seconds. poll(2) itself counts unused entries too and fails
 * with EINVAL where there are more than descriptors allowed. Returns how many have events; 0 also after a signal; -1: errno. */
int gt_poll(struct pollfd *p, int n, double wait_s);

/* Whether errno says that this process or the machine has no descriptor or buffer left: accept(2) then leaves the connection waiting, so
 * that a loop around poll(2) would spin. */
bool gt_descriptors_exhausted(int error);

/* The sentence for shared memory that errno `error` refused: the limit on the size of files (RLIMIT_FSIZE) holds for a memfd too, which is
 * GT_EIO as for any other file; else GT_EFAIL. */
enum gt_code gt_fail_shared(struct gt_err *err, size_t bytes, int error);

#endif
