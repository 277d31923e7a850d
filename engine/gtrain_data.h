/* A part of the public interface of the engine (gtrain.h): downloads data, checks it, writes a config for it, and finds a learning rate.
 *
 *     char *text;
 *     GT_TRY(gt_init_config(&(struct gt_init_spec){.path = "photos"}, &text, err));
 *     free(text);
 */
#ifndef GT_GTRAIN_DATA_H
#define GT_GTRAIN_DATA_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_arena;
struct gt_conf;
struct gt_run_opts;

/* ---- learning-rate range test ----------------------------------------------------------------------------------------------- */
struct gt_lr_find_spec {
	double from, to; /* learning rates of the first and of the last step, 0 < from < to; between them, the rate grows exponentially */
	int steps;       /* number of steps of the whole test, at least 10 */
};
struct gt_lr_point {
	double lr, loss; /* learning rate of the step, and mean loss of its batch before the step */
	double smooth;   /* exponential moving average of the loss, with bias correction as in Adam */
};
enum gt_lr_method { GT_LR_VALLEY, GT_LR_STEEP, GT_LR_MINIMUM, GT_LR_METHODS };
struct gt_lr_suggestion {
	const char *method; /* name of the method: "valley", "steep" or "minimum/10" */
	double lr;          /* suggested learning rate; NAN: the method finds none in this curve */
};
struct gt_lr_curve {
	const char *name, *device, *precision; /* name and precision of the config; name of the device */
	int steps;                  /* number of steps of the whole test */
	struct gt_lr_point *point;
	int n;                      /* number of points: at most steps */
	const char *ended;          /* how the test ended: "range": after all steps; "rise": the smoothed loss rose above 4 times its minimum;
	                               "diverged": training diverged */
	struct gt_lr_suggestion suggestion[GT_LR_METHODS]; /* suggestions, indexed by enum gt_lr_method; GT_LR_VALLEY is recommended */
	double *group;              /* [ngroups]: learning rate of each entry of train.groups at the rate of the valley; NAN: the entry is
	                               frozen, or there is no valley */
	bool *own;                  /* [ngroups]: the entry of train.groups has its own optimizer, so its learning rate is set by a key of its
	                               own */
	int ngroups;
	bool used;                  /* checkpoint.dir contains the checkpoints of a run, so that a new run needs another directory */
	struct gt_arena *arena;
};
/* Trains a config for some steps with growing learning rates, as setup/lr_find.c describes. It uses these fields of o: device, nproc, argv,
 * link, say, init, and observe for TRAIN, WARN and PRETRAINED events. Ranks are started as by gt_run. Only rank 0 gets a result; on the
 * other ranks, and in the process that started them, *out is NULL. Creates and changes no file. */
enum gt_code gt_lr_find(struct gt_conf *c, const struct gt_run_opts *o, const struct gt_lr_find_spec *spec, struct gt_lr_curve **out,
                        struct gt_err *err);
void gt_lr_curve_free(struct gt_lr_curve *c);

/* Result of gt_check_data. */
struct gt_data_check {
	int64_t samples; /* number of samples of all splits, including unreadable samples */
	int64_t bad;     /* number of samples that cannot be read */
	int64_t cells;   /* number of table cells that are not the required number; if `skips` is true, they are missing values in rows that the
	                    run uses */
	bool files;      /* the samples are images in files */
	bool skips;      /* a run skips unreadable samples (data.on_error = "skip"); otherwise the first unreadable sample ends the run */
};
/* Reads all samples of a config: texts and tables as a run does; of image files only the headers, or with `whole` all bytes. Calls found
 * for each unreadable sample, with a reason that names it. Unreadable samples are no error: GT_OK. */
enum gt_code gt_check_data(const struct gt_conf *c, bool whole, void (*found)(void *user, const char *split, const char *why), void *user,
                           struct gt_data_check *out, struct gt_err *err);

/* Checks that the data of a config exists, without reading images. GT_ENOINPUT names the files that are missing. */
enum gt_code gt_probe_data(const struct gt_conf *c, struct gt_err *err);

/* ---- from data to a config -------------------------------------------------------------------------------------------------- */
struct gt_init_spec {
	const char *path;           /* a folder of images or texts, an archive of one, or a table */
	const char *pretrained;     /* safetensors file with the weights of a ResNet of torchvision, from which the run starts; NULL: from
	                               scratch */
	const char *const *targets; /* [ntargets]: of a CSV file, the columns to predict */
	int ntargets;
	const char *out;            /* the file to which the caller writes the config: paths of data near this file become relative to its
	                               folder; NULL: not known, and paths are absolute */
	void (*warn)(void *user, const char *text); /* receives warnings about skipped data, such as unreadable files; NULL: not called */
	void *user;
};
/* Examines data, and writes a commented config that trains on them to *text, which the caller frees. GT_ENOINPUT: there is no data that
 * gtrain can read. */
enum gt_code gt_init_config(const struct gt_init_spec *spec, char **text, struct gt_err *err);

/* Downloads a dataset, or published weights. dir: folder for the files; NULL: the user's cache. base_url: URL of a mirror; NULL: the known
 * mirrors. progress: called with the number of received bytes of a file and the file's size (0: not known); NULL: not called. GT_EUSAGE: no
 * dataset or weights have this name; the message suggests a similar name. */
enum gt_code gt_fetch(const char *name, const char *dir, const char *base_url,
                      void (*progress)(void *user, const char *file, uint64_t done, uint64_t total), void *user, struct gt_err *err);
/* Writes the path to which gt_fetch downloads this name: the directory of a dataset, or the file of weights. dir: as in gt_fetch. */
enum gt_code gt_fetch_path(const char *name, const char *dir, char *buf, size_t size, struct gt_err *err);
/* Returns name i, from 0, of the datasets and then the weights that gt_fetch can download; NULL after the last one. */
const char *gt_fetch_name(int i);

#endif
