#include "setup/init_checkpoint.h"
#include <string.h>

void gt_init_checkpoint(FILE *f, const char *name, const char *split, const char *score)
{
	fprintf(f, "\n# The directory of the run. The checkpoint with the %s is kept; `gtrain eval` and `gtrain predict` use it.\n",
	        strcmp(score, "loss") ? "best accuracy" : "lowest loss");
	fprintf(f, "checkpoint = { dir = \"runs/%s\"; best = { metric = \"%s/%s\"; }; };\n", name, split, score);
}
