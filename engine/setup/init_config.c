/* `gtrain init`: looks at a folder of images, and writes a config that trains on it. init_table.c does so for tables,
 * and init_text.c for texts.
 *
 *     look: format, splits, classes, sizes of images  -->  choose: input, batch, epochs, network  -->  write the text */
#include "base/arena.h"
#include "base/memstream.h"
#include "conf/conf_string.h"
#include "dataset.h"
#include "gtrain_data.h"
#include "image/transform.h"
#include "source.h"
#include "store/safetensors.h"
#include "setup/init_checkpoint.h"
#include "setup/init_found.h"
#include "setup/init_spec.h"
#include "setup/init_table.h"
#include "setup/init_text.h"
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
	DECODED = 5000, /* maximum number of training images with which all images are decoded; with more, their headers are read */
	LISTED = 10,    /* maximum number of files that cannot be read of which the user is told one by one */
	LEAST = 10      /* minimum number of images of which a fifth is kept for evaluation */
};

/* What the data looks like. */
struct look {
	const struct gt_init_spec *spec;
	struct gt_init_names names;
	const char *root;         /* path, for reading and for messages */
	struct gt_dataset train;  /* of files, those that can be read */
	int64_t bad;              /* number of files of all splits that cannot be read */
	int64_t valid, test;      /* number of samples of these splits; 0: there is none */
	bool files;               /* images are encoded files */
	int64_t c, side;          /* channels; median of the shorter sides in pixels */
	int64_t smallest_class;   /* number of samples of the rarest class */
	double mean[3], std[3];   /* of the pixels, 0 ... 1; of files: those of ImageNet */
};

/* What the config says. */
struct choice {
	int64_t input[3], batch, epochs, width; /* width: channels of the first stage */
	int blocks[4];
	bool bottleneck, imagenet_stem;
	const char *pretrained; /* NULL: from scratch */
};

static int by_number(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static void emit_warning(const struct look *l, const char *text)
{
	if (l->spec->warn)
		l->spec->warn(l->spec->user, text);
}

/* Leaves out the files of a split that cannot be read. */
static enum gt_code drop_bad_files(struct look *l, struct gt_dataset *d, struct gt_verified *v, struct gt_err *err)
{
	for (int64_t i = 0; i < v->n; i++) {
		if (!v->why[i])
			continue;
		if (l->bad++ < LISTED)
			emit_warning(l, v->why[i]);
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

/* Takes the size of images and their channels from those of the training split. */
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
	qsort(side, (size_t)v->n, sizeof *side, by_number);
	l->side = side[v->n / 2];
	free(side);
	for (int i = 0; i < 3; i++) {
		l->mean[i] = l->c == 1 ? 0.5 : (double[]){0.485, 0.456, 0.406}[i];
		l->std[i] = l->c == 1 ? 0.25 : (double[]){0.229, 0.224, 0.225}[i];
	}
	return GT_OK;
}

/* Checks all files of a split. */
static enum gt_code verify_split(struct look *l, struct gt_dataset *d, struct gt_err *err)
{
	struct gt_verified v;
	GT_TRY(gt_source_verify(d->source, l->train.n + l->bad <= DECODED, &v, err));
	enum gt_code code = drop_bad_files(l, d, &v, err);
	if (code == GT_OK && d == &l->train)
		code = measure_files(l, &v, err);
	gt_verified_free(&v);
	return code;
}

/* Computes mean and standard deviation of the pixels of an array, by channel. */
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

/* Finds the smallest class. Of files, a class of one sample is trained whole (exec/split_samples.h). */
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

/* Reads the splits that the data has besides the training split, and counts their samples. */
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
		if (err)
			*err = why;
		return code;
	}
	return GT_OK;
}

/* Warns of what was left out, except for the files that cannot be read. */
static void warn_of_left_out(struct look *l)
{
	struct gt_init_found found;
	char text[1000];
	if (l->bad > LISTED) {
		snprintf(text, sizeof text, "%lld more images cannot be read", (long long)(l->bad - LISTED));
		emit_warning(l, text);
	}
	if (*l->train.left_out) {
		snprintf(text, sizeof text, "%.300s: these folders have no images and are no classes: %s", l->root, l->train.left_out);
		emit_warning(l, text);
	}
	gt_init_find(l->root, &found);
	if (found.foreign) {
		gt_init_foreign_text(l->root, &found, text, sizeof text);
		emit_warning(l, text);
	}
}

