/* Computes the outputs of a checkpoint's model in f32, on the CPU, for samples with random values, for a comparison with another program.
 *
 *     tool_outputs CKPT FOLDER       writes FOLDER/NAME.npy for each input of the model, i64 for integers, and FOLDER/output.npy
 *     tool_outputs --pixels ...      writes the images as u8 pixels before their normalisation
 *
 * Of sequences, sample 0 has the length 1, sample 1 the longest, sample 2 has no tokens, and the others have random lengths. */
#include "conf/conf.h"
#include "session/session_data.h"
#include "train/run_ranks.h"
#include "train/state.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES 4

static void check(enum gt_code rc, const struct gt_err *err)
{
	if (rc == GT_OK)
		return;
	fprintf(stderr, "tool_outputs: %s\n", err->msg);
	exit(1);
}

/* Writes an array in the format of numpy.lib.format, version 1.0. */
static void write_npy(const char *folder, const char *name, const char *type, size_t size, const struct gt_tdesc *d, const void *data)
{
	char path[4400], shape[256] = "", head[512];
	struct gt_err err;
	FILE *f;
	for (int i = 0; i < d->rank; i++)
		snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%lld,", (long long)d->dim[i]);
	int n = snprintf(head, sizeof head, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
	int padded = (10 + n + 1 + 63) / 64 * 64 - 10;
	snprintf(path, sizeof path, "%s/%s.npy", folder, name);
	if (!(f = fopen(path, "wb")))
		check(gt_fail(&err, GT_EIO, "%s: cannot create", path), &err);
	fwrite("\x93NUMPY\x01\x00", 1, 8, f);
	fputc(padded & 255, f);
	fputc(padded >> 8, f);
	fprintf(f, "%-*s\n", padded - 1, head);
	fwrite(data, size, (size_t)gt_tdesc_count(d), f);
	if (fclose(f))
		check(gt_fail(&err, GT_EIO, "%s: cannot write", path), &err);
}

/* ---- random inputs ---------------------------------------------------------------------------------------------------------------- */
static uint32_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33);
}

static void fill_integers(const struct gt_model_input *in, const struct gt_value *v, uint64_t *state, int64_t longest, int32_t *out)
{
	int64_t width = v->desc.rank > 1 ? v->desc.dim[1] : 1;
	for (int64_t i = 0; i < SAMPLES; i++)
		for (int64_t k = 0; k < width; k++) {
			int64_t most = in->type == GT_INPUT_LENGTHS ? longest + 1 : v->codes[in->type == GT_INPUT_CODES ? k : 0];
			out[i * width + k] = (int32_t)(draw(state) % (uint32_t)most);
		}
	if (in->type == GT_INPUT_LENGTHS) {
		out[0] = 1;
		out[1] = (int32_t)longest;
		out[2] = 0;
	}
}

static void *widen(const int32_t *v, int64_t n)
{
	int64_t *wide = calloc((size_t)n, sizeof *wide);
	for (int64_t i = 0; i < n; i++)
		wide[i] = v[i];
	return wide;
}

/* Fills `out` in the layout of the input, and writes the file. a: normalisation; NULL: the images are written as they are. */
static void make_numbers(const struct gt_value *v, const struct gt_attr_gather *a, uint64_t *state, const char *folder, float *out)
{
	struct gt_tdesc plain = gt_tdesc_make(GT_F32, v->desc.rank, v->desc.dim, false);
	int64_t n = gt_tdesc_count(&plain), area = n / plain.dim[0] / plain.dim[1];
	float *x = calloc((size_t)n, sizeof *x);
	uint8_t *pixel = calloc((size_t)n, 1);
	for (int64_t i = 0; i < n; i++) {
		pixel[i] = (uint8_t)draw(state);
		x[i] = a ? (float)pixel[i] * a->scale[i / area % plain.dim[1]] + a->shift[i / area % plain.dim[1]]
		         : (float)draw(state) * 0x1p-30f - 1;
	}
	gt_tdesc_pack(&v->desc, x, out);
	if (a)
		write_npy(folder, v->name, "|u1", 1, &plain, pixel);
	else
		write_npy(folder, v->name, "<f4", 4, &plain, x);
	free(x);
	free(pixel);
}

