/* `gtrain fetch`. The program contains the table of datasets; the downloader is a plugin that only this command opens. */
#include "base/plugin.h"
#include "dataset.h"
#include "gtrain_data.h"
#include "known.h"
#include <limits.h>
#include <string.h>

const char *gt_fetch_name(int i)
{
	for (const struct gt_known_dataset *k = gt_known_datasets; k->name && i >= 0; k++, i--)
		if (!i)
			return k->name;
	return NULL;
}

enum gt_code gt_fetch(const char *dataset, const char *dir, const char *base_url,
                      void (*progress)(void *user, const char *file, uint64_t done, uint64_t total), void *user, struct gt_err *err)
{
	const struct gt_known_dataset *row = gt_known_find(dataset);
	char cache[PATH_MAX];
	void *symbol;
	if (!row && gt_known_near(dataset))
		return gt_fail(err, GT_EUSAGE, "unknown dataset '%.60s'; did you mean '%s'?", dataset, gt_known_near(dataset));
	if (!row) {
		char names[512] = "";
		for (int i = 0; gt_fetch_name(i) && strlen(names) < sizeof names - 64; i++)
			strcat(strcat(names, i ? ", " : ""), gt_fetch_name(i));
		return gt_fail(err, GT_EUSAGE, "unknown dataset '%.60s'; known datasets: %s", dataset, names);
	}
	if (!dir) {
		GT_TRY(gt_dataset_cache(row->name, cache, sizeof cache, err));
		dir = cache;
	}
	GT_TRY(gt_plugin_open("fetch", GT_FETCH_SYMBOL, &symbol, err));
	const struct gt_fetch_plugin *plugin = symbol;
	if (plugin->abi != GT_FETCH_ABI)
		return gt_fail(err, GT_EUNAVAILABLE, "the fetch plugin has version %u, but this gtrain needs %u: install both from one build",
		               plugin->abi, GT_FETCH_ABI);
	return plugin->fetch(row, dir, base_url, progress, user, err);
}
