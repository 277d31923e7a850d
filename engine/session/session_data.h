/* The data of a session: read, split, made resident. */
#ifndef GT_SESSION_SESSION_DATA_H
#define GT_SESSION_SESSION_DATA_H

#include "session/session.h"

/* The data of several sessions of one process, read once: out is theirs as spec->data until the caller frees it with gt_dataset_free. */
enum gt_code gt_session_read(const struct gt_session_spec *spec, struct gt_dataset out[2], struct gt_err *err);

/* Reads (dry: probes) what the spec's splits need and fills view[]; both files of splits at once on two threads. */
enum gt_code gt_session_data(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err);
void gt_session_data_close(struct gt_session *s);

/* Views of each sample that an evaluation averages: eval.tta. */
int gt_session_views(const struct gt_conf *c);

/* The gather kernel's attributes: normalisation, and augmentation where training. */
enum gt_code gt_session_gather(const struct gt_conf *c, bool augment, struct gt_attr_gather *out, struct gt_err *err);

#endif
