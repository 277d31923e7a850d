/* The CPU device: memory, threads, and the table that maps operation codes to families. The functions for streams, events and sync do
 * nothing: a launch has done its work when it returns. */
#include "base/bytes.h"
#include "cpu/cpu.h"
#include "omp_threads.h"
#include "opsig.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define HUGE_PAGE ((size_t)2 << 20)

struct gt_dev {
	int threads;
	bool alone;
	bool winograd;
	struct gt_dnnl *dnnl;
};

int gt_cpu_threads(const struct gt_dev *dev)
{
	return dev->threads;
}

int gt_cpu_threads_now(const struct gt_dev *dev)
{
	return dev->alone ? 1 : dev->threads;
}

void gt_cpu_set_alone(struct gt_dev *dev, bool alone)
{
	dev->alone = alone;
}

bool gt_cpu_winograd(const struct gt_dev *dev)
{
	return dev->winograd;
}

struct gt_dnnl *gt_cpu_dnnl(const struct gt_dev *dev)
{
	return dev->dnnl;
}

/* ---- operations --------------------------------------------------------------------------------------------------------------------- */
static gt_cpu_prepare *const table[GT_OP_COUNT] = {
#define GT_X(code, name, family, ...) [code] = gt_cpu_##family,
	GT_OPCODES(GT_X)
#undef GT_X
#define GT_X(NAME, ...) [GT_OP_##NAME] = gt_cpu_update,
	GT_ELEMENT_UPDATES(GT_X)
	GT_NORM_UPDATES(GT_X)
#undef GT_X
	[GT_OP_MUON] = gt_cpu_muon,
};

/* Returns whether the family of an operation supports only f32 and bf16: its loops are compiled only for these types, or it uses oneDNN. */
static bool lacks_f64(enum gt_opcode code)
{
	static gt_cpu_prepare *const without[] = {gt_cpu_linear, gt_cpu_conv, gt_cpu_pool, gt_cpu_batchnorm, gt_cpu_groupnorm, gt_cpu_rnn};
	for (size_t i = 0; i < sizeof without / sizeof *without; i++)
		if (table[code] == without[i])
			return true;
	return false;
}

static bool has_dtype(const struct gt_opcall *call, enum gt_dtype t)
{
	for (int i = 0; i < call->nin; i++)
		if (call->in[i] && call->in[i]->dtype == t)
			return true;
	for (int i = 0; i < call->nout; i++)
		if (call->out[i] && call->out[i]->dtype == t)
			return true;
	return false;
}

enum gt_code gt_cpu_none(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	(void)dev, (void)out;
	return gt_opcall_refuse(call, err, "not supported by the cpu backend");
}

static enum gt_code cpu_prepare(struct gt_dev *dev, const struct gt_opcall *call, struct gt_kernel **out, struct gt_err *err)
{
	*out = NULL;
	GT_TRY(gt_opcall_check(call, err));
	if (has_dtype(call, GT_F16))
		return gt_opcall_refuse(call, err, "f16 is not supported by the cpu backend");
	if (lacks_f64(call->code) && gt_opcall_input(call)->dtype == GT_F64)
		return gt_opcall_refuse(call, err, "f64 is not supported by the cpu backend");
	if (gt_opcall_padded(call))
		return gt_opcall_refuse(call, err, "padded channels are not supported by the cpu backend");
	omp_set_num_threads(dev->threads);
	return table[call->code](dev, call, out, err);
}

static void cpu_release(struct gt_dev *dev, struct gt_kernel *k)
{
	(void)dev;
	if (k && k->release)
		k->release(k);
	else
		free(k);
}

static size_t cpu_scratch(const struct gt_kernel *k)
{
	return k->scratch;
}

static const char *cpu_describe(const struct gt_kernel *k)
{
	return k->describe;
}

