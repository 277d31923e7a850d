#include "conf/synonyms.h"
#include "conf/schedule_rows.h"
#include "loss_rows.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define INFERRED "the size of a layer's input is inferred; leave the key out"

#define RMSE "write \"mse\", whose minimum over all data is the same; a root is not a mean over samples, so batches would not add up"
#define BCE "write \"bce\", which takes logits, and leave out a sigmoid at the end of the model"
#define NO_LOSS "gtrain does not have this loss"
#define NO_OPTIMIZER "gtrain does not have this optimizer"
#define NO_SCHEDULE "gtrain does not have this schedule"

static const struct gt_synonym layer_keys[] = {
	{"in_features", NULL, INFERRED},
	{"in_channels", NULL, INFERRED},
	{"num_features", NULL, INFERRED},
	{"normalized_shape", NULL, INFERRED},
	{"inplace", NULL, "the planner decides what is computed in place; leave the key out"},
	{"device", NULL, "all layers use one device; write device at the top of the config"},
	{"dtype", NULL, "all layers use one data type; write precision at the top of the config"},
	{"out_features", "out", NULL},
	{"out_channels", "out", NULL},
	{"units", "out", NULL},
	{"filters", "out", NULL},
	{"kernel_size", "kernel", NULL},
	{"strides", "stride", NULL},
	{"padding_size", "padding", NULL},
	{"use_bias", "bias", NULL},
	{"input", "in", NULL},
	{"inputs", "in", NULL},
	{"layer", "type", NULL},
	{"tie_weights", "tie", NULL},
	{"tied_to", "tie", NULL},
	{0},
};

static const struct gt_synonym keys[] = {
	{"learning_rate", "train.optimizer.lr", NULL},
	{"base_lr", "train.optimizer.lr", NULL},
	{"batch_size", "data.batch", NULL},
	{"train_batch_size", "data.batch", NULL},
	{"test_batch_size", "data.eval_batch", NULL},
	{"eval_batch_size", "data.eval_batch", NULL},
	{"num_epochs", "train.epochs", NULL},
	{"n_epochs", "train.epochs", NULL},
	{"max_epochs", "train.epochs", NULL},
	{"max_steps", "train.steps", NULL},
	{"criterion", "train.loss", NULL},
	{"loss_fn", "train.loss", NULL},
	{"patience", "train.early_stop.patience", NULL},
	{"early_stopping", "train.early_stop", NULL},
	{"scheduler", "train.schedule", NULL},
	{"lr_scheduler", "train.schedule", NULL},
	{"accumulate_grad_batches", "train.accumulate", NULL},
	{"gradient_accumulation_steps", "train.accumulate", NULL},
	{"clip_grad_norm", "train.clip_norm", NULL},
	{"clip_grad_value", "train.clip_value", NULL},
	{"max_grad_norm", "train.clip_norm", NULL},
	{"optim", "train.optimizer", NULL},
	{"dataset", "data.name", NULL},
	{"path", "data.root", NULL},
	{"data_dir", "data.root", NULL},
	{"transform", "data.augment", NULL},
	{"transforms", "data.augment", NULL},
	{"num_workers", "data.prefetch", NULL},
	{"num_classes", "data.classes", NULL},
	{"input_shape", "model.input", NULL},
	{"dtype", "precision", NULL},
	{"amp", "precision", NULL},
	{"gpus", "parallel.nproc", NULL},
	{"world_size", "parallel.nproc", NULL},
	{"nproc_per_node", "parallel.nproc", NULL},
	{"strategy", "parallel.mode", NULL},
	{"save_dir", "checkpoint.dir", NULL},
	{"output_dir", "checkpoint.dir", NULL},
	{"checkpoint_dir", "checkpoint.dir", NULL},
	{"manual_seed", "seed", NULL},
	{"pin_memory", NULL, "copies to a GPU always use pinned memory; leave the key out"},
	{0},
};

/* Words that are no layer type, with advice. Other names of existing layer types are in the rows of the operations (gt_op.also). */
static const struct gt_synonym layer_types[] = {
	{"crossentropyloss", NULL, "a loss is not a layer; write train.loss = \"cross_entropy\""},
	{"mseloss", NULL, "a loss is not a layer; write train.loss = \"mse\""},
	{"nllloss", NULL, "a loss is not a layer; write train.loss = \"nll\""},
	{"sequential", NULL, "write the layers one after another in model.layers, or define a template for several layers in model.blocks"},
	{0},
};

