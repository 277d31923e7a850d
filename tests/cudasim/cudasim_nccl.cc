/* A group of one rank, as NCCL would treat it. Calls that do not block say so at first, and are done when they are asked about. With
 * $CUDASIM_SILENT_PEER there is a second rank, which falls silent.
 *
 * The end of a communicator follows NCCL's source (ncclCommAbort, ncclAsyncLaunch, persistentDestructor in v2.28.9-1 and v2.30.7):
 * - A captured call belongs to its graph, which keeps a reference to the communicator as long as it lives (localPersistentRefs).
 * - ncclCommAbort sets the flags that end the communicator's kernels. Then it blocks, also on a communicator whose other calls do not,
 *   until no graph refers to it (commDestroySync) and until the device is idle, because it frees device memory (commFree). In a group,
 *   the flags are set at once and the rest is done by ncclGroupEnd. ncclCommDestroy blocks in the same way.
 * - ncclCommFinalize does not block, but it is not finished before then.
 * Where a call would block for ever, the program ends with a message. */
#include "nccl.h"
#include "cuda_runtime.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <vector>

namespace {
struct transfer {
	const void *in;
	void *out;
	size_t bytes;
	cudaStream_t s;
};
thread_local int depth;
thread_local std::vector<transfer> sends, recvs;

size_t size_of(ncclDataType_t t)
{
	switch (t) {
	case ncclFloat64:
	case ncclInt64: return 8;
	case ncclFloat32:
	case ncclInt32: return 4;
	case ncclFloat16:
	case ncclBfloat16: return 2;
	default: return 1;
	}
}

std::set<void *> registered;

ncclResult_t flush()
{
	if (sends.size() != recvs.size())
		return ncclInvalidUsage;
	for (size_t i = 0; i < sends.size(); i++) {
		if (sends[i].bytes != recvs[i].bytes)
			return ncclInvalidUsage;
		if (cudaMemcpyAsync(recvs[i].out, sends[i].in, sends[i].bytes, cudaMemcpyDeviceToDevice, recvs[i].s) != cudaSuccess)
			return ncclInternalError;
	}
	sends.clear();
	recvs.clear();
	return ncclSuccess;
}
} // namespace

struct ncclComm {
	bool busy;
	int world = 1;
	bool blocking = false, finalized = false;
	std::shared_ptr<bool> aborted = std::make_shared<bool>(false);
	std::shared_ptr<bool> graphs = std::make_shared<bool>(false); /* every graph that has a call of this communicator holds a copy */
};

/* $CUDASIM_SILENT_PEER: a second rank that came, and from then on takes part in nothing. Its partner's kernels wait until the group is
 * aborted. $CUDASIM_PEER_GATHERS: the number of all-gathers in which it takes part before, with the first rank's data. */
static bool silent_peer()
{
	return getenv("CUDASIM_SILENT_PEER") != nullptr;
}

static bool peer_gathers()
{
	static int left = getenv("CUDASIM_PEER_GATHERS") ? atoi(getenv("CUDASIM_PEER_GATHERS")) : 0;
	return left-- > 0;
}

static ncclResult_t begun(ncclComm_t c)
{
	c->busy = !c->blocking;
	return c->blocking ? ncclSuccess : ncclInProgress;
}

/* Returns why the end of the communicators does not come; NULL: it has come. */
static const char *blocks(const std::vector<ncclComm_t> &list)
{
	if (cudasim_captures())
		return "a stream is being captured";
	if (!cudasim_finish())
		return "it waits for the device, on which a kernel of a communicator that is not aborted waits for its peer";
	for (ncclComm_t c : list)
		if (c->graphs.use_count() > 1)
			return "a graph that captured a call of the communicator is alive";
	return nullptr;
}

static void reclaim(std::vector<ncclComm_t> &list, const char *call)
{
	if (const char *why = blocks(list)) {
		fprintf(stderr, "cudasim: %s never returns: %s\n", call, why);
		abort();
	}
	for (ncclComm_t c : list)
		delete c;
	list.clear();
}

static thread_local std::vector<ncclComm_t> aborts; /* of the group */

