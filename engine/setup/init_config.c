/* `gtrain init`: examines a folder of images, and writes a config that trains on it. init_table.c does the same for tables, init_text.c for
 * texts.
 *
 *     look: format, splits, classes, sizes of images  -->  choose: input, batch, epochs, network  -->  write the text */
#include "base/arena.h"
#include "base/shell_word.h"
#include "conf/conf_string.h"
#include "dataset.h"
#include "gtrain_data.h"
#include "image/transform.h"
#include "missing_files.h"
#include "numpy_images.h"
#include "setup/init_found.h"
#include "setup/init_pretrained.h"
#include "setup/init_spec.h"
#include "setup/init_table.h"
#include "setup/init_template.h"
#include "setup/init_text.h"
#include "source.h"
#include "source_contents.h"
#include "verify_files.h"
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

enum {
	DECODED = 5000  /* number of training images above which only the headers of image files are read */
};

/* Properties of the data. */
struct look {
	const struct gt_init_spec *spec;
	struct gt_init_names names;
	const char *root;         /* path of the data, for reading and for messages */
	struct gt_dataset train;  /* the training split without unreadable files */
	int64_t bad;              /* number of files of all splits that cannot be read */
	int64_t valid, test;      /* number of samples of these splits; 0: no such split */
	bool files;               /* images are encoded files */
	bool numpy, numpy_test;   /* numpy: the images are arrays of an .npz file; numpy_test: the file has a test split */
	int64_t c, side;          /* c: channels of an image; side: median of the shorter sides of the images in pixels */
	int64_t smallest_class;   /* number of samples of the rarest class */
	/* mean and standard deviation of each channel, for pixels in 0 ... 1; for image files, the values of ImageNet */
	double mean[3], std[3];
};

/* The values that `gtrain init` has chosen for the config. */
struct choice {
	/* input: channels, height and width of the model's input; width: number of channels of the network's first stage */
	int64_t input[3], batch, epochs, width;
	int blocks[4];
	bool bottleneck, imagenet_stem;
	bool pretrained;        /* true: the config begins with published weights; false: with initial weights, and `network` is empty */
	struct gt_init_network network;
	const char *model;      /* text of the model for a network other than a ResNet; "": a ResNet */
};

/* Removes the unreadable files from a split. */
static enum gt_code drop_bad_files(struct look *l, struct gt_dataset *d, struct gt_verified *v, struct gt_err *err)
{
	for (int64_t i = 0; i < v->n; i++) {
		if (!v->why[i])
			continue;
		if (l->bad++ < GT_INIT_LISTED)
			gt_init_warn(l->spec, v->why[i]);
		if (v->bad == v->n)
			return gt_fail(err, GT_EDATA, "%.300s: none of %lld images can be read; the first: %.600s", l->root, (long long)v->n,
			               v->why[i]);
	}
	gt_source_drop(d->source, v);
	d->n = d->source->n;
	for (int64_t i = 0; i < d->n; i++)
		d->labels[i] = d->source->file[i].label;
	return GT_OK;
}

/* Sets size and channels of the images from the training split. */
static enum gt_code measure_files(struct look *l, const struct gt_verified *v, struct gt_err *err)
{
	int64_t *side = malloc((size_t)(v->n + 1) * sizeof *side);
	if (!side)
		return gt_fail_memory(err, (size_t)v->n * sizeof *side);
	l->c = 1;
	for (int64_t i = 0; i < v->n; i++) {
		side[i] = v->shape[i].h < v->shape[i].w ? v->shape[i].h : v->shape[i].w;
		l->c = v->shape[i].c > l->c ? v->shape[i].c : l->c;
	}
	gt_init_sort(side, v->n);
	l->side = side[v->n / 2];
	free(side);
	for (int i = 0; i < 3; i++) {
		l->mean[i] = l->c == 1 ? 0.5 : (double[]){0.485, 0.456, 0.406}[i];
		l->std[i] = l->c == 1 ? 0.25 : (double[]){0.229, 0.224, 0.225}[i];
	}
	return GT_OK;
}

/* Makes the index of the contents of a large split, so that the first run does not read all files again. */
static void index_contents(const struct look *l, struct gt_dataset *d)
{
	char note[700];
	if (d->n < GT_CONTENTS_LARGE)
		return;
	gt_source_contents(d->source, d->mark, d->n, true, note, sizeof note);
	if (*note)
		gt_init_warn(l->spec, note);
}

