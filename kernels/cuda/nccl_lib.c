#include "cuda/nccl_lib.h"
#include <stdlib.h>

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define LIBRARY "libnccl.so." TEXT(NCCL_MAJOR)

enum gt_code gt_nccl_load(struct gt_nccl *l, struct gt_err *err)
{
	static const char *const names[] = {
#define GT_X(name) #name,
	    GT_NCCL_FUNCTIONS(GT_X)
#undef GT_X
	};
	void **const slots[] = {
#define GT_X(name) (void **)&l->name,
	    GT_NCCL_FUNCTIONS(GT_X)
#undef GT_X
	};
	return gt_cuda_library(LIBRARY, "NCCL", names, slots, (int)(sizeof names / sizeof *names), &l->so, err);
}

enum gt_code gt_nccl_create(int world, struct gt_comm_boot *out, struct gt_err *err)
{
	static const char digits[] = "0123456789abcdef";
	struct gt_nccl l;
	ncclUniqueId id;
	*out = (struct gt_comm_boot){.fd = -1};
	if (world < 1)
		return gt_fail(err, GT_EINTERNAL, "an NCCL group needs at least one rank, got %d", world);
	GT_TRY(gt_nccl_load(&l, err));
	ncclResult_t status = l.ncclGetUniqueId(&id);
	if (status != ncclSuccess)
		return gt_fail(err, GT_EUNAVAILABLE, "NCCL cannot create the id of a group: %s", l.ncclGetErrorString(status));
	_Static_assert(sizeof out->id > 2 * sizeof id, "an id fits");
	for (size_t i = 0; i < sizeof id; i++) {
		unsigned char b = (unsigned char)id.internal[i];
		out->id[2 * i] = digits[b >> 4];
		out->id[2 * i + 1] = digits[b & 15];
	}
	return GT_OK;
}

static int parse_hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

enum gt_code gt_nccl_parse(const struct gt_comm_boot *boot, ncclUniqueId *id, struct gt_err *err)
{
	for (size_t i = 0; i < sizeof *id; i++) {
		int hi = parse_hex_digit(boot->id[2 * i]), lo = hi < 0 ? -1 : parse_hex_digit(boot->id[2 * i + 1]);
		if (lo < 0)
			return gt_fail(err, GT_EINTERNAL, "expected the id of an NCCL group");
		id->internal[i] = (char)(hi << 4 | lo);
	}
	return GT_OK;
}
