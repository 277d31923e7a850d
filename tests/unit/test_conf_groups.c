/* train.groups: what is read, what is inherited, what --set changes, and the rates of every step. */
#include "conf/conf.h"
#include "session/optim.h"
#include "test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] =
    "schema = 1; data = { name = \"cifar10\"; batch = 10; };\n"
    "model = { input = [3, 32, 32]; layers = (\n"
    "  { name = \"conv1\"; type = \"conv2d\"; out = 4; kernel = 3; lr_mul = 3.0; },\n"
    "  { name = \"bn\"; type = \"batchnorm2d\"; },\n"
    "  { name = \"conv2\"; type = \"conv2d\"; out = 4; kernel = 3; bias = false; weight_decay = 0.5; },\n"
    "  { type = \"flatten\"; },\n"
    "  { name = \"fc\"; type = \"linear\"; out = 10; } ); };\n"
    "train = { epochs = 4; optimizer = { type = \"sgd\"; lr = 0.5; momentum = 0.9; weight_decay = 0.01; decay_norm = false; };\n"
    "  schedule = { type = \"polynomial\"; };\n"
    "  groups = ( { match = \"conv1.weight\"; frozen = true; },\n"
    "    { match = [\"*.bias\", \"nothing\"]; lr_mul = 2.0; weight_decay = 0.25; freeze_after = 2.0; },\n"
    "    { match = \"conv*\"; optimizer = { type = \"muon\"; lr = 0.02; }; schedule = { type = \"constant\"; }; },\n"
    "    { match = \"bn.w?ight\"; optimizer = { type = \"sgd\"; lr = 0.1; momentum = 0.9; weight_decay = 0.02; }; } ); };\n";

static struct gt_conf *load(const char *source, const char *set)
{
	struct gt_conf *c = NULL;
	struct gt_err e = {0};
	CHECK_OK(gt_conf_load_text("g.cfg", source, strlen(source), &set, set ? 1 : 0, &c, &e), e);
	return c;
}

/* The momenta of a step, and which optimizers have one: not sgd with the momentum 0, not a schedule of another type. */
TEST(momentum_of_one_cycle)
{
	static const char *const cycle = "train.schedule={type=\"onecycle\";}";
	struct gt_conf *c = load(text, cycle);
	struct gt_optim o;
	double m[GT_MAX_LR];
	gt_optim_init(&o, &c->train);
	gt_optim_momenta(&o, 0, 40, 10, m);
	CHECK(c->train.schedule.cycle_momentum && m[0] == 0.95 && m[2] == 0.95 && m[3] == 0 && m[4] == 0.95);
	gt_optim_momenta(&o, 11, 40, 10, m); /* the first part ends with step 0.3 * 40 - 1 */
	CHECK(fabs(m[0] - 0.85) < 1e-15 && m[4] == m[0] && m[5] == 0);
	gt_conf_free(c);
	static const struct {
		const char *optimizer;
		bool cycles;
	} cases[] = {{"{ type = \"sgd\"; lr = 0.1; }", false},
	             {"{ type = \"sgd\"; lr = 0.1; momentum = 0.5; }", true},
	             {"{ type = \"rmsprop\"; lr = 0.1; }", false},
	             {"{ type = \"adamw\"; lr = 0.1; }", true},
	             {"{ type = \"lion\"; lr = 0.1; }", true},
	             {"{ type = \"muon\"; lr = 0.1; }", true}};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		char set[200];
		struct gt_err e = {0};
		snprintf(set, sizeof set, "train.optimizer=%s", cases[i].optimizer);
		const char *const sets[] = {cycle, set, "train.groups=()"};
		CHECK_OK(gt_conf_load_text("g.cfg", text, strlen(text), sets, 3, &c, &e), e);
		CHECK_MSG(c->train.schedule.cycle_momentum == cases[i].cycles, "%s", cases[i].optimizer);
		struct gt_conf *again = load(c->text, NULL); /* the resolved text gives the same */
		CHECK(!strcmp(again->text, c->text));
		gt_conf_free(again);
		gt_conf_free(c);
	}
}

