/* TensorBoard event files. A file is a sequence of TFRecords, each
 *   u64le length | u32le masked CRC32C of those 8 bytes | data | u32le masked CRC32C of data
 * whose data is an Event protobuf (tensorflow/core/util/event.proto): wall_time = 1 (double), step = 2 (int64), file_version = 3,
 * summary = 5, session_log = 7. The first event is file_version "brain.Event:2". A resumed run then writes SessionLog START at the
 * first step that it will do, so that TensorBoard drops older events of this and of later steps. */
#ifndef GT_TRAIN_TENSORBOARD_H
#define GT_TRAIN_TENSORBOARD_H

#include "conf/conf.h"
#include "gtrain.h"
#include "image/thumbnail.h"

struct gt_tensorboard;

/* Creates <dir>/events.out.tfevents.<seconds>.<host>.<pid>. resume_step >= 0: the run continues after that step. next: *next of
 * gt_ckpt_dir_continue(). The functions below accept t = NULL. A failed write does not end the training (train/logfile.h). */
enum gt_code gt_tensorboard_open(const char *dir, int64_t resume_step, int64_t next, struct gt_tensorboard **out, struct gt_err *err);
void gt_tensorboard_sync(struct gt_tensorboard *t);
const char *gt_tensorboard_error(struct gt_tensorboard *t);
enum gt_code gt_tensorboard_close(struct gt_tensorboard *t, struct gt_err *err);

/* Writes the scalar keys of the config as hyper-parameters for the HPARAMS tab (tensorboard/plugins/hparams/plugin_data.proto). */
enum gt_code gt_tensorboard_hparams(struct gt_tensorboard *t, const struct gt_conf *c, struct gt_err *err);

/* Writes the scalars of an event. TRAIN: train/loss, train/acc, train/lr, train/samples_per_s. EPOCH: train_epoch/loss, acc, top5. EVAL:
 * <split>/loss, acc, top5. END of a complete run marks the session as successful for the HPARAMS tab, END after an error as failed. Other
 * events write nothing. */
void gt_tensorboard_write(struct gt_tensorboard *t, const struct gt_event *ev);

#define GT_HISTOGRAM_BUCKETS 30
/* Counts of values in buckets of equal width from min to max (tensorflow/core/framework/summary.proto, HistogramProto). */
struct gt_histogram {
	double min, max, sum, sum_squares;
	int64_t n, count[GT_HISTOGRAM_BUCKETS];
};
void gt_tensorboard_histogram(struct gt_tensorboard *t, const char *tag, int64_t step, const struct gt_histogram *h);

/* Writes an image, a PNG file, and a text in Markdown. t is not NULL. */
enum gt_code gt_tensorboard_image(struct gt_tensorboard *t, const char *tag, int64_t step, const struct gt_thumbnail *x, int channels,
                                  struct gt_err *err);
enum gt_code gt_tensorboard_text(struct gt_tensorboard *t, const char *tag, int64_t step, const char *text, struct gt_err *err);

uint32_t gt_crc32c(const void *data, size_t n);

#endif
