#include "par/roofline.h"
#include "recipe.h"
#include <string.h>

/* memory and tensor: on an H200, a copy reached 4.3 of 4.8 TB/s, and a large product 790 of 989 TFLOP/s; convolutions reach less. gap: the
 * boundary between two kernels of a CUDA graph on such a card. latency: a few dependent accesses to memory and a barrier or two. None of
 * the numbers comes from a run of gtrain. */
const struct gt_roofline_assumptions gt_roofline_assumptions = {
    .memory = 0.9, .l2 = 0.7, .tensor = 0.75, .fp32 = 0.7, .gap = 1.3e-6, .latency = 1.2e-6};

const char *gt_ceiling_name(enum gt_ceiling c)
{
	static const char *const names[] = {"latency", "memory", "L2", "tensor cores", "f32 units"};
	return names[c];
}

struct work {
	const struct gt_card *card;
	bool tf32;
	int stream; /* of the step whose rows are added */
	struct gt_roofline *out;
};

static void add(const struct work *w, const char *op, const char *layer, const struct gt_opcost *c, double flops)
{
	const struct gt_roofline_assumptions *a = &gt_roofline_assumptions;
	const struct gt_card *card = w->card;
	bool tensor = c->matrix && (c->half || w->tf32), cached = c->read + c->written <= card->l2_bytes / 2;
	double bytes = c->read + c->written, bandwidth = cached ? card->l2 * a->l2 : card->memory * a->memory;
	double rate = !tensor ? card->fp32 * a->fp32 : (c->half ? card->bf16 : card->tf32) * a->tensor;
	double full = rate;
	if (c->pieces > 0 && c->pieces < card->sms)
		rate *= c->pieces / card->sms;
	double latency = c->kernels * a->latency, moving = bytes / bandwidth, computing = flops / rate, busy = flops / full;
	struct gt_roofline_row *r = &w->out->row[w->out->nrows++];
	if (!c->kernels)
		latency = moving = computing = busy = 0;
	*r = (struct gt_roofline_row){.op = op, .layer = layer, .bytes = bytes, .flops = flops, .kernels = c->kernels,
	                              .stream = w->stream};
	r->seconds = latency;
	if (moving > r->seconds) {
		r->seconds = moving;
		r->ceiling = cached ? GT_CEILING_L2 : GT_CEILING_MEMORY;
	}
	if (computing > r->seconds) {
		r->seconds = computing;
		r->ceiling = tensor ? GT_CEILING_TENSOR : GT_CEILING_FP32;
	}
	r->seconds += c->kernels * a->gap;
	busy = moving > busy ? moving : busy;
	r->share = r->seconds > 0 ? busy / r->seconds : 0;
	w->out->one_by_one += r->seconds;
	w->out->bytes += bytes;
	w->out->flops += flops;
	w->out->kernels += c->kernels;
}

/* The kernel that gathers images and transforms them: a row has a recipe beside the bytes of its image. */
static void add_recipes(const struct work *w, struct gt_tdesc y, const struct gt_attr_recipes *recipes)
{
	int64_t image = y.dim[1] * y.dim[2] * y.dim[3];
	int64_t row = gt_recipe_row(recipes->ops, image * (recipes->resize ? GT_RECIPE_SLOT : 1));
	struct gt_tdesc rows = gt_tdesc_make(GT_U8, 2, (int64_t[]){y.dim[0], row}, false);
	struct gt_tdesc index = gt_tdesc_make(GT_I64, 1, y.dim, false), target = gt_tdesc_make(GT_I32, 1, y.dim, false);
	struct gt_opcall call = {.code = GT_OP_GATHER_RECIPES, .attr = recipes, .nin = 3, .nout = 2, .in = {&rows, NULL, &index},
	                         .out = {&y, &target}};
	struct gt_opcost cost;
	gt_opcall_cost(&call, &cost);
	add(w, gt_opcode_name(call.code), "data", &cost, cost.flops);
}

static void add_gather(const struct work *w, struct gt_tdesc y, bool images)
{
	struct gt_tdesc from = y, index = gt_tdesc_make(GT_I64, 1, y.dim, false), target = gt_tdesc_make(GT_I32, 1, y.dim, false);
	struct gt_opcall call = {.code = images ? GT_OP_GATHER : GT_OP_GATHER_ROWS, .nin = images ? 3 : 2, .nout = images ? 2 : 1,
	                         .in = {&from, &index}, .out = {&y}};
	struct gt_opcost cost;
	from.layout = gt_tdesc_make(y.dtype, y.rank, y.dim, true).layout; /* x may have padded channels, the bytes have not */
	from.dtype = images ? GT_U8 : y.dtype == GT_I32 ? GT_I32 : GT_F32;
	if (images) {
		call.in[2] = &index;
		call.out[1] = &target;
	}
	gt_opcall_cost(&call, &cost);
	add(w, gt_opcode_name(call.code), "data", &cost, 0);
}

