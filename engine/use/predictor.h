/* Inside gt_predict: runs batches of inputs through the model, and returns results in the order of the inputs.
 *
 *     GT_TRY(gt_predictor_open(p, err));                               p->s, ckpt, top, fn and user are set
 *     gt_predictor_add_image(p, file, 0, false, pixels, err);
 *     gt_predictor_add_row(p, file, i, NULL, &table, i, err);
 *     gt_predictor_add_error(p, file, "why", err);
 *     gt_predictor_flush(p, err);                                       the last batch
 *     gt_predictor_close(p);
 *
 * A batch is filled across files. The result of an input does not depend on its batch: all batches of a prediction have the same size
 * (gt_session_programs.predict_batch). */
#ifndef GT_USE_PREDICTOR_H
#define GT_USE_PREDICTOR_H

#include "gtrain_use.h"
#include "session/session.h"
#include "use/input_files.h"

#define GT_PREDICT_BATCH 64         /* maximum number of samples of a batch */
#define GT_PREDICT_PENDING 1024 /* maximum number of results that wait for their batch, including errors of files */

/* A result that waits until its batch is complete, so that results have the order of the inputs. */
struct gt_predict_pending {
	const char *file;
	int64_t index; /* index of the image or row in the file */
	bool scaled;
	int row;       /* row of the batch */
	char *text;    /* the text itself; malloc'ed; NULL: the input is in a file */
	char *error;   /* why the file cannot be used; malloc'ed; NULL: no error */
};

/* Fills batches, runs them through the graph, and passes the results to fn. */
struct gt_predictor {
	struct gt_session *s;
	const struct gt_ckpt *ckpt;
	int64_t classes;          /* number of outputs of the model */
	int top;
	bool (*fn)(void *user, const struct gt_prediction *p);
	void (*warn)(void *user, const char *text); /* gt_predict_spec.warn */
	void *user;
	bool ended;               /* fn has asked for no further results */
	struct gt_table_rows *rows_of_files; /* reader of the input columns for the results; NULL: results have no input columns */
	struct gt_dataset batch;  /* the images or fields of one batch */
	struct gt_resident at;    /* the batch on the device */
	struct gt_view view;      /* view of the whole batch; the loader keeps a pointer to it */
	struct gt_loader *loader; /* reads the batch */
	struct gt_predict_pending pending[GT_PREDICT_PENDING];
	int npending, rows;       /* rows: number of filled rows of the batch */
	float *logits;
	void *raw;                /* the outputs in the compute dtype */
	double *probability;      /* [classes] of one result */
	float *value;             /* [classes] predicted values of one result */
	const char **class_name;  /* [classes]; NULL: not known */
	int64_t nonfinite;        /* number of results with an output that is NaN or infinite */
	char why[2048];           /* describes the first such result and the operation; "": none */
};

enum gt_code gt_predictor_open(struct gt_predictor *p, struct gt_err *err);
void gt_predictor_close(struct gt_predictor *p); /* also after a failed open */
enum gt_code gt_predictor_add_image(struct gt_predictor *p, const char *file, int64_t index, bool scaled, const uint8_t *pixels,
                                    struct gt_err *err);
/* Adds row i of d, which has the fields of the training data. index: position in the file. text: the text, if the row is a text; else
 * NULL. */
enum gt_code gt_predictor_add_row(struct gt_predictor *p, const char *file, int64_t index, const char *text, const struct gt_dataset *d,
                                  int64_t i, struct gt_err *err);
enum gt_code gt_predictor_add_error(struct gt_predictor *p, const char *file, const char *why, struct gt_err *err);
enum gt_code gt_predictor_flush(struct gt_predictor *p, struct gt_err *err);

/* predict_table.c: predicts the rows of the files in `in`. Sets *failed and *all to the number of unusable, and of all, files or lines of
 * text. */
enum gt_code gt_predict_tables(struct gt_predictor *p, const struct gt_inputs *in, int64_t *failed, int64_t *all, struct gt_err *err);

#endif
