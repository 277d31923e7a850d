/* The tables of keys of the entries of lists: transforms, columns, inputs, renamed tensors, layers and blocks. */
#include "conf/schema.h"
#include "image/transform.h"
#include <math.h>

#define AUG(member) .offset = offsetof(struct gt_transform, member)
#define TYPE(types) .when = "type", .is = types
const struct gt_row gt_rows_augment[] = {
    {"type", GT_T_ENUM, AUG(type), NULL, .flags = GT_R_REQUIRED,
     .values = GT_TRANSFORM_WORDS,
     .help = "pad_crop: pad the image, then crop it to its old size at a random position; hflip: mirror the image horizontally; "
             "random_resized_crop: crop a random part of the image and resize the part; resize: resize the image; center_crop: crop the "
             "centre of the image, padded with black if the image is smaller; vflip: mirror the image vertically; rotate: rotate it by a "
             "random angle; color_jitter: change brightness, contrast, saturation and hue at random; grayscale: replace colours by grey; "
             "random_erasing: fill a random rectangle with one colour or random bytes; trivial_augment: apply one random operation of "
             "random strength, like torchvision's TrivialAugmentWide; rand_augment: apply random operations of a given strength, like "
             "torchvision's RandAugment; mixup: blend each image and its target with another sample of the batch, rounding pixels to "
             "bytes; cutmix: paste a random rectangle of another image of the batch and mix the targets"},
    {"size", GT_T_SIZE, AUG(size), NULL, 1, 65500, GT_R_REQUIRED, TYPE("random_resized_crop|resize|center_crop"),
     .help = "size of the resulting image in pixels; one value: height and width, but in resize the shorter side"},
    {"scale", GT_T_PAIR, AUG(scale), "([0.08, 1.0]; random_erasing: [0.02, 0.33])", 0, 1, GT_R_ABOVE,
     TYPE("random_resized_crop|random_erasing"), .help = "smallest and largest area of the random part, as a fraction of the image's area"},
    {"ratio", GT_T_PAIR, AUG(ratio), "([0.75, 1.3333333333333333]; random_erasing: [0.3, 3.3])", 0, 1000, GT_R_ABOVE,
     TYPE("random_resized_crop|random_erasing"), .help = "smallest and largest ratio of the random part's width to its height"},
    {"interpolation", GT_T_ENUM, AUG(interpolation), "(\"bilinear\"; rotate, trivial_augment and rand_augment: \"nearest\")",
     .values = "nearest|bilinear|bicubic", TYPE("random_resized_crop|resize|rotate|trivial_augment|rand_augment"),
     .help = "interpolation of pixels; resizing: bilinear or bicubic, with antialiasing; rotation and shear: nearest or bilinear"},
    {"pad", GT_T_INT, AUG(pad), NULL, 1, 1024, GT_R_REQUIRED, TYPE("pad_crop"), .help = "number of pixels that are added on every side"},
    {"mode", GT_T_ENUM, AUG(mode), "\"constant\"", .values = "constant|reflect", TYPE("pad_crop"),
     .help = "constant: pad with black; reflect: pad with the mirrored edge"},
    {"p", GT_T_FLOAT, AUG(p), "(0.5; grayscale: 0.1; mixup or cutmix alone: 1)", 0, 1,
     TYPE("hflip|vflip|grayscale|random_erasing|mixup|cutmix"),
     .help = "probability that the transform is applied, to an image or, for mixup and cutmix, to a batch"},
    {"alpha", GT_T_FLOAT, AUG(alpha), "1.0", 0, 1000, GT_R_ABOVE, TYPE("mixup|cutmix"),
     .help = "the weight of an image in the mix is drawn from the distribution Beta(alpha, alpha)"},
    {"alternate", GT_T_BOOL, AUG(alternate), "false", TYPE("hflip"),
     .help = "draw once for each image in the first epoch, then mirror the image in every second epoch, so that two consecutive epochs "
             "never show the same version"},
    {"degrees", GT_T_FLOAT, AUG(degrees), NULL, 0, 180, GT_R_REQUIRED, TYPE("rotate"),
     .help = "largest angle; the angle is drawn from -degrees to degrees"},
    {"brightness", GT_T_FLOAT, AUG(brightness), "0.0", 0, 100, TYPE("color_jitter"),
     .help = "largest change x of the brightness, whose factor is drawn from max(0, 1 - x) to 1 + x; 0: unchanged"},
    {"contrast", GT_T_FLOAT, AUG(contrast), "0.0", 0, 100, TYPE("color_jitter"), .help = "largest change of the contrast, as for "
                                                                                         "brightness"},
    {"saturation", GT_T_FLOAT, AUG(saturation), "0.0", 0, 100, TYPE("color_jitter"), .help = "largest change of the saturation, as for "
                                                                                             "brightness"},
    {"hue", GT_T_FLOAT, AUG(hue), "0.0", 0, 0.5, TYPE("color_jitter"),
     .help = "largest shift x of the hue, in turns of the colour wheel; the shift is drawn from -x to x; 0: unchanged"},
    {"ops", GT_T_INT, AUG(ops), "2", 1, GT_MAX_DRAWN_OPS, TYPE("rand_augment"), .help = "number of random operations for each image"},
    {"magnitude", GT_T_INT, AUG(magnitude), "9", 0, 1000, TYPE("rand_augment"),
     .help = "index of the operations' strength, from 0 to bins - 1"},
    {"bins", GT_T_INT, AUG(bins), "31", 2, 1001, TYPE("trivial_augment|rand_augment"), .help = "number of strengths that each operation "
                                                                                               "has"},
    {"random", GT_T_BOOL, AUG(random), "false", TYPE("random_erasing"), .help = "fill the rectangle with random bytes"},
    {"fill", GT_T_FLOATS, AUG(fill), "[]", 0, 1, TYPE("random_erasing|rotate|trivial_augment|rand_augment"),
     .help = "colour of new pixels, with values 0..1; one value for all channels or one per channel; []: black, or data.mean for "
             "random_erasing"},
    {NULL},
};

