#include "train/mistake_images.h"
#include "base/memstream.h"
#include "conf/conf.h"
#include "ir/op.h"
#include "score/measured_eval.h"
#include "score/mistakes.h"
#include "session/session_data.h"
#include "train/sample_content.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SIDE 256       /* maximum width and height of an image in pixels */
#define MOST_NUMBERS 8 /* maximum number of targets of a sample that the list shows */

static enum gt_split choose_split(const struct gt_session *s)
{
	return s->prog.eval[GT_VALID].nfull ? GT_VALID : GT_TEST;
}

static bool has_images(const struct gt_dataset *d)
{
	return d && d->c > 0 && !d->text_files && !d->row_lines;
}

/* Returns whether the loss allows a prediction to be compared with the target: with one label for each sample, the prediction is the
 * class with the largest output, which a loss over independent labels does not define. */
static bool compares_outputs(const struct gt_session *s)
{
	return s->loss.dense || gt_loss_row(s->loss.op->code)->output != GT_OUTPUT_LABELS;
}

enum gt_code gt_mistake_images_check(const struct gt_session *s, struct gt_err *err)
{
	const struct gt_conf *c = s->conf;
	enum gt_split split = choose_split(s);
	if (!c->log.images)
		return GT_OK;
	const char *why = !s->prog.eval[split].nfull                         ? "there is no split valid or test"
	                  : !has_images(s->data.view[split].data)            ? "the samples are no images"
	                  : c->model.input[0] != 1 && c->model.input[0] != 3 ? "the images have neither 1 nor 3 channels"
	                  : !compares_outputs(s)                             ? "the loss does not compare the outputs with the labels"
	                                                                     : NULL;
	return why ? gt_conf_refuse(c, "log.images", err, "expected 0, because %s, got %" PRId64, why, c->log.images) : GT_OK;
}

/* ---- the list, a table in Markdown -------------------------------------------------------------------------------------------------- */
/* Writes a name without what Markdown or HTML would interpret. */
static void put_name(FILE *f, const char *name)
{
	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		if (*p < ' ' || *p == 127)
			fputc('?', f);
		else if (*p == '<' || *p == '&')
			fputs(*p == '<' ? "&lt;" : "&amp;", f);
		else
			fprintf(f, strchr("\\`*_[]|#", *p) ? "\\%c" : "%c", *p);
}

static void put_class(FILE *f, const struct gt_session *s, const char *before, int64_t label)
{
	const char *name = gt_session_class_name(s, label);
	fputs(before, f);
	if (name)
		put_name(f, name);
	else
		fprintf(f, "%" PRId64, label);
}

static void put_numbers(FILE *f, const double *v, int n)
{
	for (int i = 0; i < n && i < MOST_NUMBERS; i++)
		fprintf(f, "%s%.4g", i ? ", " : "", v[i]);
	fputs(n > MOST_NUMBERS ? ", …" : "", f);
}

static void put_row(FILE *f, const struct gt_session *s, int number, const struct gt_mistake *x)
{
	bool several = x->label == x->predicted;
	fprintf(f, "| %02d | ", number);
	put_name(f, x->why ? x->why : x->sample);
	fputs(" | ", f);
	if (x->nvalues)
		put_numbers(f, x->wanted, x->nvalues);
	else
		put_class(f, s, several && !x->missing ? "not " : "", x->label);
	fputs(" | ", f);
	if (x->nvalues)
		put_numbers(f, x->value, x->nvalues);
	else
		put_class(f, s, several && x->missing ? "not " : "", x->predicted);
	fprintf(f, " | %.4g |\n", x->nvalues ? x->error : several && x->missing ? 1 - x->probability : x->probability);
}

static enum gt_code write_list(const struct gt_session *s, struct gt_tensorboard *t, const char *tag, int64_t step,
                               const struct gt_mistake *list, int n, struct gt_err *err)
{
	struct gt_memstream m;
	char *text;
	FILE *f = gt_memstream_open(&m);
	if (!f)
		return gt_fail_memory(err, 0);
	fprintf(f, "| image | sample | label | prediction | %s |\n|---|---|---|---|---|\n", n && list->nvalues ? "error" : "probability");
	for (int i = 0; i < n; i++)
		put_row(f, s, i + 1, &list[i]);
	GT_TRY(gt_memstream_close(f, &m, &text, NULL, err));
	enum gt_code code = gt_tensorboard_text(t, tag, step, text, err);
	free(text);
	return code;
}

/* ---- the images --------------------------------------------------------------------------------------------------------------------- */
static enum gt_code write_image(struct gt_tensorboard *t, const char *tag, int64_t step, const struct gt_mistake *x, struct gt_err *err)
{
	struct gt_thumbnail small;
	GT_TRY(gt_thumbnail_make(x->pixels, x->width, x->height, (int)x->channels, SIDE, &small, err));
	enum gt_code code = gt_tensorboard_image(t, tag, step, &small, (int)x->channels, err);
	free(small.png);
	return code;
}

static enum gt_code write_mistakes(const struct gt_session *s, enum gt_split split, struct gt_tensorboard *t, int64_t step,
                                   const struct gt_mistakes *m, struct gt_arena *a, struct gt_err *err)
{
	struct gt_mistake *list;
	char tag[64];
	GT_TRY(gt_sample_contents(s, split, m, a, &list, err));
	for (int i = 0; i < m->n; i++) {
		snprintf(tag, sizeof tag, "mistakes_%s/%02d", gt_split_names[split], i + 1);
		if (list[i].pixels)
			GT_TRY(write_image(t, tag, step, &list[i], err));
	}
	snprintf(tag, sizeof tag, "mistakes_%s/list", gt_split_names[split]);
	return write_list(s, t, tag, step, list, m->n, err);
}

static enum gt_code add_outputs(void *user, const struct gt_output_rows *rows, struct gt_err *err)
{
	return gt_mistakes_add(user, rows, err);
}

enum gt_code gt_mistake_images_eval(struct gt_session *s, enum gt_split split, struct gt_tensorboard *t, int64_t step,
                                    struct gt_scores *out, struct gt_err *err)
{
	struct gt_mistakes m = {.most = (int)s->conf->log.images, .ignore = gt_session_ignored_label(s), .numbers = s->data.nvalues > 0};
	struct gt_arena *a = NULL;
	if (!m.most || split != choose_split(s))
		return gt_measured_eval(s, split, out, err);
	enum gt_code code = t ? gt_session_eval_order(s, split, &m.order, err) : GT_OK;
	if (code == GT_OK)
		code = gt_measured_eval_also(s, split, add_outputs, &m, out, err);
	if (code == GT_OK && t)
		code = gt_arena_open(&a, err);
	if (code == GT_OK && t)
		code = write_mistakes(s, split, t, step, &m, a, err);
	gt_arena_close(a);
	gt_mistakes_free(&m);
	return code;
}
