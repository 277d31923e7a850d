// A group of one rank, as NCCL would treat it. Calls that do not block say so at first, and are done when they are asked about.
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
	std::shared_ptr<bool> aborted = std::make_shared<bool>(false);
};

/* $CUDASIM_SILENT_PEER: a second rank that came, and from then on takes part in nothing. Its partner's kernels wait until the group is
 * aborted. */
static bool silent_peer()
{
	return getenv("CUDASIM_SILENT_PEER") != nullptr;
}

static ncclResult_t begun(ncclComm_t c)
{
	c->busy = true;
	return ncclInProgress;
}

static ncclResult_t alone(const void *in, void *out, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s)
{
	if (!c || (n && (!in || !out)))
		return ncclInvalidArgument;
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
	if (nranks != (silent_peer() ? 2 : 1) || rank != 0 || config->blocking != 0 || std::memcmp(&id, &want, sizeof id))
		return ncclInvalidArgument;
	*comm = new ncclComm{false};
	(*comm)->world = nranks;
	return begun(*comm);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int, ncclComm_t *out, ncclConfig_t *)
{
	*out = color == NCCL_SPLIT_NOCOLOR ? nullptr : new ncclComm{true};
	return begun(comm);
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
	return begun(comm);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
	delete comm;
	return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm)
{
	*comm->aborted = true;
	delete comm;
	return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *status)
{
	*status = comm->busy ? ncclInProgress : ncclSuccess;
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
	return --depth ? ncclSuccess : flush();
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
	sends.push_back({in, nullptr, n * size_of(t), s});
	return depth ? ncclSuccess : flush();
}

ncclResult_t ncclRecv(void *out, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s)
{
	if (peer || !c)
		return ncclInvalidArgument;
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
