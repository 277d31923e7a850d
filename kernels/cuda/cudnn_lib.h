/* cuDNN 9's backend (graph) interface, loaded at run time: a table of its functions, the handle, descriptors, errors.
 *
 * Rules of the library on which this code relies (cuDNN documentation, "Graph API" and "cudnn_graph Library"):
 * - A descriptor is created, given attributes and finalized; afterwards it is read only. A descriptor is destroyed before the descriptors
 *   to which it refers (struct gt_dnn_set keeps the order). cudnnBackendSetAttribute takes an attribute, its one valid type, a count and an
 *   array.
 * - cudnnBackendGetAttribute for an array of descriptors fills descriptors that the caller has created.
 * - An engine is identified by (operation graph, global index). An engine configuration adds knob choices. Both reproduce the same plan
 *   with the same library version and card ("CUDNN_BACKEND_ENGINECFG_DESCRIPTOR").
 * - cudnnGetLastErrorString returns the reason of the calling thread's last failure (9.0 and newer).
 * - cudnnSetStream may be called while the stream is captured to a graph. cudnnBackendExecute allocates nothing on the device. */
#ifndef GT_KERNELS_CUDNN_LIB_H
#define GT_KERNELS_CUDNN_LIB_H

#include "cuda/cuda_internal.h"
#include "cuda/cudnn_cache.h"
#include <cudnn_graph.h>

#define GT_DNN_FUNCTIONS(X)                                                                                                                \
	X(cudnnGetVersion)                                                                                                                     \
	X(cudnnGetErrorString)                                                                                                                 \
	X(cudnnGetLastErrorString)                                                                                                             \
	X(cudnnCreate)                                                                                                                         \
	X(cudnnDestroy)                                                                                                                        \
	X(cudnnSetStream)                                                                                                                      \
	X(cudnnBackendCreateDescriptor)                                                                                                        \
	X(cudnnBackendDestroyDescriptor)                                                                                                       \
	X(cudnnBackendSetAttribute)                                                                                                            \
	X(cudnnBackendGetAttribute)                                                                                                            \
	X(cudnnBackendFinalize)                                                                                                                \
	X(cudnnBackendExecute)

struct gt_dnn_shared;

struct gt_dnn {
	void *so;
	cudnnHandle_t handle;          /* NULL in tests that make plans without a GPU; prop then describes the device */
	cudnnBackendDescriptor_t prop; /* properties of the device (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR); needs cuDNN 9.8 or newer */
	cudaStream_t stream;           /* the stream of the handle */
	size_t version;                /* 91900 for 9.19.0 */
	struct gt_dnn_cache *cache;
	struct gt_dnn_shared *shared;  /* list of the plans of attention that kernels use */
	bool awake;                    /* the device has left its low idle clock, at which a trial would measure the first plan as too slow */
#define GT_X(name) __typeof__(name) *name;
	GT_DNN_FUNCTIONS(GT_X)
#undef GT_X
};

/* Loads cuDNN, without a handle. Returns GT_EUNAVAILABLE with the loader's reason if the library is missing, or has another major version
 * than the build's headers. */
enum gt_code gt_dnn_load(struct gt_dnn **out, struct gt_err *err);
/* Loads cuDNN as dev->dnn, with a handle and a cache, if it is not loaded yet. Fails like gt_dnn_load. */
enum gt_code gt_dnn_open(struct gt_dev *dev, struct gt_err *err);
void gt_dnn_close(struct gt_dnn *dnn); /* dnn may be NULL */

/* ---- descriptors ------------------------------------------------------------------------------------------------------------- */
#define GT_DNN_SET 160 /* maximum number of descriptors in a set */
/* A set of descriptors, destroyed in reverse order. After the first failure all further calls do nothing, and
 * gt_dnn_failure_text() describes the failure. */
struct gt_dnn_set {
	struct gt_dnn *dnn;
	cudnnBackendDescriptor_t d[GT_DNN_SET];
	int n;
	cudnnStatus_t status; /* status of the first failure */
	const char *what;     /* the call that failed */
	char why[256];        /* cuDNN's message */
};

cudnnBackendDescriptor_t gt_dnn_new(struct gt_dnn_set *s, cudnnBackendDescriptorType_t type, const char *what); /* NULL after a failure */
void gt_dnn_put(struct gt_dnn_set *s, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                int64_t n, const void *values);
void gt_dnn_put_desc(struct gt_dnn_set *s, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value);
void gt_dnn_finalize(struct gt_dnn_set *s, cudnnBackendDescriptor_t d, const char *what);
/* Reads up to cap values of an attribute. Returns the number of values in `values`; 0 after a failure. */
int64_t gt_dnn_get(struct gt_dnn_set *s, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   int64_t cap, void *values);
void gt_dnn_drop(struct gt_dnn_set *s, int keep); /* destroys all but the first `keep` descriptors, and clears a failure */
/* Describes the first failure of the set in buf, as "cuDNN 9.19.0: operation graph: CUDNN_STATUS_NOT_SUPPORTED: reason", and returns
 * buf. */
const char *gt_dnn_failure_text(const struct gt_dnn_set *s, char *buf, size_t size);

/* Returns GT_EFAIL with "cuda:0: cuDNN 9.19.0: cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED: reason". */
enum gt_code gt_dnn_fail(const struct gt_dev *dev, cudnnStatus_t status, const char *what, struct gt_err *err);

#endif
