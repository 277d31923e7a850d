#include "base/plugin.h"
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_valid_name(const char *name)
{
	static const char set[] = "abcdefghijklmnopqrstuvwxyz0123456789-_";
	size_t n = strlen(name);
	return n > 0 && n < 64 && strspn(name, set) == n;
}

/* Reads the link /proc/self/exe. If the file of this program has been replaced since the start, the link is "/dir/gtrain (deleted)"; its
 * directory is still correct. */
enum gt_code gt_exe_dir(char *buf, size_t size, struct gt_err *err)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - 1);
	if (n < 0)
		return gt_fail_errno(err, GT_EUNAVAILABLE, errno,
		                     "cannot read the link /proc/self/exe, by which gtrain finds its plugins and configs");
	buf[n] = '\0';
	char *slash = strrchr(buf, '/');
	if (!slash || (size_t)n == size - 1)
		return gt_fail(err, GT_EUNAVAILABLE, "the link /proc/self/exe, by which gtrain finds its plugins and configs, has no path or a "
		               "path that is too long");
	*slash = '\0';
	return GT_OK;
}

/* Writes the path of a plugin, which need not exist: in ../lib/gtrain of the program's directory if that exists, else in ../../lib/gtrain.
 * If both exist, the farther one belongs to another build. */
static void find_plugin(const char *dir, const char *name, char *path, size_t size)
{
	snprintf(path, size, "%s/../lib/gtrain", dir);
	snprintf(path, size, "%s/%s/lib/gtrain/%s.so", dir, access(path, F_OK) ? "../.." : "..", name);
}

bool gt_plugin_installed(const char *name)
{
	char dir[PATH_MAX], path[PATH_MAX + 128];
	if (gt_exe_dir(dir, sizeof dir, NULL) != GT_OK)
		return false;
	find_plugin(dir, name, path, sizeof path);
	return !access(path, R_OK);
}

/* Returns what a user does to get a plugin that not every build has, or "". */
static const char *find_remedy(const char *name)
{
	if (!strcmp(name, "cuda"))
		return "; `make CUDA=DIR` builds it with the CUDA toolkit in DIR";
	if (!strcmp(name, "gloo"))
		return "; install Debian's package libgloo-dev, and build gtrain again";
	return "";
}

enum gt_code gt_plugin_open(const char *name, const char *symbol, void **out, struct gt_err *err)
{
	char dir[PATH_MAX], path[PATH_MAX + 128];
	*out = NULL;
	if (!is_valid_name(name))
		return gt_fail(err, GT_EUNAVAILABLE, "\"%.64s\" is not the name of a plugin", name);
	GT_TRY(gt_exe_dir(dir, sizeof dir, err));
	find_plugin(dir, name, path, sizeof path);
	if (access(path, F_OK) && errno != ENOENT && errno != ENOTDIR)
		return gt_fail_errno(err, GT_EUNAVAILABLE, errno, "%s cannot be loaded: %.400s", name, path);
	if (access(path, F_OK))
		return gt_fail(err, GT_EUNAVAILABLE, "%s is not installed: there is no %s/../lib/gtrain/%s.so%s", name, dir, name,
		               find_remedy(name));
	/* RTLD_NOW: missing symbols are detected here, and not during a run. */
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!so)
		return gt_fail(err, GT_EUNAVAILABLE, "%s cannot be loaded: %s", name, dlerror());
	*out = dlsym(so, symbol);
	if (!*out)
		return gt_fail(err, GT_EINTERNAL, "%s: the plugin has no symbol %s; install gtrain and its plugins from one build", path, symbol);
	return GT_OK;
}
