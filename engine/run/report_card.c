#include "run/report_card.h"
#include "par/roofline.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum gt_code gt_report_may_predict(const struct gt_conf *c, const char *device, const char *card, int world, const char **plan_for,
                                   struct gt_err *err)
{
	if (!gt_card_find(card))
		return gt_fail(err, GT_EUSAGE, "--card: expected one of " GT_CARD_WORDS ", got \"%s\"", card);
	if (world > 1)
		return gt_fail(err, GT_EUSAGE, "--card and %d ranks do not go together: it predicts the time of one GPU, without "
		               "communication; use --mode single", world);
	if (device && strncmp(device, "cuda", 4) != 0)
		return gt_fail(err, GT_EUSAGE, "--card %s and --device %s do not go together: a card is a GPU; use --device cuda", card, device);
	if (!device && !strcmp(c->device, "cpu"))
		return gt_conf_refuse(c, "device", err, "--card %s and device = \"cpu\" do not go together: a card is a GPU; use --device cuda",
		                      card);
	*plan_for = "null:cuda";
	return GT_OK;
}

static int by_time(const void *a, const void *b)
{
	const struct gt_check_kernel *x = a, *y = b;
	return x->seconds != y->seconds ? (x->seconds < y->seconds ? 1 : -1) : strcmp(x->op, y->op);
}

/* Adds up the calls of each operation. */
static enum gt_code by_operation(struct gt_check_card *c, struct gt_arena *a, const struct gt_roofline *from, struct gt_err *err)
{
	double (*at)[GT_CEILING_COUNT];
	GT_NEW(c->ops, a, from->nrows + 1, err);
	GT_NEW(at, a, from->nrows + 1, err);
	for (int i = 0; i < from->nrows; i++) {
		const struct gt_roofline_row *r = &from->row[i];
		int k = 0, most = 0;
		while (k < c->nops && strcmp(c->ops[k].op, r->op) != 0)
			k++;
		c->nops += k == c->nops;
		struct gt_check_kernel *op = &c->ops[k];
		op->op = r->op;
		op->bytes += r->bytes;
		op->flops += r->flops;
		op->seconds += r->seconds;
		op->kernels += r->kernels;
		op->calls++;
		at[k][r->ceiling] += r->seconds;
		for (int j = 1; j < GT_CEILING_COUNT; j++)
			most = at[k][j] > at[k][most] ? j : most;
		op->ceiling = gt_ceiling_name(most);
	}
	qsort(c->ops, (size_t)c->nops, sizeof *c->ops, by_time);
	return GT_OK;
}

/* Returns the seconds of all steps of the run. step: those of a step outside of the phases. */
static double run_of(const struct gt_report *r, double step)
{
	int64_t outside = r->steps;
	double sum = 0;
	for (int i = 0; i < r->nphases; i++) {
		outside -= r->phases[i].steps;
		sum += (double)r->phases[i].steps * r->phases[i].seconds;
	}
	return sum + (double)outside * step;
}

/* Predicts a step of each phase. */
static enum gt_code predict_phases(struct gt_report *r, const struct gt_session *s, const struct gt_card *card, bool tf32,
                                   struct gt_err *err)
{
	struct gt_roofline got;
	for (int i = 0; i < r->nphases; i++) {
		const struct gt_train_phase *p = &s->prog.phase[r->phases[i].index];
		GT_TRY(gt_roofline(p->full.n ? &p->full : &p->tail, card, tf32, r->arena, &got, err));
		r->phases[i].seconds = got.seconds;
	}
	return GT_OK;
}

enum gt_code gt_report_card(struct gt_report *r, const struct gt_session *s, const char *word, struct gt_err *err)
{
	const struct gt_card *card = gt_card_find(word);
	const struct gt_roofline_assumptions *a = &gt_roofline_assumptions;
	struct gt_roofline got;
	bool tf32 = s->conf->precision == GT_PREC_TF32;
	GT_TRY(gt_roofline(&s->prog.full, card, tf32, r->arena, &got, err));
	GT_TRY(predict_phases(r, s, card, tf32, err));
	struct gt_check_card *c = &r->card;
	*c = (struct gt_check_card){.word = card->word, .name = card->name, .ncalls = got.nrows, .step = got.seconds,
	                            .one_by_one = got.one_by_one, .bytes = got.bytes,
	                            .flops = got.flops, .kernels = got.kernels, .memory = card->bytes, .gap = a->gap, .latency = a->latency,
	                            .reach = {a->memory, a->l2, a->tensor, a->fp32}};
	c->samples_per_s = got.seconds > 0 ? (double)s->batch.size / got.seconds : 0;
	c->epoch = r->steps_per_epoch > 0 ? (double)r->steps_per_epoch * got.seconds : NAN;
	c->run = r->steps > 0 ? run_of(r, got.seconds) : NAN;
	GT_NEW(c->calls, r->arena, got.nrows + 1, err);
	for (int i = 0; i < got.nrows; i++) {
		const struct gt_roofline_row *row = &got.row[i];
		c->beside += row->stream ? row->seconds : 0;
		c->calls[i] = (struct gt_check_kernel){.bytes = row->bytes, .flops = row->flops, .seconds = row->seconds, .calls = 1,
		                                       .kernels = row->kernels, .ceiling = gt_ceiling_name(row->ceiling)};
		GT_NEW_STR(c->calls[i].op, gt_arena_strdup(r->arena, row->op), err);
		GT_NEW_STR(c->calls[i].layer, gt_arena_strdup(r->arena, row->layer), err);
	}
	for (int i = 0; i < got.nrows; i++)
		got.row[i].op = c->calls[i].op; /* the plan is closed before the report is printed */
	return by_operation(c, r->arena, &got, err);
}
