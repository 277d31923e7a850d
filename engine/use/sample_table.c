#include "use/sample_table.h"
#include "base/fileio.h"
#include "base/memstream.h"
#include "ew.h"
#include "ir/op.h"
#include "losses.h"
#include "session/session_data.h"
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A row in memory: the index of its sample in the dataset, and its bytes. */
struct sorted_row {
	int64_t sample;
	size_t start, end;
};

struct gt_sample_table {
	const struct gt_session *s;
	enum gt_split split;
	const char *path;
	char temporary[GT_PATH_SIZE];
	FILE *f;             /* the temporary file or, with sorted sequences, the rows in memory; NULL: closed */
	FILE *file;          /* with sorted sequences: the temporary file, to which write_sorted() writes the rows */
	struct gt_memstream memory;
	struct sorted_row *row; /* with sorted sequences: [samples of the split]; else NULL */
	bool renamed;
	int64_t n;           /* number of samples so far */
	int64_t *order;      /* index in the dataset of each sample, in the order of the evaluation */
	double *probability; /* [outputs of the model] */
};

/* If the order of the evaluation is not the order of the split, collects the rows in memory, to write them in the order of the split. */
static enum gt_code collect_rows(struct gt_sample_table *t, int64_t n, struct gt_err *err)
{
	int64_t i = 1;
	while (i < n && t->order[i] > t->order[i - 1])
		i++;
	if (i >= n)
		return GT_OK;
	GT_CALLOC(t->row, n, err);
	t->file = t->f;
	t->f = gt_memstream_open(&t->memory);
	return t->f ? GT_OK : gt_fail_memory(err, sizeof *t->f);
}

enum gt_code gt_sample_table_open(const struct gt_session *s, enum gt_split split, const char *path, struct gt_sample_table **out,
                                  struct gt_err *err)
{
	int fd;
	struct gt_sample_table *t = *out = calloc(1, sizeof *t);
	if (!t)
		return gt_fail_memory(err, sizeof *t);
	t->s = s;
	t->split = split;
	t->path = path;
	enum gt_code code = gt_session_eval_order(s, split, &t->order, err);
	if (code == GT_OK)
		code = gt_file_create_temporary(t->temporary, path, 0666, &fd, err);
	if (code == GT_OK && !(t->f = fdopen(fd, "w"))) {
		close(fd);
		code = gt_fail_memory(err, sizeof *t->f);
	}
	if (code == GT_OK)
		code = collect_rows(t, s->data.view[split].n, err);
	if (code == GT_OK)
		return GT_OK;
	gt_sample_table_close(t);
	*out = NULL;
	return code;
}

void gt_sample_table_close(struct gt_sample_table *t)
{
	if (!t)
		return;
	if (t->f)
		fclose(t->f);
	if (t->file)
		fclose(t->file);
	free(t->memory.text);
	free(t->row);
	if (!t->renamed)
		unlink(t->temporary);
	free(t->probability);
	free(t->order);
	free(t);
}

/* ---- loss ------------------------------------------------------------------------------------------------------------------------ */
/* Returns the target of output i. */
static double target_of(int64_t i, int32_t label, const float *target)
{
	return target ? (double)target[i] : i == label;
}

static double cross_entropy(const struct gt_attr_loss *a, const float *z, int64_t n, int32_t label, const float *target)
{
	double max = -INFINITY, sum = 0, loss = 0;
	for (int64_t i = 0; i < n; i++)
		max = (double)z[i] > max ? (double)z[i] : max;
	for (int64_t i = 0; i < n; i++)
		sum += exp((double)z[i] - max);
	for (int64_t i = 0; i < n; i++) {
		double share = gt_ce_share_f64(target_of(i, label, target), a->nweights ? a->weights[i] : 1, (double)n, a->number[0]);
		loss += share == 0 ? 0 : share * (log(sum) - ((double)z[i] - max)); /* 0 times an infinite logarithm is 0 */
	}
	return loss;
}

/* Returns the loss of one sample from the n outputs z, computed in double with the formulas of the kernels (kernels/ew.inc). The loss
 * includes the weight of the sample's class, as in PyTorch with reduction="none". The sum over a split, divided by the number of counted
 * samples, or by the sum of the weights of their classes, is the loss that an evaluation reports, except for rounding of the kernels.
 * target: [n] numeric targets; NULL: the target is label. Returns NAN if the label is ignored. */
