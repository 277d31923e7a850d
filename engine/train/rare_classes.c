#include "train/rare_classes.h"
#include "index_file.h"
#include "sample_mark.h"
#include "session/session_data.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEW 10    /* a class with this number of training samples is not rare, however large other classes are */
#define SMALLER 3 /* a rare class has less than 1/SMALLER of the mean number of samples */
#define NAMED 3   /* number of classes that a warning names */

struct counts {
	const struct gt_session *s;
	int64_t classes;
	int64_t *of[GT_SPLITS]; /* [classes]: samples of each class; NULL: the split has no samples, or its labels are not known */
	int64_t samples;        /* training samples */
	int64_t present;        /* classes that have training samples */
};

enum { DROP = 1 << 20 }; /* samples after which the pages of an index are dropped: a check should not need memory for all labels */

/* Counts the samples of each class in a split whose labels are known. */
static void count_split(struct counts *k, enum gt_split split, int64_t *count)
{
	const struct gt_view *v = &k->s->data.view[split];
	const struct gt_dataset *d = v->data;
	if (v->n <= 0 || d->target.width || (!d->labels && !(d->encoded && d->mark)))
		return;
	for (int64_t i = 0; i < v->n; i++) {
		int64_t at = v->index ? v->index[i] : i, y = d->labels ? d->labels[at] : d->mark[at].stratum;
		if (y >= 0 && y < k->classes && y != k->s->loss.attr.ignore_index)
			count[y]++;
		if ((i + 1) % DROP == 0)
			gt_index_drop_all(d->mapped);
	}
	gt_index_drop_all(d->mapped);
	k->of[split] = count;
}

static bool lacks_samples(const struct counts *k, int64_t c)
{
	for (int i = GT_VALID; i < GT_SPLITS; i++)
		if (k->of[i] && !k->of[i][c])
			return true;
	return false;
}

/* Returns whether the samples of class c are too few. */
static bool is_rare(const struct counts *k, int64_t c)
{
	int64_t train = k->of[GT_TRAIN][c], all = 0;
	for (int i = 0; i < GT_SPLITS; i++)
		all += k->of[i] ? k->of[i][c] : 0;
	return (train && lacks_samples(k, c)) || (all && train < FEW && train * k->present * SMALLER < k->samples);
}

/* Appends "chainsaw (2 train, 1 valid)" to a list of n classes. Returns the new length. */
static size_t append_class(const struct counts *k, int64_t c, int n, char *buf, size_t size, size_t at)
{
	const char *name = gt_session_class_name(k->s, c);
	char number[32];
	snprintf(number, sizeof number, "%lld", (long long)c);
	at += (size_t)snprintf(buf + at, size - at, "%s%.60s (", n ? ", " : "", name ? name : number);
	for (int i = 0; i < GT_SPLITS; i++)
		if (k->of[i])
			at += (size_t)snprintf(buf + at, size - at, "%s%lld %s", i ? ", " : "", (long long)k->of[i][c], gt_split_names[i]);
	return at + (size_t)snprintf(buf + at, size - at, ")");
}

static void describe_classes(const struct counts *k, char *buf, size_t size)
{
	const struct gt_conf *conf = k->s->conf;
	char list[512] = "", more[48] = "";
	size_t at = 0;
	int rare = 0;
	bool divided = false; /* a rare class has several samples in train, but data.valid took none of them */
	for (int64_t c = 0; c < k->classes; c++) {
		if (!is_rare(k, c))
			continue;
		divided |= conf->data.valid > 0 && !conf->data.stratify && k->of[GT_VALID] && !k->of[GT_VALID][c] && k->of[GT_TRAIN][c] > 1;
		if (rare++ < NAMED)
			at = append_class(k, c, rare - 1, list, sizeof list, at);
	}
	if (rare > NAMED)
		snprintf(more, sizeof more, " and %d more", rare - NAMED);
	if (rare)
		snprintf(buf, size, "%s too few samples: %s%s; a network hardly learns such a class, and a score hardly measures it; add samples, "
		         "or leave the class out%s", rare == 1 ? "a class has" : "classes have", list, more,
		         divided ? "; data.stratify = true puts samples of every class into both splits" : "");
}

enum gt_code gt_rare_classes(const struct gt_session *s, char *buf, size_t size, struct gt_err *err)
{
	struct counts k = {.s = s, .classes = s->data.set[GT_TRAIN].classes};
	*buf = '\0';
	if (!strcmp(s->conf->data.name, "synthetic") || s->conf->data.limit || k.classes <= 0)
		return GT_OK;
	int64_t *all = calloc((size_t)k.classes * GT_SPLITS, sizeof *all);
	if (!all)
		return gt_fail_memory(err, (size_t)k.classes * GT_SPLITS * sizeof *all);
	for (int i = 0; i < GT_SPLITS; i++)
		count_split(&k, (enum gt_split)i, all + i * k.classes);
	for (int64_t c = 0; k.of[GT_TRAIN] && c < k.classes; c++) {
		k.samples += k.of[GT_TRAIN][c];
		k.present += k.of[GT_TRAIN][c] > 0;
	}
	if (k.samples)
		describe_classes(&k, buf, size);
	free(all);
	return GT_OK;
}
