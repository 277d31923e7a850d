/* The table of keys, in the order of the manual and of the resolved config. */
#include "conf/schema.h"
#include "conf/metric_name.h"
#include "formats.h"
#include "losses.h"
#include "omp_threads.h"
#include <math.h>

#define AT(member) .offset = offsetof(struct gt_conf, member)
#define AT_OPTIMIZER(member) AT(train.optimizer.member)
#define AT_SCHEDULE(member) AT(train.schedule.member)
#define OPT(P) .when = P "type", .types = GT_TYPES_OPTIMIZER
#define LOSSES(users) .when = "train.loss", .loss_uses = users /* of a row: the key applies to the losses for which users() returns true */
#define TEXT .when = "data.format", .is = "text|csv"
#define WORDS .when = "data.tokenizer", .is = "words"
#define CSV .when = "data.format", .is = "csv"
#define FP16 .when = "precision", .is = "fp16"
#define MODE(modes) .when = "parallel.mode", .is = modes
#define WORLD .when = "reproducible", .is = "world"
#define HELP_OF_SCORE(score, label, falls, kinds, help) help

/* Two strings made from the table in optimizer_rows.h. OPTIMIZER_WORDS: the types of optimizer, "sgd|adam|…". OPTIMIZER_HELP: their
 * descriptions for the help text, "; sgd: torch.optim.SGD; …". */
#define WORD(NAME, word, ...) "|" word
#define HELP(NAME, word, UPDATE, decoupled, help, ...) "; " word ": " help
#define OPTIMIZER_WORDS &(GT_OPTIMIZERS(WORD))[1]
#define OPTIMIZER_HELP GT_OPTIMIZERS(HELP)

/* SCHEDULE_WORDS and SCHEDULE_HELP: the same two strings for the schedules of schedule_rows.h. SCHEDULE_ROW: makes the row of a key of
 * GT_SCHEDULE_KEYS. */
