#include "conf/synonyms.h"
#include "conf/schedule_rows.h"
#include "loss_rows.h"
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define NOT_HERE(what) "gtrain does not have this " what
#define RMSE "write \"mse\", which has the same minimum over all data; a root is not a mean over samples, so batches cannot be averaged"
#define A_LOSS(word) "a loss is not a layer; write train.loss = \"" word "\""

/* Names that other programs use for keys and values of gtrain. Names of layer types are in gt_op.also instead. */
static const struct gt_synonym synonyms[] = {
	{GT_SYN_LAYER_KEY, "in_features|in_channels|num_features|normalized_shape", NULL,
	 "gtrain infers the size of a layer's input; leave the key out"},
	{GT_SYN_LAYER_KEY, "inplace", NULL, "the planner decides which layers compute in place; leave the key out"},
	{GT_SYN_LAYER_KEY, "device", NULL, "all layers use one device; write device at the top of the config"},
	{GT_SYN_LAYER_KEY, "dtype", NULL, "all layers use one data type; write precision at the top of the config"},
	{GT_SYN_LAYER_KEY, "out_features|out_channels|units|filters", "out"},
	{GT_SYN_LAYER_KEY, "kernel_size", "kernel"},
	{GT_SYN_LAYER_KEY, "strides", "stride"},
	{GT_SYN_LAYER_KEY, "padding_size", "padding"},
	{GT_SYN_LAYER_KEY, "use_bias", "bias"},
	{GT_SYN_LAYER_KEY, "input|inputs", "in"},
	{GT_SYN_LAYER_KEY, "layer", "type"},
	{GT_SYN_LAYER_KEY, "tie_weights|tied_to", "tie"},

	{GT_SYN_LAYER_TYPE, "crossentropyloss", NULL, A_LOSS("cross_entropy")},
	{GT_SYN_LAYER_TYPE, "mseloss", NULL, A_LOSS("mse")},
	{GT_SYN_LAYER_TYPE, "nllloss", NULL, A_LOSS("nll")},
	{GT_SYN_LAYER_TYPE, "sequential", NULL,
	 "write the layers one after another in model.layers, or define a template for several layers in model.blocks"},

	{GT_SYN_KEY, "learning_rate|base_lr", "train.optimizer.lr"},
	{GT_SYN_KEY, "batch_size|train_batch_size", "data.batch"},
	{GT_SYN_KEY, "test_batch_size|eval_batch_size", "data.eval_batch"},
	{GT_SYN_KEY, "num_epochs|n_epochs|max_epochs", "train.epochs"},
	{GT_SYN_KEY, "max_steps", "train.steps"},
	{GT_SYN_KEY, "criterion|loss_fn", "train.loss"},
	{GT_SYN_KEY, "patience|EarlyStopping", "train.early_stop.patience"},
	{GT_SYN_KEY, "early_stopping", "train.early_stop"},
	{GT_SYN_KEY, "scheduler|lr_scheduler", "train.schedule"},
	{GT_SYN_KEY, "accumulate_grad_batches|gradient_accumulation_steps|gradient_accumulation", "train.accumulate"},
	{GT_SYN_KEY, "clip_grad_norm|clip_grad_norm_|max_grad_norm|grad_clip|clip_grad|gradient_clip_val|gradient_clipping", "train.clip_norm"},
	{GT_SYN_KEY, "clip_grad_value|clip_grad_value_", "train.clip_value"},
	{GT_SYN_KEY, "eta_min|lr_min|min_learning_rate", "train.schedule.min_lr"},
	{GT_SYN_KEY, "warmup_epochs", "train.schedule.warmup"},
	{GT_SYN_KEY, "warmup_steps|num_warmup_steps|warmup_iters", NULL,
	 "write warmup = 500 and unit = \"step\" in train.schedule; without unit, the warmup is counted in epochs"},
	{GT_SYN_KEY, "ema_decay|model_ema|AveragedModel|exponential_moving_average", "train.ema.decay"},
	{GT_SYN_KEY, "valid_pct|val_split|validation_split|val_size", "data.valid"},
	{GT_SYN_KEY, "freeze|unfreeze|requires_grad|freeze_epochs", NULL,
	 "write an entry of train.groups: groups = ( { match = \"layer1.*\"; frozen = true; } ), or frozen_until = 1.0 for the first epoch"},
	{GT_SYN_KEY, "optim", "train.optimizer"},
	{GT_SYN_KEY, "dataset", "data.name"},
	{GT_SYN_KEY, "path|data_dir", "data.root"},
	{GT_SYN_KEY, "transform|transforms", "data.augment"},
	{GT_SYN_KEY, "mixup|mixup_alpha", NULL, "write an entry of data.augment: augment = ( ..., { type = \"mixup\"; alpha = 0.4; } )"},
	{GT_SYN_KEY, "cutmix|cutmix_alpha", NULL, "write an entry of data.augment: augment = ( ..., { type = \"cutmix\"; alpha = 1.0; } )"},
	{GT_SYN_KEY, "random_erasing|cutout|hflip|random_crop|color_jitter|trivial_augment|rand_augment|randaugment|auto_augment", NULL,
	 "write an entry of data.augment for each transform; `gtrain help transforms` lists them"},
	{GT_SYN_KEY, "num_workers", "data.prefetch"},
	{GT_SYN_KEY, "num_classes", "data.classes"},
	{GT_SYN_KEY, "input_shape", "model.input"},
	{GT_SYN_KEY, "dtype|amp", "precision"},
	{GT_SYN_KEY, "gpus|world_size|nproc_per_node", "parallel.nproc"},
	{GT_SYN_KEY, "strategy", "parallel.mode"},
	{GT_SYN_KEY, "save_dir|output_dir|checkpoint_dir", "checkpoint.dir"},
	{GT_SYN_KEY, "manual_seed", "seed"},
	{GT_SYN_KEY, "pin_memory", NULL, "copies to a GPU always use pinned memory; leave the key out"},

	{"device", "gpu|nvidia", "cuda"},
	{"device", "host", "cpu"},
	{"precision", "float32|float|f32|32", "fp32"},
	{"precision", "float16|half|16", "fp16"},
	{"precision", "bfloat16|amp|mixed", "bf16"},
	{"train.loss", "rmse|root_mean_squared_error", NULL, RMSE},
	{"train.loss", "BCELoss|bce_loss|binary_crossentropy|binary_cross_entropy", NULL,
	 "write \"bce\", which takes logits, and remove the sigmoid at the end of the model"},
	{"train.loss", "hinge|hinge_loss|ctc|dice|mape|msle", NULL, NOT_HERE("loss")},
	{"train.optimizer.type", "momentum", NULL, "write type = \"sgd\" and the key momentum"},
	{"train.optimizer.type", "nesterov", NULL, "write type = \"sgd\" and the keys momentum and nesterov"},
	{"train.optimizer.type", "amsgrad", NULL, "write type = \"adam\" and amsgrad = true"},
	{"train.optimizer.type", "adamax|adadelta|adafactor|asgd|lars|lbfgs", NULL, NOT_HERE("optimizer")},
	{"parallel.mode", "DataParallel", "dp"},
	{"parallel.mode", "DistributedDataParallel", "ddp"},
	{"parallel.mode", "fsdp|deepspeed", "zero"},
	{"parallel.mode", "pipeline", "pipe"},
	{"parallel.mode", "none", "single"},
	{"data.augment.type", "RandomHorizontalFlip|flip", "hflip"},
	{"data.augment.type", "RandomCrop|crop", "pad_crop"},
	{"data.augment.type", "RandomVerticalFlip", "vflip"},
	{"data.augment.type", "RandomResizedCrop", "random_resized_crop"},
	{"data.augment.type", "CenterCrop", "center_crop"},
	{"data.augment.type", "RandomRotation", "rotate"},
	{"data.augment.type", "ColorJitter", "color_jitter"},
	{"data.augment.type", "RandomGrayscale", "grayscale"},
	{"data.augment.type", "RandomErasing|cutout", "random_erasing"},
	{"data.augment.type", "TrivialAugmentWide|TrivialAugment", "trivial_augment"},
	{"data.augment.type", "RandAugment", "rand_augment"},
	{"data.augment.type", "MixUp", "mixup"},
	{"data.augment.type", "CutMix", "cutmix"},
	{"data.augment.type", "Normalize", NULL, "write data.mean and data.std to normalise the pixels"},
	{"data.augment.type", "ToTensor", NULL, "gtrain always scales pixels to 0..1; leave the entry out"},
	{"train.class_weights", "balanced", "auto"},
#define GT_X(arg, CODE, name, kind, output, target, weight, numbers, also, help) {"train.loss", also, #name},
	GT_LOSSES(GT_X)
#undef GT_X
#define GT_X(NAME, word, counted, also, ...) {"train.schedule.type", also, #word},
	GT_SCHEDULES(GT_X)
#undef GT_X
};

