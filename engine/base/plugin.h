/* Plugins: shared objects with code that not every run needs, such as backends with vendor libraries, the downloader with libcurl, and the
 * commands that do not train. They are searched only relative to the running program; the path of a plugin never comes from a config, a
 * checkpoint or the environment.
 *   $(prefix)/bin/gtrain        ../lib/gtrain/NAME.so
 *   build/tests/unit/test_x     ../../lib/gtrain/NAME.so */
#ifndef GT_BASE_PLUGIN_H
#define GT_BASE_PLUGIN_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>

/* Opens the plugin NAME.so and sets *out to the address of its `symbol`. name: letters, digits, '-' and '_', such as "cpu". The plugin
 * remains open until the process ends; a second call gives the same address. GT_EUNAVAILABLE: the plugin does not exist or cannot be loaded
 * (the message has the loader's reason, such as a missing library). GT_EINTERNAL: it has no such symbol. */
enum gt_code gt_plugin_open(const char *name, const char *symbol, void **out, struct gt_err *err);
/* Returns whether the plugin is installed with the program. Does not load it, because a vendor library may take seconds. */
bool gt_plugin_installed(const char *name);
/* Writes the path of the directory of the running program, without a slash at its end. Returns GT_EUNAVAILABLE if it cannot be found. */
enum gt_code gt_exe_dir(char *buf, size_t size, struct gt_err *err);

#endif
