/* How mlp.steps is divided among the blocks of a card, with offsets and work that are counted by hand, and which cards have room. */
#include "ew.h"
#include "mlp_division.h"
#include "test.h"
#include <string.h>

#define STATE 1 /* the optimizer keeps one state */
#define FACTORS(n) ((int64_t)((n) * sizeof(struct gt_opt_f32) / 4 + 3) / 4 * 4) /* words of the factors of n segments */

struct net {
	struct gt_attr_mlp_steps attr;
	struct gt_tdesc images, flat;
	struct gt_opcall call;
};

/* Describes a net of the layers `size`, whose inputs are one channel of size[0] pixels. */
static const struct gt_opcall *net_of(struct net *n, int64_t batch, int nstates, int nlayers, const int64_t *size)
{
	int64_t dim[4] = {1000, 1, 1, size[0]}, many = 1 << 20;
	*n = (struct net){.attr = {.batch = batch, .nlayers = nlayers, .loss_code = GT_OP_CROSS_ENTROPY,
	                           .optimizer = nstates > 1 ? GT_OP_ADAM : GT_OP_SGD}};
	for (int l = 0; l < nlayers; l++)
		n->attr.layer[l] = (struct gt_mlp_layer){.in = size[l], .out = size[l + 1], .act.code = GT_OP_RELU};
	n->images = gt_tdesc_make(GT_U8, 4, dim, true);
	n->flat = gt_tdesc_make(GT_F32, 1, &many, false);
	n->call = (struct gt_opcall){.code = GT_OP_MLP_STEPS, .attr = &n->attr, .nin = 9, .in = {&n->images, NULL, NULL, &n->flat}};
	for (int i = 0; i < nstates; i++)
		n->call.in[4 + i] = &n->flat;
	return &n->call;
}

static const int64_t small[] = {36, 8, 4}, tutorial[] = {784, 512, 512, 10}, deep[] = {64, 32, 32, 32, 4};
static const struct gt_mlp_card two = {.sms = 2, .shared = 227 << 10}, h200 = {.sms = 132, .shared = 227 << 10},
                                a100 = {.sms = 108, .shared = 163 << 10}, ada = {.sms = 128, .shared = 99 << 10};

TEST(offsets_in_shared_memory)
{
	struct net n;
	struct gt_mlp_division d;
	char why[200];
	CHECK(gt_mlp_divide(net_of(&n, 20, 0, 2, small), &two, &d, why, sizeof why));
	/* a set: 4 x 36 weights and 4 biases, 4 inputs of the last layer with 4 classes each, 4 biases */
	CHECK(d.blocks == 2 && d.layer[0].cols == 4 && d.layer[1].cols == 4 && d.set == 168 && d.layer[1].shared == 148);
	/* two sets, then 4 outputs of 32 rows and their gradients */
	CHECK(d.layer[0].own == 336 && d.own_floats == 128 && d.places_at == 592);
	/* two f64 numbers and two i32 of a row; factors of 4 segments; logits and their gradients; 16 warps of 32 x 4 sums; 4 columns of 4 */
	CHECK(d.opt_at == 784 && d.logits_at == 784 + FACTORS(4) && d.part_at == d.logits_at + 256 && d.column_at == d.part_at + 2048);
	CHECK(d.tile_at == d.column_at + 16);
	CHECK(d.wide == 36 && d.narrow == 8 && d.last_at == d.tile_at + 8 * 33 && d.shared == 4 * (size_t)(d.tile_at + 36 * 33));
	/* 16 words; h twice; the last weights with 4 classes, and the bias, twice */
	CHECK(d.layer[0].act[0] == 16 && d.layer[0].act[1] == 176 && d.layer[1].next[0] == 336 && d.work == 4 * (336 + 2 * 36));
}

