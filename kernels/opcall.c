#include "opcall.h"

const char *gt_opcode_name(enum gt_opcode code)
{
	static const char *const names[GT_OP_COUNT] = {
#define GT_X(id, name, ...) [id] = name,
		GT_OPCODES(GT_X)
#undef GT_X
#define GT_X(NAME, name, ...) [GT_OP_##NAME] = #name,
		GT_UPDATES(GT_X)
#undef GT_X
	};
	return names[code];
}

const char *gt_comm_name(const struct gt_attr_comm *c)
{
	return c->kind == GT_COMM_SEND ? "send" : c->kind == GT_COMM_RECV ? "recv" : gt_coll_name((enum gt_coll_kind)c->kind);
}

const char *gt_group_name(int group)
{
	static const char *const name[GT_GROUP_COUNT] = {"world", "data", "pipe"};
	return (unsigned)group < GT_GROUP_COUNT ? name[group] : "?";
}