/* Checks all files of a split. */
static enum gt_code verify_split(struct look *l, struct gt_dataset *d, struct gt_err *err)
{
	struct gt_verified v;
	GT_TRY(gt_source_verify(d->source, l->train.n + l->bad <= DECODED, &v, err));
	index_contents(l, d);
	enum gt_code code = drop_bad_files(l, d, &v, err);
	if (code == GT_OK && d == &l->train)
		code = measure_files(l, &v, err);
	gt_verified_free(&v);
	return code;
}

/* Computes mean and standard deviation of the pixels of an array for each channel. */
static void measure_array(struct look *l)
{
	const struct gt_dataset *d = &l->train;
	int64_t n = d->n < 10000 ? d->n : 10000, pixels = d->h * d->w;
	l->c = d->c;
	l->side = d->h < d->w ? d->h : d->w;
	for (int64_t k = 0; k < d->c && k < 3; k++) {
		double sum = 0, squares = 0, count = (double)(n * pixels);
		for (int64_t i = 0; i < n * pixels; i++) {
			double v = d->images[i * d->c + k] / 255.0;
			sum += v;
			squares += v * v;
		}
		l->mean[k] = sum / count;
		l->std[k] = sqrt(fmax(squares / count - l->mean[k] * l->mean[k], 1e-6));
	}
}

/* Finds the smallest class. With files, a sample that is the only sample of its class is used for training (exec/split_samples.h). */
static enum gt_code count_classes(struct look *l, struct gt_err *err)
{
	const struct gt_dataset *d = &l->train;
	int64_t largest = 0;
	int64_t *count = calloc((size_t)d->classes + 1, sizeof *count);
	if (!count)
		return gt_fail_memory(err, (size_t)d->classes * sizeof *count);
	for (int64_t i = 0; i < d->n; i++)
		count[d->labels[i]]++;
	l->smallest_class = d->n;
	for (int64_t k = 0; k < d->classes; k++) {
		l->smallest_class = count[k] < l->smallest_class ? count[k] : l->smallest_class;
		largest = count[k] > largest ? count[k] : largest;
	}
	free(count);
	return l->files && !l->valid && !l->test && largest == 1 ? gt_init_one_each(l->root, d->n, "image", err) : GT_OK;
}

/* Reads the other splits of the data, and counts their samples. */
static enum gt_code inspect_other_splits(struct look *l, const struct gt_dataset_spec *data, struct gt_err *err)
{
	for (int i = GT_VALID; i <= GT_TEST; i++) {
		struct gt_dataset other;
		struct gt_err why = {0};
		enum gt_code code = (l->files ? gt_dataset_read : gt_dataset_probe)(data, (enum gt_split)i, &other, &why);
		if (code == GT_OK && l->files && other.n)
			code = verify_split(l, &other, &why);
		*(i == GT_VALID ? &l->valid : &l->test) = code == GT_OK ? other.n : 0;
		gt_dataset_free(&other);
		if (code == GT_OK || code == GT_ENOINPUT)
			continue;
		return gt_fail_copy(err, &why);
	}
	return GT_OK;
}

/* Prints warnings about data that is skipped for other reasons than that a file cannot be read. */
static void warn_of_left_out(struct look *l)
{
	struct gt_init_found found;
	char text[1000];
	gt_init_warn_of_more(l->spec, l->bad, "image");
	if (*l->train.left_out) {
		snprintf(text, sizeof text, "%.300s: these folders have no images and are not used as classes: %s", l->root, l->train.left_out);
		gt_init_warn(l->spec, text);
	}
	gt_init_find(l->root, &found);
	if (found.foreign) {
		gt_init_foreign_text(l->root, &found, text, sizeof text);
		gt_init_warn(l->spec, text);
	}
}

/* Warns if a file of the test split is missing, such as the labels of its images. */
static void warn_of_missing(const struct look *l)
{
	char text[1000], more[1100];
	if (l->numpy || !gt_missing_files(l->root, GT_TEST, text, sizeof text))
		return;
	snprintf(more, sizeof more, "%s, so the config has no test split", text);
	gt_init_warn(l->spec, more);
}