const struct gt_removed_key gt_removed_keys[] = {
	{"parallel.deferred_bn", NULL, "this key was removed; delete it: every micro-batch updates the running statistics", "false"},
	{"parallel.balance", NULL, "this key was removed; delete it: computed costs or parallel.cuts determine the stages", ""},
	{"window_kernel", NULL, "this key was removed; delete it: a GPU runs each queued step as a list of kernels", ""},
	{"update_stream", NULL, "this key was removed; delete it: muon updates all weights after the backward pass, with the same results", ""},
	{0},
};

/* Compares a path with a path of the table, ignoring indices: "data.augment[0].type" equals "data.augment.type". */
static int same_path(const char *table, const char *path)
{
	for (; *table == *path && *table; table++)
		path++, path += *path == '[' ? strcspn(path, "]") + 1 : 0;
	return !*table && !*path;
}

/* Returns whether `words`, "a|b", contains the word; case is ignored. */
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

/* Returns the path under which the table lists the values of key `of`: for keys in train.groups, the key of train; for keys in
 * eval.transforms, the key of data.augment; else `of`. */
static const char *same_values(const char *of, char *buf, size_t size)
{
	static const struct {
		const char *list, *like;
	} same[] = {{"train.groups[", "train"}, {"eval.transforms[", "data.augment"}};
	for (size_t i = 0; i < sizeof same / sizeof *same; i++)
		if (!strncmp(of, same[i].list, strlen(same[i].list)) && strchr(of, ']')) {
			snprintf(buf, size, "%s%s", same[i].like, strchr(of, ']') + 1);
			return buf;
		}
	return of;
}