/* Adds the kernels that gather a batch: one for each input, and one for the targets, unless these are labels of images. */
static void add_load(const struct work *w, const struct gt_graph *g, const struct gt_attr_recipes *recipes)
{
	bool images = false;
	for (int i = 0; i < g->ninputs; i++) {
		const struct gt_tdesc *d = gt_graph_desc(g, g->input[i]);
		images |= d->rank == 4;
		if (d->rank == 4 && recipes)
			add_recipes(w, *d, recipes);
		else
			add_gather(w, *d, d->rank == 4);
	}
	for (gt_vid v = 0; v < g->nvalues; v++)
		if (g->values[v].kind == GT_V_TARGET && (!images || g->values[v].desc.dtype != GT_I32))
			add_gather(w, g->values[v].desc, false);
}

/* ---- streams ------------------------------------------------------------------------------------------------------------------------ */
#define STREAMS 8

/* The rows of a step, and of an event how far the stream is that it waits for. */
struct step_rows {
	int first, end; /* its rows in gt_roofline.row */
	int record;     /* WAIT: index of the step that records the event; -1: none does before it */
};

/* Executes the program on paper. */
struct clock {
	const struct gt_prog *p;
	const struct gt_roofline *r;
	const struct step_rows *of;
	int at[STREAMS];      /* index of the stream's next step */
	int row[STREAMS];     /* row in execution; -1: none */
	double left[STREAMS]; /* seconds that it still takes alone */
	bool *done;           /* [steps] RECORD: the stream has reached it */
};

/* Moves a stream to its next row, past the steps that take no time. Returns whether it has one and need not wait for another stream. */
static bool advance(struct clock *c, int stream)
{
	while (c->at[stream] < c->p->n) {
		int i = c->at[stream];
		const struct gt_step *s = &c->p->step[i];
		const struct step_rows *of = &c->of[i];
		if (s->stream == stream && s->kind == GT_STEP_WAIT && of->record >= 0 && !c->done[of->record])
			return false;
		if (s->stream == stream && s->kind == GT_STEP_RECORD)
			c->done[i] = true;
		int row = c->row[stream] < of->first ? of->first : c->row[stream] + 1;
		if (s->stream == stream && row < of->end) {
			c->row[stream] = row;
			c->left[stream] = c->r->row[row].seconds;
			return true;
		}
		c->at[stream]++;
	}
	return false;
}

/* Returns the seconds until all streams have executed their steps. */
static double run_streams(struct clock *c)
{
	bool busy[STREAMS] = {0};
	double time = 0;
	for (;;) {
		double need = 0, next = -1;
		for (int again = 1; again;) { /* an event that one stream records may let another continue */
			again = 0;
			for (int s = 0; s < STREAMS; s++)
				if (!busy[s]) {
					int before = c->at[s];
					busy[s] = advance(c, s);
					again |= c->at[s] != before;
				}
		}
		for (int s = 0; s < STREAMS; s++)
			if (busy[s]) {
				need += c->r->row[c->row[s]].share;
				next = next < 0 || c->left[s] < next ? c->left[s] : next;
			}
		if (next < 0)
			return time;
		time += next * (need > 1 ? need : 1);
		for (int s = 0; s < STREAMS; s++) {
			c->left[s] -= busy[s] ? next : 0;
			busy[s] = busy[s] && c->left[s] > 0;
		}
	}
}

/* Finds, for each WAIT, the last step before it that records the event. */
static void find_records(const struct gt_prog *p, struct step_rows *of)
{
	for (int i = 0; i < p->n; i++) {
		of[i].record = -1;
		for (int k = i - 1; p->step[i].kind == GT_STEP_WAIT && k >= 0 && of[i].record < 0; k--)
			if (p->step[k].kind == GT_STEP_RECORD && p->step[k].event == p->step[i].event)
				of[i].record = k;
	}
}

enum gt_code gt_roofline(const struct gt_prog *p, const struct gt_card *card, bool tf32, struct gt_arena *a, struct gt_roofline *out,
                         struct gt_err *err)
{
	struct work w = {card, tf32, 0, out};
	struct clock c = {.p = p, .r = out};
	struct step_rows *of;
	*out = (struct gt_roofline){0};
	GT_NEW(out->row, a, p->n * (GT_MAX_INPUTS + 1) + 1, err);
	GT_NEW(of, a, p->n + 1, err);
	GT_NEW(c.done, a, p->n + 1, err);
	c.of = of;
	for (int s = 0; s < STREAMS; s++)
		c.row[s] = -1;
	for (int i = 0; i < p->n; i++) {
		const struct gt_step *s = &p->step[i];
		w.stream = s->stream;
		of[i].first = of[i].end = out->nrows;
		struct gt_opcost set = {.written = (double)s->bytes, .kernels = 1};
		switch (s->kind) {
		case GT_STEP_LOAD:
			add_load(&w, s->plan->graph, p->transforms ? &p->recipes : NULL);
			break;
		case GT_STEP_CLEAR:
			add(&w, gt_step_name(s->kind), "step", &set, 0);
			break;
		case GT_STEP_LAUNCH:
		case GT_STEP_CHECK:
		case GT_STEP_UPDATE:
			add(&w, s->call->op, s->call->layer, &s->call->cost, s->call->cost.flops + s->call->flops);
			break;
		case GT_STEP_COMM:
			return gt_fail(err, GT_EUNAVAILABLE, "expected a program of one rank, got %s between ranks", s->call->op);
		default: /* steps that only order others, and ZERO: one memory set serves all steps of a window */
			break;
		}
		of[i].end = out->nrows;
	}
	find_records(p, of);
	out->seconds = run_streams(&c);
	return GT_OK;
}
