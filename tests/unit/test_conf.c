/* Configs that load: values, defaults, blocks, includes, --set, the resolved text; and that every config of configs/ builds. */
#include "conf/conf.h"
#include "gtrain.h"
#include "ir/op.h"
#include "test.h"
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATA "data = { name = \"fashion-mnist\"; batch = 32; };\n"
#define MODEL "model = { input = [1, 28, 28]; layers = ( { type = \"flatten\"; }, { name = \"fc\"; type = \"linear\"; out = 10; } ); };\n"
#define TRAIN "train = { epochs = 1; optimizer = { type = \"sgd\"; lr = 0.1; }; };\n"
#define BASE DATA MODEL TRAIN

static const char *file(const char *name, const char *text)
{
	static char path[4][256];
	static int turn;
	char *p = path[turn++ % 4];
	snprintf(p, sizeof path[0], "%s/%s", test_tmpdir(), name);
	FILE *f = fopen(p, "w");
	if (f) {
		fputs(text, f);
		fclose(f);
	}
	return p;
}

/* Loads text; a failure is the test's. */
static struct gt_conf *load(const char *text, const char *const *sets, int n)
{
	struct gt_conf *c;
	struct gt_err e;
	CHECK_OK(gt_conf_load_text("t.cfg", text, strlen(text), sets, n, &c, &e), e);
	return c;
}

/* Loading the resolved text gives the same text, which holds every field. */
static void check_text(const struct gt_conf *c)
{
	struct gt_conf *again = load(c->text, NULL, 0);
	if (again) {
		CHECK_MSG(!strcmp(again->text, c->text), "%s: the resolved text of the resolved text differs", c->path);
		gt_conf_free(again);
	}
}

TEST(conf_defaults)
{
	struct gt_conf *c = load(BASE, NULL, 0);
	if (!c)
		return;
	CHECK(c->schema == 1 && c->seed == 0 && c->reproducible == GT_REPRO_NONE && c->precision == GT_PREC_FP32 && !strcmp(c->device, "auto"));
	CHECK(c->data.batch == 32 && c->data.batch_per_rank == 0 && c->data.shuffle && !c->data.drop_last && c->data.prefetch == -1);
	CHECK(c->data.mean.n == 0 && c->data.naugment == 0 && !strcmp(c->data.format, "auto") && c->data.train.n == 0);
	CHECK(c->train.epochs == 1 && c->train.steps == 0 && c->train.ignore_index == -100 && c->train.accumulate == 1 &&
	      c->train.eval_every_epochs == 1);
	CHECK(c->train.optimizer.type == GT_OPT_SGD && c->train.optimizer.lr == 0.1 && c->train.optimizer.momentum == 0);
	CHECK(c->train.optimizer.weight_decay == 0 && c->train.optimizer.decay_bias && c->train.optimizer.decay_norm);
	CHECK(c->train.optimizer.betas[0] == 0.9 && c->train.optimizer.betas[1] == 0.999 && c->train.optimizer.eps == 1e-8);
	CHECK(c->train.schedule.type == GT_SCHED_CONSTANT && c->train.schedule.final_div_factor == 1e4);
	CHECK(c->parallel.mode == GT_MODE_SINGLE && c->parallel.nproc == 0 && c->parallel.bucket_mb == 25 &&
	      c->parallel.schedule == GT_PIPE_1F1B);
	CHECK(c->checkpoint.keep == 3 && !c->checkpoint.dir[0] && !c->checkpoint.best_metric[0] && c->checkpoint.on_signal);
	CHECK(c->log.every_steps == 50 && !c->log.tensorboard);
	CHECK(c->model.input[0] == 1 && c->model.input[2] == 28 && c->model.init == GT_INIT_TORCH_DEFAULT && c->model.nlayers == 2);
	CHECK(!strcmp(c->model.layers[0].name, "0") && !strcmp(c->model.layers[1].name, "fc") && c->model.layers[1].nin == 0);
	CHECK(((struct gt_attr_linear *)c->model.layers[1].attr)->out == 10 && ((struct gt_attr_linear *)c->model.layers[1].attr)->bias);
	CHECK(c->model.layers[1].lr_mul == 1 && isnan(c->model.layers[1].weight_decay) && c->model.layers[1].init == -1 &&
	      !c->model.layers[1].frozen);
	CHECK(c->model.layers[1].line == 2 && !strcmp(c->model.layers[1].file, "t.cfg"));
	check_text(c);
	gt_conf_free(c);
}

