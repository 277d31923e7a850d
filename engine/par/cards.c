/* Cards that a plan can be made for. All numbers but `l2` are of NVIDIA's data sheets and architecture papers, without sparsity:
 *   h200, h100     H200 and H100 SXM data sheets; H100 Tensor Core GPU Architecture (132 multiprocessors, 50 MB of L2)
 *   a100           A100 80GB SXM data sheet; A100 Tensor Core GPU Architecture (108 multiprocessors, 40 MB of L2, 5120 bytes per clock)
 *   l40s           L40S data sheet; Ada GPU Architecture (142 multiprocessors, 96 MB of L2)
 *   rtx4090        Ada GPU Architecture, appendix A: 16-bit products with f32 sums (128 multiprocessors, 72 MB of L2)
 *   rtx3090        GA102 GPU Architecture: 16-bit products with f32 sums (82 multiprocessors, 6 MB of L2)
 * Bandwidths of L2: a100: 5120 bytes per clock at 1.41 GHz. NVIDIA does not publish the others; they are estimates from published
 * microbenchmarks, rounded down. */
#include "par/roofline.h"
#include <string.h>

static const struct gt_card cards[] = {
	/* word, name, bf16, tf32, fp32, memory, L2 size, L2 bandwidth, memory size, multiprocessors */
	{"h200", "NVIDIA H200 SXM", 989e12, 494e12, 67e12, 4.8e12, 50e6, 7e12, 141e9, 132},
	{"h100", "NVIDIA H100 SXM", 989e12, 494e12, 67e12, 3.35e12, 50e6, 7e12, 80e9, 132},
	{"a100", "NVIDIA A100 80GB SXM", 312e12, 156e12, 19.5e12, 2.039e12, 40e6, 7.2e12, 80e9, 108},
	{"l40s", "NVIDIA L40S", 362e12, 183e12, 91.6e12, 0.864e12, 96e6, 4.5e12, 48e9, 142},
	{"rtx4090", "NVIDIA GeForce RTX 4090", 165.2e12, 82.6e12, 82.6e12, 1.008e12, 72e6, 4.5e12, 24e9, 128},
	{"rtx3090", "NVIDIA GeForce RTX 3090", 71e12, 35.6e12, 35.6e12, 0.936e12, 6e6, 2e12, 24e9, 82},
};

const struct gt_card *gt_card_at(int i)
{
	return i >= 0 && i < (int)(sizeof cards / sizeof *cards) ? &cards[i] : NULL;
}

const struct gt_card *gt_card_find(const char *word)
{
	for (int i = 0; gt_card_at(i); i++)
		if (!strcmp(cards[i].word, word))
			return &cards[i];
	return NULL;
}
