#include "commands.h"
#include "gtrain.h"

#ifndef GT_COMMIT
#define GT_COMMIT "" /* the same as in about.c */
#endif

const char gt_build_id[] = GT_VERSION " " GT_COMMIT;
