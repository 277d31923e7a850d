#ifndef GT_BASE_VERSION_H
#define GT_BASE_VERSION_H

/* The version of the program (semantic versioning). Checkpoints contain it, and ranks compare it before they train together. */
#define GT_VERSION "0.1.0"

#endif