static enum gt_code inspect_data(struct look *l, struct gt_err *err)
{
	struct gt_dataset_spec data = {.root = l->root};
	if (l->numpy)
		data = (struct gt_dataset_spec){.format = "numpy", .train = &l->root, .ntrain = 1, .test = &l->root, .ntest = l->numpy_test};
	enum gt_code code = gt_dataset_read(&data, GT_TRAIN, &l->train, err);
	if (code == GT_ENOINPUT)
		return gt_init_nothing(l->root, err);
	GT_TRY(code);
	l->files = l->train.encoded;
	if (l->files)
		GT_TRY(verify_split(l, &l->train, err));
	else
		measure_array(l);
	GT_TRY(inspect_other_splits(l, &data, err));
	if (l->files)
		warn_of_left_out(l);
	else
		warn_of_missing(l);
	if (l->c != 1 && l->c != 3)
		return gt_fail(err, GT_EDATA, "%s: expected images with 1 or 3 channels, got %lld", l->root, (long long)l->c);
	if (!l->valid && !l->test && l->train.n < GT_INIT_LEAST)
		return gt_init_too_few(l->root, l->train.n, "image", err);
	return count_classes(l, err);
}

static void choose_settings(const struct look *l, struct choice *c)
{
	static const int64_t sides[] = {224, 192, 160, 128, 96, 64, 48, 32};
	int64_t n = l->train.n, side = l->side;
	if (l->files) {
		side = 32;
		for (size_t i = 0; i < sizeof sides / sizeof *sides && side == 32; i++)
			if (l->side >= sides[i])
				side = sides[i];
		/* Training from scratch on a few thousand images does not profit from more pixels. */
		if (!c->pretrained && n < 20000 && side > 128)
			side = 128;
	}
	if (l->files && c->network.side)
		side = c->network.side;
	c->input[0] = c->pretrained ? 3 : l->c;
	c->input[1] = l->files ? side : l->train.h;
	c->input[2] = l->files ? side : l->train.w;
	c->imagenet_stem = c->pretrained || side >= 64;
	if (!c->pretrained) {
		int resnet18[4] = {2, 2, 2, 2};
		memcpy(c->blocks, resnet18, sizeof resnet18);
		c->width = n < 5000 || !c->imagenet_stem ? 32 : 64;
	} else {
		memcpy(c->blocks, c->network.blocks, sizeof c->blocks);
		c->bottleneck = c->network.bottleneck;
		c->width = 64;
	}
	c->batch = n < 8 ? n : n < 40 ? 8 : n < 1000 ? 16 : n < 20000 ? 64 : 128;
	/* Number of training samples that all epochs together use. A pretrained network needs fewer. */
	double shown = c->pretrained ? 30000 : 120000;
	c->epochs = (int64_t)fmin(fmax(round(shown / (double)n), 5), c->pretrained ? 20 : 60);
}

/* Writes the values of the channels as the elements of a list. */
static const char *print_channels(char *buf, size_t size, const double *v, int64_t n)
{
	size_t len = 0;
	for (int64_t i = 0; i < n; i++)
		len += (size_t)snprintf(buf + len, size - len, "%s%.4f", i ? ", " : "", v[i]);
	return buf;
}

static enum gt_code write_config(const struct look *l, const struct choice *c, char **text, struct gt_err *err)
{
	const struct gt_init_names *names = &l->names;
	const char *root = names->shown;
	char mean[100], std[100];
	const struct gt_init_network *n = &c->network;
	const double own_mean[3] = {n->mean, n->mean, n->mean}, own_std[3] = {n->std, n->std, n->std};
	int64_t w = c->width, out = c->bottleneck ? 4 * w : w;
	const struct gt_init_value values[] = {
	    GT_TEXT("CONFIG", names->config),
	    GT_TEXT("RUN", names->run),
	    GT_STRINGS("ROOT", &root, 1),
	    GT_NUMBER("NUMPY", l->numpy),
	    GT_NUMBER("SAMPLES", l->train.n),
	    GT_NUMBER("CLASSES", l->train.classes),
	    GT_NUMBER("RAREST", l->smallest_class),
	    GT_NUMBER("SPLITS", l->valid || l->test),
	    GT_NUMBER("VALID", l->valid),
	    GT_NUMBER("TEST", l->test),
	    GT_NUMBER("FILES", l->files),
	    GT_NUMBER("SIDE", l->side),
	    GT_NUMBER("BAD", l->bad),
	    GT_NUMBER("BATCH", c->batch),
	    GT_TEXT("MEAN", print_channels(mean, sizeof mean, n->std > 0 ? own_mean : l->mean, c->input[0])),
	    GT_TEXT("STD", print_channels(std, sizeof std, n->std > 0 ? own_std : l->std, c->input[0])),
	    GT_NUMBER("COLOR_ARRAY", !l->files && l->c == 3),
	    GT_NUMBER("CHANNELS", c->input[0]),
	    GT_NUMBER("HEIGHT", c->input[1]),
	    GT_NUMBER("WIDTH", c->input[2]),
	    GT_STRINGS("PRETRAINED", &c->network.file, c->pretrained),
	    GT_TEXT("MODEL", c->model),
	    GT_TEXT("NETWORK", c->network.name ? c->network.name : ""),
	    GT_TEXT("NETWORK_CONFIG", c->network.config ? c->network.config : ""),
	    GT_NUMBER("BOTTLENECK", c->bottleneck),
	    GT_NUMBER("IMAGENET_STEM", c->imagenet_stem),
	    GT_NUMBER("BLOCKS1", c->blocks[0]),
	    GT_NUMBER("BLOCKS2", c->blocks[1]),
	    GT_NUMBER("BLOCKS3", c->blocks[2]),
	    GT_NUMBER("BLOCKS4", c->blocks[3]),
	    GT_NUMBER("WIDTH1", w),
	    GT_NUMBER("WIDTH2", 2 * w),
	    GT_NUMBER("WIDTH3", 4 * w),
	    GT_NUMBER("WIDTH4", 8 * w),
	    GT_NUMBER("OUT1", out),
	    GT_NUMBER("OUT2", 2 * out),
	    GT_NUMBER("OUT3", 4 * out),
	    GT_NUMBER("OUT4", 8 * out),
	    GT_NUMBER("EPOCHS", c->epochs),
	    GT_TEXT("LR", c->pretrained ? c->network.lr : "2.0e-3"),
	    GT_TEXT("SPLIT", l->valid || !l->test ? "valid" : "test"),
	    GT_NUMBER("LOSS", 0),
	    {NULL}};
	return gt_init_template("images", values, text, err);
}

