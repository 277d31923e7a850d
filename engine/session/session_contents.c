#include "session/session_contents.h"
#include "source.h"
#include "source_contents.h"
#include <stdio.h>

/* Returns why data.index = "always" has no effect on this data; "": it has one, or the data is a table, which has an index of its rows. */
static const char *explain_no_index(const struct gt_dataset *d)
{
	if (d->source && d->source->archive)
		return "there is no index of the images, because they are in an archive, whose directory is read quickly";
	return d->c && !d->encoded ? "there is no index, because the images are arrays, not files" : "";
}

void gt_session_hash_images(const struct gt_conf *c, bool hashed, struct gt_dataset *d, char *note, size_t size)
{
	bool always = c->data.index == GT_KEEP_INDEX_ALWAYS;
	bool keep = always || (c->data.index == GT_KEEP_INDEX_AUTO && d->n >= GT_CONTENTS_LARGE);
	char own[700] = "";
	if (d->source && d->mark && hashed)
		gt_source_contents(d->source, d->mark, d->n, keep, own, sizeof own);
	if (!*note)
		snprintf(note, size, "%s", *own || !always ? own : explain_no_index(d));
}
