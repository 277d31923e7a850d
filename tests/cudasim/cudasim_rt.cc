/* Memory, streams, events, graphs. A stream is a queue of work that is put off until somebody waits. */
#include "cuda_runtime.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <vector>

#define PAGE ((size_t)4096)
#define CAPACITY ((size_t)1 << 30) /* of the device, so that running out of memory can be tested */

struct mark { /* a recorded event: a place in a queue */
	bool done = false;
	double us = 0; /* by the simulated clock */
	double host = 0; /* seconds, by the host's */
	cudaStream_t s = nullptr;
};

struct item {
	std::function<void()> work;
	std::shared_ptr<mark> record, wait;
	std::function<bool()> held; /* not to be begun while it says so */
};

struct cudasim_stream {
	std::deque<item> queue;
	cudasim_graph *capture = nullptr;
	bool first = true; /* of the lowest priority: the stream of kernels, beside which others run */
};

/* How many pieces of work of each stream come before a point of a capture. */
typedef std::map<cudaStream_t, size_t> order;

struct cudasim_event {
	std::shared_ptr<mark> last;
	cudasim_graph *capture = nullptr; /* recorded in a capture */
	order before;                     /* in the capture */
	bool disabled = false;            /* the timing */
};

struct piece { /* of a graph: work, or a kernel that waits while held() is true */
	std::function<void()> work;
	std::function<bool()> held;
};

struct captured {
	piece what;
	cudaStream_t stream;
	order before;
};

struct cudasim_graph {
	std::vector<captured> list; /* in the order of the calls */
	std::vector<piece> work;    /* in the order in which they run */
	std::vector<std::shared_ptr<void>> users; /* user objects: references that the graph holds as long as it lives */
	std::set<cudaStream_t> streams;
	std::map<cudaStream_t, order> ends;      /* what comes before the next work of each stream */
};

struct block {
	char *map;
	size_t map_bytes, bytes;
};

static std::recursive_mutex lock;
static std::map<char *, block> blocks;
static size_t used;
static int open_depth;
static double clock_us;
#define GUARD std::lock_guard<std::recursive_mutex> guard(lock)

/* $CUDASIM_LOST: the device has met an error after which every call returns the same error (CUDA Runtime API, cudaErrorIllegalAddress:
 * "the process must be terminated and relaunched"). A test sets it while the program runs. */
static bool lost()
{
	return getenv("CUDASIM_LOST") != nullptr;
}

/* ---- memory -------------------------------------------------------------------------------------------------------------------- */
static void protect(int prot)
{
	for (auto &b : blocks)
		if (mprotect(b.second.map, b.second.map_bytes - PAGE, prot))
			abort();
}

/* While one lives, device memory can be read and written. */
struct device_access {
	device_access()
	{
		if (!open_depth++)
			protect(PROT_READ | PROT_WRITE);
	}
	~device_access()
	{
		if (!--open_depth)
			protect(PROT_NONE);
	}
};

void cudasim_cover()
{
	protect(PROT_NONE);
}

void cudasim_reveal()
{
	protect(PROT_READ | PROT_WRITE);
}