static const struct {
	const char *path;
	struct gt_synonym is;
} values[] = {
	{"device", {"gpu", "cuda", NULL}},
	{"device", {"nvidia", "cuda", NULL}},
	{"device", {"host", "cpu", NULL}},
	{"precision", {"float32", "fp32", NULL}},
	{"precision", {"float", "fp32", NULL}},
	{"precision", {"f32", "fp32", NULL}},
	{"precision", {"32", "fp32", NULL}},
	{"precision", {"float16", "fp16", NULL}},
	{"precision", {"half", "fp16", NULL}},
	{"precision", {"16", "fp16", NULL}},
	{"precision", {"bfloat16", "bf16", NULL}},
	{"precision", {"amp", "bf16", NULL}},
	{"precision", {"mixed", "bf16", NULL}},
	{"train.loss", {"rmse", NULL, RMSE}},
	{"train.loss", {"root_mean_squared_error", NULL, RMSE}},
	{"train.loss", {"BCELoss", NULL, BCE}},
	{"train.loss", {"bce_loss", NULL, BCE}},
	{"train.loss", {"binary_crossentropy", NULL, BCE}},
	{"train.loss", {"binary_cross_entropy", NULL, BCE}},
	{"train.loss", {"hinge", NULL, NO_LOSS}},
	{"train.loss", {"hinge_loss", NULL, NO_LOSS}},
	{"train.loss", {"ctc", NULL, NO_LOSS}},
	{"train.loss", {"dice", NULL, NO_LOSS}},
	{"train.loss", {"mape", NULL, NO_LOSS}},
	{"train.loss", {"msle", NULL, NO_LOSS}},
	{"train.optimizer.type", {"momentum", NULL, "write type = \"sgd\" and the key momentum"}},
	{"train.optimizer.type", {"nesterov", NULL, "write type = \"sgd\" and the keys momentum and nesterov"}},
	{"train.optimizer.type", {"adamax", NULL, NO_OPTIMIZER}},
	{"train.optimizer.type", {"adadelta", NULL, NO_OPTIMIZER}},
	{"train.optimizer.type", {"adafactor", NULL, NO_OPTIMIZER}},
	{"train.optimizer.type", {"amsgrad", NULL, "write type = \"adam\" and amsgrad = true"}},
	{"train.optimizer.type", {"asgd", NULL, NO_OPTIMIZER}},
	{"train.optimizer.type", {"lars", NULL, NO_OPTIMIZER}},
	{"train.optimizer.type", {"lbfgs", NULL, NO_OPTIMIZER}},
	{"parallel.mode", {"DataParallel", "dp", NULL}},
	{"parallel.mode", {"DistributedDataParallel", "ddp", NULL}},
	{"parallel.mode", {"fsdp", "zero", NULL}},
	{"parallel.mode", {"deepspeed", "zero", NULL}},
	{"parallel.mode", {"pipeline", "pipe", NULL}},
	{"parallel.mode", {"none", "single", NULL}},
	{"data.augment.type", {"RandomHorizontalFlip", "hflip", NULL}},
	{"data.augment.type", {"flip", "hflip", NULL}},
	{"data.augment.type", {"RandomCrop", "pad_crop", NULL}},
	{"data.augment.type", {"crop", "pad_crop", NULL}},
	{"data.augment.type", {"RandomVerticalFlip", "vflip", NULL}},
	{"data.augment.type", {"RandomResizedCrop", "random_resized_crop", NULL}},
	{"data.augment.type", {"CenterCrop", "center_crop", NULL}},
	{"data.augment.type", {"RandomRotation", "rotate", NULL}},
	{"data.augment.type", {"ColorJitter", "color_jitter", NULL}},
	{"data.augment.type", {"RandomGrayscale", "grayscale", NULL}},
	{"data.augment.type", {"RandomErasing", "random_erasing", NULL}},
	{"data.augment.type", {"cutout", "random_erasing", NULL}},
	{"data.augment.type", {"TrivialAugmentWide", "trivial_augment", NULL}},
	{"data.augment.type", {"TrivialAugment", "trivial_augment", NULL}},
	{"data.augment.type", {"RandAugment", "rand_augment", NULL}},
	{"data.augment.type", {"MixUp", "mixup", NULL}},
	{"data.augment.type", {"CutMix", "cutmix", NULL}},
	{"data.augment.type", {"Normalize", NULL, "data.mean and data.std normalise the pixels"}},
	{"data.augment.type", {"ToTensor", NULL, "pixels always become numbers from 0 to 1; leave the entry out"}},
	{"eval.transforms.type", {"RandomHorizontalFlip", "hflip", NULL}},
	{"eval.transforms.type", {"flip", "hflip", NULL}},
	{"eval.transforms.type", {"RandomCrop", "pad_crop", NULL}},
	{"eval.transforms.type", {"crop", "pad_crop", NULL}},
	{"eval.transforms.type", {"RandomVerticalFlip", "vflip", NULL}},
	{"eval.transforms.type", {"RandomResizedCrop", "random_resized_crop", NULL}},
	{"eval.transforms.type", {"CenterCrop", "center_crop", NULL}},
	{"eval.transforms.type", {"RandomRotation", "rotate", NULL}},
	{"eval.transforms.type", {"ColorJitter", "color_jitter", NULL}},
	{"eval.transforms.type", {"RandomGrayscale", "grayscale", NULL}},
	{"eval.transforms.type", {"RandomErasing", "random_erasing", NULL}},
	{"eval.transforms.type", {"cutout", "random_erasing", NULL}},
	{"eval.transforms.type", {"TrivialAugmentWide", "trivial_augment", NULL}},
	{"eval.transforms.type", {"TrivialAugment", "trivial_augment", NULL}},
	{"eval.transforms.type", {"RandAugment", "rand_augment", NULL}},
	{"train.class_weights", {"balanced", "auto", NULL}},
	{"eval.transforms.type", {"Normalize", NULL, "data.mean and data.std normalise the pixels"}},
	{"eval.transforms.type", {"ToTensor", NULL, "pixels always become numbers from 0 to 1; leave the entry out"}},
};

