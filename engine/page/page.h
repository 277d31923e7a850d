/* The facts of a page, and the functions that write its parts, in the order of the page. A function whose facts are missing writes
 * nothing. */
#ifndef GT_PAGE_PAGE_H
#define GT_PAGE_PAGE_H

#include "base/arena.h"
#include "base/json_read.h"
#include "gtrain_page.h"
#include "gtrain_report.h"
#include "gtrain_use.h"
#include "gtrain_view.h"
#include <stdio.h>

#define GT_PAGE_MISTAKES 24

struct gt_page_facts {
	const struct gt_page_spec *spec;
	struct gt_arena *arena;
	/* the result of gt_page_write; its member `missing` has the notes of the page, sentences about facts that are missing */
	struct gt_page *page;
	struct gt_run_record run;
	struct gt_run_curves *curves;
	struct gt_run_checkpoint *checkpoint; /* [ncheckpoints] */
	int ncheckpoints;
	struct gt_eval_result *eval;     /* scores of the best checkpoint; NULL: the evaluation failed */
	const struct gt_json_value *check; /* the JSON object of gt_check; NULL: the check failed */
	struct gt_bench *bench;          /* times of a training step and its kernels; NULL: they were not measured */
	const char *unmeasured;          /* a sentence with the reason why bench is NULL */
	char *config;                    /* text of the resolved config, from malloc; NULL: the config cannot be read */
};

/* page_facts.c. Collects the facts of a run. The caller closes them with gt_page_facts_close, also after a failure. */
enum gt_code gt_page_facts_open(struct gt_page_facts *p, struct gt_err *err);
void gt_page_facts_close(struct gt_page_facts *p);

/* page_summary.c */
void gt_page_summary(const struct gt_page_facts *p, FILE *f);
/* page_repeat.c. Writes the commands that repeat the run. */
void gt_page_repeat(const struct gt_page_facts *p, FILE *f);
/* page_curves.c */
enum gt_code gt_page_curves(const struct gt_page_facts *p, FILE *f, struct gt_err *err);
/* page_classes.c */
void gt_page_classes(const struct gt_page_facts *p, FILE *f);
/* page_calibration.c */
enum gt_code gt_page_calibration(const struct gt_page_facts *p, FILE *f, struct gt_err *err);
/* page_mistakes.c. Writes the worst predictions. Their images take at most `most` bytes together; adds the number of images to
 * p->page->images. */
enum gt_code gt_page_mistakes(const struct gt_page_facts *p, FILE *f, size_t most, struct gt_err *err);
/* page_layers.c */
enum gt_code gt_page_layers(const struct gt_page_facts *p, FILE *f, struct gt_err *err);
/* page_origin.c. Writes the config, the versions and the machine, and the checkpoints. */
void gt_page_origin(const struct gt_page_facts *p, FILE *f);

/* Defined in page_figure.c. Writes a chart as an SVG picture. A script shows the values under the mouse pointer. caption: markup, which is
 * written without escaping. */
struct gt_chart;
enum gt_code gt_page_figure(const struct gt_chart *c, const char *caption, FILE *f, struct gt_err *err);

/* page_assets.c: the texts of the style sheet and of the script */
extern const char gt_page_css[], gt_page_js[];

/* base64.c. Writes n bytes in base64 (RFC 4648). */
void gt_base64_put(FILE *f, const uint8_t *data, size_t n);

#endif
