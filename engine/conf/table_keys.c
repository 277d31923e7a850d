/* Reads data.columns, and finds out what the targets of samples are. */
#include "conf/schema.h"
#include "formats.h"
#include <stdio.h>
#include <string.h>

static enum gt_code read_columns(struct gt_reading *rd, const struct gt_cnode *list, struct gt_err *err)
{
	struct gt_column_spec *column;
	char shown[64], got[64];
	if (list->type != GT_C_LIST)
		return gt_conf_fail(err, list->loc, "data.columns", "expected a list ( ) of groups, got %s", gt_cnode_text(list, got, sizeof got));
	GT_NEW(column, rd->arena, list->nkids + 1, err);
	for (int i = 0; i < list->nkids; i++) {
		snprintf(shown, sizeof shown, "data.columns[%d]", i);
		if (list->kid[i]->type != GT_C_GROUP)
			return gt_conf_fail(err, list->kid[i]->loc, shown, "expected a group { }, got %s",
			                    gt_cnode_text(list->kid[i], got, sizeof got));
		strcat(shown, ".");
		column[i].name = "";
		GT_TRY(gt_object_read(rd, gt_rows_column, list->kid[i], shown, &column[i], err));
	}
	rd->conf->data.columns = column;
	rd->conf->data.ncolumns = list->nkids;
	return GT_OK;
}

/* What the targets are follows from the keys that name them, and of tables from the loss. */
static enum gt_targets targets_of(const struct gt_conf *c)
{
	const struct gt_conf_data *d = &c->data;
	const struct gt_loss_row *loss = gt_loss_find(c->train.loss);
	if (gt_format_content(d->format) == GT_CONTENT_TABLE)
		return loss && gt_loss_has_classes(loss)              ? GT_TARGETS_CLASS
		       : loss && loss->output == GT_OUTPUT_LABELS ? GT_TARGETS_LABELS
		                                                   : GT_TARGETS_NUMBERS;
	return d->target_columns.n ? GT_TARGETS_NUMBERS : *d->label_separator ? GT_TARGETS_LABELS : GT_TARGETS_CLASS;
}

enum gt_code gt_conf_table(struct gt_reading *rd, struct gt_err *err)
{
	struct gt_conf_data *d = &rd->conf->data;
	const struct gt_cnode *list = gt_conf_given(rd->root, "data.columns"), *loss = gt_conf_given(rd->root, "train.loss");
	bool known = !loss || !loss->bad; /* otherwise an error about the loss is reported, from which others would only follow */
	d->targets = targets_of(rd->conf);
	if (gt_format_content(d->format) != GT_CONTENT_TABLE)
		return GT_OK;
	if (strlen(d->delimiter) > 1)
		GT_COLLECT(rd, err, gt_conf_fail(err, gt_conf_location(rd->root, "data.delimiter"), "data.delimiter",
		                                 "expected one character, got \"%.40s\"", d->delimiter));
	if (strcmp(d->decimal, ".") && strcmp(d->decimal, ","))
		GT_COLLECT(rd, err, gt_conf_fail(err, gt_conf_location(rd->root, "data.decimal"), "data.decimal",
		                                 "expected \".\" or \",\", got \"%.40s\"", d->decimal));
	if (*d->thousands && (d->thousands[1] || !strchr(",. '", *d->thousands)))
		GT_COLLECT(rd, err, gt_conf_fail(err, gt_conf_location(rd->root, "data.thousands"), "data.thousands",
		                                 "expected \"\", \",\", \".\", \" \" or \"'\", got \"%.40s\"", d->thousands));
	else if (*d->thousands && !strcmp(d->thousands, d->decimal))
		GT_COLLECT(rd, err, gt_conf_fail(err, gt_conf_location(rd->root, "data.thousands"), "data.thousands",
		                                 "expected another character than data.decimal, got \"%s\" for both; write %s", d->thousands,
		                                 *d->decimal == ',' ? "thousands = \".\"" : "decimal = \",\""));
	if (known && d->normalize_target && d->targets != GT_TARGETS_NUMBERS)
		GT_COLLECT(rd, err, gt_conf_fail(err, gt_conf_location(rd->root, "data.normalize_target"), "data.normalize_target",
		                                 "does not go together with train.loss = \"%s\", whose targets are %s; remove it",
		                                 rd->conf->train.loss, d->targets == GT_TARGETS_CLASS ? "classes" : "labels"));
	if (known && d->stratify && d->targets != GT_TARGETS_CLASS)
		GT_COLLECT(rd, err, gt_conf_fail(err, gt_conf_location(rd->root, "data.stratify"), "data.stratify",
		                                 "does not go together with train.loss = \"%s\", for which a target is a number and no class; "
		                                 "remove it", rd->conf->train.loss));
	return list && !(list->type == GT_C_ARRAY && !list->nkids) ? read_columns(rd, list, err) : GT_OK;
}
