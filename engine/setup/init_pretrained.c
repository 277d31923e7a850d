#include "setup/init_pretrained.h"
#include "base/fileio.h"
#include "conf/conf.h"
#include "conf/conf_string.h"
#include "gtrain.h"
#include "ir/graph.h"
#include "known_weights.h"
#include "setup/init_template.h"
#include "train/pretrained.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLASSIFIER "out = 1000;" /* text that marks the classifier in the config of a published network */
#define INPUT "input = [3, 224, 224];"

/* Recognises a ResNet of torchvision. */
static bool is_resnet(const struct gt_st_file *f, struct gt_init_network *out)
{
	const struct gt_st_tensor *t;
	bool stem = false;
	for (int i = 0; (t = gt_st_at(f, i)) != NULL; i++) {
		const char *name = !strncmp(t->name, "module.", 7) ? t->name + 7 : t->name;
		int stage, block, end = 0;
		stem |= !strcmp(name, "conv1.weight") && t->desc.rank == 4 && t->desc.dim[1] == 3 && t->desc.dim[2] == 7 && t->desc.dim[0] == 64;
		if (sscanf(name, "layer%d.%d.conv%n", &stage, &block, &end) == 2 && end && stage >= 1 && stage <= 4 && block >= 0 && block < 200) {
			if (block + 1 > out->blocks[stage - 1])
				out->blocks[stage - 1] = block + 1;
			out->bottleneck |= !strcmp(name + end, "3.weight");
		}
	}
	return stem && out->blocks[0] && out->blocks[1] && out->blocks[2] && out->blocks[3];
}

/* Returns the last occurrence of `part` in the text, or NULL. */
static char *find_last(char *text, const char *part)
{
	char *found = NULL;
	for (char *p = text; (p = strstr(p, part)) != NULL; p++)
		found = p;
	return found;
}

/* Reads the config of a network, and finds the name of its classifier: { name = "heads.head"; type = "linear"; out = 1000; }. */
static enum gt_code read_config(const struct gt_known_weights *w, struct gt_arena *a, struct gt_init_network *out, const char **path,
                                struct gt_err *err)
{
	static const char name[] = "name = \"";
	char *text;
	size_t size;
	GT_TRY(gt_bundled_find(a, w->config, path, err));
	if (!*path)
		return gt_fail(err, GT_ENOINPUT, "the config %s of gtrain is not installed", w->config);
	GT_TRY(gt_file_read(*path, 1 << 20, &text, &size, err));
	char *copy = gt_arena_strdup(a, text);
	free(text);
	GT_NEW_STR(out->text, copy, err);
	char *last = find_last(copy, CLASSIFIER), *line = last;
	while (line && line > copy && line[-1] != '\n')
		line--;
	char *layer = line ? strstr(line, name) : NULL;
	if (!layer || layer > last || !strstr(copy, INPUT))
		return gt_fail(err, GT_EINTERNAL, "%s: expected a classifier of 1000 classes and images of 224 x 224", *path);
	layer += strlen(name);
	GT_NEW_STR(out->map, gt_arena_printf(a, "%s%s{ from = \"%.*s.*\"; to = \"\"; }", w->map, *w->map ? ", " : "", (int)strcspn(layer, "\""),
	                                     layer), err);
	return GT_OK;
}

/* Returns the number of tensors that are not in the file. Files of old versions of PyTorch lack the counters of batch normalisations. */
static int count_missing(const struct gt_pretrained_report *r)
{
	static const char counter[] = ".num_batches_tracked";
	int n = r->ninitial;
	for (int i = 0; i < r->ninitial; i++) {
		size_t len = strlen(r->initial[i]), tail = strlen(counter);
		n -= len > tail && !strcmp(r->initial[i] + len - tail, counter);
	}
	return n;
}

/* Sets *same to whether the file has exactly the tensors of the config's graph, not counting the tensors of the classifier. */
static enum gt_code match_graph(struct gt_conf *c, const struct gt_st_file *f, bool *same, struct gt_err *err)
{
	struct gt_pretrained match;
	struct gt_graph *g;
	struct gt_arena *a;
	struct gt_err differ = {0};
	GT_TRY(gt_arena_open(&a, err));
	enum gt_code code = gt_graph_build(a, &c->model, 1, GT_F32, false, &g, err);
	enum gt_code found = code == GT_OK ? gt_pretrained_match(c, g, f, a, &match, &differ) : code;
	*same = found == GT_OK && !match.report.nunused && count_missing(&match.report) <= 2;
	gt_arena_close(a);
	if (found == GT_EFAIL && code == GT_OK)
		return gt_fail_copy(err, &differ);
	return code;
}

