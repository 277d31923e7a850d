/* Declares the inputs of an exported ONNX model, and adds the normalisation of raw values to the model. */
#ifndef GT_EXPORT_ONNX_INPUTS_H
#define GT_EXPORT_ONNX_INPUTS_H

#include "export/onnx_model.h"

/* Declares all inputs and writes to name[ninputs] the names of the values that the graph reads. preprocess: images are u8 pixels, and
 * numeric columns have their original values, NaN for a missing value. Other inputs are as the graph reads them. */
enum gt_code gt_onnx_inputs(struct gt_onnx *m, bool preprocess, const char **name, struct gt_err *err);

#endif
