/* One entry of the list of tensors that the readers of safetensors files and of files of torch.save make. */
#ifndef GT_STORE_ST_SLOT_H
#define GT_STORE_ST_SLOT_H

#include "base/types.h"

#define GT_ST_TENSORS_MAX 400000 /* gtrain's maximum number of tensors, which limits the memory for an untrusted header */

struct gt_st_slot {
	const char *name;
	struct gt_tdesc desc;
	uint64_t begin, end; /* the tensor's bytes [begin, end), from the end of the header; in a file of torch.save, from its beginning */
};

#endif