static enum gt_code inspect_data(struct look *l, struct gt_err *err)
{
	struct gt_dataset_spec data = {.root = l->root};
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
	if (l->c != 1 && l->c != 3)
		return gt_fail(err, GT_EDATA, "%s: expected images with 1 or 3 channels, got %lld", l->root, (long long)l->c);
	if (!l->valid && !l->test && l->train.n < LEAST)
		return gt_fail(err, GT_EDATA, "%.600s: expected at least %d images, of which a fifth is kept for evaluation, or a folder \"valid\" "
		               "or \"test\" beside \"train\", got %lld image%s", l->root, LEAST, (long long)l->train.n, l->train.n == 1 ? "" : "s");
	return count_classes(l, err);
}

/* Recognises a ResNet of torchvision by the names and shapes of its tensors. */
static enum gt_code read_pretrained(const char *path, struct choice *c, struct gt_err *err)
{
	struct gt_st_file *f;
	const struct gt_st_tensor *t;
	bool stem = false;
	GT_TRY(gt_st_open(path, &f, err));
	for (int i = 0; (t = gt_st_at(f, i)) != NULL; i++) {
		const char *name = !strncmp(t->name, "module.", 7) ? t->name + 7 : t->name;
		int stage, block, end = 0;
		stem |= !strcmp(name, "conv1.weight") && t->desc.rank == 4 && t->desc.dim[1] == 3 && t->desc.dim[2] == 7 && t->desc.dim[0] == 64;
		if (sscanf(name, "layer%d.%d.conv%n", &stage, &block, &end) == 2 && end && stage >= 1 && stage <= 4 && block >= 0 && block < 200) {
			if (block + 1 > c->blocks[stage - 1])
				c->blocks[stage - 1] = block + 1;
			c->bottleneck |= !strcmp(name + end, "3.weight");
		}
	}
	gt_st_close(f);
	if (!stem || !c->blocks[0] || !c->blocks[1] || !c->blocks[2] || !c->blocks[3])
		return gt_fail(err, GT_EDATA,
		               "%s: expected the weights of a ResNet of torchvision (conv1.weight, layer1.0.conv1.weight, …); write the model of "
		               "other weights by hand, and use model.pretrained",
		               path);
	c->pretrained = path;
	c->width = 64;
	return GT_OK;
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
		/* From scratch, a few thousand images do not repay the cost of more pixels. */
		if (!c->pretrained && n < 20000 && side > 128)
			side = 128;
	}
	c->input[0] = c->pretrained ? 3 : l->c;
	c->input[1] = l->files ? side : l->train.h;
	c->input[2] = l->files ? side : l->train.w;
	c->imagenet_stem = c->pretrained || side >= 64;
	if (!c->pretrained) {
		int resnet18[4] = {2, 2, 2, 2};
		memcpy(c->blocks, resnet18, sizeof resnet18);
		c->width = n < 5000 || !c->imagenet_stem ? 32 : 64;
	}
	c->batch = n < 8 ? n : n < 40 ? 8 : n < 1000 ? 16 : n < 20000 ? 64 : 128;
	/* Samples shown in a run: fewer with a pretrained network. */
	double shown = c->pretrained ? 30000 : 120000;
	c->epochs = (int64_t)fmin(fmax(round(shown / (double)n), 5), c->pretrained ? 20 : 60);
}

static void put_numbers(FILE *f, const char *key, const double *v, int64_t n)
{
	fprintf(f, "\t%s = [", key);
	for (int64_t i = 0; i < n; i++)
		fprintf(f, "%s%.4f", i ? ", " : "", v[i]);
	fprintf(f, "];\n");
}

static void put_data(FILE *f, const struct look *l, const struct choice *c)
{
	fprintf(f, "data = {\n\troot = ");
	gt_string_write(f, l->names.shown);
	fprintf(f, ";\n\tbatch = %lld;\n", (long long)c->batch);
	if (l->bad)
		fprintf(f, "\ton_error = \"skip\"; # %lld image%s cannot be read and %s left out; `gtrain check %s --verify` lists %s\n",
		        (long long)l->bad, l->bad == 1 ? "" : "s", l->bad == 1 ? "is" : "are", l->names.config, l->bad == 1 ? "it" : "them");
	if (!l->valid && !l->test)
		fprintf(f, "\tvalid = 0.2; # a fifth of the images, of every class, is kept from training and evaluated\n\tstratify = true;\n");
	put_numbers(f, "mean", l->mean, c->input[0]);
	put_numbers(f, "std", l->std, c->input[0]);
	if (l->files)
		fprintf(f,
		        "\taugment = (\n\t\t{ type = \"random_resized_crop\"; size = [%lld, %lld]; scale = [0.35, 1.0]; },\n"
		        "\t\t{ type = \"hflip\"; } # remove this if left and right have a meaning, as in text\n\t);\n",
		        (long long)c->input[1], (long long)c->input[2]);
	else if (l->c == 3)
		fprintf(f, "\taugment = ( { type = \"pad_crop\"; pad = 4; mode = \"reflect\"; }, { type = \"hflip\"; } );\n");
	fprintf(f, "};\n");
}

