#include "text/ngrams.h"

int64_t gt_ngrams_count(int32_t n, int32_t longest)
{
	int64_t count = 0;
	for (int32_t k = 2; k <= longest && k <= n; k++)
		count += n - k + 1;
	return count;
}

int64_t gt_ngrams(const uint32_t *hash, int32_t n, int32_t longest, int32_t first, uint32_t buckets, int32_t *out)
{
	int64_t count = 0;
	for (int32_t i = 0; i < n; i++) {
		uint64_t h = (uint64_t)(int32_t)hash[i];
		for (int32_t j = i + 1; j < n && j - i < longest; j++) {
			h = h * 116049371u + (uint64_t)(int32_t)hash[j];
			out[count++] = first + (int32_t)(h % buckets);
		}
	}
	return count;
}