#define COLUMN(member) .offset = offsetof(struct gt_column_spec, member)
const struct gt_row gt_rows_column[] = {
    {"name", GT_T_STRING, COLUMN(name), NULL, .flags = GT_R_REQUIRED, .help = "name of the column"},
    {"type", GT_T_ENUM, COLUMN(type), "\"auto\"", .values = GT_COLUMN_TYPE_WORDS,
     .help = "type of the column; continuous: a number, normalised; categorical: one of several words or integers; date: a date, with or "
             "without a time, such as 2023-05-18, 18.05.2023 or 05/18/2023 1:30 PM, which becomes nine values, each normalised: year, "
             "month, day, day of the week, day of the year, whether the day is the first and the last day of its month, days since 1970, "
             "and the time of the day; text: a text, which data.tokenizer splits into tokens; ignore: the column is not used; target: as "
             "in data.target; auto: inferred"},
    {"order", GT_T_ENUM, COLUMN(order), "\"auto\"", .values = GT_DATE_ORDER_WORDS,
     .help = "order of day (d), month (m) and year (y) in a date; auto: the order in which all dates of the column are valid"},
    {NULL},
};

#define INPUT(member) .offset = offsetof(struct gt_model_input, member)
const struct gt_row gt_rows_input[] = {
    {"name", GT_T_STRING, INPUT(name), NULL, .flags = GT_R_REQUIRED,
     .help = "name of a field of the data, which layers use in their key in: \"image\", or a field that the format has (data.format)"},
    {"type", GT_T_ENUM, INPUT(type), "(the name, if the name is a type)", .values = GT_INPUT_WORDS,
     .help = "type of the input; image: pixels; values: numbers; codes: indices of categories; tokens: indices of words of a text; "
             "lengths: the number of tokens of a text"},
    {"shape", GT_T_DIMS, INPUT(shape), "(that of the data)", 1, 65536,
     .help = "shape of a sample: [channels, height, width] of an image, else the number of values"},
    {"vocabulary", GT_T_INT, INPUT(vocabulary), "(that of the data)", 2, INT32_MAX - 1,
     .help = "number of different codes or tokens; all indices are below it"},
    {NULL},
};

