/* The CUDA device: detection, memory, streams, waits and errors. */
#include "base/bytes.h"
#include "cuda/cuda_internal.h"
#include "cuda/cublaslt.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- errors ------------------------------------------------------------------------------------------------------------------ */
/* Returns whether all CUDA calls of the process fail after an error: these are the errors for which the CUDA Runtime API documents "the
 * process must be terminated and relaunched". */
static bool is_sticky(cudaError_t e)
{
	switch ((int)e) {
	case cudaErrorECCUncorrectable:
	case cudaErrorNvlinkUncorrectable:
	case 226: /* cudaErrorContained, which older toolkits do not have */
	case cudaErrorIllegalAddress:
	case cudaErrorLaunchTimeout:
	case cudaErrorAssert:
	case cudaErrorHardwareStackError:
	case cudaErrorIllegalInstruction:
	case cudaErrorMisalignedAddress:
	case cudaErrorInvalidAddressSpace:
	case cudaErrorInvalidPc:
	case cudaErrorLaunchFailure:
	case 721: /* cudaErrorTensorMemoryLeak */
	case cudaErrorMpsClientTerminated:
	case cudaErrorExternalDevice: return true;
	default: return false;
	}
}

enum gt_code gt_cuda_fail(struct gt_dev *dev, cudaError_t e, const char *what, struct gt_err *err)
{
	if (dev)
		dev->lost |= is_sticky(e);
	cudaGetLastError(); /* clears an error that is not sticky, so that the next launch does not report it again */
	return gt_fail(err, GT_EFAIL, "%s: %s: %s (%s)", dev ? dev->id : "cuda", what, cudaGetErrorString(e), cudaGetErrorName(e));
}

/* ---- detection ---------------------------------------------------------------------------------------------------------------------- */
/* Returns the oldest release of NVIDIA's driver for Linux that runs programs of a CUDA major version (CUDA release notes, "CUDA Toolkit and
 * Minimum Required Driver Version for CUDA Minor Version Compatibility"); 0: not known here. */
static int driver_release(int major)
{
	return major == 12 ? 525 : major == 13 ? 580 : 0;
}

/* Explains in one line why no device is usable. */
static void explain_no_device(cudaError_t e, struct gt_err *err)
{
	int driver = 0, runtime = 0;
	char release[32] = "";
	cudaDriverGetVersion(&driver); /* version 0 means that no driver is installed */
	cudaRuntimeGetVersion(&runtime);
	if (driver_release(runtime / 1000))
		snprintf(release, sizeof release, " to release %d or newer", driver_release(runtime / 1000));
	if (!driver)
		gt_fail(err, GT_EUNAVAILABLE, "no CUDA driver (libcuda.so.1) on this machine");
	else if (driver / 1000 < runtime / 1000 || e == cudaErrorInsufficientDriver)
		gt_fail(err, GT_EUNAVAILABLE, "the CUDA driver supports CUDA %d.%d, but this build needs CUDA %d: update the NVIDIA driver%s",
		        driver / 1000, driver % 1000 / 10, runtime / 1000, release);
	else if (e == cudaErrorNoDevice || e == cudaSuccess)
		gt_fail(err, GT_EUNAVAILABLE, "the CUDA driver is installed, but it finds no GPU%s",
		        getenv("CUDA_VISIBLE_DEVICES") ? " (CUDA_VISIBLE_DEVICES is set)" : "");
	else
		gt_fail(err, GT_EUNAVAILABLE, "cannot initialise CUDA: %s", cudaGetErrorString(e));
}

#ifndef GT_CUDA_CODE
#define GT_CUDA_CODE 80, 90
#endif
#define PTX_CC 90 /* the driver compiles this PTX for newer cards (cuda.mk) */

/* Returns whether the build has machine code for a compute capability: code for X.Y runs on X.Z with Z >= Y. */
static bool has_code(int cc)
{
	static const int code[] = {GT_CUDA_CODE};
	for (size_t i = 0; i < sizeof code / sizeof *code; i++)
		if (code[i] / 10 == cc / 10 && code[i] <= cc)
			return true;
	return false;
}

