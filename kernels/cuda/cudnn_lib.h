/* cuDNN 9's backend (graph) interface, opened at run time: its functions in a table, the handle, descriptors, errors.
 *
 * Rules of the library that this code leans on (cuDNN documentation, "Graph API" and "cudnn_graph Library"):
 * - A descriptor is created, given attributes, finalized; afterwards it is read only. Descriptors that refer to others are dropped
 *   before those (descriptor_set keeps the order). cudnnBackendSetAttribute: attribute, its one right type, count, array.
 * - cudnnBackendGetAttribute of an array of descriptors fills descriptors that the caller created.
 * - An engine is (operation graph, global index); an engine configuration adds knob choices; both rebuild the same plan on the same
 *   library version and card ("CUDNN_BACKEND_ENGINECFG_DESCRIPTOR").
 * - cudnnGetLastErrorString tells the reason of the calling thread's last failure (9.0 and newer).
 * - cudnnSetStream may be called while the stream is captured to a graph; cudnnBackendExecute allocates nothing on the device. */
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

struct gt_dnn {
	void *so;
	cudnnHandle_t handle;          /* NULL: no device is there, prop describes one (tests of plans without a GPU) */
	cudnnBackendDescriptor_t prop; /* CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, cuDNN 9.8 and newer */
	cudaStream_t stream;           /* of the handle */
	size_t version;                /* 91900 */
	struct gt_dnn_cache *cache;
#define GT_X(name) __typeof__(name) *name;
	GT_DNN_FUNCTIONS(GT_X)
#undef GT_X
};

/* Opens dev->dnn unless it is open. GT_EUNAVAILABLE with the loader's reason if the library is missing. */
enum gt_code gt_dnn_open(struct gt_dev *dev, struct gt_err *err);
void gt_dnn_close(struct gt_dnn *dnn); /* NULL is fine */

/* In place of gt_dnn_open(), for tests: no GPU, but the properties of one as cuDNN writes them (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).
 * Plans are chosen by the real library's rules and never run. */
enum gt_code gt_dnn_open_profile(struct gt_dev *dev, const char *json, struct gt_err *err);

/* ---- descriptors ------------------------------------------------------------------------------------------------------------- */
#define GT_DNN_SET 160
/* Descriptors that go together, dropped in reverse. A failure sticks: what follows does nothing, and gt_dnn_told() says it. */
struct gt_dnn_set {
	struct gt_dnn *dnn;
	cudnnBackendDescriptor_t d[GT_DNN_SET];
	int n;
	cudnnStatus_t status; /* of the first failure */
	const char *what;     /* failed */
	char why[256];        /* cuDNN's words */
};

cudnnBackendDescriptor_t gt_dnn_new(struct gt_dnn_set *s, cudnnBackendDescriptorType_t type, const char *what); /* NULL after a failure */
void gt_dnn_put(struct gt_dnn_set *s, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                int64_t n, const void *values);
void gt_dnn_put_desc(struct gt_dnn_set *s, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value);
void gt_dnn_finalize(struct gt_dnn_set *s, cudnnBackendDescriptor_t d, const char *what);
/* Up to cap values; returns how many there are now in `values`, 0 after a failure. */
int64_t gt_dnn_get(struct gt_dnn_set *s, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   int64_t cap, void *values);
void gt_dnn_drop(struct gt_dnn_set *s, int keep); /* all but the first `keep`; forgets a failure */
/* "cuDNN 9.19.0: operation graph: CUDNN_STATUS_NOT_SUPPORTED: reason" into buf; returns buf. */
const char *gt_dnn_told(const struct gt_dnn_set *s, char *buf, size_t size);

/* "cuda:0: cuDNN 9.19.0: cudnnBackendExecute: CUDNN_STATUS_EXECUTION_FAILED: reason": GT_EFAIL */
enum gt_code gt_dnn_fail(const struct gt_dev *dev, cudnnStatus_t status, const char *what, struct gt_err *err);

#endif