#define RENAME(member) .offset = offsetof(struct gt_conf_rename, member)
const struct gt_row gt_rows_rename[] = {
    {"from", GT_T_STRING, RENAME(from), NULL, .flags = GT_R_REQUIRED,
     .help = "name of a tensor in the file, or a pattern with a single *, which matches any characters"},
    {"to", GT_T_STRING, RENAME(to), NULL, .flags = GT_R_REQUIRED,
     .help = "name of the tensor in the model; * is replaced by the characters that the * of from matched; \"\": the tensor is not loaded"},
    {"part", GT_T_INTS, RENAME(part), "[]", 0, GT_MAX_PARTS,
     .help = "[i, n]: the model's tensor consists of n equal parts along its first dimension, and this tensor is part i, from 0 to n - 1, "
             "as queries, keys and values are parts of in_proj_weight; []: the whole tensor"},
    {NULL},
};

#define LAYER(member) .offset = offsetof(struct gt_layer_spec, member)
const struct gt_row gt_rows_layer[] = {
    {"type", GT_T_OTHER, .values = "string", .flags = GT_R_REQUIRED, .help = "the operation: one of the layer types below"},
    {"name", GT_T_OTHER, .values = "string", .def = "(its index in the list)",
     .help = "name of the layer; the names of its parameters begin with this name, as in a PyTorch state dict; letters, digits, _ . -"},
    {"in", GT_T_OTHER, .values = "string|string[]", .def = "(the layer before)",
     .help = "name or list of names of earlier layers; \"input\" is the model's input"},
    {"tie", GT_T_OTHER, .values = "string", .def = "(its own weight)",
     .help = "for a linear or embedding layer: name of an earlier layer with a weight of the same shape, which this layer shares"},
    {"lr_mul", GT_T_FLOAT, LAYER(lr_mul), "1.0", 0, INFINITY, .help = "factor by which the learning rate of the layer's parameters is "
                                                                      "multiplied"},
    {"weight_decay", GT_T_FLOAT, LAYER(weight_decay), "(train.optimizer's)", 0, INFINITY, .help = "weight decay of the layer's parameters"},
    {"frozen", GT_T_BOOL, LAYER(frozen), "false", .help = "do not train the layer's parameters"},
    {"recompute", GT_T_BOOL, LAYER(recompute), "false",
     .help = "compute the layer's output again in the backward pass instead of keeping it in memory; in a block, all outputs except the "
             "block's output; the results are bit-identical"},
    {"init", GT_T_ENUM, LAYER(init), "(model.init)",
     .values = GT_INIT_WORDS "|dirac|whitening|zeros",
     .help = "distribution of the layer's initial weights; zeros: the weight is 0, as is common for the last normalisation of a residual "
             "block; dirac: the first filters of a convolution copy their channel, and model.init initialises the other filters; "
             "whitening: the filters of the first convolution make the patches of the training images uncorrelated"},
    {"init_std", GT_T_FLOAT, LAYER(init_std), "0.0", 0, 1e6,
     .help = "standard deviation to which the layer's initial weights are scaled; 0: not scaled"},
    {"init_eps", GT_T_FLOAT, LAYER(init_eps), "5.0e-4", 0, 1e6,
     .help = "whitening: value added to the variances before the division by their square roots"},
    {"init_samples", GT_T_INT, LAYER(init_samples), "5000", 1, 1 << 30,
     .help = "whitening: number of training images, from the start of the split, whose patches are used"},
    {NULL},
};

const struct gt_row gt_rows_block[] = {
    {"block", GT_T_OTHER, .values = "string", .flags = GT_R_REQUIRED, .help = "name of a template in model.blocks, instead of type"},
    {"repeat", GT_T_INT, .def = "(one instance, named NAME without a number)", .min = 1, .max = 10000,
     .help = "number of consecutive instances, named NAME.0, NAME.1, …"},
    {"first", GT_T_OTHER, .values = "group", .def = "{ }", .help = "values of parameters that differ in the first instance"},
    {NULL},
};

const struct gt_row gt_rows_template[] = {
    {"params", GT_T_OTHER, .values = "string[]", .def = "[]",
     .help = "names of the template's parameters; in its layers, \"$NAME\" is replaced by the value of parameter NAME"},
    {"defaults", GT_T_OTHER, .values = "group", .def = "{ }", .help = "default values of the template's parameters"},
    {"layers", GT_T_OTHER, .values = "list", .flags = GT_R_REQUIRED,
     .help = "layers of the block, as in model.layers; \"$in\" is the input of the block"},
    {NULL},
};
