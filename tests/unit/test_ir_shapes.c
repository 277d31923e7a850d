/* What the rows infer: sizes as PyTorch's, state-dict names, arithmetic, gradients' nodes, and the words of refusals. */
#include "test.h"
#include "ir_net.h"

static char text[1 << 16];

#define CHECK_TEXT(got, want) CHECK_MSG(!strcmp(got, want), "expected\n%s\ngot\n%s", want, got)
#define CHECK_ERROR(t, train, want)                                                                                                        \
	do {                                                                                                                                   \
		CHECK(net_build(t, 4, GT_F32, train) == GT_ECONFIG && (t)->e.code == GT_ECONFIG);                                                  \
		CHECK_TEXT((t)->e.msg, want);                                                                                                      \
	} while (0)

TEST(sizes_are_pytorchs)
{
	char path[512], line[512];
	snprintf(path, sizeof path, "%s/tests/golden/shapes.txt", test_source());
	FILE *f = fopen(path, "r");
	int cases = 0;
	CHECK_MSG(f, "cannot open %s", path);
	while (f && fgets(line, sizeof line, f)) {
		char type[32], keys[128], got[32] = "error\n", *want = strstr(line, "> ");
		int64_t h, w;
		int at;
		if (*line == '#' || !want || sscanf(line, "%31s %ld %ld %n", type, &h, &w, &at) != 3)
			continue;
		snprintf(keys, sizeof keys, "%.*s", (int)(want - line - at), line + at);
		struct net t;
		net_open(&t, 1, h, w);
		net_add(&t, "x", type, keys, NULL);
		enum gt_code code = net_build(&t, 1, GT_F32, false);
		if (code == GT_OK) {
			const struct gt_tdesc *y = gt_graph_desc(t.g, t.g->output);
			snprintf(got, sizeof got, "%ld %ld\n", y->dim[2], y->dim[3]);
		}
		CHECK_MSG(code == GT_OK || code == GT_ECONFIG, "%s", t.e.msg);
		CHECK_MSG(!strcmp(got, want + 2), "%sgot %s", line, got);
		net_close(&t);
		cases++;
	}
	if (f)
		fclose(f);
	CHECK(cases == 240);
	printf("# shapes compared with PyTorch's: %d\n", cases);
}

/* Adds a layer "<block>.<name>" (or "<name>"); returns the name. */
static const char *add(struct net *t, const char *block, const char *name, const char *type, const char *in, const char *keys)
{
	const char *full = block ? gt_arena_printf(t->a, "%s.%s", block, name) : name;
	net_add(t, full, type, keys, in);
	return full;
}

/* A CIFAR ResNet of basic blocks, n a stage, stages of the widths given; torchvision's names. */
static void resnet(struct net *t, const int *width, int stages, int n)
{
	char keys[80];
	net_open(t, 3, 32, 32);
	snprintf(keys, sizeof keys, "out=%d kernel=3 padding=1 bias=0", width[0]);
	add(t, NULL, "conv1", "conv2d", NULL, keys);
	add(t, NULL, "bn1", "batchnorm2d", NULL, NULL);
	const char *x = add(t, NULL, "relu", "relu", NULL, NULL);
	for (int s = 0; s < stages; s++) {
		for (int b = 0; b < n; b++) {
			const char *block = gt_arena_printf(t->a, "layer%d.%d", s + 1, b);
			int stride = s && !b ? 2 : 1;
			snprintf(keys, sizeof keys, "out=%d kernel=3 padding=1 bias=0 stride=%d", width[s], stride);
			add(t, block, "conv1", "conv2d", x, keys);
			add(t, block, "bn1", "batchnorm2d", NULL, NULL);
			add(t, block, "relu1", "relu", NULL, NULL);
			snprintf(keys, sizeof keys, "out=%d kernel=3 padding=1 bias=0", width[s]);
			add(t, block, "conv2", "conv2d", NULL, keys);
			const char *main = add(t, block, "bn2", "batchnorm2d", NULL, NULL);
			snprintf(keys, sizeof keys, "out=%d stride=%d", width[s], stride);
			const char *side = add(t, block, "downsample", "shortcut", x, keys);
			add(t, block, "add", "add", gt_arena_printf(t->a, "%s %s", main, side), NULL);
			x = add(t, block, "relu2", "relu", NULL, NULL);
		}
	}
	add(t, NULL, "avgpool", "global_avgpool", NULL, NULL);
	add(t, NULL, "flatten", "flatten", NULL, NULL);
	add(t, NULL, "fc", "linear", NULL, "out=10");
}

