#include "commands.h"
#include "gtrain.h"

#ifndef GT_COMMIT
#define GT_COMMIT "" /* the commit of the build, from the Makefile; "": built outside git */
#endif

const char gt_build_id[] = GT_VERSION " " GT_COMMIT;
