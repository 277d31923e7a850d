#include "train/run_start.h"
#include "ir/op.h"
#include "plan/strategy.h"
#include "session/session_data.h"
#include "train/warnings.h"
#include <stdio.h>
#include <string.h>

const char *gt_format_grouped(int64_t n, char *buf, size_t size)
{
	char digits[32];
	int len = snprintf(digits, sizeof digits, "%lld", (long long)n), at = 0;
	for (int i = 0; i < len && at + 2 < (int)size; i++) {
		if (i && (len - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = 0;
	return buf;
}

/* Writes the number of samples of each split: "54,000 train + 6,000 valid + 10,000 test". */
static void format_samples(const struct gt_session *s, char *buf, size_t size)
{
	char count[32];
	size_t n = 0;
	for (int i = 0; i < GT_SPLITS && n < size; i++)
		if (s->data.view[i].n)
			n += (size_t)snprintf(buf + n, size - n, "%s%s %s", n ? " + " : "", gt_format_grouped(s->data.view[i].n, count, sizeof count),
			                      gt_split_names[i]);
}

enum gt_code gt_run_report_start(struct gt_trainer *t, struct gt_err *err)
{
	const struct gt_session *s = t->s;
	char text[2048], params[32], samples[160], micro[64] = "", ranks[64] = "", ema[96] = "";
	if (s->optim.ema)
		snprintf(ema, sizeof ema, "; evaluates and saves the moving average of the weights (decay %g)", s->conf->train.ema.decay);
	const struct gt_comm *comm = s->exec.group[GT_GROUP_WORLD];
	if (comm)
		snprintf(ranks, sizeof ranks, ", %s on %d ranks over %s", s->strategy->name, s->at.world, comm->api->name);
	if (s->batch.micro < s->batch.size)
		snprintf(micro, sizeof micro, " (%lld micro-batches of %lld)", (long long)(s->batch.size / s->batch.micro),
		         (long long)s->batch.micro);
	const char *in_f32 = "";
	if (gt_computes_in_f32(s->conf, &s->device.info))
		in_f32 = ", which this processor computes in fp32 (slower than fp32, less memory),";
	format_samples(s, samples, sizeof samples);
	snprintf(text, sizeof text,
	         "%s: %s parameters, %s%s on %s%s; batch %lld%s, %lld steps per epoch; %s %s from %.300s; seed %lld%s",
	         s->conf->name, gt_format_grouped(s->prog.num_params, params, sizeof params), gt_precision_names[s->conf->precision], in_f32,
	         s->device.info.name, ranks, (long long)s->batch.size, micro, (long long)s->batch.steps_per_epoch, samples,
	         gt_session_skips_files(s) ? "files" : "samples", s->data.set[0].where, (long long)s->conf->seed, ema);
	struct gt_event ev = {.kind = GT_EV_START, .text = text, .init = t->opts->init, .device = t->opts->device, .ranks = s->at.world};
	t->started = true;
	return gt_trainer_send_event(t, &ev, true, err);
}

enum gt_code gt_run_warn(struct gt_trainer *t, const char *text, struct gt_err *err)
{
	struct gt_event ev = {.kind = GT_EV_WARN, .epoch = t->state.epoch, .text = text};
	return gt_trainer_send_event(t, &ev, true, err);
}

enum gt_code gt_run_warn_of_ranks(struct gt_trainer *t, int64_t wrote, struct gt_err *err)
{
	char text[200];
	if (t->s->conf->reproducible != GT_REPRO_RUN || wrote == t->state.world)
		return GT_OK;
	snprintf(text, sizeof text, "reproducible = \"run\": from here on, the results differ in the last bits, because this run has %lld "
	         "rank%s, but %lld wrote the checkpoint",
	         (long long)t->state.world, t->state.world == 1 ? "" : "s", (long long)wrote);
	return gt_run_warn(t, text, err);
}

enum gt_code gt_run_report_warnings(void *user, const struct gt_session *s, struct gt_err *err)
{
	struct gt_trainer *t = user;
	struct gt_problems list = {.arena = s->arena};
	GT_TRY(gt_warnings(s, t->resumes ? NULL : t->saves ? "dir" : "", &list, err));
	gt_problems_sort(&list, s->conf->path);
	for (int i = 0; i < list.n && t->opts->observe; i++) {
		struct gt_event ev = {.kind = GT_EV_WARN, .epochs = s->conf->train.epochs, .steps = s->batch.steps, .text = list.v[i].text};
		GT_TRY(gt_metrics_write(NULL, &t->json, &ev, err));
		t->opts->observe(t->opts->user, &ev);
	}
	return GT_OK;
}

enum gt_code gt_run_warn_of_conversion(struct gt_trainer *t, enum gt_dtype from, struct gt_err *err)
{
	char text[4400];
	snprintf(text, sizeof text, "%s: the %s values were %s f32, the type in which gtrain keeps weights", t->opts->init, gt_dtype_name(from),
	         from == GT_F64 ? "rounded to" : "converted to");
	return gt_run_warn(t, text, err);
}

enum gt_code gt_run_report_pretrained(struct gt_trainer *t, const struct gt_pretrained_report *r, struct gt_err *err)
{
	char text[2048];
	struct gt_event ev = {.kind = GT_EV_PRETRAINED, .pretrained = r, .text = gt_pretrained_text(r, text, sizeof text)};
	return gt_trainer_send_event(t, &ev, true, err);
}
