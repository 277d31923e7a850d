/* The f32 peak of this machine, for the "share of peak" column: independent fused multiply-adds on full vectors in registers, in as many
 * threads as asked for. peak_flops [THREADS]: prints GFLOP/s, the best of several short runs. Build: cc -O2 -march=native
 * -ffp-contract=fast -pthread. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif
#define ACC 12 /* more than latency (4) times pipes (2), fewer than 16 registers less the two factors */
#define ROUNDS 20000000L

typedef float vec __attribute__((vector_size(BYTES)));

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *spin(void *out)
{
	vec a[ACC], x = (vec){0} + 0.999f, y = (vec){0} + 1e-6f; /* whole vectors only: an element's address would keep them in memory */
#pragma GCC unroll 16
	for (int i = 0; i < ACC; i++)
		a[i] = (vec){0} + (float)i;
	for (long r = 0; r < ROUNDS; r++) {
#pragma GCC unroll 16
		for (int i = 0; i < ACC; i++) {
			a[i] = a[i] * x + y;
			__asm__ volatile("" : "+v"(a[i])); /* keeps each in a register and in the loop */
		}
	}
	vec sum = a[0];
#pragma GCC unroll 16
	for (int i = 1; i < ACC; i++)
		sum += a[i];
	*(float *)out = sum[0];
	return NULL;
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 1;
	double best = 0;
	if (threads < 1 || threads > 256)
		return 64;
	for (int run = 0; run < 3; run++) {
		pthread_t t[256];
		float out[256];
		double start = now();
		for (int i = 0; i < threads; i++)
			if (pthread_create(&t[i], NULL, spin, &out[i]))
				return 1;
		for (int i = 0; i < threads; i++)
			pthread_join(t[i], NULL);
		double rate = 2.0 * ACC * ROUNDS * (BYTES / 4) * threads / (now() - start) * 1e-9;
		if (rate > best)
			best = rate;
	}
	printf("%.1f\n", best);
	return 0;
}