/* Writes the template of a residual block: with two convolutions of 3 x 3, or, as a bottleneck, with one between two of 1 x 1. */
static void put_block(FILE *f, bool bottleneck)
{
	static const char *const plain = "\t\t\t\t{ name = \"%s\"; type = \"conv2d\"; out = \"%s\"; kernel = %d;%s bias = false; },\n"
	                                 "\t\t\t\t{ name = \"%s\"; type = \"batchnorm2d\"; },\n";
	const char *strided = " stride = \"$stride\"; padding = 1;";
	fprintf(f, "\tblocks = {\n\t\tresidual = {\n\t\t\tparams = [%s];\n\t\t\tdefaults = { stride = 1; };\n\t\t\tlayers = (\n",
	        bottleneck ? "\"mid\", \"ch\", \"stride\"" : "\"ch\", \"stride\"");
	if (bottleneck)
		fprintf(f, plain, "conv1", "$mid", 1, "", "bn1");
	else
		fprintf(f, plain, "conv1", "$ch", 3, strided, "bn1");
	fprintf(f, "\t\t\t\t{ name = \"relu1\"; type = \"relu\"; },\n");
	fprintf(f, plain, "conv2", bottleneck ? "$mid" : "$ch", 3, bottleneck ? strided : " padding = 1;", "bn2");
	if (bottleneck) {
		fprintf(f, "\t\t\t\t{ name = \"relu2\"; type = \"relu\"; },\n");
		fprintf(f, plain, "conv3", "$ch", 1, "", "bn3");
	}
	fprintf(f,
	        "\t\t\t\t{ name = \"downsample\"; type = \"shortcut\"; in = \"$in\"; out = \"$ch\"; stride = \"$stride\"; },\n"
	        "\t\t\t\t{ name = \"sum\"; type = \"add\"; in = [\"%s\", \"downsample\"]; },\n"
	        "\t\t\t\t{ name = \"relu\"; type = \"relu\"; }\n\t\t\t);\n\t\t};\n\t};\n",
	        bottleneck ? "bn3" : "bn2");
}

static void put_model(FILE *f, const struct look *l, const struct choice *c)
{
	fprintf(f, "# The network: a ResNet with %d, %d, %d and %d residual blocks in its four stages%s.\n", c->blocks[0], c->blocks[1],
	        c->blocks[2], c->blocks[3], c->pretrained ? ", with the names of torchvision" : "");
	fprintf(f, "model = {\n\tinput = [%lld, %lld, %lld];\n\tinit = \"kaiming-normal\";\n", (long long)c->input[0], (long long)c->input[1],
	        (long long)c->input[2]);
	if (c->pretrained) {
		fprintf(f, "\t# All weights but those of the last layer, which has other classes.\n\tpretrained = { file = ");
		gt_string_write(f, c->pretrained);
		fprintf(f, "; map = ( { from = \"fc.*\"; to = \"\"; } ); };\n");
	}
	put_block(f, c->bottleneck);
	fprintf(f, "\tlayers = (\n\t\t{ name = \"conv1\"; type = \"conv2d\"; out = %lld; %s bias = false; },\n", (long long)c->width,
	        c->imagenet_stem ? "kernel = 7; stride = 2; padding = 3;" : "kernel = 3; padding = 1;");
	fprintf(f, "\t\t{ name = \"bn1\"; type = \"batchnorm2d\"; },\n\t\t{ name = \"relu\"; type = \"relu\"; },\n");
	if (c->imagenet_stem)
		fprintf(f, "\t\t{ name = \"maxpool\"; type = \"maxpool2d\"; kernel = 3; stride = 2; padding = 1; },\n");
	for (int i = 0; i < 4; i++) {
		long long ch = c->width << i;
		fprintf(f, "\t\t{ name = \"layer%d\"; block = \"residual\"; repeat = %d; ", i + 1, c->blocks[i]);
		if (c->bottleneck)
			fprintf(f, "mid = %lld; ch = %lld;", ch, 4 * ch);
		else
			fprintf(f, "ch = %lld;", ch);
		fprintf(f, "%s },\n", i ? " first = { stride = 2; };" : "");
	}
	fprintf(f,
	        "\t\t{ name = \"avgpool\"; type = \"global_avgpool\"; },\n\t\t{ name = \"flatten\"; type = \"flatten\"; },\n"
	        "\t\t{ name = \"fc\"; type = \"linear\"; out = %lld; } # one output for each class\n\t);\n};\n",
	        (long long)l->train.classes);
}

