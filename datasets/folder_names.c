#include "folder_names.h"
#include <string.h>
#include <strings.h>

static const char *const names[GT_SPLITS][7] = {
    [GT_TRAIN] = {"train", NULL, "train", "training"},
    [GT_VALID] = {"valid", "val", "valid", "val", "validation", "dev", "eval"},
    [GT_TEST] = {"test", NULL, "test", "testing"},
};
enum { MOST = sizeof names[0] / sizeof *names[0] };

int gt_folder_rank(enum gt_split split, const char *name, size_t len)
{
	for (int k = 0; k < MOST; k++) {
		const char *one = names[split][k];
		if (one && strlen(one) == len && !(k < GT_FOLDER_USUAL ? strncmp : strncasecmp)(one, name, len))
			return k;
	}
	return -1;
}

bool gt_folder_is_split(const char *name, size_t len, bool usual)
{
	for (int s = 0; s < GT_SPLITS; s++) {
		int rank = gt_folder_rank((enum gt_split)s, name, len);
		if (rank >= 0 && (!usual || rank < GT_FOLDER_USUAL))
			return true;
	}
	return false;
}

bool gt_folder_ignored(const char *name, size_t len)
{
	static const char *const others[] = {"__MACOSX", "lost+found", "$RECYCLE.BIN", "System Volume Information", "@eaDir"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (strlen(others[i]) == len && !strncmp(others[i], name, len))
			return true;
	return len && name[0] == '.';
}

bool gt_folder_ignored_path(const char *path)
{
	for (size_t len; *path; path += len + (path[len] == '/')) {
		len = strcspn(path, "/");
		if (gt_folder_ignored(path, len))
			return true;
	}
	return false;
}