TEST(conf_values)
{
	struct gt_conf *c = load(
	    "schema = 1; name = \"a \\\"b\\\\ \xc3\xa9\"; seed = 9223372036854775807L; reproducible = \"world\"; precision = \"bf16\"; threads "
	    "= 2;\n"
	    "data = { format = \"idx\"; root = \"/d\"; train = [\"a\", \"b\",]; test = \"c\"; batch_per_rank = 0x20; mean = 0; std = [1];\n"
	    "  augment = ( { type = \"pad_crop\"; pad = 4; mode = \"reflect\"; }, { type = \"hflip\"; p = 1; } ); valid = 0.25; prefetch = 0; "
	    "}\n"
	    "model : { input = [3, 8, 8]; init = \"torch\"; layers = (\n"
	    "  { type = \"conv2d\"; out = 4; kernel = [3, 5]; padding = (1, 2); bias = FALSE; frozen = true; lr_mul = 2; init = "
	    "\"xavier-uniform\"; },\n"
	    "  { type = \"flatten\"; }, { type = \"linear\"; out = 10; weight_decay = 0; }, ); },\n"
	    "train = { steps = 3000000000; optimizer = { type = \"adamw\"; lr = 1e-3; betas = [0.5, 0.75]; };\n"
	    "  schedule = { type = \"multistep\"; unit = \"step\"; milestones = [10, 20]; warmup = 5; }; }\n"
	    "parallel = { mode = \"zero\"; nproc = 4; stage = 3; }; checkpoint = { best = { metric = \"valid/loss\"; }; };\n",
	    NULL, 0);
	if (!c)
		return;
	CHECK(!strcmp(c->name, "a \"b\\ \xc3\xa9") && c->seed == INT64_MAX && c->reproducible == GT_REPRO_WORLD &&
	      c->precision == GT_PREC_BF16);
	CHECK(c->data.train.n == 2 && !strcmp(c->data.train.v[1], "b") && c->data.test.n == 1 && !strcmp(c->data.test.v[0], "c"));
	CHECK(c->data.batch == 0 && c->data.batch_per_rank == 32 && c->data.mean.n == 1 && c->data.mean.v[0] == 0 && c->data.std.v[0] == 1);
	CHECK(c->data.naugment == 2 && c->data.augment[0].type == GT_TF_PAD_CROP && c->data.augment[0].pad == 4 &&
	      c->data.augment[0].mode == 1);
	CHECK(c->data.augment[1].type == GT_TF_HFLIP && c->data.augment[1].p == 1 && c->data.valid == 0.25 && c->data.prefetch == 0);
	const struct gt_layer_spec *l = c->model.layers;
	const struct gt_attr_conv2d *a = l[0].attr;
	CHECK(a->out == 4 && a->kernel[0] == 3 && a->kernel[1] == 5 && a->padding[0] == 1 && a->padding[1] == 2 && a->stride[1] == 1 &&
	      !a->bias);
	CHECK(l[0].frozen && l[0].lr_mul == 2 && l[0].init == GT_INIT_XAVIER_UNIFORM && l[2].weight_decay == 0 && isnan(l[0].weight_decay));
	CHECK(c->train.steps == 3000000000 && c->train.epochs == 0 && c->train.optimizer.type == GT_OPT_ADAMW);
	CHECK(c->train.optimizer.weight_decay == 0.01 && c->train.optimizer.betas[0] == 0.5 && c->train.optimizer.betas[1] == 0.75);
	CHECK(c->train.schedule.type == GT_SCHED_MULTISTEP && c->train.schedule.unit == GT_UNIT_STEP &&
	      c->train.schedule.milestones.v[1] == 20);
	CHECK(c->train.schedule.warmup == 5 && c->parallel.stage == 3 && c->parallel.nproc == 4 && c->checkpoint.best_mode == 1);
	check_text(c);
	gt_conf_free(c);
}

/* Names, inputs and attributes of an expanded model as one line a layer. */
static char *layers_text(const struct gt_conf *c)
{
	static char buf[8192];
	size_t n = 0;
	buf[0] = 0;
	for (int i = 0; i < c->model.nlayers && n < sizeof buf; i++) {
		const struct gt_layer_spec *l = &c->model.layers[i];
		n += (size_t)snprintf(buf + n, sizeof buf - n, "%s %s", l->name, gt_op_name(l->op));
		if (l->op->code == GT_OP_LINEAR)
			n += (size_t)snprintf(buf + n, sizeof buf - n, " %d", (int)((struct gt_attr_linear *)l->attr)->out);
		for (int k = 0; k < l->nin; k++)
			n += (size_t)snprintf(buf + n, sizeof buf - n, "%s%s", k ? "," : " <- ", l->in[k]);
		n += (size_t)snprintf(buf + n, sizeof buf - n, "\n");
	}
	return buf;
}

