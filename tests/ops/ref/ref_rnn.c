/* Reference in f64: the steps of lstm and gru by plain loops. The gradient checks compare with it, so it is simple rather than fast. */
#include "ref.h"
#include "ew.h"
#include <stdlib.h>

struct rnn {
	struct gt_kernel head;
	int64_t n, t, h, g; /* samples, tokens, units, rows of the weights */
	bool lstm, back, reverse, bias, lengths, saves, before, dh;
};

struct operands {
	const double *x, *w, *b, *dy;
	double *y, *gates, *cells, *dx, *before, *dh;
};

/* Row `row` of w times the hidden state; no state is 0. */
static double multiply_row(const struct rnn *k, const double *w, int64_t row, const double *state)
{
	double s = 0;
	for (int64_t i = 0; state && i < k->h; i++)
		s += w[row * k->h + i] * state[i];
	return s;
}

/* Token `at`; prev: token of the step before, -1: none. */
static void step_forward(const struct rnn *k, const struct operands *o, int64_t at, int64_t prev, double *v, double *cell)
{
	int64_t H = k->h;
	const double *x = o->x + at * k->g, *state = prev < 0 ? NULL : o->y + prev * H;
	for (int64_t j = 0; j < H; j++) {
		double p[4];
		for (int64_t q = 0; q < k->g / H; q++)
			p[q] = multiply_row(k, o->w, q * H + j, state) + (o->b ? o->b[q * H + j] : 0);
		if (k->lstm) {
			for (int q = 0; q < 4; q++)
				v[q * H + j] = x[q * H + j] + p[q];
			cell[j] = prev < 0 ? 0 : cell[j];
			o->y[at * H + j] = gt_lstm_cell_f64(&v[j], &v[H + j], &v[2 * H + j], &v[3 * H + j], &cell[j]);
		} else {
			for (int q = 0; q < 3; q++)
				v[q * H + j] = x[q * H + j] + (q < 2 ? p[q] : 0);
			cell[j] = p[2];
			o->y[at * H + j] = gt_gru_cell_f64(&v[j], &v[H + j], &v[2 * H + j], p[2], state ? state[j] : 0);
		}
	}
}

/* dh, dc: gradients of the states after token `at`, which become those of the states before it. d: [g] of workspace. */
static void step_back(const struct rnn *k, const struct operands *o, int64_t at, int64_t prev, double *dh, double *dc, double *d)
{
	int64_t H = k->h;
	const double *v = o->gates + at * k->g, *cell = o->cells + at * H, *state = prev < 0 ? NULL : o->y + prev * H;
	double *dx = o->dx + at * k->g;
	for (int64_t j = 0; j < H; j++) {
		double e = dh[j] + o->dy[at * H + j], old = state ? state[j] : 0;
		for (int64_t q = 0; q < k->g / H; q++)
			d[q * H + j] = v[q * H + j];
		if (k->lstm) {
			double last = prev < 0 ? 0 : o->cells[prev * H + j];
			gt_lstm_cell_dx_f64(&d[j], &d[H + j], &d[2 * H + j], &d[3 * H + j], cell[j], last, e, &dc[j]);
			dh[j] = 0;
		} else {
			double dm = gt_gru_cell_dx_f64(&d[j], &d[H + j], &d[2 * H + j], cell[j], old, e, &dh[j]);
			dx[2 * H + j] = d[2 * H + j];
			d[2 * H + j] = dm;
		}
		if (o->before)
			o->before[at * H + j] = old;
	}
	for (int64_t i = 0; i < k->g; i++) {
		if (k->lstm || i < 2 * H)
			dx[i] = d[i];
		if (o->dh)
			o->dh[at * k->g + i] = d[i];
		for (int64_t j = 0; j < H; j++)
			dh[j] += d[i] * o->w[i * H + j];
	}
}