static enum gt_code cpu_launch(struct gt_dev *dev, struct gt_kernel *k, const struct gt_launch *a, struct gt_err *err)
{
	/* OpenMP keeps this setting for each host thread, and prepare() may have been called by another thread than the launch */
	if (omp_get_max_threads() != dev->threads)
		omp_set_num_threads(dev->threads);
	return k->launch(dev, k, a, err);
}

static enum gt_code cpu_launch_list(struct gt_dev *dev, int n, struct gt_kernel *const *k, const struct gt_launch *args, struct gt_err *err)
{
	if (omp_get_max_threads() != dev->threads)
		omp_set_num_threads(dev->threads);
	return gt_cpu_launch_list(dev, n, k, args, err);
}

/* ---- memory ------------------------------------------------------------------------------------------------------------------ */
static void zero_memory(struct gt_dev *dev, void *p, size_t bytes)
{
	const size_t chunk = (size_t)1 << 20;
	int64_t n = (int64_t)((bytes + chunk - 1) / chunk);
	if (n < 2) {
		memset(p, 0, bytes);
		return;
	}
#pragma omp parallel for schedule(static) num_threads(dev->threads)
	for (int64_t i = 0; i < n; i++) {
		size_t at = (size_t)i * chunk;
		memset((char *)p + at, 0, bytes - at < chunk ? bytes - at : chunk);
	}
}

enum gt_code gt_cpu_keep(size_t bytes, void **out, struct gt_err *err)
{
	size_t align = bytes >= HUGE_PAGE ? HUGE_PAGE : 64, size;
	char text[GT_BYTES_TEXT];
	*out = NULL;
	if (bytes > SIZE_MAX - align || bytes > PTRDIFF_MAX - HUGE_PAGE)
		return gt_fail(err, GT_EFAIL, "out of memory: cannot get %s", gt_bytes_text(text, sizeof text, bytes));
	size = bytes ? (bytes + 63) & ~(size_t)63 : 64;
	if (posix_memalign(out, align, size)) {
		*out = NULL;
		return gt_fail(err, GT_EFAIL, "out of memory: cannot get %s", gt_bytes_text(text, sizeof text, bytes));
	}
	if (align == HUGE_PAGE)
		madvise(*out, size & ~(size_t)4095, MADV_HUGEPAGE); /* a failure of madvise only makes the run slower */
	return GT_OK;
}

static enum gt_code cpu_alloc(struct gt_dev *dev, size_t bytes, void **out, struct gt_err *err)
{
	GT_TRY(gt_cpu_keep(bytes, out, err));
	zero_memory(dev, *out, bytes ? (bytes + 63) & ~(size_t)63 : 64);
	return GT_OK;
}

static void cpu_free(struct gt_dev *dev, void *p)
{
	(void)dev;
	free(p);
}

static enum gt_code cpu_copy(struct gt_dev *dev, void *dst, const void *src, size_t bytes, enum gt_copy dir, int stream, struct gt_err *err)
{
	(void)dev, (void)dir, (void)stream, (void)err;
	memcpy(dst, src, bytes);
	return GT_OK;
}

static enum gt_code cpu_zero(struct gt_dev *dev, void *dst, size_t bytes, int stream, struct gt_err *err)
{
	(void)stream, (void)err;
	zero_memory(dev, dst, bytes);
	return GT_OK;
}

static enum gt_code cpu_event(struct gt_dev *dev, int event, int stream, struct gt_err *err)
{
	(void)dev, (void)event, (void)stream, (void)err;
	return GT_OK;
}

static enum gt_code cpu_sync(struct gt_dev *dev, int stream, struct gt_err *err)
{
	(void)dev, (void)stream, (void)err;
	return GT_OK;
}

