/* Reads model.pretrained.map: names of tensors in a file, and their names in the model. */
#include "conf/schema.h"
#include <stdio.h>
#include <string.h>

static int count_stars(const char *s)
{
	int n = 0;
	for (; *s; s++)
		n += *s == '*';
	return n;
}

static enum gt_code read_entry(struct gt_reading *rd, const struct gt_cnode *entry, const char *shown, void *element, struct gt_err *err)
{
	struct gt_conf_rename *r = element;
	char path[128];
	r->from = r->to = "";
	GT_TRY(gt_object_read(rd, gt_rows_rename, entry, shown, r, err));
	if (gt_conf_refused(entry, "from") || gt_conf_refused(entry, "to"))
		return GT_OK;
	snprintf(path, sizeof path, "%sfrom", shown);
	if (!*r->from || count_stars(r->from) > 1)
		return gt_conf_fail(err, gt_conf_location(entry, "from"), path, "expected a name, or a pattern with a single *, got \"%.100s\"",
		                    r->from);
	snprintf(path, sizeof path, "%spart", shown);
	if (r->part.n && (r->part.n != 2 || r->part.v[1] < 2 || r->part.v[1] > GT_MAX_PARTS || r->part.v[0] >= r->part.v[1] || !*r->to))
		return gt_conf_fail(err, gt_conf_location(entry, "part"), path, "expected [i, n] with i below n and n from 2 to %d, and the name "
		                    "of a tensor of the model in the key `to`", GT_MAX_PARTS);
	snprintf(path, sizeof path, "%sto", shown);
	if (count_stars(r->to) > count_stars(r->from))
		return gt_conf_fail(err, gt_conf_location(entry, "to"), path,
		                    "expected at most as many * as in from = \"%.100s\", got \"%.100s\"", r->from, r->to);
	return GT_OK;
}

enum gt_code gt_conf_pretrained_map(struct gt_reading *rd, struct gt_err *err)
{
	const struct gt_cnode *list = gt_conf_given(rd->root, "model.pretrained.map");
	struct gt_conf_pretrained *p = &rd->conf->pretrained;
	void *map = NULL;
	if (list && list->type == GT_C_LIST && list->nkids && !*p->file && !gt_conf_refused(rd->root, "model.pretrained.file"))
		return gt_conf_fail(err, list->loc, "model.pretrained.map", "expected model.pretrained.file, because this key maps the names in "
		                    "that file, got nothing");
	GT_TRY(gt_list_read(rd, "model.pretrained.map", GT_MAX_RENAMES, sizeof *p->map, read_entry, &map, &p->nmap, err));
	p->map = map;
	return GT_OK;
}
