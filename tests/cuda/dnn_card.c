#include "cuda/dnn_card.h"
#include "test.h"
#include <stdlib.h>
#include <string.h>

/* cudaDeviceProp of the card and its clocks, as CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION writes them. */
#define CARD(name, cc, sms, shared, l2, clock, memory_clock, memory)                                                                       \
	"{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"warpSize\":32,"                    \
	"\"maxSharedMemoryPerBlock\":49152,\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"             \
	"\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"                    \
	"\"cudaDeviceId\":0,\"driverVer\":13000,\"deviceVer\":" #cc ",\"multiProcessorCount\":" #sms                                           \
	",\"maxSharedMemoryPerBlockOptin\":" #shared ",\"l2CacheSize\":" #l2 ",\"smClockRateKHz\":" #clock                                     \
	",\"memClockRateKHz\":" #memory_clock ",\"totalGlobalMem\":" #memory ",\"deviceName\":\"" name "\"}"

static const char *const cards[DNN_ALL_CARDS] = {
    [DNN_H200] = CARD("NVIDIA H200", 900, 132, 232448, 62914560, 1980000, 3201000, 150000000000),
    [DNN_A100] = CARD("NVIDIA A100-SXM4-40GB", 800, 108, 166912, 41943040, 1410000, 1215000, 42000000000),
    [DNN_B200] = CARD("NVIDIA B200", 1000, 148, 232448, 132644864, 1965000, 3996000, 190000000000),
};
const char *const dnn_card_name[DNN_ALL_CARDS] = {"H200", "A100", "B200"};

/* Loads cuDNN for a card that json describes (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION). It then makes plans by the rules of the real
 * library, which never run. */
static enum gt_code open_described(struct gt_dev *dev, const char *json, struct gt_err *err)
{
#if CUDNN_VERSION >= 90800
	struct gt_dnn *dnn;
	char text[400];
	GT_TRY(gt_dnn_load(&dnn, err));
	struct gt_dnn_set s = {.dnn = dnn};
	dnn->prop = gt_dnn_new(&s, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, "device properties");
	gt_dnn_put(&s, dnn->prop, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, (int64_t)strlen(json) + 1, json);
	gt_dnn_finalize(&s, dnn->prop, "device properties");
	if (s.status != CUDNN_STATUS_SUCCESS) {
		gt_fail(err, GT_EUNAVAILABLE, "%s", gt_dnn_failure_text(&s, text, sizeof text));
		gt_dnn_close(dnn);
		return GT_EUNAVAILABLE;
	}
	dev->dnn = dnn;
	return gt_dnn_cache_open("described", "cudnn", &dnn->cache, err);
#else
	(void)dev, (void)json;
	return gt_fail(err, GT_EUNAVAILABLE, "built with the headers of cuDNN %d.%d: plans without a GPU need 9.8", CUDNN_MAJOR, CUDNN_MINOR);
#endif
}

bool dnn_card_open(struct gt_dev *dev, enum dnn_card card)
{
	struct gt_err e = {0};
	char folder[600];
	gt_dnn_close(dev->dnn);
	*dev = (struct gt_dev){.id = "cuda:0"};
	snprintf(folder, sizeof folder, "%s/%s", test_tmpdir(), dnn_card_name[card]);
	setenv("XDG_CACHE_HOME", folder, 1);
	if (open_described(dev, cards[card], &e) == GT_OK)
		return true;
	test_skip(e.msg);
	return false;
}