/* ---- device ------------------------------------------------------------------------------------------------------------------------- */
static void cpu_brand(char *buf, size_t size)
{
	snprintf(buf, size, "CPU");
#if defined(__x86_64__)
	unsigned int r[12];
	char text[sizeof r + 1] = "";
	for (unsigned int i = 0; i < 3; i++)
		if (!__get_cpuid(0x80000002u + i, &r[4 * i], &r[4 * i + 1], &r[4 * i + 2], &r[4 * i + 3]))
			return;
	memcpy(text, r, sizeof r);
	for (size_t n = strlen(text); n && text[n - 1] == ' ';)
		text[--n] = 0;
	snprintf(buf, size, "%s", text + strspn(text, " "));
#endif
}

static int default_threads(void)
{
	int n = gt_omp_threads(getenv("OMP_NUM_THREADS"));
	return n > 0 ? n : omp_get_num_procs(); /* OpenMP counts the processors in the affinity mask of the process */
}

/* Returns the bytes of the largest cache of the first processor; 0: not known. sysconf() knows no caches on arm64, and in a virtual machine
 * it returns those of the host. */
static uint64_t find_cache(void)
{
	uint64_t most = 0;
	for (int i = 0; i < 8; i++) {
		char path[64], unit = 0;
		unsigned long long n = 0;
		snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
		FILE *f = fopen(path, "re");
		if (!f)
			break;
		if (fscanf(f, "%llu%c", &n, &unit) < 1)
			n = 0;
		n <<= unit == 'K' ? 10 : unit == 'M' ? 20 : 0;
		most = n > most ? n : most;
		fclose(f);
	}
	return most;
}

static enum gt_code cpu_probe(struct gt_devinfo *out, int cap, int *n, struct gt_err *err)
{
	char brand[64];
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	(void)err;
	*n = 1;
	if (cap < 1)
		return GT_OK;
	cpu_brand(brand, sizeof brand);
	memset(out, 0, sizeof *out);
	snprintf(out->id, sizeof out->id, "cpu");
	snprintf(out->name, sizeof out->name, "%s (%s)", brand, gt_dnnl_isa());
	out->threads = default_threads();
	gt_dnnl_version(out->detail, sizeof out->detail);
	snprintf(out->native, sizeof out->native, "fp32%s", gt_dnnl_has_bf16() ? ", bf16" : "");
	out->bytes = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
	out->cache = find_cache();
	return GT_OK;
}

static void cpu_close(struct gt_dev *dev)
{
	if (dev)
		gt_dnnl_close(dev->dnnl);
	free(dev);
}

static enum gt_code cpu_open(const struct gt_dev_opts *opts, struct gt_dev **out, struct gt_err *err)
{
	struct gt_dev *dev;
	enum gt_code code;
	*out = NULL;
	if (opts->index != 0)
		return gt_fail(err, GT_EUNAVAILABLE, "no such device: cpu:%d (there is one cpu device)", opts->index);
	if (!(dev = calloc(1, sizeof *dev)))
		return gt_fail(err, GT_EFAIL, "out of memory: %zu bytes", sizeof *dev);
	dev->threads = opts->threads > 0 ? opts->threads : default_threads();
	dev->winograd = opts->winograd;
	omp_set_dynamic(0);
	omp_set_num_threads(dev->threads);
	if ((code = gt_dnnl_open(&dev->dnnl, err)) != GT_OK) {
		free(dev);
		return code;
	}
	*out = dev;
	return GT_OK;
}

__attribute__((visibility("default"))) extern const struct gt_backend gt_backend_cpu;
const struct gt_backend gt_backend_cpu = {
	.abi = GT_BACKEND_ABI,
	.name = "cpu",
	.host_memory = true,
	.folds_norms = true,
	.probe = cpu_probe,
	.open = cpu_open,
	.close = cpu_close,
	.alloc = cpu_alloc,
	.free = cpu_free,
	.copy = cpu_copy,
	.zero = cpu_zero,
	.prepare = cpu_prepare,
	.release = cpu_release,
	.scratch = cpu_scratch,
	.describe = cpu_describe,
	.launch = cpu_launch,
	.launch_list = cpu_launch_list,
	.record = cpu_event,
	.wait = cpu_event,
	.sync = cpu_sync,
};