static double sample_loss(const struct gt_loss_spec *loss, const float *z, int64_t n, int32_t label, const float *target)
{
	const struct gt_attr_loss *a = &loss->attr;
	const double n0 = a->number[0], n1 = a->number[1];
	double sum = 0;
	(void)n0, (void)n1;
	if (!target && gt_loss_ignores(loss) && label == a->ignore_index)
		return NAN;
	if (loss->op->code == GT_OP_CROSS_ENTROPY)
		return cross_entropy(a, z, n, label, target);
	if (loss->op->code == GT_OP_NLL)
		return -(a->nweights ? a->weights[label] : 1) * (double)z[label];
	for (int64_t i = 0; i < n; i++) { /* every loss that is not handled above is a mean or a sum over the outputs */
		double v = z[i], t = target_of(i, label, target), w = a->nweights ? a->weights[i] : 1;
		(void)w;
		switch ((int)loss->op->code) {
#define GT_X(CODE, name, is_sum, ...)                                                                                                      \
	case GT_OP_##CODE:                                                                                                                     \
		sum += gt_##name##_loss_f64(v, t __VA_ARGS__);                                                                                     \
		break;
			GT_LOSS_POINTWISE(GT_X)
#undef GT_X
		}
	}
	return gt_loss_row(loss->op->code)->kind == GT_LOSS_SUM ? sum : sum / (double)n;
}

/* ---- cells ----------------------------------------------------------------------------------------------------------------------- */
static void put_cell(FILE *f, const char *prefix, const char *text)
{
	if (!prefix[strcspn(prefix, ",\"\r\n")] && !text[strcspn(text, ",\"\r\n")]) {
		fprintf(f, "%s%s", prefix, text);
		return;
	}
	fprintf(f, "\"%s", prefix);
	for (const char *p = text; *p; p++)
		fputs(*p == '"' ? "\"\"" : (char[]){*p, 0}, f);
	fputc('"', f);
}

/* Writes the name of output i: the name of a target column or of a class, or the index of a class without a name. */
static void put_name(const struct gt_sample_table *t, const char *prefix, int64_t i)
{
	char number[24];
	const char *name = i < t->s->data.nvalues ? t->s->data.value_name[i] : gt_session_class_name(t->s, i);
	snprintf(number, sizeof number, "%" PRId64, i);
	put_cell(t->f, prefix, name ? name : number);
}

static void put_names(const struct gt_sample_table *t, const char *prefix, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		fputc(',', t->f);
		put_name(t, prefix, i);
	}
}

