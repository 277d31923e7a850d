#ifndef GT_BASE_VERSION_H
#define GT_BASE_VERSION_H

/* Of the program, its checkpoints' "version" entry, and what ranks compare before they train together: semantic versioning. */
#define GT_VERSION "0.1.0"

#endif
