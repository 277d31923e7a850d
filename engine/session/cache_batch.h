/* How many samples an inference computes at once. A layer writes the activations that the next layer reads. With a large batch they leave
 * the cache in between, and layers with few operations for each byte wait for the main memory. So `gtrain eval` and `gtrain predict`
 * compute a batch in smaller batches, each of which goes through the whole model while its activations stay in the cache:
 *
 *     samples at once = (cache - weights) / (bytes of activations that one call reads and writes, per sample)
 *
 * Each of these batches reads all weights, so the weights must stay in the cache, too. Measured on a processor with a cache of 32 MiB,
 * batch 64: MobileNet-V2 (14 MB of weights) is 1.45 times as fast with 3 samples at once; ResNet-50 (102 MB) takes as long with 2 to 16
 * samples at once as with 64.
 *
 * If the weights do not fit, ranges of layers have numbers of samples of their own (gt_session_segments in session.h): few in the first
 * layers, which have large activations and small weights, more in the last layers, which have large weights. Between two ranges, the
 * activations of the whole batch are in main memory. A layer computes so many samples at once that
 * - the activations that it or a later layer reads and writes take an eighth of the cache, which other programs use as well,
 * - or more, so that the layer has 200 operations for each byte of its weights, because each part of the batch reads them again.
 *
 * Samples do not depend on each other (gt_graph_mixes_samples), and an evaluation adds up losses sample by sample. So results depend on the
 * division only where a backend has other kernels for a smaller batch, which round differently. */
#ifndef GT_SESSION_CACHE_BATCH_H
#define GT_SESSION_CACHE_BATCH_H

#include "session/session.h"

/* Returns the number of samples at once: at least one for each thread, so that all threads have work, and a multiple of their number, or
 * INT64_MAX if the weights do not fit. All sizes in bytes; cache 0: not known. */
int64_t gt_cache_batch(uint64_t cache, uint64_t weights, uint64_t each_sample, int threads);

/* What a layer needs for a sample. */
struct gt_cache_need {
	uint64_t each_sample; /* bytes of activations */
	uint64_t weights;     /* bytes of the weights of the layer */
	double flops;         /* operations for one sample */
};

/* Returns the number of samples that a layer computes at once: a divisor of batch, and at least one for each thread if batch is large
 * enough. */
int64_t gt_cache_part(int64_t batch, uint64_t cache, const struct gt_cache_need *need, int threads);

/* Reduces *batch to the number of samples at once, so that the parts of the batch have almost equal sizes. *batch stays as it is in a
 * session that trains or has several ranks, and with reproducible = "world"; if an operation mixes samples; if the batch decides the
 * length to which sequences are padded; and if the cache of the device is not known. */
enum gt_code gt_session_cache_batch(struct gt_session *s, int64_t *batch, struct gt_err *err);

#endif
