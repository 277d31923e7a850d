/* manifest.json: one line of JSON, written last, that makes a folder a checkpoint.
 *   {"format":1,"version":"0.1.0","serial":7,"parent":6,"name":"fmnist-mlp","step":938,"epoch":1,"cursor":0,"world":1,"seed":"42",
 *    "best":{"value":0.87,"step":938},"loss_scale":0,"good_steps":0,"seconds":1.5,
 *    "files":[{"name":"model.safetensors","bytes":123,"xxh3":"<32 hex digits>"},…],"xxh3":"<32 hex digits>"}
 * serial: the count of checkpoints committed in the run directory; the newest is the one with the highest, not the one with the highest
 * step, for a run may go on from an earlier step. parent: the serial of the checkpoint that it continues, 0 for none; those with a serial
 * between the two were left behind (ckpt_history.c). Manifests of older versions have none; it is then serial - 1. seed: a string, as JSON's numbers are doubles. best: null if there is none.
 * xxh3: of all bytes before `,"xxh3":"`, so that no flipped bit of the manifest is believed.
 * files: names out of the fixed list below; a name is compared, never used as a path. */
#ifndef GT_STORE_CKPT_MANIFEST_H
#define GT_STORE_CKPT_MANIFEST_H

#include "base/digest.h"
#include "base/json.h"
#include "store/ckpt.h"

#define GT_CKPT_MANIFEST "manifest.json"
#define GT_CKPT_MANIFEST_MAX 65536
#define GT_CKPT_CONFIG_MAX (16 << 20)

/* X(id, name, must be there). The first two are the `file` of gt_ckpt_tensor_at(). */
#define GT_CKPT_FILES(X)                                    \
	X(GT_CKPT_MODEL, "model.safetensors", true)         \
	X(GT_CKPT_OPTIMIZER, "optimizer.safetensors", false) \
	X(GT_CKPT_CONFIG, "config.cfg", true)

enum gt_ckpt_file {
#define GT_X(id, name, must) id,
	GT_CKPT_FILES(GT_X)
#undef GT_X
	GT_CKPT_FILE_COUNT
};
const char *gt_ckpt_file_name(int file);

struct gt_ckpt_manifest {
	struct gt_ckpt_meta meta; /* config is NULL: it has a file of its own */
	int64_t format, serial, parent;
	struct {
		bool there;
		int64_t bytes;
		char digest[GT_DIGEST_HEX];
	} file[GT_CKPT_FILE_COUNT];
};

/* Into a zeroed writer, the newline included in j->text. */
enum gt_code gt_ckpt_manifest_print(const struct gt_ckpt_manifest *m, struct gt_json *j, struct gt_err *err);

/* text: n bytes. Strings go into the arena. GT_EDATA names path. */
enum gt_code gt_ckpt_manifest_parse(const char *text, size_t n, const char *path, struct gt_arena *a, struct gt_ckpt_manifest *out,
                                    struct gt_err *err);

/* The manifest of a step directory. GT_ENOINPUT: it has none. */
enum gt_code gt_ckpt_manifest_read(const char *dir, struct gt_arena *a, struct gt_ckpt_manifest *out, struct gt_err *err);

#endif
