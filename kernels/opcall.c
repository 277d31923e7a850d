#include "opcall.h"

const char *gt_opcode_name(enum gt_opcode code)
{
	static const char *const names[GT_OP_COUNT] = {
#define GT_X(id, name) [id] = name,
		GT_OPCODES(GT_X)
#undef GT_X
	};
	return names[code];
}
