/* The graph: building from specs, its errors, and the backward nodes as text. */
#include "test.h"
#include "ir_net.h"

static char text[1 << 16];

#define CHECK_TEXT(got, want) CHECK_MSG(!strcmp(got, want), "expected\n%s\ngot\n%s", want, got)
/* Building fails with just these words. */
#define CHECK_ERROR(t, want)                                                                                                               \
	do {                                                                                                                                   \
		CHECK(net_build(t, 4, GT_F32, true) == GT_ECONFIG && (t)->e.code == GT_ECONFIG);                                                   \
		CHECK_TEXT((t)->e.msg, want);                                                                                                      \
	} while (0)

TEST(mlp)
{
	struct net t;
	net_open(&t, 1, 28, 28);
	net_add(&t, "flatten", "flatten", NULL, NULL);
	net_add(&t, "fc1", "linear", "out=512", NULL);
	net_add(&t, "relu", "relu", NULL, NULL);
	net_add(&t, "fc2", "linear", "out=10 bias=0", NULL);
	CHECK_OK(net_train(&t, 32, GT_F32), t.e);
	CHECK_TEXT(net_text(&t, text, sizeof text), "flatten (flatten): input -> flatten\n"
	                                            "linear (fc1): flatten fc1.weight fc1.bias -> fc1\n"
	                                            "relu (relu): fc1 -> relu\n"
	                                            "linear (fc2): relu fc2.weight - -> fc2\n"
	                                            "cross_entropy (loss): fc2 target -> loss.metrics loss.dx\n"
	                                            "linear.dw (fc2): loss.dx relu -> fc2.weight.grad -\n"
	                                            "linear.dx (fc2): loss.dx fc2.weight -> fc2.dx\n"
	                                            "relu.dx (relu): fc2.dx relu -> relu.dx\n"
	                                            "linear.dw (fc1): relu.dx flatten -> fc1.weight.grad fc1.bias.grad\n");
	CHECK(gt_graph_num_params(t.g) == 784 * 512 + 512 + 512 * 10);
	CHECK(t.g->params[0].desc.any && !t.g->params[1].desc.any && t.g->params[0].work == -1);
	CHECK(t.g->nodes[3].layer == 3 && t.g->nodes[4].layer == -1 && t.g->nodes[7].layer == 2 && t.g->nodes[7].backward);
	CHECK(gt_node_alias(t.g, &t.g->nodes[0])); /* one channel */
	CHECK_OK(net_build(&t, 32, GT_F32, false), t.e);
	CHECK_OK(gt_graph_verify(t.g, &t.e), t.e);
	CHECK(t.g->nnodes == 4 && t.g->nparams == 3);
	net_close(&t);
}

TEST(half_work_copies)
{
	struct net t;
	net_open(&t, 8, 1, 1);
	net_add(&t, "fc", "linear", "out=3", NULL);
	CHECK_OK(net_train(&t, 4, GT_BF16), t.e);
	const struct gt_param *w = &t.g->params[0], *b = &t.g->params[1];
	CHECK(w->desc.dtype == GT_F32 && w->work >= 0 && t.g->values[w->work].desc.dtype == GT_BF16 && t.g->values[w->work].kind == GT_V_WORK);
	CHECK(t.g->nodes[0].in[1] == w->work && t.g->values[w->grad].desc.dtype == GT_F32);
	CHECK(b->work == -1 && t.g->nodes[0].in[2] == b->value);
	CHECK(t.g->values[t.g->input[0]].desc.rank == 2 && t.g->values[t.g->output].desc.dtype == GT_BF16);
	CHECK_OK(net_train(&t, 4, GT_F64), t.e);
	CHECK(t.g->params[0].desc.dtype == GT_F64 && t.g->params[0].work == -1);
	net_close(&t);
}

TEST(forks_are_summed_once)
{
	struct net t;
	net_open(&t, 6, 1, 1);
	net_add(&t, "a", "linear", "out=6", NULL);
	net_add(&t, "b", "relu", NULL, "a");
	net_add(&t, "c", "linear", "out=6", "a");
	net_add(&t, "sum", "add", NULL, "a b c");
	CHECK_OK(net_train(&t, 4, GT_F32), t.e);
	CHECK_TEXT(net_text(&t, text, sizeof text), "linear (a): input a.weight a.bias -> a\n"
	                                            "relu (b): a -> b\n"
	                                            "linear (c): a c.weight c.bias -> c\n"
	                                            "add (sum): a b c -> sum\n"
	                                            "cross_entropy (loss): sum target -> loss.metrics loss.dx\n"
	                                            "linear.dw (c): loss.dx a -> c.weight.grad c.bias.grad\n"
	                                            "linear.dx (c): loss.dx c.weight -> c.dx\n"
	                                            "relu.dx (b): loss.dx b -> b.dx\n"
	                                            "add (a.dy): b.dx c.dx loss.dx -> a.dy\n"
	                                            "linear.dw (a): a.dy input -> a.weight.grad a.bias.grad\n");
	net_close(&t);
}