/* Writes the header. Each numeric target has a column. */
static void put_header(const struct gt_sample_table *t, int64_t n, bool numbers)
{
	fputs("path", t->f);
	if (gt_session_predicts_numbers(t->s)) {
		put_names(t, "", n);
		put_names(t, "predicted_", n);
	} else {
		if (numbers)
			put_names(t, "label_", n);
		else
			fputs(",label", t->f);
		if (gt_session_has_classes(t->s))
			fputs(",prediction", t->f);
		else
			put_names(t, "prediction_", n);
		put_names(t, "probability_", n);
	}
	fputs(",loss\n", t->f);
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------------ */
static void put_numbers(const struct gt_sample_table *t, const float *v, int64_t n, bool scaled)
{
	for (int64_t i = 0; i < n; i++) {
		struct gt_value_scale by = scaled ? t->s->data.value_scale[i] : (struct gt_value_scale){0, 1};
		fprintf(t->f, ",%.9g", (double)(float)((double)v[i] * by.std + by.mean));
	}
}

/* Writes the predicted class, or whether each label is predicted, and the probabilities, as gt_predict defines them. */
static void put_prediction(const struct gt_sample_table *t, const float *z, int64_t n)
{
	int64_t best = 0;
	double sum = 0;
	bool labels = gt_loss_row(t->s->loss.op->code)->output == GT_OUTPUT_LABELS;
	for (int64_t i = 1; i < n; i++)
		best = z[i] > z[best] ? i : best;
	for (int64_t i = 0; i < n; i++)
		sum += exp((double)z[i] - (double)z[best]);
	for (int64_t i = 0; i < n; i++)
		t->probability[i] = labels ? 1 / (1 + exp(-(double)z[i])) : exp((double)z[i] - (double)z[best]) / sum;
	if (gt_session_has_classes(t->s)) {
		fputc(',', t->f);
		put_name(t, "", best);
	}
	for (int64_t i = 0; i < n && !gt_session_has_classes(t->s); i++)
		fprintf(t->f, ",%d", z[i] > 0);
	for (int64_t i = 0; i < n; i++)
		fprintf(t->f, ",%.9g", t->probability[i]);
}

/* Returns whether sample i could not be read, on any rank: its label is the ignored label (exec/loader.h). */
static bool is_absent(const struct gt_sample_table *t, const struct gt_dataset *d, int64_t i, int32_t label)
{
	return d->encoded && d->labels && gt_loss_ignores(&t->s->loss) && label == t->s->loss.attr.ignore_index && d->labels[i] != label;
}

static void put_row(struct gt_sample_table *t, const float *z, int64_t n, int32_t label, const float *target)
{
	const struct gt_view *v = &t->s->data.view[t->split];
	char name[GT_PATH_SIZE + 32];
	int64_t sample = t->order[t->n];
	t->n++;
	if (!target && is_absent(t, v->data, sample, label))
		return;
	double loss = sample_loss(&t->s->loss, z, n, label, target);
	put_cell(t->f, "", gt_dataset_sample_name(v->data, sample, name, sizeof name));
	if (gt_session_predicts_numbers(t->s)) {
		put_numbers(t, target, n, true);
		put_numbers(t, z, n, true);
	} else if (target) {
		put_numbers(t, target, n, false);
		put_prediction(t, z, n);
	} else {
		fputc(',', t->f);
		put_name(t, "", label);
		put_prediction(t, z, n);
	}
	fputc(',', t->f);
	if (!isnan(loss) || target || !gt_loss_ignores(&t->s->loss) || label != t->s->loss.attr.ignore_index)
		fprintf(t->f, "%.9g", loss);
	fputc('\n', t->f);
}

static enum gt_code check_written(const struct gt_sample_table *t, struct gt_err *err)
{
	return ferror(t->f) ? gt_fail_errno(err, GT_EIO, errno, "%s: cannot write", t->path) : GT_OK;
}

enum gt_code gt_sample_table_add(struct gt_sample_table *t, const struct gt_output_rows *rows, struct gt_err *err)
{
	int64_t n = rows->classes;
	if (!t->probability) {
		if (!(t->probability = malloc((size_t)n * sizeof *t->probability)))
			return gt_fail_memory(err, (size_t)n * sizeof *t->probability);
		put_header(t, n, rows->target != NULL);
	}
	for (int64_t i = 0; i < rows->n; i++) {
		struct sorted_row *r = t->row ? &t->row[t->n] : NULL;
		if (r && !fflush(t->f))
			*r = (struct sorted_row){t->order[t->n], t->memory.len, 0};
		put_row(t, rows->z + i * n, n, rows->label ? rows->label[i] : -1, rows->target ? rows->target + i * n : NULL);
		if (r && !fflush(t->f))
			r->end = t->memory.len;
	}
	return check_written(t, err);
}

static int compare_samples(const void *a, const void *b)
{
	const struct sorted_row *x = a, *y = b;
	return (x->sample > y->sample) - (x->sample < y->sample);
}

/* Writes the rows in memory to the file, in the order of the split. */
static enum gt_code write_sorted(struct gt_sample_table *t, struct gt_err *err)
{
	if (fflush(t->f) || t->memory.lost)
		return gt_fail_memory(err, t->memory.len);
	fwrite(t->memory.text, 1, t->n ? t->row[0].start : t->memory.len, t->file); /* the header */
	qsort(t->row, (size_t)t->n, sizeof *t->row, compare_samples);
	for (int64_t i = 0; i < t->n; i++)
		fwrite(t->memory.text + t->row[i].start, 1, t->row[i].end - t->row[i].start, t->file);
	fclose(t->f);
	t->f = t->file;
	t->file = NULL;
	return GT_OK;
}

enum gt_code gt_sample_table_finish(struct gt_sample_table *t, struct gt_err *err)
{
	if (t->file)
		GT_TRY(write_sorted(t, err));
	errno = 0;
	if (fflush(t->f))
		return check_written(t, err);
	int fd = dup(fileno(t->f));
	if (fd < 0)
		return gt_fail_errno(err, GT_EFAIL, errno, "%s: cannot write", t->path);
	fclose(t->f);
	t->f = NULL;
	GT_TRY(gt_file_sync_close(fd, t->path, err));
	GT_TRY(gt_file_rename(t->temporary, t->path, err));
	t->renamed = true;
	return GT_OK;
}
