/* manifest.json: one line of JSON, written last. A directory without it is no checkpoint.
 *   {"format":1,"version":"0.1.0","serial":7,"parent":6,"name":"fmnist-mlp","step":938,"epoch":1,"cursor":0,"world":1,"seed":"42",
 *    "best":{"value":0.87,"step":938},"loss_scale":0,"good_steps":0,"seconds":1.5,
 *    "files":[{"name":"model.safetensors","bytes":123,"xxh3":"<32 hex digits>"},...],"xxh3":"<32 hex digits>"}
 * serial  number of checkpoints committed in the run directory so far. The newest checkpoint has the highest serial, not the highest step,
 *         because a run may continue from an earlier step.
 * parent  serial of the checkpoint that this one continues; 0: none. The checkpoints whose serial is above parent and below serial were
 *         left behind when the run went back (ckpt_history.c). If a manifest of an older version has no parent, serial - 1 is used.
 * seed    a string, because JSON numbers are doubles.
 * best    the best value of the metric so far and the step at which it occurred; null if the run has no best checkpoint.
 * files   names from the fixed list below; a name is only compared, never used as a path.
 * xxh3    digest of all bytes before `,"xxh3":"`, so that a flipped bit of the manifest is detected. */
#ifndef GT_STORE_CKPT_MANIFEST_H
#define GT_STORE_CKPT_MANIFEST_H

#include "base/digest.h"
#include "base/json.h"
#include "store/ckpt.h"

#define GT_CKPT_MANIFEST "manifest.json"
#define GT_CKPT_MANIFEST_MAX 65536    /* maximum bytes of a manifest */
#define GT_CKPT_TEXT_MAX (128 << 20)   /* maximum bytes of config.cfg and of data.json */

/* The files of a checkpoint: X(id, name, required). The ids of the two tensor files are values of `file` in gt_ckpt_tensor_at(). */
#define GT_CKPT_FILES(X)                                    \
	X(GT_CKPT_MODEL, "model.safetensors", true)         \
	X(GT_CKPT_OPTIMIZER, "optimizer.safetensors", false) \
	X(GT_CKPT_CONFIG, "config.cfg", true)               \
	X(GT_CKPT_DATA, "data.json", false)

enum gt_ckpt_file {
#define GT_X(id, name, must) id,
	GT_CKPT_FILES(GT_X)
#undef GT_X
	GT_CKPT_FILE_COUNT
};
const char *gt_ckpt_file_name(int file);

struct gt_ckpt_manifest {
	struct gt_ckpt_meta meta; /* config and data are NULL, because they are in separate files */
	int64_t format, serial, parent;
	struct {
		bool there; /* whether the checkpoint has this file; files are optional except where GT_CKPT_FILES says `true` */
		int64_t bytes;
		char digest[GT_DIGEST_HEX];
	} file[GT_CKPT_FILE_COUNT];
};

/* Writes the manifest as one line to j->text. j must be zeroed. */
enum gt_code gt_ckpt_manifest_print(const struct gt_ckpt_manifest *m, struct gt_json *j, struct gt_err *err);

/* Parses a manifest of n bytes. The strings of *out are in the arena. GT_EDATA: the text is not a valid manifest; the message names path,
 * the file from which the text was read. */
enum gt_code gt_ckpt_manifest_parse(const char *text, size_t n, const char *path, struct gt_arena *a, struct gt_ckpt_manifest *out,
                                    struct gt_err *err);

/* Reads the manifest of the step directory dir. GT_ENOINPUT: the directory has no manifest. */
enum gt_code gt_ckpt_manifest_read(const char *dir, struct gt_arena *a, struct gt_ckpt_manifest *out, struct gt_err *err);

#endif