TEST(work_of_a_small_net)
{
	struct net n;
	struct gt_mlp_division d;
	struct gt_mlp_work w;
	char why[200];
	CHECK(gt_mlp_divide(net_of(&n, 32, 0, 2, small), &two, &d, why, sizeof why));
	gt_mlp_work(&d, &w);
	/* h: 36 columns, 4 outputs, 32 rows; logits: 8 x 4; own dh: 4 x 4; dW(1): 4 x 4; dW(0) as h */
	CHECK(w.multiply_adds == 32.0 * (36 * 4 + 8 * 4 + 4 * 4 + 4 * 4 + 36 * 4));
	double h = 36 /* tile */ + 36 * 2 + 16 * 4 + 4 * 16 /* sums of 16 warps */ + 4 /* own h */;
	double logits = 1 /* 32 weights */ + 8 /* tile */ + 8 * 2 + 16 * 4 + 4 * 16 /* sums of 16 warps */;
	double dh = 4 * (4 * 4 /* conflicts of 4 ways */ + 1 + 2);
	double last = 2 * 32 + 2, first = 36 /* tile */ + 2 * 32 * 2 + 4 * 36 / 32.0 * 2;
	CHECK_MSG(w.accesses == h + logits + dh + last + first, "%g accesses", w.accesses);
	/* bytes of the samples twice; own h; the last weights; all h; own last weights */
	CHECK(w.bytes == 2 * 32 * 36 + 4 * 32 * 4 + 4 * 8 * 4 + 4 * 32 * 8 + 4 * 16);
	CHECK(w.barriers == 1);
}

/* Clipped gradients and a moving average. */
TEST(work_of_the_larger_kernel)
{
	struct net n;
	struct gt_mlp_division d;
	struct gt_mlp_work w;
	char why[200];
	net_of(&n, 20, 0, 2, small);
	n.attr.update.clip_norm = 1;
	n.call.in[8] = &n.flat;
	CHECK(gt_mlp_divide(&n.call, &two, &d, why, sizeof why) && d.more && d.clips && d.copies == 2);
	/* two copies of two sets; 4 outputs, their gradients and the derivatives; numbers of the rows; the norm; factors of 5 segments */
	CHECK(d.layer[0].own == 672 && d.places_at == 672 + 3 * 128 && d.norm_at == 1248 && d.opt_at == 1252);
	CHECK(d.logits_at == 1252 + FACTORS(5) && d.part_at == d.logits_at + 256 && d.column_at == d.part_at + 2048);
	CHECK(d.tile_at == d.column_at + 16);
	/* h and its derivatives twice, the last weights and bias twice; two sums of a layer, two of the last one, one of its bias */
	CHECK(d.layer[0].slope[0] == 176 && d.layer[0].act[1] == 336 && d.layer[1].next[0] == 656 && d.norms == 5);
	CHECK(d.norm[0] == 728 && d.norm[1] == 740 && d.work == 4 * 752);
	n.attr.batch = 32;
	CHECK(gt_mlp_divide(&n.call, &two, &d, why, sizeof why));
	gt_mlp_work(&d, &w);
	double h = 36 + 36 * 2 + 16 * 4 + 4 * 16 + 2 * 4 /* own h and derivatives */, logits = 1 + 8 + 8 * 2 + 16 * 4 + 4 * 16;
	/* parameters and averages are read and written; gradients are written, read for the norm, and read for the update */
	double dh = 4 * (4 * 4 + 1 + 2), last = 2 * 32 + 7, first = 36 + 2 * 32 * 2 + 4 * 36 / 32.0 * 7;
	CHECK_MSG(w.accesses == h + logits + dh + last + first, "%g accesses", w.accesses);
	CHECK(w.bytes == 2 * 32 * 36 + 2 * 4 * 32 * 4 + 4 * 8 * 4 + 4 * 32 * 8 + 4 * 16 + 8 * 5 && w.barriers == 2);
}

/* The larger kernel also publishes the derivatives before the last layer, and the padding after three classes. */
TEST(work_with_padded_classes)
{
	static const int64_t three[] = {36, 8, 3};
	struct net n;
	struct gt_mlp_division d;
	struct gt_mlp_work plain, more;
	char why[200];
	CHECK(gt_mlp_divide(net_of(&n, 32, 0, 2, three), &two, &d, why, sizeof why) && !d.more);
	gt_mlp_work(&d, &plain);
	n.attr.loss_code = GT_OP_MSE;
	CHECK(gt_mlp_divide(&n.call, &two, &d, why, sizeof why) && d.more && d.copies == 1);
	gt_mlp_work(&d, &more);
	CHECK_MSG(more.bytes - plain.bytes == 4 * 32 * 4 + 4 * 4, "%g bytes more", more.bytes - plain.bytes);
	CHECK(more.multiply_adds == plain.multiply_adds && more.barriers == plain.barriers);
}