TEST(conf_blocks)
{
	static const char text[] =
	    DATA TRAIN "model = { input = [16]; blocks = {\n"
	               "  unit = { params = [\"n\", \"act\"]; defaults = { act = \"relu\"; };\n"
	               "    layers = ( { name = \"lin\"; type = \"linear\"; out = \"$n\"; }, { type = \"$act\"; } ); };\n"
	               "  res = { params = [\"n\", \"f\"]; layers = (\n"
	               "    { name = \"a\"; block = \"unit\"; n = \"$n\"; frozen = \"$f\"; },\n"
	               "    { name = \"b\"; block = \"unit\"; n = \"$n\"; act = \"tanh\"; in = \"a\"; },\n"
	               "    { name = \"skip\"; type = \"identity\"; in = \"$in\"; },\n"
	               "    { name = \"sum\"; type = \"add\"; in = [\"b\", \"skip\"]; } ); };\n"
	               "}; layers = (\n"
	               "  { name = \"stem\"; type = \"linear\"; out = 8; },\n"
	               "  { name = \"s\"; block = \"res\"; repeat = 2; n = 8; f = false; first = { f = true; }; },\n"
	               "  { block = \"unit\"; n = 8; lr_mul = 0.5; },\n"
	               "  { name = \"cat\"; type = \"concat\"; in = [\"2\", \"s.0\", \"stem\", \"input\", \"s.1.a.lin\"]; },\n"
	               "  { type = \"linear\"; out = 10; } ); };\n";
	struct gt_conf *c = load(text, NULL, 0);
	if (!c)
		return;
	static const char want[] = "stem linear 8\n"
	                           "s.0.a.lin linear 8\n"
	                           "s.0.a.1 relu\n"
	                           "s.0.b.lin linear 8\n"
	                           "s.0.b.1 tanh\n"
	                           "s.0.skip identity <- stem\n"
	                           "s.0.sum add <- s.0.b.1,s.0.skip\n"
	                           "s.1.a.lin linear 8\n"
	                           "s.1.a.1 relu\n"
	                           "s.1.b.lin linear 8\n"
	                           "s.1.b.1 tanh\n"
	                           "s.1.skip identity <- s.0.sum\n"
	                           "s.1.sum add <- s.1.b.1,s.1.skip\n"
	                           "2.lin linear 8\n"
	                           "2.1 relu\n"
	                           "cat concat <- 2.1,s.0.sum,stem,input,s.1.a.lin\n"
	                           "4 linear 10\n";
	CHECK_MSG(!strcmp(layers_text(c), want), "got:\n%s", layers_text(c));
	const struct gt_layer_spec *l = c->model.layers;
	CHECK(l[1].frozen && l[2].frozen && !l[3].frozen && !l[7].frozen && l[13].lr_mul == 0.5 && l[16].lr_mul == 1);
	struct gt_graph *g;
	struct gt_err e;
	CHECK_OK(gt_graph_build(c->arena, &c->model, 2, GT_F32, true, &g, &e), e);
	check_text(c);
	gt_conf_free(c);
}

TEST(conf_block_is_the_first_layer)
{
	struct gt_conf *c =
	    load(DATA TRAIN "model = { input = [4]; blocks = { res = { layers = ( { name = \"f\"; type = \"linear\"; out = 4; },"
	                    "{ name = \"s\"; type = \"add\"; in = (\"f\", \"$in\"); } ); }; };"
	                    "layers = ( { name = \"x\"; block = \"res\"; }, { name = \"y\"; block = \"res\"; in = [\"input\"]; },"
	                    "{ type = \"add\"; in = [\"x\", \"y\"]; }, { type = \"linear\"; out = 10; } ); };",
	         NULL, 0);
	if (!c)
		return;
	CHECK_MSG(!strcmp(layers_text(c),
	                  "x.f linear 4\nx.s add <- x.f,input\ny.f linear 4 <- input\ny.s add <- y.f,input\n2 add <- x.s,y.s\n3 linear 10\n"),
	          "got:\n%s", layers_text(c));
	gt_conf_free(c);
}

/* A kernel of two numbers from parameters: whole arrays, and arrays of parameters. */
TEST(conf_block_arrays)
{
	struct gt_conf *c = load(DATA TRAIN "model = { input = [1, 9, 9]; blocks = { c = { params = [\"k\", \"h\", \"w\"]; layers = ("
	                                    "{ type = \"conv2d\"; out = 2; kernel = \"$k\"; }, { type = \"conv2d\"; out = 2; kernel = [\"$h\", "
	                                    "\"$w\"]; padding = (1, \"$h\"); } ); }; };"
	                                    "layers = ( { name = \"x\"; block = \"c\"; k = [1, 2]; h = 3; w = 4; } ); };",
	                         NULL, 0);
	if (!c)
		return;
	const struct gt_attr_conv2d *a = c->model.layers[0].attr, *b = c->model.layers[1].attr;
	CHECK(a->kernel[0] == 1 && a->kernel[1] == 2 && b->kernel[0] == 3 && b->kernel[1] == 4 && b->padding[0] == 1 && b->padding[1] == 3);
	gt_conf_free(c);
}

