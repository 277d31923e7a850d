/* The data of a session.
 *
 *     read_data.c         reads the splits
 *     session_learn.c     the training split of a fitted format and its facts, from an index or from its files
 *     session_samples.c   compares the samples with those of a checkpoint, and lists those of the run
 *     session_contents.c  hashes the contents of images, by which changed samples are noticed
 *     session_split.c     splits the validation samples off the training samples
 *     session_view.c      the splits as the session uses them: resident on the device, with names and facts
 *     session_inputs.c    the inputs of the model and the data fields that they read
 *     session_fetch.c     the transforms of samples, and how a loader reads samples that are not resident */
#ifndef GT_SESSION_SESSION_DATA_H
#define GT_SESSION_SESSION_DATA_H

#include "session/session.h"

/* Reads the splits in spec once for several sessions of one process, which get them as spec->data. Divides the training split by data.valid
 * and, for a fitted format, fits facts to this split or takes the facts of spec->ckpt. The caller frees *out with gt_session_free_data
 * after the sessions are closed. On failure it is empty. */
enum gt_code gt_session_read_data(const struct gt_session_spec *spec, struct gt_session_files *out, struct gt_err *err);
void gt_session_free_data(struct gt_session_files *f);
/* Adds advice to the error that says what to do if the data of a checkpoint is no longer at the path in its config. */
void gt_session_explain_moved(const struct gt_conf *c, struct gt_err *err);

/* Reads a file for prediction, with the facts learned from the training split. The samples of *out have no targets. The caller frees
 * *out. */
enum gt_code gt_session_read_inputs(const struct gt_session *s, const char *path, struct gt_dataset *out, struct gt_err *err);
/* Like gt_session_read_inputs, for one text of n bytes. name: for messages. */
enum gt_code gt_session_read_text(const struct gt_session *s, const char *name, const char *text, size_t n, struct gt_dataset *out,
                                  struct gt_err *err);

/* Reads the data of the splits in spec (with dry: only checks that it exists, unless the format is fitted) and fills s->data. */
enum gt_code gt_session_data_open(struct gt_session *s, const struct gt_session_spec *spec, struct gt_err *err);
void gt_session_data_close(struct gt_session *s);

/* Returns the number of views of each image (original, mirrored, shifted) that an evaluation averages by eval.tta. */
int gt_session_tta_views(const struct gt_conf *c);

/* Fills the attributes of the gather kernel, which assembles batches: normalisation, and the transforms of `list`, for which
 * gt_transform_in_kernel must be true. */
enum gt_code gt_session_gather_attr(const struct gt_conf *c, struct gt_transform_list list, struct gt_attr_gather *out, struct gt_err *err);

/* Fills in how a loader of the split reads and transforms samples: the attributes of the gather kernel and, if samples are fetched, the
 * read-ahead settings. train: with the transforms of training. Before gt_loader_open, the caller calls gt_session_fetch_open, which opens
 * the reader of the samples; if gt_loader_open fails, the caller calls spec->fetch.close. */
enum gt_code gt_session_fetch_spec(const struct gt_session *s, enum gt_split split, bool train, struct gt_loader_spec *spec,
                                   struct gt_err *err);
enum gt_code gt_session_fetch_open(const struct gt_session *s, enum gt_split split, bool train, struct gt_loader_spec *spec,
                                   struct gt_err *err);
/* Returns whether a loader of the session fetches samples: threads read and transform them, because they are not in memory in final
 * form. */
bool gt_session_fetches(const struct gt_session *s);
/* How the transforms of training samples are divided between the threads that read them and the gather kernel. */
struct gt_session_division {
	/* split.on = false: the transforms are not divided, and either the threads or the gather kernel make all of them */
	struct gt_recipe_split split;
	const char *threads, *device; /* names of the transforms that run in the loader's threads, and on the device, for example
	                                 "hflip, color_jitter"; NULL: not divided */
};
enum gt_code gt_session_divided(const struct gt_session *s, struct gt_arena *a, struct gt_session_division *out, struct gt_err *err);
/* Returns the maximum number of steps in a window on a GPU, if samples are fetched: 8, or less if the samples of two windows would take
 * more than 1 GiB of device memory on a rank. It is the same on all ranks. */
int gt_session_fetch_window(const struct gt_session *s);

/* Sets and checks the transforms for training and for evaluation of the data d. */
enum gt_code gt_session_set_lists(struct gt_session *s, const struct gt_dataset *d, struct gt_err *err);
/* Completes the model's inputs from the data d; d NULL: the data was not found, and the config must have all shapes. */
enum gt_code gt_session_match_inputs(struct gt_session *s, const struct gt_dataset *d, struct gt_err *err);
/* Sets which columns a loader delivers as inputs of the model. */
void gt_session_loader_inputs(const struct gt_session *s, struct gt_loader_spec *spec);
/* Returns the loss for training or evaluation. With mixed samples, training targets are class shares instead of labels. */
struct gt_loss_spec gt_session_loss(const struct gt_session *s, bool train);
/* Returns whether training samples are mixed (mixup, cutmix). */
bool gt_session_mixes(const struct gt_session *s);

/* Sets the transforms for evaluation and prediction: eval.transforms or, if the config has none and `files` is true, the default for
 * encoded files. */
enum gt_code gt_session_set_eval_list(struct gt_session *s, bool files, struct gt_err *err);
/* Returns the facts about a dataset that a checkpoint stores. They point into d. */
struct gt_data_facts gt_session_facts_of(const struct gt_dataset *d);
/* Returns the name of a class: from the data or the checkpoint, else from a known dataset; NULL: no name. */
const char *gt_session_class_name(const struct gt_session *s, int64_t label);

/* On rank 0, calls fn with the reason for each sample that a rank could not read since the last call (data.on_error = "skip"), and for each
 * skipped text or row. fn is called once for all table rows with the same reason; `each`, if not NULL, is called for every row. All ranks
 * call it together. */
enum gt_code gt_session_skipped(struct gt_session *s, void (*fn)(void *user, const char *why), void (*each)(void *user, const char *why),
                                void *user, struct gt_err *err);

/* Returns whether the splits may count image files that cannot be read: such files are found and skipped only when they are decoded. */
bool gt_session_skips_files(const struct gt_session *s);

/* Opens a loader of a split, as a run uses it: batches of `batch` samples over all ranks, in micro-batches of `micro`; train: with the
 * transforms and the order of training. Only for a session with samples_only; its images are f32 without padded channels. The caller closes
 * *out before the session. */
enum gt_code gt_session_loader_open(const struct gt_session *s, enum gt_split split, int64_t batch, int64_t micro, bool train,
                                    struct gt_loader **out, struct gt_err *err);
/* Returns how the data of a config is read, without facts of fitted formats. */
struct gt_dataset_spec gt_session_dataset_spec(const struct gt_conf *c);

/* Calls fn with the pixels (h*w*c bytes) of n samples of a split from position `first` on, in its order, transformed as for evaluation. */
enum gt_code gt_session_each_sample(const struct gt_session *s, enum gt_split split, int64_t first, int64_t n,
                                    void (*fn)(void *user, const uint8_t *pixels), void *user, struct gt_err *err);

#endif
