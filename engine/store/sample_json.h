/* The samples that a run used (datasets/used_samples.h), as a member of data.json in a checkpoint:
 *   {"split":"identity","train":{"id":"…","content":"…","label":"…"},"valid":{…},"test":{…},"past":{…}}
 * split    "identity": samples were divided by what identifies them (engine/exec/split_samples.h); "number": by their numbers, as in a
 *          checkpoint without this member.
 * changed  true if gt_used_samples.changed, else absent.
 * train …  the samples of each split; absent if it has none. Without any, there were too many to be listed.
 * id       6 bytes a sample, in base64, least significant byte first; content likewise, absent if it is that of id; label has 3 bytes,
 *          absent if all are 0. */
#ifndef GT_STORE_SAMPLE_JSON_H
#define GT_STORE_SAMPLE_JSON_H

#include "base/json.h"
#include "base/json_read.h"
#include "used_samples.h"

#define GT_SAMPLES_MAX ((int64_t)2 << 20) /* maximum number of samples that are listed: at most 40 MiB of text */

/* Appends the member `key` to an open object. */
enum gt_code gt_sample_json_put(struct gt_json *j, const char *key, const struct gt_used_samples *u, struct gt_err *err);
/* Reads it back from a parsed text, which may be hostile, and sorts the lists. v NULL: the samples were divided by their numbers. `path`
 * begins the message. The caller frees *out with gt_used_free; on failure it is empty. GT_EDATA: v does not have this form. */
enum gt_code gt_sample_json_get(const struct gt_json_value *v, const char *path, struct gt_used_samples *out, struct gt_err *err);

#endif