TEST(conf_set)
{
	static const char *const sets[] = {"train.epochs=7",
	                                   "name=2024",
	                                   "data.mean=[0.5]",
	                                   "model.layers[1].out=64",
	                                   "parallel.mode=ddp",
	                                   "parallel.nproc=2",
	                                   "checkpoint.dir=runs/a b",
	                                   "train.optimizer.lr=1",
	                                   "data.augment[0]={ type = \"hflip\"; }",
	                                   "data.augment[0].p=0.25",
	                                   "log.tensorboard=true",
	                                   "train.optimizer.type=\"adam\"",
	                                   "data.root=",
	                                   "model.layers[2]={ type = \"relu\"; }",
	                                   "data.std=0.25",
	                                   "data.batch_per_rank=16",
	                                   "train.epochs=8"};
	struct gt_conf *c = load(DATA MODEL "train = { epochs = 1; optimizer = { type = \"sgd\"; lr = 0.1; momentum = 0.9; }; };", sets,
	                         sizeof sets / sizeof *sets);
	if (!c)
		return;
	CHECK(c->train.epochs == 8 && !strcmp(c->name, "2024") && c->data.mean.n == 1 && c->data.mean.v[0] == 0.5 && c->data.std.v[0] == 0.25);
	CHECK(c->model.nlayers == 3 && ((struct gt_attr_linear *)c->model.layers[1].attr)->out == 64 &&
	      c->model.layers[2].op->code == GT_OP_RELU);
	CHECK(c->parallel.mode == GT_MODE_DDP && c->parallel.nproc == 2 && !strcmp(c->checkpoint.dir, "runs/a b") &&
	      c->train.optimizer.lr == 1);
	CHECK(c->data.naugment == 1 && c->data.augment[0].p == 0.25 && c->log.tensorboard && !c->data.root[0]);
	CHECK(c->train.optimizer.type == GT_OPT_ADAM && c->train.optimizer.momentum == 0); /* the file's momentum went with its sgd */
	CHECK(c->data.batch == 0 && c->data.batch_per_rank == 16);
	check_text(c);
	gt_conf_free(c);
}

