/* Groups of Muon's matrices, and the calls of muon.directions for them.
 *
 * The matrices are in the order in which the backward pass finishes their gradients. A group is a run of neighbours of one shape: its
 * products are then the batches that one call for all matrices would have, so that a library chooses the same algorithms and the numbers
 * have the same bits. A model that repeats a layer of several shapes, such as a transformer, has many short runs. Each batch of products
 * costs some microseconds, however small it is. There may be at most twice as many batches as in one call; if the runs have more, the
 * matrices are divided into as many groups of about the same size as this limit allows. Ranks sum gradients bucket by bucket, so groups
 * whose last gradients are in one bucket could only start at the same time: they become one group. */
#include "plan/update_directions.h"
#include "plan/plan_parts.h"

#define ALIGN 256

static size_t aligned(size_t n)
{
	return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static bool same_shape(const struct gt_tdesc *a, const struct gt_tdesc *b)
{
	return a->dim[0] == b->dim[0] && gt_tdesc_count(a) == gt_tdesc_count(b);
}

/* Writes to shape[i] the index of the shape of matrix i. Returns the number of shapes. */
static int number_shapes(const struct gt_attr_muon *attr, int *shape)
{
	int n = 0;
	for (int i = 0; i < attr->update.nseg; i++) {
		int j = 0;
		while (j < i && !same_shape(attr->desc[i], attr->desc[j]))
			j++;
		shape[i] = j < i ? shape[j] : n++;
	}
	return n;
}

/* Divides n matrices into runs of one shape. Returns the number of runs. */
static int make_runs(const int *shape, int n, int *group)
{
	int runs = 0;
	for (int i = 0; i < n; i++)
		if (!i || shape[i] != shape[i - 1])
			group[runs++] = i;
	return runs;
}

/* Divides the matrices into at most `want` groups with about the same number of elements. Returns the number of groups. */
static int make_equal(const struct gt_attr_muon *attr, int want, int *group)
{
	const struct gt_seg *seg = attr->update.seg;
	int64_t all = 0, before = 0;
	int n = 0;
	for (int i = 0; i < attr->update.nseg; i++)
		all += seg[i].end - seg[i].begin;
	for (int i = 0; i < attr->update.nseg; i++) {
		if (!i || before >= (all + want - 1) / want * n)
			group[n++] = i;
		before += seg[i].end - seg[i].begin;
	}
	return n;
}

/* Returns the number of batches of products: of the shapes in each group. */
static int count_batches(const int *shape, int n, const int *group, int ngroups)
{
	int batches = 0;
	for (int k = 0; k < ngroups; k++) {
		int end = k + 1 < ngroups ? group[k + 1] : n;
		for (int i = group[k]; i < end; i++) {
			int j = group[k];
			while (j < i && shape[j] != shape[i])
				j++;
			batches += j == i;
		}
	}
	return batches;
}

/* Joins neighbouring groups whose last matrices are in the same bucket. Returns the number of groups. */
static int join_in_buckets(const struct gt_space *s, const struct gt_attr_muon *attr, int *group, int ngroups)
{
	int n = 0, before = -1;
	for (int k = ngroups - 1; k >= 0; k--) { /* fills the end of the list */
		int last = (k + 1 < ngroups ? group[k + 1] : attr->update.nseg) - 1;
		int bucket = gt_space_bucket_of(s, attr->update.seg[last].begin);
		n += bucket != before;
		before = bucket;
		group[ngroups - n] = group[k];
	}
	for (int k = 0; k < n; k++)
		group[k] = group[ngroups - n + k];
	return n;
}

static enum gt_code make_groups(struct gt_space *s, struct gt_attr_muon *attr, struct gt_err *err)
{
	struct gt_arena *a = s->arena;
	int n = attr->update.nseg, *shape, *group;
	GT_NEW(shape, a, n, err);
	GT_NEW(group, a, n, err);
	int shapes = number_shapes(attr, shape);
	attr->group = group;
	attr->ngroups = make_runs(shape, n, group);
	for (int want = 2 * shapes; count_batches(shape, n, group, attr->ngroups) > 2 * shapes; want--)
		attr->ngroups = make_equal(attr, want, group);
	if (s->shards.spec.bucket_bytes > 0)
		attr->ngroups = join_in_buckets(s, attr, group, attr->ngroups);
	return GT_OK;
}

static enum gt_code prepare_group(struct gt_space *s, struct gt_directions *d, int k, struct gt_tdesc *flat, bool *offered,
                                  struct gt_err *err)
{
	struct gt_attr_muon *attr = &d->part[k];
	const struct gt_seg *seg = d->attr.update.seg;
	struct gt_opcall oc = {.code = GT_OP_MUON_DIRECTIONS, .name = "optimizer", .attr = attr, .nin = 3, .nout = 1,
	                       .in = {flat, flat, flat}, .out = {&d->desc}};
	*attr = d->attr;
	attr->part = k;
	if (!k) {
		GT_TRY(gt_call_supported(s, &oc, offered, err));
		if (!*offered)
			return GT_OK;
	}
	GT_TRY(gt_kernel_prepare(s, &oc, &d->call[k], err));
	d->scratch = d->call[k].scratch > d->scratch ? d->call[k].scratch : d->scratch;
	int last = (k + 1 < attr->ngroups ? attr->group[k + 1] : attr->update.nseg) - 1;
	d->reads[k] = (struct gt_elements){seg[attr->group[k]].begin, seg[last].end};
	d->n = k + 1;
	return GT_OK;
}

enum gt_code gt_directions_prepare(struct gt_space *s, const struct gt_attr_muon *attr, int64_t n, size_t offset, struct gt_directions *out,
                                   bool *offered, struct gt_err *err)
{
	struct gt_tdesc flat = gt_tdesc_make(s->layout.master, 1, &n, false);
	int64_t bytes = gt_muon_directions_bytes(attr);
	*out = (struct gt_directions){.attr = *attr, .offset = offset, .bytes = aligned((size_t)bytes)};
	out->desc = gt_tdesc_make(GT_U8, 1, &bytes, false);
	GT_TRY(make_groups(s, &out->attr, err));
	GT_NEW(out->part, s->arena, out->attr.ngroups, err);
	GT_NEW(out->call, s->arena, out->attr.ngroups, err);
	GT_NEW(out->reads, s->arena, out->attr.ngroups, err);
	*offered = true;
	for (int k = 0; k < out->attr.ngroups && *offered; k++)
		GT_TRY(prepare_group(s, out, k, &flat, offered, err));
	return GT_OK;
}

void gt_directions_bind(struct gt_directions *d, struct gt_space *s, void *p, void *g, void *buf, size_t scratch)
{
	for (int k = 0; k < d->n; k++) {
		struct gt_call *c = &d->call[k];
		c->in[0] = p;
		c->in[1] = g;
		c->in[2] = buf;
		c->out[0] = gt_space_at(s, (struct gt_range){GT_A_DIRECTIONS, d->offset});
		c->work = gt_space_at(s, (struct gt_range){GT_A_DIRECTIONS, scratch});
	}
}

void gt_directions_close(struct gt_directions *d, struct gt_space *s)
{
	for (int k = 0; k < d->n; k++)
		if (d->call[k].kernel)
			s->be->release(s->dev, d->call[k].kernel);
	d->n = 0;
}
