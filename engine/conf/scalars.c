#include "conf/schema.h"

void gt_conf_each_scalar(const struct gt_conf *c, void (*fn)(void *user, const struct gt_conf_scalar *s), void *user)
{
	for (const struct gt_row *r = gt_rows; r->path; r++) {
		const void *at = (const char *)c + r->offset;
		char word[48];
		struct gt_conf_scalar s = {.path = r->path, .kind = GT_SCALAR_NUMBER};
		if (r->type == GT_T_OTHER || !gt_row_applies(gt_rows, r, c))
			continue;
		switch (r->type) {
		case GT_T_INT:
		case GT_T_AUTO:
			s.number = (double)*(const int64_t *)at;
			break;
		case GT_T_FLOAT:
			s.number = *(const double *)at;
			break;
		case GT_T_BOOL:
			s.kind = GT_SCALAR_BOOL;
			s.number = *(const bool *)at;
			break;
		case GT_T_STRING:
		case GT_T_CHOICE:
			s.kind = GT_SCALAR_TEXT;
			s.text = *(const char *const *)at;
			break;
		case GT_T_ENUM:
			s.kind = GT_SCALAR_TEXT;
			s.text = gt_values_word(r->values, *(const int *)at, word, sizeof word);
			break;
		default:
			continue; /* keys with several values are left out */
		}
		fn(user, &s);
	}
}