TEST(conf_set_errors)
{
	static const struct {
		const char *set, *want;
	} cases[] = {
	    {"train.epochs=x", "--set train.epochs=x: train.epochs: expected an integer ≥ 0, got \"x\""},
	    {"train.epochs=-1", "--set train.epochs=-1: train.epochs: expected an integer ≥ 0, got -1"},
	    {"train.epochs=1.5", "--set train.epochs=1.5: train.epochs: expected an integer ≥ 0, got 1.5"},
	    {"train.epochs=99999999999999999999",
	     "--set train.epochs=99999999999999999999: train.epochs: expected an integer ≥ 0, got \"99999999999999999999\""},
	    {"train.epochs=", "--set train.epochs=: train.epochs: expected an integer ≥ 0, got \"\""},
	    {"train.epoch=1", "--set train.epoch=1: train.epoch: unknown key; did you mean train.epochs?"},
	    {"trian.epochs=1", "--set trian.epochs=1: trian: unknown key; did you mean train?"},
	    {"train=5", "--set train=5: train: expected a group { }, got 5"},
	    {"train.epochs.x=5", "--set train.epochs.x=5: train.epochs: expected a group { }, got 1"},
	    {"train", "--set train: expected KEY=VALUE"},
	    {"=5", "--set =5: expected KEY=VALUE"},
	    {"train..epochs=5", "--set train..epochs=5: expected KEY=VALUE, with a key as in data.mean or model.layers[0].out"},
	    {"5=5", "--set 5=5: expected KEY=VALUE, with a key as in data.mean or model.layers[0].out"},
	    {"model.layers[3].out=5", "--set model.layers[3].out=5: model.layers: expected an index ≤ 2, got 3"},
	    {"model.layers[x].out=5", "--set model.layers[x].out=5: model.layers: expected an index from 0 to 2 in brackets"},
	    {"model.layers.0.out=5",
	     "--set model.layers.0.out=5: model.layers: expected an index as in model.layers[0], got none for a list ( ) of 2"},
	    {"model.layers[2].out=5",
	     "--set model.layers[2].out=5: model.layers[2].type: expected the type of this layer, or block = \"…\", got neither"},
	    {"model.layers[1]out=5", "--set model.layers[1]out=5: expected KEY=VALUE, with a key as in data.mean or model.layers[0].out"},
	    {"model.layers[1].out=ten", "--set model.layers[1].out=ten: model.layers[1].out: expected an integer ≥ 1, got \"ten\""},
	    {"model[0]=5", "--set model[0]=5: model: expected a list ( ) or array [ ], got a group { }"},
	    {"data.mean=[0.5", "--set data.mean=[0.5: the bracket `[` is not closed; expected a `]`"},
	    {"data.mean=[0, 0.5]", "--set data.mean=[0, 0.5]: expected values of one type in an array [ ], got integers and floats; "
	                           "write 1.0 instead of 1"},
	    {"data.mean=[1]; seed = 5", "--set data.mean=[1]; seed = 5: expected exactly one value after ="},
	    {"name=a\nb", "--set …: expected a value of UTF-8 text without control characters, got a value with a control character"},
	    {"name=\"a\\x00b\"",
	     "--set name=\"a\\x00b\": expected a string of UTF-8 text without control characters, got a string with a control character"},
	    {"data.augment=({ type = \"hflip\"; p = 2; })",
	     "--set data.augment=({ type = \"hflip\"; p = 2; }): data.augment[0].p: expected a number ≥ 0 and ≤ 1, got 2"},
	    {"name={ @include \"x\" }",
	     "--set name={ @include \"x\" }: expected no @include, because this text is not read from a file"},
	    {"train.optimizer.alpha=0.9", "--set train.optimizer.alpha=0.9: train.optimizer.alpha: train.optimizer.type = "
	                                  "\"sgd\" does not use this key; rmsprop does"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct gt_conf *c;
		struct gt_err e = {0};
		enum gt_code code = gt_conf_load_text("t.cfg", BASE, strlen(BASE), &cases[i].set, 1, &c, &e);
		CHECK_MSG(code == GT_ECONFIG && !c && !strcmp(e.msg, cases[i].want), "%s gave %d: %s", cases[i].set, code, e.msg);
		gt_conf_free(c);
	}
}

/* Words of other trainers come before similar words: a hint that is followed must give what its reader meant. */
TEST(conf_synonyms)
{
	static const struct {
		const char *set, *end;
	} cases[] = {
	    {"train.loss=mae", "; did you mean \"l1\"?"},
	    {"train.loss=MAE", "; did you mean \"l1\"?"},
	    {"train.loss=l1_loss", "; did you mean \"l1\"?"},
	    {"train.loss=ce", "; did you mean \"cross_entropy\"?"},
	    {"train.loss=categorical_crossentropy", "; did you mean \"cross_entropy\"?"},
	    {"train.loss=bce_with_logits", "; did you mean \"bce\"?"},
	    {"train.loss=BCELoss", "; write \"bce\", which takes logits, and remove the sigmoid at the end of the model"},
	    {"train.loss=rmse", "; write \"mse\", which has the same minimum over all data; a root is not a mean over samples, so batches "
	                        "cannot be averaged"},
	    {"train.loss=dice", "; gtrain does not have this loss"},
	    {"train.loss=mxe", ", got \"mxe\"; did you mean \"mse\"?"},
	    {"train.loss=dyce", ", got \"dyce\""},
	    {"train.optimizer.type=adamax", "; gtrain does not have this optimizer"},
	    {"train.groups=({ match = \"*\"; optimizer = { type = \"adamax\"; }; })", "; gtrain does not have this optimizer"},
	    {"train.schedule.type=reduce_on_plateau", "; did you mean \"plateau\"?"},
	    {"train.schedule.type=CosineAnnealingWarmRestarts", "; did you mean \"cosine_restarts\"?"},
	    {"train.patience=1", "train.patience: unknown key; did you mean train.early_stop.patience?"},
	    {"patience=1", "patience: unknown key; did you mean train.early_stop.patience?"},
	    {"optimizer.lr=1", "optimizer: unknown key; did you mean train.optimizer.lr?"},
	    {"optimizer={ lr = 1; type = \"sgd\"; }", "optimizer: unknown key; did you mean train.optimizer?"},
	    {"schedule.type=step", "schedule: unknown key; did you mean train.schedule.type?"},
	    {"layers=1", "layers: unknown key; did you mean model.layers?"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct gt_conf *c;
		struct gt_err e = {0};
		enum gt_code code = gt_conf_load_text("t.cfg", BASE, strlen(BASE), &cases[i].set, 1, &c, &e);
		size_t n = strlen(e.msg), end = strlen(cases[i].end);
		CHECK_MSG(code == GT_ECONFIG && !c && n > end && !strcmp(e.msg + n - end, cases[i].end), "%s gave %d: %s", cases[i].set,
		          code, e.msg);
		gt_conf_free(c);
	}
}

/* Every transform keeps its keys and defaults when the resolved config is loaded again. */
TEST(conf_transforms)
{
	const char *set = "data.augment=({ type = \"random_resized_crop\"; size = 40; ratio = [0.5, 2.0]; interpolation = \"bicubic\"; }, "
	                  "{ type = \"resize\"; size = 30; }, { type = \"center_crop\"; size = [28, 28]; }, { type = \"vflip\"; p = 0.25; }, "
	                  "{ type = \"rotate\"; degrees = 15; fill = 0.5; }, { type = \"color_jitter\"; hue = 0.1; }, "
	                  "{ type = \"random_erasing\"; random = true; }, { type = \"rand_augment\"; })";
	const char *other = "data.augment=({ type = \"grayscale\"; }, { type = \"trivial_augment\"; interpolation = \"bilinear\"; }, "
	                    "{ type = \"resize\"; size = [28, 28]; })";
	const char *mean = "data.mean=[0.25]";
	struct gt_conf *c = load(BASE, (const char *[]){set, mean}, 2), *o = load(BASE, &other, 1);
	if (!c || !o)
		return;
	const struct gt_transform *t = c->data.augment, *u = o->data.augment;
	CHECK(c->data.naugment == 8 && o->data.naugment == 3);
	CHECK(t[0].type == GT_TF_RANDOM_RESIZED_CROP && t[0].size[0] == 40 && t[0].size[1] == 0);
	CHECK(t[0].scale[0] == 0.08 && t[0].scale[1] == 1 && t[0].ratio[0] == 0.5 && t[0].ratio[1] == 2);
	CHECK(t[0].interpolation == GT_INTERP_BICUBIC);
	CHECK(t[1].size[0] == 30 && t[1].size[1] == 0 && t[1].interpolation == GT_INTERP_BILINEAR);
	CHECK(t[2].size[1] == 28 && t[3].p == 0.25);
	CHECK(t[4].degrees == 15 && t[4].fill.n == 1 && t[4].fill.v[0] == 0.5 && t[4].interpolation == GT_INTERP_NEAREST);
	CHECK(t[5].hue == 0.1 && t[5].brightness == 0);
	CHECK(t[6].random && t[6].p == 0.5 && t[6].scale[1] == 0.33 && t[6].ratio[0] == 0.3 && t[6].mean.n == 1 && t[6].mean.v[0] == 0.25);
	CHECK(t[7].ops == 2 && t[7].magnitude == 9 && t[7].bins == 31);
	CHECK(u[0].p == 0.1 && u[1].bins == 31 && u[1].interpolation == GT_INTERP_BILINEAR && u[2].size[0] == 28 && u[2].size[1] == 28);
	check_text(c);
	check_text(o);
	for (int i = 0; i < 2; i++) {
		struct gt_conf *from = i ? o : c, *again;
		struct gt_err e;
		CHECK_OK(gt_conf_load_text("again", from->text, strlen(from->text), NULL, 0, &again, &e), e);
		for (int k = 0; again && k < from->data.naugment; k++) {
			const struct gt_transform *a = &from->data.augment[k], *b = &again->data.augment[k];
			CHECK_MSG(a->type == b->type && a->size[0] == b->size[0] && a->size[1] == b->size[1] && a->scale[0] == b->scale[0] &&
			              a->ratio[1] == b->ratio[1] && a->interpolation == b->interpolation && a->p == b->p && a->hue == b->hue &&
			              a->bins == b->bins && a->fill.n == b->fill.n && a->random == b->random && a->mean.n == b->mean.n,
			          "transform %d", k);
		}
		gt_conf_free(again);
	}
	gt_conf_free(c);
	gt_conf_free(o);
}

TEST(conf_includes)
{
	char path[512], sub[512];
	struct gt_conf *c;
	struct gt_err e;
	snprintf(sub, sizeof sub, "%s/sub", test_tmpdir());
	mkdir(sub, 0700);
	file("sub/data.inc", "\xEF\xBB\xBF\r\nname = \"mnist\";\r\n  @include \"deeper.inc\"   # with a comment\r\n");
	file("sub/deeper.inc", "batch = 64");
	file("sub/layers.inc", "{ type = \"flatten\"; },\n");
	snprintf(path, sizeof path, "%s",
	         file("main.cfg",
	              "data = {\n@include \"sub/data.inc\"\n};\n" TRAIN
	              "model = { input = [1, 28, 28]; layers = (\n\t@include \"sub/layers.inc\"\n{ type = \"linear\"; out = 0; } ); };\n"));
	CHECK(gt_conf_load(path, NULL, 0, &c, &e) == GT_ECONFIG);
	char want[600];
	snprintf(want, sizeof want, "%s:7: model.layers[1].out: expected an integer ≥ 1, got 0", path);
	CHECK_MSG(!strcmp(e.msg, want), "%s", e.msg);
	const char *set = "model.layers[1].out=10";
	CHECK_OK(gt_conf_load(path, &set, 1, &c, &e), e);
	if (c) {
		CHECK(!strcmp(c->data.name, "mnist") && c->data.batch == 64 && c->model.nlayers == 2);
		CHECK(strstr(c->model.layers[0].file, "/sub/layers.inc") && c->model.layers[0].line == 1 && !strstr(c->text, "include"));
		check_text(c);
	}
	gt_conf_free(c);
	/* A checkpoint's config includes nothing. */
	static const char text[] = "@include \"main.cfg\"\n";
	CHECK(gt_conf_load_text("t.cfg", text, strlen(text), NULL, 0, &c, &e) == GT_ECONFIG &&
	      !strcmp(e.msg, "t.cfg:1: expected no @include, because this text is not read from a file"));
}

static void expect_bad(const char *path, enum gt_code code, const char *part)
{
	struct gt_conf *c;
	struct gt_err e = {0};
	enum gt_code got = gt_conf_load(path, NULL, 0, &c, &e);
	CHECK_MSG(got == code && !c && strstr(e.msg, part), "%s: %d: %s", path, got, e.msg);
	gt_conf_free(c);
}

TEST(conf_files_that_are_none)
{
	char path[512];
	snprintf(path, sizeof path, "%s/absent.cfg", test_tmpdir());
	expect_bad(path, GT_ENOINPUT, "No such file");
	expect_bad(test_tmpdir(), GT_ENOINPUT, "it is a directory; `gtrain resume DIR` continues a run");
	expect_bad("/dev/null", GT_ENOINPUT, "it is not a regular file");
	snprintf(path, sizeof path, "%s/fifo", test_tmpdir());
	CHECK(!mkfifo(path, 0600));
	expect_bad(path, GT_ENOINPUT, "it is not a regular file"); /* and does not wait for a writer */
	expect_bad(file("inc_fifo.cfg", "@include \"fifo\"\n" BASE), GT_ECONFIG, "inc_fifo.cfg:1: @include: cannot read ");
	expect_bad(file("inc_dir.cfg", "\n@include \"/tmp\"\n" BASE), GT_ECONFIG,
	           "inc_dir.cfg:2: @include: cannot read /tmp: it is a directory");
	/* nine files that each include the next one ten times: bounded by the number of files */
	for (int i = 0; i < 9; i++) {
		char name[32], text[1024] = "";
		snprintf(name, sizeof name, "bomb%d.inc", i);
		for (int k = 0; k < 10 && i < 8; k++)
			snprintf(text + strlen(text), sizeof text - strlen(text), "@include \"bomb%d.inc\"\n", i + 1);
		file(name, text);
	}
	expect_bad(file("bomb.cfg", "@include \"bomb0.inc\"\n" BASE), GT_ECONFIG,
	           "@include: expected files that are nested at most 8 deep, got more");
	expect_bad(file("bomb2.cfg", "@include \"bomb2.inc\"\n" BASE), GT_ECONFIG, "@include: expected at most 64 files in a config, got more");
	snprintf(path, sizeof path, "%s/large.cfg", test_tmpdir());
	FILE *f = fopen(path, "w");
	for (int i = 0; f && i < (4 << 20) / 16 + 1; i++)
		fputs("# sixteen bytes\n", f);
	if (f)
		fclose(f);
	expect_bad(path, GT_ECONFIG, "large.cfg:1: expected a config of at most 4 MiB, got a larger one");
}

/* Limits that keep libconfig's quadratic and recursive parts small. */
TEST(conf_limits)
{
	static const struct {
		const char *head, *item, *tail;
		int n;
		const char *want;
	} cases[] = {
	    {"a = {", "k%d = 1;", "};", 5000, "t.cfg:1: expected at most 4096 keys in one group"},
	    {"a = [", "%d,", "];", 70000, "t.cfg:1: expected at most 65536 elements"},
	    {"a = (", "(1,%d),", ");", 60000, NULL},
	    {"a = (", "[1,2,3,4,5,6,7,8,9,%d],", ");", 60000, "t.cfg:1: expected at most 500000 names and values"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char *text = NULL;
		size_t n;
		FILE *f = open_memstream(&text, &n);
		fputs(cases[i].head, f);
		for (int k = 0; k < cases[i].n; k++)
			fprintf(f, cases[i].item, k);
		fputs(cases[i].tail, f);
		fclose(f);
		struct gt_conf *c;
		struct gt_err e = {0};
		enum gt_code code = gt_conf_load_text("t.cfg", text, n, NULL, 0, &c, &e);
		const char *want = cases[i].want ? cases[i].want : "t.cfg:1: a: unknown key";
		CHECK_MSG(code == GT_ECONFIG && !strncmp(e.msg, want, strlen(want)), "%d: %s", code, e.msg);
		free(text);
	}
}

TEST(conf_shipped_configs)
{
	static const struct {
		const char *name;
		int64_t learned;
	} known[] = {/* elements that PyTorch's models of the same shape have */
	             {"fmnist_mlp", 669706},       {"tutorial_mlp_sgd", 669706}, {"tutorial_mlp_adam", 199210}, {"lenet", 61706},
	             {"resnet18_cifar", 11173962}, {"resnet20_cifar", 272474},   {"vgg11_cifar", 9231114},      {"alexnet_cifar", 23272266}};
	char pattern[512];
	glob_t g;
	size_t found = 0;
	snprintf(pattern, sizeof pattern, "%s/configs/*.cfg", test_source());
	CHECK(!glob(pattern, 0, NULL, &g));
	CHECK(g.gl_pathc >= 10);
	for (size_t i = 0; i < g.gl_pathc; i++) {
		struct gt_conf *c;
		struct gt_err e;
		struct gt_graph *graph;
		struct gt_loss_spec loss;
		const char *name = strrchr(g.gl_pathv[i], '/') + 1;
		CHECK_OK(gt_conf_load(g.gl_pathv[i], NULL, 0, &c, &e), e);
		if (!c)
			continue;
		check_text(c);
		CHECK_OK(gt_conf_loss(c, &loss, &e), e);
		static const int64_t codes[5] = {9, 9, 9, 9, 9};
		for (int k = 0; k < c->model.ninputs; k++) { /* what the data would say of inputs whose shape the config leaves open */
			struct gt_model_input *in = (struct gt_model_input *)(uintptr_t)&c->model.inputs[k];
			if (!in->shape[0] && in->type != GT_INPUT_LENGTHS)
				in->shape[0] = 5, in->shape[1] = in->shape[2] = 1;
			if ((in->type == GT_INPUT_CODES || in->type == GT_INPUT_TOKENS) && !in->codes)
				in->codes = codes;
		}
		enum gt_code code = gt_graph_build(c->arena, &c->model, 4, GT_F32, true, &graph, &e);
		CHECK_OK(code, e);
		for (size_t k = 0; code == GT_OK && k < sizeof known / sizeof *known; k++) {
			if (strncmp(name, known[k].name, strlen(known[k].name)) || name[strlen(known[k].name)] != '.')
				continue;
			found++;
			CHECK_MSG(gt_graph_num_params(graph) == known[k].learned, "%s: %lld elements", name, (long long)gt_graph_num_params(graph));
		}
		gt_conf_free(c);
	}
	CHECK(found == sizeof known / sizeof *known);
	globfree(&g);
}

/* The names of a ResNet are torchvision's. */
TEST(conf_resnet_names)
{
	static const char *const want[] = {"conv1.weight",
	                                   "bn1.weight",
	                                   "layer1.0.conv1.weight",
	                                   "layer1.1.bn2.running_var",
	                                   "layer2.0.downsample.0.weight",
	                                   "layer2.0.downsample.1.num_batches_tracked",
	                                   "layer4.1.conv2.weight",
	                                   "fc.bias"};
	char path[512];
	struct gt_conf *c;
	struct gt_err e;
	struct gt_graph *g;
	snprintf(path, sizeof path, "%s/configs/resnet18_cifar.cfg", test_source());
	CHECK_OK(gt_conf_load(path, NULL, 0, &c, &e), e);
	if (!c)
		return;
	CHECK_OK(gt_graph_build(c->arena, &c->model, 4, GT_F32, true, &g, &e), e);
	for (size_t k = 0; g && k < sizeof want / sizeof *want; k++) {
		bool there = false;
		for (int i = 0; i < g->nparams; i++)
			there |= !strcmp(g->params[i].name, want[k]);
		CHECK_MSG(there, "no parameter %s", want[k]);
	}
	CHECK(!g || g->nparams == 122); /* len(torchvision's resnet18().state_dict()), where the stem's shapes differ but not its entries */
	gt_conf_free(c);
}

RUN_TESTS()
