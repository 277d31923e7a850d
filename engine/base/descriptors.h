/* File descriptors of this process: their limit, poll(2) over a table with unused entries, and errors of shared memory. */
#ifndef GT_BASE_DESCRIPTORS_H
#define GT_BASE_DESCRIPTORS_H

#include "base/err.h"
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#define GT_POLL_MAX 2048 /* maximum number of entries of gt_poll() */

/* Raises the soft limit of open files (RLIMIT_NOFILE, `ulimit -n`) so that this process can open `need` more descriptors, or `want` if
 * the hard limit allows it. Never lowers the limit. who: the subject of the error ("2 ranks on this host"). Returns GT_EFAIL if the hard
 * limit is too low. */
enum gt_code gt_descriptors_reserve(int need, int want, const char *who, struct gt_err *err);

void gt_fd_close(int *fd); /* closes *fd if it is >= 0, and sets it to -1 */

/* Calls poll(2) on the entries of p[0 … n) whose fd is not negative, for at most wait_s seconds. poll(2) itself also counts unused entries,
 * and fails with EINVAL if there are more entries than allowed descriptors. Returns the number of entries with events: 0 after the
 * time or after a signal, -1 after an error, which is in errno. */
int gt_poll(struct pollfd *p, int n, double wait_s);

/* Returns whether errno `error` means that the process or the machine has no descriptors or buffers left. In this case accept(2) leaves the
 * connection in the queue, so that a loop around poll(2) would spin. */
bool gt_descriptors_exhausted(int error);

/* Fills err for shared memory that could not be allocated because of errno `error`. Returns GT_EIO if the limit on the size of files
 * (RLIMIT_FSIZE) is the cause, because it applies to a memfd too; otherwise GT_EFAIL. */
enum gt_code gt_fail_shared(struct gt_err *err, size_t bytes, int error);

#endif
