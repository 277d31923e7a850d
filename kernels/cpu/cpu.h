/* Internal header of the CPU backend. Each family of operations has one file that exports a prepare function. */
#ifndef GT_KERNELS_CPU_H
#define GT_KERNELS_CPU_H

#include "backend.h"
#include "cpu/team_choice.h"
#include "opsig.h"

struct gt_dev; /* A CPU device: its threads and oneDNN handles. Only cpu.c defines the struct, so that only dnnl_*.c include oneDNN */
int gt_cpu_threads(const struct gt_dev *dev);
/* Number of threads that a kernel of gtrain uses if it is launched now: gt_cpu_threads, or 1 after gt_cpu_set_alone(dev, true). The
 * workspace and the parts of kernels, and oneDNN's kernels, depend on gt_cpu_threads only. */
int gt_cpu_threads_now(const struct gt_dev *dev);
void gt_cpu_set_alone(struct gt_dev *dev, bool alone);
bool gt_cpu_winograd(const struct gt_dev *dev);

/* Allocates memory in which a kernel keeps its own form of constant weights. The caller frees it with free(). Large blocks are aligned to
 * huge pages and request such pages, because TLB misses cost time where a launch reads the whole block. */
enum gt_code gt_cpu_keep(size_t bytes, void **out, struct gt_err *err);

/* The oneDNN engine and stream of a device (dnnl_util.c). */
struct gt_dnnl;
struct gt_dnnl *gt_cpu_dnnl(const struct gt_dev *dev);
enum gt_code gt_dnnl_open(struct gt_dnnl **out, struct gt_err *err);
void gt_dnnl_close(struct gt_dnnl *d);               /* d may be NULL */
/* Returns the name of the instruction set that oneDNN and gtrain may use on this machine: "avx512_core_bf16" */
const char *gt_dnnl_isa(void);
void gt_dnnl_version(char *buf, size_t size);        /* "oneDNN 2.6.3" */
/* Returns whether oneDNN has kernels for bf16 products on this processor, other than reference loops (dnnl_conv.c). */
bool gt_dnnl_has_bf16(void);

/* The first member of every kernel struct. A family allocates its own struct with calloc and fills this member. */
struct gt_kernel {
	enum gt_code (*launch)(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *a, struct gt_err *err);
	/* For lists of launches (launch_list.c). part() does the work of thread `thread` of `threads`, without barriers between threads; it is
	 * NULL if the kernel cannot be divided. small is true if launch uses one thread, because there is too little work for two. Before a
	 * kernel with neither part nor small, the parallel region of the list ends. */
	void (*part)(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *a, int thread, int threads);
	bool small;
	struct gt_team_choice choice; /* the chosen number of threads for the list of launches that begins with this kernel */
	void (*release)(struct gt_kernel *k); /* frees k and its memory; NULL: free(k) is enough */
	size_t scratch;       /* bytes of workspace */
	const char *describe; /* name of the implementation: static memory, or freed by release */
};

typedef enum gt_code gt_cpu_prepare(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err);

/* The families (opcall.h): a call of family F is prepared by gt_cpu_F, in f32 and bf16. Some also support f64, which no config can select:
 * the tests check gradients with it. For families without f64 (see cpu_prepare), the tests have their own backend. */
gt_cpu_prepare gt_cpu_none; /* prepares no kernel and refuses the call */
#define gt_cpu_head gt_cpu_none
#define gt_cpu_head_back gt_cpu_none
#define GT_X(code, name, family, ...) gt_cpu_prepare gt_cpu_##family;
GT_OPCODES(GT_X)
#undef GT_X
gt_cpu_prepare gt_cpu_update, gt_cpu_muon; /* the updates: update.c, dnnl_muon.c */
/* conv_1x1.c, conv_grouped.c, … for gt_cpu_conv; they set *out to NULL if the call is not a convolution that they compute */
gt_cpu_prepare gt_cpu_conv_1x1, gt_cpu_conv_grouped, gt_cpu_conv_grouped_dw, gt_cpu_conv_direct, gt_cpu_conv_direct_dw;
gt_cpu_prepare gt_cpu_winograd_conv; /* winograd.c, for gt_cpu_conv; sets *out to NULL if Winograd's algorithm does not suit the call */
gt_cpu_prepare gt_dnnl_linear; /* gt_cpu_linear calls it (dnnl_conv.c) */
gt_cpu_prepare gt_cpu_linear_dw_bf16; /* linear_dw_bf16.c, for gt_cpu_linear; sets *out to NULL if it does not support the call */

/* launch_list.c: implements gt_backend.launch_list. */
enum gt_code gt_cpu_launch_list(struct gt_dev *dev, int n, struct gt_kernel *const *k, const struct gt_launch *args, struct gt_err *err);

#endif