static ncclResult_t alone(const void *in, void *out, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s)
{
	if (!c || (n && (!in || !out)))
		return ncclInvalidArgument;
	cudasim_retain(s, c->graphs);
	if (c->world > 1) {
		auto aborted = c->aborted;
		return cudasim_hold(s, [=] { return !*aborted; }) == cudaSuccess ? begun(c) : ncclInternalError;
	}
	if (in != out && n && cudaMemcpyAsync(out, in, n * size_of(t), cudaMemcpyDeviceToDevice, s) != cudaSuccess)
		return ncclInternalError;
	return begun(c);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	for (size_t i = 0; i < sizeof id->internal; i++)
		id->internal[i] = (char)(i * 37 + 200);
	return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
	ncclUniqueId want;
	ncclGetUniqueId(&want);
	bool blocking = getenv("GTRAIN_NCCL_BLOCKING") != nullptr;
	if (nranks != (silent_peer() ? 2 : 1) || rank != 0 || config->blocking != blocking || std::memcmp(&id, &want, sizeof id))
		return ncclInvalidArgument;
	*comm = new ncclComm{false};
	(*comm)->world = nranks;
	(*comm)->blocking = blocking;
	return begun(*comm);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int, ncclComm_t *out, ncclConfig_t *config)
{
	*out = color == NCCL_SPLIT_NOCOLOR ? nullptr : new ncclComm{true};
	if (*out) {
		(*out)->world = comm->world;
		(*out)->blocking = config->blocking;
	}
	return begun(comm);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	comm->finalized = true;
	std::vector<ncclComm_t> list = {comm};
	if (comm->blocking && blocks(list))
		reclaim(list, "ncclCommFinalize");
	return begun(comm);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	std::vector<ncclComm_t> list = {comm};
	reclaim(list, "ncclCommDestroy");
	return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	*comm->aborted = true;
	aborts.push_back(comm);
	if (!depth)
		reclaim(aborts, "ncclCommAbort");
	return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *status)
{
	std::vector<ncclComm_t> list = {comm};
	*status = comm->busy || (comm->finalized && blocks(list)) ? ncclInProgress : ncclSuccess;
	comm->busy = false;
	return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t r)
{
	return r == ncclSuccess           ? "no error"
	       : r == ncclInvalidArgument ? "invalid argument"
	       : r == ncclInvalidUsage    ? "invalid usage"
	                                  : "internal error";
}

const char *ncclGetLastError(ncclComm_t)
{
	return "";
}

ncclResult_t ncclGroupStart(void)
{
	depth++;
	return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void)
{
	if (--depth)
		return ncclSuccess;
	if (!aborts.empty())
		reclaim(aborts, "ncclGroupEnd after ncclCommAbort");
	return flush();
}

ncclResult_t ncclAllReduce(const void *in, void *out, size_t n, ncclDataType_t t, ncclRedOp_t, ncclComm_t c, cudaStream_t s)
{
	return alone(in, out, n, t, c, s);
}

ncclResult_t ncclReduceScatter(const void *in, void *out, size_t n, ncclDataType_t t, ncclRedOp_t, ncclComm_t c, cudaStream_t s)
{
	return alone(in, out, n, t, c, s);
}

ncclResult_t ncclAllGather(const void *in, void *out, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s)
{
	if (c && c->world > 1 && peer_gathers()) {
		size_t bytes = n * size_of(t);
		for (int i = 0; i < c->world; i++)
			if (cudaMemcpyAsync((char *)out + (size_t)i * bytes, in, bytes, cudaMemcpyDeviceToDevice, s) != cudaSuccess)
				return ncclInternalError;
		return begun(c);
	}
	return alone(in, out, n, t, c, s);
}

ncclResult_t ncclBroadcast(const void *in, void *out, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t s)
{
	return root ? ncclInvalidArgument : alone(in, out, n, t, c, s);
}

ncclResult_t ncclSend(const void *in, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s)
{
	if (peer || !c)
		return ncclInvalidArgument;
	cudasim_retain(s, c->graphs);
	sends.push_back({in, nullptr, n * size_of(t), s});
	return depth ? ncclSuccess : flush();
}

ncclResult_t ncclRecv(void *out, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s)
{
	if (peer || !c)
		return ncclInvalidArgument;
	cudasim_retain(s, c->graphs);
	recvs.push_back({nullptr, out, n * size_of(t), s});
	return depth ? ncclSuccess : flush();
}

ncclResult_t ncclMemAlloc(void **p, size_t n)
{
	return cudaMalloc(p, n) == cudaSuccess ? ncclSuccess : ncclInternalError;
}

/* NCCL destroys a communicator that does not block in a thread of its own, which may meet memory that is freed by then. */
ncclResult_t ncclMemFree(void *p)
{
	if (registered.count(p)) {
		fputs("cudasim: memory was freed that a communicator has registered\n", stderr);
		abort();
	}
	cudaFree(p);
	return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t c, void *p, size_t, void **handle)
{
	registered.insert(p);
	*handle = p;
	return begun(c);
}

ncclResult_t ncclCommDeregister(const ncclComm_t c, void *handle)
{
	return c && registered.erase(handle) ? ncclSuccess : ncclInvalidArgument;
}
