#include "base/mt19937.h"
#include <assert.h>
#include <math.h>

#define N 624
#define M 397

void gt_mt19937_seed(struct gt_mt19937 *m, uint64_t seed)
{
	m->state[0] = (uint32_t)seed;
	for (uint32_t i = 1; i < N; i++)
		m->state[i] = 1812433253u * (m->state[i - 1] ^ m->state[i - 1] >> 30) + i;
	m->next = N;
	m->has_normal = false;
}

static uint32_t mix_words(uint32_t high, uint32_t low)
{
	uint32_t y = (high & 0x80000000u) | (low & 0x7fffffffu);
	return y >> 1 ^ (low & 1 ? 0x9908b0dfu : 0);
}

static void twist_state(struct gt_mt19937 *m)
{
	uint32_t *s = m->state;
	for (int i = 0; i < N; i++)
		s[i] = s[(i + M) % N] ^ mix_words(s[i], s[(i + 1) % N]);
	m->next = 0;
}

uint32_t gt_mt19937_u32(struct gt_mt19937 *m)
{
	if (m->next == N)
		twist_state(m);
	uint32_t y = m->state[m->next++];
	y ^= y >> 11;
	y ^= y << 7 & 0x9d2c5680u;
	y ^= y << 15 & 0xefc60000u;
	return y ^ y >> 18;
}

uint64_t gt_mt19937_u64(struct gt_mt19937 *m)
{
	uint64_t high = gt_mt19937_u32(m);
	return high << 32 | gt_mt19937_u32(m);
}

float gt_mt19937_uniform(struct gt_mt19937 *m, float lo, float hi)
{
	float x = (float)(gt_mt19937_u32(m) & 0xffffffu) * 0x1p-24f;
	return fmaf(x, hi - lo, lo);
}

double gt_mt19937_uniform64(struct gt_mt19937 *m, double lo, double hi)
{
	double x = (double)(gt_mt19937_u64(m) & ((1ull << 53) - 1)) * 0x1p-53;
	return fma(x, hi - lo, lo);
}

/* Draws one value from N(0, 1), as PyTorch does for tensors with fewer than 16 elements. */
static double normal_of_pair(struct gt_mt19937 *m)
{
	if (m->has_normal) {
		m->has_normal = false;
		return m->normal;
	}
	double u = gt_mt19937_uniform64(m, 0, 1), v = gt_mt19937_uniform64(m, 0, 1), radius = sqrt(-2 * log1p(-v)), angle = 2 * M_PI * u;
	m->has_normal = true;
	m->normal = radius * sin(angle);
	return radius * cos(angle);
}

/* Defines gt_mt19937_normal for type T. For tensors of at least 16 elements, PyTorch draws uniform values and then transforms blocks of 16
 * values by the Box-Muller method. If n is no multiple of 16, it draws the last 16 elements again, which overlap the preceding block. */
#define GT_NORMAL(name, T, uniform)                                                                                                        \
	static void name##_block(T std, T *x)                                                                                                  \
	{                                                                                                                                      \
		for (int i = 0; i < 8; i++) {                                                                                                      \
			double radius = sqrt(-2 * log(1 - (double)x[i])), angle = 2 * M_PI * (double)x[i + 8];                                         \
			x[i] = (T)(radius * cos(angle)) * std;                                                                                         \
			x[i + 8] = (T)(radius * sin(angle)) * std;                                                                                     \
		}                                                                                                                                  \
	}                                                                                                                                      \
	void name(struct gt_mt19937 *m, T std, int64_t n, T *out)                                                                              \
	{                                                                                                                                      \
		for (int64_t i = 0; i < n; i++)                                                                                                    \
			out[i] = n < 16 ? (T)(normal_of_pair(m) * (double)std) : uniform(m, 0, 1);                                                     \
		for (int64_t i = 0; n >= 16 && i + 16 <= n; i += 16)                                                                               \
			name##_block(std, out + i);                                                                                                    \
		if (n < 16 || n % 16 == 0)                                                                                                         \
			return;                                                                                                                        \
		for (int64_t i = n - 16; i < n; i++)                                                                                               \
			out[i] = uniform(m, 0, 1);                                                                                                     \
		name##_block(std, out + n - 16);                                                                                                   \
	}
GT_NORMAL(gt_mt19937_normal, float, gt_mt19937_uniform)
GT_NORMAL(gt_mt19937_normal64, double, gt_mt19937_uniform64)

void gt_mt19937_randperm(struct gt_mt19937 *m, int64_t n, int64_t *out)
{
	assert(n < UINT32_MAX / 20);
	for (int64_t i = 0; i < n; i++)
		out[i] = i;
	for (int64_t i = 0; i < n - 1; i++) {
		int64_t z = i + gt_mt19937_u32(m) % (uint32_t)(n - i), t = out[i];
		out[i] = out[z];
		out[z] = t;
	}
}