/* As memset. Whole pages of zeros are given back to the host, which has them at the next access. */
static void fill(char *dst, int value, size_t bytes)
{
	char *first = (char *)(((uintptr_t)dst + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
	char *end = (char *)((uintptr_t)(dst + bytes) & ~(uintptr_t)(PAGE - 1));
	if (value || end - first < 16 * (ptrdiff_t)PAGE || madvise(first, (size_t)(end - first), MADV_DONTNEED)) {
		memset(dst, value, bytes);
		return;
	}
	memset(dst, 0, (size_t)(first - dst));
	memset(end, 0, (size_t)(dst + bytes - end));
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
	GUARD;
	/* The block ends less than 256 bytes, its alignment, before the guard page. */
	size_t size = (bytes + 255) / 256 * 256, pages = (size + PAGE - 1) / PAGE * PAGE;
	if (bytes > CAPACITY || used + size > CAPACITY)
		return cudaErrorMemoryAllocation;
	char *map = (char *)mmap(NULL, pages + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return cudaErrorMemoryAllocation;
	char *at = map + pages - size;
	if (mprotect(map, pages, PROT_READ | PROT_WRITE))
		abort();
	if (!getenv("CUDASIM_DNN_IDLE"))
		memset(at, 0xff, size); /* NaN: fresh memory holds anything */
	if (!open_depth && mprotect(map, pages, PROT_NONE))
		abort();
	blocks[at] = {map, pages + PAGE, size};
	used += size;
	*p = at;
	return cudaSuccess;
}

static std::set<cudaStream_t> all_streams;
static void drain(cudaStream_t s);

cudaError_t cudaFree(void *p)
{
	GUARD;
	if (lost())
		return cudaErrorIllegalAddress;
	if (!p)
		return cudaSuccess;
	auto it = blocks.find((char *)p);
	if (it == blocks.end())
		return cudaErrorInvalidValue;
	for (cudaStream_t s : all_streams)
		drain(s);
	munmap(it->second.map, it->second.map_bytes);
	used -= it->second.bytes;
	blocks.erase(it);
	return cudaSuccess;
}

bool cudasim_on_device(const void *p, size_t bytes)
{
	GUARD;
	auto it = blocks.upper_bound((char *)p);
	if (it == blocks.begin())
		return false;
	--it;
	return (const char *)p + bytes <= it->first + it->second.bytes;
}

/* Overlaps a block at all? Host addresses must not. */
static bool touches_device(const void *p, size_t bytes)
{
	for (auto &b : blocks)
		if ((const char *)p < b.second.map + b.second.map_bytes && (const char *)p + bytes > b.second.map)
			return true;
	return false;
}

static std::map<char *, size_t> locked; /* page-locked host memory */

cudaError_t cudaHostAlloc(void **p, size_t bytes, unsigned)
{
	GUARD;
	*p = malloc(bytes);
	if (!*p)
		return cudaErrorMemoryAllocation;
	memset(*p, 0xff, bytes); /* it holds anything */
	locked[(char *)*p] = bytes;
	return cudaSuccess;
}

cudaError_t cudaFreeHost(void *p)
{
	GUARD;
	for (cudaStream_t s : all_streams)
		drain(s);
	locked.erase((char *)p);
	free(p);
	return cudaSuccess;
}

static bool page_locked(const void *p, size_t bytes)
{
	auto it = locked.upper_bound((char *)p);
	if (it == locked.begin())
		return false;
	--it;
	return (const char *)p + bytes <= it->first + it->second;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
	*left = CAPACITY - used;
	*all = CAPACITY;
	return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s)
{
	GUARD;
	bool from = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice,
	     to = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
	if ((from ? !cudasim_on_device(src, bytes) : touches_device(src, bytes)) ||
	    (to ? !cudasim_on_device(dst, bytes) : touches_device(dst, bytes)))
		return cudaErrorInvalidValue;
	if (s->capture && !(from && to))
		return cudaErrorStreamCaptureUnsupported;
	if (!from && !page_locked(src, bytes)) { /* pageable host memory is read before the call returns, page-locked memory in its turn */
		std::vector<char> stage((const char *)src, (const char *)src + bytes);
		return cudasim_enqueue(s, [=] { memcpy(dst, stage.data(), bytes); });
	}
	return cudasim_enqueue(s, [=] { memmove(dst, src, bytes); });
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t s)
{
	GUARD;
	if (!cudasim_on_device(dst, bytes))
		return cudaErrorInvalidValue;
	return cudasim_enqueue(s, [=] { fill((char *)dst, value, bytes); });
}

static void run_ahead();

/* ---- streams and events ---------------------------------------------------------------------------------------------------------- */
static cudaError_t capture(cudaStream_t s, piece what)
{
	order &end = s->capture->ends[s];
	s->capture->list.push_back({std::move(what), s, end});
	end[s]++;
	return cudaSuccess;
}

cudaError_t cudasim_enqueue(cudaStream_t s, std::function<void()> work)
{
	GUARD;
	if (!all_streams.count(s))
		return cudaErrorInvalidResourceHandle;
	if (lost())
		return cudaErrorIllegalAddress;
	if (s->capture)
		return capture(s, {std::move(work), nullptr});
	s->queue.push_back({std::move(work), nullptr, nullptr, nullptr});
	run_ahead();
	return cudaSuccess;
}

cudaError_t cudasim_hold(cudaStream_t s, std::function<bool()> held)
{
	GUARD;
	if (!all_streams.count(s))
		return cudaErrorInvalidResourceHandle;
	if (s->capture)
		return capture(s, {nullptr, std::move(held)});
	s->queue.push_back({nullptr, nullptr, nullptr, std::move(held)});
	return cudaSuccess;
}

void cudasim_retain(cudaStream_t s, std::shared_ptr<void> user)
{
	GUARD;
	if (s->capture)
		s->capture->users.push_back(std::move(user));
}

bool cudasim_captures()
{
	GUARD;
	for (cudaStream_t s : all_streams)
		if (s->capture)
			return true;
	return false;
}

/* Does the first work of a stream. */
static void take(cudaStream_t s)
{
	item i = std::move(s->queue.front());
	s->queue.pop_front();
	if (i.work) {
		device_access open;
		i.work();
	}
	if (i.record) {
		i.record->done = true;
		struct timespec t;
		clock_gettime(CLOCK_MONOTONIC, &t);
		i.record->us = clock_us;
		i.record->host = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
	}
}

/* $CUDASIM_AHEAD: streams beside the first one do their work as soon as the events for which they wait allow it, before anything that was
 * queued on the first one and does not precede such an event: work that should wait and does not comes too early. Without it they work as
 * late as possible: the first one comes too early if it should wait. */
static bool ahead()
{
	static const bool yes = getenv("CUDASIM_AHEAD") != nullptr;
	return yes;
}

static void run_ahead()
{
	static bool running;
	if (!ahead() || running)
		return;
	running = true;
	for (bool again = true; again;) {
		again = false;
		for (cudaStream_t s : all_streams)
			while (!s->first && !s->queue.empty()) {
				item &front = s->queue.front();
				if ((front.held && front.held()) || (front.wait && !front.wait->done))
					break;
				take(s);
				again = true;
			}
	}
	running = false;
}

/* False: something before it is held. */
static bool try_step(cudaStream_t s)
{
	run_ahead();
	if (s->queue.empty())
		return true;
	if (s->queue.front().held && s->queue.front().held())
		return false;
	while (!s->queue.empty() && s->queue.front().wait && !s->queue.front().wait->done)
		if (!try_step(s->queue.front().wait->s))
			return false;
	if (!s->queue.empty())
		take(s);
	return true;
}

static void step(cudaStream_t s)
{
	while (!try_step(s)) { /* as a host that waits for a kernel that waits */
		struct timespec t = {0, 1000000};
		nanosleep(&t, nullptr);
	}
}

static void drain(cudaStream_t s)
{
	while (!s->queue.empty())
		step(s);
}

bool cudasim_finish()
{
	GUARD;
	for (cudaStream_t s : all_streams)
		while (!s->queue.empty())
			if (!try_step(s))
				return false;
	return true;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *s, unsigned, int priority)
{
	GUARD;
	*s = new cudasim_stream;
	(*s)->first = priority >= 0;
	all_streams.insert(*s);
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
	GUARD;
	if (lost())
		return cudaErrorIllegalAddress;
	if (const char *close_s = getenv("CUDASIM_CLOSE_S")) /* a device that is slow to close */
		usleep((useconds_t)(atof(close_s) * 1e6));
	drain(s);
	all_streams.erase(s);
	delete s;
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t s)
{
	GUARD;
	if (lost())
		return cudaErrorIllegalAddress;
	if (s->capture)
		return cudaErrorStreamCaptureUnsupported;
	drain(s);
	return cudaSuccess;
}

cudaError_t cudaStreamQuery(cudaStream_t s)
{
	GUARD;
	if (lost())
		return cudaErrorIllegalAddress;
	if (s->capture)
		return cudaErrorStreamCaptureUnsupported;
	while (!s->queue.empty())
		if (!try_step(s))
			return cudaErrorNotReady;
	return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
	GUARD;
	if (lost())
		return cudaErrorIllegalAddress;
	while (e->last && !e->last->done)
		if (!try_step(e->last->s))
			return cudaErrorNotReady;
	return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t e)
{
	GUARD;
	if (lost())
		return cudaErrorIllegalAddress;
	if (e->capture)
		return cudaErrorStreamCaptureUnsupported;
	while (e->last && !e->last->done)
		step(e->last->s);
	return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags)
{
	*e = new cudasim_event;
	(*e)->disabled = flags & cudaEventDisableTiming;
	return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
	delete e;
	return cudaSuccess;
}

void cudasim_spend(double us)
{
	clock_us += us;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to)
{
	GUARD;
	if (!from->last || !to->last || from->disabled || to->disabled)
		return cudaErrorInvalidResourceHandle;
	if (!from->last->done || !to->last->done)
		return cudaErrorNotReady;
	bool simulated = to->last->us != from->last->us;
	*ms = (float)(simulated ? (to->last->us - from->last->us) / 1000 : (to->last->host - from->last->host) * 1000);
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s)
{
	GUARD;
	e->capture = s->capture;
	if (s->capture) {
		e->before = s->capture->ends[s];
		return cudaSuccess;
	}
	e->last = std::make_shared<mark>();
	e->last->s = s;
	s->queue.push_back({nullptr, e->last, nullptr, nullptr});
	run_ahead();
	return cudaSuccess;
}

static size_t waits;

/* $CUDASIM_DROP_WAIT=N: the Nth wait of the process, from 1, does nothing, so that a test can tell whether it would be missed. */
static bool dropped()
{
	static const char *which = getenv("CUDASIM_DROP_WAIT");
	waits++;
	return which && waits == (size_t)atoi(which);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned)
{
	GUARD;
	if (dropped())
		return cudaSuccess;
	if (e->capture) {
		e->capture->streams.insert(s);
		s->capture = e->capture;
		order &end = s->capture->ends[s];
		for (auto &before : e->before)
			end[before.first] = std::max(end[before.first], before.second);
	} else if (s->capture) {
		return cudaErrorStreamCaptureUnsupported;
	} else if (e->last) {
		s->queue.push_back({nullptr, nullptr, e->last, nullptr});
	}
	return cudaSuccess;
}

/* ---- graphs ---------------------------------------------------------------------------------------------------------------------- */
cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode)
{
	GUARD;
	if (s->capture)
		return cudaErrorStreamCaptureUnsupported;
	s->capture = new cudasim_graph;
	s->capture->streams.insert(s);
	return cudaSuccess;
}

/* Puts the captured work into the order in which it runs: work of the stream `s` of the capture first and that of others as late as
 * possible, or with $CUDASIM_AHEAD the other way round. */
static void put_in_order(cudasim_graph *g, cudaStream_t s)
{
	std::map<cudaStream_t, std::deque<captured *>> queue;
	order done;
	for (auto &c : g->list)
		queue[c.stream].push_back(&c);
	for (size_t n = 0; n < g->list.size(); n++) {
		cudaStream_t next = nullptr;
		for (auto &q : queue) {
			bool ready = !q.second.empty();
			if (ready)
				for (auto &before : q.second.front()->before)
					ready &= done[before.first] >= before.second;
			if (ready && (!next || (q.first == s) != ahead()))
				next = q.first;
		}
		if (!next)
			abort();
		g->work.push_back(queue[next].front()->what);
		queue[next].pop_front();
		done[next]++;
	}
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
	GUARD;
	*g = s->capture;
	if (!*g)
		return cudaErrorStreamCaptureUnmatched;
	bool joined = true;
	for (cudaStream_t t : (*g)->streams) {
		t->capture = nullptr;
		joined &= (*g)->ends[s][t] == (*g)->ends[t][t];
	}
	if (!joined) {
		delete *g;
		*g = nullptr;
		return cudaErrorStreamCaptureUnjoined;
	}
	put_in_order(*g, s);
	(*g)->list.clear();
	return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t g, unsigned long long flags)
{
	GUARD;
	for (cudaStream_t s : g->streams)
		if (!s->first && !(flags & cudaGraphInstantiateFlagUseNodePriority))
			return cudaErrorInvalidValue;
	*exec = new cudasim_graph(*g);
	return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t g)
{
	delete g;
	return cudaSuccess;
}

/* A graph that runs is freed when it has ended (CUDA Driver API, cuGraphExecDestroy). */
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g)
{
	if (lost())
		return cudaErrorIllegalAddress;
	delete g;
	return cudaSuccess;
}

/* $CUDASIM_STATS: prints at the end how many graphs were launched, in all and of each size, and how often a stream had to wait. */
static struct stats {
	size_t launches, work;
	std::map<size_t, size_t> sizes;
	~stats()
	{
		if (!getenv("CUDASIM_STATS"))
			return;
		fprintf(stderr, "cudasim: %zu graph launches of %zu nodes\n", launches, work);
		for (auto &s : sizes)
			fprintf(stderr, "cudasim: %zu nodes, %zu times\n", s.first, s.second);
		fprintf(stderr, "cudasim: %zu waits for events\n", waits);
		fprintf(stderr, "cudasim: %zu kernels came before the last one's end\n", cudasim_early);
	}
} stats;

cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s)
{
	GUARD;
	if (s->capture)
		return cudaErrorStreamCaptureUnsupported;
	stats.launches++;
	stats.work += g->work.size();
	stats.sizes[g->work.size()]++;
	if (lost())
		return cudaErrorIllegalAddress;
	for (auto &p : g->work)
		s->queue.push_back({p.work, nullptr, nullptr, p.held});
	auto users = g->users;
	if (!users.empty())
		s->queue.push_back({[users] {}, nullptr, nullptr, nullptr});
	run_ahead();
	return cudaSuccess;
}

