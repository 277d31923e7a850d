/* Plugins: the shared objects that hold what not every run needs (backends with their vendor libraries, the downloader with
 * libcurl). They are found from the place of the running program and from nowhere else: no path comes from a config, a
 * checkpoint or the environment.
 *   $(prefix)/bin/gtrain        ../lib/gtrain/NAME.so
 *   build/tests/unit/test_x     ../../lib/gtrain/NAME.so */
#ifndef GT_BASE_PLUGIN_H
#define GT_BASE_PLUGIN_H

#include "base/err.h"
#include <stddef.h>

/* Opens NAME.so ("cpu", "fetch": letters, digits, '-', '_') and puts the address of its `symbol` in *out. It stays open until
 * the process ends; a second call gives the same address. GT_EUNAVAILABLE: not there, or it cannot be loaded (the message has
 * the loader's reason, such as a missing library); GT_EINTERNAL: no such symbol in it. */
enum gt_code gt_plugin_open(const char *name, const char *symbol, void **out, struct gt_err *err);
/* The folder of the running program, without a last slash. GT_EUNAVAILABLE: unknown. */
enum gt_code gt_exe_dir(char *buf, size_t size, struct gt_err *err);

#endif