static void put_train(FILE *f, const struct choice *c)
{
	fprintf(f, "train = {\n\tepochs = %lld;\n\tlabel_smoothing = 0.1;\n", (long long)c->epochs);
	fprintf(f, "\toptimizer = { type = \"adamw\"; lr = %s; weight_decay = 0.02; decay_bias = false; decay_norm = false; };\n",
	        c->pretrained ? "5.0e-4" : "2.0e-3");
	fprintf(f, "\tschedule = { type = \"onecycle\"; pct_start = 0.25; }; # over the whole run, whatever its epochs\n};\n");
}

static void put_config(FILE *f, const struct look *l, const struct choice *c)
{
	const char *name = l->names.run, *cfg = l->names.config;
	fprintf(f, "# Written by `gtrain init`. %lld training samples of %lld classes, the rarest with %lld; ", (long long)l->train.n,
	        (long long)l->train.classes, (long long)l->smallest_class);
	if (l->valid || l->test)
		fprintf(f, "%lld of a split \"valid\" and %lld of a split \"test\".\n", (long long)l->valid, (long long)l->test);
	else
		fprintf(f, "no other splits.\n");
	if (l->files)
		fprintf(f, "# The shorter side of an image has %lld pixels (median).\n", (long long)l->side);
	fprintf(f, "#     gtrain check %s       what a run will do, its memory and its work\n"
	           "#     gtrain run %s         train\n", cfg, cfg);
	fprintf(f, "\nschema = 1;\nname = ");
	gt_string_write(f, name);
	fprintf(f, ";\nseed = 42;\n\n");
	put_data(f, l, c);
	fputc('\n', f);
	put_model(f, l, c);
	fputc('\n', f);
	put_train(f, c);
	gt_init_checkpoint(f, name, l->valid || !l->test ? "valid" : "test", "acc");
}

/* A config cannot have every path. */
static enum gt_code check_path(const char *path, struct gt_err *err)
{
	const char *fault = gt_string_fault(path, strlen(path));
	return !fault ? GT_OK
	              : gt_fail(err, GT_EDATA, "%s: expected a path of UTF-8 text without control characters, which a config can have, got %s; "
	                        "rename it", path, fault);
}

/* Returns whether a path is a file other than a .tar archive: a table. */
static bool is_table(const char *path)
{
	struct stat st;
	size_t n = strlen(path);
	return !stat(path, &st) && !S_ISDIR(st.st_mode) && !(n > 4 && !strcmp(path + n - 4, ".tar"));
}

/* Writes a remedy; of an archive, the commands that unpack it into a folder beside it and begin again. stem: length of the path without the
 * end of its name. */
static void unpack_text(const char *path, size_t stem, const char *remedy, char *out, size_t size)
{
	char file[400], dir[400], folder[PATH_MAX];
	size_t n = 0;
	snprintf(folder, sizeof folder, "%.*s", (int)stem, path);
	if (!strstr(remedy, "DIR")) {
		snprintf(out, size, "%s", remedy);
		return;
	}
	gt_init_word(path, file, sizeof file);
	gt_init_word(folder, dir, sizeof dir);
	n += (size_t)snprintf(out, size, "unpack the archive: ");
	for (const char *p = remedy; *p && n + 1 < size;) {
		const char *word = !strncmp(p, "FILE", 4) ? file : !strncmp(p, "DIR", 3) ? dir : NULL;
		n += (size_t)snprintf(out + n, size - n, "%.*s", word ? (int)strlen(word) : 1, word ? word : p);
		p += !word ? 1 : word == file ? 4 : 3;
	}
	if (n < size)
		snprintf(out + n, size - n, "; then `gtrain init %s`", dir);
}

