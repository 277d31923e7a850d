/* A part of the public interface of the engine (gtrain.h): the report of a run as one HTML page.
 *
 *     struct gt_page_spec spec = {.run = "runs/demo", .warn = print_warning, .user = cli};
 *     struct gt_page page;
 *     GT_TRY(gt_page_write(&spec, arena, &page, err));
 */
#ifndef GT_GTRAIN_PAGE_H
#define GT_GTRAIN_PAGE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gt_arena;

#define GT_PAGE_BYTES 3000000 /* maximum size of a page in bytes; images of wrong predictions that would exceed it are left out */

struct gt_page_spec {
	const char *run;          /* run directory, or a checkpoint in one */
	const char *out;          /* the file to write; NULL: report.html in the run directory */
	/* split to evaluate, as for gt_eval; if the evaluation fails, no page is written. NULL: the split "test", or else the split "valid" */
	const char *split;
	const char *const *sets;  /* [nsets] keys of the config that are set for the evaluation, such as data.root of data that has moved */
	int nsets;
	const char *device;       /* device of the evaluation, instead of the config's; NULL: the config decides */
	void (*warn)(void *user, const char *text); /* receives a sentence for each part that the page lacks; NULL: not called */
	void *user;
};

/* The page that gt_page_write has written. All memory belongs to the arena of that call. */
struct gt_page {
	const char *path;   /* the file */
	size_t bytes;       /* its size */
	const char *split;  /* the split that was evaluated; NULL: the evaluation was not possible */
	int64_t samples;    /* of the evaluation */
	int images;         /* number of images of wrong predictions in the page */
	const char **missing; /* [nmissing] the sentences that warn received */
	int nmissing;
};

/* Evaluates the best checkpoint of a run (the newest if none is best) and writes a page about the run: results, curves, scores of the
 * classes, mistakes, layers, config and checkpoints. The page needs neither network nor other files. A part whose data is missing is left
 * out; the page and `warn` report it. Replaces the file atomically; a page in the run directory is not replaced by a page without scores
 * (GT_ECANTCREAT). GT_ENOINPUT: there is no run. */
enum gt_code gt_page_write(const struct gt_page_spec *spec, struct gt_arena *a, struct gt_page *out, struct gt_err *err);

#endif