/* The config of a checkpoint from before there was cycle_momentum has the other keys of a cycle. */
TEST(cycle_of_an_old_checkpoint)
{
	struct gt_conf *now = load(text, "train.schedule={type=\"onecycle\";}"), *c = NULL;
	struct gt_err e = {0};
	char *old = strdup(now->text), *at = strstr(old, "cycle_momentum = true;");
	CHECK_MSG(at, "%s", now->text);
	memset(at, ' ', strlen("cycle_momentum = true;"));
	CHECK_OK(gt_conf_load_resolved("old.cfg", old, strlen(old), NULL, 0, &c, &e), e);
	CHECK(!c->train.schedule.cycle_momentum && c->train.schedule.type == GT_SCHED_ONECYCLE);
	gt_conf_free(c);
	CHECK_OK(gt_conf_load_resolved("old.cfg", old, strlen(old), (const char *[]){"train.schedule.cycle_momentum=true"}, 1, &c, &e), e);
	CHECK(c->train.schedule.cycle_momentum);
	gt_conf_free(c);
	/* a schedule that only --set makes a cycle is no old one */
	CHECK_OK(gt_conf_load_resolved("other.cfg", text, strlen(text), (const char *[]){"train.schedule.type=onecycle"}, 1, &c, &e), e);
	CHECK(c->train.schedule.cycle_momentum);
	gt_conf_free(c);
	gt_conf_free(now);
	free(old);
}

static const struct gt_param *param(const struct gt_graph *g, const char *name)
{
	for (int i = 0; i < g->nparams; i++)
		if (!strcmp(g->params[i].name, name))
			return &g->params[i];
	CHECK_MSG(false, "no parameter %s", name);
	return NULL;
}

TEST(groups_are_read)
{
	struct gt_conf *c = load(text, NULL);
	const struct gt_conf_group *g = c->train.group;
	CHECK(c->train.ngroups == 4 && c->model.ngroups == 4);
	CHECK(g[0].frozen && !g[0].own_optimizer);
	CHECK(g[1].match.n == 2 && g[1].lr_mul == 2 && g[1].weight_decay == 0.25 && g[1].freeze_after == 2 && g[1].optimizer.momentum == 0.9);
	CHECK(g[2].optimizer.type == GT_OPT_MUON && g[2].optimizer.momentum == 0.95 && g[2].optimizer.nesterov && g[2].optimizer.ns_steps == 5);
	CHECK(g[2].optimizer.eps == 1e-7 && g[2].optimizer.weight_decay == 0.1 && g[2].optimizer.ns.n == 3 && g[2].optimizer.ns.v[1] == -4.775);
	CHECK(g[2].optimizer.adjust == GT_MUON_ORIGINAL && !g[2].optimizer.normalize && isnan(g[2].weight_decay) && g[2].lr_mul == 1);
	CHECK(g[2].schedule.type == GT_SCHED_CONSTANT && g[3].schedule.type == GT_SCHED_POLYNOMIAL);
	gt_conf_free(c);
}

/* The resolved text gives the same again. */
TEST(groups_survive_the_resolved_text)
{
	struct gt_conf *a = load(text, NULL), *b = load(a->text, NULL);
	CHECK_MSG(!strcmp(a->text, b->text), "%s\n---\n%s", a->text, b->text);
	CHECK(b->train.ngroups == 4 && b->train.group[1].weight_decay == 0.25 && b->train.group[2].optimizer.type == GT_OPT_MUON);
	CHECK(b->train.group[2].schedule.type == GT_SCHED_CONSTANT && !b->train.group[1].own_optimizer);
	gt_conf_free(a);
	gt_conf_free(b);
}

TEST(first_match_has_a_parameter)
{
	struct gt_conf *c = load(text, NULL);
	struct gt_graph *g;
	struct gt_err e = {0};
	static const struct {
		const char *name;
		int group;
		bool frozen;
	} want[] = {{"conv1.weight", 0, true}, {"conv1.bias", 1, false},   {"bn.weight", 3, false},
	            {"bn.bias", 1, false},     {"conv2.weight", 2, false}, {"fc.weight", -1, false}};
	CHECK_OK(gt_graph_build(c->arena, &c->model, 2, GT_F32, true, &g, &e), e);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		const struct gt_param *p = param(g, want[i].name);
		CHECK_MSG(p && p->group == want[i].group && p->frozen == want[i].frozen, "%s: group %d", want[i].name, p ? p->group : -2);
	}
	CHECK(param(g, "bn.running_mean")->group == -1);
	gt_conf_free(c);
}

/* --set reaches into a group, and takes the keys of another type with it. */
TEST(groups_by_set)
{
	struct gt_conf *c = load(text, "train.groups[2].optimizer.lr=0.5");
	CHECK(c->train.group[2].optimizer.lr == 0.5);
	gt_conf_free(c);
	c = load(text, "train.optimizer.type=adam"); /* momentum of the file is gone */
	CHECK(c->train.optimizer.momentum == 0 && c->train.group[1].optimizer.type == GT_OPT_ADAM);
	gt_conf_free(c);
	c = load(text, "train.groups=()");
	CHECK(c->train.ngroups == 0);
	gt_conf_free(c);
}