/* Returns whether the file has the weights of network w. */
static enum gt_code match_network(const struct gt_known_weights *w, const struct gt_st_file *f, struct gt_arena *a,
                                  struct gt_init_network *out, bool *same, struct gt_err *err)
{
	const char *path, *map;
	struct gt_conf *c;
	*same = false;
	GT_TRY(read_config(w, a, out, &path, err));
	GT_NEW_STR(map, gt_arena_printf(a, "model.pretrained.map=( %s )", out->map), err);
	GT_TRY(gt_conf_load(path, (const char *const[]){"model.pretrained.file=\"weights\"", map}, 2, &c, err));
	enum gt_code code = match_graph(c, f, same, err);
	gt_conf_free(c);
	out->name = w->name;
	out->config = w->config;
	out->side = w->side;
	out->mean = w->mean;
	out->std = w->std;
	out->lr = w->lr;
	return code;
}

static enum gt_code recognise_network(const char *path, const struct gt_st_file *f, struct gt_arena *a, struct gt_init_network *out,
                                      struct gt_err *err)
{
	char names[300] = "";
	bool same = is_resnet(f, out);
	out->lr = "5.0e-4";
	for (const struct gt_known_weights *w = gt_known_weights; w->name && !same; w++) {
		if (!strncmp(w->name, "resnet", 6))
			continue;
		GT_TRY(match_network(w, f, a, out, &same, err));
		size_t n = strlen(names);
		snprintf(names + n, sizeof names - n, ", %s", w->name);
	}
	return same ? GT_OK : gt_fail(err, GT_EDATA, "%s: expected the weights of a torchvision network: a ResNet (conv1.weight, "
	                              "layer1.0.conv1.weight, …)%s; for other weights, write the model by hand and use model.pretrained",
	                              path, names);
}

/* Sets out->file. The path in a config is relative to the directory of the config. */
static enum gt_code name_file(const char *which, const char *to, struct gt_arena *a, struct gt_init_network *out, struct gt_err *err)
{
	char real[PATH_MAX];
	bool near = !to || !strchr(to, '/') || *which == '/';
	GT_NEW_STR(out->file, gt_arena_strdup(a, !near && realpath(which, real) ? real : which), err);
	return GT_OK;
}

enum gt_code gt_init_network(const char *which, const char *to, struct gt_arena *a, struct gt_init_network *out, struct gt_err *err)
{
	const struct gt_known_weights *w = access(which, F_OK) ? gt_known_weights_find(which) : NULL;
	char cached[PATH_MAX];
	struct gt_st_file *f;
	*out = (struct gt_init_network){0};
	GT_TRY(name_file(which, w ? NULL : to, a, out, err));
	if (w)
		GT_TRY(gt_known_weights_path(w, cached, sizeof cached, err));
	enum gt_code code = gt_st_open(w ? cached : which, &f, err);
	if (w && code == GT_ENOINPUT)
		return gt_fail(err, code, "--pretrained: the weights %s are not in %s; `gtrain fetch %s` downloads them", w->name, cached, w->name);
	GT_TRY(code);
	code = recognise_network(which, f, a, out, err);
	gt_st_close(f);
	return code;
}

/* Writes the file's name as a string of a config. */
static enum gt_code quote_file(const char *file, struct gt_arena *a, const char **out, struct gt_err *err)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	if (!f)
		return gt_fail_memory(err, 0);
	gt_string_write(f, file);
	*out = fclose(f) ? NULL : gt_arena_strdup(a, text);
	free(text);
	return *out ? GT_OK : gt_fail_memory(err, 0);
}

enum gt_code gt_init_network_model(const struct gt_init_network *n, int64_t height, int64_t width, int64_t classes, struct gt_arena *a,
                                   const char **text, struct gt_err *err)
{
	const char *file;
	char *copy;
	GT_TRY(quote_file(n->file, a, &file, err));
	GT_NEW_STR(copy, gt_arena_strdup(a, n->text), err);
	char *model = strstr(copy, "\nmodel = {"), *end = model ? strstr(model, "\n};\n") : NULL, *input = strstr(copy, INPUT),
	     *out = find_last(copy, CLASSIFIER);
	if (!end || !input || !out || input < model || out < input || end < out)
		return gt_fail(err, GT_EINTERNAL, "%s: expected a model of 1000 classes and images of 224 x 224", n->config);
	*input = *out = '\0';
	end[strlen("\n};")] = '\0';
	GT_NEW_STR(*text, gt_arena_printf(a, "%sinput = [3, %lld, %lld];\n"
	                                  "\t# All weights except the last layer's, which has other classes.\n"
	                                  "\tpretrained = { file = %s; map = ( %s ); };%sout = %lld;%s",
	                                  model + 1, (long long)height, (long long)width, file, n->map, input + strlen(INPUT),
	                                  (long long)classes, out + strlen(CLASSIFIER)), err);
	return GT_OK;
}