static double contractions(const struct gt_graph *g, bool backward)
{
	double sum = 0;
	for (int i = 0; i < g->nnodes; i++)
		if (g->nodes[i].backward == backward &&
		    (!strncmp(gt_op_name(g->nodes[i].op), "conv2d", 6) || !strncmp(gt_op_name(g->nodes[i].op), "linear", 6)))
			sum += gt_node_flops(g, &g->nodes[i]);
	return sum;
}

TEST(resnet20)
{
	struct net t;
	resnet(&t, (int[]){16, 32, 64}, 3, 3);
	CHECK_OK(net_train(&t, 8, GT_BF16), t.e);
	size_t n = 0;
	for (int i = 0; i < t.g->nparams; i++) {
		char shape[96];
		const struct gt_param *p = &t.g->params[i];
		if (i < 7 || strstr(p->name, "layer2.0.") || !strncmp(p->name, "fc", 2))
			n += (size_t)snprintf(text + n, sizeof text - n, "%s %s\n", p->name, gt_tdesc_text(&p->desc, shape, sizeof shape));
	}
	CHECK_TEXT(
	    text,
	    "conv1.weight [16, 3, 3, 3]\nbn1.weight [16]\nbn1.bias [16]\nbn1.running_mean [16]\nbn1.running_var [16]\n"
	    "bn1.num_batches_tracked []\nlayer1.0.conv1.weight [16, 16, 3, 3]\n"
	    "layer2.0.conv1.weight [32, 16, 3, 3]\nlayer2.0.bn1.weight [32]\nlayer2.0.bn1.bias [32]\nlayer2.0.bn1.running_mean [32]\n"
	    "layer2.0.bn1.running_var [32]\nlayer2.0.bn1.num_batches_tracked []\n"
	    "layer2.0.conv2.weight [32, 32, 3, 3]\nlayer2.0.bn2.weight [32]\nlayer2.0.bn2.bias [32]\nlayer2.0.bn2.running_mean [32]\n"
	    "layer2.0.bn2.running_var [32]\nlayer2.0.bn2.num_batches_tracked []\n"
	    "layer2.0.downsample.0.weight [32, 16, 1, 1]\nlayer2.0.downsample.1.weight [32]\nlayer2.0.downsample.1.bias [32]\n"
	    "layer2.0.downsample.1.running_mean [32]\nlayer2.0.downsample.1.running_var [32]\nlayer2.0.downsample.1.num_batches_tracked []\n"
	    "fc.weight [10, 64]\nfc.bias [10]\n");
	/* torch: sum(p.numel()) of the ResNet-20 with projection shortcuts (269,722 without, + 2,752 for two projections and their norms) */
	CHECK_MSG(gt_graph_num_params(t.g) == 272474, "%ld", gt_graph_num_params(t.g));
	CHECK(t.g->params[5].desc.dtype == GT_I64 && t.g->params[4].desc.dtype == GT_F32);
	CHECK_OK(net_build(&t, 3, GT_F32, false), t.e); /* another batch, another purpose: the same parameters */
	CHECK(t.g->nparams == 128 && !strcmp(t.g->params[127].name, "fc.bias"));
	net_close(&t);
}

