/* Predicts rows of tables, and texts. Both are converted with the facts of the training split. */
#include "use/predictor.h"
#include "fitted.h"
#include "session/session_data.h"
#include "use/table_rows.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- texts that are not in files ------------------------------------------------------------------------------------------------- */
/* Adds one text. Sets *bad if the text cannot be used; err has the reason. */
static enum gt_code add_text(struct gt_predictor *p, const char *file, int64_t index, const char *name, const char *text, size_t n,
                             bool *bad, struct gt_err *err)
{
	struct gt_dataset d;
	enum gt_code code = gt_session_read_text(p->s, name, text, n, &d, err);
	*bad = code == GT_EDATA;
	if (code != GT_OK)
		return code;
	code = gt_predictor_add_row(p, file, index, text, &d, 0, err);
	gt_dataset_free(&d);
	return code;
}

/* Predicts each line of standard input. Fails if the first line is a path, because the input is then probably a list of paths. */
static enum gt_code predict_lines(struct gt_predictor *p, int64_t *failed, int64_t *all, struct gt_err *err)
{
	char *line = NULL, name[64];
	size_t cap = 0;
	ssize_t n;
	enum gt_code code = GT_OK;
	errno = 0;
	for (int64_t i = 0; code == GT_OK && !p->ended && (n = getline(&line, &cap, stdin)) >= 0; i++) {
		struct gt_err why = {0};
		bool bad;
		while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = 0;
		snprintf(name, sizeof name, "standard input:%lld", (long long)i + 1);
		if (i == 0 && strchr(line, '/') && !access(line, F_OK))
			code = gt_fail(err, GT_EUSAGE, "%s: expected a text on each line, got the file name \"%.300s\"; write @- for a list of files",
			               name, line);
		else if ((code = add_text(p, "-", i, name, line, (size_t)n, &bad, &why)) != GT_OK && bad) {
			(*failed)++;
			code = gt_predictor_add_error(p, "-", why.msg, err);
		} else if (code != GT_OK && err)
			*err = why;
		(*all)++;
	}
	if (code == GT_OK && ferror(stdin))
		code = gt_fail_errno(err, GT_EIO, errno, "standard input: cannot read");
	if (code == GT_OK && !*all && !p->ended)
		code = gt_fail(err, GT_ENOINPUT, "standard input: expected a text on each line, got nothing");
	free(line);
	return code;
}

/* ---- files ----------------------------------------------------------------------------------------------------------------------- */
/* Predicts the rows of a file. If results contain its columns, the file is read again, row by row, with the results. */
static enum gt_code predict_rows(struct gt_predictor *p, const struct gt_input *file, const struct gt_dataset *d, struct gt_err *err)
{
	if (p->rows_of_files)
		GT_TRY(gt_table_rows_file(p->rows_of_files, file->path, err));
	for (int64_t i = 0; i < d->n && !p->ended; i++)
		GT_TRY(gt_predictor_add_row(p, file->name, i, NULL, d, i, err));
	return p->rows_of_files ? gt_predictor_flush(p, err) : GT_OK;
}

/* Prints warnings about cells of the last file that count as missing. */
static void warn_of_cell(void *user, const char *why)
{
	struct gt_predictor *p = user;
	if (p->warn)
		p->warn(p->user, why);
}

/* Checks that every file has the columns that results must have, before the first result is reported. Unreadable files are reported later,
 * in order. */
static enum gt_code check_columns(struct gt_predictor *p, const struct gt_inputs *in, struct gt_err *err)
{
	for (int64_t i = 0; p->rows_of_files && in->n > 1 && i < in->n; i++) {
		struct gt_err why = {0};
		if (in->v[i].error || gt_table_rows_file(p->rows_of_files, in->v[i].path, &why) != GT_EUSAGE)
			continue;
		return gt_fail_copy(err, &why);
	}
	return GT_OK;
}

/* Reads a text that is a member of an archive. */
static enum gt_code read_member(const struct gt_predictor *p, const struct gt_input *in, struct gt_dataset *d, struct gt_err *err)
{
	struct gt_bytes_buf buf = {0};
	enum gt_code code = gt_source_read(in->source, in->member, &buf, err);
	if (code == GT_OK)
		code = gt_session_read_text(p->s, in->name, (const char *)buf.data, buf.size, d, err);
	free(buf.data);
	return code;
}

/* Predicts an input other than lines of standard input. Sets *bad if it cannot be used; err has the reason. */
static enum gt_code predict_input(struct gt_predictor *p, const struct gt_input *in, bool *bad, struct gt_err *err)
{
	struct gt_dataset d = {0};
	*bad = false;
	if (in->text)
		return add_text(p, in->name, 0, in->name, in->text, strlen(in->text), bad, err);
	enum gt_code code = in->error    ? gt_fail(err, in->code, "%s", in->error)
	                    : in->source ? read_member(p, in, &d, err)
	                                 : gt_session_read_inputs(p->s, in->path, &d, err);
	*bad = code != GT_OK;
	if (code == GT_OK)
		code = gt_session_skipped(p->s, warn_of_cell, NULL, p, err);
	if (code == GT_OK)
		code = predict_rows(p, in, &d, err);
	gt_dataset_free(&d);
	return code;
}

enum gt_code gt_predict_tables(struct gt_predictor *p, const struct gt_inputs *in, int64_t *failed, int64_t *all, struct gt_err *err)
{
	GT_TRY(check_columns(p, in, err));
	for (int64_t i = 0; i < in->n && !p->ended; i++) {
		struct gt_err why = {0};
		bool bad;
		if (in->v[i].lines) {
			GT_TRY(predict_lines(p, failed, all, err));
			continue;
		}
		(*all)++;
		enum gt_code code = predict_input(p, &in->v[i], &bad, &why);
		if (code == GT_OK)
			continue;
		if (in->n == 1 || !bad)
			return gt_fail_copy(err, &why);
		(*failed)++;
		GT_TRY(gt_predictor_add_error(p, in->v[i].name, why.msg, err));
	}
	return GT_OK;
}