/* More rows take more of everything but barriers, and a fourth layer has two more barriers. */
TEST(work_of_other_nets)
{
	struct net n;
	struct gt_mlp_division d;
	struct gt_mlp_work one, more;
	char why[200];
	CHECK(gt_mlp_divide(net_of(&n, 32, STATE, 3, tutorial), &h200, &d, why, sizeof why));
	gt_mlp_work(&d, &one);
	/* h(0), dW(0): 784 x 4; h(1), dh(0), dW(1): 512 x 4; logits and dh(1) of all: 512 x 12; own dh(1): 4 x 12; dW(2): 4 x 10 */
	CHECK(one.multiply_adds == 32.0 * (2 * 784 * 4 + 3 * 512 * 4 + 2 * 512 * 12 + 4 * 12 + 4 * 10) && one.barriers == 2);
	CHECK(gt_mlp_divide(net_of(&n, 64, 0, 3, tutorial), &h200, &d, why, sizeof why));
	gt_mlp_work(&d, &more);
	CHECK(more.multiply_adds == 2 * one.multiply_adds && more.accesses > one.accesses && more.bytes > one.bytes);
	CHECK(gt_mlp_divide(net_of(&n, 32, STATE, 4, deep), &h200, &d, why, sizeof why));
	gt_mlp_work(&d, &more);
	CHECK(more.barriers == 4);
}

TEST(cards_with_and_without_room)
{
	struct net n;
	struct gt_mlp_division d;
	char why[200] = "";
	CHECK(gt_mlp_divide(net_of(&n, 32, STATE, 3, tutorial), &h200, &d, why, sizeof why) && d.blocks == 128);
	/* 512 outputs on 108 multiprocessors: 8 for each of 64 blocks, and so twice the weights */
	CHECK(!gt_mlp_divide(net_of(&n, 32, STATE, 3, tutorial), &a100, &d, why, sizeof why) && d.blocks == 64);
	CHECK_MSG(strstr(why, "shared memory in each of 64 blocks, and there are 161 KiB"), "%s", why);
	CHECK(!gt_mlp_divide(net_of(&n, 32, STATE, 3, tutorial), &ada, &d, why, sizeof why) && d.blocks == 128);
	/* the rows of a batch, which each of 128 blocks reads: 784 bytes twice, and 512 floats three times */
	CHECK(gt_mlp_divide(net_of(&n, 64, STATE, 3, tutorial), &h200, &d, why, sizeof why));
	CHECK(!gt_mlp_divide(net_of(&n, 128, STATE, 3, tutorial), &h200, &d, why, sizeof why));
	CHECK_MSG(strstr(why, "128 blocks would move 159 MiB from the L2 cache in a step, and from 96 MiB on"), "%s", why);
	CHECK(gt_mlp_divide(net_of(&n, 128, STATE, 4, deep), &h200, &d, why, sizeof why) && d.blocks == 8);
	CHECK(gt_mlp_divide(net_of(&n, 32, 2, 4, deep), &ada, &d, why, sizeof why) && d.blocks == 8);
}

TEST(calls_that_no_card_does)
{
	struct net n;
	CHECK(!gt_mlp_refuses(net_of(&n, 32, STATE, 3, tutorial)));
	CHECK(strstr(gt_mlp_refuses(net_of(&n, 32, STATE, 1, tutorial)), "2 to 4 linear layers"));
	CHECK(strstr(gt_mlp_refuses(net_of(&n, 32, STATE, 2, tutorial)), "16 outputs"));
	net_of(&n, 32, STATE, 3, tutorial);
	n.attr.layer[1].act.code = GT_OP_MISH;
	CHECK(strstr(gt_mlp_refuses(&n.call), "silu and elu between layers"));
	n.attr.layer[1].act.code = GT_OP_GELU;
	n.attr.batch = 129;
	CHECK(strstr(gt_mlp_refuses(&n.call), "up to 128 samples"));
	n.attr.batch = 128;
	CHECK(!gt_mlp_refuses(&n.call));
	n.attr.optimizer = GT_OP_LION;
	CHECK(strstr(gt_mlp_refuses(&n.call), "sgd, adam and adamw"));
}

RUN_TESTS()