TEST(flops_of_resnet18)
{
	struct net t;
	resnet(&t, (int[]){64, 128, 256, 512}, 4, 2);
	CHECK_OK(net_build(&t, 1, GT_F32, false), t.e);
	/* 555.42 M multiply-adds; counters that add two for each element of a batch normalisation, as ptflops, say 0.5567 G */
	CHECK_MSG(contractions(t.g, false) == 2.0 * 555422720, "%.0f", contractions(t.g, false));
	double norms = 0;
	for (int i = 0; i < t.g->nnodes; i++)
		if (t.g->nodes[i].op->code == GT_OP_BATCHNORM)
			norms += gt_node_flops(t.g, &t.g->nodes[i]);
	CHECK_MSG(norms == 2 * 614400.0, "%.0f", norms);
	CHECK(gt_graph_num_params(t.g) == 11173962);
	CHECK_OK(net_train(&t, 16, GT_F32), t.e);
	double first = 16 * 2.0 * 1769472; /* no dx for the first convolution */
	CHECK(contractions(t.g, true) == 2 * contractions(t.g, false) - first);
	net_close(&t);
}

TEST(gradients_of_rows)
{
	struct net t;
	net_open(&t, 3, 8, 8);
	net_add(&t, "conv", "conv2d", "out=4 kernel=3 padding=1 bias=0", NULL);
	net_add(&t, "bn", "batchnorm2d", NULL, NULL);
	net_add(&t, "max", "maxpool2d", "kernel=2", NULL);
	net_add(&t, "square", "mul", NULL, "max max");
	net_add(&t, "avg", "avgpool2d", "kernel=3 stride=2 padding=1", "max");
	net_add(&t, "up", "adaptive_maxpool2d", "out=2", "square");
	net_add(&t, "cat", "concat", NULL, "avg up");
	net_add(&t, "ln", "layernorm", "affine=0", NULL);
	net_add(&t, "gelu", "gelu", NULL, NULL);
	net_add(&t, "drop", "dropout", "p=0.1", NULL);
	net_add(&t, "flat", "flatten", NULL, NULL);
	net_add(&t, "soft", "log_softmax", NULL, NULL);
	CHECK_OK(net_train(&t, 4, GT_F32), t.e);
	CHECK_TEXT(net_text(&t, text, sizeof text),
	           "conv2d (conv): input conv.weight - -> conv\n"
	           "batchnorm2d (bn): conv bn.weight bn.bias bn.running_mean bn.running_var bn.num_batches_tracked -> bn bn.mean bn.rstd\n"
	           "maxpool2d (max): bn -> max max.idx\n"
	           "mul (square): max max -> square\n"
	           "avgpool2d (avg): max -> avg\n"
	           "adaptive_maxpool2d (up): square -> up up.idx\n"
	           "concat (cat): avg up -> cat\n"
	           "layernorm (ln): cat - - -> ln ln.mean ln.rstd\n"
	           "gelu (gelu): ln -> gelu\n"
	           "dropout (drop): gelu -> drop\n"
	           "flatten (flat): drop -> flat\n"
	           "log_softmax (soft): flat -> soft\n"
	           "cross_entropy (loss): soft target -> loss.metrics loss.dx\n"
	           "log_softmax.dx (soft): loss.dx soft -> soft.dx\n"
	           "flatten.dx (flat): soft.dx -> flat.dx\n"
	           "dropout (drop): flat.dx -> drop.dx\n"
	           "gelu.dx (gelu): drop.dx ln -> gelu.dx\n"
	           "layernorm.dx (ln): gelu.dx cat - ln.mean ln.rstd -> ln.dx - -\n"
	           "concat.dx (cat): ln.dx -> cat.dx0 cat.dx1\n"
	           "maxpool2d.dx (up): cat.dx1 up.idx -> up.dx\n"
	           "avgpool2d.dx (avg): cat.dx0 -> avg.dx\n"
	           "mul (square): up.dx max -> square.da\n"
	           "mul (square): up.dx max -> square.db\n"
	           "add (max.dy): square.db square.da avg.dx -> max.dy\n"
	           "maxpool2d.dx (max): max.dy max.idx -> max.dx\n"
	           "batchnorm.dx (bn): max.dx conv bn.weight bn.mean bn.rstd -> bn.dx bn.weight.grad bn.bias.grad\n"
	           "conv2d.dw (conv): bn.dx input -> conv.weight.grad -\n");
	const struct gt_attr_pool2d *max = t.g->nodes[2].attr, *up = t.g->nodes[19].attr, *down = t.g->nodes[24].attr;
	CHECK(max->stride[0] == 2 && max->stride[1] == 2 && down == max && up->kernel[0] == 0);
	CHECK(t.g->values[t.g->nodes[2].out[1]].desc.dtype == GT_I32 && t.g->values[t.g->nodes[2].out[1]].desc.layout.order[3] == 1);
	CHECK(!gt_node_alias(t.g, &t.g->nodes[9]) && !gt_node_alias(t.g, &t.g->nodes[10]) && !gt_node_alias(t.g, &t.g->nodes[15]));
	const struct gt_attr_dropout *drop = t.g->nodes[9].attr;
	CHECK(drop->train && drop->layer == 9 && t.g->nodes[15].attr == drop);
	CHECK_OK(net_build(&t, 4, GT_F32, false), t.e);
	CHECK(gt_node_alias(t.g, &t.g->nodes[9]));
	CHECK(!((const struct gt_attr_norm *)t.g->nodes[1].attr)->train);
	net_close(&t);
}