TEST(calls_and_rates)
{
	struct gt_conf *c = load(text, NULL);
	struct gt_optim o;
	double lr[GT_MAX_LR];
	gt_optim_init(&o, &c->train);
	/* groups that differ in rate, decay and schedule only share a kernel */
	CHECK_MSG(o.ncalls == 2 && o.of[0] == 0 && o.of[2] == 0 && o.of[3] == 1 && o.of[4] == 0, "%d calls", o.ncalls);
	CHECK(o.call[0].row->code == GT_OP_SGD && o.call[1].row->code == GT_OP_MUON && o.nstates == 1 && gt_optim_fused_update(&o));
	gt_optim_rates(&o, 0, 40, 10, lr);
	CHECK(lr[0] == 0.5 && lr[2] == 0.5 && lr[3] == 0.02 && lr[4] == 0.1);
	gt_optim_rates(&o, 19, 40, 10, lr);
	CHECK(fabs(lr[0] - 0.5 * 21 / 40) < 1e-15 && lr[2] == lr[0] && lr[3] == 0.02 && fabs(lr[4] - 0.1 * 21 / 40) < 1e-15);
	gt_optim_rates(&o, 20, 40, 10, lr); /* two epochs are over */
	CHECK(lr[2] == 0 && lr[0] > 0 && lr[4] > 0);
	gt_conf_free(c);
}

/* Two ends of frozen_until make two phases; a parameter's own steps begin where its phase ends. */
TEST(phases)
{
	struct gt_conf *c = load(text, "train.groups=({match=\"conv1.*\";frozen_until=2.0;},{match=\"bn.*\";frozen_until=0.25;},"
	                               "{match=\"conv2.*\";frozen_until=2.0;},{match=\"fc.bias\";})");
	struct gt_optim o;
	double lr[GT_MAX_LR];
	gt_optim_init(&o, &c->train);
	o.per_epoch = 10;
	CHECK(o.nphases == 2 && o.phase[0].begin == 0 && o.phase[0].end == 0.25 && o.phase[1].begin == 0.25 && o.phase[1].end == 2);
	CHECK(gt_optim_steps(&o, 0.25) == 3 && gt_optim_steps(&o, 2) == 20);
	CHECK(gt_optim_frozen(&o, 0, 1) && gt_optim_frozen(&o, 1, 1) && !gt_optim_frozen(&o, 3, 1) && !gt_optim_frozen(&o, -1, 1));
	CHECK(gt_optim_frozen(&o, 2, 2) && !gt_optim_frozen(&o, 1, 2) && !gt_optim_frozen(&o, 0, 0));
	gt_optim_rates(&o, 2, 40, 10, lr);
	CHECK(lr[1] == 0 && lr[2] == 0 && lr[4] > 0);
	gt_optim_rates(&o, 3, 40, 10, lr);
	CHECK(lr[1] == 0 && lr[2] > 0);
	gt_optim_rates(&o, 20, 40, 10, lr);
	CHECK(lr[1] > 0 && lr[3] > 0);
	gt_conf_free(c);
}

/* Groups that begin late, end early, and both: a rate is 0 exactly where a phase freezes the group. Nothing is frozen from 1.25 to 2. */
TEST(phases_of_both_keys)
{
	struct gt_conf *c = load(text, "train.groups=({match=\"conv1.*\";freeze_after=2.0;},"
	                               "{match=\"bn.*\";frozen_until=0.25;freeze_after=3.1;},"
	                               "{match=\"conv2.*\";frozen_until=1.25;},{match=\"fc.bias\";})");
	static const double begin[] = {0, 0.25, 2, 3.1}, end[] = {0.25, 1.25, 3.1, INFINITY};
	struct gt_optim o;
	double lr[GT_MAX_LR];
	char buf[64];
	gt_optim_init(&o, &c->train);
	o.per_epoch = 10;
	CHECK(o.nphases == 4);
	for (int i = 0; i < o.nphases; i++)
		CHECK_MSG(o.phase[i].begin == begin[i] && o.phase[i].end == end[i], "phase %d: %g ... %g", i, o.phase[i].begin, o.phase[i].end);
	CHECK(gt_optim_frozen(&o, 1, 1) == GT_FREEZE_UNTIL && gt_optim_frozen(&o, 1, 4) == GT_FREEZE_AFTER);
	CHECK(!strcmp(gt_optim_phase_text(&o, 1, buf, sizeof buf), "in the epochs before 0.25"));
	CHECK(!strcmp(gt_optim_phase_text(&o, 3, buf, sizeof buf), "in the epochs from 2 to 3.1"));
	CHECK(!strcmp(gt_optim_phase_text(&o, 4, buf, sizeof buf), "in the epochs after 3.1"));
	for (int step = 0; step < 40; step++) {
		int phase = 0;
		for (int i = 0; i < o.nphases; i++)
			if (step >= gt_optim_steps(&o, begin[i]) && (i == 3 || step < gt_optim_steps(&o, end[i])))
				phase = 1 + i;
		gt_optim_rates(&o, step, 40, 10, lr);
		for (int g = 0; g < 4; g++)
			CHECK_MSG((lr[1 + g] == 0) == (gt_optim_frozen(&o, g, phase) != GT_FREEZE_NONE), "step %d, group %d: rate %g in phase %d", step,
			          g, lr[1 + g], phase);
	}
	gt_conf_free(c);
}

