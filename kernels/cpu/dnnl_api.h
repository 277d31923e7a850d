/* A common interface for those functions in which oneDNN 2 and oneDNN 3 differ: dnnl_api2.c implements it for 2.6 and later 2.x,
 * dnnl_api3.c for 3.x. All other oneDNN calls of gtrain are the same in both versions; the other files make them directly.
 *
 * oneDNN 2 has public memory descriptors and creates a primitive descriptor from an operation descriptor. oneDNN 3 has opaque memory
 * descriptors and creates a primitive descriptor from its arguments. Here a tensor is described by a plain value (struct gt_dnnl_md), and
 * a primitive by a request (struct gt_dnnl_request); the layout that oneDNN chose is referenced in its memory (gt_dnnl_ref) or copied into
 * a value.
 *
 *   struct gt_dnnl_md any = ...;  any.any = true;
 *   gt_dnnl_pd(engine, &request, &pd);
 *   gt_dnnl_md_read(dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0), &chosen);
 *
 * Source: oneDNN developer guide, "Transition from v2.x to v3.x". */
#ifndef GT_DNNL_API_H
#define GT_DNNL_API_H

#include "base/types.h"
#include <dnnl.h>

#if DNNL_VERSION_MAJOR < 2 || (DNNL_VERSION_MAJOR == 2 && DNNL_VERSION_MINOR < 6) || DNNL_VERSION_MAJOR > 3
#error "gtrain needs oneDNN 2.6 or a later 2.x, or 3.x"
#endif

struct gt_dnnl_md {
	dnnl_data_type_t dtype;
	int ndims;
	dnnl_dims_t dims;
	bool any;            /* true: oneDNN chooses the layout, and the members below are not used */
	dnnl_dims_t padded;  /* sizes of the dimensions, rounded up to whole blocks */
	dnnl_dims_t strides; /* elements from one entry (of a blocked dimension: one block) to the next */
	int nblk;                   /* number of inner blocks */
	int64_t blk[GT_MAX_BLOCKS]; /* sizes of the inner blocks, the slowest-changing first */
	int blk_dim[GT_MAX_BLOCKS]; /* the dimension that each inner block divides */
};

/* A descriptor that oneDNN owns. It is valid as long as the primitive descriptor or memory object from which it was taken. */
#if DNNL_VERSION_MAJOR == 2
typedef const dnnl_memory_desc_t *gt_dnnl_ref;
#else
typedef const_dnnl_memory_desc_t gt_dnnl_ref;
#endif

/* Copies a descriptor. Returns false if struct gt_dnnl_md cannot express the layout (transformed weights, extra data after the tensor, more
 * blocks). */
bool gt_dnnl_md_read(gt_dnnl_ref ref, struct gt_dnnl_md *out);
bool gt_dnnl_md_is(const struct gt_dnnl_md *md, gt_dnnl_ref ref); /* whether md and ref have the same shape, dtype and layout */
dnnl_status_t gt_dnnl_memory(dnnl_engine_t engine, const struct gt_dnnl_md *md, dnnl_memory_t *out);

enum gt_dnnl_pass { GT_DNNL_FWD, GT_DNNL_DX, GT_DNNL_DW };

struct gt_dnnl_window {
	dnnl_dims_t stride, padding, dilation; /* dilation: 0 if the entries of the kernel are adjacent */
};

/* A request for a convolution or an inner product. In a gradient pass, x, w, b and y describe either an operand or its gradient, whichever
 * the pass uses. */
struct gt_dnnl_request {
	enum gt_dnnl_pass pass;
	const struct gt_dnnl_window *window;    /* NULL: inner product */
	const struct gt_dnnl_md *x, *w, *b, *y; /* descriptors of the operands; b is NULL without bias, and GT_DNNL_DX does not use it */
	const_dnnl_primitive_attr_t attr;
	const_dnnl_primitive_desc_t hint; /* descriptor of the forward primitive, which oneDNN's gradients require; NULL for GT_DNNL_FWD */
	/* Optional; NULL: oneDNN's first implementation is used. Returns whether to use the implementation `name` instead of the first
	 * implementation, named `first`. The first implementation for which the function returns true is used. */
	bool (*instead)(const char *first, const char *name);
};

/* Creates a primitive descriptor, which the caller destroys. Returns dnnl_unimplemented if oneDNN has no implementation. */
dnnl_status_t gt_dnnl_pd(dnnl_engine_t engine, const struct gt_dnnl_request *r, dnnl_primitive_desc_t *out);

const char *gt_dnnl_impl(const_dnnl_primitive_desc_t pd); /* name of the implementation: "jit:avx512_core"; defined in dnnl_util.c */

#endif