TEST(flatten_is_an_alias_where_orders_agree)
{
	static const struct {
		int64_t c, h, w;
		bool alias;
	} cases[] = {{3, 4, 4, false}, {1, 4, 4, true}, {7, 1, 1, true}, {2, 1, 2, false}};
	for (int i = 0; i < 4; i++) {
		struct net t;
		net_open(&t, cases[i].c, cases[i].h, cases[i].w);
		net_add(&t, "flat", "flatten", NULL, NULL);
		CHECK_OK(net_build(&t, 2, GT_F32, true), t.e);
		CHECK(gt_node_alias(t.g, &t.g->nodes[0]) == cases[i].alias);
		CHECK(gt_node_flops(t.g, &t.g->nodes[0]) == 0);
		net_close(&t);
	}
}

TEST(shortcut_stays_or_projects)
{
	struct net t;
	net_open(&t, 8, 6, 6);
	net_add(&t, "same", "shortcut", "out=8", NULL);
	net_add(&t, "down", "shortcut", "out=8 stride=2", NULL);
	CHECK_OK(net_build(&t, 2, GT_F32, false), t.e);
	CHECK_TEXT(
	    net_text(&t, text, sizeof text),
	    "identity (same): input -> same\n"
	    "conv2d (down.0): same down.0.weight - -> down.0\n"
	    "batchnorm2d (down.1): down.0 down.1.weight down.1.bias down.1.running_mean down.1.running_var down.1.num_batches_tracked -> "
	    "down.1 down.1.mean down.1.rstd\n");
	CHECK(t.g->nodes[2].layer == 1 && gt_node_alias(t.g, &t.g->nodes[0]));
	CHECK(!strcmp(t.g->params[0].layer, "down.0"));
	net_close(&t);
}

TEST(layer_settings_reach_parameters)
{
	struct net t;
	net_open(&t, 4, 6, 6);
	struct gt_layer_spec *s = net_add(&t, "bn", "batchnorm2d", "track_running_stats=0", NULL);
	s->lr_mul = 2;
	s->weight_decay = 0.5;
	s->init = GT_INIT_XAVIER_NORMAL;
	net_add(&t, "conv", "conv2d", "out=4 kernel=1 groups=2", NULL);
	t.m.init = GT_INIT_KAIMING_UNIFORM;
	CHECK_OK(net_build(&t, 2, GT_F32, false), t.e);
	const struct gt_param *p = t.g->params;
	CHECK(t.g->nparams == 4 && p[0].lr_mul == 2 && p[1].weight_decay == 0.5 && p[0].method == GT_INIT_XAVIER_NORMAL);
	CHECK(p[0].cls == GT_PARAM_NORM && p[2].cls == GT_PARAM_WEIGHT && p[3].cls == GT_PARAM_BIAS);
	CHECK(isnan(p[2].weight_decay) && p[2].lr_mul == 1 && p[2].method == GT_INIT_KAIMING_UNIFORM && p[2].fan_in == 2 && p[2].fan_out == 4);
	CHECK(((const struct gt_attr_norm *)t.g->nodes[0].attr)->train); /* no running statistics: those of the batch, always */
	net_close(&t);
}

