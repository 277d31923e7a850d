/* The members of table facts that are for output only, as JSON for an index of data. */
#include "base/arena.h"
#include "base/json_fields.h"
#include "table/table_facts.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define COLUMN(member) offsetof(struct gt_table_fact, member)

static const struct gt_json_field fields[] = {
    {"missing", GT_FIELD_WHOLE, COLUMN(missing)},
    {"given", GT_FIELD_BOOL, COLUMN(given)},
    {NULL}};
static const struct gt_json_field inferred[] = { /* absent: GT_COLUMN_AUTO, which is no word of a checkpoint */
    {"inferred", GT_FIELD_WORD, COLUMN(inferred), GT_FIELD_OPTIONAL, .words = gt_column_type_names, .nwords = GT_COLUMN_TYPE_COUNT},
    {NULL}};

void gt_table_report_put(struct gt_json *j, const char *key, const struct gt_table_facts *f)
{
	gt_json_object(j, key);
	gt_json_int(j, "rows", f->nrows);
	gt_json_array(j, "columns");
	for (int k = 0; k < f->ncolumns; k++) {
		gt_json_object(j, NULL);
		gt_json_put_fields(j, fields, &f->column[k]);
		if (f->column[k].inferred != GT_COLUMN_AUTO)
			gt_json_put_fields(j, inferred, &f->column[k]);
		if (f->column[k].why)
			gt_json_string(j, "why", f->column[k].why);
		gt_json_end(j);
	}
	gt_json_end(j);
	gt_json_end(j);
}

enum gt_code gt_table_report_get(const struct gt_json_value *v, struct gt_table_facts *f, struct gt_err *err)
{
	const struct gt_json_value *e = gt_json_first(v, "columns");
	bool good = gt_json_whole(gt_json_member(v, "rows"), &f->nrows);
	for (int k = 0; k < f->ncolumns && good; k++, e = e->next) {
		struct gt_table_fact *c = &f->column[k];
		good = e && !gt_json_get_fields(e, fields, c) && !gt_json_get_fields(e, inferred, c);
		const char *why = good ? gt_json_text(gt_json_member(e, "why")) : NULL;
		if (!why)
			continue;
		GT_NEW_STR(c->own_why, strdup(why), err);
		c->why = c->own_why;
	}
	return good && !e ? GT_OK : gt_fail(err, GT_EDATA, "the record of the table's columns is incomplete or invalid");
}