/* Describes a device. A device that does not answer, such as a GPU that has fallen off the bus, is also listed, so that the other devices
 * can be used; opening it reports the error. */
static void describe_device(int i, struct gt_devinfo *out)
{
	struct cudaDeviceProp p;
	int driver = 0, runtime = 0;
	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	memset(out, 0, sizeof *out);
	snprintf(out->id, sizeof out->id, "cuda:%d", i);
	if (cudaDeviceGetPCIBusId(out->pci_bus_id, sizeof out->pci_bus_id, i) != cudaSuccess)
		snprintf(out->pci_bus_id, sizeof out->pci_bus_id, "device %d", i);
	cudaError_t e = cudaGetDeviceProperties(&p, i);
	cudaGetLastError();
	if (e != cudaSuccess) {
		snprintf(out->name, sizeof out->name, "GPU that does not answer");
		snprintf(out->detail, sizeof out->detail, "%s: %s (%s)", out->pci_bus_id, cudaGetErrorString(e), cudaGetErrorName(e));
		return;
	}
	int cc = 10 * p.major + p.minor;
	snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, p.name);
	snprintf(out->detail, sizeof out->detail, "compute capability %d.%d%s, %d multiprocessors, CUDA %d.%d, driver %d.%d", p.major, p.minor,
	         !has_code(cc) && cc < PTX_CC ? " (too old)" : "", p.multiProcessorCount, runtime / 1000, runtime % 1000 / 10, driver / 1000,
	         driver % 1000 / 10);
	if (!has_code(cc) && cc >= PTX_CC)
		snprintf(out->note, sizeof out->note, "the driver compiles the kernels for compute capability %d.%d once, which takes up to a "
		         "minute (build with CUDA_ARCH=%d to avoid it)", p.major, p.minor, cc);
	if (has_code(cc) || cc >= PTX_CC) /* older devices cannot be opened */
		snprintf(out->native, sizeof out->native, "fp32, tf32, bf16, fp16");
	out->bytes = p.totalGlobalMem;
}

enum gt_code gt_cuda_probe(struct gt_devinfo *out, int cap, int *n, struct gt_err *err)
{
	cudaError_t e = cudaGetDeviceCount(n);
	if (e != cudaSuccess || *n == 0) {
		*n = 0;
		cudaGetLastError();
		explain_no_device(e, err);
		return GT_OK;
	}
	for (int i = 0; i < *n && i < cap; i++)
		describe_device(i, &out[i]);
	return GT_OK;
}

enum gt_code gt_cuda_library(const char *file, const char *product, const char *const *names, void **const *slot, int n, void **so,
                             struct gt_err *err)
{
	*so = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!*so)
		return gt_fail(err, GT_EUNAVAILABLE, "%s cannot be loaded: %s", product, dlerror());
	for (int i = 0; i < n; i++)
		if (!(*slot[i] = dlsym(*so, names[i])))
			return gt_fail(err, GT_EUNAVAILABLE, "%s has no function %s: expected a different version of the library", file, names[i]);
	return GT_OK;
}

/* ---- open and close ----------------------------------------------------------------------------------------------------------------- */
enum gt_code gt_cuda_use(struct gt_dev *dev, struct gt_err *err)
{
	GT_CUDA(dev, cudaSetDevice(dev->index), "cudaSetDevice", err);
	return GT_OK;
}

void gt_cuda_close(struct gt_dev *dev)
{
	if (!dev)
		return;
	cudaSetDevice(dev->index);
	for (int i = 0; i < GT_CUDA_STREAMS; i++)
		if (dev->stream[i]) {
			cudaStreamSynchronize(dev->stream[i]);
			cudaStreamDestroy(dev->stream[i]);
		}
	for (int i = 0; i < GT_EVENTS; i++)
		if (dev->event[i])
			cudaEventDestroy(dev->event[i]);
	for (int i = 0; i < GT_MARKS; i++)
		if (dev->mark[i])
			cudaEventDestroy(dev->mark[i]);
	if (dev->fault)
		cudaFreeHost(dev->fault);
	gt_cuda_conv_close(dev);
	gt_lt_close(dev->lt);
	free(dev->block);
	free(dev);
}