TEST(refusals)
{
	static const struct {
		const char *type, *keys, *want;
	} cases[] = {
	    {"conv2d", "out=4 kernel=5 padding=1", "expected a height of at least 5 with padding (kernel 5, dilation 1), got 2 + 2 * 1"},
	    {"conv2d", "out=4 kernel=1,3 dilation=1,3", "expected a width of at least 7 with padding (kernel 3, dilation 3), got 3 + 2 * 0"},
	    {"conv2d", "out=4 kernel=1 groups=4", "expected input and output channels (out) to be multiples of groups = 4, got 6 and 4"},
	    {"maxpool2d", "kernel=3", "expected an input whose height including padding is at least 3, the size of the window, got 2 + 2 * 0"},
	    {"avgpool2d", "kernel=2 padding=2", "padding: expected at most half of the kernel, 1, got 2"},
	    {"batchnorm1d", NULL,
	     "expected an input of [batch, features], got [4, 6, 2, 3]: put a \"flatten\" layer before this layer"},
	    {"conv2d", "out=16777216 kernel=65535 padding=65535",
	     "x.weight: expected a tensor of 1 to 2^40 elements, got [16777216, 6, 65535, 65535]"},
	};
	struct net t;
	char want[512];
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		net_open(&t, 6, 2, 3);
		net_add(&t, "x", cases[i].type, cases[i].keys, NULL);
		snprintf(want, sizeof want, "net.cfg:1: model.layers[0] (x): %s", cases[i].want);
		CHECK_ERROR(&t, true, want);
		net_close(&t);
	}
	net_open(&t, 6, 1, 1);
	net_add(&t, "x", "conv2d", "out=1 kernel=1", NULL);
	CHECK_ERROR(&t, true, "net.cfg:1: model.layers[0] (x): expected an input of [batch, channels, height, width], got [4, 6]");
	t.m.nlayers = 0;
	net_add(&t, "x", "batchnorm1d", NULL, NULL);
	CHECK(net_build(&t, 1, GT_F32, true) == GT_ECONFIG && net_build(&t, 1, GT_F32, false) == GT_OK);
	net_close(&t);
}

TEST(layernorm_parameters_lie_as_activations)
{
	struct net t;
	net_open(&t, 6, 2, 3);
	net_add(&t, "four", "layernorm", NULL, NULL);
	net_add(&t, "flat", "flatten", NULL, NULL);
	net_add(&t, "two", "layernorm", "eps=1e-3", NULL);
	CHECK_OK(net_train(&t, 5, GT_BF16), t.e);
	const struct gt_tdesc *w = &t.g->params[0].desc, *grad = gt_graph_desc(t.g, t.g->params[1].grad), *v = &t.g->params[2].desc;
	CHECK(w->rank == 3 && w->dim[0] == 6 && w->dim[2] == 3 && w->layout.order[0] == 1 && w->layout.order[2] == 0 && w->dtype == GT_F32);
	CHECK(gt_tdesc_equal(w, grad));
	CHECK(v->rank == 1 && v->dim[0] == 36 && gt_tdesc_plain(v));
	CHECK(gt_graph_desc(t.g, t.g->nodes[0].out[1])->dim[0] == 5); /* one mean a sample */
	net_close(&t);
}

/* A long chain: names are hashed, arrays grow, nothing is quadratic. */
TEST(ten_thousand_layers)
{
	enum { N = 10000 };
	struct net t;
	net_open(&t, 8, 1, 1);
	struct gt_layer_spec *s = calloc(N, sizeof *s), one = *net_add(&t, "x", "linear", "out=8", NULL);
	char (*name)[12] = calloc(N, sizeof *name);
	for (int i = 0; i < N; i++) {
		snprintf(name[i], sizeof name[i], "%d", i);
		s[i] = one;
		s[i].name = name[i];
	}
	t.m.layers = s;
	t.m.nlayers = N;
	CHECK_OK(net_train(&t, 2, GT_F32), t.e);
	CHECK(t.g->nnodes == 3 * N && t.g->nparams == 2 * N);
	free(name);
	free(s);
	net_close(&t);
}

RUN_TESTS()
