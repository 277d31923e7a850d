/* `gtrain fetch`. The program contains the tables of datasets and of weights; the downloader is a plugin that only this command opens. */
#include "base/guess.h"
#include "base/plugin.h"
#include "dataset.h"
#include "gtrain_data.h"
#include "known.h"
#include "known_weights.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

const char *gt_fetch_name(int i)
{
	for (const struct gt_known_dataset *k = gt_known_datasets; k->name && i >= 0; k++, i--)
		if (!i)
			return k->name;
	for (const struct gt_known_weights *w = gt_known_weights; w->name && i >= 0; w++, i--)
		if (!i)
			return w->name;
	return NULL;
}

/* Returns the most similar name of weights for a misspelled name, or NULL. */
static const char *find_near_weights(const char *name)
{
	struct gt_guess g = gt_guess_open(name);
	for (const struct gt_known_weights *w = gt_known_weights; w->name; w++)
		gt_guess_try(&g, w->name);
	return g.best;
}

static enum gt_code fail_unknown(const char *name, struct gt_err *err)
{
	const char *near = gt_known_near(name) ? gt_known_near(name) : find_near_weights(name);
	char names[512] = "";
	for (int i = 0; gt_fetch_name(i) && strlen(names) < sizeof names - 64; i++)
		strcat(strcat(names, !i ? "" : gt_fetch_name(i) == gt_known_weights[0].name ? "; known weights: " : ", "), gt_fetch_name(i));
	return gt_fail(err, GT_EUSAGE, "unknown dataset or weights '%.60s'; %s%s%sknown datasets: %s", name, near ? "did you mean '" : "",
	               near ? near : "", near ? "'? " : "", names);
}

enum gt_code gt_fetch_path(const char *name, const char *dir, char *buf, size_t size, struct gt_err *err)
{
	const struct gt_known_weights *w = gt_known_weights_find(name);
	if (!w && !gt_known_find(name))
		return fail_unknown(name, err);
	if (!dir)
		return w ? gt_known_weights_path(w, buf, size, err) : gt_dataset_cache(name, buf, size, err);
	if ((size_t)snprintf(buf, size, "%s%s%s", dir, w ? "/" : "", w ? w->file : "") >= size)
		return gt_fail(err, GT_EUSAGE, "%.200s...: this path is too long", dir);
	return GT_OK;
}

enum gt_code gt_fetch(const char *name, const char *dir, const char *base_url,
                      void (*progress)(void *user, const char *file, uint64_t done, uint64_t total), void *user, struct gt_err *err)
{
	const struct gt_known_dataset *row = gt_known_find(name);
	const struct gt_known_weights *w = gt_known_weights_find(name);
	struct gt_known_dataset weights = {.name = name};
	char cache[PATH_MAX];
	void *symbol;
	if (!row && !w)
		return fail_unknown(name, err);
	if (w) {
		weights.mirrors[0] = w->mirror;
		weights.file[0] = (struct gt_known_file){.name = w->file, .sha256 = w->digest};
		row = &weights;
	}
	if (!dir) {
		GT_TRY(gt_dataset_cache(w ? "weights" : row->name, cache, sizeof cache, err));
		dir = cache;
	}
	GT_TRY(gt_plugin_open("fetch", GT_FETCH_SYMBOL, &symbol, err));
	const struct gt_fetch_plugin *plugin = symbol;
	if (plugin->abi != GT_FETCH_ABI)
		return gt_fail(err, GT_EUNAVAILABLE, "the fetch plugin has version %u, but this gtrain needs %u: install both from one build",
		               plugin->abi, GT_FETCH_ABI);
	return plugin->fetch(row, dir, base_url, progress, user, err);
}
