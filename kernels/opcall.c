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

static int64_t round_up(int64_t n, int64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

int64_t gt_muon_directions_bytes(const struct gt_attr_muon *attr)
{
	bool half = attr->update.work_dtype == GT_BF16 || attr->update.work_dtype == GT_F16;
	int64_t size = half ? 2 : 4, unit = 16 / size, bytes = round_up(16 * (int64_t)attr->update.nseg, 256);
	for (int i = 0; i < attr->update.nseg; i++) {
		int64_t rows = attr->desc[i]->dim[0], cols = gt_tdesc_count(attr->desc[i]) / rows;
		/* a backend that aligns only each batch of equal matrices to 256 elements needs no more than this */
		bytes += round_up(round_up(rows, unit) * round_up(cols, unit), 256) * size;
	}
	return bytes;
}