static enum gt_code open_parts(struct gt_dev *dev, struct gt_err *err)
{
	struct cudaDeviceProp p;
	cudaStream_t s;
	void *host;
	GT_CUDA(dev, cudaSetDevice(dev->index), "cudaSetDevice", err);
	GT_CUDA(dev, cudaGetDeviceProperties(&p, dev->index), "cudaGetDeviceProperties", err);
	int cc = 10 * p.major + p.minor, driver = 0, runtime = 0;
	if (!has_code(cc) && cc < PTX_CC)
		return gt_fail(err, GT_EUNAVAILABLE, "%s: %s has compute capability %d.%d; 8.0 or newer is needed", dev->id, p.name, p.major,
		               p.minor);
	GT_CUDA(dev, cudaDriverGetVersion(&driver), "cudaDriverGetVersion", err);
	GT_CUDA(dev, cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion", err);
	if (!has_code(cc) && driver < runtime) /* an older driver cannot compile PTX (CUDA Compatibility, "Minor Version Compatibility") */
		return gt_fail(err, GT_EUNAVAILABLE, "%s: compute capability %d.%d needs kernels that the driver compiles, and therefore a driver "
		               "that supports CUDA %d.%d, but the driver supports %d.%d: update the NVIDIA driver, or build with CUDA_ARCH=%d",
		               dev->id, p.major, p.minor, runtime / 1000, runtime % 1000 / 10, driver / 1000, driver % 1000 / 10, cc);
	GT_CUDA(dev, cudaHostAlloc(&host, sizeof *dev->fault, cudaHostAllocMapped), "cudaHostAlloc", err);
	dev->fault = host;
	*dev->fault = (struct gt_cu_fault){0};
	GT_TRY(gt_cuda_stream(dev, 0, &s, err));
	return gt_lt_open(dev, &dev->lt, err);
}

enum gt_code gt_cuda_open(const struct gt_dev_opts *opts, struct gt_dev **out, struct gt_err *err)
{
	struct gt_dev *dev;
	enum gt_code code;
	*out = NULL;
	if (!(dev = calloc(1, sizeof *dev)))
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", sizeof *dev);
	dev->index = opts->index;
	dev->deterministic = opts->deterministic;
	dev->tf32 = opts->tf32;
	dev->winograd = opts->winograd;
	dev->autotune = opts->autotune;
	dev->cudnn_attention = opts->cudnn_attention;
	snprintf(dev->id, sizeof dev->id, "cuda:%d", opts->index);
	if ((code = open_parts(dev, err)) != GT_OK) {
		gt_cuda_close(dev);
		return code;
	}
	*out = dev;
	return GT_OK;
}

enum gt_code gt_cuda_stream(struct gt_dev *dev, int stream, cudaStream_t *out, struct gt_err *err)
{
	if (stream < 0 || stream >= GT_CUDA_STREAMS)
		return gt_fail(err, GT_EINTERNAL, "%s: stream %d does not exist", dev->id, stream);
	GT_TRY(gt_cuda_use(dev, err));
	if (!dev->stream[stream]) {
		/* All streams except the compute stream run copies, collectives and small kernels for which other work waits, so they get a higher
		 * priority. */
		int low = 0, high = 0;
		GT_CUDA(dev, cudaDeviceGetStreamPriorityRange(&low, &high), "cudaDeviceGetStreamPriorityRange", err);
		GT_CUDA(dev, cudaStreamCreateWithPriority(&dev->stream[stream], cudaStreamNonBlocking, stream ? high : low),
		        "cudaStreamCreateWithPriority", err);
	}
	*out = dev->stream[stream];
	return GT_OK;
}

/* ---- waits -------------------------------------------------------------------------------------------------------------------------- */
static enum gt_code check_fault(struct gt_dev *dev, struct gt_err *err)
{
	struct gt_cu_fault f = *(volatile struct gt_cu_fault *)dev->fault;
	if (f.code <= 0) /* no fault, or a kernel is still writing the fault, which the next wait reports */
		return GT_OK;
	*dev->fault = (struct gt_cu_fault){0};
	if (f.code == GT_CU_FAULT_LABEL)
		return gt_fail(err, GT_EDATA, "label %lld of sample %lld in the batch: the model has classes 0..%lld", (long long)f.value,
		               (long long)f.at, (long long)f.limit - 1);
	if (f.code == GT_CU_FAULT_TOKEN)
		return gt_fail(err, GT_EDATA, "token %lld of sample %lld in the batch: the table has rows 0..%lld", (long long)f.value,
		               (long long)f.at, (long long)f.limit - 1);
	if (f.code == GT_CU_FAULT_PLACE)
		return gt_fail(err, GT_EINTERNAL, "gather: position %lld is outside of the order of %lld samples",
		               (long long)f.value, (long long)f.limit);
	return gt_fail(err, GT_EINTERNAL, "gather: sample index %lld is outside of the dataset (%lld samples)", (long long)f.value,
	               (long long)f.limit);
}

enum gt_code gt_cuda_host_wait(struct gt_dev *dev, int event, struct gt_err *err)
{
	GT_TRY(gt_cuda_use(dev, err));
	if (event < 0 || event >= GT_EVENTS || !dev->event[event])
		return gt_fail(err, GT_EINTERNAL, "%s: event %d was never recorded", dev->id, event);
	GT_TRY(gt_cuda_finish(dev, NULL, dev->event[event], err));
	return check_fault(dev, err);
}

enum gt_code gt_cuda_wait(struct gt_dev *dev, cudaStream_t s, struct gt_err *err)
{
	if (dev->capturing)
		return gt_fail(err, GT_EINTERNAL, "%s: the host cannot wait while a graph is captured", dev->id);
	GT_TRY(gt_cuda_finish(dev, s, NULL, err));
	return check_fault(dev, err);
}

/* ---- memory -------------------------------------------------------------------------------------------------------------------- */
static enum gt_code add_block(struct gt_dev *dev, void *p, size_t bytes, struct gt_err *err)
{
	if (dev->nblocks == dev->cap) {
		int cap = dev->cap ? 2 * dev->cap : 64;
		struct gt_cuda_block *b = realloc(dev->block, (size_t)cap * sizeof *b);
		if (!b)
			return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", (size_t)cap * sizeof *b);
		dev->block = b;
		dev->cap = cap;
	}
	dev->block[dev->nblocks++] = (struct gt_cuda_block){p, bytes};
	return GT_OK;
}

bool gt_cuda_owns(const struct gt_dev *dev, const void *p, size_t bytes)
{
	uintptr_t at = (uintptr_t)p;
	for (int i = 0; i < dev->nblocks; i++) {
		uintptr_t begin = (uintptr_t)dev->block[i].p;
		if (at >= begin && at - begin <= dev->block[i].bytes && dev->block[i].bytes - (at - begin) >= bytes)
			return true;
	}
	return false;
}

enum gt_code gt_cuda_alloc(struct gt_dev *dev, size_t bytes, void **out, struct gt_err *err)
{
	size_t size = bytes ? bytes : 1, left = 0, all = 0;
	char text[3][GT_BYTES_TEXT];
	cudaError_t e;
	*out = NULL;
	GT_TRY(gt_cuda_use(dev, err));
	e = cudaMalloc(out, size);
	if (e == cudaErrorMemoryAllocation) {
		*out = NULL;
		cudaGetLastError();
		cudaMemGetInfo(&left, &all);
		return gt_fail(err, GT_EFAIL, "out of memory on %s: %s requested, %s of %s free",
		               dev->id, gt_bytes_text(text[0], sizeof text[0], size),
		               gt_bytes_text(text[1], sizeof text[1], left), gt_bytes_text(text[2], sizeof text[2], all));
	}
	GT_CUDA(dev, e, "cudaMalloc", err);
	e = cudaMemsetAsync(*out, 0, size, dev->stream[0]);
	/* the host waits, because another stream may use the memory at once */
	enum gt_code code = e == cudaSuccess ? gt_cuda_finish(dev, dev->stream[0], NULL, err)
	                                     : gt_cuda_fail(dev, e, "cudaMemsetAsync", err);
	if (code == GT_OK)
		code = add_block(dev, *out, size, err);
	if (code != GT_OK) {
		cudaFree(*out);
		*out = NULL;
	}
	return code;
}

enum gt_code gt_cuda_upload(struct gt_dev *dev, const void *src, size_t bytes, void **out, struct gt_err *err)
{
	GT_TRY(gt_cuda_alloc(dev, bytes, out, err));
	GT_CUDA(dev, cudaMemcpyAsync(*out, src, bytes, cudaMemcpyHostToDevice, dev->stream[0]), "cudaMemcpyAsync", err);
	return gt_cuda_finish(dev, dev->stream[0], NULL, err); /* the host waits, because a launch on any stream may follow */
}

enum gt_code gt_cuda_upload_chunks(struct gt_dev *dev, const struct gt_seg *seg, int nseg, struct gt_cu_table *out, struct gt_err *err)
{
	int64_t n = 0, at = 0;
	for (int i = 0; i < nseg; i++)
		n += (seg[i].end - seg[i].begin + GT_CU_CHUNK - 1) / GT_CU_CHUNK;
	if (n > INT32_MAX)
		return gt_fail(err, GT_EUNAVAILABLE, "%s: more than 2^31 chunks of parameters", dev->id);
	struct gt_cu_chunk *chunk = calloc((size_t)n + 1, sizeof *chunk);
	if (!chunk)
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", (size_t)n * sizeof *chunk);
	for (int i = 0; i < nseg; i++)
		for (int64_t begin = seg[i].begin; begin < seg[i].end; begin += GT_CU_CHUNK) {
			int64_t left = seg[i].end - begin;
			chunk[at++] = (struct gt_cu_chunk){begin, (int32_t)(left < GT_CU_CHUNK ? left : GT_CU_CHUNK), i};
		}
	out->n = n;
	enum gt_code code = gt_cuda_upload(dev, chunk, (size_t)(n ? n : 1) * sizeof *chunk, &out->p, err);
	free(chunk);
	return code;
}

enum gt_code gt_cuda_counters(struct gt_dev *dev, struct gt_kernel *k, int64_t n, struct gt_err *err)
{
	return gt_cuda_alloc(dev, (size_t)n * sizeof(uint32_t), &k->counter, err);
}

enum gt_code gt_cuda_host_alloc(struct gt_dev *dev, size_t bytes, void **out, struct gt_err *err)
{
	GT_TRY(gt_cuda_use(dev, err));
	*out = NULL;
	cudaError_t e = cudaHostAlloc(out, bytes ? bytes : 1, cudaHostAllocDefault);
	if (e == cudaErrorMemoryAllocation)
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes of page-locked host memory for %s", bytes, dev->id);
	GT_CUDA(dev, e, "cudaHostAlloc", err);
	memset(*out, 0, bytes);
	return GT_OK;
}

void gt_cuda_host_free(struct gt_dev *dev, void *p)
{
	cudaSetDevice(dev->index);
	if (p)
		cudaFreeHost(p);
}

void gt_cuda_free(struct gt_dev *dev, void *p)
{
	if (!p)
		return;
	cudaSetDevice(dev->index);
	for (int i = 0; i < dev->nblocks; i++)
		if (dev->block[i].p == p) {
			dev->block[i] = dev->block[--dev->nblocks];
			break;
		}
	cudaFree(p); /* cudaFree waits for kernels that may still use the memory */
}

enum gt_code gt_cuda_step_args(const struct gt_dev *dev, const struct gt_launch *a, struct gt_cu_step_args *out, struct gt_err *err)
{
	if (gt_cuda_owns(dev, a->step_args, sizeof *a->step_args)) {
		*out = (struct gt_cu_step_args){.dev = a->step_args};
		return GT_OK;
	}
	if (dev->capturing)
		return gt_fail(err, GT_EINTERNAL,
		               "%s: a captured launch needs its gt_step_args in device memory, or the graph would repeat this step", dev->id);
	*out = (struct gt_cu_step_args){.host = *a->step_args};
	return GT_OK;
}
