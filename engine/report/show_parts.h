/* The parts of gt_show (gtrain_show.h) that its files share.
 *
 *     show_batch.c     opens the data and a loader, and takes the batches
 *     show_draw.c      chooses the samples of a split that is evaluated
 *     show_fields.c    targets, numbers, codes and tokens of a batch as words
 *     show_plain.c     the same samples as they are in the data
 *     show_mosaic.c    the images with captions as one PNG image */
#ifndef GT_REPORT_SHOW_PARTS_H
#define GT_REPORT_SHOW_PARTS_H

#include "gtrain_show.h"
#include "session/session_data.h"

struct gt_show_job {
	const struct gt_show_spec *spec;
	struct gt_session *s;
	const struct gt_dataset *data; /* the dataset that contains the shown samples */
	struct gt_shown *out;
	struct gt_arena *a;            /* out->arena */
	const char **value_name;       /* [nvalue_names] names of the columns of the input "values"; NULL: not set */
	int nvalue_names;
	struct gt_dataset raw;         /* --plain, for a table: the table as it was read; else empty */
	struct gt_skipped *raw_skipped;
};

/* Reduces the view of a split that has samples to spec->samples of them, or to all if it has fewer. The samples are drawn with the seed
 * and, if the targets are classes, from each class in turn. */
enum gt_code gt_show_draw(struct gt_show_job *j, enum gt_split split, struct gt_err *err);

/* Fills in the targets of a sample in row i of a batch, as the network gets them. */
enum gt_code gt_show_targets(struct gt_show_job *j, const struct gt_batch *b, int64_t i, struct gt_shown_sample *out, struct gt_err *err);
/* Fills in the inputs of row i of a batch that are not images: values, codes, tokens. */
enum gt_code gt_show_inputs(struct gt_show_job *j, const struct gt_batch *b, int64_t i, struct gt_shown_sample *out, struct gt_err *err);

/* gt_show_plain_open opens the files that gt_show_plain reads, and gt_show_plain_close closes them, also after a failure. */
enum gt_code gt_show_plain_open(struct gt_show_job *j, struct gt_err *err);
void gt_show_plain_close(struct gt_show_job *j);
/* Fills in the image, text, cells and targets of sample out->index as they are in the data, without transforms. */
enum gt_code gt_show_plain(struct gt_show_job *j, struct gt_shown_sample *out, struct gt_err *err);

#endif
