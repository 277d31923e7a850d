#include "report/comm_echo.h"
#include "base/arena.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct echo {
	struct gt_comm pub; /* first member: see struct gt_comm */
	int copies;         /* copies of the model in the world that gt_comm_echo_open has opened */
};

static void close_echo(struct gt_comm *c)
{
	free(c);
}

static size_t block_bytes(const struct gt_coll *x)
{
	return x->count * gt_dtype_size(x->dtype);
}

static void copy_block(void *to, const void *from, size_t n)
{
	if (to && from && to != from)
		memmove(to, from, n);
}

/* Sums n equal operands. 16-bit floats and integers keep the value of one operand, because no kernel's time depends on it. */
static void sum_equal(const struct gt_coll *x, int n)
{
	for (size_t i = 0; x->op == GT_REDUCE_SUM && i < x->count && x->dtype == GT_F32; i++)
		((float *)x->out)[i] *= (float)n;
	for (size_t i = 0; x->op == GT_REDUCE_SUM && i < x->count && x->dtype == GT_F64; i++)
		((double *)x->out)[i] *= n;
}

static enum gt_code all_reduce(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err)
{
	(void)err;
	copy_block(x->out, x->in, block_bytes(x));
	sum_equal(x, c->world);
	return GT_OK;
}

static enum gt_code reduce_scatter(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err)
{
	(void)err;
	copy_block(x->out, (const char *)x->in + (size_t)c->rank * block_bytes(x), block_bytes(x));
	sum_equal(x, c->world);
	return GT_OK;
}

static enum gt_code all_gather(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err)
{
	size_t n = block_bytes(x);
	(void)err;
	copy_block((char *)x->out + (size_t)c->rank * n, x->in, n);
	for (int r = 0; r < c->world; r++)
		copy_block((char *)x->out + (size_t)r * n, (const char *)x->out + (size_t)c->rank * n, n);
	return GT_OK;
}

static enum gt_code broadcast_block(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err)
{
	(void)err;
	if (c->rank == x->root)
		copy_block(x->out, x->in, block_bytes(x));
	return GT_OK;
}

static enum gt_code gather_blocks(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err)
{
	return c->rank == x->root ? all_gather(c, x, err) : GT_OK;
}

static enum gt_code scatter_block(struct gt_comm *c, const struct gt_coll *x, struct gt_err *err)
{
	(void)err;
	if (c->rank == x->root)
		copy_block(x->out, (const char *)x->in + (size_t)c->rank * block_bytes(x), block_bytes(x));
	else if (x->out)
		memset(x->out, 0, block_bytes(x));
	return GT_OK;
}

static enum gt_code pass_barrier(struct gt_comm *c, int stream, struct gt_err *err)
{
	(void)c, (void)stream, (void)err;
	return GT_OK;
}

static enum gt_code exchange_zeros(struct gt_comm *c, const struct gt_p2p *list, int n, int stream, struct gt_err *err)
{
	(void)c, (void)stream, (void)err;
	for (int i = 0; i < n; i++)
		if (!list[i].sends && list[i].count)
			memset(list[i].recv, 0, list[i].count * gt_dtype_size(list[i].dtype));
	return GT_OK;
}

static const struct gt_comm_api echo_api;

static enum gt_code make_echo(const char *name, int rank, int world, int copies, struct gt_comm **out, struct gt_err *err)
{
	struct echo *e = calloc(1, sizeof *e);
	*out = NULL;
	if (!e)
		return gt_fail_memory(err, sizeof *e);
	e->pub = (struct gt_comm){.api = &echo_api, .rank = rank, .world = world};
	snprintf(e->pub.name, sizeof e->pub.name, "%s", name);
	e->copies = copies;
	*out = &e->pub;
	return GT_OK;
}

/* Returns a group of the ranks with the same color. The other ranks do not run, so the size of the group is not exchanged but computed from
 * the number of copies of the model. */
static enum gt_code split_echo(struct gt_comm *c, const char *name, int color, int key, struct gt_comm **out, struct gt_err *err)
{
	const struct echo *e = (const struct echo *)c;
	*out = NULL;
	if (color < 0)
		return GT_OK;
	return make_echo(name, key, strcmp(name, "replicas") ? c->world / e->copies : e->copies, 1, out, err);
}

static void abort_echo(struct gt_comm *c, const char *why)
{
	(void)c, (void)why;
}

static enum gt_code check_echo(struct gt_comm *c, struct gt_err *err)
{
	(void)c, (void)err;
	return GT_OK;
}

static double set_timeout(struct gt_comm *c, double timeout_s)
{
	(void)c;
	return timeout_s;
}

static const struct gt_comm_api echo_api = {.abi = GT_COMM_ABI,
                                            .name = "none",
                                            .host_memory = true,
                                            .fixed_tree = true,
                                            .close = close_echo,
                                            .split = split_echo,
                                            .all_reduce = all_reduce,
                                            .reduce_scatter = reduce_scatter,
                                            .all_gather = all_gather,
                                            .broadcast = broadcast_block,
                                            .gather = gather_blocks,
                                            .scatter = scatter_block,
                                            .barrier = pass_barrier,
                                            .exchange = exchange_zeros,
                                            .abort = abort_echo,
                                            .check = check_echo,
                                            .set_timeout = set_timeout};

enum gt_code gt_comm_echo_open(int rank, int world, int copies, struct gt_comm **out, struct gt_err *err)
{
	return make_echo("world", rank, world, copies, out, err);
}