TEST(frozen_trunk_gets_no_backward)
{
	struct net t;
	net_open(&t, 6, 1, 1);
	net_add(&t, "a", "linear", "out=6", NULL)->frozen = true;
	net_add(&t, "b", "linear", "out=6", NULL);
	net_add(&t, "c", "linear", "out=6", NULL)->frozen = true;
	CHECK_OK(net_train(&t, 4, GT_F32), t.e);
	CHECK_TEXT(strstr(net_text(&t, text, sizeof text), "linear.d"), "linear.dx (c): loss.dx c.weight -> c.dx\n"
	                                                                "linear.dw (b): c.dx a -> b.weight.grad b.bias.grad\n");
	CHECK(gt_graph_num_params(t.g) == 42);
	t.layer[1].frozen = true;
	CHECK(net_train(&t, 4, GT_F32) == GT_ECONFIG);
	CHECK_TEXT(t.e.msg, "model.layers: expected at least one layer with trainable parameters, got none");
	net_close(&t);
}

TEST(build_errors)
{
	struct net t;
	net_open(&t, 3, 8, 8);
	CHECK_ERROR(&t, "model.layers: expected at least one layer, got none");
	net_add(&t, "fc1", "linear", "out=6", NULL);
	CHECK_ERROR(&t, "net.cfg:1: model.layers[0] (fc1): expected an input of [batch, features], got [4, 3, 8, 8]: put a "
	                "\"flatten\" layer before this layer");
	t.layer[0] = *net_add(&t, "flat", "flatten", NULL, NULL);
	CHECK_ERROR(&t, "net.cfg:2: model.layers[1] (flat): name: expected a name that no other layer has, got \"flat\", which is the name of "
	                "model.layers[0]");
	t.m.nlayers = 1;
	net_add(&t, "side", "relu", NULL, NULL);
	net_add(&t, "out", "linear", "out=2", "flat");
	CHECK_ERROR(&t,
	            "net.cfg:2: model.layers[1] (side): expected a later layer that reads the output of this layer "
	            "(in = [\"side\"]), got none");
	net_add(&t, "sum", "add", NULL, "side out");
	CHECK_ERROR(&t, "net.cfg:4: model.layers[3] (sum): expected inputs of the same shape, got [4, 192] from \"side\" and [4, 2] from "
	            "\"out\"");
	t.layer[3].in[1] = "oat";
	CHECK_ERROR(&t, "net.cfg:4: model.layers[3] (sum): in: expected the name of an earlier layer or \"input\", got \"oat\"");
	t.layer[3].nin = 1;
	t.layer[3].file = NULL;
	CHECK_ERROR(&t, "model.layers[3] (sum): key \"in\": a layer of type \"add\" takes 2 to 8 inputs, got 1");
	t.layer[2].name = "input";
	CHECK_ERROR(&t,
	            "net.cfg:3: model.layers[2] (input): name: expected another name, got \"input\", which is reserved for the model's input");
	net_close(&t);
}

/* Targets are described by the loss: labels, or a number for each output; weights have one number for each output. */
TEST(loss_describes_its_target)
{
	static const struct {
		const char *loss;
		bool dense, weights, last;
		const char *error; /* NULL: none */
	} rows[] = {
	    {"cross_entropy", false, false, false, NULL},
	    {"cross_entropy", true, false, false, NULL},
	    {"smooth_l1", true, false, false, NULL},
	    {"l1", false, false, false, NULL},
	    {"bce", true, true, true, NULL},
	    {"nll", true, false, false,
	     "train.loss: this loss takes class labels, but the targets are real numbers; \"cross_entropy\" takes both"},
	    {"cross_entropy", false, true, false,
	     "train.class_weights: expected 5 values, one for each output of the model, got 4"},
	    {"bce", false, true, false, "train.pos_weight: expected 5 values, one for each output of the model, got 4"},
	};
	static const double weights[5] = {1, 2, 3, 4, 5};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct net t;
		struct gt_loss_spec loss = {.op = gt_op_find_loss(rows[i].loss), .attr = {.number = {1}, .ignore_index = -100},
		                            .dense = rows[i].dense};
		if (rows[i].weights)
			loss.attr.weights = weights, loss.attr.nweights = rows[i].last ? 5 : 4;
		net_open(&t, 3, 1, 1);
		net_add(&t, "fc", "linear", "out=5", NULL);
		CHECK(net_build(&t, 4, GT_F32, true) == GT_OK);
		enum gt_code code = gt_graph_loss(t.g, &loss, &t.e);
		CHECK(code == (rows[i].error ? GT_ECONFIG : GT_OK));
		if (rows[i].error) {
			CHECK_TEXT(t.e.msg, rows[i].error);
		} else {
			const struct gt_tdesc *d = gt_graph_desc(t.g, t.g->target);
			CHECK(d->dtype == (loss.dense ? GT_F32 : GT_I32) && d->rank == 1 + loss.dense && d->dim[0] == 4 &&
			      (!loss.dense || d->dim[1] == 5));
			CHECK(gt_graph_differentiate(t.g, &t.e) == GT_OK && gt_graph_verify(t.g, &t.e) == GT_OK);
		}
		net_close(&t);
	}
}

