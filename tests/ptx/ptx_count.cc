/* Counts of executed instructions and of accesses to global memory. */
#include "ptx_thread.hh"
#include <cstdio>
#include <cstdlib>
#include <map>

static std::map<std::string, ptx_count> counts;

void ptx_count::add(const ptx_ins &i)
{
	if (i.space != PTX_GLOBAL)
		return;
	uint64_t bytes = ptx_size(i.type) * (uint64_t)(i.ndst ? i.ndst : i.nsrc - 1);
	(i.ndst ? loads : stores)++;
	(i.ndst ? read : written) += bytes;
}

void ptx_count::end(uint64_t executed)
{
	threads++;
	instructions += executed;
	longest = executed > longest ? executed : longest;
}

static void print_counts()
{
	for (const auto &c : counts) {
		const ptx_count &n = c.second;
		printf("# ptx count: %s: %llu threads, %llu instructions, at most %llu in a thread,", c.first.c_str(),
		       (unsigned long long)n.threads, (unsigned long long)n.instructions, (unsigned long long)n.longest);
		printf(" %llu loads of %llu bytes, %llu stores of %llu bytes\n", (unsigned long long)n.loads, (unsigned long long)n.read,
		       (unsigned long long)n.stores, (unsigned long long)n.written);
	}
}

ptx_count *ptx_count_of(const ptx_kernel *k)
{
	static const bool wanted = getenv("CUDASIM_PTX_COUNT") && !atexit(print_counts);
	return wanted ? &counts[k->name] : NULL;
}
