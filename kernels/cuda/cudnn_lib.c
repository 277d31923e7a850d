#include "cuda/cudnn_lib.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)
#define LIBRARY "libcudnn.so." TEXT(CUDNN_MAJOR)

/* ---- errors ------------------------------------------------------------------------------------------------------------------ */
/* Copies cuDNN's reason for the last error to buf, as one line. */
static void copy_reason(const struct gt_dnn *dnn, char *buf, size_t size)
{
	buf[0] = '\0';
	dnn->cudnnGetLastErrorString(buf, size);
	buf[size - 1] = '\0';
	for (char *p = buf; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = ' ';
}

static void version_text(const struct gt_dnn *dnn, char *buf, size_t size)
{
	snprintf(buf, size, "cuDNN %zu.%zu.%zu", dnn->version / 10000, dnn->version / 100 % 100, dnn->version % 100);
}

enum gt_code gt_dnn_fail(const struct gt_dev *dev, cudnnStatus_t status, const char *what, struct gt_err *err)
{
	char why[512], version[32];
	copy_reason(dev->dnn, why, sizeof why);
	version_text(dev->dnn, version, sizeof version);
	return gt_fail(err, GT_EFAIL, "%s: %s: %s: %s%s%s", dev->id, version, what, dev->dnn->cudnnGetErrorString(status), why[0] ? ": " : "",
	               why);
}

/* ---- the library ------------------------------------------------------------------------------------------------------------- */
static enum gt_code load_library(struct gt_dnn *dnn, struct gt_err *err)
{
	static const char *const names[] = {
#define GT_X(name) #name,
	    GT_DNN_FUNCTIONS(GT_X)
#undef GT_X
	};
	void **const slots[] = {
#define GT_X(name) (void **)&dnn->name,
	    GT_DNN_FUNCTIONS(GT_X)
#undef GT_X
	};
	GT_TRY(gt_cuda_library(LIBRARY, "cuDNN", names, slots, (int)(sizeof names / sizeof *names), &dnn->so, err));
	dnn->version = dnn->cudnnGetVersion();
	return GT_OK;
}

/* Loads cuDNN and checks that its major version is that of the build's headers: only within a major version do attributes never
 * disappear. */
static enum gt_code load_checked(struct gt_dnn *dnn, struct gt_err *err)
{
	GT_TRY(load_library(dnn, err));
	if (dnn->version / 10000 != CUDNN_VERSION / 10000)
		return gt_fail(err, GT_EUNAVAILABLE, "%s is cuDNN %zu.%zu; this build needs %d.x", LIBRARY, dnn->version / 10000,
		               dnn->version / 100 % 100, CUDNN_VERSION / 10000);
	return GT_OK;
}

enum gt_code gt_dnn_load(struct gt_dnn **out, struct gt_err *err)
{
	struct gt_dnn *dnn = calloc(1, sizeof *dnn);
	*out = NULL;
	if (!dnn)
		return gt_fail(err, GT_EFAIL, "out of memory");
	enum gt_code code = load_checked(dnn, err);
	if (code != GT_OK) {
		gt_dnn_close(dnn);
		return code;
	}
	*out = dnn;
	return GT_OK;
}

enum gt_code gt_dnn_open(struct gt_dev *dev, struct gt_err *err)
{
	struct gt_dnn *dnn;
	struct cudaDeviceProp p;
	char card[300], version[32];
	if (dev->dnn)
		return GT_OK;
	GT_TRY(gt_dnn_load(&dnn, err));
	enum gt_code code;
	dev->dnn = dnn;
	cudnnStatus_t status = dnn->cudnnCreate(&dnn->handle);
	if (status != CUDNN_STATUS_SUCCESS) {
		dnn->handle = NULL;
		code = gt_dnn_fail(dev, status, "cudnnCreate", err);
	} else {
		GT_CUDA(dev, cudaGetDeviceProperties(&p, dev->index), "cudaGetDeviceProperties", err);
		snprintf(card, sizeof card, "%.255s, %d.%d, %d SMs", p.name, p.major, p.minor, p.multiProcessorCount);
		snprintf(version, sizeof version, "cudnn %zu", dnn->version);
		code = gt_dnn_cache_open(card, version, &dnn->cache, err);
	}
	if (code != GT_OK) {
		dev->dnn = NULL;
		gt_dnn_close(dnn);
	}
	return code;
}

void gt_dnn_close(struct gt_dnn *dnn)
{
	if (!dnn)
		return;
	gt_dnn_cache_close(dnn->cache);
	if (dnn->prop)
		dnn->cudnnBackendDestroyDescriptor(dnn->prop);
	if (dnn->handle)
		dnn->cudnnDestroy(dnn->handle);
	free(dnn); /* the library stays loaded, as cuBLASLt does */
}

/* ---- descriptors ------------------------------------------------------------------------------------------------------------- */
static void note_status(struct gt_dnn_set *s, cudnnStatus_t status, const char *what)
{
	if (status == CUDNN_STATUS_SUCCESS || s->status != CUDNN_STATUS_SUCCESS)
		return;
	s->status = status;
	s->what = what;
	copy_reason(s->dnn, s->why, sizeof s->why);
}

cudnnBackendDescriptor_t gt_dnn_new(struct gt_dnn_set *s, cudnnBackendDescriptorType_t type, const char *what)
{
	cudnnBackendDescriptor_t d = NULL;
	if (s->status != CUDNN_STATUS_SUCCESS)
		return NULL;
	if (s->n == GT_DNN_SET) {
		s->status = CUDNN_STATUS_BAD_PARAM;
		s->what = "too many descriptors";
		return NULL;
	}
	note_status(s, s->dnn->cudnnBackendCreateDescriptor(type, &d), what);
	if (s->status != CUDNN_STATUS_SUCCESS)
		return NULL;
	return s->d[s->n++] = d;
}

void gt_dnn_put(struct gt_dnn_set *s, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                int64_t n, const void *values)
{
	if (s->status == CUDNN_STATUS_SUCCESS)
		note_status(s, s->dnn->cudnnBackendSetAttribute(d, name, type, n, values), "cudnnBackendSetAttribute");
}

void gt_dnn_put_desc(struct gt_dnn_set *s, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value)
{
	gt_dnn_put(s, d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value);
}

void gt_dnn_finalize(struct gt_dnn_set *s, cudnnBackendDescriptor_t d, const char *what)
{
	if (s->status == CUDNN_STATUS_SUCCESS)
		note_status(s, s->dnn->cudnnBackendFinalize(d), what);
}

int64_t gt_dnn_get(struct gt_dnn_set *s, cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   int64_t cap, void *values)
{
	int64_t n = 0;
	if (s->status == CUDNN_STATUS_SUCCESS)
		note_status(s, s->dnn->cudnnBackendGetAttribute(d, name, type, cap, &n, values), "cudnnBackendGetAttribute");
	if (s->status != CUDNN_STATUS_SUCCESS || n < 0)
		return 0;
	return n < cap ? n : cap;
}

void gt_dnn_drop(struct gt_dnn_set *s, int keep)
{
	while (s->n > keep)
		s->dnn->cudnnBackendDestroyDescriptor(s->d[--s->n]);
	s->status = CUDNN_STATUS_SUCCESS;
}

const char *gt_dnn_failure_text(const struct gt_dnn_set *s, char *buf, size_t size)
{
	char version[32];
	version_text(s->dnn, version, sizeof version);
	snprintf(buf, size, "%s: %s: %s%s%s", version, s->what ? s->what : "?", s->dnn->cudnnGetErrorString(s->status), s->why[0] ? ": " : "",
	         s->why);
	return buf;
}
