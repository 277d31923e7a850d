/* The data of a session: reads the dataset, splits it and makes it resident on the device. */
#ifndef GT_SESSION_SESSION_DATA_H
#define GT_SESSION_SESSION_DATA_H

#include "session/session.h"

/* Reads the data once for several sessions of one process, which take it as spec->data. The caller frees it with gt_dataset_free after the
 * sessions are closed. */
enum gt_code gt_session_read_data(const struct gt_session_spec *spec, struct gt_dataset out[2], struct gt_err *err);

/* Reads the data of the splits in spec (with dry: only looks for it) and fills s->data. Two threads read training and test data at the
 * same time. */
enum gt_code gt_session_data_open(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err);
void gt_session_data_close(struct gt_session *s);

/* Returns how many variants of each image (original, mirrored, shifted) an evaluation averages, as the config key eval.tta requests. */
int gt_session_tta_views(const struct gt_conf *c);

/* Fills the attributes of the gather kernel, which assembles batches: normalisation and, if augment is set, the config's augmentation. */
enum gt_code gt_session_gather_attr(const struct gt_conf *c, bool augment, struct gt_attr_gather *out, struct gt_err *err);

#endif