/* ---- the device ------------------------------------------------------------------------------------------------------------------ */
static int number(const char *variable, int otherwise)
{
	const char *n = getenv(variable);
	return n && atoi(n) > 0 ? atoi(n) : otherwise;
}

/* $CUDASIM_GPUS: the number of GPUs, of which only the first answers. */
cudaError_t cudaGetDeviceCount(int *n)
{
	int driver, runtime;
	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	*n = number("CUDASIM_GPUS", 1);
	return driver / 1000 < runtime / 1000 ? cudaErrorInsufficientDriver : cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *id, int size, int device)
{
	snprintf(id, (size_t)size, "0000:%02x:00.0", device);
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int device)
{
	if (device != 0)
		return cudaErrorInvalidDevice;
	*p = {};
	const char *name = getenv("CUDASIM_CARD");
	snprintf(p->name, sizeof p->name, "%s", name ? name : "simulated on the host");
	p->totalGlobalMem = CAPACITY;
	p->major = number("CUDASIM_CC", 90) / 10;
	p->minor = number("CUDASIM_CC", 90) % 10;
	p->multiProcessorCount = 1;
	return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
	*device = 0;
	return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
	switch (attr) {
	case cudaDevAttrComputeCapabilityMajor: *value = 9; break;
	default: return cudaErrorInvalidValue;
	}
	return device == 0 ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaSetDevice(int device)
{
	return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *low, int *high)
{
	*low = 0, *high = -5;
	return cudaSuccess;
}

/* $CUDASIM_DRIVER: the version of CUDA that the driver supports: 12040 for 12.4. The runtime is that of 13.1. */
cudaError_t cudaDriverGetVersion(int *v)
{
	*v = number("CUDASIM_DRIVER", 13010);
	return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *v)
{
	*v = 13010;
	return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t e)
{
	return e == cudaErrorMemoryAllocation            ? "out of memory"
	       : e == cudaErrorInvalidValue   ? "invalid argument"
	       : e == cudaErrorIllegalAddress ? "an illegal memory access was encountered"
	       : e == cudaSuccess             ? "no error"
	                                      : "simulated error";
}

const char *cudaGetErrorName(cudaError_t e)
{
	return e == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
	       : e == cudaErrorInvalidValue   ? "cudaErrorInvalidValue"
	                                      : "cudaError";
}