static enum gt_code launch_rnn(struct gt_dev *dev, struct gt_kernel *head, const struct gt_launch *a, struct gt_err *err)
{
	const struct rnn *k = (const struct rnn *)head;
	const int32_t *lengths = k->lengths ? a->in[k->back ? 4 : 1] : NULL;
	double *one = a->scratch, *two = one + k->h, *d = two + k->h;
	struct operands o = {0};
	(void)dev, (void)err;
	if (k->back)
		o = (struct operands){.dy = a->in[0], .y = a->in[1], .gates = a->in[2], .cells = a->in[3], .w = a->in[5], .dx = a->out[0],
		                      .before = k->before ? a->out[1] : NULL, .dh = k->dh ? a->out[2] : NULL};
	else
		o = (struct operands){.x = a->in[0], .w = a->in[2], .b = k->bias ? a->in[3] : NULL, .y = a->out[0],
		                      .gates = k->saves ? a->out[1] : NULL, .cells = k->saves ? a->out[2] : NULL};
	for (int64_t n = 0; n < k->n; n++) {
		int64_t l = lengths && lengths[n] < k->t ? lengths[n] < 0 ? 0 : lengths[n] : k->t, first = n * k->t;
		double *const rows[] = {k->back ? NULL : o.y, o.gates, o.cells, o.dx, o.before, o.dh};
		const int64_t width[] = {k->h, k->g, k->h, k->g, k->h, k->g};
		for (int i = 0; i < 6; i++)
			if (rows[i] && (!k->back || i > 2))
				memset(rows[i] + (first + l) * width[i], 0, (size_t)((k->t - l) * width[i]) * sizeof(double));
		memset(one, 0, (size_t)(2 * k->h) * sizeof *one);
		for (int64_t i = 0; i < l; i++) {
			int64_t s = k->back ? l - 1 - i : i, at = first + (k->reverse ? l - 1 - s : s);
			int64_t prev = !s ? -1 : k->reverse ? at + 1 : at - 1;
			if (k->back) {
				step_back(k, &o, at, prev, one, two, d);
				continue;
			}
			step_forward(k, &o, at, prev, d, one);
			if (k->saves) {
				memcpy(o.gates + at * k->g, d, (size_t)k->g * sizeof *d);
				memcpy(o.cells + at * k->h, one, (size_t)k->h * sizeof *one);
			}
		}
	}
	return GT_OK;
}

enum gt_code gt_ref_rnn(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	const struct gt_attr_rnn *attr = call->attr;
	bool back = call->code == GT_OP_LSTM_STEPS_DX || call->code == GT_OP_GRU_STEPS_DX;
	bool lstm = call->code == GT_OP_LSTM_STEPS || call->code == GT_OP_LSTM_STEPS_DX;
	const struct gt_tdesc *y = back ? call->in[1] : call->out[0];
	struct gt_tdesc *w = call->in[back ? 5 : 2];
	struct rnn *k;
	(void)dev;
	if (w->any)
		*w = gt_tdesc_make(w->dtype, w->rank, w->dim, false);
	if (!gt_tdesc_plain(w))
		return gt_opcall_refuse(call, err, "the f64 reference supports plain weights only");
	if (w->dim[0] != w->dim[1] * (lstm ? 4 : 3))
		return gt_opcall_refuse(call, err, "the weights must have rows for all gates");
	if (!(k = calloc(1, sizeof *k)))
		return gt_fail(err, GT_EFAIL, "out of memory");
	k->head.launch = launch_rnn;
	k->head.describe = "ref:f64";
	k->n = y->dim[0], k->t = y->dim[1], k->h = y->dim[2], k->g = w->dim[0];
	k->lstm = lstm;
	k->back = back;
	k->reverse = attr->reverse;
	k->bias = !back && call->nin > 3 && call->in[3];
	k->lengths = call->in[back ? 4 : 1] != NULL;
	k->saves = !back && call->nout > 2 && call->out[1] && call->out[2];
	k->before = back && call->nout > 1 && call->out[1];
	k->dh = back && call->nout > 2 && call->out[2];
	k->head.scratch = (size_t)(2 * k->h + k->g) * sizeof(double);
	*out = &k->head;
	return GT_OK;
}
