/* The interface of lib/gtrain/archive.so, which reads packed archives (.zip, .tar.gz, .tar.zst and the like) by libarchive. An archive is
 * read once from start to end, member by member.
 *
 *     GT_TRY(gt_archive_plugin(&plugin, err));
 *     GT_TRY(plugin->open(path, &a, err));
 *     while ((code = plugin->next(a, &m, err)) == GT_OK && m.path)
 *         while ((code = plugin->read(a, buf, sizeof buf, &got, err)) == GT_OK && got)
 *             ... buf[0 ... got - 1] ...
 *     plugin->close(a);
 */
#ifndef GT_DATASETS_ARCHIVE_PLUGIN_H
#define GT_DATASETS_ARCHIVE_PLUGIN_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GT_ARCHIVE_ABI 1
#define GT_ARCHIVE_SYMBOL "gt_archive_plugin_v1"

enum gt_archive_type { GT_ARCHIVE_FILE, GT_ARCHIVE_FOLDER, GT_ARCHIVE_LINK, GT_ARCHIVE_SPECIAL };

struct gt_archive_member {
	const char *path;      /* path of the member in the archive, in UTF-8 or other bytes; valid until the next call of `next`; NULL: end of
	                          the archive */
	enum gt_archive_type type;
	bool encrypted;        /* the content of the member cannot be read without a password */
};

struct gt_archive_plugin {
	uint32_t abi;
	/* Opens a regular file. GT_ENOINPUT: the file cannot be opened. GT_EDATA: the file is not an archive that the plugin can read. */
	enum gt_code (*open)(const char *path, void **out, struct gt_err *err);
	void (*close)(void *archive);
	/* Moves to the next member. GT_EDATA: the archive is damaged or truncated. */
	enum gt_code (*next)(void *archive, struct gt_archive_member *out, struct gt_err *err);
	/* Reads the next bytes of the current member. Sets *got to 0 at the end of the member. GT_EDATA: the archive is damaged or truncated,
	 * or a checksum does not match. */
	enum gt_code (*read)(void *archive, void *buf, size_t n, size_t *got, struct gt_err *err);
	/* Returns the number of bytes decompressed so far, including skipped members. */
	uint64_t (*unpacked)(void *archive);
	/* Returns the name and version of the library, for `gtrain --version`. */
	const char *(*library)(void);
};

/* Opens the plugin. GT_EUNAVAILABLE: the plugin is not installed, or is from another version of gtrain. */
enum gt_code gt_archive_plugin(const struct gt_archive_plugin **out, struct gt_err *err);

#endif
