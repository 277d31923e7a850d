/* A part of the public interface of the engine (gtrain.h): evaluates a checkpoint, predicts with it, shows it, and writes its weights to a
 * file.
 *
 *     struct gt_eval_result *r;
 *     GT_TRY(gt_eval("runs/demo", NULL, "test", false, NULL, 0, &opts, &r, err));
 *     gt_eval_free(r);
 */
#ifndef GT_GTRAIN_USE_H
#define GT_GTRAIN_USE_H

#include "base/err.h"
#include "base/public.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_arena;
struct gt_conf;
struct gt_json;
struct gt_run_opts;

/* ---- use of a checkpoint ---------------------------------------------------------------------------------------------------- */
/* Scores of a model for one class, as defined by scikit-learn; a ratio whose divisor is 0 is 0. */
struct gt_class_score {
	const char *name;      /* name of the class; NULL: not known */
	int64_t support;       /* number of samples of the class */
	int64_t predicted;     /* number of samples that the model assigns to the class */
	int64_t correct;       /* number of samples of the class that the model assigns to the class */
	double precision, recall, f1; /* correct / predicted; correct / support; harmonic mean of the two */
	double auc;            /* area under the ROC curve of this class against all other classes; NAN: all samples, or none, are of this
	                          class */
};
struct gt_class_mean {
	double precision, recall, f1;
};
/* The samples of class `label` that the model assigns to another class. */
struct gt_confusion_cell {
	int32_t label, predicted;
	int64_t n;
};
#define GT_CONFUSION_CLASSES 1000 /* largest number of classes for which a report has the whole confusion matrix */
struct gt_class_report {
	int64_t classes, samples;        /* number of classes; number of samples that are not ignored */
	struct gt_class_score *score;    /* [classes] */
	struct gt_class_mean macro;      /* mean over the classes that are the label or the prediction of a sample */
	struct gt_class_mean weighted;   /* mean over the samples, each with the scores of its class */
	bool several;                    /* a sample can have several labels, or none: score[] has one entry per label, accuracy is the share
	                                    of samples whose labels are all correct, top5 is NAN, log_loss is the binary cross entropy of all
	                                    labels, auc is the mean area, and there is no confusion */
	struct gt_class_mean micro;      /* with several: the scores of all labels of all samples together */
	double accuracy, top5;           /* shares of the samples, 0 ... 1 */
	double log_loss;                 /* mean of -log(probability of the label), without label smoothing */
	double auc;                      /* two classes: the area of class 1; more: the mean over the classes that have an area */
	int64_t *matrix;                 /* [classes * classes]: number of samples by label, then by prediction; NULL: too many classes */
	struct gt_confusion_cell *confused; /* [nconfused] all pairs of a label and a different prediction that occur, most frequent first */
	int64_t nconfused;
};

/* Errors of the predictions for one target column. */
struct gt_value_score {
	const char *name;
	double mae, rmse; /* mean absolute error; root of the mean squared error */
	double r2;        /* R squared: 1 - squared error / squared deviation of the targets from their mean; NAN: fewer than 2 samples */
};
struct gt_value_report {
	int64_t values, samples;
	struct gt_value_score *score; /* [values] */
};

/* Calibration: the probabilities of the predictions, compared with the shares of correct predictions (score/calibration.h). */
#define GT_CALIBRATION_BINS 15
struct gt_calibration_bin {
	int64_t n;           /* number of predictions with a probability in this bin; all bins have the same width */
	double probability;  /* mean probability of the predictions in the bin; NAN: the bin has none */
	double right;        /* share of correct predictions in the bin, 0 ... 1; NAN: the bin has no predictions */
};
struct gt_calibration {
	struct gt_calibration_bin bin[GT_CALIBRATION_BINS];
	int64_t n;           /* number of predictions; 0: the model predicts numbers */
	double ece;          /* expected calibration error, 0 ... 1 */
};

/* A sample with a wrong or an inaccurate prediction (score/mistakes.h). */
struct gt_mistake {
	int64_t at;              /* position of the sample in the order of the evaluation, from 0 */
	const char *sample;      /* path of its file, FILE:LINE of a row, or DIRECTORY[i] of an array */
	int64_t label, predicted; /* label and predicted class; if a sample can have several labels, both are the label that is wrong; -1: the
	                             targets are numbers */
	double probability;      /* probability of the prediction (several labels: of the label); NAN: the targets are numbers */
	double right;            /* probability of the correct class; NAN with several labels or numbers */
	bool missing;            /* with several labels: the sample has the label, and the model does not predict it */
	double error;            /* numeric targets: largest absolute error of a target, in standard deviations of the target with
	                            data.normalize_target, else in its unit; other targets: the confidence in the wrong prediction */
	double *value, *wanted;  /* [nvalues] numbers: predictions and targets in the unit of the targets */
	int nvalues;
	/* What the sample is; at most one of the following. */
	const uint8_t *pixels;   /* [height * width * channels] the image after the transforms of an evaluation; NULL: none */
	int64_t width, height, channels;
	const char *text;        /* text of the sample, valid UTF-8 with at most GT_MISTAKE_TEXT bytes; NULL: the sample has no text */
	bool cut;                /* `text` has only the beginning of the sample's text, which is longer */
	const char *const *column; /* [ncolumns] names of the columns of the sample's row in its table */
	const char *const *cell; /* [ncolumns] their texts */
	int ncolumns;
	const char *why;         /* reason why the sample cannot be shown; NULL: it can be shown, or has neither image, text nor row */
};
#define GT_MISTAKE_TEXT 1200