const struct gt_synonym *gt_synonym_find(const char *of, const char *word)
{
	char like[128];
	of = same_values(of, like, sizeof like);
	for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
		if (same_path(synonyms[i].of, of) && is_among(synonyms[i].words, word))
			return &synonyms[i];
	return NULL;
}

const char *gt_schema_advice(const char *word)
{
	static const char *const of[] = {GT_SYN_KEY, GT_SYN_LAYER_KEY, GT_SYN_LAYER_TYPE};
	for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
		const struct gt_synonym *s = gt_synonym_find(of[i], word);
		if (s && !s->meant)
			return s->reason;
	}
	return NULL;
}

const char *gt_synonym_words(const char *of, const char *meant)
{
	char like[128];
	of = same_values(of, like, sizeof like);
	for (size_t i = 0; i < sizeof synonyms / sizeof *synonyms; i++)
		if (synonyms[i].meant && synonyms[i].words && same_path(synonyms[i].of, of) && !strcmp(synonyms[i].meant, meant))
			return synonyms[i].words;
	return NULL;
}

static bool values_match(const char *value, const struct gt_cnode *n)
{
	char buf[64];
	const char *word = gt_cnode_word(n);
	return !strcmp(value, word ? word : gt_cnode_text(n, buf, sizeof buf));
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
