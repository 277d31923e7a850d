/* The kernel calls that compress gradients before they are reduced over the ranks (plan/gradient_compression.h). */
#include "plan/gradient_compression.h"
#include "session/optim.h"

/* Prepares the calls of one bucket. All of them are element-wise over flat ranges. */
static enum gt_code prepare_bucket(struct gt_space *s, int b, struct gt_compression *c, struct gt_err *err)
{
	static const struct gt_attr_scale minus = {.factor = -1};
	const struct gt_bucket *bucket = &s->shards.bucket[b];
	int64_t n = bucket->end - bucket->begin, received = gt_space_sharded(s, GT_A_STATE) ? gt_space_shard(s, b) : n;
	struct gt_tdesc f32 = gt_tdesc_make(s->layout.master, 1, &n, false), bf16 = gt_tdesc_make(GT_BF16, 1, &n, false),
	                sum = gt_tdesc_make(s->layout.master, 1, &received, false), wire = gt_tdesc_make(GT_BF16, 1, &received, false);
	const struct gt_opcall add = {.code = GT_OP_ADD, .name = "gradients", .nin = 2, .nout = 1, .in = {&f32, &f32}, .out = {&f32}},
	                       narrow = {.code = GT_OP_CAST, .name = "gradients", .nin = 1, .nout = 1, .in = {&f32}, .out = {&bf16}},
	                       widen = {.code = GT_OP_CAST, .name = "gradients", .nin = 1, .nout = 1, .in = {&bf16}, .out = {&f32}},
	                       negate = {.code = GT_OP_SCALE, .name = "gradients", .attr = &minus, .nin = 1, .nout = 1, .in = {&f32},
	                                 .out = {&f32}},
	                       unpack = {.code = GT_OP_CAST, .name = "gradients", .nin = 1, .nout = 1, .in = {&wire}, .out = {&sum}};
	const struct gt_opcall *pack[GT_PACK_CALLS] = {&add, &narrow, &widen, &negate, &add};
	for (int i = 0; i < GT_PACK_CALLS; i++)
		GT_TRY(gt_call_prepare(s, pack[i], &c->pack[i], err));
	return gt_call_prepare(s, &unpack, &c->unpack, err);
}

enum gt_code gt_compress_prepare(struct gt_optim *o, struct gt_space *s, struct gt_err *err)
{
	if (!s->shards.spec.compressed)
		return GT_OK;
	GT_NEW(o->compress, s->arena, s->shards.nbuckets + 1, err);
	for (; o->ncompress < s->shards.nbuckets; o->ncompress++)
		if (s->shards.bucket[o->ncompress].trainable)
			GT_TRY(prepare_bucket(s, o->ncompress, &o->compress[o->ncompress], err));
	o->steps[0].compress = o->compress;
	return GT_OK;
}

static void bind_call(struct gt_call *c, void *a, void *b, void *out)
{
	c->in[0] = a;
	if (c->nin > 1)
		c->in[gt_opsig_find_input(GT_OP_ADD, "b")] = b;
	*c->out = out;
}

void gt_compress_bind(struct gt_optim *o, struct gt_space *s)
{
	for (int b = 0; b < o->ncompress; b++) {
		struct gt_compression *c = &o->compress[b];
		bool sharded = gt_space_sharded(s, GT_A_STATE);
		void *grad = gt_space_at(s, gt_space_bucket(s, GT_A_GRAD, b, 0)), *wire = s->memory.base[GT_A_WIRE],
		     *residual = gt_space_at(s, gt_space_bucket(s, GT_A_RESIDUAL, b, 0));
		if (!s->shards.bucket[b].trainable)
			continue;
		bind_call(&c->pack[0], grad, residual, grad);
		bind_call(&c->pack[1], grad, NULL, wire);
		bind_call(&c->pack[2], wire, NULL, residual);
		bind_call(&c->pack[3], residual, NULL, residual);
		bind_call(&c->pack[4], residual, grad, residual);
		bind_call(&c->unpack, gt_space_at(s, gt_wire_result(s, b)), NULL,
		          sharded ? gt_space_at(s, gt_space_own_shard(s, GT_A_GRAD, b)) : grad);
	}
}

void gt_compress_close(struct gt_optim *o, struct gt_space *s)
{
	for (int b = 0; b < o->ncompress; b++) {
		for (int i = 0; i < GT_PACK_CALLS; i++)
			gt_call_release(s, &o->compress[b].pack[i]);
		gt_call_release(s, &o->compress[b].unpack);
	}
}
