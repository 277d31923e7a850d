#include "known.h"
#include "base/guess.h"
#include "dataset.h"
#include <string.h>
#include <strings.h>

#define CIFAR "https://www.cs.toronto.edu/~kriz/"

/* Names of classes in the order of their labels, spelled as published. */
static const char *const fashion[] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                      "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
static const char *const digits[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
static const char *const cifar10[] = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
/* The fine labels, which are the targets (fine_label_names.txt of the binary version). */
static const char *const cifar100[] = {
	"apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl", "boy", "bridge", "bus",
	"butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch",
	"crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster", "house",
	"kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion", "lizard", "lobster", "man", "maple_tree", "motorcycle",
	"mountain", "mouse", "mushroom", "oak_tree", "orange", "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree",
	"plain", "plate", "poppy", "porcupine", "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal", "shark",
	"shrew", "skunk", "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank",
	"telephone", "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf",
	"woman", "worm"};

const struct gt_known_dataset gt_known_datasets[] = {
    {
        .name = "fashion-mnist",
        .folders = {"fashion-mnist"},
        .format = "idx",
        .classes = 10,
        .class_name = fashion,
        .mirrors = {"https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
                    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"},
        .file = {{"train-images-idx3-ubyte.gz", 26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"},
                 {"train-labels-idx1-ubyte.gz", 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"},
                 {"t10k-images-idx3-ubyte.gz", 4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"},
                 {"t10k-labels-idx1-ubyte.gz", 5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"}},
    },
    {
        .name = "mnist",
        .folders = {"mnist"},
        .format = "idx",
        .classes = 10,
        .class_name = digits,
        .mirrors = {"https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"},
        .file = {{"train-images-idx3-ubyte.gz", 9912422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
                 {"train-labels-idx1-ubyte.gz", 28881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
                 {"t10k-images-idx3-ubyte.gz", 1648877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
                 {"t10k-labels-idx1-ubyte.gz", 4542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"}},
    },
    {
        .name = "cifar10",
        .folders = {"cifar10", "cifar-10"},
        .format = "cifar10",
        .classes = 10,
        .class_name = cifar10,
        .mirrors = {CIFAR},
        .file = {{"cifar-10-binary.tar.gz", 170052171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"}},
        .member = {{"cifar-10-batches-bin/data_batch_1.bin", "data_batch_1.bin", 30730000,
                    "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
                   {"cifar-10-batches-bin/data_batch_2.bin", "data_batch_2.bin", 30730000,
                    "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
                   {"cifar-10-batches-bin/data_batch_3.bin", "data_batch_3.bin", 30730000,
                    "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
                   {"cifar-10-batches-bin/data_batch_4.bin", "data_batch_4.bin", 30730000,
                    "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
                   {"cifar-10-batches-bin/data_batch_5.bin", "data_batch_5.bin", 30730000,
                    "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
                   {"cifar-10-batches-bin/test_batch.bin", "test_batch.bin", 30730000,
                    "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"}},
    },
    {
        .name = "cifar100",
        .folders = {"cifar100", "cifar-100"},
        .format = "cifar100",
        .classes = 100,
        .class_name = cifar100,
        .mirrors = {CIFAR},
        .file = {{"cifar-100-binary.tar.gz", 168513733, "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec"}},
        .member = {{"cifar-100-binary/train.bin", "train.bin", 153700000, NULL}, {"cifar-100-binary/test.bin", "test.bin", 30740000, NULL}},
    },
    {.name = NULL},
};

const struct gt_known_dataset *gt_known_find(const char *name)
{
	for (const struct gt_known_dataset *k = gt_known_datasets; k->name; k++)
		if (!strcmp(k->name, name))
			return k;
	return NULL;
}

const char *gt_dataset_class(const char *dataset, int64_t label)
{
	const struct gt_known_dataset *k = gt_known_find(dataset);
	return k && label >= 0 && label < k->classes ? k->class_name[label] : NULL;
}

const char *gt_known_near(const char *name)
{
	static const char *const words[][2] = {
	    {"fmnist", "fashion-mnist"}, {"kmnist", NULL}, {"emnist", NULL}, {"qmnist", NULL}, {"svhn", NULL}, {"stl10", NULL},
	};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (!strcasecmp(words[i][0], name))
			return words[i][1];
	struct gt_guess g = gt_guess_open(name);
	for (const struct gt_known_dataset *k = gt_known_datasets; k->name; k++)
		gt_guess_try(&g, k->name);
	return g.best;
}