struct gt_eval_result {
	char split[16];                  /* "train", "valid", "test"; "data": a file or folder was evaluated */
	struct gt_scores scores;
	int64_t skipped;                 /* number of image files that could not be read; scores.samples does not include them */
	double seconds;                  /* duration of the evaluation */
	int64_t step;                    /* number of optimizer steps after which the checkpoint was saved */
	int64_t classes;                 /* number of classes between which the model chooses; 0: not known */
	struct gt_class_report *report;  /* NULL: no report was requested, or the targets are columns of numbers */
	struct gt_value_report *value_report; /* the report if the targets are columns of numbers; else NULL */
	struct gt_mistake *mistake;      /* [nmistakes] the worst predictions, the worst one first; gt_run_opts.mistakes sets their number */
	int nmistakes;
	struct gt_calibration calibration; /* with gt_run_opts.mistakes */
	struct gt_arena *arena;          /* owns this struct, the report and the mistakes */
};
/* Loads the config of a checkpoint, as gt_eval selects it, with `sets` applied. The caller frees *out with gt_conf_free. */
enum gt_code gt_ckpt_conf(const char *ckpt, const char *const *sets, int nsets, struct gt_conf **out, struct gt_err *err);

/* Evaluates a checkpoint on a split, or on all samples of a file or folder. ckpt: a run directory (selects its best checkpoint, else the
 * latest) or a step-... directory.
 * data: a folder of classes, an archive, a table, a list or an IDX file of images, all of whose samples are evaluated; split is then NULL.
 * NULL: a split is evaluated.
 * split: train, valid or test; NULL: test, or valid if the data has no split test.
 * report: also make a report by class, from the outputs of all samples. It uses these fields of o: predictions, mistakes, device, nproc
 * (0: one rank, whatever the config says), argv, link, say, and observe for WARN events. Ranks are started as by gt_run, and all of them
 * call it. Only rank 0 gets a result; on the other ranks, and in the process that started them, *out is NULL. The caller frees *out with
 * gt_eval_free. */
enum gt_code gt_eval(const char *ckpt, const char *data, const char *split, bool report, const char *const *sets, int nsets,
                     const struct gt_run_opts *o, struct gt_eval_result **out, struct gt_err *err);
void gt_eval_free(struct gt_eval_result *r); /* r may be NULL */

#define GT_TOP 10 /* maximum number of classes of a prediction */
struct gt_prediction {
	const char *file;
	const char *error;  /* why the file cannot be classified; NULL: it was classified */
	int64_t index;      /* number of the image or row in the file, from 0 */
	bool scaled;        /* the image had another size than the model's input and was scaled */
	int n;              /* number of entries of top; 0: the model predicts numbers, or an output is not finite */
	struct { int label; double p; const char *name; } top[GT_TOP]; /* the most probable classes, with number, probability and name (NULL:
	                                                                  not known) */
	const float *value; /* [nvalues]: the outputs of a model whose targets are columns of numbers; top is then empty */
	const char *const *value_name; /* [nvalues]: names of the target columns */
	int nvalues;
	bool row;            /* the prediction is for a row of a table; false: for an image or a text */
	const char *text;    /* the text that was classified, if it is not from a file; else NULL */
	const char *const *column;      /* [ncolumns]: cells of the row as in the file, for the columns that gt_predict_spec.append or .keep
	                                   selects */
	const char *const *column_name; /* [ncolumns] */
	int ncolumns;
	bool several;        /* a sample can have several labels, whose probabilities are independent */
	const char *target;  /* of a row: name of the column of classes that was the target; NULL: none */
	const double *probability;     /* [nclasses]: probability of each class; NULL: value is set */
	const char *const *class_name; /* [nclasses]; an entry is NULL if the name is not known */
	int64_t nclasses;
};
struct gt_predict_spec {
	const char *ckpt;          /* a run directory (selects its best checkpoint, else the latest) or a step-... directory */
	const char *const *inputs; /* files: images, or tables for a model of tables; folders, whose images at any depth are used; "@LIST"; "-":
	                              standard input, with the rows of a table, a text on each line or a list of the paths of images */
	int ninputs;
	const char *const *lists;  /* files with one path on each line, after the inputs; "-": standard input */
	int nlists;
	const char *const *texts;  /* texts to classify, for a model of texts */
	int ntexts;
	bool append;               /* for a model of tables: add all columns of the input to the results */
	const char *const *keep;   /* [nkeep]: comma-separated names of the input columns to add to the results */
	int nkeep;
	int top;                   /* number of classes for each image or row, 1 ... GT_TOP; 0: 1. Not for a model that predicts numbers */
	const char *device;        /* device, instead of the config's; NULL: the config decides */
	void (*warn)(void *user, const char *text); /* receives warnings; NULL: warnings are dropped */
};
/* Predicts images, or the rows of tables, and calls fn for each, in order; fn returns false to end the prediction. If one of several files
 * cannot be read, fn receives its error, the other files are predicted, and the result is GT_EDATA. The error of a single file is returned
 * itself. If outputs of the model are NaN or infinite, fn receives NAN instead of them, and the result is GT_EDIVERGED. */
enum gt_code gt_predict(const struct gt_predict_spec *spec, bool (*fn)(void *user, const struct gt_prediction *p), void *user,
                        struct gt_err *err);

/* Describes a checkpoint and its contents, as an object in *j. If verify is true, recomputes and compares all digests. */
enum gt_code gt_inspect(const char *ckpt, bool verify, struct gt_json *j, struct gt_err *err);

/* Copies model.safetensors of a checkpoint to path, atomically. */
enum gt_code gt_export(const char *ckpt, const char *path, struct gt_err *err);
/* Verifies the digests of a checkpoint and passes model.safetensors to fn in pieces, in their order; fn returns false to end the copy. */
enum gt_code gt_export_pieces(const char *ckpt, bool (*fn)(void *user, const void *data, size_t n), void *user, struct gt_err *err);

#endif
