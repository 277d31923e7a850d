/* The source of an export: a checkpoint, its config, the facts of its data, and the graph of an evaluation in f32.
 *
 *     struct gt_export_source s = {0};
 *     enum gt_code code = gt_export_source_open(&s, "runs/demo", err);
 *     ...
 *     gt_export_source_close(&s);              also after a failure
 * */
#ifndef GT_EXPORT_EXPORT_SOURCE_H
#define GT_EXPORT_EXPORT_SOURCE_H

#include "conf/conf.h"
#include "gtrain_export.h"
#include "session/session.h"
#include "store/ckpt.h"

/* Batch size of the graph. The first dimension of each activation is a multiple of it, and symbolic in an export; others are fixed. */
#define GT_EXPORT_BATCH 2

struct gt_export_source {
	struct gt_ckpt *ckpt;
	struct gt_conf *conf;       /* precision is fp32, which every machine supports */
	int precision;              /* precision of the run, enum gt_precision */
	struct gt_session *session; /* without a device: it has the inputs of the model and the facts of the data */
	struct gt_graph *graph;     /* not fused, without a loss; sequences have the longest length */
	struct gt_arena *arena;     /* the session's */
};

/* Opens a step directory or, for a run directory, its best checkpoint (the newest if none is marked as the best). */
enum gt_code gt_export_source_open(struct gt_export_source *s, const char *ckpt, struct gt_err *err);
void gt_export_source_close(struct gt_export_source *s);

/* Returns the description of a parameter in the checkpoint: plain layout, f32 (a counter: i64). */
struct gt_tdesc gt_export_param_desc(const struct gt_export_source *s, int param);
/* Reads a parameter into memory with this description. GT_EDATA: a value is not finite. */
enum gt_code gt_export_param_read(const struct gt_export_source *s, int param, void *out, struct gt_err *err);
/* Returns the name of class i; NULL: unknown. */
const char *gt_export_class_name(const struct gt_export_source *s, int64_t i);
/* Returns the number of classes that the model distinguishes; 0: it predicts numeric targets, or the rank of its output is not 2. */
int64_t gt_export_classes(const struct gt_export_source *s);
/* Calls spec->note for each property of the run that the exported model lacks. */
void gt_export_notes(const struct gt_export_source *s, const struct gt_export_spec *spec);

#endif