/* Rejects a path that cannot be written in a config. */
static enum gt_code check_path(const char *path, struct gt_err *err)
{
	const char *fault = gt_string_fault(path, strlen(path));
	return !fault ? GT_OK
	              : gt_fail(err, GT_EDATA, "%s: expected a path that a config can contain (UTF-8 text without control characters), got %s; "
	                        "rename the path", path, fault);
}

/* Returns whether a path is a file other than an archive: a table. */
static bool is_table(const char *path)
{
	return !gt_folder_is_source(path);
}

/* Writes a remedy: for an archive, the commands that unpack the archive into a folder beside it and call `gtrain init` again. stem: length
 * of the path without the file extension. */
static void unpack_text(const char *path, size_t stem, const char *remedy, char *out, size_t size)
{
	char file[400], dir[400], folder[PATH_MAX];
	size_t n = 0;
	snprintf(folder, sizeof folder, "%.*s", (int)stem, path);
	if (!strstr(remedy, "DIR")) {
		snprintf(out, size, "%s", remedy);
		return;
	}
	gt_shell_word(path, file, sizeof file);
	gt_shell_word(folder, dir, sizeof dir);
	n += (size_t)snprintf(out, size, "unpack the archive: ");
	for (const char *p = remedy; *p && n + 1 < size;) {
		const char *word = !strncmp(p, "FILE", 4) ? file : !strncmp(p, "DIR", 3) ? dir : NULL;
		n += (size_t)snprintf(out + n, size - n, "%.*s", word ? (int)strlen(word) : 1, word ? word : p);
		p += !word ? 1 : word == file ? 4 : 3;
	}
	if (n < size)
		snprintf(out + n, size - n, "; then `gtrain init %s`", dir);
}

/* Rejects files whose extension belongs to no format, because they would be treated as tables. */
static enum gt_code check_file(const char *path, struct gt_err *err)
{
	static const struct {
		/* end: extension of the file name; remedy: what to do, for an archive the command to unpack it, with the words FILE and DIR */
		const char *end, *remedy;
	} other[] = {
	    {".7z", "7z x FILE -oDIR"}, {".rar", "unrar x FILE DIR/"},
	    {".jpg", "put the images of each class into a folder"}, {".jpeg", "put the images of each class into a folder"},
	    {".png", "put the images of each class into a folder"}, {".webp", "put the images of each class into a folder"},
	    {".xlsx", "export the table as CSV"}, {".xls", "export the table as CSV"}, {".ods", "export the table as CSV"},
	    {".parquet", "export the table as CSV"}, {".feather", "export the table as CSV"},
	    {".json", "write one JSON object on each line (.jsonl), for example with `jq -c '.[]'`"},
	    {".cfg", "this file seems to be a config already"}};
	size_t n = strlen(path);
	for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
		size_t end = strlen(other[i].end);
		char text[1000];
		if (n <= end || strcasecmp(path + n - end, other[i].end))
			continue;
		unpack_text(path, n - end, other[i].remedy, text, sizeof text);
		return gt_fail(err, GT_EDATA, "%.300s: expected a folder, an archive (.zip, .tar.gz, .tar) or a table; %s", path, text);
	}
	return GT_OK;
}