TEST(loss_wants_logits)
{
	struct net t;
	net_open(&t, 3, 8, 8);
	net_add(&t, "relu", "relu", NULL, NULL);
	CHECK(net_train(&t, 4, GT_F32) == GT_ECONFIG);
	CHECK_TEXT(t.e.msg,
	           "train.loss: expected the model's output to be [batch, classes], got [4, 3, 8, 8]: put a layer of type \"flatten\" at the "
	           "model's end");
	net_close(&t);
}

/* Every kind of damage to a sound graph is seen. */
TEST(verify_sees_damage)
{
	struct net t;
	net_open(&t, 6, 1, 1);
	net_add(&t, "a", "linear", "out=6", NULL);
	net_add(&t, "b", "relu", NULL, NULL);
	for (int damage = 0; damage <= 10; damage++) {
		CHECK_OK(net_train(&t, 4, GT_BF16), t.e);
		struct gt_graph *g = t.g;
		struct gt_node swap = g->nodes[0];
		switch (damage) {
		case 1:
			g->nodes[0] = g->nodes[1], g->nodes[1] = swap;
			break;
		case 2:
			g->nodes[1].out[0] = g->nodes[0].out[0];
			break;
		case 3:
			g->params[0].grad = -1;
			break;
		case 4:
			g->values[g->params[1].grad].desc.dim[0] = 7;
			break;
		case 5:
			g->values[g->params[0].work].desc.dtype = GT_F32;
			break;
		case 6:
			g->nodes[1].in[0] = -1;
			break;
		case 7:
			g->values[g->output].desc.dim[1] = 0;
			break;
		case 8:
			g->nodes[0].attr = NULL;
			break;
		case 9: /* the signatures of the operations (opsig.h) */
			g->values[g->params[1].value].desc.dim[0] = g->params[1].desc.dim[0] = g->values[g->params[1].grad].desc.dim[0] = 7;
			break;
		case 10:
			g->values[g->nodes[1].out[0]].desc.dtype = GT_F16;
			break;
		}
		enum gt_code want = damage ? GT_EINTERNAL : GT_OK;
		CHECK_MSG(gt_graph_verify(g, &t.e) == want, "damage %d is not seen", damage);
	}
	net_close(&t);
}

TEST(rows_are_consistent)
{
	const struct gt_op *op;
	for (int i = 0; (op = gt_op_at(i)); i++) {
		if (!(op->flags & (GT_OPF_LAYER | GT_OPF_LOSS)))
			continue;
		CHECK_MSG(op->help && *op->help, "%s has no help", gt_op_name(op));
		CHECK_MSG(op->min_in >= 1 && op->min_in <= op->max_in && op->max_in <= GT_MAX_LAYER_IN, "%s: arity", gt_op_name(op));
		CHECK_MSG(op->infer || op->expand, "%s: infer or expand", gt_op_name(op));
		CHECK_MSG(!(op->flags & GT_OPF_ALIAS) || op->alias, "%s: alias", gt_op_name(op));
		CHECK_MSG((op->flags & GT_OPF_LOSS ? gt_op_find_loss : gt_op_find_layer)(gt_op_name(op)) == op, "%s stands twice", gt_op_name(op));
		for (const struct gt_attr_def *d = op->attrs; d && d->key; d++) {
			CHECK_MSG(d->help && d->offset < gt_op_attr_size(op) && d->min <= d->max, "%s: %s", gt_op_name(op), d->key);
			CHECK_MSG(isnan(d->def) || (d->def >= d->min && d->def <= d->max), "%s: default of %s", gt_op_name(op), d->key);
			CHECK_MSG((d->type == GT_ATTR_ENUM) == (d->values != NULL), "%s: values of %s", gt_op_name(op), d->key);
		}
	}
	for (int c = 0; c < GT_OP_COUNT; c++)
		CHECK_MSG(gt_op_get((enum gt_opcode)c), "%s has no row", gt_opcode_name((enum gt_opcode)c));
	CHECK(!gt_op_find_layer("linear.dx") && !gt_op_find_layer("cross_entropy") && !gt_op_find_loss("relu"));
}

RUN_TESTS()
