/* The first weights of a run from a safetensors file that has some of the model's tensors (model.pretrained).
 *
 *     name in the file --> without "module.", if all have it --> first entry of model.pretrained.map that matches --> name in the model
 *
 * A tensor of the model that the file does not have keeps its initial value. Errors: nothing is loaded, an entry of the map matches no
 * name, two tensors of the file have the same name in the model and are not parts of one tensor, a part is missing, or a shape differs
 * (only to = "" skips a tensor). A tied weight may be in the file by the name of each of its layers, with equal values. */
#ifndef GT_TRAIN_PRETRAINED_H
#define GT_TRAIN_PRETRAINED_H

#include "gtrain.h"
#include "session/session.h"
#include "store/safetensors.h"

/* The tensors of the file from which one tensor of the model is loaded. */
struct gt_pretrained_source {
	int n;                    /* number of tensors; 0: none; 1: the whole tensor; more: parts of the first dimension */
	int tensor[GT_MAX_PARTS]; /* [n] index in the file; -1: missing */
};

struct gt_pretrained {
	struct gt_pretrained_report report; /* its strings are in the arena that gt_pretrained_match got */
	struct gt_pretrained_source *source; /* [nparams], of each parameter and buffer */
};

/* Opens the file that the config names. GT_ENOINPUT: it is missing; for published weights, the sentence says how to download them. */
enum gt_code gt_pretrained_open(const struct gt_conf *c, struct gt_st_file **f, struct gt_err *err);

/* Finds the tensors of the open file f, which the config names, from which parameters and buffers of g are loaded. Reads values only to
 * compare the tensors of a tied weight. GT_EDATA, with the line of the config: the file does not fit. GT_ECONFIG: the map does not fit. */
enum gt_code gt_pretrained_match(const struct gt_conf *c, const struct gt_graph *g, const struct gt_st_file *f, struct gt_arena *a,
                                 struct gt_pretrained *out, struct gt_err *err);

/* Opens the file of the config and matches it as above. *report is NULL if the config names no file. GT_ENOINPUT: the file is missing. */
enum gt_code gt_pretrained_check(const struct gt_conf *c, const struct gt_graph *g, struct gt_arena *a,
                                 const struct gt_pretrained_report **report, struct gt_err *err);

/* Loads the tensors into a session whose tensors have their initial values. All ranks call it; each reads the file. *report is in the
 * session's arena, or NULL if the config names no file. */
enum gt_code gt_pretrained_load(struct gt_session *s, const struct gt_pretrained_report **report, struct gt_err *err);

#endif
