/* Inside the CPU backend. Each family of operations has one file that exports a prepare function; cpu.c holds the table that maps
 * operation codes to them: one column for f32 and 16-bit calls (oneDNN and vector loops), one for f64 (plain loops, ref_*.c, the
 * oracle of the gradient checks). */
#ifndef GT_KERNELS_CPU_H
#define GT_KERNELS_CPU_H

#include "backend.h"
#include "cpu/team_choice.h"

struct gt_dev; /* cpu.c: threads and the oneDNN handles (opaque, so that only dnnl_*.c include dnnl) */
int gt_cpu_threads(const struct gt_dev *dev);
bool gt_cpu_deterministic(const struct gt_dev *dev);
bool gt_cpu_winograd(const struct gt_dev *dev);

/* dnnl_util.c: the oneDNN engine and stream of a device. */
struct gt_dnnl;
struct gt_dnnl *gt_cpu_dnnl(const struct gt_dev *dev);
enum gt_code gt_dnnl_open(struct gt_dnnl **out, struct gt_err *err);
void gt_dnnl_close(struct gt_dnnl *d);               /* NULL is fine */
const char *gt_dnnl_isa(void);                       /* "avx512_core_bf16": what its kernels and ours may use here */
void gt_dnnl_version(char *buf, size_t size);        /* "oneDNN 2.6.3" */

/* Head of every kernel; families embed it as their first member, calloc theirs and fill it. */
struct gt_kernel {
	enum gt_code (*launch)(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *a, struct gt_err *err);
	/* In a list (launch_list.c). part: the share of one of several threads, which need no barrier between them; NULL: there is none. small: too
	 * little work for two threads, so that launch needs no others. A kernel with neither ends the team. */
	void (*part)(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *a, int thread, int threads);
	bool small;
	struct gt_team_choice choice; /* of the list that begins with this kernel */
	void (*release)(struct gt_kernel *k); /* NULL: free(k) is enough */
	size_t scratch;
	const char *describe; /* static, or freed by release */
};

typedef enum gt_code gt_cpu_prepare(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err);

/* f32, bf16 */
gt_cpu_prepare gt_cpu_linear, gt_cpu_conv, gt_cpu_pool, gt_cpu_batchnorm; /* linear.c, dnnl_conv.c, pool.c, batchnorm.c */
gt_cpu_prepare gt_cpu_linear_dw_update, gt_cpu_bound, gt_cpu_check;
gt_cpu_prepare gt_cpu_moments;                                            /* moments.c; also of f64 graphs */
gt_cpu_prepare gt_dnnl_wino;                                              /* dnnl_wino.c, behind gt_cpu_conv; *out = NULL: not for this call */
gt_cpu_prepare gt_dnnl_linear;                                            /* dnnl_conv.c, behind gt_cpu_linear */
gt_cpu_prepare gt_dnnl_muon;                                              /* dnnl_muon.c; also f64 */
gt_cpu_prepare gt_cpu_gather;                                             /* gather.c */
gt_cpu_prepare gt_cpu_eltwise, gt_cpu_shape, gt_cpu_softmax, gt_cpu_loss, gt_cpu_layernorm, gt_cpu_dropout, gt_cpu_update, gt_cpu_rowsum; /* also f64 */
/* f64 only */
gt_cpu_prepare gt_ref_linear, gt_ref_conv, gt_ref_pool, gt_ref_batchnorm; /* ref_*.c */

/* launch_list.c: gt_backend.launch_list */
enum gt_code gt_cpu_launch_list(struct gt_dev *dev, int n, struct gt_kernel *const *k, const struct gt_launch *args, struct gt_err *err);

/* "conv2d (layer1.0.conv1): f16 is not supported by the cpu backend": GT_EUNAVAILABLE */
enum gt_code gt_cpu_refuse(const struct gt_opcall *call, struct gt_err *err, const char *why);

#endif