static void make_input(const struct gt_session *s, const struct gt_graph *g, int i, bool pixels, const char *folder, void **out)
{
	static uint64_t state = 42;
	const struct gt_value *v = &g->values[g->input[i]];
	struct gt_attr_gather a;
	struct gt_err err;
	*out = calloc(gt_tdesc_bytes(&v->desc) + 64, 1);
	if (v->desc.dtype == GT_I32) {
		const struct gt_model_input *in = &s->data.input[i];
		fill_integers(in, v, &state, s->data.lengths.n ? s->data.lengths.at[s->data.lengths.n - 1] : 1, *out);
		void *wide = widen(*out, gt_tdesc_count(&v->desc));
		write_npy(folder, v->name, "<i8", 8, &v->desc, wide);
		free(wide);
		return;
	}
	bool image = pixels && (!s->conf->model.ninputs || s->conf->model.inputs[i].type == GT_INPUT_IMAGE);
	if (image)
		check(gt_session_gather_attr(s->conf, (struct gt_transform_list){0}, &a, &err), &err);
	make_numbers(v, image ? &a : NULL, &state, folder, *out);
}

/* ---- the model -------------------------------------------------------------------------------------------------------------------- */
static struct gt_session *open_session(const char *path)
{
	static struct gt_ckpt *ckpt;
	struct gt_session *s;
	struct gt_conf *c;
	struct gt_err err;
	check(gt_ckpt_open(path, NULL, true, NULL, NULL, &ckpt, &err), &err);
	const char *text = gt_ckpt_meta(ckpt)->config;
	check(gt_conf_load_resolved("config.cfg", text, strlen(text), NULL, 0, &c, &err), &err);
	gt_ranks_use_one(c);
	c->precision = GT_PREC_FP32;
	c->eval.tta = GT_TTA_NONE;
	check(gt_session_open(&(struct gt_session_spec){.conf = c, .device = "cpu", .ckpt = ckpt, .predict = SAMPLES}, &s, &err), &err);
	check(gt_state_load(s, ckpt, false, &err), &err);
	return s;
}

static void run_plan(const struct gt_session *s, struct gt_plan *plan, void *const *input)
{
	const struct gt_device *d = &s->device;
	struct gt_step_args args = {0};
	struct gt_err err;
	gt_plan_bind_batch(plan, input, NULL);
	for (int i = 0; i < plan->ncalls; i++) {
		struct gt_launch a = {.in = plan->call[i].in, .out = plan->call[i].out, .scratch = plan->call[i].work, .step_args = &args};
		check(d->be->launch(d->dev, plan->call[i].kernel, &a, &err), &err);
	}
	check(d->be->sync(d->dev, 0, &err), &err);
}

int main(int argc, char **argv)
{
	bool pixels = argc > 1 && !strcmp(argv[1], "--pixels");
	argv += pixels;
	if (argc - pixels != 3) {
		fprintf(stderr, "usage: tool_outputs [--pixels] CKPT FOLDER\n");
		return 64;
	}
	struct gt_session *s = open_session(argv[1]);
	struct gt_plan *plan = s->prog.predict;
	const struct gt_graph *g = plan->graph;
	void *input[GT_MAX_INPUTS];
	for (int i = 0; i < g->ninputs; i++)
		make_input(s, g, i, pixels, argv[2], &input[i]);
	run_plan(s, plan, input);
	const struct gt_tdesc *d = gt_graph_desc(g, g->output);
	float *y = calloc((size_t)gt_tdesc_count(d), sizeof *y);
	gt_tdesc_unpack(d, gt_plan_value(plan, g->output), y);
	write_npy(argv[2], "output", "<f4", 4, d, y);
	return 0;
}