#define SCHEDULE_WORD(NAME, word, ...) "|" #word
#define SCHEDULE_TEXT(NAME, word, counted, also, help, ...) "; " #word ": " help
#define SCHEDULE_WORDS &(GT_SCHEDULES(SCHEDULE_WORD))[1]
#define SCHEDULE_HELP GT_SCHEDULES(SCHEDULE_TEXT)
#define SCHEDULE_ROW(P, A, TYPE, key, words, def, min, max, row_flags, text) \
    {P #key, GT_T_##TYPE, A(key), def, min, max, row_flags, words, P "type", .types = GT_TYPES_SCHEDULE, .help = text},

/* The strings of the losses of loss_rows.h. LOSS_ROW: makes the row of a key that is a parameter of one loss. */
#define LOSS_WORD(arg, CODE, name, ...) "|" #name
#define LOSS_TEXT(arg, CODE, name, kind, output, target, weight, numbers, also, help) "; " #name ": " help
#define LOSS_WORDS &(GT_LOSSES(LOSS_WORD))[1]
#define LOSS_HELP GT_LOSSES(LOSS_TEXT)
#define LOSS_ROW(name, i, key, default_text, minimum, maximum, row_flags, help_text) \
    {"train." key, GT_T_FLOAT, AT(train.loss_number[GT_LOSS_##name][i]), default_text, minimum, maximum, row_flags, \
     .when = "train.loss", .is = #name, .help = help_text},

static bool weights_classes(const struct gt_loss_row *row)
{
	return row->weight == GT_WEIGHT_BY_CLASS;
}

static bool weights_outputs(const struct gt_loss_row *row)
{
	return row->weight == GT_WEIGHT_BY_OUTPUT;
}
/* Makes the row of a key of GT_OPTIMIZER_KEYS; KEY_<kind> is the type of the row. */
#define KEY_NUMBER GT_T_FLOAT
#define KEY_FLAG GT_T_BOOL
#define KEY_BETAS GT_T_PAIR
#define KEY_FLAGS_NUMBER 0
#define KEY_FLAGS_FLAG 0
#define KEY_FLAGS_BETAS GT_R_BELOW
#define KEY_ROW(P, A, KIND, key, def, max, text) \
    {P #key, KEY_##KIND, A(key), def, 0, max, KEY_FLAGS_##KIND, OPT(P), .help = text},

/* The rows of the keys of an optimizer, and below of a schedule, for train.optimizer and train.schedule and for entries of train.groups. P:
 * prefix of the paths, a string literal. A: macro that gives the offset of a member. */
#define OPTIMIZER_ROWS(P, A) \
    {P "type", GT_T_ENUM, A(type), NULL, .flags = GT_R_REQUIRED, .values = OPTIMIZER_WORDS, .help = "update rule" OPTIMIZER_HELP}, \
    {P "lr", GT_T_FLOAT, A(lr), NULL, 0, INFINITY, GT_R_REQUIRED, \
     .help = "learning rate, which the schedule changes during the run"}, \
    GT_OPTIMIZER_KEYS(KEY_ROW, P, A) \
    {P "weight_decay", GT_T_FLOAT, A(weight_decay), "0.0", 0, INFINITY, .types = GT_TYPES_OPTIMIZER, \
     .help = "factor of the L2 penalty; the penalty is added to the gradient unless the description of type says \"decoupled\""}, \
    {P "decay_bias", GT_T_BOOL, A(decay_bias), "true", .help = "apply weight decay to biases, as PyTorch does"}, \
    {P "decay_norm", GT_T_BOOL, A(decay_norm), "true", \
     .help = "apply weight decay to parameters of normalisations, as PyTorch does"}, \
    {P "ns_steps", GT_T_INT, A(ns_steps), "5", 1, 100, OPT(P), \
     .help = "number of Newton-Schulz iterations that make each update " \
             "orthogonal; computed in bf16, as in torch.optim.Muon, if precision is bf16 or fp16, otherwise in fp32"}, \
    {P "ns_coefficients", GT_T_FLOATS, A(ns), "[3.4445, -4.775, 2.0315]", -100, 100, OPT(P), \
     .help = "coefficients a, b, c of an iteration X = a X + (b A + c A A) X, where A = X X^T"}, \
    {P "adjust_lr", GT_T_ENUM, A(adjust), "\"original\"", .values = "original|match_rms_adamw|none|spectral_unclamped", OPT(P), \
     .help = "factor of the learning rate for a matrix of shape [out, in]; original: sqrt(max(1, out / in)); match_rms_adamw: 0.2 " \
             "sqrt(max(out, in)), so that learning rates for AdamW can be used; none: 1; spectral_unclamped: sqrt(out / in)"}, \
    {P "normalize", GT_T_BOOL, A(normalize), "false", OPT(P), \
     .help = "scale each weight matrix to the norm sqrt(out) before its update"},
#define SCHEDULE_ROWS(P, A) \
    {P "type", GT_T_ENUM, A(type), "\"constant\"", .values = SCHEDULE_WORDS, \
     .help = "how the learning rate changes over the run; types that torch.optim.lr_scheduler has keep its names" SCHEDULE_HELP}, \
    {P "unit", GT_T_ENUM, A(unit), "\"epoch\"", .values = "epoch|step", \
     .help = "unit of the lengths and times of this schedule: an epoch or an optimizer step"}, \
    GT_SCHEDULE_KEYS(SCHEDULE_ROW, P, A)

const struct gt_row gt_rows[] = {
    {"schema", GT_T_INT, AT(schema), "1", 1, 1, .help = "version of the config language"},
    {"name", GT_T_STRING, AT(name), "\"run\"", .help = "name of this run in messages and logs"},
    {"seed", GT_T_INT, AT(seed), "0", 0, INFINITY,
     .help = "seed for all random values: initial weights, order of samples, augmentation, dropout"},
    {"reproducible", GT_T_ENUM, AT(reproducible), "\"none\"", .values = "none|run|world",
     .help = "run: the same command with the same number of threads and ranks gives bit-identical results; world: any number of ranks and "
             "any parallel mode give bit-identical results"},
    {"precision", GT_T_ENUM, AT(precision), "\"fp32\"", .values = "fp32|tf32|bf16|fp16",
     .help = "number format of activations and of matrix product operands; weights and sums stay in fp32; a device without bf16 arithmetic "
             "stores bf16 and computes in fp32 (Precision and processors, above); fp32: 24 bits of precision; tf32: on a GPU, matrix "
             "products in tf32 (11 bits), the rest in fp32; bf16: 8 bits with the range of fp32, like torch.autocast(dtype = bfloat16); "
             "fp16: 11 bits with a small range, like torch.amp with a GradScaler (train.loss_scale)"},
    {"winograd", GT_T_BOOL, AT(winograd), "true",
     .help = "allow Winograd's algorithm for 3x3 convolutions in f32 on CPUs with AVX2, AVX-512 or NEON, where the algorithm is faster "
             "than the direct sum; the rounding error is about 1e-6 of the result"},
    {"autotune", GT_T_BOOL, AT(autotune), "true",
     .help = "on a GPU, choose convolution kernels by timing the best candidates at the first start, and keep the choice in the user's "
             "cache; applies only if reproducible = \"none\""},
    {"cudnn_attention", GT_T_BOOL, AT(cudnn_attention), "false",
     .help = "on a GPU, if precision is bf16 or fp16, compute attention with cuDNN's fused kernels, which use tensor cores and round the "
             "weights of the keys to 16 bits; cuDNN 9.16 or newer compiles them at each start; shapes that cuDNN does not support use "
             "gtrain's kernels (gtrain bench shows the choice); no GPU has run the fused kernels yet"},
    {"cuda_graphs", GT_T_BOOL, AT(cuda_graphs), "true",
     .help = "on a GPU, record the kernels of several steps once as a CUDA graph and replay the graph; the results do not change; "
             "parallel.mode dp on several GPUs, and ranks that communicate through host memory, run without graphs"},
    {"window", GT_T_INT, AT(window), "0", 0, 64,
     .help = "maximum number of optimizer steps that are queued on a GPU at once; 0: as many as take about 0.1 s; losses are reported and "
             "signals are handled after all queued steps"},
    {"device", GT_T_STRING, AT(device), "\"auto\"",
     .help = "device to train on: \"cpu\", \"cuda\" (a GPU for each rank), \"cuda:0\" (the GPU with this index), or \"auto\" (a GPU if the "
             "machine has a GPU, else the CPU)"},
    {"threads", GT_T_INT, AT(threads), "0", 0, GT_MAX_THREADS,
     .help = "number of CPU threads per rank; 0: OMP_NUM_THREADS if its value is from 1 to 4096, else the rank's share of the cores, or 1 "
             "if reproducible = \"world\""},

    {"data.name", GT_T_STRING, AT(data.name), "\"\"",
     .help = "name of the dataset: \"fashion-mnist\", \"mnist\", \"cifar10\", \"cifar100\", \"synthetic\", or any name for your own files"},
    {"data.root", GT_T_STRING, AT(data.root), "\"\"",
     .help = "directory of the data files, relative to the config's directory; \"\": the first directory that exists of $GTRAIN_DATA/NAME, "
             "the user's cache and /usr/share/datasets/NAME"},
    {"data.format", GT_T_CHOICE, AT(data.format), "\"auto\"", .values = "auto" GT_FORMAT_VALUES,
     .help = "format of the files; auto: inferred from file names or content; numpy: images and labels in an .npz file, or in two .npy "
             "files; folder: images in folders train/CLASS, valid/CLASS (or val) and test/CLASS, or in CLASS, or the same folders in an "
             "archive (.tar, .zip, .tar.gz, .tar.zst, .tar.xz, .tar.bz2), where hidden folders and folders without images are not classes; "
             "the folders of splits may also be named Train, training, validation, dev, eval, Test, testing, in upper or lower case, if "
             "there is a folder train or all folders have such names; list: train and test are CSV files (or .tsv, or JSON Lines) with a "
             "column of paths and a column of labels; pattern: images of one folder whose file names contain the class; csv: train and "
             "test are CSV files with any delimiter, or JSON Lines, plain or gzip, whose columns are the inputs and targets of a model, "
             "the fields \"values\", \"codes\", \"tokens\" and \"lengths\" of model.inputs; text: texts (.txt) in folders or archives, as "
             "for images"},
    {"data.train", GT_T_STRINGS, AT(data.train), "[]",
     .help = "files of the training split, relative to root or, without root, to the config's directory; []: the usual file names of the "
             "format"},
    {"data.test", GT_T_STRINGS, AT(data.test), "[]", .help = "files of the test split; paths are as in train"},
    {"data.path_column", GT_T_STRING, AT(data.path_column), "\"\"", .when = "data.format", .is = "list",
     .help = "name of the column of paths; paths are relative to root or, without root, to the list's directory; \"\": the column named "
             "path, file, filename, file_name, fname or image"},
    {"data.label_column", GT_T_STRING, AT(data.label_column), "\"\"", .when = "data.format", .is = "list",
     .help = "name of the column of labels; \"\": the column named label, labels, class, target or category"},
    {"data.label_separator", GT_T_STRING, AT(data.label_separator), "\"\"", .when = "data.format", .is = "list",
     .help = "character between the labels of an image, if an image can have several labels; the target then has a 1 or 0 for each label, "
             "as the loss bce needs; \"\": an image has one label"},
    {"data.target_columns", GT_T_STRINGS, AT(data.target_columns), "[]", .when = "data.format", .is = "list",
     .help = "names of numeric columns, which are the targets instead of labels, as for the loss mse"},
    {"data.pattern", GT_T_STRING, AT(data.pattern), "\"\"", .when = "data.format", .is = "pattern",
     .help = "POSIX extended regular expression for the file name of an image; its group ( ) matches the class"},
    {"data.target", GT_T_STRINGS, AT(data.target), "[]", CSV,
     .help = "name of the column that the model predicts: a class for losses over classes, such as cross_entropy, else a number; or names "
             "of several numeric columns; bce and focal: columns with values from 0 to 1, each column is a label that a sample has (1) or "
             "has not (0)"},
    {"data.normalize_target", GT_T_BOOL, AT(data.normalize_target), "false", CSV,
     .help = "train on (target - mean) / standard deviation, both of the training split, instead of the table's values; the loss is "
             "computed on these values; predictions and reports use the units of the table"},
    {"data.columns", GT_T_OTHER, .values = "list", .entries = gt_rows_column, .def = "[]", CSV,
     .help = "types of columns, a list of groups; for files without a header, an entry for each column also gives the column's name; the "
             "type of a column without an entry is inferred from the training split, as gtrain check shows"},
    {"data.ignore", GT_T_STRINGS, AT(data.ignore), "[]", CSV, .help = "names of columns that are not used"},
    {"data.na", GT_T_STRINGS, AT(data.na), "[\"\", \"?\", \"NA\", \"nan\", \"NaN\", \"null\"]", CSV,
     .help = "texts of fields that mean a missing value"},
    {"data.delimiter", GT_T_STRING, AT(data.delimiter), "\"\"", CSV,
     .help = "character between fields; \"\": the most frequent character of , ; tab and | in the first line, not counting decimal commas"},
    {"data.encoding", GT_T_ENUM, AT(data.encoding), "\"utf-8\"", .values = GT_ENCODING_WORDS, CSV,
     .help = "character encoding of the files; windows-1252: the encoding in which spreadsheets on Windows save CSV files in western "
             "languages; files that begin with the byte order mark of UTF-16 are always read as UTF-16"},
    {"data.decimal", GT_T_STRING, AT(data.decimal), "\".\"", CSV,
     .help = "decimal separator of numbers: \".\" or \",\", as in spreadsheets in much of Europe"},
    {"data.thousands", GT_T_STRING, AT(data.thousands), "\"\"", CSV,
     .help = "separator between groups of three digits, as in 1,234,567: \",\", \".\", \" \" or \"'\"; numbers without this separator are "
             "read too; \"\": no separator"},
    {"data.header", GT_T_ENUM, AT(data.header), "\"auto\"", .values = "auto|yes|no", CSV,
     .help = "whether the first line has the names of the columns; auto: true if its fields differ and no field is a number, a date or "
             "longer than 255 bytes; columns without a name are named c1, c2 and so on"},
    {"data.batch", GT_T_INT, AT(data.batch), "0", 0, 1 << 24,
     .help = "number of samples in one optimizer step, summed over all ranks; either this key or batch_per_rank is required"},
    {"data.batch_per_rank", GT_T_INT, AT(data.batch_per_rank), "0", 0, 1 << 24,
     .help = "number of samples in one optimizer step on each rank, like batch_size of PyTorch's DataLoader"},
    {"data.eval_batch", GT_T_INT, AT(data.eval_batch), "0", 0, 1 << 24,
     .help = "number of samples in a batch during evaluation; 0: as in training"},
    {"data.shuffle", GT_T_BOOL, AT(data.shuffle), "true",
     .help = "shuffle the samples in every epoch; the order depends on seed and epoch only"},
    {"data.drop_last", GT_T_BOOL, AT(data.drop_last), "false", .help = "skip the last batch of an epoch if that batch is not full"},
    {"data.sampler", GT_T_ENUM, AT(data.sampler), "\"gtrain\"", .values = "gtrain|torch|torch-random",
     .help = "order of the samples; gtrain: gtrain's own order; torch: the order of PyTorch's DistributedSampler(seed = seed); "
             "torch-random: the order of DataLoader(shuffle=True, generator=torch.Generator().manual_seed(seed))"},
    {"data.valid", GT_T_FLOAT, AT(data.valid), "0.0", 0, 1, GT_R_BELOW,
     .help = "fraction of the training split that becomes the split \"valid\"; the seed and the file's name, or the row's text, decide for "
             "each sample, so that the fraction is approximate, with stratify exact; in arrays, the seed and the number of samples decide, "
             "and the fraction is exact"},
    {"data.valid_seed", GT_T_INT, AT(data.valid_seed), "-1", -1, INFINITY,
     .help = "seed that decides which samples are in the split \"valid\"; -1: the key seed; results of runs with several seeds can be "
             "compared only if data.valid_seed is set"},
    {"data.stratify", GT_T_BOOL, AT(data.stratify), "false",
     .help = "take the fraction `valid` of every class, rounded to whole samples; every class has a sample in train, and also a "
             "sample in valid if its fraction is at least half a sample; a resumed run keeps its split, and divides new samples "
             "without regard to classes"},
    {"data.mean", GT_T_FLOATS, AT(data.mean), "[]",
     .help = "mean that is subtracted from the pixels, whose values are 0..1; one value for all channels or one per channel; []: 0"},
    {"data.std", GT_T_FLOATS, AT(data.std), "[]", 0, INFINITY, GT_R_ABOVE,
     .help = "standard deviation by which pixels minus mean are divided; one value for all channels or one per channel; []: 1"},
    {"data.classes", GT_T_INT, AT(data.classes), "0", 0, 1 << 20,
     .help = "number of classes; 0: the known number of the dataset, else counted from the labels"},
    {"data.samples", GT_T_INT, AT(data.samples), "0", 0, 1 << 30, .help = "number of training samples of synthetic data"},
    {"data.samples_test", GT_T_INT, AT(data.samples_test), "0", 0, 1 << 30, .help = "number of test samples of synthetic data"},
    {"data.limit", GT_T_INT, AT(data.limit), "0", 0, INFINITY,
     .help = "maximum number of samples that are used from each split: the first samples, or in folders and tables samples at equal "
             "distances; 0: all"},
    {"data.prefetch", GT_T_INT, AT(data.prefetch), "-1", -1, 64,
     .help = "number of batches that a thread prepares in advance; 0: no batches; -1: chosen for this machine"},
    {"data.on_error", GT_T_ENUM, AT(data.on_error), "\"stop\"", .values = "stop|skip",
     .help = "what to do with bad data: an image file that cannot be read or decoded, a text that is not UTF-8 or has no tokens, a table "
             "row that cannot be read or has no target, or a cell without a number in a numeric column; stop: the run ends with an error; "
             "skip: the image is excluded from loss and scores, but counts as a file of its split, a text or row is dropped before the "
             "samples get indices, the cell counts as missing, and a warning at the end of the epoch names each image and text, and the "
             "first row or cell of each kind and their count; damage in a part of a JPEG file that the crop leaves out is not noticed"},
    {"data.index", GT_T_ENUM, AT(data.index), "\"auto\"", .values = "auto|always|never", .when = "data.format",
     .is = "auto|csv|folder|list|pattern",
     .help = "whether an index file in the user's cache saves the next command from reading unchanged data again; of a table, the "
             "converted rows of each split, for the same files and the same keys; of images in files, the hash of each file's content, "
             "which checkpoints store; the command that reads a table keeps its rows in temporary files beside the index, so that a table "
             "may be larger than memory, if the cache is on ext4, XFS or overlayfs; auto: if the files of a table's split have 256 MiB or "
             "more, or if a split has 20000 images or more"},
    {"data.gpu_transforms", GT_T_BOOL, AT(data.gpu_transforms), "true",
     .help = "if the device is a GPU, let the GPU apply flips, pad_crop, color_jitter, grayscale and random_erasing at the end of the list "
             "of transforms when it gathers a batch, unless samples are mixed; the GPU also applies a random_resized_crop, or a resize "
             "with or without a center_crop, if nothing else comes before these transforms; the pixels are the same; decoded batches take "
             "three times the memory if the GPU resizes; false: host threads apply all transforms"},
    {"data.workers", GT_T_INT, AT(data.workers), "0", 0, 1024,
     .help = "number of threads per rank that read samples which are not in memory; 0: one for each thread of the device; in addition to "
             "the decoded batches, each thread keeps buffers of at most 32 MiB"},
    {"data.tokenizer", GT_T_ENUM, AT(data.text.tokenizer), "\"words\"", .values = "words|bytes|wordpiece", TEXT,
     .help = "how a text is split into tokens; words: words and punctuation, in lower case, with a vocabulary of the training split; "
             "bytes: the bytes of the text's UTF-8; wordpiece: pieces of words, from the vocabulary of a published BERT model; [SEP] or "
             "[MASK] in a text is read as punctuation and a word, not as a special token as in the library tokenizers"},
    {"data.max_tokens", GT_T_INT, AT(data.text.max_tokens), "512", 1, 32768, TEXT,
     .help = "maximum number of tokens of a text; longer texts are truncated at their end"},
    {"data.min_freq", GT_T_INT, AT(data.text.min_freq), "3", 1, 1 << 30, WORDS,
     .help = "minimum number of occurrences in the training split; rarer words are not in the vocabulary"},
    {"data.max_vocab", GT_T_INT, AT(data.text.max_vocab), "60000", 3, 1 << 24, WORDS,
     .help = "maximum number of tokens in the vocabulary, which keeps the most frequent words"},
    {"data.vocab", GT_T_STRING, AT(data.text.vocab), "\"\"", .when = "data.tokenizer", .is = "wordpiece",
     .help = "path of the file vocab.txt of a published BERT model (uncased), relative to the config's directory"},
    {"data.ngrams", GT_T_INT, AT(data.text.ngrams), "1", 1, 8, WORDS,
     .help = "length of the longest n-grams, in words; n-grams are appended as tokens after the tokens of the text, for an embedding_bag; "
             "1: no n-grams"},
    {"data.hash_buckets", GT_T_INT, AT(data.text.hash_buckets), "0", 0, 1 << 30, WORDS,
     .help = "number of hash buckets: an n-gram's hash selects its token from this many tokens; 0: 1048576 if ngrams > 1"},
    {"data.lengths", GT_T_FLOATS, AT(data.lengths), "[]", 1, 65536,
     .help = "lengths to which batches of token sequences are padded, at most 8 integers in ascending order; a batch is padded to the "
             "first length that fits its longest sequence, and each length has its own plan; []: chosen from the lengths in the training "
             "split"},
    {"data.buckets", GT_T_INT, AT(data.buckets), "-1", -1, 1 << 20,
     .help = "number of batches whose token sequences are sorted by length together, so that the sequences of a batch have similar "
             "lengths; the batches are then in a random order that depends on seed and epoch; 0: no sorting; -1: 50, or 0 if sampler is "
             "not gtrain"},
    {"data.augment", GT_T_OTHER, .values = "list", .entries = gt_rows_augment, .def = "[]",
     .help = "list of augmentations for training images, applied in the order of the list"},

    {"model.input", GT_T_DIMS, AT(model.input), "(model.inputs)", 1, 65536,
     .help = "shape of a sample: [channels, height, width] of an image, or [features]; either this key or model.inputs is required"},
    {"model.inputs", GT_T_OTHER, .values = "list", .entries = gt_rows_input, .def = "[]",
     .help = "list of inputs, if the model has several inputs or an input that is not an image; layers name the inputs in their key in"},
    {"model.init", GT_T_ENUM, AT(model.init), "\"torch-default\"",
     .values = GT_INIT_WORDS,
     .help = "distribution of the initial weights; torch-default: PyTorch's distributions with gtrain's random generator; torch: exactly "
             "PyTorch's values for the same seed"},
    {"model.blocks", GT_T_OTHER, .values = "group", .def = "{ }", .help = "templates of layers, which entries of model.layers instantiate"},
    {"model.layers", GT_T_OTHER, .values = "list", .flags = GT_R_REQUIRED, .help = "list of the model's layers"},
    {"model.pretrained.file", GT_T_STRING, AT(pretrained.file), "\"\"",
     .help = "safetensors file, file of torch.save with a state dict, or name of weights from gtrain fetch; the path is relative to the "
             "config's directory; a new run loads every tensor whose name the model also has, and all other tensors keep the values of "
             "init; a resumed run does not read the file; \"\": no file"},
    {"model.pretrained.map", GT_T_OTHER, .values = "list", .entries = gt_rows_rename, .def = "[]",
     .help = "list of names that differ between the file and the model; the first entry that matches a name is used; names that no entry "
             "matches are the same in both"},

    {"train.epochs", GT_T_INT, AT(train.epochs), "0", 0, 1 << 30,
     .help = "number of passes over the training split; 0: only train.steps ends the run"},
    {"train.steps", GT_T_INT, AT(train.steps), "0", 0, INFINITY,
     .help = "number of optimizer steps after which the run ends, also if train.epochs is larger; 0: only train.epochs ends the run"},
    {"train.loss", GT_T_CHOICE, AT(train.loss), "\"cross_entropy\"", .values = LOSS_WORDS,
     .help = "loss function that training minimises; losses that compare outputs with values replace a label by its one-hot "
             "vector" LOSS_HELP}, GT_LOSS_KEYS(LOSS_ROW)
    {"train.class_weights", GT_T_WEIGHTS, AT(train.class_weights), "[]", 0, INFINITY, LOSSES(weights_classes),
     .beside = "bce has train.pos_weight",
     .help = "weight of the samples of each class; the mean loss is divided by the sum of its samples' weights; []: 1; \"auto\": n / (k c) "
             "for a class with c of the training split's n samples, where k is the number of classes"},
    {"train.pos_weight", GT_T_FLOATS, AT(train.pos_weight), "[]", 0, INFINITY, LOSSES(weights_outputs),
     .beside = "cross_entropy and nll have train.class_weights",
     .help = "for each output, the weight of targets that are 1; []: 1"},
    {"train.ignore_index", GT_T_INT, AT(train.ignore_index), "-100", -(1 << 30), 1 << 30, LOSSES(gt_loss_has_classes),
     .help = "samples with this label are ignored; a batch without other samples has loss 0 and gradient 0, where PyTorch has NaN"},
    {"train.accumulate", GT_T_INT, AT(train.accumulate), "1", 1, 1 << 20,
     .help = "number of micro-batches into which the batch of an optimizer step is divided to save memory; the update is the same as with "
             "the whole batch"},
    {"train.recompute", GT_T_ENUM, AT(train.recompute), "\"none\"", .values = "none|cheap",
     .help = "which activations the backward pass computes again, so that they are not kept in memory; cheap: outputs of normalisations "
             "and activation functions, which cost no more than reading their operands; each layer has a key recompute too"},
    {"train.clip_norm", GT_T_FLOAT, AT(train.clip_norm), "0.0", 0, INFINITY,
     .help = "maximum global norm of the gradient; larger gradients are scaled down to this norm; 0: no clipping"},
    {"train.clip_value", GT_T_FLOAT, AT(train.clip_value), "0.0", 0, INFINITY,
     .help = "maximum magnitude of each gradient element; larger elements are set to this magnitude; 0: no clipping"},
    {"train.layer_decay", GT_T_FLOAT, AT(train.layer_decay), "1.0", 0, 1, GT_R_ABOVE,
     .help = "factor by which the learning rate falls with each block from the end of the model to its start, so that early layers learn "
             "more slowly: the last block has lr, the block before it lr * layer_decay, and so on; consecutive layers whose names have the "
             "same part before the first dot form a block, and a normalisation belongs to the block before it"},
    {"train.eval_every_epochs", GT_T_INT, AT(train.eval_every_epochs), "1", 0, 1 << 30,
     .help = "number of epochs between evaluations; 0: only at the end"},
    {"train.eval_every_steps", GT_T_INT, AT(train.eval_every_steps), "0", 0, INFINITY,
     .help = "number of optimizer steps between evaluations; 0: step counts cause no evaluation"},
    {"train.groups", GT_T_OTHER, .values = "list", .entries = gt_rows_group, .def = "[]",
     .help = "list of groups of parameters that have their own optimizer or schedule"},

    OPTIMIZER_ROWS("train.optimizer.", AT_OPTIMIZER)
    SCHEDULE_ROWS("train.schedule.", AT_SCHEDULE)

    {"train.early_stop.metric", GT_T_CHOICE, AT(train.early_stop.metric), "\"\"", .values = GT_METRICS_EVALUATED,
     .help = "metric that ends the run early when it no longer improves; " GT_METRICS_DIRECTION "; \"\": none"},
    {"train.early_stop.patience", GT_T_INT, AT(train.early_stop.patience), "10", 1, 1 << 30,
     .help = "number of consecutive evaluations without an improvement after which the run ends"},
    {"train.early_stop.min_delta", GT_T_FLOAT, AT(train.early_stop.min_delta), "0.0", 0, INFINITY,
     .help = "smallest change of the metric that counts as an improvement"},

    {"train.ema.decay", GT_T_FLOAT, AT(train.ema.decay), "0.0", 0, 1, GT_R_BELOW,
     .help = "decay of an exponential moving average of the trainable parameters: average = decay * average + (1 - decay) * parameters "
             "after every step; evaluations use the average, and checkpoints store the average as the model; buffers are not averaged; 0: "
             "no average"},
    {"train.ema.warmup", GT_T_BOOL, AT(train.ema.warmup), "false",
     .help = "begin with a smaller decay of the average: min(decay, 1 - t^-0.7) at step t"},

    {"train.loss_scale.dynamic", GT_T_BOOL, AT(train.loss_scale.dynamic), "true", FP16,
     .help = "decrease the loss scale when gradients overflow, increase it after interval steps without an overflow; false: the scale "
             "stays at init"},
    {"train.loss_scale.init", GT_T_FLOAT, AT(train.loss_scale.init), "65536.0", 0, 1.0e38, GT_R_ABOVE, FP16, .help = "initial scale"},
    {"train.loss_scale.growth", GT_T_FLOAT, AT(train.loss_scale.growth), "2.0", 1, 1.0e6, GT_R_ABOVE, FP16,
     .help = "factor by which the loss scale grows after interval steps without an overflow"},
    {"train.loss_scale.backoff", GT_T_FLOAT, AT(train.loss_scale.backoff), "0.5", 0, 1, GT_R_ABOVE | GT_R_BELOW, FP16,
     .help = "factor by which the loss scale is multiplied after an overflow"},
    {"train.loss_scale.interval", GT_T_INT, AT(train.loss_scale.interval), "2000", 1, 1 << 30, FP16,
     .help = "number of steps without an overflow after which the loss scale grows"},

    {"eval.tta", GT_T_ENUM, AT(eval.tta), "\"none\"", .values = "none|mirror|mirror_translate",
     .help = "test-time augmentation; mirror: average the logits of an image and its mirror image; mirror_translate: average also the "
             "logits of copies shifted by one pixel"},
    {"eval.transforms", GT_T_OTHER, .values = "list", .def = "[]",
     .help = "list of transforms of images for evaluation and prediction, as in data.augment; training images get these transforms before "
             "data.augment, unless data.augment determines the size; []: for images from files, resize to 8/7 of model.input and "
             "center_crop (only resize if model.input is not square), else no transforms"},

    {"parallel.mode", GT_T_ENUM, AT(parallel.mode), "\"single\"", .values = GT_MODE_WORDS,
     .help = "how ranks share the work; single: there is one rank; dp: ranks are threads of one process, like torch.nn.DataParallel; ddp: "
             "ranks are processes, each with the whole model and a part of every batch, like DistributedDataParallel; zero: like ddp, and "
             "state is sharded over the ranks as stage sets, like ZeroRedundancyOptimizer; pipe: each rank has a part of the layers, like "
             "torch.distributed.pipelining"},
    {"parallel.nproc", GT_T_AUTO, AT(parallel.nproc), "\"auto\"", 0, 65536, MODE(GT_MODE_WORDS_OF_RANKS),
     .help = "number of ranks on each host; \"auto\": one rank per GPU, or on CPUs one rank per NUMA node"},
    {"parallel.stage", GT_T_INT, AT(parallel.stage), "1", 1, 3, MODE("zero"),
     .help = "state that is sharded over the ranks; 1: optimizer state; 2: also gradients; 3: also parameters"},
    {"parallel.chunks", GT_T_INT, AT(parallel.chunks), "4", 1, 65536, MODE("pipe"),
     .help = "number of micro-batches into which a batch is divided for the pipeline"},
    {"parallel.replicas", GT_T_INT, AT(parallel.replicas), "1", 1, 65536, MODE("pipe"),
     .help = "number of data-parallel copies of the pipeline"},
    {"parallel.across", GT_T_ENUM, AT(parallel.across), "\"ddp\"", .values = "ddp|zero", MODE("pipe"),
     .help = "how copies of the pipeline share the work; ddp: gradients are summed; zero: also, the optimizer state of a stage is sharded "
             "over the copies"},
    {"parallel.schedule", GT_T_ENUM, AT(parallel.schedule), "\"1f1b\"", .values = "gpipe|1f1b|interleaved|zero-bubble", MODE("pipe"),
     .help = "order of the forward and backward passes of micro-batches on a stage"},
    {"parallel.virtual_stages", GT_T_INT, AT(parallel.virtual_stages), "2", 2, 64, .when = "parallel.schedule", .is = "interleaved",
     .help = "number of stages per rank; stages are assigned in turn: the first stage of every rank, then the second stage of every rank, "
             "and so on"},
    {"parallel.cuts", GT_T_STRINGS, AT(parallel.cuts), "[]", MODE("pipe"),
     .help = "names of the layers that begin the second and later stages; []: chosen so that the slowest stage is as fast as possible"},
    {"parallel.host_staged", GT_T_BOOL, AT(parallel.host_staged), "false", MODE(GT_MODE_WORDS_OF_RANKS),
     .help = "let GPUs communicate through host memory instead of NCCL; ranks that share a GPU always do"},
    {"parallel.shards", GT_T_INT, AT(parallel.shards), "8", 1, 1024, WORLD,
     .help = "number of virtual shards of a batch; the gradients of each shard are computed separately and summed in a fixed order; a "
             "power of two, and a multiple of every number of ranks that is used, which therefore is a power of two, too"},
    {"parallel.sync_bn", GT_T_BOOL, AT(parallel.sync_bn), "false", MODE(GT_MODE_WORDS_OF_PROCESSES),
     .help = "compute the batch statistics of batch normalisation over all ranks"},
    {"parallel.bucket_mb", GT_T_FLOAT, AT(parallel.bucket_mb), "25.0", 0, 4096, GT_R_ABOVE, MODE(GT_MODE_WORDS_OF_PROCESSES),
     .help = "size of a gradient bucket in MiB; the gradients of a bucket are reduced together"},
    {"parallel.compress", GT_T_ENUM, AT(parallel.compress), "\"none\"", .values = "none|bf16", MODE(GT_MODE_WORDS_OF_PROCESSES),
     .help = "type in which gradients are sent to other ranks; none: f32; bf16: half the bytes; each rank adds the rounding errors of a "
             "step to its gradients of the next step (error feedback)"},
    {"parallel.timeout", GT_T_FLOAT, AT(parallel.timeout), "30.0", 0, 1.0e6, GT_R_ABOVE, MODE(GT_MODE_WORDS_OF_PROCESSES),
     .help = "number of seconds that ranks wait for each other; a rank without progress for this time counts as lost; at the start, ranks "
             "on several hosts wait for at least 300 s"},

    {"checkpoint.dir", GT_T_STRING, AT(checkpoint.dir), "\"\"",
     .help = "directory of the run, for its checkpoints, metrics.jsonl and config.cfg; \"\": nothing is saved"},
    {"checkpoint.every_epochs", GT_T_INT, AT(checkpoint.every_epochs), "1", 0, 1 << 30,
     .help = "number of epochs between checkpoints; 0: epochs cause no checkpoint"},
    {"checkpoint.every_steps", GT_T_INT, AT(checkpoint.every_steps), "0", 0, INFINITY,
     .help = "number of optimizer steps between checkpoints; 0: step counts cause no checkpoint"},
    {"checkpoint.every_minutes", GT_T_FLOAT, AT(checkpoint.every_minutes), "0.0", 0, INFINITY,
     .help = "minutes between checkpoints; 0: time causes no checkpoint"},
    {"checkpoint.keep", GT_T_INT, AT(checkpoint.keep), "3", 1, 1 << 30,
     .help = "number of newest checkpoints that are kept; the best checkpoint is kept too"},
    {"checkpoint.best.metric", GT_T_CHOICE, AT(checkpoint.best_metric), "\"\"",
     .values = GT_METRICS_EVALUATED GT_METRICS_TRAINED,
     .help = "metric that determines the best checkpoint; \"\": no checkpoint is kept as the best; scores of numeric targets have the unit "
             "of the target and, with several targets, are means over the targets; train: metrics of the training steps of an "
             "epoch" GT_SCORES(HELP_OF_SCORE)},
    {"checkpoint.best.mode", GT_T_ENUM, AT(checkpoint.best_mode), "(\"min\" for losses and errors, else \"max\")", .values = "max|min",
     .help = "whether the largest or the smallest value of the metric is the best"},
    {"checkpoint.on_signal", GT_T_BOOL, AT(checkpoint.on_signal), "true",
     .help = "save a checkpoint when SIGTERM, SIGINT or SIGUSR1 ends the run"},

    {"log.every_steps", GT_T_INT, AT(log.every_steps), "50", 1, 1 << 30,
     .help = "number of steps between lines about training in metrics.jsonl; steps at which the learning rate changes its course "
             "also have lines"},
    {"log.tensorboard", GT_T_BOOL, AT(log.tensorboard), "false", .help = "write TensorBoard event files too"},
    {"log.report", GT_T_BOOL, AT(log.report), "false",
     .help = "when the run is complete, write a page about the run to report.html in its directory, as gtrain report does"},
    {"log.histograms", GT_T_INT, AT(log.histograms), "0", 0, 1 << 30,
     .help = "number of epochs between histograms of the weights in TensorBoard's event files, if log.tensorboard = true; 0: no "
             "histograms"},
    {"log.images", GT_T_INT, AT(log.images), "0", 0, 100,
     .help = "number of images in TensorBoard's event files after each evaluation, if log.tensorboard = true: the most confident mistakes "
             "in the split valid or, without the split valid, in the split test; for numbers, the largest errors; 0: no images"},
    {"log.command", GT_T_STRING, AT(log.command), "\"\"",
     .help = "shell command that reads each line of metrics.jsonl on its standard input during training, such as \"./log.sh\"; a relative "
             "path of the program is relative to the directory of the config, and the files that the command names are relative to the "
             "working directory; rank 0 starts the command when the run starts or resumes, and sets GTRAIN_RUN_DIR to the run's "
             "directory; a command that is slow or fails does not delay training, and at its end the run waits at most 30 s for the "
             "command; \"\": no command"},
    {"log.mlflow.uri", GT_T_STRING, AT(log.mlflow.uri), "\"\"",
     .help = "address of an MLflow server, such as \"http://127.0.0.1:5000\"; gtrain sends the run to the server during training; the "
             "credentials are the environment variables MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD; a "
             "server that is slow or does not answer does not delay training; at its end the run waits at most 30 s for the server, and "
             "`gtrain track` sends the rest later; \"\": no server"},
    {"log.mlflow.experiment", GT_T_STRING, AT(log.mlflow.experiment), "\"Default\"",
     .help = "MLflow experiment to which the run belongs; gtrain creates the experiment if the server does not have it"},
    {"log.mlflow.artifacts", GT_T_BOOL, AT(log.mlflow.artifacts), "true",
     .help = "upload config.cfg, the report and, at the end, the best model to the MLflow server, if the server accepts artifacts by HTTP"},
    {NULL},
};

#define GROUP(member) .offset = offsetof(struct gt_conf_group, member)
const struct gt_row gt_rows_group[] = {
    {"match", GT_T_STRINGS, GROUP(match), NULL, .flags = GT_R_REQUIRED,
     .help = "patterns of parameter names with * and ?, such as \"*.conv?.weight\"; a parameter belongs to the first group that matches "
             "its name"},
    {"frozen", GT_T_BOOL, GROUP(frozen), "false", .help = "do not train these parameters"},
    {"frozen_stats", GT_T_BOOL, GROUP(frozen_stats), "false",
     .help = "in training, batch normalisations whose weight and bias the group matches use their running statistics and do not update "
             "them, as in PyTorch's eval(); without this key, frozen batch normalisations update their running statistics, as in PyTorch's "
             "train()"},
    {"frozen_until", GT_T_FLOAT, GROUP(frozen_until), "0.0", 0, INFINITY,
     .help = "number of epochs at the beginning of the run in which these parameters are not trained; in these epochs, batch "
             "normalisations whose weight and bias the group matches use their running statistics and do not update them, and layers "
             "before the first trainable parameter need no backward pass; 0: no epochs"},
    {"freeze_after", GT_T_FLOAT, GROUP(freeze_after), "0.0", 0, INFINITY,
     .help = "number of epochs after which these parameters are no longer trained: the parameters and their optimizer state no longer "
             "change, their gradients are not computed and do not count for train.clip_norm, and layers before the first trainable "
             "parameter need no backward pass; batch normalisations still update their running statistics; 0: never"},
    {"lr_mul", GT_T_FLOAT, GROUP(lr_mul), "1.0", 0, INFINITY, .help = "factor by which the learning rate is multiplied, in addition to "
                                                                      "lr_mul of a layer"},
    {"weight_decay", GT_T_FLOAT, GROUP(weight_decay), "(the optimizer's)", 0, INFINITY,
     .help = "weight decay of these parameters, instead of the optimizer's; weight_decay of a layer takes precedence"},
    {"optimizer", GT_T_OTHER, .values = "group", .def = "(train.optimizer)", .help = "a group with the keys of train.optimizer"},
    {"schedule", GT_T_OTHER, .values = "group", .def = "(train.schedule)", .help = "a group with the keys of train.schedule"},
    {NULL},
};
#define OPTIMIZER(member) .offset = offsetof(struct gt_conf_optimizer, member)
#define SCHEDULE(member) .offset = offsetof(struct gt_conf_schedule, member)
const struct gt_row gt_rows_optimizer[] = {OPTIMIZER_ROWS("", OPTIMIZER){NULL}};
const struct gt_row gt_rows_schedule[] = {SCHEDULE_ROWS("", SCHEDULE){NULL}};

const struct gt_schedule_row gt_schedule_rows[GT_SCHED_COUNT] = {
#define GT_X(NAME, name, is_counted, words, help, ...) \
	[GT_SCHED_##NAME] = {.word = #name, .counted = is_counted, .also = words, .key = {__VA_ARGS__}},
    GT_SCHEDULES(GT_X)
#undef GT_X
};
