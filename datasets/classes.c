/* Names of the classes of the datasets that gtrain knows, in the order of their labels, as their publishers spell them. */
#include "dataset.h"
#include <string.h>

static const char *const fashion[] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"};
static const char *const digits[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
static const char *const cifar10[] = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};

static const struct {
	const char *dataset;
	const char *const *name;
	int64_t n;
} known[] = {{"fashion-mnist", fashion, 10}, {"mnist", digits, 10}, {"cifar10", cifar10, 10}};

const char *gt_dataset_class(const char *dataset, int64_t label)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(known[i].dataset, dataset) && label >= 0 && label < known[i].n)
			return known[i].name[label];
	return NULL;
}
