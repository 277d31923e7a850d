/* The network of published weights, for `gtrain init --pretrained`. */
#ifndef GT_SETUP_INIT_PRETRAINED_H
#define GT_SETUP_INIT_PRETRAINED_H

#include "base/arena.h"
#include <stdbool.h>
#include <stdint.h>

struct gt_init_network {
	const char *file;     /* value of model.pretrained.file: the path or the name that the user gave */
	int blocks[4];        /* for a ResNet: number of residual blocks of each stage */
	bool bottleneck;      /* for a ResNet: each residual block has three convolutions */
	const char *name;     /* for another network than a ResNet: its name, such as "vit_b_16"; NULL: a ResNet */
	const char *config;   /* the config of this network that comes with gtrain */
	const char *text;     /* text of that config */
	const char *map;      /* value of model.pretrained.map, including the entry that skips the classifier */
	int64_t side;         /* required height and width of images in pixels; 0: any size */
	/* mean and standard deviation that normalise each channel of the images; std 0: the same normalisation as without --pretrained */
	double mean, std;
	const char *lr;       /* learning rate of the optimizer adamw for fine-tuning, as text of the config */
};

/* Recognises the network of a file with weights, by the names and shapes of its tensors: a ResNet of torchvision, or a network whose config
 * comes with gtrain. which: the path of a file, or a name of `gtrain fetch`. to: the config file that will contain the path, or NULL.
 * Strings are in the arena. GT_EDATA: another network. GT_ENOINPUT: the file is missing. */
enum gt_code gt_init_network(const char *which, const char *to, struct gt_arena *a, struct gt_init_network *out, struct gt_err *err);

/* Sets *text to the part "model = { … };" of the network's config, changed for other images and classes, and with model.pretrained. */
enum gt_code gt_init_network_model(const struct gt_init_network *n, int64_t height, int64_t width, int64_t classes, struct gt_arena *a,
                                   const char **text, struct gt_err *err);

#endif
