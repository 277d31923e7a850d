/* Words of a command line that a message shows for the user to copy. */
#ifndef GT_BASE_SHELL_WORD_H
#define GT_BASE_SHELL_WORD_H

#include <stddef.h>

/* Writes s to buf as one word of a POSIX shell: in quotes if it has characters that a shell could change. A word that is too long for
 * `size` bytes (at least 8) is truncated. Returns buf. */
const char *gt_shell_word(const char *s, char *buf, size_t size);

#endif