static enum gt_code init_table(const char *root, const struct gt_init_spec *spec, const struct gt_init_names *names, char **text,
                               struct gt_err *err)
{
	if (spec->pretrained)
		return gt_fail(err, GT_EUSAGE, "--pretrained: expected a folder of images as data, got the file %s", spec->path);
	for (int i = 0; i < spec->ntargets; i++)
		if (gt_string_fault(spec->targets[i], strlen(spec->targets[i])))
			return gt_fail(err, GT_EUSAGE, "--target: expected the name of a column, got %s",
			               gt_string_fault(spec->targets[i], strlen(spec->targets[i])));
	return gt_init_table(root, names, spec, text, err);
}

/* Recognises the network of --pretrained, and sets c->model if it is not a ResNet. */
static enum gt_code choose_network(const struct look *l, struct choice *c, struct gt_arena *a, struct gt_err *err)
{
	const struct gt_init_network *n = &c->network;
	if (!l->files && l->c != 3) /* image files are always decoded to three channels, but arrays can have another number */
		return gt_fail(err, GT_EDATA, "--pretrained: expected images with 3 channels, because published networks need them, got arrays "
		               "with %lld", (long long)l->c);
	GT_TRY(gt_init_network(l->spec->pretrained, l->spec->out, a, &c->network, err));
	c->pretrained = true;
	choose_settings(l, c);
	if (n->side && (c->input[1] != n->side || c->input[2] != n->side))
		return gt_fail(err, GT_EDATA, "--pretrained: %s needs images of %lld x %lld, got arrays of %lld x %lld", n->name,
		               (long long)n->side, (long long)n->side, (long long)c->input[1], (long long)c->input[2]);
	return n->name ? gt_init_network_model(n, c->input[1], c->input[2], l->train.classes, a, &c->model, err) : GT_OK;
}

static enum gt_code choose_and_write(const struct look *l, struct gt_arena *a, char **text, struct gt_err *err)
{
	struct choice c = {.model = ""};
	if (l->spec->pretrained)
		GT_TRY(choose_network(l, &c, a, err));
	else
		choose_settings(l, &c);
	return write_config(l, &c, text, err);
}

static enum gt_code init_images(struct look *l, char **text, struct gt_err *err)
{
	struct gt_arena *a;
	if (l->spec->pretrained)
		GT_TRY(check_path(l->spec->pretrained, err));
	GT_TRY(inspect_data(l, err));
	GT_TRY(gt_arena_open(&a, err));
	enum gt_code code = choose_and_write(l, a, text, err);
	gt_arena_close(a);
	return code;
}

enum gt_code gt_init_config(const struct gt_init_spec *spec, char **text, struct gt_err *err)
{
	char root[PATH_MAX], path[PATH_MAX];
	*text = NULL;
	if (!realpath(spec->path, root))
		return errno == ENOENT ? gt_fail(err, GT_ENOINPUT, "%s: there is no such file or folder", spec->path)
		                       : gt_fail_errno(err, GT_ENOINPUT, errno, "%s: cannot open", spec->path);
	GT_TRY(check_path(root, err));
	size_t n = (size_t)snprintf(path, sizeof path, "%s", spec->path);
	/* removes slashes at the end, because file names in messages begin with this path */
	while (n > 1 && n < sizeof path && path[n - 1] == '/')
		path[--n] = 0;
	struct look l = {.spec = spec, .root = path};
	gt_init_names(spec, root, &l.names);
	GT_TRY(check_path(l.names.shown, err));
	l.numpy = gt_numpy_images_in(root, &l.numpy_test);
	if (is_table(root) && !l.numpy) {
		GT_TRY(check_file(path, err));
		return init_table(root, spec, &l.names, text, err);
	}
	if (spec->ntargets)
		return gt_fail(err, GT_EUSAGE, "--target: expected a table (a CSV file) as data, got the folder %s", path);
	if (!l.numpy && gt_init_is_text(path)) {
		if (spec->pretrained)
			return gt_fail(err, GT_EUSAGE, "--pretrained: expected a folder of images as data, got the texts in %s", path);
		return gt_init_text(path, spec, &l.names, text, err);
	}
	enum gt_code code = init_images(&l, text, err);
	gt_dataset_free(&l.train);
	return code;
}
