/* Reads data.columns, and determines the kind of the targets. */
#include "conf/schema.h"
#include "formats.h"
#include <stdio.h>
#include <string.h>

static enum gt_code read_column(struct gt_reading *rd, const struct gt_cnode *entry, const char *shown, void *element, struct gt_err *err)
{
	struct gt_column_spec *column = element;
	column->name = "";
	return gt_object_read(rd, gt_rows_column, entry, shown, column, err);
}

/* Determines the kind of the targets from the keys of the targets and, for tables, from the loss. */
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
	const struct gt_cnode *loss = gt_conf_given(rd->root, "train.loss");
	void *columns = NULL;
	bool known = !loss || !loss->bad; /* false: train.loss has an error, which would cause further errors about the targets */
	d->targets = targets_of(rd->conf);
	if (gt_format_content(d->format) != GT_CONTENT_TABLE)
		return GT_OK;
	if (strlen(d->delimiter) > 1)
		GT_REFUSE_KEY(rd, "data.delimiter", "expected one character, got \"%.40s\"", d->delimiter);
	if (strcmp(d->decimal, ".") && strcmp(d->decimal, ","))
		GT_REFUSE_KEY(rd, "data.decimal", "expected \".\" or \",\", got \"%.40s\"", d->decimal);
	if (*d->thousands && (d->thousands[1] || !strchr(",. '", *d->thousands)))
		GT_REFUSE_KEY(rd, "data.thousands", "expected \"\", \",\", \".\", \" \" or \"'\", got \"%.40s\"", d->thousands);
	else if (*d->thousands && !strcmp(d->thousands, d->decimal))
		GT_REFUSE_KEY(rd, "data.thousands", "expected a character that differs from data.decimal, got \"%s\" for both keys; write %s",
		              d->thousands, *d->decimal == ',' ? "thousands = \".\"" : "decimal = \",\"");
	if (known && d->normalize_target && d->targets != GT_TARGETS_NUMBERS)
		GT_REFUSE_KEY(rd, "data.normalize_target", "cannot be combined with train.loss = \"%s\", whose targets are %s; remove this key",
		              rd->conf->train.loss, d->targets == GT_TARGETS_CLASS ? "classes" : "labels");
	if (known && d->stratify && d->targets != GT_TARGETS_CLASS)
		GT_REFUSE_KEY(rd, "data.stratify", "cannot be combined with train.loss = \"%s\", whose targets are values, not classes; remove "
		              "this key", rd->conf->train.loss);
	GT_TRY(gt_list_read(rd, "data.columns", 0, sizeof *d->columns, read_column, &columns, &d->ncolumns, err));
	d->columns = columns;
	return GT_OK;
}
