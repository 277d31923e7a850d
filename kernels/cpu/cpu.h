/* Internal header of the CPU backend. Each family of operations has one file that exports a prepare function. cpu.c holds the table from
 * operation codes to these functions, with two columns: one for f32 and 16-bit calls (oneDNN and vector loops), one for f64 (plain loops
 * in ref_*.c, the reference of the gradient checks). */
#ifndef GT_KERNELS_CPU_H
#define GT_KERNELS_CPU_H

#include "backend.h"
#include "cpu/team_choice.h"

struct gt_dev; /* defined in cpu.c: threads and the oneDNN handles; opaque, so that only dnnl_*.c include oneDNN */
int gt_cpu_threads(const struct gt_dev *dev);
bool gt_cpu_deterministic(const struct gt_dev *dev);
bool gt_cpu_winograd(const struct gt_dev *dev);

/* dnnl_util.c: the oneDNN engine and stream of a device. */
struct gt_dnnl;
struct gt_dnnl *gt_cpu_dnnl(const struct gt_dev *dev);
enum gt_code gt_dnnl_open(struct gt_dnnl **out, struct gt_err *err);
void gt_dnnl_close(struct gt_dnnl *d);               /* d may be NULL */
/* the instruction set that oneDNN and gtrain may use on this machine: "avx512_core_bf16" */
const char *gt_dnnl_isa(void);
void gt_dnnl_version(char *buf, size_t size);        /* "oneDNN 2.6.3" */

/* The first member of every kernel struct. A family allocates its own struct with calloc and fills this. */
struct gt_kernel {
	enum gt_code (*launch)(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *a, struct gt_err *err);
	/* For lists of launches (launch_list.c). part: does the share of thread `thread` of `threads`, without barriers between them; NULL: the
	 * kernel cannot be divided. small: there is too little work for two threads, so launch uses one. A kernel with neither ends the
	 * parallel region of the list. */
	void (*part)(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *a, int thread, int threads);
	bool small;
	struct gt_team_choice choice; /* for the list that begins with this kernel */
	void (*release)(struct gt_kernel *k); /* NULL: free(k) is enough */
	size_t scratch;       /* bytes of workspace */
	const char *describe; /* static, or freed by release */
};

typedef enum gt_code gt_cpu_prepare(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err);

/* f32, bf16 */
gt_cpu_prepare gt_cpu_linear, gt_cpu_conv, gt_cpu_pool, gt_cpu_batchnorm; /* linear.c, dnnl_conv.c, pool.c, batchnorm.c */
gt_cpu_prepare gt_cpu_linear_dw_update, gt_cpu_bound, gt_cpu_check;
gt_cpu_prepare gt_cpu_moments;                                            /* moments.c; f64 graphs too */
/* dnnl_wino.c, called by gt_cpu_conv; *out = NULL: it does not suit this call */
gt_cpu_prepare gt_dnnl_wino;
gt_cpu_prepare gt_dnnl_linear;                                            /* dnnl_conv.c, called by gt_cpu_linear */
gt_cpu_prepare gt_dnnl_muon;                                              /* dnnl_muon.c; f64 too */
gt_cpu_prepare gt_cpu_gather;                                             /* gather.c */
/* also f64 */
gt_cpu_prepare gt_cpu_eltwise, gt_cpu_shape, gt_cpu_softmax, gt_cpu_loss, gt_cpu_layernorm, gt_cpu_dropout, gt_cpu_update, gt_cpu_rowsum;
/* f64 only */
gt_cpu_prepare gt_ref_linear, gt_ref_conv, gt_ref_pool, gt_ref_batchnorm; /* ref_*.c */

/* launch_list.c: implements gt_backend.launch_list. */
enum gt_code gt_cpu_launch_list(struct gt_dev *dev, int n, struct gt_kernel *const *k, const struct gt_launch *args, struct gt_err *err);

/* Returns GT_EUNAVAILABLE with a sentence: "conv2d (layer1.0.conv1): f16 is not supported by the cpu backend". */
enum gt_code gt_cpu_refuse(const struct gt_opcall *call, struct gt_err *err, const char *why);

#endif