/* Refuses files by the ends of their names that no format reads and that would be taken for tables. */
static enum gt_code check_file(const char *path, struct gt_err *err)
{
#define TAR "mkdir DIR && tar -xf FILE -C DIR"
	static const struct {
		const char *end, *remedy; /* of an archive: the command to unpack it, with the words FILE and DIR */
	} other[] = {
	    {".tgz", TAR}, {".tar.gz", TAR}, {".tar.bz2", TAR}, {".tar.xz", TAR}, {".tar.zst", TAR},
	    {".zip", "unzip FILE -d DIR"}, {".7z", "7z x FILE -oDIR"}, {".rar", "unrar x FILE DIR/"},
	    {".jpg", "put images into a folder for each class"}, {".jpeg", "put images into a folder for each class"},
	    {".png", "put images into a folder for each class"}, {".webp", "put images into a folder for each class"},
	    {".xlsx", "export the table as CSV"}, {".xls", "export the table as CSV"}, {".ods", "export the table as CSV"},
	    {".parquet", "export the table as CSV"}, {".feather", "export the table as CSV"}, {".json", "export the table as CSV"},
	    {".jsonl", "export the table as CSV"}, {".cfg", "this one seems to be a config already"}};
	size_t n = strlen(path);
	for (size_t i = 0; i < sizeof other / sizeof *other; i++) {
		size_t end = strlen(other[i].end);
		char text[1000];
		if (n <= end || strcasecmp(path + n - end, other[i].end))
			continue;
		unpack_text(path, n - end, other[i].remedy, text, sizeof text);
		return gt_fail(err, GT_EDATA, "%.300s: expected a folder, a .tar archive or a CSV file; %s", path, text);
	}
	return GT_OK;
}

static enum gt_code init_table(const char *root, const struct gt_init_spec *spec, const struct gt_init_names *names, char **text,
                               struct gt_err *err)
{
	if (spec->pretrained)
		return gt_fail(err, GT_EUSAGE, "--pretrained: expected a folder of images beside it, got the file %s", spec->path);
	for (int i = 0; i < spec->ntargets; i++)
		if (gt_string_fault(spec->targets[i], strlen(spec->targets[i])))
			return gt_fail(err, GT_EUSAGE, "--target: expected the name of a column, got %s",
			               gt_string_fault(spec->targets[i], strlen(spec->targets[i])));
	return gt_init_table(root, names, spec, text, err);
}

static enum gt_code init_images(struct look *l, char **text, struct gt_err *err)
{
	struct choice c = {0};
	struct gt_memstream m;
	FILE *f;
	const char *pretrained = l->spec->pretrained;
	if (pretrained)
		GT_TRY(check_path(pretrained, err));
	GT_TRY(inspect_data(l, err));
	if (pretrained)
		GT_TRY(read_pretrained(pretrained, &c, err));
	if (!(f = gt_memstream_open(&m)))
		return gt_fail_memory(err, 0);
	choose_settings(l, &c);
	put_config(f, l, &c);
	return gt_memstream_close(f, &m, text, NULL, err);
}

enum gt_code gt_init_config(const struct gt_init_spec *spec, char **text, struct gt_err *err)
{
	char root[PATH_MAX], path[PATH_MAX];
	*text = NULL;
	if (!realpath(spec->path, root))
		return errno == ENOENT ? gt_fail(err, GT_ENOINPUT, "%s: there is no such file or folder", spec->path)
		                       : gt_fail(err, GT_ENOINPUT, "%s: cannot open: %s", spec->path, strerror(errno));
	GT_TRY(check_path(root, err));
	size_t n = (size_t)snprintf(path, sizeof path, "%s", spec->path);
	while (n > 1 && n < sizeof path && path[n - 1] == '/') /* it begins the names of files in messages */
		path[--n] = 0;
	struct look l = {.spec = spec, .root = path};
	gt_init_names(spec, root, &l.names);
	GT_TRY(check_path(l.names.shown, err));
	if (is_table(root)) {
		GT_TRY(check_file(path, err));
		return init_table(root, spec, &l.names, text, err);
	}
	if (spec->ntargets)
		return gt_fail(err, GT_EUSAGE, "--target: expected a table (a CSV file) beside it, got the folder %s", path);
	if (gt_init_is_text(path)) {
		if (spec->pretrained)
			return gt_fail(err, GT_EUSAGE, "--pretrained: expected a folder of images beside it, got the texts in %s", path);
		return gt_init_text(path, spec, &l.names, text, err);
	}
	enum gt_code code = init_images(&l, text, err);
	gt_dataset_free(&l.train);
	return code;
}