/* The run of 4 epochs of 10 steps reaches neither a phase that begins after 4 epochs nor, with train.steps, one after these steps. */
TEST(phases_behind_the_end)
{
	static const char *const set[] = {"train.groups=({match=\"conv1.*\";freeze_after=3.9;},{match=\"bn.*\";freeze_after=4.0;})",
	                                  "train.groups=({match=\"conv1.*\";freeze_after=1.1;},{match=\"bn.*\";freeze_after=1.2;})"};
	for (int i = 0; i < 2; i++) {
		struct gt_conf *c = load(text, set[i]);
		struct gt_optim o;
		c->train.steps = i ? 12 : 0;
		gt_optim_init(&o, &c->train);
		o.per_epoch = 10;
		CHECK_MSG(o.nphases == 2 && gt_optim_reaches(&o, 1) && !gt_optim_reaches(&o, 2), "case %d: %d phases", i, o.nphases);
		gt_conf_free(c);
	}
}

/* Two layers of one block, a normalisation after the stem, a head: the rule of gt_graph_depth, and what the optimizer makes of it. */
TEST(layer_decay)
{
	static const char net[] =
	    "schema = 1; data = { name = \"cifar10\"; batch = 10; };\n"
	    "model = { input = [3, 32, 32]; layers = (\n"
	    "  { name = \"conv1\"; type = \"conv2d\"; out = 4; kernel = 3; lr_mul = 3.0; }, { name = \"bn1\"; type = \"batchnorm2d\"; },\n"
	    "  { name = \"layer1.0\"; type = \"conv2d\"; out = 4; kernel = 3; }, { name = \"layer1.1\"; type = \"batchnorm2d\"; },\n"
	    "  { name = \"layer1.2\"; type = \"conv2d\"; out = 4; kernel = 3; }, { type = \"flatten\"; },\n"
	    "  { name = \"fc\"; type = \"linear\"; out = 10; } ); };\n"
	    "train = { epochs = 4; layer_decay = 0.5; optimizer = { type = \"sgd\"; lr = 0.5; };\n"
	    "  groups = ( { match = \"bn1.*\"; lr_mul = 10.0; } ); };\n";
	static const struct {
		const char *name;
		double factor;
	} want[] = {{"conv1.weight", 0.75}, {"bn1.bias", 2.5},        {"layer1.0.weight", 0.5}, {"layer1.1.weight", 0.5},
	            {"layer1.2.bias", 0.5}, {"fc.weight", 1},         {"fc.bias", 1}};
	struct gt_conf *c = load(net, NULL);
	const struct gt_update_spec *spec;
	struct gt_optim o;
	struct gt_graph *g;
	struct gt_err e = {0};
	int n;
	CHECK_OK(gt_graph_build(c->arena, &c->model, 2, GT_F32, true, &g, &e), e);
	gt_optim_init(&o, &c->train);
	CHECK_OK(gt_optim_update_spec(&o, g, &spec, &e), e);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		const struct gt_seg *s = &spec[param(g, want[i].name) - g->params].hyper;
		CHECK_MSG(s->lr_mul == want[i].factor, "%s: %g", want[i].name, s->lr_mul);
	}
	CHECK(!strncmp(gt_graph_block(g, (int)(param(g, "bn1.running_var") - g->params), &n), "conv1", 5) && n == 5);
	gt_conf_free(c);
}

RUN_TESTS()
