#include "known_weights.h"
#include "dataset.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define TORCHVISION "https://download.pytorch.org/models/"
#define RENAME(from, to, tensor) "{ from = \"*." from "." tensor "\"; to = \"*." to "." tensor "\"; }, "

/* The weights that torchvision.models 0.29 loads for weights="DEFAULT". torchvision verifies the same digest digits. */
const struct gt_known_weights gt_known_weights[] = {
    {"resnet18", TORCHVISION, "resnet18-f37072fd.pth", "f37072fd", "resnet18.cfg", "", "5.0e-4", 0},
    {"resnet34", TORCHVISION, "resnet34-b627a593.pth", "b627a593", "resnet34.cfg", "", "5.0e-4", 0},
    {"resnet50", TORCHVISION, "resnet50-11ad3fa6.pth", "11ad3fa6", "resnet50.cfg", "", "5.0e-4", 0},
    {"mobilenet_v2", TORCHVISION, "mobilenet_v2-7ebf99e0.pth", "7ebf99e0", "mobilenet_v2.cfg", "", "5.0e-4", 0},
    {"mobilenet_v3_small", TORCHVISION, "mobilenet_v3_small-047dcff4.pth", "047dcff4", "mobilenet_v3.cfg", "", "5.0e-4", 0},
    {"efficientnet_b0", TORCHVISION, "efficientnet_b0_rwightman-7f5810bc.pth", "7f5810bc", "efficientnet_b0.cfg", "", "5.0e-4", 0},
    {"vit_b_16", TORCHVISION, "vit_b_16-c867db91.pth", "c867db91", "vit_b16.cfg",
     "{ from = \"class_token\"; to = \"class_token.weight\"; }, "
     "{ from = \"encoder.pos_embedding\"; to = \"encoder.pos_embedding.weight\"; }",
     "1.0e-4", 224},
    {"convnext_tiny", TORCHVISION, "convnext_tiny-983f1562.pth", "983f1562", "convnext_tiny.cfg",
     "{ from = \"*.layer_scale\"; to = \"*.layer_scale.weight\"; }", "1.0e-4", 0},
    {"squeezenet1_1", TORCHVISION, "squeezenet1_1-b8a52dc0.pth", "b8a52dc0", "squeezenet1_1.cfg", "", "1.0e-4", 0},
    {"regnet_y_400mf", TORCHVISION, "regnet_y_400mf-e6988f5f.pth", "e6988f5f", "regnet_y_400mf.cfg", "", "5.0e-4", 0},
    {"shufflenet_v2_x1_0", TORCHVISION, "shufflenetv2_x1-5666bf0f80.pth", "5666bf0f80", "shufflenet_v2_x1_0.cfg", "", "5.0e-4", 224},
    /* the file has older tensor names than torchvision's module, and lacks num_batches_tracked */
    {"densenet121", TORCHVISION, "densenet121-a639ec97.pth", "a639ec97", "densenet121.cfg",
     RENAME("norm.1", "norm1", "weight") RENAME("norm.1", "norm1", "bias") RENAME("norm.1", "norm1", "running_mean")
     RENAME("norm.1", "norm1", "running_var") RENAME("norm.2", "norm2", "weight") RENAME("norm.2", "norm2", "bias")
     RENAME("norm.2", "norm2", "running_mean") RENAME("norm.2", "norm2", "running_var") RENAME("conv.1", "conv1", "weight")
     "{ from = \"*.conv.2.weight\"; to = \"*.conv2.weight\"; }", "5.0e-4", 0},
    /* the file has auxiliary classifiers; the network expects pixels from -1 to 1 (transform_input = True) */
    {"googlenet", TORCHVISION, "googlenet-1378be20.pth", "1378be20", "googlenet.cfg",
     "{ from = \"aux1.*\"; to = \"\"; }, { from = \"aux2.*\"; to = \"\"; }", "5.0e-4", 0, .mean = 0.5, .std = 0.5},
    {.name = NULL},
};

const struct gt_known_weights *gt_known_weights_find(const char *name)
{
	for (const struct gt_known_weights *w = gt_known_weights; w->name; w++)
		if (!strcmp(w->name, name))
			return w;
	return NULL;
}

enum gt_code gt_known_weights_path(const struct gt_known_weights *w, char *buf, size_t size, struct gt_err *err)
{
	GT_TRY(gt_dataset_cache("weights", buf, size, err));
	size_t n = strlen(buf);
	if ((size_t)snprintf(buf + n, size - n, "/%s", w->file) >= size - n)
		return gt_fail(err, GT_ENOINPUT, "the path of the user's cache is too long");
	return GT_OK;
}

const struct gt_known_weights *gt_known_weights_at(const char *path)
{
	char known[PATH_MAX];
	for (const struct gt_known_weights *w = gt_known_weights; w->name; w++)
		if (gt_known_weights_path(w, known, sizeof known, NULL) == GT_OK && !strcmp(known, path))
			return w;
	return NULL;
}
