/* A folder of images, a list of images, or images with the class in their names. The first byte selects the format, the second one its
 * keys; then come the names of files, a line each, up to an empty line, and the text of the list or the pattern. The first character of a
 * name tells what it becomes: a folder (/), a link to the folder that contains it (@), a link to nothing (!), an empty file (=), else a
 * file. */
#include "dataset.h"
#include "fuzz_file.h"
#include "source.h"
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_NAMES = 24, MAX_NAME = 120 };

static char root[64];

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	return at->level ? remove(path) : 0;
}

static void remove_root(void)
{
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	rmdir(root);
}

static void write_file(const char *path, const void *data, size_t size)
{
	FILE *f = fopen(path, "wb");
	if (f) {
		fwrite(data, 1, size, f);
		fclose(f);
	}
}

/* Makes the folders that contain a path, then what its kind asks for. Names that cannot be made are left out. */
static void make(char kind, const char *name)
{
	char path[PATH_MAX];
	size_t skip = (size_t)snprintf(path, sizeof path, "%s/%s", root, name) - strlen(name);
	for (char *p = path + skip; (p = strchr(p, '/')); *p++ = '/') {
		*p = 0;
		mkdir(path, 0700);
	}
	if (kind == '/')
		mkdir(path, 0700);
	else if ((kind == '@' || kind == '!') && !symlink(kind == '@' ? "." : "nothing", path))
		return;
	else
		write_file(path, "x", kind != '=');
}

/* Returns whether a path stays in its folder, so that the result depends on the input alone. */
static bool inside(const char *name, size_t len)
{
	return len && len < MAX_NAME && name[0] != '/' && !memmem(name, len, "..", 2) && !memchr(name, 0, len);
}

/* Makes the files that the input names. Returns the length of this part of it. */
static size_t make_tree(const char *text, size_t size)
{
	size_t at = 0;
	for (int i = 0; i < MAX_NAMES && at < size; i++) {
		const char *line = text + at, *nl = memchr(line, '\n', size - at);
		size_t len = nl ? (size_t)(nl - line) : size - at;
		char name[MAX_NAME];
		at += len + (nl != NULL);
		if (!len)
			break;
		if (!inside(line + 1, len - 1))
			continue;
		snprintf(name, sizeof name, "%.*s", (int)(len - 1), line + 1);
		make(line[0], name);
	}
	return at;
}

static void check_dataset(const struct gt_dataset *d, const struct gt_dataset_spec *spec)
{
	struct gt_bytes_buf buf = {0};
	struct gt_err e = {0};
	FUZZ_ASSERT(d->encoded && d->n == d->source->n && (d->labels != NULL) != (d->target.data != NULL));
	for (int64_t k = 1; k < d->nclass_names; k++)
		FUZZ_ASSERT(strcmp(d->class_name[k - 1], d->class_name[k]) < 0);
	for (int64_t i = 0; i < d->n; i++) {
		FUZZ_ASSERT(!d->labels || (d->labels[i] >= 0 && d->labels[i] < d->nclass_names));
		FUZZ_ASSERT(*gt_source_path(d->source, i));
		enum gt_code rc = gt_source_read(d->source, i, &buf, &e);
		FUZZ_ASSERT(rc == GT_OK ? buf.size > 0 : rc == GT_EDATA && e.msg[0]);
		e = (struct gt_err){0};
	}
	for (int64_t i = 0; d->target.data && i < d->n * d->target.width; i++) {
		float v = ((const float *)d->target.data)[i];
		FUZZ_ASSERT(spec->ntargets ? v - v == 0 : v == 0 || v == 1);
	}
	free(buf.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char list[80];
	static const char *const formats[] = {"folder", "list", "pattern"}, *const targets[] = {"age", "x"};
	char pattern[200];
	struct gt_err e = {0};
	if (size < 3)
		return 0;
	if (!*root) {
		snprintf(root, sizeof root, "%s/gtrain-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
		FUZZ_ASSERT(mkdtemp(root) && !atexit(remove_root));
		snprintf(list, sizeof list, "%s/list.csv", root);
	}
	nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	size_t tree = 2 + make_tree((const char *)data + 2, size - 2);
	const char *rest = (const char *)data + tree;
	const char *files[] = {"list.csv"};
	snprintf(pattern, sizeof pattern, "%.*s", (int)(size - tree), rest);
	if (memmem(rest, size - tree, "..", 2) || memmem(rest, size - tree, ",/", 2) || (tree < size && *rest == '/'))
		return 0; /* a list may name files anywhere */
	struct gt_dataset_spec spec = {.name = "x", .root = root, .format = formats[data[0] % 3], .shape = {3, 4, 4}, .pattern = pattern};
	if (data[0] % 3 == 1) {
		write_file(list, rest, size - tree);
		spec.train = spec.test = files;
		spec.ntrain = spec.ntest = 1;
		spec.label_separator = data[1] & 1 ? " " : NULL;
		spec.targets = targets;
		spec.ntargets = data[1] & 2 ? 1 + (data[1] >> 2 & 1) : 0;
	}
	for (int split = 0; split < GT_SPLITS; split++) {
		struct gt_dataset d, probe;
		enum gt_code rc = gt_dataset_read(&spec, (enum gt_split)split, &d, &e);
		FUZZ_ASSERT(gt_dataset_probe(&spec, (enum gt_split)split, &probe, NULL) == rc && probe.n == d.n && probe.classes == d.classes);
		gt_dataset_free(&probe);
		if (rc != GT_OK)
			FUZZ_ASSERT((rc == GT_EDATA || rc == GT_ECONFIG || rc == GT_ENOINPUT) && e.code == rc && e.msg[0]);
		else if (d.n)
			check_dataset(&d, &spec);
		gt_dataset_free(&d);
		e = (struct gt_err){0};
	}
	return 0;
}
