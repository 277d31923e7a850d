/* A part of the public interface of the engine (gtrain.h): writes the model of a checkpoint in formats of other programs.
 *
 *     struct gt_export_spec spec = {.ckpt = "runs/demo", .out = "model.onnx", .note = print_note, .user = cli};
 *     GT_TRY(gt_export_onnx(&spec, err));
 */
#ifndef GT_GTRAIN_EXPORT_H
#define GT_GTRAIN_EXPORT_H

#include "base/err.h"
#include <stdbool.h>

struct gt_export_spec {
	const char *ckpt; /* a run directory (selects its best checkpoint, else the latest) or a step-... directory */
	const char *out;  /* file or directory to write, which appears only when it is complete */
	bool preprocess;  /* ONNX: inputs are u8 pixels, or the unscaled values of a table's columns; the model normalises them */
	void (*note)(void *user, const char *text); /* receives notes for the user about the result; NULL: notes are dropped */
	void *user;
};

/* Writes the model as an ONNX file. The weights and the arithmetic are f32, whatever the precision of the run was. Dimension 0 of inputs
 * and output is symbolic ("batch"); sequences have the longest length. Metadata: the name of the run, its step, the names of the classes,
 * and how inputs are prepared. GT_EFAIL: a layer has no equivalent in ONNX, or the file would be too large. */
enum gt_code gt_export_onnx(const struct gt_export_spec *spec, struct gt_err *err);
/* Writes a directory: model.py (the layers as modules of torch.nn), model.safetensors (the f32 weights), README.md (a model card), for
 * images images.py (their preparation in Python), for tables and texts data.json (gtrain-checkpoint(5)), and for texts tokens.py and
 * vocab.txt (the tokenizer in Python). GT_ECANTCREAT: the directory exists and is not empty. GT_EFAIL: a layer has no equivalent in
 * torch.nn. */
enum gt_code gt_export_torch(const struct gt_export_spec *spec, struct gt_err *err);

#endif
