/* gloo's own ring all-reduce of f32 between two network namespaces, beside bench_net.c: gloo_ring RANK WORLD ADDRESS STORE BYTES TIMES.
 * Prints the seconds of one all-reduce, the mean of TIMES, on rank 0. STORE: a new folder that both processes share. */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <gloo/algorithm.h>
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <vector>

int main(int argc, char **argv)
{
	if (argc != 7)
		return 64;
	int rank = std::atoi(argv[1]), world = std::atoi(argv[2]), times = std::atoi(argv[6]);
	size_t n = std::strtoull(argv[5], nullptr, 10) / sizeof(float);
	gloo::transport::tcp::attr attr;
	attr.hostname = argv[3];
	auto device = gloo::transport::tcp::CreateDevice(attr);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, world);
	gloo::rendezvous::FileStore store(argv[4]);
	context->connectFullMesh(store, device);
	std::vector<float> data(n, 1);
	auto begin = std::chrono::steady_clock::now();
	for (int i = -2; i < times; i++) {
		if (!i)
			begin = std::chrono::steady_clock::now();
		gloo::AllreduceOptions o(context);
		o.setOutput(data.data(), n);
		o.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
		o.setReduceFunction(static_cast<void (*)(void *, const void *, const void *, size_t)>(&gloo::sum<float>));
		o.setTag(1);
		gloo::allreduce(o);
	}
	if (rank == 0)
		std::printf("%.9f\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / times);
	gloo::BarrierOptions end(context);
	end.setTag(3);
	gloo::barrier(end);
	return 0;
}