const struct gt_removed_key gt_removed_keys[] = {
	{"parallel.deferred_bn", NULL, "this key was removed, delete it: every chunk updates the running statistics", "false"},
	{"parallel.balance", NULL, "this key was removed, delete it: stages are chosen by computed costs, or by parallel.cuts", ""},
	{"window_kernel", NULL, "this key was removed; delete it: a GPU runs each step of a window as a list of kernels", ""},
	{"update_stream", NULL, "this key was removed; delete it: muon is one update after the backward pass, with the same results", ""},
	{0},
};

static const struct gt_synonym *find_synonym(const struct gt_synonym *list, const char *word)
{
	for (; list->word; list++)
		if (!strcasecmp(list->word, word))
			return list;
	return NULL;
}

const struct gt_synonym *gt_synonym_of_layer_key(const char *word)
{
	return find_synonym(layer_keys, word);
}

const struct gt_synonym *gt_synonym_of_key(const char *word)
{
	return find_synonym(keys, word);
}

const struct gt_synonym *gt_synonym_of_layer_type(const char *word)
{
	return find_synonym(layer_types, word);
}

/* Compares a path with one of the table, which has no indices: "data.augment[0].type" equals "data.augment.type". */
static int same_path(const char *table, const char *path)
{
	for (; *table == *path && *table; table++)
		path++, path += *path == '[' ? strcspn(path, "]") + 1 : 0;
	return !*table && !*path;
}

/* Returns whether `words`, "a|b", has the word, upper or lower case. */
static bool is_among(const char *words, const char *word)
{
	size_t n;
	for (; words && *words; words += n + (words[n] == '|')) {
		n = strcspn(words, "|");
		if (n == strlen(word) && !strncasecmp(words, word, n))
			return true;
	}
	return false;
}

const struct gt_synonym *gt_synonym_of_value(const char *path, const char *word)
{
	static const struct {
		const char *path;
		struct gt_synonym is; /* its words are separated by "|" */
	} rows[] = {
#define GT_X(arg, CODE, name, kind, output, target, weight, numbers, also, help) {"train.loss", {also, #name, NULL}},
	    GT_LOSSES(GT_X)
#undef GT_X
#define GT_X(NAME, word, counted, also, ...) {"train.schedule.type", {also, #word, NULL}},
	    GT_SCHEDULES(GT_X)
#undef GT_X
	};
	static const char group[] = "train.groups[";
	char like[128];
	if (!strncmp(path, group, strlen(group)) && strchr(path, ']')) { /* an optimizer of a group has the values of train.optimizer */
		snprintf(like, sizeof like, "train%s", strchr(path, ']') + 1);
		path = like;
	}
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		if (!strcmp(rows[i].path, path) && is_among(rows[i].is.word, word))
			return &rows[i].is;
	for (unsigned i = 0; i < sizeof values / sizeof *values; i++)
		if (same_path(values[i].path, path) && !strcasecmp(values[i].is.word, word))
			return &values[i].is;
	return NULL;
}

static bool values_match(const char *value, const struct gt_cnode *n)
{
	char buf[64];
	const char *text = n->raw ? n->raw : n->type == GT_C_STRING ? n->s : gt_cnode_text(n, buf, sizeof buf);
	return !strcmp(value, text);
}

const struct gt_removed_key *gt_removed_key_find(const struct gt_removed_key *list, const char *path, const struct gt_cnode *n)
{
	for (; list->path; list++)
		if (same_path(list->path, path) && (!list->value || values_match(list->value, n)))
			return list;
	return NULL;
}

bool gt_removed_key_ignored(const struct gt_removed_key *k, const struct gt_cnode *n)
{
	return k->ignored && !n->set && (!*k->ignored || values_match(k->ignored, n));
}
